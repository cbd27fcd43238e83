"""What a sweep varies: combinations, lists, samples and seeds, from a file's ``[sweep]`` table."""

from __future__ import annotations

import difflib
import itertools
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from fanin.scenario import Problem
from fanin.statistics import CONFIDENCE, FEW, stop_metrics
from fanin.statistics.tried import TRIED, Conditions

MOST_RUNS: Final = 2_000_000
"""Runs of one sweep. A product of axes that is larger is a mistake."""

RESERVED: Final = (
    "run", "segment", "point", "label", "status", "error", "attempt", "version", "scenario_hash", "fingerprint", "sim_ps",
    "packet_hops", "events", "cpu_s", "wall_s", "host", "group", "name", "value",
)  # fmt: skip
"""Columns of the store, which no axis can have; a seed is not varied by an axis, but by ``seeds``."""

SAMPLED: Final = ("random", "latin_hypercube", "sobol")
"""Ways to vary axes by samples."""
KINDS: Final = ("grid", "zip", "list", *SAMPLED)
"""All ways to vary axes: keys of ``[sweep]``."""
_KEYS: Final = ("scenario", "name", "set", "seeds", "common_random_numbers", *KINDS, "stop")
_RANGE: Final = ("from", "to", "scale")
_STOP: Final = ("metric", "relative_width", "width", "confidence", "at_least", "statistic")
_QUANTITY: Final = re.compile(r"\s*([-+]?(?:\d[\d_]*)?\.?\d+(?:[eE][-+]?\d+)?|[-+]?\d[\d_]*\.?)\s*([^\d\s.][^\s]*)?\s*")
_LARGEST_SEED: Final = 2**63 - 1


@dataclass(frozen=True)
class Point:
    """Values of the axes, by path as written, and a label."""

    values: Mapping[str, Any]
    label: str | None = None

    def __str__(self) -> str:
        facts = ", ".join(f"{path} = {json.dumps(value, ensure_ascii=False)}" for path, value in self.values.items())
        return f"{self.label}: {facts}" if self.label and facts else self.label or facts or "the scenario as it is"


@dataclass(frozen=True)
class Stop:
    """When points have enough seeds: at each the confidence interval of a metric over seeds is narrow enough, and to be relied on.

    Attributes
    ----------
    metric : str
        Its address, such as ``fct/all.p99_ps``.
    width : float
        The largest half-width of the interval; of the mean, if `relative`.
    relative : bool
        Whether `width` is a share of the mean.
    confidence : float
        Of the interval.
    at_least : int
        Seeds that every point gets before it is looked at; more, where the metric needs more.
    statistic : {"mean", "median"}
        Whose interval it is.
    conditions : Conditions
        Under which the points are simulated; a plan knows them.
    """

    metric: str
    width: float
    relative: bool = True
    confidence: float = CONFIDENCE
    at_least: int = FEW
    statistic: str = "mean"
    conditions: Conditions = TRIED

    @property
    def needs(self) -> int | None:
        """With how many seeds the interval of the statistic can be relied on at the earliest; None: of such a mean never."""
        return FEW if self.statistic == "median" else self.conditions.seeds(self.metric)


@dataclass
class Design:
    """What a ``[sweep]`` table asks for; `problems` says what is wrong with it."""

    points: list[Point] = field(default_factory=list)
    seeds: list[int] | None = None
    """None: the scenario's."""
    seed_count: int = 1
    common: bool = True
    stop: Stop | None = None
    name: str | None = None
    changes: dict[str, Any] = field(default_factory=dict)
    """Changes of the scenario at all points, by path."""
    kinds: dict[str, str] = field(default_factory=dict)
    """Axis → how it is varied."""
    problems: list[Problem] = field(default_factory=list)


