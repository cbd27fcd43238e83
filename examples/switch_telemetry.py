# %% [markdown]
# # A trace like a switch's
# Writes the two traces of docs/analyze.md: what a 10 Gb/s switch's telemetry could report of one port during a fan-in, as
# CSV with the switch's own names and units, and what tcpdump on the receiving host would see, with stamps, as pcapng.
# `python examples/switch_telemetry.py examples/traces` wrote those of this folder; each run writes the same bytes.

# %%
import gzip
import shutil
import sys
from pathlib import Path

import polars as pl

import fanin

folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("traces")
folder.mkdir(parents=True, exist_ok=True)

# %% [markdown]
# A few short messages, then 24 hosts answer one at once: slow start into a shallow buffer. Their starts are spread over
# 20 µs, as in a real cluster.

# %%
scenario = {
    "name": "switch7",
    "seed": 7,
    "duration": "3ms",
    "topology": {"kind": "single_switch", "hosts": 25, "link": {"rate": "10Gbps", "delay": "5us"}},
    "switch": {"buffer": {"kind": "static", "per_port": "400KB"}},
    "transport": {"kind": "tcp", "congestion_control": "newreno", "handshake": False, "initial_window": 3, "ack_every": 1},
    "traffic": [
        {"kind": "flows", "flows": [{"src": f"h{n}", "dst": "h24", "size": "9KB", "start": f"{90 * n}us"} for n in range(1, 12)]},
        {"kind": "incast", "receiver": "h24", "senders": ["h0..h23"], "size": "48KB", "start": "1500us", "jitter": "20us"},
    ],
    "telemetry": {"queues": ["*->h24"], "registers": {}, "capture": {"hosts": ["h24"]}},
}
result = fanin.run(scenario, folder / "run", progress=False, overwrite=True)

# %% [markdown]
# The switch counts its buffer in cells of 208 B, its clock has steps of 8 ns and the date of the day; a flow goes by its
# five-tuple. Every packet at the port is reported, with the cells that it found.

# %%
CELL, CLOCK_NS, MIDNIGHT_NS = 208, 8, 1_795_219_200_000_000_000
flows = result.flows.select(
    "flow",
    five_tuple=pl.format(
        "10.7.0.{}:{} > 10.7.0.25:80 tcp", pl.col("src").str.slice(1).cast(pl.UInt32) + 1, pl.col("flow") + 40_000
    ),
)
report = result.queues.join(flows, on="flow", maintain_order="left").select(
    ts_ns=MIDNIGHT_NS + pl.col("time_ps") // 1000 // CLOCK_NS * CLOCK_NS,
    ifname=pl.lit("Ethernet1/25"),
    qlen_cells=(pl.col("queue_bytes") / CELL).ceil().cast(pl.UInt32),
    pkt_len="frame_bytes",
    five_tuple="five_tuple",
    ecn_ce=pl.col("marked").cast(pl.UInt8),
    tail_drop=pl.col("dropped").cast(pl.UInt8),
)
report.write_csv(folder / "switch7.csv")
packets = (result.path / "packets.pcapng").read_bytes()
(folder / "host25.pcapng.gz").write_bytes(gzip.compress(packets, mtime=0))
shutil.rmtree(result.path)

# %% [markdown]
# Read back: neither file says how fast the port is.

# %%
columns = "time=ts_ns:ns,port=ifname,queue=qlen_cells:cells(208B),frame=pkt_len,flow=five_tuple,marked=ecn_ce,dropped=tail_drop"
analysis = fanin.analyze(folder / "switch7.csv", columns=columns, rate="10Gbps", above="50KB")
burst = analysis.bursts.sort("peak_bytes").tail(1).row(0, named=True)
print(f"{report.height} packets, largest queue {burst['peak_bytes'] / 1000:.1f} KB, {burst['dropped_packets']} dropped")
with pl.Config(tbl_cols=-1, tbl_width_chars=120):
    print(analysis.phases.filter(pl.col("burst") == burst["burst"]))
    print(analysis.culprits.filter(pl.col("burst") == burst["burst"], pl.col("kind") == "direct").head(5))
stamped = fanin.analyze(folder / "host25.pcapng.gz", rate="10Gbps")
print(stamped.ports)
