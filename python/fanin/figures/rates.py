"""Rates of followed flows: at what their rate limiters, or the pacing that a control asks for, let them send."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import plotly.graph_objects as go
import polars as pl

from fanin.explain import find
from fanin.figures import COLORS, framed, largest, plain
from fanin.figures.series import reduce_minmax
from fanin.text import show

if TYPE_CHECKING:
    from fanin.tables.recorded import Recorded

MAX_FLOWS: Final = 16
"""Flows that are drawn unless others are named."""

SHOWN: Final = 8
"""Flows that a message names at most."""

MAX_POINTS: Final = 2000
"""Changes of a rate that are drawn of each flow; of more, the smallest and the largest of each stretch of time."""


def flows_with_rates(result: Recorded) -> list[int]:
    """Return the followed flows whose rate something limits, by number."""
    limited = result.scan("hosts").filter(pl.col("rate_bps").is_not_null())
    return limited.select(pl.col("flow").unique().sort()).collect()["flow"].to_list()


def steps(rows: pl.DataFrame, points: int = MAX_POINTS) -> pl.DataFrame:
    """Return the rows ``time_ps``, ``rate_bps`` at which the rate changes, and the last one; thinned to about `points`.

    Of a stretch of time with more changes than can be drawn the smallest and the largest rate stay, in their order.
    """
    rows = rows.select("time_ps", "rate_bps").sort("time_ps", maintain_order=True)
    changed = rows.filter((pl.col("rate_bps") != pl.col("rate_bps").shift(1)).fill_null(True))
    if changed.height > points:
        changed = reduce_minmax(changed.lazy(), "rate_bps", points // 2).collect()
    return pl.concat([changed, rows.tail(1)])


def _without(asked: Sequence[int | str], limited: Sequence[int]) -> str:
    """Return that flows have no rate, and which have one."""
    named = ", ".join(f"'{flow}'" for flow in asked)
    one = len(asked) == 1
    told = f"flow{'' if one else 's'} {named} {'was' if one else 'were'} not followed, or nothing but windows limits"
    others = ", ".join(map(str, limited[:SHOWN])) + (f" and {len(limited) - SHOWN:,} more" if len(limited) > SHOWN else "")
    return f"{told} {'it: it has no rate' if one else 'them: they have no rate'}" + (f"; accepted: {others}" if limited else "")


def figure(result: Recorded, flows: Sequence[int | str] | None = None) -> go.Figure:
    """Return the rates of followed flows over time; see `fanin.Result.plot_rates`."""
    limited = flows_with_rates(result)
    if flows is None:
        if not limited:
            raise ValueError(
                "this run followed no flow that a rate limits; telemetry.hosts names flows, and RoCEv2 has rate limiters"
            )
        chosen = limited[:MAX_FLOWS]
    else:
        chosen = [int(find(result, flow)["flow"]) for flow in flows]
        unlimited = [flow for flow, number in zip(flows, chosen, strict=True) if number not in limited]
        if unlimited:
            raise ValueError(_without(unlimited, limited))
    found = result.scan("hosts").filter(pl.col("flow").is_in(chosen), pl.col("rate_bps").is_not_null()).collect()
    by_flow = {number: found.filter(pl.col("flow") == number) for number in chosen}
    unit, scale = show.axis_unit(show.TIME_UNITS, largest(found["time_ps"]))
    rate_unit, rate_scale = show.axis_unit(show.RATE_UNITS, largest(found["rate_bps"]))
    names = {row["flow"]: row for row in result.flows.filter(pl.col("flow").is_in(chosen)).iter_rows(named=True)}
    traces = []
    for place, (number, rows) in enumerate(by_flow.items()):
        row = names[number]
        name = plain(f"{row['id'] if row['id'] is not None else number}, {row['src']} to {row['dst']}")
        drawn = steps(rows)
        traces.append(
            go.Scatter(
                x=(drawn["time_ps"] / scale).to_numpy(),
                y=(drawn["rate_bps"] / rate_scale).to_numpy(),
                name=name,
                mode="lines",
                line={"shape": "hv", "width": 1.2, "color": COLORS[place % len(COLORS)]},
                hovertemplate=f"%{{x:.9g}} {unit}: %{{y:.4g}} {rate_unit}<extra>{name}</extra>",
            )
        )
    note = "At what each may send; what is sent is less where windows, pauses or the application hold it."
    if flows is None and len(limited) > MAX_FLOWS:
        note = f"The first {MAX_FLOWS} of {len(limited):,} flows. {note}"
    x, y = {"title": {"text": f"Time [{unit}]"}}, {"title": {"text": f"Rate [{rate_unit}]"}}
    return framed(traces, "Rates of followed flows", x, y, note)
