"""An address that JSON is posted to, and whether it answers."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections import deque
from typing import Any, Final, Literal
from urllib.parse import urlsplit

Outcome = Literal["sent", "refused", "failed"]
"""How a post ended: it arrived; it would be refused again; it may arrive when it is tried again."""

_TIMEOUT: Final = 5.0


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Handler that follows no redirect: what is posted goes where the user says, and nowhere else."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Follow nothing."""


def is_address(text: Any) -> bool:
    """Return whether a text is an address that can be posted to."""
    try:
        parts = urlsplit(text) if isinstance(text, str) else None
    except ValueError:
        return False
    return parts is not None and parts.scheme in ("http", "https") and bool(parts.netloc)


class Poster:
    """An address that JSON is posted to, and whether it answers.

    Parameters
    ----------
    url : str
        The address, of http or https.
    name : str
        Its name in messages.

    Attributes
    ----------
    failures : int
        Posts that did not arrive.
    trouble : str or None
        Reason for which the last post did not arrive.
    news : deque
        Lines for the terminal: that it does not answer, once, and that it does again.
    """

    def __init__(self, url: str, name: str) -> None:
        self.failures = 0
        self.trouble: str | None = None
        self.news: deque[str] = deque(maxlen=10)
        self._url = url
        self._name = name
        self._before = 0
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect)

    def __str__(self) -> str:
        return f"{self._name} {self._url}"

    def post(self, body: bytes) -> Outcome:
        """Post once."""
        outcome, trouble = self._posted(body)
        if trouble is not None:
            self.failures += 1
            if self.trouble is None:
                self._before = self.failures - 1
                self.news.append(f"{self}: {trouble}")
        elif self.trouble is not None:
            self.news.append(f"{self}: answers again, after {self.failures - self._before} failed posts")
        self.trouble = trouble
        return outcome

    def _posted(self, body: bytes) -> tuple[Outcome, str | None]:
        request = urllib.request.Request(self._url, data=body, method="POST", headers={"Content-Type": "application/json"})  # noqa: S310 (http and https only: `is_address`)
        try:
            with self._opener.open(request, timeout=_TIMEOUT) as answer:
                answer.read(1)
                return "sent", None
        except urllib.error.HTTPError as error:
            error.close()
            again = error.code >= 500 or error.code in (408, 429)
            return "failed" if again else "refused", f"answers {error.code} {error.reason}"
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            return "failed", f"does not answer: {getattr(reason, 'strerror', None) or reason}"
