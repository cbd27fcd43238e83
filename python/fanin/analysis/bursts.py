"""Analysis of queue traces: bursts, phases, laws and culprits, of simulated ports and of real ones."""

from __future__ import annotations

import datetime
import html
import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack, cast

from fanin import _core, files
from fanin._core import TraceError
from fanin.analysis import tables
from fanin.analysis.clock import Clock, in_zone, of_document, read_zone
from fanin.analysis.settings import Settings, Source, chosen, described
from fanin.files import spool
from fanin.tables.recorded import Recorded
from fanin.text import show

if TYPE_CHECKING:
    import polars as pl
    from plotly.graph_objects import Figure

    from fanin.analysis.port_scenario import PortScenario
    from fanin.explain.captured import CapturedExplanation

__all__ = ["Analysis", "AnalysisProgress", "Source", "TraceError", "analyze", "explain", "records_kind"]

_MAX_POINTS: Final = 8000
"""Records of a figure that are drawn one by one; more are reduced to the smallest and largest of each part of the time."""

_ALL_RECORDS: Final = 50_000
"""Records of a burst that are read for its figure: with all of them it is known which flows stood in the queue."""

_MARGIN: Final = 0.15
"""Margin shown before and after a burst, as a share of its length."""

_U64, _F64, _STR, _U8, _BOOL, _TEXTS = "UInt64", "Float64", "String", "UInt8", "Boolean", "List"
"""Polars types by name: Polars itself is imported when a frame is asked for."""

_PORT: Final[Mapping[str, str]] = {
    "port": _STR,
    "records": _U64,
    "first_ps": _U64,
    "last_ps": _U64,
    "rate_bps": _U64,
    "rate_from": _STR,
    "overhead_bytes": _U64,
    "peak_bytes": _U64,
    "peak_ps": _U64,
    "bursts_found": _U64,
    "burst_ps": _U64,
    "unknown_ps": _U64,
    "dropped": _U64,
    "marked": _U64,
    "missing_bytes": _U64,
}
_BURST: Final[Mapping[str, str]] = {
    "index": _U64,
    "start_ps": _U64,
    "end_ps": _U64,
    "duration_ps": _U64,
    "peak_ps": _U64,
    "peak_bytes": _U64,
    "start_bytes": _U64,
    "records": _U64,
    "arrived_bytes": _U64,
    "dropped_packets": _U64,
    "dropped_bytes": _U64,
    "marked_packets": _U64,
    "rise_bps": _F64,
    "fall_bps": _F64,
    "gap_ps": _U64,
    "open": _BOOL,
    "cut": _BOOL,
    "flows": _U64,
    "notifications": _U64,
    "direct_unattributed_bytes": _U64,
    "indirect_unattributed_bytes": _U64,
    "words": _STR,
}
_PHASE: Final[Mapping[str, str]] = {
    "start_ps": _U64,
    "end_ps": _U64,
    "slope_bps": _F64,
    "low_bps": _F64,
    "high_bps": _F64,
    "records": _U64,
    "start_bytes": _F64,
    "end_bytes": _F64,
}
_LAW: Final[Mapping[str, str]] = {
    "law": _U8,
    "background": _STR,
    "background_flows": _U64,
    "first_round_bps": _F64,
    "bound_bps": _F64,
    "slope_bps": _F64,
    "low_bps": _F64,
    "high_bps": _F64,
    "phase": _U64,
    "last_phase": _U64,
    "holds": _BOOL,
    "evidence": _TEXTS,
    "words": _STR,
}
_ROUND: Final[Mapping[str, str]] = {
    "round": _U64,
    "start_ps": _U64,
    "end_ps": _U64,
    "flows": _U64,
    "packets": _U64,
    "bytes": _U64,
}
_NOTIFIED: Final[Mapping[str, str]] = {
    "name": _STR,
    "count": _U64,
    "repeated": _U64,
    "bytes": _U64,
    "first_ps": _U64,
    "last_ps": _U64,
}
_TRANSFER: Final[Mapping[str, str]] = {
    "flow": _STR,
    "start_ps": _U64,
    "took_ps": _U64,
    "complete": _BOOL,
    "reset": _BOOL,
    "bytes": _U64,
    "segments": _U64,
    "resent": _U64,
    "resent_bytes": _U64,
    "lost_before": _U64,
    "reordered": _U64,
    "timeouts": _U64,
    "timeout_ps": _U64,
    "probes": _U64,
    "syn_resent": _U64,
    "handshake_ps": _U64,
    "answered_after_ps": _U64,
    "stall_ps": _U64,
    "idle_ps": _U64,
    "words": _STR,
}
_TAKEN: Final[Mapping[str, str]] = {
    "path": _STR,
    "port": _STR,
    "interface": _STR,
    "direction": _STR,
    "to": _TEXTS,
    "hosts": _U64,
    "packets": _U64,
    "bytes": _U64,
    "flows": _U64,
    "round_trips": _U64,
    "rtt_low_ps": _U64,
    "rtt_high_ps": _U64,
    "why": _STR,
}
_CULPRIT: Final[Mapping[str, str]] = {"flow": _U64, "name": _STR, "bytes": _U64, "share": _F64}


