"""The site: complete, without dead links or requests elsewhere, and its engine computes what the native one computes."""

from __future__ import annotations

import base64
import functools
import importlib.util
import inspect
import json
import re
import shutil
import subprocess
import threading
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

import fanin
from browsing import needs_browser, requested, script
from fanin import _core

ROOT = Path(__file__).parents[2]
HTML = ROOT / "target" / "site" / "html"
ENGINE = HTML / "playground" / "fanin.wasm"
NODE = shutil.which("node")
needs_engine = pytest.mark.skipif(not ENGINE.is_file(), reason="the site has no engine: make site")


@pytest.fixture(scope="module")
def build() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_build", ROOT / "site" / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "site"))
        spec.loader.exec_module(module)
    return module


def test_the_navigation_has_each_page_once(build: ModuleType, tmp_path: Path) -> None:
    build.stage(tmp_path)
    config = {"project": {"nav": [{"Start": ["index.md", "index.md", {"x": "gone.md"}]}]}}
    wrong = build.check_nav(tmp_path, config)
    assert "site/zensical.toml: nav has index.md 2 times" in wrong
    assert "site/zensical.toml: nav has gone.md, which is not there" in wrong
    assert "site/zensical.toml: nav lacks switch/pfc.md" in wrong
    assert "site/zensical.toml: nav lacks contribute/contributing.md" in wrong


def test_links_that_leave_the_documentation_are_rewritten(build: ModuleType) -> None:
    wanted: set[Path] = set()
    text = "[a](../switch/pfc.md#x) [b](../../README.md) [c](../../scenarios/incast.toml) [d](https://x.org)\n```\n[f](../../README.md)\n```\n"
    lines = "".join(build.rewritten(text, ROOT / "docs" / "papers" / "rcm.md", "papers/rcm.md", wanted))
    assert lines == (
        "[a](../switch/pfc.md#x) [b](../index.md) [c](../files/scenarios/incast.toml) [d](https://x.org)\n```\n[f](../../README.md)\n```\n"
    )
    assert wanted == {ROOT / "scenarios" / "incast.toml"}


def test_the_reference_is_split_and_keeps_its_anchors(build: ModuleType) -> None:
    text = (ROOT / "docs" / "scenario.md").read_text(encoding="utf-8")
    pages = build.reference.pages(text)
    assert set(pages) == {"scenario.md"} | {f"scenario/{name}.md" for name in build.reference.PARTS}
    headings = re.compile(r"^##+ .*$", re.MULTILINE)
    kept = [heading for page in pages.values() for heading in headings.findall(page) if heading != "## Parts of a scenario"]
    assert sorted(kept) == sorted(headings.findall(text))
    assert all(300 < len(page.split()) < 6_000 for page in pages.values()), "no page is most of it"
    where = build.reference.anchors(text)
    assert (where["marking"], where["topologyconfig"], where["rocecontrol"]) == (
        "scenario/switch.md",
        "scenario/topology.md",
        "scenario/roce.md",
    )
    links = "[a](../scenario.md#pfcparams) [b](../scenario.md)\n"
    lines = build.rewritten(links, ROOT / "docs" / "switch" / "x.md", "switch/x.md", set())
    assert "".join(lines) == "[a](../scenario/mechanisms.md#pfcparams) [b](../scenario.md)\n"


def test_each_public_name_of_the_package_has_its_entry(build: ModuleType) -> None:
    """With its parts, parameters and errors; names and pages that docstrings mention are links."""
    pages: dict[str, str] = build.api.pages()
    assert sorted(build.api.WHERE) == sorted(fanin.__all__)
    for name in fanin.__all__:
        page = pages[f"api/{build.api.WHERE[name]}.md"]
        assert page.count(f"\n## {name} {{ #{name.strip('_')} }}\n") == 1
        assert f"](api/{build.api.WHERE[name]}.md#{name.strip('_')}) |" in pages["api.md"]
    for thing in (fanin.Result, fanin.Scenario, fanin.Sweep, fanin.Analysis, fanin.Comparison):
        page = pages[f"api/{build.api.WHERE[thing.__name__]}.md"]
        public = {name for name in dir(thing) if not name.startswith("_") and inspect.isroutine(getattr(thing, name))}
        assert len(public) >= 3
        assert [name for name in public if f"\n### {thing.__name__}.{name} {{ #" not in page] == []
    run = pages["api/runs.md"].split("\n## run {")[1].split("\n## ")[0]
    assert 'threads: int | Literal["auto"] | None = None,' in run.replace("'", '"')
    for parameter in inspect.signature(fanin.run).parameters:
        assert f"| `{parameter}` | *" in run
    assert "| [`OutputError`](#OutputError) | The folder cannot be used" in run
    assert "[`fanin.ProgressState`](#ProgressState)" in run
    assert "[parallel](../parallel.md)" in run
    assert "### Result.flows { #Result.flows }\n\n```python\n.flows: pl.DataFrame\n" in pages["api/runs.md"]
    assert "### sweep.sweep {" in pages["api/comparisons.md"]
    assert "### statistics.interval {" in pages["api/statistics.md"]
    assert all(200 < len(page.split()) < 4_000 for page in pages.values())
    assert "doctest" not in "".join(pages.values())


