"""What starting costs: modules that take long to import wait until something needs them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import fanin

SLOW = (
    "polars",
    "plotly",
    "numpy",
    "matplotlib",
    "jinja2",
    "pydantic",
    "fanin.reproduce",
    "fanin.analysis.bursts",
    "fanin._scenario_types",
)

TINY = """
[topology]
kind = "single_switch"
hosts = 2
[[traffic]]
kind = "flows"
flows = [{ src = "h0", dst = "h1", size = "100KB" }]
"""


def imported(code: str, folder: Path) -> set[str]:
    """Which of the slow modules a new Python has after `code`."""
    told = f"import atexit, sys; atexit.register(lambda: print('\\n', *{set(SLOW)} & sys.modules.keys(), file=sys.stderr))"
    done = subprocess.run([sys.executable, "-c", f"{told}\n{code}"], capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.parametrize("code", ["fanin", "fanin.Scenario, fanin.run, fanin.load, fanin.Check, fanin.__version__, dir(fanin)"])
def test_the_import_brings_nothing_slow(tmp_path: Path, code: str) -> None:
    assert imported(f"import fanin; {code}", tmp_path) == set()


def test_the_test_sees_what_is_imported(tmp_path: Path) -> None:
    assert imported("import fanin.figures.series", tmp_path) >= {"polars"}
    assert imported("import fanin.figures", tmp_path) >= {"polars", "plotly"}


@pytest.mark.parametrize(
    "words",
    [
        "--version",
        "--help",
        "run tiny.toml -o out",
        "run tiny.toml -o out --json",
        "run --help",
        "check tiny.toml",
        "check tiny.toml --json",
        "schema",
        "convert --help",
        "analyze --help",
        "compare --help",
        "plot --help",
        "vectors s-ecn --case pairs",
        "bench --help",
        "reproduce --help",
    ],
)
def test_the_command_line_brings_nothing_slow(tmp_path: Path, words: str) -> None:
    (tmp_path / "tiny.toml").write_text(TINY)
    assert imported(f"from fanin.cli import app; app({words.split()!r})", tmp_path) == set()


def test_an_analysis_brings_no_frames_and_figures(tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_text("time_ns,queue_bytes\n" + "".join(f"{1000 * n},{n % 50 * 1500}\n" for n in range(1000)))
    for code in ("import fanin; print(fanin.analyze('trace.csv'))", "from fanin.cli import app; app(['analyze', 'trace.csv'])"):
        assert imported(code, tmp_path) == {"fanin.analysis.bursts"}


def test_a_run_in_process_brings_nothing_slow(tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(TINY)
    assert imported("import fanin; print(fanin.run('tiny.toml').summary)", tmp_path) == set()


def test_all_names_are_there_and_are_told() -> None:
    assert set(fanin.__all__) <= set(dir(fanin))
    for name in fanin.__all__:
        assert getattr(fanin, name) is not None, name
    assert isinstance(fanin.__version__, str)
    with pytest.raises(AttributeError, match="module 'fanin' has no attribute 'nothing'"):
        fanin.nothing  # noqa: B018
