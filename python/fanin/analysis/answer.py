"""The answer of an analysis in one sentence: who, how much, when, how many drops, how sure."""

from __future__ import annotations

from typing import Any, Final

from fanin.analysis import tables
from fanin.analysis.clock import Clock
from fanin.pages import strong
from fanin.text import show

_MOSTLY: Final = 0.5
"""Share of a queue from which on one flow is named as what filled it, or flows that the trace does not tell."""

_FULL_FRAME: Final = 1518


def highest(document: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Return the highest burst of a trace and its port; None where there is no burst."""
    ports = [port for port in document["ports"] if port["bursts"]]
    if not ports:
        return None
    port = tables.highest_first(ports)[0]
    return port, tables.largest(port, 1)[0]


def answer(document: dict[str, Any], clock: Clock | None) -> str:
    """Return one sentence with what matters most, as the page writes it (`fanin.pages.strong`)."""
    found = highest(document)
    ports = document["ports"]
    if found is None:
        return f"{_quiet(document, clock)} {_sure(document)}"
    port, burst = found
    number = sum(int(entry["bursts_found"]) for entry in ports)
    many = f"the highest of {show.count(number)} bursts at {show.many(len(ports), 'port')}" if number > 1 else "the only burst"
    if burst["peak_bytes"] is None:
        rate = burst["busiest_bps"]
        load = "" if rate is None else f", up to {strong(show.rate(rate))}"
        arrived = burst["arrived_bytes"]
        if arrived is None:
            arrived = (burst.get("counted") or {}).get("sent_bytes")
        sent, span = strong(show.size(arrived)), show.duration(burst["duration_ps"])
        what = f"sent {sent} in {span} to {strong(port['port'])}{load}"
        when = _when(burst["start_ps"], clock)
    else:
        size = ("at least " if tables.at_least(burst) else "") + _size(port, burst["peak_bytes"])
        what = f"filled {strong(port['port'])} to {strong(size)}{_wait(port, burst['peak_bytes'])}"
        when = _when(burst["peak_ps"], clock)
    return f"{_who(burst)} {what} {when} ({many}); {_drops(port, burst, ports)}. {_sure(document)}"


def _who(burst: dict[str, Any]) -> str:
    listed = burst["direct"] or burst["indirect"]
    if not listed:
        return strong(show.many(burst["flows"], "flow")) if burst["flows"] else "Packets of unknown flows"
    first = listed[0]
    unknown = int(burst["direct_unattributed_bytes" if burst["direct"] else "indirect_unattributed_bytes"])
    rest = unknown * first["share"] / first["bytes"] if first["bytes"] else 0.0
    of = ("of the queue" if burst["direct"] else "of the bytes") + (f", {rest:.1%} of no known flow" if rest >= _MOSTLY else "")
    if burst["flows"] == 1 or first["share"] >= _MOSTLY:
        others = f", with {show.many(burst['flows'] - 1, 'other')}," if burst["flows"] > 1 else ""
        return f"{strong(first['name'])} ({first['share']:.1%} {of}){others}"
    return f"{strong(show.many(burst['flows'], 'flow'))}, none with more than {first['share']:.1%} {of},"


def _estimated(port: dict[str, Any]) -> bool:
    return port["estimate"] is not None and bool(port["estimate"]["used"])


def _size(port: dict[str, Any], size: int) -> str:
    return f"{'≈ ' if _estimated(port) else ''}{show.size(size)}"


def _wait(port: dict[str, Any], size: int) -> str:
    """Return how long a queue takes to leave; nothing where the port's speed is no fact."""
    if port["rate_bps"] is None or port["rate_from"] in ("lower_bound", "unknown"):
        return ""
    wire = size * (_FULL_FRAME + port["overhead_bytes"]) / _FULL_FRAME
    return f", {show.duration(8e12 * wire / port['rate_bps'])} of waiting,"


def _when(ps: int, clock: Clock | None) -> str:
    """Return a time as a sentence has it: dates to the microsecond, since tables have all of it."""
    if clock is None:
        return f"at {tables.moment(ps)}"
    date, time = clock.text(ps)[:26].split("T")
    return f"at {time} {clock.name} on {date}"


def _drops(port: dict[str, Any], burst: dict[str, Any], ports: list[dict[str, Any]]) -> str:
    lost = burst["dropped_packets"]
    if lost is None:
        return "whether packets were dropped, the trace does not tell"
    guess = "≈ " if _estimated(port) else ""
    total, bound = tables.all_drops(ports) or (0, False)
    least = "at least " if bound else ""
    more = f", {least}{show.count(total)} in the whole trace" if total > lost else ""
    if tables.drops_at_least(burst):
        guess += "at least "
    elif not lost:
        return f"{strong('no packet of it was dropped')}{more}"
    if burst["arrived_bytes"] is None:  # samples of a queue: records are no packets
        some = f"{guess}{show.many(lost, 'packet')} {'was' if lost == 1 else 'were'} dropped"
        return f"{strong(some)}{more}"
    of = f"{guess}{show.count(lost)} of its {show.many(burst['records'], 'packet')} were dropped"
    return f"{strong(of)}{more}"


def _quiet(document: dict[str, Any], clock: Clock | None) -> str:
    ports = document["ports"]
    if not ports:
        return f"{strong('Nothing was read')}."
    known = [port for port in ports if port["peak_bytes"] is not None and port["peak_ps"] is not None]
    unknown = [port for port in ports if tables.is_unknown(port)]
    if unknown and len(unknown) == len(ports):
        return f"{strong('Whether there was a burst is unknown')} at {show.many(len(ports), 'port')}."
    text = f"{strong('No burst')} at {show.many(len(ports) - len(unknown), 'port')}"
    if unknown:
        text += f", unknown at {show.many(len(unknown), 'other')}"
    if known:
        top = max(known, key=lambda port: int(port["peak_bytes"]))
        size = strong(_size(top, top["peak_bytes"]))
        text += f": the largest queue was {size} at {strong(top['port'])} {_when(top['peak_ps'], clock)}"
    if (lost := tables.all_drops(ports)) is not None:
        count, bound = lost
        guess = ("≈ " if any(_estimated(port) for port in ports) else "") + ("at least " if bound else "")
        dropped = strong(f"{guess}{show.many(count, 'packet')}")
        if count:
            text += f"; {dropped} {'was' if count == 1 else 'were'} dropped"
        elif not bound:
            text += "; no packet was dropped"
    return f"{text}."


def _sure(document: dict[str, Any]) -> str:
    found = document["plausibility"]
    return f"Trust in this: {strong(found['trust'])} ({found['words'].rsplit(' (', 1)[0]})."
