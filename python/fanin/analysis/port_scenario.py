"""A port's trace as a scenario: what arrived, from whom and when, replayed through a port like it by senders that react."""

from __future__ import annotations

import math
import re
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from fanin import _core
from fanin.scenario import Scenario
from fanin.text import show

if TYPE_CHECKING:
    import polars as pl

    from fanin.analysis.bursts import Analysis

MOST_RECORDS: Final = 2_000_000
"""Packets of a trace that are replayed: several are simulated for each."""

MOST_FLOWS: Final = 10_000
"""Flows of a scenario: each is a line of it."""

_SILENCE_PS: Final = 10**12
"""A flow that was silent for longer sends a new message; shorter silences are timeouts."""

_HANDSHAKE_PS: Final = 10**12
"""Longest time between the packets of a handshake that is believed."""

_HOST: Final = r"\[[^]\s]+\]|[^\s:\[]+|\S+?"
_NAME: Final = re.compile(
    rf"(?P<src>{_HOST})(?::\d+)? (?:->|→|>) (?P<dst>{_HOST})(?::\d+)?(?: (?P<protocol>\S.*?))?(?P<vni> vni \d+)?"
)
"""Names of flows in captures and in most tables: `10.0.0.1:80 > 10.0.0.2:5000 tcp`, `[fd00::1]:80 > [fd00::2]:81 udp`."""

_SMALL: Final = 100
"""Frames up to this size may be without payload [bytes]."""

_OPTIONS: Final = 20
"""Bytes of options that a SYN has beyond those of later segments, at most."""

_FCS: Final = 4
_GAP: Final = 20
"""Bytes of a frame's check sequence, and of preamble and gap between frames (IEEE 802.3)."""

_SPEEDS: Final = (10, 100, 1_000, 2_500, 5_000, 10_000, 25_000, 40_000, 50_000, 100_000, 200_000, 400_000, 800_000)
"""Speeds of Ethernet [Mb/s]."""

_ASSUMED_RTT_PS: Final = 100_000_000
_WINDOW: Final = 10
"""Round trip and first window where the trace shows none: 100 µs, and RFC 6928's ten segments."""

_MARK: Final = 65 * 1518
"""Threshold of DCTCP at 10 Gb/s: 65 full frames (DCTCP, section 4)."""

_RTO_PS: Final = 200 * 10**9
"""Linux' TCP_RTO_MIN."""

_LARGEST_WINDOW: Final = 64
_TOLD: Final = 0.1
"""Difference of distances from which one control comes nearer than another: a tenth, of all numbers together."""

_FAR: Final = 1.25
"""Ratio of a number that was simulated to the measured one, or the other way round, from which it is not near."""

LIMITS: Final = (
    "no scenario of one port has what senders and receivers did beyond TCP (slow applications, pauses), queues elsewhere on the "
    "path, or round trips of their own for each flow"
)
"""What no scenario of a port has, in words."""

CONTROLS: Final = ("cubic", "newreno")
"""Congestion controls that are tried where nothing was marked; with marks it is DCTCP."""


