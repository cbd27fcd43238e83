"""A burst as a figure: the queue, its phases, the fitted slopes, what the law says of them."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import plotly.graph_objects as go
import polars as pl

from fanin import figures
from fanin.analysis import queue_contents, tables
from fanin.figures import series
from fanin.text import show

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SHADES: Final = ("#7a5cc7", "#1a9c6b")
"""Phases in turn."""

_FIT: Final = "#b3408f"
_SPEED: Final = "#59636e"
_FULL_FRAME: Final = 1518

BANDS: Final = ("#e69f00", "#56b4e9", "#009e73", "#cc79a7", "#8a6d3b")
"""Culprits with a band of their own, the largest first; all other flows share a grey one."""

_REST: Final = "#8c959f"
_SHADE: Final = "99"
"""Opacity of bands, as the last two digits of a colour."""

BAND_POINTS: Final = 200
"""Points of the areas of flows."""

_NAME: Final = 40
_ABOVE: Final = 1.1
"""Height up to which the slope that a law expects is drawn, as a share of the peak."""

_NUMBERED: Final = 0.02
"""Share of the figure's time that a phase must take for its number to be written on it."""


def figure(
    port: dict[str, Any],
    burst: dict[str, Any] | None,
    found: tuple[pl.DataFrame, int, bool],
    max_points: int,
) -> go.Figure:
    """Return the figure of a burst from its records.

    Parameters
    ----------
    port : dict
        Report of the port.
    burst : dict or None
        The burst; None draws the records alone.
    found : (polars.DataFrame, int, bool)
        Records, how many there are in all, and whether these are only their outline, as `fanin.Analysis.series` gives them.
    max_points : int
        More records than this are reduced to the smallest and the largest queue of each part of the time.
    """
    frame, count, reduced = found
    last = frame["time_ps"].max() if frame.height else 0
    unit, scale = show.axis_unit(show.TIME_UNITS, float(last) if isinstance(last, int) else 0.0)
    if port["peak_bytes"] is None and port.get("counted"):
        return _loads(port, burst)
    if port["peak_bytes"] is None:
        drawn = _rates(port, frame, unit, scale)
        note = f"{count:,} packets, their bytes added up by window." if not reduced else f"Some of {count:,} packets: zoom in."
        out = figures.framed(drawn, f"Arrivals at {figures.plain(port['port'])}", _time(unit), _rate_axis(port, frame), note)
        if burst is not None:
            _shade_burst(out, burst, scale)
        return out
    size_unit, size_scale = show.axis_unit(
        show.SIZE_UNITS, float(port["peak_bytes"]) if burst is None else burst["peak_bytes"] or 1
    )
    areas = [] if reduced or burst is None else _bands(burst, frame, scale, (size_unit, size_scale))
    if frame.height > max_points:
        frame, reduced = series.reduce_minmax(frame.lazy(), "queue_bytes", max_points // 2).collect(), True
    line = _down_to_its_end(frame.select("time_ps", "queue_bytes"), burst)
    records = frame.with_columns(queue_packets=pl.lit(None, pl.UInt32))
    data = series.QueueSeries(port["port"], "packet", records, line, count, reduced)
    traces = areas + figures.packet_traces(data, unit, scale, (size_unit, size_scale))
    note = (
        f"{count:,} packets, smallest and largest queue of each part of the time."
        if reduced
        else f"{count:,} packets, each as it found the queue."
    )
    if areas:
        note += " Coloured: the flows with the most bytes at the peak, and their shares of it."
    y = {"title": {"text": f"Queue [{size_unit}]"}}
    title = f"Queue of {figures.plain(port['port'])}"
    if burst is not None:
        title += f", burst {burst['index']}"
    out = figures.framed(traces, title, _time(unit), y, note)
    if burst is not None:
        add_layer(out, port, burst, (scale, size_scale))
    return out


def _down_to_its_end(line: pl.DataFrame, burst: dict[str, Any] | None) -> pl.DataFrame:
    """Return the line of a queue with the end of its burst: the queue is empty there, and no packet came that found it so."""
    if burst is None or burst["end_ps"] in line["time_ps"]:
        return line
    end = pl.DataFrame({"time_ps": [burst["end_ps"]], "queue_bytes": [0]}, schema=line.schema)
    return pl.concat([line, end]).sort("time_ps", maintain_order=True)


def bands(burst: dict[str, Any], frame: pl.DataFrame) -> tuple[NDArray[np.float64], list[NDArray[np.float64]]] | None:
    """Return what stood in the queue by flow: times [ps], and the bytes of each of its largest flows, of all others last.

    None where no flow is known. Flows of `frame` are numbers or names.
    """
    shown = burst["direct"][: len(BANDS)]
    if not shown:
        return None
    named = frame.schema["flow"] == pl.String
    held = queue_contents.by_flow(frame, [entry["name" if named else "flow"] for entry in shown], BAND_POINTS)
    levels = [held[column].cast(pl.Float64).to_numpy() for column in held.columns[1:]]
    return held["time_ps"].cast(pl.Float64).to_numpy(), levels


def _bands(burst: dict[str, Any], frame: pl.DataFrame, scale: float, size_unit: tuple[str, float]) -> list[go.Scatter]:
    """Return the queue by flow as areas on one another: those with the most bytes at the peak, and all others."""
    found = bands(burst, frame)
    if found is None:
        return []
    names = [f"{_short(entry['name'])} ({entry['share']:.1%})" for entry in burst["direct"][: len(BANDS)]] + ["all other flows"]
    drawn = []
    for level, name, color in zip(found[1], names, (*BANDS, _REST), strict=False):
        area = {"stackgroup": "flows", "fillcolor": f"{color}{_SHADE}", "line": {"width": 0, "color": color}}
        levels = (level / size_unit[1]).astype("f4")
        drawn.append(go.Scatter(x=found[0] / scale, y=levels, name=name, mode="lines", hoverinfo="skip", **area))
    return drawn


def _short(name: str) -> str:
    return figures.plain(name if len(name) <= _NAME else f"{name[: _NAME - 1]}…")


def _time(unit: str) -> dict[str, Any]:
    return {"title": {"text": f"Time [{unit}]"}}


def _rate_axis(port: dict[str, Any], frame: pl.DataFrame) -> dict[str, Any]:
    unit, _ = show.axis_unit(show.RATE_UNITS, _largest_rate(port, frame))
    return {"title": {"text": f"Arrivals [{unit}]"}}


def _by_window(port: dict[str, Any], frame: pl.DataFrame) -> pl.DataFrame:
    window = int(port["detect"].get("window_ps") or 25_000_000)
    groups = frame.group_by(slot=pl.col("time_ps") // window).agg(sent=pl.col("frame_bytes").cast(pl.UInt64).sum()).sort("slot")
    if not groups.height:
        return pl.DataFrame(schema={"time_ps": pl.UInt64, "bps": pl.Float64})
    slots = pl.DataFrame({"slot": pl.int_range(int(groups["slot"][0]), int(groups["slot"][-1]) + 1, eager=True).cast(pl.UInt64)})
    if slots.height <= 1_000_000:
        groups = slots.join(groups, on="slot", how="left").with_columns(pl.col("sent").fill_null(0))
    return groups.select(time_ps=(pl.col("slot") + 1) * window, bps=pl.col("sent") * (8e12 / window))


def _largest_rate(port: dict[str, Any], frame: pl.DataFrame) -> float:
    top = _by_window(port, frame)["bps"].max()
    return float(top) if isinstance(top, float) else 0.0


def _rates(port: dict[str, Any], frame: pl.DataFrame, unit: str, scale: float) -> list[go.Scatter]:
    rate_unit, rate_scale = show.axis_unit(show.RATE_UNITS, _largest_rate(port, frame))
    rates = _by_window(port, frame)
    traces = [
        go.Scatter(
            x=(rates["time_ps"].cast(pl.Float64) / scale).to_numpy(),
            y=(rates["bps"] / rate_scale).to_numpy(),
            name="arrivals",
            mode="lines",
            line={"shape": "vh", "width": 1.2, "color": figures.COLORS[0]},
            hovertemplate=f"%{{x:.9g}} {unit}: %{{y:.4g}} {rate_unit}<extra></extra>",
        )
    ]
    if rates.height:
        ends = [float(rates["time_ps"][0]) / scale, float(rates["time_ps"][-1]) / scale]
        traces += _threshold(port, ends, rate_scale)
    return traces


def _threshold(port: dict[str, Any], ends: list[float], rate_scale: float) -> list[go.Scatter]:
    """Return the rate above which there is a burst, as a line, where it is known."""
    share = port["detect"].get("share")
    if share is None or port["rate_bps"] is None:
        return []
    level = share * port["rate_bps"] / rate_scale
    return [_straight(ends, [level, level], f"{share:.0%} of {show.rate(port['rate_bps'])}", _SPEED, "dot")]


def _loads(port: dict[str, Any], burst: dict[str, Any] | None) -> go.Figure:
    """Return what counters without a queue tell: the load of the busiest interval of each burst."""
    shown = port["bursts"] if burst is None else [burst]
    first, last = (port["first_ps"] or 0, port["last_ps"] or 0) if burst is None else (burst["start_ps"], burst["end_ps"])
    unit, scale = show.axis_unit(show.TIME_UNITS, float(last))
    known = [one for one in shown if one["busiest_bps"] is not None]
    top = max((float(one["busiest_bps"]) for one in known), default=float(port["rate_bps"] or 0))
    rate_unit, rate_scale = show.axis_unit(show.RATE_UNITS, top)
    x, y = list[float | None](), list[float | None]()
    for one in known:
        x += [one["start_ps"] / scale, one["end_ps"] / scale, None]
        y += [one["busiest_bps"] / rate_scale] * 2 + [None]
    hover = f"%{{x:.9g}} {unit}: %{{y:.4g}} {rate_unit}<extra></extra>"
    line = {"width": 2.5, "color": figures.COLORS[0]}
    loads = go.Scatter(x=x, y=y, name="busiest interval of a burst", mode="lines", line=line, hovertemplate=hover)
    title = f"Load of {figures.plain(port['port'])}" + ("" if burst is None else f", burst {burst['index']}")
    note = "Of each burst the load of its busiest interval: counters tell no queue, and loads below the threshold are not drawn."
    ends = [first / scale, last / scale]
    traces = [loads, *_threshold(port, ends, rate_scale)]
    out = figures.framed(traces, title, _time(unit) | {"range": ends}, {"title": {"text": f"Load [{rate_unit}]"}}, note)
    if not known:
        text = port["nothing"]["words"] if port["nothing"] else "no burst whose load is known"
        lines = "<br>".join(textwrap.wrap(figures.plain(text), 80))
        out.update_layout(annotations=[{"text": lines, "showarrow": False, "x": 0.5, "y": 0.5, "xref": "paper", "yref": "paper"}])
    for one in shown:
        _shade_burst(out, one, scale)
    return out


def _straight(x: list[float], y: list[float], name: str, color: str, dash: str) -> go.Scatter:
    line = {"color": color, "width": 2.5 if dash == "solid" else 1.5, "dash": dash}
    return go.Scatter(x=x, y=y, name=name, mode="lines", line=line, hovertemplate=f"{name}<extra></extra>")


def _shade_burst(out: go.Figure, burst: dict[str, Any], scale: float) -> None:
    out.add_vrect(
        x0=burst["start_ps"] / scale, x1=burst["end_ps"] / scale, fillcolor="#d9730d", opacity=0.12, line_width=0, layer="below"
    )


def add_layer(out: go.Figure, port: dict[str, Any], burst: dict[str, Any], scales: tuple[float, float]) -> None:
    """Draw a burst's phases, fitted slopes and law into a figure of the queue.

    Parameters
    ----------
    out : plotly.graph_objects.Figure
        The queue over time.
    port, burst : dict
        Reports of the port and of the burst.
    scales : (float, float)
        Picoseconds and bytes of one unit of the axes.
    """
    time_scale, size_scale = scales
    whole = max(1, burst["end_ps"] - burst["start_ps"])
    if burst["phases"]:
        line = {"color": _FIT, "width": 2.5}
        name = "slopes of its phases" if len(burst["phases"]) > 1 else "slope"
        out.add_trace(go.Scatter(x=[None], y=[None], name=name, mode="lines", line=line, legendgroup="phases", hoverinfo="skip"))
    for number, phase in enumerate(burst["phases"], 1):
        ends = [phase["start_ps"] / time_scale, phase["end_ps"] / time_scale]
        out.add_vrect(x0=ends[0], x1=ends[1], fillcolor=_SHADES[(number - 1) % 2], opacity=0.10, line_width=0, layer="below")
        fitted = [phase["start_bytes"] / size_scale, phase["end_bytes"] / size_scale]
        fit = _straight(ends, fitted, f"phase {number}: {_rate(phase['slope_bps'])}", _FIT, "solid")
        out.add_trace(fit.update(legendgroup="phases", showlegend=False))
        if len(burst["phases"]) > 1 and phase["end_ps"] - phase["start_ps"] > _NUMBERED * whole:
            place = {"x": sum(ends) / 2, "y": 1, "xref": "x", "yref": "paper", "yanchor": "top"}
            out.add_annotation(text=str(number), showarrow=False, font={"size": 11}, **place)
    expected = reference(port, burst)
    if expected is not None:
        start, end, low, high = expected.line(burst)
        ends = [start / time_scale, end / time_scale]
        out.add_trace(_straight(ends, [low / size_scale, high / size_scale], expected.name, _SPEED, "dash"))
    out.update_layout(showlegend=True)
    words = tables.law_line(burst)
    if words:
        note = (out.layout.meta or {}).get("note", "")
        lines = "<br>".join(textwrap.wrap(figures.plain(f"{note} {words}"), 150))
        out.update_layout(meta={"note": f"{note} {words}".strip()})
        if out.layout.title.text:
            out.update_layout(
                title={"subtitle": {"text": lines, "font": {"size": 12}}}, margin={"t": 96 + 14 * lines.count("<br>")}
            )


def _rate(bps: float) -> str:
    """Return a slope as text; less than a bit in a second is none."""
    return show.rate(bps if abs(bps) >= 1 else 0)


@dataclass(frozen=True)
class Reference:
    """A slope to compare with.

    Attributes
    ----------
    name : str
        What it is.
    bps : float
        Its value [bit/s of frame bytes].
    phase : dict
        The stretch that is judged.
    """

    name: str
    bps: float
    phase: dict[str, Any]

    def line(self, burst: dict[str, Any]) -> tuple[float, float, float, float]:
        """Return the line to draw: from and to [ps], from and to [bytes]; above the queue it would only press that together."""
        room = max(0.0, _ABOVE * (burst["peak_bytes"] or 0) - self.phase["start_bytes"])
        span = min(self.phase["end_ps"] - self.phase["start_ps"], 8e12 * room / self.bps)
        low = self.phase["start_bytes"]
        return self.phase["start_ps"], self.phase["start_ps"] + span, low, low + self.bps * span / 8e12


def frame_rate(port: dict[str, Any]) -> float | None:
    """Return the speed of a port in bytes of full frames [bit/s]; None where it is unknown."""
    if port["rate_bps"] is None:
        return None
    return float(port["rate_bps"] * _FULL_FRAME / (_FULL_FRAME + port["overhead_bytes"]))


def reference(port: dict[str, Any], burst: dict[str, Any]) -> Reference | None:
    """Return the slope to compare with, what a law expects or the port's speed; None where neither is known."""
    law = burst["law"]
    if law is not None:
        name = "bound 2aR/(a+R)" if law["law"] == 3 else "R"
        stretch = burst["phases"][law["phase"]] | {"end_ps": burst["phases"][law["last_phase"]]["end_ps"]}
        return Reference(f"{name}: {show.rate(law['bound_bps'])}", law["bound_bps"], stretch)
    rising = [phase for phase in burst["phases"] if phase["slope_bps"] > 0]
    frames = frame_rate(port)
    if frames is None or not rising:
        return None
    longest = max(rising, key=lambda phase: phase["end_ps"] - phase["start_ps"])
    return Reference(f"R: {show.rate(frames)}", frames, longest)
