"""What a scenario simulates, in plain words, and its network as a drawing."""

from __future__ import annotations

import json
import math
import os
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

from fanin import _core, files
from fanin.scenario import Scenario
from fanin.scenario.rest import rest
from fanin.text import show

_HOPS_PER_S: Final = 10e6
"""Packet-hops that a core simulates in a second, about; docs/performance.md."""

_WORTH: Final = 1.1
"""How many times as fast a run on several threads is to be for them to be named."""


@dataclass(frozen=True)
class Overview:
    """What a scenario simulates.

    Attributes
    ----------
    scenario : Scenario
        The scenario.
    facts : mapping
        Network, idle round trips, and what traffic asks of each link, as the core computes them.
    """

    scenario: Scenario
    facts: Mapping[str, Any]

    @cached_property
    def resolved(self) -> dict[str, Any]:
        """The scenario with all defaults."""
        return self.scenario.resolved

    @cached_property
    def given(self) -> Mapping[str, Any]:
        """The scenario as it is written, without defaults."""
        text, kind = self.scenario.source()
        found = tomllib.loads(text) if kind == "toml" else json.loads(text)
        return found if isinstance(found, dict) else {}

    @property
    def hosts(self) -> list[Mapping[str, Any]]:
        """The hosts."""
        return [node for node in self.facts["nodes"] if node["layer"] is None]

    @cached_property
    def layers(self) -> list[list[int]]:
        """Numbers of nodes, by layer: hosts, the switches that have hosts, those above."""
        nodes = self.facts["nodes"]
        highest = max((node["layer"] for node in nodes if node["layer"] is not None), default=-1)
        layers: list[list[int]] = [[] for _ in range(highest + 2)]
        for number, node in enumerate(nodes):
            layers[0 if node["layer"] is None else node["layer"] + 1].append(number)
        return layers

    @property
    def sentences(self) -> list[str]:
        """What it simulates, one sentence after the other."""
        return [
            *self._network(),
            *self._times(),
            *self._switches(),
            *self._marks(),
            *self._events(),
            *self._transports(),
            *self._traffic(),
            *self._loads(),
            *self._rests(),
            self._cost(),
        ]

    @property
    def text(self) -> str:
        """The overview as one paragraph."""
        return " ".join(self.sentences)

    # -- sentences ---------------------------------------------------------------------------------------------------

    def _host_rates(self) -> list[float]:
        hosts = len(self.hosts)
        return sorted({link["rate_bps"] for link in self.facts["links"] if link["from"] < hosts})

    def _network(self) -> Iterable[str]:
        rates = _span([show.rate(rate) for rate in self._host_rates()])
        tiers = self.layers[1:]
        switches = sum(map(len, tiers))
        shape = (
            "" if len(tiers) < 2 else f" in {len(tiers)} tiers ({' + '.join(str(len(tier)) for tier in tiers)} from the hosts up)"
        )
        yield f"{len(self.hosts):,} hosts, each on a link of {rates}, and {show.many(switches, 'switch', 'switches')}{shape}."
        ratio = self.oversubscription
        if ratio is not None:
            how = "can all send across the fabric at once" if ratio <= 1 else f"can send {ratio:.3g} times what its uplinks carry"
            yield f"The hosts of a switch {how} (oversubscription {ratio:.3g}:1)."

    @property
    def oversubscription(self) -> float | None:
        """What the hosts of a switch can send over what its links to other switches carry, at most; None without such links."""
        hosts = len(self.hosts)
        down: Counter[int] = Counter()
        up: Counter[int] = Counter()
        for link in self.facts["links"]:
            if link["to"] < hosts:
                down[link["from"]] += link["rate_bps"]
            elif link["from"] >= hosts:
                up[link["from"]] += link["rate_bps"]
        ratios = [down[switch] / up[switch] for switch in down if up[switch]]
        return max(ratios, default=None)

    def _times(self) -> Iterable[str]:
        shortest, longest = self.facts["base_rtt_ps"]
        if not longest:
            return
        rtt = show.duration(longest) if shortest == longest else f"{show.duration(shortest)} to {show.duration(longest)}"
        rate = min(link["rate_bps"] for link in self.facts["links"])
        product = rate * longest / 8e12
        frames = math.ceil(product / self.facts["full_frame_bytes"])
        yield (
            f"On an idle network a full packet and its acknowledgment take {rtt} (base RTT), so {show.size(round(product))} "
            f"fill the longest path at {show.rate(rate)}, the slowest link (BDP, {frames:,} full frames)."
        )

    def _switches(self) -> Iterable[str]:
        switch = self.resolved.get("switch") or {}
        buffer = switch.get("buffer")
        kind = _kind(buffer)
        parts = [f"{_BUFFERS.get(kind, f'buffers of kind {kind}')}{_said(buffer)}"]
        marking = switch.get("marking")
        parts.append("no marking" if _kind(marking) == "none" else f"marking by {_policy(marking)}")
        mechanisms = switch.get("mechanisms") or {}
        given = _table(_table(self.given, "switch"), "mechanisms")
        parts += [f"{name}{_set(_table(given, name)) or _said(mechanisms.get(name))}" for name in self.facts["mechanisms"]]
        if switch.get("except"):
            parts.append(f"{show.many(len(switch['except']), 'exception')} for single ports or switches")
        yield f"Switches have {', '.join(parts)}."
        sizes = {size["name"]: _sizes(size["bytes"]) for size in self.facts["sizes"] if size["mechanism"] == "pfc"}
        if sizes:
            yield (
                f"PFC keeps {sizes['headroom']} of headroom for each port and lossless class and has a pool of {sizes['pool']}; "
                f"a class that waits alone at a switch reaches XOFF at {sizes['xoff']}."
            )

    def _marks(self) -> Iterable[str]:
        """Say which ports mark by what, where they differ."""
        hosts = len(self.hosts)
        ports: dict[str, list[str]] = {}
        for link in self.facts["links"]:
            if link["from"] >= hosts:
                ports.setdefault(_marked_by(link["markings"]), []).append(link["name"])
        if len(ports) > 1 or any(len(link["markings"]) > 1 for link in self.facts["links"]):
            said = [f"{by} at {show.many(len(names), 'port')} ({ranges(names)})" for by, names in ports.items()]
            yield f"Marking by port: {'; '.join(said)}."

    def _rests(self) -> Iterable[str]:
        """Say where DCQCN's queue rests at the port to which most hosts send, if they all do at once."""
        for name in self.facts["transports"]:
            own = self._transport(name)
            control = own.get("congestion_control")
            links = [link for link in self.facts["links"] if link["senders"].get(name, 0) > 1]
            if _kind(control) != "dcqcn" or not links:
                continue
            link = max(links, key=lambda link: link["senders"][name])
            red = next((entry["marking"] for entry in link["markings"] if _kind(entry["marking"]) == "red"), None)
            if red is None:
                continue
            flows = link["senders"][name]
            settings = _table(own, "congestion_control")
            found = rest(settings, red, flows, link["rate_bps"], self.facts["full_frame_bytes"])
            if found is None:
                continue
            where = (
                f"with {show.size(round(found.queue_bytes))} in the queue"
                if found.queue_bytes is not None
                else f"above max_p ({percent(red['max_p'])}): the queue passes max, all is marked, and rates swing"
            )
            yield (
                f"If {show.many(flows, 'long flow')} of DCQCN, one from each sender, meet at {link['name']}, they rest at a "
                f"marking probability of {percent(found.probability)}, {where} (the paper's fluid model)."
            )

    def _transport(self, name: str) -> Mapping[str, Any]:
        """Return the resolved settings of a transport."""
        own = self.resolved.get("transport") if name == "default" else self.resolved.get("transports", {}).get(name)
        return {"kind": own} if isinstance(own, str) else own or {"kind": "tcp"}

    def _events(self) -> Iterable[str]:
        events = self.resolved.get("events") or []
        said = []
        for event in events:
            start, end = event.get("start", "0ps"), event.get("end")
            time = f"from {start} to {end}" if end else f"from {start} on"
            what = "down" if event["kind"] == "down" else f"with a bit error rate of {event['rate']:g}"
            again = f", again every {event['every']}" if event.get("every") else ""
            times = f", {event['times']:,} times" if event.get("times") else ""
            said.append(f"{' and '.join(event['links'])} {what} {time}{again}{times}")
        if said:
            yield f"Links: {'; '.join(said)}."
        failover = self.resolved.get("failover")
        if failover:
            notice = f" after {failover['detect']}," if "detect" in failover else ", and"
            yield f"Ends of a link notice{notice} tables follow {failover['converge']} later."

    def _transports(self) -> Iterable[str]:
        for name in self.facts["transports"]:
            own = self._transport(name)
            control = own.get("congestion_control")
            by = f" with {_kind(control)}" if control is not None else ""
            first = own.get("initial_window")
            window = f", initial window {first}" if isinstance(first, int) else ""
            least = f", RTO_min {own['rto_min']}" if "rto_min" in own else ""
            whose = "Flows run" if name == "default" else f"Flows of transport {name} run"
            yield f"{whose} over {_names_of_transports().get(own['kind'], own['kind'])}{by}{window}{least}."

    def _traffic(self) -> Iterable[str]:
        entries = self.resolved.get("traffic") or []
        for entry, seen in zip(entries, self.facts["traffic"], strict=True):
            flows = show.count(round(seen["flows"]))
            name, kind = seen["name"], entry["kind"]
            what = name if name == kind else f"{name} ({kind})"
            many = "s" * (flows != "1")
            size, when = show.size(round(seen["bytes"])), _when(seen["first_s"], seen["last_s"])
            yield f"{what[:1].upper()}{what[1:]}: {_about(self.facts)}{flows} flow{many}, {size} in all{when}."

    def _loads(self) -> Iterable[str]:
        links = [link for link in self.facts["links"] if link["load"] > 0]
        if not links or not self.facts["lasts_s"]:
            return
        hosts = len(self.hosts)
        top = max(links, key=lambda link: link["load"])
        inside = [link["load"] for link in self.facts["links"] if link["from"] >= hosts and link["to"] >= hosts]
        ends = [link["load"] for link in self.facts["links"] if link["to"] < hosts]
        between = f", those between switches {percent(sum(inside) / len(inside))}" if inside else ""
        yield (
            f"Over {show.duration(round(self.facts['lasts_s'] * 1e12))} that offers {percent(sum(ends) / len(ends))} of what the "
            f"links into hosts carry on average{between}; most to {top['name']}, {percent(top['load'])}, headers counted and "
            f"acknowledgments not."
        )

    def _cost(self) -> str:
        hops = self.facts["packet_hops"]
        takes = show.duration(round(max(hops / _HOPS_PER_S, 0.01) * 1e12))
        return f"In all about {show.count(round(hops))} packet-hops, some {takes} of simulation on one core{self._threads()}."

    def _threads(self) -> str:
        if why := self.facts["threads_why"]:
            return f" (no more threads: {why})"
        pays = [found for found in self.facts["threads"] if found["times"] >= _WORTH]
        if not pays:
            return ""
        best = max(pays, key=lambda found: found["times"])
        return f", {best['times']:.1f} times as fast on {best['threads']} (an estimate; --threads, docs/parallel.md)"

    # -- drawings ----------------------------------------------------------------------------------------------------

    def lines(self) -> list[str]:
        """Return the network layer by layer, from the top, as text."""
        nodes = self.facts["nodes"]
        drawn: list[str] = []
        for number in range(len(self.layers) - 1, -1, -1):
            names = ranges(nodes[node]["name"] for node in self.layers[number])
            what = "hosts" if number == 0 else "switches"
            size = len(self.layers[number])
            drawn.append(f"{names}  ({show.many(size, what.rstrip('s') if what == 'hosts' else 'switch', what)})")
            drawn += [f"  ── {line}, beside each other" for line in self._links_between(number, number)]
            if number:
                drawn += [f"  │  {line}" for line in self._links_between(number, number - 1)] or ["  │"]
        return drawn

    def _links_between(self, upper: int, lower: int) -> list[str]:
        place = {node: number for number, layer in enumerate(self.layers) for node in layer}
        kinds: Counter[tuple[int, int]] = Counter()
        for link in self.facts["links"]:
            if (place[link["from"]], place[link["to"]]) == (upper, lower):
                kinds[link["rate_bps"], link["delay_ps"]] += 1
        halves = 2 if upper == lower else 1
        return [
            f"{show.many(number // halves, 'link')} of {show.rate(rate)}, {show.duration(delay)}"
            for (rate, delay), number in kinds.items()
        ]

    def svg(self) -> str:
        """Return the network as SVG: a line per link, as dark as it is loaded, wider where it is faster."""
        from fanin.scenario import drawing

        return drawing.svg(self)

    def page(self) -> str:
        """Return an HTML page with the drawing and the paragraph, which needs neither network nor other files."""
        from fanin.scenario import drawing

        return drawing.page(self)

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the drawing: an SVG by its ending ``.svg``, otherwise a page."""
        return files.write_text(path, self.svg() if Path(path).suffix.lower() == ".svg" else self.page())

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON holds it, in picoseconds, bits per second and bytes."""
        return {"text": self.text, "oversubscription": self.oversubscription, **self.facts}


