"""What a command prints, as a picture: ``terminal_picture.py PICTURE.svg WORD... [--until LINE]``.

That of the README, with ``.venv/bin/python`` before it:

    examples/terminal_picture.py docs/img/demo.svg fanin run scenarios/demo.toml -o out/demo --force --until 'Slowdown by'

How long it took on this machine is left out, so that the same version draws the same bytes. So is, with ``--until``, what follows
the first line that begins so.
"""

import argparse
import io
import os
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

MACHINE = [(re.compile(r"\bin [\d.]+ (m?s)\b"), r"in … \1"), (re.compile(r"[\d.]+ ?[kM]? (packet-hops per CPU second)"), r"… \1")]
# As rich draws it, with the fonts of whoever looks at it instead of one from elsewhere.
FRAME = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
 font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>{lines}</defs>
<rect fill="#1b1f24" x="1" y="1" width="{width}" height="{height}" rx="8"/>
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g>
</svg>
"""

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("picture", type=Path)
parser.add_argument("--until")
options, words = parser.parse_known_args()
paths = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
environment = os.environ | {"FORCE_COLOR": "1", "TTY_COMPATIBLE": "1", "PATH": paths, "TERM": "xterm-256color"}
printed = subprocess.run(words, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout  # noqa: S603 (as asked)
lines = [Text.from_ansi(line.rstrip()) for line in printed.splitlines()]
for i, line in enumerate(lines):
    plain = line.plain
    for pattern, stand_in in MACHINE:
        plain = pattern.sub(stand_in, plain)
    if plain != line.plain:
        lines[i] = Text(plain)
ends = [i for i, line in enumerate(lines) if options.until and line.plain.startswith(options.until)]
lines = [*lines[: ends[0]], Text("…", style="dim")] if ends else lines
shown = [Text(f"$ {' '.join(word for word in words if word != '--force')}", style="bold green"), *lines]
shown = [Text(line.plain.rstrip(), style=line.style) if not line.spans else line for line in shown if line.plain.strip()]
width = max(line.cell_len for line in shown) + 1
console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True, color_system="truecolor")
for line in shown:
    console.print(line, no_wrap=True, crop=True)
options.picture.parent.mkdir(parents=True, exist_ok=True)
options.picture.write_text(console.export_svg(title="", theme=MONOKAI, code_format=FRAME, unique_id="terminal"), encoding="utf-8")
