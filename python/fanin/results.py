"""Result folders: tables as Polars frames, summary, manifest, figures, report."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fanin import _core, _files, counters, show
from fanin.overview import facts, fct_rows

if TYPE_CHECKING:
    import polars as pl
    from plotly.graph_objects import Figure

    from fanin.comparison import Comparison
    from fanin.explain import Explanation
    from fanin.pauses import PauseTree
    from fanin.variants import Source

__all__ = ["SCHEMAS", "Result", "ResultError", "load", "schema"]

MANIFEST: Final = "manifest.json"
SUMMARY: Final = "summary.json"
VERSIONS: Final = {"ports": 2, "queues": 2}
"""Schema versions that this Fanin reads up to, where that is not 1. Up to ``ports/1`` every port had a row at every
sample; ``queues/1`` has no ``at_head``."""
DATAGRAMS: Final = "udp"
"""``transport`` of flows of datagrams, which are no transfers."""

SCHEMAS: Final[Mapping[str, Mapping[str, str]]] = {
    "flows": {
        "flow": "UInt32",
        "id": "String",
        "group": "String",
        "query": "UInt32",
        "src": "String",
        "dst": "String",
        "transport": "String",
        "class": "UInt8",
        "size_bytes": "UInt64",
        "request_bytes": "UInt64",
        "start_ps": "UInt64",
        "finish_ps": "UInt64",
        "acked_ps": "UInt64",
        "ideal_ps": "UInt64",
        "base_rtt_ps": "UInt64",
        "status": "String",
        "delivered_bytes": "UInt64",
        "packets_sent": "UInt64",
        "retransmits": "UInt64",
        "timeouts": "UInt32",
        "recoveries": "UInt32",
        "ecn_reductions": "UInt32",
        "marked": "UInt64",
        "reordered": "UInt64",
        "reordered_3": "UInt64",
        "reordering_extent": "UInt32",
        "reordering_late_ps": "UInt64",
    },
    "queries": {
        "query": "UInt32",
        "group": "String",
        "client": "String",
        "start_ps": "UInt64",
        "finish_ps": "UInt64",
        "responses": "UInt32",
        "size_bytes": "UInt64",
    },
    "collectives": {
        "group": "String",
        "iteration": "UInt32",
        "operation": "UInt32",
        "collective": "String",
        "algorithm": "String",
        "communicator": "UInt32",
        "ranks": "UInt32",
        "size_bytes": "UInt64",
        "start_ps": "UInt64",
        "ready_ps": "UInt64",
        "finish_ps": "UInt64",
        "algbw_bps": "UInt64",
        "busbw_bps": "UInt64",
    },
    "ports": {
        "time_ps": "UInt64",
        "port": "String",
        "tx_bytes": "UInt64",
        "tx_packets": "UInt64",
        "queue_bytes": "UInt64",
        "queue_packets": "UInt32",
        "queue_max_bytes": "UInt64",
        "held_bytes": "UInt64",
        "drops": "UInt32",
        "marks": "UInt32",
    },
    "queues": {
        "time_ps": "UInt64",
        "port": "String",
        "queue_bytes": "UInt64",
        "queue_packets": "UInt32",
        "flow": "UInt32",
        "frame_bytes": "UInt16",
        "marked": "Boolean",
        "dropped": "Boolean",
        "replaced": "Boolean",
        "at_head": "Boolean",
    },
    "drops": {
        "time_ps": "UInt64",
        "port": "String",
        "flow": "UInt32",
        "frame_bytes": "UInt16",
        "payload_bytes": "UInt16",
        "seq": "UInt32",
        "reason": "String",
        "queue_bytes": "UInt64",
    },
    "pauses": {
        "port": "String",
        "class": "UInt8",
        "start_ps": "UInt64",
        "end_ps": "UInt64",
        "asked_ps": "UInt64",
        "behind": "String",
        "held_up": "Boolean",
        "frames": "UInt32",
    },
    "states": {
        "time_ps": "UInt64",
        "port": "String",
        "mechanism": "String",
        "about": "String",
        "state": "String",
        "degree": "UInt32",
    },
    "voqs": {
        "time_ps": "UInt64",
        "input": "String",
        "port": "String",
        "queue_bytes": "UInt64",
        "queue_packets": "UInt32",
        "queue_max_bytes": "UInt64",
        "held_bytes": "UInt64",
        "drops": "UInt32",
    },
    "stamps": {
        "received_ps": "UInt64",
        "host": "String",
        "port": "String",
        "stamp_time": "UInt32",
        "stamp_length": "UInt16",
        "flow": "UInt32",
        "frame_bytes": "UInt16",
        "marked": "Boolean",
    },
    "hosts": {
        "time_ps": "UInt64",
        "flow": "UInt32",
        "host": "String",
        "event": "String",
        "packet": "UInt64",
        "phase": "String",
        "cwnd_bytes": "UInt64",
        "ssthresh_bytes": "UInt64",
        "srtt_ps": "UInt64",
        "rttvar_ps": "UInt64",
        "rto_ps": "UInt64",
        "alpha_ppm": "UInt32",
        "acked_bytes": "UInt64",
        "sent_bytes": "UInt64",
        "in_flight_bytes": "UInt64",
        "pipe_bytes": "UInt64",
        "unsent_bytes": "UInt64",
        "window_bytes": "UInt64",
    },
    "segments": {
        "packet": "UInt64",
        "flow": "UInt32",
        "host": "String",
        "kind": "String",
        "seq_bytes": "UInt64",
        "payload_bytes": "UInt16",
        "ack_bytes": "UInt64",
        "frame_bytes": "UInt16",
        "again": "UInt32",
        "made_ps": "UInt64",
        "sent_ps": "UInt64",
        "received_ps": "UInt64",
        "marked": "Boolean",
        "trimmed": "Boolean",
        "dropped_at": "String",
        "dropped_ps": "UInt64",
        "cause": "String",
        "cause_ps": "UInt64",
        "cause_packet": "UInt64",
        "armed_ps": "UInt64",
        "armed_packet": "UInt64",
        "limit": "String",
    },
    "hops": {
        "packet": "UInt64",
        "flow": "UInt32",
        "port": "String",
        "arrived_ps": "UInt64",
        "sent_ps": "UInt64",
        "left_ps": "UInt64",
        "reached_ps": "UInt64",
        "held_by": "String",
        "held_from_ps": "UInt64",
        "held_until_ps": "UInt64",
    },
}
"""Tables of a result folder: column → Polars type, by name. docs/results.md says what each column means."""


def schema(table: str) -> dict[str, pl.DataType]:
    """Return the columns of a table with their types."""
    import polars as pl

    return {column: getattr(pl, kind)() for column, kind in SCHEMAS[table].items()}


class ResultError(ValueError):
    """A folder that is no result folder, or one that cannot be read."""


def load(path: str | os.PathLike[str]) -> Result:
    """Open a result folder written by ``fanin run`` or `fanin.run`.

    Nothing but the manifest and the numbers of rows of the tables is read until it is asked for.

    Parameters
    ----------
    path : path-like
        The folder.

    Raises
    ------
    ResultError
        There is no such folder, it has no manifest, the manifest is damaged, or it was written by a newer Fanin; or tables have
        other numbers of rows than the manifest says, so they are not of the same run.
    """
    return Result(path)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(_files.read_text(path))
    except FileNotFoundError:
        raise ResultError(f"{path}: there is no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ResultError(f"{path}: cannot be read: {error}") from error
    except json.JSONDecodeError as error:
        raise ResultError(f"{path}: is damaged: {error}") from error
    except RecursionError:
        raise ResultError(f"{path}: is damaged: it nests too deep") from None
    if not isinstance(document, dict):
        raise ResultError(f"{path}: is damaged: not an object")
    return document


class Result:
    """What a run has left behind.

    Frames are read on first use and kept; the ``scan_*`` methods give lazy frames that read no more than a query needs,
    for tables larger than memory.

    Parameters
    ----------
    path : path-like
        The result folder.

    Attributes
    ----------
    path : pathlib.Path
        The result folder.
    manifest : dict
        What ran: version, status, resolved scenario and its hash, seed, fingerprint, cost. See docs/results.md.

    Examples
    --------
    >>> result = fanin.load("out/demo")  # doctest: +SKIP
    >>> result.flows.group_by("group").agg(pl.col("timeouts").sum())  # doctest: +SKIP
    """

    path: Path
    manifest: dict[str, Any]

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not self.path.is_dir():
            what = "is a file, not a result folder" if self.path.exists() else "there is no such folder"
            raise ResultError(f"{self.path}: {what}")
        if not (self.path / MANIFEST).is_file():
            raise ResultError(f"{self.path}: is not a result folder: it has no {MANIFEST}")
        self.manifest = _read_json(self.path / MANIFEST)
        self._check_version(f"{self.path / MANIFEST}", self.manifest.get("schema"), "manifest")
        self._check_rows()

    def _expected_rows(self, table: str) -> int | None:
        """Return how many rows the manifest says that a table has; it is not there while the run lasts."""
        files = self.manifest.get("files")
        rows = files.get(table) if isinstance(files, dict) else None
        return rows if isinstance(rows, int) else None

    def _check_rows(self) -> None:
        """See that the tables are of the run that the manifest describes. One that cannot be read is an error when it is used."""
        wrong = []
        for table in SCHEMAS:
            expected, path = self._expected_rows(table), self.path / f"{table}.parquet"
            found = None if expected is None or not path.is_file() else _core.parquet_rows(path)
            if found is not None and found != expected:
                wrong.append(f"{path.name} has {found} rows, expected {expected}")
        if wrong:
            tables = "; ".join(wrong)
            raise ResultError(f"{self.path}: tables are not of the run in {MANIFEST}: {tables}; run it again, with --force")

    @staticmethod
    def _check_version(what: str, schema: object, name: str) -> int:
        newest = VERSIONS.get(name, 1)
        kind, _, version = str(schema).partition("/")
        if kind != name or not version.isdigit():
            raise ResultError(f"{what}: has the schema {schema!r}; expected '{name}/{newest}'")
        if int(version) > newest:
            raise ResultError(f"{what}: was written by a newer Fanin (schema '{schema}', this one reads up to /{newest})")
        return int(version)

    # -- what it says of itself -------------------------------------------------------------------------------------

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Totals, completion times by size bin and the hottest ports; keys and units in docs/results.md.

        Raises
        ------
        ResultError
            The run ended before a summary was written, or it is damaged.
        """
        path = self.path / SUMMARY
        if self.status == "running" and not path.is_file():
            raise ResultError(f"{path}: there is no such file: the run has not ended, or it was killed")
        return _read_json(path)

    @property
    def status(self) -> str:
        """``complete``, ``partial`` or ``running``."""
        return str(self.manifest.get("status", "running"))

    @property
    def complete(self) -> bool:
        """Whether the run reached its end."""
        return self.status == "complete"

    @property
    def warnings(self) -> list[str]:
        """What ``fanin check`` warned of when the run started."""
        return [str(warning) for warning in self.manifest.get("warnings") or []]

    @property
    def scenario(self) -> dict[str, Any]:
        """The resolved scenario: every parameter that has an effect, with its value."""
        resolved: dict[str, Any] = self.manifest.get("scenario") or {}
        return resolved

    @property
    def fingerprint(self) -> str:
        """16 hex digits over all flow outcomes and port counters; equal results have equal fingerprints."""
        return str(self.manifest.get("fingerprint", ""))

    # -- tables -----------------------------------------------------------------------------------------------------

    def scan(self, table: str, *, as_written: bool = False) -> pl.LazyFrame:
        """Return a table as a lazy frame.

        A table that the run did not write, such as the queues of a run that watched no port, is empty. Columns that an older
        Fanin did not write yet are null. ``ports`` has a row for every port at every sample; those at which nothing happened,
        all zeros, are not in the file.

        Parameters
        ----------
        table : str
            Its name: flows, queries, collectives, ports, queues, drops, pauses, states, voqs, stamps, hosts, segments or hops.
        as_written : bool
            Only the rows that are in the file.

        Raises
        ------
        ResultError
            The file is absent though the run wrote it, is damaged, or of a newer schema.
        ValueError
            There is no table of that name.
        """
        if table not in SCHEMAS:
            raise ValueError(f"there is no table '{table}'; there are {', '.join(SCHEMAS)}")
        import polars as pl

        path = self.path / f"{table}.parquet"
        if not path.is_file():
            if expected := self._expected_rows(table):
                raise ResultError(f"{path}: there is no such file; expected one with {expected} rows, as {MANIFEST} says")
            return pl.LazyFrame(schema=schema(table))
        try:
            metadata = pl.read_parquet_metadata(path)
        except (pl.exceptions.PolarsError, OSError) as error:
            if self.status == "running":
                raise ResultError(f"{path}: is not whole: the run has not ended, or it was killed") from error
            raise ResultError(f"{path}: cannot be read: {error}") from error
        version = self._check_version(str(path), metadata.get("fanin.schema"), table)
        frame = pl.scan_parquet(path)
        written = frame.collect_schema().names()
        missing = {name: kind for name, kind in schema(table).items() if name not in written}
        if missing:
            added = frame.with_columns(pl.lit(None, dtype=kind).alias(name) for name, kind in missing.items())
            frame = added.select(*SCHEMAS[table], *(name for name in written if name not in SCHEMAS[table]))
        if table == "ports" and version > 1 and not as_written:
            from fanin import samples

            return samples.fill(frame, self.sample_times, samples.ports_of(frame))
        return frame

    def _collect(self, table: str) -> pl.DataFrame:
        import polars as pl

        try:
            return self.scan(table).collect()
        except pl.exceptions.PolarsError as error:
            raise ResultError(f"{self.path / table}.parquet: cannot be read: {error}") from error

    def scan_flows(self) -> pl.LazyFrame:
        """Return `flows` lazily."""
        return self.scan("flows")

    def scan_queries(self) -> pl.LazyFrame:
        """Return `queries` lazily."""
        return self.scan("queries")

    def scan_collectives(self) -> pl.LazyFrame:
        """Return `collectives` lazily."""
        return self.scan("collectives")

    def scan_ports(self) -> pl.LazyFrame:
        """Return `ports` lazily, with a row for every port at every sample."""
        return self.scan("ports")

    def scan_queues(self) -> pl.LazyFrame:
        """Return `queues` lazily."""
        return self.scan("queues")

    def scan_drops(self) -> pl.LazyFrame:
        """Return `drops` lazily."""
        return self.scan("drops")

    def scan_pauses(self) -> pl.LazyFrame:
        """Return `pauses` lazily."""
        return self.scan("pauses")

    def scan_states(self) -> pl.LazyFrame:
        """Return `states` lazily."""
        return self.scan("states")

    def scan_voqs(self) -> pl.LazyFrame:
        """Return `voqs` lazily."""
        return self.scan("voqs")

    def scan_stamps(self) -> pl.LazyFrame:
        """Return `stamps` lazily."""
        return self.scan("stamps")

    def scan_hosts(self) -> pl.LazyFrame:
        """Return `hosts` lazily."""
        return self.scan("hosts")

    def scan_segments(self) -> pl.LazyFrame:
        """Return `segments` lazily."""
        return self.scan("segments")

    def scan_hops(self) -> pl.LazyFrame:
        """Return `hops` lazily."""
        return self.scan("hops")

    @cached_property
    def flows(self) -> pl.DataFrame:
        """One row per flow, in order of creation; times in picoseconds, sizes in bytes."""
        return self._collect("flows")

    @cached_property
    def queries(self) -> pl.DataFrame:
        """One row per query or incast round; times in picoseconds, sizes in bytes."""
        return self._collect("queries")

    @cached_property
    def collectives(self) -> pl.DataFrame:
        """One row per collective operation, iteration and group of ranks; times in picoseconds, bandwidths in bits per second."""
        return self._collect("collectives")

    @cached_property
    def ports(self) -> pl.DataFrame:
        """One row per port and sample: bytes sent, queue, drops and marks in the interval that ends at ``time_ps``.

        Samples at which nothing happened are there, too, all zeros, so that means over time are means of a column; in the file
        they are not (docs/results.md).
        """
        return self._collect("ports")

    @cached_property
    def sample_times(self) -> pl.Series:
        """When samples of the ports were taken [ps], rising; empty with ``telemetry.sample = "off"``."""
        import polars as pl

        from fanin import samples

        path = self.path / "ports.parquet"
        written = self.scan("ports", as_written=True)
        try:
            if path.is_file() and pl.read_parquet_metadata(path).get("fanin.schema") == "ports/1":
                return written.select(pl.col("time_ps").unique().sort()).collect()["time_ps"]
            return samples.times_of(written)
        except pl.exceptions.PolarsError as error:
            raise ResultError(f"{path}: cannot be read: {error}") from error

    @cached_property
    def queues(self) -> pl.DataFrame:
        """One row per packet that reached a watched port, with the queue that it found [bytes, packets]."""
        return self._collect("queues")

    @cached_property
    def drops(self) -> pl.DataFrame:
        """One row per dropped packet, with the reason and the queue that it found [bytes]."""
        return self._collect("drops")

    @cached_property
    def pauses(self) -> pl.DataFrame:
        """One row per pause of a class at a port [ps]; an end of null: the run ended before."""
        return self._collect("pauses")

    @cached_property
    def states(self) -> pl.DataFrame:
        """One row per change of what a mechanism makes of a port of a switch [ps]; until its first row a port is in none."""
        return self._collect("states")

    @cached_property
    def voqs(self) -> pl.DataFrame:
        """One row per sample and virtual output queue of a combined switch in which packets have waited or were dropped [ps, B]."""
        return self._collect("voqs")

    @cached_property
    def stamps(self) -> pl.DataFrame:
        """One row per stamped packet that reached a host: the registers of the last watched port on its way [ticks, units]."""
        return self._collect("stamps")

    @cached_property
    def hosts(self) -> pl.DataFrame:
        """One row per change of a followed flow's sender: windows [bytes], RTT [ps], phase, and what changed it."""
        return self._collect("hosts")

    @cached_property
    def segments(self) -> pl.DataFrame:
        """One row per packet of a followed flow, in either direction: times [ps], places in the stream [bytes], why it was sent."""
        return self._collect("segments")

    @cached_property
    def hops(self) -> pl.DataFrame:
        """One row per link that a packet of a followed flow crossed: came to the port, left, and reached the far end [ps]."""
        return self._collect("hops")

    def explain(self, flow: int | str) -> Explanation:
        """Say where the time of a followed flow went, in parts that add up to its completion time exactly.

        Parameters
        ----------
        flow : int or str
            Its number (``flow`` in `flows`) or its id.

        Returns
        -------
        Explanation
            ``text``, ``parts``, ``steps``; docs/explain.md says what each part is.

        Raises
        ------
        ValueError
            There is no such flow, or ``telemetry.hosts`` did not name it.
        """
        from fanin.explain import explain

        return explain(self, flow)

    def pause_events(self, gap_ps: int | None = None) -> pl.DataFrame:
        """Return the events in which pauses spread from a congested port (priority flow control), in order of time.

        Parameters
        ----------
        gap_ps : int, optional
            Longest time without a pause inside an event [ps]; 100 µs if not given.

        Returns
        -------
        polars.DataFrame
            ``event``, ``root`` (the congested port, which was not held up itself), ``class``, ``start_ps``, ``end_ps``, ``ports``
            (that were paused), ``depth`` (links beyond the first), ``pauses``, ``paused_ps``.
        """
        from fanin import pauses

        return pauses.events(self, pauses.GAP_PS if gap_ps is None else gap_ps)

    def pause_tree(self, event: int | None = None, gap_ps: int | None = None) -> PauseTree:
        """Return how the pauses of one event spread: root, edges with their delays, and the flows that waited.

        Parameters
        ----------
        event : int, optional
            Its number in `pause_events`; the one with the longest pauses in all if not given.
        gap_ps : int, optional
            As for `pause_events`.

        Raises
        ------
        ValueError
            Nothing was paused, or there is no such event.
        """
        from fanin import pauses

        return pauses.tree(self, event, pauses.GAP_PS if gap_ps is None else gap_ps)

    @cached_property
    def completions(self) -> pl.DataFrame:
        """Completed transfers with ``fct_ps`` (finish − start) [ps] and ``slowdown`` (``fct_ps`` over ``ideal_ps``).

        Connections of jobs are none: how long they are used says nothing of the network.
        """
        import polars as pl

        fct = pl.col("finish_ps") - pl.col("start_ps")
        jobs = [job["group"] for job in self.summary.get("collectives") or []]
        transfer = (pl.col("transport") != DATAGRAMS) & ~pl.col("group").is_in(jobs)
        done = self.flows.filter(pl.col("status") == "complete", pl.col("finish_ps").is_not_null(), transfer)
        return done.with_columns(fct_ps=fct, slowdown=fct / pl.col("ideal_ps"))

    @cached_property
    def mechanisms(self) -> pl.DataFrame:
        """One row per counter of the mechanisms that ran: ``group``, ``counter``, ``count``, ``kind``, ``doc``.

        ``kind`` is ``success`` (the mechanism did what it is for), ``failure`` (it could not) or ``step``.
        """
        return counters.frame(self.summary)

    # -- figures ----------------------------------------------------------------------------------------------------

    def plot_fct_cdf(self, *, slowdown: bool = False) -> Figure:
        """Return the distribution of flow completion times, one curve per traffic entry.

        Parameters
        ----------
        slowdown : bool
            Of the slowdown (dimensionless) instead of the completion time.

        Returns
        -------
        plotly.graph_objects.Figure
            Fraction of flows over completion time (logarithmic).
        """
        from fanin import figures

        return figures.fct_cdf(self, slowdown=slowdown)

    def plot_slowdown(self) -> Figure:
        """Return mean, median, 95th and 99th percentile of the slowdown by flow-size bin."""
        from fanin import figures

        return figures.by_size(self, "slowdown")

    def plot_fct(self) -> Figure:
        """Return mean, median, 95th and 99th percentile of the completion time by flow-size bin."""
        from fanin import figures

        return figures.by_size(self, "fct")

    def plot_sequence(self, flow: int | str | None = None) -> Figure:
        """Return the time-sequence plot of a followed flow: bytes sent, sent again, acknowledged, and the congestion window.

        Parameters
        ----------
        flow : int or str, optional
            Its number or id; the followed flow with the largest slowdown if not given.
        """
        from fanin import figures

        return figures.sequence(self, flow)

    def plot_queue(self, port: str | None = None, *, window_ps: tuple[int, int] | None = None) -> Figure:
        """Return the queue of a port over time.

        Per packet where the port was watched, otherwise by samples. More points than a screen can show are reduced to
        the smallest and largest of each pixel, and the title says so; a `window_ps` brings every packet back.

        Parameters
        ----------
        port : str, optional
            For example ``leaf0->h3``; the port with the largest queue if not given.
        window_ps : (int, int), optional
            Only this part of the run [ps].

        Raises
        ------
        ValueError
            There is no record of that port.
        """
        from fanin import figures

        return figures.queue(self, port, window_ps=window_ps)

    def plot_throughput(self, ports: str | Sequence[str] | None = None) -> Figure:
        """Return throughput over time [bit/s, frames without preamble and gap].

        Parameters
        ----------
        ports : str or sequence of str, optional
            One or several ports; if not given, the sum over all ports that lead to hosts.

        Raises
        ------
        ValueError
            There are no samples of a port.
        """
        from fanin import figures

        return figures.throughput(self, ports)

    def plot_pauses(self) -> Figure:
        """Return when ports were paused by priority flow control, a line for each port and class."""
        from fanin import figures

        return figures.pauses(self)

    def plot_drops_marks(self, port: str | None = None) -> Figure:
        """Return drops and ECN marks over time [packets per sampling interval], of `port` or of all."""
        from fanin import figures

        return figures.drops_marks(self, port)

    def save_pdf(self, path: str | os.PathLike[str], plot: str = "fct_cdf", *, width: str = "column", **options: Any) -> Path:
        """Write a figure for a paper: vector, embedded TrueType fonts, distinguishable in grey.

        Parameters
        ----------
        path : path-like
            Where to; ``.pdf``, ``.svg`` or ``.png``.
        plot : str
            Which: ``fct_cdf``, ``fct``, ``slowdown``, ``queue``, ``throughput``, ``drops_marks`` or ``pauses``.
        width : {"column", "page"}
            Width of the figure: 3.33 in or 7 in.
        **options
            Passed to the ``plot_`` method of that name.

        Raises
        ------
        ValueError
            There is no such plot.
        """
        from fanin import paper

        return paper.save(self._figure(plot, options), path, width=width)

    def to_matplotlib(self, plot: str = "fct_cdf", *, width: str = "column", **options: Any) -> Any:
        """Return a figure as a `matplotlib.figure.Figure`, ready for changes by hand; parameters as in `save_pdf`."""
        from fanin import paper

        return paper.to_matplotlib(self._figure(plot, options), width=width)

    def _figure(self, plot: str, options: Mapping[str, Any]) -> Figure:
        names = sorted(name.removeprefix("plot_") for name in dir(self) if name.startswith("plot_"))
        if plot not in names:
            raise ValueError(f"there is no plot '{plot}'; there are {', '.join(names)}")
        return getattr(self, f"plot_{plot}")(**options)

    # -- pages ------------------------------------------------------------------------------------------------------

    def report(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Write the report: one HTML page that needs neither network nor other files.

        Parameters
        ----------
        path : path-like, optional
            Where to; ``report.html`` in the result folder if not given.

        Returns
        -------
        pathlib.Path
            Where it was written.
        """
        from fanin import report

        target = Path(path) if path is not None else self.path / "report.html"
        report.write(self, target)
        return target

    def compare(self, *others: Source, base: str | None = None, metric: str | Sequence[str] = ()) -> Comparison:
        """Compare this run with others; see `fanin.compare`, which also takes several seeds.

        Parameters
        ----------
        *others : Result or path-like
            Other runs.
        base : str, optional
            Name of the variant that the others are compared with: this run if not given.
        metric : str or sequence of str
            Which numbers are shown and judged.

        Raises
        ------
        CompareError
            Something is wrong with a folder or a name; all of it is in ``problems``.
        """
        from fanin.comparison import compare

        return compare([self, *others], base=base, metric=metric)

    def __repr__(self) -> str:
        return f"<fanin.Result {str(self.path)!r}: {self.status}, {show.duration(self.manifest.get('sim_ps'))} simulated>"

    def _repr_html_(self) -> str:
        def row(cells: list[str], tag: str = "td") -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        title = f"<b>{html.escape(str(self.manifest.get('name') or self.path.name))}</b> – {html.escape(self.status)}"
        if self.manifest.get("reason"):
            title += f": {html.escape(str(self.manifest['reason']))}"
        if not (self.path / SUMMARY).is_file():
            return f"<div>{title}</div>"
        head, rows = fct_rows(self.summary)
        totals = "".join(row([fact.name, fact.text]) for fact in facts(self.summary, self.manifest))
        bins = row(head, "th") + "".join(row(cells) for cells in rows)
        counted = "".join(
            f"<p>{html.escape(group.title)}: {html.escape(group.doc)}</p><table>{row(counters.HEAD, 'th')}"
            + "".join(map(row, counters.rows(group, zeros=False)))
            + "</table>"
            for group in counters.groups(self.summary)
        )
        return f"<div>{title}<table>{totals}</table><table>{bins}</table>{counted}</div>"
