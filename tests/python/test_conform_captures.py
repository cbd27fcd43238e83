"""`fanin conform --captures`: devices that send every byte as they should, or one otherwise, or write no capture."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import device
import fanin
from fanin import conformance_frames as frames
from fanin.conformance_capture import FrameDifference, conform_captures
from test_conform import SOURCE, asked, compiled
from test_detours import scenario

EXAMPLE = SOURCE.with_name("s_ecn_pcap.c")
DEVICE = [sys.executable, device.__file__]


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> str:
    return compiled(EXAMPLE, tmp_path_factory.mktemp("conform") / "s_ecn_pcap")


@pytest.mark.parametrize("settings", [[], ["at=dequeue", "registers.after_mark=reset"]], ids=["arrival", "departure"])
def test_the_example_in_c_sends_every_byte(example: str, settings: list[str], tmp_path: Path) -> None:
    """Of IPv4 with options and without, IPv6, with a tag; each checksum that RFC 1624 is about."""
    words = [word for setting in settings for word in ("--set", setting)]
    done = asked("s-ecn", *words, "--captures", str(tmp_path), "--json", example)
    assert (done.exit_code, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert (found["ok"], found["columns"], found["frames"]) == (True, ["frame"], {"due": 18_280, "sent": 18_280})
    assert found["answered"] == found["rows"]
    assert (tmp_path / "s-ecn.out.pcap").read_bytes() == (tmp_path / "s-ecn.expected.pcap").read_bytes()


def test_an_older_form_of_the_checksum_is_found_with_its_place(tmp_path: Path) -> None:
    """RFC 1141's update gives 0xFFFF where 0x0000 is due: 1 of 65,536 headers, of which the vectors have many."""
    wrong = tmp_path / "wrong.c"
    text = EXAMPLE.read_text(encoding="utf-8")
    update = "(uint16_t)~big(ip + 10, 2) + (uint16_t)~before + (uint32_t)big(ip, 2)"
    older = text.replace(update, "big(ip + 10, 2) + before + (uint16_t)~big(ip, 2)")
    older = older.replace("sum = (uint16_t)~((sum & 0xFFFF)", "sum = (uint16_t)((sum & 0xFFFF)")
    assert older.count("before + (uint16_t)~big") == 1
    assert older.count("(uint16_t)~((sum") == 0
    wrong.write_text(older, encoding="utf-8")
    target = compiled(wrong, tmp_path / "wrong")
    done = asked("s-ecn", "--case", "slopes", "--rate", "1Gbps", "--captures", str(tmp_path), target)
    assert (done.exit_code, done.stderr) == (1, "")
    assert "First difference: case slopes, sequence 0, row 96: frame" in done.stdout
    assert "byte 24, IPv4 checksum, is ff; expected: 00" in done.stdout
    assert "target  byte 16: " in done.stdout
    marks = [line.split() for line in done.stdout.splitlines() if line.startswith(" mark ")]
    assert marks == [["mark", "0", "1", "not", "answered"]]


@pytest.mark.parametrize(
    ("mechanism", "settings", "leaves"),
    [
        ("pdn", {}, 2_219),
        ("pdn", {"operation": "retransmit", "acks": False, "queue": "3KB"}, 2_818),
        ("rimm", {}, 5_640),
        ("rimm", {"neighbours": 1, "hash_bits": 0, "give_up": "30us", "chi": "3us"}, 6_623),
    ],
)
def test_a_device_that_knows_the_page_alone_sends_every_byte(
    mechanism: str, settings: dict[str, object], leaves: int, tmp_path: Path
) -> None:
    found = conform_captures(mechanism, [*DEVICE, mechanism], tmp_path, settings)
    assert (found.first, found.failure, found.last_words) == (None, None, "")
    assert (found.sent, found.due, found.answered) == (leaves, leaves, found.rows)


@pytest.mark.parametrize(
    ("wrong", "part", "there"),
    [
        ("bit", "byte 14, IPv4 version, is ff; expected: 45", (True, True)),
        ("port", "it leaves by port 4; expected: 3", (True, True)),
        ("missing", "no frame leaves where one should", (True, False)),
    ],
)
def test_the_first_frame_that_differs_is_named(wrong: str, part: str, there: tuple[bool, bool], tmp_path: Path) -> None:
    found = conform_captures("rimm", [*DEVICE, "rimm", wrong], tmp_path, {"cases": ["order"]})
    first = found.first
    assert isinstance(first, FrameDifference)
    assert (first.case, first.sequence, first.row, found.failure) == ("order", 0, 99, None)
    assert part in first.part
    assert (first.expected_frame is not None, first.answered_frame is not None) == there
    assert found.different == {"order": 1}


