"""A device from capture to capture, of PDN or RIMM: device.py MECHANISM IN OUT [WRONG].

It knows docs/vectors.md and docs/dev/vectors-registers.md alone. Decisions are those of the independent models of
test_vectors_pdn.py and test_vectors_rimm.py; every byte is read and written here.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import test_vectors_pdn
import test_vectors_rimm

Frames = list[tuple[int, bytes]]
IP = {0xA800: 0x0800, 0xA6DD: 0x86DD}


def ones(data: bytes) -> int:
    """Checksum of RFC 1071, a word after the other."""
    total = 0
    for high, low in zip(data[::2], (data + b"\0")[1::2], strict=False):
        total += high << 8 | low
        total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - total


def type_at(frame: bytes) -> int:
    return 16 if frame[12:14] == b"\x81\0" else 12


def number(frame: bytes, at: int, size: int) -> int:
    return int.from_bytes(frame[at : at + size], "big")


class Packet:
    """An IP packet in a frame, by its headers."""

    def __init__(self, frame: bytes) -> None:
        self.ip = type_at(frame) + 2
        self.frame, four = frame, frame[self.ip] >> 4 == 4
        self.addresses = frame[self.ip + (12 if four else 8) : self.ip + (20 if four else 40)]
        self.protocol, self.ttl = (frame[self.ip + (9 if four else 6)], frame[self.ip + (8 if four else 7)])
        self.transport = self.ip + ((frame[self.ip] & 15) * 4 if four else 40)
        self.end = self.ip + (number(frame, self.ip + 2, 2) if four else 40 + number(frame, self.ip + 4, 2))
        self.four = four

    def lost(self) -> tuple[int, int, int]:
        """Part, number and payload of a packet that was dropped."""
        at, flags = self.transport, self.frame[self.transport + 13]
        length = self.end - at - (self.frame[at + 12] >> 4) * 4
        if self.protocol != 6 or flags & 4:
            return 0, 0, 0
        if length or flags & 3:
            return 1, number(self.frame, at + 4, 4), length
        return 2, number(self.frame, at + 8, 4), 0

    def headers_alone(self) -> bytes:
        """The frame without the payload of its segment, lengths and checksums anew."""
        head = bytearray(self.frame[: self.transport + 20])
        length = len(head) - self.ip
        if self.four:
            head[self.ip + 2 : self.ip + 4] = length.to_bytes(2, "big")
            head[self.ip + 10 : self.ip + 12] = bytes(2)
            head[self.ip + 10 : self.ip + 12] = ones(bytes(head[self.ip : self.transport])).to_bytes(2, "big")
        else:
            head[self.ip + 4 : self.ip + 6] = (length - 40).to_bytes(2, "big")
        head[self.transport + 16 : self.transport + 18] = bytes(2)
        pseudo = self.addresses + struct.pack(">IHBB", 20, 0, 0, 6)
        head[self.transport + 16 : self.transport + 18] = ones(pseudo + bytes(head[self.transport :])).to_bytes(2, "big")
        return bytes(head).ljust(60, b"\0")


class Pdn:
    """The notification queue of a port, with whole notifications in it."""

    def __init__(self, settings: dict[str, int]) -> None:
        self.set, self.port = settings, test_vectors_pdn.Port(settings)
        self.waiting: list[bytes] = []

    def event(self, head: tuple[int, ...], frame: bytes) -> Frames:
        kind, more = head[1], head[2]
        row = dict.fromkeys(("congestion", "part", "number", "length", "given", "ttl", "frame", "data"), 0) | {"event": kind}
        leaves: list[bytes] = []
        notice = b""
        if kind == 0:
            packet = Packet(frame)
            part, row["number"], row["length"] = packet.lost()
            row |= {"congestion": more, "part": part}
            operation = 3 if part == 2 else 1 if self.set["halve"] else 2
            said = struct.pack(">IHBB", row["number"], row["length"], self.set["type"], operation)
            notice = packet.addresses + frame[packet.transport : packet.transport + 4] + said
        elif kind == 1:
            at, size = type_at(frame), 20 if frame[-2] == 1 else 44
            notice = frame[-size:]
            row |= {"number": number(notice, size - 8, 4), "length": number(notice, size - 4, 2), "given": notice[-1], "ttl": more}
            if frame[at + 2] >> 4 in (4, 6):
                leaves = [frame[:at] + IP[number(frame, at, 2)].to_bytes(2, "big") + frame[at + 2 : -size]]
        else:
            row |= {"frame": len(frame) + 4, "data": more}
        done = self.port.step(row)
        if done["fate"] == 1:
            self.waiting.append(notice)
        if kind == 2:
            leaves = [self.behind(frame, self.waiting.pop(0)) if done["sends"] else frame]
        elif done["sends"]:
            notice = self.waiting.pop(0)
            source = notice[: len(notice) // 2 - 6]
            begin = b"\2\0" + source[-4:] + b"\2\0\0\0\0\0" + (b"\xa8\0" if len(source) == 4 else b"\xa6\xdd")
            leaves = [begin.ljust(self.set["empty"] - 4 - len(notice), b"\0") + notice]
        return [(0, frame) for frame in leaves]

    @staticmethod
    def behind(frame: bytes, notice: bytes) -> bytes:
        at = type_at(frame)
        return frame[:at] + (b"\xa8\0" if frame[at : at + 2] == b"\x08\0" else b"\xa6\xdd") + frame[at + 2 :] + notice


class Rimm:
    """The registers of a switch, and headers."""

    def __init__(self, settings: dict[str, int]) -> None:
        self.set, self.switch = settings, test_vectors_rimm.Switch(settings)

    def event(self, head: tuple[int, ...], frame: bytes) -> Frames:
        _, kind, _, port, come, _, flow, clock, queue, _ = head
        at = type_at(frame)
        row = {"event": kind, "port": port, "from": come, "hash": flow, "clock": clock, "depth": queue}
        said = frame[at : at + {0: 0, 1: 12, 2: 4, 3: 8}[kind]]
        plain = frame[:at] + frame[at + len(said) :]
        if kind:
            row["heard"] = number(said, 2, 2)
        if kind == 1:
            row |= {"port": number(said, 4, 2), "crossing": number(said, 6, 2), "depth": number(said, 8, 4)}
        elif kind > 1:
            row |= {"number": number(said, 4, 4), "ttl": Packet(plain).ttl}
        done = self.switch.step(row)
        if kind == 1:
            return []
        if kind == 0:
            depth = min((queue + 79) // 80, 65_535)
            shown = self.put(frame, struct.pack(">HH", 0xA8F0, depth)) if port < self.set["neighbours"] else frame
            said = struct.pack(">HHHHI", 0xA8F3, 0, port, done["crossings"], queue)
            message = [(done["way"], self.put(Packet(frame).headers_alone(), said))] if done["message"] else []
            return [(port, shown), *message]
        if done["action"] in (1, 4):
            return [(done["way"], self.put(plain, struct.pack(">HHI", 0xA8F1, 0, done["attached"])))]
        return [(port, plain)]

    @staticmethod
    def put(frame: bytes, header: bytes) -> bytes:
        at = type_at(frame)
        return frame[:at] + header + frame[at:]


def packets(capture: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 24
    while at < len(capture):
        size = int.from_bytes(capture[at + 8 : at + 12], "little")
        yield capture[at : at + 8], capture[at + 16 : at + 16 + size]
        at += 16 + size


def run(device: Callable[[dict[str, int]], Pdn | Rimm], source: Path, out: Path, wrong: str | None) -> None:
    capture = source.read_bytes()
    written = [capture[:24]]
    state: Pdn | Rimm | None = None
    for n, (time, packet) in enumerate(packets(capture)):
        head, body = struct.unpack(">IBBHHHIQII", packet[:32]), packet[32:]
        if head[1] == 255:
            state = device({key: int(value) for key, _, value in (word.partition("=") for word in body.decode().split())})
            continue
        assert state is not None
        leaves = state.event(head, body)
        if wrong is not None and n == 100:
            (port, frame) = leaves[0]
            leaves = {"missing": [], "bit": [(port, frame[:14] + b"\xff" + frame[15:])], "port": [(port + 1, frame)]}[wrong]
        for port, frame in leaves:
            answer = packet[:6] + port.to_bytes(2, "big") + packet[8:32] + frame
            written.append(time + struct.pack("<II", len(answer), len(answer)) + answer)
    out.write_bytes(b"".join(written))


if __name__ == "__main__":
    mechanism, *more, source, out = sys.argv[1:]
    run(Pdn if mechanism == "pdn" else Rimm, Path(source), Path(out), next(iter(more), None))
