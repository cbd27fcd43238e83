"""Traces: the numbers of simulated bursts, the same from every kind of file; what is wrong, and how it is said."""

from __future__ import annotations

import gzip
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import fanin
from browsing import Page, needs_browser, open_page
from fanin import report
from fanin.analysis import tables
from fanin.analysis.page import render_analysis
from fanin.cli import app
from test_report import explorer

ROOT = Path(__file__).parents[2]
PORT = "root->tor3"
R = 1e9 * 1518 / 1538
"""What a port of 1 Gb/s drains, in frame bytes [bit/s]."""


@pytest.fixture(scope="module")
def sync(tmp_path_factory: pytest.TempPathFactory) -> fanin.Result:
    """Return 18 synchronised NewReno flows through a port of 1 Gb/s, with stamps and a capture at the receiver."""
    scenario = fanin.Scenario.from_file(ROOT / "scenarios" / "papers" / "s-ecn" / "sync.toml")
    changed = scenario.replace({"duration": "60ms", "telemetry.registers": {}, "telemetry.capture": {"hosts": ["h9"]}})
    return fanin.run(changed, tmp_path_factory.mktemp("sync") / "out", progress=False)


@pytest.fixture(scope="module")
def found(sync: fanin.Result) -> fanin.Analysis:
    return fanin.analyze(sync)


def problems(*arguments: Any, **options: Any) -> str:
    with pytest.raises(fanin.TraceError) as caught:
        fanin.analyze(*arguments, **options)
    assert str(caught.value).splitlines() == [problem["text"] for problem in caught.value.problems]
    return str(caught.value)


def csv_of(sync: fanin.Result, path: Path, *, distinct: bool = False) -> Path:
    """Write the queue of a result as another tool's CSV; `distinct`: of equal times only the first record."""
    queues = sync.queues.unique("time_ps", keep="first", maintain_order=True) if distinct else sync.queues
    queues.select(
        ts=pl.col("time_ps") / 1000,
        ifname=pl.lit("Eth1/1"),
        q="queue_bytes",
        len="frame_bytes",
        five_tuple="flow",
        ce=pl.col("marked").cast(pl.UInt8),
        drop="dropped",
    ).write_csv(path, separator=";", float_precision=3)
    return path


