"""Answers that name their evidence: laws, estimates, hosts, ports of CNPs, results that are shown."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import fanin
from fanin.cli import app
from fanin.explain import find

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


def captured(whole: bytes) -> list[bytes]:
    """Return the frames of a capture, each with its header of 16 bytes."""
    at, frames = 24, []
    while at < len(whole):
        length = int.from_bytes(whole[at + 8 : at + 12], "little")
        frames.append(whole[at : at + 16 + length])
        at += 16 + length
    return frames


@pytest.mark.parametrize(("name", "buffer", "drops"), [("incast", "512KB", 345), ("drops", "128KB", 182)])
def test_an_estimate_is_a_range_that_its_file_confirms_or_refutes(tmp_path: Path, name: str, buffer: str, drops: int) -> None:
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
    # Nor do the records claim any, in memory, in a file or in a figure.
    assert wrong.records["dropped"].null_count() == wrong.records.height > 0
    assert found.records["dropped"].sum() == found.port()["dropped"]
    for kind in ("parquet", "csv"):
        path = wrong.write_records(tmp_path / f"wrong.{kind}")
        rows = pl.read_parquet(path) if kind == "parquet" else pl.read_csv(path)
        assert rows["dropped"].null_count() == rows.height == wrong.records.height
    facts, expected = (pl.read_parquet_metadata(one.write_records(tmp_path / f"{name}.parquet")) for one in (wrong, found))
    assert {key for key in facts if key.startswith("fanin.")} == {key for key in expected if key.startswith("fanin.")}
    assert (facts["fanin.schema"], facts["fanin.units"]) == (expected["fanin.schema"], expected["fanin.units"])
    for one, some in ((wrong, False), (found, True)):
        frame, _, _ = one.series(one.port()["port"], 0, one.port()["last_ps"])
        assert bool(frame["dropped"].any()) is some


def overtaken(frames: list[bytes]) -> list[bytes]:
    """Return a capture's frames with each tenth of a sender's data behind the next of the same sender: overtaken by it."""
    frames, seen = list(frames), 0
    last: dict[bytes, int] = {}
    for at, frame in enumerate(frames):
        if int.from_bytes(frame[12:16], "little") < 1000:
            continue
        sender = frame[16 + 26 : 16 + 38]
        before = last.pop(sender, None)
        if before is None:
            last[sender] = at
            continue
        seen += 1
        if seen % 10 == 0 and int.from_bytes(frame[16 + 38 : 16 + 42]) > int.from_bytes(frames[before][16 + 38 : 16 + 42]):
            # The stamps stay in order, as where the network let one overtake the other.
            frames[before], frames[at] = frames[before][:8] + frame[8:], frame[:8] + frames[before][8:]
    return frames


@pytest.mark.parametrize("timestamps", [True, False])
def test_segments_that_were_overtaken_were_not_sent_again(tmp_path: Path, timestamps: bool) -> None:
    """The kernel's capture, in which the network has put some segments out of order, with its timestamps or without."""
    whole = gzip.decompress((CAPTURES / "incast-before.pcap.gz").read_bytes())
    frames = captured(whole)
    port: dict[str, Any] = {"overhead": "0B", "fcs": False, "buffer": "512KB", "rate": "100Mbps"}
    counts = []
    for name, some in (("whole", frames), ("overtaken", overtaken(frames))):
        # Two bytes of padding and the option's kind stand before the timestamps: padding instead of the option takes them out.
        body = b"".join(some)
        written = body if timestamps else body.replace(b"\x01\x01\x08\x0a", b"\x01\x01\x01\x00")
        (tmp_path / f"{name}.pcap").write_bytes(whole[:24] + written)
        estimate = fanin.analyze(tmp_path / f"{name}.pcap", **port).port()["estimate"]
        assert estimate["sure"] == "confirmed", estimate
        counts.append(estimate["confirmed"]["again"])
    moved = sum(one != other for one, other in zip(frames, overtaken(frames), strict=True)) // 2
    assert moved > 40
    # Before, each segment that was overtaken had come again.
    assert counts[0] == 345
    assert counts[0] <= counts[1] <= counts[0] + moved // 10


def test_data_without_an_acknowledgment_and_without_its_beginning_gets_no_law(tmp_path: Path) -> None:
    """The kernel's capture from the end of the first windows on: TCP, the slope of a port, and nothing that shows slow start."""
    whole = gzip.decompress((CAPTURES / "incast-before.pcap.gz").read_bytes())
    frames = captured(whole)
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


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("page.html", b"<!doctype html><html></html>", "is a page"),
        ("trace.csv", b"time_ns,queue_bytes\n1,2\n3,4\n", "is no scenario: perhaps a trace"),
        ("trace.pcap", bytes.fromhex("4d3cb2a1"), "is no scenario: perhaps a trace"),
    ],
)
def test_show_says_in_one_line_what_is_no_scenario(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    shown = call("show", tmp_path / name)
    text = " ".join(shown.stderr.split())
    assert shown.exit_code == 2 and text.count("error:") == 1, text
    assert said in text and "fanin analyze" in text, text
