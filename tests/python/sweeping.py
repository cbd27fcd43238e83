"""A small scenario to sweep, and what tests of sweeps ask of a store."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl

import fanin

BASE: dict[str, Any] = {
    "name": "small",
    "topology": {"kind": "single_switch", "hosts": 5, "link": {"rate": "10Gbps", "delay": "10us"}},
    "switch": {"buffer": {"kind": "static", "per_port": "100KB"}, "marking": {"kind": "threshold", "k": "20 packets"}},
    "transport": {"kind": "tcp", "congestion_control": "dctcp", "rto_min": "1ms", "rto_initial": "1ms"},
    "traffic": [{"kind": "incast", "receiver": "h4", "size": "20KB"}],
}

TOML = """name = "small"
[topology]
kind = "single_switch"
hosts = 5
link = { rate = "10Gbps", delay = "10us" }
[switch]
buffer = { kind = "static", per_port = "100KB" }
marking = { kind = "threshold", k = "20 packets" }
[transport]
kind = "tcp"
congestion_control = "dctcp"
rto_min = "1ms"
rto_initial = "1ms"
[[traffic]]
kind = "incast"
receiver = "h4"
size = "20KB"
"""


def swept(**table: Any) -> dict[str, Any]:
    """Return the small scenario with a ``[sweep]`` table."""
    return {**BASE, "sweep": table}


def run(out: Path | str, table: dict[str, Any], **options: Any) -> fanin.Sweep:
    """Sweep the small scenario quietly."""
    found: fanin.Sweep = fanin.sweep(swept(**table), out, **{"progress": False, "jobs": 2, **options})
    return found


def same(a: fanin.Sweep, b: fanin.Sweep) -> None:
    """Compare what two stores say, but for where and how fast it was run."""
    volatile = ["segment", "cpu_s", "wall_s", "attempt", "host"]
    assert a.runs.drop(volatile).equals(b.runs.drop(volatile))

    def rows(sweep: fanin.Sweep) -> pl.DataFrame:
        return sweep.metrics.drop("segment").select(sorted(set(sweep.metrics.columns) - {"segment"})).sort("run", "group", "name")

    assert rows(a).equals(rows(b))


def command(*arguments: object, flush_s: float = 5.0, **environment: str) -> subprocess.Popen[str]:
    """Start ``fanin`` in a process of its own, which writes segments so often."""
    code = f"from fanin.sweep import store; store.FLUSH_S = {flush_s}; from fanin.cli import app; app()"
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process: subprocess.Popen[str], timeout: float = 60) -> tuple[int, str, str]:
    """Wait for a command: exit status, standard output, standard error."""
    out, error = process.communicate(timeout=timeout)
    return process.returncode, out, error


def killed(process: subprocess.Popen[str]) -> None:
    """Kill a command without warning."""
    process.kill()
    process.communicate()


def children(parent: int) -> list[int]:
    """Return the worker processes of a process."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == parent:
                found += [int(entry.name)] if b"fanin.sweep._worker" in (entry / "cmdline").read_bytes() else []
        except OSError:
            continue  # it has just ended
    return found
