"""Co-simulation: blocks in Python, C, RTL and BPF decide about the packets of an incast, and give the bytes of the core's own S-ECN."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import fanin
from fanin import cosim
from fanin.conformance import conform

pytestmark = pytest.mark.native
ROOT = Path(__file__).parents[2]
RTL = ROOT / "dataplane" / "rtl"
K, CREDIT = 60_000, 1538


def scenario(marking: dict[str, Any], size: str = "300KB") -> fanin.Scenario:
    """Eight senders at 100 Gb/s; one port marks, by a policy of the core or by a block."""
    return fanin.Scenario.from_dict(
        {
            "topology": {"kind": "single_switch", "hosts": 9, "link": {"rate": "100Gbps", "delay": "1us"}},
            "switch": {"except": [{"ports": ["switch0->h8"], "marking": marking}]},
            "transport": {"kind": "tcp", "congestion_control": "dctcp", "handshake": False},
            "telemetry": {"queues": ["switch0->h8"]},
            "traffic": [{"kind": "incast", "receiver": "h8", "size": size}],
        }
    )


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
def python_block(path: Path, folder: Path) -> Iterator[None]:
    with running([sys.executable, str(ROOT / "examples/cosim/s_ecn.py"), str(path), "1"]):
        yield


@contextmanager
def c_block(path: Path, folder: Path) -> Iterator[None]:
    if shutil.which("cc") is None:
        pytest.skip("no block in C: there is no C compiler")
    built = folder / "s_ecn"
    strict = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["cc", *strict, "-o", str(built), str(ROOT / "examples/cosim/s_ecn.c")], check=True)
    with running([str(built), str(path), "1"]):
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
    print(f"{language}, {at}: {facts['requests']} requests, {facts['requests'] / took:,.0f} a second; up after {started - begun:.1f} s")
    assert shown["fingerprint"] == manifest["fingerprint"]
    assert summary == outer
    assert {"flows.parquet", "queues.parquet"} <= tables.keys() == others.keys()
    assert [name for name in tables if tables[name] != others[name]] == []
    assert 400 < summary["marks_by_reason"] < 1_600
    assert facts["requests"] > (3_400 if at == "dequeue" else 1_700)
    assert (facts["name"], facts["version"]) == (f"s-ecn in {language}", "1")
    assert shown["scenario_hash"] != manifest["scenario_hash"]


@pytest.mark.parametrize("language", ["Python", "C"])
def test_vectors_go_through_the_socket(language: str, tmp_path: Path) -> None:
    """`fanin conform --socket`: a run for each sequence, and the first difference where the block is wrong."""


def test_the_example_is_short_and_stands_on_the_page() -> None:
    text = (ROOT / "examples/cosim/s_ecn.py").read_text(encoding="utf-8")
    code = [line for line in text.splitlines() if line.strip() and not line.startswith(('"""', "import", "from"))]
    assert 20 < len(code) <= 32


def test_a_wrong_block_is_seen_and_a_missing_one_said(tmp_path: Path) -> None:
    path = tmp_path / "block.sock"
    with pytest.raises(fanin.ScenarioError, match=r"switch\.except\[0\]\.marking\.socket: .* is not there: start the block first"):
        fanin.run(scenario(outside(path, "enqueue")), tmp_path / "none")
    assert not (tmp_path / "none").exists()

    def off_by_one(start: cosim.Start) -> cosim.Decide:
        return lambda packet: cosim.MARK if packet.queue_bytes >= K else cosim.PASS

    with cosim.Listener(path, "threshold") as listener:
        thread = threading.Thread(target=lambda: answer(listener, off_by_one))
        thread.start()
        _, summary, _ = ran(outside(path, "enqueue"), tmp_path / "threshold")
        thread.join()
    _, expected, _ = ran(inside("enqueue"), tmp_path / "inside")
    assert summary["marks_by_reason"] != expected["marks_by_reason"]


def answer(listener: cosim.Listener, block: Any) -> None:
    with listener.accept() as run:
        decide = block(run.start)
        for packet in run:
            run.answer(decide(packet))


def test_a_block_that_raises_ends_the_run_and_keeps_what_there_is(tmp_path: Path) -> None:
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
    while not path.exists():
        time.sleep(0.01)
    time.sleep(0.05)
    with pytest.raises(RuntimeError, match=r"nobody decides about packets at port switch0->h8 any more: the block 'faulty 0' at .* "
                       r"closed the connection before it gave its answer to request 500 \(at "):
        fanin.run(scenario(outside(path, "enqueue")), tmp_path / "out")
    thread.join()
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert (manifest["status"], manifest["outside"][0]["requests"]) == ("partial", 500)
    assert manifest["files"].keys() >= {"flows", "queues"}


def test_frames_have_the_sizes_of_the_page() -> None:
    page = (ROOT / "docs" / "cosimulation.md").read_text(encoding="utf-8")
    for name, frame in (("hello", cosim.HELLO), ("port", cosim.PORT), ("welcome", cosim.WELCOME), ("request", cosim.REQUEST), ("reply", cosim.REPLY)):
        assert f"**{name}**, {frame.size} B" in page, name


def test_other_ends_are_refused(tmp_path: Path) -> None:
    """By the block's side: what is no Fanin, another version, half a frame; a socket that nobody listens at is replaced."""
    path = tmp_path / "block.sock"
    hello = cosim.HELLO.pack(cosim.MAGIC, 1, 0, 7, 1, 0, b"k=5 k=6 kk=7")
    for sent, message in (
        (b"GET / HTTP/1.1\r\n".ljust(512), "the other end is no Fanin: its first bytes are b'GET / HT'"),
        (hello[:8] + b"\2" + hello[9:], "the other end speaks version 2 of the protocol; accepted: 1"),
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
        run = listener.accept()
        assert (run.start.seed, run.start.departures, run.start.ports) == (7, True, {})
        assert [run.start.setting(key, 1) for key in ("k", "kk", "none")] == [6, 7, 1]
        with pytest.raises(OSError, match="in use"):
            cosim.Listener(path, "another")
    assert not path.exists()
