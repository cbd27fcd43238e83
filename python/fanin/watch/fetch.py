"""Ways to fetch a stream: files that grow, folders, pipes, connections, datagrams."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import select
import socket
import stat
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from fanin._core import TraceError
from fanin.watch.positions import Place, Positions, Seen
from fanin.watch.sources import NAP, Source

Fetch = Callable[[Source], None]

_CHUNK: Final = 1 << 20
"""Bytes that are read at once."""

_QUIET: Final = 1.0
"""Seconds without growth after which a file of a folder is complete, and one that was renamed is left."""

_LINGER: Final = 60.0
"""Seconds after which a file that was renamed is left though it grows, if the new one grows as well."""

_BACK_OFF: Final = (0.5, 8.0)
"""Seconds before a connection is tried again: at first, and at most."""

_PASSED_OVER: Final = (".tmp", ".part", ".gz", ".zst", ".swp", "~")
"""Endings of files in a folder that are not read: unfinished or packed ones."""

_NUMBERED: Final = (
    r"{name}(?:[-._](?P<number>\d{{1,3}})|[-._]\d{{4}}-?\d\d[-\d_.:T]*)|{stem}[-._]\d{{4}}-?\d\d-?\d\d[-\d_.:T]*{suffix}"
)
"""Names that rotation gives to a file: with a number or a date behind its name, or a date before its ending."""

_PACKED: Final = re.compile(r"\.(gz|zst|xz|bz2)$")

_DATAGRAM: Final = 1 << 16
_BUFFER: Final = 8 << 20
"""Bytes that the kernel is asked to hold for a port of UDP."""

_STAMPS: Final = 35
"""SO_TIMESTAMPNS of Linux: datagrams bring the time at which they came."""

_MEMINFO: Final = 55
"""SO_MEMINFO of Linux: nine numbers, of which the last counts datagrams that were dropped."""


def fetcher(given: str, positions: Positions, *, once: bool, new: bool) -> Fetch:
    """Return how a source is fetched.

    Parameters
    ----------
    given : str
        A file, a folder, a named pipe, ``-``, ``tcp://HOST:PORT`` or ``udp://HOST:PORT``.
    positions : Positions
        Where files were left.
    once : bool
        Whether the end of what is there is the end.
    new : bool
        Whether files are read from their present end on.

    Raises
    ------
    ValueError
        It is none of these, or does not go with `once`.
    """
    if "://" in given:
        return _connection(given, once=once)
    if given == "-":
        return _standard_input
    path = Path(given)
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        if once or not path.absolute().parent.is_dir():
            raise ValueError(f"{given}: there is no such file") from None
        mode = stat.S_IFREG  # it may come
    if stat.S_ISDIR(mode):
        return _folder(path, positions, given, new=new)
    if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):
        return _fifo(path)
    if stat.S_ISREG(mode):
        return _file(path, positions.get(given, path.name), new=new)
    raise ValueError(f"{given}: is no source; accepted: a file, a folder, a named pipe, - (standard input), tcp://…, udp://…")


# -- files ----------------------------------------------------------------------------------------------------------------------


def _open(path: str | os.PathLike[str]) -> int:
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def _drain(source: Source, descriptor: int, at: int) -> int:
    """Read on from a place as far as there is something; return the new place."""
    while not source.stopping.is_set() and (data := os.pread(descriptor, _CHUNK, at)):
        source.push(data)
        at += len(data)
    return at


def _end_of_lines(descriptor: int) -> int:
    """Return where the last whole line of a file ends."""
    size = os.fstat(descriptor).st_size
    tail = os.pread(descriptor, _CHUNK, max(0, size - _CHUNK))
    return size - len(tail) + tail.rfind(b"\n") + 1


@dataclass(frozen=True)
class _Moved:
    """A file that may have had a name before: when it was last written to, and whether it has a place's number, and such a name."""

    modified_ns: int
    same: bool
    named: bool
    entry: os.DirEntry[str]


