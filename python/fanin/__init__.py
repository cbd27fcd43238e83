"""Fanin: packet-exact simulation of data-center networks.

>>> import fanin
>>> result = fanin.run("scenarios/demo.toml", "out/demo")  # doctest: +SKIP
>>> result.plot_fct_cdf().show()  # doctest: +SKIP
"""

from fanin import reproduce
from fanin._core import version as _version
from fanin.folder import OutputError
from fanin.progress import ProgressState
from fanin.results import Result, ResultError, load
from fanin.runner import run
from fanin.scenario import Check, Problem, Scenario, ScenarioError

__version__ = _version()

__all__ = [
    "Check",
    "OutputError",
    "Problem",
    "ProgressState",
    "Result",
    "ResultError",
    "Scenario",
    "ScenarioError",
    "__version__",
    "load",
    "reproduce",
    "run",
]
