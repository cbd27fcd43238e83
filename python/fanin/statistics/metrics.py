"""The numbers by which runs are compared: one table with their names, units and which values are better.

Names are the addresses of a sweep's store, ``GROUP.COLUMN`` or ``GROUP/NAME.COLUMN``, so that a number is called the same
everywhere. docs/compare.md lists them.
"""

from __future__ import annotations

import difflib
import fnmatch
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from fanin.statistics.intervals import FEW, RARE, SOME
from fanin.statistics.rows import MetricRow, addressed, rows
from fanin.text import show

if TYPE_CHECKING:
    import polars as pl

    from fanin.statistics.judging import Direction
    from fanin.tables.recorded import Recorded

__all__ = [
    "FIRM",
    "FIRM_DIFFERENCES",
    "GROUPS",
    "HEADLINES",
    "METRICS",
    "RECORDED",
    "SECTIONS",
    "TIMED_OUT",
    "Metric",
    "Unit",
    "choose",
    "follows_timeouts",
    "of",
    "of_result",
    "seeds_needed",
    "values",
]

Unit = Literal["ps", "bytes", "bps", "count", "ratio", "share"]


@dataclass(frozen=True)
class Metric:
    """A number of a run.

    Attributes
    ----------
    key : str
        Its address, for example ``fct/all.p99_ps``.
    section : str
        Under which heading it stands.
    title : str
        What it is, below that heading.
    unit : {"ps", "bytes", "bps", "count", "ratio", "share"}
        Picoseconds, bytes, bits per second, a count, a dimensionless number, or a share of 1.
    better : {"lower", "higher"} or None
        Which values are better; None where neither is.
    needs : str
        What switches it on, where not every run has it.
    """

    key: str
    section: str
    title: str
    unit: Unit
    better: Direction | None
    needs: str = ""

    @property
    def limit(self) -> float:
        """The largest value that there can be: 1 of shares."""
        return 1.0 if self.unit == "share" else math.inf

    @property
    def seeds(self) -> int | None:
        """With how many seeds the interval of its mean is reliable at the earliest; see `FIRM`."""
        group = self.key.rpartition(".")[0]
        if group in _FEW_FLOWS or self.key in _NEVER:
            return None
        return FEW if self.key in FIRM else SOME if self.key in _SOME else RARE

    @property
    def seeds_of_differences(self) -> int | None:
        """With how many seeds the interval of a mean difference is reliable at the earliest; see `FIRM_DIFFERENCES`.

        What two runs of a seed have in common leaves with their difference, so that rare runs decide more of what is left.
        """
        if self.key in _SOME_DIFFERENCES:
            return SOME
        if self.seeds is None or self.key in _NO_DIFFERENCES or self.key.startswith("fct/>=1MB."):
            return None
        return FEW if self.key in FIRM_DIFFERENCES else RARE

    @property
    def never(self) -> str:
        """Why no number of seeds makes the mean of its differences sure, in a few words."""
        if self.key in ("total.goodput_bps", "total.flows_until_ps"):
            return "the flow that ends last decides it"
        if self.key.startswith(("fct/1", "fct/<", "fct/>")):
            return "few flows of this size in a run"
        return "rare runs decide it"

    @property
    def counted(self) -> str | None:
        """The address of how many times it is made of, where it is of flows or queries."""
        return _COUNTED.get(self.key.rpartition(".")[0])

    def timeout(self, longer: float, flows: float) -> float:
        """Return how much one timeout adds to it at least.

        All of it to a 99th percentile and to a job, its part to a mean of so many flows, nothing to a median and to what tells no
        time that flows take.

        Parameters
        ----------
        longer : float
            How much longer the flow takes that has it [ps].
        flows : float
            Of how many flows it is a mean.
        """
        column = self.key.rpartition(".")[2]
        if self.unit != "ps" or self.section not in (_FCT, _QUERIES, _JOBS) or column == "p50_ps":
            return 0.0
        return longer / max(1.0, flows) if column == "mean_ps" else longer

    @property
    def headline(self) -> bool:
        """Whether it is judged where nobody names metrics; see `HEADLINES`."""
        group, slash, rest = self.key.partition("/")
        return self.key in HEADLINES or (bool(slash) and f"{group}/*.{rest.rpartition('.')[2]}" in HEADLINES)

    @property
    def name(self) -> str:
        """Section and title: what it is without its place in a table."""
        return f"{self.section}, {self.title}"

    def text(self, value: float | None) -> str:
        """Return a value with its unit, as people read it."""
        if value is None:
            return show.NOTHING
        if self.unit == "share":
            return f"{100 * value:.3g} %"
        if self.unit == "count":
            return show.count(round(value) if abs(value) >= 100 else round(value, 1))
        shown = {"ps": show.duration, "bytes": show.size, "bps": show.rate, "ratio": show.ratio}[self.unit]
        return shown(round(value) if self.unit != "ratio" and abs(value) < 1e3 else value)


