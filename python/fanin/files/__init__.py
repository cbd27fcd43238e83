"""Files: what is written is whole or not there; what is read is a file, not a pipe that nobody feeds."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fanin.files import system

__all__ = ["OURS", "read_text", "replacing", "write_text"]

OURS: Final = ".fanin-"
"""Prefix of files that exist only while something is written; whatever a killed process left of them may be removed."""

_numbers = itertools.count()

_PART: Final = re.compile(re.escape(OURS) + r"part-\d+-\d+(\.\w+)?")
"""Names that `replacing` gives."""


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a name beside `path` to write to; what is written there becomes `path` if there is no error.

    A crash or a full disk so leaves the old file or none, never half a one that looks whole. A device or a pipe, such as
    /dev/stdout, is given as it is: nothing can take its place.

    Raises
    ------
    OSError
        It cannot be written; the error names `path`.
    """
    target = Path(path)
    if target.exists() and not target.is_file():
        yield target
        return
    target = target.resolve()  # what a link leads to is replaced, not the link
    _remove_left_over(target.parent)
    held: int | None
    try:
        part, held = _new_part(target)
    except OSError as error:
        raise _naming(error, path) from error
    try:
        yield part
        if target.exists():
            shutil.copymode(target, part)
        with part.open("rb" if system.OPEN_FILES_MOVE else "rb+") as file:
            os.fsync(file.fileno())  # else the name could reach the disk before the content
        if not system.OPEN_FILES_MOVE:
            os.close(held)
            held = None
        part.replace(target)
    except OSError as error:
        if error.filename is not None and os.fspath(error.filename) != os.fspath(part):
            raise
        raise _naming(error, path) from error
    finally:
        if held is not None and not system.OPEN_FILES_MOVE:
            os.close(held)
            held = None
        part.unlink(missing_ok=True)
        if held is not None:
            os.close(held)


def _new_part(target: Path) -> tuple[Path, int]:
    """Return an empty file beside `target` and its descriptor, which holds a lock on it for as long as this process lives."""
    while True:
        part = target.with_name(f"{OURS}part-{os.getpid()}-{next(_numbers)}{target.suffix}")
        try:
            descriptor = os.open(part, system.CREATE, 0o666)
        except FileExistsError:
            continue  # of a process that had the same number, here or on another machine
        with contextlib.suppress(OSError):  # no locks there: then nobody removes anything
            system.lock(descriptor)
        if part.exists():
            return part, descriptor
        os.close(descriptor)  # taken for a file that was left, before it was locked


def _remove_left_over(folder: Path) -> None:
    """Remove what writers that were killed have left: files that no process has locked."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if not _PART.fullmatch(entry.name) or not entry.is_file(follow_symlinks=False):
                continue
            with contextlib.suppress(OSError):
                descriptor = os.open(entry.path, system.OWN)
                try:
                    system.lock(descriptor)
                    if system.OPEN_FILES_MOVE:
                        Path(entry.path).unlink()
                finally:
                    os.close(descriptor)
                if not system.OPEN_FILES_MOVE:
                    Path(entry.path).unlink()


def _naming(error: OSError, path: str | os.PathLike[str]) -> OSError:
    """Return an error with the name of the file that could not be written; Polars says its number only in words."""
    said = None if error.errno is not None else re.search(r"\(os error (\d+)\)", str(error))
    number = int(said[1]) if said else error.errno
    return OSError(number, str(error) if number is None else os.strerror(number), os.fspath(path))


def write_text(path: str | os.PathLike[str], text: str) -> Path:
    """Write a text file whole or not at all; see `replacing`."""
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")
    return Path(path)


def read_text(path: Path) -> str:
    """Return the text of a file.

    Raises
    ------
    OSError
        It cannot be read, or is a pipe or a device, which could be waited for without end.
    UnicodeDecodeError
        It is not UTF-8.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        raise OSError(None, "is a pipe or a device, not a file", str(path))
    return path.read_text(encoding="utf-8")
