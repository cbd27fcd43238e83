"""docs/lossless.md and docs/dev/lossless-measured.md: their numbers recomputed, their examples run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import fanin
from fanin.cli import app

DOCS = Path(__file__).parents[2] / "docs"
PAGE = "\n".join((DOCS / name).read_text(encoding="utf-8") for name in ("lossless.md", "dev/lossless-measured.md"))


def rows(head: str) -> list[list[str]]:
    """The cells of the table whose head begins so."""
    table = re.search(rf"^\| {re.escape(head)}.*\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.M)
    assert table, head
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[1].splitlines()]


def number(text: str) -> float:
    found = re.match(r"[\d,.]+", text)
    assert found, text
    return float(found[0].replace(",", ""))


def star(hosts: int, rate: str, delay_ns: float, pfc: dict[str, Any], traffic: list[dict[str, Any]]) -> fanin.Scenario:
    return fanin.Scenario(
        {
            "topology": {"kind": "single_switch", "hosts": hosts, "link": {"rate": rate, "delay": f"{delay_ns:g}ns"}},
            "switch": {"buffer": "unlimited", "latency": pfc.pop("latency", "0ps"), "mechanisms": {"pfc": {"classes": [0], **pfc}}},
            "telemetry": {"sample": "off"},
            "traffic": traffic,
        }
    )


def cbr(src: int, dst: int, rate: str, size: str) -> dict[str, Any]:
    flow = {"kind": "cbr", "src": f"h{src}", "dst": f"h{dst}", "rate": rate, "counts": "wire", "packet": "1472B", "size": size}
    return {**flow, "name": f"h{src}"}


def test_headroom_is_what_the_doctor_computes() -> None:
    table = rows("rate | cable")
    assert len(table) == 8
    for rate, cable, frame, response, headroom in table:
        metres = number(cable) * (1000 if "km" in cable else 1)
        full, gbps, wait = int(number(frame)), number(rate), number(response)
        pfc = {"headroom": "1B", "memory": "4GB", "max_frame": f"{full}B", "response": f"{wait:g}us"}
        traffic = [cbr(0, 1, "1Gbps", "1MB")]
        said = [str(w) for w in star(2, f"{gbps:g}Gbps", 5 * metres, pfc, traffic).check().warnings if "after XOFF" in str(w)]
        (found,) = re.findall(r"is up to (\d+) B", said[0])
        by_hand = full + 2 * (full + 20) + 84 + gbps / 8 * (2 * metres * 5 + wait * 1000)
        assert int(found) == int(number(headroom)) == round(by_hand), (rate, cable)


def test_pools_and_thresholds() -> None:
    one, eight = (int(number(text)) for text in re.findall(r"take ([\d,]+) B with one lossless class and ([\d,]+) B", PAGE)[0])
    assert (one, eight) == (32 * 17_178, 8 * 32 * 17_178)
    (pool,) = (int(number(text)) for text in re.findall(r"([\d,]+) B are left with one class", PAGE))
    assert pool == 12_000_000 - one
    table = rows("congested inputs")
    for inputs, each, until in table:
        n = int(inputs)
        assert int(number(each)) == int(pool / 8 / (1 + n / 8))
        assert number(until) == pytest.approx(number(each) / (12.5 * (n - 1) / n) / 1000, abs=0.05)


def fixed_point(flows: int, gbps: float) -> float:
    """The marking probability at which DCQCN rests, with the paper's parameters and packets of 1 KB."""
    packet, timer = 8_000, 55e-6
    capacity, increase, counter = gbps * 1e9 / packet, 40e6 / packet, 10_000
    return float((increase * flows**2 / (timer * capacity**2) * (1 / counter + flows / (timer * capacity)) ** 2) ** (1 / 3))


