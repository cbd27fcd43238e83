"""A worker process: scenarios in, rows out, one after the other, until nobody is left who asks."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import signal
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, NamedTuple

from fanin import _core
from fanin.files import system
from fanin.statistics.rows import MetricRow, rows

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


class Keep(NamedTuple):
    """The place of a result folder, and the prefix of the temporary one beside it."""

    target: str
    part: str


class VersionError(RuntimeError):
    """A worker has another Fanin than the sweep that it is to run for."""


def told(error: BaseException) -> str:
    """Return an error as the row of its run has it."""
    return f"{type(error).__name__}: {str(error) or 'no message'}"[:_REPORTED]


def simulate(text: str, base_dir: str, keep: Keep | None = None) -> Outcome:
    """Run a scenario.

    Parameters
    ----------
    text : str
        The scenario as JSON.
    base_dir : str
        Where relative paths in it start from.
    keep : Keep, optional
        Where its result folder goes; if not given, it has none.
    """
    host = system.host()
    try:
        if keep is not None:
            facts, metrics = _kept(text, base_dir, keep)
        else:
            facts = _core.summarize(text, "json", base_dir, None)
            metrics = rows(facts["summary"])
        return Outcome({name: facts.get(name) for name in _FACTS}, metrics, None, host)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a panic of the core is no Exception
        return Outcome({}, (), told(error), host)


def _kept(text: str, base_dir: str, keep: Keep) -> tuple[dict[str, Any], list[MetricRow]]:
    """Run a scenario into a result folder that is there when it is complete; return its manifest and its metrics."""
    from fanin.statistics.metrics import of_result
    from fanin.tables.recorded import Recorded

    target = Path(keep.target)
    part = target.with_name(f"{keep.part}{secrets.token_hex(8)}")  # others may be at the same run
    try:
        _core.run(text, "json", base_dir, str(part), None)
        result = Recorded(part)
        metrics = of_result(result)
        _place(part, target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return result.manifest, metrics


def _place(part: Path, target: Path) -> None:
    """Rename a folder to where it belongs, in the place of an earlier one.

    Where another writer of the run is faster its folder stays: it is whole, and has the same bytes.
    """
    earlier = part.with_name(f"{part.name}-earlier")
    while True:
        try:
            part.rename(target)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        else:
            break
        if earlier.exists():
            break  # what is there now is another writer's
        with suppress(FileNotFoundError):  # another writer has just moved it away
            target.rename(earlier)
    shutil.rmtree(earlier, ignore_errors=True)


def batch(texts: Sequence[tuple[str, Keep | None]], base_dir: str, version: str) -> list[Outcome]:
    """Run some scenarios, for a cluster.

    Raises
    ------
    VersionError
        The sweep has another version than this worker.
    """
    if version != _core.version():
        raise VersionError(f"worker on {system.host()} has Fanin {_core.version()}, the sweep {version}")
    return [simulate(text, base_dir, keep) for text, keep in texts]


def _end_with(pipe: int) -> None:
    """End when the other end of a pipe is closed: a parent that is killed cannot say so itself."""
    while os.read(pipe, 1):
        pass
    os._exit(1)


def main(connection: int, pipe: int) -> None:
    """Serve a parent process: lists of (number, text, keep) in, (number, outcome) out, in the same order."""
    # A batch system and a terminal signal all processes at once: the parent is the one that decides.
    for ignored in (signal.SIGINT, *system.ENDS):
        signal.signal(ignored, signal.SIG_IGN)
    os.environ.setdefault("POLARS_MAX_THREADS", "1")  # there is a worker for each core
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
