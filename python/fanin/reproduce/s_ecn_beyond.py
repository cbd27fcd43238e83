"""S-ECN beyond its paper: other rates, fabrics, transports and parameters. Docs: docs/papers/s-ecn.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import plotly.graph_objects as go
import polars as pl

from fanin.reproduce import Context, Findings, Job, Row, figure
from fanin.reproduce.s_ecn_evaluation import chart, delivered
from fanin.results import Result
from fanin.scenario import Scenario

RATES: Final[Mapping[int, dict[str, str]]] = {
    10: {"k": "30KB", "buffer": "12MB"},
    40: {"k": "120KB", "buffer": "12MB"},
    100: {"k": "300KB", "buffer": "24MB"},
    400: {"k": "1200KB", "buffer": "64MB"},
}
"""Rate of hosts [Gb/s] → K, 30 KB for each 10 Gb/s (HPCC §5.1), and about what chips of that generation share among their ports."""

FIRST_WINDOWS: Final = "500 first windows are 7.6 MB, all on their way before a mark can come back"
UNEVEN: Final = "packets of several inputs that meet look like growth: up to a third of all is marked; see nine frames"

S_ECN: Final = "S-ECN"
NINE: Final = "S-ECN, nine frames"
"""With a credit of nine full frames instead of one."""
DCTCP: Final = "DCTCP"


def policies(rate: int) -> dict[str, dict[str, Any]]:
    """Return the marking policies that are compared at a rate."""
    k = RATES[rate]["k"]
    slope = {"kind": "s_ecn", "k": k}
    nine = slope | {"form": {"kind": "registers", "credit": f"{9 * 1538}B"}}
    found: dict[str, dict[str, Any]] = {DCTCP: {"kind": "threshold", "k": k}, S_ECN: slope, NINE: nine}
    if rate == 400:
        # A full frame takes four clocks of 8 ns there.
        found["S-ECN, 1 ns clock"] = slope | {"form": {"kind": "registers", "clock": "1ns"}}
    return found


def fabric(base: Scenario, rate: int, marking: Mapping[str, Any]) -> Scenario:
    """Return the scenario at a rate of the hosts' links; uplinks are twice as fast."""
    return base.replace(
        {
            "topology.host_link.rate": f"{rate}Gbps",
            "topology.uplink.rate": f"{2 * rate}Gbps",
            "switch.buffer.total": RATES[rate]["buffer"],
            "switch.marking": dict(marking),
        }
    )


def read(base: Scenario, rate: int) -> Scenario:
    """Sixteen hosts send to one for four milliseconds."""
    size = rate * 1_000_000_000 // 8 * 4 // 1000 // 16
    entry = {"name": "read", "kind": "incast", "receiver": "h0", "count": 16, "size": f"{size}B", "jitter": "20us"}
    return base.replace({"traffic": [entry]})


def mix(base: Scenario, flows: int) -> Scenario:
    """Web-search flows at 60 % of the hosts' links, and queries to 20 hosts at 5 %, on 32 hosts."""
    small = {"topology.leaves": 4, "topology.hosts_per_leaf": 8, "topology.spines": 4}
    # 5 % in queries of 160 KB against 60 % in flows of 1.711 MB.
    queries = round(flows * 1_711_250 * 5 / 60 / 160_000)
    traffic = [
        {"name": "background", "kind": "poisson", "sizes": "web-search", "load": 0.6, "count": flows},
        {"name": "queries", "kind": "query", "fanout": 20, "total": "160KB", "request": "50B", "load": 0.05, "count": queries},
    ]
    return base.replace({**small, "traffic": traffic})


