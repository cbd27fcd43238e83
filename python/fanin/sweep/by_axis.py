"""Variants among the runs of a sweep: those with the same value of an axis."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fanin.comparison.variants import CompareError, Run, Variant, meant
from fanin.comparison.variants import settings as settings_of
from fanin.scenario import Scenario
from fanin.statistics import metrics, tried
from fanin.sweep.frames import Sweep
from fanin.sweep.todo import pending

if TYPE_CHECKING:
    import polars as pl

_SHOWN: Final = 6
"""Values of an axis that a message lists."""


def is_one(source: object) -> bool:
    """Whether `source` is a sweep, or the path of its store."""
    if isinstance(source, str | os.PathLike):
        return str(source).startswith("s3://") or (Path(source) / "sweep.json").is_file()
    return isinstance(source, Sweep)


def gather(sources: Sequence[Any], by: Sequence[str], where: Mapping[str, str]) -> list[Variant]:
    """Return the variants of a sweep, in the order of its points: the first is that of the first point.

    Parameters
    ----------
    sources : sequence
        One sweep, or the path of its store.
    by : sequence of str
        Axes whose values make variants; ``label`` is one where points have labels.
    where : mapping of str to str
        Axis → value; only runs with these.

    Raises
    ------
    CompareError
        It is no sweep, no run of it has ended, an axis or a value is unknown, or other axes vary, too.
    """
    if len(sources) != 1 or not is_one(sources[0]):
        others = [str(source) for source in sources if not is_one(source)]
        gone = [path for path in others if "://" not in path and not Path(path).exists()]
        if len(sources) == 1 and gone:
            raise CompareError([f"{gone[0]}: there is no such folder"])
        what = (
            f"; {', '.join(others)} {'is' if len(others) == 1 else 'are'} no sweep" if others else f", and {len(sources)} are given"
        )
        raise CompareError([f"by, where: one sweep is needed{what}"])
    sweep = sources[0] if not isinstance(sources[0], str | os.PathLike) else Sweep(sources[0])
    runs = sweep.runs
    labels = ["label"] if "label" in runs.columns and runs["label"].null_count() < runs.height else []
    axes = [axis for axis in [*labels, *sweep.axes] if axis in runs.columns]
    if not runs.height:
        raise CompareError([f"{sweep.path}: no run of this sweep has ended yet"])
    problems = [_unknown(sweep.path, axis, axes) for axis in [*by, *where] if axis not in axes]
    if not by:
        problems.append(
            f"{sweep.path}: is a sweep, whose variants are the values of an axis: choose it with --by (by=) from {', '.join(axes)}"
        )
    chosen = runs
    for axis, value in where.items():
        if axis in axes:
            kept = [at for at, found in enumerate(chosen[axis].to_list()) if _is(found, value)]
            if not kept:
                problems.append(f"{axis}={value}: no run has this value; there are {_listed(chosen, axis)}")
            chosen = chosen[kept]
    vary = [axis for axis in sweep.axes if axis in axes and axis not in by and chosen[axis].n_unique() > 1] if not problems else []
    if "label" not in by:
        problems += [
            f"{axis}: varies, too; choose one of its values with --where (where=): {_listed(chosen, axis)}" for axis in vary
        ]
    good = chosen.filter(chosen["status"] == "ok")
    if not problems and not good.height:
        every = "the run" if chosen.height == 1 else f"all {chosen.height:,} runs"
        problems.append(f"{sweep.path}: {every} failed; the column error of its runs says why")
    if problems:
        raise CompareError(problems)
    return _variants(sweep, chosen, list(by))


def _unknown(path: str, axis: str, axes: Sequence[str]) -> str:
    last = next((f"; did you mean {name}?" for name in axes if name.split(".")[-1] == axis), "")
    return f"{axis}: is no axis of {path}; there are {', '.join(axes)}" + (meant(axis, axes) or last)


def _listed(runs: pl.DataFrame, axis: str) -> str:
    values = [str(value) for value in runs[axis].unique(maintain_order=True).to_list()]
    return ", ".join(values[:_SHOWN]) + (f" and {len(values) - _SHOWN} more" if len(values) > _SHOWN else "")


def _is(found: object, value: str) -> bool:
    """Whether a value of an axis is the one that is written so: 0.50 is 0.5."""
    if str(found).lower() == str(value).lower():
        return True
    try:
        return float(str(found)) == float(value)
    except ValueError:
        return False


def _variants(sweep: Sweep, runs: pl.DataFrame, by: Sequence[str]) -> list[Variant]:
    import polars as pl

    numbers: dict[str, dict[str, float]] = {}
    rows = sweep.metrics.filter(pl.col("group").is_in(metrics.GROUPS) & pl.col("run").is_in(runs["run"].implode()))
    columns = [name for name in rows.columns if name not in ("run", "segment", "group", "name")]
    for (group, name), frame in rows.group_by(["group", "name"], maintain_order=True):
        place = f"{group}" if name is None else f"{group}/{name}"
        for column in columns:
            key = f"{place}.{column}"
            if metrics.of(key) is None or frame[column].null_count() == frame.height:
                continue
            for run, value in frame.select("run", pl.col(column).cast(pl.Float64, strict=False)).drop_nulls().iter_rows():
                numbers.setdefault(run, {})[key] = value
    kept = sweep.kept
    found: list[Variant] = []
    lost: list[str] = []
    to_do = _to_do(sweep, runs, by)
    more = ("and what its stop rule asks for then",) if to_do and "stop" in (sweep.document.get("sweep") or {}) else ()
    sizes = [next((name for name in runs.columns if name.startswith(f"{axis} [")), axis) for axis in by]
    points = _points(sweep)
    grouped = list(runs.sort(sizes, maintain_order=True).group_by(by, maintain_order=True))
    grouped.sort(key=lambda entry: _place(points, dict(zip(by, entry[0], strict=True))))
    for values, frame in grouped:
        chosen = dict(zip(by, values, strict=True))
        whole = _whole(sweep, points, chosen)
        settings, conditions = _settings(sweep, whole, chosen, frame), tried.of(whole or {})
        ok = frame.filter(pl.col("status") == "ok").sort("seed")
        made = [
            Run(
                seed=row["seed"],
                values=numbers.get(row["run"], {}),
                settings=settings,
                version=row["version"],
                fingerprint=row["fingerprint"] or "",
                status="complete",
                sim_ps=row["sim_ps"] or 0,
                origin=str(kept.get(row["run"], f"{sweep.path}/{row['run']}")),
                result=_opener(sweep, row["run"]) if row["run"] in kept else None,
                conditions=conditions,
            )
            for row in ok.iter_rows(named=True)
        ]
        if not made:
            lost.append(
                f"{_name(by, values)}: all {frame.height:,} runs failed"
                if frame.height > 1
                else f"{_name(by, values)}: its run failed"
            )
        else:
            found.append(Variant(_name(by, values), tuple(made), frame.height - ok.height, to_do.pop(values, 0)))
    rest = (*(f"{_name(by, values)} all {count:,}" for values, count in to_do.items()), *more)
    return [replace(variant, unfinished=rest, failed_whole=tuple(lost)) for variant in found]


def _name(by: Sequence[str], values: Sequence[Any]) -> str:
    """Return what a variant is called, by its values of the axes."""
    return ", ".join(
        str(value) if axis == "label" else f"{axis.split('.')[-1]}={value}" for axis, value in zip(by, values, strict=True)
    )


def _to_do(sweep: Sweep, runs: pl.DataFrame, by: Sequence[str]) -> dict[tuple[Any, ...], int]:
    """Return how many runs a sweep still needs, by the values of the axes that make variants; of the chosen values of others."""
    import polars as pl

    needed = pending(sweep)
    if not needed:
        return {}
    rows = sweep.plan.filter(pl.col("run").is_in(needed))
    for axis in sweep.axes:
        if axis not in by and axis in rows.columns and axis in runs.columns and "label" not in by:
            rows = rows.filter(pl.col(axis).is_in(runs[axis].unique().implode(), nulls_equal=True))
    return {values: frame.height for values, frame in rows.group_by(by, maintain_order=True)}


def _points(sweep: Any) -> list[Any]:
    """Return the points of a sweep in the order of its file."""
    from fanin.sweep.axes import read

    return list(read(sweep.document.get("sweep") or {}).points)


def _fits(point: Any, chosen: Mapping[str, Any]) -> bool:
    given = {"label": point.label, **point.values}
    written = {axis: given.get(axis) for axis in chosen}
    texts = {axis: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for axis, value in written.items()}
    return all(value in (written[axis], texts[axis]) for axis, value in chosen.items())


def _place(points: Sequence[Any], chosen: Mapping[str, Any]) -> int:
    """Return the place of the first point with some values; behind all where none has them."""
    return next((at for at, point in enumerate(points) if _fits(point, chosen)), len(points))


def _whole(sweep: Any, points: Sequence[Any], chosen: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the whole scenario of the first point of a variant, flat; None where files that it reads are elsewhere."""
    point = next((point for point in points if _fits(point, chosen)), None)
    document = sweep.document.get("scenario")
    try:
        if point is not None and isinstance(document, Mapping):
            return settings_of(Scenario(document).replace(point.values).resolved)
    except (ValueError, OSError):
        pass
    return None


def _settings(sweep: Any, whole: Mapping[str, Any] | None, chosen: Mapping[str, Any], runs: pl.DataFrame) -> Mapping[str, Any]:
    """Return what is set at the points of a variant: the whole scenario, where labels tell points apart; else the axes."""
    if "label" in chosen:
        if whole is not None:
            return whole
        return {axis: runs[axis][0] for axis in sweep.axes if axis in runs.columns and runs[axis].n_unique() == 1}
    return dict(chosen)


def _opener(sweep: Sweep, run: str) -> Any:
    return lambda: sweep.result(run)
