"""Two runs never mix: a folder is locked while a run writes to it, and tables of another run are found by their rows."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from typer.testing import CliRunner

import fanin
from fake_result import write_followed, write_result
from fanin.cli import app
from fanin.files import system
from fanin.files.locks import LOCK, Lock, LockedError
from fanin.results import folder
from fanin.tables.schemas import SCHEMAS

CLI = [sys.executable, "-c", "from fanin.cli import app; app()"]
SHORT = """
seed = 3
[topology]
kind = "single_switch"
hosts = 17
[[traffic]]
kind = "incast"
receiver = "h16"
senders = ["all"]
size = "60KB"
[telemetry]
sample = "10us"
queues = ["*->h16"]
"""
ENDLESS = SHORT.replace("60KB", "100GB")


def wait_for(what: Path) -> None:
    deadline = time.monotonic() + 120
    while not what.is_file() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert what.is_file(), what


@pytest.fixture
def live(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A process that replaces a complete result, and is in the middle of it."""
    for name, text in (("short", SHORT), ("endless", ENDLESS)):
        (tmp_path / f"{name}.toml").write_text(text)
    out = tmp_path / "out"
    fanin.run(tmp_path / "short.toml", out, progress=False)
    assert CliRunner().invoke(app, ["convert", str(out), "--table", "flows"]).exit_code == 0
    words = ["run", str(tmp_path / "endless.toml"), "-o", str(out), "--force", "-q"]
    process = subprocess.Popen([*CLI, *words], stderr=subprocess.PIPE, text=True)
    try:
        wait_for(out / ".fanin-run" / "queues.parquet")
        yield process, out
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("overwrite", [True, False])
def test_a_folder_that_a_run_writes_to_is_refused(live: tuple[subprocess.Popen[str], Path], overwrite: bool) -> None:
    process, out = live
    before = sorted(entry.name for entry in out.iterdir())
    with pytest.raises(fanin.OutputError) as caught:
        fanin.run(out.parent / "short.toml", out, progress=False, overwrite=overwrite)
    assert f"{out}: process {process.pid} (" in str(caught.value)
    assert "is writing a result there; wait until it has ended, or choose another folder" in str(caught.value)
    words = ["run", str(out.parent / "short.toml"), "-o", str(out), *(["--force"] if overwrite else [])]
    refused = CliRunner().invoke(app, words)
    assert refused.exit_code == 2
    assert f"process {process.pid} (" in refused.stderr
    assert sorted(entry.name for entry in out.iterdir()) == before
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    result = fanin.load(out)
    assert (result.status, result.scenario["traffic"][0]["size"]) == ("partial", "100GB")
    assert LOCK not in {entry.name for entry in out.iterdir()}


def test_a_killed_run_is_not_taken_for_complete_and_its_lock_is_gone(live: tuple[subprocess.Popen[str], Path]) -> None:
    process, out = live
    result = fanin.load(out)
    assert (result.status, result.complete) == ("running", False)
    with pytest.raises(fanin.ResultError, match="the run has not ended; wait for its end"):
        _ = result.summary
    shown = CliRunner().invoke(app, ["show", str(out)]).stdout
    assert f"{out} is a result, running, of this scenario; the run has not ended." in shown
    refused = CliRunner().invoke(app, ["analyze", str(out)])
    assert (refused.exit_code, "the run has not ended, or it was killed (fanin show says which)" in refused.stderr) == (2, True)
    process.kill()
    process.wait()
    assert (result.status, result.complete) == ("killed", False)
    shown = CliRunner().invoke(app, ["show", str(out)]).stdout
    assert f"{out} is a result, killed, of this scenario; fanin run with --force runs it again." in shown
    # Nothing that is not whole has the name of a result's file, which other tools would open.
    left = {entry.name for entry in out.iterdir()}
    assert left == {"manifest.json", ".fanin-run", ".ballast", LOCK}
    assert (out / ".fanin-run" / "queues.parquet").exists()
    assert not (out / "flows.csv").exists(), "a converted table of the earlier result"
    with pytest.raises(fanin.ResultError, match="the run was killed; run it again, with --force"):
        _ = result.summary
    again = fanin.run(out.parent / "short.toml", out, progress=False, overwrite=True)
    assert again.complete
    assert sorted(entry.name for entry in out.iterdir() if entry.name.startswith(".")) == []


