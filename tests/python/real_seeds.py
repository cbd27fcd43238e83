"""Values of real runs by metric and seed, which the statistics are tested on: what they are, and how they are made anew.

    python tests/python/real_seeds.py        # 2,400 simulations, about two minutes; writes golden/real_seeds.parquet

The points are those of examples/sweep-marking.toml, with 300 seeds each and all flows and samples kept; and two of them on a fabric
of 64 hosts. Methods were compared on the 32 hosts. The list of metrics that are reliable from ten seeds was checked on the 64
hosts, too, and the other limits were set when all of these values had been seen: none of them is a held-out sample.
"""

from __future__ import annotations

import sys
import tempfile
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

FILE: Final = Path(__file__).parent / "golden" / "real_seeds.parquet"
EXAMPLE: Final = Path(__file__).parents[2] / "examples" / "sweep-marking.toml"
SEEDS: Final = 300
KEYS: Final = ("hosts", "load", "k", "seed")
FABRICS: Final[dict[int, dict[str, Any]]] = {32: {}, 64: {"topology.hosts_per_leaf": 16, "topology.spines": 4}}

Values = NDArray[np.float64]


@cache
def table() -> pl.DataFrame:
    """All values: a row for each run, a column for each metric."""
    return pl.read_parquet(FILE)


def names() -> list[str]:
    """The metrics, those left out that are the same in every run."""
    return [name for name in table().columns if name not in KEYS and table()[name].n_unique() > 1]


def points(hosts: int | None = None) -> list[tuple[int, float, str]]:
    """Hosts, load and K of the points."""
    rows = table().select("hosts", "load", "k").unique(maintain_order=True).rows()
    return [row for row in rows if hosts is None or row[0] == hosts]


def values(metric: str, hosts: int, load: float, k: str) -> Values:
    """A metric of one point by seed; not a number where a run had no such flows."""
    rows = table().filter((pl.col("hosts") == hosts) & (pl.col("load") == load) & (pl.col("k") == k)).sort("seed")
    return rows[metric].cast(pl.Float64).fill_null(float("nan")).to_numpy()


def varying(metric: str, hosts: int | None = None) -> Iterator[tuple[tuple[int, float, str], Values]]:
    """The points where a metric is not the same in all runs, with its values."""
    for point in points(hosts):
        found = values(metric, *point)
        found = found[np.isfinite(found)]
        if found.size and found.min() < found.max():
            yield point, found


def make() -> pl.DataFrame:
    """Run everything."""
    import fanin
    from fanin.statistics import metrics

    design = tomllib.loads(EXAMPLE.read_text())["sweep"]
    base = fanin.Scenario.from_file(EXAMPLE.parent / design["scenario"])
    frames = []
    for hosts, changes in FABRICS.items():
        grid = design["grid"]
        if changes:
            grid = {"switch.marking.k": ["20 packets", "65 packets"], "traffic[0].load": [0.45]}
        asked = {"grid": grid, "set": {**design["set"], **changes}, "seeds": SEEDS}
        with tempfile.TemporaryDirectory() as folder:
            sweep = fanin.sweep(base, Path(folder) / "sweep", design=asked, keep=True, jobs=1, progress=False)
            found = None
            for name in sweep.metric_names():
                if metrics.of(name) is None:
                    continue
                columns = sweep.values(name).select(
                    hosts=pl.lit(hosts, dtype=pl.UInt8),
                    load=pl.col("traffic[0].load"),
                    k=pl.col("switch.marking.k"),
                    seed=pl.col("seed").cast(pl.UInt16),
                    value=pl.col("value").cast(pl.Float32),
                )
                columns = columns.rename({"value": name})
                found = columns if found is None else found.join(columns, on=KEYS, how="full", coalesce=True)
            assert found is not None
            frames.append(found)
    return pl.concat(frames, how="diagonal").sort(KEYS)


if __name__ == "__main__":
    made = make()
    made.write_parquet(FILE, compression="zstd", compression_level=19)
    print(f"{FILE}: {made.height:,} runs, {made.width - len(KEYS)} metrics, {FILE.stat().st_size:,} bytes", file=sys.stderr)
