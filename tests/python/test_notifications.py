"""Drop notifications: what a run says became of them, and what a capture shows of them."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich import console
from typer.testing import CliRunner

import fanin
from browsing import needs_browser, open_page
from fake_result import write_result
from fanin import _core, report
from fanin.analysis import tables
from fanin.cli import app, output
from fanin.tables import counters, overview
from fanin.text import terminal
from test_capture import TSHARK, shown

ROOT = Path(__file__).parents[2]
LUA = ROOT / "docs" / "wireshark" / "fanin_pdn.lua"
COUNTS: dict[str, Any] = {
    "raised": 1_000,
    "not_raised": 250,
    "attached": 700,
    "empty_frames": 900,
    "overflowed": 2,
    "next_hop_unaware": 3,
    "expired": 0,
    "lost": 5,
    "on_the_way": 1,
    "retransmitted": 950,
    "redundant": 10,
    "arrived": 4,
    "unknown": 6,
    "undefined": 0,
    "ignored": 12,
    "flow_ended": 7,
    "largest_queue": {"port": "leaf0->h3", "bytes": 140},
}


def with_counts(folder: Path, mechanisms: dict[str, Any]) -> fanin.Result:
    """Return a result whose summary says this of mechanisms."""
    path = write_result(folder, bursts=1) / "summary.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"mechanisms": mechanisms, "drops": 1_250}))
    return fanin.load(folder)


def fact(result: fanin.Result, key: str = "notifications") -> overview.Fact | None:
    return next((f for f in overview.facts(result.summary, result.manifest) if f.key == key), None)


def test_a_run_says_in_one_line_what_became_of_them(tmp_path: Path) -> None:
    shown = fact(with_counts(tmp_path / "a", {"notifications": COUNTS}))
    assert shown is not None
    assert (shown.name, shown.text, shown.tone) == ("Notifications", "1,000 raised", "bad")
    assert shown.note == ("950 retransmitted, 2 overflowed, 3 next hop unaware, 5 lost, 12 ignored, queue up to 140 B at leaf0->h3")
    none_lost = COUNTS | {"overflowed": 0, "next_hop_unaware": 0, "lost": 0, "ignored": 0, "largest_queue": None}
    shown = fact(with_counts(tmp_path / "b", {"notifications": none_lost}))
    assert shown is not None
    assert (shown.note, shown.tone) == ("950 retransmitted", "plain")
    assert fact(with_counts(tmp_path / "c", {})) is None


def test_the_page_shows_each_counter_with_its_meaning_and_each_failure(tmp_path: Path) -> None:
    text = report.render(with_counts(tmp_path / "a", {"notifications": COUNTS}))
    section = re.search(r'<section id="notifications" class="counters">(.*?)</section>', text, re.DOTALL)
    assert section is not None
    shown = re.findall(r'<th scope="row">(.*?)</th><td>(.*?)</td><td>(.*?)</td>', section[1])
    assert len(shown) == len(COUNTS), "each counter once"
    assert {name: count.replace(",", "") for name, count, _ in shown if name != "largest_queue"} == {
        name: str(count) for name, count in COUNTS.items() if name != "largest_queue"
    }
    assert ("lost", "5", "Notifications lost on a link, by <code>loss</code>.") in shown
    assert ("largest_queue", "140 B", "At leaf0-&gt;h3.") in shown
    lines = re.findall(r'<p class="notice bad">(.*?)</p>', section[1])
    assert lines == [
        "2 overflowed: Notifications lost because the notification queue was full.",
        "3 next hop unaware: Notifications lost because the next hop does not run PDN, or there is no route.",
        "5 lost: Notifications lost on a link, by <code>loss</code>.",
        "12 ignored: Notifications to a sender whose transport does not act on them: set <code>drop_notification</code> = true.",
    ]
    assert 'id="notifications"' not in report.render(with_counts(tmp_path / "b", {}))


def test_counters_that_this_version_does_not_know_are_shown_by_name(tmp_path: Path) -> None:
    result = with_counts(tmp_path / "a", {"lookahead": {"sent": 3, "by_reason": {"full": 2}}, "trimming": {"trimmed": 4, "new": 1}})
    assert [group.name for group in counters.groups(result.summary)] == ["trimming", "lookahead"]
    rows = result.mechanisms.filter(pl.col("count") > 0).select("group", "counter", "count").rows()
    assert rows == [("trimming", "trimmed", 4), ("trimming", "new", 1), ("lookahead", "sent", 3)]
    for text in (report.render(result), result._repr_html_()):
        assert "Lookahead" in text
        assert "by_reason: full" in text


def test_terminal_page_notebook_and_frame_have_every_counter_of_the_core(tmp_path: Path) -> None:
    declared = {group["name"]: group["counters"] for group in _core.counters()}
    result = with_counts(tmp_path / "a", {name: {c["name"]: 1 for c in listed} for name, listed in declared.items()})
    frame = result.mechanisms
    assert frame.rows() == [(group, c["name"], 1, c["kind"], c["doc"]) for group, listed in declared.items() for c in listed]
    texts = [html.unescape(report.render(result)), html.unescape(result._repr_html_()), shown_in_terminal(result)]
    for counter in frame["counter"].unique():
        assert all(counter in text for text in texts), counter
    page = (ROOT / "docs" / "counters.md").read_text(encoding="utf-8")
    assert page == _core.counters_page()
    assert all(doc in page for doc in frame["doc"])


def shown_in_terminal(result: fanin.Result) -> str:
    with console.Console(width=200).capture() as capture, pytest.MonkeyPatch.context() as patch:
        patch.setattr(terminal, "console", lambda: capture._console)
        output.show_summary(result)
    return capture.get()


def test_trimming_is_shown_in_the_same_way(tmp_path: Path) -> None:
    scenario = fanin.Scenario.from_file(ROOT / "scenarios" / "papers" / "pdn" / "fan-in.toml").replace(
        {
            "switch.mechanisms.pdn": None,
            "transport.drop_notification": False,
            "switch.mechanisms.trimming.headers": "12KB",
            "transport.trim_nack": True,
        }
    )
    ran = fanin.run(scenario, tmp_path / "out", progress=False)
    assert set(ran.summary["mechanisms"]) == {"trimming"}
    counts = ran.summary["mechanisms"]["trimming"]
    assert counts["by_reason"] == {"buffer_full": counts["trimmed"]}
    shown = fact(ran, "trimming")
    assert shown is not None
    lost = counts["headers_lost"]
    assert lost > 0
    assert counts["nacks_lost"] == 0
    assert (shown.text, shown.tone) == (f"{counts['trimmed']:,} trimmed", "bad")
    assert shown.note == (
        f"{counts['nack_retransmitted']:,} nack retransmitted, {lost:,} headers lost, queue up to 11.97 KB at left->right"
    )
    (group,) = counters.groups(ran.summary)
    assert counters.lines(group) == [f"{lost:,} headers lost: Trimmed packets that were dropped later."]
    text = report.render(ran)
    assert 'id="trimming"' in text
    assert 'id="notifications"' not in text


def test_both_may_run_together(tmp_path: Path) -> None:
    scenario = fanin.Scenario.from_file(ROOT / "scenarios" / "papers" / "pdn" / "fan-in.toml").replace(
        {"switch.mechanisms.trimming.headers": "12KB", "transport.trim_nack": True}
    )
    ran = fanin.run(scenario, tmp_path / "out", progress=False)
    counted = ran.summary["mechanisms"]
    # Headers for which there is no room are dropped, and notified of.
    assert counted["notifications"]["raised"] == counted["trimming"]["headers_lost"] == ran.summary["drops"] > 0
    assert ran.summary["timeouts"] == 0
    assert [group.name for group in counters.groups(ran.summary)] == ["notifications", "trimming"]


@pytest.fixture(scope="module")
def notified(tmp_path_factory: pytest.TempPathFactory) -> fanin.Result:
    """Return PDN's fan-in with all hosts captured, and stamps of the port between the racks."""
    scenario = fanin.Scenario.from_file(ROOT / "scenarios" / "papers" / "pdn" / "fan-in.toml")
    changed = scenario.replace(
        {
            "topology.left": 90,
            "traffic.0.receiver": "h90",
            "telemetry.queues": ["left->right"],
            "telemetry.registers": {},
            "telemetry.capture": {"hosts": ["*"]},
            "switch.mechanisms.pdn.loss": 0.1,
        }
    )
    return fanin.run(changed, tmp_path_factory.mktemp("notified") / "out", progress=False)


