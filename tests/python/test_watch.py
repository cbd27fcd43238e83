"""``fanin watch``: streams of all kinds are read whole and once, through rotation and new starts; memory stays flat."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from array import array
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import fanin
from fanin import files
from fanin.cli import app
from fanin.watch import fetch, rules, sources
from fanin.watch.hub import Burst, Port
from fanin.watch.positions import Place, Positions
from fanin.watch.watching import Choices, Watch
from watching import HEADER, free_port, once, rows, running, written

ROOT = Path(__file__).parents[2]
BURST = 31
WATCH = [sys.executable, "-c", "from fanin.cli import app; app()", "watch"]


def number(field: int, value: int) -> bytes:
    """A number of protobuf."""
    parts = [value >> shift & 0x7F for shift in range(0, max(value.bit_length(), 1), 7)]
    return bytes([field << 3, *(part | 0x80 for part in parts[:-1]), parts[-1]])


def text(field: int, value: bytes) -> bytes:
    """A text or a message of protobuf, below 128 bytes."""
    return bytes([field << 3 | 2, len(value)]) + value


def lanz(congestions: int, *, first: int) -> list[bytes]:
    """Messages of LANZ: a configuration of segments of 512 B, then congestions of 0.9 ms, one each 10 ms (lanz.proto)."""
    port = text(1, b"Et1") + number(5, 5_000) + number(6, 2_500)
    config = number(1, 1_700_000_000_000_000) + number(2, 1) + number(3, 1) + number(4, 512) + number(5, 10**6) + text(6, port)
    messages = [text(1, config)]
    for i in range(first, first + congestions):
        for after, segments, kind in ((0, 5_000, 1), (500, 9_000, 2), (900, 4_000, 3)):
            at = 1_700_000_000_000_000 + 10_000 * i + after
            record = number(1, at) + text(2, b"Et1") + number(3, 0) + number(4, 1) + number(5, segments) + number(6, kind)
            messages.append(text(2, record + number(7, 1)))
    return [bytes([len(message)]) + message for message in messages]


def sflow(sequence: int, octets: int) -> bytes:
    """A datagram of sFlow with the counters of interface 7, of 10 Gb/s (sflow_version_5.txt)."""
    speed = divmod(10**10, 2**32)
    counters = struct.pack(">22I", 7, 6, *speed, 1, 3, *[0] * 8, *divmod(octets, 2**32), sequence, 0, 0, 0, 0, 0)
    sample = struct.pack(">5I", sequence, 7, 1, 1, len(counters)) + counters
    return struct.pack(">9I", 5, 1, 0x0A000001, 0, sequence, 1000 + sequence, 1, 2, len(sample)) + sample


def capture(packets: list[tuple[int, bytes]]) -> bytes:
    """A pcap of datagrams to the port of sFlow, each at its second, raw IPv4 (pcap: link type 101)."""
    data = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 101)
    for second, content in packets:
        udp = struct.pack(">4H", 9000, 6343, 8 + len(content), 0) + content
        ip = struct.pack(">2B5H8s", 0x45, 0, 20 + len(udp), 0, 0, 64 << 8 | 17, 0, bytes([127, 0, 0, 1] * 2)) + udp
        data += struct.pack("<4I", 1_700_000_000 + second, 0, len(ip), len(ip)) + ip
    return data


def places(path: Path) -> Any:
    return json.loads(path.read_text())["sources"]


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


class TestFiles:
    def test_a_file_read_once_has_the_bursts_of_an_analysis(self, tmp_path: Path) -> None:
        file = written(tmp_path / "a.csv", HEADER + rows(20))
        watch = once(file)
        analysis = fanin.analyze(file, rate="10Gbps", above="20KB")
        expected = {
            (port["port"], json.dumps(burst, sort_keys=True)) for port in analysis.document["ports"] for burst in port["bursts"]
        }
        assert {(burst.port, json.dumps(burst.report, sort_keys=True)) for burst in watch.bursts} == expected
        assert len(expected) == 40
        assert watch.counts() == {"eth0": 20 * BURST, "eth1": 20 * BURST}
        assert watch.watch.problems == []

    def test_bursts_are_told_few_at_a_time_in_the_order_of_their_ends(self, tmp_path: Path) -> None:
        told: list[list[Burst]] = []
        once(written(tmp_path / "a.csv", HEADER + rows(200)), told=told.append)
        ends = [burst.report["end_ps"] for bursts in told for burst in bursts]
        assert (len(ends), max(map(len, told))) == (400, 64)
        assert ends == sorted(ends)

    def test_what_is_appended_comes_and_rotation_loses_and_repeats_nothing(self, tmp_path: Path) -> None:
        file = written(tmp_path / "a.csv", HEADER + rows(5))
        with running(file) as watch:
            watch.until(lambda: watch.counts().get("eth0") == 5 * BURST)
            more = rows(5, first=5)
            append(file, more[:77])  # in the middle of a line
            time.sleep(0.3)
            append(file, more[77:])
            watch.until(lambda: watch.counts().get("eth0") == 10 * BURST)
            # By another name, with a late line of its writer, and a new file with names of columns.
            file.rename(tmp_path / "a.csv.1")
            append(tmp_path / "a.csv.1", rows(1, first=10))
            written(tmp_path / "new", HEADER + rows(4, first=11)).rename(file)
            watch.until(lambda: watch.counts().get("eth0") == 15 * BURST)
            # By truncation, without names of columns.
            with file.open("w") as again:
                again.write(rows(1, first=15))
            watch.until(lambda: watch.counts().get("eth0") == 16 * BURST)
        assert watch.counts() == {"eth0": 16 * BURST, "eth1": 16 * BURST}
        assert [burst.report["index"] for burst in watch.bursts if burst.port == "eth1"] == list(range(16))
        assert not any(burst.report["open"] or burst.report["cut"] for burst in watch.bursts)
        assert watch.watch.hub.reports[str(file)]["refused"] == 0

    def test_a_writer_that_goes_on_with_a_renamed_file_is_read_until_it_is_quiet(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = written(tmp_path / "a.csv", HEADER + rows(3))
        old = tmp_path / "a.csv.1"
        with running(file) as watch:
            watch.until(lambda: watch.counts().get("eth0") == 3 * BURST)
            file.rename(old)
            # As logrotate's `create`: an empty file, which the writer has not opened yet.
            written(file, "")
            time.sleep(1.5)
            append(old, rows(2, first=3))
            watch.until(lambda: watch.counts().get("eth0") == 5 * BURST)
            # The new one is written to, and a last row of the old one comes later.
            monkeypatch.setattr(fetch, "_QUIET", 60.0)  # however long it takes this machine to write that row
            append(file, HEADER + rows(2, first=6))
            time.sleep(0.4)
            append(old, rows(1, first=5))
            watch.until(lambda: watch.counts().get("eth0") == 6 * BURST)
            monkeypatch.undo()
            watch.until(lambda: watch.counts().get("eth0") == 8 * BURST)
        assert watch.counts() == {"eth0": 8 * BURST, "eth1": 8 * BURST}
        assert len(watch.bursts) == 16
        report = watch.watch.hub.reports[str(file)]
        assert (report["refused"], sum(port["late"] for port in report["ports"])) == (0, 0)

    def test_a_row_far_in_the_future_costs_itself_and_is_shown(self, tmp_path: Path) -> None:
        file = written(tmp_path / "a.csv", HEADER + rows(3))
        with running(file) as watch:
            watch.until(lambda: watch.counts().get("eth0") == 3 * BURST)
            append(file, f"{90_000 * 10**9},eth0,0,1500,f\n" + rows(3, first=3))
            watch.until(lambda: watch.counts() == {"eth0": 6 * BURST, "eth1": 6 * BURST})
            watch.until(lambda: "1 record far ahead left out" in watch.watch.hub.document()["sources"][0]["said"])
        assert len(watch.bursts) == 12
        assert "late" not in watch.watch.hub.document()["sources"][0]["said"]

    def test_a_stream_of_messages_that_grows_goes_on_after_a_new_start(self, tmp_path: Path) -> None:
        data, state = (ROOT / "examples" / "traces" / "sflow.pcap").read_bytes(), tmp_path / "state.json"
        rate: dict[str, Any] = {"above": None}
        whole = once(ROOT / "examples" / "traces" / "sflow.pcap", settings=rate)
        records = sum(whole.counts().values())
        assert records > 40
        file = tmp_path / "sflow.pcap"
        file.write_bytes(data[: len(data) // 2])
        with running(file, state=state, settings=rate) as first:
            first.until(lambda: sum(first.counts().values()) > 0)
            first.until(lambda: first.watch.hub.sources[0].live.used() > len(data) // 2 - 2000)
        with file.open("ab") as more:
            more.write(data[len(data) // 2 :])
        second = once(file, state=state, settings=rate)
        assert sum(first.counts().values()) + sum(second.counts().values()) == records
        assert {**first.counts(), **second.counts()}.keys() == whole.counts().keys()
        assert places(state)[str(file)]["sflow.pcap"]["offset"] == len(data)

    def test_a_table_of_lanz_that_grows_shows_its_bursts(self, tmp_path: Path) -> None:
        text = (ROOT / "examples" / "traces" / "lanz.csv").read_text()
        settings = {"above": "50KB", "columns": "queue=Queue-Length:segments(208B)"}
        whole = once(written(tmp_path / "whole.csv", text), settings=settings)
        assert len(whole.bursts) > 2
        lines = text.splitlines(keepends=True)
        file = written(tmp_path / "lanz.csv", "".join(lines[:6]))
        with running(file, settings=settings) as watch:
            watch.until(lambda: watch.watch.hub.found == 1)
            append(file, "".join(lines[6:]))
            watch.until(lambda: watch.watch.hub.found == len(whole.bursts))
        assert [burst.report for burst in watch.bursts] == [burst.report for burst in whole.bursts]

    def test_a_new_start_goes_on_where_the_last_one_was(self, tmp_path: Path) -> None:
        file, state = written(tmp_path / "a.csv", HEADER + rows(5)), tmp_path / "state.json"
        text = rows(5, first=5)
        append(file, text[:500])  # the last line is not whole
        with running(file, state=state) as first:
            first.until(lambda: first.counts().get("eth0", 0) >= 5 * BURST)
        place = places(state)[str(file)]["a.csv"]
        assert place["offset"] == len(HEADER + rows(5)) + text[:500].rfind("\n") + 1
        append(file, text[500:])
        second = once(file, state=state)
        both = {port: first.counts().get(port, 0) + second.counts().get(port, 0) for port in ("eth0", "eth1")}
        assert both == {"eth0": 10 * BURST, "eth1": 10 * BURST}
        # Rotated while nobody watched: the rest of the old one is read, then the new one.
        append(file, rows(3, first=10))
        file.rename(tmp_path / "a.csv.1")
        written(file, HEADER + rows(2, first=13))
        third = once(file, state=state)
        assert third.counts() == {"eth0": 5 * BURST, "eth1": 5 * BURST}
        assert once(file, state=state).counts() == {}
        # Truncated, then rotated.
        written(file, HEADER + rows(1, first=15))
        file.rename(tmp_path / "a.csv.1")
        written(file, HEADER + rows(1, first=16))
        assert once(file, state=state).counts() == {"eth0": 2 * BURST, "eth1": 2 * BURST}
        # Another file under the same number is no old one.
        written(file, HEADER + rows(2, first=50))
        assert once(file, state=state).counts() == {"eth0": 2 * BURST, "eth1": 2 * BURST}

    def test_what_comes_while_places_are_written_is_told_once_by_whoever_is_killed_then(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file, state = written(tmp_path / "a.csv", HEADER + rows(5)), tmp_path / "state.json"
        first: set[tuple[str, int]] = set()
        begun, left, write = threading.Event(), list[str](), Positions.write

        def slowly(positions: Positions) -> str | None:
            kept = write(positions)
            begun.wait()
            size = file.stat().st_size
            if size == len(HEADER + rows(5)) and places(state).get(str(file)):
                append(file, rows(5, first=5))
                watch.until(lambda: watch.watch.hub.sources[0].counts.bytes > size)
            return kept

        def tell(bursts: list[Burst]) -> Callable[[], None]:
            def told() -> None:
                if bursts and not left:
                    first.update((burst.port, burst.report["start_ps"]) for burst in bursts)
                    left.append(state.read_text())  # killed here, it leaves this

            return told

        monkeypatch.setattr(Positions, "write", slowly)
        with running(file, state=state, told=tell) as watch:
            begun.set()
            watch.until(lambda: left != [])
        monkeypatch.undo()
        again = once(file, state=written(tmp_path / "left.json", left[0]))
        second = {(burst.port, burst.report["start_ps"]) for burst in again.bursts}
        assert len(first) >= 10
        assert first.isdisjoint(second)

    def test_only_what_is_new_where_that_is_asked_for(self, tmp_path: Path) -> None:
        file = written(tmp_path / "a.csv", HEADER + rows(5))
        with running(file, new=True) as watch:
            watch.until(lambda: watch.watch.hub.sources[0].counts.opened == 1)
            append(file, rows(3, first=5))
            watch.until(lambda: watch.counts().get("eth1") == 3 * BURST)
        assert len(watch.bursts) == 6

    def test_a_folder_takes_files_as_they_come_and_passes_over_what_is_none(self, tmp_path: Path) -> None:
        folder, state = tmp_path / "in", tmp_path / "state.json"
        folder.mkdir()
        written(folder / "1.csv", HEADER + rows(2))
        written(folder / "2.csv.gz", "packed")
        written(folder / ".hidden", "no")
        with running(folder, state=state) as watch:
            watch.until(lambda: watch.counts().get("eth0") == 2 * BURST)
            written(folder / "3.csv", "no,table\nat,all\n")
            watch.until(lambda: watch.watch.hub.sources[0].counts.refused == 1)
            assert "time" in str(watch.watch.hub.sources[0].problem)
            written(tmp_path / "4", HEADER + rows(3, first=2)).rename(folder / "4.csv")
            watch.until(lambda: watch.counts().get("eth0") == 5 * BURST)
        assert set(places(state)[str(folder)]) == {"1.csv", "3.csv", "4.csv"}
        # A new start that goes on: what was read is not read again.
        with running(folder, state=state) as again:
            written(folder / "6.csv", HEADER + rows(1, first=5))
            again.until(lambda: again.counts().get("eth0") == BURST)
            time.sleep(1.2)
        assert again.counts() == {"eth0": BURST, "eth1": BURST}
        assert set(places(state)[str(folder)]) == {"1.csv", "3.csv", "4.csv", "6.csv"}
        written(folder / "5.csv", HEADER + rows(1, first=6))
        assert once(folder, state=state).counts() == {"eth0": BURST, "eth1": BURST}
        assert len(watch.bursts) == 10


class TestStreams:
    def test_a_named_pipe_has_one_writer_after_another(self, tmp_path: Path) -> None:
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        with running(pipe) as watch:
            for turn in range(3):
                with pipe.open("w") as writer:
                    writer.write(HEADER + rows(2, first=2 * turn))
                watch.until(lambda: watch.counts().get("eth0") == 2 * (turn + 1) * BURST)  # noqa: B023 (called at once)
                watch.until(lambda: watch.watch.hub.sources[0].state()[0] == "waiting")
        assert len(watch.bursts) == 12

    def test_an_unreadable_writer_of_a_pipe_is_told_of_once_and_the_next_one_is_read(self, tmp_path: Path) -> None:
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        with running(pipe) as watch:
            source = watch.watch.hub.sources[0]
            for turn in range(2):
                with pipe.open("w") as writer:
                    writer.write("no,table\nat,all\n" * 2000)
                watch.until(lambda: source.counts.refused == turn + 1)  # noqa: B023 (called at once)
                watch.until(lambda: source.state()[0] == "refused")
                # A writer who comes before the end of the one before was noticed is, to a pipe, the same writer.
                watch.until(lambda: not source._connected)
                with pipe.open("w") as writer:
                    writer.write(HEADER + rows(2, first=2 * turn))
                watch.until(lambda: watch.counts().get("eth0") == 2 * (turn + 1) * BURST)  # noqa: B023 (called at once)
                watch.until(lambda: source.problem is None)
        assert len(watch.bursts) == 8
        assert len(watch.said) == 1
        assert "time: is not found" in watch.said[0]

    def test_messages_of_lanz_come_over_a_connection(self) -> None:
        with (
            socket.create_server(("127.0.0.1", 0)) as server,
            running(f"tcp://127.0.0.1:{server.getsockname()[1]}", settings={"above": "1MB"}) as watch,
        ):
            for turn in range(2):
                connection, _ = server.accept()
                with connection:
                    for message in lanz(3, first=3 * turn):
                        connection.sendall(message[:5])
                        connection.sendall(message[5:])
                    watch.until(lambda: watch.watch.hub.found == 3 * (turn + 1))  # noqa: B023 (called at once)
        assert [(burst.port, burst.report["peak_bytes"]) for burst in watch.bursts] == [("Et1(1)", 9_000 * 512)] * 6
        assert watch.watch.hub.reports[watch.watch.hub.sources[0].name]["kind"] == "lanz"

    def test_unreadable_datagrams_end_nothing(self) -> None:
        port = free_port(socket.SOCK_DGRAM)
        with (
            running(f"udp://127.0.0.1:{port}") as watch,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
        ):
            source = watch.watch.hub.sources[0]
            watch.until(lambda: source.counts.opened == 1)
            for line in ("no,table", "at,all", "but,text"):
                sender.sendto(line.encode(), ("127.0.0.1", port))
            watch.until(lambda: source.state()[0] == "alive")
            # After some seconds it is plain that nothing can be read of it; the datagram that comes then begins anew.
            time.sleep(4.5)
            for line in (HEADER + rows(2)).splitlines(keepends=True):
                sender.sendto(line.encode(), ("127.0.0.1", port))
            watch.until(lambda: len(watch.said) == 1)
            for line in rows(2, first=2).splitlines(keepends=True):
                sender.sendto(line.encode(), ("127.0.0.1", port))
            watch.until(lambda: watch.counts() == {"eth0": 4 * BURST, "eth1": 4 * BURST})
            assert source.state()[0] == "alive"
        assert source.counts.refused == 1

    def test_datagrams_of_sflow_have_the_time_at_which_they_came(self) -> None:
        port = free_port(socket.SOCK_DGRAM)
        with (
            running(f"udp://127.0.0.1:{port}", settings={"above": None}) as watch,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
        ):
            source = watch.watch.hub.sources[0]
            watch.until(lambda: source.counts.opened == 1)
            sender.sendto(b"hello", ("127.0.0.1", port))
            begun = before = time.time()
            octets = 0.0
            for i in range(40):
                # 1.25 GB a second are 10 Gb/s: ten of forty are busy, whatever time lies between two.
                now = time.time()
                octets += (now - before) * (1_200_000_000 if 10 < i <= 20 else 100_000_000)
                before = now
                sender.sendto(sflow(i + 1, int(octets)), ("127.0.0.1", port))
                if i == 20:
                    sender.sendto(b"\0" * 40, ("127.0.0.1", port))
                time.sleep(0.01)
            watch.until(lambda: sum(watch.counts().values()) == 39)
            report = watch.watch.hub.reports[source.name]
            assert (report["kind"], report["refused"]) == ("sflow", 2)
            assert len(watch.said) == 1
            assert watch.said[0].endswith("'text' is no datagram that can be read; accepted: sFlow, as those after it are")
            latest, _ = watch.watch.hub.latest(source.name)
            assert begun < latest < time.time() + 1
        assert [burst.port for burst in watch.bursts][:1] == ["10.0.0.1 if 7"]

    def test_an_arrow_stream_comes_by_batches(self, tmp_path: Path) -> None:
        text = HEADER + rows(12)
        frame = pl.read_csv(text.encode()).with_columns(pl.col("port").cast(pl.Categorical))
        sink = io.BytesIO()
        parts = list(frame.iter_slices(50))
        pl.concat(parts, rechunk=False).write_ipc_stream(sink, compat_level=pl.CompatLevel.oldest())
        data = sink.getvalue()
        plain = once(written(tmp_path / "a.csv", text))
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        with running(pipe) as watch:
            for turn in range(2):
                with pipe.open("wb") as writer:
                    for at in range(0, len(data), 777):
                        writer.write(data[at : at + 777])
                        writer.flush()
                if not turn:
                    watch.until(lambda: watch.counts() == plain.counts())
                    watch.until(lambda: watch.watch.hub.found == len(plain.bursts))
                    # A writer who comes before the end of the one before was noticed is, to a pipe, the same writer.
                    watch.until(lambda: not watch.watch.hub.sources[0]._connected)
            # The second time all but the last records are before what was known.
            ports = watch.watch.hub.ports
            watch.until(lambda: sum(port.report["late"] for port in ports.values()) >= len(frame) - 2 * 2)
        shown = [
            (burst.port, burst.report["start_ps"], burst.report["peak_bytes"], burst.report["direct"][0]["name"])
            for burst in plain.bursts
        ]
        of_arrow = [
            (burst.port, burst.report["start_ps"], burst.report["peak_bytes"], burst.report["direct"][0]["name"])
            for burst in watch.bursts
        ]
        assert of_arrow == shown

    def test_a_connection_is_made_anew(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            with running(f"tcp://127.0.0.1:{port}") as watch:
                for turn in range(2):
                    connection, _ = server.accept()
                    with connection:
                        connection.sendall((HEADER + rows(2, first=2 * turn)).encode())
                    watch.until(lambda: watch.counts().get("eth0") == 2 * (turn + 1) * BURST)  # noqa: B023 (called at once)
        assert len(watch.bursts) == 8

    def test_datagrams_are_whole_lines(self) -> None:
        port = free_port(socket.SOCK_DGRAM)
        columns = {"columns": "time=t:ns,queue=q:B"}
        with (
            running(f"udp://127.0.0.1:{port}", settings=columns) as watch,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
        ):
            watch.until(lambda: watch.watch.hub.sources[0].counts.opened == 1)
            for i in range(200):
                queue = 30_000 if 100 <= i < 110 else 0
                sender.sendto(json.dumps({"t": 1_000_000 * (i + 1), "q": queue}).encode(), ("127.0.0.1", port))
            watch.until(lambda: sum(watch.counts().values()) == 200)
        assert [burst.report["peak_bytes"] for burst in watch.bursts] == [30_000]
        assert watch.watch.hub.sources[0].counts.lost == 0

    def test_a_stalled_source_is_unknown_and_not_zero(self, tmp_path: Path) -> None:
        file = written(tmp_path / "a.csv", HEADER + rows(2))
        with running(file, stall="300ms") as watch:
            source = watch.watch.hub.sources[0]
            watch.until(lambda: watch.counts().get("eth0") == 2 * BURST)
            watch.until(lambda: source.state()[0] == "stalled")
            document = watch.watch.hub.document()
            assert [port["cells"][1:3] for port in document["ports"]] == [["unknown", "unknown"]] * 2
            assert set(document["strips"][0]["level"][:-1]) == {-1}, "before the first record nothing is known"
            source._patience = 600.0  # what comes now is not stalled again before this test looks
            append(file, rows(1, first=2))
            watch.until(lambda: source.state()[0] == "alive")
            watch.until(lambda: watch.watch.hub.document()["ports"][0]["cells"][2] == "0 B")

    def test_a_source_stalls_however_the_clock_of_the_machine_is_set(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        real = time.time
        with running(written(tmp_path / "a.csv", HEADER + rows(2)), stall="300ms") as watch:
            watch.until(lambda: watch.counts().get("eth0") == 2 * BURST)
            monkeypatch.setattr(time, "time", lambda: real() - 3600)
            watch.until(lambda: watch.watch.hub.sources[0].state()[0] == "stalled")

    def test_a_gap_between_samples_ends_a_burst(self, tmp_path: Path) -> None:
        samples = [(i, 80_000 if 100 <= i < 110 or 310 <= i < 320 else 0) for i in range(400) if not 110 <= i < 310]
        file = written(tmp_path / "a.csv", "time_us,queue_bytes\n" + "".join(f"{100 * i},{queue}\n" for i, queue in samples))
        watch = once(file)
        assert [(burst.report["open"], burst.report["cut"]) for burst in watch.bursts] == [(True, False), (False, True)]
        (gap,) = watch.watch.hub.gaps
        assert (gap["from_ps"], gap["to_ps"], gap["why"]) == (10_900_000_000, 31_000_000_000, "gap")
        (port,) = watch.watch.hub.document()["ports"]
        assert port["cells"][8] == "20.1 ms (gap)"

    def test_a_port_of_which_nothing_comes_any_more_is_unknown_and_its_burst_no_standing_one(self, tmp_path: Path) -> None:
        both = ((i, name) for i in range(2500) for name in ("a", "b") if name == "a" or i < 1000)
        text = "".join(f"{i},{name},{80_000 if name == 'b' and i > 990 else 0}\n" for i, name in both)
        standing = written(tmp_path / "r.toml", '[[rule]]\nname = "standing"\nqueue = "50KB"\nduration = "100ms"\n')
        file = written(tmp_path / "a.csv", "time_ms,port,queue_bytes\n" + text)
        with running(file, page=True, rules=rules.read(standing), stall="600s") as watch:
            watch.until(lambda: watch.counts() == {"a": 2500, "b": 1000})
            shown = {port["cells"][0]: port["cells"][1:3] for port in watch.watch.hub.document()["ports"]}
            assert shown == {"a": ["quiet", "0 B"], "b": ["unknown: no records", "unknown"]}
            lost = {port["cells"][0]: port["cells"][8] for port in watch.watch.hub.document()["ports"]}
            assert lost == {"a": "0", "b": "1.5 s (gap)"}
            lines = watch.get("/metrics")[1].splitlines()
            of_b = f'{{port="b",reason="gap",source="{file}"}}'
            assert f"fanin_port_unknown_seconds_total{of_b} 1.5" in lines
            assert f'fanin_port_gaps_total{{port="b",source="{file}"}} 1.0' in lines
            watch.until(lambda: watch.said != [])
            assert watch.said == [f"{file}: b: no records come while others of the source go on: its queue is unknown"]
            append(file, "2500,a,0\n2500,b,0\n")
            watch.until(lambda: {port["cells"][1] for port in watch.watch.hub.document()["ports"]} == {"quiet"})
            assert {port["cells"][0]: port["cells"][8] for port in watch.watch.hub.document()["ports"]}["b"] == "1.501 s (gap)"
            assert f"fanin_port_unknown_seconds_total{of_b} 1.501" in watch.get("/metrics")[1].splitlines()
            assert not any(
                line.startswith(("fanin_port_queue_bytes", "fanin_port_in_burst")) and 'port="b"' in line for line in lines
            )
        assert list(watch.watch.hub.alerts) == []
        assert [(burst.port, burst.report["open"]) for burst in watch.bursts] == [("b", True)], "told when the watch ends"

    def test_why_time_is_unknown_and_what_counters_contradict_is_said(self, tmp_path: Path) -> None:
        # Looks at counters of two devices in turn, then of one, then of one with a clock of another age.
        looks = [(i, (10**12 if i % 2 else 0) + i * 125_000) for i in range(100)] + [(i, i * 125_000) for i in range(100, 200)]
        text = "time_ms,port,tx_bytes\n" + "".join(f"{1000 + i},p,{count}\n" for i, count in looks)
        text += "".join(f"{1050 + i},p,{(250 + i) * 125_000}\n" for i in range(40))
        settings = {"above": None, "by": "rate", "columns": "time=time_ms:ms,port=port,bytes=tx_bytes:total(64)"}
        with running(written(tmp_path / "a.csv", text), page=True, settings=settings, stall="600s") as watch:
            watch.until(lambda: sum(port.report["late"] for port in watch.watch.hub.ports.values()) == 40)
            document = watch.watch.hub.document()
            (port,) = document["ports"]
            assert port["cells"][1] == "unknown: records are late"
            assert port["cells"][8] == "139 ms (contradicting 50 ms, reset 50 ms, late 39 ms)"
            above, mixed = document["sources"][0]["problems"]
            assert above.startswith("p: ") and "above what the line carries" in above
            assert mixed.startswith("p: running counts fall in 50 of 199 intervals; two sources")
            metrics = watch.get("/metrics")[1]
            assert sorted(re.findall(r'_unknown_seconds_total\{.*reason="(\w+)"', metrics)) == ["contradicting", "late", "reset"]
            assert re.findall(r"fanin_port_gaps_total\{.*\} (.*)", metrics) == ["0.0"]
            watch.until(lambda: len(watch.said) == 3)
        assert "above what the line carries" in watch.said[0] and "two sources" in watch.said[1]
        assert "they are left out, and its queue is unknown" in watch.said[2]

    def test_a_capture_most_of_which_is_wrong_is_refused_as_by_an_analysis(self, tmp_path: Path) -> None:
        packets = [(1, sflow(i, 1000 * i)) for i in range(1, 5)] + [(1 + i, sflow(9 + i, 1)[:-9]) for i in range(1, 7)]
        file = tmp_path / "a.pcap"
        file.write_bytes(capture(packets))
        with pytest.raises(fanin.TraceError) as error:
            fanin.analyze(file, rate="10Gbps")
        assert "6 of 10 datagrams are wrong" in str(error.value)
        watch = once(file, settings={"above": None})
        (problem,) = watch.watch.problems
        assert problem == str(error.value)
        # While it grows it is read on; its end, as another file has its name, is when that is said.
        with running(file, settings={"above": None}) as watch:
            watch.until(lambda: watch.watch.hub.reports.get(str(file), {}).get("refused") == 6)
            (tmp_path / "b.pcap").write_bytes(capture([(100 + i, sflow(i, 1000 * i)) for i in range(1, 20)]))
            (tmp_path / "b.pcap").rename(file)
            watch.until(lambda: any("6 of 10 datagrams are wrong" in line for line in watch.said))
            watch.until(lambda: sum(watch.counts().values()) == 3 + 18)


class TestCommand:
    def run(self, *arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*WATCH, *arguments], input=text, capture_output=True, text=True, timeout=120, check=False)

    def test_standard_input_to_its_end(self) -> None:
        done = self.run("-", "--once", "--no-page", "--rate", "10Gbps", "--above", "20KB", "--json", text=HEADER + rows(3))
        assert (done.returncode, done.stderr) == (0, "")
        found = [json.loads(line) for line in done.stdout.splitlines()]
        assert [(one["port"], one["burst"]["peak_bytes"]) for one in found] == [("eth0", 43_500), ("eth1", 43_500)] * 3

    def test_bursts_are_unknown_where_their_time_is(self, tmp_path: Path) -> None:
        # Drops in unknown time, and no known time at all.
        dropped = "".join(f"{second + (60 if second > 5 else 0)},e,{second * 10**6},{7 * (second > 5)}\n" for second in range(12))
        above_line = "".join(f"{second},e,{second * 10**9},\n" for second in range(12))
        options = ["--once", "--no-page", "--rate", "1Gbps", "--columns", "time=t:s,port=p,bytes=b:total,drops=d:total"]
        for looks, count in ((dropped, "7"), (above_line, "–")):
            file = written(tmp_path / "a.csv", "t,p,b,d\n" + looks)
            told = CliRunner().invoke(app, ["watch", str(file), *options], env={"COLUMNS": "150"}).output
            (row,) = (line.split() for line in told.splitlines() if line.strip().startswith("e "))
            assert row[:6] == ["e", "11", "–", "unknown", "–", count], told

    def test_ctrl_c_ends_it_with_a_summary(self, tmp_path: Path) -> None:
        file = written(tmp_path / "a.csv", HEADER + rows(3))
        command = [*WATCH, str(file), "--page", "0", "--above", "20KB"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            line = process.stdout.readline()
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        assert "eth0" in line
        assert "Ports, the worst first" in out
        assert "page: http://127.0.0.1:" in err

    def test_one_that_is_killed_tells_nothing_twice(self, tmp_path: Path) -> None:
        file, state = written(tmp_path / "a.csv", HEADER + rows(20)), tmp_path / "state.json"
        command = [*WATCH, str(file), "--no-page", "--json", "--above", "20KB", "--state", str(state)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(40)]
            append(file, rows(200, first=20))
            lines += [process.stdout.readline() for _ in range(10)]
            process.kill()
            lines += process.stdout.read().splitlines()
        append(file, rows(30, first=220))
        again = subprocess.run([*command, "--once"], capture_output=True, text=True, timeout=120, check=True)
        bursts = map(json.loads, [*filter(str.strip, lines), *again.stdout.splitlines()])
        told = [(one["port"], one["burst"]["start_ps"]) for one in bursts]
        assert len(told) == len(set(told))
        assert 60 + 50 <= len(told) <= 500, "two ports, 250 bursts; those of one turn at most are lost"

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["nowhere/a.csv"], "nowhere/a.csv: there is no such file"),
            (["missing.csv", "--once"], "missing.csv: there is no such file"),
            (["http://127.0.0.1:1"], "http://127.0.0.1:1: is no source; accepted: tcp://HOST:PORT"),
            (["tcp://127.0.0.1"], "tcp://127.0.0.1: is no source"),
            (["udp://127.0.0.1:99", "--once"], "datagrams have no end"),
            (["-", "-"], "-: is given twice"),
            (["-", "--stall", "5"], "--stall: '5' has no unit; accepted: a time"),
            (["-", "--gap", "0s"], "gap: '0s' is no time"),
            (["-", "--rate", "fast"], "rate: 'fast'"),
            (["-", "--state", "nowhere/s.json"], "--state nowhere/s.json: there is no folder nowhere"),
        ],
    )
    def test_what_cannot_be_watched(self, arguments: list[str], said: str) -> None:
        done = self.run(*arguments, "--no-page", text="")
        assert done.returncode == 2
        assert said in done.stderr
        assert "Traceback" not in done.stderr

    def test_a_stream_that_is_none_is_refused_with_the_reason(self, tmp_path: Path) -> None:
        done = self.run("-", "--once", "--no-page", text="a,b\nc,d\n")
        assert done.returncode == 2
        assert "time: is not found" in done.stderr
        assert "stdin: 8 B read" in done.stderr

    def test_a_state_that_is_none_is_refused_in_words_of_the_user(self, tmp_path: Path) -> None:
        state = tmp_path / "state.json"
        place = {"device": 1, "inode": 2, "offset": 3, "fingerprint": "00"}
        for lacking in (None, {}, {**place, "offset": -1}, {**place, "offset": "3"}, {**place, "fingerprint": "xyz"}):
            wrong = {"schema": "watch-state/1", "sources": {"a.csv": {"a.csv": lacking}}}
            written(state, json.dumps({} if lacking is None else wrong))
            with pytest.raises(ValueError, match=r"state.json: is no state of fanin watch; accepted: .* remove it") as error:
                Positions(state)
            assert "__init__" not in str(error.value)
            assert "'schema'" not in str(error.value)
        written(state, json.dumps({"schema": "watch-state/1", "sources": {"a.csv": {"a.csv": place}}}))
        assert Positions(state).get("a.csv", "a.csv") == Place(1, 2, 3, "00")

    def test_nothing_at_all_is_said(self) -> None:
        for text, size in (("", "0 B"), (HEADER, f"{len(HEADER)} B")):
            done = self.run("-", "--once", "--no-page", text=text)
            assert done.returncode == 0
            assert f"stdin: no record has come, in {size}" in done.stderr

    def test_that_nobody_listens_is_said_once_and_no_success(self) -> None:
        nobody = socket.socket()
        nobody.bind(("127.0.0.1", 0))  # and never listens: the port is nobody else's as long
        source = f"tcp://127.0.0.1:{nobody.getsockname()[1]}"
        command = [*WATCH, source, "--no-page"]
        with nobody, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            assert process.stderr.readline() == f"{source}: does not answer: Connection refused\n"
            time.sleep(1.2)  # it is tried again
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
        assert process.returncode == 2
        assert err.count("does not answer") == 1, err
        assert f"error: {source}: does not answer: Connection refused\n" in err

    def test_ctrl_c_while_it_is_loaded_shows_no_traceback(self) -> None:
        late = "import sys, os, signal; sys.meta_path.insert(0, type('Late', (), {'find_spec': staticmethod(lambda name, *_: "
        late += "os.kill(os.getpid(), signal.SIGINT) if name == 'typer' else None)})); from fanin.cli import app; app()"
        done = subprocess.run([sys.executable, "-c", late, "watch", "-"], capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (-signal.SIGINT, "")


REPLAY = """
import sys, threading
stop = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
rows = [(int(at), rest) for at, rest in (line.split(",", 1) for line in open(sys.argv[1]))]
turns = 0
with open(sys.argv[2], "w") as pipe:
    pipe.write(sys.argv[3])
    while not stop.is_set():
        pipe.write("".join(f"{at + turns * 6_000_000},{rest}" for at, rest in rows))
        turns += 1
