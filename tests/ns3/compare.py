"""One description of an experiment, run by Fanin and by ns-3, and what both measured in the same terms.

Times are picoseconds, rates bit/s, sizes bytes. Queues are counted in packets that wait; the packet being sent is not
one of them. Buffers and thresholds are Fanin's: `buffer` packets may wait, and a packet is marked when more than `k`
wait. The job for ns-3 counts the packet being sent too, and marks at its threshold, not above it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

import fanin

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benches" / "ns3"))

import jobs
from jobs import MS, Flow, Link, Node, Option, Watch

__all__ = ["MSS", "Case", "Outcome", "pinned", "run_fanin", "run_ns3"]

MSS = 1460
"""Payload of a full segment without options on Ethernet."""

GAP = 20
"""Preamble and inter-packet gap."""

FRAMING = {"header": "18B", "min_frame": "0B", "gap": f"{GAP}B"}
"""Ethernet, but an ACK is not padded to 64 bytes: ns-3 does not do that."""

MIN_DATA = 100
"""Frames below this are ACKs."""

WINDOW = 16 << 20
"""Receive and send buffers: above any congestion window here."""


@dataclass(frozen=True)
class Case:
    """An experiment.

    `control` is Fanin's congestion control; `ns3` is what ns-3 calls the same thing. `watch` is the port (from, to)
    whose queue is compared. `ties` and `seed` are Fanin's: ns-3 takes events of the same time in the order in which they were
    scheduled.
    """

    name: str
    nodes: Sequence[Node]
    links: Sequence[Link]
    flows: Sequence[Flow]
    watch: tuple[str, str]
    control: str
    ns3: str
    buffer: int
    k: int | None = None
    sack: bool = True
    prr: bool = False
    ack_every: int = 2
    initial_window: int = 10
    slow_start_limit: int = 65_535
    rto_min: int = 10 * MS
    ties: str = "drawn"
    seed: int = 1
    tcp: dict[str, Any] = field(default_factory=dict)
    control_keys: dict[str, Any] = field(default_factory=dict)
    ns3_options: dict[str, Option] = field(default_factory=dict)
    ns3_defaults: dict[str, str] = field(default_factory=dict)

    @property
    def rate(self) -> int:
        """Rate of the watched link [bit/s]."""
        return next(x.rate for x in self.links if {x.a, x.b} == set(self.watch))

    @property
    def packet_ps(self) -> int:
        """Time that a full packet takes on the watched link."""
        return (MSS + 40 + 18 + GAP) * 8 * 10**12 // self.rate

    def scenario(self, folder: Path) -> fanin.Scenario:
        """The scenario, in `folder`: ``scenario.toml`` and ``network.json``."""
        network = {
            "nodes": [{"id": n.name, "kind": "host" if n.host else "switch"} for n in self.nodes],
            "links": [{"a": x.a, "b": x.b, "rate": f"{x.rate}bps", "delay": f"{x.delay_ps}ps"} for x in self.links],
        }
        (folder / "network.json").write_text(json.dumps(network, indent=1))
        marking = "none" if self.k is None else {"kind": "threshold", "k": f"{self.k} packets"}
        transport: dict[str, Any] = {
            "kind": "tcp",
            "congestion_control": {"kind": self.control, **self.control_keys} if self.control_keys else self.control,
            "handshake": False,
            "timestamps": False,
            "initial_window": self.initial_window,
            "slow_start_limit": self.slow_start_limit,
            "cwnd_validation": False,
            "idle_restart": "none",
            "sack": self.sack,
            "rto_initial": f"{self.rto_min}ps",
            "rto_min": f"{self.rto_min}ps",
            "backoff_reset": "ack",
            "ack_every": self.ack_every,
            "receive_window": {"kind": "fixed", "size": f"{WINDOW}B"},
            **self.tcp,
        }
        if self.ack_every > 1:
            transport |= {"delayed_ack_timeout": "1ms", "quick_acks": 1}
        if self.prr:
            transport["prr"] = True
        if self.k is not None:
            transport["ect_on"] = "all"
        document = {
            "name": self.name,
            "seed": self.seed,
            "engine": {"ties": self.ties},
            "topology": {"kind": "file", "path": "network.json"},
            "framing": FRAMING,
            "switch": {"buffer": {"kind": "static", "per_port": f"{self.buffer} packets"}, "marking": marking},
            "host": {"nic": "fifo"},
            "transport": transport,
            "traffic": [
                {
                    "kind": "flows",
                    "flows": [
                        {"id": f"{f.id}", "src": f.src, "dst": f.dst, "size": f"{f.size}B", "start": f"{f.start_ps}ps"}
                        for f in self.flows
                    ],
                }
            ],
            "telemetry": {"sample": "off", "queues": ["->".join(self.watch)]},
        }
        path = folder / "scenario.toml"
        path.write_text(fanin.Scenario(document).to_toml())
        return fanin.Scenario.from_file(path)

    def job(self, trace: str = "") -> str:
        """The job for ns-3."""
        options: dict[str, Option] = {
            "transport": self.ns3,
            "recovery": "prr" if self.prr else "classic",
            "sack": self.sack,
            "timestamps": False,
            "segment_bytes": MSS,
            "initial_window": self.initial_window,
            "delack_count": self.ack_every,
            "delack_timeout_ps": MS,
            "rto_min_ps": self.rto_min,
            "rto_initial_ps": self.rto_min,
            "clock_granularity_ps": MS,
            "snd_buffer_bytes": WINDOW,
            "rcv_buffer_bytes": WINDOW,
            "queue_packets": self.buffer + 1,
            "handshake_ahead_ps": 50 * MS,
            "handshake_spacing_ps": 100_000_000,
            "ecmp": False,
        }
        if self.k is not None:
            options["ecn_k_packets"] = self.k + 2
        options |= self.ns3_options
        return jobs.job(self.nodes, self.links, self.flows, options, [Watch(*self.watch, trace)], self.ns3_defaults)


@dataclass(frozen=True)
class Outcome:
    """What a simulator measured: per flow in order of the description, and at the watched port."""

    fct_ps: list[int]
    delivered: list[int]
    retransmits: list[int]
    timeouts: list[int]
    drops: int
    marks: int
    peak: int
    mean: float

    @property
    def last_ps(self) -> int:
        """Longest completion time."""
        return max(self.fct_ps)


def run_fanin(case: Case, folder: Path) -> Outcome:
    """Run a case in Fanin; the result stays in `folder`."""
    result = fanin.run(case.scenario(folder), folder / "fanin", progress=False, overwrite=True)
    order = pl.DataFrame({"id": [str(f.id) for f in case.flows]})
    flows = order.join(result.flows, on="id", how="left", maintain_order="left")
    assert flows["status"].unique().to_list() == ["complete"]
    arrivals = result.queues.filter(~pl.col("dropped"))
    peak, mean = waiting(arrivals, case.rate, max(flows["finish_ps"].to_list()))
    return Outcome(
        fct_ps=(flows["finish_ps"] - flows["start_ps"]).to_list(),
        delivered=flows["delivered_bytes"].to_list(),
        retransmits=flows["retransmits"].to_list(),
        timeouts=flows["timeouts"].to_list(),
        drops=result.summary["drops"],
        marks=result.summary["marks"],
        peak=peak,
        mean=mean,
    )


def pinned(case: Case, folder: Path) -> Case:
    """The case with the paths that Fanin's ECMP chooses, and with its longest queue as the watched port."""
    every = case.scenario(folder).replace({"telemetry.queues": ["*"]})
    result = fanin.run(every, folder / "paths", progress=False, overwrite=True)
    ids = dict(result.flows.select("flow", "id").iter_rows())
    hops: dict[tuple[str, bool], dict[str, str]] = {}
    for flow, port, frame in result.queues.select("flow", "port", "frame_bytes").unique().iter_rows():
        node, to = port.split("->")
        hops.setdefault((ids[flow], frame < MIN_DATA), {})[node] = to
    flows = []
    for f in case.flows:
        ends = {False: (f.src, f.dst), True: (f.dst, f.src)}
        paths = {}
        for ack, (src, dst) in ends.items():
            path = [src, next(x.b if x.a == src else x.a for x in case.links if src in (x.a, x.b))]
            while path[-1] != dst:
                path.append(hops[f"{f.id}", ack][path[-1]])
            paths[ack] = tuple(path)
        flows.append(replace(f, path=paths[False], ack_path=paths[True]))
    node, to = result.summary["largest_queue"]["port"].split("->")
    return replace(case, flows=flows, watch=(node, to))


