"""The command line: one function per subcommand; those with modules of their own are registered here."""

from __future__ import annotations

import copy
import json
import platform
import sys
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
import typer.core
from rich.markup import escape
from rich.text import Text
from typer.main import get_command

from fanin import _core, files
from fanin.cli import analyze as _analyze
from fanin.cli import best as _best
from fanin.cli import compare as _compare
from fanin.cli import conform as _conform
from fanin.cli import explain as _explain
from fanin.cli import init as _init
from fanin.cli import man as _man
from fanin.cli import plot as _plot
from fanin.cli import show as _show
from fanin.cli import sweep as _sweep
from fanin.cli import watch as _watch
from fanin.cli import whatif as _whatif
from fanin.cli.asked import as_nested, as_setting, end_like_ctrl_c, overridden
from fanin.cli.ends import App
from fanin.cli.failures import EXIT_BAD_INPUT, EXIT_FAILED, EXIT_INTERRUPTED, ends_in, failures
from fanin.cli.output import list_figures, say, say_problem, show_reproduction, show_summary
from fanin.results import Result, load, runner
from fanin.results.folder import OutputError
from fanin.scenario import Problem, Scenario, ScenarioError
from fanin.tables.schemas import SCHEMAS
from fanin.text import terminal

if TYPE_CHECKING:
    import polars as pl


__all__ = ["EXIT_BAD_INPUT", "EXIT_FAILED", "EXIT_INTERRUPTED", "app"]

EXIT_HELP: Final = "Exit status: 0 done, 1 the run failed or is partial, or a disk is full, 2 bad input, 130 interrupted."


class _Commands(typer.core.TyperGroup):
    """Commands whose help names their arguments as the documentation does, without types: OUT, not {OUT} <path>."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        for command in self.commands.values():
            for param in command.params:
                if isinstance(param, typer.core.TyperArgument) and param.metavar:
                    kind, name = copy.copy(param.type), param.metavar
                    setattr(kind, "get_metavar", lambda *_, **__: "")  # noqa: B010 (types of several parameters are one object)
                    setattr(param, "make_metavar", lambda *_, name=name, **__: name)  # noqa: B010
                    param.type = kind


def _help(*examples: str, page: str) -> str:
    """Return what stands below the options of a command: examples, and the page of the documentation that says more."""
    return "\n\n".join([f"Example: {escape(example)}" for example in examples] + [f"Read on: {page}", EXIT_HELP])


app = App(
    name="fanin",
    cls=_Commands,
    epilog=_help(
        "fanin run scenarios/incast.toml -o out/incast",
        page="docs/tutorials/incast.md, docs/overview.md; as a site: make site-serve",
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        made = _core.build()
        typer.echo(f"fanin {made['version']} ({made['target']}, {made['profile']}; Python {platform.python_version()})")
        raise typer.Exit


@app.callback()
def _fanin(
    _version: Annotated[
        bool,
        typer.Option("--version", help="Print version, target and profile of this build.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Packet-exact simulation of data-center networks."""


ScenarioArgument = Annotated[
    Path, typer.Argument(metavar="SCENARIO", help="The scenario, a TOML or JSON file.", show_default=False)
]
ResultArgument = Annotated[Path, typer.Argument(metavar="OUT", help="A result folder.", show_default=False)]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a value, for example seed=3 or switch.marking.k='30 packets'."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")]


@app.command(
    epilog=_help("fanin run scenarios/incast.toml -o out/incast --set seed=3", page="docs/tutorials/incast.md, docs/scenario.md")
)
def run(
    scenario: ScenarioArgument,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="OUT", help="The result folder.", show_default=False)],
    settings: SetOption = None,
    threads: Annotated[
        str | None,
        typer.Option(
            "--threads",
            metavar="N",
            help="Threads among which the network is divided, or auto. They change no result.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier result.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress, no table.")] = False,
    as_json: JsonOption = False,
    report: Annotated[bool, typer.Option("--report/--no-report", help="Also write the report into the folder.")] = False,
) -> None:
    """Simulate a scenario and write its result folder."""
    with failures(scenario):
        of_threads = [] if threads is None else [f"engine.threads={runner.threads_setting(threads)}"]
        chosen = overridden(scenario, [*(settings or []), *of_threads])
        check = chosen.check()
        if not quiet:
            for problem in check.warnings:
                say_problem(problem, scenario)
            for note in check.notes:
                say(f"note: {note}", "cyan")
        if check.errors:
            raise _as_error(check.problems)
        result = _simulate(chosen, out, force=force, progress=not quiet and not as_json)
        if report:
            result.report()
    if as_json:
        typer.echo(json.dumps(result.summary))
    elif not quiet:
        show_summary(result)


