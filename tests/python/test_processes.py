"""In worker processes: exceptions arrive with what they say, and nothing is left behind."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fanin
from fanin.reproduce import RunError

PROBLEM: dict[str, Any] = {"severity": "error", "path": "seed", "line": 2, "value": "-1", "message": "is negative"}


def scenario_error() -> fanin.ScenarioError:
    error = fanin.ScenarioError("seed: is negative")
    error.problems = [PROBLEM]
    return error


def trace_error() -> fanin.TraceError:
    error = fanin.TraceError("a.csv: has no time")
    error.problems = [{"file": "a.csv", "text": "a.csv: has no time"}]
    return error


def test_all_exceptions_of_the_package_are_here() -> None:
    found = {
        name for name in fanin.__all__ if isinstance(getattr(fanin, name), type) and issubclass(getattr(fanin, name), BaseException)
    }
    assert found == {"CompareError", "OutputError", "ResultError", "ScenarioError", "TraceError"}


@pytest.mark.parametrize(
    "error",
    [
        scenario_error(),
        trace_error(),
        fanin.CompareError(["a: is no result", "b: is no result"]),
        fanin.OutputError("out: is a file"),
        fanin.ResultError("out: is damaged"),
        RunError("fig4a, seed 3"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_exceptions_travel_whole(error: BaseException) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)
    assert type(error).__module__.startswith("fanin")


TINY = """{
    "topology": {"kind": "single_switch", "hosts": 2},
    "traffic": [{"kind": "flows", "flows": [{"src": "h0", "dst": "h1", "size": "100KB"}]}],
}"""

SCRIPT = f"""
import multiprocessing, sys
from concurrent.futures import ProcessPoolExecutor
import fanin

GOOD = {TINY}

def run(seed):
    return fanin.run({{**GOOD, "seed": seed}}, progress=False).flows.height

def kill(seed):
    run(seed)
    import os, signal
    os.kill(os.getpid(), signal.SIGKILL)

def main(method):
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        assert list(pool.map(run, range(4))) == [1] * 4
        try:
            pool.submit(run, -1).result()
        except fanin.ScenarioError as error:
            print(error.problems[0]["path"], "|", str(error).splitlines()[0])
    worker = context.Process(target=kill, args=(1,))
    worker.start()
    worker.join()
    print(worker.exitcode)

if __name__ == "__main__":
    main(sys.argv[1])
"""


@pytest.fixture
def left() -> Iterator[Path]:
    """A folder for temporary files with a short name: a socket's path has 108 bytes at most."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_a_pool_shows_the_message_and_leaves_nothing(tmp_path: Path, left: Path, method: str) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    environment = {**os.environ, "TMPDIR": str(left), "POLARS_MAX_THREADS": "1"}
    call = [sys.executable, str(tmp_path / "script.py"), method]
    done = subprocess.run(call, capture_output=True, text=True, env=environment, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    said, exit_code = done.stdout.splitlines()
    assert said.startswith("seed | "), said
    assert exit_code == "-9"
    assert len(list(left.glob("fanin-*"))) == 1, "only of the process that was killed"
    again = f"import fanin; print(fanin.run({TINY}, progress=False).path)"
    (left / "fanin-mine").mkdir()
    done = subprocess.run([sys.executable, "-c", again], capture_output=True, text=True, env=environment, check=False)
    assert done.stdout.startswith(str(left)), done.stderr
    assert [path.name for path in left.iterdir()] == ["fanin-mine"], "not locked by Fanin, so not Fanin's"


def test_a_folder_in_use_is_not_removed_by_another_process(tmp_path: Path) -> None:
    code = (
        f"import fanin, subprocess, sys; s = {TINY}; "
        "r = fanin.run(s, progress=False); "
        "subprocess.run([sys.executable, '-c', f'import fanin; fanin.run({s!r}, progress=False)'], check=True); "
        "print(r.flows.height, (r.path / 'manifest.json').is_file(), fanin.run(s, progress=False).path.parent == r.path.parent)"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert done.stdout == "1 True True\n", done.stderr
    assert list(tmp_path.iterdir()) == []
