"""Poisson sampling and random partition of privacy units; data-independent.

They are drawn afresh and independently for each person, so that the choices for all others are distributed in the same
way whether one person is there or not: two neighbouring tables can be thought of as drawing the same for all others.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.trusted.ring_a.bits import SystemWords, Words

_BITS = 63


@dataclass(frozen=True)
class PoissonSample:
    """Each person takes part with probability ⌊rate·2^63⌋/2^63, independently: random bits against an integer.

    That is at most `rate`, and a smaller rate never costs more: a step at a smaller rate is a mixture of a step at
    `rate` and one in which the person has no part, and the privacy loss is joint-convex in the pair of distributions.
    """

    rate: Fraction

    def __post_init__(self) -> None:
        if not isinstance(self.rate, Fraction) or not 0 < self.rate <= 1:
            raise ValueError("the sampling rate must be a Fraction above 0 and at most 1")

    def release(self, persons: int, words: Words | None = None) -> NDArray[np.bool_]:
        """For each person, whether it takes part."""
        source = words or SystemWords()
        drawn = source.integers(_BITS, persons).astype(np.int64)
        taken: NDArray[np.bool_] = drawn <= np.int64(int(self.rate * (1 << _BITS)) - 1)
        return taken


@dataclass(frozen=True)
class RandomBlocks:
    """A block for each person, independently and as good as uniformly: ⌊U·blocks/2^48⌋ for U uniform of 48 bits.

    A block's probability is within 2^−48 of 1/blocks; privacy does not rest on that, only on independence.
    """

    blocks: int

    def __post_init__(self) -> None:
        if not 0 < self.blocks < 1 << 15:
            raise ValueError("at least one block and fewer than 2^15")

    def release(self, persons: int, words: Words | None = None) -> NDArray[np.int64]:
        """For each person, the number of its block, from 0 on."""
        source = words or SystemWords()
        drawn: NDArray[np.int64] = source.integers(48, persons).astype(np.int64)
        return drawn * self.blocks >> 48
