"""A worker process: scenarios in, rows out, one after the other, until nobody is left who asks."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from fanin import _core
from fanin._files import OURS
from fanin.sweep.metrics import MetricRow, rows

__all__ = ["Outcome", "batch", "simulate"]

_REPORTED: Final = 2000
"""Characters of an error that are kept."""

_FACTS: Final = ("scenario_hash", "fingerprint", "sim_ps", "packet_hops", "events", "cpu_s", "wall_s")


@dataclass(frozen=True)
class Outcome:
    """What became of a run: facts for its row, and metrics; or why there are none."""

    facts: Mapping[str, Any]
    metrics: Sequence[MetricRow] = ()
    error: str | None = None
    host: str = ""


def simulate(text: str, base_dir: str, keep: str | None = None) -> Outcome:
    """Run a scenario.

    Parameters
    ----------
    text : str
        The scenario as JSON.
    base_dir : str
        Where relative paths in it start from.
    keep : str, optional
        Where its result folder goes; if not given, it has none.
    """
    host = os.uname().nodename
    try:
        found = _core.summarize(text, "json", base_dir, None) if keep is None else _kept(text, base_dir, Path(keep))
        return Outcome({name: found.get(name) for name in _FACTS}, rows(found["summary"]), None, host)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a panic of the core is no Exception
        return Outcome({}, (), f"{type(error).__name__}: {str(error) or 'no message'}"[:_REPORTED], host)


def _kept(text: str, base_dir: str, target: Path) -> dict[str, Any]:
    """Run a scenario into a result folder that is there when it is complete."""
    import json

    part = target.with_name(f"{OURS}part-{target.name}")
    shutil.rmtree(part, ignore_errors=True)
    try:
        summary = _core.run(text, "json", base_dir, str(part), None)
        manifest = json.loads((part / "manifest.json").read_bytes())
        shutil.rmtree(target, ignore_errors=True)
        part.rename(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return {**manifest, "summary": summary}


def batch(texts: Sequence[tuple[str, str | None]], base_dir: str) -> list[Outcome]:
    """Run some scenarios, for a cluster."""
    return [simulate(text, base_dir, keep) for text, keep in texts]


def _end_with(pipe: int) -> None:
    """End when the other end of a pipe is closed: a parent that is killed cannot say so itself."""
    while os.read(pipe, 1):
        pass
    os._exit(1)


def main(connection: int, pipe: int) -> None:
    """Serve a parent process: lists of (number, text, keep) in, (number, outcome) out, in the same order."""
    # A batch system and a terminal signal all processes at once: the parent is the one that decides.
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(pipe,), daemon=True).start()
    with Connection(connection) as parent:
        base_dir = parent.recv()
        parent.send("ready")
        while True:
            try:
                some = parent.recv()
            except EOFError:
                return
            for number, text, keep in some:
                parent.send((number, simulate(text, base_dir, keep)))
