"""What is compared is what the runs say; what else differs is said; everything wrong is said at once."""

from __future__ import annotations

import html
import io
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
import pytest
from rich.console import Console
from typer.testing import CliRunner

import fanin
from browsing import CONTRAST, Page, needs_browser, open_page, script
from fake_result import write_result
from fanin import comparison
from fanin.cli import app
from fanin.comparison import page, tables, variants
from fanin.statistics import metrics
from fanin.sweep import by_axis
from fanin.text import terminal

RUNNER = CliRunner()
ROOT = Path(__file__).parents[2]
Change = Callable[[dict[str, Any], dict[str, Any]], None]


TRIED: dict[str, dict[str, Any]] = {
    "topology": {"kind": "leaf_spine"},
    "transport": {"kind": "tcp", "congestion_control": {"kind": "dctcp"}, "rto_min": "10ms", "rto_initial": "10ms"},
}
"""Settings like those of the runs that numbers of seeds were chosen on."""


def variant(
    path: Path, seed: int, k: str = "65 packets", factor: float = 1.0, change: Change | None = None, status: str = "complete"
) -> Path:
    """Write a result whose completion times are `factor` times what is usual with this seed."""
    write_result(path, bursts=1, senders=4, each=4, seed=seed, status=status, watch=False)
    summary = json.loads((path / "summary.json").read_text())
    manifest = json.loads((path / "manifest.json").read_text())
    for entry in summary["fct"]:
        for key in entry:
            if key.endswith("_ps") and entry[key] is not None:
                entry[key] *= factor * (1 + 0.01 * (seed % 3))
    summary["drops"] = seed % 2
    for name, table in TRIED.items():
        manifest["scenario"].setdefault(name, {}).update(table)
    manifest["scenario"].setdefault("traffic", [{"kind": "query"}])
    summary["flows"]["complete"] += 300  # as many as numbers of seeds were tried on
    summary["queries"]["complete"] += 20
    manifest["scenario"]["switch"]["marking"]["k"] = k
    manifest["fingerprint"] = f"{seed} {k}"
    if change is not None:
        change(manifest, summary)
    (path / "summary.json").write_text(json.dumps(summary))
    (path / "manifest.json").write_text(json.dumps(manifest))
    return path


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve seeds of two variants; with k = 20 flows take 20 % less time."""
    root = tmp_path_factory.mktemp("runs")
    for seed in range(1, 13):
        variant(root / "k65" / f"seed{seed}", seed)
        variant(root / "k20" / f"seed{seed}", seed, "20 packets", 0.8 + 0.002 * (seed % 2))
    return root


@pytest.fixture(scope="module")
def made(runs: Path) -> comparison.Comparison:
    return fanin.compare([runs / "k65", runs / "k20"])


def row(found: comparison.Comparison, key: str) -> comparison.Row:
    return next(entry for entry in found.rows if entry.metric.key == key)


def problems(call: Callable[[], Any]) -> list[str]:
    with pytest.raises(fanin.CompareError) as caught:
        call()
    assert isinstance(caught.value, ValueError)
    assert str(caught.value) == "\n".join(caught.value.problems)
    return caught.value.problems


# -- numbers -------------------------------------------------------------------------------------------------------------


def test_numbers_are_those_of_the_summary(folder: Path) -> None:
    result = fanin.load(folder)
    found = metrics.values(result)
    assert found["total.goodput_bps"] == result.summary["goodput_bps"]
    assert found["total.drops"] == result.summary["drops"]
    assert found["total.largest_queue_bytes"] == result.summary["largest_queue"]["bytes"]
    assert found["queries.p99_ps"] == result.summary["queries"]["p99_ps"]
    everything = result.summary["fct"][0]
    assert (found["fct/all.p99_ps"], found["fct/all.slowdown_mean"]) == (everything["p99_ps"], everything["slowdown_mean"])
    assert "total.datagrams_received" not in found, "there are no datagrams"
    assert all(metrics.of(key) is not None for key in found)


def test_queues_are_quantiles_over_all_samples_of_ports_that_sent(folder: Path) -> None:
    result = fanin.load(folder)
    rows = [
        {"time_ps": time, "port": port, "tx_bytes": sent, "queue_bytes": level, "queue_max_bytes": level + 5}
        for time, level in ((10, 0), (20, 100), (30, 300), (40, 0))
        for port, sent, level in (
            ("s0->h1", 9, level),
            ("s0->h2", 9, level // 2),
            ("s0->h3", 0, 0),
            ("s0->s1", 1, 7),
            ("s1->s0", 1, 7),
            ("s1->h4", 0, 0),
        )
        if level or time in (10, 40)
    ]
    frame = pl.DataFrame(rows, schema_overrides={"time_ps": pl.UInt64})
    setattr(result, "scan", lambda _table, as_written: frame.lazy())  # noqa: B010
    result.__dict__["sample_times"] = pl.Series("time_ps", [10, 20, 30, 40], dtype=pl.UInt64)
    found = metrics._queue_levels(result)
    # Of h1 and h2, eight samples in order: 0 0 0 0 50 100 150 300; nearest rank.
    assert (found["to_hosts"]["p50_bytes"], found["to_hosts"]["p99_bytes"]) == (0.0, 300.0)
    assert found["to_hosts"]["max_bytes"] == 305.0
    assert found["between_switches"]["p50_bytes"] == 7.0
    assert "from_hosts" not in found


def test_numbers_of_a_real_run(tmp_path: Path) -> None:
    scenario = {
        "topology": {"kind": "single_switch", "hosts": 5, "link": {"rate": "10Gbps", "delay": "1us"}},
        "traffic": [{"kind": "incast", "receiver": "h4", "size": "200KB"}],
        "telemetry": {"sample": "10us"},
    }
    result = fanin.run(scenario, tmp_path / "out", progress=False)
    found = metrics.values(result)
    used = result.ports.group_by("port").agg(pl.col("tx_bytes").sum()).filter(pl.col("tx_bytes") > 0)["port"]
    inward = result.ports.filter(pl.col("port").is_in(used.implode()), pl.col("port").str.starts_with("switch0->"))
    levels = inward["queue_bytes"].sort()
    for key, percent in (("p50_bytes", 50), ("p99_bytes", 99)):
        assert found[f"queue/to_hosts.{key}"] == levels[-(-percent * levels.len() // 100) - 1]
    assert found["queue/to_hosts.max_bytes"] == inward["queue_max_bytes"].max()
    assert found["queue/from_hosts.max_bytes"] == 0


def test_pauses_count_to_the_end_of_the_run(folder: Path) -> None:
    found = metrics._paused(fanin.load(folder))
    end = fanin.load(folder).manifest["sim_ps"]
    assert found == {"pauses": 2, "paused_ps": 1_000_000 + end - 202_000_000}


def test_metrics_are_chosen_by_address_pattern_and_group() -> None:
    there = ["fct/all.p99_ps", "fct/all.mean_ps", "total.drops", "collective/job.v1.time_ps", "unknown.thing"]
    assert [metric.key for metric in metrics.choose([], there)] == [
        "fct/all.mean_ps",
        "fct/all.p99_ps",
        "collective/job.v1.time_ps",
        "total.drops",
    ]
    assert [metric.key for metric in metrics.choose(["fct", "*.drops"], there)] == [
        "fct/all.mean_ps",
        "fct/all.p99_ps",
        "total.drops",
    ]
    assert metrics.choose(["fct/all"], there)[0].key == "fct/all.mean_ps"
    job = metrics.choose(["collective"], there)[0]
    assert (job.name, job.better, job.headline) == ("Jobs, job.v1, complete in", "lower", True)
    with pytest.raises(ValueError, match="there is none of that name") as caught:
        metrics.choose(["fct/all.p98_ps", "total.pauses", "zzz"], there)
    assert str(caught.value) == (
        "metric 'fct/all.p98_ps': there is none of that name; did you mean fct/all.p99_ps?\n"
        "metric 'total.pauses': no run has it; it needs switch.mechanisms.pfc\nmetric 'zzz': there is none of that name; "
        "there are metrics of fct, collective, total, for example fct/all.mean_ps"
    )


def test_a_pattern_that_no_run_has_says_what_its_metrics_need() -> None:
    for name in ("queue/*", "queue/to_hosts.*", "queue"):
        with pytest.raises(ValueError, match=r"it needs samples of all ports \(telemetry\.sample\), and in a sweep --keep"):
            metrics.choose([name], ["queries.p99_ps", "total.drops"], kept=False)


def test_numbers_are_written_with_their_unit() -> None:
    texts = {
        "fct/all.p99_ps": (1_234_567.0, "1.235 µs"),
        "total.goodput_bps": (9.4e9, "9.4 Gb/s"),
        "total.largest_queue_bytes": (1500.0, "1.5 KB"),
        "total.drops": (12.66, "12.7"),
        "total.marks": (1234.5, "1,234"),
        "total.reordered_share": (0.01234, "1.23 %"),
        "fct/all.slowdown_mean": (2.345, "2.35"),
    }
    for key, (value, text) in texts.items():
        assert metrics.METRICS[key].text(value) == text
    assert metrics.METRICS["total.drops"].text(None) == "–"


# -- variants ------------------------------------------------------------------------------------------------------------


def test_runs_that_differ_in_the_seed_alone_are_one_variant(runs: Path) -> None:
    for given in ([str(runs)], [runs / "k20", runs / "k65"], sorted(runs.glob("*/*")), [f"{runs}/*/seed*"]):
        found = variants.gather(given)
        assert [(entry.name, entry.seeds) for entry in found] == [("k20", tuple(range(1, 13))), ("k65", tuple(range(1, 13)))]
    assert variants.differing(found) == [("switch.marking.k", ["20 packets", "65 packets"])]
    named = variants.gather([f"small={runs}/k20/seed[12]", f"small={runs}/k20/seed3", f"large={runs}/k65"])
    assert [(entry.name, entry.seeds) for entry in named] == [("small", (1, 2, 3)), ("large", tuple(range(1, 13)))]
    loaded = variants.gather({"a": fanin.load(runs / "k20" / "seed1"), "b": [runs / "k65" / "seed2", runs / "k65" / "seed1"]})
    assert [(entry.name, entry.seeds) for entry in loaded] == [("a", (1,)), ("b", (1, 2))]


def test_progress_names_each_folder_once(runs: Path) -> None:
    read: list[str] = []
    fanin.compare([runs / "k65", runs / "k20"], progress=read.append)
    assert read == [str(runs / k / f"seed{seed}") for k in ("k65", "k20") for seed in range(1, 13)]


def test_names_come_from_folders_and_never_twice(tmp_path: Path) -> None:
    for name, k in (("k20", "20"), ("k65", "65")):
        for seed in (1, 2):
            variant(tmp_path / f"{name}-seed{seed}", seed, k)
    assert [entry.name for entry in variants.gather([tmp_path])] == ["k20", "k65"]
    for folder, k in (("a", "20"), ("b", "65")):
        shutil.copytree(tmp_path / f"k{k}-seed1", tmp_path / folder / "out")
    assert [entry.name for entry in variants.gather([tmp_path / "a" / "out", tmp_path / "b" / "out"])] == ["a/out", "b/out"]


def test_everything_wrong_with_folders_is_said_at_once(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.txt").write_text("no")
    half = variant(tmp_path / "half", 1)
    (half / "summary.json").unlink()
    document = json.loads((half / "manifest.json").read_text())
    (half / "manifest.json").write_text(json.dumps(document | {"status": "running"}))
    newer = variant(tmp_path / "newer", 1)
    (newer / "manifest.json").write_text(json.dumps(document | {"schema": "manifest/9"}))
    given = ["empty", "file.txt", "half", "newer", "haf", "nothing-*"]
    found = problems(lambda: variants.gather([str(tmp_path / name) for name in given] + [f"mix={runs}"]))
    expected = [
        "empty: is not a result folder, and holds none",
        "file.txt: is a file, not a result folder",
        "the run was killed; run it again, with --force",
        "was written by a newer Fanin",
        f"there is no such folder; did you mean {tmp_path / 'half'}?",
        "no result folder has such a name",
        "mix: its runs differ in more than the seed: switch.marking.k",
    ]
    assert len(found) == len(expected)
    for text, line in zip(expected, found, strict=True):
        assert text in line


def test_one_seed_twice_is_refused_and_says_how_to_keep_both(runs: Path, tmp_path: Path) -> None:
    again = shutil.copytree(runs / "k65" / "seed1", tmp_path / "again")
    (line,) = problems(lambda: variants.gather([runs / "k65" / "seed1", again]))
    assert "are the same scenario with the same seed, 1; NAME=PATH keeps them apart" in line
    found = fanin.compare([f"a={runs / 'k65' / 'seed1'}", f"b={again}"])
    assert found.warnings == ["b and a gave the same runs, by their fingerprints: nothing differs between them"]


def test_long_lists_of_a_scenario_are_compared_as_a_whole() -> None:
    short = variants.settings({"name": "x", "seed": 3, "traffic": [{"load": 0.5}], "hosts": ["a", "b"]})
    assert short == {"traffic[0].load": 0.5, "hosts": '["a", "b"]'}
    long = [variants.settings({"flows": [{"size": size + extra} for size in range(100)]}) for extra in (0, 1)]
    assert list(long[0]) == ["flows"]
    assert long[0]["flows"].startswith("100 entries (")
    assert long[0] != long[1]


# -- verdicts ------------------------------------------------------------------------------------------------------------


def test_a_real_difference_is_better_or_worse(made: comparison.Comparison, runs: Path) -> None:
    found = row(made, "fct/all.mean_ps")
    cell = found.cells[1]
    assert cell.verdict == "mostly better", "twelve seeds are too few for differences of means of completion times"
    assert cell.difference is not None
    assert cell.difference.flag == "rare"
    assert cell.difference.paired
    assert cell.difference.change == pytest.approx(-0.199, abs=0.001)
    assert cell.chance is not None
    assert cell.chance < 0.05
    assert row(fanin.compare([runs / "k20", runs / "k65"]), "fct/all.mean_ps").cells[1].verdict == "mostly worse"
    assert row(fanin.compare([runs / "k20", runs / "k65"], base="k65"), "fct/all.mean_ps").cells[1].verdict == "mostly better"
    assert row(made, "total.drops").cells[1].verdict == "equal"
    assert row(made, "fct/all.p50_ps").cells[1].verdict is None, "read, not judged"
    assert made.base.name == "k65"
    assert made.warnings == []
    assert made.notes == ["no run had a timeout; 12 seeds say that fewer than 22 % of runs do"]


def test_what_is_named_is_judged_and_nothing_else_is_shown(made: comparison.Comparison, runs: Path) -> None:
    found = fanin.compare([runs / "k65", runs / "k20"], metric="fct/all.p50_ps")
    assert [entry.metric.key for entry in found.rows] == ["fct/all.p50_ps"]
    assert found.rows[0].cells[1].verdict == "better"
    assert found.judged == 1
    # Headlines alone are judged; what is the same in all runs is not, and the same numbers under two names are one.
    judged = {entry.metric.key for entry in made.rows if entry.cells[1].chance is not None}
    assert judged <= set(metrics.HEADLINES)
    assert 0 < made.judged <= len(judged)
    assert row(made, "total.timeouts").cells[1].chance is None


def test_percentiles_of_few_values_are_said_to_be_the_largest(made: comparison.Comparison) -> None:
    def with_flows(*counts: int) -> comparison.Comparison:
        told = [
            replace(variant.runs[0], values={"total.flows_complete": count})
            for variant, count in zip(made.variants, counts, strict=True)
        ]
        return replace(made, variants=tuple(replace(v, runs=(run,)) for v, run in zip(made.variants, told, strict=True)))

    few = " The p99 of fewer than 100 values is the largest one: of flows (16 here)."
    assert tables.few_values(with_flows(100, 16)) == few
    assert tables.rule(with_flows(100, 16)).endswith(few)
    assert tables.few_values(with_flows(100, 200)) == ""


def test_a_number_that_runs_have_and_no_comparison_is_told_apart_from_one_that_there_is_not(runs: Path) -> None:
    given = [runs / "k65", runs / "k20"]
    assert problems(lambda: fanin.compare(given, metric=["fct/all.p95_ps"])) == [
        "metric 'fct/all.p95_ps': is a number of runs that is not compared; a sweep's Sweep.values reads it; did you mean "
        "fct/all.p99_ps?"
    ]
    assert problems(lambda: fanin.compare(given, metric=["fct/all.p98_ps"]))[0].startswith(
        "metric 'fct/all.p98_ps': there is none of that name"
    )


def test_looks_share_the_chance_and_seeds_choose_new_runs(runs: Path, tmp_path: Path) -> None:
    given = [runs / "k65", runs / "k20"]
    every = fanin.compare(given, metric="fct/all.p50_ps")
    new = fanin.compare(given, metric="fct/all.p50_ps", seeds=range(3, 13))
    assert new.variants[0].seeds == tuple(range(3, 13)) and new.notes == []
    assert every.rows[0].cells[1].verdict == new.rows[0].cells[1].verdict == "better"
    # Ten seeds, all on one side: 2 in 1,024. A hundred looks leave 1 in 2,000 for each.
    assert fanin.compare(given, metric="fct/all.p50_ps", seeds=range(3, 13), looks=25).rows[0].cells[1].verdict == "better"
    shared = fanin.compare(given, metric="fct/all.p50_ps", seeds=range(3, 13), looks=26)
    assert shared.rows[0].cells[1].verdict == "not shown" and shared.to_dict()["looks"] == 26
    assert "is 5 % (exact tests by seed, Holm), over all 26 looks that are planned together." in tables.rule(shared)
    assert problems(lambda: fanin.compare(given, seeds=[40], looks=0)) == [
        "looks: 0 is out of range; accepted: 1 to 100",
        "seeds: k65 has no run with one of them",
        "seeds: k20 has no run with one of them",
    ]
    done = RUNNER.invoke(app, ["compare", *map(str, given), "--seeds", "3:11", "--seeds", "12", "--looks", "2", "--json"])
    found = json.loads(done.stdout)
    assert (found["variants"][0]["seeds"], found["looks"]) == (list(range(3, 13)), 2)
    for text in ("5:3", "x", "3:", "-1"):
        done = RUNNER.invoke(app, ["compare", *map(str, given), f"--seeds={text}"])
        assert done.exit_code == 2 and f"--seeds {text}: is no range of seeds" in done.stderr


def test_one_seed_has_no_interval_and_no_verdict(runs: Path) -> None:
    found = fanin.load(runs / "k65" / "seed1").compare(runs / "k20" / "seed1")
    cell = row(found, "fct/all.mean_ps").cells[1]
    assert (cell.verdict, cell.chance) == ("one seed", None)
    assert cell.interval is not None
    assert (cell.interval.low, cell.interval.note) == (None, "one seed: no interval")
    assert found.notes == [
        "k65/seed1: one seed, so no interval, and no verdict; run more seeds",
        "k20/seed1: one seed, so no interval, and no verdict; run more seeds",
    ]
    assert tables.rule(found) == "Nothing was judged: that takes two seeds of each variant, or more."
    assert found.judged == 0
    seeds = [runs / "k65" / f"seed{seed}" for seed in (1, 2, 3)]
    same = fanin.compare({"a": seeds, "b": seeds})
    assert {cell.verdict for row in same.rows for cell in row.cells} == {None, "equal"}
    assert tables.rule(same) == "Nothing was judged: what would be is equal in each run."


def test_few_and_different_seeds_are_told(runs: Path) -> None:
    found = fanin.compare({"a": [runs / "k65" / f"seed{seed}" for seed in (1, 2, 3)], "b": f"{runs}/k20/seed[2345]"})
    assert found.notes[0] == (
        "a: 3 seeds; fewer than 10 have intervals that may hold the true value too seldom, and no mean is judged: "
        '"mostly" is all that is said'
    )
    shared = "b and a have 2 seeds in common, and are compared over these alone; left out: 2 of b and 1 of a"
    assert shared in found.notes
    assert found.notes[-2].startswith("2 seeds cannot show any of ")
    assert found.notes[-1] == "no run had a timeout; 3 seeds say that fewer than 63 % of runs do"
    cell = row(found, "fct/all.mean_ps").cells[1]
    assert cell.verdict == "not shown" and cell.seeds is not None and cell.seeds > 4
    assert tables.verdict_text(cell) == f"not shown (mostly: some {cell.seeds}?)", "such a mean takes 99"
    both = [fanin.load(runs / k / f"seed{seed}").summary["fct"][0]["mean_ps"] for k in ("k65", "k20") for seed in (2, 3)]
    assert cell.base is not None and cell.interval is not None and cell.difference is not None
    assert (cell.base.mean, cell.interval.mean) == pytest.approx((sum(both[:2]) / 2, sum(both[2:]) / 2))
    assert cell.difference.mean == pytest.approx(cell.interval.mean - cell.base.mean), "all three are of seeds 2 and 3"
    every = row(found, "fct/all.mean_ps").cells[0].interval
    assert every is not None and every.seeds == 3 and every.mean != cell.base.mean
    assert f"the base over these: ~{cell.base.mean / 1e6:.2f} µs" in html.unescape(page.render(found))
    ((_, (_, lines)), *_) = tables.tables(found, 1)
    assert lines[0][1] == f"~{cell.base.mean / 1e6:.2f} µs"
    pooled = row(found, "fct/all.p99_ps").cells[1]
    assert pooled.pooled is not None and pooled.base_pooled is not None
    assert (pooled.pooled.seeds, pooled.base_pooled.seeds) == (2, 2)
    apart = fanin.compare({"a": f"{runs}/k65/seed[12]", "b": f"{runs}/k20/seed[34]"})
    assert "b and a have no seed in common: differences are not paired, and wider for it" in apart.notes
    gap = row(apart, "fct/all.mean_ps").cells[1].difference
    assert gap is not None
    assert not gap.paired


def test_where_the_seed_changes_nothing_numbers_are_exact(tmp_path: Path) -> None:
    def fixed(factor: float) -> Change:
        def change(manifest: dict[str, Any], summary: dict[str, Any]) -> None:
            manifest["fingerprint"] = f"{factor}"
            summary["goodput_bps"] = factor * 1e9

        return change

    for seed in (1, 2):
        variant(tmp_path / "a" / str(seed), seed, change=fixed(1.0))
        variant(tmp_path / "b" / str(seed), seed, k="20 packets", change=fixed(1.0001))
    found = fanin.compare([tmp_path / "a", tmp_path / "b"])
    assert "a: the seed changes nothing, all 2 runs are the same; its numbers are exact" in found.notes
    assert row(found, "total.goodput_bps").cells[1].verdict == "better"


def test_versions_that_are_mixed_within_a_variant_are_a_warning(tmp_path: Path) -> None:
    def older(manifest: dict[str, Any], _summary: dict[str, Any]) -> None:
        manifest["fanin"] = "0.0.9"

    for name in ("a", "b"):
        variant(tmp_path / name / "1", 1, k="20 packets" if name == "b" else "65 packets")
    variant(tmp_path / "b" / "2", 2, k="20 packets", change=older)
    found = fanin.compare({"a": tmp_path / "a", "b": tmp_path / "b"})
    said = "versions of Fanin differ: a 0.1.0, b 0.0.9 and 0.1.0; results may have changed between them (CHANGELOG)"
    assert said in found.warnings
    assert [variant["version"] for variant in found.to_dict()["variants"]] == ["0.1.0", "0.0.9, 0.1.0"]


def test_what_else_differs_is_a_warning(tmp_path: Path) -> None:
    def other(manifest: dict[str, Any], summary: dict[str, Any]) -> None:
        manifest["scenario"] |= {"duration": "2ms", "traffic": [{"load": 0.7}], "telemetry": {"sample": "5us"}}
        manifest["fanin"], summary["flows_until_ps"] = "0.0.9", summary["flows_until_ps"] * 2
        manifest["fingerprint"] = "another"
        summary["flows"]["complete"] -= 1

    def usual(manifest: dict[str, Any], _summary: dict[str, Any]) -> None:
        manifest["scenario"] |= {"traffic": [{"load": 0.5}]}

    variant(tmp_path / "a", 1, change=usual)
    variant(tmp_path / "b", 1, change=other, status="partial")
    told = fanin.compare([tmp_path / "a", tmp_path / "b"]).warnings
    for text in (
        "durations differ: duration",
        "traffic differs, so runs with one seed have not the same flows: traffic[0].load",
        "telemetry differs, so queues are not sampled alike: telemetry.sample",
        "versions of Fanin differ: a 0.1.0, b 0.0.9; results may have changed between them (CHANGELOG)",
        f"not complete: {tmp_path / 'b'}; totals and completion times are of what was simulated until then",
        "last flows end at different times: a 2.2 ms, b 4.4 ms",
        "completion times leave out flows that did not end",
    ):
        assert any(text in warning for warning in told), (text, told)
    assert len(told) == 7


def test_wrong_settings_are_said_at_once(runs: Path) -> None:
    found = problems(lambda: fanin.compare([runs], base="k2", metric=["fct/all.p98_ps", "total.pauses"], confidence=1.5, alpha=0))
    assert found == [
        "confidence: 1.5 is out of range; accepted: 0.5 to 0.999",
        "alpha: 0 is out of range; accepted: 0.001 to 0.5",
        "base 'k2': there is no such variant; there are k20, k65; did you mean k20?",
        "metric 'fct/all.p98_ps': there is none of that name; did you mean fct/all.p99_ps?",
        "metric 'total.pauses': no run has it; it needs switch.mechanisms.pfc",
    ]
    (line,) = problems(lambda: fanin.compare([runs / "k20"]))
    assert line.startswith("two variants or more are needed, and there is one: 'k20', 12 seeds.")
    assert problems(lambda: fanin.compare([])) == ["two variants or more are needed, and no run is given"]
    assert problems(lambda: fanin.compare([runs], by="load"))[0].startswith("by, where: one sweep is needed")
    assert problems(lambda: fanin.compare([runs / "none"], by="load")) == [f"{runs / 'none'}: there is no such folder"]


# -- what is shown -------------------------------------------------------------------------------------------------------


def test_equal_runs_give_equal_bytes_and_frames_hold_them(made: comparison.Comparison, runs: Path) -> None:
    assert fanin.compare([runs / "k65", runs / "k20"]).to_json() == made.to_json()
    document = json.loads(made.to_json())
    assert document["schema"] == comparison.SCHEMA
    assert [entry["name"] for entry in document["variants"]] == ["k65", "k20"]
    assert document["differing"] == [{"key": "switch.marking.k", "values": ["65 packets", "20 packets"]}]
    assert len(document["rows"]) == len(made.rows) > 20
    one = next(entry for entry in document["rows"] if entry["metric"] == "fct/all.mean_ps")
    assert one["variants"]["k20"]["verdict"] == "mostly better"
    assert one["variants"]["k20"]["difference"]["change"] == pytest.approx(-0.199, abs=0.001)
    frame = made.frame.filter(pl.col("metric") == "fct/all.mean_ps")
    assert frame["variant"].to_list() == ["k65", "k20"]
    assert frame["mean"].to_list() == [one["variants"][name]["interval"]["mean"] for name in ("k65", "k20")]
    assert frame["verdict"].to_list() == [None, "mostly better"]
    assert "fct/all.mean_ps" not in made._repr_html_()
    assert "all sizes mean" in made._repr_html_()
    assert repr(made) == "<fanin.Comparison with 'k65': k20: 2 better or mostly better, 0 worse>"


def test_percentiles_of_all_flows_together_stand_beneath_the_mean_of_the_runs(made: comparison.Comparison, runs: Path) -> None:
    """They are of flows, not of runs, and have intervals; of metrics that are no percentile there is none."""
    found = row(made, "fct/all.p99_ps")
    for cell, own in zip(found.cells, made.variants, strict=True):
        flows = {result.manifest["seed"]: result.completions["fct_ps"].to_list() for result in own.results()}
        assert cell.pooled == fanin.statistics.pooled(flows, 99)
        assert cell.pooled.seeds == len(flows) and cell.pooled.values == sum(map(len, flows.values()))
    assert all(cell.pooled is None for cell in row(made, "fct/all.mean_ps").cells)
    _, (_, lines) = next(section for section in tables.tables(made, 1) if section[0] == "Flow completion time")
    at = next(at for at, line in enumerate(lines) if line[0] == " all flows together")
    assert [line[0] for line in lines[at + 1 : at + 3]] == ["    from", "    to"]
    pooled = found.cells[1].pooled
    assert pooled is not None and lines[at + 2][2] == found.metric.text(pooled.high)
    assert tables.rule(made) == (
        f"{made.judged} differences judged together: where nothing differs, the chance that any is called better or worse is 5 % "
        "(exact tests by seed, Holm). Changes are of means, with 95 % intervals, of shares in percentage points; ~: not to be "
        "relied on; a dash: not judged; docs/compare.md says what verdicts mean. The p99 of fewer than 100 values is the "
        "largest one: of queries (21 here)."
    )
    one = made.frame.filter(pl.col("metric") == "fct/all.p99_ps", pl.col("variant") == made.variants[1].name)
    assert one.select("pooled", "pooled_low", "pooled_high").row(0) == (pooled.value, pooled.low, pooled.high)
    told = made.to_dict()["rows"][[entry.metric.key for entry in made.rows].index("fct/all.p99_ps")]
    assert told["variants"][made.variants[1].name]["pooled"]["value"] == pooled.value


def test_tables_fit_eighty_columns(made: comparison.Comparison) -> None:
    for section, (head, rows) in tables.tables(made, 1):
        out = Console(width=80, file=io.StringIO())
        terminal.table(out, section, head, rows)
        lines = out.file.getvalue().splitlines()  # type: ignore[attr-defined]
        assert max(map(len, lines)) <= 80
        assert sum("Metric" in line for line in lines) == 1, "in one part"


def test_changes_are_short_and_signed(made: comparison.Comparison) -> None:
    times = row(made, "fct/all.mean_ps")
    assert tables.change_text(times.metric, times.cells[1]) == "~-20% [-20, -20]", "its difference is flagged as rare"
    firm = row(made, "fct/all.p50_ps")
    assert tables.change_text(firm.metric, firm.cells[1]) == "-20% [-20, -20]"
    assert tables.change_text(times.metric, comparison.Cell(None)) == "–"
    drops = row(made, "total.drops")
    assert tables.change_text(drops.metric, drops.cells[1]) == "~0 [0, 0]", "not a share of a number that may be zero"
    assert [tables._percent(share) for share in (0.1234, -0.01234, 0.00004, 0, 12.5)] == ["+12", "-1.2", "0", "0", "+1,250"]


def test_the_page_refers_to_nothing_and_names_are_text(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    paths = [variant(tmp_path / name, 1, k) for name, k in (("a", "20 packets"), ("b", evil))]
    found = fanin.compare({"plain": paths[0], evil: paths[1]})
    first = found.report(tmp_path / "page.html").read_bytes()
    assert found.report(tmp_path / "again.html").read_bytes() == first
    text = first.decode()
    page = Page(text)
    assert page.references == []
    assert evil not in re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "one seed, so no interval" in text
    assert "Content-Security-Policy" in text


def test_the_command_prints_tables_and_json(runs: Path, tmp_path: Path) -> None:
    done = RUNNER.invoke(app, ["compare", str(runs), "-o", str(tmp_path / "k.html")])
    assert done.exit_code == 0, done.output
    assert "k65 against k20: 2 mostly worse" in done.stdout
    assert "switch.marking.k" in done.stdout
    assert "Holm)" in done.stdout
    assert (tmp_path / "k.html").stat().st_size > 100_000
    done = RUNNER.invoke(app, ["compare", str(runs), "--base", "k65", "--json", "-o", str(tmp_path / "k.json")])
    assert json.loads(done.stdout) == json.loads((tmp_path / "k.json").read_text())
    assert json.loads(done.stdout)["base"] == "k65"


def test_the_command_says_everything_that_is_wrong(runs: Path) -> None:
    done = RUNNER.invoke(app, ["compare", str(runs), str(runs / "k66"), "x=nothing-*"])
    assert done.exit_code == 2
    assert f"there is no such folder; did you mean {runs / 'k65'}?" in done.stderr.replace("\n", "")
    assert "nothing-*: no result folder has such a name" in done.stderr
    assert RUNNER.invoke(app, ["compare", str(runs), "--where", "k"]).exit_code == 2
    assert RUNNER.invoke(app, ["compare", str(runs), "-o", "x.pdf"]).exit_code == 2


def test_every_metric_is_on_the_page_with_its_direction() -> None:
    text = (ROOT / "docs" / "compare.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| `([^`]+)` \|[^|]*\| (lower|higher|–) \|", text, flags=re.MULTILINE))
    known = {
        re.sub(r"^fct/[^.]+", "fct/SIZE", re.sub(r"^queue/[^.]+", "queue/PLACE", metric.key)): metric
        for metric in metrics.METRICS.values()
    }
    assert listed == {key: metric.better or "–" for key, metric in known.items()}
    for key in metrics.HEADLINES:
        assert f"`{key}`" in text


# -- sweeps --------------------------------------------------------------------------------------------------------------


class FakeSweep:
    """A sweep as `fanin.sweep.Sweep` shows it: two axes, three seeds, one run that failed."""

    path = "out/k"
    axes = ("switch.marking.k", "traffic[0].load")
    kept: ClassVar[dict[str, Path]] = {}
    document: ClassVar[dict[str, Any]] = {"sweep": {}}
    pending: ClassVar[pl.DataFrame] = pl.DataFrame(schema={"run": pl.String})

    def __init__(self, loads: tuple[float, ...] = (0.5,), empty: bool = False) -> None:
        rows = [
            {
                "run": f"{k}{load}{seed}",
                "label": None,
                "seed": seed,
                "status": "failed" if (k, seed) == ("65", 3) else "ok",
                "version": "0.1.0",
                "fingerprint": f"{k}{load}{seed}",
                "sim_ps": 1_000_000,
                "switch.marking.k": k,
                "switch.marking.k [packets]": float(k),
                "traffic[0].load": load,
            }
            for k in ("65", "100", "20")
            for load in loads
            for seed in (1, 2, 3)
        ]
        self.runs = pl.DataFrame(rows, schema_overrides={"label": pl.String})[: 0 if empty else None]
        factor = {"20": 1, "65": 2, "100": 3}
        values = {
            (k, seed): {"p99_ps": 1e9 * factor[k] * seed, "drops": 4.0 * factor[k] * seed} for k in factor for seed in (1, 2, 3)
        }
        groups = (("total", None, "drops"), ("fct", "all", "p99_ps"), ("fct", "<10KB", ""))
        self.metrics = pl.DataFrame(
            [
                {"run": f"{k}{load}{seed}", "segment": "s", "group": group, "name": name, "p99_ps": None, "drops": None}
                | {key: value for key, value in own.items() if key == column}
                for (k, seed), own in values.items()
                for load in loads
                for group, name, column in groups
            ],
            schema_overrides={"p99_ps": pl.Float64, "drops": pl.Float64, "name": pl.String},
        )


@pytest.fixture
def fake_sweep(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(by_axis, "Sweep", FakeSweep)
    return FakeSweep


def test_what_failed_as_a_whole_is_named(fake_sweep: Any) -> None:
    """It is no variant, and nobody would miss it."""
    given = fake_sweep()
    hundred = pl.col("switch.marking.k") == "100"
    given.runs = given.runs.with_columns(status=pl.when(hundred).then(pl.lit("failed")).otherwise(pl.col("status")))
    found = fanin.compare(given, by="switch.marking.k")
    assert [entry.name for entry in found.variants] == ["k=20", "k=65"]
    assert found.warnings == ["k=65: 1 failed run is left out", "k=100: all 3 runs failed, so it is not compared"]


def test_a_sweep_has_a_variant_for_each_value_of_an_axis(fake_sweep: Any, tmp_path: Path) -> None:
    found = fanin.compare(fake_sweep(), by="switch.marking.k")
    assert [(entry.name, entry.seeds) for entry in found.variants] == [("k=20", (1, 2, 3)), ("k=65", (1, 2)), ("k=100", (1, 2, 3))]
    assert found.warnings == ["k=65: 1 failed run is left out"]
    assert found.differing == [("switch.marking.k", ["20", "65", "100"])]
    cell = row(found, "fct/all.p99_ps").cells[1]
    assert cell.difference is not None
    assert (cell.difference.seeds, cell.difference.change) == (2, 1.0)
    assert [entry.metric.key for entry in found.rows] == ["fct/all.p99_ps", "total.drops"]
    page = found.report(tmp_path / "sweep.html").read_text(encoding="utf-8")
    assert "the runs of this sweep left no result folders" in page
    assert len(page) < 100_000, "nothing is drawn, so nothing is there to draw it"


def test_of_a_store_only_groups_that_hold_compared_numbers_are_read(fake_sweep: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run has a row for each port and each mechanism, which nothing here is about."""
    sweep, known, asked = fake_sweep(), metrics.of, set[str]()

    def of(key: str) -> metrics.Metric | None:
        asked.add(key)
        return known(key)

    monkeypatch.setattr(metrics, "of", of)
    ports = sweep.metrics.with_columns(group=pl.lit("port"), name=pl.lit("leaf0->h3"))
    sweep.metrics = pl.concat([sweep.metrics, ports])
    assert len(by_axis.gather([sweep], ["switch.marking.k"], {})) == 3
    assert {re.split("[/.]", key)[0] for key in asked} == {"fct", "total"}


