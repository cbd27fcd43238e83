"""Test vectors of PDN, recomputed by an implementation that knows docs/dev/vectors-registers.md and nothing of the code."""

from __future__ import annotations

from collections import Counter, deque
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fanin import vectors
from fanin.cli import app
from test_vectors import sequences

Row = dict[str, Any]
SENT = ("sent_number", "sent_length", "sent_type", "sent_operation", "sent_ttl")


class Port:
    """The notification queue of one port, after docs/dev/vectors-registers.md."""

    def __init__(self, settings: Row) -> None:
        self.set = settings
        self.queue: deque[tuple[int, ...]] = deque()
        self.peak = 0

    def put(self, row: Row, operation: int, ttl: int) -> int:
        if not self.set["aware"]:
            return 4
        if len(self.queue) >= self.set["room"] // self.set["each"]:
            return 2
        self.queue.append((row["number"], row["length"], self.set["type"], operation, ttl))
        self.peak = max(self.peak, len(self.queue))
        return 1

    def step(self, row: Row) -> Row:
        fate = sends = size = 0
        sent: tuple[int, ...] = (0,) * 5
        match row["event"]:
            case 0:
                notified = row["congestion"] and (row["part"] == 1 or (row["part"] == 2 and self.set["acks"]))
                operation = 3 if row["part"] == 2 else 1 if self.set["halve"] else 2
                fate = self.put(row, operation, self.set["first_ttl"]) if notified else 0
            case 1:
                fate = 3 if row["ttl"] <= 1 else self.put(row, row["given"], row["ttl"] - 1)
            case 2:
                size = row["frame"]
                if self.queue and size + self.set["each"] <= self.set["max_frame"]:
                    sends, size, sent = 1, size + self.set["each"], self.queue.popleft()
            case 3 if self.queue and not row["data"]:
                sends, size, sent = 2, self.set["empty"], self.queue.popleft()
        kept = {"waiting": len(self.queue), "peak": self.peak}
        return {"fate": fate, "sends": sends, "size": size, **kept, **dict(zip(SENT, sent, strict=True))}


def check(settings: Row, rows: list[Row]) -> Counter[tuple[int, int, int]]:
    """Recompute a sequence; returns how often what happened."""
    port, done = Port(settings), Counter[tuple[int, int, int]]()
    for i, row in enumerate(rows):
        assert row["step"] == i
        expected = port.step(row)
        assert {name: row[name] for name in expected} == expected, row
        done[row["event"], row["fate"], row["sends"]] += 1
    return done


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"queue": "44B", "max_frame": "128B", "ttl": 2, "acks": False},
        {"operation": "retransmit", "queue": "2KB", "seed": 7},
        {"max_frame": "65535B", "ttl": 255, "seed": 3},
    ],
    ids=["default", "small", "retransmit", "large"],
)
def test_an_independent_implementation_gives_every_row(params: dict[str, Any]) -> None:
    made = sequences(vectors.generate("pdn", params))
    assert len(made) == 16
    done = sum((check(settings, rows) for _, settings, rows in made), Counter[tuple[int, int, int]]())
    least = {(0, 1, 0): 150, (0, 2, 0): 18, (1, 3, 0): 80, (0, 4, 0): 40, (2, 0, 1): 40, (3, 0, 2): 60, (3, 0, 0): 100}
    assert {key: done[key] for key in least if done[key] < least[key]} == {}


def test_each_case_reaches_what_it_is_for() -> None:
    done = Counter[tuple[str, int, int, int]]()
    for case, settings, rows in sequences(vectors.generate("pdn")):
        for key, count in check(settings, rows).items():
            done[(case, *key)] += count
    assert (done["drops", 0, 1, 0], done["drops", 0, 0, 0]) == (32, 64), "data and acknowledgments for want of room, of six"
    assert (done["hurry", 3, 0, 2], done["hurry", 3, 0, 0]) == (120, 120)
    assert (done["hops", 1, 3, 0], done["hops", 1, 1, 0]) == (4, 508), "0 and 1 expire"
    assert (done["bounds", 0, 1, 0], done["bounds", 0, 2, 0]) == (3 * (10 + 4), 3 * (3 + 3)), "200 B hold ten, or four"
    assert done["priority", 2, 0, 1] > 80
    assert done["priority", 2, 0, 0] > 30, "full frames have no room"
    assert done["unaware", 0, 4, 0] == 40
    assert done["attach", 2, 0, 0] > done["attach", 2, 0, 1] > 20


def test_an_implementation_that_is_wrong_by_little_is_found() -> None:
    made = sequences(vectors.generate("pdn"))
    for key, change in (("each", 1), ("max_frame", -1), ("room", -1), ("halve", -1), ("acks", -1), ("first_ttl", 1), ("empty", 1)):
        with pytest.raises(AssertionError):
            for _, settings, rows in made:
                check(settings | {key: settings[key] + change}, rows)


def test_the_command_takes_its_parameters(tmp_path: Path) -> None:
    out = tmp_path / "v.csv"
    done = CliRunner().invoke(app, ["vectors", "pdn", "--case", "bounds", "--set", "queue=60B", "-o", str(out)])
    assert done.exit_code == 0
    assert out.read_text(encoding="utf-8").splitlines()[1].startswith("bounds,60,20,1,1518,64,1,1,64,1,0,0,")
    wrong = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["vectors", "pdn", "--set", "queue=20B", "--case", "hury"])
    assert (wrong.exit_code, "did you mean 'hurry'" in wrong.stderr, "44B" in wrong.stderr) == (2, True, True)
