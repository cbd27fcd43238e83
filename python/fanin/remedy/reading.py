"""From what a user gives to a model of the port: a result, a trace with flows, one behind the port, or samples of a queue."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fanin.analysis.port_scenario import draft, since_start
from fanin.analysis.settings import DECLARED
from fanin.remedy import seen
from fanin.remedy.fitted import Series
from fanin.remedy.model import Model, Uncertain, port_of, ports, replaced, watched, wire_bps
from fanin.remedy.seen import View
from fanin.remedy.settings import amount, period
from fanin.text import show

if TYPE_CHECKING:
    import polars as pl

    from fanin.analysis import Analysis
    from fanin.scenario import Scenario

RATE: Final = 0.01
"""What a speed that was given may be off by, unless the trace says more: as `rate_tolerance` of analyses."""

_GIVEN_RTT: Final = (0.95, 1.05)
_HANDSHAKE_RTT: Final = (0.9, 1.1)
_ASSUMED_RTT: Final = (0.5, 2.0)
"""Multiples of a round trip that was given, that handshakes show, and that is assumed."""

_TIMERS: Final = ("1ms", "10ms", "50ms", "1s")
"""Shortest timeouts that senders may have had instead of Linux' 200 ms."""

_WINDOWS: Final = (2, 4, 10, 20, 40, 64)
"""First windows that senders may have had: where many send at once, or behind a queue, starts do not show them."""

_SMALL: Final = 128
"""Frames up to this size bring no data [bytes]."""

_FASTER: Final = 10
"""So many times as fast as the port are the links of senders, where nothing shows how fast they are."""

_LOST: Final = 0.8
"""Share of the longest silence before a flow's first data from which all that it had sent before may have been lost."""

_LINUX: Final = (180 * 10**9, 260 * 10**9)
"""Silences that are one timeout of Linux [ps]."""

_TIMEOUT_PS: Final = 5 * 10**9
"""Shortest silence that may be a timeout [ps]."""

_BUFFERS: Final = 12
_LEAST_BUFFER: Final = 8 * 1518
"""How many buffers are tried where the trace shows none, and the smallest."""

_LONGEST_PS: Final = 600 * 10**12
_FEWEST: Final = 5
"""Time from a trace's first data to its last beyond which it is not modelled [ps], and packets below which it is not."""

_MOST_SENT: Final = 15_000_000_000
"""Bytes that a port may have sent while its samples were not empty: a fan-in that is fitted sends them some hundred times."""

Given = Mapping[str, Any]


def analysed(source: Any, settings: Given) -> Analysis:
    """Return the analysis of a trace, or of what a report of ``fanin analyze -o`` was made from, with the settings it had.

    Raises
    ------
    TraceError
        As `fanin.analyze`.
    ValueError
        A report is none, or its trace is gone.
    """
    from fanin.analysis import analyze

    report = _report(source)
    if report is None:
        return analyze(source, **settings)
    path, document = report
    paths = [_beside(str(own["path"]), path) for own in document["sources"]]
    kept = _settings(document["settings"])
    behind = [_beside(str(own), path) for own in kept.pop("behind", None) or []]
    # A second capture of a pair is among the sources, too.
    paths = [own for own in dict.fromkeys(paths) if own not in behind] or paths
    gone = [own for own in (*paths, *behind) if not Path(own).exists()]
    if gone:
        raise ValueError(f"{path}: what it was made from is not there: {', '.join(gone)}; accepted: the trace itself")
    return analyze(paths, **{**kept, **({"behind": behind} if behind else {}), **_chosen(settings)})


def relied_on(analysis: Analysis) -> None:
    """Refuse a trace of which the analysis says that nobody should rely on it.

    Raises
    ------
    ValueError
        It is not what it was taken for: what was found, and what to do.
    """
    trust = analysis.plausibility
    if trust["trust"] != "poor":
        return
    found = [own for own in trust["findings"] if own["level"] == "wrong"] or trust["findings"]
    listed = [f"{own['place']}: {own['words']} ({own['code']}); {own['hint']}" for own in found]
    raise ValueError("; ".join(["no answer, for the trace is not to be relied on", *listed]))


