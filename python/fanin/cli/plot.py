"""The command ``fanin plot``."""

from __future__ import annotations

import re
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from fanin.cli.failures import EXIT_BAD_INPUT, ends_in, failures
from fanin.cli.output import say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EXAMPLES: Final = ("fanin plot ecn=out/ecn-* k65=out/k65-* --kind slowdown -o slowdown.pdf",)

RESULTS: Final = "Result folders, folders of them, or patterns; NAME=PATH gives a name. Runs that differ in the seed alone are one."

_PS: Final = {"ps": 1, "ns": 1_000, "us": 1_000_000, "µs": 1_000_000, "ms": 1_000_000_000, "s": 1_000_000_000_000}


class Width(StrEnum):
    """Widths of a figure."""

    COLUMN = "column"
    PAGE = "page"


@contextmanager
def refused() -> Iterator[None]:
    """Say everything that is wrong with runs, a line each."""
    from fanin.comparison.variants import CompareError

    with failures():
        try:
            yield
        except CompareError as error:
            for problem in error.problems:
                say(f"error: {problem}", "red")
            raise typer.Exit(EXIT_BAD_INPUT) from None


@contextmanager
def reading(*, shown: bool = True) -> Iterator[Callable[[str], None] | None]:
    """Say which result is being read, where standard error is a terminal."""
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True)
    if not shown or not console.is_terminal:
        yield None
        return
    with console.status("reading") as status:
        yield lambda path: status.update(Text(f"reading {path}", overflow="ellipsis", no_wrap=True))


def _span(text: str, option: str) -> int:
    """Return a time such as ``1.5ms`` in picoseconds."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zµ]+)\s*", text)
    if not found or found[2] not in _PS:
        raise ValueError(f"{option} {text}: is no time; accepted: a number with ps, ns, us, ms or s, for example 1.5ms")
    return round(float(found[1]) * _PS[found[2]])


def _window(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    begin, colon, end = text.partition(":")
    if not colon:
        raise ValueError(f"--window {text}: is not of the form FROM:TO, for example 1ms:2ms")
    low, high = _span(begin, "--window"), _span(end, "--window")
    if low >= high:
        raise ValueError(f"--window {text}: ends before it begins")
    return low, high


def _bin(text: str | None) -> int | None:
    if text is None:
        return None
    length = _span(text, "--bin")
    if not length:
        raise ValueError(f"--bin {text}: is out of range; accepted: more than 0")
    return length


def plot(
    results: Annotated[list[str] | None, typer.Argument(metavar="RESULT...", help=RESULTS, show_default=False)] = None,
    kind: Annotated[str, typer.Option("--kind", metavar="KIND", help="Kind of figure; --list names them.")] = "cdf",
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="FILE", help="File to write: .pdf, .svg, .eps or .png.", show_default=False),
    ] = None,
    width: Annotated[
        Width, typer.Option("--width", metavar="column|page", help="Width of the figure: 3.33 or 7 inches.", case_sensitive=False)
    ] = Width.COLUMN,
    port: Annotated[
        str | None, typer.Option("--port", metavar="PORT", help="Port whose queue or throughput is drawn, for example leaf0->h3.")
    ] = None,
    flow: Annotated[str | None, typer.Option("--flow", metavar="FLOW", help="A followed flow, by id or number.")] = None,
    statistic: Annotated[
        str | None,
        typer.Option(
            "--statistic", metavar="S", help="Statistic by flow size, where several runs are given: mean, p50, p95 or p99."
        ),
    ] = None,
    window: Annotated[
        str | None, typer.Option("--window", metavar="FROM:TO", help="Only this part of the run, for example 1ms:2ms.")
    ] = None,
    interval: Annotated[
        str | None, typer.Option("--bin", metavar="SPAN", help="Interval of the throughput of flows, for example 10us.")
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the kinds of figures instead.")] = False,
) -> None:
    """Draw a figure as papers have them: vector, column or page width, fonts embedded, the same bytes every time."""
    with refused():
        if listed:
            _list()
            return
        if not results or out is None:
            raise ValueError("RESULT and -o FILE are needed; --list says which kinds of figures there are")
        ends_in(out, ".pdf", ".svg", ".eps", ".png")
        options = {"port": port, "flow": flow, "statistic": statistic, "window_ps": _window(window), "bin_ps": _bin(interval)}
        from fanin.comparison import overlay, variants
        from fanin.figures import paper

        with reading() as progress:
            groups = {variant.name: variant.results() for variant in variants.gather(results, progress)}
        typer.echo(paper.save(overlay.draw(kind, groups, **options), out, width=width.value))


def _list() -> None:
    from fanin.comparison import overlay
    from fanin.text import terminal

    rows = [
        [
            name,
            kind.words,
            "one run" if kind.several is None else "several",
            ", ".join(overlay.OPTIONS[option] for option in kind.options),
        ]
        for name, kind in overlay.KINDS.items()
    ]
    terminal.table(terminal.console(), "Kinds of figures", ["Kind", "Shows", "Runs", "Options"], rows, words={1, 2, 3})
