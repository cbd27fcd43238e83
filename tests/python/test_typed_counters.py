"""Counters in columns of Parquet and Arrow are what the same counters are in text, to the byte."""

from __future__ import annotations

import datetime
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fanin

LOOKS = 400
COLUMNS = "time=t:ms,port=port,bytes=sent:total(64),drops=lost:total(32),watermark=most:B,speed=speed:Mbps"


def looks() -> pl.DataFrame:
    """Return looks at three ports: bursts, a running count that passes 2^63 and 2^64, one that begins anew, values that lack."""
    rows = []
    for i in range(LOOKS):
        for port in range(3):
            busy = i % 40 < 8
            rows.append(
                {
                    "t": 10 * i,
                    "port": f"eth {port}",
                    "sent": (2**63 - 10**8 + i * 10**6 * (1 + 9 * busy)) % 2**64 if port else (2**64 - 10**8 + i * 10**6) % 2**64,
                    "lost": None if i % 11 == port else (i if i < 300 else i - 300) * port,
                    "most": None if i % 7 == 3 else 100_000 * busy + i,
                    "speed": 10_000,
                }
            )
    kinds = {"t": pl.Int64, "port": pl.String, "sent": pl.UInt64, "lost": pl.UInt32, "most": pl.Int32, "speed": pl.UInt16}
    return pl.DataFrame(rows, schema=kinds)


def written(frame: pl.DataFrame, folder: Path) -> list[Path]:
    """Write a table as text, and in each format that has columns."""
    paths = [folder / name for name in ("c.csv", "c.parquet", "c.arrow", "c.arrows")]
    frame.write_csv(paths[0])
    # Row groups and batches end in the middle of a look.
    frame.write_parquet(paths[1], row_group_size=101)
    oldest = pl.CompatLevel.oldest()
    frame.write_ipc(paths[2], compat_level=oldest, compression="zstd")
    pl.concat(list(frame.iter_slices(77)), rechunk=False).write_ipc_stream(paths[3], compat_level=oldest)
    return paths


def found(path: Path, columns: str, **settings: Any) -> dict[str, Any]:
    """Return what an analysis finds that does not name the file."""
    document = fanin.analyze(path, columns=columns, **{"rate": "10Gbps", "by": "rate", **settings}).document
    text = str(document["plausibility"]).replace(str(path), "FILE")
    return {"ports": document["ports"], "plausibility": text.replace("line ", "row ")}


ODD: dict[str, list[pl.Expr]] = {
    "as they are": [],
    "names of a dictionary": [pl.col("port").cast(pl.Categorical)],
    "names that are numbers": [pl.col("port").str.slice(4).cast(pl.UInt8)],
    "names that are negative numbers": [-pl.col("port").str.slice(4).cast(pl.Int64)],
    "numbers that are texts": [pl.col("t", "sent", "lost").cast(pl.String)],
    "texts with blanks, and words for nothing": [
        pl.concat_str(pl.lit(" "), pl.col("t").cast(pl.String), pl.lit(" ")).alias("t"),
        pl.col("lost").cast(pl.String).fill_null("N/A"),
    ],
    "floating point": [pl.col("t").cast(pl.Float64) + 0.1, pl.col("most").cast(pl.Float32) + 0.3, pl.col("lost").cast(pl.Float64)],
    "floating point that is no number": [pl.when(pl.col("t") % 30 == 0).then(float("nan")).otherwise(pl.col("lost")).alias("lost")],
    "small types": [pl.col("most").cast(pl.UInt32), pl.col("lost").cast(pl.Int16), pl.col("t").cast(pl.Int32)],
}


@pytest.mark.parametrize("odd", ODD)
def test_what_is_found_is_what_is_found_in_text(odd: str, tmp_path: Path) -> None:
    text, *columns = written(looks().with_columns(ODD[odd]), tmp_path)
    expected = found(text, COLUMNS)
    assert sum(len(port["bursts"]) for port in expected["ports"]) >= 10
    for path in columns:
        assert found(path, COLUMNS) == expected, path.name


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Kathmandu"])
def test_timestamps_of_all_units_and_zones_are_the_dates_of_text(unit: Any, zone: str | None, tmp_path: Path) -> None:
    begin = datetime.datetime(2026, 11, 21, tzinfo=datetime.UTC)
    times = pl.lit(begin).dt.cast_time_unit("us").dt.replace_time_zone(None) + pl.duration(milliseconds=pl.col("t"))
    times = times.dt.cast_time_unit(unit)
    times = times if zone is None else times.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    frame = looks().with_columns(t=times)
    paths = written(frame, tmp_path)
    text = frame.with_columns(pl.col("t").dt.to_string("iso:strict" if zone is None else "%Y-%m-%dT%H:%M:%S%.9f%:z"))
    text.write_csv(paths[0])
    expected = found(paths[0], COLUMNS.replace("t:ms", "t:iso"))
    for path in paths[1:]:
        assert found(path, COLUMNS.replace("t:ms", "t"))["ports"] == expected["ports"], path.name


WRONG: dict[str, tuple[pl.Expr, str]] = {
    "negative": (pl.when(pl.col("t") == 50).then(-5).otherwise(pl.col("most")).alias("most"), "most: '-5' is negative"),
    "larger than any": (
        pl.when(pl.col("t") == 50).then(pl.lit(2**64 - 1, pl.UInt64)).otherwise(pl.col("most").cast(pl.UInt64)).alias("most"),
        "most: '18446744073709551615' is too large",
    ),
    "no number": (pl.lit("?").alias("most"), "most: '?' is not a number"),
    "yes or no": ((pl.col("t") == 50).alias("most"), "is not a number"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_told_as_in_text_with_file_row_and_column(wrong: str, tmp_path: Path) -> None:
    change, said = WRONG[wrong]
    text, *columns = written(looks().with_columns(change), tmp_path)

    def told(path: Path, behind: int) -> str:
        with pytest.raises(fanin.TraceError) as error:
            found(path, COLUMNS)
        said = str(error.value).replace(str(path), "FILE")
        return re.sub(r"(?:row|line) (\d+)", lambda place: f"row {int(place[1]) - behind}", said)

    expected = told(text, 1)  # behind the names of columns
    assert said in expected.splitlines()[0]
    assert [told(path, 0) for path in columns] == [expected] * 3


def test_a_decimal_of_fixed_point_is_refused_by_name(tmp_path: Path) -> None:
    _, *columns = written(looks().with_columns(pl.col("most").cast(pl.Decimal(18, 2))), tmp_path)
    for path in columns:
        with pytest.raises(fanin.TraceError, match=r"most: is (of type Decimal|a decimal)"):
            found(path, COLUMNS)
