"""Statistics over seeds: bootstrap intervals, paired differences, and which of many differences count.

docs/compare.md states the rule in words. Nothing here knows what a metric is; `fanin.compare` and others bring the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "ALPHA",
    "CONFIDENCE",
    "FEW",
    "MANY",
    "RESAMPLES",
    "Difference",
    "Direction",
    "Interval",
    "Verdict",
    "difference",
    "holm",
    "interval",
    "predicted",
    "student",
    "verdicts",
    "worth",
]

CONFIDENCE: Final = 0.95
"""Nominal coverage of intervals."""

ALPHA: Final = 0.05
"""Chance that a table calls any pair different where all are equal: Holm's bound on the whole family."""

MANY: Final = 1_000
"""From more seeds than this on intervals are Student's: resampling gives the same, and takes seconds."""

RESAMPLES: Final = 9_999
"""Bootstrap resamples; one less than a round number, so that quantiles are order statistics (Efron & Tibshirani, section 12.5)."""

FEW: Final = 5
"""With fewer seeds than this the interval is the range of the values, and `worth` says how often that holds the true value."""

_DRAW: Final = 20_151_009
"""Seed of the resampling, fixed: the same values give the same interval."""

_CHUNK: Final = 4_000_000
"""Draws held in memory at once."""

Direction = Literal["lower", "higher"]
"""Which values of a metric are better."""

Verdict = Literal["better", "worse", "no difference", "equal", "too few seeds", "one seed", "no data", "differs"]
"""What is said of a difference; ``differs`` where no direction is better."""


@dataclass(frozen=True)
class Interval:
    """A mean over seeds with what is known of it.

    Attributes
    ----------
    mean : float
        Mean of the values, in their unit.
    low, high : float or None
        Ends of the interval, in the same unit; None with one value.
    seeds : int
        Number of values.
    covers : float or None
        How often such an interval holds the true value: the confidence asked for; less with 2 to 4 seeds, see `worth`.
    """

    mean: float
    low: float | None
    high: float | None
    seeds: int
    covers: float | None

    @property
    def note(self) -> str:
        """What the interval is worth, in words; empty from `FEW` seeds on."""
        if self.seeds == 1:
            return "one seed: no interval"
        if self.seeds < FEW and self.covers is not None:
            return (
                f"{self.seeds} seeds: the interval is their range, which holds the true value in {100 * self.covers:.3g} % of cases"
            )
        return ""

    @property
    def half_width(self) -> float | None:
        """Half of the interval's width, in the unit of the values; None without an interval."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2


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
        Its interval, from the same resamples.
    seeds : int
        Pairs; without pairs, the number of values of the variant that has fewer.
    paired : bool
        Whether both had the same seeds, so that differences were taken seed by seed.
    p : float or None
        Chance of a difference at least as large where there is none; None with one seed.
    covers : float or None
        As for `Interval`.
    """

    mean: float
    low: float | None
    high: float | None
    change: float | None
    change_low: float | None
    change_high: float | None
    seeds: int
    paired: bool
    p: float | None
    covers: float | None


def worth(seeds: int, confidence: float = CONFIDENCE) -> float | None:
    """Return how often the interval of so many values holds the true value; None for one value.

    The range of n values holds the median of their distribution with probability 1 − 2^(1−n): 50 % for 2, 75 % for 3, 87.5 % for 4.

    Source: David & Nagaraja, Order Statistics (2003), section 7.1, from memory.
    """
    if seeds < 2:
        return None
    return confidence if seeds >= FEW else min(confidence, 1 - 2.0 ** (1 - seeds))


def student(t: float, freedom: int) -> float:
    """Return the chance of a value beyond ±`t` in Student's distribution with `freedom` degrees of freedom.

    Source: Abramowitz & Stegun (1964), 26.7.3 and 26.7.4: a finite sum for whole degrees of freedom.
    """
    if freedom < 1:
        raise ValueError(f"degrees of freedom: {freedom} is out of range; accepted: 1 or more")
    if math.isinf(t):
        return 0.0
    angle = math.atan2(abs(t), math.sqrt(freedom))
    cosine = math.cos(angle)
    odd = freedom % 2
    total, term = 0.0, cosine if odd else 1.0
    for power in range(odd, freedom - 1, 2):
        total += term
        term *= cosine * cosine * (power + 1) / (power + 2)
    inside = math.sin(angle) * total
    if odd:
        inside = 2 / math.pi * (angle + inside)
    return min(1.0, max(0.0, 1 - inside))


