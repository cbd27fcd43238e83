"""The package with its compiled core: real runs, real results."""

from __future__ import annotations

import doctest
import importlib
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import fanin
from fanin import _core, benchmark, report, types
from fanin.cli import app
from fanin.tables.schemas import SCHEMAS, schema

ROOT = Path(__file__).parents[2]

INCAST: dict[str, Any] = {
    "name": "incast",
    "seed": 7,
    "topology": {"kind": "single_switch", "hosts": 17, "link": {"rate": "10Gbps", "delay": "1us"}},
    "transport": {"kind": "tcp", "congestion_control": "dctcp", "handshake": False, "rto_min": "10ms"},
    "switch": {
        "marking": {"kind": "threshold", "k": "30 packets"},
        "buffer": {"kind": "static", "per_port": "150KB"},
    },
    "traffic": [{"kind": "incast", "receiver": "h16", "senders": ["all"], "size": "60KB"}],
    "telemetry": {"sample": "10us", "queues": ["*->h16"]},
}
ENDLESS = {**INCAST, "traffic": [{"kind": "incast", "receiver": "h16", "senders": ["all"], "size": "100GB"}]}


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> fanin.Result:
    return fanin.run(INCAST, tmp_path_factory.mktemp("real") / "out", progress=False)


def test_the_stub_tells_the_truth() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "fanin._core"], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["fanin.scenario", "fanin.types"])
def test_the_examples_in_docstrings_are_true(name: str) -> None:
    outcome = doctest.testmod(importlib.import_module(name))
    assert outcome.attempted > 0
    assert outcome.failed == 0


def test_generated_files_are_those_of_this_version() -> None:
    for name, text in (
        ("docs/scenario.md", _core.reference()),
        ("python/fanin/_scenario_types.py", _core.python_types()),
        ("docs/counters.md", _core.counters_page()),
    ):
        assert (ROOT / name).read_text(encoding="utf-8") == text, f"{name} is out of date: make schema"


def test_tables_have_the_documented_types_and_units(real: fanin.Result) -> None:
    for name, columns in SCHEMAS.items():
        path = real.path / f"{name}.parquet"
        if not path.is_file():
            assert name in {"queries", "collectives", "pauses", "states", "voqs", "stamps", "hosts", "messages", "segments", "hops"}
            continue
        assert dict(pl.scan_parquet(path).collect_schema()) == schema(name), name
        units = json.loads(pl.read_parquet_metadata(path)["fanin.units"])
        for column in columns:
            if column.endswith("_ps"):
                assert units[column] == "ps", column
            elif column.endswith("_bytes"):
                assert units[column] in ("B", "byte", "bytes"), column


def test_manifest_and_summary_have_the_documented_keys(real: fanin.Result) -> None:
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    for document, heading in ((real.manifest, "manifest.json"), (real.summary, "summary.json")):
        section = page.split(f"## {heading}")[1].split("\n## ")[0]
        for key in document:
            assert f"`{key}`" in section, f"{heading}: {key}"


def test_the_summary_agrees_with_the_tables(real: fanin.Result) -> None:
    summary, flows = real.summary, real.flows
    assert summary["flows"]["total"] == flows.height == 16
    assert summary["flows"]["complete"] == real.completions.height == 16
    assert summary["delivered_bytes"] == flows["delivered_bytes"].sum() == 16 * 60_000
    for key in ("packets_sent", "retransmits", "timeouts"):
        assert summary[key] == flows[key].sum(), key
    assert summary["drops"] == real.drops.height == sum(summary["drops_by_reason"].values())
    assert real.ports["drops"].sum() == summary["drops"]
    assert real.ports["marks"].sum() == summary["marks"]
    everything = summary["fct"][0]
    assert everything["bin"] == "all"
    assert everything["mean_ps"] == pytest.approx(real.completions["fct_ps"].to_numpy().mean(), rel=1e-6)
    assert everything["slowdown_mean"] == pytest.approx(real.completions["slowdown"].to_numpy().mean(), rel=1e-6)
    assert all(real.completions["slowdown"] >= 1)


def test_the_queue_agrees_with_the_samples(real: fanin.Result) -> None:
    hottest = real.summary["largest_queue"]
    assert hottest["port"].endswith("->h16")
    records = real.queues.filter(pl.col("port") == hottest["port"])
    after = records.select(pl.col("queue_bytes") + pl.when("dropped").then(0).otherwise("frame_bytes")).to_series()
    sampled = real.ports.filter(pl.col("port") == hottest["port"])["queue_max_bytes"]
    assert sampled.to_numpy().max() == hottest["bytes"]
    assert abs(int(after.to_numpy().max()) - hottest["bytes"]) <= 1518