def test_a_capture_shows_what_the_simulator_counted(notified: fanin.Result) -> None:
    counts = notified.summary["mechanisms"]["notifications"]
    assert set(counts) == set(COUNTS)
    assert counts["lost"] > 0
    found = fanin.analyze(notified.path / "packets.pcapng", rate="1Gbps")
    notices = found.notifications
    assert notices is not None
    # From the switch that drops to the servers is one link, so that what was not lost on it was captured.
    assert notices["frames"] == notices["read"] == counts["raised"] - counts["lost"]
    assert notices["frames"] == notices["alone"] + notices["attached"]
    drops = notified.drops
    assert drops.height == counts["raised"]
    assert notices["told_bytes"] == 1000 * notices["read"]
    assert found.notified.height == 10
    assert found.notified["count"].is_sorted(descending=True)
    first = drops["time_ps"].min()
    assert isinstance(first, int)
    assert first < notices["first_ps"] <= notices["last_ps"]
    # All came while the queue was there.
    assert found.bursts["notifications"].sum() == notices["read"]
    assert found.bursts.schema["notifications"] == pl.UInt64()


def test_terminal_page_and_notebook_show_them(notified: fanin.Result, tmp_path: Path) -> None:
    capture, page = notified.path / "packets.pcapng", tmp_path / "a.html"
    ran = CliRunner().invoke(app, ["analyze", str(capture), "--rate", "1Gbps", "--top", "3"])
    found = fanin.analyze(capture, rate="1Gbps")
    lines = tables.notice_lines(found.document)
    assert len(lines) == 2
    for line in lines:
        assert line in ran.stdout
    assert "Flows with drop notifications" in ran.stdout
    assert "Notices" in ran.stdout
    text = found.report(page).read_text()
    assert all(line.replace("'", "&#39;") in text for line in lines)
    assert "Flows with the most notifications" in text
    assert lines[0] in found._repr_html_()
    # A result's own tables have none, and then nothing is shown.
    plain = fanin.analyze(notified)
    assert plain.notifications is None
    assert plain.notified.is_empty()
    assert "otification" not in CliRunner().invoke(app, ["analyze", str(notified.path)]).stdout
    assert 'id="notifications"' not in plain.report(page).read_text()


