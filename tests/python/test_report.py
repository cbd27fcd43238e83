"""The report: one file, escaped, without requests; in a real browser its charts are there and hold the right data."""

from __future__ import annotations

import base64
import html
import itertools
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

import fanin
from browsing import CONTRAST, Page, needs_browser, open_page, requested, script
from fake_result import COLD, PORT, write_followed, write_result, write_table
from fanin import report
from fanin.analysis import tables
from fanin.figures import series
from fanin.text import show

CHARTS = {
    "fct",
    "slowdown",
    "fct-cdf",
    "slowdown-cdf",
    "queue-0",
    "burst",
    "queue-1",
    "throughput",
    "paused-ports",
    "throughput-ports",
    "drops-marks",
}


def test_the_page_refers_to_nothing_and_forbids_everything(folder: Path) -> None:
    text = report.render(fanin.load(folder))
    page = Page(text)
    assert page.references == []
    assert page.handlers == []
    assert page.ids >= CHARTS
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy[1]
    assert "'unsafe-inline'" not in policy[1].split("script-src")[1].split(";")[0]


def test_what_users_wrote_is_text(tmp_path: Path) -> None:
    evil = "</script><img src=x onerror=alert(1)>"
    out = write_result(
        tmp_path / "out",
        bursts=1,
        status="partial",
        manifest={"name": evil, "warnings": [evil], "reason": evil, "scenario": {"name": evil}},
    )
    flows = fanin.load(out).flows.with_columns(group=pl.lit(evil))
    flows.write_parquet(out / "flows.parquet", metadata={"fanin.schema": "flows/1"})
    text = report.render(fanin.load(out))
    assert "<img" not in text
    assert text.count("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;") >= 4
    assert Page(text).handlers == []
    assert "Partial result:" in text
    data = re.search(r'<script type="application/json" id="figures">(.*?)</script>', text, re.DOTALL)
    assert data is not None
    assert "<" not in data[1]
    assert "img src=x" in json.dumps(json.loads(data[1])["fct-cdf"])


def test_the_tables_are_those_of_the_summary(folder: Path) -> None:
    result = fanin.load(folder)
    text = report.render(result)
    assert f"{result.summary['flows']['complete']} of {result.summary['flows']['total']}" in text
    assert "slowdown is the completion time over that alone on an idle network" in text
    assert "k = &#34;65 packets&#34;" in text
    assert "switch.marking.k: is above the buffer" in text
    assert "0000000000000001" in text


def test_aborted_flows_and_traffic_entries_are_on_the_page(folder: Path) -> None:
    result = fanin.load(folder)
    assert "aborted:" not in report.render(result)
    result.summary["flows"]["aborted"] = 1
    result.summary["aborted"] = [{"flow": 3, "src": "h0", "dst": "h9", "size_bytes": 1000, "reason": "retries_exhausted"}]
    text = report.render(result)
    assert "1 flow aborted: flow 3 h0 -&gt; h9, 1000 B: retries_exhausted</p>" in text
    times = sorted(result.completions.filter(pl.col("group") == "query")["fct_ps"].to_list())
    nearest = [show.duration(times[math.ceil(share * len(times)) - 1]) for share in (0.5, 0.99)]
    cells = "</td><td>".join([str(len(times)), show.duration(sum(times) / len(times)), *nearest])
    assert f'<th scope="row">query</th><td>{cells}</td>' in text


def test_equal_results_give_equal_pages_and_writing_is_whole(tmp_path: Path, folder: Path) -> None:
    result = fanin.load(folder)
    first = result.report(tmp_path / "a.html").read_bytes()
    assert fanin.load(folder).report(tmp_path / "b.html").read_bytes() == first
    broken = write_result(tmp_path / "out", bursts=1)
    (broken / "flows.parquet").write_bytes(b"no")
    with pytest.raises(fanin.ResultError, match=r"flows\.parquet: cannot be read"):
        fanin.load(broken).report(tmp_path / "a.html")
    assert (tmp_path / "a.html").read_bytes() == first
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a.html", "b.html", "out"]