def test_python_and_command_line_give_the_same_bytes(real: fanin.Result, tmp_path: Path) -> None:
    path = tmp_path / "incast.toml"
    path.write_text(fanin.Scenario(INCAST).to_toml())
    done = CliRunner().invoke(app, ["run", str(path), "-o", str(tmp_path / "out"), "--quiet"])
    assert done.exit_code == 0, done.output
    other = fanin.load(tmp_path / "out")
    assert other.fingerprint == real.fingerprint
    assert other.manifest["scenario_hash"] == real.manifest["scenario_hash"]
    for file in sorted(real.path.iterdir()):
        if file.name != "manifest.json":
            assert (other.path / file.name).read_bytes() == file.read_bytes(), file.name


def test_telemetry_changes_nothing(real: fanin.Result) -> None:
    quiet = fanin.run(
        fanin.Scenario(INCAST).replace({"telemetry": {"sample": "off", "queues": [], "drops": False}}), progress=False
    )
    assert quiet.fingerprint == real.fingerprint
    assert quiet.queues.height == 0


def test_typed_classes_make_the_same_scenario(real: fanin.Result) -> None:
    typed = fanin.Scenario(
        name="incast",
        seed=7,
        topology=types.SingleSwitch(hosts=17, link=types.LinkParams(rate="10Gbps", delay="1us")),
        transport=types.Tcp(congestion_control="dctcp", handshake=False, rto_min="10ms"),
        switch=types.Switch(marking=types.ThresholdParams(k="30 packets"), buffer=types.StaticBuffer(per_port="150KB")),
        traffic=[types.Incast(receiver="h16", senders=["all"], size="60KB")],
        telemetry=types.Telemetry(sample="10us", queues=["*->h16"]),
    )
    check = typed.check()
    assert check.ok, str(check)
    assert check.hash == real.manifest["scenario_hash"]


def test_connections_that_open_and_close_end_too(real: fanin.Result) -> None:
    opened = fanin.run(fanin.Scenario(INCAST).replace({"transport.handshake": True}), progress=False)
    assert opened.summary["flows"]["complete"] == 16
    assert opened.summary["fct"][0]["mean_ps"] > real.summary["fct"][0]["mean_ps"]


def test_another_seed_is_another_run(real: fanin.Result) -> None:
    jittered = fanin.Scenario(INCAST).replace({"traffic[0].jitter": "50us"})
    one, other = (fanin.run(jittered.replace(seed=seed), progress=False) for seed in (1, 2))
    assert one.fingerprint != other.fingerprint


def test_every_error_comes_at_once() -> None:
    wrong = fanin.Scenario(INCAST).replace(
        {"sede": 1, "topology.hosts": 0, "topology.link.rate": "10 Gq/s", "traffic[0].size": "-5B"}
    )
    with pytest.raises(fanin.ScenarioError) as caught:
        fanin.run(wrong, progress=False)
    paths = {problem["path"] for problem in caught.value.problems}
    assert {"sede", "topology.hosts", "topology.link.rate", "traffic[0].size"} <= paths
    assert {problem.path for problem in wrong.check().errors} == paths


def test_other_threads_go_on_and_progress_is_reported() -> None:
    ticks = 0
    seen: list[fanin.ProgressState] = []
    done = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not done.is_set():
            ticks += 1
            time.sleep(0.001)

    def note(state: fanin.ProgressState) -> None:
        seen.append(state)
        if state["wall_s"] > 1.5:
            raise LookupError("enough")

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        with pytest.raises(LookupError, match="enough"):
            fanin.run(ENDLESS, progress=note)
    finally:
        done.set()
        thread.join()
    assert ticks > 300
    assert ticks > 4 * len(seen), "a thread that waits for the run ticks about once each time it reports"
    assert 5 <= len(seen) <= 30
    hops = [state["packet_hops"] for state in seen]
    assert hops == sorted(set(hops))
    assert set(seen[0]) == set(fanin.ProgressState.__annotations__)


def until_file(path: Path, process: subprocess.Popen[Any]) -> None:
    deadline = time.monotonic() + 120
    while not path.is_file():
        assert process.poll() is None and time.monotonic() < deadline, f"{path} was not written"
        time.sleep(0.05)


@pytest.mark.usefixtures("not_nohup")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_ends_within_a_second_and_keeps_its_folder(tmp_path: Path, how: signal.Signals) -> None:
    path = tmp_path / "endless.toml"
    path.write_text(fanin.Scenario(ENDLESS).to_toml())
    command = [sys.executable, "-c", "from fanin.cli import app; app()", "run", str(path), "-o", str(tmp_path / "out")]
    for _ in range(3):  # until it is one that no other program held up
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "NO_COLOR": "1"}
        )
        until_file(tmp_path / "out" / "manifest.json", process)
        time.sleep(1)
        sent = time.monotonic()
        process.send_signal(how)
        _, errors = process.communicate(timeout=30)
        took = time.monotonic() - sent
        assert process.returncode == 130
        assert "interrupted" in errors
        assert "Traceback" not in errors
        if took < 2.5:
            break
    assert took < 2.5
    result = fanin.load(tmp_path / "out")
    assert result.status == "partial"
    assert result.manifest["reason"]
    assert result.flows.height == 16
    assert result.ports.height > 0
    report.render(result)


