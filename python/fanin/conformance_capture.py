"""Conformance from capture to capture: a program reads the events of test vectors and writes the frames that leave."""

from __future__ import annotations

import os
import shlex
import stat
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from fanin import conformance_frames as frames
from fanin import vectors
from fanin.conformance import Conformance, Difference, FailedError, found_in
from fanin.conformance_process import checked, ended
from fanin.files import replacing, system

__all__ = ["FrameDifference", "conform_captures"]

_MAGIC: Final = (0xA1B2C3D4, 0xA1B23C4D)
"""Of captures in microseconds and in nanoseconds."""
_SNAP: Final = 262_144
_TIMES: Final = 4
_BESIDES: Final = 1 << 20
"""A target's capture may have so many times the bytes that go in or should leave, and these besides."""


@dataclass(frozen=True)
class FrameDifference(Difference):
    """The first frame that a target sends otherwise, not at all, or besides those that leave.

    Attributes
    ----------
    expected_frame, answered_frame
        Both in hexadecimal; None: there is none.
    expected_port, answered_port
        The ports that they leave by.
    byte
        The first one that differs; None where there is one frame alone.
    part
        Where they differ, in words.
    """

    expected_frame: str | None
    answered_frame: str | None
    expected_port: int | None
    answered_port: int | None
    byte: int | None
    part: str

    @property
    def columns(self) -> list[str]:
        """Columns that are compared: of a capture, whole frames."""
        return ["frame"]


