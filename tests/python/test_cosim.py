"""Co-simulation: blocks in Python, C, RTL and BPF decide about the packets of an incast and give the bytes of the core's S-ECN."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import fanin
from fanin import cosim
from fanin.cli import app

ROOT = Path(__file__).parents[2]
RTL = ROOT / "dataplane" / "rtl"
K, CREDIT = 20_000, 1538


def scenario(marking: dict[str, Any], size: str = "300KB") -> dict[str, Any]:
    """Eight senders at 100 Gb/s; one port marks, by a policy of the core or by a block."""
    return {
        "topology": {"kind": "single_switch", "hosts": 9, "link": {"rate": "100Gbps", "delay": "1us"}},
        "switch": {"except": [{"ports": ["switch0->h8"], "marking": marking}]},
        "transport": {"kind": "tcp", "congestion_control": "dctcp", "handshake": False},
        "telemetry": {"queues": ["switch0->h8"]},
        "traffic": [{"kind": "incast", "receiver": "h8", "size": size}],
    }


def inside(at: str) -> dict[str, Any]:
    form = {"kind": "registers", "clock": "8ns", "credit": f"{CREDIT}B"}
    return {"kind": "s_ecn", "k": f"{K}B", "form": form, "at": at}


def outside(path: Path, at: str, **more: Any) -> dict[str, Any]:
    settings = f"k={K} credit={CREDIT} clock_ps=8000"
    return {"kind": "external", "socket": str(path), "settings": settings, "departures": at == "dequeue", **more}


@contextmanager
def running(command: list[str], env: dict[str, str] | None = None) -> Iterator[None]:
    """A block as a process of its own, from "ready" on."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ | (env or {}))
    assert process.stdout
    said: list[str] = []
    for line in process.stdout:
        said.append(line)
        if line.strip() == "ready":
            break
    else:
        raise AssertionError(f"{command}: {''.join(said)[-3000:]}")
    rest = threading.Thread(target=lambda: said.extend(process.stdout or ()), daemon=True)
    rest.start()
    try:
        yield
    finally:
        with suppress(subprocess.TimeoutExpired):
            process.wait(20)
        process.kill()
        process.wait()
        rest.join()
        process.stdout.close()
    assert process.returncode == 0, "".join(said)[-3000:]


@contextmanager
def python_block(path: Path, folder: Path, runs: int = 1) -> Iterator[None]:
    with running([sys.executable, str(ROOT / "examples/cosim/s_ecn.py"), str(path), str(runs)]):
        yield


@contextmanager
def c_block(path: Path, folder: Path, runs: int = 1) -> Iterator[None]:
    if shutil.which("cc") is None:
        pytest.skip("no block in C: there is no C compiler")
    built = folder / "s_ecn"
    strict = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["cc", *strict, "-o", str(built), str(ROOT / "examples/cosim/s_ecn.c")], check=True)
    with running([str(built), str(path), str(runs)]):
        yield


@contextmanager
def rtl_block(path: Path, folder: Path) -> Iterator[None]:
    if shutil.which("iverilog") is None:
        pytest.skip("RTL is not simulated: iverilog is not installed: make install-iverilog")
    if importlib.util.find_spec("cocotb") is None:
        pytest.skip("RTL is not simulated: cocotb is not installed: make test installs it")
    with running([sys.executable, str(RTL / "tests" / "cosim_run.py"), str(path), str(folder / "rtl")]):
        yield


@contextmanager
def bpf_block(path: Path, folder: Path) -> Iterator[None]:
    sys.path.insert(0, str(ROOT / "tests" / "linux"))
    import bpf

    reason = bpf.lacking()
    if reason:
        pytest.skip(f"BPF programs in the running kernel: this machine lacks {reason}")
    with running([str(bpf.build()), "cosim", str(path), "runs=1"]):
        yield


BLOCKS = {"Python": python_block, "C": c_block, "RTL": rtl_block, "BPF": bpf_block}


