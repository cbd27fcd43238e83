"""What a run may cost that no seed showed: as much as the worst run of the table, or one timeout."""

from __future__ import annotations

import statistics as plain
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from fanin.statistics import RARE, tried

if TYPE_CHECKING:
    from fanin.comparison.variants import Variant
    from fanin.statistics.metrics import Metric


def excess(samples: Iterable[Sequence[float]]) -> float:
    """Return how far the value that is furthest from the median of its sample is from it."""
    return max((max(abs(value - plain.median(own)) for value in own) for own in samples if own), default=0.0)


def cost(metric: Metric, found: Sequence[Variant]) -> float:
    """Return how much a run may add to the mean of a metric, though no seed shows such a run, in its unit.

    It is that of the worst run of all variants, and of what times tell one timeout at least. Of metrics that rare runs do not
    decide it is nothing: with as many seeds as they take, their intervals hold on real runs whatever these have not seen.
    """
    under = tried.together(variant.conditions for variant in found)
    if under.seeds_of_differences(metric.key) != RARE:
        return 0.0
    flows = [value for variant in found for value in variant.values(metric.counted).values()] if metric.counted else []
    worst = excess([list(variant.values(metric.key).values()) for variant in found])
    return max(worst, metric.timeout(under.timeout_ps, min(flows, default=1)))
