"""Blocks outside of the simulator that decide about packets: the block's side of docs/dev/cosimulation-protocol.md.

>>> from fanin.cosim import MARK, PASS, serve
>>> def block(start):  # called for each run
...     return lambda packet: MARK if packet.queue_bytes > 30_000 else PASS
>>> serve("fanin.sock", block, name="threshold")  # doctest: +SKIP
"""

from __future__ import annotations

import itertools
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, TypeVar

__all__ = [
    "ARRIVAL",
    "DEPARTURE",
    "DETOUR",
    "DROP",
    "MARK",
    "PASS",
    "REFUSAL",
    "WAY",
    "Connection",
    "CosimError",
    "Decide",
    "Listener",
    "Packet",
    "Port",
    "Start",
    "Way",
    "serve",
]

VERSION: Final = 2
MAGIC: Final = b"fanin-co"
PASS, MARK, DROP, DETOUR = range(4)
ARRIVAL, DEPARTURE, REFUSAL, WAY = range(4)

HELLO: Final = struct.Struct("<8sIIQBBB5x480s")
PORT: Final = struct.Struct("<IHBBQQB7x64s")
WELCOME: Final = struct.Struct("<8sI4x48s32s")
REQUEST: Final = struct.Struct("<QQQQIIIIIIHHBBBB")
REPLY: Final = struct.Struct("<QB3xI")
WAYS: Final = struct.Struct("<I4x")
ONE_WAY: Final = struct.Struct("<IB3xQ")
UNITS: Final = (None, "bytes", "packets", "cells")


class CosimError(ValueError):
    """The other end does not speak the protocol, or another version of it."""


class Way(NamedTuple):
    """Another port of the switch, which may have a packet that its own port does not take."""

    port: int
    bits: int
    queue_bytes: int

    @property
    def room(self) -> bool:
        """Whether the packet has room there now."""
        return bool(self.bits & 1)

    @property
    def to_host(self) -> bool:
        """Whether the port leads to a host."""
        return bool(self.bits & 2)

    @property
    def back(self) -> bool:
        """Whether the packet came in by this port."""
        return bool(self.bits & 4)


class Packet(NamedTuple):
    """A packet about which the block decides; the queue is what it finds, or leaves behind at a departure."""

    number: int
    time_ps: int
    free_at_ps: int
    queue_bytes: int
    queue_packets: int
    port: int
    flow: int
    hash: int
    src: int
    dst: int
    frame: int
    payload: int
    bits: int
    ecn: int
    cls: int
    ttl: int
    ways: tuple[Way, ...] = ()

    @property
    def moment(self) -> int:
        """``ARRIVAL``, ``DEPARTURE``, ``REFUSAL`` or ``WAY``."""
        return self.bits & 3

    @property
    def own_queue(self) -> bool:
        """Whether the queue is that of the packet's class alone."""
        return bool(self.bits & 4)

    @property
    def control(self) -> bool:
        """Whether the frame carries a control message."""
        return bool(self.bits & 8)


@dataclass(frozen=True)
class Port:
    """A port whose packets the block decides about: ``buffer`` in ``unit``, or None where it is shared or has no limit.

    Not ``asked``: packets may go there by its decision, and it is not asked about those.
    """

    number: int
    overhead: int
    classes: int
    rate_bps: int
    buffer: int | None
    unit: str | None
    name: str
    asked: bool = True


@dataclass(frozen=True)
class Start:
    """What a run says at the start."""

    seed: int
    departures: bool
    refusals: bool
    detours: bool
    settings: str
    ports: dict[int, Port]

    def setting(self, key: str, default: int) -> int:
        """A whole number among the settings, which are words ``key=value``.

        Raises
        ------
        ValueError
            The value of `key` is no whole number.
        """
        found = [word.partition("=")[2] for word in self.settings.split() if word.partition("=")[0] == key]
        if not found:
            return default
        try:
            return int(found[-1])
        except ValueError:
            raise ValueError(f"settings: {key}={found[-1]}: expected: a whole number, such as {key}={default}") from None

    def only(self, *keys: str) -> None:
        """Check that the settings are words ``key=value`` with no keys but these: one that nobody reads would have no effect.

        Raises
        ------
        ValueError
            A word is none of them.
        """
        for word in self.settings.split():
            key, equals, _ = word.partition("=")
            if not equals or key not in keys:
                raise ValueError(f"settings: {word}: accepted: {', '.join(f'{key}=NUMBER' for key in keys)}")


Decide = Callable[[Packet], "int | Way"]
_Given = TypeVar("_Given")
_Found = TypeVar("_Found")


def text_of(field: bytes) -> str:
    """Text in a field of zeros."""
    return field.partition(b"\0")[0].decode("utf-8", "replace")


def received(stream: socket.socket, size: int) -> bytes:
    """A frame, or nothing where the other end has closed the connection before it."""
    data = stream.recv(size)
    while data and len(data) < size:
        more = stream.recv(size - len(data))
        if not more:
            raise CosimError(f"the connection ended after {len(data)} of the {size} bytes of a frame")
        data += more
    return data


