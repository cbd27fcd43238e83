"""CE in IP headers: the checksum of every header is that of the whole header."""

from __future__ import annotations

import random
from typing import Any

import cocotb
from bench import run, start
from internet import checksum, with_checksum

IDLE = {"in_valid": 0, "in_mark": 0, "in_ipv6": 0, "in_word": 0, "in_checksum": 0}


@cocotb.test()
async def every_codepoint_with_checksums_of_zero_and_one(dut: Any) -> None:
    rng = random.Random(3168)
    await start(dut, {}, IDLE)
    inputs, expected = [], []
    for _ in range(60):
        for ecn in range(4):
            for mark in (0, 1):
                for wanted in (0x0000, 0x0001, 0x0002, 0x0003, 0xFFFE, None):
                    word = 0x4500 | rng.randrange(64) << 2 | ecn
                    rest = [rng.randrange(65_536) for _ in range(8)]
                    if wanted is not None:
                        rest = with_checksum(rng, [word, *rest[:7]], wanted)[1:]
                    becomes = word | 3 if mark and ecn else word
                    inputs.append(
                        {"in_valid": 1, "in_mark": mark, "in_ipv6": 0, "in_word": word, "in_checksum": checksum([word, *rest])}
                    )
                    expected.append({"out_word": becomes, "out_checksum": checksum([becomes, *rest])})
                kind = 0x6000 | rng.randrange(64) << 6 | ecn << 4 | rng.randrange(16)
                inputs.append({"in_valid": 1, "in_mark": mark, "in_ipv6": 1, "in_word": kind, "in_checksum": 0x1234})
                expected.append({"out_word": kind | 0x30 if mark and ecn else kind, "out_checksum": 0x1234})
    assert await run(dut, inputs, 1, "out_valid", ["out_word", "out_checksum"]) == expected
    assert {0x0000, 0x0001} <= {e["out_checksum"] for e in expected}


@cocotb.test()
async def a_header_that_stays_keeps_its_checksum(dut: Any) -> None:
    """0xFFFF, which a header of others may have, is no 0x0000 behind it."""
    await start(dut, {}, IDLE)
    inputs = [
        {"in_valid": 1, "in_mark": m, "in_ipv6": 0, "in_word": w, "in_checksum": 0xFFFF}
        for m, w in ((0, 0x4501), (1, 0x4500), (1, 0x4503))
    ]
    found = await run(dut, inputs, 1, "out_valid", ["out_word", "out_checksum"])
    assert [(f["out_word"], f["out_checksum"]) for f in found] == [(i["in_word"], 0xFFFF) for i in inputs]
