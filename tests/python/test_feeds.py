"""What a switch gives an operator, held against a simulated port of which everything is known."""

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import fanin
from fanin._core import trace_formats
from fanin.analysis.answer import answer
from fanin.analysis.tables import all_drops, burst_rows, port_rows
from fanin.cli import app

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


def _leaf_by_leaf(path: Path, offsets_us: tuple[int, int, int]) -> Path:
    """Write the counters as `gnmic subscribe --format json` prints them where a device sends each leaf in its own message."""
    prefix = "interfaces/interface[name=Ethernet1/25]/state/counters"
    names = ("out-octets", "out-discards", "max-queue-len")
    leaves = zip(names, ("tx_bytes", "tx_dropped", "watermark_bytes"), offsets_us, strict=True)
    messages = [
        {
            "source": "leaf1:57400",
            "subscription-name": "ports",
            "timestamp": 1_795_219_200_000_000_000 + row["time_ms"] * 1_000_000 + late * 1_000,
            "prefix": prefix,
            "updates": [{"Path": leaf, "values": {leaf: str(row[column])}}],
        }
        for leaf, column, late in leaves
        for row in pl.read_csv(TRACES / "counters.csv").iter_rows(named=True)
    ]
    messages.sort(key=lambda message: message["timestamp"])
    path.write_text("\n".join(json.dumps(message, indent=2) for message in messages))
    return path


@pytest.mark.parametrize("offsets_us", [(0, 37, 81), (0, -37, 81), (0, 0, 0), (300, 0, -150)])
def test_leaves_that_come_one_by_one_tell_the_bursts_of_the_port(
    truth: pl.DataFrame, tmp_path: Path, offsets_us: tuple[int, int, int]
) -> None:
    analysis = fanin.analyze(_leaf_by_leaf(tmp_path / "leaves.json", offsets_us), rate="10Gbps", above="50KB")
    known = _bursts(truth)
    found = analysis.bursts.sort("start_ps")
    assert found["peak_bytes"].to_list() == known["peak"].to_list()
    assert found["dropped_packets"].to_list() == known["drops"].to_list()
    port = analysis.document["ports"][0]
    assert [burst["counted"]["sent_bytes"] for burst in port["bursts"]] == known["bytes"].to_list()
    # A largest queue that stays is none of the interval, but one that stays 0 is: unknown is what is before the first bytes.
    unknown = sum(unknown["ps"] for unknown in port["counted"]["unknown"])
    assert 0 <= unknown <= (max(offsets_us) - min(offsets_us)) * 1_000_000


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


