"""Captures that this test takes of the running kernel, before and behind a port, against what the kernel itself counts there.

Seconds, and part of `make test` where root and the kernel allow it: unlike test_against_kernel.py nothing here is timing.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import fanin
from bed import Bed, LackingError, Setting, command, lacking, unshare, within

SO_TIMESTAMPNS, SO_RCVBUFFORCE, ETH_P_ALL, OUTGOING = 35, 33, 0x0003, 4
BUFFER = 60_000
SETTING = Setting(flows=6, size=60_000, control="reno", rate=100_000_000, delay=0.002, buffer=BUFFER)
SNAP = 100


@dataclass
class Tap:
    """A raw socket at a device; the kernel holds what it sees until it is read."""

    socket: socket.socket
    outgoing: bool

    def write(self, path: Path) -> int:
        """Write what went by, this way, as a pcap with stamps of nanoseconds; how many frames."""
        rows = [struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, SNAP, 1)]
        self.socket.setblocking(False)
        while True:
            try:
                data, ancillary, _, address = self.socket.recvmsg(65536, 256)
            except BlockingIOError:
                break
            if (address[2] == OUTGOING) != self.outgoing:
                continue
            s, ns = next(struct.unpack("<qq", value[:16]) for _, kind, value in ancillary if kind == SO_TIMESTAMPNS)
            rows.append(struct.pack("<IIII", s, ns, min(len(data), SNAP), len(data)) + data[:SNAP])
        self.socket.close()
        path.write_bytes(b"".join(rows))
        return len(rows) - 1


def tap(ns: int, device: str, *, outgoing: bool) -> Tap:
    with within(ns):
        raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        raw.bind((device, ETH_P_ALL))
    raw.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
    raw.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    return Tap(raw, outgoing)


@dataclass
class Polls:
    """What the kernel said of the port's queue: from when to when it was asked [ns], and the bytes in it."""

    rows: list[tuple[int, int, int]] = field(default_factory=list)


def fifo(ns: int) -> dict[str, Any]:
    """The counters of the port's bfifo."""
    found = json.loads(command(ns, "tc", "-s", "-j", "qdisc", "show", "dev", "port"))
    return next((entry for entry in found if entry["kind"] == "bfifo"), {})


@contextmanager
def polling(ns: int) -> Iterator[Polls]:
    """Ask the kernel for the queue again and again."""
    polls, stop = Polls(), threading.Event()

    def ask() -> None:
        while not stop.is_set():
            start = time.time_ns()
            try:
                entry = fifo(ns)
            except (LackingError, OSError):  # the port is being shaped anew
                continue
            if entry:
                polls.rows.append((start, time.time_ns(), entry["backlog"]))

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield polls
    finally:
        stop.set()
        thread.join()


def test_two_captures_of_the_running_kernel_agree_with_its_own_counters(tmp_path: Path) -> None:
    reason = lacking()
    if reason:
        pytest.skip(f"captures of the running kernel: this machine lacks {reason}")
    before, behind = tmp_path / "before.pcap", tmp_path / "behind.pcap"
    with Bed(tmp_path / "bed", senders=SETTING.flows) as bed:
        taps = (tap(bed.switch, "trunk1", outgoing=False), tap(bed.switch, "port", outgoing=True))
        with polling(bed.switch) as polls:
            bed.run(SETTING)
        counters = fifo(bed.switch)
        counts = [found.write(path) for found, path in zip(taps, (before, behind), strict=True)]
    found = fanin.analyze(before, behind=behind, rate="100Mbps", overhead="0B", fcs=False, buffer=f"{BUFFER}B")
    # HTB wakes up late for a packet that finds it idle where another process holds the CPU, which looks as late stamps do.
    assert {finding["code"] for finding in found.plausibility["findings"]} <= {"idle_waits"}
    pair, port = found.pair, found.port()
    assert pair is not None
    assert all(finding["count"] < pair["matched"] / 20 for finding in found.plausibility["findings"])
    # Each packet that went in is one that came out, or one that the kernel says it dropped.
    assert (pair["matched"], pair["only_behind"]) == (counts[1], 0)
    assert counts[0] == pair["matched"] + pair["dropped"] + sum(pair["left_out"].values())
    assert port["dropped"] == counters["drops"] > 0
    # A packet is stamped before it is enqueued. Where one departs in between it fits, though by the stamps it is one too many; that
    # happens on one core as well, as the kernel sends what is due before it takes what has come.
    assert BUFFER - 1514 < port["peak_bytes"] <= BUFFER + 1514
    # HTB is late where another process holds the CPU, and does not make up for it.
    assert 0.7e8 < pair["busy_bps"] < 1.02e8
    # One clock has no drift. In about half of the time all packets wait, more or less as HTB runs: then a drift could not be seen.
    drift, idle = pair["clock"]["drift_ppm"], pair["clock"]["idle_parts"]
    assert drift in (0, None)
    assert idle > (0 if drift is None else 0.3)
    assert any(("drift unknown" if drift is None else "no drift") in note for note in pair["notes"])
    # The queue at each moment between question and answer, by the records; the kernel's own is one of them, but for a frame that
    # went in or out meanwhile.
    records = found.records
    queue = records["queue_bytes"].to_numpy().astype(np.int64)
    came = found.origin_s * 10**9 + records["time_ps"].to_numpy() // 1000
    left = came + records["wait_ps"].fill_null(0).to_numpy() // 1000
    size = np.where(records["dropped"].to_numpy(), 0, records["frame_bytes"].to_numpy())
    seen = 0
    for start, end, backlog in polls.rows:
        moments = np.unique(
            np.concatenate([[start, end], came[(came >= start) & (came <= end)], left[(left >= start) & (left <= end)]])
        )
        held = [int(size[(came <= moment) & (left > moment)].sum()) for moment in moments]
        assert min(held) - 2 * 1514 <= backlog <= max(held) + 2 * 1514
        seen += backlog > 0
    assert queue.max() == port["peak_bytes"]
    assert polls.rows
    print(f"{len(polls.rows)} answers of the kernel, {seen} of a queue that stood")
    # From what arrived alone, nearly the same.
    error = port["estimate"]["error"]
    assert error["measured_dropped"] == port["dropped"]
    assert error["rms_bytes"] < BUFFER / 3
    print(f"estimate: {error}")
    assert pl.DataFrame(records).height == port["records"]


