"""Times of a trace on the clock of its network, for finding them in other logs."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any, Final

_UNZONED: Final = re.compile(r"(\d{4})[-/](\d\d)[-/](\d\d)[Tt ] *(\d\d):(\d\d)(?::(\d\d)(?:[.,]\d+)?)?")

_EPOCH: Final = range(978_307_200, 4_102_444_800)
"""Seconds since 1970 that are dates, of the years 2001 to 2100; others count from when a device was switched on."""


class Clock:
    """Wall-clock times of a trace.

    Parameters
    ----------
    origin_s : int
        Second since 1970 from which times of the trace count.
    zone : tzinfo, optional
        In which zone they are given; UTC if not given. None stands for that of this machine.
    """

    def __init__(self, origin_s: int, zone: tzinfo | None = UTC) -> None:
        self._origin_s = origin_s
        self._zone = zone

    @property
    def name(self) -> str:
        """The zone at the origin: ``UTC``, ``+01:00``."""
        offset = self._at(0).strftime("%z")
        return "UTC" if offset == "+0000" else f"{offset[:3]}:{offset[3:5]}"

    @property
    def offset_s(self) -> int:
        """Seconds that the zone is before UTC at the origin."""
        offset = self._at(0).utcoffset()
        return 0 if offset is None else int(offset.total_seconds())

    def _at(self, ps: int) -> datetime:
        return datetime.fromtimestamp(self._origin_s + ps // 10**12, UTC).astimezone(self._zone)

    def text(self, ps: int) -> str:
        """Return a time of the trace [ps] as ISO 8601 to the nanosecond, for example ``2026-11-22T17:30:00.123456789Z``."""
        at = self._at(ps)
        offset = at.strftime("%z")
        shown = "Z" if offset == "+0000" else f"{offset[:3]}:{offset[3:5]}"
        return f"{at:%Y-%m-%dT%H:%M:%S}.{ps % 10**12 // 1000:09d}{shown}"


def of_document(document: dict[str, Any], zone: tzinfo | None = UTC) -> Clock | None:
    """Return the clock of an analysis; None where its times are no dates."""
    return Clock(document["origin_s"], zone) if document["origin_s"] in _EPOCH else None


def in_zone(text: str | None, zone: tzinfo | None) -> str | None:
    """Return a date that names no zone as one of `zone`, any other text as it is."""
    found = _UNZONED.fullmatch(text.strip()) if isinstance(text, str) else None
    if found is None or zone is UTC:
        return text
    try:
        at = datetime(*(int(part or 0) for part in found.groups()), tzinfo=zone)  # type: ignore[arg-type, misc]
        offset = (at if zone else at.astimezone()).strftime("%z")
    except ValueError:
        return text  # no such day: that is said of the option
    return f"{found[0]}{offset[:3]}:{offset[3:5]}"


def read_zone(text: str) -> tzinfo | None:
    """Return the time zone of a name: ``UTC``, ``local`` (None), ``+01:00``, ``Europe/Berlin``.

    Raises
    ------
    ValueError
        There is no such zone.
    """
    if text.upper() in ("UTC", "Z"):
        return UTC
    if text == "local":
        return None
    if text[:1] in ("+", "-"):
        digits = text[1:].replace(":", "")
        if len(digits) == 4 and digits.isascii() and digits.isdigit() and int(digits[:2]) < 24 and int(digits[2:]) < 60:
            offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
            return timezone(-offset if text[0] == "-" else offset)
    else:
        import zoneinfo

        try:
            return zoneinfo.ZoneInfo(text)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            pass
    raise ValueError(f"zone: '{text}' is no time zone; accepted: UTC, local, +01:00, a name such as Europe/Berlin")
