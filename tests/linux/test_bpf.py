"""BPF programs of dataplane/linux in the running kernel: all vectors without a network, then a port in a namespace."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import bpf
import cost
import fanin
from bed import Bed, LackingError, Setting, command, unshare, within
from bed import lacking as bed_lacking
from fanin.conformance import conform
from test_pair_kernel import tap

LIMIT = 60_000
# So slow that a feeder which waits for the CPU is still quicker: 3,000 packets take half a second.
RATE = 40_000_000


@pytest.fixture(scope="module")
def binary() -> Path:
    reason = bpf.lacking()
    if reason:
        pytest.skip(f"BPF programs in the running kernel: this machine lacks {reason}")
    return bpf.build()


@pytest.mark.parametrize(
    ("params", "rows"),
    [
        ({}, 18_280),
        ({"at": "dequeue"}, 36_560),
        ({"registers": {"after_mark": "reset", "credit": "0B"}}, 18_280),
        ({"registers": {"clock": "2.5ns", "credit": "65535B"}, "k": "3KB", "seed": 7}, 15_000),
    ],
    ids=["default", "dequeue", "reset", "clock"],
)
def test_s_ecn_gives_every_row_of_the_vectors(binary: Path, params: dict[str, object], rows: int) -> None:
    """Compiled by the kernel, packets of IPv4 and IPv6 in turn; the target itself checks CE and checksum of what comes back."""
    found = conform("s-ecn", [str(binary), "conform", "s-ecn"], params)
    assert (found.ok, found.failure, found.first) == (True, None, None)
    assert found.answered >= rows
    assert set(found.columns) == {*found.names("output"), *found.names("register")}


@contextmanager
def port(rate: int = RATE, limit: int = LIMIT) -> Iterator[cost.Port]:
    reason = bed_lacking()
    if reason:
        pytest.skip(f"BPF programs at a port: this machine lacks {reason}")
    with cost.port(rate, limit) as at:
        yield at


def table_of(path: Path) -> pl.DataFrame:
    flags = ("syn", "marked", "dropped", "at_head")
    return pl.read_csv(path).with_columns(pl.col(name).cast(pl.Boolean) for name in flags)


def ipv4(ecn: int, total: int, number: int, protocol: int) -> bytes:
    """A header with its checksum, which bridges may look at."""
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, ecn, total, number & 0xFFFF, 0, 64, protocol, 0, b"\x0a\0\0\x01", b"\x0a\0\0\x02")
    added = sum(struct.unpack(">10H", ip))
    added = (added & 0xFFFF) + (added >> 16)
    return ip[:10] + struct.pack(">H", ~(added + (added >> 16)) & 0xFFFF) + ip[12:]


def frame(ecn: int, size: int, number: int) -> bytes:
    ip = ipv4(ecn, size - 14, number, 17)
    return bytes(12) + b"\x08\x00" + ip + struct.pack(">HHHH", 40_000 + number % 7, 5_000, size - 34, 0) + bytes(size - 42)


def feed(at: cost.Port, seed: int, packets: int = 3_000) -> list[tuple[int, int]]:
    """Bursts of frames of all sizes and codepoints into the port, some into an empty queue; (ECN, size) of each."""
    draw = random.Random(seed)
    sent, ready = [], []
    # All frames are there before the first is sent: a feeder that makes them one by one may be slower than the port.
    for number in range(packets):
        ecn, size = draw.choice((0, 1, 2, 2, 2, 3)), draw.choice((64, 576, 1514, 1514))
        sent.append((ecn, size))
        ready.append((frame(ecn, size, number), draw.random() < 0.02))
    with within(at.ns):
        raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        raw.bind(("port", 0x0800))
    with raw:
        for each, last in ready:
            with suppress(OSError):  # ENOBUFS: the qdisc refused it
                raw.send(each)
            if last:
                time.sleep(0.02)
    return sent


def drained(at: cost.Port) -> None:
    for _ in range(200):
        if at.backlog()["backlog"] == 0:
            return
        time.sleep(0.01)
    raise AssertionError("the queue does not drain")


@dataclass
class Recorded:
    """Packets that went into a port, and what the kernel and the programs there counted of them."""

    sent: list[tuple[int, int]]
    rows: pl.DataFrame
    said: dict[str, Any]
    counters: dict[str, int]
    marker: dict[str, Any]


def recorded(binary: Path, table: Path, seed: int, *arguments: str, mark: tuple[str, ...] = (), drops: int = 0) -> Recorded:
    """Feed a port that is recorded, and marked if settings are given, until all programs ran for each packet: six seeds at most.

    So many packets were dropped at least: a port overflows less where what feeds it waits for the CPU.

    A kernel may leave out a program for a packet, as that of a virtual machine does while the machine's agent has the CPU. Then
    rows are not told by their numbers. It never does so for one packet in a hundred, and what came is never counted twice.
    """
    for each in range(seed, seed + 6):
        with port() as at, ExitStack() as stack:
            marker = stack.enter_context(bpf.Program(binary, "mark", "port", *mark, ns=at.ns)) if mark else None
            recorder = stack.enter_context(bpf.Program(binary, "record", "port", str(table), *arguments, ns=at.ns))
            sent = feed(at, each)
            drained(at)
            counters = at.backlog()
            said = recorder.end()
            counted = {} if marker is None else marker.end()
            if marker is not None:
                assert "fanin" not in command(at.ns, "tc", "filter", "show", "dev", "port", "egress")
                assert "clsact" not in command(at.ns, "tc", "qdisc", "show", "dev", "port")
        assert (said["status"], said["lost"]) == (0, 0), said["said"]
        assert counters["packets"] + counters["drops"] == len(sent), "the kernel itself counts each"
        came = [said["rows"], *([counted["packets"] + counted["refused"]] if counted else [])]
        assert all(0.99 * len(sent) <= one <= len(sent) for one in came), came
        if set(came) == {len(sent)} and counters["drops"] >= drops:
            return Recorded(sent, table_of(table), said, counters, counted)
    raise AssertionError(f"six runs of {len(sent)} packets: programs ran for {came} in the last, {counters['drops']} were dropped")


def test_a_queue_table_says_what_the_kernel_counts(binary: Path, tmp_path: Path) -> None:
    """Every packet that came has a row; those dropped and those that left are the kernel's own numbers."""
    table = tmp_path / "queue.csv"
    found = recorded(binary, table, 1, "stats=1", drops=21)
    sent, rows, said, counters = found.sent, found.rows, found.said, found.counters
    assert said["unmatched"] == 0
    assert said["rows"] == said["enqueued"] + said["dropped"]
    assert said["enqueued"] == counters["packets"]
    # A program that the kernel leaves out as a packet leaves is never silently left out.
    assert said["dequeued"] + said["unknown_waits"] == said["enqueued"]
    assert said["unknown_waits"] < 0.1 * len(sent)
    assert ("seen to come and not to leave" in said["said"]) == (said["unknown_waits"] > 0)
    assert said["dropped"] == counters["drops"]
    assert rows["frame_bytes"].to_list() == [size for _, size in sent]
    assert rows["marked"].to_list() == [ecn == 3 for ecn, _ in sent]
    assert rows["flow"][1] == "10.0.0.1:40001 > 10.0.0.2:5000 udp"
    assert rows["payload"].to_list() == [size - 42 for _, size in sent]
    # The queue that each packet found is that of the packets before it which had not left; one whose departure is not known left
    # between those before and behind it.
    kept = rows.filter(~pl.col("dropped")).with_columns((pl.col("time_ns") + pl.col("wait_ns")).alias("left"))
    kept = kept.with_columns(pl.col("left").forward_fill().alias("first"), pl.col("left").backward_fill().alias("last"))
    for i, row in enumerate(kept.head(800).iter_rows(named=True)):
        least, most = (int(kept[:i].filter(kept[:i][end] > row["time_ns"])["frame_bytes"].sum()) for end in ("first", "last"))
        # A departure may fall between the reading of the clock and that of the backlog.
        assert least - 1514 <= row["queue_bytes"] <= most + 1514
    assert kept["queue_bytes"].max() <= LIMIT  # type: ignore[operator]
    analyzed = fanin.analyze(table, rate=f"{RATE}bps", overhead="0B").port()
    assert (analyzed["records"], analyzed["dropped"]) == (len(sent), counters["drops"])
    # The largest queue is the largest that a packet found, which a refused one finds, too; none needs to come while the queue is at
    # its fullest.
    assert analyzed["peak_bytes"] == rows["queue_bytes"].max()
    assert analyzed["peak_bytes"] <= kept.select(pl.col("queue_bytes") + pl.col("frame_bytes")).max().item() <= LIMIT


