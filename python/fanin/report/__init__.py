"""The report: one HTML page about a run, which needs neither network nor other files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl
import tomli_w

from fanin import figures, files
from fanin.analysis import Analysis, TraceError, analyze, tables
from fanin.analysis.explorer import MAX_PORTS, PACKETS, Explorer, explore
from fanin.explain import detours, explain, pauses
from fanin.figures import focus, rates, regions, series
from fanin.pages import PEAK_PACKETS, Chart, Charts, page, strong
from fanin.tables import counters, overview
from fanin.tables.recorded import Recorded, ResultError
from fanin.text import show

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["MAX_PORTS", "PEAK_PACKETS", "PEAK_SAMPLES", "render", "write"]

FLOWS: Final = 4
"""Followed flows that are drawn and explained, those with the largest slowdown."""

MAX_PAUSED: Final = 32
"""Ports and classes that are listed with their pauses."""

MAX_EVENTS: Final = 12
"""Events in which pauses spread that are listed, those with the longest pauses; the first of them has its tree."""

MAX_DETOURED: Final = 10
"""Flows that are listed with what came out of order."""

MAX_REGION: Final = 16
"""Switches that are listed with the states of their ports."""

PEAK_SAMPLES: Final = 1000
"""Samples around the largest queue that are drawn one by one where the whole run has too many."""


@dataclass(frozen=True)
class Followed:
    """A followed flow: its time-sequence plot, and where its time went."""

    chart: Chart
    words: str
    parts: tuple[list[str], list[list[str]]]


@dataclass(frozen=True)
class Detours:
    """Detours of followed packets: when and for how long, by neighbour, and what came out of order."""

    chart: Chart
    ways: tuple[list[str], list[list[str]]]
    order: tuple[list[str], list[list[str]]]


@dataclass(frozen=True)
class Pauses:
    """Pauses of ports: when, how long, and how they spread from a congested port."""

    chart: Chart
    ports: tuple[list[str], list[list[str]]]
    more: int
    events: tuple[list[str], list[list[str]]]
    words: str
    tree: str
    edges: tuple[list[str], list[list[str]]]
    flows: tuple[list[str], list[list[str]]]


@dataclass(frozen=True)
class Region:
    """What a mechanism makes of ports: on the topology, over time, by switch."""

    mechanism: str
    charts: list[Chart]
    switches: tuple[list[str], list[list[str]]]


def _analysis(result: Recorded) -> Analysis | None:
    """Return the bursts of the watched ports, if any port was watched."""
    if not (result.path / "queues.parquet").is_file():
        return None
    try:
        return analyze(result)
    except TraceError as error:
        raise ResultError(str(error)) from error


def _with_bursts(analysis: Analysis | None, port: str) -> dict[str, Any] | None:
    """Return the report of a port, if it had a burst."""
    ports: list[dict[str, Any]] = analysis.document["ports"] if analysis is not None else []
    return next((entry for entry in ports if entry["port"] == port and entry["bursts"]), None)


@dataclass(frozen=True)
class Panel:
    """The queue of one port."""

    port: str
    charts: list[Chart]
    watched: bool


def _queue_panels(result: Recorded, charts: Charts, until: int | None, analysis: Analysis | None) -> list[Panel]:
    panels = []
    for index, port in enumerate(series.shown_ports(result, MAX_PORTS)):
        try:
            data = series.queue_series(result, port)
        except ValueError:  # listed in the summary, and neither watched nor sampled
            continue
        figure = focus.focused(figures.queue(result, port), until if data.peak_ps < (until or 0) else None)
        figure = figures.paused_bands(figure, result, port, focus.time_scale(figure))
        drawn = [charts.add(f"queue-{index}", figure, f"Queue of {port}")]
        inputs = figures.input_queues(result, port)
        if inputs is not None:
            drawn.append(charts.add(f"inputs-{index}", focus.focused(inputs, until if data.peak_ps < (until or 0) else None)))
        entry = _with_bursts(analysis, port) if data.kind == "packet" else None
        highest = None if entry is None else tables.largest(entry, 1)[0]
        if highest is not None:
            _shade(charts.figures[f"queue-{index}"], figure, (highest["start_ps"], highest["end_ps"]))
        if data.reduced and (highest is None or highest["records"] > PACKETS):
            rows, what = (PEAK_PACKETS, "packet") if data.kind == "packet" else (PEAK_SAMPLES, "sample")
            window = series.peak_window(result, port, rows)
            near = figures.queue(result, port, window_ps=window, max_points=2 * rows)
            near = figures.paused_bands(near, result, port, focus.time_scale(near))
            _shade(charts.figures[f"queue-{index}"], figure, _at_burst(result, port, near, window))
            drawn.append(charts.add(f"queue-{index}-peak", near, f"Around the largest queue of {port}, every {what}"))
        panels.append(Panel(port, drawn, data.kind == "packet"))
    return panels


def _bursts(analysis: Analysis | None) -> Explorer | None:
    """Return the bursts of the watched ports; None where there are none."""
    if analysis is None or not any(port["bursts"] for port in analysis.document["ports"]):
        return None
    try:
        return explore(analysis)
    except TraceError as error:
        raise ResultError(str(error)) from error


def _answer(result: Recorded) -> str:
    """Return one sentence with what matters most of a run."""
    summary = result.summary
    flows, largest = summary.get("flows") or {}, summary.get("largest_queue") or {}
    total, done = flows.get("total", 0), flows.get("complete", 0)
    everything = next((entry for entry in summary.get("fct") or [] if entry.get("bin") == "all" and entry.get("flows")), None)
    parts = []
    if total:
        parts.append(f"{strong(f'{done:,} of ' + show.many(total, 'flow'))} completed")
    if everything:
        half, worst = show.duration(everything.get("p50_ps")), show.ratio(everything.get("slowdown_p99"))
        parts.append(f"half within {strong(half)}, 99 % within {strong(f'{worst} times')} what they take alone")
    for job in summary.get("collectives") or []:
        taken, done = strong(show.duration(job.get("time_ps"))), job["iterations"]
        parts.append(f"the job {job['group']} took {taken} for {done['complete']:,} of {done['total']:,} iterations")
    if largest.get("port"):
        size, when = strong(show.size(largest.get("bytes"))), show.duration(largest.get("time_ps"))
        parts.append(f"the largest queue was {size} at {strong(largest['port'])} after {when}")
    drops, timeouts = summary.get("drops", 0), summary.get("timeouts", 0)
    lost = f"{show.many(drops, 'packet')} {'was' if drops == 1 else 'were'} dropped" if drops else "no packet was dropped"
    parts.append(strong(lost) + (f", with {show.many(timeouts, 'timeout')}" if timeouts else ""))
    state = "" if result.status == "complete" else f" This result is {strong(result.status)}."
    text = f"{'; '.join(parts)}.{state}"
    first = next(place for place, letter in enumerate(text) if letter.isprintable())
    return f"{text[:first]}{text[first].upper()}{text[first + 1 :]}"


def _followed(result: Recorded, charts: Charts) -> list[Followed]:
    drawn = []
    for index, flow in enumerate(figures.followed(result, FLOWS)):
        found = explain(result, flow)
        chart = charts.add(f"flow-{index}", _before_the_wait(figures.sequence(result, flow), found.document))
        drawn.append(Followed(chart, found.text, found.rows()))
    return drawn


def _rates(result: Recorded, charts: Charts) -> Chart | None:
    """Return the rates of followed flows over time; None where nothing but windows limits them."""
    return charts.add("rates", rates.figure(result)) if rates.flows_with_rates(result) else None


def _detours(result: Recorded, charts: Charts) -> Detours | None:
    """Return where packets of followed flows went, how long they were away, and what came out of order; None without detours."""
    if not (result.path / "hops.parquet").is_file():
        return None
    found = detours.each(result.scan("hops"))
    if not found.height:
        return None
    again = detours.sent_needlessly(result.scan("segments"))
    order = detours.order_rows(result.scan("flows"), found, again, MAX_DETOURED)
    return Detours(charts.add("detours", figures.detours(found)), (detours.HEAD, detours.rows(found)), (detours.ORDER_HEAD, order))


def _pauses(result: Recorded, charts: Charts) -> Pauses | None:
    """Return the pauses of ports, and the tree of the event with the longest of them; None where nothing was paused."""
    listed = pauses.by_port(result)
    if not listed.height:
        return None
    found = pauses.events(result).sort("paused_ps", "event", descending=[True, False])
    tree = pauses.tree(result)
    return Pauses(
        charts.add("paused-ports", figures.pauses(result)),
        (pauses.HEAD, pauses.port_rows(listed.head(MAX_PAUSED))),
        max(0, listed.height - MAX_PAUSED),
        (pauses.EVENT_HEAD, pauses.event_rows(found.head(MAX_EVENTS))),
        tree.text,
        "\n".join(tree.lines()),
        tree.edge_rows(),
        tree.flow_rows(MAX_DETOURED),
    )


def _regions(result: Recorded, charts: Charts) -> list[Region]:
    """Return the regions of each mechanism that recorded states of ports."""
    found = []
    for index, name in enumerate(regions.mechanisms(result)):
        drawn = [
            charts.add(f"region-{index}", regions.on_topology(result, name)),
            charts.add(f"states-{index}", regions.lines(result, name)),
        ]
        found.append(Region(name, drawn, (regions.HEAD, regions.rows(result, name, MAX_REGION))))
    return found


def _silent(result: Recorded) -> list[str]:
    """Return a line for each followed flow that sent no data, of which nothing can be drawn."""
    drawn = pl.col("payload_bytes") > 0
    rows = result.scan("segments").group_by("flow").agg(sent=drawn.any()).filter(~pl.col("sent")).sort("flow").collect()
    said = [explain(result, int(flow)).text for flow in rows["flow"].head(FLOWS)]
    more = rows.height - len(said)
    return [*said, f"{more:,} more followed flow{'s' * (more > 1)} sent no data."] if more else said


def _before_the_wait(figure: go.Figure, document: dict[str, Any]) -> go.Figure:
    """Show a flow that mostly waited for one timer up to that wait at first, and say so."""
    start, end = document["start_ps"], document["end_ps"]
    longest = max(document["waited"], key=lambda entry: int(entry["to_ps"] - entry["from_ps"]), default=None)
    if longest is not None and longest["to_ps"] - longest["from_ps"] > 0.7 * (end - start):
        sent = [step["to_ps"] for step in document["steps"] if step["to_ps"] <= longest["from_ps"]]
        until = start + 1.5 * (max(sent, default=longest["from_ps"]) - start)
        figure.update_xaxes(range=[start / focus.time_scale(figure), until / focus.time_scale(figure)])
        note = "Shown up to the wait for a timeout at first; double-click for all of it."
        figure.update_layout(meta={"note": f"{figure.layout.meta['note']} {note}"})
    return figure


def _at_burst(result: Recorded, port: str, figure: go.Figure, window: tuple[int, int] | None) -> tuple[int, int] | None:
    """Open a figure at the burst around the largest queue, and say so; return when that is [ps]."""
    near = series.queue_series(result, port, window, 4 * PEAK_PACKETS)
    records = near.frame.select("time_ps", level="queue_bytes" if near.kind == "packet" else "queue_max_bytes")
    burst = series.burst(records)
    if burst is not None and burst[0] < burst[1]:
        figure.update_xaxes(range=[time / focus.time_scale(figure) for time in burst])
        note = f"Opened at the burst around the largest queue, {show.duration(burst[1] - burst[0])}; double-click for all of them."
        figure.update_layout(meta={"note": f"{figure.layout.meta['note']} {note}"})
    return burst


def _shade(drawn: dict[str, Any], figure: go.Figure, window: tuple[int, int] | None) -> None:
    """Mark the part at which the chart below opens."""
    if window is None:
        return
    first, last = (time / focus.time_scale(figure) for time in window)
    band = {"type": "rect", "xref": "x", "yref": "paper", "x0": first, "x1": last, "y0": 0, "y1": 1}
    drawn["layout"]["shapes"] = [{**band, "line": {"width": 0}, "fillcolor": "#d9730d", "opacity": 0.15, "layer": "below"}]


def _scenario_text(scenario: dict[str, Any]) -> str:
    def without_null(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: without_null(entry) for key, entry in value.items() if entry is not None}
        return [without_null(entry) for entry in value] if isinstance(value, list) else value

    return tomli_w.dumps(without_null(scenario))


def render(result: Recorded) -> str:
    """Return the page about a run; equal results give equal pages.

    Parameters
    ----------
    result : Recorded
        The run; a partial one too, as far as its files go.

    Raises
    ------
    ResultError
        A file of the result folder is missing or damaged.
    """
    summary, manifest = result.summary, result.manifest
    charts = Charts()
    by_size, cdfs = [], []
    if not summary.get("collectives") or result.completions.height:  # of a job alone no flow counts
        by_size = [charts.add("fct", figures.by_size(result, "fct")), charts.add("slowdown", figures.by_size(result, "slowdown"))]
        cdfs = [charts.add("fct-cdf", figures.fct_cdf(result)), charts.add("slowdown-cdf", figures.fct_cdf(result, slowdown=True))]
    there = set(result.scan("ports", as_written=True).select(pl.col("port").unique()).collect(engine="streaming")["port"])
    sampled = [port for port in series.hot_ports(result) if port in there]
    until = focus.until(result)
    over_time = [
        charts.add("throughput", focus.focused(figures.throughput(result), until)),
        charts.add("throughput-ports", focus.focused(figures.throughput(result, sampled[:3]), until)),
        charts.add("drops-marks", focus.focused(figures.drops_marks(result), until)),
    ]
    analysis = _analysis(result)
    panels = _queue_panels(result, charts, until, analysis)
    bursts = _bursts(analysis)
    return page(
        "page.html",
        charts,
        explorer=None if bursts is None else bursts.document,
        answer=_answer(result),
        bursts=bursts,
        title=str(manifest.get("name") or result.path.name),
        status=result.status,
        reason=manifest.get("reason"),
        warnings=result.warnings,
        provenance=_provenance(result),
        facts=overview.facts(summary, manifest),
        aborted=overview.aborted_lines(summary),
        fct=overview.fct_rows(summary),
        groups=overview.group_rows(result.completions),
        jobs=overview.job_rows(summary),
        busbw=charts.add("busbw", figures.bus_bandwidth(result)) if summary.get("collectives") else None,
        ports=overview.port_rows(summary),
        mechanisms=[(group, counters.lines(group), (counters.HEAD, counters.rows(group))) for group in counters.groups(summary)],
        by_size=by_size,
        cdfs=cdfs,
        panels=panels,
        detours=_detours(result, charts),
        pauses=_pauses(result, charts),
        regions=_regions(result, charts),
        followed=_followed(result, charts),
        rates=_rates(result, charts),
        silent=_silent(result),
        over_time=over_time,
        scenario=_scenario_text(result.scenario),
    )


def _provenance(result: Recorded) -> list[tuple[str, str]]:
    manifest = result.manifest
    return [
        ("Seed", str(manifest.get("seed", show.NOTHING))),
        ("Fingerprint", result.fingerprint or show.NOTHING),
        ("Scenario", str(manifest.get("scenario_hash", show.NOTHING))[:16]),
        ("Fanin", str(manifest.get("fanin", show.NOTHING))),
    ]


def write(result: Recorded, path: str | os.PathLike[str]) -> None:
    """Write the page about a run, completely or not at all; see `render`."""
    files.write_text(path, render(result))
