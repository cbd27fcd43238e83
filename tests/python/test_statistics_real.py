"""What is said of real runs holds: coverage, false verdicts and the stop rule, on networks that no limit was chosen on.

A short form of `make statistics`, which prints the tables of docs/statistics.md: the same code with fewer samples.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

import many_samples
import real_seeds
import simulated
from fanin import statistics
from fanin.sweep.axes import Stop
from simulated import LIMIT, drawn, gap, holds, replayed, table

PAGE = Path(__file__).parents[2] / "docs" / "statistics.md"


def noise(samples: int, share: float) -> float:
    """Three standard deviations of a share that is counted in so many samples."""
    return 3 * math.sqrt(share * (1 - share) / samples)


def test_the_networks_shown_are_none_of_those_chosen_on() -> None:
    chosen, shown = (set(real_seeds.points(part)) for part in ("chosen", "shown"))
    assert len(chosen) == len(shown) == 8 and not chosen & shown
    assert not {hosts for hosts, _, _ in chosen} & {hosts for hosts, _, _ in shown}


@pytest.mark.parametrize("kind", ["means", "differences"])
@pytest.mark.parametrize("seeds", [10, 20, 99])
def test_intervals_of_many_samples_are_those_of_the_package(kind: str, seeds: int) -> None:
    """The simulation makes many at once; of some it is seen that the package says the same."""
    for metric in ("queries.p99_ps", "fct/all.mean_ps", "total.timeouts"):
        values = simulated.cases("shown", metric, kind)[0]
        at = np.random.default_rng([1, seeds]).integers(0, values.shape[-1], (20, seeds))
        true = float((values if kind == "means" else values[1] - values[0]).mean())
        said = [
            statistics.interval(values[own]) if kind == "means" else gap(values[0][own], values[1][own], statistics.FEW)
            for own in at
        ]
        firm = [own for own in said if own.flag is None]
        found = many_samples.coverage(values, seeds, 20)
        # An interval of what is never negative begins at zero, which holds no more and no fewer means.
        assert found.inside == sum(holds(own.low, own.high, true) for own in said)
        assert (found.firm, found.wrong) == (len(firm), sum(not holds(own.low, own.high, true) for own in firm))


@pytest.mark.parametrize("kind", ["means", "differences"])
def test_intervals_hold_or_are_flagged(kind: str) -> None:
    """What stands without a flag misses the mean of all seeds in 5 % of samples, within three points, wherever it is."""
    samples = 300
    firm = {seeds: [0, 0] for seeds in simulated.COUNTS}
    for metric in real_seeds.names():
        needed = simulated.seeds_of(metric, kind)
        for seeds in simulated.COUNTS:
            if needed is None or needed > seeds:
                continue
            for values in simulated.cases("shown", metric, kind):
                found = many_samples.coverage(values, seeds, samples)
                firm[seeds][0] += found.firm
                firm[seeds][1] += samples
                if found.firm >= samples // 10:
                    assert found.misses <= LIMIT + noise(found.firm, LIMIT), (metric, seeds)
    assert all(few > 0.8 * every for few, every in firm.values()), "a flag on everything would say nothing"


def test_differences_of_goodput_hang_on_rare_runs() -> None:
    """Ten seeds' interval holds their mean far too seldom; so no number of seeds takes the flag away."""
    pair = real_seeds.pairs("chosen", "total.goodput_bps")
    assert min(many_samples.coverage(both, 10, 100).inside for _, both in pair) < 70
    assert simulated.seeds_of("total.goodput_bps", "differences") is None


@pytest.mark.parametrize("seeds", [6, 10, 20])
def test_intervals_of_medians_and_shares_always_hold(seeds: int) -> None:
    samples = 100
    for metric in ("queries.p99_ps", "fct/all.slowdown_p99", "total.drops", "total.goodput_bps"):
        for point, values in real_seeds.varying("shown", metric):
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
@pytest.mark.parametrize("seeds", [2, 10, 20, 99, 200])
def test_equal_means_with_timeouts_in_one_variant_alone_are_no_verdict(seeds: int, share: float) -> None:
    """One variant is always the same but for noise, the other less, but for timeouts that cost as much as it gains."""
    assert simulated.false_of_rare(seeds, share, 60) / 60 <= 0.05 + noise(60, 0.05)


def test_timeouts_that_no_seed_showed_make_no_verdict() -> None:
    """Of 99 seeds none has what comes in 2 % of the runs with a chance of 14 %, and by what they show a mean is better then."""
    tables = 400
    assert simulated.false_of_rare(99, 0.02, tables) / tables <= 0.05
    before = simulated.false_of_rare(99, 0.02, tables, simulated.as_seen) / tables
    assert 0.98**99 - noise(tables, 0.135) <= before <= 0.98**99 + noise(tables, 0.135)


def test_timeouts_that_move_the_mean_alone_are_worse_on_average_from_99_seeds_on() -> None:
    """One in ten runs of one variant has a timeout, and the others are as they were: the sign test alone said nothing."""
    tables = 100
    said = simulated.timeouts_alone(99, 0.1, tables)
    assert said["worse on average"] >= 60 and said["worse on average"] + said["worse"] >= 80, said
    assert said["better"] + said["better on average"] + said["mostly better"] == 0, said
    few = simulated.timeouts_alone(20, 0.1, tables)
    assert few["worse on average"] + few["worse"] == 0 and few["not shown"] >= 85, few


def test_who_looks_again_is_wrong_more_often_and_looks_that_share_the_chance_are_not() -> None:
    """Nineteen looks at what is the same; with --looks all of them together keep 5 %."""
    series = 100
    found = [
        [chances[count] for count in simulated.LOOKS["after every 10 from 20 to 200"]]
        for chances, _ in simulated.false_of_looks(series)
    ]
    often, shared = (sum(min(own) <= 0.05 / parts for own in found) / series for parts in (1, 19))
    assert 0.09 <= often <= 0.35 and shared <= 0.05, (often, shared)


@pytest.mark.parametrize("seeds", [6, 20, 99])
def test_tables_of_headlines_with_equal_means_call_none_better(seeds: int) -> None:
    """The shapes of real runs, the means of the second variant moved to those of the first."""
    wrong, of = simulated.false_of_headlines(seeds, 20)
    assert of == 80 and wrong / of <= 0.05 + noise(of, 0.05)


def test_differences_that_are_there_are_found() -> None:
    """K = 200 has longer queues than K = 65: twelve seeds say in which more runs do, and forty that the largest is larger."""
    draws = np.random.default_rng(4)
    for metric, seeds, needed, word in (
        ("queue/to_hosts.p99_bytes", 12, statistics.RARE, "mostly worse"),
        ("total.largest_queue_bytes", 40, statistics.FEW, "worse"),
    ):
        short, long = (real_seeds.values("chosen", metric, 32, 0.45, k) for k in ("65 packets", "200 packets"))
        found = 0
        for _ in range(30):
            at = draws.choice(600, seeds, replace=False)
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
    listed = re.findall(
        r"^\| `([^`]+)` \| (\w+) \|(?: [^|]+\|){3} (\w+) \|(?: [^|]+\|){3}$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    words = simulated.WORDS
    assert listed == [
        (name, *(words[simulated.seeds_of(name, kind)] for kind in ("means", "differences"))) for name in real_seeds.names()
    ]
