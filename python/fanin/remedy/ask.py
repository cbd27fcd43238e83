"""Asks what would have helped a burst: reads it, models its port, holds the model against it, tries settings on what stands."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Unpack

from fanin import statistics as stats
from fanin.analysis.port_scenario import LIMITS
from fanin.analysis.settings import Settings, described
from fanin.best.candidates import Candidate, Rejected, candidates
from fanin.files import temporary
from fanin.remedy import open_loop, reading
from fanin.remedy.answer import Goal, Remedy, WhatIf
from fanin.remedy.bench import Asked, Bench, Looked
from fanin.remedy.fitted import fit
from fanin.remedy.model import Model, Uncertain, drawn, told, watched
from fanin.remedy.settings import amount, buffer_bytes, trials
from fanin.results import runner
from fanin.scenario import Scenario

if TYPE_CHECKING:
    from fanin.analysis import Analysis
    from fanin.remedy.seen import Seen

MEMBERS: Final = 20
"""Members of an ensemble, unless it is told otherwise."""

DRAWS: Final = 6
"""So many times the members are drawn at most to find them."""

LEAST: Final = 6
"""Members without which there is no answer: as few as an interval of a median takes."""

LEAST_SHARE: Final = 0.1
"""Share of the draws that has to give back what was measured: a model that seldom does is none."""

_FUTILE: Final = 2
"""So many times the members are drawn before a model of which none gives back what was measured is given up."""

_SCREENED: Final = 3
"""Draws of each variant by which it is seen whether it may have been in force."""

_REMOVED: Final = 0.1
"""Drops that may be left, as a share of those without the setting."""

_EARLIER: Final = 0.8
"""End of the last flow, as a share of that without the setting."""

_ASKED: Final[Mapping[Goal, str]] = {"drops": "all_drops", "peak": "peak", "time": "until_ps"}
"""Goal → the metric that it is about."""

_REPLAYED: Final = 500_000
"""Packets up to which arrivals are sent through other buffers."""


@dataclass(frozen=True)
class _Member:
    """A draw of the model that gives back what was measured."""

    label: str
    asked: Asked
    looked: Looked


def whatif(  # noqa: PLR0913 (options by name)
    source: Any,
    *,
    scenario: Scenario | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    at: str | None = None,
    known: Mapping[str, Any] | None = None,
    goal: Goal | None = None,
    below: str | None = None,
    only: Sequence[str] = (),
    members: int = MEMBERS,
    seed: int = 1,
    largest: bool = False,
    jobs: int | None = None,
    told_of: Callable[[str], None] | None = None,
    **settings: Unpack[Settings],
) -> WhatIf:
    """Say which setting would have helped a measured burst, what it costs, and how sure that is.

    docs/whatif.md says how.

    Parameters
    ----------
    source : Result, path-like or sequence of path-like
        A trace as `fanin.analyze` takes it, or a report that ``fanin analyze -o`` wrote (or the folder it is in).
    scenario : Scenario, mapping or path-like, optional
        The model of the port; what the trace itself says if not given.
    at : str, optional
        The port of `scenario` that was measured; the busiest one if not given.
    known : mapping, optional
        Settings of the model that are known, path → value: ``{"switch.buffer.per_port": "512KB"}``.
    goal : {"drops", "peak", "time"}, optional
        What is asked for: nine of ten drops gone, the longest queue below `below`, the last flow's end a fifth earlier. If not
        given: the queue with `below`, else drops where there were any, else the time.
    below : str, optional
        A queue, ``"200KB"``.
    only : sequence of str
        Settings that are tried: names, parts (``buffer``) or patterns; all if empty.
    members : int
        Members of the ensemble.
    seed : int
        Of all draws.
    largest : bool
        Samples of a queue are the largest since the one before (watermarks).
    jobs : int, optional
        Simulations at once; as many as this process may use cores if not given.
    told_of : callable, optional
        Is told what is being run, in words.
    **settings
        As in `fanin.analysis.settings.Settings`.

    Raises
    ------
    TraceError
        As `fanin.analyze`.
    ScenarioError
        The model has errors.
    ValueError
        The trace has nothing that a model can be held against, or an option is wrong; all that is wrong with options at once.
    """
    below_bytes = _checked(goal, below, members, jobs)
    given: dict[str, Any] = dict(settings)
    analysis = reading.analysed(source, given)
    reading.relied_on(analysis)
    wanted = given.get("port")
    port = analysis.port(wanted if isinstance(wanted, str) else None)
    kind = reading.kind_of(analysis, port)
    if kind == "behind" and analysis.document["transfers"] is None:
        analysis = reading.analysed(source, {**given, "transfers": True})
        port = analysis.port(port["port"])
    folder = temporary.folder()
    try:
        own = None if scenario is None else runner.as_scenario(scenario)
        asking = _Asking(analysis, port, kind, dict(known or {}), members, seed, folder, jobs, told_of)
        model, bench = asking.modelled(own, at, largest=largest)
        goal = goal or _goal(model.measured, below_bytes)
        return asking.answered(model, bench, (goal, below_bytes), only)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


described(whatif)


def _checked(goal: str | None, below: str | None, members: int, jobs: int | None) -> float | None:
    """Return the queue that is asked for in bytes.

    Raises
    ------
    ValueError
        All that is wrong.
    """
    wrong = []
    size = None if below is None else amount(below)
    if below is not None and not size:
        wrong.append(f"below: '{below}' is no size; accepted: for example 200KB")
    if goal not in (None, "drops", "peak", "time"):
        wrong.append(f"goal: '{goal}' is none; accepted: drops, peak, time")
    if goal == "peak" and below is None:
        wrong.append("goal: peak takes a queue to stay below: --below 200KB")
    if goal in ("drops", "time") and below is not None:
        wrong.append(f"below: has no effect with goal {goal}; accepted: goal peak")
    if not LEAST <= members <= 1000:
        wrong.append(f"members: {members} is out of range; accepted: {LEAST} to 1000")
    if jobs is not None and jobs < 1:
        wrong.append(f"jobs: {jobs} is out of range; accepted: 1 or more")
    if wrong:
        raise ValueError("; ".join(wrong))
    return None if size is None else float(size)


def _goal(measured: Seen, below: float | None) -> Goal:
    return "peak" if below is not None else "drops" if measured.dropped else "time"


@dataclass
class _Asking:
    """All that stays the same while one question is answered."""

    analysis: Analysis
    port: dict[str, Any]
    kind: str
    known: dict[str, Any]
    members: int
    seed: int
    folder: Path
    jobs: int | None
    told_of: Callable[[str], None] | None

    def bench(self, model: Model) -> Bench:
        return Bench(self.folder, model.port, model.view, self.jobs, self.told_of)

    # -- the model --------------------------------------------------------------------------------------------------

    def modelled(self, given: Scenario | None, at: str | None, *, largest: bool) -> tuple[Model, Bench]:
        """Return the model of the port and the bench that it is run on."""
        shown = reading.measured(self.analysis, self.port, self.kind, largest=largest)
        if given is not None:
            model = reading.given_model(given, at, shown, self.known)
            return model, self.bench(model)
        if at is not None:
            raise ValueError(f"at: '{at}' is a port of a scenario, and none is given; accepted: with --scenario")
        if self.kind == "result":
            model = reading.of_result(self.analysis, self.port, shown, self.known)
            return model, self.bench(model)
        if self.kind == "samples":
            return self._fitted(shown)
        model, others = reading.of_flows(self.analysis, self.port, shown, self.known, behind=self.kind == "behind")
        bench = self.bench(model)
        return self._chosen(model, others, bench), bench

    def _chosen(self, model: Model, others: Sequence[Scenario], bench: Bench) -> Model:
        """Return a model with those of its variants that give back what was measured; the two nearest if none does."""
        near = self._near(model, model.variants, bench)
        if not any(far <= 1 for far, _ in near) and others:
            near = sorted([*near, *self._near(model, others, bench)], key=lambda entry: entry[0])
        good = [scenario for far, scenario in near if far <= 1]
        if len(model.variants) == 1 and not others:
            return model
        chosen = good or [scenario for _, scenario in near[:2]]
        words = _variants(chosen, [*model.variants, *others], near=bool(good))
        return replace(model, variants=tuple(chosen), unsure=(*_without_control(model.unsure), *words))

    def _near(self, model: Model, variants: Sequence[Scenario], bench: Bench) -> list[tuple[float, Scenario]]:
        """Return variants with how far the nearest of a few draws of each is off, the nearest first."""
        asked: dict[str, Asked] = {}
        of: dict[str, int] = {}
        for at, variant in enumerate(variants):
            for number in range(_SCREENED):
                label = f"variant {at}, draw {number}"
                asked[label], of[label] = Asked(*drawn(variant, model.uncertain, number, self.seed)), at
        looked = bench.run(asked, "tries what may have been in force", look=True)
        nearest: dict[int, float] = {}
        for label, own in looked.items():
            if own.seen is not None:
                far = model.measured.distance(own.seen, model.view.slack_ps)
                nearest[of[label]] = min(far, nearest.get(of[label], far))
        return sorted(((far, variants[at]) for at, far in nearest.items()), key=lambda entry: entry[0])

    def _fitted(self, shown: tuple[Any, Any]) -> tuple[Model, Bench]:
        series = reading.of_samples(self.analysis, self.port, shown, self.known)
        view, measured = shown
        bench = Bench(self.folder, "left->right", view, self.jobs, self.told_of)
        good, tried = fit(bench, series, self.members, self.seed)
        if not tried:
            raise ValueError("no fan-in that was fitted to the samples could be simulated")
        variants = good or [scenario for _, scenario, _ in tried[:2]]
        how = f"a fan-in fitted to the samples: {len(good)} of {len(tried)} that were tried give them back"
        senders = sorted(len(scenario.to_dict()["traffic"][0]["flows"]) for scenario in variants)
        unsure = (
            f"senders: {senders[0]} to {senders[-1]}, for samples of a queue name none; sizes, starts and first windows likewise",
            *_variants(variants, [scenario for _, scenario, _ in tried], near=bool(good)),
        )
        frame = round(1518 * 8e12 / series.wire_bps)
        uncertain = Uncertain(reading.RATE, (0.95, 1.05), frame)
        return Model(
            tuple(watched(own, "left->right", view) for own in variants), "left->right", view, measured, uncertain, how, unsure
        ), bench

    # -- the ensemble -----------------------------------------------------------------------------------------------

    def _ensemble(self, model: Model, bench: Bench) -> tuple[list[_Member], list[_Member]]:
        """Return draws that give back what was measured, and all of them."""
        good: list[_Member] = []
        every: list[_Member] = []
        for _ in range(DRAWS):
            first = len(every)
            asked = {}
            for number in range(first, first + self.members):
                variant = model.variants[number % len(model.variants)]
                scenario, seed, phase = drawn(variant, model.uncertain, 0 if number == 0 else number, self.seed)
                asked[f"draw {number}"] = Asked(scenario, seed, phase)
            looked = bench.run(asked, "holds draws of the model against what was measured", look=True)
            every += [_Member(label, asked[label], looked[label]) for label in asked]
            good = [own for own in every if self._far(model, own) <= 1]
            if len(good) >= self.members or (not good and len(every) >= _FUTILE * self.members):
                break
        return good[: self.members], every

    def _far(self, model: Model, own: _Member) -> float:
        seen = own.looked.seen
        return float("inf") if seen is None else model.measured.distance(seen, model.view.slack_ps)

    def answered(self, model: Model, bench: Bench, goal: tuple[Goal, float | None], only: Sequence[str]) -> WhatIf:
        """Return the answer."""
        nominal = model.variants[0]
        peak = model.measured.peak_bytes or 0.0
        good, bad = candidates(_plain(nominal), only, trials=trials(nominal, peak))
        members, every = self._ensemble(model, bench)
        nearest = min(every, key=lambda own: self._far(model, own))
        seen = nearest.looked.seen
        enough = len(members) >= LEAST and len(members) >= LEAST_SHARE * len(every)
        missed = [] if enough else self._missed(model, nearest, len(members), len(every))
        remedies: list[Remedy] = []
        if enough:
            remedies, failed = self._tried(model, bench, members, good, goal)
            bad = [*bad, *failed]
        replays, least = self._open(model)
        return WhatIf(
            port=str(self.port["port"]),
            goal=goal[0],
            below_bytes=goal[1],
            model=model,
            nearest=seen,
            accepted=len(members) if enough else sum(self._far(model, own) <= 1 for own in every),
            tried=len(every),
            members=tuple(own.looked.seen for own in members if own.looked.seen is not None),
            missed=tuple(missed),
            over=tuple(told(model.uncertain, nominal)),
            remedies=tuple(remedies),
            rejected=tuple(bad),
            replays=tuple(replays),
            least_buffer=least,
            base=_plain(members[0].asked.scenario if members else nominal),
            notes=() if self.kind == "result" else (LIMITS,),
            doubt=_doubt(self.analysis),
        )

    def _missed(self, model: Model, nearest: _Member, good: int, draws: int) -> list[str]:
        seen = nearest.looked.seen
        if seen is None:
            return [f"its simulation fails: {nearest.looked.error}"]
        found = model.measured.missed(seen, model.view.slack_ps)
        return found or [f"only {good} of {draws} draws of it give back what was measured"]

    # -- remedies ---------------------------------------------------------------------------------------------------

    def _tried(
        self, model: Model, bench: Bench, members: Sequence[_Member], good: Sequence[Candidate], goal: tuple[Goal, float | None]
    ) -> tuple[list[Remedy], list[Rejected]]:
        """Return what each setting does to each member, ranked, and what failed."""
        asked: dict[str, Asked] = {}
        failed: list[Rejected] = []
        able: list[Candidate] = []
        for own in good:
            try:
                changed = {_label(own, at): _changed(member, own) for at, member in enumerate(members)}
            except ValueError as error:
                failed.append(Rejected(own.name, own.part, str(error).splitlines()[0]))
                continue
            asked |= changed
            able.append(own)
        looked = bench.run(asked, f"tries {len(able)} settings on {len(members)} members", look=False)
        base = {at: own.looked.values for at, own in enumerate(members)}
        made: list[Remedy] = []
        for own in able:
            runs = {at: looked[_label(own, at)] for at in range(len(members))}
            wrong = next((run.error for run in runs.values() if run.error), "")
            if wrong:
                failed.append(Rejected(own.name, own.part, f"failed: {wrong}", ran=True))
                continue
            made.append(_remedy(own, base, {at: run.values for at, run in runs.items()}, goal, model.view.scale))
        return _ranked(made, goal[0]), failed

    def _open(self, model: Model) -> tuple[list[open_loop.Replay], int | None]:
        """Return measured arrivals through other buffers."""
        if model.arrivals is None or model.arrivals.height > _REPLAYED:
            return [], None
        room = buffer_bytes(model.variants[0])
        least = open_loop.least_buffer(model.arrivals, model.wire_bps, model.overhead)
        if room is None:
            return [], least
        rooms = [round(times * room / model.view.scale) for times in (1, 2, 4, 8)]
        return open_loop.replay(model.arrivals, model.wire_bps, model.overhead, rooms), least


def _label(own: Candidate, member: int) -> str:
    return f"{own.name} @ {member}"


def _changed(member: _Member, own: Candidate) -> Asked:
    scenario = _plain(member.asked.scenario)
    for path, value in own.changes.items():
        scenario = scenario.replace({path: value})
    return Asked(scenario, member.asked.seed, member.asked.phase, own.changes)


def _plain(scenario: Scenario) -> Scenario:
    """Return a scenario without captures, which only views from behind take."""
    telemetry = scenario.to_dict().get("telemetry") or {}
    return scenario.replace({"telemetry": None}) if "capture" in telemetry else scenario


def _variants(chosen: Sequence[Scenario], every: Sequence[Scenario], *, near: bool) -> list[str]:
    """Return in words which of the settings in which variants differ were kept; `near`: since they give back the trace."""
    why = "by what gives back the trace" if near else "by what comes nearest"
    paths = {
        "congestion control": ("transport", "congestion_control", "kind"),
        "first window": ("transport", "initial_window"),
        "shortest timeout": ("transport", "rto_min"),
        "buffer": ("switch", "buffer", "per_port"),
    }
    words = []
    for name, path in paths.items():
        own, all_ = ({str(_at(scenario.resolved, path)) for scenario in some} for some in (chosen, every))
        if len(all_) > 1:
            listed = sorted(own)
            shown = f"{len(listed)} between {listed[0]} and {listed[-1]}" if len(listed) > 4 else " or ".join(listed)
            words.append(f"{name}: {shown}, of {len(all_)} that were tried, {why} (--set pins it)")
    return words


def _at(table: Any, path: Sequence[str]) -> Any:
    for key in path:
        table = table.get(key) if isinstance(table, Mapping) else None
    return table


def _without_control(unsure: Sequence[str]) -> list[str]:
    return [words for words in unsure if not words.startswith("congestion control")]


def _value(values: Mapping[str, float], name: str) -> float:
    return float(values.get(name, 0.0))


def _dropped(values: Mapping[str, float]) -> float:
    """Return drops at the port."""
    return _value(values, "dropped")


def _unfinished(values: Mapping[str, float]) -> float:
    return _value(values, "incomplete") + _value(values, "aborted")


def _does(goal: tuple[Goal, float | None], before: Mapping[str, float], after: Mapping[str, float], scale: float) -> bool:
    """Return whether a setting does what is asked for, in one member."""
    if _unfinished(after) > _unfinished(before):
        return False
    asked, below = goal
    if asked == "drops":
        return _dropped(before) > 0 and _value(after, "all_drops") <= _REMOVED * _dropped(before)
    if asked == "peak":
        return _value(after, "peak") / scale <= (below or 0.0) and _value(after, "all_drops") <= _value(before, "all_drops")
    return _value(after, "until_ps") <= _EARLIER * _value(before, "until_ps")


def _remedy(
    own: Candidate,
    base: Mapping[int, Mapping[str, float]],
    after: Mapping[int, Mapping[str, float]],
    goal: tuple[Goal, float | None],
    scale: float,
) -> Remedy:
    does = [float(_does(goal, base[at], after[at], scale)) for at in base]
    with_drops = [at for at in base if _dropped(base[at])]
    removed = [1 - _value(after[at], "all_drops") / _dropped(base[at]) for at in with_drops]

    def change(name: str) -> stats.Difference:
        return stats.difference({at: _value(base[at], name) for at in base}, {at: _value(after[at], name) for at in base})

    return Remedy(
        name=own.name,
        part=own.part,
        about=own.about,
        changes=own.changes,
        holds=int(sum(does)),
        members=len(base),
        share=stats.share(does),
        change=change(_ASKED[goal[0]]),
        removed=stats.interval(removed, limit=1.0) if removed else None,
        dropped=stats.interval([_value(after[at], "all_drops") for at in base]),
        peak_bytes=stats.interval([_value(after[at], "peak") / scale for at in base]),
        last=change("until_ps"),
        mean_time=change("mean_ps"),
        verdict=None,
        marks=sum(_value(after[at], "marks") for at in base) / len(base),
        goodput=change("goodput_bps"),
        unfinished=sum(_unfinished(after[at]) for at in base) / len(base),
        header_bytes=own.header_bytes,
        memory_bytes=own.memory_bytes,
    )


def _ranked(made: Sequence[Remedy], goal: Goal) -> list[Remedy]:
    """Return remedies with their verdicts: first what holds, then by what is asked for, then by what it costs in time."""
    if not made:
        return []
    said = stats.verdicts([own.change for own in made], ["lower"] * len(made))
    judged = [replace(own, verdict=found.verdict) for own, found in zip(made, said, strict=True)]

    def place(own: Remedy) -> tuple[float, ...]:
        removed = -1.0 if own.removed is None else own.removed.mean
        first = {"drops": -round(removed, 2), "peak": round(own.peak_bytes.mean, -3), "time": round(own.last.mean, -6)}[goal]
        return (-float(own.sure), -own.holds, first, own.mean_time.mean, own.header_bytes or 0)

    return sorted(judged, key=place)


def _doubt(analysis: Analysis) -> str:
    """Return why a trace is not to be trusted without reserve; nothing where it is."""
    trust = analysis.plausibility
    return "" if trust["trust"] == "good" else f"{trust['trust']}; {trust['words']}"
