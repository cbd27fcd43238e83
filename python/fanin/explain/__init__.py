"""Explains the completion time of a flow by parts that add up to it exactly."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from fanin import _core
from fanin.explain import detours
from fanin.explain import pauses as pause_causes
from fanin.text import show

if TYPE_CHECKING:
    import polars as pl

    from fanin.tables.recorded import Recorded

__all__ = ["KINDS", "Explanation", "explain", "find", "in_words"]

KINDS: Final[Mapping[str, str]] = {
    "handshake": "opening the connection, and the request",
    "application": "waiting for the application",
    "serialisation": "sending its own packets, one behind the other",
    "path": "the last packets crossing the network",
    "congestion_window": "round trips with the congestion window used up",
    "receive_window": "round trips with the receive window used up",
    "recovery": "round trips in which losses were noticed and repaired",
    "loss": "round trips after a retransmission timeout",
    "queue": "in the queue of {place}, behind other flows",
    "nic": "at the NIC of {place}, behind other flows",
    "pause": "paused at {place} by the next switch",
    "held": "held by {by} at {place}",
    "pacing": "held back by pacing",
    "host_receive": "at a host whose NIC, driver or reorder buffer waited (host.receive, host.noise, host.reorder)",
    "rto": "waiting for {times}retransmission timeout{s}",
    "tlp": "waiting for {times}tail loss probe{s}",
    "reordering": "waiting whether packets were only reordered",
    "delayed_ack": "waiting for {times}delayed acknowledgment{s}",
    "window_probe": "waiting to probe a closed receive window",
    "notification": "waiting for {times}drop notification{s}",
    "unknown": "not known",
}
"""Kinds of parts, in words. docs/explain.md defines each."""

_TIMERS: Final = ("rto", "tlp", "reordering")
_SEGMENTS: Final = (
    "packet",
    "host",
    "seq_bytes",
    "payload_bytes",
    "received_ps",
    "trimmed",
    "dropped_at",
    "dropped_ps",
    "cause",
    "cause_ps",
    "cause_packet",
    "armed_ps",
    "armed_packet",
    "limit",
)
_HOPS: Final = (
    "packet",
    "port",
    "arrived_ps",
    "sent_ps",
    "left_ps",
    "reached_ps",
    "held_by",
    "held_from_ps",
    "held_until_ps",
)
_PAUSES: Final = ("port", "start_ps", "end_ps")


def _moment(ps: int) -> str:
    unit, scale = show.axis_unit(show.TIME_UNITS, ps)
    return f"{ps / scale:.6g} {unit}"


def in_words(part: Mapping[str, Any], kinds: Mapping[str, str] = KINDS) -> str:
    """Return what a part was, for example ``waiting for 2 retransmission timeouts``."""
    times = part["times"]
    words, by = kinds[part["kind"]], part["by"]
    return words.format(place=part["place"], by=by, times="a " if times == 1 else f"{times} ", s="s" * (times != 1))


class Explanation:
    """The completion time of a flow, by parts and steps.

    Attributes
    ----------
    document : dict
        All of it: ``flow``, ``start_ps``, ``end_ps``, ``complete``, ``ideal_ps``, ``parts``, ``steps``, ``waited``, ``detours``
        (null without any), ``roots`` (by paused port, the congested port from which most of its pauses spread: ``root``, and
        whether the flow crosses it: ``crossed``), ``notified`` (null without CNPs: ``cnps``, ``marked`` packets, and ``ports``, in
        which of them most of these waited longest), ``sent_again`` and ``needless`` (data packets that were sent again, and of
        these though an earlier copy arrived). The ``time_ps`` of the parts add up to ``end_ps - start_ps`` exactly, and so do
        the steps, which follow one another without gaps.
    """

    document: dict[str, Any]
    words: Mapping[str, str] = KINDS
    """What the kinds of parts are, in words."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document

    @property
    def name(self) -> str:
        """The flow, as sentences begin with it."""
        flow = self.document["flow"]
        return f"Flow {flow['flow']}" + (f" ({flow['id']})" if flow["id"] is not None else "")

    @property
    def total_ps(self) -> int:
        """What is explained: the completion time, of a flow that was not completed until its last packet arrived [ps]."""
        return int(self.document["end_ps"]) - int(self.document["start_ps"])

    @cached_property
    def parts(self) -> pl.DataFrame:
        """One row per part, the longest first: ``kind``, ``place``, ``by``, ``time_ps``, ``share``, ``times``."""
        import polars as pl

        text, count = pl.String(), pl.UInt64()
        kinds = {"kind": text, "place": text, "by": text, "time_ps": count, "times": count}
        frame = pl.DataFrame(self.document["parts"], schema=kinds)
        share = pl.col("time_ps") / max(self.total_ps, 1)
        return frame.select("kind", "place", "by", "time_ps", share.alias("share"), "times")

    @cached_property
    def steps(self) -> pl.DataFrame:
        """One row per step of the critical path, in order: ``from_ps``, ``to_ps``, ``kind``, ``place``, ``by``, ``packet``."""
        import polars as pl

        text, count = pl.String(), pl.UInt64()
        kinds = {"from_ps": count, "to_ps": count, "kind": text, "place": text, "by": text, "packet": count}
        return pl.DataFrame(self.document["steps"], schema=kinds)

    @property
    def text(self) -> str:
        """A short paragraph: what took longest, and why."""
        flow, total = self.document["flow"], self.total_ps
        size = f"{self.name}, {show.size(flow['size_bytes'])} from {flow['src']} to {flow['dst']}, "
        if self.document["complete"]:
            ideal = self.document["ideal_ps"]
            took = f"took {show.duration(total)}, {show.ratio(total / max(ideal, 1))} times what it takes alone."
        elif total:
            took = f"was not completed; this is the time until its last packet arrived, {show.duration(total)}."
        else:
            ended = "was aborted" if flow["status"] == "aborted" else "was not completed"
            opened = "none of its data arrived" if flow["packets_sent"] else "its connection never opened"
            count = flow["timeouts"]
            took = f"{ended}: {opened}, after {show.many(count, 'timeout')}."
        counts = self.document["sent_again"], self.document["needless"]
        return " ".join([size + took, *self._shares(), *detours.text(flow, self.document["detours"], *counts)])

    def _shares(self) -> list[str]:
        """Return a sentence for each of the longest parts."""
        total = self.total_ps
        shown = [part for part in self.document["parts"] if part["time_ps"] >= 0.01 * total][:4]
        sentences = []
        for index, part in enumerate(shown):
            lead = f"{show.duration(part['time_ps'])} of it" if index == 0 else show.duration(part["time_ps"])
            sentences.append(f"{lead} ({part['time_ps'] / max(total, 1):.1%}): {in_words(part, self.words)}{self._why(part)}.")
        return sentences

    def _why(self, part: Mapping[str, Any]) -> str:
        if part["kind"] == "pause":
            root = self.document["roots"][part["place"]]
            never = "" if root["crossed"] else ", which the flow never crosses"
            return f", as {root['root']} {pause_causes.why(root['root'])}{never}"
        if part["kind"] == "pacing" and self.document["notified"]:
            return self._cnps()
        if part["kind"] not in _TIMERS:
            return ""
        waits = [entry for entry in self.document["waited"] if entry["kind"] == part["kind"]]
        if not waits:
            return ""
        longest = max(waits, key=lambda entry: entry["to_ps"] - entry["from_ps"])
        which = "" if len(waits) == 1 else "the longest "
        if not longest["lost_packets"]:
            since = _moment(longest["from_ps"])
            return f", {which}from {since} on, though nothing had been lost: an acknowledgment was late or lost"
        count, again = longest["lost_packets"], longest["sent_again"]
        if count == 1:
            lost = "a retransmission" if again else "a packet"
        else:
            lost = f"{count} packets, the first{', a retransmission,' * again}"
        return f", {which}after the loss of {lost} at {longest['dropped_at']} at {_moment(longest['dropped_ps'])}"

    def _cnps(self) -> str:
        """Return which port's marks the notifications were about that slowed a sender of RoCEv2 down."""
        found = self.document["notified"]
        told = f", after {show.many(found['cnps'], 'CNP')} from {self.document['flow']['dst']}"
        if not found["ports"]:
            return told
        port, packets = found["ports"][0]
        return f"{told}: {packets} of {found['marked']} marked packets waited longest at {port}"

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """Return the parts as a table of texts, and their sum."""
        total = self.total_ps
        rows = [
            [
                in_words(part, self.words),
                show.duration(part["time_ps"]),
                f"{part['time_ps'] / max(total, 1):.2%}",
                show.count(part["times"]),
            ]
            for part in self.document["parts"]
        ]
        return ["What", "Time", "Share", "Times"], [*rows, ["all", show.duration(total), "100.00%", ""]]

    def step_rows(self) -> tuple[list[str], list[list[str]]]:
        """Return the steps as a table of texts, in order of time."""
        start = self.document["start_ps"]
        rows = [
            [
                _moment(step["from_ps"] - start),
                show.duration(step["to_ps"] - step["from_ps"]),
                step["kind"].replace("_", " ") + (f" by {step['by']}" if step["by"] else ""),
                step["place"] or show.NOTHING,
                show.NOTHING if step["packet"] is None else str(step["packet"]),
            ]
            for step in self.document["steps"]
        ]
        return ["After", "Time", "What", "Where", "Packet"], rows

    def to_json(self) -> str:
        """Return all of it as JSON."""
        return json.dumps(self.document)

    def __repr__(self) -> str:
        return f"<fanin.Explanation of flow {self.document['flow']['flow']}: {show.duration(self.total_ps)}>"

    def __str__(self) -> str:
        return self.text


