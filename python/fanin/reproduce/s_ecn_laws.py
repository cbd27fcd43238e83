"""S-ECN §III-C: the three laws, on random networks and for several TCP variants."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from fanin.reproduce import Context, Findings, Job, Row, figure
from fanin.reproduce._phases import FULL_FRAME, FULL_WIRE, SLOPE_CV, Judged, judge
from fanin.results import Result
from fanin.scenario import Scenario

if TYPE_CHECKING:
    from plotly.graph_objects import Figure as Plot

VARIANTS: Final[dict[str, dict[str, Any]]] = {
    "NewReno": {"congestion_control": "newreno", "sack": False},
    "Reno": {"congestion_control": "reno"},
    "SACK": {"congestion_control": "newreno", "sack": True},
    "CUBIC": {"congestion_control": "cubic"},
}
"""The variants of the paper's footnote 1, as keys of ``transport``."""

RATES_GBPS: Final = (1, 10, 40, 100)
ROUNDS: Final = 7
"""A run ends when the port has served so many first rounds: rounds 1, 2 and 3."""


@dataclass(frozen=True)
class Network:
    """A random network within the laws' assumptions.

    Attributes
    ----------
    scenario : Scenario
        The run.
    port : str
        The watched port.
    facts : dict
        What was drawn: port rate, flows, first window, round trip, buffer, background.
    """

    scenario: Scenario
    port: str
    facts: dict[str, Any]


@dataclass(frozen=True)
class _Draw:
    """What all three laws draw: fan-in degree, rate, delays, first window."""

    rng: random.Random
    gbps: int
    flows: int
    delay_us: float
    window: int

    def packet_us(self, packets: float = 1) -> float:
        """Time of full segments on the wire [µs]."""
        return packets * FULL_WIRE * 8 / (self.gbps * 1000)

    def rtt_us(self, links: int) -> float:
        """Round trip of a full segment over so many links and of its ACK, without queues [µs]."""
        return 2 * links * self.delay_us + links * self.packet_us(1 + 84 / FULL_WIRE)

    @property
    def first_round(self) -> int:
        """Packets of the first round."""
        return self.flows * self.window

    def buffer(self, standing: float) -> str:
        """Return a buffer that holds the first round, what stands there before, and at least the second round."""
        return f"{round(self.rng.uniform(3, 8) * self.first_round + 2 * standing) * FULL_FRAME}B"


def _draw(stream: str) -> _Draw:
    """Draw until the first round fills the pipe: below that the port is idle in each round, and there is no queue to speak of."""
    rng = random.Random(stream)  # noqa: S311 (the same networks every time)
    while True:
        gbps = rng.choice(RATES_GBPS)
        delay_us = round(rng.uniform(0.5, 20 if gbps == 1 else 5), 1)
        drawn = _Draw(rng, gbps, rng.randint(6, 60), delay_us, rng.choice((2, 3, 10)))
        if drawn.first_round > drawn.rtt_us(2) / drawn.packet_us():
            return drawn


def _tcp(variant: str, **more: Any) -> dict[str, Any]:
    """No delayed ACKs, slow start by one segment per ACK, clocks as fine as these round trips need."""
    clocks = {"rtt_sampling": "timestamps", "timestamp_tick": "1us", "rto_min": "200ms", "rto_initial": "200ms"}
    return {"kind": "tcp", **VARIANTS[variant], "handshake": False, "ack_every": 1, **clocks, **more}


def _us(time_us: float) -> str:
    return f"{round(time_us * 1000)}ns"


def _fan_in(receiver: str, senders: str, *, start_us: float, jitter_us: float) -> dict[str, Any]:
    entry = {"kind": "incast", "name": "fan-in", "receiver": receiver, "senders": [senders], "size": "2MB", "request": "50B"}
    return {**entry, "start": _us(start_us), "jitter": _us(jitter_us)}


def _background(variant: str, flows: int, packets: float) -> tuple[dict[str, Any], int]:
    """Return a transport in congestion avoidance from its first packet on, with so many packets in all flows' windows.

    The window of a single flow stays: what is above the pipe would stand in its own NIC, a hidden buffer (`s_ecn_limits`).
    """
    window = max(4, math.ceil(packets / flows))
    bounded = {"receive_window": {"kind": "fixed", "size": f"{window * 1448}B"}} if flows == 1 else {}
    return _tcp(variant, initial_window=window, initial_ssthresh=f"{window * 1448}B", **bounded), window * flows


