"""One run on 1, 2, 4 … threads: wall-clock time, speed-up, and whether the results are the same bytes. See docs/parallel.md."""

from __future__ import annotations

import argparse
import filecmp
import os
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import fanin

ROOT = Path(__file__).parents[1]


def permutation(k: int, size: str) -> dict[str, Any]:
    """Return a permutation on a fat tree of k³/4 hosts at 10 Gb/s, DCTCP with a threshold of 65 packets: W2 of `fanin bench`."""
    return {
        "name": f"W2-{k**3 // 4}",
        "topology": {"kind": "fat_tree", "k": k, "link": {"rate": "10Gbps", "delay": "1us"}},
        "switch": {"marking": {"kind": "threshold", "k": "65 packets"}, "buffer": {"kind": "static", "per_port": "4MB"}},
        "transport": {"kind": "tcp", "congestion_control": "dctcp", "handshake": False},
        "traffic": [{"kind": "permutation", "size": size}],
        "telemetry": {"sample": "off", "drops": False},
    }


def demo(until: str) -> dict[str, Any]:
    """Return the scenario of `make demo`, with flows that start until then."""
    text = (ROOT / "scenarios" / "demo.toml").read_text(encoding="utf-8")
    return tomllib.loads(text.replace('"750ms"', f'"{until}"'))


WORKLOADS = {
    "W2-128": lambda: permutation(8, "4MB"),
    "W2-1024": lambda: permutation(16, "2MB"),
    "W2-8192": lambda: permutation(32, "500KB"),
    "demo": lambda: demo("300ms"),
}


def same(one: Path, other: Path) -> bool:
    """Return whether two result folders have the same files, all but the manifest with the same bytes."""
    names = sorted(path.name for path in one.iterdir())
    if names != sorted(path.name for path in other.iterdir()):
        return False
    return all(name == "manifest.json" or filecmp.cmp(one / name, other / name, shallow=False) for name in names)


def measure(name: str, counts: list[int], rounds: int) -> None:
    """Print a line for each number of threads: the least wall-clock time of `rounds` runs, which take turns."""
    best: dict[int, float] = {}
    hops = 0
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(rounds):
            for count in counts:
                out = Path(folder) / str(count)
                result = fanin.run(WORKLOADS[name](), out, threads=count, progress=False, overwrite=turn > 0)
                best[count] = min(best.get(count, float("inf")), result.manifest["wall_s"])
                hops = result.manifest["packet_hops"]
        for count in counts:
            equal = "same bytes" if same(Path(folder) / str(counts[0]), Path(folder) / str(count)) else "OTHER BYTES"
            wall = best[count]
            times, speed = best[counts[0]] / wall, hops / wall / 1e6
            print(f"{name:8} {count:2} threads {wall:7.3f} s {times:5.2f} times {speed:6.1f} M hops/s  {equal}")  # noqa: T201


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    # Not `choices`: with them argparse refuses the default of no words.
    parser.add_argument("workload", nargs="*", metavar="WORKLOAD", help=f"{', '.join(WORKLOADS)}; all if none is named")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, *(n for n in (2, 4, 8, 16) if n <= (os.cpu_count() or 1))])
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    for unknown in set(asked.workload) - set(WORKLOADS):
        parser.error(f"no workload {unknown!r}: {', '.join(WORKLOADS)}")
    for name in asked.workload or WORKLOADS:
        measure(name, asked.threads, asked.rounds)


if __name__ == "__main__":
    main()
