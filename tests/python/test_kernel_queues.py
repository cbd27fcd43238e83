"""Queues of a real kernel (kernel/README.md): what the analysis concludes, against NumPy alone."""

from __future__ import annotations

import csv
import gzip
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fanin

FOLDER = Path(__file__).parent / "kernel"
R = 100e6
"""HTB at 100 Mb/s counts 1514 B a frame."""


class Rows:
    """The rows of a file: times [s] since the first packet with payload, queues and frames [bytes]."""

    def __init__(self, name: str) -> None:
        with gzip.open(FOLDER / f"{name}.csv.gz", "rt") as file:
            rows = list(csv.DictReader(file))
        nanoseconds = [int(row["time_ns"]) for row in rows]
        self.frame = np.array([int(row["frame_bytes"]) for row in rows])
        self.begin_ns = nanoseconds[int(np.argmax(self.frame > 128))]
        self.time = np.array([(at - self.begin_ns) / 1e9 for at in nanoseconds])
        self.queue = np.array([int(row["queue_bytes"]) for row in rows])
        self.dropped = np.array([row["dropped"] == "1" for row in rows])
        self.flow = np.array([row["flow"] for row in rows])

    def slope(self, start: float, end: float) -> float:
        """Least squares through the queue between two times [s], in bit/s."""
        inside = (self.time >= start) & (self.time <= end)
        return float(np.polyfit(self.time[inside], self.queue[inside], 1)[0]) * 8

    def moment(self, analysis: fanin.Analysis, ps: int) -> float:
        """Return a time of the analysis on the clock of the rows [s]."""
        return (analysis.origin_s * 10**9 - self.begin_ns) / 1e9 + ps / 1e12


def analyse(name: str, **settings: Any) -> tuple[Rows, fanin.Analysis, dict[str, Any]]:
    analysis = fanin.analyze(FOLDER / f"{name}.csv.gz", rate="100Mbps", overhead="0B", **settings)
    burst = analysis.burst()
    assert burst is not None
    return Rows(name), analysis, burst


def ramp(rows: Rows, start: float, end: float) -> NDArray[np.bool_]:
    return (rows.time >= start) & (rows.time <= end)


@pytest.mark.parametrize(("name", "flows", "drops"), [("reno-18x128KB-2ms", 18, 345), ("cubic-9x1MB-2ms", 9, 18)])
@pytest.mark.parametrize("settings", [{}, {"rtt": "2ms"}])
def test_one_burst_with_the_peak_and_the_drops_of_the_rows(name: str, flows: int, drops: int, settings: dict[str, str]) -> None:
    rows, analysis, burst = analyse(name, **settings)
    assert analysis.port()["bursts_found"] == 1
    assert (burst["peak_bytes"], burst["dropped_packets"]) == (rows.queue.max(), rows.dropped.sum()) == (511_732, drops)
    assert burst["flows"] == len(set(rows.flow[rows.frame > 128])) == flows
    assert rows.moment(analysis, burst["peak_ps"]) == pytest.approx(rows.time[np.argmax(rows.queue)], abs=1e-9)
    # Who stood there at the peak, from the rows alone: the last accepted packets that make the queue.
    at = int(np.argmax(rows.queue))
    accepted = np.flatnonzero(~rows.dropped[:at])[::-1]
    standing = accepted[: int(np.argmax(np.cumsum(rows.frame[accepted]) >= rows.queue[at])) + 1]
    for entry in burst["direct"]:
        own = rows.frame[standing[rows.flow[standing] == entry["name"]]].sum()
        assert entry["bytes"] == pytest.approx(own, abs=1514)


@pytest.mark.parametrize("settings", [{}, {"rtt": "2ms"}])
def test_cubic_grows_at_the_speed_of_the_port_until_hystart(settings: dict[str, str]) -> None:
    rows, analysis, burst = analyse("cubic-9x1MB-2ms", **settings)
    law = burst["law"]
    assert (law["law"], law["background"], law["holds"]) == (1, "none", True)
    phase = burst["phases"][law["phase"]]
    start, end = (rows.moment(analysis, phase[key]) for key in ("start_ps", "end_ps"))
    assert rows.slope(start, end) == pytest.approx(R, rel=0.02)
    assert law["slope_bps"] == pytest.approx(rows.slope(start, end), rel=0.02)
    # The ramp is a hundredth of the congestion, and what follows it is no ramp, without a loss.
    assert end - start < 0.015 * burst["duration_ps"] / 1e12
    after = rows.slope(end, end + 2 * (end - start))
    assert after < 0.6 * R
    assert not rows.dropped[ramp(rows, 0, end + 20 * (end - start))].any()
    assert "slow start was left by HyStart" in law["words"]
    assert "Law 1 (slope = port speed) holds" in law["words"]


