"""What the numbers of seeds were tried on, and what they are elsewhere: docs/statistics.md says how they were found.

On networks like those that were simulated, how many seeds a mean takes was measured, metric by metric. Elsewhere nobody knows how
often a timeout comes, so that a mean takes as many seeds as what rare runs decide, and one timeout must not be able to move it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from fanin.statistics import metrics
from fanin.statistics.intervals import RARE
from fanin.text import show

TIMEOUT_PS: Final = 10e9
"""The timeout of all runs that limits were chosen on, 10 ms: a longer one costs more."""

FLOWS: Final = 240
"""Flows that each of these runs completed, at least."""

QUERIES: Final = 10
"""Queries that each completed, at least."""

_ACCEPTED: Final[Mapping[str, tuple[str, ...]]] = {
    "topology.kind": ("leaf_spine",),
    "topology.host_link.rate": ("10Gbps",),
    "topology.uplink.rate": ("40Gbps",),
    "topology.host_link.delay": ("1us",),
    "topology.uplink.delay": ("1us",),
    "switch.architecture.kind": ("output_queued",),
    "switch.routing.kind": ("ecmp",),
    "switch.scheduling.kind": ("fifo",),
    "host.noise.kind": ("none",),
    "switch.buffer.kind": ("static",),
    "switch.buffer.per_port": ("512KB",),
    "switch.marking.kind": ("threshold",),
    "transport.kind": ("tcp",),
    "transport.congestion_control.kind": ("dctcp",),
    "traffic.kind": ("poisson", "query"),
    "traffic.sizes.kind": ("web-search",),
    "traffic.stop": ("5ms",),
    "traffic.fanout": ("20",),
    "traffic.size": ("20KB",),
}
"""Settings of all these runs, by path without the places of lists; transports with names are as `transport`."""

_BUFFER: Final = 512e3
"""The most that waited at one of their ports [bytes]."""

_AT_LIMIT: Final = 0.98
"""From this share of a buffer on it is full: what is left may be too little for one more frame."""

_QUEUES: Final = ("total.largest_queue_bytes", "queue/to_hosts.", "queue/between_switches.")
"""Addresses of queues that a port's buffer bounds."""

_NEEDED: Final = ("topology.kind", "transport.kind", "traffic.kind")
"""Paths without which nothing is known of a scenario."""

_K: Final = (20, 200)
"""Between how many packets their threshold was."""

_LOAD: Final[Mapping[str, float]] = {"poisson": 0.6, "query": 0.05}
"""The highest loads of theirs, by kind of traffic."""

_OVERSUBSCRIBED: Final = 1.25
"""The most that hosts of a leaf could send, as a multiple of what its uplinks carry."""

_WITHOUT: Final = ("switch.mechanisms.", "events.", "host.storms.")
"""Tables that were empty in all of them."""

_TIMEOUTS: Final = ("rto_min", "rto_initial", "rto_high")
"""Keys of what a timeout costs at least: TCP's, also before the first sample; that of RoCE where many packets are outstanding."""
_ACK_TIMEOUT: Final = "ack_timeout"
_ACK_TIMEOUT_PS: Final = 4.096e6
"""RoCE's exponent n, and its unit: 4.096 µs · 2ⁿ (IBTA, section 9.7.6.1.3)."""

_UNITS: Final = {**dict(show.TIME_UNITS), "us": 1e6}


