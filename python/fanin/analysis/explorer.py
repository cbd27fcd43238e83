"""What a page holds of a trace's records: all ports over all of the time, and each burst, by packet or by column of time.

The trace is read once, in bounded memory, and so is what a page gets: at most `PORTS` times `COLUMNS` columns of the overview,
`LISTED` bursts with `OUTLINES` columns together, the highest burst of each of `MAX_PORTS` ports with up to `PACKETS` packets, and
`PAGE_PACKETS` packets of others.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from fanin import _core
from fanin.analysis import burst_figure, tables
from fanin.files import temporary
from fanin.text import flows, show

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fanin.analysis import Analysis
    from fanin.analysis.clock import Clock

Table = tuple[list[str], list[list[str]]]

MAX_PORTS: Final = 6
"""Ports whose highest burst is there with every packet, and that can be seen over all of the time in detail."""

PORTS: Final = 128
"""Ports of the overview, those with the largest queues; one that was always empty is left out."""

COLUMNS: Final = 480
"""Columns of time of the overview."""

LISTED: Final = 1000
"""Bursts of a page, the highest of all ports."""

PACKETS: Final = 16_000
"""Packets of a port's highest burst that are there one by one."""

PAGE_PACKETS: Final = 30_000
"""Packets of all other bursts of a page that are there one by one."""

OUTLINE: Final = 400
"""Columns of a burst that is not there by packet, at most."""

OUTLINES: Final = 60_000
"""Columns of all of these together."""

WHOLE: Final = 1500
"""Columns of a port over all of the time."""

CULPRITS: Final = 10
"""Flows that are listed of a burst."""

_READ: Final = 50_000
"""Packets of a port's highest burst that are read, so that it is known which flows stood in its queue."""

_MARGIN: Final = 0.15
"""Margin shown before and after a burst, as a share of its length."""

_BATCH: Final = 1 << 20
"""Records that are read at once."""

MARKED, DROPPED, REPLACED, ESTIMATED = 1, 2, 4, 8
"""Bits of a packet's fate."""

_KEYS: Final = {
    "Burst": "index",
    "Start": "start_ps",
    "Time": "start_ps",
    "Duration": "duration_ps",
    "Peak": "peak_bytes",
    "Arrived": "arrived_bytes",
    "Start to peak": "rise_bps",
    "Peak to end": "fall_bps",
    "Drops": "dropped_packets",
    "Marks": "marked_packets",
    "Notices": "notifications",
    "Flows": "flows",
}
"""By what the list is sorted where a column is no text."""


