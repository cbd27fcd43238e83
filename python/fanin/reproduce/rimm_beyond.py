"""RIMM beyond the paper: other hosts, incasts, neighbours that are loaded, faster links."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import plotly.graph_objects as go
import polars as pl

from fanin.reproduce._context import Context
from fanin.reproduce._jobs import Job, frame
from fanin.reproduce._registry import figure
from fanin.reproduce._rows import Findings, Row
from fanin.reproduce.rimm import BASIC, FULL, MECHANISMS, PER_FLOW, PLAIN, SHARED, event, layout, summarise
from fanin.results import Result

CHOSEN: Final = (BASIC, SHARED, PLAIN, FULL, PER_FLOW)
"""Mechanisms of `MECHANISMS` that are compared here."""

MARKS: Final[dict[str, Any]] = {"transport.congestion_control": "dctcp"}
NOTICES: Final[dict[str, Any]] = {
    "transport.drop_notification": True,
    "switch.mechanisms.pdn": {"max_frame": "9226B"},
}
HOSTS: Final[dict[str, dict[str, Any]]] = {
    "CUBIC": {},
    "CUBIC, windows as Linux tunes them": {"transport.receive_window": None},
    "CUBIC, PDN": NOTICES,
    "DCTCP, 65 packets": MARKS | {"switch.marking": {"kind": "threshold", "k": "65 packets"}},
    "DCTCP, S-ECN": MARKS | {"switch.marking": {"kind": "s_ecn", "k": "65 packets"}},
    "UDP, 5 MB at 10 Gb/s": {
        "traffic[1]": {
            "name": "burst",
            "kind": "cbr",
            "src": "h3",
            "dst": "h6",
            "rate": "10Gbps",
            "counts": "wire",
            "packet": "1472B",
            "size": "5MB",
            "start": "30ms",
        }
    },
}
"""Hosts of the paper's event."""


def outcome(result: Result, job: Job) -> dict[str, Any]:
    """Reduce a run: losses, copies, timeouts, disorder, and when the last flow of the group of interest was complete."""
    flows = result.flows
    group = str(job.key.get("group", "burst"))
    mine = flows.filter(pl.col("group") == group)
    took = (mine["finish_ps"] - mine["start_ps"]).cast(pl.Float64) / 1e9
    counted = result.summary["mechanisms"].get("rimm") or {}
    return {
        "lost": result.summary["drops"],
        "retransmits": int(flows["retransmits"].sum()),
        "reordered": int(flows["reordered"].sum()),
        "timeouts": result.summary["timeouts"],
        "last_ms": took.max(),
        "median_ms": took.median(),
        "unfinished": int(mine["finish_ps"].null_count()),
        "given_up": counted.get("given_up", 0),
        "detoured": counted.get("detoured", 0),
    }


def grid(
    context: Context, base: str, cases: Mapping[str, Mapping[str, Any]], group: str, others: Mapping[str, list[Any]] | None = None
) -> pl.DataFrame:
    """Return the runs of each case with each mechanism, for each seed; `others` is traffic besides, by case."""
    scenario = context.scenario(base)
    listed = []
    for case, changes in list(cases.items())[: 2 if context.short else None]:
        for variant in CHOSEN:
            for seed in context.seeds:
                phase = event(seed) if base == "event" and "traffic[1]" not in changes else {}
                if base == "event":  # as fabrics have it today
                    phase |= {"switch.routing": "ecmp"}
                made = scenario.replace(phase).replace(dict(changes) | MECHANISMS[variant])
                if others is not None:
                    made = made.replace(traffic=[*made.to_dict()["traffic"], *others[case]])
                listed.append(Job(made, seed, {"case": case, "variant": variant, "group": group}))
    return frame(listed, context.runs(listed, outcome))


def means_of(table: pl.DataFrame) -> pl.DataFrame:
    """Return means over the seeds."""
    return summarise(table.drop("group"), ("case", "variant"))


def rows_of(means: pl.DataFrame, what: str, note: str) -> list[Row]:
    """Return for each case whether detours in order beat forwarding, and a buffer that the ports share."""
    rows = []
    for case in means["case"].unique(maintain_order=True):
        of = {row["variant"]: row for row in means.filter(pl.col("case") == case).to_dicts()}
        name = f"{case}: {PER_FLOW} over"
        for other in (BASIC, SHARED):
            if of[PER_FLOW]["last_ms"] is not None and of[other]["last_ms"] is not None:  # datagrams that are lost stay lost
                ratio = of[PER_FLOW]["last_ms"] / of[other]["last_ms"]
                rows.append(Row(name=f"{name} {other}: {what}", paper=None, fanin=ratio, high=1.05, note=note))
        rows.append(Row(name=f"{case}: {PER_FLOW}: lost", paper=0, fanin=of[PER_FLOW]["lost"], low=0, high=0, note=note))
    return rows


