"""Packet drop notification over IPv6: figures 6 and 9 with headers of 40 B and notifications of 44 B."""

from __future__ import annotations

import math
from typing import Final

import plotly.graph_objects as go

from fanin.reproduce import pdn
from fanin.reproduce._context import Context
from fanin.reproduce._jobs import Job
from fanin.reproduce._registry import figure
from fanin.reproduce._rows import Findings, Row

FRAME: Final = pdn.FRAME + 20
WIRE: Final = pdn.WIRE + 20
"""Bytes of a segment of 1000 B in a queue, and of wire time."""
ACK_WIRE: Final = 98
"""Wire bytes of an ACK: 78 B, which need no padding, and preamble and gap."""
DERIVED: Final = (pdn.BUFFER // FRAME + (3 * WIRE + 3 * ACK_WIRE + pdn.RTT * pdn.RATE / 8) / WIRE) / 4
"""Servers whose third round no longer fits, by the formula of docs/dev/paper-pdn.md#where-fan-in-collapses."""
NOTICE: Final = 44
"""Bytes of a notification: 16 + 16 of addresses, 12 of all else."""


def jobs(context: Context, servers: list[int]) -> list[Job]:
    """Return the fan-in over IPv6 with and without notification."""
    base = context.scenario("fan-in").replace({"framing.ip": "v6"})
    made = []
    for n in servers:
        sized = base.replace({"topology.left": n, "traffic[0].receiver": f"h{n}"})
        for variant in ("NewReno", "PDN"):
            made.append(Job(sized.replace(pdn.VARIANTS[variant]), context.seeds[0], {"variant": variant, "servers": n}))
    return made


@figure("pdn/ipv6", title="Beyond the paper: the collapse and PDN over IPv6", seeds=1, short=1, seconds=6)
def ipv6(context: Context) -> Findings:
    """Longer frames collapse with fewer servers, by the same formula; notifications of 44 B prevent it as those of 20 B do."""
    each = range(math.floor(DERIVED) - 5, math.ceil(DERIVED) + 6)
    servers = sorted({2, 40, 100, 150, *each} | (set() if context.short else {*range(5, 151, 5)}))
    runs = context.runs(jobs(context, servers), pdn.measure)
    plain = [run for run in runs if run.variant == "NewReno"]
    notified = [run for run in runs if run.variant == "PDN"]
    before = max((run for run in plain if not run.timeouts), key=lambda run: run.servers)
    rows = [
        # One server, as in the test of the formula: for what one ACK releases.
        Row(
            name=f"NewReno: servers at the first drop; derived: {DERIVED:.1f}",
            paper=None,
            fanin=min(run.servers for run in plain if run.drops),
            low=math.ceil(DERIVED) - 1,
            high=math.ceil(DERIVED) + 1,
        ),
        Row(
            name="NewReno: servers at the collapse",
            paper=None,
            fanin=pdn.collapse(runs, "NewReno"),
            low=pdn.BUFFER / FRAME / 4,
            high=math.ceil(DERIVED) + 1,
        ),
        Row(name="PDN: timeouts, 2 to 150 servers", paper=0, fanin=sum(run.timeouts for run in notified), low=0, high=0),
        Row(
            name="PDN: least goodput from the collapse to 150 servers",
            paper="no collapse",
            fanin=min(run.goodput for run in notified if run.servers > before.servers),
            low=before.goodput * 0.9,
            unit="Mb/s",
        ),
        Row(
            name="largest notification queue",
            paper="one notification",
            fanin=max(run.notice_queue for run in notified),
            low=NOTICE,
            high=NOTICE,
            unit="B",
        ),
    ]
    plot: go.Figure = pdn.curve(runs, "goodput_mbps", "Goodput of the fan-in over IPv6", "Goodput [Mb/s]")
    return Findings(rows=rows, plots={"ipv6": plot}, data={"runs": pdn.frame(runs)})
