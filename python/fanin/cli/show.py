"""``fanin show``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.text import Text

from fanin.cli.asked import overridden
from fanin.cli.failures import ends_in, failures
from fanin.text import terminal

__all__ = ["EXAMPLES", "show"]

EXAMPLES: Final = ("fanin show scenarios/demo.toml -o demo.html",)


def show(
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO", help="The scenario, a TOML or JSON file.", show_default=False)],
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a value, for example topology.hosts=65.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="FILE", help="Draw the network: an SVG or HTML file, by its ending.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
) -> None:
    """Draw the network of a scenario, and say what will be simulated: nothing is run."""
    from fanin.scenario.network import overview

    with failures(scenario):
        ends_in(out, ".svg", ".html", ".htm")
        made = overview(overridden(scenario, settings or []))
        if out is not None:
            made.write(out)
    if as_json:
        typer.echo(json.dumps(made.to_dict(), ensure_ascii=False))
        return
    console = terminal.console()
    for line in made.lines():
        console.print(Text(line), soft_wrap=True)
    console.print()
    console.print(Text(made.text))
    if out is not None:
        typer.echo(out)
