"""The data under each chart: small frames drawn from large tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import polars as pl

from fanin.tables import samples

if TYPE_CHECKING:
    from fanin.tables.recorded import Recorded

MAX_POINTS: Final = 4000
"""Points of one curve: two for each of 2000 pixels, more than a laptop screen shows."""


@dataclass(frozen=True)
class QueueSeries:
    """The queue of one port over time.

    Attributes
    ----------
    port : str
        The port.
    kind : {"packet", "sampled"}
        One row per packet that arrived, or one per sample.
    frame : polars.DataFrame
        ``time_ps``, ``queue_bytes``, ``queue_packets`` and, per packet, ``flow``, ``frame_bytes``, ``marked``, ``dropped``;
        by samples, ``queue_max_bytes``, ``drops``, ``marks``.
    line : polars.DataFrame
        ``time_ps``, ``queue_bytes``: what to draw as a line. Per packet these are the records and, where a packet found
        the queue empty, the time at which it ran empty before, at the rate at which the port was seen to drain.
    records : int
        How many rows the table holds for this port and window; more than the frame has when `reduced`.
    reduced : bool
        Whether the frame keeps only the smallest and the largest row of each of `MAX_POINTS` / 2 equal parts of the time.
    """

    port: str
    kind: Literal["packet", "sampled"]
    frame: pl.DataFrame
    line: pl.DataFrame
    records: int
    reduced: bool

    @property
    def _level(self) -> pl.Series:
        return self.frame["queue_bytes" if self.kind == "packet" else "queue_max_bytes"]

    @property
    def peak_bytes(self) -> int:
        """The largest queue in the frame [bytes]."""
        largest = self._level.max()
        return int(largest) if isinstance(largest, int) else 0

    @property
    def peak_ps(self) -> int:
        """Time of the largest queue [ps]."""
        row = self._level.arg_max()
        return 0 if row is None else int(self.frame["time_ps"][row])


@dataclass(frozen=True)
class SampledSeries:
    """Counters summed over ports, by interval.

    Attributes
    ----------
    frame : polars.DataFrame
        ``time_ps`` (end of the interval), ``span_ps`` (its length), ``tx_bytes``, ``drops``, ``marks``,
        ``queue_max_bytes`` (largest of any port).
    merged : int
        How many samples were added up into one row; 1 unless there were more than `MAX_POINTS`.
    """

    frame: pl.DataFrame
    merged: int


def hot_ports(result: Recorded, limit: int = 16) -> list[str]:
    """Return the ports with the largest queues, largest first.

    Parameters
    ----------
    result : Recorded
        The run.
    limit : int
        At most so many.
    """
    listed = [str(entry["port"]) for entry in result.summary.get("ports") or []]
    watched = [port for port in watched_ports(result) if port not in listed]
    return (listed + watched)[:limit]


def shown_ports(result: Recorded, limit: int) -> list[str]:
    """Return the ports whose queues a page shows: watched ones first, as many as leave room for the two hottest others."""
    hottest, watched = hot_ports(result), watched_ports(result)
    others = [port for port in hottest if port not in watched]
    chosen = watched[: max(limit - 2, limit - len(others))]
    return chosen + others[: limit - len(chosen)]


def watched_ports(result: Recorded) -> list[str]:
    """Return the ports with per-packet queue records, largest queue first."""
    frame = (
        result.scan_queues()
        .group_by("port")
        .agg(pl.col("queue_bytes").max())
        .sort(["queue_bytes", "port"], descending=[True, False])
        .collect(engine="streaming")
    )
    return frame["port"].to_list()


def _between(frame: pl.LazyFrame, port: str, window_ps: tuple[int, int] | None) -> pl.LazyFrame:
    frame = frame.filter(pl.col("port") == port)
    return frame if window_ps is None else frame.filter(pl.col("time_ps").is_between(*window_ps))


def packet_count(result: Recorded, port: str, window_ps: tuple[int, int] | None = None) -> int:
    """Return how many packets of `port` were recorded one by one, in `window_ps` [ps] if given."""
    count = _between(result.scan_queues(), port, window_ps).select(pl.len()).collect(engine="streaming").item()
    return int(count)


def reduce_minmax(frame: pl.LazyFrame, value: str, buckets: int) -> pl.LazyFrame:
    """Return for each of `buckets` equal parts of the time the rows with the smallest and the largest `value`.

    The first of equal rows is kept; the order in time stays. The envelope of the curve, its peak included, is exact.

    Parameters
    ----------
    frame : polars.LazyFrame
        Sorted by ``time_ps``.
    value : str
        Name of the column.
    buckets : int
        Parts, at least 1.
    """
    start = pl.col("time_ps").min()
    span = (pl.col("time_ps").max() - start + 1).cast(pl.Float64)
    bucket = ((pl.col("time_ps") - start).cast(pl.Float64) * buckets / span).floor().cast(pl.UInt32)
    chosen = [pl.col("row").get(pl.col(value).arg_min()).alias("low"), pl.col("row").get(pl.col(value).arg_max()).alias("high")]
    numbered = frame.with_row_index("row").with_columns(bucket=bucket)
    rows = numbered.group_by("bucket").agg(chosen).select(row=pl.concat_list("low", "high").explode()).unique()
    return numbered.join(rows, on="row", how="semi").sort("row").drop("row", "bucket")


def queue_series(
    result: Recorded, port: str, window_ps: tuple[int, int] | None = None, max_points: int = MAX_POINTS
) -> QueueSeries:
    """Return the queue of a port, per packet where it was watched, otherwise by samples.

    Parameters
    ----------
    result : Recorded
        The run.
    port : str
        For example ``leaf0->h3``.
    window_ps : (int, int), optional
        Only this part of the run, both ends included [ps].
    max_points : int
        More rows than this are reduced; see `reduce_minmax`.

    Raises
    ------
    ValueError
        There is no record of that port.
    """
    count = packet_count(result, port, window_ps)
    if count or packet_count(result, port):
        rows, value, kind = _between(result.scan_queues(), port, window_ps), "queue_bytes", "packet"
    else:
        rows, value, kind = _between(_samples(result, port), port, window_ps), "queue_max_bytes", "sampled"
        count = int(rows.select(pl.len()).collect(engine="streaming").item())
        if not count and not _sampled_port(result, port):
            raise ValueError(f"there is no record of the port '{port}'; try {', '.join(hot_ports(result, 4)) or 'another run'}")
    reduced = count > max_points
    rows = rows.drop("port").sort("time_ps", maintain_order=True)
    if kind == "sampled":
        frame = (reduce_minmax(rows, value, max_points // 2) if reduced else rows).collect(engine="streaming")
        return QueueSeries(port, "sampled", frame, frame.select("time_ps", queue_bytes=value), count, reduced)
    drawn = pl.concat([rows, _emptied(rows)], how="diagonal").sort("time_ps", maintain_order=True)
    line = (reduce_minmax(drawn, value, max_points // 2) if reduced else drawn).collect(engine="streaming")
    frame = line.filter(pl.col("flow").is_not_null())
    return QueueSeries(port, "packet", frame, line.select("time_ps", "queue_bytes"), count, reduced)


def _emptied(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Return when the queue ran empty, between a packet and the next one that found nothing: ``time_ps``, ``queue_bytes`` 0.

    The rate is the one at which the queue shrank wherever it did not run empty between two packets, less what was dropped at its
    head, which took no time.
    """
    at_head = pl.col("at_head").fill_null(value=False)
    full = (pl.col("dropped") & ~at_head) | pl.col("replaced").fill_null(value=False)
    after = pl.col("queue_bytes") + pl.when(full).then(0).otherwise(pl.col("frame_bytes")).cast(pl.UInt64)
    steps = rows.select(
        "time_ps",
        after=after,
        unsent=pl.when(at_head).then(pl.col("frame_bytes")).otherwise(0).cast(pl.Int64),
        next_ps=pl.col("time_ps").shift(-1),
        found=pl.col("queue_bytes").shift(-1),
    ).filter(pl.col("next_ps").is_not_null())
    busy = steps.filter(pl.col("found") > 0).select(
        drained=(pl.col("after").cast(pl.Int64) - pl.col("found").cast(pl.Int64) - pl.col("unsent")).sum(),
        span=(pl.col("next_ps") - pl.col("time_ps")).sum(),
    )
    drained, span = busy.collect(engine="streaming").row(0)
    if not span or not drained or drained <= 0:
        return rows.select("time_ps", "queue_bytes").head(0)
    empty_at = pl.col("time_ps") + (pl.col("after") * (span / drained)).cast(pl.UInt64)
    found_empty = steps.filter(pl.col("found") == 0).with_columns(empty_at=empty_at).filter(pl.col("empty_at") < pl.col("next_ps"))
    return found_empty.select(time_ps="empty_at", queue_bytes=pl.lit(0, pl.UInt64))


