"""Fanin: packet-exact simulation of data-center networks, and analysis of microbursts in their queues and in real ones.

>>> import fanin
>>> result = fanin.run("scenarios/demo.toml", "out/demo")  # doctest: +SKIP
>>> result.plot_fct_cdf().show()  # doctest: +SKIP
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from fanin import metrics, pauses, regions, reproduce, statistics, types
    from fanin.analysis import Analysis, AnalysisProgress, TraceError, analyze
    from fanin.comparison import Comparison, compare
    from fanin.explain import Explanation
    from fanin.folder import OutputError
    from fanin.pauses import PauseTree
    from fanin.progress import ProgressState
    from fanin.results import Result, ResultError, load
    from fanin.runner import run
    from fanin.scenario import Check, Problem, Scenario, ScenarioError
    from fanin.sweep import Sweep, sweep
    from fanin.variants import CompareError

    __version__: str

__all__ = [
    "Analysis",
    "AnalysisProgress",
    "Check",
    "CompareError",
    "Comparison",
    "Explanation",
    "OutputError",
    "PauseTree",
    "Problem",
    "ProgressState",
    "Result",
    "ResultError",
    "Scenario",
    "ScenarioError",
    "Sweep",
    "TraceError",
    "__version__",
    "analyze",
    "compare",
    "load",
    "metrics",
    "pauses",
    "regions",
    "reproduce",
    "run",
    "statistics",
    "sweep",
    "types",
]

_MODULES: Final = {
    "analysis": ("Analysis", "AnalysisProgress", "analyze"),
    "comparison": ("Comparison", "compare"),
    "explain": ("Explanation",),
    "folder": ("OutputError",),
    "pauses": ("PauseTree",),
    "progress": ("ProgressState",),
    "results": ("Result", "ResultError", "load"),
    "runner": ("run",),
    "scenario": ("Check", "Problem", "Scenario"),
    "sweep.frames": ("Sweep",),
    "variants": ("CompareError",),
    "_core": ("ScenarioError", "TraceError"),
}
"""Where the names are defined. Their modules are imported on first use: some of what they need takes half a second."""


_PLACES: Final = ("metrics", "pauses", "regions", "reproduce", "statistics", "sweep", "types")
"""Modules that are used by their own name, such as ``fanin.pauses.by_port``."""


def __getattr__(name: str) -> Any:
    found: Any
    if name == "__version__":
        found = import_module("fanin._core").version()
    elif name in _PLACES:
        found = import_module(f"fanin.{name}")
    else:
        module = next((module for module, names in _MODULES.items() if name in names), None)
        if module is None:
            raise AttributeError(f"module 'fanin' has no attribute '{name}'")
        found = getattr(import_module(f"fanin.{module}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, *_PLACES, *(name for name in globals() if name.startswith("__"))})
