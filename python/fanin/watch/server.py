"""The live page, on loopback only: the page itself, its events, and the metrics."""

from __future__ import annotations

import json
import socket
import threading
from functools import cached_property
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from fanin.pages import Charts, page
from fanin.watch.hub import Hub
from fanin.watch.metrics import CONTENT_TYPE, Metrics

HOST: Final = "127.0.0.1"

_NAMES: Final = (HOST, "localhost")
"""Names by which a browser may ask for it: a page of elsewhere that has its own name lead here is refused."""

_READERS: Final = 16
"""Pages that are served at once."""

_ALIVE: Final = 5.0
"""Seconds after which a connection without news gets a sign of life."""

_PAUSE: Final = 0.4
"""Seconds between two states that a page gets, at least."""

_HEADERS: Final = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class _Handler(BaseHTTPRequestHandler):
    """Answers to requests; only three paths are known, and no file is read."""

    server: Server
    protocol_version = "HTTP/1.1"
    server_version = "fanin"
    sys_version = ""
    timeout = 30

    def log_message(self, *_: Any) -> None:
        """Say nothing: the terminal is the user's."""

    def do_GET(self) -> None:
        """Answer."""
        if self.headers.get("Host", "").lower() not in self.server.names:
            self._answer(HTTPStatus.FORBIDDEN, b"this page answers to 127.0.0.1 and localhost only\n", "text/plain; charset=utf-8")
        elif self.path == "/":
            self._answer(HTTPStatus.OK, self.server.page, "text/html; charset=utf-8")
        elif self.path == "/metrics":
            self._answer(HTTPStatus.OK, self.server.metrics.text(), CONTENT_TYPE)
        elif self.path == "/events":
            self._events()
        else:
            self._answer(HTTPStatus.NOT_FOUND, b"there are /, /events and /metrics\n", "text/plain; charset=utf-8")

    def _head(self, status: HTTPStatus, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        for name, value in _HEADERS.items():
            self.send_header(name, value)

    def _answer(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self._head(status, kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _events(self) -> None:
        """Send the state as often as it changes, until nobody reads it."""
        if not self.server.readers.acquire(blocking=False):
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, b"too many pages are open\n", "text/plain; charset=utf-8")
            return
        hub = self.server.hub
        try:
            self.connection.settimeout(self.timeout)
            self._head(HTTPStatus.OK, "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            seen = -1
            while not self.server.stopping.is_set():
                with hub.turned:
                    hub.turned.wait_for(lambda: hub.turn != seen or self.server.stopping.is_set(), timeout=_ALIVE)  # noqa: B023 (called before `seen` changes)
                    changed, seen = hub.turn != seen, hub.turn
                data = self.server.state(seen) if changed else b": still here\n\n"
                self.wfile.write(data)
                self.wfile.flush()
                self.server.stopping.wait(_PAUSE)
        except OSError:
            pass  # the page was closed
        finally:
            self.close_connection = True
            self.server.readers.release()


class Server(ThreadingHTTPServer):
    """The server of the live page.

    Parameters
    ----------
    hub : Hub
        What it shows.
    metrics : Metrics
        What ``/metrics`` shows.
    port : int
        Its port on loopback; 0: any that is free.
    title : str
        Of the page.

    Raises
    ------
    OSError
        The port is taken.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, hub: Hub, metrics: Metrics, port: int, title: str) -> None:
        self.hub = hub
        self.metrics = metrics
        self.stopping = threading.Event()
        self.readers = threading.BoundedSemaphore(_READERS)
        self._title = title
        self._made: tuple[int, bytes] = (-1, b"")
        self._making = threading.Lock()
        super().__init__((HOST, port), _Handler)
        self.names = frozenset(f"{name}:{self.server_port}" for name in _NAMES)
        self._thread = threading.Thread(target=self.serve_forever, name="watch page", daemon=True, kwargs={"poll_interval": 0.2})

    def server_bind(self) -> None:
        """Bind, without asking anyone for the name of this machine."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = HOST, self.server_address[1]

    def handle_error(self, *_: Any) -> None:
        """Say nothing of connections that break."""

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{HOST}:{self.server_port}/"

    @cached_property
    def page(self) -> bytes:
        """The page without its data, which its script asks for."""
        names = [source.name for source in self.hub.sources]
        return page("watch.html", Charts(), live=True, title=self._title, provenance=[("source", name) for name in names]).encode()

    def state(self, turn: int) -> bytes:
        """Return the event with the present state, made once for all who read it."""
        with self._making:
            if self._made[0] != turn:
                text = json.dumps(self.hub.document(), separators=(",", ":"), ensure_ascii=True, allow_nan=False)
                self._made = (turn, f"data: {text}\n\n".encode())
            return self._made[1]

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def stop(self) -> None:
        """Serve no more."""
        self.stopping.set()
        with self.hub.turned:
            self.hub.turned.notify_all()
        self.shutdown()
        self.server_close()
