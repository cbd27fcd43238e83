"""What the figures of S-ECN §III owe to what the paper does not say: how far apart senders start, delays, hosts, windows."""

from __future__ import annotations

from typing import Any, Final

import plotly.graph_objects as go
import polars as pl

from fanin.reproduce._context import Context
from fanin.reproduce._registry import figure
from fanin.reproduce._rows import Findings, Row
from fanin.reproduce._s_ecn import RATE, layout, mean, ramp, ramps_frame, steps, steps_frame, unless_ok, variation
from fanin.reproduce.s_ecn_background import HIDDEN, SAME_HOP
from fanin.reproduce.s_ecn_background import jobs as with_background
from fanin.reproduce.s_ecn_fan_in import HIGH, LOW, MEAN
from fanin.reproduce.s_ecn_fan_in import jobs as without_background

SPREADS: Final = {"0us": 0.0, "5us": 5.0, "20us": 20.0, "50us": 50.0, "100us": 100.0, "200us": 200.0, "500us": 500.0}
"""Within how much time the flows start; in us."""

VARIANTS: Final[dict[str, dict[str, Any]]] = {
    "as in sync.toml": {},
    "no propagation delay": {"topology.host_link.delay": "0us", "topology.root_link.delay": "0us"},
    "twice the propagation delay": {"topology.host_link.delay": "10us", "topology.root_link.delay": "10us"},
    "handshake first": {"transport.handshake": True},
    "NIC in turn instead of first in, first out": {"host.nic": "fair", "transport.small_queues": None},
    "SACK": {"transport.sack": True},
    "rfc profile": {"transport.profile": "rfc", "transport.receive_window": "fixed"},
    "512 KiB": {"switch.buffer.per_port": "512KiB"},
}

OPENED: Final = (
    "SYN/ACKs wait in the watched queue, and early flows reach their 64 KiB window (docs/dev/paper-s-ecn.md#open-points-decided)"
)


@figure("s-ecn/starts", title="What the spread of starts does to figures 4, 6, 8, 9 and 10", seeds=20, short=3, seconds=35)
def starts(context: Context) -> Findings:
    """Phase 2 without background does not depend on it; the end of phase 1, and steps over a standing queue, do."""
    key = [({"spread_us": us}, text) for text, us in SPREADS.items()]
    sync = context.runs([job for k, j in key for job in without_background(context, changes={"traffic[0].jitter": j}, key=k)], ramp)
    one = context.runs([job for k, j in key for job in with_background(context, "one-bg", {"traffic[1].jitter": j}, key=k)], ramp)
    same = context.runs(
        [job for k, j in key for job in with_background(context, "same-hop", {"traffic[2].jitter": j}, key=k)], steps
    )
    prev = context.runs(
        [job for k, j in key for job in with_background(context, "prev-hop", {"traffic[2].jitter": j}, key=k)], ramp
    )
    records = []
    for us in SPREADS.values():
        at = [found for found in sync if found.key["spread_us"] == us]
        records.append(
            {
                "spread_us": us,
                "fig4_phase1_gbps": mean(found.first_phase for found in at),
                "fig4_phase1_end_ms": mean(found.first_end for found in at),
                "fig4_phase2_gbps": mean(found.second_phase for found in at),
                "fig4_phase2_variation": variation(found.second_phase for found in at),
                "fig8_phase2_gbps": mean(found.second_phase for found in one if found.key["spread_us"] == us),
                "fig9_phase2_gbps": mean(found.slope(2) for found in same if found.key["spread_us"] == us),
                "fig9_phase3_gbps": mean(found.slope(3) for found in same if found.key["spread_us"] == us),
                "fig10_phase2_gbps": mean(found.second_phase for found in prev if found.key["spread_us"] == us),
            }
        )
    table = pl.DataFrame(records)
    rows = []
    for name, column, paper, low, high in (
        ("18 flows, phase 2", "fig4_phase2_gbps", MEAN, LOW, HIGH),
        ("hidden buffer of 512 KB, phase 2", "fig10_phase2_gbps", HIDDEN[512], RATE, 2 * RATE),
    ):
        values = [record[column] for record in records]
        rows += [
            Row(name=f"{name}, least of all spreads", paper=paper, fanin=min(values), low=low, high=high, unit="Gb/s"),
            Row(name=f"{name}, most of all spreads", paper=paper, fanin=max(values), low=low, high=high, unit="Gb/s"),
        ]
    plot = go.Figure()
    for name, column in (
        ("no background", "fig4_phase2_gbps"),
        ("one background flow", "fig8_phase2_gbps"),
        ("same hop", "fig9_phase2_gbps"),
        ("previous hop", "fig10_phase2_gbps"),
    ):
        plot.add_scatter(x=list(SPREADS), y=table[column].to_list(), mode="lines+markers", name=name)
    plot.add_scatter(x=list(SPREADS), y=[SAME_HOP[3]] * len(SPREADS), mode="lines", name="same hop, paper", line={"dash": "dash"})
    layout(plot, "Spread of starts", "Slope of phase 2 [Gb/s]", "What the spread of starts does to phase 2")
    data = {"means": table, "sync": ramps_frame(sync), "one_bg": ramps_frame(one), "same_hop": steps_frame(same)}
    return Findings(rows=rows, plots={"phase2": plot}, data=data | {"prev_hop": ramps_frame(prev)})


@figure("s-ecn/assumptions", title="What figure 4 owes to delays and hosts", seeds=20, short=3, seconds=9)
def assumptions(context: Context) -> Findings:
    """Phase 2 is the same with all of them."""
    jobs = [
        job for name, changes in VARIANTS.items() for job in without_background(context, changes=changes, key={"variant": name})
    ]
    ramps = context.runs(jobs, ramp)
    rows = []
    records = []
    for name in VARIANTS:
        listed = [found for found in ramps if found.key["variant"] == name]
        second = mean(found.second_phase for found in listed)
        note = OPENED if name == "handshake first" else ""
        rows.append(unless_ok(Row(name=f"{name}: phase 2, mean", paper=MEAN, fanin=second, low=LOW, high=HIGH, unit="Gb/s"), note))
        records.append(
            {
                "variant": name,
                "phase1_gbps": mean(found.first_phase for found in listed),
                "phase1_end_ms": mean(found.first_end for found in listed),
                "phase2_gbps": second,
                "phase2_variation": variation(found.second_phase for found in listed),
                "buffer_full_ms": mean(found.full for found in listed),
            }
        )
    return Findings(rows=rows, data={"means": pl.DataFrame(records), "runs": ramps_frame(ramps)})
