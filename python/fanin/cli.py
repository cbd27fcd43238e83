"""The command line: ``fanin run|report|explain|analyze|check|convert|reproduce|schema|vectors|bench|version``."""

from __future__ import annotations

import copy
import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
import typer.core
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from fanin import _core, _files, counters, overview, runner, show, tables, terminal
from fanin._core import TraceError
from fanin._ends import App, is_of_the_disk
from fanin.folder import OutputError
from fanin.results import SCHEMAS, Result, ResultError, load
from fanin.scenario import Problem, Scenario, ScenarioError

if TYPE_CHECKING:
    import polars as pl

    from fanin import reproduce
    from fanin.analysis import Analysis, AnalysisProgress

__all__ = ["EXIT_BAD_INPUT", "EXIT_FAILED", "EXIT_INTERRUPTED", "app"]

EXIT_FAILED: Final = 1
EXIT_BAD_INPUT: Final = 2
EXIT_INTERRUPTED: Final = 130

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


def _help(*examples: str) -> str:
    """Return what stands below the options of a command."""
    return "\n\n".join([f"Example: {escape(example)}" for example in examples] + [EXIT_HELP])


app = App(
    name="fanin",
    cls=_Commands,
    epilog=_help("fanin run scenarios/incast.toml -o out/incast"),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(_core.version())
        raise typer.Exit


@app.callback()
def _fanin(
    _version: Annotated[bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)] = False,
) -> None:
    """Packet-exact simulation of data-center networks."""


def _say(text: str, style: str = "") -> None:
    with suppress(OSError):  # a terminal that is gone: the exit status still reports it
        Console(stderr=True).print(Text(text, style=style), soft_wrap=True)


@contextmanager
def _failures(file: Path | None = None) -> Iterator[None]:
    """Turn what a user can do something about into readable lines and an exit status; problems of a scenario name `file`."""
    try:
        yield
    except ScenarioError as error:
        for problem in error.problems:
            _say_problem(Problem.from_core(problem), file)
        if not error.problems:
            _say(f"error: {error}", "red")
        raise typer.Exit(EXIT_BAD_INPUT) from None
    except TraceError as error:
        for found in error.problems:
            _say(f"error: {found['text']}", "red")
        raise typer.Exit(EXIT_BAD_INPUT) from None
    except (ResultError, ValueError, TypeError) as error:
        _say(f"error: {error}", "red")
        raise typer.Exit(EXIT_BAD_INPUT) from None
    except OSError as error:
        if error.errno is not None and error.filename is None:
            raise  # standard output: see `App`
        name = f"{error.filename}: " if error.filename else ""
        _say(f"error: {name}{error.strerror or error}", "red")
        raise typer.Exit(EXIT_FAILED if is_of_the_disk(error) else EXIT_BAD_INPUT) from None
    except KeyboardInterrupt:
        _say("interrupted", "yellow")
        raise typer.Exit(EXIT_INTERRUPTED) from None


def _say_problem(problem: Problem, file: Path | None) -> None:
    style = "red" if problem.severity == "error" else "yellow"
    _say(f"{problem.severity}: {f'{file}: ' if file else ''}{problem}", style)


def _ends_in(out: Path | None, *accepted: str) -> None:
    """Refuse a file whose name says that it is of another kind than what is written."""
    if out is not None and out.suffix.lower() not in accepted:
        names = " and ".join([", ".join(accepted[:-1]), accepted[-1]] if len(accepted) > 1 else accepted)
        raise ValueError(f"--out {out}: cannot be written; names that end in {names} are")


def _overridden(file: Path, settings: list[str]) -> Scenario:
    scenario = Scenario.from_file(file)
    for setting in settings:
        scenario = scenario.replace(dict([_setting(setting)]))
    return scenario


def _setting(setting: str) -> tuple[str, Any]:
    import tomllib

    path, equals, text = setting.partition("=")
    if not equals or not path.strip():
        raise ValueError(f"--set {setting}: is not of the form KEY=VALUE")
    try:
        return path.strip(), tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return path.strip(), text  # the shell has eaten the quotes of a string
    except RecursionError:
        raise ValueError(f"--set {path.strip()}: nests too deep") from None


