"""Tables of docs/dev/statistics-measured.md: how often intervals, verdicts and the stop rule are wrong on values of real runs.

    python tests/python/simulated.py 400             # prints the tables of the page, in an hour
    python tests/python/simulated.py 4000 classes    # with how many seeds each metric is reliable, by the values that are chosen on

Tables are measured on the values that no choice knew; see real_seeds.py. test_statistics_real.py holds a short form of it against
its limits at each change.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Final, NamedTuple

import numpy as np
import polars as pl

import many_samples
import real_seeds
from fanin import statistics
from fanin.comparison import rare
from fanin.comparison.variants import settings
from fanin.statistics import exact, metrics, tried
from fanin.statistics.tried import Conditions
from fanin.sweep.axes import Stop
from fanin.sweep.todo import Seen, enough, rounds
from many_samples import Coverage
from real_seeds import Part, Values

COUNTS: Final = (10, 20, 99)
"""Numbers of seeds at which intervals are tried."""

CHOICES: Final = (10, 20, 40, 99, 150)
"""Numbers of seeds at which it is chosen with how many a metric is reliable."""

LIMIT: Final = 0.08
"""Intervals without a flag that miss the mean: 5 % is nominal, three points more are allowed."""

CHOSEN: Final = 0.07
"""What may miss where limits are chosen: a point less, since other networks may be worse."""

TABLES: Final = (2, 3, 5, 10, 20, 99, 200)
"""Numbers of seeds at which tables of verdicts are tried."""

SHARES: Final = (0.02, 0.04, 0.1, 0.26)
"""In how many runs of one variant there are timeouts, where the means are equal."""

AGAIN: Final = 10
"""The worst of many samples is partly the unluckiest: it is measured anew, with so many times the samples."""

POINT: Final = (48, 0.6, "100 packets")
"""A point with timeouts in many of its runs."""


def drawn(values: Values, seeds: int, samples: int, stream: int) -> Iterator[Values]:
    """Samples with replacement; of a table of several rows, of all of them at the same places."""
    draws = np.random.default_rng(stream)
    for at in draws.integers(0, values.shape[-1], (samples, seeds)):
        yield values[..., at]


def holds(low: float | None, high: float | None, true: float) -> bool:
    """Whether an interval holds a number."""
    assert low is not None and high is not None
    return low - 1e-9 * abs(true) <= true <= high + 1e-9 * abs(true)


def seeds_of(metric: str, kind: str = "means") -> int | None:
    """With how many seeds the mean of a metric is reliable, or that of its differences."""
    known = metrics.of(metric)
    if kind == "means":
        return metrics.seeds_needed(metric)
    return None if known is None else known.seeds_of_differences


def cases(part: Part, metric: str, kind: str = "means") -> list[Values]:
    """The points that have a metric, or pairs of them that differ in K alone."""
    return [found for _, found in (real_seeds.varying if kind == "means" else real_seeds.pairs)(part, metric)]


def full_of(metric: str) -> float:
    """From which value on a metric is at the limit of what there can be, in all runs but those elsewhere."""
    return tried.TRIED.full(metric)


def covered(part: Part, metric: str, kind: str, seeds: int, samples: int) -> tuple[Coverage, Coverage]:
    """All points together, and the one that misses most often without a flag, measured anew."""
    total, worst, where = Coverage(), -1.0, None
    for values in cases(part, metric, kind):
        found = many_samples.coverage(values, seeds, samples, full=full_of(metric))
        total += found
        if found.firm >= samples // 10 and found.misses > worst:
            worst, where = found.misses, values
    return total, Coverage() if where is None else many_samples.coverage(where, seeds, samples, 2, full_of(metric))


@cache
def under(what: str) -> Conditions:
    """The conditions of runs unlike those that limits were chosen on."""
    runs = real_seeds.elsewhere().filter(pl.col("what") == what)
    counts = [runs[name].drop_nulls() for name in ("total.flows_complete", "queries.complete")]
    return tried.of(settings(real_seeds.scenario_elsewhere(what).resolved)).with_counts(*counts)


def elsewhere() -> Iterator[tuple[str, str, Values]]:
    """Such runs, metrics that are reliable with some number of seeds as the table of metrics says, and their values."""
    for what in real_seeds.ELSEWHERE:
        runs = real_seeds.elsewhere().filter(pl.col("what") == what)
        for metric in runs.columns[2:]:
            values = runs[metric].cast(pl.Float64).drop_nulls().to_numpy()
            if seeds_of(metric) is not None and values.size >= 100 and values.min() < values.max() and metric != metrics.TIMED_OUT:
                yield what, metric, values


def coverage_elsewhere(
    what: str, metric: str, values: Values, seeds: int, samples: int, *, as_tried: bool = False, limits: bool = True
) -> Coverage:
    """How intervals do there as the package flags them.

    Or as it would if these were like the runs that limits were chosen on, and if it did not look whether values are at a limit.
    """
    known, runs = metrics.of(metric), real_seeds.elsewhere().filter(pl.col("what") == what)
    assert known is not None
    flows = 1.0 if known.counted is None else float(runs[known.counted].min())  # type: ignore[arg-type]
    there = tried.TRIED if as_tried else under(what)
    true, inside, firm, wrong = float(values.mean()), 0, 0, 0
    for at in np.random.default_rng([7, seeds]).integers(0, len(values), (samples, seeds)):
        cost = there.unseen_cost(metric, flows)
        full = there.full(metric) if limits else math.inf
        found = statistics.interval(values[at], seeds_needed=there.seeds(metric), full=full, unseen_cost=cost)
        held = holds(found.low, found.high, true)
        inside, firm, wrong = inside + held, firm + (found.flag is None), wrong + (found.flag is None and not held)
    return Coverage(samples, inside, firm, wrong)


def print_elsewhere(samples: int) -> None:
    """Print the table of runs unlike those that limits were chosen on: metrics whose intervals held less than 90 % there."""
    print(f"\nelsewhere, {samples} samples\n")
    for what, metric, values in elsewhere():
        cells, low = [], 1.0
        for as_tried in (True, False):
            for seeds in COUNTS:
                found = coverage_elsewhere(what, metric, values, seeds, samples, as_tried=as_tried, limits=not as_tried)
                told = found.firm / samples
                low = min(low, 1 - found.misses if as_tried and told >= 0.1 else 1.0)
                cells.append("–" if told < 0.1 else f"{100 * (1 - found.misses):.0f} of {100 * told:.0f} %")
        if low < 0.9:
            print(f"| {what} | `{metric}` | {' | '.join(cells)} |", flush=True)


LARGEST: Final = "total.largest_queue_bytes"
"""A metric that the buffer of a port bounds."""


def at_limit() -> Iterator[tuple[str, Values]]:
    """Runs in words, and their largest queues: all elsewhere whose buffer is that of the example, and those that are shown."""
    for what in real_seeds.ELSEWHERE:
        yield what, real_seeds.elsewhere().filter(pl.col("what") == what)[LARGEST].cast(pl.Float64).to_numpy()
    for (hosts, load, k), values in real_seeds.varying("shown", LARGEST):
        yield f"{hosts} hosts, load {load}, K = {k.split()[0]}", values


def pressed(often: float) -> Values:
    """Largest queues of which so many of 300 are at the limit: those of 1 spine with K = 200, drawn anew."""
    values = dict(at_limit())["1 spine, oversubscribed twice, K = 200"]
    draws, full = np.random.default_rng(11), full_of(LARGEST)
    at = round(300 * often)
    return np.concatenate([draws.choice(values[values >= full], at), draws.choice(values[values < full], 300 - at)])


def limits_row(values: Values, samples: int) -> str:
    """How intervals of a largest queue hold where many seeds are at the limit, without a look at that and with one."""
    cells = []
    for full in (math.inf, full_of(LARGEST)):
        for seeds in COUNTS:
            found = many_samples.coverage(values, seeds, samples, full=full)
            told = 100 * found.firm / samples
            cells.append("–" if told < 10 else f"{100 * (1 - found.misses):.0f} of {told:.0f} %")
    return f"{100 * float((values >= full_of(LARGEST)).mean()):.0f} % | {' | '.join(cells)}"


def print_limits(samples: int) -> None:
    """Print how intervals of largest queues hold by how many seeds are at the limit."""
    print(f"\nlimits, {samples} samples\n")
    rows = sorted(at_limit(), key=lambda own: float((own[1] >= full_of(LARGEST)).mean()))
    for what, values in [*rows, *((f"1 spine, K = 200, {100 * often:.0f} % at the limit", pressed(often)) for often in PRESSED)]:
        print(f"| {what} | {limits_row(values, samples)} |", flush=True)


PRESSED: Final = (0.8, 0.9, 0.97, 0.99)
"""How many of the runs are at the limit, where that is drawn."""


def shares_pairs() -> Iterator[Values]:
    """Pairs of points, whether a run had a timeout in either: two rows of 0 and 1, all that are shown or chosen on or elsewhere."""
    for part in real_seeds.FILES:
        for _, both in real_seeds.pairs(part, "total.timeouts"):
            yield (both > 0).astype(float)
    runs = {what: real_seeds.elsewhere().filter(pl.col("what") == what).sort("seed") for what in real_seeds.ELSEWHERE}
    for one, other in (list(runs)[:2], list(runs)[-2:]):
        yield np.array([(runs[what]["total.timeouts"] > 0).cast(pl.Float64).to_numpy() for what in (one, other)])


class Shares(NamedTuple):
    """Of so many samples of shares: intervals that hold, and tables that are wrong where shares are equal; at the worst pair."""

    samples: int
    held: int
    least: int
    wrong: int
    most: int


@cache
def shared(lower: int, higher: int, seeds: int) -> statistics.Difference:
    """The difference of two shares of which so many seeds are yes in one variant alone: it depends on nothing else."""
    base, other = np.zeros(seeds), np.zeros(seeds)
    base[:lower], other[lower : lower + higher] = 1.0, 1.0
    return statistics.difference_of_shares(base, other)


def shares(seeds: int, samples: int) -> Shares:
    """How shares of runs with timeouts are judged, on pairs of points; they are equal where a seed's two are swapped by chance."""
    held, wrong = [], []
    for at, both in enumerate(shares_pairs()):
        draws = np.random.default_rng([12, at, seeds])
        gaps = both[1] - both[0]
        true, rows = float(gaps.mean()), gaps[draws.integers(0, gaps.size, (samples, seeds))]
        swapped = rows * draws.choice([-1.0, 1.0], rows.shape)
        sides = [
            Counter(zip((own < 0).sum(axis=1).tolist(), (own > 0).sum(axis=1).tolist(), strict=True)) for own in (rows, swapped)
        ]
        ends = {pair: (shared(*pair, seeds).low, shared(*pair, seeds).high) for pair in sides[0]}
        held.append(sum(count for pair, count in sides[0].items() if holds(*ends[pair], true)))
        said = {pair: table([shared(*pair, seeds)])[0] for pair in sides[1]}
        wrong.append(sum(count for pair, count in sides[1].items() if said[pair] not in ("not shown", "no difference")))
    return Shares(samples * len(held), sum(held), min(held), sum(wrong), max(wrong))


