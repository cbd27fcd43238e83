"""The evaluation of S-ECN: its scenarios are valid in every variant, and its main claim holds in a short form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import fanin
from fanin import reproduce
from fanin.reproduce import SCENARIOS
from fanin.reproduce import s_ecn_beyond as beyond
from fanin.reproduce import s_ecn_evaluation as evaluation
from fanin.reproduce import s_ecn_traffic as traffic

FIGURES = ("fig14", "fig15", "fig16", "fig17", "fig18", "fig19", "ablation", "rates", "sensitivity")


def base(name: str) -> fanin.Scenario:
    return fanin.Scenario.from_file(SCENARIOS / "s-ecn" / f"{name}.toml")


def hosts(entry: dict[str, Any]) -> int:
    return len(entry["senders"]) * int(entry["flows_per_sender"])


def test_queries_of_the_short_form_say_that_they_are_scaled() -> None:
    assert traffic._queries(3500, short=True).paper == "> 350,000, scaled to 1/100: > 3,500"
    assert traffic._queries(3500, short=True).ok
    assert traffic._queries(350_000, short=False).paper == "> 350,000"
    assert not traffic._queries(3500, short=False).ok


def test_every_figure_of_the_evaluation_is_there() -> None:
    assert {f"s-ecn/{name}" for name in FIGURES} <= {entry.id for entry in reproduce.figures()}


@pytest.mark.parametrize("n", [1, 3, 8, 9, 10, 17, 18, 19, 32, 50])
def test_n_servers_are_n_flows_spread_evenly(n: int) -> None:
    scenario = evaluation.servers(base("fig17"), n)
    entries = scenario.to_dict()["traffic"]
    assert sum(hosts(entry) for entry in entries) == n
    assert {entry["size"] for entry in entries} == {f"{1_000_000 // n}B"}
    named = [host for entry in entries for host in entry["senders"]]
    assert len(named) == len(set(named)) == min(n, 9)
    assert scenario.check().ok


@pytest.mark.parametrize("change", evaluation.ABLATIONS)
@pytest.mark.parametrize("policy", evaluation.MARKING)
def test_each_ablation_is_a_valid_scenario_that_differs(change: str, policy: str) -> None:
    plain = evaluation.marked(base("fig14"), policy).check()
    check = evaluation.changed(base("fig14"), policy, evaluation.ABLATIONS[change]).check()
    assert check.ok, check.errors
    assert (check.hash == plain.hash) == (change == "as in fig14")


@pytest.mark.parametrize("load", traffic.LOADS)
def test_the_mix_has_its_load_and_the_papers_proportion(load: float) -> None:
    queries, background = traffic.mix(base("fig18"), load, 350_000, 140_000).to_dict()["traffic"]
    offered = queries["per_second"] * 100_000 + background["per_second"] * 1_711_250
    # Of all bytes, 9/11 leave their rack, over four uplinks of 1 Gb/s.
    assert offered * 9 / 11 * 8 / 4e9 == pytest.approx(load)
    assert queries["per_second"] / background["per_second"] == pytest.approx(2.5)
    assert queries["count"] / queries["per_second"] > 300, "at least the paper's five minutes"


def test_the_scenario_of_the_mix_is_that_of_load_0_6() -> None:
    ours = [entry["per_second"] for entry in base("fig18").to_dict()["traffic"]]
    assert ours == pytest.approx(
        [entry["per_second"] for entry in traffic.mix(base("fig18"), 0.6, 1, 1).to_dict()["traffic"]], rel=1e-3
    )


def test_everything_beyond_the_paper_is_valid() -> None:
    for rate in beyond.RATES:
        for marking in beyond.policies(rate).values():
            for scenario in (beyond.read(base("beyond"), rate), base("beyond"), beyond.mix(base("beyond"), 300)):
                check = beyond.fabric(scenario, rate, marking).check()
                assert check.ok, check.errors
    for condition in beyond.CONDITIONS:
        for marking in beyond.SETTINGS.values():
            check = beyond.uneven(base("fig14"), condition).replace({"switch.marking": marking}).check()
            assert check.ok, check.errors


def test_s_ecn_halves_the_peak_and_costs_no_goodput(tmp_path: Path) -> None:
    made = reproduce.run("s-ecn/fig14", out=tmp_path / "fig14", seeds=20, jobs=1, progress=False)
    rows = {row["name"]: row for row in made.rows.iter_rows(named=True)}
    for name in ("peak, S-ECN", "peak, S-ECN by chance", "DCTCP over S-ECN", "least goodput of the five"):
        assert rows[name]["ok"], rows[name]
    assert made.ok
    queue = made.data["queue"]
    assert set(queue["policy"]) == set(evaluation.MARKING)
    assert (tmp_path / "fig14" / "fig14.pdf").is_file()
