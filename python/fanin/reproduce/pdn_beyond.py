"""Packet drop notification beyond the paper: other timers, senders and neighbours, notifications that get lost, a fabric."""

from __future__ import annotations

from typing import Any, Final

import plotly.graph_objects as go
import polars as pl

from fanin.reproduce._context import Context
from fanin.reproduce._jobs import Job, frame
from fanin.reproduce._registry import figure
from fanin.reproduce._rows import Findings, Row
from fanin.reproduce.pdn import BIN, PLAIN, RTO, STARTS, measure, shares
from fanin.reproduce.pdn_trimming import NDP, SMALL
from fanin.results import Result

TIMERS: Final = ("200ms", "10ms", "1ms", "200us")
"""RTO_min; the first is the paper's, the last what Vasudevan et al. ask for."""
SENDERS: Final[dict[str, dict[str, Any]]] = {
    "NewReno, resent by the window": {"transport.drop_resend": "window"},
    "CUBIC": {"transport.congestion_control": "cubic", "transport.sack": True},
    "DCTCP, 30 KB": {
        "transport.congestion_control": "dctcp",
        "transport.sack": True,
        "switch.marking": {"kind": "threshold", "k": "30KB"},
    },
    "DCTCP, S-ECN": {
        "transport.congestion_control": "dctcp",
        "transport.sack": True,
        "switch.marking": {"kind": "s_ecn"},
    },
}


def timer(rto: str) -> dict[str, Any]:
    """Return what makes all timers at least this long."""
    return {"transport.rto_min": rto, "transport.rto_initial": rto, "transport.clock_granularity": "1us"}


def both(context: Context, changes: dict[str, Any], servers: int, **key: Any) -> list[Job]:
    """Return the fan-in with and without notification."""
    changes = {"topology.left": servers, "traffic[0].receiver": f"h{servers}"} | changes
    base = context.scenario("fan-in").replace(changes)
    key = {"servers": servers} | key
    # Without notification there is nothing that this says how to send again.
    without = {name: value for name, value in changes.items() if name != "transport.drop_resend"}
    plain = context.scenario("fan-in").replace(without | PLAIN)
    return [
        Job(plain, context.seeds[0], key | {"variant": "plain"}),
        Job(base, context.seeds[0], key | {"variant": "PDN"}),
    ]


@figure(
    "pdn/timers",
    title="Beyond the paper: is PDN worth it with short timers, and with other congestion controls?",
    seeds=1,
    short=1,
    seconds=10,
)
def timers(context: Context) -> Findings:
    """With an RTO_min of 10 ms still; with one below the 2.4 ms that a full queue takes, little or not at all."""
    listed = []
    for servers in (100, 150):
        for rto in TIMERS:
            listed += both(context, timer(rto), servers, what=f"NewReno, RTO_min {rto}")
    for name, changes in SENDERS.items():
        listed += both(context, changes, 150, what=name)
    runs = context.runs(listed, measure)
    rows, records = [], []
    for job, plain, notified in zip(listed[::2], runs[::2], runs[1::2], strict=True):
        what, servers = str(job.key["what"]), plain.servers
        spurious = "1ms" in what or "200us" in what
        note = "a full queue takes 2.4 ms: such timers expire while nothing is lost, and their copies are dropped and notified too"
        rows.append(
            Row(
                name=f"{servers} servers, {what}: time with PDN over time without",
                paper=None,
                fanin=notified.seconds / plain.seconds,
                high=1,
                note=note if spurious else "",
            )
        )
        for run in (plain, notified):
            record = {"what": what, "servers": servers, "variant": run.variant, "completion_ms": run.seconds * 1e3}
            records.append(record | {"timeouts": run.timeouts, "drops": run.drops})
    return Findings(rows=rows, data={"runs": pl.DataFrame(records)})


