"""The command ``fanin whatif``: its options, and what it writes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Final, Unpack

import typer
from rich.text import Text

from fanin.analysis.settings import Settings
from fanin.cli.analyze import with_settings
from fanin.cli.asked import as_setting, end_like_ctrl_c
from fanin.cli.failures import EXIT_FAILED, ends_in, failures
from fanin.cli.output import say
from fanin.text import terminal

EXAMPLES: Final = (
    "fanin whatif queue.csv --rate 10Gbps --rtt 40us --buffer 512KB -o out/whatif",
    "fanin whatif before.pcap --behind behind.pcap --rate 1Gbps --below 200KB",
)


@with_settings
def whatif(
    bursts: Annotated[
        list[Path],
        typer.Argument(
            metavar="BURSTS...",
            help="A trace as fanin analyze reads it, or a report that it wrote with -o FILE.json, or the folder of one.",
            show_default=False,
        ),
    ],
    *,
    scenario: Annotated[
        Path | None,
        typer.Option("--scenario", metavar="MODEL", help="The model of the port; what the trace itself says if not given."),
    ] = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="NAME", help="The port of MODEL that was measured; its busiest if not given.")
    ] = None,
    known: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="What is known of the model, for example switch.buffer.per_port=512KB."),
    ] = None,
    goal: Annotated[
        str | None,
        typer.Option(
            "--goal", metavar="drops|peak|time", help="What is asked for; drops if there were any, else the end of the last flow."
        ),
    ] = None,
    below: Annotated[str | None, typer.Option("--below", metavar="SIZE", help="A queue to stay below: the goal is peak.")] = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="NAME", help="Only this setting, part (buffer) or pattern; may be repeated."),
    ] = None,
    members: Annotated[int, typer.Option("--members", metavar="N", help="Members of the ensemble, 6 or more.")] = 20,
    seed: Annotated[int, typer.Option("--seed", min=0, metavar="N", help="Seed of all draws.")] = 1,
    largest: Annotated[
        bool, typer.Option("--largest", help="Samples are the largest queue since the one before (watermarks).")
    ] = False,
    jobs: Annotated[int | None, typer.Option("--jobs", metavar="N", help="Simulations at once; one per core if not given.")] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="DIR", help="Also write JSON, a page in Markdown and scenarios into DIR.")
    ] = None,
    to_scenario: Annotated[
        Path | None,
        typer.Option("--to-scenario", metavar="FILE", help="Also write the model with the best setting as a scenario (.toml)."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a folder or a scenario that is there.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress, no tables: the conclusion alone.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
    **settings: Unpack[Settings],
) -> None:
    """Say which setting would have helped a measured burst, what it costs, and how sure that is."""
    from fanin.remedy import whatif as ask

    given: dict[str, Any] = {name: value for name, value in settings.items() if value not in ([], None)}
    with failures(scenario):
        _check(bursts, scenario, out, to_scenario, force=force)
        pinned = dict(as_setting(text) for text in known or [])
        end_like_ctrl_c()
        shown = not quiet and not as_json and sys.stderr.isatty()
        found = ask(
            [str(path) for path in bursts],
            scenario=scenario,
            at=at,
            known=pinned,
            goal=goal,  # type: ignore[arg-type]
            below=below,
            only=only or (),
            members=members,
            seed=seed,
            largest=largest,
            jobs=jobs,
            told_of=(lambda words: say(words, "dim")) if shown else None,
            **given,
        )
        written = [] if out is None else found.write(out)
        if to_scenario is not None and found.best is not None:
            written.append(found.to_scenario(to_scenario))
    if as_json:
        typer.echo(found.to_json())
    else:
        _show(found, tables=not quiet)
        if to_scenario is not None and found.best is None:
            say(f"{to_scenario}: not written, for there is no remedy", "yellow")
        for path in written:
            typer.echo(path)
    if not found.answered:
        raise typer.Exit(EXIT_FAILED)


def _check(bursts: list[Path], scenario: Path | None, out: Path | None, to_scenario: Path | None, *, force: bool) -> None:
    """Refuse files that are not there or could not be written, all at once.

    Raises
    ------
    ValueError
        All of them, with the reasons.
    """
    wrong = [f"{path}: is not there" for path in bursts if str(path) != "-" and not path.exists()]
    if scenario is not None and not scenario.is_file():
        wrong.append(f"--scenario {scenario}: is no file; accepted: a scenario, TOML or JSON")
    if out is not None and out.exists() and (not out.is_dir() or (any(out.iterdir()) and not force)):
        wrong.append(f"--out {out}: is there already, and is not an empty folder; --force writes into a folder")
    try:
        ends_in(to_scenario, ".toml", option="--to-scenario")
    except ValueError as error:
        wrong.append(str(error))
    if to_scenario is not None and to_scenario.is_file() and not force:
        wrong.append(f"--to-scenario {to_scenario}: is there already; --force replaces it")
    if wrong:
        raise ValueError("; ".join(wrong))


def _show(found: Any, *, tables: bool) -> None:
    from fanin.remedy.answer import HEAD, rows
    from fanin.remedy.page import SEEN_HEAD, seen_rows

    out = terminal.console()
    out.print(Text(found.text, style="bold" if found.best is not None else "yellow"), soft_wrap=True)
    if not tables:
        return
    if found.remedies:
        terminal.table(out, f"What would have helped {found.port}", list(HEAD), rows(found), words={0})
    terminal.table(out, "The model as it is", list(SEEN_HEAD), seen_rows(found), words={0})
    out.print(Text(f"model: {found.model.how}; drawn over {', '.join(found.over)}", style="dim"), soft_wrap=True)
    for words in found.model.unsure:
        out.print(Text(f"not in the trace, and taken so: {words}", style="dim"), soft_wrap=True)
    for note in found.notes:
        out.print(Text(f"note: {note}", style="dim"), soft_wrap=True)
    for own in found.rejected:
        out.print(Text(f"not tried: {own.name}: {own.reason}", style="dim"), soft_wrap=True)
