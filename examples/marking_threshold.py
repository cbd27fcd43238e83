"""What the marking threshold K costs and saves: the trade between queueing delay and throughput.

Long flows keep one port busy while short requests share it; K varies. Prints goodput, the queue that packets found, and
the completion times of the short flows.
"""

import polars as pl

import fanin

base = fanin.Scenario(
    name="threshold",
    duration="40ms",
    topology={"kind": "single_switch", "hosts": 9, "link": {"rate": "10Gbps", "delay": "10us"}},
    transport={"kind": "tcp", "congestion_control": "dctcp", "handshake": False, "rto_min": "10ms", "delayed_ack_timeout": "1ms"},
    switch={"marking": {"kind": "threshold", "k": "65 packets"}, "buffer": {"kind": "static", "per_port": "1MB"}},
    traffic=[
        {"name": "long", "kind": "incast", "receiver": "h8", "senders": ["h0", "h1", "h2", "h3"], "size": "1GB"},
        {
            "name": "short",
            "kind": "incast",
            "receiver": "h8",
            "senders": ["h4", "h5", "h6", "h7"],
            "size": "20KB",
            "start": "5ms",
            "repetitions": 30,
            "interval": "1ms",
            "jitter": "500us",
        },
    ],
    telemetry={"sample": "100us", "queues": ["*->h8"]},
)

rows = []
for k in (5, 10, 20, 40, 65, 130):
    result = fanin.run(base.replace({"switch.marking.k": f"{k} packets"}), progress=False)
    found = result.queues.filter(pl.col("time_ps") > 5_000_000_000)["queue_packets"].to_numpy()
    short = result.completions.filter(pl.col("group") == "short")["fct_ps"].to_numpy() / 1e6
    rows.append(
        {
            "K": k,
            "goodput_Gbps": result.summary["goodput_bps"] / 1e9,
            "queue_mean": float(found.mean()),
            "queue_max": int(found.max()),
            "short_p50_us": float(pl.Series(short).quantile(0.5) or 0),
            "short_p99_us": float(pl.Series(short).quantile(0.99) or 0),
        }
    )
with pl.Config(float_precision=2):
    print(pl.DataFrame(rows))
