"""Short forms of HPCC's and PowerTCP's figures: each number is within its bounds, or off for the reason that is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from fanin import reproduce
from fanin.reproduce import _in_band

# What is outside its bounds, and is explained: if one of these is as the paper says, its note is out of date.
OFF: dict[str, set[str]] = {
    "hpcc/fig9": {"HPCC: long flow 2 to 12 RTTs after the short one"},
    "powertcp/incast": {
        "PowerTCP: least throughput of 10 us then",
        "HPCC: least throughput over PowerTCP's",
    },
}


@pytest.mark.usefixtures("kept_workers")
@pytest.mark.parametrize("id", sorted(OFF))
def test_short_form(id: str, tmp_path: Path) -> None:
    made = reproduce.run(id, short=True, out=tmp_path, progress=False)
    assert {row.name for row in made.found if not row.ok} == OFF[id], made.rows
    assert made.ok
    assert all(not frame.is_empty() for frame in made.data.values())
    for name in made.plots:
        assert (tmp_path / f"{name}.svg").is_file()


def test_bins_add_up_what_was_sent() -> None:
    port = {"time_ps": [1_000_000, 10_000_000, 11_000_000], "tx_bytes": [1_090, 2_180, 1_090], "queue_max_bytes": [5, 3, 9]}
    binned = _in_band.table({"port": port}, 25e9)
    assert binned["us"].to_list() == [0, 10]
    assert binned["throughput"].to_list() == pytest.approx([3 * 1_110 / 31_250, 1_110 / 31_250])
    assert binned["queue_kb"].to_list() == pytest.approx([0.005, 0.009])
