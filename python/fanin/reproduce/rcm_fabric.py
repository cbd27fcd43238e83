"""RCM, §4.2 and §4.3, on the fabric of 432 hosts: a hot spot (fig. 8), enterprise and data-mining flows (fig. 9)."""

from __future__ import annotations

import math
from typing import Any, Final

import plotly.graph_objects as go
import polars as pl

from fanin.reproduce._context import Context
from fanin.reproduce._jobs import Job, frame
from fanin.reproduce._rcm import (
    DCQCN,
    PAUSES,
    RCM,
    VARIANTS,
    counted,
    grid,
    interval,
    marks,
    nothing_lost,
    paused_ms,
    ratios,
    reordered_percent,
)
from fanin.reproduce._registry import figure
from fanin.reproduce._rows import Findings, Row
from fanin.results import Result
from fanin.scenario import Scenario

CHOSEN: Final = {name: VARIANTS[name] for name in (PAUSES, DCQCN, RCM)}

HOT_SHARE: Final = 0.15
LOAD: Final = 0.6
"""Load of the hosts' links: that of fig. 9, since fig. 8 has none."""


def loaded(base: Scenario, load: float, size: str, k: int | None = None) -> Scenario:
    """Return the hot spot at a load, with messages of one size, on a fat tree of k-port switches if given."""
    sizes = {f"traffic[{i}].sizes": {"kind": "fixed", "size": size} for i in range(2)}
    loads = {"traffic[0].load": round(load * (1 - HOT_SHARE), 6), "traffic[1].load": round(load * HOT_SHARE, 6)}
    return base.replace(sizes | loads | ({} if k is None else {"topology.k": k}))


def hot_run(result: Result, job: Job) -> dict[str, Any]:
    """Reduce a run to throughput per host and mean completion time of background, hot flows and all."""
    flows, seconds = result.flows, float(result.manifest["sim_ps"]) / 1e12
    hosts = int(job.scenario.to_dict()["topology"]["k"]) ** 3 // 4
    found: dict[str, Any] = {"paused_ms": paused_ms(result), "retransmits": int(flows["retransmits"].sum())} | counted(result)
    found["lost"] = int(result.summary["drops"])
    found["reordered_percent"] = reordered_percent(flows)
    for name, which in {
        "background": pl.col("group") == "background",
        "hot": pl.col("group") == "hot",
        "all": pl.lit(True),
    }.items():
        part = flows.filter(which)
        took = part.filter(pl.col("finish_ps").is_not_null()).select((pl.col("finish_ps") - pl.col("start_ps")).mean() / 1e6).item()
        gbps = float(part["delivered_bytes"].sum()) * 8 / seconds / hosts / 1e9
        found |= {f"{name}_gbps": gbps, f"{name}_us": took, f"{name}_unfinished": int(part["finish_ps"].null_count())}
    return found


POINTS: Final = ((0.3, "64KB"), (0.45, "64KB"), (0.6, "64KB"), (0.9, "64KB"), (0.6, "8KB"), (0.6, "1MB"))
"""Load, size of a message: the paper gives neither. The third is the one that is compared."""