TIMED_OUT: Final = "total.timed_out"
"""1 where a run had a timeout, else 0: its mean is the share of runs with any."""

_COUNTED: Final = {"fct/all": "total.flows_complete", "queries": "queries.complete"}
"""Where the number of times stands that mean and percentiles are made of."""

FIRM: Final = frozenset(
    {
        "fct/all.p50_ps",
        "fct/all.p99_ps",
        "fct/all.slowdown_p50",
        "fct/>=1MB.mean_ps",
        "fct/>=1MB.slowdown_mean",
        "fct/>=1MB.slowdown_p50",
        "queries.complete",
        "total.goodput_bps",
        "total.flows_complete",
        "total.largest_queue_bytes",
        "total.marks",
        "queue/to_hosts.max_bytes",
    }
)
"""Metrics whose interval covers within two points of what it says from ten seeds on, also where a quarter of the runs has timeouts.

`python tests/python/simulated.py 4000 classes` finds them, and those below."""

_SOME: Final = frozenset({"fct/>=1MB.p50_ps", "queries.p50_ps", "total.flows_until_ps"})
"""Metrics of which that is so from `SOME` seeds on."""

_NEVER: Final = frozenset(
    {
        "fct/all.slowdown_mean",
        "fct/all.slowdown_p99",
        "queue/between_switches.p99_bytes",
        "queue/to_hosts.p99_bytes",
        "total.drops",
        "total.retransmits",
    }
)
"""Metrics whose mean rare runs decide so much that it is not so with `RARE` seeds either; all others take these."""

_NEVER_P95: Final = frozenset({"fct/all.p95_ps", "fct/all.slowdown_p95"})
"""95th percentiles, which are in no table, and of which that is so as well."""

FIRM_DIFFERENCES: Final = frozenset(
    {
        "fct/all.p50_ps",
        "fct/all.slowdown_p50",
        "queries.complete",
        "total.flows_complete",
        "total.largest_queue_bytes",
        "total.marks",
        "queue/to_hosts.max_bytes",
    }
)
"""Metrics whose interval of differences by seed covers within two points of what it says from ten seeds on."""

_SOME_DIFFERENCES: Final = frozenset({"queue/to_hosts.p99_bytes"})
"""Metrics of which that is so from `SOME` seeds on, though the means themselves are not to be relied on."""

_NO_DIFFERENCES: Final = frozenset(
    {"total.goodput_bps", "total.flows_until_ps", "queue/between_switches.max_bytes", "queue/between_switches.p99_bytes"}
)
"""Metrics whose differences hang on the rare run in which the last flow ends late, or a fabric queue is longer: the interval of
their mean misses more with 150 seeds, too."""

_FEW_FLOWS: Final = ("fct/<10KB", "fct/10KB-100KB", "fct/100KB-1MB")
"""Sizes of which a run may have few flows: one run in hundreds decides the mean over runs, and percentiles of all runs' flows
together say what is meant (`fanin.statistics.pooled`)."""

SECTIONS: Final = (
    "Flow completion time",
    "Slowdown",
    "Queries",
    "Jobs",
    "Throughput",
    "Queues",
    "Losses and control",
    "Order of arrival",
)
"""Headings of tables, in their order."""

_FCT, _SLOWDOWN, _QUERIES, _JOBS, _THROUGHPUT, _QUEUES, _CONTROL, _ORDER = SECTIONS

_SIZES: Final = (
    ("all", "all sizes"),
    ("<10KB", "< 10 KB"),
    ("10KB-100KB", "10–100 KB"),
    ("100KB-1MB", "100 KB–1 MB"),
    (">=1MB", "≥ 1 MB"),
)
"""Sizes of flows as the summary of a run tells them apart."""

