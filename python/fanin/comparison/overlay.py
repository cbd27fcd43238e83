"""Figures of several runs over one another: one curve per variant, for the page of a comparison and for papers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import plotly.graph_objects as go
import polars as pl

from fanin import figures
from fanin import statistics as stats
from fanin.comparison.variants import CompareError, meant
from fanin.figures import COLORS, focus, framed, plain, series
from fanin.tables.recorded import Recorded
from fanin.text import show

Groups = Mapping[str, Sequence[Recorded]]
"""Name of a variant → its runs, one per seed."""

STATISTICS: Final = ("mean", "p50", "p95", "p99")
"""Statistics that figures by flow size can show."""

OPTIONS: Final = {"port": "--port", "flow": "--flow", "statistic": "--statistic", "window_ps": "--window", "bin_ps": "--bin"}
"""Options of figures as the command line calls them."""

_SAMPLES: Final = "telemetry.sample takes samples of all ports"
_QUEUES: Final = f"{_SAMPLES}, telemetry.queues names ports at which every packet is recorded"
_FOLLOW: Final = "telemetry.hosts names flows that are followed"

_BINS: Final = 50
"""Intervals that the time is divided into for the throughput of flows, about."""


@dataclass(frozen=True)
class Kind:
    """A kind of figure.

    Attributes
    ----------
    words : str
        What it shows.
    single : callable
        Draws one run.
    several : callable or None
        Draws several variants; None where one run is all that can be drawn.
    options : tuple of str
        What can be chosen: ``port``, ``statistic``, ``flow``, ``bin_ps``, ``window_ps``.
    """

    words: str
    single: Callable[..., go.Figure]
    several: Callable[..., go.Figure] | None
    options: tuple[str, ...] = ()


def draw(kind: str, groups: Groups, **options: Any) -> go.Figure:
    """Return a figure of one run or of several variants.

    Parameters
    ----------
    kind : str
        Key of `KINDS`.
    groups : mapping
        Name → runs; what is drawn over time is drawn of the first seed that all have, everything else of all seeds together.
    **options
        ``port``: of queues and throughput. ``statistic``: of `STATISTICS`, by flow size. ``flow``: number or id. ``bin_ps``:
        interval of the throughput of flows [ps]. ``window_ps``: (from, to), the part of the run that is shown [ps].

    Raises
    ------
    CompareError
        There is no such kind, an option does not belong to it, or a run lacks what it needs.
    """
    if kind not in KINDS:
        raise CompareError([f"kind '{kind}': there is none of that name; there are {', '.join(KINDS)}" + meant(kind, KINDS)])
    found = KINDS[kind]
    given = {name: value for name, value in options.items() if value is not None}
    problems = [
        f"{_called(name)}: without effect on the kind '{kind}'; it takes {', '.join(map(_called, found.options)) or 'none'}"
        for name in given
        if name not in found.options
    ]
    problems += [
        f"{name}: no run of it has a result folder; fanin sweep --keep (keep=True) keeps them"
        for name, runs in groups.items()
        if not runs
    ]
    runs = [run for own in groups.values() for run in own]
    if found.several is None and len(runs) > 1:
        problems.append(f"kind '{kind}': draws one run, and {len(runs)} are given")
    if problems:
        raise CompareError(problems)
    if found.several is None or (len(runs) == 1 and "statistic" not in given):
        drawn = _single(found, next(iter(groups)), runs[0], given)
    else:
        drawn = found.several(groups, **given)
    return focus.busy_part(drawn, runs) if "window_ps" in found.options and "window_ps" not in given else drawn


def _called(name: str) -> str:
    """Return an option with its name on the command line."""
    return f"{name} ({OPTIONS[name]})" if name in OPTIONS else name


def _single(kind: Kind, name: str, run: Recorded, options: Mapping[str, Any]) -> go.Figure:
    try:
        return kind.single(run, **options)
    except CompareError:
        raise
    except ValueError as error:
        raise CompareError([f"{name}: {error}"]) from error


def _one_seed(groups: Groups) -> tuple[dict[str, Recorded], str]:
    """Return a run of each variant, of the first seed that all have, and a sentence that says so."""
    seeds = [{int(run.manifest.get("seed", 0)) for run in runs} for runs in groups.values()]
    shared = sorted(set.intersection(*seeds))
    if not shared:
        first = {name: min(runs, key=lambda run: int(run.manifest.get("seed", 0))) for name, runs in groups.items()}
        listed = ", ".join(f"{plain(name)} {run.manifest.get('seed')}" for name, run in first.items())
        return first, f"They have no seed in common: {listed}."
    chosen = {name: next(run for run in runs if run.manifest.get("seed", 0) == shared[0]) for name, runs in groups.items()}
    return chosen, f"Seed {shared[0]}."


def _of_each(groups: Mapping[str, Any], what: Callable[[Any], Any]) -> dict[str, Any]:
    """Return what is drawn of each variant; what some of them lack is said of all at once."""
    found, problems = {}, []
    for name, runs in groups.items():
        try:
            found[name] = what(runs)
        except ValueError as error:
            problems.append(f"{name}: {error}")
    if problems:
        raise CompareError(problems)
    return found


def _cdf(groups: Groups, *, slowdown: bool = False) -> go.Figure:
    column = "slowdown" if slowdown else "fct_ps"

    def pooled(runs: Sequence[Recorded]) -> pl.Series:
        values: pl.Series = pl.concat([run.completions[column] for run in runs])
        if not values.len():
            raise ValueError("no transfer was completed, so there are no completion times")
        return values

    values = _of_each(groups, pooled)
    middle = pl.concat([own.cast(pl.Float64) for own in values.values()]).median()
    unit, scale = ("", 1.0) if slowdown else show.axis_unit(show.TIME_UNITS, float(middle) if isinstance(middle, float) else None)
    what = "Slowdown" if slowdown else "Flow completion time"
    traces = _curves(values, unit, scale)
    ends = [float(value) for trace in traces for value in (trace.x[0], trace.x[-1])]
    x = figures.log_axis(what if slowdown else f"{what} [{unit}]", ends)
    note = f"Completed flows of {_seeds(groups)}." + _thinned(values)
    return framed(traces, f"Distribution of the {what.lower()}", x, {"title": {"text": "Fraction of flows"}}, note)


def _curves(values: Mapping[str, pl.Series], unit: str, scale: float) -> list[go.Scatter]:
    traces = []
    for at, (name, own) in enumerate(values.items()):
        curve = series.cdf(own)
        traces.append(
            go.Scatter(
                x=(curve["value"].cast(pl.Float64) / scale).to_numpy(),
                y=curve["fraction"].to_numpy(),
                name=plain(name),
                mode="lines",
                line={"shape": "hv", "width": 2, "color": COLORS[at % len(COLORS)]},
                hovertemplate=f"%{{x:.4g}} {unit}: %{{y:.2%}}<extra>{plain(name)}</extra>",
            )
        )
    return traces


def _thinned(values: Mapping[str, pl.Series]) -> str:
    thinned = any(own.len() > series.MAX_POINTS // 2 for own in values.values())
    return " Curves thinned, the hundred largest values kept." if thinned else ""


def _seeds(groups: Groups) -> str:
    counts = {len(runs) for runs in groups.values()}
    if len(counts) == 1:
        count = counts.pop()
        return f"{count} seeds each, together" if count > 1 else "one seed each"
    return "all seeds together: " + ", ".join(f"{plain(name)} {len(runs)}" for name, runs in groups.items())


def _by_size(groups: Groups, what: str, *, statistic: str = "p99") -> go.Figure:
    if statistic not in STATISTICS:
        raise CompareError([f"statistic '{statistic}': there is none of that name; there are {', '.join(STATISTICS)}"])
    column = f"slowdown_{statistic}" if what == "slowdown" else f"{statistic}_ps"

    def bins(runs: Sequence[Recorded]) -> dict[str, list[float]]:
        found: dict[str, list[float]] = {}
        for run in runs:
            for entry in run.summary.get("fct") or []:
                if entry.get("bin") != "all" and entry.get("flows") and entry.get(column) is not None:
                    label = show.byte_range(entry.get("from_bytes"), entry.get("to_bytes"))
                    found.setdefault(label, []).append(float(entry[column]))
        if not found:
            raise ValueError("no transfer was completed, so there are no completion times")
        return found

    values = _of_each(groups, bins)
    entries = [entry for runs in groups.values() for run in runs for entry in run.summary["fct"] if entry.get("bin") != "all"]
    ordered = sorted(entries, key=lambda entry: entry.get("from_bytes") or 0)
    every = dict.fromkeys(show.byte_range(entry.get("from_bytes"), entry.get("to_bytes")) for entry in ordered)
    labels = [label for label in every if any(label in own for own in values.values())]
    known = sorted(value for own in values.values() for column_ in own.values() for value in column_)
    unit, scale = ("", 1.0) if what == "slowdown" else show.axis_unit(show.TIME_UNITS, known[len(known) // 2])
    symbols = ("circle", "square", "diamond", "triangle-up", "x")
    traces = []
    for at, (name, own) in enumerate(values.items()):
        found = [stats.interval(own[label]) if label in own else None for label in labels]
        means = [None if entry is None else entry.mean / scale for entry in found]
        # A whisker where there is an interval; one of length zero is not seen.
        ends = [(0.0, 0.0) if entry is None else _whiskers(entry, scale) for entry in found]
        down, up = [end[0] for end in ends], [end[1] for end in ends]
        traces.append(
            go.Scatter(
                x=labels,
                y=means,
                error_y={"type": "data", "symmetric": False, "array": up, "arrayminus": down, "thickness": 1.2, "width": 4}
                if any(up) or any(down)
                else None,
                name=plain(name),
                mode="lines+markers",
                marker={"symbol": symbols[at % len(symbols)], "size": 9},
                line={"width": 2, "color": COLORS[at % len(COLORS)]},
                hovertemplate=f"%{{y:.4g}} {unit}<extra>{plain(name)}</extra>",
            )
        )
    title = "Slowdown" if what == "slowdown" else "Flow completion time"
    short = {"mean": "mean", "p50": "median"}.get(statistic, statistic)
    axis = f"Slowdown, {short}" if what == "slowdown" else f"FCT, {short} [{unit}]"
    y = figures.log_axis(axis, [value / scale for value in known])
    note = f"Of {_seeds(groups)}".removesuffix(", together") + (
        "; whiskers: intervals of the mean over seeds." if any(trace.error_y.array is not None for trace in traces) else "."
    )
    x = {"title": {"text": "Flow size"}, "type": "category"}
    return framed(traces, f"{title} by flow size, {short}", x, y, note)


def _whiskers(found: stats.Interval, scale: float) -> tuple[float, float]:
    """Return how far an interval reaches below and above its mean."""
    if found.low is None or found.high is None:
        return 0.0, 0.0
    return (found.mean - found.low) / scale, (found.high - found.mean) / scale


def _queue(groups: Groups, *, port: str | None = None, window_ps: tuple[int, int] | None = None) -> go.Figure:
    runs, seed = _one_seed(groups)
    chosen = port or next(iter(series.hot_ports(next(iter(runs.values())), 1)), None)
    if chosen is None:
        raise CompareError([f"{next(iter(runs))}: no queue was recorded; {_QUEUES}"])
    points = series.MAX_POINTS // 2

    def levels(run: Recorded) -> series.QueueSeries:
        try:
            return series.queue_series(run, chosen, window_ps, points)
        except ValueError as error:
            raise ValueError(f"{error}; {_QUEUES}") from error

    found = _of_each(runs, levels)
    unit, scale = show.axis_unit(
        show.TIME_UNITS, max((figures.largest(data.line["time_ps"]) for data in found.values()), default=0)
    )
    size_unit, size_scale = show.axis_unit(show.SIZE_UNITS, max(data.peak_bytes for data in found.values()))
    traces = [
        go.Scatter(
            x=(data.line["time_ps"].cast(pl.Float64) / scale).to_numpy(),
            y=(data.line["queue_bytes"].cast(pl.Float64) / size_scale).to_numpy(),
            name=plain(name),
            mode="lines",
            line={"shape": "linear" if data.kind == "packet" else "vh", "width": 1.2, "color": COLORS[at % len(COLORS)]},
            hovertemplate=f"%{{x:.6g}} {unit}: %{{y:.4g}} {size_unit}<extra>{plain(name)}</extra>",
        )
        for at, (name, data) in enumerate(found.items())
    ]
    sampled = [plain(name) for name, data in found.items() if data.kind == "sampled"]
    what = (
        "Every packet"
        if not sampled
        else "Largest of each sample"
        if len(sampled) == len(found)
        else f"Samples: {', '.join(sampled)}"
    )
    reduced = (
        f", smallest and largest of each of {points // 2:,} parts of the time" if any(d.reduced for d in found.values()) else ""
    )
    x, y = {"title": {"text": f"Time [{unit}]"}}, {"title": {"text": f"Queue [{size_unit}]"}}
    return _within(framed(traces, f"Queue of {plain(chosen)}", x, y, f"{what}{reduced}. {seed}"), window_ps, scale)


def _within(figure: go.Figure, window_ps: tuple[int, int] | None, scale: float) -> go.Figure:
    """Keep what lies in a part of the run, and show just that."""
    if window_ps is not None:
        low, high = (time / scale for time in window_ps)
        for trace in figure.data:
            if trace.x is None or len(trace.x) != len(trace.y):
                continue
            inside = [at for at, x in enumerate(trace.x) if low <= x <= high]
            trace.x, trace.y = [trace.x[at] for at in inside], [trace.y[at] for at in inside]
        figure.update_xaxes(range=[low, high])
    return figure


def _queue_cdf(groups: Groups, *, port: str | None = None) -> go.Figure:
    first = next(iter(groups.values()))[0]
    chosen = port or next(iter(series.hot_ports(first, 1)), None)

    def levels(runs: Sequence[Recorded]) -> pl.Series:
        kept = [run.scan_ports().filter(pl.col("port") == chosen).select("queue_bytes").collect()["queue_bytes"] for run in runs]
        values: pl.Series = pl.concat(kept)
        if not values.len():
            if not any(run.sample_times.len() for run in runs):
                raise ValueError(f"there are no samples; {_SAMPLES}")
            raise ValueError(f"there are no samples of the port '{chosen}'; try {', '.join(series.hot_ports(runs[0], 4))}")
        return values

    values = _of_each(groups, levels)
    unit, scale = show.axis_unit(show.SIZE_UNITS, max(figures.largest(own) for own in values.values()))
    x = {"title": {"text": f"Queue [{unit}]"}, "rangemode": "tozero"}
    note = f"Samples of {_seeds(groups)}." + _thinned(values)
    title = f"Distribution of the queue of {plain(str(chosen))}"
    return framed(_curves(values, unit, scale), title, x, {"title": {"text": "Fraction of time"}}, note)


def _throughput(groups: Groups, *, port: str | None = None, window_ps: tuple[int, int] | None = None) -> go.Figure:
    runs, seed = _one_seed(groups)
    points = series.MAX_POINTS // 8

    def rates(run: Recorded) -> series.SampledSeries:
        data = series.sampled(run, series.to_hosts(run) if port is None else [port], points)
        if not data.frame.height:
            where = "" if port is None else f" of the port '{port}'"
            raise ValueError(f"there are no samples{where}; {_SAMPLES}")
        return data

    found = _of_each(runs, rates)
    curves = {name: (data.frame["time_ps"], 8e12 * data.frame["tx_bytes"] / data.frame["span_ps"]) for name, data in found.items()}
    title = "Throughput into all hosts" if port is None else f"Throughput of {plain(port)}"
    return _over_time(curves, title, f"Frames, preamble and gap not counted. {seed}", window_ps)


def _over_time(
    curves: Mapping[str, tuple[pl.Series, pl.Series]], title: str, note: str, window_ps: tuple[int, int] | None
) -> go.Figure:
    """Return rates [bit/s] over time [ps], each of the interval that ends there."""
    unit, scale = show.axis_unit(show.RATE_UNITS, max((figures.largest(rate) for _, rate in curves.values()), default=0.0))
    time_unit, time_scale = show.axis_unit(
        show.TIME_UNITS, max((figures.largest(time) for time, _ in curves.values()), default=0.0)
    )
    traces = [
        go.Scatter(
            x=(time.cast(pl.Float64) / time_scale).to_numpy(),
            y=(rate.cast(pl.Float64) / scale).to_numpy(),
            name=plain(name),
            mode="lines",
            line={"shape": "vh", "width": 1.5, "color": COLORS[at % len(COLORS)]},
            hovertemplate=f"%{{x:.6g}} {time_unit}: %{{y:.4g}} {unit}<extra>{plain(name)}</extra>",
        )
        for at, (name, (time, rate)) in enumerate(curves.items())
    ]
    x, y = {"title": {"text": f"Time [{time_unit}]"}}, {"title": {"text": f"Throughput [{unit}]"}}
    return _within(framed(traces, title, x, y, note), window_ps, time_scale)


def _rates(
    groups: Groups, *, flow: int | str | None = None, bin_ps: int | None = None, window_ps: tuple[int, int] | None = None
) -> go.Figure:
    """Return the throughput of followed flows: bytes of payload that arrived, by interval."""
    runs, seed = _one_seed(groups)

    def arrivals(run: Recorded) -> pl.DataFrame:
        from fanin.explain import find

        own = run.scan("flows").select("flow", "id", "src")
        data = run.scan("segments").filter(pl.col("payload_bytes") > 0, pl.col("received_ps").is_not_null()).join(own, on="flow")
        data = data.filter(pl.col("host") == pl.col("src"))  # its data, not what the other end asked
        if flow is not None:
            data = data.filter(pl.col("flow") == find(run, flow)["flow"])
        rows = data.select("flow", "id", "received_ps", "payload_bytes").collect(engine="streaming")
        if not rows.height:
            what = "no flow that was followed has sent data" if flow is None else f"flow '{flow}' was not followed, or sent no data"
            raise ValueError(f"{what}; {_FOLLOW}")
        return rows

    found = _of_each(runs, arrivals)
    end = max(int(figures.largest(rows["received_ps"])) for rows in found.values())
    step = bin_ps or _round_step(end / _BINS)
    curves: dict[str, tuple[pl.Series, pl.Series]] = {}
    for name, rows in found.items():
        for (number, given), frame in rows.sort("flow", "received_ps").group_by(["flow", "id"], maintain_order=True):
            label = f"flow {number if given is None else given}"
            binned = frame.group_by(bin=pl.col("received_ps") // step).agg(pl.col("payload_bytes").cast(pl.UInt64).sum())
            first, last = int(frame["received_ps"][0]) // step, int(frame["received_ps"][-1]) // step
            every = pl.DataFrame({"bin": pl.int_range(max(first - 1, 0), last + 2, dtype=pl.UInt64, eager=True)})
            rate = every.join(binned, on="bin", how="left", maintain_order="left")["payload_bytes"].fill_null(0) * (8e12 / step)
            curves[f"{name}, {label}" if len(found) > 1 else label] = ((every["bin"] + 1) * step, rate)
    note = f"Payload that arrived, retransmissions included, by intervals of {show.duration(step)}. {seed}"
    return _over_time(curves, "Throughput of flows", note, window_ps)


def _round_step(step: float) -> int:
    """Return 1, 2 or 5 times a power of ten, at least `step` [ps]."""
    power = 1
    while True:
        for factor in (1, 2, 5):
            if factor * power >= step:
                return factor * power
        power *= 10


def _single_queue(run: Recorded, port: str | None = None, window_ps: tuple[int, int] | None = None) -> go.Figure:
    try:
        drawn = figures.queue(run, port, window_ps=window_ps)
    except ValueError as error:
        raise ValueError(f"{error}; {_QUEUES}") from error
    return drawn


def _alone(draws: Callable[..., go.Figure]) -> Callable[..., go.Figure]:
    """Draw one run as a group of its own."""
    return lambda run, **options: draws({"": [run]}, **options)


def _single_pauses(run: Recorded) -> go.Figure:
    if not run.scan("pauses").head(1).collect().height:
        raise ValueError("nothing was paused; switch.mechanisms.pfc lets switches pause their neighbours")
    return figures.pauses(run)


def _single_busbw(run: Recorded) -> go.Figure:
    if not run.summary.get("collectives"):
        raise ValueError('no traffic of this run was a job; a [[traffic]] entry of kind "collective" is one')
    return figures.bus_bandwidth(run)


def _sampled(draws: Callable[..., go.Figure]) -> Callable[..., go.Figure]:
    """Draw of samples, or say that there are none."""

    def drawn(run: Recorded, port: str | None = None) -> go.Figure:
        if not run.sample_times.len():
            raise ValueError(f"there are no samples; {_SAMPLES}")
        return draws(run, port)

    return drawn


KINDS: Final[Mapping[str, Kind]] = {
    "cdf": Kind("distribution of flow completion times", figures.fct_cdf, _cdf),
    "slowdown-cdf": Kind(
        "distribution of slowdowns",
        lambda run: figures.fct_cdf(run, slowdown=True),
        lambda groups: _cdf(groups, slowdown=True),
    ),
    "fct": Kind(
        "flow completion time by flow size",
        lambda run: figures.by_size(run, "fct"),
        lambda groups, **options: _by_size(groups, "fct", **options),
        ("statistic",),
    ),
    "slowdown": Kind(
        "slowdown by flow size",
        lambda run: figures.by_size(run, "slowdown"),
        lambda groups, **options: _by_size(groups, "slowdown", **options),
        ("statistic",),
    ),
    "queue": Kind("queue of a port over time", _single_queue, _queue, ("port", "window_ps")),
    "queue-cdf": Kind("distribution of the queue of a port", _alone(_queue_cdf), _queue_cdf, ("port",)),
    "throughput": Kind("throughput over time", _alone(_throughput), _throughput, ("port", "window_ps")),
    "rates": Kind("throughput of followed flows over time", _alone(_rates), _rates, ("flow", "bin_ps", "window_ps")),
    "sequence": Kind("time-sequence plot of a followed flow", figures.sequence, None, ("flow",)),
    "drops-marks": Kind("drops and ECN marks over time", _sampled(figures.drops_marks), None, ("port",)),
    "pauses": Kind("when ports were paused", _single_pauses, None),
    "busbw": Kind("bus bandwidth of jobs by iteration", _single_busbw, None),
}
"""Every kind of figure, for ``fanin plot`` and `Comparison.plot`."""
