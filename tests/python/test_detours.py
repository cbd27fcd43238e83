"""RIMM: what a run says of detours, and what a capture of links shows of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import fanin
from fanin import counters
from test_capture import TSHARK, tshark

pytestmark = pytest.mark.native
ROOT = Path(__file__).parents[2]
LUA = ROOT / "docs" / "wireshark" / "fanin_rimm.lua"
PDN_LUA = ROOT / "docs" / "wireshark" / "fanin_pdn.lua"


def scenario(ip: str, **more: Any) -> fanin.Scenario:
    """Return an incast whose burst goes around, with the links of its leaf captured."""
    return fanin.Scenario(
        {
            "name": "detours",
            "framing": {"ip": ip},
            "topology": {
                "kind": "leaf_spine",
                "leaves": 3,
                "spines": 2,
                "hosts_per_leaf": 2,
                "host_link": {"rate": "10Gbps", "delay": "200ns"},
                "uplink": {"rate": "40Gbps", "delay": "300ns"},
            },
            "switch": {
                "buffer": {"kind": "static", "per_port": "3000 packets"},
                "mechanisms": {"rimm": {"alpha": "40 packets"}, **more},
                "except": [{"tier": 1, "mechanisms": {"rimm": {"alpha": "2000 packets"}, **more}}],
            },
            "transport": {"kind": "tcp", "handshake": False, "initial_window": 30, "rto_min": "5ms"},
            "traffic": [{"kind": "incast", "receiver": "h5", "senders": ["h0..h3"], "flows_per_sender": 3, "size": "60KB"}],
            "telemetry": {"sample": "off", "capture": {"links": ["leaf2->spine*", "spine*->leaf2"]}},
        }
    )


def test_largest_values_are_shown_with_what_they_are(tmp_path: Path) -> None:
    ran = fanin.run(scenario("v4"), tmp_path / "out", progress=False)
    (group,) = counters.groups(ran.summary)
    listed = {row[0]: row for row in counters.rows(group)}
    assert listed["longest_detour_ps"][2].startswith("From a packet's first detour")
    counted = ran.summary["mechanisms"]["rimm"]
    assert counted["detoured"] > 0
    assert counted["paper_state_bytes"] == 4 * 4 + 32 * 1024
    assert counted["state_bytes"] > counted["paper_state_bytes"]


@pytest.mark.skipif(not TSHARK, reason="tshark is not installed: make install-tshark")
@pytest.mark.parametrize(("ip", "more"), [("v4", {}), ("v6", {"pdn": {}})])
def test_wireshark_shows_headers_and_the_packets_behind_them(ip: str, more: dict[str, Any], tmp_path: Path) -> None:
    ran = fanin.run(scenario(ip, **more), tmp_path / "out", progress=False)
    counted = ran.summary["mechanisms"]["rimm"]
    assert counted["dropped_away"] == 0
    to = "ip.dst" if ip == "v4" else "ipv6.dst"
    fields = ["rimm.kind", "rimm.depth", "rimm.number", "rimm.port", "rimm.queue", to, "tcp.port"]
    scripts = ["-X", f"lua_script:{LUA}", "-X", f"lua_script:{PDN_LUA}"]
    each = [word for name in fields for word in ("-e", name)]
    lines = tshark(ran.path / "packets.pcapng", *scripts, "-Y", "rimm", "-T", "fields", *each)
    assert len(lines) == ran.manifest["files"]["packets"], "every frame between these switches has a header"
    rows = [dict(zip(fields, line.split("\t"), strict=True)) for line in lines]
    kinds = Counter(int(row["rimm.kind"], 0) for row in rows)
    assert kinds[0xA8F1] == counted["detoured"] + counted["redetoured"] > 100
    assert kinds[0xA8F2] == kinds[0xA8F1] - counted["astray"]
    # The last one may be on the way when the run ends.
    assert 0 <= counted["messages_sent"] - kinds[0xA8F3] <= 1 < kinds[0xA8F3]
    assert 0 <= counted["messages_sent"] - counted["messages_lost"] - kinds[0xA8F4] <= 1
    assert all(row[to] and row["tcp.port"] for row in rows), "the packet behind it is shown as ever"
    assert all((row["rimm.number"] != "") == (int(row["rimm.kind"], 0) in (0xA8F1, 0xA8F2)) for row in rows)
    messages = [row for row in rows if int(row["rimm.kind"], 0) >= 0xA8F3]
    # leaf2's third and fourth ports lead to its hosts, in the order of the topology.
    assert {row["rimm.port"] for row in messages} != {""}
    assert {int(row["rimm.queue"]) for row in messages} <= set(range(36, 45)), "a crossing is seen when the next packet leaves"
    warnings = tshark(ran.path / "packets.pcapng", *scripts, "-q", "-z", "expert,warn")
    assert not [line for line in warnings if "alformed" in line or "hecksum" in line], warnings
