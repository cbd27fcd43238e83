"""The picture of the README: one port under a 40-to-1 incast, packet by packet, under DCTCP and under CUBIC.

Writes the file that is named on the command line, or ``incast.png``.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.lines import Line2D

import fanin

scenarios = Path(__file__).parent.parent / "scenarios"
scenario = fanin.Scenario.from_file(scenarios / "incast.toml").replace({"telemetry.queues": ["*->h40"]})
figure, axes = plt.subplots(figsize=(8, 3), layout="constrained")
for name, changes in {
    "CUBIC, drop tail": {"transport.congestion_control": "cubic", "switch.marking": "none"},
    "DCTCP, K = 65 packets": {},
}.items():
    result = fanin.run(scenario.replace(changes), progress=False)
    queue = result.queues
    largest = result.summary["largest_queue"]["bytes"]
    print(f"{name}: {len(queue)} packets, {result.summary['drops']} dropped, largest queue {largest} B")
    time_ms = queue["time_ps"].to_numpy() / 1e9
    axes.plot(time_ms, queue["queue_bytes"].to_numpy() / 1e3, ",", rasterized=True, label=name)
    dropped = queue.filter(queue["dropped"])
    drops = dropped["queue_bytes"].to_numpy() / 1e3
    axes.plot(dropped["time_ps"].to_numpy() / 1e9, drops, "x", ms=3, color="black")
axes.set(xlabel="time [ms]", ylabel="queue [KB]", xlim=(0, None), ylim=(0, None))
axes.set_title("40 hosts answer one at once: every packet at the port towards it (x: dropped)", fontsize=9)
legend = axes.legend(loc="upper right", fontsize=8)
for handle in legend.legend_handles:
    if isinstance(handle, Line2D):
        handle.set_marker("o")
        handle.set_markersize(4)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "incast.png", dpi=110)
