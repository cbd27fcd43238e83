"""Two analyses beside each other: numbers by hand, intervals by simulation, and what makes them hard to compare."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import fanin
from fanin.analysis import change
from fanin.cli import app

CAPTURES = Path(__file__).parents[2] / "examples" / "captures"
MS = 10**9


def port(starts: list[int], length: int = 1_000 * MS, **more: Any) -> dict[str, Any]:
    """Return the report of a port with bursts of 1 ms and 100 KB at these times."""
    bursts = [{"start_ps": at, "duration_ps": MS, "peak_bytes": 100_000} for at in sorted(starts)]
    made = {"port": "p", "records": 10_000, "first_ps": 0, "last_ps": length, "rate_bps": 10**10, "peak_bytes": 100_000}
    made |= {"bursts": bursts, "bursts_found": len(bursts), "bursts_left_out": 0, "burst_ps": MS * len(bursts)}
    return made | {"dropped": 0, "marked": None, "detect": {"words": "queue above 1 KB"}} | more


def report(*ports: dict[str, Any], **settings: Any) -> dict[str, Any]:
    made = {
        "schema": "analysis/1",
        "settings": {"above_bytes": 1_000, **settings},
        "ports": list(ports),
        "pair": None,
        "transfers": None,
    }
    return made | {"plausibility": {"trust": "good", "words": "nothing contradicts"}, "sources": [{"path": "t.csv"}]}


def row(found: change.AnalysisChange, what: str, unit: str) -> change.Row:
    [only] = [row for row in found.rows if (row.what, row.unit) == (what, unit)]
    return only


def test_numbers_are_those_of_the_reports_and_shares_differ_by_points() -> None:
    few = report(port([i * 25 * MS for i in range(40)], dropped=500))
    fewer = report(port([i * 50 * MS for i in range(40)], 2_000 * MS, dropped=100))
    found = change.between(few, fewer)
    assert (row(found, "bursts", "count").before, row(found, "bursts", "per_s").after) == (40, 20.0)
    assert row(found, "bursts", "per_s").change == pytest.approx(-0.5)
    dropped = row(found, "packets dropped", "share")
    assert (dropped.before, dropped.after) == (0.05, 0.01)
    assert dropped.change == pytest.approx(-0.04)
    assert ["packets dropped", "5 %", "1 %", "-4 points", "–"] in found.tables()[0][1][1]
    assert not [row for row in found.rows if row.what == "packets marked"], "neither trace tells"
    assert found.warnings == []
    halved = (
        "p: bursts 40 /s before, 20 /s after (more than its spread); time in bursts 4 % before, 2 % after (more than its spread)"
    )
    assert found.answer == f"{halved}; packets dropped 5 % before, 1 % after."


def test_time_in_bursts_is_a_share_of_the_time_that_is_known() -> None:
    starts = [i * 10 * MS for i in range(6)]
    found = change.between(report(port(starts, 59 * MS, unknown_ps=52 * MS)), report(port(starts, 59 * MS, unknown_ps=59 * MS)))
    shares = row(found, "time in bursts", "share")
    assert (shares.before, shares.after) == (6 / 7, None)


def test_zero_before_has_no_ratio() -> None:
    found = change.between(report(port([], dropped=0)), report(port([MS], dropped=7)))
    drops = row(found, "drops", "count")
    assert (drops.before, drops.after, drops.change) == (0, 7, None)


def covered(rng: np.random.Generator, rates: tuple[float, float], bunches: int) -> bool | None:
    """Return True where the interval has the true difference of two rates of bursts, which come in bunches."""

    def times(rate: float) -> list[int]:
        middles = rng.uniform(0, 1_000 * MS, rng.poisson(rate / bunches))
        spread = np.repeat(middles, bunches) + rng.uniform(0, 5 * MS, len(middles) * bunches)
        return [int(at) for at in spread if at < 1_000 * MS]

    rate = row(change.between(report(port(times(rates[0]))), report(port(times(rates[1])))), "bursts", "per_s")
    if rate.low is None or rate.high is None:
        return None
    return rate.low <= rates[1] - rates[0] <= rate.high


@pytest.mark.parametrize(("rates", "bunches"), [((200.0, 200.0), 1), ((200.0, 100.0), 1), ((300.0, 200.0), 5)])
def test_intervals_hold_also_where_bursts_come_in_bunches(rates: tuple[float, float], bunches: int) -> None:
    rng = np.random.default_rng(7)
    found = [covered(rng, rates, bunches) for _ in range(400)]
    known = [held for held in found if held is not None]
    assert len(known) > 390
    assert 0.92 < np.mean(known) < 0.98


def test_few_bursts_have_no_interval() -> None:
    found = change.between(report(port([i * MS for i in range(29)])), report(port([i * MS for i in range(300)])))
    assert row(found, "bursts", "per_s").low is None
    left_out = report(port([i * MS for i in range(300)], bursts_left_out=5))
    assert row(change.between(left_out, left_out), "bursts", "per_s").low is None


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (report(port([MS]), above_bytes=2_000), "setting above_bytes was 1000 and is 2000"),
        (report(port([MS], rate_bps=4 * 10**10)), "p: its speed was 10 Gb/s and is 40 Gb/s"),
        (report(port([MS], 3_000 * MS)), "one trace is 3 times as long"),
        (report(port([MS], detect={"words": "queue above 2 KB"})), "give both analyses the same --above"),
        (report(port([MS], port="q")), "port p is compared with port q"),
        (report(port([MS]), port([MS], port="q")), "port q is only in the trace after"),
        (report(port([MS])) | {"plausibility": {"trust": "poor", "words": "x"}}, "trust in the trace after is poor"),
    ],
)
def test_what_makes_them_hard_to_compare_is_said(after: dict[str, Any], said: str) -> None:
    assert any(said in warning for warning in change.between(report(port([MS])), after).warnings)


def test_ports_without_a_counterpart_are_an_error() -> None:
    two: Callable[[str, str], dict[str, Any]] = lambda a, b: report(port([MS], port=a), port([MS], port=b))  # noqa: E731
    with pytest.raises(ValueError, match="no port in common; before: a, b; after: c, d"):
        change.between(two("a", "b"), two("c", "d"))


def test_the_command_compares_a_port_with_a_larger_buffer(tmp_path: Path) -> None:
    for name, buffer in (("before", "256KB"), ("after", "512KB")):
        capture = CAPTURES / "incast-before.pcap.gz"
        found = fanin.analyze(capture, rate="100Mbps", overhead="0B", fcs=False, buffer=buffer, transfers=True)
        found.to_json(tmp_path / f"{name}.json")
    both = [str(tmp_path / "before.json"), str(tmp_path / "after.json")]
    shown = CliRunner().invoke(app, ["compare", *both, "-o", str(tmp_path / "page.html")])
    assert shown.exit_code == 0, shown.output
    words = " ".join(shown.output.split())
    assert 'setting buffer was "256KB" and is "512KB"' in words
    assert "One trace of each" in words
    assert "<b>" not in (tmp_path / "page.html").read_text()
    printed = json.loads(CliRunner().invoke(app, ["compare", *both, "--json"]).stdout)
    assert printed["schema"] == "analysis-change/1"
    drops = next(row for row in printed["rows"] if row["what"] == "drops")
    assert drops["after"] < drops["before"]
    assert drops["after"] == 346
    made = change.between(*both)
    assert made.frame.height == len(made.rows)
    refused = CliRunner().invoke(app, ["compare", *both, "--looks", "2"])
    assert refused.exit_code == 2
    assert "--looks: without effect on two analyses" in " ".join(refused.output.split())
    for given in (["a=" + both[0], "b=" + both[1]], [*both, both[0]]):
        refused = CliRunner().invoke(app, ["compare", *given])
        assert refused.exit_code == 2
        assert "reports of analyses are compared in twos, without names" in " ".join(refused.output.split())
    (tmp_path / "no.json").write_text("{}")
    wrong = CliRunner().invoke(app, ["compare", both[0], str(tmp_path / "no.json")])
    assert wrong.exit_code == 2
    assert "has no schema; accepted: analysis/1" in " ".join(wrong.output.split())
