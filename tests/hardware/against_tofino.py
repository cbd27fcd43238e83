"""All rows of the Tofino's data, the table, and the bars: ``make hardware-test``.

Writes ``out/hardware/rows.csv`` and ``out/hardware/table.csv``; with ``--write``, the table in docs/dev/tofino.md and its figure
too. ``--try`` runs the experiments of that page besides: the same rows with one thing changed each.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

import tofino
from tofino import PERCENTILES, Outcome, is_busy

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "dev" / "tofino.md"
FIGURE = ROOT / "docs" / "img" / "hardware.png"
OUT = ROOT / "out" / "hardware"

TARGETS: Mapping[tuple[str, str], float] = {
    ("busy", "all"): 0.97,
    ("p50", "reno"): 3.0,
    ("p50", "cubic"): 4.0,
    ("p95", "all"): 2.0,
    ("p99", "all"): 2.0,
}
"""What is aimed at: share of rows in which "the port is always busy" is right, and median errors [packets]."""

REACHED: Mapping[tuple[str, str], float] = {
    ("busy", "all"): 0.95,
    ("p50", "reno"): 3.0,
    ("p50", "cubic"): 4.0,
    ("p95", "all"): 2.0,
    ("p99", "all"): 2.0,
}
"""What holds now, with a margin for what a change elsewhere moves by chance; a worse result fails."""

DROPS: Mapping[tuple[str, int], float] = {
    ("reno", 1): 0.009,
    ("reno", 4): 0.11,
    ("reno", 16): 1.12,
    ("reno", 64): 5.94,
    ("cubic", 1): 0.013,
    ("cubic", 4): 0.07,
    ("cubic", 16): 0.97,
    ("cubic", 64): 3.17,
}
"""Drops there at 15,000 cells [per cent of packets]."""

UTILISATION: Mapping[int, int] = {
    250: 3, 500: 6, 1000: 18, 1500: 24, 2000: 31, 2500: 47, 3000: 56, 4000: 62, 7500: 73, 12500: 84, 15000: 91, 20000: 95,
}  # fmt: skip
"""By limit [cells], what one Reno flow used there of the line, 10th percentile of bins of 20 ms [per cent], read off figure 3."""

NS3: Mapping[tuple[str, int, int], float] = {
    ("reno", 1, 15000): 10.0,
    ("reno", 4, 7500): 2.6,
    ("reno", 16, 15000): 8.2,
    ("cubic", 1, 15000): 34.0,
    ("cubic", 4, 7500): 19.0,
    ("cubic", 16, 4500): 10.0,
}
"""What ns-3 3.37 was off by on six of the rows, mean over the five percentiles [packets]."""

EXPERIMENTS: Mapping[str, dict[str, Any]] = {
    "as the testbed": {},
    "no TSO": {"tcp": {"tso": False, "tso_rtt_log": None}},
    "two links of 10 Gb/s, packet by packet in turn": {"bond": "two links"},
    "hosts that poll every 126 µs and merge segments": {"poll_us": 126},
    "the same, 50 µs": {"poll_us": 50},
    "no HyStart": {"tcp": {"slow_start": "standard"}},
    "losses by duplicate ACKs, not RACK": {"tcp": {"loss_detection": "rfc6675"}},
    "a receive window of 1 GB from the start": {"tcp": {"receive_window": {"kind": "fixed", "size": "1GB"}}},
}


def groups(outcomes: Sequence[Outcome]) -> list[tuple[str, str, list[Outcome]]]:
    """The outcomes by algorithm and number of flows, by algorithm, and all."""
    algorithms = list(dict.fromkeys(o.row.algorithm for o in outcomes))
    found = [
        (a, str(n), [o for o in outcomes if (o.row.algorithm, o.row.flows) == (a, n)])
        for a in algorithms
        for n in sorted({o.row.flows for o in outcomes})
    ]
    found += [(a, "all", [o for o in outcomes if o.row.algorithm == a]) for a in algorithms]
    return [*((a, n, chosen) for a, n, chosen in found if chosen), ("all", "all", list(outcomes))]


def figures(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Share right on "always busy", and of each percentile the mean error and the median of its amount."""
    numbers = {"busy": fmean(is_busy(o.readings) == is_busy(o.row.readings) for o in outcomes)}
    for i, p in enumerate(PERCENTILES):
        errors = [o.errors()[i] for o in outcomes]
        numbers |= {f"mean p{p:02}": fmean(errors), f"p{p:02}": median(map(abs, errors))}
    return numbers


def table(outcomes: Sequence[Outcome]) -> str:
    """The table, in Markdown."""
    head = ["congestion control", "flows", "rows", "always busy right", *(f"p{p:02}" for p in PERCENTILES)]
    lines = [f"| {' | '.join(head)} |", "|---|---|---|---|" + "---|" * len(PERCENTILES)]
    for algorithm, flows, chosen in groups(outcomes):
        numbers = figures(chosen)
        cells = [f"{numbers[f'mean p{p:02}']:+.1f} / {numbers[f'p{p:02}']:.1f}" for p in PERCENTILES]
        lines.append(f"| {algorithm} | {flows} | {len(chosen)} | {100 * numbers['busy']:.0f} % | {' | '.join(cells)} |")
    return "\n".join(lines)