print(turns)
"""
"""A program that writes rows again and again until its input ends, and says how often: its memory is not the watch's."""


def resident() -> int:
    """Return the bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_disk_that_is_full_ends_no_watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Places that cannot be written are said once, and written as soon as they can be; at the start that is an error."""
    log, state = written(tmp_path / "log.csv", HEADER + rows(2)), tmp_path / "state.json"
    real, full = files.write_text, threading.Event()

    def write_text(path: Path, text: str) -> None:
        if full.is_set():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        real(path, text)

    monkeypatch.setattr(files, "write_text", write_text)
    with running(log, state=state) as watch:
        watch.until(lambda: sum(watch.counts().values()) == 4 * BURST)
        full.set()
        for first in (2, 4):
            with log.open("a") as more:
                more.write(rows(2, first=first))
            wanted = 2 * BURST * (first + 2)
            watch.until(partial(lambda wanted: sum(watch.counts().values()) == wanted, wanted))
        (unkept,) = watch.watch.missing()
        assert unkept == f"--state {state}: {os.strerror(errno.ENOSPC)}: a new start would count again what was read since"
        assert watch.said.count(unkept) == 1
        full.clear()
        watch.until(lambda: f"--state {state}: is written again" in watch.said)
    assert json.loads(state.read_text())["sources"][str(log)]["log.csv"]["offset"] == log.stat().st_size
    assert watch.watch.missing() == []
    full.set()
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        Watch([str(log)], {"rate": "10Gbps", "above": "20KB"}, Choices(once=True, state=state)).run(lambda _: None)


