"""Pauses: by port, the trees in which they spread, victims; beside closed forms and an independent computation."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import fanin
from fanin import report
from fanin.cli import app
from fanin.explain import pauses

FRAME, PFC, LINK, LATENCY = 1538 * 800, 84 * 800, 1_000_000, 300_000
CAME = FRAME + LINK + LATENCY
ASKED, OVER = CAME + 100_000, CAME + FRAME
BEGIN, END = ASKED + PFC + LINK, OVER + PFC + LINK


def packet(src: str, dst: str, start_ps: int) -> dict[str, Any]:
    """One datagram that fills a frame."""
    entry = {"kind": "cbr", "src": src, "dst": dst, "rate": "10Gbps", "counts": "wire", "packet": "1472B", "size": "1472B"}
    return {**entry, "name": f"{src}-{dst}-{start_ps}", "start": f"{start_ps}ps"}


def star(traffic: list[dict[str, Any]], **telemetry: Any) -> dict[str, Any]:
    pfc = {"memory": "500KB", "classes": [0], "xoff": {"kind": "static", "bytes": "1B"}, "xon_gap": "1B"}
    return {
        "name": "lossless",
        "topology": {"kind": "single_switch", "hosts": 4, "link": {"rate": "10Gbps", "delay": "1us"}},
        "switch": {"latency": "300ns", "buffer": "unlimited", "mechanisms": {"pfc": pfc}},
        "telemetry": {"sample": "1us", **telemetry},
        "traffic": traffic,
    }


def lossless(seed: int) -> dict[str, Any]:
    """Random flows of two classes on a small leaf-spine."""
    draw = random.Random(seed)
    pfc = {"memory": "1MB", "classes": [0, 1], "xoff": {"kind": "static", "bytes": "6KB"}}
    link = {"rate": "10Gbps", "delay": "500ns"}
    flows = []
    for i in range(30):
        src, dst = draw.sample(range(6), 2)
        flow = {"src": f"h{src}", "dst": f"h{dst}", "size": f"{draw.randint(20, 150)}KB"}
        flows.append({"kind": "flows", "name": f"f{i}", "class": draw.randint(0, 1), "flows": [flow]})
    return {
        "topology": {"kind": "leaf_spine", "leaves": 2, "hosts_per_leaf": 3, "spines": 2, "host_link": link, "uplink": link},
        "switch": {
            "buffer": "unlimited",
            "scheduling": {"kind": "strict", "classes": 2},
            "mechanisms": {"pfc": pfc},
        },
        "transport": {"kind": "tcp", "initial_window": 60},
        "telemetry": {"sample": "off", "hosts": ["*"]},
        "traffic": flows,
    }


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> fanin.Result:
    """Two packets meet at h2's port; h1 is paused for it, and a packet of h1 to h3 waits."""
    traffic = [packet("h0", "h2", 0), packet("h1", "h2", 100_000), packet("h1", "h3", BEGIN + 50_000)]
    scenario = fanin.Scenario(star(traffic, hosts=["*"]))
    return fanin.run(scenario, tmp_path_factory.mktemp("victim") / "out")


def test_a_victim_behind_a_paused_port(victim: fanin.Result) -> None:
    assert pauses.by_port(victim).drop("share").to_dicts() == [
        {
            "port": "h1->switch0",
            "class": 0,
            "pauses": 1,
            "paused_ps": END - BEGIN,
            "longest_ps": END - BEGIN,
            "longest_at_ps": BEGIN,
            "frames": 1,
        }
    ]
    event = victim.pause_events().row(0, named=True)
    assert (event["root"], event["start_ps"], event["end_ps"], event["ports"]) == ("switch0->h2", ASKED, END, 1)
    tree = victim.pause_tree()
    edge = tree.edges.row(0, named=True)
    assert (edge["port"], edge["behind"], edge["depth"], edge["delay_ps"]) == ("h1->switch0", "switch0->h2", 0, None)
    assert (edge["first_asked_ps"], edge["first_ps"], edge["paused_ps"]) == (ASKED, BEGIN, END - BEGIN)
    assert tree.flows.to_dicts() == [
        {
            "flow": 2,
            "src": "h1",
            "dst": "h3",
            "port": "h1->switch0",
            "packets": 1,
            "paused_ps": END - BEGIN - 50_000,
            "victim": True,
        }
    ]
    assert tree.victims.height == 1
    found = victim.explain(2)
    assert dict(found.parts.filter(pl.col("kind") == "pause").select("place", "time_ps").rows()) == {
        "h1->switch0": END - BEGIN - 50_000
    }
    words = "paused at h1->switch0 by the next switch, as switch0->h2 was congested, which the flow never crosses."
    assert words in found.text, found.text
    assert found.document["roots"] == {"h1->switch0": {"root": "switch0->h2", "crossed": False}}
    assert found.parts["time_ps"].sum() == found.total_ps


