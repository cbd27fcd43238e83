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

from fanin.figures import COLORS

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["PEAK_PACKETS", "Chart", "Charts", "page", "strong"]

PEAK_PACKETS: Final = 8000
"""Packets around the largest queue that are drawn one by one where the whole run has too many."""


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


_STRONG: Final = "\0"


def strong(text: str) -> str:
    """Return a part of a sentence so that it stands out on a page."""
    return f"{_STRONG}{text}{_STRONG}"


def _sentence(text: str) -> Markup:
    """Return a sentence with what `strong` has marked standing out."""
    parts = [escape(part) for part in text.split(_STRONG)]
    return Markup("").join(Markup("<b>{}</b>").format(part) if odd % 2 else part for odd, part in enumerate(parts))


def _script_json(document: Any) -> Markup:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))  # noqa: S704


def _hash_source(script: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() + "'"


def _asset(name: str) -> str:
    return resources.files(__name__).joinpath(name).read_text(encoding="utf-8")


def _drawing() -> list[str]:
    """Return the scripts that draw charts: uPlot with its licence, and ours over it."""
    licence = _asset("uplot/LICENSE")
    if "*/" in licence:
        raise RuntimeError("the licence of uPlot would end its own comment")
    return [f"/*\n{licence}*/\n{_asset('uplot/uPlot.min.js')}", _asset("charts.js"), _asset("figures.js")]


def page(template: str, charts: Charts, explorer: dict[str, Any] | None = None, *, live: bool = False, **content: Any) -> str:
    """Return a page with its style, scripts and data inside.

    `explorer` is what ``bursts.js`` draws; a `live` page asks where it comes from for events, which ``watch.js`` shows.
    """
    drawing = _drawing() if charts.figures or explorer is not None or live else []
    own = [_asset("strip.js")] if explorer is not None or live else []
    own += ([] if explorer is None else [_asset("bursts.js")]) + ([_asset("watch.js")] if live else [])
    scripts = [*drawing, *own, _asset("script.js")]
    if any("</script" in script.lower() for script in scripts):
        raise RuntimeError("a script of the report would end its own element")
    parts = jinja2.DictLoader({name: _asset(name) for name in ("base.html", "parts.html", "bursts.html", template)})
    environment = jinja2.Environment(
        loader=parts, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["code"] = _code
    environment.filters["sentence"] = _sentence
    return environment.get_template(template).render(
        **content,
        style=Markup(_asset("uplot/uPlot.min.css") + _asset("style.css")),  # noqa: S704
        scripts=[Markup(script) for script in scripts],  # noqa: S704
        script_hashes=Markup(" ".join(_hash_source(script) for script in scripts)),  # noqa: S704
        data=_script_json(charts.figures),
        live=live,
        explorer_data=None if explorer is None else _script_json(explorer),
    )
