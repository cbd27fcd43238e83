"""The command ``fanin watch``: its options, what it prints while it goes on and at its end."""

from __future__ import annotations

import contextlib
import json
import select
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from fanin.cli.analyze import with_settings
from fanin.cli.asked import end_like_ctrl_c
from fanin.cli.failures import EXIT_BAD_INPUT, failures
from fanin.cli.output import say

if TYPE_CHECKING:
    from fanin.watch.hub import Burst, Hub
    from fanin.watch.watching import Watch

EXAMPLES = (
    "fanin watch /var/log/switch7.csv --rate 100Gbps --columns 'time=ts_ns:ns,port=if,queue=qlen:B'",
    "ssh switch7 queue-monitor --json | fanin watch - --columns 'time=t:ns,queue=depth:cells(208B)' --rules alerts.toml",
)

EXIT_HELP: Final = (
    "Exit status: 0 ended, by itself or by Ctrl-C, 1 a disk is full, 2 bad input or no source could be read, "
    "130 interrupted before the watch began."
)

SETTINGS: Final = ("port", "rate", "by", "above", "until", "window", "share", "merge", "rtt", "overhead", "columns")
"""Settings of an analysis that a stream can have."""

DETAILED: Final = 20
"""Bursts of a port that get phases and a law, the highest: one takes as long as thousands of records."""

PORT: Final = 8765


@partial(with_settings, names=SETTINGS)
def watch(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="Files that grow, folders, named pipes, - (standard input), tcp://HOST:PORT, udp://127.0.0.1:PORT; "
            "in each format of fanin analyze that is read in order.",
            show_default=False,
        ),
    ],
    *,
    once: Annotated[bool, typer.Option("--once", help="Stop at the end of what is there, for tests and cron.")] = False,
    new: Annotated[bool, typer.Option("--new", help="Of files, read only what is appended from now on.")] = False,
    state: Annotated[
        Path | None,
        typer.Option("--state", metavar="FILE", help="Keep in FILE what has been read: a new start goes on there."),
    ] = None,
    rules: Annotated[
        Path | None, typer.Option("--rules", metavar="FILE", help="Rules for alerts, and the webhook that they go to (.toml).")
    ] = None,
    page: Annotated[
        int, typer.Option("--page", metavar="N", min=0, max=65535, help="TCP port of the page, on loopback; 0 takes a free one.")
    ] = PORT,
    no_page: Annotated[bool, typer.Option("--no-page", help="Serve no page and no metrics.")] = False,
    gap: Annotated[
        str | None,
        typer.Option(
            "--gap", metavar="TIME", help="Records of a port that are further apart: unknown between; ten samples if not given."
        ),
    ] = None,
    stall: Annotated[str, typer.Option("--stall", metavar="TIME", help="A source without bytes for this long is stalled.")] = "5s",
    cell: Annotated[str, typer.Option("--cell", metavar="TIME", help="Time in a column of the strip; it has 240.")] = "1s",
    retire: Annotated[
        str, typer.Option("--retire", metavar="TIME", help="A port without records for this long gives its memory back.")
    ] = "3600s",
    keep: Annotated[int, typer.Option("--keep", metavar="N", min=1, max=1_000_000, help="Bursts that are remembered.")] = 1000,
    otlp: Annotated[
        str | None,
        typer.Option("--otlp", metavar="URL", help="Export the metrics to an OpenTelemetry collector, http://127.0.0.1:4318."),
    ] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print no bursts and no summary.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print each burst as a JSON object in a line of its own.")] = False,
    **settings: Any,
) -> None:
    """Watch queues as their records come: bursts as they end, a live page, metrics, alerts. Ctrl-C ends it."""
    with failures(rules, page="docs/watch.md"), contextlib.ExitStack() as stack:
        from fanin.watch import rules as of_rules
        from fanin.watch.watching import Choices, Watch

        choices = Choices(
            once=once,
            new=new,
            state=state,
            rules=None if rules is None else of_rules.read(rules),
            gap=gap,
            cell=cell,
            stall=stall,
            retire=retire,
            keep=keep,
            stays=not no_page,
            otlp=otlp,
        )
        stack.enter_context(_alone(state))
        given = {name: value for name, value in settings.items() if value not in (None, [])}
        watched = Watch(sources, {**given, "detailed": DETAILED}, choices)
        end_like_ctrl_c()
        if not no_page:
            stack.enter_context(_served(watched, page, sources, quiet=quiet or as_json))
        with contextlib.suppress(KeyboardInterrupt):
            watched.run(partial(_tell, watched.hub, quiet=quiet, as_json=as_json), partial(say, style="yellow"))
    for problem in watched.problems:
        say(f"error: {problem}", "red")
    if not quiet and not as_json:
        _summary(watched.hub)
    for line in watched.missing():
        say(line, "yellow")
    if watched.problems and all(source.failure is not None for source in watched.hub.sources):
        raise typer.Exit(EXIT_BAD_INPUT)