OTHERS: Final[dict[str, dict[str, Any]]] = {
    "NewReno": {},
    "CUBIC": {"transport.congestion_control": "cubic"},
    "CUBIC with SACK": {"transport.congestion_control": "cubic", "transport.sack": True},
    "DCTCP": SENDERS["DCTCP, 30 KB"],
}
"""Kinds of flows 3 to 5."""
SILENT: Final[dict[str, Any]] = {"switch.mechanisms.pdn": None, "transports.notified.drop_notification": False}


@figure("pdn/neighbours", title="Beyond the paper: what PDN takes from others beside it", seeds=6, short=1, seconds=130)
def neighbours(context: Context) -> Findings:
    """Flows 1 and 2 get no more with notification than without, but for what seeds differ."""
    base = context.scenario("fairness")
    jobs = [
        Job(base.replace(changes | silence), seed, {"others": others, "told": notified})
        for others, changes in OTHERS.items()
        for notified, silence in (("with", {}), ("without", SILENT))
        for seed in context.seeds
    ]
    records = []
    for job, (points, _) in zip(jobs, context.runs(jobs, shares), strict=True):
        table = pl.DataFrame(points).filter(pl.col("time_s").is_between(STARTS[-1] + 1 - BIN / 2, STARTS[-1] + 2 - BIN / 2))
        for flow in range(len(STARTS)):
            rate = float(table.filter(pl.col("flow") == flow)["mbps"].sum()) * BIN
            records.append({**job.key, "seed": job.seed, "flow": flow + 1, "mbps": rate})
    rates = pl.DataFrame(records)
    first = rates.filter(pl.col("flow") <= 2).group_by("others", "told").agg(pl.col("mbps").mean())
    mean = {(row["others"], row["told"]): row["mbps"] for row in first.to_dicts()}
    rows = [
        Row(
            name=f"flows 1 and 2 beside three of {others}: mean with PDN over without",
            paper="fair",
            fanin=mean[others, "with"] / mean[others, "without"],
            high=1.2,  # as in fig10: "about"
        )
        for others in OTHERS
    ]
    return Findings(rows=rows, data={"rates": rates})


LOSSES: Final = (0.0, 1e-4, 1e-3, 0.01, 0.1, 1.0)
"""Probabilities that a notification is lost on a link. Each crosses one: the servers hang at the switch that drops."""


RESENDS: Final = ("at_once", "window")


def average(table: pl.DataFrame, by: list[str], values: list[str]) -> pl.DataFrame:
    """Return means over the seeds, in the order in which the groups came."""
    return table.group_by(by, maintain_order=True).agg(pl.col(values).mean())


def lossy(context: Context, servers: int, resend: str, loss: float) -> list[Job]:
    """Return the fan-in with notifications that get lost, for each seed."""
    network = {"topology.left": servers, "traffic[0].receiver": f"h{servers}", "switch.mechanisms.pdn.loss": loss}
    scenario = context.scenario("fan-in").replace(network | {"transport.drop_resend": resend})
    return context.each_seed(scenario, variant=resend, servers=servers, loss=loss)