@figure("rcm/fig8", title="Hot spot: throughput of background, hot flows and all", seeds=3, short=1, seconds=250)
def fig8(context: Context) -> Findings:
    """What the background gains when hot flows are held back at the switches, by load and size of a message."""
    base = context.scenario("hot-spot")
    key: dict[str, Any] = {"k": 4} if context.short else {}
    points = [point for point in POINTS if not context.short or point == (LOAD, "64KB")]
    jobs = [
        job
        for load, size in points
        for job in grid(
            context,
            loaded(base, load, size, key.get("k")),
            CHOSEN,
            context.seeds if (load, size) == (LOAD, "64KB") else context.seeds[:1],
            load=load,
            size=size,
            **key,
        )
    ]
    table = frame(jobs, context.runs(jobs, hot_run))
    chosen = table.filter((pl.col("load") == LOAD) & (pl.col("size") == "64KB"))
    gains = {name: gain(chosen, f"{name}_gbps") for name in ("background", "hot", "all")}
    rows = [
        Row(
            name="background: throughput with RCM over DCQCN's",
            paper=1.122,
            fanin=gains["background"][0],
            low=1.1,
            high=1.145,
            note=AGAIN,
        ),
        Row(name="hot flows: the same", paper="a little lower", fanin=gains["hot"][0], low=0.85, high=1.0, note=AGAIN),
        Row(name="all: the same", paper="better", fanin=gains["all"][0], low=1.0, note=AGAIN),
        nothing_lost(table),
    ]
    ratio_table = pl.DataFrame(
        [
            {"load": load, "size": size, "over": over}
            | {
                name: gain(table.filter((pl.col("load") == load) & (pl.col("size") == size)), f"{name}_gbps", over)[0]
                for name in ("background", "hot", "all")
            }
            for load, size in points
            for over in (DCQCN, PAUSES)
        ]
    )
    return Findings(rows=rows, plots={"fig8": hot_bars(chosen)}, data={"runs": table, "ratios": ratio_table})


AGAIN: Final = (
    "what SAR moves comes out of order, and go-back-N sends all again from there on, to ports that are full; with nothing rerouted "
    "throughput is DCQCN's; the paper gives no size of messages, and with 1 MB the background gains 6 %"
)


def gain(table: pl.DataFrame, value: str, over: str = DCQCN) -> tuple[float, float]:
    """Return a value with RCM over that of another variant: mean over seeds, and half of the 95 % interval."""
    return interval(ratios(table, value, RCM, over))


def hot_bars(table: pl.DataFrame) -> go.Figure:
    """Return throughput per host by kind of flow and variant."""
    kinds = ("background", "hot", "all")
    series = {
        name: [interval(table.filter(pl.col("variant") == name)[f"{kind}_gbps"].to_list()) for kind in kinds] for name in CHOSEN
    }
    return marks(series, kinds, "Throughput per host [Gb/s]")


WORKLOADS: Final = ("enterprise", "data-mining")
MICE, ELEPHANTS = 1_000_000, 10_000_000
"""Mice are smaller than the one, elephants larger than the other [B] (§4.3)."""


def workload(  # noqa: PLR0913 (what may differ from the paper's)
    base: Scenario, sizes: str, *, stop: str = "10ms", load: float = LOAD, groups: int = 12, k: int | None = None
) -> Scenario:
    """Return the groups with flows of these sizes; fewer, smaller groups on a smaller fat tree."""
    document = base.to_dict()
    hosts = 432 if k is None else k**3 // 4
    size = hosts // groups
    made = []
    for i in range(groups):
        members = [f"h{size * i}..h{size * (i + 1) - 1}"]
        made.append(dict(document["traffic"][0]) | {"name": f"group{i}", "sources": members, "destinations": members})
        made[-1] |= {"sizes": sizes, "stop": stop, "load": load}
    return base.replace({"traffic": made} | ({} if k is None else {"topology.k": k}))


def fabric(context: Context, sizes: str) -> Scenario:
    """Return flows of these sizes on a fabric that takes seconds: 54 hosts, in short 16."""
    k = 4 if context.short else 6
    return workload(context.scenario("workload"), sizes, stop="500us" if context.short else "3ms", groups=k, k=k)


def workload_run(result: Result, job: Job) -> dict[str, Any]:
    """Reduce a run to mean completion times by size [us], pauses, and what came out of order."""
    flows = result.flows
    took = ((pl.col("finish_ps") - pl.col("start_ps")).cast(pl.Float64) / 1e6).alias("us")
    flows = flows.with_columns(took)
    classes = {
        "all": pl.lit(True),
        "mice": pl.col("size_bytes") < MICE,
        "between": pl.col("size_bytes").is_between(MICE, ELEPHANTS),
        "elephants": pl.col("size_bytes") > ELEPHANTS,
    }
    found: dict[str, Any] = {"paused_ms": paused_ms(result), "unfinished": int(flows["finish_ps"].null_count())} | counted(result)
    found |= {"retransmits": int(flows["retransmits"].sum()), "lost": int(result.summary["drops"])}
    found["reordered_percent"] = reordered_percent(flows)
    for name, which in classes.items():
        part = flows.filter(which)
        tail = part["us"].quantile(0.99) if part.height else None
        found |= {f"{name}_flows": part.height, f"{name}_us": part["us"].mean() if part.height else None, f"{name}_p99_us": tail}
    return found


