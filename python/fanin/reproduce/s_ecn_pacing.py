"""S-ECN §III-D and §III-E: pacing (fig. 11) and segmentation offload (fig. 12) do not change how a burst grows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from fanin.reproduce import Context, Findings, Job, Row, figure
from fanin.reproduce._phases import SLOPE_CV, Judged, judge
from fanin.results import Result

if TYPE_CHECKING:
    from plotly.graph_objects import Figure as Plot

WATCHED: Final = "switch0->h39"
TESTBED: Final = "root->tor3"

PACINGS: Final[dict[str, Any]] = {
    "not paced": "none",
    "paced as in ns-2": {"kind": "fq", "slow_start_gain": 1.0, "gain": 1.0},
    "paced as Linux does": {"kind": "fq", "slow_start_gain": 2.0, "gain": 1.2},
}
SENDERS: Final = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 28, 32, 36, 39)
SENDERS_SHORT: Final = (2, 3, 4, 12, 24, 39)


@dataclass(frozen=True)
class Evolution:
    """A queue over time, and its phases."""

    judged: Judged
    time_us: list[float]
    queue_kb: list[float]
    jitter_kb: float


def evolution(result: Result, job: Job) -> Evolution:
    """Reduce a run to its phases; the first seed's to its curve as well."""
    port, until_us = str(job.key["port"]), float(job.key["until_us"])
    judged = judge(result, port, fan_in=str(job.key["fan_in"]), window=3)
    queue = (
        result.scan_queues()
        .filter(pl.col("port") == port, pl.col("time_ps") <= until_us * 1e6)
        .select(time_us=pl.col("time_ps") / 1e6, queue_kb=pl.col("queue_bytes") / 1000)
        .collect()
    )
    inside = queue.filter(pl.col("time_us").is_between(judged.start_ps / 1e6, judged.end_ps / 1e6))
    # What is left of the queue in phase 2 after its own straight line: jitter.
    ends = inside["queue_kb"][-1] - inside["queue_kb"][0], inside["time_us"][-1] - inside["time_us"][0]
    left = (inside["queue_kb"] - ends[0] / ends[1] * inside["time_us"]).std()
    shown = queue if job.seed == 1 else queue.clear()
    jitter = float(left) if isinstance(left, float) else 0.0
    return Evolution(judged, shown["time_us"].to_list(), shown["queue_kb"].to_list(), jitter)


def goodput(result: Result, job: Job) -> tuple[float, float]:
    """Return payload over the time of the query [Mb/s], and timeouts per flow."""
    (query,) = result.queries.rows(named=True)
    flows = result.flows
    return query["size_bytes"] * 8e6 / (query["finish_ps"] - query["start_ps"]), int(flows["timeouts"].sum()) / flows.height


def curves(found: dict[str, Sequence[Evolution]]) -> tuple[Plot, pl.DataFrame]:
    """Return the queue of the first seed of each variant, as a plot and as a frame."""
    from plotly.graph_objects import Figure as Plot

    plot = Plot()
    frames = []
    for name, runs in found.items():
        plot.add_scatter(x=runs[0].time_us, y=runs[0].queue_kb, name=name, mode="lines")
        frames.append(
            pl.DataFrame({"variant": [name] * len(runs[0].time_us), "time_us": runs[0].time_us, "queue_kb": runs[0].queue_kb})
        )
    plot.update_xaxes(title="Time [µs]")
    plot.update_yaxes(title="Queue [KB]", rangemode="tozero")
    return plot, pl.concat(frames)


def slopes(found: dict[str, Sequence[Evolution]]) -> pl.DataFrame:
    """Return the slopes of all runs."""
    return pl.DataFrame(
        {
            "variant": name,
            "seed": seed,
            "phase1_over_rate": run.judged.first_slope,
            "phase2_over_rate": run.judged.slope,
            "jitter_kb": run.jitter_kb,
            "peak_kb": run.judged.peak_bytes / 1000,
        }
        for name, runs in found.items()
        for seed, run in enumerate(runs, 1)
    )


def mean_slope(runs: Sequence[Evolution]) -> float:
    """Return the mean slope of phase 2 over R."""
    return fmean(run.judged.slope for run in runs)


