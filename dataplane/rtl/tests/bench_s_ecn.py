"""S-ECN's marker with the counter that hardware has: random traffic and directed cases against a model in whole numbers.

The vectors, with all registers, are run by conform_s_ecn.sv. Here the counter is one bit wider than the interval and wraps.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from typing import Any

import cocotb
from bench import reset, run, start

FRACTION = 20
INTERVAL_W, PORTS = int(os.environ["INTERVAL_W"]), int(os.environ["PORTS"])
LONGEST = (1 << INTERVAL_W) - 1
WRAP = 1 << (INTERVAL_W + 1)
LATENCY = 6
IDLE = {
    "in_port": 0,
    "dep_port": 0,
    "in_valid": 0,
    "in_length": 0,
    "in_ect": 0,
    "in_queue": 0,
    "dep_valid": 0,
    "dep_ect": 0,
    "dep_queue": 0,
    "now": 0,
}
RATE = 125 << FRACTION
"""1 Gb/s at 1 us; 125 B in a clock."""


@dataclass
class Model:
    """After docs/dev/vectors-registers.md."""

    rate: int
    credit: int
    k: int
    reset: int = 0
    at_dequeue: int = 0
    last: int | None = None
    sum: int = 0
    owed: int = 0

    def arrive(self, clock: int, length: int, ect: int, queue: int) -> dict[str, int]:
        interval = LONGEST if self.last is None else min(clock - self.last, LONGEST)
        self.last = clock
        sendable = self.rate * interval
        growth = (length << FRACTION) - sendable
        added = max(self.sum + growth, -self.credit << FRACTION)
        by_slope = growth > 0 and added > sendable
        if not by_slope:
            self.sum = added
        elif not ect:
            self.sum = sendable
        else:
            self.sum = 0 if self.reset else min(added - sendable, sendable)
        by_k = not self.at_dequeue and queue >= self.k
        self.owed += bool(self.at_dequeue and by_slope and ect)
        return {
            "out_by_slope": by_slope,
            "out_mark": bool(not self.at_dequeue and ect and (by_slope or by_k)),
            "show_interval": interval,
        }

    def depart(self, ect: int, queue: int) -> dict[str, int]:
        by_k = bool(self.at_dequeue and queue >= self.k)
        mark = bool(self.at_dequeue and ect and (self.owed > 0 or by_k))
        self.owed -= bool(self.at_dequeue and ect and self.owed > 0)
        return {"dep_out_mark": mark, "dep_out_by_k": by_k}

    def settings(self) -> dict[str, int]:
        return {
            "rate": self.rate,
            "credit": self.credit,
            "k": self.k,
            "reset_sum": self.reset,
            "at_dequeue": self.at_dequeue,
        }


def clocks(gaps: list[int], packets: list[tuple[int, int, int]]) -> list[dict[str, int]]:
    """Inputs of every clock: a packet (length, ect, queue) after each gap, and nothing between them."""
    made, now = [], 0
    for gap, (length, ect, queue) in zip(gaps, packets, strict=True):
        for _ in range(gap - 1):
            now += 1
            made.append({"now": now % WRAP, "in_valid": 0})
        now += 1
        made.append({"now": now % WRAP, "in_valid": 1, "in_length": length, "in_ect": ect, "in_queue": queue})
    return made


async def compare(dut: Any, model: Model, gaps: list[int], packets: list[tuple[int, int, int]]) -> list[dict[str, int]]:
    await reset(dut, model.settings(), IDLE)
    names = ["out_by_slope", "out_mark", "show_interval"]
    found = await run(dut, clocks(gaps, packets), LATENCY, "out_valid", names)
    now, expected = 0, []
    for gap, (length, ect, queue) in zip(gaps, packets, strict=True):
        now += gap
        expected.append(model.arrive(now, length, ect, queue))
    assert len(found) == len(expected)
    for i, (mine, wanted) in enumerate(zip(found, expected, strict=True)):
        assert mine == wanted, (i, gaps[i], packets[i], mine, wanted)
    return found


@cocotb.test()
async def every_clock_takes_a_packet(dut: Any) -> None:
    """Without a gap between packets, at one and a half times the rate and at twice: R*I is 125 B."""
    model = Model(RATE, 1538, 1 << 30)
    await start(dut, model.settings(), IDLE)
    for length, share in ((188, 0.5), (250, 1.0), (125, 0.0)):
        found = await compare(dut, Model(RATE, 1538, 1 << 30), [1] * 400, [(length, 1, 0)] * 400)
        marks = sum(f["out_mark"] for f in found)
        assert abs(marks / 400 - share) < 0.08, (length, marks)


@cocotb.test()
async def intervals_saturate_and_the_counter_wraps(dut: Any) -> None:
    """Gaps around the longest interval, the counter's period and multiples of both."""
    await start(dut, Model(RATE, 1538, 1 << 30).settings(), IDLE)
    edges = [n + d for n in (LONGEST, WRAP, 2 * WRAP, WRAP + LONGEST, 3 * WRAP) for d in (-1, 0, 1)]
    gaps = [1] + [gap for edge in edges for gap in (edge, 1, 1, 3)]
    found = await compare(dut, Model(RATE, 1538, 1 << 30), gaps, [(1538, 1, 0)] * len(gaps))
    saturated = [f["show_interval"] == LONGEST for f in found]
    assert saturated == [i == 0 or gap >= LONGEST for i, gap in enumerate(gaps)], "the first one has no arrival before it"
    assert saturated.count(True) == 15


