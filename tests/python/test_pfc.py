"""Priority flow control: what results, captures and the doctor say of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fanin
from fanin.tables.schemas import schema
from test_capture import TSHARK, shown


def scenario(**pfc: Any) -> fanin.Scenario:
    """Return two hosts that send at line rate to a third, in class 3 of a lossless switch."""
    flow = {"kind": "cbr", "dst": "h2", "rate": "10Gbps", "counts": "wire", "packet": "1472B", "size": "1MB", "class": 3}
    return fanin.Scenario(
        {
            "topology": {"kind": "single_switch", "hosts": 3, "link": {"rate": "10Gbps", "delay": "1us"}},
            "switch": {
                "buffer": {"kind": "unlimited"},
                "scheduling": {"kind": "strict", "classes": 4},
                "mechanisms": {"pfc": {"classes": [3], "memory": "500KB", "xoff": {"kind": "static", "bytes": "30KB"}, **pfc}},
            },
            "traffic": [{**flow, "name": f"from {src}", "src": src} for src in ("h0", "h1")],
            "telemetry": {"capture": {"hosts": ["h0"]}, "sample": "off"},
        }
    )


def test_pauses_are_a_table_and_add_up_to_the_summary(tmp_path: Path) -> None:
    result = fanin.run(scenario(), tmp_path / "out")
    pauses = result.pauses
    file = result.path / "pauses.parquet"
    assert dict(pl.scan_parquet(file).collect_schema()) == schema("pauses")
    units = json.loads(pl.read_parquet_metadata(file)["fanin.units"])
    assert units == {column: "ps" if column.endswith("_ps") else "" for column in pauses.columns}
    assert set(pauses["behind"]) == {"switch0->h2"} and (pauses["asked_ps"] < pauses["start_ps"]).all()
    assert set(pauses["class"]) == {3} and set(pauses["port"].str.slice(0, 2)) == {"h0", "h1"}
    by_port = {port["port"]: port for port in result.summary["ports"]}
    for (port,), rows in pauses.group_by("port"):
        if port in by_port:
            assert by_port[port]["pauses"] == rows.height
            assert by_port[port]["paused_ps"] == (rows["end_ps"] - rows["start_ps"]).sum()
    counts = result.summary["mechanisms"]["pfc"]
    assert counts["frames_sent"] - counts["xon"] == pauses["frames"].sum()
    assert counts["xoff"] == counts["xon"] == pauses.height and result.summary["drops"] == 0


@pytest.mark.skipif(TSHARK is None, reason="tshark is not installed")
def test_wireshark_reads_pfc_frames(tmp_path: Path) -> None:
    fanin.run(scenario(), tmp_path / "out")
    fields = ("eth.dst", "macc.opcode", "macc.cbfc.pause_time.c3", "frame.len")
    rows = [list(frame.values()) for frame in shown(tmp_path / "out" / "packets.pcapng", "macc", fields)]
    assert rows and {row[0] for row in rows} == {"01:80:c2:00:00:01"}
    assert {int(row[1], 0) for row in rows} == {0x0101}
    assert {int(row[2], 0) for row in rows} == {0, 65_535}
    assert {row[3] for row in rows} == {"60"}


def test_the_doctor_says_what_headroom_is_missing() -> None:
    (warning,) = [w for w in scenario(headroom="4KB").check().warnings if "after XOFF" in str(w)]
    need = 1_518 + 2 * 1_538 + 84 + 2_500
    assert f"up to {need} B" in str(warning) and f"{need - 4_000} B more" in str(warning)
    assert any("is too short" in str(problem) for problem in scenario(quanta=50).check().problems)
    assert not any("is too short" in str(problem) for problem in scenario(quanta=51).check().problems)
    assert any("names no class of the traffic, which is of class 3" in str(w) for w in scenario(classes=[2]).check().warnings)
    assert any("leaves no pool at" in str(problem) for problem in scenario(memory="10KB").check().problems)


@pytest.mark.skipif(TSHARK is None, reason="tshark is not installed")
def test_wireshark_reads_notifications_of_rcm(tmp_path: Path) -> None:
    """The project's own dissector, from the first byte behind the EtherType on."""
    links = {key: {"rate": "100Gbps", "delay": "500ns"} for key in ("host_link", "uplink")}
    incast = {"kind": "incast", "receiver": "h4", "senders": ["h0", "h1", "h2", "h3"], "size": "500KB"}
    apart = {"kind": "flows", "flows": [{"src": "h0", "dst": "h5", "size": "500KB"}]}
    result = fanin.run(
        fanin.Scenario(
            {
                "topology": {"kind": "leaf_spine", "leaves": 2, "hosts_per_leaf": 4, "spines": 2, **links},
                "switch": {
                    "buffer": "unlimited",
                    "mechanisms": {"pfc": {"classes": [0], "xoff": {"kind": "static", "bytes": "60KB"}}, "rcm": {}},
                },
                "transport": {"kind": "roce"},
                "telemetry": {"sample": "off", "capture": {"links": ["*"]}},
                "traffic": [incast, apart],
            }
        ),
        tmp_path / "out",
        progress=False,
    )
    lua = Path(__file__).parents[2] / "docs" / "wireshark" / "fanin_rcm.lua"
    fields = ("rcm.kind", "rcm.degree", "rcm.src", "eth.dst", "frame.len")
    rows = [list(frame.values()) for frame in shown(result.path / "packets.pcapng", "eth.type == 0xa8f9", fields, lua)]
    assert rows and {row[0] for row in rows} <= {"1", "2"} and {row[3] for row in rows} == {"01:80:c2:00:00:0e"}
    assert {row[4] for row in rows} == {"60"} and any(0 < int(row[1]) <= 63 and row[2].startswith("10.0.0.") for row in rows)
