"""What a run has recorded: manifest, summary and tables of a result folder."""

from __future__ import annotations

import json
import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fanin import _core, files
from fanin.files import locks
from fanin.tables import counters
from fanin.tables.schemas import SCHEMAS, VERSIONS, schema

if TYPE_CHECKING:
    import polars as pl

MANIFEST: Final = "manifest.json"
SUMMARY: Final = "summary.json"
DATAGRAMS: Final = "udp"
"""``transport`` of flows of datagrams, which are no transfers."""


class ResultError(ValueError):
    """A folder that is no result folder, or one that cannot be read."""


def read_json(path: Path) -> dict[str, Any]:
    """Return a JSON object of a file.

    Raises
    ------
    ResultError
        It is not there, or damaged.
    """
    try:
        document = json.loads(files.read_text(path))
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


class Recorded:
    """Manifest, summary and tables of a result folder, each read when it is asked for.

    Parameters
    ----------
    path : path-like
        The folder.
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
        self.manifest = read_json(self.path / MANIFEST)
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

    @property
    def status(self) -> str:
        """``complete``, ``partial``, ``running`` or ``killed``: nobody holds the lock of a run that has not ended."""
        status = str(self.manifest.get("status", "running"))
        if status != "running":
            return status
        try:
            killed = locks.holder(self.path / locks.LOCK) is None
            # A run that has ended since it was read was not killed.
            return "killed" if killed and read_json(self.path / MANIFEST).get("status", "running") == "running" else "running"
        except (OSError, ResultError):
            return "running"

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Totals, completion times by size bin and the hottest ports; keys and units in docs/results.md.

        Raises
        ------
        ResultError
            The run ended before a summary was written, or it is damaged.
        """
        path = self.path / SUMMARY
        if (unfinished := self._unfinished()) and not path.is_file():
            raise ResultError(f"{path}: there is no such file: {unfinished}")
        return read_json(path)

    def _unfinished(self) -> str | None:
        """Return why there is no whole result, and what to do; None where the run has ended."""
        said = {
            "running": "the run has not ended; wait for its end",
            "killed": "the run was killed; run it again, with --force",
        }
        return said.get(self.status)

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

    def scan(self, table: str, *, as_written: bool = False) -> pl.LazyFrame:
        """Return a table as a lazy frame.

        A table that the run did not write, such as the queues of a run that watched no port, is empty. Columns that an older
        Fanin did not write yet are null. ``ports`` has a row for every port at every sample; those at which nothing happened,
        all zeros, are not in the file.

        Parameters
        ----------
        table : str
            Its name: flows, queries, collectives, ports, queues, drops, pauses, states, voqs, stamps, hosts, messages,
            segments or hops.
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
            if unfinished := self._unfinished():
                raise ResultError(f"{path}: is not whole: {unfinished}") from error
            raise ResultError(f"{path}: cannot be read: {error}") from error
        version = self._check_version(str(path), metadata.get("fanin.schema"), table)
        frame = pl.scan_parquet(path)
        if table == "ports" and version > 1 and not as_written:
            from fanin.tables import samples

            frame = samples.fill(frame, self.sample_times, samples.ports_of(frame))
        written = frame.collect_schema().names()
        missing = {name: kind for name, kind in schema(table).items() if name not in written}
        if not missing:
            return frame
        added = frame.with_columns(pl.lit(None, dtype=kind).alias(name) for name, kind in missing.items())
        return added.select(*SCHEMAS[table], *(name for name in written if name not in SCHEMAS[table]))

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

    def scan_messages(self) -> pl.LazyFrame:
        """Return `messages` lazily."""
        return self.scan("messages")

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
        """Times of the samples of the ports [ps], rising; empty with ``telemetry.sample = "off"``."""
        import polars as pl

        from fanin.tables import samples

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
    def messages(self) -> pl.DataFrame:
        """One row per message of a followed flow: posted, sent, delivered, acknowledged [ps]; packets, and those sent again."""
        return self._collect("messages")

    @cached_property
    def segments(self) -> pl.DataFrame:
        """One row per packet of a followed flow, in either direction: times [ps], places in the stream [bytes], why it was sent."""
        return self._collect("segments")

    @cached_property
    def hops(self) -> pl.DataFrame:
        """One row per link that a packet of a followed flow crossed: came to the port, left, and reached the far end [ps]."""
        return self._collect("hops")

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