_WAITING: Final[Mapping[str, str]] = {
    "packets": _U64,
    "mean_ps": _F64,
    "p50_ps": _U64,
    "p95_ps": _U64,
    "p99_ps": _U64,
    "max_ps": _U64,
    "max_at_ps": _U64,
}
_WAITING_FLOW: Final[Mapping[str, str]] = {
    "flow": _U64,
    "name": _STR,
    "packets": _U64,
    "dropped": _U64,
    "mean_ps": _F64,
    "max_ps": _U64,
}

_KINDS: Final = (".parquet", ".csv", ".jsonl", ".arrow")
"""Formats in which records can be written."""


class AnalysisProgress(TypedDict):
    """What a progress function receives about ten times a second.

    Attributes
    ----------
    done : float
        Share of the trace that has been read, from 0 to 1.
    records : int
        Records read.
    wall_s : float
        Time since the start [s].
    """

    done: float
    records: int
    wall_s: float


def _paths(source: Source) -> list[str]:
    if isinstance(source, Recorded):
        return [str(source.path)]
    if isinstance(source, str | os.PathLike):
        return [os.fspath(source)]
    return [os.fspath(path) for path in source]


def _texts(given: str | Sequence[str] | None) -> list[str] | None:
    return [given] if isinstance(given, str) else None if given is None else list(given)


def _asked(source: Source, settings: Settings) -> tuple[str, spool.Spooled, datetime.tzinfo | None]:
    """Return what is asked of the core, the files that it reads, and the zone of dates."""
    if isinstance(source, Sequence) and not isinstance(source, str) and not source:
        raise ValueError("no file is given")
    given = chosen(settings)
    zone, behind = given.pop("zone"), given.pop("behind")
    shown_in = read_zone(zone or "UTC")
    given |= {name: _texts(given[name]) for name in ("port", "to", "interface")}
    given |= {name: in_zone(given[name], shown_in) for name in ("start", "stop")}
    if isinstance(given["columns"], Mapping):
        given["columns"] = dict(given["columns"])
    before = _paths(source)
    spooled = spool.spool([*before, *([] if behind is None else _paths(behind))])
    paths = {"paths": spooled.paths[: len(before)], "behind": spooled.paths[len(before) :] or None}
    text = json.dumps({**paths, "shown": spooled.shown, **given})
    return text, spooled, shown_in


