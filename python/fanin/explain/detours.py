"""Detours of followed packets: where they went and how long they were away, and what came out of order or was sent again for it.

A packet is on a detour while it goes to a neighbour over one link and comes back over the next: no shortest path does that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from fanin.text import show

if TYPE_CHECKING:
    import polars as pl

__all__ = ["HEAD", "ORDER_HEAD", "each", "order_rows", "rows", "sent_needlessly", "summary", "text"]

HEAD: Final = ["Switch", "To", "Detours", "Packets", "Away, median", "p99", "Longest", "Longest left at"]
"""Head of `rows`."""

ORDER_HEAD: Final = ["Flow", "Packets", "Detours", "Out of order", "By packets", "Late by", "Retransmitted", "Needlessly"]
"""Head of `order_rows`."""


def each(hops: pl.LazyFrame) -> pl.DataFrame:
    """Return one row per detour, in order of time.

    Parameters
    ----------
    hops : polars.LazyFrame
        ``hops.parquet``, or some of its flows.

    Returns
    -------
    polars.DataFrame
        ``flow``, ``packet``, ``switch``, ``neighbour``, ``from_ps`` (when the packet came to the port to the neighbour), ``to_ps``
        (when the switch could act on it again), ``away_ps``.
    """
    import polars as pl

    ends = pl.col("port").str.extract_groups(r"^(?<from>.*)->(?<to>.*?)(?:#\d+)?$").struct
    columns = ("packet", "flow", "arrived_ps", "reached_ps", ends.field("from"), ends.field("to"))
    placed = hops.select(columns).sort("packet", "arrived_ps")
    following = {name: pl.col(name).shift(-1) for name in ("packet", "from", "to", "reached_ps")}
    back = (following["packet"] == pl.col("packet")) & (following["from"] == pl.col("to")) & (following["to"] == pl.col("from"))
    # Every other one of several in a row, the last among them: a packet may have come by the link over which it goes away first.
    to_go = (pl.len() - 1 - pl.int_range(pl.len())).over(back.rle_id())
    found = placed.with_columns(to_ps=following["reached_ps"], away=back & (to_go % 2 == 0)).filter("away")
    times = {"from_ps": pl.col("arrived_ps"), "away_ps": pl.col("to_ps") - pl.col("arrived_ps")}
    return (
        found.with_columns(switch=pl.col("from"), neighbour=pl.col("to"), **times)
        .select("flow", "packet", "switch", "neighbour", "from_ps", "to_ps", "away_ps")
        .sort("from_ps", "packet")
        .collect()
    )


def sent_needlessly(segments: pl.LazyFrame) -> pl.DataFrame:
    """Return how many data packets of each flow were sent ``again``, and how many though an earlier copy arrived: ``needless``."""
    import polars as pl

    copies = ("flow", "host", "seq_bytes")
    arrived = pl.col("received_ps").is_not_null() & ~pl.col("trimmed")
    earlier = arrived.shift(1, fill_value=False).cum_max().over(copies)
    sent = segments.filter((pl.col("kind") == "data") & (pl.col("payload_bytes") > 0)).sort("packet")
    again = sent.select("flow", again=pl.col("again") > 0, needless=(pl.col("again") > 0) & earlier)
    return again.group_by("flow").agg(pl.sum("again", "needless")).sort("flow").collect()


def summary(found: pl.DataFrame, steps: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any] | None:
    """Return what a flow's detours come to; None without any.

    Parameters
    ----------
    found : polars.DataFrame
        Its rows of `each`.
    steps : sequence of mapping
        Its critical path, as `fanin.Explanation.steps` has it: ``critical_ps`` is how much of it a packet was on a detour.
    """
    import polars as pl

    if not found.height:
        return None
    spans: dict[int, list[tuple[int, int]]] = {}
    for packet, start, end in found.select("packet", "from_ps", "to_ps").iter_rows():
        spans.setdefault(packet, []).append((start, end))
    critical = sum(
        max(0, min(step["to_ps"], end) - max(step["from_ps"], start))
        for step in steps
        if step["packet"] is not None
        for start, end in spans.get(step["packet"], ())
    )
    most = found.group_by("packet").len()["len"].max()
    by = found.group_by("switch", "neighbour").agg(pl.len().alias("detours")).sort("detours", "neighbour", descending=[True, False])
    return {
        "detours": found.height,
        "packets": found["packet"].n_unique(),
        "most_of_a_packet": most,
        "by": by.to_dicts(),
        "away_p50_ps": found["away_ps"].quantile(0.5, "nearest"),
        "away_max_ps": found["away_ps"].max(),
        "critical_ps": critical,
    }


def text(flow: Mapping[str, Any], found: Mapping[str, Any] | None, again: int, needless: int) -> list[str]:
    """Return what a flow's detours, order of arrival and retransmissions were, in sentences; empty if there is nothing to say."""
    said = []
    if found:
        count, packets = found["detours"], found["packets"]
        ways = [f"{entry['neighbour']} ({show.count(entry['detours'])})" for entry in found["by"][:4]]
        more = f" and {len(found['by']) - 4} more" if len(found["by"]) > 4 else ""
        took = f"{show.count(packets)} of its packets took {show.many(count, 'detour')}"
        away = f"each away for {show.duration(found['away_p50_ps'])} in the median, {show.duration(found['away_max_ps'])} at most"
        said.append(f"{took}, to {', '.join(ways)}{more}, {away}; {show.duration(found['critical_ps'])} of its time is detours.")
    late = flow.get("reordered") or 0
    if late:
        of = f"{show.many(late, 'packet')} arrived after later ones"
        said.append(
            f"{of}, by up to {show.many(flow['reordering_extent'], 'packet')} and {show.duration(flow['reordering_late_ps'])}."
        )
    if needless:
        why = "reordering or delay was taken for loss" if late else "delay was taken for loss"
        said.append(
            f"{show.count(needless)} of {show.count(again)} retransmissions were needless, as an earlier copy arrived: {why}."
        )
    return said


