"""Exact tests of pairs: no distribution is assumed, and no number of seeds is too small for them to hold."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from fanin.statistics.inputs import array

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fanin.statistics.inputs import Values

_LISTED: Final = 16
"""Up to so many pairs all their signs are gone through."""

_MANY: Final = 300
"""From more pairs than this on the sum of signed differences is taken for normal."""

_STEPS: Final = 4096
_SUM: Final = 2**16
"""Between, differences are counted in steps: the largest is `_STEPS` of them, with fewer where all would be more than `_SUM`."""

MOST_NEEDED: Final = 10_000
"""Numbers of seeds beyond this are not told."""

_POWER: Final = 0.88
"""How often each of two tests shows a difference with as many seeds as `needed` says, so that both do in four of five cases."""

_POWER_ALONE: Final = 0.8
"""How often one test shows it with as many."""


class Chances(NamedTuple):
    """How likely a result at least as low, as high, or as far from nothing is, where nothing differs."""

    low: float
    high: float

    @property
    def both(self) -> float:
        """Of both sides together."""
        return min(1.0, 2 * min(self))


def sign_flip(gaps: Values) -> Chances:
    """Return the chances of the mean of paired differences, if each might as well have the other sign.

    Where a variant makes no difference, what a seed gives one it might as well have given the other. All signs are gone through up
    to 16 pairs; beyond, the distribution is counted over a grid, on which the test is exact, too; from 300 pairs on it is normal.

    Source: Fisher, The Design of Experiments (1935), section 21; Pagano & Tritchler, Journal of the American Statistical
    Association 78, 1983 (counting), from memory.
    """
    given = array(gaps, "sign_flip")
    return _flipped(given[given != 0])


def _flipped(gaps: NDArray[np.float64]) -> Chances:
    """Return the chances of a mean of differences none of which is zero."""
    import numpy as np

    sizes = np.abs(gaps)
    if not gaps.size:
        return Chances(1.0, 1.0)
    if gaps.size <= _LISTED:
        sums = np.zeros(1)
        for size in sizes:
            sums = np.concatenate([sums - size, sums + size])
        total, rounding = float(gaps.sum()), 1e-9 * float(sizes.sum())
        return Chances(float((sums <= total + rounding).mean()), float((sums >= total - rounding).mean()))
    if gaps.size > _MANY:
        from scipy.special import ndtr

        z = float(gaps.sum()) / math.sqrt(float((gaps**2).sum()))
        return Chances(float(ndtr(z)), float(ndtr(-z)))
    steps = np.rint(sizes / sizes.max() * max(_STEPS // 16, min(_STEPS, _SUM // gaps.size))).astype(np.int64)
    ways, size = np.zeros(int(steps.sum()) + 1), 1
    ways[0] = 1
    for step in steps.tolist():
        ways[step : size + step] += ways[:size]
        size += step
    positive, each = int(steps[gaps > 0].sum()), 0.5**gaps.size
    return Chances(min(1.0, float(ways[: positive + 1].sum()) * each), min(1.0, float(ways[positive:].sum()) * each))


def sign_test(gaps: Values) -> Chances:
    """Return the chances of so many differences above and below zero, if either is as likely; those that are zero do not count.

    It assumes nothing of how large differences are.

    Source: Conover, Practical Nonparametric Statistics (1999), section 3.4, from memory.
    """
    from scipy.special import bdtr

    given = array(gaps, "sign_test")
    above, below = int((given > 0).sum()), int((given < 0).sum())
    if not above + below:
        return Chances(1.0, 1.0)
    return Chances(float(bdtr(above, above + below, 0.5)), float(bdtr(below, above + below, 0.5)))


def least(level: float) -> int:
    """Return the fewest pairs with which an exact test on both sides can reach a level, all on one side: 6 for 5 %."""
    return max(2, math.ceil(1 - math.log2(level)))


@lru_cache
def _critical(level: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return numbers of seeds, and how many of each must lie on one side for a sign test to reach a level."""
    import numpy as np
    from scipy.special import bdtrik

    # All numbers up to a hundred, then some per cent apart: that is as well as a few seeds can tell.
    counts = np.unique(np.concatenate([np.arange(least(level), 101), np.geomspace(100, MOST_NEEDED, 120).round()])).astype(int)
    counts = counts[counts >= least(level)]
    return counts, np.ceil(bdtrik(1 - level / 2, counts, 0.5) - 1e-9) + 1


def needed(gaps: Values, level: float, *, mean: bool = True) -> int | None:
    """Return how many seeds would show what these show, in four of five cases, if that is how it is; None if not 10,000 would.

    Parameters
    ----------
    gaps : sequence of float
        Differences by seed.
    level : float
        What chance counts as shown.
    mean : bool
        Whether the mean must be shown, too, or only on which side more of the runs are.
    """
    import numpy as np
    from scipy.special import bdtrc

    given = array(gaps, "needed")
    above, below = int((given > 0).sum()), int((given < 0).sum())
    if not above + below:
        return None
    more, untied = max(above, below), above + below
    likely = min((more + 0.5) / (untied + 1), 0.999)
    counts, critical = _critical(level)
    with np.errstate(invalid="ignore"):
        power = np.where(critical <= counts, bdtrc(np.minimum(critical, counts) - 1, counts, likely), 0.0)
    enough = np.flatnonzero(power >= _POWER)
    if not enough.size:
        return None
    seeds = math.ceil(int(counts[enough[0]]) * len(given) / untied)
    if mean and len(given) > 1 and float(given.std(ddof=1)):
        if (float(np.median(given)) < 0) != (float(given.mean()) < 0):
            return None
        of_mean = _for_the_mean(given, level, _POWER)
        if of_mean is None:
            return None
        seeds = max(seeds, of_mean)
    return seeds if seeds <= MOST_NEEDED else None


def needed_on_average(gaps: Values, level: float) -> int | None:
    """Return how many seeds would show that the mean differs, in four of five cases, whatever most of the runs do."""
    found = _for_the_mean(array(gaps, "needed_on_average"), level, _POWER_ALONE)
    return None if found is None or found > MOST_NEEDED else max(least(level), found)


def _for_the_mean(gaps: NDArray[np.float64], level: float, power: float) -> int | None:
    """Return how many seeds show a mean with a chance, as if means were normal; None where it is zero, or nothing varies."""
    from scipy.special import ndtri

    deviation = float(gaps.std(ddof=1)) if len(gaps) > 1 else 0.0
    size = abs(float(gaps.mean())) / deviation if deviation else 0.0
    if size == 0:
        return None
    beyond = -float(ndtri(level / 2))
    return math.ceil(((beyond + float(ndtri(power))) / size) ** 2 + beyond**2 / 2)
