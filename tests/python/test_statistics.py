"""Intervals, tests and verdicts, each against a closed form, a table, SciPy, or what a simulation of a known distribution says."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats as scipy_stats

from fanin import statistics as stats
from fanin.statistics import exact, means


def paired(gaps: list[float], base: float = 10.0, **options: object) -> stats.Difference:
    first = dict.fromkeys(range(len(gaps)), base)
    return stats.difference(first, {seed: base + gap for seed, gap in enumerate(gaps)}, **options)  # type: ignore[arg-type]


def test_commands_that_need_no_statistics_do_not_wait_for_scipy() -> None:
    code = "import sys, fanin.cli, fanin.statistics; sys.exit(any(name.startswith('scipy') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# -- intervals -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("t", "freedom"),
    # Abramowitz & Stegun, Table 26.10: beyond these lie 5 %, on both sides together.
    [(12.706, 1), (4.303, 2), (3.182, 3), (2.776, 4), (2.571, 5), (2.228, 10), (2.060, 25), (1.980, 120)],
)
def test_students_quantiles_are_those_of_the_tables(t: float, freedom: int) -> None:
    assert stats.t_quantile(0.05, freedom) == pytest.approx(t, rel=3e-4)


def test_values_without_skewness_have_students_interval() -> None:
    values = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    low, high = stats.about_mean(values)
    half = 2.776445 * math.sqrt(2.5 / 5)
    assert (low, high) == pytest.approx((3 - half, 3 + half), rel=1e-6)


def test_the_interval_undoes_halls_transformation() -> None:
    """At both ends of the interval the transformed statistic is Student's quantile: T + gT²/(3√n) + g²T³/(27n) + g/(6√n)."""
    values = np.random.default_rng(3).exponential(5.0, 12)
    n, mean, deviation = len(values), values.mean(), values.std(ddof=1)
    skew = float(n / ((n - 1) * (n - 2)) * ((values - mean) ** 3).sum() / deviation**3)
    for end, quantile in zip(stats.about_mean(values), (1, -1), strict=True):
        t = math.sqrt(n) * (mean - end) / deviation
        a = skew / math.sqrt(n)
        assert t + a * t**2 / 3 + a**2 * t**3 / 27 + a / 6 == pytest.approx(quantile * stats.t_quantile(0.05, n - 1), rel=1e-9)


def test_the_interval_reaches_further_to_where_the_long_tail_is() -> None:
    found = stats.interval([1, 1, 1, 2, 2, 3, 3, 4, 6, 12.0])
    assert found.low is not None and found.high is not None
    assert found.high - found.mean > 1.5 * (found.mean - found.low)
    mirrored = stats.about_mean(-np.array([1, 1, 1, 2, 2, 3, 3, 4, 6, 12.0]))
    assert (-mirrored[1], -mirrored[0]) == pytest.approx((found.low, found.high))


@pytest.mark.parametrize(("seeds", "low", "high"), [(2, 0.93, 0.97), (5, 0.92, 0.97), (10, 0.92, 0.97)])
def test_intervals_hold_the_mean_of_normal_values(seeds: int, low: float, high: float) -> None:
    draws = np.random.default_rng(5).normal(size=(2000, seeds))
    held = [ends[0] <= 0 <= ends[1] for ends in map(stats.about_mean, draws)]
    assert low <= sum(held) / 2000 <= high


def test_the_median_has_the_interval_of_the_tables() -> None:
    """Conover (1999), Table A1 by the binomial distribution: of 20 values the 6th and the 15th, of 6 the range, of 5 none."""
    values = np.arange(1.0, 21.0)
    assert stats.about_median(values) == (6.0, 15.0)
    assert stats.about_median(values[:6]) == (1.0, 6.0)
    assert stats.about_median(values[:5]) == (None, None)


@pytest.mark.parametrize(("count", "seeds"), [(0, 10), (1, 10), (26, 100), (10, 10)])
def test_shares_have_the_interval_of_clopper_and_pearson(count: int, seeds: int) -> None:
    expected = scipy_stats.binomtest(count, seeds).proportion_ci(method="exact")
    assert stats.about_share(count, seeds) == pytest.approx((expected.low, expected.high))
    found = stats.share([3.0] * count + [0.0] * (seeds - count))
    assert (found.mean, found.seeds) == (count / seeds, seeds)