def law1(seed: int, variant: str) -> Network:
    """No background: one switch, a random number of hosts answers one within a round trip."""
    drawn = _draw(f"law 1, {seed}")
    rng, n, rtt_us = drawn.rng, drawn.flows, drawn.rtt_us(2)
    port = f"switch0->h{n}"
    scenario = Scenario(
        name="s-ecn-law1",
        duration=_us(2 * rtt_us + drawn.packet_us(ROUNDS * drawn.first_round)),
        topology={"kind": "single_switch", "hosts": n + 1, "link": {"rate": f"{drawn.gbps}Gbps", "delay": f"{drawn.delay_us}us"}},
        switch={"buffer": {"kind": "static", "per_port": drawn.buffer(0)}},
        transport=_tcp(variant, initial_window=drawn.window),
        traffic=[_fan_in(f"h{n}", f"h0..h{n - 1}", start_us=0, jitter_us=rng.uniform(0, rtt_us))],
        telemetry={"queues": [port]},
    )
    return Network(scenario, port, _facts(drawn, rtt_us))


def law2(seed: int, variant: str) -> Network:
    """Background at the same hop: as law 1, with 1 to 9 flows in congestion avoidance towards the same port.

    Several flows have a queue at the port; one flow fills the pipe and no more.
    """
    drawn = _draw(f"law 2, {seed}")
    rng, n, rtt_us = drawn.rng, drawn.flows, drawn.rtt_us(2)
    b = rng.randint(1, 9)
    pipe = rtt_us / drawn.packet_us()
    above = rng.uniform(0.1, 1.0) * drawn.first_round
    transport, standing = _background(variant, b, pipe if b == 1 else pipe + above)
    port, start_us = f"switch0->h{n + b}", 20 * drawn.packet_us(standing) + 20 * rtt_us
    scenario = Scenario(
        name="s-ecn-law2",
        duration=_us(start_us + 2 * rtt_us + drawn.packet_us(ROUNDS * drawn.first_round + 2 * standing)),
        topology={
            "kind": "single_switch",
            "hosts": n + b + 1,
            "link": {"rate": f"{drawn.gbps}Gbps", "delay": f"{drawn.delay_us}us"},
        },
        switch={"buffer": {"kind": "static", "per_port": drawn.buffer(2 * standing)}},
        transport=_tcp(variant, initial_window=drawn.window),
        transports={"background": transport},
        traffic=[
            _long_flows([f"h{n + i}" for i in range(b)], f"h{n + b}"),
            _fan_in(f"h{n + b}", f"h0..h{n - 1}", start_us=start_us, jitter_us=rng.uniform(0, rtt_us)),
        ],
        telemetry={"queues": [port]},
    )
    return Network(scenario, port, _facts(drawn, rtt_us) | {"background": b, "standing_packets": standing})


def law3(seed: int, variant: str) -> Network:
    """Background at the previous hop: flows from another switch, whose link they fill, meet the fan-in at the receiver's port."""
    drawn = _draw(f"law 3, {seed}")
    rng, n, rtt_us = drawn.rng, drawn.flows, drawn.rtt_us(2)
    b = rng.randint(2, 9)
    pipe = drawn.rtt_us(3) / drawn.packet_us()
    transport, hidden = _background(variant, b, pipe + rng.uniform(0.5, 4.0) * drawn.first_round)
    link = {"rate": f"{drawn.gbps}Gbps", "delay": f"{drawn.delay_us}us"}
    port, start_us = f"right->h{b + n}", 20 * drawn.packet_us(hidden) + 20 * rtt_us
    scenario = Scenario(
        name="s-ecn-law3",
        duration=_us(start_us + 2 * rtt_us + drawn.packet_us(ROUNDS * drawn.first_round)),
        topology={"kind": "dumbbell", "left": b, "right": n + 1, "host_link": link, "bottleneck": link},
        switch={"buffer": {"kind": "static", "per_port": drawn.buffer(2 * hidden)}},
        transport=_tcp(variant, initial_window=drawn.window),
        transports={"background": transport},
        traffic=[
            _long_flows([f"h{i}" for i in range(b)], f"h{b + n}"),
            # a is the rate of the first round alone: it is over before the second begins.
            _fan_in(f"h{b + n}", f"h{b}..h{b + n - 1}", start_us=start_us, jitter_us=rng.uniform(0, 0.5 * rtt_us)),
        ],
        telemetry={"queues": [port]},
    )
    return Network(scenario, port, _facts(drawn, rtt_us) | {"background": b, "standing_packets": hidden})


def _long_flows(sources: list[str], to: str) -> dict[str, Any]:
    flows = [{"src": source, "dst": to, "size": "100GB"} for source in sources]
    return {"kind": "flows", "name": "background", "transport": "background", "flows": flows}


