"""S-ECN beside DCTCP's threshold on the TCP of the running kernel, and in Fanin: `make linux-demo`; docs/linux-dataplane.md.

18 senders in namespaces, HTB, marks by dataplane/linux at the port's egress, DCTCP by BPF, queues recorded by tracepoints and
analysed by `fanin analyze`; each run is mirrored with its starts and its round trip.

python tests/linux/demo.py                   the table, from the committed runs of the kernel; needs no root
python tests/linux/demo.py --measure         measure the kernel anew (root, minutes), into out/linux-demo
python tests/linux/demo.py --measure --docs --reference   and write table and figure of the page, and the committed runs
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import bpf
import fanin
from bed import RECEIVER_IP, Bed, LackingError, Setting, command
from campaign import LATE_P99, disturbed, fill, noise
from measure import Outcome
from mirror import VARIANTS, Experiment, kernel_outcome, run_fanin

__all__ = ["CASES", "OUT", "REFERENCE", "Marked", "measure", "simulated", "table"]

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "out" / "linux-demo"
REFERENCE = Path(__file__).parent / "reference" / "marking.json"
PAGE = ROOT / "docs" / "dev" / "linux-dataplane-measured.md"
FIGURE = ROOT / "docs" / "img" / "linux-s-ecn.png"

SENDERS, K, BUFFER, RUNS = 18, 32_000, 512_000, VARIANTS
PRODUCT = 12_500
"""Bytes of rate times round trip, as of the paper's 1 Gb/s and 100 us."""
POLICIES = {"threshold": "DCTCP", "s-ecn": "S-ECN"}
FIRST = 65_536
"""Bytes of the first write, and of all others: more than a flow sends until the last one has started."""
FASTEST = 1.02
"""Rate of a busy port beyond which a run does not count: then what is before the port limits it too."""
TRIES = 3
"""Runs that may be refused for each that counts."""


@dataclass(frozen=True)
class Marked(Experiment):
    """18 flows that start within half of a hundred round trips, as the paper's queries do; `window`: first windows in segments."""

    policy: str = "threshold"
    window: int = 3

    @property
    def name(self) -> str:
        """In words."""
        return f"{self.rate // 1_000_000} Mb/s, first window {self.window}, {POLICIES[self.policy]}"

    @property
    def key(self) -> str:
        """The same as a file name."""
        return f"{self.rate // 1_000_000}M-{self.window}-{self.policy}"

    def setting(self, run: int = 0) -> Setting:
        """Run 0 to 4: round trips differ by half a per cent at most, the starts are spread over 4 to 6 round trips."""
        variant = run % VARIANTS
        setting = super().setting(run)
        return replace(setting, gap=self.rtt * (4 + 0.5 * variant) / SENDERS, first=FIRST)

    def switch(self) -> dict[str, Any]:
        """Its marking."""
        kind = {"threshold": "threshold", "s-ecn": "s_ecn"}[self.policy]
        return {"marking": {"kind": kind, "k": f"{K}B"}}

    def transport(self) -> dict[str, Any]:
        """Its hosts."""
        push = {"kind": "half_window", "writes": [f"{FIRST}B"]}
        # Connections are open before: a flow would begin with its SYN, which waits behind the data of earlier ones.
        control = {"kind": "dctcp", "arithmetic": "linux"}
        return {"congestion_control": control, "initial_window": self.window, "push": push, "handshake": False}


