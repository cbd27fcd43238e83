"""A kernel's captures in tunnels and mirrors that scapy writes: the same drops and the same queue as without."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fanin

scapy = pytest.importorskip("scapy.all")
contrib = pytest.importorskip("scapy.contrib.geneve")
erspan = pytest.importorskip("scapy.contrib.erspan")
mpls = pytest.importorskip("scapy.contrib.mpls")


KEPT = Path(__file__).parent.parent.parent / "examples/captures"
Wrap = Callable[[Any], Any]


def _ethernet() -> Any:
    return scapy.Ether(src="02:00:00:00:09:01", dst="02:00:00:00:09:02")


def _outer() -> Any:
    return _ethernet() / scapy.IP(src="192.0.2.1", dst="192.0.2.2", id=0, flags="DF")


def _outer6() -> Any:
    return _ethernet() / scapy.IPv6(src="2001:db8::1", dst="2001:db8::2")


WRAPS: dict[str, Wrap] = {
    "vxlan": lambda frame: _outer() / scapy.UDP(sport=50_000, dport=4789, chksum=0) / scapy.VXLAN(vni=77) / frame,
    "geneve": lambda frame: (
        _outer()
        / scapy.UDP(sport=50_000, dport=6081, chksum=0)
        / contrib.GENEVE(vni=77, proto=0x6558, options=[contrib.GeneveOptions(classid=1, type=2, data=b"12345678")])
        / frame
    ),
    "gre": lambda frame: (
        _outer() / scapy.GRE(key_present=1, seqnum_present=1, chksum_present=1, key=5, sequence_number=9) / frame[scapy.IP]
    ),
    "nvgre": lambda frame: _outer() / scapy.GRE(key_present=1, key=77 << 8, proto=0x6558) / frame,
    "erspan1": lambda frame: _outer() / scapy.GRE(proto=0x88BE) / frame,
    "erspan2": lambda frame: (
        _outer() / scapy.GRE(proto=0x88BE, seqnum_present=1, sequence_number=1) / erspan.ERSPAN_II(session_id=7) / frame
    ),
    "erspan3": lambda frame: (
        _outer() / scapy.GRE(proto=0x22EB, seqnum_present=1, sequence_number=1) / erspan.ERSPAN_III(session_id=7, d=1) / frame
    ),
    "mpls": lambda frame: _ethernet() / mpls.MPLS(label=16, s=0) / mpls.MPLS(label=17, s=1) / frame[scapy.IP],
    "ip in ip": lambda frame: _outer() / frame[scapy.IP],
    "4in6": lambda frame: _outer6() / frame[scapy.IP],
    "nested": lambda frame: (
        _outer6() / scapy.UDP(sport=1, dport=4789) / scapy.VXLAN(vni=1) / _outer() / scapy.GRE(proto=0x6558) / frame
    ),
}


def frames(path: Path) -> list[tuple[int, int, bytes]]:
    """Return times, lengths and bytes of a capture of nanoseconds."""
    data, at, found = gzip.decompress(path.read_bytes()), 24, []
    while at < len(data):
        seconds, ns, kept, length = struct.unpack_from("<IIII", data, at)
        found.append((seconds * 10**9 + ns, length, data[at + 16 : at + 16 + kept]))
        at += 16 + kept
    return found


def write(path: Path, capture: list[tuple[int, int, bytes]], wrap: Wrap) -> None:
    """Write a capture with every frame wrapped, and 200 bytes of each kept."""
    headers: dict[tuple[int, bytes], bytes] = {}
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 200, 1))
        for time, length, kept in capture:
            of = (length, kept[:14])
            if of not in headers:
                # Scapy writes lengths by what is there; what stands before the packet is the same for all of a length.
                whole = bytes(wrap(scapy.Ether(kept.ljust(length, b"\0"))))
                headers[of] = whole[: whole.index(kept[14:54])]
            wrapped = headers[of] + kept[14:].ljust(length - 14, b"\0")
            file.write(struct.pack("<IIII", time // 10**9, time % 10**9, min(len(wrapped), 200), len(wrapped)) + wrapped[:200])


def analyzed(before: Path, behind: Path, rate: str = "100Mbps") -> fanin.Analysis:
    return fanin.analyze(before, behind=behind, rate=rate, overhead="0B", fcs=False)


@pytest.mark.parametrize("name", WRAPS)
def test_drops_and_queue_are_those_of_the_packets_without(tmp_path: Path, name: str) -> None:
    bare = analyzed(KEPT / "drops-before.pcap.gz", KEPT / "drops-behind.pcap.gz")
    for side in ("before", "behind"):
        write(tmp_path / f"{side}.pcap", frames(KEPT / f"drops-{side}.pcap.gz"), WRAPS[name])
    found = analyzed(tmp_path / "before.pcap", tmp_path / "behind.pcap")
    assert found.pair is not None and bare.pair is not None
    assert (found.pair["dropped"], found.pair["matched"]) == (182, 649) == (bare.pair["dropped"], bare.pair["matched"])
    assert not [f for f in found.document["plausibility"]["findings"] if f["code"] == "indistinct"]
    ours, theirs = found.records, bare.records
    assert ours["dropped"].to_list() == theirs["dropped"].to_list()
    assert ours["time_ps"].to_list() == theirs["time_ps"].to_list()
    waits = [wait for wait in ours["wait_ps"] if wait is not None]
    assert waits == [wait for wait in theirs["wait_ps"] if wait is not None]
    if name.startswith("erspan"):
        assert ours["queue_bytes"].to_list() == theirs["queue_bytes"].to_list(), "the port saw the frames, and no mirror's headers"
    else:
        longer = ours["frame_bytes"][0] - theirs["frame_bytes"][0]
        more = ours["queue_bytes"].cast(int) - theirs["queue_bytes"].cast(int)
        assert longer > 0
        assert (more % longer).sum() == 0
    assert ours["queue_bytes"].arg_max() == theirs["queue_bytes"].arg_max()


@pytest.mark.parametrize("name", ["vxlan", "geneve"])
def test_a_law_is_stated_of_the_flows_in_a_tunnel(tmp_path: Path, name: str) -> None:
    bare = analyzed(KEPT / "incast-before.pcap.gz", KEPT / "incast-behind.pcap.gz").laws
    for side in ("before", "behind"):
        write(tmp_path / f"{side}.pcap", frames(KEPT / f"incast-{side}.pcap.gz"), WRAPS[name])
    # As many packets a second, each longer by the tunnel's headers.
    found = analyzed(tmp_path / "before.pcap", tmp_path / "behind.pcap", "103.5Mbps").laws
    same = ["law", "background", "background_flows", "evidence"]
    assert found.select(same).to_dicts() == bare.select(same).to_dicts() != []
    # The slope is of frames, too.
    ratio = found["slope_bps"][0] / bare["slope_bps"][0]
    assert 1.01 < ratio < 1.07, ratio


def test_tenants_with_equal_addresses_stay_apart(tmp_path: Path) -> None:
    bare = fanin.analyze(KEPT / "drops-before.pcap.gz", rate="100Mbps", buffer="1MB")
    capture = frames(KEPT / "drops-before.pcap.gz")

    def both(vni: int, later: int) -> None:
        wrap = lambda frame: _outer() / scapy.UDP(sport=9, dport=4789, chksum=0) / scapy.VXLAN(vni=vni) / frame  # noqa: E731
        write(tmp_path / f"{vni}.pcap", [(time + later, length, kept) for time, length, kept in capture], wrap)

    both(5001, 0)
    both(5002, 700)
    paths = [tmp_path / f"{vni}.pcap" for vni in (5001, 5002)]
    joined = tmp_path / "both.pcap"
    joined.write_bytes(paths[0].read_bytes() + paths[1].read_bytes()[24:])
    found = fanin.analyze(joined, rate="100Mbps", buffer="1MB", sort=True)
    assert found.records.height == 2 * bare.records.height
    names = set(bare.records["flow"])
    assert set(found.records["flow"]) == {f"{name} vni {vni}" for name in names for vni in (5001, 5002)}
    made = found.to_scenario()
    assert f"left = {2 * len(names)}\nright = 2\n" in made.text
