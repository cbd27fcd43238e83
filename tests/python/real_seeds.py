"""Values of real runs by metric and seed, which the statistics are tested on: what they are, and how they are made anew.

    python tests/python/real_seeds.py chosen     # 4,800 simulations, some minutes; writes golden/real_seeds.parquet
    python tests/python/real_seeds.py shown      # 2,400 others; writes golden/real_seeds_shown.parquet
    python tests/python/real_seeds.py elsewhere  # 2,100 unlike both; writes golden/real_seeds_elsewhere.parquet

Methods and limits were chosen on the first file: points of examples/sweep-marking.toml, and two of them on a fabric of 64 hosts,
with 600 seeds each. The page shows what is measured on the second: networks of 40 and 48 hosts, with loads and thresholds
that the first has not, and 300 seeds each. The third is of runs that are not like them: timeouts of 200 ms, CUBIC without marking,
eight hosts with few flows, the demo for 30 ms, one spine; no number of seeds was chosen there, and what the package says instead is
tried on them.
"""

from __future__ import annotations

import sys
import tempfile
import tomllib
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

GOLDEN: Final = Path(__file__).parent / "golden"
EXAMPLE: Final = Path(__file__).parents[2] / "examples" / "sweep-marking.toml"
KEYS: Final = ("hosts", "load", "k", "seed")

Part = Literal["chosen", "shown"]
"""What was chosen on, and what is shown."""

FILES: Final[dict[Part, Path]] = {"chosen": GOLDEN / "real_seeds.parquet", "shown": GOLDEN / "real_seeds_shown.parquet"}
SEEDS: Final[dict[Part, tuple[int, int]]] = {"chosen": (1, 600), "shown": (301, 600)}
"""The first seed and the last."""

Values = NDArray[np.float64]
Point = tuple[int, float, str]
"""Hosts, load and K."""


class Fabric(NamedTuple):
    """A network: what is set otherwise than in the example, and its grid where that is another."""

    hosts: int
    changes: dict[str, Any]
    grid: dict[str, Any] | None = None


EXAMPLES: Final = Fabric(32, {})
LARGER: Final = Fabric(
    64,
    {"topology.hosts_per_leaf": 16, "topology.spines": 4},
    {"switch.marking.k": ["20 packets", "65 packets"], "traffic[0].load": [0.45]},
)
NEW: Final = (
    Fabric(
        48,
        {"topology.hosts_per_leaf": 12, "topology.spines": 3},
        {"switch.marking.k": ["40 packets", "100 packets"], "traffic[0].load": [0.3, 0.6]},
    ),
    Fabric(
        40,
        {"topology.hosts_per_leaf": 10},
        {"switch.marking.k": ["30 packets", "80 packets"], "traffic[0].load": [0.25, 0.5]},
    ),
)
ELSEWHERE: Final[dict[str, dict[str, Any]]] = {
    "timeouts of 200 ms, K = 20": {"transport.rto_min": "200ms", "switch.marking.k": "20 packets"},
    "timeouts of 200 ms, K = 65": {"transport.rto_min": "200ms", "switch.marking.k": "65 packets"},
    "CUBIC without marking": {"transport.congestion_control": "cubic", "switch.marking": {"kind": "none"}},
    "8 hosts, few flows": {
        "topology.leaves": 2,
        "topology.hosts_per_leaf": 4,
        "traffic[0].stop": "2ms",
        "traffic[1].stop": "2ms",
        "traffic[1].fanout": 4,
        "switch.marking.k": "200 packets",
    },
    "the demo for 30 ms": {"traffic[0].stop": "30ms", "traffic[1].stop": "30ms"},
    "1 spine, oversubscribed twice, K = 65": {"topology.spines": 1},
    "1 spine, oversubscribed twice, K = 200": {"topology.spines": 1, "switch.marking.k": "200 packets"},
}
"""Runs unlike those that limits were chosen on: what is set otherwise than in the example."""

ELSEWHERE_FILE: Final = GOLDEN / "real_seeds_elsewhere.parquet"

FABRICS: Final[dict[Part, tuple[Fabric, ...]]] = {"chosen": (EXAMPLES, LARGER), "shown": NEW}


@cache
def table(part: Part) -> pl.DataFrame:
    """All values: a row for each run, a column for each metric."""
    return pl.read_parquet(FILES[part])


def names() -> list[str]:
    """The metrics whose means are taken, those left out that are the same in every run."""
    first = table("chosen")
    return [name for name in first.columns if name not in (*KEYS, "total.timed_out") and first[name].n_unique() > 1]


