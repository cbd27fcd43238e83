"""Pages: one HTML file with style, scripts and data inside, from templates and collected figures."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

import jinja2
from markupsafe import Markup, escape
from plotly.offline import get_plotlyjs

from fanin.figures import COLORS

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["OUTLINE", "PACKETS", "PEAK_PACKETS", "Budget", "Chart", "Charts", "page"]

PEAK_PACKETS: Final = 8000
"""Packets around the largest queue that are drawn one by one where the whole run has too many."""

PACKETS: Final = 2 * PEAK_PACKETS
"""Packets of a port's highest burst that are drawn one by one; of a burst with more, the smallest and largest of each part."""

PAGE_PACKETS: Final = 30_000
"""Packets of all other bursts of a page that are drawn one by one, so that it can still be mailed."""

OUTLINE: Final = 1000
"""Points of a burst for which that is not enough."""


@dataclass
class Budget:
    """Packets of other bursts that still fit onto the page."""

    left: int = PAGE_PACKETS

    def take(self, packets: int) -> int:
        """Return how many points a burst may have."""
        if packets > min(self.left, PACKETS):
            return OUTLINE
        self.left -= packets
        return max(2, packets)


@dataclass(frozen=True)
class Chart:
    """A figure with its place on the page."""

    key: str
    title: str
    note: str


class Charts:
    """Figures collected for the page; the data are carried apart from the markup."""

    def __init__(self) -> None:
        self.figures: dict[str, Any] = {}
        self.budget = Budget()

    def add(self, key: str, figure: go.Figure, title: str | None = None) -> Chart:
        """Take a figure in; `key` is its place on the page."""
        figure.update_layout(template="none")
        document = json.loads(figure.to_json())
        layout = document["layout"]
        heading = title or html.unescape(layout["title"]["text"])  # a figure's title is Plotly's markup, the page's is text
        note = (layout.pop("meta", None) or {}).get("note", "")
        for name in ("title", "template", "height"):
            layout.pop(name, None)
        facts = {"title": heading, "note": note, "colorway": list(COLORS)}
        self.figures[key] = {"data": document["data"], "layout": layout, **facts}
        return Chart(key, heading, note)


def _code(text: str) -> Markup:
    """Text whose parts between backticks are code."""
    parts = [escape(part) for part in str(text).split("`")]
    if len(parts) % 2 == 0:
        return escape(text)
    return Markup("").join(Markup("<code>{}</code>").format(part) if odd % 2 else part for odd, part in enumerate(parts))


def _script_json(document: Any) -> Markup:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))  # noqa: S704


def _hash_source(script: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() + "'"


def _asset(name: str) -> str:
    return resources.files(__name__).joinpath(name).read_text(encoding="utf-8")


def page(template: str, charts: Charts, **content: Any) -> str:
    """Return a page with its style, scripts and data inside."""
    scripts = [*([get_plotlyjs()] if charts.figures else []), _asset("script.js")]
    if any("</script" in script.lower() for script in scripts):
        raise RuntimeError("a script of the report would end its own element")
    parts = jinja2.DictLoader({name: _asset(name) for name in ("base.html", "parts.html", template)})
    environment = jinja2.Environment(
        loader=parts, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["code"] = _code
    return environment.get_template(template).render(
        **content,
        style=Markup(_asset("style.css")),  # noqa: S704
        scripts=[Markup(script) for script in scripts],  # noqa: S704
        script_hashes=Markup(" ".join(_hash_source(script) for script in scripts)),  # noqa: S704
        data=_script_json(charts.figures),
    )
