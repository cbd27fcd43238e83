"""Interactive figures of a result, as Plotly figures."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

import plotly.graph_objects as go
import polars as pl

from fanin.explain import pauses as pauses_
from fanin.figures import series
from fanin.text import show

if TYPE_CHECKING:
    from fanin.tables.recorded import Recorded

__all__ = [
    "COLORS",
    "bus_bandwidth",
    "by_size",
    "detours",
    "drops_marks",
    "fct_cdf",
    "framed",
    "input_queues",
    "largest",
    "log_axis",
    "packet_traces",
    "paused_bands",
    "pauses",
    "plain",
    "queue",
    "sequence",
    "template",
    "throughput",
]

COLORS: Final = ("#1f6feb", "#d9730d", "#1a9c6b", "#b3408f", "#7a5cc7", "#8a6d3b", "#0e8fa8", "#59636e")
"""Distinguishable also with the common colour deficiencies; orange-red and blue never differ by hue alone."""

DROP_COLOR: Final = "#cf222e"
MARK_COLOR: Final = "#d9730d"


def _shown_after_conversion() -> None:
    """Let figures in Jupyter be HTML, too: the format that Plotly shows them in is lost when a notebook is converted.

    A renderer that somebody has chosen stays, and so does what is chosen after this module is imported.
    """
    if "ipykernel" in sys.modules and not os.environ.get("PLOTLY_RENDERER"):
        import plotly.io as pio

        if pio.renderers.default in ("plotly_mimetype", "vscode"):
            pio.renderers.default = f"{pio.renderers.default}+notebook"


_shown_after_conversion()


def template() -> go.layout.Template:
    """Return the look of all figures."""
    axis = {"showline": True, "linecolor": "#8c959f", "gridcolor": "#e6e9ed", "zeroline": False, "ticks": "outside"}
    return go.layout.Template(
        layout={
            "colorway": list(COLORS),
            "font": {"family": "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif", "size": 13},
            "paper_bgcolor": "#ffffff",
            "plot_bgcolor": "#ffffff",
            "xaxis": axis,
            "yaxis": axis,
            "margin": {"l": 72, "r": 24, "t": 48, "b": 56},
            "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.0, "x": 0},
            "hoverlabel": {"align": "left"},
        }
    )


def framed(
    traces: Sequence[go.Scatter],
    title: str,
    x: dict[str, Any],
    y: dict[str, Any],
    note: str = "",
) -> go.Figure:
    """Return traces in the look of all figures; the note stands below the title."""
    figure = go.Figure(list(traces))
    subtitle = {"subtitle": {"text": note, "font": {"size": 12}}} if note else {}
    figure.update_layout(
        template=template(),
        title={"text": title, **subtitle},
        xaxis=x,
        yaxis={"rangemode": "tozero", **y} if y.get("type") != "log" else y,
        meta={"note": note},
        height=420,
        showlegend=len(traces) > 1,
    )
    if not any(len(trace.x) if trace.x is not None else 0 for trace in traces):
        figure.add_annotation(text="nothing was recorded", showarrow=False, x=0.5, y=0.5, xref="paper", yref="paper")
    return figure


def _in_units(column: pl.Series, scale: float) -> Any:
    return (column.cast(pl.Float64) / scale).to_numpy()


def log_axis(title: str, values: Sequence[float]) -> dict[str, Any]:
    """Return a logarithmic axis with a label at each power of ten, and with at least one decade on it."""
    axis = {"title": {"text": title}, "type": "log", "dtick": 1, "exponentformat": "none", "separatethousands": True}
    axis["minor"] = {"dtick": "D1", "ticks": "outside", "ticklen": 3}
    known = [value for value in values if value > 0]
    low, high = (math.log10(min(known)), math.log10(max(known))) if known else (0.0, 0.0)
    if known and math.floor(high) - math.ceil(low) < 1:  # fewer than two powers of ten inside
        axis["range"] = [math.floor(low) - 0.05, max(math.ceil(high), math.floor(low) + 1) + 0.05]
    return axis


def _fct_unit(result: Recorded) -> tuple[str, float]:
    """Return the unit in which all charts of completion times are drawn."""
    keys = ("mean_ps", "p50_ps", "p95_ps", "p99_ps")
    bins = [entry for entry in result.summary.get("fct") or [] if entry.get("bin") != "all" and entry.get("flows")]
    known = sorted(entry[key] for entry in bins for key in keys if entry.get(key) is not None)
    return show.axis_unit(show.TIME_UNITS, known[len(known) // 2] if known else _median(result.completions["fct_ps"]))


def largest(column: pl.Series) -> float:
    """Return the largest value of a column; zero of none."""
    value = column.max()
    return float(value) if isinstance(value, int | float) else 0.0


def fct_cdf(result: Recorded, *, slowdown: bool = False) -> go.Figure:
    """Return the distribution of completion times or slowdowns; see `fanin.Result.plot_fct_cdf`."""
    done = result.completions
    column = "slowdown" if slowdown else "fct_ps"
    unit, scale = ("", 1.0) if slowdown else _fct_unit(result)
    traces, thinned = [], 0
    groups = done["group"].unique(maintain_order=True).to_list()
    shared = pl.col("group").is_in(done.group_by("group").len().filter(pl.col("len") == 1)["group"].to_list())
    single = done.filter(shared)
    curves = [("all", done)] * (len(groups) > 1)
    if single.height > 1:  # a curve of one flow is a step that says nothing
        several = done.filter(~shared)["group"].unique(maintain_order=True).to_list()
        of_one = f"{single.height:,} entries of one flow"
        curves += [(g, done.filter(pl.col("group") == g)) for g in several] + ([(of_one, single)] if several else [])
    else:
        curves += [(g, done.filter(pl.col("group") == g)) for g in groups]
    for name, frame in curves:
        curve = series.cdf(frame[column])
        thinned += frame.height > curve.height
        all_flows = name == "all" and len(groups) > 1
        traces.append(
            go.Scatter(
                x=_in_units(curve["value"], scale),
                y=curve["fraction"].to_numpy(),
                name=f"{plain(name)} ({frame.height:,})",
                mode="lines",
                line={"shape": "hv", "width": 2, **({"color": "#59636e", "dash": "dot"} if all_flows else {})},
                hovertemplate=f"%{{x:.4g}} {unit}: %{{y:.2%}}<extra>{plain(name)}</extra>",
            )
        )
    what = "Slowdown" if slowdown else "Flow completion time"
    ends = [float(value) for trace in traces if len(trace.x) for value in (trace.x[0], trace.x[-1])]
    x = log_axis(what if slowdown else f"{what} [{unit}]", ends)
    note = "Completed flows, by traffic entry." + (" Curves thinned, the hundred largest values kept." if thinned else "")
    return framed(traces, f"Distribution of the {what.lower()}", x, {"title": {"text": "Fraction of flows"}}, note)


def _median(column: pl.Series) -> float | None:
    middle = column.median()
    return float(middle) if isinstance(middle, int | float) else None


def plain(text: str) -> str:
    """Plotly reads a little HTML in names; a group called ``<b>`` is to stay one."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def by_size(result: Recorded, what: Literal["fct", "slowdown"]) -> go.Figure:
    """Return completion time or slowdown by size bin; see `fanin.Result.plot_slowdown`."""
    bins = [entry for entry in result.summary.get("fct") or [] if entry.get("bin") != "all" and entry.get("flows")]
    labels = [f"{show.byte_range(entry.get('from_bytes'), entry.get('to_bytes'))}<br>{entry['flows']:,} flows" for entry in bins]
    columns = {
        name: [entry.get(f"slowdown_{key}" if what == "slowdown" else f"{key}_ps") for entry in bins]
        for name, key in (("p99", "p99"), ("p95", "p95"), ("mean", "mean"), ("median", "p50"))
    }
    known = [value for values in columns.values() for value in values if value is not None]
    unit, scale = ("", 1.0) if what == "slowdown" else _fct_unit(result)
    symbols = {"p99": "triangle-up", "p95": "diamond", "mean": "square", "median": "circle"}
    traces = [
        go.Scatter(
            x=labels,
            y=[None if value is None else value / scale for value in values],
            name=name,
            mode="lines+markers",
            marker={"symbol": symbols[name], "size": 9},
            line={"width": 2, "dash": "dot" if name == "mean" else "solid"},
            hovertemplate=f"%{{y:.4g}} {unit}<extra>{name}</extra>",
        )
        for name, values in columns.items()
    ]
    title = "Slowdown" if what == "slowdown" else "Flow completion time"
    y = log_axis(title if what == "slowdown" else f"{title} [{unit}]", [value / scale for value in known])
    note = "Completion time over the completion time alone on an idle network." if what == "slowdown" else ""
    return framed(traces, f"{title} by flow size", {"title": {"text": "Flow size"}, "type": "category"}, y, note)


