"""The command ``fanin analyze``: its options, and what it writes."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Unpack

import typer

from fanin._core import trace_formats
from fanin.analysis.settings import DECLARED, Settings
from fanin.cli.failures import ends_in, failures
from fanin.cli.output import reading, show_analysis, show_port_scenario

EXAMPLES = (
    "fanin analyze switch7.csv --rate 10Gbps --columns 'time=ts_ns:ns,queue=qlen:cells(208B)'",
    "zcat trace.csv.gz | fanin analyze - --rate 10Gbps",
)


def with_settings(command: Callable[..., None], names: Iterable[str] = DECLARED) -> Callable[..., None]:
    """Give a command an option for each setting of an analysis, or for some, after its first argument."""
    first, *own = inspect.signature(command, eval_str=True).parameters.values()
    options = []
    for name in names:
        hint, setting = DECLARED[name]
        flag = setting.flag or f"--{name.replace('_', '-')}"
        least, most = setting.least, setting.most
        option = typer.Option(flag, metavar=setting.metavar, help=setting.help, case_sensitive=False, min=least, max=most)
        default = setting.default if setting.option is None else setting.option
        annotation = Annotated[setting.kind or hint, option]  # type: ignore[valid-type]
        options.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation))
    named = [parameter for parameter in own if parameter.kind is inspect.Parameter.KEYWORD_ONLY]
    setattr(command, "__signature__", inspect.Signature([first, *options, *named]))  # noqa: B010 (functions have it, their type does not)
    return command


@with_settings
def analyze(
    traces: Annotated[
        list[Path],
        typer.Argument(
            metavar="TRACE...",
            help=f"{', '.join(trace_formats())}; - is standard input.",
            show_default=False,
        ),
    ],
    *,
    records: Annotated[
        Path | None,
        typer.Option("--records", metavar="FILE", help="Also write all records: .parquet, .csv, .jsonl or .arrow."),
    ] = None,
    to_scenario: Annotated[
        Path | None,
        typer.Option(
            "--to-scenario", metavar="FILE", help="Also write what arrived as a scenario (.toml), to try what would help."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace records or a scenario that is there.")] = False,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="FILE", help="Also write a page (.html) or the whole report (.json).")
    ] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress, no notes, no tables.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
    **settings: Unpack[Settings],
) -> None:
    """Find the bursts of a queue trace, simulated or real: phases, slopes, laws, culprits."""
    from fanin import analysis

    given: dict[str, Any] = {name: value for name, value in settings.items() if value != []}
    with failures(), contextlib.ExitStack() as stack:
        read = [*traces, *(Path(path) for path in given.get("behind") or ())]
        _check_files(read, out, {"--records": records, "--to-scenario": to_scenario}, force=force)
        if given.get("zone") is not None and as_json:
            raise ValueError("--zone: without effect beside --json, whose times are picoseconds since origin_s")
        stack.enter_context(_alone("--records", records))
        stack.enter_context(_alone("--to-scenario", to_scenario))
        stack.enter_context(_alone("--out", out))
        with reading(shown=not quiet and not as_json) as progress:
            found = analysis.analyze([str(trace) for trace in traces], progress=progress, **given)
        if records is not None:
            found.write_records(records)
        made = None if to_scenario is None else found.to_scenario(to_scenario)
        if out is not None and out.suffix.lower() == ".html":
            found.report(out)
        elif out is not None:
            found.to_json(out)
    if as_json:
        typer.echo(found.to_json(), nl=False)
    elif not quiet:
        show_analysis(found, settings["top"])
        if made is not None:
            show_port_scenario(made)
        for written in filter(None, (records, to_scenario, out)):
            typer.echo(written)


@contextlib.contextmanager
def _alone(option: str, path: Path | None) -> Iterator[None]:
    """Keep other analyses from writing a file of that name meanwhile: the last to end would win, and nobody would know.

    Raises
    ------
    ValueError
        Another one is at it.
    """
    from fanin.files import OURS
    from fanin.files.locks import Lock, LockedError

    with contextlib.ExitStack() as stack:
        if path is not None and (path.is_file() or not path.exists()):
            target = path.resolve()
            try:
                stack.enter_context(Lock(target.with_name(f"{OURS}{target.name}.lock")))
            except LockedError as error:
                raise ValueError(
                    f"{option} {path}: {error} is writing it; wait until it has ended, or choose another name"
                ) from None
            except OSError:
                pass  # whoever writes the file says why it cannot be written
        yield


def _check_files(read: list[Path], out: Path | None, data: Mapping[str, Path | None], *, force: bool) -> None:
    """Refuse files to write that could not be written, are read, or, of data, are there.

    Raises
    ------
    ValueError
        The first of them, with the reason.
    """
    from fanin.analysis import records_kind

    if (records := data["--records"]) is not None:
        records_kind(records)
    ends_in(data["--to-scenario"], ".toml", option="--to-scenario")
    ends_in(out, ".html", ".json")
    taken = [path.resolve() for path in read]
    for option, path in {**data, "--out": out}.items():
        if path is None:
            continue
        if not path.absolute().parent.is_dir():
            raise ValueError(f"{option} {path}: there is no folder {path.parent}")
        if path.resolve() in taken:
            raise ValueError(f"{option} {path}: is a file of the trace itself")
        if option in data and path.is_file() and not force:
            raise ValueError(f"{option} {path}: is there already; --force replaces it")
