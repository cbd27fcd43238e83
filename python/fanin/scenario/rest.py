"""Where DCQCN comes to rest: the fixed point of its fluid model, for flows that share a port."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True)
class Rest:
    """Where flows under DCQCN rest at a port.

    Attributes
    ----------
    probability : float
        Marking probability at which their rates stay as they are.
    queue_bytes : float or None
        Queue with that probability; None: it is above the largest of the curve, which jumps to 1 there.
    """

    probability: float
    queue_bytes: float | None


_UNITS: Final = {
    **{unit: scale for scale, unit in ((1, "B"), (1e3, "KB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB"))},
    **{unit: scale for scale, unit in ((1, "bps"), (1e3, "kbps"), (1e6, "Mbps"), (1e9, "Gbps"), (1e12, "Tbps"))},
    **{unit: scale for scale, unit in ((1e-12, "ps"), (1e-9, "ns"), (1e-6, "us"), (1e-3, "ms"), (1, "s"))},
}
"""Units of resolved values: bytes, bits per second, seconds."""

_HALVINGS: Final = 200
"""Steps of the search for the probability: more than a float has digits."""


def _value(text: str) -> float:
    """Return a resolved quantity as a number; NaN if it is of no unit that is known here."""
    match = re.fullmatch(r"([\d.]+)([A-Za-z]+)", text)
    return float(match[1]) * _UNITS.get(match[2], math.nan) if match else math.nan


def rest(control: Mapping[str, Any], marking: Mapping[str, Any], flows: int, rate_bps: float, packet_bytes: float) -> Rest | None:
    """Return where flows rest that never end and have equal shares of a port; None without such a point.

    Parameters
    ----------
    control : mapping
        Resolved settings of DCQCN.
    marking : mapping
        Resolved settings of RED at the port.
    flows : int
        Flows at once.
    rate_bps : float
        Rate of the port.
    packet_bytes : float
        Bytes of a full packet on the wire.

    Notes
    -----
    Equations 5 to 9 of DCQCN §5.1 with every derivative zero; docs/lossless.md has their first-order form.
    """
    low, high = _value(str(marking["min"])), _value(str(marking["max"]))
    largest = float(marking["max_p"])
    timer, alpha_timer = _value(control["rate_timer"]), _value(control["alpha_timer"])
    cnp = max(_value(control["cnp_interval"]), _value(control["decrease_interval"]))
    counter = _value(control["byte_counter"]) / packet_bytes
    increase = _value(control["additive_increase"]) / 8 / packet_bytes
    recovery = float(control["fast_recovery"])
    share = rate_bps / 8 / packet_bytes / flows
    if not all(map(math.isfinite, (low, high, timer, alpha_timer, cnp, counter, increase))) or not cnp or not flows:
        return None

    def falls(p: float) -> bool:
        """Return whether rates fall at a marking probability."""
        none = math.log1p(-p)

        def events(packets: float) -> float:
            exponent = -none * packets
            return p / math.expm1(exponent) if exponent < 700 else 0.0

        cut = -math.expm1(none * cnp * share)
        by_bytes, by_time = share * events(counter), share * events(timer * share)
        alpha = -math.expm1(none * alpha_timer * share)
        # What the cuts take of the rate is made up from the gap to the target, and what they take of that by R_AI.
        gap = share * alpha * cut / cnp / (by_bytes + by_time) if by_bytes + by_time else math.inf
        grown = math.exp(none * recovery * counter) * by_bytes + math.exp(none * recovery * timer * share) * by_time
        return gap / cnp * cut > increase * grown

    least, most = 1e-12, 1 - 1e-9
    if falls(least) or not falls(most):
        return None
    for _ in range(_HALVINGS):
        middle = math.sqrt(least * most)
        least, most = (least, middle) if falls(middle) else (middle, most)
    return Rest(least, low + (high - low) * least / largest if least <= largest else None)
