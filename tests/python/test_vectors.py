"""Test vectors, recomputed by an implementation that knows docs/dev/vectors-registers.md and nothing of the code."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import deque
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import fanin
from fanin import vectors
from fanin.cli import app

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "dev" / "vectors-registers.md"
GOLDEN = Path(__file__).parent / "golden" / "vectors-s-ecn-idle.csv"
ONE = 1 << 20
LONGEST = (1 << 24) - 1
Row = dict[str, Any]


class Registers:
    """S-ECN's register form, after docs/dev/vectors-registers.md."""

    def __init__(self, settings: Row) -> None:
        self.rate = settings["rate_bps"] * settings["clock_ps"] * ONE // (8 * 10**12)
        self.credit, self.reset = settings["credit"] * ONE, settings["reset"]
        self.last: int | None = None
        self.sum = 0

    def arrive(self, clocks: int, wire: int, ecn: int) -> Row:
        interval = LONGEST if self.last is None else min(clocks - self.last, LONGEST)
        self.last = clocks
        sendable = self.rate * interval
        growth = wire * ONE - sendable
        added = max(self.sum + growth, -self.credit)
        by_slope = growth > 0 and added > sendable
        if not by_slope:
            self.sum = added
        elif ecn == 0:
            self.sum = sendable
        else:
            self.sum = 0 if self.reset else min(added - sendable, sendable)
        return {
            "interval": interval,
            "sendable": sendable,
            "growth": growth,
            "added": added,
            "sum": self.sum,
            "by_slope": int(by_slope),
        }


NOTHING = dict.fromkeys(("interval", "sendable", "growth", "added", "sum", "by_slope"), 0)


def check(settings: Row, rows: list[Row]) -> int:
    """Recompute a sequence; returns how many packets are marked."""
    registers, owed, marks = Registers(settings), 0, 0
    assert settings["rate"] == registers.rate
    free = 0
    waiting: deque[tuple[int, Row]] = deque()
    for row in rows:
        assert row["wire"] == row["frame"] + 20
        assert row["clocks"] == row["time_ps"] // settings["clock_ps"]
        now = row["time_ps"]
        if row["departure"]:
            start, packet = waiting.popleft()
            assert (start, packet["packet"], packet["ecn"]) == (now, row["packet"], row["ecn"])
            expected = dict(NOTHING)
        else:
            while not settings["at_dequeue"] and waiting and waiting[0][0] <= now:
                waiting.popleft()
            expected = registers.arrive(row["clocks"], row["wire"], row["ecn"])
        queue = sum(packet["frame"] for _, packet in waiting)
        decided = row["departure"] == settings["at_dequeue"]
        by_k = int(decided and queue >= settings["k"])
        if settings["at_dequeue"]:
            owed += expected["by_slope"] and row["ecn"] != 0
            mark = int(row["departure"] and row["ecn"] != 0 and (owed > 0 or bool(by_k)))
            if row["departure"] and row["ecn"] != 0 and owed > 0:
                owed -= 1
        else:
            mark = int(row["ecn"] != 0 and (expected["by_slope"] or by_k))
        marks += mark
        expected |= {"queue": queue, "by_k": by_k, "owed": owed, "mark": mark}
        assert {name: row[name] for name in expected} == expected, row
        if not row["departure"]:
            start = max(free, now)
            free = start + -(-row["wire"] * 8 * 10**12 // settings["rate_bps"])
            waiting.append((start, row))
    return marks


def sequences(document: dict[str, Any]) -> list[tuple[str, Row, list[Row]]]:
    settings = [column["name"] for column in document["settings"]]
    columns = [column["name"] for column in document["columns"]]
    return [
        (s["case"], dict(zip(settings, s["settings"], strict=True)), [dict(zip(columns, row, strict=True)) for row in s["rows"]])
        for s in document["sequences"]
    ]


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"at": "dequeue"},
        {"registers": {"after_mark": "reset", "credit": "0B"}},
        {"registers": {"clock": "2.5ns", "credit": "65535B"}, "k": "3KB", "seed": 7},
    ],
    ids=["default", "dequeue", "reset", "clock"],
)
def test_an_independent_implementation_gives_every_row(params: dict[str, Any]) -> None:
    made = sequences(vectors.generate("s-ecn", params))
    assert len(made) == 90
    for case, settings, rows in made:
        marks = check(settings, rows)
        assert 0 < marks < len(rows), (case, settings)


def test_an_implementation_that_is_wrong_by_little_is_found() -> None:
    settings, rows = sequences(vectors.generate("s-ecn", {"cases": ["slopes"], "rates": ["10Gbps"]}))[0][1:]
    for name, change in (("sum", 1), ("mark", 1), ("queue", 1518), ("interval", -1)):
        wrong = [dict(row) for row in rows]
        wrong[40][name] += change if name != "mark" else 1 - 2 * wrong[40]["mark"]
        with pytest.raises(AssertionError):
            check(settings, wrong)