def test_marking_thresholds() -> None:
    """What the chapter on K_min, K_max and P_max computes, for switches of 32 ports with one lossless class and α = 1/8."""
    ports, alpha = 32, 1 / 8
    for rate, memory, headroom, pool, any_traffic, one, eight, marks in rows("rate | memory"):
        by_hand = 1518 + 2 * 1538 + 84 + number(rate) / 8 * 1000
        assert int(number(headroom)) == by_hand
        left = number(memory) * 1_000_000 - ports * by_hand
        assert int(number(pool)) == left
        assert int(number(any_traffic)) == int(alpha * left / (ports * (1 + alpha)))
        assert int(number(one)) == int(alpha * left / (1 + alpha))
        assert int(number(eight)) == int(8 * alpha * left / (1 + 8 * alpha))
        k_min, k_max = (1000 * number(part) for part in marks.split(", "))
        assert (k_min, k_max) == (number(rate) / 25 * 100_000, number(rate) / 25 * 400_000)
        assert number(any_traffic) < k_min and k_max < number(one), "the second rule is kept, the first is not"
    of_the_paper = (12_000_000 - 8 * 32 * 22_400) / (32 * (1 + 8))
    assert f"it gives {int(of_the_paper):,} B, the paper's 21.75 KB" in PAGE


def test_where_dcqcn_rests() -> None:
    table = rows("rate | flows")
    assert len(table) == 6
    for rate, flows, marks, probability, queue in table:
        marked = fixed_point(int(flows), number(rate))
        k_min, k_max = (number(part) for part in marks.split(", "))
        assert (k_min, k_max) == (number(rate) / 8, 5 * number(rate))
        assert probability == f"{100 * marked:.3f} %"
        assert number(queue) == round(k_min + (k_max - k_min) * marked / 0.01)
        assert marked < 0.01
    at_40 = [round(5 + 195 * fixed_point(flows, 40) / 0.01) for flows in (2, 4, 10)]
    assert "{}, {} and {} KB for 2, 4 and 10 flows".format(*at_40) in PAGE
    assert f"that is {7 * 100_000 * 8 // 8:,} B for eight" in PAGE


def long_flows(flows: int, marks: tuple[str, str, float], folder: Path) -> tuple[float, float, float]:
    """Return mean and largest sample of the queue [KB], and the use of the line, in the second half of 60 ms at 100 Gb/s."""
    k_min, k_max, p_max = marks
    red = {"kind": "red", "min": k_min, "max": k_max, "max_p": p_max, "weight": 1.0, "gentle": False, "hard_drop": False}
    scenario = fanin.Scenario(
        {
            "duration": "60ms",
            "topology": {"kind": "single_switch", "hosts": flows + 1, "link": {"rate": "100Gbps", "delay": "1us"}},
            "switch": {"buffer": "unlimited", "marking": {**red, "spacing": "geometric"}},
            "transport": {"kind": "roce", "congestion_control": "dcqcn"},
            "traffic": [
                {"kind": "flows", "flows": [{"src": f"h{src}", "dst": f"h{flows}", "size": "10GB"} for src in range(flows)]},
            ],
            "telemetry": {"sample": "50us"},
        }
    )
    ports = fanin.run(scenario, folder, progress=False).ports
    late = ports.filter((pl.col("port") == f"switch0->h{flows}") & (pl.col("time_ps") > 30_000_000_000))
    # Rows that are not there are zeros.
    largest = float(max(late["queue_bytes"].to_list())) / 1000
    return float(late["queue_bytes"].sum()) / 600 / 1000, largest, float(late["tx_bytes"].sum()) * 8 / (100e9 * 0.03)


def test_soft_marks_rest_and_steep_ones_swing(tmp_path: Path) -> None:
    mean, largest, used = long_flows(10, ("12500B", "500KB", 0.01), tmp_path / "soft")
    assert f"the second half of 60 ms has {mean:.0f} KB, and the line is {100 * used:.0f} % busy" in PAGE, (mean, used)
    assert abs(mean / (12.5 + 487.5 * fixed_point(10, 100) / 0.01) - 1) < 0.25
    mean, largest, used = long_flows(2, ("400KB", "1600KB", 0.2), tmp_path / "steep")
    assert f"between nothing and {largest:.0f} KB, and the line is busy for {100 * used:.0f} % of the time" in PAGE, (largest, used)


@pytest.mark.parametrize(("mtu", "more", "least"), [(4096, {}, "4,174 B"), (4096, {"int": {}}, "4,218 B")])
def test_larger_packets_need_a_larger_max_frame(mtu: int, more: dict[str, Any], least: str) -> None:
    """Five switches in a row, so that a frame has the records of five ports."""
    assert least in PAGE
    bytes_ = int(number(least))

    def said(max_frame: int) -> str:
        document = {
            "topology": {"kind": "chain", "switches": 5},
            "switch": {"buffer": "unlimited", "mechanisms": {"pfc": {"max_frame": f"{max_frame}B"}, **more}},
            "transport": {"kind": "roce", "mtu": mtu, "congestion_control": "hpcc" if more else "none"},
            "traffic": [{"kind": "permutation", "size": "1MB"}],
        }
        return "\n".join(str(problem) for problem in fanin.Scenario(document).check().problems)

    assert f"at least {bytes_} B" in said(1518)
    assert f"at least {bytes_} B" in said(bytes_ - 1)
    assert "max_frame" not in said(bytes_)


