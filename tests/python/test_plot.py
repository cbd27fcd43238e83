"""Figures of several runs hold their data, say what runs lack, and are the same bytes every time."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import fanin
from fake_result import PORT, write_followed, write_result
from fanin import statistics as stats
from fanin.cli import app
from fanin.comparison import overlay
from fanin.figures import focus, paper, series
from fanin.results import Result

RUNNER = CliRunner()


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Result]]:
    """Two variants with two seeds each; flows of the second take twice as long."""
    root = tmp_path_factory.mktemp("plots")
    made: dict[str, list[Result]] = {}
    for name, limit in (("large", 300), ("small", 20)):
        for seed in (1, 2):
            out = write_result(root / name / f"seed{seed}", bursts=2, senders=8, each=8, seed=seed, limit=limit)
            manifest = json.loads((out / "manifest.json").read_text())
            manifest["scenario"]["switch"]["marking"]["k"] = f"{limit} packets"
            (out / "manifest.json").write_text(json.dumps(manifest))
            made.setdefault(name, []).append(fanin.load(out))
    return made


def problems(kind: str, groups: Any, **options: Any) -> list[str]:
    with pytest.raises(fanin.CompareError) as caught:
        overlay.draw(kind, groups, **options)
    return caught.value.problems


def named(figure: Any) -> dict[str, Any]:
    return {trace.name: trace for trace in figure.data}


def test_a_distribution_is_of_all_seeds_together(groups: dict[str, list[Result]]) -> None:
    figure = overlay.draw("cdf", groups)
    drawn, unit = named(figure), figure.layout.xaxis.title.text.split()[-1]
    assert list(drawn) == ["large", "small"]
    for name, runs in groups.items():
        values = np.sort(np.concatenate([run.completions["fct_ps"].to_numpy() for run in runs]))
        assert np.allclose(drawn[name].x, values / {"[µs]": 1e6, "[ms]": 1e9}[unit])
        assert np.allclose(drawn[name].y, np.arange(1, len(values) + 1) / len(values))
    slow = named(overlay.draw("slowdown-cdf", groups))
    assert max(slow["small"].x) == pytest.approx(max(max(run.completions["slowdown"].to_list()) for run in groups["small"]))


@pytest.mark.parametrize("statistic", overlay.STATISTICS)
def test_sizes_hold_the_mean_of_the_seeds_with_its_interval(groups: dict[str, list[Result]], statistic: str) -> None:
    figure = overlay.draw("slowdown", groups, statistic=statistic)
    for name, trace in named(figure).items():
        for at, _ in enumerate(trace.x):
            bins = [[entry for entry in run.summary["fct"][1:] if entry["flows"]] for run in groups[name]]
            values = [entries[at][f"slowdown_{statistic}"] for entries in bins]
            found = stats.interval(values)
            assert trace.y[at] == pytest.approx(found.mean)
            assert found.low is not None
            assert trace.error_y.arrayminus[at] == pytest.approx(found.mean - found.low)
    axes = paper.to_matplotlib(figure).axes[0]
    assert len(axes.containers) == len(figure.data), "whiskers are drawn on paper, too"


def test_a_queue_is_of_the_first_seed_that_all_have(groups: dict[str, list[Result]]) -> None:
    figure = overlay.draw("queue", groups)
    assert figure.layout.title.text == "Queue of leaf0-&gt;h0"
    assert figure.layout.meta["note"].endswith("Seed 1.")
    for name, trace in named(figure).items():
        line = series.queue_series(groups[name][0], PORT, None, series.MAX_POINTS // 2).line
        assert np.allclose(trace.y, line["queue_bytes"].to_numpy() / 1e3)
    other = overlay.draw("queue", {"large": groups["large"][1:], "small": groups["small"]})
    assert other.layout.meta["note"].endswith("Seed 2.")
    apart = overlay.draw("queue", {"large": groups["large"][1:], "small": groups["small"][:1]})
    assert apart.layout.meta["note"].endswith("They have no seed in common: large 2, small 1.")


def test_a_window_shows_its_part_alone(groups: dict[str, list[Result]]) -> None:
    window = (200_000_000, 260_000_000)
    figure = overlay.draw("queue", groups, window_ps=window)
    unit = {"µs": 1e6, "ms": 1e9}[figure.layout.xaxis.title.text[-3:-1]]
    assert figure.layout.xaxis.range == pytest.approx([time / unit for time in window])
    for trace in figure.data:
        assert len(trace.x) == len(trace.y) > 2
        assert min(trace.x) >= window[0] / unit
        assert max(trace.x) <= window[1] / unit
    assert paper.to_matplotlib(figure).axes[0].get_xlim() == pytest.approx([time / unit for time in window])


def test_an_idle_rest_of_a_run_is_not_drawn_unless_asked_for(groups: dict[str, list[Result]], monkeypatch: Any) -> None:
    whole = {kind: overlay.draw(kind, groups, port=PORT) for kind in ("queue", "throughput")}
    assert all(figure.layout.xaxis.range is None for figure in whole.values()), "busy to the end"
    last = max(series.busy_until(run) or 0 for runs in groups.values() for run in runs)
    for runs in groups.values():
        for run in runs:
            monkeypatch.setitem(run.manifest, "sim_ps", 3 * last)
    for kind, figure in whole.items():
        cut = overlay.draw(kind, groups, port=PORT)
        assert cut.layout.xaxis.range == pytest.approx((0, int(1.05 * last) / focus.time_scale(figure)))
        assert "when 99.9 % of all bytes had been sent; a double-click, or --window, shows the rest." in cut.layout.meta["note"]
        assert [list(trace.x) for trace in cut.data] == [list(trace.x) for trace in figure.data], "all of it is there"
        asked = overlay.draw(kind, groups, port=PORT, window_ps=(0, 3 * last))
        assert "99.9" not in asked.layout.meta["note"]
    monkeypatch.setattr(focus, "until", lambda _: 1)
    assert overlay.draw("queue", groups, port=PORT).layout.xaxis.range is None, "a peak lies behind it"


def test_a_distribution_of_queues_counts_quiet_samples(groups: dict[str, list[Result]]) -> None:
    figure = overlay.draw("queue-cdf", groups, port=PORT)
    for name, trace in named(figure).items():
        levels = pl.concat([run.ports.filter(pl.col("port") == PORT)["queue_bytes"] for run in groups[name]])
        assert trace.y[-1] == 1
        assert np.interp(0, trace.x, trace.y) <= int((levels == 0).sum()) / levels.len() + 1e-9
        assert max(trace.x) == pytest.approx(
            float(levels.to_numpy().max()) / {"KB": 1e3, " B": 1}[figure.layout.xaxis.title.text[-3:-1]]
        )


def test_throughput_is_that_of_the_single_figure(groups: dict[str, list[Result]]) -> None:
    figure = overlay.draw("throughput", groups, port=PORT)
    alone = groups["large"][0].plot_throughput(PORT)
    assert np.allclose(figure.data[0].y, alone.data[0].y)
    assert figure.layout.yaxis.title.text == alone.layout.yaxis.title.text


def test_rates_of_followed_flows_add_up_to_what_arrived(tmp_path: Path) -> None:
    out = write_result(tmp_path / "out", bursts=1)
    write_followed(out)
    result = fanin.load(out)
    rows = result.segments.filter(pl.col("payload_bytes") > 0, pl.col("received_ps").is_not_null())
    rows = rows.join(result.flows.select("flow", host="src"), on=["flow", "host"])
    figure = overlay.draw("rates", {"a": [result]}, bin_ps=1_000_000)
    scale = {"b/s": 1, "kb/s": 1e3, "Mb/s": 1e6, "Gb/s": 1e9}[re.findall(r"\[(.*)\]", figure.layout.yaxis.title.text)[0]]
    sent = sum(float(np.sum(trace.y)) for trace in figure.data) * scale * 1_000_000 / 8e12
    assert sent == pytest.approx(int(rows["payload_bytes"].sum()))
    assert "intervals of 1 µs" in figure.layout.meta["note"]


def test_one_run_gets_the_figure_of_its_page(groups: dict[str, list[Result]]) -> None:
    run = groups["large"][0]
    for kind, method in (
        ("cdf", "fct_cdf"),
        ("fct", "fct"),
        ("queue", "queue"),
        ("drops-marks", "drops_marks"),
        ("pauses", "pauses"),
    ):
        assert overlay.draw(kind, {"large": [run]}).to_json() == getattr(run, f"plot_{method}")().to_json()


def test_what_runs_lack_is_said_of_all_at_once_with_what_records_it(tmp_path: Path) -> None:
    made = {}
    for name in ("a", "b"):
        out = write_result(tmp_path / name, bursts=1, watch=False)
        (out / "ports.parquet").unlink()
        (out / "pauses.parquet").unlink()
        made[name] = [fanin.load(out)]
    assert problems("rates", made) == [
        f"{name}: no flow that was followed has sent data; telemetry.hosts names flows that are followed" for name in made
    ]
    for kind in ("queue", "throughput", "queue-cdf"):
        found = problems(kind, made)
        assert len(found) == 2
        assert all("telemetry.sample takes samples of all ports" in line for line in found)
    one = {"a": made["a"]}
    assert "telemetry.sample" in problems("drops-marks", one)[0]
    assert "switch.mechanisms.pfc" in problems("pauses", one)[0]
    assert "telemetry.hosts" in problems("sequence", one)[0]
    assert 'kind "collective"' in problems("busbw", one)[0]
    made["a"][0].__dict__["completions"] = made["a"][0].completions.head(0)
    assert problems("cdf", made) == ["a: no transfer was completed, so there are no completion times"]


def test_wrong_kinds_and_options_are_refused(groups: dict[str, list[Result]]) -> None:
    (line,) = problems("que", groups)
    assert line.endswith("did you mean queue?")
    assert problems("cdf", groups, port=PORT, flow="3") == [
        "port (--port): without effect on the kind 'cdf'; it takes none",
        "flow (--flow): without effect on the kind 'cdf'; it takes none",
    ]
    assert problems("sequence", groups) == ["kind 'sequence': draws one run, and 4 are given"]
    assert problems("fct", groups, statistic="p42") == [
        "statistic 'p42': there is none of that name; there are mean, p50, p95, p99"
    ]
    assert problems("queue", {"a": [], "b": []}) == [
        f"{name}: no run of it has a result folder; fanin sweep --keep (keep=True) keeps them" for name in "ab"
    ]
    found = problems("queue", groups, port="nowhere")
    assert [line.split(":")[0] for line in found] == ["large", "small"]


@pytest.mark.parametrize("ending", ["pdf", "svg", "png"])
def test_the_command_writes_the_same_bytes_every_time(groups: dict[str, list[Result]], tmp_path: Path, ending: str) -> None:
    paths = [f"{name}={runs[0].path.parent}" for name, runs in groups.items()]
    files = []
    for name in ("a", "b"):
        out = tmp_path / f"{name}.{ending}"
        done = RUNNER.invoke(app, ["plot", *paths, "--kind", "slowdown", "--width", "page", "-o", str(out)])
        assert done.exit_code == 0, done.output
        assert done.stdout.strip() == str(out)
        files.append(out.read_bytes())
    assert files[0] == files[1]
    if ending == "pdf":
        assert b"/FontFile2" in files[0]
        assert b"/Type3" not in files[0]
        assert b"CreationDate" not in files[0]
        size = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+)", files[0])
        assert size is not None
        assert float(size[1]) == pytest.approx(72 * paper.WIDTHS["page"], abs=1)
    if ending == "svg":
        assert b"<dc:date>" not in files[0]
        assert b"<text" not in files[0], "letters are shapes, so no font is needed"


def test_the_command_lists_kinds_and_refuses_wrong_input(groups: dict[str, list[Result]], tmp_path: Path) -> None:
    listed = RUNNER.invoke(app, ["plot", "--list"])
    assert all(kind in listed.stdout for kind in overlay.KINDS)
    path, out = str(groups["large"][0].path), str(tmp_path / "x.pdf")
    for words, text in (
        ([path], "RESULT and -o FILE are needed"),
        ([path, "-o", str(tmp_path / "x.doc")], "cannot be written"),
        ([path, "-o", out, "--window", "3ms"], "is not of the form FROM:TO"),
        ([path, "-o", out, "--kind", "queue", "--window", "3ms:1ms"], "ends before it begins"),
        ([path, "-o", out, "--kind", "queue", "--window", "1:2"], "is no time"),
        ([path, "-o", out, "--kind", "rates", "--bin", "0ms"], "out of range"),
        ([f"{path}x", "-o", out], "there is no such folder"),
    ):
        done = RUNNER.invoke(app, ["plot", *words])
        assert done.exit_code == 2, words
        assert text in done.stderr.replace("\n", " "), words
    assert not list(tmp_path.iterdir())


def test_every_kind_is_on_the_page() -> None:
    text = (Path(__file__).parents[2] / "docs" / "compare.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| `([a-z-]+)` \|[^|]*\| (several|one) \|", text, flags=re.MULTILINE))
    assert listed == {name: "several" if kind.several else "one" for name, kind in overlay.KINDS.items()}
