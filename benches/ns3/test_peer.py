"""The ns-3 peer against closed forms: what it says must be right before anything is compared with it."""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jobs
import pytest
from jobs import GBPS, MS, US, Cbr, Flow, Link, Node, Watch

needs_peer = pytest.mark.skipif(
    not jobs.PEER.exists(),
    reason="the ns-3 peer is not built: apt-get install libns3-dev && make -C benches/ns3",
)

WIRE_PS = 1538 * 8 * 100  # a full packet at 10 Gb/s
AHEAD: dict[str, jobs.Option] = {"handshake_ahead_ps": MS, "queue_packets": 1000}


def pair() -> tuple[list[Node], list[Link]]:
    return jobs.star(2, 10 * GBPS, US)


def rows(path: Path) -> Iterator[tuple[int, str, int, int]]:
    with path.open() as file:
        for r in csv.DictReader(file):
            yield int(r["time_ps"]), r["event"], int(r["ip_bytes"]), int(r["port_packets"])


# ------------------------------------------------------------------------------------------------ making jobs, no ns-3


@pytest.mark.parametrize("k", [4, 8, 12, 16])
def test_fat_tree_has_the_right_size_and_degrees(k: int) -> None:
    nodes, links = jobs.fat_tree(k, GBPS, US)
    assert sum(n.host for n in nodes) == k**3 // 4
    assert sum(not n.host for n in nodes) == 5 * k * k // 4
    degree = Counter(end for link in links for end in (link.a, link.b))
    assert {degree[n.name] for n in nodes if n.host} == {1}
    assert {degree[n.name] for n in nodes if not n.host} == {k}
    assert len({(x.a, x.b) for x in links}) == len(links) == 3 * k**3 // 4


def test_permutation_has_no_fixed_point_and_depends_on_the_seed() -> None:
    for seed in range(20):
        p = jobs.permutation(128, seed)
        assert sorted(p) == list(range(128))
        assert all(i != j for i, j in enumerate(p))
    assert jobs.permutation(128, 1) != jobs.permutation(128, 2)
    assert jobs.permutation(128, 1) == jobs.permutation(128, 1)


def test_job_text() -> None:
    nodes, links = pair()
    text = jobs.job(
        nodes,
        links,
        [Flow(7, "h0", "h1", 1000, 5, path=("h0", "s", "h1"))],
        {"sack": False, "queue_packets": 9},
        [Watch("s", "h1"), Watch("h0", "s", "x.csv")],
        {"ns3::TcpCubic::HyStart": "false"},
    )
    assert text.splitlines() == [
        "fanin-ns3-job 1",
        "option sack off",
        "option queue_packets 9",
        "default ns3::TcpCubic::HyStart false",
        "node h0 host",
        "node h1 host",
        "node s switch",
        "link h0 s 10000000000 1000000",
        "link h1 s 10000000000 1000000",
        "flow 7 h0 h1 1000 5",
        "path 7 h0 s h1",
        "watch s h1",
        "watch h0 s x.csv",
    ]


@pytest.mark.parametrize("name", ["W4", "W2-7", "W2-", ""])
def test_unknown_workload_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="want"):
        jobs.workload(name, 1.0)


def test_a_missing_peer_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(jobs.PeerError, match="apt-get install libns3-dev"):
        jobs.run(tmp_path / "x.job", peer=tmp_path / "none")


# ---------------------------------------------------------------------------------------------------- the peer's timing


@needs_peer
@pytest.mark.parametrize("transport", ["newreno", "linux-reno", "cubic", "dctcp"])
def test_one_flow_takes_exactly_the_time_on_the_wire(transport: str) -> None:
    size = 10_000_000
    options = {**AHEAD, "transport": transport, "ecn_k_packets": 65 if transport == "dctcp" else 0}
    options["delack_timeout_ps"] = 100 * US
    nodes, links = pair()
    r = jobs.run_text(jobs.job(nodes, links, [Flow(0, "h0", "h1", size)], options))
    (flow,) = r["flows"]
    full, rest = divmod(size, 1448)
    # all segments on the first link, the last full one and the rest on the second, both delays,
    # and the one time step that ns-3 waits between the application's send and the first segment
    last = (rest + 52 + 38) * 8 * 100
    assert flow["finish_ps"] == (full + 1) * WIRE_PS + last + 2 * US + 1
    assert flow["bytes"] == size
    assert (flow["retransmits"], flow["timeouts"], flow["failed"]) == (0, 0, False)
    goodput = size * 8 / (flow["finish_ps"] * 1e-12)
    assert goodput == pytest.approx(10 * GBPS * 1448 / 1538, rel=1e-3)


