"""What a figure finds: rows that set a paper's numbers beside ours, plots, tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from plotly.graph_objects import Figure as Plot


@dataclass(frozen=True, kw_only=True)
class Row:
    """One number of a paper beside ours.

    Parameters
    ----------
    name : str
        What is compared.
    paper : float, str or None
        What the paper says: a number, words where it gives none ("< port speed"), None where it says nothing.
    fanin : float
        What came out here.
    low, high : float or None
        Between which values it counts as reproduced, both included; from what the paper says of its own spread or precision,
        never from what came out. Both where the paper gives a number, also in words (*nearly 50*); a value on the better side is
        beyond the paper's, and `note` says why. None: no bound on that side.
    unit : str
        Unit of all four.
    note : str
        Why the paper's number is not met, where that is known: the reason, written with the figure. It explains a row that is
        not `ok`; a row that is neither `ok` nor explained makes ``fanin reproduce`` fail.
    calibrated : str
        Settings that were chosen so that the row holds, where the paper does not give them: the row then shows that there are such
        settings, no more. Empty: nothing was.
    """

    name: str
    paper: float | str | None
    fanin: float
    low: float | None = None
    high: float | None = None
    unit: str = ""
    note: str = ""
    calibrated: str = ""

    def __post_init__(self) -> None:
        if self.low is None and self.high is None:
            raise ValueError(f"{self.name}: a row needs a bound, or it could not fail")
        if isinstance(self.paper, int | float) and (self.low is None or self.high is None):
            raise ValueError(f"{self.name}: the paper gives a number, so both bounds are needed")
        if self.low is not None and self.high is not None and not self.low <= self.high:
            raise ValueError(f"{self.name}: nothing lies between {self.low} and {self.high}")

    @property
    def ok(self) -> bool:
        """Whether `fanin` lies within the bounds; a value that is no number does not."""
        above = self.low is None or self.low <= self.fanin
        below = self.high is None or self.fanin <= self.high
        return above and below and math.isfinite(self.fanin)

    @property
    def one_sided(self) -> bool:
        """Whether it is bound on one side alone, as the paper has words for it or nothing: any value beyond that holds."""
        return self.low is None or self.high is None

    @property
    def failed(self) -> bool:
        """Whether it is neither `ok` nor explained."""
        return not self.ok and not self.note

    def to_dict(self) -> dict[str, Any]:
        """Return the row as ``rows.json`` holds it; null for what is no finite number."""
        return {
            "name": self.name,
            "paper": _finite(self.paper),
            "fanin": _finite(self.fanin),
            "low": _finite(self.low),
            "high": _finite(self.high),
            "unit": self.unit,
            "ok": self.ok,
            "note": self.note,
            "calibrated": self.calibrated,
            "one_sided": self.one_sided,
        }


def _finite(value: float | str | None) -> float | str | None:
    return None if isinstance(value, float) and not math.isfinite(value) else value


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What a figure's function returns.

    Parameters
    ----------
    rows : sequence of Row
        Paper beside Fanin.
    plots : mapping
        File name without ending → Plotly figure, in the order in which they are shown.
    data : mapping
        File name without ending → Polars frame with what is plotted and what the rows were made from.
    """

    rows: Sequence[Row]
    plots: Mapping[str, Plot] = field(default_factory=dict)
    data: Mapping[str, pl.DataFrame] = field(default_factory=dict)
