"""Packet drop notification beside today's hosts: how much of its gain is left where Linux finds losses by RACK-TLP."""

from __future__ import annotations

from typing import Any, Final

import plotly.graph_objects as go
import polars as pl

from fanin.reproduce._context import Context
from fanin.reproduce._jobs import Job, frame
from fanin.reproduce._registry import figure
from fanin.reproduce._rows import Findings, Row
from fanin.reproduce.pdn import PLAIN, measure
from fanin.reproduce.pdn_beyond import FABRIC, average, fabric_run

OPEN: Final[dict[str, Any]] = {"transport.handshake": True}
"""Connections that open know an RTT when their first window is lost, as persistent ones do; without it all timers are 1 s."""

LINUX: Final[dict[str, Any]] = {
    f"transport.{key}": None
    for key in ("congestion_control", "sack", "timestamps", "mss", "initial_window", "ack_every", "rto_min")
} | {"transport.profile": "linux"}
"""Linux 6.12 and nothing of the paper's."""

HOSTS: Final[dict[str, dict[str, Any]]] = {
    "the paper's": OPEN,
    "RACK-TLP": OPEN | {"transport.profile": "linux", "transport.sack": True},
    "Linux 6.12": OPEN | LINUX,
    "Linux 6.12, RTO_min 10 ms": OPEN | LINUX | {"transport.rto_min": "10ms"},
}
"""The second: the paper's segments, windows and ACKs, and Linux's way to find losses."""

SERVERS: Final = (20, 50, 100, 150, 300)


def fan_in(context: Context) -> list[Job]:
    """Return the fan-in of fig. 6 to 9 with each kind of hosts, with and without notification."""
    base = context.scenario("fan-in")
    jobs = []
    for hosts, changes in HOSTS.items():
        for servers in SERVERS:
            sized = base.replace({"topology.left": servers, "traffic[0].receiver": f"h{servers}"} | changes)
            for variant, scenario in (("plain", sized.replace(PLAIN)), ("PDN", sized)):
                jobs += context.each_seed(scenario, hosts=hosts, servers=servers, variant=variant)
    return jobs


MODERN: Final = {
    "transport.profile": "linux",
    "transport.ack_every": None,
    "transport.rto_min": None,
    "transport.rto_initial": "10ms",
}
"""A SYN/ACK that is lost in the fan-in costs 10 ms, not the 1 s that would hide all else: connections there open in the fan-in."""
REPAIRS: Final[dict[str, dict[str, Any]]] = {
    "RTO 200 ms": PLAIN,
    "RTO 10 ms": PLAIN | {"transport.rto_min": "10ms"},
    "PDN": {},
    "PDN, resent by the window": {"transport.drop_resend": "window"},
}
SENDERS: Final = ("CUBIC", "DCTCP")


def in_fabric(context: Context) -> list[Job]:
    """Return the fat tree of pdn/fabric with Linux's hosts."""
    base = context.scenario("fabric").replace(MODERN | OPEN)
    if context.short:
        base = base.replace({"traffic[0].stop": "2ms", "traffic[1].stop": "2ms"})
    seeds = context.seeds[:3]
    return [
        Job(base.replace(FABRIC[sender] | more), seed, {"sender": sender, "repair": repair})
        for sender in SENDERS
        for repair, more in REPAIRS.items()
        for seed in seeds
    ]


@figure("pdn/modern", title="Beyond the paper: what is left of PDN's gain with today's hosts", seeds=10, short=2, seconds=300)
def modern(context: Context) -> Findings:
    """RACK and tail loss probes save some timeouts; those of windows that are lost as a whole, and of few segments, stay."""
    jobs = fan_in(context)
    found = context.runs(jobs, measure)
    table = pl.DataFrame(
        [
            {
                "hosts": str(job.key["hosts"]),
                "servers": run.servers,
                "variant": run.variant,
                "seed": run.seed,
                "completion_ms": run.seconds * 1e3,
                "timeouts": run.timeouts,
                "drops": run.drops,
            }
            for job, run in zip(jobs, found, strict=True)
        ]
    )
    means = table.group_by("hosts", "servers", "variant", maintain_order=True).agg(
        pl.col("completion_ms").median(), pl.col("timeouts", "drops").mean()
    )
    of = {(row["hosts"], row["servers"], row["variant"]): row for row in means.to_dicts()}
    rows = []
    for hosts in HOSTS:
        notified = [of[hosts, servers, "PDN"] for servers in SERVERS]
        rows.append(Row(name=f"{hosts}: timeouts with PDN", paper=0, fanin=sum(row["timeouts"] for row in notified), low=0, high=0))
        for servers in (100, 150):
            ratio = of[hosts, servers, "PDN"]["completion_ms"] / of[hosts, servers, "plain"]["completion_ms"]
            rows.append(Row(name=f"{hosts}, {servers} servers: time with PDN over time without", paper=None, fanin=ratio, high=1))
    wide = in_fabric(context)
    runs = frame(wide, context.runs(wide, fabric_run))
    values = [name for name in runs.columns if name not in ("sender", "repair", "seed")]
    fabric = average(runs, ["sender", "repair"], values)
    by = {(row["sender"], row["repair"]): row for row in fabric.to_dicts()}
    for sender in SENDERS:
        for rto in ("RTO 200 ms", "RTO 10 ms"):
            ratio = by[sender, "PDN"]["query_p99_ms"] / by[sender, rto]["query_p99_ms"]
            rows.append(
                Row(name=f"fabric, {sender}, PDN over {rto} without: queries, 99th percentile", paper=None, fanin=ratio, high=1)
            )
        rows.append(
            Row(name=f"fabric, {sender}, PDN: timeouts", paper="no timeouts", fanin=by[sender, "PDN"]["timeouts"], low=0, high=0)
        )
    plot = go.Figure()
    for (hosts, variant), line in means.group_by("hosts", "variant", maintain_order=True):
        x, y = line["servers"].to_list(), line["completion_ms"].to_list()
        plot.add_scatter(x=x, y=y, mode="lines+markers", name=f"{hosts}, {variant}")
    axes = {"xaxis_title": "Servers", "yaxis_title": "Completion [ms], median"}
    plot.update_layout(title="Fan-in with today's hosts", template="simple_white", **axes)
    plot.update_yaxes(type="log")
    return Findings(rows=rows, plots={"modern": plot}, data={"runs": table, "means": means, "fabric": runs, "fabric_means": fabric})
