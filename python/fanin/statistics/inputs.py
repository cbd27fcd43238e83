"""Checks of what is given: values that are finite numbers, chances, confidences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = Sequence[float] | NDArray[np.float64]
    """One number per seed."""


def array(values: Values, what: str, *, empty: bool = False) -> NDArray[np.float64]:
    """Return values as an array.

    Raises
    ------
    ValueError
        There are none, unless `empty` says that there may be none; or one is no finite number.
    """
    import numpy as np

    accepted = "accepted: a list or an array of numbers"
    if not isinstance(values, Iterable) or isinstance(values, str | bytes | Mapping):
        raise ValueError(f"{what}: {str(values)[:40]} is not accepted; {accepted}")
    try:
        made = np.array(values if hasattr(values, "__array__") else list(values), dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{what}: holds a value that is no number; {accepted}") from None
    if made.ndim != 1:
        raise ValueError(f"{what}: has {made.ndim} dimensions; {accepted}")
    if not made.size and not empty:
        raise ValueError(f"{what}: there are no values")
    if not np.isfinite(made).all():
        raise ValueError(f"{what}: holds a value that is no finite number")
    return made


def checked(confidence: float) -> float:
    """Return a confidence that is between 0.5 and 0.999."""
    if not 0.5 <= confidence <= 0.999:
        raise ValueError(f"confidence: {confidence} is out of range; accepted: 0.5 to 0.999")
    return confidence


def checked_chance(chance: float | None, what: str) -> float | None:
    """Return a chance that is between 0 and 1, or None."""
    if chance is not None and not 0 <= chance <= 1:  # NaN is in no range
        raise ValueError(f"{what}: {chance} is no chance; accepted: 0 to 1, or None where nothing is judged")
    return chance
