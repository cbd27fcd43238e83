"""PowerTCP, 10-to-1 incast: what the port to the receiver of a long flow sends and holds when ten flows join."""

from __future__ import annotations

from typing import Final

import polars as pl

from fanin.reproduce._context import Context
from fanin.reproduce._in_band import CONTROLS, NONE, jobs, measure, plots, table
from fanin.reproduce._registry import figure
from fanin.reproduce._rows import Findings, Row

RATE: Final = 25e9
JOIN_US: Final = 1_000
BLIND_KB: Final = 11 * RATE / 8 * 26e-6 / 1e3
"""Eleven windows of line rate times base RTT, some 26 us, which are on the way before anybody knows of the others."""
DRAIN_US: Final = 350
"""Time of the first drain: at the rate of the line (286 us), and another two round trips."""

FEW: Final = (
    "eleven windows of seven packets: on its way down the loop overshoots for a millisecond, and flows aim at 95 % "
    "(docs/dev/transports-measured.md#powertcp-few-packets)"
)
CALM: Final = "HPCC steps down once, by additive increase from there, and overshoots less than PowerTCP's windows of seven packets"


@figure("powertcp/incast", title="Ten flows join a long one: throughput and queue over time", seeds=1, short=1, seconds=20)
def incast(context: Context) -> Findings:
    """PowerTCP empties the queue and keeps the line busy; the others keep a queue or leave the line idle."""
    listed = jobs(context, "incast", CONTROLS)
    found = {job.key["control"]: one for job, one in zip(listed, context.runs(listed, measure), strict=True)}
    tables = {name: table(one, RATE) for name, one in found.items()}
    later = {name: one.filter(pl.col("us").is_between(JOIN_US + DRAIN_US, JOIN_US + 4_000 - 10)) for name, one in tables.items()}
    queue = {name: float(one["queue_kb"].mean() or 0) for name, one in later.items()}  # type: ignore[arg-type]
    used = {name: float(one["throughput"].mean() or 0) for name, one in later.items()}  # type: ignore[arg-type]
    peak = {name: float(one["queue_kb"].max() or 0) for name, one in tables.items()}  # type: ignore[arg-type]
    low = {name: float(one["throughput"].min() or 0) for name, one in later.items()}  # type: ignore[arg-type]
    bdp = BLIND_KB / 11
    name = "PowerTCP"
    share = "of the line"
    rows = [
        Row(name=f"{name}: queue after the first drain, mean", paper="near zero", fanin=queue[name], high=bdp / 4, unit="KB"),
        Row(name=f"{name}: throughput then", paper="full", fanin=used[name], low=0.98, unit=share, note=FEW),
        Row(name=f"{name}: least throughput of 10 us then", paper="full", fanin=low[name], low=0.95, unit=share, note=FEW),
        Row(name="HPCC: queue after the first drain, mean", paper="near zero", fanin=queue["HPCC"], high=bdp / 4, unit="KB"),
        Row(name="HPCC: least throughput over PowerTCP's", paper="< 1", fanin=low["HPCC"] / low[name], high=1, note=CALM),
        Row(name="θ-PowerTCP: queue after the first drain, mean", paper="low", fanin=queue["θ-PowerTCP"], high=bdp, unit="KB"),
        Row(name="TIMELY: queue over PowerTCP's", paper="far more", fanin=queue["TIMELY"] / queue[name], low=10),
        Row(name="DCQCN: queue over PowerTCP's", paper="more", fanin=queue["DCQCN"] / queue[name], low=2),
        Row(name="DCQCN: throughput over PowerTCP's", paper="< 1", fanin=used["DCQCN"] / used[name], high=1),
        Row(name=f"{NONE}: queue over PowerTCP's", paper=None, fanin=queue[NONE] / queue[name], low=10),
        Row(
            name="largest queue of PowerTCP",
            paper="the blind round trip",
            fanin=peak[name],
            low=0.8 * BLIND_KB,
            high=1.1 * BLIND_KB,
            unit="KB",
        ),
    ]
    shown = {name: one.filter(pl.col("us") >= JOIN_US - 500) for name, one in tables.items() if name != NONE}
    data = pl.concat([one.with_columns(control=pl.lit(name)) for name, one in tables.items()])
    return Findings(rows=rows, plots=plots("incast", shown, JOIN_US, RATE), data={"port": data})