def analyze(
    source: Source, *, progress: Callable[[AnalysisProgress], None] | None = None, **settings: Unpack[Settings]
) -> Analysis:
    """Find the bursts of a trace: their phases and slopes, the law that they follow, the flows that made them.

    The trace is read once, in bounded memory. Other Python threads go on meanwhile; Ctrl-C raises `KeyboardInterrupt`.
    docs/analyze.md says what can be read, and what each number means.

    Parameters
    ----------
    source : Result, path-like or sequence of path-like
        A result folder; or files of a format that docs/analyze.md lists, recognised by their content, which are
        one trace. ``-`` is standard input; what comes from it or from a pipe is kept in a temporary file.
    **settings
        As in `fanin.analysis.settings.Settings`.
    progress : callable, optional
        Called with an `AnalysisProgress` about ten times a second; what it raises ends the analysis.

    Returns
    -------
    Analysis
        The report.

    Raises
    ------
    TraceError
        The trace cannot be read, or a setting cannot be used; everything that is wrong is in its ``problems``.
    ValueError
        `zone` is none, or the trace has no dates.
    OSError
        A pipe cannot be read, or there is no room for what comes out of it.

    Examples
    --------
    >>> analysis = fanin.analyze("switch7.csv", rate="10Gbps", columns="time=ts:ns,queue=qlen:KB")  # doctest: +SKIP
    >>> analysis.bursts.sort("peak_bytes").tail(3)  # doctest: +SKIP
    """
    text, spooled, shown_in = _asked(source, settings)
    report = _core.analyze(text, cast("Callable[[dict[str, Any]], None] | None", progress))
    found = Analysis(report, text, spooled, shown_in)
    if (zone := settings.get("zone")) is not None and found.clock is None:
        raise ValueError(f"zone: '{zone}' has no effect: the times of this trace are no dates")
    return found


described(analyze)


def _explained(settings: str, flow: str | None, progress: Callable[[AnalysisProgress], None] | None = None) -> CapturedExplanation:
    from fanin.explain.captured import CapturedExplanation

    shown = cast("Callable[[dict[str, Any]], None] | None", progress)
    return CapturedExplanation(json.loads(_core.explain_capture(settings, flow, shown)))


def explain(
    source: Source,
    flow: str | None = None,
    *,
    progress: Callable[[AnalysisProgress], None] | None = None,
    **settings: Unpack[Settings],
) -> CapturedExplanation:
    """Say where the time of a transfer in two captures went, without an analysis of the port: see `Analysis.explain`."""
    text, spooled, _ = _asked(source, settings)
    found = _explained(text, flow, progress)
    del spooled  # held until here: its files are gone with it
    return found


def records_kind(path: Path) -> str:
    """Return how records are written to a file of that name."""
    kind = path.suffix.lower()
    if kind not in _KINDS:
        raise ValueError(f"{path}: ends in none of {', '.join(_KINDS)}")
    return kind


def _frame(rows: list[dict[str, Any]], schema: Mapping[str, str]) -> pl.DataFrame:
    import polars as pl

    types = {name: pl.List(pl.String()) if kind == _TEXTS else getattr(pl, kind)() for name, kind in schema.items()}
    return pl.DataFrame([{name: row.get(name) for name in schema} for row in rows], schema=types)


