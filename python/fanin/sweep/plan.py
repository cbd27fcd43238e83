"""From a sweep's file to runs that are known to be sound, each with a key that says what it simulates."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fanin import _core
from fanin.comparison.variants import settings
from fanin.machine import cores
from fanin.scenario import Problem, Scenario, ScenarioError
from fanin.statistics import FEW, stop_metrics, tried
from fanin.sweep import axes
from fanin.sweep.axes import Design, Point

if TYPE_CHECKING:
    import polars as pl

SCHEMA: Final = "sweep/1"
_KEY_DIGITS: Final = 32
_SHOWN: Final = 20
"""Kinds of mistakes that are reported; more are counted."""
_CHECKED_AT_ONCE: Final = 2000
_NUMBER: Final = re.compile(r"\d[\d.]*")


@dataclass(frozen=True)
class Source:
    """What is swept: a scenario and a ``[sweep]`` table, and where they stand."""

    scenario: Scenario
    table: Mapping[str, Any]
    file: Path | None = None
    text: str | None = None
    """The TOML text of `file`, where lines are looked up."""
    scenario_file: Path | None = None
    """The scenario's file, where it is another than `file`."""
    changed: tuple[str, ...] = ()
    """Paths that the caller has set, which stand in no file."""


@dataclass(frozen=True)
class Planned:
    """A point that has been checked: its scenario without a seed, and the hash of that."""

    point: Point
    key: str
    text: str

    def with_seed(self, seed: int) -> str:
        """Return the scenario as JSON."""
        return seeded(self.text, seed)


def seeded(text: str, seed: int) -> str:
    """Return a scenario in JSON, which has no seed, with one."""
    return f'{{"seed": {seed}}}' if text == "{}" else f'{{"seed": {seed}, {text[1:]}'


@dataclass(frozen=True)
class Run:
    """One simulation: a point and a seed."""

    key: str
    point: int
    replicate: int
    """Which seed of the point it is, from 0."""
    seed: int


@dataclass(frozen=True)
class Plan:
    """All runs of a sweep, in the order in which they are made, and what was warned of."""

    name: str
    design: Design
    base_dir: Path
    points: Sequence[Planned]
    runs: Sequence[Run]
    warnings: Sequence[Problem]
    document: Mapping[str, Any]
    conditions: tried.Conditions = tried.UNKNOWN
    """Under which its points are simulated: what is outside of what numbers of seeds were tried on at any of them."""
    threads: int | None = None
    """Threads of each run; None: those of the scenario. No part of what is simulated, nor of the keys of runs."""

    def text(self, run: Run) -> str:
        """Return the scenario of a run as JSON."""
        text = self.points[run.point].with_seed(run.seed)
        if self.threads is None:
            return text
        document = json.loads(text)
        document.setdefault("engine", {})["threads"] = self.threads
        return json.dumps(document)

    @property
    def axes(self) -> Sequence[str]:
        """Return the names of the axes."""
        return tuple(self.design.kinds)

    def frame(self) -> pl.DataFrame:
        """Return the table of the plan: run, point, label, seed, axes."""
        import polars as pl

        columns = axis_columns(self)
        at = [run.point for run in self.runs]
        points = pl.DataFrame(
            {
                "point": pl.Series([planned.key for planned in self.points], dtype=pl.String),
                "label": pl.Series([planned.point.label for planned in self.points], dtype=pl.String),
                **columns,
            }
        )
        keys = pl.Series("run", [run.key for run in self.runs], dtype=pl.String)
        seeds = pl.Series("seed", [run.seed for run in self.runs], dtype=pl.UInt64)
        return pl.DataFrame([keys, seeds]).hstack(points[at])