FEW_ITERATIONS = 20
"""Most iterations of a job that have a tick each."""


def bus_bandwidth(result: Recorded) -> go.Figure:
    """Return the bus bandwidth of each collective operation by iteration; of several groups of ranks, the slowest one's."""
    slowest = pl.col("busbw_bps").min()
    rows = result.scan("collectives").filter(pl.col("busbw_bps").is_not_null())
    keys = ["group", "operation", "collective", "algorithm"]
    iterations = max((int(job["iterations"]["total"]) for job in result.summary.get("collectives") or []), default=0)
    step = max(1, -(-iterations // series.MAX_POINTS))
    by_iteration = (pl.col("iteration") // step * step).alias("iteration")
    found = rows.group_by(*keys, by_iteration).agg(slowest).sort("group", "operation", "iteration").collect()
    unit, scale = show.axis_unit(show.RATE_UNITS, largest(found["busbw_bps"]))
    traces = [
        go.Scatter(
            x=frame["iteration"].to_numpy(),
            y=_in_units(frame["busbw_bps"], scale),
            name=plain(f"{group}: {collective} ({algorithm})"),
            mode="lines+markers",
            hovertemplate=f"iteration %{{x}}: %{{y:.4g}} {unit}<extra>{plain(str(group))}</extra>",
        )
        for (group, _, collective, algorithm), frame in found.group_by(keys, maintain_order=True)
    ]
    y = {"title": {"text": f"Bus bandwidth [{unit}]"}, "rangemode": "tozero"}
    thinned = f" Each point is the slowest of {step:,} iterations." if step > 1 else ""
    note = f"Of several groups of ranks, that of the slowest.{thinned}"
    x = {"title": {"text": "Iteration"}, **({"dtick": 1} if iterations <= FEW_ITERATIONS else {})}
    return framed(traces, "Bus bandwidth by iteration", x, y, note)


def queue(
    result: Recorded, port: str | None = None, *, window_ps: tuple[int, int] | None = None, max_points: int = series.MAX_POINTS
) -> go.Figure:
    """Return the queue of a port over time; see `fanin.Result.plot_queue`."""
    if port is None:
        hottest = series.hot_ports(result, 1)
        if not hottest:
            raise ValueError("no queue was recorded in this run")
        port = hottest[0]
    data = series.queue_series(result, port, window_ps, max_points)
    frame = data.frame
    unit, scale = show.axis_unit(show.TIME_UNITS, largest(frame["time_ps"]))
    size_unit, size_scale = show.axis_unit(show.SIZE_UNITS, data.peak_bytes)
    if data.kind == "packet":
        traces = packet_traces(data, unit, scale, (size_unit, size_scale))
        note = (
            f"{data.records:,} packets, smallest and largest queue of each of {max_points // 2:,} parts of the time."
            if data.reduced
            else f"{data.records:,} packets, each as it found the queue."
        )
    else:
        hover = f"%{{x:.6g}} {unit}: %{{y:.4g}} {size_unit}"
        columns = [("queue_max_bytes", "largest in the interval", "vh", 1.2)]
        columns += [("queue_bytes", "at the sample", "linear", 1.0)] if not data.reduced else []
        traces = [
            go.Scatter(
                x=_in_units(frame["time_ps"], scale),
                y=_in_units(frame[column], size_scale),
                name=name,
                mode="lines",
                line={"shape": shape, "width": width},
                hovertemplate=f"{hover}<extra>{name}</extra>",
                **({"fill": "tozeroy"} if column == "queue_max_bytes" else {}),
            )
            for column, name, shape, width in columns
        ]
        note = f"{data.records:,} samples" + (
            f", smallest and largest of each of {max_points // 2:,} parts of the time." if data.reduced else "."
        )
    x, y = {"title": {"text": f"Time [{unit}]"}}, {"title": {"text": f"Queue [{size_unit}]"}}
    return framed(traces, f"Queue of {plain(port)}", x, y, note)


MAX_INPUTS: Final = 8
"""Inputs of a combined switch whose queues for a port are drawn, those with the most first."""


def input_queues(result: Recorded, port: str) -> go.Figure | None:
    """Return what waits for a port at the inputs of its switch, beside its own queue; None where nothing has."""
    if not (result.path / "voqs.parquet").is_file():
        return None
    rows = result.scan_voqs().filter(pl.col("port") == port, pl.col("queue_max_bytes") > 0)
    rows = rows.with_columns(pl.col("input").fill_null("the switch itself"))
    most = (
        rows.group_by("input").agg(most=pl.col("queue_max_bytes").max()).sort("most", "input", descending=[True, False]).collect()
    )
    if not most.height:
        return None
    times = pl.LazyFrame({"time_ps": result.sample_times})
    own = result.scan_ports().filter(pl.col("port") == port)
    lines = {f"output {port}": own} | {name: rows.filter(pl.col("input") == name) for name in most["input"].head(MAX_INPUTS)}
    unit, scale = show.axis_unit(show.TIME_UNITS, largest(result.sample_times))
    top = max(float(most["most"][0]), largest(own.select("queue_max_bytes").collect()["queue_max_bytes"]))
    size_unit, size_scale = show.axis_unit(show.SIZE_UNITS, top)
    traces = []
    for name, written in lines.items():
        line = times.join(written.select("time_ps", "queue_max_bytes"), on="time_ps", how="left").fill_null(0)
        if len(result.sample_times) > series.MAX_POINTS:
            line = series.reduce_minmax(line, "queue_max_bytes", series.MAX_POINTS // 2)
        drawn = line.sort("time_ps").collect()
        traces.append(
            go.Scatter(
                x=_in_units(drawn["time_ps"], scale),
                y=_in_units(drawn["queue_max_bytes"], size_scale),
                name=plain(name),
                mode="lines",
                line={"shape": "vh", "width": 1.2},
                hovertemplate=f"%{{x:.6g}} {unit}: %{{y:.4g}} {size_unit}<extra>{plain(name)}</extra>",
            )
        )
    more = most.height - MAX_INPUTS
    note = "Largest in each sampling interval: the queue of the port, and the virtual output queues for it, by input."
    note += f" {more} more inputs have less." if more > 0 else ""
    x, y = {"title": {"text": f"Time [{unit}]"}}, {"title": {"text": f"Queue [{size_unit}]"}}
    return framed(traces, f"Inputs that wait for {plain(port)}", x, y, note)


def packet_traces(data: series.QueueSeries, unit: str, scale: float, size_unit: tuple[str, float]) -> list[go.Scatter]:
    """Return the traces of a queue, packet by packet: the line, and packets that were queued, marked or dropped."""
    size_name, size_scale = size_unit

    def level(frame: pl.DataFrame) -> Any:
        """Seven digits of a queue are more than anybody reads, and half the bytes on a page."""
        return _in_units(frame["queue_bytes"], size_scale).astype("f4")

    traces = [
        go.Scatter(
            x=_in_units(data.line["time_ps"], scale),
            y=level(data.line),
            name="queue",
            mode="lines",
            line={"width": 1.2, "color": COLORS[0]},
            **(
                {"hovertemplate": f"%{{x:.9g}} {unit}: %{{y:.4g}} {size_name}<extra></extra>"}
                if data.reduced
                else {"hoverinfo": "skip"}
            ),
        )
    ]
    if data.reduced:
        return traces
    counted = data.frame["queue_packets"].null_count() == 0
    more = ["flow", "frame_bytes", *(["queue_packets"] if counted else [])]
    kinds = (
        (~pl.col("marked") & ~pl.col("dropped"), "queued", COLORS[0], "circle", 4),
        (pl.col("marked") & ~pl.col("dropped"), "marked CE", MARK_COLOR, "circle", 4),
        (pl.col("dropped"), "dropped", DROP_COLOR, "x", 7),
    )
    for chosen, name, color, symbol, diameter in kinds:
        rows = data.frame.filter(chosen)
        if rows.height:
            traces.append(
                go.Scatter(
                    x=_in_units(rows["time_ps"], scale),
                    y=level(rows),
                    customdata=rows.select(pl.col(more).cast(pl.UInt32)).to_numpy(),
                    name=name,
                    mode="markers",
                    marker={"size": diameter, "color": color, "symbol": symbol},
                    hovertemplate=(
                        f"%{{x:.9g}} {unit}<br>%{{y:.4g}} {size_name}{', %{customdata[2]} packets' if counted else ''}<br>"
                        f"flow %{{customdata[0]}}, %{{customdata[1]}} B frame<extra>{name}</extra>"
                    ),
                )
            )
    return traces


def _interval(data: series.SampledSeries) -> str:
    spans = data.frame["span_ps"]
    return show.duration(_median(spans)) if spans.len() else "sample"


def _sampling_note(data: series.SampledSeries) -> str:
    text = f"{data.frame.height:,} intervals of {_interval(data)}"
    return text + (f", each {data.merged} samples added up." if data.merged > 1 else ".")


def throughput(result: Recorded, ports: str | Sequence[str] | None = None) -> go.Figure:
    """Return throughput over time; see `fanin.Result.plot_throughput`."""
    if ports is None:
        chosen = [("into all hosts", series.to_hosts(result))]
    else:
        chosen = [(port, [port]) for port in ([ports] if isinstance(ports, str) else ports)]
    # Several curves over one another can only be distinguished when they are coarse and thin.
    points, width = (series.MAX_POINTS, 1.5) if len(chosen) == 1 else (series.MAX_POINTS // 32, 1.0)
    curves = [(name, series.sampled(result, members, points)) for name, members in chosen]
    for name, data in curves:
        if ports is not None and not data.frame.height:
            raise ValueError(f"there are no samples of the port '{name}'")
    rates = [8e12 * data.frame["tx_bytes"] / data.frame["span_ps"] for _, data in curves]
    unit, scale = show.axis_unit(show.RATE_UNITS, max((largest(rate) for rate in rates), default=0.0))
    end = max((largest(data.frame["time_ps"]) for _, data in curves), default=0.0)
    time_unit, time_scale = show.axis_unit(show.TIME_UNITS, end)
    traces = [
        go.Scatter(
            x=_in_units(data.frame["time_ps"], time_scale),
            y=_in_units(rate, scale),
            name=plain(name),
            mode="lines",
            line={"shape": "vh", "width": width},
            hovertemplate=f"%{{x:.6g}} {time_unit}: %{{y:.4g}} {unit}<extra>{plain(name)}</extra>",
        )
        for (name, data), rate in zip(curves, rates, strict=True)
    ]
    note = f"Frames, preamble and gap not counted; {_sampling_note(curves[0][1])}" if curves else ""
    x, y = {"title": {"text": f"Time [{time_unit}]"}}, {"title": {"text": f"Throughput [{unit}]"}}
    title = "Throughput " + ("into all hosts" if ports is None else f"of {traces[0].name}" if len(traces) == 1 else "by port")
    return framed(traces, title, x, y, note)


PHASES: Final = {"cwr": "#d9730d", "recovery": "#7a5cc7", "loss": "#cf222e"}
"""Phases of a sender that are shaded; docs/telemetry.md."""

MAX_SEGMENTS: Final = 8000
"""Packets sent for the first time that a time-sequence plot shows; those sent again are all there."""

MAX_SHADES: Final = 200


def followed(result: Recorded, limit: int) -> list[int]:
    """Return the followed flows that sent data by slowdown, the largest first; those that were not completed before all."""
    sent = result.scan("segments").filter(pl.col("payload_bytes") > 0)
    numbers = sent.select(pl.col("flow").unique()).collect()["flow"]
    rows = result.flows.filter(pl.col("flow").is_in(numbers.implode()))
    slowdown = (pl.col("finish_ps") - pl.col("start_ps")) / pl.col("ideal_ps")
    rows = rows.with_columns(slowdown=slowdown).sort("slowdown", descending=True, nulls_last=False, maintain_order=True)
    return [int(number) for number in rows["flow"].head(limit)]


def sequence(result: Recorded, flow: int | str | None = None) -> go.Figure:
    """Return the time-sequence plot of a followed flow; see `fanin.Result.plot_sequence`."""
    from fanin.explain import find

    if flow is None:
        first = followed(result, 1)
        if not first:
            raise ValueError("this run followed no flow that sent data; telemetry.hosts names flows")
        flow = first[0]
    row = find(result, flow)
    of_flow = pl.col("flow") == row["flow"]
    data = result.scan("segments").filter(of_flow, pl.col("host") == row["src"], pl.col("payload_bytes") > 0)
    sent = data.collect().sort("packet")
    states = result.scan("hosts").filter(of_flow).collect()
    if not sent.height:
        if result.scan("segments").filter(of_flow).collect().height:
            raise ValueError(f"flow '{flow}' sent no data: its connection never opened")
        raise ValueError(f"flow '{flow}' was not followed; telemetry.hosts names flows that are")
    unit, scale = show.axis_unit(show.TIME_UNITS, max(largest(sent["sent_ps"]), largest(states["time_ps"])))
    size_unit, size_scale = show.axis_unit(show.SIZE_UNITS, largest(sent["seq_bytes"] + sent["payload_bytes"]))
    hover = f"%{{x:.9g}} {unit}: %{{y:.6g}} {size_unit}"
    edges = states.with_columns(edge=pl.col("acked_bytes") + pl.col("cwnd_bytes"))
    # Beyond what there is to send a window says nothing.
    edges = edges.with_columns(edge=pl.min_horizontal("edge", pl.lit(row["size_bytes"], dtype=pl.UInt64)))
    traces = [
        go.Scatter(
            x=_in_units(frame["time_ps"], scale),
            y=_in_units(frame[column], size_scale),
            name=name,
            mode="lines",
            line={"shape": "hv", "width": width, "color": color, "dash": dash},
            hovertemplate=f"{hover}<extra>{name}</extra>",
        )
        for frame, column, name, color, dash, width in (
            (edges, "edge", "acknowledged + cwnd", "#8a6d3b", "dot", 1.2),
            (states, "acked_bytes", "acknowledged", COLORS[2], "solid", 1.5),
        )
        if frame.height
    ]
    once = sent.filter(pl.col("again") == 0)
    step = max(1, -(-once.height // MAX_SEGMENTS))
    kinds = (
        (once.gather_every(step), "sent", COLORS[0], "circle", 4),
        (sent.filter(pl.col("again") > 0), "sent again", COLORS[3], "diamond", 7),
        (sent.filter(pl.col("dropped_ps").is_not_null()), "was dropped", DROP_COLOR, "x", 7),
    )
    for rows, name, color, symbol, diameter in kinds:
        if rows.height:
            traces.append(
                go.Scatter(
                    x=_in_units(rows["sent_ps"], scale),
                    y=_in_units(rows["seq_bytes"], size_scale),
                    customdata=rows.select("packet", "payload_bytes", "cause", pl.col("dropped_at").fill_null("")).to_numpy(),
                    name=name,
                    mode="markers",
                    marker={"size": diameter, "color": color, "symbol": symbol},
                    hovertemplate=(
                        f"{hover}<br>packet %{{customdata[0]}}, %{{customdata[1]}} B, because: %{{customdata[2]}}"
                        f"<br>%{{customdata[3]}}<extra>{name}</extra>"
                    ),
                )
            )
    thinned = f" Every {step}th first transmission." if step > 1 else ""
    shades = _phases(states)
    for phase in PHASES:
        if any(shade[0] == phase for shade in shades):
            shaded = {"size": 10, "symbol": "square", "color": PHASES[phase], "opacity": 0.3}
            traces.append(go.Scatter(x=[None], y=[None], mode="markers", name=phase, marker=shaded, hoverinfo="skip"))
    name = row["id"] if row["id"] is not None else row["flow"]
    title = f"Flow {plain(str(name))}, {plain(row['src'])} to {plain(row['dst'])}: bytes sent and acknowledged"
    x, y = {"title": {"text": f"Time [{unit}]"}}, {"title": {"text": f"Place in the stream [{size_unit}]"}}
    figure = framed(traces, title, x, y, f"{sent.height:,} data packets.{thinned}")
    for phase, start, end in shades[:MAX_SHADES]:
        ends = {"x0": start / scale, "x1": end / scale, "y0": 0, "y1": 1, "xref": "x", "yref": "paper"}
        figure.add_shape(type="rect", **ends, fillcolor=PHASES[phase], opacity=0.12, layer="below", line={"width": 0})
    return figure


def _phases(states: pl.DataFrame) -> list[tuple[str, int, int]]:
    """Return stretches of time in which a sender was not in the open phase."""
    if not states.height:
        return []
    runs = states.with_columns(run=pl.col("phase").rle_id()).group_by("run", maintain_order=True)
    starts = runs.agg(pl.col("phase").first(), start=pl.col("time_ps").first())
    last = int(largest(states["time_ps"]))
    ended = starts.with_columns(end=pl.col("start").shift(-1).fill_null(last)).filter(pl.col("phase").is_in(list(PHASES)))
    return [(str(phase), int(start), int(end)) for phase, start, end in ended.select("phase", "start", "end").iter_rows()]


_MAX_DETOURS: Final = 5000
"""Detours that are drawn one by one, the longest."""

_MAX_PAUSED: Final = 24
"""Ports and classes of which pauses are drawn, those with the longest."""

_MAX_STRETCHES: Final = 500
"""Stretches of time that are drawn for one of them."""


def detours(found: pl.DataFrame) -> go.Figure:
    """Return how long packets were away on detours over the time at which they left, by neighbour.

    Parameters
    ----------
    found : polars.DataFrame
        Rows of `fanin.detours.each`.
    """
    shown = found.sort("away_ps", "packet", descending=[True, False]).head(_MAX_DETOURS).sort("from_ps", "packet")
    unit, scale = show.axis_unit(show.TIME_UNITS, largest(found["from_ps"]))
    away_unit, away_scale = show.axis_unit(show.TIME_UNITS, largest(found["away_ps"]))
    traces = []
    for (switch, neighbour), frame in shown.group_by(["switch", "neighbour"], maintain_order=True):
        name = plain(f"{switch} to {neighbour}")
        traces.append(
            go.Scatter(
                x=_in_units(frame["from_ps"], scale),
                y=_in_units(frame["away_ps"], away_scale),
                name=f"{name} ({frame.height:,})",
                mode="markers",
                marker={"size": 4},
                customdata=frame.select("flow", "packet").to_numpy(),
                hovertemplate=f"%{{x:.9g}} {unit}: away %{{y:.4g}} {away_unit}<br>"
                f"flow %{{customdata[0]}}, packet %{{customdata[1]}}<extra>{name}</extra>",
            )
        )
    note = f"{found.height:,} detours of followed flows, each when it began."
    if shown.height < found.height:
        note = f"The {shown.height:,} longest of {note}"
    x, y = {"title": {"text": f"Time [{unit}]"}}, {"title": {"text": f"Away [{away_unit}]"}, "rangemode": "tozero"}
    return framed(traces, "Time on detours", x, y, note)


def pauses(result: Recorded) -> go.Figure:
    """Return when ports were paused, a line for each port and class; see `fanin.Result.plot_pauses`."""
    found = pauses_.ended(result)
    most = pauses_.by_port(result)
    listed = most.head(_MAX_PAUSED).select("port", "class")
    first = found.join(listed, on=["port", "class"]).group_by("port", "class").agg(pl.min("start_ps"))
    unit, scale = show.axis_unit(show.TIME_UNITS, largest(found["end_ps"]))
    traces, names, widest = [], [], 0
    for place, (port, number) in enumerate(first.sort("start_ps", "port", "class").select("port", "class").iter_rows()):
        own = found.filter(pl.col("port") == port, pl.col("class") == number)
        drawn, gap = pauses_.stretches(own, _MAX_STRETCHES)
        widest = max(widest, gap)
        ends = _in_units(drawn["start_ps"], scale), _in_units(drawn["end_ps"], scale)
        names.append(plain(f"{port}, class {number}" if most["class"].n_unique() > 1 else port))
        hover = f"%{{x:.9g}} {unit}<extra>{names[-1]}</extra>"
        points = [[begin, end, None] for begin, end in zip(*ends, strict=True)]
        line = {"width": 8, "dash": "solid", "color": COLORS[number % len(COLORS)]}
        x = [point for three in points for point in three]
        traces.append(
            go.Scatter(x=x, y=[place] * len(x), name=names[-1], mode="lines", line=line, hovertemplate=hover, showlegend=False)
        )
    note = f"{show.many(found.height, 'pause')}; ports in the order of their first pauses."
    if most.height > listed.height:
        note = f"The {listed.height} of {most.height:,} ports and classes with the longest pauses. {note}"
    if widest:
        note += f" Gaps of less than {show.duration(widest)} are not drawn."
    y = {
        "tickvals": list(range(len(names))),
        "ticktext": names,
        "automargin": True,
        "rangemode": "normal",
        "range": [len(names) - 0.5, -0.5],
    }
    return framed(traces, "Paused ports", {"title": {"text": f"Time [{unit}]"}}, y, note)


def paused_bands(figure: go.Figure, result: Recorded, port: str, scale: float) -> go.Figure:
    """Draw bands into a figure over time where a port was paused, and where others were paused for packets that waited there.

    Parameters
    ----------
    scale : float
        Picoseconds of a unit of its axis.
    """
    found = pauses_.ended(result)
    bands = [
        ("paused itself", pl.col("port") == port, "rgba(89,99,110,0.28)"),
        ("its neighbours paused", pl.col("behind") == port, "rgba(217,115,13,0.22)"),
    ]
    for name, which, color in bands:
        drawn, _ = pauses_.stretches(found.filter(which), _MAX_STRETCHES)
        if not drawn.height:
            continue
        ends = _in_units(drawn["start_ps"], scale), _in_units(drawn["end_ps"], scale)
        x = [point for begin, end in zip(*ends, strict=True) for point in (begin, begin, end, end)]
        look = {"mode": "lines", "line": {"width": 0}, "fill": "tozeroy", "fillcolor": color, "hoverinfo": "skip"}
        figure.add_trace(go.Scatter(x=x, y=[0, 1, 1, 0] * drawn.height, name=name, yaxis="y2", **look))
        figure.update_layout(yaxis2={"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True}, showlegend=True)
    return figure


def drops_marks(result: Recorded, port: str | None = None) -> go.Figure:
    """Return drops and marks over time; see `fanin.Result.plot_drops_marks`."""
    data = series.sampled(result, None if port is None else [port])
    if port is not None and not data.frame.height:
        raise ValueError(f"there are no samples of the port '{port}'")
    time_unit, time_scale = show.axis_unit(show.TIME_UNITS, largest(data.frame["time_ps"]))
    traces = [
        go.Scatter(
            x=_in_units(data.frame["time_ps"], time_scale),
            y=data.frame[column].to_numpy(),
            name=name,
            mode="lines",
            fill="tozeroy",
            line={"shape": "vh", "width": 1.5, "color": color},
            hovertemplate=f"%{{x:.6g}} {time_unit}: %{{y:,}} packets<extra>{name}</extra>",
        )
        for column, name, color in (("marks", "ECN marks", MARK_COLOR), ("drops", "drops", DROP_COLOR))
    ]
    where = "all ports" if port is None else plain(port)
    x = {"title": {"text": f"Time [{time_unit}]"}}
    y = {"title": {"text": f"Packets per {_interval(data)}"}}
    return framed(traces, f"Drops and ECN marks, {where}", x, y, _sampling_note(data))
