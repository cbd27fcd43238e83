"""S-ECN §III-B (3) to (5): fan-in beside background flows. Figures 8, 9 and 10, and what they depend on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeVar

import plotly.graph_objects as go

from fanin.reproduce._context import Context
from fanin.reproduce._jobs import Job
from fanin.reproduce._registry import figure
from fanin.reproduce._rows import Findings, Row
from fanin.reproduce._s_ecn import (
    RATE,
    SPREAD,
    Ramp,
    Steps,
    cdf,
    evolution,
    layout,
    mean,
    phases_frame,
    ramp,
    ramps_frame,
    steps,
    steps_frame,
    trace,
    unless_ok,
)

Run = TypeVar("Run", Ramp, Steps)

UNTIL: Final = "508ms"
"""The queries come after 0.5 s; the buffer is full, or all three phases are over, 7 ms later."""

WINDOWS: Final = ("8KiB", "16KiB", "32KiB", "64KiB", "128KiB", "256KiB", "1MiB")
"""Receive windows of background flows for the question what the slopes owe to them."""

SAME_HOP: Final = {3: 0.613, 6: 0.622, 9: 0.641}
"""Mean slopes by number of background flows at the same hop [Gb/s]; of which phases is not said."""

STEPS: Final = (
    "the slope of a step follows from the spread of starts (s-ecn/starts); of which phases the paper's mean is, it does not say"
)
LOCKED: Final = (
    "the flow that comes first has a window far above the path's, sends at exactly the port's rate and keeps the others "
    "out, so that any buffer is a full one; with windows of 128 KiB phase 2 is 0.77 and 1.04 Gb/s, with hosts whose clock is "
    "100 ppm fast 0.6 to 0.9 and 0.75 to 1.19 "
    "(docs/dev/paper-s-ecn.md#what-bounds-the-windows-decides-about-fig-10)"
)
EARLY: Final = (
    "second rounds of early flows arrive with the first round and wait at the uplinks; the bound knows only the first. In the "
    "run that is farthest above it, phase 2 is taken from a stretch that begins during the first rounds"
)

HIDDEN: Final = {128: 0.804, 256: 1.009, 512: 1.170}
"""Mean slopes of phase 2 by the buffer of the previous hop in KB [Gb/s]."""


def jobs(
    context: Context,
    name: str,
    changes: Mapping[str, Any],
    *,
    seeds: int | None = None,
    key: Mapping[str, Any] = MappingProxyType({}),
) -> list[Job]:
    """Return a job for each seed, or for the first `seeds` of them."""
    scenario = context.scenario(name).replace({"duration": UNTIL, "telemetry.sample": "off", **changes})
    return context.each_seed(scenario, **key)[:seeds]


def _several(flows: int) -> dict[str, Any]:
    """Return what makes three, six or nine background flows of the three of same-hop.toml, with as much in flight together."""
    if flows == 3:
        return {}
    hosts = ["h0", "h3", "h6"]
    each: dict[str, Any] = {"traffic[0].senders": hosts, "traffic[1].senders": hosts}
    window = {"transports.background.receive_window.size": f"{3 * 64 * 1024 // flows}B"}
    return each | window | {"traffic[0].flows_per_sender": flows // 3 - 1}


def _of(runs: Iterable[Run], **key: Any) -> list[Run]:
    return [found for found in runs if key.items() <= found.key.items()]


@figure("s-ecn/fig8", title="Fan-in beside one background flow: slopes of both phases", seeds=100, short=4, seconds=11)
def fig8(context: Context) -> Findings:
    """The long flow is in congestion avoidance; its window is varied as well."""
    ramps = context.runs(jobs(context, "one-bg", {}), ramp)
    found, queue = ramps[0], context.runs(jobs(context, "one-bg", {}, seeds=1), trace)[0]
    size = "transports.background.receive_window.size"
    windows = context.runs([job for w in WINDOWS for job in jobs(context, "one-bg", {size: w}, seeds=10, key={"window": w})], ramp)
    rows = [
        Row(name="phase 1, mean", paper="> port speed", fanin=mean(f.first_phase for f in ramps), low=RATE, unit="Gb/s"),
        Row(name="phase 2, mean", paper="< port speed", fanin=mean(f.second_phase for f in ramps), high=RATE, unit="Gb/s"),
        Row(
            name="phase 2, largest of all runs",
            paper="< port speed",
            fanin=max((f.second_phase for f in ramps), default=math.nan),
            high=RATE,
            unit="Gb/s",
        ),
    ]
    curves = [("P1", [f.first_phase for f in ramps]), ("P2", [f.second_phase for f in ramps])]
    by_window = go.Figure()
    means = [mean(f.second_phase for f in _of(windows, window=w)) for w in WINDOWS]
    by_window.add_scatter(x=list(WINDOWS), y=means, mode="lines+markers", name="phase 2")
    by_window.add_scatter(x=list(WINDOWS), y=[RATE] * len(WINDOWS), mode="lines", name="port speed", line={"dash": "dash"})
    layout(by_window, "Window of the background flow", "Slope of phase 2 [Gb/s]", "What the window of the background flow does")
    return Findings(
        rows=rows,
        plots={
            "slopes": cdf(curves, "Slopes beside one background flow"),
            "queue": evolution(
                queue, found.phases, "Queue in front of Host 10's rack beside one background flow", until=found.full
            ),
            "windows": by_window,
        },
        data={"runs": ramps_frame(ramps), "phases": phases_frame(ramps), "queue": queue, "windows": ramps_frame(windows)},
    )


@figure(
    "s-ecn/fig9", title="Fan-in beside background flows at the same hop: steps and their slopes", seeds=100, short=4, seconds=16
)
def fig9(context: Context) -> Findings:
    """Each round is a step that waits behind what was queued before."""
    runs = context.runs(
        [job for flows in SAME_HOP for job in jobs(context, "same-hop", _several(flows), key={"flows": flows})], steps
    )
    queue = context.runs(jobs(context, "same-hop", {}, seeds=1), trace)[0]
    rows = []
    for flows, paper in SAME_HOP.items():
        listed = _of(runs, flows=flows)
        phases = {number: mean(found.slope(number) for found in listed) for number in (1, 2, 3)}
        rows += [
            Row(name=f"{flows} flows, phase 2", paper="< port speed", fanin=phases[2], high=RATE, unit="Gb/s"),
            Row(name=f"{flows} flows, phase 3", paper="< port speed", fanin=phases[3], high=RATE, unit="Gb/s"),
            Row(name=f"{flows} flows, phase 3 over phase 2", paper="> 1", fanin=phases[3] / phases[2], low=1.0),
            unless_ok(
                Row(
                    name=f"{flows} flows, mean of phases 2 and 3",
                    paper=paper,
                    fanin=(phases[2] + phases[3]) / 2,
                    low=paper * (1 - SPREAD),
                    high=paper * (1 + SPREAD),
                    unit="Gb/s",
                ),
                STEPS,
            ),
        ]
    curves = [
        (f"{flows}, P{number}", [found.slope(number) for found in _of(runs, flows=flows)])
        for flows in SAME_HOP
        for number in (2, 3)
    ]
    return Findings(
        rows=rows,
        plots={
            "queue": evolution(
                queue,
                [phase for part in runs[0].phases for phase in part],
                "Queue in front of Host 10's rack, three background flows at the same hop",
            ),
            "slopes": cdf(curves, "Slopes by number of background flows"),
        },
        data={"runs": steps_frame(runs), "queue": queue},
    )


def buffer(kilobytes: int) -> dict[str, Any]:
    """Return what gives the previous hop of prev-hop.toml a buffer of this many KB."""
    return {"switch.except": [{"switches": ["tor2"], "buffer": f"{kilobytes}KB"}]}


@figure("s-ecn/fig10", title="Fan-in and a hidden buffer at the previous hop: slope of phase 2", seeds=100, short=4, seconds=25)
def fig10(context: Context) -> Findings:
    """The buffer of the previous hop is 128, 256 and 512 KB."""
    ramps = context.runs([job for kb in HIDDEN for job in jobs(context, "prev-hop", buffer(kb), key={"buffer_kb": kb})], ramp)
    same = context.runs(jobs(context, "same-hop", {}), steps)
    queue = context.runs(jobs(context, "prev-hop", buffer(512), seeds=1), trace)[0]
    found = _of(ramps, buffer_kb=512)[0]
    means = {kb: mean(f.second_phase for f in _of(ramps, buffer_kb=kb)) for kb in HIDDEN}
    rows = [
        unless_ok(
            Row(
                name=f"{kb} KB, phase 2, mean",
                paper=paper,
                fanin=means[kb],
                low=paper * (1 - SPREAD),
                high=paper * (1 + SPREAD),
                unit="Gb/s",
            ),
            LOCKED if kb < 512 else "",
        )
        for kb, paper in HIDDEN.items()
    ]
    rows += [
        Row(name=f"phase 2, {more} KB over {less} KB", paper="> 1", fanin=means[more] / means[less], low=1.0)
        for less, more in ((128, 256), (256, 512))
    ]
    shift = mean(f.slope(2) for f in same)
    rows.append(Row(name="phase 2, 512 KB over background at the same hop", paper="≫ 1", fanin=means[512] / shift, low=1.0))
    rows += [
        unless_ok(
            Row(
                name="phase 2 over 2aR/(a + R), largest of all runs, a: slope of phase 1",
                paper="≤ 1",
                fanin=max((f.second_phase / _bound(f.first_phase) for f in ramps), default=math.nan),
                high=1.0,
            ),
            EARLY,
        ),
        unless_ok(
            Row(
                name="phase 2 over 2aR/(a + R), largest of all runs, a: new flows' packets in phase 1, as fanin analyze has it",
                paper="≤ 1",
                fanin=max((f.second_phase / _bound(f.first_rate) for f in ramps), default=math.nan),
                high=1.0,
            ),
            EARLY,
        ),
    ]
    curves: Sequence[tuple[str, list[float]]] = [
        ("same hop, P2", [f.slope(2) for f in same]),
        *((f"{kb} KB, P2", [f.second_phase for f in _of(ramps, buffer_kb=kb)]) for kb in HIDDEN),
    ]
    return Findings(
        rows=rows,
        plots={
            "slopes": cdf(curves, "Slope of phase 2 by the buffer of the previous hop"),
            "queue": evolution(queue, found.phases, "Queue in front of Host 10's rack, hidden buffer of 512 KB", until=found.full),
        },
        data={"runs": ramps_frame(ramps), "phases": phases_frame(ramps), "same_hop": steps_frame(same), "queue": queue},
    )


def _bound(a: float) -> float:
    """Return 2aR/(a + R), all in frame bytes [Gb/s]."""
    return 2 * a * RATE / (a + RATE)
