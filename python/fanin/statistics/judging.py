"""What differences between variants are worth: paired tests, adjusted for how many there are, and words for what they show."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from fanin.statistics import exact
from fanin.statistics.inputs import array, checked, checked_chance
from fanin.statistics.intervals import CONFIDENCE, FEW, UNSEEN, Flag, unreliable, unseen
from fanin.statistics.means import estimated, estimated_difference

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fanin.statistics.inputs import Values

ALPHA: Final = 0.05
"""Chance that a table calls any pair different where all are equal: Holm's bound on the whole family."""

MARGIN: Final = 0.05
"""Relative differences of means up to this are no difference, if they are shown to be so small."""

_RESAMPLES: Final = 9_999
_DRAW: Final = 20_151_009
"""Seed of the permutations of runs without pairs, fixed: the same values give the same chance."""

Direction = Literal["lower", "higher"]
"""Which values of a metric are better."""

ALONE: Final = 2
"""So many times the chance of a mean counts where nothing says that most of the runs agree: one test alone has to be surer."""

Verdict = Literal[
    "better",
    "worse",
    "better on average",
    "worse on average",
    "mostly better",
    "mostly worse",
    "no difference",
    "not shown",
    "equal",
    "one seed",
    "no data",
    "differs",
]
"""What is said of a difference; ``differs`` where no direction is better. ``on average``: the mean is, and that most of the runs
are is not shown, or they are not; ``mostly``: most of the runs that differ are, whatever others do to the mean; ``no difference``:
it is shown that there is none beyond the margin."""


@dataclass(frozen=True)
class Difference:
    """How much one variant differs from another: other − base.

    Attributes
    ----------
    mean : float
        Mean difference, in the unit of the values.
    low, high : float or None
        Its interval, in the same unit; None with one seed.
    change : float or None
        Difference of the means over the mean of the base (−0.1: ten per cent less); None if that is not above zero.
    change_low, change_high : float or None
        Its interval.
    seeds : int
        Pairs; without pairs, the number of values of the variant that has fewer.
    paired : bool
        Whether both had the same seeds, so that differences were taken seed by seed.
    lower, higher : int
        Seeds whose value is lower, and higher, than the base's; without pairs of all values with all.
    p_mean : float or None
        Chance of a mean at least as far from zero where the means are equal: the larger of that of the sign-flip test, which is
        exact where the variant makes no difference at all, and of Hall's, which allows for skewness; None with one seed.
    p_most : float or None
        Chance of so many seeds on one side (sign test).
    p_margin : float or None
        Chance of these values where the means differ by the margin or more; None where that cannot be said.
    flag : {"few", "rare", "skewed", "limit"} or None
        Why the mean is not to be relied on, as for `Interval`.
    gaps : tuple of float
        The differences by seed, in their order; empty without pairs.
    share : bool
        Whether each value is yes or no, so that the exact test of how many runs differ either way is that of the mean, too.
    """

    mean: float
    low: float | None
    high: float | None
    change: float | None
    change_low: float | None
    change_high: float | None
    seeds: int
    paired: bool
    lower: int
    higher: int
    p_mean: float | None
    p_most: float | None
    p_margin: float | None = None
    flag: Flag | None = None
    gaps: tuple[float, ...] = ()
    share: bool = False

    @property
    def mostly(self) -> bool:
        """Whether it can only be told on which side most of the runs that differ are: the mean is not to be relied on."""
        return self.flag is not None

    @property
    def rare(self) -> bool:
        """Whether more seeds of these values would not tell more, for few of them decide the mean."""
        return self.flag in ("rare", "skewed", "limit")

    @property
    def p_average(self) -> float | None:
        """The chance by which its mean is judged alone, `ALONE` times that of the mean; `p` where no mean is: with a flag."""
        if self.p_mean is None or self.flag is not None:
            return self.p
        return min(1.0, ALONE * self.p_mean)

    @property
    def p(self) -> float | None:
        """The chance by which it is judged: that of the sign test, and where the mean counts no less than that of the mean."""
        if self.p_mean is None or self.p_most is None:
            return None
        if self.mostly:
            return self.p_most
        if self.mean * (self.higher - self.lower) < 0:  # the mean lies where fewer of the runs do
            return 1.0
        return max(self.p_mean, self.p_most)


