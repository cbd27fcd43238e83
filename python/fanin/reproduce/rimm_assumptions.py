"""What RIMM's result depends on: neighbours, the meaning of the 1 ms, windows of the hosts, the way of a message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import plotly.graph_objects as go
import polars as pl

from fanin.reproduce._context import Context
from fanin.reproduce._jobs import frame
from fanin.reproduce._registry import figure
from fanin.reproduce._rows import Findings, Row
from fanin.reproduce.rimm import RIMM, SHUFFLED, column, jobs, layout, measure, summarise

ECMP: Final[dict[str, Any]] = {"switch.routing": "ecmp"}
LONG: Final = "an alert of 20 ms, or 20 ms without a release"
KEPT: Final[dict[str, Any]] = {f"{RIMM}.neighbour": "per_flow"}


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


def marks(means: pl.DataFrame, value: str, title: str) -> go.Figure:
    """Return a plot with a mark for each variant, the first on top."""
    shown = means.reverse()
    plot = go.Figure()
    plot.add_scatter(x=shown[value].to_list(), y=shown["variant"].to_list(), mode="markers", showlegend=False)
    return layout(plot, title, "")


READINGS: Final[dict[str, dict[str, Any]]] = {
    "an alert of 1 ms, or 1 ms without a release": {},
    "packets out for 1 ms": {f"{RIMM}.give_up_when": "outstanding"},
    "packets out for 5 ms": {f"{RIMM}.give_up_when": "outstanding", f"{RIMM}.give_up": "5ms"},
    "packets out for 20 ms": {f"{RIMM}.give_up_when": "outstanding", f"{RIMM}.give_up": "20ms"},
    "an alert of 100 us, or 100 us without a release": {f"{RIMM}.give_up": "100us"},
    "an alert of 300 us, or 300 us without a release": {f"{RIMM}.give_up": "300us"},
    LONG: {f"{RIMM}.give_up": "20ms", f"{RIMM}.longest": "40ms"},
}
"""Assumptions given up, one at a time."""
AT_ONCE: Final = (
    "what is out is released at once while the queue stands at alpha, so that the port overflows and flows are shuffled"
)


@figure("rimm/give-up", title="Beyond the paper: what the 1 ms is a limit of", seeds=5, short=1, seconds=25)
def give_up(context: Context) -> Findings:
    """A limit of alerts never acts in a burst of 8 ms; one of how long packets are out ends each."""
    table = table_of(context, READINGS)
    rows = []
    for name in READINGS:
        limited = max(column(table, name, "given_up")) > 0
        rows += outcome(table, name, AT_ONCE if limited else "")
    longest = max(column(table, LONG, "longest_detour_ms"))
    rows.append(Row(name="longest detour of any packet", paper="typically 1 ms at most", fanin=longest, high=1, unit="ms"))
    means = summarise(table)
    plot = marks(means, "retransmits", "Sent again, mean")
    return Findings(rows=rows, plots={"give-up": plot}, data={"events": table, "means": means})


TABLES: Final[dict[str, dict[str, Any]]] = {"tables": {}, "ECMP": ECMP}
"""Paths: by destination, so that both flows come by one spine, or by flow."""


@figure(
    "rimm/neighbours",
    title="Beyond the paper: how many neighbours, which paths, how often one is chosen",
    seeds=5,
    short=1,
    seconds=50,
)
def neighbours(context: Context) -> Findings:
    """Choosing for each packet needs a neighbour that stays the best one; choosing for each flow does not."""
    spines = (1, 2) if context.short else (1, 2, 3, 4)
    variants = {
        f"{n} spine{'s' if n > 1 else ''}, {paths}, {choice}": {"topology.spines": n, f"{RIMM}.neighbour": choice} | changes
        for n in spines
        for paths, changes in TABLES.items()
        for choice in ("per_packet", "per_flow")
    }
    table = table_of(context, variants).with_columns(
        ((pl.col("released") + pl.col("redetoured")) / pl.col("released")).alias("ways_per_release")
    )
    mixed = [name for name in variants if "ECMP, per_packet" in name and not name.startswith("1 ")]
    rows = [row for name in variants for row in outcome(table, name, SHUFFLED if name in mixed else "")]
    means = summarise(table)
    plot = marks(means, "ways_per_release", "Ways for each release")
    plot.update_xaxes(type="log")
    return Findings(rows=rows, plots={"neighbours": plot}, data={"events": table, "means": means})


def window(size: str) -> dict[str, Any]:
    """Return a receive window of all hosts."""
    return {"transport.receive_window": {"kind": "fixed", "size": size}}


ASSUMPTIONS: Final[dict[str, dict[str, Any]]] = {
    "as in the figures": {},
    "a neighbour per flow": KEPT,
    "paths by ECMP": ECMP,
    "paths by ECMP, a neighbour per flow": ECMP | KEPT,
    "windows of 900 KB": window("900KB"),
    "windows of 1.1 MB": window("1.1MB"),
    "windows of 1.5 MB": window("1.5MB"),
    "windows of 3 MB": window("3MB"),
    "windows of 3 MB, neighbours up to 1.2 MB": window("3MB") | {f"{RIMM}.room": "1.2MB"},
    "windows as Linux tunes them": {"transport.receive_window": None},
    "with HyStart": {"transport.slow_start": None},
    "an alert at once": {f"{RIMM}.alert": "at_once"},
    "switches 1 us apart": {"topology.uplink.delay": "1us"},
    "switches 10 us apart": {"topology.uplink.delay": "10us"},
    "switches 50 us apart": {"topology.uplink.delay": "50us"},
    "alpha at half": {f"{RIMM}.alpha": "12000 cells"},
    "alpha at nine tenths": {f"{RIMM}.alpha": "21600 cells"},
    "alpha at 98 %": {f"{RIMM}.alpha": "23500 cells"},
    "alpha at 98 %, switches 10 us apart": {f"{RIMM}.alpha": "23500 cells", "topology.uplink.delay": "10us"},
    "all flows share a pair": {f"{RIMM}.hash_bits": 0},
    "flowlet, chi 50 us": {f"{RIMM}.release": {"kind": "flowlet", "chi": "50us"}},
    "flowlet, chi 500 us": {f"{RIMM}.release": {"kind": "flowlet", "chi": "500us"}},
    "flowlet, chi 5 ms": {f"{RIMM}.release": {"kind": "flowlet", "chi": "5ms"}},
}
"""One thing changed at a time."""
ROOM: Final = (
    "what waits is more than the best neighbour's queue holds, or than keeps it the best one: detours are lost or shuffled"
)
ENDS: Final = {
    "paths by ECMP": SHUFFLED,
    "windows of 1.5 MB": ROOM,
    "windows of 3 MB": ROOM,
    "windows of 3 MB, neighbours up to 1.2 MB": ROOM,
    "switches 10 us apart": ROOM,
    "alpha at half": ROOM,
    "an alert at once": "the alert toggles with each packet, and detours last for longer",
}
"""Assumptions without which the paper's result does not come out."""
SHORT: Final = (
    "as in the figures",
    "paths by ECMP, a neighbour per flow",
    "windows of 3 MB",
    "all flows share a pair",
    "flowlet, chi 5 ms",
)


@figure(
    "rimm/ablation", title="Beyond the paper: windows, HyStart, the way of a message, alpha, release", seeds=5, short=1, seconds=100
)
def ablation(context: Context) -> Findings:
    """What has to hold for the paper's result: room for what the windows allow, and a neighbour that is near."""
    tried = {name: ASSUMPTIONS[name] for name in (SHORT if context.short else ASSUMPTIONS)}
    mine = table_of(context, tried)
    # Of RIMM's own parameters basic forwarding has none.
    hosts = {name: changes for name, changes in tried.items() if not any(key.startswith(RIMM) for key in changes)}
    plain = table_of(context, {name: {RIMM: None} | changes for name, changes in hosts.items()})
    means = summarise(mine).join(summarise(plain), on="variant", how="left", suffix="_basic", maintain_order="left")
    rows = [row for name in tried for row in outcome(mine, name, ENDS.get(name, ""))]
    plot = marks(means, "lost", "Lost, mean")
    return Findings(rows=rows, plots={"ablation": plot}, data={"events": mine, "basic": plain, "means": means})
