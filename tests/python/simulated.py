"""The simulation behind docs/statistics.md: how often intervals, verdicts and the stop rule are wrong on values of real runs.

    python tests/python/simulated.py 400        # 400 samples of each kind; prints the tables of the page, in minutes

test_statistics_real.py holds a short form of it against its limits at each change.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

import real_seeds
from fanin import statistics
from fanin.statistics import metrics
from fanin.sweep.axes import Stop
from fanin.sweep.todo import Seen, enough, rounds

COUNTS: Final = (10, 20, 74)
"""Numbers of seeds at which intervals are tried."""

TABLES: Final = (2, 3, 5, 10, 20, 80)
"""Numbers of seeds at which tables of verdicts are tried."""

SHARES: Final = (0.05, 0.1, 0.26)
"""In how many runs of one variant there are timeouts, where the means are equal."""

CLASSES: Final[dict[int | None, str]] = {10: "10", 74: "74", None: "never"}
"""Classes of metrics, by how many seeds their means take."""

AGAIN: Final = 10
"""The worst of many samples is partly the unluckiest: it is measured anew, with so many times the samples."""

POINT: Final = (32, 0.45, "65 packets")
"""The point with timeouts in a quarter of its runs."""


class Coverage(NamedTuple):
    """Of so many samples: intervals that hold the mean, those without a flag, and those of them that miss it."""

    samples: int
    inside: int
    firm: int
    wrong: int

    def __add__(self, other: Coverage) -> Coverage:  # type: ignore[override]
        return Coverage(*(one + two for one, two in zip(self, other, strict=True)))


NOTHING: Final = Coverage(0, 0, 0, 0)


def drawn(values: real_seeds.Values, seeds: int, samples: int, stream: int) -> Iterator[real_seeds.Values]:
    """Samples with replacement; of a table of several rows, of all of them at the same places."""
    draws = np.random.default_rng(stream)
    for at in draws.integers(0, values.shape[-1], (samples, seeds)):
        yield values[..., at]


def holds(low: float | None, high: float | None, true: float) -> bool:
    """Whether an interval holds a number."""
    assert low is not None and high is not None
    return low - 1e-9 * abs(true) <= true <= high + 1e-9 * abs(true)


def seeds_of(metric: str) -> int | None:
    """With how many seeds the mean of a metric is reliable."""
    known = metrics.of(metric)
    assert known is not None
    return known.seeds


def seeds_of_differences(metric: str) -> int | None:
    """With how many seeds the mean of its differences is."""
    known = metrics.of(metric)
    assert known is not None
    return known.seeds_of_differences


def of_mean(metric: str, values: real_seeds.Values, seeds: int, samples: int, stream: int = 1) -> Coverage:
    """How intervals of the mean of one point did."""
    true, found = float(values.mean()), NOTHING
    for sample in drawn(values, seeds, samples, stream):
        said = statistics.interval(sample, seeds_needed=seeds_of(metric))
        held = holds(said.low, said.high, true)
        found += Coverage(1, held, said.flag is None, said.flag is None and not held)
    return found


def of_gap(metric: str, pair: real_seeds.Values, seeds: int, samples: int, stream: int = 1) -> Coverage:
    """How intervals of differences by seed did, of two points."""
    true, found = float((pair[1] - pair[0]).mean()), NOTHING
    for base, other in drawn(pair, seeds, samples, stream):
        said = gap(base, other, seeds_of_differences(metric))
        held = holds(said.low, said.high, true)
        found += Coverage(1, held, said.flag is None, said.flag is None and not held)
    return found


def pairs(metric: str) -> Iterator[real_seeds.Values]:
    """Pairs of points that differ in K alone, where both have the metric in all runs."""
    for hosts, load, short, long in (
        (32, 0.2, "20 packets", "65 packets"),
        (32, 0.45, "20 packets", "65 packets"),
        (32, 0.45, "65 packets", "200 packets"),
        (64, 0.45, "20 packets", "65 packets"),
    ):
        both = np.array([real_seeds.values(metric, hosts, load, k) for k in (short, long)])
        if np.isfinite(both).all() and np.ptp(both[1] - both[0]) > 0:
            yield both


def gap(base: real_seeds.Values, other: real_seeds.Values, needed: int | None) -> statistics.Difference:
    """The difference of two variants, seed by seed."""
    return statistics.difference(dict(enumerate(base.tolist())), dict(enumerate(other.tolist())), seeds_needed=needed)


def table(gaps: list[statistics.Difference]) -> list[str]:
    """What a table says of differences, lower values being better."""
    return [judged.verdict for judged in statistics.verdicts(gaps, ["lower"] * len(gaps))]


def false_of_equal(seeds: int, tables: int) -> int:
    """How many tables of twenty metrics that are equal in both variants, with timeouts in a quarter of the runs, say otherwise."""
    values = real_seeds.values("queries.p99_ps", *POINT)
    draws, wrong = np.random.default_rng(seeds), 0
    for _ in range(tables):
        twenty = values[draws.integers(0, len(values), (20, 2, seeds))]
        said = table([gap(base, other, statistics.RARE) for base, other in twenty])
        wrong += any(word not in ("not shown", "no difference") for word in said)
    return wrong


def false_of_rare(seeds: int, share: float, tables: int) -> int:
    """How many tables of equal means, with timeouts in one variant alone that cost as much as it gains, say better or worse."""
    values = real_seeds.values("queries.p99_ps", *POINT)
    usual, timed_out = values[values < 5e9], values[values >= 5e9]
    draws, wrong = np.random.default_rng(seeds), 0
    gain = share * (timed_out.mean() - usual.mean())
    for _ in range(tables):
        base = draws.choice(usual, seeds)
        rare = draws.random(seeds) < share
        other = np.where(rare, draws.choice(timed_out, seeds), draws.choice(usual, seeds)) - gain
        wrong += table([gap(base + 1e10, other + 1e10, statistics.RARE)])[0] in ("better", "worse")
    return wrong


# -- the stop rule -------------------------------------------------------------------------------------------------------


class Stopped(NamedTuple):
    """A point when a sweep ended: its seeds, whether it was said to be narrow enough, and whether its interval holds."""

    seeds: int
    said: bool
    held: bool


def replayed(stop: Stop, most: int, samples: int) -> Iterator[list[Stopped]]:
    """Replay the rule on the six points of the example, over shuffled seeds."""
    points = real_seeds.points(32)
    values = np.array([real_seeds.values(stop.metric, *point) for point in points])
    timeouts = np.array([real_seeds.values("total.timeouts", *point) for point in points]) > 0
    draws = np.random.default_rng(9)
    for _ in range(samples):
        order = draws.permutation(values.shape[1])
        for count in rounds(stop, most):
            at = order[:count]
            seen = [
                [Seen(float(value), bool(late)) for value, late in zip(own[at], had[at], strict=True)]
                for own, had in zip(values, timeouts, strict=True)
            ]
            reached = enough(seen, stop)
            if all(reached) or count == most:
                found = [statistics.interval(own[at], seeds_needed=seeds_of(stop.metric)) for own in values]
                true = [float(np.median(own)) if stop.statistic == "median" else float(own.mean()) for own in values]
                ends = [(one.median_low, one.median_high) if stop.statistic == "median" else (one.low, one.high) for one in found]
                yield [Stopped(count, yes, holds(*own, mean)) for yes, own, mean in zip(reached, ends, true, strict=True)]
                break


def replayed_before(stop: Stop, most: int, samples: int) -> Iterator[list[Stopped]]:
    """Replay the rule that was: each point for itself, by Student's interval, from five seeds on."""
    values = np.array([real_seeds.values(stop.metric, *point) for point in real_seeds.points(32)])
    draws = np.random.default_rng(9)
    counts = [5]
    while counts[-1] < most:
        counts.append(min(most, counts[-1] + max(1, counts[-1] // 4)))
    for _ in range(samples):
        order = draws.permutation(values.shape[1])
        ended = []
        for own in values:
            for count in counts:
                sample = own[order[:count]]
                mean = float(sample.mean())
                half = statistics.t_quantile(0.05, count - 1) * float(sample.std(ddof=1)) / math.sqrt(count)
                narrow = half <= stop.width * abs(mean)
                if narrow or count == most:
                    ended.append(Stopped(count, narrow, holds(mean - half, mean + half, float(own.mean()))))
                    break
        yield ended


# -- tables --------------------------------------------------------------------------------------------------------------


def share(count: int, of: int) -> str:
    """A share in per cent with its interval, by Clopper and Pearson."""
    if not of:
        return "–"
    low, high = statistics.about_share(count, of)
    return f"{100 * count / of:.1f} ({100 * low:.1f}–{100 * high:.1f})"


def coverage_rows(samples: int, kind: str) -> Iterator[str]:
    """Rows of the table of coverage, by class of metrics and number of seeds."""
    measure, class_of = (of_mean, seeds_of) if kind == "means" else (of_gap, seeds_of_differences)
    for needed, words in CLASSES.items():
        for seeds in COUNTS:
            total, worst = NOTHING, (-1.0, "", np.zeros(0))
            for metric in real_seeds.names():
                if class_of(metric) != needed:
                    continue
                cases = (own for _, own in real_seeds.varying(metric)) if kind == "means" else pairs(metric)
                for values in cases:
                    found = measure(metric, values, seeds, samples)
                    total += found
                    if found.firm and found.wrong / samples > worst[0]:
                        worst = found.wrong / samples, metric, values
            again = measure(worst[1], worst[2], seeds, AGAIN * samples, 2) if worst[1] else NOTHING
            named = f"`{worst[1]}`: {share(again.wrong, again.samples)}; {share(again.firm - again.wrong, again.firm)} hold"
            yield (
                f"| {words} | {seeds} | {100 * total.inside / total.samples:.1f} | {100 * total.firm / total.samples:.0f} | "
                f"{f'{100 * (1 - total.wrong / total.firm):.1f}' if total.firm else '–'} | {named if worst[1] else '–'} |"
            )


def stop_row(words: str, runs: Sequence[list[Stopped]], most: int) -> str:
    """A row of the table of the stop rule."""
    said = [point for points in runs for point in points if point.said]
    early = sum(any(point.said and point.seeds < statistics.RARE for point in points) for points in runs)
    held = sum(point.held for point in said)
    of_early = [point for point in said if point.seeds < statistics.RARE]
    return (
        f"| {words} | {most} | {share(early, len(runs))} | {share(sum(point.held for point in of_early), len(of_early))} | "
        f"{100 * len(said) / sum(map(len, runs)):.0f} | {share(held, len(said))} |"
    )


def main(samples: int) -> None:
    """Print all tables."""
    for kind in ("means", "differences"):
        print(f"\ncoverage of {kind}, {samples} samples\n", flush=True)
        for row in coverage_rows(samples if kind == "means" else max(20, samples // 4), kind):
            print(row, flush=True)
    print(f"\nstop rule, {samples} sequences\n")
    for stop, most in ((Stop("queries.p99_ps", 0.1), 100), (Stop("fct/all.mean_ps", 0.1), 200), (Stop("queries.p99_ps", 0.4), 200)):
        words = f"`{stop.metric}`, ±{100 * stop.width:.0f} %"
        print(stop_row(f"before: {words}", list(replayed_before(stop, most, samples)), most), flush=True)
        print(stop_row(f"now: {words}", list(replayed(stop, most, samples)), most), flush=True)
    print(f"\nfalse verdicts, {samples} tables\n")
    for seeds in TABLES:
        rare = [share(false_of_rare(seeds, of, samples), samples) for of in SHARES]
        print(f"| {seeds} | {share(false_of_equal(seeds, samples), samples)} | {' | '.join(rare)} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
