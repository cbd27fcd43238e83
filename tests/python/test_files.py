"""What is written is whole or not there; what is read is a file."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import fanin
from fanin import files
from fanin.figures import fct_cdf

CLI = [sys.executable, "-B", "-c", "from fanin.cli import app; app()"]


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_an_error_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    target.write_text("old")
    target.chmod(0o640)
    with pytest.raises(ZeroDivisionError), files.replacing(target) as part:
        part.write_text("half")
        raise ZeroDivisionError
    assert (names(tmp_path), target.read_text()) == (["out.json"], "old")
    files.write_text(target, "new")
    assert (names(tmp_path), target.read_text(), target.stat().st_mode & 0o777) == (["out.json"], "new", 0o640)
    with pytest.raises(FileNotFoundError) as caught:
        files.write_text(tmp_path / "absent" / "out.json", "new")
    assert caught.value.filename == str(tmp_path / "absent" / "out.json")


def test_links_and_pipes_stay_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    files.write_text(tmp_path / "link", "text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "text"
    reading, writing = os.pipe()
    files.write_text(f"/proc/self/fd/{writing}", "text")
    assert os.read(reading, 10) == b"text"
    os.close(reading)
    os.close(writing)


def small_files_only() -> None:
    """As on a disk that becomes full: writing beyond 50 bytes fails."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (50, resource.RLIM_INFINITY))


@pytest.mark.parametrize(
    ("command", "name", "said"),
    [
        ("convert RESULT -o OUT --table flows --force", "flows.csv", "flows.csv"),
        ("convert RESULT -o OUT --table flows --force --to jsonl", "flows.jsonl", "flows.jsonl"),
        ("convert RESULT -o OUT --table flows --force --to arrow", "flows.arrow", "flows.arrow"),
        # The records that a page is made of stand in a temporary file meanwhile, which is full first.
        ("analyze RESULT -q -o OUT/page.html", "page.html", "records.parquet: File too large"),
        ("report RESULT -o OUT/report.html", "report.html", "records.parquet: File too large"),
        ("analyze RESULT -q -o OUT/all.json", "all.json", "all.json"),
        ("vectors s-ecn --case pairs -o OUT/vectors.json", "vectors.json", "vectors.json"),
    ],
)
def test_a_full_disk_leaves_no_half_file(tmp_path: Path, folder: Path, command: str, name: str, said: str) -> None:
    (tmp_path / name).write_text("old")
    words = [word.replace("RESULT", str(folder)).replace("OUT", str(tmp_path)) for word in command.split()]
    done = subprocess.run([*CLI, *words], capture_output=True, text=True, preexec_fn=small_files_only, check=False)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert said in done.stderr, done.stderr
    assert (names(tmp_path), (tmp_path / name).read_text()) == ([name], "old")