def _written(path: Path, packets: Iterator[tuple[int, bytes]]) -> None:
    """A capture in nanoseconds; packet `n` at `n` microseconds."""
    with replacing(path) as part, part.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, _SNAP, frames.LINK_TYPE))
        for n, packet in packets:
            file.write(struct.pack("<IIII", n // 10**6, n % 10**6 * 1000, len(packet), len(packet)) + packet)


def _bytes(path: Path, most: int) -> bytes:
    """Content of the target's capture. A pipe is not waited for."""
    try:
        held = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        raise FailedError(f"it wrote no capture {path}") from None
    except OSError as error:
        raise FailedError(f"its capture {path} cannot be read: {error.strerror}") from None
    try:
        if not stat.S_ISREG(os.fstat(held).st_mode):
            raise FailedError(f"its capture {path} is no regular file")
        with open(held, "rb", closefd=False) as file:
            data = file.read(most + 1)
    finally:
        os.close(held)
    if len(data) > most:
        raise FailedError(_too_long(path, most))
    return data


def _too_long(path: Path, most: int) -> str:
    return f"its capture {path} has more than {most:,} bytes, {_TIMES} times what could be of use"


def _read(data: bytes, path: Path) -> Iterator[bytes]:
    """Packets of the target's capture, in either byte order."""
    if len(data) < 24:
        raise FailedError(f"its capture {path} has {len(data)} bytes, less than a header")
    order = next((order for order in "<>" if struct.unpack(f"{order}I", data[:4])[0] in _MAGIC), None)
    if order is None:
        raise FailedError(f"its capture {path} begins with {data[:4].hex(' ')}, which is no pcap; pcapng is not read here")
    link = struct.unpack(f"{order}I", data[20:24])[0]
    if link != frames.LINK_TYPE:
        raise FailedError(f"its capture {path} has link type {link}; expected: {frames.LINK_TYPE}, as in the one that it was given")
    at, n = 24, 0
    while at < len(data):
        head = data[at : at + 16]
        kept = struct.unpack(f"{order}I", head[8:12])[0] if len(head) == 16 else 0
        if len(head) < 16 or at + 16 + kept > len(data):
            raise FailedError(f"its capture {path} ends within packet {n}")
        yield data[at + 16 : at + 16 + kept]
        at, n = at + 16 + kept, n + 1


class _Comparison:
    """Holds the frames that a target sent against those that leave."""

    def __init__(self, found: Conformance, expected: Sequence[frames.Event]) -> None:
        self.found = found
        self.due: dict[int, list[tuple[int, frames.Leaves]]] = {}
        self.given = {(event.sequence, event.row) for event in expected}
        for event in expected:
            self.due.setdefault(event.sequence, []).extend((event.row, leaves) for leaves in event.leaves)
        self.sent: dict[int, list[tuple[int, frames.Leaves]]] = {sequence: [] for sequence in self.due}
        self.last = (0, -1)

    def take(self, packets: Iterator[bytes]) -> None:
        """Take the frames of the target's capture, by sequence, each with the row that it answers."""
        for n, packet in enumerate(packets):
            if len(packet) < frames.EVENT.size:
                raise FailedError(
                    f"packet {n} of its capture has {len(packet)} bytes, less than the {frames.EVENT.size} of a header"
                )
            sequence, _, _, port, *_, row = frames.EVENT.unpack_from(packet)
            if (sequence, row) not in self.given:
                raise FailedError(f"packet {n} of its capture answers row {row} of sequence {sequence}, which is not there")
            if (sequence, row) < self.last:
                behind = f"behind row {self.last[1]} of sequence {self.last[0]}"
                raise FailedError(f"packet {n} of its capture answers row {row} of sequence {sequence} {behind}")
            self.last = (sequence, row)
            self.sent[sequence].append((row, frames.Leaves(port, packet[frames.EVENT.size :])))

    def compare(self, *, whole: bool) -> None:
        """Compare the frames; not `whole`: up to the last one that the target sent."""
        for number, due in self.due.items():
            sent = self.sent[number]
            if not whole and number > self.last[0]:
                break
            cut = len(sent) if not whole and number == self.last[0] else None
            for expected, answered in zip_longest(due[:cut], sent):
                if expected != answered:
                    self.differs(number, expected, answered)
                    break
        count = {number: len(sequence["rows"]) for number, sequence in enumerate(self.found.document["sequences"])}
        before = sum(rows for number, rows in count.items() if number < self.last[0]) + self.last[1] + 1
        self.found.answered = self.found.rows if whole else before
        self.found.sent = sum(map(len, self.sent.values()))

    def differs(self, number: int, expected: tuple[int, frames.Leaves] | None, answered: tuple[int, frames.Leaves] | None) -> None:
        sequence = self.found.document["sequences"][number]
        self.found.different[sequence["case"]] += 1
        if self.found.first is not None:
            return
        rows = [pair[0] for pair in (expected, answered) if pair is not None]
        row = min(rows)
        mine = expected[1] if expected is not None and expected[0] == row else None
        other = answered[1] if answered is not None and answered[0] == row else None
        at = _first(mine, other)
        names = [column["name"] for column in self.found.document["columns"]]
        settings = [column["name"] for column in self.found.document["settings"]]
        before = sequence["rows"][max(row - 3, 0) : row]
        self.found.first = FrameDifference(
            sequence=number,
            row=row,
            case=sequence["case"],
            settings=dict(zip(settings, sequence["settings"], strict=True)),
            expected=dict(zip(names, sequence["rows"][row], strict=True)),
            answered={},
            before=[(dict(zip(names, earlier, strict=True)), {}) for earlier in before],
            expected_frame=None if mine is None else mine.frame.hex(),
            answered_frame=None if other is None else other.frame.hex(),
            expected_port=None if mine is None else mine.port,
            answered_port=None if other is None else other.port,
            byte=at,
            part=_part(mine, other, at),
        )


def _first(expected: frames.Leaves | None, answered: frames.Leaves | None) -> int | None:
    """The first byte that differs; the shorter one's end where there is none."""
    if expected is None or answered is None:
        return None
    mine, other = expected.frame, answered.frame
    return next((i for i, (a, b) in enumerate(zip(mine, other, strict=False)) if a != b), min(len(mine), len(other)))


def _part(expected: frames.Leaves | None, answered: frames.Leaves | None, at: int | None) -> str:
    if expected is None:
        return "a frame leaves where none should"
    if answered is None or at is None:
        return "no frame leaves where one should"
    if expected.port != answered.port:
        return f"it leaves by port {answered.port}; expected: {expected.port}"
    mine, other = expected.frame, answered.frame
    if at == min(len(mine), len(other)):
        return f"{len(other)} bytes; expected: {len(mine)}"
    lengths = "" if len(mine) == len(other) else f"; {len(other)} bytes, expected: {len(mine)}"
    return f"byte {at}, {frames.place(mine, at)}, is {other[at]:02x}; expected: {mine[at]:02x}{lengths}"


def conform_captures(
    mechanism: str,
    target: Sequence[str],
    folder: str | Path,
    params: Mapping[str, Any] | None = None,
    *,
    timeout_s: float = 60.0,
) -> Conformance:
    """Give a program the events of a mechanism's test vectors as a capture, and compare the capture that it writes, byte for byte.

    Parameters
    ----------
    mechanism
        ``s-ecn``, ``pdn`` or ``rimm``: those that change frames.
    target
        The program and its arguments; the names of both captures are put behind them.
    folder
        Where the captures are kept: what goes in, what should leave and what left.
    params, timeout_s
        As of :func:`fanin.conformance.conform`.

    Raises
    ------
    fanin.ScenarioError
        An unknown mechanism, or parameters that are wrong.
    OSError
        The target cannot be started, or a capture cannot be written.
    """
    if not target:
        raise ValueError("TARGET: no program was named")
    checked(timeout_s)
    if not str(folder):
        raise ValueError("--captures: no folder was named")
    system.needs_posix("fanin conform --captures")
    document = vectors.generate(mechanism, params)
    if mechanism not in frames.MECHANISMS:
        raise ValueError(f"--captures: {mechanism} changes no frames; accepted: {', '.join(frames.MECHANISMS)}")
    found = found_in(mechanism, shlex.join(target), document)
    all_events = list(frames.events(document))
    given, expected, answered = (Path(folder) / f"{mechanism}.{name}.pcap" for name in ("in", "expected", "out"))
    given.parent.mkdir(parents=True, exist_ok=True)
    answered.unlink(missing_ok=True)
    _written(given, ((n, event.given) for n, event in enumerate(all_events)))
    _written(expected, ((n, _sent(event, leaves)) for n, event in enumerate(all_events) for leaves in event.leaves))
    found.due = sum(len(event.leaves) for event in all_events)
    most = _TIMES * max(given.stat().st_size, expected.stat().st_size) + _BESIDES

    def grown() -> str | None:
        with suppress(OSError):
            return _too_long(answered, most) if answered.stat().st_size > most else None
        return None

    found.failure, found.last_words = ended([*target, str(given), str(answered)], timeout_s, grown)
    comparison, unread = _Comparison(found, all_events), None
    try:
        comparison.take(_read(_bytes(answered, most), answered))
    except FailedError as error:
        unread = str(error)
    comparison.compare(whole=unread is None and found.failure is None)
    if unread is None or found.sent:
        found.columns = ["frame"]
    if unread != found.failure:
        found.failure = ", and ".join(filter(None, (found.failure, unread))) or None
    return found


def _sent(event: frames.Event, leaves: frames.Leaves) -> bytes:
    """A frame that leaves, behind the header of the event that it answers with its own port."""
    fields = list(frames.EVENT.unpack_from(event.given))
    fields[3] = leaves.port
    return frames.EVENT.pack(*fields) + leaves.frame
