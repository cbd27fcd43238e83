"""New scenarios from a few choices: a document that checks without warnings, as TOML with comments."""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final

from fanin import _core
from fanin.best.candidates import applied
from fanin.scenario import Check, Problem, Scenario

TOPOLOGIES: Final = {
    "single_switch": "one switch: every burst meets at one port",
    "dumbbell": "two switches and the link between them",
    "racks": "racks below one root switch, a small testbed",
    "leaf_spine": "leaves and spines, the usual fabric",
    "fat_tree": "three tiers of equal switches",
}
"""Networks to begin with."""

TRAFFIC: Final = {
    "incast": "many hosts answer one at once",
    "query": "queries at random times, each answered by many hosts at once",
    "poisson": "flows at random times, with the sizes of a data center",
    "mix": "both: background flows and queries",
    "permutation": "each host sends to one other",
    "all_reduce": "a training job: ring all-reduce over all hosts",
}
"""Traffic to begin with."""

LOADS: Final = ("query", "poisson", "mix")
"""Traffic that has a load."""


@dataclass(frozen=True)
class Choices:
    """What a new scenario is to have; None: what suits the rest.

    Attributes
    ----------
    topology, traffic : str
        Of `TOPOLOGIES` and `TRAFFIC`.
    hosts : int or None
        In all; a topology of equal parts has the next number that it can have, and `Made` says so.
    rate, delay : str
        Of the hosts' links.
    senders : int or None
        Of an incast, or of each query.
    size : str or None
        Of each of their answers; of each flow of a permutation; of a job's vector.
    load : float or None
        Share of the hosts' links.
    sizes : str or None
        Distribution of flow sizes.
    transport : str
        Congestion control, of `controls`.
    buffer : str or None
        Of each port.
    mechanism : str or None
        Of `mechanisms`.
    duration : str or None
        Traffic with a load begins flows until then; other runs stop.
    seed : int
        Root of every random choice.
    """

    topology: str = "leaf_spine"
    traffic: str = "incast"
    hosts: int | None = None
    rate: str = "10Gbps"
    delay: str = "1us"
    senders: int | None = None
    size: str | None = None
    load: float | None = None
    sizes: str | None = None
    transport: str = "dctcp"
    buffer: str | None = None
    mechanism: str | None = None
    duration: str | None = None
    seed: int = 1


@dataclass(frozen=True)
class Made:
    """A new scenario: its text, what a check says of it, and what is other than was asked for."""

    text: str
    check: Check
    notes: tuple[str, ...] = ()


def shipped() -> dict[str, str]:
    """Return the scenarios that come with Fanin: name → the first line of its comment."""
    folder = resources.files("fanin") / "starters"
    files = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".toml")), key=lambda entry: entry.name)
    return {entry.name.removesuffix(".toml"): entry.read_text(encoding="utf-8").splitlines()[0].lstrip("# ") for entry in files}


def starter(name: str) -> str:
    """Return the text of a scenario that comes with Fanin.

    Raises
    ------
    ValueError
        There is none of that name.
    """
    known = shipped()
    _one_of("--starter", name, known)
    return (resources.files("fanin") / "starters" / f"{name}.toml").read_text(encoding="utf-8")


def _one_of(option: str, value: str, known: Sequence[str] | Mapping[str, Any]) -> None:
    if value not in known:
        near = difflib.get_close_matches(value, list(known), n=1, cutoff=0.5)
        meant = f"; did you mean {near[0]}?" if near else ""
        raise ValueError(f"{option} {value}: is none of {', '.join(known)}{meant}")


_BARE: Final[dict[str, Any]] = {
    "topology": {"kind": "single_switch"},
    "traffic": [{"kind": "permutation", "size": "1MB"}],
}


@cache
def _policies() -> tuple[dict[str, str], dict[str, str]]:
    trials = _core.trials(json.dumps(_BARE), "json", ".")
    chosen = [
        {trial["kind"]: trial["doc"].split(" Source:")[0] for trial in trials if trial["part"] == part}
        for part in ("transport.congestion_control", "switch.mechanisms")
    ]
    return chosen[0], chosen[1]


def controls() -> dict[str, str]:
    """Return the congestion controls there are, each with what it is."""
    return _policies()[0]


def mechanisms() -> dict[str, str]:
    """Return the mechanisms of switches there are, each with what it is."""
    return _policies()[1]


def _bits(rate: str) -> float:
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kMGT]?)(?:bps|b/s|bit/s)\s*", rate)
    if match is None or float(match[1]) == 0:
        raise ValueError(f"--rate {rate}: is no rate; accepted: a number with a unit such as 10Gbps")
    return float(match[1]) * {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}[match[2]]


