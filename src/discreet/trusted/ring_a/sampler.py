"""What a width may be, and drawing in blocks, shared by all samplers."""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol

import numpy as np

from discreet.trusted.ring_a.bits import SystemWords, Words
from discreet.trusted.ring_a.exact import Number, fraction
from discreet.trusted.ring_a.inversion import Whole

LARGEST = 10**60
BLOCK = 1 << 16  # cells at a time: the arrays of one block stay in the processor's cache


class Sampler(Protocol):
    """A distribution made ready for drawing."""

    @property
    def wide(self) -> bool:
        """Whether values may leave the 64-bit integers."""

    def draw(self, words: Words, size: int) -> Whole:
        """`size` independent values, of type int64, or Python integers where `wide`."""


def positive(value: Number, name: str) -> Fraction:
    """The width of a distribution, as written. Raises ValueError unless 0 < width ≤ 10^60."""
    try:
        width = fraction(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be a finite number") from error
    if not 0 < width <= LARGEST:
        raise ValueError(f"{name} must be above 0 and at most 10^60")
    return width


def sample(sampler: Sampler, size: int, words: Words | None = None) -> Whole:
    """So many independent values. Raises ValueError on a negative size."""
    source = SystemWords() if words is None else words
    values: Whole = np.empty(size, object if sampler.wide else np.int64)
    for start in range(0, size, BLOCK):
        stop = min(start + BLOCK, size)
        values[start:stop] = sampler.draw(source, stop - start)
    return values
