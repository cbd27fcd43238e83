"""Two captures of one port, and one before it: a real kernel's packets and simulated ones, against calculations of their own."""

from __future__ import annotations

import gzip
import json
import struct
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from typer.testing import CliRunner

import fanin
from fanin.analysis import tables
from fanin.cli import app

CAPTURES = Path(__file__).parents[2] / "examples" / "captures"
HTB: dict[str, Any] = {"rate": "100Mbps", "overhead": "0B", "fcs": False}
"""The port of the testbed: Linux counts frames without check sequence, and HTB lets 1514 B of them through for 1514 B."""
BUFFER = {"drops": 128_000, "incast": 512_000}
DROPS = {"drops": 182, "incast": 345}
"""By the kernel's own counter, examples/captures/facts.txt."""

Frame = tuple[int, int, bytes]
"""Time [ns], bytes on the wire, what was captured."""


def frames(path: Path) -> list[Frame]:
    """Read a pcap with stamps of nanoseconds."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    assert data[:4] == bytes.fromhex("4d3cb2a1")
    found, at = [], 24
    while at < len(data):
        s, ns, kept, length = struct.unpack_from("<IIII", data, at)
        found.append((s * 10**9 + ns, length, data[at + 16 : at + 16 + kept]))
        at += 16 + kept
    return found


def write(path: Path, found: list[Frame], link: int = 1) -> Path:
    head = struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, link)
    rows = (struct.pack("<IIII", ns // 10**9, ns % 10**9, len(data), length) + data for ns, length, data in found)
    path.write_bytes(head + b"".join(rows))
    return path


def identity(data: bytes) -> bytes:
    """Addresses, ports, IP id, sequence number, length: of IPv4 and TCP without options."""
    return data[16:20] + data[26:34] + data[34:42]


def queue_of(came: np.ndarray, left: np.ndarray, size: np.ndarray) -> np.ndarray:
    """The bytes of all packets that came before each and had not left; `left` is -1 where a packet never did."""
    came_out = left >= 0
    order = np.argsort(left[came_out], kind="stable")
    out, gone = left[came_out][order], np.concatenate([[0], np.cumsum(size[came_out][order])])
    into = np.concatenate([[0], np.cumsum(np.where(came_out, size, 0))[:-1]])
    queue: np.ndarray = np.maximum(into - gone[np.searchsorted(out, came, side="right")], 0)
    return queue


def lindley(came: np.ndarray, size: np.ndarray, rate: float, buffer: int) -> tuple[np.ndarray, np.ndarray]:
    """Queue and drops of a drop-tail port, step by step."""
    waiting: deque[tuple[float, int]] = deque()
    free, held = 0.0, 0
    queue, dropped = np.zeros(len(came), np.int64), np.zeros(len(came), bool)
    for i, (now, bytes_) in enumerate(zip((came - came[0]).tolist(), size.tolist(), strict=True)):
        while waiting and waiting[0][0] <= now:
            held -= waiting.popleft()[1]
        queue[i] = held
        if held + bytes_ > buffer and free > now:
            dropped[i] = True
            continue
        start = max(free, now)
        free = start + bytes_ * 8e9 / rate
        if start > now:
            waiting.append((start, bytes_))
            held += bytes_
    return queue, dropped


class Kept:
    """A pair of captures, and what numpy makes of it."""

    def __init__(self, name: str) -> None:
        self.before, self.behind = CAPTURES / f"{name}-before.pcap.gz", CAPTURES / f"{name}-behind.pcap.gz"
        before, behind = frames(self.before), frames(self.behind)
        out = {identity(data): ns for ns, _, data in behind}
        assert len(out) == len(behind) == len(set(out) & {identity(data) for *_, data in before})
        self.came = np.array([ns for ns, *_ in before])
        self.size = np.array([length for _, length, _ in before])
        left = np.array([out.get(identity(data), -1) for *_, data in before])
        self.least = int((left - self.came)[left >= 0].min())
        self.left = np.where(left >= 0, left - self.least, -1)
        self.queue = queue_of(self.came, self.left, self.size)
        # Same-time arrivals aside: whoever leaves as it comes does not count itself out.
        self.drops = left < 0


@pytest.fixture(scope="module", params=["drops", "incast"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def kept(name: str) -> Kept:
    return Kept(name)


@pytest.fixture(scope="module")
def found(kept: Kept, name: str) -> fanin.Analysis:
    return fanin.analyze(kept.before, behind=kept.behind, buffer=f"{BUFFER[name]}B", **HTB)


class TestKernel:
    """Captures of a real kernel, HTB and bfifo."""

    def test_queue_wait_and_fate_of_each_packet(self, kept: Kept, found: fanin.Analysis, name: str) -> None:
        records = found.records
        assert records["time_ps"].to_numpy().tolist() == ((kept.came - found.origin_s * 10**9) * 1000).tolist()
        assert records["dropped"].to_numpy().tolist() == kept.drops.tolist()
        assert records["frame_bytes"].to_numpy().tolist() == kept.size.tolist()
        assert records["queue_bytes"].to_numpy().tolist() == kept.queue.tolist()
        waits = records.filter(~pl.col("dropped"))["wait_ps"].to_numpy()
        assert waits.tolist() == ((kept.left - kept.came)[~kept.drops] * 1000).tolist()
        assert not records["estimated"].any()
        port = found.port()
        assert port["dropped"] == DROPS[name]
        assert port["peak_bytes"] == kept.queue.max()
        assert port["jumps"] == 0

    def test_waiting_times_have_the_percentiles_of_all(self, kept: Kept, found: fanin.Analysis) -> None:
        waits = np.sort((kept.left - kept.came)[~kept.drops] * 1000)
        row = found.waiting.row(0, named=True)
        assert row["packets"] == len(waits)
        assert row["max_ps"] == waits[-1]
        assert row["mean_ps"] == pytest.approx(waits.mean())
        for key, share in (("p50_ps", 0.5), ("p95_ps", 0.95), ("p99_ps", 0.99)):
            assert row[key] == pytest.approx(waits[int(np.ceil(share * len(waits))) - 1], rel=0.016)
        assert found.delays.height == len(waits)
        worst = found.waiting_flows.row(0, named=True)
        assert worst["max_ps"] == waits[-1]
        assert worst["name"] == found.delays.sort("wait_ps")["flow"][-1]

    def test_how_far_it_can_be_trusted(self, kept: Kept, found: fanin.Analysis, name: str) -> None:
        pair = found.pair
        assert pair is not None
        assert (pair["matched_by"], pair["matched"], pair["only_behind"]) == ("flow", int((~kept.drops).sum()), 0)
        assert pair["dropped"] == DROPS[name]
        assert found.plausibility == {
            "trust": "good",
            "words": "no check of the trace casts doubt on this result",
            "findings": [],
        }
        assert pair["share_behind"] == 1
        assert pair["clock"] == {"offset_ns": kept.least, "drift_ppm": None, "behind_at_end": False} | {
            "idle_parts": pair["clock"]["idle_parts"]
        }
        assert pair["busy_bps"] == pytest.approx(1e8, rel=0.002)
        assert pair["queue_error_bytes"] < 1514
        assert all(count == 0 for count in pair["left_out"].values())
        assert any("never came out" in note for note in found.notes)
        assert any("the port sent 100.0" in note for note in found.notes)

    def test_an_estimate_from_arrivals_alone_and_its_error(self, kept: Kept, found: fanin.Analysis, name: str) -> None:
        queue, dropped = lindley(kept.came, kept.size, 1e8, BUFFER[name])
        alone = fanin.analyze(kept.before, buffer=f"{BUFFER[name]}B", **HTB)
        port = alone.port()
        assert port["estimate"]["used"]
        assert alone.records["estimated"].all()
        assert alone.records["queue_bytes"].to_numpy().tolist() == queue.tolist()
        assert alone.records["dropped"].to_numpy().tolist() == dropped.tolist()
        assert (port["peak_bytes"], port["dropped"]) == (queue.max(), dropped.sum())
        assert any("are an estimate" in note for note in port["notes"])
        assert "≈" in tables.port_rows(alone.document)[1][0][4]
        # What a second capture shows of its error: 1 KB, and a drop in a hundred.
        estimate = found.port()["estimate"]
        difference = queue - kept.queue
        assert not estimate["used"]
        assert estimate["error"]["rms_bytes"] == pytest.approx(np.sqrt((difference**2).mean()))
        assert estimate["error"]["mean_bytes"] == pytest.approx(difference.mean())
        assert estimate["error"]["largest_bytes"] == abs(difference).max()
        assert estimate["error"]["dropped_in_both"] == (dropped & kept.drops).sum()
        assert estimate["error"]["rms_bytes"] < 1100
        assert abs(estimate["error"]["estimated_dropped"] - DROPS[name]) <= 2

    def test_one_capture_of_all_interfaces(self, kept: Kept, found: fanin.Analysis, tmp_path: Path) -> None:
        # `tcpdump -i any`: a cooked header, and the same packets at a third interface.
        def cooked(path: Path, number: int, kind: int) -> list[Frame]:
            head = struct.pack(">HHIHBB8s", 0x0800, 0, number, 1, kind, 6, bytes(8))
            return [(ns, length + 6, head + data[14:]) for ns, length, data in frames(path)]

        inner = [
            (ns + 300, length, data[:4] + struct.pack(">I", 5) + data[8:10] + b"\4" + data[11:])
            for ns, length, data in cooked(kept.before, 4, 3)
        ]
        all_ = sorted([*cooked(kept.before, 4, 3), *inner, *cooked(kept.behind, 6, 4)], key=lambda frame: frame[0])
        path = write(tmp_path / "any.pcap", all_, 276)
        again = fanin.analyze(path, before_interface="4", behind_interface="6", **HTB)
        assert_frame_equal(again.records.drop("port"), found.records.drop("port"))
        assert again.pair is not None
        assert again.pair["left_out"]["other_place"] > 0
        with pytest.raises(fanin.TraceError, match="no packet crosses from interface"):
            fanin.analyze(path, before_interface="4", behind_interface="9", **HTB)

    def test_records_are_written_for_others(self, found: fanin.Analysis, tmp_path: Path) -> None:
        for suffix, read in (
            (".parquet", pl.read_parquet),
            (".csv", pl.read_csv),
            (".jsonl", pl.read_ndjson),
            (".arrow", pl.read_ipc),
        ):
            path = found.write_records(tmp_path / f"r{suffix}")
            assert read(path)["queue_bytes"].to_list() == found.records["queue_bytes"].to_list()
        assert sorted(file.name for file in tmp_path.iterdir()) == ["r.arrow", "r.csv", "r.jsonl", "r.parquet"]
        again = fanin.analyze(tmp_path / "r.parquet", rate="100Mbps", overhead="0B")
        assert (again.port()["peak_bytes"], again.port()["dropped"]) == (found.port()["peak_bytes"], found.port()["dropped"])
        page = (CAPTURES.parents[1] / "docs" / "analyze.md").read_text(encoding="utf-8")
        assert ", ".join(f"`{column}`" for column in found.records.columns) in page
        with pytest.raises(ValueError, match=r"r\.txt: ends in none of \.parquet, \.csv"):
            found.write_records(tmp_path / "r.txt")


def test_the_command_line(tmp_path: Path) -> None:
    before, behind = (str(CAPTURES / f"drops-{side}.pcap.gz") for side in ("before", "behind"))
    port = ["--rate", "100Mbps", "--overhead", "0B", "--no-fcs"]
    done = CliRunner().invoke(app, ["analyze", before, "--behind", behind, *port, "--records", str(tmp_path / "r.csv")])
    assert done.exit_code == 0, done.stderr
    for words in ("Waiting times", "Flows that waited longest", "10.24 ms", str(tmp_path / "r.csv")):
        assert words in done.stdout
    assert "649 of 649 packets behind the port were found before it" in done.stderr
    assert pl.read_csv(tmp_path / "r.csv").height == 831
    page = tmp_path / "p.html"
    done = CliRunner().invoke(app, ["analyze", before, "--behind", behind, *port, "-o", str(page)])
    assert done.exit_code == 0, done.stderr
    for words in ("Waiting times", "Flows that waited longest", "10.24 ms"):
        assert words in page.read_text(encoding="utf-8")
    done = CliRunner().invoke(app, ["analyze", before, *port, "--buffer", "128KB", "-o", str(page)])
    assert done.exit_code == 0, done.stderr
    assert "≈ 183" in done.stdout
    assert "queue and drops are an estimate" in page.read_text(encoding="utf-8")
    whole = json.loads(CliRunner().invoke(app, ["analyze", before, *port, "--buffer", "84 packets", "--json"]).stdout)
    assert whole["settings"]["buffer"] == "84 packets"
    for wrong, words in (
        (["--buffer", "5"], "buffer: '5'"),
        (["--buffer", "128KB"], "needs the speed of the port"),
        (["--behind", before], "is given both as the capture before the port"),
        (["--behind-interface", "6"], "behind_interface: has no effect without a capture before the port"),
        (["--records", str(tmp_path / "r.xyz")], "ends in none of .parquet"),
    ):
        done = CliRunner().invoke(app, ["analyze", before, *wrong])
        assert done.exit_code == 2
        assert words in done.stderr


# -- simulated ports, whose queue is known -----------------------------------------------------------------------------

RATE, DELAY, LATENCY = 10_000_000_000, 5_000_000, 0
"""Of every link [bit/s, ps]; what the switch adds [ps]."""


def simulated(path: Path) -> list[tuple[bool, int, Frame]]:
    """Read a capture of ours: whether received, host, frame."""
    data, at, found = path.read_bytes(), 0, []
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == 6:
            interface, high, low, kept, whole = struct.unpack_from("<IIIII", data, at + 8)
            options = data[at + 28 + (kept + 3) // 4 * 4 : at + length - 4]
            flags = struct.unpack_from("<I", options, options.index(struct.pack("<HH", 2, 4)) + 4)[0]
            found.append((flags & 3 == 1, interface, (high << 32 | low, whole, data[at + 28 : at + 28 + kept])))
        at += length
    return found


@pytest.mark.parametrize("ip", ["v4", "v6"])
def test_a_simulated_port_has_the_queue_that_it_had(ip: str, tmp_path: Path) -> None:
    scenario = {
        "name": "pair",
        "seed": 3,
        "duration": "4ms",
        "topology": {"kind": "single_switch", "hosts": 25, "link": {"rate": "10Gbps", "delay": "5us"}},
        "framing": {"ip": ip},
        "switch": {"buffer": {"kind": "static", "per_port": "80KB"}, "marking": {"kind": "threshold", "k": "40 packets"}},
        "transport": {"kind": "tcp", "congestion_control": "dctcp", "initial_window": 3, "ack_every": 1},
        "traffic": [
            {
                "kind": "flows",
                "flows": [{"src": f"h{n}", "dst": "h24", "size": "7KB", "start": f"{60 * n}us"} for n in range(1, 12)],
            },
            {"kind": "incast", "receiver": "h24", "senders": ["h0..h23"], "size": "58KB", "start": "1ms", "jitter": "20us"},
        ],
        "telemetry": {"queues": ["*->h24"], "capture": {"hosts": ["*"], "snap": "100B"}},
    }
    result = fanin.run(scenario, tmp_path / "out", progress=False)
    all_ = simulated(result.path / "packets.pcapng")
    # What tcpdump at the switch would see of a sender's frame: its last bit, a link later. All to the receiver go through the port.
    receiver = 24
    address = slice(30, 34) if ip == "v4" else slice(38, 54)
    to = next(data[address] for received, host, (_, _, data) in all_ if received and host == receiver)
    shift = {}
    before = []
    for received, host, (ns, length, data) in all_:
        if not received and host != receiver and data[address] == to:
            shift[length] = (max(length + 4, 64) + 20) * 8 * 100 // 1000
            before.append((ns + shift[length] + DELAY // 1000 + LATENCY, length, data))
    before.sort(key=lambda frame: frame[0])
    behind = [frame for received, host, frame in all_ if received and host == receiver]
    truth = result.queues
    assert len(before) >= truth.height > 500
    found = fanin.analyze(write(tmp_path / "a.pcap", before), behind=write(tmp_path / "b.pcap", behind), rate="10Gbps")
    records = found.records.head(truth.height)
    pair = found.pair
    assert pair is not None
    assert pair["clock"]["behind_at_end"]
    assert found.plausibility["findings"] == []
    assert (pair["matched"], pair["only_behind"]) == (len(behind), 0)
    came, known_came = (table["time_ps"].to_numpy().astype(np.int64) for table in (records, truth))
    known = truth.head(int(np.searchsorted(known_came, came.max() + 1000, side="right")))
    assert records.height == known.height
    # The sender's stamp and the time on the wire are both rounded down.
    assert abs(came - known_came[: len(came)]).max() < 2000
    # Which of the packets of one moment came first, a capture cannot say.
    by_moment = (
        table.group_by(known["time_ps"], maintain_order=True).agg(pl.sum("dropped", "marked")) for table in (records, known)
    )
    assert_frame_equal(*by_moment)
    assert pair["overtaken"] == 0
    assert known["dropped"].to_numpy().sum() > 0
    assert known["marked"].to_numpy().sum() > 20
    queue, known_queue = (table["queue_bytes"].to_numpy().astype(np.int64) for table in (records, known))
    # Stamps are of nanoseconds: of what leaves in the nanosecond of an arrival, one frame may count or not.
    assert abs(queue - known_queue).max() <= 1518
    assert (queue == known_queue).mean() > 0.98
