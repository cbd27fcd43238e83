"""Failures of commands: readable lines on standard error, and an exit status."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NoReturn

import typer

from fanin._core import TraceError
from fanin.cli.ends import is_of_the_disk
from fanin.cli.output import say, say_problem
from fanin.results import ResultError
from fanin.scenario import Problem, ScenarioError

EXIT_FAILED: Final = 1
EXIT_BAD_INPUT: Final = 2
EXIT_INTERRUPTED: Final = 130
SCENARIO_PAGE: Final = "docs/scenario.md, or fanin schema --reference"


@contextmanager
def failures(file: Path | None = None, *, page: str = SCENARIO_PAGE) -> Iterator[None]:
    """Turn what a user can do something about into readable lines and an exit status.

    Problems of settings name `file`, where they are a scenario's, and the `page` that says what there is.
    """
    try:
        yield
    except ScenarioError as error:
        for problem in error.problems:
            say_problem(Problem.from_core(problem), file)
        if not error.problems:
            say(f"error: {error}", "red")
        say(f"read on: {page}")
        raise typer.Exit(EXIT_BAD_INPUT) from None
    except TraceError as error:
        for found in error.problems:
            say(f"error: {found['text']}", "red")
        raise typer.Exit(EXIT_BAD_INPUT) from None
    except (ResultError, ValueError, TypeError) as error:
        say(f"error: {error}", "red")
        raise typer.Exit(EXIT_BAD_INPUT) from None
    except OSError as error:
        if error.errno is not None and error.filename is None:
            raise  # standard output: see `App`
        name = f"{error.filename}: " if error.filename else ""
        say(f"error: {name}{error.strerror or error}", "red")
        raise typer.Exit(EXIT_FAILED if is_of_the_disk(error) else EXIT_BAD_INPUT) from None
    except KeyboardInterrupt:
        say("interrupted", "yellow")
        raise typer.Exit(EXIT_INTERRUPTED) from None


def failed(error: Exception) -> NoReturn:
    """Say why something came to no end, and exit."""
    say(f"error: {error}", "red")
    raise typer.Exit(EXIT_FAILED) from None


def ends_in(out: Path | None, *accepted: str, option: str = "--out") -> None:
    """Refuse a file whose name says that it is of another kind than what is written."""
    if out is not None and out.suffix.lower() not in accepted:
        names = " and ".join([", ".join(accepted[:-1]), accepted[-1]] if len(accepted) > 1 else accepted)
        raise ValueError(f"{option} {out}: cannot be written; names that end in {names} are")