def _facts(drawn: _Draw, rtt_us: float) -> dict[str, Any]:
    return {"gbps": drawn.gbps, "flows": drawn.flows, "first_window": drawn.window, "rtt_us": rtt_us}


LAWS: Final[dict[int, Callable[[int, str], Network]]] = {1: law1, 2: law2, 3: law3}


def verdict(result: Result, job: Job) -> Judged:
    """Reduce a run to its phase 2."""
    # Law 1 speaks of all of phase 2; with background the share of fan-in grows from round to round, and phase 2 is the second.
    rounds = None if job.key["law"] == 1 else 2
    return judge(result, str(job.key["port"]), fan_in="fan-in", window=int(job.key["first_window"]), rounds=rounds)


@figure("s-ecn/laws", title="The three laws on random networks, for NewReno, Reno, SACK and CUBIC", seeds=60, short=3, seconds=300)
def laws(context: Context) -> Findings:
    """§III-C: slope of phase 2 without background, with background at the same hop, and with background at the previous hop."""
    jobs = [
        Job(network.scenario, seed, {"law": law, "variant": variant, "port": network.port, **network.facts})
        for law, draw in LAWS.items()
        for variant in VARIANTS
        for seed in context.seeds
        for network in [draw(seed, variant)]
    ]
    found = context.runs(jobs, verdict)
    table = pl.DataFrame(
        {
            **{"background": 0, "standing_packets": 0},
            **{name: value for name, value in job.key.items() if name != "port"},
            "seed": job.seed,
            "slope": judged.slope,
            "arrival": judged.arrival,
            "bound": judged.bound,
        }
        for job, judged in zip(jobs, found, strict=True)
    )
    rows = [row for variant in VARIANTS for row in _rows(variant, table.filter(pl.col("variant") == variant))]
    return Findings(rows=rows, plots={"laws": _plot(table)}, data={"laws": table})


def _rows(variant: str, table: pl.DataFrame) -> list[Row]:
    def extreme(law: int, value: pl.Expr) -> float:
        largest = table.filter(pl.col("law") == law).select(value.max()).item()
        return float(largest) if isinstance(largest, int | float) else float("nan")

    slope, over = pl.col("slope"), pl.col("slope") / pl.col("bound")
    first = table.filter(pl.col("law") == 1)["slope"].to_list()
    mean = fmean(first)
    spread = pstdev(first) / mean
    # The other ends of the laws' bounds: networks that do not differ would have no spread, and the largest of many random ones
    # comes near what the law says, since a is many times R in some of them.
    near = 1 - SLOPE_CV
    return [
        Row(name=f"{variant}, law 1: mean slope", paper=1.005, fanin=mean, low=near, high=1 + SLOPE_CV, unit="R"),
        Row(name=f"{variant}, law 1: coefficient of variation", paper=SLOPE_CV, fanin=spread, low=0.0005, high=SLOPE_CV),
        Row(name=f"{variant}, law 2: largest slope", paper="< R", fanin=extreme(2, slope), low=0.8, high=1, unit="R"),
        # Not in the paper: only fan-in's ACKs, a/(a + R) of all, make the queue grow.
        Row(name=f"{variant}, law 2: largest over aR/(a + R)", paper=None, fanin=extreme(2, 2 * over), low=near, high=1 + SLOPE_CV),
        Row(
            name=f"{variant}, law 3: largest slope over 2aR/(a + R)",
            paper="≤ 1",
            fanin=extreme(3, over),
            low=near,
            high=1 + SLOPE_CV,
            note="a is a mean over a first round that may be 16 to 24 packets, where one packet more or less is 4 to 6 %",
        ),
        Row(name=f"{variant}, law 3: largest slope", paper="≤ 2 R", fanin=extreme(3, slope), low=1.6, high=2, unit="R"),
    ]


def _plot(table: pl.DataFrame) -> Plot:
    from plotly.graph_objects import Figure as Plot

    plot = Plot()
    symbols = {1: "circle", 2: "square", 3: "diamond"}
    for law, symbol in symbols.items():
        part = table.filter(pl.col("law") == law)
        plot.add_scatter(x=part["arrival"], y=part["slope"], mode="markers", marker={"symbol": symbol}, name=f"law {law}")
    a = [10 ** (exponent / 20) for exponent in range(-10, 41)]
    plot.add_scatter(x=a, y=[2 * x / (1 + x) for x in a], mode="lines", name="2aR/(a + R)")
    plot.update_xaxes(title="Arrival rate of the first round, a / R", type="log")
    plot.update_yaxes(title="Slope of phase 2 / R", rangemode="tozero")
    return plot
