"""The distribution of a sum of independent losses, by fast Fourier transform, with every error bounded on one side.

Tilting. With Λ(θ) = Σ ln E e^(θℓ), the sum's mass at ℓ is e^(Λ(θ) − θℓ) times its mass under the tilted law, each
part's mass multiplied by e^(θℓ) and normalised. θ is chosen so that the tilted sum lies around the ε that is asked
for; so errors are relative to δ there, however small δ is. In the exponents θℓ of a part's atoms five roundings occur,
in those of the sum four, each of half a unit relative to at most Σ count·|largest θℓ|, or weighed with e^(−D) for an
atom D below the largest: the relative error of a mass is below 2·10^−15 of the sum of those and of the logarithms of
the weights, besides `SLACK` for every release.

The transform. Each coefficient is a sum of the inputs times products of twiddle factors, one path of log₂ n
butterflies each; one butterfly's rounding is below 8 units u = 2^−53 (complex product √5 u, twiddle, sum; Brent,
Percival & Zimmermann 2007, Higham 2002 section 24.1). So a coefficient's error is at most E = 8u·(log₂ n + 3) times
the sum of the inputs' sizes: E itself for a distribution. Then |Π f̂ᵢ − Π fᵢ| ≤ K·E·Π(|f̂ᵢ| + E)/min(|f̂ᵢ| + E) over
the K factors, and every entry of the inverse is off by at most the mean of these errors plus E times the mean of the
sizes.

The circle. Positions are known modulo n lattice steps. What lies outside the window returns inside it: for an upper
bound only the mass above the window is missed, and added as certain; for a lower bound all that can return above ε,
from below the window or from a whole circle above ε, is taken off. Both are bounded by Chernoff's E e^(τ(sum − ℓ)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from discreet.trusted.ring_c.privacy_loss import (
    SHIFT,
    SLACK,
    Floats,
    LossDistribution,
    PrivacyLoss,
    optimistic_estimate,
    pessimistic_estimate,
)

_SMALL = 2048  # distributions shorter than this are convolved directly
_FEW = 8

PrivacyLosses = Sequence[tuple[PrivacyLoss, int]]
Counted = Sequence[tuple[LossDistribution, int]]


@dataclass(frozen=True)
class ConvolutionPlan:
    """Where to look.

    `theta` is the tilt, `step` the lattice, [low, high) the window, `least` the least ε for which a lower bound is
    wanted, `slopes` the Chernoff exponents for what lies above, below and a whole circle on, `tail` what each law may
    cut off.
    """

    theta: float
    step: float
    low: float
    high: float
    least: float
    slopes: tuple[float, float, float]
    tail: float

    @property
    def size(self) -> int:
        """How many lattice points the transform has: a power of two, which holds the window."""
        return 1 << max(4, math.ceil(math.log2((self.high - self.low) / self.step + 2)))

    def coarser(self, times: int) -> ConvolutionPlan:
        """The same on a lattice whose step is so many times as long."""
        return replace(self, step=self.step * times)


@dataclass(frozen=True)
class Sum:
    """A one-sided bound on the sum of the losses: δ at ε is bounded by infinity_mass + Σ mass·(1 − e^(ε − loss))⁺ −
    e^(stray − θε).

    A lower bound has a stray part, and holds at `least` for any smaller ε; an upper one (`stray` is None) holds inside
    the window. The stray part is kept as a logarithm and no part of it is cut: far out in the tail θε alone may be
    larger than the logarithm of any floating-point number, and only the difference is small.
    """

    losses: Floats
    mass: Floats
    infinity_mass: float
    stray: float | None = None
    theta: float = 0.0
    least: float = 0.0

    def delta(self, epsilon: float) -> float:
        """The bound on δ at one ε, between 0 and 1, its roundings on the safe side.

        A lower bound is the same for all ε below `least`; an upper one is 1 below the window.
        """
        if self.stray is not None:
            epsilon = max(epsilon, self.least)
        elif epsilon < self.losses[0]:
            return 1.0
        above = int(np.searchsorted(self.losses, epsilon, side="right"))
        part = float(np.sum(self.mass[above:] * -np.expm1(epsilon - self.losses[above:])))
        if self.stray is not None:
            part = max(0.0, part * (1 - 1e-12) - math.exp(min(1.0, self.stray - self.theta * epsilon)))
        else:
            part *= 1 + 1e-12
        return min(1.0, max(0.0, self.infinity_mass + part))

    def deltas(self, places: Floats) -> Floats:
        """An upper bound's δ at up to a thousand ε, in ascending order, in one pass over the losses.

        With D(ε) = Σ mass·(1 − e^(ε − loss)) and F(ε) = Σ mass·e^(ε − loss) over the losses above ε, and a ≤ b,

            D(a) = D(b) + (1 − e^(a − b))·F(b) + Σ mass·(1 − e^(a − loss))     over the losses in (a, b],
            F(a) = e^(a − b)·F(b)              + Σ mass·e^(a − loss).

        No term is negative, so nothing cancels: each place adds at most eight roundings to those of the sums, for
        which `delta` has 1e-12, and a thousand places add 8·1000·2^−53, less than as much again.
        """
        if self.stray is not None:
            raise ValueError("a lower bound has no upper bounds of its δ")
        pieces = np.split(np.stack([self.mass, self.losses]), np.searchsorted(self.losses, places, side="right"), 1)
        found, last, part, fall = np.ones(len(places)), math.inf, 0.0, 0.0
        for k in range(len(places) - 1, -1, -1):
            (mass, losses), epsilon = pieces[k + 1], float(places[k])
            part += -math.expm1(epsilon - last) * fall + float(np.sum(mass * -np.expm1(epsilon - losses)))
            fall = math.exp(epsilon - last) * fall + float(np.sum(mass * np.exp(epsilon - losses)))
            found[k], last = min(1.0, self.infinity_mass + part * (1 + 2e-12)), epsilon
        return np.where(places < self.losses[0], 1.0, found)

    def near(self, delta: float) -> float:
        """An ε whose bound is about δ: the guess for a search."""
        with np.errstate(over="ignore"):
            mass = np.cumsum(self.mass[::-1])[::-1]
            fall = np.cumsum((self.mass * np.exp(self.losses[0] - self.losses))[::-1])[::-1]
        delta -= self.infinity_mass
        at = mass - np.exp(np.minimum(700.0, self.losses - self.losses[0])) * fall
        k = int(np.argmax(at <= delta)) if (at <= delta).any() else len(at) - 1
        if mass[k] <= delta or fall[k] <= 0:
            return float(self.losses[k])
        return float(min(self.losses[0] + math.log((mass[k] - delta) / fall[k]), self.losses[k]))


def log_moment(estimates: Counted, step: float, theta: float) -> float:
    """Λ(θ) of the finite part."""
    total = 0.0
    for estimate, count in estimates:
        part = tilted(estimate, step, theta)
        total += count * (part.shift + math.log(part.weight))
    return total


def add(laws: PrivacyLosses, plan: ConvolutionPlan, upward: bool) -> Sum:
    """The pessimistic (or optimistic) estimates of all laws, each taken as often as its count says, added."""
    step, theta = plan.step, plan.theta
    if upward:
        estimates = [(pessimistic_estimate(law, step, plan.tail), count) for law, count in laws]
    else:
        estimates = [(optimistic_estimate(law, step, plan.tail, theta), count) for law, count in laws]
    factors = [(tilted(estimate, step, theta), count) for estimate, count in estimates]
    parts = [count * part for factor, count in factors for part in (math.log(factor.weight), factor.shift)]
    moment = math.fsum(parts)
    first = sum(count * estimate.first for estimate, count in estimates)
    displaced = sum(count * estimate.offset for estimate, count in estimates)
    masses, error = _convolve([(factor.mass, count) for factor, count in factors], plan.size)
    number = sum(count for _, count in laws)
    least = math.floor((plan.low - displaced) / step)
    losses = displaced + step * np.arange(least, least + plan.size, dtype=np.float64)
    masses = np.roll(masses, -((least - first) % plan.size))
    blur = number * SLACK + 2e-15 * math.fsum(map(abs, parts))
    rounding = SHIFT * sum(
        count * (1 + float(np.abs(estimate.losses(step)[[0, -1]]).max())) for estimate, count in estimates
    )
    cut = math.fsum(count * estimate.infinity_mass for estimate, count in estimates)
    scale = np.minimum(700.0, moment - theta * losses)
    if upward:
        mass = np.minimum(1.0, np.maximum(masses + error, 0.0) * np.exp(scale + blur))
        missed = math.exp(min(0.0, _beyond(estimates, step, float(losses[-1]) + step, 0.0, plan.slopes[0])))
        return Sum(losses + rounding, mass, cut * (1 + 1e-12) + missed)
    mass = np.minimum(1.0, np.maximum(masses - error, 0.0) * np.exp(np.minimum(0.0, scale) - blur))
    circle = _beyond(estimates, step, plan.least + plan.size * step, theta, plan.slopes[2])
    below = _beyond(estimates, step, float(losses[0]), theta, -plan.slopes[1])
    stray = max(circle, below) + math.log(2) + moment
    return Sum(losses - rounding, mass, 0.0, stray + blur, theta, plan.least)


@dataclass(frozen=True)
class _Tilted:
    """`mass` sums to one; ln E e^(θℓ) = ln(weight) + shift."""

    mass: Floats
    weight: float
    shift: float


def tilted(estimate: LossDistribution, step: float, theta: float) -> _Tilted:
    """The masses times e^(theta·loss), normalised."""
    exponents = np.where(estimate.mass > 0, theta * estimate.losses(step), -np.inf)
    shift = float(exponents.max())
    mass = estimate.mass * np.exp(exponents - shift)
    weight = float(mass.sum())
    return _Tilted(mass / weight, weight, shift)


def _beyond(estimates: Counted, step: float, edge: float, theta: float, slope: float) -> float:
    """ln of a bound on the sum's mass, tilted by θ, at or above the edge (at or below it for a negative slope)."""
    side = -1 if slope > 0 else 0
    farthest = sum(count * float(estimate.losses(step)[side]) for estimate, count in estimates)
    if math.copysign(1.0, slope) * (edge - farthest) > step / 2:
        return -math.inf
    return log_moment(estimates, step, theta + slope) - log_moment(estimates, step, theta) - slope * edge + 1e-9