def test_none_of_many_says_how_rare_it_may_be() -> None:
    assert stats.unseen(10) == pytest.approx(1 - 0.05 ** (1 / 10))
    assert stats.RARE == 99 and (1 - 0.03) ** 99 < 0.05 < (1 - 0.03) ** 98


def test_means_that_are_not_to_be_relied_on_are_flagged() -> None:
    steady = [10.0 + at % 3 for at in range(100)]

    def flag(values: list[float], needed: int | None = stats.FEW) -> str | None:
        return stats.interval(values, seeds_needed=needed).flag

    assert flag(steady) is None and flag(steady[:10]) is None
    assert flag(steady[:9]) == "few"
    assert flag(steady[:98], stats.RARE) == "rare" and flag(steady[:99], stats.RARE) is None
    assert flag(steady[:19], stats.SOME) == "rare" and flag(steady[:20], stats.SOME) is None
    assert flag(steady, None) == "rare", "no number of seeds is enough"
    assert flag([*steady[:9], 100.0]) == "skewed", "one of ten decides the mean"
    assert flag([0.0] * 70 + [5.0] * 4) == "skewed", "four runs with timeouts say little of how many they are"
    assert flag([5.0]) is None and stats.interval([5.0]).note == "one seed: no interval"
    assert "4.9 % of runs may be missing" in stats.interval(steady[:60], seeds_needed=stats.RARE).note


def test_values_at_a_limit_are_alike_for_the_mean() -> None:
    """Buffers that are full by all but some bytes: what the mean is, the few other runs decide."""
    full = [511_900.0 + at for at in range(91)]
    some, few = [300e3 + 1e3 * at for at in range(20)], [300e3, 310e3]
    assert stats.interval([*full, *few]).flag is None, "nobody said that there is a limit"
    found = stats.interval([*full, *few], full=501_760.0)
    assert (found.flag, found.median) == ("limit", 511_944.0) and "at the limit" in found.note
    assert stats.interval([*full, *some], full=501_760.0).flag is None, "twenty others are enough"
    assert stats.interval([512e3] * 20, full=501_760.0).flag == "limit" and stats.interval([512e3] * 20).flag == "rare"
    assert stats.interval([*full[:6], *some[:4]], full=501_760.0).flag is None, "six of ten are not nearly all"
    assert stats.interval([*full[:7], *some[:3]], full=501_760.0).flag == "limit"
    assert stats.interval([*full[:8], *few[:1]], full=501_760.0).flag == "few"


def test_seeds_of_which_both_are_at_a_limit_do_not_differ() -> None:
    """By some bytes either way: they were "lower in 30, higher in 30", or mostly better."""
    base = {seed: 511_900.0 + seed for seed in range(40)}
    other = {seed: value - 10 for seed, value in base.items()} | {39: 300e3}
    assert stats.verdicts([stats.difference(base, other)], ["lower"])[0].verdict == "mostly better"
    found = stats.difference(base, other, full=(501_760.0, 501_760.0))
    assert (found.lower, found.higher, found.flag, found.rare) == (1, 0, "limit", True)
    assert stats.verdicts([found], ["lower"])[0].verdict == "not shown"
    apart = stats.difference(base, {seed + 100: value for seed, value in other.items()}, full=(501_760.0, 501_760.0))
    assert (apart.lower, apart.higher, apart.flag) == (40, 0, "limit")


