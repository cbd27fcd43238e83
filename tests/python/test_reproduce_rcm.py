"""Short forms of RCM's figures: each number is within its bounds, or off for the reason that is given."""

from __future__ import annotations

import math

import polars as pl
import pytest

from fanin import reproduce
from fanin.reproduce import _rcm, rcm, rcm_fabric, rcm_starts

# What is outside its bounds and explained, all of it: if one of these is as the paper says, its note is out of date.
NOW = "RCM: burst, least in 10 us", "RCM: each other flow then"
WITHOUT = "RCM, nothing rerouted: victim, 20 to 100 us"
BEYOND = "RCM: victim, from 2 ms on", "RCM without DCQCN: victim, from 2 ms on"
ALONE = "RCM without DCQCN: victim, 20 to 100 us"
MICRO: dict[str, set[str]] = {
    "rcm/fig6": set(NOW),
    "rcm/fig7": {
        "DCQCN: victim, 20 to 100 us",
        "DCQCN: victim, from 2 ms on",
        "RCM: victim, 20 to 100 us",
        WITHOUT,
        *BEYOND,
        ALONE,
    },
    "rcm/combined": {"RCM: burst, least in 10 us", "DCQCN: victim, from 2 ms on", *BEYOND},
    # Of three starts one is missed by each of the other two readings: of forty, thirteen and three.
    "rcm/fig6-starts": {f"{name}: share of starts at which fig. 6 holds" for name in rcm_starts.READINGS},
}
OVER = "mean completion with RCM over DCQCN's"
FABRIC: dict[str, set[str]] = {
    "rcm/buffer": set(),
    "rcm/controls": set(),
    "rcm/failures": {"failed no link: background_us with RCM over DCQCN's"},
    "rcm/fig8": {"background: throughput with RCM over DCQCN's", "all: the same"},
    "rcm/fig9": {
        f"enterprise: {OVER}, mice",
        f"data-mining: {OVER}, mice",
        f"data-mining: {OVER}, elephants",
        "mice: data-mining's ratio over enterprise's",
    },
    "rcm/jobs": set(),
    "rcm/partial": set(),
    "rcm/parts": {"RCC alone: burst, least in 10 us"},
    "rcm/reordering": {"RCM, go-back-N: packets sent again", "RCM, selective repeat: packets sent again"},
    "rcm/sensitivity": {
        "the same, nothing rerouted: victim, PFC and RCM alone",
        "nothing rerouted: burst, least in 10 us",
        "mice over DCQCN's, least by marks",
        "mice over DCQCN's, most by marks",
    },
}


def off(made: reproduce.Reproduction) -> set[str]:
    """Return the rows outside their bounds; a reason that only points at a page is none."""
    assert not [row.note for row in made.found if "docs/" in row.note]
    return {row.name for row in made.found if not row.ok}


@pytest.mark.usefixtures("kept_workers")
@pytest.mark.parametrize("id", sorted(MICRO))
def test_short_forms_of_the_micro_benchmarks(id: str) -> None:
    made = reproduce.run(id, short=True, progress=False)
    assert off(made) == MICRO[id], made.rows
    assert made.ok, made.rows
    assert all(not frame.is_empty() for frame in made.data.values())
    if id == "rcm/fig6":
        table = {row["variant"]: row for row in made.data["phases"].to_dicts()}
        # With whoever is in the CAM harmful, the burst gives way by a frame in 10 us at most.
        assert table[_rcm.RCM]["least_burst"] == pytest.approx(table[_rcm.DCQCN]["least_burst"], abs=1)
        # Half of the port, then a quarter: the burst is as fast with RCM as without at first, and half as fast then, as in the
        # paper's fig. 6; so the others have (100 - 25) / 4 instead of (100 - 50) / 4.
        assert table[_rcm.READ]["least_burst"] == pytest.approx(0.5 * table[_rcm.READ]["first_burst"], rel=0.05)
        assert table[_rcm.READ]["then_others"] == pytest.approx(1.5 * table[_rcm.DCQCN]["then_others"], rel=0.05)
        # DCQCN goes on under RCM: flows that last are marked.
        assert table[_rcm.RCM]["marked"] > 0.5 * table[_rcm.DCQCN]["marked"]
    assert all(
        row.note.startswith("beyond the paper's, because") == (row.fanin > 55) for row in made.found if row.paper == "nearly 50"
    )
    assert all(row.low is not None and row.high is not None for row in made.found if isinstance(row.paper, int | float))
    if id == "rcm/fig7":
        table = {row["variant"]: row for row in made.data["runs"].to_dicts()}
        assert table[_rcm.RCM_ALONE]["early_victim"] > 2 * table[_rcm.PAUSES]["early_victim"]


