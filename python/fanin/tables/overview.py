"""What to say of a run in a few lines: the same rows for the terminal, the notebook and the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from fanin.tables import counters
from fanin.text import show

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Fact:
    """One number of the overview.

    Attributes
    ----------
    key : str
        Stable name.
    name : str
        What it is.
    text : str
        The value with its unit.
    note : str
        What stands beside it; may be empty.
    tone : {"plain", "good", "bad"}
        Whether it deserves attention.
    """

    key: str
    name: str
    text: str
    note: str = ""
    tone: Literal["plain", "good", "bad"] = "plain"


def facts(summary: Mapping[str, Any], manifest: Mapping[str, Any]) -> list[Fact]:
    """Return the totals of a run in the order in which they are shown.

    Parameters
    ----------
    summary, manifest : mapping
        Contents of ``summary.json`` and ``manifest.json``.
    """
    flows = summary.get("flows") or {}
    datagrams = summary.get("datagrams") or {}
    everything = next((entry for entry in summary.get("fct") or [] if entry.get("bin") == "all"), None)
    out = []
    if flows.get("total") or not datagrams.get("flows"):
        timed = everything["flows"] if everything and summary.get("collectives") else None
        out.append(_flows_fact(flows, timed))
    if everything and everything.get("flows"):
        out.append(
            Fact(
                "fct",
                "FCT median",
                show.duration(everything.get("p50_ps")),
                f"all flows: mean {show.duration(everything.get('mean_ps'))}, p99 {show.duration(everything.get('p99_ps'))}",
            )
        )
        out.append(
            Fact(
                "slowdown",
                "Slowdown median",
                show.ratio(everything.get("slowdown_p50")),
                f"all flows: mean {show.ratio(everything.get('slowdown_mean'))}, p99 {show.ratio(everything.get('slowdown_p99'))}",
            )
        )
    queries = summary.get("queries") or {}
    if queries.get("total"):
        missing = queries["total"] - queries.get("complete", 0)
        out.append(
            Fact(
                "queries",
                "Queries complete",
                f"{queries.get('complete', 0):,} of {queries['total']:,}",
                f"mean {show.duration(queries.get('mean_ps'))}, p99 {show.duration(queries.get('p99_ps'))}",
                _tone(missing),
            )
        )
    out += [_job_fact(index, job) for index, job in enumerate(summary.get("collectives") or [])]
    if datagrams.get("flows"):
        sent, received = datagrams.get("sent", 0), datagrams.get("received", 0)
        share = f", {100 * received / sent:.4g} % of {show.count(sent)}" if sent else ""
        plural = "s" * (datagrams["flows"] != 1)
        note = f"in {datagrams['flows']:,} flow{plural}{share}"
        out.append(Fact("datagrams", "Datagrams received", show.count(received), note))
    delivered = show.size(summary.get("delivered_bytes"))
    out.append(Fact("goodput", "Goodput", show.rate(summary.get("goodput_bps")), f"{delivered} delivered"))
    drops = summary.get("drops", 0)
    out.append(Fact("drops", "Drops", show.count(drops), drops_text(summary), "bad" if drops else "good"))
    out += [_mechanism_fact(group) for group in counters.groups(summary)]
    sent = summary.get("packets_sent") or 0
    marks = summary.get("marks", 0)
    out.append(Fact("marks", "ECN marks", show.count(marks), "counted at each port that marks a packet" if marks else ""))
    retransmits = summary.get("retransmits", 0)
    share = f"{100 * retransmits / sent:.2g} % of data packets" if sent and retransmits else ""
    out.append(Fact("retransmits", "Retransmissions", show.count(retransmits), share))
    order = summary.get("reordering") or {}
    if order.get("reordered"):
        note = f"up to {show.many(order.get('extent_max') or 0, 'packet')} and {show.duration(order.get('late_max_ps'))} late"
        out.append(Fact("reordered", "Reordered packets", show.count(order["reordered"]), note))
    timeouts = summary.get("timeouts", 0)
    out.append(Fact("timeouts", "Timeouts", show.count(timeouts), "", "bad" if timeouts else "good"))
    largest = summary.get("largest_queue") or {}
    if largest.get("port"):
        where = (
            f"{show.many(largest.get('packets') or 0, 'packet')} at {largest['port']} at {show.duration(largest.get('time_ps'))}"
        )
        out.append(Fact("largest_queue", "Largest queue", show.size(largest.get("bytes")), where))
    hops, cpu = manifest.get("packet_hops"), manifest.get("cpu_s")
    speed = f"{hops / cpu / 1e6:.2f} M packet-hops per CPU second" if hops and cpu else ""
    out.append(Fact("simulated", "Simulated", show.duration(manifest.get("sim_ps")), _wall(manifest)))
    out.append(Fact("packet_hops", "Packet-hops", show.count(hops), speed))
    return out


def _flows_fact(flows: Mapping[str, Any], timed: int | None) -> Fact:
    """Return how many flows are complete; with jobs, how many of these are no transfers with a completion time."""
    total, done = flows.get("total", 0), flows.get("complete", 0)
    note = [f"{flows[state]:,} {state}" for state in ("incomplete", "aborted") if flows.get(state)]
    if timed is not None and done > timed:
        note.append(f"{done - timed:,} are connections of jobs, which have no completion time")
    return Fact("flows", "Flows complete", f"{done:,} of {total:,}", ", ".join(note), _tone(total - done, flows.get("aborted")))


def _job_fact(index: int, job: Mapping[str, Any]) -> Fact:
    done = job["iterations"]
    note = f"{job['group']}: {done['complete']:,} of {done['total']:,} iterations, mean {show.duration(done.get('mean_ps'))}"
    return Fact(f"job-{index}", "Job complete in", show.duration(job.get("time_ps")), note, _tone(done["total"] - done["complete"]))


def _mechanism_fact(group: counters.Group) -> Fact:
    text = group.counts[0].text if group.counts else show.NOTHING
    return Fact(group.name, group.title, text, group.note, "bad" if group.failures else "plain")


def _tone(missing: int, failed: int | None = 0) -> Literal["plain", "good", "bad"]:
    """Flows that were not done when the time was over are no fault; aborted ones are."""
    return "bad" if failed else "plain" if missing else "good"


def _wall(manifest: Mapping[str, Any]) -> str:
    wall = manifest.get("wall_s")
    if wall is None:
        return ""
    threads = manifest.get("threads") or {}
    count, why = threads.get("count", 1), threads.get("why")
    on = f" on {show.many(count, 'thread')}" if count > 1 or why else ""
    return f"in {wall:.3g} s{on}{f': {why}' if why else ''}"


def drops_text(summary: Mapping[str, Any]) -> str:
    """Return drops by reason, for example ``312 buffer_full, 4 red``; empty without drops."""
    by_reason = summary.get("drops_by_reason") or {}
    return ", ".join(f"{show.count(count)} {reason}" for reason, count in sorted(by_reason.items()) if count)


def aborted_lines(summary: Mapping[str, Any]) -> list[str]:
    """Return which flows were given up and why, one line each, as far as the summary lists them; empty if there were none."""
    listed = summary.get("aborted") or []
    count = (summary.get("flows") or {}).get("aborted") or len(listed)
    flows = [f"flow {flow['flow']} {flow['src']} -> {flow['dst']}, {flow['size_bytes']} B: {flow['reason']}" for flow in listed]
    if not count:
        return []
    head = f"{show.many(count, 'flow')} aborted"
    if len(flows) == count == 1:
        return [f"{head}: {flows[0]}"]
    if count > len(flows):
        flows.append(f"{f'and {count - len(flows):,} more' if flows else 'which'}: flows.parquet, status = aborted")
    return [f"{head}:", *(f"  {flow}" for flow in flows)]


def fct_rows(summary: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return head and rows of the table of completion times and slowdowns by flow size; bins without flows left out."""
    head = ["Flow size", "Flows", "FCT mean", "p50", "p95", "p99", "Slowdown mean", "p50", "p95", "p99"]
    rows = []
    for entry in summary.get("fct") or []:
        if not entry.get("flows"):
            continue
        everything = entry.get("bin") == "all"
        label = "all" if everything else show.byte_range(entry.get("from_bytes"), entry.get("to_bytes"))
        times = [show.duration(entry.get(f"{what}_ps")) for what in ("mean", "p50", "p95", "p99")]
        slow = [show.ratio(entry.get(f"slowdown_{what}")) for what in ("mean", "p50", "p95", "p99")]
        rows.append([label, f"{entry['flows']:,}", *times, *slow])
    return head, rows


