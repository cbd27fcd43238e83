"""Differences between systems: locks of files, open files that move, descriptors with a path.

Whether this is POSIX is asked here alone, by whether there are its locks.
"""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path
from typing import Any, Final

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

POSIX: Final = fcntl is not None
"""True if this is no Windows."""

OPEN_FILES_MOVE: Final = POSIX
"""True if a file that is open may be renamed or removed."""

NAMED_DESCRIPTORS: Final = POSIX and Path("/dev/fd").exists()
"""True if an open file can be opened again by its number."""

_WHERE_THERE: Final = ("O_CLOEXEC", "O_NOFOLLOW", "O_BINARY", "O_NOINHERIT")

OWN: Final = os.O_RDWR | sum(getattr(os, name, 0) for name in _WHERE_THERE)
"""Flags with which a file of ours is opened: no link, as bytes, and not for children."""

CREATE: Final = OWN | os.O_CREAT | os.O_EXCL
"""Flags for a file of ours that is new."""

ENDS: Final = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals that end a run as Ctrl-C does: a batch system's time limit, and a terminal that is closed."""

KILLED: Final = getattr(signal, "SIGKILL", None)
"""Signal by which the kernel ends a process, for example where memory is short."""

_BEYOND: Final = 1 << 30
"""Byte of a file that Windows locks: those before it can be read and written by others all the same."""


def lock(descriptor: int, *, shared: bool = False) -> None:
    """Lock an open file for this process until it is closed.

    Parameters
    ----------
    descriptor : int
        The file.
    shared : bool
        True for a reader, which excludes no other reader and needs no file that may be written; Windows has no such locks.

    Raises
    ------
    BlockingIOError
        It is locked already.
    OSError
        The file system has no locks.
    """
    if POSIX:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        return
    import msvcrt

    windows: Any = msvcrt
    os.lseek(descriptor, _BEYOND, os.SEEK_SET)
    try:
        windows.locking(descriptor, windows.LK_NBLCK, 1)
    except PermissionError as error:
        raise BlockingIOError(error.errno, error.strerror) from None


def pread(descriptor: int, most: int) -> bytes:
    """Return the first bytes of an open file."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    return os.read(descriptor, most)


def pwrite(descriptor: int, data: bytes) -> None:
    """Write to the beginning of an open file."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.write(descriptor, data)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk, where a folder can be opened for that."""
    if not POSIX:
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def allocate(descriptor: int, size: int) -> bool:
    """Take room on the disk; False where the system can only write for that.

    Raises
    ------
    OSError
        There is none, or the file system cannot.
    """
    take = getattr(os, "posix_fallocate", None)
    if take is not None:
        take(descriptor, 0, size)
    return take is not None


def host() -> str:
    """Return the name of this machine."""
    return os.uname().nodename if hasattr(os, "uname") else socket.gethostname()


def needs_posix(what: str) -> None:
    """Refuse what has been made for POSIX alone.

    Raises
    ------
    OSError
        This is Windows.
    """
    if not POSIX:
        raise OSError(None, f"{what} does not work on Windows; in WSL 2 it does, as on Linux (docs/install.md)")
