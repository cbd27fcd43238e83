"""Small figures for tests of `fanin.reproduce`: importable by its worker processes."""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

import fanin
from fanin.reproduce import Context, Figure, Findings, Job, Row

TINY: dict[str, Any] = {
    "name": "tiny",
    "topology": {"kind": "single_switch", "hosts": 4},
    "traffic": [{"kind": "incast", "receiver": "h0", "size": "30KB", "jitter": "100us"}],
    "telemetry": {"queues": ["switch0->h0"]},
}


def peak(result: fanin.Result, job: Job, *, wait_s: float = 0.0) -> tuple[int, int, str, int]:
    time.sleep(wait_s / job.seed)  # the first ones end last
    largest = result.queues["queue_bytes"].max()
    assert isinstance(largest, int)
    return job.seed, largest, str(result.path), pl.thread_pool_size()


def peaks(result: fanin.Result, job: Job) -> list[int]:
    return [peak(result, job)[1]]


def fails_at(result: fanin.Result, job: Job, *, seed: int) -> int:
    if job.seed == seed:
        raise LookupError("no burst was found")
    time.sleep(0.05)
    return job.seed


def dies_at(result: fanin.Result, job: Job, *, seed: int) -> int:
    """As a process that runs out of memory does."""
    if job.seed == seed:
        os._exit(9)
    return job.seed


def waits(result: fanin.Result, job: Job) -> int:
    print("reduced", flush=True)
    time.sleep(0.2)
    return job.seed


def order(context: Context) -> Findings:
    from plotly.graph_objects import Figure as Plot

    found = context.runs(context.each_seed(fanin.Scenario(TINY), kind="a"), partial(peak, wait_s=0.3))
    assert not any(Path(folder).exists() for _, _, folder, *_ in found), "result folders are removed"
    frame = pl.DataFrame({"seed": [seed for seed, *_ in found], "peak_bytes": [largest for _, largest, *_ in found]})
    plot = Plot()
    plot.add_scatter(x=frame["seed"], y=frame["peak_bytes"], name="peak")
    mean = sum(largest for _, largest, *_ in found) / len(found)
    threads = [number for *_, number in found]
    rows = [
        Row(name="threads that reduce", paper=None, fanin=float(max(threads)), low=1, high=1),
        Row(name="seeds in order", paper=1, fanin=float([seed for seed, *_ in found] == list(context.seeds)), low=1, high=1),
        Row(name="mean peak", paper="some", fanin=mean, low=1, unit="B"),
        Row(name="peak of a paper", paper=1e9, fanin=mean, low=1e9, high=1e10, unit="B", note="the paper has another network"),
    ]
    return Findings(rows=rows, plots={"order": plot}, data={"peaks": frame})


def off(context: Context) -> Findings:
    return Findings(rows=[Row(name="seeds", paper=7, fanin=float(len(context.seeds)), low=7, high=7)])


def fine(context: Context) -> Findings:
    return Findings(rows=[Row(name="seeds", paper=None, fanin=float(len(context.seeds)), low=1)])


def broken(context: Context) -> Findings:
    context.runs(context.each_seed(fanin.Scenario(TINY), load=0.5), partial(fails_at, seed=2))
    raise AssertionError("the run of seed 2 fails")


def endless(context: Context) -> Findings:
    big = fanin.Scenario(TINY).replace({"traffic[0].size": "20GB"})
    context.runs(context.each_seed(big), waits)
    raise AssertionError("nobody waits that long")


def killed(context: Context) -> Findings:
    context.runs(context.each_seed(fanin.Scenario(TINY)), partial(dies_at, seed=2))
    raise AssertionError("the worker of seed 2 dies")


RUNS = {"killed": killed, "order": order, "off": off, "fine": fine, "broken": broken, "endless": endless}


def figure(name: str) -> Figure:
    return Figure(id=f"test/{name}", title=f"The {name} figure", run=RUNS[name], seeds=4, short=2, seconds=1.5)