def read(table: Any) -> Design:
    """Read a ``[sweep]`` table; everything that is wrong with it is in the answer's ``problems``."""
    design = Design()
    if not isinstance(table, Mapping):
        design.problems.append(_wrong("sweep", table, "is not a table", "[sweep] with seeds and axes"))
        return design
    for key in table:
        if key not in _KEYS:
            design.problems.append(_unknown("sweep", key, _KEYS))
    _read_plain(table, design)
    blocks: list[tuple[int, Callable[[], Iterator[Point]]]] = []
    _grid(table.get("grid"), design, blocks)
    _zipped(table.get("zip"), design, blocks)
    _listed(table.get("list"), design, blocks)
    for kind in SAMPLED:
        _sampled(kind, table.get(kind), design, blocks)
    for path in design.kinds:
        if path in RESERVED or path == "seed":
            hint = "seeds varies the seed" if path == "seed" else f"write {path}.KEY, a value inside"
            design.problems.append(_wrong(f"sweep.{design.kinds[path]}.{path}", path, "cannot be an axis", None, hint))
    size = math.prod(count for count, _ in blocks)
    if size * design.seed_count > MOST_RUNS:
        asked = f"{size:,} points × {design.seed_count:,} seeds"
        design.problems.append(_wrong("sweep", None, f"{asked} are too many runs", f"at most {MOST_RUNS:,}"))
    if not design.problems:
        for parts in itertools.product(*(made() for _, made in blocks)):
            values = {path: value for part in parts for path, value in part.values.items()}
            label = next((part.label for part in parts if part.label), None)
            design.points.append(Point(values, label))
    return design


def _wrong(path: str, value: Any, message: str, accepted: str | None = None, suggestion: str | None = None) -> Problem:
    text = None if value is None else json.dumps(value, ensure_ascii=False, default=str)[:80]
    return Problem("error", path, message, None, text, accepted, suggestion)


def _unknown(path: str, key: str, known: Sequence[str]) -> Problem:
    near = difflib.get_close_matches(key, known, 1)
    return _wrong(f"{path}.{key}", None, "is no key", ", ".join(known), f"did you mean {near[0]}?" if near else None)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _read_plain(table: Mapping[str, Any], design: Design) -> None:
    name = table.get("name")
    if name is not None and not isinstance(name, str):
        design.problems.append(_wrong("sweep.name", name, "is not a text", "a text"))
    design.name = name if isinstance(name, str) else None
    common = table.get("common_random_numbers", True)
    if not isinstance(common, bool):
        design.problems.append(_wrong("sweep.common_random_numbers", common, "is neither true nor false", "true, false"))
    design.common = common is True
    changes = table.get("set", {})
    if isinstance(changes, Mapping):
        design.changes = dict(_flat(changes, lambda inside: "kind" in inside))
    else:
        design.problems.append(_wrong("sweep.set", changes, "is not a table", 'values by path, { "traffic[0].stop" = "10ms" }'))
    _read_seeds(table.get("seeds", 1), design)
    if "stop" in table:
        _read_stop(table["stop"], design)


def _read_seeds(seeds: Any, design: Design) -> None:
    accepted = "a number of seeds, a list of seeds, or { from = 1, count = 10 }"
    if isinstance(seeds, list):
        wrong = [seed for seed in seeds if not _is_whole(seed) or not 0 <= seed <= _LARGEST_SEED]
        if not seeds or wrong:
            found = wrong[0] if wrong else seeds
            design.problems.append(_wrong("sweep.seeds", found, "is no list of seeds", "whole numbers from 0, each once"))
        elif len(set(seeds)) < len(seeds):
            again = next(seed for at, seed in enumerate(seeds) if seed in seeds[:at])
            design.problems.append(_wrong("sweep.seeds", again, "is there twice", "each seed once"))
        else:
            design.seeds, design.seed_count = list(seeds), len(seeds)
        return
    first: Any = None
    count = seeds
    if isinstance(seeds, Mapping):
        design.problems += [_unknown("sweep.seeds", key, ("from", "count")) for key in seeds if key not in ("from", "count")]
        first, count = seeds.get("from", 1), seeds.get("count")
    if not _is_whole(count) or not 1 <= count <= MOST_RUNS:
        design.problems.append(_wrong("sweep.seeds", seeds, "does not say which seeds", accepted))
    elif first is not None and (not _is_whole(first) or not 0 <= first <= _LARGEST_SEED - count):
        design.problems.append(_wrong("sweep.seeds.from", first, "is no seed", f"0 to {_LARGEST_SEED - count}"))
    else:
        design.seed_count = count
        design.seeds = None if first is None else list(range(first, first + count))


