"""Runs on a Dask cluster. The cluster simulates; only this process writes, so nothing is written twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from fanin import _core
from fanin.sweep._worker import Outcome, VersionError, batch, told
from fanin.sweep.workers import Done, Item, Next

_BATCH_S: Final = 2.0
"""Aimed duration of a task [s], so that the scheduler, which takes a millisecond for each, has little to do."""
_MOST: Final = 500
_TASKS_PER_THREAD: Final = 2
_CONNECT_S: Final = 30.0
_TICK_S: Final = 0.25


def _say(text: str) -> None:
    """Print a line to standard error, where progress goes, too."""
    with suppress(OSError):
        Console(stderr=True, highlight=False).print(Text(text, style="yellow"), soft_wrap=True)


class ClusterError(RuntimeError):
    """The cluster cannot be used."""


def _version() -> str:
    return str(_core.version())


def run(address: str, base_dir: Path, following: Next, done: Done, tick: Callable[[], None]) -> None:
    """Run what `following` gives on the cluster whose scheduler is at `address`.

    A worker that is lost while it has a task costs that task's time: the scheduler gives it to another. A run that ends
    worker after worker has failed.

    Raises
    ------
    ClusterError
        There is no scheduler, or its workers have another Fanin or none; also one that has joined later, whose runs do not count.
    """
    with _connected(address) as client:
        finished = import_module("distributed").as_completed([], loop=client.loop)
        _Cluster(client, finished, address, base_dir, (following, done, tick)).run()


def threads(address: str) -> int:
    """Return how many runs the cluster makes at once.

    Raises
    ------
    ClusterError
        As `run`.
    """
    with _connected(address) as client:
        found: dict[str, int] = client.nthreads()
        return max(1, sum(found.values()))


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        raise ClusterError("--dask needs the package distributed; pip install 'fanin[cluster]'") from None
    # In two steps, so that it is known here when its beginning is interrupted.
    client = distributed.Client.__new__(distributed.Client)
    try:
        client.__init__(address, timeout=_CONNECT_S, set_as_default=False)
    except KeyboardInterrupt:
        client.status = "closed"  # else its finalizer waits a minute for a scheduler that never answered, and prints a traceback
        raise
    except (OSError, ValueError, TimeoutError) as error:
        raise ClusterError(f"--dask {address}: no scheduler answers there: {error}") from None
    with client:
        _same_version(client, address)
        yield client


def _same_version(client: Any, address: str) -> None:
    if not client.nthreads():
        _say(f"--dask {address}: the scheduler has no worker yet; waiting {_CONNECT_S:.0f} s for one")
    try:
        client.wait_for_workers(1, timeout=_CONNECT_S)
    except TimeoutError:
        raise ClusterError(f"--dask {address}: the scheduler has no worker") from None
    _compare_versions(client, address)


def _compare_versions(client: Any, address: str) -> None:
    for worker, version in client.run(_version, on_error="return").items():
        if isinstance(version, ImportError | AttributeError):
            raise ClusterError(f"--dask {address}: worker {worker} cannot import fanin: {version}")
        if isinstance(version, str) and version != _version():  # else it has just gone
            raise ClusterError(
                f"--dask {address}: worker {worker} has Fanin {version}, this process {_version()}; install the same"
            )


class _Cluster:
    def __init__(
        self, client: Any, finished: Any, address: str, base_dir: Path, asked: tuple[Next, Done, Callable[[], None]]
    ) -> None:
        self._client, self._address = client, address
        self._base_dir = str(base_dir.absolute())
        self._following, self._done, self._tick = asked
        self._tasks: dict[str, tuple[Any, list[Item]]] = {}
        self._alone: list[Item] = []
        """Runs of a batch that ended several workers: one at a time from here on."""
        self._finished = finished
        self._mean = _BATCH_S
        self._asked = 0.0
        self._room = 0
        self._alone_now = False
        """Whether it was said that there is no worker."""

    def run(self) -> None:
        while True:
            self._submit()
            if not self._tasks:
                return
            while not self._finished.has_ready() and self._waits():
                pass
            while self._finished.has_ready():
                self._take(next(self._finished))
            self._tick()

    def _waits(self) -> bool:
        time.sleep(0.01)
        if time.monotonic() - self._asked > _TICK_S:
            self._tick()
            self._asked = time.monotonic()
            return False
        return True

    def _submit(self) -> None:
        if not self._room or time.monotonic() - self._asked > _TICK_S:
            threads = sum(self._client.nthreads().values())
            if not threads and not self._alone_now:
                _say(f"--dask {self._address}: no worker is left; the sweep goes on when one joins")
            self._alone_now = not threads
            self._room = max(1, _TASKS_PER_THREAD * threads)
        while len(self._tasks) < self._room:
            items = [self._alone.pop()] if self._alone else self._batch()
            if not items:
                return
            texts = [(text, keep) for _, text, keep in items]
            future = self._client.submit(batch, texts, self._base_dir, _version(), pure=False)
            self._tasks[future.key] = (future, items)
            self._finished.add(future)

    def _batch(self) -> list[Item]:
        size = max(1, min(_MOST, int(_BATCH_S / max(self._mean, 1e-4))))
        items: list[Item] = []
        while len(items) < size and (item := self._following()) is not None:
            items.append(item)
        return items

    def _take(self, future: Any) -> None:
        _, items = self._tasks.pop(future.key)
        if future.status == "finished":
            outcomes = future.result()
            spent = sum(outcome.facts.get("wall_s") or 0.0 for outcome in outcomes)
            self._mean = spent / len(outcomes) if self._mean == _BATCH_S else 0.8 * self._mean + 0.2 * spent / len(outcomes)
            for (number, _, _), outcome in zip(items, outcomes, strict=True):
                self._done(number, outcome)
            return
        if future.status == "cancelled":
            raise ClusterError("the cluster gave up: its scheduler has lost the tasks")
        error = future.exception()
        if isinstance(error, VersionError):
            raise ClusterError(f"--dask {self._address}: {error}; install the same")
        # A worker that has joined meanwhile may have a Fanin that knows nothing of this check.
        _compare_versions(self._client, self._address)
        if len(items) > 1:
            self._alone += items
        else:
            self._done(items[0][0], Outcome({}, (), told(error)))
