"""Names of flows: what several have in common is said once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import Final

_WORTH: Final = 12
"""Characters that names must have in common for it to be worth saying."""


def apart(names: Sequence[str]) -> tuple[str, list[str]]:
    """Return what names have in common, with ``*`` for the rest, and the rest of each; all of each where that is little.

    Examples
    --------
    >>> apart(["10.7.0.1:80 > 10.7.0.9:5 tcp", "10.7.0.2:81 > 10.7.0.9:5 tcp"])
    ('10.7.0.* > 10.7.0.9:5 tcp', ['1:80', '2:81'])
    """
    parts = [re.findall(r"[^.: ]+|[.: ]", name) for name in names]
    if len(set(names)) < 2:
        return "", list(names)
    alike = [len(set(column)) == 1 for column in zip(*parts, strict=False)]
    first = len(list(takewhile(bool, alike)))
    ends = [len(set(column)) == 1 for column in zip(*(list(reversed(own[first:])) for own in parts), strict=False)]
    last = len(list(takewhile(bool, ends)))
    before, after = "".join(parts[0][:first]), "".join(parts[0][len(parts[0]) - last :])
    if len(before) + len(after) < _WORTH:
        return "", list(names)
    return f"{before}*{after}", ["".join(own[first : len(own) - last]) or "(none)" for own in parts]