def test_a_unit_that_reports_leave_open_is_asked_for_and_holes_are_those_of_an_analysis() -> None:
    trace = ROOT / "examples" / "traces" / "int.pcap"
    watched = ["watch", str(trace), "--once", "--no-page", "--rate", "10Gbps", "--above", "120KB"]
    refused = CliRunner().invoke(app, watched)
    assert refused.exit_code == 2, refused.output
    assert "queue-occupancy: '0' counts bytes, cells or packets" in " ".join(refused.output.split())
    unit = "queue=queue-occupancy:cells(208B)"
    watch = once(trace, settings={"above": "120KB", "columns": unit})
    (port,) = (port.report for port in watch.watch.hub.ports.values())
    (found,) = fanin.analyze(trace, rate="10Gbps", above="120KB", columns=unit).document["ports"]
    unknown = {one["state"]: one for one in found["counted"]["unknown"]}
    assert (port["gaps"], port["gap_ps"]) == (unknown["gap"]["intervals"], unknown["gap"]["ps"]) == (2, port["unknown_ps"]["gap"])
    assert (port["bursts"], port["peak_bytes"], port["peak_at_least"]) == (3, found["peak_bytes"], True)


def test_a_port_is_made_once_however_often_it_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[str, str]] = []

    class Counted(Port):
        def __init__(self, source: str, name: str) -> None:
            made.append((source, name))
            super().__init__(source, name)

    monkeypatch.setattr("fanin.watch.hub.Port", Counted)
    watch = once(written(tmp_path / "a.csv", HEADER + rows(20)))
    assert (len(watch.bursts), len(made)) == (40, 2)
    assert made == list(watch.watch.hub.ports)


