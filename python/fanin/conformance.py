"""Conformance of other implementations: a program is fed the inputs of test vectors, and its answers are compared bit by bit."""

from __future__ import annotations

import os
import re
import selectors
import shlex
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Any, Final, cast

from fanin import vectors
from fanin.conformance_process import LastWords, checked, started, status
from fanin.files import system

__all__ = ["Comparison", "Conformance", "Difference", "FailedError", "conform", "found_in"]

PROTOCOL: Final = "conform/1"
_LONGEST_LINE: Final = 65_536
_GRACE_S: Final = 1.0
"""Time that others may keep a target's output open after it has ended."""
_BEFORE: Final = 3
"""Rows shown before the one that differs."""
_NUMBER: Final = re.compile(rb"[ \t]*(-?[0-9]{1,40})[ \t]*")

Row = dict[str, int]


@dataclass(frozen=True)
class Difference:
    """The first row that a target answers otherwise.

    Attributes
    ----------
    sequence, row
        Numbers of both, from 0; the row in its sequence.
    case, settings
        What the sequence is, and its settings.
    expected : dict
        The whole row of the vectors: inputs, registers, outputs.
    answered : dict
        What the target answered.
    before : list of (expected, answered)
        Rows before it in its sequence, the last of them last.
    """

    sequence: int
    row: int
    case: str
    settings: Row
    expected: Row
    answered: Row
    before: list[tuple[Row, Row]]

    @property
    def columns(self) -> list[str]:
        """Columns that differ."""
        return [name for name, value in self.answered.items() if value != self.expected[name]]


@dataclass
class Conformance:
    """How a target answered the vectors of a mechanism.

    Attributes
    ----------
    mechanism, target
        What was compared.
    columns : list of str
        Columns that the target answers.
    rows, answered, sequences
        Rows of the vectors; those that were answered; sequences.
    due, sent
        Frames that have to leave, and those that left; None where none are compared.
    different : dict
        Sequences that differ, by case; every case is there.
    first : Difference or None
        The first row that differs.
    failure : str or None
        Why the target answered less than it should, or did not end well.
    last_words : str
        The end of what it wrote to standard error.
    """

    mechanism: str
    target: str
    document: Mapping[str, Any] = field(repr=False)
    columns: list[str] = field(default_factory=list)
    rows: int = 0
    answered: int = 0
    sequences: int = 0
    due: int | None = None
    sent: int | None = None
    different: dict[str, int] = field(default_factory=dict)
    first: Difference | None = None
    failure: str | None = None
    last_words: str = ""

    @property
    def ok(self) -> bool:
        """Whether every row was answered, and as the reference does."""
        return self.first is None and self.failure is None

    def names(self, role: str) -> list[str]:
        """Columns of a role: ``input``, ``register`` or ``output``."""
        return [column["name"] for column in self.document["columns"] if column["role"] == role]

    def to_dict(self) -> dict[str, Any]:
        """As ``fanin conform --json`` prints it."""
        first = self.first
        return {
            "schema": PROTOCOL,
            "mechanism": self.mechanism,
            "target": self.target,
            "ok": self.ok,
            "columns": self.columns,
            "rows": self.rows,
            "answered": self.answered,
            "sequences": self.sequences,
            "frames": None if self.due is None else {"due": self.due, "sent": self.sent},
            "different": self.different,
            "first": None if first is None else vars(first) | {"columns": first.columns},
            "failure": self.failure,
            "last_words": self.last_words,
        }


class FailedError(Exception):
    """The target answers nothing that can be used."""


def _inputs(document: Mapping[str, Any]) -> bytes:
    """What a target reads: CSV, the number of the sequence, its settings, and the inputs of a row."""
    at = [i for i, column in enumerate(document["columns"]) if column["role"] == "input"]
    names = ["sequence", *(c["name"] for c in document["settings"]), *(document["columns"][i]["name"] for i in at)]
    lines = [",".join(names)]
    for number, sequence in enumerate(document["sequences"]):
        common = ",".join(map(str, [number, *sequence["settings"]]))
        lines += [f"{common},{','.join(str(row[i]) for i in at)}" for row in sequence["rows"]]
    return ("\n".join(lines) + "\n").encode("ascii")