def _report(source: Any) -> tuple[Path, dict[str, Any]] | None:
    """Return a report of an analysis and its file, if that is what is given: a file, or a folder that holds one."""
    if not isinstance(source, str | os.PathLike):
        listed = list(source) if isinstance(source, Sequence) else []
        return _report(listed[0]) if len(listed) == 1 else None
    path = Path(source)
    if path.is_dir() and not (path / "manifest.json").exists():
        found = [own for own in sorted(path.glob("*.json")) if _report(own) is not None]
        if len(found) > 1:
            names = ", ".join(own.name for own in found)
            raise ValueError(f"{path}: holds several reports of analyses: {names}; accepted: one of them")
        if not found:
            raise ValueError(f"{path}: holds no report of an analysis; fanin analyze TRACE -o {path}/report.json writes one")
        return _report(found[0])
    if path.suffix.lower() != ".json" or not path.is_file():
        return None
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return None
    own = isinstance(document, dict) and str(document.get("schema", "")).startswith("analysis/")
    return (path, document) if own else None


def _chosen(settings: Given) -> dict[str, Any]:
    """Return settings that are not what they are if nobody gives them: the others are the report's."""
    return {
        name: value
        for name, value in settings.items()
        if name not in DECLARED or value not in (DECLARED[name][1].default, DECLARED[name][1].option)
    }


def _beside(path: str, report: Path) -> str:
    """Return a path as the report has it, or beside the report where it is not there."""
    beside = report.parent / path
    return path if Path(path).exists() or not beside.exists() else str(beside)


def _settings(kept: Given) -> dict[str, Any]:
    """Return the settings of a report as `fanin.analyze` takes them."""
    found: dict[str, Any] = {}
    for name, value in kept.items():
        if value is None or value == [] or (value is False and name != "fcs"):
            continue
        base, _, unit = name.rpartition("_")
        if unit in ("ps", "bytes") and base:
            found[base] = f"{value}{'ps' if unit == 'ps' else 'B'}"
        elif unit == "bps":
            found[base] = f"{value}bps"
        elif name not in ("top", "detailed", "max_bursts", "confidence"):
            found[name] = value
    return found


def kind_of(analysis: Analysis, port: dict[str, Any]) -> str:
    """Return what a trace has of a port: ``result``, ``flows``, ``behind``, or ``samples``.

    Raises
    ------
    ValueError
        It has nothing that a model can be held against.
    """
    sources = {source["kind"] for source in analysis.document["sources"]}
    if "result" in sources:
        return "result"
    if not port["records"]:
        raise ValueError(f"port {port['port']} has no records")
    import polars as pl

    records = analysis.records.filter(pl.col("port") == port["port"])
    packets = records["frame_bytes"].max() not in (None, 0)
    named = records["flow"].null_count() < records.height
    queue = records["queue_bytes"].null_count() < records.height
    if packets and named and queue:
        return "flows"
    if queue:
        return "samples"
    if packets and named and sources <= {"pcap", "pcapng"}:
        return "behind"
    raise ValueError(
        "the trace has neither a queue nor the flows of its packets; accepted: a queue (of each packet, samples, or the largest "
        "between them), or a capture"
    )


def given_model(scenario: Scenario, port: str | None, measured: tuple[View, seen.Seen], known: Given) -> Model:
    """Return a scenario that the user gives as the model of a port.

    Raises
    ------
    ValueError
        It has no such port.
    """
    scenario = replaced(scenario, known)
    there = ports(scenario)
    if port is not None and port not in there:
        raise ValueError(f"--at {port}: the scenario has no such port of a switch; accepted: {', '.join(there[:12])}")
    own = port or port_of(scenario)
    view, shown = measured
    uncertain = Uncertain(RATE, _GIVEN_RTT, round(1518 * 8e12 / wire_bps(scenario, own)))
    how = f"the scenario that was given, at its port {own}"
    return Model((watched(scenario, own, view),), own, view, shown, uncertain, how, ())


