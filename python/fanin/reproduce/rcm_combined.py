"""RCM, §4.1: figs. 6 and 7 at the paper's switch, with virtual output queues of 100 KB."""

from __future__ import annotations

from typing import Any, Final

from fanin.reproduce._context import Context
from fanin.reproduce._rcm import DCQCN, PAUSES, RCM, RCM_ALONE, READ, VARIANTS, frame, grid, means
from fanin.reproduce._registry import figure
from fanin.reproduce._rows import Findings, Row
from fanin.reproduce.rcm import BURSTS, CAM, ITSELF, SET, STILL, bars, burst_run, nearly_50, over_time, phases, victims

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
        Row(name="PFC alone: victim", paper=25, fanin=mean[PAUSES]["settled_victim"], low=22.5, high=27.5, unit="Gb/s"),
        Row(
            name="DCQCN: victim, from 2 ms on",
            paper=25,
            fanin=mean[DCQCN]["settled_victim"],
            low=22.5,
            high=27.5,
            unit="Gb/s",
            note=ITSELF,
        ),
    ]
    for name in (RCM, READ):
        least = seen[name]["least_burst"]
        rows.append(
            Row(
                name=f"{name}: burst, least in 10 us",
                paper=25,
                fanin=least,
                low=20,
                high=30,
                unit="Gb/s",
                note=CAM if name == RCM else "",
                calibrated=SET if name == READ else "",
            )
        )
    for name in (RCM, RCM_ALONE, *STILL):
        settled = mean[name]["settled_victim"]
        rows.append(nearly_50(f"{name}: victim, from 2 ms on", settled))
    plots = {"combined-fig6": over_time(found[READ]), "combined-fig7": bars(table)}
    return Findings(
        rows=rows, plots=plots, data={"phases": frame(listed, list(seen.values())), "runs": table, "means": means(table)}
    )
