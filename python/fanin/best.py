"""Which policy helps a scenario most: all that apply, run with its authors' settings over common seeds, ranked with their costs.

docs/best.md states the rule of the ranking.
"""

from __future__ import annotations

import json
import math
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from fanin import _core, _temporary, comparison, metrics, runner, show, stats, variants
from fanin.candidates import AS_IT_IS, Candidate, Rejected, candidates
from fanin.metrics import Metric
from fanin.results import Result
from fanin.scenario import Scenario
from fanin.stats import Difference, Interval, Verdict
from fanin.variants import Variant

__all__ = ["SCHEMA", "Best", "Place", "Progress", "best"]

SCHEMA: Final = "best/1"
SEEDS: Final = 5
"""Seeds of each candidate: the fewest with an interval that is more than their range."""

_SMALL: Final = 0.005
"""Changes below this, relative, are called none."""


@dataclass(frozen=True)
class Place:
    """A candidate in the ranking.

    Attributes
    ----------
    rank : int
        From 1; those that no seed tells apart from the first of their rank share it.
    candidate : Candidate or None
        None: the scenario as it is.
    name, part : str
        What it is.
    interval : Interval
        The metric, mean over seeds.
    change : Difference or None
        From the scenario as it is; None for that itself.
    verdict : str or None
        Of that difference, adjusted for all candidates.
    to_best : str or None
        ``worse`` than the best, or ``no difference``; None for the best itself.
    others : Interval or None
        Throughput of the flows that the metric is not about [b/s].
    others_change : Difference or None
        Of that, from the scenario as it is.
    incomplete : float
        Flows that did not end, mean over seeds.
    header_bytes, memory_bytes : int, int or None
        What its policies add to a frame at most, and take at a switch besides the buffers (None: not known), those of the scenario
        as it is included.
    """

    rank: int
    candidate: Candidate | None
    name: str
    part: str
    interval: Interval
    change: Difference | None
    verdict: Verdict | None
    to_best: Verdict | None
    others: Interval | None
    others_change: Difference | None
    incomplete: float
    header_bytes: int
    memory_bytes: int | None


@dataclass(frozen=True)
class Progress:
    """How far a ranking is.

    Attributes
    ----------
    done, total : int
        Runs.
    wall_s : float
        Since the first of them began [s].
    left_s : float or None
        What the others will take, by the mean of those that have ended [s].
    name : str
        Whose run has just ended.
    """

    done: int
    total: int
    wall_s: float
    left_s: float | None
    name: str