def _as_error(problems: tuple[Problem, ...]) -> ScenarioError:
    error = ScenarioError("the scenario has errors")
    error.problems = [vars(problem) for problem in problems if problem.severity == "error"]
    return error


def _written(out: Path) -> tuple[int, int] | None:
    """Which manifest is there: another one after each run."""
    try:
        found = (out / "manifest.json").stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _simulate(scenario: Scenario, out: Path, *, force: bool, progress: bool) -> Result:
    end_like_ctrl_c()
    earlier = _written(out)

    def kept() -> bool:
        return _written(out) not in (None, earlier)

    def said() -> str:
        return f"what was simulated until then is in {out}" if kept() else f"nothing was written to {out}"

    try:
        return runner.run(scenario, out, progress=progress, overwrite=force)
    except KeyboardInterrupt:
        say(f"interrupted; {said()}", "yellow")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    except RuntimeError as error:
        say(f"error: {error}", "red")
        say(said(), "yellow")
        raise typer.Exit(EXIT_FAILED) from None
    except OSError as error:
        if isinstance(error, OutputError) or not kept():
            raise
        say(f"error: {error}", "red")
        say(f"what could be written is in {out}", "yellow")
        raise typer.Exit(EXIT_FAILED) from None
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        say(f"error: a defect in Fanin ended the run; please report it with the scenario: {error}", "red")
        say(said(), "yellow")
        raise typer.Exit(EXIT_FAILED) from None


@app.command(epilog=_help("fanin report out/incast -o incast.html", page="docs/results.md"))
def report(
    result: ResultArgument,
    out: Annotated[Path | None, typer.Option("-o", "--out", metavar="FILE", help="The page; OUT/report.html if not given.")] = None,
) -> None:
    """Write one HTML page about a result; it needs neither network nor other files."""
    with failures():
        ends_in(out, ".html", ".htm")
        typer.echo(load(result).report(out))


