"""Which run is next: the plan less what the store has, and no more seeds of a point than its stop rule needs."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from fanin.statistics.rows import MetricRow, value_of
from fanin.statistics.stats import quantile
from fanin.sweep.axes import Stop, read
from fanin.sweep.plan import Plan, Run

if TYPE_CHECKING:
    from fanin.sweep.frames import Sweep

__all__ = ["Todo", "enough", "half_width", "known_values", "narrow", "pending", "rounds"]


def half_width(values: Sequence[float], confidence: float) -> tuple[float, float]:
    """Return the mean of some values, and half the width of its confidence interval by Student's t."""
    mean = math.fsum(values) / len(values)
    if len(values) < 2:
        return mean, math.inf
    variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return mean, quantile(round(1 - confidence, 12), len(values) - 1) * math.sqrt(variance / len(values))


def enough(values: Sequence[float | None], stop: Stop) -> bool:
    """Whether a point has enough seeds, by the values of its first ones; a run without a value counts as none."""
    known = [value for value in values if value is not None]
    return bool(known) and narrow(*half_width(known, stop.confidence), stop)


def narrow(mean: float, half: float, stop: Stop) -> bool:
    """Whether an interval is as narrow as a stop rule asks for, by its mean and half its width; of one value it never is."""
    return half <= (stop.width * abs(mean) if stop.relative else stop.width)


def rounds(stop: Stop, seeds: int) -> list[int]:
    """Return after how many seeds a point is looked at: each round has a quarter more.

    They are the same whoever runs them in whatever order, so that a sweep that was interrupted ends with the same runs.
    """
    counts = [stop.at_least]
    while counts[-1] < seeds:
        counts.append(min(seeds, counts[-1] + max(1, counts[-1] // 4)))
    return counts


class Todo:
    """The runs that are still to be made.

    Parameters
    ----------
    plan : Plan
        All runs.
    mine : sequence of int
        Those of them, by number, that are this process's.
    done : mapping of str to float or None
        Runs that are in the store, by key, with the stop rule's metric.
    """

    def __init__(self, plan: Plan, mine: Sequence[int], done: Mapping[str, float | None]) -> None:
        self._plan: Final = plan
        self._stop: Final = plan.design.stop
        self._ready: deque[int] = deque()
        self._values: dict[int, dict[int, float | None]] = {}
        self._of: dict[int, dict[int, int]] = {}
        self._asked: dict[int, int] = {}
        self._enough: set[int] = set()
        self.total = 0
        """Runs that this process makes, at most."""
        if self._stop is None:
            self._ready.extend(at for at in mine if plan.runs[at].key not in done)
            self.total = len(self._ready)
            return
        for at in mine:
            run = plan.runs[at]
            self._of.setdefault(run.point, {})[run.replicate] = at
            if run.key in done:
                self._values.setdefault(run.point, {})[run.replicate] = done[run.key]
        for point in self._of:
            self._go_on(point)
        self.total = len(self._ready)

    def at_most(self) -> list[int]:
        """Return the numbers of all runs that may still be made, whatever those before them give, in order."""
        if self._stop is None:
            return list(self._ready)
        open_points = (point for point in self._of if point not in self._enough)
        return sorted(at for point in open_points for n, at in self._of[point].items() if n not in self._values[point])

    def next(self) -> int | None:
        """Return the number of a run; None if none can be begun now."""
        return self._ready.popleft() if self._ready else None

    def back(self, at: int) -> None:
        """Put a run back that was not made."""
        self._ready.appendleft(at)

    def ended(self, at: int, metrics: Sequence[MetricRow]) -> None:
        """Take note of a run that has ended; a failed one has no metrics.

        Raises
        ------
        ValueError
            The stop rule's metric is none of the runs'.
        """
        if self._stop is None:
            return
        run: Run = self._plan.runs[at]
        try:
            value = value_of(metrics, self._stop.metric) if metrics else None
        except ValueError as error:
            raise ValueError(f"sweep.stop.metric: {error}") from None
        self._values.setdefault(run.point, {})[run.replicate] = value
        before = len(self._ready)
        self._go_on(run.point)
        self.total += len(self._ready) - before

    def _go_on(self, point: int) -> None:
        """Ask for the next seeds of a point, if all that were asked for are there and do not suffice."""
        assert self._stop is not None  # noqa: S101 (both callers look)
        values = self._values.setdefault(point, {})
        for count in rounds(self._stop, self._plan.design.seed_count):
            if count > self._asked.get(point, 0):
                self._ready.extend(self._of[point][n] for n in range(self._asked.get(point, 0), count) if n not in values)
                self._asked[point] = count
            if any(n not in values for n in range(count)):
                return
            if enough([values[n] for n in range(count)], self._stop):
                self._enough.add(point)
                return


def known_values(sweep: Sweep, stop: Stop) -> dict[str, float | None]:
    """Return the stop rule's metric of the runs that a store has, by key; nothing if no run has it yet."""
    try:
        values = sweep.values(stop.metric)
    except ValueError:
        return {}
    return dict(zip(values["run"], values["value"], strict=True))


def pending(sweep: Sweep) -> list[str]:
    """Return the keys of runs that a sweep still needs, as its store says."""
    design = read(sweep.document.get("sweep"))
    plan = sweep.plan
    if design.stop is None:
        return sweep.pending["run"].to_list()
    have = set(sweep.runs["run"])
    known = known_values(sweep, design.stop)
    needed = []
    for (_point,), runs in plan.group_by("point", maintain_order=True):
        keys = runs["run"].to_list()
        for count in rounds(design.stop, len(keys)):
            missing = [key for key in keys[:count] if key not in have]
            needed += missing
            if missing or enough([known.get(key) for key in keys[:count]], design.stop):
                break
    return needed
