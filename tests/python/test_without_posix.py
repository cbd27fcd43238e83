"""The package without what only POSIX has, as on Windows: it imports, runs, analyses, and says what does not work there.

Windows neither removes nor renames files that are open: here files refuse that, too.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import fanin as api

ROOT = Path(__file__).parents[2]
INCAST = ROOT / "scenarios" / "incast.toml"
CAPTURE = ROOT / "examples" / "captures" / "drops-before.pcap.gz"

HIDING = """
import fcntl as posix_locks, os, select, signal, sys, types
import numpy, polars, subprocess  # these look themselves which system this is

for name in ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty"):
    sys.modules[name] = None
for name in ("SIGHUP", "SIGKILL", "pthread_sigmask"):
    delattr(signal, name)
for name in ("pread", "pwrite", "fork", "forkpty", "register_at_fork", "geteuid", "posix_fallocate", "uname", "killpg"):
    delattr(os, name)
for name in ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK"):
    delattr(os, name)
del select.poll

# Locks of a byte of a file, as Windows has them, and files that are not removed or renamed while they are open.
windows = types.ModuleType("msvcrt")
windows.LK_NBLCK = 2
held = {}

def locking(descriptor, mode, size):
    assert (mode, size) == (2, 1), "a lock that does not wait, of one byte"
    assert os.lseek(descriptor, 0, os.SEEK_CUR) > 1 << 20, "the content stays readable"
    try:
        posix_locks.flock(descriptor, posix_locks.LOCK_EX | posix_locks.LOCK_NB)
    except BlockingIOError as error:
        raise PermissionError(13, "Permission denied") from error

windows.locking = locking
sys.modules["msvcrt"] = windows

opened = {}
os_open, os_close = os.open, os.close

def open_(path, flags, *rest, **more):
    descriptor = os_open(path, flags, *rest, **more)
    if flags & os.O_RDWR:
        opened[descriptor] = os.path.realpath(path)
    return descriptor

def close_(descriptor):
    opened.pop(descriptor, None)
    os_close(descriptor)

os.open, os.close = open_, close_

def refusing(function):
    def called(path, *rest, **more):
        if os.path.realpath(path) in opened.values():
            raise PermissionError(13, "The process cannot access the file because it is being used by another process", str(path))
        return function(path, *rest, **more)
    return called

for name in ("unlink", "remove", "rename", "replace"):
    setattr(os, name, refusing(getattr(os, name)))
"""
"""Takes away what Windows lacks, and lets files refuse what they refuse there."""


def without(code: str, *arguments: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run a program in an interpreter without POSIX."""
    return subprocess.run(
        [sys.executable, "-c", f"{HIDING}\n{code}", *arguments],
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        check=False,
        timeout=180,
        env={**os.environ, "COLUMNS": "200", "TMPDIR": os.environ.get("TMPDIR", "/tmp")},
    )


