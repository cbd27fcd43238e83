"""The network of a scenario as a drawing: layer by layer, links coloured by the load that traffic offers to them."""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from fanin import _core
from fanin.scenario.network import percent
from fanin.text import show

if TYPE_CHECKING:
    from fanin.scenario.network import Overview

_HEIGHT: Final = 150
"""Between two layers."""
_LEAST: Final = 900
"""Width of a drawing at least."""
_NAMED: Final = 26
"""Width that a name takes per node where all are named; where there is less, only the first and the last of a layer are."""
_MARGIN: Final = 50


def _places(made: Overview) -> tuple[dict[int, tuple[float, float]], float, float]:
    """Return where each node stands, and the size of the drawing; hosts stand below their switches."""
    widest = max(map(len, made.layers))
    width = max(_LEAST, min(2600, widest * _NAMED)) + 2 * _MARGIN
    step = _HEIGHT * width / _LEAST
    owner = {link["from"]: link["to"] for link in made.facts["links"] if link["from"] < len(made.hosts)}
    places: dict[int, tuple[float, float]] = {}
    for number, layer in enumerate(made.layers):
        order = sorted(layer, key=lambda node: (owner.get(node, 0), node)) if number == 0 else layer
        y = _MARGIN + (len(made.layers) - 1 - number) * step
        for at, node in enumerate(order):
            places[node] = (_MARGIN + (at + 0.5) * (width - 2 * _MARGIN) / len(order), y)
    return places, width, 2 * _MARGIN + (len(made.layers) - 1) * step + 20


def _colour(load: float) -> str:
    """Return grey for an idle link, over amber to red for a full one."""
    stops = ((0.0, (190, 196, 204)), (0.5, (230, 159, 0)), (1.0, (200, 40, 30)))
    share = min(1.0, max(0.0, load))
    (low, first), (high, second) = next(pair for pair in itertools.pairwise(stops) if share <= pair[1][0])
    part = (share - low) / (high - low)
    return "#" + "".join(f"{round(a + part * (b - a)):02x}" for a, b in zip(first, second, strict=True))


def svg(made: Overview) -> str:
    """Return the network as SVG."""
    places, width, height = _places(made)
    scale = width / _LEAST
    nodes, links = made.facts["nodes"], made.facts["links"]
    fastest = max((link["rate_bps"] for link in links), default=1)
    drawn: dict[tuple[int, int], list[Mapping[str, Any]]] = {}
    for link in links:
        drawn.setdefault((min(link["from"], link["to"]), max(link["from"], link["to"])), []).append(link)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'aria-label="{html.escape(" / ".join(made.lines()), quote=True)}" '
        f'font-family="system-ui, sans-serif" font-size="{11 * scale:.1f}">'
    ]
    for (a, b), both in drawn.items():
        (x1, y1), (x2, y2) = places[a], places[b]
        load = max(link["load"] for link in both)
        thick = scale + 3 * scale * math.sqrt(both[0]["rate_bps"] / fastest)
        told = "; ".join(
            f"{link['name']}: {show.rate(link['rate_bps'])}, {show.duration(link['delay_ps'])}, {percent(link['load'])} offered"
            for link in both
        )
        bend = f" Q {(x1 + x2) / 2:.1f} {y1 - 40 * scale:.1f}" if y1 == y2 else " L"
        parts.append(
            f'<path d="M {x1:.1f} {y1:.1f}{bend} {x2:.1f} {y2:.1f}" fill="none" '
            f'stroke="{_colour(load)}" stroke-width="{thick:.1f}">'
            f"<title>{html.escape(told)}</title></path>"
        )
    half = 8 * scale
    halo = f'stroke="#fff" stroke-width="{3 * scale:.1f}" paint-order="stroke"'
    for number, layer in enumerate(made.layers):
        order = sorted(layer, key=lambda node: places[node])
        named = set(order) if len(order) * _NAMED * scale <= width else {order[0], order[-1]}
        for node in order:
            x, y = places[node]
            name = html.escape(nodes[node]["name"])
            if number == 0:
                shape, below = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{5 * scale:.1f}" fill="#3b6ea5"/>', 20
            else:
                side = f'width="{2 * half:.1f}" height="{2 * half:.1f}" rx="3"'
                shape, below = f'<rect x="{x - half:.1f}" y="{y - half:.1f}" {side} fill="#24292f"/>', -14
            where = f'x="{x:.1f}" y="{y + scale * below:.1f}" text-anchor="middle"'
            label = f'<text {where} fill="currentColor" {halo}>{name}</text>'
            parts.append(f"<g>{shape}{label if node in named else ''}<title>{name}</title></g>")
    return "\n".join([*parts, "</svg>"]) + "\n"


_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{name}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem }}
body {{ color: #1f2328; background: #fff }}
svg {{ width: 100%; height: auto }}
.key {{ display: flex; gap: 1.5rem; font-size: .85rem; color: #59636e; flex-wrap: wrap }}
.key i {{ display: inline-block; width: 2rem; height: .3rem; margin-right: .4rem; vertical-align: middle }}
footer {{ font-size: .8rem; color: #59636e }}
@media (prefers-color-scheme: dark) {{
  body {{ color: #e6edf3; background: #0d1117 }} rect {{ fill: #9da7b1 }} text {{ stroke: #0d1117 }}
}}
</style></head><body>
<h1>{name}</h1>
{svg}
<p class="key"><span><i style="background:#bec4cc"></i>link without load</span>
<span><i style="background:#e69f00"></i>half of what it carries</span>
<span><i style="background:#c8281e"></i>all of it, or more</span>
<span>point at a link for its rate, delay and load</span></p>
<ul>{items}</ul>
<footer>Fanin {version}</footer>
</body></html>
"""


def page(made: Overview) -> str:
    """Return an HTML page with the drawing and what is simulated."""
    name = html.escape(str(made.resolved.get("name", "scenario")))
    items = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in made.sentences)
    return _PAGE.format(name=name, svg=svg(made), items=items, version=html.escape(_core.version()))
