"""The htsim peer against closed forms, and its work against Fanin's: that must be right before speeds are compared."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
from pathlib import Path
from typing import Any

import jobs
import pytest
from jobs import ns3

Flow, Cbr, GBPS, US = ns3.Flow, ns3.Cbr, ns3.GBPS, ns3.US
BINARY = Path(os.environ.get("HTSIM_PEER", str(jobs.PEER)))
needs_peer = pytest.mark.skipif(
    not BINARY.exists(), reason="the htsim peer is not built: make -C benches/htsim HTSIM=/path/to/csg-htsim"
)

FRAME = 1538
BYTE_PS = 800  # at 10 Gb/s
OPTIONS = {"transport": "dctcp", "ecn_k_packets": 65, "queue_packets": 1000}


def run(text: str) -> Any:
    return ns3.run_text(text, BINARY)


def along(links: int) -> tuple[Any, Any, list[str]]:
    nodes, made = ns3.chain(links, 10 * GBPS, US)
    return nodes, made, ["h0", *(f"s{i}" for i in range(links - 1)), "h1"]


def one_flow(links: int, size: int, **options: Any) -> str:
    nodes, made, path = along(links)
    return str(ns3.job(nodes, made, [Flow(0, "h0", "h1", size, 0, path, path[::-1])], OPTIONS | options))


@needs_peer
@pytest.mark.parametrize("links", [2, 6])
@pytest.mark.parametrize("segments", [1, 1000])
def test_each_packet_and_its_acknowledgment_cross_each_link(links: int, segments: int) -> None:
    found = run(one_flow(links, 1448 * segments))
    assert found["totals"]["packet_hops"] == 2 * links * (segments + 1), "and so does the SYN"
    assert found["flows"][0]["segments"] == segments
    assert found["flows"][0]["bytes"] == 1448 * segments
    assert found["totals"]["unfinished"] == found["totals"]["drops"] == 0


@needs_peer
@pytest.mark.parametrize("links", [2, 6])
def test_a_packet_takes_its_time_on_the_wire(links: int) -> None:
    found = run(one_flow(links, 1))
    once = sum(size * BYTE_PS + US for size in (1, 40, FRAME))  # SYN, its acknowledgment, data
    assert found["flows"][0]["finish_ps"] == links * once


@needs_peer
def test_line_rate_packets_arrive_one_after_another() -> None:
    nodes, links, path = along(6)
    text = ns3.job(nodes, links, [Cbr(0, "h0", "h1", 10 * GBPS, 1500, 1000)], {"transport": "udp-cbr", "queue_packets": 100})
    found = run(text + f"path 0 {' '.join(path)}\n")
    assert found["flows"][0]["finish_ps"] == (1000 - 1 + 6) * FRAME * BYTE_PS + 6 * US
    assert (found["flows"][0]["bytes"], found["totals"]["packet_hops"]) == (1000 * 1472, 6000)


@needs_peer
def test_a_buffer_that_overflows_drops_and_all_is_sent_again() -> None:
    nodes, links = ns3.star(9, 10 * GBPS, US)
    flows = [Flow(i, f"h{i + 1}", "h0", 144_800, 0, (f"h{i + 1}", "s", "h0"), ("h0", "s", f"h{i + 1}")) for i in range(8)]
    found = run(ns3.job(nodes, links, flows, {"transport": "newreno", "queue_packets": 20}))
    assert found["totals"]["drops"] > 0
    assert sum(flow["retransmits"] for flow in found["flows"]) >= found["totals"]["drops"]
    assert [flow["bytes"] for flow in found["flows"]] == [144_800] * 8


@needs_peer
@pytest.mark.parametrize(("name", "scale"), [("W1", 0.1), ("W2-128", 0.1), ("W2-128", 1.0)])
def test_the_work_is_that_of_fanin(name: str, scale: float, tmp_path: Path) -> None:
    import fanin
    from fanin import _core

    theirs = run(jobs.workload(name, scale))
    ours = fanin.run(_core.bench_scenario(name, scale), progress=False)
    hops = _core.bench(name, scale, str(tmp_path))["packet_hops"]
    flows = ours.flows.sort("flow")
    assert flows["size_bytes"].to_list() == [flow["bytes"] for flow in theirs["flows"]]
    assert theirs["totals"]["drops"] == ours.summary["drops"] == 0
    assert theirs["totals"]["marks"] > 0 and ours.summary["marks"] > 0
    # Data cross the same links. An acknowledgment for each packet instead of each second: four hops for three.
    assert 4 / 3 * 0.9 < theirs["totals"]["packet_hops"] / hops < 4 / 3 * 1.1
    for reduce in (statistics.median, max):
        ratio = reduce(flow["finish_ps"] for flow in theirs["flows"]) / reduce(flows["finish_ps"].to_list())
        assert 0.87 < ratio < 1.15, f"{reduce.__name__} of completion times: {ratio:.2f}; 0.92 to 1.04 when this was written"


GOOD = one_flow(2, 1000)
WRONG = {
    "the first statement must be": ("fanin-ns3-job 1", "fanin-ns3-job 2"),
    "option rto_min_ps has no effect in htsim": ("option queue", "option rto_min_ps 5\noption queue"),
    "htsim has dctcp|newreno|udp-cbr": ("transport dctcp", "transport cubic"),
    "does not answer marks": ("transport dctcp", "transport newreno"),
    "want queue_packets": ("dctcp\noption ecn_k_packets 65\noption queue_packets 1000", "newreno\noption queue_bytes 1000000"),
    "default lines are ns-3's": ("node h0", "default ns3::TcpCubic::HyStart false\nnode h0"),
    "no port is watched here": ("flow 0", "watch s0 h1\nflow 0"),
    "needs a path line each way": ("path 0 h1 s0 h0\n", ""),
}


@needs_peer
@pytest.mark.parametrize("message", WRONG)
def test_a_wrong_job_is_refused_with_a_reason(message: str) -> None:
    old, new = WRONG[message]
    assert old in GOOD
    with pytest.raises(jobs.PeerError, match=re.escape(message)):
        run(GOOD.replace(old, new, 1))


@pytest.mark.parametrize("tree", ["", "/nonexistent"])
def test_make_says_what_tree_it_wants(tree: str) -> None:
    done = subprocess.run(["make", "-s", f"HTSIM={tree}"], cwd=jobs.HERE, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert f"HTSIM is '{tree}': want a source tree of csg-htsim" in done.stderr