class Judgement(NamedTuple):
    """What is said of a difference, its chance adjusted for the table, and how many seeds would show what is not shown."""

    verdict: Verdict
    chance: float | None
    seeds: int | None = None


def difference(  # noqa: PLR0913 (all but two have a name)
    base: Mapping[int, float] | Values,
    other: Mapping[int, float] | Values,
    *,
    confidence: float = CONFIDENCE,
    seeds_needed: int | None = FEW,
    margin: float = MARGIN,
    rare_cost: float = 0.0,
    full: tuple[float, float] = (math.inf, math.inf),
) -> Difference:
    """Return how `other` differs from `base`, with its interval and its chances.

    Runs with the same seed have the same traffic (common random numbers), so what they have in common leaves with the difference.
    Only seeds that both have are used, and tests are exact: signs of pairs. Where they share none, both count as independent, and
    the tests are a permutation test of the means and that of Mann and Whitney. Of means, the interval must agree: where one variant
    alone has rare runs, exchanging signs says too much.

    Source: Law, Simulation Modeling and Analysis, 5th edition (2015), sections 10.2.1, 10.2.2 and 11.2, from memory.

    Parameters
    ----------
    base, other : mapping of int to float, or sequence of float
        Seed → value; both in one unit. Of two sequences the values at the same place belong together.
    confidence : float
        Nominal coverage, 0.5 to 0.999.
    seeds_needed : int or None
        With how many seeds such a mean is reliable at the earliest; see `fanin.statistics.intervals.unreliable`.
    margin : float
        Relative difference of the means that counts as none.
    rare_cost : float
        How much a run may add to a value that none of the seeds showed, in the unit of the values. As many runs as all seeds may
        have missed (`UNSEEN`) could then make up for a mean difference that is small: such a mean is flagged as rare.
    full : (float, float)
        From which value on a run of `base`, and one of `other`, is at a limit, as for `interval`. A seed of which both are does not
        differ.

    Raises
    ------
    ValueError
        One has no values, a value is no finite number, sequences have not the same length, or `confidence`, `margin` or
        `rare_cost` is out of range.
    """
    checked(confidence)
    if not 0 < margin < math.inf:
        raise ValueError(f"margin: {margin} is out of range; accepted: above 0")
    if not 0 <= rare_cost < math.inf:
        raise ValueError(f"rare_cost: {rare_cost} is out of range; accepted: 0 or more")
    base, other = by_seed(base, other)
    shared = sorted(base.keys() & other.keys())
    first, second = (array([values[seed] for seed in shared or sorted(values)], "difference") for values in (base, other))
    if shared:
        return _paired(first, second, _Asked(confidence, seeds_needed, margin, rare_cost, full))
    return _unpaired(first, second, _Asked(confidence, seeds_needed, margin, rare_cost, full))


def by_seed(base: Mapping[int, float] | Values, other: Mapping[int, float] | Values) -> tuple[Mapping[int, float], ...]:
    """Return values by seed; those of sequences have their places as seeds."""
    if isinstance(base, Mapping) and isinstance(other, Mapping):
        return base, other
    if isinstance(base, Mapping) or isinstance(other, Mapping):
        raise ValueError("difference: one has seeds and the other has none; accepted: two mappings, seed → value, or two sequences")
    one, two = array(base, "difference"), array(other, "difference")
    if len(one) != len(two):
        raise ValueError(
            f"difference: {len(one)} values and {len(two)}; accepted: two sequences of one length, whose places belong together, "
            "or two mappings, seed → value"
        )
    return dict(enumerate(one.tolist())), dict(enumerate(two.tolist()))


class _Asked(NamedTuple):
    """What `difference` was asked for."""

    confidence: float
    seeds_needed: int | None
    margin: float
    rare_cost: float
    full: tuple[float, float]

    def flag(self, base: NDArray[np.float64], other: NDArray[np.float64]) -> Flag | None:
        """Return why one of the two has a mean that is not to be relied on: their difference is no more reliable."""
        return unreliable(base, self.seeds_needed, self.full[0]) or unreliable(other, self.seeds_needed, self.full[1])