@dataclass(frozen=True)
class Outcome:
    """What happened at the port, measured or simulated.

    Attributes
    ----------
    peak_bytes : float
        Longest queue, as the trace counts frames [bytes].
    dropped : int or None
        Packets dropped; None where the trace does not tell.
    burst_ps : int
        Time in bursts [ps].
    lasted_ps : int
        From the first data to the last [ps].
    """

    peak_bytes: float
    dropped: int | None
    burst_ps: int
    lasted_ps: int

    def distance(self, other: Outcome) -> float:
        """Return how far another one is off: the sum of the logarithms of the ratios."""
        pairs = [(self.peak_bytes + 1, other.peak_bytes + 1), (self.lasted_ps + 1, other.lasted_ps + 1)]
        if self.burst_ps:
            pairs.append((self.burst_ps, max(other.burst_ps, 1)))
        if self.dropped is not None and other.dropped is not None:
            pairs.append((self.dropped + 10, other.dropped + 10))  # a few drops more or less say little
        return sum(abs(math.log(a / b)) for a, b in pairs)

    def missed(self, other: Outcome) -> list[str]:
        """Return in words what of another one is not near to this."""
        words = []
        pairs = [
            ("longest queue", self.peak_bytes, other.peak_bytes, show.size, 0.0),
            ("drops", self.dropped, other.dropped, lambda count: f"{count:,.0f}", 10.0),  # a few more or less say little
            ("time in bursts", self.burst_ps, other.burst_ps, show.duration, 0.0),
            ("time to the last data", self.lasted_ps, other.lasted_ps, show.duration, 0.0),
        ]
        for name, ours, theirs, shown, slack in pairs:
            if ours is None or theirs is None:
                continue
            least, most = sorted((float(ours) + slack, float(theirs) + slack))
            if most > _FAR * max(least, 1.0):
                words.append(f"{name} ({shown(theirs)} for {shown(ours)})")
        return words


@dataclass(frozen=True)
class PortScenario:
    """A port's trace as a scenario.

    Attributes
    ----------
    text : str
        The scenario, TOML with comments.
    scenario : Scenario
        The same, to simulate.
    measured : Outcome
        What the trace says.
    simulated : dict
        Congestion control → what came of the scenario with it; the scenario has the first, which is nearest.
    unsure : tuple of str
        What the trace does not say, and what was taken for it.
    missed : tuple of str
        What of the nearest simulation is more than a quarter off what was measured; with any of it, what the scenario says of a
        remedy is not to be believed.
    """

    text: str
    scenario: Scenario
    measured: Outcome
    simulated: Mapping[str, Outcome]
    unsure: tuple[str, ...]
    missed: tuple[str, ...] = ()

    @property
    def limits(self) -> tuple[str, ...]:
        """What is to be said beside what was taken for what the trace does not tell: how far it is off, and what it cannot have."""
        return *_far(self.missed), LIMITS


@dataclass(frozen=True)
class _Trace:
    """An analysed trace, its port, the port's packets, and the bytes of a full frame as it counts them."""

    analysis: Analysis
    port: dict[str, Any]
    records: pl.DataFrame
    counted: int


@dataclass(frozen=True)
class _Message:
    """What a flow sent without a long silence."""

    flow: str
    src: str
    dst: str
    tcp: bool
    start_ps: int
    end_ps: int
    payload: int
    packet: int


@dataclass(frozen=True)
class _Port:
    """Numbers of the port, as the simulator counts: frames with their check sequence, and 20 bytes between them."""

    rate_kbps: int
    scale: float
    rtt_ps: int
    access_kbps: int
    buffer_bytes: int
    mark_bytes: int | None
    window: int
    mtu: int
    reacts: bool


@dataclass(frozen=True)
class Draft:
    """What arrived at a port and the port's numbers, before a congestion control is chosen.

    Attributes
    ----------
    port : dict
        The port's report.
    messages : tuple
        What each flow sent, in order of time.
    numbers : object
        Numbers of the port.
    controls : tuple of str
        Congestion controls that may have been in force.
    unsure : tuple of str
        What the trace does not say, and what was taken for it.
    """

    port: dict[str, Any]
    messages: tuple[_Message, ...]
    numbers: _Port
    controls: tuple[str, ...]
    unsure: tuple[str, ...]

    @property
    def scale(self) -> float:
        """Bytes of a frame in the simulator over its bytes in the trace."""
        return self.numbers.scale

    def text(self, control: str, head: Sequence[str] = ()) -> str:
        """Return the scenario with a congestion control, as TOML with `head` as its comment."""
        return _text(self.port, self.messages, self.numbers, control, head)