def _moved_files(path: Path, place: Place, present: int) -> list[_Moved]:
    """Return files that may have had a name before, the oldest first.

    Numbers are those of rotation only if all from 0 or 1 on are there, packed or not: the log of `eth0.100` is none of `eth0`.
    """
    name, stem, suffix = (re.escape(part) for part in (path.name, path.stem, path.suffix))
    numbered = re.compile(_NUMBERED.format(name=name, stem=stem, suffix=suffix))
    mine = os.fstat(present)
    found: dict[tuple[int, int], tuple[tuple[int, int, str], _Moved]] = {}
    entries = list(os.scandir(path.absolute().parent))
    matches = {entry.name: numbered.fullmatch(_PACKED.sub("", entry.name)) for entry in entries}
    numbers = {int(match["number"]) for match in matches.values() if match and match["number"]}
    first_hole = next(number for number in itertools.count(1) if number not in numbers)
    for entry in entries:
        with contextlib.suppress(FileNotFoundError):
            if entry.name == path.name or not entry.is_file():
                continue
            there = entry.stat()
            number = (there.st_dev, there.st_ino)
            match = None if _PACKED.search(entry.name) else matches[entry.name]
            same, digits = number == (place.device, place.inode), int(match["number"] or 0) if match else 0
            named = match is not None and digits < first_hole
            if (same or named) and number != (mine.st_dev, mine.st_ino):
                # Of those of one moment the one with the largest number is the oldest: .2 was .1 before.
                found[number] = (there.st_mtime_ns, -digits, entry.name), _Moved(there.st_mtime_ns, same, named, entry)
    return [moved for _, moved in sorted(found.values(), key=lambda one: one[0])]


def _is_own(place: Place, moved: _Moved, descriptor: int) -> bool:
    """Whether a file is the one that a place is in, or a copy of it."""
    if moved.same and not moved.named and place.offset <= len(os.pread(descriptor, _CHUNK, 0).partition(b"\n")[0]) + 1:
        return False  # column names are alike in many files, and the number may be another's by now
    is_later = place.offset > 0 and 0 < place.modified_ns <= moved.modified_ns
    return (moved.same or is_later) and place.is_read_in(descriptor)


def _read_moved(source: Source, path: Path, descriptor: int, at: int) -> None:
    try:
        if os.fstat(descriptor).st_size > at:
            source.begin(path.name, descriptor, at)
            _drain(source, descriptor, at)
            if not source.finish():
                return  # it is to stop: the next start goes on in this one
        source.leave(descriptor)
    except TraceError as error:
        source.refuse(error)
        source.leave(descriptor)
    finally:
        source.abandon()


def _missed(source: Source, path: Path, place: Place, present: int) -> None:
    """Read what nobody has read of files that had a name since a place: the rest of that one, then those that came behind it.

    That one is known by its number or, if it is a copy, by how it begins and by its bytes before the place. Others have the name
    and a number or a date, were written to later, and were never read. `present` is the file that has the name now.
    """
    source.succeed(place.earlier)
    with contextlib.ExitStack() as stack:
        there = []
        for moved in _moved_files(path, place, present):
            with contextlib.suppress(FileNotFoundError):
                descriptor = _open(moved.entry.path)
                stack.callback(os.close, descriptor)
                there.append((moved, descriptor))
        since = place.modified_ns
        known = [(moved, descriptor) for moved, descriptor in there if _is_own(place, moved, descriptor)]
        own = min(known, key=lambda one: not one[0].same, default=None)
        if own is not None:
            since = own[0].modified_ns
            _read_moved(source, path, own[1], place.offset)
        for moved, descriptor in there:
            if source.stopping.is_set():
                return
            is_read = (own is not None and descriptor == own[1]) or any(one.is_whole_in(descriptor) for one in place.earlier)
            if moved.named and 0 < since <= moved.modified_ns and not is_read and os.fstat(descriptor).st_size:
                # One that was left and grew since is read on; so is one of another log with its number and column names.
                _read_moved(
                    source, path, descriptor, max((one.offset for one in place.earlier if one.is_in(descriptor)), default=0)
                )


def _file(path: Path, known: Place | None, *, new: bool) -> Fetch:
    """Read a file that grows, as ``tail -F`` does: also after it was renamed and made anew, or truncated."""

    def fetch(source: Source) -> None:
        first, before = True, known
        for _ in source.passes():
            try:
                descriptor = _open(path)
            except FileNotFoundError:
                if source.once:
                    raise
                continue
            try:
                at = 0
                if before is not None and before.is_in(descriptor):
                    at = before.offset
                    source.succeed(before.earlier)
                elif before is not None:
                    _missed(source, path, before, descriptor)
                elif first and new:
                    at = _end_of_lines(descriptor)
                first, before = False, None
                if source.stopping.is_set():
                    return  # perhaps within what was missed: the place is there
                source.begin(path.name, descriptor, at)
                before = _follow(source, path, descriptor, at)
                if source.once:
                    return
            except TraceError as error:
                if source.counts.opened == 1:
                    raise  # the file that the user named: more likely a mistake than a file of another kind for once
                source.refuse(error)
                before = source.place_at(descriptor, os.fstat(descriptor).st_size)  # others may come between it and the next
                _wait_for_another(source, path, descriptor)
            finally:
                source.abandon()
                os.close(descriptor)

    return fetch