def fanin(*arguments: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    return without("import sys; from fanin.cli import app; app(sys.argv[1:])", *arguments, stdin=stdin)


def test_what_it_hides_is_missed() -> None:
    """Else the other tests would show nothing."""
    done = without("import fcntl")
    assert b"import of fcntl halted" in done.stderr
    done = without("import os, signal; os.pread; signal.SIGHUP")
    assert b"has no attribute 'pread'" in done.stderr
    code = "import os; d = os.open('a', os.O_RDWR | os.O_CREAT); os.replace('a', 'b')"
    done = without(f"import os, tempfile; os.chdir(tempfile.mkdtemp()); {code}")
    assert b"used by another process" in done.stderr


def test_all_modules_import() -> None:
    code = """
import importlib, pathlib, sys
root = pathlib.Path(sys.argv[1])
found = 0
for path in sorted((root / "fanin").rglob("*.py")):
    name = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
    importlib.import_module(name)
    found += 1
print(found)
"""
    done = without(code, str(ROOT / "python"))
    assert done.returncode == 0, done.stderr.decode()
    assert int(done.stdout.split()[-1]) >= 100


def test_a_scenario_is_run_and_reported(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = fanin("run", str(INCAST), "-o", str(out), "--quiet")
    assert done.returncode == 0, done.stderr.decode()
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    command = [
        sys.executable,
        "-c",
        "from fanin.cli import app; app()",
        "run",
        str(INCAST),
        "-o",
        str(tmp_path / "here"),
        "--quiet",
    ]
    here = subprocess.run(command, check=False, capture_output=True)
    assert here.returncode == 0, here.stderr.decode()
    assert manifest["fingerprint"] == json.loads((tmp_path / "here" / "manifest.json").read_text(encoding="utf-8"))["fingerprint"]
    assert not [path.name for path in out.iterdir() if path.name.startswith(".")], "what is left of the writing"
    done = fanin("report", str(out))
    assert done.returncode == 0, done.stderr.decode()
    assert (out / "report.html").stat().st_size > 100_000
    assert fanin("run", str(INCAST), "-o", str(out), "--quiet").returncode != 0, "a result is not overwritten"
    assert fanin("run", str(INCAST), "-o", str(out), "--quiet", "--force").returncode == 0


def test_a_result_that_is_being_written_is_locked(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from fanin.files.locks import Lock, LockedError
path = Path(sys.argv[1])
with Lock(path) as first:
    assert first.works
    try:
        Lock(path).__enter__()
    except LockedError as error:
        print(error)
    first.move(path.with_name("other"))
    assert not path.exists()
print(sorted(p.name for p in path.parent.iterdir()))
"""
    done = without(code, str(tmp_path / "lock"))
    assert done.returncode == 0, done.stderr.decode()
    words = done.stdout.decode().splitlines()
    assert words[0].startswith("process ")
    assert words[0].endswith("(this one)")
    assert words[1] == "[]"


def test_a_capture_is_analysed(tmp_path: Path) -> None:
    """By its path and from standard input, with its page and its records."""
    page, records = tmp_path / "page.html", tmp_path / "records.csv"
    arguments = ["--rate", "100Mbps", "--json"]
    by_path = fanin("analyze", str(CAPTURE), "-o", str(page), "--records", str(records), *arguments)
    assert by_path.returncode == 0, by_path.stderr.decode()
    assert page.stat().st_size > 100_000
    assert len(records.read_text(encoding="utf-8").splitlines()) == 832
    piped = fanin("analyze", "-", *arguments, stdin=gzip.decompress(CAPTURE.read_bytes()))
    assert piped.returncode == 0, piped.stderr.decode()
    first, second = json.loads(by_path.stdout), json.loads(piped.stdout)
    assert first["ports"][0]["bursts"] == second["ports"][0]["bursts"] != []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.html", "records.csv"]


def test_a_sweep_goes_one_by_one(tmp_path: Path) -> None:
    """Its outcomes are those of worker processes."""
    sweep = tmp_path / "sweep.toml"
    axes = '[sweep.grid]\n"switch.marking.k" = ["20 packets", "65 packets"]\n'
    sweep.write_text(f'[sweep]\nscenario = "{INCAST}"\nseeds = 2\n{axes}', encoding="utf-8")
    done = fanin("sweep", str(sweep), "-o", str(tmp_path / "here"), "--quiet")
    assert done.returncode == 0, done.stderr.decode()
    api.sweep(sweep, tmp_path / "there", jobs=1, progress=False)
    alone, with_workers = (api.Sweep(tmp_path / name) for name in ("here", "there"))
    assert alone.complete
    assert alone.metrics.height >= 40
    differ = {name for name in alone.metrics.columns if not alone.metrics[name].equals(with_workers.metrics[name])}
    assert differ <= {"segment", "wall_s"}  # the name of a file, and time
    done = fanin("sweep", str(sweep), "-o", str(tmp_path / "several"), "--jobs", "2")
    assert done.returncode != 0
    assert b"jobs = 2, more than one run at once, does not work on Windows" in b" ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["conform", "s-ecn", "--", "true"], "fanin conform"),
        (["bench", "--start"], "fanin bench --start"),
    ],
)
def test_what_does_not_work_says_so(arguments: list[str], what: str) -> None:
    done = fanin(*arguments)
    assert done.returncode != 0
    said = " ".join(done.stderr.decode().split())
    assert f"{what}" in said
    assert "does not work on Windows; in WSL 2 it does" in said