def load(source: Any, design: Mapping[str, Any] | None = None) -> Source:
    """Read what is to be swept.

    Parameters
    ----------
    source : Scenario, mapping or path-like
        A scenario, or a file or mapping with a ``[sweep]`` table.
    design : mapping, optional
        The ``[sweep]`` table, or what is changed of it.

    Raises
    ------
    OSError, ValueError, ScenarioError
        A file cannot be read; see `fanin.Scenario.from_file`.
    """
    file = text = scenario_file = None
    if isinstance(source, Scenario):
        given = source
    elif isinstance(source, Mapping):
        given = Scenario(source)
    else:
        file = Path(os.fspath(source))
        given = Scenario.from_file(file)
        text = given.source()[0] if given.source()[1] == "toml" else None
    document = given.to_dict()
    table = document.pop("sweep", None)
    if table is None and design is None:
        where = f"{file}: " if file else ""
        raise ValueError(f"{where}has no [sweep] table; it says seeds and axes, see docs/sweeps.md")
    if table is not None and not isinstance(table, dict):
        _refuse([Problem("error", "sweep", "is not a table", accepted="[sweep] with seeds and axes")])
    table = {**(table or {}), **(design or {})}
    named = table.get("scenario")
    if named is None:
        return Source(Scenario(document, base_dir=given.base_dir), table, file, text)
    if not isinstance(named, str):
        _refuse([Problem("error", "sweep.scenario", "is not the path of a file", value=json.dumps(named, default=str)[:80])])
    if document:
        keys = ", ".join(document)
        _refuse(
            [Problem("error", "sweep.scenario", f"names a file, and {keys} of a scenario stand here too; accepted: one of the two")]
        )
    scenario_file = given.base_dir / named
    base = Scenario.from_file(scenario_file)
    inside = base.to_dict()
    inside.pop("sweep", None)
    return Source(Scenario(inside, base_dir=base.base_dir), table, file, text, scenario_file)


def plan(source: Source, changes: Mapping[str, Any] | None = None) -> Plan:
    """Make all runs of a sweep, and check each point.

    Parameters
    ----------
    source : Source
        What is swept.
    changes : mapping, optional
        Values of the scenario that are other than in its file, path → value.

    Raises
    ------
    ScenarioError
        With all that is wrong with the sweep's table, or else with its points, each mistake once.
    """
    source = replace(source, changed=tuple(changes or ()))
    design = axes.read(source.table)
    if not design.common and isinstance(source.table.get("seeds"), list | Mapping):
        said = "gives every point its own seeds, so none can be named; accepted: a number of seeds"
        design.problems.append(Problem("error", "sweep.common_random_numbers", said, value="false"))
    if design.problems:
        _refuse([_located(problem, source) for problem in design.problems])
    try:
        base = source.scenario.replace({**design.changes, **(changes or {})})
    except ValueError as error:
        _refuse([Problem("error", "sweep.set" if design.changes else "", str(error))])
        raise
    texts, wrong = _texts(base, design.points, source)
    return _planned(base, design, texts, source, wrong=wrong)


def of_scenarios(
    name: str,
    scenarios: Mapping[str, Scenario],
    changes: Mapping[str, Mapping[str, Any]],
    seeds: Sequence[int],
    *,
    given: Mapping[str, int] | None = None,
) -> Plan:
    """Make a plan of scenarios, each a point with its label; runs are in their order, the first seed of all before the next.

    Parameters
    ----------
    name : str
        Of the sweep.
    scenarios : mapping
        By label; the first is that from which the others differ. All read files from the same folder.
    changes : mapping
        In what each differs, path → value, for the store's description.
    seeds : sequence of int
        The same for all.
    given : mapping, optional
        How many of them each label has, from the first; all if not given.

    Raises
    ------
    ScenarioError
        One has errors.
    """
    points = [Point(dict(changes.get(label, {})), label) for label in scenarios]
    table = {"name": name, "seeds": list(seeds), "list": [{"label": label, **changes.get(label, {})} for label in scenarios]}
    design = Design(points, list(seeds), len(seeds), name=name)
    base = next(iter(scenarios.values()))
    texts = [_without_seed(scenario).source()[0] for scenario in scenarios.values()]
    made = _planned(base, design, texts, Source(base, table), in_order=True)
    if given is None:
        return made
    runs = [run for run in made.runs if run.replicate < given[str(made.points[run.point].point.label)]]
    return replace(made, runs=runs, document={**made.document, "planned": len(runs)})


