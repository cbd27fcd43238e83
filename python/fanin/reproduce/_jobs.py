"""Many simulations on all cores: what each leaves behind is reduced where it ran, so that only numbers travel."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import shutil
import signal
import tempfile
import threading
import traceback
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

import polars as pl

from fanin.machine import cores
from fanin.results import Result, runner
from fanin.scenario import Scenario

T = TypeVar("T")
_REPORTED: Final = 2000


@dataclass(frozen=True)
class Job:
    """A simulation.

    Parameters
    ----------
    scenario : Scenario
        What to simulate; `fanin.Scenario.replace` makes variants.
    seed : int
        Takes the place of the scenario's.
    key : mapping
        What distinguishes it within its batch, for the reduction: strings and numbers.
    """

    scenario: Scenario
    seed: int
    key: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        facts = "".join(f", {name} {value}" for name, value in self.key.items())
        name = self.scenario.to_dict().get("name", "scenario")
        return f"{name}{facts}, seed {self.seed}"


def frame(jobs: Sequence[Job], found: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Return what was found, a row for each job with its key and seed."""
    rows = [{**job.key, "seed": job.seed, **values} for job, values in zip(jobs, found, strict=True)]
    return pl.DataFrame(rows, infer_schema_length=None)


class RunError(RuntimeError):
    """A simulation, or the reduction of its result, failed; the message names scenario and seed."""


class _Stopped(Exception):  # noqa: N818 (nothing is wrong: it was asked to)
    """The others are being stopped."""


@dataclass(frozen=True)
class Outcome(Generic[T]):
    """What became of a job: its value and the scenario's hash, or why there is none."""

    value: T | None = None
    hash: str = ""
    failure: str = ""


def _identity(job: Job, reduce: Callable[[Result, Job], Any]) -> Hashable:
    """Return what two jobs have in common whose values are the same."""
    return job.scenario, job.seed, tuple(sorted(job.key.items())), pickle.dumps(reduce)


_stop: Any = None
"""In a worker: the event that says that the result is no longer wanted."""


def _begin(stop: Any) -> None:
    global _stop  # noqa: PLW0603 (the only way to pass something to a worker of a pool)
    _stop = stop
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A parent that is killed cannot notify its workers; without this they would wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _watch(_state: Any) -> None:
    if _stop is not None and _stop.is_set():
        raise _Stopped


def _work(job: Job, reduce: Callable[[Result, Job], T], folder: str) -> Outcome[T]:
    """Run a job in a folder of its own, which does not outlive it. Failures are values: not all of them can be pickled."""
    out = Path(tempfile.mkdtemp(dir=folder))
    try:
        result = runner.run(job.scenario.replace(seed=job.seed), out / "result", progress=_watch)
        return Outcome(reduce(result, job), str(result.manifest.get("scenario_hash", "")))
    except _Stopped:
        return Outcome(failure="stopped")
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a panic of the core is no Exception
        message = str(error) or "no message"
        where = traceback.extract_tb(error.__traceback__)[-1]
        return Outcome(failure=f"{type(error).__name__}: {message[:_REPORTED]} ({Path(where.filename).name}:{where.lineno})")
    finally:
        shutil.rmtree(out, ignore_errors=True)


@contextlib.contextmanager
def _one_thread_each() -> Iterator[None]:
    """While workers start: each gets one thread for its tables, since there is a worker for every core.

    The last digit of a standard deviation behind a sort depends on the number of threads, so no run is reduced in this
    process, which has as many as the machine has cores.
    """
    name = "POLARS_MAX_THREADS"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        del os.environ[name]
        if before is not None:
            os.environ[name] = before


class Pool:
    """Worker processes, kept from one batch to the next; used as a context manager.

    A job that it has done before, with the same reduction, is not done again: figures that show the same runs share them.

    Parameters
    ----------
    jobs : int, optional
        How many at once; as many as this process may use cores if not given.
    """

    def __init__(self, jobs: int | None = None) -> None:
        if jobs is not None and jobs < 1:
            raise ValueError(f"jobs: {jobs} is out of range; accepted: 1 or more")
        self.jobs: Final = jobs or cores()
        self._folder = ""
        self._executor: ProcessPoolExecutor | None = None
        self._stop: Any = None
        self._known: dict[Hashable, bytes] = {}
        """Outcomes by identity of job and reduction; pickled, so that nobody changes another's."""

    def __enter__(self) -> Self:
        self._folder = tempfile.mkdtemp(prefix="fanin-reproduce-")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._executor is not None:
            self._executor.shutdown()
            self._executor = None
        shutil.rmtree(self._folder, ignore_errors=True)

    def map(self, jobs: Sequence[Job], reduce: Callable[[Result, Job], T], done: Callable[[], None]) -> tuple[list[T], list[str]]:
        """Run `jobs`; return the reduced values and the hashes of their scenarios, both in the order of `jobs`.

        Parameters
        ----------
        jobs : sequence of Job
            What to run.
        reduce : callable
            Makes numbers of a result; a function of a module, or a `functools.partial` of one.
        done : callable
            Called after each run, and for each that was done before.

        Raises
        ------
        RunError
            A run failed. The others are stopped.
        """
        names = [_identity(job, reduce) for job in jobs]
        new = {name: job for name, job in zip(names, jobs, strict=True) if name not in self._known}
        for _ in range(len(jobs) - len(new)):
            done()
        todo = list(new.values())
        made = self._spread(todo, reduce, done)
        self._known |= {name: pickle.dumps(outcome) for name, outcome in zip(new, made, strict=True)}
        outcomes: list[Outcome[T]] = [pickle.loads(self._known[name]) for name in names]  # noqa: S301 (our own, from above)
        return [outcome.value for outcome in outcomes], [outcome.hash for outcome in outcomes]  # type: ignore[misc]

    def _spread(self, jobs: Sequence[Job], reduce: Callable[[Result, Job], T], done: Callable[[], None]) -> list[Outcome[T]]:
        if self._executor is None:
            # Not fork: Polars has threads, and locks that they hold would stay locked in the child.
            context = multiprocessing.get_context("spawn")
            with _interrupts_wait():  # the first event starts a process of its own
                self._stop = context.Event()
            self._executor = ProcessPoolExecutor(self.jobs, mp_context=context, initializer=_begin, initargs=(self._stop,))
        futures: dict[Future[Outcome[T]], int] = {}
        try:
            with _one_thread_each(), _interrupts_wait():
                for index, job in enumerate(jobs):
                    futures[self._executor.submit(_work, job, reduce, self._folder)] = index
            outcomes: dict[int, Outcome[T]] = {}
            pending = set(futures)
            while pending:
                # With a timeout: a signal that the system hands to another thread does not wake this one.
                finished, pending = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
                for future in finished:
                    index = futures[future]
                    outcomes[index] = _judged(jobs[index], future.result())
                    done()
        except BrokenProcessPool:
            self._executor = None
            raise RunError(
                "a worker process ended from outside (out of memory?); --jobs 1 needs the least memory, and a script needs"
                ' if __name__ == "__main__":'
            ) from None
        except BaseException:
            self._stop.set()
            for future in futures:
                future.cancel()
            wait(futures)
            self._stop.clear()
            raise
        return [outcomes[index] for index in range(len(jobs))]


def _judged(job: Job, outcome: Outcome[T]) -> Outcome[T]:
    if outcome.failure:
        raise RunError(f"{job}: {outcome.failure}")
    return outcome


@contextlib.contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Hold back what a terminal sends to all while workers start. They inherit that it is blocked: the parent decides for them."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows: a terminal's Ctrl-C reaches the workers, too
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
