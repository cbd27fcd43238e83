"""The harness against a Tofino's data: how the queue is counted, and a few rows. All rows: ``make hardware-test``."""

from __future__ import annotations

import sys
from collections import deque
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import fanin

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "hardware"))

import against_tofino  # type: ignore[import-not-found]
import tofino  # type: ignore[import-not-found]


def row(algorithm: str, flows: int, cells: int) -> tofino.Row:
    return next(r for r in tofino.rows() if (r.algorithm, r.flows, r.cells) == (algorithm, flows, cells))


def test_packets_read_as_cells_rounded_up_to_the_mtu() -> None:
    assert [float(tofino.reading(n)) for n in (1, 75, 76, 133, 213)] == [2, 76, 78, 135, 216]


def test_the_data_are_complete_and_the_limits_are_in_packets() -> None:
    rows = tofino.rows()
    assert len(rows) == 145
    assert {(r.algorithm, r.flows) for r in rows} == {(a, n) for a in ("reno", "cubic") for n in (1, 4, 16, 64)}
    assert max(r.readings[-1] for r in rows) <= tofino.reading(tofino.TRAFFIC_MANAGER)
    assert (row("cubic", 1, 250).limit, row("reno", 4, 15000).limit) == (3, 132)
    for r in rows:
        # The queue there never exceeded the limit by more than bursts come in while one packet is sent.
        assert r.readings[2] <= tofino.reading(min(r.limit, tofino.TRAFFIC_MANAGER)) + 1


def test_what_is_missed_is_said() -> None:
    outcomes = [tofino.Outcome(r, r.readings, 1000, 0, 1.0) for r in tofino.rows()]
    perfect = against_tofino.figures(outcomes)
    assert perfect["busy"] == 1.0
    assert perfect["p50"] == perfect["mean p01"] == 0.0
    assert against_tofino.bars(outcomes)[1] == []
    wrong = [tofino.Outcome(o.row, tuple(x + 50 for x in o.readings), 1000, 0, 1.0) for o in outcomes]
    _, missed = against_tofino.bars(wrong)
    assert [line.split(":")[0] for line in missed] == [
        "always busy right",
        "median error of p50, reno",
        "median error of p50, cubic",
        "median error of p95, all",
        "median error of p99, all",
    ]


def departures(queues: pl.DataFrame, limit: int) -> list[tuple[int, int]]:
    """Time of each departure, drops at the head included, and the queue then with the packet, by a queue of our own."""
    packet_ps = 800
    waiting: deque[tuple[int, bool]] = deque()
    free, found = 0, []

    def send(now: int) -> None:
        nonlocal free
        while waiting and free <= now:
            depth = len(waiting)
            frame, dropped = waiting.popleft()
            assert dropped == (depth >= limit)
            found.append((free, depth))
            free += 0 if dropped else (frame + 20) * packet_ps

    for time, frame, dropped, packets in queues.select("time_ps", "frame_bytes", "dropped", "queue_packets").iter_rows():
        send(time)
        assert packets == len(waiting)
        if dropped and packets >= tofino.TRAFFIC_MANAGER:
            continue
        waiting.append((frame, dropped))
        free = max(free, time)
        if free == time:
            send(time)
    return found


@pytest.mark.parametrize("which", [("cubic", 4, 1500), ("reno", 16, 15000)])
def test_counting_at_arrivals_is_counting_at_departures(which: tuple[str, int, int], tmp_path: Path) -> None:
    chosen = row(*which)
    result = fanin.run(tofino.scenario(chosen, tmp_path), tmp_path / "out", progress=False)
    third = tofino.RUN_MS * 10**9 // 3
    depths = [depth for time, depth in departures(result.queues, chosen.limit) if third <= time <= 2 * third]
    exact = tofino.reading(np.percentile(depths, tofino.PERCENTILES, method="inverted_cdf"))
    outcome = tofino.measure(chosen, result)
    assert outcome.drops > 10
    assert np.abs(exact - outcome.readings).max() <= 1, (exact, outcome.readings)


def test_some_rows_agree() -> None:
    """Rows with several flows, within what one run of a second tells; the bars of all rows are those of `make hardware-test`."""
    some = [r for r in tofino.rows() if r.cells in (4000, 15000) and r.flows > 1]
    outcomes = tofino.run_all(some)
    figures = against_tofino.figures(outcomes)
    print(against_tofino.table(outcomes))
    assert figures["busy"] >= 0.75
    assert figures["p50"] <= 10
    assert figures["p95"] <= 4
    assert figures["p99"] <= 4
