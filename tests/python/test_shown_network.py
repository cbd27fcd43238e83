"""``fanin show``: what is said of a scenario, held against hand-made sums, and the drawing in a browser."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import fanin
from browsing import needs_browser
from fanin.cli import app
from fanin.scenario.network import overview, ranges
from fanin.scenario.rest import rest

ROOT = Path(__file__).parents[2]


def call(*args: Any) -> Any:
    return CliRunner().invoke(app, [str(arg) for arg in args])


def incast(**changes: Any) -> fanin.Scenario:
    return fanin.Scenario.from_file(ROOT / "scenarios" / "incast.toml").replace(changes)


def test_an_incast_is_described_by_its_numbers() -> None:
    made = overview(incast())
    text = made.text
    assert "41 hosts, each on a link of 10 Gb/s, and 1 switch." in text
    assert "a buffer of its own at each port (per_port 1MB)" in text
    assert "marking by threshold (k 65 packets)" in text
    assert "Flows run over TCP with dctcp, initial window 10, RTO_min 10ms." in text
    assert "Incast: 40 flows, 10.24 MB in all, at the start." in text
    # There and back: two links of 10 us each way, 1538 B twice and an acknowledgment of 84 B of wire time twice, at 10 Gb/s.
    rtt = 4 * 10e6 + 2 * 1538 * 800 + 2 * 84 * 800
    assert made.facts["base_rtt_ps"] == [rtt, rtt]
    assert "42.6 µs (base RTT)" in text
    assert "53.24 KB fill the longest path at 10 Gb/s, the slowest link (BDP, 35 full frames)" in text


def test_the_product_of_rate_and_time_is_in_frames_of_the_mtu() -> None:
    made = overview(incast(**{"transport.mtu": 4096}))
    rtt = 4 * 10e6 + 2 * (4096 + 38) * 800 + 2 * 84 * 800
    assert made.facts["base_rtt_ps"] == [rtt, rtt]
    assert made.facts["full_frame_bytes"] == 4096 + 38
    assert f"(BDP, {-(-rtt * 10 // 8000 // 4134):.0f} full frames)" in made.text


def test_pfc_is_told_with_its_sizes() -> None:
    made = overview(fanin.Scenario.from_file(ROOT / "scenarios" / "roce.toml"))
    sizes = {size["name"]: size["bytes"] for size in made.facts["sizes"]}
    assert {size["mechanism"] for size in made.facts["sizes"]} == {"pfc"}
    # One lossless class: 16 MB, without the 4 MB of the others and the headroom of eight ports of 100 Gb/s and two
    # of 400, or of two of 400.
    (hosts, switches), (leaf, spine) = sizes["headroom"], sizes["pool"]
    assert leaf == 16_000_000 - 4_000_000 - 8 * hosts - 2 * switches
    assert spine == 16_000_000 - 4_000_000 - 2 * switches
    # alpha of 1/8 of what is left when it holds that: a ninth of the pool.
    assert sizes["xoff"] == [leaf // 9, spine // 9]
    assert f"PFC keeps {hosts / 1000:.4g} KB to {switches / 1000:.4g} KB of headroom" in made.text
    assert "sizes" in made.to_dict() and not overview(incast()).facts["sizes"]


def test_failures_are_told_with_their_times() -> None:
    text = overview(fanin.Scenario.from_file(ROOT / "scenarios" / "link-failure.toml")).text
    assert "Links: leaf0->spine0 down from 1ms to 4ms; leaf2->spine1 with a bit error rate of 4e-08 from 0ps on." in text
    assert "Ends of a link notice after 100us, tables follow 1ms later." in text
    flap = {"kind": "down", "links": ["h3->*"], "start": "1ms", "end": "2ms", "every": "5ms", "times": 3, "detect": "1us"}
    text = overview(incast(duration="20ms", events=[flap])).text
    assert "Links: h3->* down from 1ms to 2ms, again every 5ms, 3 times." in text
    assert "Ends of a link notice, and tables follow 200ms later." in text
    assert "Links:" not in overview(incast()).text and "tables follow" not in overview(incast()).text


def test_loads_are_those_of_the_flows() -> None:
    made = overview(incast(duration="20ms"))
    links = {link["name"]: link for link in made.facts["links"]}
    packets = -(-256_000 // 1448)
    wire = 256_000 + packets * (1538 - 1448)
    assert links["h0->switch0"]["load"] == pytest.approx(8 * wire / (10e9 * 0.02), rel=1e-3)
    assert links["switch0->h40"]["load"] == pytest.approx(40 * 8 * wire / (10e9 * 0.02), rel=1e-3)
    assert links["h40->switch0"]["load"] == 0
    assert made.facts["packet_hops"] == pytest.approx(40 * packets * 2 * 1.5)


def test_packet_hops_are_about_those_of_the_run(tmp_path: Path) -> None:
    scenario = incast(telemetry={"sample": "off"})
    ran = fanin.run(scenario, tmp_path / "out", progress=False)
    assert overview(scenario).facts["packet_hops"] == pytest.approx(ran.manifest["packet_hops"], rel=0.15)


def test_load_is_spread_over_equal_paths() -> None:
    scenario = fanin.Scenario.from_file(ROOT / "scenarios" / "fat_tree_permutation.toml")
    made = overview(scenario)
    hosts = len(made.hosts)
    into = {round(link["load"], 9) for link in made.facts["links"] if link["to"] < hosts}
    assert len(into) == 1, "each host gets one flow"
    inside = [link["load"] for link in made.facts["links"] if link["from"] >= hosts and link["to"] >= hosts]
    assert max(inside) <= into.pop() + 1e-9, "four hosts below four uplinks"


def test_oversubscription_and_tiers() -> None:
    leaf_spine = {
        "kind": "leaf_spine",
        "leaves": 2,
        "hosts_per_leaf": 8,
        "spines": 2,
        "host_link": {"rate": "10Gbps", "delay": "1us"},
        "uplink": {"rate": "10Gbps", "delay": "1us"},
    }
    made = overview(fanin.Scenario(topology=leaf_spine, traffic=[{"kind": "permutation", "size": "1MB"}]))
    assert made.oversubscription == 4
    assert "4 switches in 2 tiers (2 + 2 from the hosts up)" in made.text
    assert "can send 4 times what its uplinks carry (oversubscription 4:1)" in made.text
    assert made.lines() == [
        "spine0 and spine1  (2 switches)",
        "  │  4 links of 10 Gb/s, 1 µs",
        "leaf0 and leaf1  (2 switches)",
        "  │  16 links of 10 Gb/s, 1 µs",
        "h0 … h15  (16 hosts)",
    ]


def test_several_transports_and_mechanisms_are_named() -> None:
    text = overview(fanin.Scenario.from_file(ROOT / "scenarios" / "roce.toml")).text
    assert "Flows of transport rdma run over RoCEv2 with dcqcn." in text
    assert ", pfc (classes 1, memory 16MB, lossy memory 4MB)" in text, "what the file sets, and no defaults"
    assert "ports without bounds, marking by red (" in text


def test_names_are_drawn_together() -> None:
    assert ranges(["h0", "h1", "h2", "root"]) == "h0 … h2, root"
    assert ranges(["a1", "a2", "b"]) == "a1 and a2, b"
    assert ranges([f"{letter}{n}" for letter in "abcdef" for n in (0, 1)]) == "a0 … f1"


def test_every_scenario_of_the_repository_is_shown() -> None:
    for path in sorted((ROOT / "scenarios").rglob("*.toml")):
        found = call("show", path)
        assert found.exit_code == 0, f"{path}: {found.output}"
        assert re.search(r"packet-hops", found.stdout.replace("\n", " ")), path


def test_the_drawing_has_every_node_and_link(tmp_path: Path) -> None:
    file = tmp_path / "x.svg"
    assert call("show", ROOT / "scenarios" / "demo.toml", "-o", file).exit_code == 0
    root = ET.fromstring(file.read_text(encoding="utf-8"))
    space = "{http://www.w3.org/2000/svg}"
    assert len(list(root.iter(f"{space}circle"))) == 32
    assert len(list(root.iter(f"{space}rect"))) == 6
    assert len(list(root.iter(f"{space}path"))) == 32 + 8
    titles = {title.text for title in root.iter(f"{space}title")}
    assert any(text and "spine0" in text and text.startswith(("leaf0->spine0", "spine0->leaf0")) for text in titles)


@needs_browser
def test_the_page_in_a_browser(tmp_path: Path, browser: Any) -> None:
    file = tmp_path / "x.html"
    assert call("show", ROOT / "scenarios" / "demo.toml", "-o", file).exit_code == 0
    browser.get(file.as_uri())
    size = browser.execute_script("const b = document.querySelector('svg').getBoundingClientRect(); return [b.width, b.height]")
    assert size[0] > 300 and size[1] > 150
    assert len(browser.find_elements("css selector", "svg circle")) == 32
    assert browser.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
    assert "oversubscription" in browser.find_element("css selector", "body").text


def test_json_and_errors(tmp_path: Path) -> None:
    found = json.loads(call("show", ROOT / "scenarios" / "demo.toml", "--json").stdout)
    assert found["oversubscription"] == 1 and len(found["links"]) == 80
    assert [round(entry["flows"]) for entry in found["traffic"]] == [7977, 77580]
    wrong = call("show", ROOT / "scenarios" / "demo.toml", "-o", tmp_path / "x.pdf")
    assert wrong.exit_code == 2 and "names that end in" in wrong.stderr
    bad = tmp_path / "bad.toml"
    bad.write_text("[topology]\nkind = 'ring'\n")
    assert call("show", bad).exit_code == 2


DCQCN = fanin.Scenario(
    {
        "topology": {"kind": "single_switch", "hosts": 17, "link": {"rate": "40Gbps", "delay": "1us"}},
        "switch": {
            "buffer": "unlimited",
            "marking": {"kind": "red", "min": "5KB", "max": "2MB", "max_p": 0.1023, "weight": 1.0, "gentle": False},
        },
        "transport": {"kind": "roce", "congestion_control": "dcqcn"},
        "traffic": [{"kind": "incast", "receiver": "h16", "size": "10MB"}],
    }
)
"""Marks with the slope of DCQCN's paper, and no step."""