def test_shares_are_judged_by_mcnemars_test() -> None:
    base = [1.0] * 3 + [0.0] * 17
    other = [1.0] * 12 + [0.0] * 8
    found = stats.difference_of_shares(base, other)
    assert found.p_mean == found.p_most == found.p == pytest.approx(2 * 0.5**9)
    assert (found.lower, found.higher, found.flag, found.share) == (0, 9, None, True)
    assert found.mean == pytest.approx(0.45) and found.change == pytest.approx(3.0)
    assert found.low is not None and found.high is not None and 0.15 < found.low < 0.25 and 0.6 < found.high < 0.7
    assert stats.verdicts([found], ["lower"])[0].verdict == "worse"
    six = stats.difference_of_shares([0.0] * 6, [1.0] * 6)
    assert six.p == pytest.approx(2 * 0.5**6) and stats.verdicts([six], ["lower"])[0].verdict == "worse", "six seeds are enough"
    few = stats.verdicts([stats.difference_of_shares([0.0] * 5, [1.0] * 5)], ["lower"])[0]
    assert few.verdict == "not shown" and few.seeds is not None and 6 <= few.seeds <= 15
    assert stats.difference_of_shares([0.0], [1.0]).p is None
    apart = stats.difference_of_shares({1: 0, 2: 0, 3: 1, 4: 0}, {5: 1, 6: 3, 7: 1, 8: 1, 9: 2})
    assert (apart.lower, apart.higher, apart.seeds, apart.paired) == (0, 15, 4, False)
    # Fisher: of 9 runs with 6 timeouts four have one alone in 6 of 126 ways, and more on the other side would be less likely.
    assert apart.p == pytest.approx(6 / 126, abs=1e-9) and apart.mean == 0.75 and apart.high == pytest.approx(0.981, abs=1e-3)


def test_intervals_of_what_is_never_negative_begin_at_zero() -> None:
    assert stats.interval([1.0, 2.0]).low == 0.0
    low = stats.interval([-1.0, 2.0]).low
    assert low is not None and low < -1
    assert (stats.interval([7.0, 7.0, 7.0]).low, stats.interval([7.0] * 3).half_width) == (7.0, 0.0)


def test_the_same_values_give_the_same_interval_in_any_order() -> None:
    values = [3.0, 1.0, 4.0, 1.5, 5.0, 9.0, 2.0, 6.0]
    assert stats.interval(values[::-1]) == stats.interval(values)


def test_what_is_no_number_is_refused() -> None:
    for wrong in ([], [1.0, float("nan")], [float("inf")]):
        with pytest.raises(ValueError, match=r"no values|no finite number"):
            stats.interval(wrong)
    with pytest.raises(ValueError, match=r"confidence: 2 is out of range; accepted: 0.5 to 0.999"):
        stats.interval([1.0, 2.0], confidence=2)
    with pytest.raises(ValueError, match=r"degrees of freedom: 0"):
        stats.t_quantile(0.05, 0)


# -- tests ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seeds", [2, 5, 9, 12])
def test_the_sign_flip_test_is_scipys_permutation_test(seeds: int) -> None:
    gaps = np.random.default_rng(seeds).normal(0.5, 1, seeds)
    for side, ours in (("two-sided", stats.sign_flip(gaps).both), ("less", stats.sign_flip(gaps).low)):
        theirs = scipy_stats.permutation_test((gaps,), np.mean, permutation_type="samples", n_resamples=10**5, alternative=side)
        assert ours == pytest.approx(theirs.pvalue)


