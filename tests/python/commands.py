"""Commands on pages: what a page shows is run, in an empty folder, and must be what is printed.

Marks, in Markdown that GitHub, an editor and the site show alike:

* a block of `console`: each line that begins with `$ ` is run, and the lines below it are its whole output, in which `…` stands for
  anything within a line and a line of `…` alone for any lines;
* a block of `sh`: its lines are run as one script, whose status must be 0;
* `<!-- not run: WHY -->` above a block: it is checked, not run;
* `<!-- file: NAME -->` (or `scenario:`) above a block: the file NAME of the folder has this content from here on.

`FANIN_WRITE=1` puts what is printed in the place of what is shown and not true.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("site/*.md"),
        *ROOT.glob("benches/*/README.md"),
    ]
)
PROGRAMS = re.compile(r"(\S*/)?(fanin|make|python3?|cargo|pip|tcpdump|ethtool|tc|apt-get|git|dask|srun|sbatch|kubectl) ")
BLOCK = re.compile(r"(?:^<!-- (not run|file|scenario): ([^\n]*) -->\n+)?^```([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LIMIT_S = 60
VOLATILE = [
    (re.compile(r"\bin \d\S* (m?s)$", re.MULTILINE), r"in … \1"),
    (re.compile(r"\d\S* (M? ?packet-hops per CPU second)"), r"… \1"),
]


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: its language, its mark and what the mark says, its text, and where that begins."""

    page: Path
    language: str
    mark: str
    words: str
    text: str
    start: int

    @property
    def where(self) -> str:
        line = self.page.read_text(encoding="utf-8").count("\n", 0, self.start) + 1
        return f"{self.page.relative_to(ROOT)}:{line}"

    @property
    def commands(self) -> list[tuple[str, str]]:
        """Commands of a console with the output that is shown; any other block is one command without."""
        if self.language != "console":
            return [(self.text, "")]
        found: list[tuple[str, str]] = []
        continued = False
        for line in self.text.splitlines(keepends=True):
            if continued:
                found[-1] = (found[-1][0] + line, "")
            elif line.startswith("$ "):
                found.append((line[2:], ""))
            else:
                assert found, f"{self.where}: output before any command"
                found[-1] = (found[-1][0], found[-1][1] + line)
                continue
            continued = line.endswith("\\\n")
        return found


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(page, found[3].strip(), found[1] or "", found[2] or "", found[4], found.start(4)) for found in BLOCK.finditer(text)
    ]


def names_a_command(text: str) -> bool:
    """Whether a line of a block begins with a program that is run by hand."""
    return any(PROGRAMS.match(line.removeprefix("$ ")) for line in text.splitlines())


def calls(script: str, program: str) -> Iterator[list[str]]:
    """Yield the arguments of each call of a program in a script."""
    for line in re.sub(r"\\\n", " ", script).splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        called: list[str] = []
        for word in [*lexer, ";"]:
            if not set(word) <= set("();<>|&") or not word:
                called.append(word)
                continue
            while called and (re.match(r"\w+=", called[0]) or called[0] in ("do", "then", "!")):
                del called[0]
            if called and called[0].rsplit("/", 1)[-1] == program:
                yield called[1:]
            called = []


def tidy(output: str) -> list[str]:
    """Lines with words, without the blanks at their ends; rules of tables are none."""
    return [line.rstrip() for line in output.splitlines() if line.strip(" ─")]


def holds(shown: str, printed: str) -> bool:
    """Whether what is shown is what was printed, `…` standing for anything."""
    parts = ["(?:.*\n)*" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + "\n" for line in tidy(shown)]
    return re.fullmatch("".join(parts), "".join(f"{line}\n" for line in tidy(printed))) is not None


def refreshed(shown: str, printed: str) -> str:
    """Return what is to be shown now: of an excerpt the same lines as they are printed, else all of it.

    A line is found again by its first words, three at most and none beyond a gap; in their order.
    """
    for pattern, stand_in in VOLATILE:
        printed = pattern.sub(stand_in, printed)
    lines = [line.rstrip() for line in printed.strip("\n").splitlines()]
    whole = re.sub(r"\n{2,}", "\n\n", "".join(f"{line}\n" for line in lines))
    if "…" not in tidy(shown):
        return whole

    def name(line: str) -> str:
        return " ".join(re.split(r"  +", line.strip())[0].split(" ")[:3])

    lines, kept, at = tidy(printed), [], -1
    for line in tidy(shown):
        if line == "…":
            continue
        rest = range(at + 1, len(lines))
        found = [i for i in rest if holds(line, lines[i]) or name(lines[i]) == name(line)]
        if not found:
            return whole
        kept += (["…"] if found[0] > at + 1 else []) + [line if holds(line, lines[found[0]]) else lines[found[0]]]
        at = found[0]
    return "".join(f"{line}\n" for line in [*kept, *(["…"] if at < len(lines) - 1 else [])])


@dataclass
class Ran:
    """What came of a page: wrong things, and seconds."""

    wrong: list[str] = field(default_factory=list)
    commands: int = 0


def command(script: str, folder: Path) -> tuple[int, str]:
    """Run a script by bash in a folder; its status and what it printed."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "FANIN_WRITE")} | {"PATH": path}
    try:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        return 124, f"took more than {LIMIT_S} s"
    return done.returncode, done.stdout


def run(page: Path, folder: Path, write: bool = False) -> Ran:
    """Run the blocks of a page, in their order, in a folder that has the project's scenarios and examples."""
    for name in ("scenarios", "examples"):
        (folder / name).symlink_to(ROOT / name)
    ran = Ran()
    text = page.read_text(encoding="utf-8")
    for block in blocks(page):
        if block.mark in ("file", "scenario"):
            (folder / block.words).write_text(block.text, encoding="utf-8")
        if block.language not in ("console", "sh") or block.mark == "not run":
            continue
        for script, shown in block.commands:
            ran.commands += 1
            status, printed = command(script, folder)
            if status != 0:
                ran.wrong.append(f"{block.where}: exit status {status}\n{script}{printed}")
            elif block.language == "console" and not holds(shown, printed):
                ran.wrong.append(f"{block.where}: shown is not what is printed by\n$ {script}{printed}")
                text = text.replace(f"$ {script}{shown}", f"$ {script}{refreshed(shown, printed)}")
    if write and text != page.read_text(encoding="utf-8"):
        page.write_text(text, encoding="utf-8")
    return ran
