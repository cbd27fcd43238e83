"""Registry of figures. A module of this package that is not private is a paper's; importing it registers its figures."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fanin.reproduce._rows import Findings

if TYPE_CHECKING:
    from fanin.reproduce._context import Context

PAPERS: Final[dict[str, str]] = {
    "s-ecn": "Shan et al., Micro-burst in Data Centers: Observations, Analysis, and Mitigations, ICNP 2018",
    "rimm": "Lin, Hung, Wen, Real-Time In-Network Microburst Mitigation on Programmable Switch, IEEE Access 2021",
    "hpcc": "Li et al., HPCC: High Precision Congestion Control, SIGCOMM 2019",
    "powertcp": "Addanki, Michel, Schmid, PowerTCP: Pushing the Performance Limits of Datacenter Networks, NSDI 2022",
    "rcm": "Liu et al., Regional Congestion Mitigation in Lossless Datacenter Networks, NPC 2017",
    "pdn": "Xia et al., Preventing Passive TCP Timeouts in Data Center Networks with Packet Drop Notification",
}
"""Key of a paper, as in docs/papers.md and in ``scenarios/papers/``, → authors, title, venue."""

_FIGURES: Final[dict[str, Figure]] = {}
_ID: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*/[a-z0-9]+(?:-[a-z0-9]+)*")


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure, table or claim of a paper that can be reproduced.

    Parameters
    ----------
    id : str
        ``PAPER/FIGURE``, such as ``s-ecn/fig4a``.
    title : str
        What it shows, in one line.
    run : callable
        Makes it: is given a `Context`, returns `Findings`.
    seeds : int
        How many seeds the paper's own number of repetitions asks for.
    short : int
        How many seeds ``--short`` takes.
    seconds : float
        About how long it takes in full, in seconds of one core.
    """

    id: str
    title: str
    run: Callable[[Context], Findings]
    seeds: int
    short: int
    seconds: float

    @property
    def paper(self) -> str:
        """Key of the paper."""
        return self.id.partition("/")[0]

    @property
    def name(self) -> str:
        """The id without the paper."""
        return self.id.partition("/")[2]


def figure(
    id: str,  # the word that users know it by
    *,
    title: str,
    seeds: int,
    short: int,
    seconds: float,
) -> Callable[[Callable[[Context], Findings]], Callable[[Context], Findings]]:
    """Register the decorated function as a figure; parameters as in `Figure`."""
    if _ID.fullmatch(id) is None:
        raise ValueError(f"'{id}' is no id of a figure; write it like s-ecn/fig4a")
    if id in _FIGURES:
        raise ValueError(f"'{id}' is registered twice")
    if not 1 <= short <= seeds:
        raise ValueError(f"'{id}': {short} seeds in short, {seeds} in full")

    def register(run: Callable[[Context], Findings]) -> Callable[[Context], Findings]:
        _FIGURES[id] = Figure(id=id, title=title, run=run, seeds=seeds, short=short, seconds=seconds)
        return run

    return register


def _natural(id: str) -> tuple[tuple[int, str], ...]:
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", id) if part)


def figures() -> list[Figure]:
    """Return all figures, by paper, then by number."""
    from fanin import reproduce

    for module in pkgutil.iter_modules(reproduce.__path__):
        if not module.name.startswith("_"):
            importlib.import_module(f"{reproduce.__name__}.{module.name}")
    return [_FIGURES[id] for id in sorted(_FIGURES, key=_natural)]


def choose(ids: Iterable[str]) -> list[Figure]:
    """Return the figures of these ids, each once; the key of a paper stands for all of its figures.

    Raises
    ------
    ValueError
        Some are unknown; names all of them.
    """
    known = figures()
    chosen: dict[str, Figure] = {}
    wrong: list[str] = []
    for id in ids:
        found = [entry for entry in known if id in (entry.id, entry.paper)]
        if not found:
            near = difflib.get_close_matches(id, [entry.id for entry in known] + sorted({entry.paper for entry in known}), n=1)
            wrong.append(f"'{id}'{f' (did you mean {near[0]!r}?)' if near else ''}")
        chosen |= {entry.id: entry for entry in found}
    if wrong:
        raise ValueError(f"there is no figure {', '.join(wrong)}; fanin reproduce --list shows all")
    return list(chosen.values())
