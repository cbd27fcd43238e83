"""Which policy helps a scenario most: all that apply, run with its authors' settings over common seeds, ranked with their costs.

docs/best.md states the rule of the ranking.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fanin import _core, comparison
from fanin import statistics as stats
from fanin.best.candidates import AS_IT_IS, Candidate, Rejected, candidates
from fanin.comparison import notes, rare, tables, variants
from fanin.comparison.variants import Run, Variant
from fanin.files import temporary
from fanin.results import runner
from fanin.scenario import Scenario
from fanin.statistics import Difference, Interval, Verdict, exact, metrics, tried
from fanin.statistics.metrics import Metric
from fanin.statistics.rows import addressed
from fanin.sweep import by_axis, plan, running
from fanin.tables.recorded import Recorded
from fanin.text import show

if TYPE_CHECKING:
    from fanin.sweep._worker import Outcome
    from fanin.sweep.frames import Sweep
    from fanin.sweep.plan import Planned
    from fanin.sweep.progress import SweepCallback

SCHEMA: Final = "best/2"
SEEDS: Final = 100
"""Seeds that a policy gets at most, unless it is told otherwise: as many as a mean takes that timeouts decide."""

ROUNDS: Final = 3
"""Rounds of the race at most; each looks with its share of the chance of a false verdict, so that all together keep it."""

_SMALL: Final = 0.005
"""Changes below this, relative, are called none."""


@dataclass(frozen=True)
class Place:
    """A candidate in the ranking.

    Attributes
    ----------
    rank : int
        From 1; those that are not shown to be worse than the first of their rank share it.
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
        The verdict against the best; None for the best itself.
    others : Interval or None
        Throughput of the flows that the metric is not about [b/s]; it was not measured, so it counts as one that rare runs decide.
    others_change : Difference or None
        Of that, from the scenario as it is.
    incomplete : float
        Flows that did not end, mean over seeds.
    needs : int or None
        Of how many new seeds a comparison might show the difference from the scenario as it is, where these do not.
    why : str
        Of what is better or worse in most runs alone: why the mean is not judged.
    as_it_is : Interval or None
        The metric of the scenario as it is, over the same seeds; None for that itself.
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
    needs: int | None = None
    why: str = ""
    as_it_is: Interval | None = None


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
        All seeds; a policy that left the race early has the first of them.
    alpha : float
        Chance of a false verdict of one look; all rounds of the race together have 5 % at most.
    notes : tuple of str
        What is to be said of the metric that is ranked by: of rare runs, and of means that are not judged.
    """

    metric: Metric
    places: tuple[Place, ...]
    rejected: tuple[Rejected, ...]
    comparison: comparison.Comparison
    others_are: str
    seeds: tuple[int, ...]
    alpha: float = stats.ALPHA
    notes: tuple[str, ...] = ()

    @property
    def base(self) -> Place:
        """The scenario as it is."""
        return next(place for place in self.places if place.candidate is None)

    @property
    def text(self) -> str:
        """What was found, in three sentences."""
        return " ".join((self._first(), self._second(), self._third()))

    @property
    def seeds_text(self) -> str:
        """How many seeds policies have, in words: the fewest of any and the most."""
        fewest = min(place.interval.seeds for place in self.places)
        return f"{fewest} to {_seeds(self.seeds)}" if fewest < len(self.seeds) else _seeds(self.seeds)

    def _first(self) -> str:
        top, metric = self.places[0], self.metric
        value = metric.text(top.interval.mean)
        if top.candidate is None:
            name = metric.name[:1].lower() + metric.name[1:]
            return f"Nothing that was tried comes out before the scenario as it is: {name} is {value}."
        equals = [place.name for place in self.places[1:] if place.rank == 1 and place.candidate is not None]
        also = f", not told from {_listed(equals)}" if equals else ""
        name = metric.name[:1].lower() + metric.name[1:]
        moved = f"{name} is {value}, {_against(top.change, metric)} the scenario as it is"
        if top.verdict not in _BETTER:
            return f"{top.name} comes out first{also}, and that it is better is not shown{self._might(top)}: {moved}."
        return f"{top.name} does best{_HOW.get(top.verdict, '') if top.verdict else ''}{also}: {moved}{self._unjudged(top)}."

    def _might(self, top: Place) -> str:
        """Return how many seeds might show the first one to be better, or are too few for its mean to be judged."""
        needed = notes.needed(self.metric, *self.comparison.variants) if self.comparison.variants else None
        if needed is not None and len(self.seeds) < needed:
            return f" (a mean of this metric is judged from {needed} seeds on)"
        return f" (some {tables.rounded(top.needs)} new seeds might)" if top.needs is not None else ""

    def _unjudged(self, top: Place) -> str:
        """Return why the mean of the first one is not judged, where that is so."""
        return f"; its mean is not judged: {notes.sentence(top.why)}" if top.why else ""

    def _second(self) -> str:
        top = self.places[0]
        if top.candidate is None:
            return "It adds no header and no memory."
        more = top.candidate.header_bytes
        header = f"{abs(more)} B {'more' if more > 0 else 'less'} header in a frame" if more else "no header bytes"
        known = top.candidate.memory_bytes
        memory = "memory at switches that is not known"
        if known is not None:
            memory = (
                f"{show.size(abs(known))} {'more' if known > 0 else 'less'} memory at a switch"
                if known
                else "no memory at switches"
            )
        loses = ""
        if top.others_change is not None and top.others_change.change is not None:
            loses = f"the throughput of {self.others_are} {_moved(top.others_change)}, "
        unfinished = f"; {show.many(round(top.incomplete, 1), 'flow')} did not end" if top.incomplete else ""
        return f"What it costs: {loses}{header}, {memory}{unfinished}."

    def _third(self) -> str:
        tried = [place for place in self.places if place.candidate is not None]
        verdicts = Counter(_TOLD.get(place.verdict or "one seed", "the same") for place in tried)
        told = [f"{verdicts[words]} {words}" for words in dict.fromkeys(_TOLD.values()) if verdicts[words]]
        ran = sum(own.ran for own in self.rejected)
        out = len(self.rejected) - ran
        left = [f"{show.many(ran, 'policy', 'policies')} that ran {_be(ran)} not ranked"] if ran else []
        left += [f"{out} {'was' if out == 1 else 'were'} not tried"] if out else []
        over = f"Of {len(tried)} tried over {self.seeds_text}, each against the scenario as it is over the same seeds"
        counted = ", ".join(told)
        return f"{'; '.join([f'{over}: {counted}', *left])}."

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
                "seeds": found.interval.seeds,
                "seeds_needed": found.needs,
                "why": found.why,
                "as_it_is": asdict(found.as_it_is) if found.as_it_is else None,
                "others_bps": asdict(found.others) if found.others else None,
                "others_change": asdict(found.others_change) if found.others_change else None,
                "flows_incomplete": found.incomplete,
                "header_bytes": own.header_bytes if own else None,
                "switch_memory_bytes": own.memory_bytes if own else None,
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
            "notes": list(self.notes),
            "places": [place(found) for found in self.places],
            "rejected": [asdict(found) for found in self.rejected],
        }

    def to_json(self) -> str:
        """Return `to_dict` as one line of JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)