MAP = "time=ts:ns,port=ifname,queue=q,frame=len,flow=five_tuple,marked=ce,dropped=drop"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a CSV with 6 million records."""
    path = tmp_path_factory.mktemp("large") / "a.csv"
    pl.DataFrame({"time_ns": np.arange(6_000_000), "queue_bytes": np.arange(6_000_000) % 7}).write_csv(path)
    return path


class TestNumbers:
    def test_the_burst_is_that_of_the_records(self, sync: fanin.Result, found: fanin.Analysis) -> None:
        burst = found.burst()
        assert burst is not None
        records = sync.queues.filter(pl.col("time_ps").is_between(burst["start_ps"], burst["end_ps"]))
        assert burst["peak_bytes"] == sync.queues["queue_bytes"].max() == found.ports["peak_bytes"][0]
        assert burst["dropped_packets"] == records["dropped"].sum() > 100
        assert burst["marked_packets"] == 0
        assert burst["flows"] == 18
        assert abs(burst["arrived_bytes"] - int(records["frame_bytes"].cast(pl.UInt64).sum())) <= 1518
        assert found.ports.row(0, named=True)["rate_bps"] == 1_000_000_000
        assert found.ports["rate_from"][0] == "result"

    def test_phase_2_grows_at_the_speed_of_the_port(self, found: fanin.Analysis) -> None:
        law = found.laws.row(0, named=True)
        assert (law["law"], law["holds"], law["background"]) == (1, True, "none")
        assert law["bound_bps"] == pytest.approx(R, rel=1e-4)  # a few frames are not full
        assert law["slope_bps"] == pytest.approx(R, rel=0.02)
        assert law["low_bps"] < R < law["high_bps"]
        phases = found.phases.filter(pl.col("burst") == law["burst"])
        assert phases["slope_bps"][0] > 1.3 * R
        judged = phases[int(law["phase"]) : int(law["last_phase"]) + 1]
        length = (judged["end_ps"] - judged["start_ps"]).to_numpy()
        assert np.average(judged["slope_bps"].to_numpy(), weights=length) == pytest.approx(law["slope_bps"])
        row = found.bursts.filter(pl.col("law") == 1).row(0, named=True)
        assert (row["law_holds"], row["slope_bps"], row["words"]) == (True, law["slope_bps"], law["words"])
        assert "Law 1 (slope = port speed) holds" in law["words"]

    def test_culprits_stood_in_the_queue(self, sync: fanin.Result, found: fanin.Analysis) -> None:
        burst = found.burst()
        assert burst is not None
        assert sum(entry["bytes"] for entry in burst["direct"]) + burst["direct_unattributed_bytes"] <= burst["peak_bytes"] + 1518
        direct = found.culprits.filter(pl.col("kind") == "direct", pl.col("burst") == burst["index"])
        assert direct["bytes"].is_sorted(descending=True)
        flows = sync.flows
        for row in direct.iter_rows(named=True):
            flow = flows.filter(pl.col("flow") == row["flow"]).row(0, named=True)
            assert row["name"] == f"{row['flow']}: {flow['src']} → {flow['dst']}"
            assert row["share"] == pytest.approx(row["bytes"] / burst["peak_bytes"], rel=0.01)

    def test_the_window_of_a_figure_holds_the_records(self, sync: fanin.Result, found: fanin.Analysis) -> None:
        _frame, count, reduced = found.series(PORT, 0, 10**12)
        assert (count, reduced) == (sync.queues.height, count > 8000)
        whole, _, reduced = found.series(PORT, 10**9, 2 * 10**9)
        same = sync.queues.filter(pl.col("time_ps").is_between(10**9, 2 * 10**9)).select(whole.columns)
        assert not reduced
        assert whole.cast(dict(same.schema)).equals(same)  # type: ignore[arg-type]


class TestKinds:
    """The same records in any dress give the same report."""

    def test_csv(self, sync: fanin.Result, found: fanin.Analysis, tmp_path: Path) -> None:
        path = csv_of(sync, tmp_path / "a.csv")
        other = fanin.analyze(path, columns=MAP, rate="1Gbps", port="Eth1/1", rtt="200us")
        mine, theirs = other.port("Eth1/1"), found.port(PORT)
        for key in ("records", "first_ps", "last_ps", "peak_bytes", "peak_ps", "bursts_found", "dropped", "burst_ps", "histograms"):
            assert mine[key] == theirs[key], key
        assert mine["rate_from"] == "given"
        assert [b["phases"] for b in mine["bursts"]] == [b["phases"] for b in theirs["bursts"]]
        packed = tmp_path / "b.txt.gz"
        packed.write_bytes(gzip.compress(path.read_bytes()))
        again = fanin.analyze(packed, columns=MAP, rate="1Gbps", port="Eth1/1", rtt="200us")
        assert again.document["ports"] == other.document["ports"]

    @pytest.mark.parametrize("compression", ["zstd", "snappy", "lz4", "gzip", "uncompressed"])
    def test_parquet_of_polars(self, sync: fanin.Result, found: fanin.Analysis, tmp_path: Path, compression: Any) -> None:
        depth = pl.col("queue_bytes").cast(pl.Float64) / 1000
        frame = sync.queues.select(t="time_ps", depth=depth, size="frame_bytes", key=pl.format("flow {}", "flow"))
        frame.write_parquet(tmp_path / "a.parquet", compression=compression)
        columns = "time=t:ps,queue=depth:KB,frame=size,flow=key"
        other = fanin.analyze(tmp_path / "a.parquet", columns=columns, rate="1Gbps").port("a")
        for key in ("records", "first_ps", "peak_bytes", "bursts_found"):
            assert other[key] == found.port(PORT)[key], key

    def test_stamps_and_capture(self, sync: fanin.Result, found: fanin.Analysis, tmp_path: Path) -> None:
        exact = found.burst(PORT, 0)
        assert exact is not None
        stamps = fanin.analyze(sync.path / "stamps.parquet")
        law = stamps.laws.row(0, named=True)
        assert law["slope_bps"] == pytest.approx(R, rel=0.03)
        burst = stamps.burst(PORT, 0)
        assert burst is not None
        assert abs(burst["peak_bytes"] - exact["peak_bytes"]) < 2000
        assert any("ticks of 800ns, queues in units of 8B" in note for note in stamps.notes)
        capture = fanin.analyze(sync.path / "packets.pcapng", port=PORT)
        theirs = capture.burst(PORT, 0)
        assert theirs is not None
        for key in ("start_ps", "peak_ps", "peak_bytes", "phases"):
            assert theirs[key] == burst[key], key
        assert re.fullmatch(r"\d+\.\d+\.\d+\.\d+:\d+ > \d+\.\d+\.\d+\.\d+:\d+ tcp", theirs["direct"][0]["name"])

    def test_a_capture_without_stamps_has_rates(self, sync: fanin.Result, tmp_path: Path) -> None:
        scenario = fanin.Scenario.from_file(ROOT / "scenarios" / "papers" / "s-ecn" / "sync.toml")
        plain = scenario.replace({"duration": "10ms", "telemetry.capture": {"hosts": ["h9"]}})
        run = fanin.run(plain, tmp_path / "out", progress=False)
        alone = tmp_path / "h9.pcapng"
        shutil.copy(run.path / "packets.pcapng", alone)
        text = problems(alone, by="queue")
        assert "h9.pcapng: there is no queue in it: its packets carry no stamps; by the arrival rate bursts can be found" in text
        rates = fanin.analyze(alone, rate="1Gbps", window="1ms", share=0.9)
        assert any("there is no queue in this trace" in note for note in rates.notes)
        port = max(rates.document["ports"], key=lambda entry: entry["records"])
        words = "window 1 ms, more than 90 % of 1 Gb/s"
        assert port["detect"] == {"by": "rate", "window_ps": 1_000_000_000, "share": 0.9, "words": words}
        assert port["peak_bytes"] is None
        assert port["bursts_found"] >= 1
        figure = rates.plot(port["port"])
        assert figure.layout.yaxis.title.text == "Arrivals [Mb/s]"
        assert max(figure.data[0].y) == pytest.approx(R / 1e6, rel=0.02)

    def test_several_files_are_one_trace(self, sync: fanin.Result, found: fanin.Analysis, tmp_path: Path) -> None:
        lines = csv_of(sync, tmp_path / "a.csv", distinct=True).read_text().splitlines()
        head, rows = lines[0], lines[1:]
        third = len(rows) // 3
        for name, part in (
            ("z.csv", rows[:third]),
            ("m.csv", rows[third : 2 * third : 2]),
            ("n.csv", rows[third + 1 : 2 * third : 2]),
        ):
            (tmp_path / name).write_text("\n".join([head, *part]) + "\n")
        (tmp_path / "b.csv").write_text("\n".join([head, *rows[2 * third :]]))
        whole = fanin.analyze(tmp_path / "a.csv", columns=MAP, rate="1Gbps").port()
        parts = fanin.analyze([tmp_path / name for name in ("b.csv", "z.csv", "n.csv", "m.csv")], columns=MAP, rate="1Gbps")
        assert [Path(source["path"]).name for source in parts.document["sources"]] == ["z.csv", "m.csv", "n.csv", "b.csv"]
        assert parts.port() == whole
        assert sum(source["records"] for source in parts.document["sources"]) == len(rows)

    def test_disorder_is_put_in_order_or_reported(self, sync: fanin.Result, tmp_path: Path) -> None:
        lines = csv_of(sync, tmp_path / "a.csv", distinct=True).read_text().splitlines()
        near = lines[:1] + [line for i in range(1, len(lines), 50) for line in reversed(lines[i : i + 50])]
        (tmp_path / "near.csv").write_text("\n".join(near))
        ordered = fanin.analyze(tmp_path / "a.csv", columns=MAP, rate="1Gbps").port()
        mended = fanin.analyze(tmp_path / "near.csv", columns=MAP, rate="1Gbps").port()
        assert re.match(r"\d+ records came after a later one, by .* at most, and were put in order", mended["notes"][0])
        assert mended["bursts"] == ordered["bursts"]
        rows = [f"{1000 + i},{i % 7}" for i in range(140_000)]
        (tmp_path / "far.csv").write_text("\n".join(["time_ns,queue_bytes", *rows, "5,1"]))
        text = problems(tmp_path / "far.csv")
        assert "far.csv: line 140002: is at 5ns, which is before" in text
        assert "--sort sorts the whole trace first" in text
        assert fanin.analyze(tmp_path / "far.csv", sort=True).port()["first_ps"] == 5000


class TestMessages:
    def test_all_settings_that_are_wrong_are_reported_at_once(self, tmp_path: Path) -> None:
        text = problems(tmp_path / "x", rate="10", above="5 kb", by="phase", columns="tme=a", confidence=1.5)
        for part in (
            "rate: '10' has no unit; accepted: a bit rate such as",
            "above: '5 kb' has the unknown unit 'kb'",
            "did you mean 'KB'?",
            "by: 'phase' is nothing that bursts are found by; accepted: queue, rate",
            "--columns: 'tme' is nothing that a column can mean",
            "confidence: is 1.5",
        ):
            assert part in text, part

    def test_files(self, sync: fanin.Result, tmp_path: Path) -> None:
        table = csv_of(sync, tmp_path / "a.csv")
        assert "there is no such file" in problems(tmp_path / "none.csv")
        assert "is a folder, but not a result folder" in problems(tmp_path)
        assert "time: 'ts' has no unit, and neither its name nor its values show one" in problems(table)
        assert "queue: 'qq' is no column of this file; did you mean 'q'?" in problems(table, columns="time=ts:ns,queue=qq")
        assert "port: 'Eth1/2' is no port of this trace; accepted: Eth1/1; did you mean 'Eth1/1'?" in problems(
            table, columns=MAP, port="Eth1/2"
        )
        assert "is a result, which is analysed alone" in problems([sync.path, table], columns=MAP)
        assert "has no effect: the columns of a result are known" in problems(sync, columns=MAP)
        assert "is given twice" in problems([table, table], columns=MAP)
        (tmp_path / "cut.parquet").write_bytes((sync.path / "queues.parquet").read_bytes()[:-5])
        assert "cut.parquet: cannot be read as Parquet: it does not end as a Parquet file does" in problems(
            tmp_path / "cut.parquet"
        )

    def test_guesses_are_said(self, sync: fanin.Result, tmp_path: Path) -> None:
        sync.queues.select(Timestamp_ns=pl.col("time_ps") // 1000, QDepth="queue_bytes").write_csv(tmp_path / "a.csv")
        notes = fanin.analyze(tmp_path / "a.csv").notes
        assert "columns were guessed by their names: time = 'Timestamp_ns' [ns], queue = 'QDepth' [B]" in notes[0] + notes[1]
        assert any("the queue in 'QDepth' is taken as bytes" in note for note in notes)

    def test_a_port_or_burst_that_is_not_there(self, found: fanin.Analysis) -> None:
        with pytest.raises(ValueError, match=re.escape(f"there is no port 'x' in this trace; there are: {PORT}")):
            found.plot("x")
        with pytest.raises(ValueError, match="has no burst 99 in this report"):
            found.plot(burst=99)

    def test_the_command_line_says_the_same_line_by_line(self, tmp_path: Path) -> None:
        done = CliRunner().invoke(app, ["analyze", str(tmp_path / "x"), "--rate", "10", "--above", "x"])
        assert done.exit_code == 2
        lines = done.stderr.splitlines()
        assert lines[0].startswith("error: above: 'x' is not a number followed by a unit")
        assert lines[1].startswith("error: rate: '10' has no unit")
        done = CliRunner().invoke(app, ["analyze", str(tmp_path / "x"), "-o", "y.txt"])
        message = "error: --out y.txt: cannot be written; names that end in .html and .json are\n"
        assert (done.exit_code, done.stderr) == (2, message)

    def test_progress_may_end_it(self, large: Path) -> None:
        seen: list[fanin.AnalysisProgress] = []

        def stop(state: fanin.AnalysisProgress) -> None:
            seen.append(state)
            raise RuntimeError("enough")

        with pytest.raises(RuntimeError, match="enough"):
            fanin.analyze(large, progress=stop)
        assert len(seen) == 1
        assert 0 < seen[0]["done"] < 1
        assert 0 < seen[0]["records"] < 6_000_000

    def test_ctrl_c_ends_it_at_once(self, large: Path) -> None:
        text = f"""import fanin, sys
