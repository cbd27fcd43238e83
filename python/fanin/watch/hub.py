"""What is known by now of all sources: bursts, ports, states; bounded, however long it goes on."""

from __future__ import annotations

import json
import threading
import time
from array import array
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from fanin.analysis import clock as clocks
from fanin.analysis import tables
from fanin.text import show
from fanin.watch.posting import Poster
from fanin.watch.sources import Source, State

COLUMNS: Final = 240
"""Stretches of time in the strip."""

RECENT: Final = 60
"""Stretches over which the recent peak goes."""

_STRIPS: Final = 64
"""Ports that the page shows, those with the worst of late."""

_LISTED: Final = 100
"""Bursts that the page shows, the latest."""

_MOST: Final = 2**63 - 1
"""Largest count of a stretch of time."""

_CULPRITS: Final = 5
_ENDED: Final = 256
"""Ends of bursts that are remembered by port, for the time in bursts of late."""

DURATIONS: Final = (1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 1.0)
"""Upper bounds of the classes of durations [s]."""

PEAKS: Final = (1e4, 3e4, 1e5, 3e5, 1e6, 3e6, 1e7, 3e7, 1e8)
"""Upper bounds of the classes of peaks [B]."""

_STATE_WORDS: Final[dict[State, str]] = {
    "waiting": "nothing has come yet",
    "alive": "records come",
    "stalled": "no more records come: unknown since",
    "ended": "the end",
    "refused": "cannot be read",
}


Cell = tuple[int, int | None, int, int, int]
"""What is known of a port in a stretch of time: its number, largest queue or None, records, bytes, dropped packets."""


@dataclass(frozen=True)
class Burst:
    """A burst that has ended, or, as `open`, one that has lasted long enough to be told of.

    Attributes
    ----------
    number : int
        From 1, in the order in which they became known.
    origin_s : int
        Second from which the times of `report` count.
    report : mapping
        As ``fanin analyze --json`` has it.
    """

    number: int
    source: str
    port: str
    origin_s: int
    report: dict[str, Any]

    @property
    def end_s(self) -> float:
        """Its end [s]."""
        return float(self.origin_s + self.report["end_ps"] / 1e12)

    def culprits(self) -> list[dict[str, Any]]:
        """Return its flows, the largest first: those in the queue at the peak, or without a queue those that arrived."""
        found: list[dict[str, Any]] = self.report["direct"] or self.report["indirect"]
        return found

    def when(self) -> str:
        """Return when it began."""
        clock = clocks.of_document({"origin_s": self.origin_s})
        return tables.moment(self.report["start_ps"]) if clock is None else clock.text(self.report["start_ps"])