def _seeds(seeds: Sequence[int]) -> str:
    return show.many(len(seeds), "seed")


def _be(count: int) -> str:
    return "is" if count == 1 else "are"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _against(change: Difference | None, metric: Metric) -> str:
    """Return a change as words before "the scenario as it is"."""
    if change is None or change.mean == 0:
        return "as in"
    if change.change is None:  # of nothing
        return f"{metric.text(abs(change.mean))} {'less' if change.mean < 0 else 'more'} than in"
    if abs(change.change) < _SMALL:
        return f"{show.change(change.change, sign=False)} from"
    times = change.change >= show.TIMES
    told = show.change(change.change, sign=False) + _spread(change, times=times)
    return f"{told} that of" if times else f"{told} {'less' if change.change < 0 else 'more'} than in"


def _spread(change: Difference, *, times: bool) -> str:
    """Return the interval of a change in brackets; nothing where it has none, or holds zero."""
    low, high = change.change_low, change.change_high
    if low is None or high is None or low == high or low * high <= 0:
        return ""
    ends = [show.change(share, times=times, sign=False) for share in sorted((low, high), key=abs)]
    return "" if change.mostly else f" ({ends[0]} to {ends[1]})"


def _moved(change: Difference) -> str:
    share = change.change or 0.0
    if abs(share) < _SMALL:
        return "stays as it is"
    told = f"{'some ' * change.mostly}{show.change(share, sign=False)}"
    return f"is {told}" if share >= show.TIMES else f"{'falls' if share < 0 else 'rises'} by {told}"


