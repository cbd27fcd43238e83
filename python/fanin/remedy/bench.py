"""Runs of a model's variants through the sweep, and what a view shows of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fanin.remedy.model import wire_bps
from fanin.remedy.seen import Seen, View, behind, sampled
from fanin.sweep import plan, running
from fanin.text import show

_KEY_DIGITS: Final = 32
"""Digits of the hash of a scenario that are the key of its point in a sweep."""

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from fanin.scenario import Scenario
    from fanin.sweep.frames import Sweep
    from fanin.sweep.plan import Plan

_METRICS: Final = {
    "dropped": "port/{}.drops",
    "peak": "port/{}.max_bytes",
    "until_ps": "total.flows_until_ps",
    "mean_ps": "fct/all.mean_ps",
    "p99_ps": "fct/all.p99_ps",
    "marks": "total.marks",
    "goodput_bps": "total.goodput_bps",
    "timeouts": "total.timeouts",
    "incomplete": "total.flows_incomplete",
    "aborted": "total.flows_aborted",
    "all_drops": "total.drops",
}
"""Name → address of a metric, with the port's name in it."""


@dataclass(frozen=True)
class Asked:
    """A scenario to run, with its seed and where between two samples it begins."""

    scenario: Scenario
    seed: int
    phase: float = 0.0
    changes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Looked:
    """What came of a run.

    Attributes
    ----------
    values : mapping
        Metrics by name.
    seen : Seen or None
        What the view shows; None where runs were not looked at, or failed.
    queue : tuple or None
        Moments [ps] and the queue at them, where the view has samples.
    error : str
        Why it failed; empty where it did not.
    """

    values: Mapping[str, float]
    seen: Seen | None = None
    queue: tuple[NDArray[np.int64], NDArray[np.float64]] | None = None
    error: str = ""


@dataclass
class Bench:
    """Runs variants of a model, in a folder for their stores.

    Attributes
    ----------
    folder : Path
        Where the stores of the sweeps go.
    port : str
        The port of the model that is looked at.
    view : View
        How it is looked at.
    jobs : int or None
        Simulations at once.
    told : callable or None
        Is told what is being run, in words.
    """

    folder: Path
    port: str
    view: View
    jobs: int | None = None
    told: Callable[[str], None] | None = None
    rounds: int = 0

    def run(self, asked: Mapping[str, Asked], what: str, *, look: bool) -> dict[str, Looked]:
        """Run scenarios, each with its seed, and return what came of them by label.

        Parameters
        ----------
        asked : mapping
            By label.
        what : str
            What they are, for the progress.
        look : bool
            Look at them through the view, for which they leave result folders.
        """
        if not asked:
            return {}
        if self.told is not None:
            self.told(f"{what}: {show.many(len(asked), 'run')}")
        self.rounds += 1
        store = self.folder / f"runs{self.rounds}"
        seeds = list(dict.fromkeys(own.seed for own in asked.values()))
        made = plan.of_scenarios(
            "whatif",
            {label: own.scenario for label, own in asked.items()},
            {label: own.changes for label, own in asked.items()},
            seeds,
        )
        wanted = _wanted(made, asked)
        runs = [run for run in made.runs if (run.point, run.seed) in wanted]
        made = replace(made, runs=runs, document={**made.document, "planned": len(runs)})
        done = running.execute(made, store, jobs=self.jobs, keep=look, progress=False)
        first = {str(planned.point.label): number for number, planned in enumerate(made.points)}
        labels = {(label, seed): wanted[at, seed] for label, at in first.items() for seed in seeds if (at, seed) in wanted}
        return self._read(done, asked, labels, look=look)

    def _read(
        self, done: Sweep, asked: Mapping[str, Asked], wanted: Mapping[tuple[str, int], Sequence[str]], *, look: bool
    ) -> dict[str, Looked]:
        """Return what came of each label; `wanted` are those of a run, by the label of its point and its seed."""
        values = self._values(done)
        found: dict[str, Looked] = {}
        kept = done.kept if look else {}
        for row in done.runs.select("run", "label", "seed", "status", "error").iter_rows(named=True):
            for label in wanted[row["label"], row["seed"]]:
                if row["status"] != "ok":
                    found[label] = Looked({}, error=str(row["error"]).splitlines()[0])
                    continue
                looked = Looked(values[row["run"]])
                found[label] = self._looked(kept[row["run"]], looked, asked[label]) if look else looked
        return found

    def _values(self, done: Sweep) -> dict[str, dict[str, float]]:
        """Return metrics by run; those that a run does not have are zero."""
        import polars as pl

        frame = done.metrics
        found: dict[str, dict[str, float]] = {run: {} for run in frame["run"].unique().to_list()}
        for name, address in _METRICS.items():
            group, _, column = address.format(self.port).rpartition(".")
            kind, _, of = group.partition("/")
            rows = frame.filter(pl.col("group") == kind)
            if of:
                rows = rows.filter(pl.col("name") == of)
            if column not in rows.columns:
                continue
            for run, value in rows.select("run", column).iter_rows():
                if value is not None:
                    found[run][name] = float(value)
        return found

    def _looked(self, folder: Path, looked: Looked, own: Asked) -> Looked:
        if self.view.kind == "behind":
            return replace(looked, seen=_behind(folder, self.port))
        records = queues(folder, self.port)
        rate = rate_bps(own.scenario, self.port)
        seen = self.view.of_port(records, rate, own.phase)
        if not self.view.every_ps:
            return replace(looked, seen=seen)
        scaled = records.with_columns(records["queue_bytes"] / self.view.scale, records["frame_bytes"] / self.view.scale)
        queue = sampled(scaled, rate / self.view.scale, self.view.every_ps, own.phase, largest=self.view.kind == "largest")
        return replace(looked, seen=seen, queue=queue)


def _wanted(made: Plan, asked: Mapping[str, Asked]) -> dict[tuple[int, int], list[str]]:
    """Return which labels a run is of, by its point and its seed: scenarios that simulate the same are one point."""
    at = {str(planned.point.label): number for number, planned in enumerate(made.points)}
    keys = {planned.key: number for number, planned in enumerate(made.points)}
    found: dict[tuple[int, int], list[str]] = {}
    for label, own in asked.items():
        point = at.get(label)
        if point is None:
            point = keys[str(own.scenario.replace({"seed": 0}).check().hash)[:_KEY_DIGITS]]
        found.setdefault((point, own.seed), []).append(label)
    return found


def queues(folder: Path, port: str) -> pl.DataFrame:
    """Return the records of a port of a result."""
    import polars as pl

    return pl.read_parquet(folder / "queues.parquet", memory_map=False).filter(pl.col("port") == port)


def _behind(folder: Path, port: str) -> Seen:
    """Return what a capture behind the simulated port shows."""
    from fanin.analysis import analyze

    found = analyze(folder / "packets.pcapng", transfers=True)
    return behind(found.records.filter(found.records["port"] == f"{port} out"), found.document["transfers"])


def rate_bps(scenario: Scenario, port: str) -> float:
    """Return the speed of a model's port for frames: that of the wire, less preamble and gap of full frames [b/s]."""
    return wire_bps(scenario, port) * 1518 / 1538