@pytest.mark.skipif(not Path("/proc/self/statm").is_file(), reason="there is no /proc: memory cannot be measured")
def test_memory_is_flat_and_counts_are_exact(tmp_path: Path) -> None:
    """A soak of some 20 s after a warm-up by count; `make soak-watch` is one of an hour."""
    seconds = float(os.environ.get("FANIN_SOAK_S", "20"))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    # A second of 32 ports, replayed at later times: the same flows again and again, and some new ones.
    block = written(tmp_path / "block", rows(4, ports=32, each=200))
    each = len(block.read_text().splitlines())
    replay = [sys.executable, "-c", REPLAY, str(block), str(pipe), HEADER]
    peaks: Counter[int] = Counter()

    def told(bursts: list[Burst]) -> None:
        peaks.update(burst.report["peak_bytes"] for burst in bursts)

    with (
        running(pipe, keep=200, told=told, page=True, cell="5ms") as watch,
        subprocess.Popen(replay, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer,
    ):
        # Until all that is bounded is full: bursts, the strip, and what is read ahead while nobody takes what has ended.
        watch.until(lambda: watch.watch.hub.found > 5_000, max(400, seconds / 2))
        watch.until(lambda: -1 not in watch.watch.hub.document()["strips"][-1]["level"], max(400, seconds / 2))
        source = watch.watch.hub.sources[0]
        for _ in range(3):
            with watch.watch.hub.lock:
                watch.until(lambda: source._untold > sources._AHEAD)
        # A list that grows is half a megabyte in an hour.
        levels = array("q", bytes(8 * max(12, round(seconds * 4))))
        for tick in range(len(levels)):
            time.sleep(0.25)
            if tick % 4 == 0:
                assert watch.get("/metrics")[0] == 200
            levels[tick] = resident()
        turns = int(writer.communicate(timeout=600)[0])
        sent = turns * each
        watch.until(lambda: sum(watch.counts().values()) == sent)
        assert len(watch.watch.hub.bursts) == 200
    # Lower quartiles: what is held, without what is on its way.
    thirds = (levels[: len(levels) // 3], levels[-len(levels) // 3 :])
    first, last = (sorted(part)[len(part) // 4] for part in thirds)
    said = f"lower quartiles {first:,} and {last:,} bytes ({(last - first) / first:+.2%}), all {min(levels):,} to {max(levels):,}"
    print(f"{seconds:g} s: {sent:,} rows, {watch.watch.hub.found:,} bursts; memory: {said}")
    assert peaks == {198 * 1500: 4 * 32 * turns}
    assert watch.watch.hub.found == 4 * 32 * turns
    assert abs(last - first) <= max(0.01 * first, 2**20), f"memory went from {first:,} to {last:,} bytes"
