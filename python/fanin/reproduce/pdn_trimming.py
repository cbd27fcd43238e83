"""Trimming (NDP's switch, TCP with NACKs) instead of drop notification: the fan-in of PDN's figure 6, and a shared uplink."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import plotly.graph_objects as go
import polars as pl

from fanin.reproduce import pdn
from fanin.reproduce._context import Context
from fanin.reproduce._jobs import Job
from fanin.reproduce._registry import figure
from fanin.reproduce._rows import Findings, Row
from fanin.results import Result

WINDOW: Final[dict[str, Any]] = {"transport.drop_resend": "window"}
NDP: Final[dict[str, Any]] = pdn.PLAIN | {"switch.mechanisms.trimming": {}, "transport.trim_nack": True}
SMALL: Final[dict[str, Any]] = NDP | {"switch.mechanisms.trimming.headers": "12144B"}
"""Room for headers as large as eight full frames of Ethernet; NDP's eight, the default, are of 9000 B."""
VARIANTS: Final[dict[str, dict[str, Any]]] = {
    "NewReno": pdn.PLAIN,
    "PDN": {},
    "PDN, by the window": WINDOW,
    "trimming": NDP,
    "trimming, by the window": NDP | WINDOW,
    "trimming, 12 KB of headers": SMALL,
    "trimming, 12 KB of headers, by the window": SMALL | WINDOW,
}
BUFFERS: Final = {"300 KB": pdn.BUFFER // pdn.FRAME, "8 packets": 8}
"""Packets that a port holds: as PDN has it, and as NDP does."""
HEADERS: Final = {"trimming": 72_000 // 64, "trimming, 12 KB of headers": 12_144 // 64}
"""Headers that a port holds."""
HEADER_WIRE: Final = 84
"""Wire time of a header; in B."""
OUTSTANDING: Final = 5
"""Segments of a server that can be outstanding at most: min(1 + k, 10 - k) for any k acknowledged."""
SERVERS: Final = 150
"""Servers of the fan-in over a shared uplink."""


@dataclass(frozen=True)
class Run:
    """The results of one fan-in."""

    variant: str
    buffer: str
    servers: int
    completion_ms: float | None
    """None where some servers have given up: 15 timeouts in a row."""
    timeouts: int
    copies: int
    """Segments sent again."""
    drops: int
    trimmed: int
    headers_lost: int
    bystander_ms: float | None
    """Completion time of the flow that shares the uplink."""

    @property
    def idle_ms(self) -> float:
        """Part of the completion time that neither data nor headers explain on the link between the racks."""
        if self.completion_ms is None:
            return float("inf")
        link = (self.servers * pdn.SRU / 1000 * pdn.WIRE + self.trimmed * HEADER_WIRE) * 8 / pdn.RATE
        return self.completion_ms - link * 1e3


def measure(result: Result, job: Job) -> Run:
    """Reduce a fan-in: from its start to the last byte of the last server."""
    summary = result.summary
    trimming = summary["mechanisms"].get("trimming", {})
    flows = result.flows.with_columns((pl.col("finish_ps") / 1e9).alias("finish"), (pl.col("start_ps") / 1e9).alias("start"))
    fan_in = flows.filter(pl.col("group") != "bystander")
    other = flows.filter(pl.col("group") == "bystander")
    complete = len(fan_in) > 0 and fan_in["finish"].null_count() == 0
    late = float(fan_in["finish"].max() - fan_in["start"].min()) if complete else None  # type: ignore[operator,arg-type]
    return Run(
        variant=str(job.key["variant"]),
        buffer=str(job.key["buffer"]),
        servers=int(job.key["servers"]),
        completion_ms=late,
        timeouts=summary["timeouts"],
        copies=summary["retransmits"],
        drops=summary["drops"],
        trimmed=trimming.get("trimmed", 0),
        headers_lost=trimming.get("headers_lost", 0),
        bystander_ms=float(other["finish"][0] - other["start"][0]) if len(other) else None,
    )


def grid(context: Context) -> list[Job]:
    """Return the fan-in with each variant, buffer and number of servers."""
    base = context.scenario("fan-in")
    made = []
    for servers in (50, 100, 150, 300) if context.short else (50, 72, 85, 100, 125, 150, 200, 250, 300):
        for buffer, packets in BUFFERS.items():
            sized = base.replace(
                {
                    "topology.left": servers,
                    "traffic[0].receiver": f"h{servers}",
                    "switch.buffer": {"kind": "static", "per_port": f"{packets} packets"},
                }
            )
            key = {"buffer": buffer, "servers": servers}
            made += [Job(sized.replace(change), context.seeds[0], key | {"variant": name}) for name, change in VARIANTS.items()]
    return made


def shared(context: Context) -> list[Job]:
    """Return the fan-in that loses packets behind an uplink of twice its rate, which another flow shares; and that flow alone."""
    base = context.scenario("fan-in")
    fan_in = base.to_dict()["traffic"][0] | {
        "receiver": f"h{SERVERS + 1}",
        "senders": [f"h{i}" for i in range(SERVERS)],
        "start": "10ms",
    }
    flow = {"src": f"h{SERVERS}", "dst": f"h{SERVERS + 2}", "size": "5MB"}
    bystander = {"kind": "flows", "name": "bystander", "flows": [flow]}
    wider = {"topology.left": SERVERS + 1, "topology.right": 2, "topology.bottleneck.rate": "2Gbps"}
    key = {"buffer": "300 KB", "servers": SERVERS}
    alone = base.replace(wider | pdn.PLAIN | {"traffic": [bystander]})
    both = base.replace(wider | {"traffic": [fan_in, bystander]})
    return [
        Job(alone, context.seeds[0], key | {"variant": "alone"}),
        *(
            Job(both.replace(change), context.seeds[0], key | {"variant": name})
            for name, change in VARIANTS.items()
            if "12 KB" not in name
        ),
    ]


def plot(runs: Sequence[Run], buffer: str, value: str, title: str, unit: str) -> go.Figure:
    """Return a plot over the number of servers with one buffer, a line for each variant."""
    drawn = go.Figure()
    for variant in VARIANTS:
        line = [run for run in runs if run.variant == variant and run.buffer == buffer]
        points = [getattr(run, value) for run in line]
        drawn.add_scatter(x=[run.servers for run in line], y=points, mode="lines+markers", name=variant)
    drawn.update_layout(title=f"{title}, {buffer}", xaxis_title="Servers", yaxis_title=unit, template="simple_white")
    drawn.update_yaxes(type="log")
    return drawn


def neighbour(runs: Sequence[Run]) -> list[Row]:
    """Return the rows of the flow that shares the uplink."""
    alone, *others = runs
    if alone.bystander_ms is None:
        raise ValueError("the flow beside the fan-in has no row")
    rows = []
    for run in others:
        if run.bystander_ms is not None and run.completion_ms is not None:
            rows.append(
                Row(
                    name=f"shared uplink, {run.variant}: the flow beside the fan-in",
                    paper=None,
                    fanin=run.bystander_ms,
                    # At best as alone; at worst the uplink is not its for as long as the fan-in lasts.
                    low=alone.bystander_ms,
                    high=alone.bystander_ms + run.completion_ms,
                    unit="ms",
                )
            )
    return rows


@figure("pdn/trimming", title="Beyond the paper: trimming instead of notification", seeds=1, short=1, seconds=10)
def trimming(context: Context) -> Findings:
    """Neither times out while its news gets through; headers cost the link that is full, copies those before it."""
    runs = context.runs(grid(context), measure)
    rows = []
    for variant in ("PDN", "PDN, by the window"):
        # What is notified is retransmitted; nothing is left for a timer.
        late = sum(run.timeouts for run in runs if run.variant == variant)
        rows.append(Row(name=f"{variant}: timeouts, all runs", paper=0, fanin=late, low=0, high=0))
    for room, headers in HEADERS.items():
        for buffer, packets in BUFFERS.items():
            # As long as all that can be outstanding fits as data or as headers, no header is lost, and nothing times out.
            fits = (packets + headers) / OUTSTANDING
            for variant in (room, f"{room}, by the window"):
                mine = [run for run in runs if run.variant == variant and run.buffer == buffer]
                within = [run for run in mine if run.servers <= fits]
                if not within:
                    continue
                name = f"{variant}, {buffer}, up to {fits:.0f} servers"
                late = sum(run.timeouts + run.headers_lost for run in within)
                rows.append(Row(name=f"{name}: timeouts and headers lost", paper=0, fanin=late, low=0, high=0))
                # The bound is PDN's: 3 ms above its best case (fig. 8).
                most = max(run.idle_ms for run in within)
                rows.append(
                    Row(name=f"{name}: completion beyond data and headers, most", paper=3, fanin=most, low=0, high=3, unit="ms")
                )
    beside = context.runs(shared(context), measure)
    plots = {}
    for buffer in BUFFERS:
        name = buffer.replace(" ", "-").lower()
        plots[f"completion-{name}"] = plot(runs, buffer, "completion_ms", "Task completion time", "Completion [ms]")
        plots[f"copies-{name}"] = plot(runs, buffer, "copies", "Segments sent again", "Copies")
    data = {"runs": pl.DataFrame([asdict(run) for run in runs]), "shared": pl.DataFrame([asdict(run) for run in beside])}
    return Findings(rows=[*rows, *neighbour(beside)], plots=plots, data=data)
