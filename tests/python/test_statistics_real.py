"""What is said of real runs holds: coverage, false verdicts and the stop rule, on 300 stored seeds of eight points.

A short form of `make statistics`, which prints the tables of docs/statistics.md: the same code with fewer samples.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

import real_seeds
import simulated
from fanin import statistics
from fanin.statistics import metrics
from fanin.sweep.axes import Stop
from simulated import drawn, gap, holds, replayed, table

LIMIT = 0.08
"""Samples whose interval stands without a flag and misses the mean: 5 % is nominal, three points more are allowed."""
PAGE = Path(__file__).parents[2] / "docs" / "statistics.md"


def noise(samples: int, share: float) -> float:
    """Three standard deviations of a share that is counted in so many samples."""
    return 3 * math.sqrt(share * (1 - share) / samples)


@pytest.mark.parametrize("metric", real_seeds.names())
@pytest.mark.parametrize("seeds", [10, 74])
def test_intervals_of_means_hold_or_are_flagged(metric: str, seeds: int) -> None:
    """With ten seeds or more what stands without a flag misses the mean of 300 seeds in 5 % of samples, within three points."""
    samples, firm = 40, []
    for point, values in real_seeds.varying(metric):
        found = simulated.of_mean(metric, values, seeds, samples)
        assert found.wrong / samples <= LIMIT + noise(samples, LIMIT), point
        firm.append(found.firm / samples)
    needed = simulated.seeds_of(metric)
    assert needed is None or needed > seeds or np.mean(firm) > 0.6, "a flag on everything would say nothing"


@pytest.mark.parametrize("metric", [name for name in real_seeds.names() if simulated.seeds_of_differences(name) is not None])
def test_intervals_of_differences_hold_or_are_flagged(metric: str) -> None:
    """As of means, of the differences seed by seed between points that differ in K alone."""
    seeds, samples = simulated.seeds_of_differences(metric), 40
    assert seeds is not None
    for pair in simulated.pairs(metric):
        found = simulated.of_gap(metric, pair, seeds, samples)
        assert found.wrong / samples <= LIMIT + noise(samples, LIMIT)


def test_differences_of_goodput_hang_on_rare_runs() -> None:
    """Ten seeds' interval would hold their mean in a quarter of the samples; so no number of seeds takes the flag away."""
    pair = next(simulated.pairs("total.goodput_bps"))
    found = simulated.of_gap("total.goodput_bps", pair, 10, 60)
    assert found.inside < 0.7 * found.samples
    assert found.firm == 0


@pytest.mark.parametrize("seeds", [6, 10, 20])
def test_intervals_of_medians_and_shares_always_hold(seeds: int) -> None:
    samples = 100
    for metric in ("queries.p99_ps", "fct/all.slowdown_p99", "total.drops", "total.goodput_bps"):
        for point, values in real_seeds.varying(metric):
            wrong, few = 0, 0
            true, some = float(np.median(values)), float((values > values.mean()).mean())
            for sample in drawn(values, seeds, samples, 2):
                found = statistics.interval(sample)
                wrong += not holds(found.median_low, found.median_high, true)
                share = statistics.share(sample > values.mean())
                few += not holds(share.low, share.high, some)
            assert max(wrong, few) / samples <= LIMIT + noise(samples, LIMIT), (metric, point)


@pytest.mark.parametrize("seeds", [2, 3, 5, 10, 20])
def test_tables_of_equal_metrics_call_nothing_better_or_worse(seeds: int) -> None:
    """Twenty metrics of one kind, the same in both variants, with timeouts in a quarter of the runs: 63 % had a false verdict."""
    assert simulated.false_of_equal(seeds, 60) / 60 <= 0.05 + noise(60, 0.05)


@pytest.mark.parametrize("share", simulated.SHARES)
@pytest.mark.parametrize("seeds", [2, 5, 10, 20, 80])
def test_equal_means_with_timeouts_in_one_variant_alone_are_no_verdict(seeds: int, share: float) -> None:
    """One variant is always the same but for noise, the other less, but for timeouts that cost as much as it gains."""
    assert simulated.false_of_rare(seeds, share, 60) / 60 <= 0.05 + noise(60, 0.05)


def test_differences_that_are_there_are_found() -> None:
    """K = 200 has longer queues than K = 65: twelve seeds say in which more runs do, and forty that the largest is larger."""
    draws = np.random.default_rng(4)
    for metric, seeds, needed, word in (
        ("queue/to_hosts.p99_bytes", 12, statistics.RARE, "mostly worse"),
        ("total.largest_queue_bytes", 40, statistics.FEW, "worse"),
    ):
        short, long = (real_seeds.values(metric, 32, 0.45, k) for k in ("65 packets", "200 packets"))
        found = 0
        for _ in range(30):
            at = draws.choice(300, seeds, replace=False)
            found += table([gap(short[at], long[at], needed)])[0] == word
        assert found >= 25, metric


# -- the stop rule -------------------------------------------------------------------------------------------------------


def test_the_rule_stops_no_sequence_before_a_timeout_was_seen() -> None:
    """The rule before stopped some points early, and few of those intervals held the mean."""
    stop = Stop("queries.p99_ps", 0.1)
    before = [point for points in simulated.replayed_before(stop, 100, 60) for point in points if point.said]
    assert sum(point.held for point in before) < 0.5 * len(before)
    now = [point for points in replayed(stop, 100, 10) for point in points]
    assert all(point.seeds >= statistics.RARE for point in now)
    assert sum(point.said and not point.held for point in now) <= LIMIT * len(now)


def test_where_the_rule_says_yes_the_interval_holds() -> None:
    for stop in (Stop("fct/all.mean_ps", 0.1), Stop("queries.p99_ps", 0.4), Stop("total.goodput_bps", 0.1)):
        points = [point for points in replayed(stop, 200, 10) for point in points]
        said = [point for point in points if point.said]
        assert len(said) >= 0.5 * len(points), "a rule that never stops would be of no use"
        assert sum(point.held for point in said) / len(said) >= 1 - LIMIT - noise(10, 0.08), stop


# -- the page ------------------------------------------------------------------------------------------------------------


def test_the_page_lists_every_metric_that_was_measured_with_its_seeds() -> None:
    listed = re.findall(r"^\| `([^`]+)` \| (10|74|never) \| (10|74|never) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    words = {None: "never", statistics.FEW: "10", statistics.RARE: "74"}
    known = [metrics.of(name) for name in real_seeds.names()]
    assert listed == [(one.key, words[one.seeds], words[one.seeds_of_differences]) for one in known if one is not None]
