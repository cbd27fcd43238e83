"""A model of a measured port: scenarios that may have been in force, what is uncertain of them, and draws of that."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from fanin.remedy.seen import Seen, View
from fanin.scenario import Scenario
from fanin.scenario.network import overview

if TYPE_CHECKING:
    import polars as pl

_RATES: Final = {"bps": 1, "Kbps": 10**3, "Mbps": 10**6, "Gbps": 10**9, "Tbps": 10**12}
_LONGEST_SEED: Final = 10**6


@dataclass(frozen=True)
class Uncertain:
    """What is not known of a model, over which its ensemble is drawn.

    Attributes
    ----------
    rate : float
        What the speed of the port may be off by, a share.
    rtt : tuple of float
        Least and largest round trip, as multiples of the model's.
    jitter_ps : int
        Latest that a flow may begin after its start in the model [ps].
    """

    rate: float
    rtt: tuple[float, float]
    jitter_ps: int


@dataclass(frozen=True)
class Model:
    """A model of a measured port.

    Attributes
    ----------
    variants : tuple of Scenario
        Scenarios that may have been in force, all alike as far as is known before they are run.
    port : str
        The port in them.
    view : View
        How the trace shows the port.
    measured : Seen
        What it shows.
    uncertain : Uncertain
        What the ensemble is drawn over.
    how : str
        What the model stands on, in words.
    unsure : tuple of str
        What the trace does not say, and what was taken for it.
    arrivals : polars.DataFrame or None
        Each packet that arrived, where the trace has them all.
    wire_bps : float
        Speed of the measured port on the wire; 0 where only the model knows it.
    overhead : int
        Bytes of a measured frame on the wire beyond its length.
    """

    variants: tuple[Scenario, ...]
    port: str
    view: View
    measured: Seen
    uncertain: Uncertain
    how: str
    unsure: tuple[str, ...]
    arrivals: pl.DataFrame | None = None
    wire_bps: float = 0.0
    overhead: int = 0


@lru_cache(maxsize=512)
def _links(text: str, kind: str, base: str) -> list[Mapping[str, Any]]:
    scenario = Scenario.from_toml(text, base_dir=base) if kind == "toml" else _of_json(text, base)
    facts = overview(scenario).facts
    hosts = {number for number, node in enumerate(facts["nodes"]) if node["layer"] is None}
    return [link for link in facts["links"] if link["from"] not in hosts]


def _of_json(text: str, base: str) -> Scenario:
    import json

    return Scenario(json.loads(text), base_dir=base)


def port_of(scenario: Scenario) -> str:
    """Return the switch port of a scenario that is asked for most of its speed."""
    links = _links(*scenario.source(), str(scenario.base_dir))
    return str(max(links, key=lambda link: (link["load"], -link["rate_bps"]))["name"])


def ports(scenario: Scenario) -> list[str]:
    """Return the names of all switch ports of a scenario."""
    return [str(link["name"]) for link in _links(*scenario.source(), str(scenario.base_dir))]


def wire_bps(scenario: Scenario, port: str) -> float:
    """Return the speed of a scenario's port on the wire [b/s]."""
    if scenario.resolved["topology"]["kind"] == "dumbbell" and port == "left->right":
        return _rate(str(scenario.resolved["topology"]["bottleneck"]["rate"]))
    links = _links(*scenario.source(), str(scenario.base_dir))
    return next(float(link["rate_bps"]) for link in links if link["name"] == port)


def _rate(text: str) -> float:
    found = re.fullmatch(r"([\d.]+)\s*(\w+)", text)
    return float(found[1]) * _RATES[found[2]] if found else math.nan


def watched(scenario: Scenario, port: str, view: View) -> Scenario:
    """Return a scenario whose run leaves what a view looks at, and nothing else."""
    telemetry: dict[str, Any] = {"queues": [port]}
    if view.kind == "behind":
        one, _, other = port.partition("->")
        telemetry = {"capture": {"links": [port, f"{other}->{one}"], "snap": "128B"}}
    return scenario.replace({"telemetry": None}).replace({"telemetry": telemetry})


def told(uncertain: Uncertain, scenario: Scenario) -> list[str]:
    """Return in words what the ensemble is drawn over."""
    from fanin.text import show

    words = []
    topology = scenario.resolved["topology"]
    if topology["kind"] == "dumbbell":
        low, high = uncertain.rtt
        words.append(f"speed of the port ± {100 * uncertain.rate:.2g} %")
        words.append(f"round trip × {low:.3g} to {high:.3g}")
    if uncertain.jitter_ps and any("flows" in entry for entry in scenario.to_dict().get("traffic", [])):
        words.append(f"starts of flows up to {show.duration(uncertain.jitter_ps)} later")
    return [*words, "the seed"]


def drawn(scenario: Scenario, uncertain: Uncertain, number: int, seed: int) -> tuple[Scenario, int, float]:
    """Return a draw of a model: the scenario, its seed, and where between two samples it begins.

    The first draw, number 0, is the model as it is. Equal numbers and seeds give equal draws.
    """
    stream = random.Random(f"whatif {seed} {number}")  # noqa: S311 (draws of a simulation, no secret)
    own_seed, phase = stream.randrange(1, _LONGEST_SEED), stream.random()
    document = scenario.to_dict()
    if number == 0:
        return scenario, int(scenario.resolved["seed"]), 0.5
    topology = document.get("topology")
    if isinstance(topology, dict) and topology.get("kind") == "dumbbell":
        _stretched(topology, scenario.resolved["topology"], uncertain, stream)
    for entry in document.get("traffic", []):
        for flow in entry.get("flows", []):
            if isinstance(flow, dict) and uncertain.jitter_ps:
                start = _ps(str(flow.get("start", "0ns"))) + stream.randrange(uncertain.jitter_ps + 1)
                flow["start"] = f"{start}ps"
    return Scenario(document, base_dir=scenario.base_dir), own_seed, phase


def _stretched(topology: dict[str, Any], resolved: Mapping[str, Any], uncertain: Uncertain, stream: random.Random) -> None:
    """Draw speed and round trip of a dumbbell anew."""
    rate = _rate(str(resolved["bottleneck"]["rate"])) * (1 + stream.uniform(-uncertain.rate, uncertain.rate))
    low, high = (math.log(factor) for factor in uncertain.rtt)
    longer = math.exp(stream.uniform(low, high))
    for name in ("host_link", "bottleneck"):
        link = dict(resolved[name])
        link["delay"] = f"{max(1, round(_ps(str(link['delay'])) * longer))}ps"
        if name == "bottleneck":
            link["rate"] = f"{round(rate / 1e3)}Kbps"
        topology[name] = {key: value for key, value in link.items() if value is not None}


def _ps(text: str) -> int:
    from fanin.remedy.settings import period

    return period(text) or 0


def replaced(scenario: Scenario, changes: Mapping[str, Any] | Sequence[tuple[str, Any]]) -> Scenario:
    """Return a scenario with values changed one after the other."""
    listed = changes.items() if isinstance(changes, Mapping) else changes
    for path, value in listed:
        scenario = scenario.replace({path: value})
    return scenario
