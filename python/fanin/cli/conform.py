"""``fanin conform``."""

from __future__ import annotations

import json
from typing import Annotated, Any, Final

import typer
from rich.text import Text

from fanin.cli.asked import as_nested, as_setting
from fanin.cli.failures import EXIT_FAILED, failures
from fanin.cli.output import say
from fanin.conformance import Conformance, Difference, conform
from fanin.conformance_capture import FrameDifference, conform_captures
from fanin.conformance_process import command
from fanin.conformance_socket import conform_socket
from fanin.text import terminal

EXAMPLES: Final = (
    "fanin conform s-ecn ./s_ecn",
    "fanin conform s-ecn --captures vectors ./s_ecn_pcap",
    "fanin conform s-ecn --socket fanin.sock",
    "fanin conform pdn --case bounds --timeout 600 python3 model.py",
)


def _rows_up_to(found: Conformance, first: Difference) -> tuple[list[str], list[list[str | Text]]]:
    """The rows before the difference and its own: inputs, then what was expected and answered."""
    inputs = found.names("input")
    head = [*inputs, *first.answered]
    rows: list[list[str | Text]] = []
    for expected, answered in [*first.before, (first.expected, first.answered)]:
        cells: list[str | Text] = [str(expected[name]) for name in inputs]
        for name in answered:
            same = answered[name] == expected[name]
            cells.append(str(answered[name]) if same else Text(f"{answered[name]} (expected {expected[name]})", style="red"))
        rows.append(cells)
    return head, rows


def _frames(first: FrameDifference) -> list[Text]:
    """Sixteen bytes around the first one that differs, of both frames."""
    both = [bytes.fromhex(text) if text is not None else None for text in (first.expected_frame, first.answered_frame)]
    begin = max((first.byte or 0) - 8, 0)
    lines = []
    for name, frame in zip(("expected", "target"), both, strict=True):
        shown = "no frame" if frame is None else f"byte {begin}: {frame[begin : begin + 16].hex(' ')}, of {len(frame)}"
        lines.append(Text(f"{name:>8}  {shown}"))
    return lines


def _registers(found: Conformance, first: Difference) -> tuple[list[str], list[list[str | Text]]]:
    """Registers and outputs of the row that differs: before it, after it, and the target's."""
    before = first.before[-1][0] if first.before else None
    rows: list[list[str | Text]] = []
    for name in [*found.names("register"), *found.names("output")]:
        given = first.answered.get(name)
        mine = "not answered" if given is None else str(given)
        style = "red" if name in first.columns else ""
        was = "" if before is None else str(before[name])
        rows.append([Text(name, style=style), was, str(first.expected[name]), Text(mine, style=style)])
    return ["", "row before", "expected", "target"], rows


def _show(found: Conformance, target: str) -> None:
    console = terminal.console()
    per_case: dict[str, list[int]] = {name: [0, 0] for name in found.different}
    for sequence in found.document["sequences"]:
        per_case[sequence["case"]][0] += 1
        per_case[sequence["case"]][1] += len(sequence["rows"])
    if found.columns:
        rows: list[list[str | Text]] = []
        for name, (sequences, count) in per_case.items():
            wrong = found.different[name]
            rows.append([Text(name, style="red" if wrong else ""), f"{sequences}", f"{count:,}", f"{wrong}"])
        terminal.table(console, f"{found.mechanism}: {target}", ["Case", "Sequences", "Rows", "Different"], rows)
    first = found.first
    if first is not None:
        settings = ", ".join(f"{name} = {value}" for name, value in first.settings.items())
        where = f"First difference: case {first.case}, sequence {first.sequence}, row {first.row}: {', '.join(first.columns)}"
        console.print(Text(where, style="bold"), soft_wrap=True)
        console.print(Text(f"Settings: {settings}", style="dim"), soft_wrap=True)
        if isinstance(first, FrameDifference):
            console.print(Text(first.part, style="red"), soft_wrap=True)
            for line in _frames(first):
                console.print(line, soft_wrap=True)
        terminal.table(console, "Up to it", *_rows_up_to(found, first))
        terminal.table(console, "Registers and outputs", *_registers(found, first))
    if found.ok:
        what = f"{found.sent:,} frames" if found.sent is not None else f"of each {', '.join(found.columns)}"
        console.print(Text(f"conforms: {found.rows:,} rows in {found.sequences} sequences, {what}"), soft_wrap=True)


def conform_(
    mechanism: Annotated[str, typer.Argument(metavar="MECHANISM", help="The mechanism, for example s-ecn.", show_default=False)],
    target: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TARGET...]", help="The program and its arguments, after -- if it has options.", show_default=False
        ),
    ] = None,
    socket: Annotated[
        str | None,
        typer.Option("--socket", metavar="PATH", help="A block that listens at this co-simulation socket, instead of a program."),
    ] = None,
    captures: Annotated[
        str | None,
        typer.Option(
            "--captures", metavar="FOLDER", help="Give the program a capture to read and one to write, which are kept in FOLDER."
        ),
    ] = None,
    cases: Annotated[list[str] | None, typer.Option("--case", metavar="CASE", help="Only this case; may be repeated.")] = None,
    rates: Annotated[list[str] | None, typer.Option("--rate", metavar="RATE", help="Only this port rate; may be repeated.")] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Seed of the random cases.")] = 1,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Any other parameter of the vectors, for example at=dequeue."),
    ] = None,
    timeout: Annotated[float, typer.Option("--timeout", metavar="SECONDS", help="Longest time for everything.")] = 60.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
) -> None:
    """Check a program against the test vectors of a mechanism, bit for bit; exit status 1 if it differs."""
    with failures(page="docs/vectors.md"):
        params: dict[str, Any] = {"seed": seed}
        params |= {"cases": cases} if cases else {}
        params |= {"rates": rates} if rates else {}
        if socket is not None and captures is not None:
            raise ValueError("--captures: a block at a socket reads no captures; leave out one of --captures and --socket")
        if captures is not None and not target:
            raise ValueError("TARGET: with --captures name the program that reads a capture and writes one")
        if (socket is None) == (not target):
            raise ValueError("TARGET: name a program, or --socket PATH, and one of them")
        given = as_nested({**params, **dict(map(as_setting, settings or []))})
        if socket is not None:
            found = conform_socket(mechanism, socket, given, timeout_s=timeout)
        elif captures is not None:
            found = conform_captures(mechanism, target or [], captures, given, timeout_s=timeout)
        else:
            found = conform(mechanism, target or [], given, timeout_s=timeout)
        named = socket or command(target or [])
    if as_json:
        typer.echo(json.dumps(found.to_dict(), ensure_ascii=False))
    else:
        _show(found, named)
    if found.failure is not None:
        said = f"; its last line of standard error: {found.last_words.splitlines()[-1]}" if found.last_words else ""
        say(f"error: {named}: {found.failure}{said}", "red")
    if not found.ok:
        raise typer.Exit(EXIT_FAILED)
