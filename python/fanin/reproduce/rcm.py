"""RCM, §4.2: an incast with a burst (fig. 6) and with a victim (fig. 7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import plotly.graph_objects as go
import polars as pl

from fanin.reproduce._context import Context
from fanin.reproduce._jobs import Job, frame
from fanin.reproduce._rcm import (
    DCQCN,
    MECHANISM,
    PAUSES,
    RCM,
    RCM_ALONE,
    READ,
    READING,
    VARIANTS,
    counted,
    grid,
    interval,
    layout,
    marks,
    means,
    paused_ms,
    throughput,
)
from fanin.reproduce._registry import figure
from fanin.reproduce._rows import Findings, Row
from fanin.results import Result
from fanin.scenario import Scenario

ZERO_US: Final = 5_000.0
"""The paper's time zero: by then DCQCN has given the four flows their shares (scenarios/papers/rcm/burst.toml)."""
BURST_US: Final = ZERO_US + 150
BIN_US: Final = 2.0
FILES: Final = {RCM: "rcm", READ: "rcm-read", DCQCN: "dcqcn", PAUSES: "pfc"}
BURSTS: Final[dict[str, dict[str, Any]]] = VARIANTS | {READ: {f"{MECHANISM}.{key}": value for key, value in READING.items()}}
CAM: Final = (
    "all five flows are harmful: each has a place of a CAM of eight, and what is held stays harmful; so W_c is of all that passes, "
    "and what it takes of the burst it takes of the four; with the burst alone harmful, and half of W_c taken once, it has 25"
)
SET: Final = "cam_hits, cam_period and decrease"
BURST: Final = 4
"""The burst's number among the flows."""


def burst_run(result: Result, job: Job) -> dict[str, Any]:
    """Reduce a run to throughput by flow at the last switch's output port, marks, and when the burst came through."""
    rates = throughput(result, BIN_US).filter(pl.col("us") >= BURST_US - 50)
    data = result.scan("segments").filter((pl.col("kind") == "data") & pl.col("received_ps").is_not_null())
    burst = data.filter(pl.col("flow") == BURST).select(pl.col("received_ps").min() / 1e6, last=pl.col("received_ps").max() / 1e6)
    first, last = burst.collect().row(0)
    late = (pl.col("flow") != BURST) & (pl.col("received_ps") >= int(first * 1e6)) & pl.col("marked")
    marked = data.filter(late).select(pl.len()).collect().item()
    return {
        "rates": rates.to_dict(as_series=False),
        "first": first,
        "last": last,
        "marked": marked,
        "paused_ms": paused_ms(result),
    } | counted(result)


def burst_part(result: Result, job: Job) -> dict[str, float]:
    """Reduce a run to the burst's least throughput in 10 us, and each other flow's then."""
    found = phases(burst_run(result, job))
    return {"burst_gbps": found["least_burst"], "others_gbps": found["then_others"]}


def during(found: Mapping[str, Any], start: float, end: float) -> tuple[float, float]:
    """Return the throughput of the burst, and of all others together, in whole bins between two times [Gb/s]."""
    rates = pl.DataFrame(found["rates"]).filter(pl.col("us").is_between(start, end - BIN_US))
    bins = max(round((end - start) / BIN_US), 1)
    burst = float(rates.filter(pl.col("flow") == BURST)["gbps"].sum()) / bins
    return burst, float(rates["gbps"].sum()) / bins - burst


