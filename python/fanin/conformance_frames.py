"""Frames of test vectors: what a device reads from a capture, and what has to leave it, byte for byte. docs/vectors.md has both."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

LINK_TYPE: Final = 147
"""LINKTYPE_USER0: a header of 32 bytes before each frame."""
EVENT: Final = struct.Struct(">IBBHHHIQII")
"""Sequence, event, more, port, from, zero, hash, time, queue, step."""
SETTINGS: Final = 255
"""Event that begins a sequence; its settings follow as words ``key=value``."""

IPV4, IPV6, TAG = 0x0800, 0x86DD, 0x8100
WITH_NOTICE: Final = {IPV4: 0xA800, IPV6: 0xA6DD}
DEPTH, DETOUR, RETURN, MESSAGE, ANSWER = range(0xA8F0, 0xA8F5)
_SWITCH: Final = bytes([2, 0, 0, 0, 0, 0])
_SHORTEST: Final = 60
_FCS: Final = 4
_TCP, _UDP, _EXPERIMENT = 6, 17, 253
_ACK, _RST, _SYN = 0x10, 0x04, 0x02
_CE: Final = 3
_CELL: Final = 80
"""Bytes in which RIMM's headers state depths."""

Row = Mapping[str, int]


class Leaves(NamedTuple):
    """A frame that leaves the device by a port."""

    port: int
    frame: bytes


class Event(NamedTuple):
    """Frame or settings that a device is given, and the frames that have to leave it then; the settings are row -1."""

    sequence: int
    row: int
    given: bytes
    leaves: list[Leaves]


def checksum(data: bytes) -> int:
    """Internet checksum."""
    data = data.rstrip(b"\0") if len(data) > 256 else data  # zeroes add nothing
    data += bytes(len(data) % 2)
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


