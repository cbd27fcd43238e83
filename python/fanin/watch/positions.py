"""Places up to which files have been read, kept in a small file: a new start goes on there, and counts nothing twice."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

from fanin import files

FINGERPRINT: Final = 64
"""Bytes before a place by which it is known again: a file number may have been given to another file."""

_EARLIER: Final = 8
"""Files that had a name before and are known again, at most."""

_HEAD: Final = 1024
"""Bytes at the beginning of a file by which it is known again, whatever its number and its name are by now."""

_BEGIN: Final = re.compile(r"(?P<bytes>\d{1,4}):[0-9a-f]{32}")
"""How a file begins: so many bytes, and a hash of them."""

_SCHEMA: Final = "watch-state/1"


def _head_of(descriptor: int, most: int) -> str:
    """Return how an open file begins: so many bytes, `most` at most, and a hash of them."""
    return _named(os.pread(descriptor, min(_HEAD, most), 0))


def _named(data: bytes) -> str:
    return f"{len(data)}:{hashlib.sha256(data).hexdigest()[:32]}"


def _begins_so(descriptor: int, head: str) -> bool:
    """Whether an open file begins as :func:`_head_of` says."""
    return _head_of(descriptor, int(head.partition(":")[0])) == head


@dataclass(frozen=True)
class Place:
    """A place in a file.

    Attributes
    ----------
    device, inode : int
        The file, whatever its name is by now.
    offset : int
        Bytes that need not be read again.
    fingerprint : str
        The last bytes before, in hexadecimal; empty if the file was truncated before they were looked at.
    head : str
        How the file begins; empty in what earlier versions wrote.
    modified_ns : int
        When the file was written to last; 0 in what earlier versions wrote.
    earlier : tuple of Place
        The ends of the last files that had its name before it.
    """

    device: int
    inode: int
    offset: int
    fingerprint: str
    head: str = ""
    modified_ns: int = 0
    earlier: tuple[Place, ...] = ()

    @classmethod
    def of(cls, descriptor: int, offset: int, earlier: tuple[Place, ...] = ()) -> Self:
        """Return a place in an open file."""
        found = os.fstat(descriptor)
        first = max(0, offset - FINGERPRINT)
        before = os.pread(descriptor, offset - first, first).hex()
        return cls(found.st_dev, found.st_ino, offset, before, _head_of(descriptor, offset), found.st_mtime_ns, earlier)

    def written(self) -> dict[str, Any]:
        """Return it as :meth:`read` takes it."""
        return {**vars(self), "earlier": [one.written() for one in self.earlier]}

    @classmethod
    def read(cls, place: dict[str, Any]) -> Self:
        """Return a place that was written.

        Raises
        ------
        ValueError, TypeError, KeyError
            It is none.
        """
        device, inode, offset = (place[key] for key in ("device", "inode", "offset"))
        head, modified_ns, earlier = place.get("head", ""), place.get("modified_ns", 0), place.get("earlier", ())
        if not all(type(number) is int and number >= 0 for number in (device, inode, offset, modified_ns)):
            raise ValueError("a number is none")
        if head != "" and not (type(head) is str and _BEGIN.fullmatch(head) and int(head.partition(":")[0]) <= _HEAD):
            raise ValueError("a beginning is none")
        before = tuple(cls.read(one) for one in earlier if type(one) is not str)  # beginnings alone, in what earlier versions wrote
        return cls(device, inode, offset, bytes.fromhex(place["fingerprint"]).hex(), head, modified_ns, before)

    def without_bytes(self, offset: int) -> Place:
        """Return a later place in the same file, of which no more than how it began is known."""
        return replace(self, offset=offset, fingerprint="") if offset > self.offset else self

    def succeeded(self) -> tuple[Place, ...]:
        """Return the ends of the last files that had a name, once this one is left here."""
        others = [one for one in self.earlier if (one.device, one.inode) != (self.device, self.inode)]
        return (*others, replace(self, earlier=()))[-_EARLIER:]

    def is_whole_in(self, descriptor: int) -> bool:
        """Whether an open file, or the one that it is a copy of, was read as far as this place, which is its end."""
        return os.fstat(descriptor).st_size == self.offset and self.is_read_in(descriptor)

    def is_in(self, descriptor: int) -> bool:
        """Whether an open file is the one that was read, as far as this place."""
        found = os.fstat(descriptor)
        return (found.st_dev, found.st_ino) == (self.device, self.inode) and self.is_read_in(descriptor)

    def is_read_in(self, descriptor: int) -> bool:
        """Whether an open file, or the one that it is a copy of, was read as far as this place."""
        if os.fstat(descriptor).st_size < self.offset:
            return False
        first = max(0, self.offset - FINGERPRINT)
        same = not self.fingerprint or os.pread(descriptor, self.offset - first, first).hex() == self.fingerprint
        return same and (not self.head or _begins_so(descriptor, self.head))


class Seen:
    """Places among which that of a file is found by how it begins, which is read once.

    Parameters
    ----------
    places : iterable of Place
        They.
    """

    def __init__(self, places: Iterable[Place]) -> None:
        self._by_head: dict[str, dict[tuple[int, str], Place]] = {}
        for place in places:
            self._by_head.setdefault(place.head, {})[place.offset, place.fingerprint] = place
        self._lengths = {int(head.partition(":")[0]) for head in self._by_head if head}

    def read_in(self, descriptor: int) -> int:
        """Return how far an open file was read, or one that it is a copy of."""
        data = os.pread(descriptor, _HEAD, 0)
        heads = ["", *(_named(data[:length]) for length in self._lengths if length <= len(data))]
        alike = (place for head in heads for place in self._by_head.get(head, {}).values())
        return max((place.offset for place in alike if place.is_read_in(descriptor)), default=0)


class Positions:
    """Places by source and file.

    Parameters
    ----------
    path : pathlib.Path or None
        The file that keeps them; none: they are forgotten at the end.

    Raises
    ------
    ValueError
        The file is there, and is none of these.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._places: dict[str, dict[str, Place]] = {}
        self._is_written = self._is_kept = False
        self._lost: str | None = None
        if path is None or not path.exists():
            return
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            if document["schema"] != _SCHEMA:
                raise ValueError("another schema")
            read = {
                source: {name: Place.read(place) for name, place in there.items()} for source, there in document["sources"].items()
            }
        except (ValueError, KeyError, TypeError, AttributeError):
            raise ValueError(
                f"--state {path}: is no state of fanin watch; accepted: a name that is free, or a file that --state has written; "
                "remove it to count from the beginning, or name another file"
            ) from None
        self._places = read

    def get(self, source: str, name: str) -> Place | None:
        """Return the place in a file of a source, if it was read before."""
        return self._places.get(source, {}).get(name)

    def of(self, source: str) -> dict[str, Place]:
        """Return all places of a source."""
        return dict(self._places.get(source, {}))

    def put(self, source: str, places: dict[str, Place]) -> None:
        """Set the places of a source."""
        if self._places.get(source) != places:
            self._is_written = False
        self._places[source] = places

    def write(self) -> str | None:
        """Write them, completely or not at all, if they have changed; return what is to be said: that it fails, or works again.

        Raises
        ------
        OSError
            They cannot be written, and never were: a file that is full later on ends no watch.
        """
        try:
            self._write()
        except OSError as error:
            if not self._is_kept:
                raise
            before, self._lost = self._lost, error.strerror or str(error)
            return None if before else self.unkept
        before, self._lost = self._lost, None
        return f"--state {self._path}: is written again" if before else None

    @property
    def unkept(self) -> str | None:
        """What a new start would do because places cannot be written; None where they are."""
        if self._lost is None:
            return None
        return f"--state {self._path}: {self._lost}: a new start would count again what was read since"

    def _write(self) -> None:
        if self._path is None or self._is_written:
            return
        sources = {s: {n: p.written() for n, p in there.items()} for s, there in sorted(self._places.items())}
        files.write_text(self._path, json.dumps({"schema": _SCHEMA, "sources": sources}) + "\n")
        self._is_written = self._is_kept = True
