"""RCM, fig. 6 at random starts of the burst: how often its claim holds, by reading of the paper."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, Final

import plotly.graph_objects as go
import polars as pl

from fanin.reproduce._context import Context
from fanin.reproduce._jobs import Job, frame
from fanin.reproduce._rcm import MECHANISM, RCM, READ, READING, layout
from fanin.reproduce._registry import figure
from fanin.reproduce._rows import Findings, Row
from fanin.reproduce.rcm import BURST_US, CAM, burst_part
from fanin.statistics import about_share

FINER: Final = "RCM, flows set at detection, CAM written per 1 KB"
"""The reading with a CAM of the last 8 KB: found by trying depths and periods until it held at nearly all starts."""
FLAG: Final[dict[str, Any]] = {"local_flag": "either"}
"""Input queues set the local flag, too (§3.2)."""
FLAGGED: Final = {
    RCM: "RCM, input queues set the flag, too",
    FINER: "flows set at detection, per 1 KB, input queues set the flag, too",
}
READINGS: Final[dict[str, dict[str, Any]]] = {
    RCM: {},
    READ: READING,
    FINER: READING | {"cam_period": "1KB"},
    FLAGGED[RCM]: FLAG,
    FLAGGED[FINER]: READING | {"cam_period": "1KB"} | FLAG,
}

SPAN_NS: Final = 10_000
"""Starts are drawn from this time, several of the trains in which five flows share a port."""
BURST_GBPS: Final = (20.0, 30.0)
OTHERS_GBPS: Final = 17.0
"""As the rows of fig. 6 have it: the burst at 25 Gb/s, the others at more than DCQCN's 12.5."""

CHANCE: Final = (
    "which flows have three of eight places of a CAM when congestion is detected is chance: at some starts two flows or none, "
    "so that the burst keeps more than 30 Gb/s or falls below 20"
)


def start_us(seed: int) -> float:
    """Return when the burst of a seed starts."""
    return BURST_US + random.Random(f"rcm/fig6-starts {seed}").randrange(SPAN_NS) / 1e3  # noqa: S311


def holds(row: Mapping[str, Any]) -> bool:
    """Whether the claim of fig. 6 holds: the burst falls to about 25 Gb/s, and the others recover."""
    return bool(BURST_GBPS[0] <= row["burst_gbps"] <= BURST_GBPS[1] and row["others_gbps"] >= OTHERS_GBPS)


@figure(
    "rcm/fig6-starts", title="Fig. 6 at random starts of the burst: how often it holds, by reading", seeds=40, short=3, seconds=400
)
def fig6_starts(context: Context) -> Findings:
    """The letter never, the reading of fig. 6 in most cases, with a finer CAM in nearly all."""
    base = context.scenario("burst")
    jobs = []
    for name, changes in READINGS.items():
        made = base.replace({f"{MECHANISM}.{key}": value for key, value in changes.items()})
        for seed in context.seeds:
            at = start_us(seed)
            jobs.append(Job(made.replace({"traffic[1].flows[0].start": f"{at * 1e3:.0f}ns"}), 1, {"variant": name, "start_us": at}))
    table = frame(jobs, context.runs(jobs, burst_part)).drop("seed")
    table = table.with_columns(holds=pl.struct("burst_gbps", "others_gbps").map_elements(holds, pl.Boolean))
    found = shares(table)
    notes = {RCM: CAM, READ: CHANCE, FINER: CHANCE, FLAGGED[RCM]: CAM, FLAGGED[FINER]: CHANCE}
    calibrated = dict.fromkeys((FINER, FLAGGED[FINER]), "cam_period, with cam_hits")
    rows = [
        Row(
            name=f"{row['variant']}: share of starts at which fig. 6 holds",
            paper="one start",
            fanin=row["share"],
            low=0.9,
            note=notes[row["variant"]],
            calibrated=calibrated.get(row["variant"], ""),
        )
        for row in found.to_dicts()
    ]
    return Findings(rows=rows, plots={"fig6-starts": over_starts(table)}, data={"starts": table, "shares": found})


def shares(table: pl.DataFrame) -> pl.DataFrame:
    """Return the share of starts at which the claim holds, by variant, with its 95 % interval."""
    found = []
    for (name,), part in table.group_by("variant", maintain_order=True):
        count, of = int(part["holds"].sum()), part.height
        low, high = about_share(count, of)
        found.append({"variant": name, "starts": of, "holds": count, "share": count / of, "low": low, "high": high})
    return pl.DataFrame(found)


def over_starts(table: pl.DataFrame) -> go.Figure:
    """Return the burst's least throughput at each start, a series for each reading."""
    plot = go.Figure()
    for (name,), part in table.group_by("variant", maintain_order=True):
        times = [time - BURST_US for time in part["start_us"].to_list()]
        plot.add_scatter(x=times, y=part["burst_gbps"].to_list(), mode="markers", name=str(name))
    for limit in BURST_GBPS:
        plot.add_scatter(
            x=[0, SPAN_NS / 1e3], y=[limit, limit], mode="lines", showlegend=False, line={"dash": "dot", "color": "#777"}
        )
    return layout(plot, "Start of the burst [us]", "Burst, least in 10 us [Gb/s]")