def _planned(  # noqa: PLR0913 (two have a name)
    base: Scenario,
    design: Design,
    texts: Sequence[str],
    source: Source,
    *,
    in_order: bool = False,
    wrong: Sequence[Problem] = (),
) -> Plan:
    """Check points and make their runs; what is known to be wrong is said with what the check finds."""
    hashes, warnings = _check(texts, design, base.base_dir, source, wrong)
    points: list[Planned] = []
    seen: dict[str, int] = {}
    for point, text, found in zip(design.points, texts, hashes, strict=True):
        if found not in seen:
            seen[found] = len(points)
            points.append(Planned(point, found[:_KEY_DIGITS], text))
    if len(points) < len(design.points):
        twice = len(design.points) - len(points)
        same = "simulates the same as another and is" if twice == 1 else "simulate the same as others and are"
        said = f"{twice} of {len(design.points)} points {same} not run again"
        warnings.append(Problem("warning", "sweep", said))
    if missing := _missing(base, design):
        _refuse([_located(missing, source)])
    conditions = tried.together(_conditions(planned, base.base_dir) for planned in points)
    if design.stop is not None:
        design.stop = replace(design.stop, conditions=conditions)
    warnings += [_located(problem, source) for problem in _never_stops(design)]
    seed = base.to_dict().get("seed", 1)
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed <= 2**62:
        _refuse(
            [Problem("error", "seed", "is not accepted", value=json.dumps(seed, default=str), accepted="a whole number from 0")]
        )
    runs = _runs(points, design, seed, in_order=in_order)
    name = design.name or str(base.to_dict().get("name") or (source.file.stem if source.file else "sweep"))
    document = {
        "schema": SCHEMA,
        "fanin": _core.version(),
        "name": name,
        "axes": [{"name": path, "kind": kind, "unit": unit_of(points, path)} for path, kind in design.kinds.items()],
        "scenario": base.to_dict(),
        "sweep": dict(source.table),
        "points": len(points),
        "seeds": design.seed_count,
        "planned": len(runs),
        "conditions": {
            "outside": list(conditions.outside),
            "timeout_ps": conditions.timeout_ps if math.isfinite(conditions.timeout_ps) else None,
            "port_bytes": conditions.port_bytes if math.isfinite(conditions.port_bytes) else None,
        },
    }
    return Plan(name, design, base.base_dir, points, runs, warnings, document, conditions)


def _conditions(planned: Planned, base_dir: Path) -> tried.Conditions:
    """Return under which conditions a point is simulated."""
    return tried.of(settings(Scenario(json.loads(planned.text), base_dir=base_dir).resolved))


def _missing(base: Scenario, design: Design) -> Problem | None:
    """Return that no point has the job that the stop rule names; points that change traffic are all looked at."""
    if design.stop is None or not design.stop.metric.startswith("collective/"):
        return None
    vary = any(path.partition("[")[0].partition(".")[0] == "traffic" for path in design.kinds)
    found = [
        stop_metrics.missing_job(design.stop.metric, (base.replace(point.values) if point.values else base).resolved["traffic"])
        for point in (design.points if vary else design.points[:1])
    ]
    if not found or any(own is None for own in found):
        return None
    accepted, suggestion = next(own for own in found if own is not None)
    value = json.dumps(design.stop.metric, ensure_ascii=False)
    said = "is no job of this scenario" if not vary else "is no job at any point"
    return Problem("error", "sweep.stop.metric", said, None, value, accepted, suggestion)


def _never_stops(design: Design) -> Iterator[Problem]:
    """Warn of a stop rule that no point can meet with the seeds that there are, so that it saves no run."""
    stop, seeds = design.stop, design.seed_count
    if stop is None or (stop.needs is not None and stop.needs <= seeds):
        return
    metric = json.dumps(stop.metric, ensure_ascii=False)
    every = f"so all {seeds:,} seeds are run at every point, and none is narrow enough"
    if stop.needs is None:
        said = f"is a mean that rare runs decide, which no number of seeds makes reliable, {every}"
        accepted = 'statistic = "median", or another metric'
    else:
        why = f" ({stop.conditions.outside[0]})" if stop.conditions.outside else ""
        said = f"is judged from {stop.needs} seeds on{why}, and there are {seeds:,}, {every}"
        accepted = f"seeds = {stop.needs} or more" + (', or statistic = "median"' if seeds >= FEW else "")
    yield Problem("warning", "sweep.stop.metric", said, value=metric, accepted=accepted)


