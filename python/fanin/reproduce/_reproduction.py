"""A reproduced figure: in memory, and as files."""

from __future__ import annotations

import html
import json
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from fanin import _core, files
from fanin.figures import paper
from fanin.reproduce._registry import PAPERS, Figure
from fanin.reproduce._rows import Row
from fanin.results.folder import OutputError

if TYPE_CHECKING:
    from plotly.graph_objects import Figure as Plot

MANIFEST: Final = "manifest.json"
SCHEMA: Final = "reproduction/1"
ENDINGS: Final = ("pdf", "svg", "png")
HEAD: Final = ("", "paper", "fanin", "within", "unit", "ok", "note")


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """A figure of a paper, made anew.

    Attributes
    ----------
    about : Figure
        Which.
    found : tuple of Row
        Paper beside Fanin, as objects; `rows` is the same as a frame.
    plots : mapping
        Name → Plotly figure.
    data : mapping
        Name → Polars frame: what is plotted, and what the rows were made from.
    manifest : dict
        Version, seeds, whether it is the short form, hash and seed of each run.
    """

    about: Figure
    found: tuple[Row, ...]
    plots: Mapping[str, Plot]
    data: Mapping[str, pl.DataFrame]
    manifest: dict[str, Any]

    @property
    def id(self) -> str:
        """Id of the figure."""
        return self.about.id

    @cached_property
    def rows(self) -> pl.DataFrame:
        """Paper beside Fanin, a row each: columns as in ``rows.json``, ``paper`` as text."""
        text, number = pl.String(), pl.Float64()
        types: dict[str, pl.DataType] = {"name": text, "paper": text, "fanin": number, "low": number, "high": number}
        types |= {"unit": text, "ok": pl.Boolean(), "note": text, "calibrated": text, "one_sided": pl.Boolean()}
        records = [row.to_dict() | {"paper": None if row.paper is None else str(row.paper)} for row in self.found]
        return pl.DataFrame(records, schema=types)

    @property
    def figure(self) -> Plot:
        """The first plot.

        Raises
        ------
        ValueError
            It has none, only rows.
        """
        if not self.plots:
            raise ValueError(f"{self.id}: has no plot, only rows")
        return next(iter(self.plots.values()))

    @property
    def ok(self) -> bool:
        """Whether each row is within its bounds or explained by its note."""
        return not any(row.failed for row in self.found)

    def to_dict(self) -> dict[str, Any]:
        """Return what ``fanin reproduce --json`` prints: ``id`` and ``rows``."""
        return {"id": self.id, "rows": [row.to_dict() for row in self.found]}

    def save(self, out: Path) -> list[Path]:
        """Write plots, data, rows and manifest into a folder; the same reproduction gives the same bytes.

        Parameters
        ----------
        out : pathlib.Path
            The folder; an earlier reproduction in it is replaced.

        Raises
        ------
        OutputError
            The folder holds something else.
        OSError
            It cannot be written; an earlier reproduction is still there.
        """
        old = inspect(out)
        out.mkdir(parents=True, exist_ok=True)
        staged = Path(tempfile.mkdtemp(prefix=files.OURS, dir=out))
        try:
            listed = self._write(staged)
            for name in old:
                (out / name).unlink(missing_ok=True)
            (out / "data").mkdir(exist_ok=True)
            for name in (*listed, MANIFEST):
                (staged / name).replace(out / name)
        except OSError as error:
            if error.filename is not None and Path(error.filename).is_relative_to(staged):
                error.filename = str(out / Path(error.filename).relative_to(staged))
            raise
        finally:
            shutil.rmtree(staged, ignore_errors=True)
        return [out / name for name in (*listed, MANIFEST)]

    def _write(self, out: Path) -> list[str]:
        """Write everything into an empty folder; return the names of all files but the manifest."""
        (out / "data").mkdir()
        written: list[Path] = []
        for name, plot in self.plots.items():
            written += [paper.save(plot, out / f"{name}.{ending}") for ending in ENDINGS]
        for name, frame in self.data.items():
            for ending, write in (("csv", frame.write_csv), ("parquet", frame.write_parquet)):
                written.append(out / "data" / f"{name}.{ending}")
                with files.replacing(written[-1]) as part:
                    write(part)
        written.append(_write(out / "rows.json", self.to_dict()))
        listed = [str(file.relative_to(out)) for file in written]
        _write(out / MANIFEST, self.manifest | {"files": sorted(listed)})
        return listed

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in HEAD)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells(row)) + "</tr>" for row in self.found)
        plots = "".join(plot.to_html(full_html=False, include_plotlyjs=not index) for index, plot in enumerate(self.plots.values()))
        title, source = html.escape(f"{self.id}: {self.about.title}"), html.escape(PAPERS.get(self.about.paper, ""))
        return f"<div><b>{title}</b><br>{source}<table><tr>{head}</tr>{body}</table>{plots}</div>"


def manifest(figure: Figure, *, seeds: Iterable[int], short: bool, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what says how a reproduction was made; nothing in it depends on the machine or the number of jobs."""
    facts = {"schema": SCHEMA, "id": figure.id, "title": figure.title, "paper": PAPERS.get(figure.paper, "")}
    return facts | {"version": _core.version(), "short": short, "seeds": list(seeds), "runs": runs}


def _write(path: Path, document: dict[str, Any]) -> Path:
    return files.write_text(path, json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def inspect(out: Path) -> list[str]:
    """Return the files of an earlier reproduction in `out`.

    Raises
    ------
    OutputError
        It is a file, or holds anything else.
    """
    if out.exists() and not out.is_dir():
        raise OutputError(f"{out}: is a file, not a folder")
    there = {str(path.relative_to(out)) for path in out.rglob("*") if not path.is_dir()} if out.is_dir() else set()
    if not there:
        return []
    try:
        old = json.loads(files.read_text(out / MANIFEST))
        ours = {str(name) for name in old["files"]} | {MANIFEST} if old["schema"] == SCHEMA else set()
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        ours = set()
    others = sorted(name for name in there - ours if not any(part.startswith(files.OURS) for part in Path(name).parts))
    if others:
        listed = f"{', '.join(others[:3])}{' …' if len(others) > 3 else ''}"
        raise OutputError(f"{out}: holds what is not of an earlier reproduction ({listed}); choose another folder")
    return sorted(there)


def number(value: float | str | None) -> str:
    """Return a number with four digits that count, words as they are, a dash for nothing."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"


def cells(row: Row) -> list[str]:
    """Return a row as the table shows it, in the order of `HEAD`."""
    if row.low is None:
        within = f"≤ {number(row.high)}"
    elif row.high is None:
        within = f"≥ {number(row.low)}"
    else:
        within = f"{number(row.low)} … {number(row.high)}"
    verdict = "no" if not row.ok else "calibrated" if row.calibrated else "yes"
    if row.one_sided:
        verdict += ", one-sided"
    notes = [row.note] if row.note else []
    notes += [f"set for it: {row.calibrated}"] if row.calibrated else []
    return [row.name, number(row.paper), number(row.fanin), within, row.unit, verdict, "; ".join(notes)]