@figure("pdn/lost", title="Beyond the paper: notifications that get lost", seeds=10, short=3, seconds=15)
def lost(context: Context) -> Findings:
    """A notification that is lost costs a timeout; copies that circulate need one for each round, so few losses suffice."""
    kinds = [(servers, resend, loss) for servers in (100, 150) for resend in RESENDS for loss in LOSSES]
    jobs = [job for kind in kinds for job in lossy(context, *kind)]
    table = pl.DataFrame(
        [
            {**job.key, "seed": run.seed, "completion_ms": run.seconds * 1e3, "timeouts": run.timeouts, "drops": run.drops}
            for job, run in zip(jobs, context.runs(jobs, measure), strict=True)
        ]
    )
    complete = table.filter(pl.col("loss") == 0)
    longest = {(row["servers"], row["variant"]): row["completion_ms"] for row in complete.to_dicts()}
    hundred = table.filter(pl.col("servers") == 100)
    few = hundred.filter(pl.col("variant") == "window", pl.col("loss") <= 1e-3)
    tenth = {
        resend: float(hundred.filter(pl.col("variant") == resend, pl.col("loss") == 0.1)["timeouts"].sum()) for resend in RESENDS
    }
    rows = [
        Row(name="none lost: timeouts", paper=0, fanin=float(complete["timeouts"].sum()), low=0, high=0),
        Row(
            name="100 servers, resent by the window, up to 0.1 % lost: timeouts",
            paper=None,
            fanin=float(few["timeouts"].sum()),
            low=0,
            high=0,
        ),
        Row(
            name="100 servers, 10 % lost: timeouts resent by the window over resent at once",
            paper=None,
            fanin=tenth["window"] / max(1, tenth["at_once"]),
            high=0.1,
        ),
    ]
    for servers in (100, 150):
        found = table.filter(pl.col("servers") == servers)
        # Whatever is lost, no server waits for a second timer: the time before the first, RTO_min, and all of it again.
        high = RTO * 1e3 + 2 * longest[servers, "at_once"]
        name = f"{servers} servers: longest of all runs"
        rows.append(Row(name=name, paper=None, fanin=max(found["completion_ms"].to_list()), high=high, unit="ms"))
    means = average(table, ["servers", "variant", "loss"], ["completion_ms", "timeouts", "drops"])
    plot = go.Figure()
    for (servers, resend), line in means.group_by("servers", "variant", maintain_order=True):
        x = [f"{100 * loss:g} %" for loss in line["loss"]]
        plot.add_scatter(x=x, y=line["completion_ms"].to_list(), mode="lines+markers", name=f"{servers} servers, {resend}")
    axes = {"xaxis_title": "Notifications lost", "yaxis_title": "Completion [ms], mean"}
    plot.update_layout(title="Completion of the fan-in", template="simple_white", **axes)
    plot.update_xaxes(type="category")
    return Findings(rows=rows, plots={"lost": plot}, data={"runs": table, "means": means})


FABRIC: Final[dict[str, dict[str, Any]]] = {
    "NewReno": {},
    "CUBIC": {"transport.congestion_control": "cubic"},
    "DCTCP": {"transport.congestion_control": "dctcp", "switch.marking": {"kind": "threshold", "k": "65 packets"}},
    "DCTCP, S-ECN": {"transport.congestion_control": "dctcp", "switch.marking": {"kind": "s_ecn", "k": "65 packets"}},
}
"""Senders in the fabric, all with SACK; K is DCTCP's for 10 Gb/s."""


REPAIRS: Final[dict[str, dict[str, Any]]] = {
    "RTO 200 ms": PLAIN,
    "RTO 10 ms": PLAIN | timer("10ms"),
    "RTO 200 us": PLAIN | timer("200us"),
    "PDN": {},
    "PDN, resent by the window": {"transport.drop_resend": "window"},
    "PDN, data only": {"switch.mechanisms.pdn.acks": False},
    "PDN, RTO 200 us": timer("200us"),
    "trimming": NDP,
    "trimming, 12 KB of headers": SMALL,
}
"""Ways to repair losses; RTO_min is 200 ms unless said."""


def fabric_run(result: Result, job: Job) -> dict[str, Any]:
    """Reduce a run of the fabric: times of queries, and of background flows by size; what was dropped and not notified."""
    milliseconds = (pl.col("finish_ps") - pl.col("start_ps")) / 1e9
    queries = result.queries.select(milliseconds.alias("ms"))["ms"]
    flows = result.flows.filter(pl.col("group") == "background").select("size_bytes", milliseconds.alias("ms"))
    summary = result.summary
    notices = summary["mechanisms"].get("notifications")
    longest = notices["largest_queue"] if notices else None
    return {
        "queries": len(queries),
        "query_p50_ms": queries.median(),
        "query_p99_ms": queries.quantile(0.99, "linear"),
        "query_max_ms": queries.max(),
        "small_mean_ms": flows.filter(pl.col("size_bytes") <= 100_000)["ms"].mean(),
        "large_mean_ms": flows.filter(pl.col("size_bytes") > 1_000_000)["ms"].mean(),
        "timeouts": summary["timeouts"],
        "drops": summary["drops"],
        "untold": summary["drops"] - notices["raised"] if notices else 0,
        "retransmits": result.flows["retransmits"].sum(),
        "empty_frames": notices["empty_frames"] if notices else 0,
        "notice_queue_bytes": longest["bytes"] if longest else 0,
    }