def _runs(points: Sequence[Planned], design: Design, first: int, *, in_order: bool) -> list[Run]:
    """Return runs in their order: the first seed of all points, then the next; points in the order of their hashes, or their own.

    What is done at any time is so a fair sample, from which the rest can be estimated.
    """
    version = _core.version()
    order = range(len(points)) if in_order else sorted(range(len(points)), key=lambda at: points[at].key)
    runs = []
    for replicate in range(design.seed_count):
        for at in order:
            key = points[at].key
            if not design.common:
                seed = int(hashlib.sha256(f"{key} {replicate}".encode()).hexdigest()[:15], 16)
            else:
                seed = first + replicate if design.seeds is None else design.seeds[replicate]
            name = hashlib.sha256(f"{key}\n{seed}\n{version}".encode()).hexdigest()[:_KEY_DIGITS]
            runs.append(Run(name, at, replicate, seed))
    return runs


def _without_seed(scenario: Scenario) -> Scenario:
    document = scenario.to_dict()
    document.pop("seed", None)
    return Scenario(document, base_dir=scenario.base_dir)


def _texts(base: Scenario, points: Sequence[Point], source: Source) -> tuple[list[str], list[Problem]]:
    """Return the scenarios of points as JSON, without seeds, and which values cannot be set; points are then without these."""
    plain = _without_seed(base)
    texts = []
    problems: dict[str, Problem] = {}
    for point in points:
        values = dict(point.values)
        while True:
            try:
                texts.append((plain.replace(values) if values else plain).source()[0])
                break
            except (ValueError, TypeError) as error:
                path = next((path for path in values if _is_about(str(error), path)), None)
                said = str(error).removeprefix(f"'{path}': ").removeprefix(f"{path}: ")
                problems.setdefault(str(error), _located(Problem("error", path or "sweep", said), source))
                values = {other: value for other, value in values.items() if path is not None and other != path}
    return texts, list(problems.values())


def _is_about(message: str, path: str) -> bool:
    """Whether what was raised names a path: in quotes, or before its colon, perhaps with a key inside."""
    return f"'{path}'" in message or (message.startswith(path) and message[len(path) : len(path) + 1] in (":", ".", "["))


def _check(
    texts: Sequence[str], design: Design, base_dir: Path, source: Source, wrong: Sequence[Problem]
) -> tuple[list[str], list[Problem]]:
    """Return the hashes of scenarios and their warnings, each once; raise with all errors, those that are known first."""
    hashes = []
    met: dict[tuple[str, ...], tuple[Problem, Point]] = {}
    count: Counter[tuple[str, ...]] = Counter()
    threads = cores()
    for start in range(0, len(texts), _CHECKED_AT_ONCE):
        some = [seeded(text, 0) for text in texts[start : start + _CHECKED_AT_ONCE]]
        points = design.points[start : start + _CHECKED_AT_ONCE]
        for point, (found, problems) in zip(points, _core.check_many(some, str(base_dir), threads), strict=True):
            hashes.append(found or "")
            for problem in map(Problem.from_core, problems):
                # What differs in its numbers alone, value included, is the same mistake.
                key = (problem.severity, problem.path, _NUMBER.sub("#", problem.message))
                met.setdefault(key, (problem, point))
                count[key] += 1
    told = [_located(_counted(problem, count[key], len(texts), point), source) for key, (problem, point) in met.items()]
    errors = [*wrong, *(problem for problem in told if problem.severity == "error")]
    if errors:
        _refuse(errors)
    return hashes, told


