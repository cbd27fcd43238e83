"""Paired rounds with another simulator: a stand-in plays its part, so that neither ns-3 nor htsim is needed."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.testing import CliRunner

from fanin import benchmark
from fanin.cli import app

ROOT = Path(__file__).parents[2]

# A peer that crosses a million links in a second, or in two when it counts; a job of two lines is one that it cannot end.
STAND_IN = """#!{python}
import json, sys
job = open(sys.argv[1]).read()
timed = "option count off" in job
finish = {drift} if timed else 7
totals = {{"packet_hops": None if timed else 1_000_000, "cpu_s": 1.0 if timed else 2.0, "unfinished": {unfinished}}}
totals |= {{"peak_rss_mb": 5.0, "sim_s": 0.5}}
print(json.dumps({{"flows": [{{"finish_ps": finish}}], "totals": totals}}))
"""


def stand_in(path: Path, *, drift: int = 7, unfinished: int = 0) -> Path:
    path.write_text(STAND_IN.format(python=sys.executable, drift=drift, unfinished=unfinished))
    path.chmod(0o755)
    return path


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Fanin crosses two million links in a tenth of a second; who ran is noted."""
    ran: list[str] = []
    run = benchmark._run

    def pretend(command: list[str]) -> dict[str, Any]:
        if "_core.so" not in command:
            ran.append("peer" if command[-1].endswith("timing.job") else "counting")
            return run(command)
        ran.append(f"fanin {command[-2]} {command[-1]}")
        return {"packet_hops": 2_000_000, "cpu_s": 0.1, "peak_rss_mb": 20.0, "sim_s": 0.5}

    monkeypatch.setattr(benchmark, "_run", pretend)
    monkeypatch.setattr(benchmark, "_command", lambda workload, scale: ["_core.so", workload, repr(scale)])
    output = benchmark._output
    monkeypatch.setattr(benchmark, "_output", lambda command: "a job\n" if "make" in command else output(command))
    return ran


