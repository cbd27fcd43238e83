"""Runs hidden behind each kind of input, and whether ``fanin whatif`` finds their remedies: docs/dev/whatif-measured.md.

    python tests/python/whatif_truth.py                 # the whole table, in Markdown
    python tests/python/whatif_truth.py csv samples     # these inputs alone

The truth is the hidden scenario itself, run with each setting that was tried.
"""

from __future__ import annotations

import json
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

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


FIRST_S: Final = 1_795_219_200
"""Seconds since 1970 at which runs begin."""


def _counted(result: fanin.Result, every_ps: int) -> list[tuple[int, int, int, int]]:
    """Return time, bytes that left, drops so far, and the largest queue of each interval."""
    times, most, lost = _series(result, every_ps, largest=True)
    records = _records(result)
    _, at_end, _ = _series(result, every_ps, largest=False)
    kept = records.filter(~pl.col("dropped"))
    # What arrived and does not wait has left.
    come = np.searchsorted(kept["time_ps"].to_numpy(), times - _BEFORE * every_ps, side="right")
    arrived = np.concatenate([[0], kept["frame_bytes"].cum_sum().to_numpy()])[come]
    sent = np.maximum.accumulate(np.maximum(arrived - at_end, 0))
    rows = zip(times, sent, lost, most, strict=True)
    return [(int(at), 10**9 + int(left), int(drops), round(held)) for at, left, drops, held in rows]


