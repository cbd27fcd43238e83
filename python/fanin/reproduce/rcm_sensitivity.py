"""What RCM's result depends on: each part by itself, and each of the paper's open points at other values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, Final

import polars as pl

from fanin.reproduce._context import Context
from fanin.reproduce._jobs import Job, frame
from fanin.reproduce._rcm import CONTROL, MARKING, MECHANISM, READING, marks
from fanin.reproduce._registry import figure
from fanin.reproduce._rows import Findings, Row
from fanin.reproduce.rcm import CAM, ROUTES, SET, burst_part, half, nearly_50, victim_run
from fanin.reproduce.rcm_fabric import fabric, workload_run
from fanin.results import Result

DEFAULT: Final = "as in the figures"
OFF: Final = "without RCM"

PARTS: Final[dict[str, dict[str, Any] | None]] = {
    OFF: None,
    "detection alone": {"rcc": False, "sar": False},
    "RCC alone": {"sar": False},
    "SAR alone": {"rcc": False},
    DEFAULT: {},
}
"""Detection and recognition are needed by both."""

POINTS: Final[dict[str, dict[str, Any]]] = {
    "nothing rerouted": {"sar": False},
    "input queues set the local flag, too": {"local_flag": "either"},
    "flows set at detection": {"recognise": "at_detection"},
    "harmful from three places on": {"cam_hits": 3},
    "a degree takes half of W_c once": {"decrease": "measured"},
    "all three": READING | {"cam_period": "8KB"},
    "all three, CAM written per 2 KB": READING,
    "the same, nothing rerouted": READING | {"sar": False},
    "w = 0": {"w": 0.0},
    "w = 1": {"w": 1.0},
    "w_q = 0": {"w_q": 0},
    "w_q = 8": {"w_q": 8},
    "Q_eq = 13 KB": {"q_eq": "13KB"},
    "Q_eq = 52 KB": {"q_eq": "52KB"},
    "a sample per 10 KB": {"sample": "10KB"},
    "a sample per 150 KB": {"sample": "150KB"},
    "CAM of 1": {"cam": 1},
    "CAM of 3": {"cam": 3},
    "CAM of 32": {"cam": 32},
    "CAM written per 2 KB": {"cam_period": "2KB"},
    "CAM written per 32 KB": {"cam_period": "32KB"},
    "W of 32 KB at most": {"window_max": "32KB"},
    "W of 400 KB at most": {"window_max": "400KB"},
    "harmful flows wait though nobody else sends": {"when_idle": "wait"},
    "news lasts 5 us": {"expiry": "5us"},
    "news lasts 100 us": {"expiry": "100us"},
    "severe from 8 on": {"severe_degree": 8},
    "severe from 63 on": {"severe_degree": 63},
    "one severe one moves": {"severe_count": 1},
    "ten severe ones move": {"severe_count": 10},
    "a tenth of notifications lost": {"loss": 0.1},
    "all notifications lost": {"loss": 1.0},
    "a port holds 50 KB": {"reserved": "50KB"},
    "a port holds 400 KB": {"reserved": "400KB"},
}
"""The open points of docs/dev/paper-rcm.md#what-the-paper-leaves-open, one changed at a time."""
MARKS: Final[dict[str, dict[str, Any]]] = {
    "K_min 5 KB, K_max 200 KB, P_max 1 %": {},
    "K_min 50 KB": {"min": "50KB"},
    "K_max 50 KB": {"max": "50KB"},
    "K_max 1 MB": {"max": "1MB"},
    "P_max 0.1 %": {"max_p": 0.001},
    "P_max 10 %": {"max_p": 0.1},
    "100 KB, 400 KB, 20 %": {"min": "100KB", "max": "400KB", "max_p": 0.2},
}
"""Marks of fig. 9, one value changed at a time; the last as HPCC's authors set them at 25 Gb/s, by rate. The paper has DCQCN's."""
SHORT_MARKS: Final = (*tuple(MARKS)[:1], "P_max 10 %")
SHORT: Final = ("nothing rerouted", "flows set at detection", "the same, nothing rerouted", "all notifications lost")

