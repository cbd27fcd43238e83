"""Which interval of a mean holds: the methods that were compared on stored values (docs/dev/statistics-measured.md).

python tests/python/interval_methods.py 300        # 300 samples of each of six points; prints the table, in some minutes
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import Final

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri
from scipy.stats import f

import real_seeds
from fanin import statistics
from real_seeds import Values

METRICS: Final = ("queries.p99_ps", "queries.mean_ps", "fct/all.mean_ps", "fct/all.p99_ps")
COUNTS: Final = (5, 10, 20, 40)
RESAMPLES: Final = 999
TAILS: Final = (0.025, 0.975)


def likelihood(values: Values, mean: float) -> float:
    """The chance of an empirical likelihood ratio at least as large where a mean is true, by the F distribution.

    Source: Owen, "Empirical Likelihood Ratio Confidence Intervals for a Single Functional", Biometrika 75(2), 1988, from memory.
    """
    gaps, seeds = values - mean, len(values)
    if not gaps.min() < 0 < gaps.max():
        return 0.0  # no weights of these values have such a mean
    ends = [(1 / seeds - 1) / gaps.max(), (1 / seeds - 1) / gaps.min()]
    weight = brentq(lambda own: float((gaps / (1 + own * gaps)).sum()), *ends)
    return float(f.sf(2 * np.log1p(weight * gaps).sum(), 1, seeds - 1))


def intervals(values: Values, draws: np.random.Generator) -> Iterator[tuple[str, float, float]]:
    """Ends of the 95 % intervals of a mean, by method."""
    seeds, mean, deviation = len(values), float(values.mean()), float(values.std(ddof=1))
    error, beyond = deviation / math.sqrt(seeds), statistics.t_quantile(0.05, seeds - 1)
    third = float(((values - mean) ** 3).mean())
    yield "Student", mean - beyond * error, mean + beyond * error
    middle = mean + (third / (6 * deviation**2 * seeds) if deviation else 0.0)
    yield "Johnson", middle - beyond * error, middle + beyond * error
    yield ("**Hall**", *statistics.about_mean(values))
    again = values[draws.integers(0, seeds, (RESAMPLES, seeds))]
    means, errors = again.mean(axis=1), again.std(axis=1, ddof=1) / math.sqrt(seeds)
    yield ("percentile bootstrap", *np.quantile(means, TAILS))
    t = np.divide(means - mean, errors, out=np.zeros(RESAMPLES), where=errors > 0)
    high, low = np.quantile(t, TAILS)
    yield "bootstrap-t", mean - low * error, mean - high * error
    below = min(max(float((means < mean).mean()), 1 / RESAMPLES), 1 - 1 / RESAMPLES)
    lean = third / (6 * float(((values - mean) ** 2).mean()) ** 1.5 * math.sqrt(seeds)) if deviation else 0.0
    bias = float(ndtri(below))
    parts = [bias + z / (1 - lean * z) for z in (bias + ndtri(tail) for tail in TAILS)]
    yield ("BCa", *np.quantile(means, ndtr(parts)))


def main(samples: int) -> None:
    """Print the table."""
    held: dict[str, dict[int, list[float]]] = {}
    draws = np.random.default_rng(21)
    for seeds in COUNTS:
        for metric in METRICS:
            counts: dict[str, int] = {}
            points = real_seeds.points("chosen", 32)
            for point in points:
                values = real_seeds.values("chosen", metric, *point)
                true = float(values.mean())
                for at in draws.integers(0, len(values), (samples, seeds)):
                    for name, low, high in intervals(values[at], draws):
                        counts[name] = counts.get(name, 0) + (low <= true <= high)
                    fits = likelihood(values[at], true) >= 0.05
                    counts["empirical likelihood"] = counts.get("empirical likelihood", 0) + fits
            for name, count in counts.items():
                held.setdefault(name, {}).setdefault(seeds, []).append(100 * count / samples / len(points))
    for name, of in held.items():
        print(f"| {name} | {' | '.join(' / '.join(f'{own:.0f}' for own in of[seeds]) for seeds in COUNTS)} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