_PLACES: Final = (("to_hosts", "to hosts"), ("between_switches", "fabric"), ("from_hosts", "from hosts"))
"""Kinds of ports: last hops, those between switches, and those of hosts."""

_SAMPLED: Final = "samples of all ports (telemetry.sample)"


def _by_size() -> Iterable[Metric]:
    for size, words in _SIZES:
        for column, what in (("mean_ps", "mean"), ("p50_ps", "median"), ("p99_ps", "p99")):
            yield Metric(f"fct/{size}.{column}", _FCT, f"{words} {what}", "ps", "lower")
    for size, words in _SIZES:
        for column, what in (("slowdown_mean", "mean"), ("slowdown_p50", "median"), ("slowdown_p99", "p99")):
            yield Metric(f"fct/{size}.{column}", _SLOWDOWN, f"{words} {what}", "ratio", "lower")


def _queues() -> Iterable[Metric]:
    yield Metric("total.largest_queue_bytes", _QUEUES, "any port largest", "bytes", "lower")
    for place, words in _PLACES:
        for column, what in (("p50_bytes", "median"), ("p99_bytes", "p99"), ("max_bytes", "largest")):
            yield Metric(f"queue/{place}.{column}", _QUEUES, f"{words} {what}", "bytes", "lower", _SAMPLED)


METRICS: Final[Mapping[str, Metric]] = {
    metric.key: metric
    for metric in (
        *_by_size(),
        Metric("queries.mean_ps", _QUERIES, "mean", "ps", "lower", "a [[traffic]] entry with queries"),
        Metric("queries.p50_ps", _QUERIES, "median", "ps", "lower", "a [[traffic]] entry with queries"),
        Metric("queries.p99_ps", _QUERIES, "p99", "ps", "lower", "a [[traffic]] entry with queries"),
        Metric("queries.complete", _QUERIES, "complete", "count", "higher", "a [[traffic]] entry with queries"),
        Metric("collective/*.time_ps", _JOBS, "complete in", "ps", "lower", 'a [[traffic]] entry of kind "collective"'),
        Metric(
            "collective/*.iterations_mean_ps", _JOBS, "iteration, mean", "ps", "lower", 'a [[traffic]] entry of kind "collective"'
        ),
        Metric(
            "collective/*.iterations_p99_ps", _JOBS, "iteration, p99", "ps", "lower", 'a [[traffic]] entry of kind "collective"'
        ),
        Metric("total.goodput_bps", _THROUGHPUT, "goodput", "bps", "higher"),
        Metric("total.flows_until_ps", _THROUGHPUT, "last flow ended", "ps", None),
        Metric("total.flows_complete", _THROUGHPUT, "flows complete", "count", "higher"),
        Metric("total.flows_incomplete", _THROUGHPUT, "flows incomplete", "count", "lower"),
        Metric("total.flows_aborted", _THROUGHPUT, "flows aborted", "count", "lower"),
        Metric(
            "total.datagrams_received", _THROUGHPUT, "datagrams received", "count", "higher", "a [[traffic]] entry of datagrams"
        ),
        *_queues(),
        Metric("total.drops", _CONTROL, "drops", "count", "lower"),
        Metric("total.marks", _CONTROL, "ECN marks", "count", None),
        Metric("total.retransmits", _CONTROL, "retransmissions", "count", "lower"),
        Metric("total.timeouts", _CONTROL, "timeouts", "count", "lower"),
        Metric(TIMED_OUT, _CONTROL, "runs with a timeout", "share", "lower"),
        Metric("total.pauses", _CONTROL, "pauses", "count", "lower", "switch.mechanisms.pfc"),
        Metric("total.paused_ps", _CONTROL, "time paused", "ps", "lower", "switch.mechanisms.pfc"),
        Metric("total.reordered_share", _ORDER, "reordered", "share", "lower"),
        Metric("total.reordered_3", _ORDER, "late by three or more", "count", "lower"),
        Metric("total.reordering_extent_max", _ORDER, "largest extent [pkt]", "count", "lower"),
    )
}
"""All that are compared; a ``*`` stands for the name of a traffic entry."""

