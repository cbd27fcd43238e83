"""`fanin conform`: programs that answer as the reference does, otherwise, too little, too much, never, or nonsense."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import fanin
from fanin.cli import app
from fanin.conformance import conform

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "examples" / "conform" / "s_ecn.c"
PAIRS = {"cases": ["pairs"], "rates": ["10Gbps"]}
"""244 rows, one sequence."""


def compiled(source: Path, out: Path) -> str:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler: apt-get install gcc")
    subprocess.run([compiler, "-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-o", str(out), str(source)], check=True)
    return str(out)


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> str:
    return compiled(SOURCE, tmp_path_factory.mktemp("conform") / "s_ecn")


def asked(*arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, ["conform", *arguments])


@pytest.mark.parametrize(
    ("settings", "rows"),
    [
        ([], 18_280),
        (["at=dequeue"], 36_560),
        (["registers.after_mark=reset", "registers.credit=0B"], 18_280),
        (["registers.clock=2.5ns", "k=3KB", "seed=7"], 16_000),
    ],
    ids=["default", "dequeue", "reset", "clock"],
)
def test_the_example_in_c_conforms(example: str, settings: list[str], rows: int) -> None:
    done = asked("s-ecn", *(word for setting in settings for word in ("--set", setting)), "--json", example)
    assert (done.exit_code, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert (found["schema"], found["ok"], found["first"], found["failure"]) == ("conform/1", True, None, None)
    assert found["answered"] == found["rows"] >= rows
    assert (found["sequences"], set(found["different"].values())) == (90, {0})


def test_what_conforms_is_said_by_case(example: str) -> None:
    done = asked("s-ecn", "--case", "pairs", "--case", "random", "--rate", "10Gbps", example)
    assert done.exit_code == 0
    assert [line.split() for line in done.stdout.splitlines() if re.match(r" (pairs|random) ", line)] == [
        ["pairs", "1", "244", "0"],
        ["random", "1", "400", "0"],
    ]
    assert "conforms: 644 rows in 2 sequences, of each by_slope, by_k, mark, interval," in done.stdout


def test_a_comparison_that_is_wrong_by_one_is_shown_with_its_registers(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.c"
    wrong.write_text(SOURCE.read_text(encoding="utf-8").replace("s.added > s.sendable", "s.added >= s.sendable"), encoding="utf-8")
    target = compiled(wrong, tmp_path / "wrong")
    done = asked("s-ecn", "--case", "slopes", "--rate", "1Gbps", target)
    assert (done.exit_code, done.stderr) == (1, "")
    assert "First difference: case slopes, sequence 0, row 115: by_slope, mark, sum" in done.stdout
    assert "rate_bps = 1000000000, clock_ps = 8000, rate = 1048576, credit = 1538, k = 32000" in done.stdout
    rows = [line.split() for line in done.stdout.splitlines() if re.match(r" 11\d ", line)]
    assert [row[0] for row in rows] == ["112", "113", "114", "115"]
    assert "0 (expected 1344274432)" in done.stdout
    assert [line.split() for line in done.stdout.splitlines() if line.startswith(" sum")] == [
        ["sum", "1075838976", "1344274432", "0"]
    ]
    # growth = R·I ⇒ added = sendable exactly: where the comparison with equality differs.
    found = conform("s-ecn", [target], {"cases": ["slopes"], "rates": ["1Gbps"]})
    assert found.first is not None
    assert (found.first.expected["added"], found.first.columns) == (found.first.expected["sendable"], ["by_slope", "mark", "sum"])
    assert [answered["sum"] for _, answered in found.first.before] == [expected["sum"] for expected, _ in found.first.before]


def target(body: str) -> list[str]:
    """A target in Python: `lines` are what it was given, header and rows."""
    return [sys.executable, "-c", f"import sys, os, time, signal, subprocess\nlines = sys.stdin.read().split()\n{body}"]


ZEROS = "print('mark'); [print(0) for _ in lines[1:]]"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("", "it answered nothing"),
        ("sys.exit(3)", "it answered nothing, and it ended with status 3"),
        ("print('mark'); print(0)", "it answered 1 of 244 rows"),
        (f"{ZEROS}; print(0)", "line 246 of its output is one too many, for 244 rows: '0'"),
        (f"{ZEROS}; sys.stdout.flush(); os.kill(os.getpid(), signal.SIGSEGV)", "it was ended by SIGSEGV"),
        (f"{ZEROS}; sys.exit(1)", "it ended with status 1"),
        ("print('mark'); print('yes')", "line 2 of its output is 'yes'; expected: 1 whole number, mark"),
        ("print('mark'); print('1_0')", "line 2 of its output is '1_0'; expected: 1 whole number, mark"),
        ("print('mark,sum'); print('0,0,')", "line 2 of its output is '0,0,'; expected: 2 whole numbers, mark,sum"),
        ("print('0')", "its first line must name the columns that it answers; '0' has others; accepted: interval, sendable,"),
        ("print('mark,mark')", "its first line names a column twice: 'mark,mark'"),
        ("print('sum')", "its first line names no output: 'sum'; at least one of by_slope, by_k, mark"),
        ("sys.stdout.buffer.write(bytes([255, 254, 10]))", "its first line must name the columns"),
        ("sys.stdout.write('m' * 10_000_000)", "line 1 of its output has no end: 'mmm"),
        ("print('mark'); print('9' * 60)", "line 2 of its output is '9999"),
    ],
)
def test_a_target_that_does_not_answer_says_so_in_a_line(body: str, expected: str) -> None:
    done = asked("s-ecn", "--case", "pairs", "--rate", "10Gbps", "--", *target(body))
    assert done.exit_code == 1
    said = done.stderr.splitlines()
    assert len(said) == 1, said
    assert said[0].startswith(f"error: {sys.executable} -c import sys, os, time")
    assert expected in done.stderr, done.stderr
    assert "conforms" not in done.stdout


def test_what_a_target_answered_before_it_died_is_compared() -> None:
    found = conform("s-ecn", target("print('mark'); [print(1) for _ in lines[1:6]]; sys.exit('out of memory')"), PAIRS)
    assert (found.failure, found.last_words) == ("it answered 5 of 244 rows, and it ended with status 1", "out of memory")
    assert found.first is not None
    assert (found.first.row, found.first.columns, found.different) == (0, ["mark"], {"pairs": 1})


@pytest.mark.parametrize(
    ("body", "answered"),
    [
        ("time.sleep(60)", "0 of 244"),
        (f"{ZEROS}; sys.stdout.flush(); time.sleep(60)", "all"),
        ("print('mark')\nwhile True:\n print(0, file=sys.stderr)", "0 of 244"),
        ("subprocess.run(['sleep', '60'])", "0 of 244"),
    ],
    ids=["silent", "stays", "talks", "child"],
)
def test_a_target_that_does_not_end_is_ended(body: str, answered: str) -> None:
    start = time.monotonic()
    timeout_s = 6 if answered == "all" else 1  # in which it must have answered, also where the machine is busy
    found = conform("s-ecn", target(body), PAIRS, timeout_s=timeout_s)
    assert found.failure == f"it did not end within {timeout_s} s: {answered} rows were answered (--timeout gives it longer)"
    assert timeout_s <= time.monotonic() - start < timeout_s + 5
    assert len(found.last_words) <= 2_000


def test_a_target_that_reads_nothing_does_not_block() -> None:
    found = conform("s-ecn", [sys.executable, "-c", "import time; time.sleep(30)"], timeout_s=0.5)
    assert found.failure is not None
    assert found.failure.startswith("it did not end within 0.5 s: 0 of 18,280")
    closed = conform("s-ecn", [sys.executable, "-c", "print('mark\\n0')"])
    assert closed.failure == "it answered 1 of 18,280 rows"


def test_a_child_that_keeps_the_output_open_does_not_block() -> None:
    body = f"{ZEROS}; sys.stdout.flush(); subprocess.Popen(['sleep', '30'])"
    start = time.monotonic()
    found = conform("s-ecn", target(body), PAIRS, timeout_s=20)
    assert (found.answered, found.failure) == (244, None)
    assert time.monotonic() - start < 10


def test_windows_line_ends_spaces_and_a_missing_last_one_are_taken() -> None:
    body = "out = ['mark'] + [' 0 ' for _ in lines[1:]]\nsys.stdout.write('\\r\\n'.join(out))"
    found = conform("s-ecn", target(body), PAIRS)
    assert (found.answered, found.failure) == (244, None)


def test_bad_input_ends_with_two(tmp_path: Path, example: str) -> None:
    missing = tmp_path / "missing"
    done = asked("s-ecn", str(missing))
    assert (done.exit_code, done.stderr) == (2, f"error: {missing}: No such file or directory\n")
    plain = tmp_path / "plain"
    plain.write_text("no program", encoding="utf-8")
    done = asked("s-ecn", str(plain))
    assert (done.exit_code, "Permission denied" in done.stderr) == (2, True)
    done = asked("s-enc", example)
    assert (done.exit_code, "did you mean 's-ecn'" in done.stderr) == (2, True)
    assert done.stderr.splitlines()[1:] == ["read on: docs/vectors.md"]
    done = asked("s-ecn", "--case", "pair", "--timeout", "1", example)
    assert (done.exit_code, "did you mean 'pairs'" in done.stderr) == (2, True)
    done = asked("s-ecn", "--timeout", "0", example)
    assert (done.exit_code, done.stderr) == (2, "error: --timeout 0: is not above zero\n")
    for value in ("inf", "1e12"):
        done = asked("s-ecn", "--captures", str(tmp_path), "--timeout", value, example)
        assert (done.exit_code, "is too long; accepted: up to 1,000,000 s" in done.stderr) == (2, True)
    with pytest.raises(fanin.ScenarioError, match="did you mean"):
        conform("s-enc", [example])


@pytest.mark.parametrize("mechanism", ["rimm", "rcm", "pdn"])
def test_every_mechanism_can_be_asked(mechanism: str, tmp_path: Path) -> None:
    """A target that answers what the vectors say, read from a file of them."""
    document = fanin.vectors.generate(mechanism)
    names = [column["name"] for column in document["columns"]]
    outputs = [i for i, column in enumerate(document["columns"]) if column["role"] != "input"]
    lines = [",".join(names[i] for i in outputs)]
    lines += [",".join(str(row[i]) for i in outputs) for s in document["sequences"] for row in s["rows"]]
    script = "import sys\nsys.stdin.read()\nsys.stdout.write(open(sys.argv[1]).read())"
    file = tmp_path / "answers.csv"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = conform(mechanism, [sys.executable, "-c", script, str(file)])
    assert (found.ok, found.answered) == (True, len(lines) - 1)
    changed = lines[-1].split(",")
    changed[0] = str(int(changed[0]) + 1)
    file.write_text("\n".join([*lines[:-1], ",".join(changed)]) + "\n", encoding="utf-8")
    found = conform(mechanism, [sys.executable, "-c", script, str(file)])
    assert found.first is not None
    assert (found.first.columns, found.first.sequence) == ([names[outputs[0]]], len(document["sequences"]) - 1)


def test_an_interrupt_ends_the_target(tmp_path: Path) -> None:
    mark = tmp_path / "alive"
    child = f"import time\nwhile True:\n  open({str(mark)!r}, 'w').write(str(time.monotonic()))\n  time.sleep(0.05)"
    command = ["conform", "s-ecn", "--", sys.executable, "-c", child]
    script = "import sys\nfrom fanin.cli import app\napp(sys.argv[1:])"
    with subprocess.Popen([sys.executable, "-c", script, *command], stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + 120
        while not mark.exists():
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
    last = mark.read_text(encoding="utf-8")
    time.sleep(0.3)
    assert mark.read_text(encoding="utf-8") == last
