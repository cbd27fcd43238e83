"""Up to when a run is worth a look: a last straggler, or a timer, is not to press all else together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fanin.figures import series
from fanin.text import show

if TYPE_CHECKING:
    from collections.abc import Iterable

    import plotly.graph_objects as go

    from fanin.tables.recorded import Recorded

BUSY_SHARE: Final = 0.999
"""Share of the bytes after which a long rest of the run is not shown at first."""


def time_scale(figure: go.Figure) -> float:
    """Return the length of the unit of a figure's time axis [ps]."""
    unit = figure.layout.xaxis.title.text.rsplit("[", 1)[-1].rstrip("]")
    return dict(show.TIME_UNITS)[unit]


def until(result: Recorded) -> int | None:
    """Return up to when charts are shown at first [ps]; None for all of the run."""
    busy, end = series.busy_until(result, BUSY_SHARE), result.manifest.get("sim_ps")
    return int(1.05 * busy) if busy is not None and end and busy < 0.7 * end else None


def focused(figure: go.Figure, until_ps: int | None, rest: str = "double-click for the whole run") -> go.Figure:
    """Show a figure up to a time at first, and say so, and how to see the rest."""
    if until_ps is not None:
        figure.update_xaxes(range=[0, until_ps / time_scale(figure)])
        share = f"{100 * BUSY_SHARE:.4g} % of all bytes had been sent"
        note = f"Shown up to {show.duration(until_ps)}, when {share}; {rest}."
        figure.update_layout(meta={"note": f"{figure.layout.meta['note']} {note}"})
    return figure


def busy_part(figure: go.Figure, runs: Iterable[Recorded]) -> go.Figure:
    """Show the part of a figure over time in which any of its runs was busy, unless a peak lies behind it."""
    ends = [until(run) for run in runs]
    known = [end for end in ends if end is not None]
    if not known or len(known) < len(ends):
        return figure
    last = max(known) / time_scale(figure)
    peaks = [max(zip(trace.y, trace.x, strict=True))[1] for trace in figure.data if trace.y is not None and len(trace.y)]
    return (
        figure if any(peak > last for peak in peaks) else focused(figure, max(known), "a double-click, or --window, shows the rest")
    )
