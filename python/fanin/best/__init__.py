"""Ranks policies by how much they help a scenario: ``fanin best`` and `fanin.best.best`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from fanin.best.candidates import Candidate, Rejected
    from fanin.best.ranking import Best, Place, best

__all__ = ["Best", "Candidate", "Place", "Rejected", "best"]

_MODULES: Final = {"candidates": ("Candidate", "Rejected"), "ranking": ("Best", "Place", "best")}
"""Modules that define the names; imported on first use."""


def __getattr__(name: str) -> Any:
    module = next((module for module, names in _MODULES.items() if name in names), None)
    if module is None:
        raise AttributeError(f"module 'fanin.best' has no attribute '{name}'")
    return getattr(import_module(f"fanin.best.{module}"), name)