class Analysis:
    """What `fanin.analyze` found.

    Times count in picoseconds from the trace's zero (or from second `origin_s` of its clock), sizes in frame bytes, rates in
    bit/s of frame bytes.

    Attributes
    ----------
    document : dict
        Everything, as docs/analysis-report.md describes it; `to_json` writes it.
    """

    document: dict[str, Any]

    def __init__(
        self, report: str, settings: str, spooled: spool.Spooled | None = None, zone: datetime.tzinfo | None = datetime.UTC
    ) -> None:
        self.document = json.loads(report)
        self._text = report
        self._settings = settings
        self._spooled = spooled  # figures read the trace again
        self._zone = zone

    # -- what there is ----------------------------------------------------------------------------------------------

    @property
    def notes(self) -> list[str]:
        """What is to be said of the trace: guessed columns, records put in order, packets without a stamp."""
        return [str(note) for note in self.document["notes"]]

    @property
    def plausibility(self) -> dict[str, Any]:
        """Trust in the result (``trust``, ``words``), and why (``findings``), as docs/analysis-report.md describes it."""
        found: dict[str, Any] = self.document["plausibility"]
        return found

    @cached_property
    def taken(self) -> pl.DataFrame:
        """One row per interface and direction of captures: its port (null: left out), why, packets, bytes, flows, round trips."""
        rows = [
            {"path": source["path"], **stream}
            for source in self.document["sources"]
            for streams in [source["taken"] or {"streams": [], "left_out": []}]
            for stream in streams["streams"] + streams["left_out"]
        ]
        return _frame(rows, _TAKEN)

    @property
    def origin_s(self) -> int:
        """Second of the trace's own clock from which times count; 0 where they are the trace's own."""
        return int(self.document["origin_s"])

    @property
    def clock(self) -> Clock | None:
        """Dates of the trace's times: ``clock.text(start_ps)``; None where they are no dates."""
        return of_document(self.document, self._zone)

    def port(self, name: str | None = None) -> dict[str, Any]:
        """Return the report of a port.

        Parameters
        ----------
        name : str, optional
            The port; the one with the largest queue if not given.

        Raises
        ------
        ValueError
            There is no such port.
        """
        ports: list[dict[str, Any]] = self.document["ports"]
        for entry in ports:
            if name is None or entry["port"] == name:
                return entry
        there = ", ".join(entry["port"] for entry in ports[:20]) or "none: the trace has no records"
        raise ValueError(f"there is no port '{name or ''}' in this trace; there are: {there}")

    @cached_property
    def ports(self) -> pl.DataFrame:
        """One row per port, the largest queue first: records, speed [bit/s], largest queue [bytes], bursts, drops, marks."""
        return _frame(self.document["ports"], _PORT)

    def _rows(self, part: str | None) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        for port in self.document["ports"]:
            for burst in port["bursts"]:
                key = {"port": port["port"], "burst": burst["index"]}
                rows += [key | burst] if part is None else [key | row for row in burst[part] or []]
        return rows

    @cached_property
    def bursts(self) -> pl.DataFrame:
        """One row per burst: times [ps], sizes [bytes], slopes [bit/s], and the law with its verdict where one applies."""
        rows = self._rows(None)
        for row in rows:
            law = row["law"] or {}
            row["law_holds"], row["bound_bps"], row["law"] = law.get("holds"), law.get("bound_bps"), law.get("law")
            row["slope_bps"], row["words"] = law.get("slope_bps"), law.get("words") or row.get("words")
        more = {"law": _U8, "law_holds": _BOOL, "slope_bps": _F64, "bound_bps": _F64}
        return _frame(rows, {"port": _STR, "burst": _U64, **_BURST, **more}).drop("index")

    @cached_property
    def phases(self) -> pl.DataFrame:
        """One row per phase of a burst: times [ps], slope with its confidence interval [bit/s], fitted queue [bytes]."""
        return _frame(self._rows("phases"), {"port": _STR, "burst": _U64, **_PHASE})

    @cached_property
    def rounds(self) -> pl.DataFrame:
        """One row per round of a burst: times [ps], flows, packets, bytes."""
        return _frame(self._rows("rounds"), {"port": _STR, "burst": _U64, **_ROUND})

    @cached_property
    def laws(self) -> pl.DataFrame:
        """One row per burst that a law applies to: the bound, the slope with its interval [bit/s], the verdict."""
        rows = [{"port": row["port"], "burst": row["burst"], **row["law"]} for row in self._rows(None) if row["law"]]
        return _frame(rows, {"port": _STR, "burst": _U64, **_LAW})

    @cached_property
    def culprits(self) -> pl.DataFrame:
        """One row per flow that made a burst, with its bytes and share.

        ``kind`` is ``direct`` (it stood in the queue at the peak) or ``indirect`` (it arrived since the queue was last empty).
        """
        import polars as pl

        frames = [
            _frame(self._rows(kind), {"port": _STR, "burst": _U64, **_CULPRIT}).with_columns(kind=pl.lit(kind))
            for kind in ("direct", "indirect")
        ]
        return pl.concat(frames).sort("port", "burst", "kind", maintain_order=True)

    @property
    def notifications(self) -> dict[str, Any] | None:
        """Drop notifications (PDN) that a capture holds, as docs/analysis-report.md describes them; None where there are none."""
        found: dict[str, Any] | None = self.document["notifications"]
        return found

    @cached_property
    def notified(self) -> pl.DataFrame:
        """One row per flow with drop notifications, the `top` of them: how many, how many repeated, dropped bytes, times [ps]."""
        return _frame((self.notifications or {}).get("top", []), _NOTIFIED)

    @cached_property
    def transfers(self) -> pl.DataFrame:
        """One row per transfer over TCP of a capture, the slowest first.

        How long it took [ps], what was sent again, timeouts, and why in words. Empty without ``transfers=True``.
        Sums, also of those beyond the 10,000 listed, are in ``document["transfers"]``.
        """
        return _frame((self.document["transfers"] or {}).get("slowest", []), _TRANSFER)

    @property
    def pair(self) -> dict[str, Any] | None:
        """What two captures of one port have in common, as docs/analysis-report.md describes it; None where there were not two."""
        found: dict[str, Any] | None = self.document["pair"]
        return found

    @cached_property
    def waiting(self) -> pl.DataFrame:
        """Waiting times [ps] of the packets between two captures of one port: mean, percentiles, the longest; empty without two."""
        found = (self.pair or {}).get("waiting")
        return _frame([found] if found else [], _WAITING)

    @cached_property
    def waiting_flows(self) -> pl.DataFrame:
        """One row per flow with the longest waits [ps], the `top` of them, and what was dropped of each."""
        return _frame(((self.pair or {}).get("waiting") or {}).get("flows", []), _WAITING_FLOW)

    @cached_property
    def records(self) -> pl.DataFrame:
        """Every record: arrival and wait [ps], queue found, frame [bytes], flow, fate; read again, 40 bytes of memory for each."""
        import tempfile

        import polars as pl

        with tempfile.TemporaryDirectory() as folder:
            _core.trace_export(self._settings, folder, None)
            found = pl.read_parquet(Path(folder) / "records.parquet", memory_map=False)
        return found.with_columns(*self._unknown_drops())

    def _unknown_drops(self) -> list[pl.Expr]:
        """Return what makes drops of records unknown where their file refutes the estimate that has them."""
        import polars as pl

        refuted = [port["port"] for port in self.document["ports"] if tables.refuted(port)]
        unknown = pl.when(pl.col("port").is_in(refuted)).then(None).otherwise(pl.col("dropped"))
        return [unknown.alias("dropped")] if refuted else []

    @cached_property
    def delays(self) -> pl.DataFrame:
        """Every packet that left the port and how long it waited: `records` with a wait."""
        import polars as pl

        columns = ["time_ps", "port", "flow", "frame_bytes", "queue_bytes", "wait_ps"]
        return self.records.select(columns).filter(pl.col("wait_ps").is_not_null())

    @property
    def settings_text(self) -> str:
        """The trace and its settings as the core takes them; of them the trace is read again."""
        return self._settings

    # -- figures ----------------------------------------------------------------------------------------------------

    def burst(self, port: str | None = None, index: int | None = None) -> dict[str, Any] | None:
        """Return a burst of a port; the one with the highest peak if no index is given, None if there is none.

        Parameters
        ----------
        port : str, optional
            The port; the one with the largest queue if not given.
        index : int, optional
            Its number at the port, as `bursts` has it.

        Raises
        ------
        ValueError
            There is no such port or burst.
        """
        entry = self.port(port)
        bursts: list[dict[str, Any]] = entry["bursts"]
        if index is None:
            return max(bursts, key=lambda b: (b["peak_bytes"] or 0, b["arrived_bytes"] or 0, -b["index"]), default=None)
        for burst in bursts:
            if burst["index"] == index:
                return burst
        found = entry["bursts_found"]
        raise ValueError(f"port '{entry['port']}' has no burst {index} in this report; it has {len(bursts)} of {found} bursts")

    def series(self, port: str, start_ps: int, stop_ps: int, *, max_points: int = _MAX_POINTS) -> tuple[pl.DataFrame, int, bool]:
        """Read the records of a port between two times again.

        Parameters
        ----------
        port : str
            The port.
        start_ps, stop_ps : int
            Both included [ps].
        max_points : int
            More records than this are reduced to the smallest and the largest queue of each part of the time.

        Returns
        -------
        polars.DataFrame
            ``time_ps``, ``queue_bytes`` (null where it is unknown), ``frame_bytes``, ``flow``, ``marked``, ``dropped``,
            ``replaced``, ``at_head``.
        int
            How many records there are.
        bool
            Whether they were reduced.
        """
        ((frame, count, reduced),) = self.stretches(port, [(start_ps, stop_ps)], max_points=max_points)
        return frame, count, reduced

    def stretches(
        self, port: str, stretches: Sequence[tuple[int, int]], *, max_points: int = _MAX_POINTS
    ) -> list[tuple[pl.DataFrame, int, bool]]:
        """Read the records of a port in several stretches of time [ps], in one pass; each as `series` returns it."""
        import numpy as np
        import polars as pl

        types = {"time_ps": "u8", "queue_bytes": "u8", "frame_bytes": "u4", "flow": "u4"}
        types |= dict.fromkeys(("marked", "dropped", "replaced", "at_head"), "?")
        unknown = pl.col("queue_bytes") == 2**64 - 1
        known = pl.when(unknown).then(None).otherwise(pl.col("queue_bytes"))
        found = []
        for raw in _core.trace_records(self._settings, port, list(stretches), max_points):
            frame = pl.DataFrame({name: np.frombuffer(raw[name], dtype=kind) for name, kind in types.items()})
            frame = tables.undropped(frame, self.port(port)).with_columns(queue_bytes=known)
            found.append((frame, int(raw["count"]), bool(raw["reduced"])))
        return found

    def plot(self, port: str | None = None, burst: int | None = None, *, max_points: int = _MAX_POINTS) -> Figure:
        """Return a burst as a figure: the queue, by flow where the trace names flows, its phases and slopes, what the law says.

        The trace is read again for it.

        Parameters
        ----------
        port : str, optional
            The port; the one with the largest queue if not given.
        burst : int, optional
            Number of the burst; the highest one if not given, the whole trace if the port has none.
        max_points : int
            More records than this are reduced to the smallest and the largest queue of each part of the time.

        Raises
        ------
        ValueError
            There is no such port or burst.
        """
        entry = self.port(port)
        return self.plots(
            entry["port"], [self.burst(entry["port"], burst)], most=lambda *_: max_points, read=max(max_points, _ALL_RECORDS)
        )[0]

    def plots(
        self, port: str, bursts: Sequence[dict[str, Any] | None], *, most: Callable[[int, int], int], read: int = _ALL_RECORDS
    ) -> list[Figure]:
        """Return the figures of several bursts of a port, as `plot` draws them; the trace is read once for all of them.

        Parameters
        ----------
        port : str
            The port.
        bursts : sequence of dict or None
            Bursts, as `burst` returns them; None for the whole trace.
        most : callable
            Is given the place of a burst in `bursts` and the number of its records; returns the `max_points` of its figure.
        read : int
            Records of a burst that are read, at most, before they are reduced.
        """
        from fanin.analysis import burst_figure

        entry = self.port(port)
        first, last = entry["first_ps"] or 0, entry["last_ps"] or 0
        shown = [(first, last)] * len(bursts)
        for index, burst in enumerate(bursts):
            if burst is not None:
                margin = int(_MARGIN * burst["duration_ps"]) + 1
                shown[index] = (max(first, burst["start_ps"] - margin), min(last, burst["end_ps"] + margin))
        return [
            burst_figure.figure(entry, burst, found, most(index, found[1]))
            for index, (burst, found) in enumerate(zip(bursts, self.stretches(port, shown, max_points=read), strict=True))
        ]

    def save_pdf(
        self, path: str | os.PathLike[str], port: str | None = None, burst: int | None = None, *, width: str = "column"
    ) -> Path:
        """Write a burst as a figure for a paper: vector, embedded TrueType fonts, distinguishable in grey.

        Parameters
        ----------
        path : path-like
            Where to; ``.pdf``, ``.svg`` or ``.png``.
        port, burst
            As for `plot`.
        width : {"column", "page"}
            Width of the figure: 3.33 in or 7 in.
        """
        from fanin.figures import paper

        return paper.save(self.plot(port, burst), path, width=width)

    # -- files and pages --------------------------------------------------------------------------------------------

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the whole report as JSON, and write it to `path` if given; equal traces and settings give equal bytes."""
        text = json.dumps(self.document, indent=1, ensure_ascii=False) + "\n"
        if path is not None:
            files.write_text(path, text)
        return text

    def write_records(self, path: str | os.PathLike[str]) -> Path:
        """Write every record as a table; the trace is read again for it, in bounded memory.

        Parameters
        ----------
        path : path-like
            Where to; ``.parquet``, ``.csv``, ``.jsonl`` or ``.arrow`` says as what.

        Raises
        ------
        ValueError
            The name ends in none of these.
        """
        import shutil
        import tempfile

        import polars as pl

        target = Path(path)
        kind = records_kind(target)
        with tempfile.TemporaryDirectory(dir=target.absolute().parent, prefix=".fanin-") as folder:
            _core.trace_export(self._settings, folder, None)
            written = Path(folder) / "records.parquet"
            with files.replacing(target) as part:
                unknown = self._unknown_drops()
                rows = pl.scan_parquet(written).with_columns(*unknown)
                if kind == ".parquet" and not unknown:
                    shutil.move(written, part)
                elif kind == ".parquet":
                    facts = pl.read_parquet_metadata(written)
                    rows.sink_parquet(part, metadata={key: value for key, value in facts.items() if key.startswith("fanin.")})
                elif kind == ".csv":
                    rows.sink_csv(part)
                elif kind == ".jsonl":
                    rows.sink_ndjson(part)
                else:
                    rows.sink_ipc(part)
        return target

    def to_scenario(self, path: str | os.PathLike[str] | None = None, port: str | None = None) -> PortScenario:
        """Make a scenario of what arrived at a port, and write it to `path` if given: to try what would have helped.

        It is simulated once for each congestion control that may have been in force; the nearest is taken.

        Parameters
        ----------
        path : path-like, optional
            Where to.
        port : str, optional
            The port; the one with the largest queue if not given.

        Raises
        ------
        ValueError
            The trace has no speed, no queue, no flows or no sizes, or too many packets.
        """
        from fanin.analysis.port_scenario import port_scenario

        made = port_scenario(self, port, file=str(path or "port.toml"))
        if path is not None:
            files.write_text(path, made.text)
        return made

    def explain(self, flow: str | None = None) -> CapturedExplanation:
        """Say where the time of a transfer over TCP went, by captures at both its ends or before and behind a port (`behind`).

        Parameters
        ----------
        flow : str, optional
            The flow, by its name in `transfers` or a part of it that no other has; of its transfers between `start` and `stop` the
            slowest is explained. If not given: the slowest of all.

        Returns
        -------
        CapturedExplanation
            ``text``, ``parts``, ``steps``; docs/explain.md says what each part is.

        Raises
        ------
        TraceError
            There is no second capture, or no such flow, or several have this name.
        """
        return _explained(self._settings, flow)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write one HTML page with tables and figures; it needs neither network nor other files.

        Parameters
        ----------
        path : path-like
            Where to.
        """
        from fanin.analysis import page

        target = Path(path)
        page.write_analysis(self, target)
        return target

    def __repr__(self) -> str:
        ports = self.document["ports"]
        bursts = sum(port["bursts_found"] for port in ports)
        return f"<fanin.Analysis: {show.many(len(ports), 'port')}, {show.many(bursts, 'burst')}>"

    def _repr_html_(self) -> str:
        def table(content: tuple[list[str], list[list[str]]]) -> str:
            def row(cells: list[str], tag: str) -> str:
                return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

            return "<table>" + row(content[0], "th") + "".join(row(cells, "td") for cells in content[1]) + "</table>"

        notes = "".join(f"<p>{html.escape(note)}</p>" for note in tables.all_notes(self.document))
        parts = [table(tables.port_rows(self.document))]
        parts += [f"<p>{html.escape(line)}</p>" for line in tables.notice_lines(self.document)]
        parts += [f"<p>{html.escape(line)}</p>" for line in tables.detect_lines(self.document["ports"], 8)]
        for port in self.document["ports"][:8]:
            if port["bursts"]:
                parts.append(f"<b>{html.escape(port['port'])}</b>{table(tables.burst_rows(port, 5, self.clock))}")
                law = tables.law_line(tables.largest(port, 1)[0])
                parts.append(f"<p>{html.escape(law)}</p>" if law else "")
        return f"<div>{notes}{''.join(parts)}</div>"