@app.command("pauses", epilog=_help("fanin pauses out/lossless --event 2", page="docs/tutorials/lossless.md, docs/lossless.md"))
def pauses_(
    result: ResultArgument,
    event: Annotated[
        int | None, typer.Option("--event", metavar="N", help="Number of the event; the one with the longest pauses if not given.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Say which ports were paused, and how pauses spread from a congested port: root, ports, victims."""
    from fanin.explain import pauses

    with failures():
        found = load(result)
        ports, events = pauses.by_port(found), found.pause_events()
        tree = found.pause_tree(event) if events.height or event is not None else None
    if as_json:
        told = None if tree is None else tree.document
        typer.echo(json.dumps({"ports": ports.to_dicts(), "events": events.to_dicts(), "tree": told}))
        return
    console = terminal.console()
    if tree is None:
        console.print(Text("Nothing was paused."))
        return
    terminal.table(console, "Paused ports", pauses.HEAD, pauses.port_rows(ports))
    if events.height > 1:
        terminal.table(console, "Events", pauses.EVENT_HEAD, pauses.event_rows(events))
    console.print(Text(tree.text), soft_wrap=True)
    console.print(Text("\n".join(tree.lines())), soft_wrap=True)
    if tree.document["flows"]:
        terminal.table(console, "Followed flows that stood paused", *tree.flow_rows())


app.command("sweep", epilog=_help(*_sweep.EXAMPLES, page="docs/tutorials/sweep.md, docs/sweeps.md"))(_sweep.sweep)
app.command("best", epilog=_help(_best.EXAMPLE, page="docs/best.md"))(_best.best)
app.command("whatif", epilog=_help(*_whatif.EXAMPLES, page="docs/whatif.md"))(_whatif.whatif)
app.command("init", epilog=_help(*_init.EXAMPLES, page="docs/scenario.md"))(_init.init)
app.command("show", epilog=_help(*_show.EXAMPLES, page="docs/cli.md"))(_show.show)
app.command("explain", epilog=_help(*_explain.EXAMPLES, page="docs/explain.md"))(_explain.explain)
app.command("analyze", epilog=_help(*_analyze.EXAMPLES, page="docs/tutorials/capture.md, docs/analyze.md"))(_analyze.analyze)
app.command("watch", epilog=_help(*_watch.EXAMPLES, page="docs/watch.md"))(_watch.watch)
app.command("compare", epilog=_help(*_compare.EXAMPLES, page="docs/tutorials/sweep.md, docs/compare.md"))(_compare.compare)
app.command("plot", epilog=_help(*_plot.EXAMPLES, page="docs/compare.md"))(_plot.plot)
app.command("conform", epilog=_help(*_conform.EXAMPLES, page="docs/dataplanes.md, docs/vectors.md"))(_conform.conform_)


@app.command(epilog=_help("fanin check scenarios/incast.toml", page="docs/scenario.md"))
def check(scenario: ScenarioArgument, settings: SetOption = None, as_json: JsonOption = False) -> None:
    """Say everything that is wrong with a scenario, and what will probably not do what was meant."""
    with failures(scenario):
        found = overridden(scenario, settings or []).check()
    if as_json:
        problems = [vars(problem) for problem in found.problems]
        answer = {"ok": found.ok, "hash": found.hash, "problems": problems, "notes": found.notes, "resolved": found.resolved}
        typer.echo(json.dumps(answer))
    else:
        for problem in found.problems:
            say_problem(problem, scenario)
        for note in found.notes:
            say(f"note: {note}", "cyan")
        if found.ok:
            warned = f", {len(found.warnings)} warning{'s' * (len(found.warnings) > 1)}" if found.warnings else ""
            typer.echo(f"{scenario}: valid{warned} (scenario hash {str(found.hash)[:16]})")
    if not found.ok:
        raise typer.Exit(EXIT_BAD_INPUT)


@app.command(epilog=_help("fanin schema > scenario.schema.json", page="docs/scenario.md"))
def schema(
    reference: Annotated[bool, typer.Option("--reference", help="The reference page in Markdown instead.")] = False,
    python: Annotated[bool, typer.Option("--python", help="The typed Python classes instead.")] = False,
    counters: Annotated[bool, typer.Option("--counters", help="The reference page of counters instead.")] = False,
) -> None:
    """Print the JSON Schema of scenarios."""
    if reference + python + counters > 1:
        say("error: --reference, --python and --counters exclude one another", "red")
        raise typer.Exit(EXIT_BAD_INPUT)
    made = _core.reference if reference else _core.python_types if python else _core.counters_page if counters else _core.schema
    typer.echo(made(), nl=False)


class Format(StrEnum):
    """What result tables are converted to."""

    CSV = "csv"
    JSONL = "jsonl"
    ARROW = "arrow"


_SINKS: Final[dict[Format, Callable[[pl.LazyFrame, Path], Any]]] = {
    Format.CSV: lambda frame, path: frame.sink_csv(path),
    Format.JSONL: lambda frame, path: frame.sink_ndjson(path),
    Format.ARROW: lambda frame, path: frame.sink_ipc(path),
}


_ABSENT: Final = {
    "queues": "this run watched no port; telemetry.queues names them",
    "ports": "this run took no samples; telemetry.sample sets how often",
    **dict.fromkeys(("hosts", "segments", "hops"), "this run followed no flow; telemetry.hosts names them"),
    "messages": "this run followed no flow's messages; telemetry.messages names them, or telemetry.hosts",
    "collectives": 'no traffic of this run was a job; a [[traffic]] entry of kind "collective" is one',
    "pauses": "no switch of this run could pause its neighbours; switch.mechanisms.pfc turns that on",
    "states": "no mechanism of this run records what it makes of ports; switch.mechanisms.rcm does",
    "voqs": "the switches of this run were output queued, or nothing was sampled; switch.architecture and telemetry.sample",
    "stamps": "this run's packets carried no stamps; telemetry.registers turns them on",
}


@app.command(epilog=_help("fanin convert out/incast --to arrow --table flows -o tables", page="docs/results.md"))
def convert(
    result: ResultArgument,
    to: Annotated[
        Format, typer.Option("--to", metavar="csv|jsonl|arrow", help="CSV, JSON lines or Arrow IPC.", case_sensitive=False)
    ] = Format.CSV,
    tables: Annotated[list[str] | None, typer.Option("--table", metavar="TABLE", help="Only this table; may be repeated.")] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="DIR", help="Folder to write to; the result folder if not given.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
) -> None:
    """Write the tables of a result in another format, with the same columns and units."""
    with failures():
        opened = load(result)
        target = out or opened.path
        there = {name: opened.scan(name) for name in tables or SCHEMAS}
        chosen = {name: frame for name, frame in there.items() if (opened.path / f"{name}.parquet").is_file()}
        for name in tables or []:
            if name not in chosen:
                raise ValueError(f"{opened.path / name}.parquet: {_ABSENT.get(name, 'the run did not write it')}")
        paths = {name: target / f"{name}.{to.value}" for name in chosen}
        old = [str(path) for path in paths.values() if path.exists()]
        if old and not force:
            raise ValueError(f"{', '.join(old)}: there already; --force replaces")
        target.mkdir(parents=True, exist_ok=True)
        for name, frame in chosen.items():
            with files.replacing(paths[name]) as part:
                _SINKS[to](frame, part)
            typer.echo(paths[name])


class VectorFormat(StrEnum):
    """Formats of test vectors."""

    JSON = "json"
    CSV = "csv"


@app.command("vectors", epilog=_help("fanin vectors s-ecn --rate 10Gbps -o s-ecn.csv", page="docs/vectors.md"))
def vectors_(
    mechanism: Annotated[str, typer.Argument(metavar="MECHANISM", help="The mechanism, for example s-ecn.", show_default=False)],
    cases: Annotated[list[str] | None, typer.Option("--case", metavar="CASE", help="Only this case; may be repeated.")] = None,
    rates: Annotated[list[str] | None, typer.Option("--rate", metavar="RATE", help="Only this port rate; may be repeated.")] = None,
    clock: Annotated[str | None, typer.Option("--clock", metavar="SPAN", help="Clock of the registers, for example 4ns.")] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Seed of the random cases.")] = 1,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Any other parameter, for example at=dequeue or registers.credit=0B."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="FILE", help="File to write; standard output if not given.")
    ] = None,
    form: Annotated[
        VectorFormat | None,
        typer.Option(
            "--format", metavar="json|csv", help="Format; by the name of FILE if not given, else json.", case_sensitive=False
        ),
    ] = None,
) -> None:
    """Write test vectors of a mechanism, to check hardware, P4 or software with, bit for bit."""
    from fanin import vectors

    with failures(page="docs/vectors.md"):
        if form is None:
            ends_in(out, ".json", ".csv")
        params: dict[str, Any] = {"seed": seed}
        params |= {"cases": cases} if cases else {}
        params |= {"rates": rates} if rates else {}
        params |= {"registers.clock": clock} if clock else {}
        document = vectors.generate(mechanism, as_nested({**params, **dict(map(as_setting, settings or []))}))
        chosen = form or (VectorFormat.CSV if out is not None and out.suffix.lower() == ".csv" else VectorFormat.JSON)
        write = {VectorFormat.CSV: vectors.write_csv, VectorFormat.JSON: vectors.write_json}[chosen]
        if out is None:
            write(document, sys.stdout)
        else:
            with files.replacing(out) as part, part.open("w", encoding="utf-8", newline="") as file:
                write(document, file)


@app.command(epilog=_help("fanin bench W2-128 --json", page="docs/performance.md"))
def bench(
    workloads: Annotated[
        list[str] | None, typer.Argument(metavar="[WORKLOAD]...", help="Workloads; all of them if none is given.")
    ] = None,
    as_json: JsonOption = False,
    scale: Annotated[
        float, typer.Option("--scale", min=1e-4, max=1.0, metavar="SHARE", help="Share of each workload's bytes to run.")
    ] = 1.0,
    instructions: Annotated[
        bool,
        typer.Option("--instructions/--no-instructions", help="Count instructions per packet-hop, where valgrind is installed."),
    ] = True,
    peers: Annotated[bool, typer.Option("--peers", help="Also run ns-3 on the same work, where it is installed.")] = False,
    features: Annotated[
        bool,
        typer.Option("--features", help="Measure the instructions that features cost instead, each on W2-128; names choose some."),
    ] = False,
    start: Annotated[bool, typer.Option("--start", help="Measure the start-up before a simulation instead, in CPU time.")] = False,
    other: Annotated[
        str | None,
        typer.Option("--beside", metavar="NAME", help="Run paired rounds with another simulator instead: ns-3 or htsim."),
    ] = None,
    rounds: Annotated[
        int | None, typer.Option("--rounds", min=1, max=1000, metavar="N", help="Rounds of --beside; 5 if not given.")
    ] = None,
) -> None:
    """Measure the simulator: packet-hops per CPU second, instructions per packet-hop, memory."""
    from fanin import benchmark

    def note(text: str) -> None:
        say(text, "dim")

    found: Mapping[str, Any]
    head: tuple[str, ...]
    with failures():
        instead = [flag for flag, given in (("--features", features), ("--start", start), ("--beside", other)) if given]
        if len(instead) > 1:
            raise ValueError(f"{' and '.join(instead)} exclude each other")
        unused = {"--peers": bool(instead) and peers, "--rounds": other is None and rounds is not None}
        if features or start:
            unused = {"--scale": scale != 1.0, "--no-instructions": not instructions} | unused
        if any(unused.values()):
            names = ", ".join(name for name, given in unused.items() if given)
            raise ValueError(f"{names}: without effect {f'beside {instead[0]}' if instead else 'without --beside'}")
        if other:
            found = benchmark.beside(
                other, workloads or (), scale=scale, rounds=rounds or benchmark.ROUNDS, instructions=instructions, note=note
            )
            title, head, rows = f"Beside {other}", benchmark.beside_columns(other), benchmark.beside_rows(other, found)
        elif features:
            found = benchmark.features(workloads or (), note=note)
            title, head, rows = "Features", benchmark.FEATURE_COLUMNS, benchmark.feature_rows(found)
        elif start:
            if workloads:
                raise ValueError("--start takes no workloads")
            found = benchmark.start_up()
            title, head, rows = "Start", ("What", "CPU"), benchmark.start_rows(found)
        else:
            chosen = workloads or list(benchmark.WORKLOADS)
            found = benchmark.measure(chosen, scale=scale, instructions=instructions, peers=peers, note=note)
            title, head, rows = "Benchmark", benchmark.COLUMNS, benchmark.rows(found)
    if as_json:
        typer.echo(json.dumps(found))
        return
    terminal.table(terminal.console(), title, list(head), rows)


@app.command("reproduce", epilog=_help("fanin reproduce s-ecn/fig4a --short", page="docs/tutorials/figure.md, docs/reproduce.md"))
def reproduce_(
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[FIGURE]...", help="A figure, for example s-ecn/fig4a; s-ecn for all of a paper.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All figures of all papers.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="List the figures instead.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o", "--out", metavar="OUT", help="Folder to write to, OUT/FIGURE for several; out/reproduce/FIGURE if not given."
        ),
    ] = None,
    short: Annotated[bool, typer.Option("--short", help="Fewer seeds, for continuous integration.")] = False,
    seeds: Annotated[int | None, typer.Option("--seeds", min=1, metavar="N", help="Number of seeds.", show_default=False)] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, metavar="N", help="Simulations at once; one per core if not given.")
    ] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress, no tables.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Make figures of papers anew, the papers' numbers beside ours; exit status 1 if one is off and no reason is given."""
    from fanin import reproduce

    with failures():
        if listed + everything + bool(ids) != 1:
            raise ValueError("one of --list, --all or ids of figures is needed")
        if listed:
            list_figures(as_json=as_json)
            return
        chosen = reproduce.figures() if everything else reproduce.choose(ids or [])
        root = out or Path("out/reproduce")
        single = out is not None and len(chosen) == 1
        end_like_ctrl_c()
        made, failed = reproduce.run_all(
            chosen,
            out=lambda figure: root if single else root / figure.id,
            short=short,
            seeds=seeds,
            jobs=jobs,
            progress=not quiet and not as_json,
        )
    if as_json:
        documents = [result.to_dict() for result in made]
        typer.echo(json.dumps(documents[0] if len(chosen) == 1 and documents else documents, ensure_ascii=False))
    elif not quiet:
        for result in made:
            show_reproduction(result, root if single else root / result.id)
    for error in failed:
        say(f"error: {error}", "red")
    if failed or not all(result.ok for result in made):
        raise typer.Exit(EXIT_FAILED)


@app.command(epilog=_help("fanin version", page="CHANGELOG.md"))
def version() -> None:
    """Print the version."""
    typer.echo(_core.version())


@app.command(epilog=_help(_man.EXAMPLE, page="docs/install.md"))
def man() -> None:
    """Print the manual page, for man."""
    typer.echo(_man.manual(get_command(app), _core.version()), nl=False)
