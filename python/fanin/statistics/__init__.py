"""Statistics over seeds: intervals that hold, exact tests, and how many seeds a verdict takes. docs/statistics.md explains them.

Nothing here knows what a metric is; `fanin.compare` and others bring the numbers. SciPy is imported where it is needed.
"""

from fanin.statistics.exact import needed, sign_flip, sign_test
from fanin.statistics.intervals import (
    CONFIDENCE,
    FEW,
    RARE,
    SOME,
    UNSEEN,
    Flag,
    Interval,
    about_median,
    about_share,
    interval,
    predicted,
    share,
    unseen,
)
from fanin.statistics.judging import (
    ALPHA,
    MARGIN,
    Difference,
    Direction,
    Judgement,
    Verdict,
    difference,
    holm,
    verdicts,
)
from fanin.statistics.means import about_mean, t_quantile
from fanin.statistics.pooled import Pooled, pooled
from fanin.statistics.shares import difference_of_shares

__all__ = [
    "ALPHA",
    "CONFIDENCE",
    "FEW",
    "MARGIN",
    "RARE",
    "SOME",
    "UNSEEN",
    "Difference",
    "Direction",
    "Flag",
    "Interval",
    "Judgement",
    "Pooled",
    "Verdict",
    "about_mean",
    "about_median",
    "about_share",
    "difference",
    "difference_of_shares",
    "holm",
    "interval",
    "needed",
    "pooled",
    "predicted",
    "share",
    "sign_flip",
    "sign_test",
    "t_quantile",
    "unseen",
    "verdicts",
]