def few_flows(summary: Mapping[str, Any]) -> str:
    """Return that percentiles of few flows are the longest, where a row of `fct_rows` has so few; else nothing."""
    counts = [entry["flows"] for entry in summary.get("fct") or [] if entry.get("flows")]
    return "The p99 of fewer than 100 flows is the largest, as is the p95 of fewer than 20." if counts and min(counts) < 100 else ""


def job_rows(summary: Mapping[str, Any], *, terminal: bool = False) -> tuple[list[str], list[list[str]]]:
    """Return head and rows of the table of collective operations: each of each job, over all iterations and groups of ranks.

    Parameters
    ----------
    summary : mapping
        Content of ``summary.json``.
    terminal : bool
        Leave out what a line of 100 characters has no room for: ranks, median and algorithm bandwidth.
    """
    head = ["Job", "Operation", "Ranks", "Size", "Complete", "Time mean", "p50", "p99", "Algorithm bandwidth", "Bus bandwidth"]
    rows = []
    for job in summary.get("collectives") or []:
        for entry in job["operations"]:
            name = f"{entry['collective']} ({entry['algorithm']})"
            counts = [f"{entry['ranks']:,}", show.size(entry["size_bytes"]), f"{entry['complete']:,} of {entry['total']:,}"]
            times = [show.duration(entry.get(f"{what}_ps")) for what in ("mean", "p50", "p99")]
            rows.append([job["group"], name, *counts, *times, *(show.rate(entry.get(f"{bw}_bps")) for bw in ("algbw", "busbw"))])
    if terminal:
        kept = [place for place, title in enumerate(head) if title not in ("Ranks", "p50", "Algorithm bandwidth")]
        return [head[place] for place in kept], [[row[place] for place in kept] for row in rows]
    return head, rows


