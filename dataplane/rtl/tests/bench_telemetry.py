"""The telemetry stamper: length and time of docs/telemetry.md, checksums held against those of the whole packet."""

from __future__ import annotations

import os
import random
from typing import Any

import cocotb
from bench import reset, run, start
from internet import checksum, with_checksum

TICK = int(os.environ["TICK"])
PORT = 7
IDLE = {"in_valid": 0, "in_port": PORT, "in_queue": 0, "in_covered": 0, "in_udp": 0, "in_old": 0, "in_checksum": 0}
NAMES = ["out_stamp", "out_checksum"]
LATENCY = 2


def words(stamp: int) -> list[int]:
    return [stamp >> shift & 0xFFFF for shift in (48, 32, 16, 0)]


def stamp(queue: int, clock: int, port: int = PORT) -> int:
    return 0xFA << 56 | port << 48 | min(queue // 8, 65_535) << 32 | clock // TICK % 2**32


async def compare(dut: Any, packets: list[dict[str, int] | None], others: list[list[int]], first_clock: int = 0) -> list[int]:
    """Packets in successive clocks, None: no packet; `others` are the words of each beside the stamp. Returns checksums."""
    inputs = [{**IDLE, "in_valid": 1, **p} if p else {"in_valid": 0} for p in packets]
    found = await run(dut, inputs, LATENCY, "out_valid", NAMES)
    given = [(clock, p) for clock, p in enumerate(packets) if p]
    assert len(found) == len(given) == len(others)
    for got, (clock, p), rest in zip(found, given, others, strict=True):
        wanted = stamp(p["in_queue"], first_clock + clock, p.get("in_port", PORT))
        assert got["out_stamp"] == wanted, (clock, p)
        expected = checksum([*rest, *words(wanted)]) if p.get("in_covered") else p["in_checksum"]
        if p.get("in_covered") and p.get("in_udp"):
            expected = 0 if p["in_checksum"] == 0 else expected or 0xFFFF
        assert got["out_checksum"] == expected, (clock, p, rest)
    return [got["out_checksum"] for got in found]


@cocotb.test()
async def lengths_round_down_and_saturate(dut: Any) -> None:
    await start(dut, {}, IDLE)
    queues = [0, 7, 8, 15, 16, 1518, 524_279, 524_280, 524_287, 524_288, 1 << 24, (1 << 32) - 1]
    assert [min(q // 8, 65_535) for q in queues][6:10] == [65_534, 65_535, 65_535, 65_535]
    await compare(dut, [{"in_queue": q, "in_checksum": q & 0xFFFF} for q in queues], [[] for _ in queues])


@cocotb.test()
async def time_counts_ticks_and_starts_again(dut: Any) -> None:
    await start(dut, {}, IDLE)
    packets: list[dict[str, int] | None] = [{"in_queue": 64, "in_checksum": 1} for _ in range(5 * TICK + 3)]
    await compare(dut, packets, [[] for _ in packets])
    await reset(dut, {}, IDLE)
    dut.ticks.value = 2**32 - 2
    await compare(dut, packets, [[] for _ in packets], (2**32 - 2) * TICK)


@cocotb.test()
async def checksums_of_zero_and_one(dut: Any) -> None:
    """Each checksum before beside each after, 0x0000, 0x0001, 0xFFFE and others, of TCP and UDP."""
    rng = random.Random(1624)
    await start(dut, {}, IDLE)
    edges = [0x0000, 0x0001, 0x7FFF, 0x8000, 0xFFFE]
    for udp in (0, 1):
        met = set()
        for was in edges:
            for becomes in edges:
                await reset(dut, {}, IDLE)
                queue = rng.randrange(1 << 20)
                # Words beside the stamp that give `becomes` with the new stamp; old bytes that give `was` with them.
                rest = with_checksum(rng, [rng.randrange(65_536) for _ in range(20)] + words(stamp(queue, 0)), becomes)
                rest = rest[:20] + rest[-1:]
                old = with_checksum(rng, rest + [rng.randrange(65_536) for _ in range(3)], was)[-4:]
                assert checksum(rest + old) == was
                packed = old[0] << 48 | old[1] << 32 | old[2] << 16 | old[3]
                sent = 0xFFFF if udp and was == 0 else was  # as a sender of UDP writes it
                given = {"in_queue": queue, "in_covered": 1, "in_udp": udp, "in_old": packed, "in_checksum": sent}
                met.add(((await compare(dut, [given], [rest])) or [-1])[0])
        assert met == {0xFFFF if udp and edge == 0 else edge for edge in edges}
    await reset(dut, {}, IDLE)
    none = {"in_queue": 9, "in_covered": 1, "in_udp": 1, "in_old": 5, "in_checksum": 0}
    assert await compare(dut, [none], [[1, 2, 3]]) == [0], "UDP without a checksum stays without"


@cocotb.test()
async def random_packets_in_each_clock(dut: Any) -> None:
    rng = random.Random(35)
    await start(dut, {}, IDLE)
    packets: list[dict[str, int] | None] = []
    others = []
    for _ in range(1_500):
        if rng.randrange(5) == 0:
            packets.append(None)
            continue
        rest = [rng.choice([0, 0xFFFF, rng.randrange(65_536)]) for _ in range(rng.randrange(1, 30))] + [1]
        old = [rng.choice([0, 0xFFFF, rng.randrange(65_536)]) for _ in range(4)]
        covered, udp = rng.randrange(2), rng.randrange(2)
        was = checksum(rest + old)
        packed = old[0] << 48 | old[1] << 32 | old[2] << 16 | old[3]
        given = {"in_queue": rng.choice([rng.randrange(2_000), rng.randrange(1 << 20)]), "in_covered": covered, "in_udp": udp}
        packets.append(given | {"in_port": rng.randrange(255), "in_old": packed, "in_checksum": was or 0xFFFF if udp else was})
        others.append(rest)
    assert len(set(await compare(dut, packets, others))) > 1_000
