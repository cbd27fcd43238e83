"""Captures of a real kernel: what `fanin.analyze` takes of them, judged by reading the same bytes with numpy and struct alone."""

from __future__ import annotations

import gzip
import ipaddress
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import fanin
from fanin.cli import app

FOLDER = Path(__file__).parents[2] / "crates" / "analysis" / "tests" / "data" / "captures"
RECEIVER = "10.77.255.1"
RATE: Any = {"rate": "100Mbps", "overhead": "0B"}
SYN, ACK = 0x02, 0x10


@dataclass
class Packets:
    """The frames of a capture, one element each."""

    ns: np.ndarray[Any, Any]
    length: np.ndarray[Any, Any]
    interface: np.ndarray[Any, Any]
    outgoing: np.ndarray[Any, Any]
    src: np.ndarray[Any, Any]
    dst: np.ndarray[Any, Any]
    ports: np.ndarray[Any, Any]
    ip_id: np.ndarray[Any, Any]
    flags: np.ndarray[Any, Any]
    payload: np.ndarray[Any, Any]

    def where(self, chosen: np.ndarray[Any, Any]) -> Packets:
        return Packets(*(column[chosen] for column in vars(self).values()))

    @property
    def bytes(self) -> int:
        """Frames with their check sequence, none shorter than Ethernet's shortest."""
        return int(np.maximum(self.length + 4, 64).sum())

    @property
    def flows(self) -> int:
        return len(set(zip(self.src, self.dst, self.ports, strict=True)))

    def to(self, host: str) -> Packets:
        return self.where(self.dst == host)


def read(path: Path) -> Packets:
    data = gzip.decompress(path.read_bytes())
    magic, link = struct.unpack_from("<I16xI", data)
    assert magic == 0xA1B23C4D
    header = {1: 14, 276: 20}[link]
    at, rows = 24, []
    while at < len(data):
        seconds, fraction, kept, length = struct.unpack_from("<IIII", data, at)
        frame = data[at + 16 : at + 16 + kept]
        at += 16 + kept
        ip, tcp = frame[header : header + 20], frame[header + 20 :]
        assert ip[0] == 0x45 and ip[9] == 6
        total, ip_id = struct.unpack_from(">HH", ip, 2)
        interface, kind = struct.unpack_from(">I2xB", frame, 4) if link == 276 else (0, 0)
        src, dst = (str(ipaddress.IPv4Address(ip[i : i + 4])) for i in (12, 16))
        ports = struct.unpack_from(">HH", tcp)
        payload = total - 20 - (tcp[12] >> 4) * 4
        ns = seconds * 10**9 + fraction
        # The wire's frame, as Ethernet has it.
        rows.append((ns, length - header + 14, interface, kind == 4, src, dst, ports[0] << 16 | ports[1], ip_id, tcp[13], payload))
    return Packets(*(np.array(column) for column in zip(*rows, strict=True)))


@pytest.fixture(scope="module")
def file() -> Callable[[str], tuple[Path, Packets]]:
    return lambda name: (FOLDER / f"{name}.pcap.gz", read(FOLDER / f"{name}.pcap.gz"))


def handshakes(packets: Packets) -> np.ndarray[Any, Any]:
    """From each SYN to the answer of its answer [ps]."""
    rtts = []
    for port in np.unique(packets.ports[(packets.flags & (SYN | ACK)) == SYN]):
        flow = packets.where(packets.ports == port)
        assert flow.flags[0] == SYN and flow.flags[1] == ACK
        rtts.append(1000 * int(flow.ns[1] - flow.ns[0]))
    return np.array(rtts)


@pytest.mark.parametrize("name", ["incast27-before", "incast27-behind"])
def test_a_capture_of_one_direction_is_taken_whole(name: str, file: Callable[[str], tuple[Path, Packets]]) -> None:
    path, packets = file(name)
    found = fanin.analyze(path, **RATE)
    (row,) = found.taken.rows(named=True)
    assert (row["port"], row["why"]) == (name, "everything")
    assert (row["packets"], row["bytes"], row["flows"]) == (len(packets.ns), packets.bytes, 27)
    rtts = handshakes(packets)
    assert (row["round_trips"], row["rtt_low_ps"], row["rtt_high_ps"]) == (27, rtts.min(), rtts.max())
    # The delay line is 2 ms; the rest is the kernel's.
    assert rtts.min() > 2_000_000_000 and rtts.max() < 2_300_000_000
    assert found.port()["records"] == len(packets.ns)
    assert found.plausibility["trust"] == "good"


