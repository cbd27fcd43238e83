"""Regions: what a mechanism makes of ports of switches (states.parquet), on the topology and over time.

A port is in a state from one row of the table to its next; ``none`` is no state. A switch is in the state of that of its ports
which comes first in `ORDER`; states that are not in it come after those that are, by name.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import plotly.graph_objects as go
import polars as pl

from fanin.figures import COLORS, framed, plain
from fanin.text import show

if TYPE_CHECKING:
    from fanin.tables.recorded import Recorded

__all__ = ["HEAD", "ORDER", "Layout", "lines", "mechanisms", "on_topology", "rows", "snapshots", "spans"]

NONE: Final = "none"
ORDER: Final = ("root", "inner", "edge")
"""States of which the first comes first where a switch's ports differ."""
PAINT: Final = {"root": "#c23b22", "inner": "#d9730d", "edge": "#1f6feb"}

HEAD: Final = ["Switch", "State", "In it", "Of the run", "From", "Until", "Ports", "Largest degree"]
"""Head of `rows`."""

_MAX_LINES: Final = 20
"""Most names that a chart of the page has room for."""
_STEPS: Final = 24
"""Instants that the slider stops at."""


def mechanisms(result: Recorded) -> list[str]:
    """Return the mechanisms of a run that recorded states of ports, by key."""
    found = result.scan("states").filter(pl.col("state") != NONE).select(pl.col("mechanism").unique().sort()).collect()
    return [str(name) for name in found["mechanism"]]


def spans(result: Recorded, mechanism: str) -> pl.DataFrame:
    """Return how long ports were in states: ``switch``, ``port``, ``about``, ``state``, ``degree``, ``start_ps``, ``end_ps``.

    Rows of the same time: the last one holds. What lasts as the run ends has its end.
    """
    end = int(result.manifest.get("sim_ps") or 0)
    key = ["port", "about"]
    changes = result.scan("states").filter(pl.col("mechanism") == mechanism).with_row_index("row")
    last = changes.sort("time_ps", "row").unique([*key, "time_ps"], keep="last", maintain_order=True)
    until = pl.col("time_ps").shift(-1).over(key).fill_null(pl.lit(end, dtype=pl.UInt64))
    made = last.with_columns(end_ps=until).filter((pl.col("state") != NONE) & (pl.col("end_ps") > pl.col("time_ps")))
    switch = pl.col("port").str.split_exact("->", 1).struct.field("field_0").alias("switch")
    return made.select(switch, *key, "state", "degree", pl.col("time_ps").alias("start_ps"), "end_ps").collect()


def _rank(state: str) -> tuple[int, str]:
    return (ORDER.index(state) if state in ORDER else len(ORDER), state)


def _states(found: pl.DataFrame) -> list[str]:
    """Return the states that occur, in order."""
    return sorted(found["state"].unique().to_list(), key=_rank)


def _by_switch(found: pl.DataFrame) -> dict[str, str]:
    """Return the state of each switch that is in one."""
    state: dict[str, str] = {}
    for switch, one in found.select("switch", "state").iter_rows():
        state[switch] = min(state.get(switch, one), one, key=_rank)
    return state


def snapshots(found: pl.DataFrame, steps: int = _STEPS) -> list[tuple[int, dict[str, str], list[str]]]:
    """Return instants, evenly from the first state to the last, with the state of each switch then, and the ports in one."""
    if not found.height:
        return []
    start, end = int(found["start_ps"].min() or 0), int(found["end_ps"].max() or 0)  # type: ignore[arg-type]
    times = [start + (end - start) * (2 * i + 1) // (2 * steps) for i in range(steps)]
    made = []
    for time in times:
        there = found.filter((pl.col("start_ps") <= time) & (pl.col("end_ps") > time))
        made.append((time, _by_switch(there), sorted(set(there["port"].to_list()))))
    return made


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name) if part]


