"""Scenarios: from files, keywords or typed classes; checked by the native core, changed by `Scenario.replace`."""

from __future__ import annotations

import dataclasses
import html
import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Self

from fanin import _core, files
from fanin._core import ScenarioError

__all__ = ["Check", "Problem", "Scenario", "ScenarioError"]

_LEVELS: Final = 32
"""Depth to which tables and lists may nest, as in the core."""

_MANY_DOTS: Final = 1000
"""No line of a sound TOML file has so many."""

_TOO_DEEP: Final = f"nests too deep; accepted: at most {_LEVELS} levels of tables and lists"

_STEP: Final = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")


@dataclass(frozen=True)
class Problem:
    """One thing wrong with a scenario.

    Attributes
    ----------
    severity : {"error", "warning"}
        Whether the scenario cannot be run, or will probably not do what was meant.
    path : str
        Where, for example ``traffic[2].size``; empty for the document itself.
    line : int or None
        Line in the file, from 1.
    value : str or None
        The value as written.
    message, accepted, suggestion : str or None
        What is wrong, what would be accepted, what was probably meant.
    """

    severity: str
    path: str
    message: str
    line: int | None = None
    value: str | None = None
    accepted: str | None = None
    suggestion: str | None = None

    @classmethod
    def from_core(cls, problem: Mapping[str, Any]) -> Self:
        """Return a problem as the core reports it."""
        known: dict[str, Any] = {field.name: problem.get(field.name) for field in dataclasses.fields(cls)}
        return cls(**known)

    def __str__(self) -> str:
        where = [self.path] if self.path else []
        where += [f"line {self.line}"] if self.line is not None else []
        text = f"{', '.join(where)}: " if where else ""
        text += f"{self.value} {self.message}" if self.value is not None else self.message
        text += f"; accepted: {self.accepted}" if self.accepted else ""
        return text + (f"; {self.suggestion}" if self.suggestion else "")


@dataclass(frozen=True)
class Check:
    """What is wrong with a scenario, and what it is when nothing is.

    Attributes
    ----------
    problems : tuple of Problem
        Errors and warnings, in order of the document.
    resolved : dict or None
        Every parameter with its value; None with errors.
    hash : str or None
        SHA-256 of the resolved scenario; None with errors.
    notes : tuple of str
        What was decided from the content of imported files.
    """

    problems: tuple[Problem, ...]
    resolved: dict[str, Any] | None
    hash: str | None
    notes: tuple[str, ...] = ()

    @property
    def errors(self) -> tuple[Problem, ...]:
        """What has to be changed before it can be run."""
        return tuple(problem for problem in self.problems if problem.severity == "error")

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """What will probably not do what was meant."""
        return tuple(problem for problem in self.problems if problem.severity == "warning")

    @property
    def ok(self) -> bool:
        """Whether it can be run."""
        return not self.errors

    def __str__(self) -> str:
        return "\n".join(f"{problem.severity}: {problem}" for problem in self.problems) or "no problems"