@dataclass(frozen=True)
class Conditions:
    """Under which conditions runs were made, as far as the numbers of seeds depend on them.

    Attributes
    ----------
    outside : tuple of str
        What is otherwise than in the runs that limits were chosen on, a phrase each; empty if nothing is.
    timeout_ps : float
        Shortest timeout of the transports, the longest of all of them [ps]; 0 where none has any, infinite where it is not known.
    few : bool
        Whether a run completed fewer flows or queries than were tried: then even medians over them vary too much.
    port_bytes : float
        The most that can wait at a port of a switch [bytes]; infinite where that is not known.
    """

    outside: tuple[str, ...] = ()
    timeout_ps: float = TIMEOUT_PS
    few: bool = False
    port_bytes: float = math.inf

    def full(self, key: str) -> float:
        """Return from which value on a run is at the limit of a metric, for the buffer is full; infinite where it has none."""
        return _AT_LIMIT * self.port_bytes if key.startswith(_QUEUES) else math.inf

    def seeds(self, key: str) -> int | None:
        """Return with how many seeds the mean of a metric is reliable at the earliest; None: with no number that people run."""
        return self._limited(key, metrics.seeds_needed(key))

    def seeds_of_differences(self, key: str) -> int | None:
        """Return with how many seeds the mean of a metric's differences is."""
        known = metrics.of(key)
        return None if known is None else self._limited(key, known.seeds_of_differences)

    def _limited(self, key: str, needed: int | None) -> int | None:
        if needed is None or not self.outside:
            return needed
        return None if _has_no_bound(key, few=self.few) or math.isinf(self.unseen_cost(key)) else RARE

    def unseen_cost(self, key: str, flows: float = 1) -> float:
        """Return how much a run may add to a mean that no seed showed, in its unit.

        Outside of what was tried it is one timeout, of times that it makes longer. Within it is nothing: with as many seeds as they
        take, intervals hold there whatever these have not seen.

        Parameters
        ----------
        key : str
            The metric.
        flows : float
            Of how many flows it is a mean in a run, at the fewest.
        """
        column = key.rpartition(".")[2]
        if not self.outside or not column.endswith("_ps") or column == "p50_ps":
            return 0.0
        return self.timeout_ps / max(1.0, flows) if column == "mean_ps" else self.timeout_ps

    def with_counts(self, flows: Iterable[float], queries: Iterable[float] = ()) -> Conditions:
        """Return the conditions with what follows from how many flows and queries runs completed."""
        few = [
            f"a run completed {fewest:,.0f} {word}, and at least {least:,} were tried"
            for found, least, word in ((flows, FLOWS, "flows"), (queries, QUERIES, "queries"))
            if (fewest := min(found, default=math.inf)) < least
        ]
        return replace(self, outside=(*self.outside, *few), few=True) if few else self

    @property
    def note(self) -> str:
        """What is outside of what was tried and what follows from it, as a sentence; empty where nothing is."""
        if not self.outside:
            return ""
        more = f" and {len(self.outside) - 2} more" if len(self.outside) > 2 else ""
        return (
            f"runs other than those that numbers of seeds were chosen on ({'; '.join(self.outside[:2])}{more}), so each mean takes "
            f"{RARE} seeds or more, and has a tilde where timeouts that no seed showed could move it further than its interval says"
        )


TRIED: Final = Conditions(port_bytes=_BUFFER)
"""Those that limits were chosen on."""

UNKNOWN: Final = Conditions(("the scenario is not known",), math.inf)
"""Those of runs of which nothing is known."""


def _has_no_bound(key: str, *, few: bool) -> bool:
    """Return whether nobody can say what a single flow does to a mean.

    A slowdown divides a timeout by the ideal time of a flow, which may be short; of one size of flows a run may have few, and where
    it has few of all, the median is a flow of another size in each run. A 95th percentile is a timeout in some runs and none in
    others.
    """
    group, _, column = key.rpartition(".")
    if column in ("p50_ps", "slowdown_p50"):
        return few and group.startswith("fct/")
    return column.startswith("slowdown") or column == "p95_ps" or group == "fct/>=1MB"


def of(settings: Mapping[str, Any]) -> Conditions:
    """Return the conditions of a scenario that is resolved and flat, path → value."""
    if not settings:
        return UNKNOWN
    plain = [(re.sub(r"\[\d+\]", "", path), path, value) for path, value in settings.items()]
    plain = [(re.sub(r"^transports\.[^.]+\.", "transport.", short), path, value) for short, path, value in plain]
    there = {short for short, _, _ in plain}
    outside = [f"{path} is not known" for path in _NEEDED if path not in there]
    for short, path, value in plain:
        accepted = _ACCEPTED.get(short)
        if accepted is not None and str(value) not in accepted:
            outside.append(f"{path} is {value}, tried: {' and '.join(accepted)}")
        elif short.startswith(_WITHOUT):
            outside.append(f"{next(own for own in _WITHOUT if short.startswith(own))[:-1]} has entries, tried: none")
        elif short == "traffic.load" and isinstance(value, int | float):
            most = _LOAD.get(str(settings.get(path.replace(".load", ".kind"))), math.inf)  # other kinds are outside by themselves
            outside += [f"{path} is {value}, tried: up to {most}"] if value > most else []
        elif short == "switch.marking.k" and not _tried_threshold(str(value)):
            outside.append(f"{path} is {value}, tried: {_K[0]} to {_K[1]} packets")
    outside += _oversubscribed(settings)
    timeout = timeout_ps(settings)
    if timeout > TIMEOUT_PS:
        outside.append(f"a timeout takes {show.duration(round(timeout))}, tried: {show.duration(round(TIMEOUT_PS))}")
    return Conditions(tuple(dict.fromkeys(outside)), timeout, port_bytes=_port_bytes(settings))


