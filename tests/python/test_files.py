"""What is written is whole or not there; what is read is a file."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import fanin
from fanin import _files
from fanin.figures import fct_cdf


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_an_error_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    target.write_text("old")
    target.chmod(0o640)
    with pytest.raises(ZeroDivisionError), _files.replacing(target) as part:
        part.write_text("half")
        raise ZeroDivisionError
    assert (names(tmp_path), target.read_text()) == (["out.json"], "old")
    _files.write_text(target, "new")
    assert (names(tmp_path), target.read_text(), target.stat().st_mode & 0o777) == (["out.json"], "new", 0o640)
    with pytest.raises(FileNotFoundError) as caught:
        _files.write_text(tmp_path / "absent" / "out.json", "new")
    assert caught.value.filename == str(tmp_path / "absent" / "out.json")


def test_links_and_pipes_stay_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    _files.write_text(tmp_path / "link", "text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "text"
    reading, writing = os.pipe()
    _files.write_text(f"/proc/self/fd/{writing}", "text")
    assert os.read(reading, 10) == b"text"
    os.close(reading)
    os.close(writing)


def small_files_only() -> None:
    """As on a disk that becomes full: writing beyond 50 bytes fails."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (50, resource.RLIM_INFINITY))


@pytest.mark.native
@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("convert RESULT -o OUT --table flows --force", "flows.csv"),
        ("convert RESULT -o OUT --table flows --force --to jsonl", "flows.jsonl"),
        ("convert RESULT -o OUT --table flows --force --to arrow", "flows.arrow"),
        ("analyze RESULT -q -o OUT/page.html", "page.html"),
        ("analyze RESULT -q -o OUT/all.json", "all.json"),
        ("report RESULT -o OUT/report.html", "report.html"),
        ("vectors s-ecn --case pairs -o OUT/vectors.json", "vectors.json"),
    ],
)
def test_a_full_disk_leaves_no_half_file(tmp_path: Path, folder: Path, command: str, name: str) -> None:
    (tmp_path / name).write_text("old")
    words = [word.replace("RESULT", str(folder)).replace("OUT", str(tmp_path)) for word in command.split()]
    call = [sys.executable, "-B", "-c", "from fanin.cli import app; app()", *words]
    done = subprocess.run(call, capture_output=True, text=True, preexec_fn=small_files_only, check=False)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert name in done.stderr, done.stderr
    assert (names(tmp_path), (tmp_path / name).read_text()) == ([name], "old")


def test_figures_too(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fanin import paper

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        paper.save(fct_cdf(fanin.load(folder)), tmp_path / "cdf.pdf")
    assert names(tmp_path) == []


@pytest.mark.native
@pytest.mark.parametrize("command", ["check PIPE", "run PIPE -o OUT", "analyze PIPE", "report FOLDER"])
def test_a_pipe_that_nobody_feeds_is_not_waited_for(tmp_path: Path, command: str) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "folder" / "manifest.json")
    paths = {"PIPE": tmp_path / "pipe.json", "FOLDER": tmp_path / "folder", "OUT": tmp_path / "out"}
    words = [str(paths.get(word, word)) for word in command.split()]
    call = [sys.executable, "-c", "from fanin.cli import app; app()", *words]
    done = subprocess.run(call, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 2
    assert str(paths[command.split()[1]]) in done.stderr
    assert "Traceback" not in done.stderr


def test_text_is_not_read_from_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="is a pipe or a device, not a file") as caught:
        _files.read_text(tmp_path / "pipe")
    assert caught.value.filename == str(tmp_path / "pipe")
    with pytest.raises(IsADirectoryError):
        _files.read_text(tmp_path)