def test_before_and_behind_the_queue_are_the_kernels_counts(file: Callable[[str], tuple[Path, Packets]]) -> None:
    (before_path, before), (behind_path, behind) = file("incast27-before"), file("incast27-behind")
    records = [fanin.analyze(path, **RATE).port()["records"] for path in (before_path, behind_path)]
    assert records == [831, 649]
    keys = [set(zip(p.ports, p.ip_id, strict=True)) for p in (before, behind)]
    assert (len(keys[0]), len(keys[0] - keys[1]), keys[1] - keys[0]) == (831, 182, set())


def test_acknowledgments_are_left_out_at_a_sender(file: Callable[[str], tuple[Path, Packets]]) -> None:
    path, packets = file("incast27-sender0")
    found = fanin.analyze(path, **RATE)
    taken, left = found.taken.rows(named=True)
    data, acks = packets.to(RECEIVER), packets.to("10.77.0.1")
    assert (taken["port"], taken["packets"], taken["bytes"], taken["flows"]) == (
        f"incast27-sender0 to {RECEIVER}",
        len(data.ns),
        data.bytes,
        1,
    )
    assert (left["port"], left["packets"], left["bytes"], left["why"]) == (None, len(acks.ns), acks.bytes, "the other direction")
    other = fanin.analyze(path, to="10.77.0.1", **RATE)
    assert other.port("incast27-sender0 to 10.77.0.1")["records"] == len(acks.ns)


def test_a_receiver_on_two_interfaces_has_18_flows_and_not_36(file: Callable[[str], tuple[Path, Packets]]) -> None:
    path, packets = file("incast18-receiver-any")
    assert packets.flows == 36
    found = fanin.analyze(path, **RATE)
    taken, left = found.taken.rows(named=True)
    data = packets.to(RECEIVER)
    assert len(set(data.interface)) == 1 and not data.outgoing.any()
    assert (taken["port"], taken["packets"], taken["bytes"], taken["flows"]) == (
        f"if{data.interface[0]} in",
        1656,
        data.bytes,
        18,
    )
    assert (left["packets"], left["flows"], left["why"]) == (1413, 18, "the other direction")
    assert found.port()["records"] == len(data.ns) == 1656
    bursts = found.bursts
    assert sum(bursts["arrived_bytes"].to_list()) <= data.bytes and max(bursts["flows"].to_list()) <= 18
    assert found.plausibility["trust"] == "good"
    rtts = handshakes(data)
    assert (taken["rtt_low_ps"], taken["rtt_high_ps"]) == (rtts.min(), rtts.max())


def test_a_switch_counts_no_packet_twice(file: Callable[[str], tuple[Path, Packets]]) -> None:
    path, packets = file("incast27-switch-any")
    found = fanin.analyze(path, **RATE)
    (taken,) = found.taken.filter(port="if4 in").rows(named=True)
    at = {number: packets.where(packets.interface == number) for number in map(int, np.unique(packets.interface))}
    assert (taken["packets"], taken["bytes"], taken["flows"]) == (len(at[4].ns), at[4].bytes, 9)
    assert found.port()["records"] == len(at[4].ns)
    left = {(row["interface"], row["direction"]): row for row in found.taken.rows(named=True) if row["port"] is None}
    assert left["if6", "out"]["packets"] == len(at[6].ns) < len(at[4].ns) == len(at[5].ns)
    assert left["if6", "out"]["why"] == left["if5", "out"]["why"] == "the same packets at another interface"
    assert left["if7", "in"]["why"] == "the other direction"
    assert sum(row["packets"] for row in found.taken.rows(named=True)) == len(packets.ns)
    # Before the queue and behind it: what was dropped between.
    both = fanin.analyze(path, interface=["if4", "if6"], **RATE)
    assert {row["port"]: row["records"] for row in both.document["ports"]} == {"if4 in": len(at[4].ns), "if6 out": len(at[6].ns)}
    out = fanin.analyze(path, direction="out", to=RECEIVER, **RATE)
    assert out.document["ports"][0]["port"] == "if5 out"


