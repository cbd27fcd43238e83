"""Promises of ``fanin whatif`` on bursts of this machine's kernel, and what the kernel does when the setting is changed for real.

    python tests/linux/whatif.py [OUT.json]        # root, some minutes; docs/dev/whatif-measured.md has a run of it
    python tests/linux/whatif.py --only RTO_min    # one question alone

Fan-ins in the namespaces of the testbed are captured before and behind their port. ``fanin whatif`` says of each setting what it
does; then the kernel gets it: another buffer (bfifo), first window or shortest timeout (`ip route`), or threshold (BPF).
Settings take turns, so that a change of the machine's load falls upon all alike.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

import bpf
from bed import RECEIVER_IP, Bed, Setting, command, lacking
from fanin.remedy import WhatIf, whatif
from measure import matched
from test_pair_kernel import fifo, tap

RUNS: Final = 5
NONE: Final = "as it is"


@dataclass(frozen=True)
class Change:
    """A setting of the kernel: times the buffer, what routes say of connections, the threshold [bytes]."""

    times: int = 1
    route: str = ""
    k: int | None = None


@dataclass(frozen=True)
class Question:
    """A burst, what is asked of it, and the settings that are changed for real; `metric`: the number that is promised."""

    name: str
    setting: Setting
    asked: Mapping[str, Any]
    metric: str
    real: Mapping[str, Change]
    base: Change = field(default_factory=Change)


def rto_min(ms: int) -> Change:
    return Change(route=f"rto_min {ms}ms")


def marks(k: int) -> Change:
    return Change(k=k)


FAN_IN: Final = Setting(flows=12, size=60_000, control="reno", rate=100_000_000, delay=0.002, buffer=100_000)
LONG: Final = replace(FAN_IN, flows=8, size=250_000, control="bpf_dctcp", buffer=800_000)
LOST: Final = replace(FAN_IN, flows=24, size=30_000, buffer=32_000)
QUESTIONS: Final = (
    Question(
        "buffer and first window",
        FAN_IN,
        {"only": ("buffer × *", "first window"), "goal": "drops"},
        "drops",
        {
            "buffer × 2": Change(times=2),
            "buffer × 4": Change(times=4),
            "buffer × 8": Change(times=8),
            "first window 2": Change(route="initcwnd 2"),
            "first window 4": Change(route="initcwnd 4"),
        },
    ),
    Question(
        "marking threshold",
        LONG,
        {
            "only": ("threshold",),
            "below": "185KB",
            "known": {"transport.congestion_control": "dctcp", "switch.marking": {"kind": "threshold", "k": "300KB"}},
        },
        "peak_kb",
        {f"K = {k} KB": marks(1000 * k) for k in (50, 100, 200, 400)},
        marks(300_000),
    ),
    Question("RTO_min", LOST, {"only": ("timer",), "goal": "time"}, "last_ms", {f"RTO_min {ms}ms": rto_min(ms) for ms in (10, 50)}),
)


def routed(bed: Bed, attributes: str) -> None:
    """Set what routes say of connections, at each sender, and at the receiver, whose delayed ACKs follow its shortest timeout."""
    for ns in bed.senders:
        command(ns, "ip", "route", "replace", f"{RECEIVER_IP}/32", "dev", "eth", *attributes.split())
    own = attributes if attributes.startswith("rto_min") else ""
    command(bed.receiver, "ip", "route", "replace", "10.77.0.0/24", "dev", "ack", *own.split())


def one(bed: Bed, binary: Path | None, question: Question, change: Change) -> dict[str, float]:
    """Run a fan-in with a setting; return drops of the kernel's own count, the longest queue, and when the last data left."""
    routed(bed, change.route)
    setting = replace(question.setting, buffer=change.times * question.setting.buffer)
    bed.shape(setting.rate, setting.buffer)
    with ExitStack() as stack:
        if change.k is not None:
            assert binary is not None
            mark = ("policy=threshold", f"k={change.k}", f"limit={setting.buffer}")
            marker = stack.enter_context(bpf.Program(binary, "mark", "port", *mark, ns=bed.switch))
        run = bed.run(setting, keep_port=True)
        marked = 0 if change.k is None else marker.end()["marked"]
    trace = matched(run.before, run.after)
    data = run.after["ns"][run.after["payload"] > 0].astype(np.int64)
    return {
        "drops": float(fifo(bed.switch)["drops"]),
        "peak_kb": trace.peak() / 1e3,
        "last_ms": float(data.max() - data.min()) / 1e6,
        "timeouts": float(run.counters.get("TCPTimeouts", 0)),
        "marked": float(marked),
        "steal": run.machine["steal_share"],
    }