def test_counting_signs_gives_what_listing_them_does(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = np.random.default_rng(2)
    for gaps in (draws.normal(0.3, 1, 15), draws.exponential(1, 16) - 0.7, np.array([1.0] * 14 + [-20.0])):
        listed = stats.sign_flip(gaps)
        with monkeypatch.context() as patch:
            patch.setattr(exact, "_LISTED", 3)
            assert stats.sign_flip(gaps) == pytest.approx(listed, rel=0.02)
        assert listed.both == stats.sign_flip(-gaps).both
    many = draws.normal(0.1, 1, 300)
    counted = stats.sign_flip(many)
    monkeypatch.setattr(exact, "_MANY", 299)
    assert stats.sign_flip(many).both == pytest.approx(counted.both, rel=0.05)


def test_the_sign_test_is_scipys_binomial_test() -> None:
    gaps = np.array([1.0, 2, 3, -1, 5, 6, 0, 8])
    found = stats.sign_test(gaps)
    assert found.both == pytest.approx(scipy_stats.binomtest(6, 7).pvalue)
    assert found.high == pytest.approx(scipy_stats.binomtest(6, 7, alternative="greater").pvalue)
    assert stats.sign_test(np.zeros(3)).both == 1.0


@pytest.mark.parametrize("test", [stats.sign_flip, stats.sign_test])
@pytest.mark.parametrize("seeds", [2, 4, 7, 20])
def test_a_chance_is_below_a_level_no_more_often_than_the_level(test: object, seeds: int) -> None:
    """Whatever is distributed in pairs that might as well be exchanged; the more so where most differences are zero."""
    draws = np.random.default_rng(7)
    chances = []
    for _ in range(1000):
        gaps = (draws.random(seeds) < 0.4) * draws.pareto(1.1, seeds) * draws.choice([-1, 1], seeds)
        chances.append(test(gaps).both)  # type: ignore[operator]
    for level in (0.05, 0.2):
        assert np.mean(np.array(chances) <= level) <= level + 3 * math.sqrt(level * (1 - level) / 1000)


def test_how_many_seeds_an_exact_test_takes() -> None:
    assert [exact.least(level) for level in (0.05, 0.01, 0.05 / 15)] == [6, 8, 10]
    assert exact.sign_flip(np.ones(6)).both <= 0.05 < exact.sign_flip(np.ones(5)).both


def test_as_many_seeds_as_are_said_to_be_needed_show_it_in_four_of_five_cases() -> None:
    draws = np.random.default_rng(11)
    pilot = draws.normal(0.5, 1, 4000)
    for mean in (True, False):
        seeds = exact.needed(pilot, 0.05, mean=mean)
        assert seeds is not None
        shown = 0
        for _ in range(300):
            gaps = draws.normal(0.5, 1, seeds)
            chances = (stats.sign_flip(gaps).both if mean else 0.0, stats.sign_test(gaps).both)
            shown += max(chances) <= 0.05
        assert 0.72 <= shown / 300 <= 0.95, seeds
    assert exact.needed(np.array([1.0, -1.0]), 0.05) is None, "as many on either side: no number would"
    assert exact.needed(np.zeros(5), 0.05) is None


@pytest.mark.parametrize("seeds", [3, 8, 40])
def test_halls_chances_are_where_its_interval_ends(seeds: int) -> None:
    """At the end of an interval of confidence 1 − 2a the chance on that side is a; without skewness it is Student's."""
    values = np.random.default_rng(seeds).exponential(3.0, seeds)
    for level in (0.2, 0.05, 0.01):
        low, high = means.about_mean(values, 1 - 2 * level)
        assert means.estimated(values - low).chances().high == pytest.approx(level, rel=1e-6)
        assert means.estimated(values - high).chances().low == pytest.approx(level, rel=1e-6)
    even = np.array([1.0, 2.0, 3.0, 4.0, 6.0, 7.0, 8.0, 9.0]) - 4.0
    assert means.estimated(even).chances().both == pytest.approx(scipy_stats.ttest_1samp(even, 0).pvalue)
    assert means.estimated(np.full(4, -1.0)).chances() == (0.0, 1.0)


def test_two_samples_of_one_size_have_welchs_error_and_both_skewnesses() -> None:
    draws = np.random.default_rng(8)
    base, other = draws.normal(5, 1, 30), draws.exponential(2, 20)
    found = means.estimated_difference(base, other)
    assert found.error == pytest.approx(scipy_stats.ttest_ind(other, base, equal_var=False)._standard_error)
    cumulants = [scipy_stats.kstat(values, 3) / len(values) ** 2 for values in (other, base)]
    assert found.skew == pytest.approx((cumulants[0] - cumulants[1]) / found.error**3)
    assert means.estimated_difference(np.zeros(9), other).skew == pytest.approx(means.estimated(other).skew)


def test_rare_runs_of_one_variant_alone_are_no_better_mean() -> None:
    """Four of eighty runs cost nine times what the others win; exchanging signs says better, the interval does not."""
    gaps = [-1.0 + 0.01 * (at % 5) for at in range(76)] + [9.0] * 4
    flips = stats.sign_flip(np.array(gaps)).both
    found = paired(gaps, 5.0)
    assert found.flag is None and flips <= 0.05
    assert found.low is not None and found.high is not None and found.low < 0 < found.high
    assert found.p is not None and found.p > 0.05 and said(found).verdict == "not shown"
    unpaired = stats.difference(
        {seed: 5.0 + 0.01 * (seed % 7) for seed in range(80)}, {seed + 100: 5 + gap for seed, gap in enumerate(gaps)}
    )
    assert not unpaired.paired and unpaired.p_mean is not None and unpaired.p_mean > 0.05


# -- verdicts ------------------------------------------------------------------------------------------------------------


def test_holm_multiplies_by_how_many_are_left() -> None:
    assert stats.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert stats.holm([0.04, None, 0.5]) == [0.08, None, 0.5]
    assert stats.holm([0.9, 0.8]) == [1.0, 1.0]
    assert stats.holm([]) == []


def said(gap: stats.Difference | None, better: stats.Direction | None = "lower", times: int = 1) -> stats.Judgement:
    return stats.verdicts([gap] * times, [better] * times)[0]


@pytest.mark.parametrize("direction", ["Lower", "down", "min", ""])
def test_a_direction_that_is_none_is_refused(direction: str) -> None:
    """It turned the verdict round."""
    gap = paired([-1.0, -2.0, -1.5])
    with pytest.raises(ValueError, match=r"better\[1\]: .* is no direction; accepted: 'lower', 'higher', or None") as caught:
        stats.verdicts([gap, gap], ["lower", direction])  # type: ignore[list-item]
    assert ("did you mean lower?" in str(caught.value)) == (direction == "Lower")


def test_equal_values_have_no_interval_to_rely_on() -> None:
    """Ten runs without a drop say that fewer than 26 % of the runs have one, not that there are none."""
    for values in ([0] * 10, [512e3] * 40, [0] * 120):
        found = stats.interval(values)
        assert (found.low, found.high, found.flag) == (values[0], values[0], "rare")
    assert "26 % of runs may be missing" in stats.interval([0] * 10).note
    assert stats.interval([0] * 9 + [1]).flag == "few" or stats.interval([0] * 9 + [1]).flag == "skewed"


def test_what_no_seed_showed_flags_a_mean_that_it_could_move() -> None:
    values = [7e9 + 1e8 * (at % 7) for at in range(99)]
    half = stats.interval(values).half_width
    assert half is not None
    flags = [stats.interval(values, unseen_cost=part * half / stats.unseen(99)).flag for part in (0.0, 0.99, 1.01)]
    assert flags == [None, None, "rare"]
    with pytest.raises(ValueError, match="unseen_cost: -1 is out of range; accepted: 0 or more"):
        stats.interval(values, unseen_cost=-1)


def test_five_seeds_show_nothing_and_say_how_many_would() -> None:
    lower = [-1.0, -2.0, -1.5, -1.2, -1.7, -1.1, -1.3, -1.6, -1.4, -1.8]
    found = said(paired(lower[:5]))
    assert (found.verdict, found.chance) == ("not shown", 2 / 32)
    assert found.seeds is not None and 10 <= found.seeds <= 12, "with fewer than ten no mean is judged"
    assert [said(paired(lower[:seeds])).verdict for seeds in (6, 9, 10)] == ["mostly better", "mostly better", "better"]
    assert [said(paired(lower[:seeds]), "higher").verdict for seeds in (6, 10)] == ["mostly worse", "worse"]
    assert said(paired(lower[:6]), None).verdict == "differs"
    assert paired(lower[:9]).p_margin is None, "nor is it shown that there is no difference"
    assert said(paired(lower[:6]), times=20).verdict == "not shown", "twenty are judged together"
    assert said(paired(lower[:1])) == stats.Judgement("one seed", None)
    assert said(None) == stats.Judgement("no data", None)


def test_what_rare_runs_decide_is_only_mostly_better() -> None:
    lower = [-1.0 - 0.1 * (at % 4) for at in range(100)]
    assert said(paired(lower[:20], seeds_needed=stats.RARE)).verdict == "mostly better"
    assert said(paired(lower, seeds_needed=stats.RARE)).verdict == "better"
    tail = paired([*lower[:19], 400.0])
    assert (tail.flag, said(tail).verdict) == ("skewed", "mostly better"), "its mean is worse, and one seed decides it"
    assert tail.mean > 0


def test_a_mean_that_runs_which_no_seed_showed_could_undo_is_only_mostly_better() -> None:
    """A hundred seeds may all have missed 3.6 % of the runs, which a mean of 1.15 less bears if they cost 31 more at most."""
    lower = [-1.0 - 0.1 * (at % 4) for at in range(100)]
    assert 0.0361 < stats.unseen(100, stats.UNSEEN) < 0.0363
    verdicts = {cost: said(paired(lower, seeds_needed=stats.RARE, rare_cost=cost)).verdict for cost in (0.0, 31.0, 32.5)}
    assert verdicts == {0.0: "better", 31.0: "better", 32.5: "mostly better"}
    found = paired(lower, seeds_needed=stats.RARE, rare_cost=32.5)
    assert (found.flag, found.p, found.low) == ("rare", found.p_most, paired(lower).low)
    unpaired = [
        stats.difference(
            {seed: 10.0 + 0.1 * (seed % 3) for seed in range(100)},
            {seed + 100: 10 + gap for seed, gap in enumerate(lower)},
            rare_cost=cost,
        ).flag
        for cost in (0.0, 30.0, 36.0)
    ]
    assert unpaired == [None, None, "rare"]


def test_what_no_seed_showed_is_taken_off_the_margin() -> None:
    small = [0.03 * (-1) ** at for at in range(100)]
    margin = 0.05 * 10 / stats.unseen(100, stats.UNSEEN)  # what such runs may cost until they fill the margin
    for part, verdict in ((0.0, "no difference"), (0.9, "no difference"), (1.1, "not shown")):
        assert said(paired(small, seeds_needed=stats.RARE, rare_cost=part * margin)).verdict == verdict, part


def test_a_mean_on_the_side_of_fewer_runs_is_not_shown_by_so_few() -> None:
    """Three of twelve seeds cost more than the others win, and twelve seeds do not say that this is by chance."""
    gap = paired([-1.0, -1.1, -1.2, -0.9, -1.0, -1.3, -0.8, -1.0, -1.1, 8.0, 9.0, 7.0])
    assert (gap.flag, gap.p) == (None, 1.0)
    assert gap.p_average is not None and gap.p_average > 0.05
    assert said(gap).verdict == "not shown"


def test_a_mean_alone_is_shown_on_average_with_twice_its_chance() -> None:
    """In three of ten runs a timeout, the others as they were: means differ, and on which side most runs are is open."""
    gaps = [float(at % 7 + 90) if at % 10 < 3 else 0.01 * (-1) ** at for at in range(60)]
    gap = paired(gaps)
    assert gap.flag is None and gap.p_mean is not None and gap.p_most is not None and gap.p_most > 0.05
    assert gap.p_average == pytest.approx(2 * gap.p_mean) and gap.p == gap.p_most
    judged = said(gap)
    assert (judged.verdict, judged.chance) == ("worse on average", gap.p_average)
    assert said(gap, "higher").verdict == "better on average" and said(gap, None).verdict == "differs"
    against = paired([own - 1.0 for own in gaps])
    assert (against.p, said(against).verdict) == (1.0, "worse on average"), "most of the runs are better, by little"
    # Where a mean is not judged, it is not judged alone: with few seeds, or where rare runs decide it.
    assert paired(gaps, seeds_needed=stats.RARE).p_average == paired(gaps, seeds_needed=stats.RARE).p_most
    assert (paired(gaps[:9]).flag, paired(gaps[:9]).p_average) == ("few", paired(gaps[:9]).p)
    # Holm counts all of a table: with p_average no larger than p / many it is shown, else not.
    for many in (2, 20, 2000):
        shown = many * (gap.p_average or 0.0) <= 0.05
        assert (said(gap, times=many).verdict == "worse on average") == shown
    (needed,) = {said(paired(gaps[:20]), times=20).seeds}
    assert needed is not None and 21 <= needed <= 60


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: stats.holm([0.1, math.nan]), r"holm: chances\[1\]: nan is no chance; accepted: 0 to 1, or None"),
        (lambda: stats.holm([-0.1]), r"holm: chances\[0\]: -0.1 is no chance"),
        (lambda: stats.holm([1.5]), r"holm: chances\[0\]: 1.5 is no chance"),
        (lambda: stats.difference([1, 2, 3], [1, 2]), "difference: 3 values and 2; accepted: two sequences of one length"),
        (lambda: stats.difference({1: 2.0}, [1.0]), "difference: one has seeds and the other has none"),
        (lambda: stats.difference([1, "x"], [1, 2]), "difference: holds a value that is no number"),  # type: ignore[list-item]
        (lambda: stats.difference([1, 2], [1, 2], margin=0), "margin: 0 is out of range; accepted: above 0"),
        (lambda: stats.difference([1, 2], [1, 2], rare_cost=math.nan), "rare_cost: nan is out of range"),
        (lambda: stats.sign_flip([1, math.inf]), "sign_flip: holds a value that is no finite number"),
        (lambda: stats.sign_flip(3), "sign_flip: 3 is not accepted; accepted: a list or an array of numbers"),  # type: ignore[arg-type]
        (lambda: stats.sign_test([]), "sign_test: there are no values"),
        (lambda: stats.needed("123", 0.05), "needed: 123 is not accepted"),  # type: ignore[arg-type]
        (lambda: stats.sign_flip(np.ones((2, 2))), "sign_flip: has 2 dimensions"),
        (lambda: stats.about_mean([1.0]), "about_mean: one value has no interval; accepted: two values or more"),
        (lambda: stats.about_median([math.nan]), "about_median: holds a value that is no finite number"),
        (lambda: stats.about_share(4, 3), "about_share: 4 of 3 is no share"),
        (lambda: stats.unseen(0), "seeds: 0 is out of range; accepted: 1 or more"),
        (lambda: stats.pooled([[1, 2]], 99), "pooled: is no mapping; accepted: seed → values of the run"),  # type: ignore[arg-type]
        (lambda: stats.verdicts([None], []), "better: has 0 directions of 1 differences; accepted: one of each"),
        (lambda: stats.verdicts([], [], alpha=math.nan), "alpha: nan is out of range; accepted: above 0 and below 1"),
    ],
)
def test_wrong_input_is_refused_with_what_is_accepted(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_sequences_are_taken_wherever_arrays_are() -> None:
    base, other = [3.0, 5.0, 4.0, 6.0, 8.0, 7.0], (2.5, 4.6, 3.7, 5.4, 7.7, 6.6)
    by_seed = stats.difference(dict(enumerate(base)), dict(enumerate(other)))
    assert stats.difference(base, other) == stats.difference(np.array(base), np.array(other)) == by_seed
    gaps = [two - one for one, two in zip(base, other, strict=True)]
    for test in (stats.sign_flip, stats.sign_test, stats.about_mean, stats.about_median):
        assert test(gaps) == test(np.array(gaps)) == test(tuple(gaps))
    assert stats.needed(gaps, 0.05) == stats.needed(np.array(gaps), 0.05)


def test_what_is_never_negative_loses_all_of_it_at_most() -> None:
    base = {seed: 10.0 + seed % 3 for seed in range(12)}
    other = {seed: 12.0 * (seed % 6 == 0) for seed in range(12)}
    gap = stats.difference(base, other)
    assert gap.change_low == -1.0 and gap.change == pytest.approx(24 / 132 - 1)
    assert stats.interval([0.9, 1.0, 1.0, 1.0, 0.8], limit=1.0).high == 1.0
    negative = stats.difference(base, {seed: -value for seed, value in base.items()})
    assert negative.change_low is not None and negative.change_low < -1


def test_no_difference_is_said_where_it_is_shown() -> None:
    small = [0.03 * (-1) ** at for at in range(20)]
    found = said(paired(small))
    assert found.verdict == "no difference"
    assert said(paired(small, margin=0.002)).verdict == "not shown", "the margin is smaller than what they differ by"
    assert said(paired(small[:4])).verdict == "not shown", "four seeds show nothing, nor that there is nothing"
    assert said(paired(small, seeds_needed=stats.RARE)).verdict == "not shown", "rare runs may still differ"


def test_differences_at_the_margin_are_seldom_called_none() -> None:
    draws = np.random.default_rng(13)
    wrong = 0
    for _ in range(400):
        base = dict(enumerate(draws.normal(100, 10, 20)))
        other = {seed: 1.05 * value + draws.normal(0, 2) for seed, value in base.items()}
        wrong += said(stats.difference(base, other)).verdict == "no difference"
    assert wrong / 400 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 400)