def _samples(result: Recorded, port: str) -> pl.LazyFrame:
    """Return the samples of one port, the quiet ones too; empty if it was not sampled. Of very many: their outline."""
    rows = result.scan("ports", as_written=True).filter(pl.col("port") == port)
    if not _sampled_port(result, port):
        return rows
    times = result.sample_times
    return samples.fill(rows, times, [port]) if times.len() <= OUTLINED else samples.outline(rows, int(times[0]))


OUTLINED: Final = 200_000
"""With more samples than this a port's line is drawn from its written rows; it is the same, but need not be made whole."""


def _sampled_port(result: Recorded, port: str) -> bool:
    found = result.scan("ports", as_written=True).filter(pl.col("port") == port).head(1).collect()
    return found.height > 0


BURST_SHARES: Final = (0.05, 0.1, 0.2, 0.4)
"""Shares of the largest queue below which a burst is over, tried in turn until the burst is a small part of the records."""

BURST_MARGIN: Final = 0.2
"""Margin shown before and after a burst, as a share of its length."""


def burst(records: pl.DataFrame) -> tuple[int, int] | None:
    """Return when the burst around the largest ``level`` began and ended [ps], with a margin within the records, if any.

    It begins with the last record before the peak that is not above a share of it, and ends with the next such record.

    Parameters
    ----------
    records : polars.DataFrame
        ``time_ps``, rising, and ``level``.
    """
    peak = records["level"].arg_max() if records.height else None
    if peak is None:
        return None
    first, last = 0, records.height - 1
    for share in BURST_SHARES:
        low = (records["level"] <= share * records["level"][peak]).arg_true()
        before, after = low.filter(low < peak), low.filter(low > peak)
        first = int(before[-1]) if before.len() else 0
        last = int(after[0]) if after.len() else records.height - 1
        if last - first <= records.height // 4:
            break
    begin, end = int(records["time_ps"][first]), int(records["time_ps"][last])
    margin = int(BURST_MARGIN * (end - begin))
    return max(begin - margin, int(records["time_ps"][0])), min(end + margin, int(records["time_ps"][-1]))


