"""Many runs of one scenario: with other values, with other seeds. docs/sweeps.md explains it.

The package can be called: ``fanin.sweep("k.toml", "out/k")`` is `fanin.sweep.sweep`.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from fanin.sweep.frames import Sweep
    from fanin.sweep.progress import SweepState
    from fanin.sweep.running import sweep
    from fanin.sweep.store import Store, StoreError

__all__ = ["Store", "StoreError", "Sweep", "SweepState", "sweep"]

_MODULES: Final = {"frames": ("Sweep",), "progress": ("SweepState",), "running": ("sweep",), "store": ("Store", "StoreError")}


def __getattr__(name: str) -> Any:
    module = next((module for module, names in _MODULES.items() if name in names), None)
    if module is None:
        raise AttributeError(f"module 'fanin.sweep' has no attribute '{name}'")
    return getattr(import_module(f"fanin.sweep.{module}"), name)


class _Callable(ModuleType):
    """``fanin.sweep`` is both the package and, as the other verbs of `fanin` are, a function."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        from fanin.sweep.running import sweep

        return sweep(*arguments, **options)


sys.modules[__name__].__class__ = _Callable
