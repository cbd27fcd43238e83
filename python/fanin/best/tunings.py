"""What is tried beside the policies of the registries: the same ones tuned otherwise, and pairs that suit each other."""

from __future__ import annotations

from typing import Any, Final


def _trial(kind: str, part: str, about: str, *settings: tuple[str, str]) -> dict[str, Any]:
    return {"kind": kind, "part": part, "doc": about, "settings": [list(setting) for setting in settings]}


_MARKING: Final = "switch.marking"

TUNINGS: Final[tuple[dict[str, Any], ...]] = (
    *(
        _trial(f"K = {k}", _MARKING, "The threshold, otherwise.", (_MARKING, '"threshold"'), (f"{_MARKING}.k", f'"{k} packets"'))
        for k in (10, 20, 40, 130)
    ),
    _trial("red marks", _MARKING, "Random early detection that drops nothing.", (_MARKING, '{ kind = "red", hard_drop = false }')),
    _trial(
        "codel marks",
        _MARKING,
        "Controlled delay in the times of a data center, marking.",
        (_MARKING, '{ kind = "codel", ecn = true, target = "50us", interval = "1ms" }'),
    ),
    _trial(
        "cubic with ECN",
        "transport.congestion_control",
        "CUBIC that answers marks as it does losses (RFC 9438, 3168).",
        ("transport", '{ kind = "tcp", congestion_control = { kind = "cubic" }, ecn = true }'),
    ),
    _trial("pacing", "transport", "Packets spread over the round trip.", ("transport.pacing", '"fq"')),
)
"""Each as the core states a trial."""
