"""One run on several threads: the same bytes, an honest manifest, and errors that say what is accepted."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import fanin
from fanin.cli import app

FABRIC: dict[str, Any] = {
    "seed": 3,
    "duration": "2ms",
    "topology": {
        "kind": "leaf_spine",
        "leaves": 4,
        "hosts_per_leaf": 4,
        "spines": 2,
        "host_link": {"rate": "10Gbps", "delay": "1us"},
        "uplink": {"rate": "40Gbps", "delay": "2us"},
    },
    "switch": {
        "buffer": {"kind": "dynamic", "total": "60KB", "alpha": 1.0},
        "marking": {"kind": "threshold", "k": "20 packets", "at": "dequeue"},
    },
    "transport": {"kind": "tcp", "congestion_control": "dctcp", "rto_min": "1ms", "rto_initial": "1ms"},
    "traffic": [
        {"kind": "poisson", "sizes": "web-search", "load": 0.6},
        {"kind": "query", "fanout": 8, "size": "20KB", "per_second": 2000},
    ],
    "telemetry": {"sample": "20us", "queues": ["*->h3", "leaf0->*"]},
}
JOBS = {
    **FABRIC,
    "traffic": [
        {"kind": "collective", "operations": [{"kind": "all_reduce", "size": "100KB"}], "iterations": 3},
        {"kind": "incast", "name": "rounds", "receiver": "h5", "size": "20KB", "repetitions": 3, "gap": "5us"},
        {"kind": "query", "fanout": 4, "size": "5KB", "per_second": 2000, "aggregate": {"size": "1KB"}},
        {"kind": "permutation", "size": "50KB", "after": ["rounds"]},
    ],
    "telemetry": {
        **FABRIC["telemetry"],
        "keep": {"kind": "last", "records": 50},
        "capture": {"hosts": ["h3"], "links": ["spine0->*"]},
    },
}
FOLLOWED = {**FABRIC, "duration": "100us", "telemetry": {"hosts": ["h3"]}}


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "manifest.json"}


def were_taken(threads: dict[str, Any], asked: int) -> bool:
    """Return whether as many threads were taken as were asked for, or as there are cores, which is said."""
    cores = len(os.sched_getaffinity(0))
    if asked <= cores:
        return threads == {"count": asked}
    return threads == {"count": cores, "why": f"{asked} were asked for, and there are {cores} cores"}


def test_all_files_are_the_same_bytes_and_the_manifest_but_for_what_it_cost(tmp_path: Path) -> None:
    results = {n: fanin.run(FABRIC, tmp_path / str(n), threads=n, progress=False) for n in (1, 2, 3, 4)}
    expected = files(tmp_path / "1")
    assert {"flows.parquet", "queries.parquet", "ports.parquet", "queues.parquet", "drops.parquet", "summary.json"} <= set(expected)
    assert results[1].summary["drops"] > 0 and results[1].summary["marks"] > 0
    for n in (2, 3, 4):
        assert files(tmp_path / str(n)) == expected
        manifest, one = dict(results[n].manifest), dict(results[1].manifest)
        assert were_taken(manifest.pop("threads"), n)
        for key in ("threads", "wall_s", "cpu_s", "events"):
            manifest.pop(key, None)
            one.pop(key)
        assert manifest == one


def test_what_follows_completions_is_the_same_bytes(tmp_path: Path) -> None:
    results = {n: fanin.run(JOBS, tmp_path / str(n), threads=n, progress=False) for n in (1, 2, 4)}
    expected = files(tmp_path / "1")
    assert {"collectives.parquet", "queries.parquet", "queues.parquet", "packets.pcapng"} <= set(expected)
    assert results[1].summary["collectives"][0]["iterations"]["complete"] == 3
    for n in (2, 4):
        assert were_taken(results[n].manifest["threads"], n)
        assert files(tmp_path / str(n)) == expected


def test_what_stays_on_one_thread_says_why(tmp_path: Path) -> None:
    result = fanin.run(FOLLOWED, tmp_path / "out", threads=4, progress=False)
    why = "telemetry.hosts and telemetry.messages follow packets through the whole network"
    assert result.manifest["threads"] == {"count": 1, "why": why}
    shown = CliRunner().invoke(app, ["run", str(scenario(tmp_path, FOLLOWED)), "-o", str(tmp_path / "two"), "--threads", "2"])
    assert shown.exit_code == 0
    assert f"on 1 thread: {why}" in " ".join(shown.output.split())


@pytest.mark.parametrize(
    ("telemetry", "why"),
    [
        ({"hosts": ["h3"]}, "telemetry.hosts and telemetry.messages follow packets through the whole network"),
        ({"messages": ["h3"]}, "telemetry.hosts and telemetry.messages follow packets through the whole network"),
    ],
)
def test_records_of_the_whole_network_keep_a_run_on_one_thread(telemetry: dict[str, Any], why: str) -> None:
    short = {**FABRIC, "duration": "100us", "telemetry": telemetry}
    assert fanin.run(short, threads=2, progress=False).manifest["threads"] == {"count": 1, "why": why}


def scenario(folder: Path, document: dict[str, Any]) -> Path:
    path = folder / "scenario.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_the_command_takes_a_number_or_auto(tmp_path: Path) -> None:
    path = scenario(tmp_path, FABRIC)
    for asked in ("2", "auto"):
        done = CliRunner().invoke(app, ["run", str(path), "-o", str(tmp_path / asked), "--threads", asked, "-q"])
        assert done.exit_code == 0, done.output
    assert were_taken(fanin.load(tmp_path / "2").manifest["threads"], 2)
    chosen = fanin.load(tmp_path / "auto").manifest["threads"]
    assert chosen["count"] >= 1
    assert files(tmp_path / "2") == files(tmp_path / "auto")


@pytest.mark.parametrize("asked", ["65", "0", "-1", "many"])
def test_other_numbers_are_refused_with_what_is_accepted(tmp_path: Path, asked: str) -> None:
    said = f"threads: {asked} is not accepted; accepted: 1 to 64, or auto, which takes as many as pay"
    done = CliRunner().invoke(app, ["run", str(scenario(tmp_path, FABRIC)), "-o", str(tmp_path / "out"), f"--threads={asked}"])
    assert (done.exit_code, " ".join(done.output.split())) == (2, f"error: {said}")
    with pytest.raises(ValueError, match=f"^{said}$"):
        fanin.run(FABRIC, tmp_path / "out", threads=asked, progress=False)  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


def test_threads_are_no_part_of_the_resolved_scenario() -> None:
    one, many = fanin.Scenario(FABRIC), fanin.Scenario({**FABRIC, "engine": {"threads": 4}})
    assert one.resolved == many.resolved
    assert "threads" not in one.resolved["engine"]


def test_an_interrupted_run_says_so_and_keeps_what_there_is(tmp_path: Path) -> None:
    def stop(state: fanin.ProgressState) -> None:
        raise KeyboardInterrupt

    long = {**FABRIC, "duration": "200ms", "telemetry": {"sample": "off"}}
    with pytest.raises(KeyboardInterrupt):
        fanin.run(long, tmp_path / "out", threads=2, progress=stop)
    result = fanin.load(tmp_path / "out")
    assert (result.manifest["status"], result.manifest["reason"]) == ("partial", "interrupted")
    assert 0 < result.manifest["sim_ps"] < 200e9


def test_runs_of_a_sweep_may_have_threads_and_are_the_same(tmp_path: Path) -> None:
    design = {"seeds": 2, "grid": {"switch.marking.k": ["10 packets", "20 packets"]}}
    one = fanin.sweep(FABRIC, tmp_path / "one", design=design, jobs=2, progress=False)
    two = fanin.sweep(FABRIC, tmp_path / "two", design=design, threads_per_run=2, keep=True, progress=False)
    columns = ["run", "status", "scenario_hash", "fingerprint"]
    assert two.runs.select(columns).sort("run").equals(one.runs.select(columns).sort("run"))
    kept = [fanin.load(folder) for folder in sorted((tmp_path / "two" / "results").iterdir())]
    assert [were_taken(result.manifest["threads"], 2) for result in kept] == [True] * 4
    done = CliRunner().invoke(app, ["sweep", "x.toml", "-o", str(tmp_path / "out"), "--threads-per-run", "65"])
    assert done.exit_code == 2
    with pytest.raises(ValueError, match="threads per run: 65 is out of range; accepted: 1 to 64"):
        fanin.sweep(FABRIC, tmp_path / "three", design=design, threads_per_run=65, progress=False)