def _refuse_unknown(asked: str | None) -> None:
    """Refuse what no run can be ranked by, whatever the scenario."""
    if asked is None:
        return
    found = metrics.of(asked)
    if found is None:
        metrics.choose([asked], metrics.METRICS)  # a pattern
    elif found.better is None:
        raise ValueError(_WITHOUT_DIRECTION.format(asked))


_BETTER: Final[tuple[Verdict, ...]] = ("better", "better on average", "mostly better")
_FIRM: Final[tuple[Verdict, ...]] = ("better", "better on average")
_WORSE: Final[tuple[Verdict, ...]] = ("worse", "worse on average", "mostly worse")
_TOLD: Final[Mapping[str, str]] = {
    "better": "better",
    "better on average": "better on average, though most of the runs are not",
    "mostly better": "better in most runs",
    "worse": "worse",
    "worse on average": "worse on average, though most of the runs are not",
    "mostly worse": "worse in most runs",
    "no difference": "without a difference",
    "equal": "the same",
    "not shown": "not shown to be either",
    "one seed": "not shown to be either",
}
"""Verdicts as the text counts them."""

_HOW: Final[Mapping[Verdict, str]] = {"mostly better": " in most runs", "better on average": " on average, though not in most runs"}

_WITHOUT_DIRECTION: Final = "metric '{}': neither more nor less of it is better, so nothing can be ranked by it"


def _first_line(error: str) -> str:
    return error.splitlines()[0] if error else error


@dataclass
class _Watch:
    """Looks at runs as they end: the first of the scenario as it is says whether it can be ranked at all."""

    asked: str | None

    def __call__(self, planned: Planned, outcome: Outcome) -> None:
        if planned.point.label != AS_IT_IS:
            return
        if outcome.error is not None:
            raise ValueError(f"the scenario as it is fails: {_first_line(outcome.error)}")
        _chosen(self.asked, {key: value for key, value in addressed(outcome.metrics) if value is not None})


def _failures(done: Sweep) -> dict[str, str]:
    """Return why runs failed, by label: the first of each."""
    failed: dict[str, str] = {}
    for row in done.failed.iter_rows(named=True):
        failed.setdefault(row["label"], _first_line(row["error"]))
    return failed


def _variants(done: Sweep, asked: Mapping[str, Scenario], failed: Mapping[str, str]) -> list[Variant]:
    """Return what ran and did not fail, in the order of `asked`, with all that is set."""
    by_name = {found.name: found for found in by_axis.gather([done], ["label"], {})}
    made = []
    for name, scenario in asked.items():
        if name in failed:
            continue
        settings = variants.settings(scenario.resolved)
        made.append(replace(by_name[name], runs=tuple(replace(run, settings=settings) for run in by_name[name].runs)))
    return made