def _port_bytes(settings: Mapping[str, Any]) -> float:
    """Return the most that can wait at a port of a switch [bytes]; infinite where ports differ or hold more than their buffer.

    Of a shared buffer of B bytes one queue alone gets α of what it leaves free, so α·B / (1 + α).
    """
    own = {key: str(settings.get(f"switch.buffer.{key}")) for key in ("kind", "per_port", "total", "reserved")}
    beside = any(path.startswith(("switch.mechanisms.", "switch.except[")) for path in settings)
    if beside or settings.get("switch.architecture.kind") != "output_queued":
        return math.inf
    cell = _bytes(str(settings.get("switch.cell")), math.nan)
    if own["kind"] == "static":
        return _bytes(own["per_port"], cell)
    alpha = settings.get("switch.buffer.alpha")
    if own["kind"] != "dynamic" or not isinstance(alpha, int | float) or own["reserved"] != "None":
        return math.inf
    return _bytes(own["total"], cell) * alpha / (1 + alpha)


def _bytes(amount: str, cell: float) -> float:
    """Return an amount of buffer in bytes; infinite of packets, whose sizes are not known."""
    found = re.fullmatch(r"([\d.]+) ?(\w+)", amount)
    size = {**dict(show.SIZE_UNITS), "cells": cell}.get(found[2], math.inf) if found else math.inf
    bytes_ = float(found[1]) * size if found else math.inf
    return math.inf if math.isnan(bytes_) else bytes_


def _oversubscribed(settings: Mapping[str, Any]) -> list[str]:
    """Return what is outside where the hosts of a leaf could send more than was tried, at the link rates that were."""
    counts = [settings.get(f"topology.{key}") for key in ("hosts_per_leaf", "spines", "links_per_pair")]
    if not all(isinstance(count, int) and count > 0 for count in counts):
        return []
    hosts, spines, links = (int(count) for count in counts if isinstance(count, int))
    share = hosts * 10 / (spines * links * 40)
    return [f"a leaf is oversubscribed {share:.3g} times, tried: up to {_OVERSUBSCRIBED}"] if share > _OVERSUBSCRIBED else []


def _tried_threshold(text: str) -> bool:
    found = re.fullmatch(r"([\d.]+) packets?", text)
    return found is not None and _K[0] <= float(found[1]) <= _K[1]


def together(found: Iterable[Conditions]) -> Conditions:
    """Return the conditions of runs that are looked at together: what is outside in any of them, and the longest timeout."""
    every = list(found)
    if not every:
        return UNKNOWN
    outside = dict.fromkeys(phrase for own in every for phrase in own.outside)
    ports = {own.port_bytes for own in every}
    return Conditions(
        tuple(outside),
        max(own.timeout_ps for own in every),
        any(own.few for own in every),
        ports.pop() if len(ports) == 1 else math.inf,
    )


def timeout_ps(settings: Mapping[str, Any]) -> float:
    """Return the shortest timeout of a scenario, the longest of all its transports [ps]; 0 where none has any."""
    exponents = [value for path, value in settings.items() if path.rpartition(".")[2] == _ACK_TIMEOUT and isinstance(value, int)]
    found = [str(value) for path, value in settings.items() if path.rpartition(".")[2] in _TIMEOUTS]
    parts = [re.fullmatch(r"([\d.]+)\s*(\D+)", text) for text in found]
    written = [float(part[1]) * _UNITS.get(part[2].strip(), 0.0) for part in parts if part]
    return max([*written, *(_ACK_TIMEOUT_PS * 2**exponent for exponent in exponents)], default=0.0)
