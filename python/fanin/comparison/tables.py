"""Comparisons as tables: the same rows for the terminal, the notebook and the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fanin.statistics import metrics, stats
from fanin.text import show

if TYPE_CHECKING:
    from fanin.comparison import Cell, Comparison, Row
    from fanin.statistics.metrics import Metric
    from fanin.statistics.stats import Verdict

__all__ = ["change_text", "differing_rows", "interval_text", "signed", "tables", "verdict_text"]


def change_text(metric: Metric, cell: Cell) -> str:
    """Return how much a variant differs from the base: relative with its interval where it can be, else absolute."""
    gap = cell.difference
    if gap is None:
        return show.NOTHING
    if gap.change is None or (gap.low is not None and gap.change_low is None):
        ends = "" if gap.low is None else f" [{signed(metric, gap.low)}, {signed(metric, gap.high)}]"
        return signed(metric, gap.mean) + ends
    ends = (
        "" if gap.change_low is None or gap.change_high is None else f" [{_percent(gap.change_low)}, {_percent(gap.change_high)}]"
    )
    return f"{_percent(gap.change)}%{ends}"


def _percent(share: float) -> str:
    """Return a share in per cent with a sign: whole from ten on, with two places behind the point below a tenth."""
    percent = 100 * share
    digits = 0 if abs(percent) >= 9.95 else 1 if abs(percent) >= 0.095 else 2
    text = f"{percent:+,.{digits}f}"
    return text if float(text.replace(",", "")) else "0"


def signed(metric: Metric, value: float | None) -> str:
    """Return a difference with its sign and unit."""
    if value is None:
        return show.NOTHING
    sign = "+" if value > 0 else "-" if value < 0 else ""
    return sign + metric.text(abs(value))


def interval_text(metric: Metric, cell: Cell) -> str:
    """Return a mean with its interval."""
    found = cell.interval
    if found is None:
        return show.NOTHING
    ends = "" if found.low is None or found.low == found.high else f" [{metric.text(found.low)}, {metric.text(found.high)}]"
    return metric.text(found.mean) + ends


def verdict_text(cell: Cell) -> str:
    """Return what is said of a difference; a dash for the base."""
    return cell.verdict or show.NOTHING


def shown(comparison: Comparison) -> list[tuple[str, list[Row]]]:
    """Return headings with their rows, those left out that are zero in every variant."""
    listed = [
        (section, [row for row in comparison.rows if row.metric.section == section and not row.empty])
        for section in metrics.SECTIONS
    ]
    return [(section, rows) for section, rows in listed if rows]


def tables(comparison: Comparison, at: int) -> list[tuple[str, tuple[list[str], list[list[str]]]]]:
    """Return the tables of one variant against the base: heading, head and rows.

    Parameters
    ----------
    comparison : Comparison
        What was compared.
    at : int
        Place of the variant among ``comparison.variants``, from 1.
    """
    head = ["Metric", "Base", "Variant", "Change", "Verdict"]
    made = []
    for section, rows in shown(comparison):
        lines = [
            [
                row.metric.title,
                *(_mean(row, place) for place in (0, at)),
                change_text(row.metric, row.cells[at]),
                verdict_text(row.cells[at]),
            ]
            for row in rows
        ]
        made.append((section, (head, lines)))
    return made


def _mean(row: Row, at: int) -> str:
    found = row.cells[at].interval
    return show.NOTHING if found is None else row.metric.text(found.mean)


def differing_rows(comparison: Comparison) -> tuple[list[str], list[list[str]]]:
    """Return head and rows of the table of settings that differ."""
    head = ["Setting", *(variant.name for variant in comparison.variants)]
    return head, [[key, *(_value(value) for value in column)] for key, column in comparison.differing]


def _value(value: Any) -> str:
    return show.NOTHING if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def counted(comparison: Comparison, name: str) -> str:
    """Return how often a variant is better, worse and neither, in words."""
    verdicts: tuple[Verdict, ...] = ("better", "worse", "differs", "no difference", "too few seeds", "equal", "one seed", "no data")
    told = [(comparison.count(name, verdict), verdict) for verdict in verdicts]
    words: dict[str, str] = {
        "differs": "different",
        "too few seeds": "with too few seeds",
        "equal": "equal in each run",
        "one seed": "with one seed",
        "no data": "without data",
    }
    return ", ".join(f"{count} {words.get(verdict, verdict)}" for count, verdict in told if count) or "nothing judged"


def coverage(comparison: Comparison) -> str:
    """Return how often intervals of changes hold the true value: as asked for, or less where they are ranges of few seeds."""
    gaps = (cell.difference for row in comparison.rows for cell in row.cells)
    found = {gap.covers for gap in gaps if gap is not None and gap.covers is not None} or {comparison.confidence}
    return " or ".join(f"{100 * share:.3g} %" for share in sorted(found, reverse=True))


_PERCENTILE: Final = 100
"""Values that a 99th percentile needs to be another than the largest."""


def few_values(comparison: Comparison) -> str:
    """Return which 99th percentiles are the largest value, in a sentence; empty where none is."""
    told = []
    for group, count, words in (("fct/all", "total.flows_complete", "flows"), ("queries", "queries.complete", "queries")):
        shown = any(row.metric.key == f"{group}.p99_ps" for row in comparison.rows)
        found = [value for variant in comparison.variants for value in variant.values(count).values() if value]
        if shown and found and min(found) < _PERCENTILE:
            told.append(f"{words} ({min(found):,.0f} here)")
    return f" The p99 of fewer than {_PERCENTILE} values is the largest one: of {' and '.join(told)}." if told else ""


def rule(comparison: Comparison) -> str:
    """Return what the verdicts mean, in a few sentences."""
    judged = comparison.judged
    if not judged and any(cell.verdict == "equal" for row in comparison.rows for cell in row.cells):
        return "Nothing was judged: what would be is equal in each run."
    if not judged:
        return "Nothing was judged: that takes two seeds of each variant, or more."
    chance, covers = f"{100 * comparison.alpha:.3g} %", coverage(comparison)
    few = ""
    if any(cell.verdict == "too few seeds" for row in comparison.rows for cell in row.cells):
        few = f'"Too few seeds": fewer than {stats.FEW} show no difference, and would hardly show one; their intervals are ranges. '
    return (
        f"{show.many(judged, 'difference')} judged together: where nothing differs, the chance that any is called better or "
        f'worse is {chance} (Holm). "No difference": these seeds show none. {few}Change: of the mean, with its {covers} '
        f"interval, each for itself. A dash: not judged; --metric judges it.{few_values(comparison)}"
    )
