"""``fanin sweep``."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.text import Text

from fanin.cli.asked import as_setting, end_like_ctrl_c
from fanin.cli.failures import EXIT_FAILED, EXIT_INTERRUPTED, failed, failures
from fanin.cli.output import say, say_problem
from fanin.text import show, terminal

if TYPE_CHECKING:
    from fanin.sweep.frames import Sweep
    from fanin.sweep.plan import Plan

EXAMPLES: Final = (
    "fanin sweep examples/sweep-marking.toml -o out/marking",
    "fanin sweep examples/sweep-marking.toml -o out/marking --dry-run",
    "fanin sweep k.toml -o s3://results/k --shard $SLURM_ARRAY_TASK_ID/100",
)

_POINTS_SHOWN: Final = 20
_ERROR_SHOWN: Final = 160
"""Characters of an error that stands in a line with others."""


def sweep(
    source: Annotated[
        Path, typer.Argument(metavar="SWEEP", help="A file with a \\[sweep] table: seeds, axes, scenario.", show_default=False)
    ],
    out: Annotated[
        str | None,
        typer.Option("-o", "--out", metavar="OUT", help="The store: a folder, or s3://BUCKET/PREFIX.", show_default=False),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a value of the scenario at all points.")
    ] = None,
    jobs: Annotated[int | None, typer.Option("-j", "--jobs", metavar="N", help="Worker processes; one for each core.")] = None,
    threads_per_run: Annotated[
        int | None, typer.Option("--threads-per-run", metavar="N", help="Threads of each run: for few and large ones.")
    ] = None,
    shard: Annotated[
        str | None, typer.Option("--shard", metavar="I/N", help="Only the I-th of N parts; others may run at the same time.")
    ] = None,
    dask: Annotated[
        str | None, typer.Option("--dask", metavar="ADDRESS", help="Simulate on the cluster of this Dask scheduler.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check, estimate by a few runs, and write nothing.")] = False,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Try runs again that failed.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep each run's result folder, too.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress, no warnings, no table.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
) -> None:
    """Run a scenario with many values and seeds; go on where an earlier command stopped."""
    from fanin.sweep import plan as _plan
    from fanin.sweep import running
    from fanin.sweep.dask import ClusterError

    with failures(source):
        if out is None and not dry_run:
            raise ValueError("-o OUT is missing: where the results go")
        part = running.parsed_shard(shard)
        options: dict[str, Any] = {"jobs": jobs, "shard": part, "dask": dask, "retry_failed": retry_failed, "keep": keep}
        made = _plan.plan(_plan.load(source), dict(as_setting(setting) for setting in settings or []))
        made = running.with_threads(made, threads_per_run)
        if not quiet:
            for problem in made.warnings:
                say_problem(problem, source)
        if dry_run:
            _dry_run(made, out, as_json=as_json, **options)
            return
        end_like_ctrl_c()
        before = _failed(str(out))
        try:
            done = running.execute(made, str(out), progress=not quiet and not as_json, **options)
        except KeyboardInterrupt:
            say(f"interrupted; what had ended until then is in {out}, and the same command goes on from there", "yellow")
            raise typer.Exit(EXIT_INTERRUPTED) from None
        except (ClusterError, RuntimeError) as error:
            failed(error)
        lost = _show(done, made, before, quiet=quiet, as_json=as_json)
    if lost:
        raise typer.Exit(EXIT_FAILED)


def _failed(out: str) -> set[tuple[str, int]]:
    """Return the runs that have failed in a store, with their last attempt; none where there is no store yet."""
    from fanin.results import ResultError
    from fanin.sweep.frames import Sweep

    try:
        return set(Sweep(out).failed.select("run", "attempt").iter_rows()) if Sweep.is_store(out) else set()
    except ResultError:
        return set()  # the sweep itself says what is damaged


def _show(done: Sweep, made: Plan, before: set[tuple[str, int]], *, quiet: bool, as_json: bool) -> int:
    """Print what is in the store, and a line for each run that failed now; return how many runs of the plan failed."""
    from fanin.sweep import points

    runs = done.runs
    failed = runs.filter(runs["status"] != "ok")
    hops, cpu = int(runs["packet_hops"].sum() or 0), float(runs["cpu_s"].sum() or 0.0)
    facts = {
        "path": done.path,
        "planned": done.planned,
        "done": runs.height - failed.height,
        "failed": failed.height,
        "complete": done.complete,
        "packet_hops": hops,
        "cpu_s": cpu,
        "unreached": None if made.design.stop is None else len(points.unreached(done, made)),
    }
    if as_json:
        typer.echo(json.dumps(facts))
        return failed.height
    for row in failed.iter_rows(named=True):
        if (row["run"], row["attempt"]) in before:
            continue  # said when it failed
        values = [f"{axis} = {row[axis]}" for axis in done.axes if row.get(axis) is not None]
        place = ", ".join([*values, f"seed {row['seed']}"])
        why = textwrap.shorten(str(row["error"]).splitlines()[0], _ERROR_SHOWN, placeholder=" …")
        say(f"error: run {row['run'][:8]} ({place}): {why}", "red")
    if not quiet:
        stopped = ", as many as its stop rule needs" if runs.height < done.planned else ""
        rest = stopped if facts["complete"] else f", {max(0, done.planned - runs.height):,} to do"
        console = terminal.console()
        lost = f", {failed.height:,} failed" if failed.height else ""
        title = f"{made.name}: {facts['done']:,} of {done.planned:,} runs{lost}{rest}"
        console.print(Text(title, style="bold"), soft_wrap=True)
        if lost:
            earlier = sum(own in before for own in failed.select("run", "attempt").iter_rows())
            told = f"{earlier:,} of them failed earlier, and were not tried again; " if earlier else ""
            told += "the whole error of each is in the column error of the store's runs; --retry-failed tries them again"
            console.print(Text(told, style="dim"), soft_wrap=True)
        cost = f"{show.count(hops)} packet-hops, {cpu:,.4g} s of CPU"
        console.print(Text(cost), soft_wrap=True)
        console.print(Text(f"store: {done.path}"), soft_wrap=True)
        _show_points(done, made)
    return failed.height


def _show_points(done: Sweep, made: Plan) -> None:
    """Print a metric by point, and which points have too wide an interval for the stop rule with all their seeds."""
    from fanin.sweep import points

    metric = points.main_metric(done, made)
    if metric is None:
        return
    head, rows = points.table(done, made, metric, _POINTS_SHOWN)
    count = len(made.points)
    title = f"The first {len(rows)} of {count:,} points" if count > len(rows) else show.many(count, "point")
    console = terminal.console()
    terminal.table(console, title, head, rows, words=set(range(len(made.axes) or 1)))
    for note in points.tilde_notes(metric, points.found(done, made, metric)[:_POINTS_SHOWN]):
        console.print(Text(note, style="dim"), soft_wrap=True)
    if compare := points.compare_command(done, made):
        console.print(Text(f"all metrics, judged: {compare}", style="dim"), soft_wrap=True)
    stop, wide = made.design.stop, points.unreached(done, made)
    if stop is not None and wide:
        text = f"{len(wide):,} of {count:,} points did not reach {points.width_text(stop)} of {stop.metric}"
        wanted = points.seeds_wanted(done, made)
        more = f"; by their widths, some {wanted:,} would do" if wanted and wanted > made.design.seed_count else ""
        few = stop.needs is not None and stop.needs > made.design.seed_count
        more = f"; such a mean is judged from {stop.needs} on" if few else more
        say(f"warning: {text} with {made.design.seed_count:,} seeds, the most that seeds allows{more}", "yellow")


def _dry_run(made: Plan, out: str | None, *, as_json: bool, **options: Any) -> None:
    from fanin.sweep import estimate
    from fanin.sweep.dask import ClusterError

    try:
        found = estimate.estimate(made, out, **options)
    except ClusterError as error:
        failed(error)
    if as_json:
        typer.echo(json.dumps(found.to_dict()))
    else:
        terminal.facts(terminal.console(), [(name, text, note) for name, text, note in found.facts()])
