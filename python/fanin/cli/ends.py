"""Ends a command with one line, not a traceback, when a disk is full or its output is closed."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import Any, Final

import typer
from rich.console import Console
from rich.text import Text

_OF_THE_DISK: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def is_of_the_disk(error: BaseException | None) -> bool:
    """Whether an error says that a disk is full or fails: nothing is wrong with what the user gave."""
    if error is None:
        return False
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in _OF_THE_DISK
    # What the core or Polars raise has no number of its own.
    return any(os.strerror(number) in str(error) for number in _OF_THE_DISK) or is_of_the_disk(error.__cause__)


def _buffer_output() -> None:
    """Have all written that is printed, or an error: with PYTHONUNBUFFERED, Python ignores that a full disk took only a part."""
    raw = getattr(sys.stdout, "buffer", None)
    if isinstance(raw, io.RawIOBase):
        whole = io.BufferedWriter(raw)
        sys.stdout = io.TextIOWrapper(whole, encoding=sys.stdout.encoding, errors=sys.stdout.errors, line_buffering=True)


class App(typer.Typer):
    """An application whose standard output may be a full disk or a closed pipe; exit status 1 then."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it; what it has written is on its way when this returns."""
        _buffer_output()
        try:
            try:
                return super().__call__(*args, **kwargs)
            finally:
                if sys.stdout is not None:
                    sys.stdout.flush()
        except OSError as error:
            if error.filename is not None:
                raise
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, sys.stdout.fileno())  # else Python tries once more when it ends
            os.close(nothing)
            if error.errno != errno.EPIPE:
                try:
                    text = Text(f"error: standard output: {error.strerror or error}", style="red")
                    Console(stderr=True).print(text, soft_wrap=True)
                except OSError:
                    pass  # the exit status still reports it
            raise SystemExit(1) from None
