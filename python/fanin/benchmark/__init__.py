"""Benchmarks: each workload in a process of its own, instructions by valgrind, ns-3 or htsim beside it."""

from __future__ import annotations

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fanin import _core
from fanin.files import system
from fanin.results import runner
from fanin.text import show

__all__ = [
    "COLUMNS",
    "FEATURE_COLUMNS",
    "PEERS",
    "ROUNDS",
    "WORKLOADS",
    "beside",
    "beside_columns",
    "beside_rows",
    "feature_rows",
    "features",
    "measure",
    "rows",
    "start_rows",
    "start_up",
]

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


@dataclass(frozen=True)
class Peer:
    """Another simulator: a program in ``benches/<folder>`` that runs jobs, and ``jobs.py`` beside it that makes them.

    ``runs`` are the workloads that it can run, each with the share at which paired rounds take a minute or two, ``counted`` the
    share of that at which its instructions are counted, in ``loop``.
    """

    label: str
    folder: str
    binary: str
    build: str
    runs: Mapping[str, float]
    loop: str | None = None
    counted: float = 0.05


PEERS: Final[Mapping[str, Peer]] = {
    "ns-3": Peer(
        "ns-3.37",
        "ns3",
        "NS3_PEER",
        "apt-get install libns3-dev g++ (Debian 12), then make -C benches/ns3",
        {"W1": 0.1, "W2-128": 0.1, "W2-432": 0.1, "W2-1024": 0.1, "W3": 0.1},
    ),
    "htsim": Peer(
        "htsim",
        "htsim",
        "HTSIM_PEER",
        "make -C benches/htsim HTSIM=/path/to/csg-htsim",
        {"W1": 1.0, "W2-128": 1.0, "W2-432": 0.5, "W2-1024": 0.2, "W2-3456": 0.05, "W2-8192": 0.02, "W3": 0.5},
        loop="htsim_run_loop",
    ),
}
"""Simulators that `beside` compares with."""