@pytest.mark.parametrize("where", ["clsact", "htb"])
@pytest.mark.parametrize("policy", ["threshold", "s-ecn"])
def test_marks_are_those_of_the_queue_that_packets_found(binary: Path, tmp_path: Path, policy: str, where: str) -> None:
    """The recorder sees each packet as it was put in: CE is set before, by the queue without the packet."""
    table = tmp_path / "queue.csv"
    settings = [f"policy={policy}", f"rate={RATE}", "k=20KB", f"limit={LIMIT}"]
    settings += ["parent=0x10000", "classid=0x10001"] if where == "htb" else []
    for seed in (2, 8, 14):
        found = recorded(binary, table, seed, mark=tuple(settings))
        said, counted = found.said, found.marker
        rows = found.rows.with_columns(pl.Series("ecn", [ecn for ecn, _ in found.sent]))
        low = rows.filter(~pl.col("dropped") & (pl.col("ecn") < 3) & pl.col("marked") & (pl.col("queue_bytes") <= 20_000 - 1514))
        # At clsact several packets leave between a decision and its enqueue where the machine takes the CPU away in between.
        if policy != "threshold" or where == "htb" or low.is_empty():
            break
        assert low.height <= 3
    # With the limit the program knows what the qdisc will refuse. At clsact another packet may leave between the decision and the
    # enqueue; under the qdisc's lock none can.
    between = 0 if where == "htb" else 3
    assert abs(counted["refused"] - said["dropped"]) <= between
    kept = rows.filter(~pl.col("dropped"))
    assert kept.filter((pl.col("ecn") == 0) & pl.col("marked")).height == 0
    assert kept.filter((pl.col("ecn") == 3) & ~pl.col("marked")).height == 0
    capable = kept.filter(pl.col("ecn").is_in([1, 2]))
    above = capable.filter(pl.col("queue_bytes") > 20_000 + 1514)
    below = capable.filter(pl.col("queue_bytes") <= 20_000 - 1514)
    assert min(above.height, below.height) > 100
    assert above["marked"].all()
    if policy == "threshold":
        assert not below["marked"].any()
        wrong = int(((capable["queue_bytes"] > 20_000) != capable["marked"]).sum())
        assert wrong <= (0 if where == "htb" else 0.02 * capable.height)
        assert counted["by_slope"] == 0
    else:
        assert 0.05 < below["marked"].mean() < 0.95  # type: ignore[operator]
        assert counted["by_slope"] > 100