class Ip(NamedTuple):
    """An IP header: `version` 4 or 6, addresses as bytes; `number` is the identification, or the flow label."""

    src: bytes
    dst: bytes
    ecn: int = 2
    ttl: int = 64
    number: int = 0
    options: bytes = b""

    @property
    def kind(self) -> int:
        """EtherType."""
        return IPV4 if len(self.src) == 4 else IPV6

    @property
    def size(self) -> int:
        """Bytes of the header."""
        return 20 + len(self.options) if self.kind == IPV4 else 40

    def before(self, protocol: int, payload: bytes) -> bytes:
        """The packet."""
        if self.kind == IPV6:
            head = struct.pack(">IHBB", 6 << 28 | self.ecn << 20 | self.number & 0xFFFFF, len(payload), protocol, self.ttl)
            return head + self.src + self.dst + payload
        length = self.size + len(payload)
        first = (4 << 4 | self.size // 4, self.ecn, length, self.number, 0x4000, self.ttl, protocol)
        head = struct.pack(">BBHHHBBH", *first, 0) + self.src + self.dst + self.options
        return struct.pack(">BBHHHBBH", *first, checksum(head)) + head[12:] + payload

    def transport(self, protocol: int, segment: bytes) -> bytes:
        """The packet with a segment whose checksum field is zero, filled in."""
        pseudo = self.src + self.dst + struct.pack(">IHBB", len(segment), 0, 0, protocol)
        found = checksum(pseudo + segment) or (0 if protocol == _TCP else 0xFFFF)
        at = 16 if protocol == _TCP else 6
        return self.before(protocol, segment[:at] + found.to_bytes(2, "big") + segment[at + 2 :])


def segment(ports: tuple[int, int], seq: int, ack: int, flags: int, length: int) -> bytes:
    """A TCP segment of zeroes, its checksum still zero."""
    return struct.pack(">HHIIBBHHH", *ports, seq, ack, 5 << 4, flags, 0xFFFF, 0, 0) + bytes(length)


def ethernet(ip: Ip, packet: bytes, tag: int | None = None) -> bytes:
    """The frame without check sequence, padded."""
    tagged = b"" if tag is None else struct.pack(">HH", TAG, tag)
    macs = b"".join(b"\x02\0" + address[-4:] for address in (ip.dst, ip.src))
    return (macs + tagged + ip.kind.to_bytes(2, "big") + packet).ljust(_SHORTEST, b"\0")


def _type_at(frame: bytes) -> int:
    return 16 if frame[12:14] == TAG.to_bytes(2, "big") else 12


def notice(ip: Ip, ports: tuple[int, int], number: int, length: int, operation: int) -> bytes:
    """PDN's notification of a dropped packet with these addresses and ports."""
    return ip.src + ip.dst + struct.pack(">HHIHBB", *ports, number, length, 1 if ip.kind == IPV4 else 2, operation)


def attached(frame: bytes, notification: bytes) -> bytes:
    """The frame of an IP packet with a notification at its end."""
    at = _type_at(frame)
    kind = WITH_NOTICE[int.from_bytes(frame[at : at + 2], "big")]
    return frame[:at] + kind.to_bytes(2, "big") + frame[at + 2 :] + notification


def alone(notification: bytes, size: int = _SHORTEST) -> bytes:
    """A frame of `size` bytes with nothing but a notification."""
    kind = IPV4 if len(notification) == 20 else IPV6
    address = len(notification) // 2 - 6
    head = b"\x02\0" + notification[address - 4 : address] + _SWITCH + WITH_NOTICE[kind].to_bytes(2, "big")
    return head.ljust(size - len(notification), b"\0") + notification


def with_header(frame: bytes, kind: int, depth: int, more: bytes = b"") -> bytes:
    """The frame with a header of RIMM's before its EtherType, behind any tag."""
    at = _type_at(frame)
    return frame[:at] + struct.pack(">HH", kind, depth) + more + frame[at:]


def _addresses(n: int, kind: int = IPV4) -> tuple[bytes, bytes]:
    src, dst = (bytes([10, side, n // 250 % 250, 1 + n % 250]) for side in (0, 1))
    prefix = b"" if kind == IPV4 else bytes([0xFD]) + bytes(11)
    return prefix + src, prefix + dst


def _ports(n: int) -> tuple[int, int]:
    return 49_152 + n % 16_384, 80 + n % 7


def _marked(n: int, row: Row, ecn: int) -> bytes:
    """A packet of `s-ecn` by its number: IPv4, with options, with a tag, IPv6."""
    shape = n % 8
    tag = 5 if shape in (6, 7) else None
    src, dst = _addresses(n, IPV6 if shape in (3, 7) else IPV4)
    room = row["frame"] - _FCS - (14 if tag is None else 18)
    ip = Ip(src, dst, row["ecn"], 64 - n % 5, n & 0xFFFF, b"\x94\4\0\0" if shape == 2 else b"")
    payload = bytes(room - ip.size)
    if shape in (0, 4):  # a checksum of zero with CE, or without: where RFC 1624's older forms go wrong
        target = ip._replace(ecn=_CE if shape == 0 else row["ecn"], number=0).before(_EXPERIMENT, payload)
        ip = ip._replace(number=int.from_bytes(target[10:12], "big"))
    return ethernet(ip, ip._replace(ecn=ecn).before(_EXPERIMENT, payload), tag)


def _s_ecn(sequence: int, settings: Row, rows: Sequence[Row]) -> Iterator[Event]:
    for index, row in enumerate(rows):
        event = EVENT.pack(sequence, row["departure"], 0, 0, 0, 0, 0, row["time_ps"], row["queue"], index)
        leaves = row["departure"] == settings["at_dequeue"]
        ecn = _CE if row["mark"] else row["ecn"]
        given = event + _marked(row["packet"], row, row["ecn"])
        yield Event(sequence, index, given, [Leaves(0, _marked(row["packet"], row, ecn))] if leaves else [])


def _dropped(n: int, row: Row, ip: Ip) -> bytes:
    ports, number, other = _ports(n), row["number"], n * 2_654_435_761 & 0xFFFFFFFF
    if row["part"] == 1:
        flags = _ACK if row["length"] else _SYN
        return ethernet(ip, ip.transport(_TCP, segment(ports, number, other, flags, row["length"])))
    if row["part"] == 2:
        return ethernet(ip, ip.transport(_TCP, segment(ports, other, number, _ACK, 0)))
    if n % 2:
        return ethernet(ip, ip.transport(_TCP, segment(ports, other, 0, _RST, 0)))
    return ethernet(ip, ip.transport(_UDP, struct.pack(">HHHH", *ports, 108, 0) + bytes(100)))


def _carrier(n: int, frame: int) -> bytes:
    """A frame of so many bytes, with its check sequence, that may carry a notification: of IPv4 and IPv6, with a tag or without."""
    src, dst = _addresses(3 * n, IPV6 if n % 4 == 1 else IPV4)
    ip, tag = Ip(src, dst, number=n & 0xFFFF), 5 if n % 4 == 2 else None
    room = frame - _FCS - (14 if tag is None else 18) - ip.size
    padding = 3 if frame <= 64 and room > 3 else 0
    return ethernet(ip, ip.before(_EXPERIMENT, bytes(room - padding)), tag)


def _pdn(sequence: int, settings: Row, rows: Sequence[Row]) -> Iterator[Event]:
    waiting: list[bytes] = []
    kind = IPV4 if settings["type"] == 1 else IPV6
    for n, row in enumerate(rows):
        ip = Ip(*_addresses(n, kind), number=n)
        given, more, due = b"", 0, b""
        leaves: list[bytes] = []
        match row["event"]:
            case 0:
                given, more = _dropped(n, row, ip), row["congestion"]
                operation = 3 if row["part"] == 2 else 1 if settings["halve"] else 2
                due = notice(ip, _ports(n), row["number"], row["length"], operation)
            case 1:
                due, more = notice(ip, _ports(n), row["number"], row["length"], row["given"]), row["ttl"]
                if n % 4 == 3:
                    given = alone(due)
                else:
                    leaves = [_carrier(n, 64 + n % 900)]
                    given = attached(leaves[0], due)
            case 2:
                given = _carrier(n, row["frame"])
                leaves = [attached(given, waiting.pop(0)) if row["sends"] else given]
            case _:
                more = row["data"]
                leaves = [alone(waiting.pop(0), settings["empty"] - _FCS)] if row["sends"] else []
        if row["fate"] == 1:
            waiting.append(due)
        event = EVENT.pack(sequence, row["event"], more, 0, 0, 0, 0, 0, 0, n)
        yield Event(sequence, n, event + given, [Leaves(0, frame) for frame in leaves])


def _packet(n: int, ttl: int, payload: int) -> bytes:
    ip = Ip(*_addresses(n, IPV6 if n % 3 == 1 else IPV4), ttl=ttl, number=n & 0xFFFF)
    return ethernet(ip, ip.transport(_TCP, segment(_ports(n), n, n, _ACK, payload)), 5 if n % 3 == 2 else None)


def _rimm(sequence: int, settings: Row, rows: Sequence[Row]) -> Iterator[Event]:
    for n, row in enumerate(rows):
        queue = 0
        leaves: list[Leaves] = []
        match row["event"]:
            case 0:
                given, queue = _packet(n, 64, 200), row["depth"]
                to_switch = row["port"] < settings["neighbours"]
                depth = min(-(-queue // _CELL), 0xFFFF)
                leaves = [Leaves(row["port"], with_header(given, DEPTH, depth) if to_switch else given)]
                if row["message"] and row["way"] >= 0:
                    said = struct.pack(">HHI", row["port"], row["crossings"], queue)
                    leaves.append(Leaves(row["way"], with_header(_packet(n, 64, 0), MESSAGE, 0, said)))
            case 1:
                said = struct.pack(">HHI", row["port"], row["crossing"], row["depth"])
                given = with_header(_packet(n, 64, 0), ANSWER, row["heard"], said)
            case kind:
                plain = _packet(n, row["ttl"], 200)
                number = b"" if kind == 2 else row["number"].to_bytes(4, "big")
                given = with_header(plain, DEPTH if kind == 2 else RETURN, row["heard"], number)
                if row["action"] in (1, 4):
                    leaves = [Leaves(row["way"], with_header(plain, DETOUR, 0, row["attached"].to_bytes(4, "big")))]
                else:
                    leaves = [Leaves(row["port"], plain)]
        port = 0 if row["event"] == 1 else row["port"]
        event = EVENT.pack(sequence, row["event"], 0, port, row["from"], 0, row["hash"], row["clock"], queue, n)
        yield Event(sequence, n, event + given, leaves)


MECHANISMS: Final[dict[str, Callable[[int, Row, Sequence[Row]], Iterator[Event]]]] = {"s-ecn": _s_ecn, "pdn": _pdn, "rimm": _rimm}
"""Mechanisms that change frames."""


def events(document: Mapping[str, Any]) -> Iterator[Event]:
    """Every event of test vectors as a device is given it, the settings of each sequence before its rows."""
    names = [[column["name"] for column in document[key]] for key in ("settings", "columns")]
    made = MECHANISMS[document["mechanism"]]
    for number, sequence in enumerate(document["sequences"]):
        settings = dict(zip(names[0], sequence["settings"], strict=True))
        words = " ".join(f"{name}={value}" for name, value in settings.items())
        yield Event(number, -1, EVENT.pack(number, SETTINGS, 0, 0, 0, 0, 0, 0, 0, 0) + words.encode("ascii"), [])
        yield from made(number, settings, [dict(zip(names[1], row, strict=True)) for row in sequence["rows"]])


_PARTS: Final[dict[int, tuple[tuple[int, str], ...]]] = {
    4: (
        (1, "version"),
        (2, "traffic class"),
        (4, "length"),
        (8, "identification"),
        (9, "TTL"),
        (10, "protocol"),
        (12, "checksum"),
        (20, "address"),
    ),
    6: (
        (1, "version"),
        (2, "traffic class"),
        (4, "flow label"),
        (6, "length"),
        (7, "next header"),
        (8, "hop limit"),
        (40, "address"),
    ),
}
"""Ends and names of the parts of IP headers, by version."""


def _regions(frame: bytes) -> Iterator[tuple[int, str]]:
    yield 12, "MAC addresses"
    at = _type_at(frame)
    yield at, "802.1Q tag"
    kind = int.from_bytes(frame[at : at + 2], "big")
    if body := {DEPTH: 2, DETOUR: 6, RETURN: 6, MESSAGE: 10, ANSWER: 10}.get(kind, 0):
        at += 2 + body
        yield at, "RIMM header"
        kind = int.from_bytes(frame[at : at + 2], "big")
    at += 2
    yield at, "EtherType"
    version = frame[at] >> 4 if at < len(frame) else 0
    yield from ((at + end, f"IPv{version} {name}") for end, name in _PARTS.get(version, ()))
    if version == 4:
        yield at + 4 * (frame[at] & 15), "IPv4 options"
    notified = kind in WITH_NOTICE.values()
    end = len(frame) - (20 if frame[-2] == 1 else 44) if notified else len(frame)
    yield end, "behind the IP header" if version in _PARTS else "padding"
    yield len(frame), "notification"


def place(frame: bytes, at: int) -> str:
    """The part of a frame in which byte `at` lies."""
    return next(name for end, name in _regions(frame) if at < end)
