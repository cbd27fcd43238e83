"""Runs all experiments on the kernel and in Fanin, and writes tables, plots and the committed reference.

python tests/linux/campaign.py                       the table, against the committed reference; needs no root
python tests/linux/campaign.py --measure             measure the kernel anew (root, minutes), into out/linux
python tests/linux/campaign.py --from out/linux/kernel.json --docs        tables and plots of the two pages
python tests/linux/campaign.py --from out/linux/kernel.json --reference   make this the committed reference
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import fnmatch
import json
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from bed import Bed, Run
from measure import FIGURES, Outcome, Trace, Verdict, judge
from mirror import EXPERIMENTS, Experiment, kernel_outcome, medoid, run_fanin, series, turn_us

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "out" / "linux"
REFERENCE = Path(__file__).parent / "reference" / "kernel.json"
PAGE = ROOT / "docs" / "linux.md"
ALL = ROOT / "docs" / "dev" / "linux-testbed.md"
PLOTTED = ("reno-9x1000KB-12ms-1500KB-100M", "cubic-9x1000KB-2ms-512KB-100M", "reno-27x256KB-2ms-128KB-100M")
RUNS = 5

COUNTED = """
RetransSegs TCPTimeouts TCPLossFailures TCPSackRecoveryFail TCPSackFailures TCPFastRetrans TCPSlowStartRetrans TCPLostRetransmit
TCPLossProbes TCPLossProbeRecovery TCPSpuriousRTOs TCPSpuriousRtxHostQueues TCPDSACKRecv TCPDSACKUndo TCPFullUndo TCPPartialUndo
TCPLossUndo TCPHystartTrainDetect TCPHystartTrainCwnd TCPHystartDelayDetect TCPHystartDelayCwnd
"""
COUNTERS = COUNTED.split()
"""What a run keeps of nstat's counters, of all sender namespaces together."""

LATE_P99, LATE_MAX, STEAL, RATE = 250.0, 5000.0, 0.02, 0.99
"""What a run must hold to count: lateness of the delay line [us], stolen share of time, rate of a busy port."""


class NoisyError(RuntimeError):
    """The machine does not hold still."""


def noise(run: Run, trace: Trace, rate: int) -> dict[str, float]:
    """What the machine did to a run."""
    late = run.acks["late"] / 1e3
    p50, p99, worst = (round(float(v), 1) for v in np.percentile(late, (50, 99, 100)))
    return {
        "late_p50_us": p50,
        "late_p99_us": p99,
        "late_max_us": worst,
        "steal": round(run.machine["steal_share"], 4),
        "rate": round(trace.busy_rate() / rate, 4),
        "load": round(run.machine["load"], 1),
    }


def disturbed(n: dict[str, float]) -> str | None:
    """Why a run does not count, or None."""
    if n["late_p99_us"] > LATE_P99 or n["late_max_us"] > LATE_MAX:
        return f"the delay line is late by {n['late_p99_us']} us (99th percentile), {n['late_max_us']} us (most)"
    if n["steal"] > STEAL:
        return f"{100 * n['steal']:.1f} % of the time is stolen"
    if n["rate"] < RATE:
        return f"the shaper gives {100 * n['rate']:.1f} % of its rate"
    return None