AS_READ: Final = "the same, nothing rerouted"
ONCE: Final = "half of W_c is too little where four flows share it, and without DCQCN nothing else holds them back"

BY_MARKS: Final = (
    "the more DCQCN is told, the less is left for RCM to gain: what fig. 9 shows depends on K_min, K_max and P_max, which the "
    "paper leaves at DCQCN's defaults"
)

MEASURES: Final = {
    "burst_gbps": "Burst, least [Gb/s]",
    "others_gbps": "Each of the four then [Gb/s]",
    "victim_gbps": "Victim, PFC and RCM [Gb/s]",
    "mice_ratio": "Mice: mean FCT over DCQCN's",
    "all_ratio": "All: mean FCT over DCQCN's",
}


def victim_part(result: Result, job: Job) -> dict[str, float]:
    """Reduce a run of fig. 7 to one number."""
    return {"victim_gbps": victim_run(result, job)["settled_victim"]}


def cases(context: Context, tried: Mapping[str, Mapping[str, Any] | None]) -> pl.DataFrame:
    """Return fig. 6, fig. 7 without DCQCN, and enterprise flows on a smaller fabric, by case."""
    burst, victim = (
        context.scenario("burst"),
        context.scenario("victim").replace({"duration": "4ms", CONTROL: "none", MARKING: None}),
    )
    flows = fabric(context, "enterprise")
    seeds = context.seeds
    bursts, victims, fabrics = [], [], []
    both: dict[str, Mapping[str, Any] | None] = {OFF: None, DEFAULT: {}, **tried}
    for name, changes in both.items():
        made = {MECHANISM: None} if changes is None else {f"{MECHANISM}.{key}": value for key, value in changes.items()}
        bursts.append(Job(burst.replace(made), 1, {"case": name}))
        victims.append(Job(victim.replace(made), ROUTES[0], {"case": name}))
        fabrics += [Job(flows.replace(made), seed, {"case": name}) for seed in seeds]
    one = frame(bursts, context.runs(bursts, burst_part)).drop("seed")
    two = frame(victims, context.runs(victims, victim_part)).drop("seed")
    three = frame(fabrics, context.runs(fabrics, workload_run))
    return one.join(two, on="case", maintain_order="left").join(over_off(three), on="case", maintain_order="left")


def by_marks(context: Context, tried: Mapping[str, Mapping[str, Any]]) -> pl.DataFrame:
    """Return completion times of enterprise flows with RCM over those with DCQCN alone, both with the same marks."""
    flows = fabric(context, "enterprise")
    found = []
    for name, changes in tried.items():
        base = flows.replace({f"{MARKING}.{key}": value for key, value in changes.items()})
        cases = {OFF: base.replace({MECHANISM: None}), DEFAULT: base}
        jobs = [Job(one, seed, {"case": case, "marks": name}) for case, one in cases.items() for seed in context.seeds]
        row = over_off(frame(jobs, context.runs(jobs, workload_run))).filter(pl.col("case") == DEFAULT).drop("case")
        found.append({"marks": name} | row.to_dicts()[0])
    return pl.DataFrame(found)


def over_off(table: pl.DataFrame) -> pl.DataFrame:
    """Return mean completion times over those without RCM, seed by seed, and what was reordered."""
    off = table.filter(pl.col("case") == OFF).sort("seed")
    found = []
    for (name,), part in table.group_by("case", maintain_order=True):
        rows = part.sort("seed")
        ratio = {
            f"{kind}_ratio": fmean(a / b for a, b in zip(rows[f"{kind}_us"].to_list(), off[f"{kind}_us"].to_list(), strict=True))
            for kind in ("mice", "all")
        }
        mean = {key: fmean(rows[key].to_list()) for key in ("paused_ms", "reordered_percent", "retransmits", "lost")}
        found.append({"case": name, **ratio, **mean})
    return pl.DataFrame(found)


