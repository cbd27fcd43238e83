"""Figures of papers: the framework, driven by small figures of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner
from typer.testing import Result as Outcome

import fake_figures
import fanin
from fanin import reproduce
from fanin.cli import app
from fanin.reproduce import Context, Findings, Job, Row, _registry
from fanin.reproduce._context import SCENARIOS
from fanin.reproduce._jobs import Pool

ROOT = Path(__file__).parents[2]


def call(*arguments: str | Path) -> Outcome:
    return CliRunner(env={"COLUMNS": "160", "NO_COLOR": "1"}).invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the figures of these tests."""
    reproduce.figures()  # what registers itself on import does so before
    known = [fake_figures.figure(name) for name in fake_figures.RUNS]
    monkeypatch.setattr(_registry, "_FIGURES", {entry.id: entry for entry in known})
    monkeypatch.setitem(reproduce.PAPERS, "test", "Tests of Fanin")


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files that nobody else uses."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


# -- rows ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "low", "high", "ok"),
    [
        (1.0, 1.0, 2.0, True),
        (2.0, 1.0, 2.0, True),
        (2.1, 1.0, 2.0, False),
        (0.9, 1.0, None, False),
        (9.0, 1.0, None, True),
        (9.0, None, 3.0, False),
        (float("nan"), 1.0, None, False),
        (float("inf"), 1.0, None, False),
    ],
)
def test_a_row_is_ok_within_its_bounds(value: float, low: float | None, high: float | None, ok: bool) -> None:
    row = Row(name="x", paper="about 1.5", fanin=value, low=low, high=high)
    assert row.ok is ok
    assert row.failed is not ok
    assert not Row(name="x", paper="about 1.5", fanin=value, low=low, high=high, note="because").failed
    json.dumps(row.to_dict(), allow_nan=False)


