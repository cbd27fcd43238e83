"""Regions: states of ports over time, states of switches from them, the drawing, and what the report page shows of it."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fanin
from fake_result import write_result, write_table
from fanin import pages, report
from fanin.figures import regions

US = 1_000_000
ROWS = [
    (10, "leaf0->h3", "output", "root", 40),
    (12, "leaf0->spine1", "input", "edge", 5),
    (12, "leaf0->spine1", "input", "root", 9),  # of the same time the last row holds
    (20, "spine1->leaf0", "output", "edge", 7),
    (30, "leaf0->h3", "output", "none", 0),
    (40, "spine1->leaf0", "output", "inner", 20),
    (60, "spine1->leaf0", "output", "none", 0),
]


def row(us: int, port: str, about: str, state: str, degree: int, mechanism: str = "m") -> dict[str, Any]:
    return {"time_ps": us * US, "port": port, "mechanism": mechanism, "about": about, "state": state, "degree": degree}


@pytest.fixture
def result(tmp_path: Path) -> fanin.Result:
    out = write_result(tmp_path / "out", bursts=1)
    manifest = json.loads((out / "manifest.json").read_text())
    (out / "manifest.json").write_text(json.dumps(manifest | {"sim_ps": 100 * US}))
    (out / "ports.parquet").unlink()
    write_table(out, "states", [row(*given) for given in ROWS] + [row(5, "leaf9->h9", "output", "other", 1, "another")])
    return fanin.load(out)


def test_a_port_is_in_a_state_until_its_next_row_or_the_end(result: fanin.Result) -> None:
    assert regions.mechanisms(result) == ["another", "m"]
    found = regions.spans(result, "m").sort("start_ps", "port")
    listed = [
        (port, state, start // US, end // US)
        for port, state, start, end in found.select("port", "state", "start_ps", "end_ps").rows()
    ]
    assert listed == [
        ("leaf0->h3", "root", 10, 30),
        ("leaf0->spine1", "root", 12, 100),
        ("spine1->leaf0", "edge", 20, 40),
        ("spine1->leaf0", "inner", 40, 60),
    ]


def test_a_switch_is_in_the_foremost_state_of_its_ports() -> None:
    spans = [("s", "s->a", "edge"), ("s", "s->b", "root"), ("s", "s->c", "inner"), ("t", "t->a", "zeal"), ("t", "t->b", "apathy")]
    found = pl.DataFrame(
        [
            {"switch": s, "port": p, "about": "output", "state": state, "degree": 1, "start_ps": 0, "end_ps": 10}
            for s, p, state in spans
        ]
    )
    [(time, states, ports)] = regions.snapshots(found, 1)
    assert (time, states, ports) == (5, {"s": "root", "t": "apathy"}, ["s->a", "s->b", "s->c", "t->a", "t->b"])
    assert regions.snapshots(found.clear()) == []


def test_tiers_are_by_the_distance_from_hosts() -> None:
    places = regions.Layout(
        ["h0->e0", "h1->e10", "e0->h0", "e0->a0", "a0->e0", "e10->a0", "e2->a0", "h2->e2", "a0->c0#1", "a1->c0"], ["h0"], ["a1"]
    )
    height = {name: at[1] for name, at in places.at.items()}
    assert height["e0"] == height["e2"] == height["e10"] < height["a0"] < height["c0"]
    assert places.at["e0"][0] < places.at["e2"][0] < places.at["e10"][0], "numbers count as such"
    assert places.links == [("a0", "c0"), ("a0", "e0"), ("a0", "e10"), ("a0", "e2"), ("a1", "c0")]
    assert places.joined(["e0->a0", "e0->h0", "a0->e10#1", "x->y"]) == [("a0", "e0"), ("a0", "e10")]
    assert regions.Layout(["h0->e0"], ["h0"], ["e0"]).at == {"e0": (0.5, 0.5)}


def test_the_drawing_goes_through_time(result: fanin.Result) -> None:
    plot = regions.on_topology(result, "m")
    names = [trace.name for trace in plot.data]
    assert names[3:] == ["root", "inner", "edge"]
    steps = plot.layout.sliders[0].steps
    assert len(steps) == 24
    for step in steps:
        change, traces = step.args
        assert list(traces) == [2, 3, 4, 5]
        assert all(len(values) == 4 for values in change.values())
    # At the beginning there is a root alone, at the end the input side of its switch.
    first, last = (dict(zip(names[3:], step.args[0]["text"][1:], strict=True)) for step in (steps[0], steps[-1]))
    assert first == {"root": ["leaf0"], "inner": [], "edge": []}
    assert last == {"root": ["leaf0"], "inner": [], "edge": []}
    middle = dict(zip(names[3:], steps[10].args[0]["text"][1:], strict=True))
    assert middle == {"root": ["leaf0"], "inner": ["spine1"], "edge": []}
    # A trace without any point would have no place in the legend.
    assert all(trace.x is not None and len(trace.x) > 0 for trace in plot.data[3:])
    assert all(len(x) > 0 for step in steps for x in step.args[0]["x"][1:])
    assert "only switches next to the region are known" in plot.layout.meta["note"]


def test_the_table_counts_overlapping_ports_once(result: fanin.Result) -> None:
    listed = [dict(zip(regions.HEAD, line, strict=True)) for line in regions.rows(result, "m", 10)]
    assert [(line["Switch"], line["State"], line["Of the run"], line["Ports"]) for line in listed] == [
        ("leaf0", "root", "90.0 %", "2"),
        ("spine1", "inner", "20.0 %", "1"),
        ("spine1", "edge", "20.0 %", "1"),
    ]
    assert len(regions.rows(result, "m", 1)) == 1


def test_lines_have_a_stretch_for_each_state(result: fanin.Result) -> None:
    plot = regions.lines(result, "m")
    assert [trace.name for trace in plot.data] == ["root", "inner", "edge"]
    ports = [html.unescape(text) for text in plot.layout.yaxis.ticktext]  # Plotly reads a little HTML there
    assert ports == ["leaf0->h3 (output)", "leaf0->spine1 (input)", "spine1->leaf0 (output)"]
    assert list(plot.data[0].x) == [10, 30, None, 12, 100, None]


def test_the_page_has_a_section_for_each_mechanism(result: fanin.Result) -> None:
    text = report.render(result)
    assert 'id="region-of-m"' in text
    assert 'id="region-of-another"' in text
    data = json.loads(text.split('id="figures">')[1].split("</script>")[0])
    assert {"region-0", "states-0", "region-1", "states-1"} <= data.keys()


def test_without_states_there_is_no_section(tmp_path: Path) -> None:
    text = report.render(fanin.load(write_result(tmp_path / "out", bursts=1)))
    assert "Region of" not in text


def test_names_are_no_markup(tmp_path: Path) -> None:
    out = write_result(tmp_path / "out", bursts=1)
    (out / "ports.parquet").unlink()
    write_table(out, "states", [row(10, "<b>a</b>->h3", "output", "<i>hot</i>", 40, "<u>m</u>")])
    found = fanin.load(out)
    drawn = [regions.on_topology(found, "<u>m</u>"), regions.lines(found, "<u>m</u>")]
    for plot in drawn:
        assert "&lt;i&gt;hot&lt;/i&gt;" in [trace.name for trace in plot.data]
        assert not [word for word in ("<b>a", "<i>hot", "<u>m") if word in str(plot.to_dict())]
    chart = pages.Charts().add("region", drawn[0])
    assert chart.title == "Where <u>m</u> is at work"  # the page escapes it itself