def test_other_axes_are_fixed_or_the_sweep_is_refused(fake_sweep: Any) -> None:
    sweep = fake_sweep((0.5, 0.8))
    assert problems(lambda: fanin.compare(sweep, by="switch.marking.k")) == [
        "traffic[0].load: varies, too; choose one of its values with --where (where=): 0.5, 0.8"
    ]
    found = fanin.compare(sweep, by="switch.marking.k", where={"traffic[0].load": "0.80"})
    assert [run.origin for run in found.base.runs] == ["out/k/200.81", "out/k/200.82", "out/k/200.83"]
    both = fanin.compare(sweep, by=["switch.marking.k", "traffic[0].load"])
    assert [entry.name for entry in both.variants] == [f"k={k}, load={load}" for k in (20, 65, 100) for load in (0.5, 0.8)]


def test_what_is_wrong_with_a_sweep_is_said_at_once(fake_sweep: Any) -> None:
    assert problems(lambda: fanin.compare(fake_sweep(), by=["k", "bla"], where={"traffic[0].load": 0.9})) == [
        "k: is no axis of out/k; there are switch.marking.k, traffic[0].load; did you mean switch.marking.k?",
        "bla: is no axis of out/k; there are switch.marking.k, traffic[0].load",
        "traffic[0].load=0.9: no run has this value; there are 0.5",
    ]
    (line,) = problems(lambda: fanin.compare(fake_sweep()))
    is_one = "out/k: is a sweep, whose variants are the values of an axis: choose it with --by (by=) from "
    assert line == is_one + "switch.marking.k, traffic[0].load"
    assert problems(lambda: fanin.compare(fake_sweep(empty=True), by="switch.marking.k")) == [
        "out/k: no run of this sweep has ended yet"
    ]


