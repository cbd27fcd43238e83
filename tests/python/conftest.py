"""Shared fixtures. Without the compiled core the Python side is tested alone, against `fake_core`."""

from __future__ import annotations

import importlib.util
import signal
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from fanin.reproduce._jobs import Pool

ROOT = Path(__file__).parents[2]


def native() -> bool:
    """Whether `fanin._core` is compiled and installed."""
    return any(any((Path(folder) / "fanin").glob("_core.*.so")) for folder in sys.path)


NATIVE = native()

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell's `make test &` ignores it, and what is ignored stays so in children: none could be interrupted.
    signal.signal(signal.SIGINT, signal.default_int_handler)

if not NATIVE:
    if importlib.util.find_spec("fanin") is None:
        sys.path.insert(0, str(ROOT / "python"))
    stand_in = ModuleType("fanin._core")
    stand_in.ScenarioError = type("ScenarioError", (ValueError,), {"problems": []})  # type: ignore[attr-defined]
    stand_in.TraceError = type("TraceError", (ValueError,), {"problems": []})  # type: ignore[attr-defined]
    stand_in.version = lambda: "0.1.0"  # type: ignore[attr-defined]
    stand_in.build = lambda: {"version": "0.1.0", "target": "none", "profile": "not compiled"}  # type: ignore[attr-defined]
    stand_in.counters = list  # type: ignore[attr-defined]
    stand_in.parquet_rows = lambda path: None  # type: ignore[attr-defined]
    stand_in.__file__ = "not compiled"
    sys.modules["fanin._core"] = stand_in
    import fanin

    fanin._core = stand_in


LONGEST = ("commands", "rtl", "watch", "statistics_real", "native", "sweep", "reproduce", "whatif", "best", "sweep_places", "cosim")
"""Files that take long, which begin first: what begins last must not be waited for by the other workers."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    order = {f"test_{name}.py": at for at, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.path.name, len(order)))
    if not NATIVE:
        for item in items:
            if item.get_closest_marker("native"):
                item.add_marker(pytest.mark.skip(reason="fanin._core is not compiled: make test"))


@pytest.fixture
def not_nohup() -> Iterator[None]:
    """Let children see SIGHUP's default, also where the tests run after nohup: an ignored signal stays ignored in children."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def core(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the fake core, in place of the real one."""
    import fake_core
    from fanin import _core

    for name in ("check", "run", "schema", "reference", "python_types", "counters_page", "version", "bench"):
        monkeypatch.setattr(_core, name, getattr(fake_core, name), raising=False)
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
