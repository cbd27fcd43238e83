"""Percentiles of the flows of all seeds together: what one of all flows meets, beside the mean of the runs' percentiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from fanin.statistics import Pooled, pooled

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fanin.comparison.variants import Variant
    from fanin.statistics.metrics import Metric
    from fanin.tables.recorded import Recorded

MOST: Final = 10_000_000
"""Flows that are read at most: beyond, a comparison would take longer than people wait."""

_PERCENT: Final = {"p99_ps": 99.0, "slowdown_p99": 99.0}
"""Columns of which there is such a percentile."""


def words(metric: Metric) -> str:
    """Return what is taken together, in words."""
    return "all queries together" if metric.key.startswith("queries.") else "all flows together"


class Together:
    """The flows of a variant's runs, where all have result folders.

    Parameters
    ----------
    variant : Variant
        Its runs.
    confidence : float
        Nominal coverage of intervals.
    """

    def __init__(self, variant: Variant, confidence: float) -> None:
        self._variant: Final = variant
        self._confidence: Final = confidence

    @property
    def there(self) -> bool:
        """Whether there are runs, all have result folders, and their flows are not too many."""
        flows = sum(self._variant.values("total.flows_complete").values())
        return bool(self._variant.runs) and flows <= MOST and all(run.result is not None for run in self._variant.runs)

    def of(self, metric: Metric) -> Pooled | None:
        """Return the percentile that a metric is the mean of, of all seeds together; None where there is none, or no flow."""
        group, _, column = metric.key.rpartition(".")
        percent = _PERCENT.get(column)
        if percent is None or not (group == "queries" or group.startswith("fct/")) or not self.there:
            return None
        runs = {seed: self._values(result, group, column) for seed, result in self._results()}
        runs = {seed: values for seed, values in runs.items() if len(values)}
        return pooled(runs, percent, confidence=self._confidence) if runs else None

    def _results(self) -> Sequence[tuple[int, Recorded]]:
        return [(run.seed, run.result()) for run in self._variant.runs if run.result is not None]

    def _values(self, result: Recorded, group: str, column: str) -> NDArray[np.float64]:
        import numpy as np
        import polars as pl

        if group == "queries":
            done = result.queries.filter(pl.col("finish_ps").is_not_null())
            return (done["finish_ps"] - done["start_ps"]).cast(pl.Float64).to_numpy()
        size = group.partition("/")[2]
        entry = next((found for found in result.summary.get("fct") or [] if found["bin"] == size), None)
        if entry is None:
            return np.zeros(0)
        flows = result.completions
        if entry["from_bytes"] is not None:
            flows = flows.filter(pl.col("size_bytes") >= entry["from_bytes"])
        if entry["to_bytes"] is not None:
            flows = flows.filter(pl.col("size_bytes") < entry["to_bytes"])
        return flows["slowdown" if column.startswith("slowdown") else "fct_ps"].cast(pl.Float64).to_numpy()