def sonic(every_ps: int) -> Callable[[Case, fanin.Result, Path], Trace]:
    def point(time: int, statistic: int, value: int) -> dict[str, Any]:
        labels = {"object_name": "Ethernet25", "sai_type_id": "1", "sai_stat_id": str(statistic)}
        attributes = [{"key": key, "value": {"stringValue": label}} for key, label in labels.items()]
        told = {"timeUnixNano": str(FIRST_S * 10**9 + time // 1000), "asInt": str(value), "attributes": attributes}
        return {"name": f"sai_counter_type_1_stat_{statistic}", "gauge": {"dataPoints": [told]}}

    def write(case: Case, result: fanin.Result, folder: Path) -> Trace:
        path = folder / "otlp.json"
        lines = []
        for at, sent, drops, most in _counted(result, every_ps):
            metrics = [point(at, *value) for value in ((9, sent), (12, drops), (96, most))]
            lines.append(json.dumps({"resourceMetrics": [{"scopeMetrics": [{"metrics": metrics}]}]}))
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return [path], {"known": case.configured, "largest": True, "by": "queue"}

    return write


def gnmi(every_ps: int) -> Callable[[Case, fanin.Result, Path], Trace]:
    def write(case: Case, result: fanin.Result, folder: Path) -> Trace:
        messages = []
        for at, *values in _counted(result, every_ps):
            for late, (leaf, value) in enumerate(zip(("out-octets", "out-discards", "max-queue-len"), values, strict=True)):
                time_ns = FIRST_S * 10**9 + at // 1000 + 7_000 * late
                update = {"Path": f"interfaces/interface[name=Ethernet25]/state/counters/{leaf}", "values": {leaf: str(value)}}
                messages.append({"source": "leaf1", "subscription-name": "s", "timestamp": time_ns, "updates": [update]})
        path = folder / "gnmi.json"
        path.write_text("\n".join(json.dumps(message) for message in messages) + "\n", encoding="utf-8")
        return [path], {"known": case.configured, "largest": True, "by": "queue"}

    return write


def int_reports(case: Case, result: fanin.Result, folder: Path) -> Trace:
    """Report one packet in ten, and each drop; occupancy in bytes."""
    path = folder / "int.pcap"
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65_535, 1))
        number = 0
        columns = ("time_ps", "queue_bytes", "frame_bytes", "flow", "dropped")
        for place, (at, queue, frame, flow, dropped) in enumerate(_records(result).select(columns).iter_rows()):
            if not (dropped or place % 10 == 0):
                continue
            ip = struct.pack(
                ">BBHHHBBH4s4s", 0x45, 0, frame - 18, 0, 0, 64, 6, 0, bytes([10, 7, 0, flow + 1]), bytes([10, 7, 1, 1])
            )
            inner = ip + struct.pack(">HHIIBBHHH", 40_000 + flow, 80, 0, 0, 0x50, 0x10, 0, 0, 0)
            if dropped:
                flags, bits, metadata = 0xA0, 0x4001, struct.pack(">HHBBH", 3, 25, 1, 71, 0)
            else:
                flags, bits, metadata = 0x20, 0x5000, struct.pack(">HHI", 3, 25, 1 << 24 | queue)
            report = struct.pack(">BBBBHHI", 0x14, 14, 2, flags, bits, 0, 0) + metadata + inner
            content = struct.pack(">II", 2 << 28 | number & 0x3FFFFF, 7) + report
            number += 1
            udp = struct.pack(">HHHH", 50_000, 32_766, 8 + len(content), 0) + content
            outer = struct.pack(
                ">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, bytes([10, 7, 0, 99]), bytes([10, 7, 0, 98])
            )
            whole = bytes(12) + b"\x08\x00" + outer + udp
            seconds, nanoseconds = divmod(at // 1000, 10**9)
            file.write(struct.pack("<IIII", FIRST_S + seconds, nanoseconds, len(whole), len(whole)) + whole)
    return [path], {"known": case.configured, "columns": "queue=queue-occupancy:B"}


def _congestions(result: fanin.Result, rise: int, fall: int) -> list[dict[str, int]]:
    """Return times above a threshold until the queue is below another: start, peak and its time, drops, end."""
    found: list[dict[str, int]] = []
    open_one: dict[str, int] = {}
    before, behind = 0, 0
    for at, queue, frame, dropped in _records(result).select("time_ps", "queue_bytes", "frame_bytes", "dropped").iter_rows():
        low_at = before + max(0, behind - fall) * 8_000 * 1538 // 1518
        if open_one and low_at < at:
            found.append(open_one | {"end": low_at})
            open_one = {}
        before, behind = at, queue + (0 if dropped else frame)
        if not open_one and queue > rise:
            open_one = {"start": at, "from": queue, "peak": queue, "at": at, "drops": int(dropped)}
        elif open_one:
            open_one["drops"] += dropped
            if queue > open_one["peak"]:
                open_one |= {"peak": queue, "at": at}
    return found + ([open_one | {"end": before + behind * 8_000}] if open_one else [])


def lanz(case: Case, result: fanin.Result, folder: Path) -> Trace:
    """Write an entry where a queue rises above 20 KB, and one with its largest where it is below 5 KB; segments of 80 B."""
    lines = ["Report generated at 2026-11-21 08:00:00"]
    lines.append("Type,Time,Interface,Duration(usecs),Queue-Length,Time-Of-Max-Queue(usecs),Latency(usecs),,Tx-Drops")
    for one in _congestions(result, 20_000, 5_000):
        rows = (("S", "start", "N/A", one["from"], "N/A", 0), ("E", "end", one["end"], one["peak"], one["at"], one["drops"]))
        for kind, when, lasted, held, most, drops in rows:
            spent, largest = (at if isinstance(at, str) else (at - one["start"]) // 10**6 for at in (lasted, most))
            stamp = f"2026-11-21 08:00:00.{one[when] // 10**7:05d}"
            lines.append(f" {kind},{stamp},Et25(1),{spent},{-(-held // 80)},{largest},1.000,{drops}")
    path = folder / "lanz.csv"
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return [path], {"known": case.configured, "columns": "queue=Queue-Length:segments(80B)"}


def nxos(case: Case, result: fanin.Result, folder: Path) -> Trace:
    """Write a record of each burst above 20 KB, until the queue is below 5 KB."""

    def moment(at: int) -> str:
        return f"2026/11/21 08:00:00:{at // 10**6:06d}"

    rows = [
        {"if-str": "Eth1/25", "queue": "U0", "threshold": "20000", "start-time": moment(one["start"])}
        | {"peak": str(one["peak"]), "peak-time": moment(one["at"]), "end-depth": "5000", "end-time": moment(one["end"])}
        for one in _congestions(result, 20_000, 5_000)
    ]
    path = folder / "bursts.json"
    path.write_text(json.dumps({"TABLE_instance": {"ROW_instance": rows}}), encoding="utf-8")
    return [path], {"known": case.configured, "above": "20KB", "largest": True}


def bst(case: Case, result: fanin.Result, folder: Path) -> Trace:
    """Write two reports a second apart: an empty port, and its largest queue."""
    values = (0, -(-int(cast("int", _records(result)["queue_bytes"].max())) // 208), 0)
    texts = [
        json.dumps(
            {
                "jsonrpc": "2.0",
                "method": "get-bst-report",
                "asic-id": "1",
                "version": "1",
                "time-stamp": f"2026-11-21 - 08:00:{second:02d}",
                "report": [{"realm": "egress-uc-queue", "data": [[0, "25", cells]]}],
            }
        )
        for second, cells in enumerate(values)
    ]
    path = folder / "bst.json"
    path.write_text("\n".join([*texts, ""]), encoding="utf-8")
    return [path], {"known": case.configured, "columns": "watermark=buffer-count:cells(208B)", "largest": True}


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
    "sonic": ("SONiC's gauges (OTLP) each 100 µs", sonic(10**8)),
    "otlp": ("SONiC's gauges (OTLP) each 1 ms", sonic(10**9)),
    "leaves": ("gNMI each 100 µs, leaf by leaf", gnmi(10**8)),
    "gnmi": ("gNMI each 1 ms, leaf by leaf", gnmi(10**9)),
    "int": ("INT reports of one packet in 10, and of drops", int_reports),
    "lanz": ("LANZ, start and end", lanz),
    "nxos": ("NX-OS burst records", nxos),
    "bst": ("BroadView each second", bst),
}

REFUSED: Final[Mapping[str, str]] = dict.fromkeys(("lanz", "nxos", "bst"), "too few to hold a model against")
"""Inputs that are refused for some cases, and what is said then: any other refusal is a failure."""


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


def table(rows: Sequence[Row], refused: Sequence[tuple[str, str]] = ()) -> str:
    """Return a row for each input and a column for each case, as Markdown."""
    cells = dict.fromkeys(refused, "refused") | {(row.source, row.case): row.cell() for row in rows}
    named = {source for source, _ in cells}
    sources = [source for source, _ in INPUTS.values() if source in named]
    head = ["", *(case.name for case in CASES)]
    lines = [head, ["---"] * len(head), *([source, *(cells[source, case.name] for case in CASES)] for source in sources)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main(names: Sequence[str]) -> None:
    wrong = [name for name in names if name not in INPUTS]
    if wrong:
        raise SystemExit(f"{', '.join(wrong)}: no such input; accepted: {', '.join(INPUTS)}")
    rows, refused, failed = [], [], []
    for source in names or INPUTS:
        for case in CASES:
            try:
                row = tried(case, source)
            except (ValueError, fanin.TraceError) as error:
                refused.append((INPUTS[source][0], case.name))
                print(f"{source}: {case.name}: refused: {error}", file=sys.stderr, flush=True)
                if source not in REFUSED or REFUSED[source] not in str(error):
                    failed.append(f"{source}: {case.name}: is refused, which is not expected of it: {error}")
                continue
            rows.append(row)
            told = "; ".join(row.found.missed) or row.found.text[:110]
            print(f"{source}: {case.name}: {row.verdict} ({row.took_s:.1f} s): {told}", file=sys.stderr, flush=True)
    print(table(rows, refused))
    count = Counter(row.verdict for row in rows)
    judged = [row.agree for row in rows if row.found.answered]
    agree, settings = (sum(own[at] for own in judged) for at in (0, 1))
    false = sum(len(row.claimed) for row in rows)
    counted = ", ".join(f"{count[verdict]} {verdict}" for verdict in ("right", "wrong", "unsure", "no answer"))
    print(
        f"\nOf {len(rows) + len(refused)}: {counted}, {len(refused)} refused. "
        f"{agree} of {settings} settings are judged as they are; {false} are said to help and do not."
    )
    for row in rows:
        if row.claimed:
            print(f"* {row.source}, {row.case}: {', '.join(row.claimed)}")
    if failed:
        raise SystemExit("\n".join(failed))


if __name__ == "__main__":
    main(sys.argv[1:])
