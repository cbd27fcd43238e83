"""S-ECN's marker as a block of Fanin's co-simulation (docs/cosimulation.md): every packet of a simulated port crosses the RTL."""

from __future__ import annotations

import os
from typing import Any

import cocotb
from cocotb.triggers import Timer

from fanin.cosim import ARRIVAL, DEPARTURE, MARK, PASS, Connection, Listener, Packet

LATENCY = 6


class Marker:
    """The block, clock by clock; its clock stands still between packets, and the counter `now` says when they are."""

    def __init__(self, dut: Any, run: Connection) -> None:
        if len(run.start.ports) != 1:
            raise ValueError(f"{len(run.start.ports)} ports: this bench has one; give its marking by switch.except")
        (self.port,) = run.start.ports.values()
        self.dut, self.start = dut, run.start
        run.start.only("k", "credit", "clock_ps", "reset")
        self.clock_ps = run.start.setting("clock_ps", 8000)

    async def tick(self) -> None:
        await Timer(4, "ns")
        self.dut.clk.value = 1
        await Timer(4, "ns")
        self.dut.clk.value = 0

    async def reset(self) -> None:
        dut, start = self.dut, self.start
        for name in (
            "clk",
            "in_valid",
            "dep_valid",
            "in_port",
            "dep_port",
            "in_length",
            "in_ect",
            "dep_ect",
            "in_queue",
            "dep_queue",
        ):
            getattr(dut, name).value = 0
        dut.now.value = 0
        dut.rate.value = (self.port.rate_bps * self.clock_ps << 20) // 8_000_000_000_000
        dut.k.value = min(start.setting("k", 2**32 - 1), 2**32 - 1)
        dut.credit.value = start.setting("credit", 1538)
        dut.reset_sum.value = int(start.setting("reset", 0) != 0)
        dut.at_dequeue.value = int(start.departures)
        dut.rst.value = 1
        await self.tick()
        dut.rst.value = 0

    async def decide(self, packet: Packet) -> int:
        if packet.moment not in (ARRIVAL, DEPARTURE):
            return PASS
        side = "in" if packet.moment == ARRIVAL else "dep"
        dut = self.dut
        dut.now.value = packet.time_ps // self.clock_ps
        dut.in_length.value = packet.frame + self.port.overhead
        getattr(dut, f"{side}_ect").value = int(packet.ecn != 0)
        getattr(dut, f"{side}_queue").value = packet.queue_bytes
        getattr(dut, f"{side}_valid").value = 1
        await self.tick()
        getattr(dut, f"{side}_valid").value = 0
        valid = dut.out_valid if packet.moment == ARRIVAL else dut.dep_out_valid
        for _ in range(LATENCY + 1):
            await Timer(1, "step")
            if int(valid.value):
                mark = dut.out_mark if packet.moment == ARRIVAL else dut.dep_out_mark
                return MARK if int(mark.value) else PASS
            await self.tick()
        raise AssertionError(f"no decision {LATENCY} clocks after packet {packet.number}")


@cocotb.test
async def a_simulated_run_is_decided_by_the_rtl(dut: Any) -> None:
    with Listener(os.environ["FANIN_SOCKET"], "s-ecn in RTL", "1") as listener:
        print("ready", flush=True)
        with listener.accept() as run:
            marker = Marker(dut, run)
            await marker.reset()
            for packet in run:
                run.answer(await marker.decide(packet))