@dataclass(frozen=True)
class Best:
    """A ranking of policies on one scenario.

    Attributes
    ----------
    metric : Metric
        By what is ranked.
    places : tuple of Place
        The best first; the scenario as it is among them.
    rejected : tuple of Rejected
        What was not tried, and what failed.
    comparison : Comparison
        All metrics of all that ran, against the scenario as it is.
    others_are : str
        Whose throughput ``others`` is; empty where the metric is about all flows.
    seeds : tuple of int
        The seeds of each.
    """

    metric: Metric
    places: tuple[Place, ...]
    rejected: tuple[Rejected, ...]
    comparison: comparison.Comparison
    others_are: str
    seeds: tuple[int, ...]

    @property
    def base(self) -> Place:
        """The scenario as it is."""
        return next(place for place in self.places if place.candidate is None)

    @property
    def text(self) -> str:
        """What was found, in three sentences."""
        return " ".join((self._first(), self._second(), self._third()))

    def _first(self) -> str:
        top, metric = self.places[0], self.metric
        value = metric.text(top.interval.mean)
        if top.candidate is None:
            return f"Nothing that was tried beats the scenario as it is: {metric.name[:1].lower() + metric.name[1:]} is {value}."
        equals = [place.name for place in self.places[1:] if place.rank == 1 and place.candidate is not None]
        also = (
            f", and so do{'' if len(equals) > 1 else 'es'} {_listed(equals)} as far as {_seeds(self.seeds)} tell" if equals else ""
        )
        name = metric.name[:1].lower() + metric.name[1:]
        if top.verdict != "better":
            few = "too few seeds to say" if len(self.seeds) == 1 else "nothing that was tried is better for sure"
            return f"{top.name} comes out first, but {few}: {name} is {value}, {_against(top.change)} the scenario as it is."
        return f"{top.name} does best{also}: {name} is {value}, {_against(top.change)} the scenario as it is."

    def _second(self) -> str:
        top = self.places[0]
        if top.candidate is None:
            return "It adds no header and no memory."
        header = f"{top.candidate.header_bytes} B of header in a frame" if top.candidate.header_bytes else "no header bytes"
        known = top.candidate.memory_bytes
        memory = "memory at switches that is not known" if known is None else f"{show.size(known)} of memory at a switch"
        loses = ""
        if top.others_change is not None and top.others_change.change is not None:
            loses = f"the throughput of {self.others_are} {_moved(top.others_change)}, "
        unfinished = f"; {show.count(round(top.incomplete, 1))} flows did not end" if top.incomplete else ""
        return f"What it costs: {loses}{header}, {memory}{unfinished}."

    def _third(self) -> str:
        tried = [place for place in self.places if place.candidate is not None]
        counts = {said: sum(place.verdict == said for place in tried) for said in ("better", "worse")}
        rest = len(tried) - sum(counts.values())
        told = f"Of {len(tried)} tried over {_seeds(self.seeds)}, {counts['better']} are better than the scenario as it is"
        left = f"{rest} make no difference that shows" if len(self.seeds) > 1 else f"{rest} cannot be judged by one seed"
        return f"{told}, {counts['worse']} worse, and {left}; {len(self.rejected)} were not ranked."

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON holds it, in picoseconds, bytes and bits per second."""

        def place(found: Place) -> dict[str, Any]:
            own = found.candidate
            return {
                "rank": found.rank,
                "name": found.name,
                "part": found.part,
                "value": asdict(found.interval),
                "change": asdict(found.change) if found.change else None,
                "verdict": found.verdict,
                "to_best": found.to_best,
                "others_bps": asdict(found.others) if found.others else None,
                "others_change": asdict(found.others_change) if found.others_change else None,
                "flows_incomplete": found.incomplete,
                "header_bytes": found.header_bytes,
                "switch_memory_bytes": found.memory_bytes,
                "settings": dict(own.changes) if own else {},
                "left_out": list(own.left_out) if own else [],
            }

        return {
            "schema": SCHEMA,
            "fanin": _core.version(),
            "metric": {"key": self.metric.key, "name": self.metric.name, "unit": self.metric.unit, "better": self.metric.better},
            "seeds": list(self.seeds),
            "others": self.others_are,
            "text": self.text,
            "places": [place(found) for found in self.places],
            "rejected": [asdict(found) for found in self.rejected],
        }

    def to_json(self) -> str:
        """Return `to_dict` as one line of JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)


def _seeds(seeds: Sequence[int]) -> str:
    return f"{len(seeds)} seed{'s' * (len(seeds) > 1)}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _percent(share: float) -> str:
    return f"{100 * abs(share):.3g} %"


def _against(change: Difference | None) -> str:
    if change is None or change.change is None or abs(change.change) < _SMALL:
        return "as in"
    interval = ""
    if change.change_low is not None and change.change_high is not None and change.change_low != change.change_high:
        ends = sorted((abs(change.change_low), abs(change.change_high)))
        if change.change_low * change.change_high > 0:
            interval = f" ({_percent(ends[0])} to {_percent(ends[1])})"
    return f"{_percent(change.change)}{interval} {'less' if change.change < 0 else 'more'} than in"


def _moved(change: Difference) -> str:
    share = change.change or 0.0
    return "stays as it is" if abs(share) < _SMALL else f"{'falls' if share < 0 else 'rises'} by {_percent(share)}"


def _simulate(scenario: Scenario, folder: Path, stop: threading.Event) -> Result:
    """Run a scenario; the one place that a store of many runs would replace."""

    def look(_state: Any) -> None:
        if stop.is_set():
            raise InterruptedError

    return runner.run(scenario, folder, progress=look)


def _run_all(
    todo: Sequence[tuple[str, Scenario, int]], root: Path, jobs: int, progress: Callable[[Progress], None] | None
) -> tuple[dict[str, list[Result]], dict[str, str]]:
    """Run all; results and failures by name."""
    results: dict[str, list[Result]] = {}
    failed: dict[str, str] = {}
    stop, begin = threading.Event(), time.monotonic()
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        futures: dict[Future[Result], str] = {}
        for number, (name, scenario, seed) in enumerate(todo):
            made = scenario.replace(seed=seed)
            futures[pool.submit(_simulate, made, root / f"{number}", stop)] = name
        waiting = set(futures)
        try:
            while waiting:
                ended, waiting = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
                for future in ended:
                    name = futures[future]
                    error = future.exception()
                    if error is None:
                        results.setdefault(name, []).append(future.result())
                    elif isinstance(error, RuntimeError | ValueError):
                        failed.setdefault(name, str(error).splitlines()[0])
                    else:
                        raise error
                    if progress is not None:
                        done, wall = len(futures) - len(waiting), time.monotonic() - begin
                        progress(Progress(done, len(futures), wall, wall / done * (len(futures) - done), name))
        finally:
            stop.set()
            for future in waiting:
                future.cancel()
    return results, failed