def _chosen(asked: str | None, found: Mapping[str, Any]) -> Metric:
    """Return the metric that is ranked by: what the scenario's jobs or queries take, else the mean completion time of all flows.

    Of each of them the mean is judged from some number of seeds on: not of the p99 of slowdowns, which rare runs decide.
    """
    if asked is None:
        jobs = sorted(key for key in found if key.startswith("collective/") and key.endswith(".time_ps"))
        asked = jobs[0] if jobs else "queries.p99_ps" if "queries.p99_ps" in found else "fct/all.mean_ps"
    chosen = metrics.choose([asked], found)
    if len(chosen) > 1:
        raise ValueError(f"metric '{asked}': fits {len(chosen)} metrics, for example {chosen[0].key}; one is needed")
    if chosen[0].better is None:
        raise ValueError(_WITHOUT_DIRECTION.format(asked))
    return chosen[0]


def _others(metric: Metric, base: Variant) -> tuple[str, Callable[[Any], Any] | None]:
    """Return the flows that a metric is not about: in words, and as a filter of the table of flows."""
    import polars as pl

    group, _, name = metric.key.rpartition(".")[0].partition("/")
    if group == "queries":
        return "flows that answer no query", lambda flows: flows.filter(pl.col("query").is_null())
    if group == "collective":
        return f"flows beside {name}", lambda flows: flows.filter(pl.col("group") != name)
    if group == "fct" and name != "all":
        low, high = _bounds(name, base)
        inside = (pl.col("size_bytes") >= low) & (pl.col("size_bytes") < high)
        return "flows of other sizes", lambda flows: flows.filter(~inside)
    return "", None


def _bounds(name: str, base: Variant) -> tuple[float, float]:
    """Return between which sizes the flows of a group lie [bytes], as the runs' summaries say."""
    entries = (entry for result in base.results() for entry in result.summary.get("fct") or [])
    found = next(entry for entry in entries if entry["bin"] == name)
    return found["from_bytes"] or 0, math.inf if found["to_bytes"] is None else found["to_bytes"]


def _throughput(result: Recorded, chosen: Callable[[Any], Any]) -> float | None:
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
    progress: bool | SweepCallback = False,
) -> Best:
    """Run every policy that applies to a scenario, with its authors' settings, and rank them.

    Parameters
    ----------
    scenario : Scenario, mapping or path-like
        The scenario; policies are tried on it one at a time.
    only : sequence of str
        Names, parts (``marking``) or patterns of policies; all if empty.
    seeds : int
        Runs of each at most, with the seeds from the scenario's own on: the same for all, so that all see the same traffic. A race
        gives most of them to those that may be best.
    metric : str, optional
        The address of what is ranked by. If not given: the time of the first job, else the p99 of queries, else the mean completion
        time of all flows.
    jobs : int, optional
        Simulations at once; as many as this process may use cores if not given.
    keep : path-like, optional
        A folder for the results, a sweep of its own, which a second call goes on with; a temporary one if not given.
    progress : bool or callable
        As for `fanin.sweep`.

    Raises
    ------
    ScenarioError
        The scenario has errors.
    ValueError
        A name in `only`, or `metric`, fits nothing, or nothing applies: before the first run. Or the scenario as it is comes to no
        end, or has no such metric: with its first run.
    OSError
        The folder cannot be used.
    """
    base = runner.as_scenario(scenario)
    first = int(base.resolved["seed"])
    if seeds < 1:
        raise ValueError(f"seeds: {seeds} is out of range; accepted: 1 or more")
    _refuse_unknown(metric)
    numbers = tuple(range(first, first + seeds))
    good, rejected = candidates(base, only)
    if not good:
        raise ValueError(_nothing(rejected if only else []))
    asked = {AS_IT_IS: base, **{found.name: found.scenario for found in good}}
    out = Path(keep) if keep is not None else temporary.folder()
    rounds = _rounds(len(asked), seeds)
    alpha = stats.ALPHA / len(rounds)
    given = dict.fromkeys(asked, 0)
    racing = list(asked)
    for count in rounds:
        given |= dict.fromkeys(racing, count)
        # A sweep, a point for each; seed by seed, so that an estimate knows the slow ones, too.
        made = plan.of_scenarios(
            "best", asked, {found.name: found.changes for found in good}, numbers[: max(given.values())], given=given
        )
        done = running.execute(made, out, jobs=jobs, keep=True, retry_failed=True, progress=progress, ended=_Watch(metric))
        failed = _failures(done)
        if AS_IT_IS in failed:
            raise ValueError(f"the scenario as it is fails: {failed[AS_IT_IS]}")
        racing = _still_racing(_variants(done, asked, failed), racing, metric, alpha, len(asked))
        if not racing:
            break
    rejected += [
        Rejected(found.name, found.part, f"failed: {failed[found.name]}", ran=True) for found in good if found.name in failed
    ]
    good = [found for found in good if found.name not in failed]
    named = _variants(done, asked, failed)
    return _ranked(named, good, rejected, metric, (numbers[: max(given.values())], alpha))


