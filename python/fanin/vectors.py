"""Test vectors: what a mechanism does to given inputs, with its registers, for checking other implementations bit for bit."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

from fanin import _core

__all__ = ["generate", "rows", "write_csv", "write_json"]


def generate(mechanism: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the vectors of a mechanism as one document; docs/vectors.md says what it holds.

    Parameters
    ----------
    mechanism
        Its name: ``s-ecn``, ``rimm``, ``rcm`` or ``pdn``.
    params
        What differs from the defaults, for example ``{"cases": ["pairs"], "rates": ["10Gbps"]}``.

    Raises
    ------
    fanin.ScenarioError
        An unknown mechanism, or parameters that are wrong: all that is.
    """
    return _core.vectors(mechanism, json.dumps(dict(params or {})))


def rows(document: Mapping[str, Any]) -> Iterator[dict[str, int | str]]:
    """Every row with its case and settings, as the CSV form has it."""
    settings = [column["name"] for column in document["settings"]]
    columns = [column["name"] for column in document["columns"]]
    for sequence in document["sequences"]:
        common = {"case": sequence["case"], **dict(zip(settings, sequence["settings"], strict=True))}
        for row in sequence["rows"]:
            yield {**common, **dict(zip(columns, row, strict=True))}


def write_csv(document: Mapping[str, Any], file: TextIO) -> None:
    """Write one line for each row."""
    names = ["case", *(column["name"] for column in (*document["settings"], *document["columns"]))]
    writer = csv.DictWriter(file, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows(document))


def write_json(document: Mapping[str, Any], file: TextIO) -> None:
    """Write the document, one row of numbers a line."""
    head = {key: value for key, value in document.items() if key != "sequences"}
    file.write(json.dumps(head, indent=1, ensure_ascii=False)[:-2] + ',\n "sequences": [\n')
    for index, sequence in enumerate(document["sequences"]):
        lines = ",\n   ".join(json.dumps(row) for row in sequence["rows"])
        last = index == len(document["sequences"]) - 1
        named = f'{{"case": "{sequence["case"]}", "settings": {sequence["settings"]}, "rows": ['
        file.write(f"  {named}\n   {lines}]}}{'' if last else ','}\n")
    file.write(" ]\n}\n")