@pytest.mark.parametrize(("low", "high", "text"), [(None, None, "could not fail"), (2.0, 1.0, "nothing lies between")])
def test_a_row_that_cannot_fail_or_cannot_pass_is_refused(low: float | None, high: float | None, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Row(name="x", paper=None, fanin=1.0, low=low, high=high)


@pytest.mark.parametrize(("low", "high"), [(1.0, None), (None, 2.0)])
def test_where_the_paper_gives_a_number_there_are_two_bounds(low: float | None, high: float | None) -> None:
    with pytest.raises(ValueError, match="x: the paper gives a number, so both bounds are needed"):
        Row(name="x", paper=1.5, fanin=1.5, low=low, high=high)
    Row(name="x", paper="about 1.5", fanin=1.5, low=low, high=high)


# -- registry -----------------------------------------------------------------------------------------------------------


def test_ids_are_sorted_as_people_count(monkeypatch: pytest.MonkeyPatch) -> None:
    reproduce.figures()
    monkeypatch.setattr(_registry, "_FIGURES", {})
    for id in ("s-ecn/laws", "s-ecn/fig10", "s-ecn/fig4b", "s-ecn/fig4a"):
        reproduce.figure(id, title="x", seeds=1, short=1, seconds=1)(fake_figures.fine)
    assert [entry.name for entry in reproduce.figures()] == ["fig4a", "fig4b", "fig10", "laws"]


@pytest.mark.parametrize(
    ("id", "options", "text"),
    [
        ("fig4", {"seeds": 1, "short": 1}, "is no id"),
        ("s-ecn/Fig4", {"seeds": 1, "short": 1}, "is no id"),
        ("s-ecn/x", {"seeds": 1, "short": 2}, "2 seeds in short"),
    ],
)
def test_a_figure_that_makes_no_sense_is_refused(id: str, options: dict[str, int], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        reproduce.figure(id, title="x", seconds=1, **options)


@pytest.mark.usefixtures("registry")
def test_unknown_figures_are_reported_all_at_once_with_what_was_meant() -> None:
    done = call("reproduce", "test/ordr", "nonsense", "test/fine")
    assert done.exit_code == 2
    assert "'test/ordr' (did you mean 'test/order'?), 'nonsense'; fanin reproduce --list" in done.stderr


def test_every_figure_belongs_to_a_known_paper() -> None:
    papers = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    for entry in reproduce.figures():
        assert entry.paper in reproduce.PAPERS
    for key in reproduce.PAPERS:
        assert f"`{key}`" in papers.replace("**", "`") or key in papers.lower()


def test_each_scenario_of_a_paper_is_part_of_the_package_and_valid() -> None:
    files = sorted(SCENARIOS.glob("*/*"))
    assert {path.parent.name for path in files} <= {*reproduce.PAPERS, "rimm"}, "figures of RIMM are still to come"
    assert {path.suffix for path in files} <= {".toml"}, "pyproject.toml includes scenarios/*/*.toml"


def test_the_papers_scenarios_are_valid() -> None:
    for path in sorted(SCENARIOS.glob("*/*.toml")):
        check = fanin.Scenario.from_file(path).check()
        assert not check.errors, f"{path.name}: {check.errors}"


# -- runs ---------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("registry")
def test_the_number_of_jobs_does_not_change_a_byte(tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLARS_MAX_THREADS", "3")
    for jobs in (1, 2):
        made = reproduce.run("test/order", out=tmp_path / str(jobs), jobs=jobs, progress=False)
        assert made.rows["ok"].to_list() == [True, True, True, False]
    one, two = content(tmp_path / "1"), content(tmp_path / "2")
    assert one == two
    assert set(one) == {"order.pdf", "order.svg", "order.png", "data/peaks.csv", "data/peaks.parquet", "rows.json", "manifest.json"}
    assert not list(temporary.glob("fanin-reproduce-*"))
    manifest = json.loads(one["manifest.json"])
    assert manifest["version"] == fanin.__version__
    assert [run["seed"] for run in manifest["runs"]] == manifest["seeds"] == [1, 2, 3, 4]
    assert len({run["hash"] for run in manifest["runs"]}) == 4
    expected = fanin.run(fanin.Scenario(fake_figures.TINY).replace(seed=3), progress=False)
    assert manifest["runs"][2]["hash"] == expected.manifest["scenario_hash"]
    assert pl.read_csv(tmp_path / "2" / "data" / "peaks.csv")["peak_bytes"][2] == expected.queues["queue_bytes"].max()


def test_runs_that_figures_share_are_done_once() -> None:
    tiny = fanin.Scenario(fake_figures.TINY)
    calls: list[int] = []
    with Pool(1) as pool:

        def folders(scenario: fanin.Scenario, reduce: Callable[..., Any] = fake_figures.peak, **key: str) -> list[str]:
            """Each run has a folder of its own, so its name shows which run a value is from."""
            values, _ = pool.map([Job(scenario, seed, key) for seed in (1, 2)], reduce, lambda: calls.append(1))
            return [folder for _, _, folder, _ in values]

        first = folders(tiny, kind="a")
        assert folders(fanin.Scenario(fake_figures.TINY), kind="a") == first
        others = (
            folders(tiny, kind="b"),
            folders(tiny.replace(name="x"), kind="a"),
            folders(tiny, partial(fake_figures.peak), kind="a"),
        )
        assert len({*first, *(folder for other in others for folder in other)}) == 8
        assert len(calls) == 10
        one, two = (pool.map([Job(tiny, 1)], fake_figures.peaks, lambda: None)[0][0] for _ in range(2))
        assert one == two
        assert one is not two


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_failed_run_names_scenario_and_seed_and_others_go_on(tmp_path: Path, temporary: Path, jobs: int) -> None:
    done = call("reproduce", "test/broken", "test/fine", "-o", tmp_path, "--jobs", str(jobs))
    assert done.exit_code == 1
    assert "error: test/broken: tiny, load 0.5, seed 2: LookupError: no burst was found (fake_figures.py:" in done.stderr
    assert not (tmp_path / "test" / "broken").exists()
    assert (tmp_path / "test" / "fine" / "rows.json").is_file()
    assert not list(temporary.glob("fanin-reproduce-*"))


@pytest.mark.usefixtures("registry")
def test_a_worker_that_is_killed_is_reported_and_others_go_on(tmp_path: Path, temporary: Path) -> None:
    done = call("reproduce", "test/killed", "test/order", "-o", tmp_path / "out", "--jobs", "2", "--short")
    assert done.exit_code == 1
    assert "error: test/killed: a worker process ended from outside (out of memory?)" in done.stderr
    assert (tmp_path / "out" / "test" / "order" / "rows.json").is_file()
    assert not list(temporary.glob("fanin-reproduce-*"))


@pytest.mark.usefixtures("registry")
def test_a_wrong_scenario_is_a_failed_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(fake_figures.TINY, "seed", 1)
    monkeypatch.setitem(fake_figures.TINY, "telemetry", {"queues": ["switch9->h0"]})
    with pytest.raises(reproduce.RunError, match=r"test/order: tiny, kind a, seed 1: ScenarioError: .*switch9"):
        reproduce.run("test/order", jobs=1, progress=False)


@contextmanager
def endless(tmp_path: Path, jobs: int) -> Iterator[subprocess.Popen[str]]:
    """A process group in the midst of an endless figure; its temporary files are in tmp_path / tmp."""
    script = tmp_path / "main.py"
    script.write_text(
        "import sys, fake_figures\n"
        "from fanin import cli, reproduce\n"
        "from fanin.reproduce import _registry\n"
        "if __name__ == '__main__':\n"
        "    reproduce.figures()\n"
        "    reproduce.PAPERS['test'] = 'Tests'\n"
        "    _registry._FIGURES['test/endless'] = fake_figures.figure('endless')\n"
        "    cli.app(['reproduce', 'test/endless', '-o', sys.argv[1], '--jobs', sys.argv[2]])\n"
    )
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), "TMPDIR": str(temporary)}
    command = [sys.executable, str(script), str(tmp_path / "out"), str(jobs)]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        deadline = time.monotonic() + 180
        while len(list(temporary.glob("fanin-reproduce-*/*/result/manifest.json"))) < jobs:
            assert time.monotonic() < deadline
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.05)
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.mark.usefixtures("not_nohup")
@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize(
    ("group", "how"),
    [(True, signal.SIGINT), (False, signal.SIGINT), (True, signal.SIGHUP), (False, signal.SIGHUP), (False, signal.SIGTERM)],
)
def test_ctrl_c_ends_it_at_once_and_leaves_nothing(tmp_path: Path, jobs: int, group: bool, how: signal.Signals) -> None:
    """A terminal sends the signal to the whole process group, `kill` to the parent alone."""
    with endless(tmp_path, jobs) as process:
        (os.killpg if group else os.kill)(process.pid, how)
        stderr = process.communicate(timeout=20)[1]
    assert process.returncode == 130
    assert stderr.splitlines()[-1] == "interrupted"
    assert "Traceback" not in stderr
    assert not list((tmp_path / "tmp").glob("fanin-*"))
    assert not (tmp_path / "out").exists()


