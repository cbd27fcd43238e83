"""Progress of a run: a bar in a terminal, a line now and then in a log."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypedDict

from rich.console import Console

from fanin.text import show

if TYPE_CHECKING:
    from rich.progress import Progress

LOG_EVERY_S: Final = 10.0
_UNITS: Final = {name: scale for unit, scale in show.TIME_UNITS for name in (unit, unit.replace("µ", "u"))}
_DURATION: Final = re.compile(r"([0-9.]+) ?(" + "|".join(_UNITS) + ")")


class ProgressState(TypedDict):
    """What a progress function receives about ten times a second.

    Attributes
    ----------
    sim_ps : int
        Simulated time reached [ps].
    end_ps : int or None
        Where the run ends at the latest [ps]; None if it ends with its flows.
    events, packet_hops : int
        Events handled, packets that crossed a link.
    flows_done, flows_total : int
        Flows that have ended, and all; the total is None while it is not known.
    wall_s : float
        Time since the start [s].
    """

    sim_ps: int
    end_ps: int | None
    events: int
    packet_hops: int
    flows_done: int
    flows_total: int | None
    wall_s: float


class ProgressCallback(Protocol):
    """A function that receives the progress of a run; what it raises ends the run."""

    def __call__(self, state: ProgressState, /) -> None:
        """Take note."""


def last_arrival_ps(resolved: Mapping[str, Any]) -> int | None:
    """Return when the traffic of a resolved scenario stops to begin new flows [ps]; None if an entry does not say.

    A run without a duration ends soon after.
    """
    stops = [entry.get("stop") for entry in resolved.get("traffic") or []]
    matches = [_DURATION.fullmatch(stop) if isinstance(stop, str) else None for stop in stops]
    if not matches or None in matches:
        return None
    return max(round(float(match[1]) * _UNITS[match[2]]) for match in matches if match is not None)


def fraction(state: Mapping[str, Any], arrivals_end_ps: int | None = None) -> float | None:
    """Return how much of a run is done, from 0 to 1; None if it is unknown.

    A run ends when its time is over or its flows are done, whichever comes first: the larger share counts.

    Parameters
    ----------
    state : ProgressState
        How far it is.
    arrivals_end_ps : int, optional
        When the last flow begins [ps]: given where neither the end nor the number of flows is known.
    """
    shares = []
    if state.get("end_ps"):
        shares.append(state["sim_ps"] / state["end_ps"])
    if state.get("flows_total"):
        shares.append(state["flows_done"] / state["flows_total"])
    if not shares and arrivals_end_ps:
        shares.append(min(0.99, state["sim_ps"] / arrivals_end_ps))
    return min(1.0, max(shares)) if shares else None


def remaining_s(state: Mapping[str, Any], done: float | None) -> float | None:
    """Return the time that the run will still take at its speed so far [s], `done` of it being done; None if it is unknown."""
    if not done or state["wall_s"] < 0.5:
        return None
    return float(state["wall_s"]) * (1 - done) / done


def describe(state: Mapping[str, Any], done: float | None) -> str:
    """Return a line about a run: simulated time, flows, speed, time left."""
    end = f" / {show.duration(state['end_ps'])}" if state.get("end_ps") else ""
    total = f"/{state['flows_total']:,}" if state.get("flows_total") is not None else ""
    parts = [f"{show.duration(state['sim_ps'])}{end}", f"{state['flows_done']:,}{total} flows"]
    if state["wall_s"] > 0:
        parts.append(f"{state['packet_hops'] / state['wall_s'] / 1e6:.1f} M hops/s")
    left = remaining_s(state, done)
    if left is not None:
        minutes, seconds = divmod(round(left), 60)
        parts.append(f"ETA {minutes // 60}:{minutes % 60:02}:{seconds:02}" if minutes >= 60 else f"ETA {minutes}:{seconds:02}")
    return " · ".join(parts)


class Bar:
    """A progress function that draws a bar; used as a context manager.

    Parameters
    ----------
    console : rich.console.Console, optional
        Where to; standard error if not given. Where that is no terminal a line is written every ten seconds.
    arrivals_end_ps : int, optional
        When the last flow begins [ps]; see `fraction`.
    """

    def __init__(self, console: Console | None = None, *, arrivals_end_ps: int | None = None) -> None:
        self._arrivals_end_ps = arrivals_end_ps
        self._console = console or Console(stderr=True)
        self._progress: Progress | None = None
        if self._console.is_terminal or self._console.is_jupyter:
            from rich.progress import BarColumn, Progress, TextColumn

            columns = (BarColumn(bar_width=14), TextColumn("{task.percentage:>3.0f} %"), TextColumn("{task.description}"))
            self._progress = Progress(*columns, console=self._console)
            self._task = self._progress.add_task("starting", total=1.0)
        self._logged_s = 0.0

    def __enter__(self) -> Self:
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._progress is None:
            return
        if error is None:
            self._progress.update(self._task, completed=1.0, total=1.0)
        with suppress(OSError):  # the terminal is gone
            self._progress.stop()

    def __call__(self, state: ProgressState, /) -> None:
        """Draw the state of the run."""
        done = fraction(state, self._arrivals_end_ps)
        if self._progress is not None:
            self._progress.update(
                self._task, completed=done or 0.0, total=None if done is None else 1.0, description=describe(state, done)
            )
        elif state["wall_s"] - self._logged_s >= LOG_EVERY_S:
            self._logged_s = state["wall_s"]
            with suppress(OSError):  # whoever read it is gone: no reason to end the run
                self._console.print(describe(state, done), markup=False, highlight=False)
