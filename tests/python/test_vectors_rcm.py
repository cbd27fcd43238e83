"""Test vectors of RCM, recomputed by an implementation that knows docs/dev/vectors-registers.md and nothing of the code."""

from __future__ import annotations

from collections import Counter
from math import ceil
from typing import Any

import pytest
from typer.testing import CliRunner

from fanin import vectors
from fanin.cli import app
from test_vectors import sequences

Row = dict[str, Any]
NOTHING = {"sampled": 0, "offset": 0, "delta": 0, "fb": 0, "degree": 0, "next": 0, "passed": 0, "turned": 0}


class Port:
    """The registers of one port, after docs/dev/vectors-registers.md."""

    def __init__(self, settings: Row) -> None:
        self.set = settings
        self.left, self.before = settings["sample"], 0
        self.whole = self.measured = self.congested = self.used = self.used_c = 0
        self.window = False

    def arrival(self, row: Row) -> Row:
        self.left -= row["frame"]
        if self.left > 0:
            return {}
        s, queue = self.set, row["queue"]
        offset, delta = queue - s["q_eq"], queue - self.before
        fb = offset + s["w_q"] * delta
        most = s["q_eq"] * (2 * s["w_q"] + 1)
        degree = min(63, -(-63 * max(0, fb) // most))
        mean = s["sample"] // (degree // 8 + 1)
        following = max(1, mean * (850 + row["draw"] % 301) // 1000)
        remote = row["remote"]
        passed = degree if remote < 0 else ceil(((256 - s["w"]) * degree + s["w"] * remote) / 256)
        self.left, self.before = following, queue
        return {"sampled": 1, "offset": offset, "delta": delta, "fb": fb, "degree": degree, "next": following, "passed": passed}

    def measure(self, row: Row) -> Row:
        s, total = self.set, row["harmful"] + row["others"]
        self.whole = min(max(total, s["window_min"]), s["window_max"])
        share = row["harmful"] * self.whole // total if total else self.whole
        self.measured = self.congested = min(max(share, s["max_frame"]), self.whole)
        self.used = self.used_c = 0
        self.window = True
        return {}

    def degree(self, row: Row) -> Row:
        start = self.congested if self.set["each"] else self.measured
        if self.window:
            self.congested = min(max(start - -(-start * row["given"] // 126), self.set["max_frame"]), self.whole)
        return {}

    def sent(self, row: Row) -> Row:
        if not self.window:
            return {}
        self.used += row["frame"]
        self.used_c += row["frame"] if row["share"] == 0 else 0
        if self.used < self.whole:
            return {}
        self.used = min(self.used - self.whole, self.whole - 1)
        self.used_c = self.beyond()
        return {"turned": 1}

    def over(self, _: Row) -> Row:
        if self.window:
            self.used, self.used_c = 0, self.beyond()
        return {}

    def beyond(self) -> int:
        return int(min(max(0, self.used_c - self.congested), min(self.set["max_frame"], self.congested) - 1))

    def step(self, row: Row) -> Row:
        took = [self.arrival, self.measure, self.degree, self.sent, self.over][row["event"]](row)
        state = {
            "whole": self.whole,
            "congested": self.congested,
            "used": self.used,
            "used_c": self.used_c,
            "open": int(not self.window or self.used_c < self.congested),
        }
        return NOTHING | state | took


def check(settings: Row, rows: list[Row]) -> Counter[str]:
    """Recompute a sequence; returns how often what happened."""
    port, done = Port(settings), Counter[str]()
    for i, row in enumerate(rows):
        assert row["step"] == i
        expected = port.step(row)
        assert {name: row[name] for name in expected} == expected, row
        done["sampled"] += row["sampled"]
        done["congested"] += row["degree"] > 0
        done["turned"] += row["turned"]
        done["closed"] += 1 - row["open"]
    return done


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"q_eq": "3KB", "w_q": 0, "w": 0.0, "sample": "64B"},
        {"q_eq": "100MB", "w_q": 64, "w": 1.0, "sample": "1GB", "seed": 7},
        {"decrease": "measured", "window_min": "3036B", "window_max": "3036B", "seed": 3},
        {"decrease": "measured", "w": 0.3, "window_max": "1GB", "max_frame": "64B"},
    ],
    ids=["default", "small", "large", "measured", "long"],
)
def test_an_independent_implementation_gives_every_row(params: dict[str, Any]) -> None:
    made = sequences(vectors.generate("rcm", params))
    assert len(made) == 7
    for _case, settings, rows in made:
        check(settings, rows)


def test_the_cases_reach_what_they_are_for() -> None:
    done = {case: check(settings, rows) for case, settings, rows in sequences(vectors.generate("rcm"))}
    for case in ("growth", "sizes", "remote", "random"):
        assert 0 < done[case]["congested"] < done[case]["sampled"], (case, done[case])
    for case, least in (("shares", 3), ("random", 3), ("degrees", 1)):
        assert done[case]["turned"] >= least, (case, done[case])
        assert done[case]["closed"] > 2, (case, done[case])
    rows = next(rows for case, _, rows in sequences(vectors.generate("rcm")) if case == "bounds")
    assert {row["whole"] for row in rows} >= {16_000, 58_000, 100_000}
    growth = next(rows for case, _, rows in sequences(vectors.generate("rcm")) if case == "growth")
    assert {row["degree"] for row in growth if row["sampled"]} >= {0, 63}


def test_an_implementation_that_is_wrong_by_little_is_found() -> None:
    settings, rows = sequences(vectors.generate("rcm", {"cases": ["random"]}))[0][1:]
    at = next(i for i, row in enumerate(rows) if row["sampled"] and row["whole"])
    for name in ("fb", "degree", "next", "passed", "whole", "congested", "used", "used_c", "open"):
        wrong = [dict(row) for row in rows]
        wrong[at][name] += 1
        with pytest.raises(AssertionError):
            check(settings, wrong)


def test_what_is_wrong_is_said() -> None:
    done = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["vectors", "rcm", "--case", "grwth", "--set", "w=1.5"])
    assert done.exit_code == 2
    assert "did you mean 'growth'" in done.stderr
    assert "w" in done.stderr
