"""``fanin whatif``: hidden runs come back as their true remedy, models that do not give back a burst are refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import fanin
import whatif_truth
from fanin.cli import app
from fanin.remedy import WhatIf, open_loop, reading, whatif
from fanin.remedy.ask import LEAST
from fanin.remedy.model import Uncertain, drawn
from fanin.remedy.seen import Seen, View, packets, sampled
from fanin.remedy.settings import amount, period, trials
from fanin.scenario import Scenario

ROOT = Path(__file__).parents[2]
CAPTURES = ROOT / "examples" / "captures"
HTB: dict[str, Any] = {"rate": "100Mbps", "overhead": "0B", "fcs": False, "buffer": "512KB"}
FEW = ("buffer", "first window", "threshold", "timer")
"""Parts of which the short form of the table tries settings."""

SHORT = (
    ("csv", 0, "buffer × 4"),
    ("tables", 1, "K = 64 KB"),
    ("csv", 2, "first window 10"),
    ("behind", 3, "RTO_min 10ms"),
    ("csv", 4, None),
)
"""Input, case, and a setting that is a true remedy, None where nothing is: docs/dev/whatif-measured.md has the whole table."""


def incast(**more: Any) -> WhatIf:
    before, behind = (CAPTURES / f"incast-{side}.pcap.gz" for side in ("before", "behind"))
    return whatif(before, behind=behind, members=LEAST, jobs=1, **{**HTB, **more})


def call(*args: Any) -> Any:
    return CliRunner().invoke(app, [str(arg) for arg in args])


@pytest.fixture(scope="module")
def rows() -> dict[tuple[str, int], whatif_truth.Row]:
    return {
        (source, case): whatif_truth.tried(whatif_truth.CASES[case], source, members=LEAST, only=FEW, jobs=1)
        for source, case, _ in SHORT
    }


@pytest.mark.parametrize(("source", "case", "remedy"), SHORT)
def test_a_hidden_run_gives_back_its_true_remedy(
    rows: dict[tuple[str, int], whatif_truth.Row], source: str, case: int, remedy: str | None
) -> None:
    row = rows[source, case]
    assert row.verdict == "right", row.found.text
    assert row.found.outcome == ("nothing" if remedy is None else "remedy")
    if remedy is None:
        assert not any(row.truth.values())
        assert row.found.text.startswith("Nothing that was tried")
    else:
        assert row.truth[remedy]
        assert remedy in row.found.helps
    agree, of = row.agree
    assert of >= 8
    assert agree >= 0.75 * of, row.cell()
    assert row.claimed == []


def test_no_constant_answer_is_right_in_all_cases(rows: dict[tuple[str, int], whatif_truth.Row]) -> None:
    true = [{name for name, does in row.truth.items() if does} for row in rows.values()]
    assert set.intersection(*true) == set()
    assert set.intersection(*true[:3]) == set(), "a buffer, a threshold and a first window have no remedy in common"
    assert all(true[:4])


@pytest.mark.parametrize(
    ("source", "error", "expected"),
    [
        ("lanz", ValueError("2 samples of the queue: too few to hold a model against; accepted: 5 or more"), True),
        ("csv", ValueError("2 samples of the queue: too few to hold a model against; accepted: 5 or more"), False),
        ("lanz", fanin.TraceError("lanz.bin: message 2: is no LANZ message"), False),
    ],
)
def test_a_refusal_that_is_not_expected_of_an_input_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], source: str, error: Exception, expected: bool
) -> None:
    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr(whatif_truth, "tried", refuse)
    if expected:
        whatif_truth.main([source])
    else:
        with pytest.raises(SystemExit) as ended:
            whatif_truth.main([source])
        assert str(ended.value).count(f"is refused, which is not expected of it: {error}") == len(whatif_truth.CASES)
    assert f"Of {len(whatif_truth.CASES)}: " in capsys.readouterr().out


def test_hosts_of_another_kind_are_no_answer() -> None:
    """The model's hosts are Linux': bursts of others that it does not give back are refused, not answered."""
    case = whatif_truth.CASES[0]
    other = replace(case, transport={**case.transport, "profile": "rfc", "rto_min": "200ms"})
    row = whatif_truth.tried(other, "csv", members=LEAST, only=("buffer",), jobs=1)
    assert (row.verdict, row.found.remedies) == ("no answer", ())
    assert any(words.startswith("drops (") for words in row.found.missed)


def test_a_kernel_s_incast_has_an_answer_with_its_cost() -> None:
    found = incast(only=("buffer", "first window"))
    assert found.goal == "drops"
    assert found.best is not None
    assert found.best.part == "buffer"
    assert {"buffer × 2", "buffer × 4"} <= set(found.helps)
    assert not {"first window 4", "shared, α = 0.25"} & set(found.helps)
    twice = next(own for own in found.remedies if own.name == "buffer × 2")
    assert twice.removed is not None
    assert 0.93 < twice.removed.mean < 0.995
    assert (twice.holds, twice.members) == (LEAST, LEAST)
    assert twice.share.low == pytest.approx(0.025 ** (1 / LEAST)), "Clopper and Pearson's, of six of six"
    assert twice.last.change == pytest.approx(0, abs=0.05)
    # Arrivals as they were: 345 drops in the buffer as it is, by facts.txt, and a few in twice as much.
    assert 330 <= found.replays[0].dropped <= 360
    assert 0 < found.replays[1].dropped < 30
    assert found.replays[2].dropped == 0
    assert found.least_buffer is not None
    assert 1_000_000 < found.least_buffer < 1_070_000
    assert any("slow applications" in note for note in found.notes)


def test_one_question_has_one_answer() -> None:
    one, other = (incast(only=("buffer × 2",)).to_json() for _ in range(2))
    assert one == other


def test_a_model_that_does_something_else_gives_no_answer(tmp_path: Path) -> None:
    found = incast(known={"transport.congestion_control": "dctcp", "switch.marking": {"kind": "threshold", "k": "20KB"}})
    assert (found.answered, found.best, found.remedies, found.helps) == (False, None, (), ())
    assert found.text.startswith("No answer: this model does not reproduce your burst: ")
    assert found.missed
    assert all(" for " in words for words in found.missed)
    assert "open loop" in found.text, "the arrivals alone still say what a buffer would have held"
    with pytest.raises(ValueError, match="no scenario of a remedy"):
        found.to_scenario(tmp_path / "remedy.toml")
    assert [path.name for path in found.write(tmp_path / "out")] == ["whatif.json", "whatif.md", "model.toml"]


def test_a_model_may_be_given(tmp_path: Path) -> None:
    before, behind = (CAPTURES / f"incast-{side}.pcap.gz" for side in ("before", "behind"))
    fanin.analyze(before, behind=behind, **HTB).to_scenario(tmp_path / "port.toml")
    found = incast(scenario=tmp_path / "port.toml", only=("buffer × 4", "pacing"))
    assert found.model.how == "the scenario that was given, at its port left->right"
    assert found.helps == ("buffer × 4",)
    own = whatif_truth.metrics(found.base, "left->right")
    assert 310 <= own["dropped"] <= 380
    with pytest.raises(ValueError, match=r"--at left->wrong: the scenario has no such port of a switch; accepted: left->"):
        incast(scenario=tmp_path / "port.toml", at="left->wrong")
    with pytest.raises(ValueError, match=r"at: 'left->right' is a port of a scenario, and none is given"):
        incast(at="left->right")


def test_the_command_writes_what_it_says(tmp_path: Path) -> None:
    trace = [CAPTURES / "incast-before.pcap.gz", "--behind", CAPTURES / "incast-behind.pcap.gz"]
    port = ["--rate", "100Mbps", "--overhead", "0B", "--no-fcs", "--buffer", "512KB"]
    fast = ["--members", LEAST, "--jobs", 1, "--only", "buffer × 4"]
    report = tmp_path / "report.json"
    assert call("analyze", *trace, *port, "-o", report, "-q").exit_code == 0
    direct = call("whatif", *trace, *port, *fast, "--json")
    assert direct.exit_code == 0, direct.output
    # The report has the trace's settings.
    again = call("whatif", tmp_path, *fast, "--json", "-o", tmp_path / "out", "--to-scenario", tmp_path / "best.toml")
    assert again.exit_code == 0, again.output
    assert json.loads(again.stdout) == json.loads(direct.stdout)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["model.toml", "remedy.toml", "whatif.json", "whatif.md"]
    document = json.loads((tmp_path / "out" / "whatif.json").read_text(encoding="utf-8"))
    assert (document["schema"], document["outcome"], document["best"]) == ("whatif/1", "remedy", "buffer × 4")
    remedy = Scenario.from_file(tmp_path / "best.toml")
    assert remedy.check().errors == ()
    assert amount(remedy.resolved["switch"]["buffer"]["per_port"]) == 4 * 513_353
    page = (tmp_path / "out" / "whatif.md").read_text(encoding="utf-8")
    assert page.startswith("# What would have helped ")
    assert "| buffer × 4 | 6 of 6 | 100 % |" in page
    assert "Open loop" in page
    shown = call("whatif", *trace, *port, *fast, "-q")
    assert shown.stdout.startswith("buffer × 4 would have removed 100 % of the drops: it holds in 6 of 6 members")


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    there = tmp_path / "there.toml"
    there.write_text("", encoding="utf-8")
    wrong = call("whatif", tmp_path / "none.pcap", "--scenario", tmp_path / "none.toml", "--to-scenario", there)
    assert wrong.exit_code == 2
    said = " ".join(wrong.output.split())
    for words in ("none.pcap: is not there", "none.toml: is no file; accepted: a scenario", "there already; --force replaces it"):
        assert words in said
    with pytest.raises(ValueError, match=r"below: '9 apples' is no size; accepted: .*; goal: 'more' is none; .*; members: 2 is"):
        whatif("x.csv", below="9 apples", goal="more", members=2)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="goal: peak takes a queue"):
        whatif("x.csv", goal="peak")
    with pytest.raises(ValueError, match=r"holds no report of an analysis; fanin analyze TRACE -o"):
        whatif(tmp_path)
    with pytest.raises(ValueError, match=r"--only bufer: .* did you mean 'buffer'\?"):
        incast(only=("bufer",))
    csv = tmp_path / "times.csv"
    csv.write_text("time_ns,queue_bytes\n" + "".join(f"{n * 1000},{n % 3 * 1000}\n" for n in range(3)), encoding="utf-8")
    with pytest.raises(ValueError, match="a model needs the speed of the port: --rate"):
        whatif(csv, columns="time=time_ns:ns,queue=queue_bytes:B")
    with pytest.raises(ValueError, match=r"3 samples of the queue: too few to hold a model against; accepted: 5 or more"):
        whatif(csv, columns="time=time_ns:ns,queue=queue_bytes:B", rate="1Gbps")


def samples(path: Path, jump_ps: int = 0, *, empty: bool = False) -> dict[str, Any]:
    """Write two hills of a queue each 10 us, with 50 drops each; before the second top the clock is set forward."""
    lines = ["time_ns,queue_bytes,drops"]
    for n in range(400):
        height = 0 if empty else max(0, 100_000 - abs(n % 200 - 100) * 2000)
        at = n * 10_000 + (jump_ps // 1000 if n > 290 else 0)
        lines.append(f"{at},{height},{50 * ((n >= 100) + (n >= 300))}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return {"columns": "time=time_ns:ns,queue=queue_bytes:B,drops=drops:total", "rate": "10Gbps", "jobs": 1}


def test_no_model_is_made_of_a_day_without_samples(tmp_path: Path) -> None:
    csv = tmp_path / "jump.csv"
    options = samples(csv, 86_400 * 10**12)
    with pytest.raises(ValueError, match=r"port jump: .* from 0\.000510000s to 86400\.003490000s, too long for") as said:
        whatif(csv, **options)
    assert "8.64 G samples at 10 µs each, where 500,000 is the most" in str(said.value)
    assert "without a sample is 86400 s, after 0.002900000s; accepted: one burst of it, by --start" in str(said.value)
    # Few samples, far apart: what they would have let through is too much as well.
    slow = tmp_path / "slow.csv"
    slow.write_text("time_s,queue_bytes\n" + "".join(f"{n},{n % 40 * 1000}\n" for n in range(80)), encoding="utf-8")
    with pytest.raises(ValueError, match=r"96\.25 GB would leave while it is not empty, where 15 GB is the most"):
        whatif(slow, columns="time=time_s:s,queue=queue_bytes:B", rate="10Gbps")
    options = samples(csv, empty=True)
    with pytest.raises(ValueError, match=r"port jump: the queue is empty in all 399 samples; accepted: samples in which"):
        whatif(csv, **options)
    packets_of = "time=time_ns:ns,queue=queue_bytes:B,frame=frame:B,flow=flow"
    for jump, count, words in (
        (
            86_400 * 10**9,
            200,
            r"to its last there are 86400 s, too long .* where 600 s is the most; its longest silence is 86400 s",
        ),
        (0, 1, "1 packet: too few to hold a model against; accepted: 5 or more"),
    ):
        lines = [f"{n * 1200 + jump * (n > 100)},{n * 500},1500,f{n % 4}" for n in range(count)]
        slow.write_text("\n".join(["time_ns,queue_bytes,frame,flow", *lines, ""]), encoding="utf-8")
        with pytest.raises(ValueError, match=words):
            whatif(slow, columns=packets_of, rate="10Gbps")
    lines = [f"{n * 1200},{n * 500},1500,f{n % 4}" for n in range(200)]
    slow.write_text("\n".join(["time_ns,queue_bytes,frame,flow", *lines, ""]), encoding="utf-8")
    with pytest.raises(
        ValueError, match=r"what arrived takes 2400 s to send at 1 kb/s, where 600 s .*: the port's own speed, --rate"
    ):
        whatif(slow, columns=packets_of, rate="1Kbps")
    # A simulated port whose packets are a day apart is looked at for so long and no longer.
    rows = {"time_ps": [0, 86_400 * 10**12], "queue_bytes": [0, 0], "frame_bytes": [1000, 1000], "dropped": [False, False]}
    moments, held = sampled(pl.DataFrame(rows), 8e6, 10**6, 0.5, largest=True)
    assert (len(moments), len(held), held.max()) == (1_000_000, 1_000_000, 1000.0)


@pytest.mark.parametrize(("cut", "tops"), [({}, 2), ({"start": "2ms"}, 1), ({"stop": "2ms"}, 1)])
def test_one_burst_of_samples_is_cut_out(tmp_path: Path, cut: dict[str, Any], tops: int) -> None:
    csv = tmp_path / "hills.csv"
    options = samples(csv)
    del options["jobs"]
    analysis = fanin.analyze(csv, **options, **cut)
    port = analysis.port()
    shown = reading.measured(analysis, port, "samples", largest=False)
    series = reading.of_samples(analysis, port, shown, {})
    assert (shown[1].dropped, shown[1].peak_bytes) == (50 * tops, 100_000.0)
    assert shown[1].lasted_ps == (980_000_000 if tops == 1 else 2_980_000_000)
    assert int((series.queue > 0).sum()) == 99 * tops, "the grid has each sample once"
    assert 99 <= len(series.queue) - (tops - 1) * 200 <= 103


def test_one_burst_of_packets_is_cut_out_and_flows_that_are_cut_in_two_are_said(tmp_path: Path) -> None:
    csv = tmp_path / "twice.csv"
    lines = ["time_us,queue_bytes,frame,flow,dropped"]
    for begin, height in ((0, 40), (3_000_000, 20), (3_500_000, 10)):
        lines += [
            f"{begin + 2 * n},{1500 * min(n, height)},1500,10.0.0.{n % 4}:5 > 10.0.1.1:80 tcp,{int(n > height)}" for n in range(100)
        ]
    csv.write_text("\n".join([*lines, ""]), encoding="utf-8")
    asked: dict[str, Any] = {
        "columns": "time=time_us:us,queue=queue_bytes:B,frame=frame,flow=flow,dropped=dropped",
        "rate": "10Gbps",
    }

    def modelled(**cut: Any) -> tuple[Seen, Any, tuple[str, ...]]:
        analysis = fanin.analyze(csv, **asked, **cut)
        shown = reading.measured(analysis, analysis.port(), "flows", largest=False)
        model, _ = reading.of_flows(analysis, analysis.port(), shown, {}, behind=False)
        return shown[1], model, tuple(words for words in model.unsure if words.startswith("starts"))

    def flows(model: Any) -> int:
        return sum(len(entry.get("flows", [])) for entry in model.variants[0].to_dict()["traffic"])

    whole, model, said = modelled()
    assert (whole.dropped, flows(model), said) == (59 + 79 + 89, 8, ())
    assert model.arrivals.height == 300
    last, model, said = modelled(start="2.9s")
    assert (last.dropped, last.peak_bytes, flows(model), said) == (79 + 89, 30_000.0, 4, ())
    assert (model.arrivals.height, last.lasted_ps) == (200, 500_198_000_000)
    part, model, said = modelled(start="3.4s")
    assert (part.dropped, part.peak_bytes, flows(model)) == (89, 15_000.0, 4)
    assert said == ("starts: 4 flows had begun before --start, and begin there as new ones",)
    with pytest.raises(ValueError, match="nothing came at or after --start"):
        modelled(start="9s")


def test_doubts_about_the_trace_are_part_of_the_conclusion(tmp_path: Path) -> None:
    csv = tmp_path / "doubtful.csv"
    lines = [f"{2 * n},{1500 * min(n, 40)},1500,10.0.0.{n % 4}:5 > 10.0.1.1:80 tcp,{int(n > 40)}" for n in range(100)]
    csv.write_text("\n".join(["time_us,queue_kb,frame,flow,dropped", *lines, ""]), encoding="utf-8")
    columns = "time=time_us:us,queue=queue_kb:B,frame=frame,flow=flow,dropped=dropped"
    port = ["--rate", "10Gbps", "--columns", columns, "--set", "transport.congestion_control=newreno"]
    port += ["--set", "transport.initial_window=10", "--set", "transport.rto_min=200ms", "--rtt", "40us"]
    asked = call("whatif", csv, *port, "--members", LEAST, "--jobs", 1, "--only", "buffer × 2", "-q")
    said = " ".join(asked.output.split())
    assert "Trust in the trace itself: limited; parts of this result may be wrong (unit_contradicts_name)" in said


def test_a_trace_that_is_not_what_it_was_taken_for_has_no_answer() -> None:
    behind, before = (CAPTURES / f"incast-{side}.pcap.gz" for side in ("before", "behind"))
    port = ["--rate", "100Mbps", "--overhead", "0B", "--no-fcs", "--buffer", "512KB"]
    wrong = call("whatif", before, "--behind", behind, *port, "-q")
    said = " ".join(wrong.output.split())
    assert wrong.exit_code == 2
    assert "no answer, for the trace is not to be relied on" in said
    assert "(swapped); the captures are swapped: give that before the port first, and that behind it as --behind" in said


def test_a_result_s_own_scenario_is_its_model(tmp_path: Path) -> None:
    hidden = {
        "name": "hidden",
        "topology": {
            "kind": "dumbbell",
            "left": 12,
            "right": 1,
            "host_link": {"rate": "10Gbps", "delay": "1us"},
            "bottleneck": {"rate": "1Gbps", "delay": "98us"},
        },
        "switch": {"buffer": {"kind": "static", "per_port": "128KB"}},
        "transport": {"kind": "tcp", "profile": "linux", "congestion_control": "newreno", "handshake": False},
        "traffic": [
            {"kind": "flows", "flows": [{"src": f"h{n}", "dst": "h12", "size": "40KB", "start": f"{3 * n}us"} for n in range(12)]}
        ],
        "telemetry": {"queues": ["left->right"]},
    }
    fanin.run(hidden, tmp_path / "run", progress=False)
    found = whatif(tmp_path / "run", members=LEAST, only=("buffer × 4", "first window 2"), jobs=1)
    assert found.port == "left->right"
    assert found.helps == ("buffer × 4",)
    assert found.model.how.startswith("the result's own scenario")
    assert found.answered
    assert found.missed == ()
    assert "which all do the same, so that their number says nothing" in found.text, "no seed matters in it"
    # Of a result that reads files the folder does not have, the scenario itself is wanted.
    fanin.run(whatif_truth.CASES[0].scenario(tmp_path), tmp_path / "elsewhere", progress=False)
    with pytest.raises(
        ValueError, match=r"cannot be run from there: topology\.path: .*; accepted: the scenario itself, --scenario FILE"
    ):
        whatif(tmp_path / "elsewhere", members=LEAST)
    with pytest.raises(ValueError, match="start: a result is modelled by its own scenario"):
        whatif(tmp_path / "run", members=LEAST, start="1ms")


def test_bounds_hold_either_way() -> None:
    measured = Seen(100_000.0, 200, 10**9, 10**10, 10**8)
    assert measured.missed(Seen(124_000.0, 161, 10**9, 10**10, 10**8)) == []
    assert measured.missed(Seen(80_100.0, 249, 10**9, 10**10, 10**8)) == []
    assert measured.missed(Seen(126_000.0, 200, 10**9, 10**10, 10**8)) == ["longest queue (126 KB for 100 KB)"]
    assert measured.missed(Seen(79_000.0, 200, 10**9, 10**10, 10**8)) == ["longest queue (79 KB for 100 KB)"]
    assert measured.missed(Seen(100_000.0, 251, 10**9, 7 * 10**9, 10**8)) == [
        "drops (251 for 200)",
        "time to the last data (7 ms for 10 ms)",
    ]
    assert measured.distance(measured) == 0
    assert measured.distance(Seen(126_000.0, 200, 10**9, 10**10, 10**8)) == pytest.approx(0.26 / 0.25)
    few = Seen(None, 3, None, None)
    assert few.missed(Seen(5.0, 12, 1, 1)) == [], "a few drops say little, and what one does not know is not compared"
    assert few.missed(Seen(5.0, 14, 1, 1)) == ["drops (14 for 3)"]


def test_a_view_sees_what_its_samples_would() -> None:
    # Frames of 1000 bytes at once, at 8 Mb/s: one each millisecond leaves.
    frame = pl.DataFrame(
        {
            "time_ps": pl.Series([0] * 5, dtype=pl.UInt64),
            "queue_bytes": [0, 1000, 2000, 3000, 4000],
            "frame_bytes": [1000] * 5,
            "dropped": [False, False, False, False, True],
        }
    )
    exact = packets(frame, 8e6, 1500.0)
    assert (exact.peak_bytes, exact.dropped, exact.lasted_ps) == (4000.0, 1, 0)
    assert exact.above_ps == pytest.approx(2.5e9), "4000 bytes drain to 1500 in 2.5 ms"
    slow = View("samples", 1500.0, 1.0, 10**9).of_port(frame, 8e6, 0.0)
    assert (slow.peak_bytes, slow.dropped, slow.above_ps) == (4000.0, 1, 3 * 10**9)
    later = View("samples", 1500.0, 1.0, 10**9).of_port(frame, 8e6, 0.5)
    assert later.peak_bytes == 3500.0
    largest = View("largest", 1500.0, 1.0, 10**9).of_port(frame, 8e6, 0.5)
    assert largest.peak_bytes == 4000.0


def test_arrivals_through_a_buffer() -> None:
    rows = pl.DataFrame({"time_ps": [0, 0, 0, 0, 10**12], "frame_bytes": [1000] * 5})
    two, none, endless = open_loop.replay(rows, 8e6, 0, [2000, 500, 10**9])
    assert (two.dropped, two.peak_bytes) == (1, 2000)
    assert (none.dropped, none.peak_bytes) == (3, 0)
    assert (endless.dropped, endless.peak_bytes) == (0, 2000)
    assert open_loop.least_buffer(rows, 8e6, 0) == 3000
    assert open_loop.replay(rows, 8e6, 0, [3000])[0].dropped == 0


def test_draws_are_of_what_is_uncertain_alone() -> None:
    model = Scenario(
        {
            "name": "m",
            "topology": {
                "kind": "dumbbell",
                "left": 2,
                "right": 1,
                "host_link": {"rate": "10Gbps", "delay": "1us"},
                "bottleneck": {"rate": "1Gbps", "delay": "48us"},
            },
            "traffic": [{"kind": "flows", "flows": [{"src": "h0", "dst": "h2", "size": "9KB", "start": "5us"}]}],
        }
    )
    uncertain = Uncertain(0.02, (0.5, 2.0), 1_000_000)
    assert drawn(model, uncertain, 0, 1)[0] is model
    rates, trips, starts = [], [], []
    for number in range(1, 60):
        own, _, phase = drawn(model, uncertain, number, 1)
        again = drawn(model, uncertain, number, 1)
        assert own.to_dict() == again[0].to_dict()
        assert 0 <= phase < 1
        link = own["topology.bottleneck"]
        rates.append(int(str(link["rate"])[:-4]))
        trips.append(period(str(link["delay"])) or 0)
        starts.append(period(str(own["traffic[0].flows[0].start"])) or 0)
        assert own["traffic[0].flows[0].size"] == "9KB"
    assert 980_000 <= min(rates) < 985_000
    assert 1_015_000 < max(rates) <= 1_020_000
    assert 24_000_000 <= min(trips) < 28_000_000
    assert 84_000_000 < max(trips) <= 96_000_000
    assert 5_000_000 <= min(starts) < 5_100_000
    assert 5_900_000 < max(starts) <= 6_000_000


def test_what_is_tried_is_sound_on_its_model() -> None:
    model = Scenario(
        {
            "name": "m",
            "topology": {"kind": "dumbbell", "left": 8, "right": 1},
            "switch": {"buffer": {"kind": "static", "per_port": "160KB"}},
            "transport": {"kind": "tcp", "profile": "linux"},
            "traffic": [{"kind": "flows", "flows": [{"src": f"h{n}", "dst": "h8", "size": "90KB"} for n in range(8)]}],
        }
    )
    from fanin.best.candidates import candidates

    good, bad = candidates(model, trials=trials(model, 0.0))
    names = [own.name for own in good]
    assert len(set(names)) == len(names)
    for name in ("buffer × 2", "DCTCP, K = 20 KB", "DCTCP, RED", "DCTCP, S-ECN", "first window 4", "RTO_min 10ms", "pacing"):
        assert name in names, [(own.name, own.reason) for own in bad]
    assert {"pdn", "trimming", "pfc"} <= set(names)
    assert np.all([own.scenario.check().ok for own in good])
    assert [own.name for own in bad] == []