@pytest.mark.parametrize("settings", [{}, {"rtt": "2ms"}])
def test_reno_grows_at_the_speed_of_the_port_until_the_buffer_is_full(settings: dict[str, str]) -> None:
    rows, analysis, burst = analyse("reno-18x128KB-2ms", **settings)
    law = burst["law"]
    # 18 probes for losses make a step of 10 KB within the ramp, so the interval is wide.
    assert (law["law"], law["background"], law["holds"]) == (1, "none", None)
    assert law["low_bps"] < R < law["high_bps"]
    phase = burst["phases"][law["phase"]]
    start, end = (rows.moment(analysis, phase[key]) for key in ("start_ps", "end_ps"))
    assert law["slope_bps"] == pytest.approx(rows.slope(start, end), rel=0.03)
    assert rows.slope(0.0026, 0.0105) == pytest.approx(R, rel=0.02)
    assert end == pytest.approx(rows.time[np.argmax(rows.dropped)], abs=0.0005)
    assert "HyStart" not in law["words"]
    assert "345 of " in law["words"]


@pytest.mark.parametrize("rtt", ["1.5ms", "2ms", "2.2ms", "2.5ms", "3.5ms"])
@pytest.mark.parametrize("tag", [0, 4])
@pytest.mark.parametrize("buffer", [None, "512KB"])
def test_the_verdict_is_of_the_slow_start_after_the_first_windows(rtt: str, tag: int, buffer: str | None, tmp_path: Path) -> None:
    """Whatever the round trip is taken for, with VLAN tags, with the kernel's queue and with one that is estimated."""
    rows = Rows("cubic-9x1MB-2ms")
    with gzip.open(FOLDER / "cubic-9x1MB-2ms.csv.gz", "rt") as file:
        table = list(csv.DictReader(file))
    keys = [key for key in table[0] if buffer is None or key not in ("queue_bytes", "dropped")]
    for row in table:
        row["frame_bytes"] = str(int(row["frame_bytes"]) + tag)
        row["queue_bytes"] = str(int(row["queue_bytes"]) * (1514 + tag) // 1514)
    with (tmp_path / "trace.csv").open("w") as file:
        writer = csv.DictWriter(file, keys, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(table)
    # The port sends as many frames as it did.
    rate = f"{R * (1514 + tag) / 1514 / 1e6:.6f}Mbps"
    analysis = fanin.analyze(tmp_path / "trace.csv", rate=rate, overhead="0B", rtt=rtt, buffer=buffer)
    burst = analysis.burst()
    assert burst is not None
    law = burst["law"]
    assert (law["law"], law["holds"], law["phase"], law["last_phase"]) == (1, True, 2, 2), law["words"]
    # The first windows: ten packets of each of nine flows, as far as they come at once.
    first = {flow: rows.time[(rows.flow == flow) & (rows.frame > 128)] for flow in set(rows.flow[rows.frame > 128])}
    over = max(float(times[:9].max()) for times in first.values())
    phase = burst["phases"][2]
    assert rows.moment(analysis, phase["start_ps"]) > over
    assert rows.slope(*(rows.moment(analysis, phase[key]) for key in ("start_ps", "end_ps"))) == pytest.approx(R, rel=0.03)
    said = re.search(r"\(phase 3; the first windows had come by ([\d.]+) (us|ms)\)", law["words"])
    assert said is not None, law["words"]
    assert float(said[1]) * {"us": 1e-3, "ms": 1}[said[2]] < 2


def test_by_the_arrival_rate_there_are_few_bursts_and_the_window_is_said() -> None:
    analysis = fanin.analyze(FOLDER / "cubic-9x1MB-2ms.csv.gz", rate="100Mbps", overhead="0B", by="rate")
    port = analysis.port()
    assert port["detect"]["words"] == "window 2.429 ms (20 frames of 1518 B at 100 Mb/s), more than 50 % of 100 Mb/s"
    assert 1 <= port["bursts_found"] <= 5
    rows = Rows("cubic-9x1MB-2ms")
    inside = sum(burst["duration_ps"] for burst in port["bursts"]) / 1e12
    assert inside > 0.9 * (rows.time.max() - 0.0)
    fine = fanin.analyze(FOLDER / "cubic-9x1MB-2ms.csv.gz", rate="100Mbps", overhead="0B", window="25us", max_bursts=5)
    assert fine.port()["bursts_found"] > 3000
    assert any("--window 2.43ms" in note for note in fine.port()["notes"])