def peak_window(result: Recorded, port: str, rows: int) -> tuple[int, int] | None:
    """Return the time from about half of `rows` records before the largest queue of `port` to as many after it [ps].

    The records are packets where the port was watched, otherwise samples; None if there are none.
    """
    packets = packet_count(result, port) > 0
    table, value = (result.scan_queues(), "queue_bytes") if packets else (_samples(result, port), "queue_max_bytes")
    records = table.filter(pl.col("port") == port).select("time_ps", value)
    frame = records.sort("time_ps", maintain_order=True).collect(engine="streaming")
    peak = frame[value].arg_max() if frame.height else None
    if peak is None:
        return None
    first = max(0, min(peak - rows // 2, frame.height - rows))
    last = min(frame.height, first + rows) - 1
    return int(frame["time_ps"][first]), int(frame["time_ps"][last])


def busy_until(result: Recorded, share: float = 0.999) -> int | None:
    """Return when `share` of all bytes had been sent [ps]; None without samples."""
    frame = sampled(result).frame
    total = int(frame["tx_bytes"].sum())
    if not total:
        return None
    return int(frame.filter(pl.col("tx_bytes").cum_sum() >= share * total)["time_ps"][0])


def to_hosts(result: Recorded) -> list[str]:
    """Return the ports whose link ends at a host that sends or receives a flow."""
    flows = result.scan_flows()
    hosts = pl.concat([flows.select(host="src"), flows.select(host="dst")]).unique().collect(engine="streaming")["host"]
    ports = result.scan("ports", as_written=True).select(pl.col("port").unique()).collect(engine="streaming")["port"]
    end = ports.to_frame().select("port", host=pl.col("port").str.split("->").list.last())
    return sorted(end.filter(pl.col("host").is_in(hosts.implode()))["port"].to_list())


def sampled(result: Recorded, ports: list[str] | None = None, max_points: int = MAX_POINTS) -> SampledSeries:
    """Return counters summed over `ports` (all of them if None) by sampling interval.

    Parameters
    ----------
    result : Recorded
        The run.
    ports : list of str, optional
        Which ports.
    max_points : int
        With more samples than this, neighbours are added up.
    """
    rows = result.scan("ports", as_written=True)
    if ports is not None:
        rows = rows.filter(pl.col("port").is_in(ports))
    totals = [pl.col(name).sum().cast(pl.UInt64) for name in ("tx_bytes", "drops", "marks")]
    frame = rows.group_by("time_ps").agg(*totals, pl.col("queue_max_bytes").max()).collect(engine="streaming")
    # At the other samples nothing has happened at any of these ports. A port that was sampled has a row at least.
    times = result.sample_times.to_frame().head(result.sample_times.len() if frame.height else 0)
    frame = times.join(frame, on="time_ps", how="left", maintain_order="left").with_columns(pl.all().fill_null(strategy="zero"))
    frame = frame.with_columns(span_ps=pl.col("time_ps") - pl.col("time_ps").shift(1, fill_value=0))
    merged = -(-frame.height // max_points) or 1
    if merged > 1:
        frame = (
            frame.with_row_index("row")
            .group_by(pl.col("row") // merged, maintain_order=True)
            .agg(
                pl.col("time_ps").max(),
                *[pl.col(name).sum() for name in ("tx_bytes", "drops", "marks", "span_ps")],
                pl.col("queue_max_bytes").max(),
            )
            .drop("row")
        )
    return SampledSeries(frame.select("time_ps", "span_ps", "tx_bytes", "drops", "marks", "queue_max_bytes"), merged)


def cdf(values: pl.Series, max_points: int = MAX_POINTS // 2) -> pl.DataFrame:
    """Return the empirical distribution: ``value`` rising, ``fraction`` of values not above it.

    More than `max_points` values are thinned, evenly in the body and closer and closer towards the tail, of which the
    largest hundred are all kept.
    """
    ordered = values.drop_nulls().sort()
    count = ordered.len()
    frame = pl.DataFrame({"value": ordered}).with_row_index("rank", offset=1)
    frame = frame.select("value", fraction=pl.col("rank") / max(count, 1))
    if count <= max_points:
        return frame
    tail = min(100, max_points // 4)
    body = max_points - tail
    keep = {int(i * (count - tail) / (body // 2)) for i in range(body // 2)}
    depth = count / tail
    keep |= {count - round(tail * depth ** (i / (body // 2))) for i in range(body // 2)}
    keep |= set(range(count - tail, count))
    return frame[sorted(index for index in keep if 0 <= index < count)]
