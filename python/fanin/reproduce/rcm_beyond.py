"""RCM beyond its paper: other controls beside it, reordering, reserved buffer, jobs, half of the switches, failed links."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import polars as pl

from fanin.reproduce._context import Context
from fanin.reproduce._jobs import Job, frame
from fanin.reproduce._rcm import (
    CONTROL,
    DCQCN,
    MARKING,
    MECHANISM,
    PAUSES,
    RCM,
    VARIANTS,
    counted,
    grid,
    interval,
    marks,
    means,
    nothing_lost,
    paused_ms,
    ratios,
    reordered_percent,
)
from fanin.reproduce._registry import figure
from fanin.reproduce._rows import Findings, Row
from fanin.reproduce.rcm import victims
from fanin.reproduce.rcm_fabric import CHOSEN, LOAD, fabric, hot_run, loaded, workload_run
from fanin.results import Result
from fanin.scenario import Scenario


def alone(kind: str, telemetry: bool = False) -> dict[str, Any]:
    """Return a control that needs no marks, over PFC without RCM."""
    extra: dict[str, Any] = {"switch.mechanisms.int": {}} if telemetry else {}
    return {CONTROL: kind, MARKING: None, MECHANISM: None} | extra


OTHERS: Final[dict[str, dict[str, Any]]] = VARIANTS | {
    "TIMELY": alone("timely"),
    "Swift": alone("swift"),
    "HPCC": alone("hpcc", telemetry=True),
    "PowerTCP": alone("powertcp", telemetry=True),
}


@figure("rcm/controls", title="Beyond the paper: the victim and pauses with other controls", seeds=4, short=1, seconds=200)
def controls(context: Context) -> Findings:
    """What the victim of fig. 7 has, and for how long ports are paused, under each control."""
    base = context.scenario("victim").replace({"duration": "4ms"})
    table, _ = victims(context, base, OTHERS)
    mean = means(table)
    paused = dict(mean.select("variant", "paused_ms").iter_rows())
    victim = dict(mean.select("variant", "settled_victim").iter_rows())
    rows = [
        Row(name=f"{name}: victim over that with PFC alone", paper=None, fanin=victim[name] / victim[PAUSES], low=1)
        for name in OTHERS
    ]
    rows += [
        Row(name=f"{name}: pauses over those of PFC alone", paper=None, fanin=paused[name] / paused[PAUSES], high=1)
        for name in OTHERS
        if name != PAUSES
    ]
    shown = {
        column: [(row[column], row[f"{column}_ci"]) for row in mean.to_dicts()] for column in ("early_victim", "settled_victim")
    }
    plot = marks(
        {"20 to 100 us": shown["early_victim"], "from 2 ms on": shown["settled_victim"]}, list(OTHERS), "Victim [Gb/s]", line=50
    )
    return Findings(rows=rows, plots={"controls": plot}, data={"runs": table, "means": mean})


def hot_spot(context: Context) -> Scenario:
    """Return the paper's hot spot on a fabric that takes seconds: 54 hosts, in short 16."""
    return loaded(context.scenario("hot-spot"), LOAD, "64KB", 4 if context.short else 6)


NO_DEARER: Final = 1.05
"""A completion time over DCQCN's up to which the mechanism costs nothing worth naming."""
STILL: Final = "RCM, nothing rerouted"
REROUTING: Final[dict[str, dict[str, Any]]] = {
    DCQCN: VARIANTS[DCQCN],
    STILL: {f"{MECHANISM}.sar": False},
    RCM: {},
    "RCM, flows go back after 1 ms": {f"{MECHANISM}.moved_stay": "1ms"},
    "RCM, any degree is severe": {f"{MECHANISM}.severe_degree": 1, f"{MECHANISM}.severe_count": 1},
}
RECOVERY: Final[dict[str, dict[str, Any]]] = {
    "go-back-N": {},
    "selective repeat": {"transport.recovery": "selective_repeat"},
}
ORDER: Final = "go-back-N takes a packet that comes too early for a loss, and sends again all from there on"