def answering(body: str) -> list[str]:
    """A target in Python: `data` is the capture that it was given, `out` the file to write."""
    begin = "import sys, struct\ndata, out = open(sys.argv[-2], 'rb').read(), open(sys.argv[-1], 'wb')"
    packet = "def packet(b):\n  out.write(data[:24] + struct.pack('<IIII', 0, 0, len(b), len(b)) + b)"
    return [sys.executable, "-c", f"{begin}\n{packet}\n{body}"]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("import os; os.remove(sys.argv[-1])", "it wrote no capture "),
        ("out.write(data[:20])", "has 20 bytes, less than a header"),
        ("out.write(b'\\n\\r\\r\\n' + data)", "begins with 0a 0d 0d 0a, which is no pcap; pcapng is not read here"),
        ("out.write(data[:20] + struct.pack('<I', 1))", "has link type 1; expected: 147, as in the one that it was given"),
        ("out.write(data[:-1])", "ends within packet 375"),
        ("packet(b'abc')", "packet 0 of its capture has 3 bytes, less than the 32"),
        ("packet(b'\\xff' * 32)", "answers row 4294967295 of sequence 4294967295"),
        ("sys.exit('no room')", "it ended with status 1, and its capture "),
        ("import os; os.remove(sys.argv[-1]); os.mkfifo(sys.argv[-1])", "s-ecn.out.pcap is no regular file"),
        ("import os; os.remove(sys.argv[-1]); os.mkdir(sys.argv[-1])", "s-ecn.out.pcap is no regular file"),
        ("import os; os.remove(sys.argv[-1]); os.symlink('/dev/zero', sys.argv[-1])", "s-ecn.out.pcap is no regular file"),
        ("out.truncate(8 << 20)", "s-ecn.out.pcap has more than 3,392,212 bytes"),
        ("while True: out.write(bytes(1 << 20))", "bytes, 4 times what could be of use"),
    ],
)
def test_a_capture_that_is_none_is_said_in_a_line(body: str, says: str, tmp_path: Path) -> None:
    done = asked("s-ecn", "--case", "slopes", "--rate", "1Gbps", "--captures", str(tmp_path), "--", *answering(body))
    assert done.exit_code == 1
    assert says in done.stderr, done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_targets_and_mechanisms_that_have_no_captures(tmp_path: Path) -> None:
    done = asked("rcm", "--captures", str(tmp_path), "true")
    assert (done.exit_code, "--captures: rcm changes no frames; accepted: s-ecn, pdn, rimm" in done.stderr) == (2, True)
    done = asked("s-ecn", "--captures", str(tmp_path))
    assert (done.exit_code, "with --captures name the program that reads a capture" in done.stderr) == (2, True)
    done = asked("s-ecn", "--captures", "", "true")
    assert (done.exit_code, done.stderr) == (2, "error: --captures: no folder was named\n")
    done = asked("s-ecn", "--captures", str(tmp_path), "--socket", "fanin.sock")
    assert (done.exit_code, "leave out one of --captures and --socket" in done.stderr) == (2, True)
    sleeps = [sys.executable, "-c", "import time; time.sleep(60)"]
    found = conform_captures("pdn", sleeps, tmp_path, {"cases": ["hurry"]}, timeout_s=0.3)
    assert str(found.failure).startswith("it did not end within 0.3 s (--timeout gives it longer), and it wrote no capture ")


def test_the_example_says_that_a_capture_is_of_another_mechanism(example: str, tmp_path: Path) -> None:
    found = conform_captures("pdn", [example], tmp_path, {"cases": ["hurry"]})
    assert found.failure is not None
    assert found.failure.startswith("it ended with status 1")
    assert found.last_words.startswith("a sequence without rate= is none of s-ecn: room=200 ")
    alone = subprocess.run([example], capture_output=True, text=True, check=False)
    assert (alone.returncode, alone.stderr) == (2, "usage: s_ecn_pcap IN OUT\n")


def test_a_target_that_floods_its_standard_error_is_heard_at_its_end_alone(tmp_path: Path) -> None:
    floods = "import sys\nwhile True: sys.stderr.write('words ' * 10_000)"
    tracemalloc.start()
    found = conform_captures("s-ecn", [sys.executable, "-c", floods], tmp_path, {"cases": ["pairs"]}, timeout_s=0.5)
    assert 0 < tracemalloc.get_traced_memory()[1] < 64 << 20
    tracemalloc.stop()
    assert str(found.failure).startswith("it did not end within 0.5 s")
    assert 1_900 < len(found.last_words) <= 2_000