def test_lost_records_are_counted_and_said(binary: Path, tmp_path: Path) -> None:
    """A reader that stands still fills the ring buffer; what found no room is counted by hook."""
    table = str(tmp_path / "queue.csv")
    for _ in range(3):
        with port(10_000_000_000, 10_000_000) as at, bpf.Program(binary, "record", "port", table, ns=at.ns) as recorder:
            recorder.process.send_signal(signal.SIGSTOP)
            sent = json.loads(command(at.ns, str(binary), "flood", "port", "packets=300000", "size=100"))["sent"]
            drained(at)
            recorder.process.send_signal(signal.SIGCONT)
            said = recorder.end()
        told = [said[f"lost_{hook}s"] + said[f"{hook}d"] for hook in ("enqueue", "dequeue")]
        assert all(0.99 * sent <= one <= sent for one in told), (sent, told)
        if set(told) == {sent}:  # the kernel left out no program, see `recorded`
            break
    assert told == [sent, sent]
    assert said["status"] == 3
    assert said["lost"] > 10_000
    assert said["lost"] == said["lost_enqueues"] + said["lost_dequeues"] + said["lost_drops"]
    assert "the ring buffer was full" in said["said"]


def test_a_program_that_is_wrong_by_a_bit_is_found(binary: Path, tmp_path: Path) -> None:
    for number, (header, mechanism, was, is_) in enumerate(
        (
            ("s_ecn.h", "s-ecn", "s->added > (__s64)s->sendable;", "s->added >= (__s64)s->sendable;"),
            ("s_ecn.h", "s-ecn", "queue >= set->k", "queue > set->k"),
            ("s_ecn.h", "s-ecn", "1ull << 24", "1ull << 23"),
            ("pdn.h", "pdn", "(__u64)port->waiting + 1)", "(__u64)port->waiting)"),
            ("pdn.h", "pdn", "port->waiting > 0 && !data", "port->waiting > 1 - data"),
        )
    ):
        folder = tmp_path / str(number) / "linux"
        shutil.copytree(bpf.SOURCES, folder)
        shutil.copytree(bpf.SOURCES.parent / "cosim", folder.parent / "cosim")
        text = (folder / header).read_text(encoding="utf-8")
        assert text.count(was) == 1, was
        (folder / header).write_text(text.replace(was, is_), encoding="utf-8")
        subprocess.run(["make", "-s", "-C", str(folder), f"OUT={folder}"], check=True)
        found = conform(mechanism, [str(folder / "fanin-bpf"), "conform", mechanism])
        assert found.first is not None, is_