class Connection:
    """A run, which asks about one packet after the other; iterate over it and `answer` each."""

    def __init__(self, stream: socket.socket, name: str, version: str) -> None:
        self.stream = stream
        self.at, self.moment = -1, ARRIVAL
        hello = received(stream, HELLO.size)
        if hello[:8] != MAGIC:
            raise CosimError(f"the other end is no Fanin: its first bytes are {hello[:8]!r}")
        _, spoken, ports, seed, departures, refusals, detours, settings = HELLO.unpack(hello)
        # Said before anything else is read: another version may have other frames.
        stream.sendall(WELCOME.pack(MAGIC, VERSION, name.encode(), version.encode()))
        if spoken != VERSION:
            raise CosimError(f"the other end speaks version {spoken} of the protocol; accepted: {VERSION}")
        all_ports = {}
        for _ in range(ports):
            number, overhead, classes, unit, rate, buffer, asked, named = PORT.unpack(received(stream, PORT.size))
            has = UNITS[unit]
            all_ports[number] = Port(number, overhead, classes, rate, buffer if has else None, has, text_of(named), bool(asked))
        self.start = Start(seed, bool(departures), bool(refusals), bool(detours), text_of(settings), all_ports)

    def __iter__(self) -> Iterator[Packet]:
        while request := received(self.stream, REQUEST.size):
            packet = Packet(*REQUEST.unpack(request))
            self.at, self.moment = packet.number, packet.moment
            if packet.moment == WAY:
                (count,) = WAYS.unpack(received(self.stream, WAYS.size))
                ways = ONE_WAY.iter_unpack(received(self.stream, count * ONE_WAY.size)) if count else ()
                packet = packet._replace(ways=tuple(map(Way._make, ways)))
            yield packet

    def answer(self, decision: int | Way) -> None:
        """Decide about the packet asked about last: ``PASS``, ``MARK``, ``DROP`` or ``DETOUR``; at ``WAY``, ``PASS`` or a way.

        Raises
        ------
        ValueError
            The decision is none, or none that this packet can have.
        """
        of_way = self.moment == WAY
        try:
            if isinstance(decision, Way) and of_way:
                reply = REPLY.pack(self.at, DETOUR, decision.port)
            elif not isinstance(decision, Way) and decision in ((PASS,) if of_way else (PASS, MARK, DROP, DETOUR)):
                reply = REPLY.pack(self.at, decision, 0)
            else:
                raise ValueError
        except (ValueError, struct.error):
            accepted = "PASS (0), or one of packet.ways" if of_way else "PASS (0), MARK (1), DROP (2), DETOUR (3)"
            raise ValueError(f"the answer to request {self.at} is {decision!r}; accepted: {accepted}") from None
        self.stream.sendall(reply)

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stream.close()


class Listener:
    """The block's end of the socket. A socket of that name that nobody listens at is replaced."""

    def __init__(self, path: str | Path, name: str, version: str = "") -> None:
        for what, text, most in (("name", name, 48), ("version", version, 32)):
            if len(text.encode()) > most or (what == "name" and not text):
                raise ValueError(f"{what} is {text!r}; accepted: {'1 to ' if what == 'name' else 'at most '}{most} bytes of UTF-8")
        self.path, self.name, self.version = Path(path), name, version
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            if self.path.is_socket() and probe.connect_ex(str(path)) != 0:
                self.path.unlink()
        try:
            self.socket.bind(str(path))
            self.socket.listen()
        except OSError:
            self.socket.close()
            raise

    def accept(self) -> Connection:
        """Wait for a run."""
        stream, _ = self.socket.accept()
        try:
            return Connection(stream, self.name, self.version)
        except BaseException:
            stream.close()
            raise

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.socket.close()
        self.path.unlink(missing_ok=True)


class _OfBlockError(Exception):
    """An error of the block's own code, a connection of its own included."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


def _own(call: Callable[[_Given], _Found], given: _Given) -> _Found:
    try:
        return call(given)
    except BaseException as error:
        raise _OfBlockError(error) from error


def serve(path: str | Path, block: Callable[[Start], Decide], *, name: str, version: str = "", runs: int | None = None) -> None:
    """Decide about the packets of runs, of any number at once, each in a thread of its own.

    Parameters
    ----------
    path
        The socket to listen at: the scenario's ``socket``. "ready" is printed when runs can begin.
    block
        Called with what a run says at its start; returns the function that decides about each packet of it. What runs share is the
        block's to guard.
    name, version
        Of the block, for the run's manifest: 48 and 32 bytes at most.
    runs
        Number of runs after which it returns; None: none. An error of `block` ends it at once.
    """
    raised: list[BaseException] = []
    threads: list[threading.Thread] = []
    with Listener(path, name, version) as listener:

        def ends(error: BaseException) -> None:  # serve raises it
            raised.append(error)
            with suppress(OSError):
                listener.socket.shutdown(socket.SHUT_RDWR)  # nobody waits for runs any more

        def decides(stream: socket.socket) -> None:
            try:
                with stream:
                    run = Connection(stream, name, version)
                    decide = _own(block, run.start)
                    for packet in run:
                        run.answer(_own(decide, packet))
            except _OfBlockError as error:
                ends(error.error)
            except (ConnectionError, CosimError) as gone:  # the run has given up, or was none
                sys.stderr.write(f"a run has ended early: {gone}\n")
            except BaseException as error:
                ends(error)

        sys.stdout.write("ready\n")
        sys.stdout.flush()
        for _ in itertools.count() if runs is None else range(runs):
            try:
                stream, _ = listener.socket.accept()
            except OSError:
                if raised:
                    break
                raise
            threads = [thread for thread in threads if thread.is_alive()]
            threads.append(threading.Thread(target=decides, args=(stream,), daemon=True))
            threads[-1].start()
        while threads and not raised:
            threads[0].join(0.05)
            threads = [thread for thread in threads if thread.is_alive()]
    if raised:
        raise raised[0]