@cache
def quantile(chance: float, freedom: int) -> float:
    """Return the t beyond which, on either side, `chance` lies."""
    low, high = 0.0, 1.0
    while student(high, freedom) > chance:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if student(middle, freedom) > chance else (low, middle)
    return high


def predicted(mean: float, deviation: float, known: int, further: int) -> tuple[float, float]:
    """Return between what the sum of `further` values lies, none below zero, by mean and deviation of `known` others, two or more.

    It is Student's prediction interval, with the usual confidence.
    """
    width = quantile(round(1 - CONFIDENCE, 12), known - 1) * deviation * math.sqrt(1 / known + 1 / further)
    return max(0.0, mean - width) * further, (mean + width) * further


@cache
def _rank(seeds: int, confidence: float) -> int:
    """Return which of the sorted resampled values, from either end, is the end of the interval.

    A bootstrap interval of few values is too narrow: resampling takes n for n − 1, and the normal distribution for Student's. The
    expanded percentile interval takes quantiles further out, by as much as makes both good for a mean.

    Source: Efron & Tibshirani (1993), chapter 13 (percentile interval); Hesterberg, "What Teachers Should Know About the
    Bootstrap", The American Statistician 69(4), 2015, section 5.3 (expansion), from memory.
    """
    beyond = math.sqrt(seeds / (seeds - 1)) * quantile(1 - confidence, seeds - 1)
    share = math.erfc(beyond / math.sqrt(2)) / 2
    return max(1, math.floor((RESAMPLES + 1) * share))


def _resampled(columns: Sequence[NDArray[np.float64]], stream: int = 0) -> list[NDArray[np.float64]]:
    """Return the means of resamples, of each column; all columns of one resample take the same places, so pairs stay pairs.

    Columns that have nothing in common are drawn from different streams.

    """
    import numpy as np

    made: list[list[Any]] = [[] for _ in columns]
    for places in _places(len(columns[0]), stream):
        for column, means in zip(columns, made, strict=True):
            means.append(column[places].mean(axis=1))
    return [np.concatenate(means) for means in made]


def _places(size: int, stream: int) -> Iterable[NDArray[np.intp]]:
    """Return which values each resample takes, in pieces that fit into memory; all tables of so many seeds take the same."""
    return _kept(size, stream) if size * RESAMPLES <= _CHUNK else _drawn(size, stream)


@lru_cache(maxsize=4)
def _kept(size: int, stream: int) -> tuple[NDArray[np.intp], ...]:
    return tuple(_drawn(size, stream))