def test_the_first_pause_of_eight_inputs_comes_when_the_page_says(tmp_path: Path) -> None:
    """Frames of 1518 B take 1538 B of wire time, so the memory fills by 1.3 % slower than the wire."""
    traffic = [cbr(src, 31, "100Gbps", "1MB") for src in range(8)]
    result = fanin.run(star(32, "100Gbps", 500, {"memory": "12MB"}, traffic), tmp_path / "out", progress=False)
    until = next(number(row[2]) for row in rows("congested inputs") if row[0] == "8")
    first = result.pauses["asked_ps"].min()
    assert first == pytest.approx(until * 1e6 * 1538 / 1518, rel=0.02)
    assert result.summary["drops"] == 0


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_low_xon_leaves_the_line_idle(tmp_path: Path, place: int) -> None:
    gap, idle = rows("XOFF − xon_gap")[place]
    xon = int(number(gap))
    xoff = {"kind": "static", "bytes": f"{xon + 3_000}B"}
    pfc = {"memory": "1MB", "xoff": xoff, "xon_gap": "3KB", "latency": "300ns"}
    size = 1_472_000
    result = fanin.run(
        star(3, "10Gbps", 1_000, pfc, [cbr(src, 2, "10Gbps", f"{size}B") for src in (0, 1)]), tmp_path / "out", progress=False
    )
    busy = 2 * size / 1472 * 1538 * 800
    path = 2 * 1_000_000 + 300_000 + 1538 * 800
    took = int(max(result.flows["finish_ps"])) - path
    share = 100 * (1 - busy / took)
    assert result.summary["drops"] == 0
    assert f"{share:.2f} %" == idle, f"{share:.3f}"


@pytest.mark.parametrize("place", [0, 1])
def test_sixteen_flows_take_the_line_as_the_page_says(tmp_path: Path, place: int) -> None:
    page = (Path(__file__).parents[2] / "docs" / "transports" / "dcqcn.md").read_text(encoding="utf-8")
    table = re.search(r"^\| R_AI, R_HAI \|.*\n\|[-|]+\n((?:\|.*\n)+)", page, re.M)
    assert table
    stated = [cell.strip() for cell in table[1].splitlines()[place].strip("|").split("|")]
    red = {"kind": "red", "min": "50KB", "max": "2MB", "max_p": 0.01, "weight": 1.0, "gentle": False}
    step = [("40Mbps", "400Mbps"), ("400Mbps", "4Gbps")][place]
    scenario = fanin.Scenario(
        {
            "duration": "40ms",
            "topology": {"kind": "single_switch", "hosts": 17, "link": {"rate": "400Gbps", "delay": "1us"}},
            "switch": {
                "buffer": "unlimited",
                "marking": {**red, "hard_drop": False, "drop_others": False, "spacing": "geometric"},
                "mechanisms": {"pfc": {"classes": [0], "memory": "64MB"}},
            },
            "transport": {
                "kind": "roce",
                "congestion_control": {"kind": "dcqcn", "additive_increase": step[0], "hyper_increase": step[1]},
            },
            "telemetry": {"sample": "5ms"},
            "traffic": [{"kind": "incast", "receiver": "h16", "size": "1GB", "jitter": "0us"}],
        }
    )
    port = fanin.run(scenario, tmp_path / "out", progress=False).ports.filter(pl.col("port") == "switch0->h16")
    shares = (port["tx_bytes"] + 20 * port["tx_packets"]) * 8 / (400e9 * 5e-3) * 100
    assert [f"{share:.0f} %" for share in shares] == stated[1:-1]
    assert f"{port['queue_bytes'][-1] / 1000:.0f} KB" == stated[-1]


@pytest.fixture(scope="module")
def spreading(tmp_path_factory: pytest.TempPathFactory) -> fanin.Result:
    folder = tmp_path_factory.mktemp("lossless")
    toml = next(block for block in re.findall(r"```toml\n(.*?)```", PAGE, re.S) if "spreading" in block)
    (folder / "spreading.toml").write_text(toml, encoding="utf-8")
    return fanin.run(fanin.Scenario.from_file(folder / "spreading.toml"), folder / "out", progress=False)


