"""What is said of real runs holds: coverage, false verdicts and the stop rule, on networks that no limit was chosen on.

A short form of `make statistics`, which prints the tables of docs/dev/statistics-measured.md: the same code with fewer samples.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

import many_samples
import real_seeds
import simulated
from fanin import Scenario, statistics
from fanin.comparison.variants import settings
from fanin.statistics import tried
from fanin.sweep.axes import Stop
from simulated import LIMIT, drawn, gap, holds, replayed, table

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "statistics.md"
MEASURED = DOCS / "dev" / "statistics-measured.md"


def noise(samples: int, share: float) -> float:
    """Three standard deviations of a share that is counted in so many samples."""
    return 3 * math.sqrt(share * (1 - share) / samples)


def test_the_networks_shown_are_none_of_those_chosen_on() -> None:
    chosen, shown = (set(real_seeds.points(part)) for part in ("chosen", "shown"))
    assert len(chosen) == len(shown) == 8 and not chosen & shown
    assert not {hosts for hosts, _, _ in chosen} & {hosts for hosts, _, _ in shown}


@pytest.mark.parametrize("kind", ["means", "differences"])
@pytest.mark.parametrize("seeds", [10, 20, 99])
def test_intervals_of_many_samples_are_those_of_the_package(kind: str, seeds: int) -> None:
    """The simulation makes many at once; of some it is seen that the package says the same."""
    for metric in ("queries.p99_ps", "fct/all.mean_ps", "total.timeouts", simulated.LARGEST):
        values, full = simulated.cases("shown", metric, kind)[-1], simulated.full_of(metric)
        at = np.random.default_rng([1, seeds]).integers(0, values.shape[-1], (20, seeds))
        both = np.where((values >= full).all(axis=0), 0.0, values[1] - values[0]) if kind == "differences" else values
        true = float(both.mean())
        said = [
            statistics.interval(values[own], full=full)
            if kind == "means"
            else gap(values[0][own], values[1][own], statistics.FEW, full=full)
            for own in at
        ]
        firm = [own for own in said if own.flag is None]
        found = many_samples.coverage(values, seeds, 20, full=full)
        # An interval of what is never negative begins at zero, which holds no more and no fewer means.
        assert found.inside == sum(holds(own.low, own.high, true) for own in said)
        assert (found.firm, found.wrong) == (len(firm), sum(not holds(own.low, own.high, true) for own in firm))


@pytest.mark.parametrize("kind", ["means", "differences"])
def test_intervals_hold_or_are_flagged(kind: str) -> None:
    """What stands without a flag misses the mean of all seeds in 5 % of samples, within three points, wherever it is."""
    samples = 300
    firm = {seeds: [0, 0] for seeds in simulated.COUNTS}
    for metric in real_seeds.names():
        needed = simulated.seeds_of(metric, kind)
        for seeds in simulated.COUNTS:
            if needed is None or needed > seeds:
                continue
            for values in simulated.cases("shown", metric, kind):
                found = many_samples.coverage(values, seeds, samples, full=simulated.full_of(metric))
                firm[seeds][0] += found.firm
                firm[seeds][1] += samples
                if found.firm >= samples // 10:
                    assert found.misses <= LIMIT + noise(found.firm, LIMIT), (metric, seeds)
    assert all(few > 0.8 * every for few, every in firm.values()), "a flag on everything would say nothing"


def test_differences_of_goodput_hang_on_rare_runs() -> None:
    """Ten seeds' interval holds their mean far too seldom; so no number of seeds takes the flag away."""
    pair = real_seeds.pairs("chosen", "total.goodput_bps")
    assert min(many_samples.coverage(both, 10, 100).inside for _, both in pair) < 70
    assert simulated.seeds_of("total.goodput_bps", "differences") is None


@pytest.mark.parametrize("seeds", [6, 10, 20])
def test_intervals_of_medians_and_shares_always_hold(seeds: int) -> None:
    samples = 100
    for metric in ("queries.p99_ps", "fct/all.slowdown_p99", "total.drops", "total.goodput_bps"):
        for point, values in real_seeds.varying("shown", metric):
            wrong, few = 0, 0
            true, some = float(np.median(values)), float((values > values.mean()).mean())
            for sample in drawn(values, seeds, samples, 2):
                found = statistics.interval(sample)
                wrong += not holds(found.median_low, found.median_high, true)
                share = statistics.share(sample > values.mean())
                few += not holds(share.low, share.high, some)
            assert max(wrong, few) / samples <= LIMIT + noise(samples, LIMIT), (metric, point)


