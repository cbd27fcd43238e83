"""What commands print: tables and sentences to standard output, notes, warnings and errors to standard error."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer
from rich.console import Console
from rich.text import Text

from fanin.tables import counters, overview
from fanin.text import show, terminal

if TYPE_CHECKING:
    from fanin import reproduce
    from fanin.analysis import Analysis, AnalysisProgress
    from fanin.analysis.port_scenario import PortScenario
    from fanin.results import Result
    from fanin.scenario import Problem


def say(text: str, style: str = "") -> None:
    """Print a line to standard error."""
    with suppress(OSError):  # a terminal that is gone: the exit status still reports it
        Console(stderr=True).print(Text(text, style=style), soft_wrap=True)


def say_problem(problem: Problem, file: Path | None) -> None:
    """Print what is wrong with a scenario, or probably is."""
    style = "red" if problem.severity == "error" else "yellow"
    say(f"{problem.severity}: {f'{file}: ' if file else ''}{problem}", style)


def show_summary(result: Result) -> None:
    """Print the tables of a run to standard output."""
    console = terminal.console()
    made = result.manifest
    console.print(Text(f"{made.get('name', '')}  seed {made.get('seed')}  fingerprint {result.fingerprint}", style="bold"))
    tones = {"bad": "red", "good": "green"}
    facts = overview.facts(result.summary, result.manifest)
    terminal.facts(console, [(Text(f.name), Text(f.text, style=tones.get(f.tone, "")), Text(f.note, style="dim")) for f in facts])
    fct_head, fct = overview.fct_rows(result.summary)
    for title, (head, rows) in (
        ("Flow completion time by flow size", (fct_head[:6], [row[:6] for row in fct])),
        ("Slowdown by flow size", (fct_head[:2] + fct_head[6:], [row[:2] + row[6:] for row in fct])),
        ("Collective operations", overview.job_rows(result.summary, terminal=True)),
        ("Ports with the largest queues", overview.port_rows(result.summary, 5)),
    ):
        if rows:
            terminal.table(console, title, head, rows)
    if few := overview.few_flows(result.summary):
        console.print(Text(few, style="dim"))
    for group in counters.groups(result.summary):
        if rows := counters.rows(group, zeros=False):
            terminal.table(console, group.title, counters.HEAD, rows, words={2})
    for line in overview.aborted_lines(result.summary):
        console.print(Text(line, style="yellow"), soft_wrap=True)
    console.print(Text(f"result: {result.path}"), soft_wrap=True)


@contextmanager
def reading(*, shown: bool) -> Iterator[Callable[[AnalysisProgress], None] | None]:
    """Draw how much of a trace has been read, where standard error is a terminal."""
    from rich.progress import BarColumn, Progress, TextColumn

    console = Console(stderr=True)
    if not shown or not console.is_terminal:
        yield None
        return
    columns = (BarColumn(bar_width=14), TextColumn("{task.percentage:>3.0f} %"), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("reading", total=1.0)

        def draw(state: AnalysisProgress) -> None:
            speed = state["records"] / max(state["wall_s"], 1e-9)
            label = f"{show.count(state['records'])} records · {speed / 1e6:.1f} M records/s"
            bar.update(task, completed=state["done"], description=label)

        yield draw


def show_port_scenario(made: PortScenario) -> None:
    """Print how near a scenario is to the trace that it was made from, and to standard error what the trace does not tell."""
    from fanin.analysis.port_scenario import outcome_table

    for words in made.unsure:
        say(f"note: not in the trace, and taken so: {words}", "cyan")
    for words in made.limits:
        say(f"note: {words}", "cyan")
    terminal.table(terminal.console(), "The port, measured and simulated", *outcome_table(made.measured, made.simulated))


_PORTS_SHOWN: Final = 8
"""Ports whose bursts are shown, those with the highest; the table of ports names the others."""


def show_analysis(found: Analysis, top: int) -> None:
    """Print the tables of an analysis to standard output, and what is to be said to standard error."""
    from fanin.analysis import tables

    console = terminal.console()
    for note in tables.all_notes(found.document):
        say(f"note: {note}", "cyan")
    terminal.table(console, "Ports", *tables.port_rows(found.document))
    for title, content in tables.waiting(found.document, top):
        terminal.table(console, title, *content)
    for line in tables.notice_lines(found.document):
        console.print(Text(line), soft_wrap=True)
    notified = tables.notice_rows(found.document, top)
    if notified[1]:
        terminal.table(console, "Flows with drop notifications", *notified)
    for line in tables.transfer_lines(found.document):
        console.print(Text(line), soft_wrap=True)
    slowest = tables.transfer_rows(found.document, top)
    if slowest[1]:
        terminal.table(console, "Slowest transfers", *slowest)
    for line in tables.detect_lines(found.document["ports"], _PORTS_SHOWN):
        console.print(Text(line), soft_wrap=True)
    console.print()
    with_bursts = tables.highest_first([port for port in found.document["ports"] if port["bursts"]])
    for port in with_bursts[:_PORTS_SHOWN]:
        shown = min(top, len(port["bursts"]))
        of = f"{shown} of {port['bursts_found']:,} bursts" if shown < port["bursts_found"] else f"{shown} burst{'s' * (shown > 1)}"
        terminal.table(console, f"{port['port']}: {of}, the highest first", *tables.burst_rows(port, top, found.clock))
        burst = tables.largest(port, 1)[0]
        if burst["phases"]:
            terminal.table(console, f"Phases of burst {burst['index']}", *tables.phase_rows(burst))
        if burst["direct"] or burst["indirect"]:
            what = "Culprits" if burst["direct"] else "Flows"
            terminal.table(console, f"{what} of burst {burst['index']}", *tables.culprit_rows(burst, top))
        words = tables.law_line(burst)
        if words:
            console.print(Text(f"Burst {burst['index']}: {words}", style="bold"), soft_wrap=True)
            console.print()
    if len(with_bursts) > _PORTS_SHOWN:
        console.print(Text(f"{len(with_bursts) - _PORTS_SHOWN} more ports have bursts: --port names one", style="dim"))


def list_figures(*, as_json: bool) -> None:
    """Print the figures that can be made anew."""
    from fanin import reproduce

    known = reproduce.figures()
    if as_json:
        facts = [
            {"id": f.id, "title": f.title, "paper": reproduce.PAPERS[f.paper], "seeds": f.seeds, "core_s": f.seconds} for f in known
        ]
        typer.echo(json.dumps(facts, ensure_ascii=False))
        return
    console = terminal.console()
    for paper in dict.fromkeys(figure.paper for figure in known):
        rows = [[f.id, f.title, f"{f.seeds:,}", show.duration(round(f.seconds * 1e12))] for f in known if f.paper == paper]
        terminal.table(console, f"{paper}: {reproduce.PAPERS[paper]}", ["Figure", "Shows", "Seeds", "Core time"], rows, words={1})


def show_reproduction(result: reproduce.Reproduction, folder: Path) -> None:
    """Print a figure's numbers beside the paper's."""
    from fanin import reproduce

    console = terminal.console()
    cells: list[list[str | Text]] = []
    for row in result.found:
        style = "" if row.ok else "yellow" if row.note else "red"
        cells.append([Text(cell, style=style) for cell in reproduce.cells(row)[:-1]])
    terminal.table(console, f"{result.id}: {result.about.title}", reproduce.HEAD[:-1], cells, words={0, 4})
    for note in dict.fromkeys(row.note for row in result.found if row.note and not row.ok):
        names = "; ".join(row.name for row in result.found if row.note == note and not row.ok)
        console.print(Text.assemble((f"{names}: ", "yellow"), note))
    console.print(Text(f"result: {folder}"), soft_wrap=True)
