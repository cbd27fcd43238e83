"""Which settings are tried on the model of a port: thresholds, buffers, hosts' settings; mechanisms are those of the registries."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from fanin import _core
from fanin.text import show

if TYPE_CHECKING:
    from fanin.scenario import Scenario

_TIMES: Final = (2, 4, 8)
"""How many times the buffer is tried."""

_PARTS: Final = (16, 8, 4, 2)
"""Parts of the buffer that are tried as a threshold."""

_WINDOWS: Final = (1, 2, 4, 10)
"""First windows that are tried, in segments."""

_TIMERS: Final = ("1ms", "10ms", "50ms")
"""Shortest timeouts that are tried."""

_MECHANISMS: Final = ("pdn", "trimming", "pfc")

_LEAST_K: Final = 3 * 1518
"""No threshold is below three full frames."""

_PERIODS: Final = {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12}


def amount(text: str) -> int | None:
    """Return an amount in bytes; None of packets and cells, whose size is not known."""
    found = re.fullmatch(r"\s*([\d.]+)\s*(\w+)\s*", text)
    sizes = {**dict(show.SIZE_UNITS), "packets": 1518, "packet": 1518}
    return None if found is None or found[2] not in sizes else round(float(found[1]) * sizes[found[2]])


def period(text: str) -> int | None:
    """Return a duration in picoseconds; None of a text that is none."""
    found = re.fullmatch(r"\s*([\d.]+)\s*(\w+)\s*", text)
    return None if found is None or found[2] not in _PERIODS else round(float(found[1]) * _PERIODS[found[2]])


def _round(size: float) -> int:
    """Return a size with two digits."""
    digits = max(0, len(str(int(size))) - 2)
    return int(round(size / 10**digits) * 10**digits)


def _trial(kind: str, part: str, about: str, *settings: tuple[str, str]) -> dict[str, Any]:
    return {"kind": kind, "part": part, "doc": about, "settings": [list(setting) for setting in settings]}


def buffer_bytes(scenario: Scenario) -> int | None:
    """Return what may wait at a port of its own buffer; None of a shared one, or one without end."""
    buffer = scenario.resolved["switch"]["buffer"]
    return amount(str(buffer["per_port"])) if buffer["kind"] == "static" else None


def trials(scenario: Scenario, peak_bytes: float) -> list[dict[str, Any]]:
    """Return what is tried on a model, each as the core states a trial.

    Parameters
    ----------
    scenario : Scenario
        The model.
    peak_bytes : float
        Its longest queue, by which thresholds go where a port has no buffer of its own.
    """
    transport = scenario.resolved["transport"]
    own = [*_buffers(scenario), *_thresholds(scenario, transport, peak_bytes)]
    if transport["kind"] == "tcp":
        own += _hosts(transport)
    text, kind = scenario.source()
    listed = _core.trials(text, kind, str(scenario.base_dir))
    return own + [trial for trial in listed if trial["part"] == "switch.mechanisms" and trial["kind"] in _MECHANISMS]


def _buffers(scenario: Scenario) -> list[dict[str, Any]]:
    room = buffer_bytes(scenario)
    found = []
    if room is not None:
        for times in _TIMES:
            text = f'{{ kind = "static", per_port = "{times * room}B" }}'
            found.append(_trial(f"buffer × {times}", "buffer", f"{show.size(times * room)} for the port.", ("switch.buffer", text)))
    for alpha in (0.25, 1, 8):
        text = f'{{ kind = "dynamic", total = "4MB", alpha = {float(alpha)} }}'
        found.append(_trial(f"shared, α = {alpha}", "buffer", "4 MB shared by all ports.", ("switch.buffer", text)))
    return found


def _thresholds(scenario: Scenario, transport: dict[str, Any], peak_bytes: float) -> list[dict[str, Any]]:
    """Return thresholds; where senders do not react to marks, DCTCP comes with them."""
    if transport["kind"] != "tcp":
        return []
    ecn = bool(transport["ecn"])
    more = () if ecn else (("transport.congestion_control", '"dctcp"'),)
    name = "" if ecn else "DCTCP, "
    room = buffer_bytes(scenario) or max(_LEAST_K * 2, round(peak_bytes))
    sizes = sorted({max(_LEAST_K, _round(room / part)) for part in _PARTS})
    found = []
    for k in sizes:
        text = f'{{ kind = "threshold", k = "{k}B" }}'
        found.append(_trial(f"{name}K = {show.size(k)}", "threshold", "Step marking.", ("switch.marking", text), *more))
    low, high = sizes[0], sizes[-1]
    red = f'{{ kind = "red", min = "{low}B", max = "{high}B", max_p = 0.1, weight = 1.0, hard_drop = false }}'
    about = f"Marks from {show.size(low)} on, one in ten at {show.size(high)} (WRED of one colour)."
    found.append(_trial(f"{name}RED", "RED", about, ("switch.marking", red), *more))
    slope = f'{{ kind = "s_ecn", k = "{sizes[len(sizes) // 2]}B" }}'
    found.append(_trial(f"{name}S-ECN", "S-ECN", "Marks by the slope of the queue.", ("switch.marking", slope), *more))
    return found


def _hosts(transport: dict[str, Any]) -> list[dict[str, Any]]:
    window = transport.get("initial_window") or 10
    found = [
        _trial(f"first window {own}", "first window", "Segments that a flow begins with.", ("transport.initial_window", str(own)))
        for own in _WINDOWS
        if own < window
    ]
    timer = period(str(transport["rto_min"])) or 0
    for text in _TIMERS:
        own = period(text) or 0
        if own < timer:
            # An ACK that is delayed for longer than the timeout would let it fire for nothing.
            delayed = min(period(str(transport["delayed_ack_timeout"])) or own, own // 2)
            more = (("transport.rto_initial", f'"{text}"'), ("transport.delayed_ack_timeout", f'"{delayed // 10**6}us"'))
            about = "Shortest timeout, of new connections too; ACKs are delayed for half of it at most."
            found.append(_trial(f"RTO_min {text}", "timer", about, ("transport.rto_min", f'"{text}"'), *more))
    found.append(_trial("pacing", "pacing", "Packets spread over the round trip.", ("transport.pacing", '"fq"')))
    return found