ScenarioArgument = Annotated[
    Path, typer.Argument(metavar="SCENARIO", help="The scenario, a TOML or JSON file.", show_default=False)
]
ResultArgument = Annotated[Path, typer.Argument(metavar="OUT", help="A result folder.", show_default=False)]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a value, for example seed=3 or switch.marking.k='30 packets'."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")]


@app.command(epilog=_help("fanin run scenarios/incast.toml -o out/incast --set seed=3"))
def run(
    scenario: ScenarioArgument,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="OUT", help="The result folder.", show_default=False)],
    settings: SetOption = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier result.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress, no table.")] = False,
    as_json: JsonOption = False,
    report: Annotated[bool, typer.Option("--report/--no-report", help="Also write the report into the folder.")] = False,
) -> None:
    """Simulate a scenario and write its result folder."""
    with _failures(scenario):
        chosen = _overridden(scenario, settings or [])
        check = chosen.check()
        if not quiet:
            for problem in check.warnings:
                _say_problem(problem, scenario)
            for note in check.notes:
                _say(f"note: {note}", "cyan")
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


_ENDS: Final = (signal.SIGTERM, signal.SIGHUP)
"""What else ends a run as Ctrl-C does: a batch system's time limit, and a terminal that is closed."""


def _interrupted(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _end_like_ctrl_c() -> None:
    """Let `_ENDS` keep the result folder as Ctrl-C does; what is ignored, as SIGHUP is after nohup, stays ignored."""
    if threading.current_thread() is threading.main_thread():
        for end in _ENDS:
            if signal.getsignal(end) != signal.SIG_IGN:
                signal.signal(end, _interrupted)


def _simulate(scenario: Scenario, out: Path, *, force: bool, progress: bool) -> Result:
    _end_like_ctrl_c()
    try:
        return runner.run(scenario, out, progress=progress, overwrite=force)
    except KeyboardInterrupt:
        _say(f"interrupted; what was simulated until then is in {out}", "yellow")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    except RuntimeError as error:
        _say(f"error: {error}", "red")
        _say(f"what was simulated until then is in {out}", "yellow")
        raise typer.Exit(EXIT_FAILED) from None
    except OSError as error:
        if isinstance(error, OutputError) or not (out / "manifest.json").is_file():
            raise
        _say(f"error: {error}", "red")
        _say(f"what could be written is in {out}", "yellow")
        raise typer.Exit(EXIT_FAILED) from None
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        _say(f"error: a defect in Fanin ended the run; please report it with the scenario: {error}", "red")
        _say(f"what was simulated until then is in {out}", "yellow")
        raise typer.Exit(EXIT_FAILED) from None


def show_summary(result: Result) -> None:
    """Print the tables of a run to standard output."""
    console = terminal.console()
    console.print(
        Text(f"{result.manifest.get('name', '')}  seed {result.manifest.get('seed')}  {result.fingerprint}", style="bold")
    )
    tones = {"bad": "red", "good": "green"}
    facts = overview.facts(result.summary, result.manifest)
    terminal.facts(console, [(Text(f.name), Text(f.text, style=tones.get(f.tone, "")), Text(f.note, style="dim")) for f in facts])
    fct_head, fct = overview.fct_rows(result.summary)
    for title, (head, rows) in (
        ("Flow completion time by flow size", (fct_head[:6], [row[:6] for row in fct])),
        ("Slowdown by flow size", (fct_head[:2] + fct_head[6:], [row[:2] + row[6:] for row in fct])),
        ("Ports with the largest queues", overview.port_rows(result.summary, 5)),
    ):
        if rows:
            terminal.table(console, title, head, rows)
    for group in counters.groups(result.summary):
        if rows := counters.rows(group, zeros=False):
            terminal.table(console, group.title, counters.HEAD, rows, words={2})
    for line in overview.aborted_lines(result.summary):
        console.print(Text(line, style="yellow"), soft_wrap=True)
    console.print(Text(f"result: {result.path}"), soft_wrap=True)


@app.command(epilog=_help("fanin report out/incast -o incast.html"))
def report(
    result: ResultArgument,
    out: Annotated[Path | None, typer.Option("-o", "--out", metavar="FILE", help="The page; OUT/report.html if not given.")] = None,
) -> None:
    """Write one HTML page about a result; it needs neither network nor other files."""
    with _failures():
        _ends_in(out, ".html", ".htm")
        typer.echo(load(result).report(out))


@app.command("explain", epilog=_help("fanin explain out/incast 17 --steps"))
def explain_(
    result: ResultArgument,
    flow: Annotated[str, typer.Argument(metavar="FLOW", help="A flow by its id or number.", show_default=False)],
    steps: Annotated[bool, typer.Option("--steps", help="Also print each step of the critical path.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Say where the time of a flow went: parts that add up to its completion time."""
    with _failures():
        found = load(result).explain(flow)
    if as_json:
        typer.echo(found.to_json())
        return
    console = terminal.console()
    console.print(Text(found.text), soft_wrap=True)
    terminal.table(console, f"Where the time of flow {flow} went", *found.rows())
    if steps:
        terminal.table(console, "Step by step", *found.step_rows())


class By(StrEnum):
    """What bursts are found by."""

    QUEUE = "queue"
    RATE = "rate"


class Way(StrEnum):
    """Which way frames of a capture went, seen from where it was taken."""

    IN = "in"
    OUT = "out"


@app.command(
    "analyze",
    epilog=_help(
        "fanin analyze switch7.csv --rate 10Gbps --columns 'time=ts_ns:ns,queue=qlen:cells(208B)'",
        "zcat trace.csv.gz | fanin analyze - --rate 10Gbps",
    ),
)
def analyze_(
    traces: Annotated[
        list[Path],
        typer.Argument(
            metavar="TRACE...",
            help="A result folder, or files: Parquet, Arrow, CSV, TSV, JSON lines, pcap, pcapng; - is standard input.",
            show_default=False,
        ),
    ],
    ports: Annotated[list[str] | None, typer.Option("--port", metavar="PORT", help="Only this port; may be repeated.")] = None,
    rate: Annotated[
        str | None, typer.Option("--rate", metavar="RATE", help="Speed of the ports, for example 10Gbps; a result says it itself.")
    ] = None,
    by: Annotated[
        By | None,
        typer.Option(
            "--by", metavar="queue|rate", help="What makes a burst; the queue, unless the trace has none.", case_sensitive=False
        ),
    ] = None,
    above: Annotated[
        str | None,
        typer.Option(
            "--above", metavar="SIZE", help="A burst begins above this queue; what drains in 100 us, or 8 frames, if not given."
        ),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="SIZE", help="A burst ends at this queue; a quarter of --above if not given.")
    ] = None,
    window: Annotated[
        str | None, typer.Option("--window", metavar="TIME", help="Window of the arrival rate; 25us, or 20 frames, if not given.")
    ] = None,
    share: Annotated[
        float | None,
        typer.Option(
            "--share", metavar="SHARE", help="Share of the speed above which a window is part of a burst; 0.5 if not given."
        ),
    ] = None,
    merge: Annotated[str | None, typer.Option("--merge", metavar="TIME", help="Bursts closer than this are one.")] = None,
    rtt: Annotated[
        str | None, typer.Option("--rtt", metavar="TIME", help="Idle round trip, to separate rounds; a result knows it.")
    ] = None,
    idle_before: Annotated[bool, typer.Option("--idle-before", help="The port was idle before the trace begins.")] = False,
    overhead: Annotated[
        str | None, typer.Option("--overhead", metavar="SIZE", help="Wire bytes of a frame beyond its length; 20B if not given.")
    ] = None,
    start: Annotated[str | None, typer.Option("--start", metavar="TIME", help="Seek bursts from here on.")] = None,
    stop: Annotated[str | None, typer.Option("--stop", metavar="TIME", help="Read up to here.")] = None,
    to: Annotated[
        list[str] | None,
        typer.Option(
            "--to", metavar="HOST", help="Of captures, only frames to this address, network or address:port; may be repeated."
        ),
    ] = None,
    direction: Annotated[
        Way | None,
        typer.Option(
            "--direction", metavar="in|out", help="Of captures, only frames that came in or went out.", case_sensitive=False
        ),
    ] = None,
    interface: Annotated[
        list[str] | None,
        typer.Option("--interface", metavar="NAME", help="Of captures, only frames at this interface; may be repeated."),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            "--columns", metavar="ROLE=COLUMN[:UNIT],...", help="What columns mean: time=ts:ns,queue=qlen:cells(208B),port=ifname"
        ),
    ] = None,
    behind: Annotated[
        list[Path] | None,
        typer.Option("--behind", metavar="CAPTURE", help="Captures behind the port that TRACE are before; may be repeated."),
    ] = None,
    before_interface: Annotated[
        str | None, typer.Option("--before-interface", metavar="IF", help="Interface before the port, in a capture of several.")
    ] = None,
    behind_interface: Annotated[
        str | None, typer.Option("--behind-interface", metavar="IF", help="Interface behind the port, likewise.")
    ] = None,
    buffer: Annotated[
        str | None,
        typer.Option(
            "--buffer", metavar="SIZE", help="Room of the port, 512KB or unlimited: estimates a queue that is not recorded."
        ),
    ] = None,
    fcs: Annotated[
        bool, typer.Option("--fcs/--no-fcs", help="Whether the queue counts check sequences, as switches do and Linux does not.")
    ] = True,
    records: Annotated[
        Path | None,
        typer.Option("--records", metavar="FILE", help="Also write all records: .parquet, .csv, .jsonl or .arrow."),
    ] = None,
    sort: Annotated[bool, typer.Option("--sort", help="Sort the whole trace in memory first.")] = False,
    zone: Annotated[
        str | None,
        typer.Option("--zone", metavar="ZONE", help="Zone of the dates shown: local, +01:00, Europe/Berlin; UTC if not given."),
    ] = None,
    confidence: Annotated[float, typer.Option("--confidence", metavar="SHARE", help="Of the intervals around slopes.")] = 0.95,
    top: Annotated[
        int, typer.Option("--top", min=1, max=1000, metavar="N", help="Bursts shown by port, and culprits by burst.")
    ] = 5,
    max_bursts: Annotated[
        int, typer.Option("--max-bursts", min=1, metavar="N", help="Bursts of a port that are listed, the highest.")
    ] = 10_000,
    detailed: Annotated[
        int, typer.Option("--detailed", min=0, metavar="N", help="Of these, how many get phases and a law, the highest.")
    ] = 200,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="FILE", help="Also write a page (.html) or the whole report (.json).")
    ] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress, no notes, no tables.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Find the bursts of a queue trace, simulated or real: phases, slopes, laws, culprits."""
    from fanin.analysis import analyze, records_kind

    with _failures():
        if records is not None:
            records_kind(records)
            if not records.absolute().parent.is_dir():
                raise ValueError(f"--records {records}: there is no folder {records.parent}")
            if records.resolve() in [trace.resolve() for trace in [*traces, *(behind or [])]]:
                raise ValueError(f"--records {records}: is a file of the trace itself")
        _ends_in(out, ".html", ".json")
        if zone is not None and as_json:
            raise ValueError("--zone: without effect beside --json, whose times are picoseconds since origin_s")
        if out is not None and not out.absolute().parent.is_dir():
            raise ValueError(f"--out {out}: there is no folder {out.parent}")
        if out is not None and out.resolve() in [trace.resolve() for trace in traces]:
            raise ValueError(f"--out {out}: is a file of the trace itself")
        with _reading(shown=not quiet and not as_json) as progress:
            found = analyze(
                [str(trace) for trace in traces],
                port=ports or None,
                rate=rate,
                by=None if by is None else "queue" if by is By.QUEUE else "rate",
                above=above,
                until=until,
                window=window,
                share=share,
                merge=merge,
                rtt=rtt,
                idle_before=idle_before,
                overhead=overhead,
                start=start,
                stop=stop,
                to=to or None,
                direction=None if direction is None else "in" if direction is Way.IN else "out",
                interface=interface or None,
                columns=columns,
                behind=behind or None,
                before_interface=before_interface,
                behind_interface=behind_interface,
                buffer=buffer,
                fcs=fcs,
                sort=sort,
                zone=zone,
                confidence=confidence,
                top=top,
                max_bursts=max_bursts,
                detailed=detailed,
                progress=progress,
            )
        if records is not None:
            found.write_records(records)
        if out is not None and out.suffix.lower() == ".html":
            found.report(out)
        elif out is not None:
            found.to_json(out)
    if as_json:
        typer.echo(found.to_json(), nl=False)
    elif not quiet:
        show_analysis(found, top)
        for written in filter(None, (records, out)):
            typer.echo(written)


@contextmanager
def _reading(*, shown: bool) -> Iterator[Callable[[AnalysisProgress], None] | None]:
    """Draw how much of a trace has been read, where standard error is a terminal."""
    from rich.progress import BarColumn, Progress, TextColumn

    console = Console(stderr=True)
    if not shown or not console.is_terminal:
        yield None
        return
    columns = (BarColumn(bar_width=14), TextColumn("{task.percentage:>3.0f} %"), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("reading", total=1.0)

        def draw(state: AnalysisProgress) -> None:
            speed = state["records"] / max(state["wall_s"], 1e-9)
            label = f"{show.count(state['records'])} records · {speed / 1e6:.1f} M records/s"
            bar.update(task, completed=state["done"], description=label)

        yield draw


_PORTS_SHOWN: Final = 8
"""Ports whose bursts are shown, those with the highest; the table of ports names the others."""


def show_analysis(found: Analysis, top: int) -> None:
    """Print the tables of an analysis to standard output, and what is to be said to standard error."""
    console = terminal.console()
    for note in tables.all_notes(found.document):
        _say(f"note: {note}", "cyan")
    terminal.table(console, "Ports", *tables.port_rows(found.document))
    for title, content in (
        ("Waiting times", tables.waiting_rows(found.document)),
        ("Flows that waited longest", tables.waiting_flow_rows(found.document, top)),
    ):
        if content[1]:
            terminal.table(console, title, *content)
    for line in tables.notice_lines(found.document):
        console.print(Text(line), soft_wrap=True)
    notified = tables.notice_rows(found.document, top)
    if notified[1]:
        terminal.table(console, "Flows with drop notifications", *notified)
    for line in tables.detect_lines(found.document["ports"], _PORTS_SHOWN):
        console.print(Text(line), soft_wrap=True)
    console.print()
    with_bursts = tables.highest_first([port for port in found.document["ports"] if port["bursts"]])
    for port in with_bursts[:_PORTS_SHOWN]:
        shown = min(top, len(port["bursts"]))
        of = f"{shown} of {port['bursts_found']:,} bursts" if shown < port["bursts_found"] else f"{shown} burst{'s' * (shown > 1)}"
        terminal.table(console, f"{port['port']}: {of}, the highest first", *tables.burst_rows(port, top, found.clock))
        burst = tables.largest(port, 1)[0]
        if burst["phases"]:
            terminal.table(console, f"Phases of burst {burst['index']}", *tables.phase_rows(burst))
        if burst["direct"] or burst["indirect"]:
            what = "Culprits" if burst["direct"] else "Flows"
            terminal.table(console, f"{what} of burst {burst['index']}", *tables.culprit_rows(burst, top))
        words = tables.law_line(burst)
        if words:
            console.print(Text(f"Burst {burst['index']}: {words}", style="bold"), soft_wrap=True)
            console.print()
    if len(with_bursts) > _PORTS_SHOWN:
        console.print(Text(f"{len(with_bursts) - _PORTS_SHOWN} more ports have bursts: --port names one", style="dim"))


@app.command(epilog=_help("fanin check scenarios/incast.toml"))
def check(scenario: ScenarioArgument, settings: SetOption = None, as_json: JsonOption = False) -> None:
    """Say everything that is wrong with a scenario, and what will probably not do what was meant."""
    with _failures(scenario):
        found = _overridden(scenario, settings or []).check()
    if as_json:
        problems = [vars(problem) for problem in found.problems]
        answer = {"ok": found.ok, "hash": found.hash, "problems": problems, "notes": found.notes, "resolved": found.resolved}
        typer.echo(json.dumps(answer))
    else:
        for problem in found.problems:
            _say_problem(problem, scenario)
        for note in found.notes:
            _say(f"note: {note}", "cyan")
        if found.ok:
            warned = f", {len(found.warnings)} warning{'s' * (len(found.warnings) > 1)}" if found.warnings else ""
            typer.echo(f"{scenario}: valid{warned} (hash {str(found.hash)[:16]})")
    if not found.ok:
        raise typer.Exit(EXIT_BAD_INPUT)


@app.command(epilog=_help("fanin schema > scenario.schema.json"))
def schema(
    reference: Annotated[bool, typer.Option("--reference", help="The reference page in Markdown instead.")] = False,
    python: Annotated[bool, typer.Option("--python", help="The typed Python classes instead.")] = False,
    counters: Annotated[bool, typer.Option("--counters", help="The reference page of counters instead.")] = False,
) -> None:
    """Print the JSON Schema of scenarios."""
    if reference + python + counters > 1:
        _say("error: --reference, --python and --counters exclude one another", "red")
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
    "stamps": "this run's packets carried no stamps; telemetry.registers turns them on",
}


@app.command(epilog=_help("fanin convert out/incast --to arrow --table flows -o tables"))
def convert(
    result: ResultArgument,
    to: Annotated[
        Format, typer.Option("--to", metavar="csv|jsonl|arrow", help="CSV, JSON lines or Arrow IPC.", case_sensitive=False)
    ] = Format.CSV,
    tables: Annotated[list[str] | None, typer.Option("--table", metavar="TABLE", help="Only this table; may be repeated.")] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="DIR", help="Where to; the result folder if not given.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
) -> None:
    """Write the tables of a result in another format, with the same columns and units."""
    with _failures():
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
            with _files.replacing(paths[name]) as part:
                _SINKS[to](frame, part)
            typer.echo(paths[name])


class VectorFormat(StrEnum):
    """How test vectors are written."""

    JSON = "json"
    CSV = "csv"


def _nested(values: dict[str, Any]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for path, value in values.items():
        *tables, key = path.split(".")
        target = nested
        for table in tables:
            target = target.setdefault(table, {})
            if not isinstance(target, dict):
                raise ValueError(f"--set {path}: {table} has been given a value of its own")
        target[key] = value
    return nested


@app.command("vectors", epilog=_help("fanin vectors s-ecn --rate 10Gbps -o s-ecn.csv"))
def vectors_(
    mechanism: Annotated[str, typer.Argument(metavar="MECHANISM", help="The mechanism, for example s-ecn.", show_default=False)],
    cases: Annotated[list[str] | None, typer.Option("--case", metavar="CASE", help="Only this case; may be repeated.")] = None,
    rates: Annotated[list[str] | None, typer.Option("--rate", metavar="RATE", help="Only this port rate; may be repeated.")] = None,
    clock: Annotated[str | None, typer.Option("--clock", metavar="SPAN", help="Clock of the registers, for example 4ns.")] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Of the random cases.")] = 1,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Any other parameter, for example at=dequeue or registers.credit=0B."),
    ] = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", metavar="FILE", help="Where to; standard output if not given.")] = None,
    form: Annotated[
        VectorFormat | None,
        typer.Option("--format", metavar="json|csv", help="By the name of FILE if not given, else json.", case_sensitive=False),
    ] = None,
) -> None:
    """Write test vectors of a mechanism, to check hardware, P4 or software with, bit for bit."""
    from fanin import vectors

    with _failures():
        if form is None:
            _ends_in(out, ".json", ".csv")
        params: dict[str, Any] = {"seed": seed}
        params |= {"cases": cases} if cases else {}
        params |= {"rates": rates} if rates else {}
        params |= {"registers.clock": clock} if clock else {}
        document = vectors.generate(mechanism, _nested({**params, **dict(map(_setting, settings or []))}))
        chosen = form or (VectorFormat.CSV if out is not None and out.suffix.lower() == ".csv" else VectorFormat.JSON)
        write = {VectorFormat.CSV: vectors.write_csv, VectorFormat.JSON: vectors.write_json}[chosen]
        if out is None:
            write(document, sys.stdout)
        else:
            with _files.replacing(out) as part, part.open("w", encoding="utf-8", newline="") as file:
                write(document, file)


@app.command(epilog=_help("fanin bench W2-128 --json"))
def bench(
    workloads: Annotated[list[str] | None, typer.Argument(metavar="[WORKLOAD]...", help="All of them if none is given.")] = None,
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
        bool, typer.Option("--features", help="Instead: instructions that features cost, each on W2-128; names choose some.")
    ] = False,
    start: Annotated[bool, typer.Option("--start", help="Instead: what comes before a simulation, in CPU time.")] = False,
) -> None:
    """Measure the simulator: packet-hops per CPU second, instructions per packet-hop, memory."""
    from fanin import benchmark

    def note(text: str) -> None:
        _say(text, "dim")

    found: Mapping[str, Any]
    head: tuple[str, ...]
    with _failures():
        if features and start:
            raise ValueError("--features and --start exclude each other")
        if features or start:
            unused = {"--scale": scale != 1.0, "--no-instructions": not instructions, "--peers": peers}
            if any(unused.values()):
                names = ", ".join(name for name, given in unused.items() if given)
                raise ValueError(f"{names}: without effect beside {'--features' if features else '--start'}")
        if features:
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


@app.command("reproduce", epilog=_help("fanin reproduce s-ecn/fig4a --short"))
def reproduce_(
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[FIGURE]...", help="For example s-ecn/fig4a; s-ecn for all of a paper.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All figures of all papers.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="List them instead.")] = False,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="OUT", help="Where to, OUT/FIGURE for several; out/reproduce/FIGURE if not given."),
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

    with _failures():
        if listed + everything + bool(ids) != 1:
            raise ValueError("one of --list, --all or ids of figures is needed")
        if listed:
            _list_figures(as_json)
            return
        chosen = reproduce.figures() if everything else reproduce.choose(ids or [])
        root = out or Path("out/reproduce")
        single = out is not None and len(chosen) == 1
        _end_like_ctrl_c()
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
            _show_reproduction(result, root if single else root / result.id)
    for error in failed:
        _say(f"error: {error}", "red")
    if failed or not all(result.ok for result in made):
        raise typer.Exit(EXIT_FAILED)


def _list_figures(as_json: bool) -> None:
    from fanin import reproduce

    known = reproduce.figures()
    if as_json:
        facts = [
            {"id": f.id, "title": f.title, "paper": reproduce.PAPERS[f.paper], "seeds": f.seeds, "core_s": f.seconds} for f in known
        ]
        typer.echo(json.dumps(facts, ensure_ascii=False))
        return
    console = terminal.console()
    for paper in dict.fromkeys(figure.paper for figure in known):
        rows = [[f.id, f.title, f"{f.seeds:,}", show.duration(round(f.seconds * 1e12))] for f in known if f.paper == paper]
        terminal.table(console, f"{paper}: {reproduce.PAPERS[paper]}", ["Figure", "Shows", "Seeds", "Core time"], rows, words={1})


def _show_reproduction(result: reproduce.Reproduction, folder: Path) -> None:
    from fanin import reproduce

    console = terminal.console()
    cells: list[list[str | Text]] = []
    for row in result.found:
        style = "" if row.ok else "yellow" if row.note else "red"
        cells.append([Text(cell, style=style) for cell in reproduce.cells(row)[:-1]])
    terminal.table(console, f"{result.id}: {result.about.title}", reproduce.HEAD[:-1], cells, words={0, 4})
    for note in dict.fromkeys(row.note for row in result.found if row.note and not row.ok):
        names = "; ".join(row.name for row in result.found if row.note == note and not row.ok)
        console.print(Text.assemble((f"{names}: ", "yellow"), note))
    console.print(Text(f"result: {folder}"), soft_wrap=True)


@app.command(epilog=_help("fanin version"))
def version() -> None:
    """Print the version."""
    typer.echo(_core.version())
