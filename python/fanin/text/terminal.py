"""Tables in a terminal: nothing is cut off and no column left out, however narrow it is."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from typing import Final

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

FULL_WIDTH: Final = 10_000
"""Width of tables in files and pipes, which have none of their own, whatever COLUMNS says of the terminal."""

_PROSE: Final = 24
"""Characters that a column of words has at least, where they are wrapped."""

_LEAST: Final = 5
"""Characters that the first column has at least beside a long number."""

_GAP: Final = 3
"""Characters between two columns."""

_EDGES: Final = 2
"""Characters before the first column and behind the last."""

Cell = str | Text


def console() -> Console:
    """Return where tables go: standard output, with its full width where it is no terminal."""
    made = Console(soft_wrap=False)
    if not sys.stdout.isatty():
        made.width = FULL_WIDTH
    return made


def table(out: Console, title: str, head: Sequence[str], rows: Sequence[Sequence[Cell]], *, words: Collection[int] = ()) -> None:
    """Print a table; one that is too wide in several parts, each with the first column.

    Parameters
    ----------
    out : Console
        Where to.
    title, head, rows
        What; the first column is aligned to the left, the others to the right.
    words : collection of int
        Columns of words, which are aligned to the left and may be wrapped.
    """
    widths = [max(cell_len(str(cell)) for cell in column) for column in zip(head, *rows, strict=True)]
    room = out.width - _EDGES
    # What does not fit beside anything else is wrapped: the first column, such as names of flows, before any number.
    wrapped = {index for index in range(1, len(head)) if index in words or widths[index] + _GAP + _LEAST > room}
    unwrapped = max((widths[index] for index in range(1, len(head)) if index not in wrapped), default=_LEAST)
    if 0 in words or widths[0] + _GAP + unwrapped > room:
        wrapped.add(0)
    needed = [min(width, _PROSE) if index in wrapped else width for index, width in enumerate(widths)]
    parts: list[list[int]] = [[0]]
    for index in range(1, len(head)):
        if len(parts[-1]) > 1 and sum(needed[at] + _GAP for at in parts[-1]) + needed[index] > room:
            parts.append([0])
        parts[-1].append(index)
    for part in parts:
        made = Table(title=title if part is parts[0] else None, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
        for index in part:
            left = index == 0 or index in words
            made.add_column(head[index], justify="left" if left else "right", no_wrap=index not in wrapped, overflow="fold")
        for row in rows:
            made.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in (row[index] for index in part)))
        out.print(made)


def facts(out: Console, rows: Sequence[tuple[Cell, Cell, Cell]]) -> None:
    """Print facts, each with its name and what is to be said of it, which stands below it where there is no room beside."""
    names, texts = (max((cell_len(str(row[at])) for row in rows), default=0) for at in (0, 1))
    grid = Table(show_header=False, box=None, pad_edge=False)
    beside = names + texts + 2 + _PROSE <= out.width
    for name, text, note in rows:
        if beside:
            grid.add_row(name, text, note)
            continue
        grid.add_row(name, text)
        if str(note):
            grid.add_row("", note)
    if not beside:
        grid.columns[0].no_wrap = names + texts + 1 <= out.width
    out.print(grid)
