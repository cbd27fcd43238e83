# %% [markdown]
# # Who filled the queue?
# A notebook as a script: run it as it is, or cell by cell in an editor. The question of a network engineer after a
# microburst: which flows' packets stood in the queue at its peak, how long did it last, and what were they part of?

# %%
from pathlib import Path

import polars as pl

import fanin

demo = fanin.Scenario.from_file(Path(__file__).parents[1] / "scenarios" / "demo.toml")
scenario = demo.replace({"duration": "20ms", "telemetry.queues": ["leaf*->h*"]})
result = fanin.run(scenario, progress=False)
print(result)

# %% [markdown]
# The packet that found the deepest queue, and the burst around it: back to the last packet that found the queue empty,
# and on to the next one.

# %%
deepest = result.scan_queues().sort("queue_bytes", descending=True, maintain_order=True).head(1).collect().row(0, named=True)
port, peak_ps = deepest["port"], deepest["time_ps"]
at_port = result.scan_queues().filter(pl.col("port") == port)
empty = at_port.filter(pl.col("queue_bytes") == 0).select("time_ps").collect()["time_ps"]
begin_ps = int(empty.filter(empty <= peak_ps).to_numpy().max(initial=0))
end_ps = int(empty.filter(empty > peak_ps).to_numpy().min(initial=2**62))
rise_us = (peak_ps - begin_ps) / 1e6
print(f"{port}: {deepest['queue_bytes'] / 1000:.1f} KB at {peak_ps / 1e9:.4f} ms, {rise_us:.1f} us after the burst began")

# %% [markdown]
# The flows in the burst, joined with what they were part of.

# %%
burst = at_port.filter(pl.col("time_ps").is_between(begin_ps, end_ps)).collect()
culprits = (
    burst.group_by("flow")
    .agg(
        packets=pl.len(),
        bytes=pl.col("frame_bytes").cast(pl.UInt64).sum(),
        marked=pl.col("marked").sum(),
        dropped=pl.col("dropped").sum(),
    )
    .join(result.flows.select("flow", "group", "query", "src", "size_bytes"), on="flow")
    .sort("bytes", descending=True)
)
totals = culprits.group_by("group").agg(pl.len().alias("flows"), pl.col("packets", "bytes", "marked", "dropped").sum())
with pl.Config(tbl_cols=-1, tbl_width_chars=120):
    print(totals.sort("bytes", descending=True))
    print(culprits.head(10))

# %% [markdown]
# The same burst as a figure, every packet.

# %%
figure = result.plot_queue(port, window_ps=(begin_ps, peak_ps + (peak_ps - begin_ps)))
figure.write_html("culprits.html", include_plotlyjs=True)
