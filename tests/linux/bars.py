"""What is reached today and may not be lost."""

from __future__ import annotations

from campaign import Bar

__all__ = ["BARS"]

BARS: tuple[Bar, ...] = (Bar("peak", "*", 28, "the port: bfifo's buffer is full at the same byte"),)
