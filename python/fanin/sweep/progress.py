"""Progress of a sweep, and the time that the rest takes, with bounds, by what the runs so far have cost."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TypedDict

from rich.console import Console

from fanin.statistics import predicted

if TYPE_CHECKING:
    from rich.progress import Progress as Progress_

LOG_EVERY_S: Final = 10.0
_LEAST: Final = 3
"""Runs that an estimate needs."""


class SweepState(TypedDict):
    """What a progress function receives several times a second.

    Attributes
    ----------
    done, failed, total : int
        Runs of this process that have ended, those of them that failed, and all.
    before : int
        Runs that the store had already.
    packet_hops : int
        Of the runs that have ended.
    wall_s : float
        Time since the first run began [s].
    left_s : tuple of float or None
        Between what the rest will take, with 95 % confidence [s]; None before a few runs have ended.
    """

    done: int
    failed: int
    total: int
    before: int
    packet_hops: int
    wall_s: float
    left_s: tuple[float, float] | None


SweepCallback = Callable[[SweepState], None]


def remaining(costs: tuple[int, float, float], left: int, speed: float) -> tuple[float, float] | None:
    """Return between what `left` runs will take [s], with 95 % confidence.

    The runs so far are a random sample of all: their order is that of their hashes. So the mean cost of the rest is
    predicted by Student's t, from that of the sample.

    Parameters
    ----------
    costs : tuple
        Number of runs, sum of their times [s], sum of the squares of these.
    left : int
        Runs that are left.
    speed : float
        Seconds of runs that one second does, which is about the number of workers.
    """
    count, total, squares = costs
    if left <= 0:
        return 0.0, 0.0
    if count < _LEAST or speed <= 0:
        return None
    mean = total / count
    deviation = math.sqrt(max(0.0, (squares - total * mean) / (count - 1)))
    low, high = predicted(mean, deviation, count, left)
    return low / speed, high / speed


def span(left: tuple[float, float] | None) -> str:
    """Return two durations as text, or one where they hardly differ."""
    if left is None:
        return "unknown time"
    low, high = left
    if _told(low) == _told(high) or high < 1.1 * low:
        return _told((low + high) / 2)
    return f"{_told(low)} to {_told(high)}"


def _told(seconds: float) -> str:
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    if seconds < 99.5 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 99.5 * 3600 else f"{seconds / 86400:.1f} days"


class Progress:
    """Counts runs, and shows or reports it; used as a context manager.

    Parameters
    ----------
    before : int
        Runs that the store has already.
    shown : bool
        Whether to draw a bar, or a line every ten seconds where standard error is no terminal.
    callback : callable, optional
        Receives a `SweepState`.
    """

    def __init__(self, before: int, *, shown: bool, callback: SweepCallback | None = None) -> None:
        self.done = self.failed = self.packet_hops = 0
        self.total = 0
        self._before: Final = before
        self._callback: Final = callback
        self._began = self._logged = time.monotonic()
        self._costs = (0, 0.0, 0.0)
        self._console: Final = Console(stderr=True) if shown else None
        self._bar: Progress_ | None = None

    def __enter__(self) -> Self:
        if self._console is not None and self._console.is_terminal:
            from rich.progress import BarColumn, TextColumn
            from rich.progress import Progress as Bar

            columns = (BarColumn(bar_width=24), TextColumn("{task.percentage:>3.0f} %"), TextColumn("{task.description}"))
            self._bar = Bar(*columns, console=self._console, transient=True)
            self._bar.start()
            self._bar.add_task("", total=1.0)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def ended(self, wall_s: float | None, packet_hops: int | None, *, failed: bool) -> None:
        """Count a run that has ended."""
        self.done += 1
        self.failed += failed
        self.packet_hops += packet_hops or 0
        if wall_s is not None:
            count, total, squares = self._costs
            self._costs = (count + 1, total + wall_s, squares + wall_s * wall_s)

    def state(self) -> SweepState:
        """Return how far it is."""
        wall = time.monotonic() - self._began
        speed = self._costs[1] / wall if wall > 0 else 0.0
        return {
            "done": self.done,
            "failed": self.failed,
            "total": self.total,
            "before": self._before,
            "packet_hops": self.packet_hops,
            "wall_s": wall,
            "left_s": remaining(self._costs, self.total - self.done, speed),
        }

    def show(self) -> None:
        """Draw or report how far it is; called several times a second."""
        if self._console is None and self._callback is None:
            return
        state = self.state()
        if self._callback is not None:
            self._callback(state)
        if self._console is None:
            return
        rate = state["done"] / max(state["wall_s"], 1e-9)
        parts = [f"{state['done']:,} of {state['total']:,} runs", f"{rate:.3g}/s", f"{span(state['left_s'])} left"]
        if state["failed"]:
            parts.append(f"{state['failed']:,} failed")
        if state["before"]:
            parts.append(f"{state['before']:,} done before")
        text = " · ".join(parts)
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=state["done"] / max(1, state["total"]), description=text)
        elif time.monotonic() - self._logged >= LOG_EVERY_S:
            self._logged = time.monotonic()
            with suppress(OSError):
                self._console.print(text, soft_wrap=True, highlight=False)
