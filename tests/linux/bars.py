"""What is reached today against the committed runs of the kernel, and may not be lost; the target is all of them."""

from __future__ import annotations

from campaign import Bar

__all__ = ["BARS"]

PORT = "the port: a static buffer in bytes is a bfifo"
RACK = "RACK-TLP: a lost retransmission or tail costs no timeout"
HYSTART = "HyStart ends slow start where the kernel's does, but for a few segments"
WINDOW = "slow start, ACKs and the receive window; quick ACKs are one off, so a flight's last segment waits"
WHOLE = "the port is always busy, and nobody waits for a timer"

BARS = (
    Bar("peak", "reno-*", 15, PORT),
    Bar("peak", "cubic-*", 14, HYSTART),
    Bar("timeouts", "reno-*", 15, RACK),
    Bar("timeouts", "cubic-*", 16, RACK),
    Bar("drops", "reno-*", 11, WINDOW),
    Bar("drops", "cubic-*", 11, HYSTART),
    Bar("first", "reno-*", 9, WINDOW),
    Bar("first", "cubic-*", 11, HYSTART),
    Bar("early", "reno-*", 8, WINDOW),
    Bar("early", "cubic-*", 13, HYSTART),
    Bar("late", "reno-*", 15, RACK),
    Bar("late", "cubic-*", 14, HYSTART),
    Bar("last", "reno-*", 15, WHOLE),
    Bar("last", "cubic-*", 16, WHOLE),
    Bar("mean", "reno-*", 14, WHOLE),
    Bar("mean", "cubic-*", 14, WHOLE),
)
