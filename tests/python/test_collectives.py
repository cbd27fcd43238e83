"""Jobs of collective operations from Python: tables, summary, page, figures, explanations."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console

import fanin
from fanin import report
from fanin.cli.output import show_summary
from fanin.tables import overview
from fanin.text import show

MSS = 1460
SCENARIO = {
    "name": "job",
    "topology": {"kind": "single_switch", "hosts": 4, "link": {"rate": "10Gbps", "delay": "1us"}},
    "transport": {
        "kind": "tcp",
        "handshake": False,
        "timestamps": False,
        "initial_window": 1000,
        "ack_every": 255,
        "delayed_ack_timeout": "400ms",
    },
    "traffic": [
        {
            "kind": "collective",
            "name": "training",
            "iterations": 3,
            "operations": [
                {"kind": "all_reduce", "size": f"{4 * 5 * MSS}B", "compute": "10us"},
                {"kind": "all_to_all", "size": f"{2 * MSS}B", "group": 2, "stride": 2},
            ],
        }
    ],
    "telemetry": {"sample": "100us", "hosts": ["0"]},
}
D = 1_230_400
STEP = 6 * D + 2_000_000
"""A step of five full segments of a ring through one switch [ps]."""
EXCHANGE = 2 * D + 2_000_000


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> fanin.Result:
    return fanin.run(fanin.Scenario(SCENARIO), tmp_path_factory.mktemp("job") / "out")


def test_the_table_has_each_operation_of_each_group_and_iteration(job: fanin.Result) -> None:
    rows = job.collectives
    assert rows.select("iteration", "operation", "communicator").rows() == [
        (i, *which) for i in range(3) for which in ((0, 0), (1, 0), (1, 1))
    ]
    took = rows.select(took=pl.col("finish_ps") - pl.col("start_ps"), operation="operation")
    assert dict(took.group_by("operation").agg(pl.col("took").unique()).rows()) == {0: [6 * STEP], 1: [EXCHANGE]}
    first = rows.row(0, named=True)
    assert first["algbw_bps"] == 20 * MSS * 8 * 10**12 // (6 * STEP)
    assert first["busbw_bps"] == 30 * MSS * 8 * 10**12 // (6 * STEP)


def test_the_summary_has_the_time_of_the_job_and_its_operations(job: fanin.Result) -> None:
    (found,) = job.summary["collectives"]
    iteration = 10_000_000 + 6 * STEP + EXCHANGE
    assert (found["group"], found["ranks"], found["start_ps"]) == ("training", 4, 0)
    assert found["time_ps"] == found["finish_ps"] == 3 * iteration
    assert found["iterations"] == {"total": 3, "complete": 3} | dict.fromkeys(("mean_ps", "p50_ps", "p95_ps", "p99_ps"), iteration)
    reduce, exchange = found["operations"]
    assert (reduce["total"], reduce["complete"], reduce["mean_ps"], reduce["algorithm"]) == (3, 3, 6 * STEP, "ring")
    assert (exchange["total"], exchange["ranks"], exchange["mean_ps"], exchange["algorithm"]) == (6, 2, EXCHANGE, "direct")
    assert reduce["busbw_bps"] == job.collectives["busbw_bps"][0]


def test_connections_are_flows_but_no_completions(job: fanin.Result) -> None:
    assert job.flows.height == 8
    assert job.flows["delivered_bytes"].to_list() == job.flows["size_bytes"].to_list()
    assert job.completions.height == 0
    assert job.summary["fct"][0]["flows"] == 0
    assert job.summary["flows"]["complete"] == 8


def test_an_explained_connection_waited_for_its_application(job: fanin.Result) -> None:
    found = job.explain(0)
    assert sum(part["time_ps"] for part in found.document["parts"]) == found.total_ps
    application = found.parts.filter(pl.col("kind") == "application")["time_ps"].sum()
    assert application >= 30_000_000, "three computations"


def test_the_page_and_the_overview_show_the_job(job: fanin.Result) -> None:
    fact = next(fact for fact in overview.facts(job.summary, job.manifest) if fact.key == "job-0")
    assert fact.note.startswith("training: 3 of 3 iterations")
    text = report.render(job)
    assert "all_reduce (ring)" in text
    data = re.search(r'id="figures">(.*?)</script>', text, re.DOTALL)
    assert data is not None
    ring, exchange = json.loads(data[1])["busbw"]["data"]
    assert (ring["name"], exchange["name"]) == ("training: all_reduce (ring)", "training: all_to_all (direct)")
    assert "Flow completion times" not in text, "connections of jobs do not count, and there are no other flows"


def test_a_run_prints_the_bandwidth_of_each_operation(job: fanin.Result, monkeypatch: pytest.MonkeyPatch) -> None:
    text = io.StringIO()
    monkeypatch.setattr("fanin.text.terminal.console", lambda: Console(file=text, width=120))
    show_summary(job)
    lines = text.getvalue().splitlines()
    assert any(line.startswith("Job complete in") for line in lines)
    ring = next(line for line in lines if "all_reduce (ring)" in line)
    assert f"3 of 3 {show.duration(6 * STEP)}" in " ".join(ring.split())
    assert ring.rstrip(" │").endswith(show.rate(job.summary["collectives"][0]["operations"][0]["busbw_bps"]))
    assert "Bus bandwidth" in text.getvalue() and "Algorithm bandwidth" not in text.getvalue()


def test_results_without_jobs_have_no_section(tmp_path: Path) -> None:
    scenario = SCENARIO | {"traffic": [{"kind": "permutation", "size": "10KB"}], "telemetry": {"sample": "100us"}}
    result = fanin.run(fanin.Scenario(scenario), tmp_path / "out")
    assert result.summary["collectives"] == []
    assert 'id="jobs"' not in report.render(result)
    assert not (result.path / "collectives.parquet").exists()


def test_the_ready_scenario_shows_what_the_order_of_ranks_costs(tmp_path: Path) -> None:
    ready = fanin.Scenario.from_file(Path(__file__).parents[2] / "scenarios" / "all-reduce.toml")
    assert not ready.check().warnings
    sizes = {"traffic[0].operations[0].size": "8MB", "traffic[0].operations[0].message": "64KB"}
    short = ready.replace({"traffic[0].iterations": 2, "duration": "20ms", **sizes})
    busbw = {}
    for order in ("listed", "shuffled"):
        result = fanin.run(short.replace({"traffic[0].order": order}), tmp_path / order)
        (job,) = result.summary["collectives"]
        assert job["iterations"]["complete"] == 2
        busbw[order] = job["operations"][0]["busbw_bps"]
    assert 10e9 < busbw["shuffled"] < busbw["listed"] < 100e9
