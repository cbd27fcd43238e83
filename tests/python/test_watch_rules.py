"""Rules for alerts, each condition at its edge: what is just enough holds, and what is just below does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fanin.watch import rules
from fanin.watch.hub import Burst
from fanin.watch.rules import Rule
from watching import HEADER, once, written

REPORT: dict[str, Any] = {
    "start_ps": 0,
    "end_ps": 200_000_000,
    "duration_ps": 200_000_000,
    "peak_bytes": 500_000,
    "busiest_bps": 8_000_000_000,
    "dropped_packets": 3,
    "direct": [{"name": "a", "share": 0.5, "bytes": 1}, {"name": "b", "share": 0.25, "bytes": 1}],
    "indirect": [],
}

EDGES = [
    ('queue = "500KB"', "peak_bytes", 499_999),
    ('duration = "200us"', "duration_ps", 199_999_999),
    ('rate = "8Gbps"', "busiest_bps", 7_999_999_999),
    ("share = 0.5", "direct", [{"name": "a", "share": 0.4999999, "bytes": 1}]),
    ("drops = 3", "dropped_packets", 2),
]


def rule_of(tmp_path: Path, text: str) -> Rule:
    """Return the rule with these conditions."""
    (rule,) = rules.read(written(tmp_path / "r.toml", f'[[rule]]\nname = "r"\n{text}\n')).rules
    return rule


@pytest.mark.parametrize(("condition", "key", "below"), EDGES)
def test_just_enough_holds_and_just_less_does_not_nor_what_is_unknown(
    tmp_path: Path, condition: str, key: str, below: object
) -> None:
    rule = rule_of(tmp_path, condition)
    unknown: object = [] if key == "direct" else None
    held = [rule.holds(Burst(1, "s", "p", 0, {**REPORT, key: value})) for value in (REPORT[key], below, unknown)]
    assert held == [True, False, False]


def test_all_conditions_must_hold(tmp_path: Path) -> None:
    rule = rule_of(tmp_path, "\n".join(condition for condition, _, _ in EDGES))
    assert rule.holds(Burst(1, "s", "p", 0, REPORT))
    for _, key, below in EDGES:
        assert not rule.holds(Burst(1, "s", "p", 0, {**REPORT, key: below})), key


def test_an_open_burst_has_the_same_edges(tmp_path: Path) -> None:
    rule = rule_of(tmp_path, 'queue = "500KB"\nduration = "200us"\nports = ["Ethernet1/*"]')
    held = [
        rule.holds_of_open(peak, lasted, port)
        for peak, lasted, port in [
            (500_000, 200_000_000, "Ethernet1/1"),
            (499_999, 200_000_000, "Ethernet1/1"),
            (500_000, 199_999_999, "Ethernet1/1"),
            (500_000, 200_000_000, "Ethernet2/1"),
        ]
    ]
    assert held == [True, False, False, False]


def test_the_share_of_a_culprit_is_that_of_the_largest_part_of_the_queue(tmp_path: Path) -> None:
    # Forty packets of 1500 B that are all there at the peak: 20 of one flow, 20 of others.
    flows = ["one" if i % 2 else f"f{i}" for i in range(40)]
    text = "".join(f"{i * 10},p,{(i + 1) * 1500},1500,{flow}\n" for i, flow in enumerate(flows)) + "1000000,p,0,1500,last\n"
    file = written(tmp_path / "a.csv", HEADER + text)
    (burst,) = once(file).bursts
    share = burst.culprits()[0]["share"]
    assert (burst.culprits()[0]["name"], share) == ("one", pytest.approx(0.5, abs=0.03))
    for asked, alerts in ((share, 1), (share + 1e-9, 0)):
        read = rules.read(written(tmp_path / "r.toml", f'[[rule]]\nname = "r"\nshare = {asked!r}\n'))
        watch = once(file, rules=read)
        assert watch.watch.webhook is not None
        assert watch.watch.webhook.fired["r"] == alerts
