"""Memory of a pair of captures: bounded, whatever their length, and without room for a file in TMPDIR."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

FRAME = 116
"""Bytes of a record and the 100 B that it keeps of its frame."""
KEPT = 1 << 20
"""Rows of a side that stay in memory (`crates/analysis/src/pair/rows.rs`)."""


def pair(folder: Path, packets: int, *, shuffled: bool) -> list[str]:
    """Write frames of 64 flows before and behind a port that drops every hundredth; the first one before anything leaves."""
    rng = np.random.default_rng(1)
    number = np.arange(packets)
    came = np.cumsum(rng.integers(1_230, 2_000, packets))
    flow = rng.integers(0, 64, packets)
    paths = []
    for name, late, kept in (("before", 0, number), ("behind", 4_000, number[number % 100 > 0])):
        order = np.argsort(kept + rng.integers(0, 3_000, len(kept))) if shuffled else np.arange(len(kept))
        paths.append(str(folder / f"{name}.pcap"))
        with Path(paths[-1]).open("wb") as file:
            file.write(np.array([0xA1B23C4D, 0x00040002, 0, 0, 100, 1], "<u4").tobytes())
            for at in range(0, len(kept), 1 << 16):
                one = kept[order[at : at + (1 << 16)]]
                rows = np.zeros((len(one), FRAME), np.uint8)
                time = came[one] + late
                words = np.stack([time // 10**9 + 1_000, time % 10**9, time * 0 + 100, time * 0 + 1_514], axis=1)
                rows[:, :16] = words.astype("<u4").view(np.uint8)
                rows[:, 28:34] = [8, 0, 0x45, 0, 5, 220]
                rows[:, 34:36] = (1 + (one >> 6) % 65_535).astype(">u2")[:, None].view(np.uint8)
                rows[:, 36:40] = [0x40, 0, 64, 6]
                rows[:, 42:50] = [10, 0, 0, 0, 10, 0, 0, 200]
                rows[:, 45] = rows[:, 51] = flow[one]
                rows[:, 50:54] = rows[:, 50:54] | np.array([4, 0, 0, 80], np.uint8)
                rows[:, 54:58] = ((one * 1_448) & 0xFFFFFFFF).astype(">u4")[:, None].view(np.uint8)
                rows[:, 62:64] = [0x80, 0x10]
                file.write(rows.tobytes())
    return paths


def analysed(paths: list[str], *more: str, temporary: Path) -> tuple[dict[str, object], int]:
    """Return the report by the command line, and its largest memory [KiB]."""
    text = f"""import json, sys, fanin
found = fanin.analyze({paths[0]!r}, behind={paths[1]!r}, rate="10Gbps", sort={"--sort" in more})
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
document = found.document
print(json.dumps([[document["pair"], document["plausibility"], document["ports"]], int(peak)]))"""
    environment = {**os.environ, "TMPDIR": str(temporary)}
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, env=environment)
    report, peak = json.loads(done.stdout)
    return report, peak


def test_memory_is_bounded_and_a_file_is_not_needed(tmp_path: Path) -> None:
    """Of more packets than stay in memory: rows in a file, and the captures read again where there is no room for one."""
    small = tmp_path / "small"
    small.mkdir()
    _, least = analysed(pair(small, 20_000, shuffled=False), temporary=tmp_path)
    paths = pair(tmp_path, KEPT + 200_000, shuffled=False)
    report, peak = analysed(paths, temporary=tmp_path)
    assert report[0]["dropped"] == (KEPT + 200_000 - 1) // 100  # type: ignore[index]
    assert 28_000 < peak - least < 70_000, "rows of 16 B of 2^20 packets a side, and packets in flight"
    assert analysed(paths, temporary=tmp_path / "missing")[0] == report


def test_sorting_a_pair_is_bounded(tmp_path: Path) -> None:
    """Of shuffled captures everything is as in order, in as much memory and what runs take."""
    straight, _ = analysed(pair(tmp_path, 300_000, shuffled=False), temporary=tmp_path)
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    report, peak = analysed(pair(mixed, 300_000, shuffled=True), "--sort", temporary=tmp_path)
    assert report[0]["dropped"] == straight[0]["dropped"] == 2_999  # type: ignore[index]
    assert report[2][0]["peak_bytes"] == straight[2][0]["peak_bytes"]  # type: ignore[index]
    assert peak < 130_000, f"{peak} KiB"