GROUPS: Final = frozenset(re.split("[/.]", key)[0] for key in METRICS)
"""Groups of a sweep's store that hold any of them."""

RECORDED: Final = frozenset(key for key in METRICS if key.startswith("queue/") or key in ("total.pauses", "total.paused_ps"))
"""Those that are made of recorded tables, so that runs of a sweep have them only if their result folders are kept."""


HEADLINES: Final = (
    "fct/all.mean_ps",
    "fct/all.p99_ps",
    "fct/<10KB.p99_ps",
    "fct/>=1MB.mean_ps",
    "queries.mean_ps",
    "queries.p99_ps",
    "collective/*.time_ps",
    "total.goodput_bps",
    "total.flows_incomplete",
    "total.flows_aborted",
    "queue/to_hosts.p99_bytes",
    "total.drops",
    "total.timeouts",
    "total.paused_ps",
    "total.reordered_share",
)
"""What a comparison judges unless it is told which: few, chosen beforehand, since each makes the others harder to show."""


def of(key: str) -> Metric | None:
    """Return what is known of an address; None if it is not compared."""
    if key in METRICS:
        return METRICS[key]
    group, slash, rest = key.partition("/")
    name, dot, column = rest.rpartition(".")
    known = METRICS.get(f"{group}/*.{column}") if slash and dot else None
    if known is None:
        return None
    return Metric(key, known.section, f"{name}, {known.title}", known.unit, known.better, known.needs)


def seeds_needed(key: str) -> int | None:
    """Return with how many seeds the mean of an address is reliable at the earliest; None: with no number that people run.

    What is not compared, such as counters of mechanisms, takes as many as what rare runs decide, but for 95th percentiles of flows:
    where one run in hundreds lifts that of a run far above the others, no number of seeds is enough.
    """
    known = of(key)
    if known is not None:
        return known.seeds
    return None if key in _NEVER_P95 or key.rpartition(".")[0] in _FEW_FLOWS else RARE


def follows_timeouts(key: str) -> bool:
    """Return whether timeouts move a metric's mean: that of all times and slowdowns, and of others that rare runs decide."""
    column = key.rpartition(".")[2]
    return column.endswith("_ps") or column.startswith("slowdown") or seeds_needed(key) not in (FEW, SOME)


def choose(asked: Sequence[str], there: Iterable[str], *, kept: bool = True) -> list[Metric]:
    """Return the metrics that `asked` names, in the order of `METRICS`.

    Parameters
    ----------
    asked : sequence of str
        Addresses, patterns such as ``fct/*.p99_ps``, or groups such as ``fct``; all if empty.
    there : iterable of str
        Addresses that some run has.
    kept : bool
        Whether all runs have result folders; else the message says what only these have.

    Raises
    ------
    ValueError
        Names that fit nothing, a line each, with what comes near.
    """
    known = {key: found for key in there if (found := of(key)) is not None}
    order = list(METRICS)
    wildcard = {key.split("/")[0]: at for at, key in enumerate(order) if "/*." in key}
    places = {key: (order.index(key) if key in METRICS else wildcard[key.split("/")[0]], key) for key in known}
    listed = sorted(known, key=lambda key: places[key])
    if not asked:
        return [known[key] for key in listed]
    chosen: set[str] = set()
    wrong = []
    for name in asked:
        fits = {key for key in listed if name in (key, *_groups(key)) or fnmatch.fnmatchcase(key, name)}
        chosen |= fits
        if not fits:
            wrong.append(_unknown(name, listed, kept=kept))
    if wrong:
        raise ValueError("\n".join(wrong))
    return [known[key] for key in listed if key in chosen]


def _groups(key: str) -> tuple[str, str]:
    """Return the names of the groups that an address belongs to: ``fct/all`` and ``fct``."""
    group = key.rpartition(".")[0]
    return group, group.split("/")[0]