def measured(analysis: Analysis, port: dict[str, Any], kind: str, *, largest: bool) -> tuple[View, seen.Seen]:
    """Return how a trace shows a port, and what it shows.

    Raises
    ------
    ValueError
        Nobody knows the speed of the port.
    """
    if port["rate_bps"] is None or port["rate_from"] == "lower_bound":
        raise ValueError("a model needs the speed of the port: --rate")
    if kind == "behind":
        records = since_start(analysis, port["port"])
        shown = seen.behind(records, analysis.document["transfers"])
        _one_burst(port, shown)
        _sends_in_time(port, records)
        return View("behind", 0.0), shown
    if kind == "result" and analysis.document["settings"]["start_ps"] is not None:
        raise ValueError("start: a result is modelled by its own scenario, from its beginning; accepted: without --start")
    records = since_start(analysis, port["port"])
    _sends_in_time(port, records)
    above = float(port["detect"].get("above_bytes") or 0)
    if kind in ("flows", "result"):
        scale, counted = _scale(analysis, records)
        rate = float(port["rate_bps"]) * counted / (counted + int(port["overhead_bytes"]))
        drops = port["dropped"] is not None
        shown = seen.packets(records, rate, above, drops=drops)
        if kind == "flows":
            if records.height < _FEWEST:
                there = show.many(records.height, "packet")
                raise ValueError(f"port {port['port']}: {there}: too few to hold a model against; accepted: {_FEWEST} or more")
            _one_burst(port, shown)
        return View("packets", above, scale, 0, drops), shown
    times, queue, dropped = _samples(analysis, port)
    every = _every(times)
    _busy_samples(analysis, port, times, queue, every)
    view = View("largest" if largest else "samples", above, 1.0, every, dropped is not None)
    return view, seen.samples(times, queue, dropped, view)


def _one_burst(port: dict[str, Any], shown: seen.Seen) -> None:
    """Refuse packets over so long a time that no simulation of it would end soon.

    Raises
    ------
    ValueError
        How long it is, and what to do.
    """
    lasted = shown.lasted_ps or 0
    if lasted > _LONGEST_PS:
        raise ValueError(
            f"port {port['port']}: from its first data to its last there are {show.duration(lasted)}, too long for a model of one "
            f"burst, where {show.duration(_LONGEST_PS)} is the most; its longest silence is {show.duration(shown.silent_ps)}; "
            "accepted: one burst of it, by --start TIME and --stop TIME"
        )


def _sends_in_time(port: dict[str, Any], records: pl.DataFrame) -> None:
    """Refuse a speed at which a port could not have sent what arrived.

    Raises
    ------
    ValueError
        How long it would have taken, and what to do.
    """
    takes = float(records["frame_bytes"].sum() or 0) * 8e12 / float(port["rate_bps"])
    if takes > _LONGEST_PS:
        raise ValueError(
            f"port {port['port']}: what arrived takes {show.duration(takes)} to send at {show.rate(port['rate_bps'])}, where "
            f"{show.duration(_LONGEST_PS)} is the most that is modelled; accepted: the port's own speed, --rate"
        )


def _scale(analysis: Analysis, records: pl.DataFrame) -> tuple[float, int]:
    """Return bytes of a frame in the simulator over those in the trace, and the latter, of a full frame."""
    counted = int(records["frame_bytes"].quantile(0.99, "nearest") or 1518)
    fcs = 0 if analysis.document["settings"]["fcs"] else 4
    return (counted + fcs) / counted, counted


