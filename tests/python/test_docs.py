"""The pages name what there is."""

from __future__ import annotations

import inspect
import json
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import fanin
from fanin import _core, benchmark
from fanin.analysis.settings import DECLARED
from fanin.cli import app
from fanin.reproduce import figures
from fanin.tables import schemas
from fanin.tables.recorded import Recorded

ROOT = Path(__file__).parents[2]
COMMANDS: dict[str, Any] = getattr(get_command(app), "commands")  # noqa: B009 (a group's, which its type does not say)


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_option_is_on_the_page_and_no_other(command: str) -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    there = {
        option
        for parameter in COMMANDS[command].params
        for option in [*parameter.opts, *parameter.secondary_opts]
        if option.startswith("-") and option != "--help"
    }
    section = page.split(f"\n## fanin {command}\n")[-1].split("\n## ")[0] if f"\n## fanin {command}\n" in page else ""
    documented = set(re.findall(r"`(--?[a-z-]+)", "\n".join(line for line in section.splitlines() if line.startswith("| `-"))))
    assert documented == there
    assert f"`fanin {command}" in page


@pytest.mark.parametrize("command", ["", *sorted(COMMANDS)])
def test_the_help_of_each_command_names_a_page(command: str) -> None:
    given: Any = COMMANDS[command] if command else get_command(app)
    pages = re.findall(r"[\w/-]+\.md", given.epilog.split("Read on: ")[1])
    assert pages
    assert [page for page in pages if not (ROOT / page).is_file()] == []


def test_every_table_that_can_be_converted_is_on_the_page() -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    (line,) = [line for line in page.splitlines() if line.startswith("| `--table TABLE` |")]
    assert set(re.findall(r"`([a-z]+)`", line)) == set(schemas.SCHEMAS)


def test_every_workload_is_on_the_page() -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    for name in benchmark.WORKLOADS:
        assert f"`{name}`" in page


def test_every_public_name_of_a_result_is_on_the_page() -> None:
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    for name, member in [*vars(fanin.Result).items(), *vars(Recorded).items()]:
        if name.startswith(("_", "scan_")) or name in ("path", "complete"):
            continue
        assert re.search(rf"\b{name}\b", page), name
        if inspect.isfunction(member):
            for parameter in inspect.signature(member).parameters.values():
                shown = parameter.name in ("self", "options", "path", "table", "plot") or re.search(rf"\b{parameter.name}\b", page)
                assert shown, f"{name}({parameter.name})"
    for name in fanin.__all__:
        if isinstance(getattr(fanin, name), type) and issubclass(getattr(fanin, name), Exception):
            assert f"`fanin.{name}`" in page


@pytest.mark.parametrize("thing", [getattr(fanin, name) for name in fanin.__all__ if name != "__version__"])
def test_every_public_thing_has_a_docstring_and_so_have_its_parts(thing: Any) -> None:
    assert inspect.getdoc(thing)
    for name, member in vars(thing).items() if inspect.isclass(thing) else ():
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property | classmethod)):
            assert inspect.getdoc(member), name


@cache
def places(page: Path) -> set[str]:
    """Return what a link to `page` may have behind `#`: names of its headings."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    titles = [re.sub(r"\]\([^)]*\)", "", title).lower() for title in re.findall(r"^#+ (.*?) *$", text, re.MULTILINE)]
    names = [re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in titles]
    seen: dict[str, int] = {}
    for name in names:
        seen[name] = seen.get(name, -1) + 1
    return {f"{name}-{k}" if k else name for name, last in seen.items() for k in range(last + 1)}


@pytest.mark.parametrize("page", sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]), ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)]*))?\)", page.read_text(encoding="utf-8"))
    assert [link for link, _ in links if not (page.parent / link).exists()] == []
    deeper = [(page.parent / link if link else page, place) for link, place in links if place or not link]
    assert [f"{to.name}#{place}" for to, place in deeper if to.suffix == ".md" and place not in places(to)] == []


@pytest.mark.parametrize("folder", ["crates", "python", "examples", "benches", "dataplane", "site"])
def test_pages_that_sources_name_are_there(folder: str) -> None:
    """With the heading, where one is named: in messages, notes of rows, help and comments."""
    sources = [
        path for path in (ROOT / folder).rglob("*") if path.suffix in {".rs", ".py", ".mjs", ".js", ".c", ".h", ".sv", ".p4"}
    ]
    named = {
        (page, place)
        for path in sources
        if "node_modules" not in path.parts
        for page, place in re.findall(r"(?<![\w/])docs/([\w/-]+\.md)(?:#([\w-]+))?", path.read_text(encoding="utf-8"))
        if page not in ELSEWHERE
    }
    pages = {page: ROOT / "docs" / page for page, _ in named}
    assert sorted(page for page, path in pages.items() if not path.is_file()) == []
    assert sorted(f"{page}#{place}" for page, place in named if place and place not in places(pages[page])) == []


ELSEWHERE = {"formats/NAME.md", "user_guide/event_processors/intro.md"}
"""Pages of other projects, and of a format without its name."""

HEADINGS = ["What it does", "Source", "Parameters", "What it costs", "Where it differs", "Checked by"]
MECHANISMS = [*ROOT.glob("docs/switch/*.md"), *ROOT.glob("docs/transports/*.md")]


@pytest.mark.parametrize("page", sorted(page for page in MECHANISMS if page.name != "rivals.md"), ids=lambda page: page.stem)
def test_pages_of_mechanisms_and_transports_have_the_same_headings(page: Path) -> None:
    """One comparison, of RIMM with its rivals, is no mechanism's page."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    title, *sections = re.split(r"^## ", text, flags=re.MULTILINE)
    assert [section.partition("\n")[0] for section in sections] == HEADINGS
    assert all(section.partition("\n")[2].strip() for section in sections), "a heading without words"
    first = title.partition("\n")[2].strip()
    assert 5 <= len(first.split()) <= 60, "what a reader gets here, in a sentence or two"