def _unknown(name: str, listed: Sequence[str], *, kept: bool) -> str:
    lacking = [
        metric
        for metric in METRICS.values()
        if metric.key not in listed and (name in (metric.key, *_groups(metric.key)) or fnmatch.fnmatchcase(metric.key, name))
    ]
    if lacking:
        needs = f"; it needs {lacking[0].needs}" if lacking[0].needs else ""
        needs += ", and in a sweep --keep" if lacking[0].key in RECORDED and not kept else ""
        return f"metric '{name}': no run has it{needs}"
    groups = dict.fromkeys(group for key in listed for group in _groups(key))
    near = difflib.get_close_matches(name, [*listed, *groups], n=1, cutoff=0.5)
    there = ", ".join(group for group in groups if "/" not in group)
    hint = (
        f"did you mean {near[0]}?"
        if near
        else f"there are metrics of {there}, for example {listed[0]}"
        if listed
        else "there are none"
    )
    return f"metric '{name}': there is none of that name; {hint}"


def values(result: Recorded) -> dict[str, float]:
    """Return the numbers of a run by address; what it does not have is left out.

    Raises
    ------
    ResultError
        The run has no summary, or a table cannot be read.
    """
    found = addressed(of_result(result))
    return {key: float(value) for key, value in found if of(key) is not None and isinstance(value, int | float)}


def of_result(result: Recorded) -> list[MetricRow]:
    """Return the metrics of a result folder by group: those of its summary, and those that only its tables have.

    Raises
    ------
    ResultError
        The run has no summary, or a table cannot be read.
    """
    groups = {(group, name): values for group, name, values in rows(result.summary)}
    groups |= {("queue", place): levels for place, levels in _queue_levels(result).items()}
    if result.manifest.get("files", {}).get("pauses") or "pfc" in (result.summary.get("mechanisms") or {}):
        groups["total", None] |= _paused(result)
    return [(group, name, values) for (group, name), values in groups.items()]


def _paused(result: Recorded) -> dict[str, Any]:
    """Return how often and how long ports were paused, over all classes; a pause without an end lasts to the end of the run."""
    import polars as pl

    end = pl.col("end_ps").fill_null(int(result.manifest.get("sim_ps") or 0))
    row = result.scan("pauses").select(count=pl.len(), paused=(end - pl.col("start_ps")).sum()).collect().row(0)
    return {"pauses": row[0], "paused_ps": row[1]}


def _queue_levels(result: Recorded) -> dict[str, dict[str, Any]]:
    """Return median and 99th percentile of sampled queues, and the largest, by kind of port.

    Over all samples of all ports of the kind that sent anything, quiet samples included, up to the first one after the last flow
    ended: what follows would only dilute them. Nearest rank, as in the summary.
    """
    import polars as pl

    times = result.sample_times
    if times.is_empty():
        return {}
    samples = min(int((times < int(result.summary.get("flows_until_ps", result.manifest["sim_ps"]))).sum()) + 1, times.len())
    rows = result.scan("ports", as_written=True).filter(pl.col("time_ps") <= times[samples - 1])
    ends = pl.col("port").str.split("->").list
    switches = _switches(rows).implode()
    place = (
        pl.when(~ends.first().is_in(switches))
        .then(pl.lit("from_hosts"))
        .when(ends.last().is_in(switches))
        .then(pl.lit("between_switches"))
        .otherwise(pl.lit("to_hosts"))
    )
    sent = rows.group_by("port").agg(sent=pl.col("tx_bytes").sum()).filter(pl.col("sent") > 0).select("port")
    used = rows.join(sent, on="port", how="semi").select("port", "queue_bytes", "queue_max_bytes", place=place)
    found: dict[str, dict[str, Any]] = {}
    for (name,), frame in used.collect(engine="streaming").group_by(["place"], maintain_order=True):
        levels = frame["queue_bytes"].filter(frame["queue_bytes"] > 0).sort(descending=True)
        total = frame["port"].n_unique() * samples
        of_place = found.setdefault(str(name), {})
        for key, percent in (("p50_bytes", 50), ("p99_bytes", 99)):
            above = total - -(-percent * total // 100)  # so many samples lie above the rank
            of_place[key] = float(levels[above]) if above < levels.len() else 0.0
        largest = frame["queue_max_bytes"].max()
        of_place["max_bytes"] = float(largest) if isinstance(largest, int) else 0.0
    return found


def _switches(rows: pl.LazyFrame) -> pl.Series:
    """Return the nodes with several ports: a host has one link."""
    import polars as pl

    begin = pl.col("port").str.split("->").list.first()
    ports = rows.select(pl.col("port").unique()).group_by(node=begin).agg(pl.len()).collect()
    return ports.filter(pl.col("len") > 1)["node"]
