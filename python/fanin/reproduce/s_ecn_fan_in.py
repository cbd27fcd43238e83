"""S-ECN §III-B (1) and (2): fan-in without background flows. Figures 4, 6 and 7."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import plotly.graph_objects as go
import polars as pl

from fanin.reproduce._context import Context
from fanin.reproduce._jobs import Job
from fanin.reproduce._registry import figure
from fanin.reproduce._rows import Findings, Row
from fanin.reproduce._s_ecn import (
    FRAME,
    WIRE,
    cdf,
    evolution,
    halves,
    layout,
    mean,
    numbered,
    phases_frame,
    ramp,
    ramps_frame,
    steps_frame,
    trace,
    unless_ok,
    variation,
)
from fanin.results import Result

LONG_ENOUGH: Final = {"sync": "6ms", "async": "8ms"}
"""The buffer is full after less than 4 ms; what follows is loss recovery."""

FLOWS: Final = (9, 18, 27, 36, 45)
"""The paper's 9, 18, 27, … flows: what nine hosts share evenly."""

FIRST_ROUND: Final = 0.642
"""End of the last first round in fig. 6, and so of phase 1 in fig. 4a [ms]."""

ROUND_TRIP: Final = 0.092
"""Idle round trip of a full frame and its acknowledgement [ms]: the clock of acknowledgements takes this long to take over,
and an end of phase 1 means no more than that."""

MEAN, VARIATION, RUNS = 1.005, 0.018, 100
"""Phase 2 of 18 flows: mean slope [Gb/s], its coefficient of variation, number of repetitions."""

LOW, HIGH = MEAN * (1 - 2 * VARIATION), MEAN * (1 + 2 * VARIATION)
"""Bounds between which 95 % of the paper's repetitions lie."""


