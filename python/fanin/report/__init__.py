"""The report: one HTML page about a run, which needs neither network nor other files."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import jinja2
import polars as pl
import tomli_w
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from fanin import figures, overview, series, show

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from fanin.results import Result

__all__ = ["MAX_PORTS", "PEAK_PACKETS", "PEAK_SAMPLES", "render", "write"]

MAX_PORTS: Final = 6
"""Ports whose queues are drawn."""

PEAK_PACKETS: Final = 8000
"""Packets around the largest queue that are drawn one by one where the whole run has too many."""

BUSY_SHARE: Final = 0.999
"""Share of the bytes after which a long rest of the run is not shown at first."""

PEAK_SAMPLES: Final = 1000
"""Samples around the largest queue, likewise."""


@dataclass(frozen=True)
class Chart:
    """A figure with its place on the page."""

    key: str
    title: str
    note: str


@dataclass(frozen=True)
class Panel:
    """The queue of one port."""

    port: str
    charts: list[Chart]
    watched: bool


class _Charts:
    """Figures collected for the page; the data are carried apart from the markup."""

    def __init__(self) -> None:
        self.figures: dict[str, Any] = {}

    def add(self, key: str, figure: go.Figure, title: str | None = None) -> Chart:
        figure.update_layout(template="none")
        document = json.loads(figure.to_json())
        layout = document["layout"]
        heading = title or layout["title"]["text"]
        note = (layout.pop("meta", None) or {}).get("note", "")
        for name in ("title", "template", "height"):
            layout.pop(name, None)
        self.figures[key] = {"data": document["data"], "layout": layout, "colorway": list(figures.COLORS)}
        return Chart(key, heading, note)


def _queue_panels(result: Result, charts: _Charts, focus: int | None) -> list[Panel]:
    panels = []
    for index, port in enumerate(series.shown_ports(result, MAX_PORTS)):
        try:
            data = series.queue_series(result, port)
        except ValueError:  # listed in the summary, and neither watched nor sampled
            continue
        figure = _focused(figures.queue(result, port), focus if data.peak_ps < (focus or 0) else None)
        drawn = [charts.add(f"queue-{index}", figure, f"Queue of {port}")]
        if data.reduced:
            rows, what = (PEAK_PACKETS, "packet") if data.kind == "packet" else (PEAK_SAMPLES, "sample")
            window = series.peak_window(result, port, rows)
            near = figures.queue(result, port, window_ps=window, max_points=2 * rows)
            _shade(charts.figures[f"queue-{index}"], figure, _at_burst(result, port, near, window))
            drawn.append(charts.add(f"queue-{index}-peak", near, f"Around the largest queue of {port}, every {what}"))
        panels.append(Panel(port, drawn, data.kind == "packet"))
    return panels


def _at_burst(result: Result, port: str, figure: go.Figure, window: tuple[int, int] | None) -> tuple[int, int] | None:
    """Open a figure at the burst around the largest queue, and say so; return when that is [ps]."""
    near = series.queue_series(result, port, window, 4 * PEAK_PACKETS)
    records = near.frame.select("time_ps", level="queue_bytes" if near.kind == "packet" else "queue_max_bytes")
    burst = series.burst(records, "level")
    if burst is not None and burst[0] < burst[1]:
        figure.update_xaxes(range=[time / _time_scale(figure) for time in burst])
        note = f"Opened at the burst around the largest queue, {show.duration(burst[1] - burst[0])}; double-click for all of them."
        figure.update_layout(meta={"note": f"{figure.layout.meta['note']} {note}"})
    return burst


def _time_scale(figure: go.Figure) -> float:
    unit = figure.layout.xaxis.title.text.rsplit("[", 1)[-1].rstrip("]")
    return dict(show.TIME_UNITS)[unit]


def _shade(drawn: dict[str, Any], figure: go.Figure, window: tuple[int, int] | None) -> None:
    """Mark the part at which the chart below opens."""
    if window is None:
        return
    first, last = (time / _time_scale(figure) for time in window)
    band = {"type": "rect", "xref": "x", "yref": "paper", "x0": first, "x1": last, "y0": 0, "y1": 1}
    drawn["layout"]["shapes"] = [{**band, "line": {"width": 0}, "fillcolor": "#d9730d", "opacity": 0.15, "layer": "below"}]


def _focused(figure: go.Figure, until_ps: int | None) -> go.Figure:
    """Show a figure up to a time at first, and say so."""
    if until_ps is not None:
        figure.update_xaxes(range=[0, until_ps / _time_scale(figure)])
        share = f"{100 * BUSY_SHARE:.4g} % of all bytes had been sent"
        note = f"Shown up to {show.duration(until_ps)}, when {share}; double-click for the whole run."
        figure.update_layout(meta={"note": f"{figure.layout.meta['note']} {note}"})
    return figure


def _focus(result: Result) -> int | None:
    """Return up to when charts are shown at first [ps]: a last straggler is not to press all else together."""
    busy, end = series.busy_until(result, BUSY_SHARE), result.manifest.get("sim_ps")
    return int(1.05 * busy) if busy is not None and end and busy < 0.7 * end else None


def _scenario_text(scenario: dict[str, Any]) -> str:
    def without_null(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: without_null(entry) for key, entry in value.items() if entry is not None}
        return [without_null(entry) for entry in value] if isinstance(value, list) else value

    return tomli_w.dumps(without_null(scenario))


def _script_json(document: Any) -> Markup:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))  # noqa: S704


def _hash_source(script: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() + "'"


def _asset(name: str) -> str:
    return resources.files(__name__).joinpath(name).read_text(encoding="utf-8")


def render(result: Result) -> str:
    """Return the page about a run; equal results give equal pages.

    Parameters
    ----------
    result : Result
        The run; a partial one too, as far as its files go.

    Raises
    ------
    ResultError
        A file of the result folder is missing or damaged.
    """
    summary, manifest = result.summary, result.manifest
    charts = _Charts()
    by_size = [charts.add("fct", figures.by_size(result, "fct")), charts.add("slowdown", figures.by_size(result, "slowdown"))]
    cdfs = [charts.add("fct-cdf", figures.fct_cdf(result)), charts.add("slowdown-cdf", figures.fct_cdf(result, slowdown=True))]
    there = set(result.scan_ports().select(pl.col("port").unique()).collect(engine="streaming")["port"])
    sampled = [port for port in series.hot_ports(result) if port in there]
    focus = _focus(result)
    over_time = [
        charts.add("throughput", _focused(figures.throughput(result), focus)),
        charts.add("throughput-ports", _focused(figures.throughput(result, sampled[:3]), focus)),
        charts.add("drops-marks", _focused(figures.drops_marks(result), focus)),
    ]
    panels = _queue_panels(result, charts, focus)
    scripts = [get_plotlyjs(), _asset("script.js")]
    if any("</script" in script.lower() for script in scripts):
        raise RuntimeError("a script of the report would end its own element")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(_asset("page.html")).render(
        title=str(manifest.get("name") or result.path.name),
        status=result.status,
        reason=manifest.get("reason"),
        warnings=result.warnings,
        provenance=_provenance(result),
        facts=overview.facts(summary, manifest),
        aborted=overview.aborted_lines(summary),
        fct=overview.fct_rows(summary),
        groups=overview.group_rows(result.completions),
        ports=overview.port_rows(summary),
        by_size=by_size,
        cdfs=cdfs,
        panels=panels,
        over_time=over_time,
        scenario=_scenario_text(result.scenario),
        style=Markup(_asset("style.css")),  # noqa: S704
        scripts=[Markup(script) for script in scripts],  # noqa: S704
        script_hashes=Markup(" ".join(_hash_source(script) for script in scripts)),  # noqa: S704
        data=_script_json(charts.figures),
    )


def _provenance(result: Result) -> list[tuple[str, str]]:
    manifest = result.manifest
    return [
        ("Seed", str(manifest.get("seed", show.NOTHING))),
        ("Fingerprint", result.fingerprint or show.NOTHING),
        ("Scenario", str(manifest.get("scenario_hash", show.NOTHING))[:16]),
        ("Fanin", str(manifest.get("fanin", show.NOTHING))),
    ]


def write(result: Result, path: str | os.PathLike[str]) -> None:
    """Write the page about a run, completely or not at all; see `render`."""
    target = Path(path)
    page = render(result)
    part = target.with_name(f".{target.name}.part")
    try:
        part.write_text(page, encoding="utf-8")
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