def _follow(source: Source, path: Path, descriptor: int, at: int) -> Place:
    """Follow an open file until another one has its name; return the place at its end."""
    place = source.place_at(descriptor, at)
    moved, grew = None, float("-inf")
    for _ in source.passes():
        if not place.is_in(descriptor):
            # Truncated: what was written to it before may be in a copy.
            if not source.finish(place):
                break
            _missed(source, path, place, descriptor)
            if source.stopping.is_set():
                break
            at = 0
            source.begin(path.name, descriptor, at)
        source.check()
        at, before = _drain(source, descriptor, at), at
        place = source.place_at(descriptor, at)
        if source.once:
            source.finish()
            break
        # Its writer may add some until it has the new one, which stays empty as long.
        now = time.monotonic()
        moved = (moved or now) if _is_another(path, descriptor, written=True) else None
        grew = now if at > before else grew
        if moved is not None and (now - max(moved, grew) > _QUIET or now - moved > _LINGER):
            source.finish()
            break
    return place


def _wait_for_another(source: Source, path: Path, descriptor: int) -> None:
    for _ in source.passes():
        if _is_another(path, descriptor):
            return


def _is_another(path: Path, descriptor: int, *, written: bool = False) -> bool:
    """Whether the name is another file's by now, `written`: that has something in it; while nobody's, the writer may go on."""
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    mine = os.fstat(descriptor)
    return (there.st_dev, there.st_ino) != (mine.st_dev, mine.st_ino) and (there.st_size > 0 or not written)


def _folder(path: Path, positions: Positions, given: str, *, new: bool) -> Fetch:
    """Read the files of a folder, the oldest first; one that grows later is read on."""

    def unread(source: Source) -> tuple[list[os.DirEntry[str]], dict[str, Place]]:
        """Return the files with something new, and what was read of all, also of those whose name has gone."""
        places = {**positions.of(given), **source.known()}
        found = []
        names = set()
        for entry in os.scandir(path):
            if entry.name.startswith(".") or entry.name.endswith(_PASSED_OVER) or not entry.is_file():
                continue
            names.add(entry.name)
            there, place = entry.stat(), places.get(entry.name)
            is_new = place is None or place.inode != there.st_ino or place.offset != there.st_size
            # One of the same length may have been written anew.
            is_new = is_new or (place is not None and place.modified_ns not in (0, there.st_mtime_ns))
            if is_new and there.st_size:
                found.append((there.st_mtime_ns, entry.name, entry))
        source.forget(names)
        return [entry for _, _, entry in sorted(found, key=lambda one: one[:2])], places

    def read(source: Source, entry: os.DirEntry[str], places: dict[str, Place], seen: Seen) -> None:
        descriptor = _open(entry.path)
        try:
            place = places.get(entry.name)
            # One that is not known may have been renamed, or be a copy of one that was truncated.
            at = place.offset if place is not None and place.is_in(descriptor) else seen.read_in(descriptor)
            source.begin(entry.name, descriptor, at)
            grew = time.monotonic()
            for _ in source.passes():
                source.check()
                before, at = at, _drain(source, descriptor, at)
                grew = time.monotonic() if at > before else grew
                if source.once or time.monotonic() - grew > _QUIET:
                    break
            source.finish()
        except TraceError as error:
            source.refuse(error)
        finally:
            source.abandon()
            os.close(descriptor)

    def fetch(source: Source) -> None:
        source.opened()
        if new:
            for entry in unread(source)[0]:
                descriptor = _open(entry.path)
                source.begin(entry.name, descriptor, 0)
                source.finish()
                os.close(descriptor)
        for _ in source.passes():
            entries, places = unread(source)
            seen = Seen(places.values() if entries else ())
            for entry in entries:
                if not source.stopping.is_set():
                    with contextlib.suppress(FileNotFoundError):
                        read(source, entry, places, seen)
            if source.once:
                return

    return fetch


# -- pipes ----------------------------------------------------------------------------------------------------------------------


def _ready(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], NAP)[0])


