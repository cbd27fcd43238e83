"""Watches that run in a thread, and streams for them."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fanin.watch.hub import Burst
from fanin.watch.server import Server
from fanin.watch.watching import Choices, Watch

HEADER = "time_ns,port,queue_bytes,frame_bytes,flow\n"
SETTINGS = {"rate": "10Gbps", "above": "20KB"}
EVIL = "<img src=x onerror=alert(1)>"


def rows(bursts: int, *, first: int = 0, ports: int = 2, name: str = "eth", each: int = 31) -> str:
    """Return rows of bursts of `each` packets back to back, one each millisecond at each port; the last finds the queue empty."""
    all_rows = []
    for port in range(ports):
        for burst in range(first, first + bursts):
            start = 1_000_000 * (burst + 1) + 1_000_000 // max(ports, 2) * port
            for i in range(each):
                queue = 0 if i == each - 1 else i * 1500
                all_rows.append((start + i * 100, port, queue, f"10.0.{port}.{i % 4}:80 > 10.9.9.9:{burst % 50} tcp"))
    all_rows.sort()
    return "".join(f"{time_ns},{name}{port},{queue},1500,{flow}\n" for time_ns, port, queue, flow in all_rows)


def free_port(kind: socket.SocketKind) -> int:
    """Return a port for a program that is started next.

    It is none of those that systems give to whoever asks for any, which another program may get in between, and tests in other
    processes begin to look elsewhere.
    """
    first = os.getpid() * 8 % 8_000
    for number in range(first, first + 8_000):
        port = 20_000 + number % 8_000
        with socket.socket(socket.AF_INET, kind) as free, contextlib.suppress(OSError):
            free.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


class Running:
    """A watch in a thread."""

    def __init__(
        self,
        given: list[Any],
        *,
        settings: dict[str, Any] | None = None,
        page: bool = False,
        told: Callable[[list[Burst]], Callable[[], None] | None] | None = None,
        **choices: Any,
    ) -> None:
        self.watch = Watch([str(one) for one in given], {**SETTINGS, **(settings or {})}, Choices(**choices))
        self.bursts: list[Burst] = []
        self.said: list[str] = []
        self.server = Server(self.watch.hub, self.watch.metrics, 0, "test") if page else None
        if self.server is not None:
            self.server.start()
        self._thread = threading.Thread(target=self.watch.run, args=(told or self.bursts.extend, self.said.append))
        self._thread.start()

    def close(self) -> None:
        self.watch.stop()
        self._thread.join(timeout=60)
        assert not self._thread.is_alive()
        if self.server is not None:
            self.server.stop()

    def counts(self) -> dict[str, int]:
        """Return how many records each port has had."""
        return {port.name: port.report["records"] for port in self.watch.hub.ports.values()}

    def until(self, what: Callable[[], bool], seconds: float = 60) -> None:
        """Wait until something is so.

        Raises
        ------
        AssertionError
            It has not become so.
        """
        end = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < end, (self.counts(), [(s.state(), s.problem) for s in self.watch.hub.sources])
            time.sleep(0.05)

    def get(self, path: str, host: str | None = None) -> tuple[int, str, dict[str, str]]:
        """Return status, body and headers of an answer of the page."""
        assert self.server is not None
        request = urllib.request.Request(self.server.url[:-1] + path, headers={} if host is None else {"Host": host})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.read().decode(), dict(answer.headers)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode(), dict(error.headers)


@contextlib.contextmanager
def running(*given: Any, **more: Any) -> Iterator[Running]:
    """Watch sources until the end of the block."""
    watch = Running(list(given), **more)
    try:
        yield watch
    finally:
        watch.close()


def once(*given: Any, **more: Any) -> Running:
    """Watch sources to their ends."""
    watch = Running(list(given), once=True, **more)
    watch._thread.join(timeout=120)
    watch.close()
    return watch


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path
