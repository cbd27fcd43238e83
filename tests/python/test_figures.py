"""The data under each chart equal the frames; papers get the same figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl
import pytest

import fanin
from fake_result import COLD, PORT, write_result, write_table
from fanin import figures
from fanin.figures import paper, series

PLOTS = ["fct_cdf", "fct", "slowdown", "queue", "throughput", "drops_marks"]


def named(figure: Any) -> dict[str, Any]:
    return {trace.name: trace for trace in figure.data}


def test_the_distribution_holds_every_completion(folder: Path) -> None:
    result = fanin.load(folder)
    traces = named(result.plot_fct_cdf())
    query = result.completions.filter(pl.col("group") == "query")
    drawn = traces[f"query ({query.height:,})"]
    assert np.allclose(drawn.x, query["fct_ps"].sort().to_numpy() / 1e9)
    assert np.allclose(drawn.y, np.arange(1, query.height + 1) / query.height)
    assert len(traces) == 3
    slow = named(result.plot_fct_cdf(slowdown=True))
    assert np.allclose(slow[f"query ({query.height:,})"].x, query["slowdown"].sort().to_numpy())


def test_charts_of_completion_times_share_a_unit_and_label_powers_of_ten(folder: Path) -> None:
    result = fanin.load(folder)
    cdf, fct = result.plot_fct_cdf().layout.xaxis, result.plot_fct().layout.yaxis
    assert cdf.title.text == fct.title.text == "Flow completion time [ms]"
    assert (cdf.type, cdf.dtick, cdf.exponentformat) == ("log", 1, "none")
    for entry in result.summary["fct"]:
        entry.update({key: 3.0 for key in entry if key.startswith("slowdown_")})
    low, high = result.plot_slowdown().layout.yaxis.range
    assert (low, high) == pytest.approx((-0.05, 1.05)), "1 and 10 are both on the axis"


def test_inputs_that_wait_for_a_port_are_drawn_beside_its_queue(tmp_path: Path) -> None:
    path = write_result(tmp_path / "voqs", bursts=1)
    assert figures.input_queues(fanin.load(path), PORT) is None, "an output-queued switch"
    times = fanin.load(path).sample_times
    row = {"input": "s0->leaf0", "port": PORT, "queue_bytes": 0, "queue_packets": 0, "queue_max_bytes": 3036, "drops": 0}
    rows = [row | {"time_ps": times[i]} for i in (2, 3, 5)]
    rows += [row | {"time_ps": times[3], "input": "s1->leaf0", "queue_max_bytes": 9108, "drops": 1}]
    rows += [row | {"time_ps": times[3], "port": COLD, "queue_max_bytes": 1518}]
    write_table(path, "voqs", rows)
    result = fanin.load(path)
    figure = figures.input_queues(result, PORT)
    assert figure is not None
    drawn = named(figure)
    assert list(drawn) == [f"output {figures.plain(PORT)}", "s1-&gt;leaf0", "s0-&gt;leaf0"], "those with the most first"
    assert figure.layout.yaxis.title.text == "Queue [KB]"
    lines = {name: np.round(np.asarray(trace.y, dtype=float) * 1000) for name, trace in drawn.items()}
    assert [int(y) for y in lines["s0-&gt;leaf0"][:7]] == [0, 0, 3036, 3036, 0, 3036, 0], "zero where there is no row"
    assert lines["s1-&gt;leaf0"].sum() == 9108
    own = result.ports.filter(pl.col("port") == PORT)
    assert np.allclose(lines[f"output {figures.plain(PORT)}"], own["queue_max_bytes"].to_numpy())
    assert figures.input_queues(result, "leaf9->h9") is None


def test_a_burst_ends_where_the_queue_is_small() -> None:
    def found(levels: list[int]) -> tuple[int, int] | None:
        return series.burst(pl.DataFrame({"time_ps": [100 * i for i in range(len(levels))], "level": levels}))

    idle = [0] * 20
    assert found([*idle, 40, 100, 60, 30, *idle]) == (1900 - 100, 2400 + 100)
    assert found([*[30] * 20, 40, 100, 60, 30, *[30] * 20]) == (2000 - 60, 2300 + 60), "above a standing queue"
    assert found([5, 100]) == (0, 100)
    assert found([]) is None


def test_names_of_users_are_not_read_as_markup(folder: Path) -> None:
    names = [trace.name for trace in fanin.load(folder).plot_fct_cdf().data]
    assert any("background &lt;b&gt;" in name for name in names)
    assert not any("<b>" in name for name in names)


@pytest.mark.parametrize("what", ["fct", "slowdown"])
def test_the_bins_hold_the_summary(folder: Path, what: str) -> None:
    result = fanin.load(folder)
    figure = result.plot_slowdown() if what == "slowdown" else result.plot_fct()
    bins = [entry for entry in result.summary["fct"][1:] if entry["flows"]]
    keys = ("slowdown_p99", 1.0) if what == "slowdown" else ("p99_ps", 1e9 if "[ms]" in figure.layout.yaxis.title.text else 1e6)
    drawn = named(figure)["p99"]
    assert np.allclose(drawn.y, [entry[keys[0]] / keys[1] for entry in bins])
    assert [label.split("<br>")[0] for label in drawn.x] == ["< 10 KB", "10 KB – 100 KB", "≥ 100 KB"]


def test_the_queue_holds_every_packet_once_by_what_became_of_it(folder: Path) -> None:
    result = fanin.load(folder)
    traces = named(result.plot_queue())
    records = result.queues
    sets = {
        "dropped": pl.col("dropped"),
        "marked CE": pl.col("marked") & ~pl.col("dropped"),
        "queued": ~pl.col("marked") & ~pl.col("dropped"),
    }
    for name, condition in sets.items():
        rows = records.filter(condition)
        assert rows.height > 0
        assert np.allclose(traces[name].x, rows["time_ps"].to_numpy() / 1e9)
        assert np.allclose(traces[name].y, rows["queue_bytes"].to_numpy() / 1e3)
        assert (traces[name].customdata[:, 0] == rows["flow"].to_numpy()).all()
    assert sum(len(traces[name].x) for name in sets) == records.height


def test_a_large_queue_is_reduced_and_says_so(folder: Path) -> None:
    result = fanin.load(folder)
    figure = figures.queue(result, PORT, max_points=100)
    assert "smallest and largest queue of each of 50 parts" in figure.layout.meta["note"]
    assert len(figure.data) == 1
    assert max(figure.data[0].y) == pytest.approx(result.queues["queue_bytes"].to_numpy().max() / 1e3)
    window = (200_000_000, 260_000_000)
    near = figures.queue(result, PORT, window_ps=window, max_points=1000)
    assert "each as it found the queue" in near.layout.meta["note"]


def test_samples_show_both_the_largest_and_the_last(folder: Path) -> None:
    result = fanin.load(folder)
    traces = named(result.plot_queue(COLD))
    assert set(traces) == {"largest in the interval", "at the sample"}
    assert traces["largest in the interval"].line.shape == "vh"


def test_throughput_is_bits_over_the_interval(folder: Path) -> None:
    result = fanin.load(folder)
    figure = result.plot_throughput(PORT)
    rows = result.ports.filter(pl.col("port") == PORT)
    scale = {"[Gb/s]": 1e9, "[Mb/s]": 1e6}[figure.layout.yaxis.title.text.split()[-1]]
    assert np.allclose(figure.data[0].y, rows["tx_bytes"].to_numpy() * 8e12 / 100e6 / scale)
    total = result.plot_throughput().data[0]
    several = result.plot_throughput([PORT, COLD])
    assert [trace.name for trace in several.data] == ["leaf0-&gt;h0", "leaf1-&gt;h4"]
    assert np.allclose(several.data[0].y, figure.data[0].y)
    both = result.ports.filter(pl.col("port").is_in([PORT, COLD])).group_by("time_ps").agg(pl.col("tx_bytes").sum()).sort("time_ps")
    assert np.allclose(total.y, both["tx_bytes"].to_numpy() * 8e12 / 100e6 / scale)


def test_drops_and_marks_are_counted_per_interval(folder: Path) -> None:
    result = fanin.load(folder)
    traces = named(result.plot_drops_marks())
    assert sum(traces["drops"].y) == result.summary["drops"] > 0
    assert sum(traces["ECN marks"].y) == result.summary["marks"] > 0
    assert "per 100 µs" in result.plot_drops_marks().layout.yaxis.title.text
    with pytest.raises(ValueError, match="no samples of the port 'nowhere'"):
        result.plot_drops_marks("nowhere")
    with pytest.raises(ValueError, match="no samples of the port 'nowhere'"):
        result.plot_throughput("nowhere")


def test_a_run_without_completions_gives_empty_charts_that_say_so(tmp_path: Path) -> None:
    out = write_result(tmp_path / "out", bursts=1, watch=False)
    result = fanin.load(out)
    result.summary["fct"] = []
    result.__dict__["flows"] = result.flows.with_columns(finish_ps=pl.lit(None, pl.UInt64), status=pl.lit("incomplete"))
    for figure in (result.plot_fct_cdf(), result.plot_fct(), result.plot_slowdown()):
        assert "nothing was recorded" in [note.text for note in figure.layout.annotations]
        assert paper.to_matplotlib(figure).axes


def test_traces_that_are_not_in_the_legend_make_none() -> None:
    plot = go.Figure()
    for name in ("a", "b"):
        plot.add_scatter(x=[1], y=[name], mode="markers", showlegend=False)
    assert not paper.to_matplotlib(plot).legends
    plot.update_traces(showlegend=True, name="c")
    assert paper.to_matplotlib(plot).legends


@pytest.mark.parametrize("plot", PLOTS)
@pytest.mark.parametrize("width", ["column", "page"])
def test_papers_get_the_same_data(folder: Path, plot: str, width: str) -> None:
    result = fanin.load(folder)
    figure = getattr(result, f"plot_{plot}")()
    drawn = result.to_matplotlib(plot, width=width)
    assert drawn.get_figwidth() == paper.WIDTHS[width]
    lines = drawn.axes[0].get_lines()
    assert len(lines) == len(figure.data)
    for line, trace in zip(lines, figure.data, strict=True):
        assert np.allclose(np.asarray(line.get_ydata(), dtype=float), np.asarray(trace.y, dtype=float), equal_nan=True)
    axis = figure.layout.yaxis
    assert drawn.axes[0].get_yscale() == (axis.type or "linear")
    assert drawn.axes[0].get_ylabel() == axis.title.text
    if axis.type != "log":
        assert drawn.axes[0].get_ylim()[1] >= max(max(trace.y) for trace in figure.data)


@pytest.mark.parametrize("ending", ["pdf", "svg", "png"])
def test_a_saved_figure_is_the_same_every_time(folder: Path, tmp_path: Path, ending: str) -> None:
    result = fanin.load(folder)
    first = result.save_pdf(tmp_path / f"a.{ending}", "slowdown").read_bytes()
    assert first[:4] == {"pdf": b"%PDF", "svg": b"<?xm", "png": b"\x89PNG"}[ending]
    assert result.save_pdf(tmp_path / f"b.{ending}", "slowdown").read_bytes() == first
    if ending == "pdf":
        assert b"/Type3" not in first
        assert b"/FontFile2" in first


def test_unknown_plots_and_widths_are_refused(folder: Path, tmp_path: Path) -> None:
    result = fanin.load(folder)
    with pytest.raises(ValueError, match="there is no plot 'cdf'; there are drops_marks, fct, fct_cdf"):
        result.save_pdf(tmp_path / "x.pdf", "cdf")
    with pytest.raises(ValueError, match="there is no width 'wide'; there are column, page"):
        result.save_pdf(tmp_path / "x.pdf", width="wide")


def test_figures_are_drawn_with_few_points(folder: Path) -> None:
    result = fanin.load(folder)
    for plot in PLOTS:
        for trace in getattr(result, f"plot_{plot}")().data:
            assert len(trace.x) <= series.MAX_POINTS
