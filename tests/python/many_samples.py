"""Intervals of many samples at once, as `fanin.statistics.interval` and `difference` make one; a test holds both together."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import real_seeds
from fanin import statistics
from fanin.statistics import intervals

Flags = NDArray[np.bool_]


class Coverage(NamedTuple):
    """Of so many samples: intervals that hold the mean, those without a flag, and those of them that miss it."""

    samples: int = 0
    inside: int = 0
    firm: int = 0
    wrong: int = 0

    def __add__(self, other: Coverage) -> Coverage:  # type: ignore[override]
        return Coverage(*(one + two for one, two in zip(self, other, strict=True)))

    @property
    def misses(self) -> float:
        """The share of intervals without a flag that miss."""
        return self.wrong / self.firm if self.firm else 0.0


def moments(rows: real_seeds.Values) -> tuple[real_seeds.Values, real_seeds.Values, real_seeds.Values]:
    """Mean, deviation (with n − 1) and skewness of each row."""
    mean = rows.mean(axis=1)
    gaps = rows - mean[:, None]
    square = (gaps**2).mean(axis=1)
    flat = np.sqrt(square) <= 1e-12 * np.abs(rows).max(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        skew = np.where(flat, 0.0, (gaps**3).mean(axis=1) / square**1.5)
    return mean, np.sqrt(square * rows.shape[1] / (rows.shape[1] - 1)), skew


def hall(rows: real_seeds.Values) -> tuple[real_seeds.Values, real_seeds.Values]:
    """The interval of the mean of each row."""
    seeds = rows.shape[1]
    mean, deviation, skew = moments(rows)
    skew *= math.sqrt((seeds - 1) / seeds) ** 3 * seeds**2 / ((seeds - 1) * (seeds - 2)) / math.sqrt(seeds)
    slope, beyond = skew / 3, statistics.t_quantile(0.05, seeds - 1)

    def undone(q: float) -> real_seeds.Values:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(np.abs(slope) < 1e-9, q, (np.cbrt(1 + 3 * slope * (q - skew / 6)) - 1) / slope)

    error = deviation / math.sqrt(seeds)
    return mean - undone(beyond) * error, mean - undone(-beyond) * error


def flagged(rows: real_seeds.Values, full: float = math.inf) -> Flags:
    """Which rows have a mean that one or two values, or few that differ from the median or are not at a limit, decide."""
    seeds = rows.shape[1]
    skew = moments(rows)[2]
    apart = np.abs(rows - np.median(rows, axis=1)[:, None]) > 1e-12 * np.abs(rows).max(axis=1)[:, None]
    others = apart.sum(axis=1)
    found: Flags = ((others > 0) & (others < min(intervals.TYPICAL, seeds // 2))) | (seeds < intervals.SKEWED * skew**2)
    below = (rows < full).sum(axis=1)
    found |= (below < intervals.TYPICAL) & (seeds - below >= intervals.FULL * seeds)
    return found


def coverage(values: real_seeds.Values, seeds: int, samples: int, stream: int = 1, full: float = math.inf) -> Coverage:
    """How intervals did of the mean of one point, or of the differences of two rows, whatever the metric's number of seeds says."""
    draws = np.random.default_rng([stream, seeds])
    at = draws.integers(0, values.shape[-1], (samples, seeds))
    rows = values[..., at]
    if values.ndim == 2:
        flags = np.logical_or.reduce([flagged(own, full) for own in rows])
        values, rows = (np.where((own >= full).all(axis=0), 0.0, own[1] - own[0]) for own in (values, rows))
        flags = flags | flagged(rows)
    else:
        flags = flagged(rows, full)
        flags = flags | (rows.min(axis=1) == rows.max(axis=1))  # equal values say nothing of others
    low, high = hall(rows)
    true = float(values.mean())
    inside = (low - 1e-9 * abs(true) <= true) & (true <= high + 1e-9 * abs(true))
    return Coverage(samples, int(inside.sum()), int((~flags).sum()), int((~flags & ~inside).sum()))