@pytest.mark.skipif(not TSHARK, reason="tshark is not installed: make install-tshark")
@pytest.mark.parametrize("ip", ["v4", "v6"])
def test_wireshark_shows_notifications_and_the_packets_before_them(ip: str, tmp_path: Path) -> None:
    scenario = {
        "name": "both-ways",
        "framing": {"ip": ip},
        "topology": {"kind": "single_switch", "hosts": 3, "link": {"rate": "1Gbps", "delay": "10us"}},
        "switch": {"buffer": {"kind": "static", "per_port": "20 packets"}, "mechanisms": {"pdn": {}}},
        "transport": {"kind": "tcp", "handshake": False, "initial_window": 30, "drop_notification": True},
        "traffic": [{"kind": "incast", "receiver": f"h{to}", "size": "60KB"} for to in (0, 2)],
        "telemetry": {"sample": "off", "capture": {"hosts": ["*"]}},
    }
    ran = fanin.run(fanin.Scenario(scenario), tmp_path / "out", progress=False)
    version, suffix = ("ip", "") if ip == "v4" else ("ipv6", "6")
    fields = [f"pdn.src{suffix}", "pdn.sport", "pdn.seq", "pdn.length", "pdn.operation", f"{version}.src", f"{version}.dst"]
    checked = [f"{version}.dst", f"pdn.src{suffix}"]
    rows = shown(ran.path / "packets.pcapng", "pdn", fields, LUA)
    assert len(rows) == ran.summary["mechanisms"]["notifications"]["raised"] == ran.drops.height
    data = [row for row in rows if row["pdn.operation"] == "1"]
    notified = sorted((int(row["pdn.seq"]), int(row["pdn.length"])) for row in data)
    dropped = ran.drops.filter(pl.col("payload_bytes") > 0)
    assert notified == sorted(zip(dropped["seq"].to_list(), dropped["payload_bytes"].to_list(), strict=True))
    assert {row["pdn.operation"] for row in rows} == {"1", "3"}
    behind = [row for row in rows if row[f"{version}.dst"]]
    assert 0 < len(behind) < len(rows), "some came alone"
    assert all(row[checked[0]] == row[checked[1]] for row in behind), "on the last link, to the host that is notified"
    status = shown(ran.path / "packets.pcapng", f"pdn && {version}", ["tcp.checksum.status"], LUA)
    assert {frame["tcp.checksum.status"] for frame in status} == {"1"}, "1 is good"


