"""The tables of an analysis, as the command line, notebooks and pages show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fanin.analysis.clock import Clock
from fanin.text import show

if TYPE_CHECKING:
    import polars as pl

_COUNTERS = " (counters)"
"""End of the name of a port's counters where its packets are known, too."""


def slope(entry: dict[str, Any]) -> str:
    """Return a slope with its confidence interval, for example ``1.005 Gb/s (0.998 – 1.012)``."""
    unit, scale = show.axis_unit(show.RATE_UNITS, max(abs(entry[key]) for key in ("slope_bps", "low_bps", "high_bps")))
    # What is a billionth of the interval's ends is nothing.
    shown = [entry[key] / scale if abs(entry[key]) > 1e-6 * scale else 0.0 for key in ("slope_bps", "low_bps", "high_bps")]
    value, low, high = (f"{number:.4g}" for number in shown)
    return f"{value} {unit} ({low} – {high})"


def moment(ps: int) -> str:
    """Return a time of the trace to the nanosecond, for example ``1.000011576 s``, so that it can be found again."""
    unit, scale = show.axis_unit(show.TIME_UNITS, ps)
    return f"{ps / scale:.10g} {unit}"


def _speed(port: dict[str, Any]) -> str:
    text = show.rate(port["rate_bps"])
    if port["rate_from"] == "lower_bound" and port["rate_bps"] is not None:
        return f"≥ {text}"
    if port["rate_from"] == "estimated" and port["rate_bps"] is not None:
        return f"≈ {text}"
    return text


def _guessed(port: dict[str, Any], text: str) -> str:
    """Return a size of a queue, or a number of drops, of a port; one that is an estimate says so."""
    estimated = port["estimate"] is not None and port["estimate"]["used"]
    return f"≈ {text}" if estimated and text != show.NOTHING else text


def at_least(of: dict[str, Any]) -> bool:
    """Return whether the largest queue of a port or a burst, as counters tell it, is a lower bound."""
    return bool((of.get("counted") or {}).get("peak_at_least"))


def drops_of(of: dict[str, Any]) -> int | None:
    """Return how many packets were dropped at a port or in a burst; None where that is unknown."""
    count: int | None = of["dropped_packets"] if "dropped_packets" in of else of.get("dropped")
    return count


def drops_at_least(of: dict[str, Any]) -> bool:
    """Return whether more may have been dropped than is known: a running count began anew, or rows came late."""
    return drops_of(of) is not None and bool(of.get("dropped_at_least"))


def drops(of: dict[str, Any]) -> str:
    """Return how many packets were dropped at a port or in a burst; a lower bound says so."""
    return ("≥ " if drops_at_least(of) else "") + show.count(drops_of(of))


def all_drops(ports: list[dict[str, Any]]) -> tuple[int, bool] | None:
    """Return how many packets were dropped at all ports, and whether there may be more; None if nobody tells.

    Of a port that both packets and counters tell, the larger number counts, as a lower bound.
    """
    told: dict[str, list[int]] = {}
    for port in ports:
        if (count := drops_of(port)) is not None:
            told.setdefault(port["port"].removesuffix(_COUNTERS), []).append(count)
    least = any(map(drops_at_least, ports)) or any(min(counts) > 0 for counts in told.values() if len(counts) > 1)
    return (sum(map(max, told.values())), least) if told else None


def is_unknown(port: dict[str, Any]) -> bool:
    """Return whether it is unknown if a port had bursts: nothing is known of its time, or of that of its drops."""
    counted = port.get("counted")
    if port["bursts_found"] or not counted or not counted["unknown"]:
        return False
    return bool(port["dropped"]) or (port["peak_bytes"] is None and not counted["known_ps"])


def refuted(port: dict[str, Any]) -> bool:
    """Return whether the estimate of a port's queue is refuted by its own file, so that nothing is known of drops."""
    return port["estimate"] is not None and port["estimate"]["sure"] == "refuted"


def undropped(frame: pl.DataFrame, port: dict[str, Any]) -> pl.DataFrame:
    """Return records of a port of which none is called dropped if the estimate that says so is refuted."""
    import polars as pl

    return frame.with_columns(dropped=pl.lit(value=False)) if refuted(port) else frame


def known_span(port: Mapping[str, Any]) -> int:
    """Return the time from the first to the last record of a port of which something is known [ps]; 0 where there is none."""
    first, last = port["first_ps"], port["last_ps"]
    return 0 if first is None or last is None else max(0, int(last - first) - int(port.get("unknown_ps", 0)))