def ran(marking: dict[str, Any], out: Path) -> tuple[dict[str, Any], dict[str, Any], dict[str, bytes]]:
    """Manifest, summary without the names of reasons, and the bytes of all tables."""
    fanin.run(scenario(marking), out)
    manifest, summary = (json.loads((out / f"{name}.json").read_text()) for name in ("manifest", "summary"))
    summary["marks_by_reason"] = sum(summary["marks_by_reason"].values())
    return manifest, summary, {path.name: path.read_bytes() for path in sorted(out.glob("*.parquet"))}


@pytest.mark.parametrize("at", ["enqueue", "dequeue"])
@pytest.mark.parametrize("language", list(BLOCKS))
def test_an_incast_of_100_gbps_decided_outside_gives_the_bytes_of_the_core(language: str, at: str, tmp_path: Path) -> None:
    """Thousands of decisions, of which each changes what comes after it: the first that is wrong shows in every table."""
    path = tmp_path / "block.sock"
    manifest, summary, tables = ran(inside(at), tmp_path / "inside")
    begun = time.perf_counter()
    with BLOCKS[language](path, tmp_path):
        started = time.perf_counter()
        shown, outer, others = ran(outside(path, at), tmp_path / "outside")
        took = time.perf_counter() - started
    facts = shown["outside"][0]
    speed = facts["requests"] / took
    print(f"{language}, {at}: {facts['requests']} requests, {speed:,.0f} a second; up after {started - begun:.1f} s")
    assert shown["fingerprint"] == manifest["fingerprint"]
    assert summary == outer
    assert {"flows.parquet", "queues.parquet"} <= tables.keys() == others.keys()
    assert [name for name in tables if tables[name] != others[name]] == []
    assert 150 < summary["marks_by_reason"] < 400
    assert facts["requests"] > (3_300 if at == "dequeue" else 1_650)
    assert (facts["name"], facts["version"]) == (f"s-ecn in {language}", "1")
    assert shown["scenario_hash"] != manifest["scenario_hash"]


@contextmanager
def answering(path: Path, block: Callable[[cosim.Start], cosim.Decide]) -> Iterator[None]:
    """A block in a thread, for one run after the other until nobody asks any more."""
    with cosim.Listener(path, "mine", "3") as listener:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    answer(listener, block)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield
        listener.socket.shutdown(socket.SHUT_RDWR)
        thread.join()


def answer(listener: cosim.Listener, block: Callable[[cosim.Start], cosim.Decide]) -> None:
    with listener.accept() as run:
        decide = block(run.start)
        for packet in run:
            run.answer(decide(packet))


def asked(*arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, ["conform", *arguments])


@pytest.mark.parametrize("at", ["enqueue", "dequeue"])
def test_the_example_gives_every_row_of_the_vectors_at_its_socket(at: str, tmp_path: Path) -> None:
    """A connection for each of 90 sequences: each begins anew."""
    path = tmp_path / "block.sock"
    with running([sys.executable, str(ROOT / "examples/cosim/s_ecn.py"), str(path), "90"]):
        done = asked("s-ecn", "--socket", str(path), "--set", f"at={at}", "--json")
    found = json.loads(done.stdout)
    assert (done.exit_code, found["ok"], found["failure"], found["columns"]) == (0, True, None, ["mark"])
    assert (found["answered"], found["sequences"]) == (18_280 * (1 + (at == "dequeue")), 90)
    assert found["target"] == f"{path}: s-ecn in Python 1"


def test_the_first_difference_at_a_socket_is_shown_with_registers(tmp_path: Path) -> None:
    path = tmp_path / "block.sock"
    with answering(path, lambda start: lambda packet: int(packet.queue_bytes > start.setting("k", 0))):
        done = asked("s-ecn", "--socket", str(path), "--case", "slopes", "--rate", "1Gbps")
        other = asked("pdn", "--socket", str(path))
    assert done.exit_code == 1
    assert "First difference: case slopes, sequence 0, row 96: mark" in done.stdout
    after = done.stdout[done.stdout.index("Registers and outputs") :].splitlines()
    rows = {words[0]: words[1:] for words in (line.split() for line in after) if len(words) in (4, 5)}
    assert rows["mark"] == ["0", "1", "0"]
    assert rows["sum"][2:] == ["not", "answered"]
    assert int(rows["sum"][0]) > int(rows["sum"][1]), "the mark takes its share of the sum"
    assert (other.exit_code, "carries marking decisions, which pdn does not make; accepted: s-ecn" in other.stderr) == (2, True)


