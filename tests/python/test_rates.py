"""Rates and messages of followed flows: tables, figure, page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fanin
from fanin.figures import rates


def run(folder: Path, transport: dict[str, Any], senders: int = 4) -> fanin.Result:
    scenario = fanin.Scenario(
        {
            "topology": {"kind": "single_switch", "hosts": senders + 1, "link": {"rate": "100Gbps", "delay": "1us"}},
            "switch": {
                "buffer": "unlimited",
                "marking": {"kind": "threshold", "k": "20KB"},
                "mechanisms": {"pfc": {"memory": "12MB", "classes": [0]}},
            },
            "transport": transport,
            "traffic": [{"kind": "incast", "receiver": f"h{senders}", "size": "1MB"}],
            "telemetry": {"sample": "off", "hosts": ["*"]},
        }
    )
    return fanin.run(scenario, folder, progress=False)


@pytest.fixture(scope="module")
def dcqcn(tmp_path_factory: pytest.TempPathFactory) -> fanin.Result:
    transport = {"kind": "roce", "congestion_control": "dcqcn", "message": "256KiB"}
    return run(tmp_path_factory.mktemp("rates") / "out", transport)


def test_the_figure_has_every_change_of_a_rate(dcqcn: fanin.Result) -> None:
    figure = dcqcn.plot_rates()
    assert [trace.name for trace in figure.data] == [f"{n}, h{n} to h4" for n in range(4)]
    for number, trace in enumerate(figure.data):
        rows = dcqcn.hosts.filter(pl.col("flow") == number)
        changed = rows.filter(pl.col("rate_bps").rle_id() != pl.col("rate_bps").rle_id().shift(1, fill_value=2**31))
        assert len(trace.x) == changed.height + 1 > 10
        assert trace.y[0] == pytest.approx(100)
        assert list(trace.y[:-1]) == pytest.approx((changed["rate_bps"] / 1e9).to_list())
        assert trace.y[-1] == trace.y[-2]
    (one,) = dcqcn.plot_rates([2]).data
    assert one.name == "2, h2 to h4"


def test_of_too_many_changes_the_extremes_stay() -> None:
    rows = pl.DataFrame({"time_ps": range(10_000), "rate_bps": [100 + i % 7 + (500 if i == 4_321 else 0) for i in range(10_000)]})
    thin = rates.steps(rows, 100)
    assert thin.height <= 102
    assert thin["time_ps"].is_sorted()
    assert (thin["rate_bps"].min(), thin["rate_bps"].max()) == (100, 602)
    assert thin.row(0) == rows.row(0) and thin.row(-1) == rows.row(-1)
    assert rates.steps(rows, 20_000).height == 10_001


def test_what_windows_limit_has_no_rate(tmp_path: Path, dcqcn: fanin.Result) -> None:
    tcp = run(tmp_path / "out", {"kind": "tcp"}, 2)
    assert tcp.hosts["rate_bps"].null_count() == tcp.hosts.height > 0
    with pytest.raises(ValueError, match="followed no flow that a rate limits"):
        tcp.plot_rates()
    with pytest.raises(ValueError, match="flow '1' was not followed, or nothing but windows"):
        tcp.plot_rates([1])
    assert rates._without([1, "x"], range(4)) == (
        "flows '1', 'x' were not followed, or nothing but windows limits them: they have no rate; accepted: 0, 1, 2, 3"
    )
    assert rates._without([1], range(20, 31)).endswith("accepted: 20, 21, 22, 23, 24, 25, 26, 27 and 3 more")
    with pytest.raises(ValueError, match="flow '9': there is none"):
        dcqcn.plot_rates([9])
    assert '"rates":' not in tcp.report(tmp_path / "page.html").read_text(encoding="utf-8")


def test_the_page_draws_them(tmp_path: Path, dcqcn: fanin.Result) -> None:
    page = dcqcn.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Rates of followed flows" in page


def test_messages_add_up_to_their_flows(dcqcn: fanin.Result) -> None:
    summed = dcqcn.messages.group_by("flow").agg(
        pl.col("size_bytes").sum(), pl.col("delivered_ps").max(), pl.col("acked_ps").max(), pl.col("packets").sum(), pl.len()
    )
    for row in summed.join(dcqcn.flows, on="flow", suffix="_of_flow").iter_rows(named=True):
        assert row["len"] == 4  # 262,144 B three times, and what is left
        assert row["size_bytes"] == row["size_bytes_of_flow"]
        assert (row["delivered_ps"], row["acked_ps"]) == (row["finish_ps"], row["acked_ps_of_flow"])
        assert row["packets"] == row["packets_sent"]


def test_messages_of_all_flows_without_their_packets(tmp_path: Path, dcqcn: fanin.Result) -> None:
    asked = fanin.Scenario(dcqcn.scenario).replace({"telemetry.hosts": None, "telemetry.messages": ["*"]})
    result = fanin.run(asked, tmp_path / "out", progress=False)
    assert result.messages.equals(dcqcn.messages)
    assert result.messages.height == 16
    assert not {path.stem for path in result.path.glob("*.parquet")} & {"hosts", "segments", "hops"}
    assert result.manifest["fingerprint"] == dcqcn.manifest["fingerprint"]
    with pytest.raises(ValueError, match=r"this run followed no flow; set telemetry.hosts"):
        result.explain(0)
