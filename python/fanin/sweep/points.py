"""What a sweep has found: a row for each point, of the metric that its stop rule or its traffic is about."""

from __future__ import annotations

import fnmatch
import json
import math
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fanin import statistics
from fanin.statistics import CONFIDENCE, FEW, Interval, metrics
from fanin.statistics.tried import TRIED, Conditions
from fanin.sweep.todo import Seen, enough, known_values
from fanin.text import show

if TYPE_CHECKING:
    from fanin.sweep.axes import Stop
    from fanin.sweep.frames import Sweep
    from fanin.sweep.plan import Plan

MAIN: Final = ("queries.p99_ps", "collective/*.time_ps", "fct/all.p99_ps", "total.goodput_bps", "total.datagrams_received")
"""Where no stop rule names a metric: the first of these that the runs have."""


@dataclass(frozen=True)
class Found:
    """A metric at a point.

    Attributes
    ----------
    interval : Interval or None
        Mean and median over the good runs with a value; None where there is none.
    timed_out : Interval or None
        The share of the runs that had a timeout; None where runs count none.
    conditions : Conditions
        Under which the runs were made.
    """

    interval: Interval | None
    timed_out: Interval | None
    conditions: Conditions = TRIED


def main_metric(done: Sweep, made: Plan) -> str | None:
    """Return the metric that the results of a sweep are shown by; None while no run has one."""
    names = done.metric_names()
    asked = MAIN if made.design.stop is None else (made.design.stop.metric,)
    return next((name for pattern in asked for name in names if fnmatch.fnmatchcase(name, pattern) or name == pattern), None)


def found(done: Sweep, made: Plan, metric: str) -> list[Found]:
    """Return a metric at each point of a plan, in its order, over all good runs that the store has."""
    values, timeouts = _by_point(done, metric), _by_point(done, "total.timeouts")
    stop, known, told = made.design.stop, metrics.of(metric), []
    counts = [_by_point(done, key) for key in ("total.flows_complete", "queries.complete")]
    confidence = CONFIDENCE if stop is None else stop.confidence
    limit = math.inf if known is None else known.limit
    for planned in made.points:
        own, had = values.get(planned.key), timeouts.get(planned.key)
        under = made.conditions.with_counts(*(found.get(planned.key, []) for found in counts))
        counted = counts[known.counted == "queries.complete"].get(planned.key, []) if known and known.counted else []
        cost = under.unseen_cost(metric, min(counted, default=1))
        told.append(
            Found(
                statistics.interval(
                    own,
                    confidence=confidence,
                    seeds_needed=under.seeds(metric),
                    limit=limit,
                    full=under.full(metric),
                    unseen_cost=cost,
                )
                if own
                else None,
                statistics.share(had, confidence=confidence) if had else None,
                under,
            )
        )
    return told


def _by_point(done: Sweep, metric: str) -> dict[str, list[float]]:
    try:
        frame = done.values(metric).drop_nulls("value")
    except ValueError:
        return {}
    return {str(point): rows["value"].to_list() for (point,), rows in frame.group_by(["point"])}


def unreached(done: Sweep, made: Plan) -> list[int]:
    """Return the numbers of the points that have all their seeds, and not enough for the stop rule."""
    stop = made.design.stop
    if stop is None:
        return []
    ended = set(done.runs["run"])
    keys = _keys(made)
    last = _enough(done, made)
    return [point for point in sorted(keys) if ended.issuperset(keys[point]) and not last[point]]


def seeds_wanted(done: Sweep, made: Plan) -> int | None:
    """Return how many seeds the stop rule would take, by the widest interval that can be relied on: two digits, rounded up.

    Widths go with the root of the number of seeds. None where the statistic is the median, or no interval can be relied on.
    """
    stop = made.design.stop
    if stop is None or stop.statistic == "median":
        return None
    intervals = [one.interval for one in found(done, made, stop.metric) if one.interval is not None]
    wide = []
    for one in intervals:
        target = stop.width * abs(one.mean) if stop.relative else stop.width
        if one.half_width is not None and one.flag is None and target > 0:
            wide.append(one.seeds * (one.half_width / target) ** 2)
    most = math.ceil(max(wide, default=0.0))
    step = 10 ** max(0, len(str(most)) - 2)
    return math.ceil(most / step) * step or None


def _keys(made: Plan) -> dict[int, list[str]]:
    keys: dict[int, list[str]] = {}
    for run in made.runs:
        keys.setdefault(run.point, []).append(run.key)
    return keys


def _enough(done: Sweep, made: Plan) -> list[bool]:
    """Say for each point whether all seeds that it has are enough for the stop rule, beside those of the others."""
    stop = made.design.stop
    assert stop is not None  # noqa: S101 (callers look)
    known, keys = known_values(done, stop), _keys(made)
    have = set(done.runs["run"])
    return enough([[known.get(key) or Seen(None) for key in keys[point] if key in have] for point in range(len(made.points))], stop)


def width_text(stop: Stop) -> str:
    """Return the width that a stop rule asks for, as people read it."""
    if stop.relative:
        return f"±{100 * stop.width:.3g} %"
    known = metrics.of(stop.metric)
    return f"±{stop.width:.4g}" if known is None else f"±{known.text(stop.width)}"


