"""The SQL of the documentation, run as it stands there by DuckDB, against what the Python interface says of the same files."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

import fanin

duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed: make test")

ROOT = Path(__file__).parents[2]
SHORT = {"traffic[0].stop": "1ms", "traffic[1].stop": "1ms"}
AXES = ["switch.marking.k", "traffic[0].load"]


def statement(page: str) -> str:
    """The one SQL block of a page."""
    (found,) = re.findall(r"```sql\n(.*?)```", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.DOTALL)
    return str(found)


def asked(sql: str) -> pl.DataFrame:
    """What DuckDB answers, in the current folder."""
    found = duckdb.connect().execute(sql)
    return pl.DataFrame(found.fetchall(), schema=[column[0] for column in found.description], orient="row")


def test_all_sql_of_the_documentation_is_run_here() -> None:
    pages = {str(path.relative_to(ROOT / "docs")) for path in ROOT.glob("docs/**/*.md") if "```sql" in path.read_text("utf-8")}
    assert pages == {"sweeps.md", "results.md"}


def test_the_sql_of_a_sweep_counts_the_runs_of_its_plan_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither those of a point that was withdrawn, nor of another version, nor those that failed."""
    monkeypatch.chdir(tmp_path)
    base, out = fanin.Scenario.from_file(ROOT / "scenarios" / "demo.toml"), Path("out/marking")
    grid = {"switch.marking.k": ["20 packets", "65 packets"], "traffic[0].load": [0.2, 0.45]}
    withdrawn = {**grid, "switch.marking.k": ["10 packets", "20 packets"]}
    for wanted in (withdrawn, grid):
        fanin.sweep(base, out, design={"set": SHORT, "seeds": 3, "grid": wanted}, jobs=1, progress=False)
    for table in ("runs", "metrics"):  # what another version would have written
        first = sorted(out.glob(f"{table}/*.parquet"))[0]
        keys = pl.read_parquet(first)["run"].unique()
        other = pl.read_parquet(first).with_columns(
            run=pl.col("run").replace(dict(zip(keys, (key[::-1] for key in keys), strict=True))), segment=pl.lit("1of1-other-1")
        )
        other = other.with_columns(version=pl.lit("0.0.1")) if table == "runs" else other
        other.write_parquet(out / table / "1of1-other-1.parquet")
    sweep = fanin.Sweep(out)
    stored = pl.concat([pl.read_parquet(path) for path in out.glob("runs/*.parquet")], how="diagonal_relaxed")
    assert (sweep.plan.height, sweep.runs.height) == (12, 12) and stored.height > 18, "six are withdrawn, some of another version"
    found = asked(statement("sweeps.md")).sort(AXES)
    by_point = sweep.values("queries.p99_ps").group_by(AXES)
    expected = by_point.agg(
        p99_ms=pl.col("value").mean() / 1e9, median_ms=pl.col("value").median() / 1e9, runs=pl.col("value").count()
    ).sort(AXES)
    assert found.columns == [*AXES, "p99_ms", "median_ms"]
    assert found.select(AXES).rows() == expected.select(AXES).rows() and found.height == 4
    assert expected["runs"].to_list() == [3] * 4
    for column in ("p99_ms", "median_ms"):
        assert found[column].to_list() == pytest.approx(expected[column].to_list(), rel=1e-12)


def test_the_sql_of_samples_gives_the_means_that_python_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Quiet samples are not in the file: the statement puts them back."""
    base = fanin.Scenario.from_file(ROOT / "scenarios" / "demo.toml").replace(SHORT)
    result = fanin.run(base, tmp_path / "run")
    monkeypatch.chdir(tmp_path / "run")
    found = asked(statement("results.md")).sort("port")
    expected = result.ports.group_by("port").agg(mean_queue_bytes=pl.col("queue_bytes").mean()).sort("port")
    written = pl.read_parquet("ports.parquet")
    assert written.height < result.ports.height, "some samples are quiet"
    assert found.columns == expected.columns and found["port"].to_list() == expected["port"].to_list()
    assert found["mean_queue_bytes"].to_list() == pytest.approx(expected["mean_queue_bytes"].to_list(), rel=1e-12)
    assert max(found["mean_queue_bytes"]) > 1000
