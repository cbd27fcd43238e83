"""Differences of yes and no: in what share of the runs something comes, such as a timeout."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fanin.statistics import exact
from fanin.statistics.inputs import array, checked
from fanin.statistics.intervals import CONFIDENCE
from fanin.statistics.judging import Difference, by_seed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fanin.statistics.inputs import Values


def difference_of_shares(
    base: Mapping[int, float] | Values, other: Mapping[int, float] | Values, *, confidence: float = CONFIDENCE
) -> Difference:
    """Return how the share of runs that have something differs: values above zero are yes, others no.

    With the same seeds it is judged by McNemar's exact test: on which side more of the seeds are that are yes in one variant alone.
    If both shares are equal either side is as likely, whatever the rest does. So this test is one of the mean itself, no number of
    seeds is too small for it, and what no seed showed is in it. Where variants share no seed it is Fisher's.

    The interval is that of Bonett and Price, without pairs that of Agresti and Caffo: a run of each kind is added on either side.

    Source: McNemar, Psychometrika 12, 1947; Bonett & Price, Journal of Educational and Behavioral Statistics 37, 2012; Agresti &
    Caffo, The American Statistician 54, 2000, from memory.

    Parameters
    ----------
    base, other : mapping of int to float, or sequence of float
        As for `difference`.
    confidence : float
        Nominal coverage, 0.5 to 0.999.

    Raises
    ------
    ValueError
        As for `difference`.
    """
    checked(confidence)
    base, other = by_seed(base, other)
    shared = sorted(base.keys() & other.keys())
    first, second = (
        (array([values[seed] for seed in shared or sorted(values)], "difference_of_shares") > 0).astype(float)
        for values in (base, other)
    )
    return _paired_shares(first, second, confidence) if shared else _unpaired_shares(first, second, confidence)


def _paired_shares(base: NDArray[np.float64], other: NDArray[np.float64], confidence: float) -> Difference:
    gaps = other - base
    seeds, mean = len(gaps), float(gaps.mean())
    lower, higher = int((gaps < 0).sum()), int((gaps > 0).sum())
    change = float(other.mean() / base.mean() - 1) if float(base.mean()) > 0 else None
    told = tuple(gaps.tolist())
    if seeds == 1:
        return Difference(mean, None, None, change, None, None, 1, True, lower, higher, None, None, gaps=told, share=True)
    less, more = (lower + 1) / (seeds + 2), (higher + 1) / (seeds + 2)
    low, high = _about(more - less, math.sqrt((less + more - (more - less) ** 2) / (seeds + 2)), confidence)
    chance = exact.sign_test(gaps).both
    return Difference(mean, low, high, change, None, None, seeds, True, lower, higher, chance, chance, gaps=told, share=True)


def _unpaired_shares(base: NDArray[np.float64], other: NDArray[np.float64], confidence: float) -> Difference:
    from scipy.stats import fisher_exact

    yes, of = (int(base.sum()), int(other.sum())), (len(base), len(other))
    mean, seeds = yes[1] / of[1] - yes[0] / of[0], min(of)
    sides = yes[0] * (of[1] - yes[1]), yes[1] * (of[0] - yes[0])
    change = yes[1] / of[1] / (yes[0] / of[0]) - 1 if yes[0] else None
    if seeds == 1:
        return Difference(mean, None, None, change, None, None, 1, False, *sides, None, None, share=True)
    shares = [(count + 1) / (total + 2) for count, total in zip(yes, of, strict=True)]
    error = math.sqrt(sum(own * (1 - own) / (total + 2) for own, total in zip(shares, of, strict=True)))
    low, high = _about(shares[1] - shares[0], error, confidence)
    chance = min(1.0, float(fisher_exact([[count, total - count] for count, total in zip(yes, of, strict=True)]).pvalue))
    return Difference(mean, low, high, change, None, None, seeds, False, *sides, chance, chance, share=True)


def _about(middle: float, error: float, confidence: float) -> tuple[float, float]:
    """Return the ends of an interval of a difference of shares, of which there is none beyond one."""
    from scipy.special import ndtri

    beyond = float(ndtri((1 + confidence) / 2)) * error
    return max(-1.0, middle - beyond), min(1.0, middle + beyond)