class Scenario:
    """What to simulate: topology, hosts, switches, traffic, telemetry, duration, seed.

    A scenario is a document; nothing in it is checked before `check` or `fanin.run`, which report everything wrong with
    it at once. It never changes: `replace` makes another.

    Parameters
    ----------
    document : mapping, optional
        Tables and values, as a TOML file has them; quantities are strings with units, such as ``"10Gbps"``.
    base_dir : path-like
        The folder from which relative paths in the scenario start.
    **tables
        More of the same; they win over `document`. Values may be the typed classes of `fanin.types`.

    Raises
    ------
    TypeError
        A value is of a type that no document can hold.
    ValueError
        It nests too deep, or a number is not finite.

    Examples
    --------
    >>> base = Scenario.from_file("scenarios/demo.toml")  # doctest: +SKIP
    >>> other = base.replace(seed=2, **{"switch.marking.k": "30 packets"})  # doctest: +SKIP
    """

    __slots__ = ("_base_dir", "_changed", "_data", "_origin", "_text")

    def __init__(self, document: Mapping[str, Any] | None = None, *, base_dir: str | os.PathLike[str] = ".", **tables: Any) -> None:
        if isinstance(document, str | os.PathLike):
            raise TypeError(f"{document!r} is no document; accepted: a mapping; for a file, Scenario.from_file")
        merged = {**(document or {}), **tables}
        if _is_too_deep(merged):
            raise ValueError(f"the scenario {_TOO_DEEP}")
        self._data: dict[str, Any] | None = {key: _plain(value, key) for key, value in merged.items() if value is not None}
        self._text: str | None = None
        self._base_dir = Path(base_dir)
        self._origin: str | None = None
        """The text that it was made from, before `_changed` were replaced."""
        self._changed: tuple[str, ...] = ()

    @classmethod
    def from_toml(cls, text: str, *, base_dir: str | os.PathLike[str] = ".") -> Self:
        """Return the scenario that `text` describes; relative paths in it start from `base_dir`."""
        scenario = cls(base_dir=base_dir)
        scenario._text, scenario._data, scenario._origin = text, None, text
        return scenario

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Self:
        """Return the scenario in a TOML or, by its ending, JSON file; relative paths in it start from its folder.

        Raises
        ------
        OSError
            The file cannot be read, or is a pipe or a device.
        ValueError
            It is not text, or is a JSON file without an object in it.
        ScenarioError
            It is a JSON file that nests too deep.
        """
        path = Path(path)
        try:
            text = files.read_text(path)
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: is not UTF-8 text (byte {error.start})") from None
        if path.suffix != ".json":
            return cls.from_toml(text, base_dir=path.parent)
        try:
            document = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"{path}: is not JSON: {error}") from None
        except RecursionError:
            document = None
        if document is None or _is_too_deep(document):
            _refuse(text, "json", path.parent)
        if not isinstance(document, dict):
            raise ValueError(f"{path}: holds no JSON object")
        return cls(document, base_dir=path.parent)

    @property
    def base_dir(self) -> Path:
        """The folder from which relative paths in the scenario start."""
        return self._base_dir

    def to_dict(self) -> dict[str, Any]:
        """Return the document as nested dictionaries and lists.

        Raises
        ------
        ScenarioError
            It was made from a text that is not TOML.
        """
        if self._data is not None:
            copy: dict[str, Any] = _plain(self._data, "")
            return copy
        import tomllib

        text = self._text or ""
        if any(line.count(".") > _MANY_DOTS for line in text.splitlines()):
            _refuse(text, "toml", self._base_dir)  # tomllib would take minutes for one long key
        try:
            document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            _refuse(text, "toml", self._base_dir)  # its message has the line and is the one users know
            raise ValueError(f"is not TOML: {error}") from None
        except RecursionError:
            _refuse(text, "toml", self._base_dir)
            raise ValueError(_TOO_DEEP) from None
        if _is_too_deep(document):
            _refuse(text, "toml", self._base_dir)
        return document

    def to_toml(self) -> str:
        """Return the document as TOML; the very text that it was made from, if it was made from one."""
        import tomli_w

        return self._text if self._text is not None else tomli_w.dumps(self.to_dict())

    def source(self) -> tuple[str, Literal["toml", "json"]]:
        """Return the document as the core reads it: a text and its format.

        Raises
        ------
        ValueError
            A number is not finite.
        """
        if self._text is not None:
            return self._text, "toml"
        return json.dumps(self._data, ensure_ascii=False, allow_nan=False), "json"

    def check(self) -> Check:
        """Return everything that is wrong with the scenario; never raises for its contents."""
        text, kind = self.source()
        try:
            found = _core.check(text, kind, str(self._base_dir))
        except ScenarioError as error:
            return Check(self._located(error.problems), None, None)
        problems = self._located(found["problems"])
        resolved = json.loads(found["resolved"]) if found.get("resolved") else None
        return Check(problems, resolved, found.get("hash"), tuple(found.get("notes") or ()))

    def _located(self, problems: Sequence[Mapping[str, Any]]) -> tuple[Problem, ...]:
        """Return problems with the lines of the text that the scenario was made from, but for what was replaced since."""
        found = [Problem.from_core(problem) for problem in problems]
        if self._text is not None or self._origin is None:
            return tuple(found)

        def replaced(path: str) -> bool:
            return any(path == key or path.startswith((f"{key}.", f"{key}[")) for key in self._changed)

        # What is wrong in another file stands where the path leads, before a bracket with that file.
        places = _core.lines(self._origin, [problem.path.split(" (")[0] for problem in found])
        located = []
        for problem, place in zip(found, places, strict=True):
            line = place if problem.path and not replaced(problem.path) else None
            located.append((line, problem if problem.line is not None else dataclasses.replace(problem, line=line)))
        return tuple(problem for _, problem in sorted(located, key=lambda entry: (entry[0] is None, entry[0] or 0)))

    @property
    def resolved(self) -> dict[str, Any]:
        """Every parameter that has an effect, with its value, defaults included.

        Raises
        ------
        ScenarioError
            The scenario has errors.
        """
        text, kind = self.source()
        found = _core.check(text, kind, str(self._base_dir))
        _raise_problems(found)
        resolved: dict[str, Any] = json.loads(found["resolved"])
        return resolved

    def replace(self, changes: Mapping[str, Any] | None = None, /, **more: Any) -> Self:
        """Return a scenario that differs in the given values.

        A key is a path, such as ``switch.marking.k`` or ``traffic[0].load``; tables on the way that are not there are
        made, with the kind that is the default. A table is merged key by key into the one that is there, unless it has
        another ``kind``: then it takes its place. None removes a key. A bare kind (``marking = "threshold"``) becomes a
        table when one of its keys is given.

        Parameters
        ----------
        changes, **more : mapping
            Path → value.

        Raises
        ------
        ValueError
            A path runs through a value that is no table or list, or past the end of a list.

        Examples
        --------
        >>> Scenario(seed=1, switch={"marking": "none"}).replace(seed=2, **{"switch.latency": "1us"}).to_dict()
        {'seed': 2, 'switch': {'marking': 'none', 'latency': '1us'}}
        """
        document = self.to_dict()
        made: list[tuple[list[str | int], dict[str, Any]]] = []
        for path, value in {**(changes or {}), **more}.items():
            made += _set(document, path, None if value is None else _plain(value, path))
        resolved = self.check().resolved if any("kind" not in table for _, table in made) else None
        for way, table in made:
            default: Any = resolved
            for step in way:
                default = _entry(default, step)
            kind = _entry(default, "kind")
            if table and kind is not None:
                table.setdefault("kind", kind)
        scenario = type(self)(document, base_dir=self._base_dir)
        scenario._origin, scenario._changed = self._origin, (*self._changed, *(changes or {}), *more)
        return scenario

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of what stands at the top of the document."""
        return iter(self.to_dict())

    def keys(self) -> list[str]:
        """Return the names of what stands at the top of the document, so that ``dict(scenario)`` is the document."""
        return list(self)

    def __getitem__(self, path: str) -> Any:
        """Return what the document has at a path, such as ``"switch.marking.k"`` or ``"traffic[0].load"``.

        `resolved` has defaults, too.

        Raises
        ------
        KeyError
            It has nothing there.
        """
        found: Any = self.to_dict()
        for step in _steps(path):
            try:
                found = found[step]
            except (KeyError, IndexError, TypeError):
                raise KeyError(path) from None
        return found

    def __contains__(self, path: object) -> bool:
        try:
            return isinstance(path, str) and self[path] is not None
        except (KeyError, ValueError):
            return False

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Scenario):
            return NotImplemented
        return self._base_dir == other._base_dir and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self._base_dir, json.dumps(self.to_dict(), sort_keys=True, default=str)))

    def __repr__(self) -> str:
        if self._text is not None:
            return f"Scenario.from_toml({self._text[:60]!r}{'…' if len(self._text) > 60 else ''})"
        return f"Scenario({', '.join(self._data or {})})"

    def _repr_html_(self) -> str:
        check = self.check()
        state = f"{len(check.errors)} errors" if check.errors else f"valid, {str(check.hash)[:16]}"
        items = "".join(f"<li>{html.escape(f'{problem.severity}: {problem}')}</li>" for problem in check.problems)
        name = (check.resolved or {}).get("name", "Scenario")
        return (
            f"<div><b>{html.escape(str(name))}</b> – {html.escape(state)}<ul>{items}</ul>"
            f"<details><summary>TOML</summary><pre>{html.escape(self.to_toml())}</pre></details></div>"
        )


def _is_too_deep(document: Any) -> bool:
    level = [document]
    for _ in range(_LEVELS):
        entries = [value.values() if isinstance(value, Mapping) else value for value in level]
        level = [value for inside in entries for value in inside if isinstance(value, Mapping | list | tuple)]
        if not level:
            return False
    return True


def _refuse(text: str, kind: Literal["toml", "json"], base_dir: Path) -> None:
    """Raise with what the core says is wrong with a text, lines included; do nothing if nothing is."""
    _raise_problems(_core.check(text, kind, str(base_dir)))


def _raise_problems(found: Mapping[str, Any]) -> None:
    if not found.get("resolved"):
        error = ScenarioError((found.get("rendered") or "the scenario has errors").rstrip())
        error.problems = list(found["problems"])
        raise error


def _plain(value: Any, path: str) -> Any:
    """Return `value` as a document holds it: typed classes as tables, None left out."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{path}: {value} is not a finite number")
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(entry, f"{path}.{key}") for key, entry in value.items() if entry is not None}
    if isinstance(value, list | tuple):
        return [_plain(entry, f"{path}[{index}]") for index, entry in enumerate(value)]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "to_dict"):
        return _plain(value.to_dict(), path)
    raise TypeError(f"{path}: a {type(value).__name__} cannot be part of a scenario")


