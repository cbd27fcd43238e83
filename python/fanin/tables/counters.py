"""Counters of mechanisms: definitions from the core, values from a summary. docs/counters.md lists them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from fanin import _core
from fanin.text import show

if TYPE_CHECKING:
    import polars as pl

Kind = Literal["step", "success", "failure"]

_INITIALS = 4

HEAD = ["Counter", "Count", "Meaning"]
"""Head of `rows`."""


@dataclass(frozen=True)
class Count:
    """A counter with its value.

    Attributes
    ----------
    name : str
        As ``summary.json`` has it.
    count : int
        Sum over all switches and hosts.
    kind : {"step", "success", "failure"}
        Whether the mechanism did what it is for, could not, or neither.
    doc : str
        What it counts; empty if this version does not know it.
    """

    name: str
    count: int
    kind: Kind = "step"
    doc: str = ""

    @property
    def text(self) -> str:
        """The count with its name, for example ``3 next hop unaware``."""
        return f"{show.count(self.count)} {self.name.replace('_', ' ')}"


@dataclass(frozen=True)
class Group:
    """What a mechanism has counted: an object of ``mechanisms`` in ``summary.json``.

    Attributes
    ----------
    name : str
        Its key there.
    doc : str
        What the group is about; empty if this version does not know it.
    counts : tuple of Count
        Counters in the order in which they are declared; the first counts all that the others divide.
    by_reason : mapping
        Why the mechanism acted, and how often; empty where it does not say.
    largest_queue : mapping or None
        ``port`` and ``bytes`` of the longest queue of its own.
    """

    name: str
    doc: str
    counts: tuple[Count, ...]
    by_reason: Mapping[str, int]
    largest_queue: Mapping[str, Any] | None

    @property
    def title(self) -> str:
        """The name as a heading; names of up to four letters are initials."""
        return self.name.upper() if len(self.name) <= _INITIALS else self.name.replace("_", " ").capitalize()

    @property
    def failures(self) -> list[Count]:
        """Counters of failures that are not zero."""
        return [count for count in self.counts if count.kind == "failure" and count.count]

    @property
    def note(self) -> str:
        """Successes, failures and the largest queue, in one line."""
        said = [count.text for count in self.counts if count.kind == "success"] + [count.text for count in self.failures]
        if self.largest_queue:
            said.append(f"queue up to {show.size(self.largest_queue['bytes'])} at {self.largest_queue['port']}")
        return ", ".join(said)


@cache
def _declared() -> tuple[dict[str, Any], ...]:
    return tuple(_core.counters())


def groups(summary: Mapping[str, Any]) -> list[Group]:
    """Return the groups of counters in a summary, in the order in which they are declared."""
    found: dict[str, dict[str, Any]] = dict(summary.get("mechanisms") or {})
    made = []
    for declared in _declared():
        if declared["name"] in found:
            made.append(_group(declared, found.pop(declared["name"])))
    return made + [_group({"name": name, "doc": "", "counters": []}, counted) for name, counted in found.items()]


def _group(declared: Mapping[str, Any], counted: Mapping[str, Any]) -> Group:
    rest = {key: value for key, value in counted.items() if isinstance(value, int)}
    known = [Count(def_["name"], rest.pop(def_["name"], 0), def_["kind"], def_["doc"]) for def_ in declared["counters"]]
    counts = (*known, *(Count(name, count) for name, count in rest.items()))
    return Group(declared["name"], declared["doc"], counts, counted.get("by_reason") or {}, counted.get("largest_queue"))


def rows(group: Group, *, zeros: bool = True) -> list[list[str]]:
    """Return one row per counter, reason and queue, under `HEAD`.

    Parameters
    ----------
    group : Group
        The counters.
    zeros : bool
        Whether counters that are zero have a row.
    """
    listed = [[count.name, show.count(count.count), count.doc] for count in group.counts if count.count or zeros]
    listed += [[f"by_reason: {name}", show.count(count), ""] for name, count in sorted(group.by_reason.items())]
    if group.largest_queue:
        at = f"At {group.largest_queue['port']}."
        listed.append(["largest_queue", show.size(group.largest_queue["bytes"]), at])
    return listed


def lines(group: Group) -> list[str]:
    """Return one sentence for each kind of failure that occurred."""
    return [f"{count.text}: {count.doc}" for count in group.failures]


def frame(summary: Mapping[str, Any]) -> pl.DataFrame:
    """Return one row per counter: ``group``, ``counter``, ``count``, ``kind``, ``doc``."""
    import polars as pl

    schema = {"group": pl.String(), "counter": pl.String(), "count": pl.UInt64(), "kind": pl.String(), "doc": pl.String()}
    listed = [(group.name, c.name, c.count, c.kind, c.doc) for group in groups(summary) for c in group.counts]
    return pl.DataFrame(listed, schema=schema, orient="row")