try:
    fanin.analyze({str(large)!r}, sort=True, progress=lambda state: print("on", flush=True))
except KeyboardInterrupt:
    sys.exit(130)"""
        with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True) as running:
            assert running.stdout is not None
            assert running.stdout.readline() == "on\n"
            began = time.monotonic()
            running.send_signal(signal.SIGINT)
            running.communicate(timeout=60)
        assert running.returncode == 130
        assert time.monotonic() - began < 10

    def test_memory_does_not_grow_with_the_trace(self, tmp_path: Path) -> None:
        def peak(rows: int) -> int:
            number = pl.int_range(rows, dtype=pl.Int64, eager=True)
            frame = pl.DataFrame({"t": number * 1_230_400, "q": number % 400 * 1518, "flow": number % 50, "len": number * 0 + 1518})
            frame.write_parquet(tmp_path / "a.parquet", row_group_size=1 << 17)
            text = f"""import fanin
from fanin.analysis.page import render_analysis
columns = "time=t:ps,queue=q,flow=flow,frame=len"
found = fanin.analyze({str(tmp_path / "a.parquet")!r}, columns=columns, rate="10Gbps", max_bursts=100)
assert found.port()["records"] == {rows}
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))"""
            done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
            return int(done.stdout)

        small, large = peak(300_000), peak(6_000_000)
        assert large - small < 30_000, f"{small} KiB for 300,000 records, {large} KiB for 6,000,000"


class TestOutput:
    def test_the_same_bytes_twice_and_from_the_command_line(self, sync: fanin.Result, tmp_path: Path) -> None:
        first = fanin.analyze(sync, top=5)
        assert fanin.analyze(sync.path, top=5).to_json(tmp_path / "a.json") == first.to_json()
        done = CliRunner().invoke(app, ["analyze", str(sync.path), "--json", "-o", str(tmp_path / "b.json")])
        assert done.exit_code == 0, done.stderr
        assert done.stdout == first.to_json() == (tmp_path / "b.json").read_text() == (tmp_path / "a.json").read_text()
        assert first.report(tmp_path / "a.html").read_bytes() == fanin.analyze(sync, top=5).report(tmp_path / "b.html").read_bytes()
        first.save_pdf(tmp_path / "a.pdf")
        fanin.analyze(sync, top=5).save_pdf(tmp_path / "b.pdf")
        assert (tmp_path / "a.pdf").read_bytes() == (tmp_path / "b.pdf").read_bytes()

    def test_the_tables_of_the_command_line(self, sync: fanin.Result, found: fanin.Analysis) -> None:
        done = CliRunner().invoke(app, ["analyze", str(sync.path), "--top", "2"], env={"COLUMNS": "160"})
        assert done.exit_code == 0
        burst = found.burst()
        assert burst is not None
        text = " ".join(done.stdout.split())
        assert f"{PORT} {sync.queues.height:,}" in text
        for row in tables.burst_rows(found.port(), 1)[1] + tables.phase_rows(burst)[1] + tables.culprit_rows(burst, 2)[1]:
            assert " ".join(" ".join(row).split()) in text
        assert " ".join(tables.law_line(burst).split()) in text

    def test_the_figure_shows_phases_slopes_and_law(self, found: fanin.Analysis) -> None:
        burst = found.burst()
        assert burst is not None
        figure = found.plot()
        assert len(figure.layout.shapes) == len(burst["phases"])
        fits = [trace for trace in figure.data if trace.name.startswith("phase ")]
        for trace, phase in zip(fits, burst["phases"], strict=True):
            slope = (trace.y[1] - trace.y[0]) * 1e3 * 8 / ((trace.x[1] - trace.x[0]) * 1e-3)
            # A line keeps its slope within the queues that were found, but for one that is steeper than they are apart.
            assert slope == pytest.approx(phase["slope_bps"], rel=0.03, abs=1e5)
        reference = next(trace for trace in figure.data if trace.name.startswith("R: "))
        drawn_slope = (reference.y[1] - reference.y[0]) * 1e3 * 8 / ((reference.x[1] - reference.x[0]) * 1e-3)
        assert drawn_slope == pytest.approx(R, rel=1e-4)
        assert tables.law_line(burst) in figure.layout.meta["note"]
        dropped = next(trace for trace in figure.data if trace.name == "dropped")
        assert len(dropped.x) == burst["dropped_packets"]

    def test_a_notebook_sees_the_same(self, found: fanin.Analysis) -> None:
        text = found._repr_html_()
        assert "18" in text
        assert "Law 1 (slope = port speed) holds" in text
        assert found.port()["bursts_found"] == 1
        assert repr(found) == "<fanin.Analysis: 1 port, 1 burst>"

    def test_the_page_refers_to_nothing(self, found: fanin.Analysis) -> None:
        page = Page(render_analysis(found))
        assert (page.references, page.handlers) == ([], [])
        assert {"answer", "overview", "burst", "bursts-list"} <= page.ids

    def test_what_files_say_is_text(self, tmp_path: Path) -> None:
        evil = "</script><img src=x onerror=alert(1)>"
        (tmp_path / "a.csv").write_text(
            "time_ns,port,queue_bytes,flow\n" + "".join(f"{i},{evil},{90_000 * (i % 2)},{evil}\n" for i in range(50))
        )
        text = render_analysis(fanin.analyze(tmp_path / "a.csv"))
        assert "<img" not in text
        assert Page(text).handlers == []

    def test_the_report_of_a_run_has_the_bursts_of_watched_ports(self, sync: fanin.Result, found: fanin.Analysis) -> None:
        text = report.render(sync)
        assert "Bursts, the highest first; a row opens its burst" in text
        burst = found.burst()
        assert burst is not None
        view = explorer(text)["views"][0]
        assert (view["index"], view["start"], view["end"]) == (burst["index"], burst["start_ps"], burst["end_ps"])
        assert len(view["phases"]) == len(burst["phases"]) > 0


def test_the_lines_of_the_page_are_those_of_the_file() -> None:
    page = (ROOT / "docs" / "analyze.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\[(examples/\S+\.csv)\].*?```\n(.*?)```", page, re.DOTALL | re.MULTILINE)
    assert [name for name, _ in shown] == ["examples/traces/switch7.csv"]
    for name, begin in shown:
        assert begin.count("\n") > 1
        assert (ROOT / name).read_text(encoding="utf-8").startswith(begin), name
    commands = re.findall(r"`fanin (analyze examples/[^`]*)`", page)
    assert commands
    for words in commands:
        arguments = shlex.split(words)
        assert CliRunner().invoke(app, [arguments[0], str(ROOT / arguments[1]), *arguments[2:], "-q"]).exit_code == 0


def test_the_traces_of_the_examples_are_what_their_scripts_write(tmp_path: Path) -> None:
    for script in ("switch_telemetry.py", "switch_feeds.py"):
        command = [sys.executable, str(ROOT / "examples" / script), str(tmp_path)]
        subprocess.run(command, check=True, capture_output=True, timeout=300)
    for file in sorted((ROOT / "examples" / "traces").iterdir()):
        assert _content(tmp_path / file.name) == _content(file), file.name


def _content(file: Path) -> bytes:
    """What is in a file, but for the hash of the scenario in a capture's comment, which every new parameter changes."""
    data = file.read_bytes()
    return re.sub(rb"scenario_hash [0-9a-f]{64}", b"scenario_hash", gzip.decompress(data)) if file.suffix == ".gz" else data


