"""Says what would have helped a measured burst: ``fanin whatif`` and `fanin.whatif`. docs/whatif.md explains it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from fanin.remedy.answer import Remedy, WhatIf
    from fanin.remedy.ask import whatif

__all__ = ["Remedy", "WhatIf", "whatif"]

_MODULES: Final = {"answer": ("Remedy", "WhatIf"), "ask": ("whatif",)}
"""Modules that define the names; imported on first use."""


def __getattr__(name: str) -> Any:
    module = next((module for module, names in _MODULES.items() if name in names), None)
    if module is None:
        raise AttributeError(f"module 'fanin.remedy' has no attribute '{name}'")
    return getattr(import_module(f"fanin.remedy.{module}"), name)
