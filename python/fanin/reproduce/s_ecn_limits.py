"""Limits of the laws of S-ECN §III-C: one assumption at a time is taken away."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from fanin.reproduce import Context, Findings, Job, Row, figure
from fanin.reproduce._phases import SLOPE_CV, judge
from fanin.results import Result
from fanin.scenario import Scenario

if TYPE_CHECKING:
    from plotly.graph_objects import Figure as Plot

BACKGROUND_MS: Final = 20
"""Start of the fan-in where there is background."""


@dataclass(frozen=True)
class Case:
    """An assumption that does not hold, and what becomes of the law.

    Parameters
    ----------
    name : str
        What is different.
    law : int
        The law that would apply.
    changes : dict
        What makes it so, as `Scenario.replace` takes it.
    note : str
        Why the law ends there; empty where it does not.
    """

    name: str
    law: int
    changes: dict[str, Any]
    note: str = ""


def _background(flows: int, window: int) -> dict[str, Any]:
    """Long flows to the same receiver, in congestion avoidance from the start."""
    tcp = {"kind": "tcp", "congestion_control": "newreno", "sack": False, "handshake": False, "ack_every": 1}
    tcp |= {"rtt_sampling": "timestamps", "timestamp_tick": "1us", "rto_min": "200ms", "rto_initial": "200ms"}
    tcp |= {"initial_window": window, "initial_ssthresh": f"{window * 1448}B"}
    listed = [{"src": f"h{38 - i}", "dst": "h39", "size": "1GB"} for i in range(flows)]
    start = f"{BACKGROUND_MS}ms"
    return {
        "transports": {"background": tcp},
        "traffic[1]": None,
        "traffic[0].start": start,
        "background": {"kind": "flows", "name": "background", "transport": "background", "flows": listed},
        "duration": f"{BACKGROUND_MS + 6}ms",
    }


CASES: Final = (
    Case("law 1: as the paper has it", 1, {}),
    Case(
        "law 1, delayed ACKs, slow start counts ACKs (RFC 5681)",
        1,
        {"transport.ack_every": 2, "transport.delayed_ack_timeout": "40ms"},
        "one ACK for two segments opens the window by one: three segments follow two, and the queue grows at R/2",
    ),
    Case(
        "law 1, delayed ACKs, slow start counts bytes (RFC 3465)",
        1,
        {"transport.ack_every": 2, "transport.delayed_ack_timeout": "40ms", "transport.slow_start_limit": 2},
        "an odd segment at the end of a flow's share of the queue waits for the next one: about a twentieth less",
    ),
    Case(
        "law 1, TSO",
        1,
        {"transport.tso": True},
        "a sender waits until a third of its window is free: a part of the windows is not in flight",
    ),
    Case(
        "law 2: three background flows in congestion avoidance",
        2,
        _background(3, 20),
    ),
    Case(
        "law 2, one background flow whose window is 16 times the pipe",
        2,
        _background(1, 60),
        "its window stands in its own NIC, which is a hidden buffer at the previous hop: law 3 applies, not law 2",
    ),
    Case(
        "law 3, one background flow whose window is 16 times the pipe",
        3,
        _background(1, 60),
    ),
    Case(
        "law 3, a larger window, first round spread over 20 round trips",
        3,
        _background(1, 400) | {"traffic[0].jitter": "1ms"},
        "rounds overlap: a is the mean over the whole first round, while the share of fan-in packets already grows with the second",
    ),
)


def _scenario(base: Scenario, case: Case) -> Scenario:
    changes = dict(case.changes)
    background = changes.pop("background", None)
    changes.pop("traffic[1]", None)
    made = base.replace(changes)
    if background is None:
        return made
    return made.replace(traffic=[*made.to_dict()["traffic"], background])


def slope(result: Result, job: Job) -> dict[str, float]:
    """Reduce a run to the slope of phase 2 and a, over R."""
    rounds = None if job.key["law"] == 1 else 2
    judged = judge(result, "switch0->h39", fan_in="incast", window=3, rounds=rounds)
    return {"slope": judged.slope, "arrival": judged.arrival}


@figure(
    "s-ecn/laws-end",
    title="Where the laws end: delayed ACKs, TSO, a window in a NIC, overlapping rounds",
    seeds=20,
    short=2,
    seconds=30,
)
def laws_end(context: Context) -> Findings:
    """Not in the paper: what its laws assume without saying so."""
    base = context.scenario("pacing").replace({"switch.buffer.per_port": "512KB", "duration": "6ms"})
    jobs = [
        job
        for number, case in enumerate(CASES, 1)
        for job in context.each_seed(_scenario(base, case), number=number, case=case.name, law=case.law)
    ]
    found = context.runs(jobs, slope)
    table = pl.DataFrame({**job.key, "seed": job.seed, **values} for job, values in zip(jobs, found, strict=True))
    rows = [_row(number, case, table.filter(pl.col("number") == number)) for number, case in enumerate(CASES, 1)]
    return Findings(rows=rows, plots={"laws-end": _plot(table)}, data={"laws-end": table})


def _row(number: int, case: Case, runs: pl.DataFrame) -> Row:
    value = fmean(runs["slope"])
    name = f"{number} {case.name}"
    if case.law == 1:
        return Row(name=name, paper="R", fanin=value, low=1 - 3 * SLOPE_CV, high=1 + 3 * SLOPE_CV, unit="R", note=case.note)
    if case.law == 2:
        return Row(name=name, paper="< R", fanin=value, high=1, unit="R", note=case.note)
    a = fmean(runs["arrival"])
    bound = 2 * a / (a + 1)
    name = f"{name} (a = {a:.2g} R)"
    return Row(name=name, paper=f"≤ {bound:.3g}", fanin=value, high=bound * (1 + SLOPE_CV), unit="R", note=case.note)


def _plot(table: pl.DataFrame) -> Plot:
    from plotly.graph_objects import Figure as Plot

    plot = Plot()
    for law, symbol in ((1, "circle"), (2, "square"), (3, "diamond")):
        part = table.filter(pl.col("law") == law)
        plot.add_scatter(x=part["number"], y=part["slope"], mode="markers", marker={"symbol": symbol}, name=f"law {law}")
    plot.update_xaxes(title="Case, by its number in the table")
    plot.update_yaxes(title="Slope of phase 2 / R", rangemode="tozero")
    return plot