def points(part: Part, hosts: int | None = None) -> list[Point]:
    """Hosts, load and K of the points."""
    rows = table(part).select("hosts", "load", "k").unique(maintain_order=True).rows()
    return [row for row in rows if hosts is None or row[0] == hosts]


def values(part: Part, metric: str, hosts: int, load: float, k: str) -> Values:
    """A metric of one point by seed; not a number where a run had no such flows."""
    rows = table(part).filter((pl.col("hosts") == hosts) & (pl.col("load") == load) & (pl.col("k") == k)).sort("seed")
    return rows[metric].cast(pl.Float64).fill_null(float("nan")).to_numpy()


def varying(part: Part, metric: str) -> Iterator[tuple[Point, Values]]:
    """The points where a metric is not the same in all runs, with its values."""
    for point in points(part):
        found = values(part, metric, *point)
        found = found[np.isfinite(found)]
        if found.size and found.min() < found.max():
            yield point, found


def pairs(part: Part, metric: str) -> Iterator[tuple[Point, Values]]:
    """Points that differ in K alone, the next larger K of each, where both have the metric in all runs: two rows of values."""
    of_load: dict[tuple[int, float], list[str]] = {}
    for hosts, load, k in points(part):
        of_load.setdefault((hosts, load), []).append(k)
    for (hosts, load), listed in of_load.items():
        by_size = sorted(listed, key=lambda k: int(k.split()[0]))
        for short, long in pairwise(by_size):
            both = np.array([values(part, metric, hosts, load, k) for k in (short, long)])
            if np.isfinite(both).all() and np.ptp(both[1] - both[0]) > 0:
                yield (hosts, load, f"{short} and {long}"), both


@cache
def elsewhere() -> pl.DataFrame:
    """All values of runs unlike those that limits were chosen on: a row for each run, with `what`, and a column for each metric."""
    return pl.read_parquet(ELSEWHERE_FILE)


def scenario_elsewhere(what: str) -> Any:
    """The scenario of these runs."""
    import fanin

    design = tomllib.loads(EXAMPLE.read_text())["sweep"]
    base = fanin.Scenario.from_file(EXAMPLE.parent / design["scenario"])
    return base.replace({**design["set"], **ELSEWHERE[what]})


def make_elsewhere() -> pl.DataFrame:
    """Run everything of that kind."""
    import fanin
    from fanin.statistics import metrics

    frames = []
    for what in ELSEWHERE:
        with tempfile.TemporaryDirectory() as folder:
            design = {"seeds": {"from": 1, "count": 300}}
            sweep = fanin.sweep(scenario_elsewhere(what), Path(folder) / "sweep", design=design, jobs=1, progress=False)
            found = sweep.runs.select(pl.lit(what).alias("what"), pl.col("seed").cast(pl.UInt16))
            for name in sweep.metric_names():
                if metrics.of(name) is not None and not name.startswith("fct/1") and not name.startswith("fct/<"):
                    own = sweep.values(name).select(pl.col("seed").cast(pl.UInt16), pl.col("value").cast(pl.Float32).alias(name))
                    found = found.join(own, on="seed", how="left")
            frames.append(found)
    return pl.concat(frames, how="diagonal").sort("what", "seed")


def make(part: Part) -> pl.DataFrame:
    """Run everything."""
    import fanin
    from fanin.statistics import metrics

    design = tomllib.loads(EXAMPLE.read_text())["sweep"]
    base = fanin.Scenario.from_file(EXAMPLE.parent / design["scenario"])
    first, last = SEEDS[part]
    seeds = {"from": first, "count": last - first + 1}
    frames = []
    for fabric in FABRICS[part]:
        asked = {"grid": fabric.grid or design["grid"], "set": {**design["set"], **fabric.changes}, "seeds": seeds}
        with tempfile.TemporaryDirectory() as folder:
            sweep = fanin.sweep(base, Path(folder) / "sweep", design=asked, keep=True, jobs=1, progress=False)
            found = None
            for name in sweep.metric_names():
                if metrics.of(name) is None and "p95" not in name:  # percentiles that summaries have, and no comparison
                    continue
                columns = sweep.values(name).select(
                    hosts=pl.lit(fabric.hosts, dtype=pl.UInt8),
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
    if "elsewhere" in sys.argv[1:]:
        make_elsewhere().write_parquet(ELSEWHERE_FILE, compression="zstd", compression_level=19)
    wanted = {name: file for name, file in FILES.items() if name in sys.argv[1:]}
    for part, file in wanted.items():
        made = make(part)
        made.write_parquet(file, compression="zstd", compression_level=19)
        print(f"{file}: {made.height:,} runs, {made.width - len(KEYS)} metrics, {file.stat().st_size:,} bytes", file=sys.stderr)
