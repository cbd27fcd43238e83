"""Result folders: read, refused, shown."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import fanin
from fake_result import COLD, PORT, write_followed, write_result, write_table
from fanin import Result, ResultError
from fanin.figures import series
from fanin.tables.overview import facts, fct_rows, few_flows, port_rows
from fanin.tables.schemas import SCHEMAS, schema
from fanin.text import show


def test_every_table_is_read_with_the_documented_columns(tmp_path: Path) -> None:
    out = write_result(tmp_path / "out")
    write_followed(out)
    voq = {"time_ps": 100_000_000, "input": "s0->leaf0", "port": PORT, "queue_bytes": 0, "queue_packets": 0}
    write_table(out, "voqs", [voq | {"queue_max_bytes": 3036, "drops": 0}])
    root = {"time_ps": 100_000_000, "port": PORT, "mechanism": "rcm", "about": "output", "state": "root", "degree": 12}
    write_table(out, "states", [root])
    result = fanin.load(out)
    for name in SCHEMAS:
        frame: pl.DataFrame = getattr(result, name)
        assert dict(frame.schema) == schema(name), name
        assert frame.height > 0, name
        lazy: pl.LazyFrame = getattr(result, f"scan_{name}")()
        assert lazy.collect().equals(frame), name


def test_the_documented_columns_are_those_of_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "results.md").read_text(encoding="utf-8")
    for name, columns in SCHEMAS.items():
        section = page.split(f"## {name}.parquet")[1].split("\n## ")[0]
        for column in columns:
            assert f"`{column}`" in section, f"{name}.{column}"


def test_completions_have_time_and_slowdown(folder: Path) -> None:
    result = fanin.load(folder)
    done = result.completions
    assert done.height == result.summary["flows"]["complete"]
    first = done.row(0, named=True)
    assert first["fct_ps"] == first["finish_ps"] - first["start_ps"]
    assert first["slowdown"] == pytest.approx(first["fct_ps"] / first["ideal_ps"])


def test_a_table_that_was_not_written_is_empty(tmp_path: Path) -> None:
    result = fanin.load(write_result(tmp_path / "out", bursts=1, watch=False))
    assert result.queues.height == 0
    assert dict(result.queues.schema) == schema("queues")


def test_a_column_that_an_older_fanin_did_not_write_is_null(tmp_path: Path) -> None:
    out = write_result(tmp_path / "out", bursts=1)
    old = fanin.load(out).flows.drop("base_rtt_ps")
    write_table(out, "flows", old)
    flows = fanin.load(out).flows
    assert dict(flows.schema) == schema("flows")
    assert flows["base_rtt_ps"].null_count() == flows.height > 0
    assert flows.drop("base_rtt_ps").equals(old)


def test_an_unknown_table_is_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match="there is no table 'flow'; there are flows, queries"):
        fanin.load(folder).scan("flow")


def test_what_is_no_result_folder_is_refused(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(ResultError, match="there is no such folder"):
        fanin.load(tmp_path / "absent")
    with pytest.raises(ResultError, match=r"is not a result folder: it has no manifest\.json"):
        fanin.load(tmp_path)
    with pytest.raises(ResultError, match="is a file, not a result folder"):
        fanin.load(folder / "manifest.json")
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(ResultError, match=r"manifest\.json: is damaged"):
        fanin.load(tmp_path)


@pytest.mark.parametrize(
    ("schema", "message"), [("manifest/2", "written by a newer Fanin"), ("other/1", "expected 'manifest/1'"), (None, "expected")]
)
def test_another_schema_is_refused(tmp_path: Path, schema: str | None, message: str) -> None:
    write_result(tmp_path / "out", bursts=1, manifest={"schema": schema})
    with pytest.raises(ResultError, match=message):
        fanin.load(tmp_path / "out")


def test_a_damaged_or_newer_table_is_refused_by_name(tmp_path: Path) -> None:
    out = write_result(tmp_path / "out", bursts=1)
    (out / "flows.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(ResultError, match=r"flows\.parquet: cannot be read"):
        _ = fanin.load(out).flows
    write_table(out, "drops", fanin.load(out).drops, version=2)
    with pytest.raises(ResultError, match=r"drops\.parquet: was written by a newer Fanin"):
        _ = fanin.load(out).drops


def test_a_partial_result_says_so(tmp_path: Path) -> None:
    result = fanin.load(write_result(tmp_path / "out", bursts=1, status="partial"))
    assert not result.complete
    assert "partial: interrupted" in result._repr_html_()
    (result.path / "summary.json").unlink()
    fresh = Result(result.path)
    assert "partial" in fresh._repr_html_()
    with pytest.raises(ResultError, match=r"summary\.json: there is no such file"):
        _ = fresh.summary


def test_the_page_of_a_result_escapes_and_shows_the_table(folder: Path) -> None:
    page = fanin.load(folder)._repr_html_()
    assert "</script>" not in page
    assert "Slowdown mean" in page
    assert "complete, 9.2 ms simulated" in repr(fanin.load(folder))


def test_the_overview_says_what_the_summary_says(folder: Path) -> None:
    result = fanin.load(folder)
    overview = {fact.key: fact for fact in facts(result.summary, result.manifest)}
    summary = result.summary
    assert overview["flows"].text == f"{summary['flows']['complete']} of {summary['flows']['total']}"
    assert overview["flows"].note == "1 incomplete"
    assert overview["drops"].text == show.count(summary["drops"])
    assert overview["drops"].note == f"{show.count(summary['drops'])} buffer_full"
    assert overview["drops"].tone == "bad"
    assert PORT in overview["largest_queue"].note
    assert overview["packet_hops"].note == "2.50 M packet-hops per CPU second"
    head, rows = fct_rows(summary)
    assert len(head) == len(rows[0]) == 10
    assert rows[0][0] == "all"
    assert [row[0] for row in rows[1:]] == ["< 10 KB", "10 KB – 100 KB", "≥ 100 KB"]
    assert port_rows(summary, 1)[1][0][0] == PORT


def test_the_overview_says_which_flows_have_no_completion_time() -> None:
    summary = {"flows": {"total": 12, "complete": 11, "incomplete": 1}, "fct": [{"bin": "all", "flows": 7}]}
    job = {"group": "training", "iterations": {"complete": 1, "total": 1}}
    (fact,) = [fact for fact in facts({**summary, "collectives": [job]}, {}) if fact.key == "flows"]
    assert fact.text == "11 of 12"
    assert fact.note == "1 incomplete, 4 are connections of jobs, which have no completion time"
    assert facts(summary, {})[0].note == "1 incomplete"


def test_percentiles_of_few_flows_are_said_to_be_the_largest() -> None:
    assert few_flows({"fct": [{"bin": "all", "flows": 130}, {"bin": "<10KB", "flows": 99}, {"bin": ">=1MB", "flows": 0}]})
    assert not few_flows({"fct": [{"bin": "all", "flows": 100}, {"bin": "<10KB", "flows": 0}]})
    assert not few_flows({})


def test_an_overview_of_nothing_has_no_invented_numbers() -> None:
    overview = {fact.key: fact for fact in facts({"flows": {"total": 0}, "fct": [], "goodput_bps": None}, {})}
    assert overview["goodput"].text == "–"
    assert "fct" not in overview
    assert fct_rows({"fct": [{"bin": "all", "flows": 0}]})[1] == []


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (show.duration(0), "0 ps"),
        (show.duration(999), "999 ps"),
        (show.duration(1_234_000_000), "1.234 ms"),
        (show.duration(100_000_000_000_000), "100 s"),
        (show.duration(25_000_000_000_000_000), "25000 s"),
        (show.duration(None), "–"),
        (show.size(1518), "1.518 KB"),
        (show.rate(9.41e9), "9.41 Gb/s"),
        (show.count(999_999), "999,999"),
        (show.count(3_217_000), "3.217 M"),
        (show.count(2.5), "2.5"),
        (show.ratio(3.14159), "3.14"),
        (show.ratio(1234.5), "1,234"),
        (show.byte_range(0, 10_000), "< 10 KB"),
        (show.byte_range(10_000, None), "≥ 10 KB"),
        (show.byte_range(None, None), "all sizes"),
    ],
)
def test_numbers_are_shown_with_a_fitting_unit(shown: str, text: str) -> None:
    assert shown == text


def test_reduction_keeps_peak_and_order(folder: Path) -> None:
    result = fanin.load(folder)
    full = series.queue_series(result, PORT, max_points=10**6)
    few = series.queue_series(result, PORT, max_points=40)
    assert not full.reduced
    assert full.records == full.frame.height == result.queues.height
    assert few.reduced
    assert few.records == full.records
    assert 2 < few.line.height <= 40
    assert few.peak_bytes == full.peak_bytes == result.queues["queue_bytes"].max()
    assert few.line["time_ps"].is_sorted()
    kept = full.frame.join(few.frame, on=["time_ps", "queue_bytes", "flow"], how="semi")
    assert kept.height == few.frame.height, "only true records are kept"


def test_the_envelope_of_each_part_is_exact() -> None:
    frame = pl.DataFrame({"time_ps": range(1000), "queue_bytes": [(37 * i) % 101 for i in range(1000)]})
    frame = frame.with_columns(pl.col("time_ps").cast(pl.UInt64))
    reduced = series.reduce_minmax(frame.lazy(), "queue_bytes", 10).collect()
    for part in range(10):
        inside = pl.col("time_ps").is_between(100 * part, 100 * part + 99)
        whole, kept = frame.filter(inside)["queue_bytes"], reduced.filter(inside)["queue_bytes"]
        assert (kept.min(), kept.max(), kept.len()) == (whole.min(), whole.max(), 2)


def test_the_line_falls_to_zero_at_the_rate_of_the_port(folder: Path) -> None:
    data = series.queue_series(fanin.load(folder), PORT, max_points=10**6)
    derived = data.line.height - data.frame.height
    assert derived == 7, "after each burst but the last"
    last = data.frame.filter(pl.col("time_ps") < 1_000_000_000).row(-1, named=True)
    emptied = data.line.filter(pl.col("time_ps").is_between(last["time_ps"] + 1, 1_000_000_000))["time_ps"][0]
    left = last["queue_bytes"] + (0 if last["dropped"] else last["frame_bytes"])
    assert emptied - last["time_ps"] == pytest.approx(left / 1518 * 1_230_400, rel=0.03)


def test_a_port_without_packets_is_shown_by_samples(folder: Path) -> None:
    data = series.queue_series(fanin.load(folder), COLD)
    assert data.kind == "sampled"
    assert data.records == 92
    assert data.peak_bytes == 64


def test_an_unknown_port_is_refused_with_what_there_is(folder: Path) -> None:
    with pytest.raises(ValueError, match="no record of the port 'nowhere'; try leaf0->h0"):
        series.queue_series(fanin.load(folder), "nowhere")


def test_the_window_holds_the_peak_and_so_many_packets(folder: Path) -> None:
    result = fanin.load(folder)
    window = series.peak_window(result, PORT, 100)
    assert window is not None
    near = series.queue_series(result, PORT, window)
    assert near.records == 100
    assert near.peak_bytes == result.queues["queue_bytes"].max()
    assert series.peak_window(result, COLD, 10) == (100_000_000, 1_000_000_000), "by samples"
    assert series.peak_window(result, "nowhere", 10) is None


def test_a_page_shows_watched_ports_before_hotter_ones(folder: Path) -> None:
    result = fanin.load(folder)
    result.summary["ports"] = [{"port": name} for name in ("a", "b", "c", COLD, PORT)]
    assert series.hot_ports(result, 2) == ["a", "b"]
    assert series.shown_ports(result, 3) == [PORT, "a", "b"]
    assert series.shown_ports(result, 9) == [PORT, "a", "b", "c", COLD]


def test_samples_are_summed_and_merged_without_loss(folder: Path) -> None:
    result = fanin.load(folder)
    whole, few = series.sampled(result), series.sampled(result, max_points=10)
    assert whole.merged == 1
    assert few.merged == 10
    assert few.frame.height == 10
    for column in ("tx_bytes", "drops", "marks"):
        assert whole.frame[column].sum() == few.frame[column].sum() == result.ports[column].sum()
    assert few.frame["span_ps"].sum() == result.ports["time_ps"].max()


def test_the_busy_part_of_a_run_is_found(folder: Path) -> None:
    result = fanin.load(folder)
    sent = result.ports.group_by("time_ps").agg(pl.col("tx_bytes").sum()).sort("time_ps")
    until = series.busy_until(result, 0.5)
    assert until is not None
    before = sent.filter(pl.col("time_ps") <= until)["tx_bytes"].sum()
    assert before >= sent["tx_bytes"].sum() / 2 > before - sent.filter(pl.col("time_ps") == until)["tx_bytes"][0]


def test_ports_to_hosts_are_found_by_their_end(folder: Path) -> None:
    assert series.to_hosts(fanin.load(folder)) == [PORT, COLD]


@pytest.mark.parametrize("count", [0, 1, 50, 100_000])
def test_a_distribution_ends_at_one_and_keeps_its_tail(count: int) -> None:
    values = pl.Series("v", [(i * 7919) % 1_000_003 for i in range(count)], dtype=pl.Int64)
    curve = series.cdf(values, 2000)
    assert curve.height <= min(count, 2000)
    if count:
        assert curve["fraction"][-1] == 1.0
        assert curve["value"][-1] == values.max()
        assert curve["value"].is_sorted()
        assert curve["fraction"].is_sorted()
        assert curve["value"].tail(min(count, 100)).to_list() == values.sort().tail(min(count, 100)).to_list()


def test_equal_runs_have_equal_summaries(tmp_path: Path) -> None:
    one, other = (fanin.load(write_result(tmp_path / name, seed=3)) for name in ("a", "b"))
    assert json.dumps(one.summary) == json.dumps(other.summary)
    assert one.fingerprint == other.fingerprint


def sparse(result: Result) -> pl.DataFrame:
    """Leave out of a table of samples what a run does not write: rows of zeros, but of the first and the last sample."""
    rows = result.ports
    ends = pl.col("time_ps").is_in([rows["time_ps"].min(), rows["time_ps"].max()])
    counted = [name for name in rows.columns if name not in ("time_ps", "port")]
    return rows.filter(ends | pl.any_horizontal(pl.col(name) > 0 for name in counted))


@pytest.fixture
def quiet(tmp_path: Path) -> Result:
    """A result in whose samples the three ports are quiet most of the time, written sparsely; the last sample is off the grid."""
    out = write_result(tmp_path / "out", watch=False)
    rows = fanin.load(out).ports
    time = pl.col("time_ps")
    silent = (time // 100_000_000 % 10).is_between(4, 9) & (pl.col("port") != PORT)
    zero = [pl.when(silent).then(0).otherwise(pl.col(name)).cast(rows.schema[name]).alias(name) for name in rows.columns[2:]]
    last = pl.when(time == time.max()).then(time - 1_000).otherwise(time)
    write_table(out, "ports", rows.with_columns(zero).with_columns(time_ps=last))
    shutil.copytree(out, tmp_path / "dense")
    write_table(out, "ports", sparse(fanin.load(out)), version=2)
    return fanin.load(out)


def test_quiet_samples_come_back_as_zeros(quiet: Result) -> None:
    dense = fanin.load(quiet.path.parent / "dense")
    assert quiet.scan("ports", as_written=True).select(pl.len()).collect().item() < 0.7 * dense.ports.height
    assert_frame_equal(quiet.ports, dense.ports)
    assert_frame_equal(quiet.scan_ports().collect(), dense.ports)
    assert quiet.sample_times.to_list() == dense.sample_times.to_list() == dense.ports["time_ps"].unique().sort().to_list()
    # The mean over what is in the file is not that over time.
    mean = pl.col("queue_bytes").mean()
    assert quiet.ports.select(mean).item() < quiet.scan("ports", as_written=True).select(mean).collect().item()


def test_an_outline_is_the_line_of_all_samples(quiet: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each sample: its own value, and between two points of the outline none that is not on the line between them."""
    monkeypatch.setattr(series, "OUTLINED", 5)
    for port in (PORT, COLD):
        full = quiet.ports.filter(pl.col("port") == port).select("time_ps", "queue_max_bytes")
        drawn = series.queue_series(quiet, port).frame.select("time_ps", "queue_max_bytes")
        assert drawn["time_ps"].is_sorted()
        assert drawn["time_ps"].n_unique() == drawn.height
        assert_frame_equal(full.join(drawn, on="time_ps", how="semi"), drawn)
        left_out = full.join(drawn, on="time_ps", how="anti")
        assert set(left_out["queue_max_bytes"]) <= {0}
        between = left_out.join_asof(drawn, on="time_ps", suffix="_before")
        between = between.join_asof(drawn, on="time_ps", strategy="forward", suffix="_after")
        assert between.select(pl.max_horizontal("queue_max_bytes_before", "queue_max_bytes_after").sum()).item() == 0
    assert series.queue_series(quiet, COLD).records < full.height


