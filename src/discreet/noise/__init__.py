"""Integer noise from the operating system's randomness, drawn exactly: floating point decides nothing."""

from __future__ import annotations

from math import prod
from operator import index

from discreet.trusted.ring_a import gaussian, laplace
from discreet.trusted.ring_a.exact import Number
from discreet.trusted.ring_a.inversion import Whole

__all__ = ["discrete_laplace", "rounded_gaussian"]


def discrete_laplace(scale: Number, size: int | tuple[int, ...]) -> Whole:
    """Independent values with P(X = x) ∝ e^(−|x|/scale): `trusted.ring_a.laplace`, in an array of the shape asked for.

    Raises ValueError on a size that is no shape, and unless 0 < scale ≤ 10^60.
    """
    shape = _shape(size)
    return laplace.discrete_laplace(scale, prod(shape)).reshape(shape)


def rounded_gaussian(sigma: Number, size: int | tuple[int, ...]) -> Whole:
    """Independent values of N(0, sigma²) rounded: `trusted.ring_a.gaussian`, in an array of the shape asked for.

    Raises ValueError on a size that is no shape, and unless 0 < sigma ≤ 10^60.
    """
    shape = _shape(size)
    return gaussian.rounded_gaussian(sigma, prod(shape)).reshape(shape)


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
