"""A kernel's incast whose ramp comes before a sawtooth: phases against lines that numpy fits to the queue of the same packets."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fanin

FOLDER = Path(__file__).parents[2] / "crates" / "analysis" / "tests" / "data" / "captures"
BEFORE, BEHIND = (FOLDER / f"sawtooth16-{side}.pcap.gz" for side in ("before", "behind"))
HTB: dict[str, Any] = {"rate": "100Mbps", "overhead": "0B", "fcs": False}


def packets(path: Path) -> list[tuple[int, int, bytes]]:
    """Time [ns], length and identity (addresses, ports, IP id, sequence number) of each frame."""
    data, at, found = gzip.decompress(path.read_bytes()), 24, []
    while at < len(data):
        s, ns, kept, length = struct.unpack_from("<IIII", data, at)
        frame = data[at + 16 : at + 16 + kept]
        found.append((s * 10**9 + ns, length, frame[18:20] + frame[26:42]))
        at += 16 + kept
    return found


@pytest.fixture(scope="module")
def queue() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Arrivals [ns since the first], the bytes that each found, and whether it was dropped."""
    before, behind = packets(BEFORE), packets(BEHIND)
    left = {identity: ns for ns, _, identity in behind}
    assert len(left) == len(behind)
    least = min(left[identity] - ns for ns, _, identity in before if identity in left)
    # Departures before arrivals at the same moment.
    events = [(ns, 1, length if identity in left else 0, identity) for ns, length, identity in before]
    events += [(left[identity] - least, 0, -length, identity) for _, length, identity in before if identity in left]
    events.sort(key=lambda event: event[:2])
    held, rows = 0, []
    for ns, arrives, change, identity in events:
        if arrives:
            rows.append((ns - before[0][0], held, identity not in left))
        held += change
    came, found, dropped = np.array(rows).T
    return came, found, dropped.astype(bool)


def test_the_ramp_before_a_sawtooth_is_found(queue: tuple[np.ndarray[Any, Any], ...]) -> None:
    came, found, dropped = queue
    assert (len(came), int(dropped.sum())) == (2543, 271)
    analysis = fanin.analyze(BEFORE, behind=BEHIND, **HTB)
    burst = analysis.document["ports"][0]["bursts"][0]
    first = analysis.document["ports"][0]["first_ps"] / 1e3
    # By hand: the longest time without a packet in the burst, and from its end on to the first drop.
    inside = came[(came >= burst["start_ps"] / 1e3 - first) & (came <= burst["end_ps"] / 1e3 - first)]
    gap = int(np.argmax(np.diff(inside)[: np.searchsorted(inside, came[dropped][0])]))
    resumes, full = inside[gap + 1], came[dropped][0]
    ramp = (came >= resumes) & (came < full)
    slope = float(np.polyfit(came[ramp] * 1e-9, found[ramp] * 8.0, 1)[0])
    assert abs(slope / 1e8 - 1) < 0.01, "Linux sends at 100 Mb/s and slow start doubles"
    at = [(p["start_ps"] / 1e3 - first, p["end_ps"] / 1e3 - first) for p in burst["phases"]]
    here = [i for i, (start, end) in enumerate(at) if abs(start - resumes) < 5e5 and abs(end - full) < 5e5]
    assert len(here) == 1, (at, resumes, full)
    phase, pause = burst["phases"][here[0]], burst["phases"][here[0] - 1]
    assert abs(phase["slope_bps"] / slope - 1) < 0.02
    assert phase["low_bps"] < slope < phase["high_bps"]
    # In the pause the port sends and nothing comes.
    held = found[(came >= inside[gap]) & (came <= resumes)]
    fall = (held[-1] - held[0]) * 8e9 / (resumes - inside[gap])
    assert abs(pause["slope_bps"] / fall - 1) < 0.02
    # What is before the first drop has the same phases when nothing else is read.
    alone = fanin.analyze(BEFORE, behind=BEHIND, stop=f"{int(first + full)}ns", **HTB)
    short = alone.document["ports"][0]["bursts"][0]["phases"]
    for one, other in zip(short[:3], burst["phases"][:3], strict=True):
        assert one["low_bps"] < other["slope_bps"] < one["high_bps"]
        assert abs(one["end_ps"] - other["end_ps"]) < 5e8
    law = burst["law"]
    assert law["law"] == 1 and law["holds"] is True, law


def test_dates_stand_for_times(queue: tuple[np.ndarray[Any, Any], ...]) -> None:
    came, _, dropped = queue
    whole = fanin.analyze(BEFORE, behind=BEHIND, zone="Europe/Berlin", **HTB)
    clock = whole.clock
    assert clock is not None
    first = whole.document["ports"][0]["first_ps"]
    until = first + int(came[dropped][0]) * 1000
    shown = clock.text(until)
    assert shown.endswith("+01:00")
    by_date = fanin.analyze(BEFORE, behind=BEHIND, stop=shown, **HTB)
    by_time = fanin.analyze(BEFORE, behind=BEHIND, stop=f"{until // 1000}ns", **HTB)
    assert by_date.document["ports"] == by_time.document["ports"]
    # Without a zone it is one in the zone in which dates are shown.
    unzoned = fanin.analyze(BEFORE, behind=BEHIND, stop=shown.removesuffix("+01:00"), zone="Europe/Berlin", **HTB)
    assert unzoned.document["ports"] == by_time.document["ports"]
    with pytest.raises(fanin.TraceError, match="stop: '2026-13-01T00:00:00Z' is no date of the calendar"):
        fanin.analyze(BEFORE, stop="2026-13-01T00:00:00Z", **HTB)
    with pytest.raises(fanin.TraceError, match=r"start: 'noon' .*accepted: a time such as 1\.5ms, or a date such as"):
        fanin.analyze(BEFORE, start="noon", **HTB)