@pytest.mark.parametrize("seeds", [2, 3, 5, 10, 20])
def test_tables_of_equal_metrics_call_nothing_better_or_worse(seeds: int) -> None:
    """Twenty metrics of one kind, the same in both variants, with timeouts in a quarter of the runs: 63 % had a false verdict."""
    assert simulated.false_of_equal(seeds, 60) / 60 <= 0.05 + noise(60, 0.05)


@pytest.mark.parametrize("share", simulated.SHARES)
@pytest.mark.parametrize("seeds", [2, 10, 20, 99, 200])
def test_equal_means_with_timeouts_in_one_variant_alone_are_no_verdict(seeds: int, share: float) -> None:
    """One variant is always the same but for noise, the other less, but for timeouts that cost as much as it gains."""
    assert simulated.false_of_rare(seeds, share, 60) / 60 <= 0.05 + noise(60, 0.05)


def test_timeouts_that_no_seed_showed_make_no_verdict() -> None:
    """Of 99 seeds none has what comes in 2 % of the runs with a chance of 14 %, and by what they show a mean is better then."""
    tables = 400
    assert simulated.false_of_rare(99, 0.02, tables) / tables <= 0.05
    before = simulated.false_of_rare(99, 0.02, tables, simulated.as_seen) / tables
    assert 0.98**99 - noise(tables, 0.135) <= before <= 0.98**99 + noise(tables, 0.135)


def test_timeouts_that_move_the_mean_alone_are_worse_on_average_from_99_seeds_on() -> None:
    """One in ten runs of one variant has a timeout, and the others are as they were: the sign test alone said nothing."""
    tables = 100
    said = simulated.timeouts_alone(99, 0.1, tables)
    assert said["worse on average"] >= 60 and said["worse on average"] + said["worse"] >= 80, said
    assert said["better"] + said["better on average"] + said["mostly better"] == 0, said
    few = simulated.timeouts_alone(20, 0.1, tables)
    assert few["worse on average"] + few["worse"] == 0 and few["not shown"] >= 85, few


def test_who_looks_again_is_wrong_more_often_and_looks_that_share_the_chance_are_not() -> None:
    """Nineteen looks at what is the same; with --looks all of them together keep 5 %."""
    series = 100
    found = [
        [chances[count] for count in simulated.LOOKS["after every 10 from 20 to 200"]]
        for chances, _ in simulated.false_of_looks(series)
    ]
    often, shared = (sum(min(own) <= 0.05 / parts for own in found) / series for parts in (1, 19))
    assert 0.09 <= often <= 0.35 and shared <= 0.05, (often, shared)


@pytest.mark.parametrize("seeds", [6, 20, 99])
def test_tables_of_headlines_with_equal_means_call_none_better(seeds: int) -> None:
    """The shapes of real runs, the means of the second variant moved to those of the first."""
    wrong, of = simulated.false_of_headlines(seeds, 20)
    assert of == 80 and wrong / of <= 0.05 + noise(of, 0.05)


@pytest.mark.parametrize("seeds", [6, 7, 8, 9])
def test_one_named_metric_with_equal_means_is_not_better_with_few_seeds(seeds: int) -> None:
    """Skewed differences lie on one side in six seeds often enough: it was called better or worse in 8 to 12 % at some pairs."""
    wrong, of, worst = simulated.false_of_one(seeds, 30)
    assert (wrong, worst) == (0, 0.0) and of >= 30 * 40, of
    if seeds == 6:
        _, _, before = simulated.false_of_one(seeds, 60, simulated.as_ten)
        assert before >= 0.08


@pytest.mark.parametrize("seeds", [10, 20])
def test_one_named_metric_with_equal_means_is_seldom_better(seeds: int) -> None:
    wrong, of, _ = simulated.false_of_one(seeds, 30)
    assert wrong / of <= 0.05 + noise(of, 0.05)


def test_differences_that_are_there_are_found() -> None:
    """K = 200 has longer queues than K = 65: twelve seeds say in which more runs do, and forty that the largest is larger."""
    draws = np.random.default_rng(4)
    for metric, seeds, needed, word in (
        ("queue/to_hosts.p99_bytes", 12, statistics.RARE, "mostly worse"),
        ("total.largest_queue_bytes", 40, statistics.FEW, "worse"),
    ):
        short, long = (real_seeds.values("chosen", metric, 32, 0.45, k) for k in ("65 packets", "200 packets"))
        found = 0
        for _ in range(30):
            at = draws.choice(600, seeds, replace=False)
            found += table([gap(short[at], long[at], needed)])[0] == word
        assert found >= 25, metric