def test_flows_of_which_nothing_is_known_are_counted(victim: fanin.Result, tmp_path: Path) -> None:
    scenario = victim.manifest["scenario"]
    some = fanin.run(fanin.Scenario({**scenario, "telemetry": {"hosts": ["h3"]}}), tmp_path / "some", progress=False)
    told = some.pause_tree().document
    assert (told["of_class"], told["followed"], told["hosts"]) == (3, 1, ["h1"])
    assert 'Of 2 more flows of the class nothing is known: telemetry.hosts = ["*"] follows all.' in some.pause_tree().text
    none = fanin.run(fanin.Scenario({**scenario, "telemetry": {}}), tmp_path / "none", progress=False)
    words = "Which of 3 flows of the class waited is not known: no flow was followed. Run it again with telemetry.hosts = "
    assert words + '["*"], or of some of those whose NICs stood paused: "h1".' in none.pause_tree().text
    assert "nothing is known" not in victim.pause_tree().text


def test_what_is_said_of_it(victim: fanin.Result) -> None:
    said = CliRunner().invoke(app, ["pauses", str(victim.path)], env={"COLUMNS": "160"})
    assert said.exit_code == 0, said.output
    for words in (
        "switch0->h2 was congested and not held up",
        "class 0 was paused at 1 port, once, ",
        "1 of 1 followed flows that stood paused never crosses switch0->h2: 2 (h1 to h3, 1.08 µs).",
        "└─ h1->switch0: after 1.067 µs, 1 pause, 1.13 µs",
    ):
        assert words in said.output, said.output
    told = json.loads(CliRunner().invoke(app, ["pauses", str(victim.path), "--json"]).output)
    assert told["tree"]["edges"][0]["first_ps"] == BEGIN and len(told["ports"]) == len(told["events"]) == 1
    wrong = CliRunner().invoke(app, ["pauses", str(victim.path), "--event", "1"])
    assert wrong.exit_code == 2 and "event 1: there is none of that number; accepted: 0" in wrong.output
    page = report.render(victim)
    assert "<h2>Pauses</h2>" in page and "<h2>PFC</h2>" in page and "└─ h1-&gt;switch0" in page
    assert "its neighbours paused" in page, "bands in the queue of the root"


def test_a_run_without_pauses_has_none(tmp_path: Path) -> None:
    scenario = fanin.Scenario(star([packet("h0", "h2", 0)]))
    result = fanin.run(scenario, tmp_path / "out")
    assert result.pause_events().height == 0 and "<h2>Pauses</h2>" not in report.render(result)
    with pytest.raises(ValueError, match="nothing was paused in this run"):
        result.pause_tree()
    assert "Nothing was paused." in CliRunner().invoke(app, ["pauses", str(result.path)]).output


def _cause(rows: list[dict[str, Any]], row: dict[str, Any]) -> dict[str, Any] | None:
    """The last pause of the port behind which the packets of a pause waited, where it had held that up."""
    at = row["asked_ps"]
    before = [r for r in rows if (r["port"], r["class"]) == (row["behind"], row["class"]) and r["start_ps"] < at]
    last = max(before, key=lambda r: r["start_ps"], default=None)
    assert row["held_up"] or last is None or last["end_ps"] <= at, "what is paused is held up"
    return last if row["held_up"] else None


def _first(rows: list[dict[str, Any]], row: dict[str, Any]) -> tuple[dict[str, Any], int]:
    depth = 0
    while (cause := _cause(rows, row)) is not None:
        row, depth = cause, depth + 1
    return row, depth


