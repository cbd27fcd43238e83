"""S-ECN as a block of its own, in whole numbers: python examples/cosim/s_ecn.py fanin.sock."""

import sys

from fanin.cosim import ARRIVAL, DEPARTURE, MARK, PASS, Decide, Packet, Start, serve

LONGEST = (1 << 24) - 1


def s_ecn(start: Start) -> Decide:
    start.only("k", "credit", "clock_ps", "reset")
    k, credit, clock = start.setting("k", 1 << 32), start.setting("credit", 1538), start.setting("clock_ps", 8000)
    reset = start.setting("reset", 0)  # 1: a mark takes the whole sum
    rates = {port.number: (port.rate_bps * clock << 20) // 8_000_000_000_000 for port in start.ports.values()}
    last: dict[int, int] = {}
    sums, owed = dict.fromkeys(rates, 0), dict.fromkeys(rates, 0)

    def decide(packet: Packet) -> int:
        port, capable, slope = packet.port, packet.ecn != 0, False
        if packet.moment == ARRIVAL:
            now = packet.time_ps // clock
            sendable = rates[port] * min(now - last.get(port, -LONGEST), LONGEST)
            growth = (packet.frame + start.ports[port].overhead << 20) - sendable
            sums[port] = max(sums[port] + growth, -credit << 20)
            last[port] = now
            slope = growth > 0 and sums[port] > sendable
            if slope:
                rest = 0 if reset else min(sums[port] - sendable, sendable)
                sums[port] = rest if capable else sendable
        if start.departures:  # marks are given to packets that leave
            if packet.moment == ARRIVAL:
                owed[port] += slope and capable
                return PASS
            slope = packet.moment == DEPARTURE and capable and owed[port] > 0
            owed[port] -= slope
        return MARK if capable and (slope or packet.queue_bytes >= k) else PASS

    return decide


serve(sys.argv[1], s_ecn, name="s-ecn in Python", version="1", runs=int(sys.argv[2]) if len(sys.argv) > 2 else None)
