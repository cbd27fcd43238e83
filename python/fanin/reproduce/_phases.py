"""Phase 2 of a burst whose first round is known, by `fanin.analyze`, as numbers that figures compare."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from fanin.analysis import analyze
from fanin.results import Result

FULL_FRAME: Final = 1518
"""Frame of a full segment [bytes], as queues count it."""
FULL_WIRE: Final = 1538
"""Wire bytes of a full frame, with preamble and gap."""
SLOPE_CV: Final = 0.018
"""Coefficient of variation of the paper's slopes (§III-B, 18 flows)."""
NEARLY: Final = 0.95
"""Part of the largest queue before the first drop up to which slopes are taken: where the buffer is full there is none."""


@dataclass(frozen=True, kw_only=True)
class Judged:
    """Slopes and rates over R, the port's speed in frame bytes.

    Attributes
    ----------
    slope : float
        Of the queue in phase 2: mean of what the analysis finds there, weighted by time.
    first_slope : float
        Mean slope of phase 1: from the first packet of the fan-in to the start of phase 2.
    arrival : float
        a: arrival rate of the fan-in flows' first round.
    start_ps, end_ps : int
        Phase 2: from when the first round is there and the second begins.
    start_bytes : float
        Queue at its start.
    peak_bytes : int
        Largest queue that a packet found.
    """

    slope: float
    first_slope: float
    arrival: float
    start_ps: int
    end_ps: int
    start_bytes: float
    peak_bytes: int

    @property
    def bound(self) -> float:
        """2aR/(a + R), over R."""
        return 2 * self.arrival / (self.arrival + 1)


def judge(result: Result, port: str, *, fan_in: str, window: int, rounds: int | None = None) -> Judged:
    """Return phase 2 of the fan-in at a port.

    Parameters
    ----------
    result : Result
        A run that watched the port.
    port : str
        Its name.
    fan_in : str
        Name of the traffic entry.
    window : int
        First window [segments]: separates the first round from what follows.
    rounds : int, optional
        Phase 2 ends when the packets of so many rounds are there; if not given, when the buffer is nearly full.

    Raises
    ------
    LookupError
        The analysis finds no phase there.
    """
    packets = result.queues.filter(pl.col("port") == port)
    flows = result.flows.filter(pl.col("group") == fan_in)["flow"]
    own = packets.filter(pl.col("flow").is_in(flows.implode()), pl.col("frame_bytes") == FULL_FRAME).with_columns(
        nth=pl.col("flow").cum_count().over("flow")
    )
    first = own.filter(pl.col("nth") <= window)["time_ps"]
    start = max(int(first[-1]), int(own.filter(pl.col("nth") > window)["time_ps"][0]))
    end = _nearly_full(packets.filter(pl.col("time_ps") >= first[0]))
    if rounds is not None:
        end = min(end, int(own.filter(pl.col("nth") <= window * (2**rounds - 1))["time_ps"][-1]))
    rate, found = _rate(result, port), float(own["queue_bytes"][0])
    phases = _highest(result, port, start=f"{start}ps", stop=f"{end}ps")["phases"]
    span = sum(phase["end_ps"] - phase["start_ps"] for phase in phases)
    if not span:
        raise LookupError(f"{port}: the analysis finds no phase between {start} and {end} ps")
    slope = sum(phase["slope_bps"] * (phase["end_ps"] - phase["start_ps"]) for phase in phases) / span
    took_ps = int(first[-1]) - int(first[0])
    return Judged(
        slope=slope / rate,
        first_slope=(phases[0]["start_bytes"] - found) * 8e12 / (start - int(first[0])) / rate,
        arrival=(len(first) - 1) * FULL_FRAME * 8e12 / took_ps / rate if took_ps else math.inf,
        start_ps=start,
        end_ps=end,
        start_bytes=phases[0]["start_bytes"],
        peak_bytes=int(packets["queue_bytes"].to_numpy().max()),
    )


def _rate(result: Result, port: str) -> float:
    """Return R: what the port drains while full frames wait [bit/s of frame bytes]."""
    (watched,) = (entry for entry in result.manifest["watched"] if entry["port"] == port)
    return float(watched["rate_bps"]) * FULL_FRAME / FULL_WIRE


def _nearly_full(packets: pl.DataFrame) -> int:
    """Return when the queue first reaches nearly its largest before a drop [ps]."""
    drops = packets.filter(pl.col("dropped"))["time_ps"]
    before = packets.filter(pl.col("time_ps") < drops[0]) if len(drops) else packets
    full = NEARLY * float(before["queue_bytes"].to_numpy().max()) if len(drops) else math.inf
    reached = before.filter(pl.col("queue_bytes") >= full)["time_ps"]
    return int(reached[0]) if len(reached) else int(before["time_ps"][-1])


def _highest(result: Result, port: str, *, start: str, stop: str) -> dict[str, Any]:
    """Return the highest burst of a part of the run, from two full frames on."""
    document = analyze(result, port=port, above=f"{2 * FULL_FRAME}B", until="0B", start=start, stop=stop).document
    found: list[dict[str, Any]] = document["ports"][0]["bursts"]
    if not found:
        raise LookupError(f"{port}: the analysis finds no burst between {start} and {stop}")
    return max(found, key=lambda burst: int(burst["peak_bytes"]))
