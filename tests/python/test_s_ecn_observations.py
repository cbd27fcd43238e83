"""The observation figures of S-ECN: how runs become numbers, and that the testbed is the one of the paper."""

from __future__ import annotations

import math
from pathlib import Path

import polars as pl
import pytest

import fanin
from fanin import reproduce
from fanin.reproduce import SCENARIOS, Job, s_ecn_background
from fanin.reproduce._s_ecn import FRAME, PORT, Phase, _second, mean, numbered, ramp, rounds, slope, steps, variation

FIGURES = ("fig4a", "fig4b", "fig6", "fig7", "fig8", "fig9", "fig10", "starts", "assumptions")
TESTBED = ("sync", "async", "one-bg", "same-hop", "prev-hop")


def scenario(name: str, **changes: object) -> fanin.Scenario:
    return fanin.Scenario.from_file(SCENARIOS / "s-ecn" / f"{name}.toml").replace({"telemetry.sample": "off", **changes})


def phase(start: float, end: float, slope: float) -> Phase:
    return Phase(start=start, end=end, slope=slope, start_kb=0.0, end_kb=0.0)


def test_all_figures_are_registered() -> None:
    assert {f"s-ecn/{name}" for name in FIGURES} <= {entry.id for entry in reproduce.figures()}


def test_a_slope_of_several_phases_is_weighted_by_time() -> None:
    assert slope([phase(0, 1, 2.0), phase(1, 4, 1.0)]) == pytest.approx(1.25)
    assert math.isnan(slope([]))
    assert mean([1.0, math.nan, 3.0]) == 2.0
    assert variation([1.0, 3.0, math.nan]) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("phases", "first_round", "second"),
    [
        ([phase(0, 0.5, 2), phase(0.5, 3, 1)], 0.2, 1),  # the first phase is never phase 2
        ([phase(0, 0.4, 2), phase(0.4, 0.7, 2), phase(0.7, 3, 1)], 0.6, 2),  # mostly before the rounds ended
        ([phase(0, 3, 1)], 0.6, None),
    ],
)
def test_phase_2_lies_mostly_after_the_first_rounds(phases: list[Phase], first_round: float, second: int | None) -> None:
    assert _second(phases, first_round) == second


@pytest.mark.parametrize("name", TESTBED)
def test_the_testbed_is_that_of_the_paper(name: str) -> None:
    resolved = scenario(name).resolved
    assert (resolved["topology"]["racks"], resolved["topology"]["hosts_per_rack"]) == (4, 3)
    assert {resolved["topology"][link]["rate"] for link in ("host_link", "root_link")} == {"1Gbps"}
    assert resolved["switch"]["buffer"]["per_port"] == "512KB"
    for transport in [resolved["transport"], *resolved["transports"].values()]:
        assert (transport["congestion_control"]["kind"], transport["sack"]) == ("newreno", False)
        assert (transport["initial_window"], transport["ack_every"], transport["timestamps"]) == (3, 1, True)
    fan_in = resolved["traffic"][-1]
    assert (fan_in["name"], fan_in["receiver"], fan_in["size"], fan_in["request"]) == ("fan-in", "h9", "1MB", "50B")


def test_the_unloaded_round_trip_is_about_50_us_for_small_packets() -> None:
    """Eight links of 5 us, and 122 B of wire time on each for the 64 B of data that ping sends."""
    alone = {"traffic[0].senders": ["h0"], "traffic[0].flows_per_sender": 1, "traffic[0].jitter": "0us", "duration": "1ms"}
    result = fanin.run(scenario("sync", **alone), progress=False)
    full = result.flows["base_rtt_ps"][0]
    assert full == 4 * (12_304_000 + 5_000_000) + 4 * ((70 + 20) * 8_000 + 5_000_000)
    small = 4 * 2 * (122 * 8_000 + 5_000_000)
    assert small == pytest.approx(50e6, rel=0.05)
    # The queue finds what the window allows: three segments, then six a round trip of the idle network later.
    times = rounds(result)
    assert times.filter(pl.col("round") <= 3)["packets"].to_list() == [3, 6, 12]
    assert times["start_ps"][1] - times["start_ps"][0] == full


def test_rounds_hold_what_slow_start_sends_and_no_acknowledgement() -> None:
    result = fanin.run(scenario("sync", duration="2ms"), progress=False)
    found = numbered(result)
    arrived = result.queues.filter((pl.col("port") == PORT) & (pl.col("frame_bytes") == FRAME))
    assert found.height == arrived.height
    first = found.filter(pl.col("round") == 1)
    assert first.group_by("flow").len()["len"].to_list() == [3] * 18
    assert found["time_ms"].min() == 0


def test_a_run_becomes_two_phases_and_a_law(tmp_path: Path) -> None:
    made = reproduce.run("s-ecn/fig4a", out=tmp_path / "fig4a", jobs=1, progress=False)
    assert [row.name for row in made.found if not row.ok] == []
    assert (tmp_path / "fig4a" / "queue.pdf").stat().st_size > 5_000
    assert made.data["phases"]["end_kb"].max() == pytest.approx(486, abs=3)


def test_steps_over_a_standing_queue_get_steeper() -> None:
    job = Job(scenario("same-hop", duration="508ms"), 1)
    found = steps(fanin.run(job.scenario, progress=False), job)
    assert found.standing == pytest.approx(192, abs=5)  # three windows of 45 segments, less what is on the wire
    assert len(found.phases) == 3
    assert 0.3 < found.slope(2) < found.slope(3) < 0.987


@pytest.mark.parametrize(("kilobytes", "window", "low", "high"), [(128, "64KiB", 0.7, 0.95), (512, None, 1.1, 1.3)])
def test_a_hidden_buffer_makes_phase_2_steeper_the_larger_it_is(
    kilobytes: int, window: str | None, low: float, high: float
) -> None:
    """The smaller one with a window that does not reach into the NICs: one that does keeps any buffer full, see the page."""
    more = {"transport.receive_window": {"kind": "fixed", "size": window}} if window else {}
    job = Job(scenario("prev-hop", duration="506ms", **s_ecn_background.buffer(kilobytes), **more), 1)
    found = ramp(fanin.run(job.scenario, progress=False), job)
    assert low < found.second_phase < high
    # The background flow's sawtooth is somewhere.
    assert 0.7 * kilobytes < found.hidden <= kilobytes


def test_the_first_background_flow_fills_any_hidden_buffer_from_its_nic() -> None:
    job = Job(scenario("prev-hop", duration="506ms", **s_ecn_background.buffer(128)), 1)
    assert 1.1 < ramp(fanin.run(job.scenario, progress=False), job).second_phase < 1.3
