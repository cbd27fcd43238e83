"""Temporary folders that go with the process that made them.

`atexit` is not enough: worker processes of `multiprocessing` do not run it, and one that is killed runs nothing. So each process
has one folder, locked while it lives; what processes that are gone have left is removed by the next one that makes a folder.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import ExitStack, suppress
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Final

from fanin.files import system
from fanin.files.locks import LOCK, Lock, LockedError

PREFIX: Final = "fanin-"

_roots: Final[dict[int, Path]] = {}
"""Process → its folder. A forked process finds that of its parent here, which is not its own."""


def folder() -> Path:
    """Return a new, empty folder that is removed when this process ends."""
    process = os.getpid()
    if process not in _roots:
        _sweep(Path(tempfile.gettempdir()))
        _roots[process] = _locked_folder()
    return Path(tempfile.mkdtemp(dir=_roots[process]))


def _locked_folder() -> Path:
    root = Path(tempfile.mkdtemp(prefix=PREFIX))
    stack = ExitStack()
    # Runs at the end of worker processes, too, and not in forked ones that did not register it.
    Finalize(None, _remove, args=(root, stack), exitpriority=-10)
    lock = stack.enter_context(Lock(root / f"{LOCK}.new"))
    if lock.works:
        lock.move(root / LOCK)  # under this name it is never seen unlocked while its process lives
    return root


def _remove(root: Path, stack: ExitStack) -> None:
    if not system.OPEN_FILES_MOVE:
        stack.close()
    shutil.rmtree(root, ignore_errors=True)
    stack.close()


def _sweep(parent: Path) -> None:
    """Remove the folders of processes that were killed."""
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False):
                _remove_if_left(Path(entry.path))


def _remove_if_left(root: Path) -> None:
    with suppress(OSError, LockedError):
        if not hasattr(os, "geteuid") or root.stat().st_uid == os.geteuid():
            with Lock(root / LOCK, create=False) as lock:
                left = lock.works
                if left and system.OPEN_FILES_MOVE:
                    shutil.rmtree(root, ignore_errors=True)
            if left and not system.OPEN_FILES_MOVE:
                shutil.rmtree(root, ignore_errors=True)