# -- yes and no ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seeds", [6, 10, 20, 99])
def test_shares_of_runs_with_timeouts_are_judged_with_any_number_of_seeds(seeds: int) -> None:
    """McNemar's test is exact, and one of the share itself: no number of seeds is too small for it, and no run is rare to it."""
    found = simulated.shares(seeds, 2000)
    assert found.samples >= 2000 * 11
    assert found.most / 2000 <= 0.05 + noise(2000, 0.05), "equal shares at the worst pair"
    if seeds >= statistics.FEW:
        assert found.least / 2000 >= 1 - LIMIT - noise(2000, LIMIT)


def test_shares_that_differ_are_found_before_the_mean_is_judged() -> None:
    """A quarter of the runs has a timeout and a tenth: forty seeds say which variant has more, and 99 nearly always."""
    both = next(pair for pair in simulated.shares_pairs() if pair[1].mean() - pair[0].mean() > 0.2)
    draws, told = np.random.default_rng(3), {40: 0, 99: 0}
    for seeds in told:
        for _ in range(100):
            base, other = both[:, draws.integers(0, both.shape[1], seeds)]
            told[seeds] += table([statistics.difference_of_shares(base, other)])[0] == "worse"
    assert 30 <= told[40] <= 90 and told[99] >= 90, told


# -- at a limit ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seeds", [10, 20, 99])
def test_largest_queues_at_the_limit_hold_or_are_flagged(seeds: int) -> None:
    """However many of the runs fill a buffer; their values differ by some bytes, so that no rule of equal values sees it."""
    full, samples = simulated.full_of(simulated.LARGEST), 1000
    assert full == 0.98 * 512e3
    points = [*(values for _, values in simulated.at_limit()), *map(simulated.pressed, simulated.PRESSED)]
    often = [float((values >= full).mean()) for values in points]
    assert min(often) < 0.3 and max(often) > 0.98 and sum(own > 0.9 for own in often) >= 4
    for values in points:
        if float(np.median(values)) < 1e5:
            continue  # eight hosts, of which few fill anything: not a matter of limits
        found = many_samples.coverage(values, seeds, samples, full=full)
        if found.firm >= samples // 10:
            assert found.misses <= LIMIT + noise(found.firm, LIMIT), (float((values >= full).mean()), found)
    before = many_samples.coverage(simulated.pressed(0.97), 20, samples)
    assert before.firm >= samples // 4 and before.misses > 0.2, "it was called sure with twenty seeds, and was not"


# -- elsewhere -----------------------------------------------------------------------------------------------------------


def test_elsewhere_intervals_hold_or_are_flagged() -> None:
    """Timeouts of 200 ms, CUBIC without marking, few flows, the demo, one spine: numbers that were chosen elsewhere say nothing."""
    samples = 120
    firm = dict.fromkeys(real_seeds.ELSEWHERE, 0)
    for what, metric, values in simulated.elsewhere():
        for seeds in simulated.COUNTS:
            found = simulated.coverage_elsewhere(what, metric, values, seeds, samples)
            assert found.firm == 0 or seeds >= statistics.RARE, (what, metric, seeds)
            firm[what] += found.firm >= samples // 2
            if found.firm >= samples // 5:
                assert found.misses <= LIMIT + noise(found.firm, LIMIT), (what, metric, seeds)
    assert all(count >= 8 for count in firm.values()), firm