def draft(analysis: Analysis, name: str | None = None, *, behind: bool = False) -> Draft:
    """Return what arrived at a port and the port's numbers; nothing is simulated.

    Parameters
    ----------
    analysis : Analysis
        A trace with flows.
    name : str, optional
        The port; the one with the largest queue if not given.
    behind : bool
        Take a trace without a queue, too, such as a capture behind the port: its buffer is then without end, and what was dropped
        is missing from what was sent.

    Raises
    ------
    ValueError
        The trace lacks what it takes, or has too much.
    """
    trace, unsure = _trace(analysis, analysis.port(name), queue=not behind)
    messages = _messages(trace.records, _headers(trace.records, fcs=_fcs(analysis)), trace.port, unsure)
    numbers = _numbers(trace, messages, unsure)
    return Draft(trace.port, tuple(messages), numbers, _controls(numbers), tuple(unsure))


def _trace(analysis: Analysis, port: dict[str, Any], *, queue: bool) -> tuple[_Trace, list[str]]:
    """Return a trace that a scenario can be made of, and a list for what it does not say."""
    _check(analysis, port, queue=queue)
    records = _packets(analysis, port["port"])
    return _Trace(analysis, port, records, _typical(records)), _under_way(analysis, port["port"], records)


def since_start(analysis: Analysis, port: str) -> pl.DataFrame:
    """Return the records of a port from ``--start`` on, in order of time: what came before is no part of a model."""
    import polars as pl

    start = analysis.document["settings"]["start_ps"]
    records = analysis.records.filter((pl.col("port") == port) & (pl.col("time_ps") >= (start or 0)))
    if not records.height:
        raise ValueError(f"port {port}: nothing came at or after --start; accepted: a time before its last record")
    return records.sort("time_ps", maintain_order=True)


def _under_way(analysis: Analysis, port: str, records: pl.DataFrame) -> list[str]:
    """Return what a cut by ``--start`` leaves out of flows that go on after it, in words."""
    import polars as pl

    start = analysis.document["settings"]["start_ps"]
    if start is None:
        return []
    recent = (pl.col("port") == port) & (pl.col("time_ps") < start) & (pl.col("time_ps") > start - _SILENCE_PS)
    before = analysis.records.filter(recent & (pl.col("frame_bytes") > 0))["flow"].drop_nulls().unique()
    split = records["flow"].drop_nulls().unique().is_in(before.implode()).sum()
    return [f"starts: {show.many(int(split), 'flow')} had begun before --start, and begin there as new ones"] if split else []


def _controls(numbers: _Port) -> tuple[str, ...]:
    """Return the congestion controls that may have been in force."""
    return ("dctcp",) if numbers.mark_bytes is not None else CONTROLS if numbers.reacts else ("none",)


def port_scenario(analysis: Analysis, name: str | None = None, *, file: str = "port.toml") -> PortScenario:
    """Make a scenario of what arrived at a port, and hold it against the trace.

    Parameters
    ----------
    analysis : Analysis
        A trace with a queue, measured or estimated, and with flows.
    name : str, optional
        The port; the one with the largest queue if not given.
    file : str
        Name of the file that its comments speak of.

    Raises
    ------
    ValueError
        The trace lacks what it takes, or has too much.
    """
    port = analysis.port(name)
    trace, unsure = _trace(analysis, port, queue=True)
    messages = _messages(trace.records, _headers(trace.records, fcs=_fcs(analysis)), port, unsure)
    numbers = _numbers(trace, messages, unsure)
    lasted = max(message.end_ps for message in messages) - messages[0].start_ps
    measured = Outcome(float(port["peak_bytes"]), port["dropped"], int(port["burst_ps"]), lasted)
    simulated = {
        control: _simulated(_text(port, messages, numbers, control, []), numbers, port["detect"]) for control in _controls(numbers)
    }
    order = sorted(simulated, key=lambda control: measured.distance(simulated[control]))
    simulated = {control: simulated[control] for control in order}
    if numbers.reacts:
        unsure.append(f"congestion control: {_why(order, [measured.distance(simulated[control]) for control in order])}")
    head = _head(trace, numbers, (measured, simulated), unsure, shlex.quote(file))
    text = _text(port, messages, numbers, order[0], head)
    missed = tuple(measured.missed(simulated[order[0]]))
    return PortScenario(text, Scenario.from_toml(text), measured, simulated, tuple(unsure), missed)