def test_each_hook_costs_at_most_180_ns(binary: Path) -> None:
    """As the kernel counts it, its own measuring included; the least of 45 rounds at most, since others may have the caches."""
    reason = bed_lacking()
    if reason:
        pytest.skip(f"what BPF programs cost at a port: this machine lacks {reason}")
    # It runs for every packet that is freed anywhere in the kernel, and looks at the reason alone: on_drop.
    bounds = {"on_enqueue": (20, 180), "on_dequeue": (20, 180), "on_drop": (10, 100), "mark": (20, 250)}
    found: dict[str, list[float]] = {}
    for _ in range(15):
        for name, rounds in cost.measure(binary, rounds=3, packets=100_000).items():
            found.setdefault(name, []).extend(rounds)
        if all(min(found[name]) <= most for name, (_, most) in bounds.items()):
            break
    print(cost.table(found))
    assert {name: min(found[name]) for name, (least, most) in bounds.items() if not least < min(found[name]) <= most} == {}


def dctcp_program(binary: Path) -> bpf.Program:
    """Registered for the whole machine under one name: another test may have it for a while."""
    for _ in range(120):
        try:
            return bpf.Program(binary, "dctcp")
        except LackingError as e:
            if "is another one running?" not in str(e):
                raise
        time.sleep(1)
    raise AssertionError("another program has bpf_dctcp for two minutes")


