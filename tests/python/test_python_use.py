"""Everything in the docs is importable as it is written, and objects show themselves."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import fanin
from fanin.comparison import variants
from fanin.sweep import by_axis as swept
from sweeping import BASE, run

DOCS = sorted((Path(__file__).parents[2] / "docs").glob("*.md"))


def test_modules_in_the_docs_need_no_import_of_their_own() -> None:
    named = {
        name
        for page in DOCS
        for name in re.findall(r"`fanin\.(pauses|regions|statistics|metrics|types|reproduce)\.", page.read_text())
    }
    assert {"pauses", "regions", "reproduce", "statistics"} <= named
    code = "import fanin; " + "; ".join(f"fanin.{name}" for name in sorted(named)) + "; fanin.pauses.by_port"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_package_lists_what_is_for_use_and_nothing_else() -> None:
    listed = [name for name in dir(fanin) if not name.startswith("__")]
    assert {"Scenario", "pauses", "run", "statistics", "sweep"} <= set(listed)
    assert not {"Any", "Final", "TYPE_CHECKING", "import_module", "_MODULES"} & set(listed)
    assert all(getattr(fanin, name) is not None for name in listed)


def test_a_scenario_is_read_by_path_and_iterated() -> None:
    scenario = fanin.Scenario(BASE)
    assert scenario["switch.marking.k"] == "20 packets" and scenario["traffic[0].size"] == "20KB"
    assert list(scenario) == list(BASE) and dict(scenario) == scenario.to_dict()
    assert "switch.marking.k" in scenario and "switch.marking.q" not in scenario and 7 not in scenario
    for missing in ("switch.marking.q", "traffic[3]", "name.x"):
        with pytest.raises(KeyError, match=re.escape(missing)):
            scenario[missing]


def test_a_sweep_says_how_many_runs_it_has_and_is_empty_before_the_first(tmp_path: Path) -> None:
    sweep = run(tmp_path / "out", {"seeds": 2, "grid": {"engine.max_events": [50, 1_000_000]}})
    assert repr(sweep) == f"<fanin.Sweep '{tmp_path / 'out'}': 4 of 4 runs, 2 failed>"
    with pytest.raises(ValueError, match="no run of"):
        sweep.values("fct/all.p99")
    for folder in ("runs", "metrics"):
        for segment in (tmp_path / "out" / folder).glob("*.parquet"):
            segment.unlink()
    empty = sweep.reload().values("fct/all.p99_ps")
    assert empty.height == 0 and empty["value"].dtype == pl.Float64


def test_labels_have_every_setting_that_differs_and_the_first_point_is_the_base(tmp_path: Path) -> None:
    points = [
        {"label": "usual"},
        {"label": "big", "switch.buffer": {"kind": "static", "per_port": "1MB"}, "transport.mtu": 9000},
        {"label": "a", "switch.marking.k": "5 packets"},
    ]
    sweep = run(tmp_path / "out", {"seeds": 2, "list": points})
    found = sweep.compare("label")
    assert [variant.name for variant in found.variants] == ["usual", "big", "a"]
    differing = dict(found.differing)
    assert {"switch.buffer.per_port", "transport.mtu", "switch.marking.k"} <= differing.keys()
    assert [str(value) for value in differing["switch.marking.k"]] == ["20 packets", "20 packets", "5 packets"]
    page = found.report(tmp_path / "page.html").read_text()
    assert "switch.buffer.per_port" in page and "transport.mtu" in page
    first = run(tmp_path / "k", {"seeds": 2, "grid": {"switch.marking.k": ["20 packets", "5 packets"]}})
    assert first.compare("switch.marking.k").base.name == "k=20 packets"
    assert swept.is_one(tmp_path / "out")
    with pytest.raises(fanin.CompareError, match=r"is a sweep, and holds no result folder: fanin sweep --keep"):
        variants.gather([str(tmp_path / "out")])


def test_figures_for_papers_show_themselves_in_notebooks() -> None:
    from plotly import graph_objects

    from fanin.figures import paper

    figure = paper.to_matplotlib(graph_objects.Figure(graph_objects.Scatter(x=[1, 2], y=[3, 4], name="a", mode="lines")))
    assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]
