"""Measured arrivals through a buffer of another size: what senders would have done then is not in it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Replay:
    """What became of measured arrivals at a port with a buffer.

    Attributes
    ----------
    buffer_bytes : int
        Room for what waits, as the trace counts frames.
    dropped : int
        Packets that found no room.
    peak_bytes : int
        Longest queue.
    """

    buffer_bytes: int
    dropped: int
    peak_bytes: int


def replay(records: pl.DataFrame, rate_bps: float, overhead: int, buffers: Sequence[int]) -> list[Replay]:
    """Send arrivals through drop-tail buffers, each on its own.

    The packet on the wire is not among those that wait, and one that finds the port idle needs no room, as `switch.buffer` has it.

    Parameters
    ----------
    records : polars.DataFrame
        Arrivals with ``time_ps`` and ``frame_bytes``, in order of time, whatever became of them.
    rate_bps : float
        Speed of the port on the wire [b/s].
    overhead : int
        Bytes of a frame on the wire beyond its length.
    buffers : sequence of int
        Rooms [bytes].
    """
    arrivals = list(zip(records["time_ps"].to_list(), records["frame_bytes"].to_list(), strict=True))
    return [_through(arrivals, 8e12 / rate_bps, overhead, room) for room in buffers]


def _through(arrivals: Sequence[tuple[int, int]], ps_per_byte: float, overhead: int, room: int) -> Replay:
    begins: deque[tuple[float, int]] = deque()  # when each waiting packet goes onto the wire, and its bytes
    free = 0.0
    waiting = dropped = peak = 0
    for now, frame in arrivals:
        while begins and begins[0][0] <= now:
            waiting -= begins.popleft()[1]
        peak = max(peak, waiting)
        if free <= now:
            free = now + (frame + overhead) * ps_per_byte
        elif waiting + frame > room:
            dropped += 1
        else:
            begins.append((free, frame))
            waiting += frame
            free += (frame + overhead) * ps_per_byte
    return Replay(room, dropped, peak)


def least_buffer(records: pl.DataFrame, rate_bps: float, overhead: int) -> int:
    """Return the smallest buffer that loses none of the arrivals: the longest queue of one without end."""
    (found,) = replay(records, rate_bps, overhead, [2**62])
    return found.peak_bytes + int(records["frame_bytes"].max() or 0)  # type: ignore[arg-type]
