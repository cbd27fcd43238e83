"""``fanin man``: the manual page, from the definitions of the commands themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import click

EXAMPLE: Final = "fanin man > ~/.local/share/man/man1/fanin.1"
STATUSES: Final = {
    0: "done",
    1: "the run failed or is partial, or a disk is full",
    2: "bad input: a scenario with errors, a file that is missing or cannot be read, a wrong option",
    130: "interrupted; what was simulated until then is kept",
}


def _plain(text: str) -> str:
    """Return text as roff prints it: its escapes, hyphens and leading dots are none."""
    text = re.sub(r"\\(\[)", r"\1", " ".join(text.split()))
    text = text.replace("\\", "\\e").replace("-", "\\-")
    text = "".join(letter if letter.isascii() else f"\\[u{ord(letter):04X}]" for letter in text)
    return re.sub(r"^([.'])", r"\\&\1", text)


def _command(name: str, command: Any) -> Iterator[str]:
    context: click.Context = command.make_context(f"fanin {name}", [], resilient_parsing=True)
    pieces = " ".join(command.collect_usage_pieces(context))
    yield f".SS fanin {_plain(name)} {_plain(pieces)}"
    yield _plain(command.help or "")
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record is not None:
            yield from (".TP", f"\\fB{_plain(record[0])}\\fR", _plain(record[1]))
    for paragraph in (command.epilog or "").split("\n\n"):
        if not paragraph.startswith("Exit status"):
            yield from (".PP", _plain(paragraph))


def manual(group: Any, version: str) -> str:
    """Return the manual page of the command line in roff's macros of ``man``.

    Parameters
    ----------
    group : click.Group
        All commands.
    version : str
        Of Fanin, for the foot of the page.

    Returns
    -------
    str
    """
    lines = [
        f'.TH FANIN 1 "" "Fanin {version}" "User commands"',
        ".SH NAME",
        f"fanin \\- {_plain(group.help.rstrip('.'))}",
        ".SH SYNOPSIS",
        "\\fBfanin\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR] \\fIARGUMENTS\\fR",
        ".SH DESCRIPTION",
        _plain(
            "Microbursts observed, explained and stopped: fanin run simulates a scenario into a result folder, fanin analyze finds "
            "bursts in traces, simulated or real, fanin compare says which variant is better. Every command has --help, "
            "with an example."
        ),
        ".SH COMMANDS",
    ]
    for name, command in group.commands.items():
        lines += _command(name, command)
    lines += [".SH EXIT STATUS"]
    for status, meaning in STATUSES.items():
        lines += [".TP", str(status), _plain(meaning)]
    lines += [".SH ENVIRONMENT", ".TP", "NO_COLOR", "No colours."]
    lines += [".TP", "TMPDIR", _plain("Where fanin analyze --sort puts what memory does not hold.")]
    lines += [".SH SEE ALSO", _plain("docs/cli.md says more of each option; the documentation as a site: make site-serve.")]
    return "\n".join(lines) + "\n"
