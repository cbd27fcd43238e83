"""Scenarios of traces: sizes, starts and numbers are those of the trace, and their simulation does what the port did."""

from __future__ import annotations

import re
import tomllib
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import fanin
from fanin.analysis import port_scenario
from fanin.analysis.port_scenario import PortScenario
from fanin.cli import app

CAPTURES = Path(__file__).parents[2] / "examples" / "captures"
HTB: dict[str, Any] = {"rate": "100Mbps", "overhead": "0B", "fcs": False}
"""The port of the captures: Linux' HTB, in frames without their check sequence."""


def pair(name: str, **more: Any) -> fanin.Analysis:
    before, behind = (CAPTURES / f"{name}-{side}.pcap.gz" for side in ("before", "behind"))
    return fanin.analyze(before, behind=behind, **HTB, **more)


def flows(made: PortScenario) -> list[dict[str, str]]:
    listed: list[dict[str, str]] = tomllib.loads(made.text)["traffic"][-1]["flows"]
    return listed


def test_a_kernel_s_incast_does_the_same_once_more() -> None:
    found = pair("incast", buffer="512KB")
    made = found.to_scenario()
    # examples/captures/facts.txt: 18 senders of 128,000 bytes, Reno, a round trip of 2 ms, a bfifo of 512 kB.
    assert [flow["size"] for flow in flows(made)] == ["128000B"] * 18
    assert len({flow["src"] for flow in flows(made)}) == 18
    table = tomllib.loads(made.text)
    assert table["transport"]["initial_window"] == 10
    trip = 2 * (2 * int(table["topology"]["host_link"]["delay"][:-2]) + int(table["topology"]["bottleneck"]["delay"][:-2]))
    assert 2.0e9 < trip < 2.15e9
    # A frame of 1514 bytes took 121.12 us there; here it has 1518, and 20 around it.
    assert table["topology"]["bottleneck"]["rate"] == "101585Kbps"
    assert table["switch"]["buffer"]["per_port"] == f"{round(512_000 * 1518 / 1514)}B"
    assert list(made.simulated) == ["newreno", "cubic"]
    assert (made.measured.dropped, made.measured.peak_bytes) == (345, 511_732)
    best = made.simulated["newreno"]
    assert best.dropped is not None
    assert 310 <= best.dropped <= 380
    assert best.peak_bytes == pytest.approx(511_732, rel=0.005)
    assert best.burst_ps == pytest.approx(made.measured.burst_ps, rel=0.02)
    assert best.lasted_ps == pytest.approx(made.measured.lasted_ps, rel=0.02)
    assert made.measured.distance(best) < 0.2 < made.measured.distance(made.simulated["cubic"])
    assert "congestion control: newreno, which comes nearer than cubic" in made.unsure
    assert made.scenario.check().problems == ()
    assert found.to_scenario().text == made.text
    # One capture with the buffer says the same, by its estimate.
    alone = fanin.analyze(CAPTURES / "incast-before.pcap.gz", **HTB, buffer="512KB").to_scenario()
    assert sorted(flow["size"] for flow in flows(alone))[9] == "128000B"
    assert list(alone.simulated) == ["newreno", "cubic"]


def test_what_the_trace_lacks_is_said() -> None:
    made = pair("drops").to_scenario()
    said = "\n".join(made.unsure)
    assert re.search(r"^buffer: 12[78]\.\d KB, the longest queue of a packet that was kept", said, re.MULTILINE)
    assert re.search(r"^round trip: 2\.\d+ ms, the shortest of 27 handshakes", said, re.MULTILINE)
    for words in made.unsure:
        assert f"# * {words}\n" in made.text
    best = next(iter(made.simulated.values()))
    assert made.measured.dropped == 182
    assert best.dropped is not None
    assert 164 <= best.dropped <= 200
    assert best.lasted_ps == pytest.approx(made.measured.lasted_ps, rel=0.1)


