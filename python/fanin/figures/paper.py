"""Figures for papers: the same data as the interactive ones, by Matplotlib, vector and legible in grey."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Mapping
from itertools import cycle
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Final

from fanin import files

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from plotly.graph_objects import Figure as PlotlyFigure

WIDTHS: Final[Mapping[str, float]] = {"column": 3.33, "page": 7.0}
"""Width of a column and of a page of a two-column paper [inch]."""

_STYLE: Final[Any] = {
    "font.size": 8,
    "font.family": "serif",
    "axes.labelsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.4,
    "axes.axisbelow": True,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "lines.linewidth": 1.1,
    "lines.markersize": 3.5,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "svg.hashsalt": "fanin",
}
_COLORS: Final = ("#0b4fb3", "#c25e00", "#0b7a50", "#8a2a6b", "#4d4d4d", "#7a5cc7", "#a08000", "#008a9a")
_DASHES: Final = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
_BAR: Final = 8
"""Width in pixels from which on a line is a bar."""

_STEPS: Final = {"hv": "steps-post", "vh": "steps-pre"}
_MARKERS: Final = {"circle": "o", "square": "s", "diamond": "D", "triangle-up": "^", "x": "x"}


def to_matplotlib(figure: PlotlyFigure, *, width: str = "column") -> Figure:
    """Return a figure of `fanin.figures` as a Matplotlib figure of the size of a paper's column or page.

    Parameters
    ----------
    figure : plotly.graph_objects.Figure
        Scatter traces with linear, logarithmic or category axes.
    width : {"column", "page"}
        Key of `WIDTHS`.

    Raises
    ------
    ValueError
        `width` is unknown.
    """
    import matplotlib as mpl

    from fanin.figures.notebook_figure import ShownFigure

    if width not in WIDTHS:
        raise ValueError(f"there is no width '{width}'; there are {', '.join(WIDTHS)}")
    with mpl.rc_context(_STYLE):
        out = ShownFigure(figsize=(WIDTHS[width], WIDTHS[width] * (0.62 if width == "column" else 0.36)), layout="constrained")
        axes = out.subplots()
        _axes(axes, figure)
        colors, dashes, markers = cycle(_COLORS), cycle(_DASHES), cycle(dict.fromkeys(_MARKERS.values()))
        names: list[str] = []
        for trace in figure.data:
            if trace.stackgroup or trace.x is None or all(isinstance(value, NoneType) for value in trace.x):
                continue  # bands need colour, and what only stands in the legend has no line
            _trace(axes, trace, next(colors), next(dashes), next(markers))
            if trace.showlegend is not False:
                names.append(_text(trace.name or ""))
        if figure.layout.yaxis.rangemode == "tozero":
            axes.set_ylim(bottom=0)
        if len(names) > 1:
            _legend(out, len(names))
    return out


def _legend(out: Figure, names: int) -> None:
    """Add a legend above the axes, in as many columns as fit; the figure grows by rows beyond the second."""
    for columns in range(names, 0, -1):
        legend = out.legend(loc="outside upper center", ncols=columns, handlelength=2.0, columnspacing=1.2)
        if legend.get_window_extent().width <= out.bbox.width:
            break
        if columns > 1:
            legend.remove()
    rows = -(-names // columns)
    out.set_figheight(out.get_figheight() + max(0, rows - 2) * 0.16)


def _axes(axes: Axes, figure: PlotlyFigure) -> None:
    from matplotlib.ticker import NullFormatter

    for axis, setting in (("x", figure.layout.xaxis), ("y", figure.layout.yaxis)):
        label = _text(setting.title.text or "")
        if axis == "x":
            axes.set_xlabel(label)
        else:
            axes.set_ylabel(label)
        if setting.tickvals is not None:
            (axes.set_xticks if axis == "x" else axes.set_yticks)(setting.tickvals, [_text(name) for name in setting.ticktext])
            (axes.set_xlim if axis == "x" else axes.set_ylim)(*setting.range)
        elif setting.range is not None and setting.type in (None, "linear"):
            (axes.set_xlim if axis == "x" else axes.set_ylim)(*setting.range)
        if setting.type == "log":
            (axes.set_xscale if axis == "x" else axes.set_yscale)("log")
            if setting.range is not None:  # few decades: their powers alone have labels, others would overlap
                ends = [10.0**power for power in setting.range]
                (axes.set_xlim if axis == "x" else axes.set_ylim)(*ends)
                (axes.xaxis if axis == "x" else axes.yaxis).set_minor_formatter(NullFormatter())


def _trace(axes: Axes, trace: Any, color: str, dash: Any, marker: str) -> None:
    mode = trace.mode or "lines"
    label = "" if trace.showlegend is False else _text(trace.name or "")
    options: dict[str, Any] = {"label": label, "color": color, "linestyle": "none"}
    if "lines" in mode:
        options["linestyle"] = "solid" if trace.line.dash == "solid" else dash
        if (trace.line.width or 0) >= _BAR:
            options |= {"linewidth": 3.0, "solid_capstyle": "butt"}
        options["drawstyle"] = _STEPS.get(trace.line.shape or "linear", "default")
    if "markers" in mode:
        # Points that lie on each other are distinguished by their form, lines by their dashes.
        default = marker if mode == "markers" else "o"
        options["marker"] = _MARKERS.get(trace.marker.symbol, default)
        options["markersize"] = 3.5 if len(trace.x) <= 100 else 1.2
    if len(trace.x) > 2000:
        options["rasterized"] = "lines" not in mode
    x = [_text(value) if isinstance(value, str) else value for value in trace.x]
    y = [float("nan") if value is None else value for value in trace.y]
    axes.plot(x, y, **options)
    if trace.error_y.array is not None:
        ends = [[*trace.error_y.arrayminus], [*trace.error_y.array]]
        axes.errorbar(x, y, yerr=ends, fmt="none", ecolor=color, elinewidth=0.8, capsize=2)


def _text(text: str) -> str:
    """Plotly's little HTML as plain text, safe from Matplotlib's mathematics."""
    text = re.sub(r"<[^>]*>", "", text.replace("<br>", "\n"))
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        text = text.replace(entity, character)
    return text.replace("$", r"\$")


def save(figure: PlotlyFigure, path: str | os.PathLike[str], *, width: str = "column") -> Path:
    """Write a figure of `fanin.figures` as a vector graphic; the same figure gives the same bytes.

    Parameters
    ----------
    figure : plotly.graph_objects.Figure
        The figure.
    path : path-like
        Ends in ``.pdf``, ``.svg``, ``.eps`` or ``.png`` (300 dpi).
    width : {"column", "page"}
        Key of `WIDTHS`.
    """
    import matplotlib as mpl

    target = Path(path)
    stamp = {".pdf": "CreationDate", ".svg": "Date"}.get(target.suffix.lower())
    with mpl.rc_context(_STYLE):
        drawn = to_matplotlib(figure, width=width)
        # In memory first: on a full disk Matplotlib's writers of PDF end in an error of their own, which hides the disk's.
        page = io.BytesIO()
        drawn.savefig(page, dpi=300, metadata={stamp: None} if stamp else None, format=target.suffix[1:] or "png")
    with files.replacing(target) as part:
        part.write_bytes(page.getvalue())
    return target
