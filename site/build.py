"""Build the site: pages of `docs/`, pages of this folder, and the programs of two of them, into `target/site/html`.

Usage: python site/build.py OUT [ENGINE.wasm ANALYZE.wasm]. Without these programs the pages
of the playground and of the analysis say that they are not there.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import api
import experiments
import reference
from fanin import _core

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "site"
PROJECT_PAGES = {
    "ARCHITECTURE.md": "contribute/architecture.md",
    "CHANGELOG.md": "contribute/changelog.md",
    "CONTRIBUTING.md": "contribute/contributing.md",
    "README.md": "index.md",
    "SECURITY.md": "contribute/security.md",
    "benches/htsim/README.md": "contribute/htsim.md",
    "benches/ns3/README.md": "contribute/ns3.md",
    "workloads/README.md": "contribute/workloads.md",
}
"""Pages outside `docs/`, and where the site has them. Its first page is not the README, but stands for it."""
LINK = re.compile(r"(?<!\\)(\]\()([^)\s]+)(\))")
COLOR = re.compile(r"\x1b\[[0-9;]*m")
FENCE = re.compile(r"^(```|~~~)")


STYLES = ("uplot/uPlot.min.css", "style.css")
SCRIPTS = ("uplot/uPlot.min.js", "charts.js", "figures.js", "strip.js", "bursts.js", "script.js")
"""What the page about an analysis is made of: those of `python/fanin/pages`."""
PROGRAMS = ("playground/fanin.wasm", "analyze/analyze.wasm")
"""Where the site has its programs."""


class BuildError(Exception):
    """What is wrong with the site's sources, all of it."""


def place(source: Path) -> str | None:
    """Return where the site has a file of the project: a page, or a copy below `files/`; none for a folder or a file of code."""
    inside = source.relative_to(ROOT).as_posix()
    if inside in PROJECT_PAGES:
        return PROJECT_PAGES[inside]
    if inside.startswith("docs/"):
        return inside.removeprefix("docs/")
    if source.is_dir() or inside.endswith((".md", ".rs")):
        return None
    return f"files/{inside}"


def rewritten(text: str, source: Path, target: str, wanted: set[Path]) -> Iterator[str]:
    """Yield the lines of a page with its links as the site has them; files that it must have are added to `wanted`."""

    def link(match: re.Match[str]) -> str:
        to = match[2]
        if urlsplit(to).scheme or to.startswith(("#", "/")):
            return match[0]
        path, _, anchor = to.partition("#")
        file = (source.parent / unquote(path)).resolve()
        if not file.exists() or not file.is_relative_to(ROOT):
            return match[0]  # the build says so
        found = place(file)
        if found is None:
            return match[0]
        if found == "scenario.md":
            found = moved.get(unquote(anchor), found)
        if found.startswith("files/"):
            wanted.add(file)
        relative = os.path.relpath(found, Path(target).parent).replace(os.sep, "/")
        return f"]({relative}{'#' + anchor if anchor else ''})"

    moved = reference.anchors(reference.SOURCE.read_text(encoding="utf-8"))
    fenced = False
    for line in text.splitlines(keepends=True):
        if FENCE.match(line.lstrip()):
            fenced = not fenced
        yield line if fenced else LINK.sub(link, line)


def with_experiment(lines: Iterable[str], target: str, texts: list[str]) -> Iterator[str]:
    """Yield the lines of a page with a link to the playground below its title: its experiment, to try in the browser."""
    playground = os.path.relpath("playground.html", Path(target).parent).replace(os.sep, "/")
    for number, line in enumerate(lines):
        yield line
        if number == 0:
            link = f'<a href="{playground}#{experiments.address(texts)}">Try it in your browser</a>'
            yield f'\n<p class="pg-try">{link}: two runs side by side</p>\n'


def stage(docs: Path) -> None:
    """Put all pages and what they link to into one folder."""
    wanted: set[Path] = set()
    pages = {source: source.relative_to(ROOT / "docs").as_posix() for source in sorted((ROOT / "docs").rglob("*.md"))}
    pages |= {ROOT / source: target for source, target in PROJECT_PAGES.items() if source != "README.md"}
    pages |= {source: source.name for source in sorted(SITE.glob("*.md"))}
    tried = experiments.experiments()
    for source, target in pages.items():
        out = docs / target
        out.parent.mkdir(parents=True, exist_ok=True)
        lines = rewritten(source.read_text(encoding="utf-8"), source, target, wanted)
        out.write_text("".join(with_experiment(lines, target, tried[target]) if target in tried else lines), encoding="utf-8")
    for target, text in reference.pages(reference.SOURCE.read_text(encoding="utf-8")).items():
        (docs / target).parent.mkdir(exist_ok=True)
        links = rewritten(text, reference.SOURCE if target == "scenario.md" else reference.SOURCE.parent / target, target, wanted)
        (docs / target).write_text("".join(links), encoding="utf-8")
    for target, text in api.pages().items():
        (docs / target).parent.mkdir(exist_ok=True)
        (docs / target).write_text(text, encoding="utf-8")
    for source in sorted((ROOT / "docs").rglob("*")):
        if source.is_file() and source.suffix != ".md":
            out = docs / source.relative_to(ROOT / "docs")
            out.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, out)
    for source in sorted(wanted):
        out = docs / "files" / source.relative_to(ROOT)
        out.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, out)


