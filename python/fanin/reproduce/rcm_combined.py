"""RCM, §4.1: figs. 6 and 7 at the paper's switch, with virtual output queues of 100 KB."""

from __future__ import annotations

from typing import Any, Final

from fanin.reproduce._context import Context
from fanin.reproduce._jobs import frame
from fanin.reproduce._rcm import DCQCN, PAUSES, RCM, RCM_ALONE, READ, VARIANTS, grid, means
from fanin.reproduce._registry import figure
from fanin.reproduce._rows import Findings, Row
from fanin.reproduce.rcm import BURSTS, CAM, ITSELF, SET, STILL, alike, bars, burst_run, half, nearly_50, over_time, phases, victims

SWITCH: Final[dict[str, Any]] = {
    "switch.architecture": {"kind": "combined", "voq": "100KB", "output": "100KB"},
    "switch.buffer": None,
    "switch.mechanisms.pfc.xoff": {"kind": "static", "bytes": "60KB"},
}
"""XOFF leaves room for what still arrives, so that a virtual output queue of 100 KB loses nothing."""


@figure("rcm/combined", title="Figs. 6 and 7 at combined input- and output-queued switches", seeds=4, short=1, seconds=200)
def combined(context: Context) -> Findings:
    """The figures of RCM at the paper's own switch architecture."""
    burst, victim = (context.scenario(name).replace(SWITCH) for name in ("burst", "victim"))
    listed = grid(context, burst, BURSTS, [1])
    found = dict(zip(BURSTS, context.runs(listed, burst_run), strict=True))
    seen = {name: phases(one) for name, one in found.items()}
    table, mean = victims(context, victim, VARIANTS | STILL)
    rows = [
        Row(name="DCQCN: burst, as long as it lasts", paper=50, fanin=seen[DCQCN]["mean_burst"], low=45, high=55, unit="Gb/s"),
        alike("PFC alone: victim", mean[PAUSES]["settled_victim"]),
        alike("DCQCN: victim, from 2 ms on", mean[DCQCN]["settled_victim"], ITSELF),
        half(RCM, seen[RCM]["least_burst"], note=CAM),
        half(READ, seen[READ]["least_burst"], calibrated=SET),
    ]
    rows += [nearly_50(f"{name}: victim, from 2 ms on", mean[name]["settled_victim"]) for name in (RCM, RCM_ALONE, *STILL)]
    plots = {"combined-fig6": over_time(found[READ]), "combined-fig7": bars(table)}
    return Findings(
        rows=rows, plots=plots, data={"phases": frame(listed, list(seen.values())), "runs": table, "means": means(table)}
    )
