"""The answer as Markdown: conclusion, table, what the model stands on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fanin.remedy.answer import HEAD, goal_words, rows
from fanin.text import show

if TYPE_CHECKING:
    from fanin.remedy.answer import WhatIf

SEEN_HEAD = ("", "Longest queue", "Drops", "Above the threshold", "Last data after")


def seen_rows(found: WhatIf) -> list[list[str]]:
    """Return the table of what was measured and what the model does as it is."""
    listed = [["measured", *found.model.measured.cells()]]
    if found.nearest is not None:
        listed.append(["the model, nearest draw", *found.nearest.cells()])
    return listed


def markdown(found: WhatIf) -> str:
    """Return the answer as a page of Markdown."""
    lines = [f"# What would have helped {found.port}?", "", found.text, ""]
    if found.remedies:
        asked = goal_words(found.goal, found.below_bytes)
        lines += [f"*Holds*: the setting {asked}, and leaves no more flows unfinished.", "", *_table(HEAD, rows(found)), ""]
    lines += ["## The model", "", f"It stands on {found.model.how}.", "", *_table(SEEN_HEAD, seen_rows(found)), ""]
    over = ", ".join(found.over)
    lines += [f"The ensemble: {found.accepted} of {found.tried} draws over {over} give back what was measured.", ""]
    if found.model.unsure:
        lines += ["Not in the trace, and taken so:", "", *(f"* {words}" for words in found.model.unsure), ""]
    if found.replays:
        head = ("Buffer", "Drops", "Longest queue")
        cells = [[show.size(own.buffer_bytes), f"{own.dropped:,}", show.size(own.peak_bytes)] for own in found.replays]
        said = "Open loop: the measured arrivals through other buffers. No sender reacts: it says what a buffer would have held."
        lines += ["## The arrivals as they were", "", said, "", *_table(head, cells), ""]
    if found.rejected:
        lines += ["## Not tried", "", *(f"* {own.name}: {own.reason}" for own in found.rejected), ""]
    if found.notes:
        lines += ["## Notes", "", *(f"* {note}" for note in found.notes), ""]
    return "\n".join(lines)


def _table(head: Sequence[str], cells: Sequence[Sequence[str]]) -> list[str]:
    def row(own: Sequence[str]) -> str:
        return f"| {' | '.join(cell.replace('|', '/') for cell in own)} |"

    return [row(head), row(["---"] * len(head)), *(row(own) for own in cells)]