def phases(found: Mapping[str, Any]) -> dict[str, float]:
    """Return the burst's throughput as it begins, its least over five bins, the others' in those bins, and how long it took."""
    begin = found["first"] // BIN_US * BIN_US + BIN_US
    starts = [begin + i * BIN_US for i in range(int((found["last"] - begin) / BIN_US) - 4)]
    held = [during(found, start, start + 5 * BIN_US) for start in starts] or [during(found, begin, found["last"])]
    first = during(found, begin, begin + 2 * BIN_US)
    least = min(held)
    mean = during(found, begin, found["last"] // BIN_US * BIN_US)
    end = found["last"] // BIN_US * BIN_US + BIN_US
    after = during(found, end + 10, end + 60)
    return {
        "first_burst": first[0],
        "first_others": first[1] / 4,
        "mean_burst": mean[0],
        "mean_others": mean[1] / 4,
        "least_burst": least[0],
        "then_others": least[1] / 4,
        "after_others": after[1] / 4,
        "lasted_us": found["last"] - found["first"],
    }


@figure(
    "rcm/fig6", title="A burst of 20 us joins four long flows: throughput at the last switch's port", seeds=1, short=1, seconds=15
)
def fig6(context: Context) -> Findings:
    """With DCQCN the burst keeps half of the port for as long as it lasts; RCM takes half of that away."""
    listed = grid(context, context.scenario("burst"), BURSTS)
    found = dict(zip(BURSTS, context.runs(listed, burst_run), strict=True))
    seen = {name: phases(one) for name, one in found.items()}
    dcqcn, rcm = seen[DCQCN], seen[RCM]
    rows = [
        Row(name="DCQCN: burst, as long as it lasts", paper=50, fanin=dcqcn["mean_burst"], low=45, high=55, unit="Gb/s"),
        Row(name="DCQCN: each other flow meanwhile", paper=12.5, fanin=dcqcn["mean_others"], low=11, high=14, unit="Gb/s"),
        Row(name="DCQCN: packets of the four marked from then on", paper="marked for nothing", fanin=found[DCQCN]["marked"], low=1),
        Row(name="RCM: burst, first 4 us", paper=50, fanin=rcm["first_burst"], low=45, high=55, unit="Gb/s"),
        half(RCM, rcm["least_burst"], note=CAM),
        Row(name="RCM: each other flow then", paper="recovers", fanin=rcm["then_others"], low=17, unit="Gb/s", note=CAM),
        half(READ, seen[READ]["least_burst"], calibrated=SET),
        Row(
            name=f"{READ}: each other flow then",
            paper="recovers",
            fanin=seen[READ]["then_others"],
            low=17,
            unit="Gb/s",
            calibrated=SET,
        ),
    ]
    data = pl.concat([pl.DataFrame(one["rates"]).with_columns(variant=pl.lit(name)) for name, one in found.items()])
    table = frame(listed, [seen[name] | {key: value for key, value in found[name].items() if key != "rates"} for name in BURSTS])
    return Findings(
        rows=rows,
        plots={f"fig6-{file}": over_time(found[name]) for name, file in FILES.items()},
        data={"throughput": data, "phases": table},
    )


def over_time(found: Mapping[str, Any]) -> go.Figure:
    """Return throughput at the last switch's port over time, a line for each flow."""
    rates = pl.DataFrame(found["rates"])
    times = sorted(rates["us"].unique().to_list())
    plot = go.Figure()
    for flow in range(5):
        of = dict(rates.filter(pl.col("flow") == flow).select("us", "gbps").iter_rows())
        line = {"color": "#c23b22" if flow == BURST else "#1979a9", "width": 2 if flow == BURST else 1}
        label = "BurstFlow" if flow == BURST else "IncastFlow"
        gbps = [of.get(time, 0.0) for time in times]
        facts: dict[str, Any] = {"name": label, "legendgroup": label, "showlegend": flow in (0, BURST)}
        plot.add_scatter(x=[time - ZERO_US for time in times], y=gbps, line=line, mode="lines", **facts)
    layout(plot, "Time [us]", "Throughput [Gb/s]")
    plot.update_xaxes(range=[130, 250])
    return plot


ROUTES: Final = (469, 572, 673, 826)
"""Seeds with which ECMP takes S1, S2 and the victim to one aggregation switch, S3 and S4 to another: the first four."""
STILL: Final[dict[str, dict[str, Any]]] = {"RCM, nothing rerouted": {f"{MECHANISM}.sar": False}}
"""SAR gives the victim an uplink to itself, which the paper's does not have: so this is the one to compare."""
EARLY_US: Final = (20.0, 100.0)
"""Before marks have acted; queues have built up."""
SETTLED_US: Final = 2_000.0
VICTIM: Final = 4

ITSELF: Final = (
    "with PFC alone the victim has its 25 Gb/s; DCQCN, once it has settled, holds the four at the 25 Gb/s that they can have, "
    "so that nobody is paused for long"
)


LAST: Final = (
    "three flows begin at line rate on one uplink, so that all of them, the victim too, are harmful there and marked: DCQCN slows "
    "the victim with the others at first, as it does without RCM"
)


BEYOND: Final = (
    "beyond the paper's, because SAR moves the victim, or what shares its uplink, to another: it has more than half of one then; "
    "the paper's victim stays where it is"
)


def half(name: str, fanin: float, **why: str) -> Row:
    """Return a row that RCM halves the burst's throughput, from 50 to 25 Gb/s (§4.2)."""
    return Row(name=f"{name}: burst, least in 10 us", paper=25, fanin=fanin, low=20, high=30, unit="Gb/s", **why)


def alike(name: str, fanin: float, note: str = "") -> Row:
    """Return a row of the victim's throughput where it has as little as each of the incast's flows."""
    return Row(name=name, paper=25, fanin=fanin, low=22.5, high=27.5, unit="Gb/s", note=note)


def nearly_50(name: str, fanin: float, below: str = LAST) -> Row:
    """Return a row of the victim's throughput, which the paper has at nearly 50 Gb/s: half of its uplink."""
    return Row(name=name, paper="nearly 50", fanin=fanin, low=45, high=55, unit="Gb/s", note=BEYOND if fanin > 55 else below)


def victim_run(result: Result, job: Job) -> dict[str, Any]:
    """Reduce a run to the throughput of victim and incast, early and settled, and pauses."""
    rates = throughput(result, 10.0)
    end = float(result.manifest["sim_ps"]) / 1e6
    found: dict[str, Any] = {"paused_ms": paused_ms(result)} | counted(result)
    for name, (start, stop) in {"early": EARLY_US, "settled": (SETTLED_US, end)}.items():
        part = rates.filter(pl.col("us").is_between(start, stop - 10))
        bins = max(round((stop - start) / 10), 1)
        victim = float(part.filter(pl.col("flow") == VICTIM)["gbps"].sum()) / bins
        found |= {f"{name}_victim": victim, f"{name}_incast": float(part["gbps"].sum()) / bins - victim}
    up = pl.col("port").str.starts_with("edge0_0->agg")
    ways = result.scan("hops").filter(up).group_by("flow").agg(pl.col("port").first()).sort("flow").collect()["port"].to_list()
    found["as_in_the_paper"] = ways[0] == ways[1] == ways[VICTIM] and ways[2] == ways[3] != ways[0]
    return found


def victims(
    context: Context, base: Scenario, variants: Mapping[str, Mapping[str, Any]]
) -> tuple[pl.DataFrame, dict[str, dict[str, Any]]]:
    """Return the victim's runs of some variants, and the means of each over the seeds with which ECMP takes the figure's ways."""
    listed = grid(context, base, variants, ROUTES[: len(context.seeds)])
    table = frame(listed, context.runs(listed, victim_run))
    if not table["as_in_the_paper"].all():
        raise ValueError("rcm: flows do not take the ways of the paper's figure 7: look for other seeds")
    return table, {row["variant"]: row for row in table.group_by("variant", maintain_order=True).mean().to_dicts()}


@figure(
    "rcm/fig7", title="4-to-1 incast and a victim that shares one uplink: the victim's throughput", seeds=4, short=1, seconds=120
)
def fig7(context: Context) -> Findings:
    """Pauses give the victim as little as the incast's flows; RCM gives it what they leave."""
    base = context.scenario("victim")
    table, mean = victims(context, base, VARIANTS | STILL)
    rows = [
        alike("PFC alone: victim", mean[PAUSES]["settled_victim"]),
        alike("DCQCN: victim, 20 to 100 us", mean[DCQCN]["early_victim"], ITSELF),
        alike("DCQCN: victim, from 2 ms on", mean[DCQCN]["settled_victim"], ITSELF),
    ]
    for name in (RCM_ALONE, RCM, *STILL):
        rows += [
            nearly_50(f"{name}: victim, from 2 ms on", mean[name]["settled_victim"]),
            nearly_50(f"{name}: victim, 20 to 100 us", mean[name]["early_victim"]),
            Row(
                name=f"{name}: incast, all four",
                paper=100,
                fanin=mean[name]["settled_incast"],
                low=90,
                high=110,
                unit="Gb/s",
                note=LAST,
            ),
        ]
    return Findings(rows=rows, plots={"fig7": bars(table)}, data={"runs": table, "means": means(table)})


def bars(table: pl.DataFrame) -> go.Figure:
    """Return the victim's throughput by variant, early and settled."""
    names = table["variant"].unique(maintain_order=True).to_list()
    columns = {"20 to 100 us": "early_victim", "from 2 ms on": "settled_victim"}
    series = {
        label: [interval(table.filter(pl.col("variant") == name)[column].to_list()) for name in names]
        for label, column in columns.items()
    }
    return marks(series, names, "Victim [Gb/s]", line=50)