class Comparison:
    """Reads answers line by line and holds each against its row."""

    def __init__(self, found: Conformance) -> None:
        self.found = found
        self.columns = [column["name"] for column in found.document["columns"]]
        self.known = {c["name"]: c["role"] for c in found.document["columns"] if c["role"] in ("output", "register")}
        self.rows = self._rows()
        self.at: list[int] = []
        self.recent: list[tuple[list[int], list[int]]] = []
        self.last = (-1, False)

    def _rows(self) -> Iterator[tuple[int, int, list[int]]]:
        for number, sequence in enumerate(self.found.document["sequences"]):
            for index, row in enumerate(sequence["rows"]):
                yield number, index, row

    def place(self) -> str:
        """Where the next line of the target's output is."""
        return f"line {self.found.answered + 1 + bool(self.at)} of its output"

    def header(self, line: bytes) -> None:
        """Take the names of the columns that the target answers."""
        names = [name.strip() for name in line.decode("utf-8", "replace").split(",")]
        unknown = [name for name in names if name not in self.known]
        accepted = ", ".join(self.known)
        if unknown:
            raise FailedError(
                f"its first line must name the columns that it answers; {_shown(line)} has others; accepted: {accepted}"
            )
        if len(set(names)) < len(names):
            raise FailedError(f"its first line names a column twice: {_shown(line)}")
        if all(self.known[name] == "register" for name in names):
            outputs = ", ".join(self.found.names("output"))
            raise FailedError(f"its first line names no output: {_shown(line)}; at least one of {outputs}")
        self.found.columns = names
        self.at = [self.columns.index(name) for name in names]

    def line(self, line: bytes) -> None:
        """Take the next line of the target's output."""
        line = line.rstrip(b"\r")
        if not self.at:
            self.header(line)
            return
        place = self.place()
        expected = next(self.rows, None)
        if expected is None:
            raise FailedError(f"{place} is one too many, for {self.found.rows:,} rows: {_shown(line)}")
        parts = [_NUMBER.fullmatch(part) for part in line.split(b",")]
        if None in parts or len(parts) != len(self.at):
            wanted = f"{len(self.at)} whole number{'s' * (len(self.at) > 1)}, {','.join(self.found.columns)}"
            raise FailedError(f"{place} is {_shown(line)}; expected: {wanted}")
        self.compare(*expected, [int(part[1]) for part in parts if part])
        self.found.answered += 1

    def compare(self, number: int, index: int, row: list[int], answered: list[int]) -> None:
        """Hold the answer to row `index` of sequence `number` against the reference's."""
        if number != self.last[0]:
            self.last, self.recent = (number, False), []
        same = all(row[at] == value for at, value in zip(self.at, answered, strict=True))
        if not same and not self.last[1]:
            sequence = self.found.document["sequences"][number]
            self.last = (number, True)
            self.found.different[sequence["case"]] += 1
            if self.found.first is None:
                settings = [column["name"] for column in self.found.document["settings"]]
                named = [(self._named(a), dict(zip(self.found.columns, b, strict=True))) for a, b in self.recent]
                self.found.first = Difference(
                    sequence=number,
                    row=index,
                    case=sequence["case"],
                    settings=dict(zip(settings, sequence["settings"], strict=True)),
                    expected=self._named(row),
                    answered=dict(zip(self.found.columns, answered, strict=True)),
                    before=named,
                )
        self.recent = [*self.recent[1 - _BEFORE :], (row, answered)]

    def _named(self, row: list[int]) -> Row:
        return dict(zip(self.columns, row, strict=True))


def _shown(line: bytes) -> str:
    text = line[:400].decode("utf-8", "replace")
    return repr(text) + ("…" if len(line) > 400 else "")


