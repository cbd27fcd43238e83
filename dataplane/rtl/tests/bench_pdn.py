"""PDN's attacher with a notification that comes and one that leaves in the same clock, against a queue in Python."""

from __future__ import annotations

import os
import random
from collections import deque
from typing import Any

import cocotb
from bench import reset, run, start

DEPTH, ADDRESS_W = int(os.environ["DEPTH"]), int(os.environ["ADDRESS_W"])
SETTINGS = {
    "each": ADDRESS_W // 8 + 8,
    "kind": 1 if ADDRESS_W == 96 else 2,
    "max_frame": 1518,
    "empty": 64,
    "acks": 1,
    "halve": 1,
    "first_ttl": 64,
}
IDLE = dict.fromkeys(("in_valid", "in_dropped", "in_congestion", "in_part", "in_address", "in_number"), 0)
IDLE |= {"in_length": 0, "in_operation": 0, "in_ttl": 0}
IDLE |= {"dep_valid": 0, "dep_free": 0, "dep_frame": 0, "dep_data": 0}
SENT = ["sent_sends", "sent_size", "sent_address", "sent_number", "sent_length", "sent_type", "sent_operation", "sent_ttl"]
NAMES = ["out_valid", "out_fate", "sent_valid", *SENT, "waiting", "peak"]


class Model:
    def __init__(self, settings: dict[str, int]) -> None:
        self.set = settings
        self.queue: deque[list[int]] = deque()
        self.peak = 0

    def clock(self, i: dict[str, int]) -> dict[str, int]:
        s, sends, size, sent = self.set, 0, 0, [0] * 6
        if i["dep_valid"] and not i["dep_free"]:
            size = i["dep_frame"]
            if self.queue and size + s["each"] <= s["max_frame"]:
                sends, size, sent = 1, size + s["each"], self.queue.popleft()
        elif i["dep_valid"] and self.queue and not i["dep_data"]:
            sends, size, sent = 2, s["empty"], self.queue.popleft()
        fate = 0
        if i["in_valid"]:
            operation, ttl = i["in_operation"], i["in_ttl"] - 1
            due = ttl > 0
            fate = 0 if due else 3
            if i["in_dropped"]:
                due = bool(i["in_congestion"] and (i["in_part"] == 1 or (i["in_part"] == 2 and s["acks"])))
                operation, ttl, fate = 3 if i["in_part"] == 2 else 1 if s["halve"] else 2, s["first_ttl"], 0
            if due:
                fate = 4 if not s["aware"] else 2 if len(self.queue) >= s["most"] else 1
            if fate == 1:
                self.queue.append([i["in_address"], i["in_number"], i["in_length"], s["kind"], operation, ttl])
        self.peak = max(self.peak, len(self.queue))
        answer = {"out_valid": i["in_valid"], "out_fate": fate, "sent_valid": i["dep_valid"]}
        answer |= dict(zip(SENT, [sends, size, *sent], strict=True))
        return answer | {"waiting": len(self.queue), "peak": self.peak}


@cocotb.test()
async def one_comes_and_one_leaves_in_each_clock(dut: Any) -> None:
    rng = random.Random(20)
    await start(dut, SETTINGS | {"most": 1, "aware": 1}, IDLE)
    met = set()
    for most, aware in ((DEPTH, 1), (DEPTH - 1, 1), (1, 1), (0, 1), (DEPTH, 0)):
        settings = SETTINGS | {"most": most, "aware": aware, "acks": rng.randrange(2), "halve": rng.randrange(2)}
        await reset(dut, settings, IDLE)
        model, inputs = Model(settings), []
        for clock in range(600):
            fill = clock // 100 % 2 == 0
            i = {
                "in_valid": rng.randrange(4) < (3 if fill else 1),
                "in_dropped": rng.randrange(2),
                "in_congestion": rng.randrange(5) > 0,
            }
            i |= {"in_part": rng.randrange(3), "in_address": rng.getrandbits(ADDRESS_W), "in_number": rng.getrandbits(32)}
            i |= {"in_length": rng.getrandbits(16), "in_operation": rng.randrange(1, 4), "in_ttl": rng.choice([0, 1, 2, 255])}
            i |= {"dep_valid": rng.randrange(4) < (1 if fill else 3), "dep_free": rng.randrange(2), "dep_data": rng.randrange(2)}
            i["dep_frame"] = rng.choice([64, 1518 - settings["each"], 1519 - settings["each"], 32_768 + 64, 65_535])
            inputs.append({name: int(value) for name, value in i.items()})
        expected = [model.clock(i) for i in inputs]
        found = await run(dut, inputs, 0, None, NAMES)
        assert len(found) == len(expected)
        for clock, (mine, wanted) in enumerate(zip(found, expected, strict=True)):
            assert mine == wanted, (clock, most, aware, mine, wanted)
            met.add((wanted["out_fate"], wanted["sent_sends"]))
    assert {(1, 1), (1, 2), (1, 0), (2, 0), (3, 1), (4, 0)} <= met
