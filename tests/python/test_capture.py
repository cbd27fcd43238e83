"""`telemetry.capture`: packets.pcapng, read by others: scapy builds each frame again, Wireshark judges the checksums."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import struct
import subprocess
import sys
from collections.abc import Sequence
from ipaddress import IPv6Address
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fanin

ROOT = Path(__file__).parents[2]
TSHARK = shutil.which("tshark")
LUA = ROOT / "docs" / "wireshark" / "fanin_stamp.lua"

SCENARIO: dict[str, Any] = {
    "name": "capture",
    "topology": {"kind": "leaf_spine", "leaves": 2, "spines": 1, "hosts_per_leaf": 4},
    "switch": {
        "buffer": {"kind": "static", "per_port": "30KB"},
        "marking": {"kind": "threshold", "k": "15KB"},
        "scheduling": {"kind": "strict", "classes": 4},
    },
    "transport": {"kind": "tcp", "congestion_control": "dctcp", "rto_min": "5ms", "ack_every": 1},
    "traffic": [
        {"kind": "incast", "receiver": "h7", "size": "60KB", "class": 2},
        {"kind": "cbr", "src": "h0", "dst": "h7", "rate": "1Gbps", "size": "20KB", "packet": "100B"},
    ],
    "telemetry": {"sample": "off", "queues": ["leaf1->h7"], "registers": {}, "capture": {"hosts": ["h7"]}},
}


@pytest.fixture(scope="module", params=["v4", "v6"])
def result(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> fanin.Result:
    """Return a run with drops, marks, SACK, stamps, datagrams and two classes, over either version of IP."""
    scenario = fanin.Scenario(SCENARIO).replace({"framing.ip": request.param})
    ran = fanin.run(scenario, out=tmp_path_factory.mktemp("capture") / "out")
    assert ran.manifest["files"]["drops"] > 0
    return ran


def version(result: fanin.Result) -> str:
    """Return the version of IP of a run."""
    return str(result.scenario["framing"]["ip"])


def rebuilt(ethernet: bytes, ip: bytes) -> tuple[bytes, Any]:
    """Return what scapy makes of a packet that it has taken apart and stripped of lengths and checksums; and the packet."""
    from scapy.layers.inet import IP, TCP, UDP
    from scapy.layers.inet6 import IPv6
    from scapy.layers.l2 import Ether

    datagram: Any
    if ip[0] >> 4 == 4:
        datagram = IP(ip[: int.from_bytes(ip[2:4])])
        del datagram.chksum, datagram.len, datagram.ihl
    else:
        datagram = IPv6(ip[: 40 + int.from_bytes(ip[4:6])])
        del datagram.plen
    if TCP in datagram:
        del datagram[TCP].chksum, datagram[TCP].dataofs
    else:
        del datagram[UDP].chksum, datagram[UDP].len
    return bytes(Ether(ethernet) / datagram), datagram


def tshark(file: Path, *arguments: str) -> list[str]:
    """Run tshark with all checksums checked; its lines."""
    checks = [word for protocol in ("ip", "tcp", "udp") for word in ("-o", f"{protocol}.check_checksum:TRUE")]
    command = [str(TSHARK), "-r", str(file), *checks, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def shown(file: Path, which: str, fields: Sequence[str], *dissectors: Path) -> list[dict[str, str]]:
    """What tshark says in these fields of each frame that a display filter lets through."""
    scripts = [word for script in dissectors for word in ("-X", f"lua_script:{script}")]
    each = [word for name in fields for word in ("-e", name)]
    lines = tshark(file, *scripts, "-Y", which, "-T", "fields", *each)
    return [dict(zip(fields, line.split("\t"), strict=True)) for line in lines]


def test_scapy_builds_the_same_frames(result: fanin.Result) -> None:
    """Taken apart, stripped of lengths and checksums and built again, each frame gives the same bytes."""
    from scapy.layers.inet import TCP
    from scapy.utils import PcapNgReader

    v6 = version(result) == "v6"
    labels: dict[Any, set[int]] = {}
    options: set[str] = set()
    classes: set[int] = set()
    frames = 0
    with PcapNgReader(str(result.path / "packets.pcapng")) as reader:
        for packet in reader:
            frames += 1
            raw = bytes(packet.original)
            built, datagram = rebuilt(raw[:14], raw[14:])
            if TCP in datagram:
                options |= {name for name, _ in datagram[TCP].options if isinstance(name, str)}
            if v6:
                labels.setdefault((datagram.src, datagram.dst, datagram.sport, datagram.dport), set()).add(datagram.fl)
            assert datagram.src.startswith("fd00::" if v6 else "10.0.0.")
            classes.add((datagram.tc if v6 else datagram.tos) >> 5)
            assert raw[: len(built)] == built
            padding, stamp = raw[len(built) : -8], raw[-8:]
            assert not any(padding)
            assert (len(raw) == 60) if padding else len(raw) >= 60
            assert stamp[0] == 0xFA
    assert frames == result.manifest["files"]["packets"] > 500
    assert options == {"MSS", "SAckOK", "Timestamp", "NOP", "WScale", "SAck"}
    assert classes == {0, 2}
    assert all(len(of_flow) == 1 and 0 not in of_flow for of_flow in labels.values()), "one label for each flow and direction"
    assert len(set.union(set(), *labels.values())) == len(labels) == (16 - 1 if v6 else 0)


def test_notifications_behind_ipv6(tmp_path: Path) -> None:
    """EtherType 0xA6DD, and 44 B at the end that notify of the drops that there were; without them, frames as ever."""
    from scapy.utils import PcapNgReader

    scenario = fanin.Scenario(SCENARIO).replace(
        {
            "framing.ip": "v6",
            "switch.mechanisms.pdn.acks": False,
            "switch.marking": "none",
            "transport.congestion_control": "newreno",
            "transport.drop_notification": True,
            "traffic[0].size": "200KB",
            "traffic[1]": {"kind": "incast", "receiver": "h0", "size": "200KB", "class": 2},
            "telemetry.capture.hosts": ["*"],
        }
    )
    result = fanin.run(scenario, out=tmp_path / "out")
    notified, behind = [], 0
    with PcapNgReader(str(result.path / "packets.pcapng")) as reader:
        for packet in reader:
            raw = bytes(packet.original)
            if raw[12:14] != b"\xa6\xdd":
                continue
            *addresses, _, _, seq, length, kind, operation = struct.unpack("!16s16sHHIHBB", raw[-44:])
            assert all(str(IPv6Address(address)) in {f"fd00::{n}" for n in range(1, 9)} for address in addresses)
            assert (kind, operation, length > 0) == (2, 1, True)
            notified.append((seq, length))
            if raw[14] >> 4 == 6:
                behind += 1
                built, _ = rebuilt(raw[:12] + b"\x86\xdd", raw[14:])
                assert raw[14 : len(built)] == built[14:]
            else:
                assert len(raw) == 60
                assert not any(raw[14:-44])
    dropped = result.drops.filter(pl.col("payload_bytes") > 0).select("seq", "payload_bytes").rows()
    assert sorted(notified) == sorted(dropped)
    assert 0 < behind < len(notified)


def test_a_capture_of_ipv6_is_analysed(result: fanin.Result) -> None:
    """Bursts from a capture are those from the stamps, and flows have their names."""
    capture = fanin.analyze(result.path / "packets.pcapng", above="10KB")
    stamps = fanin.analyze(result.path / "stamps.parquet", above="10KB")
    theirs, ours = capture.burst("leaf1->h7", 0), stamps.burst("leaf1->h7", 0)
    assert theirs is not None
    assert ours is not None
    for key in ("start_ps", "end_ps", "peak_bytes", "marked_packets"):
        assert theirs[key] == ours[key], key
    host = r"\[fd00::\d\]" if version(result) == "v6" else r"10\.0\.0\.\d"
    for flow in theirs["direct"]:
        assert re.fullmatch(rf"{host}:\d+ > {host}:\d+ (tcp|udp)", flow["name"]), flow


@pytest.mark.skipif(not TSHARK, reason="tshark is not installed: make install-tshark")
def test_wireshark_finds_every_checksum_good(result: fanin.Result) -> None:
    file = result.path / "packets.pcapng"
    v6 = version(result) == "v6"
    status = ("ip.checksum.status", "tcp.checksum.status", "udp.checksum.status", "eth.fcs.status")
    lines = tshark(file, "-T", "fields", *(word for name in status for word in ("-e", name)))
    kinds = {line: lines.count(line) for line in set(lines)}
    ip = "" if v6 else "1"  # IPv6's header has none
    assert set(kinds) == {f"{ip}\t1\t\t", f"{ip}\t\t1\t"}, "1 is good; no frame check sequence was captured"
    assert sum(kinds.values()) == result.manifest["files"]["packets"]
    warnings = tshark(file, "-q", "-z", "expert,warn") + tshark(file, "-q", "-z", "expert,error")
    assert not [line for line in warnings if "alformed" in line or "hecksum" in line], warnings
    trees = tshark(file, "-q", "-z", "io,phs")
    found = {line.split()[0] for line in trees if "frames:" in line}
    assert found == {"eth", "ipv6" if v6 else "ip", "tcp", "udp", "data"}, "no port or payload is taken for another protocol"


@pytest.mark.skipif(not TSHARK, reason="tshark is not installed: make install-tshark")
def test_wireshark_shows_interface_time_and_stamps(result: fanin.Result) -> None:
    file = result.path / "packets.pcapng"
    stamps = result.stamps.filter(host="h7").sort("received_ps", maintain_order=True)
    fields = ("frame.time_epoch", "frame.interface_name", "fanin.port", "fanin.queue", "fanin.time", "frame.len")
    frames = shown(file, "fanin", fields, LUA)
    assert len(frames) == stamps.height > 100
    for frame, row in zip(frames, stamps.iter_rows(named=True), strict=True):
        time, interface, port, queue, ticks, length = frame.values()
        seconds, nanoseconds = time.split(".")
        assert int(seconds) * 10**9 + int(nanoseconds) == row["received_ps"] // 1000
        assert (interface, port, int(length)) == ("h7", "0", row["frame_bytes"] - 4)
        assert int(queue) == row["stamp_length"] * 8
        assert float(ticks) == pytest.approx(row["stamp_time"] * 800e-9)


FULL = """
import json, sys
import fanin
try:
    fanin.run(fanin.Scenario(json.loads(sys.argv[1])), out=sys.argv[2])