def _far(missed: Sequence[str]) -> list[str]:
    """Return what to say of a simulation that is not near."""
    if not missed:
        return []
    return [f"as it is, the scenario does not do what was measured: {', '.join(missed)}; do not believe what it says of a remedy"]


def _why(controls: Sequence[str], distances: Sequence[float]) -> str:
    """Return the congestion control that was taken, and why."""
    if len(controls) == 1:
        return f"{controls[0]}, since packets were marked"
    near = distances[1] - distances[0] < _TOLD
    return f"{controls[0]}, {'which this trace does not tell from' if near else 'which comes nearer than'} {controls[1]}"


def _packets(analysis: Analysis, port: str) -> pl.DataFrame:
    """Return the packets of a port, whatever became of them.

    Raises
    ------
    ValueError
        Their sizes are not known.
    """
    import polars as pl

    packets = since_start(analysis, port).filter(pl.col("frame_bytes") > 0)
    if not packets.height:
        raise ValueError("the trace does not say how large packets are: --columns frame=NAME")
    return packets.with_columns(pl.col("dropped", "marked").fill_null(value=False))


def _check(analysis: Analysis, port: dict[str, Any], *, queue: bool) -> None:
    """Refuse traces that a scenario cannot be made of.

    Raises
    ------
    ValueError
        The first reason.
    """
    if any(source["kind"] == "result" for source in analysis.document["sources"]):
        raise ValueError(
            "a result has its scenario already: the key 'scenario' of its manifest.json, which fanin run takes as a .json file"
        )
    if not port["records"]:
        raise ValueError(f"port {port['port']} has no packets")
    if port["rate_bps"] is None or port["rate_from"] == "lower_bound":
        raise ValueError("a scenario needs the speed of the port: --rate")
    if queue and port["detect"]["by"] != "queue":
        raise ValueError(
            "a scenario needs the queue: captures before and behind the port (--behind), or one before it with --rate and --buffer"
        )
    if port["records"] > MOST_RECORDS:
        raise ValueError(
            f"{port['records']:,} packets are more than the {MOST_RECORDS:,} that are replayed; --start and --stop take a part"
        )


def _fcs(analysis: Analysis) -> bool:
    """Return whether the trace counts frames with their check sequence."""
    return bool(analysis.document["settings"]["fcs"])


def _typical(records: pl.DataFrame) -> int:
    """Return the size of full frames."""
    return int(records["frame_bytes"].quantile(0.99, "nearest") or 0)


def _ends(flow: str) -> tuple[str, str, str]:
    """Return hosts and protocol of a flow by its name; a name of another form is a sender of its own."""
    matched = _NAME.fullmatch(flow)
    if matched is None:
        return flow, "receiver", ""
    # Tenants may have equal addresses.
    tenant = matched["vni"] or ""
    return matched["src"].strip("[]") + tenant, matched["dst"].strip("[]") + tenant, matched["protocol"] or ""


def _headers(records: pl.DataFrame, *, fcs: bool) -> dict[str, int]:
    """Return bytes of a frame that are no payload, by flow: its smallest frame where that is a bare acknowledgment."""
    import polars as pl

    smallest = records.group_by("flow").agg(pl.col("frame_bytes").min(), pl.col("frame_bytes").max().alias("most"))
    bare = [size for _, size, most in smallest.iter_rows() if size <= _SMALL < most]
    found = {}
    for flow, size, most in smallest.iter_rows():
        src, _, protocol = _ends(str(flow))
        plain = (54 if ":" in src else 34) + (_FCS if fcs else 0)
        if protocol and protocol != "tcp":
            found[str(flow)] = plain + 8
            continue
        least = plain + 20
        if size <= _SMALL < most:
            found[str(flow)] = max(least, size if size > 64 or not fcs else least)
        else:
            # Those of others, or timestamps, which nearly all systems send.
            found[str(flow)] = max(least, min(bare)) if bare else plain + 32
    return found