def bars(outcomes: Sequence[Outcome], reached: Mapping[tuple[str, str], float] = REACHED) -> tuple[str, list[str]]:
    """What is reached beside what is aimed at, in Markdown; and which bars are missed."""
    by_name = {algorithm: figures(chosen) for algorithm, flows, chosen in groups(outcomes) if flows == "all"}
    lines, missed = ["| | now | bar | aim |", "|---|---|---|---|"], []
    for (what, algorithm), aim in TARGETS.items():
        now, bar = by_name[algorithm][what], reached[what, algorithm]
        if what == "busy":
            name, texts, ok = "always busy right", [f"{100 * x:.0f} %" for x in (now, bar, aim)], now >= bar
        else:
            name, texts, ok = f"median error of {what}, {algorithm}", [f"{x:.1f}" for x in (now, bar, aim)], now <= bar
        lines.append(f"| {name} | {' | '.join(texts)} |")
        if not ok:
            missed.append(f"{name}: {texts[0]}, bar {texts[1]}")
    return "\n".join(lines), missed


def beside_ns3(outcomes: Sequence[Outcome]) -> str:
    """Mean error over the five percentiles, beside that of ns-3, in Markdown."""
    lines = ["| congestion control, flows, limit | Fanin | ns-3 3.37 |", "|---|---|---|"]
    for o in outcomes:
        theirs = NS3.get((o.row.algorithm, o.row.flows, o.row.cells))
        if theirs is not None:
            mine = fmean(map(abs, o.errors()))
            lines.append(f"| {o.row.algorithm}, {o.row.flows}, {o.row.limit} packets | {mine:.1f} | {theirs:.1f} |")
    return "\n".join(lines)


def other_figures(outcomes: Sequence[Outcome]) -> str:
    """Drops and utilisation beside the testbed's, in Markdown."""
    lines = ["| | Tofino | Fanin |", "|---|---|---|"]
    for o in outcomes:
        theirs = DROPS.get((o.row.algorithm, o.row.flows)) if o.row.cells == 15000 else None
        if theirs is not None:
            mine = 100 * o.drops / o.packets
            what = f"drops, {o.row.algorithm}, {o.row.flows} flows, {o.row.limit} packets"
            lines.append(f"| {what} | {theirs} % | {mine:.2g} % |")
    for o in outcomes:
        theirs = UTILISATION.get(o.row.cells) if (o.row.algorithm, o.row.flows) == ("reno", 1) else None
        if theirs is not None:
            lines.append(f"| utilisation, one Reno flow, {o.row.limit} packets | {theirs} % ± 2 | {100 * o.utilisation:.0f} % |")
    return "\n".join(lines)


def experiments(which: Sequence[tofino.Row]) -> str:
    """The same rows with one thing changed each, in Markdown."""
    head = "| what | always busy right | p05, Reno | p50, Reno | p95, Reno | p05, CUBIC | p50, CUBIC | p95, CUBIC |"
    lines = [head, "|---|" + "---|" * 7]
    for name, change in EXPERIMENTS.items():
        outcomes = tofino.run_all(which, **change)
        by_name = {algorithm: figures(chosen) for algorithm, flows, chosen in groups(outcomes) if flows == "all"}
        cells = [
            f"{by_name[algorithm][f'mean {p}']:+.1f} / {by_name[algorithm][p]:.1f}"
            for algorithm in ("reno", "cubic")
            for p in ("p05", "p50", "p95")
        ]
        lines.append(f"| {name} | {100 * by_name['all']['busy']:.0f} % | {' | '.join(cells)} |")
    return "\n".join(lines)


def save(outcomes: Sequence[Outcome], folder: Path) -> None:
    """The rows and the table as CSV."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"p{p:02}" for p in PERCENTILES]
    with (folder / "rows.csv").open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(
            [
                "algorithm",
                "flows",
                "limit_packets",
                *(f"tofino_{n}" for n in names),
                *(f"fanin_{n}" for n in names),
                "packets",
                "drops",
            ]
        )
        for o in outcomes:
            out.writerow([o.row.algorithm, o.row.flows, o.row.limit, *o.row.readings, *o.readings, o.packets, o.drops])
    with (folder / "table.csv").open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(
            ["algorithm", "flows", "rows", "busy_right", *(f"{kind}_{n}" for n in names for kind in ("mean_error", "median_error"))]
        )
        for algorithm, flows, chosen in groups(outcomes):
            numbers = figures(chosen)
            errors = [numbers[key] for n in names for key in (f"mean {n}", n)]
            out.writerow([algorithm, flows, len(chosen), numbers["busy"], *errors])


def put(page: str, marker: str, text: str) -> str:
    """The page with what stands between two comments replaced."""
    begin, end = f"<!-- {marker} -->\n", f"<!-- end of {marker} -->"
    before, rest = page.split(begin, 1)
    _, after = rest.split(end, 1)
    return f"{before}{begin}{text}\n{end}{after}"


def main() -> int:
    """Runs the rows; the exit status."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--write", action="store_true", help="refresh docs/dev/tofino.md and its figure")
    arguments.add_argument("--try", action="store_true", dest="trials", help="run the experiments too, each as long as the rows")
    options = arguments.parse_args()
    which = tofino.rows()
    begin = time.monotonic()
    outcomes = tofino.run_all(which)
    seconds = time.monotonic() - begin
    save(outcomes, OUT)
    rows_table, (bars_table, missed) = table(outcomes), bars(outcomes)
    parts = {"rows": rows_table, "bars": bars_table, "ns-3": beside_ns3(outcomes), "drops": other_figures(outcomes)}
    print(f"{len(which)} rows in {seconds:.0f} s; mean error / median of its amount, in packets")
    for text in parts.values():
        print(f"\n{text}")
    if options.trials:
        parts["experiments"] = experiments(which)
        print(f"\n{parts['experiments']}")
    if options.write:
        import figure

        page = PAGE.read_text(encoding="utf-8")
        for marker, text in parts.items():
            page = put(page, marker, text)
        PAGE.write_text(page, encoding="utf-8")
        figure.draw(outcomes, FIGURE)
    for line in missed:
        print(f"MISSED: {line}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
