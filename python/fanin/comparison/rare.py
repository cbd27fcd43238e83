"""What a run may cost that no seed showed: as much as the worst run of the table, or one timeout."""

from __future__ import annotations

import re
import statistics as plain
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from fanin.statistics import RARE
from fanin.text import show

if TYPE_CHECKING:
    from fanin.comparison.variants import Variant
    from fanin.statistics.metrics import Metric

__all__ = ["cost", "excess", "timeout_ps"]

_TIMEOUTS: Final = ("rto_min", "rto_high")
"""Keys of what a timeout costs at least: TCP's, and that of RoCE with selective repeat where many packets are outstanding."""
_ACK_TIMEOUT: Final = "ack_timeout"
_ACK_TIMEOUT_PS: Final = 4.096e6
"""RoCE's exponent n, and its unit: 4.096 µs · 2ⁿ (IBTA, section 9.7.6.1.3)."""

_UNITS: Final = {**dict(show.TIME_UNITS), "us": 1e6}


def timeout_ps(settings: Mapping[str, Any]) -> float:
    """Return the shortest timeout of a scenario, the longest of all its transports [ps]; 0 where none has any."""
    exponents = [value for path, value in settings.items() if path.rpartition(".")[2] == _ACK_TIMEOUT and isinstance(value, int)]
    found = [str(value) for path, value in settings.items() if path.rpartition(".")[2] in _TIMEOUTS]
    parts = [re.fullmatch(r"([\d.]+)\s*(\D+)", text) for text in found]
    written = [float(part[1]) * _UNITS.get(part[2].strip(), 0.0) for part in parts if part]
    return max([*written, *(_ACK_TIMEOUT_PS * 2**exponent for exponent in exponents)], default=0.0)


def excess(samples: Iterable[Sequence[float]]) -> float:
    """Return how far the value that is furthest from the median of its sample is from it."""
    return max((max(abs(value - plain.median(own)) for value in own) for own in samples if own), default=0.0)


def cost(metric: Metric, found: Sequence[Variant]) -> float:
    """Return how much a run may add to the mean of a metric, though no seed shows such a run, in its unit.

    It is that of the worst run of all variants, and of what times tell one timeout at least. Of metrics that rare runs do not
    decide it is nothing: with as many seeds as they take, their intervals hold on real runs whatever these have not seen.
    """
    if metric.seeds_of_differences != RARE:
        return 0.0
    flows = [value for variant in found for value in variant.values(metric.counted).values()] if metric.counted else []
    timeout = max((run.timeout_ps for variant in found for run in variant.runs), default=0.0)
    worst = excess([list(variant.values(metric.key).values()) for variant in found])
    return max(worst, metric.timeout(timeout, min(flows, default=1)))
