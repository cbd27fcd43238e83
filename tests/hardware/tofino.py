"""Queues of a Tofino, row by row: the scenario of a row, what is read from its run, and how far that is from the row.

Nothing here is chosen by the rows. Every setting is what the testbed was; docs/dev/tofino.md gives the reason of each.
"""

from __future__ import annotations

import csv
import json
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import fanin

__all__ = ["PERCENTILES", "Outcome", "Row", "measure", "reading", "rows", "run_all", "scenario"]

HERE = Path(__file__).resolve().parent
PERCENTILES = (1, 5, 50, 95, 99)

MTU = 9000
WIRE_OVERHEAD = 38
"""Ethernet header, FCS, preamble and gap."""
CELL = 80
PACKET_CELLS = 114
"""A full packet with its header in the switch's memory, and what the switch puts before it."""
TRAFFIC_MANAGER = 213
"""Packets at which the traffic manager itself drops, at the tail."""
RUN_MS = 1000
BIN_PS = 20 * 10**9
BINS = RUN_MS * 10**9 // 3 // BIN_PS
BASE_RTT_US = 1200
SENDER_DELAY_US = 1
TURN_US = 30
"""iperf3 is one thread that writes 128 KB to each of its connections in turn; a turn takes about so long."""

CONTROLS: Mapping[str, str] = {"reno": "newreno", "cubic": "cubic"}
"""What Linux calls `reno` recovers by SACK where both ends have it, as `newreno` does; Fanin's `reno` has no SACK."""


