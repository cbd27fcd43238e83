"""Runs a sweep: plan, store, workers."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from fanin import _core
from fanin.files import system
from fanin.files.locks import LOCK, Lock, LockedError
from fanin.machine import cores
from fanin.results.folder import OutputError
from fanin.results.runner import MOST_THREADS
from fanin.scenario import Scenario
from fanin.sweep import plan as _plan
from fanin.sweep import store as _store
from fanin.sweep._worker import Keep, Outcome
from fanin.sweep.frames import Sweep
from fanin.sweep.plan import Plan, Planned, Run
from fanin.sweep.progress import Progress, SweepCallback
from fanin.sweep.store import LocalStore, Store, Writer
from fanin.sweep.todo import Seen, Todo, known_values
from fanin.sweep.workers import Item, OneByOne, Pool

Shard = tuple[int, int]
"""Part of a sweep, from 1, and number of parts."""


def sweep(  # noqa: PLR0913 (options of the command, one each)
    source: Scenario | Mapping[str, Any] | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    design: Mapping[str, Any] | None = None,
    jobs: int | None = None,
    threads_per_run: int | None = None,
    shard: str | None = None,
    dask: str | None = None,
    retry_failed: bool = False,
    keep: bool = False,
    progress: bool | SweepCallback = True,
) -> Sweep:
    """Run a scenario with many values and seeds; go on where an earlier call stopped.

    Parameters
    ----------
    source : Scenario, mapping or path-like
        What to sweep: a file or mapping with a ``[sweep]`` table, or with `design` a scenario.
    out : path-like
        The store: a folder, or ``s3://BUCKET/PREFIX``.
    design : mapping, optional
        The ``[sweep]`` table, or what replaces entries of it: ``{"grid": {"switch.marking.k": [...]}, "seeds": 5}``.
    jobs : int, optional
        Worker processes; as many as this process may use cores if not given, divided by `threads_per_run`.
    threads_per_run : int, optional
        Threads of each run (see docs/parallel.md): for few and large runs. No result depends on it.
    shard : str, optional
        ``"2/8"``: only the second eighth of the runs; several processes so share a sweep and a store.
    dask : str, optional
        Address of a Dask scheduler, whose cluster simulates instead of this machine.
    retry_failed : bool
        Whether runs that failed are tried again.
    keep : bool
        Whether each run leaves a result folder, too, in ``results/RUN``.
    progress : bool or callable
        A bar, nothing, or a function that receives a `fanin.sweep.SweepState` several times a second.

    Returns
    -------
    Sweep
        The results. Failed runs are no exception: see `Sweep.failed`.

    Raises
    ------
    ScenarioError
        The sweep's table or one of its points has errors; nothing was run. Each mistake is in ``problems`` once.
    OSError
        The store cannot be read or written.
    KeyboardInterrupt
        Ctrl-C; what had ended until then is in the store.
    """
    made = with_threads(_plan.plan(_plan.load(source, design)), threads_per_run)
    return execute(
        made, out, jobs=jobs, shard=parsed_shard(shard), dask=dask, retry_failed=retry_failed, keep=keep, progress=progress
    )


def with_threads(made: Plan, threads: int | None) -> Plan:
    """Return a plan whose runs are on so many threads each.

    Raises
    ------
    ValueError
        It is out of range.
    """
    if threads is not None and not 1 <= threads <= MOST_THREADS:
        raise ValueError(f"threads per run: {threads} is out of range; accepted: 1 to {MOST_THREADS}")
    return made if threads is None else replace(made, threads=threads)


def parsed_shard(text: str | None) -> Shard:
    """Return a shard from its text, such as ``2/8``."""
    if text is None:
        return 1, 1
    match = re.fullmatch(r"(\d{1,7})/(\d{1,7})", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise ValueError(f"shard {text}: is no part of a sweep; accepted: I/N with I from 1 to N, for example 2/8")
    return int(match[1]), int(match[2])


def execute(  # noqa: PLR0913 (as `sweep`)
    made: Plan,
    out: str | os.PathLike[str],
    *,
    jobs: int | None = None,
    shard: Shard = (1, 1),
    dask: str | None = None,
    retry_failed: bool = False,
    keep: bool = False,
    progress: bool | SweepCallback = True,
    ended: Callable[[Planned, Outcome], None] | None = None,
) -> Sweep:
    """Run what of a plan is not in the store yet; see `sweep`. `ended` is told of each run, and may end all by an exception."""
    at_once = workers(jobs, dask, made.threads or 1)
    store = _store.opened(out)
    refuse_keep(store, keep=keep)
    writer_name = f"{shard[0]}of{shard[1]}"
    with taken(store, writer_name):
        _describe(store, made)
        attempts, done = known(store, made, retry_failed=retry_failed, keep=keep)
        todo = Todo(made, mine(made, shard), done)
        if keep:
            (Path(store.path) / _store.RESULTS).mkdir(exist_ok=True)
        writer = Writer(store, writer_name, _plan.axis_columns(made))
        shown = Progress(len(done), shown=progress is True, callback=progress if callable(progress) else None)
        running = _Running(made, todo, writer, shown)
        running.attempts, running.told = attempts, ended
        running.results = (Path(store.path) / _store.RESULTS).absolute() if keep else None
        try:
            with shown:
                running.tick()
                if todo.total and dask is not None:
                    from fanin.sweep import dask as _dask

                    _dask.run(dask, made.base_dir, running.following, running.ended, running.tick)
                elif todo.total and not system.POSIX:
                    OneByOne(made.base_dir).run(running.following, running.ended, running.tick)
                elif todo.total:
                    with Pool(min(at_once, todo.total), made.base_dir) as pool:
                        pool.run(running.following, running.ended, running.tick)
        finally:
            writer.flush()
    return Sweep(out)


def workers(jobs: int | None, dask: str | None, threads: int = 1) -> int:
    """Return how many runs this machine makes at once, of so many threads each.

    Raises
    ------
    ValueError
        It is less than one, or a cluster does the work.
    OSError
        It is more than one, on Windows.
    """
    if jobs is not None and jobs < 1:
        raise ValueError(f"jobs: {jobs} is out of range; accepted: 1 or more")
    if dask is not None and jobs is not None:
        raise ValueError("jobs is for this machine, and with dask a cluster does the work; accepted: one of the two")
    if jobs is not None and jobs > 1:
        system.needs_posix(f"jobs = {jobs}, more than one run at once,")
    return jobs or (max(1, cores() // threads) if system.POSIX else 1)


def refuse_keep(store: Store, *, keep: bool) -> None:
    """Raise where result folders cannot be kept."""
    if keep and not isinstance(store, LocalStore):
        raise ValueError(f"{store.path}: result folders of runs can be kept in a folder alone; leave out keep")


class _Running:
    """What workers ask for and report to."""

    def __init__(self, made: Plan, todo: Todo, writer: Writer, shown: Progress) -> None:
        self._plan, self._todo, self._writer, self._shown = made, todo, writer, shown
        self.attempts: Mapping[str, int] = {}
        """Earlier attempts of each run."""
        self.results: Path | None = None
        """Folder of the result folders, if they are kept."""
        self.told: Callable[[Planned, Outcome], None] | None = None

    def following(self) -> Item | None:
        at = self._todo.next()
        if at is None:
            return None
        run = self._plan.runs[at]
        return at, self._plan.text(run), None if self.results is None else self._keep(run, self.results)

    def _keep(self, run: Run, results: Path) -> Keep:
        name = _store.result_name(run.key, self._plan.points[run.point].point.label, run.seed)
        return Keep(str(results / name), self._writer.part(run.key))

    def ended(self, at: int, outcome: Outcome) -> None:
        run = self._plan.runs[at]
        planned = self._plan.points[run.point]
        row = {
            "run": run.key,
            "point": planned.key,
            "label": planned.point.label,
            "seed": run.seed,
            "status": "ok" if outcome.error is None else "failed",
            "error": outcome.error,
            "attempt": self.attempts.get(run.key, 0) + 1,
            "version": _core.version(),
            "host": outcome.host,
            "at": run.point,
            **outcome.facts,
        }
        self._writer.add(row, outcome.metrics)
        self._shown.ended(outcome.facts.get("wall_s"), outcome.facts.get("packet_hops"), failed=outcome.error is not None)
        self._todo.ended(at, outcome.metrics)
        if self.told is not None:
            self.told(planned, outcome)

    def tick(self) -> None:
        self._shown.total = self._todo.total
        self._writer.flush_if_due()
        self._shown.show()


def mine(made: Plan, shard: Shard) -> Sequence[int]:
    """Return the numbers of a shard's runs; with a stop rule all runs of a point are one shard's.

    A shard then stops as soon as its own points have enough, by what it knows of the others; the same command again goes on.
    """
    first, of = shard
    if made.design.stop is None:
        return range(first - 1, len(made.runs), of)
    order = {run.point: at for at, run in enumerate(made.runs[: len(made.points)])}
    return [at for at, run in enumerate(made.runs) if order[run.point] % of == first - 1]


def known(store: Store, made: Plan, *, retry_failed: bool, keep: bool) -> tuple[dict[str, int], dict[str, Seen | None]]:
    """Return how often runs have been tried, and those that are done, with what the stop rule wants to know."""
    there = Sweep(store.path)
    runs = there.all_runs.select("run", "status", "attempt")
    attempts = dict(zip(runs["run"], runs["attempt"], strict=True))
    done: dict[str, Seen | None] = {
        run: None
        for run, status in zip(runs["run"], runs["status"], strict=True)
        if (status == "ok" and not (keep and run not in there.kept)) or (status != "ok" and not retry_failed)
    }
    planned = {run.key for run in made.runs}
    done = {run: value for run, value in done.items() if run in planned}
    if made.design.stop is not None:
        done |= {run: value for run, value in known_values(there, made.design.stop).items() if run in done}
    return attempts, done


def _describe(store: Store, made: Plan) -> None:
    """Write what is asked for; only where it is news, since others may read it."""
    import json

    plan = _store.as_parquet(made.frame())
    document = (json.dumps(made.document, ensure_ascii=False, indent=1) + "\n").encode()
    if store.get(_store.PLAN) != plan:
        store.put(_store.PLAN, plan)
    if store.get(_store.SWEEP) != document:
        store.put(_store.SWEEP, document)


_OURS: Final = (_store.SWEEP, _store.PLAN, _store.RUNS, _store.METRICS, _store.RESULTS)


@contextlib.contextmanager
def taken(store: Store, writer: str) -> Iterator[None]:
    """Keep other writers of the same shard out of a folder, and see that nothing else is there.

    Raises
    ------
    OutputError
        It is a file, holds something else, cannot be written, or another process is at the same shard.
    """
    if not isinstance(store, LocalStore):
        yield
        return
    folder = store.folder
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder}: is a file, not a folder")
    if folder.is_dir():
        other = sorted(entry.name for entry in folder.iterdir() if entry.name not in _OURS and not entry.name.startswith(".fanin-"))
        if other and not (folder / _store.SWEEP).is_file():
            raise OutputError(f"{folder}: is not empty and holds no sweep ({', '.join(other[:3])} …); choose another folder")
    with contextlib.ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(Lock(folder / f"{LOCK}-{writer}"))
        except LockedError as error:
            part = "" if writer == "1of1" else f" as shard {writer.replace('of', '/')}"
            said = f"{error} is running this sweep there{part}; wait until it has ended, or choose another folder"
            raise OutputError(f"{folder}: {said}") from None
        except OSError as error:
            raise OutputError(f"{folder}: cannot be written: {error.strerror}") from error
        _store.orphans(store, writer)
        yield