def waiting(arrivals: pl.DataFrame, rate: int, until_ps: int) -> tuple[int, float]:
    """Peak and time-weighted mean of the packets that wait at a FIFO port, from the packets that it took.

    The port never idles while something waits, so the start of each packet's service follows from arrivals and sizes;
    the mean is the sum of all waiting times over the time (Little's law). Each packet's record of the queue that it
    found must say the same.
    """
    starts: list[int] = []
    free = gone = peak = total = 0
    columns = (arrivals[c].to_list() for c in ("time_ps", "frame_bytes", "queue_packets"))
    for n, (at, frame, found) in enumerate(zip(*columns, strict=True)):
        while gone < n and starts[gone] <= at:
            gone += 1
        assert n - gone == found, f"packet {n} at {at} ps: found {found} by its record, {n - gone} by arrivals and sizes"
        start = max(at, free)
        free = start + (frame + GAP) * 8 * 10**12 // rate
        starts.append(start)
        total += start - at
        peak = max(peak, n - gone + (start > at))
    return peak, total / until_ps


def run_ns3(case: Case, folder: Path) -> Outcome:
    """Run a case in ns-3; the job and what came of it stay in `folder`."""
    path = folder / "ns3.job"
    path.write_text(case.job())
    out = jobs.run(path, timeout_s=120)
    (folder / "ns3.json").write_text(json.dumps(out, indent=1))
    assert out["totals"]["unfinished"] == 0
    (port,) = out["ports"]
    flows = out["flows"]
    return Outcome(
        fct_ps=[f["finish_ps"] - f["start_ps"] for f in flows],
        delivered=[f["bytes"] for f in flows],
        retransmits=[f["retransmits"] for f in flows],
        timeouts=[f["timeouts"] for f in flows],
        drops=out["totals"]["drops"],
        marks=out["totals"]["marks"],
        peak=port["waiting_peak_packets"],
        mean=port["waiting_mean_packets"],
    )