def case(rate: int, window: int, policy: str) -> Marked:
    return Marked("bpf_dctcp", SENDERS, rate // 100, PRODUCT * 8 / rate, BUFFER, rate, policy, window)


CASES = [
    case(rate, window, policy)
    for rate, window in ((100_000_000, 3), (100_000_000, 10), (200_000_000, 3), (300_000_000, 3), (500_000_000, 3))
    for policy in POLICIES
]


def analysed(source: Any, rate: int, goodput: float) -> dict[str, float]:
    """What `fanin analyze` says of a port, and the share of marked packets."""
    kernel = isinstance(source, Path)
    found = fanin.analyze(source, rate=f"{rate}bps", overhead="0B") if kernel else fanin.analyze(source)
    port, records = found.port(), found.records
    taken = records.filter(~pl.col("dropped"))
    return {
        "peak": int(port["peak_bytes"]),
        "drops": int(port["dropped"]),
        "marked": round(float(taken["marked"].mean()), 4),  # type: ignore[arg-type]
        "mean": round(float(taken["queue_bytes"].mean())),  # type: ignore[arg-type]
        "goodput": round(goodput, 4),
    }


def goodput(experiment: Marked, outcome: Outcome) -> float:
    """Payload of all flows over the time until the last one is complete, as a share of the port's rate."""
    return experiment.flows * experiment.size * 8e3 / (outcome.last_ms * experiment.rate)


def refused(n: dict[str, float], experiment: Marked) -> str | None:
    """Why a run does not count, or None: as in campaign.py, and a delay line that is late by a quarter of the round trip."""
    quarter = experiment.rtt * 1e6 / 4
    if n["late_p99_us"] > min(quarter, LATE_P99):
        return f"the delay line is late by {n['late_p99_us']} us (99th percentile), {quarter:.0f} are a quarter of the round trip"
    if n["rate"] > FASTEST:
        return f"the port sends at {100 * n['rate']:.1f} % of its rate while packets wait: they come too late, and HTB makes up"
    return disturbed(n)


def one(bed: Bed, binary: Path, experiment: Marked, variant: int, table: Path) -> tuple[dict[str, Any], dict[str, float]]:
    """A run of the kernel: what it came to, and what the machine did to it."""
    for ns in bed.senders[: experiment.flows]:
        command(ns, "ip", "route", "change", f"{RECEIVER_IP}/32", "dev", "eth", "initcwnd", str(experiment.window))
    setting = experiment.setting(variant)
    bed.shape(setting.rate, setting.buffer)
    mark = (f"policy={experiment.policy}", f"rate={setting.rate}", f"k={K}", f"limit={setting.buffer}", "stats=1")
    with (
        bpf.Program(binary, "mark", "port", *mark, ns=bed.switch) as marker,
        bpf.Program(binary, "record", "port", str(table), "stats=1", ns=bed.switch) as recorder,
    ):
        run = bed.run(setting, keep_port=True)
        recorded, counted = recorder.end(), marker.end()
    outcome, trace = kernel_outcome(run)
    if recorded["lost"]:
        raise RuntimeError(f"the recorder lost {recorded['lost']} records")
    programs = {**recorded["programs"], **counted["programs"]}
    return {
        **analysed(table, experiment.rate, goodput(experiment, outcome)),
        "timeouts": outcome.timeouts,
        "outcome": {**outcome.as_dict(), "before": [], "after": []},
        "packets": counted["packets"],
        "unknown_waits": recorded["unknown_waits"],
        "programs_ns": {name: round(p["ns"] / max(p["runs"], 1), 1) for name, p in programs.items()},
    }, noise(run, trace, experiment.rate)


def measure(cases: Iterable[Marked], out: Path, runs: int = RUNS) -> dict[str, Any]:
    """Runs of the kernel, policies in turn, so that a change of the machine's load falls upon both alike."""
    reason = bpf.lacking()
    if reason:
        raise LackingError(reason)
    out.mkdir(parents=True, exist_ok=True)
    binary = bpf.build()
    found: dict[str, Any] = {}
    turn = sorted(cases, key=lambda c: (c.rate, c.window))
    with bpf.Program(binary, "dctcp") as dctcp, Bed(out / "work", senders=SENDERS) as bed:
        bed.spread()
        for variant in range(runs):
            for experiment in turn:
                mine = found.setdefault(experiment.key, {"runs": [], "noise": [], "refused": []})
                for _ in range(TRIES):
                    result, n = one(bed, binary, experiment, variant, out / "queue.csv")
                    reason = refused(n, experiment)
                    if not reason:
                        mine["runs"].append({"variant": variant, **result})
                        mine["noise"].append(n)
                        shutil.copy(out / "queue.csv", out / f"{experiment.key}-{variant}.csv")
                        print(f"{experiment.name}, run {variant}: peak {result['peak'] / 1e3:.1f} KB", flush=True)
                        break
                    mine["refused"].append(reason)
                    print(f"{experiment.name}, run {variant}: REFUSED: {reason}", flush=True)
        dctcp.end()
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    about = {"kernel": platform.release(), "machine": platform.machine(), "cpus": len(os.sched_getaffinity(0)), "date": date}
    return {**about, "cases": found}


def simulated(experiment: Marked, run: dict[str, Any], folder: Path) -> dict[str, float]:
    """The mirror of a run."""
    outcome, _ = run_fanin(experiment, Outcome.of(run["outcome"]), folder, run["variant"])
    return analysed(fanin.load(folder / "result"), experiment.rate, goodput(experiment, outcome))


def spread(values: Sequence[float], digits: int, scale: float = 1.0) -> str:
    """Median, and the least and the most."""
    scaled = [v / scale for v in values]
    least, most = f"{min(scaled):.{digits}f}", f"{max(scaled):.{digits}f}"
    return least if least == most else f"{np.median(scaled):.{digits}f} ({least}..{most})"


def table(data: dict[str, Any], folder: Path) -> tuple[str, dict[str, tuple[list[dict[str, Any]], list[dict[str, float]]]]]:
    """The table of the page, and what it was made from: runs of the kernel and their mirrors, by case."""
    out = [
        f"Kernel {data['kernel']}, {data['cpus']} CPUs, measured on {data['date']}; Fanin {fanin.__version__}. "
        "Median (least..most) of the runs that count, and of their mirrors.",
        "",
        "| rate, first window | | runs | peak \\[KB\\]: kernel | Fanin | mean queue \\[KB\\]: kernel | Fanin "
        "| goodput \\[% of the rate\\]: kernel | Fanin | marked \\[%\\]: kernel | Fanin |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    pairs: dict[str, tuple[list[dict[str, Any]], list[dict[str, float]]]] = {}
    for experiment in CASES:
        entry = data["cases"].get(experiment.key)
        if not entry:
            continue
        runs, of = entry["runs"], len(entry["runs"]) + len(entry["refused"])
        what = f"{experiment.rate // 1_000_000} Mb/s, {experiment.window}"
        if not runs:
            out.append(f"| {what} | {POLICIES[experiment.policy]} | 0 of {of}: all refused | – | – | – | – | – | – | – | – |")
            continue
        mirrors = [simulated(experiment, run, folder / experiment.key / str(run["variant"])) for run in runs]
        pairs[experiment.key] = (runs, mirrors)
        cells = [
            spread([r[name] for r in side], digits, scale)
            for name, digits, scale in (("peak", 0, 1e3), ("mean", 1, 1e3), ("goodput", 1, 0.01), ("marked", 0, 0.01))
            for side in (runs, mirrors)
        ]
        out.append(f"| {what} | {POLICIES[experiment.policy]} | {len(runs)} of {of} | {' | '.join(cells)} |")
    out += ["", "| S-ECN's peak below DCTCP's, medians | kernel | Fanin |", "|---|---|---|"]
    for slow in CASES:
        fast = replace(slow, policy="s-ecn")
        if slow.policy == "threshold" and slow.key in pairs and fast.key in pairs:
            less = [
                f"{100 * (1 - np.median([r['peak'] for r in b]) / np.median([r['peak'] for r in a])):.0f} %"
                for a, b in zip(pairs[slow.key], pairs[fast.key], strict=True)
            ]
            out.append(f"| {slow.rate // 1_000_000} Mb/s, first window {slow.window} | {less[0]} | {less[1]} |")
    return "\n".join(out) + "\n", pairs


def plot(source: Path, folder: Path, path: Path) -> None:
    """The queue of run 0 at 100 Mb/s, kernel over Fanin, both policies."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 1, figsize=(9, 5), sharex=True, sharey=True, layout="constrained")
    for policy, colour in (("threshold", "#333333"), ("s-ecn", "#0a6ebd")):
        experiment = case(100_000_000, 3, policy)
        kernel = pl.read_csv(source / f"{experiment.key}-0.csv").filter(pl.col("dropped") == 0)
        first = kernel.filter(pl.col("payload") > 0)["time_ns"][0]
        mirror = fanin.load(folder / experiment.key / "0" / "result").queues
        begins = mirror.filter(pl.col("frame_bytes") > 100)["time_ps"][0]
        for axis, at, queue in (
            (axes[0], (kernel["time_ns"] - first) / 1e6, kernel["queue_bytes"]),
            (axes[1], (mirror["time_ps"].cast(pl.Int64) - begins) / 1e9, mirror["queue_bytes"]),
        ):
            axis.plot(at, queue / 1e3, color=colour, linewidth=0.9, label=f"{POLICIES[policy]}")
    for axis, name in ((axes[0], f"Linux {platform.release().split('-')[0]}"), (axes[1], "Fanin")):
        axis.axhline(K / 1e3, color="#999999", linewidth=0.7, linestyle=":")
        axis.set_xlim(0, 100)
        axis.set_title(name, loc="left", fontsize=10)
        axis.set_ylabel("queue [KB]")
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False)
    axes[1].set_xlabel("time since the first data packet [ms]; dotted: K")
    figure.savefig(path, dpi=100, metadata={"Software": None})
    plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="S-ECN and DCTCP in the Linux kernel; docs/linux-dataplane.md")
    parser.add_argument("--measure", action="store_true", help="measure the kernel anew, into out/linux-demo")
    parser.add_argument("--rate", type=int, action="append", help="Mb/s: these rates only")
    parser.add_argument("--runs", type=int, default=RUNS, help="runs of each case")
    parser.add_argument("--docs", action="store_true", help="write table and figure of docs/dev/linux-dataplane-measured.md")
    parser.add_argument("--reference", action="store_true", help="make these runs the committed reference")
    options = parser.parse_args(arguments)
    source = REFERENCE
    if options.measure:
        cases = [c for c in CASES if not options.rate or c.rate // 1_000_000 in options.rate]
        try:
            data = measure(cases, OUT, options.runs)
        except LackingError as e:
            print(f"SKIPPED: S-ECN in the running kernel: this machine lacks {e}")
            return 0
        source = OUT / "marking.json"
        source.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    data = json.loads(source.read_text(encoding="utf-8"))
    if options.reference:
        # Rates that were not measured now stay as they are.
        before = json.loads(REFERENCE.read_text(encoding="utf-8"))["cases"] if REFERENCE.exists() else {}
        data = {**data, "cases": {**before, **data["cases"]}}
        lines = [f" {json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}" for key, value in data["cases"].items()]
        head = {key: value for key, value in data.items() if key != "cases"}
        REFERENCE.write_text(json.dumps(head)[:-1] + ', "cases": {\n' + ",\n".join(lines) + "\n}}\n", encoding="utf-8")
    with tempfile.TemporaryDirectory() as work:
        text, _ = table(data, Path(work))
        print(text)
        if options.docs:
            fill(PAGE, "demo", text)
            plot(OUT, Path(work), FIGURE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
