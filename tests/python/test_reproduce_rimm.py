"""Short forms of RIMM's figures: each number is within its bounds, or off for the reason that is given."""

from __future__ import annotations

import polars as pl
import pytest

from fanin import reproduce
from fanin.reproduce import rimm

OFF: dict[str, set[str]] = {
    "rimm/losses": {"RIMM, paths by ECMP"},
    "rimm/table1": {"RIMM, paths by ECMP"},
    "rimm/fig7": {"RIMM", "RIMM, flowlet", "basic forwarding"},
    "rimm/fig7-hosts": {"RIMM", "RIMM, a neighbour per flow"},
    "rimm/fig8": {"RIMM", "RIMM, flowlet"},
    "rimm/table3": {"RIMM", "RIMM, flowlet"},
    "rimm/give-up": {"packets out for 1 ms", "packets out for 5 ms"},
    "rimm/neighbours": {"2 spines, ECMP, per_packet"},
    "rimm/ablation": {"windows of 3 MB"},
}


@pytest.mark.usefixtures("kept_workers")
def test_short_forms() -> None:
    """All at once: the figures of the paper show the same runs."""
    made, failed = reproduce.run_all(reproduce.choose(OFF), out=lambda _: None, short=True, progress=False)
    assert not failed
    for one in made:
        assert {row.name.partition(":")[0] for row in one.found if not row.ok} == OFF[one.about.id], one.rows
        assert one.ok
        assert all(not frame.is_empty() for frame in one.data.values())
    frames = {one.about.id: one.data for one in made}
    events = frames["rimm/losses"]["events"]
    assert events["variant"].to_list() == list(rimm.MECHANISMS)
    assert frames["rimm/fig8"]["events"].equals(events)
    ways = dict(frames["rimm/neighbours"]["means"].select("variant", "ways_per_release").iter_rows())
    assert ways["2 spines, ECMP, per_packet"] > 10 * ways["2 spines, ECMP, per_flow"]


@pytest.mark.usefixtures("kept_workers")
def test_short_forms_beyond_the_paper() -> None:
    chosen = reproduce.choose(["rimm/hosts", "rimm/incast", "rimm/loaded", "rimm/speeds"])
    made, failed = reproduce.run_all(chosen, out=lambda _: None, short=True, progress=False)
    assert not failed
    for one in made:
        assert one.ok, one.rows
        means = one.data["means"]
        # Memory that the ports share loses nothing where one port loses something.
        assert means.filter((pl.col("variant") == rimm.SHARED) & (pl.col("lost") > 0)).is_empty(), means
