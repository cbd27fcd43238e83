"""``fanin watch`` that is killed at any moment, again and again: each burst is told once, through rotation and truncation."""

from __future__ import annotations

import itertools
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from fanin.watch.hub import Burst
from fanin.watch.watching import Choices, Watch
from watching import HEADER, SETTINGS, once, rows, written

KILLS = int(os.environ.get("FANIN_KILLS", "3"))
MS = 10**9


class Writer(threading.Thread):
    """A switch that logs a burst at two ports each 20 ms, and whose log is rotated and truncated now and then.

    It is rotated once the watch has come to the present file, and truncated once all is read.
    """

    def __init__(self, file: Path, state: Path) -> None:
        super().__init__()
        self.bursts = self.rotated = self.truncated = 0
        self.done = threading.Event()
        self._file, self._state = file, state
        written(file, HEADER)

    def run(self) -> None:
        """Write until `done` is set."""
        while not self.done.wait(0.02):
            with self._file.open("a") as log:
                log.write(rows(1, first=self.bursts))
            self.bursts += 1
            if self.bursts % 40 == 0 and self._is_here():
                self._file.rename(self._file.with_name(f"a.csv.{self.rotated}"))
                written(self._file, HEADER)
                self.rotated += 1
            elif self.bursts % 40 == 20:
                end = time.monotonic() + 1
                while time.monotonic() < end and not self._is_here(whole=True):
                    time.sleep(0.01)
                if self._is_here(whole=True):
                    written(self._file, HEADER)
                    self.truncated += 1

    def _is_here(self, *, whole: bool = False) -> bool:
        """Whether the watch has come to the present file, or to its end."""
        if not self._state.exists():
            return False
        sources = json.loads(self._state.read_text())["sources"]
        place = sources.get(str(self._file), {}).get("a.csv")
        there = self._file.stat()
        return place is not None and place["inode"] == there.st_ino and (not whole or place["offset"] == there.st_size)


def test_an_interrupted_one_tells_all_that_was_read(tmp_path: Path) -> None:
    file, state = written(tmp_path / "a.csv", HEADER + rows(200)), tmp_path / "state.json"
    watch = Watch([str(file)], SETTINGS, Choices(once=True, state=state))
    told: list[Burst] = []

    def tell(bursts: list[Burst]) -> Callable[[], None]:
        def now() -> None:
            is_first = not told
            told.extend(bursts)
            if is_first and bursts:
                raise KeyboardInterrupt

        return now

    with pytest.raises(KeyboardInterrupt):
        watch.run(tell)
    numbers = [burst.number for burst in told]
    assert numbers == list(range(1, 401))
    assert once(file, state=state).counts() == {}


def test_one_that_is_killed_again_and_again_tells_each_burst_once(tmp_path: Path) -> None:
    file, state, out = (tmp_path / name for name in ("a.csv", "state.json", "out"))
    command = [sys.executable, "-c", "from fanin.cli import app; app()", "watch", str(file), "--no-page", "--json"]
    command += ["--above", "20KB", "--state", str(state)]
    chance = random.Random(36)
    writer = Writer(file, state)
    writer.start()
    try:
        beginning = 0.0
        for _ in range(KILLS):
            with out.open("ab") as told, subprocess.Popen(command, stdout=told, stderr=subprocess.DEVNULL) as process:
                size, started = out.stat().st_size, time.monotonic()
                while not beginning:
                    # How long it takes here until the first one is told.
                    assert process.poll() is None
                    beginning = time.monotonic() - started if out.stat().st_size > size else 0.0
                    time.sleep(0.01)
                time.sleep(chance.uniform(0.3 * beginning, 1.5 * beginning + 1))
                process.kill()
    finally:
        writer.done.set()
        writer.join()
    with out.open("ab") as told:
        subprocess.run([*command, "--once"], stdout=told, check=True, timeout=300)
    bursts: Counter[tuple[str, int]] = Counter()
    for line in out.read_text().splitlines():
        one = json.loads(line)
        # One that was open when the watch was killed begins later.
        bursts[one["port"], (one["origin_s"] * 1000 * MS + one["burst"]["start_ps"]) // (MS // 2)] += 1
    expected = {(f"eth{port}", 2 * (burst + 1) + port) for burst in range(writer.bursts) for port in (0, 1)}
    lost = sorted({burst // 2 for _, burst in expected - set(bursts)})
    print(f"{KILLS} kills, {writer.rotated} rotations, {writer.truncated} truncations, {len(expected)} bursts; lost at {lost} ms")
    assert set(bursts) <= expected
    assert [burst for burst, count in bursts.items() if count > 1] == []
    # Of what was read, a kill costs what was to be told just then: a stretch at most.
    assert sum(after - before > 2 for before, after in itertools.pairwise([-9, *lost])) <= KILLS