def _read_stop(stop: Any, design: Design) -> None:
    def refuse(key: str, accepted: str) -> None:
        value = stop.get(key)
        message = "is missing" if value is None else "is not accepted"
        design.problems.append(_wrong(f"sweep.stop.{key}", value, message, accepted))

    if not isinstance(stop, Mapping):
        design.problems.append(_wrong("sweep.stop", stop, "is not a table", '{ metric = "fct/all.p99_ps", relative_width = 0.05 }'))
        return
    before = len(design.problems)
    design.problems += [_unknown("sweep.stop", key, _STOP) for key in stop if key not in _STOP]
    metric, confidence = stop.get("metric"), stop.get("confidence", Stop.confidence)
    at_least = stop.get("at_least", min(Stop.at_least, design.seed_count))
    statistic = stop.get("statistic", Stop.statistic)
    if statistic not in ("mean", "median"):
        refuse("statistic", "mean, median")
    if not isinstance(metric, str):
        refuse("metric", "GROUP.METRIC or GROUP/NAME.METRIC, for example total.goodput_bps, fct/all.p99_ps")
    elif (wrong := stop_metrics.unknown(metric)) is not None:
        design.problems.append(_wrong("sweep.stop.metric", metric, "is no metric of runs", *wrong))
    relative, absolute = stop.get("relative_width"), stop.get("width")
    if (relative is None) == (absolute is None):
        design.problems.append(
            _wrong("sweep.stop", None, "needs one of two widths", "relative_width (0.05 is ±5 % of the mean), width")
        )
    width = absolute if relative is None else relative
    if width is not None and (not _is_number(width) or width <= 0):
        refuse("width" if relative is None else "relative_width", "a number above 0")
    if not _is_number(confidence) or not 0.5 <= confidence < 1:
        refuse("confidence", "0.5 up to below 1")
    if design.seed_count < 2:
        if not any(problem.path.startswith("sweep.seeds") for problem in design.problems):
            design.problems.append(_wrong("sweep.stop", None, "needs an interval, and there is one seed", "seeds of 2 or more"))
    elif not _is_whole(at_least) or not 2 <= at_least <= design.seed_count:
        refuse("at_least", f"2 to {design.seed_count}, the number of seeds")
    if len(design.problems) == before:
        design.stop = Stop(str(metric), float(width or 0), relative is not None, float(confidence), at_least, str(statistic))


