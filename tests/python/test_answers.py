"""Answers that name their evidence: laws, estimates, hosts, ports of CNPs, results that are shown."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import fanin
from fanin.cli import app
from fanin.explain import find

pytestmark = pytest.mark.native
ROOT = Path(__file__).parents[2]
CAPTURES = ROOT / "examples" / "captures"


def call(*words: str | Path) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def roce(tmp_path_factory: pytest.TempPathFactory) -> fanin.Result:
    folder = tmp_path_factory.mktemp("roce") / "out"
    changes = {"telemetry": {"sample": "10us", "hosts": ["storage", "victim"], "queues": ["leaf1->h8"]}, "duration": "2ms"}
    return fanin.run(fanin.Scenario.from_file(ROOT / "scenarios" / "roce.toml").replace(changes), folder, progress=False)


def test_rdma_at_line_rate_gets_slope_ratio_and_senders_and_no_law(roce: fanin.Result) -> None:
    analysis = fanin.analyze(roce.path)
    bursts = analysis.port("leaf1->h8")["bursts"]
    assert bursts
    words = " ".join(burst["words"] or "" for burst in bursts)
    assert all(burst["law"] is None for burst in bursts)
    for remedy in ("pacing", "To stop it", "are in slow start:", "HyStart"):
        assert remedy not in words, words


def test_own_results_name_the_transport_as_evidence(tmp_path: Path) -> None:
    scenario = fanin.Scenario.from_file(ROOT / "scenarios" / "papers" / "s-ecn" / "sync.toml")
    result = fanin.run(scenario, tmp_path / "out", progress=False)
    laws = fanin.analyze(result.path).laws
    assert laws.height
    assert all("transport" in evidence for evidence in laws["evidence"].to_list())


@pytest.mark.parametrize(("name", "buffer", "drops"), [("incast", "512KB", 345), ("drops", "128KB", 182)])
def test_an_estimate_is_a_range_that_its_file_confirms_or_refutes(name: str, buffer: str, drops: int) -> None:
    port: dict[str, Any] = {"overhead": "0B", "fcs": False, "buffer": buffer}
    found = fanin.analyze(CAPTURES / f"{name}-before.pcap.gz", rate="100Mbps", **port)
    estimate = found.port()["estimate"]
    assert estimate["range"]["dropped_low"] <= drops <= estimate["range"]["dropped_high"]
    assert (estimate["sure"], found.plausibility["trust"]) == ("confirmed", "good")
    assert abs(estimate["confirmed"]["again"] - drops) <= 1
    wide = fanin.analyze(CAPTURES / f"{name}-before.pcap.gz", rate="100Mbps", rate_tolerance=0.1, **port).port()["estimate"]
    assert wide["range"]["dropped_low"] < estimate["range"]["dropped_low"]
    wrong = fanin.analyze(CAPTURES / f"{name}-before.pcap.gz", rate="10Mbps", **port)
    assert (wrong.port()["estimate"]["sure"], wrong.port()["dropped"], wrong.plausibility["trust"]) == ("refuted", None, "poor")
    assert not any("were dropped" in (burst["words"] or "") for burst in wrong.port()["bursts"])


def test_data_without_an_acknowledgment_and_without_its_beginning_gets_no_law(tmp_path: Path) -> None:
    """The kernel's capture from the end of the first windows on: TCP, the slope of a port, and nothing that shows slow start."""
    whole = gzip.decompress((CAPTURES / "incast-before.pcap.gz").read_bytes())
    at, frames = 24, []
    while at < len(whole):
        length = int.from_bytes(whole[at + 8 : at + 12], "little")
        frames.append(whole[at : at + 16 + length])
        at += 16 + length
    path = tmp_path / "late.pcap"
    path.write_bytes(whole[:24] + b"".join(frames[500:]))
    found = fanin.analyze(path, rate="100Mbps", overhead="0B", fcs=False, buffer="512KB", idle_before=True)
    for burst in found.port()["bursts"]:
        assert burst["law"] is None
        assert "pacing" not in burst["words"], burst["words"]


def test_explain_takes_a_host_or_says_what_to_write(roce: fanin.Result) -> None:
    ends = [*roce.flows["src"].to_list(), *roce.flows["dst"].to_list()]
    counts = {host: ends.count(host) for host in ends}
    for host, count in counts.items():
        if count == 1:
            assert host in find(roce, host)["src"] + find(roce, host)["dst"]
    busy = max(counts, key=lambda host: counts[host])
    many = call("explain", roce.path, busy)
    assert many.exit_code == 2
    said = f"'{busy}' is a host of {counts[busy]} flows; give one of them, the slowest first: "
    assert said in " ".join(many.stderr.split())


def test_pacing_names_the_port_that_the_notifications_were_about(roce: fanin.Result) -> None:
    slow = roce.flows.filter(group="storage").sort("finish_ps")["flow"][-1]
    found = roce.explain(int(slow))
    told = found.document["notified"]
    assert told["cnps"] > 0
    assert told["ports"][0][0] == "leaf1->h8"
    if any(part["kind"] == "pacing" for part in found.document["parts"][:4]):
        assert "marked packets waited longest at leaf1->h8" in found.text, found.text


def test_show_takes_a_result_and_says_what_a_folder_is_not(roce: fanin.Result, tmp_path: Path) -> None:
    for path in (roce.path, roce.path / "flows.parquet", roce.path / "manifest.json"):
        shown = call("show", path)
        assert shown.exit_code == 0, shown.output
        assert "is a result, complete, of this scenario" in " ".join(shown.stdout.split())
    assert json.loads(call("show", roce.path, "--json").stdout)["nodes"]
    other = call("show", tmp_path)
    assert other.exit_code == 2
    assert "is a folder without manifest.json, so no result" in " ".join(other.stderr.split())
