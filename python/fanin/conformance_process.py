"""Programs that conformance starts: their time, their last words, their end."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from selectors import EVENT_READ, DefaultSelector
from typing import IO, Final

_LAST_WORDS: Final = 2_000
"""Characters of a target's standard error that are kept: its last."""
_LONGEST_S: Final = 1e6
_SHOWN: Final = 200
_PAUSE_S: Final = 0.05


def checked(timeout_s: float) -> float:
    """Refuse a time that is none, or that the system's calls do not take."""
    if not timeout_s > 0:
        raise ValueError(f"--timeout {timeout_s:g}: is not above zero")
    if timeout_s > _LONGEST_S:
        raise ValueError(f"--timeout {timeout_s:g}: is too long; accepted: up to {_LONGEST_S:,.0f} s")
    return timeout_s


def command(target: Sequence[str]) -> str:
    """A program and its arguments in one line, shortened where they are long."""
    text = " ".join(" ".join(target).split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


class LastWords:
    """The end of what a process writes to its standard error; the rest is read and forgotten."""

    def __init__(self) -> None:
        self.kept = bytearray()

    def read(self, pipe: IO[bytes]) -> bool:
        """Take what there is; False at its end."""
        read = os.read(pipe.fileno(), 65_536)
        self.kept += read
        del self.kept[: -4 * _LAST_WORDS]
        return bool(read)

    @property
    def text(self) -> str:
        """What it said last."""
        return self.kept.decode("utf-8", "replace").strip()[-_LAST_WORDS:]


@contextmanager
def started(target: Sequence[str], *, pipes: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program in a session of its own, standard input and output at `pipes`; at the end nothing of it is left."""
    # S603: running the user's program is what the command is for.
    process = subprocess.Popen(  # noqa: S603
        list(target), stdin=pipes, stdout=pipes, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            with suppress(OSError):
                if stream is not None:
                    stream.close()


def ended(target: Sequence[str], timeout_s: float, wrong: Callable[[], str | None]) -> tuple[str | None, str]:
    """Run a program to its end: why it failed, and its last words. What `wrong` says while it runs ends it, too."""
    deadline, words = time.monotonic() + timeout_s, LastWords()
    failure: str | None = None
    with started(target, pipes=subprocess.DEVNULL) as process, DefaultSelector() as selector:
        assert process.stderr is not None  # noqa: S101  (a pipe, as asked for)
        os.set_blocking(process.stderr.fileno(), False)
        selector.register(process.stderr, EVENT_READ)
        while failure is None and process.poll() is None:
            if time.monotonic() >= deadline:
                failure = f"it did not end within {timeout_s:g} s (--timeout gives it longer)"
            elif not selector.get_map():
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_PAUSE_S)
            elif selector.select(_PAUSE_S) and not words.read(process.stderr):
                selector.unregister(process.stderr)
            failure = failure or wrong()
        if selector.get_map():
            with suppress(BlockingIOError):
                words.read(process.stderr)
    if failure is None and process.returncode != 0:
        failure = status(process.returncode)
    return failure, words.text


def status(code: int) -> str:
    """How a process ended, by its code."""
    if code >= 0:
        return f"it ended with status {code}"
    try:
        return f"it was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"it was ended by signal {-code}"