def flat(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the paths and values of axes, whatever they are."""
    return _flat(table, lambda inside: "kind" in inside or any(key in _RANGE for key in inside))


def _flat(table: Mapping[str, Any], leaf: Callable[[Any], bool], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield paths and values; TOML makes tables of ``switch.marking.k`` without quotes, which mean the same."""
    for key, value in table.items():
        path = f"{before}.{key}" if before else str(key)
        if isinstance(value, Mapping) and value and not leaf(value):
            yield from _flat(value, leaf, path)
        else:
            yield path, value


def _join(design: Design, path: str, kind: str) -> bool:
    """Note an axis; false, and a problem, if it is one already."""
    if path in design.kinds:
        design.problems.append(_wrong(f"sweep.{kind}", path, f"is an axis of sweep.{design.kinds[path]} already", "each axis once"))
        return False
    design.kinds[path] = kind
    return True


Blocks = list[tuple[int, Callable[[], Iterator[Point]]]]


def _columns(kind: str, table: Any, design: Design) -> dict[str, list[Any]]:
    accepted = 'axes with lists of values, for example "switch.marking.k" = ["20 packets", "65 packets"]'
    if table is None:
        return {}
    if not isinstance(table, Mapping) or not table:
        design.problems.append(_wrong(f"sweep.{kind}", table, "has no axes", accepted))
        return {}
    columns = {}
    for path, values in _flat(table, lambda _: False):
        if not isinstance(values, list) or not values:
            design.problems.append(_wrong(f"sweep.{kind}.{path}", values, "is no list of values", accepted))
        elif _join(design, path, kind):
            columns[path] = values
    return columns


def _grid(table: Any, design: Design, blocks: Blocks) -> None:
    for path, values in _columns("grid", table, design).items():
        blocks.append((len(values), partial(_along, path, values)))


def _along(path: str, values: Sequence[Any]) -> Iterator[Point]:
    for value in values:
        yield Point({path: value})


def _zipped(table: Any, design: Design, blocks: Blocks) -> None:
    columns = _columns("zip", table, design)
    if not columns:
        return
    lengths = {path: len(values) for path, values in columns.items()}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{path} has {count}" for path, count in lengths.items())
        design.problems.append(_wrong("sweep.zip", None, f"its lists differ in length: {said}", "lists of one length"))
        return
    rows = list(zip(*columns.values(), strict=True))
    blocks.append((len(rows), lambda: (Point(dict(zip(columns, row, strict=True))) for row in rows)))


def _listed(entries: Any, design: Design, blocks: Blocks) -> None:
    if entries is None:
        return
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, Mapping) for entry in entries):
        design.problems.append(_wrong("sweep.list", entries, "is no list of points", "[[sweep.list]] tables, one for each point"))
        return
    points = []
    for at, entry in enumerate(entries):
        label = entry.get("label")
        if label is not None and not isinstance(label, str):
            design.problems.append(_wrong(f"sweep.list[{at}].label", label, "is not a text", "a text"))
        inside = {key: value for key, value in entry.items() if key != "label"}
        points.append(Point(dict(_flat(inside, lambda table: "kind" in table)), label if isinstance(label, str) else None))
    for path in dict.fromkeys(path for point in points for path in point.values):
        _join(design, path, "list")
    blocks.append((len(points), lambda: iter(points)))


@dataclass(frozen=True)
class _Range:
    """Values between two bounds, or one of a list, by a number from 0 to 1."""

    low: float = 0
    high: float = 0
    unit: str = ""
    whole: bool = False
    log: bool = False
    text: bool = False
    choices: tuple[Any, ...] = ()

    def at(self, share: float) -> Any:
        if self.choices:
            return self.choices[min(int(share * len(self.choices)), len(self.choices) - 1)]
        # A whole number stands for what would be rounded to it, so that both ends are as likely as the others.
        low, high = (self.low - 0.5, self.high + 0.5) if self.whole else (self.low, self.high)
        if self.log:
            low = max(low, self.low / 2)
            value = math.exp(math.log(low) + share * (math.log(high) - math.log(low)))
        else:
            value = low + share * (high - low)
        number: float | int = min(max(round(value), int(self.low)), int(self.high)) if self.whole else float(f"{value:.6g}")
        return f"{number} {self.unit}".rstrip() if self.text else number


def quantity(value: Any) -> tuple[float, str, bool] | None:
    """Return number and unit of a value, and whether it is written as a whole number; None if it is no quantity."""
    if _is_number(value):
        return float(value), "", isinstance(value, int)
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) and len(value) < 80 else None
    if match is None:
        return None
    number = float(match[1].replace("_", ""))
    return (number, match[2] or "", re.fullmatch(r"[-+]?[\d_]+", match[1]) is not None) if math.isfinite(number) else None