@needs_peer
@pytest.mark.parametrize("hosts_links", [2, 5])
@pytest.mark.parametrize("delack", [1, 2])
def test_packet_hops_of_one_flow_are_exact(hosts_links: int, delack: int) -> None:
    segments = 1001
    nodes, links = jobs.chain(hosts_links, 10 * GBPS, US)
    options = {**AHEAD, "delack_count": delack}
    r = jobs.run_text(jobs.job(nodes, links, [Flow(0, "h0", "h1", segments * 1448)], options))
    acks = 1 + math.ceil((segments - 1) / delack)  # ns-3 answers the first segment of a connection at once
    assert r["totals"]["packet_hops"] == (3 + segments + acks) * hosts_links
    assert r["flows"][0]["segments"] == segments


@needs_peer
def test_handshake_costs_one_round_trip_unless_ahead() -> None:
    nodes, links = pair()
    times = [
        jobs.run_text(jobs.job(nodes, links, [Flow(0, "h0", "h1", 1448)], {"queue_packets": 9, **extra}))["flows"][0]
        for extra in ({"handshake_ahead_ps": MS}, {})
    ]
    # SYN and SYN-ACK are IP packets of 40 + 16 bytes; an ACK of 40 + 12 bytes goes in front of the data. Data that wait
    # for the connection leave at once, later ones one time step after the application's send.
    syn = (40 + 16 + 38) * 800
    ack = (40 + 12 + 38) * 800
    handshake = times[1]["finish_ps"] - times[0]["finish_ps"]
    assert handshake == 2 * (2 * syn + 2 * US) + ack - 1
    assert times[0]["established_ps"] < 0 < times[1]["established_ps"]


@needs_peer
def test_syns_of_an_incast_collide_unless_they_are_spaced() -> None:
    nodes, links = jobs.star(11, 10 * GBPS, US)
    flows = [Flow(i, f"h{i + 1}", "h0", 1448) for i in range(10)]
    options: dict[str, jobs.Option] = {"handshake_ahead_ps": MS, "queue_packets": 4, "rto_initial_ps": 100 * US}
    r = jobs.run_text(jobs.job(nodes, links, flows, options))
    assert sum(f["syn_retransmits"] for f in r["flows"]) == 6 + 2  # ten into four, and the six again into four
    r = jobs.run_text(jobs.job(nodes, links, flows, {**options, "handshake_spacing_ps": 10 * US}))
    assert sum(f["syn_retransmits"] for f in r["flows"]) == 0


@needs_peer
def test_line_rate_cbr_arrives_to_the_picosecond() -> None:
    n, hops = 1000, 6
    r = jobs.run_text(jobs.w3(n / 2_000_000))
    assert r["flows"][0]["finish_ps"] == (n - 1 + hops) * WIRE_PS + hops * US
    assert r["flows"][0]["packets"] == n
    assert r["totals"]["packet_hops"] == n * hops
    assert r["totals"]["drops"] == 0


# ---------------------------------------------------------------------------------------------------- the peer's queues


