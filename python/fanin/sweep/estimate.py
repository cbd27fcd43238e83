"""What a sweep will cost, by running a few of its runs."""

from __future__ import annotations

import math
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fanin import _core
from fanin.files import temporary
from fanin.results import progress as _progress
from fanin.statistics import predicted
from fanin.statistics.metrics import of_result
from fanin.statistics.rows import MetricRow, rows
from fanin.sweep import store as _store
from fanin.sweep.frames import Sweep
from fanin.sweep.plan import Plan
from fanin.sweep.progress import span
from fanin.sweep.todo import Seen, Todo
from fanin.tables.recorded import Recorded
from fanin.text import show

PILOT_RUNS: Final = 16
PILOT_SHARE: Final = 0.1
PILOT_S: Final = 10.0
"""A pilot ends after so many runs, after this share of what all that are left take, some of them at once, or after so long; a run
that is under way then is extrapolated. Where one run is more than that share, a part of it is run: as much as is a tenth of all."""

Bounds = tuple[float, float]


class _EndedError(Exception):
    """The pilot's time is over."""


@dataclass(frozen=True)
class Estimate:
    """What runs will cost, between two bounds each.

    Attributes
    ----------
    points, seeds, runs, before, left : int
        Points, seeds of each, runs of this process, those of them that the store has, and those that are left, at most.
    packet_hops, wall_s, bytes : tuple of float
        Of the runs that are left, with 95 % confidence by the spread of the pilot.
    pilot, pilot_s : int, float
        Runs of the pilot and their time [s].
    cut : bool
        Whether one of them was not run to its end.
    jobs : int
        Runs at once.
    upper : bool
        Whether a stop rule may make it less.
    keep : bool
        Whether result folders are kept, and count.
    """

    points: int
    seeds: int
    runs: int
    before: int
    left: int
    packet_hops: Bounds
    wall_s: Bounds
    bytes: Bounds
    pilot: int
    pilot_s: float
    cut: bool
    jobs: int
    upper: bool
    keep: bool

    def to_dict(self) -> dict[str, Any]:
        """Return it as a dictionary."""
        return dict(vars(self))

    def facts(self) -> list[tuple[str, str, str]]:
        """Return names, values and notes."""
        before = f", {self.before:,} done before" if self.before else ""
        enough = self.runs - self.before - self.left
        before += f", {enough:,} that the stop rule does not need" if enough else ""
        most = "at most: a stop rule may need less" if self.upper and self.left else ""
        cut = "; the last one was cut off and extrapolated" if self.cut else ""
        by = f"by a pilot of {show.many(self.pilot, 'run')} in {self.pilot_s:.3g} s{cut}"
        spread = ("no run of it has ended well", "one run says nothing of the spread", "95 % bounds by its spread")
        estimated = ("Estimated", by, spread[min(self.pilot, 2)]) if self.left else ("Estimated", "nothing is left to run", "")
        size = _bounds(self.bytes, show.size) if any(self.bytes) else show.NOTHING
        return [
            ("Runs", f"{self.left:,}", f"{show.many(self.points, 'point')} × {show.many(self.seeds, 'seed')}{before}"),
            ("Packet-hops", _bounds(self.packet_hops, show.count), most),
            ("Time", span(self.wall_s), f"{show.many(self.jobs, 'run')} at once"),
            ("Bytes", size, f"of the tables{' and result folders' if self.keep else ''}, on disk"),
            estimated,
        ]


def _bounds(bounds: Bounds, told: Any) -> str:
    low, high = (float(f"{bound:.2g}") for bound in bounds)
    return str(told(high)) if high < 1.1 * low or low == high else f"{told(low)} to {told(high)}"


def estimate(  # noqa: PLR0913 (options of the command, one each)
    made: Plan,
    out: str | os.PathLike[str] | None,
    *,
    jobs: int | None = None,
    shard: tuple[int, int] = (1, 1),
    dask: str | None = None,
    retry_failed: bool = False,
    keep: bool = False,
) -> Estimate:
    """Estimate what a plan costs, less what the store at `out` has; nothing is written there.

    The pilot takes runs in the order of the plan, which is that of hashes: a random sample of the points. It runs here, also where
    a cluster is to do the work.

    Raises
    ------
    ValueError
        `execute` would refuse the options, too.
    ClusterError
        The cluster cannot be used.
    """
    from fanin.sweep import running

    at_most = running.workers(jobs, dask, made.threads or 1)
    numbers = running.mine(made, shard)
    have: Mapping[str, Seen | None] = {}
    if out is not None:
        store = _store.opened(out)
        running.refuse_keep(store, keep=keep)
        if Sweep.is_store(out):
            have = running.known(store, made, retry_failed=retry_failed, keep=keep)[1]
    if dask is not None:
        from fanin.sweep.dask import threads

        at_most = threads(dask)
    left = Todo(made, numbers, have).at_most()
    at_once = min(at_most, max(1, len(left)))
    began = time.monotonic()
    pilot = _Pilot(made, left, began, PILOT_SHARE * len(left) / at_once, keep=keep)
    count = len(left)
    wall_s = _over(_sum_of(pilot.times, count), at_once)
    tables, folders = _bytes(made, pilot.metrics, count, wall_s), _sum_of(pilot.sizes, count)
    return Estimate(
        points=len(made.points),
        seeds=made.design.seed_count,
        runs=len(numbers),
        before=sum(made.runs[at].key in have for at in numbers),
        left=count,
        packet_hops=_sum_of(pilot.hops, count),
        wall_s=wall_s,
        bytes=(tables[0] + folders[0], tables[1] + folders[1]),
        pilot=len(pilot.hops),
        pilot_s=time.monotonic() - began,
        cut=pilot.cut,
        jobs=at_once,
        upper=made.design.stop is not None,
        keep=keep,
    )