@dataclass
class Stretch:
    """A part of a port's time that a page shows, and what was found of it.

    Attributes
    ----------
    port : int
        Place of the port.
    burst : dict or None
        Report of the burst; None for all of the port's time.
    low, high : int
        Both included [ps].
    columns : int
        Columns of its outline.
    """

    port: int
    burst: dict[str, Any] | None
    low: int
    high: int
    columns: int
    keep: bool
    """Whether its packets are kept as they are read."""
    packets: list[pl.DataFrame] = field(default_factory=list)
    count: NDArray[np.float64] = field(init=False)
    sums: dict[str, NDArray[np.float64]] = field(init=False)
    tops: dict[str, NDArray[np.float64]] = field(init=False)

    def __post_init__(self) -> None:
        self.count = np.zeros(self.columns)
        self.sums = {name: np.zeros(self.columns) for name in ("bytes", "drops", "marks")}
        self.tops = {name: np.full(self.columns, -1.0) for name in ("queue", "wait")}

    def take(self, frame: pl.DataFrame, columns: dict[str, NDArray[Any]]) -> None:
        """Add a batch of the port's records, in order of time."""
        time = columns["time"]
        first, last = np.searchsorted(time, [self.low, self.high + 1])
        if first == last:
            return
        if self.keep:
            self.packets.append(frame[int(first) : int(last)])
        width = (self.high - self.low + 1) / self.columns
        place = np.minimum((time[first:last] - self.low) // width, self.columns - 1).astype(np.int64)
        self.count += np.bincount(place, minlength=self.columns)
        for name in self.sums:
            self.sums[name] += np.bincount(place, columns[name][first:last], minlength=self.columns)
        starts = np.concatenate([[0], np.flatnonzero(np.diff(place)) + 1])
        for name, top in self.tops.items():
            here = np.maximum.reduceat(columns[name][first:last], starts)
            top[place[starts]] = np.maximum(top[place[starts]], here)


@dataclass(frozen=True)
class Explorer:
    """The bursts of a page.

    Attributes
    ----------
    document : dict
        What its script draws, as JSON.
    head, rows : list
        The list of bursts; each row has the number of its view.
    first : int or None
        View that is open at first.
    title : str
        Its title.
    tables : list
        Its tables.
    words : str
        What is said of it.
    lost : list of bool
        Whether packets of a row's burst were dropped.
    queues : bool
        Whether the trace knows queues.
    left_out : int
        Bursts that are not on the page.
    ports_left_out : int
        Ports that are not in the overview: with a queue that was always empty, or beyond `PORTS`.
    """

    document: dict[str, Any]
    head: list[str]
    rows: list[tuple[int, list[str]]]
    first: int | None
    title: str
    tables: list[tuple[str, Table]]
    words: str
    lost: list[bool]
    queues: bool
    left_out: int
    ports_left_out: int


@contextlib.contextmanager
def _records(settings: str) -> Iterator[Iterator[pl.DataFrame]]:
    """Give the records of a trace in batches; they stand in a temporary folder meanwhile."""
    place = temporary.folder()
    path = place / "records.parquet"
    try:
        try:
            _core.trace_export(settings, str(place), None)
        except _core.TraceError as error:
            if not any(problem["file"] == str(path) for problem in error.problems):
                raise
            found = re.search(r"os error (\d+)", str(error))
            number = int(found[1]) if found else errno.EIO
            raise OSError(number, os.strerror(number), str(path)) from error
        total = _core.parquet_rows(path) or 0
        yield (pl.scan_parquet(path).slice(at, _BATCH).collect() for at in range(0, total, _BATCH))
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _columns(frame: pl.DataFrame) -> dict[str, NDArray[Any]]:
    """Return what outlines add up of records; -1 stands for what is unknown."""
    known = frame.select(
        time=pl.col("time_ps").cast(pl.Int64),
        bytes=pl.col("frame_bytes").cast(pl.Float64),
        drops=(pl.col("dropped") | pl.col("replaced")).cast(pl.Float64),
        marks=pl.col("marked").cast(pl.Float64),
        queue=pl.col("queue_bytes").cast(pl.Float64).fill_null(-1.0),
        wait=pl.col("wait_ps").cast(pl.Float64).fill_null(-1.0),
    )
    return {name: known[name].to_numpy() for name in known.columns}


def packed(values: NDArray[Any]) -> dict[str, str]:
    """Return numbers as bytes in base 64, in the narrowest type that holds them all."""
    whole = not len(values) or bool(np.all(np.mod(values, 1) == 0) and values.min() >= 0)
    top = float(values.max()) if len(values) else 0.0
    kind = next((kind for kind, end in (("u1", 2**8), ("u2", 2**16), ("u4", 2**32)) if whole and top < end), "f8")
    return {"dtype": kind, "bdata": base64.b64encode(values.astype(f"<{kind}").tobytes()).decode()}


def _outline(stretch: Stretch) -> dict[str, Any]:
    """Return the columns of a stretch; queue and wait count from 1, 0 is unknown."""
    out = {"n": packed(stretch.count)} | {name: packed(total) for name, total in stretch.sums.items()}
    return out | {name: packed(np.floor(top + 1)) for name, top in stretch.tops.items() if top.max() >= 0}


def _packets(frame: pl.DataFrame, low: int, names: dict[str, int]) -> dict[str, Any]:
    """Return packets one by one; queue, wait and flow count from 1, 0 is unknown."""
    listed = frame["flow"].unique(maintain_order=True).drop_nulls().to_list()
    for name in listed:
        names.setdefault(name, len(names))
    flow = frame["flow"].replace_strict(listed, [names[name] + 1 for name in listed], default=0, return_dtype=pl.UInt32)
    fate = frame.select(
        pl.col("marked").cast(pl.UInt8) * MARKED
        + pl.col("dropped").cast(pl.UInt8) * DROPPED
        + pl.col("replaced").cast(pl.UInt8) * REPLACED
        + pl.col("estimated").cast(pl.UInt8) * ESTIMATED
    ).to_series()
    columns = {
        "time": (frame["time_ps"] - low).to_numpy(),
        "size": frame["frame_bytes"].to_numpy(),
        "fate": fate.to_numpy(),
    }
    if frame["flow"].null_count() < frame.height:
        columns["flow"] = flow.fill_null(0).to_numpy()
    for name, column in (("queue", "queue_bytes"), ("wait", "wait_ps")):
        if frame[column].null_count() < frame.height:
            columns[name] = (frame[column].cast(pl.Float64) + 1).fill_null(0.0).to_numpy()
    return {name: packed(values) for name, values in columns.items()}


def _stretches(document: dict[str, Any], chosen: Sequence[tuple[int, dict[str, Any]]]) -> list[Stretch]:
    """Return what is read for a page: the chosen bursts with a margin, highest first, and the first ports in whole."""
    ports = document["ports"]
    left, found = PAGE_PACKETS, []
    seen: set[int] = set()
    each = max(16, min(OUTLINE, OUTLINES // max(1, len(chosen))))
    for place, burst in chosen:
        margin = int(_MARGIN * burst["duration_ps"]) + 1
        low, high = max(ports[place]["first_ps"] or 0, burst["start_ps"] - margin), burst["end_ps"] + margin
        high = min(high, max(ports[place]["last_ps"] or 0, burst["end_ps"]))
        top = place not in seen and len(seen) < MAX_PORTS
        seen.add(place)
        keep = burst["records"] <= (_READ if top else left)
        left -= burst["records"] if keep and not top else 0
        found.append(Stretch(place, burst, low, high, each if not top else OUTLINE, keep))
    for place, port in enumerate(ports[:MAX_PORTS]):
        if port["records"] and port["first_ps"] is not None:
            quiet = not port["bursts"] and port["records"] <= PACKETS
            found.append(Stretch(place, None, port["first_ps"], port["last_ps"], WHOLE, quiet))
    return found


def explore(analysis: Analysis) -> Explorer:
    """Read a trace once more and return what a page shows of its bursts.

    Parameters
    ----------
    analysis : Analysis
        What was found.

    Raises
    ------
    TraceError
        The trace is not there any more.
    OSError
        There is no room for its records in the folder of temporary files (`TMPDIR`).
    """
    document, clock = analysis.document, analysis.clock
    ports = document["ports"]
    every = [(place, burst) for place, port in enumerate(ports) for burst in port["bursts"]]
    every.sort(key=lambda one: (one[1]["peak_bytes"] or 0, one[1]["arrived_bytes"] or 0), reverse=True)
    chosen = every[:LISTED]
    known = [port for port in ports if port["first_ps"] is not None]
    low = min((port["first_ps"] for port in known), default=0)
    high = max((port["last_ps"] for port in known), default=1)
    busy = [place for place, port in enumerate(ports) if port["peak_bytes"] != 0 or len(ports) == 1][:PORTS]
    over = {place: Stretch(place, None, low, high, COLUMNS, False) for place in busy}
    views = _stretches(document, chosen)
    by_port: dict[str, list[Stretch]] = {}
    for stretch in [*over.values(), *views]:
        by_port.setdefault(ports[stretch.port]["port"], []).append(stretch)
    by_name = {port["port"]: port for port in ports}
    with _records(analysis.settings_text) as batches:
        for batch in batches:
            for (name, *_), frame in batch.partition_by("port", as_dict=True, maintain_order=True).items():
                if str(name) not in by_port:
                    continue
                columns = _columns(tables.undropped(frame, by_name[str(name)]))
                for stretch in by_port[str(name)]:
                    stretch.take(frame, columns)
    names: dict[str, int] = {}
    drawn = [_view(ports[stretch.port], stretch, names) for stretch in views]
    head, rows, keys = _list(ports, chosen, clock)
    found = sum(int(port["bursts_found"]) for port in ports)
    first = 0 if drawn else None
    return Explorer(
        document={
            "low": low,
            "high": high,
            "clock": None if clock is None else {"origin_s": document["origin_s"], "offset_s": clock.offset_s, "name": clock.name},
            "ports": [_port(port, over.get(place)) for place, port in enumerate(ports)],
            "flows": list(names),
            "views": drawn,
            "keys": keys,
        },
        head=head,
        rows=[(number, row) for number, row in enumerate(rows)],
        first=first,
        title=drawn[0]["title"] if drawn else "",
        tables=[(table["caption"], (table["head"], table["rows"])) for table in drawn[0]["tables"]] if drawn else [],
        words=drawn[0]["words"] if drawn else "",
        lost=[bool(burst["dropped_packets"]) for _, burst in chosen],
        queues=any(port["peak_bytes"] is not None for port in ports),
        left_out=found - len(chosen),
        ports_left_out=len(ports) - len(over),
    )


def _port(port: dict[str, Any], overview: Stretch | None) -> dict[str, Any]:
    out = {"name": port["port"], "frames_bps": burst_figure.frame_rate(port), "queue": port["peak_bytes"] is not None}
    return out if overview is None else out | {"overview": _outline(overview)}


def _view(port: dict[str, Any], stretch: Stretch, names: dict[str, int]) -> dict[str, Any]:
    burst = stretch.burst
    frame = pl.concat(stretch.packets) if stretch.packets else None
    stretch.packets = []
    records = int(stretch.count.sum())
    one_by_one = frame is not None and (frame.height <= PACKETS)
    listed = tables.undropped(frame, port) if frame is not None else None
    data = _packets(listed, stretch.low, names) if listed is not None and one_by_one else _outline(stretch)
    view: dict[str, Any] = {
        "port": stretch.port,
        "low": stretch.low,
        "high": stretch.high,
        "kind": "packets" if one_by_one else "columns",
        "data": data,
    }
    how = "each as it found the queue" if one_by_one else f"the largest queue of each of {stretch.columns:,} columns of time"
    if port["peak_bytes"] is None:
        how = "one by one" if one_by_one else f"added up by {stretch.columns:,} columns of time"
    what = "packet" if stretch.sums["bytes"].any() else "record"  # samples have no bytes
    if what == "record":
        how = how.replace("each as it found the queue", "one by one")
    note = f"{show.many(records, what)}, {how}."
    if port["peak_bytes"] is None and port.get("counted"):
        note = "Counters tell no queue: only when bursts were is drawn. Analysis.plot draws their loads."
    if burst is None:
        return view | {"index": None, "title": f"All of {port['port']}", "note": note, "words": "", "tables": [], "phases": []}
    if frame is not None and port["peak_bytes"] is not None:
        bands = _bands(burst, frame, stretch.low)
        if bands is not None:
            view["bands"], shared = bands
            of = f" ({shared})" if shared else ""
            note += f" Coloured: the flows{of} with the most bytes at the peak, and their shares of it."
    reference = burst_figure.reference(port, burst)
    return view | {
        "index": burst["index"],
        "start": burst["start_ps"],
        "end": burst["end_ps"],
        "title": f"Burst {burst['index']} at {port['port']}",
        "note": note,
        "words": tables.law_line(burst),
        "tables": [{"caption": caption, "head": head, "rows": rows} for caption, (head, rows) in details(burst)],
        "phases": [
            [p["start_ps"], p["end_ps"], round(p["start_bytes"]), round(p["end_bytes"]), show.rate(p["slope_bps"])]
            for p in burst["phases"]
        ],
        "reference": None if reference is None else [reference.name, *reference.line(burst)],
    }


def _bands(burst: dict[str, Any], frame: pl.DataFrame, low: int) -> tuple[dict[str, Any], str] | None:
    """Return the queue by flow, and what the names of the flows have in common; None where no flow is known."""
    found = burst_figure.bands(burst, frame)
    if found is None:
        return None
    time, levels = found
    entries = burst["direct"][: len(levels) - 1]
    shared, names = flows.apart([entry["name"] for entry in entries])
    called = [f"{name} ({entry['share']:.1%})" for name, entry in zip(names, entries, strict=True)]
    return {
        "names": [*called, "all other flows"],
        "time": packed(time - low),
        "levels": [packed(level) for level in levels],
    }, shared


def details(burst: dict[str, Any]) -> list[tuple[str, Table]]:
    """Return the tables of a burst with their captions; what names of flows have in common stands in the head."""
    made = []
    if burst["direct"] or burst["indirect"]:
        what = "Flows in the queue at the peak" if burst["direct"] else "Flows"
        made.append((f"{what} of burst {burst['index']}", apart(tables.culprit_rows(burst, CULPRITS))))
    if burst["phases"]:
        made.append((f"Phases of burst {burst['index']}", tables.phase_rows(burst)))
    return made


def apart(table: Table) -> Table:
    """Return a table whose first column names flows with what these have in common in its head."""
    head, rows = table
    shared, names = flows.apart([row[0] for row in rows])
    if not shared:
        return table
    return [f"{head[0]} {shared}", *head[1:]], [[name, *row[1:]] for name, row in zip(names, rows, strict=True)]


def _list(
    ports: Sequence[dict[str, Any]], chosen: Sequence[tuple[int, dict[str, Any]]], clock: Clock | None
) -> tuple[list[str], list[list[str]], list[list[Any] | None]]:
    """Return the list of bursts in their order, and what each column is sorted by; None: by its text."""
    of_port: dict[int, list[dict[str, Any]]] = {}
    for place, burst in chosen:
        of_port.setdefault(place, []).append(burst)
    lines: dict[tuple[int, int], dict[str, str]] = {}
    head: list[str] = []
    for place, bursts in of_port.items():
        names, rows = tables.burst_rows(ports[place] | {"bursts": bursts}, len(bursts), clock)
        head = names if len(names) > len(head) else head
        numbers = [burst["index"] for burst in tables.largest({"bursts": bursts}, len(bursts))]
        lines |= {(place, index): dict(zip(names, row, strict=True)) for index, row in zip(numbers, rows, strict=True)}
    several = len(ports) > 1
    shown = [head[0], *(["Port"] if several else []), *head[1:]] if head else []
    rows = []
    for place, burst in chosen:
        line = lines[place, burst["index"]] | {"Port": ports[place]["port"]}
        rows.append([line.get(name, show.NOTHING) for name in shown])
    keys: list[list[Any] | None] = []
    for name in shown:
        key = _KEYS.get(name.split(" (")[0])
        keys.append(None if key is None else [burst[key] for _, burst in chosen])
    return shown, rows, keys