@contextlib.contextmanager
def _alone(state: Path | None) -> Iterator[None]:
    """Keep other watches from the same state: each would count what the other has read.

    Raises
    ------
    ValueError
        Another one has it.
    """
    from fanin.files import OURS
    from fanin.files.locks import Lock, LockedError

    with contextlib.ExitStack() as stack:
        if state is not None:
            if not state.absolute().parent.is_dir():
                raise ValueError(f"--state {state}: there is no folder {state.parent}")
            try:
                stack.enter_context(Lock(state.resolve().with_name(f"{OURS}{state.name}.lock")))
            except LockedError as error:
                raise ValueError(f"--state {state}: {error} uses it; end that, or choose another name") from None
        yield


@contextlib.contextmanager
def _served(watched: Watch, port: int, sources: list[str], *, quiet: bool) -> Iterator[None]:
    """Serve the page while it goes on."""
    from fanin.watch.server import Server

    title = Path(sources[0]).name if len(sources) == 1 else f"{len(sources)} sources"
    try:
        server = Server(watched.hub, watched.metrics, port, "standard input" if title == "-" else title)
    except OSError as error:
        raise ValueError(f"--page {port}: {error.strerror}; --page 0 takes a port that is free, --no-page none") from None
    server.start()
    if not quiet:
        say(f"page: {server.url}   metrics: {server.url}metrics   Ctrl-C ends it")
    try:
        yield
    finally:
        server.stop()


def _tell(hub: Hub, bursts: list[Burst], *, quiet: bool, as_json: bool) -> Callable[[], None] | None:
    """Return what prints the bursts that have ended."""
    from fanin.analysis import tables
    from fanin.text import show

    if quiet:
        return None
    lines = []
    for burst in bursts:
        report = burst.report
        if as_json:
            line = json.dumps({"source": burst.source, "port": burst.port, "origin_s": burst.origin_s, "burst": report})
        else:
            said = [("≥ " if report["open"] or report["cut"] else "") + show.duration(report["duration_ps"])]
            size = show.size(report["peak_bytes"])
            said += [f"at least {size}" if tables.at_least(report) else f"up to {size}"] if report["peak_bytes"] is not None else []
            culprits = burst.culprits()
            said += [f"{culprits[0]['share']:.0%} of it from {culprits[0]['name']}"] if culprits else []
            least = "at least " if tables.drops_at_least(report) else ""
            said += [least + show.many(report["dropped_packets"], "drop")] if report["dropped_packets"] or least else []
            line = f"{burst.when()}  {hub.name(burst.source, burst.port)}  {', '.join(said)}"
        lines.append(line)

    parts = [""]
    for line in lines:
        # A pipe takes so much at once or not at all: of a watch that is killed it has whole lines.
        if parts[-1] and len(parts[-1].encode()) + len(line.encode()) + 2 > select.PIPE_BUF:
            parts.append("")
        parts[-1] += ("\n" if parts[-1] else "") + line

    def tell() -> None:
        for part in parts if lines else ():
            typer.echo(part)

    return tell


def _summary(hub: Hub) -> None:
    """Print what was seen, in the end."""
    from fanin.analysis import tables
    from fanin.text import show, terminal

    console = terminal.console()
    rows = []
    for port in hub.by_severity()[:20]:
        report = port.report
        bursts = hub.bursts_of(report)
        lasted = show.NOTHING if bursts == "unknown" else show.duration(report["burst_ps"])
        sizes = [hub.bounded(port, report["peak_bytes"]), bursts, lasted]
        rows.append(
            [
                hub.name(port.source, port.name),
                show.count(report["records"]),
                *sizes,
                tables.drops(report),
                hub.unknown_time(report),
            ]
        )
    left_out = len(hub.ports) - len(rows)
    title = "Ports, the worst first" + (f"; {left_out} more" if left_out > 0 else "")
    terminal.table(console, title, ["Port", "Records", "Largest queue", "Bursts", "In bursts", "Drops", "Unknown"], rows)
    for source in hub.sources:
        report = hub.reports.get(source.name, {})
        refused = report.get("refused", 0)
        said = f"{source.name}: {show.size(source.counts.bytes)} read"
        said += f", {show.many(refused, 'row')} refused" if refused else ""
        say(", ".join([said, *hub.out_of_time(source.name)]))
        for problem in [*(report.get("problems") or []), *hub.contradictions(source.name)]:
            say(f"  {problem}", "yellow")