def test_the_example_has_what_the_page_says_of_it(spreading: fanin.Result) -> None:
    tree = spreading.pause_tree()
    assert tree.document["root"] == "leaf1->h4" and tree.document["depth"] >= 2
    victims = dict(tree.victims.select("flow", "dst").iter_rows())
    assert victims == {4: "h5"}
    assert spreading.summary["drops"] == 0


def test_what_ends_a_storm(tmp_path: Path) -> None:
    toml = next(block for block in re.findall(r"```toml\n(.*?)```", PAGE, re.S) if "spreading" in block)
    storm = next(block for block in re.findall(r"```toml\n(.*?)```", PAGE, re.S) if "storms" in block)
    times = '= { detection = "1ms", restoration = "1ms" }'
    settings = {
        "nothing": ("", ""),
        f"`watchdog {times}`": (f"watchdog {times}", ""),
        '`stall_prevention = "1ms"`': ("", 'stall_prevention = "1ms"'),
        f"`pause_watchdog {times}`": ("", f"pause_watchdog {times}"),
    }
    table = {row[0]: row for row in rows("| flows completed")}
    assert len(table) == len(settings)
    for place, (name, (of_switch, of_host)) in enumerate(settings.items()):
        text = f'duration = "10ms"\n{toml}\n{storm}{of_host}\n'.replace("xoff = {", f"{of_switch}\nxoff = {{")
        (tmp_path / f"{place}.toml").write_text(text, encoding="utf-8")
        result = fanin.run(fanin.Scenario.from_file(tmp_path / f"{place}.toml"), tmp_path / f"{place}", progress=False)
        row = next(row for first, row in table.items() if first.startswith(name))
        assert row[1].startswith(f"{result.flows.filter(status='complete').height} of 5"), name
        assert number(row[2]) == result.summary["drops"], name
        lost = set(result.drops.join(result.flows, on="flow")["dst"])
        reasons = {"pfc_watchdog"} if of_switch else {"headroom_full"} if "pause_watchdog" in of_host else set()
        assert set(result.summary["drops_by_reason"]) == reasons, name
        assert (lost == {"h5"}) == ("all of them for h5" in row[2]) == bool(of_switch), name
        assert ("for want of headroom" in row[2]) == (reasons == {"headroom_full"}), name
        if place == 0:
            tree = result.pause_tree()
            assert tree.document["root"] == "h5"
            assert set(tree.victims["dst"]) == {"h4"}
            far = min(edge["first_ps"] for edge in tree.document["edges"] if edge["port"].startswith("h"))
            assert f"{(far - tree.document['start_ps']) / 1e6:.1f} µs after its first frame" in PAGE
            assert "h5 asked for pauses of itself" in tree.text
            assert tree.lines()[0] == "h5 (asked for pauses of itself)"


def test_a_deadlock_is_told_with_the_pauses(tmp_path: Path) -> None:
    ring = [{"a": f"s{i}", "b": f"s{(i + 1) % 5}"} for i in range(5)]
    (tmp_path / "ring.json").write_text(json.dumps({"links": [{"a": f"h{i}", "b": f"s{i}"} for i in range(5)] + ring}))
    scenario = fanin.Scenario(
        {
            "duration": "10ms",
            "topology": {"kind": "file", "path": str(tmp_path / "ring.json"), "rate": "10Gbps", "delay": "1us"},
            "switch": {
                "buffer": "unlimited",
                "mechanisms": {"pfc": {"memory": "500KB", "classes": [0], "xoff": {"kind": "static", "bytes": "3KB"}}},
            },
            "traffic": [cbr(src, (src + 2) % 5, "10Gbps", "2MB") for src in range(5)],
        }
    )
    with pytest.raises(RuntimeError, match="deadlock: paused ports have waited for each other since "):
        fanin.run(scenario, tmp_path / "out", progress=False)
    printed = CliRunner().invoke(app, ["pauses", str(tmp_path / "out")])
    assert printed.exit_code == 0, printed.output
    (said,) = (line for line in printed.stdout.splitlines() if line.startswith("Deadlock: "))
    assert all(f"s{i}->s{(i + 1) % 5}" in said for i in range(5))
