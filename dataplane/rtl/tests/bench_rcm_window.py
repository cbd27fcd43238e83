"""RCM's window at line rate: a frame sent in each clock, while windows and reductions are being computed."""

from __future__ import annotations

import random
from typing import Any

import cocotb
from bench import give, reset, start, value
from cocotb.triggers import FallingEdge

CLOCKS = 6_000
SIZES = (64, 576, 1518, 9018)


def ceiling(n: int, d: int) -> int:
    return -(-n // d)


class Window:
    """After docs/dev/vectors-registers.md, clock by clock."""

    def __init__(self, least: int, most: int, frame: int, each: int) -> None:
        self.least, self.most, self.frame, self.each = least, most, frame, each
        self.whole = self.congested = self.measured = self.used = self.used_c = 0
        self.has = False

    def bounded(self, value: int) -> int:
        return max(1, min(max(value, self.frame), self.whole))

    def next(self) -> None:
        self.used_c = max(0, min(self.used_c - self.congested, min(self.frame, self.congested) - 1))

    def sent(self, frame: int, congested: bool) -> bool:
        self.used += frame
        self.used_c += frame * congested
        if self.used < self.whole:
            return False
        self.used = min(self.used - self.whole, self.whole - 1)
        self.next()
        return True


@cocotb.test
async def frames_in_each_clock_count_while_the_divider_is_at_work(dut: Any) -> None:
    draw = random.Random(5)
    idle = {"measure": 0, "reduce": 0, "sent": 0, "over": 0, "in_frame": 0, "in_congested": 0}
    idle |= {"in_harmful": 0, "in_others": 0, "in_degree": 0}
    for run, (least, most, frame, each) in enumerate(((16_000, 100_000, 1518, 1), (128, 5_000, 9018, 0), (64, 10**9, 64, 1))):
        settings = {"window_min": least, "window_max": most, "max_frame": frame, "each": each}
        await (start if run == 0 else reset)(dut, settings, idle)
        model, job, turns, reduced = Window(least, most, frame, each), None, 0, 0
        for _ in range(CLOCKS // 2):
            kind, size, congested = draw.choice(("sent", "sent", "sent", "over", "")), draw.choice(SIZES), draw.random() < 0.5
            give(dut, idle | {"in_frame": size, "in_congested": int(congested)})
            if kind == "over" and draw.random() < 0.9:
                kind = "sent"
            if kind:
                getattr(dut, kind).value = 1
            turned = False
            if model.has and kind == "sent":
                turned = model.sent(size, congested)
            elif model.has and kind == "over":
                model.used = 0
                model.next()
            if job is None and draw.random() < 0.1:
                if not model.has or draw.random() < 0.2:
                    harmful, others = (draw.choice((0, draw.randrange(most), draw.getrandbits(32))) for _ in range(2))
                    give(dut, {"measure": 1, "in_harmful": harmful, "in_others": others})
                    model.whole = max(1, min(max(harmful + others, least), most))
                    share = harmful * model.whole // (harmful + others) if harmful + others else model.whole
                    job = ("measure", share)
                else:
                    degree = draw.randrange(64)
                    give(dut, {"reduce": 1, "in_degree": degree})
                    base = model.congested if each else model.measured
                    job = ("reduce", base - ceiling(base * degree, 126))
                    reduced += 1
            await FallingEdge(dut.clk)
            if value(dut, "ready"):
                assert job is not None
                model.congested = model.bounded(job[1])
                if job[0] == "measure":
                    model.has, model.measured, model.used, model.used_c = True, model.congested, 0, 0
                job = None
            assert value(dut, "busy") == int(job is not None)
            names = ("whole", "congested", "used", "used_c", "turned", "open")
            is_open = int(not model.has or model.used_c < model.congested)
            expected = [model.whole, model.congested, model.used, model.used_c, int(turned), is_open]
            assert [value(dut, name) for name in names] == expected
            turns += turned
        assert reduced > 20, reduced
        assert turns > (0 if most > 10**6 else 30), turns
