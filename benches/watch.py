"""How many values a second a watch can take: one switch of 512 ports, three counters each 100 µs are 15.4 million.

    .venv/bin/python benches/watch.py [SECONDS]

What one thread of the core takes, by processor time: samples of a queue with frames and marks, one each 100 µs at each port, 1 % and
10 % of the time in bursts of 1 ms. As an Arrow stream (a batch for each 5 ms), and as CSV.
"""

from __future__ import annotations

import io
import json
import sys
import time

import numpy as np
import polars as pl

from fanin import _core

PORTS = 512
STEP_NS = 100_000
VALUES = 3
CHUNK = 1 << 20
GOAL = PORTS * VALUES * 10_000


def switch(seconds: float, share: float) -> pl.DataFrame:
    """Return the samples of a switch, in order of time, of which a share is in bursts."""
    steps = round(seconds * 1e9 / STEP_NS)
    draw = np.random.default_rng(1)
    time_ns = np.repeat(np.arange(steps) * STEP_NS, PORTS)
    # Bursts of 10 samples, at other times at each port.
    period = round(10 / share)
    phase = (np.arange(steps)[:, None] + draw.integers(0, period, PORTS)[None, :]) % period
    queue = np.where(phase < 10, 20_000 * (1 + np.minimum(phase, 9 - phase)), draw.integers(0, 3_000, (steps, PORTS)))
    ports = [f"Ethernet{1 + port // 4}/{1 + port % 4}" for port in range(PORTS)]
    return pl.DataFrame(
        {
            "time_ns": time_ns,
            "port": pl.Series(np.tile(ports, steps), dtype=pl.Enum(ports)),
            "queue_bytes": queue.reshape(-1).astype(np.uint32),
            "frame_bytes": np.full(time_ns.size, 1500, np.uint32),
            "marked": queue.reshape(-1) > 60_000,
        }
    )


def arrow(frame: pl.DataFrame) -> bytes:
    """Return it as a stream of Arrow, a batch for each 5 ms."""
    sink = io.BytesIO()
    parts = list(frame.iter_slices(50 * PORTS))
    pl.concat(parts, rechunk=False).write_ipc_stream(sink, compat_level=pl.CompatLevel.oldest())
    return sink.getvalue()


def measured(data: bytes) -> tuple[float, float, dict[str, object]]:
    """Return the processor time and the wall time that a watch takes for a stream, and its report."""
    settings = {"paths": ["switch"], "rate": "100Gbps", "above": "50KB", "detailed": 20}
    live = _core.Live("switch", json.dumps(settings), None, "1s", "3600s")
    cpu, wall = time.process_time(), time.perf_counter()
    for at in range(0, len(data), CHUNK):
        live.push(data[at : at + CHUNK])
        if at // CHUNK % 16 == 0:
            live.settle()
            live.take()
    live.end()
    live.take()
    return time.process_time() - cpu, time.perf_counter() - wall, json.loads(live.report())


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
    for share in (0.01, 0.1):
        frame = switch(seconds, share)
        measure(f"{share:.0%} in bursts", frame, seconds)


def measure(what: str, frame: pl.DataFrame, seconds: float) -> None:
    """Print what a watch takes of a switch, as text and as Arrow."""
    for name, data in {"CSV": frame.write_csv().encode(), "Arrow": arrow(frame)}.items():
        cpu, _, report = measured(data)
        ports = report["ports"]
        assert isinstance(ports, list)
        records, bursts = (sum(port[key] for port in ports) for key in ("records", "bursts"))
        assert records == len(frame), (records, len(frame), report["problems"])
        values = VALUES * len(frame) / cpu
        print(
            f"{what}, {name}: {len(data) / len(frame):.1f} B by sample, {bursts:,} bursts, {cpu:.2f} s of one core for {seconds:g} s of a switch: "
            f"{values / 1e6:.1f} M values a second, {values / GOAL:.0%} of {GOAL / 1e6:.1f} M"
        )


if __name__ == "__main__":
    main()