def outcome(result: Result, job: Job) -> dict[str, Any]:
    """Return the largest queue, goodput, completion times, drops, timeouts, marks."""
    took = ((pl.col("finish_ps") - pl.col("start_ps")) / 1e6).alias("us")
    flows = result.scan("flows").select("group", "size_bytes", "start_ps", "finish_ps", took).collect()
    background = flows.filter(pl.col("group") == "background")
    small = background.filter(pl.col("size_bytes") <= 100_000)["us"]
    large = background.filter(pl.col("size_bytes") > 10_000_000)
    asked = result.scan("queries").select(took).collect()["us"]
    summary = result.summary
    return {
        "peak_kb": summary["largest_queue"]["bytes"] / 1000,
        "goodput_gbps": delivered(result) / 1e9,
        "query_mean_us": asked.mean(),
        "query_p99_us": asked.quantile(0.99),
        "small_mean_us": small.mean(),
        "small_p99_us": small.quantile(0.99),
        "large_mean_us": large["us"].mean(),
        "drops": summary["drops"],
        "timeouts": summary["timeouts"],
        "marks_by_slope": summary["marks_by_reason"].get("slope", 0),
        "marks_by_k": summary["marks_by_reason"].get("threshold", 0),
        "packets": summary["packets_sent"],
    }


def _table(jobs: Sequence[Job], values: Sequence[Mapping[str, Any]], *by: str) -> pl.DataFrame:
    frame = pl.DataFrame(
        [{**job.key, "seed": job.seed, **value} for job, value in zip(jobs, values, strict=True)], infer_schema_length=None
    )
    numbers = [name for name in frame.columns if name not in (*by, "seed")]
    return frame.group_by(*by, maintain_order=True).agg(pl.col(numbers).mean())


def _against(table: pl.DataFrame, what: str, value: str) -> list[go.Scatter]:
    """Return a line for each form of S-ECN: a value by rate, DCTCP's being 100 %."""
    part = table.filter(pl.col("what") == what)
    base = part.filter(pl.col("policy") == DCTCP)[value]
    parts = [(name, part.filter(pl.col("policy") == name)) for name in (S_ECN, NINE)]
    return [
        go.Scatter(x=[str(rate) for rate in RATES], y=(100 * line[value] / base).to_list(), name=name, mode="lines+markers")
        for name, line in parts
    ]


@figure(
    "s-ecn/rates",
    title="S-ECN from 10 to 400 Gb/s: reads, 500-to-1 incast, web search on a leaf-spine",
    seeds=5,
    short=1,
    seconds=400,
)
def rates(context: Context) -> Findings:
    """DCTCP and S-ECN at four rates in three situations."""
    base = context.scenario("beyond")
    flows = 1000 if context.short else 3000
    jobs = [
        job
        for rate in RATES
        for name, marking in policies(rate).items()
        for what, scenario in (("read", read(base, rate)), ("incast", base), ("mix", mix(base, flows)))
        for job in context.each_seed(fabric(scenario, rate, marking), what=what, rate=rate, policy=name)
    ]
    table = _table(jobs, context.runs(jobs, outcome), "what", "rate", "policy")
    at = {(row["what"], row["rate"], row["policy"]): row for row in table.iter_rows(named=True)}

    def change(what: str, rate: int, value: str, policy: str = S_ECN) -> float:
        return 100 * float(at[what, rate, policy][value] / at[what, rate, DCTCP][value] - 1)

    claims = (
        ("16 to 1: peak queue", "read", "peak_kb", "lower", None, 0),
        ("16 to 1: goodput", "read", "goodput_gbps", "no loss", -1, 1),
        ("500 to 1: completion", "incast", "query_mean_us", "shorter", None, 0),
        ("web search: mean of queries", "mix", "query_mean_us", "shorter", None, 0),
        ("web search: mean of flows above 10 MB", "mix", "large_mean_us", "slightly longer", 0, 10),
    )
    notes = {"query_mean_us in incast": FIRST_WINDOWS, "large_mean_us in mix": UNEVEN, "goodput_gbps in read": UNEVEN}
    rows = [
        Row(
            name=f"{rate} Gb/s, {name}, against DCTCP",
            paper=paper,
            fanin=change(what, rate, value),
            low=low,
            high=high,
            unit="%",
            note=notes.get(f"{value} in {what}", ""),
        )
        for rate in RATES
        for name, what, value, paper, low, high in claims
    ]
    for rate in RATES:
        name = f"{rate} Gb/s, web search, credit of nine frames"
        longer = 100 * float(at["mix", rate, NINE]["large_mean_us"] / at["mix", rate, S_ECN]["large_mean_us"] - 1)
        shorter = change("mix", rate, "query_mean_us", NINE)
        rows += [
            Row(name=f"{name}: mean of queries, against DCTCP", paper=None, fanin=shorter, high=0, unit="%"),
            Row(name=f"{name}: mean of flows above 10 MB, against one frame", paper=None, fanin=longer, high=0, unit="%"),
        ]
    shown = (
        ("rates-peak", "read", "peak_kb", "Peak queue, 16 to 1"),
        ("rates-queries", "mix", "query_mean_us", "Queries under web search, mean"),
        ("rates-large", "mix", "large_mean_us", "Flows above 10 MB under web search, mean"),
    )
    plots = {
        name: chart(_against(table, what, value), title, "Gb/s", "% of DCTCP", xaxis={"type": "category"})
        for name, what, value, title in shown
    }
    return Findings(rows=rows, plots=plots, data={"rates": table})


