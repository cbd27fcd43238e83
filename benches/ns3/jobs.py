"""Make jobs for the ns-3 peer, run them, and measure them.

    python3 jobs.py make W2-128 --scale 0.1 > w2.job
    python3 jobs.py measure W1 --scale 0.1 [--repeat 3]

The job format is described at the top of peer.cc. Times are picoseconds, rates bit/s, sizes bytes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PEER = HERE / "build" / "peer"

US = 1_000_000  # picoseconds
MS = 1_000 * US
GBPS = 1_000_000_000


class PeerError(Exception):
    """The peer is missing, refused the job, or did not finish it."""


@dataclass(frozen=True)
class Node:
    """A host (one link) or a switch."""

    name: str
    host: bool

    def line(self) -> str:
        return f"node {self.name} {'host' if self.host else 'switch'}"


@dataclass(frozen=True)
class Link:
    """A full-duplex link."""

    a: str
    b: str
    rate: int
    delay_ps: int

    def line(self) -> str:
        return f"link {self.a} {self.b} {self.rate} {self.delay_ps}"


@dataclass(frozen=True)
class Flow:
    """A TCP transfer of ``size`` bytes; paths, if given, list all nodes from end to end."""

    id: int | str
    src: str
    dst: str
    size: int
    start_ps: int = 0
    path: Sequence[str] = ()
    ack_path: Sequence[str] = ()

    def line(self) -> str:
        text = f"flow {self.id} {self.src} {self.dst} {self.size} {self.start_ps}"
        for path in (self.path, self.ack_path):
            if path:
                text += f"\npath {self.id} {' '.join(path)}"
        return text


@dataclass(frozen=True)
class Cbr:
    """UDP at a constant rate; ``rate`` counts wire bytes, so the link's rate is line rate."""

    id: int | str
    src: str
    dst: str
    rate: int
    ip_bytes: int
    packets: int
    start_ps: int = 0

    def line(self) -> str:
        return f"cbr {self.id} {self.src} {self.dst} {self.rate} {self.ip_bytes} {self.packets} {self.start_ps}"


@dataclass(frozen=True)
class Watch:
    """The egress port of ``a`` towards ``b``; ``trace`` is a CSV of every queue event."""

    a: str
    b: str
    trace: str = ""

    def line(self) -> str:
        return f"watch {self.a} {self.b} {self.trace}".rstrip()


Option = str | int | float | bool


def job(
    nodes: Iterable[Node],
    links: Iterable[Link],
    flows: Iterable[Flow | Cbr],
    options: Mapping[str, Option],
    watches: Iterable[Watch] = (),
    defaults: Mapping[str, str] | None = None,
) -> str:
    """The text of a job. ``defaults`` are ns-3 attributes, e.g. ``{"ns3::TcpCubic::HyStart": "false"}``."""
    lines = ["fanin-ns3-job 1"]
    for key, value in options.items():
        word = {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)
        lines.append(f"option {key} {word}")
    lines += [f"default {name} {value}" for name, value in (defaults or {}).items()]
    for part in (nodes, links, flows, watches):
        lines += [x.line() for x in part]
    return "\n".join(lines) + "\n"