def _messages(records: pl.DataFrame, headers: Mapping[str, int], port: dict[str, Any], unsure: list[str]) -> list[_Message]:
    """Return what each flow sent, in order of time.

    Raises
    ------
    ValueError
        The trace names no flows, has no payload, or too many messages.
    """
    import polars as pl

    if records["flow"].null_count() == records.height:
        raise ValueError("the trace does not say which flow a packet is of: --columns flow=NAME")
    known = records.filter(pl.col("flow").is_not_null())
    if known.height < records.height:
        unsure.append(f"{show.count(records.height - known.height)} packets of no flow are left out")
    if port["dropped"] is None:
        unsure.append("drops are not known: what was sent again counts as more to send")
    messages = []
    silent = 0
    for (flow,), own in known.partition_by("flow", as_dict=True, maintain_order=True).items():
        header = headers[str(flow)]
        src, dst, protocol = _ends(str(flow))
        # The SYN has options that later segments lack.
        first = pl.int_range(pl.len()) == 0
        data = own.filter((pl.col("frame_bytes") > header) & ~(first & (pl.col("frame_bytes") <= header + _OPTIONS)))
        if not data.height:
            silent += 1
            continue
        number = (pl.col("time_ps").cast(pl.Int64).diff().fill_null(0) > _SILENCE_PS).cum_sum()
        for part in data.with_columns(number.alias("message")).partition_by("message", maintain_order=True):
            payload = part["frame_bytes"].cast(pl.Int64) - header
            tcp = protocol in ("", "tcp")
            # TCP sends again what was dropped; a datagram stays lost.
            sent = payload.filter(~part["dropped"]) if tcp else payload
            messages.append(
                _Message(
                    str(flow),
                    src,
                    dst,
                    tcp,
                    int(part["time_ps"][0]),
                    int(part["time_ps"][-1]),
                    int(sent.sum()) or int(payload.sum()),
                    _number(payload.mode().max()),
                )
            )
    if not messages:
        raise ValueError("no packet of the trace carries data")
    if len(messages) > MOST_FLOWS:
        raise ValueError(f"{len(messages):,} flows are more than {MOST_FLOWS:,}; --start and --stop take a part of the trace")
    if silent:
        unsure.append(f"{show.count(silent)} flows without data are left out")
    datagrams = sum(not message.tcp for message in messages)
    if datagrams:
        unsure.append(f"{show.count(datagrams)} flows are not TCP: datagrams at their mean rate, which react to nothing")
    return sorted(messages, key=lambda message: (message.start_ps, message.flow))


def _numbers(trace: _Trace, messages: Sequence[_Message], unsure: list[str]) -> _Port:
    """Return the port's numbers, and say which of them the trace does not have."""
    import polars as pl

    analysis, port, records, counted = trace.analysis, trace.port, trace.records, trace.counted
    fcs = 0 if _fcs(analysis) else _FCS
    scale = (counted + fcs) / counted
    wire = (counted + fcs + _GAP) / (counted + int(port["overhead_bytes"]))
    rate_kbps = max(1, round(port["rate_bps"] * wire / 1e3))
    if port["rate_from"] == "estimated":
        unsure.append(f"speed of the port: {show.rate(port['rate_bps'])}, by how the queue drains (--rate gives it)")
    rtt = _round_trip(analysis, records, unsure)
    access = _access(records, rate_kbps, counted, unsure)
    longest = int(
        records.select((pl.col("queue_bytes") + pl.col("frame_bytes")).filter(~pl.col("dropped")).max()).item() or counted
    )
    buffer = _buffer(analysis.document["settings"]["buffer"], counted)
    if buffer is None and port["detect"]["by"] != "queue":
        buffer = max(1, sum(message.payload for message in messages))
        unsure.append("buffer: without end, for the trace has no queue (--buffer)")
    elif buffer is None and port["dropped"]:
        buffer = longest
        unsure.append(f"buffer: {show.size(buffer)}, the longest queue of a packet that was kept (--buffer gives it)")
    elif buffer is None:
        buffer = 2 * longest
        unsure.append(f"buffer: {show.size(buffer)}, twice the longest queue, for nothing is known to have been dropped (--buffer)")
    mark = None
    if port["marked"] and port["detect"]["by"] != "queue":
        mark = _MARK
        unsure.append(f"marking: at a queue of {show.size(mark)}, DCTCP's 65 packets, for the trace has no queue")
    elif port["marked"]:
        shortest = _number(records.filter(pl.col("marked"))["queue_bytes"].min())
        mark = max(1, round(shortest * scale))
        unsure.append(f"marking: at a queue of {show.size(shortest)}, the shortest that a marked packet found")
    return _Port(
        rate_kbps=rate_kbps,
        scale=scale,
        rtt_ps=rtt,
        access_kbps=access,
        buffer_bytes=round(buffer * scale),
        mark_bytes=mark,
        window=_window(records, messages, rtt, unsure),
        mtu=max(1500, counted + fcs - 18),
        reacts=any(message.tcp for message in messages),
    )


