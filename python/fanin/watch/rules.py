"""Rules for alerts: a TOML file, read as strictly as scenarios are."""

from __future__ import annotations

import difflib
import fnmatch
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fanin import _core
from fanin.analysis import tables
from fanin.scenario import ScenarioError
from fanin.watch.hub import Burst, Hub
from fanin.watch.posting import is_address

_EXAMPLE: Final = "see docs/watch.md"


@dataclass(frozen=True)
class Rule:
    """A burst that is worth an alert; what is None is not asked for.

    Attributes
    ----------
    name : str
        Of the rule.
    queue_bytes : int or None
        Its largest queue is at least this.
    rate_bps : int or None
        Its busiest window has at least this: of bursts that are found by rate.
    duration_ps : int or None
        It lasts at least this.
    share : float or None
        The flow with the largest part of the queue has at least this part.
    drops : int or None
        At least so many packets are dropped.
    ports : tuple of str
        Names or patterns of ports; empty: all.
    pause_s : float
        Seconds from an alert at a port to the next one of the rule there.
    """

    name: str
    queue_bytes: int | None = None
    rate_bps: int | None = None
    duration_ps: int | None = None
    share: float | None = None
    drops: int | None = None
    ports: tuple[str, ...] = ()
    pause_s: float = 10.0

    def holds(self, burst: Burst) -> bool:
        """Whether a burst is one of these; what is unknown of it never is."""
        report = burst.report
        culprits = burst.culprits()
        asked = (
            (self.queue_bytes, report["peak_bytes"]),
            (self.rate_bps, report["busiest_bps"]),
            (self.duration_ps, report["duration_ps"]),
            (self.share, culprits[0]["share"] if culprits else None),
            (self.drops, report["dropped_packets"]),
        )
        named = not self.ports or any(fnmatch.fnmatchcase(burst.port, pattern) for pattern in self.ports)
        return named and all(least is None or (value is not None and value >= least) for least, value in asked)

    def holds_of_open(self, peak_bytes: int, lasted_ps: int, port: str) -> bool:
        """Whether a burst that is open is one of these already; its culprits and drops are known at its end."""
        if self.share is not None or self.rate_bps is not None or self.drops is not None or self.duration_ps is None:
            return False
        named = not self.ports or any(fnmatch.fnmatchcase(port, pattern) for pattern in self.ports)
        return named and lasted_ps >= self.duration_ps and peak_bytes >= (self.queue_bytes or 0)


class Rules:
    """Rules, and when each has held at each port.

    Parameters
    ----------
    rules : sequence of Rule
        They.
    webhook : str or None
        Where alerts go.
    """

    def __init__(self, rules: list[Rule], webhook: str | None) -> None:
        self.rules = rules
        self.webhook = webhook
        self._last: dict[tuple[str, str, str], float] = {}
        self._open: dict[tuple[str, str, str], tuple[int, int]] = {}

    def of_ended(self, bursts: list[Burst]) -> Iterator[dict[str, Any]]:
        """Return the alerts for bursts that have ended."""
        for burst in bursts:
            for rule in self.rules:
                key = (rule.name, burst.source, burst.port)
                if rule.holds(burst) and self._open.pop(key, None) != (burst.origin_s, burst.report["start_ps"]):
                    yield from self._alert(rule, burst.source, burst.port, _of_burst(burst))

    def of_open(self, hub: Hub) -> Iterator[dict[str, Any]]:
        """Return the alerts for bursts that are open, when those that have ended are known."""
        for port in list(hub.ports.values()):
            since, peak = port.report.get("open_since_ps"), port.report.get("open_peak_bytes")
            # A port of which nothing comes any more has no burst that goes on.
            if since is None or peak is None or port.report.get("unknown_now"):
                continue
            source = hub.reports[port.source]
            lasted = source["latest_ps"] - since
            for rule in self.rules:
                key, begun = (rule.name, port.source, port.name), (source["origin_s"], since)
                if rule.holds_of_open(peak, lasted, port.name) and self._open.get(key) != begun:
                    self._open[key] = begun
                    facts = {
                        "start_s": source["origin_s"] + since / 1e12,
                        "duration_s": lasted / 1e12,
                        "peak_bytes": peak,
                        "open": True,
                    }
                    yield from self._alert(rule, port.source, port.name, facts)

    def _alert(self, rule: Rule, source: str, port: str, facts: dict[str, Any]) -> Iterator[dict[str, Any]]:
        key, now = (rule.name, source, port), time.monotonic()
        if now - self._last.get(key, float("-inf")) < rule.pause_s:
            return
        self._last[key] = now
        yield {"schema": "alert/1", "rule": rule.name, "source": source, "port": port, **facts}


def _of_burst(burst: Burst) -> dict[str, Any]:
    report = burst.report
    return {
        "start_s": burst.origin_s + report["start_ps"] / 1e12,
        "duration_s": report["duration_ps"] / 1e12,
        "peak_bytes": report["peak_bytes"],
        "peak_at_least": tables.at_least(report),
        "busiest_bps": report["busiest_bps"],
        "dropped_packets": report["dropped_packets"],
        "dropped_at_least": tables.drops_at_least(report),
        "flows": report["flows"],
        "culprits": [{"name": entry["name"], "share": entry["share"], "bytes": entry["bytes"]} for entry in burst.culprits()[:5]],
        "open": False,
    }


# -- reading --------------------------------------------------------------------------------------------------------------------

