"""S-ECN beside DCTCP: the committed runs of the kernel against their mirrors; what `make linux-demo` measures."""

from __future__ import annotations

import json
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from demo import CASES, REFERENCE, Marked, refused, simulated, table

DATA: dict[str, Any] = json.loads(REFERENCE.read_text(encoding="utf-8"))
MEASURED = [case for case in CASES if DATA["cases"][case.key]["runs"]]
RUNS = 2
"""Runs of each case that are mirrored here; all of them stand in the table of docs/dev/linux-dataplane-measured.md."""


@pytest.fixture(scope="module")
def mirrors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, float]]]:
    folder = tmp_path_factory.mktemp("mirrors")
    runs = {case: DATA["cases"][case.key]["runs"][:RUNS] for case in MEASURED}
    return {case.key: [simulated(case, run, folder / case.key / str(run["variant"])) for run in of] for case, of in runs.items()}


def kernel(case: Marked, name: str) -> float:
    return float(statistics.median(run[name] for run in DATA["cases"][case.key]["runs"]))


@pytest.mark.parametrize("case", MEASURED, ids=lambda case: case.key)
def test_the_peak_is_the_kernels(case: Marked, mirrors: dict[str, list[dict[str, float]]]) -> None:
    """Within three frames of the kernel's runs, which differ by up to 11 KB themselves."""
    peaks = [run["peak"] for run in DATA["cases"][case.key]["runs"]]
    for mirror in mirrors[case.key]:
        assert min(peaks) - 3 * 1514 <= mirror["peak"] <= max(peaks) + 3 * 1514
        assert abs(mirror["goodput"] - kernel(case, "goodput")) < 0.006
        assert abs(mirror["mean"] - kernel(case, "mean")) < 3_000
        assert abs(mirror["marked"] - kernel(case, "marked")) < 0.06
        assert (mirror["drops"], kernel(case, "drops"), kernel(case, "timeouts")) == (0, 0, 0)


@pytest.mark.parametrize("slow", [case for case in MEASURED if case.policy == "threshold"], ids=lambda case: case.key)
def test_s_ecn_nearly_halves_the_peak_at_no_cost(slow: Marked, mirrors: dict[str, list[dict[str, float]]]) -> None:
    """With first windows of 3 segments; of 10, what is on its way before the first mark is back is most of the peak."""
    fast = replace(slow, policy="s-ecn")
    least, most = (0.38, 0.50) if slow.window == 3 else (0.12, 0.23)
    assert least < 1 - kernel(fast, "peak") / kernel(slow, "peak") < most
    of = [statistics.median(run["peak"] for run in mirrors[case.key]) for case in (slow, fast)]
    assert least < 1 - of[1] / of[0] < most
    # 1,448 of 1,514 bytes are payload: 95.6 %.
    assert 0.948 < kernel(fast, "goodput") < 0.957
    assert abs(kernel(fast, "goodput") - kernel(slow, "goodput")) < 0.004


def test_what_was_refused_is_said(tmp_path: Path) -> None:
    text, pairs = table({**DATA, "cases": {key: entry for key, entry in DATA["cases"].items() if not entry["runs"]}}, tmp_path)
    assert pairs == {}
    assert text.count("0 of 15: all refused") == 2
    case = CASES[0]
    quiet = {"late_p99_us": 60.0, "late_max_us": 900.0, "steal": 0.0, "rate": 1.0}
    assert refused(quiet, case) is None
    for key, value, words in (
        ("late_p99_us", 251.0, "250 are a quarter of the round trip"),
        ("late_max_us", 5_001.0, "5001.0 us (most)"),
        ("steal", 0.03, "3.0 % of the time is stolen"),
        ("rate", 0.98, "the shaper gives 98.0 % of its rate"),
        ("rate", 1.05, "the port sends at 105.0 % of its rate while packets wait"),
    ):
        assert words in str(refused({**quiet, key: value}, case))
    assert "50 are a quarter" in str(refused(quiet, replace(case, rate=500_000_000, rtt=0.0002)))