@figure(
    "rcm/reordering", title="Beyond the paper: packets out of order by rerouting, and what they cost", seeds=4, short=1, seconds=120
)
def reordering(context: Context) -> Findings:
    """The share of packets that rerouting lets overtake others, under a hot spot, by how hosts recover."""
    base = hot_spot(context)
    listed = [
        job
        for recovery, how in RECOVERY.items()
        for job in grid(context, base, {name: dict(change) | how for name, change in REROUTING.items()}, recovery=recovery)
    ]
    table = frame(listed, context.runs(listed, hot_run))
    values = ["reordered_percent", "retransmits", "background_us", "background_gbps", "hot_gbps", "all_gbps", "paused_ms"]
    mean = table.group_by("recovery", "variant", maintain_order=True).agg(pl.col(values).mean())
    of = {(row["recovery"], row["variant"]): row for row in mean.to_dicts()}
    still = of["selective repeat", STILL]
    rows = [
        Row(name="windows alone: packets out of order", paper=None, fanin=still["reordered_percent"], high=0, unit="%"),
        Row(name="DCQCN: packets out of order", paper=None, fanin=of["go-back-N", DCQCN]["reordered_percent"], high=0, unit="%"),
    ]
    rows += [
        Row(name=f"RCM, {recovery}: packets sent again", paper=None, fanin=of[recovery, RCM]["retransmits"], high=0, note=ORDER)
        for recovery in RECOVERY
    ]
    series = {recovery: [(of[recovery, name]["reordered_percent"], math.nan) for name in REROUTING] for recovery in RECOVERY}
    plot = marks(series, [str(i) for i in range(len(REROUTING))], "Packets out of order [%]")
    return Findings(rows=rows, plots={"reordering": plot}, data={"runs": table, "means": mean})


TIMEOUT: Final = (
    "one mouse of 22,000 was moved, overtook itself, and with go-back-N waited for a timeout of 67 ms; the other three seeds "
    "have 0.96"
)
BUFFERS: Final = ("25KB", "50KB", "100KB", "200KB", "400KB")


@figure(
    "rcm/buffer", title="Beyond the paper: how much a port may hold before it pauses its neighbour", seeds=4, short=1, seconds=120
)
def buffer(context: Context) -> Findings:
    """The reserved buffer, which the paper leaves open: completion of mice by XOFF."""
    sizes = BUFFERS[1:4:2] if context.short else BUFFERS
    base = fabric(context, "enterprise")
    listed = [
        job
        for size in sizes
        for job in grid(context, base.replace({"switch.mechanisms.pfc.xoff": {"kind": "static", "bytes": size}}), CHOSEN, xoff=size)
    ]
    table = frame(listed, context.runs(listed, workload_run))
    return compared(table, "xoff", sizes, "mice_us", "buffer", note=TIMEOUT)


def compared(  # noqa: PLR0913 (what is compared, and how it is called)
    table: pl.DataFrame, case: str, cases: Sequence[str], value: str, name: str, *, high: float | None = None, note: str = ""
) -> Findings:
    """Return a value with RCM over that with DCQCN in each case; a row for each, and nothing lost."""
    series: dict[str, list[tuple[float, float]]] = {}
    for over in (DCQCN, PAUSES):
        series[f"over {over}"] = []
        for one in cases:
            part = {
                variant: rows.sort("seed")[value].to_list()
                for (variant,), rows in table.filter(pl.col(case) == one).group_by("variant")
            }
            ratios = [a / b if a is not None and b else math.nan for a, b in zip(part[RCM], part[over], strict=True)]
            series[f"over {over}"].append(interval(ratios))
    rows = [
        Row(name=f"{case} {one}: {value} with RCM over DCQCN's", paper=None, fanin=ratio, high=high or 1.0, note=note)
        for one, (ratio, _) in zip(cases, series[f"over {DCQCN}"], strict=True)
    ]
    rows.append(nothing_lost(table))
    plot = marks(series, list(cases), f"{value}, RCM over the other", line=1)
    found = [
        {case: one, "over": over.removeprefix("over "), "ratio": ratio, "ci": half}
        for over, points in series.items()
        for one, (ratio, half) in zip(cases, points, strict=True)
    ]
    return Findings(rows=rows, plots={name: plot}, data={"runs": table, "ratios": pl.DataFrame(found)})


JOBS: Final[dict[str, dict[str, Any]]] = {
    "all-reduce": {"kind": "all_reduce", "size": "432KB", "algorithm": "ring"},
    "all-reduce, double tree": {"kind": "all_reduce", "size": "4MB", "algorithm": "double_tree", "message": "64KB"},
    "all-to-all": {"kind": "all_to_all", "size": "1728KB", "concurrent": 8},
}
"""A ring's step is 1 KB of each rank; of an all-to-all 4 KB go from each to each."""


def job_run(result: Result, job: Job) -> dict[str, Any]:
    """Reduce a run to the time of the job, pauses, and what came out of order."""
    [done] = result.summary["collectives"]
    flows = result.flows
    return {
        "job_us": float(done["time_ps"]) / 1e6 if done["time_ps"] else math.nan,
        "paused_ms": paused_ms(result),
        "reordered_percent": reordered_percent(flows),
        "lost": int(result.summary["drops"]),
        "retransmits": int(flows["retransmits"].sum()),
    } | counted(result)