def jobs(
    context: Context,
    name: str = "sync",
    *,
    flows: int = 18,
    changes: Mapping[str, Any] = MappingProxyType({}),
    key: Mapping[str, Any] = MappingProxyType({}),
) -> list[Job]:
    """Return a job for each seed, cut when the buffer has long been full."""
    quick = {"duration": LONG_ENOUGH[name], "telemetry.sample": "off", "traffic[0].flows_per_sender": flows // 9}
    return context.each_seed(context.scenario(name).replace({**quick, **changes}), **{"flows": flows, **key})


UPLINKS: Final = (
    "the uplinks of the racks still bring what had queued there (docs/dev/paper-s-ecn.md#observations-what-does-not-come-out)"
)


def _phase_2(name: str, slopes: list[float], note: str = "") -> list[Row]:
    """Return the mean slope beside the paper's, counted in frame bytes and in bytes on the wire."""
    frames = mean(slopes)
    counts = {"frame bytes": frames, "wire bytes": frames * WIRE / FRAME}
    rows = (Row(name=f"{name}, {what}", paper=MEAN, fanin=slope, low=LOW, high=HIGH, unit="Gb/s") for what, slope in counts.items())
    return [unless_ok(row, note) for row in rows]


@figure("s-ecn/fig4a", title="Synchronous fan-in: queue of 18 flows over time", seeds=1, short=1, seconds=2)
def fig4a(context: Context) -> Findings:
    """One run: two phases."""
    one = jobs(context)[:1]
    found, queue = context.runs(one, ramp)[0], context.runs(one, trace)[0]
    rows = [
        Row(
            name="end of phase 1",
            paper=FIRST_ROUND,
            fanin=found.first_end,
            low=FIRST_ROUND - ROUND_TRIP,
            high=FIRST_ROUND + ROUND_TRIP,
            unit="ms",
        ),
        Row(name="slope of phase 1", paper="> phase 2", fanin=found.first_phase, low=HIGH, unit="Gb/s"),
        *_phase_2("slope of phase 2", [found.second_phase]),
    ]
    plot = evolution(queue, found.phases, "Queue in front of Host 10's rack, 18 synchronous flows", until=found.full)
    return Findings(rows=rows, plots={"queue": plot}, data={"queue": queue, "phases": phases_frame([found])})


@figure("s-ecn/fig4b", title="Synchronous fan-in: slopes of both phases by number of flows", seeds=RUNS, short=4, seconds=25)
def fig4b(context: Context) -> Findings:
    """Distributions over the repetitions."""
    ramps = context.runs([job for flows in FLOWS for job in jobs(context, flows=flows)], ramp)
    by_flows = {flows: [found for found in ramps if found.key["flows"] == flows] for flows in FLOWS}
    first = {flows: mean(found.first_phase for found in listed) for flows, listed in by_flows.items()}
    second = {flows: [found.second_phase for found in listed] for flows, listed in by_flows.items()}
    widest = VARIATION * (1 + 2 * math.sqrt(2) / math.sqrt(2 * (RUNS - 1)))  # twice the standard error between two such samples
    rows = _phase_2("18 flows, phase 2, mean", second[18])
    rows.append(
        unless_ok(
            Row(
                name="18 flows, phase 2, coefficient of variation",
                paper=VARIATION,
                fanin=variation(second[18]),
                low=0,
                high=widest,
            ),
            UPLINKS,
        )
    )
    for flows in FLOWS:
        if flows != 18:
            name = f"{flows} flows, phase 2, mean"
            rows.append(unless_ok(Row(name=name, paper="1", fanin=mean(second[flows]), low=LOW, high=HIGH, unit="Gb/s"), UPLINKS))
    rows += [
        Row(name=f"{flows} flows, phase 1 over phase 2", paper="> 1", fanin=first[flows] / mean(second[flows]), low=1.0)
        for flows in FLOWS
    ]
    steps = [first[more] - first[fewer] for fewer, more in itertools.pairwise(FLOWS)]
    rows.append(Row(name="phase 1, smallest increase from 9 to 18 to … flows", paper="> 0", fanin=min(steps), low=0, unit="Gb/s"))
    curves = [(f"{flows}, P1", [found.first_phase for found in by_flows[flows]]) for flows in FLOWS[:3]]
    curves += [(f"{flows}, P2", second[flows]) for flows in FLOWS[:3]]
    plot = cdf(curves, "Slopes of both phases, synchronous fan-in")
    return Findings(rows=rows, plots={"slopes": plot}, data={"runs": ramps_frame(ramps), "phases": phases_frame(ramps)})


def _packets(result: Result, job: Job) -> pl.DataFrame:
    """Return when each packet of the first three rounds of each flow came."""
    return numbered(result).filter(pl.col("round") <= 3).drop("time_ps")


@figure("s-ecn/fig6", title="Synchronous fan-in: when each round of each flow is sent", seeds=100, short=4, seconds=5)
def fig6(context: Context) -> Findings:
    """One run is shown; rows are means over all."""
    ramps = context.runs(jobs(context), ramp)
    packets = context.runs(jobs(context)[:1], _packets)[0]
    latest = [found.first_round for found in ramps]
    apart = [found.first_end - found.first_round for found in ramps]
    rows = [
        Row(
            name="latest end of a first round (sync.toml takes its spread of starts from it)",
            paper=FIRST_ROUND,
            fanin=mean(latest),
            low=FIRST_ROUND - ROUND_TRIP,
            high=FIRST_ROUND + ROUND_TRIP,
            unit="ms",
        ),
        unless_ok(
            Row(
                name="end of phase 1 after it",
                paper="in accordance",
                fanin=mean(apart),
                low=-ROUND_TRIP,
                high=ROUND_TRIP,
                unit="ms",
            ),
            UPLINKS,
        ),
    ]
    plot = go.Figure()
    order = {flow: place for place, flow in enumerate(packets["flow"].unique().sort().to_list(), 1)}
    for (number,), part in packets.group_by("round", maintain_order=True):
        y = [order[flow] for flow in part["flow"].to_list()]
        plot.add_scatter(x=part["time_ms"].to_list(), y=y, mode="markers", name=f"round {number}", marker={"size": 4})
    layout(plot, "Time since the first packet of a response [ms]", "Flow", "Arrival of each round at the watched port")
    ended = pl.DataFrame(
        {"seed": [found.seed for found in ramps], "first_round_end_ms": latest, "phase1_end_ms": [f.first_end for f in ramps]}
    )
    return Findings(rows=rows, plots={"rounds": plot}, data={"packets": packets, "runs": ended})


@figure("s-ecn/fig7", title="Asynchronous fan-in: queue and slopes of 18 flows", seeds=100, short=4, seconds=10)
def fig7(context: Context) -> Findings:
    """Starts within 2 ms instead."""
    synchronous = context.runs(jobs(context), ramp)
    asynchronous = jobs(context, "async")
    runs = context.runs(asynchronous, halves)
    queue = context.runs(asynchronous[:1], trace)[0]
    gentle = mean(found.slope(1) for found in runs) / mean(found.first_phase for found in synchronous)
    rows = [
        Row(name="phase 1, asynchronous over synchronous", paper="< 1", fanin=gentle, high=1.0),
        *_phase_2("phase 2, mean", [found.slope(2) for found in runs], UPLINKS),
    ]
    plots = {
        "queue": evolution(
            queue,
            [phase for part in runs[0].phases for phase in part],
            "Queue in front of Host 10's rack, 18 flows within 2 ms",
            until=4.0,
        ),
        "slopes": cdf(
            [
                ("asynchronous, P1", [found.slope(1) for found in runs]),
                ("asynchronous, P2", [found.slope(2) for found in runs]),
                ("synchronous, P1", [found.first_phase for found in synchronous]),
                ("synchronous, P2", [found.second_phase for found in synchronous]),
            ],
            "Slopes of both phases",
        ),
    }
    data = {"queue": queue, "runs": steps_frame(runs), "synchronous": ramps_frame(synchronous)}
    return Findings(rows=rows, plots=plots, data=data)
