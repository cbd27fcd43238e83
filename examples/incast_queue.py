"""How deep an incast fills the queue, by number of senders: with and without ECN.

Runs one small simulation per point, prints the table and writes ``incast_queue.pdf``, the queue of the largest incast,
packet by packet.
"""

import polars as pl

import fanin
from fanin import types

base = fanin.Scenario(
    name="incast",
    topology=types.SingleSwitch(hosts=65, link=types.LinkParams(rate="10Gbps", delay="1us")),
    transport=types.Tcp(congestion_control="dctcp", handshake=False, rto_min="10ms", delayed_ack_timeout="1ms"),
    switch=types.Switch(marking=types.ThresholdParams(k="65 packets"), buffer=types.StaticBuffer(per_port="512KB")),
    traffic=[types.Incast(receiver="h64", size="100KB")],
    telemetry=types.Telemetry(sample="off", queues=["*->h64"]),
)

rows = []
for senders in (4, 8, 16, 32, 64):
    for congestion in ("dctcp", "cubic"):
        marking = base.to_dict()["switch"]["marking"] if congestion == "dctcp" else "none"
        scenario = base.replace(
            {"traffic[0].count": senders, "transport.congestion_control": congestion, "switch.marking": marking}
        )
        result = fanin.run(scenario, progress=False)
        rows.append(
            {
                "senders": senders,
                "congestion": congestion,
                "largest_queue_KB": result.summary["largest_queue"]["bytes"] / 1000,
                "drops": result.summary["drops"],
                "timeouts": result.summary["timeouts"],
                "last_ms": float(result.flows["finish_ps"].to_numpy().max()) / 1e9,
            }
        )
        if (senders, congestion) == (64, "dctcp"):
            result.save_pdf("incast_queue.pdf", "queue")

with pl.Config(tbl_rows=-1, float_precision=2):
    print(pl.DataFrame(rows))
