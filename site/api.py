"""Pages of the Python package, name by name, from its signatures and docstrings."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import fanin

DOCS: Final = Path(__file__).resolve().parents[1] / "docs"
PAGES: Final = {
    "runs": ("Runs and results", "run load Result ProgressState OutputError ResultError __version__"),
    "scenarios": ("Scenarios", "Scenario Check Problem ScenarioError types"),
    "traces": ("Analyses of traces", "analyze Analysis AnalysisProgress TraceError"),
    "comparisons": ("Sweeps and comparisons", "sweep Sweep compare Comparison CompareError"),
    "remedies": ("What would have helped", "whatif WhatIf"),
    "explanations": ("Explanations, pauses, regions", "Explanation CapturedExplanation PauseTree pauses regions"),
    "statistics": ("Statistics and metrics", "statistics metrics"),
    "papers": ("Figures of papers", "reproduce"),
}
"""Pages below `api/`: title, and the names of the package that each has."""
WHERE: Final = {name: page for page, (_, names) in PAGES.items() for name in names.split()}
SECTION: Final = re.compile(r"^([A-Z]\w+)\n-{3,}\n", re.MULTILINE)
PREFIX: Final = re.compile(r"\b(?:collections\.abc|fanin(?:\.\w+)+|typing|pathlib|polars\.\w+(?:\.\w+)*)\.(?=[A-Za-z])")
"""What defines a type: not written in a signature."""
WIDE: Final = 96


def plain(annotation: Any) -> str:
    """Return a type as one writes it, without quotes and the modules that define it."""
    named = getattr(annotation, "__forward_arg__", annotation)
    text = named if isinstance(named, str) else inspect.formatannotation(named)
    return PREFIX.sub("", text[1:-1] if text[:1] in ("'", '"') else text)


def signature(name: str, thing: Any) -> str:
    """Return how something is called, on one line or with a line for each parameter."""
    try:
        called = inspect.signature(thing)
    except (TypeError, ValueError):  # a class of the core
        return name
    parameters = []
    kinds = [parameter.kind for parameter in called.parameters.values()]
    for parameter in called.parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parameters and parameter.VAR_POSITIONAL not in kinds:
            parameters.append("*")
        star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        kind = "" if parameter.annotation is parameter.empty else f": {plain(parameter.annotation)}"
        value = "" if parameter.default is parameter.empty else f"{' = ' if kind else '='}{parameter.default!r}"
        parameters.append(f"{star}{parameter.name}{kind}{value}")
    gives = "" if called.return_annotation in (called.empty, None, "None") else f" -> {plain(called.return_annotation)}"
    line = f"{name}({', '.join(parameters)}){gives}"
    if len(line) <= WIDE or not parameters:
        return line
    return f"{name}(\n" + "".join(f"    {parameter},\n" for parameter in parameters) + f"){gives}"


def linked(text: str, page: str) -> str:
    """Return text with names of the package and pages of the documentation as links."""

    def name(found: re.Match[str]) -> str:
        to = found[1].removeprefix("fanin.")
        first = to.partition(".")[0]
        if first not in WHERE:
            return found[0]
        other = "" if WHERE[first] == page else f"{WHERE[first]}.md"
        return f"[`{found[1]}`]({other}#{first})"

    def document(found: re.Match[str]) -> str:
        return f"[{found[1]}](../{found[1]}.md)" if (DOCS / f"{found[1]}.md").is_file() else found[0]

    text = re.sub(r"``([^`]+)``", r"`` \1 ``", text)  # no name of the package
    text = re.sub(r"(?<!`)`([\w.]+)`(?!`)", name, text)
    text = re.sub(r"`` ([^`]+) ``", r"`\1`", text)
    return re.sub(r"\bdocs/([\w/-]+)\.md\b", document, text)


def table(head: str, text: str, page: str) -> Iterator[str]:
    """Yield a section of parameters, attributes or errors as a table."""
    entries = re.split(r"^(?=\S)", text, flags=re.MULTILINE)
    yield f"| {head} | |\n|---|---|\n"
    for entry in filter(str.strip, entries):
        first, _, rest = entry.partition("\n")
        names, _, kind = first.partition(" : ")
        words = linked(" ".join(inspect.cleandoc(rest).split()), page)
        of = f"*{kind}*. " if kind else ""
        cell = (of + words).replace("|", "&#124;") if "`" not in kind else of + words
        shown = ", ".join(f"`{name.strip()}`" for name in names.split(","))
        yield f"| {linked(shown, page) if head in ('raises', 'returns') else shown} | {cell} |\n"
    yield "\n"


def body(thing: Any, page: str) -> Iterator[str]:
    """Yield a docstring: its text, then its sections."""
    text = re.sub(r" *# doctest:.*", "", inspect.getdoc(thing) or "")
    if isinstance(thing, str):
        text = "The version of the package, as `fanin --version` says it."
    head, *sections = SECTION.split(text)
    for paragraph in filter(None, head.strip().split("\n\n")):
        yield f"```python\n{paragraph}\n```\n\n" if paragraph.startswith(">>>") else f"{linked(paragraph, page)}\n\n"
    for title, content in zip(sections[::2], sections[1::2], strict=True):
        if title == "Examples":
            yield f"```python\n{content.strip()}\n```\n\n"
        else:
            yield from table({"Raises": "raises", "Returns": "returns"}.get(title, title.lower()), content, page)


def members(thing: Any) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties of a class, or functions and classes of a module."""
    if isinstance(thing, ModuleType):
        for name in getattr(thing, "__all__", ()):
            found = getattr(thing, name)
            if found is not getattr(fanin, name, None) and (inspect.isfunction(found) or inspect.isclass(found)):
                yield name, found
    elif inspect.isclass(thing) and thing.__module__.startswith("fanin."):
        for base in reversed(thing.__mro__[:-1]):
            for name, found in vars(base).items():
                if name.startswith("_") or not base.__module__.startswith("fanin"):
                    continue
                got = found.__func__ if isinstance(found, classmethod | staticmethod) else found
                if inspect.isfunction(got) or isinstance(got, property | functools.cached_property):
                    yield name, got


