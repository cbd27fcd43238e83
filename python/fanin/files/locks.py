"""Locks of folders that processes write to: files that the kernel unlocks when their process dies, however it dies."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from fanin.files import OURS, system

LOCK: Final = f"{OURS}lock"
"""Name of the file in a folder."""

_UNSUPPORTED: Final = frozenset({errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})
"""Errors of file systems without locks, such as NFS without its lock service."""

_TRIES: Final = 5
_PAUSE_S: Final = 0.02
"""How often a lock is tried, and the time between [s]: one who asks `holder` has it for less than that."""

_SHOWN: Final = 200
"""Characters of a command that a message shows."""

_held: Final[set[int]] = set()
"""Descriptors of this process's locks."""


def _let_go_in_child() -> None:
    """A forked child shares the locks of its parent, which would stay locked until the child ends, too."""
    for descriptor in _held:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go_in_child)


class LockedError(Exception):
    """Another process has the lock, or another thread; the message says which, for example ``process 4711 (fanin run …)``."""


class Lock:
    """A lock, held from entering to leaving; `move` gives its file another name.

    Where the file system has no locks it locks nothing: `works` says so.

    Parameters
    ----------
    path : pathlib.Path
        The file, which is made if it is not there and removed in the end.
    create : bool
        Whether the file may be made.

    Raises
    ------
    LockedError
        On entering: it is held.
    OSError
        On entering: the file cannot be made.
    """

    works: bool

    def __init__(self, path: Path, *, create: bool = True) -> None:
        self._path = path
        self._flags = system.OWN | (os.O_CREAT if create else 0)
        self._descriptor = -1
        self._process = 0
        self.works = False

    def __enter__(self) -> Self:
        tries = 0
        while True:
            descriptor = os.open(self._path, self._flags, 0o666)
            try:
                system.lock(descriptor)
                self.works = True
            except BlockingIOError:
                owner = _owner(descriptor)
                os.close(descriptor)
                tries += 1
                if tries == _TRIES:
                    raise LockedError(owner) from None
                time.sleep(_PAUSE_S)
                continue
            except OSError as error:
                if error.errno not in _UNSUPPORTED:
                    os.close(descriptor)
                    raise
            if _is_at(descriptor, self._path):
                break
            os.close(descriptor)  # its owner has removed the file since it was opened
        self._descriptor, self._process = descriptor, os.getpid()
        _held.add(descriptor)
        facts = {"pid": self._process, "host": socket.gethostname(), "command": _command()}
        with contextlib.suppress(OSError):  # on a full disk the lock has no name, and holds all the same
            os.truncate(descriptor, 0)
            system.pwrite(descriptor, json.dumps(facts).encode())
        return self

    def move(self, path: Path) -> None:
        """Give the file another name, while it is locked; where no open file can have one, it is unlocked for a moment."""
        if system.OPEN_FILES_MOVE:
            self._path.rename(path)
            self._path = path
            return
        self._close()
        self._path.rename(path)
        self._path = path
        self.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if os.getpid() != self._process:
            return
        if system.OPEN_FILES_MOVE:
            with contextlib.suppress(OSError):
                self._path.unlink()
            self._close()
        else:
            self._close()
            with contextlib.suppress(OSError):
                self._path.unlink()

    def _close(self) -> None:
        _held.discard(self._descriptor)
        os.close(self._descriptor)


def holder(path: Path) -> str | None:
    """Return who holds a lock, or None if nobody does.

    Raises
    ------
    OSError
        That cannot be told: the file cannot be opened, or the file system has no locks.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        system.lock(descriptor, shared=True)
    except BlockingIOError:
        return _owner(descriptor)
    finally:
        os.close(descriptor)
    return None


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        there = path.stat(follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(descriptor), there)


def _command() -> str:
    words = [Path(sys.argv[0]).name, *sys.argv[1:]] if sys.argv and sys.argv[0] not in ("", "-c") else ["python"]
    return " ".join(words)[:_SHOWN]


def _owner(descriptor: int) -> str:
    """Return who holds a lock, from what is in its file: written by anybody, so nothing of it is trusted."""
    try:
        facts = json.loads(system.pread(descriptor, 4096))
        process, host, command = int(facts["pid"]), str(facts["host"]), str(facts["command"])[:_SHOWN]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return "another process"
    here = "" if host == socket.gethostname() else f" on {host}"
    text = f"process {process}{here} ({'this one' if process == os.getpid() and not here else command})"
    return "".join(character if character.isprintable() else "?" for character in text)