def group_members(group: int) -> list[int]:
    members = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[2]) == group and fields[0] not in "ZX":
                members.append(int(entry.name))
    return members


def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    with endless(tmp_path, 2) as process:
        assert len(group_members(process.pid)) >= 3
        process.kill()
        deadline = time.monotonic() + 20
        while group_members(process.pid):
            assert time.monotonic() < deadline
            time.sleep(0.05)


# -- command line -------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("registry")
def test_a_number_that_is_off_without_a_reason_fails(tmp_path: Path) -> None:
    done = call("reproduce", "test/off", "-o", tmp_path / "off", "--jobs", "1")
    assert done.exit_code == 1
    assert "7 … 7" in done.stdout
    assert call("reproduce", "test/off", "-o", tmp_path / "off", "--seeds", "7", "--quiet").exit_code == 0


@pytest.mark.usefixtures("registry")
def test_a_reason_explains(tmp_path: Path) -> None:
    done = call("reproduce", "test/order", "-o", tmp_path / "a", "--jobs", "1", "--short")
    assert done.exit_code == 0
    assert "the paper has another network" in done.stdout
    assert f"result: {tmp_path / 'a'}" in done.stdout


@pytest.mark.usefixtures("registry")
def test_json(tmp_path: Path) -> None:
    keys = ["name", "paper", "fanin", "low", "high", "unit", "ok", "note", "calibrated", "one_sided"]
    one = call("reproduce", "test/off", "-o", tmp_path / "one", "--json", "--short")
    assert one.stderr == ""
    document = json.loads(one.stdout)
    assert document["id"] == "test/off"
    assert list(document["rows"][0]) == keys
    assert document["rows"][0]["fanin"] == 2
    assert json.loads((tmp_path / "one" / "rows.json").read_text()) == document
    two = call("reproduce", "test/off", "test/fine", "-o", tmp_path / "two", "--json")
    assert [entry["id"] for entry in json.loads(two.stdout)] == ["test/off", "test/fine"]
    assert json.loads((tmp_path / "two" / "test" / "fine" / "rows.json").read_text())["rows"][0]["paper"] is None


