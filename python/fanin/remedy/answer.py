"""The answer to what would have helped a burst: remedies ranked, what they cost, and how sure that is."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from fanin import _core, files
from fanin.remedy.seen import BOUND, FEW_DROPS
from fanin.statistics import Difference, Interval, Verdict
from fanin.text import show

if TYPE_CHECKING:
    from fanin.best.candidates import Rejected
    from fanin.remedy.model import Model
    from fanin.remedy.open_loop import Replay
    from fanin.remedy.seen import Seen
    from fanin.scenario import Scenario

SCHEMA: Final = "whatif/1"

SURE: Final = 0.9
"""Share of the ensemble in which a remedy has to hold to be named as one."""

Outcome = Literal["remedy", "nothing", "unsure", "no answer"]
"""What an answer comes to; ``unsure``: a setting holds in a part of the ensemble that is too small to name it as a remedy."""

Goal = Literal["drops", "peak", "time"]
"""What is asked for: nine of ten drops gone; the longest queue below a size; the last flow's end a fifth earlier."""

HEAD: Final = (
    "Setting",
    "Holds in",
    "Drops removed [interval]",
    "Longest queue",
    "Last flow ends [interval]",
    "Mean completion",
    "Marks",
)


@dataclass(frozen=True)
class Remedy:
    """A setting that was tried on the ensemble.

    Attributes
    ----------
    name, part, about : str
        What it is.
    changes : mapping
        What was set, path → value.
    holds : int
        Members of the ensemble in which it does what is asked for.
    members : int
        Members that it ran in.
    share : Interval
        Share of the ensemble in which it holds, with its exact interval.
    change : Difference
        Change of what is asked for: drops, the longest queue [bytes] or the end of the last flow [ps].
    removed : Interval or None
        Drops removed as a share of those without it, by member; None where none has drops.
    dropped : Interval
        Drops that are left.
    peak_bytes : Interval
        Longest queue at the port [bytes].
    last : Difference
        Change of the end of the last flow [ps].
    mean_time : Difference
        Change of the mean completion time of flows [ps].
    verdict : Verdict or None
        Of the difference in what is asked for, adjusted for all that were tried.
    marks : float
        Marks, mean over members.
    goodput : Difference
        Change of the goodput [b/s].
    unfinished : float
        Flows that did not end, mean over members.
    header_bytes, memory_bytes : int or None
        What it adds to frames and takes at a switch, as ``fanin best`` counts it.
    """

    name: str
    part: str
    about: str
    changes: Mapping[str, Any]
    holds: int
    members: int
    share: Interval
    change: Difference
    removed: Interval | None
    dropped: Interval
    peak_bytes: Interval
    last: Difference
    mean_time: Difference
    verdict: Verdict | None
    marks: float
    goodput: Difference
    unfinished: float
    header_bytes: int | None
    memory_bytes: int | None

    @property
    def sure(self) -> bool:
        """Whether it holds in as much of the ensemble as a remedy has to."""
        return self.holds >= SURE * self.members


