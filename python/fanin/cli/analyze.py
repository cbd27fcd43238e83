"""The command ``fanin analyze``: its options, and what it writes."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fanin.cli.failures import ends_in, failures
from fanin.cli.output import reading, show_analysis

__all__ = ["EXAMPLES", "analyze"]

EXAMPLES = (
    "fanin analyze switch7.csv --rate 10Gbps --columns 'time=ts_ns:ns,queue=qlen:cells(208B)'",
    "zcat trace.csv.gz | fanin analyze - --rate 10Gbps",
)


class By(StrEnum):
    """What bursts are found by."""

    QUEUE = "queue"
    RATE = "rate"


class Way(StrEnum):
    """Which way frames of a capture went, seen from where it was taken."""

    IN = "in"
    OUT = "out"


def analyze(
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
    start: Annotated[
        str | None, typer.Option("--start", metavar="TIME", help="Seek bursts from here on: 1.5ms, or a date.")
    ] = None,
    stop: Annotated[str | None, typer.Option("--stop", metavar="TIME", help="Read up to here, likewise.")] = None,
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
        str | None,
        typer.Option("--before-interface", metavar="IF", help="Interface before the port, in a capture of several: eth0, 4, #0."),
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
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
) -> None:
    """Find the bursts of a queue trace, simulated or real: phases, slopes, laws, culprits."""
    from fanin import analysis

    with failures():
        if records is not None:
            analysis.records_kind(records)
            if not records.absolute().parent.is_dir():
                raise ValueError(f"--records {records}: there is no folder {records.parent}")
            if records.resolve() in [trace.resolve() for trace in [*traces, *(behind or [])]]:
                raise ValueError(f"--records {records}: is a file of the trace itself")
        ends_in(out, ".html", ".json")
        if zone is not None and as_json:
            raise ValueError("--zone: without effect beside --json, whose times are picoseconds since origin_s")
        if out is not None and not out.absolute().parent.is_dir():
            raise ValueError(f"--out {out}: there is no folder {out.parent}")
        if out is not None and out.resolve() in [trace.resolve() for trace in traces]:
            raise ValueError(f"--out {out}: is a file of the trace itself")
        with reading(shown=not quiet and not as_json) as progress:
            found = analysis.analyze(
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
