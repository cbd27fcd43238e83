"""The byte inserter: RIMM's headers and PDN's notifications in frames of every length, against the bytes of captures."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from typing import Any

import cocotb
from bench import give, start, value
from cocotb.triggers import FallingEdge

from fanin import conformance_frames as frames

BYTES, MOST = int(os.environ["DATA_W"]) // 8, int(os.environ["MOST"])
IDLE = dict.fromkeys(
    ["in_valid", "in_data", "in_keep", "in_last", "in_size", "in_bytes", "in_end", "in_tagged", "in_retype", "in_type"], 0
)
Case = tuple[bytes, dict[str, int], bytes]


def cases(rng: random.Random, lengths: list[int]) -> Iterator[Case]:
    """A frame, what is done with it, and what it becomes."""
    for n in lengths:
        kind, tag = rng.choice([b"\x08\0", b"\x86\xdd"]), rng.choice([b"", b"\x81\0\0\5"])
        frame = (rng.randbytes(12) + tag + kind + rng.randbytes(n))[:n]
        done = {"in_tagged": int(tag != b""), "in_size": 0, "in_bytes": rng.getrandbits(8 * MOST), "in_retype": 0}
        if rng.randrange(4) == 0:
            yield frame, done, frame
        elif MOST == 12:
            shim, depth = rng.choice([(frames.DEPTH, 0), (frames.DETOUR, 4), (frames.MESSAGE, 8)]), rng.getrandbits(16)
            more = rng.randbytes(shim[1])
            put = shim[0].to_bytes(2, "big") + depth.to_bytes(2, "big") + more
            done |= {"in_end": 0, "in_size": len(put), "in_bytes": int.from_bytes(put, "little")}
            yield frame, done, frames.with_header(frame, shim[0], depth, more)
        else:
            notice = rng.randbytes(MOST)
            with_it = frames.attached(frame, notice)
            at = 12 + len(tag)
            done |= {"in_end": 1, "in_size": MOST, "in_bytes": int.from_bytes(notice, "little"), "in_retype": 1}
            done["in_type"] = int.from_bytes(with_it[at : at + 2], "little")
            yield frame, done, with_it


async def compare(dut: Any, given: list[Case], gaps: random.Random | None) -> None:
    made: list[bytes] = []
    rest = b""
    nothing = {"in_valid": 0, "in_last": 0, "in_size": 0, "in_data": 0x5A}

    async def clock(inputs: dict[str, int]) -> None:
        nonlocal rest
        give(dut, inputs)
        await FallingEdge(dut.clk)
        if value(dut, "out_valid"):
            keep = value(dut, "out_keep")
            assert keep == (1 << keep.bit_count()) - 1
            rest += value(dut, "out_data").to_bytes(BYTES, "little")[: keep.bit_count()]
            if value(dut, "out_last"):
                made.append(rest)
                rest = b""

    for frame, done, _ in given:
        for at in range(0, len(frame), BYTES):
            part = frame[at : at + BYTES]
            last = int(at + BYTES >= len(frame))
            while not value(dut, "in_ready") or (gaps is not None and gaps.randrange(3) == 0):
                await clock(nothing)
            beat = {"in_valid": 1, "in_data": int.from_bytes(part, "little"), "in_keep": (1 << len(part)) - 1, "in_last": last}
            await clock(beat | done)
    for _ in range(12):
        await clock(nothing)
    assert rest == b""
    assert made == [expected for *_, expected in given]


@cocotb.test()
async def every_length_as_soon_as_there_is_room(dut: Any) -> None:
    rng = random.Random(8)
    await start(dut, {}, IDLE)
    await compare(dut, list(cases(rng, [*range(24, 24 + 2 * BYTES + 4), 60, 64, 300])), None)


@cocotb.test()
async def random_frames_with_gaps(dut: Any) -> None:
    rng = random.Random(9)
    await start(dut, {}, IDLE)
    await compare(dut, list(cases(rng, [rng.randint(24, 200) for _ in range(60)])), rng)
