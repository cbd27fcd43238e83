"""What is compared: runs, grouped into variants that differ in more than the seed."""

from __future__ import annotations

import difflib
import glob
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from fanin.statistics import metrics, tried
from fanin.statistics.tried import Conditions
from fanin.tables.recorded import MANIFEST, Recorded, ResultError

Source = Recorded | str | os.PathLike[str]
"""A result, the path of a result folder, of a folder of such folders, or a pattern for paths."""

_WORDS: Final = ("name", "description", "seed")
"""Keys of a scenario that change nothing, and the seed."""

_LISTED: Final = 32
"""Entries of a list that are compared one by one; longer lists as a whole."""


class CompareError(ValueError):
    """Runs that cannot be compared or drawn.

    Attributes
    ----------
    problems : list of str
        Everything that is wrong.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = list(problems)

    def __reduce__(self) -> tuple[type[CompareError], tuple[list[str]]]:
        return type(self), (self.problems,)


@dataclass(frozen=True)
class Run:
    """One run of a variant.

    Attributes
    ----------
    seed : int
        Its seed.
    values : mapping
        Numbers by address, see `fanin.metrics`.
    settings : mapping
        Its scenario, flat: path → value, without seed, name and description; of a sweep, the axes.
    version, fingerprint, status
        As in its manifest.
    sim_ps : int
        Simulated time [ps].
    origin : str
        Where it is, for messages.
    result : callable
        Opens its result folder; None where a sweep kept none.
    conditions : Conditions
        What numbers of seeds depend on: its timeout, and what is otherwise than in the runs that these were chosen on.
    """

    seed: int
    values: Mapping[str, float]
    settings: Mapping[str, Any]
    version: str
    fingerprint: str
    status: str
    sim_ps: int
    origin: str
    result: Callable[[], Recorded] | None
    conditions: Conditions = tried.UNKNOWN


@dataclass(frozen=True)
class Variant:
    """Runs that differ in the seed alone.

    Attributes
    ----------
    name : str
        How it is called.
    runs : tuple of Run
        By seed, rising.
    failed : int
        Runs of a sweep that failed and are left out.
    missing : int
        Runs of a sweep that is not finished which are still to be made; with a stop rule, until it looks next.
    unfinished : tuple of str
        What else of that sweep is missing, a phrase each: variants of which no run has ended well, and what a stop rule may want.
    failed_whole : tuple of str
        What of that sweep is no variant, since all its runs failed, a phrase each.
    """

    name: str
    runs: tuple[Run, ...]
    failed: int = 0
    missing: int = 0
    unfinished: tuple[str, ...] = ()
    failed_whole: tuple[str, ...] = ()

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of its runs."""
        return tuple(run.seed for run in self.runs)

    @property
    def versions(self) -> tuple[str, ...]:
        """The versions of Fanin that made its runs, each once; one, if all is well."""
        return tuple(sorted({run.version or "unknown" for run in self.runs}))

    @property
    def settings(self) -> Mapping[str, Any]:
        """The scenario of all its runs, flat."""
        return self.runs[0].settings

    @cached_property
    def conditions(self) -> Conditions:
        """Under which conditions its runs were made, as far as numbers of seeds depend on them."""
        every = tried.together({id(run.conditions): run.conditions for run in self.runs}.values())
        return every.with_counts(self.values("total.flows_complete").values(), self.values("queries.complete").values())

    @property
    def seed_matters(self) -> bool:
        """Whether its runs differ at all; it may, where there is but one, or where fingerprints are missing."""
        found = {run.fingerprint for run in self.runs}
        return len(self.runs) < 2 or len(found) > 1 or "" in found

    def values(self, key: str) -> dict[int, float]:
        """Return a number of each run that has it, by seed."""
        return {run.seed: run.values[key] for run in self.runs if key in run.values}

    def only(self, seeds: Iterable[int] | None) -> Variant:
        """Return the variant with the runs of some seeds alone; itself where that is all of them, or `seeds` is None."""
        if seeds is None:
            return self
        wanted = set(seeds)
        return self if wanted.issuperset(self.seeds) else replace(self, runs=tuple(run for run in self.runs if run.seed in wanted))

    def results(self) -> list[Recorded]:
        """Return the result folders of the runs that have one."""
        return [run.result() for run in self.runs if run.result is not None]


