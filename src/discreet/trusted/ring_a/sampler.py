"""Argument checks, batching and output shape, shared by all samplers."""

from __future__ import annotations

from fractions import Fraction
from math import prod
from operator import index
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


def sample(sampler: Sampler, size: int | tuple[int, ...], words: Words | None = None) -> Whole:
    """An array of the shape asked for. Raises ValueError on a size that is no shape."""
    shape = _shape(size)
    source = SystemWords() if words is None else words
    cells = prod(shape)
    values: Whole = np.empty(cells, object if sampler.wide else np.int64)
    for start in range(0, cells, BLOCK):
        stop = min(start + BLOCK, cells)
        values[start:stop] = sampler.draw(source, stop - start)
    return values.reshape(shape)


def _shape(size: int | tuple[int, ...]) -> tuple[int, ...]:
    parts = size if isinstance(size, tuple) else (size,)
    try:
        shape = tuple(index(part) for part in parts)
    except TypeError as error:
        raise ValueError("size must be an integer or a tuple of integers") from error
    if any(isinstance(part, bool) for part in parts):
        raise ValueError("size must be an integer or a tuple of integers")
    if any(part < 0 for part in shape):
        raise ValueError("size must not be negative")
    return shape
