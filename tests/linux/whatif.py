"""Promises of ``fanin whatif`` on a burst of this machine's kernel, and what the kernel does when the setting is changed for real.

    python tests/linux/whatif.py [OUT.json]        # root, a minute; docs/dev/whatif-measured.md has a run of it

A fan-in in the namespaces of the testbed is captured before and behind its port. ``fanin whatif`` says of each setting how many
drops it removes; then the kernel gets it: another buffer (bfifo), another first window or shortest timeout (`ip route`).
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from bed import RECEIVER_IP, Bed, Setting, command, lacking
from fanin.remedy import WhatIf, whatif
from test_pair_kernel import fifo, tap

BUFFER: Final = 100_000
SETTING: Final = Setting(flows=12, size=60_000, control="reno", rate=100_000_000, delay=0.002, buffer=BUFFER)
REAL: Final[dict[str, tuple[int, str]]] = {
    "as it is": (1, ""),
    "buffer × 2": (2, ""),
    "buffer × 4": (4, ""),
    "buffer × 8": (8, ""),
    "first window 2": (1, "initcwnd 2"),
    "first window 4": (1, "initcwnd 4"),
}
"""Setting → times the buffer, and what the route of each sender gets."""

RUNS: Final = 3


def routed(bed: Bed, attributes: str) -> None:
    """Set what the route to the receiver says of connections, at each sender."""
    for ns in bed.senders:
        command(ns, "ip", "route", "replace", f"{RECEIVER_IP}/32", "dev", "eth", *attributes.split())


def one(bed: Bed, times: int, attributes: str) -> dict[str, float]:
    """Run the fan-in with a setting; return drops of the kernel's own count, and when the last data came [s]."""
    routed(bed, attributes)
    run = bed.run(replace(SETTING, buffer=times * BUFFER))
    data = run.before["ns"][run.before["payload"] > 0]
    return {"drops": float(fifo(bed.switch)["drops"]), "last_s": float(int(data.max()) - int(data.min())) / 1e9}


def measured(folder: Path) -> tuple[WhatIf, dict[str, list[dict[str, float]]]]:
    """Return what is promised of one burst, and what came of each setting."""
    with Bed(folder / "bed", senders=SETTING.flows) as bed:
        paths = folder / "before.pcap", folder / "behind.pcap"
        taps = tap(bed.switch, "trunk1", outgoing=False), tap(bed.switch, "port", outgoing=True)
        real = {"as it is": [one(bed, *REAL["as it is"])]}
        for found, path in zip(taps, paths, strict=True):
            found.write(path)
        for name, (times, attributes) in REAL.items():
            real.setdefault(name, [])
            while len(real[name]) < RUNS:
                real[name].append(one(bed, times, attributes))
    port: dict[str, Any] = {"rate": "100Mbps", "overhead": "0B", "fcs": False, "buffer": f"{BUFFER}B"}
    asked = whatif(paths[0], behind=paths[1], only=("buffer × *", "first window"), **port)
    return asked, real


def table(asked: WhatIf, real: dict[str, list[dict[str, float]]]) -> str:
    """Return promises beside what the kernel did, as Markdown."""
    promised = {own.name: own for own in asked.remedies}
    lines = ["| setting | holds: promised | drops: promised | drops: kernel | last data: kernel |", "|---|---|---|---|---|"]
    for name, runs in real.items():
        drops = sorted(run["drops"] for run in runs)
        last = sorted(1e3 * run["last_s"] for run in runs)
        own = promised.get(name)
        said = "–" if own is None else f"{own.holds} of {own.members}"
        told = "–" if own is None else f"{own.dropped.least:.0f} to {own.dropped.most:.0f}"
        lines.append(f"| {name} | {said} | {told} | {drops[0]:.0f} to {drops[-1]:.0f} | {last[0]:.1f} to {last[-1]:.1f} ms |")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    if reason := lacking():
        print(f"not here: this machine lacks {reason}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        asked, real = measured(Path(folder))
    print(asked.text)
    print(table(asked, real))
    if arguments:
        Path(arguments[0]).write_text(json.dumps({"asked": asked.to_dict(), "real": real}, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