def _union(spans: list[tuple[int, int]]) -> int:
    total, until = 0, 0
    for begin, end in sorted(spans):
        total += max(0, end - max(begin, until))
        until = max(until, end)
    return total


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_trees_are_those_of_an_independent_computation(tmp_path: Path, seed: int) -> None:
    result = fanin.run(fanin.Scenario(lossless(seed)), tmp_path / "out")
    gap = 5_000_000
    rows = [dict(row) for row in result.pauses.iter_rows(named=True)]
    assert len(rows) > 50 and all(row["end_ps"] is not None for row in rows)
    trees: dict[tuple[str, int, int], list[dict[str, Any]]] = {}
    for row in rows:
        first, row["depth"] = _first(rows, row)
        trees.setdefault((first["port"], first["class"], first["start_ps"]), []).append(row)
    wanted: dict[tuple[str, int], list[list[dict[str, Any]]]] = {}
    for tree in sorted(trees.values(), key=lambda tree: min(row["asked_ps"] for row in tree)):
        (first,) = (row for row in tree if row["depth"] == 0)
        groups = wanted.setdefault((first["behind"], first["class"]), [])
        if not groups or first["asked_ps"] > max(r["end_ps"] for r in groups[-1]) + gap:
            groups.append([])
        groups[-1] += tree
    assert max(row["depth"] for row in rows) >= 1, "pauses spread"
    events = result.pause_events(gap)
    expected = [
        {
            "root": root,
            "class": number,
            "start_ps": min(r["asked_ps"] for r in group),
            "end_ps": max(r["end_ps"] for r in group),
            "ports": len({r["port"] for r in group}),
            "depth": max(r["depth"] for r in group),
            "pauses": len(group),
            "paused_ps": sum(r["end_ps"] - r["start_ps"] for r in group),
            "circle": None,
        }
        for (root, number), groups in wanted.items()
        for group in groups
    ]
    assert events.drop("event").to_dicts() == sorted(expected, key=lambda e: (e["start_ps"], e["root"], e["class"]))
    hops = result.hops.sort("packet", "arrived_ps").to_dicts()
    ready = dict(result.segments.select("packet", "cause_ps").iter_rows())
    first = {hop["packet"]: hop["arrived_ps"] for hop in reversed(hops)}
    classes = dict(result.flows.select("flow", "class").iter_rows())
    for event in events.iter_rows(named=True):
        root, number = event["root"], event["class"]
        group = next(g for g in wanted[root, number] if min(r["asked_ps"] for r in g) == event["start_ps"])
        spans: dict[int, list[tuple[int, int]]] = {}
        for hop in hops:
            since = min(ready[hop["packet"]], hop["arrived_ps"]) if hop["arrived_ps"] == first[hop["packet"]] else hop["arrived_ps"]
            for pause in group:
                common = max(since, pause["start_ps"]), min(hop["sent_ps"], pause["end_ps"])
                if classes[hop["flow"]] == number and pause["port"] == hop["port"] and common[0] < common[1]:
                    spans.setdefault(hop["flow"], []).append(common)
        shown = result.pause_tree(event["event"], gap)
        crosses = {hop["flow"] for hop in hops if hop["port"] == root}
        assert {row["flow"]: (row["paused_ps"], row["victim"]) for row in shown.flows.to_dicts()} == {
            flow: (_union(found), flow not in crosses) for flow, found in spans.items()
        }
        edges = {(edge["port"], edge["behind"]): edge["pauses"] for edge in shown.edges.to_dicts()}
        assert edges == {
            key: sum((r["port"], r["behind"]) == key for r in group) for key in {(r["port"], r["behind"]) for r in group}
        }
        assert len(shown.lines()) == 1 + len(edges), "every edge stands in the tree once"


def test_a_deadlock_has_a_circle_and_no_root(tmp_path: Path) -> None:
    """Five switches in a ring, each host sends over two of its links: every link waits for the next, whoever is asked first."""
    link = {"rate": "100Gbps", "delay": "500ns"}
    nodes = [{"id": f"{kind}{i}", "kind": word} for i in range(5) for kind, word in (("h", "host"), ("s", "switch"))]
    links = [{"a": a, "b": b, **link} for i in range(5) for a, b in ((f"s{i}", f"s{(i + 1) % 5}"), (f"h{i}", f"s{i}"))]
    (tmp_path / "ring.json").write_text(json.dumps({"nodes": nodes, "links": links}))
    pfc = {"classes": [0], "memory": "1MB", "xoff": {"kind": "static", "bytes": "30KB"}}
    scenario = {
        "topology": {"kind": "file", "format": "edge_list", "path": str(tmp_path / "ring.json")},
        "duration": "1ms",
        "switch": {"buffer": "unlimited", "mechanisms": {"pfc": pfc}},
        "transport": {"kind": "roce", "congestion_control": "none"},
        "telemetry": {"hosts": ["*"]},
        "traffic": [{"kind": "flows", "flows": [{"src": f"h{i}", "dst": f"h{(i + 2) % 5}", "size": "5MB"} for i in range(5)]}],
    }
    with pytest.raises(RuntimeError, match="deadlock"):
        fanin.run(fanin.Scenario(scenario), tmp_path / "out", progress=False)
    result = fanin.Result(tmp_path / "out")
    ports = [f"s{i}->s{(i + 1) % 5}" for i in range(5)]
    (circle,) = pauses.circles(result)
    began = result.pauses.filter(pl.col("port").is_in(ports) & pl.col("end_ps").is_null())["start_ps"].max()
    assert circle == {"class": 0, "ports": ports, "since_ps": began}
    events = result.pause_events()
    deadlock = events.filter(pl.col("circle").is_not_null()).row(0, named=True)
    assert events["circle"].to_list().count(5) == 1 and deadlock["root"] == "s0->s1" and deadlock["ports"] == 10
    over = events.filter(pl.col("circle").is_null())
    assert (over["end_ps"] < began).all(), "what was over before the circle closed has its root"
    tree = result.pause_tree()
    assert tree.document["circle"] == ports and tree.lines()[0] == "s0->s1 (in a circle of 5 ports)"
    assert tree.text.startswith("Deadlock: ") and "s3->s4, s4->s0 waited for each other in a circle" in tree.text
    assert "not held up" not in tree.text and tree.flows.height and not tree.victims.height
    output = CliRunner().invoke(app, ["pauses", str(result.path)], env={"COLUMNS": "200"}).output
    assert "s0->s1 (circle of 5)" in output, output
