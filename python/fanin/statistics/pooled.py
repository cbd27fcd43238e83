"""Percentiles of what all runs have together, such as all flows, with intervals that know that flows of a run are alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fanin.statistics.inputs import array, checked
from fanin.statistics.intervals import CONFIDENCE, Flag, unreliable
from fanin.statistics.means import about_mean

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Pooled:
    """A percentile of the values of all runs together.

    Attributes
    ----------
    value : float
        The percentile, by nearest rank.
    low, high : float or None
        Its interval; None of one run, and an end that so few values do not bound.
    values, seeds : int
        How many values there are, and of how many runs.
    flag : {"few", "rare", "skewed"} or None
        Why the interval is not to be relied on.
    """

    value: float
    low: float | None
    high: float | None
    values: int
    seeds: int
    flag: Flag | None


def pooled(runs: Mapping[int, Sequence[float] | NDArray[np.float64]], percent: float, *, confidence: float = CONFIDENCE) -> Pooled:
    """Return a percentile of the values of all runs together, with its interval.

    It is what one of all flows meets; the mean of the runs' percentiles is what a run shows. Flows of a run are no independent
    sample, runs are: a value belongs to the interval if, seed by seed, as many values above it as the percentile says could have
    been expected, by the interval of their mean.

    Source: Woodruff, "Confidence Intervals for Medians and Other Position Measures", Journal of the American Statistical
    Association 47, 1952, for clusters, from memory.

    Parameters
    ----------
    runs : mapping of int to sequence of float
        Seed → values of the run, any number of them.
    percent : float
        Above 0 and below 100.
    confidence : float
        Nominal coverage, 0.5 to 0.999.

    Raises
    ------
    ValueError
        There are no values, one is no finite number, or `percent` or `confidence` is out of range.
    """
    import numpy as np

    checked(confidence)
    if not 0 < percent < 100:
        raise ValueError(f"percent: {percent} is out of range; accepted: above 0 and below 100")
    if not isinstance(runs, Mapping):
        raise ValueError("pooled: is no mapping; accepted: seed → values of the run")
    sorted_runs = [np.sort(array(values, f"pooled: seed {seed}", empty=True)) for seed, values in runs.items()]
    every = np.sort(np.concatenate(sorted_runs)) if sorted_runs else np.zeros(0)
    if not every.size:
        raise ValueError("pooled: there are no values")
    share = 1 - percent / 100
    value = float(every[max(1, int(np.ceil(every.size * percent / 100 - 1e-9))) - 1])
    if len(sorted_runs) < 2:
        return Pooled(value, None, None, every.size, len(sorted_runs), None)

    def excess(level: float) -> NDArray[np.float64]:
        """Return by run how many values more lie above a level than should."""
        return np.array([own.size - np.searchsorted(own, level, "right") - share * own.size for own in sorted_runs])

    levels = np.unique(every)
    low = _first(levels, lambda level: about_mean(excess(level), confidence)[0] <= 0)
    high = _first(levels, lambda level: about_mean(excess(level), confidence)[1] < 0)
    # Were all values independent, none would lie beyond the true percentile this often: then the last value bounds nothing.
    beyond = (1 - confidence) / 2
    has_low, has_high = share**every.size <= beyond, (1 - share) ** every.size <= beyond
    flag: Flag | None = unreliable(excess(value)) if has_low and has_high else "few"
    ends = (min(value, low) if has_low else None, max(value, high) if has_high else None)
    return Pooled(value, *ends, every.size, len(sorted_runs), flag)


def _first(levels: NDArray[np.float64], holds: Callable[[float], bool]) -> float:
    """Return the first level for which something holds that holds for all beyond it; the last if for none."""
    begin, end = 0, len(levels) - 1
    while begin < end:
        middle = (begin + end) // 2
        if holds(levels[middle]):
            end = middle
        else:
            begin = middle + 1
    return float(levels[begin])