def _paired(base: NDArray[np.float64], other: NDArray[np.float64], asked: _Asked) -> Difference:
    import numpy as np

    confidence, full = asked.confidence, asked.full

    # What is left of equal values by rounding is no difference, and no spread.
    gaps = other - base
    rounding = 1e-12 * max(float(np.abs(base).max()), float(np.abs(other).max()))
    gaps[(np.abs(gaps) <= rounding) | ((base >= full[0]) & (other >= full[1]))] = 0.0
    seeds, mean = len(gaps), float(gaps.mean())
    sides = int((gaps < 0).sum()), int((gaps > 0).sum())
    change = float(other.mean() / base.mean() - 1) if float(base.mean()) > 0 else None
    if seeds == 1:
        return Difference(mean, None, None, change, None, None, seeds, True, *sides, None, None, gaps=tuple(gaps.tolist()))
    known = estimated(gaps)
    low, high = known.ends(confidence)
    ends: tuple[float | None, float | None] = (None, None)
    if change is not None and (base > 0).all():
        left = (other - base * (1 + change)) / float(base.mean())  # the delta method
        left_low, left_high = estimated(left).ends(confidence)
        ends = _possible(other, change + left_low), change + left_high
    flag = asked.flag(base, other) or unreliable(gaps, asked.seeds_needed)
    hidden = hidden_mean(seeds, asked.rare_cost)
    within = None if flag is not None or not (base > 0).all() else _within(base, other, asked.margin, hidden)
    flag = flag or ("rare" if abs(mean) < hidden else None)
    chances = max(exact.sign_flip(gaps).both, known.chances().both), exact.sign_test(gaps).both
    return Difference(
        mean, low, high, change, *ends, seeds, True, *sides, *chances, within, flag, gaps=tuple(float(gap) for gap in gaps)
    )


def _possible(other: NDArray[np.float64], change: float) -> float:
    """Return a change that there can be: what is never below zero loses a hundred per cent at most."""
    return max(-1.0, change) if float(other.min()) >= 0 else change


def hidden_mean(seeds: int, rare_cost: float) -> float:
    """Return how much runs that none of so many seeds showed may add to a mean, in the unit of their cost."""
    return unseen(seeds, UNSEEN) * rare_cost


def _within(base: NDArray[np.float64], other: NDArray[np.float64], margin: float, hidden: float) -> float:
    """Return the chance of values whose means are at least as near, where they differ by the margin: two one-sided tests.

    What runs that no seed showed may add to either mean is taken off the margin.

    Source: Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15(6), 1987, tests as verdicts take, from memory.
    """
    above, below = other + hidden - (1 + margin) * base, other - hidden - (1 - margin) * base
    return max(
        *(found.low for found in (exact.sign_flip(above), exact.sign_test(above), estimated(above).chances())),
        *(found.high for found in (exact.sign_flip(below), exact.sign_test(below), estimated(below).chances())),
    )


def _unpaired(base: NDArray[np.float64], other: NDArray[np.float64], asked: _Asked) -> Difference:
    import numpy as np
    from scipy import stats

    confidence, full = asked.confidence, asked.full
    seeds, mean = min(len(base), len(other)), float(other.mean() - base.mean())
    change = float(other.mean() / base.mean() - 1) if float(base.mean()) > 0 else None
    gaps = other[:, None] - base[None, :] if len(base) * len(other) <= 10**7 else np.zeros((0, 0))
    if gaps.size and max(map(float, (base.max(), other.max()))) >= min(full):
        gaps[(other >= full[1])[:, None] & (base >= full[0])[None, :]] = 0.0
    sides = int((gaps < 0).sum()), int((gaps > 0).sum())
    if seeds == 1:
        return Difference(mean, None, None, change, None, None, seeds, False, *sides, None, None)
    known = estimated_difference(base, other)
    ends: tuple[float | None, float | None] = (None, None)
    if change is not None and (base > 0).all():
        left = estimated_difference(base * (1 + change), other).ends(confidence)  # the delta method
        ends = _possible(other, change + left[0] / float(base.mean())), change + left[1] / float(base.mean())
    told = stats.permutation_test(
        (other, base),
        lambda one, two, axis: one.mean(axis=axis) - two.mean(axis=axis),
        n_resamples=_RESAMPLES,
        vectorized=True,
        rng=np.random.default_rng(_DRAW),
    )
    ranks = stats.mannwhitneyu(other, base).pvalue if gaps.any() else 1.0
    flag = asked.flag(base, other) or ("rare" if abs(mean) < hidden_mean(seeds, asked.rare_cost) else None)
    chances = min(1.0, max(float(told.pvalue), known.chances().both)), min(1.0, float(ranks))
    return Difference(mean, *known.ends(confidence), change, *ends, seeds, False, *sides, *chances, None, flag)


