"""Detours as a block, python examples/cosim/detours.py fanin.sock: what finds no room leaves by a port to a switch that has some.

With k=BYTES among its settings packets for a longer queue are sent elsewhere, too.
"""

import sys

from fanin.cosim import ARRIVAL, DETOUR, PASS, WAY, Decide, Packet, Start, Way, serve


def detours(start: Start) -> Decide:
    start.only("k")
    k = start.setting("k", 1 << 62)

    def decide(packet: Packet) -> int | Way:
        if packet.moment == WAY:
            usable = [way for way in packet.ways if way.room and not way.to_host]
            return min(usable, key=lambda way: (way.queue_bytes, way.port), default=PASS)
        return DETOUR if packet.moment == ARRIVAL and packet.queue_bytes > k and not packet.control else PASS

    return decide


if __name__ == "__main__":
    serve(sys.argv[1], detours, name="detours in Python", version="1", runs=int(sys.argv[2]) if len(sys.argv) > 2 else None)
