"""Notes of a comparison: each is true of the variants that it names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import fanin
from fanin.comparison import notes, tables
from fanin.comparison.variants import Variant
from test_compare import runs, variant

__all__ = ["runs"]


def test_what_has_no_effect_is_what_differs_between_the_two(runs: Path, tmp_path: Path) -> None:
    """A third variant has other settings; of what differs from that the note about the two says nothing."""

    def other(manifest: dict[str, Any], summary: dict[str, Any]) -> None:
        manifest["scenario"]["transport"]["mss"] = 536
        manifest["fingerprint"] = "1 65 packets"

    same = variant(tmp_path / "same", 1, change=other)
    found = fanin.compare([f"a={runs / 'k65' / 'seed1'}", f"b={runs / 'k20' / 'seed1'}", f"c={same}"])
    told = "c and a gave the same runs, by their fingerprints: what differs has no effect here (transport.mss)"
    assert told in found.warnings


def test_nobody_says_that_no_run_had_a_timeout_where_others_had(runs: Path) -> None:
    def with_timeouts(found: Variant, count: int) -> Variant:
        told = (replace(run, values={**run.values, "total.timeouts": float(i < count)}) for i, run in enumerate(found.runs))
        return replace(found, runs=tuple(told))

    made = fanin.compare([runs / "k65", runs / "k20"])
    first, second = (with_timeouts(found, 0) for found in made.variants)
    third = with_timeouts(replace(second, name="newreno"), 11)
    unseen = "12 seeds say that fewer than 22 % of runs do"
    assert notes.timeouts([first, second], made.rows, [first, second]) == [f"no run had a timeout; {unseen}"]
    assert notes.timeouts([first, second], made.rows, [first, second, third]) == [
        f"no run of k65 or k20 had a timeout; {unseen}",
        "runs of others with timeouts: newreno 11 of 12",
    ]


def test_a_table_of_unpaired_runs_does_not_speak_of_tests_by_seed(runs: Path) -> None:
    apart = fanin.compare({"a": f"{runs}/k65/seed[123456]", "b": f"{runs}/k20/seed[789]"}, metric="fct/all.p50_ps")
    assert "(permutation and rank tests of unpaired runs, Holm)" in tables.rule(apart)
    together = fanin.compare({"a": f"{runs}/k65/seed[123456]", "b": f"{runs}/k20/seed[123456]"}, metric="fct/all.p50_ps")
    assert "(exact tests by seed, Holm)" in tables.rule(together)
