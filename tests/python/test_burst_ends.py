"""A burst and then silence: it ends when the queue is empty, by whatever the trace knows, and idle time is no part of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fanin
from test_pair import CAPTURES, HTB, Frame, frames, identity, write

SILENCE = 2 * 10**9
"""Until the next packet [ns]."""
KEPT = 500
"""Packets before it: the incast until its queue is nearly full, without a drop."""


def captures(folder: Path) -> tuple[list[Frame], list[Frame]]:
    """Write the first packets of a real incast before and behind the port, and one more after a silence."""
    before = frames(CAPTURES / "incast-before.pcap.gz")[:KEPT]
    kept = {identity(data) for _, _, data in before}
    behind = [frame for frame in frames(CAPTURES / "incast-behind.pcap.gz") if identity(frame[2]) in kept][:KEPT]
    assert len(behind) == KEPT, "no drops yet"
    least = min(left[0] - came[0] for came, left in zip(before, behind, strict=True))
    late = bytearray(before[-1][2])
    late[18] ^= 0x55  # another IP id
    now = before[-1][0] + SILENCE
    before.append((now, before[-1][1], bytes(late)))
    behind.append((now + least, before[-1][1], bytes(late)))
    write(folder / "before.pcap", before)
    write(folder / "behind.pcap", behind)
    return before, behind


def ended(analysis: fanin.Analysis, before: list[Frame]) -> tuple[dict[str, Any], float]:
    """Return the only burst, and its end after the first packet [s]."""
    assert analysis.port()["bursts_found"] == 1
    burst = analysis.burst()
    assert burst is not None
    return burst, analysis.origin_s - before[0][0] // 10**9 + burst["end_ps"] / 1e12 - before[0][0] % 10**9 / 1e9


def check(burst: dict[str, Any], port: dict[str, Any]) -> None:
    """The last phase is the queue that drains at 100 Mb/s, and nothing is counted of the silence."""
    last = burst["phases"][-1]
    assert (last["end_ps"], last["end_bytes"]) == (burst["end_ps"], 0)
    assert last["slope_bps"] == pytest.approx(-100e6, rel=0.02)
    assert max(phase["slope_bps"] for phase in burst["phases"]) > 500e6
    assert port["burst_ps"] == burst["duration_ps"] < 60e9


@pytest.mark.parametrize("settings", [HTB, {"overhead": "0B", "fcs": False}])
def test_of_two_captures_the_last_packet_that_left_ends_it(settings: dict[str, Any], tmp_path: Path) -> None:
    before, behind = captures(tmp_path)
    analysis = fanin.analyze(tmp_path / "before.pcap", behind=tmp_path / "behind.pcap", **settings)
    burst, end = ended(analysis, before)
    waits = np.array([left[0] - came[0] for came, left in zip(before, behind, strict=True)])
    assert end == pytest.approx((before[KEPT - 1][0] - before[0][0] + waits[KEPT - 1] - waits.min()) / 1e9, abs=2e-9)
    check(burst, analysis.port())


def test_of_an_estimate_the_port_has_sent_everything_when_it_ends(tmp_path: Path) -> None:
    before, _ = captures(tmp_path)
    analysis = fanin.analyze(tmp_path / "before.pcap", buffer="512KB", **HTB)
    burst, end = ended(analysis, before)
    free = turn = 0.0
    for ns, length, _ in before[:KEPT]:
        turn = max(free, (ns - before[0][0]) / 1e9)
        free = turn + length * 8 / 100e6
    assert end == pytest.approx(turn, abs=1e-8)
    check(burst, analysis.port())


@pytest.mark.parametrize("rate", ["100Mbps", None])
def test_of_queues_that_packets_found_the_last_one_drains(rate: str | None, tmp_path: Path) -> None:
    """With the speed to the frame that is being sent; without, by what this burst shows of it."""
    before, behind = captures(tmp_path)
    came, left = (np.array([ns for ns, *_ in side]) for side in (before, behind))
    size = np.array([length for _, length, _ in before])
    left = left - (left - came).min()
    rows = ["time_ns,queue_bytes,frame_bytes,flow,dropped"]
    for i, now in enumerate(came):
        queue = size[:i][left[:i] > now].sum()
        rows.append(f"{now},{queue},{size[i]},{identity(before[i][2])[2:14].hex()},0")
    (tmp_path / "queue.csv").write_text("\n".join(rows) + "\n")
    analysis = fanin.analyze(tmp_path / "queue.csv", rate=rate, overhead="0B")
    burst, end = ended(analysis, before)
    drained = (came[KEPT - 1] - came[0]) / 1e9 + (size[: KEPT - 1][left[: KEPT - 1] > came[KEPT - 1]].sum()) * 8 / 100e6
    assert drained - 1e-6 <= end <= drained + (1514 * 8 / 100e6 if rate else 0.03 * drained)
    check(burst, analysis.port())


def test_by_the_rate_it_lasts_until_the_last_packet_has_been_sent(tmp_path: Path) -> None:
    before, _ = captures(tmp_path)
    analysis = fanin.analyze(tmp_path / "before.pcap", by="rate", **HTB)
    burst = analysis.burst()
    assert burst is not None
    ends = [analysis.origin_s * 10**9 - before[0][0] + burst[key] / 1e3 for key in ("start_ps", "end_ps")]
    assert any(ends[0] == pytest.approx(ns - before[0][0], abs=1) for ns, *_ in before), "a packet, and no edge of a window"
    assert any(end == pytest.approx(ns - before[0][0] + length * 80, abs=1) for end in ends[1:] for ns, length, _ in before)
    assert analysis.port()["burst_ps"] < (before[KEPT - 1][0] - before[0][0]) * 1000 + 5e9