def test_pairs_find_what_independent_runs_do_not() -> None:
    """Common random numbers: what all runs of a seed have in common leaves with the difference."""
    draws = np.random.default_rng(3)
    traffic = draws.normal(100, 30, size=8)
    base = {seed: float(value) for seed, value in enumerate(traffic)}
    other = {seed: float(value + 5 + draws.normal(0, 1)) for seed, value in enumerate(traffic)}
    one = stats.difference(base, other)
    two = stats.difference(base, {seed + 100: value for seed, value in other.items()})
    assert one.paired and not two.paired
    assert one.mean == pytest.approx(two.mean)
    assert one.p == 2 / 256 and two.p is not None and two.p > 0.4
    assert one.low is not None and two.low is not None and two.low < 0 < one.low < one.mean


def test_only_seeds_that_both_have_are_compared() -> None:
    found = stats.difference({1: 10.0, 2: 20.0, 3: 1000.0}, {1: 11.0, 2: 22.0, 4: 0.0})
    assert (found.mean, found.seeds, found.paired, found.gaps) == (1.5, 2, True, (1.0, 2.0))
    assert (found.lower, found.higher) == (0, 2) and found.change == pytest.approx(0.1)


def test_the_change_of_what_is_proportional_is_exact() -> None:
    base = {seed: 100.0 + seed for seed in range(10)}
    found = stats.difference(base, {seed: 0.5 * value for seed, value in base.items()})
    assert (found.change, found.change_low, found.change_high) == pytest.approx((-0.5, -0.5, -0.5))
    assert stats.difference({1: 0.0, 2: 0.0}, {1: 1.0, 2: 2.0}).change is None, "nothing is a multiple of zero"