SENDERS = 6


@contextmanager
def router() -> Iterator[tuple[int, int, int]]:
    """Give namespaces of a sender with addresses in a VXLAN, of a router whose port is slow, and of the receiver."""
    spaces = sender, switch, receiver = unshare(), unshare(), unshare()
    try:
        for ns in spaces:
            with within(ns):
                # Else a host's own multicast comes out of the port that never went in.
                for key in ("ipv6/conf/all/disable_ipv6", "ipv6/conf/default/disable_ipv6", "ipv4/ip_forward"):
                    Path("/proc/sys/net", key).write_text("1", encoding="ascii")
        ends = ((sender, "trunk", 1, range(1, 1 + SENDERS)), (receiver, "port", 2, range(200, 201)))
        for ns, device, net, inside in ends:
            lines = [f"link add {device} type veth peer name eth netns /proc/{os.getpid()}/fd/{ns}"]
            command(
                switch,
                "ip",
                "-batch",
                "-",
                text="\n".join([*lines, f"addr add 10.{net}.0.254/24 dev {device}", f"link set {device} up", ""]),
            )
            lines = [
                f"addr add 10.{net}.0.1/24 dev eth",
                "link set eth up",
                f"route add default via 10.{net}.0.254",
                f"link add vxlan type vxlan id 77 dstport 4789 local 10.{net}.0.1 remote 10.{3 - net}.0.1 dev eth",
                "link set vxlan up",
                *(f"addr add 10.9.0.{i}/24 dev vxlan" for i in inside),
            ]
            command(ns, "ip", "-batch", "-", text="\n".join([*lines, ""]))
        htb = ("rate", "100mbit", "burst", "1514", "cburst", "1514", "quantum", "1514")
        for what in (
            ("qdisc", "add", "dev", "port", "root", "handle", "1:", "htb", "default", "1"),
            ("class", "add", "dev", "port", "parent", "1:", "classid", "1:1", "htb", *htb),
            ("qdisc", "add", "dev", "port", "parent", "1:1", "bfifo", "limit", str(BUFFER)),
        ):
            command(switch, "tc", *what)
        yield spaces
    finally:
        for ns in spaces:
            os.close(ns)


def test_datagrams_in_a_tunnel_are_told_apart_and_no_law_is_stated_of_them(tmp_path: Path) -> None:
    reason = lacking()
    if reason:
        pytest.skip(f"captures of the running kernel: this machine lacks {reason}")
    before, behind = tmp_path / "before.pcap", tmp_path / "behind.pcap"
    with contextlib.ExitStack() as stack:
        try:
            sender, switch, receiver = stack.enter_context(router())
        except LackingError as error:
            pytest.skip(f"captures of the running kernel: {error}")
        taps = (tap(switch, "trunk", outgoing=False), tap(switch, "port", outgoing=True))
        with within(receiver):
            sink = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            sink.bind(("10.9.0.200", 9))
        sources = []
        for i in range(SENDERS):
            with within(sender):
                source = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            source.bind((f"10.9.0.{1 + i}", 4000))
            source.connect(("10.9.0.200", 9))
            sources.append(source)
        sources[0].send(b"who has it")
        time.sleep(0.1)
        # Equal contents: only what is inside, and its number, tells one from the other.
        for _ in range(3):
            for _ in range(20):
                for source in sources:
                    source.send(bytes(1200))
            time.sleep(0.02)
        # The last ones find the port idle, so that the fate of all others is known.
        for _ in range(3):
            time.sleep(0.02)
            sources[0].send(bytes(100))
        time.sleep(0.05)
        counters = fifo(switch)
        for taken, path in zip(taps, (before, behind), strict=True):
            taken.write(path)
    found = fanin.analyze(before, behind=behind, rate="100Mbps", overhead="0B", fcs=False)
    pair, port = found.pair, found.port()
    assert pair is not None
    assert (pair["dropped"], pair["only_behind"]) == (counters["drops"], 0)
    assert counters["drops"] > 20
    # As many as fit, or one more: see above.
    assert port["peak_bytes"] in (46 * 1292, 47 * 1292)
    assert [finding for finding in found.plausibility["findings"] if finding["code"] == "indistinct"] == []
    assert any("in VXLAN" in note for note in pair["notes"])
    # Questions for addresses are in the tunnel too, and have no flow inside.
    names = {row["name"] for row in pair["waiting"]["flows"] if "4789" not in row["name"]}
    assert names == {f"10.9.0.{1 + i}:4000 > 10.9.0.200:9 udp vni 77" for i in range(SENDERS)}
    assert port["bursts"]
    assert all(burst["law"] is None or burst["law"]["evidence"]["transport"] is None for burst in port["bursts"])
    # The buffer was full from the first phase on that rises.
    first = max(port["bursts"], key=lambda burst: burst["peak_bytes"])["phases"][0]
    assert first["low_bps"] > 0
    assert first["end_bytes"] > 0.8 * BUFFER
