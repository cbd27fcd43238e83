"""What HPCC's and PowerTCP's figures share: controls side by side on one scenario, throughput and queue of a port over time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import plotly.graph_objects as go
import polars as pl

from fanin.reproduce._context import Context
from fanin.reproduce._jobs import Job
from fanin.results import Result

CONTROL: Final = "transport.congestion_control"
MARKING: Final = "switch.marking"
INT: Final = "switch.mechanisms.int"
NONE: Final = "no control"

CONTROLS: Final[dict[str, dict[str, Any]]] = {
    "PowerTCP": {CONTROL: {"kind": "powertcp"}},
    "θ-PowerTCP": {CONTROL: {"kind": "theta_powertcp"}, INT: None},
    "HPCC": {CONTROL: {"kind": "hpcc"}},
    "TIMELY": {CONTROL: {"kind": "timely"}, INT: None},
    "DCQCN": {
        CONTROL: {"kind": "dcqcn"},
        INT: None,
        MARKING: {"kind": "red", "min": "100KB", "max": "400KB", "max_p": 0.2},
    },
    NONE: {CONTROL: {"kind": "none"}, INT: None},
}
"""Each with what it needs of switches. K_min, K_max and P_max of DCQCN are those of HPCC's configuration for 25 Gb/s."""

WIRE: Final = 1_090 / 1_110
"""Bytes of a frame of data as ports count them, over what it takes on the wire: the most that a port can show."""


def jobs(context: Context, scenario: str, controls: Mapping[str, Mapping[str, Any]], **changes: Any) -> list[Job]:
    """Return one run for each control: nothing is drawn but the order of simultaneous arrivals."""
    base = context.scenario(scenario).replace(changes)
    return [Job(base.replace(dict(change)), 1, {"control": name}) for name, change in controls.items()]


def measure(result: Result, job: Job) -> dict[str, Any]:
    """Reduce a run to the samples of the port to the receiver, and of each sender's."""
    ports = result.scan("ports").select("time_ps", "port", "tx_bytes", "queue_max_bytes").collect()
    receiver = job.scenario.to_dict()["traffic"][0]["flows"][0]["dst"]
    sides = {"port": pl.col("port").str.ends_with(f"->{receiver}"), "senders": pl.col("port").str.starts_with("h")}
    return {name: ports.filter(which).to_dict(as_series=False) for name, which in sides.items()} | {
        "flows": result.flows.select("group", "start_ps", "finish_ps").to_dict(as_series=False)
    }


def table(found: Mapping[str, Any], rate: float, *, bin_us: int = 10) -> pl.DataFrame:
    """Return throughput [share of the line, gaps counted] and queue [KB] of the port, in bins."""
    rows = pl.DataFrame(found["port"]).sort("time_ps")
    binned = rows.with_columns(us=(pl.col("time_ps") - 1) // (bin_us * 1_000_000) * bin_us)
    line = rate / 8 * bin_us * 1e-6
    return (
        binned.group_by("us")
        .agg(pl.col("tx_bytes").sum(), pl.col("queue_max_bytes").max())
        .sort("us")
        .select("us", throughput=pl.col("tx_bytes") / line / WIRE, queue_kb=pl.col("queue_max_bytes") / 1e3)
    )


def plots(name: str, tables: Mapping[str, pl.DataFrame], zero_us: int, rate: float) -> dict[str, go.Figure]:
    """Return throughput and queue over time, each with a line for each control; queues of a frame and less are at the bottom."""
    kinds = {
        "throughput": ("Throughput [Gb/s]", pl.col("throughput") * rate / 1e9),
        "queue": ("Queue [KB]", pl.max_horizontal("queue_kb", pl.lit(1.0))),
    }
    made = {}
    for kind, (title, value) in kinds.items():
        shown = go.Figure()
        for control, one in tables.items():
            time = ((one["us"] - zero_us) / 1_000).to_list()
            shown.add_scatter(x=time, y=one.select(value).to_series().to_list(), mode="lines", name=control)
        shown.update_xaxes(title="Time since the others joined [ms]")
        shown.update_yaxes(title=title, **({"type": "log"} if kind == "queue" else {"rangemode": "tozero"}))
        shown.update_layout(template="simple_white")
        made[f"{name}-{kind}"] = shown
    return made
