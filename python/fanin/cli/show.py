"""``fanin show``."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.text import Text

from fanin.cli.asked import as_setting, overridden
from fanin.cli.failures import ends_in, failures
from fanin.results import load
from fanin.scenario import Scenario
from fanin.text import terminal

_ACCEPTED: Final = "accepted: a scenario (TOML, JSON) or a result"
EXAMPLES: Final = ("fanin show scenarios/demo.toml -o demo.html",)


def _asked(path: Path, settings: list[str]) -> tuple[Scenario, str | None]:
    """Return the scenario of a file or of a result, and a line about the latter."""
    of_result = path.is_file() and path.suffix != ".toml" and (path.parent / "manifest.json").is_file()
    folder = path.parent if of_result else path
    if folder.is_dir():
        if not (folder / "manifest.json").is_file():
            raise ValueError(f"{path}: is a folder without manifest.json, so no result; {_ACCEPTED}")
        found = load(folder)
        changed = Scenario(found.scenario)
        for setting in settings:
            changed = changed.replace(dict([as_setting(setting)]))
        why = found.manifest.get("reason")
        reason = f" ({why})" if why else ""
        then = {
            "running": "the run has not ended.",
            "killed": "fanin run with --force runs it again.",
        }.get(found.status, "fanin report draws what happened.")
        return changed, f"{folder} is a result, {found.status}{reason}, of this scenario; {then}"
    if path.suffix == ".json" and _schema(path).startswith("analysis/"):
        raise ValueError(
            f"{path}: is a report of fanin analyze, no scenario; fanin analyze TRACE -o page.html draws it from the trace, "
            f"fanin compare takes two; {_ACCEPTED}"
        )
    if path.suffix.lower() in (".html", ".htm"):
        raise ValueError(f"{path}: is a page, which a browser shows; fanin analyze TRACE and fanin report draw pages; {_ACCEPTED}")
    if path.is_file() and path.suffix.lower() not in (".toml", ".json") and not _is_toml(path):
        raise ValueError(f"{path}: is no scenario: perhaps a trace, which fanin analyze reads; {_ACCEPTED}")
    return overridden(path, settings), None


def _is_toml(path: Path) -> bool:
    try:
        tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return False
    return True


def _schema(path: Path) -> str:
    """Return the schema that a JSON document names; none where it is no such document."""
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return ""
    return str(document.get("schema", "")) if isinstance(document, dict) else ""


def show(
    scenario: Annotated[
        Path, typer.Argument(metavar="SCENARIO", help="The scenario, a TOML or JSON file; or a result folder.", show_default=False)
    ],
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a value, for example topology.hosts=65.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="FILE", help="Draw the network: an SVG or HTML file, by its ending.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
) -> None:
    """Draw the network of a scenario or of a result, and say what is simulated: nothing is run."""
    from fanin.scenario.network import overview

    with failures(scenario):
        ends_in(out, ".svg", ".html", ".htm")
        asked, said = _asked(scenario, settings or [])
        made = overview(asked)
        if out is not None:
            made.write(out)
    if as_json:
        typer.echo(json.dumps(made.to_dict(), ensure_ascii=False))
        return
    console = terminal.console()
    if said is not None:
        console.print(Text(said), soft_wrap=True)
    for line in made.lines():
        console.print(Text(line), soft_wrap=True)
    console.print()
    console.print(Text(made.text))
    if out is not None:
        typer.echo(out)
