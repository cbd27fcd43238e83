"""Experiments of pages for the playground: two scenarios, and the address that holds them."""

from __future__ import annotations

import base64
import json
import tomllib
import zlib
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("experiments.toml")


def text(base: dict[str, Any], change: dict[str, str]) -> str:
    """Return the scenario of a base with a page's lines; those of a transport without a `kind` come after the base's own."""
    transport = change.get("transport", "")
    if not transport.lstrip().startswith("kind"):
        transport = f"{base['transport']}\n{transport}"
    switch = change.get("switch", base["switch"])
    made = base["text"].replace("{switch}", switch.strip()).replace("{transport}", transport.strip()).strip()
    return f"{made}\n{change.get('text', '')}".rstrip() + "\n"


def experiments() -> dict[str, list[str]]:
    """Return the two scenarios of each page: without and with what it is about."""
    found = tomllib.loads(FILE.read_text(encoding="utf-8"))
    made = {}
    for page, entry in found["page"].items():
        base = found["base"][entry["base"]]
        more = {"text": entry["text"]} if "text" in entry else {}
        made[page] = [text(base, more | entry.get("without", {})), text(base, more | entry["with"])]
    return made


def address(texts: list[str]) -> str:
    """Return what stands behind the # of the playground's address, as site/playground/link.js packs it."""
    packer = zlib.compressobj(level=9, wbits=-15)
    packed = packer.compress(json.dumps(texts, ensure_ascii=False).encode()) + packer.flush()
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")