@figure("rcm/jobs", title="Beyond the paper: all-reduce and all-to-all of 432 hosts", seeds=2, short=1, seconds=400)
def jobs_(context: Context) -> Findings:
    """Whether switches that act for themselves slow down those that wait for the last one."""
    base = context.scenario("workload").replace({"topology.k": 4} if context.short else {})
    ranks = 16 if context.short else 432
    listed = []
    for name, operation in JOBS.items():
        entry = {"name": "job", "kind": "collective", "ranks": ["all"], "order": "shuffled", "operations": [operation]}
        if context.short:
            entry["operations"] = [
                {key: value for key, value in operation.items() if key != "message"} | {"size": f"{4 * ranks}KB"}
            ]
        listed += grid(context, base.replace({"traffic": [entry]}), CHOSEN, job=name)
    table = frame(listed, context.runs(listed, job_run))
    return compared(table, "job", list(JOBS), "job_us", "jobs", high=NO_DEARER)


PLACES: Final[dict[str, list[str]]] = {
    "all": [],
    "half of the pods": [f"{tier}{pod}_*" for tier in ("edge", "agg") for pod in range(1, 12, 2)],
    "edge switches": ["agg*", "core*"],
    "aggregation switches": ["edge*", "core*"],
}
"""Placements of RCM, by name: switches that have it and switches without."""


@figure("rcm/partial", title="Beyond the paper: RCM at half of the switches", seeds=4, short=1, seconds=120)
def partial(context: Context) -> Findings:
    """A switch without it neither detects nor passes on."""
    base = fabric(context, "enterprise")
    k = int(base.to_dict()["topology"]["k"])
    there = tuple(f"{tier}{pod}_" for tier in ("edge", "agg") for pod in range(k))
    listed = []
    for name, without in PLACES.items():
        unaware = [pattern for pattern in without if pattern.startswith(there) or "_" not in pattern]
        made = CHOSEN | {RCM: {f"{MECHANISM}.unaware": unaware}}
        listed += grid(context, base, made, where=name)
    table = frame(listed, context.runs(listed, workload_run))
    return compared(table, "where", list(PLACES), "mice_us", "partial")


FAILED: Final[dict[str, list[str]]] = {
    "no link": [],
    "one link of each pod": ["edge*_0->agg*_0"],
    "three links of each pod": ["edge*_0->agg*_0", "edge*_1->agg*_1", "edge*_0->agg*_1"],
    # A switch may not lose its last link; over one alone no route leads.
    "a core of each plane": [f"agg{pod}_*->core{core}" for pod in range(1, 6) for core in (0, 3)],
}


@figure("rcm/failures", title="Beyond the paper: links that have failed", seeds=4, short=1, seconds=180)
def failures(context: Context) -> Findings:
    """Hot spot on a fabric that failed links make asymmetric: completion of the background, and what rerouting adds to it.

    RCM once more without rerouting, and with hosts that take packets in any order.
    """
    base = hot_spot(context)
    cases = dict(list(FAILED.items())[:: 2 if context.short else 1])
    if context.short:  # a switch of two uplinks cannot lose both
        cases = {"no link": [], "one link of each pod": FAILED["one link of each pod"]}
    ways: dict[str, Mapping[str, Mapping[str, Any]]] = {
        "go-back-N": {**CHOSEN, STILL: REROUTING[STILL]},
        "selective repeat": {name: {**CHOSEN[name], **RECOVERY["selective repeat"]} for name in (DCQCN, RCM)},
    }
    listed = [
        job
        for recovery, variants in ways.items()
        for name, links in cases.items()
        for job in grid(context, base.replace({"topology.failed": links}), variants, failed=name, recovery=recovery)
    ]
    table = frame(listed, context.runs(listed, hot_run))
    by = {way: table.filter(pl.col("recovery") == way) for way in ways}
    found = compared(
        by["go-back-N"].filter(pl.col("variant") != STILL), "failed", list(cases), "background_us", "failures", note=ORDER
    )
    parts: dict[str, list[tuple[float, float]]] = {"RCM": [], STILL: [], "RCM, selective repeat": []}
    for one in cases:
        at = {way: rows.filter(pl.col("failed") == one) for way, rows in by.items()}
        parts["RCM"].append(interval(ratios(at["go-back-N"], "background_us", RCM, DCQCN)))
        parts[STILL].append(interval(ratios(at["go-back-N"], "background_us", STILL, DCQCN)))
        parts["RCM, selective repeat"].append(interval(ratios(at["selective repeat"], "background_us", RCM, DCQCN)))
    rows = [
        Row(name=f"failed {one}: background_us, {part}, over DCQCN's", paper=None, fanin=ratio, high=NO_DEARER)
        for part, points in parts.items()
        if part != "RCM"
        for one, (ratio, _) in zip(cases, points, strict=True)
    ]
    plot = marks(parts, list(cases), "background_us over DCQCN's with the same recovery", line=1)
    return Findings(rows=[*found.rows, *rows], plots={**found.plots, "failures-parts": plot}, data={**found.data, "runs": table})