def group_rows(completions: pl.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Return head and rows of the table of completion times by traffic entry, in order of the first flow of each.

    Parameters
    ----------
    completions : polars.DataFrame
        ``group`` and ``fct_ps`` of completed flows. Percentiles are nearest-rank, as in the summary.
    """
    rows = []
    for (name,), frame in completions.group_by(["group"], maintain_order=True):
        times = frame["fct_ps"].sort()
        ranked = [times[-(-percent * times.len() // 100) - 1] for percent in (50, 99)]
        mean = float(times.to_numpy().mean())
        rows.append([str(name), f"{times.len():,}", *(show.duration(value) for value in (mean, *ranked))])
    return ["Traffic entry", "Flows", "FCT mean", "p50", "p99"], rows


def port_rows(summary: Mapping[str, Any], limit: int = 16) -> tuple[list[str], list[list[str]]]:
    """Return head and rows of the table of ports: those of switches with the largest queues, then those of hosts with drops."""
    head = ["Port", "Largest queue", "Packets", "Sent", "Utilisation", "Marks", "Drops"]
    rows = []
    for entry in (summary.get("ports") or [])[:limit] + (summary.get("host_ports") or [])[:limit]:
        used = entry.get("utilisation")
        rows.append(
            [
                str(entry.get("port")),
                show.size(entry.get("max_bytes")),
                show.count(entry.get("max_packets")),
                show.size(entry.get("tx_bytes")),
                show.NOTHING if used is None else f"{100 * used:.1f} %",
                show.count(entry.get("marks")),
                show.count(entry.get("drops")),
            ]
        )
    return head, rows