def lines(means: pl.DataFrame, value: str, x: str, y: str) -> go.Figure:
    """Return a line for each mechanism over the cases."""
    plot = go.Figure()
    for variant in CHOSEN:
        line = means.filter(pl.col("variant") == variant)
        plot.add_scatter(x=line["case"].to_list(), y=line[value].to_list(), mode="lines+markers", name=variant)
    layout(plot, x, y)
    plot.update_xaxes(type="category")
    plot.update_yaxes(type="log")
    return plot


PAGE: Final = "see docs/dev/paper-rimm.md#beyond-the-paper"


@figure("rimm/hosts", title="Beyond the paper: RIMM with DCTCP, S-ECN, PDN, and UDP", seeds=3, short=1, seconds=60)
def hosts(context: Context) -> Findings:
    """Hosts that gain by detours."""
    means = means_of(table := grid(context, "event", HOSTS, "burst"))
    rows = rows_of(means, "burst's completion", PAGE)
    plot = lines(means, "last_ms", "Hosts", "Burst's completion [ms]")
    return Findings(rows=rows, plots={"hosts": plot}, data={"runs": table, "means": means})


INCASTS: Final = {str(6 * n): {"traffic[0].flows_per_sender": n} for n in (5, 10, 20, 40, 80)}


@figure("rimm/incast", title="Beyond the paper: incasts of 30 to 480 flows", seeds=3, short=1, seconds=60)
def incast(context: Context) -> Findings:
    """Many flows of 64 KB each at once."""
    means = means_of(table := grid(context, "incast", INCASTS, "incast"))
    rows = rows_of(means, "last flow", PAGE)
    plot = lines(means, "last_ms", "Flows", "Last flow complete [ms]")
    return Findings(rows=rows, plots={"incast": plot}, data={"runs": table, "means": means})


def load(rate: str) -> list[dict[str, Any]]:
    """Return datagrams to and from the other two hosts of leaf2, at a rate each."""
    pairs = [("h1", "h7"), ("h4", "h8"), ("h7", "h2"), ("h8", "h5")]
    facts = {"kind": "cbr", "rate": rate, "counts": "wire", "packet": "1472B", "size": "60MB"}
    return [{"name": f"load{i}", "src": src, "dst": dst} | facts for i, (src, dst) in enumerate(pairs)]


LOADS: Final = (
    ("40Gbps", ""),
    ("40Gbps", "9Gbps"),
    ("20Gbps", ""),
    ("20Gbps", "5Gbps"),
    ("20Gbps", "9Gbps"),
    ("10Gbps", ""),
    ("10Gbps", "4Gbps"),
)
"""Rate of the links between switches, and of the datagrams to and from each of leaf2's other hosts."""


@figure("rimm/loaded", title="Beyond the paper: neighbours that are loaded, too", seeds=3, short=1, seconds=60)
def loaded_neighbours(context: Context) -> Findings:
    """Detours need spare rate: twice the arrivals on the way out, once on the way back."""
    cases = {f"{uplink}, {rate or 'no load'}": {"topology.uplink.rate": uplink} for uplink, rate in LOADS}
    others = {case: load(rate) if rate else [] for case, (_, rate) in zip(cases, LOADS, strict=True)}
    means = means_of(table := grid(context, "event", cases, "burst", others))
    rows = rows_of(means, "burst's completion", PAGE)
    plot = lines(means, "lost", "Links between switches, load of each other host", "Packets lost, mean")
    return Findings(rows=rows, plots={"loaded": plot}, data={"runs": table, "means": means})


def speed(host: int, uplink: int) -> dict[str, Any]:
    """Return links of these rates [Gb/s], receive windows, and a start of the burst that comes sooner by as much."""
    changes = {"topology.host_link.rate": f"{host}Gbps", "topology.uplink.rate": f"{uplink}Gbps"}
    start = {"traffic[1].flows[0].start": f"{300_000 // host}us"}
    return changes | start | {"transport.receive_window": {"kind": "fixed", "size": "930KB"}}


SPEEDS: Final = {
    "10 and 40": speed(10, 40),
    "25 and 100": speed(25, 100),
    "100 and 400": speed(100, 400),
    "400 and 1600": speed(400, 1600),
    "100 and 100": speed(100, 100),
}
"""Rates of hosts and between switches; buffer, alpha and windows are those of the paper's event."""


@figure("rimm/speeds", title="Beyond the paper: up to 400 Gb/s", seeds=3, short=1, seconds=60)
def speeds(context: Context) -> Findings:
    """A message takes as long as ever, while the queue grows faster."""
    means = means_of(table := grid(context, "event", SPEEDS, "burst"))
    rows = rows_of(means, "burst's completion", PAGE)
    plot = lines(means, "lost", "Rates [Gb/s]", "Packets lost, mean")
    return Findings(rows=rows, plots={"speeds": plot}, data={"runs": table, "means": means})
