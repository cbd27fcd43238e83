"""The bursts of a port on a page: a table whose rows open their burst, the figure that shows it, what is known of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from fanin.analysis import tables

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from fanin.analysis import Analysis

__all__ = ["BURSTS", "PEAK_PACKETS", "Budget", "Details", "View", "view"]

Table = tuple[list[str], list[list[str]]]

BURSTS: Final = 10
"""Bursts of a port that are listed."""

PEAK_PACKETS: Final = 8000
"""Packets around the largest queue that are drawn one by one where the whole run has too many."""

PACKETS: Final = 2 * PEAK_PACKETS
"""Packets of a port's highest burst that are drawn one by one; of a burst with more, the smallest and largest of each part."""

PAGE_PACKETS: Final = 30_000
"""Packets of all other bursts of a page that are drawn one by one, so that it can still be mailed."""

OUTLINE: Final = 1000
"""Points of a burst for which that is not enough."""


@dataclass
class Budget:
    """How many packets of other bursts still fit onto the page."""

    left: int = PAGE_PACKETS

    def take(self, packets: int) -> int:
        """Return how many points a burst may have."""
        if packets > min(self.left, PACKETS):
            return OUTLINE
        self.left -= packets
        return max(2, packets)


@dataclass(frozen=True)
class Details:
    """What is known of a burst beside its figure."""

    figure: str
    tables: list[tuple[str, Table]]


@dataclass(frozen=True)
class View:
    """The bursts of a port.

    Attributes
    ----------
    key : str
        Id of the place where one of them is drawn; that of the first row at first.
    """

    key: str
    title: str
    note: str
    caption: str
    head: list[str]
    rows: list[tuple[str, list[str]]]
    details: list[Details]
    whole: bool
    """Whether the highest burst is there with every packet."""


def view(
    analysis: Analysis,
    entry: dict[str, Any],
    key: str,
    add: Callable[[str, go.Figure, str], Any],
    budget: Budget,
) -> View:
    """Make the figures of the highest bursts of a port, and what stands beside them.

    Parameters
    ----------
    analysis : Analysis
        What was found; the trace is read once again.
    entry : dict
        Report of the port, which has a burst.
    key : str
        Id of the place.
    add : callable
        Puts a figure onto the page: name, figure, title.
    budget : Budget
        Is reduced by what the figures take.
    """
    bursts = tables.largest(entry, BURSTS)
    figures = analysis.plots(entry["port"], bursts, most=lambda index, records: budget.take(records) if index else PACKETS)
    head, rows = tables.burst_rows(entry, BURSTS, analysis.clock)
    names = [f"{key}-{burst['index']}" for burst in bursts]
    charts = [
        add(name, figure, f"Burst {burst['index']} at {entry['port']}")
        for name, figure, burst in zip(names, figures, bursts, strict=True)
    ]
    found, shown = entry["bursts_found"], len(bursts)
    of = f"The {shown} highest of {found:,} bursts" if found > shown else "Bursts, the highest first"
    return View(
        key=key,
        title=charts[0].title,
        note=charts[0].note,
        caption=f"{of} at {entry['port']}; a row opens its burst",
        head=head,
        rows=list(zip(names, rows, strict=True)),
        details=[Details(name, _tables(burst)) for name, burst in zip(names, bursts, strict=True)],
        whole=bursts[0]["records"] <= PACKETS,
    )


def _tables(burst: dict[str, Any]) -> list[tuple[str, Table]]:
    made = []
    if burst["phases"]:
        made.append((f"Phases of burst {burst['index']}", tables.phase_rows(burst)))
    if burst["direct"] or burst["indirect"]:
        what = "Flows in the queue at the peak" if burst["direct"] else "Flows"
        made.append((f"{what} of burst {burst['index']}", tables.culprit_rows(burst, BURSTS)))
    return made
