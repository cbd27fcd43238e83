"""Files that can be read only once - standard input, pipes, process substitution - kept while they are needed."""

from __future__ import annotations

import errno
import functools
import os
import re
import select
import stat
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final, cast

from fanin.files import system
from fanin.text import show

STDIN: Final = "-"

PATIENCE_S: Final = 5.0
"""Time to wait for a writer of a pipe [s]."""

_CHUNK: Final = 1 << 20

_PIPE: Final = "pipe"
"""Name in messages of a pipe that has a number only, as process substitution gives it."""


@dataclass
class Spooled:
    """Paths that can be read again and again, as long as this is held.

    Attributes
    ----------
    paths : list of str
        In the order that was given.
    shown : dict of str to str
        How messages call those that are not as given.
    """

    paths: list[str] = field(default_factory=list)
    shown: dict[str, str] = field(default_factory=dict)
    _held: list[IO[bytes]] = field(default_factory=list)
    _copies: list[Path] = field(default_factory=list)

    def __del__(self) -> None:
        for file in self._held:
            file.close()
        for copy in self._copies:
            copy.unlink(missing_ok=True)

    def _keep(self, file: IO[bytes], name: str) -> str:
        if system.NAMED_DESCRIPTORS:
            self._held.append(file)
            path = f"/dev/fd/{file.fileno()}"
        else:
            file.close()
            path = file.name
            self._copies.append(Path(path))
        self.shown[path] = name
        return path


def spool(given: Sequence[str]) -> Spooled:
    """Copy what is no file into temporary files without a name; what is one stays where it is.

    Parameters
    ----------
    given : sequence of str
        Paths; ``-`` is standard input.

    Raises
    ------
    OSError
        A pipe cannot be read, or there is no room for what comes out of it: in ``TMPDIR``, or else ``/tmp``.
    """
    spooled = Spooled()
    known: dict[str, str] = {}
    for path in given:
        if path not in known:
            known[path] = _readable(path, spooled, sum(name.startswith(_PIPE) for name in spooled.shown.values()))
        spooled.paths.append(known[path])
    return spooled


def _readable(path: str, spooled: Spooled, pipes: int) -> str:
    first = b""
    if path == STDIN:
        name = "stdin"
        try:
            source: IO[bytes] = os.fdopen(os.dup(0), "rb", buffering=0)
        except OSError as error:
            raise OSError(error.errno, "cannot be read: it is closed", name) from None
        if source.isatty():
            source.close()
            raise ValueError("-: standard input is a terminal; pipe a trace into it")
        if system.NAMED_DESCRIPTORS and stat.S_ISREG(os.fstat(source.fileno()).st_mode) and source.tell() == 0:
            return spooled._keep(source, name)
    else:
        try:
            mode = Path(path).stat().st_mode
        except (OSError, ValueError):
            return path  # the reader says what is wrong with it
        if not stat.S_ISFIFO(mode):
            return path
        # A number that the shell chose says nothing.
        by_shell = re.fullmatch(r"/(dev|proc/[^/]+)/fd/\d+", path)
        name = path if by_shell is None else _PIPE if not pipes else f"{_PIPE} {pipes + 1}"
        source, first = _opened(path)
    with source:
        return spooled._keep(_copied(source, first, name), name)


def _opened(path: str) -> tuple[IO[bytes], bytes]:
    """Open a pipe for reading once something comes out of it, and give that; one that nobody writes to is not waited for."""
    source = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb", buffering=0)
    poll = select.poll()
    poll.register(source, select.POLLIN)
    deadline = time.monotonic() + PATIENCE_S
    while not (first := source.read(_CHUNK)):
        if first is None:  # somebody has it open for writing
            poll.poll()
        elif time.monotonic() > deadline:
            source.close()
            raise OSError(None, "is a pipe into which nobody writes", path)
        else:
            time.sleep(0.05)
    os.set_blocking(source.fileno(), True)
    return source, first


def _copied(source: IO[bytes], first: bytes, name: str) -> IO[bytes]:
    copied, chunk = 0, first or source.read(_CHUNK)
    try:
        # Held as long as the analysis; where no open file has a path, one with a name.
        made = tempfile.TemporaryFile if system.NAMED_DESCRIPTORS else functools.partial(tempfile.NamedTemporaryFile, delete=False)
        target = cast("IO[bytes]", made(prefix="fanin-", buffering=0))
        while chunk:
            rest = memoryview(chunk)
            while rest:
                rest = rest[target.write(rest) :]
            copied += len(chunk)
            chunk = source.read(_CHUNK)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise OSError(error.errno, error.strerror, name) from None
        raise OSError(
            error.errno,
            f"no room for it in {tempfile.gettempdir()}, after {show.size(copied)}: what comes from a pipe is kept there "
            "while it is analysed; set TMPDIR to a folder with more room",
            name,
        ) from None
    return target