def test_the_golden_file() -> None:
    """Judged by `check`, and by hand in docs/dev/vectors-registers.md for the arithmetic."""
    with GOLDEN.open(newline="") as file:
        golden = [{name: value if name == "case" else int(value) for name, value in row.items()} for row in csv.DictReader(file)]
    made = list(vectors.rows(vectors.generate("s-ecn", {"cases": ["idle"], "rates": ["1Gbps"]})))
    assert made == golden
    check(golden[0], golden)


def test_the_seed_moves_the_random_cases_and_no_other() -> None:
    one, two = (sequences(vectors.generate("s-ecn", {"rates": ["1Gbps"], "seed": seed})) for seed in (1, 2))
    moved = {case for (case, _, rows), (_, _, others) in zip(one, two, strict=True) if rows != others}
    assert moved == {"sizes", "random"}


def documented(section: str) -> dict[str, tuple[str, int, bool]]:
    """Columns and settings that a section of the page describes: role, bits, signed."""
    return {
        name: (role, bits, signed)
        for line in section.splitlines()
        for cells in [[cell.strip() for cell in line.strip("|").split("|")]]
        if line.startswith("| `") and len(cells) == 5
        for role, bits, signed in [(cells[1], int(cells[2].split(",")[0]), "signed" in cells[2])]
        for name in re.findall(r"`(\w+)`", cells[0])
    }


@pytest.mark.parametrize(("name", "params"), [("s-ecn", {"rates": ["1Gbps"]}), ("rcm", {}), ("rimm", {}), ("pdn", {})])
def test_the_page_has_every_column_and_case(name: str, params: dict[str, Any]) -> None:
    section = PAGE.read_text(encoding="utf-8").split(f"## {name}")[1].split("\n## ")[0]
    document = vectors.generate(name, params)
    there = {c["name"]: (c["role"], c["bits"], c["signed"]) for c in (*document["settings"], *document["columns"])}
    assert documented(section) == there
    for case in document["cases"]:
        assert f"| `{case['case']}` |" in section


def test_the_page_has_the_example() -> None:
    page = PAGE.read_text(encoding="utf-8").split("## s-ecn")[1].split("\n## ")[0]
    document = vectors.generate("s-ecn", {"rates": ["1Gbps"]})
    by_hand = [
        [int(cell.replace("−", "-")) for cell in line.strip("|").split("|")[:6]]
        for line in page.replace("\u2212", "-").splitlines()
        if re.match(r"\| 1\d\d \|", line)
    ]
    rows = next(rows for case, _, rows in sequences(document) if case == "slopes")
    assert len(by_hand) == 9
    for packet, interval, growth, added, total, mark in by_hand:
        row = rows[packet]
        assert (row["interval"], row["growth"], row["added"]) == (interval, growth * ONE, added * ONE)
        assert (row["sum"], row["mark"]) == (total * ONE, mark)


def test_both_forms_say_the_same(tmp_path: Path) -> None:
    call = ["vectors", "s-ecn", "--case", "pairs", "--rate", "10Gbps", "--clock", "4ns", "--set", "at=dequeue"]
    runner = CliRunner()
    assert runner.invoke(app, [*call, "-o", str(tmp_path / "v.csv")]).exit_code == 0
    for name in ("v.parquet", "v"):
        done = runner.invoke(app, [*call, "-o", str(tmp_path / name)])
        expected = f"error: --out {tmp_path / name}: cannot be written; names that end in .json and .csv are\n"
        assert (done.exit_code, done.stderr) == (2, expected)
    assert runner.invoke(app, [*call, "-o", str(tmp_path / "v"), "--format", "csv"]).exit_code == 0
    assert (tmp_path / "v").read_bytes() == (tmp_path / "v.csv").read_bytes()
    printed = runner.invoke(app, call)
    assert printed.exit_code == 0
    document = json.loads(printed.stdout)
    assert document["schema"] == "vectors/1"
    rows = list(csv.DictReader(io.StringIO((tmp_path / "v.csv").read_text())))
    assert [{name: str(value) for name, value in row.items()} for row in vectors.rows(document)] == rows
    assert rows[0]["clock_ps"] == "4000"
    assert rows[0]["at_dequeue"] == "1"


def test_what_is_wrong_is_said_with_path_and_what_is_accepted() -> None:
    call = ["vectors", "s-ecn", "--case", "pair", "--rate", "1Mbps", "--set", "registers.clok=8ns"]
    done = CliRunner(env={"COLUMNS": "200"}).invoke(app, call)
    assert done.exit_code == 2
    assert "did you mean 'pairs'" in done.stderr
    assert "from 10Mbps to" in done.stderr
    assert "registers.clok" in done.stderr
    assert "did you mean 'clock'" in done.stderr
    with pytest.raises(fanin.ScenarioError, match="did you mean 's-ecn'"):
        vectors.generate("secn")
    clash = CliRunner().invoke(app, ["vectors", "s-ecn", "--set", "registers=1", "--set", "registers.clock=8ns"])
    assert clash.exit_code == 2
