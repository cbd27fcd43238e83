"""Metrics that a stop rule can name: the addresses of a sweep's store, known before the first run."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from fanin import _core
from fanin.statistics.metrics import METRICS

_TIMES: Final = ("mean_ps", "p50_ps", "p95_ps", "p99_ps")
_PORT: Final = ("drops", "marks", "max_bytes", "max_packets", "paused_ps", "pauses", "tx_bytes", "utilisation")

COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "total": (
        "flows", "flows_complete", "flows_incomplete", "flows_aborted", "flows_until_ps", "goodput_bps", "delivered_bytes",
        "packets_sent", "retransmits", "timeouts", "timed_out", "marks", "drops", "datagrams_sent", "datagrams_received",
        "datagrams_delivered_bytes", "largest_queue_bytes", "largest_queue_packets", "largest_queue_time_ps", "reordered",
        "reordered_share", "reordered_3", "reordering_extent_max", "reordering_late_max_ps", "pauses", "paused_ps",
    ),
    "fct": ("flows", *_TIMES, "slowdown_mean", "slowdown_p50", "slowdown_p95", "slowdown_p99"),
    "queries": ("total", "complete", *_TIMES),
    "collective": (
        "time_ps", "start_ps", "finish_ps", "ranks", "iterations_total", "iterations_complete",
        *(f"iterations_{column}" for column in _TIMES),
    ),
    "port": _PORT,
    "host_port": _PORT,
    "drops": ("count",),
    "marks": ("count",),
    "queue": ("p50_bytes", "p99_bytes", "max_bytes"),
}  # fmt: skip
"""Columns of numbers by group; those of mechanisms are their counters."""

_UNNAMED: Final = ("total", "queries")
"""Groups that have one row for each run."""

_COUNTED_BESIDE: Final = re.compile(r"by_reason_\w+|largest_queue_bytes")
"""Columns of a mechanism that are no counters of its own."""


class Unknown(NamedTuple):
    """Says what a stop rule accepts instead of a metric that there is not, and what was meant, perhaps."""

    accepted: str
    suggestion: str | None


def unknown(metric: str) -> Unknown | None:
    """Return why no run can have a metric; None where some run may."""
    found = re.fullmatch(r"(\w+)(?:/(.+))?\.(\w+)", metric)
    group, name, column = found.groups() if found else (metric.partition("/")[0].partition(".")[0], None, "")
    columns, names = _columns(group, name), _names(group)
    near: str | None = None
    if columns is None:
        accepted = "GROUP.METRIC or GROUP/NAME.METRIC, with one of the groups " + ", ".join([*COLUMNS, "mechanism"])
    elif group in _UNNAMED and name is not None:
        accepted = f"{group}.METRIC, without a name: {', '.join(columns)}"
    elif group not in _UNNAMED and (name is None or (names is not None and name not in names)):
        which = f"; names: {', '.join(names)}" if names is not None else ""
        accepted = f"{group}/NAME.METRIC{which}"
    elif column not in columns and not (group == "mechanism" and _COUNTED_BESIDE.fullmatch(column)):
        place = group if name is None else f"{group}/{name}"
        accepted = f"{place}.METRIC, of {', '.join(columns)}"
        near = next((f"{place}.{own}" for own in difflib.get_close_matches(column, columns, n=1, cutoff=0.5)), None)
    else:
        return None
    near = near or next(iter(difflib.get_close_matches(metric, _every(name), n=1, cutoff=0.8)), None)
    return Unknown(accepted, f"did you mean {near}?" if near else None)


def missing_job(metric: str, traffic: Iterable[Mapping[str, Any]]) -> Unknown | None:
    """Return what is accepted instead of a job of collective operations that a scenario has not; None where it is there."""
    group, slash, rest = metric.partition("/")
    if group != "collective" or not slash:
        return None
    name, _, column = rest.rpartition(".")
    jobs = [str(entry.get("name")) for entry in traffic if entry.get("kind") == "collective"]
    if name in jobs:
        return None
    listed = ", ".join(f"collective/{job}.{column}" for job in jobs)
    near = difflib.get_close_matches(name, jobs, n=1, cutoff=0.5)
    return Unknown(
        listed or 'a metric that its runs have: there is no [[traffic]] entry of kind "collective"',
        f"did you mean collective/{near[0]}.{column}?" if near else None,
    )


@cache
def _counters() -> Mapping[str, tuple[str, ...]]:
    return {str(group["name"]): tuple(str(own["name"]) for own in group["counters"]) for group in _core.counters()}


def _columns(group: str, name: str | None) -> tuple[str, ...] | None:
    """Return the columns of a group; None if there is no such group."""
    return _counters().get(name or "", ()) if group == "mechanism" else COLUMNS.get(group)


def _names(group: str) -> tuple[str, ...] | None:
    """Return the names within a group; None where the scenario gives them."""
    if group == "mechanism":
        return tuple(_counters())
    if group not in ("fct", "queue"):
        return None
    return tuple(dict.fromkeys(key[len(group) + 1 :].rpartition(".")[0] for key in METRICS if key.startswith(f"{group}/")))


def _every(name: str | None) -> list[str]:
    """Return the addresses that something may have been meant by; names of ports, jobs and reasons are as they were given."""
    listed = [f"{group}.{column}" for group in _UNNAMED for column in COLUMNS[group]]
    for group in (*(key for key in COLUMNS if key not in _UNNAMED), "mechanism"):
        for own in _names(group) or ([name] if name else []):
            listed += [f"{group}/{own}.{column}" for column in _columns(group, own) or ()]
    return listed