def _queue(port: dict[str, Any], of: dict[str, Any]) -> str:
    """Return the largest queue of a port, or of one of its bursts; one that is a lower bound or an estimate says so."""
    text = _guessed(port, show.size(of["peak_bytes"]))
    return f"≥ {text}" if at_least(of) and text != show.NOTHING else text


def waiting_rows(document: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return how long packets waited between two captures of one port; no rows where there are none."""
    found = (document["pair"] or {}).get("waiting")
    head = ["Packets", "Mean", "Half", "95 %", "99 %", "Longest", "Of one at"]
    if not found:
        return head, []
    spans = [show.duration(found[key]) for key in ("mean_ps", "p50_ps", "p95_ps", "p99_ps", "max_ps")]
    return head, [[show.count(found["packets"]), *spans, moment(found["max_at_ps"])]]


def waiting_flow_rows(document: dict[str, Any], limit: int) -> tuple[list[str], list[list[str]]]:
    """Return the flows that waited longest; no rows where that is unknown."""
    found = ((document["pair"] or {}).get("waiting") or {}).get("flows", [])
    rows = [
        [
            row["name"],
            show.count(row["packets"]),
            show.count(row["dropped"]),
            show.duration(row["mean_ps"]),
            show.duration(row["max_ps"]),
        ]
        for row in found[:limit]
    ]
    return ["Flow", "Packets", "Drops", "Mean wait", "Longest wait"], rows


def waiting(document: dict[str, Any], limit: int) -> list[tuple[str, tuple[list[str], list[list[str]]]]]:
    """Return the tables of waiting times that have rows, with their titles."""
    both = (("Waiting times", waiting_rows(document)), ("Flows that waited longest", waiting_flow_rows(document, limit)))
    return [(title, content) for title, content in both if content[1]]


def port_rows(document: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return one row per port."""
    head = ["Port", "Records", "Time", "Speed", "Largest queue", "Bursts", "In bursts", "Drops", "Marks"]
    rows = []
    for port in document["ports"]:
        known = port["first_ps"] is not None and port["last_ps"] is not None
        span = port["last_ps"] - port["first_ps"] if known else None
        rows.append(
            [
                port["port"],
                show.count(port["records"]),
                show.duration(span),
                _speed(port),
                _queue(port, port),
                "unknown" if is_unknown(port) else show.count(port["bursts_found"]),
                f"{port['burst_ps'] / known_span(port):.2%}" if known_span(port) and not is_unknown(port) else show.NOTHING,
                _guessed(port, drops(port)),
                show.count(port["marked"]),
            ]
        )
    return head, rows


def _height(burst: dict[str, Any]) -> tuple[float, ...]:
    """Return by what bursts are compared: peaks; where no queue is known drops, bytes that arrived or left, then the load."""
    sent = (burst.get("counted") or {}).get("sent_bytes")
    of_rate = (burst["dropped_packets"] or 0, burst["arrived_bytes"] or sent or 0, burst["busiest_bps"] or 0)
    return (0, *of_rate) if burst["peak_bytes"] is None else (burst["peak_bytes"], 0, burst["arrived_bytes"] or 0, 0)


def largest(port: dict[str, Any], limit: int) -> list[dict[str, Any]]:
    """Return the bursts of a port with the highest peaks (or the most drops and bytes, where no queue is known), highest first."""
    bursts: list[dict[str, Any]] = port["bursts"]
    return sorted(bursts, key=_height, reverse=True)[:limit]


def highest_first(ports: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return ports with bursts, that with the highest one first."""
    return sorted(ports, key=lambda port: max(_height(burst) for burst in port["bursts"]), reverse=True)


def burst_rows(port: dict[str, Any], limit: int, clock: Clock | None = None) -> tuple[list[str], list[list[str]]]:
    """Return one row per burst, the highest `limit` of them, highest first; with a clock also when each was."""
    dated = [] if clock is None else [f"Time ({clock.name})"]
    head = ["Burst", "Start", *dated, "Duration", "Peak", "Arrived", "Start to peak", "Peak to end"]
    head += ["Drops", "Marks", "Flows", "Law"]
    shown = largest(port, limit)
    notified = any(burst["notifications"] is not None for burst in shown)
    if notified:
        head.insert(len(head) - 2, "Notices")
    rows = []
    for burst in shown:
        law = burst["law"]
        verdict = {True: "holds", False: "does not hold", None: "undecided"}
        rows.append(
            [
                str(burst["index"]),
                moment(burst["start_ps"]),
                *([] if clock is None else [clock.text(burst["start_ps"])]),
                ("≥ " if burst["open"] or burst["cut"] else "") + show.duration(burst["duration_ps"]),
                _queue(port, burst),
                show.size(burst["arrived_bytes"]),
                show.rate(burst["rise_bps"]),
                show.rate(burst["fall_bps"]),
                _guessed(port, drops(burst)),
                show.count(burst["marked_packets"]),
                *([show.count(burst["notifications"])] if notified else []),
                show.count(burst["flows"]),
                f"{law['law']} {verdict[law['holds']]}" if law else show.NOTHING,
            ]
        )
    return head, rows


def _slope_of(phase: dict[str, Any]) -> str:
    """Return the slope of a phase; of a sawtooth its teeth, between the queues that were found."""
    teeth = phase["sawtooth"]
    if teeth is None:
        return slope(phase)
    low, high = show.size(teeth["low_bytes"]), show.size(teeth["high_bytes"])
    return f"sawtooth, {teeth['teeth']} times between {low} and {high}"


def phase_rows(burst: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return one row per phase of a burst."""
    rows = [
        [
            str(number),
            show.duration(phase["start_ps"] - burst["start_ps"]),
            show.duration(phase["end_ps"] - phase["start_ps"]),
            _slope_of(phase),
            show.size(phase["start_bytes"]),
            show.size(phase["end_bytes"]),
        ]
        for number, phase in enumerate(burst["phases"], 1)
    ]
    return ["Phase", "After", "Length", "Slope (interval)", "From", "To"], rows


def culprit_rows(burst: dict[str, Any], limit: int) -> tuple[list[str], list[list[str]]]:
    """Return the flows that stood in the queue at the peak of a burst, and what they sent since it was last empty, if known.

    Of a burst without a queue: the flows that arrived during it.
    """
    if not burst["direct"]:
        rows = [[entry["name"], show.size(entry["bytes"]), f"{entry['share']:.1%}"] for entry in burst["indirect"][:limit]]
        return ["Flow", "Arrived", "Share"], rows
    since = {entry["flow"]: entry["bytes"] for entry in burst["indirect"]}
    shown = burst["direct"][:limit]
    head = ["Flow", "In the queue at the peak", "Share"]
    rows = [[entry["name"], show.size(entry["bytes"]), f"{entry['share']:.1%}"] for entry in shown]
    if all(entry["flow"] in since for entry in shown):
        head.append("Since it was empty")
        rows = [[*row, show.size(since[entry["flow"]])] for row, entry in zip(rows, shown, strict=True)]
    return head, rows


def notice_lines(document: dict[str, Any]) -> list[str]:
    """Return what a trace holds of drop notifications, in sentences; empty where there are none."""
    found = document["notifications"]
    if found is None:
        return []
    first, last = found["first_ps"], found["last_ps"]
    when = "" if first is None or last is None else f", from {moment(first)} to {moment(last)}"
    where = f"{show.count(found['alone'])} in frames of their own, {show.count(found['attached'])} behind other frames"
    lines = [f"{show.count(found['frames'])} drop notifications ({where}){when}."]
    if found["read"]:
        asked = [f"{show.count(entry['count'])} {entry['name']}" for entry in found["operations"] if entry["name"]]
        of = f"{show.many(found['flows'], 'flow')}"
        again = f" {show.count(found['repeated'])} repeat an earlier one: copies that were dropped again, or frames captured twice."
        lines.append(
            f"They report {show.size(found['told_bytes'])} lost by {of}"
            + (f", and request: {', '.join(asked)}." if asked else ".")
            + (again if found["repeated"] else "")
        )
    unread = [f"{show.count(found['cut'])} cut off by the capture"] if found["cut"] else []
    unread += [f"{show.count(found['short'])} too short"] if found["short"] else []
    unread += _undefined("of type", "which is not defined", found["types"])
    if unread:
        lines.append(f"Not read: {'; '.join(unread)}.")
    odd = _undefined("for operation", "", found["operations"])
    if odd:
        lines.append(f"Operations that are not defined: {', '.join(odd)}.")
    return lines + [f"{note[0].upper()}{note[1:]}." for note in found["notes"]]


def _undefined(what: str, but: str, entries: Sequence[dict[str, Any]]) -> list[str]:
    """Return how many have values that nobody has defined: the three most frequent, and the rest together."""
    odd = sorted((entry for entry in entries if entry["name"] is None), key=lambda entry: -int(entry["count"]))
    lines = [f"{show.count(entry['count'])} {what} {entry['value']}" + (f", {but}" if but else "") for entry in odd[:3]]
    if len(odd) > 3:
        lines.append(f"{show.count(sum(entry['count'] for entry in odd[3:]))} {what} of {len(odd) - 3} other values")
    return lines


def notice_rows(document: dict[str, Any], limit: int) -> tuple[list[str], list[list[str]]]:
    """Return the flows with the most drop notifications; no rows where there are none."""
    found = document["notifications"]
    timed = found is not None and found["first_ps"] is not None
    head = ["Flow", "Notices", "Repeated", "Bytes", *(["First", "Last"] if timed else [])]
    rows = []
    for entry in found["top"][:limit] if found else []:
        known = [show.NOTHING if entry[key] is None else moment(entry[key]) for key in ("first_ps", "last_ps")]
        counts = [show.count(entry["count"]), show.count(entry["repeated"]), show.size(entry["bytes"])]
        rows.append([entry["name"], *counts, *(known if timed else [])])
    return head, rows


def transfer_lines(document: dict[str, Any]) -> list[str]:
    """Return how long transfers over TCP took and what slowed them, in sentences; empty where they were not asked for."""
    found = document["transfers"]
    if found is None:
        return []
    lines = []
    if found["transfers"]:
        took, times = found["took"], ""
        if took is not None:
            half, most, all_of_them = (show.duration(took[key]) for key in ("p50_ps", "p99_ps", "max_ps"))
            times = f", in {half} (median), {most} (99 %), {all_of_them} (longest)"
        lines.append(f"{show.many(found['transfers'], 'transfer')} over TCP, {show.count(found['complete'])} complete{times}.")
        causes = [f"{show.count(found['resent'])} of {show.many(found['segments'], 'segment')} sent again"]
        if found["timeouts"] is not None:
            causes += [show.many(found["timeouts"], "timeout"), show.many(found["probes"], "tail loss probe")]
        causes += [show.many(found["syn_resent"], "SYN") + " sent again"] if found["syn_resent"] else []
        where = f", in {show.many(found['with_timeouts'], 'transfer')}" if found["with_timeouts"] else ""
        lines.append(f"{', '.join(causes)}{where}.")
    return lines + [f"{note[0].upper()}{note[1:]}." for note in found["notes"]]


def transfer_rows(document: dict[str, Any], limit: int) -> tuple[list[str], list[list[str]]]:
    """Return the slowest transfers over TCP; no rows where they were not asked for."""
    rows = []
    for row in (document["transfers"] or {"slowest": []})["slowest"][:limit]:
        start = show.NOTHING if row["start_ps"] is None else moment(row["start_ps"])
        took = f"{'' if row['complete'] else '> '}{show.duration(row['took_ps'])}"
        rows.append([row["flow"], start, took, show.size(row["bytes"]), row["words"]])
    return ["Flow", "Start", "Took", "Bytes", "Why"], rows


def detect_lines(ports: Sequence[dict[str, Any]], limit: int) -> list[str]:
    """Return what makes a burst; and of `limit` ports without one how near it was, and which option shows it."""
    kinds: dict[str, list[str]] = {}
    for port in ports:
        kinds.setdefault(port["detect"]["words"], []).append(port["port"])
    if len(kinds) == 1:
        lines = [f"A burst: {words}." for words in kinds]
    else:
        names = {words: ", ".join(of[:3]) + (f" and {len(of) - 3} more" if len(of) > 3 else "") for words, of in kinds.items()}
        lines = [f"A burst at {names[words]}: {words}." for words in kinds]
    quiet = not any(port["bursts_found"] for port in ports)
    without = [port for port in ports if port["nothing"] and (quiet or port["nothing"]["option"])]
    return lines + [f"{port['port']}: {port['nothing']['words']}." for port in without[:limit]]


def law_line(burst: dict[str, Any]) -> str:
    """Return what a law says of a burst, or why none is claimed; empty if there is nothing to say."""
    law = burst["law"]
    words = str(law["words"] if law else burst.get("words") or "")
    return f"{words[0].upper()}{words[1:].rstrip('.')}." if words else ""


def all_notes(document: dict[str, Any]) -> list[str]:
    """Return the notes of a trace and of its ports."""
    notes = [str(note) for note in document["notes"]]
    for port in document["ports"]:
        notes += [f"{port['port']}: {note}" for note in port["notes"]]
    return notes