def print_shares(samples: int) -> None:
    """Print how often intervals of differences of shares hold, and how often equal shares are told apart."""
    print(f"\nshares, {20 * samples} samples of each pair\n")
    for seeds in (2, 6, 10, 20, 40, statistics.RARE):
        found = shares(seeds, 20 * samples)
        held = f"{100 * found.held / found.samples:.1f}, at worst {100 * found.least / samples / 20:.1f}"
        print(
            f"| {seeds} | {held} | {share(found.wrong, found.samples)}, at worst {100 * found.most / samples / 20:.1f} |",
            flush=True,
        )


def chosen(metric: str, kind: str, samples: int) -> int | None:
    """With how many seeds a metric is reliable, by what its intervals hold where limits are chosen; None: no number is enough."""

    def fits(counts: Sequence[int]) -> bool:
        full = full_of(metric)
        found = [many_samples.coverage(own, seeds, samples, full=full) for own in cases("chosen", metric, kind) for seeds in counts]
        return all(own.misses <= CHOSEN for own in found if own.firm >= samples // 10)

    classes = [needed for needed in WORDS if needed is not None]
    return next((needed for needed in classes if fits([seeds for seeds in CHOICES if seeds >= needed])), None)


TIMEOUT: Final = 10e9
"""What a timeout costs in all these runs at least [ps]: `transport.rto_min`."""


def gap(base: Values, other: Values, needed: int | None, cost: float = 0.0, full: float = math.inf) -> statistics.Difference:
    """The difference of two variants, seed by seed; a run that no seed showed may cost so much, and some may be at a limit."""
    pair = dict(enumerate(base.tolist())), dict(enumerate(other.tolist()))
    return statistics.difference(*pair, seeds_needed=needed, rare_cost=cost, full=(full, full))


def judged_as(metric: str, base: Values, other: Values) -> statistics.Difference:
    """The difference of two variants as `fanin compare` judges that of a metric."""
    return gap(base, other, seeds_of(metric, "differences"), cost_of(metric, base, other), full_of(metric))


def flows_of(metric: str) -> float:
    """The fewest flows or queries that a metric is made of, where it is of any."""
    known = metrics.of(metric)
    assert known is not None
    return 1.0 if known.counted is None else float(real_seeds.table("shown")[known.counted].min())  # type: ignore[arg-type]


def cost_of(metric: str, base: Values, other: Values) -> float:
    """What a run may cost that no seed showed, as `fanin compare` takes it, which knows the timeout of the scenario."""
    if seeds_of(metric, "differences") != statistics.RARE:
        return 0.0
    known = metrics.of(metric)
    assert known is not None
    return max(rare.excess([base.tolist(), other.tolist()]), known.timeout(TIMEOUT, flows_of(metric)))


def table(gaps: list[statistics.Difference]) -> list[str]:
    """What a table says of differences, lower values being better."""
    return [judged.verdict for judged in statistics.verdicts(gaps, ["lower"] * len(gaps))]


def flipped(found: statistics.Difference) -> statistics.Difference:
    """A difference as it was judged before: by the sign-flip test alone, whatever its skewness and what no seed showed."""
    return replace(as_seen(found), p_mean=exact.sign_flip(np.array(found.gaps)).both)


def as_seen(found: statistics.Difference) -> statistics.Difference:
    """A difference as if no run could cost more than those that were seen: the flag is that of its values."""
    return replace(found, flag=None if found.flag == "rare" and found.seeds >= statistics.RARE else found.flag)


SHIFTED: Final = ("better", "worse", "better on average", "worse on average")
"""Verdicts that say that means differ."""

Judged = Callable[[statistics.Difference], statistics.Difference]


def false_of_equal(seeds: int, tables: int) -> int:
    """How many tables of twenty metrics that are equal in both variants, with timeouts in a quarter of the runs, say otherwise."""
    values = real_seeds.values("shown", "queries.p99_ps", *POINT)
    draws, wrong = np.random.default_rng(seeds), 0
    for _ in range(tables):
        twenty = values[draws.integers(0, len(values), (20, 2, seeds))]
        said = table([gap(base, other, statistics.RARE, cost_of("queries.p99_ps", base, other)) for base, other in twenty])
        wrong += any(word not in ("not shown", "no difference") for word in said)
    return wrong


def false_of_rare(seeds: int, share: float, tables: int, judged: Judged = lambda found: found) -> int:
    """How many tables of equal means, with timeouts in one variant alone that cost as much as it gains, say that means differ."""
    values = real_seeds.values("shown", "queries.p99_ps", *POINT)
    usual, timed_out = values[values < 5e9], values[values >= 5e9]
    draws, wrong = np.random.default_rng(seeds), 0
    gain = share * (timed_out.mean() - usual.mean())
    for _ in range(tables):
        base = draws.choice(usual, seeds)
        late = draws.random(seeds) < share
        other = np.where(late, draws.choice(timed_out, seeds), draws.choice(usual, seeds)) - gain
        cost = cost_of("queries.p99_ps", base, other)
        wrong += table([judged(gap(base + 1e10, other + 1e10, statistics.RARE, cost))])[0] in SHIFTED
    return wrong


def headlines(seeds: int, tables: int, *, equal: bool) -> Iterator[list[statistics.Difference]]:
    """Tables of what `fanin compare` judges, of all pairs of points; `equal` moves the means of the second to the first's."""
    listed = [name for name in metrics.HEADLINES if name in real_seeds.names()]
    found: dict[real_seeds.Point, list[tuple[str, Values]]] = {}
    for name in listed:
        for point, both in real_seeds.pairs("shown", name):
            moved = both - [[0.0], [float(both[1].mean() - both[0].mean())]] if equal else both
            found.setdefault(point, []).append((name, moved))
    for own in found.values():
        for at in np.random.default_rng([5, seeds]).integers(0, own[0][1].shape[1], (tables, seeds)):
            yield [judged_as(name, base[at], other[at]) for name, (base, other) in own]


def false_of_headlines(seeds: int, tables: int) -> tuple[int, int]:
    """Of how many tables of headlines with equal means, and the shapes of real runs, any says that means differ."""
    wrong = [any(word in SHIFTED for word in table(own)) for own in headlines(seeds, tables, equal=True)]
    return sum(wrong), len(wrong)


@cache
def single() -> tuple[tuple[str, Values], ...]:
    """Pairs of points with equal means, of each metric that is judged from ten seeds on."""
    return tuple(
        (metric, both - [[0.0], [float(both[1].mean() - both[0].mean())]])
        for metric in real_seeds.names()
        if seeds_of(metric, "differences") == statistics.FEW
        for part in ("shown", "chosen")
        for _, both in real_seeds.pairs(part, metric)
    )


def false_of_one(seeds: int, tables: int, judged: Judged = lambda found: found) -> tuple[int, int, float]:
    """Of how many tables of one named metric with equal means any says that means differ, of how many, and the worst share."""
    wrong, worst = 0, 0.0
    for at, (metric, (base, other)) in enumerate(single()):
        draws = np.random.default_rng([8, at, seeds]).integers(0, base.size, (tables, seeds))
        own = sum(table([judged(judged_as(metric, base[of], other[of]))])[0] in SHIFTED for of in draws)
        wrong, worst = wrong + own, max(worst, own / tables)
    return wrong, tables * len(single()), worst


def as_ten(found: statistics.Difference) -> statistics.Difference:
    """A difference as it was judged before: with fewer than ten seeds like with ten."""
    return replace(found, flag=None if found.flag == "few" else found.flag)


def print_one(samples: int) -> None:
    """Print how often tables of one named metric are wrong with few seeds, as it is and as it was."""
    print(f"\none named metric, {samples} tables of each of {len(single())} pairs\n")
    for seeds in (6, 7, 8, 9, 10, 12, 20, 40):
        told = [
            f"{share(wrong, of)}, at worst {100 * worst:.1f}"
            for wrong, of, worst in (false_of_one(seeds, samples), false_of_one(seeds, samples, as_ten))
        ]
        print(f"| {seeds} | {' | '.join(told)} |", flush=True)


def power(seeds: int, samples: int) -> tuple[int, int, int, int]:
    """Of all differences of metrics that are reliable with so many seeds, each for itself: shown before, now, on average, all."""
    before = now = alone = every = 0
    for metric in real_seeds.names():
        needed = seeds_of(metric, "differences")
        if needed is None or needed > seeds:
            continue
        for both in cases("shown", metric, "differences"):
            for base, other in drawn(both, seeds, samples, 3):
                found = judged_as(metric, base, other)
                before += table([flipped(found)])[0] in ("better", "worse")
                (word,) = table([found])
                now += word in ("better", "worse")
                alone += word in ("better on average", "worse on average")
                every += 1
    return before, now, alone, every


def timeouts_alone(seeds: int, share: float, tables: int) -> dict[str, int]:
    """What tables of one difference say where timeouts in so many runs of one variant are all that differs, by verdict."""
    values = real_seeds.values("shown", "queries.p99_ps", *POINT)
    usual, timed_out = values[values < 5e9], values[values >= 5e9]
    draws, said = np.random.default_rng(seeds), Counter[str]()
    for _ in range(tables):
        base, other = draws.choice(usual, seeds), draws.choice(usual, seeds)
        other = np.where(draws.random(seeds) < share, draws.choice(timed_out, seeds), other)
        said[table([gap(base, other, statistics.RARE, cost_of("queries.p99_ps", base, other))])[0]] += 1
    return said


# -- second looks --------------------------------------------------------------------------------------------------------


LOOKS: Final = {
    "once, at 20 seeds": (20,),
    "again at 40": (20, 40),
    "again at 40, 80 and 160": (20, 40, 80, 160),
    "after every 10 from 20 to 200": tuple(range(20, 201, 10)),
}
"""Numbers of seeds at which somebody looks, until something is shown."""

LOOKED_AT: Final = "fct/all.p50_ps"
"""A metric that is judged from ten seeds on."""

MOST_LOOKED_AT: Final = 200


def chance(found: statistics.Difference) -> float:
    """The level at which a difference that is judged for itself is called one."""
    assert found.p is not None and found.p_average is not None
    return min(found.p, found.p_average)


def false_of_looks(series: int) -> Iterator[tuple[dict[int, float], int | None]]:
    """Series of looks at a metric that is the same in both variants: its chance by number of seeds, and what 20 ask for."""
    values, needed = real_seeds.values("shown", LOOKED_AT, *POINT), seeds_of(LOOKED_AT, "differences")
    counts = sorted({count for looks in LOOKS.values() for count in looks})
    draws = np.random.default_rng(6)
    for _ in range(series):
        base, other = values[draws.integers(0, len(values), (2, MOST_LOOKED_AT))]
        found = {count: gap(base[:count], other[:count], needed) for count in counts}
        (first,) = statistics.verdicts([found[20]], ["lower"])
        chances = {count: chance(own) for count, own in found.items()}
        if first.seeds is not None and first.seeds <= MOST_LOOKED_AT:
            chances[first.seeds] = chance(gap(base[: first.seeds], other[: first.seeds], needed))
        yield chances, first.seeds


def looks_rows(series: int) -> Iterator[str]:
    """Rows of the table of second looks."""
    found = list(false_of_looks(series))
    for words, counts in LOOKS.items():
        told = [
            share(sum(any(chances[count] <= statistics.ALPHA / parts for count in counts) for chances, _ in found), series)
            for parts in (1, len(counts))
        ]
        yield f"| {words} | {told[0]} | {told[1] if len(counts) > 1 else '–'} |"
    asked = [[chances[20], chances.get(more or 0, 1.0)] for chances, more in found]
    told = [share(sum(min(own) <= statistics.ALPHA / parts for own in asked), series) for parts in (1, 2)]
    yield f"| again with as many as the plan says, the 20 among them, if 200 do | {' | '.join(told)} |"


# -- the stop rule -------------------------------------------------------------------------------------------------------


class Stopped(NamedTuple):
    """A point when a sweep ended: its seeds, whether it was said to be narrow enough, and whether its interval holds."""

    seeds: int
    said: bool
    held: bool


def replayed(stop: Stop, most: int, samples: int) -> Iterator[list[Stopped]]:
    """Replay the rule on the points of the two new networks, over shuffled seeds."""
    points = real_seeds.points("shown")
    values = np.array([real_seeds.values("shown", stop.metric, *point) for point in points])
    timeouts = np.array([real_seeds.values("shown", "total.timeouts", *point) for point in points]) > 0
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
    values = np.array([real_seeds.values("shown", stop.metric, *point) for point in real_seeds.points("shown")])
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


WORDS: Final[dict[int | None, str]] = {10: "10", 20: "20", 99: "99", None: "never"}
"""With how many seeds a metric is reliable, in words."""


def coverage_row(metric: str, samples: int) -> str:
    """How many intervals of a metric hold, of means and of differences, at the point where they do worst; flagged: in brackets."""
    told = [f"`{metric}`"]
    for kind in ("means", "differences"):
        needed = seeds_of(metric, kind)
        told.append(WORDS[needed])
        for seeds in COUNTS:
            total, worst = covered("shown", metric, kind, seeds, samples)
            if not total.samples or not worst.firm:
                told.append("–")
            elif needed is None or needed > seeds:
                told.append(f"({100 * (1 - worst.misses):.0f})")
            else:
                firm = total.firm / total.samples
                told.append(f"{100 * (1 - worst.misses):.1f}" + (f" of {100 * firm:.0f} %" if firm < 0.995 else ""))
    return f"| {' | '.join(told)} |"


def classes_rows(kind: str, samples: int) -> Iterator[str]:
    """Rows of the table of coverage by class, with the worst metric of each measured anew."""
    for needed, words in WORDS.items():
        for seeds in COUNTS:
            total, worst = Coverage(), (-1.0, "", np.zeros(0))
            for metric in real_seeds.names():
                for values in cases("shown", metric, kind) if seeds_of(metric, kind) == needed else ():
                    found = many_samples.coverage(values, seeds, samples, full=full_of(metric))
                    total += found
                    if found.firm >= samples // 10 and found.misses > worst[0]:
                        worst = found.misses, metric, values
            line = f"| {words} | {seeds} | {100 * total.inside / total.samples:.1f} "
            if needed is None or needed > seeds:
                yield f"{line}| 0 | – | – |"
                continue
            again = many_samples.coverage(worst[2], seeds, AGAIN * samples, 2, full_of(worst[1]))
            held = share(again.firm - again.wrong, again.firm)
            yield f"{line}| {100 * total.firm / total.samples:.0f} | {100 * (1 - total.misses):.1f} | `{worst[1]}`: {held} |"


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


def print_classes(samples: int) -> None:
    """Print with how many seeds each metric is reliable by the values that are chosen on, and where the package says otherwise."""
    for metric in real_seeds.names():
        for kind in ("means", "differences"):
            found, said = chosen(metric, kind, samples), seeds_of(metric, kind)
            strict = said is None or (found is not None and said >= found)
            other = "" if found == said else f"   the package: {WORDS[said]}, {'stricter' if strict else 'LESS STRICT'}"
            print(f"{metric:34} {kind:11} {WORDS[found]:>5}{other}", flush=True)


def print_coverage(samples: int) -> None:
    """Print the tables of coverage."""
    for kind in ("means", "differences"):
        print(f"\ncoverage of {kind} by class, {samples} samples\n", flush=True)
        for row in classes_rows(kind, samples):
            print(row, flush=True)
    print("\ncoverage by metric at the worst point\n")
    for metric in real_seeds.names():
        print(coverage_row(metric, samples), flush=True)


def print_stops(samples: int) -> None:
    """Print the table of the stop rule."""
    print(f"\nstop rule, {samples} sequences\n")
    for stop, most in ((Stop("queries.p99_ps", 0.1), 100), (Stop("fct/all.mean_ps", 0.1), 200), (Stop("queries.p99_ps", 0.4), 200)):
        words = f"`{stop.metric}`, ±{100 * stop.width:.0f} %"
        print(stop_row(f"before: {words}", list(replayed_before(stop, most, samples)), most), flush=True)
        print(stop_row(f"now: {words}", list(replayed(stop, most, samples)), most), flush=True)


def print_verdicts(samples: int) -> None:
    """Print the tables of false verdicts and of power."""
    print(f"\nfalse verdicts, {samples} tables\n")
    for seeds in TABLES:
        many = AGAIN * samples if seeds >= statistics.RARE else samples
        alone = [share(false_of_rare(seeds, late, many), many) for late in SHARES]
        wrong, of = false_of_headlines(seeds, max(10, samples // 4))
        tables = 5 * samples if seeds == 10 else samples  # ten are where it is nearest to its bound
        equal = share(false_of_equal(seeds, tables), tables)
        print(f"| {seeds} | {equal} | {share(wrong, of)} | {' | '.join(alone)} |", flush=True)
    for seeds in (statistics.RARE, 200):
        for words, judged in (("by what seeds showed alone", as_seen), ("and without Hall's test", flipped)):
            told = [share(false_of_rare(seeds, late, AGAIN * samples, judged), AGAIN * samples) for late in SHARES]
            print(f"| {seeds}, {words} | | | {' | '.join(told)} |", flush=True)
    print("\npower\n")
    for seeds in (10, 20, 40, statistics.RARE):
        before, now, average, every = power(seeds, max(10, samples // 20))
        print(f"| {seeds} | {share(before, every)} | {share(now, every)} | {share(average, every)} |", flush=True)
    print("\ntimeouts are all that differs\n")
    listed = ("worse", "worse on average", "mostly worse", "not shown")
    for late in (0.05, 0.1, 0.26, 0.5):
        for seeds in (20, statistics.RARE, 200):
            said = timeouts_alone(seeds, late, samples)
            rest = samples - sum(said[word] for word in listed)
            cells = [*(f"{100 * said[word] / samples:.0f}" for word in listed), f"{100 * rest / samples:.0f}"]
            print(f"| {100 * late:.0f} % | {seeds} | {' | '.join(cells)} |", flush=True)


def print_looks(samples: int) -> None:
    """Print how often somebody who looks several times sees a difference that is none."""
    print(f"\nsecond looks, {5 * samples} series\n")
    for row in looks_rows(5 * samples):
        print(row, flush=True)


def _races(samples: int) -> None:
    import races  # which needs this module

    races.print_races(samples)


def main(samples: int, *asked: str) -> None:
    """Print the tables that are asked for; all but the choice of classes if none is."""
    kinds: dict[str, Callable[[int], None]] = {
        "coverage": print_coverage,
        "stops": print_stops,
        "verdicts": print_verdicts,
        "looks": print_looks,
        "elsewhere": print_elsewhere,
        "one": print_one,
        "limits": print_limits,
        "shares": print_shares,
        "races": _races,
    }
    for name, made in {**kinds, "classes": print_classes}.items():
        if name in (asked or kinds):
            made(samples)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000, *sys.argv[2:])