def test_pages_of_mechanisms_have_the_costs_of_the_page_on_performance() -> None:
    """Which is measured: change the other pages with it."""
    page = (ROOT / "docs" / "dev" / "performance-log.md").read_text("utf-8").split("\n## What a feature costs\n")[1]
    measured = re.findall(r"^\| `([a-z0-9-]+)` \|[^|]*\| \d+ \| ([\d.]+) \|", page, re.MULTILINE)
    said = [
        (page.name, row, ratio)
        for page in MECHANISMS
        for ratio, row in re.findall(r"([\d.]+) times the instructions of a plain hop \(`([a-z0-9-]+)`", page.read_text("utf-8"))
    ]
    assert len(said) >= 15
    assert [(page, row) for page, row, ratio in said if (row, ratio) not in measured] == []


def test_each_paper_has_its_figures_on_one_page() -> None:
    """A figure's command stands on the page of its paper, or of the control that is the paper's subject."""
    pages = [*ROOT.glob("docs/papers/*.md"), *MECHANISMS]
    for paper in sorted({figure.id.partition("/")[0] for figure in figures()} - {"s-ecn"}):
        naming = re.compile(rf"^fanin reproduce {paper}\b", re.MULTILINE)
        assert len([page for page in pages if naming.search(page.read_text(encoding="utf-8"))]) == 1, paper


def names_in_scenarios(node: Any) -> set[str]:
    """Every kind, policy and key that a scenario may name, by its JSON Schema."""
    if isinstance(node, dict):
        own = {node["const"]} if isinstance(node.get("const"), str) else set()
        own |= set(node.get("properties", {}))
        return own.union(*(names_in_scenarios(value) for value in node.values()))
    return set().union(*(names_in_scenarios(value) for value in node)) if isinstance(node, list) else set()


def test_what_is_not_here_is_not_here() -> None:
    page = (ROOT / "docs" / "not-here.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| ")]
    absent = {name.lower() for row in rows for name in re.findall(r"\*\*([^*]+)\*\*", row)}
    assert {"bbr", "quic", "mptcp", "dragonfly", "cut-through"} <= absent
    there = names_in_scenarios(json.loads(_core.schema()))
    assert {"cubic", "fat_tree", "drill"} <= there
    assert {name for name in there if name.lower().replace("_", "-") in absent} == set()


def test_the_citation_is_of_this_version() -> None:
    cited = re.findall(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    assert cited == [cargo["workspace"]["package"]["version"]]


def test_the_repository_has_one_address_or_none() -> None:
    """None is known yet. What a publisher sets stands in CONTRIBUTING.md."""
    text = {name: (ROOT / name).read_text(encoding="utf-8") for name in ("pyproject.toml", "Cargo.toml", "site/zensical.toml")}
    project, cargo, site = (tomllib.loads(content) for content in text.values())
    cited = re.findall(r"^repository-code: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    given = {
        "pyproject.toml": project["project"].get("urls", {}).get("Repository"),
        "Cargo.toml": cargo["workspace"]["package"].get("repository"),
        "CITATION.cff": cited[0] if cited else None,
        "site/zensical.toml": site["project"].get("repo_url"),
    }
    assert len(set(given.values())) == 1, given
    section = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("\n## Publishing\n")[1].split("\n## ")[0]
    assert set(re.findall(r"^\| `(\S+)` \|", section, re.MULTILINE)) == {*given, "SECURITY.md"}


def test_hooks_run_what_make_test_runs() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("$(BIN)", ".venv/bin")
    hooks = re.findall(
        r"^ +entry: (?:env \S+ )?(.+)$", (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(hooks) == 4
    assert [hook for hook in hooks if f" {hook}\n" not in makefile] == []


def test_the_readme_has_the_command_that_ci_runs() -> None:
    """One command runs the main job, one passes the tests."""
    block = (ROOT / "README.md").read_text(encoding="utf-8").split("```sh\n")[1].split("```")[0]
    assert re.findall(r"^make (\S+)", block, re.MULTILINE) == ["demo", "test"]
    assert (ROOT / ".ci" / "run").read_text(encoding="utf-8").rstrip().endswith("exec make test")


def test_what_ci_installs_is_what_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["scripts"] == {"fanin": "fanin.cli:app"}
    assert all("<" in requirement or "==" in requirement for requirement in project["project"]["dependencies"])


def test_settings_of_an_analysis_are_told_one_by_one() -> None:
    shown = inspect.signature(fanin.analyze).parameters
    assert list(shown) == ["source", *DECLARED, "progress"]
    text = inspect.getdoc(fanin.analyze) or ""
    parameters = text.partition("Parameters\n")[2].partition("Returns\n")[0]
    told = [name for line in re.findall(r"^(\w.*) : ", parameters, re.MULTILINE) for name in line.split(", ")]
    assert told == list(shown)
    options = {option for parameter in COMMANDS["analyze"].params for option in parameter.opts}
    assert {f"--{name.replace('_', '-')}" for name in DECLARED} <= options
    with pytest.raises(TypeError, match="unexpected keyword argument 'speed'"):
        fanin.analyze("trace.csv", speed="10Gbps")  # type: ignore[call-arg]
