"""Where the time of a transfer in two captures went: held against what the simulation that made the captures knows of it."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import fanin
from fanin import analysis
from fanin.cli import EXIT_BAD_INPUT, app
from fanin.explain.captured import CAPTURED

CAPTURES = Path(__file__).parents[2] / "examples" / "captures"
US = 1_000_000
INCAST = """
name = "incast"
[topology]
kind = "single_switch"
hosts = 41
link = {{ rate = "10Gbps", delay = "10us" }}
[switch]
buffer = {{ kind = "static", per_port = "{buffer}" }}
[transport]
kind = "tcp"
{transport}
rto_min = "10ms"
[[traffic]]
kind = "incast"
name = "incast"
receiver = "h40"
size = "100KB"
[telemetry]
hosts = ["incast"]
[telemetry.capture]
hosts = ["*"]
"""
TRANSPORTS = {
    "newreno": 'congestion_control = "newreno"\nrto_initial = "10ms"\ndelayed_ack_timeout = "1ms"',
    "linux": 'profile = "linux"\ncongestion_control = "cubic"',
}
BUFFER = {"newreno": "100KB", "linux": "100KB"}
ROUNDS = ("congestion_window", "receive_window", "recovery", "loss", "handshake", "path")
"""Parts that cross the network: which loss or window a round trip is due to, captures tell to one or two round trips."""


ROUND_TRIP = 45 * US


@pytest.fixture(scope="module", params=list(TRANSPORTS))
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> fanin.Result:
    text = INCAST.format(transport=TRANSPORTS[request.param], buffer=BUFFER[request.param])
    folder = tmp_path_factory.mktemp(request.param)
    return fanin.run(fanin.Scenario.from_toml(text), folder / "out", progress=False)


def captured(run: fanin.Result, row: dict[str, Any], **settings: Any) -> fanin.CapturedExplanation:
    sender = f"10.0.0.{int(row['src'][1:]) + 1}:"
    ends = {"before_interface": row["src"], "behind_interface": "h40"}
    return analysis.explain(run.path / "packets.pcapng", sender, **ends, rate="10Gbps", **settings)


def sums(found: fanin.Explanation) -> Counter[str]:
    parts: Counter[str] = Counter()
    for part in found.document["parts"]:
        parts[part["kind"]] += part["time_ps"]
    return parts


def test_parts_are_those_that_the_simulation_knows(run: fanin.Result) -> None:
    timeouts, queued, off = 0, 0, []
    name = run.scenario["transport"]["congestion_control"]
    for row in run.flows.iter_rows(named=True):
        true, found = run.explain(row["flow"]), captured(run, row)
        told, parts = sums(true), sums(found)
        assert set(parts) <= set(CAPTURED)
        # To the acknowledgment of all, in whole nanoseconds; the simulation's ends with the last data at the receiver.
        assert 0 <= row["acked_ps"] - row["start_ps"] - found.total_ps < 1_000
        back = row["acked_ps"] - row["finish_ps"]
        assert (
            found.parts["time_ps"].sum()
            == found.total_ps
            == true.total_ps + back - (row["acked_ps"] - row["start_ps"] - found.total_ps)
        )
        assert parts["unknown"] == parts["application"] == 0
        # Linux starts its timer anew where it sends again, which no capture shows: one or two round trips.
        assert parts["rto"] == pytest.approx(told["rto"], abs=US if name == "newreno" else 260 * US)
        # A probe that sends something new does not look like one.
        assert parts["tlp"] + parts["sender_side"] == pytest.approx(told["tlp"], abs=4 * US)
        off.append(abs(parts["receiver_side"] - told["delayed_ack"]))
        late = parts["rto"] - told["rto"] + parts["receiver_side"] - told["delayed_ack"]
        assert parts["queue"] == pytest.approx(told["queue"] + told["nic"] - 0.6 * late, rel=0.06, abs=30 * US), row["flow"]
        assert parts["serialisation"] == pytest.approx(told["serialisation"], abs=12 * US)
        crossing = sum(told[kind] for kind in ROUNDS) + back
        assert sum(parts[kind] for kind in ROUNDS) == pytest.approx(crossing - 0.35 * late, abs=50 * US), row["flow"]
        for kind in ("congestion_window", "recovery", "loss"):
            assert abs(parts[kind] - told[kind]) <= 3.1 * ROUND_TRIP, (row["flow"], kind)
        timeouts += parts["rto"] > 0
        queued += parts["queue"]
        # What was lost when a timer expired.
        segments = run.scan("segments").filter(pl.col("flow") == row["flow"], pl.col("payload_bytes") > 0).collect()
        for wait in (wait for wait in found.document["waited"] if wait["kind"] == "rto"):
            gone = segments.filter(pl.col("dropped_ps") < wait["to_ps"])["seq_bytes"].unique()
            came = segments.filter(pl.col("received_ps") < wait["to_ps"])["seq_bytes"].unique()
            missing = sorted(set(gone) - set(came))
            assert (wait["lost_packets"], wait["seq_bytes"]) == (len(missing), missing[0])
    assert max(off) < 130 * US
    assert sum(by < 25 * US for by in off) >= 36
    assert timeouts >= 5
    assert queued > 40 * 100 * US


def test_a_sentence_says_what_took_longest_and_what_was_lost(run: fanin.Result) -> None:
    row = max(run.flows.iter_rows(named=True), key=lambda row: row["acked_ps"] - row["start_ps"])
    found = captured(run, row)
    assert found.text.startswith(f"10.0.0.{int(row['src'][1:]) + 1}:")
    assert "100 KB, took " in found.text
    assert "retransmission timeout" in found.text
    assert "after the loss of " in found.text
    assert f"{row['src']} to h40" in found.text
    lost = found.document["lost"]
    assert lost == run.drops.filter(run.drops["flow"] == row["flow"]).height > 0
    assert f"{lost} of them did not come to h40" in found.text
    listed = fanin.analyze(run.path / "packets.pcapng", interface=row["src"], rate="10Gbps", transfers=True)
    mine = listed.transfers.filter(listed.transfers["flow"] == found.name).row(0, named=True)
    for key in ("bytes", "segments", "resent", "timeouts"):
        assert found.document["transfer"][key] == mine[key], key
    assert found.document["transfer"]["took_ps"] == found.total_ps


def flat(result: Any) -> str:
    return " ".join(result.output.split())


def test_the_command_takes_the_slowest_and_names_what_is_wrong(run: fanin.Result, tmp_path: Path) -> None:
    capture = str(run.path / "packets.pcapng")
    ends = ["--before-interface", "h3", "--behind-interface", "h40", "--rate", "10Gbps"]
    printed = CliRunner().invoke(app, ["explain", capture, "10.0.0.4:", *ends, "--steps"])
    assert printed.exit_code == 0, printed.output
    assert "Where the time of 10.0.0.4:" in printed.stdout
    assert "Step by step" in printed.stdout
    document = json.loads(CliRunner().invoke(app, ["explain", capture, "10.0.0.4:", *ends, "--json"]).stdout)
    assert sum(part["time_ps"] for part in document["parts"]) == document["end_ps"] - document["start_ps"]
    alone = CliRunner().invoke(app, ["explain", capture, "10.0.0.4:"])
    assert alone.exit_code == EXIT_BAD_INPUT
    assert "one capture does not say where time went" in flat(alone)
    nobody = CliRunner().invoke(app, ["explain", capture, "192.0.2.1", *ends])
    assert nobody.exit_code == EXIT_BAD_INPUT
    assert "no flow with a transfer has this name" in flat(nobody)
    assert "tcp'" in flat(nobody)
    several = CliRunner().invoke(app, ["explain", capture, "10.0.0.", *ends])
    assert "flows with transfers have this name" in flat(several)
    missing = CliRunner().invoke(app, ["explain", str(run.path)])
    assert "which flow?" in flat(missing)
    result = CliRunner().invoke(app, ["explain", str(run.path), "3", "--rate", "10Gbps"])
    assert "--rate: of captures" in flat(result)


def test_two_files_with_clocks_of_their_own_say_the_same(run: fanin.Result, tmp_path: Path) -> None:
    scapy = pytest.importorskip("scapy.all")
    row = next(row for row in run.flows.iter_rows(named=True) if row["src"] == "h7")
    one = captured(run, row)
    packets = scapy.rdpcap(os.fspath(run.path / "packets.pcapng"))
    apart = 12_345.678
    for name, interface, shift in (("sender.pcap", "h7", 0.0), ("receiver.pcap", "h40", apart)):
        mine = [packet for packet in packets if packet.sniffed_on == interface]
        assert len(mine) > 100
        with scapy.PcapWriter(os.fspath(tmp_path / name), nano=True, linktype=1) as file:
            for packet in mine:
                packet.time += scapy.EDecimal(shift) if hasattr(scapy, "EDecimal") else shift
                file.write(packet)
    found = analysis.explain(tmp_path / "sender.pcap", "10.0.0.8:", behind=tmp_path / "receiver.pcap", rate="10Gbps")
    theirs, ours = sums(found), sums(one)
    assert set(theirs) == set(ours)
    for kind, time in ours.items():
        assert theirs[kind] == pytest.approx(time, abs=2 * US), kind
    assert found.document["places"] == ["sender", "receiver"]


def test_without_acknowledgments_the_wait_for_them_is_unknown() -> None:
    found = analysis.explain(
        CAPTURES / "incast-before.pcap.gz", behind=CAPTURES / "incast-behind.pcap.gz", rate="100Mbps", overhead="0B", fcs=False
    )
    parts = sums(found)
    assert sum(parts.values()) == found.total_ps
    assert parts["unknown"] > 0.5 * found.total_ps
    assert parts["rto"] == parts["congestion_window"] == 0
    assert [note for note in found.document["notes"] if "no acknowledgments were captured" in note]
    assert "not known" in found.text
    assert found.document["lost"] > 0