def _samples(analysis: Analysis, port: dict[str, Any]) -> tuple[Any, Any, int | None]:
    """Return moments, the queue at them, and drops of all of them, from ``--start`` on."""
    import numpy as np
    import polars as pl

    start = analysis.document["settings"]["start_ps"]
    there = since_start(analysis, port["port"]).filter(pl.col("queue_bytes").is_not_null())
    there = there.unique("time_ps", keep="first", maintain_order=True)
    times = there["time_ps"].to_numpy().astype(np.int64)
    dropped = None if port["dropped"] is None else int(port["dropped"])
    if dropped and start is not None:
        # The port's own count has those before it, too.
        each = [burst["dropped_packets"] for burst in port["bursts"]]
        dropped = None if None in each or port["bursts_left_out"] else sum(each)
    return times, there["queue_bytes"].to_numpy().astype(np.float64), dropped


def _busy_samples(analysis: Analysis, port: dict[str, Any], times: Any, queue: Any, every: int) -> tuple[int, int]:
    """Return the first and the last sample that is not empty.

    Raises
    ------
    ValueError
        There is none, or they are so far apart that no model of one burst could be held against them.
    """
    import numpy as np

    waits = np.flatnonzero(queue > 0)
    if not len(waits):
        raise ValueError(
            f"port {port['port']}: the queue is empty in all {show.many(len(times), 'sample')}; "
            "accepted: samples in which something waits"
        )
    first, last = int(waits[0]), int(waits[-1])
    span = int(times[last] - times[first])
    gaps = np.diff(times[first : last + 1])
    sent = float((gaps * (queue[first:last] > 0)).sum()) * float(port["rate_bps"]) / 8e12
    if span <= seen.LONGEST * every and sent <= _MOST_SENT:
        return first, last
    why = (
        f"{show.count(span // every + 1)} samples at {show.duration(every)} each, where {show.count(seen.LONGEST)} is the most"
        if span > seen.LONGEST * every
        else f"{show.size(sent)} would leave while it is not empty, where {show.size(_MOST_SENT)} is the most"
    )
    hole = int(gaps.max())
    after = _when(analysis, int(times[first + int(gaps.argmax())]))
    told = f"; the longest time without a sample is {show.duration(hole)}, after {after}" if hole > 2 * every else ""
    raise ValueError(
        f"port {port['port']}: its queue is not empty from {_when(analysis, int(times[first]))} to "
        f"{_when(analysis, int(times[last]))}, too long for a model of one burst: {why}{told}; "
        "accepted: one burst of it, by --start TIME and --stop TIME"
    )


def _when(analysis: Analysis, time_ps: int) -> str:
    """Return a moment as ``--start`` and ``--stop`` take it."""
    return f"{time_ps / 1e12:.9f}s" if analysis.clock is None else analysis.clock.text(time_ps)


def _every(times: Any) -> int:
    """Return the usual time between two samples [ps].

    Raises
    ------
    ValueError
        There are fewer than four.
    """
    import numpy as np

    gaps = np.diff(times)
    if len(gaps) < 4 or not np.median(gaps):
        raise ValueError(f"{show.many(len(times), 'sample')} of the queue: too few to hold a model against; accepted: 5 or more")
    return int(np.median(gaps))


