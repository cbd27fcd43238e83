# %% [markdown]
# # What does it cost to see a microburst?
# The three ways of docs/telemetry.md on the testbed of the S-ECN paper: stamps in packets, a ring buffer and a trigger in the
# switch; and what the registers of a real switch lose against the exact record. Prints the numbers of that page.

# %%
from pathlib import Path

import polars as pl

import fanin

ROOT = Path(__file__).parents[1]
sync = fanin.Scenario.from_file(ROOT / "scenarios" / "papers" / "s-ecn" / "sync.toml").replace({"telemetry.sample": "off"})


def run(changes: dict[str, object]) -> fanin.Result:
    """Run the testbed with changes, in a folder that goes with the process."""
    return fanin.run(sync.replace(changes), progress=False)


def folder_bytes(result: fanin.Result, table: str) -> float:
    """Bytes of a table's file for each of its rows."""
    return (result.path / f"{table}.parquet").stat().st_size / int(result.manifest["files"][table])


# %% [markdown]
# ## Registers against the exact record
# Both tables of one run, packet by packet: the n-th stamp of a flow belongs to the n-th packet of that flow that the port
# accepted.

# %%
stamped = run({"telemetry.registers": {}})
tick = int(stamped.manifest["registers"]["tick_ps"])
unit = int(stamped.manifest["registers"]["unit_bytes"])
nth = pl.int_range(pl.len()).over("flow").alias("nth")
exact = stamped.queues.filter(~pl.col("dropped")).with_columns(nth)
pairs = stamped.stamps.with_columns(nth).join(exact, on=["flow", "nth"], validate="1:1")
early, short = (
    pl.col("time_ps") - pl.col("stamp_time").cast(pl.UInt64) * tick,
    pl.col("queue_bytes") - pl.col("stamp_length").cast(pl.UInt64) * unit,
)
lost = pairs.select(
    mean_ns=early.mean() / 1e3,
    most_ns=early.max() / 1e3,
    mean_b=short.mean(),
    most_b=short.max(),
    times=pl.col("stamp_time").n_unique(),
).row(0, named=True)
print(f"stamps: {pairs.height} of {exact.height} accepted packets; {stamped.queues.height - exact.height} dropped ones have none")
print(f"time: read {lost['mean_ns']:.0f} ns early on average, {lost['most_ns']:.1f} ns at most; tick {tick / 1e3:.0f} ns")
print(f"queue: read {lost['mean_b']:.2f} B short on average, {lost['most_b']} B at most; unit {unit} B")
print(f"packets that share their time with an earlier one: {1 - lost['times'] / pairs.height:.1%}")

# %% [markdown]
# ## In packets: bandwidth
# Three long flows through the watched port, with stamps and without.

# %%
long_flows = {
    "traffic": [{"kind": "flows", "flows": [{"src": f"h{3 * i}", "dst": "h9", "size": "1GB"} for i in range(3)]}],
    "duration": "500ms",
    "switch.buffer": "unlimited",
}
bits = []
stamps: list[dict[str, object]] = [{}, {"telemetry.registers": {}}]
for change in stamps:
    result = run({**long_flows, **change})
    bits.append(result.summary["goodput_bps"])
ratio = bits[1] / bits[0]
print(f"goodput of 3 long flows: {bits[0] / 1e6:.2f} Mb/s without stamps, {bits[1] / 1e6:.2f} Mb/s with: {ratio:.5f} of it")
per_second = result.manifest["files"]["stamps"] / 0.5
print(f"{per_second:.0f} packets/s arrive: their stamps take {per_second * 64 / 1e6:.2f} Mb/s of the port's 1000")

# %% [markdown]
# ## In the switch: ring and trigger

# %%
rules: dict[str, object] = {
    "all": "all",
    "ring": {"kind": "last", "records": 4096},
    "trigger": {"kind": "around", "above": "100KB", "before": "5ms", "after": "25ms"},
}
for name, rule in rules.items():
    result = run({"telemetry.keep": rule})
    port = result.manifest["watched"][0]
    kept = port["seen"] - port["left_out"]
    deepest = result.queues.select(pl.col("queue_bytes").max()).item() / 1e3
    crossed = f"; {port['crossings']} crossings, {port['cut_short']} cut short" if "crossings" in port else ""
    print(
        f"{name}: {kept} of {port['seen']} records, {kept * 6 / 1e3:.1f} KB of registers; deepest queue {deepest:.1f} KB{crossed}"
    )

# %% [markdown]
# ## On disk

# %%
for table in ("queues", "stamps"):
    print(f"{table}.parquet: {folder_bytes(stamped, table):.1f} B per record")
