"""Sweeps on a Dask cluster, and in an S3-compatible store: real servers, in processes of their own."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path

import polars as pl
import pytest

import fanin
from fanin.sweep.store import StoreError, opened
from sweeping import TOML, command, finished, killed, run, same
from watching import free_port

TABLE = """[sweep]
seeds = 150
[sweep.grid]
"switch.marking.k" = ["2 packets", "5 packets"]
"traffic[0].size" = ["20KB", "2MB"]
"""


@contextmanager
def server(*command: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, *command], env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def until(true: Callable[[], bool], seconds: float = 180) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


cluster = pytest.mark.skipif(find_spec("distributed") is None, reason="distributed is not installed: make test")


@contextmanager
def dask(folder: Path, workers: int) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler and workers of one thread each; without nannies, which would start them again."""
    file = folder / "scheduler.json"
    with ExitStack() as stack:
        stack.enter_context(
            server("-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(file))
        )
        until(file.is_file)
        one = (
            "-m",
            "distributed.cli.dask_worker",
            "--no-nanny",
            "--nthreads",
            "1",
            "--no-dashboard",
            "--scheduler-file",
            str(file),
        )
        started = [stack.enter_context(server(*one, "--local-directory", str(folder / f"worker-{n}"))) for n in range(workers)]
        yield json.loads(file.read_text())["address"], started


@cluster
def test_a_cluster_that_loses_a_worker_loses_no_run_and_does_none_twice(tmp_path: Path) -> None:
    file = tmp_path / "sweep.toml"
    file.write_text(TOML + TABLE)
    out = tmp_path / "out"
    with dask(tmp_path, 2) as (address, workers):
        sweeping = command("sweep", file, "-o", out, "--dask", address, "-q", flush_s=0.1)
        until(lambda: bool(list(out.glob("runs/*.parquet"))) or sweeping.poll() is not None)
        before = fanin.Sweep(out).runs.height
        workers[0].kill()
        status, _, said = finished(sweeping)
    assert status == 0, said
    assert 0 < before < 600, "the worker was killed in the middle"
    sweep = fanin.Sweep(out)
    assert (sweep.complete, sweep.failed.height, sweep.runs.height) == (True, 0, 600)
    assert sum(pl.read_parquet(path).height for path in (out / "runs").iterdir()) == 600
    same(sweep, fanin.sweep(file, tmp_path / "here", progress=False))


@cluster
def test_a_run_that_ends_worker_after_worker_fails_alone(tmp_path: Path) -> None:
    """On a cluster, too, where it takes its batch with it at first."""
    from fanin.sweep import dask as on_dask
    from fanin.sweep._worker import Outcome

    class Future:
        def __init__(self, key: str, status: str, outcomes: list[Outcome]) -> None:
            self.key, self.status, self._outcomes = key, status, outcomes

        def result(self) -> list[Outcome]:
            return self._outcomes

        def exception(self) -> Exception:
            return RuntimeError("KilledWorker")

    class Client:
        tasks = 0

        def nthreads(self) -> dict[str, int]:
            return {"a": 1}

        def run(self, *_: object, **__: object) -> dict[str, str]:
            return {"a": str(fanin._core.version())}

        def submit(self, _function: object, texts: list[tuple[str, None]], *_: object, **__: object) -> Future:
            self.tasks += 1
            bad = any(text == "3" for text, _ in texts)
            return Future(str(self.tasks), "error" if bad else "finished", [Outcome({"wall_s": 1e-4})] * len(texts))

    class Finished:
        def __init__(self) -> None:
            self.waiting: list[Future] = []

        def add(self, future: Future) -> None:
            self.waiting.append(future)

        def has_ready(self) -> bool:
            return bool(self.waiting)

        def __next__(self) -> Future:
            return self.waiting.pop(0)

    todo = iter([(n, str(n), None) for n in range(40)])
    ended: dict[int, Outcome] = {}
    made = on_dask._Cluster(Client(), Finished(), "a", tmp_path, (lambda: next(todo, None), ended.__setitem__, lambda: None))
    made._mean = 0.2
    made.run()
    assert sorted(ended) == list(range(40))
    assert [n for n, outcome in ended.items() if outcome.error] == [3]


OTHER = """
import sys
from fanin import _core
_core.version = lambda: "0.0.1"
from distributed.cli.dask_worker import main
sys.exit(main())
"""


@cluster
def test_a_worker_of_another_version_that_joins_later_writes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "sweep.toml"
    file.write_text(TOML + TABLE.replace("150", "9000"))
    out = tmp_path / "out"
    with dask(tmp_path, 1) as (address, _):
        sweeping = command("sweep", file, "-o", out, "--dask", address, "-q", flush_s=0.1)
        until(lambda: bool(list(out.glob("runs/*.parquet"))) or sweeping.poll() is not None)
        late = ("--no-nanny", "--nthreads", "8", "--no-dashboard", "--local-directory", str(tmp_path / "late"), address)
        with server("-c", OTHER, *late):
            status, _, said = finished(sweeping)
    assert status == 1
    assert re.search(r"--dask tcp://\S+: worker on \S+ has Fanin 0\.0\.1, the sweep \S+; install the same", said), said
    there = fanin.Sweep(out)
    assert 0 < there.all_runs.height < 36_000, "it joined in the middle"
    assert (there.all_runs["version"].unique().to_list(), there.failed.height) == ([fanin._core.version()], 0)


def test_a_fanin_that_knows_no_versions_is_found_by_its_errors(tmp_path: Path) -> None:
    """An older one has no such check: its task fails, and then all workers are asked."""
    from fanin.sweep import dask as on_dask
    from fanin.sweep._worker import Outcome

    class Future:
        key, status = "1", "error"

        def exception(self) -> Exception:
            return TypeError("batch() takes 2 positional arguments but 3 were given")

    class Client:
        def run(self, *_: object, **__: object) -> dict[str, object]:
            return {"gone": OSError("closed"), "old": "0.0.1"}

    ended: dict[int, Outcome] = {}
    made = on_dask._Cluster(Client(), [], "tcp://a:1", tmp_path, (lambda: None, ended.__setitem__, lambda: None))
    made._tasks["1"] = (Future(), [(1, "{}", None)])
    with pytest.raises(on_dask.ClusterError, match=r"worker old has Fanin 0\.0\.1, this process "):
        made._take(Future())
    assert ended == {}


@cluster
def test_a_cluster_says_how_many_runs_it_makes_at_once(tmp_path: Path) -> None:
    from fanin.sweep import dask as on_dask

    with dask(tmp_path, 2) as (address, _):
        until(lambda: on_dask.threads(address) == 2)


@cluster
def test_a_scheduler_that_is_not_there_is_an_error_that_names_it(tmp_path: Path) -> None:
    from fanin.sweep import dask as on_dask

    on_dask._CONNECT_S = 0.5  # type: ignore[misc]
    try:
        with pytest.raises(on_dask.ClusterError, match=r"--dask tcp://127\.0\.0\.1:9: no scheduler answers"):
            run(tmp_path / "out", {"seeds": 1}, jobs=None, dask="tcp://127.0.0.1:9")
    finally:
        on_dask._CONNECT_S = 30.0  # type: ignore[misc]


@cluster
def test_a_scheduler_without_workers_is_said_at_once_and_then_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from fanin.sweep import dask as on_dask

    monkeypatch.setattr(on_dask, "_CONNECT_S", 2.0)
    with (
        dask(tmp_path, 0) as (address, _),
        pytest.raises(on_dask.ClusterError, match=rf"--dask {address}: the scheduler has no worker$"),
    ):
        run(tmp_path / "out", {"seeds": 1}, jobs=None, dask=address)
    assert f"--dask {address}: the scheduler has no worker yet; waiting 2 s for one" in capsys.readouterr().err


def test_when_the_last_worker_leaves_a_sweep_says_once_that_it_waits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from types import SimpleNamespace

    from fanin.sweep import dask as on_dask

    workers: dict[str, int] = {}
    client = SimpleNamespace(nthreads=lambda: workers, submit=lambda *_, **__: SimpleNamespace(key="1"))
    todo = iter([(n, str(n), None) for n in range(3)])
    made = on_dask._Cluster(
        client,
        SimpleNamespace(add=lambda _: None),
        "tcp://a:1",
        tmp_path,
        (lambda: next(todo, None), lambda *_: None, lambda: None),
    )

    def said() -> str:
        made._room = 0  # as after a pause
        made._submit()
        return capsys.readouterr().err

    assert said() == "--dask tcp://a:1: no worker is left; the sweep goes on when one joins\n"
    assert said() == "", "it was said"
    workers["b"] = 1
    assert said() == ""
    workers.clear()
    assert "no worker is left" in said()


@cluster
def test_ctrl_c_while_no_scheduler_answers_ends_at_once_with_one_line(tmp_path: Path) -> None:
    file = tmp_path / "sweep.toml"
    file.write_text(f"{TOML}[sweep]\nseeds = 1\n")
    with socket.create_server(("127.0.0.1", 0)) as listens:
        listens.settimeout(180)
        address = f"tcp://127.0.0.1:{listens.getsockname()[1]}"
        process = command("sweep", file, "-o", tmp_path / "out", "-q", "--dask", address)
        attempt, _ = listens.accept()
        with attempt:  # which is not answered
            process.send_signal(signal.SIGINT)
            status, _, said = finished(process, timeout=30)
    assert status == 130, said
    (line,) = said.splitlines()
    assert line.startswith("interrupted; what had ended until then is in ")


buckets = pytest.mark.skipif(
    find_spec("obstore") is None or find_spec("moto") is None, reason="obstore or moto is not installed: make test"
)


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, str]]:
    """The environment for a server of moto, which speaks S3's protocol, with a bucket."""
    port = free_port(socket.SOCK_STREAM)
    url = f"http://127.0.0.1:{port}"
    with server("-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)):

        def answers() -> bool:
            try:
                request = urllib.request.Request(f"{url}/results", method="PUT")
                with urllib.request.urlopen(request, timeout=5) as answer:
                    return bool(answer.status == 200)
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                return False

        until(answers)
        yield {
            "AWS_ENDPOINT_URL": url,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "who",
            "AWS_SECRET_ACCESS_KEY": "what",
            "AWS_REGION": "us-east-1",
        }


@pytest.fixture
def credentials(s3: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    for name, value in s3.items():
        monkeypatch.setenv(name, value)
    return s3


@buckets
def test_a_sweep_in_a_bucket_is_the_same_and_goes_on(credentials: dict[str, str], tmp_path: Path) -> None:
    grid = {"grid": {"switch.marking.k": ["2 packets", "5 packets"]}}
    first = run("s3://results/a/b", {**grid, "seeds": 2})
    assert (first.path, first.runs.height, first.complete) == ("s3://results/a/b", 4, True)
    again = run("s3://results/a/b/", {**grid, "seeds": 3})
    assert opened("s3://results/a/b").names("runs") == sorted(set(again.runs["segment"]))
    assert len(set(again.runs["segment"])) == 2
    same(again, run(tmp_path / "here", {**grid, "seeds": 3}))
    assert fanin.Sweep.is_store("s3://results/a/b")
    assert not fanin.Sweep.is_store("s3://results/a")


@buckets
def test_shards_share_a_bucket_and_one_that_is_killed_is_repeated(credentials: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "sweep.toml"
    file.write_text(TOML + TABLE.replace("150", "30"))
    out = "s3://results/shards"

    def shard(i: int) -> subprocess.Popen[str]:
        return command("sweep", file, "-o", out, "--shard", f"{i}/2", "-q", "-j", 1, flush_s=0.05, **credentials)

    one, two = shard(1), shard(2)
    until(lambda: bool(opened(out).names("runs")))
    killed(two)
    assert finished(one)[0] == 0
    growing = fanin.Sweep(out)
    assert growing.runs["run"].n_unique() == growing.runs.height
    assert finished(shard(2))[0] == 0
    same(fanin.Sweep(out), fanin.sweep(file, tmp_path / "here", progress=False))


@buckets
def test_buckets_that_cannot_be_used_are_errors_that_name_them(credentials: dict[str, str]) -> None:
    with pytest.raises(StoreError, match=r"s3://absent/x/plan\.parquet: cannot be written"):
        run("s3://absent/x", {"seeds": 1})
    with pytest.raises(ValueError, match="can be kept in a folder alone"):
        run("s3://results/kept", {"seeds": 1}, keep=True)
