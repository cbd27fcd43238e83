"""Internet checksums over whole packets (RFC 1071), to hold updates of RFC 1624 against."""

from __future__ import annotations

import random


def checksum(words: list[int]) -> int:
    """The checksum of words, that field taken as zero."""
    total = sum(words)
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def with_checksum(rng: random.Random, words: list[int], wanted: int) -> list[int]:
    """The same words and one more, so that their checksum is `wanted`; not 0xFFFF, which only zeroes have."""
    assert wanted != 0xFFFF
    # The word that is missing in one's complement: sum + x = ~wanted.
    missing = ((~wanted & 0xFFFF) - (~checksum(words) & 0xFFFF)) % 0xFFFF
    made = [*words, missing or rng.choice([0, 0xFFFF])]
    assert checksum(made) == wanted, (words, wanted)
    return made
