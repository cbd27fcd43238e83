"""Transfers over TCP of captures: held against what the simulated ends themselves counted, and against a kernel's drops."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import fanin
from fanin.cli import app

CAPTURES = Path(__file__).parents[2] / "examples" / "captures"
SENDERS = [f"h{i}" for i in range(40)]
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
receiver = "h40"
size = "{size}"
[telemetry.capture]
hosts = {hosts}
"""
TRANSPORTS = {
    "newreno": 'congestion_control = "newreno"\nrto_initial = "10ms"\ndelayed_ack_timeout = "1ms"',
    "linux": 'profile = "linux"\ncongestion_control = "cubic"',
}


def simulated(folder: Path, hosts: list[str], **settings: str) -> tuple[fanin.Analysis, dict[str, dict[str, Any]]]:
    """Return the analysis of a simulated incast's capture, and by the address of the sender what the run says of its flow."""
    text = INCAST.format(hosts=json.dumps(hosts), **settings)
    run = fanin.run(fanin.Scenario.from_toml(text), folder / "out")
    truth = {f"10.0.0.{int(row['src'][1:]) + 1}": row for row in run.flows.iter_rows(named=True)}
    return fanin.analyze(folder / "out" / "packets.pcapng", rate="10Gbps", transfers=True), truth


def by_sender(found: fanin.Analysis) -> dict[str, dict[str, Any]]:
    rows = {row["flow"].split(":")[0]: row for row in found.transfers.iter_rows(named=True)}
    assert len(rows) == len(found.transfers)
    return rows


@pytest.mark.parametrize(
    ("transport", "buffer", "size", "timeouts"),
    [("newreno", "100KB", "100KB", 10), ("newreno", "60KB", "20KB", 11), ("linux", "100KB", "100KB", 14)],
)
def test_at_the_senders_each_number_is_that_of_the_ends(
    tmp_path: Path, transport: str, buffer: str, size: str, timeouts: int
) -> None:
    found, truth = simulated(tmp_path, SENDERS, transport=TRANSPORTS[transport], buffer=buffer, size=size)
    rows = by_sender(found)
    assert set(rows) == set(truth)
    for sender, flow in truth.items():
        row = rows[sender]
        assert (row["resent"], row["timeouts"], row["lost_before"]) == (flow["retransmits"], flow["timeouts"], 0), sender
        assert (row["bytes"], row["complete"]) == (flow["size_bytes"], True)
        assert 0 <= flow["acked_ps"] - flow["start_ps"] - row["took_ps"] < 1_000, "a capture has whole nanoseconds"
        assert row["timeout_ps"] <= row["took_ps"]
        assert ("timeout" in row["words"]) == (flow["timeouts"] > 0)
    sums = found.document["transfers"]
    assert sums["timeouts"] == sum(flow["timeouts"] for flow in truth.values()) == timeouts
    assert sums["took"]["max_ps"] == found.transfers["took_ps"][0] == max(row["took_ps"] for row in rows.values())
    assert found.transfers["took_ps"].is_sorted(descending=True)


def test_at_the_receiver_losses_are_a_lower_bound_and_a_note_says_so(tmp_path: Path) -> None:
    found, truth = simulated(tmp_path, ["h40"], transport=TRANSPORTS["newreno"], buffer="60KB", size="20KB")
    rows = by_sender(found)
    assert all(rows[sender]["resent"] <= flow["retransmits"] for sender, flow in truth.items())
    sums = found.document["transfers"]
    assert 0 < sums["resent"] == sums["lost_before"] < sum(flow["retransmits"] for flow in truth.values())
    assert any("lost before this place" in note for note in sums["notes"])
    # What a timeout of 10 ms leaves at the receiver: nothing outstanding, for as long.
    silent = [rows[sender] for sender, flow in truth.items() if flow["timeouts"]]
    assert len(silent) == 11
    assert all(9.5e9 < row["idle_ps"] < 10.5e9 and "nothing outstanding for" in row["words"] for row in silent)


def test_a_capture_without_acknowledgments_claims_no_timeout() -> None:
    found = fanin.analyze(CAPTURES / "incast-before.pcap.gz", rate="100Mbps", overhead="0B", fcs=False, transfers=True)
    sums = found.document["transfers"]
    assert (sums["transfers"], sums["resent"], sums["timeouts"], sums["complete"], sums["took"]) == (18, 345, None, 0, None)
    assert sums["bytes"] == 18 * 128_000
    assert [note for note in sums["notes"] if "timeouts are unknown" in note]
    assert found.transfers["timeouts"].null_count() == 18
    both = CAPTURES / "incast-behind.pcap.gz"
    pair = fanin.analyze(CAPTURES / "incast-before.pcap.gz", behind=both, rate="100Mbps", overhead="0B", fcs=False, transfers=True)
    beside = pair.document["transfers"]
    assert {key: value for key, value in beside.items() if key != "slowest"} == {key: sums[key] for key in sums if key != "slowest"}
    # The port's own part: the kernel dropped 345 of them, and its queue took 41 ms to drain.
    ports = [row["at_port"] for row in beside["slowest"]]
    assert sum(port["dropped"] for port in ports) == 345
    assert sum(port["packets"] for port in ports) == 1656
    assert 40e9 < max(port["max_ps"] for port in ports) < 42e9
    assert all("at this port" in row["words"] for row in beside["slowest"])
    assert all(row["at_port"] is None for row in sums["slowest"])


def test_the_command_shows_them_and_refuses_traces_that_have_none(tmp_path: Path) -> None:
    simulated(tmp_path, ["h0"], transport=TRANSPORTS["newreno"], buffer="60KB", size="20KB")
    capture, page = str(tmp_path / "out" / "packets.pcapng"), tmp_path / "page.html"
    shown = CliRunner().invoke(app, ["analyze", capture, "--rate", "10Gbps", "--transfers", "--top", "1", "-o", str(page)])
    assert shown.exit_code == 0, shown.output
    assert "1 transfer over TCP, 1 complete" in shown.stdout
    assert "Slowest transfers" in shown.stdout
    assert 'id="transfers"' in page.read_text()
    plain = fanin.analyze(capture, rate="10Gbps")
    assert plain.document["transfers"] is None
    assert plain.transfers.is_empty()
    (tmp_path / "port.csv").write_text("time_ps,queue_bytes,frame_bytes\n0,0,1518\n1000,1518,1518\n")
    refused = CliRunner().invoke(app, ["analyze", str(tmp_path / "port.csv"), "--rate", "10Gbps", "--transfers"])
    assert refused.exit_code == 2
    assert "transfers: has no effect: there is no capture" in " ".join(refused.output.split())