def test_a_long_idle_rest_is_not_shown_at_first_and_the_page_says_so(tmp_path: Path) -> None:
    result = fanin.load(write_result(tmp_path / "out"))
    assert "double-click for the whole run" not in report.render(result)
    quiet = result.ports.filter(pl.col("port") == PORT).with_columns(
        pl.col("time_ps") + 9_200_000_000,
        **{c: pl.lit(0, result.ports.schema[c]) for c in ("tx_bytes", "drops", "marks", "queue_max_bytes")},
    )
    write_table(result.path, "ports", pl.concat([result.ports, quiet.select(result.ports.columns)]))
    result.manifest["sim_ps"] = 18_400_000_000
    text = report.render(result)
    assert text.count("when 99.9 % of all bytes had been sent; double-click for the whole run.") >= 4
    data = re.search(r'id="figures">(.*?)</script>', text, re.DOTALL)
    assert data is not None
    low, high = json.loads(data[1])["throughput"]["layout"]["xaxis"]["range"]
    assert (low, high < 9.7) == (0, True)


def test_a_run_that_recorded_nothing_has_a_page(tmp_path: Path) -> None:
    out = write_result(tmp_path / "out", bursts=1, watch=False, manifest={"files": {}})
    for name in ("ports", "drops", "queries", "flows"):
        (out / f"{name}.parquet").unlink()
    summary = {"flows": {"total": 0, "complete": 0}, "fct": [], "ports": [], "goodput_bps": 0}
    (out / "summary.json").write_text(json.dumps(summary))
    text = report.render(fanin.load(out))
    assert "No queue was recorded." in text
    assert text.count("nothing was recorded") == 7


def test_a_followed_flow_that_sent_no_data_has_a_line(tmp_path: Path) -> None:
    out = write_result(tmp_path / "out", bursts=1)
    assert "Flows that were followed" not in report.render(fanin.load(out))
    write_followed(out)
    text = report.render(fanin.load(out))
    assert text.count('id="flow-') == 1
    assert "sent no data" not in text
    segments = fanin.load(out).segments
    silent = [segments.with_columns(flow=pl.lit(n, pl.UInt32), payload_bytes=pl.lit(0, pl.UInt16)) for n in range(1, 7)]
    write_table(out, "segments", pl.concat([segments, *silent]))
    result = fanin.load(out)
    text = report.render(result)
    assert text.count('id="flow-') == 1
    for flow in range(1, 5):
        assert f'<p class="notice">{html.escape(result.explain(flow).text)}</p>' in text
    assert "2 more followed flows sent no data." in text


def test_a_page_names_each_kind_of_line_once(tmp_path: Path) -> None:
    """Entries of a legend that look alike cannot be told apart."""
    out = write_result(tmp_path / "out", bursts=6, senders=32, each=14, limit=120)
    data = re.search(r'id="figures">(.*?)</script>', report.render(fanin.load(out)), re.DOTALL)
    assert data is not None
    charts = json.loads(data[1])
    assert charts
    for key, chart in charts.items():
        if not chart["layout"].get("showlegend"):
            continue
        default = itertools.cycle(chart["colorway"])
        looks = []
        for trace in chart["data"]:
            color = next(default)
            look = {**trace.get("marker", {}), **trace.get("line", {}), "mode": trace["mode"]}
            if trace.get("showlegend", True):
                looks.append((look.get("color", color), look.get("dash"), look.get("symbol"), look["mode"], trace.get("fillcolor")))
        assert len(set(looks)) == len(looks), (key, looks)


def explorer(text: str) -> dict[str, Any]:
    """What the script that draws bursts reads on a page."""
    data = re.search(r'id="explorer">(.*?)</script>', text, re.DOTALL)
    assert data is not None
    found: dict[str, Any] = json.loads(data[1])
    return found


def test_a_page_with_many_packets_can_still_be_mailed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = write_result(tmp_path / "out", bursts=6, senders=32, each=14, limit=120)
    monkeypatch.setattr("fanin.analysis.explorer.PAGE_PACKETS", 1000)
    monkeypatch.setattr("fanin.analysis.explorer.OUTLINES", 6 * 100)
    views = [view for view in explorer(report.render(fanin.load(out)))["views"] if view["index"] is not None]
    whole = [view["kind"] == "packets" for view in views]
    assert whole == [True, True, True, False, False, False], "the highest, and two others that fit"
    for view, every in zip(views, whole, strict=True):
        assert ("each as it found the queue" in view["note"]) is every
        assert ("the largest queue of each of 100 columns of time" in view["note"]) is not every
        assert ("bands" in view) is every


