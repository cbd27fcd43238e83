"""A fan-in fitted to a queue of which nobody knows the senders: draws of senders, sizes, windows and timers that give it back."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from fanin.remedy.bench import Asked, Bench, Looked
from fanin.remedy.model import replaced, watched
from fanin.remedy.seen import Seen
from fanin.scenario import Scenario

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SHAPE: Final = 0.2
"""Root of the mean square distance of two queues, as a share of the longest, up to which one gives back the other."""

_FIRST: Final = 120
_ROUNDS: Final = 2
_KEPT: Final = 12
_CHILDREN: Final = 5
"""Draws of the first round, rounds after it, and how many of the nearest are kept for a round, each with some like it."""

_MOST_SENDERS: Final = 128
_SEGMENT: Final = 1448
_WIRE: Final = 1538


@dataclass(frozen=True)
class Series:
    """Samples of a queue, and what is known of the port.

    Attributes
    ----------
    times, queue : array
        Moments [ps] and the queue at them [bytes].
    seen : Seen
        What they show.
    wire_bps : float
        Speed of the port.
    rtt_ps : tuple of int
        Shortest and longest round trip that is thought possible.
    buffer_bytes : int or None
        What may wait at the port; None where it is not known.
    known : mapping
        Settings of the scenario that are known, by path.
    """

    times: NDArray[np.int64]
    queue: NDArray[np.float64]
    seen: Seen
    wire_bps: float
    rtt_ps: tuple[int, int]
    buffer_bytes: int | None
    known: Mapping[str, Any]

    @property
    def payload(self) -> float:
        """Payload that the port sent while its queue was not empty."""
        every = float(self.times[1] - self.times[0]) if len(self.times) > 1 else 0.0
        busy = float((self.queue > 0).sum()) * every
        return max(float(_SEGMENT), busy * self.wire_bps / 8e12 * _SEGMENT / _WIRE)


@dataclass(frozen=True)
class _Draw:
    """A fan-in: how many send how much, from when on, and how."""

    senders: int
    size: int
    window: int
    spread_ps: int
    rtt_ps: int
    control: str
    k: int
    rto: str
    buffer: int

    def scenario(self, wire_bps: float, known: Mapping[str, Any], stream: int) -> Scenario:
        """Return it as a scenario; `stream` draws the starts."""
        draws = random.Random(f"starts {stream}")  # noqa: S311 (draws of a simulation, no secret)
        host = min(10**6, self.rtt_ps // 20)
        starts = sorted(draws.randrange(self.spread_ps + 1) for _ in range(self.senders))
        starts = [start - starts[0] for start in starts]
        marking = {"marking": {"kind": "threshold", "k": f"{self.k}B"}} if self.control == "dctcp" else {}
        document = {
            "name": "fitted-fan-in",
            "topology": {
                "kind": "dumbbell",
                "left": self.senders,
                "right": 1,
                "host_link": {"rate": f"{round(10 * wire_bps / 1e3)}Kbps", "delay": f"{host}ps"},
                "bottleneck": {"rate": f"{round(wire_bps / 1e3)}Kbps", "delay": f"{max(1, self.rtt_ps // 2 - 2 * host)}ps"},
            },
            "switch": {"buffer": {"kind": "static", "per_port": f"{self.buffer}B"}, **marking},
            "transport": {
                "kind": "tcp",
                "profile": "linux",
                "congestion_control": self.control,
                "initial_window": self.window,
                "handshake": False,
                "rto_min": self.rto,
                "rto_initial": self.rto,
            },
            "traffic": [
                {
                    "name": "arrivals",
                    "kind": "flows",
                    "flows": [
                        {"src": f"h{n}", "dst": f"h{self.senders}", "size": f"{self.size}B", "start": f"{start}ps"}
                        for n, start in enumerate(starts)
                    ],
                }
            ],
        }
        return replaced(Scenario(document), known)


def _first(series: Series, draws: random.Random) -> _Draw:
    """Return a draw of all that is thought possible."""

    def between(low: float, high: float) -> float:
        return math.exp(draws.uniform(math.log(low), math.log(high)))

    payload = series.payload * between(0.9, 1.3)
    most = max(1, min(_MOST_SENDERS, int(payload / _SEGMENT)))
    senders = max(1, round(between(1, most)))
    rtt = round(between(*series.rtt_ps))
    peak = series.seen.peak_bytes or 1.0
    silent = series.seen.silent_ps or 0
    timers = ["200ms"] if silent > 150 * 10**9 else ["200ms", "1ms", "10ms", "50ms"]
    dropped = series.seen.dropped
    room = series.buffer_bytes or (round(peak * between(1, 1.1)) if dropped else round(peak * between(1.5, 8)))
    return _Draw(
        senders,
        max(_SEGMENT, round(payload / senders)),
        draws.choice((2, 4, 10, 10, 20)),
        round(draws.choice((0.0, 0.1, 1.0, 3.0)) * rtt * draws.random()),
        rtt,
        draws.choice(("newreno", "cubic", "dctcp") if "transport.congestion_control" not in series.known else ("newreno",)),
        max(4554, round(between(max(4554.0, peak / 8), max(4555.0, peak)))),
        draws.choice(timers),
        max(3036, room),
    )


def _like(series: Series, own: _Draw, draws: random.Random) -> _Draw:
    """Return a draw near another one."""

    def near(value: float, by: float) -> float:
        return value * math.exp(draws.gauss(0, by))

    senders = max(1, min(_MOST_SENDERS, round(near(own.senders, 0.15))))
    payload = near(own.senders * own.size, 0.04)
    rtt = min(max(round(near(own.rtt_ps, 0.1)), series.rtt_ps[0]), series.rtt_ps[1])
    room = own.buffer if series.buffer_bytes else max(3036, round(near(own.buffer, 0.05)))
    return replace(
        own,
        senders=senders,
        size=max(_SEGMENT, round(payload / senders)),
        window=own.window if draws.random() < 0.8 else draws.choice((2, 4, 10, 20)),
        spread_ps=round(near(own.spread_ps, 0.3)),
        rtt_ps=rtt,
        k=max(4554, round(near(own.k, 0.1))),
        buffer=room,
    )


def _shape(series: Series, looked: Looked) -> float:
    """Return how far two queues are apart, both from their first sample that is not empty on, as a share of the longest."""
    import numpy as np

    assert looked.queue is not None  # noqa: S101 (views with samples have it)
    own, its = (_begun(queue) for queue in (series.queue, looked.queue[1]))
    length = max(len(own), len(its))
    padded = [np.pad(queue, (0, length - len(queue))) for queue in (own, its)]
    # Silences of timeouts, where both are empty, tell nothing.
    busy = (padded[0] > 0) | (padded[1] > 0)
    gaps = (padded[0] - padded[1])[busy]
    return float(np.sqrt((gaps**2).mean()) / max(float(own.max(initial=0.0)), 1.0)) if len(gaps) else math.inf


def _begun(queue: NDArray[np.float64]) -> NDArray[np.float64]:
    import numpy as np

    there = np.flatnonzero(queue > 0)
    return queue[there[0] : there[-1] + 1] if len(there) else queue[:0]


def distance(series: Series, looked: Looked, slack_ps: int) -> float:
    """Return how far a run is from the samples; 1 is at the bounds."""
    if looked.seen is None:
        return math.inf
    return max(series.seen.distance(looked.seen, slack_ps), _shape(series, looked) / SHAPE)


def fit(bench: Bench, series: Series, wanted: int, seed: int) -> tuple[list[Scenario], list[tuple[float, Scenario, Looked]]]:
    """Return fan-ins that give back the samples, at most so many, and all that were tried with how far they are off, nearest first.

    Draws of all that is thought possible, then draws near the nearest of them: the nearest of all rounds within the bounds stay.
    """
    draws = random.Random(f"fit {seed}")  # noqa: S311 (draws of a simulation, no secret)
    tried: list[tuple[float, _Draw, Scenario, Looked]] = []
    for number in range(_ROUNDS + 1):
        if number == 0:
            asked = [_first(series, draws) for _ in range(_FIRST)]
        else:
            asked = [_like(series, own, draws) for _, own, _, _ in tried[:_KEPT] for _ in range(_CHILDREN)]
        made = {
            f"fan-in {number}.{at}": (own, own.scenario(series.wire_bps, series.known, 1000 * number + at))
            for at, own in enumerate(dict.fromkeys(asked))
        }
        runs = {label: Asked(watched(scenario, bench.port, bench.view), 1, draws.random()) for label, (_, scenario) in made.items()}
        looked = bench.run(runs, f"fits a fan-in, round {number + 1} of {_ROUNDS + 1}", look=True)
        for label, found in looked.items():
            if not found.error:
                tried.append((distance(series, found, bench.view.slack_ps), *made[label], replace(found, queue=None)))
        tried.sort(key=lambda entry: entry[0])
    good = [scenario for far, _, scenario, _ in tried if far <= 1]
    # Not the nearest alone, which are children of one: those within the bounds are equally good.
    if len(good) > wanted:
        good = draws.sample(good, wanted)
    return good, [(far, scenario, found) for far, _, scenario, found in tried]