def test_dead_links_and_loads_from_elsewhere_are_found(build: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<h1 id="x">A</h1><a href="b.html#y">b</a><a href="gone.html">c</a><script src="https://x.org/y.js"></script>'
    )
    (tmp_path / "b.html").write_text(
        '<a href="a.html#x">fine</a><a href="https://x.org">a link, not a load</a><img src="gone.png">'
    )
    assert build.check_links(tmp_path) == [
        "a.html: b.html#y leads to no heading",
        "a.html: gone.html leads to no file",
        "a.html: loads https://x.org/y.js from elsewhere",
        "b.html: gone.png leads to no file",
    ]


def test_what_the_builder_complains_of_is_a_line_each(build: ModuleType) -> None:
    output = "\x1b[33mWarning:\x1b[0m page does not exist\n  \x1b[38;5;246m[\x1b[0m traffic.md:78:13 \x1b[38;5;246m]\x1b[0m\n"
    assert build.problems(output) == ["traffic.md:78:13: page does not exist"]


def small(name: str, changes: dict[str, Any]) -> str:
    return fanin.Scenario.from_file(ROOT / "scenarios" / f"{name}.toml").replace(changes).to_toml()


@needs_engine
@pytest.mark.skipif(NODE is None, reason="node is not installed: make install-node")
def test_the_engine_of_the_page_computes_the_same(tmp_path: Path) -> None:
    """Every choice of the playground, and scenarios with other transports and mechanisms: the same fingerprint and summary."""
    given = [small("incast", {}), small("roce", {}), small("all-reduce", {})]
    done = subprocess.run(
        [NODE or "", str(ROOT / "tests" / "python" / "run_engine.mjs"), str(ENGINE)],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    ran = json.loads(done.stdout)
    assert len(ran) >= 12 + len(given)
    for i, entry in enumerate(ran):
        assert [p for p in entry["problems"] if p["severity"] == "error"] == [], entry
        native = fanin.run(fanin.Scenario.from_toml(entry["text"]), tmp_path / str(i), progress=False)
        assert entry["fingerprint"] == native.fingerprint, entry["text"]
        assert entry["summary"] == native.summary, entry["text"]
    assert len({entry["fingerprint"] for entry in ran}) >= len(ran) - 6, "choices that change nothing"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Served(AbstractContextManager[str]):
    """The site at an address, until it is stopped."""

    def __enter__(self) -> str:
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(HTML)))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    with Served() as address:
        yield address


def finished(browser: webdriver.Chrome, variants: int = 1) -> dict[str, list[str]]:
    """The table of a playground in which so many runs have ended: what, and values by variant."""
    rows = (
        "return [...document.querySelectorAll('#fanin-playground table')]"
        ".flatMap(t => [...t.tBodies[0].rows].map(r => [...r.cells].map(c => c.textContent)))"
    )
    idle = "return document.querySelector('.pg-run') && !document.querySelector('.pg-run').disabled"
    WebDriverWait(browser, 60).until(
        # Other rows have a cell for a variant that has not run.
        lambda driver: (
            driver.execute_script(idle)
            and any(cells[0] == "fingerprint" and len(cells) > variants for cells in driver.execute_script(rows))
        )
    )
    return {cells[0]: cells[1:] for cells in script(browser, rows)}


def opened(browser: webdriver.Chrome, served: str) -> dict[str, list[str]]:
    """Open the playground afresh; return its table once its first run has ended."""
    browser.get(f"{served}/index.html")
    browser.get(f"{served}/playground.html")
    return finished(browser)


