"""Long-lived worker processes on this machine. One that crashes takes its run with it, and nothing else."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

from fanin.files import system
from fanin.sweep._worker import Keep, Outcome, simulate

Item = tuple[int, str, Keep | None]
"""Number of a run, its scenario as JSON, and where its result folder goes."""
Next = Callable[[], Item | None]
Done = Callable[[int, Outcome], None]

_AHEAD_S: Final = 0.3
"""Work that waits at each worker [s], so that it never waits for us."""
_STILLBORN: Final = 3
"""Workers that are killed before they begin, until that is an error."""
_AHEAD_BYTES: Final = 65536
"""Less than what a socket holds: else both sides could wait for the other to read."""
_GATHER_S: Final = 0.03
_GATHERED: Final = 4
"""Runs that wait at each worker where their outcomes are gathered for so long, at most."""
_TICK_S: Final = 0.25


@dataclass
class _Worker:
    process: subprocess.Popen[bytes]
    connection: Connection[Any, Any]
    pipe: int
    errors: IO[bytes]
    ready: bool = False
    waiting: deque[Item] = field(default_factory=deque)
    """Items that the worker has not answered yet, the one at work first."""

    def room(self, ahead: int) -> bool:
        if not self.ready or len(self.waiting) >= ahead:
            return False
        return not self.waiting or sum(len(item[1]) for item in self.waiting) < _AHEAD_BYTES // 2

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.connection.close()
        os.close(self.pipe)
        self.errors.close()


class OneByOne:
    """Runs in this process, one after another, where there are no worker processes: on Windows.

    Parameters
    ----------
    base_dir : path
        Where relative paths in scenarios start from.
    """

    def __init__(self, base_dir: Path) -> None:
        self._base_dir: Final = str(base_dir)

    def run(self, following: Next, done: Done, tick: Callable[[], None]) -> None:
        """Run what `following` gives until it gives nothing; `tick` is called after each."""
        while (item := following()) is not None:
            number, text, keep = item
            done(number, simulate(text, self._base_dir, keep))
            tick()


class Pool:
    """Worker processes; used as a context manager, which ends them.

    Parameters
    ----------
    jobs : int
        How many.
    base_dir : path
        Where relative paths in scenarios start from.
    """

    def __init__(self, jobs: int, base_dir: Path) -> None:
        self.jobs: Final = jobs
        self._base_dir: Final = str(base_dir)
        self._workers: list[_Worker] = []
        self._again: deque[Item] = deque()
        self._spent = 0.0
        self._ended = 0
        self._stillborn = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for worker in self._workers:
            worker.close()
        self._workers = []

    def run(self, following: Next, done: Done, tick: Callable[[], None]) -> None:
        """Run what `following` gives until it gives nothing and all have ended; `tick` is called several times a second."""
        while True:
            self._fill(following)
            busy = [worker for worker in self._workers if worker.waiting or not worker.ready]
            if not any(worker.waiting for worker in self._workers) and not self._again:
                item = following()
                if item is None:
                    return
                self._again.append(item)
            for connection in wait([worker.connection for worker in busy], timeout=_TICK_S):
                worker = next(worker for worker in busy if worker.connection is connection)
                self._hear(worker, done)
            tick()
            self._let_gather()

    def _let_gather(self) -> None:
        """Sleep for a part of what waits at every worker: many short runs are heard of, and others given, at once."""
        ready = [len(worker.waiting) for worker in self._workers if worker.ready]
        if self._ended and ready and min(ready) >= _GATHERED:
            time.sleep(min(_GATHER_S, self._spent / self._ended * min(ready) / 4))

    def _fill(self, following: Next) -> None:
        mean = self._spent / self._ended if self._ended else 1.0
        ahead = max(1, min(256, int(_AHEAD_S / max(mean, 1e-4))))
        for worker in self._workers:
            some: list[Item] = []
            while worker.room(ahead):
                item = self._again.popleft() if self._again else following()
                if item is None:
                    break
                worker.waiting.append(item)
                some.append(item)
            if some:
                with contextlib.suppress(OSError):  # it has died, which is found out when it is listened to
                    worker.connection.send(some)
        while len(self._workers) < self.jobs:
            item = self._again.popleft() if self._again else following()
            if item is None:
                break
            self._again.appendleft(item)
            self._workers.append(self._started())

    def _started(self) -> _Worker:
        here, there = Pipe()
        kept, given = os.pipe()
        errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the worker)
        package = str(Path(__file__).parents[2])
        paths = [package, os.environ.get("PYTHONPATH", "")]
        # Not multiprocessing, which would run the caller's script once more in each worker.
        process = subprocess.Popen(  # noqa: S603 (our own interpreter and module)
            [sys.executable, "-c", f"from fanin.sweep._worker import main; main({there.fileno()}, {kept})"],
            pass_fds=(there.fileno(), kept),
            stdin=subprocess.DEVNULL,
            stdout=errors,
            stderr=errors,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)},
            start_new_session=True,
        )
        there.close()
        os.close(kept)
        with contextlib.suppress(OSError):
            here.send(self._base_dir)
        return _Worker(process, here, given, errors)

    def _hear(self, worker: _Worker, done: Done) -> None:
        try:
            while worker.connection.poll():
                said = worker.connection.recv()
                if said == "ready":
                    worker.ready = True
                    continue
                number, outcome = said
                worker.waiting.popleft()
                self._spent += outcome.facts.get("wall_s") or 0.0
                self._ended += 1
                done(number, outcome)
        except (EOFError, ConnectionError):
            self._bury(worker, done)

    def _bury(self, worker: _Worker, done: Done) -> None:
        """Report the run that a dead worker was at; what else it was given goes to others."""
        self._workers.remove(worker)
        status = worker.process.wait()
        worker.errors.seek(0)
        said = worker.errors.read()[-2000:].decode(errors="replace").strip()
        worker.close()
        if not worker.ready:
            self._stillborn += 1
            if status >= 0 or self._stillborn > _STILLBORN:
                raise RuntimeError(f"a worker process cannot start ({_how(status)}): {said}")
            self._again.extendleft(reversed(worker.waiting))  # killed before it began: another starts in its place
            return
        if worker.waiting:
            number, _, _ = worker.waiting.popleft()
            self._again.extendleft(reversed(worker.waiting))
            last = f": {said.splitlines()[-1]}" if said else ""
            done(number, Outcome({}, (), f"the worker process ended ({_how(status)}){last}", system.host()))


def _how(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    name = signal.Signals(-status).name if -status in set(signal.Signals) else str(-status)
    return f"{name}, out of memory?" if -status == system.KILLED else name
