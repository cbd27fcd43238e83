"""What a sweep varies, and what is said of a sweep that cannot be run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import fanin
from fanin import ScenarioError
from fanin.statistics import RARE, stop_metrics
from fanin.statistics.tried import TRIED, Conditions
from fanin.sweep import axes, plan
from fanin.sweep.axes import Stop
from fanin.sweep.plan import Plan
from fanin.sweep.todo import Seen, Todo, enough, rounds
from sweeping import TOML, swept

ROOT = Path(__file__).parents[2]


def values(**table: Any) -> list[dict[str, Any]]:
    design = axes.read(table)
    assert not design.problems
    return [dict(point.values) for point in design.points]


def said(table: Any) -> list[str]:
    return [str(problem) for problem in axes.read(table).problems]


def made(**table: Any) -> Plan:
    return plan.plan(plan.load(swept(**table)))


def test_a_grid_is_every_combination_and_paths_need_no_quotes() -> None:
    grid = {"switch": {"marking": {"k": ["1KB", "2KB"]}}, "traffic[0].size": ["1KB", "2KB", "3KB"]}
    found = values(grid=grid)
    assert len(found) == 6
    assert found[0] == {"switch.marking.k": "1KB", "traffic[0].size": "1KB"}
    assert len({tuple(point.values()) for point in found}) == 6


def test_lists_of_a_zip_go_side_by_side_and_blocks_are_multiplied() -> None:
    found = values(zip={"a": [1, 2], "b": [3, 4]}, grid={"c": [5, 6, 7]})
    assert sorted({(point["a"], point["b"]) for point in found}) == [(1, 3), (2, 4)]
    assert len(found) == 6


def test_points_of_a_list_have_labels_and_whole_tables() -> None:
    design = axes.read(
        {"list": [{"label": "red", "switch": {"marking": {"kind": "red"}}}, {"label": "none", "switch.marking": "none"}]}
    )
    assert [point.label for point in design.points] == ["red", "none"]
    assert [dict(point.values) for point in design.points] == [{"switch.marking": {"kind": "red"}}, {"switch.marking": "none"}]


@pytest.mark.parametrize("kind", ["random", "latin_hypercube", "sobol"])
def test_samples_lie_between_their_bounds_with_units_and_whole_numbers(kind: str) -> None:
    ranges = {
        "k": {"from": "10 packets", "to": "200 packets", "scale": "log"},
        "load": {"from": 0.1, "to": 0.9},
        "n": {"from": 2, "to": 5},
        "cc": ["newreno", "dctcp", "cubic"],
    }
    found = values(**{kind: {"points": 64, "axes": ranges}})
    assert found == values(**{kind: {"points": 64, "axes": ranges}})
    assert found != values(**{kind: {"points": 64, "seed": 2, "axes": ranges}})
    packets = [int(point["k"].removesuffix(" packets")) for point in found]
    assert min(packets) >= 10 and max(packets) <= 200
    assert sum(packets_ < math.sqrt(10 * 200) for packets_ in packets) == pytest.approx(32, abs=0 if kind == "sobol" else 12)
    assert all(0.1 <= point["load"] <= 0.9 for point in found)
    assert {point["n"] for point in found} == {2, 3, 4, 5}
    assert {point["cc"] for point in found} == {"newreno", "dctcp", "cubic"}


def test_each_row_and_column_of_a_latin_hypercube_has_one_point() -> None:
    found = values(latin_hypercube={"points": 10, "axes": {"x": {"from": 0.0, "to": 10.0}, "y": {"from": 0.0, "to": 10.0}}})
    assert sorted(int(point["x"]) for point in found) == list(range(10))
    assert sorted(int(point["y"]) for point in found) == list(range(10))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (3, "sweep: 3 is not a table; accepted: [sweep] with seeds and axes"),
        ({"girds": {}}, "did you mean grid?"),
        ({"grid": {"a": 3}}, "sweep.grid.a: 3 is no list of values"),
        ({"grid": {"a": []}}, "sweep.grid.a: [] is no list of values"),
        ({"zip": {"a": [1], "b": [1, 2]}}, "its lists differ in length: a has 1, b has 2"),
        ({"grid": {"a": [1]}, "zip": {"a": [2]}}, '"a" is an axis of sweep.grid already'),
        ({"grid": {"seed": [1, 2]}}, '"seed" cannot be an axis; seeds varies the seed'),
        ({"grid": {"name": ["a"]}}, '"name" cannot be an axis'),
        ({"list": {"a": 1}}, "is no list of points"),
        ({"seeds": 0}, "sweep.seeds: 0 does not say which seeds; accepted: a number of seeds"),
        ({"seeds": [1, 1]}, "sweep.seeds: 1 is there twice"),
        ({"seeds": [1, -1]}, "sweep.seeds: -1 is no list of seeds"),
        ({"seeds": {"form": 3, "count": 2}}, "did you mean from?"),
        ({"sobol": {"points": 100, "axes": {"a": {"from": 0, "to": 1}}}}, "accepted: powers of two, for example 64 or 128"),
        ({"random": {"points": 4, "axes": {"a": {"from": "1KB", "to": "2MB"}}}}, "different units, 'KB' and 'MB'"),
        ({"random": {"points": 4, "axes": {"a": {"from": 2, "to": 1}}}}, "sweep.random.axes.a.to: 1 is not above from"),
        ({"random": {"points": 4, "axes": {"a": {"from": 0, "to": 1, "scale": "log"}}}}, "0 has no logarithm"),
        ({"random": {"points": 4, "axes": {"a": {"from": "fast", "to": 1}}}}, '"fast" is no quantity'),
        ({"random": {"axes": {"a": {"from": 0, "to": 1}}}}, "sweep.random.points: is missing"),
        ({"random": {"points": 4}}, "sweep.random.axes: is missing"),
        ({"grid": {str(n): list(range(100)) for n in range(8)}}, "are too many runs; accepted: at most 2,000,000"),
        *(
            (
                {"stop": {"metric": metric, "relative_width": 0.1}, "seeds": 9},
                f'sweep.stop.metric: "{metric}" is no metric of runs; {end}',
            )
            for metric, end in (
                ("p99", "accepted: GROUP.METRIC or GROUP/NAME.METRIC, with one of the groups total, fct, queries, collective"),
                (
                    "queries.p99",
                    "accepted: queries.METRIC, of total, complete, mean_ps, p50_ps, p95_ps, p99_ps; did you mean queries.p99_ps?",
                ),
                ("queries/x.p99_ps", "accepted: queries.METRIC, without a name: total"),
                ("fct.p99_ps", "accepted: fct/NAME.METRIC; names: all, <10KB, 10KB-100KB, 100KB-1MB, >=1MB"),
                (
                    "fct/al.p99_ps",
                    "accepted: fct/NAME.METRIC; names: all, <10KB, 10KB-100KB, 100KB-1MB, >=1MB; did you mean fct/all.p99_ps?",
                ),
                ("total.largest_queue_port", "accepted: total.METRIC, of flows"),
                ("mechanism/pfc.sent", "accepted: mechanism/pfc.METRIC, of xoff"),
                ("mechanism/pcf.xoff", "accepted: mechanism/NAME.METRIC; names: int, notifications, pfc"),
                ("collective/job.p99_ps", "accepted: collective/job.METRIC, of time_ps"),
            )
        ),
        ({"stop": {"metric": 3, "relative_width": 0.1}, "seeds": 9}, "sweep.stop.metric: 3 is not accepted"),
        ({"stop": {"metric": "fct/all.p99_ps"}, "seeds": 9}, "needs one of two widths"),
        (
            {"stop": {"metric": "fct/all.p99_ps", "width": 1, "at_least": 4}, "seeds": 3},
            "sweep.stop.at_least: 4 is not accepted; accepted: 2 to 3",
        ),
        (
            {"stop": {"metric": "fct/all.p99_ps", "width": 1}},
            "sweep.stop: needs an interval, and there is one seed; accepted: seeds of 2",
        ),
        ({"set": 3}, "sweep.set: 3 is not a table"),
        ({"common_random_numbers": 1}, "1 is neither true nor false"),
    ],
)
def test_what_is_wrong_with_a_table_is_said(table: Any, message: str) -> None:
    assert any(message in line for line in said(table)), said(table)


def test_everything_that_is_wrong_is_said_at_once() -> None:
    assert len(said({"seed": 3, "grid": {"a": 1, "b": 2}, "seeds": "many", "name": 4})) == 5
    assert len(said({"seeds": 0, "stop": {"metric": "fct/all.p99_ps", "width": 1}})) == 1, "how many seeds is asked once"


@pytest.mark.parametrize(
    "hostile", [{"grid": {"a": [[[[1]]]]}}, {"list": [{}]}, {"grid": {"": [1]}}, {"random": {"points": 1, "axes": {"a": [None]}}}]
)
def test_odd_tables_are_read_or_refused(hostile: Any) -> None:
    assert axes.read(hostile) is not None


def test_what_cannot_be_set_and_what_the_check_finds_are_said_together(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    grid = (
        '"traffic[3].size" = ["1KB", "2KB"]\n"switch.markng.k" = ["1KB"]\n"traffic[4].size" = ["1KB"]\n"topology.hosts" = [1, 5]\n'
    )
    file.write_text(f"{TOML}[sweep.grid]\n{grid}")
    with pytest.raises(ScenarioError) as raised:
        plan.plan(plan.load(file))
    paths = [problem["path"] for problem in raised.value.problems]
    assert paths[:2] == ["traffic[3].size", "traffic[4].size"] and "switch.markng" in paths and len(paths) >= 3
    assert all(problem["line"] for problem in raised.value.problems[:3])


def test_values_of_a_list_and_of_the_caller_are_not_looked_for_in_the_scenario(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text(TOML)
    file = tmp_path / "sweep.toml"
    file.write_text('[sweep]\nscenario = "base.toml"\n[[sweep.list]]\nlabel = "b"\n"switch.markng.k" = "5 packets"\n')
    with pytest.raises(ScenarioError) as raised:
        plan.plan(plan.load(file))
    assert [(problem["path"], problem["line"]) for problem in raised.value.problems] == [("switch.markng", 5)]
    file.write_text('[sweep]\nscenario = "base.toml"\nseeds = 2\n')
    with pytest.raises(ScenarioError) as raised:
        plan.plan(plan.load(file), {"engin.x": 1})
    assert [(problem["path"], problem["line"]) for problem in raised.value.problems] == [("engin", None)]


def test_points_are_checked_before_the_first_run_and_each_mistake_is_said_once(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    loads = ", ".join(str(n) for n in range(100))
    file.write_text(f'{TOML}[sweep]\nseeds = 2\n[sweep.grid]\nswitch.markng.k = ["1KB"]\n"engine.max_events" = [{loads}]\n')
    with pytest.raises(ScenarioError) as raised:
        plan.plan(plan.load(file))
    problems = {problem["path"]: problem for problem in raised.value.problems}
    assert set(problems) == {"switch.markng", "engine.max_events"}
    assert "at every point" in problems["switch.markng"]["message"]
    assert "marking" in str(problems["switch.markng"]["suggestion"])
    assert problems["switch.markng"]["line"] == 21
    assert "at 1 of 100 points, first at switch.markng.k" in problems["engine.max_events"]["message"]
    assert problems["engine.max_events"]["line"] == 22


def test_the_same_mistake_in_500_points_is_said_once(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(f'{TOML}[sweep]\n[sweep.grid]\n"switch.marking.k" = [{", ".join(f"{-n}" for n in range(1, 501))}]\n')
    with pytest.raises(ScenarioError) as raised:
        plan.plan(plan.load(file))
    (problem,) = raised.value.problems
    assert "at every point" in problem["message"]


def test_what_is_wrong_with_the_scenario_names_its_file(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text(TOML.replace('"dctcp"', '"dctpc"'))
    (tmp_path / "sweep.toml").write_text('[sweep]\nscenario = "base.toml"\ngrid = { "switch.marking.k" = ["1KB", "2KB"] }\n')
    with pytest.raises(ScenarioError) as raised:
        plan.plan(plan.load(tmp_path / "sweep.toml"))
    (problem,) = raised.value.problems
    assert problem["path"] == f"transport.congestion_control ({tmp_path / 'base.toml'})"
    assert "dctcp" in problem["suggestion"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TOML, "has no [sweep] table"),
        ("sweep = 3\n" + TOML, "sweep: is not a table"),
        (TOML + '[sweep]\nscenario = "x.toml"\n', "name, topology, switch, transport, traffic of a scenario stand here too"),
        ("[sweep]\nscenario = 3\n", "sweep.scenario: 3 is not the path of a file"),
        (TOML + '[sweep.grid]\n"traffic[7].size" = ["1KB"]\n', "traffic[7].size, line 19: there is no entry 7; the list has 1"),
        ("[sweep", "line 1"),
        (TOML + f"[sweep.grid]\na = {'[' * 5000}{']' * 5000}\n", "nest"),
        (TOML + f"[sweep.grid]\n{'a.' * 3000}a = [1]\n", "nest"),
        (TOML + '[sweep.grid]\n"switch.marking.k" = [1979-05-27]\n', "a date cannot be part of a scenario"),
        (
            TOML + '[sweep]\nseeds = 1\n[sweep.grid]\n"traffic[0].load" = [nan]\n',
            "traffic[0].load, line 21: nan is not a finite number",
        ),
        (TOML + '[sweep.grid]\n"switch.ttl" = [64]\nseed = [1, 2]\n', 'sweep.grid.seed, line 20: "seed" cannot be an axis'),
        (TOML + '[sweep.grid]\n"" = [1]\n', "'' is not the path of a value"),
        (TOML + '[sweep.grid]\n"switch.marking.k.x[3]" = [1]\n', "switch.marking.k.x[3]"),
        (TOML + '[sweep.list]\n"traffic[0].load" = 1\n', "is no list of points"),
    ],
)
def test_files_that_are_no_sweeps_are_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "sweep.toml"
    file.write_text(text)
    with pytest.raises((ValueError, TypeError), match=r"\w") as raised:
        plan.plan(plan.load(file))
    assert message in str(raised.value)


def test_a_missing_scenario_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "sweep.toml").write_text('[sweep]\nscenario = "absent.toml"\n')
    with pytest.raises(FileNotFoundError, match=r"absent\.toml"):
        plan.load(tmp_path / "sweep.toml")


def test_all_points_have_the_same_seeds_unless_told_otherwise() -> None:
    grid = {"switch.marking.k": ["10 packets", "20 packets"]}
    common = made(grid=grid, seeds=3)
    assert sorted((run.point, run.seed) for run in common.runs) == [(p, s) for p in (0, 1) for s in (1, 2, 3)]
    assert [run.replicate for run in common.runs] == [0, 0, 1, 1, 2, 2]
    assert len({run.seed for run in made(grid=grid, seeds=3, common_random_numbers=False).runs}) == 6
    assert {run.seed for run in made(grid=grid, seeds={"from": 7, "count": 2}).runs} == {7, 8}
    assert {run.seed for run in made(grid=grid, seeds=[4, 9]).runs} == {4, 9}


def test_a_key_is_of_what_is_simulated_whatever_axes_lead_there() -> None:
    plain = made()
    (alone,) = plain.runs
    grid = made(grid={"switch.marking.k": ["20 packets", "30 packets"]})
    assert alone.key in {run.key for run in grid.runs}
    written = made(grid={"switch.marking.k": ["20packets"], "switch.marking.kind": ["threshold"]})
    assert [run.key for run in written.runs] == [alone.key]
    assert alone.key not in {run.key for run in made(seeds=[2]).runs}


def test_what_is_set_holds_at_all_points_and_is_no_axis() -> None:
    table = {
        "set": {"switch": {"marking": {"k": "7 packets"}}, "traffic[0].size": "1KB"},
        "grid": {"traffic[0].size": ["1KB", "2KB"]},
    }
    small = plan.plan(plan.load(swept(**table)), {"traffic[0].receiver": "h0"})
    assert small.axes == ("traffic[0].size",)
    assert all('"7 packets"' in small.text(run) and '"h0"' in small.text(run) for run in small.runs)
    with pytest.raises(ScenarioError) as raised:
        made(set={"switch.marking.k": "7"})
    assert "at every point" not in str(raised.value.problems[0]["message"])
    assert raised.value.problems[0]["path"] == "switch.marking.k"
    with pytest.raises(ScenarioError, match=r"sweep\.set: 'traffic\[9\]\.size': there is no entry 9"):
        made(set={"traffic[9].size": "1KB"})


def test_points_that_simulate_the_same_are_run_once_and_that_is_said() -> None:
    twice = made(grid={"switch.marking.k": ["20 packets", "20packets", "30 packets"]})
    assert (len(twice.points), len(twice.runs)) == (2, 2)
    assert any("1 of 3 points simulates the same as another and is not run again" in str(problem) for problem in twice.warnings)


def test_axes_with_units_have_a_column_of_numbers() -> None:
    found = made(grid={"switch.marking.k": ["20 packets", "30 packets"], "traffic[0].size": ["1KB", "1 MB"]}).frame()
    assert found["switch.marking.k [packets]"].to_list() == [float(text.split()[0]) for text in found["switch.marking.k"].to_list()]
    assert not [name for name in found.columns if name.startswith("traffic[0].size [")]


def seen(values: list[float | None], timed_out: int = 0) -> list[Seen]:
    return [Seen(value, at < timed_out) for at, value in enumerate(values)]


def test_no_point_has_enough_before_its_metric_can_be_relied_on() -> None:
    steady: list[float | None] = [10.0 + 0.1 * (at % 3) for at in range(100)]
    firm, rare = (Stop(metric, 0.03) for metric in ("total.goodput_bps", "queries.p99_ps"))
    assert enough([seen(steady[:10])], firm) == [True]
    assert enough([seen(steady[:9])], firm) == [False], "fewer than ten are never enough"
    assert enough([seen(steady[:10])], Stop("total.goodput_bps", 0.001)) == [False]
    assert enough([seen([None] * 10)], firm) == [False], "runs without a value"
    assert enough([seen(steady[:40])], rare) == [False], "what comes in one run of twenty-five may not have been seen"
    assert enough([seen(steady)], rare) == [True]
    assert enough([seen(steady[:40])], Stop("queries.p99_ps", 0.03, statistic="median")) == [True]


def test_what_one_point_saw_the_others_may_have_missed() -> None:
    """K = 65 at load 0.45 had no timeout in its first seeds, and its interval was narrow; others had some with the same seeds."""
    steady: list[float | None] = [10.0 + 0.1 * (at % 3) for at in range(100)]
    rare = Stop("queries.p99_ps", 0.03)
    assert enough([seen(steady), seen(steady, 1)], rare) == [False, False]
    assert enough([seen(steady, 10), seen(steady, 12)], rare) == [True, True]
    assert enough([seen(steady), seen(steady, 1)], Stop("total.goodput_bps", 0.03)) == [True, True], "no mean that timeouts decide"


def test_a_timeout_at_one_point_holds_up_every_mean_that_tells_a_time() -> None:
    steady: list[float | None] = [10.0 + 0.1 * (at % 3) for at in range(100)]
    for metric in ("fct/all.p99_ps", "fct/>=1MB.slowdown_mean", "fct/all.p50_ps", "total.flows_until_ps"):
        stop = Stop(metric, 0.03)
        assert enough([seen(steady[:20]), seen(steady[:20])], stop) == [True, True], metric
        assert enough([seen(steady[:20]), seen(steady[:20], 1)], stop) == [False, False], metric
    assert enough([seen(steady[:20]), seen(steady[:20], 1)], Stop("fct/all.p99_ps", 0.03, statistic="median")) == [True, True]


def test_equal_values_are_never_enough() -> None:
    """Ten runs without a drop have an interval of no width, and say nothing of the eleventh."""
    assert enough([seen([0.0] * 100)], Stop("total.marks", 0.03)) == [False]
    assert enough([seen([512e3] * 20)], Stop("total.largest_queue_bytes", 0.03)) == [False]


def test_elsewhere_a_stop_rule_asks_for_as_many_seeds_as_what_rare_runs_decide() -> None:
    steady: list[float | None] = [7e9 + 1e8 * (at % 5) for at in range(120)]
    stop = Stop("fct/all.p99_ps", 0.3)
    longer = replace(stop, conditions=Conditions(("a timeout takes 200 ms, tried: 10 ms",), 200e9))
    assert rounds(stop, 100)[0] == 10 and rounds(longer, 100)[0] == 99
    assert enough([seen(steady[:10])], stop) == [True]
    assert enough([seen(steady[:10])], longer) == [False]
    assert enough([seen(steady[:99])], longer) == [False], "a timeout in 3 % of the runs moves the mean by 6 ms"
    few = [Seen(value, flows=12.0) for value in steady]
    assert enough([few[:20]], stop) == [False], "runs of a dozen flows are not what was tried"


def test_points_are_looked_at_when_it_can_say_something() -> None:
    assert rounds(Stop("total.goodput_bps", 1), 20) == [10, 12, 15, 18, 20]
    assert rounds(Stop("total.goodput_bps", 1, at_least=15), 20) == [15, 18, 20]
    assert rounds(Stop("queries.p99_ps", 1), 100) == [99, 100]
    assert rounds(Stop("fct/<10KB.p50_ps", 1), 100) == [100], "no number of seeds is enough for this mean"
    assert rounds(Stop("fct/<10KB.p50_ps", 1, statistic="median"), 12) == [10, 12]


def test_means_that_nobody_measured_take_as_many_seeds_as_rare_ones() -> None:
    steady: list[float | None] = [10.0 + 0.1 * (at % 3) for at in range(100)]
    for metric in ("mechanism/pfc.frames_sent", "total.packets_sent", "queries.p95_ps"):
        assert rounds(Stop(metric, 1), 100) == [99, 100]
        assert enough([seen(steady[:98])], Stop(metric, 0.03)) == [False]
        assert enough([seen(steady[:99])], Stop(metric, 0.03)) == [True]
    for metric in ("fct/all.p95_ps", "fct/all.slowdown_p95", "fct/10KB-100KB.p95_ps"):
        assert rounds(Stop(metric, 1), 100) == [100] and enough([seen(steady)], Stop(metric, 0.03)) == [False]


@pytest.mark.parametrize(
    ("stop", "seeds", "message"),
    [
        (
            {"metric": "queries.p99_ps"},
            98,
            'sweep.stop.metric: "queries.p99_ps" is judged from 99 seeds on (switch.buffer.per_port is 100KB, tried: 512KB), and '
            "there are 98, so all 98 seeds are run at "
            'every point, and none is narrow enough; accepted: seeds = 99 or more, or statistic = "median"',
        ),
        (
            {"metric": "total.marks"},
            5,
            '"total.marks" is judged from 99 seeds on (switch.buffer.per_port is 100KB, tried: 512KB), and there are 5',
        ),
        ({"metric": "total.marks", "statistic": "median"}, 5, "accepted: seeds = 10 or more"),
        ({"metric": "total.drops"}, 1000, "which no number of seeds makes reliable, so all 1,000 seeds are run at every point"),
        ({"metric": "queries.p99_ps"}, 99, None),
        ({"metric": "queries.p99_ps", "statistic": "median"}, 10, None),
        ({"metric": "total.marks", "statistic": "median"}, 10, None),
    ],
)
def test_a_stop_rule_that_can_stop_nothing_is_warned_of(stop: dict[str, Any], seeds: int, message: str | None) -> None:
    every = map(str, made(seeds=seeds, stop={"relative_width": 0.1, **stop}).warnings)
    warned = [said for said in every if said.startswith("sweep.stop")]
    assert len(warned) == (message is not None), warned
    assert message is None or message in warned[0]


def test_a_stop_rule_by_a_job_that_no_point_has_is_refused() -> None:
    job = {"kind": "collective", "name": "training", "ranks": ["all"], "operations": [{"kind": "all_reduce", "size": "1MB"}]}
    stop = {"metric": "collective/trainig.time_ps", "relative_width": 0.1}
    with pytest.raises(ScenarioError, match="is no job of this scenario; accepted: a metric that its runs have: there is no"):
        made(seeds=9, stop=stop)
    with pytest.raises(ScenarioError, match=r"is no job at any point; accepted: collective/training\.time_ps; did you mean"):
        made(seeds=9, stop=stop, grid={"traffic": [[job], [job, {**job, "name": "other"}]]})
    stop["metric"] = "collective/other.time_ps"
    assert made(seeds=9, stop=stop, grid={"traffic": [[job], [job, {**job, "name": "other"}]]}).runs


def test_a_metric_without_any_value_ends_the_sweep_at_the_first_look() -> None:
    planned = made(seeds=200, stop={"metric": "mechanism/pfc.xoff", "relative_width": 0.1})
    todo = Todo(planned, range(len(planned.runs)), {})
    ended = 0
    with pytest.raises(ValueError, match=r"'mechanism/pfc\.xoff': no run has it, of 99 seeds at each point"):
        while (at := todo.next()) is not None:
            ended += 1
            todo.ended(at, [("total", None, {"timeouts": 0})])
    assert ended == 99


def test_every_metric_of_a_store_may_stop_it_and_no_column_is_invented(tmp_path: Path) -> None:
    """Columns that a stop rule accepts are those that runs have: none is missing, and none of a group that is there is more."""
    found: set[str] = set()
    for at, name in enumerate(("incast", "roce", "all-reduce")):
        scenario = fanin.Scenario.from_file(ROOT / "scenarios" / f"{name}.toml")
        found |= set(fanin.sweep(scenario, tmp_path / str(at), design={"seeds": 1}, progress=False).metric_names())
    texts = {"total.largest_queue_port"}
    assert {name for name in found if stop_metrics.unknown(name) is not None} == texts
    for group in ("total", "fct", "queries", "collective", "port", "drops", "marks"):
        columns = {name.rpartition(".")[2] for name in found if name.startswith((f"{group}.", f"{group}/"))}
        absent = (
            {"datagrams_sent", "datagrams_received", "datagrams_delivered_bytes", "pauses", "paused_ps"}
            if group == "total"
            else set()
        )
        assert not columns or set(stop_metrics.COLUMNS[group]) - columns == absent, group


def test_all_points_stop_together() -> None:
    """Differences are taken seed by seed, so a point that is narrow at once goes on with the others."""
    table = {"seeds": 20, "stop": {"metric": "total.goodput_bps", "relative_width": 0.3}}
    planned = made(grid={"switch.marking.k": ["10 packets", "20 packets"]}, **table)
    assert planned.design.stop is not None and planned.design.stop.needs == RARE, "one switch is not what was tried"
    planned.design.stop = replace(planned.design.stop, conditions=TRIED)

    def counts(numbers: Sequence[int], wild: float) -> list[int]:
        todo = Todo(planned, numbers, {})
        done = {0: 0, 1: 0}
        while (at := todo.next()) is not None:
            point = planned.runs[at].point
            done[point] += 1
            value = 1.0 + (0.001 if point == 0 else wild) * (done[point] % 2)
            todo.ended(at, [("total", None, {"goodput_bps": value, "timeouts": 0})])
        return [done[0], done[1]]

    every = range(len(planned.runs))
    assert counts(every, 0.1) == [10, 10]
    assert counts(every, 1.5) == [12, 12]
    assert counts(every, 9.0) == [20, 20]
    # A shard whose point is narrow makes no more than all together would; the same command again goes on.
    assert counts([at for at in every if planned.runs[at].point == 0], 9.0) == [10, 0]
    with pytest.raises(ValueError, match=r"did you mean total\.goodput_bps"):
        Todo(planned, every, {}).ended(0, [("total", None, {"goodput_bsp": 1, "goodput_bps_": 2}), ("total", None, {})])
