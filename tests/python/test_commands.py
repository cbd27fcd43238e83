"""Commands on pages are run, or say why not; options, files and targets that they name are there in any case."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import commands
from commands import PAGES, ROOT, Block, Ran
from fanin.cli import app
from fanin.reproduce import figures

GROUP: Any = get_command(app)
BLOCKS = [block for page in PAGES for block in commands.blocks(page)]
GIVEN = [block for block in BLOCKS if block.language in ("console", "sh")]
RUN = [page for page in PAGES if any(block.page == page and block.mark != "not run" for block in GIVEN)]
WRITE = os.environ.get("FANIN_WRITE") == "1"


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def test_blocks_of_commands_are_marked() -> None:
    plain = [block for block in BLOCKS if block.language in ("", "bash", "shell", "text")]
    bare = [block.where for block in plain if commands.names_a_command(block.text)]
    assert bare == [], "blocks of commands are `console` or `sh`; what cannot be run has <!-- not run: WHY --> above"
    assert [block.where for block in GIVEN if block.mark == "not run" and len(block.words) < 8] == []
    assert len(RUN) >= 20


def wrong_calls(block: Block) -> Iterator[str]:
    """Yield what commands of a block name that is not there: commands, options, figures, targets, files of the project."""
    script = "".join(given for given, _ in block.commands)
    for words in commands.calls(script, "fanin"):
        if not words or words[0].startswith("-"):
            continue
        command = f"fanin {words[0]}"
        if words[0] not in GROUP.commands:
            yield command
            continue
        parameters = GROUP.commands[words[0]].params
        options = {option for parameter in parameters for option in [*parameter.opts, *parameter.secondary_opts]}
        own = takewhile(lambda word: word != "--", words[1:])  # what follows is another program's
        given = [word.partition("=")[0] for word in own if re.match(r"--?[a-z]", word)]
        yield from (f"{command} {option}" for option in given if option not in options | {"--help", "-h"})
        if words[0] == "reproduce":
            asked = [word for before, word in pairwise(words) if before != "-o" and not word.startswith("-")]
            yield from (word for word in asked if not any(f"{figure.id}/".startswith(f"{word}/") for figure in figures()))
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for words in commands.calls(script, "make"):
        if "-C" not in words and Path(block.page).parent.name not in ("ns3", "htsim"):
            plain = [word for word in words if "=" not in word and not word.startswith("install-")]
            yield from (f"make {word}" for word in plain if word not in targets)
    yield from (word for word in re.findall(r"(?<![\w./])(?:scenarios|examples)/[\w./-]+\w", script) if not (ROOT / word).exists())


def test_commands_name_what_there_is() -> None:
    assert [f"{block.where}: {wrong}" for block in GIVEN for wrong in wrong_calls(block)] == []


def test_what_is_not_there_is_found(tmp_path: Path) -> None:
    text = "fanin run scenarios/gone.toml --no-such && make nothing\nfanin reproduce s-ecn/fig1 -o out | fanin fly\n"
    block = Block(tmp_path / "x.md", "sh", "", "", text, 0)
    assert list(wrong_calls(block)) == [
        "fanin run --no-such",
        "s-ecn/fig1",
        "fanin fly",
        "make nothing",
        "scenarios/gone.toml",
    ]


@pytest.mark.parametrize(
    ("block", "wrong"),
    [
        ("```console\n$ echo a; echo b\na\nb\n```\n", 0),
        ("```console\n$ seq 9\n1\n…\n9\n$ echo took 3.1 s\ntook … s\n```\n", 0),
        ("```console\n$ echo a\nb\n```\n", 1),
        ("```console\n$ echo a\n```\n", 1),
        ("```console\n$ seq 9\n1\n…\n8\n```\n", 1),
        ("```console\n$ false\n```\n", 1),
        ("```sh\nfalse | true\n```\n", 1),
        ("```sh\necho 1 > a\ntest -e a\n```\n```sh\ntest -e a -a -d scenarios\n```\n", 0),
        ("<!-- not run: no network here -->\n```sh\nfalse\n```\n", 0),
        ("<!-- file: b -->\n```toml\nx = 1\n```\n\n```console\n$ cat \\\n  b\nx = 1\n```\n", 0),
    ],
)
def test_a_block_that_is_not_true_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: str, wrong: int) -> None:
    monkeypatch.setattr(commands, "ROOT", ROOT)
    page = tmp_path / "page.md"
    page.write_text(block, encoding="utf-8")
    monkeypatch.setattr(Block, "where", "page.md")
    folder = tmp_path / "folder"
    folder.mkdir()
    assert len(commands.run(page, folder).wrong) == wrong


def test_what_is_shown_is_written_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ echo done in 3.2 s\nold\n$ echo b\n…\n```\n", encoding="utf-8")
    monkeypatch.setattr(Block, "where", "page.md")
    folder = tmp_path / "folder"
    folder.mkdir()
    assert len(commands.run(page, folder, write=True).wrong) == 1
    assert page.read_text(encoding="utf-8") == "```console\n$ echo done in 3.2 s\ndone in … s\n$ echo b\n…\n```\n"


def test_an_excerpt_stays_one() -> None:
    printed = "Head\n\n a    1   2\n b    3   4\n c    5   6\n"
    assert commands.refreshed("…\n b    3   9\n…\n", printed) == "…\n b    3   4\n…\n"
    assert commands.refreshed("Head\n…\n c    0\n", printed) == "Head\n…\n c    5   6\n"
    assert commands.refreshed("…\n d    3\n", printed) == printed
    assert commands.refreshed(" b    3   9\n", printed) == printed


@pytest.mark.parametrize("page", ["congestion-control", "mechanism"])
def test_a_walk_through_begins_as_its_tutorial_shows(tmp_path: Path, page: str) -> None:
    """`.ci/drills here` applies one walk-through to the project: here to a copy."""
    shutil.copytree(ROOT / ".ci", tmp_path / ".ci")
    for crate in ("transport", "switch"):
        shutil.copytree(ROOT / "crates" / crate, tmp_path / "crates" / crate)
    for file in ("CONTRIBUTING.md", "Cargo.toml"):
        shutil.copy2(ROOT / file, tmp_path)
    given = [block for block in commands.blocks(ROOT / "docs" / "tutorials" / f"{page}.md") if ".ci/drills here" in block.text]
    ((script, shown),) = [found for found in given[0].commands if ".ci/drills" in found[0]]
    status, printed = commands.command(script, tmp_path)
    assert (status, commands.tidy(printed)) == (0, commands.tidy(shown))
    for line in commands.tidy(printed):
        made = (tmp_path / line.split()[1]).read_text(encoding="utf-8")
        assert "swiftlike" in made.lower() or "sidestep" in made.lower() or "heads" in made.lower()
    again, _ = commands.command(script, tmp_path)
    assert again == 1, "the files are there already"
    unknown, words = commands.command("python3 .ci/drills here nothing", tmp_path)
    assert unknown == 1
    assert "Adding a host transport" in words


def test_the_picture_of_the_demo_is_what_it_prints(tmp_path: Path) -> None:
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    script = (ROOT / "examples" / "terminal_picture.py").read_text(encoding="utf-8")
    (command,) = re.findall(r"^    examples/(terminal_picture.py docs/img/demo.svg .*)$", script, re.MULTILINE)
    status, printed = commands.command(f"python {ROOT}/examples/{command}", tmp_path)
    assert status == 0, printed
    made, shown = (folder / "docs" / "img" / "demo.svg" for folder in (tmp_path, ROOT))
    assert made.read_text(encoding="utf-8") == shown.read_text(encoding="utf-8")
    assert "http" not in shown.read_text(encoding="utf-8").replace('xmlns="http://www.w3.org/2000/svg"', "")


@pytest.fixture(scope="module")
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Ran]:
    """What came of the pages that were asked for; several are run at once."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function) and hasattr(item, "callspec")]
    parameters = [item.callspec.params for item in items]
    pages = [page for page in RUN if any(given.get("page") == page for given in parameters)]
    folders = [tmp_path_factory.mktemp(page.stem) for page in pages]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(pages, pool.map(lambda page, folder: commands.run(page, folder, WRITE), pages, folders), strict=True))


@pytest.mark.parametrize("page", RUN, ids=name)
def test_the_commands_of_a_page_print_what_it_shows(ran: dict[Path, Ran], page: Path) -> None:
    assert ran[page].commands > 0
    if ran[page].wrong:
        pytest.fail("\n\n".join(ran[page].wrong), pytrace=False)