@pytest.mark.usefixtures("not_nohup")
def test_a_closed_terminal_ends_a_run_unless_nohup_was_used(tmp_path: Path) -> None:
    """As a terminal does: SIGHUP, and then nothing can be written to it. After nohup the signal is ignored, and stays so."""
    path = tmp_path / "endless.toml"
    path.write_text(fanin.Scenario(ENDLESS).to_toml())
    for nohup in (False, True):
        out = tmp_path / f"out-{nohup}"
        ours, theirs = pty.openpty()
        code = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN); " if nohup else ""
        call = [sys.executable, "-c", f"{code}from fanin.cli import app; app()", "run", str(path), "-o", str(out)]
        process = subprocess.Popen(call, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
        os.close(theirs)
        until_file(out / "manifest.json", process)
        time.sleep(0.5)
        if nohup:
            process.send_signal(signal.SIGHUP)
            time.sleep(1)
            assert process.poll() is None
            process.send_signal(signal.SIGINT)
        else:
            os.close(ours)
            process.send_signal(signal.SIGHUP)
        assert process.wait(timeout=30) == 130
        assert fanin.load(out).status == "partial"
        if nohup:
            os.close(ours)


def test_a_benchmark_runs_in_its_own_process() -> None:
    measured = benchmark.measure(["W2-128"], scale=0.01, instructions=False)["W2-128"]
    assert measured["packet_hops"] > 10_000
    assert measured["hops_per_cpu_s"] == pytest.approx(measured["packet_hops"] / measured["cpu_s"])
    assert 5 < measured["peak_rss_mb"] < 400
    with pytest.raises(ValueError, match="is not a workload"):
        _core.bench("W9", 1.0, ".")


# Scale, and instructions per packet-hop at that scale when this was written.
COSTS = {"W1": (0.05, 487.6), "W2-128": (0.1, 325.6), "W2-432": (0.02, 449.6), "W3": (0.02, 177.8), "demo": (0.02, 360.6)}
needs_valgrind = pytest.mark.skipif(
    shutil.which("valgrind") is None, reason="valgrind is not installed; as root: make install-valgrind"
)


def keeps_its_cost(what: str, known: float, counted: float) -> None:
    """Slack of 3 %: another version of the compiler moves counts by one or two."""
    assert 0.9 * known < counted < 1.03 * known, f"{what}: {counted:.1f} instructions per hop, {known} when it was written"


@needs_valgrind
@pytest.mark.parametrize("name", COSTS)
def test_a_hop_costs_no_more_instructions_than_it_did(name: str) -> None:
    scale, known = COSTS[name]
    counted = benchmark.measure([name], scale=scale)[name]["instructions_per_hop"]
    keeps_its_cost(f"{name} (update COSTS if it is meant to be so)", known, counted)


def costs_on_the_page() -> dict[str, float]:
    page = (ROOT / "docs" / "dev" / "performance-log.md").read_text(encoding="utf-8")
    section = page.split("\n## What a feature costs\n")[1].split("\n## ")[0]
    return {name: float(cost) for name, cost in re.findall(r"^\| `([a-z0-9, -]+)` \|[^|]*\| (\d+) \|", section, re.MULTILINE)}


def test_the_page_says_what_each_feature_costs() -> None:
    loop = [name for name, whole in _core.bench_features() if not whole]
    recording = [name for name, whole in _core.bench_features() if whole]
    assert list(costs_on_the_page()) == ["plain", *loop, "plain, whole run", *recording]


@needs_valgrind
def test_a_feature_costs_what_its_page_says() -> None:
    known = costs_on_the_page()
    counted = benchmark.features(["s-ecn", "red", "dynamic-buffer", "drr", "pdn-drops", "sample-10us", "queues"])
    for name, entry in counted.items():
        note = f"{name} (make the table of docs/dev/performance-log.md anew if it is meant to be so)"
        keeps_its_cost(note, known[name], entry["instructions_per_hop"])


def test_start_up_is_measured() -> None:
    measured = benchmark.start_up(repeat=1)
    assert list(measured) == ["import_s", "cli_s", "in_process_s"]
    assert all(0 < seconds < 10 for seconds in measured.values())
    assert len(benchmark.start_rows(measured)) == 3


@pytest.mark.parametrize("path", sorted((ROOT / "scenarios").rglob("*.toml")), ids=lambda path: path.stem)
def test_every_scenario_of_the_project_is_valid(path: Path) -> None:
    assert fanin.Scenario.from_file(path).check().errors == ()


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_every_example_runs(path: Path, tmp_path: Path) -> None:
    words = ["picture.svg", "fanin", "--help"] if path.stem == "terminal_picture" else []
    done = subprocess.run(
        [sys.executable, str(path), *words], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