PEER: Final = PEERS["ns-3"].label
PEER_SCALE: Final = 0.1
ROUNDS: Final = 5
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
    system.needs_posix("fanin bench --start, which counts processor time,")
    import resource

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise OSError(f"{' '.join(command[-3:])}: did not run: {done.stderr.strip()[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _command(workload: str, scale: float) -> list[str]:
    return [sys.executable, "-I", str(Path(__file__).with_name("_bench.py")), str(_core.__file__), workload, repr(scale)]


def _run(command: list[str]) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(_output(command))
    return result


def _output(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise OSError(f"benchmark {' '.join(command[-2:])}: did not run: {done.stderr.strip()[-2000:]}")
    return done.stdout


def _instructions(valgrind: str, workload: str, scale: float, function: str) -> float | None:
    return _counted(valgrind, _command(workload, scale), function)


def _counted(valgrind: str, command: list[str], function: str, hops: int | None = None) -> float | None:
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder) / "callgrind.out"
        tool = [valgrind, "--tool=callgrind", f"--toggle-collect={function}", f"--callgrind-out-file={counts}", "--quiet"]
        entry = _run([*tool, *command])
        total = re.search(r"^(?:totals|summary): (\d+)", counts.read_text(), re.MULTILINE)
    crossed = entry["packet_hops"] if hops is None else hops
    if total is None or int(total[1]) == 0 or not crossed:
        return None
    return int(total[1]) / int(crossed)


@dataclass(frozen=True)
class _Job:
    """A workload as a job of a peer: the command that runs it without counting, and what a run that counted found."""

    command: list[str]
    totals: Mapping[str, Any]
    finished: list[int | None]

    @property
    def hops(self) -> int:
        return int(self.totals["packet_hops"])

    def timed(self) -> Mapping[str, Any]:
        run = _run(self.command)
        if [flow["finish_ps"] for flow in run["flows"]] != self.finished:
            raise OSError(f"{self.command[0]}: counting changed the simulation")
        totals: Mapping[str, Any] = run["totals"]
        return totals


@contextmanager
def _job(peer: Peer, workload: str, scale: float) -> Iterator[_Job]:
    folder, binary = _built(peer)
    made = [sys.executable, str(folder / "jobs.py"), "make", "--scale", repr(scale), workload]
    text = _output(made)
    with tempfile.TemporaryDirectory() as place:
        counting, timing = Path(place) / "counting.job", Path(place) / "timing.job"
        counting.write_text(text, encoding="utf-8")
        timing.write_text(f"{text}option count off\n", encoding="utf-8")
        counted = _run([str(binary), str(counting)])
        if counted["totals"]["unfinished"]:
            raise OSError(f"{workload}: {counted['totals']['unfinished']} flows did not end in {peer.label}")
        yield _Job([str(binary), str(timing)], counted["totals"], [flow["finish_ps"] for flow in counted["flows"]])


def _built(peer: Peer) -> tuple[Path, Path]:
    folder = Path(__file__).parents[3] / "benches" / peer.folder
    if not (folder / "jobs.py").is_file():
        raise OSError(f"{peer.label} is only compared from a checkout of the source")
    binary = Path(os.environ.get(peer.binary) or folder / "build" / "peer")
    if not binary.exists():
        raise OSError(f"{peer.label} is not built: {peer.build}")
    return folder, binary


def _peers(workload: str, scale: float, ours: float, note: Note) -> dict[str, dict[str, float]]:
    peer = PEERS["ns-3"]
    if workload not in peer.runs:
        note(f"{workload}: not run with {PEER}")
        return {}
    try:
        _built(peer)
    except OSError as error:
        note(str(error))
        return {}
    note(f"{workload}: running {PEER} at scale {scale:g}")
    with _job(peer, workload, scale) as job:
        theirs = job.hops / float(job.timed()["cpu_s"])
    return {PEER: {"hops_per_cpu_s": theirs, "ratio": ours / theirs, "scale": scale}}


def beside(  # noqa: PLR0913 (what `fanin bench` can be told)
    name: str,
    workloads: Iterable[str] = (),
    *,
    scale: float = 1.0,
    rounds: int = ROUNDS,
    instructions: bool = True,
    note: Note = lambda _: None,
) -> dict[str, dict[str, Any]]:
    """Compare with another simulator in paired rounds: in each, both run the same work, and who goes first alternates.

    Parameters
    ----------
    name : str
        Key of `PEERS`.
    workloads : iterable of str
        Keys of `WORKLOADS` that the peer can run; all of these if none is given.
    scale : float
        Share of each workload's bytes, besides the share that the peer runs it at.
    rounds : int
        How many.
    instructions : bool
        Whether to count instructions per packet-hop of both, on a smaller scale, where valgrind is installed.
    note : callable
        Called with a line about what is going on.

    Returns
    -------
    dict
        Workload → ``scale``, ``ratios`` (packet-hops per CPU second, ours over theirs, of each round), ``ratio`` (their
        median), ``time_ratio`` (median of the peer's CPU time over ours for the whole work), and ``fanin`` and the peer's name,
        each with ``packet_hops``, ``cpu_s`` of each round, ``hops_per_cpu_s`` (median), ``instructions_per_hop``,
        ``peak_rss_mb`` and ``sim_s``.

    Raises
    ------
    ValueError
        There is no such peer, or it cannot run a workload.
    OSError
        It is not built, or something did not run.
    """
    if name not in PEERS:
        raise ValueError(f"there is no simulator {name} to compare with; there are {', '.join(PEERS)}")
    peer = PEERS[name]
    chosen = list(workloads) or list(peer.runs)
    unknown = [workload for workload in chosen if workload not in peer.runs]
    if unknown:
        raise ValueError(f"{peer.label} is not given {', '.join(unknown)}; it runs {', '.join(peer.runs)}")
    _built(peer)
    valgrind = shutil.which("valgrind") if instructions and peer.loop else None
    measured = {}
    for workload in chosen:
        share = scale * peer.runs[workload]
        note(f"{workload}: {rounds} rounds at scale {share:g}")
        with _job(peer, workload, share) as job:
            entry = _rounds(job, workload, share, rounds)
        sides = {"fanin": entry.pop("ours"), name: entry.pop("theirs")}
        counts: dict[str, float | None] = {"fanin": None, name: None}
        if valgrind and peer.loop:
            note(f"{workload}: counting instructions at scale {share * peer.counted:g}")
            with _job(peer, workload, share * peer.counted) as job:
                counts[name] = _counted(valgrind, job.command, peer.loop, job.hops)
            counts["fanin"] = _instructions(valgrind, workload, share * peer.counted, LOOP)
        measured[workload] = {**entry, **{side: {**found, "instructions_per_hop": counts[side]} for side, found in sides.items()}}
    return measured


def _rounds(job: _Job, workload: str, scale: float, rounds: int) -> dict[str, Any]:
    ours: list[Mapping[str, Any]] = []
    theirs: list[Mapping[str, Any]] = []
    for turn in range(rounds):
        steps: list[Callable[[], None]] = [
            lambda: ours.append(_run(_command(workload, scale))),
            lambda: theirs.append(job.timed()),
        ]
        for step in steps if turn % 2 == 0 else reversed(steps):
            step()

    def side(runs: list[Mapping[str, Any]], hops: int) -> dict[str, Any]:
        return {
            "packet_hops": hops,
            "cpu_s": [run["cpu_s"] for run in runs],
            "hops_per_cpu_s": statistics.median(hops / run["cpu_s"] for run in runs),
            "peak_rss_mb": max(run["peak_rss_mb"] for run in runs),
            "sim_s": runs[0]["sim_s"],
        }

    found = {"ours": side(ours, ours[0]["packet_hops"]), "theirs": side(theirs, job.hops)}
    times = [other["cpu_s"] / own["cpu_s"] for own, other in zip(ours, theirs, strict=True)]
    per_hop = found["ours"]["packet_hops"] / job.hops
    ratios = [per_hop * ratio for ratio in times]
    return {"scale": scale, "ratios": ratios, "ratio": statistics.median(ratios), "time_ratio": statistics.median(times), **found}


def beside_columns(name: str) -> tuple[str, ...]:
    """Return the head of the table of `beside`."""
    label = PEERS[name].label
    pairs = [column for quantity in ("M hops/s", "Hops", "Instr/hop", "Memory") for column in (quantity, label)]
    return ("Workload", "Share", "Ratio per hop", "Rounds", "Ratio of time", *pairs)


def beside_rows(name: str, measured: Mapping[str, Mapping[str, Any]]) -> list[list[str]]:
    """Return the rows of a table of what `beside` measured: ratios first, then both sides of each quantity."""
    quantities: list[Callable[[Mapping[str, Any]], str]] = [
        lambda side: f"{side['hops_per_cpu_s'] / 1e6:.2f}",
        lambda side: show.count(side["packet_hops"]),
        lambda side: show.NOTHING if side["instructions_per_hop"] is None else f"{side['instructions_per_hop']:.0f}",
        lambda side: f"{side['peak_rss_mb']:.0f} MB",
    ]
    return [
        [
            workload,
            f"{entry['scale']:g}",
            f"{entry['ratio']:.1f} ×",
            f"{min(entry['ratios']):.1f} to {max(entry['ratios']):.1f}",
            f"{entry['time_ratio']:.1f} ×",
            *(text(entry[side]) for text in quantities for side in ("fanin", name)),
        ]
        for workload, entry in measured.items()
    ]


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