def test_a_difference_before_a_packet_that_is_none_is_kept(tmp_path: Path) -> None:
    body = "n = struct.unpack('<I', data[32:36])[0]\nout.write(data[:24])\n"
    body += "second = data[40 + n:]\nwrong = bytearray(second[:16 + struct.unpack('<I', second[8:12])[0]])\n"
    body += "wrong[-1] ^= 1\nout.write(wrong + struct.pack('<IIII', 0, 0, 3, 3) + b'abc')"
    found = conform_captures("s-ecn", answering(body), tmp_path, {"cases": ["slopes"], "rates": ["1Gbps"]})
    assert found.failure == "packet 1 of its capture has 3 bytes, less than the 32 of a header"
    assert found.first is not None
    assert (found.first.row, found.answered, found.sent, found.different) == (0, 1, 1, {"slopes": 1})


def test_a_full_disk_is_said_with_the_name_of_the_capture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    done = asked("s-ecn", "--case", "pairs", "--captures", str(tmp_path), "true")
    path = tmp_path / "s-ecn.in.pcap"
    assert (done.exit_code, done.stderr) == (1, f"error: {path}: No space left on device\n")
    assert list(tmp_path.iterdir()) == []


def test_bytes_of_options_are_named() -> None:
    ip = frames.Ip(bytes(4), bytes(4), options=bytes(4))
    frame = frames.ethernet(ip, ip.before(253, bytes(40)))
    names = [frames.place(frame, 14 + at) for at in (19, 20, 23, 24)]
    assert names == ["IPv4 address", "IPv4 options", "IPv4 options", "behind the IP header"]


def blocks(capture: bytes) -> Iterator[bytes]:
    """Frames of a pcapng capture."""
    at = 0
    while at < len(capture):
        kind, size = struct.unpack_from("<II", capture, at)
        if kind == 6:
            kept = struct.unpack_from("<I", capture, at + 20)[0]
            yield capture[at + 28 : at + 28 + kept]
        at += size


@pytest.mark.parametrize("ip", ["v4", "v6"])
def test_headers_are_those_of_captures_of_simulated_links(ip: str, tmp_path: Path) -> None:
    """Two writers of the same bytes: these vectors and the simulator's captures."""
    ran = fanin.run(scenario(ip), tmp_path / "out", progress=False)
    seen: Counter[int] = Counter()
    for frame in blocks((ran.path / "packets.pcapng").read_bytes()):
        kind = device.number(frame, 12, 2)
        body = {0xA8F0: 2, 0xA8F1: 6, 0xA8F2: 6, 0xA8F3: 10, 0xA8F4: 10}[kind]
        plain = frame[:12] + frame[14 + body :]
        assert frames.with_header(plain, kind, device.number(frame, 14, 2), frame[16 : 14 + body]) == frame
        if kind in (0xA8F3, 0xA8F4):
            packet = device.Packet(plain)
            assert len(plain) == max(60, packet.end), "headers alone, padded"
            assert device.ones(plain[14 : packet.transport]) == 0 or ip == "v6"
        seen[kind] += 1
    assert set(seen) == set(range(0xA8F0, 0xA8F5)), seen


@pytest.mark.parametrize("ip", ["v4", "v6"])
def test_notifications_are_those_of_captures_of_simulated_hosts(ip: str, tmp_path: Path) -> None:
    simulated = {
        "topology": {"kind": "single_switch", "hosts": 5, "link": {"rate": "10Gbps", "delay": "1us"}},
        "framing": {"ip": ip},
        "switch": {"buffer": {"kind": "static", "per_port": "30KB"}, "mechanisms": {"pdn": {}}},
        "transport": {"kind": "tcp", "handshake": False, "drop_notification": True, "initial_window": 30},
        "traffic": [{"kind": "incast", "receiver": "h4", "size": "200KB"}, {"kind": "incast", "receiver": "h0", "size": "50KB"}],
        "telemetry": {"sample": "off", "capture": {"hosts": ["h0", "h1"]}},
    }
    ran = fanin.run(simulated, tmp_path / "out", progress=False)
    seen: Counter[str] = Counter()
    for frame in blocks((ran.path / "packets.pcapng").read_bytes()):
        if (kind := device.number(frame, 12, 2)) not in device.IP:
            continue
        size = 20 if frame[-2] == 1 else 44
        notice, before, address = frame[-size:], frame[:-size], size // 2 - 6
        made = frames.Ip(notice[:address], notice[address : 2 * address])
        seq, length = device.number(notice, size - 8, 4), device.number(notice, size - 4, 2)
        ports = (device.number(notice, size - 12, 2), device.number(notice, size - 10, 2))
        assert frames.notice(made, ports, seq, length, frame[-1]) == notice
        if before[6:12] == bytes([2, 0, 0, 0, 0, 0]):
            assert frames.alone(notice)[6:] == frame[6:]
            seen["alone"] += 1
        else:
            plain = before[:12] + device.IP[kind].to_bytes(2, "big") + before[14:]
            assert frames.attached(plain, notice) == frame
            seen["attached"] += 1
    assert min(seen["alone"], seen["attached"]) > 0, seen
