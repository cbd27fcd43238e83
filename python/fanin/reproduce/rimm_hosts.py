"""RIMM's completion times by the hosts: every setting of them that was tried, not the one that fits the paper."""

from __future__ import annotations

from typing import Any, Final

import plotly.graph_objects as go
import polars as pl

from fanin.reproduce._context import Context
from fanin.reproduce._jobs import Job, frame
from fanin.reproduce._registry import figure
from fanin.reproduce._rows import Findings, Row
from fanin.reproduce.rimm import BASIC, FULL, MECHANISMS, PER_FLOW, event, layout
from fanin.results import Result

CHOSEN: Final = (BASIC, FULL, PER_FLOW)
SLOW_STARTS: Final[dict[str, str | None]] = {"no HyStart": "standard", "HyStart": None}
"""None: as the profile has it."""
NICS: Final = ("fair", "fifo")
DELAYS: Final = {"50 ns": "50ns", "5 us": "5us"}
"""One way, of the hosts' links."""
WINDOWS: Final[dict[str, str | None]] = {
    "930 KB both": "930KB",
    "Linux both": None,
    "1.3 MB": "1.3MB",
    "1.7 MB": "1.7MB",
    "2.1 MB": "2.1MB",
}
"""Receive windows: of both flows, or of the background while that of the burst is as Linux tunes it."""
LINUX: Final[dict[str, Any]] = {"kind": "tcp", "profile": "linux", "congestion_control": "cubic"}
PAPER: Final = 290.07 / 423.05
"""Burst's mean completion with RIMM over that without."""
NEAR: Final = 0.1
"""What counts as the paper's ratio: the standard error of its 20 events is not known."""


def hosts(slow_start: str, nic: str, delay: str, window: str) -> dict[str, Any]:
    """Return the changes that make these hosts. A table is merged into the one that is there, so what goes is named."""
    size = WINDOWS[window]
    bound = {"kind": "fixed", "size": size} if size else None
    own = {"slow_start": SLOW_STARTS[slow_start], "receive_window": bound}
    background = {key: value for key, value in (LINUX | own).items() if value is not None}
    burst = own if window.endswith("both") else own | {"receive_window": None}
    return {
        **{f"transport.{key}": value for key, value in burst.items()},
        "transports": {"bg": background},
        "traffic[0].transport": "bg",
        "host": {"nic": nic},
        "topology.host_link.delay": DELAYS[delay],
    }


def completion(result: Result, job: Job) -> dict[str, Any]:
    """Reduce an event: both flows' completion, losses, copies, timeouts, the largest queue."""
    summary = result.summary
    counted = summary["mechanisms"].get("rimm") or {}
    found: dict[str, Any] = {"lost": summary["drops"], "timeouts": summary["timeouts"]}
    for flow in result.flows.iter_rows(named=True):
        found[f"{flow['group']}_fct_ms"] = (flow["finish_ps"] - flow["start_ps"]) / 1e9
        found[f"{flow['group']}_retransmits"] = flow["retransmits"]
    return found | {key: counted.get(key, 0) for key in ("detoured", "given_up", "outlived")}


@figure(
    "rimm/fig7-hosts",
    title="Beyond the paper: completion by hosts, with HyStart, NICs that are one queue, and windows",
    seeds=3,
    short=1,
    seconds=300,
)
def fig7_hosts(context: Context) -> Findings:
    """Which hosts give which ratio of RIMM's completion times to forwarding's."""
    scenario = context.scenario("event").replace({"telemetry": {"sample": "off"}})
    cases = [
        (slow_start, nic, delay, window)
        for slow_start in (["HyStart"] if context.short else SLOW_STARTS)
        for nic in NICS
        for delay in (["5 us"] if context.short else DELAYS)
        for window in (["930 KB both", "1.7 MB"] if context.short else WINDOWS)
    ]
    listed = []
    for case in cases:
        for variant in CHOSEN:
            for seed in context.seeds:
                made = scenario.replace(event(seed)).replace(hosts(*case) | MECHANISMS[variant])
                listed.append(Job(made, seed, dict(zip(BY, case, strict=True)) | {"variant": variant}))
    table = frame(listed, context.runs(listed, completion))
    values = [name for name in table.columns if name not in (*BY, "variant", "seed")]
    means = table.group_by([*BY, "variant"], maintain_order=True).agg(pl.len().alias("events"), *(pl.col(v).mean() for v in values))
    plain = means.filter(pl.col("variant") == BASIC)
    ratios = means.filter(pl.col("variant") != BASIC).join(plain, on=BY, suffix="_basic", maintain_order="left")
    ratios = ratios.with_columns(
        (pl.col(f"{flow}_fct_ms") / pl.col(f"{flow}_fct_ms_basic")).alias(f"{flow}_ratio") for flow in ("burst", "background")
    )
    rows, plots = [], {}
    for variant in CHOSEN[1:]:
        mine = ratios.filter(pl.col("variant") == variant)
        burst = mine["burst_ratio"].to_list()
        near = sum(abs(ratio - PAPER) <= NEAR for ratio in burst) / len(burst)
        rows += [
            Row(
                name=f"{variant}: settings near the paper's ratio, share",
                paper="one",
                fanin=near,
                low=1 / len(burst),
                high=1,
                note=MAP,
            ),
            Row(
                name=f"{variant}: burst's least ratio", paper=PAPER, fanin=min(burst), low=PAPER - NEAR, high=PAPER + NEAR, note=MAP
            ),
            Row(
                name=f"{variant}: burst's most ratio", paper=PAPER, fanin=max(burst), low=PAPER - NEAR, high=PAPER + NEAR, note=MAP
            ),
            Row(
                name=f"{variant}: background's greatest ratio",
                paper="shorter",
                fanin=float(mine["background_ratio"].max()),  # type: ignore[arg-type]
                high=1.05,
                note="detours that go on beside an idle port are given up, and what was out is sent again",
            ),
        ]
        plots["fig7-hosts" if variant == FULL else "fig7-hosts-per-flow"] = shown(mine)
    return Findings(rows=rows, plots=plots, data={"events": table, "means": means, "ratios": ratios})


BY: Final = ("slow_start", "nic", "delay", "window")
MAP: Final = (
    "hosts decide, and the paper does not say what its were: those with Linux's windows, or with HyStart behind one queue, have "
    "its ratio; all that were tried are in docs/dev/paper-rimm.md#completion-times-by-hosts"
)


def shown(ratios: pl.DataFrame) -> go.Figure:
    """Return the map: a line for each kind of hosts, over the windows."""
    plot = go.Figure()
    for hosts_of, line in ratios.group_by("slow_start", "nic", "delay", maintain_order=True):
        name = ", ".join(str(part) for part in hosts_of)
        plot.add_scatter(x=line["window"].to_list(), y=line["burst_ratio"].to_list(), mode="lines+markers", name=name)
    layout(plot, "Receive windows", "Burst's completion over forwarding's")
    plot.update_xaxes(type="category")
    return plot