@needs_peer
@pytest.mark.parametrize("limit", [3, 10, 100])
def test_two_line_rate_streams_fill_one_port_and_lose_half(limit: int, tmp_path: Path) -> None:
    n = 1000
    nodes, links = jobs.star(3, 10 * GBPS, US)
    flows = [Cbr(0, "h1", "h0", 10 * GBPS, 1500, n), Cbr(1, "h2", "h0", 10 * GBPS, 1500, n, WIRE_PS // 2)]
    options: dict[str, jobs.Option] = {"transport": "udp-cbr", "queue_packets": limit}
    trace = tmp_path / "q.csv"
    r = jobs.run_text(jobs.job(nodes, links, flows, options, [Watch("s", "h0", str(trace))]))
    (port,) = r["ports"]
    assert port["peak_packets"] == limit
    assert port["peak_bytes"] == 1500 * limit
    assert port["waiting_peak_packets"] == limit - 1
    assert port["drops"] == r["totals"]["drops"] == 2 * n - port["tx_packets"]
    assert port["tx_packets"] == pytest.approx(n + limit, abs=2)
    assert r["flows"][0]["finish_ps"] is None or r["flows"][1]["finish_ps"] is None

    end = max(t for t, *_ in rows(trace)) + US  # the last delivery
    area, before, level = 0, 0, 0
    for t, event, _, packets in rows(trace):
        area += level * (t - before)
        before, level = t, packets
        assert event != "drop" or packets == limit
    assert port["mean_packets"] == pytest.approx(area / end, rel=1e-9)


@needs_peer
@pytest.mark.parametrize("k", [4, 20])
def test_dctcp_marks_at_exactly_k_packets_at_the_port(k: int, tmp_path: Path) -> None:
    nodes, links = jobs.star(5, 10 * GBPS, US)
    flows = [Flow(i, f"h{i + 1}", "h0", 1_000_000) for i in range(4)]
    trace = tmp_path / "q.csv"
    options = {**AHEAD, "transport": "dctcp", "ecn_k_packets": k, "rto_min_ps": 10 * MS}
    r = jobs.run_text(jobs.job(nodes, links, flows, options, [Watch("s", "h0", str(trace))]))
    (port,) = r["ports"]
    marks = 0
    marked = False
    for _, event, _, packets in rows(trace):
        if event == "mark":
            assert packets >= k
            marked = True
            marks += 1
        elif event == "enqueue":
            assert marked == (packets - 1 >= k)
            marked = False
    assert marks == port["marks"] == r["totals"]["marks"] > 0
    assert port["drops"] == 0
    assert r["totals"]["unfinished"] == 0


@needs_peer
def test_incast_into_a_tiny_buffer_drops_and_recovers() -> None:
    nodes, links = jobs.star(21, 10 * GBPS, 10 * US)
    flows = [Flow(i, f"h{i + 1}", "h0", 100_000) for i in range(20)]
    options: dict[str, jobs.Option] = {
        "handshake_ahead_ps": MS,
        "handshake_spacing_ps": 10 * US,
        "queue_packets": 10,
        "rto_min_ps": 10 * MS,
        "clock_granularity_ps": US,
        "delack_timeout_ps": MS,  # above RTO_min, the delayed ACK of a last odd segment arrives after a timeout
    }
    r = jobs.run_text(jobs.job(nodes, links, flows, options, [Watch("s", "h0")]))
    (port,) = r["ports"]
    assert port["peak_packets"] == 10
    assert r["totals"]["unfinished"] == 0
    # one port, no loss elsewhere: what was lost was sent again
    assert 0 < port["drops"] <= sum(f["retransmits"] for f in r["flows"])
    assert sum(f["timeouts"] for f in r["flows"]) > 0
    assert all(f["syn_retransmits"] == 0 and f["established_ps"] < 0 for f in r["flows"])
    for f in r["flows"]:
        assert f["bytes"] == 100_000
        assert f["timeouts"] == 0 or f["finish_ps"] > 10 * MS


# --------------------------------------------------------------------------------------------------- the peer's routing


@needs_peer
def test_pinned_paths_are_taken_and_ecmp_spreads() -> None:
    nodes, links = jobs.fat_tree(4, 10 * GBPS, US)
    flow = Flow(0, "h0", "h15", 144_800)
    cores = [(f"a0_{a}", f"c{a}_{c}") for a in (0, 1) for c in (0, 1)]
    watches = [Watch(*x) for x in cores]
    for agg, core in cores:
        other = "c0_0" if core != "c0_0" else "c1_1"
        path = ("h0", "e0_0", agg, core, f"a3_{agg[-1]}", "e3_1", "h15")
        back = ("h15", "e3_1", f"a3_{other[1]}", other, f"a0_{other[1]}", "e0_0", "h0")
        pinned = Flow(0, "h0", "h15", 144_800, path=path, ack_path=back)
        r = jobs.run_text(jobs.job(nodes, links, [pinned], AHEAD, [*watches, Watch(other, f"a0_{other[1]}")]))
        used = {tuple(p["port"]): p["tx_packets"] for p in r["ports"]}
        assert {x for x in cores if used[x]} == {(agg, core)}
        assert used[(agg, core)] == 100 + 2  # data, SYN, ACK
        assert used[(other, f"a0_{other[1]}")] > 50

    used_by_seed = set()
    for seed in range(12):
        r = jobs.run_text(jobs.job(nodes, links, [flow], {**AHEAD, "ecmp_seed": seed}, watches))
        taken = [tuple(p["port"]) for p in r["ports"] if p["tx_packets"]]
        assert len(taken) == 1  # a flow keeps to one path
        used_by_seed.add(taken[0])
    assert len(used_by_seed) >= 3
    r = jobs.run_text(jobs.job(nodes, links, [flow], {**AHEAD, "ecmp": False}, watches))
    assert r["ports"][0]["tx_packets"] == 102


@needs_peer
def test_measuring_does_not_change_the_simulation_and_runs_repeat() -> None:
    text = jobs.w2(16, scale=0.05)
    a, b = jobs.run_text(text), jobs.run_text(text)
    assert a["flows"] == b["flows"]
    m = jobs.measure(text, repeat=2)  # raises if finish times differ
    assert m["packet_hops"] == a["totals"]["packet_hops"]
    assert m["unfinished"] == 0
    assert len(m["cpu_s"]) == 2


# ------------------------------------------------------------------------------------------------------------- refusals

GOOD = jobs.job(*pair(), [Flow(0, "h0", "h1", 1000)], {"queue_packets": 10})

WRONG: dict[str, tuple[str, str]] = {
    "header": ("fanin-ns3-job 1", "fanin-ns3-job 2"),
    "unknown option 'quue'": ("option queue_packets 10", "option quue 10"),
    "exactly one of option queue_packets": ("option queue_packets 10", ""),
    "want an integer from 0": ("option queue_packets 10", "option queue_packets -10"),
    "below 3": ("option queue_packets 10", "option queue_packets 2"),
    "needs option ecn_k_packets": ("option queue", "option transport dctcp\noption queue"),
    "below 4": ("option queue", "option ecn_k_packets 3\noption queue"),
    "in one unit": ("option queue", "option ecn_k_bytes 90000\noption queue"),
    "want cubic|dctcp|": ("option queue", "option transport reno\noption queue"),
    "ns-3 refuses default": ("node h0", "default ns3::Nothing::AtAll 1\nnode h0"),
    "defined twice": ("node h0 host", "node h0 host\nnode h0 host"),
    "want host|switch": ("node h0 host", "node h0 router"),
    "no node defined above": ("flow 0 h0 h1", "flow 0 h0 h9"),
    "is no host": ("flow 0 h0 h1", "flow 0 h0 s"),
    "same source and destination": ("flow 0 h0 h1", "flow 0 h0 h0"),
    "a whole number of picoseconds": ("link h0 s 10000000000", "link h0 s 7000000000"),
    "second link": ("flow 0", "link h0 s 1000000000 1\nflow 0"),
    "has 0 links": ("flow 0", "node h7 host\nflow 0"),
    "no path for flow": ("flow 0 h0 h1", "node t switch\nnode h2 host\nlink t h2 1000000000 1\nflow 0 h0 h2"),
    "unknown statement 'flaw'": ("flow 0", "flaw 0"),
    "no link between": ("flow 0", "watch h0 h1\nflow 0"),
    "does not join its ends": ("1000 0\n", "1000 0\npath 0 s h1\n"),
}


@needs_peer
@pytest.mark.parametrize("message", WRONG)
def test_a_wrong_job_is_refused_with_a_reason(message: str) -> None:
    old, new = WRONG[message]
    assert old in GOOD
    want = "first statement must be" if message == "header" else message
    with pytest.raises(jobs.PeerError, match=re.escape(want)):
        jobs.run_text(GOOD.replace(old, new, 1))


@needs_peer
def test_all_errors_come_at_once_with_line_numbers() -> None:
    text = GOOD.replace("node h0 host", "node h0 router").replace("option queue_packets 10", "option nonsense 1")
    with pytest.raises(jobs.PeerError) as caught:
        jobs.run_text(text)
    message: Any = str(caught.value)
    assert "line 2: unknown option" in message
    assert "line 3: node kind is 'router'" in message
    assert "exactly one of" in message
