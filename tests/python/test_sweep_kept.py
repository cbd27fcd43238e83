"""Result folders that a sweep keeps, what only they have, and a dry run with each option."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fanin
from fanin.comparison.variants import CompareError
from fanin.results import Result
from fanin.statistics import metrics
from fanin.sweep import _worker, estimate, plan, running
from fanin.sweep._worker import Keep
from fanin.sweep.store import LocalStore, kept_results, result_name
from sweeping import BASE, command, finished, run, swept

K: dict[str, Any] = {"grid": {"switch.marking.k": ["2 packets", "20 packets"]}, "seeds": 2}
SAMPLED: dict[str, Any] = {**K, "set": {"telemetry.sample": "10us"}}


def planned(**table: Any) -> plan.Plan:
    return plan.plan(plan.load(swept(**table)))


def facts(found: dict[str, float]) -> dict[str, float]:
    return {key: found[key] for key in metrics.METRICS if key in found}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> fanin.Sweep:
    return run(tmp_path_factory.mktemp("kept") / "out", SAMPLED, keep=True)


def test_the_store_of_a_kept_sweep_has_the_numbers_of_its_result_folders(kept: fanin.Sweep) -> None:
    """One mapping: what `fanin compare` says of a sweep is what it says of the folders."""
    names = set(kept.metric_names())
    assert {"queue/to_hosts.p99_bytes", "queue/to_hosts.max_bytes", "fct/all.p99_ps", "total.goodput_bps"} <= names
    for run_, result in kept.kept.items():
        own = metrics.values(Result(result))
        stored = {key: dict(kept.values(key).select("run", "value").iter_rows())[run_] for key in own}
        assert own == pytest.approx(stored)
        assert {key for key in names if metrics.of(key) is not None} == set(own)
    assert kept.metrics.filter(pl.col("group") == "total").height == 4, "a row for each run"


def test_pauses_of_a_kept_sweep_are_counted(tmp_path: Path) -> None:
    lossless = {
        **BASE,
        "topology": {**BASE["topology"], "hosts": 9},
        "switch": {"mechanisms": {"pfc": {"memory": "500KB", "classes": [0], "xoff": {"kind": "static", "bytes": "10KB"}}}},
        "transport": {"kind": "tcp", "congestion_control": "reno", "initial_window": 30},
        "traffic": [{"kind": "incast", "receiver": "h8", "size": "200KB"}],
    }
    with_pauses = fanin.sweep(lossless, tmp_path / "out", design={"seeds": 2}, keep=True, progress=False, jobs=1)
    assert with_pauses.failed.height == 0, with_pauses.failed["error"].to_list()
    paused = with_pauses.values("total.pauses")["value"]
    for row in with_pauses.runs.iter_rows(named=True):
        assert with_pauses.result(row["run"]).pauses.height in paused.to_list()
    assert paused.min() > 0  # type: ignore[operator]


def test_what_only_result_folders_have_says_so(tmp_path: Path, kept: fanin.Sweep) -> None:
    without = run(tmp_path / "out", SAMPLED)
    needs = r"it is made of recorded tables: it needs samples of all ports \(telemetry\.sample\), and fanin sweep --keep"
    with pytest.raises(ValueError, match=needs):
        without.values("queue/to_hosts.p99_bytes")
    with pytest.raises(ValueError, match=needs):
        run(tmp_path / "stop", {**SAMPLED, "seeds": 12, "stop": {"metric": "queue/to_hosts.p99_bytes", "relative_width": 0.1}})
    with pytest.raises(
        CompareError, match=r"no run has it; it needs samples of all ports \(telemetry\.sample\), and in a sweep --keep"
    ):
        without.compare("switch.marking.k", metric="queue/to_hosts.p99_bytes")
    assert kept.compare("switch.marking.k", metric="queue/to_hosts.p99_bytes").rows[0].cells[1].interval is not None


def test_a_sweep_compares_its_variants(kept: fanin.Sweep) -> None:
    some = kept.compare("switch.marking.k", seeds=[1], alpha=0.01, margin=0.1, confidence=0.9, looks=2)
    assert (some.alpha, some.margin, some.confidence, some.looks, some.base.seeds) == (0.01, 0.1, 0.9, 2, (1,))
    with pytest.raises(TypeError, match="alhpa"):
        kept.compare("switch.marking.k", alhpa=0.01)
    found = kept.compare("switch.marking.k", base="k=20 packets", metric=["fct/all.p99_ps"])
    assert [variant.name for variant in found.variants] == ["k=20 packets", "k=2 packets"]
    assert found.to_dict() == fanin.compare(kept, by="switch.marking.k", base="k=20 packets", metric="fct/all.p99_ps").to_dict()
    one = kept.compare(by="switch.marking.k", metric="fct").variants[0].runs[0]
    assert Path(one.origin).is_dir() and one.result is not None and one.result().path == Path(one.origin)
    with pytest.raises(CompareError, match="is no axis"):
        kept.compare("switch.marking.j")


def test_an_unfinished_sweep_is_compared_with_a_warning_of_what_is_missing(tmp_path: Path) -> None:
    """Two seeds of two values are there; six of three are asked for."""
    made = run(tmp_path / "out", K)
    assert not any("not finished" in line for line in fanin.compare(made, by="switch.marking.k").warnings)
    larger = {"grid": {"switch.marking.k": ["2 packets", "20 packets", "50 packets"]}, "seeds": 6}
    running._describe(LocalStore(tmp_path / "out"), planned(**larger))
    found = made.reload().compare("switch.marking.k")
    assert [(variant.name, len(variant.runs), variant.missing) for variant in found.variants] == [
        ("k=2 packets", 2, 4),
        ("k=20 packets", 2, 4),
    ]
    said = (
        "the sweep is not finished, runs are missing: k=2 packets 4 of 6; k=20 packets 4 of 6; k=50 packets all 6; numbers and "
        "verdicts are of what has ended, and whoever compares again when more has, looks twice"
    )
    assert found.warnings[0] == said
    assert [variant["missing"] for variant in found.to_dict()["variants"]] == [4, 4]
    assert said in found._repr_html_() and said in found.report(tmp_path / "page.html").read_text(encoding="utf-8")
    status, out, told = finished(command("compare", tmp_path / "out", "--by", "switch.marking.k"))
    assert status == 0 and f"warning: {said}" in told and "k=20 packets against k=2 packets" in out
    ruled = planned(**larger, stop={"metric": "total.goodput_bps", "relative_width": 0.5})
    running._describe(LocalStore(tmp_path / "out"), ruled)
    assert (
        "k=50 packets all 6; and what its stop rule asks for then; numbers" in made.reload().compare("switch.marking.k").warnings[0]
    )
    # One with a stop rule needs no more than the rule does.
    stop = {"metric": "total.goodput_bps", "relative_width": 0.5, "statistic": "median"}
    ended = run(tmp_path / "stopped", {**K, "seeds": 40, "stop": stop})
    assert ended.complete and ended.runs.height < 80 and ended.plan.height == 80
    assert not any("not finished" in line for line in ended.compare("switch.marking.k").warnings)


def test_two_writers_of_one_run_leave_one_whole_folder(tmp_path: Path) -> None:
    """Shards of different plans may hold the same run: each writes beside the other, and both put it into its place."""
    text, target = json.dumps({**BASE, "seed": 1}), tmp_path / "results" / "ab12"
    target.parent.mkdir()
    outcomes: list[_worker.Outcome] = []

    def write(writer: str) -> None:
        for _ in range(8):
            outcomes.append(_worker.simulate(text, str(tmp_path), Keep(str(target), f".fanin-part-{writer}-ab12-")))

    threads = [threading.Thread(target=write, args=(writer,)) for writer in ("1of2", "1of3", "1of4")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [outcome.error for outcome in outcomes if outcome.error] == []
    assert [entry.name for entry in target.parent.iterdir()] == ["ab12"]
    assert Result(target).complete


def test_what_a_killed_writer_left_of_result_folders_is_cleared(tmp_path: Path) -> None:
    run(tmp_path / "out", K, keep=True)
    mine, other = (tmp_path / "out" / "results" / f".fanin-part-{writer}-ab-12" for writer in ("1of1", "1of2"))
    for folder in (mine, other):
        folder.mkdir()
    assert len(run(tmp_path / "out", K, keep=True).kept) == 4
    assert (mine.exists(), other.exists()) == (False, True), "another shard's may be under way"


def test_result_folders_are_named_by_label_and_seed(tmp_path: Path) -> None:
    table = {"list": [{"label": "K 2/packets", "switch.marking.k": "2 packets"}], "seeds": [7]}
    found = run(tmp_path / "out", table, keep=True)
    (key,) = found.runs["run"]
    assert found.result(key).path.name == f"K_2_packets-seed7-{key}"
    assert result_name(key, None, 7) == key
    assert kept_results(LocalStore(tmp_path / "nothing")) == {}


def test_a_dry_run_counts_what_options_ask_for(tmp_path: Path) -> None:
    table = {"grid": {"engine.max_events": [50, 1_000_000]}, "seeds": 2}
    run(tmp_path / "out", table)
    made = planned(**table)
    assert estimate.estimate(made, tmp_path / "out").before == 4
    assert estimate.estimate(made, tmp_path / "out", retry_failed=True).before == 2
    again = estimate.estimate(made, tmp_path / "out", keep=True)
    assert again.before == 2, "good runs without a result folder are made again"
    plain, folders = (estimate.estimate(planned(**K), None, keep=keep) for keep in (False, True))
    assert folders.bytes[0] > plain.bytes[0] + 2 * 3000 and folders.bytes[1] > plain.bytes[1] + 2 * 3000
    assert tuple(note for name, _, note in folders.facts() if name == "Bytes") == ("of the tables and result folders, on disk",)
    written = sum(path.stat().st_size for path in Path(run(tmp_path / "kept", K, keep=True).path).rglob("*") if path.is_file())
    assert folders.bytes[0] < written < 1.2 * folders.bytes[1]


def test_a_dry_run_refuses_what_a_sweep_refuses() -> None:
    made = planned(seeds=1)
    with pytest.raises(ValueError, match="jobs: 0"):
        estimate.estimate(made, None, jobs=0)
    with pytest.raises(ValueError, match="with dask a cluster does the work"):
        estimate.estimate(made, None, jobs=2, dask="tcp://127.0.0.1:9")


def test_a_dry_run_asks_the_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fanin.sweep import dask

    monkeypatch.setattr(dask, "threads", lambda address: 3 if address == "tcp://here:1" else 0)
    assert estimate.estimate(planned(**K), tmp_path / "out", dask="tcp://here:1").jobs == 3


def test_the_command_passes_options_to_its_dry_run(tmp_path: Path) -> None:
    file = tmp_path / "sweep.json"
    file.write_text(json.dumps(swept(grid={"engine.max_events": [50, 1_000_000]})))
    finished(command("sweep", file, "-o", tmp_path / "out", "-q"))
    for options, before in (((), 2), (("--retry-failed",), 1), (("--keep",), 1)):
        _, out, said = finished(command("sweep", file, "-o", tmp_path / "out", "--dry-run", "--json", *options))
        assert json.loads(out)["before"] == before, said
    status, _, said = finished(command("sweep", file, "--dry-run", "--jobs", "0"))
    assert (status, "jobs: 0 is out of range" in said) == (2, True)
