"""Shared fixtures."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from selenium import webdriver

    from fanin.reproduce._jobs import Pool

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell's `make test &` ignores it, and what is ignored stays so in children: none could be interrupted.
    signal.signal(signal.SIGINT, signal.default_int_handler)

LONGEST = ("commands", "rtl", "watch", "statistics_real", "native", "sweep", "reproduce", "whatif", "best", "sweep_places", "cosim")
"""Files that take long, which begin first: what begins last must not be waited for by the other workers."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    order = {f"test_{name}.py": at for at, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.path.name, len(order)))


@pytest.fixture
def not_nohup() -> Iterator[None]:
    """Let children see SIGHUP's default, also where the tests run after nohup: an ignored signal stays ignored in children."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def core(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the fake core, whose checks and runs stand in place of the real ones."""
    import fake_core
    from fanin import _core

    for name in ("check", "run"):
        monkeypatch.setattr(_core, name, getattr(fake_core, name))
    return fake_core


@pytest.fixture(scope="session")
def pool() -> Iterator[Pool]:
    """Worker processes for all tests that reproduce figures, which then share runs as figures of one command do."""
    from fanin.reproduce._jobs import Pool

    with Pool() as kept:
        yield kept


@pytest.fixture
def kept_workers(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give `reproduce.run` the same workers in all tests, instead of new ones for each."""
    from fanin import reproduce

    monkeypatch.setattr(reproduce, "Pool", lambda jobs: nullcontext(pool))


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a result folder; tests only read it."""
    from fake_result import write_result

    return write_result(tmp_path_factory.mktemp("result") / "out")


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    """Return a headless Chromium, for tests with the marks `browsing.needs_browser`."""
    from selenium import webdriver

    from browsing import CHROMIUM, DRIVER

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM or ""
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--window-size=1280,900"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER or ""))
    driver.set_script_timeout(60)
    yield driver
    driver.quit()