class Layout:
    """Places of switches in a drawing: tiers from below, by their distance from hosts.

    Parameters
    ----------
    ports : iterable of str
        Ports of switches and hosts, as they are called in results.
    hosts : iterable of str
        Hosts that are known to be some; so is every node with one link that is not one of `switches`.
    switches : iterable of str
        Switches that are known to be some.

    Attributes
    ----------
    at : mapping
        Switch → place, from 0 to 1 in both directions.
    links : list of (str, str)
        Pairs of switches that are joined.
    """

    def __init__(self, ports: Iterable[str], hosts: Iterable[str], switches: Iterable[str] = ()) -> None:
        near: dict[str, set[str]] = defaultdict(set)
        for port in ports:
            a, _, b = port.partition("->")
            b = b.partition("#")[0]
            near[a].add(b)
            near[b].add(a)
        ends = ({node for node, others in near.items() if len(others) == 1} | set(hosts)) - set(switches)
        tier = dict.fromkeys(sorted(ends & near.keys()), 0)
        queue = deque(tier)
        while queue:
            node = queue.popleft()
            for other in sorted(near[node]):
                if other not in tier:
                    tier[other] = tier[node] + 1
                    queue.append(other)
        ordered = sorted((node for node in near if node not in ends), key=_natural)
        rows: dict[int, list[str]] = defaultdict(list)
        for node in ordered:
            rows[tier.get(node, 1)].append(node)
        self.at: dict[str, tuple[float, float]] = {}
        for place, number in enumerate(sorted(rows)):
            height = (place + 0.5) / len(rows)
            self.at |= {node: ((i + 0.5) / len(rows[number]), height) for i, node in enumerate(rows[number])}
        self.links = sorted({(min(a, b), max(a, b)) for a in ordered for b in near[a] if b in self.at})

    def joined(self, ports: Iterable[str]) -> list[tuple[str, str]]:
        """Return the pairs of switches that ports join."""
        pairs = ((a, b.partition("#")[0]) for a, _, b in (port.partition("->") for port in ports))
        return sorted({(min(pair), max(pair)) for pair in pairs if pair[0] in self.at and pair[1] in self.at})

    def drawn(self, pairs: Iterable[tuple[str, str]]) -> dict[str, list[float | None]]:
        """Return lines between pairs of switches as a trace's data."""
        ends = [(self.at[a], self.at[b]) for a, b in pairs]
        return {key: [part for a, b in ends for part in (a[i], b[i], None)] for i, key in enumerate(("x", "y"))}


def layout_of(result: Recorded, found: pl.DataFrame) -> Layout:
    """Return where the switches of a run are drawn: all of them where ports were sampled, else those next to states."""
    known = set(found["port"].to_list())
    if (result.path / "ports.parquet").is_file():
        known |= set(result.scan("ports", as_written=True).select(pl.col("port").unique()).collect(engine="streaming")["port"])
    ends = result.scan("flows").select(pl.concat([pl.col("src"), pl.col("dst")]).unique()).collect().to_series()
    return Layout(known, ends.to_list(), found["switch"].to_list())


def on_topology(result: Recorded, mechanism: str) -> go.Figure:
    """Return the switches by tier, those in a state in its colour, with a slider over time."""
    found = spans(result, mechanism)
    places = layout_of(result, found)
    shots = snapshots(found)
    states = _states(found)
    unit, scale = show.axis_unit(show.TIME_UNITS, float(shots[-1][0]) if shots else 1.0)
    grey, dark = {"color": "rgba(128,128,128,0.15)", "width": 1}, {"color": "rgba(128,128,128,0.9)", "width": 2.5}
    traces = [go.Scatter(**places.drawn(places.links), mode="lines", line=grey, hoverinfo="skip", showlegend=False)]
    quiet = {"color": "rgba(128,128,128,0.55)", "size": 5, "symbol": "square"}
    named = _named(places, places.at)
    traces.append(go.Scatter(**named, mode="markers", marker=quiet, hovertemplate="%{text}<extra></extra>", showlegend=False))
    largest = max(range(len(shots)), key=lambda i: len(shots[i][1]), default=0)
    between = places.drawn(places.joined(shots[largest][2]) if shots else [])
    traces.append(go.Scatter(**between, mode="lines", line=dark, hoverinfo="skip", name="links of its ports", showlegend=True))
    for i, state in enumerate(states):
        marker = {"color": PAINT.get(state, COLORS[i % len(COLORS)]), "size": 12, "symbol": "square"}
        shown = _marks(shots[largest][1] if shots else {}, state, places)
        hover = f"%{{text}}<extra>{plain(state)}</extra>"
        traces.append(go.Scatter(**shown, mode="markers", marker=marker, name=plain(state), hovertemplate=hover, showlegend=True))
    steps = [_step(shot, states, places, (unit, scale)) for shot in shots]
    note = "Switches by tier, hosts below; a switch is in the foremost state of its ports. The slider goes through time."
    if not (result.path / "ports.parquet").is_file():
        note += " Ports were not sampled, so that only switches next to the region are known."
    axis = {"visible": False, "range": [0, 1], "fixedrange": True}
    plot = framed(traces, f"Where {plain(mechanism)} is at work", dict(axis), {**axis, "rangemode": "normal"}, note)
    slider = {"active": largest, "steps": steps, "currentvalue": {"prefix": "At "}, "pad": {"t": 12}, "x": 0, "len": 1}
    plot.update_layout(sliders=[slider], showlegend=True)
    return plot


