"""What to say of a run in a few lines: the same rows for the terminal, the notebook and the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from fanin import show

__all__ = [
    "NEWS",
    "Fact",
    "News",
    "aborted_lines",
    "drops_text",
    "facts",
    "fct_rows",
    "group_rows",
    "news_lines",
    "news_rows",
    "port_rows",
]


@dataclass(frozen=True)
class News:
    """How senders are told of lost packets, and what may become of what tells them: an object of ``summary.json``.

    Attributes
    ----------
    key : str
        Its key there.
    title, noun, caption, peak : str
        What it is called; what the table of counters is called; what its largest queue is called.
    first : str
        The counter of all of them.
    counters : sequence of (str, str)
        Counters in the order in which they are shown, and what each means.
    lost : mapping
        Counters of those that told nobody → why, in few words.
    remedy : str
        The setting of a transport that does not heed them.
    """

    key: str
    title: str
    noun: str
    caption: str
    peak: str
    first: str
    counters: Sequence[tuple[str, str]]
    lost: Mapping[str, str]
    remedy: str


NEWS: Sequence[News] = (
    News(
        key="notifications",
        title="Drop notifications",
        noun="notifications",
        caption="What became of them; attached and empty frames count once per link",
        peak="largest notification queue",
        first="raised",
        counters=(
            ("raised", "raised: a switch dropped a packet and told its sender"),
            ("attached", "attached to a frame that was going anyway"),
            ("empty_frames", "sent in a frame of its own, as the port was idle"),
            ("repaired", "repaired: the sender sent again what was dropped"),
            ("known", "known: the sender had sent it again before, or a newer acknowledgment"),
            ("arrived", "arrived: the data had been acknowledged meanwhile"),
            ("unknown", "unknown: of nothing that the sender had in flight"),
            ("refused", "refused: asked for an operation that there is not"),
            ("unheard", "unheard: the sender's transport has drop_notification off"),
            ("ended", "ended: came after the end of the flow"),
            ("on_the_way", "on the way when the run ended"),
            ("overflowed", "lost, overflowed: the notification queue was full"),
            ("no_way", "lost, no way: the next node knows nothing of notifications"),
            ("expired", "lost, expired: crossed as many switches as they may"),
            ("lost", "lost on a link, by switch.notification.loss"),
        ),
        lost={"overflowed": "queue full", "no_way": "no way", "expired": "expired", "lost": "on links"},
        remedy="drop_notification = true",
    ),
    News(
        key="trimming",
        title="Trimmed packets",
        noun="trimmed packets",
        caption="What became of them and of the NACKs that answered them",
        peak="largest queue of headers",
        first="trimmed",
        counters=(
            ("trimmed", "trimmed: a switch cut the payload off"),
            ("tails", "of them, the last of a queue, for the packet that came"),
            ("nacked", "nacked: the receiver answered the headers"),
            ("unheard", "unheard: the receiver's transport has trim_nack off"),
            ("not_open", "not open: the receiver's connection was not open"),
            ("ended", "ended: the headers came after the end of the flow"),
            ("headers_on_the_way", "headers on the way when the run ended"),
            ("headers_lost", "lost, headers: dropped after all"),
            ("repaired", "repaired: a NACK made the sender send again what was cut off"),
            ("known", "known: the sender had sent it again before"),
            ("arrived", "arrived: the data had been acknowledged meanwhile"),
            ("unknown", "unknown: of nothing that the sender had in flight"),
            ("nacks_ended", "ended: the NACK came after the end of the flow"),
            ("nacks_on_the_way", "NACKs on the way when the run ended"),
            ("nacks_lost", "lost, NACKs: dropped"),
        ),
        lost={"headers_lost": "headers", "nacks_lost": "NACKs"},
        remedy="trim_nack = true",
    ),
)


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
    total, done = flows.get("total", 0), flows.get("complete", 0)
    unfinished = [f"{flows[state]:,} {state}" for state in ("incomplete", "aborted") if flows.get(state)]
    out = [
        Fact("flows", "Flows complete", f"{done:,} of {total:,}", ", ".join(unfinished), _tone(total - done, flows.get("aborted"))),
    ]
    everything = next((entry for entry in summary.get("fct") or [] if entry.get("bin") == "all"), None)
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
    delivered = show.size(summary.get("delivered_bytes"))
    out.append(Fact("goodput", "Goodput", show.rate(summary.get("goodput_bps")), f"{delivered} delivered"))
    drops = summary.get("drops", 0)
    out.append(Fact("drops", "Drops", show.count(drops), drops_text(summary), "bad" if drops else "good"))
    out += [_news_fact(news, summary[news.key]) for news in NEWS if summary.get(news.key) is not None]
    sent = summary.get("packets_sent") or 0
    marks = summary.get("marks", 0)
    out.append(Fact("marks", "ECN marks", show.count(marks), f"of {show.count(sent)} data packets" if sent else ""))
    retransmits = summary.get("retransmits", 0)
    share = f"{100 * retransmits / sent:.2g} % of data packets" if sent and retransmits else ""
    out.append(Fact("retransmits", "Retransmissions", show.count(retransmits), share))
    timeouts = summary.get("timeouts", 0)
    out.append(Fact("timeouts", "Timeouts", show.count(timeouts), "", "bad" if timeouts else "good"))
    largest = summary.get("largest_queue") or {}
    if largest.get("port"):
        where = f"{show.count(largest.get('packets'))} packets at {largest['port']} at {show.duration(largest.get('time_ps'))}"
        out.append(Fact("largest_queue", "Largest queue", show.size(largest.get("bytes")), where))
    hops, cpu = manifest.get("packet_hops"), manifest.get("cpu_s")
    speed = f"{hops / cpu / 1e6:.2f} M packet-hops per CPU second" if hops and cpu else ""
    out.append(Fact("simulated", "Simulated", show.duration(manifest.get("sim_ps")), _wall(manifest)))
    out.append(Fact("packet_hops", "Packet-hops", show.count(hops), speed))
    return out


def _astray(news: News, counts: Mapping[str, Any]) -> tuple[int, str]:
    """Return how many told nobody, and why; the reasons are empty where there were none."""
    told_nobody = {name: counts.get(key, 0) for key, name in news.lost.items()}
    return sum(told_nobody.values()), ", ".join(f"{show.count(count)} {name}" for name, count in told_nobody.items() if count)


def _news_fact(news: News, counts: Mapping[str, Any]) -> Fact:
    lost, reasons = _astray(news, counts)
    peak = counts.get("largest_queue")
    told = [
        f"{show.count(counts.get('repaired', 0))} repaired",
        f"{show.count(lost)} lost" + (f" ({reasons})" if reasons else ""),
        *([f"{show.count(counts['unheard'])} unheard"] if counts.get("unheard") else []),
        *([f"queue up to {show.size(peak['bytes'])} at {peak['port']}"] if peak else []),
    ]
    tone: Literal["plain", "bad"] = "bad" if lost or counts.get("unheard") else "plain"
    return Fact(news.key, news.title, show.count(counts.get(news.first, 0)), ", ".join(told), tone)


def _tone(missing: int, failed: int | None = 0) -> Literal["plain", "good", "bad"]:
    """Flows that were not done when the time was over are no fault; aborted ones are."""
    return "bad" if failed else "plain" if missing else "good"


def _wall(manifest: Mapping[str, Any]) -> str:
    wall = manifest.get("wall_s")
    return f"in {wall:.3g} s" if wall is not None else ""


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
    head = f"{count:,} flow{'s' * (count > 1)} aborted"
    if len(flows) == count == 1:
        return [f"{head}: {flows[0]}"]
    if count > len(flows):
        flows.append(f"{f'and {count - len(flows):,} more' if flows else 'which'}: flows.parquet, status = aborted")
    return [f"{head}:", *(f"  {flow}" for flow in flows)]


def news_rows(news: News, summary: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return head and rows of the table of what became of them; no rows where switches send none."""
    head = [news.title, "Count"]
    counts = summary.get(news.key)
    if counts is None:
        return head, []
    rows = [[words, show.count(counts.get(key, 0))] for key, words in news.counters]
    largest = counts.get("largest_queue")
    where, peak = (f", at {largest['port']}", largest["bytes"]) if largest else ("", 0)
    rows.append([f"{news.peak}{where}", show.size(peak)])
    return head, rows


def news_lines(news: News, summary: Mapping[str, Any]) -> list[str]:
    """Return what it means that some were lost or not heeded; empty where none were."""
    counts = summary.get(news.key) or {}
    of = f"of {show.count(counts.get(news.first, 0))} {news.noun}"
    lines = []
    lost, reasons = _astray(news, counts)
    if lost:
        means = "their senders learn of it from duplicate acknowledgments or a timeout"
        lines.append(f"{show.count(lost)} {of} told nobody ({reasons}): {means}.")
    untold = summary.get("drops", 0) - counts.get("raised", 0) if news.key == "notifications" and counts else 0
    if untold > 0:
        why = "unaware switches, acks = false, datagrams, or flows that had ended"
        lines.append(f"{show.count(untold)} of {show.count(summary['drops'])} drops were not told of ({why}).")
    if counts.get("unheard"):
        lines.append(f"{show.count(counts['unheard'])} {of} came to a transport that does not heed them: set {news.remedy}.")
    return lines


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
    """Return head and rows of the table of ports with the largest queues."""
    head = ["Port", "Largest queue", "Packets", "Sent", "Utilisation", "Marks", "Drops"]
    rows = []
    for entry in (summary.get("ports") or [])[:limit]:
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
