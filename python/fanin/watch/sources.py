"""A source of records: what it has brought, how it is, and the thread that fetches."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from fanin._core import Live, TraceError
from fanin.watch.positions import Place

State = Literal["waiting", "alive", "stalled", "ended", "refused"]
"""Of a source: nothing has come yet, or nobody is at the other end; records come; none come any more; no more will come; it cannot
be read."""

NAP: Final = 0.1
"""Seconds between two looks for more."""

_AHEAD: Final = 8 << 20
"""Bytes that are read before what ended in them is told: bursts wait in memory until then."""

_HEADER: Final = 1 << 16
"""Longest first line that is remembered."""

_CHUNK: Final = 1 << 20
"""Bytes that are read at once of what was counted before."""


@dataclass
class Counts:
    """What a source has brought.

    Attributes
    ----------
    bytes : int
        Bytes that were read.
    opened : int
        How often it was opened: files, connections, writers of a pipe.
    lost : int
        Datagrams that the kernel dropped, as nobody fetched them in time.
    refused : int
        Files or connections that could not be read.
    """

    bytes: int = 0
    opened: int = 0
    lost: int = 0
    refused: int = 0


class Source:
    """A source of records; its thread fetches bytes and hands them to the core.

    Parameters
    ----------
    name : str
        As the user gave it.
    live : Live
        The analysis.
    fetch : callable
        What the thread does, until `stopping` is set.
    once : bool
        Whether the end of what is there is the end.
    patience : float
        Seconds without bytes after which it is stalled.

    Attributes
    ----------
    news : deque
        Lines for the terminal, each said once: what cannot be read, while the watch goes on.
    tells_refused : bool
        Whether the first thing of it that is refused is said on the terminal.
    safe : dict
        Places in its files up to which all that ended was taken: nothing need be read again, and nothing is told twice.
    parts : deque
        What has ended up to there, and was not told yet.
    hurry : threading.Event
        Set when much has been read since it was last told.
    """

    def __init__(self, name: str, live: Live, fetch: Callable[[Source], None], *, once: bool, patience: float) -> None:
        self.name = name
        self.live = live
        self.once = once
        self.counts = Counts()
        self.problem: str | None = None
        self.stopping = threading.Event()
        self._fetch = fetch
        self._patience = patience
        self._connected = False
        self._ended = False
        self._since = time.time()
        self._last: float | None = None
        self._heard = float("-inf")  # by a clock that nobody sets
        self._held = threading.RLock()
        self._thread: threading.Thread | None = None
        self.hurry = threading.Event()
        self._untold = 0
        self._told = threading.Event()
        self.news: deque[str] = deque(maxlen=10)
        self._said: str | None = None
        self._warned: set[str] = set()
        self.tells_refused = False
        self._unreached: str | None = None
        self._failed: TraceError | None = None
        self._places: dict[str, Place] = {}
        self._earlier: tuple[Place, ...] = ()
        self.safe: dict[str, Place] = {}
        self.parts: deque[str] = deque()
        self._open: tuple[str, int, int] | None = None  # name, descriptor, where the reading began
        self._reached: Place | None = None  # in that file, when it was last asked for

    def go_on(self, places: Mapping[str, Place]) -> None:
        """Go on from places in its files up to which they were read before."""
        self._places = dict(places)

    def start(self) -> None:
        """Begin to fetch."""
        self._thread = threading.Thread(target=self._run, name=f"watch {self.name}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._fetch(self)
            if not self.stopping.is_set():
                self.live.end()
        except TraceError as error:
            self._refuse(str(error))
        except OSError as error:
            self._refuse(f"{error.filename or self.name}: {error.strerror or error}")
        finally:
            self._ended, self._since = True, time.time()

    def stop(self) -> None:
        """Fetch no more; an unfinished line stays unread: the next start reads it."""
        self.stopping.set()
        if self._thread is not None:
            self._thread.join(timeout=10)
        self.live.stop()

    # -- how it is --------------------------------------------------------------------------------------------------------------

    @property
    def done(self) -> bool:
        """Whether no more will come."""
        return self._ended

    @property
    def last(self) -> float | None:
        """When the last bytes came."""
        return self._last

    def state(self) -> tuple[State, float]:
        """Return how it is, and since when."""
        if self.problem is not None:
            return "refused", self._since
        if self._ended:
            return "ended", self._since
        if not self._connected or self._last is None:
            return "waiting", self._since
        if time.monotonic() - self._heard > self._patience:
            return "stalled", self._last
        return "alive", self._since

    def places(self) -> dict[str, Place]:
        """Return the places in its files up to which nothing need be read again."""
        with self._held:
            places = dict(self._places)
            if self._open is not None:
                name, descriptor, start = self._open
                offset = start + self.live.used()
                if self._reached is None or self._reached.is_in(descriptor):
                    self._reached = Place.of(descriptor, offset, self._earlier)
                else:
                    # Truncated just now: the bytes before the place are gone, or others.
                    self._reached = self._reached.without_bytes(offset)
                places[name] = self._reached
            return places

    def place_at(self, descriptor: int, offset: int) -> Place:
        """Return a place in an open file, with those that had its name before."""
        return Place.of(descriptor, offset, self._earlier)

    def leave(self, descriptor: int) -> None:
        """Note that a file is read to its end, and another one gets its name."""
        size = os.fstat(descriptor).st_size
        if size:
            self._earlier = self.place_at(descriptor, size).succeeded()

    def succeed(self, earlier: tuple[Place, ...]) -> None:
        """Go on behind files that had the name before."""
        self._earlier = earlier

    def take(self) -> dict[str, Any]:
        """Add to `parts` what has ended since the last call, and return the present state; note the places up to there."""
        with self._held:
            parts, report, places = self.live.take(), self.live.report(), self.places()
            self.parts.extend(parts)
            self.safe = places
        self._untold = 0
        self._told.set()
        found: dict[str, Any] = json.loads(report)
        return found

    # -- what the fetching threads call -----------------------------------------------------------------------------------------

    def passes(self) -> Iterator[None]:
        """Go on until it is to stop, a nap between two rounds."""
        while not self.stopping.is_set():
            yield
            self.stopping.wait(NAP)

    def push(self, data: bytes, ns: int | None = None) -> None:
        """Hand bytes to the analysis; `ns`: those of a datagram, and when it came."""
        now = time.time()
        heard, self._heard = self._heard, time.monotonic()
        if self._heard - heard > self._patience:
            self._since = now
        with self._held:
            self._last = now
            self.counts.bytes += len(data)
            if ns is None:
                self.live.push(data)
            else:
                self.live.push_datagram(data, ns)
            self._untold += len(data)
            if self._untold > _AHEAD:
                self._told.clear()
        while self._untold > _AHEAD and not self.stopping.is_set():
            self.hurry.set()
            self._told.wait(NAP)

    def opened(self) -> None:
        """Note that somebody is at the other end, or that a file is open."""
        self.counts.opened += 1
        self.problem = None
        if self._unreached is not None:
            self._unreached = None
            self.news.append(f"{self.name}: answers")
        if not self._connected:
            self._connected, self._since = True, time.time()

    def unreachable(self, error: OSError) -> None:
        """Note that nobody answers at the other end; it is tried again."""
        if self._unreached is None:
            self._unreached = f"{self.name}: does not answer: {error.strerror or error}"
            self.news.append(self._unreached)

    @property
    def failure(self) -> str | None:
        """Reason for which nothing could be read of it."""
        return self.problem or (self._unreached if self.counts.opened == 0 else None)

    def heard(self, problems: Sequence[str]) -> None:
        """Say the first thing that is refused, once, where nothing else would."""
        if self.tells_refused and problems:
            self.tells_refused = False
            self.news.append(problems[0])

    def warn(self, kind: str, line: str) -> None:
        """Say something on the terminal, the first of its kind."""
        if kind not in self._warned:
            self._warned.add(kind)
            self.news.append(line)

    def closed(self) -> None:
        """Note that nobody is at the other end: what comes next is another stream.

        Raises
        ------
        TraceError
            What came was none, and there is no next one.
        """
        if self._connected:
            self._connected, self._since = False, time.time()
            with self._held:
                try:
                    self.live.reopen()
                except TraceError as error:
                    self.complain(error)

    def begin(self, name: str, descriptor: int, start: int) -> None:
        """Note which file is read from now on, and from where."""
        self.opened()
        self._failed = None
        if start:
            head = os.pread(descriptor, _HEADER, 0)
            if self.live.needs_beginning(head):
                at = 0
                while at < start and (data := os.pread(descriptor, min(_CHUNK, start - at), at)):
                    self.live.replay(data)
                    at += len(data)
                start = 0
            else:
                line, feed, _ = head.partition(b"\n")
                self.live.remember_header(line + feed)
        with self._held:
            self._open, self._reached = (name, descriptor, start), None

    def finish(self, at: Place | None = None) -> bool:
        """End the present file: its last line is whole, and nothing of it is read again; not if it is to stop, which returns False.

        `at`: where it ended, if it has been truncated since.

        Raises
        ------
        TraceError
            No trace that can be read has come, and none will.
        """
        if self.stopping.is_set():
            return False
        with self._held:
            if self._open is not None:
                name, descriptor, _ = self._open
                self._places[name] = at or Place.of(descriptor, os.fstat(descriptor).st_size, self._earlier)
                self._open = None
            try:
                self.live.reopen()
            except TraceError as error:
                self.complain(error)  # most of it was wrong: that shows at its end
        return True

    def abandon(self) -> None:
        """Close the present file before its end: the place in it is kept."""
        with self._held:
            self._places = self.places()
            self._open = None

    def forget(self, names: set[str]) -> None:
        """Forget the places in files that are not there any more; `names` are those that are."""
        with self._held:
            self._places = {name: place for name, place in self._places.items() if name in names}

    def known(self) -> dict[str, Place]:
        """Return the places in files that were read before."""
        with self._held:
            return dict(self._places)

    def refuse(self, error: TraceError) -> None:
        """Note that a file or a stream is none that can be read; the next one may be.

        Raises
        ------
        TraceError
            There is no next one.
        """
        self.complain(error)
        with self._held:
            if self._open is not None:
                name, descriptor, _ = self._open
                self._places[name] = Place.of(descriptor, os.fstat(descriptor).st_size, self._earlier)
                self._open = None
            with contextlib.suppress(TraceError):
                self.live.reopen()

    def complain(self, error: TraceError) -> None:
        """Note that what comes is none that can be read; it is passed over.

        Raises
        ------
        TraceError
            The end of this is the end of all.
        """
        if self.once:
            raise error
        problem = str(error)
        if self._said != problem:
            self._said = problem
            self.news.append(problem)
        self._refuse(problem)

    def recovered(self) -> None:
        """Note that what comes can be read, as far as is known."""
        if self.problem is not None:
            self.problem, self._since = None, time.time()

    def check(self) -> None:
        """Look whether what is fetched can be read, as far as is known.

        Raises
        ------
        TraceError
            It cannot.
        """
        if self._failed is not None:
            error, self._failed = self._failed, None
            raise error

    def _refuse(self, problem: str) -> None:
        self.counts.refused += 1
        self.problem, self._since = problem, time.time()

    def settle(self) -> None:
        """Let a slow stream begin with what there is; what it lacks is its problem."""
        if self._ended:
            return
        try:
            with self._held:
                self.live.settle()
        except TraceError as error:
            if self.once:
                self._refuse(str(error))
                self.stopping.set()
            else:
                self._failed = error  # the thread that fetches says what is to be done