CHANGE = "const s = document.getElementById(arguments[0]); s.value = arguments[1]; s.dispatchEvent(new Event(arguments[2]))"


def press(browser: webdriver.Chrome, button: str = ".pg-run") -> None:
    """Press a button after a change. By script: the warnings of the check come 150 ms later, and move it away from a mouse."""
    browser.execute_script("document.querySelector(arguments[0]).click()", button)


PROBLEMS = "return document.querySelector('.pg-problems').textContent"


def misspell(browser: webdriver.Chrome) -> None:
    """Write a kind that there is not into the text, and wait until that is said."""
    script(
        browser,
        "const t = document.querySelector('#fanin-playground textarea');"
        "t.value = t.value.replace('incast', 'incats'); t.dispatchEvent(new Event('input'))",
    )
    WebDriverWait(browser, 30).until(lambda driver: "did you mean" in driver.execute_script(PROBLEMS))


@needs_engine
@needs_browser
@pytest.mark.parametrize("width", [390, 1280])
def test_the_playground_runs_and_is_linked(browser: webdriver.Chrome, served: str, tmp_path: Path, width: int) -> None:
    browser.set_window_size(width, 900)
    table = opened(browser, served)
    text = script(browser, "return document.querySelector('#fanin-playground textarea').value")
    native = fanin.run(fanin.Scenario.from_toml(text), tmp_path / "out", progress=False)
    assert table["fingerprint"] == [native.fingerprint]
    assert script(browser, "return document.querySelectorAll('#fanin-playground .u-over').length") == 2
    assert script(browser, "return document.documentElement.scrollWidth <= window.innerWidth"), "the page scrolls sideways"
    # B with another marking, then the same from its link
    script(browser, "[...document.querySelectorAll('.pg-bar button')].find(b => b.textContent.startsWith('Add B')).click()")
    browser.execute_script(CHANGE, "pg-marking", "none", "change")
    press(browser)
    both = finished(browser, variants=2)
    assert len(both["fingerprint"]) == 2
    assert both["fingerprint"][0] == native.fingerprint != both["fingerprint"][1]
    assert both["packets marked"][1] == "0" != both["packets marked"][0]
    link = browser.current_url
    assert "#" in link
    browser.get(f"{served}/index.html")
    browser.get(link)
    assert finished(browser, variants=2)["fingerprint"] == both["fingerprint"]
    errors = [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]  # type: ignore[no-untyped-call]
    assert errors == []
    urls = {request["url"] for request in requested(browser)}
    assert urls
    assert all(url.startswith((served, "data:", "blob:")) for url in urls), urls
    programs = {Path(url).name for url in urls if url.endswith(".wasm")}
    assert programs == {"fanin.wasm"}, "a page loads no more than it uses"


WIDE = """
const [pages, widths, done] = arguments;
Promise.all(pages.map((page) => new Promise((resolve) => {
  const frame = Object.assign(document.createElement("iframe"), { height: 900, style: "border: 0" });
  frame.onload = () => {
    const { contentDocument: found, contentWindow: view } = frame;
    const broken = [...found.images].filter((image) => image.complete && image.naturalWidth === 0);
    const wrong = [!found.querySelector("h1") && "no title", broken.length > 0 && "an image that is none"];
    for (const width of widths) {
      frame.width = width;
      if (view.innerWidth !== width) wrong.push("has another width"); // and lays out the frame before its content
      const needs = found.documentElement.scrollWidth;
      wrong.push(needs > width && `scrolls sideways: ${needs} px in ${width}`);
    }
    frame.remove();
    resolve(wrong.filter(Boolean).map((words) => `${page}: ${words}`));
  };
  frame.src = page;
  document.body.append(frame);
}))).then((found) => done(found.flat()));
"""
"""Opens pages in frames, gives these several widths, and tells what is wrong."""