def table(done: Sweep, made: Plan, metric: str, most: int) -> tuple[list[str], list[list[str]]]:
    """Return head and rows of the first points: their label or values, how many seeds, the mean with its interval, the median and the range, the share of seeds with timeouts."""  # noqa: E501
    stop, known = made.design.stop, metrics.of(metric)
    confidence = CONFIDENCE if stop is None else stop.confidence
    labelled = any(planned.point.label for planned in made.points)
    what = metric if known is None else f"{known.name} ({metric})"
    median = stop is not None and stop.statistic == "median"
    sure = f"{100 * confidence:.3g} %{' of the median' if median else ''}"
    head = [*(["Point"] if labelled else made.axes or ["Point"]), "Seeds", what, sure, "Median", "Range"]
    every = found(done, made, metric)
    timed = any(one.timed_out is not None for one in every)
    head += ["Timeouts"] if timed else []
    head += ["Narrow enough"] if stop is not None else []
    reached = [] if stop is None else _enough(done, made)
    rows = []
    for at, (planned, one) in enumerate(zip(made.points[:most], every, strict=False)):
        values = [_value(planned.point.values.get(axis)) for axis in made.axes] or ["all"]
        rows.append([planned.point.label or ", ".join(values)] if labelled else values)
        rows[-1] += _cells(known, one.interval, median=median)
        if timed:
            rows[-1].append(show.NOTHING if one.timed_out is None else f"{100 * one.timed_out.mean:.0f} %")
        if stop is not None:
            rows[-1].append("yes" if reached[at] else "no")
    return head, rows


def tilde_notes(metric: str, every: Iterable[Found]) -> list[str]:
    """Return why means of a metric have a tilde, a sentence for each reason that there is."""
    shown = [(one.interval, one.conditions) for one in every if one.interval is not None]
    flags = {found.flag for found, _ in shown}
    rare = [(found.seeds, found.least == found.most, under.seeds(metric)) for found, under in shown if found.flag == "rare"]
    told = []
    if any(equal for _, equal, _ in rare):
        told.append("~: all seeds have the same value, which says nothing of how far others may be from it")
    rare = [entry for entry in rare if not entry[1]]
    needs = [needed for seeds, _, needed in rare if needed is not None and seeds < needed]
    if any(needed is None for _, _, needed in rare):
        told.append("~: no number of seeds makes this mean sure, for rare runs decide it; median and range say what was seen")
    elif needs:
        told.append(
            f"~: fewer than {max(needs)} seeds, and such a mean is judged from {max(needs)} on, for a run that none of these "
            "showed may move it; median and range say what was seen"
        )
    elif rare:
        told.append("~: one timeout that no seed showed could move this mean by more than its interval is wide")
    told += dict.fromkeys(f"these are {under.note}" for _, under in shown if under.note)
    if "skewed" in flags:
        told.append("~: few of the seeds differ from the rest, and decide this mean; median and range say what was seen")
    if "limit" in flags:
        told.append("~: in nearly all seeds the buffer was full, so that the few others decide this mean")
    if "few" in flags:
        told.append(f"~: fewer than {FEW} seeds, whose intervals hold the true mean too seldom")
    return told


def _cells(known: metrics.Metric | None, one: Interval | None, *, median: bool) -> list[str]:
    """Return seeds, mean, its interval or that of the median, median and range.

    A mean that is not to be relied on has a tilde, and no interval.
    """
    if one is None:
        return ["0", *[show.NOTHING] * 4]
    doubtful = one.flag in ("rare", "skewed", "limit")  # with few seeds the interval is there, and says something, if too seldom
    low, high = (one.median_low, one.median_high) if median else (one.low, one.high)
    none = low is None or high is None or (doubtful and not median)
    ends = show.NOTHING if none else f"{_text(known, low)} to {_text(known, high)}"
    return [
        str(one.seeds),
        f"{'~' * (one.flag is not None)}{_text(known, one.mean)}",
        ends,
        _text(known, one.median),
        f"{_text(known, one.least)} to {_text(known, one.most)}",
    ]


def compare_command(done: Sweep, made: Plan) -> str | None:
    """Return the command that compares the points of a sweep, as a shell takes it; None where there is one point alone.

    Of a grid the first axis makes the variants, and the others stay as at the first point of which a run has ended well; else all
    that vary make them.
    """
    good = set(done.runs.filter(done.runs["status"] == "ok")["point"])
    first = next((planned.point.values for planned in made.points if planned.key in good), made.points[0].point.values)
    values = [planned.point.values for planned in made.points]
    vary = [axis for axis in made.axes if len({_value(of.get(axis)) for of in values}) > 1]
    if any(planned.point.label for planned in made.points):
        by, fixed = ["label"], []
    elif all(made.design.kinds[axis] == "grid" for axis in vary):
        by, fixed = vary[:1], vary[1:]
    else:
        by, fixed = vary, []
    if len(made.points) < 2 or not by:
        return None
    words = ["fanin", "compare", done.path, *(word for axis in by for word in ("--by", axis))]
    words += [word for axis in fixed for word in ("--where", f"{axis}={_value(first.get(axis))}")]
    return shlex.join(words)


def _text(known: metrics.Metric | None, value: float | None) -> str:
    if value is None:
        return show.NOTHING
    return f"{value:.4g}" if known is None else known.text(value)


def _value(value: object) -> str:
    return show.NOTHING if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