def _convolve(factors: list[tuple[Floats, int]], size: int) -> tuple[Floats, float]:
    """The circular convolution, and a bound on the error of each of its entries.

    Where some factor's coefficient alone is below e^−60 even with its error, the product is taken as zero: most
    coefficients of a wide sum are.
    """
    factors = _merged(factors)
    number = sum(count for _, count in factors)
    error = 2.0**-53 * 8 * (math.log2(size) + 3)
    transforms = [(np.fft.rfft(_fold(mass, size), size), count) for mass, count in factors]
    kept = np.ones(size // 2 + 1, dtype=np.bool_)
    for transform, count in transforms:
        kept &= np.abs(transform) + error > math.exp(-60 / count)
    product: NDArray[np.complex128] = np.ones(int(kept.sum()), dtype=np.complex128)
    bound, smallest = np.ones(len(product)), np.ones(len(product))
    for transform, count in transforms:
        part = transform[kept]
        widened = np.abs(part) + error
        product *= _power(part, count)
        bound *= widened**count
        np.minimum(smallest, widened, out=smallest)
    whole = np.zeros(size // 2 + 1, dtype=np.complex128)
    whole[kept] = product
    left_out = (len(whole) - len(product)) * math.exp(-60 + number * error)
    wrong = left_out + float(np.sum(number * error * bound / smallest) + error * np.sum(np.abs(product)))
    return np.fft.irfft(whole, size), 2 * wrong / size * (1 + 1e-9)


def _merged(factors: list[tuple[Floats, int]]) -> list[tuple[Floats, int]]:
    """Many short distributions that occur once are convolved directly first; sums of products of positive numbers
    keep their relative precision, n units for n terms, far within `SLACK` a release."""
    short = sorted((mass for mass, count in factors if count == 1 and len(mass) < _SMALL), key=len)
    rest = [(mass, count) for mass, count in factors if count > 1 or len(mass) >= _SMALL]
    while len(short) > _FEW and len(short[0]) + len(short[1]) <= _SMALL:
        paired = [np.convolve(a, b) for a, b in zip(short[::2], short[1::2], strict=False)]
        short = sorted(paired + ([short[-1]] if len(short) % 2 else []), key=len)
    return rest + [(mass, 1) for mass in short]


def _fold(mass: Floats, size: int) -> Floats:
    if len(mass) <= size:
        return mass
    return np.asarray(np.pad(mass, (0, -len(mass) % size)).reshape(-1, size).sum(axis=0))


def _power(base: NDArray[np.complex128], exponent: int) -> NDArray[np.complex128]:
    """By repeated squaring: a relative error of √5·u a factor at most."""
    squares, bits = [base], bin(exponent)[:1:-1]
    for _ in bits[1:]:
        squares.append(squares[-1] * squares[-1])
    return reduce(lambda a, b: a * b, (square for square, bit in zip(squares, bits, strict=True) if bit == "1"))