def _rounds(many: int, seeds: int) -> list[int]:
    """Return after how many seeds the race is looked at: with the fewest that can show a rank, halfway by ratio, and with all."""
    fewest = min(seeds, exact.least(stats.ALPHA / ROUNDS / (many * (many - 1) / 2)))
    halfway = round(math.sqrt(fewest * seeds))
    return sorted({fewest, *([halfway] if seeds >= 2 * fewest else []), seeds})


def _still_racing(found: Sequence[Variant], racing: Sequence[str], asked: str | None, alpha: float, many: int) -> list[str]:
    """Return which policies get more seeds, the scenario as it is among them; none if nothing more is to be told.

    Of those that are not shown to be worse than the first the better half stays. The first stays until its mean is known to be
    better than that of the scenario as it is, too.
    """
    metric = _chosen(asked, {key: value for run in found[0].runs for key, value in run.values.items()})
    there = [variant for variant in found if variant.name in racing and variant.values(metric.key)]
    order = _order(there, metric, {})
    worse = _behind(there, order[0], metric, alpha, many)
    rivals = [variant.name for variant in order[1:] if variant.name not in worse]
    rivals = [name for name in rivals if not _alike(_by_name(there, name), order[0])]
    first = order[0].name
    if not rivals and (first == AS_IT_IS or _verdicts(there, AS_IT_IS, metric, alpha)[first][1] in _FIRM):
        return []
    stay = [first, *rivals[: max(1, (len(rivals) + 1) // 2)]]
    return stay if AS_IT_IS in stay else [AS_IT_IS, *stay]


def _alike(one: Variant, other: Variant) -> bool:
    """Whether two give the same runs, which no seed tells apart."""
    return {run.seed: run.fingerprint for run in one.runs} == {run.seed: run.fingerprint for run in other.runs}


def _behind(found: Sequence[Variant], first: Variant, metric: Metric, alpha: float, many: int) -> dict[str, Verdict]:
    """Return which variants are shown to be worse than the first.

    Who is first was found by the same runs, so it is judged as if every pair had been compared.
    """
    hidden = rare.cost(metric, found)
    gaps = [
        stats.difference(
            first.values(metric.key),
            own.values(metric.key),
            seeds_needed=tried.together([first.conditions, own.conditions]).seeds_of_differences(metric.key),
            rare_cost=hidden,
            full=(first.conditions.full(metric.key), own.conditions.full(metric.key)),
        )
        if own.name != first.name and own.values(metric.key)
        else None
        for own in found
    ]
    pairs = many * (many - 1) / 2 / max(1, len(found) - 1)
    said = stats.verdicts(gaps, [metric.better] * len(gaps), alpha=alpha / pairs)
    return {own.name: judged.verdict for own, judged in zip(found, said, strict=True) if judged.verdict in _WORSE}


def _inert(found: Variant, own: Candidate, base: Variant) -> str | None:
    """Return why a policy has no part in what its runs show, if it has none."""
    if {run.seed: run.fingerprint for run in found.runs} == {run.seed: run.fingerprint for run in base.runs}:
        return "changes nothing here: the same packets at the same times in every run"
    usual = _counters(base.runs[0]).keys()
    new = [counts for run in found.runs for name, counts in _counters(run).items() if name not in usual]
    if own.part == "mechanism" and new and not any(value for counts in new for value in counts.values()):
        return "never acts here: all its counters are zero in every run, and what differs is by the settings that go with it"
    return None


def _counters(run: Run) -> dict[str, dict[str, Any]]:
    """Return what mechanisms counted, by group."""
    return run.result().summary.get("mechanisms") or {} if run.result is not None else {}


def _nothing(named: Sequence[Rejected]) -> str:
    """Return that nothing can be tried, with the reasons where policies were named."""
    if not named:
        return "nothing applies to this scenario but what it has; fanin best --only NAME tries a policy all the same"
    return "; ".join(["nothing applies to this scenario of what --only names", *(f"{own.name}: {own.reason}" for own in named)])


def _ranked(
    named: Sequence[Variant],
    good: Sequence[Candidate],
    rejected: Sequence[Rejected],
    asked: str | None,
    raced: tuple[tuple[int, ...], float],
) -> Best:
    seeds, alpha = raced
    many = len(named)
    metric = _chosen(asked, {key: value for run in named[0].runs for key, value in run.values.items()})
    whose, chosen = _others(metric, named[0])
    without = [found for found in good if not _by_name(named, found.name).values(metric.key)]
    lacking = [Rejected(found.name, found.part, f"no run has {metric.key}", ran=True) for found in without]
    good = [found for found in good if found not in without]
    idle = {own.name: why for own in good if (why := _inert(_by_name(named, own.name), own, named[0])) is not None}
    lacking += [Rejected(own.name, own.part, idle[own.name], ran=True) for own in good if own.name in idle]
    good = [own for own in good if own.name not in idle]
    named = [found for found in named if found.name not in idle]
    named = [found for found in named if found.values(metric.key)]
    if len(named) < 2:
        raise ValueError("; ".join(["nothing that was tried can be ranked", *(f"{own.name}: {own.reason}" for own in lacking)]))
    by_name = {found.name: found for found in good}
    order = _order(named, metric, by_name)
    judged = comparison.of(named, base=AS_IT_IS, metric=metric.key, alpha=alpha)
    against = {variant.name: cell for variant, cell in zip(judged.variants[1:], judged.rows[0].cells[1:], strict=True)}
    to_best = _verdicts(named, order[0].name, metric, alpha)
    rates = {found.name: _rates(found, chosen) for found in named}
    places: list[Place] = []
    first, rank = order[0], 1
    behind_first = _behind(named, first, metric, alpha, many)
    for number, found in enumerate(order, start=1):
        own, cell = by_name.get(found.name), against.get(found.name, comparison.Cell(None))
        behind = to_best.get(found.name, (None, None))[1]
        if found.name in behind_first or _leaves_more(found, first):
            first, rank = found, number
            behind_first = _behind(named, first, metric, alpha, many)
        rate, base_rate = rates[found.name], rates[AS_IT_IS]
        interval = comparison.interval(metric, found)
        assert interval is not None  # noqa: S101 (those without a value are left out)
        places.append(
            Place(
                rank=rank,
                candidate=own,
                name=found.name,
                part=own.part if own else "",
                interval=interval,
                change=cell.difference,
                verdict=cell.verdict,
                to_best=behind,
                others=stats.interval(list(rate.values()), seeds_needed=stats.RARE) if rate else None,
                others_change=stats.difference(base_rate, rate, seeds_needed=stats.RARE) if own and rate and base_rate else None,
                incomplete=_incomplete(found),
                needs=cell.seeds,
                why=cell.why,
                as_it_is=cell.base,
            )
        )
    table = comparison.of(named, base=AS_IT_IS, alpha=alpha)
    told = _notes(judged, [place.name for place in places if place.rank == 1])
    return Best(metric, tuple(places), (*rejected, *lacking), table, whose, seeds, alpha, tuple(told))


def _notes(judged: comparison.Comparison, best: Sequence[str]) -> list[str]:
    """Return what is to be said of a ranking: of the scenario as it is, and of timeouts and means that moved of the first rank."""
    places = [at for at, variant in enumerate(judged.variants) if at == 0 or variant.name in best]
    named = [judged.variants[at] for at in places]
    rows = [replace(row, cells=tuple(row.cells[at] for at in places)) for row in judged.rows]
    told = [*notes.of_conditions(judged.variants[:1]), *notes.few(judged.variants, judged.rows, judged.alpha)]
    told += notes.timeouts(named, rows, judged.variants)
    return [*told, *notes.hidden(named, rows), *notes.averages(named, rows, judged.alpha)]


def _by_name(named: Sequence[Variant], name: str) -> Variant:
    return next(found for found in named if found.name == name)


def _incomplete(found: Variant, seeds: Sequence[int] | None = None) -> float:
    """Return how many flows did not end, mean over seeds: its own if none are given."""
    counts = [found.values(f"total.flows_{state}") for state in ("incomplete", "aborted")]
    over = found.seeds if seeds is None else seeds
    return sum(own.get(seed, 0.0) for own in counts for seed in over) / len(over)


def _leaves_more(found: Variant, than: Variant) -> bool:
    """Whether one leaves more flows that did not end than another, over the seeds that both have."""
    both = sorted(set(found.seeds) & set(than.seeds))
    return bool(both) and _incomplete(found, both) > _incomplete(than, both)


def _order(named: Sequence[Variant], metric: Metric, by_name: Mapping[str, Candidate]) -> list[Variant]:
    """Best first, by the mean difference from the scenario as it is over the seeds that both have.

    Policies have different seeds, and few seeds may lack the dear ones. Of the same differences what costs less comes first; what
    leaves more flows unfinished comes last.
    """
    base = next(found for found in named if found.name == AS_IT_IS)
    usual = base.values(metric.key)
    sign = 1 if metric.better == "lower" else -1

    def gain(found: Variant) -> float:
        gaps = [value - usual[seed] for seed, value in found.values(metric.key).items() if seed in usual]
        return sum(gaps) / len(gaps) if gaps else sign * math.inf

    def place(found: Variant) -> tuple[bool, float, int, float]:
        own = by_name.get(found.name)  # none: the scenario as it is
        memory = 0 if own is None else own.memory_bytes
        cost = (own.header_bytes if own else 0, math.inf if memory is None else memory)
        return _leaves_more(found, base), sign * gain(found), *cost

    return sorted(named, key=place)


def _verdicts(
    named: Sequence[Variant], base: str, metric: Metric, alpha: float
) -> dict[str, tuple[Difference | None, Verdict | None]]:
    """Return difference and verdict of each from `base`, judged together."""
    if len(named) < 2:
        return {}
    table = comparison.of(named, base=base, metric=metric.key, alpha=alpha)
    row = table.rows[0]
    pairs = zip(table.variants[1:], row.cells[1:], strict=True)
    return {variant.name: (cell.difference, cell.verdict) for variant, cell in pairs}


def _rates(found: Variant, chosen: Callable[[Any], Any] | None) -> dict[int, float]:
    if chosen is None:
        return {}
    rates = {run.seed: _throughput(run.result(), chosen) for run in found.runs if run.result is not None}
    return {seed: rate for seed, rate in rates.items() if rate is not None}
