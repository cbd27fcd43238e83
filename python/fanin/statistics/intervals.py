"""Intervals of means, medians and shares over seeds, and when that of a mean is not to be relied on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from fanin.statistics.inputs import array, checked
from fanin.statistics.means import about_mean, skewness, t_quantile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fanin.statistics.inputs import Values

CONFIDENCE: Final = 0.95
"""Nominal coverage of intervals."""

FEW: Final = 10
"""From so many seeds on the interval of a mean covers what it says, within three points, where nothing rare decides the mean."""

SOME: Final = 20
"""As many as the means of some metrics take instead, which runs that are none too rare decide."""

RARE_SHARE: Final = 0.03
"""What comes in fewer runs than this may be missing from all seeds of a mean that is called reliable."""

RARE: Final = math.ceil(math.log(1 - CONFIDENCE) / math.log(1 - RARE_SHARE))
"""Seeds after which what comes in `RARE_SHARE` of the runs has been seen in one of them, in 95 % of cases: 99."""

UNSEEN: Final = 0.975
"""How sure it is that no seed missed more runs than a verdict on a mean allows for: half of its 5 % goes to what was not seen."""

SKEWED: Final = 2.0
"""A mean needs at least so many seeds for the square of their skewness: with fewer, one or two seeds decide it."""

TYPICAL: Final = 10
"""Values other than the median that a mean needs: of many equal values few others decide it, as of timeouts."""

FULL: Final = 0.7
"""From this share of seeds at a limit on, those below it decide a mean, and have to be as many as `TYPICAL`."""

Flag = Literal["few", "rare", "skewed", "limit"]
"""Why the interval of a mean is not to be relied on: too few seeds for any; for a mean that rare runs decide; for these; or since
nearly all of these are at a limit, such as a buffer that is full, and the few others decide it."""


@dataclass(frozen=True)
class Interval:
    """What one value per seed says: mean and median with their intervals.

    Attributes
    ----------
    mean, low, high : float
        Mean of the values, and the ends of its interval, in their unit; ends are None with one value.
    seeds : int
        Number of values.
    median, median_low, median_high : float
        Median, and the ends of its interval, which are two of the values; ends are None with fewer than six values, at 95 %.
    least, most : float
        Range of the values.
    flag : {"few", "rare", "skewed", "limit"} or None
        Why the interval of the mean is not to be relied on.
    """

    mean: float
    low: float | None
    high: float | None
    seeds: int
    median: float
    median_low: float | None
    median_high: float | None
    least: float
    most: float
    flag: Flag | None

    @property
    def half_width(self) -> float | None:
        """Half of the width of the mean's interval, in the unit of the values; None without an interval."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2

    @property
    def note(self) -> str:
        """What is wrong with the interval of the mean, in words; empty where nothing is."""
        if self.seeds == 1:
            return "one seed: no interval"
        if self.flag == "rare":
            return (
                f"{self.seeds} seeds say nothing sure of this mean: what comes in {100 * unseen(self.seeds):.2g} % of runs may be "
                f"missing from all of them"
            )
        if self.flag == "skewed":
            return "few of the seeds decide this mean: the median says more"
        if self.flag == "limit":
            return "nearly all seeds are at the limit, where no more was possible: the few others decide this mean"
        return f"{self.seeds} seeds: the interval may hold the true mean too seldom" if self.flag == "few" else ""


def unseen(seeds: int, confidence: float = CONFIDENCE) -> float:
    """Return in what share of runs something may come that none of so many seeds showed: the upper end of none of them."""
    if seeds < 1:
        raise ValueError(f"seeds: {seeds} is out of range; accepted: 1 or more")
    return float(1 - (1 - confidence) ** (1 / seeds))


def about_median(values: Values, confidence: float = CONFIDENCE) -> tuple[float | None, float | None]:
    """Return the interval of a median: two of the values, as many from either end as the binomial distribution allows.

    It holds for any distribution. None where even the range holds the median less often: at 95 % with fewer than six values.

    Source: David & Nagaraja, Order Statistics (2003), section 7.1, from memory.
    """
    import numpy as np
    from scipy.special import bdtr

    given = array(values, "about_median")
    seeds = len(given)
    allowed = int((bdtr(np.arange(seeds), seeds, 0.5) <= (1 - confidence) / 2 + 1e-12).sum())
    if not allowed:
        return None, None
    ordered = np.sort(given)
    return float(ordered[allowed - 1]), float(ordered[-allowed])


