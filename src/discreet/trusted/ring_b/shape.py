"""Symmetric losses with a certificate: the part of a Gaussian budget that is proved to pay for them.

Each is given by its ε and by w, its measure √(dP dQ) over the loss.

* Randomised response (steps = 1) dominates every ε-DP release: atoms at ±ε.
* Continuous Laplace noise (steps = None): e^(−ε/2)·(half an atom at ±ε, density 1/4 between).
* Discrete Laplace noise, q = e^(−ε/steps): C·q^(steps/2)·(1/(1−q) at ±ε, 1 at the steps − 1 equally spaced losses
  between), C = (1−q)/(1+q).

One coordinate moved by all `steps` dominates every integer vector of that ℓ1 length. For shifts a and b with the same
q, both measures live on the same lattice. Between the ends, that of the two shifts together is C²·q^((a+b)/2) times
at least 2/(1−q), and that of one shift is C·q^((a+b)/2): since 2C/(1−q) = 2/(1+q) ≥ 1, the former is nowhere smaller.
At the ends it has C²/(1−q)² against C/(1−q), and C/(1−q) = 1/(1+q) < 1. So H_x(one) − H_x(two), as a function of x,
is concave between the ends and zero beyond them: nowhere negative. More coordinates follow one by one, and fewer
steps by doing nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import isqrt
from typing import Any

from discreet.trusted.ring_b.interval import Interval, exponential, point, tail

_EXACT = 4  # up to this many steps the inner losses are summed one by one
_SUMMED = 32  # up to this many, the weights of the inner losses
_MARGINS = (9, 7, 5, 3, 1)
_ROUNDS = 60


@dataclass(frozen=True)
class SymmetricLoss:
    """A symmetric loss bounded by `epsilon`, with `steps` lattice steps of sensitivity; None stands for no
    lattice."""

    epsilon: Fraction
    steps: int | None

    def __post_init__(self) -> None:
        if self.epsilon <= 0 or (self.steps is not None and self.steps < 1):
            raise ValueError("a symmetric loss needs epsilon > 0 and at least one step")

    def charge(self, root: Fraction) -> Fraction | None:
        """r² − s² for the largest s that is found to have f ⊗ G_s ≥ G_r, r = root; None where no s > 0 has.

        A lattice of two steps or more needs condition (b) of the theorem. Where it does not hold (s below about ε, or a
        large ε) the lattice is replaced by a shape that dominates it and satisfies (a), see `_spread`.
        """
        ways = (_spread,) if self.steps is None or self.steps == 1 else (_lattice, _spread)
        return next((found for way in ways if (found := self._charge(way, root)) is not None), None)

    def _charge(self, way: Callable[..., Any], root: Fraction) -> Fraction | None:
        guess = self._guess(way, float(root))
        if guess is None:
            return None
        fine = max(0, self.epsilon.denominator.bit_length() - self.epsilon.numerator.bit_length())
        bits = 96 + 2 * fine + int(root * root / 4)
        limit = tail(root / 2, bits)
        for margin in _MARGINS:
            square = root * root - Fraction(guess) * (1 + Fraction(1, 10**margin))
            if square <= 0:
                break
            left = Fraction(isqrt((square.numerator << (2 * bits)) // square.denominator), 1 << bits)
            if left and self._proved(way, left, limit, bits):
                return root * root - left * left
        return None

    def _proved(self, way: Callable[..., Any], left: Fraction, limit: Interval, bits: int) -> bool:
        if way is _lattice and not self._heavy_ends(left, bits):
            return False
        enclosure: Interval = way(
            self.epsilon,
            self.steps,
            left,
            partial(exponential, bits=bits),
            partial(tail, bits=bits),
            partial(point, bits=bits),
        )
        return limit.below(enclosure)

    def _heavy_ends(self, left: Fraction, bits: int) -> bool:
        """Condition (b): e^(−ε²/2s²)/(1−q) ≥ ½·Σ e^(−ℓ²/2s²), with 1 for each inner term where that suffices."""
        assert self.steps is not None

        def bell(loss: Fraction) -> Interval:
            return exponential(-((loss / left) ** 2) / 2, bits)

        ends = bell(self.epsilon) / (point(1, bits) - exponential(-self.epsilon / self.steps, bits))
        if point(Fraction(self.steps - 1, 2), bits).below(ends):
            return True
        if self.steps > _SUMMED:
            return False
        inner = point(0, bits)
        for k in range(1, self.steps):
            inner = inner + bell(self.epsilon * (self.steps - 2 * k) / self.steps)
        return (inner / point(2, bits)).below(ends)

    def _guess(self, way: Callable[..., Any], root: float) -> float | None:
        """The charge in floating point, where the overlap, which rises with the charge, reaches that of G_r."""
        epsilon, limit, square = float(self.epsilon), math.erfc(root / math.sqrt(8)), root * root

        def excess(cost: float) -> float:
            return float(way(epsilon, self.steps, math.sqrt(square - cost), math.exp, _tail, float)) - limit

        high = square * (1 - 1e-12)
        if 2 * epsilon * epsilon < high and excess(2 * epsilon * epsilon) >= 0:
            high = 2 * epsilon * epsilon
        low, below, above = 0.0, excess(0.0), excess(high)
        if below >= 0 or above < 0:
            return None
        for _ in range(_ROUNDS):  # regula falsi, the Illinois way
            if above == below:
                break
            middle = high - above * (high - low) / (above - below)
            here = excess(middle)
            if here * above <= 0:
                low, below = high, above
            else:
                below /= 2
            moved, high, above = abs(middle - high), middle, here
            if here == 0 or moved <= 1e-13 * middle:
                break
        return high


def _tail(x: float) -> float:
    return math.erfc(x / math.sqrt(2))


# The formulas below serve floats and intervals alike: `exp`, `tail` (P[|N(0,1)| ≥ x], continued to 2Φ(−x) for x < 0)
# and `number` come from the caller. They give the overlap, one less the total variation: a sum of small positive
# parts.


def _pair(y: Any, s: Any, exp: Any, tail: Any) -> Any:
    """The overlap of atoms with w-weight 1 at each of ±y with N(0, s²) on top: C(y) = 2·cosh(y/2) − A(y)."""
    return exp(y / 2) * tail(y / s + s / 2) + exp(-y / 2) * tail(s / 2 - y / s)


def _integral(y: Any, s: Any, exp: Any, tail: Any, number: Any) -> Any:
    """∫ C from 0 to y. From C″ = C/4 − (4/s)·e^(−s²/8)·φ(y/s) and C′(0) = 0."""
    ends = exp(y / 2) * tail(y / s + s / 2) - exp(-y / 2) * tail(s / 2 - y / s)
    return number(2) * ends + number(4) * exp(-s * s / 8) * (number(1) - tail(y / s))


def _spread(epsilon: Any, steps: int | None, s: Any, exp: Any, tail: Any, number: Any) -> Any:
    """Overlap of the shape with its inner losses spread evenly over (−ε, ε), their probability t unchanged.

    Exact for randomised response (t = 0) and continuous Laplace noise (t = (1 − e^(−ε))/2). For a lattice it
    dominates: the even density, cut into steps − 1 equal cells, tells more than its cells do; these are the inner
    losses moved outward by steps/(steps − 1), with the same w-weights up to a constant. A symmetric pair of atoms at
    ±y is randomised response of loss y, which tells more the larger y is, and moving outward also gives more of the
    probability, proportional to cosh(y/2), to the larger y.
    """
    if steps is None:
        return tail(epsilon / s + s / 2) + exp(-epsilon / 2 - s * s / 8) * (number(1) - tail(epsilon / s))
    one, growth = number(1), exp(epsilon)
    outer = exp(epsilon / 2) * _pair(epsilon, s, exp, tail) / (growth + one)
    if steps == 1:
        return outer
    q = exp(-epsilon / steps)
    inner_share = (q - exp(-epsilon)) / (one + q)
    inner = exp(epsilon / 2) * _integral(epsilon, s, exp, tail, number) / (number(2) * (growth - one))
    return (one - inner_share) * outer + inner_share * inner


def _lattice(epsilon: Any, steps: int, s: Any, exp: Any, tail: Any, number: Any) -> Any:
    """Overlap of the lattice shape, e^(−ε/2)/(1+q)·(C(ε) + (1−q)·½·Σ C over the inner losses), or a little less.

    Beyond a few steps each inner loss is spread over its own cell, half a distance h = ε/steps to either side, with
    even w-density of the same probability: the cell tells more than its mean. C(y) becomes (∫ C over the
    cell)/(4·sinh(h/2)), and (1−q)/(4·sinh(h/2)) = e^(−h/2)/2. Here only the total variation is bounded: condition (b)
    is on the lattice itself.
    """
    one, q = number(1), exp(-epsilon / steps)
    outer = _pair(epsilon, s, exp, tail)
    if steps > _EXACT:
        h = epsilon / steps
        inner = exp(-h / 2) / number(2) * _integral(epsilon - h, s, exp, tail, number)
        return exp(-epsilon / 2) / (one + q) * (outer + inner)
    inner = tail(s / 2) if steps % 2 == 0 else number(0)
    for k in range(1, (steps + 1) // 2):
        inner = inner + _pair(epsilon * (steps - 2 * k) / steps, s, exp, tail)
    return exp(-epsilon / 2) / (one + q) * (outer + (one - q) * inner)