@pytest.mark.usefixtures("registry")
def test_list() -> None:
    done = call("reproduce", "--list")
    assert done.exit_code == 0
    assert "test: Tests of Fanin" in done.stdout
    assert "The order figure" in done.stdout
    assert "1.5 s" in done.stdout
    facts = json.loads(call("reproduce", "--list", "--json").stdout)
    assert facts[0].keys() == {"id", "title", "paper", "seeds", "core_s"}
    assert {entry["id"] for entry in facts} == {f"test/{name}" for name in fake_figures.RUNS}


@pytest.mark.parametrize("arguments", [[], ["--all", "--list"], ["s-ecn", "--all"]])
def test_what_is_to_be_done_must_be_clear(arguments: list[str]) -> None:
    done = call("reproduce", *arguments)
    assert done.exit_code == 2
    assert "one of --list, --all or ids" in done.stderr


@pytest.mark.usefixtures("registry")
def test_a_folder_with_other_things_is_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    done = call("reproduce", "test/endless", "-o", tmp_path)
    assert done.exit_code == 2
    assert "thesis.tex" in done.stderr
    assert call("reproduce", "test/fine", "-o", tmp_path / "fine", "-q").exit_code == 0
    (tmp_path / "fine" / "data" / "notes.txt").write_text("x")
    assert "data/notes.txt" in call("reproduce", "test/fine", "-o", tmp_path / "fine", "-q").stderr
    (tmp_path / "fine" / "data" / "notes.txt").unlink()
    assert call("reproduce", "test/fine", "-o", tmp_path / "fine", "-q").exit_code == 0, "an earlier one is replaced"


# -- from Python --------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("registry", "kept_workers")
def test_a_full_disk_costs_no_earlier_reproduction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    assert call("reproduce", "test/order", "--seeds", "2", "-o", out).exit_code == 0
    before = content(out)
    written: list[int] = []

    def full(descriptor: int) -> None:
        written.append(descriptor)
        if len(written) == 5:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    done = call("reproduce", "test/order", "--seeds", "3", "-o", out)
    assert done.exit_code == 1
    assert f"error: {out}/" in done.stderr
    assert ": No space left on device\n" in done.stderr
    assert ".fanin-" not in done.stderr
    assert content(out) == before
    monkeypatch.undo()


@pytest.mark.usefixtures("registry")
def test_from_python() -> None:
    made = reproduce.run("test/off", short=True, progress=False)
    assert made.rows.to_dicts()[0] | {"paper": "7", "fanin": 2.0, "ok": False} == made.rows.to_dicts()[0]
    assert not made.ok
    assert "test/off: The off figure" in made._repr_html_()
    with pytest.raises(ValueError, match="has no plot"):
        made.figure  # noqa: B018
    with pytest.raises(ValueError, match="stands for 6 figures"):
        reproduce.run("test")
    with pytest.raises(ValueError, match=r"seeds: 0 .*accepted: 1 or more"):
        reproduce.run("test/off", progress=False, seeds=0)
    with pytest.raises(ValueError, match=r"jobs: 0 .*accepted: 1 or more"):
        reproduce.run("test/off", progress=False, jobs=0)


def test_a_defect_of_a_figure_is_no_failed_run(monkeypatch: pytest.MonkeyPatch, registry: None) -> None:
    def defect(context: Context) -> Findings:
        raise KeyError("no such column")

    entry: Any = fake_figures.figure("fine")
    object.__setattr__(entry, "run", defect)
    monkeypatch.setitem(_registry._FIGURES, "test/fine", entry)
    with pytest.raises(KeyError):
        reproduce.run("test/fine", progress=False)


def test_a_row_says_what_was_set_for_it() -> None:
    held = reproduce.Row(name="x", paper=25, fanin=24.8, low=20, high=30, calibrated="cam_period")
    assert reproduce.cells(held)[-2:] == ["calibrated", "set for it: cam_period"]
    assert held.to_dict()["calibrated"] == "cam_period" and not held.one_sided
    words = reproduce.Row(name="x", paper="recovers", fanin=18.8, low=17)
    assert reproduce.cells(words)[-2:] == ["yes, one-sided", ""] and words.to_dict()["one_sided"]
    assert reproduce.cells(reproduce.Row(name="x", paper="< 1", fanin=2, high=1, note="why"))[-2:] == ["no, one-sided", "why"]
    missed = reproduce.Row(name="x", paper=25, fanin=50, low=20, high=30, note="why", calibrated="cam_period")
    assert reproduce.cells(missed)[-2:] == ["no", "why; set for it: cam_period"]
