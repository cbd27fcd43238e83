"""Packet drop notification, §V: fan-in with and without it, and five flows that share a link."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import plotly.graph_objects as go
import polars as pl

from fanin.reproduce._context import Context
from fanin.reproduce._jobs import Job
from fanin.reproduce._registry import figure
from fanin.reproduce._rows import Findings, Row
from fanin.results import Result

SRU: Final = 10_000
"""Bytes that each server sends."""
FRAME: Final = 1058
WIRE: Final = 1078
"""Bytes of a segment of 1000 B in a queue, and of wire time."""
BUFFER: Final = 300_000
RATE: Final = 1e9
RTT: Final = 100e-6
"""Round-trip propagation delay [s]."""
RTO: Final = 0.2

PLAIN: Final[dict[str, Any]] = {"switch.mechanisms.pdn": None, "transport.drop_notification": False}
VARIANTS: Final[dict[str, dict[str, Any]]] = {
    "NewReno": PLAIN,
    "NewReno, starts within 400 us": PLAIN | {"traffic[0].jitter": "400us"},
    "NewReno, starts within 800 us": PLAIN | {"traffic[0].jitter": "800us"},
    "PDN": {},
}
COLLAPSE: Final = {"NewReno": 72, "NewReno, starts within 400 us": 86, "NewReno, starts within 800 us": 94}
"""Servers from which on the paper's goodput collapses (§V)."""


@dataclass(frozen=True)
class Run:
    """The results of one fan-in."""

    variant: str
    servers: int
    seed: int
    seconds: float
    timeouts: int
    drops: int
    notice_queue: int

    @property
    def goodput(self) -> float:
        """Goodput: application data, in Mb/s."""
        return self.servers * SRU * 8 / self.seconds / 1e6


def measure(result: Result, job: Job) -> Run:
    """Reduce a fan-in: from the start to the last byte of the last server."""
    summary = result.summary
    notices = summary["mechanisms"].get("notifications")
    longest = notices["largest_queue"] if notices else None
    return Run(
        variant=str(job.key["variant"]),
        servers=int(job.key["servers"]),
        seed=job.seed,
        seconds=int(result.flows["finish_ps"].max()) / 1e12,  # type: ignore[arg-type]
        timeouts=summary["timeouts"],
        drops=summary["drops"],
        notice_queue=longest["bytes"] if longest else 0,
    )


def jobs(context: Context, variants: Iterable[str], servers: Iterable[int]) -> list[Job]:
    """Return a job for each variant and number of servers; starts at random take all seeds, the others the first."""
    base = context.scenario("fan-in")
    made = []
    for n in servers:
        sized = base.replace({"topology.left": n, "traffic[0].receiver": f"h{n}"})
        for variant in variants:
            scenario = sized.replace(VARIANTS[variant])
            seeds = context.seeds if "traffic[0].jitter" in VARIANTS[variant] else context.seeds[:1]
            made += [Job(scenario, seed, {"variant": variant, "servers": n}) for seed in seeds]
    return made


def frame(runs: Sequence[Run]) -> pl.DataFrame:
    """Return the runs as a table."""
    return pl.DataFrame(
        [
            {
                "variant": run.variant,
                "servers": run.servers,
                "seed": run.seed,
                "completion_ms": run.seconds * 1e3,
                "goodput_mbps": run.goodput,
                "timeouts": run.timeouts,
                "drops": run.drops,
                "notice_queue_bytes": run.notice_queue,
            }
            for run in runs
        ]
    )


def collapse(runs: Sequence[Run], variant: str) -> float:
    """Return the fewest servers of which one times out: the mean over the seeds."""
    found: dict[int, int] = {}
    for run in runs:
        if run.variant == variant and run.timeouts > 0:
            found[run.seed] = min(found.get(run.seed, run.servers), run.servers)
    return sum(found.values()) / len(found) if found else float("inf")


