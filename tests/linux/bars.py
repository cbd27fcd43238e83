"""What is reached today against the committed runs of the kernel, and may not be lost; the target is all of them."""

from __future__ import annotations

from campaign import Bar

__all__ = ["BARS"]

PORT = "the port: a static buffer in bytes is a bfifo"
RACK = "RACK-TLP, with timers at ticks: a lost retransmission or tail costs no timeout"
FLIGHTS = "slow start, quick ACKs and the receive window, segment by segment; HyStart ends where the kernel's does"
PUSH = "PSH after each half window: the same segments are acknowledged alone, so that clumps break up alike"
CHAOS = "as above; which packet meets a full buffer is chaotic, so one may be lost"
CREDIT = "all but one flow alone: the port's frame of credit shortens its train of ACKs"
WHOLE = "the port is always busy, and nobody waits for a timer"

BARS = (
    Bar("peak", "reno-*", 15, PORT),
    Bar("peak", "cubic-*", 16, PUSH),
    Bar("timeouts", "reno-*", 15, RACK),
    Bar("timeouts", "cubic-*", 16, RACK),
    Bar("drops", "reno-*", 14, CHAOS),
    Bar("drops", "cubic-*", 15, CHAOS),
    Bar("first", "reno-*", 15, FLIGHTS),
    Bar("first", "cubic-*", 15, CREDIT),
    Bar("early", "reno-*", 15, FLIGHTS),
    Bar("early", "cubic-*", 16, FLIGHTS),
    Bar("late", "reno-*", 15, RACK),
    Bar("late", "cubic-*", 16, PUSH),
    Bar("last", "reno-*", 15, WHOLE),
    Bar("last", "cubic-*", 16, WHOLE),
    Bar("mean", "reno-*", 14, CHAOS),
    Bar("mean", "cubic-*", 15, CHAOS),
)
