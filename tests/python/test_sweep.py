"""Sweeps are run, interrupted, repeated, shared: nothing is lost, nothing is there twice."""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fanin
import real_seeds
from fanin import statistics
from fanin.results import ResultError
from fanin.results.folder import OutputError
from fanin.results.progress import fraction as fraction_of
from fanin.statistics import metrics
from fanin.statistics.rows import MetricRow, rows, value_of
from fanin.sweep import axes, estimate, plan, points, running, todo
from fanin.sweep._worker import Outcome
from fanin.sweep.progress import Progress, SweepState, remaining, span
from fanin.sweep.store import LocalStore, StoreError, Writer, opened, run_schema
from fanin.sweep.workers import Item, Pool
from fanin.text import show
from sweeping import TOML, children, command, finished, killed, run, same, swept

ROOT = Path(__file__).parents[2]
GRID = {"seeds": 3, "grid": {"switch.marking.k": ["5 packets", "20 packets"], "traffic[0].size": ["10KB", "20KB"]}}
KILLS = int(os.environ.get("FANIN_SWEEP_KILLS", "8"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> fanin.Sweep:
    return run(tmp_path_factory.mktemp("whole") / "out", GRID)


def file_of(folder: Path, table: str) -> Path:
    path = folder / "sweep.toml"
    path.write_text(TOML + table)
    return path


MANY = """[sweep]
seeds = 60
[sweep.grid]
"switch.marking.k" = ["2 packets", "5 packets", "10 packets", "20 packets", "40 packets"]
"""


def test_every_point_is_run_with_every_seed(whole: fanin.Sweep) -> None:
    runs = whole.runs
    assert (whole.complete, whole.planned, runs.height, whole.failed.height) == (True, 12, 12, 0)
    assert whole.axes == ("switch.marking.k", "traffic[0].size")
    assert runs.group_by("switch.marking.k", "traffic[0].size").len()["len"].to_list() == [3] * 4
    assert runs["switch.marking.k [packets]"].dtype == pl.Float64
    assert runs["run"].n_unique() == runs["fingerprint"].n_unique() == 12
    assert set(runs["version"]) == {fanin.__version__}


def test_a_row_is_what_a_run_by_itself_says(whole: fanin.Sweep, tmp_path: Path) -> None:
    row = whole.runs.filter(
        (pl.col("seed") == 2) & (pl.col("switch.marking.k") == "5 packets") & (pl.col("traffic[0].size") == "20KB")
    )
    changes: dict[str, Any] = {"seed": 2, "switch.marking.k": "5 packets", "traffic[0].size": "20KB"}
    scenario = fanin.Scenario(swept()).replace({**changes, "sweep": None})
    alone = fanin.run(scenario, tmp_path / "out", progress=False)
    for name in ("scenario_hash", "fingerprint", "sim_ps", "packet_hops"):
        assert row[name].item() == alone.manifest[name], name
    assert (
        whole.values("fct/all.p99_ps").filter(pl.col("run") == row["run"].item())["value"].item()
        == alone.summary["fct"][0]["p99_ps"]
    )
    mine = whole.metrics.filter(pl.col("run") == row["run"].item())
    assert mine.filter(pl.col("group") == "total")["marks"].item() == alone.summary["marks"] > 0
    assert mine.filter(pl.col("group") == "port").height == len(alone.summary["ports"])


@pytest.mark.parametrize("name", ["incast", "all-reduce", "roce"])
def test_a_summary_without_records_is_that_of_the_result_folder(name: str, tmp_path: Path) -> None:
    base = fanin.Scenario.from_file(ROOT / "scenarios" / f"{name}.toml")
    changes: dict[str, Any] = {"incast": {"traffic[0].size": "20KB"}, "roce": {"duration": "300us"}}.get(name, {})
    if name == "all-reduce":
        changes = {"duration": "300us"}
    scenario = base.replace({**changes, "telemetry.queues": ["*"], "telemetry.hosts": ["h0"]})
    text, kind = scenario.source()
    found = fanin._core.summarize(text, kind, str(scenario.base_dir), None)
    result = fanin.run(scenario, tmp_path / "out", progress=False)
    assert found["summary"] == result.summary
    assert {key: found[key] for key in ("scenario_hash", "fingerprint", "sim_ps", "packet_hops")} == {
        key: result.manifest[key] for key in ("scenario_hash", "fingerprint", "sim_ps", "packet_hops")
    }
    assert {row[0] for row in rows(found["summary"])} >= {"total", "fct", "port"}


def test_a_repeated_sweep_runs_nothing_and_a_larger_one_only_what_is_new(whole: fanin.Sweep, tmp_path: Path) -> None:
    first = run(tmp_path / "out", {**GRID, "seeds": 1})
    assert first.runs.height == 4
    segments = sorted((tmp_path / "out" / "runs").iterdir())
    again = run(tmp_path / "out", {**GRID, "seeds": 1})
    assert sorted((tmp_path / "out" / "runs").iterdir()) == segments
    same(first, again)
    same(run(tmp_path / "out", GRID), whole)
    assert len(list((tmp_path / "out" / "runs").iterdir())) == len(segments) + 1


def test_runs_made_before_an_axis_was_there_have_its_value(tmp_path: Path) -> None:
    run(tmp_path / "out", {"seeds": 2})
    wider = run(tmp_path / "out", {"seeds": 2, "grid": {"switch.marking.k": ["20 packets", "5 packets"]}})
    assert wider.runs["switch.marking.k"].null_count() == 0
    assert wider.runs.height == 4
    assert set(wider.values("total.marks").filter(pl.col("switch.marking.k") == "20 packets")["seed"]) == {1, 2}


def test_results_are_those_of_the_plan_alone(tmp_path: Path) -> None:
    values = {"seeds": 2, "grid": {"switch.marking.k": ["20 packets"]}}
    run(tmp_path / "out", values)
    now = run(tmp_path / "out", values | {"grid": {"switch.marking.k": ["5 packets"]}})
    assert (now.runs.height, now.all_runs.height) == (2, 4)
    assert set(now.values("total.marks")["switch.marking.k"]) == {"5 packets"}
    assert set(now.metrics["run"]) == set(now.plan["run"])
    both = run(tmp_path / "out", values | {"grid": {"switch.marking.k": ["5 packets", "20 packets"]}})
    assert both.runs.height == 4 and len(list((tmp_path / "out" / "runs").iterdir())) == 2, "nothing ran again"


def test_results_do_not_depend_on_jobs_or_shards(whole: fanin.Sweep, tmp_path: Path) -> None:
    same(run(tmp_path / "one", GRID, jobs=1), whole)
    for part in ("2/3", "1/3", "3/3"):
        partial = run(tmp_path / "three", GRID, shard=part)
    assert partial.runs.height == 12
    same(partial, whole)
    first = run(tmp_path / "half", GRID, shard="1/2")
    assert (first.runs.height, first.complete, first.pending.height) == (6, False, 6)


def test_shards_write_into_one_store_at_the_same_time(tmp_path: Path) -> None:
    file = file_of(tmp_path, MANY)
    shards = [command("sweep", file, "-o", tmp_path / "out", "--shard", f"{i}/3", "-q", "-j", 1) for i in (1, 2, 3)]
    assert [finished(shard)[0] for shard in shards] == [0, 0, 0]
    sweep = fanin.Sweep(tmp_path / "out")
    assert sweep.complete
    rows_there = sum(pl.read_parquet(path).height for path in (tmp_path / "out" / "runs").iterdir())
    assert rows_there == sweep.runs.height == 300


def test_failed_runs_keep_their_error_and_stop_nothing(tmp_path: Path) -> None:
    table = {"seeds": 2, "grid": {"engine.max_events": [50, 1_000_000]}}
    sweep = run(tmp_path / "out", table)
    assert (sweep.runs.height, sweep.failed.height, sweep.complete) == (4, 2, True)
    assert sweep.failed["engine.max_events"].to_list() == [50, 50]
    assert all("max_events" in error for error in sweep.failed["error"])
    assert sweep.metrics["run"].n_unique() == 2
    assert sweep.values("total.flows").height == 2
    assert run(tmp_path / "out", table).failed["attempt"].to_list() == [1, 1]
    retried = run(tmp_path / "out", table, retry_failed=True)
    assert retried.failed["attempt"].to_list() == [2, 2]
    assert retried.runs.height == 4


def test_a_worker_that_is_killed_fails_its_run_alone(tmp_path: Path) -> None:
    table = {"seeds": 40, "grid": {"traffic[0].size": ["200KB", "100KB"]}}
    victims: list[int] = []

    def kill(state: SweepState) -> None:
        if state["done"] >= 3 and not victims:
            victims.append(children(os.getpid())[0])
            os.kill(victims[0], signal.SIGKILL)

    sweep = run(tmp_path / "out", table, progress=kill)
    assert victims
    assert sweep.complete
    assert sweep.failed.height <= 1, "none, where the worker had just nothing to do"
    assert all("the worker process ended (SIGKILL" in error for error in sweep.failed["error"])
    mended = run(tmp_path / "out", table, retry_failed=True)
    assert (mended.runs.height, mended.failed.height) == (80, 0)


def test_what_a_dying_worker_was_given_besides_goes_to_another(tmp_path: Path) -> None:
    planned = plan.plan(plan.load(swept(seeds=30)))
    texts = [planned.text(one) for one in planned.runs]
    endless = json.loads(texts[12])
    endless["traffic"][0]["size"] = "1TB"
    texts[12] = json.dumps(endless)
    todo = iter([(number, text, None) for number, text in enumerate(texts)])
    ended: dict[int, Outcome] = {}

    def following() -> Item | None:
        return next(todo, None)

    with Pool(1, tmp_path) as pool:

        def done(number: int, outcome: Outcome) -> None:
            assert number not in ended
            ended[number] = outcome
            if number == 11:  # the worker is at the endless one, and was given others behind it
                (worker,) = pool._workers
                assert [number for number, *_ in worker.waiting][:2] == [12, 13]
                worker.process.kill()

        pool.run(following, done, lambda: None)
    assert sorted(ended) == list(range(30))
    assert {number: outcome.error for number, outcome in ended.items() if outcome.error} == {
        12: "the worker process ended (SIGKILL, out of memory?)"
    }


def test_workers_that_cannot_start_are_an_error_and_no_failed_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(RuntimeError, match="a worker process cannot start"):
        run(tmp_path / "out", GRID)
    assert fanin.Sweep(tmp_path / "out").runs.height == 0


def test_killed_at_any_time_nothing_is_lost_and_nothing_there_twice(tmp_path: Path) -> None:
    """``make sweep-kills`` does it a hundred times."""
    file = file_of(tmp_path, MANY.replace("60", "400"))
    clean = fanin.sweep(file, tmp_path / "clean", progress=False)
    chance = random.Random(os.environ.get("FANIN_SWEEP_KILLS_SEED", "1"))

    def begin(out: Path) -> subprocess.Popen[str]:
        return command("sweep", file, "-o", out, "-q", "-j", 2, flush_s=0.05)

    def check(out: Path) -> bool:
        """Look at a store, which can be read at any time; whether it is complete."""
        if not (out / "sweep.json").exists():
            return False
        seen = fanin.Sweep(out)
        assert seen.runs["run"].n_unique() == seen.runs.height
        assert set(seen.metrics["run"]) == set(seen.runs.filter(pl.col("status") == "ok")["run"])
        return seen.complete

    out, began = tmp_path / "out-0", time.monotonic()
    first = begin(out)
    while not list(out.glob("runs/*.parquet")) and first.poll() is None:
        time.sleep(0.01)
    soon = time.monotonic() - began  # how long it takes until there is something, on this machine and today
    killed(first)
    stores = [out]
    for kill in range(1, KILLS):
        process = begin(stores[-1])
        time.sleep(chance.uniform(0, 2.5 * soon))
        killed(process)
        if check(stores[-1]):
            stores.append(tmp_path / f"out-{kill}")
    for out in stores:
        status, _, said = finished(begin(out), timeout=300)
        assert status == 0, said
        assert check(out)
        same(fanin.Sweep(out), clean)
        written = sum(pl.read_parquet(path).height for path in (out / "runs").glob("*.parquet"))
        assert written == clean.planned, "nothing is there twice"
        assert {path.stem for path in (out / "metrics").iterdir()} == {path.stem for path in (out / "runs").iterdir()}


def test_ctrl_c_keeps_what_has_ended(tmp_path: Path) -> None:
    file = file_of(tmp_path, MANY.replace("60", "20000"))
    process = command("sweep", file, "-o", tmp_path / "out", "-q", "-j", 1, flush_s=0.2)
    deadline = time.monotonic() + 120
    while not list((tmp_path / "out").glob("runs/*.parquet")):
        assert process.poll() is None and time.monotonic() < deadline, "no run has ended"
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    status, _, said = finished(process)
    assert status == 130
    assert "the same command goes on from there" in said
    sweep = fanin.Sweep(tmp_path / "out")
    assert 0 < sweep.runs.height < sweep.planned
    assert sweep.failed.height == 0
    assert not sweep.complete


def test_workers_do_not_outlive_a_parent_that_is_killed(tmp_path: Path) -> None:
    file = file_of(tmp_path, MANY.replace("60", "20000"))
    process = command("sweep", file, "-o", tmp_path / "out", "-q", "-j", 2)
    deadline = time.monotonic() + 120
    workers: list[int] = []
    while len(workers) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
        workers = children(process.pid)
    assert len(workers) == 2
    killed(process)
    deadline = time.monotonic() + 30
    while any(Path(f"/proc/{worker}").exists() for worker in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [worker for worker in workers if Path(f"/proc/{worker}").exists()]


def test_a_stop_rule_ends_points_early_and_the_store_is_complete_then(tmp_path: Path) -> None:
    stop = {"metric": "fct/all.mean_ps", "relative_width": 0.002, "statistic": "median"}
    table = {"seeds": 40, "stop": stop, "grid": {"switch.marking.k": ["5 packets", "50 packets"]}}
    sweep = run(tmp_path / "out", table)
    assert sweep.complete
    counts = sweep.runs.group_by("point").len()["len"].to_list()
    assert counts[0] == counts[1] and 10 < counts[0] < 40, "it looks again after the first ten"
    parts = run(tmp_path / "parts", table, shard="1/2")
    assert parts.runs["point"].n_unique() == 1
    assert not parts.complete
    run(tmp_path / "parts", table, shard="2/2")
    same(run(tmp_path / "parts", table), sweep)
    assert run(tmp_path / "out", table).runs.height == sweep.runs.height
    none = run(tmp_path / "none", {**table, "grid": {"engine.max_events": [50]}})
    assert (none.complete, none.failed.height) == (True, 40), "where all runs fail, no interval is ever narrow"
    with pytest.raises(ValueError, match=r"did you mean fct/all\.p99_ps"):
        run(tmp_path / "wrong", {**table, "stop": {**stop, "metric": "fct/all.p9_ps"}})


def test_a_mean_that_takes_more_seeds_than_there_are_stops_nothing(tmp_path: Path) -> None:
    """Its interval is narrow after ten seeds, but means of completion times count from 99 on: intervals of ten hold 91 %."""
    table = {"seeds": 12, "stop": {"metric": "fct/all.mean_ps", "relative_width": 0.05}}
    sweep = run(tmp_path / "out", table)
    assert (sweep.complete, sweep.runs.height) == (True, 12)
    found = statistics.interval(sweep.values("fct/all.mean_ps")["value"].to_list())
    assert found.half_width is not None and 0 < found.half_width < 0.05 * found.mean
    assert points.unreached(sweep, plan.plan(plan.load(swept(**table)))) == [0]


def test_result_folders_are_kept_if_asked_for(tmp_path: Path) -> None:
    table = {"seeds": 2}
    without = run(tmp_path / "out", table)
    with pytest.raises(ResultError, match="--keep"):
        without.result(without.runs["run"][0])
    kept = run(tmp_path / "out", table, keep=True)
    for name, fingerprint in zip(kept.runs["run"], kept.runs["fingerprint"], strict=True):
        result = kept.result(name)
        assert result.manifest["fingerprint"] == fingerprint
        assert result.flows.height == 4
    assert kept.runs["attempt"].to_list() == [2, 2]
    assert run(tmp_path / "out", table, keep=True).runs["attempt"].to_list() == [2, 2]


def test_places_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="is a file"):
        run(tmp_path / "file", GRID)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("x")
    with pytest.raises(OutputError, match=r"holds no sweep \(thesis.tex"):
        run(tmp_path / "other", GRID)
    with pytest.raises(StoreError, match="accepted: a folder, s3://"):
        run("gs://bucket/x", GRID)
    with pytest.raises(ValueError, match="accepted: I/N"):
        run(tmp_path / "out", GRID, shard="0/3")
    with pytest.raises(ValueError, match="jobs: 0"):
        run(tmp_path / "out", GRID, jobs=0)
    with pytest.raises(ValueError, match="with dask a cluster does the work"):
        run(tmp_path / "out", GRID, dask="tcp://127.0.0.1:9")
    with running.taken(LocalStore(tmp_path / "out"), "1of1"), pytest.raises(OutputError, match="is running this sweep there"):
        run(tmp_path / "out", GRID)
    with running.taken(LocalStore(tmp_path / "out"), "1of2"):
        run(tmp_path / "out", {"seeds": 1}, shard="2/2")


def test_stores_that_are_damaged_are_errors_that_name_the_file(tmp_path: Path) -> None:
    with pytest.raises(ResultError, match="holds no sweep"):
        fanin.Sweep(tmp_path)
    run(tmp_path / "out", {"seeds": 1})
    (segment,) = (tmp_path / "out" / "runs").iterdir()
    content = segment.read_bytes()
    segment.write_bytes(content[:100])
    with pytest.raises(StoreError, match=f"runs/{segment.name}: is damaged"):
        _ = fanin.Sweep(tmp_path / "out").runs
    segment.write_bytes(content)
    for text, message in (("{", "is damaged"), ("[]", "is damaged"), ('{"axes": [], "schema": "sweep/9"}', "reads sweep/1")):
        (tmp_path / "out" / "sweep.json").write_text(text)
        with pytest.raises(ResultError, match=message):
            fanin.Sweep(tmp_path / "out")


def test_metrics_without_runs_do_not_count_and_are_cleared(tmp_path: Path) -> None:
    sweep = run(tmp_path / "out", {"seeds": 1})
    (segment,) = (tmp_path / "out" / "metrics").iterdir()
    orphan = segment.with_name("1of1-0-000009.parquet")
    orphan.write_bytes(segment.read_bytes())
    assert sweep.reload().metrics.equals(sweep.metrics)
    run(tmp_path / "out", {"seeds": 1})
    assert not orphan.exists()


def test_of_two_rows_of_a_run_the_good_one_counts(tmp_path: Path) -> None:
    sweep = run(tmp_path / "out", {"seeds": 1})
    (row,) = sweep.runs.iter_rows(named=True)
    writer = Writer(opened(tmp_path / "out"), "9of9", {})
    writer.add({**row, "status": "failed", "attempt": 9, "at": 0}, [("total", None, {"marks": 1})])
    writer.flush()
    twice = sweep.reload()
    assert twice.runs["status"].to_list() == ["ok"]
    assert twice.metrics.filter(pl.col("group") == "total").height == 1


def test_metrics_are_found_by_their_address(whole: fanin.Sweep) -> None:
    names = whole.metric_names()
    assert {"fct/all.p99_ps", "total.goodput_bps", "queries.p99_ps", "marks/threshold.count"} <= set(names)
    assert whole.values("queries.total")["value"].to_list() == [1.0] * 12
    table = whole.table("fct", "all")
    assert table.columns[:4] == ["run", "point", "label", "seed"]
    assert table["flows"].to_list() == [4] * 12
    with pytest.raises(ValueError, match=r"did you mean fct/all\.p99_ps"):
        whole.values("fct/al.p99_ps")
    with pytest.raises(ValueError, match="is no metric"):
        whole.values("p99")
    found: list[MetricRow] = [("total", None, {"marks": 3, "largest_queue_port": "a"}), ("port", "p", {"drops": 1})]
    assert (value_of(found, "total.marks"), value_of(found, "port/q.drops"), value_of(found, "port/p.drops")) == (3.0, None, 1.0)


def test_progress_says_between_what_the_rest_takes() -> None:
    assert remaining((2, 1.0, 0.5), 10, 1.0) is None
    low, high = remaining((100, 100.0, 101.0), 1000, 2.0) or (0, 0)
    assert low < 500 < high < 520
    assert remaining((5, 1.0, 1.0), 0, 1.0) == (0.0, 0.0)
    assert span(None) == "unknown time"
    assert span((100.0, 900.0)) == "2 min to 15 min"
    assert span((3600.0 * 5, 3600.0 * 5.1)) == "5.1 h" or span((18000.0, 18100.0)) == "5.0 h"
    states: list[SweepState] = []
    progress = Progress(7, shown=False, callback=states.append)
    progress.total = 2
    progress.ended(1.0, 10, failed=False)
    progress.ended(None, None, failed=True)
    progress.show()
    assert (states[0]["done"], states[0]["failed"], states[0]["before"], states[0]["packet_hops"]) == (2, 1, 7, 10)


def test_a_dry_run_is_near_what_it_will_be_and_writes_nothing(whole: fanin.Sweep, tmp_path: Path) -> None:
    many = {**GRID, "seeds": 30}
    found = estimate.estimate(plan.plan(plan.load(swept(**many))), tmp_path / "out", jobs=1)
    assert not (tmp_path / "out").exists()
    done = run(tmp_path / "out", many)
    assert found.packet_hops[0] <= done.runs["packet_hops"].sum() <= found.packet_hops[1] <= 1.5 * found.packet_hops[0]
    assert (found.runs, found.before, found.points, found.seeds, found.pilot, found.cut) == (120, 0, 4, 30, 12, False)
    written = sum(path.stat().st_size for path in Path(done.path).rglob("*.parquet"))
    assert found.bytes[0] <= written <= found.bytes[1]
    assert estimate.estimate(plan.plan(plan.load(swept(**GRID))), whole.path).before == 12
    facts = {name: (text, note) for name, text, note in estimate.estimate(plan.plan(plan.load(swept())), None).facts()}
    assert facts["Runs"] == ("1", "1 point × 1 seed") and facts["Time"][1] == "1 run at once"
    assert facts["Estimated"][1] == "one run says nothing of the spread"


def test_a_store_knows_under_which_conditions_it_was_made(whole: fanin.Sweep) -> None:
    made = plan.plan(plan.load(swept(**GRID)))
    assert todo.conditions_of(whole) == made.conditions and made.conditions.outside
    assert whole.document["conditions"]["port_bytes"] == made.conditions.port_bytes < 1e9


def test_what_a_stop_rule_does_not_need_is_not_estimated(tmp_path: Path) -> None:
    stop = {"metric": "fct/all.p99_ps", "relative_width": 9, "statistic": "median"}
    table = {"grid": {"switch.marking.k": ["5 packets", "50 packets"]}, "seeds": 16, "stop": stop}
    made = plan.plan(plan.load(swept(**table)))
    before = estimate.estimate(made, tmp_path / "out")
    assert (before.runs, before.before, before.left, before.upper) == (32, 0, 32, True)
    done = run(tmp_path / "out", table)
    assert (done.complete, done.runs.height) == (True, 20)
    after = estimate.estimate(made, tmp_path / "out")
    assert (after.before, after.left, after.packet_hops, after.pilot) == (20, 0, (0.0, 0.0), 0)
    facts = {name: (text, note) for name, text, note in after.facts()}
    assert facts["Runs"] == ("0", "2 points × 16 seeds, 20 done before, 12 that the stop rule does not need")
    assert (facts["Packet-hops"][1], facts["Estimated"]) == ("", ("nothing is left to run", ""))
    narrow = {**table, "stop": {**stop, "relative_width": 1e-9}}
    assert estimate.estimate(plan.plan(plan.load(swept(**narrow))), tmp_path / "out").left == 12


@pytest.mark.parametrize(
    ("seeds", "jobs", "most"), [(3, 1, 1), (10, 1, 1), (19, 1, 1), (20, 1, 2), (40, 1, 4), (40, 2, 2), (300, 1, 16), (300, 10, 3)]
)
def test_a_pilot_costs_a_tenth_of_the_sweep_at_most(seeds: int, jobs: int, most: int) -> None:
    """However short its runs are: they come one after the other, and those of the sweep some at once."""
    found = estimate.estimate(plan.plan(plan.load(swept(seeds=seeds))), None, jobs=jobs)
    assert (found.left, found.pilot, found.cut, found.jobs) == (seeds, most, False, jobs)
    assert most <= seeds / 10 / jobs or seeds < 10, "a run that ends before anybody could ask how far it is"


def long_runs(seeds: int) -> plan.Plan:
    """Runs of half a second and more."""
    return plan.plan(
        plan.load({**swept(seeds=seeds), "traffic": [{"kind": "incast", "receiver": "h4", "size": "2GB"}], "duration": "6s"})
    )


@pytest.mark.parametrize("seeds", [2, 4])
def test_of_fewer_than_ten_long_runs_the_pilot_runs_a_part_of_one(monkeypatch: pytest.MonkeyPatch, seeds: int) -> None:
    """Until it is as far as a tenth of all of them: 20 % of one of two runs, seen within the tenth of a second between looks."""
    shares: list[float] = []
    known = fraction_of

    def fraction(now: Any) -> float | None:
        shares.append(known(now) or 0.0)
        return shares[-1]

    monkeypatch.setattr("fanin.results.progress.fraction", fraction)
    found = estimate.estimate(long_runs(seeds), None, jobs=1)
    assert (found.pilot, found.cut, found.left) == (1, True, seeds)
    *before, last, told = shares
    assert max(before, default=0.0) < 0.1 * seeds <= last == told < 1
    slowest = max((later - sooner for sooner, later in zip([0.0, *before], [*before, last], strict=True)), default=0.0)
    assert last < 0.1 * seeds + slowest + 1e-9
    assert {name: text for name, text, _ in found.facts()}["Bytes"] == "–", "of no run is it known how large its rows are"


def test_a_long_run_of_a_pilot_is_cut_off_and_extrapolated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate, "PILOT_S", 0.0)
    long = long_runs(1)
    found = estimate.estimate(long, None)
    assert found.cut
    text, base = long.text(long.runs[0]), str(long.base_dir)
    assert found.packet_hops[0] == pytest.approx(fanin._core.summarize(text, "json", base, None)["packet_hops"], rel=0.25)


def test_the_command_says_what_is_there(tmp_path: Path) -> None:
    file = file_of(tmp_path, '[sweep]\nseeds = 2\n[sweep.grid]\n"engine.max_events" = [50, 1000000]\n')
    status, out, said = finished(command("sweep", file, "-o", tmp_path / "out"))
    assert status == 1
    assert "small: 2 of 4 runs, 2 failed" in out and "--retry-failed tries them again" in out
    lines = [line for line in said.splitlines() if line.startswith("error: run ")]
    assert [line.split("(")[1].split(")")[0] for line in lines] == [f"engine.max_events = 50, seed {seed}" for seed in (1, 2)]
    assert all("max_events (50) is reached at" in line and line.endswith(" …") and len(line) < 250 for line in lines)
    whole = fanin.Sweep(tmp_path / "out").failed["error"].to_list()
    assert all(len(error) > 300 for error in whole), "the store has all of it"
    for more, again in (((), []), (("--retry-failed",), lines)):
        status, out, said = finished(command("sweep", file, "-o", tmp_path / "out", *more))
        assert [line for line in said.splitlines() if line.startswith("error: run ")] == again, "each is said when it fails"
        assert (status, "2 of them failed earlier, and were not tried again; " in out) == (1, not more)
    status, out, _ = finished(command("sweep", file, "-o", tmp_path / "out", "--json"))
    found = json.loads(out)
    assert (status, found["planned"], found["done"], found["failed"], found["complete"]) == (1, 4, 2, 2, True)
    status, out, _ = finished(command("sweep", file, "--dry-run", "--json", "--set", "engine.max_events=70"))
    assert json.loads(out)["runs"] == 4
    status, _, said = finished(command("sweep", file))
    assert (status, "-o OUT is missing" in said) == (2, True)
    status, _, said = finished(command("sweep", file, "-o", tmp_path / "new", "--set", "switch.markng.k=3"))
    assert (status, "switch.markng" in said, (tmp_path / "new").exists()) == (2, True, False)


def test_the_command_shows_what_came_out_and_which_points_are_too_wide(tmp_path: Path) -> None:
    grid = '[sweep.grid]\n"switch.marking.k" = ["5 packets", "50 packets"]\n[sweep.set]\n"traffic[0].jitter" = "10us"\n'
    file = file_of(tmp_path, f"[sweep]\nseeds = 2\n{grid}")
    status, out, _ = finished(command("sweep", file, "-o", tmp_path / "out"))
    assert status == 0
    values = fanin.Sweep(tmp_path / "out").values("queries.p99_ps")
    for k in ("5 packets", "50 packets"):
        of = values.filter(pl.col("switch.marking.k") == k)["value"].to_list()
        (line,) = [line for line in out.splitlines() if line.split()[:2] == k.split()]
        assert line.split()[2:5] == ["2", *f"~{show.duration(round(sum(of) / 2))}".split()], "two seeds say nothing of a p99"
        assert line.split()[-2:] == ["0", "%"], "of the runs had timeouts"
    assert "Queries, p99 (queries.p99_ps)" in out
    assert f"fanin compare {tmp_path / 'out'} --by switch.marking.k" in out
    stop = 'stop = { metric = "fct/all.p99_ps", relative_width = 1e-9, at_least = 2 }'
    file.write_text(f"{TOML}[sweep]\nseeds = 3\n{stop}\n{grid}")
    status, out, said = finished(command("sweep", file, "-o", tmp_path / "narrow"))
    wide = "warning: 2 of 2 points did not reach ±1e-07 % of fct/all.p99_ps with 3 seeds, the most that seeds allows"
    assert f"{wide}; such a mean is judged from 99 on" in said
    assert [line.split()[-1] for line in out.splitlines() if re.match(r" \d+ packets ", line)] == ["no", "no"]
    status, out, _ = finished(command("sweep", file, "-o", tmp_path / "narrow", "--json"))
    assert json.loads(out)["unreached"] == 2
    median = stop.replace("1e-9", '9, statistic = "median"')
    file.write_text(f"{TOML}[sweep]\nseeds = 10\n{median}\n{grid}")
    status, out, said = finished(command("sweep", file, "-o", tmp_path / "wide"))
    assert "did not reach" not in said
    assert [line.split()[-1] for line in out.splitlines() if re.match(r" \d+ packets ", line)] == ["yes", "yes"]
    assert "95 % of the median" in " ".join(out.split()), "the interval that decided"


@pytest.mark.parametrize(
    ("table", "by", "variants"),
    [
        ('[sweep.grid]\n"switch.marking.k" = ["5 packets", "50 packets"]\n"traffic[0].size" = ["10KB", "20KB", "30KB"]\n', 1, 2),
        ('[sweep.zip]\n"switch.marking.k" = ["5 packets", "50 packets"]\n"traffic[0].size" = ["10KB", "20KB"]\n', 2, 2),
        ('[[sweep.list]]\nlabel = "a"\n"traffic[0].size" = "10KB"\n[[sweep.list]]\nlabel = "b"\n"traffic[0].size" = "9KB"\n', 1, 2),
    ],
)
def test_the_comparison_that_the_command_names_works(tmp_path: Path, table: str, by: int, variants: int) -> None:
    file = file_of(tmp_path, f"[sweep]\nseeds = 2\n{table}")
    status, out, _ = finished(command("sweep", file, "-o", tmp_path / "out of it"))
    words = shlex.split(out.split("all metrics, judged: ")[1].splitlines()[0])
    assert (status, words[:2], words.count("--by")) == (0, ["fanin", "compare"], by)
    status, out, said = finished(command(*words[1:], "--json"))
    assert status == 0, said
    assert len(json.loads(out)["variants"]) == variants


def test_the_comparison_that_the_command_names_is_where_runs_ended_well(tmp_path: Path) -> None:
    grid = '"switch.marking.k" = ["5 packets", "50 packets"]\n"engine.max_events" = [50, 1000000]\n'
    status, out, _ = finished(
        command("sweep", file_of(tmp_path, f"[sweep]\nseeds = 2\n[sweep.grid]\n{grid}"), "-o", tmp_path / "out")
    )
    words = shlex.split(out.split("all metrics, judged: ")[1].splitlines()[0])
    assert (status, words[-1]) == (1, "engine.max_events=1000000"), "at the first value all runs fail"
    status, _, said = finished(command(*words[1:], "--json"))
    assert status == 0, said


def test_a_point_that_is_too_wide_says_how_many_seeds_would_do(tmp_path: Path) -> None:
    table = {"seeds": 120, "stop": {"metric": "total.goodput_bps", "relative_width": 0.0002}, "set": {"traffic[0].jitter": "10us"}}
    sweep, made = run(tmp_path / "out", table), plan.plan(plan.load(swept(**table)))
    (found,) = points.found(sweep, made, "total.goodput_bps")
    assert found.interval is not None and found.interval.half_width is not None and found.interval.flag is None
    exact = 120 * (found.interval.half_width / (0.0002 * found.interval.mean)) ** 2
    wanted = points.seeds_wanted(sweep, made)
    assert wanted is not None and 120 < exact <= wanted < 1.1 * exact
    _, _, said = finished(command("sweep", sweep_file(tmp_path, table), "-o", tmp_path / "out"))
    assert f"with 120 seeds, the most that seeds allows; by their widths, some {wanted:,} would do" in said
    for other in ({"metric": "total.goodput_bps", "relative_width": 0.0002, "statistic": "median"}, None):
        asked = {"seeds": 120} if other is None else {"seeds": 120, "stop": other}
        assert points.seeds_wanted(sweep, plan.plan(plan.load(swept(**asked)))) is None


def sweep_file(folder: Path, table: dict[str, Any]) -> Path:
    path = folder / "sweep.json"
    path.write_text(json.dumps(swept(**table)))
    return path


def test_one_point_is_compared_with_nothing(tmp_path: Path) -> None:
    file = file_of(tmp_path, '[sweep]\nseeds = 2\n[sweep.grid]\n"switch.marking.k" = ["5 packets"]\n')
    status, out, _ = finished(command("sweep", file, "-o", tmp_path / "out"))
    assert status == 0 and "fanin compare" not in out


def test_the_page_names_every_key_and_every_column(whole: fanin.Sweep) -> None:
    page = (ROOT / "docs" / "sweeps.md").read_text(encoding="utf-8")
    keys, runs, metrics = (page.split(head)[1].split("\n#")[0] for head in ("## What is varied", "### runs", "### metrics"))
    assert {key for key in axes._KEYS if f"`{key}`" not in keys} == set()
    assert {name for name in run_schema() if f"`{name}`" not in runs} == set()
    prefixes = ("datagrams_", "largest_queue_", "slowdown_")
    columns = {name for name in whole.metrics.columns if not name.startswith(prefixes)}
    assert {name for name in columns if f"`{name}`" not in metrics} == set()


@pytest.mark.skipif(find_spec("optuna") is None, reason="optuna is not installed: make test")
def test_optuna_asks_and_is_told(tmp_path: Path) -> None:
    example = ROOT / "examples" / "optuna_marking.py"
    lines = [line for line in example.read_text(encoding="utf-8").split('"""')[2].splitlines() if line and "import" not in line]
    assert len(lines) <= 16
    done = subprocess.run([sys.executable, str(example), "3"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.count(" packets: ") == 3
    best = min(float(line.split()[-2]) for line in done.stdout.splitlines()[:3])
    assert done.stdout.splitlines()[-1].endswith(f"packets, {best:.3f} ms")
    store = fanin.Sweep(tmp_path / "out" / "optuna")
    assert (store.runs.height, store.all_runs.height) == (5, 15)


def test_what_the_page_shows_of_the_example_is_what_its_runs_give(tmp_path: Path) -> None:
    """Its 600 runs are in the stored values; twelve of them are run again, which shows that these are what it gives now."""
    example = ROOT / "examples" / "sweep-marking.toml"
    made = plan.plan(plan.load(example))
    asked = tomllib.loads(example.read_text(encoding="utf-8"))["sweep"]
    scenario = fanin.Scenario.from_file(example.parent / asked["scenario"])
    again = fanin.sweep(
        scenario, tmp_path / "out", design={"seeds": 2, **{key: asked[key] for key in ("set", "grid")}}, progress=False
    )
    page = (ROOT / "docs" / "sweeps.md").read_text(encoding="utf-8")
    shown = [re.split(r"\s{2,}", line.strip()) for line in page.splitlines() if re.match(r" \d+ packets  ", line)]
    assert len(shown) == len(made.points) == 6
    known = metrics.METRICS["queries.p99_ps"]
    for line, planned in zip(shown, made.points, strict=True):
        k, load = planned.point.values.values()
        at = (32, load, k)
        values = real_seeds.values("chosen", known.key, *at)
        rerun = again.values(known.key).filter((pl.col("switch.marking.k") == k) & (pl.col("traffic[0].load") == load)).sort("seed")
        assert rerun["value"].to_list() == pytest.approx(values[:2], rel=1e-6)
        own = statistics.interval(values[:100])
        late = (real_seeds.values("chosen", "total.timeouts", *at)[:100] > 0).mean()
        ends = [f"{known.text(low)} to {known.text(high)}" for low, high in ((own.low, own.high), (own.least, own.most))]
        told = [known.text(own.mean), ends[0], known.text(own.median), ends[1], f"{100 * late:.0f} %", "no"]
        assert line == [k, str(load), "100", *told]


def test_the_sweep_that_is_shipped_is_sound() -> None:
    made = plan.plan(plan.load(ROOT / "examples" / "sweep-marking.toml"))
    assert (len(made.points), len(made.runs)) == (6, 600)


def test_the_package_can_be_called_however_it_was_imported() -> None:
    code = (
        "import fanin.sweep.plan, fanin; from fanin.sweep import Sweep, sweep\n"
        "assert callable(fanin.sweep) and fanin.Sweep is Sweep\nprint(fanin.sweep.sweep is sweep)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "True\n"
