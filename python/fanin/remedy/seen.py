"""What a trace shows of a port, and the view through which a simulated port is held against it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from fanin.text import show

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

BOUND: Final = 1.25
"""Ratio of a simulated number to the measured one, either way round, up to which a model gives it back."""

FEW_DROPS: Final = 10
"""Drops more or less that say little."""

_SMALL: Final = 128
"""Frames up to this size bring no data, or so little that it does not count [bytes]."""

_FRAME: Final = 1518
"""Bytes of a full frame, by which a longest queue may be off besides."""

LONGEST: Final = 500_000
"""Samples from the first that is not empty to the last, beyond which a burst is not modelled."""

_MOST_SAMPLES: Final = 2 * LONGEST
"""Samples up to which a simulated port is looked at."""

Kind = Literal["packets", "samples", "largest", "behind"]
"""How a trace shows a queue: at each packet; at moments; the largest between two moments; not at all, for it was taken behind."""


@dataclass(frozen=True)
class Seen:
    """What happened at a port, as one view shows it.

    Attributes
    ----------
    peak_bytes : float or None
        Longest queue that shows, as the trace counts frames [bytes].
    dropped : int or None
        Packets dropped; of a capture behind the port: segments that came again for the first time.
    above_ps : int or None
        Time for which the queue was above the threshold of bursts [ps].
    lasted_ps : int or None
        From the first that shows to the last [ps].
    silent_ps : int or None
        Longest time without a packet between them [ps].
    """

    peak_bytes: float | None
    dropped: int | None
    above_ps: int | None
    lasted_ps: int | None
    silent_ps: int | None = None

    def _pairs(self, other: Seen, slack_ps: int) -> list[tuple[str, float, float, Callable[[float], str], float]]:
        """Return name, own number, the other's, how it is shown, and what it may be off by besides."""

        def counted(value: float) -> str:
            return f"{value:,.0f}"

        listed: list[tuple[str, float | None, float | None, Callable[[float], str], float]] = [
            ("longest queue", self.peak_bytes, other.peak_bytes, show.size, _FRAME),
            ("drops", self.dropped, other.dropped, counted, FEW_DROPS),
            ("time above the threshold", self.above_ps, other.above_ps, show.duration, slack_ps),
            ("time to the last data", self.lasted_ps, other.lasted_ps, show.duration, slack_ps),
            ("longest silence", self.silent_ps, other.silent_ps, show.duration, max(slack_ps, (self.lasted_ps or 0) // 20)),
        ]
        return [(name, own, its, text, off) for name, own, its, text, off in listed if own is not None and its is not None]

    def missed(self, other: Seen, slack_ps: int = 0) -> list[str]:
        """Return in words what of another one is not within the bounds of this."""
        return [
            f"{name} ({text(its)} for {text(own)})"
            for name, own, its, text, off in self._pairs(other, slack_ps)
            if max(own, its) > BOUND * min(own, its) and abs(own - its) > off
        ]

    def distance(self, other: Seen, slack_ps: int = 0) -> float:
        """Return how far another one is off: the largest ratio beyond what it may be off by; 1 is at the bounds."""
        worst = 0.0
        for _, own, its, _, off in self._pairs(other, slack_ps):
            low, high = min(own, its), max(own, its)
            if high - low > off:
                worst = max(worst, (high / max(low, 1.0) - 1) / (BOUND - 1))
        return worst

    def cells(self) -> list[str]:
        """Return the numbers as cells of a table."""
        return [
            show.NOTHING if self.peak_bytes is None else show.size(self.peak_bytes),
            show.NOTHING if self.dropped is None else f"{self.dropped:,}",
            show.NOTHING if self.above_ps is None else show.duration(self.above_ps),
            show.NOTHING if self.lasted_ps is None else show.duration(self.lasted_ps),
        ]


@dataclass(frozen=True)
class View:
    """How a trace shows a queue, so that a simulated one can be looked at in the same way.

    Attributes
    ----------
    kind : str
        At each packet, at moments, the largest between them, or from behind.
    above_bytes : float
        Threshold of bursts, as the trace counts frames.
    scale : float
        Bytes of a frame in the simulator over its bytes in the trace.
    every_ps : int
        Time between two samples; 0 where each packet shows.
    knows_drops : bool
        Whether the trace tells what was dropped.
    """

    kind: Kind
    above_bytes: float
    scale: float = 1.0
    every_ps: int = 0
    knows_drops: bool = True

    @property
    def slack_ps(self) -> int:
        """What a time may be off by because of samples [ps]."""
        return 2 * self.every_ps

    def of_port(self, records: pl.DataFrame, rate_bps: float, phase: float = 0.0) -> Seen:
        """Return what this view shows of a simulated port.

        Parameters
        ----------
        records : polars.DataFrame
            Rows of ``queues.parquet``, of one port.
        rate_bps : float
            Speed of the port [b/s].
        phase : float
            Where between two samples the run begins, a share.
        """
        import polars as pl

        records = records.with_columns(pl.col("queue_bytes") / self.scale, pl.col("frame_bytes") / self.scale)
        if self.kind == "packets":
            return packets(records, rate_bps / self.scale, self.above_bytes, drops=self.knows_drops)
        times, queue = sampled(records, rate_bps / self.scale, self.every_ps, phase, largest=self.kind == "largest")
        dropped = int(records["dropped"].sum()) if self.knows_drops else None
        return samples(times, queue, dropped, self)


def packets(records: pl.DataFrame, rate_bps: float, above_bytes: float, *, drops: bool = True) -> Seen:
    """Return what records of each packet show: the time above the threshold counts until the queue has drained to it."""
    import numpy as np

    times = records["time_ps"].to_numpy().astype(np.int64)
    if not len(times):
        return Seen(0.0, 0 if drops else None, 0, 0, 0)
    queue = records["queue_bytes"].to_numpy().astype(np.float64)
    lost = records["dropped"].fill_null(value=False).to_numpy()
    after = queue + np.where(lost, 0.0, records["frame_bytes"].to_numpy())
    gaps = np.diff(times, append=times[-1] + np.int64(10**15))
    drains = np.maximum(after - above_bytes, 0.0) * 8e12 / rate_bps
    above = np.minimum(gaps, drains)
    data = times[records["frame_bytes"].to_numpy() > _SMALL]
    if not len(data):
        data = times
    return Seen(
        float(queue.max()),
        int(lost.sum()) if drops else None,
        int(above.sum()),
        int(data[-1] - data[0]),
        int(np.diff(data).max()) if len(data) > 1 else 0,
    )


def sampled(
    records: pl.DataFrame, rate_bps: float, every_ps: int, phase: float, *, largest: bool
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the queue of a simulated port at moments, or the largest since the moment before."""
    import numpy as np

    times = records["time_ps"].to_numpy().astype(np.int64)
    lost = records["dropped"].to_numpy()
    after = records["queue_bytes"].to_numpy() + np.where(lost, 0.0, records["frame_bytes"].to_numpy())
    drain_ps = int(float(after.max(initial=0.0)) * 8e12 / rate_bps)
    until = int(times[-1]) + drain_ps + 2 * every_ps if len(times) else every_ps
    # No model that lasts so much longer than what was measured is near it: its later samples decide nothing.
    until = min(until, _MOST_SAMPLES * every_ps)
    moments = np.arange(round(phase * every_ps), until, every_ps, dtype=np.int64)
    at = np.searchsorted(times, moments, side="right") - 1
    held = np.zeros(len(moments))
    known = at >= 0
    passed = (moments[known] - times[at[known]]) * rate_bps / 8e12
    held[known] = np.maximum(after[at[known]] - passed, 0.0)
    if largest and len(times):
        most = np.zeros(len(moments))
        np.maximum.at(most, np.minimum(np.searchsorted(moments, times), len(moments) - 1), after)
        held = np.maximum(held, most)
    return moments, held


def samples(times: NDArray[np.int64], queue: NDArray[np.float64], dropped: int | None, view: View) -> Seen:
    """Return what samples of a queue show: times are those between samples that are not empty."""
    import numpy as np

    waits = np.flatnonzero(queue > 0)
    lasted = int(times[waits[-1]] - times[waits[0]]) if len(waits) else 0
    above = int((queue > view.above_bytes).sum()) * view.every_ps
    # Between a full queue and the next there is the silence of timeouts.
    silent = int(np.diff(times[waits]).max()) if len(waits) > 1 else 0
    return Seen(float(queue.max(initial=0.0)), dropped, above, lasted, silent)


def behind(records: pl.DataFrame, told: Mapping[str, Any] | None) -> Seen:
    """Return what a capture behind a port shows: what came again for the first time, as transfers tell, and when."""
    import polars as pl

    times = records.filter(pl.col("frame_bytes") > _SMALL)["time_ps"].cast(pl.Int64).sort()
    again = None if told is None else int(told["lost_before"])
    if not len(times):
        return Seen(None, again, None, 0, 0)
    return Seen(None, again, None, int(str(times[-1])) - int(str(times[0])), int(str(times.diff().max() or 0)))