def of_samples(analysis: Analysis, port: dict[str, Any], shown: tuple[View, seen.Seen], known: Given) -> Series:
    """Return samples of a queue with what is known of the port, to fit a fan-in to."""
    import numpy as np

    view, found = shown
    times, queue, _ = _samples(analysis, port)
    every = view.every_ps
    first, last = _busy_samples(analysis, port, times, queue, every)
    # Samples that are missing or late: the queue is taken on one grid, which begins with the first sample of all.
    begin = times[0] + max(0, (times[first] - times[0]) // every - 1) * every
    grid = np.arange(begin, min(times[last] + every, times[-1]) + 1, every, dtype=np.int64)
    held = queue[np.clip(np.searchsorted(times, grid + every // 2, side="right") - 1, 0, len(queue) - 1)]
    given = analysis.document["settings"]["rtt_ps"]
    rtt = (round(given * 0.95), round(given * 1.05)) if given else (20_000_000, 5_000_000_000)
    room = known.get("switch.buffer.per_port")
    buffer = None if room is None else amount(str(room))
    return Series(grid, held, found, float(port["rate_bps"]), rtt, buffer, known)


def of_flows(
    analysis: Analysis, port: dict[str, Any], shown: tuple[View, seen.Seen], known: Given, *, behind: bool
) -> tuple[Model, list[Scenario]]:
    """Return a model of a trace with flows, and variants for the case that none of its own gives back what was measured.

    Raises
    ------
    ValueError
        The trace lacks what it takes.
    """
    import polars as pl

    from fanin.scenario import Scenario

    made = draft(analysis, port["port"], behind=behind)
    view, found = shown
    controls = [str(known["transport.congestion_control"])] if "transport.congestion_control" in known else list(made.controls)
    bases = [replaced(Scenario.from_toml(made.text(control)), known) for control in controls]
    buffered = any(path.startswith("switch.buffer") for path in known)
    if behind:
        busy = _busy(since_start(analysis, port["port"]), float(port["rate_bps"]))
        bases = [own for base in bases for own in _from_behind(base, found, busy)]
    first = bases
    if behind and not buffered:
        total = max(_LEAST_BUFFER * 2, sum(message.payload for message in made.messages))
        rooms = [round(_LEAST_BUFFER * (total / _LEAST_BUFFER) ** (at / (_BUFFERS - 1))) for at in range(_BUFFERS)]
        first = [base.replace({"switch.buffer.per_port": f"{room}B"}) for base in bases for room in rooms]
    if behind and "transport.initial_window" not in known:
        first = [base.replace({"transport.initial_window": count}) for base in first for count in _WINDOWS]
    others: list[Scenario] = []
    timer = "transport.rto_min" not in known
    window = "transport.initial_window" not in known
    if any(base.resolved["transport"].get("rto_min") for base in bases):
        changes: list[dict[str, Any]] = []
        if timer:
            changes += [{"transport.rto_min": text, "transport.rto_initial": text} for text in _TIMERS]
        if window and not behind:
            changes += [{"transport.initial_window": count} for count in _WINDOWS]
        others = [replaced(base, change) for base in first for change in changes]
    rtt = analysis.document["settings"]["rtt_ps"]
    lows = analysis.taken["rtt_low_ps"].drop_nulls()
    assumed = any("for the trace shows none" in words for words in made.unsure)
    factors = _GIVEN_RTT if rtt else _HANDSHAKE_RTT if lows.len() or not assumed else _ASSUMED_RTT
    frame = round(1518 * 8e12 / float(port["rate_bps"]))
    rate = _tolerance(port, analysis)
    records = since_start(analysis, port["port"])
    arrivals = None if behind else records.filter(pl.col("frame_bytes") > 0)
    how = (
        "the flows of a capture behind the port: starts are those of what left it"
        if behind
        else "the arrivals of each flow: senders, sizes and starts as they were measured"
    )
    told = tuple(words for words in made.unsure if not words.startswith("buffer: without end"))
    if behind and not buffered:
        told = (*told, "buffer: a capture behind the port does not show it; several are tried (--set switch.buffer.per_port=SIZE)")
    model = Model(
        tuple(watched(base, "left->right", view) for base in first),
        "left->right",
        view,
        found,
        Uncertain(rate, factors, frame),
        how,
        told,
        arrivals,
        float(port["rate_bps"]),
        int(port["overhead_bytes"]),
    )
    return model, [watched(own, "left->right", view) for own in others]


def _from_behind(base: Scenario, found: seen.Seen, busy: Sequence[tuple[int, int]]) -> list[Scenario]:
    """Return models of what left a port: senders' links faster than the port, and starts as they may have been.

    While a port is busy its packets leave one after another, whenever they came: a flow may have begun as early as that. And one
    whose first data leaves after a timeout may have lost all that it had sent before.

    Parameters
    ----------
    base : Scenario
        With the starts of what left.
    found : Seen
        What was measured.
    busy : sequence of tuple of int
        From when to when the port sent without a pause, from the first data on [ps].
    """
    from fanin.scenario import Scenario

    fast = base.replace({"topology.host_link.rate": f"{round(_FASTER * wire_bps(base, 'left->right') / 1e3)}Kbps"})
    silent = found.silent_ps or 0
    timeout = silent >= _TIMEOUT_PS
    made = []
    for early in (True, False):
        document = fast.to_dict()
        flows = [flow for entry in document.get("traffic", []) for flow in entry.get("flows", []) if isinstance(flow, dict)]
        starts = [period(str(flow["start"])) or 0 for flow in flows]
        lost = [timeout and start >= _LOST * silent for start in starts]
        there = [start for start, gone in zip(starts, lost, strict=True) if not gone]
        kept = iter(_earliest(there, busy) if early else there)
        begun = [0 if gone else next(kept) for gone in lost]
        # A buffer that is full loses all of those that come last.
        last = max((start for start, gone in zip(begun, lost, strict=True) if not gone), default=0)
        for flow, start, gone in zip(flows, begun, lost, strict=True):
            flow["start"] = f"{last if gone else start}ps"
        made.append(Scenario(document, base_dir=base.base_dir))
    # As long as a timeout of Linux takes: that flows should begin just then is less likely than that they lost what they had sent.
    late = [] if not timeout or _LINUX[0] <= silent <= _LINUX[1] else [fast]
    return [*made, *late]


def _earliest(starts: Sequence[int], busy: Sequence[tuple[int, int]]) -> list[int]:
    """Return the earliest starts that bring first packets in the order in which they left, with so many others between them.

    What left between the first packets of two flows came between them, too: from as many senders as had begun, each as fast as its
    link.
    """
    found = list(starts)
    for begin, end in busy:
        inside = sorted((start, at) for at, start in enumerate(starts) if begin <= start <= end)
        now, before = float(begin), begin
        for active, (start, at) in enumerate(inside):
            now += (start - before) / (_FASTER * max(1, active))
            before = start
            found[at] = round(now)
    return found


def _busy(records: pl.DataFrame, wire_bps: float) -> list[tuple[int, int]]:
    """Return from when to when a port sent without a pause, from its first data on [ps]."""
    import numpy as np

    data = records.filter(records["frame_bytes"] > _SMALL)
    times = data["time_ps"].to_numpy().astype(np.int64)
    if not len(times):
        return []
    times = times - times[0]
    breaks = np.flatnonzero(np.diff(times) > 2 * 1538 * 8e12 / wire_bps)
    begins = times[np.concatenate([[0], breaks + 1])]
    ends = times[np.concatenate([breaks, [len(times) - 1]])]
    return [(int(begin), int(end)) for begin, end in zip(begins, ends, strict=True)]


def _tolerance(port: dict[str, Any], analysis: Analysis) -> float:
    """Return what the speed of a port may be off by, a share."""
    given = analysis.document["settings"]["rate_tolerance"]
    low, high = port["rate_low_bps"], port["rate_high_bps"]
    if low and high:
        return max(RATE, float(high - low) / 2 / float(port["rate_bps"]))
    return RATE if given is None else float(given)


def of_result(analysis: Analysis, port: dict[str, Any], shown: tuple[View, seen.Seen], known: Given) -> Model:
    """Return a result's own scenario as the model of its port: nothing but the seed is uncertain.

    Raises
    ------
    ValueError
        It cannot be run again, as where it reads files that are elsewhere.
    """
    from fanin.scenario import Scenario

    folder = Path(analysis.document["sources"][0]["path"])
    document = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["scenario"]
    scenario = replaced(Scenario(document, base_dir=folder), known)
    if not scenario.check().ok:
        problem = scenario.check().errors[0]
        raise ValueError(
            f"{folder}: its scenario cannot be run from there: {problem}; accepted: the scenario itself, --scenario FILE"
        )
    view, found = shown
    name = str(port["port"])
    how = "the result's own scenario, of which nothing is uncertain but the seed"
    return Model((watched(scenario, name, view),), name, view, found, Uncertain(0.0, (1.0, 1.0), 0), how, ())
