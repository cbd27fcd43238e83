"""Compares variants of a scenario: intervals over seeds, paired differences, and which of them count."""

from __future__ import annotations

import difflib
import html
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from fanin import _core
from fanin import statistics as stats
from fanin.comparison import notes, rare, tables, variants
from fanin.comparison.together import Together
from fanin.comparison.variants import CompareError, Variant, meant
from fanin.statistics import Difference, Direction, Interval, Pooled, Verdict, metrics
from fanin.statistics.metrics import Metric
from fanin.text import show

if TYPE_CHECKING:
    import polars as pl
    from plotly.graph_objects import Figure

__all__ = ["SCHEMA", "Cell", "Comparison", "Row", "interval", "of"]

SCHEMA: Final = "compare/2"
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
        Mean and median over seeds with their intervals, in the unit of the metric; None if no run has it. Of a variant, over the
        seeds that it has in common with the base, as its difference is; over all where there are none.
    difference : Difference or None
        From the base; None for the base itself, or where one of the two has no value.
    verdict : str or None
        ``better``, ``worse``; ``better on average``, ``worse on average`` (the mean is; that most runs are is not shown, or they
        are not); ``mostly better``, ``mostly worse`` (most of the runs that differ are, whatever others do to the mean);
        ``differs`` (where neither direction is better); ``no difference`` (shown to be within the margin), ``not shown``;
        ``equal`` (in each run, so not judged), ``one seed`` or ``no data``; None for the base, and where nothing was judged.
    chance : float or None
        Its chance where nothing differs, adjusted for the whole table (Holm).
    seeds : int or None
        Of what is not shown: of how many new seeds a comparison would show it, in four of five cases, if all goes on as these
        seeds say; None where too many would.
    pooled : Pooled or None
        Of a 99th percentile: that of the flows of all seeds together, where all runs have result folders.
    base : Interval or None
        The base's number over the seeds that `interval` is of; None of the base itself.
    base_pooled : Pooled or None
        The base's percentile of the flows of these seeds together.
    why : str
        Of ``mostly better`` and ``mostly worse``: why the mean is not judged, in a few words; else empty.
    """

    interval: Interval | None
    difference: Difference | None = None
    verdict: Verdict | None = None
    chance: float | None = None
    seeds: int | None = None
    pooled: Pooled | None = None
    base: Interval | None = None
    base_pooled: Pooled | None = None
    why: str = ""


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
    confidence, alpha, margin : float
        Nominal coverage of intervals; chance that a table calls anything different where nothing is; up to which relative
        difference means count as the same, if that is shown.
    looks : int
        How often it was planned to look at these runs, this time included: each look has its share of `alpha`.
    """

    variants: tuple[Variant, ...]
    rows: tuple[Row, ...]
    differing: list[tuple[str, list[Any]]]
    warnings: list[str]
    notes: list[str]
    confidence: float
    alpha: float
    margin: float = stats.MARGIN
    looks: int = 1

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
            "margin": self.margin,
            "looks": self.looks,
            "judged": self.judged,
            "variants": [
                {
                    "name": variant.name,
                    "seeds": list(variant.seeds),
                    "runs": [run.origin for run in variant.runs],
                    "version": ", ".join(variant.versions),
                    "failed": variant.failed,
                    "missing": variant.missing,
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
                "difference": _told(found.difference) if found.difference else None,
                "verdict": found.verdict,
                "p_adjusted": found.chance,
                "seeds_needed": found.seeds,
                "pooled": asdict(found.pooled) if found.pooled else None,
                "base": asdict(found.base) if found.base else None,
                "base_pooled": asdict(found.base_pooled) if found.base_pooled else None,
                "why": found.why,
            }

        facts = {"metric": row.metric.key, "name": row.metric.name, "unit": row.metric.unit, "better": row.metric.better}
        return {**facts, "variants": {v.name: cell(found) for v, found in zip(self.variants, row.cells, strict=True)}}

    def to_json(self) -> str:
        """Return `to_dict` as one line of JSON; equal runs give equal bytes."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)

    @property
    def frame(self) -> pl.DataFrame:
        """One row per metric and variant: ``metric``, ``unit``, ``better``, ``variant``, ``mean``, ``low``, ``high``, ``median``, ``median_low``, ``median_high``, ``flag`` (why the mean's interval is not to be relied on), ``seeds``, ``base_mean`` (the base's mean over the same seeds), the ``change`` from the base (a share) with its interval, ``change_flag``, ``p_adjusted``, ``verdict``, ``seeds_needed``; ``pooled``, ``pooled_low``, ``pooled_high``: the percentile of the flows of all seeds together."""  # noqa: E501
        import polars as pl

        medians = ("median", "median_low", "median_high")

        def line(row: Row, variant: Variant, cell: Cell) -> dict[str, Any]:
            value, gap = cell.interval, cell.difference
            return {
                "metric": row.metric.key,
                "unit": row.metric.unit,
                "better": row.metric.better,
                "variant": variant.name,
                **{name: getattr(value, name, None) for name in ("mean", "low", "high", *medians, "flag", "seeds")},
                "base_mean": getattr(cell.base, "mean", None),
                **{name: getattr(gap, name, None) for name in ("change", "change_low", "change_high")},
                "change_flag": getattr(gap, "flag", None),
                "p_adjusted": cell.chance,
                "verdict": cell.verdict,
                "seeds_needed": cell.seeds,
                **{f"pooled{end}": getattr(cell.pooled, end[1:] or "value", None) for end in ("", "_low", "_high")},
            }

        lines = [line(row, variant, cell) for row in self.rows for variant, cell in zip(self.variants, row.cells, strict=True)]
        together = ("pooled", "pooled_low", "pooled_high")
        numbers = ("mean", "low", "high", *medians, "base_mean", "change", "change_low", "change_high", "p_adjusted", *together)
        texts = dict.fromkeys(("better", "flag", "change_flag", "verdict"), pl.String)
        return pl.DataFrame(lines, schema_overrides={**dict.fromkeys(numbers, pl.Float64), **texts, "seeds_needed": pl.Int64})

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
        def words(name: str, side: Literal["better", "worse"]) -> str:
            mostly = self.count(name, "mostly better" if side == "better" else "mostly worse")
            average = self.count(name, "better on average" if side == "better" else "worse on average")
            told = [side, *[f"{side} on average"] * bool(average), *[f"mostly {side}"] * bool(mostly)]
            return f"{self.count(name, side) + average + mostly} {' or '.join(told)}"

        told = "; ".join(f"{own.name}: {words(own.name, 'better')}, {words(own.name, 'worse')}" for own in self.variants[1:])
        return f"<fanin.Comparison with {self.base.name!r}: {told}>"

    def _repr_html_(self) -> str:
        def line(cells: Sequence[str], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        told = "".join(f"<p>{html.escape(words)}</p>" for words in (*self.warnings, *self.notes))
        made = []
        for at, variant in enumerate(self.variants[1:], start=1):
            for section, (head, rows) in tables.tables(self, at):
                title = html.escape(f"{variant.name} against {self.base.name}: {section}")
                made.append(f"<p><b>{title}</b></p><table>{line(head, 'th')}{''.join(line(row, 'td') for row in rows)}</table>")
        return f"<div>{told}{''.join(made)}</div>"


def of(  # noqa: PLR0913 (all but one have a name)
    found: Sequence[Variant],
    *,
    base: str | None = None,
    metric: str | Sequence[str] = (),
    confidence: float = stats.CONFIDENCE,
    alpha: float = stats.ALPHA,
    margin: float = stats.MARGIN,
    looks: int = 1,
    seeds: Sequence[int] | None = None,
) -> Comparison:
    """Compare variants that are there; see `fanin.compare`."""
    problems = (
        _range("confidence", confidence, 0.5, 0.999) + _range("alpha", alpha, 0.001, 0.5) + _range("margin", margin, 0.001, 1)
    )
    problems += _range("looks", looks, 1, 100)
    if seeds is not None:
        lacking = [variant.name for variant in found if not set(variant.seeds) & set(seeds)]
        problems += [f"seeds: {name} has no run with one of them" for name in lacking]
        found = [variant.only(seeds) for variant in found] if not lacking else found
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
        problems.extend(_not_compared(line, asked) for line in str(error).splitlines())
    if problems:
        raise CompareError(problems)
    ordered = sorted(found, key=lambda variant: variant.name != (base or names[0]))
    level = alpha / looks
    rows = _rows(ordered, chosen, lambda entry: bool(asked) or entry.headline, (confidence, level, margin))
    changes = variants.differing(ordered)
    told = [*notes.of_seeds(ordered), *notes.of_conditions(ordered), *notes.few(ordered, rows, level)]
    told += [*notes.timeouts(ordered, rows), *notes.hidden(ordered, rows), *notes.averages(ordered, rows, level)]
    return Comparison(tuple(ordered), rows, changes, _warnings(ordered, changes), told, confidence, alpha, margin, looks)


def _not_compared(problem: str, asked: Sequence[str]) -> str:
    """Return what is wrong with a metric that was named; of one that runs have, and that is not compared, just that."""
    from fanin.statistics.stop_metrics import unknown

    name = next((own for own in asked if problem.startswith(f"metric '{own}':")), None)
    if name is None or metrics.of(name) is not None or unknown(name) is not None:
        return problem
    near = difflib.get_close_matches(name, [key for key in metrics.METRICS if "*" not in key], n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"metric '{name}': is a number of runs that is not compared; a sweep's Sweep.values reads it{hint}"


def _told(gap: Difference) -> dict[str, Any]:
    """Return a difference as JSON holds it, with the chance that it is judged by."""
    return {**asdict(gap), "gaps": list(gap.gaps), "p": gap.p, "p_average": gap.p_average}


def _range(name: str, value: float, low: float, high: float) -> list[str]:
    return [] if low <= value <= high else [f"{name}: {value} is out of range; accepted: {low} to {high}"]


def _rows(
    found: Sequence[Variant], chosen: Sequence[Metric], judged: Callable[[Metric], bool], levels: tuple[float, float, float]
) -> tuple[Row, ...]:
    confidence, alpha, margin = levels
    cells: list[list[Cell]] = []
    places: list[tuple[int, int]] = []
    flows = [_Flows(found[0], other, confidence) for other in found[1:]]
    together = Together(found[0], confidence)
    for line, metric in enumerate(chosen):
        limits = confidence, margin, rare.cost(metric, found)
        base = found[0], found[0].values(metric.key)
        own = [Cell(interval(metric, *base, confidence), pooled=together.of(metric))]
        own += [_cell(metric, base, other, flow.of(metric), limits) for other, flow in zip(found[1:], flows, strict=True)]
        cells.append(own)
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
    for (line, at), (verdict, chance, seeds) in zip(asked, said, strict=True):
        cells[line][at] = replace(cells[line][at], verdict=verdict, chance=chance, seeds=seeds)
    for (line, at), (before, there) in again.items():
        judged_before = cells[before][there]
        same_words = {"verdict": judged_before.verdict, "chance": judged_before.chance, "seeds": judged_before.seeds}
        cells[line][at] = replace(cells[line][at], **same_words)  # type: ignore[arg-type]
    for line, at in same:
        cells[line][at] = replace(cells[line][at], verdict="equal")
    for line, at in places:
        cells[line][at] = replace(cells[line][at], why=notes.why(chosen[line], found[0], found[at], cells[line][at]))
    return tuple(Row(metric, tuple(line)) for metric, line in zip(chosen, cells, strict=True))


class _Flows:
    """The flows of a variant and of the base, of the seeds that both have; of all where they have none in common."""

    def __init__(self, base: Variant, other: Variant, confidence: float) -> None:
        self._pair = tuple(Together(variant.only(_common(base, other)), confidence) for variant in (base, other))

    def of(self, metric: Metric) -> tuple[Pooled | None, Pooled | None]:
        base, other = self._pair
        return base.of(metric), other.of(metric)


def _common(base: Variant, other: Variant) -> Sequence[int] | None:
    """Return the seeds that two variants share; None where they share none, and all count."""
    return sorted(set(base.seeds) & set(other.seeds)) or None


def _cell(
    metric: Metric,
    base: tuple[Variant, Mapping[int, float]],
    other: Variant,
    flows: tuple[Pooled | None, Pooled | None],
    limits: tuple[float, float, float],
) -> Cell:
    """Return the number of a variant with that of the base, both over the seeds that their difference is of."""
    (one, every), values = base, other.values(metric.key)
    shared = (every.keys() & values.keys()) if set(one.seeds) & set(other.seeds) else None
    if shared is not None:
        every, values = ({seed: own[seed] for seed in sorted(shared)} for own in (every, values))
    gap = _gap(metric, (one, every), (other, values), limits)
    intervals = [interval(metric, variant, own, limits[0]) for variant, own in ((one, every), (other, values))]
    return Cell(intervals[1], gap, pooled=flows[1], base=intervals[0], base_pooled=flows[0])


def _same(gap: Difference | None) -> bool:
    return gap is not None and gap.p is not None and gap.mean == 0 and gap.low == gap.high == 0


def interval(
    metric: Metric, variant: Variant, values: Mapping[int, float] | None = None, confidence: float = stats.CONFIDENCE
) -> Interval | None:
    """Return the mean of a metric over the runs of a variant, or over values of some, flagged where it is not to be relied on."""
    values = variant.values(metric.key) if values is None else values
    if not values:
        return None
    if metric.key == metrics.TIMED_OUT:
        return stats.share(list(values.values()), confidence=confidence)
    under, counts = variant.conditions, variant.values(metric.counted) if metric.counted else {}
    found = stats.interval(
        list(values.values()),
        confidence=confidence,
        seeds_needed=under.seeds(metric.key),
        limit=metric.limit,
        full=under.full(metric.key),
        unseen_cost=under.unseen_cost(metric.key, min(counts.values(), default=1)),
    )
    return found if variant.seed_matters else replace(found, flag=None)  # what is the same in every run is exact


_Values = tuple[Variant, Mapping[int, float]]


def _gap(metric: Metric, base: _Values, other: _Values, limits: tuple[float, float, float]) -> Difference | None:
    confidence, margin, cost = limits
    (one, values), (two, own) = base, other
    if not values or not own:
        return None
    if metric.key == metrics.TIMED_OUT:
        found = stats.difference_of_shares(values, own, confidence=confidence)
        return found if one.seed_matters or two.seed_matters or found.p is None else _exact(found)
    needed = notes.needed(metric, one, two)
    full = one.conditions.full(metric.key), two.conditions.full(metric.key)
    found = stats.difference(values, own, confidence=confidence, seeds_needed=needed, margin=margin, rare_cost=cost, full=full)
    if min(len(one.runs), len(two.runs)) > 1 and not one.seed_matters and not two.seed_matters:
        return _exact(found)
    return found


def _exact(found: Difference) -> Difference:
    """Return a difference of two variants in which nothing is random: what differs, differs."""
    chance = 0.0 if found.mean else 1.0
    return replace(found, p_mean=chance, p_most=chance, flag=None)


def _warnings(found: Sequence[Variant], changes: Sequence[tuple[str, list[Any]]]) -> list[str]:
    """Return what else than the mechanism under test differs."""
    told = _incomplete(found)
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
    told += [f"{lost}, so it is not compared" for lost in dict.fromkeys(lost for own in found for lost in own.failed_whole)]
    both = _shared_seeds(found)
    ends = {
        variant.name: [run.values.get("total.flows_until_ps", run.sim_ps) for run in variant.runs if run.seed in both]
        for variant in found
    }
    spans = {name: sum(times) / len(times) for name, times in ends.items() if times}
    if spans and max(spans.values()) > (1 + _SPREAD) * min(spans.values()):
        listed = ", ".join(f"{name} {show.duration(span)}" for name, span in spans.items())
        means = "goodput and queues are means until then, and one late flow dilutes both"
        told.append(f"last flows end at different times: {listed}; {means}")
    told += _unfinished(found)
    told += _equal(found, changes)
    return told


def _incomplete(found: Sequence[Variant]) -> list[str]:
    """Say of a sweep that has not ended how many runs are missing, and where."""
    missing = [
        f"{variant.name} {variant.missing:,} of {variant.missing + len(variant.runs) + variant.failed:,}"
        for variant in found
        if variant.missing
    ]
    listed = [*missing, *dict.fromkeys(line for variant in found for line in variant.unfinished)]
    if not listed:
        return []
    later = "numbers and verdicts are of what has ended, and whoever compares again when more has, looks twice"
    return [f"the sweep is not finished, runs are missing: {'; '.join(listed)}; {later}"]


def _left_out(variant: Variant) -> str:
    one = variant.failed == 1
    return f"{variant.name}: {variant.failed} failed run{'' if one else 's'} {'is' if one else 'are'} left out"


_WHY: Final = {
    "duration": "durations differ",
    "topology": "topologies differ",
    "traffic": "traffic differs, so runs with one seed have not the same flows",
    "telemetry": "telemetry differs, so queues are not sampled alike",
}


def _shared_seeds(found: Sequence[Variant]) -> set[int]:
    """Return the seeds that all variants have: others bring other traffic, and differences that are none of the variants'."""
    return set.intersection(*(set(variant.seeds) for variant in found))


def _unfinished(found: Sequence[Variant]) -> list[str]:
    """A variant that completes fewer flows may look fast: what never ended is in no completion time."""
    both = _shared_seeds(found)
    keys = ("total.flows_complete",) if both else ("total.flows_incomplete", "total.flows_aborted")
    means = {}
    for variant in found:
        counts = [sum(variant.values(key).get(seed, 0.0) for key in keys) for seed in (both or variant.seeds)]
        means[variant.name] = sum(counts) / len(counts)
    if max(means.values()) == min(means.values()):
        return []
    listed = ", ".join(f"{name} {show.count(round(mean, 1))}" for name, mean in means.items())
    what = "completed flows" if both else "flows that did not end"
    return [f"numbers of {what} differ: {listed}; completion times leave out flows that did not end"]


def _equal(found: Sequence[Variant], changes: Sequence[tuple[str, list[Any]]]) -> list[str]:
    """Variants that gave the same runs as the first, and what differs between the two."""
    told = []
    for at, variant in enumerate(found[1:], 1):
        pairs = {run.seed: run.fingerprint for run in found[0].runs}
        same = [pairs.get(run.seed) == run.fingerprint != "" for run in variant.runs]
        if all(same):
            own = [key for key, values in changes if values[at] != values[0]]
            more = f" and {len(own) - 3} more" if len(own) > 3 else ""
            what = f"what differs has no effect here ({', '.join(own[:3])}{more})" if own else "nothing differs between them"
            told.append(f"{variant.name} and {found[0].name} gave the same runs, by their fingerprints: {what}")
    return told
