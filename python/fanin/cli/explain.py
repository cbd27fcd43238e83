"""The command ``fanin explain``: of a flow of a result, or of a transfer in two captures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from fanin.cli.failures import failures
from fanin.cli.output import reading, say
from fanin.explain import Explanation
from fanin.results import load
from fanin.text import terminal

EXAMPLES = (
    "fanin explain out/incast 17 --steps",
    "fanin explain sender.pcap 10.0.0.5:40000 --behind receiver.pcap --rate 10Gbps",
)


def explain(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="OUT", help="A result folder; or a capture at the sender, or before a port, with --behind.", show_default=False
        ),
    ],
    flow: Annotated[
        str | None,
        typer.Argument(
            metavar="FLOW",
            help="A flow by its id or number; of captures by its name or a part of it, the slowest if not given.",
            show_default=False,
        ),
    ] = None,
    behind: Annotated[
        list[Path] | None,
        typer.Option("--behind", metavar="FILE", help="The capture at the receiver, or behind the port; may be repeated."),
    ] = None,
    before_interface: Annotated[
        str | None, typer.Option("--before-interface", metavar="NAME", help="The interface at the sender, or before the port.")
    ] = None,
    behind_interface: Annotated[
        str | None, typer.Option("--behind-interface", metavar="NAME", help="The interface at the receiver, or behind the port.")
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option("--rate", metavar="RATE", help="Speed of the slowest link between the captures; as seen, if not given."),
    ] = None,
    start: Annotated[
        str | None, typer.Option("--start", metavar="TIME", help="Only transfers that begin from this time on: 1.5ms, or a date.")
    ] = None,
    stop: Annotated[
        str | None, typer.Option("--stop", metavar="TIME", help="Only transfers that begin until this time: 3ms, or a date.")
    ] = None,
    steps: Annotated[bool, typer.Option("--steps", help="Also print each step of the critical path.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
) -> None:
    """Say where the time of a flow went: parts that add up to its completion time."""
    asked = {
        "behind": [str(path) for path in behind] if behind else None,
        "before_interface": before_interface,
        "behind_interface": behind_interface,
        "rate": rate,
        "start": start,
        "stop": stop,
    }
    given = {name: value for name, value in asked.items() if value is not None}
    with failures():
        found = _found(source, flow, given, shown=not as_json)
    if as_json:
        typer.echo(found.to_json())
        return
    for note in found.document.get("notes", []):
        say(f"note: {note}", "cyan")
    console = terminal.console()
    console.print(Text(found.text), soft_wrap=True)
    title = f"Where the time of flow {flow} went" if source.is_dir() else f"Where the time of {found.name} went"
    terminal.table(console, title, *found.rows())
    if steps:
        terminal.table(console, "Step by step", *found.step_rows())


def _found(source: Path, flow: str | None, given: dict[str, Any], *, shown: bool) -> Explanation:
    """Explain a flow of a result, or of captures.

    Raises
    ------
    ValueError
        Options of captures with a result, or a result without a flow.
    """
    if not source.is_file() and not given:
        if flow is None:
            raise ValueError(f"{source}: which flow? fanin explain {source} FLOW, by its id or number")
        return load(source).explain(flow)
    if source.is_dir():
        options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise ValueError(f"{options}: of captures; {source} is a result, which knows the way of each packet")
    if source.is_file() and not {"behind", "behind_interface"} & set(given):
        raise ValueError(
            f"{source}: one capture does not say where time went; give the one at the receiver, or behind the port, with --behind "
            "(fanin analyze --transfers lists what one shows)"
        )
    from fanin import analysis

    with reading(shown=shown) as progress:
        return analysis.explain(str(source), flow, progress=progress, **given)