def _number(found: object) -> int:
    """Return a number of a table, which is there."""
    return int(str(found))


def _buffer(given: str | None, counted: int) -> int | None:
    """Return the buffer that the user gave, in bytes as the trace counts them; None where none was given, or one without end."""
    matched = re.fullmatch(r"\s*([\d.]+)\s*([A-Za-z]+)\s*", given or "")
    if matched is None:
        return None
    units = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
    return round(float(matched[1]) * units.get(matched[2].lower(), counted))


def _round_trip(analysis: Analysis, records: pl.DataFrame, unsure: list[str]) -> int:
    """Return the round trip of the idle network [ps]: given, of handshakes, or assumed."""
    import polars as pl

    given = analysis.document["settings"]["rtt_ps"]
    if given:
        return int(given)
    lows = analysis.taken["rtt_low_ps"].drop_nulls()
    if lows.len():
        return max(1, _number(lows.min()))
    first = (
        records.filter(pl.col("flow").is_not_null())
        .group_by("flow")
        .agg(pl.col("time_ps").head(2).cast(pl.Int64), pl.col("frame_bytes").head(2))
    )
    trips = [
        times[1] - times[0]
        for _, times, frames in first.iter_rows()
        if len(times) == 2 and frames[1] < frames[0] <= _SMALL and 0 < times[1] - times[0] < _HANDSHAKE_PS
    ]
    if trips:
        unsure.append(f"round trip: {show.duration(min(trips))}, the shortest of {show.count(len(trips))} handshakes (--rtt)")
        return int(min(trips))
    unsure.append(f"round trip: {show.duration(_ASSUMED_RTT_PS)}, for the trace shows none (--rtt gives it)")
    return _ASSUMED_RTT_PS


def _access(records: pl.DataFrame, rate_kbps: int, counted: int, unsure: list[str]) -> int:
    """Return the speed of the senders' links [kb/s], by the packets of one flow that follow each other most closely."""
    import polars as pl

    full = records.filter(pl.col("flow").is_not_null(), pl.col("frame_bytes") >= counted)
    gaps = full.select(pl.col("time_ps").cast(pl.Int64).diff().over("flow")).to_series().drop_nulls()
    gaps = gaps.filter(gaps > 0)
    close = gaps.quantile(0.1, "nearest")
    # A single packet of each flow shows nothing.
    speed = 4 * rate_kbps / 1e3 if close is None else (counted + _GAP) * 8e6 / float(close)
    at_least = max(speed, rate_kbps / 1e3)
    standard = next((s for s in _SPEEDS if s >= at_least * 0.9), _SPEEDS[-1])
    unsure.append(f"links of the senders: {show.rate(standard * 1e6)}, by packets of a flow that follow each other closely")
    return max(standard * 1000, rate_kbps)


