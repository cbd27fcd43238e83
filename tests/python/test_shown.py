"""What users see of an analysis and of a run: what nobody knows is a dash, what is estimated says so, and nothing is hidden."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import fanin
from fanin.cli import app
from fanin.tables import overview

ROOT = Path(__file__).parents[2]
CAPTURES = ROOT / "examples" / "captures"
PORT = {"rate": "100Mbps", "overhead": "0B", "fcs": False, "buffer": "512KB"}


def table(path: Path, columns: str = "", values: str = "") -> Path:
    rows = [f"{1000 * i},{min(875 * i, 60_000)},1000,{i}{values}" for i in range(100)]
    path.write_text("\n".join([f"time_ns,queue_bytes,len,flow{columns}", *rows, ""]), encoding="utf-8")
    return path


def test_what_no_column_tells_is_a_dash_and_null(tmp_path: Path) -> None:
    trace = table(tmp_path / "a.csv")
    found = fanin.analyze(trace, rate="1Gbps")
    assert found.ports.select("dropped", "marked").row(0) == (None, None)
    assert found.bursts.select("dropped_packets", "dropped_bytes", "marked_packets").row(0) == (None, None, None)
    shown = CliRunner().invoke(app, ["analyze", str(trace), "--rate", "1Gbps"])
    (port,) = re.findall(r"^ a +100 .*$", shown.stdout, re.MULTILINE)
    assert port.split()[-2:] == ["–", "–"]
    assert sum("drops and marks are unknown" in note for note in found.notes) == 1
    known = fanin.analyze(table(tmp_path / "b.csv", ",dropped,ce", ",0,0"), rate="1Gbps")
    assert known.ports.select("dropped", "marked").row(0) == (0, 0)


def test_sentences_and_page_say_that_a_queue_is_estimated(tmp_path: Path) -> None:
    found = fanin.analyze(CAPTURES / "incast-before.pcap.gz", **PORT)  # type: ignore[arg-type]
    assert found.laws["words"][0].startswith("By the estimated queue (≈): ")
    assert found.ports["marked"].to_list() == [None]
    assert found.ports["dropped"][0] > 300
    page = found.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "By the estimated queue (≈): " in page


def test_the_page_of_two_captures_counts_no_records_of_the_second(tmp_path: Path) -> None:
    found = fanin.analyze(
        CAPTURES / "incast-before.pcap.gz", behind=CAPTURES / "incast-behind.pcap.gz", rate="100Mbps", overhead="0B", fcs=False
    )
    assert [source["records"] for source in found.document["sources"]] == [2001, None]
    page = found.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<dd>pcap, 2,001 records</dd>" in page
    assert "<dd>pcap, behind the port</dd>" in page


def luminance(color: str) -> float:
    """Of WCAG 2.1."""
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("trust", ["good", "limited", "poor"])
def test_the_page_has_a_badge_of_how_far_to_trust_it(tmp_path: Path, trust: str) -> None:
    found = fanin.analyze(table(tmp_path / "a.csv"), rate="1Gbps")
    findings = [{"level": level, "words": f"a {level} was seen"} for level in ("doubt", "note")]
    found.document["plausibility"] |= {"trust": trust, "words": "parts of this may be wrong (losses)", "findings": findings}
    page = found.report(tmp_path / "page.html").read_text(encoding="utf-8")
    badge = f'<span class="pill {trust}" id="trust" title="parts of this may be wrong (losses)">trust: {trust}</span>'
    assert badge in page
    # The first screen says it in a sentence; what the doubts are opens below it, and notes are none.
    bad = " bad" if trust == "poor" else ""
    why = (
        f'<details class="notice{bad}" id="doubts"><summary>Trust: {trust}. Parts of this may be wrong</summary>\n'
        "<ul><li>A doubt was seen.</li></ul></details>"
    )
    assert (why in page) == (trust != "good")
    assert "A note was seen" not in page
    assert re.search(r'<details class="fold" id="notes" open><summary>\d notes?</summary>\n<ul><li>', page)
    style = re.findall(r"\.pill(?:\.complete, \.pill)?(\.\w+)? \{[^}]*background: (#[0-9a-f]{6})", page)
    colors = dict(style)
    behind = str(colors.get(f".{trust}", colors[""]))
    assert 1.05 / (luminance(behind) + 0.05) >= 4.5


def test_overrides_leave_problems_in_order_of_lines_and_have_none_themselves(tmp_path: Path) -> None:
    scenario = tmp_path / "s.toml"
    scenario.write_text(
        'name = "x"\n[topology]\nkind = "single_switch"\nhosts = 4\n[[traffic]]\nkind = "incast"\nreceiver = "h9"\nsize = "1KB"\n'
        '[telemetry]\nsample = "5"\n',
        encoding="utf-8",
    )
    sets = ["--set", "switch.marking.kk=3", "--set", "topology.hots=4"]
    shown = CliRunner().invoke(app, ["check", str(scenario), *sets])
    heads = [line.split(": ")[2] for line in shown.stderr.splitlines()]
    assert heads[:2] == ["traffic[0].receiver, line 7", "telemetry.sample, line 10"]
    assert sorted(heads[2:]) == ["switch.marking.kind", "topology.hots"]


def test_drops_at_hosts_stand_in_a_row_of_ports(tmp_path: Path) -> None:
    document: dict[str, Any] = {
        "name": "hosts",
        "topology": {"kind": "single_switch", "hosts": 3},
        "host": {"nic": {"kind": "fifo", "txqueuelen": 5}},
        "transport": {"kind": "tcp", "initial_window": 60, "rto_min": "10ms", "delayed_ack_timeout": "1ms"},
        "traffic": [{"kind": "incast", "receiver": "h2", "senders": ["h0", "h1"], "size": "300KB"}],
    }
    ran = fanin.run(fanin.Scenario(document), tmp_path / "out", progress=False)
    refused = ran.summary["drops_by_reason"]["txqueue_full"]
    rows = ran.summary["host_ports"]
    assert sum(row["drops"] for row in rows) == refused > 0
    assert [row["drops"] for row in rows] == sorted((row["drops"] for row in rows), reverse=True)
    _, shown = overview.port_rows(ran.summary)
    (row,) = (row for row in shown if row[0] == rows[0]["port"])
    assert row[0].startswith("h")
    assert (row[1], row[2], row[5]) == ("–", "–", "–")
    assert row[6] == f"{rows[0]['drops']:,}"


def test_the_numbers_of_a_pipe_name_no_port(tmp_path: Path) -> None:
    import subprocess
    import sys

    trace = table(tmp_path / "a.csv")
    call = f'"{sys.executable}" -c "from fanin.cli import app; app()" analyze <(cat "{trace}") <(cat "{trace}") --rate 1Gbps --json'
    done = subprocess.run(["bash", "-c", call], capture_output=True, text=True, check=True)
    document = json.loads(done.stdout)
    assert [source["path"] for source in document["sources"]] == ["pipe", "pipe 2"]
    assert sorted(port["port"] for port in document["ports"]) == ["pipe", "pipe 2"]


def test_entries_of_one_flow_share_a_curve(tmp_path: Path) -> None:
    def names(sizes: dict[str, int]) -> list[str]:
        flows = [
            {
                "kind": "flows",
                "name": name,
                "flows": [{"src": "h0", "dst": "h1", "size": "3KB", "start": f"{i}us"} for i in range(count)],
            }
            for name, count in sizes.items()
        ]
        document: dict[str, Any] = {
            "name": "groups",
            "topology": {"kind": "single_switch", "hosts": 2},
            "transport": {"kind": "tcp", "rto_min": "10ms", "delayed_ack_timeout": "1ms"},
            "traffic": flows,
        }
        ran = fanin.run(fanin.Scenario(document), tmp_path / "-".join(sizes), progress=False)
        return [trace.name for trace in ran.plot_fct_cdf().data]

    assert names({"a": 1, "b": 1, "c": 1}) == ["all (3)"]
    assert names({"d": 1, "e": 4, "f": 1}) == ["all (6)", "e (4)", "2 entries of one flow (2)"]
    assert names({"g": 1, "h": 4}) == ["all (5)", "g (1)", "h (4)"]
    assert names({"i": 1}) == ["i (1)"]


def test_a_run_that_was_killed_says_so(tmp_path: Path) -> None:
    document: dict[str, Any] = {
        "name": "live",
        "topology": {"kind": "single_switch", "hosts": 2},
        "transport": {"kind": "tcp", "rto_min": "10ms", "delayed_ack_timeout": "1ms"},
        "traffic": [{"kind": "flows", "flows": [{"src": "h0", "dst": "h1", "size": "3KB"}]}],
        "telemetry": {"hosts": ["*"], "queues": ["*"]},
    }
    out = fanin.run(fanin.Scenario(document), tmp_path / "out", progress=False).path
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    manifest |= {"status": "running", "files": {}}
    (out / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    for name in ("flows", "queues"):
        (out / f"{name}.parquet").write_bytes(b"PAR1")
    for words in (["explain", str(out), "0"], ["analyze", str(out)]):
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 2
        said = r"(flows\.parquet: is not whole: the run was killed; run|queues\.parquet: is of a run that has not ended, or)"
        assert re.search(said, done.stderr), done.stderr


def test_show_of_a_report_of_an_analysis_says_which_command_takes_it(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("time_ns,queue_bytes\n0,0\n1000,90000\n2000,0\n")
    report = tmp_path / "a.json"
    fanin.analyze(tmp_path / "a.csv", rate="10Gbps").to_json(report)
    done = CliRunner().invoke(app, ["show", str(report)])
    assert done.exit_code == 2
    assert f"{report}: is a report of fanin analyze, no scenario; fanin analyze TRACE -o page.html draws it" in done.stderr
    # Other JSON is read as a scenario, and its problems are those of one.
    (tmp_path / "b.json").write_text('{"schema": "other/1"}')
    assert "is a report" not in CliRunner().invoke(app, ["show", str(tmp_path / "b.json")]).stderr
