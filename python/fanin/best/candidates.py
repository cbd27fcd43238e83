"""What could be tried on a scenario: every policy of the registries, as its authors set it, if it makes sense there."""

from __future__ import annotations

import difflib
import fnmatch
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fanin import _core
from fanin.best.tunings import TUNINGS
from fanin.scenario import Check, Problem, Scenario

AS_IT_IS: Final = "as it is"
"""Name of the scenario itself."""

_PARTS: Final = {
    "switch.mechanisms": "mechanism",
    "switch.marking": "marking",
    "switch.routing": "path choice",
    "transport.congestion_control": "control",
    "transport": "transport",
}
"""What a trial takes the place of, as people call it."""


_HAS_IT: Final = "the scenario has it already"


@dataclass(frozen=True)
class Candidate:
    """A scenario with one policy switched on.

    Attributes
    ----------
    name : str
        Its kind, with its part before it where two have the same: ``dibs``, ``marking none``.
    part : str
        What it is: ``mechanism``, ``marking``, ``path choice``, ``control`` or ``transport``.
    about : str
        From its line in the registry.
    changes : mapping
        What was set, path → value.
    left_out : tuple of str
        Settings of its authors that would change nothing here.
    scenario : Scenario
        With the changes.
    header_bytes : int
        How much longer the headers of a full frame are at most than in the scenario as it is.
    memory_bytes : int or None
        What it takes at a switch besides the buffers, beyond what the scenario as it is takes; None: not known.
    """

    name: str
    part: str
    about: str
    changes: Mapping[str, Any]
    left_out: tuple[str, ...]
    scenario: Scenario
    header_bytes: int
    memory_bytes: int | None


@dataclass(frozen=True)
class Rejected:
    """A policy that is not ranked, and why; `ran` says whether it was tried."""

    name: str
    part: str
    reason: str
    ran: bool = False


def _value(text: str) -> Any:
    return tomllib.loads(f"value = {text}")["value"]


def _settings(trial: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [(path, _value(text)) for path, text in trial["settings"]]


def _reason(problem: Problem) -> str:
    said = " ".join(part for part in (problem.value, problem.message) if part)
    return f"{problem.path}: {said}" if problem.path else said


def _concerns(problem: Problem, path: str) -> bool:
    return problem.path == path or problem.path.startswith((f"{path}.", f"{path}["))


def _apply(base: Scenario, settings: Sequence[tuple[str, Any]]) -> Scenario | str:
    """Return the scenario with the settings, or why they cannot be made."""
    changed = base
    try:
        for path, value in settings:
            changed = changed.replace({path: value})
    except ValueError as error:
        return str(error)
    return changed


def _tried(base: Scenario, known: Check, settings: list[tuple[str, Any]], *, forced: bool) -> tuple[Scenario, list[str]] | str:
    """Return the scenario with what its authors set, without what would change nothing; or why it is not tried."""
    before = {problem.message for problem in known.warnings}
    left_out: list[str] = []
    while True:
        changed = _apply(base, settings)
        if isinstance(changed, str):
            return changed
        found = changed.check()
        useless = next((path for path, _ in settings[1:] if any(_concerns(problem, path) for problem in found.errors)), None)
        if found.errors and useless is None:
            return _reason(found.errors[0])
        new = [problem for problem in found.warnings if problem.message not in before]
        # What authors set besides may do nothing here: their policy is tried without it.
        idle = useless or next((path for path, _ in settings[1:] if any(_concerns(problem, path) for problem in new)), None)
        if idle is not None:
            settings = [setting for setting in settings if setting[0] != idle]
            left_out.append(idle)
            continue
        without = _without_one(base, before, settings) if new else None
        if without is not None:
            settings = [setting for setting in settings if setting[0] != without]
            left_out.append(without)
            continue
        if new and not forced:
            return _reason(new[0])
        if found.hash == known.hash:
            return _HAS_IT
        return changed, left_out


def _without_one(base: Scenario, before: set[str], settings: Sequence[tuple[str, Any]]) -> str | None:
    """Return what authors set besides and what makes others of this scenario go wrong, if that is one setting."""
    for path, _ in settings[1:]:
        changed = _apply(base, [setting for setting in settings if setting[0] != path])
        found = None if isinstance(changed, str) else changed.check()
        if found is not None and found.ok and not {problem.message for problem in found.warnings} - before:
            return path
    return None


def _names(trials: Sequence[Mapping[str, Any]]) -> list[str]:
    often = Counter(trial["kind"] for trial in trials)
    return [trial["kind"] if often[trial["kind"]] == 1 else f"{_part(trial)} {trial['kind']}" for trial in trials]


def _part(trial: Mapping[str, Any]) -> str:
    return _PARTS.get(trial["part"], str(trial["part"]))


def _asked(wanted: Sequence[str], trials: Sequence[Mapping[str, Any]], names: Sequence[str]) -> set[str]:
    """Return the names that `wanted` chooses: by name, kind, part or pattern."""
    chosen: set[str] = set()
    wrong = []
    for want in wanted:
        fits = {
            name
            for trial, name in zip(trials, names, strict=True)
            if want in (_part(trial), trial["kind"]) or fnmatch.fnmatchcase(name, want)
        }
        if not fits:
            there = list(dict.fromkeys([*(_part(trial) for trial in trials), *names]))
            near = difflib.get_close_matches(want, there, n=1, cutoff=0.5)
            hint = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(there)}"
            wrong.append(f"--only {want}: is no policy and no part of a scenario; {hint}")
        chosen |= fits
    if wrong:
        raise ValueError("; ".join(wrong))
    return chosen