@needs_browser
@pytest.mark.skipif(not HTML.is_dir(), reason="the site is not built: make site")
def test_all_pages_fit_a_phone_and_a_screen(browser: webdriver.Chrome, served: str) -> None:
    pages = sorted(path.relative_to(HTML).as_posix() for path in HTML.rglob("*.html"))
    pages = [page for page in pages if page not in ("404.html", "playground.html")]  # the second has a test of its own
    assert len(pages) >= 100
    browser.set_window_size(1400, 900)
    browser.get(f"{served}/404.html")
    browser.get_log("browser")  # type: ignore[no-untyped-call]
    browser.set_script_timeout(60)
    wide = "<!doctype html><body style=margin:0><p style=width:600px>wide"
    too_wide = f"return URL.createObjectURL(new Blob(['{wide}'], {{ type: 'text/html' }}))"
    page = script(browser, too_wide)
    found = browser.execute_async_script(WIDE, [page], [1280, 390])
    assert found == [f"{page}: no title", f"{page}: scrolls sideways: 600 px in 390"]
    wrong = []
    for begin in range(0, len(pages), 12):
        wrong += browser.execute_async_script(WIDE, pages[begin : begin + 12], [1280, 390])
    assert wrong == []
    assert [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []  # type: ignore[no-untyped-call]


@needs_engine
@pytest.mark.skipif(NODE is None, reason="node is not installed: make install-node")
def test_looks_at_a_run_add_up_to_what_came_of_it() -> None:
    """Many looks and few: the port sends as fast as its link most of the time, never faster, and the last look is the end."""
    program = [NODE or "", str(ROOT / "tests" / "python" / "looks.mjs"), str(ENGINE)]
    done = subprocess.run(program, capture_output=True, text=True, check=True, timeout=60)
    found = json.loads(done.stdout)
    assert [entry["events"] for entry in found] == [20, 5_000]
    for entry in found:
        assert entry["port"]["tx_bytes"] > 20 * 256_000
        assert 9.7e9 < sorted(entry["rate"])[len(entry["rate"]) // 2] < max(entry["rate"]) < 10.2e9
        assert min(entry["rate"]) >= 0
        assert entry["last"][2:] == [entry["port"][key] for key in ("tx_bytes", "drops", "marks")]
        assert entry["last"][4] > 100
        assert entry["times"] == sorted(set(entry["times"]))
    many, few = (len(entry["times"]) for entry in found)
    assert 500 <= many <= 1_000
    assert 3 <= few < 100


@needs_engine
@needs_browser
def test_an_incast_is_answered_at_once(browser: webdriver.Chrome, served: str) -> None:
    """Twenty senders, from the click to table and curves, as site/playground.md has it, with room for a busy machine."""
    opened(browser, served)
    assert script(browser, "return document.getElementById('pg-senders').value") == "20"
    click = (
        "const [done] = arguments; const [run, begin] = [document.querySelector('.pg-run'), performance.now()]; run.click();"
        "const look = () => (run.disabled ? requestAnimationFrame(look) : done(performance.now() - begin)); look();"
    )
    took = sorted(float(browser.execute_async_script(click)) for _ in range(5))
    print("from click to answer [ms]:", [round(ms) for ms in took])
    assert 1 < took[2] < 3_000, took
    assert script(browser, "return document.querySelectorAll('#fanin-playground .u-over').length") == 2


@needs_engine
@needs_browser
def test_parameters_are_there_where_they_have_an_effect(browser: webdriver.Chrome, served: str) -> None:
    opened(browser, served)
    shown = "return [...document.querySelectorAll('.pg-knobs [id]')].map((knob) => knob.id.slice(3))"
    text = "return document.querySelector('#fanin-playground textarea').value"
    network = ["senders", "size", "jitter", "rate", "delay"]
    assert script(browser, shown) == [*network, "buffer", "marking", "k", "control", "help"]
    browser.execute_script(CHANGE, "pg-marking", "red", "change")
    assert script(browser, shown) == [*network, "buffer", "marking", "red_min", "red_max", "red_chance", "control", "help"]
    browser.execute_script(CHANGE, "pg-red_chance", "0.4", "input")
    assert 'marking = { kind = "red", min = "20 packets", max = "60 packets", max_p = 0.4, ' in script(browser, text)
    browser.execute_script(CHANGE, "pg-marking", "s_ecn", "change")
    browser.execute_script(CHANGE, "pg-slope_k", "32KB", "input")
    assert 'marking = { kind = "s_ecn", k = "32KB" }' in script(browser, text)
    browser.execute_script(CHANGE, "pg-control", "RoCEv2: dcqcn", "change")
    assert script(browser, shown) == [*network, "marking", "slope_k", "control", "increase", "cnp"]
    browser.execute_script(CHANGE, "pg-cnp", "5us", "input")
    press(browser)
    table = finished(browser)
    assert table["packets dropped"] == ["0"]
    assert table["unfinished flows"] == ["0"]
    assert int(table["packets marked"][0].replace(",", "")) > 100
    words = "return document.querySelector('.pg-problems').textContent"
    assert script(browser, words) == ""


@needs_engine
@needs_browser
def test_what_was_shown_is_grey_when_choices_change(browser: webdriver.Chrome, served: str) -> None:
    """And whose choices are shown is said; a page that may not copy says so."""
    opened(browser, served)
    grey = "return [...document.querySelectorAll('.pg-old')].length"
    legends = "return [...document.querySelectorAll('#fanin-playground legend')].map((legend) => legend.textContent)"
    assert (script(browser, grey), script(browser, legends)) == (0, ["Choices", "Scenario"])
    browser.execute_script(CHANGE, "pg-k", "20 packets", "input")
    assert script(browser, grey) == 2
    browser.execute_script(CHANGE, "pg-k", "65 packets", "input")
    assert script(browser, grey) == 0
    script(browser, "[...document.querySelectorAll('.pg-bar button')].find(b => b.textContent.startsWith('Add B')).click()")
    assert (script(browser, grey), script(browser, legends)) == (0, ["Choices of B", "Scenario B"])
    browser.execute_script(CHANGE, "pg-marking", "none", "change")
    press(browser)
    finished(browser)
    curves = "return [...document.querySelectorAll('.u-legend .u-label')].map((label) => label.textContent)"
    assert {"A: switch0->h20: queue", "B: switch0->h20: queue", "B: switch0->h20: sent"} <= set(script(browser, curves))
    assert script(browser, grey) == 0
    script(browser, "Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true })")
    script(browser, "[...document.querySelectorAll('.pg-bar button')].find(b => b.textContent === 'TOML').click()")
    state = "return document.querySelector('.pg-state').textContent"
    WebDriverWait(browser, 10).until(lambda driver: "TOML not copied" in driver.execute_script(state))


@needs_engine
@needs_browser
def test_both_charts_show_the_same_part_of_the_time(browser: webdriver.Chrome, served: str) -> None:
    """At first, after a drag in either of them, under the pointer, and after a double-click."""
    browser.set_window_size(1280, 1400)
    opened(browser, served)
    shown = "return document.querySelector('.pg-chart').plots.map(({ scales }) => [scales.x.min, scales.x.max])"
    WebDriverWait(browser, 10).until(lambda driver: len(driver.execute_script(shown)) == 2)
    ends = "return document.querySelector('.pg-chart').plots.map(({ data: [times] }) => [times[0], times.at(-1)])"
    both = script(browser, ends)
    whole = [min(begin for begin, _ in both), max(end for _, end in both)]
    assert both[0] != both[1]
    assert script(browser, shown) == [whole, whole]
    overs = browser.find_elements(By.CSS_SELECTOR, ".pg-chart .u-over")
    script(browser, "arguments[0].scrollIntoView({ block: 'center' })", overs[0])
    for over in overs:
        wide = over.size["width"]
        chain = ActionChains(browser).move_to_element(over).move_by_offset(-wide // 4, 0)
        chain.click_and_hold().move_by_offset(wide // 2, 0).release().perform()
        WebDriverWait(browser, 10).until(lambda driver: whole not in driver.execute_script(shown))
        first, second = script(browser, shown)
        assert first == pytest.approx(second, rel=1e-9)
        assert first[0] - whole[0] == pytest.approx((whole[1] - whole[0]) / 4, rel=0.05)
        assert first[1] - first[0] == pytest.approx((whole[1] - whole[0]) / 2, rel=0.02)
        lines = script(browser, "return document.querySelector('.pg-chart').plots.map((p) => p.posToVal(p.cursor.left, 'x'))")
        assert lines[0] == pytest.approx(lines[1], abs=(whole[1] - whole[0]) / 200)
        assert first[0] < lines[0] < first[1]
        ActionChains(browser).move_to_element(over).double_click().perform()
        WebDriverWait(browser, 10).until(lambda driver: driver.execute_script(shown) == [whole, whole])


@needs_engine
@needs_browser
def test_choices_stay_in_force_when_a_page_is_opened_again(browser: webdriver.Chrome, served: str) -> None:
    """Loaded anew, from a link and as B; a text that was edited, or comes from a page's experiment, is said to be one."""
    by_text = "return [document.getElementById('pg-marking').disabled, !document.querySelector('.pg-by-hand').hidden]"
    opened(browser, served)
    browser.execute_script(CHANGE, "pg-senders", "7", "input")
    browser.execute_script(CHANGE, "pg-marking", "codel", "change")
    press(browser)
    before = finished(browser)["fingerprint"]
    link = browser.current_url
    browser.refresh()
    assert finished(browser)["fingerprint"] == before
    values = "return ['senders', 'marking'].map((name) => document.getElementById(`pg-${name}`).value)"
    assert (script(browser, by_text), script(browser, values)) == ([False, False], ["7", "codel"])
    edit = "const t = document.querySelector('#fanin-playground textarea'); t.value += '#'; t.dispatchEvent(new Event('input'))"
    script(browser, edit)
    assert script(browser, by_text) == [True, True]
    press(browser)
    assert finished(browser)["fingerprint"] == before
    browser.refresh()
    finished(browser)
    assert script(browser, by_text) == [True, True]
    script(browser, "[...document.querySelectorAll('button')].find(b => b.textContent === 'Back to choices').click()")
    assert script(browser, by_text) == [False, False]
    browser.get(f"{served}/index.html")
    browser.get(link)
    finished(browser)
    assert (script(browser, by_text), script(browser, values)) == ([False, False], ["7", "codel"])
    browser.get(f"{served}/switch/s-ecn.html")
    browser.find_element(By.LINK_TEXT, "Try it in your browser").click()
    finished(browser)
    assert script(browser, by_text) == [True, True]


@needs_engine
@needs_browser
def test_the_playground_needs_no_server_once_it_is_loaded(browser: webdriver.Chrome) -> None:
    """Runs, a stopped run and checks; a run after another has a memory of its own, and so the same fingerprint."""
    with Served() as address:
        browser.get(f"{address}/playground.html")
        before = finished(browser)["fingerprint"]
    state = "return document.querySelector('.pg-state').textContent"
    browser.execute_script(CHANGE, "pg-marking", "none", "change")
    press(browser)
    without = finished(browser)
    assert without["packets marked"] == ["0"]
    assert without["fingerprint"] != before
    browser.execute_script(CHANGE, "pg-size", "100MB", "input")
    press(browser)
    WebDriverWait(browser, 30, 0.05).until(lambda driver: "packet-hops" in driver.execute_script(state))
    curves = "return document.querySelectorAll('#fanin-playground .u-over').length"
    script(browser, "document.querySelector('.pg-chart').replaceChildren()")
    WebDriverWait(browser, 10, 0.05).until(lambda driver: driver.execute_script(curves) == 2)  # they are drawn while it goes on
    assert not script(browser, "return document.querySelector('.pg-run + button').disabled")
    press(browser, ".pg-run + button")
    assert script(browser, state) == "stopped"
    browser.execute_script(CHANGE, "pg-size", "256KB", "input")
    browser.execute_script(CHANGE, "pg-marking", "threshold", "change")
    press(browser)
    assert finished(browser)["fingerprint"] == before
    misspell(browser)


@needs_engine
@needs_browser
def test_errors_are_shown_while_one_types(browser: webdriver.Chrome, served: str) -> None:
    browser.set_window_size(1280, 900)
    opened(browser, served)
    misspell(browser)
    assert "incast" in script(browser, PROBLEMS)
    browser.find_element(By.CSS_SELECTOR, ".pg-run").click()
    WebDriverWait(browser, 30).until(
        lambda d: "cannot be run" in d.execute_script("return document.querySelector('.pg-state').textContent")
    )


@pytest.mark.skipif(NODE is None, reason="node is not installed: make install-node")
def test_what_may_be_written_is_offered() -> None:
    """Of each text, `|` for the cursor: what is replaced, some of what is offered, and what is not."""
    cases: list[tuple[str, str, set[str], set[str]]] = [
        ("[swi|", "swi", {"switch"}, {"traffic"}),
        ("[[t|", "t", {"traffic"}, {"topology"}),
        ("[switch.mechanisms.|", "", {"pfc", "rimm"}, {"switch"}),
        ("[switch]\nmark|", "mark", {"marking = "}, {"buffer = "}),
        ("[switch]\nmarking = |", "", {'"threshold"', '"codel"'}, {'"dctcp"'}),
        ('[switch]\nmarking = { kind = "th|" }', '"th"', {'"threshold"'}, {'"red"'}),
        ('[switch]\nmarking = { kind = "threshold", |', "", {"k = ", "at = "}, {"kind = ", "max_p = "}),
        ('[switch]\nmarking = { kind = "threshold", at = |', "", {'"enqueue"', '"dequeue"'}, {'"threshold"'}),
        ('[topology]\nkind = "dumbbell"\n|', "", {"left = ", "bottleneck = "}, {"spines = ", "kind = "}),
        ('[topology]\n|\nkind = "chain"\n[switch]\nlatency = "1us"\n', "", {"switches = "}, {"spines = ", "latency = "}),
        ('[topology]\nkind = "single_switch"\nlink = { rate = "10Gbps", d|', "d", {"delay = "}, {"rate = "}),
        ("[switch]\nmechanisms.pf|", "pf", {"pfc = "}, {"pdn = "}),
        ('[transports.rdma]\nkind = "roce"\ncongestion_control = |', "", {'"dcqcn"'}, {'"cubic"'}),
        ('[transport]\nkind = "tcp"\nhandshake = |', "", {"true", "false"}, {'"tcp"'}),
        ('[[traffic]]\nkind = "incast"\nse|', "se", {"senders = "}, {"size = "}),
    ]
    nothing = ['name = "x" # |', "[switch]\nnot_there = |", 'a = "x" |']
    done = subprocess.run(
        [NODE or "", str(ROOT / "tests" / "python" / "complete.mjs")],
        input=json.dumps({"schema": json.loads(_core.schema()), "texts": [text for text, *_ in cases] + nothing}),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    answers = json.loads(done.stdout)
    for (text, typed, offered, absent), answer in zip(cases, answers, strict=False):
        assert answer is not None, text
        assert answer["typed"] == typed, text
        assert offered <= set(answer["offered"]), (text, answer)
        assert not absent & set(answer["offered"]), (text, answer)
        assert len(answer["offered"]) == len(set(answer["offered"])), text
    assert answers[len(cases) :] == [None] * len(nothing)


@needs_engine
@needs_browser
def test_completion_by_keyboard(browser: webdriver.Chrome, served: str) -> None:
    browser.set_window_size(1280, 900)
    opened(browser, served)
    editor = browser.find_element(By.CSS_SELECTOR, "#fanin-playground textarea")
    editor.click()
    script(browser, "const t = document.querySelector('#fanin-playground textarea'); t.setSelectionRange(0, t.value.length)")
    editor.send_keys("[switch]", Keys.ENTER)
    editor.send_keys(Keys.CONTROL, " ")
    shown = "return [...document.querySelectorAll('#pg-offered:not([hidden]) li code')].map(c => c.textContent)"
    WebDriverWait(browser, 30).until(lambda driver: "marking" in driver.execute_script(shown))
    editor.send_keys("mar")
    assert script(browser, shown) == ["marking"]
    editor.send_keys(Keys.TAB)
    editor.send_keys('"thr')
    assert script(browser, shown) == ['"threshold"']
    editor.send_keys(Keys.ENTER)
    assert script(browser, shown) == []
    assert script(browser, "return document.querySelector('#fanin-playground textarea').value") == '[switch]\nmarking = "threshold"'


def test_pages_of_mechanisms_and_transports_have_an_experiment(build: ModuleType, tmp_path: Path) -> None:
    """Both scenarios are in the link at the top of the page."""
    tried = build.experiments.experiments()
    paths = [path for part in ("switch", "transports") for path in (ROOT / "docs" / part).glob("*.md")]
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in paths}
    assert set(tried) <= pages
    assert len(tried) >= 34
    build.stage(tmp_path)
    for page, texts in tried.items():
        (packed,) = re.findall(r'<a href="\.\./playground\.html#([\w-]+)">', (tmp_path / page).read_text(encoding="utf-8"))
        unpacked = zlib.decompress(base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4)), wbits=-15)
        assert json.loads(unpacked) == texts, page


def test_experiments_run_and_differ(build: ModuleType) -> None:
    for page, texts in build.experiments.experiments().items():
        scenarios = [fanin.Scenario.from_toml(text) for text in texts]
        for scenario in scenarios:
            check = scenario.check()
            assert check.ok, (page, str(check))
            assert not check.warnings, (page, str(check))
        without, with_it = [fanin.run(scenario, progress=False) for scenario in scenarios]
        assert without.fingerprint != with_it.fingerprint, page


def test_the_site_is_served_to_this_machine_alone() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "http.server --bind 127.0.0.1" in makefile
