"""S-ECN under web-search traffic: fig. 18 and 19 of Shan et al., ICNP 2018, §IV-D(3). Docs: docs/papers/s-ecn.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import plotly.graph_objects as go
import polars as pl

from fanin.reproduce import Context, Findings, Job, Row, figure
from fanin.reproduce.s_ecn_evaluation import chart, marked
from fanin.results import Result
from fanin.scenario import Scenario

LOADS: Final = (0.2, 0.3, 0.4, 0.5, 0.6)
POLICIES: Final = ("DCTCP", "S-ECN")
QUERIES: Final = 350_000
FLOWS: Final = 140_000
"""Number of flows in the paper, and here at each load."""
QUERY_BYTES: Final = 100_000
SHORTER: Final = 100
"""Factor by which the short form has fewer flows."""
MEAN_FLOW: Final = 1_711_250
"""Mean of the web-search distribution, workloads/README.md [B]."""
UPLINKS: Final = 4 * 125_000_000
"""Uplink capacity of all racks together, one direction [B/s]."""
LEAVES: Final = 9 / 11
"""Share of queries' and flows' bytes that leave a rack: nine of eleven other hosts are elsewhere."""


def mix(base: Scenario, load: float, queries: int, flows: int) -> Scenario:
    """Return fig. 18's scenario at a load of the racks' uplinks, with so many queries and background flows.

    Both kinds arrive in the proportion of the paper's counts, so both end at about the same time.
    """
    share = QUERIES * QUERY_BYTES / (QUERIES * QUERY_BYTES + FLOWS * MEAN_FLOW)
    total = load * UPLINKS / LEAVES
    rates = {"traffic[0].per_second": total * share / QUERY_BYTES, "traffic[1].per_second": total * (1 - share) / MEAN_FLOW}
    document = base.replace({**rates, "traffic[0].count": queries, "traffic[1].count": flows}).to_dict()
    del document["duration"]
    return Scenario(document)


def _times(column: pl.Expr) -> list[pl.Expr]:
    return [
        pl.len().alias("n"),
        column.mean().alias("mean_ms"),
        column.median().alias("median_ms"),
        column.quantile(0.99, "linear").alias("p99_ms"),
        column.quantile(0.999, "linear").alias("p999_ms"),
        column.max().alias("worst_ms"),
    ]


def completions(result: Result, job: Job) -> list[dict[str, Any]]:
    """Return completion times of queries and of background flows by size, and how many timed out."""
    took = ((pl.col("finish_ps") - pl.col("start_ps")) / 1e9).alias("ms")
    size = pl.col("size_bytes")
    kind = (
        pl.when(pl.col("group") == "queries")
        .then(pl.lit("response"))
        .when(size <= 100_000)
        .then(pl.lit("small"))
        .when(size <= 10_000_000)
        .then(pl.lit("medium"))
        .otherwise(pl.lit("large"))
        .alias("kind")
    )
    late = (pl.col("timeouts") > 0).mean().alias("timed_out")
    flows = (
        result.scan("flows")
        .select(kind, took, "timeouts", "retransmits")
        .group_by("kind")
        .agg(*_times(pl.col("ms")), late, pl.col("timeouts").sum(), pl.col("retransmits").sum())
        .collect()
    )
    queries = result.scan("queries").select(took).select(*_times(pl.col("ms"))).collect()
    facts = {"sim_s": result.manifest["sim_ps"] / 1e12, "hops": result.manifest["packet_hops"], "cpu_s": result.manifest["cpu_s"]}
    unfinished = result.summary["flows"]["total"] - result.summary["flows"]["complete"]
    rows = [{"kind": "query", **queries.row(0, named=True)}, *flows.sort("kind").iter_rows(named=True)]
    return [{**row, "unfinished": unfinished, "sim_s": facts["sim_s"], "packet_hops": facts["hops"]} for row in rows]


def _measure(context: Context) -> pl.DataFrame:
    base = context.scenario("fig18")
    scale = SHORTER if context.short else 1
    jobs = [
        job
        for load in reversed(LOADS)
        for policy in POLICIES
        for job in context.each_seed(mix(marked(base, policy), load, QUERIES // scale, FLOWS // scale), load=load, policy=policy)
    ]
    values: Sequence[list[dict[str, Any]]] = context.runs(jobs, completions)
    rows = [{**job.key, "seed": job.seed, **row} for job, found in zip(jobs, values, strict=True) for row in found]
    return pl.DataFrame(rows, infer_schema_length=None).sort("load", "policy", "kind", "seed")


def _reduction(frame: pl.DataFrame, kind: str, value: str) -> dict[float, float]:
    """Reduction of a value by S-ECN, by load [%]."""
    mean = frame.filter(pl.col("kind") == kind).group_by("load", "policy").agg(pl.col(value).mean())
    of = {(load, policy): number for load, policy, number in mean.iter_rows()}
    return {load: 100 * (1 - of[load, "S-ECN"] / of[load, "DCTCP"]) for load in LOADS}


def _plot(frame: pl.DataFrame, kind: str, value: str, title: str) -> go.Figure:
    part = (
        frame.filter(pl.col("kind") == kind).group_by("policy", "load", maintain_order=True).agg(pl.col(value).mean()).sort("load")
    )
    traces = [
        go.Scatter(x=line["load"].to_list(), y=line[value].to_list(), name=policy, mode="lines+markers")
        for policy in POLICIES
        for line in [part.filter(pl.col("policy") == policy)]
    ]
    return chart(traces, title, "load of the racks' uplinks", "completion time [ms]")


LOAD_NOTE: Final = (
    "the paper does not say what its load is of; here of the racks' uplinks, since of the hosts' links 0.4 fills the uplinks"
)
TIMEOUTS: Final = (
    "the gain is fewer timeouts, as the paper says; how many depends on what stands in the hosts' NICs "
    "(docs/dev/paper-s-ecn.md#timeouts-by-host): data column timed_out"
)
SLIGHTLY: Final = "the paper gives no number; at most 10 % is taken for slightly"


def _queries(asked: int, *, short: bool) -> Row:
    """Return whether there were as many queries as in the paper; the short form has a hundredth of its traffic, and says so."""
    least = QUERIES // SHORTER if short else QUERIES
    scaled = f", scaled to 1/{SHORTER}: > {least:,}" if short else ""
    return Row(name="queries at each load", paper=f"> {QUERIES:,}{scaled}", fanin=asked, low=least)


@figure("s-ecn/fig18", title="Query completion under web-search traffic", seeds=1, short=1, seconds=1050)
def fig18(context: Context) -> Findings:
    """Mean and 99th percentile of query completion by load."""
    frame = _measure(context)
    rows = []
    for value, name, paper, low, high in (("mean_ms", "mean", "12 … 27", 12, 27), ("p99_ms", "99th percentile", "6 … 62", 6, 62)):
        for load, cut in _reduction(frame, "query", value).items():
            rows.append(
                Row(
                    name=f"load {load}: {name} of queries shorter by",
                    paper=paper,
                    fanin=cut,
                    low=low,
                    high=high,
                    unit="%",
                    note=LOAD_NOTE,
                )
            )
    asked = frame.filter(pl.col("kind") == "query").select(pl.col("n").min().cast(pl.Int64)).item()
    rows.append(_queries(int(asked), short=context.short))
    plots = {
        "fig18a": _plot(frame, "query", "mean_ms", "Query completion, mean"),
        "fig18b": _plot(frame, "query", "p99_ms", "Query completion, 99th percentile"),
    }
    return Findings(rows=rows, plots=plots, data={"completion": frame})


SMALL: Final = {
    "mean_ms": {0.2: 5.1, 0.3: 20.0, 0.4: 20.0, 0.5: 20.0, 0.6: 82.5},
    "p99_ms": {0.2: 4.2, 0.3: 23.4, 0.4: 25.3, 0.5: 18.9, 0.6: 11.3},
}
"""Reduction of the paper's small flows' completion times by S-ECN, by load [%]."""


@figure("s-ecn/fig19", title="Completion of background flows under web-search traffic", seeds=1, short=1, seconds=1050)
def fig19(context: Context) -> Findings:
    """Mean and 99th percentile of small flows' completion, mean of large flows', by load."""
    frame = _measure(context)
    rows = []
    for value, name in (("mean_ms", "mean"), ("p99_ms", "99th percentile")):
        for load, cut in _reduction(frame, "small", value).items():
            paper = SMALL[value][load]
            rows.append(
                Row(
                    name=f"load {load}: {name} of flows up to 100 KB shorter by",
                    paper=paper,
                    fanin=cut,
                    low=paper - 5,
                    high=paper + 5,
                    unit="%",
                    note=TIMEOUTS,
                )
            )
    for load, cut in _reduction(frame, "large", "mean_ms").items():
        name = f"load {load}: mean of flows above 10 MB longer by"
        rows.append(Row(name=name, paper="slightly", fanin=-cut, low=0, high=10, unit="%", note=SLIGHTLY))
    plots = {
        "fig19a": _plot(frame, "small", "mean_ms", "Flows up to 100 KB, mean"),
        "fig19b": _plot(frame, "small", "p99_ms", "Flows up to 100 KB, 99th percentile"),
        "fig19c": _plot(frame, "large", "mean_ms", "Flows above 10 MB, mean"),
    }
    return Findings(rows=rows, plots=plots, data={"completion": frame})
