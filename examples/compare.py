"""Does DCTCP's marking threshold matter here? Two thresholds, twelve seeds each, and what of the difference counts.

Answers of 20 servers at once, on top of background traffic, on a small leaf-spine fabric. Runs of one seed have the same flows,
so differences are taken seed by seed. Writes the page compare.html and the figure slowdown.pdf into the folder that is given, or
into out/compare.
"""

import sys
from pathlib import Path

import fanin
from fanin.figures import paper

out = Path(sys.argv[1] if len(sys.argv) > 1 else "out/compare")
base = fanin.Scenario.from_file(Path(__file__).parents[1] / "scenarios" / "demo.toml").replace(
    {"traffic[0].stop": "5ms", "traffic[1].stop": "5ms", "telemetry.queues": [], "telemetry.sample": "50us"}
)
for k in (65, 200):
    for seed in range(1, 13):
        scenario = base.replace(seed=seed, **{"switch.marking.k": f"{k} packets"})
        fanin.run(scenario, out / f"k{k}" / f"seed{seed}", progress=False, overwrite=True)

found = fanin.compare([out / "k65", out / "k200"])
for warning in found.warnings:
    print(warning)
for row in found.rows:
    cell = row.cells[1]
    if cell.verdict is not None and ("better" in cell.verdict or "worse" in cell.verdict):
        before, after = (row.metric.text(entry.mean) for entry in (cell.base, cell.interval) if entry is not None)
        print(f"{row.metric.name}: {before} with K = 65, {after} with K = 200: {cell.verdict}")
print(found.report(out / "compare.html"))
print(paper.save(found.plot("slowdown", statistic="p99"), out / "slowdown.pdf"))