def test_dctcp_keeps_the_queue_at_its_threshold(binary: Path, tmp_path: Path) -> None:
    """Real TCP over a threshold of 32 KB: both ends speak DCTCP, nothing is lost, and the queue stays about there.

    A capture before the port holds its packets meanwhile, so that headers are shared: marks must reach the receiver then, too.
    """
    reason = bed_lacking()
    if reason:
        pytest.skip(f"DCTCP in the running kernel: this machine lacks {reason}")
    table = tmp_path / "queue.csv"
    setting = Setting(flows=3, size=2_000_000, control="bpf_dctcp", rate=100_000_000, delay=0.001, buffer=512_000)
    with dctcp_program(binary) as dctcp, Bed(tmp_path / "bed", senders=3) as bed:
        bed.shape(setting.rate, setting.buffer)
        with (
            tap(bed.switch, "trunk1", outgoing=False).socket,
            bpf.Program(binary, "mark", "port", "policy=threshold", "k=32KB", ns=bed.switch) as marker,
            bpf.Program(binary, "record", "port", str(table), ns=bed.switch) as recorder,
        ):
            run = bed.run(setting, keep_port=True)
            recorder.end()
            counted = marker.end()
        dctcp.end()
    rows = table_of(table)
    data = rows.filter(pl.col("payload") > 0)
    assert rows["dropped"].sum() == 0
    assert run.counters.get("RetransSegs", 0) == 0
    # All packets are ECN-capable, the handshake's too; marks come back, so that windows shrink by alpha / 2 and not by half.
    assert counted["capable"] == counted["packets"]
    share = counted["marked"] / counted["packets"]
    assert 0.02 < share < 0.6
    late = data[data.height // 4 : -200]["queue_bytes"]
    assert 18_000 < late.mean() < 40_000  # type: ignore[operator]
    assert late.max() < 80_000  # type: ignore[operator]
    # A window that was halved at each mark would leave the port empty at times: K is 2.6 times the path's product.
    assert (late == 0).mean() < 0.02  # type: ignore[operator]


def controls() -> list[str]:
    return Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text(encoding="ascii").split()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_congestion_control_goes_with_its_program(binary: Path, how: signal.Signals) -> None:
    with dctcp_program(binary) as dctcp:
        assert "bpf_dctcp" in controls()
        dctcp.process.send_signal(how)
        dctcp.process.wait(10)
    # Gone, or free for the next one, which another test may have taken.
    with dctcp_program(binary) as again:
        again.end()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["mark", "lo", "policy=red"], "policy=red: accepted: s-ecn, threshold"),
        (["mark", "lo"], "rate: policy s-ecn needs that of the port"),
        (["mark", "lo", "rate=1tbit"], "rate=1tbit: accepted: 1000000 to 1600000000000, as whole numbers"),
        (["mark", "lo", "rates=1gbit"], "rates=1gbit: no such setting"),
        (["mark", "nowhere", "rate=1gbit"], "device nowhere: No such device"),
        (["mark", "lo", "rate=1gbit", "parent=0x10000"], "parent and classid belong together"),
        (["record", "lo"], "record: an argument is missing"),
        (["conform", "rimm"], "conform rimm: accepted: s-ecn, pdn"),
    ],
)
def test_what_cannot_be_used_is_said(binary: Path, arguments: list[str], words: str) -> None:
    done = subprocess.run([str(binary), *arguments], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 1
    assert words in done.stderr


@pytest.mark.parametrize(
    ("params", "rows"),
    [
        ({}, 3_800),
        ({"queue": "44B", "max_frame": "128B", "ttl": 2, "acks": False}, 3_700),
        ({"operation": "retransmit", "queue": "2KB", "seed": 7}, 4_500),
    ],
    ids=["default", "small", "retransmit"],
)
def test_pdn_gives_every_row_of_the_vectors(binary: Path, params: dict[str, object], rows: int) -> None:
    """Each notification's eight bytes are compared with the registers by the target itself."""
    found = conform("pdn", [str(binary), "conform", "pdn"], params)
    assert (found.ok, found.failure, found.first) == (True, None, None)
    assert found.answered >= rows
    assert set(found.columns) == {*found.names("output"), *found.names("register")}


SENDER, FAR = bytes.fromhex("020000000001"), bytes.fromhex("0200000000ff")


def segment(number: int, payload: int, *, v6: bool = False, flags: int = 0x10, back: bool = False) -> bytes:
    """A TCP segment from the sender to the far host, or back, without TCP's checksum."""
    tcp = struct.pack(">HHIIBBHHH", 40_000, 5_000, number, 77, 5 << 4, flags, 1_000, 0, 0) + bytes(payload)
    if v6:
        addresses = socket.inet_pton(socket.AF_INET6, "fd00::1") + socket.inet_pton(socket.AF_INET6, "fd00::2")
        ip = struct.pack(">IHBB", 6 << 28, len(tcp), 6, 64) + addresses
    else:
        ip = ipv4(0, 20 + len(tcp), number, 6)
    macs = SENDER + FAR if back else FAR + SENDER
    return macs + (b"\x86\xdd" if v6 else b"\x08\x00") + ip + tcp


def notification(number: int, payload: int, *, v6: bool, operation: int = 1) -> bytes:
    """What docs/switch/drop-notification.md has for it."""
    family, ends = (socket.AF_INET6, ("fd00::1", "fd00::2")) if v6 else (socket.AF_INET, ("10.0.0.1", "10.0.0.2"))
    addresses = b"".join(socket.inet_pton(family, end) for end in ends)
    return addresses + struct.pack(">HHIHBB", 40_000, 5_000, number, payload, 1 + v6, operation)


def raw(ns: int, device: str) -> socket.socket:
    with within(ns):
        opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        opened.bind((device, 3))
    opened.settimeout(0.5)
    return opened


def heard(at: socket.socket) -> list[bytes]:
    """All frames that came in."""
    frames = []
    with suppress(TimeoutError):
        while True:
            data, address = at.recvfrom(65_536)
            if address[2] != 4:  # PACKET_OUTGOING
                frames.append(data)
    return frames


@dataclass
class Bridged:
    """A sender, a bridge and a far host behind a slow port; raw sockets at both ends."""

    switch: cost.Port
    near: socket.socket
    far: socket.socket
    v6: bool

    @property
    def size(self) -> int:
        """Bytes of a notification."""
        return 44 if self.v6 else 20

    def lost(self) -> list[int]:
        """Numbers of 24 segments that do not come out: the port hardly sends until all of them have come."""
        self.switch.shape(64_000)
        for number in range(24):
            self.near.send(segment(1_000 * number, 1_000, v6=self.v6))
        self.switch.shape(10_000_000)
        drained(self.switch)
        at = (54 if self.v6 else 34) + 4
        came = {struct.unpack_from(">I", found, at)[0] for found in heard(self.far) if found[:6] == FAR}
        return [1_000 * n for n in range(24) if 1_000 * n not in came]


@pytest.fixture(params=[False, True], ids=["v4", "v6"])
def bridged(request: pytest.FixtureRequest) -> Iterator[Bridged]:
    with port(10_000_000, 7_000) as at:
        sender = unshare()
        lines = (
            f"link add in0 type veth peer name eth netns /proc/{os.getpid()}/fd/{sender}",
            "link add middle type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
            *(f"link set {device} master middle" for device in ("in0", "port")),
            *(f"link set {device} up" for device in ("middle", "in0")),
        )
        command(at.ns, "ip", "-batch", "-", text="\n".join(lines) + "\n")
        command(sender, "ip", "link", "set", "eth", "up")
        for mac, device in ((FAR, "port"), (SENDER, "in0")):
            command(at.ns, "bridge", "fdb", "add", mac.hex(":"), "dev", device, "master", "static")
        time.sleep(1.2)  # a bridge port forwards a second after it came up
        with raw(sender, "eth") as near, raw(at.peer, "far") as far:
            yield Bridged(at, near, far, request.param)
        os.close(sender)


def read_by_fanin(folder: Path, frames: list[bytes]) -> dict[str, Any]:
    """What `fanin analyze` finds in frames."""
    pcap = folder / "sender.pcap"
    rows = [struct.pack("<IIII", 1_000 + i, 0, len(f), len(f)) + f for i, f in enumerate(frames)]
    pcap.write_bytes(struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 65_535, 1) + b"".join(rows))
    found = fanin.analyze(pcap, rate="10Mbps").notifications
    assert found is not None
    return found


