"""What a run at the port comes to, the same for a capture of the kernel and for a simulation, and how two runs differ.

Times are nanoseconds since the first data packet reached the port, sizes bytes of frames (Ethernet header and IP packet).
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["FIGURES", "QUANTILES", "Figure", "Outcome", "Trace", "Verdict", "judge", "matched", "outcome", "served"]

Array = npt.NDArray[np.int64]

POINTS = 30
"""Points of the queue that an outcome keeps before the first drop."""

QUANTILES = 20
"""Parts of the distribution of the queue after the first drop that an outcome keeps the borders of."""

EACH = 1_000_000
"""The queue is read each millisecond for its distribution."""

SLACK = 300_000
"""How far two CPUs' stamps of what they bring to the port may be from the order in which the port takes it."""

SMALL = 100
"""Frames below this carry no data."""


@dataclass(frozen=True)
class Trace:
    """A run at the port: frames that came, whether they were dropped, and when those that were not left; each in order of time."""

    came: Array
    frame: Array
    dropped: npt.NDArray[np.bool_]
    left: Array
    left_frame: Array

    def queue(self, at: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Bytes that wait at the times `at`."""
        kept = self.frame[~self.dropped]
        arrived = np.concatenate(([0], np.cumsum(kept)))[np.searchsorted(self.came[~self.dropped], at, "right")]
        gone = np.concatenate(([0], np.cumsum(self.left_frame)))[np.searchsorted(self.left, at, "right")]
        return np.asarray(arrived - gone)

    def peak(self) -> int:
        """Most bytes that wait at any time: just after an arrival."""
        return int(self.queue(self.came).max(initial=0))

    def busy_rate(self) -> float:
        """Rate at which frames leave while others wait [bit/s]."""
        waits = self.queue(self.left[:-1]) > 0
        return float(self.left_frame[1:][waits].sum() * 8e9 / np.diff(self.left)[waits].sum())

    def first_drop(self) -> int | None:
        """When the first frame was dropped."""
        at = self.came[self.dropped]
        return int(at[0]) if len(at) else None


def matched(before: npt.NDArray[Any], after: npt.NDArray[Any]) -> Trace:
    """The trace of captures before and behind a port, matched by source port and IP identification.

    Raises
    ------
    ValueError
        When something left that never came, or before it came, or the port did not keep the order of what it took. Frames that come
        within `SLACK` of each other may be captured in the other order: two CPUs bring them.
    """
    zero = before["ns"][before["payload"] > 0][0]

    def keys(packets: npt.NDArray[Any]) -> list[tuple[int, int, int]]:
        # An identification comes again after 65,536 packets of a flow: count how often it was seen.
        seen: dict[tuple[int, int], int] = {}
        out = []
        for port, ident in zip(packets["sport"].tolist(), packets["id"].tolist(), strict=True):
            n = seen[port, ident] = seen.get((port, ident), -1) + 1
            out.append((port, ident, n))
        return out

    # What came before the barrier are handshakes: SYN and ACK have no place in the experiment.
    before, after = before[before["ns"] >= zero], after[after["ns"] >= zero]
    outs = {k: n for n, k in enumerate(keys(after))}
    places = np.array([outs.pop(k, -1) for k in keys(before)])
    if outs:
        raise ValueError(f"{len(outs)} packets left the port that never came, the first is {next(iter(outs))}")
    kept = places >= 0
    came = before["ns"].astype(np.int64) - np.int64(zero)
    left = after["ns"].astype(np.int64) - np.int64(zero)
    sequence = came[kept][np.argsort(places[kept])]
    if (np.maximum.accumulate(sequence) - sequence > SLACK).any():
        raise ValueError("the port did not keep the order of packets")
    if (left[places[kept]] < came[kept] - SLACK).any():
        raise ValueError("a packet left the port before it came")
    ins, outs_at = np.argsort(came, kind="stable"), np.argsort(left, kind="stable")
    return Trace(
        came=came[ins],
        frame=before["frame"].astype(np.int64)[ins],
        dropped=~kept[ins],
        left=left[outs_at],
        left_frame=after["frame"].astype(np.int64)[outs_at],
    )


def served(came: Array, frame: Array, dropped: npt.NDArray[np.bool_], rate: int) -> Trace:
    """The trace of a FIFO port that sends at `rate` [bit/s] whenever it has something; a frame leaves with its first bit."""
    at, size = came[~dropped], frame[~dropped]
    takes = size * 8e9 / rate
    upto = np.cumsum(takes)
    # free[n] = max(at[n], free[n - 1]) + takes[n], without the loop
    free = upto + np.maximum.accumulate(at - (upto - takes))
    return Trace(came=came, frame=frame, dropped=dropped, left=np.rint(free - takes).astype(np.int64), left_frame=size)


@dataclass(frozen=True)
class Outcome:
    """What one run came to, small enough to keep.

    `before`: the queue each `step` until the first drop (or the end); `after`: borders of 20 equal parts of its distribution from
    then on to the last completion, read each millisecond. `starts`: first data packet of each flow [us].
    """

    drops: int
    first_drop_ms: float | None
    timeouts: int
    retransmits: int
    last_ms: float
    mean_ms: float
    peak: int
    step: int
    before: tuple[int, ...]
    after: tuple[int, ...]
    starts: tuple[int, ...]
    loop_us: float

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @staticmethod
    def of(values: dict[str, Any]) -> Outcome:
        """From JSON."""
        lists = {k: tuple(values[k]) for k in ("before", "after", "starts")}
        return Outcome(**{**values, **lists})


def outcome(
    trace: Trace, finished: Sequence[float], timeouts: int, retransmits: int, step: int, starts: Sequence[int], loop_us: float
) -> Outcome:
    """The outcome of a trace; `finished` are completion times, `loop_us` is the round trip of a SYN."""
    first = trace.first_drop()
    last = max(finished)
    until = last if first is None else first
    before = trace.queue(np.arange(0, int(until), step, dtype=np.int64)) if step else np.array([], dtype=np.int64)
    after = trace.queue(np.arange(first or 0, int(last), EACH, dtype=np.int64))
    data = trace.frame >= SMALL
    return Outcome(
        drops=int((trace.dropped & data).sum()),
        first_drop_ms=None if first is None else round(first / 1e6, 3),
        timeouts=timeouts,
        retransmits=retransmits,
        last_ms=round(last / 1e6, 3),
        mean_ms=round(statistics.fmean(finished) / 1e6, 3),
        peak=trace.peak(),
        step=step,
        before=tuple(before[: POINTS * 5 // 4].tolist()),
        after=tuple(np.quantile(after, np.linspace(0, 1, QUANTILES + 1)).round().astype(int).tolist()),
        starts=tuple(starts),
        loop_us=loop_us,
    )


def early(a: Outcome, b: Outcome) -> float:
    """RMS difference of the queues before the first drop of either [bytes]."""
    n = min(len(a.before), len(b.before))
    if n == 0:
        return 0.0
    d = np.array(a.before[:n], dtype=float) - np.array(b.before[:n], dtype=float)
    return float(np.sqrt((d**2).mean()))


def late(a: Outcome, b: Outcome) -> float:
    """Distance of the distributions of the queue after the first drop: mean difference of quantiles [bytes] (Wasserstein)."""
    return float(np.abs(np.array(a.after, dtype=float) - np.array(b.after, dtype=float)).mean())


@dataclass(frozen=True)
class Figure:
    """A figure that is compared: its value of one run, or the distance of two runs.

    `floor`: what the testbed itself is off by, below which no spread of runs counts; `relative`: the same as a share of the
    kernel's value.
    """

    name: str
    title: str
    unit: str
    digits: int
    floor: float
    relative: float = 0.0
    value: Callable[[Outcome], float | None] | None = None
    distance: Callable[[Outcome, Outcome], float] | None = None
    ratio: float | None = None
    """Judged by a factor instead: within so many times the kernel's range."""


FIGURES = (
    Figure("drops", "drops", "", 0, floor=2, relative=0.01, value=lambda o: o.drops),
    Figure("first", "first drop", "ms", 1, floor=0.5, relative=0.005, value=lambda o: o.first_drop_ms),
    Figure("timeouts", "timeouts", "", 0, floor=1, value=lambda o: o.timeouts, ratio=1.5),
    Figure("last", "last completion", "ms", 0, floor=1, relative=0.005, value=lambda o: o.last_ms),
    Figure("mean", "mean completion", "ms", 0, floor=1, relative=0.005, value=lambda o: o.mean_ms),
    Figure("peak", "peak queue", "KB", 0, floor=3.1, value=lambda o: o.peak / 1e3),
    Figure("early", "queue before the first drop, RMS difference", "KB", 1, floor=6, distance=lambda a, b: early(a, b) / 1e3),
    Figure("late", "queue after it, distance of distributions", "KB", 1, floor=3.1, distance=lambda a, b: late(a, b) / 1e3),
)
"""HTB lets a frame of credit through at the start, and the capture is 0.3 to 1.2 KB off: two frames, 3.1 KB. In slow start that
frame puts the kernel up to four ahead: 6 KB, or 0.5 ms at 100 Mb/s."""


@dataclass(frozen=True)
class Verdict:
    """A figure of the kernel's runs and of Fanin, and how far the second is from the first.

    `off` is 1 at the edge of the kernel's own spread, 2 at the edge of twice that (1.5 times the range for timeouts is 2 as well).
    """

    figure: Figure
    low: float | None
    high: float | None
    fanin: float | None
    off: float

    @property
    def word(self) -> str:
        """The verdict in a word."""
        if self.off <= 1:
            return "within"
        if self.off <= 2:
            return f"within {self.figure.ratio} times" if self.figure.ratio else "within twice"
        return "off"


def judge(kernel: Sequence[Outcome], fanin: Sequence[Outcome]) -> list[Verdict]:
    """All figures: Fanin's median, since a run of either is one draw of a chaotic system, against the kernel's range."""
    out = []
    for figure in FIGURES:
        if figure.distance:
            spread = [figure.distance(a, b) for a, b in itertools.combinations(kernel, 2)]
            low, high = min(spread, default=0.0), max(spread, default=0.0)
            value = statistics.median(figure.distance(a, b) for a, b in zip(kernel, fanin, strict=True))
            out.append(Verdict(figure, low, high, value, value / max(high, figure.floor)))
            continue
        assert figure.value
        those = [figure.value(o) for o in kernel]
        mine = [figure.value(o) for o in fanin]
        if None in those or None in mine:
            out.append(missing(figure, those, mine))
            continue
        numbers = [v for v in those if v is not None]
        low, high = min(numbers), max(numbers)
        value = statistics.median(v for v in mine if v is not None)
        if figure.ratio:
            off = by_ratio(low, high, value, figure)
        else:
            centre, half = (low + high) / 2, max((high - low) / 2, figure.floor, figure.relative * high)
            off = abs(value - centre) / half
        out.append(Verdict(figure, low, high, value, off))
    return out


def missing(figure: Figure, those: Sequence[float | None], mine: Sequence[float | None]) -> Verdict:
    """A figure that some runs have none of, as the first drop of a run without drops."""
    numbers = [v for v in those if v is not None]
    own = [v for v in mine if v is not None]
    low, high = (min(numbers), max(numbers)) if numbers else (None, None)
    most_kernel, most_fanin = len(numbers) * 2 > len(those), len(own) * 2 > len(mine)
    value = statistics.median(own) if most_fanin else None
    if most_kernel != most_fanin:
        return Verdict(figure, low, high, value, math.inf)
    if value is None or low is None or high is None:
        return Verdict(figure, low, high, value, 0.0)
    half = max((high - low) / 2, figure.floor, figure.relative * high)
    return Verdict(figure, low, high, value, abs(value - (low + high) / 2) / half)


def by_ratio(low: float, high: float, value: float, figure: Figure) -> float:
    """0 to 1 within the range (or the floor from it), to 2 within `ratio` times it, above that in proportion."""
    assert figure.ratio
    if low - figure.floor <= value <= high + figure.floor:
        return 1.0
    if value > high:
        return 1 + max(value / max(high, figure.floor) - 1, 0) / (figure.ratio - 1)
    return 1 + (max(low, figure.floor) / max(value, figure.floor / 2) - 1) / (figure.ratio - 1)
