"""Races of `fanin best` on values of real runs: how often they are wrong where nothing differs, and find what is better.

`python tests/python/simulated.py 400 races` prints the table of docs/dev/statistics-measured.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

import real_seeds
import simulated
from fanin import statistics
from fanin.best import ranking
from fanin.best.candidates import AS_IT_IS
from fanin.comparison.variants import Run, Variant
from fanin.statistics import metrics, tried
from real_seeds import Values

RACED_BY: Final = "queries.p99_ps"
"""The metric by which races are run."""


def racing(values: Sequence[Values]) -> list[Variant]:
    """Variants of a race, the scenario as it is first: their values by seed."""
    found = []
    for at, own in enumerate(values):
        name = AS_IT_IS if at == 0 else f"policy {at}"
        run = Run(0, {}, {}, "1", "", "complete", 0, name, None, tried.TRIED)
        counts = {"queries.complete": float(tried.QUERIES), "total.flows_complete": float(tried.FLOWS)}
        runs = (replace(run, seed=seed, values={RACED_BY: float(value), **counts}) for seed, value in enumerate(own))
        found.append(Variant(name, tuple(runs)))
    return found


class Raced(NamedTuple):
    """What a race says: verdicts against the scenario as it is, those against the first, and the seeds of each, by policy."""

    against: dict[str, str | None]
    behind: dict[str, str]
    seeds: dict[str, int]


def raced(values: Sequence[Values], seeds: int) -> Raced:
    """Run a race as `fanin best` does."""
    every, metric = racing(values), metrics.METRICS[RACED_BY]
    looks = ranking._rounds(len(every), seeds)
    alpha, left = statistics.ALPHA / len(looks), [own.name for own in every]
    given = dict.fromkeys(left, 0)
    for count in looks:
        given |= dict.fromkeys(left, count)
        found = [own.only(range(given[own.name])) for own in every]
        left = ranking._still_racing(found, left, RACED_BY, alpha, len(every))
        if not left:
            break
    first = ranking._order(found, metric, {})[0]
    said = ranking._verdicts(found, AS_IT_IS, metric, alpha)
    behind = ranking._behind(found, first, metric, alpha, len(every))
    return Raced({name: word for name, (_, word) in said.items()}, dict(behind), given)


def equal_policies(many: int, seeds: int, draws: np.random.Generator) -> list[Values]:
    """Policies that are all the same, with timeouts in many of their runs: a seed says nothing of another's."""
    values = real_seeds.values("shown", RACED_BY, *simulated.POINT)
    return list(values[draws.integers(0, len(values), (many, seeds))])


def policies_of_equal_means(many: int, seeds: int, draws: np.random.Generator) -> list[Values]:
    """Policies with the shapes of the points that are shown and chosen on, moved to one mean: the same seed for all."""
    points = [values for part in real_seeds.FILES for _, values in real_seeds.varying(part, RACED_BY)]
    points = [values for values in points if len(values) >= 300]
    at = draws.integers(0, 300, seeds)
    return [points[own][:300][at] - points[own][:300].mean() + 1e10 for own in draws.permutation(len(points))[:many]]


def false_races(many: int, seeds: int, races: int) -> tuple[int, int, int, int]:
    """In how many races of equal policies anything is told apart; of equal means any mean, against the first, or as it is."""
    draws = np.random.default_rng([13, many, seeds])
    equal = against = behind = 0
    for _ in range(races):
        found = raced(equal_policies(many, seeds, draws), seeds)
        equal += bool(found.behind) or any(word not in ("not shown", "no difference") for word in found.against.values())
        moved = raced(policies_of_equal_means(many, seeds, draws), seeds)
        against += any(word in simulated.SHIFTED for word in moved.against.values())
        behind += any(word in simulated.SHIFTED for word in moved.behind.values())
    return equal, against, behind, races


def found_best(gain: float, many: int, seeds: int, races: int) -> dict[str, int]:
    """What races say of a policy whose p99 is so much lower in each run, and that has none of the timeouts, among equal ones."""
    draws, said = np.random.default_rng([14, many, seeds]), Counter[str]()
    for _ in range(races):
        every = equal_policies(many, seeds, draws)
        usual = every[0][every[0] < 5e9]
        every[-1] = draws.choice(usual, seeds) * (1 - gain)
        found = raced(every, seeds)
        said[str(found.against[f"policy {many - 1}"])] += 1
    return said


def print_races(samples: int) -> None:
    """Print how often races are wrong, and how often they find what is better."""
    races = max(10, samples // 4)
    print(f"\nraces, {races} of each\n")
    for many in (5, 12):
        for seeds in (10, 64, 100, 200):
            *wrong, of = false_races(many, seeds, races)
            print(f"| {many} | {seeds} | {' | '.join(simulated.share(count, of) for count in wrong)} |", flush=True)
    for gain in (0.0, 0.1):
        for seeds in (10, 64, 100):
            said = found_best(gain, 12, seeds, races)
            print(f"| {100 * gain:.0f} % less | {seeds} | {dict(said)}", flush=True)
