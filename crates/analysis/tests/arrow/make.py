"""Write the files of this folder: `python make.py`, with pyarrow 26.0.1 and polars 2.1.0 (`pip install`); values are those of `row`."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import polars as pl
import pyarrow as pa
from pyarrow import ipc

HERE = Path(__file__).parent
ROWS = 100
START = 1_795_248_000_000_000_000


def row(i: int) -> dict[str, object]:
    return {
        "when": START + 100 * i,
        "qlen": None if i % 10 == 9 else i,
        "intf": "e0" if i % 3 == 0 else "ethernet 1/1/25",
        "depth": i / 2,
        "ce": i % 7 == 0,
        "flow": None if i % 7 == 6 else f"10.0.0.{i % 5}:40000 > 10.0.0.9:80 tcp",
        "len": 64 + i,
        "flow_id": 2**64 - 1 if i == 5 else i,
    }


def table() -> pa.Table:
    rows = [row(i) for i in range(ROWS)]
    column = lambda name: [r[name] for r in rows]  # noqa: E731
    text = pa.array(column("flow"), pa.string())
    lists = pa.array([[i] * (i % 3) for i in range(ROWS)], pa.list_(pa.int16()))
    nested = pa.StructArray.from_arrays(
        [pa.array(column("len"), pa.uint16()), lists],
        names=["len", "more"],
        mask=pa.array([i % 50 == 49 for i in range(ROWS)]),
    )
    return pa.table(
        {
            "when": pa.array(column("when"), pa.timestamp("ns", "UTC")),
            "lists": lists,
            "qlen": pa.array(column("qlen"), pa.int32()),
            "intf": pa.array(column("intf"), pa.string()).dictionary_encode(),
            "nested": nested,
            "depth": pa.array(column("depth"), pa.float64()),
            "ce": pa.array(column("ce"), pa.bool_()),
            "flow": text,
            "wide": text.cast(pa.large_string()),
            "view": text.cast(pa.string_view()),
            "flow_id": pa.array(column("flow_id"), pa.uint64()),
            "short": pa.array([i % 100 for i in range(ROWS)], pa.int8()),
            "half": pa.array(column("depth"), pa.float32()),
            "naive": pa.array([(START + 100 * i) // 1000 for i in range(ROWS)], pa.timestamp("us")),
            "since": pa.array([100 * i for i in range(ROWS)], pa.duration("ns")),
            "fixed": pa.array([Decimal(i) for i in range(ROWS)], pa.decimal128(9, 2)),
            "nothing": pa.nulls(ROWS),
        }
    ).replace_schema_metadata({"made.by": "make.py"})


def write(name: str, compression: str | None, *, stream: bool = False) -> None:
    made = table()
    options = ipc.IpcWriteOptions(compression=compression)
    new = ipc.new_stream if stream else ipc.new_file
    with new(str(HERE / name), made.schema, options=options) as writer:
        writer.write_table(made, max_chunksize=43)


def write_delta() -> None:
    """Dictionaries that grow and are replaced, as streams may have them."""
    schema = pa.schema({"time_ns": pa.int64(), "queue_bytes": pa.int64(), "port": pa.dictionary(pa.int8(), pa.string())})
    names = [["a", "b"], ["a", "b", "c"], ["x", "y"]]
    with ipc.new_stream(str(HERE / "delta.arrows"), schema, options=ipc.IpcWriteOptions(emit_dictionary_deltas=True)) as writer:
        for turn, there in enumerate(names):
            ports = pa.DictionaryArray.from_arrays(pa.array([i % len(there) for i in range(6)], pa.int8()), pa.array(there))
            times = pa.array([1000 * (6 * turn + i) for i in range(6)], pa.int64())
            writer.write_batch(pa.record_batch([times, times, ports], schema=schema))


def write_polars() -> None:
    rows = [row(i) for i in range(ROWS)]
    frame = pl.DataFrame(
        {
            "when": pl.Series([START // 1000 + i for i in range(ROWS)]).cast(pl.Datetime("us", "UTC")),
            "qlen": pl.Series([r["qlen"] for r in rows], dtype=pl.UInt32),
            "intf": pl.Series([r["intf"] for r in rows], dtype=pl.Enum(["e0", "ethernet 1/1/25"])),
            "ce": pl.Series([r["ce"] for r in rows]),
            "flow": pl.Series([r["flow"] for r in rows], dtype=pl.String),
        }
    )
    frame.lazy().sink_ipc(HERE / "polars.arrow")
    frame.write_ipc(HERE / "polars-lz4.arrow", compression="lz4")


def write_hft() -> None:
    """Write a stream as SONiC's countersyncd keeps it (format v5): 3 series, batches of 3 times and 1, compressed with zstd."""
    port, queue = ("SAI_OBJECT_TYPE_PORT", "SAI_PORT_STAT_IF_OUT_OCTETS"), ("SAI_OBJECT_TYPE_QUEUE", "SAI_QUEUE_STAT_WATERMARK_BYTES")
    names = [("Ethernet0", *port), ("Ethernet0|3", *queue), ("Ethernet0", port[0], "SAI_PORT_STAT_IF_IN_OCTETS")]
    series = [dict(zip(("object_name", "type_name", "stat_name"), name, strict=True)) for name in names]
    notes = {"format_version": "sonic-hft-arrow-v5", "timestamp_unit": "ns", "matrix_order": "series-major", "series": json.dumps(series)}
    column = pa.list_(pa.field("item", pa.uint64(), nullable=False))
    fields = [pa.field(name, column, nullable=False) for name in ("timestamps_ns", "values")]
    schema = pa.schema(fields, metadata=notes)
    begin = 1_700_000_000_000_000_000
    batches = [
        ([begin, begin + 100_000, begin + 200_000], [1_000, 2_000, 90_000, 50, 70_000, 6_000, 1, 2, 3]),
        ([begin + 300_000], [90_500, 5_000, 4]),
    ]
    with ipc.new_stream(str(HERE / "hft.arrows"), schema, options=ipc.IpcWriteOptions(compression="zstd")) as writer:
        for times, values in batches:
            writer.write_batch(pa.record_batch([pa.array([times], column), pa.array([values], column)], schema=schema))


if __name__ == "__main__":
    for codec in (None, "lz4", "zstd"):
        write(f"{codec or 'plain'}.arrow", codec)
    write("stream.arrows", None, stream=True)
    write("stream-zstd.arrows", "zstd", stream=True)
    write_delta()
    write_polars()
    write_hft()
