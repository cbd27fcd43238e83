"""Pages in a headless browser, and what their text refers to: for tests of all kinds of pages; the browser is a fixture."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, TypeVar

import pytest
from selenium import webdriver
from selenium.webdriver.support.wait import WebDriverWait

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
T = TypeVar("T", bound="Callable[..., None] | type")


def needs_browser(test: T) -> T:
    """Mark a test, or a class of them, as one in a browser: skipped without Chromium."""
    there = pytest.mark.skipif(
        not (CHROMIUM and DRIVER), reason="chromium and chromedriver are not installed: make install-chromium"
    )
    marked: T = pytest.mark.browser(there(test))
    return marked


class Page(HTMLParser):
    """References, inline handlers and ids of elements of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.references: list[str] = []
        self.handlers: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("src", "href", "data", "action", "srcset", "poster", "background"):
                self.references.append(f"{tag} {name}={value}")
            if name.startswith("on"):
                self.handlers.append(f"{tag} {name}")
            if name == "id" and value:
                self.ids.add(value)


def open_page(browser: webdriver.Chrome, page: Path) -> None:
    """Open a page afresh and have all charts drawn that are on it."""
    for log in ("browser", "performance"):
        browser.get_log(log)  # type: ignore[no-untyped-call]
    browser.get(page.as_uri())
    browser.execute_script("for (const name of ['beforeprint', 'afterprint']) window.dispatchEvent(new Event(name))")
    done = "return [...document.querySelectorAll('.plot')].every(p => p.dataset.drawn === 'done')"
    WebDriverWait(browser, 60).until(lambda driver: driver.execute_script(done))


def script(browser: webdriver.Chrome, text: str, *arguments: Any) -> Any:
    return browser.execute_script(text, *arguments)


def requested(browser: webdriver.Chrome) -> list[dict[str, Any]]:
    """Return the requests that were sent since this was last asked, or a page was opened."""
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]  # type: ignore[no-untyped-call]
    return [event["params"]["request"] for event in events if event["method"] == "Network.requestWillBeSent"]


CONTRAST = """
const number = (text) => (text.match(/[0-9.]+/g) || []).map(Number);
const over = (front, back) => {
  const a = front.length > 3 ? front[3] : 1;
  return [0, 1, 2].map((i) => a * front[i] + (1 - a) * back[i]);
};
const light = (rgb) => {
  const [r, g, b] = rgb.map((c) => c / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (element) => {
  if (!element) return [255, 255, 255];
  return over(number(getComputedStyle(element).backgroundColor), behind(element.parentElement));
};
const seen = [];
for (const element of document.querySelectorAll("body *")) {
  const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  if (!own || !element.getClientRects().length || element.closest("script, .uplot")) continue;
  const back = behind(element);
  let opacity = 1;
  for (let up = element; up; up = up.parentElement) opacity *= Number(getComputedStyle(up).opacity);
  const color = number(getComputedStyle(element).color);
  const [a, b] = [light(over([...color.slice(0, 3), (color[3] ?? 1) * opacity], back)), light(back)];
  seen.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), element.tagName, element.textContent.slice(0, 40)]);
}
return seen;
"""
"""The contrast of each element that has text of its own."""