def _chosen(asked: str | None, found: Mapping[str, Any]) -> Metric:
    """Return the metric that is ranked by: what the scenario's jobs or queries take, else the slowdown of all flows."""
    if asked is None:
        jobs = sorted(key for key in found if key.startswith("collective/") and key.endswith(".time_ps"))
        asked = jobs[0] if jobs else "queries.p99_ps" if "queries.p99_ps" in found else "fct/all.slowdown_p99"
    chosen = metrics.choose([asked], found)
    if len(chosen) > 1:
        raise ValueError(f"metric '{asked}': fits {len(chosen)} metrics, for example {chosen[0].key}; one is needed")
    if chosen[0].better is None:
        raise ValueError(f"metric '{asked}': has no direction that is better, so nothing can be ranked by it")
    return chosen[0]


def _others(metric: Metric) -> tuple[str, Callable[[Any], Any] | None]:
    """Return the flows that a metric is not about: in words, and as a filter of the table of flows."""
    import polars as pl

    group, _, name = metric.key.rpartition(".")[0].partition("/")
    if group == "queries":
        return "flows that answer no query", lambda flows: flows.filter(pl.col("query").is_null())
    if group == "collective":
        return f"flows beside {name}", lambda flows: flows.filter(pl.col("group") != name)
    if group == "fct" and name != "all":
        low, high = _bin(name)
        inside = (pl.col("size_bytes") >= low) & (pl.col("size_bytes") < high)
        return "flows of other sizes", lambda flows: flows.filter(~inside)
    return "", None


def _bin(name: str) -> tuple[float, float]:
    bounds = {"<10KB": (0, 1e4), "10KB-100KB": (1e4, 1e5), "100KB-1MB": (1e5, 1e6), ">=1MB": (1e6, float("inf"))}
    return bounds[name]


def _throughput(result: Result, chosen: Callable[[Any], Any]) -> float | None:
    """Return what some flows got while they lasted: their delivered bits over the sum of their times [b/s]."""
    import polars as pl

    flows = chosen(result.flows).filter(pl.col("transport") != "udp")
    end = int(result.manifest.get("sim_ps") or 0)
    lasted = flows.select(took=(pl.col("finish_ps").fill_null(end) - pl.col("start_ps")).sum()).item() if flows.height else 0
    return 8e12 * int(flows["delivered_bytes"].sum()) / int(lasted) if lasted else None