def test_rounding_is_no_difference() -> None:
    base = {seed: 0.1 * seed + 0.7 for seed in range(1, 8)}
    same = {seed: 0.1 * seed + 0.5 + 0.2 for seed in range(1, 8)}
    found = stats.difference(base, same)
    assert (found.mean, found.p, found.lower, found.higher) == (0.0, 1.0, 0, 0)


def test_a_hundred_thousand_values_take_no_time() -> None:
    base = {seed: float(seed % 7) for seed in range(100_000)}
    started = time.process_time()
    found = stats.difference(base, {seed: value + 1 + seed % 2 for seed, value in base.items()})
    assert time.process_time() - started < 3
    assert found.low is not None and found.mean == 1.5 and 1.49 < found.low < 1.5


# -- pooled percentiles --------------------------------------------------------------------------------------------------


def test_pooled_percentiles_are_of_all_flows_and_not_means_of_runs() -> None:
    runs = {1: np.arange(1.0, 101.0), 2: np.arange(1.0, 901.0)}
    assert stats.pooled(runs, 99).value == 890.0
    assert stats.pooled({1: [4.0, 2.0]}, 50) == stats.Pooled(2.0, None, None, 2, 1, None)
    with pytest.raises(ValueError, match="percent: 100 is out of range"):
        stats.pooled(runs, 100)
    with pytest.raises(ValueError, match="there are no values"):
        stats.pooled({1: []}, 50)


