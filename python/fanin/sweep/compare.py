"""Compares what is given: result folders, or the runs of a sweep by the values of its axes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from fanin import comparison
from fanin import statistics as stats
from fanin.comparison import Comparison, variants
from fanin.comparison.variants import Source
from fanin.sweep import by_axis
from fanin.sweep.frames import Sweep


def compare(  # noqa: PLR0913 (all but one have a name)
    given: Sweep | Mapping[str, Source | Sequence[Source]] | Sequence[Source],
    *,
    by: str | Sequence[str] = (),
    where: Mapping[str, Any] | None = None,
    base: str | None = None,
    metric: str | Sequence[str] = (),
    confidence: float = stats.CONFIDENCE,
    alpha: float = stats.ALPHA,
    margin: float = stats.MARGIN,
    looks: int = 1,
    seeds: Iterable[int] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Comparison:
    """Compare variants of a scenario, each with one run or several seeds.

    Runs whose scenarios differ in the seed alone are one variant. Differences are taken seed by seed, where variants have seeds in
    common; docs/compare.md states when one is called better or worse.

    Parameters
    ----------
    given : mapping, sequence or Sweep
        Name → result folders; or result folders: paths, patterns, folders of result folders, or `Result`; or a sweep, also by its
        path.
    by : str or sequence of str
        Axes of the sweep whose values make the variants.
    where : mapping, optional
        Axis of the sweep → value: only runs with these.
    base : str, optional
        Name of the variant that the others are compared with; the first if not given.
    metric : str or sequence of str
        Which numbers are shown and judged: addresses (``fct/all.p99_ps``), patterns or groups (``fct``). If empty all are shown,
        and `fanin.metrics.HEADLINES` judged. The more are judged, the harder it is for each to count.
    confidence : float
        Nominal coverage of intervals, 0.5 to 0.999.
    alpha : float
        Chance that the table calls anything different where nothing is, 0.001 to 0.5.
    margin : float
        Up to which relative difference means count as the same, if that is shown, 0.001 to 1.
    looks : int
        How often you mean to look at these variants in all, this time included; each look has its share of `alpha`.
    seeds : iterable of int, optional
        Only runs with these seeds, such as those that were run after an earlier look.
    progress : callable, optional
        Receives the path of each result folder before it is read.

    Returns
    -------
    Comparison
        Rows, verdicts, warnings, figures, page.

    Raises
    ------
    CompareError
        Folders, names or settings that are wrong; all of them are in its ``problems``.

    Examples
    --------
    >>> fanin.compare({"k20": "out/k20", "k65": "out/k65-*"}, metric="fct").report("k.html")  # doctest: +SKIP
    """
    sources: Any = given if isinstance(given, Mapping | list | tuple) else [given]
    axes = [by] if isinstance(by, str) else list(by)
    if axes or where or (not isinstance(sources, Mapping) and any(by_axis.is_one(source) for source in sources)):
        found = by_axis.gather(list(sources), axes, {axis: str(value) for axis, value in (where or {}).items()})
    else:
        found = variants.gather(sources, progress)
    wanted = None if seeds is None else list(seeds)
    return comparison.of(
        found, base=base, metric=metric, confidence=confidence, alpha=alpha, margin=margin, looks=looks, seeds=wanted
    )