@pytest.mark.parametrize(("flows", "queue"), [(2, 21_700), (4, 45_600), (10, 135_000)])
def test_dcqcn_rests_where_its_integrated_model_does(flows: int, queue: float) -> None:
    """The numbers are those of the model of crates/sim/tests/fidelity/dcqcn.rs, integrated over 100 ms (docs/lossless.md)."""
    made = DCQCN.resolved
    found = rest(made["transport"]["congestion_control"], made["switch"]["marking"], flows, 40e9, 1106)
    assert found is not None and found.queue_bytes == pytest.approx(queue, rel=0.005)


def test_dcqcn_has_no_rest_above_the_curve_and_in_units_that_are_no_bytes() -> None:
    control = DCQCN.resolved["transport"]["congestion_control"]
    red = {"min": "5KB", "max": "200KB", "max_p": 0.01}
    low, high = (rest(control, red, flows, 40e9, 1106) for flows in (10, 16))
    assert low is not None and low.queue_bytes == pytest.approx(135_000, rel=0.01), "0.67 % of 1 %"
    assert high is not None and high.queue_bytes is None and high.probability == pytest.approx(0.012, rel=0.01)
    assert rest(control, {"min": "5 packets", "max": "15 packets", "max_p": 0.1}, 10, 40e9, 1106) is None