def overview(scenario: Scenario) -> Overview:
    """Return what a scenario simulates.

    Raises
    ------
    ScenarioError
        The scenario has errors.
    """
    text, kind = scenario.source()
    return Overview(scenario, _core.facts(text, kind, str(scenario.base_dir)))


_BUFFERS: Final = {
    "static": "a buffer of its own at each port",
    "dynamic": "a shared buffer with dynamic thresholds",
    "unlimited": "ports without bounds",
}


@cache
def _names_of_transports() -> dict[str, str]:
    """Return how transports are called, by kind, as the reference has it."""
    choices = json.loads(_core.schema())["$defs"]["TransportConfig"]["oneOf"]
    return {choice["const"]: choice["description"].split(".")[0] for choice in choices if "const" in choice}


def _kind(value: Any) -> str:
    return str(value.get("kind")) if isinstance(value, Mapping) else str(value)


def _said(value: Any) -> str:
    """Return the plain values of a table, in brackets."""
    if not isinstance(value, Mapping):
        return ""
    plain = [
        f"{key} {entry}"
        for key, entry in value.items()
        if key not in ("kind", "at") and isinstance(entry, str | int | float) and not isinstance(entry, bool)
    ]
    return f" ({', '.join(plain[:5])})" if plain else ""


def _policy(marking: Any) -> str:
    """Return the name and the plain values of a marking policy; of one outside where it listens, and what it is told."""
    if _kind(marking) != "external":
        return f"{_kind(marking)}{_said(marking)}"
    named = marking.get("block") or "a block outside"
    settings = f" with settings {marking['settings']}" if marking.get("settings") else ""
    return f"{named} at socket {marking['socket']}{settings}"


