"""Fanin against ns-3 3.37: the same experiments, compared flow by flow and at the bottleneck.

`docs/dev/ns3-experiments.md` says what is made equal and why a tolerance is what it is; run this file as a program to
print its table anew. Folders of a failed comparison can be run by hand: ``fanin run scenario.toml -o out``,
``benches/ns3/build/peer ns3.job``.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from compare import MSS, Case, Outcome, pinned, run_fanin, run_ns3
from jobs import GBPS, MS, PEER, US, Flow, Link, Node, fat_tree, permutation

pytestmark = pytest.mark.skipif(
    not PEER.exists(),
    reason="the ns-3 peer is not built: apt-get install libns3-dev (Debian 12), then make -C benches/ns3",
)

APART = 37_001
"""Links of different senders differ by this [ps], so that no two packets reach a switch in the same picosecond: their order
would be each simulator's own."""

STEP = 137_000
"""Flows start this far apart [ps]."""


@dataclass(frozen=True)
class Tolerance:
    """How far Fanin may be from ns-3: fractions of ns-3's value, but `peak` in packets and `fct_ps` in picoseconds.

    `last` is the longest completion time, `fct` the mean of all, `each` that of each flow; None: not compared.
    """

    last: float = 0.0
    fct: float = 0.0
    each: float | None = 0.0
    fct_ps: int = 2
    retransmits: float = 0.0
    marks: float = 0.0
    peak: int = 0
    mean: float = 1e-9


EXACT = Tolerance()
"""Packet by packet, to the picosecond; ns-3 waits one between `Send` and the first packet, and prints 12 digits."""


def dumbbell(senders: int, rate: int, delay: int) -> tuple[list[Node], list[Link]]:
    """Senders s0 … at switch a, receiver d at switch b; edges ten times as fast as the link between the switches."""
    nodes = [Node(f"s{i}", True) for i in range(senders)] + [Node("d", True), Node("a", False), Node("b", False)]
    edge = 10 * rate
    links = [Link(f"s{i}", "a", edge, US + (i + 1) * APART) for i in range(senders)]
    return nodes, [*links, Link("a", "b", rate, delay), Link("b", "d", edge, US)]


def bundle(senders: int, size: int) -> list[Flow]:
    """A flow from each sender of a dumbbell."""
    return [Flow(i, f"s{i}", "d", size, i * 100 * STEP) for i in range(senders)]


