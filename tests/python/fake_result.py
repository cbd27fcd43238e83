"""Result folders made by hand: incast bursts through one 10 Gb/s port, as docs/results.md lays them out."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from fanin.tables.schemas import SCHEMAS, schema

PORT = "leaf0->h0"
COLD = "leaf1->h4"
FRAME = 1518
SENT_PS = 1_230_400
"""Wire time of a full-size frame at 10 Gb/s: 1538 bytes."""
LIMIT = 60 * FRAME
MARK_AT = 30 * FRAME
SAMPLE_PS = 100_000_000


def units(name: str) -> str:
    known = {"ps": "ps", "bytes": "B", "packets": "packets"}
    return json.dumps({c: known[c.rsplit("_", 1)[-1]] for c in SCHEMAS[name] if c.rsplit("_", 1)[-1] in known})


def write_table(path: Path, name: str, rows: list[dict[str, Any]] | pl.DataFrame, version: int = 1) -> pl.DataFrame:
    frame = rows if isinstance(rows, pl.DataFrame) else pl.DataFrame(rows, schema=schema(name))
    frame.write_parquet(path / f"{name}.parquet", metadata={"fanin.schema": f"{name}/{version}", "fanin.units": units(name)})
    return frame


def packets(bursts: int, senders: int, each: int, seed: int, limit: int = LIMIT) -> list[dict[str, Any]]:
    """Packets at the watched port: `bursts` incasts of `senders` flows with `each` packets, through a drop-tail queue."""
    rng = random.Random(seed)
    out: list[dict[str, Any]] = []
    leaves: list[int] = []
    free = 0
    for burst in range(bursts):
        start = 200_000_000 + burst * 1_000_000_000
        arrivals = sorted(
            (start + rng.randrange(5_000_000) + n * SENT_PS * (senders // 2), burst * senders + s)
            for s in range(senders)
            for n in range(each)
        )
        for time, flow in arrivals:
            leaves = [t for t in leaves if t > time]
            found = len(leaves) * FRAME
            dropped = found + FRAME > limit
            if not dropped:
                begins = max(time, free)
                free = begins + SENT_PS
                if begins > time:
                    leaves.append(begins)
            out.append(
                {
                    "time_ps": time,
                    "port": PORT,
                    "queue_bytes": found,
                    "queue_packets": found // FRAME,
                    "flow": flow,
                    "frame_bytes": FRAME,
                    "marked": not dropped and found >= MARK_AT,
                    "dropped": dropped,
                    "replaced": False,
                    "at_head": False,
                }
            )
    return out


def flow_rows(bursts: int, senders: int, each: int, arrived: pl.DataFrame, seed: int) -> list[dict[str, Any]]:
    rng = random.Random(seed + 1)
    lost = {int(k): int(v) for k, v in arrived.filter(pl.col("dropped")).group_by("flow").len().iter_rows()}
    marked = {int(k): int(v) for k, v in arrived.filter(pl.col("marked")).group_by("flow").len().iter_rows()}
    rows = []
    for flow in range(bursts * senders):
        packets = each * (1, 1, 1, 20)[flow % senders * 4 // senders] // (1, 3)[flow % 2]
        size = packets * 1460
        ideal = 25_000_000 + packets * SENT_PS
        start = 200_000_000 + (flow // senders) * 1_000_000_000
        finish: int | None = start + int(ideal * (1 + 3 * rng.random()) + 10_000_000_000 * (flow in lost) * (flow % 3 == 0))
        group = "query" if flow % senders < senders * 3 // 4 else "background <b>"
        status = "complete"
        if flow == bursts * senders - 1:
            finish, status = None, "incomplete"
        rows.append(
            {
                "flow": flow,
                "id": None,
                "group": group,
                "query": flow // senders if group == "query" else None,
                "src": f"h{1 + flow % senders}",
                "dst": "h0",
                "transport": "dctcp",
                "class": 0,
                "size_bytes": size,
                "request_bytes": 0,
                "start_ps": start,
                "finish_ps": finish,
                "acked_ps": None if finish is None else finish + 10_000_000,
                "ideal_ps": ideal,
                "base_rtt_ps": 10_000_000,
                "status": status,
                "delivered_bytes": size if finish else size // 2,
                "packets_sent": packets + lost.get(flow, 0),
                "retransmits": lost.get(flow, 0),
                "timeouts": int(flow in lost and flow % 3 == 0),
                "recoveries": int(flow in lost and flow % 3 != 0),
                "ecn_reductions": int(flow in marked),
                "marked": marked.get(flow, 0),
            }
        )
    return rows


def port_rows(arrived: pl.DataFrame, end_ps: int) -> list[dict[str, Any]]:
    rows = []
    slots = arrived.group_by(pl.col("time_ps") // SAMPLE_PS).agg(
        pl.len(),
        drops=pl.col("dropped").sum(),
        marks=pl.col("marked").sum(),
        peak=pl.col("queue_bytes").max(),
        last=pl.col("queue_bytes").last(),
    )
    found = {int(row["time_ps"]): row for row in slots.iter_rows(named=True)}
    for slot in range(end_ps // SAMPLE_PS):
        here = found.get(slot)
        sent = here["len"] - here["drops"] if here else 0
        rows.append(
            {
                "time_ps": (slot + 1) * SAMPLE_PS,
                "port": PORT,
                "tx_bytes": sent * FRAME,
                "tx_packets": sent,
                "queue_bytes": here["last"] if here else 0,
                "queue_packets": (here["last"] if here else 0) // FRAME,
                "queue_max_bytes": here["peak"] + FRAME if here else 0,
                "held_bytes": 0,
                "drops": here["drops"] if here else 0,
                "marks": here["marks"] if here else 0,
            }
        )
        rows.append(
            {
                **rows[-1],
                "port": COLD,
                "queue_bytes": 64,
                "queue_packets": 1,
                "queue_max_bytes": 64,
                "held_bytes": 0,
                "drops": 0,
                "marks": 0,
                "tx_bytes": 6400,
            }
        )
        rows.append({**rows[-1], "port": "leaf1->spine0", "tx_bytes": 12_800})
    return rows


def percentile(values: list[float], share: float) -> float | None:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered) // 1) - 1))] if ordered else None


def fct_entry(flows: pl.DataFrame, name: str, low: int | None, high: int | None) -> dict[str, Any]:
    done = flows.filter(pl.col("status") == "complete")
    if name != "all":
        done = done.filter(pl.col("size_bytes").is_between(low or 0, (high or 1 << 62) - 1))
    times = [float(f - s) for f, s in zip(done["finish_ps"], done["start_ps"], strict=True)]
    slow = [t / i for t, i in zip(times, done["ideal_ps"], strict=True)]
    entry: dict[str, Any] = {"bin": name, "from_bytes": low, "to_bytes": high, "flows": len(times)}
    for key, values, unit in (("", times, "_ps"), ("slowdown_", slow, "")):
        entry[f"{key}mean{unit}"] = sum(values) / len(values) if values else None
        for p in (50, 95, 99):
            entry[f"{key}p{p}{unit}"] = percentile(values, p / 100)
    return entry


def write_followed(path: Path) -> None:
    """Add the tables of a followed flow to a result folder: flow 0 sends one packet over two links."""
    sent = {"made_ps": 200_000_000, "sent_ps": 200_000_000, "received_ps": 205_000_000}
    absent = dict.fromkeys(("dropped_at", "dropped_ps", "cause_packet", "armed_ps", "armed_packet"))
    cause = {"cause": "application", "cause_ps": 200_000_000, "limit": "application", **absent}
    segment = {"packet": 0, "flow": 0, "host": "h1", "kind": "data", "seq_bytes": 0, "payload_bytes": 1460, "ack_bytes": 0}
    segment |= {"frame_bytes": FRAME, "again": 0, "marked": False, "trimmed": False}
    write_table(path, "segments", [segment | sent | cause])
    hops = [("h1->leaf0", 200_000_000), (PORT, 202_500_000)]
    times = [{"arrived_ps": at, "sent_ps": at, "left_ps": at + SENT_PS, "reached_ps": at + 2_500_000} for _, at in hops]
    write_table(path, "hops", [{"packet": 0, "flow": 0, "port": port} | row for (port, _), row in zip(hops, times, strict=True)])
    state = {"time_ps": 200_000_000, "flow": 0, "host": "h1", "event": "application", "packet": None, "phase": "open"}
    state |= {"cwnd_bytes": 14_600, "ssthresh_bytes": None, "srtt_ps": None, "rttvar_ps": None, "rto_ps": 10**12, "alpha_ppm": None}
    state |= {"acked_bytes": 0, "sent_bytes": 1460, "in_flight_bytes": 1460, "pipe_bytes": 1460, "unsent_bytes": 0}
    write_table(path, "hosts", [state | {"window_bytes": 65_536, "rate_bps": None}])
    message = {"flow": 0, "message": 0, "src": "h1", "dst": "h0", "offset_bytes": 0, "size_bytes": 1460, "posted_ps": 200_000_000}
    message |= {"sent_ps": 200_000_000, "delivered_ps": 205_000_000, "acked_ps": None, "packets": 1, "retransmits": 0}
    write_table(path, "messages", [message])


def write_result(
    path: Path,
    *,
    bursts: int = 8,
    senders: int = 16,
    each: int = 12,
    seed: int = 1,
    status: str = "complete",
    watch: bool = True,
    limit: int = LIMIT // FRAME,
    manifest: Mapping[str, Any] | None = None,
) -> Path:
    """Write a result folder whose tables and summary agree with one another."""
    path.mkdir(parents=True, exist_ok=True)
    arrived = pl.DataFrame(packets(bursts, senders, each, seed, limit * FRAME), schema=schema("queues"))
    if watch:
        write_table(path, "queues", arrived)
    flows = write_table(path, "flows", flow_rows(bursts, senders, each, arrived, seed))
    end_ps = 200_000_000 + (bursts + 1) * 1_000_000_000
    write_table(path, "ports", port_rows(arrived, end_ps))
    stamped = arrived.filter(~pl.col("dropped")).select(
        received_ps=pl.col("time_ps") + 3_000_000,
        host=pl.lit("h0"),
        port="port",
        stamp_time=(pl.col("time_ps") // 800_000 % (1 << 32)).cast(pl.UInt32),
        stamp_length=(pl.col("queue_bytes") // 8).clip(upper_bound=65_535).cast(pl.UInt16),
        flow="flow",
        frame_bytes="frame_bytes",
        marked="marked",
    )
    if watch:
        write_table(path, "stamps", stamped)
    lost = arrived.filter(pl.col("dropped"))
    drop = lost.select(
        "time_ps",
        "port",
        "flow",
        "frame_bytes",
        payload_bytes=pl.lit(1460, pl.UInt16),
        seq=pl.lit(1, pl.UInt32),
        reason=pl.lit("buffer_full"),
        queue_bytes="queue_bytes",
    )
    write_table(path, "drops", drop)
    pause = {"port": PORT, "class": 0, "start_ps": 200_000_000, "end_ps": 201_000_000}
    asked = {"asked_ps": 199_000_000, "behind": None, "held_up": True, "frames": 2}
    write_table(path, "pauses", [pause | asked, pause | asked | {"start_ps": 202_000_000, "asked_ps": 201_500_000, "end_ps": None}])
    reduce = {"group": "job", "iteration": 0, "operation": 0, "collective": "all_reduce", "algorithm": "ring", "communicator": 0}
    took = {"start_ps": 0, "ready_ps": 0, "finish_ps": 8_000_000, "algbw_bps": 8_000_000_000, "busbw_bps": 12_000_000_000}
    write_table(path, "collectives", [reduce | {"ranks": 4, "size_bytes": 8_000} | took])
    queries = (
        flows.filter(pl.col("group") == "query")
        .group_by("query", maintain_order=True)
        .agg(
            group=pl.lit("query"),
            client=pl.lit("h0"),
            start_ps=pl.col("start_ps").min(),
            finish_ps=pl.col("finish_ps").max(),
            responses=pl.len().cast(pl.UInt32),
            size_bytes=pl.col("size_bytes").sum(),
        )
    )
    write_table(path, "queries", queries)
    spans = [float(f - s) for f, s in zip(queries["finish_ps"], queries["start_ps"], strict=True)]
    peak = arrived.row(int(arrived["queue_bytes"].arg_max() or 0), named=True)
    hot = {
        "max_bytes": peak["queue_bytes"] + FRAME,
        "max_packets": peak["queue_packets"] + 1,
        "marks": int(arrived["marked"].sum()),
        "drops": lost.height,
    }
    summary = {
        "flows": {state: flows.filter(pl.col("status") == state).height for state in ("complete", "incomplete", "aborted")}
        | {"total": flows.height},
        "fct": [
            fct_entry(flows, "all", None, None),
            fct_entry(flows, "small", 0, 10_000),
            fct_entry(flows, "medium", 10_000, 100_000),
            fct_entry(flows, "large", 100_000, None),
        ],
        "queries": {
            "total": len(spans),
            "complete": len(spans),
            "mean_ps": sum(spans) / len(spans),
            **{f"p{p}_ps": percentile(spans, p / 100) for p in (50, 95, 99)},
        },
        "datagrams": {"flows": 0, "sent": 0, "received": 0, "delivered_bytes": 0},
        "mechanisms": {},
        "flows_until_ps": end_ps,
        "goodput_bps": float(flows["delivered_bytes"].sum()) * 8e12 / end_ps,
        "delivered_bytes": int(flows["delivered_bytes"].sum()),
        "packets_sent": int(flows["packets_sent"].sum()),
        "retransmits": int(flows["retransmits"].sum()),
        "timeouts": int(flows["timeouts"].sum()),
        "marks": hot["marks"],
        "drops": lost.height,
        "drops_by_reason": {"buffer_full": lost.height},
        "largest_queue": {"port": PORT, "bytes": hot["max_bytes"], "packets": hot["max_packets"], "time_ps": peak["time_ps"]},
        "ports": [
            {"port": PORT, **hot, "tx_bytes": (arrived.height - lost.height) * FRAME, "utilisation": 0.31},
            {"port": COLD, "max_bytes": 64, "max_packets": 1, "marks": 0, "drops": 0, "tx_bytes": 6400, "utilisation": 0.001},
        ],
    }
    (path / "summary.json").write_text(json.dumps(summary))
    document = {
        "fanin": "0.1.0",
        "schema": "manifest/1",
        "status": status,
        "name": "incast </script> & friends",
        "seed": seed,
        "scenario": {"name": "incast", "seed": seed, "switch": {"marking": {"kind": "threshold", "k": "65 packets"}}},
        "scenario_hash": "ab" * 32,
        "fingerprint": f"{seed:016x}",
        "sim_ps": end_ps,
        "wall_s": 0.42,
        "cpu_s": 0.4,
        "packet_hops": 1_000_000,
        "events": 1_200_000,
        "warnings": ["switch.marking.k: is above the buffer"],
        "files": {"flows": flows.height, "queues": arrived.height if watch else 0},
        **({"reason": "interrupted"} if status == "partial" else {}),
        **(manifest or {}),
    }
    (path / "manifest.json").write_text(json.dumps(document))
    return path
