"""Means with what skewness does to them: Student's distribution after Hall's removal of skewness, as interval and as test."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from fanin.statistics.exact import Chances
from fanin.statistics.inputs import array

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fanin.statistics.inputs import Values


@lru_cache(maxsize=1024)
def t_quantile(chance: float, freedom: int) -> float:
    """Return the t beyond which, on either side, `chance` lies in Student's distribution."""
    from scipy.special import stdtrit

    if freedom < 1:
        raise ValueError(f"degrees of freedom: {freedom} is out of range; accepted: 1 or more")
    return float(stdtrit(freedom, 1 - chance / 2))


def skewness(values: NDArray[np.float64]) -> float:
    """Return the third central moment over the cube of the deviation; 0 of equal values."""
    gaps = values - values.mean()
    deviation = math.sqrt(float((gaps**2).mean()))
    if deviation <= 1e-12 * float(abs(values).max()):  # what rounding leaves of equal values
        return 0.0
    return float((gaps**3).mean()) / deviation**3


class Estimate(NamedTuple):
    """A mean, or a difference of means, as far as it is known.

    Attributes
    ----------
    mean, error : float
        The mean and its standard error; an error of 0 where all values are equal.
    skew : float
        Skewness of the distribution of the mean: that of the values over the root of their number.
    freedom : int
        Degrees of freedom.
    """

    mean: float
    error: float
    skew: float
    freedom: int

    def ends(self, confidence: float) -> tuple[float, float]:
        """Return the interval of the mean."""
        beyond = t_quantile(round(1 - confidence, 12), self.freedom)
        return self.mean - self._undone(beyond) * self.error, self.mean - self._undone(-beyond) * self.error

    def _undone(self, q: float) -> float:
        """Return the t of which the transformation is q."""
        slope = self.skew / 3
        return q if abs(slope) < 1e-9 else (math.cbrt(1 + 3 * slope * (q - self.skew / 6)) - 1) / slope

    def chances(self) -> Chances:
        """Return the chances of a mean at least as low, and as high, where it is zero: the test that the interval belongs to."""
        from scipy.special import stdtr

        if self.error == 0:
            return Chances(float(self.mean >= 0), float(self.mean <= 0))
        t, slope = self.mean / self.error, self.skew / 3
        q = t + slope * t**2 + slope**2 * t**3 / 3 + self.skew / 6
        return Chances(float(stdtr(self.freedom, q)), float(stdtr(self.freedom, -q)))


def estimated(values: NDArray[np.float64]) -> Estimate:
    """Return what values say of their mean; of two values no skewness is known, so that theirs is Student's.

    Source: Hall, "On the Removal of Skewness by Transformation", Journal of the Royal Statistical Society B 54(1), 1992,
    from memory.
    """
    return _of(float(values.mean()), (values,), len(values) - 1)


def estimated_difference(base: NDArray[np.float64], other: NDArray[np.float64]) -> Estimate:
    """Return what two independent samples say of the difference of their means, with the degrees of freedom of the smaller one.

    Errors and third cumulants of the two means add up, so that Hall's transformation is that of one sample.

    Source: Law, Simulation Modeling and Analysis, 5th edition (2015), section 10.2.2, for the degrees of freedom, from memory.
    """
    return _of(float(other.mean() - base.mean()), (other, -base), min(len(base), len(other)) - 1)


def _of(mean: float, parts: tuple[NDArray[np.float64], ...], freedom: int) -> Estimate:
    error = math.hypot(*(float(values.std(ddof=1)) / math.sqrt(len(values)) for values in parts))
    if error <= 1e-12 * max(float(abs(values).max()) for values in parts):
        return Estimate(mean, 0.0, 0.0, freedom)
    return Estimate(mean, error, sum(_third_cumulant(values) for values in parts) / error**3, freedom)


def _third_cumulant(values: NDArray[np.float64]) -> float:
    """Return that of the mean of values, by the unbiased estimate of theirs; 0 of fewer than three."""
    seeds = len(values)
    if seeds < 3:
        return 0.0
    return float(((values - values.mean()) ** 3).sum()) / (seeds * (seeds - 1) * (seeds - 2))


def about_mean(values: Values, confidence: float = 0.95) -> tuple[float, float]:
    """Return the interval of a mean: Student's, with its skewness removed by Hall's monotone cubic transformation.

    Of values without skewness it is Student's.
    """
    made = array(values, "about_mean")
    if made.size < 2:
        raise ValueError("about_mean: one value has no interval; accepted: two values or more")
    return estimated(made).ends(confidence)