@pytest.mark.usefixtures("kept_workers")
def test_short_forms_on_the_fabric() -> None:
    """On 16 hosts numbers mean little: what holds of all of them is that nothing is lost and every flow ends."""
    made, failed = reproduce.run_all(reproduce.choose(sorted(FABRIC)), out=lambda _: None, short=True, progress=False)
    assert not failed
    assert {one.id: off(one) for one in made} == FABRIC
    for one in made:
        assert one.ok, one.rows
        for name in ("runs", "points", "parts"):
            table = one.data.get(name)
            if table is not None and "lost" in table.columns:
                assert table["lost"].sum() == 0, one.id
            if table is not None and "unfinished" in table.columns:
                assert table["unfinished"].sum() == 0, one.id
            if table is not None and "rcm_held" in table.columns and "variant" in table.columns:
                assert table.filter(~pl.col("variant").str.starts_with("RCM"))["rcm_held"].fill_null(0).sum() == 0, one.id


def test_intervals_are_students() -> None:
    mean, half = _rcm.interval([1.0, 2.0, 3.0])
    assert (mean, round(half, 4)) == (2.0, round(4.302653 / math.sqrt(3), 4))
    assert _rcm.interval([5.0])[0] == 5.0
    assert math.isnan(_rcm.interval([5.0])[1])
    assert math.isnan(_rcm.interval([])[0])


def test_phases_of_a_burst_are_read_off_its_throughput() -> None:
    """Half of the port for 10 us, a quarter for 20: the others have what is left."""
    rows = []
    for i in range(60):
        us = rcm.BURST_US + i * rcm.BIN_US
        burst = 50.0 if i < 5 else 25.0 if i < 15 else 0.0
        rows += [
            {"us": us, "flow": rcm.BURST, "gbps": burst},
            *({"us": us, "flow": f, "gbps": (100 - burst) / 4} for f in range(4)),
        ]
    found = {"rates": pl.DataFrame(rows).to_dict(as_series=False), "first": rcm.BURST_US + 0.1, "last": rcm.BURST_US + 29.9}
    seen = rcm.phases(found)
    assert (seen["first_burst"], seen["least_burst"], seen["then_others"], seen["after_others"]) == (50, 25, 18.75, 25)
    assert seen["lasted_us"] == pytest.approx(29.8)


def test_groups_cover_the_fabric_once() -> None:
    base = reproduce.SCENARIOS / "rcm" / "workload.toml"
    from fanin.scenario import Scenario

    for k, groups in ((None, 12), (4, 4), (6, 6)):
        made = rcm_fabric.workload(Scenario.from_file(base), "data-mining", groups=groups, k=k)
        assert not made.check().errors
        entries = made.to_dict()["traffic"]
        hosts = 432 if k is None else k**3 // 4
        ends = [tuple(int(name[1:]) for name in entry["sources"][0].split("..")) for entry in entries]
        assert [i for first, last in ends for i in range(first, last + 1)] == list(range(hosts))
        assert all(entry["sources"] == entry["destinations"] for entry in entries)