def _which(host: str, ends: pl.DataFrame) -> str:
    """Return what to write instead of a host: its flows, the slowest first."""
    import polars as pl

    took = (pl.col("finish_ps") - pl.col("start_ps")).alias("took")
    slowest = ends.with_columns(took).sort("took", descending=True, nulls_last=False, maintain_order=True)
    told = []
    for row in slowest.head(5).iter_rows(named=True):
        name = row["flow"] if row["id"] is None else row["id"]
        time = "not completed" if row["took"] is None else show.duration(row["took"])
        told.append(f"{name} ({row['src']} to {row['dst']}, {show.size(row['size_bytes'])}, {time})")
    more = ", …" * (ends.height > 5)
    return f"'{host}' is a host of {ends.height} flows; give one of them, the slowest first: {', '.join(told)}{more}"


def find(result: Recorded, flow: int | str) -> dict[str, Any]:
    """Return the row of a flow by number or id, or of the only flow of a host."""
    import polars as pl

    wanted = str(flow)
    flows = result.scan("flows")
    found = flows.filter(pl.col("id") == wanted).collect() if isinstance(flow, str) else flows.head(0).collect()
    if found.height > 1:
        numbers = ", ".join(map(str, found["flow"].head(5).to_list()))
        more = ", …" * (found.height > 5)
        raise ValueError(f"flow '{wanted}': {found.height} flows have this id; give a number: {numbers}{more}")
    if not found.height and wanted.isdigit():
        found = flows.filter(pl.col("flow") == int(wanted)).collect()
    if found.height:
        return found.row(0, named=True)
    ends = (
        flows.filter((pl.col("src") == wanted) | (pl.col("dst") == wanted)).collect()
        if isinstance(flow, str)
        else flows.head(0).collect()
    )
    if ends.height == 1:
        return ends.row(0, named=True)
    if ends.height:
        raise ValueError(_which(wanted, ends))
    ids = flows.select(pl.col("id").drop_nulls().unique().sort()).collect()["id"].to_list()
    last = flows.select(pl.col("flow").max()).collect().item()
    numbers = "the run has no flows" if last is None else f"numbers are 0 to {last}"
    near = difflib.get_close_matches(wanted, ids, 1)
    more = f"; did you mean '{near[0]}'?" if near else f", ids {', '.join(ids[:4])}{', …' * (len(ids) > 4)}" if ids else ""
    raise ValueError(f"flow '{wanted}': there is none; {numbers}{more}")


