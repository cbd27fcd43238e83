"""What the figures of S-ECN §III have in common: the watched port, one run as a ramp of the queue, plots in the paper's manner."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, pstdev
from typing import Any, Final

import plotly.graph_objects as go
import polars as pl

from fanin import figures
from fanin.analysis import analyze
from fanin.reproduce._jobs import Job
from fanin.reproduce._rows import Row
from fanin.results import Result

PORT: Final = "root->tor3"
"""The port that the paper watches: of the root, towards the rack of Host 10."""

FAN_IN: Final = "fan-in"
"""The traffic entry of Host 10's queries, in all scenarios."""

FRAME: Final = 1518
WIRE: Final = 1538
RATE: Final = 1.0 * FRAME / WIRE
"""Speed of the port in frame bytes, which a queue counts [Gb/s]: 1 Gb/s on the wire, less preamble and gap, 20 B of 1538."""

SPREAD: Final = 2 * (0.641 - 0.613) / 0.622
"""Half width of the band around a mean slope of which the paper gives no spread, relative: twice the range of the three means
that it calls similar (fig. 9)."""

NEARLY: Final = 0.95
"""Part of the largest queue before the first drop up to which slopes are taken: where the buffer is full there is none."""

WATCH: Final = "3036B"
"""A burst begins with two full frames waiting: the first phase is wanted from its beginning."""


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A stretch of constant slope, as `fanin.analyze` finds it: times [ms] since the first packet, slope [Gb/s], queue [KB]."""

    start: float
    end: float
    slope: float
    start_kb: float
    end_kb: float


@dataclass(frozen=True, kw_only=True)
class Ramp:
    """One run at the watched port, from the first packet of a response (time 0, in ms) until the buffer is nearly full.

    Attributes
    ----------
    phases : tuple of Phase
        What `fanin.analyze` finds.
    second : int or None
        Phase 2 begins with this one: the first that lies mostly after the first rounds of all fan-in flows.
    law, holds, bound, first_rate
        The law that applies, whether it held (None: cannot be said), its bound and the arrival rate of the first round [Gb/s].
    first_round : float
        When the last packet of any flow's first round came.
    standing : float
        Queue that the first packet found [KB].
    hidden : float
        Queue at the same moment at the previous hop, where that is watched too [KB].
    full : float
        When the buffer was nearly full.
    """

    seed: int
    key: dict[str, Any]
    phases: tuple[Phase, ...]
    second: int | None
    law: int | None
    holds: bool | None
    bound: float
    first_rate: float
    first_round: float
    standing: float
    hidden: float
    full: float

    @property
    def first_phase(self) -> float:
        """Slope of phase 1: of all phases before `second` [Gb/s]."""
        return slope(self.phases[: self.second]) if self.second else math.nan

    @property
    def first_end(self) -> float:
        """End of phase 1 [ms]."""
        return self.phases[self.second].start if self.second else math.nan

    @property
    def second_phase(self) -> float:
        """Slope of phase 2: from `second` on until the buffer is full [Gb/s]."""
        return slope(self.phases[self.second :]) if self.second is not None else math.nan


@dataclass(frozen=True, kw_only=True)
class Steps:
    """One run with a standing queue: `phases` holds the stretches of each of the first three rounds that was complete in time."""

    seed: int
    key: dict[str, Any]
    phases: tuple[tuple[Phase, ...], ...]
    standing: float

    def slope(self, number: int) -> float:
        """Return the slope of phase 1, 2 or 3 [Gb/s]; NaN where the buffer was full before its round was complete."""
        return slope(self.phases[number - 1]) if len(self.phases) >= number else math.nan


def slope(phases: Iterable[Phase]) -> float:
    """Return the mean slope of consecutive phases, weighted by time [Gb/s]; NaN of none."""
    listed = [phase for phase in phases if phase.end > phase.start]
    time = sum(phase.end - phase.start for phase in listed)
    return sum(phase.slope * (phase.end - phase.start) for phase in listed) / time if listed else math.nan


def _arrivals(result: Result) -> tuple[pl.DataFrame, pl.DataFrame, int]:
    """Return the packets at the watched port, the full segments of responses among them, and when the first of these came [ps]."""
    packets = result.queues.filter(pl.col("port") == PORT).sort("time_ps", maintain_order=True)
    flows = result.flows.filter(pl.col("group") == FAN_IN)["flow"]
    own = packets.filter(pl.col("flow").is_in(flows.implode()) & (pl.col("frame_bytes") == FRAME))
    if own.is_empty():
        raise ValueError(f"no packet of {FAN_IN} came to {PORT}")
    return packets, own, int(own["time_ps"][0])


def _ms(ps: float, origin: int) -> float:
    return (ps - origin) / 1e9


def _phases(burst: dict[str, Any], first: int) -> tuple[Phase, ...]:
    return tuple(
        Phase(
            start=_ms(phase["start_ps"], first),
            end=_ms(phase["end_ps"], first),
            slope=phase["slope_bps"] / 1e9,
            start_kb=phase["start_bytes"] / 1e3,
            end_kb=phase["end_bytes"] / 1e3,
        )
        for phase in burst["phases"]
    )


def _burst(result: Result, start: int, end: int) -> dict[str, Any]:
    """Return the highest burst of the watched port in a part of the run [ps], as `fanin.analyze` reports it."""
    analysis = analyze(result, port=PORT, above=WATCH, until="0B", start=f"{start}ps", stop=f"{end}ps")
    found: list[dict[str, Any]] = analysis.document["ports"][0]["bursts"]
    if not found:
        raise ValueError(f"{PORT} has no burst")
    return max(found, key=lambda burst: int(burst["peak_bytes"]))


def _second(phases: Sequence[Phase], first_round: float) -> int | None:
    """Return the first phase that lies mostly after the first rounds of all fan-in flows; never the first one of all."""
    later = (i for i, phase in enumerate(phases) if i and 2 * (phase.end - max(first_round, phase.start)) > phase.end - phase.start)
    return next(later, None)


def _until(result: Result) -> int:
    """Return when the buffer is nearly full: up to then slopes are taken [ps]."""
    packets, _, first = _arrivals(result)
    later = packets.filter(pl.col("time_ps") >= first)
    drops = later.filter(pl.col("dropped"))["time_ps"]
    before = later.filter(pl.col("time_ps") < drops[0]) if len(drops) else later
    queues = before["queue_bytes"].to_list()
    return int(before["time_ps"][next(i for i, queue in enumerate(queues) if queue >= NEARLY * max(queues))])


def ramp(result: Result, job: Job) -> Ramp:
    """Return what one run says of the watched queue."""
    _, own, first = _arrivals(result)
    until = _until(result)
    elsewhere = result.queues.filter((pl.col("port") != PORT) & (pl.col("time_ps") <= first)).sort("time_ps")
    burst = _burst(result, first, until)
    law = burst["law"] or {}
    phases = _phases(burst, first)
    firsts = rounds(result).filter(pl.col("round") == 1)["end_ms"].to_list()
    return Ramp(
        seed=job.seed,
        key=dict(job.key),
        phases=phases,
        second=_second(phases, max(firsts)),
        law=law.get("law"),
        holds=law.get("holds"),
        bound=law.get("bound_bps", math.nan) / 1e9,
        first_rate=(law.get("first_round_bps") or math.nan) / 1e9,
        first_round=max(firsts),
        standing=own["queue_bytes"][0] / 1e3,
        hidden=elsewhere["queue_bytes"][-1] / 1e3 if len(elsewhere) else 0.0,
        full=_ms(until, first),
    )


def numbered(result: Result) -> pl.DataFrame:
    """Return the full segments of fan-in flows that came before the first drop among them, each with its ``round`` and ``time_ms``.

    In slow start round r has 3 · 2^(r−1) packets, so that packet n (from 0) belongs to round ⌊log2(n/3 + 1)⌋ + 1.
    """
    _, own, first = _arrivals(result)
    drops = own.filter(pl.col("dropped"))["time_ps"]
    whole = own.filter(pl.col("time_ps") < drops[0]) if len(drops) else own
    number = pl.int_range(pl.len()).over("flow")
    return whole.select(
        "flow",
        "time_ps",
        round=((number / 3 + 1).log(2) + 1e-9).floor().cast(pl.Int64) + 1,
        time_ms=(pl.col("time_ps").cast(pl.Float64) - first) / 1e9,
    )


def rounds(result: Result) -> pl.DataFrame:
    """Return when the first and the last packet of each complete round of each fan-in flow came."""
    times = (pl.col(f"time_{unit}").min().alias(f"start_{unit}") for unit in ("ps", "ms"))
    ends = (pl.col(f"time_{unit}").max().alias(f"end_{unit}") for unit in ("ps", "ms"))
    found = numbered(result).group_by("flow", "round").agg(*times, *ends, packets=pl.len())
    return found.filter(pl.col("packets") == 3 * 2 ** (pl.col("round") - 1)).sort("flow", "round")


def steps(result: Result, job: Job) -> Steps:
    """Return the phases of fig. 9: what `fanin.analyze` finds while the first, second and third rounds arrive."""
    _, own, first = _arrivals(result)
    flows = own["flow"].n_unique()
    found = []
    for _, part in rounds(result).filter(pl.col("round") <= 3).group_by("round", maintain_order=True):
        if part["flow"].n_unique() == flows:
            found.append(_phases(_burst(result, min(part["start_ps"].to_list()), max(part["end_ps"].to_list())), first))
    return Steps(seed=job.seed, key=dict(job.key), phases=tuple(found), standing=own["queue_bytes"][0] / 1e3)


def halves(result: Result, job: Job) -> Steps:
    """Return the phases of fig. 7, whose starts are so far apart that they blend: before and after the end of the first rounds."""
    _, own, first = _arrivals(result)
    end = max(rounds(result).filter(pl.col("round") == 1)["end_ps"].to_list())
    parts = (_phases(_burst(result, start, stop), first) for start, stop in ((first, end), (end, _until(result))))
    return Steps(seed=job.seed, key=dict(job.key), phases=tuple(parts), standing=own["queue_bytes"][0] / 1e3)


def trace(result: Result, job: Job) -> pl.DataFrame:
    """Return the queue that each packet found: ``time_ms`` since the first of a response, ``queue_kb``, ``flow``, ``dropped``."""
    packets, _, first = _arrivals(result)
    lead = 300_000_000  # 0.3 ms of what was before
    near = packets.filter(pl.col("time_ps") >= max(0, first - lead))
    time = (pl.col("time_ps").cast(pl.Float64) - first) / 1e9
    return near.select(time_ms=time, queue_kb=pl.col("queue_bytes") / 1e3, flow="flow", dropped="dropped")


def ramps_frame(ramps: Iterable[Ramp]) -> pl.DataFrame:
    """Return a row for each run: what distinguishes it from the others, then times [ms], slopes [Gb/s], queues [KB]."""
    return pl.DataFrame(
        [
            found.key
            | {
                "seed": found.seed,
                "phase1_gbps": found.first_phase,
                "phase1_end_ms": found.first_end,
                "phase2_gbps": found.second_phase,
                "first_round_end_ms": found.first_round,
                "buffer_full_ms": found.full,
                "standing_kb": found.standing,
                "hidden_kb": found.hidden,
                "law": found.law,
                "holds": found.holds,
                "bound_gbps": found.bound,
                "first_round_gbps": found.first_rate,
            }
            for found in ramps
        ],
        infer_schema_length=None,
    )


def phases_frame(ramps: Iterable[Ramp]) -> pl.DataFrame:
    """Return a row for each phase of each run."""
    return pl.DataFrame(
        [
            found.key
            | {"seed": found.seed, "phase": index, "start_ms": phase.start, "end_ms": phase.end, "slope_gbps": phase.slope}
            | {"start_kb": phase.start_kb, "end_kb": phase.end_kb}
            for found in ramps
            for index, phase in enumerate(found.phases, 1)
        ],
        infer_schema_length=None,
    )


def steps_frame(runs: Iterable[Steps]) -> pl.DataFrame:
    """Return a row for each run: slopes of its phases [Gb/s], queue before them [KB]."""
    listed = list(runs)
    return pl.DataFrame(
        [
            found.key
            | {"seed": found.seed, "standing_kb": found.standing}
            | {f"phase{number}_gbps": found.slope(number) for number in range(1, 1 + max(len(run.phases) for run in listed))}
            for found in listed
        ],
        infer_schema_length=None,
    )


def mean(values: Iterable[float]) -> float:
    """Return the mean of the numbers among `values`; NaN without any."""
    known = [value for value in values if math.isfinite(value)]
    return fmean(known) if known else math.nan


def variation(values: Iterable[float]) -> float:
    """Return the coefficient of variation of the numbers among `values`."""
    known = [value for value in values if math.isfinite(value)]
    return pstdev(known) / fmean(known) if known else math.nan


def unless_ok(row: Row, note: str) -> Row:
    """Return the row with the reason why it is outside its bounds, if it is."""
    return row if row.ok else replace(row, note=note)


def layout(plot: go.Figure, x: str, y: str, title: str) -> go.Figure:
    plot.update_layout(
        template=figures.template(),
        title={"text": title},
        xaxis={"title": {"text": x}},
        yaxis={"title": {"text": y}, "rangemode": "tozero"},
        height=420,
    )
    return plot


def evolution(queue: pl.DataFrame, phases: Iterable[Phase], title: str, *, until: float = math.inf) -> go.Figure:
    """Return the queue over time, and the phases that were found, as lines over it."""
    shown = queue.filter(pl.col("time_ms") <= until)
    plot = go.Figure(
        go.Scatter(x=shown["time_ms"].to_numpy(), y=shown["queue_kb"].to_numpy(), mode="lines", name="queue", line={"width": 1.5})
    )
    listed = list(phases)
    x = [value for phase in listed for value in (phase.start, phase.end, math.nan)]
    y = [value for phase in listed for value in (phase.start_kb, phase.end_kb, math.nan)]
    plot.add_scatter(x=x, y=y, mode="lines", name="phases", line={"width": 2, "dash": "dash"})
    return layout(plot, "Time since the first packet of a response [ms]", "Queue [KB]", title)


def cdf(curves: Sequence[tuple[str, Sequence[float]]], title: str) -> go.Figure:
    """Return distributions of slopes: a step for each run."""
    plot = go.Figure()
    for name, values in curves:
        known = sorted(value for value in values if math.isfinite(value))
        if known:
            x = [known[0], *known]
            y = [index / len(known) for index in range(len(known) + 1)]
            plot.add_scatter(x=x, y=y, mode="lines", name=name, line={"shape": "hv", "width": 2})
    return layout(plot, "Slope of the queue [Gb/s of frame bytes]", "Fraction of runs", title)
