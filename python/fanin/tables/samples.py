"""The table `ports` with its quiet samples.

Between the first and the last sample, which have a row for every port, a run writes rows only for ports at which something has
happened. A row that is not there is all zeros: nothing sent, dropped or marked, and no queue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["fill", "outline", "ports_of", "times_of"]


def times_of(written: pl.LazyFrame) -> pl.Series:
    """Return when samples were taken [ps], rising, the quiet ones too; empty where there were none.

    Samples are as far apart as the first one is from the start of the run; the last one is at its end.

    Parameters
    ----------
    written : polars.LazyFrame
        The table as it is in the file.
    """
    first, last = written.select(first=pl.col("time_ps").min(), last=pl.col("time_ps").max()).collect().row(0)
    if first is None:
        return pl.Series("time_ps", [], pl.UInt64)
    times = pl.int_range(first, last, first, dtype=pl.UInt64, eager=True) if first else pl.Series([], dtype=pl.UInt64)
    return times.append(pl.Series([last], dtype=pl.UInt64)).alias("time_ps")


def ports_of(written: pl.LazyFrame) -> pl.Series:
    """Return the ports that were sampled, in the order of their links."""
    return written.filter(pl.col("time_ps") == pl.col("time_ps").min()).select("port").collect()["port"]


def fill(written: pl.LazyFrame, times: pl.Series, ports: Sequence[str] | pl.Series) -> pl.LazyFrame:
    """Return the table with a row for each of `ports` at each of `times`: by time, then in the order of `ports`.

    Parameters
    ----------
    written : polars.LazyFrame
        The table as it is in the file.
    times : polars.Series
        See `times_of`.
    ports : sequence of str
        Which ports.
    """
    columns = written.collect_schema().names()
    # Not a cross join, which keeps no order.
    every = pl.lit(pl.Series("port", ports, pl.String).implode())
    grid = times.to_frame("time_ps").lazy().with_columns(port=every).explode("port")
    rows = grid.join(written, on=["time_ps", "port"], how="left", maintain_order="left")
    zero = [pl.col(name).fill_null(strategy="zero") for name in columns if name not in ("time_ps", "port")]
    return rows.with_columns(zero).select(columns)


def outline(written: pl.LazyFrame, period_ps: int) -> pl.LazyFrame:
    """Return the rows of one port with a row of zeros at either end of each gap: the same line as with all of its samples.

    Parameters
    ----------
    written : polars.LazyFrame
        The rows of the port as they are in the file.
    period_ps : int
        Time between samples [ps]; the last one may come sooner.
    """
    rows = written.sort("time_ps")
    time = pl.col("time_ps")
    before = rows.select("port", time_ps=(time - 1) // period_ps * period_ps, other=time.shift(1))
    after = rows.select("port", time_ps=time + period_ps, other=time.shift(-1))
    begins = after.filter(time < pl.col("other"))
    ends = before.filter(time > pl.col("other"))
    zeros = pl.concat([begins, ends]).drop("other").unique()
    columns = written.collect_schema().names()
    zero = [pl.col(name).fill_null(strategy="zero") for name in columns if name not in ("time_ps", "port")]
    return pl.concat([rows, zeros], how="diagonal").with_columns(zero).select(columns).sort("time_ps")
