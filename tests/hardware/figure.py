"""The figure of docs/dev/tofino.md: percentiles of the queue over the limit, the switch's and Fanin's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from tofino import PERCENTILES, Outcome

SHOWN = {1: "#b35806", 50: "#1b7837", 99: "#2166ac"}


def draw(outcomes: Sequence[Outcome], path: Path) -> None:
    """Points are the switch's readings, lines are Fanin's."""
    algorithms = list(dict.fromkeys(o.row.algorithm for o in outcomes))
    flows = sorted({o.row.flows for o in outcomes})
    drawing = Figure(figsize=(3.0 * len(flows), 2.6 * len(algorithms)), layout="constrained")
    FigureCanvasAgg(drawing)
    grid = drawing.subplots(len(algorithms), len(flows), sharex=True, sharey=True, squeeze=False)
    for axes_of_row, algorithm in zip(grid, algorithms, strict=True):
        for axes, n in zip(axes_of_row, flows, strict=True):
            chosen = sorted((o for o in outcomes if (o.row.algorithm, o.row.flows) == (algorithm, n)), key=lambda o: o.row.limit)
            limits = [o.row.limit for o in chosen]
            for p, color in SHOWN.items():
                i = PERCENTILES.index(p)
                axes.plot(limits, [o.readings[i] for o in chosen], color=color, linewidth=1.2)
                axes.plot(limits, [o.row.readings[i] for o in chosen], "o", color=color, markersize=3, label=f"p{p:02}")
            axes.set_title(f"{algorithm}, {n} {'flow' if n == 1 else 'flows'}", fontsize=9)
            axes.tick_params(labelsize=8)
            axes.grid(alpha=0.3, linewidth=0.5)
    for axes in grid[-1]:
        axes.set_xlabel("limit [packets]", fontsize=8)
    for axes_of_row in grid:
        axes_of_row[0].set_ylabel("queue [packets]", fontsize=8)
    grid[0][0].legend(fontsize=7, loc="upper left", title="points: Tofino, lines: Fanin", title_fontsize=7)
    path.parent.mkdir(parents=True, exist_ok=True)
    drawing.savefig(path, dpi=110, metadata={"Software": None})
