"""Where results of a sweep are kept: files in a folder or in an S3-compatible store, each whole or not there."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from fanin.files import OURS, system
from fanin.statistics.rows import MetricRow

if TYPE_CHECKING:
    import polars as pl

SWEEP: Final = "sweep.json"
PLAN: Final = "plan.parquet"
RUNS: Final = "runs"
METRICS: Final = "metrics"
RESULTS: Final = "results"

_PART: Final = f"{OURS}part-"
_LABEL: Final = 60
"""Characters of a label in the name of a folder."""

FLUSH_RUNS: Final = 5000
FLUSH_S = 5.0
"""How much is in memory alone, at most: what a killed sweep does again."""

RunRow = dict[str, Any]


class StoreError(OSError):
    """The store of a sweep cannot be used."""


class Store(Protocol):
    """Files by name, such as ``runs/1of1-ab12-000001.parquet``."""

    path: str

    def put(self, name: str, data: bytes) -> None:
        """Write a file, whole or not at all, so that it survives a crash of the machine."""

    def get(self, name: str) -> bytes | None:
        """Return the content of a file; None if it is not there."""

    def names(self, folder: str) -> list[str]:
        """Return the names of the Parquet files in a folder, without the folder and the ending, in order."""

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""


def opened(where: str | os.PathLike[str]) -> Store:
    """Return the store at a path or at ``s3://BUCKET/PREFIX``."""
    text = os.fspath(where)
    if text.startswith("s3://"):
        return S3Store(text)
    if "://" in text:
        raise StoreError(f"{text}: is no place for a sweep; accepted: a folder, s3://BUCKET/PREFIX")
    return LocalStore(Path(text))


