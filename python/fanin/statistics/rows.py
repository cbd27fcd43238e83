"""From the summary of a run to rows of the store: one for each group of metrics. Imported by workers, so nothing heavy is."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

MetricRow = tuple[str, str | None, dict[str, Any]]
"""Group, name within the group, and metrics."""

_ALL: Final = ("flows_until_ps", "goodput_bps", "delivered_bytes", "packets_sent", "retransmits", "timeouts", "marks", "drops")
_OF_FLOWS: Final = ("retransmits", "timeouts")
_NAMED: Final = {"ports": "port", "host_ports": "host_port"}


def rows(summary: Mapping[str, Any]) -> list[MetricRow]:
    """Return the metrics of a run by group, as docs/sweeps.md lists them."""
    return list(_rows(summary))


def _rows(summary: Mapping[str, Any]) -> Iterator[MetricRow]:
    yield "total", None, _total(summary)
    for entry in summary.get("fct") or ():
        yield "fct", entry["bin"], {key: entry[key] for key in entry if key not in ("bin", "from_bytes", "to_bytes")}
    if (summary.get("queries") or {}).get("total"):
        yield "queries", None, dict(summary["queries"])
    for job in summary.get("collectives") or ():
        flat = dict(_flat(job))
        name = flat.pop("group", None)
        yield "collective", str(name), flat
    for key, group in _NAMED.items():
        for port in summary.get(key) or ():
            yield group, port["port"], {name: value for name, value in port.items() if name != "port"}
    for name, counters in (summary.get("mechanisms") or {}).items():
        yield "mechanism", name, dict(_flat(counters))
    for key in ("drops", "marks"):
        for reason, count in (summary.get(f"{key}_by_reason") or {}).items():
            yield key, reason, {"count": count}


def _total(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return totals; numbers of flows only where there are flows, of datagrams likewise."""
    flows, datagrams = summary.get("flows") or {}, summary.get("datagrams") or {}
    largest, order = summary.get("largest_queue") or {}, summary.get("reordering") or {}
    has_flows, has_datagrams = bool(flows.get("total")), bool(datagrams.get("flows"))
    return {
        "flows": flows.get("total"),
        **{f"flows_{state}": flows.get(state) if has_flows else None for state in ("complete", "incomplete", "aborted")},
        **{name: summary.get(name) if has_flows or name not in _OF_FLOWS else None for name in _ALL},
        **{f"datagrams_{name}": datagrams.get(name) if has_datagrams else None for name in ("sent", "received", "delivered_bytes")},
        **{f"largest_queue_{name}": largest.get(name) for name in ("bytes", "packets", "time_ps", "port")},
        "timed_out": int(summary.get("timeouts", 0) > 0) if has_flows else None,
        **{name: order.get(name) for name in ("reordered", "reordered_share", "reordered_3")},
        "reordering_extent_max": order.get("extent_max"),
        "reordering_late_max_ps": order.get("late_max_ps"),
    }


def _flat(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of a table and of the tables in it; lists are left out, they are no metrics."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{key}_")
        elif not isinstance(value, list):
            yield f"{before}{key}", value


def addressed(found: Iterable[MetricRow]) -> Iterator[tuple[str, Any]]:
    """Yield the values of a run by address, such as ``fct/all.p99_ps``."""
    for group, name, values in found:
        place = group if name is None else f"{group}/{name}"
        yield from ((f"{place}.{column}", value) for column, value in values.items())


def address(metric: str) -> tuple[str, str | None, str]:
    """Return group, name and column of a metric such as ``fct/all.p99_ps``.

    Raises
    ------
    ValueError
        It is of another form.
    """
    where, dot, column = metric.rpartition(".")
    group, slash, name = where.partition("/")
    if not dot or not group or not column or (slash and not name):
        raise ValueError(f"'{metric}' is no metric; accepted: GROUP.METRIC, GROUP/NAME.METRIC, for example fct/all.p99_ps")
    return group, name if slash else None, column


def value_of(found: Sequence[MetricRow], metric: str) -> float | None:
    """Return a metric of a run; None where the run has no value.

    Raises
    ------
    ValueError
        Runs of this kind have no such metric; the message says which was meant, perhaps.
    """
    group, name, column = address(metric)
    for row in found:
        if row[:2] == (group, name) and column in row[2]:
            value = row[2][column]
            if isinstance(value, str):
                break
            return None if value is None else float(value)
    from fanin.statistics.metrics import RECORDED

    if name is not None and group not in ("fct", "queries", "total") and "." not in column and metric not in RECORDED:
        return None  # a port, mechanism or reason that this run did not have
    known = [key for key, _ in addressed(found)]
    raise ValueError(f"'{metric}' is no metric of these runs; accepted: for example {', '.join(known[:3])}{hint(metric, known)}")


def hint(metric: str, known: Iterable[str]) -> str:
    """Return what was meant, perhaps, by a metric that no run of a sweep has."""
    from fanin.statistics.metrics import METRICS, RECORDED

    if metric in RECORDED:
        return f"; it is made of recorded tables: it needs {METRICS[metric].needs}, and fanin sweep --keep (keep=True)"
    near = difflib.get_close_matches(metric, known, 1)
    return f"; did you mean {near[0]}?" if near else ""