def test_figures_and_reports_of_sparse_samples_are_those_of_dense_ones(quiet: Result) -> None:
    dense = fanin.load(quiet.path.parent / "dense")
    for port in (PORT, COLD):
        for window in (None, (2_000_000_000, 4_000_000_000)):
            one, other = (series.queue_series(result, port, window) for result in (quiet, dense))
            assert_frame_equal(one.frame, other.frame)
            assert_frame_equal(one.line, other.line)
            assert (one.kind, one.records, one.peak_ps) == ("sampled", other.records, other.peak_ps)
        assert series.peak_window(quiet, port, 30) == series.peak_window(dense, port, 30)
        assert_frame_equal(series.sampled(quiet, [port]).frame, series.sampled(dense, [port]).frame)
    assert_frame_equal(series.sampled(quiet).frame, series.sampled(dense).frame)
    assert_frame_equal(series.sampled(quiet, max_points=9).frame, series.sampled(dense, max_points=9).frame)
    assert series.to_hosts(quiet) == series.to_hosts(dense)
    assert series.busy_until(quiet) == series.busy_until(dense)
    assert quiet.report().read_bytes() == dense.report().read_bytes()
    with pytest.raises(ValueError, match="there is no record of the port 'leaf9->h9'"):
        series.queue_series(quiet, "leaf9->h9")
    with pytest.raises(ValueError, match="there are no samples of the port 'leaf9->h9'"):
        quiet.plot_throughput("leaf9->h9")


def test_a_run_that_ends_before_its_first_sample_has_one(tmp_path: Path) -> None:
    out = write_result(tmp_path / "out", bursts=1)
    ports = fanin.load(out).ports
    last = ports.filter(pl.col("time_ps") == ports["time_ps"].max())
    write_table(out, "ports", last, version=2)
    assert_frame_equal(fanin.load(out).ports, last)
    write_table(out, "ports", last.clear(), version=2)
    assert fanin.load(out).ports.is_empty()
    (out / "ports.parquet").unlink()
    assert fanin.load(out).sample_times.is_empty()


def test_marks_are_no_share_of_data_packets() -> None:
    """A packet is marked at each port that does; what arrives marked is less."""
    (marks,) = [fact for fact in facts({"marks": 30, "packets_sent": 10}, {}) if fact.key == "marks"]
    assert (marks.text, marks.note) == ("30", "counted at each port that marks a packet")
