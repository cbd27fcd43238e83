"""What a figure's function is given: scenarios, seeds, all cores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from fanin.reproduce._jobs import Job, Pool
from fanin.reproduce._registry import Figure
from fanin.results import Result
from fanin.scenario import Scenario

T = TypeVar("T")

SCENARIOS: Final = Path(__file__).parent / "scenarios"
"""The scenarios of the papers, a folder for each: part of the package, and ``scenarios/papers`` in a checkout."""


class RunsBar:
    """Progress over all runs: a bar in a terminal, a line for each figure and batch in a log.

    Parameters
    ----------
    shown : bool
        Whether to show anything, on standard error.
    """

    def __init__(self, shown: bool) -> None:
        self._console = Console(stderr=True)
        self._live = shown and (self._console.is_terminal or self._console.is_jupyter)
        self._logs = shown and not self._live
        columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn(), TextColumn("runs"))
        times = (TimeElapsedColumn(), TimeRemainingColumn())
        self._progress = Progress(*columns, *times, console=self._console, disable=not self._live)
        self._task: TaskID | None = None
        self._total = 0

    def __enter__(self) -> Self:
        self._progress.start()
        self._task = self._progress.add_task("", total=None)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with suppress(OSError):  # the terminal is gone
            self._progress.stop()

    def batch(self, id: str, runs: int) -> None:
        """Take note that a figure is going to do so many more runs."""
        self._total += runs
        if self._task is not None:
            self._progress.update(self._task, description=id, total=self._total)
        if self._logs:
            with suppress(OSError):  # whoever read it is gone: no reason to end the runs
                self._console.print(f"{id}: {runs} run{'s' if runs != 1 else ''}", markup=False, highlight=False)

    def done(self) -> None:
        """Take note that a run is done."""
        if self._task is not None:
            self._progress.advance(self._task)


class Context:
    """What a figure's function needs.

    Parameters
    ----------
    figure : Figure
        The figure that is being made.
    pool : Pool
        Where simulations run.
    bar : RunsBar
        Is updated by each.
    short : bool
        Fewer seeds, for continuous integration: the rows and their bounds stay the same.
    seeds : int, optional
        How many seeds instead of the figure's own number.

    Attributes
    ----------
    seeds : tuple of int
        Seeds 1, 2, … for repetitions.
    short : bool
        Whether it is the short form.
    runs_done : list of dict
        Name, seed and hash of each simulation so far, in the order in which they were asked for.
    """

    def __init__(self, figure: Figure, pool: Pool, bar: RunsBar, *, short: bool = False, seeds: int | None = None) -> None:
        if seeds is not None and seeds < 1:
            raise ValueError(f"seeds: {seeds} is out of range; accepted: 1 or more")
        self._figure = figure
        self._pool = pool
        self._bar = bar
        self.short = short
        self.seeds = tuple(range(1, (seeds or (figure.short if short else figure.seeds)) + 1))
        self.runs_done: list[dict[str, Any]] = []

    def scenario(self, name: str) -> Scenario:
        """Return ``scenarios/papers/PAPER/NAME.toml`` of the figure's paper; `Scenario.replace` makes variants."""
        return Scenario.from_file(SCENARIOS / self._figure.paper / f"{name}.toml")

    def each_seed(self, scenario: Scenario, **key: Any) -> list[Job]:
        """Return a job for each of `seeds`."""
        return [Job(scenario, seed, key) for seed in self.seeds]

    def runs(self, jobs: Iterable[Job], reduce: Callable[[Result, Job], T]) -> list[T]:
        """Run jobs on all cores; return what `reduce` makes of each result, in the order of the jobs.

        A result folder is removed as soon as it is reduced. More jobs at once do not change the values. What another figure has
        run and reduced in the same way before is not run again.

        Parameters
        ----------
        jobs : iterable of Job
            What to run.
        reduce : callable
            Is given the result and its job, in the process that ran it; a function of a module or a `functools.partial` of
            one. What it returns is pickled: numbers, not frames of every packet.

        Raises
        ------
        RunError
            A run or its reduction failed; the message names scenario, key and seed.
        """
        todo: Sequence[Job] = list(jobs)
        self._bar.batch(self._figure.id, len(todo))
        values, hashes = self._pool.map(todo, reduce, self._bar.done)
        self.runs_done += [{"run": str(job), "seed": job.seed, "hash": digest} for job, digest in zip(todo, hashes, strict=True)]
        return values