def _marked_by(markings: Sequence[Mapping[str, Any]]) -> str:
    """Return by what a port marks, for each class where they differ."""
    texts = {json.dumps(entry["marking"]): _policy(entry["marking"]) for entry in markings}
    if len(texts) == 1:
        return next(iter(texts.values()))
    return ", ".join(f"{_classes(entry['classes'])}: {texts[json.dumps(entry['marking'])]}" for entry in markings)


def _classes(numbers: Sequence[int]) -> str:
    """Return the classes of a queue, which follow each other, in words."""
    return f"class {numbers[0]}" if len(numbers) == 1 else f"classes {numbers[0]} to {numbers[-1]}"


def _sizes(bounds: Sequence[int]) -> str:
    """Return the least and the largest of sizes, or the one that there is."""
    return _span(list(dict.fromkeys(show.size(bound) for bound in bounds)))


def _table(table: Any, key: str) -> Mapping[str, Any]:
    """Return a table of a table; empty where there is none."""
    found = table.get(key) if isinstance(table, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _flat(value: Any) -> str:
    """Return a value as text: lists by commas, the kind of a table first and its values without keys."""
    if isinstance(value, Mapping):
        rest = [f"{key} {_flat(entry)}" for key, entry in value.items() if key != "kind"]
        return " ".join([*([str(value["kind"])] if "kind" in value else []), *rest])
    if isinstance(value, list):
        return " and ".join(_flat(entry) for entry in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _set(given: Mapping[str, Any]) -> str:
    """Return what a scenario sets of a table itself, in brackets; empty where that is nothing."""
    return f" ({', '.join(f'{key} {_flat(value)}' for key, value in given.items())})" if given else ""


def percent(share: float) -> str:
    """Return a share as text."""
    return f"{100 * share:.3g} %"


def _about(facts: Mapping[str, Any]) -> str:
    return "" if facts["exact"] else "about "


def _span(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{texts[0]} to {texts[-1]}"


def _when(first: float, last: float) -> str:
    begin, end = (show.duration(round(time * 1e12)) for time in (first, last))
    if last == 0:
        return ", at the start"
    return f", at {begin}" if first == last else f", from {begin} to {end}"


def ranges(names: Iterable[str]) -> str:
    """Return names with runs of numbers drawn together: ``h0 … h31, root``."""
    runs: list[list[Any]] = []
    for name in names:
        match = re.fullmatch(r"(.*?)(\d+)", name)
        stem, number = (match[1], int(match[2])) if match else (name, None)
        if runs and number is not None and runs[-1][0] == stem and runs[-1][2] == number - 1:
            runs[-1][2] = number
        else:
            runs.append([stem, number, number])
    texts = [
        stem
        if first is None
        else f"{stem}{first}"
        if first == last
        else f"{stem}{first} {'…' if last - first > 1 else 'and'} {stem}{last}"
        for stem, first, last in runs
    ]
    return ", ".join(texts) if len(texts) <= 4 else f"{runs[0][0]}{_text(runs[0][1])} … {runs[-1][0]}{_text(runs[-1][2])}"


def _text(number: int | None) -> str:
    return "" if number is None else str(number)