@dataclass(frozen=True)
class WhatIf:
    """What would have helped a burst.

    Attributes
    ----------
    port : str
        The measured port.
    goal : {"drops", "peak", "time"}
        What was asked for.
    below_bytes : float or None
        The queue that was asked for, with the goal "peak".
    model : Model
        What the model stands on.
    nearest : Seen or None
        What the nearest variant of the model shows without any change.
    accepted, tried : int
        Members of the ensemble that give back what was measured, of how many draws.
    members : tuple of Seen
        What each of them shows.
    missed : tuple of str
        What of the nearest is not within the bounds; empty where there is an answer.
    over : tuple of str
        What the ensemble was drawn over.
    remedies : tuple of Remedy
        Ranked, the best first; empty where there is no answer.
    rejected : tuple of Rejected
        What was not tried, or failed, and why.
    replays : tuple of Replay
        Measured arrivals through other buffers, open loop.
    least_buffer : int or None
        Buffer that would have lost none of the arrivals as they were measured.
    base : Scenario
        The first member of the ensemble: the model as it is.
    notes : tuple of str
        What is to be said besides.
    doubt : str
        Why the trace itself is not to be trusted without reserve; empty where it is.
    """

    port: str
    goal: Goal
    below_bytes: float | None
    model: Model
    nearest: Seen | None
    accepted: int
    tried: int
    members: tuple[Seen, ...]
    missed: tuple[str, ...]
    over: tuple[str, ...]
    remedies: tuple[Remedy, ...]
    rejected: tuple[Rejected, ...]
    replays: tuple[Replay, ...]
    least_buffer: int | None
    base: Scenario
    notes: tuple[str, ...] = ()
    doubt: str = ""

    @property
    def answered(self) -> bool:
        """Whether the model gives back what was measured, so that there is an answer."""
        return not self.missed

    @property
    def best(self) -> Remedy | None:
        """The first of the remedies, if it holds in enough of the ensemble; None where nothing does, or there is no answer."""
        return self.remedies[0] if self.remedies and self.remedies[0].sure else None

    @property
    def outcome(self) -> Outcome:
        """What the answer is: a remedy, nothing, a remedy that the trace does not make sure, or no answer."""
        if not self.answered:
            return "no answer"
        if self.best is not None:
            return "remedy"
        return "unsure" if any(own.holds > (1 - SURE) * own.members for own in self.remedies) else "nothing"

    @property
    def helps(self) -> tuple[str, ...]:
        """Names of all settings that hold in enough of the ensemble."""
        return tuple(own.name for own in self.remedies if own.sure)

    # -- words ------------------------------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        """The conclusion, in a few sentences."""
        if not self.answered:
            return self._none()
        best = self.best
        sentences = [self._first(best), *self._costs(best), *self._others(best), self._stands(), *self._doubts()]
        return " ".join(sentences)

    def _doubts(self) -> list[str]:
        return [f"Trust in the trace itself: {self.doubt}"] if self.doubt else []

    def _none(self) -> str:
        count = f"{self.accepted} of {show.many(self.tried, 'draw')} of it {'is' if self.accepted == 1 else 'are'}"
        first = (
            f"No answer: this model does not reproduce your burst: {'; '.join(self.missed)}, where {_bounds()} is the bound; "
            f"{count} within."
        )
        return " ".join([first, *self._open(), *self._doubts()])

    def _open(self) -> list[str]:
        """Return what the arrivals alone say of the buffer, where they are known."""
        if self.least_buffer is None:
            return []
        size = show.size(self.least_buffer)
        return [
            f"The arrivals as they were measured would have lost nothing in a buffer of {size} (open loop: senders that lose less "
            f"send on, so it is the least that would do)."
        ]

    def _first(self, best: Remedy | None) -> str:
        asked = goal_words(self.goal, self.below_bytes)
        if best is None:
            if not self.remedies:
                return f"Nothing that was tried {asked}."
            top = self.remedies[0]
            if not top.holds:
                return f"Nothing that was tried {asked}: none of {len(self.remedies)} settings does in any member of the ensemble."
            share = f"in {top.holds} of {top.members} members of the ensemble"
            if self.outcome == "nothing":
                return f"Nothing that was tried {asked}; {top.name} does {share} alone."
            return f"Not sure: nothing that was tried {asked} in {_percent(SURE)} of the ensemble; {top.name} does {share}."
        sure = f"in {best.holds} of {best.members} members of the ensemble"
        low = best.share.low
        least = "" if low is None else f" (so in at least {_percent(low)} of what the trace allows)"
        if len(set(self.members)) == 1:
            least = " (which all do the same, so that their number says nothing)"
        did = {
            "drops": f"would have removed {_removed(best)} of the drops",
            "peak": f"would have brought the longest queue to {_spread(best.peak_bytes, show.size)}",
            "time": f"would have ended the last flow {_earlier(best.last)}",
        }[self.goal]
        return f"{best.name} {did}: it holds {sure}{least}."

    def _costs(self, best: Remedy | None) -> list[str]:
        if best is None:
            return []
        words = []
        if self.goal != "time":
            words.append(f"the last flow ends {_earlier(best.last)}")
        if self.goal != "drops":
            words.append(f"drops: {_spread(best.dropped, _count)}")
        if self.goal != "peak":
            words.append(f"the longest queue is {_spread(best.peak_bytes, show.size)}")
        words.append(f"flows end {_earlier(best.mean_time)} on average")
        if best.marks:
            words.append(f"{show.count(round(best.marks))} packets are marked")
        if best.header_bytes:
            words.append(f"{best.header_bytes} B more header in a frame")
        if best.memory_bytes:
            words.append(f"{show.size(best.memory_bytes)} more memory at a switch")
        if best.unfinished:
            words.append(f"{show.many(round(best.unfinished, 1), 'flow')} did not end")
        return [f"What comes with it: {'; '.join(words)}."]

    def _others(self, best: Remedy | None) -> list[str]:
        also = [own.name for own in self.remedies if own.sure and own is not best]
        if len(also) > _NAMED:
            also = [*also[:_NAMED], f"{len(also) - _NAMED} more"]
        not_ = [own.name for own in self.remedies if own.holds <= (1 - SURE) * own.members]
        found = []
        if also:
            found.append(f"So would {_listed(also)}.")
        if not_ and best is not None:
            found.append(f"Not: {_listed(not_)}.")
        return found

    def _stands(self) -> str:
        return (
            f"The model gives back what was measured in {self.accepted} of {show.many(self.tried, 'draw')}; those are the ensemble."
        )

    # -- data -------------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON holds it, in picoseconds, bytes and bits per second."""
        return {
            "schema": SCHEMA,
            "fanin": _core.version(),
            "port": self.port,
            "goal": self.goal,
            "below_bytes": self.below_bytes,
            "outcome": self.outcome,
            "text": self.text,
            "best": None if self.best is None else self.best.name,
            "helps": list(self.helps),
            "missed": list(self.missed),
            "measured": asdict(self.model.measured),
            "model": {
                "how": self.model.how,
                "view": asdict(self.model.view),
                "unsure": list(self.model.unsure),
                "over": list(self.over),
                "bound": BOUND,
                "drops_bound": FEW_DROPS,
                "accepted": self.accepted,
                "draws": self.tried,
                "nearest": None if self.nearest is None else asdict(self.nearest),
                "members": [asdict(own) for own in self.members],
            },
            "remedies": [_plain(asdict(own)) | {"sure": own.sure} for own in self.remedies],
            "rejected": [asdict(own) for own in self.rejected],
            "open_loop": {"least_buffer_bytes": self.least_buffer, "replays": [asdict(own) for own in self.replays]},
            "notes": list(self.notes),
        }

    def to_json(self) -> str:
        """Return `to_dict` as one line of JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)

    def scenario(self) -> Scenario:
        """Return the model with the best remedy.

        Raises
        ------
        ValueError
            There is none.
        """
        if self.best is None:
            raise ValueError("nothing holds in enough of the ensemble, so there is no scenario of a remedy")
        changed = self.base
        for path, value in self.best.changes.items():
            changed = changed.replace({path: value})
        return changed

    def to_scenario(self, path: str | os.PathLike[str]) -> Path:
        """Write the model with the best remedy as a scenario, TOML.

        Raises
        ------
        ValueError
            There is none.
        """
        lines = [f"# {line}" for line in (f"{self.port}: {self.best.name}, by `fanin whatif`." if self.best else "", self.text)]
        target = Path(path)
        files.write_text(target, "\n".join([*lines, "", self.scenario().to_toml()]))
        return target

    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write ``whatif.json``, ``whatif.md``, ``model.toml`` and, where there is one, ``remedy.toml``; return the files."""
        from fanin.remedy import page

        out = Path(folder)
        out.mkdir(parents=True, exist_ok=True)
        files.write_text(out / "whatif.json", json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n")
        files.write_text(out / "whatif.md", page.markdown(self))
        files.write_text(out / "model.toml", self.base.to_toml())
        written = [out / "whatif.json", out / "whatif.md", out / "model.toml"]
        return [*written, self.to_scenario(out / "remedy.toml")] if self.best else written

    def __repr__(self) -> str:
        best = "no answer" if not self.answered else "nothing helps" if self.best is None else self.best.name
        return f"<fanin.WhatIf of {self.port}: {best}>"


def _plain(value: Any) -> Any:
    """Return values without those that are one per member, which only tests of differences need."""
    if isinstance(value, dict):
        return {key: _plain(own) for key, own in value.items() if key != "gaps"}
    return value


def goal_words(goal: Goal, below: float | None) -> str:
    """Return what is asked for, after "Nothing that was tried"."""
    return {
        "drops": "removes nine of ten drops",
        "peak": f"brings the longest queue below {show.size(below or 0)} without more drops",
        "time": "ends the last flow a fifth earlier",
    }[goal]


def rows(found: WhatIf) -> list[list[str]]:
    """Return the table of remedies, ranked, as rows of cells under `HEAD`."""
    return [
        [
            own.name,
            f"{own.holds} of {own.members}",
            show.NOTHING if own.removed is None else _removed(own),
            _spread(own.peak_bytes, show.size),
            _change(own.last),
            _change(own.mean_time),
            show.count(round(own.marks)),
        ]
        for own in found.remedies
    ]


def _bounds() -> str:
    return f"a quarter ({FEW_DROPS} drops, one frame or two samples besides)"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _count(value: float) -> str:
    return show.count(round(value, 1))


def _removed(own: Remedy) -> str:
    """Return the share of drops removed with its range over the ensemble."""
    found = own.removed
    if found is None:
        return show.NOTHING
    if found.least == found.most:
        return _percent(found.mean)
    low, high = (found.least, found.most) if found.low is None or found.high is None else (found.low, found.high)
    return f"{_percent(found.mean)} [{_percent(low)}, {_percent(min(high, 1.0))}]"


def _spread(found: Interval, text: Any) -> str:
    if found.low is None or found.high is None or text(found.low) == text(found.high):
        return str(text(found.mean))
    return f"{text(found.mean)} [{text(found.low)}, {text(found.high)}]"


def _change(found: Difference) -> str:
    if found.change is None:
        return show.NOTHING
    low, high = found.change_low, found.change_high
    ends = "" if low is None or high is None or low == high else f" [{show.change(low)}, {show.change(high)}]"
    return show.change(found.change) + ends


_SMALL: Final = 0.005
_NAMED: Final = 6
"""Settings that are named in one sentence; more are counted."""


def _earlier(found: Difference) -> str:
    """Return a change of a time as words."""
    if found.change is None or abs(found.change) < _SMALL:
        return "when it does without"
    low, high = found.change_low, found.change_high
    words = "earlier" if found.change < 0 else "later"
    ends = ""
    if low is not None and high is not None and low != high and low * high > 0:
        near, far = sorted((abs(low), abs(high)))
        ends = f" ({show.change(near, sign=False)} to {show.change(far, sign=False)})"
    return f"{show.change(found.change, sign=False)} {words}{ends}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
