"""Fanin: packet-exact simulation of data-center networks, and analysis of microbursts in their queues and in real ones.

>>> import fanin
>>> result = fanin.run("scenarios/demo.toml", "out/demo")  # doctest: +SKIP
>>> result.plot_fct_cdf().show()  # doctest: +SKIP
"""

from fanin import reproduce
from fanin._core import version as _version
from fanin.analysis import Analysis, AnalysisProgress, TraceError, analyze
from fanin.folder import OutputError
from fanin.progress import ProgressState
from fanin.results import Result, ResultError, load
from fanin.runner import run
from fanin.scenario import Check, Problem, Scenario, ScenarioError

__version__ = _version()

__all__ = [
    "Analysis",
    "AnalysisProgress",
    "Check",
    "OutputError",
    "Problem",
    "ProgressState",
    "Result",
    "ResultError",
    "Scenario",
    "ScenarioError",
    "TraceError",
    "__version__",
    "analyze",
    "load",
    "reproduce",
    "run",
]
