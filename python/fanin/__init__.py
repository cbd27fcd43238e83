"""Fanin: packet-exact simulation of data-center networks, and analysis of microbursts in their queues and in real ones.

>>> import fanin
>>> result = fanin.run("scenarios/demo.toml", "out/demo")  # doctest: +SKIP
>>> result.plot_fct_cdf().show()  # doctest: +SKIP

The documentation is the folder `docs` of the project, and the site that `make site-serve` shows, with the engine in it:
docs/tutorials to learn it, docs/python.md for this package.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from fanin import reproduce, statistics, types
    from fanin.analysis import Analysis, AnalysisProgress, TraceError, analyze
    from fanin.comparison import Comparison
    from fanin.comparison.variants import CompareError
    from fanin.explain import Explanation, pauses
    from fanin.explain.captured import CapturedExplanation
    from fanin.explain.pauses import PauseTree
    from fanin.figures import regions
    from fanin.remedy import WhatIf, whatif
    from fanin.results import Result, ResultError, load
    from fanin.results.folder import OutputError
    from fanin.results.progress import ProgressState
    from fanin.results.runner import run
    from fanin.scenario import Check, Problem, Scenario, ScenarioError
    from fanin.statistics import metrics
    from fanin.sweep import Sweep, sweep
    from fanin.sweep.compare import compare

    __version__: str

__all__ = [
    "Analysis",
    "AnalysisProgress",
    "CapturedExplanation",
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
    "WhatIf",
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
    "whatif",
]

_MODULES: Final = {
    "analysis": ("Analysis", "AnalysisProgress", "analyze"),
    "comparison": ("Comparison",),
    "comparison.variants": ("CompareError",),
    "explain": ("Explanation",),
    "explain.captured": ("CapturedExplanation",),
    "explain.pauses": ("PauseTree",),
    "remedy": ("WhatIf", "whatif"),
    "results": ("Result", "ResultError", "load"),
    "results.folder": ("OutputError",),
    "results.progress": ("ProgressState",),
    "results.runner": ("run",),
    "scenario": ("Check", "Problem", "Scenario"),
    "sweep.compare": ("compare",),
    "sweep.frames": ("Sweep",),
    "_core": ("ScenarioError", "TraceError"),
}
"""Modules that define the names, imported on first use: some of what they need takes half a second."""


_PARTS: Final = {
    "detours": "explain.detours",
    "metrics": "statistics.metrics",
    "pauses": "explain.pauses",
    "regions": "figures.regions",
    "reproduce": "reproduce",
    "samples": "tables.samples",
    "statistics": "statistics",
    "sweep": "sweep",
    "types": "types",
}
"""Modules below that are names of this package, as `fanin.pauses.by_port`."""


def __getattr__(name: str) -> Any:
    found: Any
    if name == "__version__":
        found = import_module("fanin._core").version()
    elif name in _PARTS:
        found = import_module(f"fanin.{_PARTS[name]}")
    else:
        module = next((module for module, names in _MODULES.items() if name in names), None)
        if module is None:
            raise AttributeError(f"module 'fanin' has no attribute '{name}'")
        found = getattr(import_module(f"fanin.{module}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, *_PARTS, *(name for name in globals() if name.startswith("__"))})