class LocalStore:
    """A folder.

    Parameters
    ----------
    folder : pathlib.Path
        Made with its parents at the first `put`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder: Final = folder
        self.path = str(folder)

    def put(self, name: str, data: bytes) -> None:
        """Write a file beside its place, have it on the disk, and rename it."""
        target = self.folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f"{_PART}{target.name}-{secrets.token_hex(4)}")
        try:
            with part.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            part.replace(target)
            system.sync_folder(target.parent)  # else a crash of the machine could forget the name
        except OSError as error:
            raise StoreError(error.errno, error.strerror or str(error), str(target)) from error
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)

    def get(self, name: str) -> bytes | None:
        """Return the content of a file; None if it is not there."""
        try:
            return (self.folder / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def names(self, folder: str) -> list[str]:
        """Return the names of the Parquet files in a folder, in order."""
        try:
            found = [entry.name for entry in os.scandir(self.folder / folder)]
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(name.removesuffix(".parquet") for name in found if name.endswith(".parquet") and not name.startswith(OURS))

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        (self.folder / name).unlink(missing_ok=True)


class S3Store:
    """A prefix in a bucket of S3, or of what speaks its protocol.

    Credentials, region and endpoint come from the environment: ``AWS_ACCESS_KEY_ID``, ``AWS_SECRET_ACCESS_KEY``,
    ``AWS_REGION``, ``AWS_ENDPOINT_URL``, and ``AWS_ALLOW_HTTP=true`` for an endpoint without TLS.

    Parameters
    ----------
    url : str
        ``s3://BUCKET/PREFIX``.
    """

    def __init__(self, url: str) -> None:
        try:
            import obstore
            from obstore.store import from_url
        except ImportError:
            raise StoreError(f"{url}: needs the package obstore; pip install 'fanin[s3]'") from None
        self.path = url.rstrip("/")
        self._obstore: Final[Any] = obstore
        try:
            self._store: Final[Any] = from_url(self.path)
        except Exception as error:
            raise StoreError(f"{url}: {_first_line(error)}") from None

    def put(self, name: str, data: bytes) -> None:
        """Write an object; a reader sees all of it or nothing."""
        try:
            self._obstore.put(self._store, name, data)
        except Exception as error:
            raise StoreError(f"{self.path}/{name}: cannot be written: {_first_line(error)}") from error

    def get(self, name: str) -> bytes | None:
        """Return the content of an object; None if it is not there."""
        found: bytes | None = self._tried(name, lambda: bytes(self._obstore.get(self._store, name).bytes()))
        return found

    def names(self, folder: str) -> list[str]:
        """Return the names of the Parquet objects under a prefix, in order."""
        found = self._tried(folder, lambda: [o["path"] for some in self._obstore.list(self._store, folder) for o in some]) or []
        names = [path.rsplit("/", 1)[-1] for path in found]
        return sorted(name.removesuffix(".parquet") for name in names if name.endswith(".parquet"))

    def remove(self, name: str) -> None:
        """Remove an object, if it is there."""
        self._tried(name, lambda: self._obstore.delete(self._store, name))

    def _tried(self, name: str, action: Any) -> Any:
        try:
            return action()
        except FileNotFoundError:
            return None
        except Exception as error:
            raise StoreError(f"{self.path}/{name}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:500]


class Writer:
    """Gathers rows and writes them as segments, whose metrics are there before their runs are.

    Parameters
    ----------
    store : Store
        Where to.
    writer : str
        How names of its segments begin; two writers at once have different ones.
    axes : mapping
        Columns of the axes, a value for each point.
    """

    def __init__(self, store: Store, writer: str, axes: Mapping[str, pl.Series]) -> None:
        self._store: Final = store
        self._axes: Final = axes
        self._name: Final = writer
        self._prefix: Final = f"{writer}-{int(time.time()):x}{secrets.token_hex(3)}"
        self._number = 0
        self._runs: list[RunRow] = []
        self._metrics: list[tuple[str, Sequence[MetricRow]]] = []
        self._began = self._flushed = time.monotonic()

    def part(self, run: str) -> str:
        """Return how the temporary result folder of a run is called; what a killed writer leaves is so known to be its own."""
        return f"{_PART}{self._name}-{run}-"

    def add(self, row: RunRow, metrics: Sequence[MetricRow]) -> None:
        """Take the rows of a run; they are on the disk after the next `flush`."""
        self._runs.append(row)
        if metrics:
            self._metrics.append((row["run"], metrics))

    def flush_if_due(self) -> None:
        """Write what there is, if it is much or has waited."""
        now = time.monotonic()
        # A long sweep writes less often, so that a day of it is a thousand files and not ten thousand.
        waits = min(max(FLUSH_S, (now - self._began) / 100), 12 * FLUSH_S)
        if len(self._runs) >= FLUSH_RUNS or (self._runs and now - self._flushed > waits):
            self.flush()

    def flush(self) -> None:
        """Write what there is."""
        if self._runs:
            self._number += 1
            segment = f"{self._prefix}-{self._number:06d}"
            metrics = metrics_frame(self._metrics, segment)
            if metrics.height:
                self._put(f"{METRICS}/{segment}.parquet", metrics)
            self._put(f"{RUNS}/{segment}.parquet", runs_frame(self._runs, segment, self._axes))
            self._runs, self._metrics = [], []
        self._flushed = time.monotonic()

    def _put(self, name: str, frame: pl.DataFrame) -> None:
        self._store.put(name, as_parquet(frame))


def result_name(run: str, label: str | None, seed: int) -> str:
    """Return the name of the result folder of a run: its key, after its label and seed where its point has a label."""
    return run if not label else f"{re.sub(r'[^A-Za-z0-9._-]+', '_', label)[:_LABEL]}-seed{seed}-{run}"


def kept_results(store: Store) -> dict[str, Path]:
    """Return the result folders in a store by run."""
    if not isinstance(store, LocalStore):
        return {}
    try:
        entries = sorted(entry.name for entry in os.scandir(store.folder / RESULTS) if not entry.name.startswith(OURS))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    return {name.rpartition("-")[2]: store.folder / RESULTS / name for name in entries}


def as_parquet(frame: pl.DataFrame) -> bytes:
    """Return a frame as the bytes of a Parquet file."""
    import io

    file = io.BytesIO()
    frame.write_parquet(file, compression="zstd", compression_level=1)
    return file.getvalue()


def run_schema() -> dict[str, Any]:
    """Return the columns of the table of runs that every sweep has."""
    import polars as pl

    texts = ("run", "segment", "point", "label")
    return {
        **dict.fromkeys(texts, pl.String),
        "seed": pl.UInt64,
        "status": pl.String,
        "error": pl.String,
        "attempt": pl.Int64,
        "version": pl.String,
        "scenario_hash": pl.String,
        "fingerprint": pl.String,
        **dict.fromkeys(("sim_ps", "packet_hops", "events"), pl.Int64),
        **dict.fromkeys(("cpu_s", "wall_s"), pl.Float64),
        "host": pl.String,
    }


def runs_frame(rows: Sequence[RunRow], segment: str, axes: Mapping[str, pl.Series]) -> pl.DataFrame:
    """Return rows of runs as a frame; `axes` have a value for each point, whose number a row has as ``at``."""
    import polars as pl

    columns = [
        pl.Series(name, [segment if name == "segment" else row.get(name) for row in rows], dtype=kind)
        for name, kind in run_schema().items()
    ]
    points = [row["at"] for row in rows]
    return pl.DataFrame([*columns, *(series.gather(points) for series in axes.values())])


def metrics_frame(found: Iterable[tuple[str, Sequence[MetricRow]]], segment: str) -> pl.DataFrame:
    """Return rows of metrics as a frame, columns by group side by side."""
    import polars as pl

    # Rows with the same metrics are turned into columns at once: there are hundreds of values for each run.
    alike: dict[tuple[str, ...], tuple[list[str], list[str | None], list[Any]]] = {}
    for run, metrics in found:
        for group, name, values in metrics:
            key = (group, *values)
            if key not in alike:
                alike[key] = ([], [], [])
            runs, names, rows = alike[key]
            runs.append(run)
            names.append(name)
            rows.append(values.values())
    frames = []
    for (group, *columns), (runs, names, rows) in alike.items():
        made = [
            pl.Series("run", runs, dtype=pl.String),
            pl.Series("segment", [segment], dtype=pl.String).new_from_index(0, len(runs)),
            pl.Series("group", [group], dtype=pl.String).new_from_index(0, len(runs)),
            pl.Series("name", names, dtype=pl.String),
        ]
        made += [_metric(key, list(column)) for key, column in zip(columns, zip(*rows, strict=True), strict=True)]
        frames.append(pl.DataFrame([series for series in made if series.dtype != pl.Null]))
    if not frames:
        return pl.DataFrame(schema=dict.fromkeys(("run", "segment", "group", "name"), pl.String))
    return pl.concat(frames, how="diagonal_relaxed")


def _metric(name: str, values: list[Any]) -> pl.Series:
    import polars as pl

    kinds: set[Any] = set(map(type, values))
    kinds.discard(type(None))
    if kinds == {int}:
        kind: Any = pl.Int64
    elif kinds == {bool}:
        kind = pl.Boolean
    else:
        kind = pl.String if str in kinds else pl.Float64 if kinds else pl.Null
    return pl.Series(name, values, dtype=kind, strict=False)


def orphans(store: LocalStore, writer: str) -> None:
    """Remove what a killed writer of this name left: metrics without runs, and files under temporary names."""
    done = set(store.names(RUNS))
    for name in store.names(METRICS):
        if name.startswith(f"{writer}-") and name not in done:
            store.remove(f"{METRICS}/{name}.parquet")
    for folder in (RUNS, METRICS):
        for part in (store.folder / folder).glob(f"{_PART}{writer}-*"):
            part.unlink(missing_ok=True)
    for part in (store.folder / RESULTS).glob(f"{_PART}{writer}-*"):
        shutil.rmtree(part, ignore_errors=True)


def read_frames(store: Store, folder: str, names: Iterable[str]) -> dict[str, pl.DataFrame]:
    """Return segments as frames by name.

    Raises
    ------
    StoreError
        A segment is damaged.
    """
    import io

    import polars as pl

    frames = {}
    for name in names:
        data = store.get(f"{folder}/{name}.parquet")
        if data is None:
            continue  # metrics of a segment in which every run failed
        try:
            frames[name] = pl.read_parquet(io.BytesIO(data))
        except Exception as error:
            raise StoreError(f"{store.path}/{folder}/{name}.parquet: is damaged: {_first_line(error)}") from None
    return frames
