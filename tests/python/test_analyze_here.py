"""The page that analyses captures: its report and its page are those of the command line, and nothing is sent."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

import fanin
from browsing import needs_browser, requested, script
from fanin.analysis.answer import answer
from test_site import HTML, NODE, Served, build, served

__all__ = ["build", "served"]

ROOT = Path(__file__).parents[2]
PROGRAM = HTML / "analyze" / "analyze.wasm"
CAPTURES = ROOT / "examples" / "captures"
TRACES = ROOT / "examples" / "traces"
DATA = ROOT / "crates" / "analysis" / "tests" / "data"
SWITCH = "time=ts_ns:ns,port=ifname,queue=qlen_cells:cells(208B),frame=pkt_len,flow=five_tuple,marked=ecn_ce,dropped=tail_drop"
pytestmark = [
    pytest.mark.skipif(NODE is None, reason="node is not installed: make install-node"),
    pytest.mark.skipif(not PROGRAM.is_file(), reason="the site has no program for analyses: make site"),
]


def in_page(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what the page's program says of each case."""
    done = subprocess.run(
        [NODE or "", str(ROOT / "tests" / "python" / "run_analysis.mjs"), str(PROGRAM)],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    assert len(found) == len(cases)
    return found


def tables(folder: Path) -> dict[str, tuple[list[str], dict[str, Any]]]:
    """Write the records of a switch in each format of tables; name → files and settings."""
    frame = pl.read_csv(TRACES / "switch7.csv")
    frame.write_csv(folder / "a.csv")
    (folder / "a.csv.gz").write_bytes(gzip.compress((folder / "a.csv").read_bytes()))
    frame.write_csv(folder / "a.tsv", separator="\t")
    frame.write_ndjson(folder / "a.jsonl")
    frame.write_parquet(folder / "zstd.parquet", compression="zstd")
    frame.write_parquet(folder / "snappy.parquet", compression="snappy")
    frame.write_parquet(folder / "gzip.parquet", compression="gzip")
    frame.write_ipc(folder / "plain.arrow", compression="uncompressed")
    frame.write_ipc(folder / "zstd.arrow", compression="zstd")
    frame.write_ipc(folder / "lz4.arrow", compression="lz4")
    frame.reverse().write_csv(folder / "reversed.csv")
    settings = {"rate": "10Gbps", "rtt": "20us", "columns": SWITCH}
    sort = {"reversed.csv": {"sort": True}}
    return {path.name: ([path.name], settings | sort.get(path.name, {})) for path in sorted(folder.iterdir())}


def captures(folder: Path) -> dict[str, tuple[list[str], dict[str, Any]]]:
    """Put captures into a folder; name → files and settings."""
    for path in (*CAPTURES.glob("*.gz"), *DATA.glob("captures/*.pcap.*"), TRACES / "host25.pcapng.gz", *DATA.glob("tc/*.json")):
        shutil.copyfile(path, folder / path.name)
    whole = gzip.decompress((CAPTURES / "incast-before.pcap.gz").read_bytes())
    (folder / "plain.pcap").write_bytes(whole)
    (folder / "cut.pcap").write_bytes(whole[: len(whole) // 2 + 7])
    (folder / "cut.pcap.gz").write_bytes((CAPTURES / "incast-before.pcap.gz").read_bytes()[:20_000])
    (folder / "cut.pcap.zst").write_bytes((DATA / "captures" / "sawtooth16-before.pcap.zst").read_bytes()[:20_000])
    slow = {"rate": "100Mbps"}
    return {
        "plain": (["plain.pcap"], slow),
        "cut": (["cut.pcap"], slow),
        "cut, packed": (["cut.pcap.gz"], slow),
        "cut, zstd": (["cut.pcap.zst"], slow),
        "gzip": (["drops-before.pcap.gz"], slow),
        "zstd": (["sawtooth16-before.pcap.zst"], slow),
        "pcapng": (["host25.pcapng.gz"], {"rate": "10Gbps", "rtt": "20us"}),
        "estimated": (["incast-before.pcap.gz"], slow | {"buffer": "512KB", "fcs": False}),
        "unlimited": (["sawtooth16-before.pcap.gz"], slow | {"buffer": "unlimited", "fcs": False}),
        "pair": (["drops-before.pcap.gz", "drops-behind.pcap.gz"], slow | {"behind": "drops-behind.pcap.gz", "fcs": False}),
        "pair, transfers": (
            ["incast-before.pcap.gz", "incast-behind.pcap.gz"],
            slow | {"behind": "incast-behind.pcap.gz", "fcs": False, "transfers": True},
        ),
        "interfaces": (
            ["incast27-switch-any.pcap.gz"],
            slow | {"before_interface": "4", "behind_interface": "6", "fcs": False},
        ),
        "transfers": (["incast18-receiver-any.pcap.gz"], slow | {"transfers": True}),
        "one way": (["incast18-receiver-any.pcap.gz"], slow | {"direction": "in"}),
        "tc": (["series.json"], {}),
    }


def natively(files: list[str], settings: dict[str, Any]) -> fanin.Analysis:
    """Return the analysis of files as the command line makes it."""
    read = [name for name in files if name != settings.get("behind")]
    return fanin.analyze(read, top=5, **settings)


def asked(folder: Path, files: list[str], settings: dict[str, Any], *, page: bool) -> dict[str, Any]:
    read = [name for name in files if name != settings.get("behind")]
    return {"files": [str(folder / name) for name in files], "shown": files, "settings": settings | {"paths": read}, "page": page}


@pytest.mark.parametrize("made", [tables, captures])
def test_the_report_is_that_of_the_command_line(made: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cases = made(tmp_path)
    found = in_page([asked(tmp_path, files, settings, page=False) for files, settings in cases.values()])
    told = 0
    for (name, (files, settings)), told_here in zip(cases.items(), found, strict=True):
        native = natively(files, settings)
        assert "error" not in told_here, (name, told_here)
        assert told_here["report"] == native.document, name
        assert told_here["heard"] == sorted(told_here["heard"]), name
        assert all(0 <= done <= 1 for done in told_here["heard"]), name
        told += sum(int(port["bursts_found"]) for port in native.document["ports"])
    assert told >= len(cases), "the cases show little"


class Main(HTMLParser):
    """Elements and words of a page's main part, without the spaces between elements."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = False
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        if self.inside:
            self.found.append(f"<{tag} {sorted((key, value or '') for key, value in attrs)}>")
        self.inside |= tag == "main"

    def handle_endtag(self, tag: str) -> None:
        """Note its end."""
        self.inside &= tag != "main"
        if self.inside:
            self.found.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        """Note words."""
        if self.inside and data.strip():
            self.found.append(" ".join(data.split()))

    @classmethod
    def of(cls, text: str) -> list[str]:
        """Return those of a page."""
        found = cls()
        found.feed(text)
        return found.found


def test_the_page_is_that_of_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each sentence, table and curve."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tables").mkdir()
    cases = captures(tmp_path)
    shutil.copyfile(TRACES / "switch7.csv", tmp_path / "switch7.csv")
    cases["switch"] = (["switch7.csv"], {"rate": "10Gbps", "rtt": "20us", "above": "50KB", "columns": SWITCH})
    cases["no burst"] = (["switch7.csv"], {"rate": "10Gbps", "above": "5MB", "columns": SWITCH})
    found = in_page([asked(tmp_path, files, settings, page=True) for files, settings in cases.values()])
    drawn = 0
    for (name, (files, settings)), told_here in zip(cases.items(), found, strict=True):
        assert "error" not in told_here, (name, told_here)
        native = natively(files, settings)
        native.report(tmp_path / "page.html")
        text = (tmp_path / "page.html").read_text(encoding="utf-8")
        assert Main.of(f"<main>{told_here['main']}</main>") == Main.of(text), name
        data = re.search(r'<script type="application/json" id="explorer">(.*?)</script>', text)
        assert data is not None
        explorer = json.loads(data[1])
        assert told_here["explorer"].keys() == explorer.keys(), name
        for key in explorer:
            assert told_here["explorer"][key] == explorer[key], (name, key)
        drawn += sum("bands" in view for view in explorer["views"])
    assert drawn >= 6, "the cases show little"


def test_what_is_wrong_is_said_as_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "noise.bin").write_bytes(bytes(range(256)))
    (tmp_path / "empty.csv").write_bytes(b"")
    shutil.copyfile(CAPTURES / "drops-before.pcap.gz", tmp_path / "a.pcap.gz")
    cases: list[tuple[list[str], dict[str, Any]]] = [
        (["noise.bin"], {}),
        (["empty.csv"], {}),
        (["a.pcap.gz"], {}),
        (["a.pcap.gz"], {"rate": "10 Gbsp", "above": "5"}),
        (["a.pcap.gz"], {"rate": "100Mbps", "to": ["10.99.0.1"]}),
        (["a.pcap.gz"], {"rate": "100Mbps", "behind": "gone.pcap"}),
    ]
    found = in_page([asked(tmp_path, files, settings, page=False) for files, settings in cases])
    for (files, settings), told_here in zip(cases, found, strict=True):
        with pytest.raises(fanin.TraceError) as caught:
            natively(files, settings)
        assert told_here == {"error": str(caught.value)}, settings


@pytest.fixture
def capture(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "plain.pcap"
    path.write_bytes(gzip.decompress((CAPTURES / "incast-before.pcap.gz").read_bytes()))
    yield path


@needs_browser
@pytest.mark.parametrize("width", [390, 1280])
def test_a_capture_is_analysed_in_the_page(
    browser: webdriver.Chrome, served: str, capture: Path, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for log in ("browser", "performance"):
        browser.get_log(log)  # type: ignore[no-untyped-call]
    browser.set_window_size(width, 900)
    browser.get(f"{served}/analyze-here.html")
    WebDriverWait(browser, 30).until(lambda driver: driver.find_elements(By.ID, "an-rate"))
    said = "return document.querySelector('#fanin-analyze .pg-problems').textContent"
    state = "return document.querySelector('#fanin-analyze .pg-state').textContent"
    browser.find_element(By.ID, "an-chooser").send_keys(str(capture))
    WebDriverWait(browser, 60).until(lambda driver: "the speed of the port is not known" in driver.execute_script(said))
    browser.find_element(By.ID, "an-rate").send_keys("100Mbps")
    assert script(browser, "return document.querySelector('.an-command').textContent") == "fanin analyze plain.pcap --rate 100Mbps"
    browser.find_element(By.CSS_SELECTOR, "#fanin-analyze .pg-run").click()
    WebDriverWait(browser, 60).until(lambda driver: "on this machine" in driver.execute_script(state))
    assert script(browser, said) == ""
    assert script(browser, "return document.documentElement.scrollWidth <= window.innerWidth"), "the page scrolls sideways"
    browser.switch_to.frame(browser.find_element(By.CSS_SELECTOR, "#fanin-analyze iframe"))
    WebDriverWait(browser, 60).until(lambda driver: driver.find_elements(By.ID, "answer"))
    monkeypatch.chdir(capture.parent)
    native = natively([capture.name], {"rate": "100Mbps"})
    shown = script(browser, "return document.getElementById('answer').textContent")
    assert shown == answer(native.document, native.clock).replace("\0", "")
    script(browser, "document.getElementById('burst').scrollIntoView()")  # charts are drawn once they are seen
    WebDriverWait(browser, 60).until(lambda driver: driver.find_elements(By.CSS_SELECTOR, "#burst canvas"))
    assert script(browser, "return document.documentElement.scrollHeight <= window.innerHeight + 8"), "the frame has its own bar"
    browser.switch_to.default_content()
    errors = [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]  # type: ignore[no-untyped-call]
    assert errors == []
    sent = requested(browser)
    assert sent
    assert all(request["url"].startswith((served, "data:", "blob:")) for request in sent), sent
    assert {Path(request["url"]).name for request in sent if request["url"].endswith(".wasm")} == {"analyze.wasm"}
    assert {request["method"] for request in sent} == {"GET"}, "something is sent"


STATE = "return document.querySelector('#fanin-analyze .pg-state').textContent"


def analysed_once(browser: webdriver.Chrome, capture: Path) -> None:
    """Analyse a capture in the page, whose server is gone then."""
    with Served() as address:
        browser.get(f"{address}/analyze-here.html")
        WebDriverWait(browser, 30).until(lambda driver: driver.find_elements(By.ID, "an-rate"))
        browser.find_element(By.ID, "an-rate").send_keys("100Mbps")
        browser.find_element(By.ID, "an-chooser").send_keys(str(capture))
        WebDriverWait(browser, 60).until(lambda driver: "on this machine" in driver.execute_script(STATE))


@needs_browser
def test_another_file_needs_no_server(browser: webdriver.Chrome, capture: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.pcap"
    other.write_bytes(gzip.decompress((CAPTURES / "drops-before.pcap.gz").read_bytes()))
    command = "return document.querySelector('.an-command').textContent"
    analysed_once(browser, capture)
    for path in (other, capture):
        browser.find_element(By.CSS_SELECTOR, ".an-files button").click()
        browser.find_element(By.ID, "an-chooser").send_keys(str(path))
        assert script(browser, command) == f"fanin analyze {path.name} --rate 100Mbps"
        size = f"{path.stat().st_size / 1e6:.2f}".rstrip("0").rstrip(".")
        WebDriverWait(browser, 60).until(lambda driver, size=size: driver.execute_script(STATE).startswith(f"{size} MB in"))  # type: ignore[misc]


STOP_EARLY = """
const [done] = arguments;
const part = (name) => document.querySelector(`#fanin-analyze .${name}`);
const [state, run, stop] = [part('pg-state'), part('pg-run'), part('pg-run + button')];
new MutationObserver((_, observer) => {
  if (!state.textContent.includes('%')) return;
  observer.disconnect();
  stop.click();
  done([state.textContent, run.disabled, stop.disabled]);
}).observe(state, { childList: true });
run.click();
"""
"""Begins an analysis and stops it at its first word on how far it is."""


@needs_browser
def test_an_analysis_after_a_stopped_one_needs_no_server(browser: webdriver.Chrome, capture: Path) -> None:
    """Twice, since the first might live on what was left over; what was stopped says no more."""
    analysed_once(browser, capture)
    browser.get_log("browser")  # type: ignore[no-untyped-call]
    for _ in range(2):
        assert browser.execute_async_script(STOP_EARLY) == ["stopped", False, True]
        assert script(browser, STATE) == "stopped"
        browser.find_element(By.CSS_SELECTOR, "#fanin-analyze .pg-run").click()
        WebDriverWait(browser, 60).until(lambda driver: "on this machine" in driver.execute_script(STATE))
    assert script(browser, "return document.querySelector('#fanin-analyze .pg-problems').textContent") == ""
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []  # type: ignore[no-untyped-call]
