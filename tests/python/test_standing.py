"""Whose bytes stand in a queue: against a queue that is simulated packet by packet, and against the culprits of the analysis."""

from __future__ import annotations

import random
from collections import Counter, deque
from pathlib import Path

import polars as pl
import pytest

import fanin
from fake_result import PORT, write_result
from fanin.analysis import queue_contents


def simulated(arrivals: int, seed: int) -> tuple[pl.DataFrame, list[Counter[int]]]:
    """A FIFO port that drops what does not fit, and at times replaces its last packet: what arrivals found, and whose it was."""
    rng = random.Random(seed)
    queue: deque[tuple[int, int]] = deque()
    rows, content = [], []
    for time in range(arrivals):
        for _ in range(rng.choice((0, 1, 1, 2))):
            if queue:
                queue.popleft()
        held: Counter[int] = Counter()
        for flow, size in queue:
            held[flow] += size
        content.append(held)
        flow, size = rng.randrange(9), rng.choice((64, 576, 1518))
        kind = "replaced" if queue and rng.random() < 0.05 else "dropped" if len(queue) >= 20 else "queued"
        row = {"time_ps": time, "queue_bytes": held.total(), "frame_bytes": size, "flow": flow}
        rows.append(row | {name: kind == name for name in ("dropped", "replaced")})
        if kind == "replaced":
            queue[-1] = (flow, queue[-1][1])
        elif kind == "queued":
            queue.append((flow, size))
    types = {"time_ps": pl.UInt64(), "queue_bytes": pl.UInt64(), "frame_bytes": pl.UInt32(), "flow": pl.UInt32()}
    return pl.DataFrame(rows, schema_overrides=types), content


@pytest.mark.parametrize("seed", range(5))
def test_the_content_is_that_of_the_queue(seed: int) -> None:
    frame, content = simulated(3000, seed)
    held = queue_contents.by_flow(frame, [4, 0, 7], 10_000)
    assert held.columns == ["time_ps", "0", "1", "2", "rest"]
    for row, true in zip(held.iter_rows(named=True), content, strict=True):
        rest = sum(size for flow, size in true.items() if flow not in (4, 0, 7))
        assert (row["0"], row["1"], row["2"], row["rest"]) == (true[4], true[0], true[7], rest)
    few = queue_contents.by_flow(frame, [4, 0, 7], 40)
    assert few.height <= 40
    assert few.join(held, on=held.columns, how="semi").height == few.height


def test_what_stood_there_before_belongs_to_the_rest() -> None:
    frame, content = simulated(2000, 1)
    full = max(range(len(content)), key=lambda index: content[index].total())
    held = queue_contents.by_flow(frame[full:], [4, 0, 7], 10_000)
    first = held.row(0, named=True)
    assert (first["rest"], first["0"] + first["1"] + first["2"]) == (content[full].total(), 0)
    empty = next(index for index in range(full, len(content)) if not content[index])
    last = held.row(-1, named=True)
    assert empty < len(content) - 1
    assert [last["0"], last["1"], last["2"]] == [content[-1][flow] for flow in (4, 0, 7)]


def test_a_trace_without_records_or_queue_has_none() -> None:
    frame, _ = simulated(50, 2)
    assert queue_contents.by_flow(frame.head(0), [1], 100).height == 0
    unknown = frame.with_columns(queue_bytes=pl.lit(None, pl.UInt64))
    assert queue_contents.by_flow(unknown, [1], 100).height == 0


def test_the_bands_of_a_burst_are_its_culprits(tmp_path: Path) -> None:
    out = write_result(tmp_path / "out", bursts=4, senders=32, each=14, limit=120)
    analysis = fanin.analyze(out)
    for burst in analysis.port(PORT)["bursts"]:
        bands = [trace for trace in analysis.plot(PORT, burst["index"]).data if trace.stackgroup]
        top = burst["direct"][:5]
        assert [band.name for band in bands] == [
            *(f"{entry['name']} ({entry['share']:.1%})" for entry in top),
            "all other flows",
        ]
        sums = [sum(levels) for levels in zip(*(band.y for band in bands), strict=True)]
        at = max(range(len(sums)), key=sums.__getitem__)
        assert sums[at] == pytest.approx(burst["peak_bytes"] / 1e3)
        assert [band.y[at] for band in bands[:-1]] == pytest.approx([entry["bytes"] / 1e3 for entry in top])