def entry(name: str, thing: Any, page: str) -> Iterator[str]:
    """Yield what the page says of a name, and of its parts."""
    yield f"## {name} {{ #{name.strip('_')} }}\n\n"
    if isinstance(thing, ModuleType) and not callable(thing):
        yield f"Module `fanin.{name}`. "
    elif not isinstance(thing, str):
        yield f"```python\n{signature(f'fanin.{name}', thing)}\n```\n\n"
    yield from body(thing, page)
    if name == "types":
        yield "Its classes are the tables of the [scenario reference](../scenario.md): the same names and keys.\n\n"
        return
    parts: dict[str, Any] = dict(members(thing))
    for part, found in sorted(parts.items()):
        yield f"### {name}.{part} {{ #{name}.{part} }}\n\n"
        if isinstance(found, property | functools.cached_property):
            function = found.fget if isinstance(found, property) else found.func
            gives = inspect.signature(function).return_annotation if function else inspect.Signature.empty
            yield f"```python\n.{part}{'' if gives is inspect.Signature.empty else f': {plain(gives)}'}\n```\n\n"
        else:
            before = f"fanin.{name}." if isinstance(thing, ModuleType) else "."
            yield f"```python\n{signature(before + part, found)}\n```\n\n"
        yield from body(found, page)


def summary(thing: Any) -> str:
    """Return the first sentence of a docstring."""
    text = "The version of the package." if isinstance(thing, str) else inspect.getdoc(thing) or ""
    return re.split(r"(?<=[.])\s", text.partition("\n\n")[0].replace("\n", " "))[0]


def pages() -> dict[str, str]:
    """Return the pages by their place below the documentation."""
    rows = []
    made = {}
    for page, (title, names) in PAGES.items():
        first = f"# Python: {title[0].lower()}{title[1:]}\n\n"
        first += f"Signatures, units and errors of {', '.join(f'`{name}`' for name in names.split())}. "
        first += "[All names](../api.md); [how they go together](../python.md).\n\n"
        made[f"api/{page}.md"] = first + "".join(line for name in names.split() for line in entry(name, getattr(fanin, name), page))
        for name in names.split():
            words = re.sub(r"\]\((\.\./)?", lambda up: "](" if up[1] else "](api/", linked(summary(getattr(fanin, name)), ""))
            rows.append(f"| [`fanin.{name}`](api/{page}.md#{name.strip('_')}) | {words} |\n")
    head = "# Python, name by name\n\nEvery public name of the package `fanin`, from its docstring: how it is called, what it "
    head += "gives, what it raises. [Python](python.md) shows how they go together.\n\n| name | what |\n|---|---|\n"
    made["api.md"] = head + "".join(rows)
    return made