def _notified(segments: pl.DataFrame, hops: pl.DataFrame, receiver: str) -> dict[str, Any] | None:
    """Return the CNPs of a flow and, by port, the marked packets that waited longest there; None where there were no CNPs."""
    import polars as pl

    cnps = segments.filter(pl.col("kind") == "cnp", pl.col("host") == receiver).height
    if not cnps:
        return None
    marked = segments.filter(pl.col("marked"), pl.col("kind") == "data").select("packet")
    waited = hops.join(marked, on="packet").with_columns(wait=pl.col("sent_ps") - pl.col("arrived_ps"))
    longest = waited.sort("packet", "wait", "port", descending=[False, True, False]).unique(
        "packet", keep="first", maintain_order=True
    )
    ports = longest.group_by("port").len().sort("len", "port", descending=[True, False])
    return {"cnps": cnps, "marked": marked.height, "ports": [[port, count] for port, count in ports.iter_rows()]}


def explain(result: Recorded, flow: int | str) -> Explanation:
    """Say where the time of a flow went; see `fanin.Result.explain`."""
    import polars as pl

    row = find(result, flow)
    number = row["flow"]
    segments = result.scan("segments").filter(pl.col("flow") == number).collect()
    if not segments.height:
        followed = result.scenario.get("telemetry", {}).get("hosts") or []
        key = f'telemetry.hosts = ["{row["id"] if row["id"] is not None else number}"]'
        if not (result.path / "segments.parquet").is_file() or not followed:
            raise ValueError(f"flow '{flow}': this run followed no flow; set {key} and run it again")
        raise ValueError(f"flow '{flow}' was not followed: telemetry.hosts is {json.dumps(followed)}; set {key} and run it again")
    hops = result.scan("hops").filter(pl.col("flow") == number).collect()
    crossed = pl.col("port").is_in(hops["port"].unique().implode())
    pauses = result.scan("pauses").filter(crossed, pl.col("class") == row["class"]).collect()
    found = json.loads(
        _core.explain(
            row["src"],
            row["start_ps"],
            row["finish_ps"],
            {name: segments[name].to_list() for name in _SEGMENTS},
            {name: hops[name].to_list() for name in _HOPS},
            {name: pauses[name].to_list() for name in _PAUSES},
        )
    )
    copies = detours.sent_needlessly(segments.lazy())
    counted = copies.row(0, named=True) if copies.height else {"again": 0, "needless": 0}
    document = {"flow": row, "complete": row["finish_ps"] is not None, "ideal_ps": row["ideal_ps"], **found}
    document["roots"] = pause_causes.roots(result, row["class"], found["steps"], set(hops["port"]))
    document["notified"] = _notified(segments, hops, row["dst"])
    document["detours"] = detours.summary(detours.each(hops.lazy()), found["steps"])
    return Explanation(document | {"sent_again": counted["again"], "needless": counted["needless"]})