def _window(records: pl.DataFrame, messages: Sequence[_Message], rtt: int, unsure: list[str]) -> int:
    """Return the first window: packets of a flow before the first answer can have come."""
    import polars as pl

    found = []
    starts = {message.flow: message for message in reversed(messages) if message.tcp}
    for (flow,), own in records.filter(pl.col("flow").is_in(list(starts))).partition_by("flow", as_dict=True).items():
        message = starts[str(flow)]
        until = message.start_ps + round(0.8 * rtt)
        if message.end_ps > until:
            found.append(own.filter(pl.col("time_ps").is_between(message.start_ps, until)).height)
    if not found:
        return _WINDOW
    middle = sorted(found)[len(found) // 2]
    window = min(max(middle, 1), _LARGEST_WINDOW)
    unsure.append(f"first window: {window} packets, as most flows sent before an answer could come")
    return window


def _simulated(text: str, numbers: _Port, detect: Mapping[str, Any]) -> Outcome:
    """Return what comes of a scenario, with the bursts that were sought in the trace."""
    from fanin.analysis.bursts import analyze

    above, until = (f"{max(1, round(detect[key] * numbers.scale))}B" for key in ("above_bytes", "until_bytes"))
    with tempfile.TemporaryDirectory(prefix="fanin-") as folder:
        _core.run(text, "toml", folder, f"{folder}/out", None)
        port = analyze(f"{folder}/out", above=above, until=until).port()
    lasted = int(port["last_ps"]) - int(port["first_ps"])
    return Outcome(port["peak_bytes"] / numbers.scale, port["dropped"], int(port["burst_ps"]), lasted)


def _head(
    trace: _Trace, numbers: _Port, outcomes: tuple[Outcome, Mapping[str, Outcome]], unsure: Sequence[str], file: str
) -> list[str]:
    """Return the comment at the top: where it is from, how near it is, what nobody knows, and what to do with it."""
    sources = ", ".join(source["path"] for source in trace.analysis.document["sources"])
    lines = [f"Arrivals at port {trace.port['port']}, by `fanin analyze --to-scenario` from {sources}.", ""]
    lines += [f"  {row}" for row in _lines(*outcome_table(*outcomes))]
    if unsure:
        lines += ["", "Not in the trace, and taken so:", *(f"* {words}" for words in unsure)]
    measured, simulated = outcomes
    far = _far(measured.missed(next(iter(simulated.values()))))
    lines += ["", *(f"{words[0].upper()}{words[1:]}." for words in (*far, LIMITS))]
    lines += [
        "",
        "What would help (`fanin best` tries everything that applies, the others one thing):",
        f"  fanin best {file}",
        f"  fanin run {file} -o out/as-it-was --report",
        f"  fanin run {file} -o out/buffer --set switch.buffer.per_port={4 * numbers.buffer_bytes}B",
    ]
    if numbers.reacts and numbers.mark_bytes is None:
        marks = f"--set switch.marking.kind=threshold --set switch.marking.k={max(1, numbers.buffer_bytes // 5)}B"
        lines.append(f"  fanin run {file} -o out/marks --set transport.congestion_control=dctcp {marks}")
    return lines


def outcome_table(measured: Outcome, simulated: Mapping[str, Outcome]) -> tuple[list[str], list[list[str]]]:
    """Return head and rows of a table: what was measured, and what came of each congestion control."""
    rows = [
        [
            name,
            show.size(found.peak_bytes),
            "–" if found.dropped is None else f"{found.dropped:,}",
            show.duration(found.burst_ps),
            show.duration(found.lasted_ps),
        ]
        for name, found in {"measured": measured, **simulated}.items()
    ]
    return ["Run", "Longest queue", "Drops", "Time in bursts", "Last data after"], rows


def _lines(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a table as lines of text."""
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    return [
        "  ".join([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))])
        for row in [head, *rows]
    ]


def _rate(kbps: int) -> str:
    for unit, factor in (("Gbps", 10**6), ("Mbps", 10**3)):
        if kbps % factor == 0:
            return f"{kbps // factor}{unit}"
    return f"{kbps}Kbps"


def _one_line(text: str) -> str:
    """Return text for a comment, whatever names of files and flows have in them."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _transport(numbers: _Port, control: str) -> list[str]:
    lines = [
        "",
        "[transport]",
        'kind = "tcp"',
        'profile = "linux"',
        f'congestion_control = "{control}"',
        f"initial_window = {numbers.window}",
        "handshake = false                      # starts are those of the first data; connections were open",
        f'rto_initial = "{_RTO_PS + numbers.rtt_ps}ps"        # of a connection that knows its round trip (Linux)',
    ]
    if numbers.mtu != 1500:
        lines.append(f"mtu = {numbers.mtu}")
    return lines


def _text(port: dict[str, Any], messages: Sequence[_Message], numbers: _Port, control: str, head: Sequence[str]) -> str:
    """Return the scenario as TOML."""
    senders = list(dict.fromkeys(message.src for message in messages))
    receivers = list(dict.fromkeys(message.dst for message in messages))
    hosts = {("src", name): f"h{i}" for i, name in enumerate(senders)}
    hosts |= {("dst", name): f"h{len(senders) + i}" for i, name in enumerate(receivers)}
    host_delay = min(10**6, numbers.rtt_ps // 20)
    core_delay = max(1, numbers.rtt_ps // 2 - 2 * host_delay)
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", str(port["port"])).strip("-.") or "port"
    lines = [f"# {_one_line(line)}".rstrip() for line in head]
    lines += [
        *([""] if head else []),
        f'name = "{name}"',
        "seed = 1",
        "",
        "[topology]",
        'kind = "dumbbell"                      # the port is that of `left` to `right`',
        f"left = {len(senders)}",
        f"right = {len(receivers)}",
        f'host_link = {{ rate = "{_rate(numbers.access_kbps)}", delay = "{host_delay}ps" }}',
        f'bottleneck = {{ rate = "{_rate(numbers.rate_kbps)}", delay = "{core_delay}ps" }}',
        "",
        "[switch]",
        f'buffer = {{ kind = "static", per_port = "{numbers.buffer_bytes}B" }}',
    ]
    if numbers.mark_bytes is not None:
        lines.append(f'marking = {{ kind = "threshold", k = "{numbers.mark_bytes}B" }}')
    if numbers.reacts:
        lines += _transport(numbers, control)
    # A full buffer drains in eight samples.
    drain_ns = numbers.buffer_bytes * 8 * 10**6 // numbers.rate_kbps
    lines += ["", "[telemetry]", 'queues = ["left->right"]', f'sample = "{min(max(drain_ns // 8, 1_000), 100_000)}ns"']
    begin = messages[0].start_ps
    listed = []
    for message in messages:
        src, dst = hosts["src", message.src], hosts["dst", message.dst]
        start = f"{(message.start_ps - begin) // 1000}ns"
        if message.tcp:
            sent = f'src = "{src}", dst = "{dst}", size = "{message.payload}B", start = "{start}"'
            listed.append(f"    {{ {sent} }},  # {_one_line(message.flow)}")
            continue
        packets = max(1, round(message.payload / message.packet))
        lasted = max(1, message.end_ps - message.start_ps) * packets / max(1, packets - 1)
        rate = max(1, round(message.payload * 8e9 / lasted)) if packets > 1 else numbers.access_kbps
        lines += [
            "",
            f"[[traffic]]                            # {_one_line(message.flow)}",
            'kind = "cbr"',
            f'src = "{src}"',
            f'dst = "{dst}"',
            f'rate = "{_rate(min(rate, numbers.access_kbps))}"',
            f'packet = "{message.packet}B"',
            f'size = "{message.payload}B"',
            f'start = "{start}"',
        ]
    if listed:
        lines += ["", "[[traffic]]", 'name = "arrivals"', 'kind = "flows"', "flows = [", *listed, "]"]
    return "\n".join(lines) + "\n"