def curve(runs: Sequence[Run], value: str, title: str, unit: str, *, log: bool = False) -> go.Figure:
    """Return a plot over the number of servers, a line for each variant: the mean over its seeds."""
    plot = go.Figure()
    means = frame(runs).group_by("variant", "servers", maintain_order=True).agg(pl.col(value).mean()).sort("servers")
    for variant in VARIANTS:
        line = means.filter(pl.col("variant") == variant)
        if not line.is_empty():
            plot.add_scatter(x=line["servers"].to_list(), y=line[value].to_list(), mode="lines+markers", name=variant)
    plot.update_layout(title=title, xaxis_title="Servers", yaxis_title=unit, template="simple_white")
    if log:
        plot.update_yaxes(type="log")
    return plot


def grid(context: Context) -> list[int]:
    """Return the numbers of servers of figures 6 and 7: each one around the collapse, fewer elsewhere."""
    if context.short:
        return [2, 40, 60, *range(70, 104, 3), 120, 150]
    return [2, *range(5, 60, 5), *range(60, 110), *range(110, 151, 5)]


DERIVED: Final = (BUFFER // FRAME + (3 * WIRE + 3 * 84 + RTT * RATE / 8) / WIRE) / 4
"""Servers whose third round, four segments each, no longer fits: see docs/dev/paper-pdn.md#where-fan-in-collapses."""
BOUNDS: Final = (BUFFER / FRAME / 4, math.ceil(DERIVED) + 1)
"""With all segments in the queue, and with those away from it that a round trip takes; and a server for what one ACK releases."""


def collapses(runs: Sequence[Run]) -> list[Row]:
    """Return the rows of where goodput collapses."""
    low, high = BOUNDS
    rows = [Row(name="NewReno: servers at the collapse", paper=72, fanin=collapse(runs, "NewReno"), low=low, high=high)]
    for name, spread in (("NewReno, starts within 400 us", 400e-6), ("NewReno, starts within 800 us", 800e-6)):
        # While starts are spread, the port sends: a quarter of that many segments are servers more. One draw of starts is one
        # sample; the paper shows one.
        more = spread * RATE / 8 / WIRE / 4
        rows.append(
            Row(
                name=f"{name}: servers at the collapse, mean",
                paper=COLLAPSE[name],
                fanin=collapse(runs, name),
                low=low + more / 2,
                high=high + more * 3 / 2,
            )
        )
    return rows


@figure("pdn/fig6", title="Goodput of fan-in: NewReno, with starts spread, and PDN", seeds=10, short=2, seconds=300)
def fig6(context: Context) -> Findings:
    """Goodput collapses where the third round does not fit; spread starts move that, and with PDN it does not happen."""
    runs = context.runs(jobs(context, VARIANTS, grid(context)), measure)
    notified = [run for run in runs if run.variant == "PDN"]
    before = max((run for run in runs if run.variant == "NewReno" and not run.timeouts), key=lambda run: run.servers)
    after = [run for run in runs if run.variant == "NewReno" and run.timeouts]
    rows = [
        *collapses(runs),
        Row(name="PDN: timeouts, all runs", paper=0, fanin=sum(run.timeouts for run in notified), low=0, high=0),
        Row(
            name="PDN: least goodput from 72 to 150 servers",
            paper="no collapse",
            fanin=min(run.goodput for run in notified if run.servers >= 72),
            low=before.goodput * 0.9,
            unit="Mb/s",
        ),
        Row(
            name="NewReno: most goodput after the collapse",
            paper="collapse",
            fanin=max(run.goodput for run in after),
            high=max(run.servers for run in after) * SRU * 8 / RTO / 1e6,
            unit="Mb/s",
        ),
    ]
    plot = curve(runs, "goodput_mbps", "Goodput of the fan-in", "Goodput [Mb/s]")
    return Findings(rows=rows, plots={"fig6": plot}, data={"runs": frame(runs)})


@figure("pdn/fig7", title="Task completion time of the same", seeds=10, short=2, seconds=300)
def fig7(context: Context) -> Findings:
    """Multiples of RTO_min after the collapse; milliseconds with PDN."""
    runs = context.runs(jobs(context, VARIANTS, grid(context)), measure)
    best = {run.servers: run.servers * SRU * 8 / RATE + RTT for run in runs}
    late = [run for run in runs if run.variant != "PDN" and run.timeouts]
    over = [run.seconds % RTO - best[run.servers] for run in late]
    early = [run for run in runs if run.variant == "NewReno" and not run.timeouts]
    notified = [run for run in runs if run.variant == "PDN"]
    rows = [
        Row(
            name="NewReno before the collapse: longest",
            paper="a few ms",
            fanin=max(run.seconds for run in early) * 1e3,
            high=10,
            unit="ms",
        ),
        Row(
            name="after the collapse: shortest",
            paper="a multiple of 200 ms",
            fanin=min(run.seconds for run in late) * 1e3,
            low=RTO * 1e3,
            unit="ms",
        ),
        # What is sent after a timeout takes less than all of it again, and a few round trips.
        Row(
            name="after the collapse: most beyond a multiple of 200 ms, less the best case",
            paper="a multiple of 200 ms",
            fanin=max(over) * 1e3,
            low=-1e3 * max(best.values()),
            high=5,
            unit="ms",
        ),
        Row(
            name="PDN at 150 servers",
            paper="milliseconds",
            fanin=max(run.seconds for run in notified) * 1e3,
            high=20,
            unit="ms",
        ),
    ]
    plot = curve(runs, "completion_ms", "Task completion time", "Completion [ms]", log=True)
    return Findings(rows=rows, plots={"fig7": plot}, data={"runs": frame(runs)})


@figure("pdn/fig8", title="PDN against the best case", seeds=1, short=1, seconds=40)
def fig8(context: Context) -> Findings:
    """Bytes over rate and 100 us; the paper is 3 ms above it at 150 servers."""
    servers = [*range(10, 151, 20 if context.short else 5)]
    servers = servers if servers[-1] == 150 else [*servers, 150]
    runs = context.runs(jobs(context, ["PDN"], servers), measure)
    above = {run.servers: (run.seconds - run.servers * SRU * 8 / RATE - RTT) * 1e3 for run in runs}
    headers = 150 * SRU * 8 / RATE * (WIRE / 1000 - 1) * 1e3
    rows = [
        # Headers take their time; of the 100 us of the best case data needs half, one way. The paper reads its own figure as 3 ms.
        Row(name="above the best case at 150 servers", paper=3, fanin=above[150], low=headers - RTT / 2 * 1e3, high=3.5, unit="ms"),
        Row(name="above the best case, most", paper="close", fanin=max(above.values()), high=3.5, unit="ms"),
    ]
    plot = go.Figure()
    at = [run.servers for run in runs]
    plot.add_scatter(x=at, y=[run.seconds * 1e3 for run in runs], mode="lines+markers", name="PDN")
    plot.add_scatter(x=at, y=[(n * SRU * 8 / RATE + RTT) * 1e3 for n in at], mode="lines", name="best case")
    plot.update_layout(title="PDN and the best case", xaxis_title="Servers", yaxis_title="Completion [ms]", template="simple_white")
    return Findings(rows=rows, plots={"fig8": plot}, data={"runs": frame(runs)})


@figure("pdn/fig9", title="Largest notification queue, up to 300 servers", seeds=1, short=1, seconds=90)
def fig9(context: Context) -> Findings:
    """One notification of 20 B, from the first drop on."""
    servers = [*range(50, 301, 50)] if context.short else [*range(10, 60, 10), *range(60, 100, 1), *range(100, 301, 10)]
    runs = context.runs(jobs(context, ["PDN"], servers), measure)
    first = min((run.servers for run in runs if run.drops), default=0)
    rows = [
        Row(name="largest notification queue", paper=20, fanin=max(run.notice_queue for run in runs), low=20, high=20, unit="B")
    ]
    if not context.short:
        low, high = BOUNDS
        rows.append(Row(name="servers at the first drop", paper=72, fanin=first, low=low, high=high))
    plot = go.Figure()
    plot.add_scatter(x=[run.servers for run in runs], y=[run.notice_queue for run in runs], mode="lines+markers", name="PDN")
    axes = {"xaxis_title": "Servers", "yaxis_title": "Notification queue [B]"}
    plot.update_layout(title="Largest notification queue", template="simple_white", **axes)
    return Findings(rows=rows, plots={"fig9": plot}, data={"runs": frame(runs)})


STARTS: Final = (1, 3, 5, 7, 9)
ENDS: Final = (19, 17, 15, 13, 11)
"""When the paper starts and stops its five flows; in s."""
BIN: Final = 0.1
"""In s."""


def shares(result: Result, job: Job) -> tuple[list[dict[str, float]], list[float]]:
    """Return the throughput of each flow in wire bytes, by bins, and when each ended; flows by number from 0."""
    listed = result.flows.filter(pl.col("group") != "noise").sort("start_ps")
    number = {flow: float(i) for i, flow in enumerate(listed["flow"].to_list())}
    table = (
        result.scan_queues()
        .filter(~pl.col("dropped") & pl.col("flow").is_in(list(number)))
        .with_columns((pl.col("time_ps") / (BIN * 1e12)).floor().cast(pl.Int64).alias("bin"))
        .group_by("bin", "flow")
        .agg(((pl.col("frame_bytes").cast(pl.UInt64) + 20).sum() * 8 / BIN / 1e6).alias("mbps"))
        .sort("bin", "flow")
        .collect()
    )
    points = [
        {"seed": float(job.seed), "time_s": row["bin"] * BIN, "flow": number[row["flow"]], "mbps": row["mbps"]}
        for row in table.to_dicts()
    ]
    return points, [end / 1e12 for end in listed["finish_ps"].to_list()]


@figure("pdn/fig10", title="Fairness: two flows with PDN and three without", seeds=10, short=10, seconds=40)
def fig10(context: Context) -> Findings:
    """Equal shares while flows come and go: the mean over seeds, as one run is far from its mean."""
    found = context.runs(context.each_seed(context.scenario("fairness")), shares)
    table = pl.DataFrame([point for points, _ in found for point in points])
    rows = []
    for n, start in enumerate(STARTS, 1):
        fair = 1000 / n
        # The second half of the interval: the paper does not report how long a new flow takes to reach its share.
        inside = table.filter(pl.col("time_s").is_between(start + 1 - BIN / 2, start + 2 - BIN / 2, closed="left"))
        rates = [float(inside.filter(pl.col("flow") == flow)["mbps"].sum()) * BIN / len(found) for flow in range(n)]
        for kind, chosen in (("PDN", rates[:2]), ("NewReno", rates[2:])):
            if chosen:
                name = f"{n} flow{'s' if n > 1 else ''}: mean of those with {kind}"
                # The paper: "about"; it calls 300 Mb/s a third of 1000.
                mean = sum(chosen) / len(chosen)
                rows.append(Row(name=name, paper=round(fair), fanin=mean, low=fair * 0.8, high=fair * 1.2, unit="Mb/s"))
        fairness = sum(rates) ** 2 / (n * sum(rate**2 for rate in rates))
        name = f"{n} flow{'s' if n > 1 else ''}: Jain's index of the means"
        rows.append(Row(name=name, paper="equal", fanin=fairness, low=0.9))
    for flow, paper in enumerate(ENDS):
        end = sum(ends[flow] for _, ends in found) / len(found)
        rows.append(
            Row(
                name=f"flow {flow + 1} ends, mean",
                paper=paper,
                fanin=end,
                low=paper - 2,  # before the next one does
                high=paper + 2,
                unit="s",
            )
        )
    plot = go.Figure()
    one = table.filter(pl.col("seed") == table["seed"].min())
    for flow in range(len(STARTS)):
        line = one.filter(pl.col("flow") == flow)
        kind = "PDN" if flow < 2 else "NewReno"
        plot.add_scatter(x=line["time_s"].to_list(), y=line["mbps"].to_list(), mode="lines", name=f"flow {flow + 1}, {kind}")
    axes = {"xaxis_title": "Time [s]", "yaxis_title": "Throughput [Mb/s]"}
    plot.update_layout(title="Shares of five flows, first seed", template="simple_white", **axes)
    ends = pl.DataFrame(
        [{"seed": i, "flow": f, "end_s": end} for i, (_, all_ends) in enumerate(found, 1) for f, end in enumerate(all_ends)]
    )
    return Findings(rows=rows, plots={"fig10": plot}, data={"shares": table, "ends": ends})