def about_share(count: int, seeds: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return the interval of a share by how many of the seeds had something: Clopper and Pearson's, which never holds too seldom.

    Source: Clopper & Pearson, Biometrika 26(4), 1934, by quantiles of the beta distribution.
    """
    from scipy.special import betaincinv

    checked(confidence)
    if not 0 <= count <= seeds or seeds < 1:
        raise ValueError(f"about_share: {count} of {seeds} is no share; accepted: 0 up to all of one seed or more")
    beyond = (1 - confidence) / 2
    low = 0.0 if count == 0 else float(betaincinv(count, seeds - count + 1, beyond))
    high = 1.0 if count == seeds else float(betaincinv(count + 1, seeds - count, 1 - beyond))
    return low, high


def unreliable(values: NDArray[np.float64], seeds_needed: int | None = FEW, full: float = math.inf) -> Flag | None:
    """Return why the interval of the mean of some values is not to be relied on; None where nothing speaks against it.

    Parameters
    ----------
    values : array
        One per seed.
    seeds_needed : int or None
        With how many seeds such a mean is reliable at the earliest: `FEW`; `SOME` or `RARE` where rare runs decide it; None: never.
    full : float
        From this value on a run is at the limit of what there can be, such as a buffer that is full. Such values are alike for the
        mean, though they may differ by some bytes.
    """
    import numpy as np

    seeds = len(values)
    if seeds_needed is None or seeds < seeds_needed != FEW:
        return "rare"
    if seeds < FEW:
        return "few"
    below = int((values < full).sum())
    if below < TYPICAL and seeds - below >= FULL * seeds:
        return "limit"
    middle = float(np.median(values))
    others = int((np.abs(values - middle) > 1e-12 * float(np.abs(values).max())).sum())
    if 0 < others < min(TYPICAL, seeds // 2) or seeds < SKEWED * skewness(values) ** 2:
        return "skewed"
    return None


def interval(  # noqa: PLR0913 (all but one have a name)
    values: Values,
    *,
    confidence: float = CONFIDENCE,
    seeds_needed: int | None = FEW,
    limit: float = math.inf,
    full: float = math.inf,
    unseen_cost: float = 0.0,
) -> Interval:
    """Return mean and median of one value per seed, with their intervals.

    The same values give the same intervals, in any order. An interval of values none of which is below zero does not begin there.
    Values that are all equal say nothing of how others may differ, so that theirs, which has no width, is flagged as rare.

    Parameters
    ----------
    values : sequence of float
        One per seed, any unit.
    confidence : float
        Nominal coverage, 0.5 to 0.999.
    seeds_needed : int or None
        As for `unreliable`.
    limit : float
        The largest value that there can be, such as 1 of a share: the interval of the mean does not reach beyond.
    full : float
        As for `unreliable`.
    unseen_cost : float
        How much a run may add to a value that none of the seeds showed, in the unit of the values. Where as many runs as all seeds
        may have missed could so move the mean by more than half of the interval, the mean is flagged as rare.

    Raises
    ------
    ValueError
        There are no values, one is no finite number, or `confidence` or `unseen_cost` is out of range.
    """
    import numpy as np

    found = np.sort(array(values, "interval"))
    checked(confidence)
    if not unseen_cost >= 0:
        raise ValueError(f"unseen_cost: {unseen_cost} is out of range; accepted: 0 or more")
    least, most, mean = float(found[0]), float(found[-1]), float(found.mean())
    low: float | None = None
    high: float | None = None
    if len(found) > 1:
        low, high = (least, most) if least == most else about_mean(found, confidence)
        low, high = max(0.0, low) if least >= 0 else low, min(high, limit)
    median_low, median_high = about_median(found, confidence)
    flag: Flag | None = None
    if low is not None and high is not None:
        hidden = unseen(len(found)) * unseen_cost if unseen_cost else 0.0
        equal: Flag = "limit" if least >= full else "rare"
        flag = equal if least == most else unreliable(found, seeds_needed, full)
        flag = flag or ("rare" if hidden > (high - low) / 2 else None)
    return Interval(mean, low, high, len(found), float(np.median(found)), median_low, median_high, least, most, flag)


def share(values: Values, *, confidence: float = CONFIDENCE) -> Interval:
    """Return in what share of the seeds a value is above zero, as an `Interval` of that share, which holds with any number."""
    import numpy as np

    found = (array(values, "share") > 0).astype(float)
    checked(confidence)
    count, seeds = int(found.sum()), len(found)
    low, high = about_share(count, seeds, confidence)
    mean = count / seeds
    middle = float(np.median(found))
    one = seeds == 1
    return Interval(
        mean, None if one else low, None if one else high, seeds, middle, None, None, float(found.min()), float(found.max()), None
    )


def predicted(mean: float, deviation: float, known: int, further: int) -> tuple[float, float]:
    """Return between what the sum of `further` values lies, none below zero, by mean and deviation of `known` others, two or more.

    It is Student's prediction interval, with the usual confidence.
    """
    width = t_quantile(round(1 - CONFIDENCE, 12), known - 1) * deviation * math.sqrt(1 / known + 1 / further)
    return max(0.0, mean - width) * further, (mean + width) * further
