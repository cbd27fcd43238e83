"""Two analyses beside each other: what a change of buffer, marking or hosts did to the bursts of a port."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fanin import files
from fanin.analysis.tables import known_span
from fanin.text import show

if TYPE_CHECKING:
    import polars as pl

    from fanin.analysis.bursts import Analysis

__all__ = ["SCHEMA", "AnalysisChange", "Row", "between", "is_report"]

SCHEMA: Final = "analysis-change/1"
"""Name and version of the form of `AnalysisChange.document`."""

_REPORT: Final = "analysis/1"

STRETCHES: Final = 10
"""Equal stretches of each trace whose spread gives the interval of a change (batch means)."""

FEW: Final = 30
"""Bursts of each trace below which there is no interval: most stretches would have none."""

_CONFIDENCE: Final = 0.95

_SETTINGS: Final = (
    "by",
    "above_bytes",
    "until_bytes",
    "window_ps",
    "share",
    "merge_ps",
    "rtt_ps",
    "buffer",
    "fcs",
    "overhead_bytes",
)
"""Settings of an analysis that decide what a burst is."""

_SHOWN: Final[Mapping[str, Callable[[float | None], str]]] = {
    "ps": show.duration,
    "bytes": show.size,
    "bps": show.rate,
    "count": show.count,
    "per_s": lambda value: show.NOTHING if value is None else f"{show.count(round(value, 3) if value < 100 else round(value))} /s",
    "share": lambda value: show.NOTHING if value is None else f"{100 * value:.3g} %",
}


@dataclass(frozen=True)
class Row:
    """One number before and after.

    Attributes
    ----------
    port : str
        The port, as it is called after; empty for the whole trace.
    what : str
        Name of the number.
    unit : str
        ``ps``, ``bytes``, ``bps``, ``count``, ``per_s`` or ``share``.
    before, after : float or None
        None where the trace does not tell.
    low, high : float or None
        Interval (95 %) of ``after - before`` by the spread of ten stretches of each trace; None where there are too few bursts.
    """

    port: str
    what: str
    unit: str
    before: float | None
    after: float | None
    low: float | None = None
    high: float | None = None

    @property
    def change(self) -> float | None:
        """Relative change, or for shares the difference; None where it is unknown, or there was nothing before."""
        if self.before is None or self.after is None:
            return None
        if self.unit == "share":
            return self.after - self.before
        return self.after / self.before - 1 if self.before else None


def is_report(path: str | os.PathLike[str]) -> bool:
    """Return True for a file that `fanin analyze -o FILE.json` may have written, by its name."""
    return Path(path).suffix.lower() == ".json" and Path(path).is_file()


def _document(given: Analysis | Mapping[str, Any] | str | os.PathLike[str]) -> tuple[str, dict[str, Any]]:
    """Return the name and the report of an analysis.

    Raises
    ------
    ValueError
        A file that is no report.
    OSError
        It cannot be read.
    """
    if isinstance(given, str | os.PathLike):
        name = os.fspath(given)
        try:
            found = json.loads(Path(given).read_text(encoding="utf-8"))
        except (UnicodeDecodeError, json.JSONDecodeError) as error:
            raise ValueError(f"{name}: is no JSON ({error}); accepted: a report of `fanin analyze -o FILE.json`") from None
        schema = found.get("schema") if isinstance(found, dict) else None
        if schema != _REPORT or not isinstance(found.get("ports"), list):
            what = f"has the schema '{schema}'" if schema else "has no schema"
            raise ValueError(f"{name}: {what}; accepted: {_REPORT}, a report of `fanin analyze -o FILE.json`")
        return name, found
    document = dict(given) if isinstance(given, Mapping) else given.document
    return ", ".join(Path(source["path"]).name for source in document["sources"]), document


def _span(port: Mapping[str, Any]) -> int:
    first, last = port["first_ps"], port["last_ps"]
    return int(last - first) if first is not None and last is not None else 0


def _per_stretch(port: Mapping[str, Any], weigh: Callable[[Mapping[str, Any]], float]) -> list[float] | None:
    """Return by stretch of a port's trace the sum over the bursts that begin in it, per second; None where too few are known."""
    span, known = _span(port), known_span(port)
    if port["bursts_left_out"] or len(port["bursts"]) < FEW or not known:
        return None
    sums = [0.0] * STRETCHES
    for burst in port["bursts"]:
        at = int((burst["start_ps"] - port["first_ps"]) * STRETCHES // (span + 1))
        sums[min(max(at, 0), STRETCHES - 1)] += weigh(burst)
    return [total / (known / STRETCHES / 1e12) for total in sums]


def _interval(
    before: Mapping[str, Any], after: Mapping[str, Any], weigh: Callable[[Mapping[str, Any]], float]
) -> tuple[float | None, float | None]:
    """Return the interval of the difference of two rates, by batch means; None where there are too few bursts."""
    import numpy as np

    from fanin.statistics.means import estimated_difference

    of = [_per_stretch(port, weigh) for port in (before, after)]
    if of[0] is None or of[1] is None or len({*of[0], *of[1]}) == 1:
        return None, None
    return estimated_difference(np.array(of[0]), np.array(of[1])).ends(_CONFIDENCE)


def _median(values: list[float]) -> float | None:
    return statistics.median_low(values) if values else None


def _port_rows(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Row]:
    name = after["port"]
    rows = []

    def add(what: str, unit: str, value: Callable[[Mapping[str, Any]], float | None], interval: Any = (None, None)) -> None:
        rows.append(Row(name, what, unit, value(before), value(after), *interval))

    def rate(value: float | None, port: Mapping[str, Any]) -> float | None:
        return None if value is None or not known_span(port) else value / (known_span(port) / 1e12)

    def part(count: float | None, port: Mapping[str, Any]) -> float | None:
        return None if count is None or not port["records"] else count / port["records"]

    def peaks(port: Mapping[str, Any]) -> list[float]:
        return [burst["peak_bytes"] for burst in port["bursts"] if burst["peak_bytes"] is not None]

    add("length of the trace", "ps", _span)
    add("packets", "per_s", lambda port: rate(port["records"], port))
    add("largest queue", "bytes", lambda port: port["peak_bytes"])
    add("bursts", "count", lambda port: port["bursts_found"])
    add("bursts", "per_s", lambda port: rate(port["bursts_found"], port), _interval(before, after, lambda _: 1.0))
    share = _interval(before, after, lambda burst: burst["duration_ps"] / 1e12)
    add("time in bursts", "share", lambda port: port["burst_ps"] / known_span(port) if known_span(port) else None, share)
    add("peak of the median burst", "bytes", lambda port: _median(peaks(port)))
    add("length of the median burst", "ps", lambda port: _median([burst["duration_ps"] for burst in port["bursts"]]))
    add("longest burst", "ps", lambda port: max((burst["duration_ps"] for burst in port["bursts"]), default=None))
    add("drops", "count", lambda port: port["dropped"])
    add("packets dropped", "share", lambda port: part(port["dropped"], port))
    add("packets marked", "share", lambda port: part(port["marked"], port))
    return [row for row in rows if row.before is not None or row.after is not None]


def _trace_rows(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Row]:
    """Return what is known of the whole trace: waits of two captures, transfers over TCP."""
    rows = []
    waits = [(document["pair"] or {}).get("waiting") for document in (before, after)]
    for key, what in (("mean_ps", "mean wait"), ("p99_ps", "99 % of waits"), ("max_ps", "longest wait")):
        rows.append(Row("", what, "ps", *((found or {}).get(key) for found in waits)))
    sums = [document.get("transfers") or {} for document in (before, after)]
    for key, what in (("p50_ps", "median transfer"), ("p99_ps", "99 % of transfers"), ("max_ps", "slowest transfer")):
        rows.append(Row("", what, "ps", *((found.get("took") or {}).get(key) for found in sums)))
    rows.append(Row("", "transfers", "count", *(found.get("transfers") for found in sums)))
    again = [found["resent"] / found["segments"] if found.get("segments") else None for found in sums]
    rows.append(Row("", "segments sent again", "share", *again))
    rows.append(Row("", "transfers with timeouts", "count", *(found.get("with_timeouts") for found in sums)))
    return [row for row in rows if row.before is not None or row.after is not None]


class AnalysisChange:
    """What differs between two analyses.

    Attributes
    ----------
    names : tuple of str
        The traces, before and after.
    warnings : list of str
        What makes them hard to compare.
    rows : list of Row
        The numbers.
    """

    def __init__(self, names: tuple[str, str], warnings: list[str], rows: list[Row]) -> None:
        self.names, self.warnings, self.rows = names, warnings, rows

    @property
    def document(self) -> dict[str, Any]:
        """Everything, as docs/compare.md describes it."""
        rows = [{**asdict(row), "change": row.change} for row in self.rows]
        return {"schema": SCHEMA, "before": self.names[0], "after": self.names[1], "warnings": self.warnings, "rows": rows}

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return everything as JSON, and write it to `path` if given."""
        text = json.dumps(self.document, indent=1, ensure_ascii=False) + "\n"
        if path is not None:
            files.write_text(path, text)
        return text

    @property
    def frame(self) -> pl.DataFrame:
        """One row per number: port, what, unit, before, after, change, low and high."""
        import polars as pl

        kinds: dict[str, pl.DataType] = {"port": pl.String(), "what": pl.String(), "unit": pl.String()}
        kinds |= dict.fromkeys(("before", "after", "low", "high", "change"), pl.Float64())
        return pl.DataFrame(self.document["rows"], schema=kinds)

    @property
    def answer(self) -> str:
        """What matters most, in one sentence: of the port that comes first, bursts, time in them, and drops."""
        first = next((row.port for row in self.rows if row.port), "")
        parts = []
        for row in self.rows:
            matters = (row.unit == "per_s" and row.what == "bursts") or row.what in ("time in bursts", "packets dropped")
            if row.port == first and matters and row.before is not None and row.after is not None:
                _, before, after, *_ = _cells(row)
                same = " (more than its spread)" if row.low is not None and row.high is not None and row.low * row.high > 0 else ""
                parts.append(f"{row.what} {before} before, {after} after{same}")
        return f"{first}: {'; '.join(parts)}."

    def tables(self) -> list[tuple[str, tuple[list[str], list[list[str]]]]]:
        """Return a table per port and one of the whole trace, each with its title."""
        made = []
        for port in dict.fromkeys(row.port for row in self.rows):
            rows = [row for row in self.rows if row.port == port]
            head = ["", "Before", "After", "Change", "95 % of it"]
            made.append((port or "The whole trace", (head, [_cells(row) for row in rows])))
        return made


def _cells(row: Row) -> list[str]:
    shown = _SHOWN[row.unit]
    name = f"{row.what} per second" if row.unit == "per_s" else row.what
    change = row.change
    if change is None:
        text = show.NOTHING
    elif row.unit == "share":
        text = f"{100 * change:+.3g} points"
    else:
        text = show.change(change)
    known = show.NOTHING
    if row.low is not None and row.high is not None:
        if row.unit == "share":
            known = f"{100 * row.low:+.3g} … {100 * row.high:+.3g} points"
        elif row.before:
            known = f"{100 * row.low / row.before:+.3g} … {100 * row.high / row.before:+.3g} %"
    return [name, shown(row.before), shown(row.after), text, known]


def _differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return what makes two reports hard to compare."""
    said = []
    settings = [document["settings"] for document in (before, after)]
    for key in _SETTINGS:
        values = [of.get(key) for of in settings]
        if values[0] != values[1]:
            said.append(f"setting {key} was {json.dumps(values[0])} and is {json.dumps(values[1])}: bursts are not the same thing")
    for when, document in (("before", before), ("after", after)):
        trust = document["plausibility"]["trust"]
        if trust != "good":
            said.append(f"trust in the trace {when} is {trust}: {document['plausibility']['words']}")
    return said


def _paired(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[list[tuple[Any, Any]], list[str]]:
    """Return the ports of both by name, or the only ones of each, and what has no counterpart."""
    old, new = ({port["port"]: port for port in document["ports"]} for document in (before, after))
    if len(old) == len(new) == 1:
        [(was, one)], [(now, other)] = old.items(), new.items()
        return [(one, other)], [] if was == now else [f"port {was} is compared with port {now}, the only one of each"]
    both = [(old[name], new[name]) for name in new if name in old]
    lone = [f"port {name} is only in the trace before" for name in old if name not in new]
    lone += [f"port {name} is only in the trace after" for name in new if name not in old]
    return both, lone


def _of_ports(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return what makes a port hard to compare with itself."""
    said = []
    name = after["port"]
    if before["rate_bps"] and after["rate_bps"] and abs(after["rate_bps"] / before["rate_bps"] - 1) > 0.02:
        said.append(f"{name}: its speed was {show.rate(before['rate_bps'])} and is {show.rate(after['rate_bps'])}")
    spans = [_span(port) for port in (before, after)]
    if all(spans) and max(spans) > 2 * min(spans):
        said.append(
            f"{name}: one trace is {max(spans) / min(spans):.3g} times as long as the other: of the longer one largest queue "
            "and longest burst are larger by chance; look at what is per second, shares and medians"
        )
    words = [port["detect"]["words"] for port in (before, after)]
    if words[0] != words[1]:
        said.append(f"{name}: a burst was '{words[0]}' and is '{words[1]}': give both analyses the same --above")
    if any(port["bursts_left_out"] for port in (before, after)):
        said.append(f"{name}: not all bursts are in the reports (--max-bursts): medians are of the highest")
    return said


def between(
    before: Analysis | Mapping[str, Any] | str | os.PathLike[str], after: Analysis | Mapping[str, Any] | str | os.PathLike[str]
) -> AnalysisChange:
    """Return what changed from one analysis to another, port by port.

    Parameters
    ----------
    before, after : Analysis, mapping or path-like
        Analyses, their documents, or files that `Analysis.to_json` wrote.

    Raises
    ------
    ValueError
        A file is no report, or the traces have no port in common.
    OSError
        A file cannot be read.

    Examples
    --------
    >>> between("monday.json", "tuesday.json").frame  # doctest: +SKIP
    """
    (was, old), (now, new) = _document(before), _document(after)
    both, lone = _paired(old, new)
    if not both:
        ports = [", ".join(port["port"] for port in document["ports"][:10]) or "none" for document in (old, new)]
        raise ValueError(f"{was} and {now} have no port in common; before: {ports[0]}; after: {ports[1]}")
    warnings = _differing(old, new) + lone
    rows = _trace_rows(old, new)
    for one, other in both:
        warnings += _of_ports(one, other)
        rows += _port_rows(one, other)
    return AnalysisChange((was, now), warnings, rows)