def _registers(**changes: str) -> dict[str, Any]:
    return {"kind": "s_ecn", "k": "32KB", "form": {"kind": "registers", **changes}}


SETTINGS: Final[Mapping[str, dict[str, Any]]] = {
    "DCTCP": {"kind": "threshold", "k": "32KB"},
    "S-ECN": {"kind": "s_ecn", "k": "32KB"},
    "by chance": {"kind": "s_ecn", "k": "32KB", "form": "probability"},
    "credit 0": _registers(credit="0B"),
    "credit 3076": _registers(credit="3076B"),
    "credit 9 × 1538": _registers(credit="13842B"),
    "credit 65535": _registers(credit="65535B"),
    "a mark resets the sum": _registers(after_mark="reset"),
    "clock 1 ns": _registers(clock="1ns"),
    "clock 20 ns": _registers(clock="20ns"),
}
"""Marking at 1 Gb/s: the credit is what the sum remembers of time that was not used."""

CREDITS: Final[Mapping[str, str]] = {
    "0": "credit 0",
    "1": "S-ECN",
    "2": "credit 3076",
    "9": "credit 9 × 1538",
    "42.6": "credit 65535",
}
"""Credit in full frames → its name in `SETTINGS`."""

_CONTROL: Final = "transport.congestion_control"
CONDITIONS: Final[Mapping[str, dict[str, Any]]] = {
    "full frames": {},
    "sizes mixed": {},
    "two flows": {},
    "two flows, TSO": {"transport.tso": True},
    "ACKs every 50 µs": {
        "transport.ack_every": 64,
        "transport.delayed_acks": "fixed",
        "transport.quick_acks": 0,
        "transport.delayed_ack_timeout": "50us",
    },
    "NewReno, classic ECN": {_CONTROL: "newreno", "transport.ecn": True},
    "CUBIC, classic ECN": {_CONTROL: "cubic", "transport.ecn": True},
}
"""Causes of uneven arrivals: segments of three sizes, segments sent in bursts, ACKs that come in batches."""

MIXED: Final = {"small": 536, "medium": 976}
"""Segments of a third of the hosts each [B of payload]."""