def test_int_tells_where_reported_packets_found_the_queue_and_all_drops(truth: pl.DataFrame) -> None:
    columns = "queue=queue-occupancy:cells(208B)"
    analysis = fanin.analyze(TRACES / "int.pcap", rate="10Gbps", above="120KB", columns=columns)
    port = analysis.document["ports"][0]
    assert port["port"] == "node 7 port 25 queue 1"
    known = _bursts(truth).filter(pl.col("peak") > 120_000)
    assert known.height == 3
    found = [burst for burst in port["bursts"] if "queue" in burst["counted"]["shown_by"]]
    assert port["dropped"] == known["drops"].sum() == 39
    # A lower bound: one packet of four was reported, in whole cells, rounded up.
    second = 1_000 * MS
    peaks = {burst["start_ps"] % second // (10 * MS): burst["peak_bytes"] for burst in found}
    for row in known.iter_rows(named=True):
        assert row["peak"] - 8 * 1518 <= peaks[int(row["burst"])] < row["peak"] + 208
    assert all(burst["counted"]["peak_at_least"] for burst in found)
    with pytest.raises(fanin.TraceError, match="counts bytes, cells or packets, and a report does not say which"):
        fanin.analyze(TRACES / "int.pcap", rate="10Gbps")


def test_flow_records_tell_the_bytes_of_each_flow_and_nothing_of_queues(truth: pl.DataFrame) -> None:
    analysis = fanin.analyze(TRACES / "flows.pcap", rate="10Gbps", share=0.0001, top=100)
    port = analysis.document["ports"][0]
    assert port["port"] == "10.7.0.1 if 25"
    assert port["peak_bytes"] is None
    burst = port["bursts"][0]
    kept = truth.filter(~pl.col("dropped")).group_by("flow").agg(pl.col("frame_bytes").sum())
    known = {f"10.7.0.{flow % 24 + 1}:{40_000 + flow} > 10.7.0.25:80 tcp": size for flow, size in kept.iter_rows()}
    assert {culprit["name"]: culprit["bytes"] for culprit in burst["indirect"]} == known
    assert burst["counted"]["sent_bytes"] == sum(known.values())


def test_records_of_nxos_have_the_peaks_and_times_of_the_bursts(truth: pl.DataFrame) -> None:
    analysis = fanin.analyze(TRACES / "bursts.json", rate="10Gbps", above="120KB")
    known = _bursts(truth).filter(pl.col("peak") > 120_000)
    found = analysis.bursts.sort("start_ps")
    assert found["peak_bytes"].to_list() == known["peak"].to_list()
    packets = truth.filter(pl.col("queue_bytes") > 120_000).group_by("burst").agg(first=pl.col("time_ps").min()).sort("burst")
    # Times in whole microseconds.
    assert all(0 <= first - start < 1_000_000 for first, start in zip(packets["first"], found["start_ps"], strict=True))
    assert analysis.document["ports"][0]["dropped"] is None


def test_otlp_tells_what_the_table_of_counters_tells() -> None:
    table = fanin.analyze(TRACES / "counters.csv", rate="10Gbps", above="50KB", columns=COUNTERS)
    gauges = fanin.analyze(TRACES / "otlp.json", rate="10Gbps", above="50KB")
    keys = ["peak_bytes", "dropped_packets", "duration_ps"]
    # The watermark of the first look may be of any time before it; that of one that stays is unknown.
    assert gauges.bursts.sort("start_ps").select(keys).equals(table.bursts.sort("start_ps").select(keys))


def test_millisampler_tells_the_bytes_of_each_burst_and_no_queue(truth: pl.DataFrame) -> None:
    analysis = fanin.analyze(TRACES / "millisampler.json", rate="10Gbps", share=0.1)
    bursts = sorted(analysis.document["ports"][0]["bursts"], key=lambda burst: burst["start_ps"])
    assert [burst["counted"]["sent_bytes"] for burst in bursts] == _bursts(truth)["bytes"].to_list()
    assert analysis.bursts["peak_bytes"].to_list() == [None] * 4


def test_bst_tells_the_largest_occupancy_in_cells(truth: pl.DataFrame) -> None:
    columns = "watermark=buffer-count:cells(208B)"
    port = fanin.analyze(TRACES / "bst.json", rate="10Gbps", above="50KB", columns=columns).document["ports"][0]
    assert port["port"] == "asic 1 port 25 queue 0"
    assert port["bursts_found"] == 1
    assert 0 <= port["peak_bytes"] - truth["queue_bytes"].max() < 208


def test_a_port_of_which_nothing_is_known_is_no_port_without_bursts(tmp_path: Path) -> None:
    rows = "".join(f"{second},swp1,{second * 1_250_000_000}\n" for second in range(5))
    path = tmp_path / "counters.csv"
    path.write_text(f"time_s,port,tx_bytes\n{rows}")
    analysis = fanin.analyze(path, rate="1Gbps")
    assert port_rows(analysis.document)[1][0][5:7] == ["unknown", "–"]
    told = answer(analysis.document, None).replace("\0", "")
    assert told.startswith("Whether there was a burst is unknown at 1 port. Trust in this: limited")


def test_the_figure_of_counters_without_a_queue_has_the_loads_that_are_known(tmp_path: Path) -> None:
    def figure(busy: int) -> Any:
        total, rows = 0, ""
        for second in range(30):
            total += 100_000_000 if second in (10, 11, 20) and busy else 1_000_000
            rows += f"{second},swp1,{total}\n"
        path = tmp_path / "counters.csv"
        path.write_text(f"time_s,port,tx_bytes\n{rows}")
        return fanin.analyze(path, rate="1Gbps").plot()

    found = figure(1)
    assert found.layout.yaxis.title.text == "Load [Mb/s]"
    assert list(found.data[0].x) == [9, 11, None]
    assert list(found.data[0].y) == [800, 800, None]
    assert [trace.name for trace in found.data] == ["busiest interval of a burst", "50% of 1 Gb/s"]
    (said,) = figure(0).layout.annotations
    assert said.text.startswith("no burst: the busiest interval (from 0 ns on) had 1 MB")


def test_drops_of_packets_and_of_counters_are_not_summed() -> None:
    def port(name: str, dropped: int | None, *, at_least: bool = False) -> dict[str, Any]:
        return {"port": name, "dropped": dropped, "dropped_at_least": at_least}

    assert all_drops([port("e", 36), port("e (counters)", 40), port("f", 2)]) == (42, True)
    assert all_drops([port("e", 0), port("e (counters)", 40), port("f", None)]) == (40, False)
    assert all_drops([port("e", 3), port("f", 2, at_least=True)]) == (5, True)
    assert all_drops([port("e", None)]) is None


def test_drops_are_a_lower_bound_where_a_counter_began_anew(tmp_path: Path) -> None:
    rows = "".join(f"{second},swp1,{second * 1_000},{drops}\n" for second, drops in enumerate((90, 90, 7, 7)))
    path = tmp_path / "counters.csv"
    path.write_text(f"time_s,port,tx_bytes,drops\n{rows}")
    document = fanin.analyze(path, rate="1Gbps", columns="time=time_s:s,port=port,bytes=tx_bytes:total,drops=drops:total").document
    port = document["ports"][0]
    assert (port["dropped"], port["dropped_at_least"]) == (7, True)
    assert port_rows(document)[1][0][7] == "≥ 7"
    port["counted"]["unknown"] = []
    assert "at least 7 packets were dropped" in answer(document, None).replace("\0", "")
    # The same of a queue whose drops tc counts, with a burst meanwhile.
    looks = "".join(
        f'{second}\n[{{"kind":"bfifo","handle":"2:","bytes":0,"drops":{drops},"backlog":{queue}}}]\n'
        for second, (drops, queue) in enumerate(((90, 0), (92, 50_000), (3, 50_000), (3, 0)))
    )
    (tmp_path / "q.json").write_text(looks)
    document = fanin.analyze(tmp_path / "q.json", rate="1Gbps", above="20KB").document
    assert [port_rows(document)[1][0][7], burst_rows(document["ports"][0], 1)[1][0][7]] == ["≥ 5", "≥ 5"]
    assert "at least 5 packets were dropped" in answer(document, None).replace("\0", "")


def test_help_names_every_format() -> None:
    output = CliRunner().invoke(app, ["analyze", "--help"], env={"COLUMNS": "200"}).output
    helped = " ".join(output.replace("│", " ").split())
    assert all(name in helped for name in trace_formats())
