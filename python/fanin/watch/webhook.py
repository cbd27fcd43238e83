"""Alerts on their way to a webhook: in a bounded backlog, retried, and never in the way of the reading."""

from __future__ import annotations

import json
import queue
import threading
from collections import Counter
from typing import Any, Final

from fanin.watch.posting import Poster

_BACKLOG: Final = 1000
"""Alerts that wait at most; what comes then is left out."""

_TRIES: Final = 6
_PAUSE: Final = (0.5, 30.0)
"""Seconds between two tries: at first, and at most."""


class Webhook:
    """A queue of alerts with a thread that posts them as JSON.

    Parameters
    ----------
    url : str or None
        Where to; none: alerts are counted only.

    Attributes
    ----------
    poster : Poster or None
        The address, and whether it answers.
    """

    def __init__(self, url: str | None) -> None:
        self.fired: Counter[str] = Counter()
        self._outcomes: Counter[str] = Counter(sent=0, failed=0, left_out=0)
        self.poster = Poster(url, "webhook") if url is not None else None
        self._in_hand = 0
        self._queue: queue.Queue[dict[str, Any]] = queue.Queue(_BACKLOG)
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        if self.poster is not None:
            self._thread = threading.Thread(target=self._run, args=(self.poster,), name="watch webhook", daemon=True)
            self._thread.start()

    def post(self, alert: dict[str, Any]) -> None:
        """Put an alert into the backlog, if there is room."""
        self.fired[alert["rule"]] += 1
        if self.poster is None:
            return
        try:
            self._queue.put_nowait(alert)
        except queue.Full:
            self._outcomes["left_out"] += 1

    def outcomes(self) -> dict[str, int]:
        """Return how many were sent, failed in the end, or were left out as too many waited."""
        return dict(self._outcomes)

    @property
    def waiting(self) -> int:
        """Alerts that wait, the one that is tried again included."""
        return self._queue.qsize() + self._in_hand

    @property
    def undelivered(self) -> int:
        """Alerts that have not arrived: they wait, failed in the end, or were left out."""
        return 0 if self.poster is None else sum(self.fired.values()) - self._outcomes["sent"]

    def close(self, seconds: float) -> None:
        """Send what waits, for so many seconds at most."""
        if self._thread is not None:
            self._stopping.set()
            self._thread.join(timeout=seconds)

    def _run(self, poster: Poster) -> None:
        while not (self._stopping.is_set() and self._queue.empty()):
            try:
                alert = self._queue.get(timeout=0.2)
            except queue.Empty:
                continue
            self._in_hand = 1
            outcome = "sent" if self._send(poster, json.dumps(alert).encode()) else "failed"
            self._in_hand = 0
            self._outcomes[outcome] += 1

    def _send(self, poster: Poster, body: bytes) -> bool:
        pause = _PAUSE[0]
        for attempt in range(_TRIES):
            outcome = poster.post(body)
            if outcome != "failed":
                return outcome == "sent"
            if attempt + 1 < _TRIES:
                self._stopping.wait(pause)
                pause = min(2 * pause, _PAUSE[1])
        return False
