"""In-band telemetry: what a capture shows of it, and what a run counts."""

from __future__ import annotations

from pathlib import Path

import pytest

import fanin
from test_capture import TSHARK, shown

ROOT = Path(__file__).parents[2]
LUA = ROOT / "docs" / "wireshark" / "fanin_int.lua"


def scenario() -> fanin.Scenario:
    """Return three flows over two leaves to one receiver, with its link and those of the spine captured."""
    return fanin.Scenario(
        {
            "name": "int",
            "topology": {
                "kind": "leaf_spine",
                "leaves": 2,
                "spines": 1,
                "hosts_per_leaf": 3,
                "host_link": {"rate": "25Gbps", "delay": "1us"},
                "uplink": {"rate": "100Gbps", "delay": "1us"},
            },
            "switch": {"buffer": "unlimited", "mechanisms": {"int": {}}},
            "transport": {"kind": "roce", "congestion_control": "hpcc"},
            "traffic": [{"kind": "incast", "receiver": "h5", "senders": ["h0..h2"], "size": "60KB"}],
            "telemetry": {"sample": "off", "capture": {"hosts": ["h5"], "links": ["leaf1->h5", "spine0->leaf1"]}},
        }
    )


@pytest.mark.skipif(not TSHARK, reason="tshark is not installed: make install-tshark")
def test_wireshark_shows_records_and_the_packets_behind_them(tmp_path: Path) -> None:
    ran = fanin.run(scenario(), tmp_path / "out", progress=False)
    counted = ran.summary["mechanisms"]["int"]
    data = 3 * 59
    assert counted["stamped"] == 3 * data
    assert counted["full"] == 0
    fields = [
        "frame.interface_name",
        "int.hops",
        "int.echo",
        "int.rate",
        "int.sent",
        "int.queue",
        "ip.dst",
        "infiniband.bth.opcode",
    ]
    rows = shown(ran.path / "packets.pcapng", "int", fields, LUA)
    assert all(row["ip.dst"] and row["infiniband.bth.opcode"] for row in rows), "the packet behind it is shown as ever"
    into = [row for row in rows if row["frame.interface_name"] == "leaf1->h5"]
    assert len(into) == data
    assert {(row["int.hops"], row["int.rate"]) for row in into} == {("3", "100,100,25")}
    sent = [int(row["int.sent"].split(",")[-1]) for row in into]
    assert sent == sorted(sent)
    # 58 full frames of a flow and one of 608 B, each with 28 B of telemetry; the first of a message has 16 B more.
    full = 1_024 + 42 + 24 - 4 + 28
    assert abs(sent[-1] - (data - 1) * full) < 3 * 500
    assert max(int(row["int.queue"].split(",")[-1]) for row in into) > 20 * full
    assert {row["int.hops"] for row in rows if row["frame.interface_name"] == "spine0->leaf1"} == {"2"}
    at_host = [row for row in rows if row["frame.interface_name"] == "h5"]
    assert sum(row["int.echo"] in ("1", "True") for row in at_host) == data
    assert sum(row["int.echo"] not in ("1", "True") for row in at_host) == data