@needs_browser
def test_the_page_in_a_browser(browser: Any, found: fanin.Analysis, tmp_path: Path) -> None:
    page = found.report(tmp_path / "a.html")
    open_page(browser, page)
    burst = found.burst()
    assert burst is not None
    panel = browser.execute_script(
        "return document.getElementById('burst').fanin.spec.panels[0].traces.filter(t => t.group === 'fit')"
    )
    fits = [(trace["x"], trace["y"]) for trace in panel]
    for (x, y), phase in zip(fits, burst["phases"], strict=True):
        assert x == pytest.approx([phase["start_ps"] / 1e9, phase["end_ps"] / 1e9])
        assert y == pytest.approx([phase["start_bytes"] / 1e3, phase["end_bytes"] / 1e3], rel=1e-3)
    assert browser.get_log("browser") == []


def test_a_port_without_a_burst_says_what_would_show_one(sync: fanin.Result, tmp_path: Path) -> None:
    found = fanin.analyze(sync, above="2MB")
    (line, nearest) = tables.detect_lines(found.document["ports"], 3)
    assert line == "A burst: queue above 2 MB, until 500 KB or less."
    match = re.fullmatch(
        rf"{PORT}: no burst: the largest queue was \S+ KB at \S+ ms, and .* above 2 MB; --above (\S+) shows it\.", nearest
    )
    assert match is not None, nearest
    assert fanin.analyze(sync, above=match[1]).port()["bursts_found"] > 0
    assert found.port()["nothing"]["value"] == match[1]
    page = found.report(tmp_path / "a.html").read_text(encoding="utf-8")
    assert nearest.split(";")[0].split(": ", 1)[1] in page
    done = CliRunner().invoke(app, ["analyze", str(sync.path), "--above", "2MB", "--idle-before"])
    assert nearest in done.stdout.splitlines()
    assert fanin.analyze(sync, idle_before=True).document["settings"]["idle_before"] is True