def plots(table: pl.DataFrame) -> dict[str, Any]:
    """Return a plot for each measure: a mark for each case, those that move it most can be told at a glance."""
    names = table["case"].to_list()
    return {
        f"sensitivity-{column.replace('_', '-')}": marks(
            {"": [(value if value is not None else math.nan, math.nan) for value in table[column].to_list()]},
            [str(i) for i in range(len(names))],
            title,
            line=table.filter(pl.col("case") == DEFAULT)[column].item(),
        )
        for column, title in MEASURES.items()
    }


def differs(table: pl.DataFrame, column: str, least: float) -> list[str]:
    """Return the cases whose value differs from the default's by more than `least`."""
    default = table.filter(pl.col("case") == DEFAULT)[column].item()
    rows: Sequence[tuple[str, float]] = table.select("case", column).rows()
    return [name for name, value in rows if name not in (OFF, DEFAULT) and abs(value - default) > least]


@figure("rcm/parts", title="Each part of RCM by itself", seeds=3, short=1, seconds=120)
def parts(context: Context) -> Findings:
    """What comes of the windows, and what of moved flows."""
    table = cases(context, PARTS)
    of = {row["case"]: row for row in table.to_dicts()}
    rows = [
        Row(
            name="detection alone: burst over that without RCM",
            paper=None,
            fanin=of["detection alone"]["burst_gbps"] / of[OFF]["burst_gbps"],
            low=0.95,
            high=1.05,
        ),
        half("RCC alone", of["RCC alone"]["burst_gbps"], note=CAM),
        Row(name="packets lost, mean of the worst case", paper=0, fanin=max(table["lost"].to_list()), low=0, high=0),
    ]
    return Findings(rows=rows, plots=plots(table), data={"parts": table})


@figure("rcm/sensitivity", title="Which of the paper's open points the result depends on", seeds=2, short=1, seconds=500)
def sensitivity(context: Context) -> Findings:
    """Burst, victim and completion of mice, with one open point changed at a time."""
    tried = {name: POINTS[name] for name in (SHORT if context.short else POINTS)}
    table = cases(context, tried)
    limits = {"burst_gbps": 5.0, "victim_gbps": 5.0, "mice_ratio": 0.05}
    moved = pl.DataFrame(
        [{"measure": column, "case": name} for column, least in limits.items() for name in differs(table, column, least)],
        schema={"measure": pl.String, "case": pl.String},
    )
    of = {row["case"]: row for row in table.to_dicts()}
    rows = [
        half(AS_READ, of[AS_READ]["burst_gbps"], calibrated=SET),
        nearly_50(f"{AS_READ}: victim, PFC and RCM alone", of[AS_READ]["victim_gbps"], ONCE),
        half("nothing rerouted", of["nothing rerouted"]["burst_gbps"], note=CAM),
        nearly_50("nothing rerouted: victim, PFC and RCM alone", of["nothing rerouted"]["victim_gbps"], ONCE),
        Row(
            name="all notifications lost: victim over that without RCM",
            paper=None,
            fanin=of["all notifications lost"]["victim_gbps"] / of[OFF]["victim_gbps"],
            low=0.95,
            high=1.05,
        ),
    ]
    rows.append(Row(name="packets lost, mean of the worst case", paper=0, fanin=max(table["lost"].to_list()), low=0, high=0))
    marked = by_marks(context, {name: MARKS[name] for name in (SHORT_MARKS if context.short else MARKS)})
    least = min(marked["mice_ratio"].to_list())
    most = max(marked["mice_ratio"].to_list())
    rows.append(Row(name="mice over DCQCN's, least by marks", paper="< 0.9", fanin=least, high=0.9, note=BY_MARKS))
    rows.append(Row(name="mice over DCQCN's, most by marks", paper="< 0.9", fanin=most, high=0.9, note=BY_MARKS))
    return Findings(rows=rows, plots=plots(table), data={"points": table, "moved": moved, "marks": marked})
