"""``fanin best``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.text import Text

from fanin.cli.asked import end_like_ctrl_c, overridden
from fanin.cli.failures import EXIT_INTERRUPTED, ends_in, failed, failures
from fanin.cli.output import say
from fanin.comparison import Cell, tables
from fanin.comparison.notes import sentence
from fanin.text import show, terminal

if TYPE_CHECKING:
    from fanin.best.candidates import Candidate, Rejected
    from fanin.best.ranking import Best, Place
    from fanin.statistics import Difference, Verdict
    from fanin.statistics.metrics import Metric

EXAMPLE: Final = "fanin best scenarios/incast.toml --only mechanism --seeds 10"


def best(
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO", help="The scenario, a TOML or JSON file.", show_default=False)],
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="NAME", help="Only this policy, part (marking) or pattern; may be repeated."),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a value of the scenario first.")
    ] = None,
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, metavar="N", help="Runs of each at most; a race gives most to the best.")
    ] = 100,
    metric: Annotated[
        str | None, typer.Option("--metric", metavar="METRIC", help="Metric to rank by, for example fct/all.p99_ps.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, metavar="N", help="Simulations at once; one per core if not given.")
    ] = None,
    page: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="FILE", help="Also write one HTML page that compares all policies.")
    ] = None,
    keep: Annotated[Path | None, typer.Option("--keep", metavar="DIR", help="Keep the results in this folder, as a sweep.")] = None,
    list_only: Annotated[
        bool, typer.Option("--list", help="Say what would be tried, and why the rest would not; run nothing.")
    ] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
) -> None:
    """Try every policy that applies to a scenario, as its authors set it, and rank them."""
    from fanin.best import ranking
    from fanin.best.candidates import candidates

    with failures(scenario):
        ends_in(page, ".html", ".htm")
        made = overridden(scenario, settings or [])
        if list_only:
            _list(*candidates(made, only or ()), as_json=as_json)
            return
        end_like_ctrl_c()
        try:
            shown = not quiet and not as_json
            found = ranking.best(made, only=only or (), seeds=seeds, metric=metric, jobs=jobs, keep=keep, progress=shown)
        except KeyboardInterrupt:
            after = f"; what had ended until then is in {keep}, and the same command goes on from there" if keep else ""
            say(f"interrupted; nothing is ranked{after}", "yellow")
            raise typer.Exit(EXIT_INTERRUPTED) from None
        except RuntimeError as error:
            failed(error)
        if page is not None:
            found.comparison.report(page)
    if as_json:
        typer.echo(found.to_json())
    else:
        _show(found)
        if page is not None:
            typer.echo(page)


def _list(good: list[Candidate], bad: list[Rejected], *, as_json: bool) -> None:
    if as_json:
        tried = [{"name": found.name, "part": found.part, "about": found.about, "settings": dict(found.changes)} for found in good]
        typer.echo(json.dumps({"tried": tried, "rejected": [asdict(found) for found in bad]}, ensure_ascii=False))
        return
    out = terminal.console()
    rows: list[list[terminal.Cell]] = [[found.name, found.part, _settings(found)] for found in good]
    terminal.table(out, "Would be tried", ["Policy", "What", "Set"], rows, words={1, 2})
    terminal.table(out, "Would not", ["Policy", "What", "Why"], [[own.name, own.part, own.reason] for own in bad], words={1, 2})


def _settings(found: Candidate) -> str:
    def value(what: Any) -> str:
        return what if isinstance(what, str) else json.dumps(what)

    return ", ".join(f"{path}={value(what)}" for path, what in found.changes.items())


_STYLES: Final = {"better": "green", "worse": "red"}
"""Colours by the word for the side in a verdict."""


def _style(verdict: Verdict | None) -> str:
    return next((style for word, style in _STYLES.items() if word in (verdict or "").split()), "")


def _show(found: Best) -> None:
    out = terminal.console()
    head = ["Policy", "Mean [interval]", "As it is", "Seeds", "Change [interval]", "Verdict"]
    others = found.others_are if any(place.others for place in found.places) else ""
    if others:
        head.append("Others")
    head += ["Unfinished", "Header", "Memory"]
    rows = [_row(place, found.metric, others=bool(others)) for place in found.places]
    terminal.table(out, f"{found.metric.name}, {found.seeds_text}", head, rows)
    out.print(Text(found.text))
    numbers = (number for place in found.places for number in (place.interval, place.change, place.others, place.others_change))
    if any(tables.flagged(number) for number in numbers):
        told = "~: a number whose interval is not to be relied on, for rare runs may decide it or seeds are few; medians are safe"
        out.print(Text(told, style="dim"), soft_wrap=True)
    if any(place.needs is not None for place in found.places):
        told = f"{tables.EXTRAPOLATED}; the same again with more --seeds is a second look"
        out.print(Text(told, style="dim"), soft_wrap=True)
    for why, names in _unjudged(found.places).items():
        out.print(Text(f'"mostly" of {", ".join(names)}: {sentence(why)}', style="dim"), soft_wrap=True)
    for note in found.notes:
        out.print(Text(f"note: {note}", style="dim"), soft_wrap=True)
    for own in (own for own in found.rejected if own.reason.startswith("failed")):
        say(f"{own.name} {own.reason}", "yellow")
    for reason, names in _idle(found.rejected).items():
        out.print(Text(f"not ranked: {', '.join(names)}: {reason}", style="dim"), soft_wrap=True)
    if any(not own.ran for own in found.rejected):
        out.print(Text("fanin best --list says why policies were not tried", style="dim"), soft_wrap=True)


def _unjudged(places: Sequence[Place]) -> dict[str, list[str]]:
    """Return what is better or worse in most runs alone, by the reason why its mean is not judged."""
    names: dict[str, list[str]] = {}
    for place in places:
        if place.why:
            names.setdefault(place.why, []).append(place.name)
    return names


def _idle(rejected: Sequence[Rejected]) -> dict[str, list[str]]:
    """Return what ran without failing, and is not ranked, by its reason."""
    names: dict[str, list[str]] = {}
    for own in rejected:
        if own.ran and not own.reason.startswith("failed"):
            names.setdefault(own.reason, []).append(own.name)
    return names


def _row(place: Place, metric: Metric, *, others: bool) -> list[terminal.Cell]:
    own, interval = place.candidate, place.interval
    spread = _ends(metric, interval.low, interval.high)
    if tables.doubtful(interval):
        spread = f", median {metric.text(interval.median)}{_ends(metric, interval.median_low, interval.median_high)}"
    row: list[terminal.Cell] = [
        Text(f"{place.rank} {place.name}", style="" if own else "bold"),
        f"{'~' * tables.flagged(interval)}{metric.text(interval.mean)}{spread}",
        "" if place.as_it_is is None else tables.mean_text(metric, place.as_it_is),
        str(interval.seeds),
        _change(place, metric),
        Text(_verdict(place), style=_style(place.verdict)),
    ]
    if others:
        moved = place.others_change
        row.append(
            f"{'~' * tables.flagged(place.others)}{show.rate(place.others.mean)}"
            if place.others and moved is None
            else _share(moved)
        )
    row.append(show.count(round(place.incomplete, 1)))
    row.append("" if own is None else _more(own.header_bytes))
    row.append("" if own is None else _more(own.memory_bytes))
    return row


def _ends(metric: Metric, low: float | None, high: float | None) -> str:
    """Return the ends of an interval in brackets; nothing where there is none, or one number."""
    return "" if low is None or high is None or low == high else f" [{metric.text(low)}, {metric.text(high)}]"


def _verdict(place: Place) -> str:
    """Return the verdict; of what is not shown with how many new seeds to plan."""
    cell = Cell(place.interval, place.change, place.verdict, seeds=place.needs)
    return "" if place.verdict is None else tables.verdict_text(cell)


def _more(size: int | None) -> str:
    """Return bytes more or less than in the scenario as it is."""
    return show.size(size) if not size else f"{'+' if size > 0 else '-'}{show.size(abs(size))}"


def _change(place: Place, metric: Metric) -> str:
    """Return the change from the scenario as it is with its interval: relative where it can be, else the difference itself."""
    change = place.change
    if change is None:
        return ""
    tilde = "~" * tables.flagged(change)
    if change.change is None or metric.unit == "share":
        return tilde + tables.moved(metric, change)
    return tilde + _relative(change)


def _relative(change: Difference) -> str:
    """Return a relative change with its interval: in per cent, or as how many times as much."""
    share, low, high = change.change or 0.0, change.change_low, change.change_high
    many = share >= show.TIMES
    ends = "" if low is None or high is None else f" [{', '.join(show.change(end, times=many) for end in (low, high))}]"
    return show.change(share) + ends


def _share(moved: Difference | None) -> str:
    return show.NOTHING if moved is None or moved.change is None else f"{'~' * tables.flagged(moved)}{_relative(moved)}"