def test_what_no_scenario_of_a_port_has_is_said_and_how_far_it_is_off() -> None:
    near = pair("incast", buffer="512KB").to_scenario()
    assert near.missed == ()
    assert near.limits == (port_scenario.LIMITS,)
    assert f"# {near.limits[0][0].upper()}{near.limits[0][1:]}.\n" in near.text
    measured = near.measured
    assert measured.missed(near.simulated["cubic"]) == ["drops (132 for 345)"]
    assert measured.missed(replace(measured, dropped=None)) == []
    off = replace(measured, peak_bytes=measured.peak_bytes * 1.3, lasted_ps=measured.lasted_ps // 2)
    assert [words.split(" (")[0] for words in measured.missed(off)] == ["longest queue", "time to the last data"]
    assert measured.missed(replace(measured, peak_bytes=measured.peak_bytes * 1.2, dropped=345 + 80)) == []
    assert replace(measured, dropped=0).missed(replace(measured, dropped=2)) == [], "a few more or less say little"
    far = replace(near, missed=("drops (132 for 345)",))
    assert far.limits[0].endswith("drops (132 for 345); do not believe what it says of a remedy")


def test_a_simulated_port_comes_back(tmp_path: Path) -> None:
    truth = {
        "name": "truth",
        "topology": {
            "kind": "dumbbell",
            "left": 6,
            "right": 2,
            "host_link": {"rate": "25Gbps", "delay": "1us"},
            "bottleneck": {"rate": "10Gbps", "delay": "18us"},
        },
        "switch": {"buffer": {"kind": "static", "per_port": "150KB"}, "marking": {"kind": "threshold", "k": "60KB"}},
        "transport": {"kind": "tcp", "profile": "linux", "congestion_control": "dctcp", "initial_window": 7, "handshake": False},
        "traffic": [
            {
                "kind": "flows",
                "flows": [
                    {"src": f"h{n}", "dst": f"h{6 + n % 2}", "size": f"{200 + n}KB", "start": f"{n * 9}us"} for n in range(6)
                ],
            }
        ],
        "telemetry": {"queues": ["left->right"]},
    }
    result = fanin.run(truth, tmp_path / "out", progress=False)
    ends = {row["flow"]: f"10.0.0.{row['flow']}:5 > 10.0.1.{row['flow'] % 2}:80 tcp" for row in result.flows.iter_rows(named=True)}
    path = tmp_path / "port.csv"
    result.queues.select(
        time_ns=pl.col("time_ps") / 1000,
        queue_bytes="queue_bytes",
        frame="frame_bytes",
        flow=pl.col("flow").replace_strict(ends, return_dtype=pl.String),
        marked=pl.col("marked").cast(pl.UInt8),
        dropped=pl.col("dropped").cast(pl.UInt8),
    ).write_csv(path, float_precision=3)
    made = fanin.analyze(path, rate="10Gbps", rtt="42us", buffer="150KB").to_scenario(tmp_path / "again.toml")
    table = tomllib.loads((tmp_path / "again.toml").read_text(encoding="utf-8"))
    assert (table["topology"]["left"], table["topology"]["right"]) == (6, 2)
    assert table["topology"]["host_link"]["rate"] == "25Gbps"
    assert table["topology"]["bottleneck"]["rate"] == "10Gbps"
    assert table["transport"]["congestion_control"] == "dctcp"
    assert table["transport"]["initial_window"] == 7
    assert 56_000 <= int(table["switch"]["marking"]["k"][:-1]) <= 62_000
    # Where no bare acknowledgment shows the headers, timestamps are taken to be there, as they are.
    sizes = sorted(int(flow["size"][:-1]) for flow in flows(made))
    assert sizes == pytest.approx([200_000 + 1000 * n for n in range(6)], rel=0.005)
    starts = [int(flow["start"][:-2]) for flow in flows(made)]
    assert starts == pytest.approx([9_000 * n for n in range(6)], abs=100)
    again = made.simulated["dctcp"]
    assert again.peak_bytes == pytest.approx(made.measured.peak_bytes, rel=0.05)
    assert again.lasted_ps == pytest.approx(made.measured.lasted_ps, rel=0.05)


def datagrams(path: Path, names: list[str]) -> Path:
    """Write 400 datagrams of each flow, 1000 bytes every 8 us, through a port of 3 Gb/s."""
    rows = [f"{8_000 * i + n},{500 * (i % 7) * 40},1046,{name},0,0" for i in range(400) for n, name in enumerate(names)]
    path.write_text("\n".join(["time_ns,queue_bytes,frame,flow,marked,dropped", *rows, ""]), encoding="utf-8")
    return path


def test_what_is_no_tcp_is_sent_at_its_rate(tmp_path: Path) -> None:
    names = ["10.0.0.1:9 > 10.0.0.9:4791 udp", "[fd00::1]:9 > [fd00::9]:53 udp"]
    made = fanin.analyze(datagrams(tmp_path / "a.csv", names), rate="3Gbps", rtt="50us").to_scenario()
    entries = tomllib.loads(made.text)["traffic"]
    assert [entry["kind"] for entry in entries] == ["cbr", "cbr"]
    # 1046 bytes are 1000 of payload over IPv4, and 980 over IPv6.
    assert [entry["size"] for entry in entries] == ["400000B", "392000B"]
    assert [entry["rate"] for entry in entries] == ["1Gbps", "980Mbps"]
    assert "2 flows are not TCP: datagrams at their mean rate, which react to nothing" in made.unsure
    assert not any(words.startswith("congestion control") for words in made.unsure)
    assert made.scenario.check().problems == ()


def test_dropped_datagrams_are_part_of_what_was_sent(tmp_path: Path) -> None:
    """Two senders of 10 Gb/s before a port of 10 Gb/s: nobody sends a lost datagram again, so that the rate is of all."""
    waiting = deque[int]()
    queue, free, rows = 0, 0, []
    for i in range(650):
        now = 20_000_000 + (i // 2) * 1_231 + (i % 2) * 500
        while waiting and waiting[0] <= now:
            waiting.popleft()
            queue -= 1518
        dropped = queue + 1518 > 400_000
        rows.append(f"{now},{queue},1518,10.0.0.{i % 2 + 2}:5000 > 10.0.0.1:9000 udp,0,{int(dropped)}")
        if not dropped:
            free = max(free, now) + 1_231
            waiting.append(free)
            queue += 1518
    trace = tmp_path / "a.csv"
    trace.write_text("\n".join(["time_ns,queue_bytes,frame,flow,marked,dropped", *rows, ""]), encoding="utf-8")
    made = fanin.analyze(trace, rate="10Gbps", buffer="400KB").to_scenario()
    assert made.measured.dropped == pytest.approx(63, abs=3)
    assert made.simulated["none"].dropped == pytest.approx(made.measured.dropped, abs=5)
    assert made.missed == ()


def test_names_of_flows_stay_in_their_comments(tmp_path: Path) -> None:
    rows = pl.DataFrame(
        {
            "time_ns": range(0, 300_000, 1_000),
            "queue_bytes": [min(20 * i, 3_000) * 10 for i in range(300)],
            "frame": [1518] * 300,
            "flow": ['a\n[topology]\nkind = "x"', "b\u2028 > c", "plain"] * 100,
            "dropped": [0] * 300,
        }
    )
    rows.write_parquet(tmp_path / "a.parquet")
    made = fanin.analyze(tmp_path / "a.parquet", rate="10Gbps", rtt="50us").to_scenario()
    assert len(flows(made)) == 3
    assert made.scenario.check().problems == ()
    assert '# a?[topology]?kind = "x"' in made.text


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        ("time_ns,queue_bytes,frame,flow", {}, "needs the speed of the port: --rate"),
        ("time_ns,queue_bytes,frame,other", {"rate": "1Gbps"}, "does not say which flow a packet is of"),
        ("time_ns,queue_bytes,other,flow", {"rate": "1Gbps"}, "does not say how large packets are"),
        ("time_ns,other,frame,flow", {"rate": "1Gbps"}, "needs the queue"),
    ],
)
def test_what_cannot_be_replayed_is_refused(tmp_path: Path, columns: str, options: dict[str, Any], words: str) -> None:
    path = tmp_path / "a.csv"
    # It only grows: nothing shows how fast it drains.
    rows = [f"{1000 * i},{1518 * i},1518,{1 + i % 3}" for i in range(200)]
    path.write_text("\n".join([columns, *rows, ""]), encoding="utf-8")
    with pytest.raises(ValueError, match=words):
        fanin.analyze(path, **options).to_scenario()


