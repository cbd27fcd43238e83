"""Result folders, checked before a run starts, so that hours of work do not end at a full disk or on another's files."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

from fanin.files import OURS, system
from fanin.files.locks import LOCK, Lock, LockedError
from fanin.tables.recorded import MANIFEST, SUMMARY

PROBE_BYTES: Final = 4 << 20
"""Room that a disk must have for a run to start [bytes]. A run needs more; how much is not known beforehand."""


_LEFT_OVER: Final = (".ballast", f".{MANIFEST}.new", f".{SUMMARY}.new")
"""Files that a killed run may leave besides the names that begin with `OURS`."""


class OutputError(OSError):
    """The result folder cannot be used."""


@contextlib.contextmanager
def taken(out: Path, *, overwrite: bool) -> Iterator[None]:
    """Make a folder for a result, see that one can be written there, and keep other runs out while it is.

    Parameters
    ----------
    out : pathlib.Path
        The folder; made with its parents if it is not there.
    overwrite : bool
        Whether an earlier result may be replaced. Anything else in the folder is never touched.

    Raises
    ------
    OutputError
        It is a file, holds something else than a result, is written to by another run, holds a result and `overwrite` is not
        set, cannot be written, or its disk is full.
    """
    if out.exists() and not out.is_dir():
        raise OutputError(f"{out}: is a file, not a folder")
    if out.is_dir():
        _content(out)
    made = [folder for folder in (out, *out.parents) if not folder.exists()]
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{out}: cannot be made: {error.strerror}") from error
    with _gone_if_empty(made), contextlib.ExitStack() as stack:
        try:
            stack.enter_context(Lock(out / LOCK))
        except LockedError as error:
            raise OutputError(
                f"{out}: {error} is writing a result there; wait until it has ended, or choose another folder"
            ) from None
        except OSError as error:
            raise OutputError(f"{out}: cannot be written: {error.strerror}") from error
        if _content(out) and not overwrite:
            raise OutputError(f"{out}: holds an earlier result; --force (overwrite=True) replaces it")
        for entry in out.iterdir():
            if _is_left_over(entry.name) and entry.name != LOCK and not entry.is_dir():
                entry.unlink(missing_ok=True)
        _probe(out)
        yield


@contextlib.contextmanager
def _gone_if_empty(made: Sequence[Path]) -> Iterator[None]:
    """Remove folders, inner ones first, that hold nothing when an error has ended what they were made for."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            for folder in made:
                folder.rmdir()
        raise


def _content(out: Path) -> list[str]:
    """Return what is in a result folder; raise if it is none."""
    try:
        content = sorted(entry.name for entry in out.iterdir() if not _is_left_over(entry.name))
    except OSError as error:
        raise OutputError(f"{out}: cannot be read: {error.strerror}") from error
    if content and MANIFEST not in content:
        raise OutputError(f"{out}: is not empty and holds no earlier result ({', '.join(content[:3])} …); choose another folder")
    return content


def _probe(out: Path) -> None:
    """See that something can be written."""
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
    taken = False
    try:
        taken = system.allocate(file.fileno(), PROBE_BYTES)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL):
            raise
    if not taken:
        file.write(b"\0" * PROBE_BYTES)
        file.flush()
        os.fsync(file.fileno())


def _is_left_over(name: str) -> bool:
    return name in _LEFT_OVER or name.startswith(OURS)