def test_two_runs_of_one_process_are_kept_apart_too(tmp_path: Path) -> None:
    (tmp_path / "endless.toml").write_text(ENDLESS)
    refused: list[str] = []

    def again(_: fanin.ProgressState) -> None:
        with pytest.raises(fanin.OutputError) as caught:
            fanin.run(tmp_path / "endless.toml", tmp_path / "out", overwrite=True)
        refused.append(str(caught.value))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fanin.run(tmp_path / "endless.toml", tmp_path / "out", progress=again)
    assert f"process {os.getpid()} (this one) is writing" in refused[0]


def test_two_analyses_do_not_write_one_file(tmp_path: Path) -> None:
    trace = tmp_path / "a.csv"
    trace.write_text("time_ns,queue_bytes\n1,2\n5,7\n")
    for option, name in (("-o", "page.json"), ("--records", "all.csv")):
        with Lock(tmp_path / f".fanin-{name}.lock"):
            words = ["analyze", str(trace), "--rate", "1Gbps", option, str(tmp_path / name)]
            done = CliRunner().invoke(app, words)
        assert done.exit_code == 2
        assert f"process {os.getpid()} (this one) is writing it; wait until it has ended, or choose another name" in done.stderr
        assert not (tmp_path / name).exists()


def test_a_child_does_not_keep_the_lock_of_its_parent(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    with Lock(tmp_path / LOCK):
        child = os.fork()
        if not child:
            os.close(writing)
            os.read(reading, 1)  # until the parent closes its end
            os._exit(0)
    with Lock(tmp_path / LOCK) as lock:
        assert lock.works
    os.close(writing)
    os.close(reading)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "another process"),
        (b"[]", "another process"),
        (b"[" * 100_000, "another process"),
        (b'{"pid": "x", "host": 1, "command": 2}', "another process"),
        (b'{"pid": 7, "host": "far\\u001b[2J", "command": "fanin\\nrun"}', "process 7 on far?[2J (fanin?run)"),
    ],
)
def test_what_is_in_a_lock_is_not_trusted(tmp_path: Path, text: bytes, said: str) -> None:
    with Lock(tmp_path / LOCK):
        (tmp_path / LOCK).write_bytes(text)
        with pytest.raises(LockedError, match=f"^{re.escape(said)}$"), Lock(tmp_path / LOCK):
            pass


def test_two_who_ask_at_once_both_see_that_a_run_was_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = write_result(tmp_path / "out", bursts=1, manifest={"status": "running"})
    (out / LOCK).write_text('{"pid": 1, "host": "far", "command": "fanin run"}')
    one, other = (fanin.load(out) for _ in range(2))
    lock, seen = system.lock, []

    def asked_meanwhile(descriptor: int, **how: bool) -> None:
        lock(descriptor, **how)
        monkeypatch.undo()
        seen.append(other.status)

    monkeypatch.setattr(system, "lock", asked_meanwhile)
    assert (one.status, seen) == ("killed", ["killed"])
    with Lock(out / LOCK):
        assert one.status == "running"


def test_a_run_that_starts_while_another_asks_for_its_status_is_not_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / LOCK).touch()
    asking = os.open(tmp_path / LOCK, os.O_RDONLY)
    system.lock(asking, shared=True)
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        if not pauses:
            os.close(asking)
        pauses.append(seconds)

    monkeypatch.setattr("fanin.files.locks.time", SimpleNamespace(sleep=pause))
    with Lock(tmp_path / LOCK) as held:
        assert held.works
        assert len(pauses) == 1
        with pytest.raises(LockedError, match="this one"), Lock(tmp_path / LOCK):
            pass
    assert 0.05 < sum(pauses[1:]) < 0.2, "one that another has is refused soon"