def test_the_command_writes_it_and_keeps_what_is_there(tmp_path: Path) -> None:
    target = tmp_path / "port of a day.toml"
    before, behind = (str(CAPTURES / f"incast-{side}.pcap.gz") for side in ("before", "behind"))
    command = ["analyze", before, "--behind", behind, "--rate", "100Mbps", "--overhead", "0B", "--no-fcs", "--to-scenario"]
    done = CliRunner().invoke(app, [*command, str(target)], env={"COLUMNS": "120"})
    assert done.exit_code == 0, done.stderr
    assert re.search(r"^ newreno +511\.\d KB +3\d\d +18\d\.?\d* ms", done.stdout, re.MULTILINE)
    assert done.stdout.rstrip().endswith(str(target))
    assert "note: not in the trace, and taken so: buffer: " in done.stderr
    text = target.read_text(encoding="utf-8")
    assert f"#   fanin best '{target}'\n" in text
    # Whatever its comments propose can be run.
    for settings in re.findall(r"^#   fanin run '[^']+' -o \S+((?: --set \S+)+)$", text, re.MULTILINE):
        check = CliRunner().invoke(app, ["check", str(target), *settings.split()])
        assert check.exit_code == 0, check.stderr
    assert len(re.findall(r"^#   fanin run .* --set ", text, re.MULTILINE)) == 2
    again = CliRunner().invoke(app, [*command, str(target)])
    assert again.exit_code == 2
    assert f"error: --to-scenario {target}: is there already; --force replaces it" in again.stderr.replace("\n", "")
    target.write_text("mine", encoding="utf-8")
    assert CliRunner().invoke(app, [*command, str(target), "--force", "-q"]).exit_code == 0
    assert target.read_text(encoding="utf-8") == text
    records = tmp_path / "r.csv"
    records.write_text("mine", encoding="utf-8")
    refused = CliRunner().invoke(app, ["analyze", before, "--rate", "100Mbps", "--records", str(records)])
    assert (refused.exit_code, records.read_text(encoding="utf-8")) == (2, "mine")
    wrong = CliRunner().invoke(app, [*command, str(tmp_path / "a.txt")])
    assert (wrong.exit_code, "names that end in .toml are" in wrong.stderr) == (2, True)