def meant(name: str, known: Iterable[str]) -> str:
    """Return the end of a message about a name that is none: what comes near it, if anything does."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.4)
    return f"; did you mean {near[0]}?" if near else ""


def settings(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """Return a resolved scenario as path → value, without seed, name and description."""
    found: dict[str, Any] = {}

    def walk(value: Any, path: str) -> None:
        if isinstance(value, Mapping):
            for key, entry in value.items():
                walk(entry, f"{path}.{key}" if path else str(key))
        elif isinstance(value, list) and any(isinstance(entry, Mapping) for entry in value) and len(value) <= _LISTED:
            for index, entry in enumerate(value):
                walk(entry, f"{path}[{index}]")
        elif isinstance(value, list):
            text = json.dumps(value, sort_keys=True)
            shown = f"{len(value):,} entries ({hashlib.sha256(text.encode()).hexdigest()[:8]})"
            found[path] = text if len(text) <= 60 else shown
        else:
            found[path] = value

    walk({key: value for key, value in scenario.items() if key not in _WORDS}, "")
    return found


def differing(variants: Sequence[Variant]) -> list[tuple[str, list[Any]]]:
    """Return the settings in which variants differ, with the value of each; None where one has none.

    Where a table is of another kind, its other keys are other keys, too; they stand in the list as well.
    """
    keys = dict.fromkeys(key for variant in variants for key in variant.settings)
    columns = {key: [variant.settings.get(key) for variant in variants] for key in keys}
    return [(key, column) for key, column in columns.items() if any(value != column[0] for value in column)]


def _of(result: Recorded) -> Run:
    manifest = result.manifest
    try:
        numbers = metrics.values(result)
    except ResultError as error:
        if manifest.get("status") == "partial":
            raise ResultError(f"{result.path}: partial ({manifest.get('reason', 'no reason given')}): {error}") from error
        raise
    flat = settings(result.scenario)
    return Run(
        seed=int(manifest.get("seed", 0)),
        values=numbers,
        settings=flat,
        version=str(manifest.get("fanin", "")),
        fingerprint=result.fingerprint,
        status=result.status,
        sim_ps=int(manifest.get("sim_ps") or 0),
        origin=str(result.path),
        result=lambda: result,
        conditions=tried.of(flat),
    )


def _named(source: Source) -> tuple[str | None, Source]:
    """Return the name that a text such as ``ecn=out/ecn-*`` gives, and the rest."""
    if isinstance(source, str) and not Path(source).exists():
        name, equals, rest = source.partition("=")
        if equals and name and "/" not in name and rest:
            return name, rest
    return None, source


def _folders(source: str) -> list[Path]:
    """Return the result folders that a path or a pattern leads to.

    Raises
    ------
    ResultError
        There are none.
    """
    path = Path(source)
    if path.is_dir():
        if (path / MANIFEST).is_file():
            return [path]
        below = sorted(
            {found.parent for depth in ("*", "*/*", "*/*/*") for found in path.glob(f"{depth}/{MANIFEST}")}, key=_natural
        )
        if not below and (path / "sweep.json").is_file():
            kept = "fanin sweep --keep leaves those of its runs; fanin compare --by AXIS compares their numbers without them"
            raise ResultError(f"{path}: is a sweep, and holds no result folder: {kept}")
        if not below:
            raise ResultError(f"{path}: is not a result folder, and holds none: there is no {MANIFEST}")
        return below
    if path.exists():
        raise ResultError(f"{path}: is a file, not a result folder")
    if glob.escape(source) != source:
        found = [Path(name) for name in glob.glob(source, recursive=True) if (Path(name) / MANIFEST).is_file()]  # noqa: PTH207
        if not found:
            raise ResultError(f"{source}: no result folder has such a name")
        return sorted(found, key=_natural)
    beside = [name.name for name in path.parent.iterdir()] if path.parent.is_dir() else []
    near = difflib.get_close_matches(path.name, beside, n=1, cutoff=0.5)
    raise ResultError(f"{path}: there is no such folder" + (f"; did you mean {path.parent / near[0]}?" if near else ""))


def _natural(path: Path) -> list[tuple[int, int | str]]:
    """Sort numbers in names as numbers."""
    return [(0, int(part)) if part.isdigit() else (1, part) for part in re.split(r"(\d+)", str(path)) if part]


def gather(
    given: Mapping[str, Source | Sequence[Source]] | Sequence[Source], progress: Callable[[str], None] | None = None
) -> list[Variant]:
    """Return the variants among runs.

    Runs with the same scenario but for the seed, and of the same version, are one variant, except where names are given: then the
    runs of a name are one.

    Parameters
    ----------
    given : mapping of str to sources, or sequence of sources
        What to compare. In a sequence a text may begin with a name, ``ecn=out/ecn-*``.
    progress : callable, optional
        Receives the path of each result before it is read.

    Raises
    ------
    CompareError
        Something cannot be read, a name stands for runs that differ in more than the seed, or one seed is there twice.
    """
    problems: list[str] = []
    named: dict[str, list[Run]] = {}
    loose: list[Run] = []
    opened: dict[str, Run] = {}
    for name, source in _listed(given):
        try:
            results = [source] if isinstance(source, Recorded) else [Recorded(path) for path in _folders(os.fspath(source))]
        except (ResultError, OSError) as error:
            problems.append(str(error))
            continue
        for result in results:
            if progress is not None:
                progress(str(result.path))
            try:
                run = opened.get(str(result.path)) or _of(result)
            except (ResultError, OSError) as error:
                problems.append(str(error))
                continue
            opened[run.origin] = run
            group = loose if name is None else named.setdefault(name, [])
            if run not in group:
                group.append(run)
    problems += [line for name, runs in named.items() for line in _mixed(name, runs)]
    groups = _grouped(loose)
    problems += [line for runs in groups for line in _twice("", runs)]
    if problems:
        raise CompareError(problems)
    variants = [Variant(name, _sorted(runs)) for name, runs in named.items()]
    for name, runs in zip(_names(groups, set(named)), groups, strict=True):
        variants.append(Variant(name, _sorted(runs)))
    return variants


def _listed(given: Mapping[str, Source | Sequence[Source]] | Sequence[Source]) -> Iterable[tuple[str | None, Source]]:
    if isinstance(given, Mapping):
        for name, sources in given.items():
            for source in [sources] if isinstance(sources, Recorded | str | os.PathLike) else sources:
                yield name, source
    else:
        yield from map(_named, given)


def _sorted(runs: Iterable[Run]) -> tuple[Run, ...]:
    return tuple(sorted(runs, key=lambda run: run.seed))


def _grouped(runs: Sequence[Run]) -> list[list[Run]]:
    groups: dict[str, list[Run]] = {}
    for run in runs:
        same = json.dumps([run.settings, run.version], sort_keys=True, default=str)
        groups.setdefault(same, []).append(run)
    return list(groups.values())


def _mixed(name: str, runs: Sequence[Run]) -> list[str]:
    """Return what is wrong with runs that are to be one variant."""
    keys = [key for key, _ in differing([Variant("", (run,)) for run in runs])]
    if keys:
        more = f" and {len(keys) - 3} more" if len(keys) > 3 else ""
        return [f"{name}: its runs differ in more than the seed: {', '.join(keys[:3])}{more}; each variant needs a name of its own"]
    return _twice(f"{name}: ", runs)


def _twice(prefix: str, runs: Sequence[Run]) -> list[str]:
    found: dict[int, Run] = {}
    wrong = []
    for run in runs:
        other = found.setdefault(run.seed, run)
        if other is not run:
            what = f"{prefix}{other.origin} and {run.origin} are the same scenario with the same seed, {run.seed}"
            wrong.append(what + ("" if prefix else "; NAME=PATH keeps them apart"))
    return wrong


def _common(names: Sequence[str]) -> str:
    """Return what all names begin with."""
    ends = [at for at, letters in enumerate(zip(*names, strict=False)) if len(set(letters)) > 1]
    return names[0][: min([*ends, *map(len, names)])]


def _names(groups: Sequence[Sequence[Run]], taken: Iterable[str]) -> list[str]:
    """Return a name for each group that no other has: where the same folder names two, its parent's name stands before it."""
    plain = _plain_names(groups)
    longer = [f"{Path(group[0].origin).parent.name}/{name}".removeprefix("/") for group, name in zip(groups, plain, strict=True)]
    twice = {name for name in plain if plain.count(name) > 1} | set(taken)
    used, names = set(taken), []
    for short, long in zip(plain, longer, strict=True):
        first = name = long if short in twice else short
        number = 2
        while name in used:
            name, number = f"{first} ({number})", number + 1
        used.add(name)
        names.append(name)
    return names


def _plain_names(groups: Sequence[Sequence[Run]]) -> list[str]:
    """Return the folder of each group, what the names of its folders begin with, or what is set otherwise in it."""
    paths = [[Path(run.origin) for run in group] for group in groups]
    parents = [{path.parent for path in own} for own in paths]
    changes = differing([Variant("", tuple(group)) for group in groups]) if len(groups) > 1 else []
    names = []
    for at, own in enumerate(paths):
        alone = len(parents[at]) == 1 and not any(parents[at] & other for index, other in enumerate(parents) if index != at)
        begin = re.sub(r"([-_. ]+(seed|s)?|seed)?[-_. =]*\d*$", "", _common([path.name for path in own]))
        if len(own) == 1:
            names.append(own[0].name)
        elif alone and own[0].parent.name:
            names.append(own[0].parent.name)
        elif len(begin) > 1:
            names.append(begin)
        else:
            names.append(", ".join(f"{key}={column[at]}" for key, column in changes[:2]) or own[0].name)
    return names
