"""Uniform integers for one report: random from the system, or derived from a secret, so that the same answer gives the
same report."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field

import numpy as np

from discreet.trusted.ring_a.bits import SystemWords, Unsigned, Words

MOST = 1 << 53
"""Integers below this are exact in every language that a client may be written in."""

BLOCK = 32


@dataclass
class Remembered:
    """A pseudo-random stream: block i is HMAC-SHA256(secret, message ∥ "\\n" ∥ i), i = 0, 1, … in decimal digits.

    A message names the collection, the window and the value, so the same value gives the same report without anything
    being stored. Whoever lacks the 256-bit secret cannot tell the stream from uniform bits, if HMAC-SHA256 is a
    pseudo-random function (Bellare 2006); privacy towards the collector rests on that assumption here, and not on the
    system's generator alone. A stream is used for one report and thrown away.
    """

    secret: bytes
    message: bytes
    _ahead: bytearray = field(default_factory=bytearray)
    _blocks: int = 0

    def big(self, bits: int) -> int:
        """The next ⌈bits/8⌉ bytes as a little-endian integer, without its lowest bits beyond `bits`."""
        length = (bits + 7) // 8
        while len(self._ahead) < length:
            self._ahead += hmac.digest(self.secret, self.message + b"\n%d" % self._blocks, "sha256")
            self._blocks += 1
        taken = bytes(self._ahead[:length])
        del self._ahead[:length]
        return int.from_bytes(taken, "little") >> (8 * length - bits)

    def integers(self, bits: int, size: int) -> Unsigned:
        """`size` integers in [0, 2^bits), one after the other."""
        return np.array([self.big(bits) for _ in range(size)], np.uint64)


def below(words: Words, count: int) -> int:
    """A uniform integer in [0, count), 1 ≤ count ≤ 2^53: numbers of just enough bits are drawn until one is below.

    At most half of them are in vain. How many were says nothing about the one that is kept.
    """
    bits = (count - 1).bit_length()
    while (drawn := words.big(bits)) >= count:
        pass
    return drawn


def fresh() -> Words:
    """The operating system's generator."""
    return SystemWords()