def _rate(bits: float) -> str:
    for unit, scale in (("Tbps", 1e12), ("Gbps", 1e9), ("Mbps", 1e6)):
        if bits >= scale and round(bits / scale * 1e3) == bits / scale * 1e3:
            return f"{bits / scale:g}{unit}"
    return f"{round(bits)}bps"


_PORTS: Final = (1e9, 10e9, 25e9, 40e9, 50e9, 100e9, 200e9, 400e9, 800e9, 1.6e12)
"""Rates that ports have."""


def _port(least: float) -> str:
    """Return the slowest rate of ports that is at least this; their multiple beyond."""
    return _rate(next((rate for rate in _PORTS if rate >= least), least))


_LARGEST_K: Final = 64
"""Ports of the switches of the largest fat tree."""


def _topology(want: Choices, hosts: int) -> tuple[dict[str, Any], int]:
    """Return the topology, and how many hosts it has."""
    link = {"rate": want.rate, "delay": want.delay}
    bits = _bits(want.rate)
    if want.topology == "single_switch":
        return {"kind": "single_switch", "hosts": hosts, "link": link}, hosts
    if want.topology == "dumbbell":
        left = max(1, hosts // 2)
        return {"kind": "dumbbell", "left": left, "right": hosts - left, "host_link": link, "bottleneck": link}, hosts
    if want.topology == "fat_tree":
        k = next(k for k in range(2, _LARGEST_K + 1, 2) if k**3 // 4 >= hosts)
        return {"kind": "fat_tree", "k": k, "link": link}, k**3 // 4
    each = max(1, math.ceil(hosts / 4))
    up = {"rate": _port(bits * each), "delay": want.delay}
    if want.topology == "racks":
        return {"kind": "racks", "racks": 4, "hosts_per_rack": each, "host_link": link, "root_link": up}, 4 * each
    up["rate"] = _port(bits * each / 2)
    return {"kind": "leaf_spine", "leaves": 4, "hosts_per_leaf": each, "spines": 2, "host_link": link, "uplink": up}, 4 * each


_STOP: Final = "20ms"
_LOAD: Final = 0.4


def _traffic(want: Choices, hosts: int) -> list[dict[str, Any]]:
    stop = want.duration or _STOP
    most = hosts - 1
    senders = min(want.senders or 16, most)
    if want.senders is not None and want.senders > most:
        raise ValueError(f"--senders {want.senders}: there are {hosts} hosts, and one of them receives; accepted: at most {most}")
    load = _LOAD if want.load is None else want.load
    background = {"name": "background", "kind": "poisson", "sizes": want.sizes or "web-search", "load": load, "stop": stop}
    query = {"kind": "query", "fanout": senders, "size": want.size or "20KB", "request": "50B", "load": load, "stop": stop}
    made: dict[str, list[dict[str, Any]]] = {
        "incast": [
            {
                "kind": "incast",
                "receiver": f"h{most}",
                "count": senders,
                "size": want.size or "64KB",
                "request": "50B",
                "jitter": "10us",
            }
        ],
        "query": [query],
        "poisson": [{key: value for key, value in background.items() if key != "name"}],
        "mix": [{**background, "load": round(load * 0.9, 4)}, {"name": "query", **query, "load": round(load * 0.1, 4)}],
        "permutation": [{"kind": "permutation", "size": want.size or "1MB"}],
        "all_reduce": [
            {
                "name": "training",
                "kind": "collective",
                "ranks": ["all"],
                "iterations": 2,
                "operations": [{"kind": "all_reduce", "size": want.size or "4MB", "jitter": "10us"}],
            }
        ],
    }
    return made[want.traffic]


_TCP: Final[dict[str, Any]] = {
    "handshake": False,
    "initial_window": 10,
    "rto_min": "10ms",
    "rto_initial": "10ms",
    "delayed_ack_timeout": "1ms",
}
"""Settings of connections inside a data center: open already, with timers for it rather than for the Internet."""

_FULL: Final = 1600
"""Bytes of a full frame, rounded up."""


def _buffer(want: Choices, fan_in: int) -> str:
    """Return room for what arrives in the first windows at once."""
    return want.buffer or f"{max(512, math.ceil(fan_in * _TCP['initial_window'] * _FULL / 1000))}KB"


_FOLLOWED: Final = 50_000
"""Packets up to which all flows are followed: a few megabytes, and a tenth of a second."""


def _watched(traffic: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the ports that are watched: those of receivers at which bursts are certain to meet."""
    receivers = [entry["receiver"] for entry in traffic if "receiver" in entry]
    return {"queues": [f"*->{receiver}" for receiver in receivers]} if receivers else {}


def _packets(scenario: Scenario) -> float:
    """Return how many packets of data there will be, about; infinite where that is not known."""
    if not scenario.check().ok:
        return math.inf
    entries = _core.facts(*scenario.source(), str(scenario.base_dir))["traffic"]
    return float(sum(entry["packets"] for entry in entries))


def _checked(want: Choices) -> None:
    """Refuse what is not there, and options that the other choices leave without effect; all of it at once."""
    problems = []
    for option, value, known in (
        ("--topology", want.topology, TOPOLOGIES),
        ("--traffic", want.traffic, TRAFFIC),
        ("--transport", want.transport, controls()),
        ("--mechanism", want.mechanism, mechanisms()),
    ):
        try:
            if value is not None:
                _one_of(option, value, known)
        except ValueError as error:
            problems.append(str(error))
    used: dict[str, tuple[object, tuple[str, ...]]] = {
        "--senders": (want.senders, ("incast", "query", "mix")),
        "--size": (want.size, ("incast", "query", "mix", "permutation", "all_reduce")),
        "--load": (want.load, LOADS),
        "--sizes": (want.sizes, ("poisson", "mix")),
    }
    for option, (given, kinds) in used.items():
        if given is not None and want.traffic not in kinds:
            problems.append(f"{option}: has no effect with --traffic {want.traffic}; it is for {', '.join(kinds)}")
    if want.hosts is not None and want.hosts < 3:
        problems.append(f"--hosts {want.hosts}: is too few; accepted: 3 or more")
    if want.hosts is not None and want.topology == "fat_tree" and want.hosts > _LARGEST_K**3 // 4:
        problems.append(f"--hosts {want.hosts}: is too many for a fat tree; accepted: up to {_LARGEST_K**3 // 4}")
    if problems:
        raise ValueError("\n".join(problems))


def _enough(want: Choices) -> int:
    """Return how many hosts there are where nobody says."""
    least = (want.senders or 16) + 1 if want.traffic in ("incast", "query", "mix") else 16
    return least if want.topology in ("single_switch", "dumbbell") else max(least, 32)


def hosts(want: Choices) -> int:
    """Return how many hosts a scenario with these choices has."""
    return _topology(want, want.hosts or _enough(want))[1]


def make(want: Choices) -> Made:
    """Return a scenario that has what was chosen.

    Raises
    ------
    ValueError
        A choice is not known, has no effect beside the others, or does not go with them; every one that is found.
    """
    _checked(want)
    topology, hosts = _topology(want, want.hosts or _enough(want))
    traffic = _traffic(want, hosts)
    fan_in = max(entry.get("count", entry.get("fanout", 1)) for entry in traffic)
    document: dict[str, Any] = {
        "name": f"{want.traffic}-{want.transport}",
        "description": _about(want, hosts),
        "seed": want.seed,
        "topology": topology,
        "switch": {"buffer": {"kind": "static", "per_port": _buffer(want, fan_in)}},
        "transport": {"kind": "tcp"},
        "traffic": traffic,
        "telemetry": {"sample": "10us", **_watched(traffic)},
    }
    if want.duration is not None and want.traffic not in LOADS:
        document["duration"] = want.duration
    scenario = Scenario(document)
    scenario = _with(scenario, "transport.congestion_control", want.transport, "--transport")
    if scenario.to_dict()["transport"]["kind"] == "tcp":
        scenario = scenario.replace({f"transport.{key}": value for key, value in _TCP.items()})
    if want.mechanism is not None:
        scenario = _with(scenario, "switch.mechanisms", want.mechanism, "--mechanism")
    if want.buffer is not None and scenario.to_dict()["switch"]["buffer"] == "unlimited":
        raise ValueError(
            f"--buffer {want.buffer}: has no effect: what was chosen counts its memory itself, and ports have no bounds"
        )
    if _packets(scenario) <= _FOLLOWED:
        scenario = scenario.replace({"telemetry.hosts": ["*"]})
    text = written(scenario.to_dict())
    found = Scenario.from_toml(text).check()
    if found.errors:
        raise ValueError("\n".join(_of_file(problem) for problem in found.errors))
    return Made(text, found, _rounded(want, hosts))


def _rounded(want: Choices, hosts: int) -> tuple[str, ...]:
    """Say where there are more hosts than were asked for."""
    if want.hosts in (None, hosts):
        return ()
    parts = {"racks": "4 racks of one size", "leaf_spine": "4 leaves of one size", "fat_tree": "k pods, k³/4 hosts with k even"}
    return (f"--hosts {want.hosts}: there are {hosts}, since {want.topology} means {parts[want.topology]}",)


def _of_file(problem: Problem) -> str:
    return f"the scenario would not be valid: {problem}"


def _with(scenario: Scenario, part: str, kind: str, option: str) -> Scenario:
    """Return the scenario with a policy as its authors set it."""
    found = scenario.check()
    if found.errors:
        raise ValueError("\n".join(_of_file(problem) for problem in found.errors))
    trials = _core.trials(*scenario.source(), str(scenario.base_dir))
    trial = next(trial for trial in trials if (trial["part"], trial["kind"]) == (part, kind))
    changed = applied(scenario, found, trial)
    if isinstance(changed, str):
        raise ValueError(f"{option} {kind}: does not go with the rest: {changed}")
    return changed


def _about(want: Choices, hosts: int) -> str:
    beside = f" and {want.mechanism}" if want.mechanism else ""
    return f"{want.traffic} among {hosts} hosts at {want.rate}, {want.transport}{beside}"


# -- as text -----------------------------------------------------------------------------------------------------------

_WIDTH: Final = 110
"""Columns up to which a comment stands beside its value."""

_COLUMN: Final = 48
"""Column at which comments begin, if the value is short enough."""


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_value(entry)}" for key, entry in value.items()) + " }" if value else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def _definition(schema: Mapping[str, Any], node: Mapping[str, Any], value: Any) -> Mapping[str, Any]:
    """Return the table of the schema that a value is of: by reference, and of a choice by its kind."""
    definitions = schema["$defs"]
    while True:
        if "$ref" in node:
            node = definitions[node["$ref"].rpartition("/")[2]]
        elif "oneOf" in node:
            kind = value.get("kind") if isinstance(value, Mapping) else value
            tables = [definitions[entry["$ref"].rpartition("/")[2]] for entry in node["oneOf"] if "$ref" in entry]
            same = [table for table in tables if table.get("properties", {}).get("kind", {}).get("const") == kind]
            if not same:
                return {}
            node = same[0]
        else:
            return node


_LEAST_HEAD: Final = 30
"""Characters before a colon that say something by themselves."""


def _comment(node: Mapping[str, Any], longest: int = 90) -> str:
    """Return the first sentence of what the schema says of a key, or what of it comes before its colon."""
    text = str(node.get("description", "")).split("\n")[0].split(" Source:")[0].split(" Deviation:")[0].replace("`", "")
    first = re.split(r"(?<=[^ .][^ .])\. (?=[A-Z])", text)[0].rstrip(".")
    if len(first) <= longest:
        return first
    head, _, rest = first.partition(": ")
    return head if rest and _LEAST_HEAD <= len(head) <= longest and ";" not in head else ""


def _line(key: str, value: Any, comment: str) -> list[str]:
    text = f"{key} = {_value(value)}"
    if not comment:
        return [text]
    beside = f"{text:<{_COLUMN}}# {comment}" if len(text) < _COLUMN else f"{text}  # {comment}"
    return [beside] if len(beside) <= _WIDTH else [f"# {comment}", text]


def _table(
    schema: Mapping[str, Any], node: Mapping[str, Any], name: str, value: Mapping[str, Any], *, listed: bool = False
) -> list[str]:
    table = _definition(schema, node, value)
    properties = table.get("properties", {})
    lines = [f"[[{name}]]" if listed else f"[{name}]"]
    inner: list[str] = []
    for key, entry in value.items():
        known = properties.get(key, {})
        if name == "switch" and key == "mechanisms":
            for own, settings in entry.items():
                mechanism = _definition(schema, known, entry).get("properties", {}).get(own, {})
                inner += ["", f"# {_comment(mechanism, 200)}.", *_table(schema, mechanism, f"{name}.{key}.{own}", settings)]
        elif key == "operations":
            lines += [f"{key} = [", *(f"  {_value(one)}," for one in entry), "]"]
        else:
            about = _kind_about(schema, node, value) if key == "kind" else _comment(known)
            lines += _line(key, entry, about)
    return lines + inner


def _kind_about(schema: Mapping[str, Any], node: Mapping[str, Any], value: Mapping[str, Any]) -> str:
    return _comment(_definition(schema, node, value))


def written(document: Mapping[str, Any]) -> str:
    """Return a document as TOML, with a comment beside each key: the first sentence that the reference has of it."""
    schema = json.loads(_core.schema())
    root = _definition(schema, schema, document)["properties"]
    lines = [
        f"# {document['description']}.",
        "#",
        "#   fanin check FILE        what is wrong, and what will not do what was meant",
        "#   fanin show FILE         the network, and what will be simulated",
        "#   fanin run FILE -o OUT   simulates; --report writes a page",
        "#   fanin best FILE         which mechanism helps",
        "#",
        "# Every key and its default: fanin schema --reference",
        "",
    ]
    for key, value in document.items():
        if not isinstance(value, Mapping | list):
            lines += _line(key, value, _comment(root[key]))
    for key, value in document.items():
        if isinstance(value, Mapping):
            lines += ["", *_table(schema, root[key], key, value)]
        elif isinstance(value, list):
            for entry in value:
                lines += ["", *_table(schema, root[key]["items"], key, entry, listed=True)]
    return "\n".join(lines) + "\n"