class Port:
    """A port of a source; its memory is all there from the beginning.

    Attributes
    ----------
    report : mapping
        Its counts, as the core has them.
    """

    def __init__(self, source: str, name: str) -> None:
        self.source = source
        self.name = name
        self.report: dict[str, Any] = {}
        # Stretches that are over, each at its place; -1: nothing is known.
        self._numbers, self._queues, self._records, self._arrived, self._dropped = (array("q", [-1] * COLUMNS) for _ in range(5))
        # Ends of bursts [s], and their durations [s].
        self._ends, self._lasted = array("d", [float("-inf")] * _ENDED), array("d", [0.0] * _ENDED)
        self._bursts = 0
        self._told: dict[str, int] = {}

    def never_less(self, count: str, value: int) -> int:
        """Return the largest value of a count so far; late records may show that less was unknown."""
        self._told[count] = max(value, self._told.get(count, 0))
        return self._told[count]

    def add_cell(self, number: int, queue: int | None, records: int, arrived: int, dropped: int) -> None:
        """Take what is known of a stretch of time that is over, or of one more part of it."""
        at, waited = number % COLUMNS, -1 if queue is None else queue
        if self._numbers[at] == number:
            waited = max(waited, self._queues[at])
            records, arrived, dropped = records + self._records[at], arrived + self._arrived[at], dropped + self._dropped[at]
        self._numbers[at], self._queues[at], self._records[at] = number, min(waited, _MOST), records
        self._arrived[at], self._dropped[at] = min(arrived, _MOST), min(dropped, _MOST)

    def add_burst(self, end_s: float, lasted_s: float) -> None:
        """Take the end and the duration of a burst."""
        at = self._bursts % _ENDED
        self._ends[at], self._lasted[at] = end_s, lasted_s
        self._bursts += 1

    def known_cells(self) -> Iterator[Cell]:
        """Return the stretches of which something is known, the one that is open included."""
        all_cells = zip(self._numbers, self._queues, self._records, self._arrived, self._dropped, strict=True)
        for number, queue, records, arrived, dropped in all_cells:
            if number >= 0:
                yield number, None if queue < 0 else queue, records, arrived, dropped
        if (cell := self.report.get("cell")) is not None:
            yield tuple(cell)

    def recent_peak(self, last: int, columns: int) -> int | None:
        """Return the largest queue of the last stretches up to `last`; None: none is known."""
        return max(
            (queue for number, queue, *_ in self.known_cells() if queue is not None and last - columns < number <= last),
            default=None,
        )

    def recent_drops(self, last: int) -> int:
        """Return how many packets were dropped in the strip that ends with `last`."""
        return sum(dropped for number, _, _, _, dropped in self.known_cells() if last - COLUMNS < number <= last)

    def in_bursts(self, end_s: float, seconds: float) -> float:
        """Return how long it was in bursts in the `seconds` before a time [s]."""
        both = zip(self._ends, self._lasted, strict=True) if self._bursts else ()
        return sum(lasted for end, lasted in both if end_s - seconds < end <= end_s)


@dataclass
class Classes:
    """Counts by class of a value."""

    bounds: tuple[float, ...]
    counts: list[int] = field(default_factory=list)
    total: float = 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self.counts = self.counts or [0] * (len(self.bounds) + 1)
        self.counts[sum(value > bound for bound in self.bounds)] += 1
        self.total += value

    def cumulated(self) -> list[tuple[str, int]]:
        """Return how many values are up to each bound."""
        counts = self.counts or [0] * (len(self.bounds) + 1)
        names = [*(f"{bound:g}" for bound in self.bounds), "+Inf"]
        return [(name, sum(counts[: place + 1])) for place, name in enumerate(names)]