def incast(senders: int, size: int) -> tuple[list[Node], list[Link], list[Flow]]:
    """Senders h1 … to h0 through one switch; all start within their first window's time.

    A small packet of another host is being sent when the first of them arrives: the packets of the flow that finds the port
    idle would arrive in the very picoseconds in which packets leave.
    """
    names = [f"h{i}" for i in range(senders + 2)]
    links = [Link(n, "s", 10 * GBPS, 10 * US + i * APART) for i, n in enumerate(names)]
    flows = [Flow(i, n, "h0", size, US // 2 + i * STEP) for i, n in enumerate(names[1:-1])]
    return [*(Node(n, True) for n in names), Node("s", False)], links, [*flows, Flow("first", names[-1], "h0", 1000)]


def below(segments: int) -> dict[str, Any]:
    """A slow start that ends at `segments`, in both simulators."""
    return {
        "initial_window": min(10, segments),
        "tcp": {"initial_ssthresh": f"{segments * MSS}B"},
        "ns3_defaults": {"ns3::TcpSocket::InitialSlowStartThreshold": str(segments * MSS)},
    }


NEWRENO: dict[str, Any] = {"control": "newreno", "ns3": "newreno", "slow_start_limit": 1, "ack_every": 1}
"""RFC 5681 by ACKs: both add SMSS per ACK in slow start; with an ACK for each segment SMSS²/cwnd is byte counting."""

LINUX_RENO: dict[str, Any] = {"control": "newreno", "ns3": "linux-reno", "slow_start_limit": 65_535, "ack_every": 2}
"""Delayed ACKs, segments counted in slow start and in congestion avoidance."""

CUBIC: dict[str, Any] = {
    "control": "cubic",
    "ns3": "cubic",
    "control_keys": {"reno_friendly": False},
    "ack_every": 1,
    "rto_min": 200 * MS,
}
"""ns-3 has no Reno-friendly region; its HyStart is off."""

DCTCP: dict[str, Any] = {
    "control": "dctcp",
    "ns3": "dctcp",
    "control_keys": {"min_window": 1},
    "ack_every": 1,
    "ns3_options": {"dctcp_alpha": 0.9375},
}
"""RFC 8257 §3.3 ends an empty first window at the first ACK, ns-3 does not: its alpha begins one step of g later."""


@dataclass(frozen=True)
class Scenario:
    """A case, what is allowed, and why."""

    case: Case
    tolerance: Tolerance
    why: str
    pin: bool = False


DROP_TAIL = {
    1: Tolerance(last=1e-9, fct=1e-9, mean=0.01),
    2: Tolerance(last=0.002, fct=0.02, each=None, retransmits=0.3, mean=0.05),
    8: Tolerance(last=0.002, fct=0.08, each=None, retransmits=0.35, mean=0.08),
}
"""By number of flows."""

MARKED = {
    1: Tolerance(last=1e-9, fct=1e-9, marks=0.02, mean=0.005),
    2: Tolerance(last=0.002, fct=0.01, each=None, marks=0.12, mean=0.04),
    8: Tolerance(last=0.002, fct=0.06, each=None, marks=0.12, mean=0.04),
}
"""By number of flows."""

LOSSY = "which packet meets the full buffer is chaotic: one packet more or less decides who loses"


def lossless() -> Iterator[Scenario]:
    """No loss, no marks: nothing but slow start, queues and ACK clocks. Everything must be equal."""
    why = "deterministic"
    nodes, links = dumbbell(1, GBPS, 10 * US)
    watch = ("a", "b")
    for kind, keys in (("newreno", NEWRENO), ("linux-reno", LINUX_RENO)):
        case = Case(f"one flow, {kind}", nodes, links, bundle(1, 2_000_000), watch, buffer=4000, rto_min=100 * MS, **keys)
        yield Scenario(case, EXACT, why)
    nodes, links = dumbbell(8, GBPS, 10 * US)
    case = Case("8 flows", nodes, links, bundle(8, 500_000), watch, buffer=4000, rto_min=100 * MS, **NEWRENO)
    yield Scenario(case, EXACT, why)
    case = replace(case, name="8 flows, RTO_min below the queue's 24 ms", rto_min=10 * MS)
    yield Scenario(
        case,
        Tolerance(last=0.002, fct=0.005, each=0.002, retransmits=0.12, mean=0.02),
        "spurious timeouts: ns-3 ignores duplicate ACKs after one, RFC 6582 §4.1 looks at them",
    )
    for senders in (16, 40):
        nodes, links, flows = incast(senders, 256_000)
        case = Case(f"incast {senders} to 1, deep buffer", nodes, links, flows, ("s", "h0"), buffer=8000, **LINUX_RENO)
        yield Scenario(case, EXACT, why)
    nodes, links = fat_tree(4, 10 * GBPS, US)
    links = [replace(x, delay_ps=x.delay_ps + i * APART) for i, x in enumerate(links)]
    flows = [Flow(i, f"h{i}", f"h{j}", 500_000, i * STEP) for i, j in enumerate(permutation(16, 1))]
    case = Case("fat tree k = 4, permutation", nodes, links, flows, ("e0_0", "h0"), buffer=4000, **LINUX_RENO)
    yield Scenario(case, EXACT, why, pin=True)


def drop_tail() -> Iterator[Scenario]:
    """NewReno over 1 Gb/s and 102 us into 60 packets."""
    watch = ("a", "b")
    for sack in (False, True):
        word = "SACK" if sack else "no SACK"
        for senders, ssthresh, size in ((1, 60, 8_000_000), (2, 24, 4_000_000), (8, 6, 1_000_000)):
            nodes, links = dumbbell(senders, GBPS, 50 * US)
            keys = {**NEWRENO, **below(ssthresh)}
            flows = bundle(senders, size)
            case = Case(f"drop tail, {senders} flows, {word}", nodes, links, flows, watch, buffer=60, sack=sack, **keys)
            yield Scenario(case, DROP_TAIL[senders], LOSSY if senders > 1 else "deterministic; ns-3 counts whole segments")
    nodes, links = dumbbell(1, GBPS, 50 * US)
    case = Case("drop tail, slow start overshoots, SACK", nodes, links, bundle(1, 2_000_000), watch, buffer=100, **NEWRENO)
    yield Scenario(case, Tolerance(last=1e-9, mean=0.03), "one burst of losses, repaired in one recovery")


def incast_drops() -> Iterator[Scenario]:
    """NewReno incast into a buffer that drops."""
    for senders, buffer in ((16, 250), (40, 500)):
        nodes, links, flows = incast(senders, 256_000)
        case = Case(
            f"incast {senders} to 1, {buffer} packets", nodes, links, flows, ("s", "h0"), buffer=buffer, sack=False, **LINUX_RENO
        )
        yield Scenario(case, Tolerance(last=0.03, fct=0.03, each=None, retransmits=0.05, mean=0.05), LOSSY)


def cubic() -> Iterator[Scenario]:
    """CUBIC over 100 Mb/s and 10 ms, long enough for the window function to come back to W_max."""
    for senders in (1, 2):
        nodes, links = dumbbell(senders, GBPS // 10, 5 * MS)
        keys = {**CUBIC, **below(150 // senders)}
        keys["ns3_defaults"] |= {"ns3::TcpCubic::HyStart": "false"}
        flows = bundle(senders, 60_000_000 // senders)
        case = Case(f"CUBIC, {senders} flows", nodes, links, flows, ("a", "b"), buffer=50, **keys)
        if senders == 1:
            yield Scenario(case, Tolerance(last=1e-9, fct=1e-9, retransmits=0.2, mean=0.05), "ns-3 counts whole segments")
        else:
            share = "whether one or both lose at the second overflow decides the shares for seconds (K = 4 s)"
            yield Scenario(case, Tolerance(last=0.05, fct=0.03, each=None, retransmits=0.3, mean=0.2), share)


def dctcp() -> Iterator[Scenario]:
    """DCTCP at 1 and 10 Gb/s, with its published thresholds."""
    why = "ns-3 counts whole segments: the window grows one ACK earlier"
    for rate, k, size in ((GBPS, 20, 2_000_000), (10 * GBPS, 65, 4_000_000)):
        for senders in (1, 2, 8):
            nodes, links = dumbbell(senders, rate, 20 * US)
            name = f"DCTCP, {senders} flows, {rate // GBPS} Gb/s, K = {k}"
            case = Case(name, nodes, links, bundle(senders, size), ("a", "b"), buffer=1000, k=k, **DCTCP)
            yield Scenario(case, MARKED[senders], why)
            if rate > GBPS and senders > 1:
                case = replace(case, name=f"{name}, delayed ACKs", ack_every=2)
                yield Scenario(
                    case,
                    Tolerance(last=0.01, fct=0.06, each=None, marks=0.12, mean=0.04),
                    f"{why}; ns-3 delays the ACK of the packet that changes the CE state",
                )
    for senders, k, buffer in ((16, 65, 1000), (16, 65, 160), (40, 200, 2000), (40, 200, 400)):
        nodes, links, flows = incast(senders, 256_000)
        name = f"DCTCP incast {senders} to 1, K = {k}, {buffer} packets"
        case = Case(name, nodes, links, flows, ("s", "h0"), buffer=buffer, k=k, **DCTCP)
        if buffer >= 1000:
            yield Scenario(case, Tolerance(last=0.03, fct=0.04, each=None, marks=0.15, mean=0.1), why)
        else:
            loss = "after a loss ns-3 reduces by alpha/2, RFC 8257 §3.5 halves: fewer marks and a shorter queue in Fanin"
            yield Scenario(
                case, Tolerance(last=0.05, fct=0.1, each=None, retransmits=0.2, marks=0.4, mean=0.15), f"{loss}; {LOSSY}"
            )


SCENARIOS = [*lossless(), *drop_tail(), *incast_drops(), *cubic(), *dctcp()]


def mean(values: list[int]) -> float:
    """The arithmetic mean."""
    return sum(values) / len(values)


def rows(fanin: Outcome, ns3: Outcome, t: Tolerance) -> Iterator[tuple[str, float, float, float]]:
    """What is compared: name, Fanin's value, ns-3's, and the largest difference allowed."""
    for i, (a, b) in enumerate(zip(fanin.delivered, ns3.delivered, strict=True)):
        yield f"bytes of flow {i}", a, b, 0
    if t.each is not None:
        for i, (a, b) in enumerate(zip(fanin.fct_ps, ns3.fct_ps, strict=True)):
            yield f"completion of flow {i} [ps]", a, b, t.each * b + t.fct_ps
    yield "last completion [ps]", fanin.last_ps, ns3.last_ps, t.last * ns3.last_ps + t.fct_ps
    yield "mean completion [ps]", mean(fanin.fct_ps), mean(ns3.fct_ps), t.fct * mean(ns3.fct_ps) + t.fct_ps
    yield "retransmissions", sum(fanin.retransmits), sum(ns3.retransmits), t.retransmits * sum(ns3.retransmits)
    yield "marks", fanin.marks, ns3.marks, t.marks * ns3.marks
    yield "peak queue [packets]", fanin.peak, ns3.peak, t.peak
    yield "mean queue [packets]", fanin.mean, ns3.mean, t.mean * ns3.mean + 1e-6


def measure(scenario: Scenario, folder: Path) -> list[tuple[str, float, float, float]]:
    """Run both simulators."""
    case = pinned(scenario.case, folder) if scenario.pin else scenario.case
    return list(rows(run_fanin(case, folder), run_ns3(case, folder), scenario.tolerance))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.case.name)
def test_agrees_with_ns3(scenario: Scenario, tmp_path: Path) -> None:
    off = [
        f"{what}: fanin {a:.6g}, ns-3 {b:.6g}, {a - b:+.4g}, allowed ±{limit:.4g}"
        for what, a, b, limit in measure(scenario, tmp_path)
        if abs(a - b) > limit
    ]
    assert not off, "\n".join([f"{scenario.case.name} ({tmp_path}):", *off])


def test_the_comparison_sees_a_difference(tmp_path: Path) -> None:
    """One packet less in Fanin's buffer, one segment less in its initial window: neither may pass."""
    exact = SCENARIOS[0]
    ns3 = run_ns3(exact.case, tmp_path)
    fanin = run_fanin(replace(exact.case, initial_window=9), tmp_path)
    assert any(abs(a - b) > limit for _, a, b, limit in rows(fanin, ns3, exact.tolerance))
    lossy = next(s for s in SCENARIOS if s.case.name.startswith("drop tail, 1 flows"))
    ns3 = run_ns3(lossy.case, tmp_path)
    fanin = run_fanin(replace(lossy.case, buffer=59), tmp_path)
    assert any(abs(a - b) > limit for _, a, b, limit in rows(fanin, ns3, lossy.tolerance))


COLUMNS = {
    "last completion [ps]": "last completion [us]",
    "mean completion [ps]": "mean completion [us]",
    "retransmissions": "retransmissions",
    "marks": "marks",
    "peak queue [packets]": "peak queue [packets]",
    "mean queue [packets]": "mean queue [packets]",
}


def cell(name: str, a: float, b: float, limit: float) -> str:
    """``fanin = `` when ns-3 has the same, else ``fanin / ns-3 (difference)``; then what is allowed, if more than rounding."""
    scale, exact = (10**6, 3) if name.endswith("[ps]") else (1, 1e-5)
    shown = [f"{x / scale:.2f}" if scale > 1 or name.startswith("mean") else f"{x:g}" for x in (a, b)]
    same = abs(a - b) <= exact
    text = f"{shown[0]} =" if same else f"{shown[0]} / {shown[1]} ({100 * (a - b) / b:+.2g} %)"
    if limit <= max(exact, 1e-8 * b):
        return text
    return f"{text} ±{limit:g}" if name.startswith("peak") else f"{text} ±{100 * limit / b:.2g} %"


def main() -> None:
    """Print the table of docs/dev/ns3-experiments.md."""
    print(f"| scenario | {' | '.join(COLUMNS.values())} |\n|---|{'---|' * len(COLUMNS)}")
    for scenario in SCENARIOS:
        with tempfile.TemporaryDirectory() as folder:
            cells = {name: cell(name, a, b, limit) for name, a, b, limit in measure(scenario, Path(folder)) if name in COLUMNS}
        print(f"| {scenario.case.name} | {' | '.join(cells.values())} |", flush=True)


if __name__ == "__main__":
    main()