def run(job_path: str | Path, peer: str | Path = PEER, timeout_s: float | None = None) -> dict[str, Any]:
    """Run one job file and return what the peer measured."""
    if not Path(peer).exists():
        raise PeerError(f"{peer} is not built: run make in {HERE} (Debian 12: apt-get install libns3-dev)")
    try:
        done = subprocess.run([str(peer), str(job_path)], capture_output=True, text=True, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        raise PeerError(f"{job_path}: not finished after {timeout_s} s") from None
    if done.returncode != 0:
        raise PeerError(f"{job_path}: exit {done.returncode}: {done.stderr.strip()}")
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def run_text(text: str, peer: str | Path = PEER, timeout_s: float | None = None) -> dict[str, Any]:
    """Run the text of a job."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "peer.job"
        path.write_text(text)
        return run(path, peer, timeout_s)


def measure(text: str, repeat: int = 1, peer: str | Path = PEER) -> dict[str, Any]:
    """Count packet-hops in one run, then time ``repeat`` runs without any instrumentation."""
    bare = [x for x in text.splitlines() if not x.startswith(("watch ", "option count "))]
    counted = run_text("\n".join(bare) + "\n", peer)
    timed = [run_text("\n".join(bare + ["option count off"]) + "\n", peer) for _ in range(repeat)]
    for other in timed:
        if [f["finish_ps"] for f in other["flows"]] != [f["finish_ps"] for f in counted["flows"]]:
            raise PeerError("counting changed the simulation")
    hops = counted["totals"]["packet_hops"]
    rates = [hops / t["totals"]["cpu_s"] / 1e6 for t in timed]
    return {
        "packet_hops": hops,
        "cpu_s": [t["totals"]["cpu_s"] for t in timed],
        "wall_s": [t["totals"]["wall_s"] for t in timed],
        "mhops_per_cpu_s": statistics.median(rates),
        "mhops_per_cpu_s_all": rates,
        "peak_rss_mb": max(t["totals"]["peak_rss_mb"] for t in timed),
        "sim_s": counted["totals"]["sim_s"],
        "unfinished": counted["totals"]["unfinished"],
        "drops": counted["totals"]["drops"],
        "marks": counted["totals"]["marks"],
        "retransmits": sum(f["retransmits"] or 0 for f in counted["flows"]),
        "timeouts": sum(f["timeouts"] or 0 for f in counted["flows"]),
    }


def star(hosts: int, rate: int, delay_ps: int) -> tuple[list[Node], list[Link]]:
    """Hosts h0, h1, … around the switch s."""
    nodes = [Node(f"h{i}", True) for i in range(hosts)] + [Node("s", False)]
    return nodes, [Link(f"h{i}", "s", rate, delay_ps) for i in range(hosts)]


def chain(links: int, rate: int, delay_ps: int) -> tuple[list[Node], list[Link]]:
    """h0 – s0 – s1 – … – h1 with ``links`` links."""
    names = ["h0", *(f"s{i}" for i in range(links - 1)), "h1"]
    nodes = [Node(n, n.startswith("h")) for n in names]
    return nodes, [Link(a, b, rate, delay_ps) for a, b in zip(names, names[1:], strict=False)]


def fat_tree(k: int, rate: int, delay_ps: int) -> tuple[list[Node], list[Link]]:
    """The k-ary fat tree of Al-Fares et al.: hosts h<n>, edge e<pod>_<i>, aggregation a<pod>_<i>, core c<group>_<i>."""
    if k < 2 or k % 2:
        raise ValueError(f"k is {k}: want an even number")
    half = k // 2
    nodes: list[Node] = [Node(f"h{i}", True) for i in range(k * half * half)]
    nodes += [Node(f"{layer}{pod}_{i}", False) for layer in "ea" for pod in range(k) for i in range(half)]
    nodes += [Node(f"c{group}_{i}", False) for group in range(half) for i in range(half)]
    links: list[Link] = []
    for pod in range(k):
        for i in range(half):
            first = (pod * half + i) * half
            links += [Link(f"h{first + h}", f"e{pod}_{i}", rate, delay_ps) for h in range(half)]
            links += [Link(f"e{pod}_{i}", f"a{pod}_{j}", rate, delay_ps) for j in range(half)]
            links += [Link(f"a{pod}_{i}", f"c{i}_{j}", rate, delay_ps) for j in range(half)]
    return nodes, links


def permutation(n: int, seed: int) -> list[int]:
    """A random permutation without fixed points: one cycle through all (Sattolo)."""
    rng = random.Random(seed)
    order = list(range(n))
    for i in range(n - 1, 0, -1):
        j = rng.randrange(i)
        order[i], order[j] = order[j], order[i]
    return order


DCTCP_OPTIONS: dict[str, Option] = {
    "transport": "dctcp",
    "ecn_k_packets": 65,
    "queue_packets": 1000,
    "rto_min_ps": 10 * MS,
    "rto_initial_ps": 10 * MS,
    "delack_timeout_ps": 1 * MS,
}


def w1(scale: float = 1.0, senders: int = 40) -> str:
    """Incast through one switch: 10 Gb/s, 10 us links, DCTCP, K = 65 packets, 10 MB times ``scale`` each."""
    nodes, links = star(senders + 1, 10 * GBPS, 10 * US)
    flows = [Flow(i, f"h{i + 1}", "h0", round(10_000_000 * scale)) for i in range(senders)]
    return job(nodes, links, flows, DCTCP_OPTIONS)


FAT_TREES = {128: 8, 432: 12, 1024: 16, 16: 4}


def w2(hosts: int = 128, scale: float = 1.0, seed: int = 1) -> str:
    """Permutation on a fat tree: 10 Gb/s, 1 us links, DCTCP, per-flow ECMP, 2 MB times ``scale`` each."""
    if hosts not in FAT_TREES:
        raise ValueError(f"hosts is {hosts}: want one of {sorted(FAT_TREES)}")
    nodes, links = fat_tree(FAT_TREES[hosts], 10 * GBPS, 1 * US)
    size = round(2_000_000 * scale)
    flows = [Flow(i, f"h{i}", f"h{j}", size) for i, j in enumerate(permutation(hosts, seed))]
    return job(nodes, links, flows, {**DCTCP_OPTIONS, "ecmp_seed": seed})


def w3(scale: float = 1.0) -> str:
    """Line-rate UDP, 1500 byte IP packets, over a chain of 6 links of 10 Gb/s: 2 M packets times ``scale``."""
    nodes, links = chain(6, 10 * GBPS, 1 * US)
    flows = [Cbr(0, "h0", "h1", 10 * GBPS, 1500, round(2_000_000 * scale))]
    return job(nodes, links, flows, {"transport": "udp-cbr", "queue_packets": 1000})


def workload(name: str, scale: float) -> str:
    """The job of W1, W2-<hosts> or W3."""
    if name == "W1":
        return w1(scale)
    if name == "W3":
        return w3(scale)
    if name.startswith("W2-") and name[3:].isdigit():
        return w2(int(name[3:]), scale)
    raise ValueError(f"workload is {name!r}: want W1, W2-128, W2-432, W2-1024 or W3")


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["make", "measure"])
    parser.add_argument("workload", help="W1, W2-128, W2-432, W2-1024 or W3")
    parser.add_argument("--scale", type=float, default=1.0, help="of bytes per flow, or of packets [1.0]")
    parser.add_argument("--repeat", type=int, default=1, help="timed runs [1]")
    parser.add_argument("--scheduler", default="map", help="ns-3's event queue [map]")
    parser.add_argument("--peer", default=os.environ.get("NS3_PEER", str(PEER)), help="the binary")
    args = parser.parse_args(argv)
    try:
        text = workload(args.workload, args.scale) + f"option scheduler {args.scheduler}\n"
        if args.action == "make":
            sys.stdout.write(text)
        else:
            print(json.dumps(measure(text, args.repeat, args.peer), indent=1))
    except (PeerError, ValueError) as error:
        print(f"jobs.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
