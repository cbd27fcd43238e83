"""The page about an analysed trace: the answer, the burst that it is about, and all others."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fanin import files
from fanin.analysis import tables
from fanin.analysis.answer import answer
from fanin.analysis.explorer import CULPRITS, MAX_PORTS, apart, explore
from fanin.pages import Charts, page

if TYPE_CHECKING:
    from fanin.analysis import Analysis
    from fanin.analysis.change import AnalysisChange


def render_analysis(analysis: Analysis) -> str:
    """Return the page about an analysed trace; equal traces and settings give equal pages.

    Parameters
    ----------
    analysis : Analysis
        What was found; the trace is read once more.

    Raises
    ------
    TraceError
        The trace is not there any more.
    OSError
        There is no room for its records in the folder of temporary files.
    """
    document = analysis.document
    bursts = explore(analysis)
    names = [Path(source["path"]).name for source in document["sources"]]
    return page(
        "analysis.html",
        Charts(),
        explorer=bursts.document,
        title=names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more",
        answer=answer(document, analysis.clock),
        bursts=bursts,
        found=sum(int(port["bursts_found"]) for port in document["ports"]),
        provenance=[(source["path"], _kind_of(source)) for source in document["sources"]],
        plausibility=analysis.plausibility,
        notes=tables.all_notes(document),
        detect=tables.detect_lines([port for port in document["ports"] if port["records"]], MAX_PORTS),
        ports=tables.port_rows(document),
        waiting=[(caption, apart(content)) for caption, content in tables.waiting(document, CULPRITS)],
        notice_lines=tables.notice_lines(document),
        notified=tables.notice_rows(document, CULPRITS),
        transfer_lines=tables.transfer_lines(document),
        transfers=apart(tables.transfer_rows(document, CULPRITS)),
        settings=json.dumps(document["settings"], indent=1),
    )


ONE_OF_EACH: Final = (
    "One trace of each: traffic differs from hour to hour, and what differs here may be no effect of the change. "
    "Intervals are by the spread of ten stretches of each trace, from 30 bursts on; of differences between hours they know nothing."
)
"""What is to be said of a comparison of two traces."""


def write_change(change: AnalysisChange, path: str | os.PathLike[str]) -> None:
    """Write the page about what changed between two analyses, completely or not at all."""
    title = f"{Path(change.names[0]).name} and {Path(change.names[1]).name}"
    provenance = [("before", change.names[0]), ("after", change.names[1])]
    content: dict[str, Any] = {"warnings": change.warnings, "tables": change.tables(), "answer": change.answer, "rule": ONE_OF_EACH}
    text = page("change.html", Charts(), title=title, provenance=provenance, **content)
    files.write_text(path, text)


def _kind_of(source: dict[str, Any]) -> str:
    records = source["records"]
    return f"{source['kind']}, {'behind the port' if records is None else f'{records:,} records'}"


def write_analysis(analysis: Analysis, path: str | os.PathLike[str]) -> None:
    """Write the page about an analysed trace, completely or not at all; see `render_analysis`."""
    files.write_text(path, render_analysis(analysis))