@dataclass(frozen=True)
class Row:
    """A setting of the testbed, and the readings there: percentiles of the queue at departures."""

    algorithm: str
    flows: int
    cells: int
    readings: tuple[float, ...]

    @property
    def limit(self) -> int:
        """The shortest queue [packets], the departing one included, at which a packet is dropped."""
        return -(-self.cells // PACKET_CELLS)

    @property
    def name(self) -> str:
        return f"{self.algorithm} {self.flows} {self.limit}"


@dataclass(frozen=True)
class Outcome:
    """What a run reads, in the terms of the row."""

    row: Row
    readings: tuple[float, ...]
    packets: int
    """Packets that have come to the port in the time that is sampled, dropped ones included."""
    drops: int
    utilisation: float
    """10th percentile over bins of 20 ms."""

    def errors(self) -> tuple[float, ...]:
        return tuple(mine - theirs for mine, theirs in zip(self.readings, self.row.readings, strict=True))


def is_busy(readings: Sequence[float]) -> bool:
    """Their test of a port that is always busy: the first percentile is above the reading of a packet that is alone."""
    return readings[0] > reading(1)


def reading(packets: Any) -> Any:
    """What the switch reads of so many packets, in units of the MTU."""
    return np.ceil(np.asarray(packets) * (PACKET_CELLS * CELL) / MTU)


def rows(path: Path = HERE / "queue-percentiles.csv") -> list[Row]:
    """The rows of the data set."""
    with path.open(encoding="utf-8") as file:
        return [
            Row(
                line["algorithm"],
                int(line["num_flows"]),
                int(line["max_queue_depth_cells"]),
                tuple(float(line[f"depth_p{p:02}"]) for p in PERCENTILES),
            )
            for line in csv.DictReader(file)
        ]


def scenario(
    row: Row, folder: Path, tcp: Mapping[str, Any] | None = None, *, bond: str = "20Gbps", poll_us: int = 0
) -> fanin.Scenario:
    """The scenario of a row, in `folder`.

    Parameters
    ----------
    tcp : mapping, optional
        Other settings of TCP than the testbed's, for experiments.
    bond : str
        Rate of the sender's link; "two links": two of 10 Gb/s, packet by packet in turn.
    poll_us : int
        Hosts take what has arrived only so long after the first packet, and merge segments. The base RTT stays.
    """
    # The base RTT is that of a full packet on an idle network: 20 and 10 bits a ns, and little for the ACK.
    wire = (MTU + WIRE_OVERHEAD) * 8
    ns = (BASE_RTT_US - 2 * poll_us) * 1000 - 2 * SENDER_DELAY_US * 1000 - wire // 20 - wire // 10
    links = [{"a": "tofino", "b": "receiver", "rate": "10Gbps", "delay": f"{ns // 2}ns"}]
    nodes = [{"id": "sender", "kind": "host"}, {"id": "receiver", "kind": "host"}, {"id": "tofino", "kind": "switch"}]
    if bond == "two links":
        nodes.append({"id": "bond", "kind": "switch"})
        links.append({"a": "sender", "b": "bond", "rate": "400Gbps", "delay": "0ns"})
        links += [{"a": "bond", "b": "tofino", "rate": "10Gbps", "delay": f"{SENDER_DELAY_US}us"}] * 2
    else:
        links.append({"a": "sender", "b": "tofino", "rate": bond, "delay": f"{SENDER_DELAY_US}us"})
    path = folder / f"{row.name.replace(' ', '-')}.json"
    path.write_text(json.dumps({"nodes": nodes, "links": links}), encoding="utf-8")
    port = "tofino->receiver"
    return fanin.Scenario(
        {
            "name": row.name,
            "duration": f"{RUN_MS}ms",
            "topology": {"kind": "file", "path": str(path)},
            "switch": {
                "buffer": "unlimited",
                **({"routing": "round_robin"} if bond == "two links" else {}),
                "except": [
                    {
                        "ports": [port],
                        "buffer": f"{TRAFFIC_MANAGER} packets",
                        "marking": {"kind": "front_drop", "limit": f"{row.limit} packets"},
                    }
                ],
            },
            **({"host": {"receive": {"kind": "napi", "interrupt_delay": f"{poll_us}us"}}} if poll_us else {}),
            "transport": {
                "kind": "tcp",
                "profile": "linux",
                "congestion_control": CONTROLS[row.algorithm],
                "mtu": MTU,
                "tso": True,
                "tso_rtt_log": 0,
                "idle_restart": "none",
                "receive_window": {"kind": "auto", "buffer": "262144B", "max_buffer": "1GB", "share": 0.5, "frame_share": 0.5},
                **(tcp or {}),
            },
            "traffic": [
                {
                    "kind": "flows",
                    "flows": [
                        {"src": "sender", "dst": "receiver", "size": "4GB", "start": f"{i * TURN_US}us"} for i in range(row.flows)
                    ],
                }
            ],
            "telemetry": {"sample": "off", "queues": [port]},
        }
    )


def measure(row: Row, result: fanin.Result) -> Outcome:
    """Counts the queue as the switch did: at departures of the middle third of the run, the packet itself included.

    Fanin records arrivals. The queue goes up by one packet at each arrival that finds the port busy and down by one at each
    departure, so between two times every length is crossed as often upwards as downwards, but for those between the queue then
    and the queue now: a packet that finds n waiting counts as one that leaves n behind. What is dropped at the head has departed.
    """
    third = RUN_MS * 10**9 // 3
    queues = result.queues.filter(pl.col("time_ps").is_between(third, 2 * third))
    at_the_tail = pl.col("dropped") & (pl.col("queue_packets") >= TRAFFIC_MANAGER)
    found = queues.filter(~at_the_tail)["queue_packets"].to_numpy()
    percentiles = np.percentile(found + 1, PERCENTILES, method="inverted_cdf")
    sent = queues.filter(~pl.col("dropped"))
    packet_ps = (MTU + WIRE_OVERHEAD) * 8 * 100
    leaves = (sent["time_ps"].to_numpy() + sent["queue_packets"].to_numpy() * packet_ps - third) // BIN_PS
    busy = np.bincount(leaves, sent["frame_bytes"].to_numpy() + 20, minlength=BINS)[:BINS] * 800 / BIN_PS
    return Outcome(
        row,
        tuple(reading(percentiles).tolist()),
        queues.height,
        int(queues["dropped"].sum()),
        float(np.percentile(busy, 10)),
    )


def run_all(
    which: Iterable[Row],
    tcp: Mapping[str, Any] | None = None,
    *,
    bond: str = "20Gbps",
    poll_us: int = 0,
) -> list[Outcome]:
    """Runs rows on all cores; the outcomes in their order."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def one(row: Row) -> Outcome:
            out = folder / f"{row.name} out"
            outcome = measure(row, fanin.run(scenario(row, folder, tcp, bond=bond, poll_us=poll_us), out, progress=False))
            for file in sorted(out.rglob("*"), reverse=True):
                file.unlink() if file.is_file() else file.rmdir()
            return outcome

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(one, which))