_KINDS: Final = {"queue": "size", "rate": "rate", "duration": "time", "pause": "time"}
"""Keys whose values are texts with units."""

_KEYS: Final = ("name", "queue", "rate", "duration", "share", "drops", "ports", "pause")
_CONDITIONS: Final = ("queue", "rate", "duration", "share", "drops")
_ACCEPTED: Final = {
    "name": 'a text, for example "long queue"',
    "queue": 'a text with a unit, for example "500KB"',
    "rate": 'a text with a unit, for example "8Gbps"',
    "duration": 'a text with a unit, for example "200us"',
    "pause": 'a text with a unit, for example "10s"',
    "share": "a number from 0 to 1, for example 0.5",
    "drops": "a whole number from 1 on",
    "ports": 'a list of names or patterns, for example ["Ethernet1/*"]',
    "webhook": 'an address, for example "http://127.0.0.1:9000/alerts"',
}


class _Reading:
    """A file of rules under way: all that is wrong is gathered."""

    def __init__(self) -> None:
        self.problems: list[dict[str, Any]] = []

    def say(
        self, path: str, message: str, *, value: Any = None, accepted: str | None = None, suggestion: str | None = None
    ) -> None:
        shown = None if value is None else repr(value)
        problem = {"severity": "error", "path": path, "line": None, "value": shown}
        self.problems.append({**problem, "message": message, "accepted": accepted, "suggestion": suggestion})

    def unknown(self, table: dict[str, Any], known: tuple[str, ...], path: str) -> None:
        for key in table:
            if key not in known:
                near = difflib.get_close_matches(key, known, 1)
                meant = f"did you mean '{near[0]}'?" if near else None
                self.say(f"{path}{key}", "is no key that is known", accepted=", ".join(known), suggestion=meant)

    def rule(self, table: Any, path: str) -> Rule | None:
        if not isinstance(table, dict):
            self.say(path, "is no table", value=table, accepted="[[rule]]")
            return None
        before = len(self.problems)
        self.unknown(table, _KEYS, f"{path}.")
        values = {key: self.value(key, table[key], f"{path}.{key}") for key in _KEYS if key in table}
        if not any(key in table for key in _CONDITIONS):
            self.say(path, "holds for every burst", accepted="at least one of " + ", ".join(_CONDITIONS))
        if "name" not in table:
            self.say(path, "has no name", accepted=_ACCEPTED["name"])
        if len(self.problems) > before:
            return None
        return Rule(
            name=values["name"],
            queue_bytes=values.get("queue"),
            rate_bps=values.get("rate"),
            duration_ps=values.get("duration"),
            share=values.get("share"),
            drops=values.get("drops"),
            ports=tuple(values.get("ports", ())),
            pause_s=values["pause"] / 1e12 if "pause" in values else 10.0,
        )

    def value(self, key: str, value: Any, path: str) -> Any:
        accepted = _ACCEPTED[key]
        if key in _KINDS:
            if not isinstance(value, str):
                self.say(path, "is no text with a unit", value=value, accepted=accepted)
                return None
            try:
                return _core.quantity(_KINDS[key], value)  # type: ignore[arg-type]
            except ValueError as error:
                self.say(path, str(error), value=value, accepted=accepted)
                return None
        number = isinstance(value, int | float) and not isinstance(value, bool)
        right = {
            "name": isinstance(value, str) and value.strip() != "",
            "share": number and 0 < value <= 1,
            "drops": number and isinstance(value, int) and value >= 1,
            "ports": isinstance(value, list) and value != [] and all(isinstance(name, str) for name in value),
        }[key]
        if not right:
            self.say(path, "cannot be used", value=value, accepted=accepted)
            return None
        return value


def read(path: Path) -> Rules:
    """Read the rules of a file.

    Raises
    ------
    ScenarioError
        All that is wrong with them, with lines.
    ValueError
        It is no text in UTF-8.
    OSError
        It cannot be read.
    """
    reading = _Reading()
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: is not UTF-8 text (byte {error.start})") from None
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        reading.say("", f"is no TOML: {error}")
        raise _error(reading, "") from None
    reading.unknown(document, ("webhook", "rule"), "")
    webhook = document.get("webhook")
    if webhook is not None and not is_address(webhook):
        reading.say("webhook", "is no address of a webhook", value=webhook, accepted=_ACCEPTED["webhook"])
    tables = document.get("rule", [])
    if not isinstance(tables, list) or not tables:
        reading.say("rule", "there is none", accepted="[[rule]] with name and conditions", suggestion=_EXAMPLE)
        tables = []
    rules = [reading.rule(table, f"rule[{place}]") for place, table in enumerate(tables)]
    names = [rule.name for rule in rules if rule is not None]
    for place, rule in enumerate(rules):
        if rule is not None and names.index(rule.name) < sum(one is not None for one in rules[:place]):
            reading.say(f"rule[{place}].name", "is the name of another rule too", value=rule.name)
    if reading.problems:
        raise _error(reading, text)
    return Rules([rule for rule in rules if rule is not None], webhook)


def _error(reading: _Reading, text: str) -> ScenarioError:
    for problem, line in zip(reading.problems, _core.lines(text, [problem["path"] for problem in reading.problems]), strict=True):
        problem["line"] = line
    error = ScenarioError("\n".join(f"{problem['path']}: {problem['message']}" for problem in reading.problems))
    error.problems = reading.problems
    return error
