"""Figures of papers, made anew: ``fanin reproduce`` and `fanin.reproduce.run`.

A module of this package whose name does not begin with an underscore belongs to a paper. It registers figures:

>>> @figure("s-ecn/fig0", title="Largest queue", seeds=100, short=3, seconds=10)  # doctest: +SKIP
... def fig0(context: Context) -> Findings:
...     jobs = context.each_seed(context.scenario("fig0").replace({"switch.buffer.per_port": "128KB"}))
...     peaks = context.runs(jobs, peak)  # peak(result, job) -> float, a function of the module
...     return Findings(rows=[Row(name="largest queue", paper=104, fanin=mean(peaks), low=100, high=108, unit="KB")])
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from fanin.reproduce._context import SCENARIOS, Context, RunsBar
from fanin.reproduce._jobs import Job, Pool, RunError
from fanin.reproduce._registry import PAPERS, Figure, choose, figure, figures
from fanin.reproduce._reproduction import HEAD, Reproduction, cells, inspect, manifest
from fanin.reproduce._rows import Findings, Row

__all__ = [
    "HEAD",
    "PAPERS",
    "SCENARIOS",
    "Context",
    "Figure",
    "Findings",
    "Job",
    "Reproduction",
    "Row",
    "RunError",
    "cells",
    "choose",
    "figure",
    "figures",
    "run",
    "run_all",
]


def run(  # noqa: PLR0913 (one parameter per option)
    id: str,
    *,
    out: str | os.PathLike[str] | None = None,
    short: bool = False,
    seeds: int | None = None,
    jobs: int | None = None,
    progress: bool = True,
) -> Reproduction:
    """Reproduce a figure of a paper.

    Parameters
    ----------
    id : str
        Such as ``s-ecn/fig4a``; `figures` returns all.
    out : path-like, optional
        A folder for plots (PDF, SVG, PNG), data (CSV, Parquet), ``rows.json`` and ``manifest.json``; nothing is written if not
        given.
    short : bool
        Fewer seeds; rows and bounds stay the same.
    seeds : int, optional
        How many seeds instead of the figure's own number.
    jobs : int, optional
        How many simulations at once; as many as there are cores if not given. They run in processes that import the main
        module: a script needs ``if __name__ == "__main__":``.
    progress : bool
        Whether to show a bar.

    Raises
    ------
    ValueError
        There is no such figure, or `id` stands for several.
    RunError
        A simulation failed.
    OutputError
        `out` holds something else.
    """
    chosen = choose([id])
    if len(chosen) != 1:
        raise ValueError(f"'{id}' stands for {len(chosen)} figures; run_all reproduces several")
    folder = None if out is None else Path(out)
    made, failed = run_all(chosen, out=lambda _: folder, short=short, seeds=seeds, jobs=jobs, progress=progress)
    if failed:
        raise failed[0]
    return made[0]


def run_all(  # noqa: PLR0913
    chosen: Iterable[Figure],
    *,
    out: Callable[[Figure], Path | None],
    short: bool = False,
    seeds: int | None = None,
    jobs: int | None = None,
    progress: bool = True,
) -> tuple[list[Reproduction], list[RunError]]:
    """Reproduce several figures with the same worker processes; one that fails does not stop the others.

    Parameters
    ----------
    chosen : iterable of Figure
        Which.
    out : callable
        Is given a figure, returns its folder, or None.
    short, seeds, jobs, progress
        As for `run`.

    Returns
    -------
    (list of Reproduction, list of RunError)
        What was made, in order, and why the rest was not.
    """
    todo = [(entry, out(entry)) for entry in chosen]
    for _, folder in todo:
        if folder is not None:
            inspect(folder)  # before hours of work, not after
    made: list[Reproduction] = []
    failed: list[RunError] = []
    with RunsBar(progress) as bar, Pool(jobs) as pool:
        for entry, folder in todo:
            context = Context(entry, pool, bar, short=short, seeds=seeds)
            try:
                found = entry.run(context)
            except RunError as error:
                failed.append(RunError(f"{entry.id}: {error}"))
                continue
            about = manifest(entry, seeds=context.seeds, short=short, runs=context.runs_done)
            result = Reproduction(about=entry, found=tuple(found.rows), plots=found.plots, data=found.data, manifest=about)
            if folder is not None:
                result.save(folder)
            made.append(result)
    return made, failed
