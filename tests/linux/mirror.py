"""The experiments, each as a setting of the testbed and as the Fanin scenario that mirrors it."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import fanin
from bed import Run, Setting
from measure import POINTS, SMALL, Outcome, Trace, late, matched, outcome, served

__all__ = ["EXPERIMENTS", "TURN_US", "Experiment", "kernel_outcome", "run_fanin", "scenario", "turn_us"]

FRAME, ACK = 1514, 66
"""A full segment and an ACK with timestamps, as HTB counts them: with the Ethernet header, without FCS."""

EDGE = 4_000_000_000
"""What a sender's CPU gives its packets to the port at: one in 2.5 to 4 us."""

VARIANTS = 5
"""Runs of an experiment that differ a little."""

TICK_US = 4_000
"""A tick of the kernel's clock, HZ = 250, which all senders share."""

TURN_US = 29
"""What a round trip takes beside the delay line, medians while data flows: the line is late by 19 us, the receiver takes 3, the
sender 7. A handshake takes 100 us, since then the machine wakes up."""

WRITES = ["14480B", "51056B", "65536B"]
"""What each call of the testbed's senders writes: the first window, then up to multiples of 64 KiB."""

CONTROLS = {"reno": "newreno", "cubic": "cubic"}
"""Linux's Reno has SACK; Fanin's `reno` switches it off."""


@dataclass(frozen=True)
class Experiment:
    """An experiment; `rtt` is that of the delay line [s]."""

    control: str
    flows: int
    size: int
    rtt: float
    buffer: int
    rate: int = 100_000_000

    def switch(self) -> dict[str, Any]:
        """What its switch has beside the buffer."""
        return {}

    def transport(self) -> dict[str, Any]:
        """What its hosts have beside what all experiments share."""
        return {"congestion_control": CONTROLS[self.control]}

    @property
    def name(self) -> str:
        """In words."""
        size = f"{self.size // 1000} KB" if self.size < 1_000_000 else f"{self.size // 1_000_000} MB"
        buffer = f"{self.buffer // 1000} KB" if self.buffer < 1_000_000 else f"{self.buffer / 1e6:g} MB"
        control = {"reno": "Reno", "cubic": "CUBIC"}[self.control]
        rate = "" if self.rate == 100_000_000 else f", {self.rate // 1_000_000} Mb/s"
        return f"{control} {self.flows} × {size}, {self.rtt * 1000:g} ms, {buffer}{rate}"

    @property
    def key(self) -> str:
        """The same as a file name."""
        size, buffer = f"{self.size // 1000}KB", f"{self.buffer // 1000}KB"
        return f"{self.control}-{self.flows}x{size}-{self.rtt * 1000:g}ms-{buffer}-{self.rate // 1_000_000}M"

    def setting(self, run: int = 0) -> Setting:
        """What the testbed runs: the round trip of run 0 to 4 differs by half a per cent at most, the starts by 10 us each.

        The testbed repeats a run nearly packet by packet, but which packet meets a full buffer is chaotic: five equal runs would be
        five times the same draw.
        """
        variant = run % VARIANTS
        longer = 1 + 0.0025 * (variant - (VARIANTS - 1) / 2)
        return Setting(self.flows, self.size, self.control, self.rate, self.rtt * longer, self.buffer, variant * 10e-6)


def every() -> list[Experiment]:
    """All experiments."""
    grid = [
        Experiment(control, flows, 1_000_000, rtt, buffer)
        for control in ("reno", "cubic")
        for flows in (9, 18, 27)
        for rtt in (0.002, 0.012)
        for buffer in (512_000, 1_500_000)
    ]
    incasts = [Experiment(c, 27, size, 0.002, 128_000) for size in (256_000, 1_000_000) for c in ("reno", "cubic")]
    single = [Experiment("cubic", 1, 8_000_000, 0.002, 64_000)]
    faster = [Experiment(c, 9, 1_000_000, 0.002, 512_000, 200_000_000) for c in ("reno", "cubic")]
    return [*grid, *incasts, *single, *faster]


EXPERIMENTS = every()


def kernel_outcome(run: Run, step: int | None = None) -> tuple[Outcome, Trace]:
    """What a run of the testbed came to. `step` of the early queue: that of the first run of an experiment [ns]."""
    trace = matched(run.before, run.after)
    data = run.before[run.before["payload"] > 0]
    zero = int(data["ns"][0])
    finished = [f["finished_ns"] - zero for f in run.flows]
    starts = []
    for flow in run.flows:
        mine = data["ns"][data["sport"] == 10_000 + flow["flow"]]
        starts.append(round((int(mine[0]) - zero) / 1e3))
    loops = []
    for syn in run.before[(run.before["flags"] & 2) > 0]:
        answers = run.before[(run.before["sport"] == syn["sport"]) & (run.before["ns"] > syn["ns"])]
        loops.append((int(answers["ns"][0]) - int(syn["ns"])) / 1e3)
    if step is None:
        first = trace.first_drop()
        step = max(1, round((max(finished) if first is None else first) / POINTS / 1e5)) * 100_000
    return (
        outcome(
            trace,
            finished,
            timeouts=sum(f["timeouts"] for f in run.flows),
            retransmits=sum(f["total_retrans"] for f in run.flows),
            step=step,
            starts=starts,
            loop_us=round(statistics.median(loops), 1),
        ),
        trace,
    )


