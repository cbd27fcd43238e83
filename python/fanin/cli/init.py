"""``fanin init``."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from fanin import files
from fanin.cli.failures import failures
from fanin.cli.output import say, say_problem
from fanin.text import terminal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fanin.cli.starter import Choices

EXAMPLES: Final = (
    "fanin init my.toml --topology leaf_spine --traffic incast --senders 32 --transport dctcp",
    "fanin init --starter roce",
)


def init(
    file: Annotated[Path, typer.Argument(metavar="[FILE]", help="The scenario to write.")] = Path("scenario.toml"),
    topology: Annotated[
        str, typer.Option("--topology", metavar="KIND", help="single_switch, dumbbell, racks, leaf_spine or fat_tree.")
    ] = "leaf_spine",
    hosts: Annotated[int | None, typer.Option("--hosts", min=3, metavar="N", help="Hosts in all.", show_default=False)] = None,
    rate: Annotated[str, typer.Option("--rate", metavar="RATE", help="Rate of the hosts' links.")] = "10Gbps",
    delay: Annotated[str, typer.Option("--delay", metavar="TIME", help="Delay of each link, one way.")] = "1us",
    traffic: Annotated[
        str, typer.Option("--traffic", metavar="KIND", help="incast, query, poisson, mix, permutation or all_reduce.")
    ] = "incast",
    senders: Annotated[
        int | None,
        typer.Option("--senders", min=1, metavar="N", help="Senders of the incast, or of each query.", show_default=False),
    ] = None,
    size: Annotated[
        str | None,
        typer.Option("--size", metavar="SIZE", help="Size of each answer or flow, for example 64KB.", show_default=False),
    ] = None,
    load: Annotated[
        float | None, typer.Option("--load", metavar="SHARE", help="Load of the hosts' links, for example 0.4.", show_default=False)
    ] = None,
    sizes: Annotated[
        str | None, typer.Option("--sizes", metavar="NAME", help="Distribution of flow sizes.", show_default="web-search")
    ] = None,
    transport: Annotated[
        str, typer.Option("--transport", metavar="CONTROL", help="Congestion control: dctcp, cubic, dcqcn, hpcc, …")
    ] = "dctcp",
    buffer: Annotated[
        str | None, typer.Option("--buffer", metavar="SIZE", help="Buffer of each port, for example 512KB.", show_default=False)
    ] = None,
    mechanism: Annotated[
        str | None,
        typer.Option("--mechanism", metavar="NAME", help="Mechanism of the switches: pdn, dibs, trimming, …", show_default=False),
    ] = None,
    duration: Annotated[
        str | None,
        typer.Option(
            "--duration", metavar="TIME", help="Time until which new flows begin, or the run goes on.", show_default=False
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, metavar="N", help="Root of every random choice.")] = 1,
    starter: Annotated[
        str | None,
        typer.Option("--starter", metavar="NAME", help="Start from a scenario that comes with Fanin instead.", show_default=False),
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the choices; write nothing.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Write a scenario with comments, from these choices or, in a terminal without any, from a few questions."""
    from fanin.cli import starter as new

    if listed:
        _list()
        return
    with failures():
        if file.exists() and not force:
            raise ValueError(f"{file}: is there already; --force replaces it")
        want = new.Choices(
            topology, traffic, hosts, rate, delay, senders, size, load, sizes, transport, buffer, mechanism, duration, seed
        )
        if starter is not None:
            if want != new.Choices():
                raise ValueError("--starter: takes no other choices; fanin run --set changes values of a scenario")
            text = new.starter(starter)
        else:
            if want == new.Choices() and _has_terminal():
                want = _asked(want)
            made = new.make(want)
            text = made.text
            for note in made.notes:
                say(f"note: {note}", "cyan")
            for problem in made.check.warnings:
                say_problem(problem, file)
        files.write_text(file, text)
    typer.echo(f"{file}: written; fanin show {file} draws it, fanin run {file} -o out/{file.stem} simulates it")


def _has_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _list() -> None:
    from fanin.cli import starter as new

    out = terminal.console()
    groups: list[tuple[str, Mapping[str, str]]] = [
        ("--topology", new.TOPOLOGIES),
        ("--traffic", new.TRAFFIC),
        ("--transport", new.controls()),
        ("--mechanism", new.mechanisms()),
        ("--starter", new.shipped()),
    ]
    for option, known in groups:
        terminal.table(out, option, ["Value", "What it is"], [[name, about] for name, about in known.items()], words={1})


def _asked(want: Choices) -> Choices:
    """Ask for what matters most; an empty answer keeps what stands in brackets, and one that does not fit is asked for again."""
    from fanin.cli import starter as new

    def tried(question: str, key: str, default: Any, kind: type | None = None) -> None:
        """Ask until what is answered makes a scenario beside the other answers."""
        nonlocal want
        while True:
            given = typer.prompt(question, default=default, type=kind)
            answer: dict[str, Any] = {key: None if (key, given) == ("mechanism", "none") else given}
            changed = replace(want, **answer)
            try:
                new.make(changed)
            except ValueError as error:
                say(str(error), "yellow")
            else:
                want = changed
                return

    def chosen(question: str, key: str, known: Mapping[str, str], default: str) -> None:
        say(f"{question}: {', '.join(known)}", "dim")
        tried(key, key, default)

    chosen("Which network", "topology", new.TOPOLOGIES, want.topology)
    tried("rate of the hosts' links", "rate", want.rate)
    chosen("Which traffic", "traffic", new.TRAFFIC, want.traffic)
    if want.traffic in ("incast", "query", "mix"):
        tried("senders that answer at once", "senders", 16, int)
    tried("hosts", "hosts", new.hosts(want), int)
    if want.traffic in new.LOADS:
        tried("load of the hosts' links", "load", 0.4, float)
    chosen("Which congestion control", "transport", new.controls(), want.transport)
    chosen("Which mechanism of the switches", "mechanism", {"none": "", **new.mechanisms()}, "none")
    return want
