"""The results of a sweep as frames: runs with their axes, and metrics, also while the sweep goes on."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fanin.results import Result, ResultError
from fanin.statistics.rows import address, hint
from fanin.sweep import store as _store

if TYPE_CHECKING:
    import polars as pl

    from fanin.comparison import Comparison

_NOT_METRICS: Final = ("run", "segment", "group", "name")


class Sweep:
    """The results of a sweep, as they are when they are read.

    Parameters
    ----------
    where : path-like
        The folder that ``fanin sweep`` writes to, or ``s3://BUCKET/PREFIX``.

    Raises
    ------
    ResultError
        No sweep is there, or it was written by a later version.

    Examples
    --------
    >>> sweep = fanin.Sweep("out/k")  # doctest: +SKIP
    >>> sweep.values("fct/all.p99_ps").group_by("switch.marking.k").agg(pl.col("value").mean())  # doctest: +SKIP
    """

    def __init__(self, where: str | os.PathLike[str]) -> None:
        self._store: Final = _store.opened(where)
        data = self._store.get(_store.SWEEP)
        if data is None:
            raise ResultError(f"{self.path}: holds no sweep ({_store.SWEEP} is missing)")
        try:
            document = json.loads(data)
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict) or not isinstance(document.get("axes"), list):
            raise ResultError(f"{self.path}/{_store.SWEEP}: is damaged")
        if document.get("schema") != "sweep/1":
            raise ResultError(
                f"{self.path}/{_store.SWEEP}: has schema {str(document.get('schema'))[:40]!r}; this Fanin reads sweep/1"
            )
        self._document: Final[dict[str, Any]] = document

    @staticmethod
    def is_store(where: str | os.PathLike[str]) -> bool:
        """Whether a folder, or a prefix of a bucket, holds a sweep."""
        return _store.opened(where).get(_store.SWEEP) is not None

    @property
    def path(self) -> str:
        """Where it is."""
        return self._store.path

    @property
    def document(self) -> dict[str, Any]:
        """What was asked for: the content of ``sweep.json``."""
        return self._document

    @property
    def name(self) -> str:
        """Its name."""
        return str(self._document.get("name", ""))

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of the axes, which are columns of `runs`."""
        return tuple(str(axis["name"]) for axis in self._document["axes"])

    @property
    def planned(self) -> int:
        """The number of runs that were asked for."""
        return int(self._document.get("planned", 0))

    @cached_property
    def plan(self) -> pl.DataFrame:
        """All runs that were asked for: run, seed, point, label and axes."""
        import io

        import polars as pl

        data = self._store.get(_store.PLAN)
        if data is None:
            raise ResultError(f"{self.path}/{_store.PLAN}: is missing")
        return pl.read_parquet(io.BytesIO(data))

    @cached_property
    def _segments(self) -> dict[str, pl.DataFrame]:
        return _store.read_frames(self._store, _store.RUNS, self._store.names(_store.RUNS))

    @cached_property
    def runs(self) -> pl.DataFrame:
        """The runs of the plan that have ended, well or not, each once, with their axes; in the order of the plan."""
        return self.all_runs.join(self.plan.select("run"), on="run", how="semi", maintain_order="left")

    @cached_property
    def all_runs(self) -> pl.DataFrame:
        """The same with those of earlier plans and other versions in the same store, which come last."""
        import polars as pl

        frames = list(self._segments.values())
        found = pl.concat(frames, how="diagonal_relaxed") if frames else pl.DataFrame(schema=_store.run_schema())
        good = (pl.col("status") != "ok").cast(pl.Int8)
        found = found.sort([good, "attempt", "segment"], descending=[False, True, False]).unique(
            "run", keep="first", maintain_order=True
        )
        plan = self.plan.with_row_index("order")
        own = [name for name in plan.columns if name not in ("run", "seed", "point", "order")]
        joined = found.join(plan.drop("seed", "point"), on="run", how="left", suffix="/plan")
        both = [name for name in own if name in found.columns]
        # The plan knows the axes of runs that were made before there were these axes.
        joined = joined.with_columns(
            pl.when(pl.col("order").is_not_null()).then(pl.col(f"{name}/plan")).otherwise(pl.col(name)).alias(name)
            for name in both
            if found[name].dtype == plan[name].dtype
        )
        joined = joined.sort("order", "run", nulls_last=True)
        return joined.drop("order", *(f"{name}/plan" for name in both))

    @property
    def failed(self) -> pl.DataFrame:
        """The runs that failed, with their errors."""
        import polars as pl

        return self.runs.filter(pl.col("status") != "ok")

    @property
    def pending(self) -> pl.DataFrame:
        """The runs of the plan that have not ended."""
        return self.plan.join(self.runs.select("run"), on="run", how="anti", maintain_order="left")

    @property
    def complete(self) -> bool:
        """Whether everything that was asked for has been run; with a stop rule, whether each point has enough seeds."""
        from fanin.sweep.todo import pending

        return not pending(self)

    @cached_property
    def metrics(self) -> pl.DataFrame:
        """Metrics of the good runs: a row for each run and group of metrics."""
        import polars as pl

        frames = _store.read_frames(self._store, _store.METRICS, self._segments)
        if not frames:
            return pl.DataFrame(schema=dict.fromkeys(_NOT_METRICS, pl.String))
        found = pl.concat(list(frames.values()), how="diagonal_relaxed")
        good = self.runs.filter(pl.col("status") == "ok").select("run", "segment")
        return found.join(good, on=["run", "segment"], how="semi", maintain_order="left")

    def metric_names(self) -> list[str]:
        """Return the addresses of all metrics that have a value, such as ``fct/all.p99_ps``, in order."""
        import polars as pl

        columns = [name for name in self.metrics.columns if name not in _NOT_METRICS]
        there = self.metrics.group_by("group", "name").agg(pl.col(columns).is_not_null().any())
        names = [
            f"{row['group']}{'' if row['name'] is None else '/' + row['name']}.{column}"
            for row in there.iter_rows(named=True)
            for column in columns
            if row[column]
        ]
        return sorted(names)

    def table(self, group: str, name: str | None = None) -> pl.DataFrame:
        """Return the good runs with their axes and the metrics of a group, such as ``("fct", "all")``."""
        import polars as pl

        rows = self.metrics.filter((pl.col("group") == group) & pl.col("name").eq_missing(name)).drop("segment", "group", "name")
        rows = rows.select(column for column in rows if column.name == "run" or column.null_count() < rows.height)
        good = self.runs.filter(pl.col("status") == "ok").select("run", "point", "label", "seed", *self._axis_columns())
        return good.join(rows, on="run", how="left", maintain_order="left", suffix="_metric")

    def values(self, metric: str) -> pl.DataFrame:
        """Return a metric of each good run: run, point, label, seed, axes and ``value``, null where a run has none.

        Raises
        ------
        ValueError
            It is no address of a metric, or no run has it.
        """
        import polars as pl

        group, name, column = address(metric)
        if not self.metrics.height:
            # No run has ended well yet: nothing is known, and nothing is wrong.
            good = self.runs.filter(pl.col("status") == "ok")
            columns = good.select("run", "point", "label", "seed", *self._axis_columns())
            return columns.with_columns(value=pl.lit(None, dtype=pl.Float64))
        table = self.table(group, name)
        column = f"{column}_metric" if f"{column}_metric" in table.columns else column
        fixed = ["run", "point", "label", "seed", *self._axis_columns()]
        if column not in table.columns or column in fixed:
            raise ValueError(f"{metric}: no run of {self.path} has it{hint(metric, self.metric_names())}")
        return table.select(*fixed, pl.col(column).cast(pl.Float64, strict=False).alias("value"))

    def _axis_columns(self) -> list[str]:
        known = [*self.axes, *(f"{axis['name']} [{axis['unit']}]" for axis in self._document["axes"] if axis.get("unit"))]
        return [name for name in self.runs.columns if name in known]

    def result(self, run: str) -> Result:
        """Return the result folder of a run, which ``--keep`` has it leave.

        Raises
        ------
        ResultError
            It left none.
        """
        if run not in self.kept:
            folder = f"{self.path}/{_store.RESULTS}"
            raise ResultError(f"{folder}: run {run} is not there; fanin sweep --keep (keep=True) keeps the result folders of runs")
        return Result(self.kept[run])

    @cached_property
    def kept(self) -> dict[str, Path]:
        """The result folders that runs have left, by run."""
        return _store.kept_results(self._store)

    def compare(
        self,
        by: str | Sequence[str],
        *,
        where: Mapping[str, Any] | None = None,
        base: str | None = None,
        metric: str | Sequence[str] = (),
        **options: Any,
    ) -> Comparison:
        """Compare the variants that the values of axes make; see `fanin.compare`.

        Parameters
        ----------
        by : str or sequence of str
            Axes whose values make the variants; ``label`` is one where points have labels.
        where : mapping, optional
            Axis → value: only runs with these.
        base : str, optional
            Name of the variant that the others are compared with; the first if not given.
        metric : str or sequence of str
            Which numbers are shown and judged.
        **options
            ``confidence``, ``alpha``, ``margin``, ``looks``, ``seeds`` and ``progress``, as for `fanin.compare`.

        Raises
        ------
        TypeError
            An option is none.
        CompareError
            An axis, a value or a name is unknown; all that is wrong is in ``problems``.
        """
        from fanin.sweep.compare import compare

        return compare(self, by=by, where=where, base=base, metric=metric, **options)

    def reload(self) -> Sweep:
        """Return what is there now."""
        return type(self)(self.path)

    def __repr__(self) -> str:
        return f"<fanin.Sweep {self.path!r}: {self.runs.height:,} of {self.planned:,} runs, {self.failed.height:,} failed>"

    def _repr_html_(self) -> str:
        facts = (
            f"{self.runs.height:,} of {self.planned:,} runs, {self.failed.height:,} failed; axes: {', '.join(self.axes) or 'none'}"
        )
        return f"<div><b>{html.escape(self.name)}</b> – {html.escape(facts)}</div>"
