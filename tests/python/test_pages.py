"""Pages: their first screen is the answer, every burst and every drop can be reached, and they stay small and quick."""

from __future__ import annotations

import base64
import csv
import hashlib
import math
import random
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl
import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

import fanin
from browsing import Page, needs_browser, open_page, requested, script
from fanin import pages, report
from fanin.analysis import answer, explorer
from fanin.analysis.page import render_analysis
from fanin.figures import framed
from fanin.text import flows, show
from test_report import explorer as data_of

CAPTURES = Path(__file__).parents[2] / "examples" / "captures"
MIT = "Permission is hereby granted, free of charge"
LARGEST = 1_500_000
"""Bytes of a page without its data."""


def trace(path: Path, ports: int, bursts: int, *, records: int = 60, lowest: int = 200, seed: int = 1) -> Path:
    """Write a trace with bursts of different heights at different times, some of whose packets are dropped."""
    draw = random.Random(seed)
    rows = []
    for port in range(ports):
        for burst in range(bursts):
            start = 1_000_000 * burst + draw.randrange(200_000)
            height = draw.randrange(lowest, 900)
            for i in range(records):
                level = height * 1000 * min(i, records - 1 - i) // (records // 2)
                lost = height > 850 and records // 3 < i < 2 * records // 3
                rows.append(
                    (start + 5000 * i, f"Ethernet1/{port}", level, 1500, f"10.7.{port}.{i % 9}:80 > 10.8.0.1:{burst} tcp", lost)
                )
    rows.sort()
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["time_ns", "port", "queue_bytes", "frame_bytes", "flow", "dropped"])
        writer.writerows((*row[:5], str(row[5]).lower()) for row in rows)
    return path


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> fanin.Analysis:
    """Three ports with forty bursts each."""
    return fanin.analyze(trace(tmp_path_factory.mktemp("many") / "many.csv", 3, 40), rate="10Gbps")


@pytest.fixture(scope="module")
def pair() -> fanin.Analysis:
    """Captures of a kernel before and behind a port."""
    before, behind = (CAPTURES / f"incast-{side}.pcap.gz" for side in ("before", "behind"))
    return fanin.analyze(before, behind=behind, rate="100Mbps", overhead="0B", fcs=False)