def holm(chances: Sequence[float | None]) -> list[float | None]:
    """Return chances adjusted for how many there are: one at or below alpha counts, with alpha for the whole family.

    The smallest of m is multiplied by m, the next one by m − 1, and so on; none falls below the one before. None stays None and is
    not counted.

    Source: Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian Journal of Statistics 6(2), 1979.

    Raises
    ------
    ValueError
        One is no number from 0 to 1.
    """
    for at, chance in enumerate(chances):
        checked_chance(chance, f"holm: chances[{at}]")
    known = sorted((chance, at) for at, chance in enumerate(chances) if chance is not None)
    adjusted: list[float | None] = [None] * len(chances)
    reached = 0.0
    for done, (chance, at) in enumerate(known):
        reached = max(reached, min(1.0, chance * (len(known) - done)))
        adjusted[at] = reached
    return adjusted


def verdicts(
    differences: Sequence[Difference | None], better: Sequence[Direction | None], *, alpha: float = ALPHA
) -> list[Judgement]:
    """Return what to say of each difference of one table, and its chance adjusted by `holm` over the whole table.

    Means alone, and "no difference", are judged by chances of their own, adjusted likewise.

    Parameters
    ----------
    differences : sequence of Difference or None
        All that are judged together; None where a variant has no data.
    better : sequence of {"lower", "higher"} or None
        Which values are better, for each.
    alpha : float
        Chance that any is called different where none is, above 0 and below 1.

    Raises
    ------
    ValueError
        There are not as many directions as differences, one is none, or `alpha` is out of range.
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha: {alpha} is out of range; accepted: above 0 and below 1")
    for at, direction in enumerate(better):
        if direction not in ("lower", "higher", None):
            meant = str(direction).lower()
            near = f"; did you mean {meant}?" if meant in ("lower", "higher") else ""
            raise ValueError(f"better[{at}]: {direction!r} is no direction; accepted: 'lower', 'higher', or None{near}")
    if len(differences) != len(better):
        raise ValueError(f"better: has {len(better)} directions of {len(differences)} differences; accepted: one of each")
    adjusted = holm([None if found is None else found.p for found in differences])
    averages = holm([None if found is None else found.p_average for found in differences])
    margins = holm([None if found is None or found.p is None else found.p_margin for found in differences])
    level = alpha / max(1, sum(chance is not None for chance in adjusted))
    return [
        _judged(found, direction, chances, alpha, level)
        for found, direction, *chances in zip(differences, better, adjusted, averages, margins, strict=True)
    ]


def _judged(
    found: Difference | None, better: Direction | None, chances: Sequence[float | None], alpha: float, level: float
) -> Judgement:
    chance, average, within = chances
    if found is None or chance is None:
        return Judgement("no data" if found is None else "one seed", None)
    alone = found.flag is None and chance > alpha and average is not None and average <= alpha
    if chance > alpha and not alone:
        same = within is not None and within <= alpha
        return Judgement("no difference", chance) if same else Judgement("not shown", chance, _needs(found, level))
    chance = average if alone else chance
    if better is None:
        return Judgement("differs", chance)
    less = found.higher < found.lower if found.mostly else found.mean < 0
    words: tuple[Verdict, Verdict] = ("better", "worse")
    if found.mostly:
        words = ("mostly better", "mostly worse")
    elif alone:
        words = ("better on average", "worse on average")
    return Judgement(words[less != (better == "lower")], chance)


def _needs(found: Difference, level: float) -> int | None:
    """Return how many seeds would show a difference, or its mean: more than there are, since these do not."""
    if not found.gaps:
        return None
    both = exact.needed(found.gaps, level, mean=not (found.rare or found.share))
    if found.share:
        return None if both is None else max(both, found.seeds + 1)
    alone = None if found.rare else exact.needed_on_average(found.gaps, level / ALONE)
    told = [both if both is None or found.rare else max(FEW, both), *([] if alone is None else [max(FEW, alone)])]
    seeds = min((own for own in told if own is not None), default=None)
    return None if seeds is None else max(seeds, found.seeds + 1)
