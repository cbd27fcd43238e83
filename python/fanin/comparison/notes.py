"""What is said beside a comparison: of numbers of seeds, of rare runs, and why a mean is not judged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from fanin import statistics as stats
from fanin.comparison import rare, tables
from fanin.statistics import exact, tried
from fanin.text import show

if TYPE_CHECKING:
    from fanin.comparison import Cell, Row
    from fanin.comparison.variants import Variant
    from fanin.statistics.metrics import Metric

_NAMED: Final = 6
"""Variants that are named where a note is of several; of more, how many."""


def why(metric: Metric, base: Variant, other: Variant, cell: Cell) -> str:
    """Return why the mean of a difference is not judged, of which it is said what most of the runs do; else nothing."""
    gap = cell.difference
    if gap is None or cell.verdict not in ("mostly better", "mostly worse"):
        return ""
    least = needed(metric, base, other)
    if gap.flag == "few":
        return f"judged from {stats.FEW} seeds on"
    if gap.flag == "limit":
        return "the buffer was full in nearly all"
    if gap.flag == "skewed":
        return "few seeds differ from the rest, and decide it"
    if least is None:
        return metric.never
    return f"judged from {least} seeds on" if gap.seeds < least else "runs that none showed may undo it"


def needed(metric: Metric, *found: Variant) -> int | None:
    """Return with how many seeds the mean of a metric's differences between variants is reliable at the earliest."""
    return tried.together(variant.conditions for variant in found).seeds_of_differences(metric.key)


def sentence(why: str) -> str:
    """Return a reason why a mean is not judged as a sentence of its own."""
    if why.startswith("judged"):
        return f"such a mean is {why}"
    return why.replace("decides it", "decides the mean").replace("decide it", "decide the mean").replace("undo it", "undo the mean")


def of_seeds(found: Sequence[Variant]) -> list[str]:
    """Return what is to be said of numbers of seeds."""
    notes = []
    for variant in found:
        seeds = len(variant.runs)
        if not variant.seed_matters:
            notes.append(f"{variant.name}: the seed changes nothing, all {seeds} runs are the same; its numbers are exact")
        elif seeds == 1:
            notes.append(f"{variant.name}: one seed, so no interval, and no verdict; run more seeds")
        elif seeds < stats.FEW:
            notes.append(
                f"{variant.name}: {seeds} seeds; fewer than {stats.FEW} have intervals that may hold the true value too seldom, "
                'and no mean is judged: "mostly" is all that is said'
            )
    base = found[0]
    for variant in found[1:]:
        shared = set(base.seeds) & set(variant.seeds)
        if not shared:
            notes.append(f"{variant.name} and {base.name} have no seed in common: differences are not paired, and wider for it")
        elif len(shared) < max(len(base.seeds), len(variant.seeds)):
            common = f"{show.many(len(shared), 'seed')} in common, and are compared over {_these(len(shared))} alone"
            left = [f"{len(own.seeds) - len(shared)} of {own.name}" for own in (variant, base) if len(own.seeds) > len(shared)]
            notes.append(f"{variant.name} and {base.name} have {common}; left out: {' and '.join(left)}")
    return notes


def of_conditions(found: Sequence[Variant]) -> list[str]:
    """Return what is otherwise than in the runs that numbers of seeds were chosen on."""
    told: dict[str, list[str]] = {}
    for variant in found:
        if len(variant.runs) > 1 and variant.seed_matters and variant.conditions.note:
            told.setdefault(variant.conditions.note, []).append(variant.name)
    return [f"{_listed(names, len(found))}: {note}" for note, names in told.items()]


def _listed(names: Sequence[str], of: int) -> str:
    """Return names; of many how many they are."""
    many = len(names) > _NAMED
    return f"all {of} variants" if many and len(names) == of else f"{len(names)} of {of} variants" if many else ", ".join(names)


def _these(seeds: int) -> str:
    return "this one" if seeds == 1 else "these"


def few(found: Sequence[Variant], rows: Sequence[Row], alpha: float) -> list[str]:
    """Say where there are too few seeds for anything to be shown."""
    judged = [cell.difference for row in rows for cell in row.cells if cell.chance is not None and cell.difference is not None]
    most = max((gap.seeds for gap in judged if gap.paired), default=0)
    least = exact.least(alpha / max(1, len(set(judged))))
    if not most or most >= least or not any(variant.seed_matters for variant in found):
        return []
    differences = show.many(len(set(judged)), "difference")
    return [f"{most} seeds cannot show any of {differences} judged together: exact tests take {least}, all on one side"]


