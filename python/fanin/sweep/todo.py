"""Which run is next: the plan less what the store has, and no more seeds than the stop rule needs."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from fanin.statistics import FEW, Interval, interval
from fanin.statistics.intervals import TYPICAL
from fanin.statistics.metrics import follows_timeouts
from fanin.statistics.rows import MetricRow, value_of
from fanin.statistics.tried import UNKNOWN, Conditions
from fanin.sweep.axes import Stop, read
from fanin.sweep.plan import Plan, Run

if TYPE_CHECKING:
    from fanin.sweep.frames import Sweep


class Seen(NamedTuple):
    """What the stop rule wants to know of a run.

    Attributes
    ----------
    value : float or None
        Its metric; None where it has no value.
    timed_out : bool
        Whether it had a timeout.
    flows, queries : float or None
        How many it completed; None where it had none.
    """

    value: float | None
    timed_out: bool = False
    flows: float | None = None
    queries: float | None = None


def summary(values: Sequence[float], stop: Stop, flows: float = 1) -> Interval:
    """Return mean and median of a metric at a point, with their intervals; runs completed so many flows at the fewest."""
    under, metric = stop.conditions, stop.metric
    return interval(
        values,
        confidence=stop.confidence,
        seeds_needed=under.seeds(metric),
        full=under.full(metric),
        unseen_cost=under.unseen_cost(metric, flows),
    )


def narrow(found: Interval, stop: Stop) -> bool:
    """Whether an interval is as narrow as a stop rule asks for, and one to rely on."""
    if stop.statistic == "median":
        low, high, middle = found.median_low, found.median_high, found.median
    else:
        low, high, middle = found.low, found.high, found.mean
    if low is None or high is None or found.seeds < FEW or (stop.statistic == "mean" and found.flag is not None):
        return False
    return (high - low) / 2 <= (stop.width * abs(middle) if stop.relative else stop.width)


def enough(points: Sequence[Sequence[Seen]], stop: Stop) -> list[bool]:
    """Say which points have enough seeds, by what the first ones of each gave; all have the same seeds.

    None has while it has fewer than its metric needs. And where one saw timeouts, and the metric is a mean that timeouts move, only
    those have that saw enough such runs themselves: with the same seeds, what one point sees the others may only have missed.
    """
    rare = stop.statistic == "mean" and follows_timeouts(stop.metric)
    seen = rare and any(run.timed_out for runs in points for run in runs)
    made = [_with_counts(stop, runs) for runs in points]
    return [
        bool(_known(runs))
        and narrow(summary(_known(runs), own, _fewest(runs, own)), own)
        and not (seen and sum(run.timed_out for run in runs) < TYPICAL)
        for runs, own in zip(points, made, strict=True)
    ]


def _with_counts(stop: Stop, runs: Sequence[Seen]) -> Stop:
    """Return the rule under the conditions of runs, which say how many flows they completed."""
    flows = (run.flows for run in runs if run.flows is not None)
    queries = (run.queries for run in runs if run.queries is not None)
    return replace(stop, conditions=stop.conditions.with_counts(flows, queries))


def _fewest(runs: Sequence[Seen], stop: Stop) -> float:
    """Return of how many flows, or queries, a metric is a mean in a run, at the fewest; 1 where that is not known."""
    if stop.metric.startswith("queries."):
        return min((run.queries for run in runs if run.queries is not None), default=1)
    if stop.metric.startswith("fct/all."):
        return min((run.flows for run in runs if run.flows is not None), default=1)
    return 1


def _known(runs: Sequence[Seen]) -> list[float]:
    return [run.value for run in runs if run.value is not None]


def rounds(stop: Stop, seeds: int) -> list[int]:
    """Return after how many seeds the points are looked at: not before as many as the metric needs, then after a quarter more.

    They are the same whoever runs them in whatever order, so that a sweep that was interrupted ends with the same runs.
    """
    counts = [min(seeds, max(stop.at_least, stop.needs or seeds))]
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
    done : mapping of str to Seen or None
        Runs that are in the store, by key, with what the stop rule wants to know of them.
    """

    def __init__(self, plan: Plan, mine: Sequence[int], done: Mapping[str, Seen | None]) -> None:
        self._plan: Final = plan
        self._stop: Final = plan.design.stop
        self._ready: deque[int] = deque()
        self._seen: dict[int, dict[int, Seen]] = {}
        self._of: dict[int, list[int]] = {}
        self._asked = 0
        self._stopped = False
        self._ran_well = False
        self.total = 0
        """Runs that this process makes, at most."""
        if self._stop is None:
            self._ready.extend(at for at in mine if plan.runs[at].key not in done)
            self.total = len(self._ready)
            return
        for run in plan.runs:
            if run.key in done:
                self._seen.setdefault(run.point, {})[run.replicate] = done[run.key] or Seen(None)
        for at in mine:
            self._of.setdefault(plan.runs[at].replicate, []).append(at)
        self._mine: Final = {plan.runs[at].point for at in mine}
        self._go_on()
        self.total = len(self._ready)

    def at_most(self) -> list[int]:
        """Return the numbers of all runs that may still be made, whatever those before them give, in order."""
        if self._stop is None:
            return list(self._ready)
        if self._stopped:
            return []
        return sorted(at for numbers in self._of.values() for at in numbers if not self._has(at))

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
            The stop rule's metric is none of the runs', or no run has a value of it when points are first looked at.
        """
        if self._stop is None:
            return
        run: Run = self._plan.runs[at]
        try:
            value = value_of(metrics, self._stop.metric) if metrics else None
        except ValueError as error:
            raise ValueError(f"sweep.stop.metric: {error}") from None
        self._ran_well |= bool(metrics)
        total = next((row[2] for row in metrics if row[0] == "total"), {})
        queries = next((row[2].get("complete") for row in metrics if row[0] == "queries"), None)
        seen = Seen(value, bool(total.get("timeouts")), total.get("flows_complete"), queries)
        self._seen.setdefault(run.point, {})[run.replicate] = seen
        before = len(self._ready)
        self._go_on()
        self.total += len(self._ready) - before

    def _has(self, at: int) -> bool:
        run = self._plan.runs[at]
        return run.replicate in self._seen.get(run.point, {})

    def _go_on(self) -> None:
        """Ask for the next seeds of all points, if all that were asked for are there and some point has not enough.

        Points of other shards count as soon as the store has them: this shard never makes more than all points together need.
        """
        assert self._stop is not None  # noqa: S101 (both callers look)
        if self._stopped:
            return
        for count in rounds(self._stop, self._plan.design.seed_count):
            if count > self._asked:
                self._ready.extend(at for n in range(self._asked, count) for at in self._of.get(n, ()) if not self._has(at))
                self._asked = count
            if any(n not in self._seen.get(point, {}) for point in self._mine for n in range(count)):
                return
            points = [seen for seen in self._seen.values() if all(n in seen for n in range(count))]
            if self._ran_well and all(run.value is None for seen in points for run in seen.values()):
                raise ValueError(f"sweep.stop.metric: '{self._stop.metric}': no run has it, of {count:,} seeds at each point")
            if all(enough([[seen[n] for n in range(count)] for seen in points], self._stop)):
                self._stopped = True
                return


def known_values(sweep: Sweep, stop: Stop) -> dict[str, Seen]:
    """Return what the stop rule wants to know of the runs that a store has, by key; nothing if no run has it yet."""
    try:
        values = sweep.values(stop.metric)
    except ValueError:
        return {}
    had, flows, queries = (_by_run(sweep, key) for key in ("total.timeouts", "total.flows_complete", "queries.complete"))
    return {
        run: Seen(value, bool(had.get(run)), flows.get(run), queries.get(run))
        for run, value in zip(values["run"], values["value"], strict=True)
    }


def _by_run(sweep: Sweep, metric: str) -> dict[str, float]:
    """Return a metric of the runs that have it, by key."""
    try:
        values = sweep.values(metric).drop_nulls("value")
    except ValueError:
        return {}
    return dict(zip(values["run"], values["value"], strict=True))


def conditions_of(sweep: Sweep) -> Conditions:
    """Return under which conditions the points of a store are simulated, as its plan says."""
    told = sweep.document.get("conditions")
    if not isinstance(told, Mapping):  # written by an earlier version
        return UNKNOWN
    timeout, most = (math.inf if told.get(key) is None else float(told[key]) for key in ("timeout_ps", "port_bytes"))
    return Conditions(tuple(told.get("outside") or ()), timeout, port_bytes=most)


def pending(sweep: Sweep) -> list[str]:
    """Return the keys of runs that a sweep still needs, as its store says."""
    design = read(sweep.document.get("sweep"))
    if design.stop is None:
        return sweep.pending["run"].to_list()
    stop = replace(design.stop, conditions=conditions_of(sweep))
    have = set(sweep.runs["run"])
    known = known_values(sweep, stop)
    points = [runs["run"].to_list() for _, runs in sweep.plan.group_by("point", maintain_order=True)]
    for count in rounds(stop, max(map(len, points), default=0)):
        missing = [key for keys in points for key in keys[:count] if key not in have]
        if missing:
            return missing
        if all(enough([[known.get(key) or Seen(None) for key in keys[:count]] for keys in points], stop)):
            break
    return []