@cocotb.test()
async def random_traffic(dut: Any) -> None:
    """Sizes, gaps, codepoints, queues and settings at random."""
    rng = random.Random(35)
    await start(dut, Model(RATE, 0, 1).settings(), IDLE)
    marks = packets = 0
    for _ in range(int(os.environ.get("ROUNDS", "8"))):
        rate = rng.choice([RATE, RATE >> 3, RATE * 7, rng.randrange(1, 1 << 32)])
        model = Model(rate, rng.choice([0, 1538, 65_535]), rng.choice([1, 20_000, 1 << 31]), rng.randrange(2))
        scale = max(1, (1538 << FRACTION) // rate)
        gaps = [rng.choice([1, 1, rng.randint(1, 2 * scale), rng.randint(1, 20)]) for _ in range(300)]
        gaps[::60] = [LONGEST + rng.randint(-3, 3) for _ in gaps[::60]]
        given = [
            (rng.choice([84, 596, 1538, 9038, 65_535, rng.randrange(65_536)]), rng.randrange(4) > 0, rng.randrange(40_000))
            for _ in gaps
        ]
        found = await compare(dut, model, gaps, given)
        marks += sum(f["out_mark"] for f in found)
        packets += len(found)
    assert 0.1 < marks / packets < 0.9, (marks, packets)


@cocotb.test()
async def arrivals_and_departures_share_a_clock(dut: Any) -> None:
    """At dequeue: both in the same clocks; every mark that is earned is given, the departure of a clock before its arrival."""
    rng = random.Random(53)
    model = Model(RATE, 1538, 30_000, 0, 1)
    await start(dut, model.settings(), IDLE)
    inputs, expected = [], []
    for clock in range(1, 3_000):
        arrives, departs = rng.randrange(8) == 0, rng.randrange(6) == 0
        length, ect, queue = rng.choice([84, 1538, 1538, 9038]), rng.randrange(5) > 0, rng.randrange(31_000)
        left, left_ect = rng.randrange(31_000), rng.randrange(5) > 0
        one = {"now": clock % WRAP, "in_valid": arrives, "in_length": length, "in_ect": ect, "in_queue": queue}
        inputs.append(one | {"dep_valid": departs, "dep_ect": left_ect, "dep_queue": left})
        if departs:
            expected.append(model.depart(left_ect, left))
        if arrives:
            model.arrive(clock, length, ect, queue)
    found = await run(dut, inputs, LATENCY, "dep_out_valid", ["dep_out_mark", "dep_out_by_k"])
    assert found == expected
    assert sum(f["dep_out_mark"] for f in found) > 100
    assert sum(f["dep_out_by_k"] for f in found) > 5


@cocotb.test()
async def ports_share_a_marker(dut: Any) -> None:
    """Arrivals and departures of any ports, clock by clock: each port is as if it had the marker alone."""
    rng = random.Random(4)
    await start(dut, Model(RATE, 1538, 30_000).settings(), IDLE)
    for at_dequeue in (0, 1):
        models = [Model(RATE >> 2, 1538, 30_000, 0, at_dequeue) for _ in range(PORTS)]
        await reset(dut, models[0].settings(), IDLE)
        inputs, arrivals, departures = [], [], []
        for clock in range(1, 16 * LONGEST):
            # Ports have busy and idle times of their own, beyond the longest interval and the counter's period.
            awake = [p for p in range(PORTS) if clock // (3 * LONGEST // 2 * (p + 1)) % (p + 2) != 1]
            i = {"now": clock % WRAP, "in_valid": int(bool(awake) and rng.randrange(3) > 0), "dep_valid": rng.randrange(2)}
            i |= {
                "in_port": rng.choice(awake or [0]),
                "in_length": rng.choice([84, 1538, 9038]),
                "in_ect": int(rng.randrange(5) > 0),
            }
            i |= {"in_queue": rng.randrange(31_000), "dep_port": rng.randrange(PORTS), "dep_ect": int(rng.randrange(5) > 0)}
            i |= {"dep_queue": rng.randrange(31_000)}
            inputs.append(i)
            if i["dep_valid"]:
                departures.append(models[i["dep_port"]].depart(i["dep_ect"], i["dep_queue"]))
            if i["in_valid"]:
                arrivals.append(models[i["in_port"]].arrive(clock, i["in_length"], i["in_ect"], i["in_queue"]))
        names = ["out_valid", "out_by_slope", "out_mark", "show_interval", "dep_out_valid", "dep_out_mark", "dep_out_by_k"]
        found = await run(dut, inputs, LATENCY, None, names)
        assert [{n: f[n] for n in ("out_by_slope", "out_mark", "show_interval")} for f in found if f["out_valid"]] == arrivals
        assert [{n: f[n] for n in ("dep_out_mark", "dep_out_by_k")} for f in found if f["dep_out_valid"]] == departures
        assert sum(f["show_interval"] == LONGEST for f in found if f["out_valid"]) > PORTS, "idle ports"
        marks = sum(f["out_mark"] or f["dep_out_mark"] for f in found)
        assert 0.05 < marks / len(inputs) < 0.6, marks
