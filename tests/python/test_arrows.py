"""Which packages of `fanin` know of which: arrows between them never come back to where they began."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[2] / "python" / "fanin"

Arrows = dict[str, dict[str, str]]
"""Package → package that it imports → a place where it does."""


def imported(tree: ast.Module, inside: str) -> Iterator[tuple[str, int]]:
    """Full names of all that a module imports, with their lines: in functions and for types, too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = inside.split(".")[: len(inside.split(".")) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((f"{origin}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "import_module":
            name = node.args[0]
            if isinstance(name, ast.Constant):
                yield str(name.value), node.lineno
            elif isinstance(name, ast.JoinedStr) and isinstance(name.values[0], ast.Constant):
                yield str(name.values[0].value), node.lineno  # a table of names: only its own package's are there


def arrows(root: Path) -> Arrows:
    found: Arrows = defaultdict(dict)
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        package = parts[0] if parts != ("__init__",) else ""
        inside = ".".join(["fanin", *parts[:-1]])
        for name, line in imported(ast.parse(path.read_text(encoding="utf-8")), inside):
            first, _, rest = name.partition(".")
            if first != "fanin":
                continue
            target = rest.split(".")[0]
            known = target and ((root / target).is_dir() or (root / f"{target}.py").is_file() or target == "_core")
            to = target if known else ""
            if to != package:
                found[package].setdefault(to, f"{path.relative_to(root)}:{line}")
    return found


def circle(found: Arrows) -> list[str]:
    """A way along arrows that ends where it begins; none if there is no such way."""
    done: set[str] = set()

    def search(package: str, way: list[str]) -> list[str]:
        if package in way:
            return [*way[way.index(package) :], package]
        if package in done:
            return []
        for to in found.get(package, {}):
            if met := search(to, [*way, package]):
                return met
        done.add(package)
        return []

    return next((met for package in sorted(found) if (met := search(package, []))), [])


def told(found: Arrows, met: list[str]) -> list[str]:
    return [f"{a or 'fanin'} -> {b or 'fanin'} ({found[a][b]})" for a, b in pairwise(met)]


def test_packages_form_no_circle() -> None:
    found = arrows(ROOT)
    assert len(found) > 10
    assert not (met := circle(found)), told(found, met)


def test_a_circle_behind_lazy_imports_is_seen(tmp_path: Path) -> None:
    for name, text in {
        "low/__init__.py": "def f():\n    from fanin.high import deep\n",
        "middle/one.py": "from fanin import low\n",
        "high/deep.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..middle import one\n",
        "other.py": "from importlib import import_module\nimport_module('fanin.low')\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    found = arrows(tmp_path)
    assert told(found, circle(found)) == [
        "high -> middle (high/deep.py:3)",
        "middle -> low (middle/one.py:1)",
        "low -> high (low/__init__.py:2)",
    ]
    assert found["other"] == {"low": "other.py:2"}