except OSError as error:
    print(error)
"""


def limit() -> None:
    """Refuse to let any file grow beyond 5 MB, as a full disk would."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (5_000_000, 5_000_000))


@pytest.mark.skipif(sys.platform == "win32", reason="no limits for files")
def test_a_capture_that_does_not_fit_is_readable_and_reported(tmp_path: Path) -> None:
    scenario = {**SCENARIO, "traffic": [{"kind": "incast", "receiver": "h7", "size": "2MB", "class": 2}]}
    command = [sys.executable, "-c", FULL, json.dumps(scenario), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, preexec_fn=limit, env={**os.environ})
    assert "packets.pcapng: cannot be written" in done.stdout, done
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["status"] == "partial"
    assert "packets.pcapng" in manifest["reason"]
    assert not (tmp_path / "out" / "summary.json").exists()
    frames = manifest["files"]["packets"]
    assert frames > 2_000
    assert blocks((tmp_path / "out" / "packets.pcapng").read_bytes()).count(6) == frames
    assert fanin.load(tmp_path / "out").flows.height == manifest["files"]["flows"] == 7


def blocks(file: bytes) -> list[int]:
    """Kinds of a pcapng file's blocks; it ends with a whole one."""
    kinds, at = [], 0
    while at < len(file):
        kind, length = (int.from_bytes(file[at + i : at + i + 4], "little") for i in (0, 4))
        assert int.from_bytes(file[at + length - 4 : at + length], "little") == length
        kinds.append(kind)
        at += length
    assert at == len(file)
    return kinds


def test_a_result_that_is_replaced_takes_its_capture_along(tmp_path: Path) -> None:
    out = tmp_path / "out"
    fanin.run(fanin.Scenario(SCENARIO), out=out)
    assert (out / "packets.pcapng").exists()
    telemetry = {**SCENARIO["telemetry"]}
    del telemetry["capture"]
    again = fanin.run(fanin.Scenario({**SCENARIO, "telemetry": telemetry}), out=out, overwrite=True)
    assert not (out / "packets.pcapng").exists()
    assert "packets" not in again.manifest["files"]
