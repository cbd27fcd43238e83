"""The page about a comparison: tables of all variants, and their curves over one another."""

from __future__ import annotations

import html
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fanin import files
from fanin.comparison import overlay, tables, together
from fanin.comparison.variants import CompareError
from fanin.pages import Charts, page
from fanin.text import show

if TYPE_CHECKING:
    from fanin.comparison import Cell, Comparison, Row
    from fanin.tables.recorded import Recorded

FIGURES: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("cdf", {}),
    ("slowdown", {"statistic": "p99"}),
    ("fct", {"statistic": "p50"}),
    ("fct", {"statistic": "p99"}),
    ("queue", {}),
    ("queue-cdf", {}),
    ("throughput", {}),
)
"""Figures of the page: kinds of `fanin.comparison.overlay`, with their options."""

_GOOD: Final = ("better", "better on average", "mostly better")
_BAD: Final = ("worse", "worse on average", "mostly worse")
_TONES: Final = {**dict.fromkeys(_GOOD, "good"), **dict.fromkeys(_BAD, "bad")}
_PATHS: Final = 4
"""Runs of a variant whose paths are listed."""


def _cell(row: Row, cell: Cell) -> dict[str, str]:
    chance = "" if cell.chance is None else f"p = {cell.chance:.3g} after Holm's correction"
    told = [tables.sides_text(cell), chance]
    return {
        "mean": tables.mean_text(row.metric, cell.interval),
        "range": _range(row, cell),
        "change": tables.change_text(row.metric, cell),
        "verdict": tables.verdict_text(cell),
        "why": cell.why,
        "tone": _TONES.get(cell.verdict or "", ""),
        "chance": "; ".join(words for words in told if words),
    }


def _range(row: Row, cell: Cell) -> str:
    found = cell.interval
    if found is None:
        return "no run has it"
    against = ""
    if cell.base is not None and row.cells[0].interval is not None and cell.base.seeds != row.cells[0].interval.seeds:
        against = f"; the base over these: {tables.mean_text(row.metric, cell.base)}"
    return f"{tables.interval_text(row.metric, cell)}, {show.many(found.seeds, 'seed')}{against}"


def _lines(row: Row) -> list[dict[str, Any]]:
    """Return the line of a metric, and one of the percentile of all flows together beneath it, where that is known."""
    base = _cell(row, row.cells[0])
    cells = [_cell(row, cell) for cell in row.cells[1:]]
    lines = [{"title": row.metric.title, "base": base["mean"], "base_range": base["range"], "cells": cells}]
    if any(cell.pooled for cell in row.cells):
        texts = [tables.together_texts(row, at) for at in range(1, len(row.cells))]
        ranges = [_runs(row, cell) for cell in row.cells]
        empty = {"verdict": "", "why": "", "tone": "", "chance": ""}
        cells = [{"mean": own[1], "range": where, "change": own[2], **empty} for own, where in zip(texts, ranges[1:], strict=True)]
        title = f"{row.metric.title}, {together.words(row.metric)}"
        lines.append({"title": title, "base": texts[0][0], "base_range": ranges[0], "cells": cells})
    return lines


def _runs(row: Row, cell: Cell) -> str:
    """Return the interval of a percentile, and how many flows of how many seeds it is of."""
    found = cell.pooled
    if found is None:
        return "no run has it"
    low, high = (None if end is None else row.metric.text(end) for end in (found.low, found.high))
    ends = {
        (True, True): f"{low} to {high}, ",
        (True, False): f"from {low}, how far up so few do not say, ",
        (False, True): f"up to {high}, how far down so few do not say, ",
        (False, False): "",
    }[low is not None, high is not None]
    return f"{ends}{found.values:,} of {show.many(found.seeds, 'seed')}"


def _charts(groups: dict[str, list[Recorded]], charts: Charts) -> tuple[list[Any], list[str]]:
    """Return the figures that can be drawn, and why others cannot."""
    drawn, lacking = [], []
    for kind, options in FIGURES:
        try:
            figure = overlay.draw(kind, groups, **options)
        except CompareError as error:
            lacking += [f"{overlay.KINDS[kind].words}: {problem}" for problem in error.problems]
            continue
        # Names in a figure are written as Plotly's markup; the page writes notes itself.
        note = html.unescape(figure.layout.meta["note"])
        figure.update_layout(meta={"note": note})
        drawn.append(charts.add("-".join([kind, *options.values()]), figure))
    return drawn, lacking


def render(comparison: Comparison) -> str:
    """Return the page; equal comparisons of equal runs give equal pages."""
    charts = Charts()
    groups = {variant.name: variant.results() for variant in comparison.variants}
    drawn, lacking = _charts(groups, charts) if all(groups.values()) else ([], ["the runs of this sweep left no result folders"])
    others = comparison.variants[1:]
    tiles = [
        {
            "name": f"{variant.name} against {comparison.base.name}",
            "text": tables.counted(comparison, variant.name),
            "note": show.many(len(variant.runs), "seed"),
            "tone": _tone(comparison, variant.name),
        }
        for variant in others
    ]
    runs = [
        [
            variant.name,
            f"{len(variant.runs)}",
            _seeds(variant.seeds),
            ", ".join(variant.versions),
            ", ".join(run.origin for run in variant.runs[:_PATHS]) + (" …" if len(variant.runs) > _PATHS else ""),
        ]
        for variant in comparison.variants
    ]
    return page(
        "compare.html",
        charts,
        title=f"{comparison.base.name} and {others[0].name}"
        if len(others) == 1
        else f"{comparison.base.name} and {len(others)} others",
        provenance=[
            ("Base", comparison.base.name),
            ("Intervals", f"{100 * comparison.confidence:.3g} %"),
            ("Judged", show.many(comparison.judged, "difference")),
            ("Fanin", comparison.to_dict()["fanin"]),
        ],
        warnings=comparison.warnings,
        notes=comparison.notes,
        tiles=tiles,
        differing=tables.differing_rows(comparison),
        sections=[(section, [line for row in rows for line in _lines(row)]) for section, rows in tables.shown(comparison)],
        base=comparison.base.name,
        others=[variant.name for variant in others],
        rule=tables.rule(comparison),
        drawn=drawn,
        lacking=lacking,
        runs=(["Variant", "Runs", "Seeds", "Fanin", "Where"], runs),
    )


def _tone(comparison: Comparison, name: str) -> str:
    better, worse = (sum(comparison.count(name, verdict) for verdict in verdicts) for verdicts in (_GOOD, _BAD))
    return "good" if better > 0 == worse else "bad" if worse > 0 == better else "plain"


def _seeds(seeds: tuple[int, ...]) -> str:
    """Return seeds as text, those that follow one another as a range."""
    parts: list[list[int]] = []
    for seed in seeds:
        if parts and seed == parts[-1][-1] + 1:
            parts[-1].append(seed)
        else:
            parts.append([seed])
    shown = [f"{part[0]}" if len(part) == 1 else f"{part[0]}–{part[-1]}" for part in parts]
    return ", ".join(shown[:8]) + (" …" if len(shown) > 8 else "")


def write(comparison: Comparison, path: str | os.PathLike[str]) -> Path:
    """Write the page, completely or not at all."""
    return files.write_text(path, render(comparison))