def test_a_lock_that_was_removed_while_it_was_waited_for_is_taken_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its last owner removes the file between another's opening and locking it."""
    path = tmp_path / LOCK
    opened = os.open
    raced: list[int] = []

    def racing(*arguments: object) -> int:
        descriptor = opened(*arguments)  # type: ignore[arg-type]
        if not raced:
            raced.append(descriptor)
            path.unlink()
        return descriptor

    monkeypatch.setattr("os.open", racing)
    with Lock(path):
        monkeypatch.undo()
        assert raced
        with pytest.raises(LockedError), Lock(path):
            pass


def test_where_nothing_can_be_locked_runs_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unable(*_: int) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.flock", unable)
    with folder.taken(tmp_path / "out", overwrite=False), folder.taken(tmp_path / "out", overwrite=False):
        pass


def test_a_table_of_another_run_is_found(tmp_path: Path) -> None:
    one, other = write_result(tmp_path / "one", bursts=2), write_result(tmp_path / "other", bursts=3)
    shutil.copy(other / "flows.parquet", one)
    shutil.copy(other / "queues.parquet", one)
    rows = {name: pl.read_parquet(one / f"{name}.parquet").height for name in ("flows", "queues")}
    expected = json.loads((one / "manifest.json").read_text())["files"]
    with pytest.raises(fanin.ResultError) as caught:
        fanin.load(one)
    for name, found in rows.items():
        assert f"{name}.parquet has {found} rows, expected {expected[name]}" in str(caught.value)
    assert CliRunner().invoke(app, ["report", str(one)]).exit_code == 2
    with pytest.raises(fanin.TraceError, match=rf"queues.parquet: has {rows['queues']} rows; manifest.json says"):
        fanin.analyze(one)


def test_a_table_that_is_gone_is_an_error_only_where_it_is_asked_for(tmp_path: Path) -> None:
    out = write_result(tmp_path / "out", bursts=2)
    rows = fanin.load(out).queues.height
    (out / "queues.parquet").unlink()
    result = fanin.load(out)
    assert result.flows.height > 0
    with pytest.raises(fanin.ResultError, match=rf"queues\.parquet: there is no such file; expected one with {rows} rows"):
        _ = result.queues
    assert result.hosts.height == 0, "no row was written"


def test_what_a_manifest_says_of_rows_may_be_anything(tmp_path: Path) -> None:
    for files in (None, 7, {"flows": "many"}, {"flows": None}, {"nothing": 3}):
        out = write_result(tmp_path / "out", bursts=1, manifest={"files": files})
        assert fanin.load(out).flows.height > 0
    (out / "flows.parquet").write_bytes(b"PAR1")
    assert fanin.load(out).complete, "a damaged table is an error when it is read"


def test_all_rows_of_a_run_are_as_its_manifest_says(tmp_path: Path) -> None:
    (tmp_path / "short.toml").write_text(SHORT.replace("sample =", 'hosts = ["0"]\nsample ='))
    result = fanin.run(tmp_path / "short.toml", tmp_path / "out", progress=False)
    assert set(result.manifest["files"]) == set(SCHEMAS)
    for name, rows in result.manifest["files"].items():
        assert result.scan(name, as_written=True).collect().height == rows, name
    quiet = fanin.Scenario.from_toml(SHORT.split("[telemetry]", maxsplit=1)[0] + '[telemetry]\nsample = "off"\ndrops = false\n')
    result = fanin.run(quiet, tmp_path / "quiet", progress=False)
    assert all(result.scan(name).collect().height == rows for name, rows in result.manifest["files"].items())


def test_the_fake_result_of_the_other_tests_is_consistent(tmp_path: Path) -> None:
    out = write_result(tmp_path / "out", bursts=1)
    write_followed(out)
    assert fanin.load(out).segments.height == 1
