"""What a switch gives an operator, held against a simulated port of which everything is known."""

import runpy
import sys
from pathlib import Path

import polars as pl
import pytest

import fanin

EXAMPLE = Path(__file__).parents[2] / "examples" / "switch_feeds.py"
TRACES = EXAMPLE.parent / "traces"
MS = 1_000_000_000
LANZ = "queue=Queue-Length:segments(480B)"
COUNTERS = "time=time_ms:ms,port=ifName,bytes=tx_bytes:total,drops=tx_dropped:total,watermark=watermark_bytes:B"


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    """The packets of the port that `examples/switch_feeds.py` simulates: four bursts, each 10 ms after the other."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [EXAMPLE.name, str(tmp_path_factory.mktemp("truth"))])
        packets: pl.DataFrame = runpy.run_path(str(EXAMPLE))["packets"]
    return packets.with_columns(burst=(pl.col("time_ps") - 2 * MS) // (10 * MS))


def _bursts(truth: pl.DataFrame) -> pl.DataFrame:
    return (
        truth.group_by("burst")
        .agg(
            peak=pl.col("queue_bytes").max(),
            drops=pl.col("dropped").sum(),
            first=pl.col("time_ps").min(),
            last=pl.col("time_ps").max(),
            bytes=pl.col("frame_bytes").filter(~pl.col("dropped")).sum(),
        )
        .sort("burst")
    )


def test_watermarks_are_the_largest_queues_and_bursts_lie_within_their_intervals(truth: pl.DataFrame) -> None:
    analysis = fanin.analyze(TRACES / "counters.csv", rate="10Gbps", above="50KB", columns=COUNTERS)
    known = _bursts(truth)
    found = analysis.bursts.sort("start_ps")
    assert found["peak_bytes"].to_list() == known["peak"].to_list()
    assert found["dropped_packets"].to_list() == known["drops"].to_list()
    assert (found["start_ps"] <= known["first"]).all()
    assert (found["start_ps"] + MS > known["first"]).all()
    assert (found["end_ps"] >= known["last"]).all()
    assert (found["end_ps"] - known["last"] <= MS).all()
    port = analysis.document["ports"][0]
    assert not port["counted"]["peak_at_least"]
    assert port["counted"]["unknown"] == []
    sent = [burst["counted"]["sent_bytes"] for burst in port["bursts"]]
    assert sent == known["bytes"].to_list()


def test_lanz_tells_what_is_above_its_threshold_in_segments(truth: pl.DataFrame) -> None:
    analysis = fanin.analyze(TRACES / "lanz.csv", rate="10Gbps", above="120KB", columns=LANZ)
    known = _bursts(truth).filter(pl.col("peak") > 256 * 480)
    found = analysis.bursts.sort("start_ps")
    assert known.height == 3
    assert found.height == 3
    # Rounded up to whole segments.
    above = found["peak_bytes"] - known["peak"].cast(pl.UInt64)
    assert all(0 <= more < 480 for more in above.to_list())
    assert found["dropped_packets"].to_list() == known["drops"].to_list()
    assert all(burst["direct"] == [] and burst["flows"] == 0 for burst in analysis.document["ports"][0]["bursts"])
    with pytest.raises(fanin.TraceError, match="counts segments, and the table does not say how large they are"):
        fanin.analyze(TRACES / "lanz.csv", rate="10Gbps")


def test_sflow_tells_drops_and_whose_they_were(truth: pl.DataFrame) -> None:
    analysis = fanin.analyze(TRACES / "sflow.pcap", share=0.05)
    port = analysis.document["ports"][0]
    assert port["port"] == "10.7.0.1 if 25"
    assert port["rate_bps"] == 10_000_000_000
    lost = truth.filter(pl.col("dropped"))
    assert port["dropped"] == lost.height == 39
    bursts = [burst for burst in port["bursts"] if "drops" in burst["counted"]["shown_by"]]
    named = {culprit["name"] for burst in bursts for culprit in burst["indirect"]}
    flows = {f"10.7.0.{flow % 24 + 1}:{40_000 + flow} > 10.7.0.25:80 tcp" for flow in lost["flow"].unique()}
    assert named & flows
    assert any("39 drops that agents told: no buffer space (259)" in note for note in analysis.notes)


def test_counters_each_minute_are_load_and_what_is_unknown_is_said() -> None:
    columns = "time=time,port=ifName,bytes=ifHCOutOctets:total(64),drops=ifOutDiscards:total(32),speed=ifHighSpeed:Mbps"
    analysis = fanin.analyze(TRACES / "minutes.csv", columns=columns, by="rate")
    port = analysis.document["ports"][0]
    minute = 60_000_000_000_000
    unknown = {row["state"]: (row["intervals"], row["ps"]) for row in port["counted"]["unknown"]}
    assert unknown == {"reset": (1, minute), "gap": (1, 6 * minute)}
    assert port["counted"]["known_ps"] == (119 - 7) * minute
    assert any("intervals of 60 s show load, not microbursts" in note for note in port["notes"])
    # A minute of drops is a burst, at whatever load; and the busiest ones are above a half of the line.
    assert all(burst["counted"]["shown_by"] for burst in port["bursts"])
    assert {"drops", "rate"} == {sign for burst in port["bursts"] for sign in burst["counted"]["shown_by"]}