def _standard_input(source: Source) -> None:
    """Read standard input to its end."""
    source.opened()
    while not source.stopping.is_set():
        if _ready(0):
            data = os.read(0, _CHUNK)
            if not data:
                return
            source.push(data)


def _try(source: Source, data: bytes) -> None:
    """Hand on what a writer of a pipe has; once that is unreadable, the rest of it is passed over."""
    try:
        source.check()
        source.push(data)
    except TraceError as error:
        source.complain(error)


def _fifo(path: Path) -> Fetch:
    """Read a named pipe: one writer after another."""

    def fetch(source: Source) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            there = False
            for _ in source.passes():
                while not source.stopping.is_set() and _ready(descriptor):
                    data = os.read(descriptor, _CHUNK)
                    if not data:
                        break
                    if not there:
                        there = True
                        source.opened()
                    _try(source, data)
                else:
                    continue
                if there:
                    there = False
                    if source.once:
                        return
                    source.closed()
        finally:
            os.close(descriptor)

    return fetch


# -- the network ----------------------------------------------------------------------------------------------------------------


def _connection(given: str, *, once: bool) -> Fetch:
    parts = urlsplit(given)
    try:
        port = parts.port
    except ValueError:
        port = None
    if parts.scheme not in ("tcp", "udp") or port is None or parts.path not in ("", "/") or parts.query:
        raise ValueError(f"{given}: is no source; accepted: tcp://HOST:PORT, udp://127.0.0.1:PORT, files, folders, pipes, -")
    host = parts.hostname or "127.0.0.1"
    if parts.scheme == "tcp":
        return _tcp(host, port)
    if once:
        raise ValueError(f"{given}: datagrams have no end, which --once waits for")
    return _udp(host, port)


def _tcp(host: str, port: int) -> Fetch:
    """Read a connection, made anew whenever it ends."""

    def fetch(source: Source) -> None:
        pause = _BACK_OFF[0]
        while not source.stopping.is_set():
            try:
                with socket.create_connection((host, port), timeout=5) as connection:
                    connection.settimeout(NAP)
                    source.opened()
                    pause = _BACK_OFF[0]
                    _receive(source, connection)
                    if source.once:
                        return
                    source.closed()
            except TraceError as error:
                source.refuse(error)
            except OSError as error:
                if source.once:
                    raise
                source.closed()
                source.unreachable(error)
            source.stopping.wait(pause)
            pause = min(2 * pause, _BACK_OFF[1])

    return fetch


def _receive(source: Source, connection: socket.socket) -> None:
    while not source.stopping.is_set():
        source.check()
        try:
            data = connection.recv(_CHUNK)
        except TimeoutError:
            continue
        if not data:
            return
        source.push(data)


def _udp(host: str, port: int) -> Fetch:
    """Read datagrams, each of whole messages or lines."""

    def fetch(source: Source) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as receiver:
            receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
            receiver.bind((host, port))
            with contextlib.suppress(OSError):
                receiver.setsockopt(socket.SOL_SOCKET, _STAMPS, 1)
            receiver.settimeout(NAP)
            source.tells_refused = True
            source.opened()
            count = 0
            while not source.stopping.is_set():
                try:
                    data, beside, _, _ = receiver.recvmsg(_DATAGRAM, 64)
                except TimeoutError:
                    source.counts.lost = _lost(receiver)
                    continue
                count += 1
                if count % 1024 == 0:
                    source.counts.lost = _lost(receiver)
                try:
                    source.check()
                except TraceError as error:
                    source.refuse(error)
                try:
                    source.push(data, _when(beside))
                except TraceError as error:
                    source.refuse(error)
                else:
                    source.recovered()

    return fetch


def _when(beside: list[tuple[int, int, bytes]]) -> int:
    """Return when a datagram came [ns since 1970]: by the kernel, where it says so."""
    for level, kind, data in beside:
        if (level, kind) == (socket.SOL_SOCKET, _STAMPS) and len(data) == struct.calcsize("ll"):
            seconds, fraction = struct.unpack("ll", data)
            return int(seconds * 1_000_000_000 + fraction)
    return time.time_ns()


def _lost(receiver: socket.socket) -> int:
    """Return how many datagrams the kernel has dropped, where it says so."""
    try:
        return int(struct.unpack("9I", receiver.getsockopt(socket.SOL_SOCKET, _MEMINFO, 36))[-1])
    except (OSError, struct.error):
        return 0
