"""Short forms of PDN's figures: each number is within its bounds, or off for the reason that is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from fanin import reproduce
from fanin.figures import paper
from fanin.reproduce import pdn, pdn_ipv6

LONGER_THAN_A_QUEUE = {"100 servers, NewReno, RTO_min 200us"}
SENDERS = ("NewReno", "CUBIC", "DCTCP", "DCTCP, S-ECN")
IN_A_FABRIC = {f"{sender}, {what}" for sender in SENDERS for what in ("PDN for data only", "PDN and RTO 200 us over PDN")}
OFF: dict[str, set[str]] = {
    "pdn/fig8": set(),
    "pdn/fig9": set(),
    "pdn/fig10": set(),
    "pdn/ipv6": set(),
    "pdn/timers": LONGER_THAN_A_QUEUE,
    "pdn/trimming": set(),
    "pdn/lost": set(),
    "pdn/fabric": {*IN_A_FABRIC, "largest notification queue"},
}


@pytest.mark.usefixtures("kept_workers")
@pytest.mark.parametrize("id", sorted(OFF))
def test_short_form(id: str, tmp_path: Path) -> None:
    made = reproduce.run(id, short=True, progress=False)
    assert {row.name.partition(":")[0] for row in made.found if not row.ok} == OFF[id], made.rows
    assert made.ok
    assert all(not frame.is_empty() for frame in made.data.values())
    # Once: laying a plot out takes seconds, and test_reproduce_figures writes all that there is of a figure.
    for name, plot in made.plots.items():
        assert paper.save(plot, tmp_path / f"{name}.pdf").stat().st_size > 5_000


def test_the_collapse_is_where_it_was_derived() -> None:
    assert pytest.approx(74.5, abs=0.05) == pdn.DERIVED
    assert pdn.BOUNDS[0] < 72 < pdn.BOUNDS[1]
    assert pytest.approx(73.2, abs=0.05) == pdn_ipv6.DERIVED