class _Pilot:
    """A few runs, made here one after the other, as long as they are no more than a share of all, given as a number of runs."""

    def __init__(self, made: Plan, numbers: Sequence[int], began: float, share: float, *, keep: bool) -> None:
        self._base_dir, self._keep = str(made.base_dir), keep
        self.sizes: list[float] = []
        """Of result folders, where they are kept [bytes]."""
        self.hops: list[float] = []
        self.times: list[float] = []
        self.metrics: list[tuple[str, list[MetricRow]]] = []
        self.cut = False
        for at in numbers[: min(PILOT_RUNS, max(1, int(share)))]:
            state: dict[str, Any] = {}

            def watch(now: dict[str, Any], state: dict[str, Any] = state) -> None:
                state |= now
                # The first run tells the least if it is ended early, so it has more time.
                done = _progress.fraction(now)
                if done and (done >= share or time.monotonic() - began > PILOT_S):
                    raise _EndedError

            run = made.runs[at]
            try:
                facts, metrics = self._run(made.text(run), watch)
            except _EndedError:
                done = _progress.fraction(state) or 1.0
                if not self.hops or done > 0.1:
                    self.cut = True
                    self.hops.append(state["packet_hops"] / done)
                    self.times.append(state["wall_s"] / done)
                return
            except KeyboardInterrupt:
                raise
            except BaseException:  # noqa: S112 (it will fail in the sweep as well, and be reported there; a panic is no Exception)
                continue
            self.hops.append(facts["packet_hops"])
            self.times.append(facts["wall_s"])
            self.metrics.append((run.key, metrics))
            if time.monotonic() - began > PILOT_S:
                return

    def _run(self, text: str, watch: Any) -> tuple[dict[str, Any], list[MetricRow]]:
        if not self._keep:
            facts = _core.summarize(text, "json", self._base_dir, watch)
            return facts, rows(facts["summary"])
        target = temporary.folder()
        try:
            _core.run(text, "json", self._base_dir, str(target), watch)
            result = Recorded(target)
            self.sizes.append(float(sum(entry.stat().st_size for entry in target.iterdir())))
            return result.manifest, of_result(result)
        finally:
            shutil.rmtree(target, ignore_errors=True)


def _sum_of(values: Sequence[float], count: int) -> Bounds:
    """Return between what the sum of `count` values is, by a sample of them."""
    if not values or not count:
        return 0.0, 0.0
    mean = math.fsum(values) / len(values)
    if len(values) < 2:
        return mean * count, mean * count
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
    return predicted(mean, deviation, len(values), count)


def _over(bounds: Bounds, at_once: int) -> Bounds:
    return bounds[0] / at_once, bounds[1] / at_once


def _bytes(made: Plan, metrics: Sequence[tuple[str, list[MetricRow]]], count: int, wall_s: Bounds) -> Bounds:
    """Return between what the tables take: what each run adds to a segment, and what each segment has of its own."""
    if not metrics:
        return 0.0, 0.0
    sizes = [len(_store.as_parquet(_store.metrics_frame(metrics[:n], "segment"))) for n in (1, len(metrics))]
    # Of one run it is not known how much of its table is of the run, and how much any table has.
    slopes = [sizes[0] / 10, sizes[0]] if len(metrics) == 1 else [(sizes[1] - sizes[0]) / (len(metrics) - 1)] * 2
    row = 200.0  # key, hash and fingerprint are random digits; what else a run's row has is small
    segments = max(1.0, count / _store.FLUSH_RUNS, min(count, wall_s[1] / _store.FLUSH_S))
    plan = len(_store.as_parquet(made.frame()))
    totals = [
        # The table of runs is smaller than that of metrics: two of these at most for each segment.
        (max(slope, 0.0) + row) * count + 2 * max(0.0, sizes[0] - slope) * segments + plan
        for slope in slopes
    ]
    return 0.5 * totals[0], 1.2 * totals[-1]
