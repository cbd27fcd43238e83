"""What the comparison with the kernel is made of, and Fanin against the committed runs of the kernel: needs no root."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import fanin
from bars import BARS
from bed import ACK as ACK_ROW
from bed import PACKET, Run
from campaign import REFERENCE, Bar, NoisyError, Row, compact, compare, disturbed, load, markdown, noise, reached, write
from measure import FIGURES, Outcome, Verdict, early, judge, late, matched, outcome, served
from mirror import ACK, EXPERIMENTS, FRAME, TURN_US, run_fanin, scenario, turn_us


def packets(*rows: tuple[int, int, int]) -> np.ndarray[Any, Any]:
    """Data packets: (time, port, identification)."""
    out = np.zeros(len(rows), PACKET)
    for row, (ns, port, ident) in zip(out, rows, strict=True):
        row["ns"], row["sport"], row["id"], row["frame"], row["payload"] = 10**18 + ns, port, ident, 1514, 1448
    return out


BASE = Outcome(
    drops=100,
    first_drop_ms=30.0,
    timeouts=10,
    retransmits=100,
    last_ms=1000.0,
    mean_ms=900.0,
    peak=500_000,
    step=1_000_000,
    before=(0, 100_000, 200_000),
    after=tuple(range(0, 21_000, 1000)),
    starts=(0, 100),
    loop_us=2100.0,
)


class TestMatching:
    def test_what_does_not_leave_was_dropped(self) -> None:
        trace = matched(packets((0, 1, 7), (10, 2, 7), (20, 1, 8), (30, 1, 9)), packets((5, 1, 7), (25, 2, 7), (45, 1, 9)))
        assert trace.dropped.tolist() == [False, False, True, False]
        assert trace.first_drop() == 20
        assert trace.queue(np.array([0, 4, 5, 10, 24, 25, 30, 45])).tolist() == [1514, 1514, 0, 1514, 1514, 0, 1514, 0]
        assert trace.peak() == 1514

    def test_an_identification_may_come_again(self) -> None:
        before = packets((0, 1, 7), (10, 1, 8), (20, 1, 7))
        assert matched(before, packets((5, 1, 7), (15, 1, 8), (25, 1, 7))).left.tolist() == [5, 15, 25]

    def test_handshakes_are_left_out(self) -> None:
        before = packets((0, 1, 1), (100, 1, 2))
        before["payload"][0] = 0
        trace = matched(before, packets((1, 1, 1), (103, 1, 2)))
        assert trace.came.tolist() == [0]
        assert trace.left.tolist() == [3]

    def test_two_cpus_may_swap_what_comes_together(self) -> None:
        trace = matched(packets((0, 1, 1), (100, 2, 1)), packets((200, 2, 1), (300, 1, 1)))
        assert trace.left.tolist() == [200, 300]
        with pytest.raises(ValueError, match="did not keep the order"):
            matched(packets((0, 1, 1), (10**6, 2, 1)), packets((2 * 10**6, 2, 1), (3 * 10**6, 1, 1)))

    def test_what_cannot_be_is_refused(self) -> None:
        with pytest.raises(ValueError, match="1 packets left the port that never came"):
            matched(packets((0, 1, 1)), packets((1, 1, 1), (2, 1, 2)))
        with pytest.raises(ValueError, match="before it came"):
            matched(packets((0, 1, 1), (10**6, 1, 2)), packets((1, 1, 1), (2, 1, 2)))


def test_a_port_sends_whenever_it_has_something() -> None:
    came = np.array([0, 0, 50_000, 1_000_000])
    frame = np.array([1250, 1250, 1250, 1250])
    trace = served(came, frame, np.array([False, False, True, False]), 100_000_000)
    assert trace.left.tolist() == [0, 100_000, 1_000_000]
    assert trace.queue(np.array([0, 99_999, 100_000])).tolist() == [1250, 1250, 0]
    assert trace.busy_rate() == pytest.approx(1e8)


def test_an_outcome_survives_a_file(tmp_path: Path) -> None:
    trace = served(np.arange(0, 4_000_000, 60_000), np.full(67, 1514), np.arange(67) == 50, 100_000_000)
    mine = outcome(trace, [4e6, 9e6], timeouts=1, retransmits=2, step=500_000, starts=[0, 3], loop_us=2.5)
    assert (mine.drops, mine.first_drop_ms, mine.last_ms, mine.mean_ms) == (1, 3.0, 9.0, 6.5)
    assert len(mine.before) == 6
    case = {"runs": [mine.as_dict()], "counters": [{"TCPLossProbes": 3}, {"TCPLossProbes": 5}], "noise": []}
    write({"kernel": "6", "date": "today", "cases": {"a": compact(case), "b": case}}, tmp_path / "k.json")
    back = load(tmp_path / "k.json")["cases"]
    assert Outcome.of(back["a"]["runs"][0]) == mine
    assert back["a"]["counters"][0]["TCPLossProbes"] == 4


def verdict(name: str, kernel: list[Outcome], *mine: Outcome) -> Verdict:
    return next(v for v in judge(kernel, mine) if v.figure.name == name)


class TestVerdicts:
    KERNEL = (replace(BASE, drops=100), replace(BASE, drops=120), replace(BASE, drops=110))

    @pytest.mark.parametrize(
        ("drops", "word"),
        [*((n, "within") for n in (100, 120)), *((n, "within twice") for n in (90, 121, 130)), *((n, "off") for n in (89, 131))],
    )
    def test_spread_and_twice_it(self, drops: int, word: str) -> None:
        mine = [replace(BASE, drops=drops)] * 3
        assert verdict("drops", [*self.KERNEL], *mine).word == word

    @pytest.mark.parametrize(
        ("timeouts", "word"),
        [*((n, "within") for n in (9, 10, 11)), *((n, "within 1.5 times") for n in (7, 15)), *((n, "off") for n in (0, 6, 16))],
    )
    def test_timeouts_by_their_ratio(self, timeouts: int, word: str) -> None:
        assert verdict("timeouts", [BASE] * 3, *[replace(BASE, timeouts=timeouts)] * 3).word == word

    def test_the_median_of_fanin_counts(self) -> None:
        assert verdict("drops", [BASE] * 3, BASE, BASE, replace(BASE, drops=10_000)).word == "within"

    def test_the_testbed_has_an_error_of_its_own(self) -> None:
        assert verdict("drops", [BASE] * 3, *[replace(BASE, drops=102)] * 3).word == "within"
        assert verdict("drops", [BASE] * 3, *[replace(BASE, drops=105)] * 3).word == "off"

    def test_a_drop_that_only_one_of_them_has(self) -> None:
        none = replace(BASE, first_drop_ms=None)
        assert verdict("first", [none] * 3, *[none] * 3).word == "within"
        assert verdict("first", [none] * 3, *[BASE] * 3).off == math.inf
        assert verdict("first", [BASE] * 3, *[none] * 3).off == math.inf
        assert verdict("first", [BASE, BASE, none], *[BASE] * 3).word == "within"

    def test_queues(self) -> None:
        other = replace(BASE, before=(0, 100_000, 200_000 + 15_000), after=tuple(range(5000, 26_000, 1000)))
        assert early(BASE, other) == pytest.approx(15_000 / math.sqrt(3))
        assert late(BASE, other) == 5000
        assert verdict("early", [BASE] * 3, *[other] * 3).word == "within twice"
        assert verdict("late", [BASE, other, BASE], *[other] * 3).word == "within"


def row(drops: int) -> Row:
    kernel, mine = [BASE] * 3, [replace(BASE, drops=drops)] * 3
    return Row(EXPERIMENTS[0], kernel, mine, judge(kernel, mine))


def test_a_bar_can_be_lost() -> None:
    bar = Bar("drops", "reno-9x*", 2, "")
    assert reached([row(100), row(101)], bar)[:2] == (2, 2)
    count, of, far = reached([row(100), row(200)], bar)
    assert (count, of) == (1, 2)
    assert "kernel 100, Fanin 200" in far[0]
    assert reached([row(100)], Bar("drops", "cubic-*", 1, ""))[:2] == (0, 0)


def test_a_table_has_a_row_for_each_experiment() -> None:
    text = markdown([row(200)], {"kernel": "6.18", "date": "2026", "disturbed": 0}, "commit x")
    assert "| 100 | 200 ✗ |" in text
    heads = [line for line in text.splitlines() if line.startswith("| experiment")]
    bodies = [line for line in text.splitlines() if line.startswith("| Reno")]
    assert all(h.count("|") == r.count("|") for h, r in zip(heads, bodies, strict=True))


class TestNoise:
    def test_a_run_is_judged_by_lateness_theft_and_rate(self) -> None:
        good = {"late_p50_us": 20.0, "late_p99_us": 80.0, "late_max_us": 400.0, "steal": 0.0, "rate": 1.0, "load": 1.0}
        assert disturbed(good) is None
        assert "late by 300" in str(disturbed({**good, "late_p99_us": 300.0}))
        assert "9000" in str(disturbed({**good, "late_max_us": 9000.0}))
        assert "5.0 % of the time is stolen" in str(disturbed({**good, "steal": 0.05}))
        assert "97.0 % of its rate" in str(disturbed({**good, "rate": 0.97}))
        assert issubclass(NoisyError, RuntimeError)

    def test_lateness_is_read_from_the_delay_line(self) -> None:
        acks = np.zeros(100, ACK_ROW)
        acks["late"] = 20_000
        acks["late"][-1] = 7_000_000
        none = np.zeros(0, PACKET)
        run = Run(none, none, acks, none, none, [], 0, {}, {"steal_share": 0.001, "load": 2.0})
        trace = served(np.zeros(10, np.int64), np.full(10, 1250), np.zeros(10, bool), 100_000_000)
        found = noise(run, trace, 100_000_000)
        assert (found["late_p50_us"], found["late_max_us"], found["rate"]) == (20.0, 7000.0, 1.0)


class TestMirror:
    def test_round_trip_is_that_of_the_kernel(self, tmp_path: Path) -> None:
        """A packet that leaves the queue brings its next one a loop later, whatever the link takes to send it."""
        experiment = next(e for e in EXPERIMENTS if e.key.startswith("cubic-1x"))
        like = replace(BASE, starts=(0,))
        _, trace = run_fanin(experiment, like, tmp_path)
        loop = round(experiment.setting().delay * 1e9) + TURN_US * 1000
        # Ten packets come together, the eleventh with the ACK of the first, which may wait for the end of the handshake's ACK.
        assert trace.came[9] < 100_000
        assert 0 <= trace.came[10] - loop <= ACK * 80

    def test_what_a_turn_takes_is_read_from_the_data(self) -> None:
        """Segments leave the port 121 us apart, each answered after 3 us; the line is late by 19, the sender takes 7."""
        n = np.arange(10, dtype=np.uint64)
        after, acks, before = np.zeros(10, PACKET), np.zeros(10, ACK_ROW), np.zeros(10, PACKET)
        after["ns"], after["seq"], after["payload"], after["sport"] = 10**6 + n * 121_000, 5 + n * 1448, 1448, 10_000
        acks["ns"], acks["ack"], acks["dport"], acks["late"] = after["ns"] + 3_000, after["seq"] + 1448, 10_000, 19_000
        before["ns"], before["payload"], before["sport"] = acks["ns"] + 2_000_000 + 19_000 + 7_000, 1448, 10_000
        run = Run(before, after, acks, before[:0], before[:0], [], 0, {}, {})
        assert turn_us(run, 0.002) == TURN_US

    def test_the_queue_is_the_one_that_packets_found(self, tmp_path: Path) -> None:
        experiment = next(e for e in EXPERIMENTS if e.key == "reno-9x1000KB-2ms-512KB-100M")
        like = replace(BASE, starts=tuple(range(0, 450, 50)))
        _, trace = run_fanin(experiment, like, tmp_path)
        rows = fanin.Result(tmp_path / "result").queues
        first = rows.filter(pl.col("frame_bytes") > 100)["time_ps"][0]
        rows = rows.filter(pl.col("time_ps") >= first)
        # What a packet found is the queue after it, less itself where it was taken; stamps are rounded to nanoseconds.
        found = rows["queue_bytes"].to_numpy()
        after = trace.queue(trace.came) - np.where(trace.dropped, 0, trace.frame)
        waits = trace.queue(trace.came) > 0
        assert (np.abs(after - found)[waits] <= FRAME).mean() > 0.999
        assert (after == found)[waits].mean() > 0.98
        assert trace.dropped.sum() > 100

    def test_every_experiment_is_a_scenario(self, tmp_path: Path) -> None:
        for experiment in EXPERIMENTS:
            like = replace(BASE, starts=tuple(range(experiment.flows)))
            problems = scenario(experiment, like, tmp_path).check().problems
            assert [p for p in problems if p.severity == "error"] == []
        assert len({e.key for e in EXPERIMENTS}) == len({e.name for e in EXPERIMENTS}) == len(EXPERIMENTS)
        assert (FRAME, ACK) == (1514, 66)


def test_fanin_against_committed_runs_of_the_kernel(tmp_path: Path) -> None:
    """The short form: one mirror of each kernel run, without the kernel."""
    data = load(REFERENCE)
    assert set(data["cases"]) == {e.key for e in EXPERIMENTS}
    rows = compare(data, tmp_path)
    lost = []
    for bar in BARS:
        count, of, far = reached(rows, bar)
        assert of > 0, bar
        if count < bar.at_least:
            lost.append(f"{bar.figure} of {bar.match}: {count} of {of}, {bar.at_least} wanted ({bar.why}): {'; '.join(far)}")
    assert not lost, "\n".join(lost)
    assert {b.figure for b in BARS} <= {f.name for f in FIGURES}