def drawn(browser: webdriver.Chrome, chart: str) -> dict[str, tuple[Any, Any]]:
    """The curves that a chart shows: name → x, y."""
    curves = script(
        browser,
        "return document.getElementById(arguments[0]).fanin.curves()",
        chart,
    )
    return {name: (x, y) for name, x, y in curves}


@pytest.fixture(scope="module")
def page(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fanin.load(folder).report(tmp_path_factory.mktemp("page") / "report.html")


COLORS = """
return document.getElementById(arguments[0]).fanin.plots.map(({ctx}) => {
  const {data} = ctx.getImageData(0, 0, ctx.canvas.width, ctx.canvas.height);
  const seen = new Set();
  for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 250) seen.add(data[i] << 16 | data[i + 1] << 8 | data[i + 2]);
  return seen.size;
});
"""
"""How many colours each panel of a chart has."""


@pytest.fixture(scope="module")
def bursts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a run with bursts that are found as such."""
    out = write_result(tmp_path_factory.mktemp("bursts") / "out", bursts=6, senders=32, each=14, limit=120)
    write_followed(out)
    return fanin.load(out).report()


def per_millisecond(browser: webdriver.Chrome, chart: str) -> float:
    """Return the units of a chart's time axis in a millisecond."""
    title = script(browser, f"return document.getElementById('{chart}').fanin.spec.x.title")
    return next(n for unit, n in (("[ms]", 1.0), ("[us]", 1e3), ("[µs]", 1e3), ("[ns]", 1e6), ("[s]", 1e-3)) if unit in title)


@needs_browser
class TestInBrowser:
    def test_all_charts_are_drawn_without_error_or_request(self, browser: webdriver.Chrome, page: Path) -> None:
        open_page(browser, page)
        assert {plot.get_attribute("id") for plot in browser.find_elements(By.CSS_SELECTOR, ".plot")} == CHARTS
        for chart in CHARTS:
            assert drawn(browser, chart), chart
            assert all(colors > 3 for colors in script(browser, COLORS, chart)), f"{chart}: axes alone"
        assert browser.get_log("browser") == []  # type: ignore[no-untyped-call]
        requests = [request["url"] for request in requested(browser)]
        assert page.as_uri() in requests
        assert [url for url in requests if not url.startswith(("file://", "data:", "blob:"))] == []

    def test_the_policy_stops_requests(self, browser: webdriver.Chrome, page: Path) -> None:
        open_page(browser, page)
        text = "const done = arguments[0]; fetch('http://127.0.0.1:9/x').then(() => done('sent'), e => done(String(e)))"
        outcome = browser.execute_async_script(text)
        assert "TypeError" in outcome
        assert any("Content Security Policy" in entry["message"] for entry in browser.get_log("browser"))  # type: ignore[no-untyped-call]

    def test_the_charts_hold_the_data_of_the_frames(self, browser: webdriver.Chrome, page: Path, folder: Path) -> None:
        result = fanin.load(folder)
        open_page(browser, page)
        queue = drawn(browser, "queue-0")
        records = result.queues
        for name, rows in (
            ("dropped", records.filter(pl.col("dropped"))),
            ("marked CE", records.filter(pl.col("marked"))),
            ("queued", records.filter(~pl.col("marked") & ~pl.col("dropped"))),
        ):
            assert np.allclose(queue[name][0], rows["time_ps"].to_numpy() / 1e9), name
            assert np.allclose(queue[name][1], rows["queue_bytes"].to_numpy() / 1e3), name
        done = result.completions.filter(pl.col("group") == "query")
        curve = drawn(browser, "fct-cdf")[f"query ({done.height})"]
        assert np.allclose(curve[0], done["fct_ps"].sort().to_numpy() / 1e9)
        assert curve[1][-1] == 1
        assert sum(drawn(browser, "drops-marks")["drops"][1]) == result.summary["drops"]
        rate = drawn(browser, "throughput-ports")["leaf0->h0"]
        sent = result.ports.filter(pl.col("port") == PORT)["tx_bytes"].to_numpy()
        assert np.allclose(rate[1], sent * 8e12 / 100e6 / 1e9)
        slow = drawn(browser, "slowdown")["median"][1]
        assert np.allclose(slow, [entry["slowdown_p50"] for entry in result.summary["fct"][1:] if entry["flows"]])

    def test_names_are_shown_as_they_are(self, browser: webdriver.Chrome, page: Path) -> None:
        open_page(browser, page)
        assert browser.find_element(By.TAG_NAME, "h1").text == "incast </script> & friends"
        legend = browser.find_element(By.CSS_SELECTOR, "#fct-cdf .legend").text
        assert "background <b> (" in legend

    def test_tabs_choose_the_port(self, browser: webdriver.Chrome, page: Path) -> None:
        open_page(browser, page)
        tabs = browser.find_elements(By.CSS_SELECTOR, "[role=tab]")
        assert [tab.text for tab in tabs] == [f"{PORT} every packet", COLD]
        assert browser.find_element(By.ID, "queue-0").is_displayed()
        script(browser, "arguments[0].click()", tabs[1])
        assert not browser.find_element(By.ID, "queue-0").is_displayed()
        assert browser.find_element(By.ID, "queue-1").is_displayed()
        width = "return document.querySelector('#queue-1 canvas').getBoundingClientRect().width"
        WebDriverWait(browser, 10).until(lambda _: script(browser, width) > 900)

    def test_light_and_dark(self, browser: webdriver.Chrome, page: Path) -> None:
        open_page(browser, page)
        look = (
            "return [getComputedStyle(document.body).backgroundColor,"
            " document.querySelector('#fct canvas').getContext('2d').canvas.toDataURL()]"
        )
        before = script(browser, look)
        script(browser, "document.getElementById('theme').click()")
        WebDriverWait(browser, 10).until(lambda _: script(browser, look)[1] != before[1])
        assert script(browser, look)[0] != before[0]
        assert browser.get_log("browser") == []  # type: ignore[no-untyped-call]

    def test_zooming_reaches_single_packets(self, browser: webdriver.Chrome, page: Path, folder: Path) -> None:
        open_page(browser, page)
        first, second = fanin.load(folder).queues["time_ps"][:2].to_numpy() / 1e9
        script(browser, "document.getElementById('queue-0').fanin.zoom([arguments[0], arguments[1]])", first - 1e-7, second + 1e-7)
        seen = "const {min, max} = document.getElementById('queue-0').fanin.plots[0].scales.x; return [min, max]"
        WebDriverWait(browser, 10).until(lambda _: script(browser, seen)[1] < 1)
        assert np.allclose(script(browser, seen), [first - 1e-7, second + 1e-7], rtol=0, atol=1e-12)

    def test_dragging_zooms_and_a_double_click_shows_all(self, browser: webdriver.Chrome, page: Path) -> None:
        open_page(browser, page)
        seen = "return document.getElementById('queue-0').fanin.range"
        whole = script(browser, seen)
        over = browser.find_element(By.CSS_SELECTOR, "#queue-0 .u-over")
        script(browser, "arguments[0].scrollIntoView({block: 'center'})", over)
        wide = over.size["width"]
        chain = ActionChains(browser).move_to_element(over).move_by_offset(-wide // 4, 0)
        chain.click_and_hold().move_by_offset(wide // 2, 0).release().perform()
        WebDriverWait(browser, 10).until(lambda _: script(browser, seen) != whole)
        low, high = script(browser, seen)
        assert high - low == pytest.approx((whole[1] - whole[0]) / 2, rel=0.02)
        assert low - whole[0] == pytest.approx((whole[1] - whole[0]) / 4, rel=0.05)
        ActionChains(browser).move_to_element(over).double_click().perform()
        WebDriverWait(browser, 10).until(lambda _: script(browser, seen) == whole)

    def test_a_narrow_window_scrolls_no_page(self, browser: webdriver.Chrome, page: Path) -> None:
        browser.set_window_size(700, 900)
        try:
            open_page(browser, page)
            wide = "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
            whole, window = script(browser, wide)
            assert whole <= window
        finally:
            browser.set_window_size(1280, 900)

    def test_a_large_queue_has_its_highest_burst_with_every_packet(self, browser: webdriver.Chrome, tmp_path: Path) -> None:
        result = fanin.load(write_result(tmp_path / "out", bursts=40, senders=24, each=20))
        open_page(browser, result.report())
        assert script(browser, "return document.getElementById('queue-0-peak')") is None
        overview, near = drawn(browser, "queue-0"), drawn(browser, "burst")
        assert len(overview["queue"][0]) <= series.MAX_POINTS
        assert max(overview["queue"][1]) == pytest.approx(max(near["queue"][1]))
        window = script(browser, "return document.getElementById('queue-0').fanin.spec.panels[0].bands[0]")
        # A short burst has an axis of its own unit: both in picoseconds.
        unit = 1e9 / per_millisecond(browser, "burst")
        times = [round(x * unit) for x in near["queue"][0]]
        start, end = (round(window[x] * 1e9) for x in ("x0", "x1"))
        peak = times[near["queue"][1].index(max(near["queue"][1]))]
        assert min(times) <= start < peak < end <= max(times)
        assert browser.get_log("browser") == []  # type: ignore[no-untyped-call]

    def test_a_large_queue_without_a_burst_has_a_window_with_every_packet(self, browser: webdriver.Chrome, tmp_path: Path) -> None:
        result = fanin.load(write_result(tmp_path / "out", bursts=40, senders=24, each=20, limit=15))
        open_page(browser, result.report())
        overview, near = drawn(browser, "queue-0"), drawn(browser, "queue-0-peak")
        assert len(overview["queue"][0]) <= series.MAX_POINTS
        records = sum(len(near.get(name, [[]])[0]) for name in ("queued", "marked CE", "dropped"))
        assert records == report.PEAK_PACKETS
        assert max(overview["queue"][1]) == pytest.approx(max(near["queue"][1]))
        window = script(browser, "return document.getElementById('queue-0').fanin.spec.panels[0].bands[0]")
        low, high = script(browser, "return document.getElementById('queue-0-peak').fanin.range")
        peak = near["queue"][0][near["queue"][1].index(max(near["queue"][1]))]
        first, last = min(near["queue"][0]), max(near["queue"][0])
        assert [window["x0"], window["x1"]] == pytest.approx([low, high])
        assert first <= low < peak < high <= last
        assert high - low < 0.5 * (last - first), "opened at the burst, the rest around it"
        assert browser.get_log("browser") == []  # type: ignore[no-untyped-call]

    def test_a_real_run_has_a_page_that_holds_its_data(self, browser: webdriver.Chrome, tmp_path: Path) -> None:
        scenario = fanin.Scenario.from_file(Path(__file__).parents[2] / "scenarios" / "incast.toml")
        result = fanin.run(
            scenario.replace({"telemetry.queues": ["*"], "telemetry.sample": "20us"}), tmp_path / "out", progress=False
        )
        open_page(browser, result.report())
        port = result.summary["largest_queue"]["port"]
        records = result.queues.filter(pl.col("port") == port)
        chart = drawn(browser, "burst")
        assert max(chart["queue"][1]) == pytest.approx(records["queue_bytes"].to_numpy().max() / 1e3)
        assert sum(drawn(browser, "drops-marks")["ECN marks"][1]) == result.summary["marks"]
        median = next(entry for entry in result.summary["fct"] if entry["bin"] != "all" and entry["flows"])["slowdown_p50"]
        assert drawn(browser, "slowdown")["median"][1][0] == pytest.approx(median)
        assert browser.get_log("browser") == []  # type: ignore[no-untyped-call]

    def test_a_phone_scrolls_tables_and_not_the_page(self, browser: webdriver.Chrome, bursts: Path) -> None:
        narrow = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", narrow)
        try:
            open_page(browser, bursts)
            assert script(browser, "return [document.documentElement.scrollWidth, window.innerWidth]") == [360, 360]
            boxes = script(
                browser,
                "return [...document.querySelectorAll('.scroll')].filter(b => b.offsetParent)"
                ".map(b => [b.getBoundingClientRect().right, b.scrollWidth > b.clientWidth, getComputedStyle(b).overflowX])",
            )
            assert boxes
            assert all(right <= 360 and how == "auto" for right, _, how in boxes)
            assert any(wider for _, wider, _ in boxes)
            canvases = "return [...document.querySelectorAll('canvas')].map(s => s.getBoundingClientRect().right)"
            assert max(script(browser, canvases)) <= 360
        finally:
            browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    @pytest.mark.parametrize("theme", ["light", "dark"])
    def test_text_stands_out_from_what_is_behind_it(self, browser: webdriver.Chrome, bursts: Path, theme: str) -> None:
        """WCAG AA: a contrast of 4.5."""
        colors = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", colors)
        try:
            open_page(browser, bursts)
            assert script(browser, "return document.documentElement.dataset.theme") == theme
            seen = script(browser, CONTRAST)
        finally:
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
        assert len(seen) > 100
        assert [entry for entry in seen if entry[0] < 4.5] == []

    @pytest.mark.parametrize(("paper", "wide", "high"), [("A4", 210, 297), ("Letter", 215.9, 279.4)])
    def test_nothing_is_clipped_on_paper(
        self, browser: webdriver.Chrome, bursts: Path, paper: str, wide: float, high: float
    ) -> None:
        open_page(browser, bursts)
        script(browser, "document.getElementById('theme').click()")
        before = script(
            browser, "return [document.documentElement.dataset.theme, document.querySelector('#fct .uplot').clientWidth]"
        )
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        margins = 24
        text_width = (wide - margins) / 25.4 * 96
        metrics = {"width": int(text_width), "height": 1000, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        try:
            script(browser, "window.dispatchEvent(new Event('beforeprint'))")
            inside = "return [...document.querySelectorAll('.uplot, table, .tile')].filter(e => e.getClientRects().length)"
            ends = script(browser, f"{inside}.map(e => e.getBoundingClientRect().right)")
            assert len(ends) > 30
            assert max(ends) <= text_width, paper
            assert script(browser, "return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
            script(browser, "window.dispatchEvent(new Event('afterprint'))")
        finally:
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
            browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        after = "return [document.documentElement.dataset.theme, document.querySelector('#fct .uplot').clientWidth]"
        WebDriverWait(browser, 10).until(lambda _: script(browser, after) == before)
        size = {"paperWidth": wide / 25.4, "paperHeight": high / 25.4}
        printed = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", size)["data"])
        assert printed.startswith(b"%PDF")
        assert len(printed) > 100_000

    def test_a_row_opens_its_burst_with_every_packet(self, browser: webdriver.Chrome, bursts: Path) -> None:
        analysis = fanin.analyze(bursts.parent)
        records = fanin.load(bursts.parent).queues
        open_page(browser, bursts)
        rows = browser.find_elements(By.CSS_SELECTOR, "#bursts-list tbody tr")
        listed = tables.largest(analysis.port(PORT), 10)
        assert [row.find_element(By.TAG_NAME, "button").text for row in rows] == [str(burst["index"]) for burst in listed]
        assert len(rows) > 2
        for row, burst in list(zip(rows, listed, strict=True))[:3]:
            script(browser, "arguments[0].querySelector('button').click()", row)
            assert (
                script(browser, "return document.getElementById('burst-title').textContent") == f"Burst {burst['index']} at {PORT}"
            )
            assert script(browser, "return location.hash") == f"#burst={burst['index']}"
            held = script(browser, "const r = Bursts.rows(); return [Array.from(r.time), Array.from(r.queue), Array.from(r.drops)]")
            times, levels = held[0], [level or 0 for level in held[1]]
            assert times[0] <= burst["start_ps"]
            unit = 1e9 / per_millisecond(browser, "burst")
            line = drawn(browser, "burst")["queue"]
            assert round(line[0][-1] * unit) >= burst["end_ps"], "down to the end of the burst"
            assert burst["end_ps"] in times or line[1][[round(x * unit) for x in line[0]].index(burst["end_ps"])] == 0
            inside = records.filter(pl.col("time_ps").is_between(times[0], times[-1]))
            assert times == inside["time_ps"].to_list()
            assert levels == inside["queue_bytes"].to_list()
            assert held[2] == inside["dropped"].cast(pl.Int64).to_list()
            pressed = [r.find_element(By.TAG_NAME, "button").get_attribute("aria-pressed") for r in rows]
            assert pressed == ["true" if r == row else "false" for r in rows]
            caption = script(browser, "return document.querySelector('#burst-tables caption').textContent")
            assert caption.endswith(f"of burst {burst['index']}")
        assert browser.get_log("browser") == []  # type: ignore[no-untyped-call]

    def test_no_button_sends_data_away(self, browser: webdriver.Chrome, page: Path) -> None:
        open_page(browser, page)
        buttons = script(browser, "return [...document.querySelectorAll('.tools button, .steps button')].map(b => b.title)")
        assert buttons
        assert not [title for title in buttons if re.search("cloud|share|link|edit|produced", title, re.IGNORECASE)]
