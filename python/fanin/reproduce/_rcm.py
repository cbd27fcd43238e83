"""What RCM's figures share: who is compared, the fabric in full and in short, throughput of flows, intervals over seeds."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any, Final

import plotly.graph_objects as go
import polars as pl

from fanin.reproduce._context import Context
from fanin.reproduce._jobs import Job
from fanin.reproduce._rows import Row
from fanin.results import Result
from fanin.scenario import Scenario
from fanin.statistics import t_quantile

MECHANISM: Final = "switch.mechanisms.rcm"
CONTROL: Final = "transport.congestion_control"
MARKING: Final = "switch.marking"

DCQCN: Final = "DCQCN"
RCM: Final = "RCM"
RCM_ALONE: Final = "RCM without DCQCN"
PAUSES: Final = "PFC alone"
READ: Final = "RCM, flows set at detection"

UNCONTROLLED: Final[dict[str, Any]] = {CONTROL: "none", MARKING: None}
VARIANTS: Final[dict[str, dict[str, Any]]] = {
    PAUSES: UNCONTROLLED | {MECHANISM: None},
    DCQCN: {MECHANISM: None},
    RCM: {},
    RCM_ALONE: UNCONTROLLED,
}
"""Who is compared, each over PFC. RCM leaves DCQCN on at the ends (§1, §4.1)."""

READING: Final[dict[str, Any]] = {"recognise": "at_detection", "cam_hits": 3, "cam_period": "2KB", "decrease": "measured"}
"""Another reading of the paper: harmful are flows of "relatively high injection rate" (§3.3: three of eight places, of 16 KB)
when a root "starts congestion control to the flows recognized by CFR" (§3.1); of W_c "at most 50 %" is taken (§3.4)."""


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return mean and half of the 95 % confidence interval over seeds; no interval of one value."""
    found = [value for value in values if math.isfinite(value)]
    if len(found) < 2:
        return (fmean(found) if found else math.nan), math.nan
    return fmean(found), t_quantile(0.05, len(found) - 1) * stdev(found) / math.sqrt(len(found))


def grid(
    context: Context, base: Scenario, variants: Mapping[str, Mapping[str, Any]], seeds: Sequence[int] | None = None, **key: Any
) -> list[Job]:
    """Return a job for each variant and seed."""
    made = {name: base.replace(dict(changes)) for name, changes in variants.items()}
    return [Job(made[name], seed, {"variant": name} | key) for name in variants for seed in seeds or context.seeds]


def ratios(table: pl.DataFrame, value: str, over: str, under: str) -> list[float]:
    """Return a value with one variant over that with another, seed by seed: both had the same flows."""
    one, other = (table.filter(pl.col("variant") == name).sort("seed")[value].to_list() for name in (over, under))
    return [a / b if a is not None and b else math.nan for a, b in zip(one, other, strict=True)]


def throughput(result: Result, bin_us: float) -> pl.DataFrame:
    """Return what arrived of each followed flow, all bytes on the wire counted: ``us``, ``flow``, ``gbps``."""
    gap = 20  # [B] preamble and gap
    data = result.scan("segments").filter((pl.col("kind") == "data") & pl.col("received_ps").is_not_null())
    bin_ps = int(bin_us * 1e6)
    us = (pl.col("received_ps") // bin_ps * bin_ps / 1e6).alias("us")
    rate = (pl.col("frame_bytes").cast(pl.Int64) + gap).sum() * 8 / (bin_us * 1e3)
    return data.group_by(us, "flow").agg(rate.alias("gbps")).sort("us", "flow").collect()


def paused_ms(result: Result) -> float:
    """Return how long ports of switches and NICs were paused, all of them together."""
    end = int(result.manifest.get("sim_ps") or 0)
    spans = result.scan("pauses").select((pl.col("end_ps").fill_null(end).cast(pl.Int64) - pl.col("start_ps").cast(pl.Int64)).sum())
    return float(spans.collect().item() or 0) / 1e9


def reordered_percent(flows: pl.DataFrame) -> float:
    """Return what share of all packets came out of order [%]."""
    return 100 * float(flows["reordered"].sum()) / max(float(flows["packets_sent"].sum()), 1)


def nothing_lost(table: pl.DataFrame) -> Row:
    """Return the row that PFC lets no run lose a packet."""
    return Row(name="packets lost, most of all runs", paper=0, fanin=float(max(table["lost"].to_list())), low=0, high=0)


def counted(result: Result) -> dict[str, int]:
    """Return the counters of RCM, all zero where it did not run."""
    return {
        f"rcm_{name}": int(value)
        for name, value in (result.summary["mechanisms"].get("rcm") or {}).items()
        if isinstance(value, int)
    }


def layout(plot: go.Figure, x: str, y: str) -> go.Figure:
    """Return the plot with its axes named."""
    plot.update_layout(template="simple_white", xaxis_title=x, yaxis_title=y)
    return plot


WIDTH: Final = 9
"""Letters of a label in a line, so that it has room beside the next."""


def marks(
    series: Mapping[str, Sequence[tuple[float, float]]], labels: Sequence[str], y: str, *, line: float | None = None
) -> go.Figure:
    """Return a plot with a mark for each label and series, and a bar for its interval; optionally a line across."""
    plot = go.Figure()
    for place, (name, found) in enumerate(series.items()):
        at = [i + (place - (len(series) - 1) / 2) * 0.12 for i in range(len(labels))]
        halves = [half if math.isfinite(half) else 0.0 for _, half in found]
        bars = {"type": "data", "symmetric": False, "array": halves, "arrayminus": halves, "visible": any(halves)}
        plot.add_scatter(x=at, y=[mean for mean, _ in found], mode="markers", name=name, error_y=bars)
    if line is not None:
        plot.add_scatter(x=[-0.5, len(labels) - 0.5], y=[line, line], mode="lines", showlegend=False, line={"dash": "dot"})
    layout(plot, "", y)
    plot.update_xaxes(
        tickvals=list(range(len(labels))),
        ticktext=["<br>".join(textwrap.wrap(label, WIDTH)) for label in labels],
        range=[-0.5, len(labels) - 0.5],
    )
    return plot


def means(table: pl.DataFrame) -> pl.DataFrame:
    """Return mean and half of the 95 % interval of each number, by variant."""
    values = [name for name, kind in table.schema.items() if kind.is_numeric() and name != "seed"]
    found = []
    for (variant,), part in table.group_by("variant", maintain_order=True):
        row: dict[str, Any] = {"variant": variant, "runs": part.height}
        for name in values:
            mean, half = interval([float(value) for value in part[name].drop_nulls().to_list()])
            row |= {name: mean, f"{name}_ci": half}
        found.append(row)
    return pl.DataFrame(found)
