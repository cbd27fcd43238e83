"""HPCC, testbed micro-benchmarks: how fast flows make room, and take it again."""

from __future__ import annotations

from typing import Any, Final

import polars as pl

from fanin.reproduce._context import Context
from fanin.reproduce._in_band import CONTROLS, jobs, measure, plots, table
from fanin.reproduce._registry import figure
from fanin.reproduce._rows import Findings, Row

RATE: Final = 25e9
JOIN_US: Final = 1_000
RTT_US: Final = 9
"""T of the paper's testbed."""
BDP_KB: Final = RATE / 8 * RTT_US * 1e-6 / 1e3

STAGES: Final = "up to maxStage = 5 round trips of additive increase come before the multiplicative one (Algorithm 1)"

CHOSEN: Final[dict[str, dict[str, Any]]] = {
    "HPCC": {"transport.congestion_control": {"kind": "hpcc", "base_rtt": f"{RTT_US}us"}},
    "DCQCN": CONTROLS["DCQCN"],
}


def runs(context: Context, scenario: str) -> tuple[dict[str, Any], dict[str, pl.DataFrame]]:
    """Return what was measured with each control, and the port's throughput and queue."""
    listed = jobs(context, scenario, CHOSEN)
    found = {job.key["control"]: one for job, one in zip(listed, context.runs(listed, measure), strict=True)}
    return found, {name: table(one, RATE, bin_us=RTT_US) for name, one in found.items()}


def sender(found: dict[str, Any], host: str) -> pl.DataFrame:
    """Return what a host sends, as a share of the line, in round trips."""
    senders = pl.DataFrame(found["senders"]).filter(pl.col("port").str.starts_with(f"{host}->"))
    return table({"port": senders.to_dict(as_series=False)}, RATE, bin_us=RTT_US)


def last_finish_us(found: dict[str, Any]) -> float:
    """Return when the last of the flows that joined was complete."""
    flows = pl.DataFrame(found["flows"]).filter(pl.col("group") == "joins")
    return float(flows["finish_ps"].max()) / 1e6  # type: ignore[arg-type]


def mean(one: pl.DataFrame, column: str, start: float, end: float) -> float:
    """Return the mean of a column between two times."""
    return float(one.filter(pl.col("us").is_between(start, end))[column].mean() or 0)  # type: ignore[arg-type]


@figure("hpcc/fig9", title="A short flow and an incast join a long flow: throughput and queue", seeds=1, short=1, seconds=15)
def fig9(context: Context) -> Findings:
    """HPCC gives room within a round trip, takes it again at once, and drains an incast's queue for good; DCQCN does neither."""
    short, short_ports = runs(context, "long-short")
    crowd, crowd_ports = runs(context, "incast")
    rows: list[Row] = []
    back: dict[str, tuple[float, float]] = {}
    for name in CHOSEN:
        long = sender(short[name], "h0")
        end = last_finish_us(short[name])
        early, late = ((end + first * RTT_US, end + (first + 10) * RTT_US) for first in (2, 7))
        back[name] = mean(long, "throughput", *early), mean(long, "throughput", *late)
    what, share = "long flow {} RTTs after the short one", "of the line"
    soon, later = what.format("2 to 12"), what.format("7 to 17")
    rows += [
        Row(name=f"HPCC: {soon}", paper="line rate at once", fanin=back["HPCC"][0], low=0.9, unit=share, note=STAGES),
        Row(name=f"HPCC: {later}", paper="line rate", fanin=back["HPCC"][1], low=0.9, unit=share),
        Row(name=f"DCQCN: {later}", paper="takes milliseconds", fanin=back["DCQCN"][1], high=0.9, unit=share),
    ]
    queue = {name: float(one["queue_kb"].max() or 0) for name, one in short_ports.items()}  # type: ignore[arg-type]
    rows.append(
        Row(name="HPCC: queue when the short flow joins", paper="below one BDP", fanin=queue["HPCC"], high=1.1 * BDP_KB, unit="KB")
    )
    blind = 8 * BDP_KB
    drained = JOIN_US + 8 * RTT_US + 5 * RTT_US
    for name, paper, low, high in (("HPCC", "near zero", None, BDP_KB / 4), ("DCQCN", "stays", BDP_KB, None)):
        settled = mean(crowd_ports[name], "queue_kb", drained, drained + 30 * RTT_US)
        what = f"{name}: queue after the incast's first drain, mean"
        rows.append(Row(name=what, paper=paper, fanin=settled, low=low, high=high, unit="KB"))
    peak = float(crowd_ports["HPCC"]["queue_kb"].max() or 0)  # type: ignore[arg-type]
    rows.append(
        Row(
            name="HPCC: largest queue of the incast",
            paper="the blind round trip",
            fanin=peak,
            low=0.6 * blind,
            high=1.1 * blind,
            unit="KB",
        )
    )
    used = mean(crowd_ports["HPCC"], "throughput", drained, last_finish_us(crowd["HPCC"]) - 10 * RTT_US)
    rows.append(Row(name="HPCC: throughput of the incast after that", paper=0.95, fanin=used, low=0.9, high=1, unit="of the line"))
    data = {
        f"{figure}-port": pl.concat([one.with_columns(control=pl.lit(name)) for name, one in tables.items()])
        for figure, tables in (("long-short", short_ports), ("incast", crowd_ports))
    }
    shown = plots("long-short", short_ports, JOIN_US, RATE) | plots("incast", crowd_ports, JOIN_US, RATE)
    return Findings(rows=rows, plots=shown, data=data)