def measure(experiments: Iterable[Experiment], out: Path, runs: int = RUNS, receivers: bool = False) -> dict[str, Any]:
    """Run experiments on the kernel, `runs` quiet runs of each, and keep a small archive of the middle one.

    Raises
    ------
    NoisyError
        When two of three runs are disturbed.
    """
    out.mkdir(parents=True, exist_ok=True)
    cases: dict[str, Any] = {}
    with Bed(out / "work") as bed:
        for experiment in experiments:
            kept: list[tuple[Run, Outcome, Trace, dict[str, float]]] = []
            rejected: list[str] = []
            step: int | None = None
            while len(kept) < runs:
                setting = replace(experiment.setting(len(kept)), receivers=receivers)
                run = bed.run(setting)
                mine, trace = kernel_outcome(run, step)
                n = noise(run, trace, experiment.rate)
                reason = disturbed(n)
                if reason:
                    rejected.append(reason)
                    if len(rejected) > 2 * runs:
                        of = len(rejected) + len(kept)
                        raise NoisyError(f"{experiment.name}: {len(rejected)} of {of} runs disturbed: {rejected[-1]}")
                    continue
                step = mine.step
                n["turn_us"] = turn_us(run, setting.delay)
                kept.append((run, mine, trace, n))
            cases[experiment.key] = {
                "runs": [o.as_dict() for _, o, _, _ in kept],
                "counters": [{k: r.counters[k] for k in COUNTERS if k in r.counters} for r, _, _, _ in kept],
                "noise": [n for _, _, _, n in kept],
                "rejected": rejected,
            }
            middle = medoid([o for _, o, _, _ in kept])
            archive(out / experiment.key, experiment, *kept[middle])
            drops, timeouts = [o.drops for _, o, _, _ in kept], [o.timeouts for _, o, _, _ in kept]
            print(f"{experiment.name}: drops {drops}, timeouts {timeouts}; {len(rejected)} runs disturbed", flush=True)
    return {
        "kernel": platform.release(),
        "machine": platform.machine(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "disturbed": sum(len(c["rejected"]) for c in cases.values()),
        "cases": cases,
    }


def archive(folder: Path, experiment: Experiment, run: Run, mine: Outcome, trace: Trace, noise: dict[str, float]) -> None:
    """Keep one run: every packet on both sides of the port, TCP_INFO, the queue."""
    folder.mkdir(parents=True, exist_ok=True)
    zero = int(run.before["ns"][run.before["payload"] > 0][0])

    def table(rows: Any) -> pl.DataFrame:
        columns = {k: rows[k] for k in rows.dtype.names if k != "ns"}
        return pl.DataFrame({"time_ns": rows["ns"].astype(np.int64) - zero, **columns})

    table(run.before).write_parquet(folder / "before.parquet")
    table(run.after).write_parquet(folder / "after.parquet")
    table(run.acks).write_parquet(folder / "acks.parquet")
    table(run.info).write_parquet(folder / "tcp_info.parquet")
    if len(run.ends):
        table(run.ends).write_parquet(folder / "receivers.parquet")
    series(trace).write_parquet(folder / "queue.parquet")
    about = {"name": experiment.name, "outcome": mine.as_dict(), "counters": run.counters, "noise": noise, "machine": run.machine}
    (folder / "run.json").write_text(json.dumps(about, indent=1), encoding="utf-8")


def load(path: Path) -> dict[str, Any]:
    """Kernel runs, measured or committed."""
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return data


def write(data: dict[str, Any], path: Path) -> None:
    """Kernel runs, an experiment a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    head = {k: v for k, v in data.items() if k != "cases"}
    lines = [f" {json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in data["cases"].items()]
    text = json.dumps(head)[:-1] + ', "cases": {\n' + ",\n".join(lines) + "\n}}\n"
    path.write_text(text, encoding="utf-8")


def compact(case: dict[str, Any]) -> dict[str, Any]:
    """What the committed reference keeps of an experiment: outcomes, and the medians of the counters."""
    counters = case["counters"]
    return {"runs": case["runs"], "counters": [{k: float(np.median([c.get(k, 0) for c in counters])) for k in COUNTERS}]}


@dataclass(frozen=True)
class Row:
    """An experiment, what the kernel did, what Fanin did, and what is to be said of it."""

    experiment: Experiment
    kernel: list[Outcome]
    fanin: list[Outcome]
    verdicts: list[Verdict]


def compare(data: dict[str, Any], folder: Path, runs: int | None = None) -> list[Row]:
    """Mirror the kernel's runs in Fanin, each with its own starts and round trip."""
    rows = []
    for experiment in EXPERIMENTS:
        if experiment.key not in data["cases"]:
            continue
        kernel = [Outcome.of(r) for r in data["cases"][experiment.key]["runs"]]
        fanin = [run_fanin(experiment, k, folder, run)[0] for run, k in enumerate(kernel[:runs])]
        rows.append(Row(experiment, kernel, fanin, judge(kernel, fanin)))
    return rows


def number(value: float | None, digits: int) -> str:
    """A value of the table."""
    return "–" if value is None else f"{value:.{digits}f}"


def cell(v: Verdict) -> str:
    """Kernel's spread | Fanin, with the verdict as a sign."""
    digits = v.figure.digits
    fanin = number(v.fanin, digits)
    sign = {"within": "", "off": " ✗"}.get(v.word, " ~")
    if v.figure.distance:
        return f"≤ {number(v.high, digits)} | {fanin}{sign}"
    low, high = number(v.low, digits), number(v.high, digits)
    return f"{low if low == high else f'{low}..{high}'} | {fanin}{sign}"


def about(rows: Sequence[Row], data: dict[str, Any], state: str) -> str:
    """Of which kernel and when; what the signs mean."""
    return (
        f"Kernel {data['kernel']}, measured on {data['date']}; Fanin at {state}. "
        f"Kernel: least..most of {max(len(r.kernel) for r in rows)} runs ({data['disturbed']} disturbed ones were repeated); "
        "Fanin: median of as many mirrored runs. "
        "No sign: within the kernel's spread; ~: within twice (timeouts: 1.5 times) of it; ✗: outside.\n"
    )


def tables(rows: Sequence[Row]) -> str:
    """Every figure of every experiment."""
    out = []
    for part in (FIGURES[:3], FIGURES[3:6], FIGURES[6:]):
        heads = [f"{f.title}{f' [{f.unit}]' if f.unit else ''}: kernel | Fanin" for f in part]
        out.append("| experiment | " + " | ".join(heads) + " |")
        out.append("|---|" + "---|---|" * len(part))
        for row in rows:
            cells = [cell(v) for v in row.verdicts if v.figure in part]
            out.append(f"| {row.experiment.name} | " + " | ".join(cells) + " |")
        out.append("")
    return "\n".join(out)


def summary(rows: Sequence[Row]) -> str:
    """How many of the experiments have each figure where."""
    out = [
        "| figure | within the kernel's spread | within twice (timeouts: 1.5 times) | outside |",
        "|---|---|---|---|",
    ]
    for figure in FIGURES:
        words = [v.off for r in rows for v in r.verdicts if v.figure is figure]
        counts = sum(o <= 1 for o in words), sum(1 < o <= 2 for o in words), sum(o > 2 for o in words)
        out.append(f"| {figure.title} | " + " | ".join(map(str, counts)) + " |")
    return "\n".join(out) + "\n"


def markdown(rows: Sequence[Row], data: dict[str, Any], state: str) -> str:
    """All of it, for a terminal and for `out/linux`."""
    return f"{about(rows, data, state)}\n{tables(rows)}\nHow many of the experiments are where:\n\n{summary(rows)}"


def kernel_counters(data: dict[str, Any]) -> str:
    """What the kernel counted, medians per experiment."""
    shown = {
        "RetransSegs": "retransmissions",
        "TCPLostRetransmit": "lost retransmissions",
        "TCPLossProbes": "tail loss probes",
        "TCPSpuriousRTOs": "spurious timeouts",
        "TCPHystartTrainDetect": "HyStart by ACK train",
        "TCPHystartDelayDetect": "HyStart by delay",
    }
    out = ["| experiment | " + " | ".join(shown.values()) + " |", "|---|" + "---|" * len(shown)]
    for e in EXPERIMENTS:
        if e.key in data["cases"]:
            runs = data["cases"][e.key]["counters"]
            cells = [f"{np.median([r.get(k, 0) for r in runs]):g}" for k in shown]
            out.append(f"| {e.name} | " + " | ".join(cells) + " |")
    return "\n".join(out) + "\n"


@dataclass(frozen=True)
class Bar:
    """At least so many of the experiments that match have the figure within twice the kernel's spread (timeouts: 1.5 times it)."""

    figure: str
    match: str
    at_least: int
    why: str


def reached(rows: Sequence[Row], bar: Bar) -> tuple[int, int, list[str]]:
    """How many reach the bar, of how many, and which do not."""
    rows = [r for r in rows if fnmatch.fnmatch(r.experiment.key, bar.match)]
    mine = [(r, v) for r in rows for v in r.verdicts if v.figure.name == bar.figure]
    far = [f"{r.experiment.name}: kernel {cell(v).replace(' | ', ', Fanin ')}" for r, v in mine if v.off > 2]
    return len(mine) - len(far), len(mine), far


def fill(page: Path, name: str, new: str) -> None:
    """Put new text between the markers `name` of a page."""
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
    text = page.read_text(encoding="utf-8")
    if not pattern.search(text):
        raise SystemExit(f"{page} has no markers {name}")
    page.write_text(pattern.sub(lambda m: m[1] + new + m[2], text), encoding="utf-8")


def state() -> str:
    """Which commit Fanin is at."""
    done = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False)
    return f"commit {done.stdout.strip()}" if done.returncode == 0 else "an unknown commit"