def measured(question: Question, folder: Path) -> tuple[WhatIf, dict[str, list[dict[str, float]]]]:
    """Return what is promised of one burst, and what came of each setting."""
    folder.mkdir()
    paths = folder / "before.pcap", folder / "behind.pcap"
    with ExitStack() as stack:
        binary = None
        if question.base.k is not None:
            binary = bpf.build()
            stack.enter_context(bpf.Program(binary, "dctcp"))
        bed = stack.enter_context(Bed(folder / "bed", senders=question.setting.flows))
        taps = tap(bed.switch, "trunk1", outgoing=False), tap(bed.switch, "port", outgoing=True)
        real = {NONE: [one(bed, binary, question, question.base)]}
        for found, path in zip(taps, paths, strict=True):
            found.write(path)
        for _ in range(RUNS):
            for name, change in {NONE: question.base, **question.real}.items():
                real.setdefault(name, []).append(one(bed, binary, question, change))
    port: dict[str, Any] = {"rate": "100Mbps", "overhead": "0B", "fcs": False, "buffer": f"{question.setting.buffer}B"}
    return whatif(paths[0], behind=paths[1], **port, **question.asked), real


def promised(asked: WhatIf, name: str, metric: str) -> tuple[str, tuple[float, float] | None]:
    """Return in how much of the ensemble a setting holds, and the number that it leads to there, least and most."""
    own = next((own for own in asked.remedies if own.name == name), None)
    if own is None:
        return "–", None
    if metric == "last_ms":
        # The end of the last flow, as a share of that without the setting: the model's flows end with their last ACK.
        low, high = own.last.change_low, own.last.change_high
        change = own.last.change or 0.0
        return f"{own.holds} of {own.members}", (
            100 * (low if low is not None else change),
            100 * (high if high is not None else change),
        )
    found = own.dropped if metric == "drops" else own.peak_bytes
    scale = 1e3 if metric == "peak_kb" else 1.0
    return f"{own.holds} of {own.members}", (found.least / scale, found.most / scale)


def spread(values: Sequence[float], digits: int = 0) -> str:
    """Return the median, and the least and the most."""
    least, most = f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
    return least if least == most else f"{np.median(values):.{digits}f} ({least} to {most})"


def table(question: Question, asked: WhatIf, real: dict[str, list[dict[str, float]]]) -> str:
    """Return promises beside what the kernel did, as Markdown: median, least and most of the runs."""
    metric = question.metric
    words = {"drops": "drops", "peak_kb": "longest queue [KB]", "last_ms": "last data, change [%]"}[metric]
    lines = [
        f"| {question.name} | holds: promised | {words}: promised | {words}: kernel | drops: kernel | timeouts | last data [ms] |",
        "|---|---|---|---|---|---|---|",
    ]
    without = float(np.median([run["last_ms"] for run in real[NONE]]))
    for name, runs in real.items():
        holds, ends = promised(asked, name, metric)
        told = "–" if ends is None else spread(ends) if ends[0] == ends[1] else f"{ends[0]:.0f} to {ends[1]:.0f}"
        own = [100 * (run[metric] / without - 1) if metric == "last_ms" else run[metric] for run in runs]
        cells = [spread([run[key] for run in runs]) for key in ("drops", "timeouts", "last_ms")]
        lines.append(f"| {name} | {holds} | {told} | {spread(own)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="promises of fanin whatif, and the kernel; docs/dev/whatif-measured.md")
    parser.add_argument("out", nargs="?", type=Path, help="also write all runs, JSON")
    parser.add_argument("--only", choices=[question.name for question in QUESTIONS], help="this question alone")
    options = parser.parse_args(arguments)
    if reason := lacking() or bpf.lacking():
        print(f"not here: this machine lacks {reason}", file=sys.stderr)
        return 1
    kept: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for number, question in enumerate(QUESTIONS):
            if options.only in (None, question.name):
                asked, real = measured(question, Path(folder) / str(number))
                print(f"{asked.text}\n\n{table(question, asked, real)}\n\nload {os.getloadavg()[0]:.1f}\n", flush=True)
                kept[question.name] = {"asked": asked.to_dict(), "real": real}
    if options.out is not None:
        options.out.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