@pytest.mark.parametrize(
    ("decision", "says"),
    [
        (7, "its answer to sequence 0, row 0 is 00 00 00 00 00 00 00 00 07 00 00 00 00 00 00 00; expected: the number 0, then"),
        (None, "it closed the connection before its answer to sequence 0, row 0"),
    ],
)
def test_answers_at_a_socket_that_are_none(
    decision: int | None, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unchecked(run: cosim.Connection, decision: int) -> None:
        run.stream.sendall(cosim.REPLY.pack(run.at, decision, 0))

    def decide(packet: cosim.Packet) -> int:
        if decision is None:
            raise ConnectionResetError
        return decision

    monkeypatch.setattr(cosim.Connection, "answer", unchecked)
    path = tmp_path / "block.sock"
    with answering(path, lambda start: decide):
        done = asked("s-ecn", "--socket", str(path))
    assert (done.exit_code, says in done.stderr) == (1, True), done.stderr


def test_targets_that_are_none_or_two(tmp_path: Path) -> None:
    path = tmp_path / "block.sock"
    for arguments in ([], ["--socket", str(path), "./s_ecn"]):
        done = asked("s-ecn", *arguments)
        assert (done.exit_code, "TARGET: name a program, or --socket PATH, and one of them" in done.stderr) == (2, True)
    done = asked("s-ecn", "--socket", str(path))
    assert (done.exit_code, f"{path}: No such file or directory (start the block first" in done.stderr) == (2, True), done.stderr

    def waits(packet: cosim.Packet) -> int:
        time.sleep(1)
        return cosim.PASS

    with answering(path, lambda start: waits):
        done = asked("s-ecn", "--socket", str(path), "--timeout", "0.5")
    assert done.exit_code == 1
    assert "it did not answer within 0.5 s: 0 of 18,280 rows were answered" in done.stderr


@pytest.mark.parametrize(
    ("bits", "decision", "says"),
    [
        *((cosim.ARRIVAL, wrong, "PASS (0), MARK (1), DROP (2), DETOUR (3)") for wrong in (None, "mark", -1, 300, 1.0)),
        (cosim.ARRIVAL, cosim.Way(19, 0, 0), "PASS (0), MARK (1), DROP (2), DETOUR (3)"),
        (cosim.WAY, cosim.DETOUR, "PASS (0), or one of packet.ways"),
        (cosim.WAY, cosim.Way(-1, 0, 0), "PASS (0), or one of packet.ways"),
    ],
)
def test_wrong_answers_of_a_block_name_their_value(bits: int, decision: Any, says: str) -> None:
    run, block = socket.socketpair()
    with run, block:
        run.sendall(cosim.HELLO.pack(cosim.MAGIC, 2, 0, 7, 1, 0, 0, b"k=abc"))
        run.sendall(cosim.REQUEST.pack(*[5, *[0] * 11, bits, 0, 0, 0]) + (bytes(8) if bits == cosim.WAY else b""))
        one = cosim.Connection(block, "mine", "")
        assert next(iter(one)).moment == bits
        with pytest.raises(ValueError, match=re.escape(f"the answer to request 5 is {decision!r}; accepted: {says}")):
            one.answer(decision)
        with pytest.raises(ValueError, match="settings: k=abc: expected: a whole number, such as k=8"):
            one.start.setting("k", 8)
        one.start.only("k", "credit")
        with pytest.raises(ValueError, match="settings: k=abc: accepted: kk=NUMBER, credit=NUMBER"):
            one.start.only("kk", "credit")


def test_a_connection_that_fails_within_the_block_ends_serve(tmp_path: Path) -> None:
    path = tmp_path / "block.sock"

    def block(start: cosim.Start) -> cosim.Decide:
        raise ConnectionRefusedError("mine")

    def asks() -> None:
        while True:
            with socket.socket(socket.AF_UNIX) as run, suppress(FileNotFoundError, ConnectionRefusedError):
                run.connect(str(path))
                run.sendall(cosim.HELLO.pack(cosim.MAGIC, 2, 0, 7, 1, 0, 0, b""))
                run.recv(1_000)
                return

    thread = threading.Thread(target=asks)
    thread.start()
    with pytest.raises(ConnectionRefusedError, match="mine"):
        cosim.serve(path, block, name="faulty")
    thread.join()


def test_connections_that_are_no_runs_or_silent_leave_the_example_in_c_to_others(tmp_path: Path) -> None:
    path = tmp_path / "block.sock"
    with c_block(path, tmp_path, runs=9), socket.socket(socket.AF_UNIX) as silent_:
        silent_.connect(str(path))
        for sent in (
            b"",
            cosim.HELLO.pack(cosim.MAGIC, 1, 0, 7, 1, 0, 0, b""),
            cosim.HELLO.pack(cosim.MAGIC, 2, 0, 0, 0, 0, 0, b""),
        ):
            with socket.socket(socket.AF_UNIX) as other:
                other.connect(str(path))
                other.sendall(sent)
                other.shutdown(socket.SHUT_WR)
        # What it does not know among the settings, or is no number, ends a run before its first request.
        for settings in (b"k=3 kk=3", b"k=3x", b"k=", b"word"):
            with socket.socket(socket.AF_UNIX) as other:
                other.settimeout(20)
                other.connect(str(path))
                other.sendall(cosim.HELLO.pack(cosim.MAGIC, 2, 1, 0, 0, 0, 0, settings) + bytes(cosim.PORT.size))
                assert len(other.recv(cosim.WELCOME.size, socket.MSG_WAITALL)) == cosim.WELCOME.size
                assert other.recv(1) == b"", settings
        done = asked("s-ecn", "--socket", str(path), "--case", "pairs", "--rate", "10Gbps", "--json")
    assert (done.exit_code, json.loads(done.stdout)["answered"]) == (0, 244)


@pytest.mark.parametrize("language", ["Python", "C"])
def test_examples_take_the_whole_sum_where_the_setting_says_so(language: str, tmp_path: Path) -> None:
    path = tmp_path / "block.sock"
    block = {"Python": python_block, "C": c_block}[language]
    with block(path, tmp_path, runs=10):
        done = asked("s-ecn", "--socket", str(path), "--case", "slopes", "--set", "registers.after_mark=reset", "--json")
    found = json.loads(done.stdout)
    assert (done.exit_code, found["sequences"], found["failure"]) == (0, 10, None)


def test_the_example_is_short_and_stands_on_the_page() -> None:
    text = (ROOT / "examples/cosim/s_ecn.py").read_text(encoding="utf-8")
    code = [line for line in text.splitlines() if line.strip() and not line.startswith(('"""', "import", "from"))]
    assert 20 < len(code) <= 32


def test_a_wrong_block_is_seen_and_a_missing_one_said(tmp_path: Path) -> None:
    path = tmp_path / "block.sock"
    with pytest.raises(fanin.ScenarioError, match=r"switch\.except\[0\]\.marking\.socket: .* is not there: start the block first"):
        fanin.run(scenario(outside(path, "enqueue")), tmp_path / "none")
    assert not (tmp_path / "none").exists(), "nothing was begun"

    def threshold(start: cosim.Start) -> cosim.Decide:
        return lambda packet: cosim.MARK if packet.queue_bytes >= K else cosim.PASS

    with answering(path, threshold):
        _, summary, _ = ran(outside(path, "enqueue"), tmp_path / "threshold")
    _, expected, _ = ran(inside("enqueue"), tmp_path / "inside")
    assert summary["marks_by_reason"] != expected["marks_by_reason"]


def test_a_block_that_raises_ends_the_run_and_keeps_what_there_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "block.sock"

    def fails(packet: cosim.Packet) -> int:
        if packet.number == 500:
            raise RuntimeError("mine")
        return cosim.PASS

    def serve() -> None:
        with suppress(RuntimeError):
            cosim.serve(path, lambda start: fails, name="faulty", version="0", runs=1)

    thread = threading.Thread(target=serve)
    thread.start()
    while capsys.readouterr().out != "ready\n":
        assert thread.is_alive()
        time.sleep(0.01)
    with pytest.raises(
        RuntimeError,
        match=r"nobody decides about packets at port switch0->h8 any more: the block 'faulty 0' at .* "
        r"closed the connection before it gave its answer to request 500 \(at ",
    ):
        fanin.run(scenario(outside(path, "enqueue")), tmp_path / "out")
    thread.join()
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert (manifest["status"], manifest["outside"][0]["requests"]) == ("partial", 500)
    assert manifest["files"].keys() >= {"flows", "queues"}


def test_the_five_minutes_of_the_page(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "cosimulation.md").read_text(encoding="utf-8")
    given = dict(re.findall(r"```(python|toml)\n(.*?)```", page[: page.index("## The same bytes")], re.DOTALL))
    (tmp_path / "block.py").write_text(given["python"], encoding="utf-8")
    (tmp_path / "incast.toml").write_text(given["toml"], encoding="utf-8")
    with subprocess.Popen([sys.executable, "block.py"], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as block:
        assert block.stdout
        assert block.stdout.readline() == "ready\n"
        fanin_ = [sys.executable, "-c", "from fanin.cli import app; app()"]
        done = subprocess.run(
            [*fanin_, "run", "incast.toml", "-o", "out"], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        asked_ = subprocess.run(
            [*fanin_, "conform", "s-ecn", "--socket", "fanin.sock"], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        block.terminate()
    assert done.returncode == 0, done.stderr
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert [manifest["outside"][0][key] for key in ("name", "version", "settings")] == ["my threshold", "1", "k=30000"]
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["marks"] > 100
    assert (asked_.returncode, "First difference: case" in asked_.stdout) == (1, True), "a threshold is not S-ECN"


def test_frames_have_the_sizes_of_the_page() -> None:
    page = (ROOT / "docs" / "dev" / "cosimulation-protocol.md").read_text(encoding="utf-8")
    for name in ("hello", "port", "welcome", "request", "reply"):
        assert f"**{name}**, {getattr(cosim, name.upper()).size} B" in page, name


def test_other_ends_are_refused(tmp_path: Path) -> None:
    """By the block's side: what is no Fanin, another version, half a frame; a socket that nobody listens at is replaced."""
    path = tmp_path / "block.sock"
    hello = cosim.HELLO.pack(cosim.MAGIC, 2, 0, 7, 1, 0, 0, b"k=5 k=6 kk=7")
    for sent, message in (
        (b"GET / HTTP/1.1\r\n".ljust(512), "the other end is no Fanin: its first bytes are b'GET / HT'"),
        (hello[:8] + b"\1" + hello[9:], "the other end speaks version 1 of the protocol; accepted: 2"),
        (hello[:300], "the connection ended after 300 of the 512 bytes of a frame"),
    ):
        with cosim.Listener(path, "mine", "1") as listener, socket.socket(socket.AF_UNIX) as other:
            other.connect(str(path))
            other.sendall(sent)
            other.shutdown(socket.SHUT_WR)
            with pytest.raises(cosim.CosimError, match=message.replace("(", r"\(")):
                listener.accept()
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(path))
    stale.close()
    with cosim.Listener(path, "mine") as listener, socket.socket(socket.AF_UNIX) as other:
        other.connect(str(path))
        other.sendall(hello)
        with listener.accept() as run:
            assert (run.start.seed, run.start.departures, run.start.ports) == (7, True, {})
            assert [run.start.setting(key, 1) for key in ("k", "kk", "none")] == [6, 7, 1]
        with pytest.raises(OSError, match="in use"):
            cosim.Listener(path, "another")
    assert not path.exists()


def silent(path: Path) -> socket.socket:
    """A socket at which a block listens that never says a word."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    return listener


def test_an_interrupt_ends_a_run_whose_block_is_silent_and_leaves_no_empty_folder(tmp_path: Path) -> None:
    path, out = tmp_path / "block.sock", tmp_path / "made" / "out"
    script = "import sys, json, fanin\nprint('begun', flush=True)\nfanin.run(json.loads(sys.argv[1]), sys.argv[2], progress=False)"
    command = [sys.executable, "-c", script, json.dumps(scenario(outside(path, "enqueue", timeout="60s"))), str(out)]
    with silent(path), subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline() == "begun\n"
        while not out.exists():
            time.sleep(0.02)
        time.sleep(0.3)
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.wait(20) != 0
        assert time.monotonic() - begun < 10, "the block's timeout is 60 s"
        assert "KeyboardInterrupt" in process.stderr.read()
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("earlier", [False, True])
def test_an_interrupt_before_the_welcome_says_that_nothing_was_written(earlier: bool, tmp_path: Path) -> None:
    path, out, file = tmp_path / "block.sock", tmp_path / "out", tmp_path / "scenario.json"
    if earlier:
        fanin.run(scenario(inside("enqueue"), size="3KB"), out, progress=False)
    file.write_text(json.dumps(scenario(outside(path, "enqueue", timeout="60s"))), encoding="utf-8")
    command = [sys.executable, "-c", "from fanin.cli import app; app()", "run", str(file), "-o", str(out), "--force", "-q"]
    with silent(path) as listener, subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        run, _ = listener.accept()
        with run:
            assert len(run.recv(512)) == 512
            process.send_signal(signal.SIGINT)
            assert process.stderr
            said = process.stderr.read()
        assert process.wait(20) == 130
    assert said == f"interrupted; nothing was written to {out}\n"
    assert (out / "manifest.json").exists() == earlier


def test_a_block_that_is_silent_is_given_up_after_its_timeout(tmp_path: Path) -> None:
    path = tmp_path / "block.sock"
    with silent(path):
        begun = time.monotonic()
        with pytest.raises(fanin.ScenarioError, match="took longer than 300ms, the timeout, after 0 of the 96 bytes of its first"):
            fanin.run(scenario(outside(path, "enqueue", timeout="300ms")), tmp_path / "out")
        assert 0.3 <= time.monotonic() - begun < 10
    assert not (tmp_path / "out").exists(), "nothing was begun"


@pytest.mark.parametrize("language", ["Python", "C"])
def test_runs_of_a_sweep_ask_one_block_at_once(language: str, tmp_path: Path) -> None:
    """Six runs in two processes, one block: what each gives is what it gives alone."""
    path = tmp_path / "block.sock"
    document = scenario(outside(path, "enqueue", block=f"s-ecn in {language} 1"), size="60KB")
    design = {"grid": {"traffic[0].size": ["40KB", "60KB", "80KB"]}, "seeds": 2}
    if language == "Python":
        block = [sys.executable, str(ROOT / "examples/cosim/s_ecn.py"), str(path), "6"]
    else:
        if shutil.which("cc") is None:
            pytest.skip("no block in C: there is no C compiler")
        built = tmp_path / "s_ecn"
        subprocess.run(["cc", "-std=gnu11", "-O2", "-o", str(built), str(ROOT / "examples/cosim/s_ecn.c")], check=True)
        block = [str(built), str(path), "6"]
    with running(block):
        swept = fanin.sweep(document, tmp_path / "sweep", design=design, jobs=2, progress=False)
    inner = fanin.sweep(scenario(inside("enqueue"), size="60KB"), tmp_path / "inside", design=design, jobs=2, progress=False)
    fingerprints = [[run["fingerprint"] for run in one.runs.sort("traffic[0].size", "seed").to_dicts()] for one in (swept, inner)]
    assert len(fingerprints[0]) == 6
    assert fingerprints[0] == fingerprints[1]


def burst(marking: Any, mechanisms: dict[str, Any]) -> dict[str, Any]:
    """Twelve flows to one host of a leaf that has one uplink: who detours there has no choice of ways."""
    return {
        "topology": {
            "kind": "leaf_spine",
            "leaves": 3,
            "spines": 1,
            "hosts_per_leaf": 2,
            "host_link": {"rate": "10Gbps", "delay": "200ns"},
            "uplink": {"rate": "40Gbps", "delay": "300ns"},
        },
        "switch": {
            "ttl": 255,
            "buffer": {"kind": "static", "per_port": "60KB"},
            "mechanisms": mechanisms,
            "except": [{"ports": ["leaf*->*"], "marking": marking}],
        },
        "transport": {"kind": "tcp", "handshake": False, "initial_window": 30, "rto_min": "5ms"},
        "telemetry": {"queues": ["leaf2->*"]},
        "traffic": [{"kind": "incast", "receiver": "h5", "senders": ["h0..h3"], "flows_per_sender": 3, "size": "60KB"}],
    }


def detoured(path: Path, settings: str = "") -> dict[str, Any]:
    return {"kind": "external", "socket": str(path), "settings": settings, "detours": True}


def test_detours_decided_outside_give_the_bytes_of_those_of_dibs(tmp_path: Path) -> None:
    path = tmp_path / "block.sock"
    inner = fanin.run(burst("none", {"dibs": {"unaware": ["spine*"]}}), tmp_path / "inside", progress=False)
    assert inner.summary["mechanisms"]["dibs"]["detoured"] > 100
    with running([sys.executable, str(ROOT / "examples/cosim/detours.py"), str(path), "1"]):
        outer = fanin.run(burst(detoured(path), {}), tmp_path / "outside", progress=False)
    assert outer.manifest["fingerprint"] == inner.manifest["fingerprint"]
    tables = [{file.name: file.read_bytes() for file in sorted(ran.path.glob("*.parquet"))} for ran in (inner, outer)]
    assert {"flows.parquet", "queues.parquet"} <= tables[0].keys()
    assert tables[0] == tables[1]


def test_a_block_sends_packets_elsewhere_before_there_is_no_room(tmp_path: Path) -> None:
    path = tmp_path / "block.sock"
    with running([sys.executable, str(ROOT / "examples/cosim/detours.py"), str(path), "1"]):
        ran = fanin.run(burst(detoured(path, "k=20000"), {}), tmp_path / "out", progress=False)
    kept = fanin.run(burst("none", {}), tmp_path / "plain", progress=False)
    peaks = [max(port["max_bytes"] for port in run.summary["ports"] if port["port"] == "leaf2->h5") for run in (ran, kept)]
    assert peaks[0] <= 20_000 + 2 * 1518 < 50_000 < peaks[1]
    lossy = [{port["port"] for port in run.summary["ports"] if port["drops"]} for run in (ran, kept)]
    assert lossy == [{"spine0->leaf2"}, {"leaf2->h5"}], "it waits where it was sent"
    assert 0.5 * kept.summary["drops"] < ran.summary["drops"] < 0.8 * kept.summary["drops"]


def test_a_way_that_is_none_ends_the_run(tmp_path: Path) -> None:
    path = tmp_path / "block.sock"

    def decide(packet: cosim.Packet) -> int | cosim.Way:
        return packet.ways[0]._replace(port=9_999) if packet.moment == cosim.WAY else cosim.PASS

    says = r"the block 'mine 3' at .* sends the packet of request \d+ to port 9999; accepted: \d+, \d+ \("
    with answering(path, lambda start: decide), pytest.raises(RuntimeError, match=says):
        fanin.run(burst(detoured(path), {}), tmp_path / "out", progress=False)


def test_a_packet_that_the_block_wants_elsewhere_and_nowhere_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "block.sock"

    def decide(packet: cosim.Packet) -> int:
        return cosim.DETOUR if packet.moment == cosim.ARRIVAL and packet.queue_bytes > 20_000 else cosim.PASS

    with answering(path, lambda start: decide):
        ran = fanin.run(burst(detoured(path), {}), tmp_path / "out", progress=False)
    assert set(ran.summary["drops_by_reason"]) == {"external_nowhere"}
    assert ran.summary["drops"] > 100
    allowed = detoured(path) | {"detours": False}
    says = r"detours the packet of request \d+, which it may with detours = true; accepted: 0 \(pass\), 1 \(mark\), 2 \(drop\)"
    with answering(path, lambda start: decide), pytest.raises(RuntimeError, match=says):
        fanin.run(burst(allowed, {}), tmp_path / "out2", progress=False)