def test_each_drop_is_notified_to_where_it_came_from(binary: Path, tmp_path: Path, bridged: Bridged) -> None:
    """Through a bridge into a port that is full: the notifications are those of exactly the packets that did not come out."""
    size, v6, ns = bridged.size, bridged.v6, bridged.switch.ns
    with bpf.Program(binary, "notify", "port", "in0", f"queue={40 * size}", ns=ns) as notifier:
        lost = bridged.lost()
        bridged.near.send(segment(99_000, 0, v6=v6, flags=4))  # RST: nothing is repeated
        notices = [found for found in heard(bridged.near) if found[12:14] in (b"\xa8\x00", b"\xa6\xdd")]
        said = notifier.end()
    assert 10 < len(lost) < 20
    assert [found[-size:] for found in notices] == [notification(number, 1_000, v6=v6) for number in lost]
    assert {len(found) for found in notices} == {60}, "an idle port sends frames of their own, the smallest"
    assert {found[12:14] for found in notices} == {b"\xa6\xdd" if v6 else b"\xa8\x00"}
    assert (said["raised"], said["queued"], said["alone"], said["attached"]) == (len(lost), len(lost), len(lost), 0)
    assert said["drops"] in (len(lost), len(lost) + 1)
    read = read_by_fanin(tmp_path, notices)
    assert (read["frames"], read["alone"], read["flows"], read["told_bytes"]) == (len(lost), len(lost), 1, 1_000 * len(lost))


def test_notifications_wait_for_frames_that_have_room(binary: Path, tmp_path: Path, bridged: Bridged) -> None:
    """With nothing sent alone: one behind each frame that goes that way, as far as its room goes; the others are counted."""
    size, v6, ns = bridged.size, bridged.v6, bridged.switch.ns
    with bpf.Program(binary, "notify", "port", "in0", f"queue={5 * size}", "alone=0", "operation=retransmit", ns=ns) as notifier:
        lost = bridged.lost()
        back = [segment(n, payload, back=True) for n, payload in enumerate((0, 1_460, 1_400, 0, 100, 200, 300))]
        for ack in back:
            bridged.far.send(ack)
        frames = [found for found in heard(bridged.near) if found[:6] == SENDER]
        said = notifier.end()
        assert "clsact" not in command(ns, "tc", "qdisc", "show", "dev", "in0")
    assert (said["queued"], said["no_room"], said["alone"], said["attached"]) == (5, len(lost) - 5, 0, 5)
    expected = []
    waiting = [notification(number, 1_000, v6=v6, operation=2) for number in lost[:5]]
    for ack in back:
        padded = ack.ljust(60, b"\0")
        if waiting and len(padded) + 4 + size <= 1_518:
            expected.append(padded[:12] + b"\xa8\x00" + padded[14:] + waiting.pop(0))
        else:
            expected.append(ack)
    assert frames == expected
    read = read_by_fanin(tmp_path, frames)
    assert (read["frames"], read["alone"], read["attached"], read["told_bytes"]) == (5, 0, 5, 5_000)
    assert [(entry["name"], entry["count"]) for entry in read["operations"]] == [("retransmit", 5)]
