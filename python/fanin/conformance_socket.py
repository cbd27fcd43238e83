"""Conformance of a block at a co-simulation socket: it is fed test vectors as a simulated run would ask it."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fanin import vectors
from fanin.conformance import Comparison, Conformance, FailedError, found_in
from fanin.conformance_process import checked
from fanin.cosim import (
    ARRIVAL,
    DEPARTURE,
    HELLO,
    MAGIC,
    MARK,
    PASS,
    PORT,
    REPLY,
    REQUEST,
    VERSION,
    WELCOME,
    CosimError,
    received,
    text_of,
)
from fanin.files import system

__all__ = ["conform_socket"]

MECHANISM = "s-ecn"
"""The mechanism whose decisions are those of a marking policy, so that the socket carries them."""


def _hello(settings: Mapping[str, int], overhead: int, seed: int) -> bytes:
    words = f"k={settings['k']} credit={settings['credit']} clock_ps={settings['clock_ps']} reset={settings['reset']}"
    port = PORT.pack(0, overhead, 1, 0, settings["rate_bps"], 0, 1, b"vectors")
    return HELLO.pack(MAGIC, VERSION, 1, seed, settings["at_dequeue"], 0, 0, words.encode()) + port


def _welcomed(frame: bytes) -> str:
    if len(frame) < WELCOME.size:
        raise FailedError("it closed the connection before it sent its first frame")
    magic, version, name, of_block = WELCOME.unpack(frame)
    if magic != MAGIC:
        raise FailedError(f"it does not speak this protocol: its first bytes are {magic!r}")
    if version != VERSION:
        raise FailedError(f"it speaks version {version} of the protocol; accepted: {VERSION}")
    return f"{text_of(name)} {text_of(of_block)}".strip()


def _rows(document: Mapping[str, Any]) -> Iterator[tuple[int, dict[str, int], Sequence[Sequence[int]]]]:
    names = [column["name"] for column in document["settings"]]
    for number, sequence in enumerate(document["sequences"]):
        yield number, dict(zip(names, sequence["settings"], strict=True)), sequence["rows"]


class _Client:
    """Asks a block about the rows of one sequence after the other, each by a connection of its own, as runs do."""

    def __init__(self, path: str, found: Conformance, deadline: float) -> None:
        self.path, self.found, self.deadline = path, found, deadline
        self.comparison = Comparison(found)
        self.columns = [column["name"] for column in found.document["columns"]]

    def left(self) -> float:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def sequence(self, number: int, settings: Mapping[str, int], rows: Sequence[Sequence[int]]) -> None:
        first = dict(zip(self.columns, rows[0], strict=True))
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream:
            stream.settimeout(self.left())
            stream.connect(self.path)
            stream.sendall(_hello(settings, first["wire"] - first["frame"], number))
            self.found.target = f"{self.path}: {_welcomed(received(stream, WELCOME.size))}"
            for index, row in enumerate(rows):
                stream.settimeout(self.left())
                self.row(stream, number, index, row)

    def row(self, stream: socket.socket, number: int, index: int, row: Sequence[int]) -> None:
        value = dict(zip(self.columns, row, strict=True))
        moment = DEPARTURE if value["departure"] else ARRIVAL
        queue, time_ps, ecn = value["queue"], value["time_ps"], value["ecn"]
        stream.sendall(REQUEST.pack(index, time_ps, time_ps, queue, 0, 0, 0, 0, 0, 0, value["frame"], 0, moment, ecn, 0, 64))
        place = f"sequence {number}, row {index}"
        frame = received(stream, REPLY.size)
        if not frame:
            raise FailedError(f"it closed the connection before its answer to {place}")
        about, decision, _ = REPLY.unpack(frame)
        if about != index or any(frame[9:]) or decision not in (PASS, MARK):
            raise FailedError(f"its answer to {place} is {frame.hex(' ')}; expected: the number {index}, then 0 (pass) or 1 (mark)")
        # A mark of a packet that is not ECN-capable is none, as in a run.
        self.comparison.compare(number, index, list(row), [int(decision == MARK and ecn != 0)])
        self.found.answered += 1


def _done(found: Conformance) -> str:
    return f"{found.answered:,} of {found.rows:,} rows were answered"


def conform_socket(
    mechanism: str, path: str | Path, params: Mapping[str, Any] | None = None, *, timeout_s: float = 60.0
) -> Conformance:
    """Ask a block at a socket about the packets of a mechanism's test vectors, and compare what it decides.

    Parameters
    ----------
    mechanism
        ``s-ecn``: what the socket carries are decisions of a marking policy.
    path
        The socket at which the block listens; each sequence is a connection, with its settings as words ``key=value``.
    params, timeout_s
        As of :func:`fanin.conformance.conform`.

    Raises
    ------
    fanin.ScenarioError
        An unknown mechanism, or parameters that are wrong.
    OSError
        Nobody listens at the socket.
    """
    checked(timeout_s)
    system.needs_posix("fanin conform --socket")
    document = vectors.generate(mechanism, params)
    if mechanism != MECHANISM:
        raise ValueError(f"--socket: carries marking decisions, which {mechanism} does not make; accepted: {MECHANISM}")
    found = found_in(mechanism, str(path), document)
    client = _Client(str(path), found, time.monotonic() + timeout_s)
    found.columns = ["mark"]
    client.comparison.at = [client.columns.index("mark")]
    try:
        for sequence in _rows(document):
            client.sequence(*sequence)
    except (FailedError, CosimError) as error:
        found.failure = str(error)
    except TimeoutError:
        found.failure = f"it did not answer within {timeout_s:g} s: {_done(found)} (--timeout gives it longer)"
    except (BrokenPipeError, ConnectionResetError):
        found.failure = f"it closed the connection: {_done(found)}"
    except OSError as error:
        if found.answered:
            found.failure = f"it ended: {error.strerror}: {_done(found)}"
        else:
            raise OSError(error.errno, f"{error.strerror} (start the block first, which makes this socket)", str(path)) from error
    return found
