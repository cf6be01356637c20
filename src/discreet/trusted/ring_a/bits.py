"""The only source of randomness: uniform integers from the operating system."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Unsigned = NDArray[np.unsignedinteger[Any]]


class Words(Protocol):
    """A source of independent uniform integers. Samplers take one, so tests can enumerate all bit strings."""

    def integers(self, bits: int, size: int) -> Unsigned:
        """`size` integers in [0, 2^bits), bits ≤ 64, of type uint16 up to 16 bits and uint64 above."""

    def big(self, bits: int) -> int:
        """One integer in [0, 2^bits), for any number of bits."""


@dataclass(frozen=True)
class SystemWords:
    """The operating system's generator, asked afresh for every draw.

    There is no state and no buffer: a forked child cannot repeat its parent's noise, and no word lies in
    memory before it is needed. The samplers ask for a block of cells at a time, so no request is larger than
    a few hundred kilobytes.
    """

    def integers(self, bits: int, size: int) -> Unsigned:
        """`size` integers in [0, 2^bits): the top bits of uint16 up to 16 bits, of uint64 above. Raises ValueError
        unless 0 ≤ bits ≤ 64."""
        if not 0 <= bits <= 64:
            raise ValueError("a word has 0 to 64 bits")
        kind: type[np.unsignedinteger[Any]] = np.uint16 if bits <= 16 else np.uint64
        if bits == 0:
            return np.zeros(size, kind)
        width = np.dtype(kind).itemsize
        drawn: Unsigned = np.frombuffer(os.urandom(width * size), kind)
        return drawn if bits == 8 * width else drawn >> kind(8 * width - bits)

    def big(self, bits: int) -> int:
        """One integer in [0, 2^bits): the top bits of as few bytes as hold them."""
        length = (bits + 7) // 8
        return int.from_bytes(os.urandom(length), "little") >> (8 * length - bits)


def whole(words: Words, bits: int, size: int) -> NDArray[np.int64] | NDArray[np.object_]:
    """`size` uniform integers in [0, 2^bits): int64 up to 63 bits, Python integers above."""
    if bits <= 63:
        return words.integers(bits, size).astype(np.int64)
    high: Any = whole(words, bits - 63, size).astype(object)
    wide: NDArray[np.object_] = (high << 63) | words.integers(63, size).astype(object)
    return wide