def test_what_could_not_be_read_is_said() -> None:
    found = {
        "frames": 20,
        "alone": 5,
        "attached": 15,
        "read": 10,
        "cut": 3,
        "short": 1,
        "types": [{"value": 1, "name": "drop_ipv4", "count": 10}, {"value": 9, "name": None, "count": 6}],
        "operations": [{"value": 2, "name": "retransmit", "count": 8}, {"value": 77, "name": None, "count": 2}],
        "told_bytes": 10_000,
        "repeated": 0,
        "first_ps": None,
        "last_ps": None,
        "flows": 1,
        "top": [{"name": "a > b", "count": 10, "repeated": 0, "bytes": 10_000, "first_ps": None, "last_ps": None}],
        "notes": ["the time of 20 is not known"],
    }
    assert tables.notice_lines({"notifications": found}) == [
        "20 drop notifications (5 in frames of their own, 15 behind other frames).",
        "They report 10 KB lost by 1 flow, and request: 8 retransmit.",
        "Not read: 3 cut off by the capture; 1 too short; 6 of type 9, which is not defined.",
        "Operations that are not defined: 2 for operation 77.",
        "The time of 20 is not known.",
    ]
    assert tables.notice_rows({"notifications": found}, 5) == (
        ["Flow", "Notices", "Repeated", "Bytes"],
        [["a > b", "10", "0", "10 KB"]],
    )
    assert tables.notice_lines({"notifications": None}) == []
    assert tables.notice_rows({"notifications": None}, 5)[1] == []


@needs_browser
def test_both_pages_in_a_browser(browser: Any, notified: fanin.Result, tmp_path: Path) -> None:
    report.write(notified, tmp_path / "run.html")
    trace = fanin.analyze(notified.path / "packets.pcapng", rate="1Gbps")
    for page in (tmp_path / "run.html", trace.report(tmp_path / "trace.html")):
        open_page(browser, page)
        section = browser.find_element("id", "notifications")
        assert section.is_displayed()
        wide = "return arguments[0].querySelector('table').scrollWidth <= arguments[0].querySelector('.scroll').clientWidth"
        assert browser.execute_script(wide, section), "no column is hidden"
        assert browser.get_log("browser") == []
    tile = "fact-notifications"
    open_page(browser, tmp_path / "run.html")
    assert "lost" in browser.find_element("id", tile).text
