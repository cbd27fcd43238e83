"""What a sweep has found: a row for each point, of the metric that its stop rule or its traffic is about."""

from __future__ import annotations

import fnmatch
import json
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fanin.statistics import metrics
from fanin.statistics.stats import CONFIDENCE
from fanin.sweep.todo import enough, half_width, known_values, narrow
from fanin.text import show

if TYPE_CHECKING:
    from fanin.sweep.axes import Stop
    from fanin.sweep.frames import Sweep
    from fanin.sweep.plan import Plan

__all__ = ["Found", "compare_command", "found", "main_metric", "table", "unreached", "width_text"]

MAIN: Final = ("queries.p99_ps", "collective/*.time_ps", "fct/all.p99_ps", "total.goodput_bps", "total.datagrams_received")
"""Where no stop rule names a metric: the first of these that the runs have."""


@dataclass(frozen=True)
class Found:
    """A metric at a point: how many runs have it, its mean, half the width of its interval.

    Attributes
    ----------
    seeds : int
        Good runs with a value.
    mean, half : float or None
        None without a value; of one seed there is no interval.
    """

    seeds: int
    mean: float | None
    half: float | None


def main_metric(done: Sweep, made: Plan) -> str | None:
    """Return the metric that the results of a sweep are shown by; None while no run has one."""
    names = done.metric_names()
    asked = MAIN if made.design.stop is None else (made.design.stop.metric,)
    return next((name for pattern in asked for name in names if fnmatch.fnmatchcase(name, pattern) or name == pattern), None)


def found(done: Sweep, made: Plan, metric: str) -> list[Found]:
    """Return a metric at each point of a plan, in its order, over all good runs that the store has."""
    frame = done.values(metric).drop_nulls("value")
    values = {point: rows["value"].to_list() for (point,), rows in frame.group_by(["point"])}
    confidence = CONFIDENCE if made.design.stop is None else made.design.stop.confidence
    return [_of(values.get(planned.key, []), confidence) for planned in made.points]


def _of(values: list[float], confidence: float) -> Found:
    if not values:
        return Found(0, None, None)
    mean, half = half_width(values, confidence)
    return Found(len(values), mean, half if len(values) > 1 else None)


def unreached(done: Sweep, made: Plan) -> list[int]:
    """Return the numbers of the points that have all their seeds, and intervals wider than the stop rule asks for."""
    stop = made.design.stop
    if stop is None:
        return []
    ended, known = set(done.runs["run"]), known_values(done, stop)
    keys: dict[int, list[str]] = {}
    for run in made.runs:
        keys.setdefault(run.point, []).append(run.key)
    return [
        point
        for point in sorted(keys)
        if ended.issuperset(keys[point]) and not enough([known.get(key) for key in keys[point]], stop)
    ]


def width_text(stop: Stop) -> str:
    """Return the width that a stop rule asks for, as people read it."""
    if stop.relative:
        return f"±{100 * stop.width:.3g} %"
    known = metrics.of(stop.metric)
    return f"±{stop.width:.4g}" if known is None else f"±{known.text(stop.width)}"


def table(done: Sweep, made: Plan, metric: str, most: int) -> tuple[list[str], list[list[str]]]:
    """Return head and rows of the first points: their label or values, how many seeds, the mean with its interval."""
    stop, known = made.design.stop, metrics.of(metric)
    confidence = CONFIDENCE if stop is None else stop.confidence
    labelled = any(planned.point.label for planned in made.points)
    what = metric if known is None else f"{known.name} ({metric})"
    head = [*(["Point"] if labelled else made.axes or ["Point"]), "Seeds", what, f"± ({100 * confidence:.3g} %)"]
    head += ["Narrow enough"] if stop is not None else []
    rows = []
    for planned, one in zip(made.points[:most], found(done, made, metric)[:most], strict=True):
        values = [_value(planned.point.values.get(axis)) for axis in made.axes] or ["all"]
        rows.append([planned.point.label or ", ".join(values)] if labelled else values)
        rows[-1] += [str(one.seeds), _text(known, one.mean), _text(known, one.half)]
        if stop is not None:
            rows[-1].append("yes" if one.mean is not None and one.half is not None and narrow(one.mean, one.half, stop) else "no")
    return head, rows


def compare_command(done: Sweep, made: Plan) -> str | None:
    """Return the command that compares the points of a sweep, as a shell takes it; None where there is one point alone.

    Of a grid the first axis makes the variants, and the others stay as at the first point; else all that vary make them.
    """
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
    words += [word for axis in fixed for word in ("--where", f"{axis}={_value(values[0].get(axis))}")]
    return shlex.join(words)


def _text(known: metrics.Metric | None, value: float | None) -> str:
    if value is None:
        return show.NOTHING
    return f"{value:.4g}" if known is None else known.text(value)


def _value(value: object) -> str:
    return show.NOTHING if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
