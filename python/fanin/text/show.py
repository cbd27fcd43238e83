"""Numbers as people read them: durations, sizes and rates with a fitting unit."""

from __future__ import annotations

from collections.abc import Sequence

TIME_UNITS: Sequence[tuple[str, float]] = (("ps", 1), ("ns", 1e3), ("µs", 1e6), ("ms", 1e9), ("s", 1e12))
"""Units of time and their length in picoseconds."""

SIZE_UNITS: Sequence[tuple[str, float]] = (("B", 1), ("KB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12))
"""Units of size in bytes; decimal, as in scenarios."""

RATE_UNITS: Sequence[tuple[str, float]] = (("b/s", 1), ("kb/s", 1e3), ("Mb/s", 1e6), ("Gb/s", 1e9), ("Tb/s", 1e12))
"""Units of rate in bits per second."""

_COUNT_UNITS: Sequence[tuple[str, float]] = (("", 1), ("K", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12))

NOTHING = "–"


def axis_unit(units: Sequence[tuple[str, float]], largest: float | None) -> tuple[str, float]:
    """Return the unit in which `largest` is at least 1, and its size in base steps.

    Parameters
    ----------
    units : sequence of (str, float)
        Units in rising order, for example `TIME_UNITS`.
    largest : float or None
        The largest value to be shown, in base steps.
    """
    chosen = units[0]
    for unit in units:
        if largest is not None and abs(largest) >= unit[1]:
            chosen = unit
    return chosen


def _scaled(value: float | None, units: Sequence[tuple[str, float]]) -> str:
    if value is None:
        return NOTHING
    name, scale = axis_unit(units, value)
    scaled = value / scale
    digits = f"{scaled:.0f}" if scale == 1 and float(value).is_integer() else f"{scaled:.4g}"
    if "e" in digits:
        digits = f"{scaled:.0f}"
    return f"{digits} {name}".rstrip()


def duration(ps: float | None) -> str:
    """Return picoseconds as text, for example ``1.234 ms``; a dash for None."""
    return _scaled(ps, TIME_UNITS)


def size(size_bytes: float | None) -> str:
    """Return bytes as text, for example ``65.54 KB``; a dash for None."""
    return _scaled(size_bytes, SIZE_UNITS)


def rate(bps: float | None) -> str:
    """Return bits per second as text, for example ``9.41 Gb/s``; a dash for None."""
    return _scaled(bps, RATE_UNITS)


def count(value: float | None) -> str:
    """Return a count, exactly below a million (``12,345``), rounded above (``3.217 M``); a dash for None."""
    if value is None:
        return NOTHING
    if abs(value) < 1e6 and float(value).is_integer():
        return f"{value:,.0f}"
    return _scaled(value, _COUNT_UNITS)


def many(value: float, one: str, several: str | None = None) -> str:
    """Return a count with the noun that belongs to it: ``1 port``, ``3 ports``."""
    return f"{count(value)} {one if value == 1 else several or f'{one}s'}"


def ratio(value: float | None) -> str:
    """Return a dimensionless number such as a slowdown with three significant digits; a dash for None."""
    if value is None:
        return NOTHING
    return f"{value:.2f}" if abs(value) < 100 else f"{value:,.0f}"


TIMES = 9.0
"""Changes from which on people say how many times as much it is: ten times."""


def change(share: float, *, times: bool | None = None, sign: bool = True) -> str:
    """Return a relative change with three digits: in per cent (``+5 %``), or as how many times as much (``x 19.7``).

    Parameters
    ----------
    share : float
        The difference over what was there before: 0.05 is five per cent more.
    times : bool, optional
        Whether it is told as how many times as much; from `TIMES` on if not given.
    sign : bool
        Whether per cent have a sign.
    """
    many = share >= TIMES if times is None else times
    value = 1 + share if many else 100 * share if sign else 100 * abs(share)
    digits = f"{value:{'+' if sign and not many else ''},.{'0f' if abs(value) >= 999.5 else '3g'}}"
    return f"x {digits}" if many else f"{digits} %"


def byte_range(from_bytes: float | None, to_bytes: float | None) -> str:
    """Return a size bin as text, for example ``10 KB – 100 KB`` or ``≥ 10 MB``."""
    if from_bytes in (None, 0) and to_bytes is None:
        return "all sizes"
    if from_bytes in (None, 0):
        return f"< {size(to_bytes)}"
    if to_bytes is None:
        return f"≥ {size(from_bytes)}"
    return f"{size(from_bytes)} – {size(to_bytes)}"