def test_the_queue_of_dcqcn_is_told_where_most_hosts_send_to() -> None:
    text = overview(DCQCN).text
    said = re.search(
        r"If 16 long flows of DCQCN, one from each sender, meet at switch0->h16, they rest at a marking probability of "
        r"([\d.]+) %, with ([\d.]+) KB in the queue",
        text,
    )
    assert said is not None, text
    # 1.20 % and 239.3 KB with packets of 1,106 B; the largest have 16 B more.
    assert float(said[1]) == pytest.approx(1.2, rel=0.02)
    assert float(said[2]) == pytest.approx(239.3, rel=0.02)
    steep = overview(DCQCN.replace({"switch.marking.max_p": 0.01})).text
    assert "above max_p (1 %): the queue passes max, all is marked, and rates swing" in steep
    for without in ({"transport.congestion_control": "timely"}, {"switch.marking": {"kind": "threshold", "k": "65 packets"}}):
        assert "they rest at" not in overview(DCQCN.replace(without)).text


def test_thresholds_are_told_by_port_where_they_differ() -> None:
    assert "Marking by port" not in overview(incast()).text
    own = {"ports": ["switch0->h0", "switch0->h1"], "marking": {"kind": "threshold", "k": "20 packets"}}
    text = overview(incast(**{"switch.except": [own]})).text
    assert (
        "Marking by port: threshold (k 20 packets) at 2 ports (switch0->h0 and switch0->h1); threshold (k 65 packets) at 39 ports"
        in text
    )
    classes = {"switch.scheduling": {"kind": "strict", "classes": 2}, "switch.class_marking": [{"classes": [1], "marking": "none"}]}
    by_class = overview(incast(**classes)).text
    assert "Marking by port: class 0: threshold (k 65 packets), classes 1 to 7: none at 41 ports" in by_class


def test_threads_are_named_where_they_are_expected_to_pay() -> None:
    demo = overview(fanin.Scenario.from_file(ROOT / "scenarios" / "demo.toml"))
    gains = demo.facts["threads"]
    assert [gain["threads"] for gain in gains] == [2, 4], "four leaves: four parts"
    assert demo.facts["threads_why"] is None
    assert all(gain["window_ps"] == 1_500_000 for gain in gains) and 1.1 < gains[1]["times"] < 1.6
    assert f"on one core, {gains[1]['times']:.1f} times as fast on 4 (an estimate; --threads, docs/parallel.md)." in demo.text
    one_switch = overview(incast())
    assert one_switch.facts["threads"] == []
    whole = "one switch has all hosts: nothing to divide"
    assert one_switch.text.endswith(f"of simulation on one core (no more threads: {whole}).")
    outside = {"kind": "external", "socket": "/tmp/none.sock"}
    for key, value, why in (
        ("telemetry.hosts", ["h0"], "telemetry.hosts and telemetry.messages follow packets through the whole network"),
        ("engine.max_events", 1_000_000, "engine.max_events counts the events of the whole network"),
        ("switch.marking", outside, "a block outside decides about one packet after the other"),
    ):
        one = overview(fanin.Scenario.from_file(ROOT / "scenarios" / "demo.toml").replace({key: value}))
        assert (one.facts["threads"], one.facts["threads_why"]) == ([], why)
        assert one.text.endswith(f"of simulation on one core (no more threads: {why}).")