@pytest.mark.parametrize(("percent", "least"), [(99, 368), (1, 368), (50, 6), (90, 36)])
def test_an_end_that_so_few_values_do_not_bound_is_none(percent: float, least: int) -> None:
    """Of n values none lies above the true p-th percentile with a chance of p^n: 2.5 % with 367.04 values at p99."""
    draws = np.random.default_rng(3)
    for count in (least - 1, least):
        found = stats.pooled({1: draws.exponential(size=count - 2), 2: draws.exponential(size=2)}, percent)
        missing = [percent <= 50, percent >= 50] if count < least else [False, False]
        assert [found.low is None, found.high is None] == missing, count
        assert (found.flag == "few") >= any(missing)


def test_intervals_of_pooled_percentiles_know_that_flows_of_a_run_are_alike() -> None:
    """Each run has flows of its own level; an interval that took flows for independent would hold too seldom."""
    draws = np.random.default_rng(17)

    def runs(count: int) -> dict[int, np.ndarray[tuple[int], np.dtype[np.float64]]]:
        return {seed: draws.normal(draws.normal(0, 1), 1, 60) for seed in range(count)}

    held = [0, 0]
    true = [0.0, scipy_stats.norm.ppf(0.9) * math.sqrt(2)]
    for _ in range(200):
        made = runs(20)
        for at, percent in enumerate((50, 90)):
            found = stats.pooled(made, percent)
            assert found.low is not None and found.high is not None
            held[at] += found.low <= true[at] <= found.high
    assert min(held) / 200 >= 0.92 - 3 * math.sqrt(0.05 * 0.95 / 200), held
