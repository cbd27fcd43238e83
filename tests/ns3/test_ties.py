"""Incasts whose packets arrive in the same picosecond, in Fanin and ns-3 3.37: distributions over seeds.

All links are equal and all flows start at multiples of a packet's time, so that most packets reach the switch together with
others. Who is first is each simulator's own, and no run is like its peer's; what many runs have in common is compared.
docs/dev/ns3-experiments.md has the numbers; run this file as a program to print its table anew.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import fmean, quantiles

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from compare import Case, Outcome, run_fanin, run_ns3
from jobs import GBPS, PEER, US, Flow, star
from test_against_ns3 import NEWRENO

pytestmark = pytest.mark.skipif(
    not PEER.exists(),
    reason="the ns-3 peer is not built: apt-get install libns3-dev (Debian 12), then make -C benches/ns3",
)

SENDERS = 18
SEEDS = range(1, 11)
SLOTS = 32
"""Flows start within this many packet times."""

EXPERIMENTS = [(500_000, 60), (500_000, 100), (1_000_000, 100)]
"""Bytes of each flow, and packets that may wait."""

TIMEOUTS = 2.0
"""By how much timeouts per run may differ, in the mean over seeds: of 18 flows, one in nine. NewReno without SACK retransmits
otherwise in ns-3 after a burst of losses (docs/ns3.md), so that the means are not the same."""

COMPLETION = 0.1
"""By which share the mean completion time may differ."""

LATE = 0.2
"""By which share its 95th percentile may differ: where a timeout of 10 ms decides."""

UNFAIR = 2.58 / (len(SEEDS) * (SENDERS - 1)) ** 0.5
"""Rank correlation of host number and completion, mean over seeds: what one run in a hundred exceeds if there is none."""


@dataclass(frozen=True)
class Summary:
    """What the runs of an experiment come down to: means over seeds, and quantiles of all flows' completion times [ms]."""

    timeouts: float
    mean_ms: float
    p95_ms: float
    retransmits: float
    rank: float


def case(size: int, buffer: int, seed: int) -> Case:
    """Senders h1 to h18 to h0 through one switch, all links equal."""
    nodes, links = star(SENDERS + 1, 10 * GBPS, 10 * US)
    made = Case(f"{size} B, {buffer} packets", nodes, links, [], ("s", "h0"), buffer=buffer, sack=False, seed=seed, **NEWRENO)
    draw = random.Random(seed)
    flows = [Flow(i, f"h{i}", "h0", size, draw.randrange(SLOTS) * made.packet_ps) for i in range(1, SENDERS + 1)]
    return replace(made, flows=flows)


def rank_correlation(values: Sequence[float]) -> float:
    """Spearman's, of place and value; the values differ."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    ranks = {place: rank for rank, place in enumerate(order)}
    n = len(values)
    return 1 - 6 * sum((place - ranks[place]) ** 2 for place in range(n)) / (n * (n * n - 1))


def summary(outcomes: Sequence[Outcome]) -> Summary:
    """Reduce the runs of an experiment."""
    times = [t / 1e9 for outcome in outcomes for t in outcome.fct_ps]
    return Summary(
        timeouts=fmean(sum(outcome.timeouts) for outcome in outcomes),
        mean_ms=fmean(times),
        p95_ms=quantiles(times, n=20)[-1],
        retransmits=fmean(sum(outcome.retransmits) for outcome in outcomes),
        rank=fmean(rank_correlation(outcome.fct_ps) for outcome in outcomes),
    )


@cache
def measured(size: int, buffer: int) -> dict[str, Summary]:
    """Run an experiment with each rule."""
    cases = [case(size, buffer, seed) for seed in SEEDS]
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found["ns-3"] = summary([run_ns3(one, folder) for one in cases])
        for ties in ("drawn", "by_link"):
            found[ties] = summary([run_fanin(replace(one, ties=ties), folder) for one in cases])
    return found


@pytest.mark.parametrize(("size", "buffer"), EXPERIMENTS)
def test_drawn_ties_agree_with_ns3_in_distribution(size: int, buffer: int) -> None:
    found = measured(size, buffer)
    fanin, ns3 = found["drawn"], found["ns-3"]
    assert abs(fanin.timeouts - ns3.timeouts) <= TIMEOUTS, found
    assert fanin.mean_ms == pytest.approx(ns3.mean_ms, rel=COMPLETION), found
    assert fanin.p95_ms == pytest.approx(ns3.p95_ms, rel=LATE), found
    assert abs(fanin.rank) < UNFAIR, found


@pytest.mark.parametrize(("size", "buffer"), EXPERIMENTS)
def test_the_order_of_links_does_not(size: int, buffer: int) -> None:
    """What the comparison is to see: with one order for all ties the last hosts lose again and again, and time out."""
    found = measured(size, buffer)
    fanin, ns3 = found["by_link"], found["ns-3"]
    assert fanin.timeouts > ns3.timeouts + 5 * TIMEOUTS, found
    assert fanin.mean_ms > (1 + 3 * COMPLETION) * ns3.mean_ms, found
    assert fanin.rank > 3 * UNFAIR, found


def main() -> None:
    """Print the table of docs/dev/ns3-experiments.md."""
    print("| incast | ties | timeouts per run | mean completion [ms] | 95th percentile [ms] | retransmissions | rank correlation |")
    print("|---|---|---|---|---|---|---|")
    for size, buffer in EXPERIMENTS:
        for name, s in measured(size, buffer).items():
            cells = [f"{s.timeouts:.1f}", f"{s.mean_ms:.2f}", f"{s.p95_ms:.2f}", f"{s.retransmits:.0f}", f"{s.rank:+.2f}"]
            print(f"| {size // 1000} KB, {buffer} packets | {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
