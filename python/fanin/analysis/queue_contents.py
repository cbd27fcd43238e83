"""Whose bytes stand in a queue: its content by flow, at each packet that arrives."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fanin.figures import series

if TYPE_CHECKING:
    import polars as pl


def by_flow(frame: pl.DataFrame, flows: Sequence[int | str], most: int) -> pl.DataFrame:
    """Return what stood in a FIFO queue when packets arrived, by flow.

    A queue of q bytes holds the last accepted packets that make q (docs/analysis-methods.md, Culprits), so what an arrival found is
    known from the arrivals before it. What stood there before the first one belongs to nobody known.

    Parameters
    ----------
    frame : polars.DataFrame
        All records of a stretch of time: ``time_ps``, ``queue_bytes``, ``frame_bytes``, ``flow``, ``dropped``, ``replaced``.
    flows : sequence of int or str
        Flows, as ``flow`` has them, with a column of their own.
    most : int
        Rows at most; of each part of the time then those with the smallest and the largest queue.

    Returns
    -------
    polars.DataFrame
        ``time_ps``, the bytes of each of `flows` in columns ``0``, ``1``, …, and of all others in ``rest``; their sum is the queue
        as the packet found it.
    """
    import polars as pl

    names = [str(index) for index in range(len(flows))] + ["rest"]
    known = frame.filter(pl.col("queue_bytes").is_not_null())
    rows = pl.DataFrame(list(_content(known, flows)), schema=dict.fromkeys(names, pl.UInt64()), orient="row")
    held = known.select("time_ps", level="queue_bytes").hstack(rows)
    if held.height > most:
        held = series.reduce_minmax(held.lazy(), "level", most // 2).collect()
    return held.drop("level")


def _content(frame: pl.DataFrame, flows: Sequence[int | str]) -> Iterator[list[int]]:
    places: dict[int | str, int] = {flow: index for index, flow in enumerate(flows)}
    rest = len(flows)
    standing: deque[tuple[int, int]] = deque()
    held, total = [0] * (rest + 1), 0
    columns = ("queue_bytes", "frame_bytes", "flow", "dropped", "replaced")
    for found, size, flow, dropped, replaced in frame.select(columns).iter_rows():
        while total > found:  # these have left
            place, waiting = standing.popleft()
            gone = min(waiting, total - found)
            held[place] -= gone
            total -= gone
            if gone < waiting:
                standing.appendleft((place, waiting - gone))
        if total < found:  # no record says whose these are
            standing.appendleft((rest, found - total))
            held[rest] += found - total
            total = found
        yield held.copy()
        place = places.get(flow, rest)
        if replaced and standing:  # the last packet has given it its place
            other, size = standing.pop()  # noqa: PLW2901 (the queue stays as long as it was)
            held[other] -= size
            total -= size
        elif dropped:
            continue
        standing.append((place, size))
        held[place] += size
        total += size
