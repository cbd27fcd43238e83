"""The scenario reference, one generated page of the project, as a page for each part of a scenario."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).resolve().parents[1] / "docs" / "scenario.md"
PARTS: Final = {
    "topology": ("Topology, links, framing", "Hosts, switches and links of a network, and what a frame takes on a wire."),
    "switch": ("Switches", "Buffers, marking, scheduling, path choice, and what single ports have instead."),
    "mechanisms": (
        "Mechanisms of switches",
        "PFC, notifications, trimming, telemetry, detours: each is on if its table is there.",
    ),
    "host": ("Hosts", "NICs, receive path, noise, reordering buffers, and storms of pauses."),
    "transport": ("TCP", "Every setting of TCP, and which transport a scenario uses."),
    "roce": ("RoCEv2", "Congestion control, recovery and windows of RoCEv2 queue pairs."),
    "traffic": ("Traffic", "Flows, incasts, queries, loads, collectives, and files of flows."),
    "events": ("Failures", "What happens to links during a run, and how switches react."),
    "telemetry": ("Telemetry and engine", "What a run records, and how it is executed."),
}
"""Pages below `scenario/`: title and first sentence."""
OF: Final = {"framing": "topology", "transports": "transport", "failover": "events", "engine": "telemetry"}
HEADING: Final = re.compile(r"^(#+) (.+)$", re.MULTILINE)
LINK: Final = re.compile(r"\]\(#([\w-]+)\)")


def slug(heading: str) -> str:
    """Return the anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def part(section: str) -> str | None:
    """Return which page a section belongs to: by the place in a scenario that it names; none for the introduction."""
    found = re.search(r"^At `([\w.\[\]]+)`", section, re.MULTILINE)
    if found is None:
        return None
    if re.match(r"## (Roce|Dcqcn)", section):
        return "roce"
    path = found[1].replace("[]", "").split(".")
    if path[:2] == ["switch", "mechanisms"]:
        return "mechanisms"
    return OF.get(path[0], path[0])


@cache
def anchors(text: str) -> dict[str, str]:
    """Return for each anchor of the reference the page that has it now."""
    found = {}
    for section in re.split(r"^(?=## )", text, flags=re.MULTILINE)[1:]:
        name = part(section)
        page = f"scenario/{name}.md" if name else "scenario.md"
        plain = re.sub(r"^```.*?^```", "", section, flags=re.DOTALL | re.MULTILINE)
        found |= {slug(heading): page for _, heading in HEADING.findall(plain)}
    return found


def pages(text: str) -> dict[str, str]:
    """Return the pages by their place below the documentation; links between them lead where they led."""
    where = anchors(text)
    head, *sections = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    made: dict[str, list[str]] = {"scenario.md": [head]} | {f"scenario/{name}.md": [] for name in PARTS}
    for section in sections:
        name = part(section)
        made[f"scenario/{name}.md" if name else "scenario.md"].append(section)
    for name, (title, first) in PARTS.items():
        made[f"scenario/{name}.md"].insert(0, f"# {title}\n\n{first} A part of the [scenario reference](../scenario.md).\n\n")
    rows = "".join(f"| [{title}](scenario/{name}.md) | {first} |\n" for name, (title, first) in PARTS.items())
    made["scenario.md"].insert(1, f"## Parts of a scenario\n\n| | |\n|---|---|\n{rows}\n")

    def relinked(page: str, content: str) -> str:
        def link(found: re.Match[str]) -> str:
            to = where.get(found[1], page)
            up = "../" if page.startswith("scenario/") else ""
            return f"](#{found[1]})" if to == page else f"]({up}{to}#{found[1]})"

        return LINK.sub(link, content)

    return {page: relinked(page, "".join(content)) for page, content in made.items()}