def _range(where: str, spec: Any, design: Design) -> _Range | None:
    accepted = '{ from = "10 packets", to = "200 packets", scale = "log" }, or a list of values'
    if isinstance(spec, list) and spec:
        return _Range(choices=tuple(spec))
    if not isinstance(spec, Mapping):
        design.problems.append(_wrong(where, spec, "is no range", accepted))
        return None
    before = len(design.problems)
    design.problems += [_unknown(where, key, _RANGE) for key in spec if key not in _RANGE]
    scale = spec.get("scale", "linear")
    if scale not in ("linear", "log"):
        design.problems.append(_wrong(f"{where}.scale", scale, "is no scale", "linear, log"))
    ends = {key: quantity(spec.get(key)) for key in ("from", "to")}
    for key, end in ends.items():
        if end is None:
            message = "is missing" if spec.get(key) is None else "is no quantity"
            design.problems.append(_wrong(f"{where}.{key}", spec.get(key), message, "a number, or a number with a unit"))
    low, high = ends["from"], ends["to"]
    if low is None or high is None or len(design.problems) > before:
        return None
    if low[1] != high[1]:
        design.problems.append(_wrong(where, None, f"its ends have different units, '{low[1]}' and '{high[1]}'", "one unit"))
    elif low[0] >= high[0]:
        design.problems.append(_wrong(f"{where}.to", spec["to"], "is not above from", f"more than {spec['from']}"))
    elif scale == "log" and low[0] <= 0:
        design.problems.append(_wrong(f"{where}.from", spec["from"], "has no logarithm", "above 0 with scale = log"))
    else:
        text = isinstance(spec["from"], str)
        return _Range(low[0], high[0], low[1], low[2] and high[2], scale == "log", text)
    return None


def _sampled(kind: str, table: Any, design: Design, blocks: Blocks) -> None:
    if table is None:
        return
    where = f"sweep.{kind}"
    if not isinstance(table, Mapping):
        design.problems.append(_wrong(where, table, "is not a table", "points, seed and axes"))
        return
    before = len(design.problems)
    known = ("points", "seed", "axes")
    design.problems += [_unknown(where, key, known) for key in table if key not in known]
    points: Any = table.get("points")
    seed: Any = table.get("seed", 1)
    axes: Any = table.get("axes")
    if not _is_whole(points) or not 1 <= points <= MOST_RUNS:
        message = "is missing" if points is None else "is no number of points"
        design.problems.append(_wrong(f"{where}.points", points, message, f"1 to {MOST_RUNS:,}"))
    elif kind == "sobol" and points & (points - 1):
        low = 1 << (points.bit_length() - 1)
        accepted = f"powers of two, for example {low} or {2 * low}"
        design.problems.append(_wrong(f"{where}.points", points, "unbalances a Sobol sequence", accepted))
    if not _is_whole(seed) or not 0 <= seed <= _LARGEST_SEED:
        design.problems.append(_wrong(f"{where}.seed", seed, "is no seed", "a whole number from 0"))
    if not isinstance(axes, Mapping) or not axes:
        message = "is missing" if axes is None else "has no axes"
        design.problems.append(_wrong(f"{where}.axes", axes, message, '"PATH" = { from = …, to = … }'))
        return
    ranges = {}
    for path, spec in _flat(axes, lambda table: any(key in _RANGE for key in table)):
        made = _range(f"{where}.axes.{path}", spec, design)
        if _join(design, path, kind) and made is not None:
            ranges[path] = made
    if len(design.problems) == before:
        blocks.append((points, lambda: _draw(kind, points, seed, ranges)))


def _draw(kind: str, points: int, seed: int, ranges: Mapping[str, _Range]) -> Iterator[Point]:
    import numpy as np

    if kind == "random":
        shares = np.random.default_rng(seed).random((points, len(ranges)))
    else:
        from scipy.stats import qmc  # half a second, so only where it is needed

        sampler = qmc.Sobol if kind == "sobol" else qmc.LatinHypercube
        shares = sampler(d=len(ranges), rng=np.random.default_rng(seed)).random(points)
    for row in shares:
        yield Point({path: way.at(float(share)) for (path, way), share in zip(ranges.items(), row, strict=True)})
