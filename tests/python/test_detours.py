"""RIMM: what a run says of detours, and what a capture of links shows of them."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fanin
from fanin.explain import detours
from fanin.tables import counters
from test_capture import TSHARK, shown, tshark

ROOT = Path(__file__).parents[2]
LUA = ROOT / "docs" / "wireshark" / "fanin_rimm.lua"
PDN_LUA = ROOT / "docs" / "wireshark" / "fanin_pdn.lua"
SHIMS_LUA = ROOT / "docs" / "wireshark" / "fanin_shims.lua"
RIVALS: dict[str, dict[str, Any]] = {
    "rimm": {"rimm": {"alpha": "40 packets"}},
    "dibs": {"dibs": {}},
    "pabo": {"pabo": {"lower": "20 packets", "upper": "60 packets"}},
    "vertigo": {"vertigo": {}},
}


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
    rows = shown(ran.path / "packets.pcapng", "rimm", fields, LUA, PDN_LUA)
    assert len(rows) == ran.manifest["files"]["packets"], "every frame between these switches has a header"
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
    said = [int(row["rimm.queue"]) for row in messages if int(row["rimm.kind"], 0) == 0xA8F3]
    # A crossing of 40 packets is seen when the next packet leaves; after that, that the queue is empty for the first time.
    assert set(said) - {0} <= set(range(36, 45)), said
    emptied = [before for before, depth in pairwise(said) if depth == 0]
    assert said[0] >= 40, said
    assert emptied, said
    assert all(0 < before < 40 for before in emptied), said
    scripts = ("-X", f"lua_script:{LUA}", "-X", f"lua_script:{PDN_LUA}")
    warnings = tshark(ran.path / "packets.pcapng", *scripts, "-q", "-z", "expert,warn")
    assert not [line for line in warnings if "alformed" in line or "hecksum" in line], warnings


def rival(key: str, telemetry: dict[str, Any]) -> fanin.Scenario:
    """Return the incast with another mechanism at all switches, whose ports hold few packets."""
    document = scenario("v4").to_dict()
    document["switch"] = {"buffer": {"kind": "static", "per_port": "80 packets"}, "mechanisms": RIVALS[key]}
    document["host"] = {"reorder": {"timeout": "1ms"}}
    document["telemetry"] = {"sample": "off", **telemetry}
    return fanin.Scenario(document)


@pytest.mark.skipif(not TSHARK, reason="tshark is not installed: make install-tshark")
@pytest.mark.parametrize("snap", [None, "110B"])
@pytest.mark.parametrize(("key", "field"), [("rimm", "rimm.kind"), ("pabo", "pabo.bounces"), ("vertigo", "vertigo.left")])
def test_wireshark_shows_other_headers_and_lengths_of_cut_frames(key: str, field: str, snap: str | None, tmp_path: Path) -> None:
    capture = {"links": ["leaf2->spine*", "spine*->leaf2"], **({"snap": snap} if snap else {})}
    ran = fanin.run(rival(key, {"capture": capture}), tmp_path / "out", progress=False)
    fields = [field, "vertigo.again", "frame.len", "tcp.len", "ip.len", "tcp.hdr_len"]
    rows = shown(ran.path / "packets.pcapng", f"{key} && tcp", fields, LUA, SHIMS_LUA)
    assert len(rows) > 50
    if key == "vertigo":
        assert len(rows) == ran.manifest["files"]["packets"], "every frame has a header"
        assert {int(row[field]) for row in rows} >= {0, 60_000}
        assert all(int(row[field]) <= 60_000 and row["vertigo.again"] for row in rows)
    if key == "pabo":
        assert max(int(row[field]) for row in rows) > 1
    data = [row for row in rows if int(row["tcp.len"]) > 1_000]
    assert data, "full segments"
    for row in data:
        length = int(row["ip.len"]) - 20 - int(row["tcp.hdr_len"])
        assert int(row["tcp.len"]) == length, "as on the wire, whatever was kept of the frame"


@pytest.mark.parametrize("key", ["dibs", "vertigo"])
def test_explain_and_the_page_show_detours_of_rivals(key: str, tmp_path: Path) -> None:
    ran = fanin.run(rival(key, {"hosts": ["*"]}), tmp_path / "out", progress=False)
    counted = ran.summary["mechanisms"][key]
    found = detours.each(ran.scan("hops"))
    assert 0 < found.height <= counted["detoured" if key == "dibs" else "deflected"]
    flow = int(found["flow"].mode().sort()[0])
    assert "detour" in ran.explain(flow).text
    page = ran.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert '<section id="detours">' in page
    assert f"<h2>{key.upper() if key == 'dibs' else 'Vertigo'}</h2>" in page


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> fanin.Result:
    """Return the incast of which every packet was followed."""
    document = scenario("v4").to_dict()
    document["telemetry"] = {"sample": "20us", "hosts": ["*"]}
    return fanin.run(fanin.Scenario(document), tmp_path_factory.mktemp("detours") / "out", progress=False)


def test_detours_of_followed_packets_are_those_that_the_switches_counted(followed: fanin.Result) -> None:
    found = detours.each(followed.scan("hops"))
    counted = followed.summary["mechanisms"]["rimm"]
    assert counted["dropped_away"] == 0
    assert found.height == counted["detoured"] + counted["redetoured"] - counted["astray"] > 100
    assert set(found["switch"]) == {"leaf2"}
    assert set(found["neighbour"]) <= {"spine0", "spine1"}
    # Independently: walk over each packet's hops.
    ways: dict[int, list[tuple[str, int, int]]] = {}
    for packet, port, arrived, reached in (
        followed.hops.sort("packet", "arrived_ps").select("packet", "port", "arrived_ps", "reached_ps").iter_rows()
    ):
        ways.setdefault(packet, []).append((port, arrived, reached))
    walked = []
    for packet, hops in ways.items():
        rest = reversed(hops)
        second = next(rest)
        for first in rest:
            if first[0].split("->") == second[0].split("->")[::-1]:
                walked.append((first[1], packet, second[2] - first[1]))
                second = next(rest)
            else:
                second = first
    walked.sort()
    assert list(found.select("from_ps", "packet", "away_ps").iter_rows()) == walked
    rows = detours.rows(found)
    assert sum(int(row[2].replace(",", "")) for row in rows) == found.height


def test_explain_says_where_packets_went_and_what_came_out_of_order(followed: fanin.Result) -> None:
    found = detours.each(followed.scan("hops"))
    flow = int(found["flow"].mode().sort()[0])
    own = found.filter(pl.col("flow") == flow)
    document = followed.explain(flow).document
    assert (document["detours"]["detours"], document["detours"]["packets"]) == (own.height, own["packet"].n_unique())
    assert document["detours"]["away_max_ps"] == own["away_ps"].max()
    assert 0 < document["detours"]["critical_ps"] <= document["end_ps"] - document["start_ps"]
    text = followed.explain(flow).text
    assert f"of its packets took {own.height} detours, to spine" in text
    assert "of its time is detours." in text
    late = followed.flows.filter(pl.col("reordered") > 0)
    for row in late.head(2).iter_rows(named=True):
        assert f"{row['reordered']} packet" in followed.explain(row["flow"]).text
        assert "arrived after later ones" in followed.explain(row["flow"]).text


def test_retransmissions_of_what_had_arrived_are_needless() -> None:
    copies = [  # packet, seq, again, received
        (0, 0, 0, 100),
        (1, 1000, 0, None),
        (2, 0, 1, 300),  # the first copy arrived
        (3, 1000, 1, 400),  # the first copy was lost
        (4, 1000, 2, None),
    ]
    rows = [
        {"packet": packet, "flow": 7, "host": "h0", "kind": "data", "seq_bytes": seq, "payload_bytes": 1000, "again": again}
        | {"received_ps": received, "trimmed": False}
        for packet, seq, again, received in copies
    ]
    assert detours.sent_needlessly(pl.LazyFrame(rows)).rows() == [(7, 3, 2)]


def test_the_page_shows_detours_without_raw_markup(followed: fanin.Result, tmp_path: Path) -> None:
    page = followed.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert '<section id="detours">' in page
    assert "Where packets went, and how long they were away" in page
    assert "<h2>RIMM</h2>" in page
    tables = "".join(re.findall(r"<(?:caption|th|td)[^>]*>.*?</(?:caption|th|td)>", page))
    assert "<code>release</code>" in tables
    assert "`" not in tables


def test_a_run_without_detours_has_no_place_for_them(tmp_path: Path) -> None:
    document = scenario("v4").to_dict()
    del document["switch"]
    document["telemetry"] = {"sample": "20us", "hosts": ["*"]}
    ran = fanin.run(fanin.Scenario(document), tmp_path / "out", progress=False)
    assert 'id="detours"' not in ran.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert ran.explain(0).document["detours"] is None