def uneven(base: Scenario, condition: str) -> Scenario:
    """Return fig. 14's scenario under a condition, with a long flow from every host."""
    scenario = base.replace(CONDITIONS[condition])
    entry = {**base.to_dict()["traffic"][0], "size": "20MB"}
    del entry["total"]
    if condition.startswith("two flows"):
        return scenario.replace({"traffic": [{**entry, "senders": ["h0", "h3"]}]})
    if condition != "sizes mixed":
        return scenario.replace({"traffic": [entry]})
    transports = {name: {**base.to_dict()["transport"], "mss": mss} for name, mss in MIXED.items()}
    # One host of each rack sends full segments, one medium, one small ones.
    parts = {"full": (0, 3, 6), "medium": (1, 4, 7), "small": (2, 5, 8)}
    entries = [
        {**entry, "name": name, "senders": [f"h{host}" for host in hosts], **({"transport": name} if name in MIXED else {})}
        for name, hosts in parts.items()
    ]
    return scenario.replace({"transports": transports, "traffic": entries})


def held(result: Result, job: Job) -> dict[str, Any]:
    """Return the largest queue, its mean over packets, goodput, and the share of packets marked by the slope."""
    seen = result.scan("queues").select("queue_bytes", "time_ps").collect()
    late = seen.filter(pl.col("time_ps") > 20_000_000_000)["queue_bytes"]
    flows, marks = result.flows, result.summary["marks_by_reason"]
    return {
        "peak_kb": int(seen["queue_bytes"].max()) / 1000,  # type: ignore[arg-type]
        "mean_kb": float(late.mean()) / 1000,  # type: ignore[arg-type]
        "empty_share": float((late == 0).mean()),  # type: ignore[arg-type]
        "wire_share": _wire_share(result),
        "by_slope_share": marks.get("slope", 0) / max(1, result.summary["packets_sent"]),
        "reductions_per_flow": flows["ecn_reductions"].mean(),
    }


def _wire_share(result: Result) -> float:
    """Share of the watched link that was used while all flows were active: wire bytes between 20 and 80 ms."""
    window = result.scan("queues").filter(pl.col("time_ps").is_between(20_000_000_000, 80_000_000_000, closed="left"))
    total = window.select((pl.col("frame_bytes").cast(pl.Int64) + 20).sum()).collect().item()
    return float(total) * 8 / 0.06 / 1e9


@figure("s-ecn/sensitivity", title="S-ECN's sum against packet sizes, bursts and transports", seeds=10, short=1, seconds=60)
def sensitivity(context: Context) -> Findings:
    """Nine or two long flows over 1 Gb/s, by setting of the registers and by what makes arrivals uneven."""
    base = context.scenario("fig14").replace({"duration": "80ms"})
    jobs = [
        job
        for condition in CONDITIONS
        for name, marking in SETTINGS.items()
        for job in context.each_seed(
            uneven(base, condition).replace({"switch.marking": marking}), condition=condition, setting=name
        )
    ]
    table = _table(jobs, context.runs(jobs, held), "condition", "setting")
    at = {(row["condition"], row["setting"]): row for row in table.iter_rows(named=True)}
    rows = []
    for condition in CONDITIONS:
        rows += [
            Row(name=f"{condition}: peak, S-ECN against DCTCP", paper="lower",
                fanin=100 * (at[condition, "S-ECN"]["peak_kb"] / at[condition, "DCTCP"]["peak_kb"] - 1), high=0, unit="%"),
            Row(name=f"{condition}: use of the link with S-ECN", paper="no loss",
                fanin=100 * at[condition, "S-ECN"]["wire_share"], low=99, high=101, unit="%"),
        ]  # fmt: skip
    plots = {}
    for value, scale, title in (("by_slope_share", 100, "Marked by the slope [%]"), ("peak_kb", 1, "Peak queue [KB]")):
        traces = [
            go.Scatter(
                x=list(CREDITS),
                y=[scale * at[condition, name][value] for name in CREDITS.values()],
                name=condition,
                mode="lines+markers",
            )
            for condition in CONDITIONS
        ]
        axis = {"type": "category"}
        plots[f"sensitivity-{'marks' if value == 'by_slope_share' else 'peak'}"] = chart(
            traces, title, "credit [full frames]", title, xaxis=axis
        )
    return Findings(rows=rows, plots=plots, data={"sensitivity": table})