def rows(found: pl.DataFrame) -> list[list[str]]:
    """Return one row per switch and neighbour under `HEAD`, the most detours first."""
    import polars as pl

    away = pl.col("away_ps")
    ways = found.group_by("switch", "neighbour").agg(
        detours=pl.len(),
        packets=pl.col("packet").n_unique(),
        p50=away.quantile(0.5, "nearest"),
        p99=away.quantile(0.99, "nearest"),
        longest=away.max(),
        at=pl.col("from_ps").get(away.arg_max()),
    )
    listed = ways.sort("detours", "switch", "neighbour", descending=[True, False, False]).iter_rows(named=True)
    return [
        [
            row["switch"],
            row["neighbour"],
            show.count(row["detours"]),
            show.count(row["packets"]),
            *(show.duration(row[name]) for name in ("p50", "p99", "longest", "at")),
        ]
        for row in listed
    ]


def order_rows(flows: pl.LazyFrame, found: pl.DataFrame, again: pl.DataFrame, limit: int) -> list[list[str]]:
    """Return one row per flow with packets out of order or detours under `ORDER_HEAD`, the most out of order first.

    Parameters
    ----------
    flows : polars.LazyFrame
        ``flows.parquet``.
    found, again : polars.DataFrame
        Rows of `each` and of `sent_needlessly`; flows that were not followed have none.
    limit : int
        Rows at most.
    """
    import polars as pl

    detours = found.group_by("flow").agg(detours=pl.len())
    columns = ("flow", "packets_sent", "reordered", "reordering_extent", "reordering_late_ps", "retransmits")
    followed = again.select("flow", "needless").lazy()
    joined = flows.select(columns).join(detours.lazy(), on="flow", how="left").join(followed, on="flow", how="left")
    listed = joined.filter((pl.col("reordered") > 0) | pl.col("detours").is_not_null())
    ordered = listed.sort("reordered", "detours", "flow", descending=[True, True, False], nulls_last=True).head(limit).collect()
    return [
        [
            str(row["flow"]),
            show.count(row["packets_sent"]),
            show.count(row["detours"]),
            show.count(row["reordered"]),
            show.count(row["reordering_extent"]),
            show.duration(row["reordering_late_ps"]),
            show.count(row["retransmits"]),
            show.count(row["needless"]),
        ]
        for row in ordered.iter_rows(named=True)
    ]
