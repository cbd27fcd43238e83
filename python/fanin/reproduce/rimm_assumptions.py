"""What RIMM's result depends on: neighbours, the meaning of the 1 ms, windows of the hosts, the way of a message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import plotly.graph_objects as go
import polars as pl

from fanin.reproduce._context import Context
from fanin.reproduce._registry import figure
from fanin.reproduce._rows import Findings, Row
from fanin.reproduce.rimm import BASIC, RIMM, column, frame, jobs, layout, measure, summarise

ONE: Final[dict[str, Any]] = {"topology.spines": 1}
KEPT: Final[dict[str, Any]] = {f"{RIMM}.neighbour": "per_flow"}
BELOW: Final = "the deviation is explained in docs/papers/rimm.md"


def table_of(context: Context, variants: Mapping[str, Mapping[str, Any]]) -> pl.DataFrame:
    """Return the events of all variants."""
    listed = jobs(context, variants)
    return frame(listed, context.runs(listed, measure))


def outcome(table: pl.DataFrame, variant: str, note: str = "") -> list[Row]:
    """Return the paper's result for a variant: nothing lost, up to three segments sent again."""
    lost, again = max(column(table, variant, "lost")), max(column(table, variant, "retransmits"))
    return [
        Row(name=f"{variant}: lost, most of all events", paper=0, fanin=lost, low=0, high=0, note=note),
        Row(name=f"{variant}: sent again, most of all events", paper="1 to 3", fanin=again, low=0, high=3, note=note),
    ]


def bars(means: pl.DataFrame, value: str, title: str) -> go.Figure:
    """Return a bar for each variant, the first on top."""
    shown = means.reverse()
    plot = go.Figure()
    plot.add_bar(x=shown[value].to_list(), y=shown["variant"].to_list(), orientation="h")
    return layout(plot, title, "")


READINGS: Final[dict[str, dict[str, Any]]] = {
    "an alert of 1 ms, or 1 ms without a release": {},
    "packets out for 1 ms": {f"{RIMM}.give_up_when": "outstanding"},
    "packets out for 5 ms": {f"{RIMM}.give_up_when": "outstanding", f"{RIMM}.give_up": "5ms"},
    "packets out for 20 ms": {f"{RIMM}.give_up_when": "outstanding", f"{RIMM}.give_up": "20ms"},
    "an alert of 100 us, or 100 us without a release": {f"{RIMM}.give_up": "100us"},
    "an alert of 300 us, or 300 us without a release": {f"{RIMM}.give_up": "300us"},
    "an alert of 20 ms, or 20 ms without a release": {f"{RIMM}.give_up": "20ms"},
}
"""What is given up, with one neighbour per flow."""
AT_ONCE: Final = "what is out is released at once while the queue stands at alpha, so that the port overflows and flows are shuffled"


@figure("rimm/give-up", title="Beyond the paper: what the 1 ms is a limit of", seeds=5, short=1, seconds=60)
def give_up(context: Context) -> Findings:
    """A limit of alerts never acts in a burst of 7 ms; one of how long packets are out ends each."""
    table = table_of(context, {name: KEPT | changes for name, changes in READINGS.items()})
    rows = []
    for name in READINGS:
        limited = max(column(table, name, "given_up")) > 0
        rows += outcome(table, name, AT_ONCE if limited else "")
    longest = max(column(table, "an alert of 20 ms, or 20 ms without a release", "longest_detour_ms"))
    rows.append(Row(name="longest detour of any packet", paper="typically 1 ms at most", fanin=longest, high=1, unit="ms"))
    means = summarise(table)
    return Findings(rows=rows, plots={"give-up": bars(means, "retransmits", "Segments sent again, mean")}, data={"events": table, "means": means})


@figure("rimm/neighbours", title="Beyond the paper: how many neighbours, and how often one is chosen", seeds=5, short=1, seconds=60)
def neighbours(context: Context) -> Findings:
    """Choosing for each packet works with one neighbour and fails with two; choosing for each flow works with any number."""
    variants: dict[str, dict[str, Any]] = {}
    for spines in (1, 2, 3, 4):
        for choice in ("per_packet", "per_flow"):
            name = f"{spines} spine{'s' if spines > 1 else ''}, {choice}"
            variants[name] = {"topology.spines": spines, f"{RIMM}.neighbour": choice}
    table = table_of(context, variants).with_columns(
        ((pl.col("released") + pl.col("redetoured")) / pl.col("released")).alias("ways_per_release")
    )
    rows = []
    for name in variants:
        shuffled = "per_packet" in name and not name.startswith("1 ")
        rows += outcome(table, name, "see docs/papers/rimm.md: detours come back shuffled" if shuffled else "")
    means = summarise(table)
    plot = bars(means, "ways_per_release", "Ways to a neighbour for each packet released")
    plot.update_xaxes(type="log")
    return Findings(rows=rows, plots={"neighbours": plot}, data={"events": table, "means": means})


def window(size: str) -> dict[str, Any]:
    """Return a receive window of all hosts."""
    return {"transport.receive_window": {"kind": "fixed", "size": size}}


ASSUMPTIONS: Final[dict[str, dict[str, Any]]] = {
    "as in the figures": {},
    "windows of 900 KB": window("900KB"),
    "windows of 1.1 MB": window("1.1MB"),
    "windows of 1.5 MB": window("1.5MB"),
    "windows of 3 MB": window("3MB"),
    "windows as Linux tunes them": {"transport.receive_window": None},
    "with HyStart": {"transport.slow_start": None},
    "an alert at once": {f"{RIMM}.alert": "at_once"},
    "switches 1 us apart": {"topology.uplink.delay": "1us"},
    "switches 10 us apart": {"topology.uplink.delay": "10us"},
    "switches 50 us apart": {"topology.uplink.delay": "50us"},
    "alpha at half": {f"{RIMM}.alpha": "12000 cells"},
    "alpha at nine tenths": {f"{RIMM}.alpha": "21600 cells"},
    "all flows share a pair": {f"{RIMM}.hash_bits": 0},
    "flowlet, chi 50 us": {f"{RIMM}.release": {"kind": "flowlet", "chi": "50us"}},
    "flowlet, chi 500 us": {f"{RIMM}.release": {"kind": "flowlet", "chi": "500us"}},
    "flowlet, chi 5 ms": {f"{RIMM}.release": {"kind": "flowlet", "chi": "5ms"}},
}
"""One thing changed at a time, with a neighbour per flow."""


@figure("rimm/ablation", title="Beyond the paper: windows, HyStart, the way of a message, alpha, release", seeds=5, short=1, seconds=120)
def ablation(context: Context) -> Findings:
    """What has to hold for the paper's result: room for what the windows allow, and a neighbour that is near."""
    mine = table_of(context, {name: KEPT | changes for name, changes in ASSUMPTIONS.items()})
    # Of RIMM's own parameters basic forwarding has none.
    hosts = {name: changes for name, changes in ASSUMPTIONS.items() if not any(key.startswith(RIMM) for key in changes)}
    plain = table_of(context, {name: {RIMM: None} | changes for name, changes in hosts.items()})
    means = summarise(mine).join(summarise(plain), on="variant", how="left", suffix="_basic", maintain_order="left")
    rows = [row for name in ASSUMPTIONS for row in outcome(mine, name, BELOW)]
    plot = bars(means, "lost", f"Packets lost, mean ({BASIC}: data)")
    return Findings(rows=rows, plots={"ablation": plot}, data={"events": mine, "basic": plain, "means": means})
