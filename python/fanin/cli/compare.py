"""The command ``fanin compare``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from fanin.cli.failures import ends_in
from fanin.cli.output import say
from fanin.cli.plot import RESULTS, reading, refused
from fanin.statistics import ALPHA, CONFIDENCE, MARGIN

if TYPE_CHECKING:
    from fanin.analysis.change import AnalysisChange
    from fanin.comparison import Comparison

EXAMPLES: Final = (
    "fanin compare k20=out/k20-* k65=out/k65-* -o k.html",
    "fanin compare out/sweep --by switch.marking.k",
    "fanin compare monday.json tuesday.json",
)


def compare(
    results: Annotated[list[str], typer.Argument(metavar="RESULT...", help=RESULTS, show_default=False)],
    by: Annotated[
        list[str] | None,
        typer.Option("--by", metavar="AXIS", help="RESULT is a sweep: its variants by this axis; may be repeated."),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option("--where", metavar="AXIS=VALUE", help="Only runs of the sweep with this value; may be repeated."),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option("--base", metavar="NAME", help="Variant that the others are compared with; the first if not given."),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric", metavar="METRIC", help="Show and judge this alone: an address, pattern or group; may be repeated."
        ),
    ] = None,
    confidence: Annotated[float, typer.Option("--confidence", metavar="SHARE", help="Confidence of the intervals.")] = CONFIDENCE,
    alpha: Annotated[
        float, typer.Option("--alpha", metavar="SHARE", help="Chance that anything is called different where nothing is.")
    ] = ALPHA,
    margin: Annotated[
        float, typer.Option("--margin", metavar="SHARE", help="Relative difference of means that counts as none, if shown.")
    ] = MARGIN,
    seeds: Annotated[
        list[str] | None,
        typer.Option("--seeds", metavar="FIRST:LAST", help="Only these seeds, such as new ones; may be repeated."),
    ] = None,
    looks: Annotated[
        int, typer.Option("--looks", metavar="N", help="How often you mean to look in all; each look has its share of --alpha.")
    ] = 1,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="FILE", help="Also write a page (.html) or everything (.json).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
) -> None:
    """Say which variant is better: intervals over seeds, differences seed by seed, and which of them count.

    Two reports of `fanin analyze -o FILE.json` are compared as before and after, port by port.
    """
    with refused():
        ends_in(out, ".html", ".htm", ".json")
        chosen = dict(map(_chosen, where or []))
        from fanin import files
        from fanin.analysis import change

        if len(results) == 2 and all(map(change.is_report, results)):
            given: dict[str, Any] = {"--by": by, "--where": where, "--base": base, "--metric": metric, "--seeds": seeds}
            changed = {"--confidence": confidence != CONFIDENCE, "--alpha": alpha != ALPHA, "--margin": margin != MARGIN}
            pointless = [option for option, value in {**given, **changed, "--looks": looks != 1}.items() if value]
            if pointless:
                raise ValueError(f"{', '.join(pointless)}: without effect on two analyses, of which each is one trace")
            _show_change(change.between(*results), out, as_json=as_json)
            return
        reports = [path for given in results if change.is_report(path := given.partition("=")[2] or given)]
        if reports:
            how = "reports of analyses are compared in twos, without names: fanin compare BEFORE.json AFTER.json"
            raise ValueError(f"{reports[0]}: {how}")
        from fanin.sweep import compare as comparison

        options: dict[str, Any] = {"base": base, "metric": metric or (), "confidence": confidence, "alpha": alpha}
        options |= {"margin": margin, "looks": looks, "seeds": _seeds(seeds or [])}
        with reading(shown=not as_json) as progress:
            made = comparison.compare(results, by=by or (), where=chosen, progress=progress, **options)
        if out is not None and out.suffix.lower() == ".json":
            files.write_text(out, made.to_json() + "\n")
        elif out is not None:
            made.report(out)
    if as_json:
        typer.echo(made.to_json())
        return
    show(made)
    if out is not None:
        typer.echo(out)


def _show_change(made: AnalysisChange, out: Path | None, *, as_json: bool) -> None:
    """Write and print what changed between two analyses."""
    from rich.text import Text

    from fanin.analysis import page
    from fanin.text import terminal

    if out is not None and out.suffix.lower() == ".json":
        made.to_json(out)
    elif out is not None:
        page.write_change(made, out)
    if as_json:
        typer.echo(made.to_json(), nl=False)
        return
    for warning in made.warnings:
        say(f"warning: {warning}", "yellow")
    console = terminal.console()
    console.print(Text(made.answer, style="bold"), soft_wrap=True)
    for title, content in made.tables():
        terminal.table(console, title, *content)
    console.print(Text(page.ONE_OF_EACH, style="dim"), soft_wrap=True)
    if out is not None:
        typer.echo(out)


def _chosen(text: str) -> tuple[str, str]:
    axis, equals, value = text.partition("=")
    if not equals or not axis:
        raise ValueError(f"--where {text}: is not of the form AXIS=VALUE")
    return axis, value


def _seeds(texts: list[str]) -> list[int] | None:
    """Return the seeds of ranges; None where all are meant."""
    found: list[int] = []
    for text in texts:
        first, colon, last = text.partition(":")
        if not first.isdecimal() or not (last if colon else first).isdecimal() or int(first) > int(last if colon else first):
            raise ValueError(f"--seeds {text}: is no range of seeds; accepted: FIRST:LAST, both included, or one seed")
        found += range(int(first), int(last if colon else first) + 1)
    return found or None


def show(made: Comparison) -> None:
    """Print a comparison: warnings and notes to standard error, tables to standard output."""
    from rich.text import Text

    from fanin.comparison import tables
    from fanin.text import terminal

    for warning in made.warnings:
        say(f"warning: {warning}", "yellow")
    for note in made.notes:
        say(f"note: {note}", "cyan")
    console = terminal.console()
    if made.differing:
        terminal.table(console, "What differs", *tables.differing_rows(made), words=set(range(1, len(made.variants) + 1)))
    tones = {"differs": "yellow"}
    tones |= dict.fromkeys(("better", "better on average", "mostly better"), "green")
    tones |= dict.fromkeys(("worse", "worse on average", "mostly worse"), "red")
    for at, variant in enumerate(made.variants[1:], start=1):
        title = f"{variant.name} against {made.base.name}: {tables.counted(made, variant.name)}"
        console.print(Text(title, style="bold"), soft_wrap=True)
        for section, (head, rows) in tables.tables(made, at):
            cells: list[list[str | Text]] = [[*row[:-1], Text(row[-1], style=tones.get(row[-1], ""))] for row in rows]
            terminal.table(console, section, head, cells)
    console.print(Text(tables.rule(made), style="dim"), soft_wrap=True)