@figure("s-ecn/fig11", title="Pacing: queue of 18 flows, incast of 1 to 39", seeds=20, short=4, seconds=120)
def fig11(context: Context) -> Findings:
    """Fig. 11: queue length evolution (left) and incast performance (right)."""
    from plotly.graph_objects import Figure as Plot

    base = context.scenario("pacing")
    variants = {name: base.replace({"transport.pacing": pacing}) for name, pacing in PACINGS.items()}
    jobs = [
        job
        for name, scenario in variants.items()
        for job in context.each_seed(scenario.replace(duration="2ms"), pacing=name, port=WATCHED, fan_in="incast", until_us=1500)
    ]
    reduced = iter(context.runs(jobs, evolution))
    found: dict[str, Sequence[Evolution]] = {name: [next(reduced) for _ in context.seeds] for name in variants}
    queue, queue_data = curves(found)

    plain, ns2, linux = (mean_slope(runs) for runs in found.values())
    rows = [
        Row(name="phase 2, not paced: slope", paper=1.0, fanin=plain, low=1 - 2 * SLOPE_CV, high=1 + 2 * SLOPE_CV, unit="R"),
        _same("phase 2, paced as in ns-2 over not paced: slope", "little effect", ns2 / plain),
        _same("phase 2, paced as Linux does over not paced: slope", None, linux / plain),
    ]

    senders = SENDERS_SHORT if context.short else SENDERS
    incast = [
        job
        for name, scenario in variants.items()
        for n in senders
        for job in context.each_seed(
            scenario.replace({"traffic[0].size": "64KB", "traffic[0].senders": [f"h0..h{n - 1}"], "telemetry.queues": []}),
            pacing=name,
            senders=n,
        )
    ]
    measured = pl.DataFrame(
        {
            "pacing": job.key["pacing"],
            "senders": job.key["senders"],
            "seed": job.seed,
            "goodput_mbps": rate,
            "timeouts_per_flow": late,
        }
        for job, (rate, late) in zip(incast, context.runs(incast, goodput), strict=True)
    )
    # Bytes of all seeds over their time: a mean of rates would let one query without a timeout outweigh ten with one.
    mean = measured.group_by("pacing", "senders", maintain_order=True).agg(
        goodput_mbps=pl.len() / (1 / pl.col("goodput_mbps")).sum(),
        collapsed=(pl.col("timeouts_per_flow") > 0).mean(),
        timeouts_per_flow=pl.col("timeouts_per_flow").mean(),
    )
    plot = Plot()
    for name in variants:
        line = mean.filter(pl.col("pacing") == name)
        plot.add_scatter(x=line["senders"], y=line["goodput_mbps"], name=name, mode="lines+markers")
    plot.update_xaxes(title="Senders")
    plot.update_yaxes(title="Goodput [Mb/s]", rangemode="tozero")

    rows += _incast_rows(mean)
    return Findings(
        rows=rows,
        plots={"fig11-queue": queue, "fig11-incast": plot},
        data={"queue": queue_data, "slopes": slopes(found), "incast": measured, "incast-mean": mean},
    )


def _same(name: str, paper: str | None, ratio: float, note: str = "") -> Row:
    """Bounds for the paper's words: a tenth more or less is "little effect" and "similar"."""
    return Row(name=name, paper=paper, fanin=ratio, low=0.9, high=1.1, note=note)


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else float("nan")


def _many(mean: pl.DataFrame) -> float:
    return _number(mean.filter(pl.col("senders") >= 24)["goodput_mbps"].mean())


def _incast_rows(mean: pl.DataFrame) -> list[Row]:
    """Compare the collapse with and without pacing: where it begins, how deep it is at the end, and what lies between."""
    plain, ns2, _ = (mean.filter(pl.col("pacing") == name).sort("senders") for name in PACINGS)
    onset, onset_ns2 = (_number(line.filter(pl.col("goodput_mbps") < 500)["senders"].min()) for line in (plain, ns2))
    gains = ns2["goodput_mbps"] / plain["goodput_mbps"]
    return [
        Row(name="incast, not paced: senders that bring goodput below 500 Mb/s", paper=None, fanin=onset, low=2, high=39),
        Row(name="incast, paced as in ns-2 less not paced: these senders", paper=0, fanin=onset_ns2 - onset, low=-1, high=1),
        _same(
            "incast, 24 senders and more: goodput paced as in ns-2 over not paced",
            "little effect",
            _many(ns2) / _many(plain),
        ),
        Row(
            name="incast, any number: largest gain by pacing as in ns-2",
            paper="little effect",
            fanin=_number(gains.max()),
            high=1.1,
            note="at 4 senders, where 14 of 20 queries wait for a timeout (200 ms) paced and 16 not paced: chance; from 10 to 20 "
            "senders more queries wait with pacing than without",
        ),
    ]


@figure("s-ecn/fig12", title="Segmentation offload (TSO): queue of 18 flows", seeds=100, short=3, seconds=60)
def fig12(context: Context) -> Findings:
    """Fig. 12: queue length evolution when TSO is turned on."""
    base = context.scenario("sync").replace(duration="8ms")
    variants = {"TSO off": base, "TSO on": base.replace({"transport.tso": True})}
    jobs = [
        job
        for name, scenario in variants.items()
        for job in context.each_seed(scenario, tso=name, port=TESTBED, fan_in="fan-in", until_us=6000)
    ]
    reduced = iter(context.runs(jobs, evolution))
    found: dict[str, Sequence[Evolution]] = {name: [next(reduced) for _ in context.seeds] for name in variants}
    plot, data = curves(found)
    table = slopes(found)
    off, on = (table.filter(pl.col("variant") == name) for name in variants)

    def mean(frame: pl.DataFrame, column: str) -> float:
        return _number(frame[column].mean())

    steeper = ((on["phase1_over_rate"] / on["phase2_over_rate"]) > 1).mean()
    rows = [
        _same(
            "phase 2, TSO on over TSO off: slope",
            "similar",
            mean(on, "phase2_over_rate") / mean(off, "phase2_over_rate"),
            "with TSO a sender waits until a third of its window is free (Linux, tcp_tso_win_divisor = 3): a part of the windows "
            "is not in flight, and the queue lacks what is not",
        ),
        Row(
            name="phase 2, TSO on: share of runs whose phase 1 is steeper",
            paper="two phases",
            fanin=_number(steeper),
            low=1,
            high=1,
        ),
        Row(
            name="phase 2, TSO on over TSO off: jitter around the slope",
            paper="> 1",
            fanin=mean(on, "jitter_kb") / mean(off, "jitter_kb"),
            low=1,
        ),
        _same("TSO on over TSO off: peak", "similar", mean(on, "peak_kb") / mean(off, "peak_kb")),
    ]
    return Findings(rows=rows, plots={"fig12": plot}, data={"queue": data, "slopes": table})
