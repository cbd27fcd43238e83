"""``fanin best``: what is tried follows from the registries and from a check, and the ranking follows its rule."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import fanin
import races
from fanin import _core
from fanin.best import candidates
from fanin.best.candidates import AS_IT_IS
from fanin.best.ranking import SEEDS, Best, Place, _leaves_more, _order, _rounds, best
from fanin.cli import app
from fanin.cli import best as _best
from fanin.comparison import Comparison
from fanin.comparison.variants import Run, Variant
from fanin.statistics import Difference, Interval, Verdict, metrics
from fanin.text import show

ROOT = Path(__file__).parents[2]
INCAST = ROOT / "scenarios" / "incast.toml"


def call(*args: Any) -> Any:
    return CliRunner().invoke(app, [str(arg) for arg in args])


def test_places_are_by_differences_over_seeds_that_both_have() -> None:
    """A policy that left the race before the dear seeds came has the lowest mean, and is the worst."""
    metric = metrics.of("queries.p99_ps")
    assert metric is not None

    def variant(name: str, values: list[float]) -> Variant:
        run = Run(1, {}, {}, "1", "x", "complete", 1, name, None)
        return Variant(name, tuple(replace(run, seed=seed, values={metric.key: value}) for seed, value in enumerate(values)))

    usual = [1.0] * 10 + [10.0] * 6
    found = [
        variant("dropped", [1.2] * 10),
        variant(AS_IT_IS, usual),
        variant("better", [0.99 * value for value in usual]),
        variant("better at once", [0.9] * 5),
    ]
    order = [own.name for own in _order(found, metric, {})]
    assert order == ["better at once", "better", AS_IT_IS, "dropped"]


def test_a_race_is_looked_at_three_times_the_last_with_all_seeds() -> None:
    """It ended near sixty seeds, and what timeouts decide is judged from 99 on."""
    told = {(many, seeds): _rounds(many, seeds) for many, seeds in ((21, 100), (5, 22), (21, 10), (2, 100), (12, 300), (21, 20))}
    assert told == {
        (21, 100): [15, 39, 100],
        (5, 22): [11, 16, 22],
        (21, 10): [10],
        (2, 100): [7, 26, 100],
        (12, 300): [13, 62, 300],
        (21, 20): [15, 20],
    }


def test_the_first_races_on_until_its_mean_is_known_to_be_better() -> None:
    """All others are told from it at the first look, and with as many seeds only most of its runs are better."""
    draws = np.random.default_rng(3)
    usual = draws.normal(20e9, 1e8, 100)
    found = races.raced([usual, usual - 15e9 + draws.normal(0, 1e7, 100), usual + 5e9 + draws.normal(0, 1e7, 100)], 100)
    assert found.seeds == {AS_IT_IS: 100, "policy 1": 100, "policy 2": 9}
    assert found.against == {"policy 1": "better", "policy 2": "mostly worse"}
    few = races.raced([usual[:40], usual[:40] - 15e9], 40)
    assert few.against == {"policy 1": "mostly better"}
    nothing = races.raced([usual, usual + 5e9 + draws.normal(0, 1e7, 100)], 100)
    assert nothing.seeds == {AS_IT_IS: 7, "policy 1": 7}, "the scenario as it is comes first, and nothing more is to be told"


@pytest.mark.parametrize(("many", "seeds"), [(5, 10), (12, 100)])
def test_races_of_what_is_equal_tell_nothing_apart(many: int, seeds: int) -> None:
    """Races on values of real runs; `simulated.py 400 races` makes more of them."""
    count = 12
    assert max(races.false_races(many, seeds, count)[:3]) <= 3, "5 % of twelve, and three standard deviations"


def test_a_race_finds_what_has_no_timeouts() -> None:
    """Timeouts in many runs of eleven equal ones, and in none of the twelfth: better, and among them all that race long enough."""
    assert races.found_best(0.1, 12, 100, 6)["better"] >= 5


def test_numbers_of_flows_that_did_not_end_are_of_the_same_seeds() -> None:
    """The scenario as it is raced on, and lost flows with seeds that the other never had."""
    key = "queries.p99_ps"

    def variant(name: str, lost: list[float]) -> Variant:
        run = Run(1, {}, {}, "1", "x", "complete", 1, name, None)
        values = ({key: 1.0 + seed, "total.flows_incomplete": own} for seed, own in enumerate(lost))
        return Variant(name, tuple(replace(run, seed=seed, values=own) for seed, own in enumerate(values)))

    base, other = variant(AS_IT_IS, [1.0, 1.0, 0.0, 0.0]), variant("other", [1.0, 1.0])
    assert not _leaves_more(other, base) and not _leaves_more(base, other)
    assert _leaves_more(variant("more", [1.0, 2.0]), base)


def small(**changes: Any) -> fanin.Scenario:
    """An incast that overflows its port: 20 senders over a buffer of 100 KB."""
    base = fanin.Scenario.from_file(INCAST).replace(
        {
            "topology.hosts": 21,
            "switch.buffer.per_port": "100KB",
            "traffic[0].receiver": "h20",
            "traffic[0].size": "64KB",
            "traffic[0].jitter": "10us",
            "telemetry": {"sample": "off", "queues": []},
        }
    )
    return base.replace(changes)


def trials(scenario: fanin.Scenario) -> list[dict[str, Any]]:
    return _core.trials(*scenario.source(), str(scenario.base_dir))


def test_large_changes_are_times_and_small_ones_per_cent() -> None:
    shown = {0.05: "+5 %", -0.123: "-12.3 %", 8.99: "+899 %", 18.7: "x 19.7", 998.7: "x 1,000", 4321.0: "x 4,322"}
    assert {share: show.change(share) for share in shown} == shown
    assert (show.many(1, "flow"), show.many(0.2, "flow"), show.many(2, "switch", "switches")) == (
        "1 flow",
        "0.2 flows",
        "2 switches",
    )
    assert show.change(9.996, times=False) == "+1,000 %" and show.change(-0.5, sign=False) == "50 %"


LEVEL = Difference(1.0, None, None, 0.5, None, None, 5, True, 0, 5, 0.001, 0.001)


def ranking(verdicts: dict[str, Verdict], change: float, seeds: int) -> Best:
    """A ranking in which each policy has a verdict, and the first one a change from the scenario as it is."""
    moved = Difference(change, None, None, change, 0.8 * change, 1.1 * change, seeds, True, 0, seeds, 0.001, 0.001)
    level = Interval(2e9, None, None, seeds, 2e9, None, None, 2e9, 2e9, None)
    own = candidates.Candidate("x", "marking", "", {}, (), small(), 0, 0)
    ranked = [
        Place(at, own, name, "", level, moved, said, None, None, moved, 0.0) for at, (name, said) in enumerate(verdicts.items(), 1)
    ]
    base = Place(len(ranked) + 1, None, AS_IT_IS, "", level, None, None, None, None, None, 0.0)
    metric = metrics.METRICS["queries.p99_ps"]
    empty = Comparison((), (), [], [], [], 0.95, 0.05)
    return Best(metric, (*ranked, base), (), empty, "others", tuple(range(1, seeds + 1)))


def test_the_text_says_what_the_table_says() -> None:
    few = ranking({"a": "one seed", "b": "one seed"}, -0.5, 1).text
    assert few.startswith("a comes out first, and that it is better is not shown: queries, p99 is 2 ms, 50 % (40 % to 55 %) less")
    assert few.endswith("each against the scenario as it is over the same seeds: 2 not shown to be either.")
    many = ranking({"a": "no difference"}, 18.7, 5).text
    assert "is 2 ms, x 19.7 (x 16 to x 21.6) that of the scenario as it is." in many
    assert "the throughput of others is x 19.7, " in many and many.endswith(": 1 without a difference.")
    of_nothing = ranking({"a": "better"}, 0.5, 5)
    top = of_nothing.places[0]
    gained = Place(1, top.candidate, "a", "", top.interval, replace(LEVEL, change=None, mean=2e9), "better", None, None, None, 0.0)
    assert "is 2 ms, 2 ms more than in the scenario as it is." in replace(of_nothing, places=(gained, of_nothing.base)).text
    assert _best._change(gained, of_nothing.metric) == "+2 ms"
    assert _best._change(top, of_nothing.metric) == "+50 % [+40 %, +55 %]"
    rare = replace(top, change=replace(top.change or LEVEL, flag="rare", change=18.7, change_low=15.0, change_high=20.6))
    assert _best._change(rare, of_nothing.metric) == "~x 19.7 [x 16, x 21.6]"
    doubtful = replace(top, interval=replace(top.interval, median_low=1e9, median_high=3e9, most=9e9, flag="rare"))
    assert _best._row(doubtful, of_nothing.metric, others=False)[1] == "~2 ms, median 2 ms [1 ms, 3 ms]"
    three = ranking({"a": "better", "b": "equal", "c": "not shown"}, -0.5, 3).text
    assert three.endswith(": 1 better, 1 the same, 1 not shown to be either.")
    out = [candidates.Rejected(name, "marking", "no reason", ran=name == "d") for name in "defg"]
    left = replace(ranking({"a": "better"}, -0.5, 3), rejected=tuple(out)).text
    assert left.endswith(": 1 better; 1 policy that ran is not ranked; 3 were not tried."), left
    average = ranking({"a": "better on average"}, -0.5, 120).text
    assert average.startswith("a does best on average, though not in most runs: queries, p99 is 2 ms, 50 %")
    assert average.endswith(": 1 better on average, though most of the runs are not.")
    mostly = ranking({"a": "mostly better"}, -0.5, 20).text
    assert mostly.startswith("a does best in most runs: queries, p99 is 2 ms, 50 % (40 % to 55 %) less")
    both = ranking({"a": "better", "b": "mostly better", "c": "mostly worse", "d": "mostly better"}, -0.5, 100).text
    assert both.endswith(": 1 better, 2 better in most runs, 1 worse in most runs."), "each is counted once"
    unjudged = ranking({"a": "mostly better"}, -0.5, 20)
    (top, base), why = unjudged.places, "judged from 99 seeds on"
    told = replace(unjudged, places=(replace(top, why=why), base)).text
    assert "than in the scenario as it is; its mean is not judged: such a mean is judged from 99 seeds on. What" in told
    might = replace(unjudged, places=(replace(top, verdict="not shown", needs=123), base)).text
    assert might.startswith("a comes out first, and that it is better is not shown (some 130 new seeds might): ")


def test_every_policy_of_the_schema_is_a_trial() -> None:
    made = {(trial["part"], trial["kind"]) for trial in trials(small())}
    definitions = json.loads(_core.schema())["$defs"]

    def kinds(choice: str) -> set[str]:
        tables = [definitions[entry["$ref"].rpartition("/")[2]] for entry in definitions[choice]["oneOf"] if "$ref" in entry]
        return {table["properties"]["kind"]["const"] for table in tables}

    expected = {("switch.mechanisms", key) for key in definitions["Mechanisms"]["properties"]}
    # A block outside has to be there first.
    expected |= {("switch.marking", kind) for kind in kinds("Marking") - {"external"}}
    expected |= {("switch.routing", kind) for kind in kinds("PathChoice")}
    expected |= {("transport.congestion_control", kind) for kind in kinds("CongestionControl") | kinds("RoceControl")}
    assert made == expected


def test_no_policy_is_named_in_the_code() -> None:
    kinds = {trial["kind"] for trial in trials(small())} - {"none"}
    for module in ("best/candidates", "best/ranking", "cli/best"):
        text = (ROOT / "python" / "fanin" / f"{module}.py").read_text(encoding="utf-8")
        code = re.sub(r'"""(.|\n)*?"""|#.*|help="[^"]*"|EXAMPLE.*|_STYLES.*', "", text)
        assert not [kind for kind in kinds if re.search(rf"""["'.]{kind}["']""", code)], module


def test_settings_of_authors_follow_the_rate() -> None:
    def marking(rate: str, kind: str) -> Any:
        made = trials(small(**{"topology.link.rate": rate}))
        trial = next(trial for trial in made if trial["kind"] == kind and trial["part"].startswith("transport"))
        return dict(map(tuple, trial["settings"]))["switch.marking"]

    assert 'k = "20 packets"' in marking("1Gbps", "dctcp")
    assert 'k = "65 packets"' in marking("10Gbps", "dctcp")
    assert 'k = "260 packets"' in marking("40Gbps", "dctcp")
    assert 'min = "5000B", max = "200000B", max_p = 0.01' in marking("40Gbps", "dcqcn")
    assert 'min = "12500B", max = "500000B"' in marking("100Gbps", "dcqcn")


def test_what_applies_says_the_check() -> None:
    good, bad = candidates.candidates(small())
    tried, reasons = {found.name for found in good}, {found.name: found.reason for found in bad}
    assert {"pdn", "trimming", "s_ecn", "cubic", "dcqcn", "hpcc"} <= tried
    assert "no neighbour is a switch" in reasons["dibs"]
    assert "nothing to choose between" in reasons["spray"]
    assert reasons["dctcp"] == reasons["ecmp"] == "the scenario has it already"
    assert "asks for telemetry" in reasons["int"]
    assert "uses ECN, and no switch marks" in reasons["marking none"]
    for found in good:
        check = found.scenario.check()
        assert check.ok and len(check.warnings) <= len(small().check().warnings), found.name


def test_transports_bring_what_they_cannot_do_without() -> None:
    good, _ = candidates.candidates(small(), ["hpcc", "swift", "trimming"])
    by_name = {found.name: found.scenario.resolved for found in good}
    assert set(by_name["hpcc"]["switch"]["mechanisms"]) == {"int", "pfc"}
    assert set(by_name["swift"]["switch"]["mechanisms"]) == {"pfc"}
    assert by_name["trimming"]["transport"]["trim_nack"] is True
    assert by_name["hpcc"]["topology"] == small().resolved["topology"]


def test_costs_are_those_of_the_registers() -> None:
    good, _ = candidates.candidates(small(), ["pdn", "s_ecn", "trimming", "hpcc"])
    costs = {found.name: (found.header_bytes, found.memory_bytes) for found in good}
    assert costs["pdn"] == (0, 21 * 2_000)
    assert costs["trimming"] == (0, 21 * 72_000)
    assert costs["s_ecn"] == (0, 21 * 12)
    assert costs["hpcc"][0] == 4 + 8


def test_a_setting_that_does_nothing_here_is_left_out() -> None:
    event = fanin.Scenario.from_file(ROOT / "scenarios" / "papers" / "rimm" / "event.toml")
    plain = event.replace({"switch.mechanisms": None, "switch.routing": "ecmp"})
    by_name = {found.name: found for found in candidates.candidates(plain)[0]}
    assert by_name["rimm"].changes["switch.routing"] == "by_destination"
    assert by_name["rimm"].changes["switch.mechanisms.rimm.alpha"] == "20000 cells"
    roce = fanin.Scenario.from_file(ROOT / "scenarios" / "roce.toml")
    found = {found.name: found for found in candidates.candidates(roce)[0]}
    assert found["hpcc"].left_out == ("switch.marking",), "others of its flows work by marks"
    assert found["hpcc"].scenario.resolved["transports"]["rdma"]["congestion_control"]["kind"] == "hpcc"


def test_tunings_that_suit_the_transport_are_tried() -> None:
    demo = fanin.Scenario.from_file(ROOT / "scenarios" / "demo.toml")
    tried = {found.name: found.scenario.resolved for found in candidates.candidates(demo)[0]}
    assert {"K = 20", "red marks", "codel marks", "cubic with ECN", "pacing"} <= tried.keys()
    assert tried["red marks"]["switch"]["marking"]["hard_drop"] is False
    assert tried["codel marks"]["switch"]["marking"]["ecn"] is True


def test_only_chooses_by_name_part_and_pattern() -> None:
    def names(*only: str) -> set[str]:
        good, bad = candidates.candidates(small(), only)
        return {found.name for found in good} | {found.name for found in bad}

    assert names("pdn") == {"pdn"}
    tuned = {"K = 10", "K = 20", "K = 40", "K = 130", "red marks", "codel marks"}
    assert names("marking") == {"marking none", "threshold", "red", "s_ecn", "codel", "front_drop"} | tuned
    assert {"powertcp", "theta_powertcp"} == names("*powertcp")
    with pytest.raises(ValueError, match="--only trimmming: is no policy and no part of a scenario; did you mean 'trimming'"):
        names("trimmming")


@pytest.fixture(scope="module")
def ranked() -> Best:
    return best(small(), only=["pdn", "trimming", "cubic", "s_ecn"], seeds=22)


def test_the_ranking_follows_the_metric(ranked: Best) -> None:
    assert ranked.metric.key == "queries.p99_ps"
    assert {place.name for place in ranked.places} == {AS_IT_IS, "pdn", "trimming", "cubic", "s_ecn"}
    counts = {variant.name: len(variant.seeds) for variant in ranked.comparison.variants}
    assert min(counts.values()) == 11, "an exact test of each of ten pairs, three times at most, takes eleven"
    assert set(counts.values()) <= {11, 16, 22} and counts[AS_IT_IS] == max(counts.values()) == 22
    assert all(variant.seeds == tuple(range(1, len(variant.seeds) + 1)) for variant in ranked.comparison.variants)
    finished = [place for place in ranked.places if place.incomplete <= ranked.base.incomplete]
    means = [place.interval.mean for place in finished]
    assert means == sorted(means)
    ranks = [place.rank for place in ranked.places]
    assert ranks == sorted(ranks) and ranks[0] == 1 < ranks[-1]
    assert all(rank in (at, ranks[at - 2]) for at, rank in enumerate(ranks, start=1)), "a new rank is the place"
    assert all(place.to_best != "better" for place in ranked.places)


def test_what_repairs_losses_at_once_beats_timeouts(ranked: Best) -> None:
    place = {found.name: found for found in ranked.places}
    base = place[AS_IT_IS].interval.mean
    assert place["pdn"].verdict in ("better", "mostly better") and place["pdn"].interval.mean < base / 2, "timeouts of 10 ms"
    assert place["trimming"].verdict in ("better", "mostly better") and place["trimming"].interval.mean < base / 2
    assert ranked.places[0].name in ("pdn", "trimming")
    change = place["pdn"].change
    assert change is not None and change.paired and change.seeds >= 11


def test_same_seeds_give_the_same_traffic(ranked: Best) -> None:
    starts = {
        variant.name: [tuple(result.flows.sort("src")["start_ps"]) for result in variant.results()]
        for variant in ranked.comparison.variants
    }
    assert len(set(starts[AS_IT_IS])) == len(starts[AS_IT_IS]) >= 11, "seeds differ"
    assert all(own == starts[AS_IT_IS][: len(own)] for own in starts.values())


def test_three_sentences(ranked: Best) -> None:
    text = ranked.text
    assert len(re.findall(r"\.(?= |$)", re.sub(r"\d\.\d", "0", text))) == 3, text
    assert text.startswith(f"{ranked.places[0].name} does best")
    assert "less than in the scenario as it is; its mean is not judged: such a mean is judged from 99 seeds on. What it" in text
    assert "Of 4 tried over 11 to 22 seeds, each against the scenario as it is over the same seeds: " in text


def test_the_scenario_as_it_is_is_shown_over_the_same_seeds(ranked: Best) -> None:
    usual = ranked.comparison.base.values("queries.p99_ps")
    seeds = {variant.name: variant.seeds for variant in ranked.comparison.variants}
    for place in ranked.places:
        if place.name == AS_IT_IS:
            assert place.as_it_is is None and place.interval.seeds == 22
            continue
        assert place.as_it_is is not None and place.change is not None
        assert place.as_it_is.mean == pytest.approx(sum(usual[seed] for seed in seeds[place.name]) / len(seeds[place.name]))
        assert place.as_it_is.seeds == place.interval.seeds == place.change.seeds == len(seeds[place.name])
        assert place.change.mean == pytest.approx(place.interval.mean - place.as_it_is.mean)
        row = [str(cell) for cell in _best._row(place, ranked.metric, others=False)]
        assert row[2] == f"~{ranked.metric.text(place.as_it_is.mean)}"
    assert len({len(own) for own in seeds.values()}) > 1, "some left the race"
    told = {entry["name"]: entry for entry in ranked.to_dict()["places"]}
    assert told[AS_IT_IS]["as_it_is"] is None and told["pdn"]["as_it_is"]["seeds"] == told["pdn"]["seeds"]
    assert any(note.startswith("runs with timeouts: as it is ") for note in ranked.notes) and ranked.to_dict()["notes"]


def test_a_scenario_without_jobs_and_queries_is_ranked_by_mean_completion_times() -> None:
    """The p99 of slowdowns, which it was, is judged with no number of seeds."""
    flows = {"kind": "poisson", "sizes": "web-search", "load": 0.3, "stop": "200us"}
    found = best(fanin.Scenario({**small().to_dict(), "traffic": [flows]}), only=["pacing"], seeds=1)
    assert found.metric.key == "fct/all.mean_ps"
    assert {metrics.METRICS[key].seeds_of_differences for key in ("fct/all.mean_ps", "queries.p99_ps")} == {99}
    assert metrics.METRICS["fct/all.slowdown_p99"].seeds_of_differences is None and SEEDS >= 99


def test_others_are_the_flows_that_the_metric_is_not_about() -> None:
    document = small().to_dict()
    with_background = fanin.Scenario({**document, "traffic": [*document["traffic"], LONG]})
    found = best(with_background, only=["pdn"], seeds=2)
    base, pdn = found.base, next(place for place in found.places if place.name == "pdn")
    assert found.others_are == "flows that answer no query"
    assert base.others is not None and 1e9 < base.others.mean < 10e9
    assert pdn.others_change is not None and pdn.others_change.change is not None


def test_others_of_a_size_are_the_flows_of_all_other_sizes() -> None:
    document = small().to_dict()
    with_background = fanin.Scenario({**document, "traffic": [*document["traffic"], LONG]})
    found = best(with_background, only=["pdn"], seeds=1, metric="fct/>=1MB.mean_ps")
    flows = found.comparison.base.results()[0].flows.filter(size_bytes=64_000)
    rate = 8e12 * 20 * 64_000 / flows.select(pl.col("finish_ps") - pl.col("start_ps")).sum().item()
    assert found.others_are == "flows of other sizes" and flows.height == 20
    assert found.base.others is not None and found.base.others.mean == pytest.approx(rate)


LONG = {"name": "long", "kind": "flows", "flows": [{"src": "h0", "dst": "h1", "size": "4MB"}]}


def events(found: candidates.Candidate) -> int:
    return int(_core.summarize(*found.scenario.source(), str(found.scenario.base_dir), None)["events"])


def test_what_fails_is_named_and_stops_nothing() -> None:
    """By whatever error: here the bound on events, which one policy reaches and another does not."""
    least, most = sorted(candidates.candidates(small(), ["pdn", "trimming", "cubic"])[0], key=events)[::2]
    own = int(_core.summarize(*small().source(), ".", None)["events"])
    bound = events(most) - 1
    assert max(own, events(least)) <= bound
    found = best(small(**{"engine.max_events": bound}), only=[least.name, most.name], seeds=1)
    assert {place.name for place in found.places} == {AS_IT_IS, least.name}
    (rejected,) = found.rejected
    assert rejected.name == most.name and rejected.reason.startswith("failed: ") and "max_events" in rejected.reason


def test_a_worker_that_is_killed_fails_its_run_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from fanin.sweep import running
    from fanin.sweep.workers import Pool

    class Killing(Pool):
        """Kills the worker that is at a run of PDN: what the kernel does to one that takes too much memory."""

        def _fill(self, following: Any) -> None:
            super()._fill(following)
            for worker in self._workers:
                if worker.waiting and '"pdn"' in worker.waiting[0][1]:
                    worker.process.kill()

    monkeypatch.setattr(running, "Pool", Killing)
    found = best(small(), only=["pdn", "trimming"], seeds=1, jobs=1)
    assert {place.name for place in found.places} == {AS_IT_IS, "trimming"}
    assert [(own.name, own.reason[:40]) for own in found.rejected] == [("pdn", "failed: the worker process ended (SIGKIL")]


def test_kept_results_are_a_sweep_that_a_second_call_goes_on_with(tmp_path: Path) -> None:
    first = best(small(), only=["trimming"], seeds=2, keep=tmp_path / "kept")
    assert "better is not shown (a mean of this metric is judged from 99 seeds on): queries, p99 is" in first.text
    names = {re.sub(r"-[0-9a-f]{32}$", "", entry.name) for entry in (tmp_path / "kept" / "results").iterdir()}
    assert names == {f"{name}-seed{seed}" for name in ("as_it_is", "trimming") for seed in (1, 2)}
    sweep = fanin.Sweep(tmp_path / "kept")
    segments = set(sweep.runs["segment"])
    assert best(small(), only=["trimming"], seeds=2, keep=tmp_path / "kept").to_dict() == first.to_dict()
    assert set(sweep.reload().runs["segment"]) == segments, "nothing was run again"
    more = best(small(), only=["trimming", "s_ecn"], seeds=3, keep=tmp_path / "kept")
    assert {len(variant.seeds) for variant in more.comparison.variants} == {3}
    assert sweep.reload().all_runs.height == 9 and set(sweep.reload().all_runs["segment"]) > segments
    compared = sweep.reload().compare("label", base=AS_IT_IS, metric="fct/all.p99_ps")
    assert {variant.name for variant in compared.variants} == {AS_IT_IS, "trimming", "s_ecn"}


def test_what_cannot_be_ranked_is_refused_before_it_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    from fanin.sweep import running

    asked: list[Any] = []
    monkeypatch.setattr(running, "execute", lambda *given, **_: asked.append(given))
    for metric, message in (
        ("queries.p98_ps", "did you mean queries.p99_ps"),
        ("total.marks", "neither more nor less of it is better"),
        ("fxt/*", "none of"),
    ):
        with pytest.raises(ValueError, match=message):
            best(small(), only=["pdn"], metric=metric)
    with pytest.raises(ValueError, match=r"nothing applies to this scenario of .* --only .*; dctcp: the scenario has it already"):
        best(small(), only=["dctcp"])
    assert asked == []


def test_a_metric_that_this_scenario_has_not_ends_with_the_first_run(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"metric 'total\.datagrams_received': no run has it; it needs"):
        best(small(), only=["pdn"], seeds=5, jobs=1, metric="total.datagrams_received", keep=tmp_path / "kept")
    assert fanin.Sweep(tmp_path / "kept").runs.height == 1
    with pytest.raises(ValueError, match=r"the scenario as it is fails: .*max_events"):
        best(small(**{"engine.max_events": 50}), only=["pdn"], seeds=1)
    with pytest.raises(ValueError, match="jobs: 0 is out of range"):
        best(small(), only=["pdn"], jobs=0)


def test_the_command(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text(small().to_toml(), encoding="utf-8")
    found = call("best", file, "--only", "trimming", "--only", "s_ecn", "--seeds", 2, "--jobs", 1, "--keep", tmp_path / "kept")
    assert found.exit_code == 0, found.output
    assert "1 trimming" in found.stdout and "as it is" in found.stdout and "Memory" in found.stdout
    assert len(list((tmp_path / "kept" / "results").iterdir())) == 6
    told = json.loads(call("best", file, "--only", "trimming", "--seeds", 1, "--json", "--metric", "total.drops").stdout)
    assert told["schema"] == "best/2" and told["metric"]["key"] == "total.drops"
    assert told["places"][0]["name"] == "trimming" and told["places"][0]["switch_memory_bytes"] == 21 * 72_000
    listed = json.loads(call("best", file, "--list", "--json").stdout)
    assert {"tried", "rejected"} == set(listed)
    assert "no neighbour is a switch" in call("best", file, "--list").stdout


def test_errors_of_the_command(tmp_path: Path) -> None:
    wrong = call("best", INCAST, "--only", "dipps")
    assert wrong.exit_code == 2 and "did you mean 'dibs'" in wrong.stderr
    page = call("best", INCAST, "-o", tmp_path / "x.txt")
    assert page.exit_code == 2
    metric = call("best", INCAST, "--only", "s_ecn", "--seeds", 1, "--set", "traffic[0].size=1KB", "--metric", "queries.p98_ps")
    assert metric.exit_code == 2 and "there is none of that name; did you mean queries.p99_ps" in metric.stderr


def test_the_page_compares_all(tmp_path: Path, ranked: Best) -> None:
    page = ranked.comparison.report(tmp_path / "best.html").read_text(encoding="utf-8")
    for place in ranked.places:
        assert place.name in page


def test_what_does_nothing_is_not_ranked() -> None:
    found = best(small(**{"switch.buffer.per_port": "4MB"}), only=["pdn", "trimming", "cubic"], seeds=2)
    assert {place.name for place in found.places} == {AS_IT_IS, "cubic"}
    reasons = {own.name: own.reason for own in found.rejected}
    for name in ("pdn", "trimming"):
        assert re.match(r"(never acts|changes nothing) here: ", reasons[name]), reasons
    with pytest.raises(ValueError, match="nothing that was tried can be ranked; pdn: "):
        best(small(**{"switch.buffer.per_port": "4MB"}), only=["pdn"], seeds=1)


def test_the_command_says_why_what_ran_is_not_ranked(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text(small(**{"switch.buffer.per_port": "4MB"}).to_toml(), encoding="utf-8")
    told = call("best", file, "--only", "pdn", "--only", "cubic", "--only", "dctcp", "--seeds", 1)
    (line,) = [line for line in told.stdout.splitlines() if line.startswith("not ranked: ")]
    assert re.match(r"not ranked: pdn: (never acts|changes nothing) here: ", line)
    assert told.stdout.endswith("fanin best --list says why policies were not tried\n")
    found = json.loads(call("best", file, "--only", "pdn", "--only", "cubic", "--seeds", 1, "--json").stdout)
    assert [(own["name"], own["ran"]) for own in found["rejected"]] == [("pdn", True)]


def test_few_seeds_tell_nothing_apart_and_say_so() -> None:
    found = best(small(), only=["dctcp", "cubic", "red"], seeds=2)
    assert {place.rank for place in found.places} == {1} and len(found.places) > 2
    assert {place.verdict for place in found.places} == {None, "not shown"}
    assert "not shown" in found.text and "does best" not in found.text
    assert all(place.needs is None or place.needs > 2 for place in found.places)


def test_costs_are_beyond_those_of_the_scenario_as_it_is() -> None:
    roce = fanin.Scenario.from_file(ROOT / "scenarios" / "roce.toml")
    found = {own.name: own for own in candidates.candidates(roce, ["control none", "hpcc"])[0]}
    assert (found["control none"].header_bytes, found["control none"].memory_bytes) == (0, 0)
    assert found["hpcc"].header_bytes > 0
