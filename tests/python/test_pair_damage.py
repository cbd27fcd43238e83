"""Captures of a port whose queue is known, damaged as captures are: what is off by more than a little is doubted."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

import fanin

BYTE, SIZE, BUFFER, START = 0.8, 1514, 200_000, 1_795_000_000_000_000_000
"""Of a port of 10 Gb/s [ns]; bytes of a frame, and of the buffer; the first time [ns]."""

Packet = tuple[int, int, int, int | None]
"""Arrival [ns], flow, number, departure [ns]; None where it was dropped."""


def port() -> list[Packet]:
    """A background of 20 %, and every millisecond eight senders at once."""
    draw, now, came = random.Random(1), 0.0, []
    while now < 8e6:
        now += draw.expovariate(0.2 / (SIZE * BYTE))
        came.append((int(now), 8))
    came += [(ms * 1_000_000 + 500_000 + flow * 97 + i * 1_211, flow) for ms in range(7) for flow in range(8) for i in range(40)]
    free, packets = 0.0, []
    for i, (at, flow) in enumerate(sorted(came)):
        taken = free - at <= BUFFER * BYTE
        free = max(free, at) + SIZE * BYTE if taken else free
        packets.append((at, flow, i, int(free - SIZE * BYTE) if taken else None))
    return packets


def write(path: Path, rows: list[tuple[int, int, int]]) -> Path:
    out = [struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 96, 1)]
    for ns, flow, number in sorted(rows):
        ip = struct.pack(">BBHHHBBH4B4B", 0x45, 0, SIZE - 14, number, 0, 64, 17, 0, 10, 0, 0, 1 + flow, 10, 0, 0, 99)
        data = bytes(12) + b"\x08\x00" + ip + struct.pack(">HHHHI", 1000 + flow, 80, SIZE - 34, 0, number) + bytes(40)
        out.append(struct.pack("<IIII", (START + ns) // 10**9, (START + ns) % 10**9, len(data), SIZE) + data)
    path.write_bytes(b"".join(out))
    return path


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("none", None),
        ("back", "unsteady_clock"),
        ("forth", "unsteady_clock"),
        ("groups", "idle_waits"),
        ("lost", "lost_behind"),
    ],
)
def test_what_is_off_is_doubted(name: str, code: str | None, tmp_path: Path) -> None:
    packets, draw = port(), random.Random(2)
    middle = packets[len(packets) // 2][0]
    before = [(at // 50_000 * 50_000 + 50_000 if name == "groups" else at, flow, n) for at, flow, n, _ in packets]
    step = {"back": -40_000, "forth": 5_000}.get(name, 0)
    left = [(out + 1_000 + (step if at > middle else 0), flow, n) for at, flow, n, out in packets if out is not None]
    behind = [row for row in left if name != "lost" or draw.random() > 0.03]
    paths = write(tmp_path / "in.pcap", before), write(tmp_path / "out.pcap", behind)
    found = fanin.analyze(paths[0], behind=paths[1], overhead="0B", fcs=False)
    codes = [finding["code"] for finding in found.plausibility["findings"]]
    assert (code in codes, found.plausibility["trust"] == "good") == (code is not None, code is None), codes
    dropped = sum(out is None for *_, out in packets)
    assert found.port()["dropped"] == dropped + len(left) - len(behind)
