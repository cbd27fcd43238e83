"""Parts that the benches share: a clock, a reset, and one set of inputs for each clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge

Inputs = dict[str, int]


async def start(dut: Any, settings: Inputs, idle: Inputs) -> None:
    """Start the clock, and reset with these settings and inputs."""
    cocotb.start_soon(Clock(dut.clk, 8, unit="ns").start())
    await reset(dut, settings, idle)


async def reset(dut: Any, settings: Inputs, idle: Inputs) -> None:
    """Reset for two clocks."""
    await FallingEdge(dut.clk)
    dut.rst.value = 1
    give(dut, settings | idle)
    for _ in range(2):
        await RisingEdge(dut.clk)
    await FallingEdge(dut.clk)
    dut.rst.value = 0


def give(dut: Any, inputs: Inputs) -> None:
    """Set inputs."""
    for name, value in inputs.items():
        getattr(dut, name).value = value


def value(dut: Any, name: str) -> int:
    """An output as the number that it is."""
    return int(getattr(dut, name).value)


async def run(dut: Any, clocks: Iterable[Inputs], latency: int, valid: str | None, names: list[str]) -> list[Inputs]:
    """Give inputs, one set in each clock; returns the outputs of all clocks in which `valid` is 1, or of all."""
    found = []

    def look() -> None:
        if valid is None or value(dut, valid):
            found.append({name: value(dut, name) for name in names})

    given: Iterator[Inputs] = iter(clocks)
    last: Inputs = {}
    for inputs in given:
        give(dut, {name: new for name, new in inputs.items() if last.get(name) != new})
        last = inputs
        await FallingEdge(dut.clk)
        look()
    give(dut, {name: 0 for name in last if name.endswith("valid")})
    for _ in range(latency):
        await FallingEdge(dut.clk)
        look()
    return found
