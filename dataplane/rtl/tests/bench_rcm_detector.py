"""RCM's detector at line rate: an arrival in each clock, also while a sample is being computed."""

from __future__ import annotations

import random
from typing import Any

import cocotb
from bench import give, reset, start, value
from cocotb.triggers import FallingEdge

CLOCKS = 5_000
SIZES = (64, 576, 1518, 9018)


def ceiling(n: int, d: int) -> int:
    return -(-n // d)


async def detector(dut: Any, seed: int, settings: tuple[int, int, int, int]) -> int:
    """Random arrivals against a model; the number of samples."""
    q_eq, w_q, sample, w = settings
    draw = random.Random(seed)
    idle = {"in_valid": 0, "in_frame": 0, "in_queue": 0, "in_draw": 0, "in_remote_valid": 0, "in_remote": 0}
    await (reset if seed else start)(dut, {"q_eq": q_eq, "w_q": w_q, "sample": sample, "w": w}, idle)
    left, before, since, samples, queue = sample, 0, 0, 0, 0
    under_way: tuple[int, int, int, int | None] | None = None
    age = 0
    for _ in range(CLOCKS):
        valid, frame = int(draw.random() < 0.9), draw.choice(SIZES)
        queue = max(0, min(8 * q_eq, queue + draw.randrange(-2 * q_eq, 2 * q_eq) // 4))
        number, remote = draw.getrandbits(32), draw.choice((None, draw.randrange(64)))
        give(dut, {"in_valid": valid, "in_frame": frame, "in_queue": queue, "in_draw": number})
        give(dut, {"in_remote_valid": int(remote is not None), "in_remote": remote or 0})
        due = False
        if valid and under_way:
            since += frame
        elif valid:
            left -= frame
            due = left <= 0
        await FallingEdge(dut.clk)
        assert value(dut, "out_due") == int(due)
        if due:
            under_way, since, age = (queue, before, number, remote), 0, 0
            before = queue
            samples += 1
        if not under_way:
            continue
        at, earlier, thousandths, heard = under_way
        fb = at - q_eq + w_q * (at - earlier)
        degree = min(63, ceiling(63 * max(0, fb), q_eq * (2 * w_q + 1)))
        assert value(dut, "degree_valid") == int(age == 8), "eight clocks after the arrival"
        if age == 8:
            assert value(dut, "degree") == degree
            assert value(dut, "passed") == (degree if heard is None else ceiling((256 - w) * degree + w * heard, 256))
        if value(dut, "next_valid"):
            interval = max(1, sample // (degree // 8 + 1) * (850 + thousandths % 301) // 1000)
            assert value(dut, "next") == interval
            left, under_way = interval - since, None
            assert 120 < age < 145, "three divisions of 42 clocks"
        age += 1
    return samples


@cocotb.test
async def arrivals_in_each_clock_are_all_counted(dut: Any) -> None:
    for seed, settings in enumerate(((26_000, 2, 30_000, 128), (1, 0, 64, 0), (100_000, 64, 2_000_000, 256), (5_000, 1, 900, 77))):
        sample = settings[2]
        samples = await detector(dut, seed, settings)
        assert (1 if sample > 100_000 else 20) < samples < CLOCKS // 120, samples