def test_numbers_of_seeds_that_were_chosen_elsewhere_fail_here() -> None:
    """The p99 of all flows with timeouts of 200 ms was judged from ten seeds on, and the largest queue, which has a cap."""
    for what, metric in (
        ("timeouts of 200 ms, K = 20", "fct/all.p99_ps"),
        ("CUBIC without marking", "total.largest_queue_bytes"),
    ):
        assert simulated.seeds_of(metric) == statistics.FEW
        (values,) = (own for place, name, own in simulated.elsewhere() if (place, name) == (what, metric))
        before = many_samples.coverage(values, 10, 300)
        assert before.firm >= 60 and before.misses >= 0.4, (what, before)
        assert simulated.under(what).seeds(metric) == statistics.RARE


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("transport.rto_min", "200ms", "a timeout takes 200 ms, tried: 10 ms"),
        ("transport.rto_initial", "1s", "a timeout takes 1 s, tried: 10 ms"),
        ("transport.congestion_control", "cubic", "transport.congestion_control.kind is cubic, tried: dctcp"),
        ("switch.marking", {"kind": "none"}, "switch.marking.kind is none, tried: threshold"),
        ("switch.marking.k", "10 packets", "switch.marking.k is 10 packets, tried: 20 to 200 packets"),
        ("switch.buffer.per_port", "100KB", "switch.buffer.per_port is 100KB, tried: 512KB"),
        ("topology.host_link.rate", "100Gbps", "topology.host_link.rate is 100Gbps, tried: 10Gbps"),
        ("traffic[0].sizes", "data-mining", "traffic[0].sizes.kind is data-mining, tried: web-search"),
        ("traffic[0].load", 0.8, "traffic[0].load is 0.8, tried: up to 0.6"),
        ("traffic[1].load", 0.2, "traffic[1].load is 0.2, tried: up to 0.05"),
        ("traffic[0].stop", "30ms", "traffic[0].stop is 30ms, tried: 5ms"),
        ("traffic[1].size", "60KB", "traffic[1].size is 60KB, tried: 20KB"),
        ("traffic[1].fanout", 10, "traffic[1].fanout is 10, tried: 20"),
        ("topology.uplink.delay", "50us", "topology.uplink.delay is 50us, tried: 1us"),
        ("topology.spines", 1, "a leaf is oversubscribed 2 times, tried: up to 1.25"),
        ("switch.mechanisms.trimming", {}, "switch.mechanisms has entries, tried: none"),
    ],
)
def test_what_is_otherwise_than_what_was_tried_is_named(setting: str, value: object, said: str) -> None:
    base = real_seeds.scenario_elsewhere("timeouts of 200 ms, K = 20").replace({"transport.rto_min": "10ms"})
    assert tried.of(settings(base.resolved)) == tried.TRIED
    assert said in tried.of(settings(base.replace({setting: value}).resolved)).outside


def test_few_flows_and_an_unknown_scenario_are_not_what_was_tried() -> None:
    assert tried.TRIED.with_counts([240.0, 500.0], [10.0]) == tried.TRIED
    few = tried.TRIED.with_counts([12.0, 500.0])
    assert few.outside == ("a run completed 12 flows, and at least 240 were tried",)
    assert (few.seeds("fct/all.p99_ps"), few.seeds("fct/>=1MB.mean_ps"), few.seeds("total.marks")) == (99, None, 99)
    assert (few.seeds("fct/all.slowdown_p50"), few.seeds("queries.p50_ps"), few.seeds_of_differences("fct/all.p50_ps")) == (
        None,
        99,
        None,
    )
    assert few.unseen_cost("fct/all.mean_ps", 12) == pytest.approx(10e9 / 12) and few.unseen_cost("fct/all.p50_ps") == 0
    assert few.seeds("queries.p95_ps") is None
    assert tried.of({}) == tried.UNKNOWN and tried.UNKNOWN.seeds("fct/all.p99_ps") is None
    assert tried.together([tried.TRIED, few]) == few and tried.TRIED.seeds("fct/all.p99_ps") == 10


@pytest.mark.parametrize(
    ("changes", "most"),
    [
        ({}, 512e3),
        ({"switch.buffer": {"kind": "static", "per_port": "24000 cells"}}, 24000 * 80.0),
        ({"switch.buffer": {"kind": "dynamic", "total": "4MB", "alpha": 1.0}}, 2e6),
        ({"switch.buffer": {"kind": "static", "per_port": "300 packets"}}, math.inf),
        ({"switch.buffer": "unlimited"}, math.inf),
        ({"switch.mechanisms.trimming": {}}, math.inf),
        ({"switch.except": [{"ports": ["leaf0->*"], "buffer": "1MB"}]}, math.inf),
    ],
)
def test_how_much_may_wait_at_a_port_is_known(changes: dict[str, object], most: float) -> None:
    """Where ports are alike, and nothing but their buffer holds packets."""
    base = real_seeds.scenario_elsewhere("1 spine, oversubscribed twice, K = 65")
    found = tried.of(settings(base.replace(changes).resolved))
    assert found.port_bytes == most
    assert found.full("total.largest_queue_bytes") == found.full("queue/to_hosts.p99_bytes") == pytest.approx(0.98 * most)
    assert found.full("queue/from_hosts.max_bytes") == found.full("queries.p99_ps") == math.inf
    other = tried.of(settings(base.replace({"switch.buffer.per_port": "100KB"}).resolved)) if not changes else found
    assert tried.together([found, other]).port_bytes == (math.inf if not changes else most)


