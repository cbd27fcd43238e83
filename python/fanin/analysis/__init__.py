"""Analysis of queue traces: ``fanin analyze`` and `fanin.analyze`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fanin.analysis.bursts import Analysis, AnalysisProgress, Source, TraceError, analyze, explain, records_kind

__all__ = ["Analysis", "AnalysisProgress", "Source", "TraceError", "analyze", "explain", "records_kind"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'fanin.analysis' has no attribute '{name}'")
    return getattr(import_module("fanin.analysis.bursts"), name)