def test_options_of_the_command_line(file: Callable[[str], tuple[Path, Packets]]) -> None:
    path, _ = file("incast27-switch-any")

    def call(*more: str) -> Any:
        return CliRunner().invoke(app, ["analyze", str(path), "--rate", "100Mbps", *more])

    done = call("--to", RECEIVER, "--interface", "if6", "--direction", "out")
    assert done.exit_code == 0 and "if6 out" in done.output and "taken: if6 out (" in done.output, done.output
    wrong = call("--to", "3ms")
    assert wrong.exit_code == 2 and "'3ms' is a time" in wrong.output and "--stop TIME" in wrong.output
    assert call("--from", "1ms").exit_code == 2
    none = call("--interface", "eth0")
    assert none.exit_code == 2 and "'eth0' is no interface of this capture; accepted: if10, if11" in none.output
    bounded = call("--start", "1ms", "--stop", "250ms", "--json")
    settings = json.loads(bounded.stdout)["settings"]
    assert (settings["start_ps"], settings["stop_ps"]) == (10**9, 250 * 10**9)


def test_stamps_say_the_port_whatever_the_direction() -> None:
    trace = Path(__file__).parents[2] / "examples" / "traces" / "host25.pcapng.gz"
    found = fanin.analyze(trace, rate="10Gbps")
    assert found.document["sources"][0]["taken"] is None and found.taken.is_empty()
    with pytest.raises(fanin.TraceError, match="to, direction, interface: have no effect: stamps in its packets"):
        fanin.analyze(trace, rate="10Gbps", to="10.7.0.25")


class TestWhoAndWhere:
    """What a plain capture answers: which flows, and that there is nothing where nothing is."""

    def test_the_flows_of_a_burst_by_rate_are_shown(self) -> None:
        trace = str(FOLDER / "incast18-receiver-any.pcap.gz")
        done = CliRunner().invoke(app, ["analyze", trace, "--rate", "100Mbps", "--top", "3"])
        assert done.exit_code == 0
        section = done.output.split("Flows of burst ")[1]
        assert section.count(" > 10.77.255.1:") == 3

    def test_nothing_left_is_an_error_that_says_what_to_do(self) -> None:
        words = r"to, direction, interface: '10\.99\.0\.1' leaves no packet; accepted: receivers, directions and interfaces"
        with pytest.raises(fanin.TraceError, match=words):
            fanin.analyze(FOLDER / "incast18-receiver-any.pcap.gz", rate="100Mbps", to="10.99.0.1")

    def test_interfaces_before_and_behind_go_by_number_or_by_the_name_of_a_port(self) -> None:
        whole = FOLDER / "incast27-switch-any.pcap.gz"
        document = {
            names: fanin.analyze(whole, rate="100Mbps", before_interface=names[0], behind_interface=names[1], behind=whole).pair
            for names in (("4", "6"), ("if4", "if6"))
        }
        (first, second) = document.values()
        assert first is not None and second is not None
        assert first["dropped"] == second["dropped"] > 0
        with pytest.raises(fanin.TraceError, match="no packet crosses from interface 'if98' to 'if99'"):
            fanin.analyze(whole, rate="100Mbps", before_interface="if98", behind_interface="if99", behind=whole)


def test_uplinks_that_packets_are_spread_over_are_queues_of_their_own(tmp_path: Path) -> None:
    # RIMM's testbed, shortened: detours go over both spines and come back, and each link is watched.
    host_link, uplink = {"rate": "10Gbps", "delay": "50ns"}, {"rate": "40Gbps", "delay": "15ns"}
    shape = {"kind": "leaf_spine", "leaves": 3, "hosts_per_leaf": 3, "spines": 2}
    flows = [{"src": "h0", "dst": "h6", "size": "6MB"}, {"src": "h3", "dst": "h6", "size": "4MB", "start": "1ms"}]
    scenario = {
        "name": "uplinks",
        "topology": {**shape, "host_link": host_link, "uplink": uplink},
        "switch": {
            "latency": "600ns",
            "buffer": {"kind": "static", "per_port": "24000 cells"},
            "mechanisms": {"rimm": {"alpha": "20000 cells", "release": "unordered"}},
        },
        "transport": {
            "kind": "tcp",
            "profile": "linux",
            "congestion_control": "cubic",
            "slow_start": "standard",
            "receive_window": {"kind": "fixed", "size": "930KB"},
        },
        "traffic": [{"kind": "flows", "flows": flows}],
        "telemetry": {"capture": {"links": ["leaf2->*"], "snap": "128B"}},
    }
    result = fanin.run(scenario, tmp_path / "out", progress=False)
    found = fanin.analyze(result.path / "packets.pcapng", rate="10Gbps")
    assert {port["port"] for port in found.document["ports"]} == {f"leaf2->{to} out" for to in ("spine0", "spine1", "h6")}
    # All SYNs and all that is acknowledged passed one of the links.
    assert {finding["code"] for finding in found.plausibility["findings"]} <= {"above_line"}
    assert found.plausibility["trust"] == "good"