def _drawn(size: int, stream: int) -> Iterator[NDArray[np.intp]]:
    """Draw by the old Mersenne Twister, whose stream NumPy keeps as it is (NEP 19)."""
    import numpy as np

    draws = np.random.RandomState(_DRAW + stream)
    left, rows = RESAMPLES, max(1, _CHUNK // size)
    while left:
        yield draws.randint(0, size, (min(rows, left), size))
        left -= min(rows, left)


def _ends(means: NDArray[np.float64], seeds: int, confidence: float) -> tuple[float, float]:
    import numpy as np

    means = np.sort(means)
    rank = _rank(seeds, confidence)
    return float(means[rank - 1]), float(means[-rank])


def _about(mean: float, error: float, seeds: int, confidence: float) -> tuple[float, float]:
    """Return Student's interval around a mean with its standard error."""
    half = quantile(1 - confidence, seeds - 1) * error
    return mean - half, mean + half


def _error(array: NDArray[np.float64]) -> float:
    """Return the standard error of the mean."""
    return float(array.std(ddof=1)) / math.sqrt(len(array))


def _array(values: Sequence[float], what: str) -> NDArray[np.float64]:
    import numpy as np

    if not len(values):
        raise ValueError(f"{what}: there are no values")
    array = np.array([float(value) for value in values])
    if not np.isfinite(array).all():
        raise ValueError(f"{what}: holds a value that is no finite number")
    return array


def _checked(confidence: float) -> float:
    if not 0.5 <= confidence <= 0.999:
        raise ValueError(f"confidence: {confidence} is out of range; accepted: 0.5 to 0.999")
    return confidence


def interval(values: Sequence[float], *, confidence: float = CONFIDENCE) -> Interval:
    """Return the mean of one value per seed, and its interval.

    From `FEW` values on the expanded percentile bootstrap of the mean, beyond `MANY` Student's interval; with 2 to 4 values their
    range; with one none. Order does not matter, and the same values give the same interval on every machine.

    Parameters
    ----------
    values : sequence of float
        One per seed, any unit.
    confidence : float
        Nominal coverage, 0.5 to 0.999.

    Raises
    ------
    ValueError
        There are no values, one is no finite number, or `confidence` is out of range.
    """
    import numpy as np

    array = np.sort(_array(values, "interval"))
    seeds, covers = len(array), worth(len(array), _checked(confidence))
    low: float | None = None
    high: float | None = None
    if 2 <= seeds < FEW or array[0] == array[-1]:
        low, high = (float(array[0]), float(array[-1])) if seeds > 1 else (None, None)
    elif seeds > MANY:
        low, high = _about(float(array.mean()), _error(array), seeds, confidence)
    elif seeds > 1:
        low, high = _ends(_resampled([array])[0], seeds, confidence)
    return Interval(float(array.mean()), low, high, seeds, covers)


def difference(base: Mapping[int, float], other: Mapping[int, float], *, confidence: float = CONFIDENCE) -> Difference:
    """Return how `other` differs from `base`, with its interval and the chance of it where there is no difference.

    Runs with the same seed have the same traffic (common random numbers), so what they have in common leaves with the difference.
    Only seeds that both have are used; where they share none, both count as independent.

    The chance is that of the paired t test; without pairs that of Welch's, with the degrees of freedom of the variant that has
    fewer values less one, which is on the safe side. Differences that are all the same have the chance of the sign test, 2^(1−n).

    Source: Law, Simulation Modeling and Analysis, 5th edition (2015), sections 10.2.1, 10.2.2 and 11.2, from memory.

    Parameters
    ----------
    base, other : mapping of int to float
        Seed → value; both in one unit.
    confidence : float
        Nominal coverage, 0.5 to 0.999.

    Raises
    ------
    ValueError
        One has no values, a value is no finite number, or `confidence` is out of range.
    """
    _checked(confidence)
    shared = sorted(base.keys() & other.keys())
    first, second = (_array([values[seed] for seed in shared or sorted(values)], "difference") for values in (base, other))
    return _paired(first, second, confidence) if shared else _unpaired(first, second, confidence)


def _paired(base: NDArray[np.float64], other: NDArray[np.float64], confidence: float) -> Difference:

    gaps = other - base
    seeds, mean = len(gaps), float(gaps.mean())
    if seeds == 1:
        return Difference(mean, None, None, *_change(base, other), seeds, True, None, None)
    spread = float(gaps.std(ddof=1))
    if seeds > MANY:
        low, high = _about(mean, _error(gaps), seeds, confidence)
        rest = other - base * (other.mean() / base.mean()) if base.mean() else gaps
        change = _change_about(base, other, _error(rest), seeds, confidence)
    else:
        resampled = _resampled([base, other]) if seeds >= FEW else None
        low, high = _ends(resampled[1] - resampled[0], seeds, confidence) if resampled else (float(gaps.min()), float(gaps.max()))
        change = _change(base, other, resampled, seeds, confidence)
    chance = _chance(base, other, mean, spread / math.sqrt(seeds), seeds)
    return Difference(mean, low, high, *change, seeds, True, chance, worth(seeds, confidence))


def _unpaired(base: NDArray[np.float64], other: NDArray[np.float64], confidence: float) -> Difference:
    seeds, mean = min(len(base), len(other)), float(other.mean() - base.mean())
    if seeds == 1:
        return Difference(mean, None, None, *_change(base, other), seeds, False, None, None)
    spread = math.hypot(_error(base), _error(other))
    if max(len(base), len(other)) > MANY and seeds >= FEW:
        low, high = _about(mean, spread, seeds, confidence)
        ratio = float(other.mean() / base.mean()) if base.mean() else 0.0
        change = _change_about(base, other, math.hypot(ratio * _error(base), _error(other)), seeds, confidence)
    elif seeds >= FEW:
        means = [_resampled([base])[0], _resampled([other], 1)[0]]
        low, high = _ends(means[1] - means[0], seeds, confidence)
        change = _change(base, other, means, seeds, confidence)
    else:
        low, high = float(other.min() - base.max()), float(other.max() - base.min())
        change = _change(base, other)  # without an interval: which value belongs to which is not known
    chance = _chance(base, other, mean, spread, seeds)
    return Difference(mean, low, high, *change, seeds, False, chance, worth(seeds, confidence))


def _chance(base: NDArray[np.float64], other: NDArray[np.float64], mean: float, error: float, seeds: int) -> float:
    """Return p of a mean difference with its error: by Student's t, or by signs where all differences are the same."""
    import numpy as np

    # What is left of equal values by rounding is no spread.
    if error * math.sqrt(seeds) <= 1e-12 * max(float(np.abs(base).max()), float(np.abs(other).max())):
        return 2.0 ** (1 - seeds) if mean else 1.0
    return student(mean / error, seeds - 1)


def _change(
    base: NDArray[np.float64],
    other: NDArray[np.float64],
    resampled: Sequence[NDArray[np.float64]] | None = None,
    seeds: int = 1,
    confidence: float = CONFIDENCE,
) -> tuple[float | None, float | None, float | None]:
    """Return the change of the mean relative to the base, and its interval; nothing where the base may be zero or less."""
    if not float(base.mean()) > 0:
        return None, None, None
    change = float(other.mean() / base.mean() - 1)
    if not (base > 0).all():  # some resamples would divide by nothing
        return change, None, None
    if resampled is not None:
        return (change, *_ends(resampled[1] / resampled[0] - 1, seeds, confidence))
    if seeds == 1:
        return change, None, None
    ratios = other / base - 1
    return change, float(ratios.min()), float(ratios.max())


def _change_about(
    base: NDArray[np.float64], other: NDArray[np.float64], error: float, seeds: int, confidence: float
) -> tuple[float | None, float | None, float | None]:
    """Return the change of many values: `error` is that of the mean of other − ratio × base (the delta method)."""
    change, _, _ = _change(base, other)
    if change is None or not (base > 0).all():
        return change, None, None
    return (change, *_about(change, error / float(base.mean()), seeds, confidence))


def holm(chances: Sequence[float | None]) -> list[float | None]:
    """Return chances adjusted for how many there are: one at or below alpha counts, with alpha for the whole family.

    The smallest of m is multiplied by m, the next one by m − 1, and so on; none falls below the one before. None stays None and is
    not counted.

    Source: Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian Journal of Statistics 6(2), 1979.
    """
    known = sorted((chance, at) for at, chance in enumerate(chances) if chance is not None)
    adjusted: list[float | None] = [None] * len(chances)
    reached = 0.0
    for done, (chance, at) in enumerate(known):
        reached = max(reached, min(1.0, chance * (len(known) - done)))
        adjusted[at] = reached
    return adjusted


def verdicts(
    differences: Sequence[Difference | None], better: Sequence[Direction | None], *, alpha: float = ALPHA
) -> list[tuple[Verdict, float | None]]:
    """Return what to say of each difference of one table, and its chance adjusted by `holm` over the whole table.

    Parameters
    ----------
    differences : sequence of Difference or None
        All that are judged together; None where a variant has no data.
    better : sequence of {"lower", "higher"} or None
        Which values are better, for each.
    alpha : float
        Chance that any is called different where none is.
    """
    adjusted = holm([None if found is None else found.p for found in differences])
    return [
        (_verdict(found, direction, chance, alpha), chance)
        for found, direction, chance in zip(differences, better, adjusted, strict=True)
    ]


def _verdict(found: Difference | None, better: Direction | None, chance: float | None, alpha: float) -> Verdict:
    if found is None:
        return "no data"
    if chance is None:
        return "one seed"
    if chance > alpha:
        return "no difference" if found.seeds >= FEW else "too few seeds"
    if better is None:
        return "differs"
    return "better" if (found.mean < 0) == (better == "lower") else "worse"