def turn_us(run: Run, delay: float) -> float:
    """What a round trip of this run took beside the delay line, `delay` seconds: see `TURN_US`."""
    receiver, sender = [], []
    for port in np.unique(run.acks["dport"]):
        left = run.after[(run.after["sport"] == port) & (run.after["payload"] > 0)]
        acks = run.acks[run.acks["dport"] == port]
        ends, first_left = np.unique(left["seq"] + left["payload"], return_index=True)
        numbers, first_ack = np.unique(acks["ack"], return_index=True)
        _, of_left, of_ack = np.intersect1d(ends, numbers, assume_unique=True, return_indices=True)
        came, gone = acks["ns"][first_ack[of_ack]], left["ns"][first_left[of_left]]
        receiver.append((came - gone)[came > gone])
        data = run.before[(run.before["sport"] == port) & (run.before["payload"] > 0)]["ns"]
        at_sender = acks["ns"] + acks["late"] + round(delay * 1e9)
        after = np.searchsorted(data, at_sender)
        answered = after < len(data)
        sender.append(data[after[answered]] - at_sender[answered])
    parts = (np.concatenate(receiver), run.acks["late"], np.concatenate(sender))
    return round(sum(float(np.median(part)) for part in parts) / 1e3, 1)


def scenario(experiment: Experiment, like: Outcome, folder: Path, run: int = 0) -> fanin.Scenario:
    """The scenario that mirrors run `run` of the kernel: its starts and its round trip.

    At which moment of a tick the flows began is not recorded: the runs are spread over the tick.

    HTB counts a frame without preamble, gap and padding, and lets it go at once, where a simulated link takes its time for it and
    for its ACK; that time comes off the round trip.
    """
    n = experiment.flows
    phase = run % VARIANTS * TICK_US // VARIANTS
    sizes = FRAME + ACK
    loop_ps = experiment.setting(run).delay * 1e12 + TURN_US * 1e6 - sizes * 8e12 / experiment.rate - sizes * 8e12 / EDGE
    edge_ps = round(loop_ps / 2) - 1_000_000
    nodes = [{"id": f"s{i}", "kind": "host"} for i in range(n)]
    nodes += [{"id": "switch", "kind": "switch"}, {"id": "receiver", "kind": "host"}]
    links = [{"a": f"s{i}", "b": "switch", "rate": f"{EDGE}bps", "delay": f"{edge_ps}ps"} for i in range(n)]
    links.append({"a": "switch", "b": "receiver", "rate": f"{experiment.rate}bps", "delay": "1us"})
    document = {
        "name": experiment.key,
        "topology": {"kind": "file", "path": "network.json"},
        "framing": {"header": "14B", "gap": "0B", "min_frame": "0B"},
        "switch": {"buffer": {"kind": "static", "per_port": f"{experiment.buffer}B"}, **experiment.switch()},
        "transport": {
            "kind": "tcp",
            "profile": "linux",
            "clock_granularity": f"{TICK_US}us",
            "timer_ticks": True,
            "push": {"kind": "half_window", "writes": WRITES},
            **experiment.transport(),
        },
        "traffic": [
            {
                "kind": "flows",
                "flows": [
                    {"id": str(i), "src": f"s{i}", "dst": "receiver", "size": f"{experiment.size}B", "start": f"{phase + at}us"}
                    for i, at in enumerate(like.starts)
                ],
            }
        ],
        "telemetry": {"sample": "off", "queues": ["switch->receiver"]},
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "network.json").write_text(json.dumps({"nodes": nodes, "links": links}), encoding="utf-8")
    path = folder / "scenario.toml"
    path.write_text(fanin.Scenario(document).to_toml(), encoding="utf-8")
    return fanin.Scenario.from_file(path)


def run_fanin(experiment: Experiment, like: Outcome, folder: Path, run: int = 0) -> tuple[Outcome, Trace]:
    """Run the mirror of run `run` of the kernel; the result stays in `folder`."""
    result = fanin.run(scenario(experiment, like, folder, run), folder / "result", progress=False, overwrite=True)
    assert result.flows["status"].unique().to_list() == ["complete"]
    rows = result.queues
    first = rows.filter(pl.col("frame_bytes") >= SMALL)["time_ps"][0]
    rows = rows.filter(pl.col("time_ps") >= first)
    trace = served(
        ((rows["time_ps"] - first) / 1e3).round().cast(pl.Int64).to_numpy(),
        rows["frame_bytes"].cast(pl.Int64).to_numpy(),
        rows["dropped"].to_numpy(),
        experiment.rate,
    )
    # The kernel's packet arrives when it leaves the queue, this one when its last bit has crossed the link.
    crossing = FRAME * 8e12 / experiment.rate + 1e6
    finished = [(t - first - crossing) / 1e3 for t in result.flows["finish_ps"].to_list()]
    return (
        outcome(
            trace,
            finished,
            timeouts=int(result.flows["timeouts"].sum()),
            retransmits=int(result.flows["retransmits"].sum()),
            step=like.step,
            starts=like.starts,
            loop_us=like.loop_us,
        ),
        trace,
    )


def series(trace: Trace, step: int = 500_000) -> pl.DataFrame:
    """The queue each half millisecond."""
    at = np.arange(0, int(trace.left[-1]) + step, step)
    return pl.DataFrame({"time_ms": at / 1e6, "queue_bytes": trace.queue(at)})


def medoid(runs: Sequence[Outcome]) -> int:
    """Which run is in the middle: that whose queue is nearest to the others'."""
    return min(range(len(runs)), key=lambda i: sum(late(runs[i], r) for r in runs))