def named(nav: list[Any]) -> Iterator[str]:
    """Yield the pages that a navigation names."""
    for entry in nav:
        if isinstance(entry, str):
            yield entry
        else:
            for value in entry.values():
                yield from [value] if isinstance(value, str) else named(value)


def check_nav(docs: Path, config: dict[str, Any]) -> list[str]:
    """Return what is wrong with the navigation: pages that it lacks, names twice, or that are not there."""
    there = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")}
    counted = Counter(named(config["project"]["nav"]))
    wrong = [f"site/zensical.toml: nav lacks {page}" for page in sorted(there - set(counted))]
    wrong += [f"site/zensical.toml: nav has {page}, which is not there" for page in sorted(set(counted) - there)]
    return wrong + [f"site/zensical.toml: nav has {page} {n} times" for page, n in sorted(counted.items()) if n > 1]


class Links(HTMLParser):
    """Links of a page, and what they may lead to."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect ids, links and what the page loads by itself."""
        found = dict(attrs)
        if found.get("id"):
            self.ids.add(str(found["id"]))
        if tag == "a" and found.get("href"):
            self.links.append(str(found["href"]))
        for key in ("src", "href"):
            if found.get(key) and (tag in {"script", "img", "source", "iframe"} or (tag == "link" and key == "href")):
                self.loads.append(str(found[key]))


def check_links(html: Path) -> list[str]:
    """Return links inside the site that lead nowhere, and what pages load from elsewhere."""
    pages = {}
    for path in sorted(html.rglob("*.html")):
        pages[path] = Links()
        pages[path].feed(path.read_text(encoding="utf-8"))
    wrong = []
    for path, page in pages.items():
        name = path.relative_to(html).as_posix()
        if name == "404.html":
            continue  # its links begin at the root of wherever it is served
        for to in page.links + page.loads:
            parts = urlsplit(to)
            if parts.scheme or parts.netloc:
                if to in page.loads and parts.scheme != "data":
                    wrong.append(f"{name}: loads {to} from elsewhere")
                continue
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            file = file / "index.html" if file.is_dir() else file
            if not file.is_file():
                wrong.append(f"{name}: {to} leads to no file")
            elif file.name == "playground.html":
                continue  # an experiment stands behind the #
            elif parts.fragment and file in pages and unquote(parts.fragment) not in pages[file].ids:
                wrong.append(f"{name}: {to} leads to no heading")
    return wrong


def problems(output: str) -> list[str]:
    """Return the problems that the builder found, a line each: where and what."""
    plain = COLOR.sub("", output)
    return [f"{place}: {what.strip()}" for what, place in re.findall(r"Warning: (.*)\n.*\[ (\S+:\d+:\d+) \]", plain)]


def parts() -> dict[str, Any]:
    """Return style and scripts of the page about an analysis, and what its policy says of them; see `fanin.pages.page`."""
    pages = ROOT / "python" / "fanin" / "pages"
    text = {name: (pages / name).read_text(encoding="utf-8") for name in (*STYLES, *SCRIPTS, "uplot/LICENSE")}
    scripts = [text[name] for name in SCRIPTS]
    scripts[0] = f"/*\n{text['uplot/LICENSE']}*/\n{scripts[0]}"
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    hashes = [f"'sha256-{digest}'" for digest in digests]
    return {"style": "".join(text[name] for name in STYLES), "scripts": scripts, "hashes": hashes}


def build(out: Path, programs: list[Path]) -> None:
    """Build the site into `out/html`.

    Raises
    ------
    BuildError
        With all that is wrong: pages that the navigation lacks, links that lead nowhere.
    """
    shutil.rmtree(out, ignore_errors=True)
    docs = out / "docs"
    docs.mkdir(parents=True)
    stage(docs)
    for folder in ("playground", "analyze"):
        shutil.copytree(SITE / folder, docs / folder)
    for name in ("uPlot.min.js", "uPlot.min.css"):
        shutil.copyfile(ROOT / "python" / "fanin" / "pages" / "uplot" / name, docs / "playground" / name)
    config = tomllib.loads((SITE / "zensical.toml").read_text(encoding="utf-8"))
    if wrong := check_nav(docs, config):
        raise BuildError("\n".join(wrong))
    shutil.copyfile(SITE / "zensical.toml", out / "zensical.toml")
    (docs / "scenario.schema.json").write_text(_core.schema(), encoding="utf-8")
    (docs / "analyze" / "parts.json").write_text(json.dumps(parts()), encoding="utf-8")
    for program, place_of_it in zip(programs, PROGRAMS, strict=False):
        shutil.copyfile(program, docs / place_of_it)
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "-f", str(out / "zensical.toml")]
    done = subprocess.run(command, cwd=out, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError("\n".join(problems(done.stdout + done.stderr)) or done.stdout + done.stderr)
    if wrong := check_links(out / "html"):
        raise BuildError("\n".join(wrong))


def main() -> None:
    """Build, and say where the site is."""
    if len(sys.argv) not in (2, 4):
        sys.exit(__doc__)
    out = Path(sys.argv[1]).resolve()
    programs = [Path(argument) for argument in sys.argv[2:]]
    try:
        build(out, programs)
    except BuildError as error:
        sys.exit(str(error))
    size = sum(path.stat().st_size for path in (out / "html").rglob("*") if path.is_file())
    lacks = "" if programs else "; WITHOUT the playground and the analysis, whose programs are not there"
    print(f"site: {out / 'html'}, {size / 1e6:.1f} MB{lacks}")


if __name__ == "__main__":
    main()
