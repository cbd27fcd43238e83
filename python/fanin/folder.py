"""Where results go: checked before a run starts, so that hours of work do not end at a full disk or on another's files."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path
from typing import BinaryIO, Final

from fanin._files import OURS
from fanin.results import MANIFEST, SCHEMAS, SUMMARY

__all__ = ["PROBE_BYTES", "OutputError", "clear", "inspect"]

PACKETS: Final = "packets.pcapng"
"""What `telemetry.capture` writes."""

PROBE_BYTES: Final = 4 << 20
"""How much must fit onto the disk for a run to start [bytes]. A run needs more; how much is not known beforehand."""


_LEFT_OVER: Final = (".ballast", f".{MANIFEST}.new", f".{SUMMARY}.new")
"""What a run that is killed may leave besides the names that begin with `OURS`."""


class OutputError(OSError):
    """The result folder cannot be used."""


def inspect(out: Path, *, overwrite: bool) -> None:
    """Make sure that a result folder can be written at `out`, and make the folder.

    Parameters
    ----------
    out : pathlib.Path
        The folder; made with its parents if it is not there.
    overwrite : bool
        Whether an earlier result may be replaced. Anything else in the folder is never touched.

    Raises
    ------
    OutputError
        It is a file, holds something else than a result, holds a result and `overwrite` is not set, cannot be written,
        or its disk is full.
    """
    if out.exists() and not out.is_dir():
        raise OutputError(f"{out}: is a file, not a folder")
    if out.is_dir():
        try:
            content = sorted(entry.name for entry in out.iterdir() if not _is_left_over(entry.name))
        except OSError as error:
            raise OutputError(f"{out}: cannot be read: {error.strerror}") from error
        if content and MANIFEST not in content:
            raise OutputError(
                f"{out}: is not empty and holds no earlier result ({', '.join(content[:3])} …); choose another folder"
            )
        if content and not overwrite:
            raise OutputError(f"{out}: holds an earlier result; --force (overwrite=True) replaces it")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{out}: cannot be made: {error.strerror}") from error
    probe = out / f"{OURS}probe-{os.getpid()}"
    try:
        with probe.open("wb") as file:
            _allocate(file)
    except OSError as error:
        raise OutputError(f"{out}: cannot be written: {error.strerror}") from error
    finally:
        with contextlib.suppress(OSError):
            probe.unlink()


def _allocate(file: BinaryIO) -> None:
    """Take `PROBE_BYTES` of the disk; by writing only where the file system cannot do without."""
    try:
        os.posix_fallocate(file.fileno(), 0, PROBE_BYTES)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL):
            raise
        file.write(b"\0" * PROBE_BYTES)
        file.flush()
        os.fsync(file.fileno())


def _is_left_over(name: str) -> bool:
    return name in _LEFT_OVER or name.startswith(OURS)


def clear(out: Path) -> None:
    """Remove the files of an earlier result, converted tables and what a killed run left too, the manifest last; nothing else."""
    tables = [f"{table}.{ending}" for table in SCHEMAS for ending in ("parquet", "csv", "jsonl", "arrow")]
    left_over = [entry.name for entry in out.iterdir() if _is_left_over(entry.name)]
    for name in [*tables, PACKETS, SUMMARY, "report.html", *left_over, MANIFEST]:
        (out / name).unlink(missing_ok=True)