def test_a_real_sweep_is_compared_as_its_result_folders_are(tmp_path: Path) -> None:
    sweeps = pytest.importorskip("fanin.sweep")
    scenario = {
        "name": "tiny",
        "topology": {"kind": "single_switch", "hosts": 5, "link": {"rate": "10Gbps", "delay": "1us"}},
        "switch": {"marking": {"kind": "threshold", "k": "5 packets"}},
        "transport": {"kind": "tcp", "congestion_control": "dctcp"},
        "traffic": [{"kind": "incast", "receiver": "h4", "size": "100KB", "jitter": "50us"}],
        "sweep": {"seeds": 3, "grid": {"switch.marking.k": ["100 packets", "5 packets"]}},
    }
    sweep = sweeps.sweep(scenario, tmp_path / "out", keep=True, jobs=1, progress=False)
    by_axis = fanin.compare(sweep, by="switch.marking.k")
    assert [(entry.name, entry.seeds) for entry in by_axis.variants] == [("k=100 packets", (1, 2, 3)), ("k=5 packets", (1, 2, 3))]
    folders = fanin.compare({entry.name: [run.path for run in entry.results()] for entry in by_axis.variants})
    assert {run.conditions.timeout_ps for made in (by_axis, folders) for entry in made.variants for run in entry.runs} == {1e12}, (
        "rto_min: 1s"
    )
    shared = {entry.metric.key: entry for entry in folders.rows}
    told = [entry for entry in by_axis.rows if not entry.empty]
    assert len(told) > 10
    for entry in told:
        assert [cell.interval for cell in entry.cells] == [cell.interval for cell in shared[entry.metric.key].cells], (
            entry.metric.key
        )
    assert by_axis.plot("cdf").to_json() == folders.plot("cdf").to_json()
    done = RUNNER.invoke(app, ["compare", str(tmp_path / "out"), "--by", "switch.marking.k", "--json"])
    assert json.loads(done.stdout) == json.loads(by_axis.to_json())