def best(  # noqa: PLR0913 (options by name)
    scenario: Scenario | Mapping[str, Any] | str | os.PathLike[str],
    *,
    only: Sequence[str] = (),
    seeds: int = SEEDS,
    metric: str | None = None,
    jobs: int | None = None,
    keep: str | os.PathLike[str] | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Best:
    """Run every policy that applies to a scenario, with its authors' settings, and rank them.

    Parameters
    ----------
    scenario : Scenario, mapping or path-like
        The scenario; policies are tried on it one at a time.
    only : sequence of str
        Names, parts (``marking``) or patterns of policies; all if empty.
    seeds : int
        Runs of each, with the seeds from the scenario's own on: the same for all, so that all see the same traffic.
    metric : str, optional
        The address of what is ranked by. If not given: the time of the first job, else the p99 of queries, else that of slowdowns.
    jobs : int, optional
        Simulations at once; one per core if not given.
    keep : path-like, optional
        A folder for the results; a temporary one if not given.
    progress : callable, optional
        Is told of each run that has ended.

    Raises
    ------
    ScenarioError
        The scenario has errors.
    ValueError
        A name in `only`, or `metric`, fits nothing; or the scenario as it is comes to no end.
    """
    base = runner.as_scenario(scenario)
    first = int(base.resolved["seed"])
    if seeds < 1:
        raise ValueError(f"seeds: {seeds} is out of range; accepted: 1 or more")
    numbers = tuple(range(first, first + seeds))
    good, rejected = candidates(base, only)
    asked = [(AS_IT_IS, base), *((found.name, found.scenario) for found in good)]
    root = Path(keep) if keep is not None else _temporary.folder()
    # Seed by seed: an estimate after the first seed knows the slow candidates, too.
    todo = [(name, made, seed) for seed in numbers for name, made in asked]
    results, failed = _run_all(todo, root, jobs or os.cpu_count() or 1, progress)
    if AS_IT_IS in failed:
        raise ValueError(f"the scenario as it is comes to no end: {failed[AS_IT_IS]}")
    rejected += [Rejected(found.name, found.part, f"failed: {failed[found.name]}") for found in good if found.name in failed]
    good = [found for found in good if found.name not in failed]
    named = variants.gather({name: results[name] for name in (AS_IT_IS, *(found.name for found in good))})
    return _ranked(base, named, (good, rejected), metric, numbers)


def _ranked(
    base: Scenario,
    named: Sequence[Variant],
    tried: tuple[Sequence[Candidate], Sequence[Rejected]],
    asked: str | None,
    seeds: tuple[int, ...],
) -> Best:
    good, rejected = tried
    metric = _chosen(asked, {key: value for run in named[0].runs for key, value in run.values.items()})
    whose, chosen = _others(metric)
    without = [found for found in good if not next(v for v in named if v.name == found.name).values(metric.key)]
    lacking = [Rejected(found.name, found.part, f"no run has {metric.key}") for found in without]
    good = [found for found in good if found not in without]
    named = [found for found in named if found.values(metric.key)]
    by_name = {found.name: found for found in good}
    order = _order(named, metric, by_name)
    against = _verdicts(named, AS_IT_IS, metric)
    to_best = _verdicts(named, order[0].name, metric)
    rates = {found.name: _rates(found, chosen) for found in named}
    first_is_worse = against.get(order[0].name, (None, None))[1] == "worse"
    costs = {AS_IT_IS: _core.costs(*base.source(), str(base.base_dir))}
    costs |= {name: (own.header_bytes, own.memory_bytes) for name, own in by_name.items()}
    places: list[Place] = []
    for number, found in enumerate(order, start=1):
        own, (change, verdict) = by_name.get(found.name), against.get(found.name, (None, None))
        behind = to_best.get(found.name, (None, None))[1]
        same = behind == "no difference" and _incomplete(found) <= _incomplete(order[0])
        tied = number == 1 or (same and places[-1].rank == 1 and (verdict != "worse" or first_is_worse))
        rate, base_rate = rates[found.name], rates[AS_IT_IS]
        places.append(
            Place(
                rank=1 if tied else number,
                candidate=own,
                name=found.name,
                part=own.part if own else "",
                interval=stats.interval(list(found.values(metric.key).values())),
                change=change,
                verdict=verdict,
                to_best=behind,
                others=stats.interval(list(rate.values())) if rate else None,
                others_change=stats.difference(base_rate, rate) if own and rate and base_rate else None,
                incomplete=_incomplete(found),
                header_bytes=costs[found.name][0],
                memory_bytes=costs[found.name][1],
            )
        )
    table = comparison.of(named, base=AS_IT_IS) if len(named) > 1 else None
    if table is None:
        raise ValueError("nothing applies to this scenario but what it has; fanin best --only NAME tries a policy all the same")
    return Best(metric, tuple(places), (*rejected, *lacking), table, whose, seeds)


def _incomplete(found: Variant) -> float:
    counts = [found.values(f"total.flows_{state}").get(seed, 0.0) for state in ("incomplete", "aborted") for seed in found.seeds]
    return sum(counts) / len(found.seeds)


def _order(named: Sequence[Variant], metric: Metric, by_name: Mapping[str, Candidate]) -> list[Variant]:
    """Best first; of the same values what costs less. What leaves more flows unfinished than the scenario as it is comes last."""
    least = next(_incomplete(found) for found in named if found.name == AS_IT_IS)
    sign = 1 if metric.better == "lower" else -1

    def place(found: Variant) -> tuple[bool, float, int, float]:
        values = list(found.values(metric.key).values())
        own = by_name.get(found.name)  # none: the scenario as it is
        memory = 0 if own is None else own.memory_bytes
        cost = (own.header_bytes if own else 0, math.inf if memory is None else memory)
        return _incomplete(found) > least, sign * sum(values) / len(values), *cost

    return sorted(named, key=place)


def _verdicts(named: Sequence[Variant], base: str, metric: Metric) -> dict[str, tuple[Difference | None, Verdict | None]]:
    """Return difference and verdict of each from `base`, judged together."""
    if len(named) < 2:
        return {}
    table = comparison.of(named, base=base, metric=metric.key)
    row = table.rows[0]
    pairs = zip(table.variants[1:], row.cells[1:], strict=True)
    return {variant.name: (cell.difference, cell.verdict) for variant, cell in pairs}


def _rates(found: Variant, chosen: Callable[[Any], Any] | None) -> dict[int, float]:
    if chosen is None:
        return {}
    rates = {run.seed: _throughput(run.result(), chosen) for run in found.runs if run.result is not None}
    return {seed: rate for seed, rate in rates.items() if rate is not None}