def bench(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"}).invoke(app, ["bench", *arguments])
    return done.exit_code, done.stdout, done.stderr


def test_rounds_are_paired_and_who_goes_first_alternates(ours: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTSIM_PEER", str(stand_in(tmp_path / "peer")))
    status, said, noted = bench("W2-1024", "--beside", "htsim", "--rounds", "3", "--scale", "0.25", "--no-instructions", "--json")
    assert (status, noted) == (0, "W2-1024: 3 rounds at scale 0.05\n")
    run = "fanin W2-1024 0.05"
    assert ours == ["counting", run, "peer", "peer", run, run, "peer"]
    (entry,) = json.loads(said).values()
    assert entry["ratios"] == pytest.approx([20.0] * 3), "2 M hops in 0.1 s against 1 M in 1 s"
    assert (entry["ratio"], entry["time_ratio"]) == pytest.approx((20.0, 10.0))
    assert entry["fanin"]["hops_per_cpu_s"] == pytest.approx(2e7)
    assert entry["htsim"] == {
        "packet_hops": 1_000_000,
        "cpu_s": [1.0] * 3,
        "hops_per_cpu_s": 1e6,
        "peak_rss_mb": 5.0,
        "sim_s": 0.5,
        "instructions_per_hop": None,
    }


@pytest.mark.parametrize(("peer", "variable"), [("ns-3", "NS3_PEER"), ("htsim", "HTSIM_PEER")])
@pytest.mark.usefixtures("ours")
def test_the_table_begins_with_ratios(peer: str, variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, str(stand_in(tmp_path / "peer")))
    status, said, _ = bench("W1", "--beside", peer, "--rounds", "1", "--no-instructions")
    assert status == 0
    (row,) = [line.split() for line in said.splitlines() if line.split()[:1] == ["W1"]]
    assert row[2:9] == ["20.0", "×", "20.0", "to", "20.0", "10.0", "×"]
    assert len(benchmark.beside_columns(peer)) == len(benchmark.beside_rows(peer, {"W1": entry()})[0])


def entry() -> Mapping[str, Any]:
    side = {"hops_per_cpu_s": 1e6, "packet_hops": 1, "instructions_per_hop": 400.0, "peak_rss_mb": 1.0}
    return {"scale": 1.0, "ratio": 1.0, "ratios": [1.0], "time_ratio": 1.0, "fanin": side, "htsim": side, "ns-3": side}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"drift": 8}, "counting changed the simulation"), ({"unfinished": 3}, "W1: 3 flows did not end in htsim")],
)
@pytest.mark.usefixtures("ours")
def test_work_that_is_not_the_same_is_not_compared(
    wrong: dict[str, int], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTSIM_PEER", str(stand_in(tmp_path / "peer", **wrong)))
    status, _, said = bench("W1", "--beside", "htsim", "--rounds", "1")
    assert status == 2
    assert message in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--beside", "opnet"], "there is no simulator opnet to compare with; there are ns-3, htsim"),
        (["--beside", "htsim", "L1", "W9"], "htsim is not given L1, W9; it runs W1, W2-128"),
        (["--beside", "ns-3", "W2-8192"], "ns-3.37 is not given W2-8192"),
        (["--beside", "htsim"], "htsim is not built: make -C benches/htsim HTSIM=/path/to/csg-htsim"),
        (["--beside", "htsim", "--peers"], "--peers: without effect beside --beside"),
        (["--rounds", "3"], "--rounds: without effect without --beside"),
        (["--start", "--rounds", "3"], "--rounds: without effect beside --start"),
        (["--beside", "htsim", "--features"], "--features and --beside exclude each other"),
    ],
)
def test_what_cannot_be_compared_is_said(arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTSIM_PEER", "/nonexistent/peer")
    status, _, said = bench(*arguments)
    assert status == 2
    assert message in said


# ------------------------------------------------------------------------------------------------- jobs for the htsim peer


@pytest.fixture(scope="module")
def jobs() -> ModuleType:
    spec = importlib.util.spec_from_file_location("htsim_jobs", ROOT / "benches" / "htsim" / "jobs.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_paths_are_read_from_the_ports_that_were_passed(jobs: ModuleType) -> None:
    assert jobs.split_paths("a", "b", ["s->t", "t->b", "t->u", "u->a"]) == (["a", "s", "t", "b"], ["b", "t", "u", "a"])
    assert jobs.split_paths("a", "b", ["s->b"]) == (["a", "s", "b"], [])
    with pytest.raises(ValueError, match="a packet that was sent to t is next at v"):
        jobs.split_paths("a", "b", ["s->t", "v->b"])
    with pytest.raises(ValueError, match="the path ends at t"):
        jobs.split_paths("a", "b", ["s->t"])


def test_a_job_has_the_pairs_sizes_and_paths_of_the_workload(jobs: ModuleType) -> None:
    lines = [line.split() for line in jobs.workload("W2-128", 0.01).splitlines()]
    options = {line[1]: line[2] for line in lines if line[0] == "option"}
    assert options == {
        "transport": "dctcp",
        "wire_overhead": "38",
        "queue_packets": "2635",
        "timestamps": "on",
        "segment_bytes": "1448",
        "ecn_k_packets": "65",
    }
    flows = [line for line in lines if line[0] == "flow"]
    assert {line[2] for line in flows} == {line[3] for line in flows} == {f"h{i}" for i in range(128)}
    assert {line[4] for line in flows} == {"20000"}
    assert sum(line[0] == "link" for line in lines) == 3 * 128
    routes: dict[str, list[list[str]]] = {line[1]: [] for line in flows}
    for line in lines:
        if line[0] == "path":
            routes[line[1]].append(line[2:])
    for _, flow, src, dst, *_ in flows:
        out, back = routes[flow]
        assert (out[0], out[-1], back[0], back[-1]) == (src, dst, dst, src)
        assert len(out) == len(back)


def test_paths_do_not_depend_on_sizes(jobs: ModuleType) -> None:
    """A job is made from a run of one byte for each flow; what flows of 100 KB take must be the same."""
    import polars as pl

    import fanin
    from fanin import _core

    scenario = _core.bench_scenario("W2-128", 0.05)
    result = fanin.run({**scenario, "telemetry": {"sample": "off", "drops": False, "queues": ["*"]}}, progress=False)
    taken = result.queues.group_by("flow").agg(pl.col("port").unique()).sort("flow")["port"].to_list()
    for (_, _, out, back), ports in zip(jobs.paths(scenario), taken, strict=True):
        passed = [f"{a}->{b}" for path in (out, back) for a, b in pairwise(path[1:])]
        assert set(passed) == set(ports)


def test_a_job_of_line_rate_packets(jobs: ModuleType) -> None:
    lines = jobs.workload("W3", 0.001).splitlines()
    assert "cbr 0 h0 h1 10000000000 1500 2000 0" in lines
    assert lines[-1] == "path 0 h0 switch0 switch1 switch2 switch3 switch4 h1"


def test_make_says_which_tree_it_wants() -> None:
    make = shutil.which("make")
    if make is None:
        pytest.skip("make is not installed")
    environment = {**os.environ, "MAKEFLAGS": ""}
    done = subprocess.run(
        [make, "-s", "bench-htsim", "HTSIM=/nonexistent"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "HTSIM is '/nonexistent': want a source tree of csg-htsim" in done.stderr