def _counted(problem: Problem, count: int, of: int, first: Point) -> Problem:
    """Say at how many points there is a problem, and where first."""
    if of == 1:
        return problem
    where = "at every point" if count == of else f"at {count:,} of {of:,} points, first at {first}"
    return replace(problem, message=f"{problem.message} ({where})")


def _located(problem: Problem, source: Source) -> Problem:
    """Name file and line: those of the axis that a problem is about, or the scenario's file."""
    path = problem.path
    found = None if path.startswith("sweep") else next((at for at in _written(source.table) if _overlap(path, at[1])), None)
    if found is not None:
        kind, axis = found
        return replace(problem, line=_line(source, axis, f"sweep.{kind}"))
    if path == "sweep" or path.startswith("sweep."):
        return replace(problem, line=_line(source, path.split(".")[-1], path))
    if any(_overlap(path, changed) for changed in source.changed):
        return replace(problem, line=None)
    if source.scenario_file is not None:
        return replace(problem, path=f"{path} ({source.scenario_file})", line=None)
    if source.text is not None and path:
        return replace(problem, line=_core.lines(source.text, [path])[0])
    return problem


def _written(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the key of the sweep's table and the path of each value that stands in it."""
    for kind in ("set", *axes.KINDS):
        inside = table.get(kind)
        for entry in inside if isinstance(inside, list) else [inside]:
            values = entry.get("axes") if kind in axes.SAMPLED and isinstance(entry, Mapping) else entry
            yield from ((kind, path) for path, _ in axes.flat(values)) if isinstance(values, Mapping) else ()


def _overlap(path: str, other: str) -> bool:
    """Whether two paths are the same, or one leads to the other."""
    one, two = (name.replace("[", ".").replace("]", "") + "." for name in (path, other))
    return one.startswith(two) or two.startswith(one)


def _line(source: Source, key: str, path: str) -> int | None:
    """Return the line of a key of the sweep's table: where its name is first, or of the table around it."""
    if source.text is None:
        return None
    within = False
    for number, line in enumerate(source.text.splitlines(), 1):
        bare = line.split("#")[0].strip()
        if bare.startswith("["):
            within = bare.strip("[] ").startswith("sweep")
        if within and bare.split("=")[0].strip().strip("\"'") == key:
            return number
    return _core.lines(source.text, [path])[0]


def _refuse(problems: list[Problem]) -> None:
    shown = problems[:_SHOWN]
    if len(problems) > _SHOWN:
        shown.append(Problem("error", "", f"{len(problems) - _SHOWN:,} other mistakes are not shown"))
    error = ScenarioError("\n".join(map(str, shown)))
    error.problems = [vars(problem) for problem in shown]
    raise error


def unit_of(points: Sequence[Planned], path: str) -> str | None:
    """Return the one unit that all values of an axis have; None if there is none."""
    found = [axes.quantity(planned.point.values.get(path)) for planned in points]
    units = {quantity[1] if quantity else "" for quantity in found}
    unit = units.pop() if len(units) == 1 else ""
    return unit or None


def axis_columns(made: Plan) -> dict[str, pl.Series]:
    """Return the columns of the axes, a value for each point."""
    import polars as pl

    columns = {}
    for path in made.axes:
        values = [planned.point.values.get(path) for planned in made.points]
        columns[path] = _series(path, values)
        unit = unit_of(made.points, path)
        if unit:
            numbers = [quantity[0] if (quantity := axes.quantity(value)) else None for value in values]
            columns[f"{path} [{unit}]"] = pl.Series(f"{path} [{unit}]", numbers, dtype=pl.Float64)
    return columns


def _series(name: str, values: Sequence[Any]) -> pl.Series:
    import polars as pl

    kinds = {type(value) for value in values if value is not None}
    types = {
        frozenset({bool}): pl.Boolean,
        frozenset({int}): pl.Int64,
        frozenset({float}): pl.Float64,
        frozenset({int, float}): pl.Float64,
    }
    dtype = types.get(frozenset(kinds))
    if dtype is not None:
        return pl.Series(name, values, dtype=dtype, strict=False)
    texts = [value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in values]
    return pl.Series(name, texts, dtype=pl.String)
