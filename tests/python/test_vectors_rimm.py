"""Test vectors of RIMM, recomputed by an implementation that knows docs/dev/vectors-registers.md and nothing of the code."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from typer.testing import CliRunner

from fanin import vectors
from fanin.cli import app
from test_vectors import sequences

Row = dict[str, Any]
SEVERAL = 65_535


class Pair:
    """Sa, Sf and their clocks."""

    def __init__(self, start: int) -> None:
        self.sa = self.sf = start
        self.began = self.moved = self.needed = self.last = self.port = 0
        self.active = self.over = False

    def free(self, clock: int) -> None:
        self.sf, self.moved = (self.sf + 1) % 2**32, clock


class Switch:
    """The registers of one switch, after docs/dev/vectors-registers.md."""

    def __init__(self, settings: Row) -> None:
        self.set = settings
        ports = settings["neighbours"] + 1
        self.heard: list[int | None] = [None] * ports
        self.above, self.crossings, self.said = [0] * ports, [0] * ports, [0] * ports
        self.full, self.busy = [0] * ports, [0] * ports
        self.on, self.over, self.crossing, self.since = [0] * ports, [0] * ports, [0] * ports, [0] * ports
        self.pairs: dict[int, Pair] = {}

    def best(self, port: int, anyone: bool = False) -> int:
        usable = [
            (depth, other)
            for other, depth in enumerate(self.heard)
            if depth is not None and other != port and (anyone or (depth < self.set["room"] and not self.on[other]))
        ]
        return min(usable, default=(0, -1))[1]

    def egress(self, port: int, depth: int, clock: int) -> Row:
        above = int(depth >= self.set["alpha"])
        drained = self.full[port] and depth == 0
        if above != self.above[port] or drained:
            self.above[port] = above
            self.full[port] = int(not drained and bool(self.full[port] or above))
            self.crossings[port] = (self.crossings[port] + 1) % 2**16
        elif not above or (clock - self.said[port]) % 2**32 < self.set["repeat"]:
            return {}
        self.said[port] = clock
        way = self.best(port)
        if way < 0:
            way = self.best(port, anyone=True)
        return {"message": int(way >= 0), "way": way}

    def message(self, port: int, crossing: int, depth: int, clock: int) -> Row:
        ahead = (crossing - self.crossing[port]) % 2**16
        if 0 < ahead < 2**15:
            self.crossing[port] = crossing
            if ahead > 1:
                self.on[port] = 0
            on = int(depth >= self.set["alpha"])
            if on and not self.on[port]:
                self.since[port], self.over[port] = clock, 0
            self.on[port] = on
            self.busy[port] = int(on or (self.busy[port] and depth > 0))
        return {}

    def packet(self, row: Row) -> Row:
        port, clock = row["port"], row["clock"]
        if self.on[port] and (clock - self.since[port]) % 2**32 >= self.set["give_up"]:
            self.over[port] = 1
        alert = self.on[port] and not self.over[port]
        index = row["hash"] >> (32 - self.set["hash_bits"])
        pair = self.pairs.setdefault(index, Pair(self.set["start"]))
        given_up = self.ends(pair, bool(self.on[port] and self.over[port]), clock)
        if given_up:
            pair.sf, pair.active = pair.sa, False
        took = (self.new if row["event"] == 2 else self.back)(row, pair, bool(alert))
        return {"index": index, "sa": pair.sa, "sf": pair.sf, "given_up": int(given_up)} | took

    def ends(self, pair: Pair, congested: bool, clock: int) -> bool:
        out = pair.sa != pair.sf
        if self.set["flowlet"] and not out and (clock - pair.last) % 2**32 >= self.set["chi"]:
            pair.active = False
        if not out and not pair.active:
            return False
        ages = {name: (clock - getattr(pair, name)) % 2**32 for name in ("began", "moved", "needed")}
        if out and congested:
            pair.over = False
            return True
        if ages["began"] >= self.set["longest"]:
            pair.over = True
            return True
        waits = [ages["moved"]] if self.set["flowlet"] else [ages["moved"], ages["needed"]]
        if out and max(waits) >= self.set["give_up"]:
            pair.over = False
            return True
        return False

    def new(self, row: Row, pair: Pair, alert: bool) -> Row:
        clock = row["clock"]
        if not alert and pair.port not in (row["port"], SEVERAL):
            return {"action": 0}
        gap = (clock - pair.last) % 2**32
        pair.last = clock
        if self.busy[row["port"]]:
            pair.needed = clock
        if alert:
            wanted = not pair.over
        else:
            pair.over = False
            if self.set["flowlet"]:
                pair.active = wanted = pair.active and gap < self.set["chi"]
            else:
                wanted = pair.sa != pair.sf
        if not wanted:
            return {"action": 0}
        way = self.best(row["port"])
        if way < 0 or row["ttl"] < 8:
            return {"action": 6}
        if pair.sa == pair.sf:
            if not pair.active:
                pair.began = clock
            pair.moved, pair.port = clock, row["port"]
        elif pair.port != row["port"]:
            pair.port = SEVERAL
        attached, pair.sa, pair.active = pair.sa, (pair.sa + 1) % 2**32, bool(self.set["flowlet"])
        return {"action": 1, "way": way, "attached": attached, "sa": pair.sa}

    def back(self, row: Row, pair: Pair, alert: bool) -> Row:
        number, clock = row["number"], row["clock"]
        if self.busy[row["port"]]:
            pair.needed = clock
        if not alert:
            pair.over = False
        late = (number - pair.sf) % 2**32 >= (pair.sa - pair.sf) % 2**32
        if late and (not alert or pair.over):
            return {"action": 3}
        if not alert and number == pair.sf:
            pair.free(clock)
            return {"action": 2, "sf": pair.sf}
        way = self.best(row["port"])
        if way >= 0 and row["ttl"] >= 8:
            return {"action": 4, "way": way, "attached": number}
        if late:
            return {"action": 3}
        if number == pair.sf:
            pair.free(clock)
        return {"action": 5, "sf": pair.sf}

    def step(self, row: Row) -> Row:
        port = row["port"]
        if row["event"] > 0:
            self.heard[row["from"]] = row["heard"]
        if row["event"] == 0:
            took = self.egress(port, row["depth"], row["clock"])
        elif row["event"] == 1:
            took = self.message(port, row["crossing"], row["depth"], row["clock"])
        else:
            took = self.packet(row)
        nothing = {"index": 0, "sa": 0, "sf": 0, "given_up": 0, "message": 0, "action": 0, "way": -1, "attached": 0}
        registers = {"above": self.above[port], "crossings": self.crossings[port], "on": self.on[port], "over": self.over[port]}
        return nothing | registers | took


def check(settings: Row, rows: list[Row]) -> Counter[str]:
    """Recompute a sequence; returns how often what was done."""
    switch, done = Switch(settings), Counter[str]()
    for i, row in enumerate(rows):
        assert row["step"] == i
        expected = switch.step(row)
        assert {name: row[name] for name in expected} == expected, row
        if row["event"] > 1:
            done[f"action {row['action']}"] += 1
        done["message"] += row["message"]
        done["given_up"] += row["given_up"]
    return done


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"longest": "3us", "repeat": "2us"},
        {"neighbours": 1, "hash_bits": 0, "give_up": "30us", "chi": "3us"},
        {"neighbours": 40, "hash_bits": 16, "alpha": "3B", "room": "80B", "seed": 7},
        {"chi": "900ms", "give_up": "1s", "hash_bits": 3, "seed": 3},
    ],
    ids=["default", "short", "small", "large", "slow"],
)
def test_an_independent_implementation_gives_every_row(params: dict[str, Any]) -> None:
    made = sequences(vectors.generate("rimm", params))
    assert len(made) == 26
    for _case, settings, rows in made:
        check(settings, rows)


def test_the_cases_reach_what_they_are_for() -> None:
    done = {(case, settings["flowlet"]): check(settings, rows) for case, settings, rows in sequences(vectors.generate("rimm"))}
    for flowlet in (0, 1):
        assert done["detector", flowlet]["message"] > 10
        assert done["select", flowlet]["action 1"] > 80
        assert done["order", flowlet]["action 2"] > 30
        assert done["order", flowlet]["action 4"] > 30
        assert done["collide", flowlet]["action 2"] == done["collide", flowlet]["action 1"] > 60
        assert done["stall", flowlet]["given_up"] >= 1
        assert done["stall", flowlet]["action 2"] > 4
        assert done["last", flowlet]["given_up"] >= 1
        assert done["last", flowlet]["action 2"] > 20
        assert done["holes", flowlet]["given_up"] >= 3
        assert done["holes", flowlet]["action 3"] > 10
        assert done["congestion", flowlet]["given_up"] >= 2
        assert done["wrap", flowlet]["action 2"] >= 12
        assert done["hops", flowlet]["action 6"] >= 4
        assert done["hops", flowlet]["action 5"] >= 1
        assert all(done["random", flowlet][f"action {action}"] > 0 for action in range(7)), done["random", flowlet]
    assert done["gaps", 0] != done["gaps", 1]
    wrapped = [rows for case, _, rows in sequences(vectors.generate("rimm", {"cases": ["wrap"]}))]
    for rows in wrapped:
        assert any(a["clock"] > b["clock"] for a, b in pairwise(rows))
        assert any(row["sa"] < 100 for row in rows if row["event"] > 1)


def test_an_implementation_that_is_wrong_by_little_is_found() -> None:
    settings, rows = sequences(vectors.generate("rimm", {"cases": ["order"]}))[0][1:]
    at = next(i for i, row in enumerate(rows) if row["action"] == 2)
    for name in ("sa", "sf", "action", "on", "index", "way"):
        wrong = [dict(row) for row in rows]
        wrong[at][name] += 1
        with pytest.raises(AssertionError):
            check(settings, wrong)


def test_what_is_wrong_is_said() -> None:
    done = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["vectors", "rimm", "--case", "ordr", "--set", "hash_bits=17"])
    assert done.exit_code == 2
    assert "did you mean 'order'" in done.stderr
    assert "hash_bits" in done.stderr