ACKS: Final = "acknowledgments that are dropped: the last one of a window is missed until RTO_min, unless it is notified too"
TIGHT: Final = "a full port holds 240 us of frames, which is longer than the timer: it expires while nothing is lost"
LINE: Final = "one sender's copies come one by one in the paper's network; here several senders of one incast are behind a port"


def fabric_rows(means: dict[tuple[str, str], dict[str, Any]]) -> list[Row]:
    """Return what can be said of each sender."""
    rows = []
    for sender in FABRIC:
        of = {repair: means[sender, repair] for repair in REPAIRS}
        full, partial = of["PDN"], of["PDN, data only"]
        zero: dict[str, Any] = {"paper": "no timeouts", "low": 0, "high": 0}
        rows.append(Row(name=f"{sender}, PDN: timeouts", fanin=full["timeouts"], **zero))
        rows.append(Row(name=f"{sender}, PDN for data only: timeouts", fanin=partial["timeouts"], **zero, note=ACKS))
        for rto in ("RTO 200 ms", "RTO 10 ms", "RTO 200 us"):
            name = f"{sender}, PDN over {rto} without: queries, 99th percentile"
            rows.append(Row(name=name, paper=None, fanin=full["query_p99_ms"] / of[rto]["query_p99_ms"], high=1))
        both = of["PDN, RTO 200 us"]["query_p99_ms"] / full["query_p99_ms"]
        name = f"{sender}, PDN and RTO 200 us over PDN: queries, 99th percentile"
        rows.append(Row(name=name, paper=None, fanin=both, high=1, note=TIGHT))
        name = f"{sender}, PDN over RTO 10 ms without: background flows over 1 MB, mean"
        cost = full["large_mean_ms"] / of["RTO 10 ms"]["large_mean_ms"]
        rows.append(Row(name=name, paper=None, fanin=cost, high=1.2))  # as in fig10: "about"
        rows.append(Row(name=f"{sender}, trimming: timeouts", paper=None, fanin=of["trimming"]["timeouts"], low=0, high=0))
    most = max(row["notice_queue_bytes"] for row in means.values())
    rows.append(Row(name="largest notification queue", paper=20, fanin=most, low=20, high=20, unit="B", note=LINE))
    return rows


@figure("pdn/fabric", title="Beyond the paper: a fat tree with web search and queries", seeds=3, short=1, seconds=600)
def fabric(context: Context) -> Findings:
    """Fan-in of 64 in three tiers, with other traffic on the way: timeouts of data and of acknowledgments, and what copies cost."""
    base = context.scenario("fabric")
    if context.short:
        base = base.replace({"traffic[0].stop": "2ms", "traffic[1].stop": "2ms"})
    jobs = [
        job
        for sender, changes in FABRIC.items()
        for repair, more in REPAIRS.items()
        for job in context.each_seed(base.replace(changes | more), sender=sender, repair=repair)
    ]
    table = frame(jobs, context.runs(jobs, fabric_run))
    values = [name for name in table.columns if name not in ("sender", "repair", "seed")]
    means = average(table, ["sender", "repair"], values)
    plot = go.Figure()
    for (sender,), line in means.reverse().group_by("sender", maintain_order=True):  # the first row on top
        plot.add_scatter(x=line["query_p99_ms"].to_list(), y=line["repair"].to_list(), mode="markers", name=str(sender))
    title = "Queries of 64 answers in a fat tree: 99th percentile"
    plot.update_layout(title=title, xaxis_title="Queries, 99th percentile [ms]", template="simple_white")
    plot.update_xaxes(type="log")
    rows = fabric_rows({(row["sender"], row["repair"]): row for row in means.to_dicts()})
    return Findings(rows=rows, plots={"fabric": plot}, data={"runs": table, "means": means})