def test_the_shortest_timeout_of_a_scenario_is_known() -> None:
    assert tried.timeout_ps({"transport.rto_min": "10ms", "traffic[0].transport.rto_min": "200us", "a.rto_max": "60s"}) == 10e9
    assert tried.timeout_ps({"transport.rto_high": "0.32 ms", "transport.rto_low": "100us"}) == 3.2e8
    assert tried.timeout_ps({"transport.rto_min": "10ms", "traffic[1].transport.ack_timeout": 14}) == pytest.approx(
        67.1e9, rel=1e-3
    )
    roce = Scenario.from_file(PAGE.parents[1] / "scenarios" / "roce.toml")
    assert tried.timeout_ps(settings(roce.resolved)) > 0
    assert tried.timeout_ps({"transport.rto_max": "60s"}) == 0


# -- the stop rule -------------------------------------------------------------------------------------------------------


def test_the_rule_stops_no_sequence_before_a_timeout_was_seen() -> None:
    """The rule before stopped some points early, and few of those intervals held the mean."""
    stop = Stop("queries.p99_ps", 0.1)
    before = [point for points in simulated.replayed_before(stop, 100, 60) for point in points if point.said]
    assert sum(point.held for point in before) < 0.5 * len(before)
    now = [point for points in replayed(stop, 100, 10) for point in points]
    assert all(point.seeds >= statistics.RARE for point in now)
    assert sum(point.said and not point.held for point in now) <= LIMIT * len(now)


def test_where_the_rule_says_yes_the_interval_holds() -> None:
    for stop in (Stop("fct/all.mean_ps", 0.1), Stop("queries.p99_ps", 0.4), Stop("total.goodput_bps", 0.1)):
        points = [point for points in replayed(stop, 200, 10) for point in points]
        said = [point for point in points if point.said]
        assert len(said) >= 0.5 * len(points), "a rule that never stops would be of no use"
        assert sum(point.held for point in said) / len(said) >= 1 - LIMIT - noise(10, 0.08), stop


# -- the page ------------------------------------------------------------------------------------------------------------


NEVER = {
    "times and slowdowns of flows of one size other than `>=1MB`": r"fct/(?!all\.|>=1MB\.).*",
    "`fct/all.p95_ps`": r"fct/all\.p95_ps",
    "slowdowns of all flows but the median": r"fct/all\.slowdown_(?!p50).*",
    "`queue/between_switches.p99_bytes`": r"queue/between_switches\.p99_bytes",
    "`total.drops`": r"total\.drops",
    "`total.retransmits`": r"total\.retransmits",
}
"""What the page says of the metrics that are never sure, and which those are."""


def test_the_page_lists_every_metric_that_was_measured_with_its_seeds() -> None:
    listed = re.findall(
        r"^\| `([^`]+)` \| (\w+) \|(?: [^|]+\|){3} (\w+) \|(?: [^|]+\|){3}$", MEASURED.read_text(encoding="utf-8"), re.MULTILINE
    )
    words = simulated.WORDS
    assert listed == [
        (name, *(words[simulated.seeds_of(name, kind)] for kind in ("means", "differences"))) for name in real_seeds.names()
    ]
    classes = re.findall(r"^\| (\w+) \| (\w+) \| (`fct/.*|`q.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    sure = sorted((name, *seeds) for *seeds, names in classes for name in re.findall(r"`([^`]+)`", names))
    assert sure == sorted(row for row in listed if row[1:] != ("never", "never"))
    sentence = re.search(
        r"^All other metrics are \*\*never\*\* sure, with any number of seeds: (.+?)\. ", PAGE.read_text("utf-8"), re.MULTILINE
    )
    assert sentence is not None
    assert re.split(", (?=`|times|slowdowns)", sentence[1]) == list(NEVER)
    never = [name for name, *seeds in listed if seeds == ["never", "never"]]
    for phrase, metrics in NEVER.items():
        described = [name for name in real_seeds.names() if re.fullmatch(metrics, name)]
        assert described, phrase
        assert set(described) <= set(never), phrase
    assert [name for name in never if not any(re.fullmatch(metrics, name) for metrics in NEVER.values())] == []
