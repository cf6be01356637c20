"""Privacy-loss distributions on a lattice: a pessimistic estimate, which dominates the release, and an optimistic one,
which the release dominates.

The loss of an outcome under P against Q is ℓ = ln dP/dQ; H_x(P, Q) = E_P[(1 − x·e^(−ℓ))⁺]. A law gives the
probabilities under P and Q of all cells between the edges of a lattice. From these:

* the pessimistic estimate moves each cell's mass to the cell's two ends, keeping both its P- and its Q-mass
  (Doroshenko et al. 2022, "connecting the dots"): H_x of a cell is convex in x, and is replaced by its chord;
* the optimistic estimate makes each cell, here centred on a lattice point, one atom at ln(P-mass/Q-mass), since telling
  only the cell tells less, and then lowers the loss to the lattice, which lowers H_x.

Floating point. libm's exp, log, erfc and numpy's exp, log are taken to be right within 16 units in the last place
(glibc and numpy document 1 to 5). Cell masses, and the quotient of a cell's two masses, then have relative errors
below 2^−40 = `SLACK`: differences of erfc are taken only over at least .02 standard deviations; narrower cells are
integrated by a Gauss–Legendre rule of five points, the same points for P and Q, whose relative error is
4·10^−13·(wd)^10 at most for a cell of width w < .02 at distance d ≤ 50 from both means. Masses are moved by `SLACK`
to the safe side. No mass below `RARE` is trusted, since floating point ends a little further down: in the pessimistic
estimate it counts as an infinite loss, in the optimistic one it is left out. Rounding displaces the edges of a cell by
less than `SHIFT` times the largest loss; whoever reads a composed distribution adds that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
SLACK = 2.0**-40
SHIFT = 2.0**-46
RARE = 1e-280
_NOTHING = 4e-16
_WIDE = 0.02  # in standard deviations
_FAR = 500.0  # larger losses count as infinite
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(5)


class PrivacyLoss(Protocol):
    """The loss of one release."""

    def reach(self, tail: float, /) -> tuple[float, float]:
        """Losses between which all P-mass lies but for at most `tail` on either side."""

    def cells(self, edges: Floats) -> tuple[Floats, Floats]:
        """P- and Q-mass at or below the first edge, in each (edge, next edge], and above the last edge."""

    def optimistic(self, step: float, /) -> PrivacyLoss:
        """A law that tells no more and suits this lattice better."""


@dataclass(frozen=True)
class Bounded:
    """Noise of a lattice of `steps` steps (None: no lattice), of loss ε at most: atoms at ±ε and what lies
    between."""

    epsilon: float
    steps: int | None

    def reach(self, _tail: float) -> tuple[float, float]:
        """±ε, beyond which no loss is, so nothing is cut off."""
        return -self.epsilon, self.epsilon

    def cells(self, edges: Floats) -> tuple[Floats, Floats]:
        """P- and Q-mass of each of the len(edges) + 1 cells between ascending edges: those of what lies between the
        atoms, in closed form, and the atoms where they fall."""
        epsilon = self.epsilon
        size = len(edges) + 1
        if self.steps is None:
            ends = 0.5
            inside = np.concatenate(([-epsilon], np.clip(edges, -epsilon, epsilon), [epsilon]))
            low, width = inside[:-1], np.diff(inside)
            rise = np.expm1(width / 2) / 2
            p, q = rise * np.exp((low - epsilon) / 2), rise * np.exp(-(low + width + epsilon) / 2)
        else:
            t = self.steps / epsilon
            ends = 1 / (1 + math.exp(-1 / t))
            # the inner loss ε − 2k/t has P-mass C·e^(−k/t), C = tanh(1/2t): cells hold ranges of k, summed as a
            # series
            least = np.concatenate(([self.steps], np.ceil((epsilon - edges) * t / 2), [1]))  # k ≥ least: not above
            least = np.clip(least, 1, self.steps)
            first, count = least[1:], least[:-1] - least[1:]
            total = -np.expm1(-count / t) * ends
            p = total * np.exp(-first / t)
            q = total * np.exp((first + count - 1 - self.steps) / t)
        at = np.searchsorted(edges, [-epsilon, epsilon])
        for place, (p_mass, q_mass) in zip(
            at, ((ends * math.exp(-epsilon), ends), (ends, ends * math.exp(-epsilon))), strict=True
        ):
            p[min(place, size - 1)] += p_mass
            q[min(place, size - 1)] += q_mass
        return p, q

    def optimistic(self, step: float) -> PrivacyLoss:
        """More noise of the same kind is noise added to the noise, so it tells less: ε may be lowered to the
        lattice."""
        unit = step if self.steps is None or self.steps * step * 4 > self.epsilon else self.steps * step
        epsilon = math.floor(self.epsilon / unit + 1e-9) * unit
        return replace(self, epsilon=min(self.epsilon, epsilon)) if epsilon > 0 else self


@dataclass(frozen=True)
class Ranged:
    """All releases of bounded range ε: density √A/(2(A − 1))·e^(ℓ/2) of the loss under P on [−ε, ε], A = e^ε.

    A release whose log ratios lie in [t − ε, t] tells at most what the pair of two outcomes with the losses t and t − ε
    does: H_x = (e^(ε−t) − 1)(e^t − x)/(A − 1). Over t that is largest at e^t = √(A·x), where it is (√A − √x)²/(A − 1).
    As a function of x that is convex, 1 − x at 1/A and 0 at A: the curve of one pair of distributions (Zhu, Dong & Wang
    2022, Proposition 10), whose density is the stated one, since e^ℓ·H″(e^ℓ) is that of the loss under Q. It dominates
    every release of that range, so also one that is chosen after others (their Theorem 10). Small ε: E_P[ℓ] = ε²/6.
    """

    epsilon: float

    def reach(self, _tail: float) -> tuple[float, float]:
        """±ε, beyond which no loss is, so nothing is cut off."""
        return -self.epsilon, self.epsilon

    def cells(self, edges: Floats) -> tuple[Floats, Floats]:
        """P- and Q-mass of each of the len(edges) + 1 cells between ascending edges: integrals of the density."""
        epsilon = self.epsilon
        inside = np.concatenate(([-epsilon], np.clip(edges, -epsilon, epsilon), [epsilon]))
        low, width = inside[:-1], np.diff(inside)
        rise = np.expm1(width / 2) / (2 * math.sinh(epsilon / 2))
        return rise * np.exp(low / 2), rise * np.exp(-(low + width) / 2)

    def optimistic(self, _step: float) -> PrivacyLoss:
        """Itself, on any lattice."""
        return self


@dataclass(frozen=True)
class Normal:
    """The loss of telling N(0, 1) from N(μ, 1): N(μ²/2, μ²) under P and N(−μ²/2, μ²) under Q."""

    mu: float

    def reach(self, tail: float) -> tuple[float, float]:
        """The mean under P, less and plus as many deviations as leave at most `tail` beyond."""
        spread = self.mu * _quantile(tail)
        return self.mu**2 / 2 - spread, self.mu**2 / 2 + spread

    def cells(self, edges: Floats) -> tuple[Floats, Floats]:
        """P- and Q-mass of each of the len(edges) + 1 cells between ascending edges: the loss ℓ lies at ℓ/μ + μ/2 on
        the line on which Q is N(0, 1) and P is N(μ, 1)."""
        still, moved = normal_masses(edges / self.mu + self.mu / 2, self.mu)
        return moved, still

    def optimistic(self, _step: float) -> PrivacyLoss:
        """Itself, on any lattice."""
        return self


@dataclass(frozen=True)
class SubsampledGaussianLoss:
    """One step of the subsampled Gaussian: rest·N(0, σ²) + rate·N(1, σ²) against N(0, σ²) for `removed`, and the
    other way round for a person added; rest = 1 − rate, rounded by itself, so that it is right also where it is
    small."""

    sigma: float
    rate: float
    rest: float
    removed: bool

    @property
    def _least(self) -> float:
        """ln(1 − rate), the end of the losses of a person removed."""
        if self.rest == 0:
            return -math.inf
        return math.log1p(-self.rate) if self.rate < 0.5 else math.log(self.rest)

    def reach(self, tail: float) -> tuple[float, float]:
        """The losses of outcomes so far out that at most `tail` is beyond on either side, or the end of the losses
        where there is one."""
        spread = self.sigma * _quantile(tail)
        if self.removed:
            return self._loss(-spread), self._loss(1 + spread)
        return -self._loss(spread), -self._loss(-spread) if self.rest == 0 else -self._least

    def _loss(self, x: float) -> float:
        exponent = (2 * x - 1) / (2 * self.sigma**2)
        return float(np.logaddexp(self._least, math.log(self.rate) + exponent))

    def cells(self, edges: Floats) -> tuple[Floats, Floats]:
        """P- and Q-mass of each of the len(edges) + 1 cells between ascending edges. A loss belongs to one outcome, so
        a cell is an interval of outcomes."""
        losses = edges if self.removed else -edges[::-1]
        # e^ℓ = rest + rate·e^(x/σ − 1/2σ²), solved for x; written so that what is lost to rounding, also where the loss
        # is near its end ln(rest) or far below zero, is a displacement of ℓ by a few units
        with np.errstate(divide="ignore"):
            ratio = losses + np.log(-np.expm1(np.minimum(self._least - losses, 0.0))) - math.log(self.rate)
        points = ratio * self.sigma + 1 / (2 * self.sigma)  # in units of σ
        still, moved = normal_masses(points, 1 / self.sigma)
        mixed = self.rest * still + self.rate * moved
        return (mixed, still) if self.removed else (still[::-1], mixed[::-1])

    def optimistic(self, _step: float) -> PrivacyLoss:
        """Itself, on any lattice."""
        return self


def _quantile(tail: float) -> float:
    """A z with P[N(0,1) > z] ≤ tail, from e^(−z²/2)/2."""
    return math.sqrt(2 * math.log(1 / tail))


def normal_masses(points: Floats, mean: float) -> tuple[Floats, Floats]:
    """Under N(0, 1) and under N(mean, 1): the mass below the first point, between neighbours, above the last."""
    ends = np.concatenate(([-np.inf], points, [np.inf]))
    low, high = ends[:-1], ends[1:]
    with np.errstate(invalid="ignore"):
        width = np.where(low == high, 0.0, high - low)
    wide = width >= _WIDE
    thin = ~wide & (width > 0)
    still, moved = np.zeros(len(low)), np.zeros(len(low))
    still[wide] = _between(low[wide], high[wide])
    moved[wide] = _between(low[wide] - mean, high[wide] - mean)
    middle, half = (low[thin] + high[thin]) / 2, width[thin] / 2
    total, shifted = np.zeros(len(middle)), np.zeros(len(middle))
    for node, weight in zip(_NODES.tolist(), _WEIGHTS.tolist(), strict=True):
        place = middle + node * half
        density = weight * np.exp(-(place**2) / 2)
        total += density
        shifted += density * np.exp(np.minimum(mean * place - mean**2 / 2, 700.0))
    still[thin] = total * half / math.sqrt(2 * math.pi)
    moved[thin] = shifted * half / math.sqrt(2 * math.pi)
    return still, moved


def _between(low: Floats, high: Floats) -> Floats:
    """P[low < N(0, 1) ≤ high], from the tail on whose side the cell lies, so that small masses keep their
    precision."""
    flip = high < -low
    near, far = np.where(flip, -high, low) / math.sqrt(2), np.where(flip, -low, high) / math.sqrt(2)
    pairs = zip(near.tolist(), far.tolist(), strict=True)
    return np.array([(math.erfc(a) - math.erfc(b)) / 2 for a, b in pairs])


@dataclass(frozen=True)
class LossDistribution:
    """Mass `mass[i]` at the loss offset + step·(first + i), and `infinity_mass` (of what was cut off) at infinity."""

    first: int
    mass: Floats
    offset: float
    infinity_mass: float

    def losses(self, step: float) -> Floats:
        """The loss of each mass, on a lattice of this step."""
        return self.offset + step * np.arange(self.first, self.first + len(self.mass), dtype=np.float64)


def pessimistic_estimate(law: PrivacyLoss, step: float, tail: float) -> LossDistribution:
    """A distribution on the lattice whose H_x is nowhere below that of the law."""
    low, high = law.reach(tail)
    high = min(high, _FAR)
    first = math.floor(max(low, -_FAR) / step * (1 - _NOTHING))
    last = max(first + 1, math.ceil(high / step * (1 - _NOTHING)))
    edges = step * np.arange(first, last + 1, dtype=np.float64)
    edges[-1] = max(edges[-1], high)
    p, q = law.cells(edges)
    p, q = np.where(p < RARE, 0.0, p * (1 + SLACK)), q * (1 - SLACK)
    inner = p[1:-1]
    up = np.clip((inner - q[1:-1] * np.exp(edges[:-1])) / -math.expm1(-step), 0.0, inner)
    mass = np.zeros(len(edges))
    mass[:-1] += inner - up
    mass[1:] += up
    mass[0] += p[0]
    return LossDistribution(first, mass, 0.0, float(p[-1]) + len(p) * RARE)


def optimistic_estimate(law: PrivacyLoss, step: float, tail: float, theta: float) -> LossDistribution:
    """A distribution on a lattice whose H_x is nowhere above that of the law; `theta` says where it should be close.

    The lattice may be displaced: atoms sit a little off the middle of their cells, and one offset for all spares most
    of what lowering each to its own lattice point would lose. It is chosen among a few for the least loss.
    """
    law = law.optimistic(step)
    low, high = law.reach(tail)
    first, last = math.floor(max(low, -_FAR) / step), math.ceil(min(high, _FAR) / step)
    centres = np.arange(first, last + 1)
    p, q = law.cells(step * (np.arange(first, last + 2, dtype=np.float64) - 0.5))
    p, q = np.append(p[1:-1], p[-1]) * (1 - SLACK), np.append(q[1:-1], q[-1]) * (1 + SLACK)
    centres = np.append(centres, last + 1)
    kept = (p > RARE) & (q > RARE)
    p, q, centres = p[kept], q[kept], centres[kept]
    aside = (np.log(p / q) - 2 * SLACK) / step - centres
    weight = p * np.exp(theta * step * (centres - centres[-1]))
    order = np.argsort(aside)
    reached = np.cumsum(weight[order])
    spots = np.searchsorted(reached, reached[-1] * np.array([0.0, 1e-9, 1e-6, 1e-4, 1e-2, 0.1]), side="right")
    offsets = np.clip(aside[order[np.minimum(spots, len(order) - 1)]], -1.0, 1.0) - 1e-11
    lost = [float(np.sum(weight * np.mod(aside - offset, 1.0))) for offset in offsets]
    offset = float(offsets[int(np.argmin(lost))])
    places = centres + np.floor(aside - offset).astype(np.int64)
    least = int(places.min())
    return LossDistribution(least, np.bincount(places - least, weights=p).astype(np.float64), offset * step, 0.0)