def timeouts(found: Sequence[Variant], rows: Sequence[Row], others: Sequence[Variant] = ()) -> list[str]:
    """Say in how many runs there were timeouts, where a mean is not to be relied on for them; of others only if they had any."""
    flagged = any(cell.interval is not None and cell.interval.flag == "rare" for row in rows for cell in row.cells)
    counts = {variant.name: list(variant.values("total.timeouts").values()) for variant in found if len(variant.runs) > 1}
    counts = {name: values for name, values in counts.items() if values}
    if not flagged or not counts:
        return []
    had = {other.name: list(other.values("total.timeouts").values()) for other in (*found, *others)}
    had = {name: values for name, values in had.items() if any(values)}
    if not any(name in counts for name in had):
        seeds = min(map(len, counts.values()))
        unseen = f"{seeds} seeds say that fewer than {100 * stats.unseen(seeds):.2g} % of runs do"
        if not had:
            return [f"no run had a timeout; {unseen}"]
        named = [f"{name} {sum(value > 0 for value in values)} of {len(values)}" for name, values in had.items()]
        more = f"; and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
        return [
            f"no run of {' or '.join(counts)} had a timeout; {unseen}",
            f"runs of others with timeouts: {'; '.join(named[:_NAMED])}{more}",
        ]
    told = []
    for name, values in counts.items():
        some = stats.share(values)
        ends = "" if some.low is None or some.high is None else f", so {percent(some.low)} to {percent(some.high)} % of runs do"
        told.append(f"{name} {sum(value > 0 for value in values)} of {len(values)}{ends}")
    return [f"runs with timeouts: {'; '.join(told)}"]


_SHIFT: Final = 3
"""Metrics that a note lists where a mean moved and nothing is shown; of more, how many."""


def averages(found: Sequence[Variant], rows: Sequence[Row], alpha: float) -> list[str]:
    """Say where a mean moved further than chance does, taken for itself, and the verdict does not say so."""
    told: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        for variant, cell in zip(found[1:], row.cells[1:], strict=True):
            gap = cell.difference
            if gap is None or gap.p_mean is None or cell.chance is None or gap.p_mean > alpha or not gap.mean:
                continue
            against = gap.mean * (gap.higher - gap.lower) < 0
            if not against and gap.p_most is not None and gap.p_most <= alpha:
                continue  # most of the runs moved with it
            least = needed(row.metric, found[0], variant)
            if cell.verdict in ("mostly better", "mostly worse") and against:
                reason = "mostly"
            elif cell.verdict != "not shown":
                continue
            elif gap.flag == "rare" and least is not None and gap.seeds < least:
                reason = f"{least}"
            else:
                reason = "few" if gap.flag == "few" else "flagged" if gap.rare else "others"
            moved = f"{row.metric.name} {'higher' if gap.mean > 0 else 'lower'}: {tables.sides(gap)}"
            told.setdefault((variant.name, reason), []).append(moved)
    return [_average_note(name, reason, listed) for (name, reason), listed in told.items()]


def _average_note(name: str, reason: str, listed: Sequence[str]) -> str:
    shown = "; ".join(listed[:_SHIFT]) + (f"; and {len(listed) - _SHIFT} more" if len(listed) > _SHIFT else "")
    moved = f"{name}: the mean moved ({shown})"
    look = "read the median run, and in how many runs there was a timeout (total.timed_out)"
    if reason == "mostly":
        return f"{moved}, and most of the runs that differ went the other way: the verdict is of these; {look}"
    if reason == "flagged":
        return f"{moved}, but a few runs decide it, and that most of the runs did is not shown; {look}"
    if reason == "others":
        return f"{moved}, by more than chance alone does to one number, but not to as many as are judged together: not shown"
    judged = stats.FEW if reason == "few" else reason
    return f"{moved}; that most of the runs did is not shown, and such a mean is judged from {judged} seeds on; {look}"


def percent(share: float) -> str:
    """Return a share in per cent with two digits, all of them as 100."""
    return "100" if share >= 0.995 else f"{100 * share:.2g}"


def hidden(found: Sequence[Variant], rows: Sequence[Row]) -> list[str]:
    """Say of which differences runs that no seed showed could make up for the mean, so that it is not called better or worse."""
    told = []
    for row in rows:
        gaps = [
            cell.difference
            for cell in row.cells
            if cell.difference is not None and cell.verdict in ("mostly better", "mostly worse") and cell.difference.flag == "rare"
        ]
        if needed(row.metric, *found) == stats.RARE and gaps and min(gap.seeds for gap in gaps) >= stats.RARE:
            seeds = min(gap.seeds for gap in gaps)
            missed, cost = 100 * stats.unseen(seeds, stats.UNSEEN), row.metric.text(rare.cost(row.metric, found))
            told.append(
                f"{row.metric.name}, mostly: {seeds} seeds may all have missed up to {missed:.2g} % of the runs; were these {cost} "
                "worse, as the worst that was seen or as one timeout, the means could be equal"
            )
    return told
