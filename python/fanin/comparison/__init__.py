"""Compares variants of a scenario: intervals over seeds, paired differences, and which of them count."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fanin import _core
from fanin.comparison import variants
from fanin.comparison.variants import CompareError, Variant, meant
from fanin.statistics import metrics, stats
from fanin.statistics.metrics import Metric
from fanin.statistics.stats import Difference, Direction, Interval, Verdict
from fanin.text import show

if TYPE_CHECKING:
    import polars as pl
    from plotly.graph_objects import Figure

__all__ = ["SCHEMA", "Cell", "Comparison", "Row", "of"]

SCHEMA: Final = "compare/1"
"""Schema of `Comparison.to_dict`."""

_SPREAD: Final = 0.05
"""Simulated times may differ by so much, relative, before it is worth a warning."""

_SAME_RUN: Final = ("duration", "topology", "traffic", "telemetry")
"""Settings whose difference makes numbers hard to compare: name of the first key in their path."""


@dataclass(frozen=True)
class Cell:
    """A number of one variant.

    Attributes
    ----------
    interval : Interval or None
        Its mean over seeds with an interval, in the unit of the metric; None if no run has it.
    difference : Difference or None
        From the base; None for the base itself, or where one of the two has no value.
    verdict : str or None
        ``better``, ``worse``, ``no difference``, ``too few seeds``, ``differs`` (where neither direction is better), ``equal``
        (in each run, so not judged), ``one seed`` or ``no data``; None
        for the base, and where nothing was judged.
    chance : float or None
        Its chance where nothing differs, adjusted for the whole table (Holm).
    """

    interval: Interval | None
    difference: Difference | None = None
    verdict: Verdict | None = None
    chance: float | None = None


@dataclass(frozen=True)
class Row:
    """A metric with its number in each variant, the base first."""

    metric: Metric
    cells: tuple[Cell, ...]

    @property
    def empty(self) -> bool:
        """Whether it is zero in all variants, or has no value."""
        known = [cell.interval for cell in self.cells if cell.interval is not None]
        return all(found.mean == 0 and found.low in (None, 0) and found.high in (None, 0) for found in known)


@dataclass(frozen=True)
class Comparison:
    """What differs between variants, and what that is worth. docs/compare.md states the rule.

    Attributes
    ----------
    variants : tuple of Variant
        The base first.
    rows : tuple of Row
        One per metric that some run has.
    differing : list of (str, list)
        Settings of the scenario that differ, with the value of each variant.
    warnings : list of str
        What makes the numbers hard to compare.
    notes : list of str
        What few seeds, or seeds without effect, are worth.
    confidence, alpha : float
        Nominal coverage of intervals; chance that a table calls anything different where nothing is.
    """

    variants: tuple[Variant, ...]
    rows: tuple[Row, ...]
    differing: list[tuple[str, list[Any]]]
    warnings: list[str]
    notes: list[str]
    confidence: float
    alpha: float

    @property
    def base(self) -> Variant:
        """The variant that the others are compared with."""
        return self.variants[0]

    @property
    def judged(self) -> int:
        """How many differences were judged together."""
        return len({cell.difference for row in self.rows for cell in row.cells if cell.chance is not None})

    def count(self, name: str, verdict: Verdict) -> int:
        """Return in how many metrics a variant has a verdict.

        Parameters
        ----------
        name : str
            The variant.
        verdict : str
            For example ``better``.
        """
        at = [variant.name for variant in self.variants].index(name)
        return sum(row.cells[at].verdict == verdict for row in self.rows if not row.empty)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON holds it, in the units of docs/results.md: picoseconds, bytes, bits per second."""
        return {
            "schema": SCHEMA,
            "fanin": _core.version(),
            "base": self.base.name,
            "confidence": self.confidence,
            "alpha": self.alpha,
            "judged": self.judged,
            "variants": [
                {
                    "name": variant.name,
                    "seeds": list(variant.seeds),
                    "runs": [run.origin for run in variant.runs],
                    "version": ", ".join(variant.versions),
                }
                for variant in self.variants
            ],
            "differing": [{"key": key, "values": column} for key, column in self.differing],
            "warnings": self.warnings,
            "notes": self.notes,
            "rows": [self._row(row) for row in self.rows],
        }

    def _row(self, row: Row) -> dict[str, Any]:
        def cell(found: Cell) -> dict[str, Any]:
            return {
                "interval": asdict(found.interval) if found.interval else None,
                "difference": asdict(found.difference) if found.difference else None,
                "verdict": found.verdict,
                "p_adjusted": found.chance,
            }

        facts = {"metric": row.metric.key, "name": row.metric.name, "unit": row.metric.unit, "better": row.metric.better}
        return {**facts, "variants": {v.name: cell(found) for v, found in zip(self.variants, row.cells, strict=True)}}

    def to_json(self) -> str:
        """Return `to_dict` as one line of JSON; equal runs give equal bytes."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)

    @property
    def frame(self) -> pl.DataFrame:
        """One row per metric and variant: ``metric``, ``unit``, ``better``, ``variant``, ``mean``, ``low``, ``high``, ``seeds``, the ``change`` from the base (a share) with its interval, ``p_adjusted``, ``verdict``."""  # noqa: E501
        import polars as pl

        def line(row: Row, variant: Variant, cell: Cell) -> dict[str, Any]:
            value, gap = cell.interval, cell.difference
            return {
                "metric": row.metric.key,
                "unit": row.metric.unit,
                "better": row.metric.better,
                "variant": variant.name,
                **{name: getattr(value, name, None) for name in ("mean", "low", "high", "seeds")},
                **{name: getattr(gap, name, None) for name in ("change", "change_low", "change_high")},
                "p_adjusted": cell.chance,
                "verdict": cell.verdict,
            }

        lines = [line(row, variant, cell) for row in self.rows for variant, cell in zip(self.variants, row.cells, strict=True)]
        numbers = ("mean", "low", "high", "change", "change_low", "change_high", "p_adjusted")
        return pl.DataFrame(lines, schema_overrides=dict.fromkeys(numbers, pl.Float64) | {"better": pl.String})

    def plot(self, kind: str = "cdf", **options: Any) -> Figure:
        """Return a figure with all variants in it.

        Parameters
        ----------
        kind : str
            As for ``fanin plot``; docs/compare.md lists the kinds.
        **options
            ``port`` (a name) for queues and throughput; ``statistic`` (``mean``, ``p50``, ``p95`` or ``p99``) by size.
        """
        from fanin.comparison import overlay

        return overlay.draw(kind, {variant.name: variant.results() for variant in self.variants}, **options)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write the comparison as one HTML page that needs neither network nor other files; return where it is."""
        from fanin.comparison import page

        return page.write(self, path)

    def __repr__(self) -> str:
        told = "; ".join(
            f"{variant.name}: {self.count(variant.name, 'better')} better, {self.count(variant.name, 'worse')} worse"
            for variant in self.variants[1:]
        )
        return f"<fanin.Comparison with {self.base.name!r}: {told}>"

    def _repr_html_(self) -> str:
        def line(cells: Sequence[str], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        from fanin.comparison import tables

        told = "".join(f"<p>{html.escape(words)}</p>" for words in (*self.warnings, *self.notes))
        made = []
        for at, variant in enumerate(self.variants[1:], start=1):
            for section, (head, rows) in tables.tables(self, at):
                title = html.escape(f"{variant.name} against {self.base.name}: {section}")
                made.append(f"<p><b>{title}</b></p><table>{line(head, 'th')}{''.join(line(row, 'td') for row in rows)}</table>")
        return f"<div>{told}{''.join(made)}</div>"


def of(
    found: Sequence[Variant],
    *,
    base: str | None = None,
    metric: str | Sequence[str] = (),
    confidence: float = stats.CONFIDENCE,
    alpha: float = stats.ALPHA,
) -> Comparison:
    """Compare variants that are there; see `fanin.compare`."""
    problems = _range("confidence", confidence, 0.5, 0.999) + _range("alpha", alpha, 0.001, 0.5)
    names = [variant.name for variant in found]
    if base is not None and base not in names:
        problems.append(f"base '{base}': there is no such variant; there are {', '.join(names)}" + meant(base, names))
    if not found:
        problems.append("two variants or more are needed, and no run is given")
    elif len(found) == 1:
        what = f"'{names[0]}', {show.many(len(found[0].runs), 'seed')}"
        problems.append(
            f"two variants or more are needed, and there is one: {what}. Runs that differ in the seed alone are one variant; "
            "NAME=PATH keeps them apart"
        )
    try:
        asked = [metric] if isinstance(metric, str) else list(metric)
        runs = [run for variant in found for run in variant.runs]
        kept = all(run.result is not None for run in runs)
        chosen = metrics.choose(asked, (key for run in runs for key in run.values), kept=kept)
    except ValueError as error:
        problems.extend(str(error).splitlines())
    if problems:
        raise CompareError(problems)
    ordered = sorted(found, key=lambda variant: variant.name != (base or names[0]))
    rows = _rows(ordered, chosen, lambda entry: bool(asked) or entry.headline, confidence, alpha)
    changes = variants.differing(ordered)
    notes = _notes(ordered)
    return Comparison(tuple(ordered), rows, changes, _warnings(ordered, changes), notes, confidence, alpha)


def _range(name: str, value: float, low: float, high: float) -> list[str]:
    return [] if low <= value <= high else [f"{name}: {value} is out of range; accepted: {low} to {high}"]


def _rows(
    found: Sequence[Variant], chosen: Sequence[Metric], judged: Callable[[Metric], bool], confidence: float, alpha: float
) -> tuple[Row, ...]:
    cells: list[list[Cell]] = []
    places: list[tuple[int, int]] = []
    for line, metric in enumerate(chosen):
        values = [variant.values(metric.key) for variant in found]
        intervals = [stats.interval(list(own.values()), confidence=confidence) if own else None for own in values]
        gaps = [_gap(found[0], values[0], other, own, confidence) for other, own in zip(found[1:], values[1:], strict=True)]
        cells.append([Cell(interval, gap) for interval, gap in zip(intervals, [None, *gaps], strict=True)])
        places += [(line, at) for at in range(1, len(found)) if judged(metric)]
    # Where both are the same in every run there is nothing to judge: no chance could count, and others would pay for it. Nor are
    # the same numbers judged twice, as of all flows and of those of one size, if there is but one size.
    same = {place for place in places if _same(cells[place[0]][place[1]].difference)}
    first: dict[tuple[Difference | None, Direction | None], tuple[int, int]] = {}
    again = {
        (line, at): first.setdefault((cells[line][at].difference, chosen[line].better), (line, at))
        for line, at in places
        if (line, at) not in same
    }
    asked = [place for place, before in again.items() if place == before]
    gaps = [cells[line][at].difference for line, at in asked]
    said = stats.verdicts(gaps, [chosen[line].better for line, _ in asked], alpha=alpha)
    for (line, at), (verdict, chance) in zip(asked, said, strict=True):
        cells[line][at] = replace(cells[line][at], verdict=verdict, chance=chance)
    for (line, at), (before, there) in again.items():
        judged_before = cells[before][there]
        cells[line][at] = replace(cells[line][at], verdict=judged_before.verdict, chance=judged_before.chance)
    for line, at in same:
        cells[line][at] = replace(cells[line][at], verdict="equal")
    return tuple(Row(metric, tuple(line)) for metric, line in zip(chosen, cells, strict=True))


def _same(gap: Difference | None) -> bool:
    return gap is not None and gap.p is not None and gap.mean == 0 and gap.low == gap.high == 0


def _gap(
    base: Variant, values: Mapping[int, float], other: Variant, own: Mapping[int, float], confidence: float
) -> Difference | None:
    if not values or not own:
        return None
    found = stats.difference(values, own, confidence=confidence)
    if min(len(base.runs), len(other.runs)) > 1 and not base.seed_matters and not other.seed_matters:
        return replace(found, p=0.0 if found.mean else 1.0)  # nothing is random in either: what differs, differs
    return found


def _notes(found: Sequence[Variant]) -> list[str]:
    """Return what is to be said of numbers of seeds."""
    notes = []
    for variant in found:
        seeds = len(variant.runs)
        if not variant.seed_matters:
            notes.append(f"{variant.name}: the seed changes nothing, all {seeds} runs are the same; its numbers are exact")
        elif seeds == 1:
            notes.append(f"{variant.name}: one seed, so no interval, and no verdict; run more seeds")
        elif seeds < stats.FEW:
            share = 100 * (stats.worth(seeds) or 0)
            notes.append(
                f"{variant.name}: {seeds} seeds; its intervals are ranges, which hold the true value in {share:.3g} % of cases"
            )
    base = found[0]
    for variant in found[1:]:
        shared = set(base.seeds) & set(variant.seeds)
        if not shared:
            notes.append(f"{variant.name} and {base.name} have no seed in common: differences are not paired, and wider for it")
        elif len(shared) < max(len(base.seeds), len(variant.seeds)):
            one = "this" if len(shared) == 1 else "these"
            common = f"{show.many(len(shared), 'seed')} in common: differences are of {one} alone"
            notes.append(f"{variant.name} and {base.name} have {common}")
    return notes


def _warnings(found: Sequence[Variant], changes: Sequence[tuple[str, list[Any]]]) -> list[str]:
    """Return what else than the mechanism under test differs."""
    told = []
    keys = [key for key, _ in changes]
    for part in _SAME_RUN:
        own = [key for key in keys if key.split(".")[0].split("[")[0] == part]
        if own:
            shown = ", ".join(own[:3]) + (f" and {len(own) - 3} more" if len(own) > 3 else "")
            told.append(f"{_WHY[part]}: {shown}")
    if len({version for variant in found for version in variant.versions}) > 1:
        listed = ", ".join(f"{variant.name} {' and '.join(variant.versions)}" for variant in found)
        told.append(f"versions of Fanin differ: {listed}; results may have changed between them (CHANGELOG)")
    partial = [run.origin for variant in found for run in variant.runs if run.status != "complete"]
    if partial:
        told.append(f"not complete: {', '.join(partial)}; totals and completion times are of what was simulated until then")
    told += [_left_out(variant) for variant in found if variant.failed]
    ends = {variant.name: [run.values.get("total.flows_until_ps", run.sim_ps) for run in variant.runs] for variant in found}
    spans = {name: sum(times) / len(times) for name, times in ends.items()}
    if max(spans.values()) > (1 + _SPREAD) * min(spans.values()):
        listed = ", ".join(f"{name} {show.duration(span)}" for name, span in spans.items())
        means = "goodput and queues are means until then, and one late flow dilutes both"
        told.append(f"last flows end at different times: {listed}; {means}")
    told += _unfinished(found)
    told += _equal(found, keys)
    return told


def _left_out(variant: Variant) -> str:
    one = variant.failed == 1
    return f"{variant.name}: {variant.failed} failed run{'' if one else 's'} {'is' if one else 'are'} left out"


_WHY: Final = {
    "duration": "durations differ",
    "topology": "topologies differ",
    "traffic": "traffic differs, so runs with one seed have not the same flows",
    "telemetry": "telemetry differs, so queues are not sampled alike",
}


def _unfinished(found: Sequence[Variant]) -> list[str]:
    """A variant that completes fewer flows may look fast: what never ended is in no completion time."""
    done = {variant.name: list(variant.values("total.flows_complete").values()) for variant in found}
    means = {name: sum(values) / len(values) for name, values in done.items() if values}
    if not means or max(means.values()) == min(means.values()):
        return []
    listed = ", ".join(f"{name} {show.count(round(mean, 1))}" for name, mean in means.items())
    return [f"numbers of completed flows differ: {listed}; completion times leave out flows that did not end"]


def _equal(found: Sequence[Variant], keys: Sequence[str]) -> list[str]:
    """Variants that gave the same runs."""
    told = []
    for variant in found[1:]:
        pairs = {run.seed: run.fingerprint for run in found[0].runs}
        same = [pairs.get(run.seed) == run.fingerprint != "" for run in variant.runs]
        if all(same):
            what = f"what differs has no effect here ({', '.join(keys[:3])})" if keys else "nothing differs between them"
            told.append(f"{variant.name} and {found[0].name} gave the same runs, by their fingerprints: {what}")
    return told
