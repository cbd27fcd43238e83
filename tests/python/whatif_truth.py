"""Runs hidden behind each kind of input, and whether ``fanin whatif`` finds their remedies: docs/dev/whatif-measured.md.

    python tests/python/whatif_truth.py                 # the whole table, in Markdown
    python tests/python/whatif_truth.py csv samples     # these inputs alone

The truth is the hidden scenario itself, run with each setting that was tried.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

import fanin
from fanin import _core
from fanin.remedy import WhatIf, whatif
from fanin.remedy.seen import sampled
from fanin.scenario import Scenario

RATE: Final = 10**9
RTT: Final = "200us"
PORT: Final = "s1->s2"


@dataclass(frozen=True)
class Case:
    """A scenario to hide: what is wrong with it, what is asked, and what its operators know of their own settings."""

    name: str
    senders: int
    size: str
    buffer: str
    goal: str
    transport: Mapping[str, Any] = field(default_factory=dict)
    k: str | None = None
    below: str | None = None

    def scenario(self, folder: Path) -> Scenario:
        """Return it: senders and a fast link before the port, so that it can be captured before and behind."""
        hosts = [f"h{n}" for n in range(self.senders)]
        nodes = [{"id": name, "kind": "host"} for name in [*hosts, "to"]] + [{"id": f"s{n}", "kind": "switch"} for n in range(3)]
        links = [{"a": name, "b": "s0", "rate": "10Gbps", "delay": "1us"} for name in hosts]
        links += [
            {"a": "s0", "b": "s1", "rate": "400Gbps", "delay": "1us"},
            {"a": "s1", "b": "s2", "rate": "1Gbps", "delay": "96us"},
        ]
        links += [{"a": "s2", "b": "to", "rate": "10Gbps", "delay": "1us"}]
        (folder / "network.json").write_text(json.dumps({"nodes": nodes, "links": links}), encoding="utf-8")
        switch: dict[str, Any] = {"buffer": {"kind": "static", "per_port": self.buffer}}
        if self.k is not None:
            switch["marking"] = {"kind": "threshold", "k": self.k}
        flows = [{"src": name, "dst": "to", "size": self.size, "start": f"{3 * n}us"} for n, name in enumerate(hosts)]
        return Scenario(
            {
                "name": "hidden",
                "topology": {"kind": "file", "path": "network.json", "format": "edge_list"},
                "switch": switch,
                "transport": {"kind": "tcp", "profile": "linux", "handshake": False, "rto_initial": "200ms", **self.transport},
                "traffic": [{"kind": "flows", "flows": flows}],
                "telemetry": {"queues": [PORT]},
            },
            base_dir=folder,
        )

    @property
    def configured(self) -> dict[str, Any]:
        """What its operators know: the buffer, the threshold, the congestion control."""
        known: dict[str, Any] = {
            "switch.buffer.per_port": self.buffer,
            "transport.congestion_control": self.transport["congestion_control"],
        }
        return known if self.k is None else {**known, "switch.marking": {"kind": "threshold", "k": self.k}}


NEWRENO: Final = {"congestion_control": "newreno"}
DCTCP: Final = {"congestion_control": "dctcp"}
CASES: Final = (
    Case("the buffer is too small", 12, "40KB", "128KB", "drops", NEWRENO),
    Case("the threshold is too high", 8, "500KB", "512KB", "peak", DCTCP, "300KB", "200KB"),
    Case("the first window is too large", 24, "60KB", "512KB", "drops", {**DCTCP, "initial_window": 40}, "60KB"),
    Case("RTO_min is too long", 48, "30KB", "32KB", "time", NEWRENO),
    Case("nothing helps", 8, "400KB", "4MB", "time", NEWRENO),
)

_BEFORE: Final = 5
"""Samples of an idle port before the run."""

Trace = tuple[list[Any], dict[str, Any]]
"""What `whatif` is given: sources and options."""


def _records(result: fanin.Result) -> pl.DataFrame:
    return pl.read_parquet(Path(result.path) / "queues.parquet").filter(pl.col("port") == PORT)


def own_tables(case: Case, result: fanin.Result, folder: Path) -> Trace:
    return [Path(result.path) / "queues.parquet"], {}


def csv_log(case: Case, result: fanin.Result, folder: Path) -> Trace:
    path = folder / "queue.csv"
    _records(result).select(
        time_ns=pl.col("time_ps") / 1000,
        queue_bytes="queue_bytes",
        frame="frame_bytes",
        flow=pl.format("10.0.0.{}:5 > 10.0.1.1:80 tcp", "flow"),
        marked=pl.col("marked").cast(pl.UInt8),
        dropped=pl.col("dropped").cast(pl.UInt8),
    ).write_csv(path, float_precision=3)
    return [path], {"buffer": case.buffer}


def _captured(case: Case, folder: Path, links: Sequence[str]) -> Scenario:
    plain = case.scenario(folder).replace({"telemetry": None})
    return plain.replace({"telemetry": {"capture": {"links": list(links), "snap": "128B"}}})


def pair(case: Case, result: fanin.Result, folder: Path) -> Trace:
    # The same run twice, as telemetry changes nothing: a capture at each side.
    paths = []
    for name, link in (("before", "s0->s1"), ("behind", PORT)):
        scenario = _captured(case, folder, [link])
        paths.append(Path(fanin.run(scenario, folder / name, progress=False).path) / "packets.pcapng")
    return paths[:1], {"behind": paths[1:], "buffer": case.buffer}


def single(case: Case, result: fanin.Result, folder: Path) -> Trace:
    path = Path(fanin.run(_captured(case, folder, [PORT, "s2->s1"]), folder / "behind", progress=False).path)
    return [path / "packets.pcapng"], {"known": case.configured}


def _series(result: fanin.Result, every_ps: int, *, largest: bool) -> tuple[Any, Any, Any]:
    records = _records(result)
    times, queue = sampled(records, RATE * 1518 / 1538, every_ps, 0.3, largest=largest)
    lost = records.filter(pl.col("dropped"))["time_ps"].to_numpy()
    # A series begins before the burst: its first sample is where drops are counted from.
    before = np.arange(_BEFORE) * every_ps
    dropped = np.searchsorted(lost, times, side="right")
    empty = np.zeros(_BEFORE)
    return np.concatenate([before, times + _BEFORE * every_ps]), np.concatenate([empty, queue]), np.concatenate([empty, dropped])


def _sampled(every_ps: int, *, largest: bool) -> Callable[[Case, fanin.Result, Path], Trace]:
    def write(case: Case, result: fanin.Result, folder: Path) -> Trace:
        times, queue, lost = _series(result, every_ps, largest=largest)
        path = folder / "samples.csv"
        rows = [f"{at // 1000},{round(held)},{int(drops)}" for at, held, drops in zip(times, queue, lost, strict=True)]
        path.write_text("\n".join(["time_ns,queue_bytes,drops", *rows]) + "\n", encoding="utf-8")
        columns = "time=time_ns:ns,queue=queue_bytes:B,dropped=drops:total"
        return [path], {"columns": columns, "known": case.configured, "largest": largest}

    return write


def tc(case: Case, result: fanin.Result, folder: Path) -> Trace:
    times, queue, lost = _series(result, 10**9, largest=False)
    lines = []
    for at, held, drops in zip(times, queue, lost, strict=True):
        document = [{"kind": "bfifo", "handle": "1:", "root": True, "dev": "eth0", "backlog": round(held), "drops": int(drops)}]
        lines += [f"{1_795_219_200 + at / 1e12:.9f}", json.dumps(document)]
    path = folder / "queues.json"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [path], {"known": case.configured}


INPUTS: Final[Mapping[str, tuple[str, Callable[[Case, fanin.Result, Path], Trace]]]] = {
    "tables": ("own tables (queues.parquet)", own_tables),
    "pair": ("two captures", pair),
    "csv": ("CSV of each packet's queue", csv_log),
    "behind": ("one capture behind the port", single),
    "samples": ("samples each 100 µs", _sampled(10**8, largest=False)),
    "slow": ("samples each 1 ms", _sampled(10**9, largest=False)),
    "quick": ("watermarks each 100 µs", _sampled(10**8, largest=True)),
    "largest": ("watermarks each 1 ms", _sampled(10**9, largest=True)),
    "tc": ("tc -s -j each 1 ms", tc),
}


@dataclass(frozen=True)
class Row:
    """What came of one case behind one input.

    Attributes
    ----------
    case, source : str
        What was hidden, and behind what.
    found : WhatIf
        The answer.
    truth : dict
        Setting → whether it does what is asked for in the hidden scenario.
    took_s : float
        Seconds of the answer.
    """

    case: str
    source: str
    found: WhatIf
    truth: Mapping[str, bool]
    took_s: float

    @property
    def verdict(self) -> str:
        """``right``, ``wrong``, ``unsure`` or ``no answer``."""
        if self.found.outcome in ("unsure", "no answer"):
            return self.found.outcome
        best = self.found.best
        right = not any(self.truth.values()) if best is None else self.truth[best.name]
        return "right" if right else "wrong"

    @property
    def agree(self) -> tuple[int, int]:
        """Settings of which the answer says what is true, of those that were tried."""
        return sum(own.sure == self.truth[own.name] for own in self.found.remedies), len(self.found.remedies)

    @property
    def claimed(self) -> list[str]:
        """Settings that are said to help and do not."""
        return [own.name for own in self.found.remedies if own.sure and not self.truth[own.name]]

    def cell(self) -> str:
        """Return the verdict, the answer, and how many settings are judged as they are."""
        found = self.found
        if not found.answered:
            return self.verdict
        best = found.best.name if found.best is not None else "nothing"
        said = self.verdict if self.verdict == "unsure" else f"{self.verdict}: {best}"
        return f"{said} ({self.agree[0]} of {self.agree[1]})"


def metrics(scenario: Scenario, port: str = PORT) -> dict[str, float]:
    """Return what `whatif` judges by, of a scenario that is run."""
    text, kind = scenario.source()
    summary = _core.summarize(text, kind, str(scenario.base_dir), None)["summary"]
    own = next(found for found in summary["ports"] if found["port"] == port)
    unfinished = summary["flows"]["incomplete"] + summary["flows"]["aborted"]
    return {
        "dropped": own["drops"],
        "all_drops": summary["drops"],
        "peak": own["max_bytes"],
        "until_ps": summary["flows_until_ps"],
        "incomplete": unfinished,
    }


def true_ones(scenario: Scenario, case: Case, found: WhatIf) -> dict[str, bool]:
    """Return of each setting whether it does what is asked for, in the hidden scenario itself."""
    base = scenario.replace({"telemetry": None})
    before = metrics(base)
    truth = {}
    for own in found.remedies:
        changed = base
        for path, value in own.changes.items():
            changed = changed.replace({path: value})
        after = metrics(changed)
        ended = after["incomplete"] <= before["incomplete"]
        does = {
            "drops": after["all_drops"] <= 0.1 * before["dropped"],
            "peak": after["peak"] <= float((case.below or "0KB")[:-2]) * 1000 and after["all_drops"] <= before["all_drops"],
            "time": after["until_ps"] <= 0.8 * before["until_ps"],
        }[case.goal]
        truth[own.name] = bool(ended and does)
    return truth


def tried(case: Case, source: str, *, members: int = 8, only: Sequence[str] = (), jobs: int | None = None) -> Row:
    """Hide a case behind an input and ask what would have helped."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        scenario = case.scenario(folder)
        result = fanin.run(scenario, folder / "out", progress=False)
        words, write = INPUTS[source]
        paths, options = write(case, result, folder)
        began = time.monotonic()
        asked: dict[str, Any] = {"rate": "1Gbps", "rtt": RTT, "members": members, "only": only, "jobs": jobs, **options}
        goal = {"below": case.below} if case.goal == "peak" else {"goal": case.goal}
        found = whatif([str(path) for path in paths], **asked, **goal)
        took = time.monotonic() - began
        return Row(case.name, words, found, true_ones(scenario, case, found), took)


