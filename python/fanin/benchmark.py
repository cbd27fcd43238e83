"""Benchmarks: each workload in a process of its own, instructions by valgrind, ns-3 beside it."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from fanin import _core, runner, show

__all__ = ["COLUMNS", "FEATURE_COLUMNS", "WORKLOADS", "feature_rows", "features", "measure", "rows", "start_rows", "start_up"]

WORKLOADS: Final[Mapping[str, float]] = {
    "W1": 0.5,
    "W2-128": 1.0,
    "W2-432": 1.0,
    "W2-1024": 1.0,
    "W2-3456": 0.1,
    "W2-8192": 0.02,
    "W3": 0.1,
    "L1": 0.02,
    "L2": 0.1,
    "demo": 0.1,
}
"""Workload → scale at which its instructions are counted; valgrind is some fifty times slower than the machine."""

PLAIN: Final = "W2-128"
FEATURE_SCALE: Final = 0.05

PEER: Final = "ns-3.37"
NOT_FOR_PEERS: Final = frozenset({"W2-3456", "W2-8192", "L1", "L2", "demo"})
PEER_SCALE: Final = 0.1
LOOP: Final = "fanin_run_loop"
WHOLE: Final = "fanin_run_whole"

KEYS: Final = ("packet_hops", "setup_s", "cpu_s", "wall_s", "hops_per_cpu_s", "peak_rss_mb", "sim_s")
COLUMNS: Final = ("Workload", "Hops", "Set-up", "CPU", "M hops/s", "Instr/hop", "Memory", PEER, "Ratio")
FEATURE_COLUMNS: Final = ("W2-128 with", "Instr/hop", "Ratio")

Note = Callable[[str], None]


def measure(
    workloads: Iterable[str], *, scale: float = 1.0, instructions: bool = True, peers: bool = False, note: Note = lambda _: None
) -> dict[str, dict[str, Any]]:
    """Measure workloads one after another.

    Parameters
    ----------
    workloads : iterable of str
        Keys of `WORKLOADS`.
    scale : float
        Share of each workload's bytes.
    instructions : bool
        Whether to count instructions per packet-hop, on a smaller scale, where valgrind is installed.
    peers : bool
        Whether to run ns-3 on the same work, at a tenth of the scale: its speed per packet-hop hardly depends on it. Not on
        more than 1,024 hosts, which would take it hours.
    note : callable
        Called with a line about what is going on.

    Returns
    -------
    dict
        Workload → ``packet_hops``, ``setup_s`` (CPU), ``cpu_s`` and ``wall_s`` of the run alone, ``hops_per_cpu_s``,
        ``instructions_per_hop`` (None without valgrind), ``peak_rss_mb``, ``sim_s``, ``peers`` ({name: ``hops_per_cpu_s``,
        ``ratio``}) and what else the core measures.

    Raises
    ------
    ValueError
        There is no such workload.
    OSError
        A workload did not run.
    """
    chosen = list(workloads)
    unknown = [name for name in chosen if name not in WORKLOADS]
    if unknown:
        raise ValueError(f"there is no workload {', '.join(unknown)}; there are {', '.join(WORKLOADS)}")
    valgrind = shutil.which("valgrind") if instructions else None
    if instructions and valgrind is None:
        note("valgrind is not installed: instructions are not counted (Debian: apt-get install valgrind)")
    measured = {}
    for name in chosen:
        note(f"{name}: running")
        entry = _run(_command(name, scale))
        ordered = {key: entry.pop(key) for key in KEYS}
        ordered["instructions_per_hop"] = None
        if valgrind:
            note(f"{name}: counting instructions at scale {min(scale, WORKLOADS[name]):g}")
            ordered["instructions_per_hop"] = _instructions(valgrind, name, min(scale, WORKLOADS[name]), LOOP)
            if ordered["instructions_per_hop"] is None:
                note(f"{name}: valgrind saw no {LOOP}: the extension was built without symbols")
        ordered["peers"] = _peers(name, scale * PEER_SCALE, ordered["hops_per_cpu_s"], note) if peers else {}
        measured[name] = {**ordered, **entry}
    return measured


def features(chosen: Iterable[str] = (), *, note: Note = lambda _: None) -> dict[str, dict[str, float]]:
    """Count the instructions that features cost: W2-128, 100 KB each, with one of them.

    Parameters
    ----------
    chosen : iterable of str
        Names of features; all if none is given.
    note : callable
        Called with a line about what is going on.

    Returns
    -------
    dict
        Feature → ``instructions_per_hop`` of the inner loop, and ``ratio`` to W2-128 without it, ``plain``. Where the feature
        records something, of the whole run with what is written, against ``plain, whole run``.

    Raises
    ------
    ValueError
        There is no such feature.
    OSError
        valgrind is not installed, or a workload did not run.
    """
    known = dict(_core.bench_features())
    names = list(chosen) or list(known)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"there is no feature {', '.join(unknown)}; there are {', '.join(known)}")
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise OSError("valgrind is not installed, so instructions cannot be counted (Debian: apt-get install valgrind)")

    def counted(workload: str, *, whole: bool) -> float:
        note(f"{workload}: counting instructions")
        found = _instructions(valgrind, workload, FEATURE_SCALE, WHOLE if whole else LOOP)
        if found is None:
            raise OSError("valgrind saw no inner loop: the extension was built without symbols")
        return found

    measured = {}
    for whole, label in ((False, "plain"), (True, "plain, whole run")):
        group = [name for name in names if known[name] is whole]
        if group:
            plain = counted(PLAIN, whole=whole)
            measured[label] = {"instructions_per_hop": plain, "ratio": 1.0}
        for name in group:
            found = counted(f"{PLAIN}/{name}", whole=whole)
            measured[name] = {"instructions_per_hop": found, "ratio": found / plain}
    return measured


TINY: Final = """
name = "tiny"
[topology]
kind = "single_switch"
hosts = 2
[[traffic]]
kind = "flows"
flows = [{ src = "h0", dst = "h1", size = "100KB" }]
"""


def start_up(*, repeat: int = 5) -> dict[str, float]:
    """Measure what comes before a simulation: CPU seconds, the least of some runs.

    Returns
    -------
    dict
        ``import_s`` of ``import fanin``, ``cli_s`` of ``fanin run`` with one flow of 100 KB between two hosts, and
        ``in_process_s`` of the same by `fanin.run`, the first run left out. The interpreter's own start is in the first two.
    """
    with tempfile.TemporaryDirectory() as folder:
        scenario = Path(folder) / "tiny.toml"
        scenario.write_text(TINY, encoding="utf-8")
        out = str(Path(folder) / "out")
        code = "from fanin.cli import app; app()"
        commands = {
            "import_s": [sys.executable, "-c", "import fanin"],
            "cli_s": [sys.executable, "-c", code, "run", str(scenario), "-o", out, "--force", "--quiet"],
        }
        measured = {key: min(_cpu_seconds(command) for _ in range(repeat)) for key, command in commands.items()}
        times = []
        for _ in range(repeat + 1):
            before = time.process_time()
            runner.run(scenario, out, progress=False, overwrite=True)
            times.append(time.process_time() - before)
        return {**measured, "in_process_s": min(times[1:])}


def _cpu_seconds(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise OSError(f"{' '.join(command[-3:])}: did not run: {done.stderr.strip()[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _command(workload: str, scale: float) -> list[str]:
    return [sys.executable, "-I", str(Path(__file__).with_name("_bench.py")), str(_core.__file__), workload, repr(scale)]


def _run(command: list[str]) -> dict[str, Any]:
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise OSError(f"benchmark {' '.join(command[-2:])}: did not run: {done.stderr.strip()[-2000:]}")
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _instructions(valgrind: str, workload: str, scale: float, function: str) -> float | None:
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder) / "callgrind.out"
        tool = [valgrind, "--tool=callgrind", f"--toggle-collect={function}", f"--callgrind-out-file={counts}", "--quiet"]
        entry = _run([*tool, *_command(workload, scale)])
        total = re.search(r"^(?:totals|summary): (\d+)", counts.read_text(), re.MULTILINE)
    if total is None or int(total[1]) == 0 or not entry["packet_hops"]:
        return None
    return int(total[1]) / int(entry["packet_hops"])


def _peers(workload: str, scale: float, ours: float, note: Note) -> dict[str, dict[str, float]]:
    if workload in NOT_FOR_PEERS:
        note(f"{workload}: not run with {PEER}")
        return {}
    jobs = Path(__file__).parents[2] / "benches" / "ns3" / "jobs.py"
    if not jobs.is_file():
        note(f"{PEER} is only compared from a checkout of the source")
        return {}
    if not (jobs.parent / "build" / "peer").exists() and not os.environ.get("NS3_PEER"):
        note(f"{PEER} is not built: apt-get install libns3-dev g++ (Debian 12), then make -C benches/ns3")
        return {}
    note(f"{workload}: running {PEER} at scale {scale:g}")
    entry = _run([sys.executable, str(jobs), "measure", "--repeat=1", "--scale", repr(scale), workload])
    theirs = 1e6 * entry["mhops_per_cpu_s"]
    return {PEER: {"hops_per_cpu_s": theirs, "ratio": ours / theirs, "scale": scale}}


def rows(measured: Mapping[str, Mapping[str, Any]]) -> list[list[str]]:
    """Return the rows of a table of what was measured; see `COLUMNS`."""
    out = []
    for name, entry in measured.items():
        peer = entry["peers"].get(PEER)
        out.append(
            [
                name,
                show.count(entry["packet_hops"]),
                f"{entry['setup_s']:.2f} s",
                f"{entry['cpu_s']:.2f} s",
                f"{entry['hops_per_cpu_s'] / 1e6:.2f}",
                show.NOTHING if entry["instructions_per_hop"] is None else f"{entry['instructions_per_hop']:.0f}",
                f"{entry['peak_rss_mb']:.0f} MB",
                f"{peer['hops_per_cpu_s'] / 1e6:.3f}" if peer else show.NOTHING,
                f"{peer['ratio']:.0f} ×" if peer else show.NOTHING,
            ]
        )
    return out


def feature_rows(measured: Mapping[str, Mapping[str, float]]) -> list[list[str]]:
    """Return the rows of a table of what features cost; see `FEATURE_COLUMNS`."""
    return [[name, f"{entry['instructions_per_hop']:.0f}", f"{entry['ratio']:.2f}"] for name, entry in measured.items()]


def start_rows(measured: Mapping[str, float]) -> list[list[str]]:
    """Return the rows of a table of what `start_up` measured."""
    names = {"import_s": "import fanin", "cli_s": "fanin run, one flow", "in_process_s": "fanin.run, one flow"}
    return [[names[key], f"{1000 * seconds:.1f} ms"] for key, seconds in measured.items()]