class Hub:
    """What is known by now of all sources.

    Parameters
    ----------
    sources : sequence of Source
        They.
    cell_s : float
        Width of a stretch of time in the strip [s].
    keep : int
        Bursts that are remembered, the latest.
    """

    def __init__(self, sources: list[Source], *, cell_s: float, keep: int) -> None:
        self.sources = sources
        self.cell_s = cell_s
        self.bursts: deque[Burst] = deque(maxlen=keep)
        self.found = 0
        self.ports: dict[tuple[str, str], Port] = {}
        self.reports: dict[str, dict[str, Any]] = {}
        self.gaps: deque[dict[str, Any]] = deque(maxlen=keep)
        self.alerts: deque[dict[str, Any]] = deque(maxlen=50)
        self.durations = {source.name: Classes(DURATIONS) for source in sources}
        self.peaks = {source.name: Classes(PEAKS) for source in sources}
        self.cells_lost = 0
        self.posters: list[Poster] = []
        short = [Path(source.name).name or source.name for source in sources]
        self._short = {s.name: name if short.count(name) == 1 else s.name for s, name in zip(sources, short, strict=True)}
        self.started = time.time()
        self.lock = threading.RLock()
        self.turned = threading.Condition(self.lock)
        self.turn = 0

    def gather(self) -> Iterator[list[Burst]]:
        """Take what has ended at each source since the last call; return the bursts, few at a time.

        What an interrupted call has not returned comes first: it may be kept as read.
        """
        for source in self.sources:
            yield from self._parts(source)
            source.settle()
            report = source.take()
            with self.lock:
                self._see(source, report)
            yield from self._parts(source)
        with self.turned:
            self.turn += 1
            self.turned.notify_all()

    def _parts(self, source: Source) -> Iterator[list[Burst]]:
        while source.parts:
            taken = json.loads(source.parts[0])
            with self.lock:
                source.parts.popleft()
                bursts = self._take(source, taken)
            yield bursts

    def _see(self, source: Source, report: dict[str, Any]) -> None:
        self.reports[source.name] = report
        source.heard(report["problems"] or ())
        self._warn(source, report)
        for port in report["ports"]:
            self._port(source, port["port"]).report = port

    def _take(self, source: Source, taken: dict[str, Any]) -> list[Burst]:
        self.cells_lost += taken["cells_lost"]
        for name, cell in taken["cells"]:
            self._port(source, name).add_cell(*cell)
        for gap in taken["gaps"]:
            self.gaps.append({"source": source.name, **gap})
        return [self._burst(source, one) for one in taken["bursts"]]

    def _burst(self, source: Source, one: dict[str, Any]) -> Burst:
        self.found += 1
        burst = Burst(self.found, source.name, one["port"], one["origin_s"], one["burst"])
        self.bursts.append(burst)
        lasted = burst.report["duration_ps"] / 1e12
        self._port(source, burst.port).add_burst(burst.end_s, lasted)
        self.durations[source.name].add(lasted)
        if burst.report["peak_bytes"] is not None:
            self.peaks[source.name].add(burst.report["peak_bytes"])
        return burst

    def _warn(self, source: Source, report: dict[str, Any]) -> None:
        """Say on the terminal, each once for a source, that its clock is not to be trusted, and what its counters contradict."""
        for code, port, words, hint in report.get("contradictions", ()):
            place = source.name if port == source.name else f"{source.name}: {port}"
            source.warn(code, f"{place}: {words}; {hint}")
        final = source.done or not source.once  # on the way to its end a port may only be late
        for port in report["ports"]:
            if port.get("unknown_now") == "gap" and final:
                words = "no records come while others of the source go on: its queue is unknown"
                source.warn("gap", f"{source.name}: {port['port']}: {words}")
            if port.get("unknown_now") == "late":
                words = "records come with times before what is known: they are left out, and its queue is unknown"
                source.warn("late", f"{source.name}: {port['port']}: {words} (a clock set back, or a repetition)")
            if port["set_back"]:
                source.warn("set_back", f"{source.name}: {port['port']}: its clock was set back")
        if report.get("leaps"):
            source.warn("leaps", f"{source.name}: times leapt ahead: a pause, or a clock set forward")

    def _port(self, source: Source, name: str) -> Port:
        key = source.name, name
        if (port := self.ports.get(key)) is None:
            port = self.ports[key] = Port(source.name, name)
        return port

    def latest(self, source: str) -> tuple[float, int]:
        """Return the time of the latest record of a source [s], and the stretch that it is in."""
        report = self.reports.get(source, {"origin_s": 0, "latest_ps": 0})
        seconds = report["origin_s"] + report["latest_ps"] / 1e12
        return seconds, int((report["origin_s"] * 10**12 + report["latest_ps"]) // int(self.cell_s * 1e12))

    def known(self, port: Port) -> bool:
        """Whether anything is known of a port at present."""
        source = next(source for source in self.sources if source.name == port.source)
        return source.state()[0] == "alive" and bool(port.report) and not port.report.get("unknown_now")

    def by_severity(self) -> list[Port]:
        """Return the ports, the worst of late first: drops, time in bursts, largest queue."""

        def worst(port: Port) -> tuple[Any, ...]:
            seconds, last = self.latest(port.source)
            drops, time_in = port.recent_drops(last), port.in_bursts(seconds, COLUMNS * self.cell_s)
            return -drops, -time_in, -(port.recent_peak(last, COLUMNS) or 0), -port.report.get("bursts", 0), port.source, port.name

        return sorted(self.ports.values(), key=worst)

    # -- for the page -----------------------------------------------------------------------------------------------------------

    def document(self) -> dict[str, Any]:
        """Return all that the page shows, in the words in which it does."""
        with self.lock:
            ports = self.by_severity()
            return {
                "turn": self.turn,
                "found": self.found,
                "cell_s": self.cell_s,
                "sources": [self._source_row(source) for source in self.sources],
                "head": [
                    "Port",
                    "State",
                    "Queue now",
                    "Largest, lately",
                    "Largest",
                    "Bursts",
                    "In bursts, lately",
                    "Drops",
                    "Unknown",
                ],
                "ports": [self._port_row(port) for port in ports],
                "strips": [self._strip(port) for port in ports[:_STRIPS]],
                "columns": COLUMNS,
                "burst_head": ["Burst", "Began", "Port", "Duration", "Peak", "Arrived", "Drops", "Flows", "First culprit", "Law"],
                "bursts": [self._burst_row(burst) for burst in list(self.bursts)[: -_LISTED - 1 : -1]],
                "alerts": [self._alert_row(alert) for alert in list(self.alerts)[::-1]],
                "troubles": [f"{poster}: {poster.trouble}" for poster in self.posters if poster.trouble is not None],
            }

    def name(self, source: str, port: str) -> str:
        """Return the name of a port among those of all sources."""
        return port if len(self.sources) == 1 else f"{port} ({self._short[source]})"

    def _source_row(self, source: Source) -> dict[str, Any]:
        state, since = source.state()
        report = self.reports.get(source.name, {})
        said = [f"{show.size(source.counts.bytes)} read"]
        said += [f"{show.many(report['refused'], 'row')} refused"] if report.get("refused") else []
        said += [show.many(source.counts.lost, "datagram") + " lost"] if source.counts.lost else []
        said += self.out_of_time(source.name)
        problems = [source.problem] if source.problem else list(report.get("problems") or [])[-1:]
        problems += self.contradictions(source.name)
        return {
            "name": source.name,
            "state": state,
            "since": since,
            "words": _STATE_WORDS[state],
            "kind": report.get("kind"),
            "said": ", ".join(said),
            "problems": problems,
        }

    def out_of_time(self, source: str) -> list[str]:
        """Return what a source's records say of its clock that is not so, or was mended: in words."""
        ports = self.reports.get(source, {}).get("ports", ())
        far, late, set_back = (sum(port[key] for port in ports) for key in ("far", "late", "set_back"))
        leaps = self.reports.get(source, {}).get("leaps", 0)
        said = [f"{show.many(late, 'record')} late"] if late else []
        said += [f"{show.many(far, 'record')} far ahead left out"] if far else []
        said += [f"clock set back {show.many(set_back, 'time')}"] if set_back else []
        return said + ([f"times leapt ahead {show.many(leaps, 'time')} (a pause, or a clock set forward)"] if leaps else [])

    def contradictions(self, source: str) -> list[str]:
        """Return what a source's counters contradict, in words."""
        found = self.reports.get(source, {}).get("contradictions", ())
        return [f"{source if port == source else self.name(source, port)}: {words}; {hint}" for _, port, words, hint in found]

    def _port_row(self, port: Port) -> dict[str, Any]:
        report = port.report
        seconds, last = self.latest(port.source)
        known = self.known(port)
        inside = report.get("open_since_ps") is not None
        state = "unknown" if not known else "in a burst" if inside else "quiet"
        why = {"late": ": records are late", "gap": ": no records"}.get(report.get("unknown_now") or "", "")
        window = min(COLUMNS * self.cell_s, max(self.cell_s, seconds - self._first(port)))
        return {
            "state": state,
            "cells": [
                self.name(port.source, port.name),
                state + (why if state == "unknown" else ""),
                show.size(report.get("queue_bytes")) if known else "unknown",
                self.bounded(port, port.recent_peak(last, RECENT)),
                self.bounded(port, report.get("peak_bytes")),
                self.bursts_of(report),
                f"{port.in_bursts(seconds, COLUMNS * self.cell_s) / window:.2%}" if port.report.get("records") else show.NOTHING,
                tables.drops(report),
                self.unknown_time(report),
            ],
        }

    @staticmethod
    def bursts_of(report: dict[str, Any]) -> str:
        """Return how many bursts a port had; unknown if there is none, and nothing is known of its time or of that of its drops."""
        count, doubts = report.get("bursts"), report.get("unknown_ps") and (report.get("dropped") or not report["known"])
        return "unknown" if not count and doubts else show.count(count)

    @staticmethod
    def unknown_time(report: dict[str, Any]) -> str:
        """Return how long nothing was known of a port, and why: the longest first."""
        found = sorted((report.get("unknown_ps") or {}).items(), key=lambda one: (-one[1], one[0]))
        if not found:
            return "0"
        total = show.duration(sum(ps for _, ps in found))
        parts = [why if len(found) == 1 else f"{why} {show.duration(ps)}" for why, ps in found]
        return f"{total} ({', '.join(parts)})"

    @staticmethod
    def bounded(port: Port, most: int | None) -> str:
        """Return the largest queue of a port; one that counters only happened to see is a lower bound, and says so."""
        text = show.size(most)
        return f"≥ {text}" if most is not None and port.report.get("peak_at_least") else text

    def _first(self, port: Port) -> float:
        return min((number * self.cell_s for number, *_ in port.known_cells()), default=float("inf"))

    def _strip(self, port: Port) -> dict[str, Any]:
        """Return a row of the strip: level by stretch, -1 where nothing is known; and where packets were dropped."""
        _, last = self.latest(port.source)
        level, drops, queue = [-1] * COLUMNS, [0] * COLUMNS, False
        for number, most, _, arrived, dropped in port.known_cells():
            place = COLUMNS - 1 - (last - number)
            if 0 <= place < COLUMNS:
                queue = queue or most is not None
                level[place] = arrived if most is None else most
                drops[place] = dropped
        return {"name": self.name(port.source, port.name), "queue": queue, "level": level, "drops": drops}

    def _alert_row(self, alert: dict[str, Any]) -> str:
        seconds = int(alert["start_s"])
        clock = clocks.of_document({"origin_s": seconds})
        began = f"{alert['start_s']:.3f} s" if clock is None else clock.text(round((alert["start_s"] - seconds) * 1e12))
        said = [began, show.duration(round(alert["duration_s"] * 1e12)) + (" so far" if alert["open"] else "")]
        least = "≥ " if alert.get("peak_at_least") else ""
        said += [least + show.size(alert["peak_bytes"])] if alert.get("peak_bytes") is not None else []
        return f"{alert['rule']}: {self.name(alert['source'], alert['port'])}, {', '.join(said)}"

    def _burst_row(self, burst: Burst) -> dict[str, Any]:
        report = burst.report
        _, ((_, _, lasted, peak, arrived, *_),) = tables.burst_rows({"bursts": [report], "estimate": None}, 1)
        culprits = burst.culprits()
        law = report["law"]
        verdict = {True: "holds", False: "does not hold", None: "undecided"}
        tables_of = [("Culprits", tables.culprit_rows(report, _CULPRITS)), ("Phases", tables.phase_rows(report))]
        return {
            "number": burst.number,
            "lost": bool(report["dropped_packets"]),
            "cells": [
                str(burst.number),
                burst.when(),
                self.name(burst.source, burst.port),
                lasted,
                peak,
                arrived,
                tables.drops(report),
                show.count(report["flows"]),
                f"{culprits[0]['name']} ({culprits[0]['share']:.0%})" if culprits else "unknown",
                f"{law['law']} {verdict[law['holds']]}" if law else show.NOTHING,
            ],
            "words": tables.law_line(report),
            "tables": [{"caption": caption, "head": head, "rows": rows} for caption, (head, rows) in tables_of if rows],
        }
