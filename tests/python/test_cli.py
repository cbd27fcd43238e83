"""The command line: what it prints, what it writes, how it ends."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
import pytest
from rich.console import Console
from typer.main import get_command
from typer.testing import CliRunner
from typer.testing import Result as Outcome

import fanin
from fake_result import write_result
from fanin import _core, benchmark
from fanin.cli import app
from fanin.cli.output import show_summary
from fanin.results import runner
from fanin.results.progress import Bar, describe, fraction, last_arrival_ps, remaining_s
from fanin.tables import counters, overview
from fanin.text import terminal


def call(*arguments: str | Path) -> Outcome:
    return CliRunner(env={"COLUMNS": "160", "NO_COLOR": "1"}).invoke(app, [str(argument) for argument in arguments])


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


@pytest.fixture
def scenario(tmp_path: Path, core: ModuleType) -> Path:
    path = tmp_path / "demo.toml"
    path.write_text('name = "demo"\nseed = 3\n')
    return path


def test_run_writes_the_folder_and_prints_the_tables(scenario: Path, tmp_path: Path) -> None:
    done = call("run", scenario, "-o", tmp_path / "out")
    assert f"  fingerprint {fanin.load(tmp_path / 'out').fingerprint}\n" in done.stdout
    assert done.exit_code == 0, done.output
    result = fanin.load(tmp_path / "out")
    for text in (
        "Flows complete",
        "Slowdown median",
        "Queries complete",
        "Goodput",
        "Drops",
        "ECN marks",
        "Retransmissions",
        "Timeouts",
    ):
        assert text in done.stdout
    assert re.search(r"Largest queue +\S+ KB +\d+ packets at leaf0->h0", done.stdout)
    assert len(re.findall(r"^ *10 KB – 100 KB +\d+ ", done.stdout, re.MULTILINE)) == 2
    assert f"result: {tmp_path / 'out'}" in done.stdout
    assert result.complete
    assert "1/3 flows" in done.stderr, "progress in a log"


def printed(width: int, show: Callable[[], None]) -> list[str]:
    """What a function prints to a terminal of this width."""
    text = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fanin.text.terminal.console", lambda: Console(file=text, width=width))
        show()
    return [line.rstrip() for line in text.getvalue().splitlines()]


@pytest.mark.parametrize("width", [40, 80, 120, 10_000])
def test_no_number_is_cut_off_and_no_column_left_out(folder: Path, width: int) -> None:
    result = fanin.load(folder)
    port = {"port": "switch0->h40", "max_bytes": 511_900, "max_packets": 390_123, "tx_bytes": 526.8e6}
    result.summary["ports"] = [{**port, "utilisation": 0.882, "marks": 233_842, "drops": 123_456}]
    lines = printed(width, lambda: show_summary(result))
    shown = [line for line in lines if not line.startswith(("result: ", "flow"))]
    assert max(map(len, shown)) <= width
    text = "\n".join(shown)
    assert "…" not in text
    cells = ["switch0->h40", "511.9 KB", "390,123", "526.8 MB", "88.2 %", "233,842", "123,456"]
    numbers = [
        *cells,
        *(fact.text for fact in overview.facts(result.summary, result.manifest)),
        *(cell for row in overview.fct_rows(result.summary)[1] for cell in row),
        *(str(row[1]) for group in counters.groups(result.summary) for row in counters.rows(group, zeros=False)),
    ]
    for number in numbers:
        assert re.search(rf"(^|\s){re.escape(number)}($|\s)", text, re.MULTILINE), number


@pytest.mark.parametrize("environment", [{}, {"COLUMNS": "60"}, {"NO_COLOR": "1"}, {"TERM": "dumb"}, {"FORCE_COLOR": "1"}])
def test_in_a_pipe_tables_have_their_full_width(folder: Path, environment: dict[str, str]) -> None:
    code = "import sys, fanin; from fanin.cli.output import show_summary; show_summary(fanin.load(sys.argv[1]))"
    call = [sys.executable, "-c", code, str(folder)]
    done = subprocess.run(call, capture_output=True, text=True, check=True, env=os.environ | environment)
    text = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)
    heads = [line.split() for line in text.splitlines()]
    assert ["Port", "Largest", "queue", "Packets", "Sent", "Utilisation", "Marks", "Drops"] in heads
    assert ("\x1b[" in done.stdout) is ("FORCE_COLOR" in environment)


def test_wide_names_and_words_are_wrapped_not_cut() -> None:
    flow = "[2001:db8:0:1234:5678:9abc:def0:1234]:40000 > [2001:db8::25]:80 tcp"
    rows = [[flow, "1,234,567", "2026-11-22T17:30:00.123456789Z", "words that go on and on for more than a line"]]
    head = ["Flow", "Packets", "Time (UTC)", "Note"]
    for width in (40, 60, 80, 120, 10_000):
        out = io.StringIO()
        terminal.table(Console(file=out, width=width), "Flows", head, rows, words={3})
        lines = [line.rstrip() for line in out.getvalue().splitlines()]
        assert max(map(len, lines)) <= width
        assert all(any(number in line for line in lines) for number in rows[0][1:3]), out.getvalue()
        assert all(any(name in line for line in lines) for name in head)
        assert all(any(part in line for line in lines) for part in ("40000", "[2001:db8::25]:80", "words", "line"))


def test_json_is_one_object_and_nothing_else(scenario: Path, tmp_path: Path) -> None:
    done = call("run", scenario, "-o", tmp_path / "out", "--json")
    assert json.loads(done.stdout) == fanin.load(tmp_path / "out").summary
    assert done.stderr == ""


def test_quiet_prints_nothing(scenario: Path, tmp_path: Path) -> None:
    done = call("run", scenario, "-o", tmp_path / "out", "--quiet", "--set", "seed=0")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")


def test_warnings_are_shown_and_do_not_stop_the_run(scenario: Path, tmp_path: Path) -> None:
    done = call("run", scenario, "-o", tmp_path / "out", "--set", "seed=0", "--report")
    assert done.exit_code == 0
    assert f"warning: {scenario}: seed: is zero" in done.stderr
    assert (tmp_path / "out" / "report.html").is_file()


@pytest.mark.parametrize(
    ("setting", "key", "value"),
    [
        ("seed=7", "seed", 7),
        ('switch.marking.k="30 packets"', "switch", {"marking": {"k": "30 packets"}}),
        ("switch.marking.k=30 packets", "switch", {"marking": {"k": "30 packets"}}),
        ("switch.marking={kind = 'red'}", "switch", {"marking": {"kind": "red"}}),
        ("name=a=b", "name", "a=b"),
    ],
)
def test_settings_override_the_file(scenario: Path, tmp_path: Path, setting: str, key: str, value: object) -> None:
    done = call("run", scenario, "-o", tmp_path / "out", "--set", setting)
    assert done.exit_code == 0, done.output
    assert fanin.load(tmp_path / "out").scenario[key] == value


def test_bad_scenarios_are_refused_at_once_with_one_line_each(scenario: Path, tmp_path: Path) -> None:
    scenario.write_text("sed = 3\nseed = 5000\n")
    done = call("run", scenario, "-o", tmp_path / "out")
    assert done.exit_code == 2
    assert done.stderr.splitlines() == [
        f"error: {scenario}: sed: 3 is not a known key; accepted: name, seed, switch, traffic; did you mean 'seed'?",
        f"error: {scenario}: seed: 5000 is out of range; accepted: from 0 to 1000",
        "read on: docs/scenario.md, or fanin schema --reference",
    ]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "absent.toml", "-o", "out"], "absent.toml: No such file or directory"),
        (["check", "absent.toml"], "absent.toml: No such file or directory"),
        (["run", "demo.toml", "-o", "out", "--set", "seed"], "--set seed: is not of the form KEY=VALUE"),
        (["run", "demo.toml", "-o", "out", "--set", "seed.x=1"], "'seed' is the value 3"),
        (["report", "absent"], "absent: there is no such folder"),
        (["convert", "absent"], "absent: there is no such folder"),
        (["bench", "W9"], "there is no workload W9; there are W1, W2-128"),
        (["bench", "--features", "quick"], "there is no feature quick; there are drop-tail, dequeue"),
        (["bench", "--features", "--start"], "--features and --start exclude each other"),
        (["bench", "--features", "--peers", "--scale", "0.5"], "--scale, --peers: without effect beside --features"),
        (["bench", "--start", "--no-instructions"], "--no-instructions: without effect beside --start"),
        (["bench", "--start", "W1"], "--start takes no workloads"),
    ],
)
def test_bad_input_ends_with_two_and_a_line(
    scenario: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(scenario.parent)
    done = call(*arguments)
    assert done.exit_code == 2
    assert done.stderr.startswith("error: ")
    assert message in done.stderr
    assert "Traceback" not in done.output


def test_an_earlier_result_is_only_replaced_on_request(scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert call("run", scenario, "-o", out).exit_code == 0
    (out / "notes.txt").write_text("mine")
    before = (out / "manifest.json").read_bytes()
    refused = call("run", scenario, "-o", out, "--set", "seed=9")
    assert refused.exit_code == 2
    assert "holds an earlier result; --force" in refused.stderr
    assert (out / "manifest.json").read_bytes() == before
    wrong = call("run", scenario, "-o", out, "--force", "--set", "seed=5000")
    assert wrong.exit_code == 2
    assert (out / "manifest.json").read_bytes() == before, "a wrong scenario costs no earlier result"
    assert call("run", scenario, "-o", out, "--force", "--set", "seed=9").exit_code == 0
    assert fanin.load(out).manifest["seed"] == 9
    assert (out / "notes.txt").read_text() == "mine"


def test_another_folder_is_never_touched(scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "thesis"
    out.mkdir()
    (out / "chapter1.tex").write_text("years of work")
    done = call("run", scenario, "-o", out, "--force")
    assert done.exit_code == 2
    assert "is not empty and holds no earlier result (chapter1.tex" in done.stderr
    assert names(out) == ["chapter1.tex"]
    (tmp_path / "file").write_text("")
    assert "is a file, not a folder" in call("run", scenario, "-o", tmp_path / "file").stderr
    assert "cannot be made: Not a directory" in call("run", scenario, "-o", tmp_path / "file" / "out").stderr


def test_what_a_killed_run_left_is_nobodys(scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    left_over = [".fanin-probe-4711", ".fanin-part-4711-0.csv", ".ballast", ".manifest.json.new"]
    for name in left_over:
        (out / name).write_text("half")
    done = call("run", scenario, "-o", out)
    assert done.exit_code == 0, done.output
    assert not set(left_over) & set(names(out))
    (tmp_path / "other").mkdir()
    for name in (".fanin-probe-4711", "mine.csv"):
        (tmp_path / "other" / name).write_text("")
    assert "holds no earlier result (mine.csv" in call("run", scenario, "-o", tmp_path / "other", "--force").stderr


@pytest.mark.parametrize("allocates", [True, False])
def test_a_full_disk_is_found_before_the_run(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allocates: bool
) -> None:
    def full(*_: int) -> None:
        raise OSError(28, "No space left on device")

    def unable(*_: int) -> None:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr("os.posix_fallocate", full if allocates else unable)
    monkeypatch.setattr("os.fsync", full)
    done = call("run", scenario, "-o", tmp_path / "out")
    assert done.exit_code == 1
    assert "cannot be written: No space left on device" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "status", "message"),
    [
        ("interrupted", 130, "interrupted; what was simulated until then is in"),
        ("stuck", 1, "error: no progress since 3 ms: flow 7 waits for an ACK"),
        ("full", 1, "No space left on device"),
        ("panic", 1, "a defect in Fanin ended the run; please report it with the scenario: index out of bounds; seed 3"),
    ],
)
def test_a_run_that_ends_early_keeps_what_it_has(scenario: Path, tmp_path: Path, name: str, status: int, message: str) -> None:
    done = call("run", scenario, "-o", tmp_path / "out", "--set", f"name={name}")
    assert done.exit_code == status
    assert message in done.stderr
    assert str(tmp_path / "out") in done.stderr
    assert "Traceback" not in done.output
    assert fanin.load(tmp_path / "out").status == "partial"


def test_check_says_everything(scenario: Path) -> None:
    good = call("check", scenario)
    assert good.exit_code == 0
    assert re.search(r": valid \(scenario hash [0-9a-f]{16}\)$", good.stdout.strip())
    assert "1 warning" in call("check", scenario, "--set", "seed=0").stdout
    bad = call("check", scenario, "--set", "seed=5000", "--json")
    assert bad.exit_code == 2
    reported = json.loads(bad.stdout)
    assert reported["ok"] is False
    assert reported["problems"][0]["path"] == "seed"
    scenario.write_text("seed = = 1")
    broken = call("check", scenario)
    assert broken.exit_code == 2
    assert f"error: {scenario}: line 1: is not toml" in broken.stderr


def test_report_prints_where_it_is(tmp_path: Path, folder: Path) -> None:
    done = call("report", folder, "-o", tmp_path / "page.html")
    assert done.stdout.strip() == str(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert names(tmp_path) == ["page.html"]
    assert call("report", folder, "-o", tmp_path / "no" / "page.html").exit_code == 2


def test_aborted_flows_are_named(scenario: Path, tmp_path: Path) -> None:
    one = {"flow": 3, "src": "h0", "dst": "h9", "size_bytes": 1000, "reason": "retries_exhausted"}
    result = runner.run(scenario, tmp_path / "out", progress=False)

    def said(**more: Any) -> list[str]:
        return overview.aborted_lines({**result.summary, **more})

    assert said() == []
    assert said(flows={"aborted": 1}, aborted=[one]) == ["1 flow aborted: flow 3 h0 -> h9, 1000 B: retries_exhausted"]
    assert said(flows={"aborted": 1}) == ["1 flow aborted:", "  which: flows.parquet, status = aborted"]
    many = said(flows={"aborted": 1200}, aborted=[one, {**one, "flow": 4}])
    assert many[0] == "1,200 flows aborted:"
    assert many[2:] == ["  flow 4 h0 -> h9, 1000 B: retries_exhausted", "  and 1,198 more: flows.parquet, status = aborted"]
    result.summary.update(aborted=[one], flows={"total": 3, "complete": 2, "aborted": 1})
    text = "\n".join(printed(80, lambda: show_summary(result)))
    assert "1 flow aborted: flow 3 h0 -> h9, 1000 B: retries_exhausted\nresult: " in text


@pytest.mark.parametrize(("table", "key"), [("queues", "telemetry.queues"), ("ports", "telemetry.sample")])
def test_a_table_that_a_run_did_not_write_is_not_converted(tmp_path: Path, table: str, key: str) -> None:
    out = write_result(tmp_path / "out", bursts=1, manifest={"files": {}})
    (out / f"{table}.parquet").unlink()
    done = call("convert", out, "--table", "flows", "--table", table, "-o", tmp_path / "tables")
    assert done.exit_code == 2
    assert f"{table}.parquet: this run " in done.stderr
    assert f"; {key} " in done.stderr
    assert not (tmp_path / "tables").exists()
    assert call("convert", out, "-o", tmp_path / "tables").exit_code == 0
    assert f"{table}.csv" not in names(tmp_path / "tables")


@pytest.mark.parametrize("kind", ["csv", "jsonl", "arrow"])
def test_convert_loses_nothing(tmp_path: Path, folder: Path, kind: str) -> None:
    done = call("convert", folder, "--to", kind, "-o", tmp_path / "tables")
    assert done.exit_code == 0, done.output
    result = fanin.load(folder)
    readers: dict[str, Any] = {"csv": pl.read_csv, "jsonl": pl.read_ndjson, "arrow": pl.read_ipc}
    read = readers[kind]
    for name in ("flows", "queries", "ports", "queues", "drops"):
        frame: pl.DataFrame = getattr(result, name)
        back = (
            read(tmp_path / "tables" / f"{name}.{kind}", schema=frame.schema)
            if kind == "csv"
            else read(tmp_path / "tables" / f"{name}.{kind}")
        )
        assert back.cast(dict(frame.schema)).equals(frame), name
    again = call("convert", folder, "--to", kind, "-o", tmp_path / "tables")
    assert again.exit_code == 2
    assert "there already; --force replaces" in again.stderr
    assert call("convert", folder, "--to", kind, "-o", tmp_path / "tables", "--force", "--table", "flows").exit_code == 0
    unknown = call("convert", folder, "--table", "flow")
    assert unknown.exit_code == 2
    assert "there is no table 'flow'" in unknown.stderr


def test_schema_and_version() -> None:
    assert json.loads(call("schema").stdout)["$schema"].startswith("https://json-schema.org/")
    assert call("schema", "--reference").stdout == _core.reference()
    assert call("schema", "--python").stdout == _core.python_types()
    assert call("schema", "--counters").stdout == _core.counters_page()
    assert call("schema", "--python", "--reference").exit_code == 2
    version = _core.version()
    assert call("version").stdout == f"{version}\n"
    told = call("--version").stdout
    assert re.fullmatch(rf"fanin {re.escape(version)} \(\w+-\w+, (release|debug, with checks); Python \d+\.\d+\.\d+\)\n", told), (
        told
    )
    assert fanin.__version__ == version


COMMANDS: dict[str, Any] = getattr(get_command(app), "commands")  # noqa: B009 (a group's, which its type does not say)


def test_help_names_every_command_and_the_exit_status() -> None:
    text = call("--help").stdout
    for command in COMMANDS:
        assert re.search(rf"^│ {command} ", text, re.MULTILINE)
    assert "130 interrupted" in call("run", "--help").stdout


@pytest.mark.parametrize("command", [None, *sorted(COMMANDS)])
def test_help_has_an_example_and_plain_names(command: str | None) -> None:
    text = call(*([command] if command else []), "--help").stdout
    assert call(*([command] if command else []), "-h").stdout == text
    assert not re.search(r"<\w|\{", text), text
    examples = re.findall(r"^ Example: (?:.* \| )?fanin (.+?)\s*$", text, re.MULTILINE)
    assert examples
    for example in examples:
        name, *words = shlex.split(example)
        assert command in (None, name)
        options = {option for parameter in COMMANDS[name].params for option in parameter.opts}
        assert all(word in options for word in words if word.startswith("-") and word != "-"), example


def test_the_manual_page_has_every_command_and_option() -> None:
    page = call("man").stdout
    read = page.replace("\\-", "-")
    sections = re.split(r"^\.S[SH] ", read, flags=re.MULTILINE)
    for name, command in COMMANDS.items():
        (section,) = [text for text in sections if text.startswith(f"fanin {name} ") or text.startswith(f"fanin {name}\n")]
        for parameter in command.params:
            for option in [*parameter.opts, *parameter.secondary_opts]:
                assert option in section or not option.startswith("-"), (name, option)
        assert "Read on: " in section
    assert page.isascii()
    groff = shutil.which("groff")
    if groff:
        done = subprocess.run([groff, "-man", "-ww", "-Tutf8"], input=page, capture_output=True, text=True, check=False, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")


def test_bench_measures_each_workload_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []
    numbers = ("packet_hops", "setup_s", "cpu_s", "wall_s", "peak_rss_mb", "sim_s", "bytes_per_host")

    def pretend(command: list[str]) -> dict[str, float]:
        commands.append(command)
        return {**dict.fromkeys(numbers, 1.0), "hops_per_cpu_s": 1e7}

    monkeypatch.setattr(benchmark, "_run", pretend)
    done = call("bench", "W1", "W3", "--json", "--no-instructions", "--scale", "0.5")
    assert done.exit_code == 0, done.output
    measured = json.loads(done.stdout)
    assert list(measured) == ["W1", "W3"]
    assert set(measured["W1"]) >= {
        "packet_hops", "setup_s", "cpu_s", "wall_s", "hops_per_cpu_s", "instructions_per_hop", "peak_rss_mb", "sim_s", "peers",
    }  # fmt: skip
    assert measured["W1"]["instructions_per_hop"] is None
    assert [command[-2:] for command in commands] == [["W1", "0.5"], ["W3", "0.5"]]
    assert "10.00" in call("bench", "W1", "--no-instructions").stdout


def test_a_failing_benchmark_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fanin._core.__file__", "/nowhere/_core.so")
    done = call("bench", "W1", "--no-instructions")
    assert done.exit_code == 2
    assert "benchmark W1 1.0: did not run" in done.stderr


HALFWAY: fanin.ProgressState = {
    "sim_ps": 5 * 10**8,
    "end_ps": 10**9,
    "events": 1,
    "packet_hops": 4_000_000,
    "flows_done": 30,
    "flows_total": 100,
    "wall_s": 2.0,
}


def test_progress_says_what_is_known() -> None:
    assert fraction(HALFWAY) == 0.5
    assert remaining_s(HALFWAY, 0.5) == 2.0
    assert describe(HALFWAY, 0.5) == "500 µs / 1 ms · 30/100 flows · 2.0 M hops/s · ETA 0:02"
    open_end: fanin.ProgressState = {**HALFWAY, "end_ps": None, "flows_total": None}
    assert fraction(open_end) is None
    assert remaining_s(open_end, None) is None
    assert describe(open_end, None) == "500 µs · 30 flows · 2.0 M hops/s"
    assert fraction(open_end, 2 * 10**9) == 0.25
    assert fraction(open_end, 10**8) == 0.99
    assert fraction(HALFWAY, 10**8) == 0.5, "what is known counts more"
    assert describe(HALFWAY, 1e-4).endswith("ETA 5:33:18")


@pytest.mark.parametrize(
    ("stops", "last"),
    [(["750ms", "1s"], 10**12), (["1.5us"], 1_500_000), (["3 ns"], 3000), (["1s", None], None), ([], None), (["soon"], None)],
)
def test_the_last_arrival_is_read_from_the_scenario(stops: list[str | None], last: int | None) -> None:
    assert last_arrival_ps({"traffic": [{"stop": stop} for stop in stops]}) == last


def test_a_terminal_gets_a_bar() -> None:
    console = Console(force_terminal=True, file=io.StringIO(), width=120)
    with Bar(console) as bar:
        bar(HALFWAY)
    drawn = console.file.getvalue()  # type: ignore[attr-defined]
    assert "30/100 flows" in drawn
    assert "100 %" in drawn, "a run that has ended is done"


def test_python_and_command_line_give_the_same(scenario: Path, tmp_path: Path) -> None:
    assert call("run", scenario, "-o", tmp_path / "cli").exit_code == 0
    result = runner.run(scenario, tmp_path / "api", progress=False)
    assert result.summary == fanin.load(tmp_path / "cli").summary
    assert result.manifest == fanin.load(tmp_path / "cli").manifest


def test_run_takes_what_stands_for_a_scenario(scenario: Path) -> None:
    seen: list[fanin.ProgressState] = []
    result = fanin.run({"seed": 5}, progress=seen.append)
    assert result.manifest["seed"] == 5
    assert [state["flows_done"] for state in seen] == [1, 2, 3]
    assert fanin.run(fanin.Scenario.from_file(scenario), progress=False).manifest["seed"] == 3
    with pytest.raises(fanin.ScenarioError):
        fanin.run({"sed": 5}, progress=False)


def test_overwriting_needs_a_word(core: ModuleType, tmp_path: Path) -> None:
    write_result(tmp_path / "out", bursts=1)
    with pytest.raises(fanin.OutputError, match="overwrite=True"):
        fanin.run({"seed": 1}, tmp_path / "out", progress=False)
    assert fanin.run({"seed": 8}, tmp_path / "out", progress=False, overwrite=True).manifest["seed"] == 8
