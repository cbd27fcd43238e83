"""The trailer writer: frames of every length and gap, against the bytes that they should have."""

from __future__ import annotations

import os
import random
from typing import Any

import cocotb
from bench import run, start

BYTES = int(os.environ["DATA_W"]) // 8
IDLE = {"in_valid": 0, "in_data": 0, "in_keep": 0, "in_last": 0, "in_write": 0, "in_trailer": 0}
NAMES = ["out_data", "out_keep", "out_last"]


def beats(frame: bytes, write: int, trailer: bytes) -> list[dict[str, int]]:
    made = []
    for at in range(0, len(frame), BYTES):
        part = frame[at : at + BYTES]
        last = at + BYTES >= len(frame)
        beat = {"in_valid": 1, "in_data": int.from_bytes(part, "little"), "in_keep": (1 << len(part)) - 1, "in_last": int(last)}
        made.append(beat | ({"in_write": write, "in_trailer": int.from_bytes(trailer, "big")} if last else {"in_write": 0}))
    return made


async def compare(dut: Any, frames: list[tuple[bytes, int, bytes]], gap: Any) -> None:
    inputs: list[dict[str, int]] = []
    for frame, write, trailer in frames:
        for beat in beats(frame, write, trailer):
            inputs += [{"in_valid": 0}] * gap()
            inputs.append(beat)
    found = await run(dut, inputs, 4, "out_valid", NAMES)
    made, rest = [], b""
    for beat in found:
        count = beat["out_keep"].bit_count()
        assert beat["out_keep"] == (1 << count) - 1
        rest += beat["out_data"].to_bytes(BYTES, "little")[:count]
        if beat["out_last"]:
            made.append(rest)
            rest = b""
    assert rest == b""
    assert made == [frame[:-8] + trailer if write else frame for frame, write, trailer in frames]


@cocotb.test()
async def every_length_back_to_back(dut: Any) -> None:
    rng = random.Random(8)
    await start(dut, {}, IDLE)
    lengths = [*range(8, 8 + 3 * BYTES + 2), 60, 64, 1514, 1518]
    frames = [(rng.randbytes(n), write, rng.randbytes(8)) for n in lengths for write in (1, 0, 1)]
    await compare(dut, frames, lambda: 0)


@cocotb.test()
async def random_frames_with_gaps(dut: Any) -> None:
    rng = random.Random(9)
    await start(dut, {}, IDLE)
    frames = [(rng.randbytes(rng.randint(8, 300)), rng.randrange(2), rng.randbytes(8)) for _ in range(120)]
    await compare(dut, frames, lambda: rng.choice([0, 0, 1, 2]))