def table(rows: Sequence[Row]) -> str:
    """Return a row for each input and a column for each case, as Markdown."""
    cells = {(row.source, row.case): row.cell() for row in rows}
    sources = list(dict.fromkeys(row.source for row in rows))
    head = ["", *(case.name for case in CASES)]
    lines = [head, ["---"] * len(head), *([source, *(cells[source, case.name] for case in CASES)] for source in sources)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main(names: Sequence[str]) -> None:
    wrong = [name for name in names if name not in INPUTS]
    if wrong:
        raise SystemExit(f"{', '.join(wrong)}: no such input; accepted: {', '.join(INPUTS)}")
    rows = []
    for source in names or INPUTS:
        for case in CASES:
            row = tried(case, source)
            rows.append(row)
            told = "; ".join(row.found.missed) or row.found.text[:110]
            print(f"{source}: {case.name}: {row.verdict} ({row.took_s:.1f} s): {told}", file=sys.stderr, flush=True)
    print(table(rows))
    count = Counter(row.verdict for row in rows)
    judged = [row.agree for row in rows if row.found.answered]
    agree, settings = (sum(own[at] for own in judged) for at in (0, 1))
    false = sum(len(row.claimed) for row in rows)
    counted = ", ".join(f"{count[verdict]} {verdict}" for verdict in ("right", "wrong", "unsure", "no answer"))
    print(
        f"\nOf {len(rows)}: {counted}. {agree} of {settings} settings are judged as they are; {false} are said to help and do not."
    )
    for row in rows:
        if row.claimed:
            print(f"* {row.source}, {row.case}: {', '.join(row.claimed)}")


if __name__ == "__main__":
    main(sys.argv[1:])