def test_the_example_runs_and_finds_what_it_says(tmp_path: Path) -> None:
    example = ROOT / "examples" / "compare.py"
    done = subprocess.run([sys.executable, example, tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    page = (ROOT / "docs" / "compare.md").read_text(encoding="utf-8")
    shown = re.search(r"```\n(Queues, to hosts p99.*?)```", page, re.DOTALL)
    assert shown is not None
    assert done.stdout.startswith(shown[1]), done.stdout
    assert {"compare.html", "slowdown.pdf", "k65", "k200"} == {path.name for path in tmp_path.iterdir()}
    commands = re.findall(r"^fanin ((?!.*monday|.*tuesday)[^#\n]*)", page, re.MULTILINE)
    assert len(commands) == 5
    for line in commands:
        words = shlex.split(re.sub(r"-o (\S+)", rf"-o {tmp_path}/\1", line.replace("out/compare", str(tmp_path))))
        told = RUNNER.invoke(app, words)
        assert told.exit_code == (2 if "--by" in words else 0), told.output  # the sweep is that of another page


@pytest.fixture(scope="module")
def compared_page(made: comparison.Comparison, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield made.report(tmp_path_factory.mktemp("compared") / "compare.html")


@needs_browser
class TestInBrowser:
    def test_charts_are_drawn_and_verdicts_shown(self, browser: Any, compared_page: Path) -> None:
        open_page(browser, compared_page)
        assert browser.get_log("browser") == []
        names = "return [...document.querySelectorAll('.plot')].map(p => [p.id, p.fanin.curves().map(c => c[0])])"
        drawn = dict(script(browser, names))
        assert drawn["cdf"] == drawn["slowdown-p99"] == ["k65", "k20"]
        assert {"fct-p50", "fct-p99", "queue", "throughput"} <= set(drawn)
        shown = "return [...document.querySelectorAll('td.verdict.good')].map(c => [c.firstChild.data, c.children[1].textContent])"
        assert script(browser, shown) == [["mostly better", "mean: judged from 99 seeds on"]] * 2
        colors = "return ['h2', '.verdict.good'].map(s => getComputedStyle(document.querySelector(s)).color)"
        light = script(browser, colors)
        assert [entry for entry in script(browser, CONTRAST) if entry[0] < 4.5] == []
        browser.find_element("id", "theme").click()
        assert all(one != two for one, two in zip(light, script(browser, colors), strict=True))
        assert [entry for entry in script(browser, CONTRAST) if entry[0] < 4.5] == []

    def test_a_phone_scrolls_tables_and_not_the_page(self, browser: Any, compared_page: Path) -> None:
        narrow = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", narrow)
        try:
            open_page(browser, compared_page)
            assert script(browser, "return [document.documentElement.scrollWidth, window.innerWidth]") == [360, 360]
        finally:
            browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