def _marks(state_of: Mapping[str, str], state: str, places: Layout) -> dict[str, list[Any]]:
    """Return the switches in a state as a trace's data.

    Where there is none it has a point without a place: without any the legend would lack the state.
    """
    names = [name for name in places.at if state_of.get(name) == state]
    return _named(places, names) if names else {"x": [None], "y": [None], "text": []}


def _named(places: Layout, names: Iterable[str]) -> dict[str, list[Any]]:
    """Return switches with their names as a trace's data."""
    at = [(name, *places.at[name]) for name in names]
    return {"x": [x for _, x, _ in at], "y": [y for _, _, y in at], "text": [plain(name) for name, _, _ in at]}


def _step(
    shot: tuple[int, dict[str, str], list[str]], states: Sequence[str], places: Layout, axis: tuple[str, float]
) -> dict[str, Any]:
    """Return the slider's stop at a time."""
    (time, state_of, ports), (unit, scale) = shot, axis
    made = [places.drawn(places.joined(ports)) | {"text": []}, *(_marks(state_of, state, places) for state in states)]
    change = {key: [one[key] for one in made] for key in ("x", "y", "text")}
    return {"label": f"{time / scale:.5g} {unit}", "method": "restyle", "args": [change, list(range(2, 3 + len(states)))]}


def lines(result: Recorded, mechanism: str) -> go.Figure:
    """Return when ports were in states, a line for each port, the longest first."""
    found = spans(result, mechanism)
    length = (pl.col("end_ps") - pl.col("start_ps")).sum()
    most = found.group_by("port", "about").agg(length.alias("ps"), pl.min("start_ps")).sort("ps", "port", descending=[True, False])
    listed = most.head(_MAX_LINES).sort("start_ps", "port", "about")
    unit, scale = show.axis_unit(show.TIME_UNITS, float(result.manifest.get("sim_ps") or 1))
    both = most["about"].n_unique() > 1
    names = [plain(f"{port} ({about})" if both else port) for port, about in listed.select("port", "about").iter_rows()]
    place = listed.select("port", "about").with_row_index("place")
    traces = []
    for i, state in enumerate(_states(found)):
        own = found.filter(pl.col("state") == state).join(place, on=["port", "about"]).sort("place", "start_ps")
        ends = own.select("place", pl.col("start_ps") / scale, pl.col("end_ps") / scale).iter_rows()
        points = [point for at, start, end in ends for point in ((start, at), (end, at), (None, None))]
        line = {"width": 8, "dash": "solid", "color": PAINT.get(state, COLORS[i % len(COLORS)])}
        hover = f"%{{x:.9g}} {unit}<extra>{plain(state)}</extra>"
        x, y = [point[0] for point in points], [point[1] for point in points]
        traces.append(go.Scatter(x=x, y=y, name=plain(state), mode="lines", line=line, hovertemplate=hover, showlegend=True))
    note = f"{found.height:,} stretches; ports in the order of their first."
    if most.height > listed.height:
        note = f"The {listed.height} of {most.height:,} sides of ports that were longest in a state. {note}"
    y_axis = {"tickvals": list(range(len(names))), "ticktext": names, "automargin": True, "rangemode": "normal"}
    y_axis["tickfont"] = {"size": 10}
    y_axis["range"] = [len(names) - 0.5, -0.5]
    plot = framed(traces, f"Ports in a state of {plain(mechanism)}", {"title": {"text": f"Time [{unit}]"}}, y_axis, note)
    plot.update_layout(showlegend=True)
    return plot


def rows(result: Recorded, mechanism: str, limit: int) -> list[list[str]]:
    """Return one row per switch and state under `HEAD`, those that lasted longest first."""
    found = spans(result, mechanism)
    end = max(int(result.manifest.get("sim_ps") or 1), 1)
    listed = []
    for (switch, state), part in found.group_by("switch", "state", maintain_order=True):
        merged, until = 0, 0
        for start, stop in part.sort("start_ps").select("start_ps", "end_ps").iter_rows():
            merged += max(0, stop - max(start, until))
            until = max(until, stop)
        first, last = int(part["start_ps"].min() or 0), until  # type: ignore[arg-type]
        facts = (part["port"].n_unique(), int(part["degree"].max() or 0))  # type: ignore[arg-type]
        listed.append((merged, str(switch), str(state), first, last, *facts))
    listed.sort(key=lambda row: (-row[0], _natural(row[1]), _rank(row[2])))
    return [
        [
            switch,
            state,
            show.duration(merged),
            f"{100 * merged / end:.1f} %",
            show.duration(first),
            show.duration(last),
            show.count(ports),
            show.count(degree),
        ]
        for merged, switch, state, first, last, ports, degree in listed[:limit]
    ]
