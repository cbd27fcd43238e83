"""What a trace may come from and as: pipes, JSON lines, Arrow, dates; and how the terminal shows it."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import pty
import re
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import fanin
from fanin.analysis.clock import Clock, read_zone
from fanin.cli import app
from fanin.files import spool

START = 1_795_368_600_123_456_789
"""2026-11-22T17:30:00.123456789Z"""


def rows() -> list[dict[str, Any]]:
    """A burst of 400 packets at 10 Gb/s, from the same second on, that nine senders make."""
    made = []
    for i in range(600):
        depth = max(0, min(i - 50, 450 - i)) * 1518
        made.append(
            {
                "ts": START + 1_230 * i,
                "qlen": depth,
                "port": "Eth1/1",
                "len": 1518,
                "flow": f"10.0.0.{i % 9}:4000 > 10.0.0.99:80 tcp",
            }
        )
    return made


def csv(path: Path) -> Path:
    pl.DataFrame(rows()).rename({"ts": "ts_ns", "qlen": "qlen_B"}).write_csv(path)
    return path


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return csv(tmp_path_factory.mktemp("trace") / "a.csv")


@pytest.fixture(scope="module")
def wanted(trace: Path) -> list[dict[str, Any]]:
    ports: list[dict[str, Any]] = fanin.analyze(trace, rate="10Gbps").document["ports"]
    assert ports[0]["bursts_found"] == 1
    return ports


def open_files() -> int:
    return sum(1 for _ in Path("/dev/fd").iterdir())


def command(*words: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "-c", "from fanin.cli import app; app()", "analyze", *map(str, words)]
    return subprocess.run(call, capture_output=True, text=True, check=False, timeout=60, **options)


class TestPipes:
    def test_standard_input_piped_and_redirected(self, trace: Path, wanted: list[dict[str, Any]]) -> None:
        done = [command("-", "--rate", "10Gbps", "--top", "10", "--json", input=trace.read_text())]
        with trace.open() as file:
            done.append(command("-", "--rate", "10Gbps", "--top", "10", "--json", stdin=file))
        with trace.open() as file:
            done.append(command("/dev/stdin", "--rate", "10Gbps", "--top", "10", "--json", stdin=file))
        for outcome in done:
            document = json.loads(outcome.stdout)
            assert document["ports"] == wanted, outcome.stderr
        assert json.loads(done[0].stdout)["sources"] == [{"path": "stdin", "kind": "csv", "records": 600, "taken": None}]

    def test_process_substitution_and_a_page(self, trace: Path, tmp_path: Path, wanted: list[dict[str, Any]]) -> None:
        packed = tmp_path / "a.csv.gz"
        packed.write_bytes(gzip.compress(trace.read_bytes()))
        script = (
            f'"{sys.executable}" -c "from fanin.cli import app; app()" analyze <(cat "{packed}") --rate 10Gbps --top 10 --json '
            f'-o "{tmp_path}/page.html"'
        )
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
        document = json.loads(done.stdout)
        assert document["ports"] == wanted
        assert document["sources"][0]["path"] == "pipe"
        assert "1 burst" in (tmp_path / "page.html").read_text()

    def test_a_named_pipe_and_figures_after_it(self, trace: Path, tmp_path: Path, wanted: list[dict[str, Any]]) -> None:
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)

        def feed() -> None:
            time.sleep(0.3)
            with pipe.open("wb") as file:
                for part in (trace.read_bytes()[:1000], trace.read_bytes()[1000:]):
                    file.write(part)
                    file.flush()
                    time.sleep(0.1)

        feeding = threading.Thread(target=feed)
        feeding.start()
        found = fanin.analyze(pipe, rate="10Gbps")
        feeding.join()
        assert found.document["ports"] == wanted
        frame, count, _ = found.series("Eth1/1", 0, 2**62)
        assert (frame.height, count) == (600, 600)

    def test_without_a_port_it_is_named_after_where_it_comes_from(self, trace: Path) -> None:
        text = "\n".join(",".join(line.split(",")[:2]) for line in trace.read_text().splitlines())
        done = command("-", "--rate", "10Gbps", "--json", input=text)
        assert json.loads(done.stdout)["ports"][0]["port"] == "stdin"
        done = command("-", "--rate", "10Gbps", input=text.replace("1518", "x"))
        assert re.search(r"^error: stdin: line \d+: qlen_B: 'x' is not a number", done.stderr, re.MULTILINE)

    def test_what_cannot_be_read_says_so(self, trace: Path) -> None:
        done = command("-", "-", input=trace.read_text())
        assert (done.returncode, done.stderr) == (2, "error: stdin: is given twice\n")
        assert command("-", input="").stderr == (
            "error: stdin: is empty: nothing was written to it; was what should write it stopped at once, or without the right to "
            "capture?\n"
        )
        leader, follower = pty.openpty()
        with os.fdopen(leader, "rb"), os.fdopen(follower, "rb") as terminal:
            done = command("-", stdin=terminal)
        assert (done.returncode, done.stderr) == (2, "error: -: standard input is a terminal; pipe a trace into it\n")
        script = f'"{sys.executable}" -c "from fanin.cli import app; app()" analyze - <&-'
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (2, "error: stdin: cannot be read: it is closed\n")

    def test_a_full_disk_is_said_with_what_to_do(self, trace: Path, tmp_path: Path) -> None:
        def small() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, resource.RLIM_INFINITY))

        environment = os.environ | {"TMPDIR": str(tmp_path)}
        done = command("-", input=trace.read_text(), preexec_fn=small, env=environment)
        assert done.returncode == 1
        assert done.stderr.startswith(f"error: stdin: no room for it in {tmp_path}, after "), done.stderr
        assert done.stderr.endswith("set TMPDIR to a folder with more room\n")
        assert list(tmp_path.iterdir()) == [], "what it kept had no name"

    def test_nothing_is_kept_after_the_analysis(self, trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        before = open_files()
        writer = threading.Thread(target=lambda: pipe.write_bytes(trace.read_bytes()))
        writer.start()
        spooled = spool.spool([str(pipe), str(trace)])
        assert spooled.paths[1] == str(trace)
        assert Path(spooled.paths[0]).read_bytes() == trace.read_bytes()
        assert spooled.shown == {spooled.paths[0]: str(pipe)}
        writer.join()  # it has the pipe open
        del spooled
        assert open_files() == before


class TestFormats:
    def test_json_lines_and_arrow_are_read_as_csv_is(self, trace: Path, tmp_path: Path, wanted: list[dict[str, Any]]) -> None:
        frame = pl.read_csv(trace)
        frame.write_ndjson(tmp_path / "a.jsonl")
        (tmp_path / "a.json.gz").write_bytes(gzip.compress((tmp_path / "a.jsonl").read_bytes()))
        for name, compression in (("a", "uncompressed"), ("b", "lz4"), ("c", "zstd")):
            options: dict[str, Any] = {"compression": compression}
            frame.write_ipc(tmp_path / f"{name}.arrow", **options)
            frame.write_ipc_stream(tmp_path / f"{name}.arrows", **options)
        frame.cast({"port": pl.Categorical}).write_ipc(tmp_path / "d.arrow", compat_level=pl.CompatLevel.oldest())
        for path in sorted(tmp_path.iterdir()):
            found = fanin.analyze(path, rate="10Gbps")
            assert found.document["ports"] == wanted, path
            assert found.document["sources"][0]["kind"] == ("jsonl" if "json" in path.name else "arrow")

    @pytest.mark.parametrize("kind", ["csv", "jsonl", "arrow"])
    def test_what_convert_writes(self, tmp_path: Path, kind: str) -> None:
        scenario = Path(__file__).parents[2] / "scenarios" / "papers" / "s-ecn" / "sync.toml"
        short = fanin.Scenario.from_file(scenario).replace({"duration": "12ms"})
        result = fanin.run(short, tmp_path / "out", progress=False)
        done = CliRunner().invoke(app, ["convert", str(result.path), "--to", kind, "--table", "queues", "-o", str(tmp_path)])
        assert done.exit_code == 0, done.stderr
        found, exact = (fanin.analyze(path, rate="1Gbps") for path in (tmp_path / f"queues.{kind}", result))
        for mine, theirs in zip(found.document["ports"], exact.document["ports"], strict=True):
            for key in ("port", "records", "first_ps", "last_ps", "peak_bytes", "peak_ps", "bursts_found", "dropped", "marked"):
                assert mine[key] == theirs[key], key

    def test_a_cut_gzip_keeps_what_it_has(self, trace: Path, tmp_path: Path) -> None:
        whole = gzip.compress(trace.read_bytes())
        path = tmp_path / "a.csv.gz"
        path.write_bytes(whole[: len(whole) // 2])
        found = fanin.analyze(path, rate="10Gbps")
        assert 100 < found.document["ports"][0]["records"] < 600
        assert any("a.csv.gz: the file is cut short: its gzip data end at byte" in note for note in found.notes)

    def test_nested_keys_by_their_paths(self, tmp_path: Path, wanted: list[dict[str, Any]]) -> None:
        lines = [
            json.dumps(
                {
                    "at": {"ns": row["ts"]},
                    "tags": {"if": row["port"]},
                    "queue": {"depth": row["qlen"]},
                    "five": row["flow"],
                    "n": 1518,
                }
            )
            for row in rows()
        ]
        (tmp_path / "a.jsonl").write_text("\n".join(lines))
        columns = {"time": "at.ns:ns", "port": "tags.if", "queue": "queue.depth:B", "flow": "five", "frame": "n"}
        assert fanin.analyze(tmp_path / "a.jsonl", rate="10Gbps", columns=columns).document["ports"] == wanted


class TestDates:
    def test_dates_in_any_form_are_the_same_times(self, tmp_path: Path, wanted: list[dict[str, Any]]) -> None:
        def written(form: str) -> Path:
            frame = pl.DataFrame(rows()).with_columns(time=pl.from_epoch("ts", time_unit="ns"))
            shown = frame.with_columns(time=pl.col("time").dt.strftime(form)).select("time", "port", "flow", "len", qlen_B="qlen")
            shown.write_csv(tmp_path / "a.csv", quote_style="always")
            return tmp_path / "a.csv"

        for form in ("%Y-%m-%dT%H:%M:%S%.9fZ", "%Y-%m-%d %H:%M:%S%.9f+00:00", "%Y/%m/%d %H:%M:%S%.9f UTC"):
            assert fanin.analyze(written(form), rate="10Gbps").document["ports"] == wanted, form
        found = fanin.analyze(written("%Y-%m-%d %H:%M:%S,%9f"), rate="10Gbps")
        assert found.document["ports"] == wanted
        assert any("its dates have no time zone and are taken as UTC" in note for note in found.notes)
        found = fanin.analyze(written("%Y-%m-%dT%H:%M:%S%.9f+01:00"), rate="10Gbps")
        assert found.origin_s == START // 10**9 - 3600

    def test_epoch_seconds_keep_their_digits(self, tmp_path: Path, wanted: list[dict[str, Any]]) -> None:
        frame = pl.DataFrame(rows())
        seconds = pl.format("{}.{}", pl.col("ts") // 10**9, (pl.col("ts") % 10**9).cast(pl.String).str.zfill(9))
        frame.select("port", "flow", "len", timestamp=seconds, qlen_B="qlen").write_csv(tmp_path / "a.csv")
        assert fanin.analyze(tmp_path / "a.csv", rate="10Gbps").document["ports"] == wanted

    @pytest.mark.parametrize(
        ("zone", "shown"),
        [
            (None, "2026-11-22T17:30:00.123542889Z"),
            ("+05:30", "2026-11-22T23:00:00.123542889+05:30"),
            ("Europe/Berlin", "2026-11-22T18:30:00.123542889+01:00"),
        ],
    )
    def test_the_start_of_a_burst_can_be_found_in_other_logs(self, trace: Path, zone: str | None, shown: str) -> None:
        more = ["--zone", zone] if zone else []
        done = CliRunner().invoke(app, ["analyze", str(trace), "--rate", "10Gbps", *more])
        assert done.exit_code == 0, done.stderr
        assert re.search(rf"^ 0 .*{re.escape(shown)} ", done.stdout, re.MULTILINE), done.stdout
        found = fanin.analyze(trace, rate="10Gbps", zone=zone)
        burst = found.burst()
        assert found.clock is not None
        assert burst is not None
        assert found.clock.text(burst["start_ps"]) == shown
        assert shown in found._repr_html_()
        at = found.origin_s * 10**12 + burst["start_ps"]
        assert at // 1000 in [row["ts"] for row in rows()], "that of a packet"

    def test_local_time_and_zones_that_there_are_not(self, trace: Path, tmp_path: Path) -> None:
        environment = os.environ | {"TZ": "America/New_York"}
        done = command(trace, "--rate", "10Gbps", "--zone", "local", env=environment)
        assert "2026-11-22T12:30:00.123542889-05:00" in done.stdout
        done = command(trace, "--rate", "10Gbps", "--zone", "Mars/Olympus")
        accepted = "accepted: UTC, local, +01:00, a name such as Europe/Berlin"
        assert (done.returncode, done.stderr) == (2, f"error: zone: 'Mars/Olympus' is no time zone; {accepted}\n")
        for zone in ("+1", "+24:00", "+01:60", "../etc/passwd", "+0a:00"):
            with pytest.raises(ValueError, match="is no time zone"):
                read_zone(zone)
        plain = tmp_path / "b.csv"
        plain.write_text("time_ns,queue_bytes\n1,2\n2,3\n")
        with pytest.raises(ValueError, match="zone: 'UTC' has no effect: the times of this trace are no dates"):
            fanin.analyze(plain, zone="UTC")
        assert fanin.analyze(plain).clock is None
        done = command(trace, "--json", "--zone", "UTC")
        assert (done.returncode, "without effect beside --json" in done.stderr) == (2, True)

    def test_nanoseconds_are_never_rounded_up(self) -> None:
        assert Clock(1_795_368_600).text(999_999_999_999) == "2026-11-22T17:30:00.999999999Z"
        assert Clock(1_795_368_600).text(10**12) == "2026-11-22T17:30:01.000000000Z"


def shown_in_terminal(width: int, words: list[str]) -> list[str]:
    """What a command prints to a terminal of this width."""
    leader, follower = pty.openpty()
    import fcntl
    import struct
    import termios

    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    call = [sys.executable, "-c", "from fanin.cli import app; app()", *words]
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")} | {"TERM": "xterm"}
    text = bytearray()
    with subprocess.Popen(call, stdout=follower, stderr=subprocess.DEVNULL, env=environment):
        os.close(follower)
        with contextlib.suppress(OSError):  # that is how a terminal ends
            while part := os.read(leader, 1 << 16):
                text += part
    os.close(leader)
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text.decode())
    return [line.rstrip() for line in plain.replace("\r", "").splitlines()]


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_terminal_is_too_narrow_for_a_number(trace: Path, wanted: list[dict[str, Any]], width: int) -> None:
    lines = shown_in_terminal(width, ["analyze", str(trace), "--rate", "10Gbps"])
    tables = [line for line in lines if not line.startswith(("Burst 0: ", "A burst: "))]
    assert max(map(len, tables)) <= width
    assert not any("…" in line for line in tables)
    text = "\n".join(tables)
    burst = wanted[0]["bursts"][0]
    for number in ("2026-11-22T17:30:00.123542889Z", "303.6 KB", burst["direct"][0]["name"].split(" ")[0]):
        assert number in text, text
    for head in (
        "Port",
        "Records",
        "Speed",
        "Largest queue",
        "In bursts",
        "Start",
        "Time (UTC)",
        "Duration",
        "Arrived",
        "Law",
        "Share",
    ):
        assert head in text, head
