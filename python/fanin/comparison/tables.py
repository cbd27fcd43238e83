"""Comparisons as tables: the same rows for the terminal, the notebook and the page."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, Final

from fanin.comparison import together
from fanin.statistics import Interval, metrics
from fanin.text import show

if TYPE_CHECKING:
    from fanin.comparison import Cell, Comparison, Row
    from fanin.statistics import Difference, Pooled, Verdict
    from fanin.statistics.metrics import Metric


def change_text(metric: Metric, cell: Cell) -> str:
    """Return how much a variant differs from the base: relative with its interval where it can be, else absolute.

    Shares differ by points. A tilde stands before a change that is not to be relied on.
    """
    gap = cell.difference
    return show.NOTHING if gap is None else f"{'~' * flagged(gap)}{moved(metric, gap)}"


def moved(metric: Metric, gap: Difference) -> str:
    """Return a difference with its interval, without a tilde."""
    if metric.unit == "share":
        ends = "" if gap.low is None or gap.high is None else f" [{_points(gap.low)}, {_points(gap.high)}]"
        return f"{_points(gap.mean)} points{ends}"
    if gap.change is None or (gap.low is not None and gap.change_low is None):
        ends = "" if gap.low is None else f" [{signed(metric, gap.low)}, {signed(metric, gap.high)}]"
        return signed(metric, gap.mean) + ends
    ends = (
        "" if gap.change_low is None or gap.change_high is None else f" [{_percent(gap.change_low)}, {_percent(gap.change_high)}]"
    )
    return f"{_percent(gap.change)}%{ends}"


def _points(share: float) -> str:
    """Return a difference of shares in percentage points: there is none of more than a hundred."""
    return f"{100 * max(-1.0, min(1.0, share)):+.3g}" if round(100 * share, 6) else "0"


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
    if metric.unit == "share":
        return f"{_points(value)} points"
    sign = "+" if value > 0 else "-" if value < 0 else ""
    return sign + metric.text(abs(value))


def interval_text(metric: Metric, cell: Cell) -> str:
    """Return a mean with its interval; of a mean that is not to be relied on the median with its."""
    found = cell.interval
    if found is None:
        return show.NOTHING
    if doubtful(found):
        none = found.median_low is None or found.median_high is None
        ends = "" if none else f" [{metric.text(found.median_low)}, {metric.text(found.median_high)}]"
        least, most = metric.text(found.least), metric.text(found.most)
        return f"~{metric.text(found.mean)}, median {metric.text(found.median)}{ends}, {least} to {most}; {found.note}"
    ends = "" if found.low is None or found.low == found.high else f" [{metric.text(found.low)}, {metric.text(found.high)}]"
    few = f"; {found.note}" if flagged(found) else ""
    return f"{'~' * flagged(found)}{metric.text(found.mean)}{ends}{few}"


def doubtful(found: Interval | Pooled | None) -> bool:
    """Return whether a few runs decide a mean, so that its median stands beneath it; not where all runs have the same value."""
    equal = isinstance(found, Interval) and found.least == found.most
    return found is not None and found.flag in ("rare", "skewed", "limit") and not equal


def flagged(found: Interval | Pooled | Difference | None) -> bool:
    """Return whether the interval of a number is not to be relied on, for whatever reason; a tilde says so."""
    return found is not None and found.flag is not None


def verdict_text(cell: Cell) -> str:
    """Return what is said of a difference, and of what is not shown how many new seeds might show it; a dash for the base."""
    return (cell.verdict or show.NOTHING) + (f" ({plan_text(cell)})" if cell.seeds is not None else "")


def plan_text(cell: Cell) -> str:
    """Return how many new seeds might show what is not shown, as these extrapolate, and whether they would show "mostly" alone."""
    if cell.seeds is None:
        return ""
    mostly = cell.difference is not None and cell.difference.rare
    some = f"some {rounded(cell.seeds)}"
    return f"mostly: {some}?" if mostly else f"{some} seeds?"


def rounded(seeds: int) -> str:
    """Return a number of seeds that was extrapolated: two digits, rounded up."""
    step = 10 ** max(0, len(str(seeds)) - 2)
    return f"{-(-seeds // step) * step:,}"


EXTRAPOLATED: Final = (
    '"some 40 seeds?": an extrapolation, so many new ones might show it, if all goes on as these say; where that is too many, one '
    "named metric takes fewer (--metric), the median run may do, or it stays not shown"
)
"""What a number of new seeds is worth, for all who show one."""


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
        lines = []
        for row in rows:
            cell = row.cells[at]
            means = [mean_text(row.metric, found) for found in pair(row, at)]
            own = [[row.metric.title, *means, change_text(row.metric, cell), cell.verdict or show.NOTHING]]
            if any(doubtful(found) for found in pair(row, at)):
                own.append(_medians(row, at))
            told = [*sides_text(cell).split(", "), *textwrap.wrap(f"mean: {cell.why}" if cell.why else "", _WRAP)]
            own += [[f"  {words}", "", "", "", ""] for words in told if words]
            if cell.seeds is not None:  # beneath the verdict
                own += [["", "", "", "", ""]] if len(own) == 1 else []
                own[1][-1] = plan_text(cell)
            if any(_pooled(row, at)):
                own.append([f" {together.words(row.metric)}", *together_texts(row, at), ""])
                own += [[f"    {word}", *_ends(row, at, end), "", ""] for word, end in (("from", "low"), ("to", "high"))]
            lines += own
        made.append((section, (head, lines)))
    return made


def pair(row: Row, at: int) -> tuple[Interval | None, Interval | None]:
    """Return the numbers of the base and of a variant, both over the seeds that their difference is of."""
    cell = row.cells[at]
    return (cell.base if cell.base is not None else row.cells[0].interval), cell.interval


def sides_text(cell: Cell) -> str:
    """Return in how many seeds a variant is lower or higher, where its verdict is not of mean and most runs alike."""
    gap = cell.difference
    if gap is None or not gap.paired or cell.verdict not in _ONE_SIDED:
        return ""
    return sides(gap)


def sides(gap: Difference) -> str:
    """Return in how many seeds a variant is lower, higher and equal; without pairs in how many pairs of runs."""
    equal = gap.seeds - gap.lower - gap.higher if gap.paired else 0
    told = [f"{way} in {count:,}" for way, count in (("lower", gap.lower), ("higher", gap.higher), ("equal", equal)) if count]
    return f"{', '.join(told)} of {f'{gap.seeds:,}' if gap.paired else 'all pairs of runs'}"


_WRAP: Final = 18
"""Characters of a line beneath a metric, so that tables have eighty columns."""

_ONE_SIDED: Final = ("mostly better", "mostly worse", "better on average", "worse on average")


def mean_text(metric: Metric, found: Interval | None) -> str:
    """Return a mean, with a tilde before one that is not to be relied on."""
    return show.NOTHING if found is None else f"{'~' * flagged(found)}{metric.text(found.mean)}"


def _medians(row: Row, at: int) -> list[str]:
    """Return the row of medians below that of a mean that is not to be relied on."""
    one, two = pair(row, at)
    middle = [show.NOTHING if found is None else row.metric.text(found.median) for found in (one, two)]
    change = ""
    if one is not None and two is not None:
        relative = one.median > 0 and row.metric.unit != "share"
        change = f"{_percent(two.median / one.median - 1)}%" if relative else signed(row.metric, two.median - one.median)
    return ["  median run", *middle, change, ""]


def together_texts(row: Row, at: int) -> tuple[str, str, str]:
    """Return the percentile of all flows together, of the base and of a variant, and the change."""
    one, two = _pooled(row, at)
    change = f"{_percent(two.value / one.value - 1)}%" if one and two and one.value > 0 else ""
    shown = [f"{'~' * flagged(found)}{row.metric.text(found.value)}" if found else show.NOTHING for found in (one, two)]
    return shown[0], shown[1], change


def _pooled(row: Row, at: int) -> tuple[Pooled | None, Pooled | None]:
    cell = row.cells[at]
    return (cell.base_pooled if cell.base_pooled is not None else row.cells[0].pooled), cell.pooled


def _ends(row: Row, at: int, end: str) -> list[str]:
    """Return an end of the interval of that percentile, of the base and of a variant."""
    values = [getattr(found, end, None) for found in _pooled(row, at)]
    return [show.NOTHING if value is None else row.metric.text(value) for value in values]


def differing_rows(comparison: Comparison) -> tuple[list[str], list[list[str]]]:
    """Return head and rows of the table of settings that differ."""
    head = ["Setting", *(variant.name for variant in comparison.variants)]
    return head, [[key, *(_value(value) for value in column)] for key, column in comparison.differing]


def _value(value: Any) -> str:
    return show.NOTHING if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def counted(comparison: Comparison, name: str) -> str:
    """Return how often a variant is better, worse and neither, in words."""
    verdicts: tuple[Verdict, ...] = (
        "better",
        "better on average",
        "mostly better",
        "worse",
        "worse on average",
        "mostly worse",
        "differs",
        "no difference",
        "not shown",
        "equal",
        "one seed",
        "no data",
    )
    told = [(comparison.count(name, verdict), verdict) for verdict in verdicts]
    words: dict[str, str] = {
        "differs": "different",
        "no difference": "without a difference",
        "equal": "equal in each run",
        "one seed": "with one seed",
        "no data": "without data",
    }
    return ", ".join(f"{count} {words.get(verdict, verdict)}" for count, verdict in told if count) or "nothing judged"


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


def _tests(comparison: Comparison) -> str:
    """Return by which tests was judged: those of pairs, those of runs without a common seed, or both."""
    judged = {cell.difference for row in comparison.rows for cell in row.cells if cell.chance is not None}
    paired = {found.paired for found in judged if found is not None}
    words = {True: "exact tests by seed", False: "permutation and rank tests of unpaired runs"}
    return " and ".join(words[pairs] for pairs in (True, False) if pairs in paired)


def rule(comparison: Comparison) -> str:
    """Return how many differences were judged, how sure that is, and what signs and numbers of seeds mean."""
    judged = comparison.judged
    if not judged and any(cell.verdict == "equal" for row in comparison.rows for cell in row.cells):
        return "Nothing was judged: what would be is equal in each run."
    if not judged:
        return "Nothing was judged: that takes two seeds of each variant, or more."
    chance, covers = f"{100 * comparison.alpha:.3g} %", f"{100 * comparison.confidence:.3g} %"
    looks = f", over all {comparison.looks} looks that are planned together" if comparison.looks > 1 else ""
    points = ", of shares in percentage points" if any(row.metric.unit == "share" for row in comparison.rows) else ""
    planned = any(cell.seeds is not None for row in comparison.rows for cell in row.cells)
    further = f" {EXTRAPOLATED}." if planned else ""
    return (
        f"{show.many(judged, 'difference')} judged together: where nothing differs, the chance that any is called better or "
        f"worse is {chance} ({_tests(comparison)}, Holm){looks}. Changes are of means, with {covers} intervals{points}; ~: not to "
        f"be relied on; a dash: not judged; docs/compare.md says what verdicts mean.{few_values(comparison)}{further}"
    )