def plot(data: dict[str, Any], source: Path, folder: Path) -> None:
    """Queue over time, kernel over Fanin, of the plotted experiments, from the archive of `measure`."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    for key in PLOTTED:
        experiment = next(e for e in EXPERIMENTS if e.key == key)
        about = json.loads((source / key / "run.json").read_text(encoding="utf-8"))
        kernel = pl.read_parquet(source / key / "queue.parquet")
        with tempfile.TemporaryDirectory() as work:
            mine, trace = run_fanin(experiment, Outcome.of(about["outcome"]), Path(work))
        fanin = series(trace)
        first = about["outcome"]["first_drop_ms"]
        figure, axes = plt.subplots(2, 1, figsize=(9, 5), sharex=True, sharey=True, layout="constrained")
        for axis, rows, name, colour, drop in (
            (axes[0], kernel, f"Linux {data['kernel'].split('-')[0]}", "#333333", first),
            (axes[1], fanin, "Fanin, profile linux", "#0a6ebd", mine.first_drop_ms),
        ):
            axis.plot(rows["time_ms"], rows["queue_bytes"] / 1e3, color=colour, linewidth=0.9)
            axis.axhline(experiment.buffer / 1e3, color="#999999", linewidth=0.7, linestyle=":")
            if drop is not None:
                axis.axvline(drop, color="#c22f2f", linewidth=0.8, linestyle="--")
            axis.set_title(name, loc="left", fontsize=10)
            axis.set_ylabel("queue [KB]")
            axis.spines[["top", "right"]].set_visible(False)
        axes[1].set_xlabel("time since the first data packet [ms]; dotted: the buffer, dashed: the first drop")
        figure.suptitle(experiment.name, fontsize=11)
        figure.savefig(folder / f"linux-{key}.png", dpi=100, metadata={"Software": None})
        plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Fanin against the Linux kernel; docs/linux.md")
    parser.add_argument("--measure", action="store_true", help="measure the kernel anew, into out/linux")
    parser.add_argument("--from", dest="source", type=Path, help="kernel runs (default: those measured now, or the committed ones)")
    parser.add_argument("--only", default="*", help="experiments whose key matches, such as 'reno-9x*'")
    parser.add_argument("--runs", type=int, default=RUNS, help="quiet runs of each experiment")
    parser.add_argument("--receivers", action="store_true", help="sample the receiving ends too, into receivers.parquet")
    parser.add_argument("--docs", action="store_true", help="write tables and plots of docs/linux.md and docs/dev/linux-testbed.md")
    parser.add_argument("--reference", action="store_true", help="make these runs the committed reference")
    options = parser.parse_args(arguments)
    source = options.source or REFERENCE
    if options.measure:
        source = OUT / "kernel.json"
        data = measure([e for e in EXPERIMENTS if fnmatch.fnmatch(e.key, options.only)], OUT, options.runs, options.receivers)
        write(data, source)
    data = load(source)
    if options.reference:
        write({**data, "cases": {k: compact(v) for k, v in data["cases"].items()}}, REFERENCE)
    with tempfile.TemporaryDirectory() as work:
        rows = [r for r in compare(data, Path(work)) if fnmatch.fnmatch(r.experiment.key, options.only)]
    text = markdown(rows, data, state())
    print(text)
    if options.docs:
        head = about(rows, data, state())
        fill(PAGE, "results", f"{head}\n{summary(rows)}")
        fill(ALL, "experiments", f"{head}\n{tables(rows)}")
        fill(ALL, "counters", kernel_counters(data))
        with contextlib.suppress(FileNotFoundError):
            plot(data, source.parent, ROOT / "docs" / "img")
    return 0


if __name__ == "__main__":
    sys.exit(main())