@pytest.fixture(scope="module")
def page(many: fanin.Analysis, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return many.report(tmp_path_factory.mktemp("page") / "many.html")


def one_figure(folder: Path, figure: go.Figure) -> Path:
    """Write a page with one figure."""
    charts = pages.Charts()
    drawn = [charts.add("figure", figure)]
    nothing: dict[str, Any] = {key: [] for key in ("provenance", "warnings", "notes", "tiles", "sections", "others", "lacking")}
    nothing |= {"title": "", "base": "", "rule": "", "differing": ([], []), "runs": ([], [])}
    file = folder / "figure.html"
    file.write_text(pages.page("compare.html", charts, drawn=drawn, **nothing), encoding="utf-8")
    return file


def plain(sentence: str) -> str:
    return sentence.replace("\0", "")


def unpacked(values: dict[str, str]) -> Any:
    return np.frombuffer(base64.b64decode(values["bdata"]), dtype=f"<{values['dtype']}")


class TestWhatIsOnThem:
    def test_the_library_is_pinned_and_every_page_has_its_licence(self, many: fanin.Analysis) -> None:
        folder = Path(pages.__file__).parent / "uplot"
        found = {file.name: hashlib.sha256(file.read_bytes()).hexdigest()[:16] for file in folder.iterdir()}
        # uPlot 1.6.32 as npm has it: integrity sha512-KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/…
        assert found == {"LICENSE": "8f989229699b4fe2", "uPlot.min.css": "df630c6a8d6f8eea", "uPlot.min.js": "19c8d4c6ad88929a"}
        text = render_analysis(many)
        assert "uPlot (v1.6.32)" in text
        assert MIT in text
        assert "Leon Sorokin" in text
        assert "plotly.js v" not in text

    def test_a_page_is_small_but_for_its_data(self, many: fanin.Analysis, folder: Path) -> None:
        for text in (render_analysis(many), report.render(fanin.load(folder))):
            without = re.sub(r'<script type="application/json"[^>]*>.*?</script>', "", text, flags=re.DOTALL)
            assert len(without) < LARGEST / 5, "far below"

    def test_the_answer_of_a_capture(self, pair: fanin.Analysis) -> None:
        assert plain(answer.answer(pair.document, pair.clock)) == (
            "18 flows, none with more than 6.2% of the queue, filled incast-behind to 511.7 KB, 40.94 ms of waiting, "
            "at 18:33:35.333739 UTC on 2026-11-22 (the only burst); 345 of its 1,919 packets were dropped. "
            f"Trust in this: {pair.plausibility['trust']} ({pair.plausibility['words'].rsplit(' (', 1)[0]})."
        )

    def test_the_answer_of_many_bursts_names_one_and_counts_all(self, many: fanin.Analysis) -> None:
        told = plain(answer.answer(many.document, many.clock))
        port, burst = answer.highest(many.document) or ({}, {})
        assert burst["peak_bytes"] == many.bursts["peak_bytes"].max()
        assert f"filled {port['port']} to" in told
        assert "(the highest of 120 bursts at 3 ports)" in told
        assert f"{burst['dropped_packets']} of its {burst['records']} packets were dropped" in told
        total = sum(entry["dropped"] for entry in many.document["ports"])
        assert f", {total} in the whole trace" in told

    @pytest.mark.parametrize(
        ("rows", "words"),
        [
            ("0,a,0,1500,false\n9000,a,2000,1500,false\n", "No burst at 1 port: the largest queue was 2 KB at"),
            ("".join(f"{1000 * i},x,{9000 * i},9000,false\n" for i in range(40)), "x (100.0% of the queue) filled a to 351 KB, "),
            ("".join(f"{1000 * i},x,{9000 * i},9000,false\n" for i in range(40)), "no packet of it was dropped"),
            # One record of each six packets.
            (
                "".join(f"{6000 * i},x,{54000 * i},9000,false\n" for i in range(40)),
                "x (14.5% of the queue, 85.5% of no known flow) filled a to 2.106 MB",
            ),
        ],
    )
    def test_the_answer_of_small_traces(self, tmp_path: Path, rows: str, words: str) -> None:
        (tmp_path / "a.csv").write_text("time_ns,flow,queue_bytes,frame_bytes,dropped\n" + rows)
        found = fanin.analyze(tmp_path / "a.csv", rate="10Gbps")
        assert words in plain(answer.answer(found.document, found.clock))

    def test_drops_of_a_refuted_estimate_are_not_drawn(self) -> None:
        before = CAPTURES / "incast-before.pcap.gz"
        found = fanin.analyze(before, rate="10Mbps", overhead="0B", fcs=False, buffer="512KB")
        made = explorer.explore(found).document
        assert [sum(unpacked(port["overview"]["drops"])) for port in made["ports"]] == [0]
        assert not any(
            (unpacked(view["data"]["fate"]) & explorer.DROPPED).any() for view in made["views"] if view["kind"] == "packets"
        )

    def test_records_of_samples_are_not_called_packets(self, tmp_path: Path) -> None:
        rows = "".join(f"{1_000_000 * i},{min(i, 40)},{1514 * min(i, 40)},{max(0, i - 40)}\n" for i in range(80))
        (tmp_path / "tc.csv").write_text("time_ns,qlen,backlog,drops\n" + rows)
        found = fanin.analyze(tmp_path / "tc.csv", rate="100Mbps")
        assert "; 39 packets were dropped. Trust" in plain(answer.answer(found.document, found.clock))

    def test_nothing_is_said_of_what_holds_no_record(self, tmp_path: Path) -> None:
        (tmp_path / "a.pcap").write_bytes(bytes.fromhex("4d3cb2a1020004000000000000000000ffff000001000000"))
        found = fanin.analyze(tmp_path / "a.pcap", rate="10Gbps")
        assert plain(answer.answer(found.document, found.clock)).startswith("Nothing was read. Trust in this: poor")

    def test_an_estimate_is_called_one(self) -> None:
        before = CAPTURES / "incast-before.pcap.gz"
        found = fanin.analyze(before, rate="100Mbps", overhead="0B", fcs=False, buffer="512KB")
        told = plain(answer.answer(found.document, found.clock))
        burst = found.burst()
        assert burst is not None
        assert f"filled incast-before to ≈ {show.size(burst['peak_bytes'])}" in told
        assert f"≈ {burst['dropped_packets']} of its {burst['records']:,} packets were dropped" in told
        quiet = fanin.analyze(before, rate="100Mbps", overhead="0B", fcs=False, buffer="512KB", above="600KB")
        told = plain(answer.answer(quiet.document, quiet.clock))
        assert told.startswith("No burst at 1 port: the largest queue was ≈ ")
        assert f"; ≈ {quiet.port()['dropped']} packets were dropped." in told

    def test_what_cannot_be_known_is_no_zero(self, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_text("time_ns,queue_bytes\n" + "".join(f"{1000 * i},{9000 * i}\n" for i in range(40)))
        found = fanin.analyze(tmp_path / "a.csv", rate="10Gbps")
        told = plain(answer.answer(found.document, found.clock))
        assert told.startswith("Packets of unknown flows filled")
        assert "whether packets were dropped, the trace does not tell" in told

    def test_names_say_once_what_they_share(self) -> None:
        names = [f"10.7.0.{i}:4000{i} > 10.7.0.25:80 tcp" for i in range(3)]
        assert flows.apart(names) == ("10.7.0.* > 10.7.0.25:80 tcp", ["0:40000", "1:40001", "2:40002"])
        for own in (["a", "b"], ["10.7.0.1:80 > 10.7.0.9:5 tcp"] * 2, [], ["h1", "h1:5"]):
            assert flows.apart(own) == ("", own)
        shared, rest = flows.apart(["10.7.0.1:80 > 10.7.0.9:5 tcp", "10.7.0.1:80 > 10.7.0.9:5 tcp 2"])
        assert [shared.replace("*", one) for one in rest] != ["", ""]

    def test_a_name_with_marks_of_ours_stays_text(self, tmp_path: Path) -> None:
        evil = "<b>*x*</b>"
        rows = "".join(f"{1000 * i},{evil},{9000 * i},9000,{evil}\n" for i in range(40))
        (tmp_path / "a.csv").write_text("time_ns,port,queue_bytes,frame_bytes,flow\n" + rows)
        text = render_analysis(fanin.analyze(tmp_path / "a.csv", rate="10Gbps"))
        assert "<b>&lt;b&gt;*x*&lt;/b&gt;</b> (100.0% of the queue)" in text
        assert evil not in text


class TestWhatTheyHold:
    def test_all_ports_are_in_the_overview_with_all_their_drops(self, many: fanin.Analysis) -> None:
        document = data_of(render_analysis(many))
        records = many.records
        assert [port["name"] for port in document["ports"]] == many.ports["port"].to_list()
        for port in document["ports"]:
            own = records.filter(pl.col("port") == port["name"])
            over = {name: unpacked(values) for name, values in port["overview"].items()}
            assert over["n"].sum() == own.height
            assert over["drops"].sum() == own["dropped"].sum()
            assert over["bytes"].sum() == own["frame_bytes"].sum()
            assert over["queue"].max() - 1 == own["queue_bytes"].max()

    def test_every_burst_is_there_with_every_drop(self, many: fanin.Analysis, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(explorer, "PAGE_PACKETS", 1000)
        document = data_of(render_analysis(many))
        views = [view for view in document["views"] if view["index"] is not None]
        assert len(views) == many.bursts.height == 120
        kinds = [view["kind"] for view in views]
        assert {"packets", "columns"} == set(kinds)
        records = many.records
        for view in views:
            port = document["ports"][view["port"]]["name"]
            own = records.filter(pl.col("port") == port, pl.col("time_ps").is_between(view["low"], view["high"]))
            data = {name: unpacked(values) for name, values in view["data"].items()}
            if view["kind"] == "packets":
                assert (data["time"].astype(np.int64) + view["low"]).tolist() == own["time_ps"].to_list()
                assert (data["queue"] - 1).tolist() == own["queue_bytes"].to_list()
                assert ((data["fate"] & explorer.DROPPED) > 0).tolist() == own["dropped"].to_list()
                assert [document["flows"][place - 1] for place in data["flow"]] == own["flow"].to_list()
            else:
                assert (data["n"].sum(), data["drops"].sum()) == (own.height, own["dropped"].sum())
                assert data["queue"].max() - 1 == own["queue_bytes"].max()

    def test_what_a_page_holds_is_bounded(self, many: fanin.Analysis, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(explorer, "LISTED", 50)
        monkeypatch.setattr(explorer, "PAGE_PACKETS", 200)
        text = render_analysis(many)
        views = data_of(text)["views"]
        assert sum(view["index"] is not None for view in views) == 50
        assert "The 50 highest of 120 bursts" in text
        packets = sum(len(unpacked(view["data"]["time"])) for view in views if view["kind"] == "packets")
        assert packets <= 200 + 3 * 100, "three highest bursts, and what is left for others"
        assert sum(view["index"] is None for view in views) == 3, "each port in whole"

    def test_pages_read_the_trace_in_batches(self, many: fanin.Analysis, monkeypatch: pytest.MonkeyPatch) -> None:
        whole = render_analysis(many)
        monkeypatch.setattr(explorer, "_BATCH", 997)
        assert render_analysis(many) == whole

    def test_a_burst_of_many_packets_has_columns_with_all_of_them(self, tmp_path: Path) -> None:
        found = fanin.analyze(trace(tmp_path / "long.csv", 1, 1, records=30_000, lowest=860), rate="10Gbps")
        view = data_of(render_analysis(found))["views"][0]
        assert view["kind"] == "columns"
        burst = found.burst()
        assert burst is not None
        assert unpacked(view["data"]["drops"]).sum() >= burst["dropped_packets"] > 598

    def test_waits_of_a_pair(self, pair: fanin.Analysis) -> None:
        view = data_of(render_analysis(pair))["views"][0]
        wait = unpacked(view["data"]["wait"])
        assert wait.max() - 1 == pair.records["wait_ps"].max()
        assert (wait == 0).sum() == 345, "dropped packets have none"


FIRST = """
const box = (id) => document.getElementById(id).getBoundingClientRect();
return [box("answer").top, box("answer").bottom, box("answer").right, box("burst").top,
  document.documentElement.scrollWidth, window.innerWidth, window.innerHeight];
"""
RED = """
const stack = document.getElementById("burst").fanin;
return stack.plots.map(({ctx}) => {
  const {data} = ctx.getImageData(0, 0, ctx.canvas.width, ctx.canvas.height);
  let red = 0;
  for (let i = 0; i < data.length; i += 4) red += data[i] > 190 && data[i + 1] < 60 && data[i + 2] < 70;
  return red;
});
"""


def sized(browser: Any, width: int, height: int) -> None:
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


@needs_browser
class TestInBrowser:
    @pytest.fixture(autouse=True)
    def unsized(self, browser: Any) -> Any:
        yield
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    @pytest.mark.parametrize("which", ["many", "pair"])
    @pytest.mark.parametrize(("width", "height"), [(1400, 900), (400, 800)])
    def test_the_first_screen_is_the_answer(
        self, browser: Any, request: pytest.FixtureRequest, tmp_path: Path, which: str, width: int, height: int
    ) -> None:
        written = request.getfixturevalue(which).report(tmp_path / "a.html")
        sized(browser, width, height)
        open_page(browser, written)
        script(browser, "window.scrollTo(0, 0)")
        top, bottom, right, figure, wide, window, high = script(browser, FIRST)
        assert 0 <= top < bottom < 0.62 * high, "the sentence is seen without scrolling"
        assert right <= window
        assert wide <= window, "nothing scrolls sideways"
        assert figure < 0.75 * high if width == 1400 else figure < 1.2 * high
        assert browser.get_log("browser") == []

    def test_drops_are_seen_at_any_zoom(self, browser: Any, tmp_path: Path) -> None:
        """A long burst with more drops than pixels, and one drop among a hundred thousand packets."""
        rows = [(i * 1000, min(i, 100_000 - i) * 8, 30_000 <= i < 31_200 or i == 80_000) for i in range(100_000)]
        lines = "".join(f"{at},{level},1500,{str(lost).lower()}\n" for at, level, lost in rows)
        (tmp_path / "a.csv").write_text("time_ns,queue_bytes,frame_bytes,dropped\n" + lines)
        open_page(browser, fanin.analyze(tmp_path / "a.csv", rate="10Gbps").report(tmp_path / "a.html"))
        assert script(browser, "return Bursts.current().kind") == "columns"
        queue, _, drops = script(browser, RED)
        assert queue > 30
        assert drops > 30
        # A frame each microsecond, 12 Gb/s: no bar has two columns of it where others have one.
        fastest = script(browser, "const s = Bursts.stack(); return s.spec.panels[1].extent(s.whole)[1]")
        assert fastest == pytest.approx(12, rel=0.01)
        # Around the one at 80 ms alone.
        script(browser, "document.getElementById('burst').fanin.zoom([78, 82])")
        WebDriverWait(browser, 10).until(lambda _: script(browser, "return Bursts.stack().plots[0].scales.x.min") == 78)
        queue, _, drops = script(browser, RED)
        assert queue > 3
        assert drops > 3
        script(browser, "document.getElementById('burst').fanin.zoom([40, 60])")
        WebDriverWait(browser, 10).until(lambda _: script(browser, "return Bursts.stack().plots[0].scales.x.min") == 40)
        assert script(browser, RED) == [0, 0, 0], "none where there is none"

    def test_panels_share_zoom_and_crosshair(self, browser: Any, pair: fanin.Analysis, tmp_path: Path) -> None:
        sized(browser, 1400, 900)
        open_page(browser, pair.report(tmp_path / "a.html"))
        titles = script(browser, "return Bursts.stack().spec.panels.map(p => p.y.title.split(' ')[0])")
        assert titles == ["Queue", "Wait", "Arrivals", "Drops,"]
        overs = browser.find_elements(By.CSS_SELECTOR, "#burst .u-over")
        script(browser, "document.getElementById('burst').scrollIntoView({block: 'center'})")
        ActionChains(browser).move_to_element(overs[2]).move_by_offset(-100, 0).perform()
        seen = "return Bursts.stack().plots.map(p => [p.cursor.left, p.scales.x.min, p.scales.x.max])"
        places = [place for place, *_ in script(browser, seen)]
        assert places[0] > 0
        assert places == pytest.approx([places[2]] * 4, abs=1)
        told = browser.find_element(By.ID, "readout").text
        assert re.match(r"18:33:35\.\d{9} · .* after the start · queue .* · wait .* · arrivals ", told), told
        ActionChains(browser).move_to_element(overs[3]).click_and_hold().move_by_offset(150, 0).release().perform()
        whole = script(browser, "return Bursts.stack().whole")
        WebDriverWait(browser, 10).until(lambda _: script(browser, seen)[0][2] < whole[1])
        ranges = {tuple(ends) for _, *ends in script(browser, seen)}
        assert len(ranges) == 1

    def test_a_link_opens_a_burst(self, browser: Any, page: Path, many: fanin.Analysis) -> None:
        name = many.ports["port"][2]
        for link, title in (
            (f"#burst=17&port={name.replace('/', '%2F')}", f"Burst 17 at {name}"),
            (f"#all&port={name}", f"All of {name}"),
        ):
            browser.get("about:blank")
            browser.get(page.as_uri() + link)
            WebDriverWait(browser, 10).until(lambda _: script(browser, "return document.getElementById('burst').dataset.drawn"))
            assert browser.find_element(By.ID, "burst-title").text == title
        script(browser, "location.hash = '#burst=99999'")
        WebDriverWait(browser, 10).until(lambda _: browser.find_element(By.ID, "burst-missing").is_displayed())
        assert browser.find_element(By.ID, "burst-missing").text == "#burst=99999: that burst is not on this page."
        script(browser, "location.hash = '#burst=3'")
        WebDriverWait(browser, 10).until(lambda _: browser.find_element(By.ID, "burst-title").text.startswith("Burst 3 at"))
        assert not browser.find_element(By.ID, "burst-missing").is_displayed()

    def test_the_list_sorts_and_filters(self, browser: Any, page: Path, many: fanin.Analysis) -> None:
        open_page(browser, page)
        shown = (
            "return [...document.querySelectorAll('#bursts-list tbody tr')].filter(r => !r.hidden).map(r => Number(r.dataset.view))"
        )
        drops = "return arguments[0].map(v => Bursts.views[v]).map(v => `${v.port} ${v.index}`)"
        rows = script(browser, shown)
        assert len(rows) == 120
        heads = browser.find_elements(By.CSS_SELECTOR, "#bursts-list thead button")
        column = next(head for head in heads if head.text == "Drops")
        script(browser, "arguments[0].click()", column)
        counts = {(row["port"], row["burst"]): row["dropped_packets"] for row in many.bursts.iter_rows(named=True)}
        names = many.ports["port"].to_list()

        def listed() -> list[int]:
            keys = script(browser, drops, script(browser, shown))
            return [counts[names[int(key.split()[0])], int(key.split()[1])] for key in keys]

        assert listed() == sorted(counts.values(), reverse=True)
        script(browser, "arguments[0].click()", column)
        assert listed() == sorted(counts.values())
        assert column.find_element(By.XPATH, "..").get_attribute("aria-sort") == "ascending"
        script(browser, "document.getElementById('filter-drops').click()")
        assert all(listed())
        assert len(listed()) == sum(count > 0 for count in counts.values()) > 0
        script(browser, "document.getElementById('filter-drops').click()")
        browser.find_element(By.ID, "filter").send_keys("10.7.1.3 10.8.0.1:7")
        found = script(browser, drops, script(browser, shown))
        assert [names[int(key.split()[0])] for key in found] == ["Ethernet1/1"] * len(found)
        assert found, "by a flow that was in its queue"
        assert browser.find_element(By.ID, "filter-count").text == f"{len(found)} of 120"

    def test_the_strip_opens_bursts_and_parts(self, browser: Any, page: Path) -> None:
        sized(browser, 1400, 900)
        open_page(browser, page)
        script(browser, "window.scrollTo(0, 0)")
        canvas = browser.find_element(By.ID, "overview")
        wide, high = canvas.size["width"], canvas.size["height"]
        middle = script(
            browser,
            "const v = Bursts.views.find(v => v.port === 2 && v.index === 31), all = Bursts.views.filter(v => v.index === null);"
            "const low = Math.min(...all.map(v => v.low)), high = Math.max(...all.map(v => v.high));"
            "return ((v.start + v.end) / 2 - low) / (high - low)",
        )
        gutter = script(browser, "return Bursts.strip.layout().gutter")
        across = gutter + middle * (wide - gutter) - wide / 2
        ActionChains(browser).move_to_element_with_offset(canvas, round(across), high // 2 - 4).click().perform()
        assert script(browser, "return [Bursts.current().port, Bursts.current().index]") == [2, 31]
        assert "Ethernet1/" in browser.find_element(By.ID, "overview-said").text
        chain = ActionChains(browser).move_to_element_with_offset(canvas, -wide // 8, -high // 2 + 4)
        chain.click_and_hold().move_by_offset(wide // 4, 0).release().perform()
        port, index, low, high_, whole = script(
            browser, "const v = Bursts.current(), s = Bursts.stack(); return [v.port, v.index, ...s.range, s.whole]"
        )
        assert (port, index) == (0, None)
        assert high_ - low == pytest.approx(0.25 * (whole[1] - whole[0]), rel=0.2)

    @pytest.mark.parametrize("index", [0, -1])
    def test_records_can_be_saved(self, browser: Any, page: Path, many: fanin.Analysis, index: int, tmp_path: Path) -> None:
        browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
        open_page(browser, page)
        script(browser, "Bursts.open((arguments[0] + Bursts.views.length) % Bursts.views.length)", index)
        script(browser, "document.getElementById('download').click()")
        WebDriverWait(browser, 20).until(lambda _: list(tmp_path.glob("*.csv")))
        (file,) = tmp_path.glob("*.csv")
        view, name = script(browser, "return [Bursts.current(), Bursts.current().title]")
        port = name.split(" ")[-1]
        own = many.records.filter(pl.col("port") == port, pl.col("time_ps").is_between(view["low"], view["high"]))
        found = pl.read_csv(file)
        if index == 0:
            assert file.name.startswith("Ethernet1_")
            columns = ["time_ps", "port", "queue_bytes", "frame_bytes", "flow", "marked", "dropped"]
            assert found.select(columns).rows() == own.select(columns).rows()
        else:
            assert found["packets"].sum() == own.height
            assert found["dropped"].sum() == own["dropped"].sum()
            assert found["largest_queue_bytes"].max() == own["queue_bytes"].max()

    def test_a_line_of_many_points_does_not_slant_after_a_pause(self, browser: Any, tmp_path: Path) -> None:
        """Nothing arrives for 40 us before a burst of more packets than three to a pixel: the line stays down until then."""
        idle = [(i * 10_000, 0) for i in range(102)]
        burst = [(1_050_000 + i * 200, min(40_000 * i, 100 * (3_000 - i))) for i in range(3_001)]
        rows = "".join(f"{at},{level},1500\n" for at, level in [*idle, *burst])
        (tmp_path / "a.csv").write_text("time_ns,queue_bytes,frame_bytes\n" + rows)
        found = fanin.analyze(tmp_path / "a.csv", rate="10Gbps")
        sized(browser, 400, 800)
        open_page(browser, found.report(tmp_path / "a.html"))
        inked = """
          const {ctx, bbox} = document.getElementById("burst").fanin.plots[0], {kind, low, high} = Bursts.current();
          const at = (us) => Math.round(bbox.left + bbox.width * (us * 1e6 - low) / (high - low));
          const ink = (from, to) => {
            const {data, width} = ctx.getImageData(at(from), bbox.top, at(to) - at(from), Math.round(bbox.height * 0.9));
            let blue = 0;
            for (let i = 0; i < data.length; i += 4) blue += data[i + 3] > 0 && data[i + 2] > data[i] + 40;
            return blue;
          };
          return [kind, low / 1e6, bbox.width, ink(1015, 1040), ink(1100, 1300)];
        """
        kind, low, wide, pause, rise = script(browser, inked)
        assert kind == "packets"
        assert low < 1010
        assert 3 * wide < 3_000, "several packets to each pixel"
        assert rise > 500
        assert pause == 0

    def test_forty_eight_ports_begin_with_a_matrix(self, browser: Any, tmp_path: Path) -> None:
        found = fanin.analyze(trace(tmp_path / "ports.csv", 48, 6), rate="10Gbps")
        sized(browser, 1400, 900)
        open_page(browser, found.report(tmp_path / "a.html"))
        script(browser, "window.scrollTo(0, 0)")
        top, bottom, *_, figure, _, _, high = script(browser, FIRST)
        assert top < bottom < figure < 0.75 * high
        inked = """
          const canvas = document.getElementById("overview"), ctx = canvas.getContext("2d");
          const {data} = ctx.getImageData(0, 0, canvas.width, canvas.height);
          const rows = new Set();
          for (let y = 0; y < canvas.height; y += 1) for (let x = 0; x < canvas.width; x += 1) {
            const i = 4 * (y * canvas.width + x);
            if (data[i + 2] > data[i] + 60) rows.add(Math.floor(y / (canvas.height / 48)));
          }
          return rows.size;
        """
        assert script(browser, inked) == 48
        listed = browser.find_element(By.CSS_SELECTOR, ".scroll.long")
        assert listed.size["height"] <= 430, "it scrolls by itself"

    @pytest.mark.parametrize(("width", "height"), [(1400, 900), (400, 800)])
    def test_the_first_screen_of_a_report(self, browser: Any, folder: Path, tmp_path: Path, width: int, height: int) -> None:
        sized(browser, width, height)
        open_page(browser, fanin.load(folder).report(tmp_path / "a.html"))
        script(browser, "window.scrollTo(0, 0)")
        ends = (
            "const box = (at) => document.querySelector(at).getBoundingClientRect();"
            "return [box('#answer').bottom, box('.plot').top, document.documentElement.scrollWidth]"
        )
        answered, figure, wide = script(browser, ends)
        assert answered < 0.6 * height
        assert width < 1400 or figure < 0.9 * height
        assert wide <= width
        told = browser.find_element(By.ID, "answer").text
        summary = fanin.load(folder).summary
        assert told.startswith(f"{summary['flows']['complete']} of {summary['flows']['total']} flows completed; half within ")
        assert f"the largest queue was {show.size(summary['largest_queue']['bytes'])} at leaf0->h0 after" in told
        assert f"{summary['drops']} packets were dropped" in told

    def test_a_slider_goes_through_the_times_of_a_figure(self, browser: Any, tmp_path: Path) -> None:
        figure = framed(
            [go.Scatter(x=[0.1], y=[0.5], name="&lt;a&gt;", mode="markers", text=["s1"])], "Where", {"visible": False}, {}
        )
        steps = [
            {"label": f"{n} ms", "args": [{"x": [[0.1 * n]], "y": [[0.5]], "text": [[f"s{n}"]]}, [0]]}
            for n in range(5)
        ]  # fmt: skip
        figure.update_layout(sliders=[{"active": 1, "steps": steps, "currentvalue": {"prefix": "At "}}], showlegend=True)
        open_page(browser, one_figure(tmp_path, figure))
        assert browser.find_element(By.CSS_SELECTOR, ".slider span").text == "At 1 ms"
        moved = "const i = document.querySelector('.slider input'); i.value = 4; i.dispatchEvent(new Event('input'));"
        name, x, y = script(browser, f"{moved} return document.getElementById('figure').fanin.curves()[0]")
        assert (name, x, y) == ("<a>", [0.4], [0.5])
        assert browser.find_element(By.CSS_SELECTOR, ".slider span").text == "At 4 ms"

    def test_a_hundred_thousand_points_stay_quick(self, browser: Any, tmp_path: Path) -> None:
        """Points of a curve and marks of as many: drawn, and drawn anew at each step of a zoom."""
        draw = np.random.default_rng(1)
        x = np.linspace(0, 100, 100_000)
        traces = [go.Scatter(x=x, y=draw.random(100_000), name=mode, mode=mode) for mode in ("lines", "markers")]
        figure = framed(traces, "Large", {"title": {"text": "Time [ms]"}}, {"title": {"text": "y"}})
        file = one_figure(tmp_path, figure)
        opened = math.inf
        for _ in range(3):  # the one that no other program held up
            begun = time.perf_counter()
            open_page(browser, file)
            opened = min(opened, time.perf_counter() - begun)
            if opened < 20:
                break
        spent = script(
            browser,
            "const stack = document.getElementById('figure').fanin; const spent = [];"
            "for (let i = 1; i <= 10; i += 1) {"
            "  const begun = performance.now(); stack.zoom([0, 100 / i]); for (const p of stack.plots) p.redraw();"
            "  spent.push(performance.now() - begun);"
            "} return Math.min(...spent);",
        )
        print(f"opened in {opened:.2f} s, a step of a zoom takes {spent:.0f} ms")
        assert opened < 20
        assert spent < 200, "of ten, the one that no other program held up"

    def test_nothing_is_fetched_and_scripts_are_ours(self, browser: Any, page: Path) -> None:
        text = page.read_text(encoding="utf-8")
        found = Page(text)
        assert (found.references, found.handlers) == ([], [])
        policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
        assert policy is not None
        hashes = re.findall(r"'sha256-([^']+)'", policy[1])
        scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
        assert hashes == [base64.b64encode(hashlib.sha256(own.encode()).digest()).decode() for own in scripts]
        assert len(scripts) == 6
        open_page(browser, page)
        script(browser, "Bursts.open(5); document.getElementById('earlier').click()")
        requests = [request["url"] for request in requested(browser)]
        assert [url for url in requests if not url.startswith(("file://", "data:", "blob:"))] == []
        assert browser.get_log("browser") == []