def _steps(path: str) -> list[str | int]:
    steps: list[str | int] = []
    position = 0
    while position < len(path):
        match = _STEP.match(path, position)
        if match is None:
            break
        steps.append(int(match[2]) if match[2] is not None else match[1])
        position = match.end()
    if not steps or position < len(path) or path.startswith("."):
        raise ValueError(f"'{path}' is not the path of a value; write it like switch.marking.k or traffic[0].load")
    return steps


def _entry(place: Any, step: str | int) -> Any:
    """Return what is at `step` in a table or list; None if nothing is."""
    if isinstance(place, list):
        return place[step] if isinstance(step, int) and step < len(place) else None
    return place.get(step) if isinstance(place, dict) else None


def _set(document: dict[str, Any], path: str, value: Any) -> list[tuple[list[str | int], dict[str, Any]]]:
    """Set the value at `path`; return the tables that were made on the way, with their paths."""
    *way, last = _steps(path)
    done: list[str | int] = []
    made: list[tuple[list[str | int], dict[str, Any]]] = []
    place: Any = document
    parent: Any = None
    step: Any = None
    for following in [*way, last]:
        if isinstance(place, str) and isinstance(following, str) and parent is not None:
            parent[step] = place = {"kind": place}  # a bare kind, and now one of its keys
        key = int(following) if isinstance(place, list) and isinstance(following, str) and following.isdigit() else following
        if isinstance(place, list) and isinstance(key, int):
            if key >= len(place):
                raise ValueError(f"'{path}': there is no entry {key}; the list has {len(place)}")
        elif not isinstance(place, dict) or not isinstance(key, str):
            raise ValueError(f"'{path}': '{_written(step)}' is {_what(place)}, there is no '{key}' in it")
        parent, step = place, key
        done.append(key)
        if isinstance(place, dict):
            place = place.get(key)
            if place is None and len(done) <= len(way):
                place = parent[step] = {}
                made.append((done.copy(), place))
        else:
            place = place[key]
    _put(parent, step, value)
    return made


def _put(parent: Any, key: Any, value: Any) -> None:
    old = parent[key] if isinstance(parent, list) else parent.get(key)
    if value is None:
        parent.pop(key, None) if isinstance(parent, dict) else parent.pop(key)
    elif isinstance(old, dict) and isinstance(value, dict) and value.get("kind", old.get("kind")) == old.get("kind"):
        for inner, entry in value.items():
            _put(old, inner, entry)
    else:
        parent[key] = value


def _written(step: Any) -> str:
    return "the scenario" if step is None else str(step)


def _what(value: Any) -> str:
    return "a list" if isinstance(value, list) else "a table" if isinstance(value, dict) else f"the value {value!r}"
