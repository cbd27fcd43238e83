"""The page about an analysed trace, and the bursts of a port on it: each row of their table opens its figure."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fanin import files
from fanin.analysis import tables
from fanin.pages import PACKETS, PEAK_PACKETS, Budget, Chart, Charts, page

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from fanin.analysis import Analysis

__all__ = ["BURSTS", "MAX_PORTS", "Panel", "View", "render_analysis", "view", "write_analysis"]

Table = tuple[list[str], list[list[str]]]

MAX_PORTS: Final = 6
"""Ports whose queues are drawn."""

BURSTS: Final = 10
"""Bursts of a port that are listed."""


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


@dataclass(frozen=True)
class Panel:
    """The queue of one port."""

    port: str
    charts: list[Chart]
    watched: bool
    bursts: View | None
    notes: list[str]


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


def render_analysis(analysis: Analysis) -> str:
    """Return the page about an analysed trace; equal traces and settings give equal pages.

    Parameters
    ----------
    analysis : Analysis
        What was found; the trace is read again for each figure.

    Raises
    ------
    TraceError
        The trace is not there any more.
    """
    charts = Charts()
    document = analysis.document
    panels = []
    for index, entry in enumerate([port for port in document["ports"] if port["records"]][:MAX_PORTS]):
        key = f"burst-{index}"
        bursts = view(analysis, entry, key, charts.add, charts.budget) if entry["bursts"] else None
        whole = analysis.plot(entry["port"], max_points=2 * PEAK_PACKETS) if bursts is None else None
        drawn = [] if whole is None else [charts.add(key, whole, f"All records of {entry['port']}")]
        panels.append(Panel(entry["port"], drawn, False, bursts, [*tables.detect_lines([entry], 1), *entry["notes"]]))
    names = [Path(source["path"]).name for source in document["sources"]]
    found = sum(port["bursts_found"] for port in document["ports"])
    return page(
        "analysis.html",
        charts,
        title=names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more",
        bursts=found,
        provenance=[(source["path"], _kind_of(source)) for source in document["sources"]],
        plausibility=analysis.plausibility,
        notes=analysis.notes,
        ports=tables.port_rows(document),
        waiting=tables.waiting(document, BURSTS),
        notice_lines=tables.notice_lines(document),
        notified=tables.notice_rows(document, BURSTS),
        panels=panels,
        settings=json.dumps(document["settings"], indent=1),
    )


def _kind_of(source: dict[str, Any]) -> str:
    records = source["records"]
    return f"{source['kind']}, {'behind the port' if records is None else f'{records:,} records'}"


def write_analysis(analysis: Analysis, path: str | os.PathLike[str]) -> None:
    """Write the page about an analysed trace, completely or not at all; see `render_analysis`."""
    files.write_text(path, render_analysis(analysis))