@pytest.mark.parametrize("name", ["figure.pdf", "figure.svg", "figure.png"])
def test_a_full_disk_is_what_a_figure_for_a_paper_says(tmp_path: Path, name: str) -> None:
    save = "import sys; from fanin.figures import paper; import plotly.graph_objects as go\n"
    save += "paper.save(go.Figure(go.Scatter(y=[1, 2])), sys.argv[1])"
    call = [sys.executable, "-c", save, str(tmp_path / name)]
    done = subprocess.run(call, capture_output=True, text=True, preexec_fn=small_files_only, check=False)
    assert done.stderr.strip().splitlines()[-1].startswith("OSError: "), done.stderr
    assert name in done.stderr.strip().splitlines()[-1]
    assert names(tmp_path) == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system on which a run can begin and a large page has no room, where root may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = shutil.which("mount")
    call = [mount or "mount", "-t", "tmpfs", "-o", "size=4600k", "tmpfs", str(disk)]
    if os.geteuid() or mount is None or subprocess.run(call, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a small disk")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


TINY = """
[topology]
kind = "single_switch"
hosts = 2
[[traffic]]
kind = "flows"
flows = [{ src = "h0", dst = "h1", size = "100KB" }]
"""


LARGE_PAGES = """
import fanin.report, fanin.analysis.page
fanin.report.render = fanin.analysis.page.render_analysis = lambda of: "x" * 5_000_000
from fanin.cli import app
app()
"""
"""The command line, with pages that a disk of 4.6 MB has no room for."""


@pytest.mark.parametrize(
    ("command", "error", "left"),
    [
        ("run TINY -o DISK/out --report", "DISK/out/report.html: No space left on device", {"out"}),
        ("report RESULT -o DISK/page.html", "DISK/page.html: No space left on device", set()),
        ("analyze RESULT -o DISK/page.html", "DISK/page.html: No space left on device", set()),
        ("run DEMO -o DISK/out -q", "DISK/out/", {"out"}),
    ],
)
def test_a_small_disk_ends_a_command_with_one_line(
    tmp_path: Path, folder: Path, small_disk: Path, command: str, error: str, left: set[str]
) -> None:
    (tmp_path / "tiny.toml").write_text(TINY)
    many = '[topology]\nkind = "single_switch"\nhosts = 33\n[[traffic]]\nkind = "incast"\nreceiver = "h0"\nsize = "4MB"\n'
    (tmp_path / "demo.toml").write_text(many + '[telemetry]\nqueues = ["*"]\nhosts = ["*"]\n')
    paths = {"TINY": tmp_path / "tiny.toml", "DEMO": tmp_path / "demo.toml", "RESULT": folder, "DISK": small_disk}
    words = command.split()
    for name, path in paths.items():
        words = [word.replace(name, str(path)) for word in words]
        error = error.replace(name, str(path))
    done = subprocess.run([sys.executable, "-B", "-c", LARGE_PAGES, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith(f"error: {error}"), done.stderr
    assert "Traceback" not in done.stderr
    assert set(names(small_disk)) == left
    if "--report" in words:
        assert fanin.load(small_disk / "out").complete, "the page did not fit, the result did"
    elif left:
        assert fanin.load(small_disk / "out").status == "partial"


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_is_cut_short_is_an_error(tmp_path: Path, unbuffered: str) -> None:
    """The disk takes a part of the first write, and Python, where it does not buffer, does not ask for the rest."""
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    with (tmp_path / "schema.json").open("w") as out:
        done = subprocess.run(
            [*CLI, "schema"],
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=small_files_only,
            env=environment,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, "error: standard output: File too large\n")
    assert (tmp_path / "schema.json").stat().st_size == 50


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    "command",
    [
        "--version",
        "version",
        "--help",
        "check TINY",
        "check TINY --json",
        "run TINY -o OUT",
        "run TINY -o OUT --json",
        "report RESULT -o PAGE",
        "convert RESULT -o OUT",
        "analyze RESULT",
        "analyze RESULT --json",
        "schema",
        "vectors s-ecn",
        "vectors s-ecn --format csv",
        "reproduce --list",
        "reproduce --list --json",
    ],
)
def test_a_standard_output_that_is_full_is_one_line_too(tmp_path: Path, folder: Path, command: str) -> None:
    (tmp_path / "tiny.toml").write_text(TINY)
    paths = {"TINY": tmp_path / "tiny.toml", "RESULT": folder, "OUT": tmp_path / "out", "PAGE": tmp_path / "out.html"}
    words = [str(paths.get(word, word)) for word in command.split()]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*CLI, *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert done.stderr.splitlines()[-1] == "error: standard output: No space left on device", done.stderr
    assert "Traceback" not in done.stderr
    if command.startswith("run"):
        assert fanin.load(tmp_path / "out").complete


@pytest.mark.parametrize("command", ["reproduce --list --json", "schema", "vectors s-ecn --format csv"])
def test_a_reader_that_has_gone_is_no_error_to_speak_of(command: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([*CLI, *command.split()], stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


def test_figures_too(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fanin.figures import paper

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        paper.save(fct_cdf(fanin.load(folder)), tmp_path / "cdf.pdf")
    assert names(tmp_path) == []


@pytest.mark.parametrize("command", ["check PIPE", "run PIPE -o OUT", "analyze PIPE", "report FOLDER"])
def test_a_pipe_that_nobody_feeds_is_not_waited_for(tmp_path: Path, command: str) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "folder" / "manifest.json")
    paths = {"PIPE": tmp_path / "pipe.json", "FOLDER": tmp_path / "folder", "OUT": tmp_path / "out", "PAGE": tmp_path / "out.html"}
    words = [str(paths.get(word, word)) for word in command.split()]
    done = subprocess.run([*CLI, *words], capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 2
    assert str(paths[command.split()[1]]) in done.stderr
    assert "Traceback" not in done.stderr


def test_text_is_not_read_from_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="is a pipe or a device, not a file") as caught:
        files.read_text(tmp_path / "pipe")
    assert caught.value.filename == str(tmp_path / "pipe")
    with pytest.raises(IsADirectoryError):
        files.read_text(tmp_path)


WRITES = """
import sys, time
from fanin import files
with files.replacing(sys.argv[1]) as part:
    part.write_text("half" * 1000)
    print(part, flush=True)
    time.sleep(60)
"""


def test_what_a_killed_writer_left_goes_with_the_next_and_what_another_writes_stays(tmp_path: Path) -> None:
    others = [".fanin-part-1of2-ab12-", ".fanin-part-7-x.csv", "fanin-part-1-2.csv", ".fanin-lock"]
    for name in others:
        (tmp_path / name).write_text("not ours")
    call = [sys.executable, "-B", "-c", WRITES, str(tmp_path / "big.csv")]
    with (
        subprocess.Popen(call, stdout=subprocess.PIPE, text=True) as killed,
        subprocess.Popen(call, stdout=subprocess.PIPE, text=True) as live,
    ):
        assert killed.stdout is not None and live.stdout is not None
        left, written = (Path(process.stdout.readline().strip()) for process in (killed, live) if process.stdout is not None)
        killed.kill()
        killed.wait()
        assert left.is_file(), "nobody has removed it yet"
        files.write_text(tmp_path / "big.csv", "whole")
        assert names(tmp_path) == sorted([*others, "big.csv", written.name])
        live.kill()
    files.write_text(tmp_path / "other.csv", "whole")
    assert names(tmp_path) == sorted([*others, "big.csv", "other.csv"])
