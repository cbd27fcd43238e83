"""Intervals hold what they say, and tables call nothing different more often than they say."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

from fanin.statistics import stats


@pytest.mark.parametrize(
    ("t", "freedom"),
    # Abramowitz & Stegun, Table 26.10: beyond these lie 5 %, on both sides together.
    [(12.706, 1), (4.303, 2), (3.182, 3), (2.776, 4), (2.571, 5), (2.228, 10), (2.060, 25), (1.980, 120)],
)
def test_students_distribution_is_that_of_the_tables(t: float, freedom: int) -> None:
    assert stats.student(t, freedom) == pytest.approx(0.05, rel=2e-3)
    assert stats.student(-t, freedom) == stats.student(t, freedom)
    assert stats.student(0.0, freedom) == 1.0
    assert stats.student(math.inf, freedom) == 0.0


def test_holm_multiplies_by_how_many_are_left() -> None:
    assert stats.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert stats.holm([0.04, None, 0.5]) == [0.08, None, 0.5]
    assert stats.holm([0.9, 0.8]) == [1.0, 1.0]
    assert stats.holm([]) == []


def test_few_seeds_are_told_for_what_they_are_worth() -> None:
    one = stats.interval([7.0])
    assert (one.mean, one.low, one.high, one.covers, one.note) == (7.0, None, None, None, "one seed: no interval")
    assert one.half_width is None
    for seeds, worth in ((2, 0.5), (3, 0.75), (4, 0.875)):
        found = stats.interval([float(value) for value in range(seeds)])
        assert (found.low, found.high, found.covers) == (0.0, seeds - 1.0, worth)
        assert f"{100 * worth:.3g} %" in found.note
    assert stats.interval([1.0, 2.0, 3.0, 4.0, 5.0]).note == ""


@pytest.mark.parametrize(
    ("seeds", "low", "high"), [(2, 0.42, 0.58), (3, 0.68, 0.82), (4, 0.82, 0.93), (5, 0.88, 0.96), (10, 0.91, 0.98)]
)
def test_intervals_hold_the_true_mean_as_often_as_they_say(seeds: int, low: float, high: float) -> None:
    """With five seeds 92 % of 4,000 did, with ten 94 %; percentiles without the expansion 84 and 90 %."""
    draws = np.random.default_rng(5)
    held = 0
    for _ in range(400):
        found = stats.interval(list(draws.normal(size=seeds)))
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 0 <= found.high
    assert low <= held / 400 <= high


def test_the_same_values_give_the_same_interval_in_any_order() -> None:
    values = [3.0, 1.0, 4.0, 1.5, 5.0, 9.0, 2.0, 6.0]
    found = stats.interval(values)
    assert stats.interval(values[::-1]) == found
    # Written down once: another machine, or another NumPy, draws the same resamples.
    assert (found.low, found.high) == pytest.approx((2.0, 6.3125), abs=1e-12)
    assert found.half_width == pytest.approx((6.3125 - 2.0) / 2)


def tables(seeds: int, metrics: int, effect: float, count: int) -> list[list[stats.Verdict]]:
    """Verdicts of tables of runs in pairs: half of what varies is the traffic, which both of a pair have."""
    draws = np.random.default_rng(17)
    found = []
    for _ in range(count):
        gaps: list[stats.Difference | None] = []
        for metric in range(metrics):
            traffic, own = draws.normal(size=seeds), draws.normal(size=(2, seeds))
            base, other = traffic + own[0], traffic + own[1]
            if metric % 3 == 1:  # skewed, as times are
                base, other = np.exp(base), np.exp(other)
            elif metric % 3 == 2:  # counts, as drops are
                base, other = np.floor(np.exp(base)), np.floor(np.exp(other))
            shift = effect * np.std(base) if metric == 0 else 0.0
            gaps.append(stats.difference(dict(enumerate(base)), dict(enumerate(other - shift))))
        found.append([verdict for verdict, _ in stats.verdicts(gaps, ["lower"] * metrics)])
    return found


@pytest.mark.parametrize("seeds", [3, 6])
def test_where_nothing_differs_a_table_seldom_says_so(seeds: int) -> None:
    """Of 200 tables at most 16: with a chance of 5 % each, more would come with a chance of 2 % (binomial distribution)."""
    wrong = sum(any(verdict in ("better", "worse") for verdict in table) for table in tables(seeds, 6, 0.0, 200))
    assert wrong <= 16


def test_a_real_difference_is_found_and_nothing_else() -> None:
    found = tables(8, 6, 4.0, 50)
    assert sum(table[0] == "better" for table in found) >= 45
    assert sum(verdict in ("better", "worse") for table in found for verdict in table[1:]) <= 5


def test_pairs_find_what_independent_runs_do_not() -> None:
    """Common random numbers: what all runs of a seed have in common leaves with the difference."""
    draws = np.random.default_rng(3)
    traffic = draws.normal(100, 30, size=8)
    base = {seed: float(value) for seed, value in enumerate(traffic)}
    other = {seed: float(value + 5 + draws.normal(0, 1)) for seed, value in enumerate(traffic)}
    paired = stats.difference(base, other)
    independent = stats.difference(base, {seed + 100: value for seed, value in other.items()})
    assert paired.paired
    assert not independent.paired
    assert paired.mean == pytest.approx(independent.mean)
    assert paired.p is not None
    assert paired.p < 0.001
    assert independent.p is not None
    assert independent.p > 0.5
    assert paired.low is not None
    assert independent.low is not None
    assert 0 < paired.low < paired.mean
    assert independent.low < 0


def test_only_seeds_that_both_have_are_compared() -> None:
    found = stats.difference({1: 10.0, 2: 20.0, 3: 1000.0}, {1: 11.0, 2: 22.0, 4: 0.0})
    assert (found.mean, found.seeds, found.paired) == (1.5, 2, True)
    assert (found.low, found.high) == (1.0, 2.0)
    assert (found.change, found.change_low, found.change_high) == pytest.approx((0.1, 0.1, 0.1))


def test_one_seed_is_never_judged() -> None:
    found = stats.difference({1: 10.0}, {1: 20.0})
    assert (found.mean, found.change, found.p, found.low) == (10.0, 1.0, None, None)
    assert stats.verdicts([found, None], ["lower", "lower"]) == [("one seed", None), ("no data", None)]


def test_equal_differences_are_no_proof() -> None:
    """Two runs with one more drop each: as likely by chance as a coin that falls twice on the same side."""
    found = stats.difference({1: 0.0, 2: 3.0}, {1: 1.0, 2: 4.0})
    assert found.p == 0.5
    assert stats.difference({1: 5.0, 2: 6.0}, {1: 5.0, 2: 6.0}).p == 1.0
    assert stats.difference({1: 0.1, 2: 0.2, 3: 0.3}, {1: 0.1 + 0.7, 2: 0.2 + 0.7, 3: 0.3 + 0.7}).p == 0.25, "rounding is no spread"


def test_directions_and_changes() -> None:
    base = {seed: 100.0 + seed for seed in range(10)}
    gaps = [stats.difference(base, {seed: factor * value for seed, value in base.items()}) for factor in (0.5, 2.0)]
    assert [verdict for verdict, _ in stats.verdicts([*gaps, *gaps], ["lower", "lower", "higher", None])] == [
        "better",
        "worse",
        "worse",
        "differs",
    ]
    assert gaps[0].change == pytest.approx(-0.5)
    assert gaps[0].change_low == pytest.approx(-0.5)
    assert stats.difference({1: 0.0, 2: 0.0}, {1: 1.0, 2: 2.0}).change is None, "nothing is a multiple of zero"


def test_what_is_no_number_is_refused() -> None:
    for wrong in ([], [1.0, float("nan")], [float("inf")]):
        with pytest.raises(ValueError, match=r"no values|no finite number"):
            stats.interval(wrong)
    with pytest.raises(ValueError, match=r"confidence: 2 is out of range; accepted: 0.5 to 0.999"):
        stats.interval([1.0, 2.0], confidence=2)
    with pytest.raises(ValueError, match=r"degrees of freedom: 0"):
        stats.student(1.0, 0)


@pytest.mark.parametrize("paired", [True, False])
def test_many_values_have_the_interval_that_resampling_would_give(paired: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    draws = np.random.default_rng(8)
    base = dict(enumerate(draws.exponential(100, size=600)))
    other = {seed + 1000 * (not paired): 1.1 * value + draws.exponential(20) for seed, value in base.items()}
    resampled = stats.interval(list(base.values())), stats.difference(base, other)
    monkeypatch.setattr(stats, "MANY", 500)
    monkeypatch.setattr(stats, "_resampled", None)
    found = stats.interval(list(base.values())), stats.difference(base, other)
    assert (found[1].paired, found[1].p, found[1].mean) == (paired, resampled[1].p, resampled[1].mean)
    for was, now, ends in (
        (resampled[0], found[0], ("low", "high")),
        (resampled[1], found[1], ("low", "high", "change_low", "change_high")),
    ):
        width = abs(getattr(was, ends[1]) - getattr(was, ends[0]))
        for end in ends:
            if end.startswith("change"):
                width = abs(resampled[1].change_high - resampled[1].change_low)  # type: ignore[operator]
            assert getattr(now, end) == pytest.approx(getattr(was, end), abs=0.06 * width), end


def test_a_hundred_thousand_values_take_no_time() -> None:
    base = {seed: float(seed % 7) for seed in range(100_000)}
    started = time.process_time()
    found = stats.difference(base, {seed: value + 1 + seed % 2 for seed, value in base.items()})
    assert time.process_time() - started < 2
    assert found.low is not None
    assert found.mean == 1.5
    assert 1.49 < found.low < 1.5


def test_rounding_is_no_spread_with_or_without_pairs() -> None:
    same, other = dict.fromkeys((1, 2, 3), 0.1), dict.fromkeys((1, 2, 3), 0.3)
    for against in (other, {seed + 9: value for seed, value in other.items()}):
        assert stats.difference(same, against).p == 0.25


def test_few_seeds_that_show_nothing_are_too_few() -> None:
    def said(seeds: int) -> str:
        base = {seed: 100.0 + seed % 2 for seed in range(seeds)}
        other = {seed: 99.0 - 0.3 * (seed % 3) for seed in range(seeds)}
        gap = stats.difference(base, other)
        return stats.verdicts([gap] * 40, ["lower"] * 40)[0][0]

    assert [said(seeds) for seeds in (2, 3, 4)] == ["too few seeds"] * 3
    assert said(5) == "no difference"
    assert said(40) == "better"