@figure("rcm/fig9", title="Enterprise and data-mining flows: mean completion times", seeds=3, short=1, seconds=450)
def fig9(context: Context) -> Findings:
    """Mean completion times with RCM over those with DCQCN, the same flows, by size."""
    base = context.scenario("workload")
    options: dict[str, Any] = {"stop": "500us", "groups": 4, "k": 4} if context.short else {}
    jobs = []
    for sizes in WORKLOADS:
        made = workload(base, sizes, **options)
        for name, change in CHOSEN.items():
            seeds = context.seeds[:1] if name == PAUSES else context.seeds
            jobs += grid(context, made, {name: change}, seeds, workload=sizes)
    table = frame(jobs, context.runs(jobs, workload_run))
    found = pl.DataFrame([line(table, sizes, over, kind) for sizes in WORKLOADS for over in (DCQCN, PAUSES) for kind in KINDS])
    of = {(row["workload"], row["over"], row["flows"]): row for row in found.to_dicts()}
    rows = []
    note = FEW if context.short else ""
    for sizes in WORKLOADS:
        ratio = {kind: float(of[sizes, DCQCN, kind]["ratio"] or math.nan) for kind in KINDS}
        name = f"{sizes}: mean completion with RCM over DCQCN's"
        rows += [
            Row(name=f"{name}, all", paper="< 1", fanin=ratio["all"], high=1, note=note),
            Row(name=f"{name}, mice", paper="< 0.9", fanin=ratio["mice"], high=0.9, note=note),
            Row(name=f"{name}, elephants", paper="about 1", fanin=ratio["elephants"], low=0.9, high=1.1, note=note),
        ]
    both = [float(of[sizes, DCQCN, "mice"]["ratio"] or math.nan) for sizes in WORKLOADS]
    rows.append(
        Row(name="mice: data-mining's ratio over enterprise's", paper="< 1", fanin=both[1] / both[0], high=1, note=LESS_TO_GAIN)
    )
    rows.append(nothing_lost(table))
    return Findings(rows=rows, plots={"fig9": completion_bars(found)}, data={"runs": table, "ratios": found})


KINDS: Final = ("all", "mice", "between", "elephants")
FEW: Final = "16 hosts and 0.5 ms of traffic: mice take little more than an idle network takes, and there are few flows above 10 MB"
LESS_TO_GAIN: Final = (
    "data mining's mice have less to gain: beside PFC alone RCM takes 0.87 of their time and 0.39 of enterprise's, in full; "
    "so enterprise's gain more than the paper's 10 %"
)


def line(table: pl.DataFrame, sizes: str, over: str, kind: str) -> dict[str, Any]:
    """Return one ratio of mean completion times with its interval over seeds."""
    part = table.filter(pl.col("workload") == sizes)
    seeds = part.filter(pl.col("variant") == over)["seed"].to_list()
    mean, half = interval(ratios(part.filter(pl.col("seed").is_in(seeds)), f"{kind}_us", RCM, over))
    count = part.filter(pl.col("variant") == RCM)[f"{kind}_flows"].sum()
    return {"workload": sizes, "over": over, "flows": kind, "number": count, "ratio": mean, "ci": half}


def completion_bars(found: pl.DataFrame) -> go.Figure:
    """Return the ratios over DCQCN by size of the flows."""
    part = found.filter(pl.col("over") == DCQCN)
    series = {
        sizes: [(row["ratio"], row["ci"]) for row in part.filter(pl.col("workload") == sizes).to_dicts()] for sizes in WORKLOADS
    }
    return marks(series, KINDS, "Mean FCT, RCM over DCQCN", line=1)