class _Pump:
    """Feeds a process and has its answers compared, in one thread: none of its pipes can block the others."""

    def __init__(self, process: subprocess.Popen[bytes], data: bytes, comparison: Comparison) -> None:
        pipes = (process.stdin, process.stdout, process.stderr)
        self.stdin, self.stdout, self.stderr = (pipe for pipe in pipes if pipe is not None)
        self.process, self.comparison = process, comparison
        self.left = memoryview(data)
        self.line = bytearray()
        self.words = LastWords()
        self.selector = selectors.DefaultSelector()

    def run(self, deadline: float) -> None:
        """Return when its output ends, or a moment after it has ended itself."""
        actions = {self.stdin: self._feed, self.stdout: self._answers, self.stderr: self._words}
        ended: float | None = None
        try:
            for pipe in actions:
                os.set_blocking(pipe.fileno(), False)
                self.selector.register(pipe, selectors.EVENT_WRITE if pipe is self.stdin else selectors.EVENT_READ)
            while not self.stdout.closed:
                now = time.monotonic()
                if self.process.poll() is not None:
                    ended = ended or now
                if now >= deadline:
                    raise TimeoutError
                if ended is not None and now >= ended + _GRACE_S:
                    return
                for key, _ in self.selector.select(min(0.1, deadline - now)):
                    actions[cast("IO[bytes]", key.fileobj)]()
        finally:
            if not self.stderr.closed:
                with suppress(BlockingIOError):
                    self.words.read(self.stderr)
            self.selector.close()

    def _close(self, pipe: IO[bytes]) -> None:
        self.selector.unregister(pipe)
        pipe.close()

    def _feed(self) -> None:
        try:
            self.left = self.left[os.write(self.stdin.fileno(), self.left[:65_536]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self.left = self.left[:0]  # it reads no more: what it answers decides
        if not self.left:
            self._close(self.stdin)

    def _answers(self) -> None:
        read = os.read(self.stdout.fileno(), 65_536)
        *lines, rest = (self.line + read).split(b"\n")
        for line in lines:
            self.comparison.line(bytes(line))
        if len(rest) > _LONGEST_LINE:
            raise FailedError(f"{self.comparison.place()} has no end: {_shown(bytes(rest))}")
        self.line = rest
        if not read:
            if rest:
                self.comparison.line(bytes(rest))
            self._close(self.stdout)

    def _words(self) -> None:
        if not self.words.read(self.stderr):
            self._close(self.stderr)


def found_in(mechanism: str, target: str, document: Mapping[str, Any]) -> Conformance:
    """What there is before the first answer."""
    return Conformance(
        mechanism,
        target,
        document,
        rows=sum(len(sequence["rows"]) for sequence in document["sequences"]),
        sequences=len(document["sequences"]),
        different=dict.fromkeys((case["case"] for case in document["cases"]), 0),
    )


def conform(
    mechanism: str, target: Sequence[str], params: Mapping[str, Any] | None = None, *, timeout_s: float = 60.0
) -> Conformance:
    """Feed a program the inputs of a mechanism's test vectors and compare what it answers; docs/vectors.md has the protocol.

    Parameters
    ----------
    mechanism
        Its name: ``s-ecn``, ``rimm``, ``rcm`` or ``pdn``.
    target
        The program and its arguments. No shell is involved.
    params
        Settings of the vectors, as of :func:`fanin.vectors.generate`.
    timeout_s
        Longest time that the target may take for everything [s]; then it is ended, with all that it started in its session.

    Raises
    ------
    fanin.ScenarioError
        An unknown mechanism, or parameters that are wrong.
    OSError
        The target cannot be started.
    """
    if not target:
        raise ValueError("TARGET: no program was named")
    checked(timeout_s)
    system.needs_posix("fanin conform")
    document = vectors.generate(mechanism, params)
    found = found_in(mechanism, shlex.join(target), document)
    data = _inputs(document)
    deadline = time.monotonic() + timeout_s
    with started(target, pipes=subprocess.PIPE) as process:
        pump = _Pump(process, data, Comparison(found))
        try:
            pump.run(deadline)
            process.wait(max(deadline - time.monotonic(), 0.01))
        except FailedError as error:
            found.failure = str(error)
        except (TimeoutError, subprocess.TimeoutExpired):
            done = "all" if found.answered == found.rows else f"{found.answered:,} of {found.rows:,}"
            found.failure = f"it did not end within {timeout_s:g} s: {done} rows were answered (--timeout gives it longer)"
    found.last_words = pump.words.text
    if found.failure is None:
        said = []
        if not found.columns:
            said.append("it answered nothing")
        elif found.answered < found.rows:
            said.append(f"it answered {found.answered:,} of {found.rows:,} rows")
        if process.returncode != 0:
            said.append(status(process.returncode))
        found.failure = ", and ".join(said) or None
    return found
