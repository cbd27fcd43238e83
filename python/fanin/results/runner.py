"""Runs a scenario and hands its result over."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, cast

from fanin import _core
from fanin.files import temporary
from fanin.results import Result, folder
from fanin.results.progress import Bar, ProgressCallback, last_arrival_ps
from fanin.scenario import Scenario

MOST_THREADS: Final = 64
"""Threads that a run can have at most."""


def as_scenario(scenario: Scenario | Mapping[str, Any] | str | os.PathLike[str]) -> Scenario:
    """Return a scenario from what stands for one: itself, a mapping, or the path of a file."""
    if isinstance(scenario, Scenario):
        return scenario
    if isinstance(scenario, Mapping):
        return Scenario(scenario)
    return Scenario.from_file(scenario)


def threads_setting(asked: int | str) -> int:
    """Return the value of ``engine.threads`` for a number of threads, or for "auto"."""
    if asked == "auto":
        return 0
    with contextlib.suppress(ValueError):
        threads = int(str(asked))
        if 1 <= threads <= MOST_THREADS:
            return threads
    raise ValueError(f"threads: {asked} is not accepted; accepted: 1 to {MOST_THREADS}, or auto, which takes as many as pay")


def run(
    scenario: Scenario | Mapping[str, Any] | str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    threads: int | Literal["auto"] | None = None,
    progress: bool | ProgressCallback = True,
    overwrite: bool = False,
) -> Result:
    """Simulate a scenario.

    Other Python threads go on meanwhile. Ctrl-C ends the run within a second; what it has written until then stays in the
    folder, whose manifest says that it is partial.

    Parameters
    ----------
    scenario : Scenario, mapping or path-like
        What to simulate.
    out : path-like, optional
        The result folder. If not given, a temporary one that is removed when Python ends.
    threads : int or "auto", optional
        Threads among which the network is divided, "auto" for as many as pay; if not given, those of the scenario
        (``engine.threads``). They change no result. See docs/parallel.md.
    progress : bool or callable
        A bar, nothing, or a function that receives a `fanin.ProgressState` about ten times a second.
    overwrite : bool
        Whether an earlier result in `out` may be replaced.

    Returns
    -------
    Result
        The result, complete.

    Raises
    ------
    ScenarioError
        The scenario has errors; all of them are in its ``problems``.
    OutputError
        The folder cannot be used; found before the run starts.
    OSError
        The disk became full, or failed, during the run.
    RuntimeError
        The run came to no end by itself: nothing moves any more and flows are still waiting.
    KeyboardInterrupt
        Ctrl-C.
    """
    chosen = as_scenario(scenario)
    if threads is not None:
        chosen = chosen.replace({"engine.threads": threads_setting(threads)})
    text, kind = chosen.source()
    resolved = chosen.resolved  # raises: a wrong scenario must not cost an earlier result
    with contextlib.ExitStack() as stack:
        if out is None:
            target = temporary.folder()
        else:
            target = Path(out)
            stack.enter_context(folder.taken(target, overwrite=overwrite))
        callback = stack.enter_context(Bar(arrivals_end_ps=last_arrival_ps(resolved))) if progress is True else progress or None
        _core.run(text, kind, str(chosen.base_dir), str(target), cast(Any, callback))
    return Result(target)