def applied(scenario: Scenario, known: Check, trial: Mapping[str, Any]) -> Scenario | str:
    """Return a scenario with a policy as its authors set it, or why that makes no sense there.

    Parameters
    ----------
    scenario : Scenario
        Without errors.
    known : Check
        What its check says.
    trial : mapping
        One of the core's.
    """
    found = _tried(scenario, known, _settings(trial), forced=False)
    if isinstance(found, str):
        return _apply(scenario, _settings(trial)[:1]) if found == _HAS_IT else found
    return found[0]


def _costs(scenario: Scenario) -> tuple[int, int | None]:
    return _core.costs(*scenario.source(), str(scenario.base_dir))


def candidates(
    scenario: Scenario, only: Sequence[str] = (), *, trials: Sequence[Mapping[str, Any]] | None = None
) -> tuple[list[Candidate], list[Rejected]]:
    """Return what can be tried on a scenario, and what cannot, with the reason.

    A policy is tried if the scenario with it, and with what its authors set besides, has no errors, and no warnings that the
    scenario itself does not have.

    Parameters
    ----------
    scenario : Scenario
        Without errors.
    only : sequence of str
        Names, kinds, parts (``marking``) or patterns; all if empty. What is named is tried in spite of warnings.
    trials : sequence of mapping, optional
        What may be tried, each as the core states it; if not given: all that the registries have, and `TUNINGS`.

    Raises
    ------
    ScenarioError
        The scenario has errors.
    ValueError
        A name in `only` fits nothing.
    """
    text, kind = scenario.source()
    if trials is None:
        trials = [*_core.trials(text, kind, str(scenario.base_dir)), *TUNINGS]
    names = _names(trials)
    wanted = _asked(only, trials, names) if only else set(names)
    known = scenario.check()
    own_header, own_memory = _costs(scenario)
    good: list[Candidate] = []
    bad: list[Rejected] = []
    seen: dict[str | None, str] = {}
    for trial, name in zip(trials, names, strict=True):
        if name not in wanted:
            continue
        found = _tried(scenario, known, _settings(trial), forced=bool(only))
        if isinstance(found, str):
            bad.append(Rejected(name, _part(trial), found))
            continue
        changed, left_out = found
        digest = changed.check().hash
        if digest in seen:
            bad.append(Rejected(name, _part(trial), f"is the same here as {seen[digest]}"))
            continue
        seen[digest] = name
        header, memory = _costs(changed)
        more = None if memory is None or own_memory is None else memory - own_memory
        changes = {path: value for path, value in _settings(trial) if path not in left_out}
        good.append(Candidate(name, _part(trial), trial["doc"], changes, tuple(left_out), changed, header - own_header, more))
    return good, bad
