"""The BPF programs of dataplane/linux: whether this machine can run them, and one of them at work."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import shutil
import subprocess
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from bed import LackingError, within

__all__ = ["Program", "build", "lacking"]

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "dataplane" / "linux"
OUT = ROOT / "target" / "bpf"


def lacking() -> str | None:
    """What this machine lacks to build and load the programs, or None."""
    if platform.system() != "Linux":
        return "Linux"
    wanted = {
        "clang (make install-bpf)": shutil.which("clang"),
        "libbpf's headers (make install-bpf)": Path("/usr/include/bpf/libbpf.h").exists(),
        "make": shutil.which("make"),
        "a C compiler": shutil.which("cc"),
        "root": os.geteuid() == 0,
        "the kernel's BTF (CONFIG_DEBUG_INFO_BTF)": Path("/sys/kernel/btf/vmlinux").exists(),
    }
    return next((what for what, there in wanted.items() if not there), None) or _refused()


def _refused() -> str | None:
    """What the kernel does not let us: a container may keep BPF from root."""
    libc = ctypes.CDLL(None, use_errno=True)
    # BPF_PROG_GET_NEXT_ID, 11, needs the same right as loading; there may be no program.
    found = libc.syscall(321 if platform.machine() == "x86_64" else 280, 11, bytes(64), 64)
    error = ctypes.get_errno() if found else 0
    return None if error in (0, 2) else f"the right to load BPF programs ({os.strerror(error)})"


def build() -> Path:
    """Compile what has changed; the program that loads them."""
    subprocess.run(["make", "-s", "-C", str(SOURCES), f"OUT={OUT}"], check=True)
    return OUT / "fanin-bpf"


class Program:
    """A command of fanin-bpf, in a network namespace, from "ready" on until `end`."""

    def __init__(self, binary: Path, *arguments: str, ns: int | None = None) -> None:
        self.arguments = arguments
        with nullcontext() if ns is None else within(ns):
            self.process = subprocess.Popen(
                [str(binary), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
        assert self.process.stdout
        if self.process.stdout.readline() != "ready\n":
            _, error = self.process.communicate()
            raise LackingError(f"fanin-bpf {' '.join(arguments)}: {error.strip()}")

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def end(self) -> dict[str, Any]:
        """Have it let go; what it counted, with its exit `status` and what it `said` on standard error."""
        out, said = self.process.communicate(timeout=30)
        if not out:
            raise RuntimeError(f"fanin-bpf {' '.join(self.arguments)}: status {self.process.returncode}: {said.strip()}")
        return {**json.loads(out), "status": self.process.returncode, "said": said}
