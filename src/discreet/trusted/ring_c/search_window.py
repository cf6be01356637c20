"""Locates the part of the lattice of losses in which an ε or a δ lies. A bad window makes the bounds looser, never
wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from discreet.trusted.ring_c.convolve import ConvolutionPlan, PrivacyLosses
from discreet.trusted.ring_c.privacy_loss import Bounded, Floats, pessimistic_estimate

_POINTS = 1 << 18  # at most so many lattice points
_FINE = 1024  # lattice points to a standard deviation of the sum, at least
_SPREAD = 1e-5  # of the sum's variance may come from the lattice, where losses do not lie on it
_LITTLE = 28.0  # −ln of the part of the mass that the window may miss
_TAILS = (1e-40, 1e-120, 1e-300)  # of each law's mass that a first look may miss
_STEEPEST = 1e5


def locate(laws: PrivacyLosses, epsilon: float = math.inf, delta: float = 0.0) -> tuple[TiltedMoments, float]:
    """The moments of some laws, and the tilt to this ε or, where none is given, for this δ.

    Each law is cut off where it has little mass beside the δ that is looked for: without a cut the subsampled
    Gaussian's moments come from losses so rare that they do not matter; with too narrow a one nothing is left at ε.
    """
    for tail in _TAILS:
        rough = TiltedMoments(laws, tail)
        theta = rough.tilt_to(epsilon) if math.isfinite(epsilon) else rough.tilt_for(delta)
        if rough.log_delta(theta) > math.log(tail) + _LITTLE:
            break
    return rough, theta


class TiltedMoments:
    """The moments of the sum of some laws under a tilt, from coarse lattices."""

    def __init__(self, laws: PrivacyLosses, tail: float) -> None:
        self.laws = laws
        losses: list[Floats] = []
        masses: list[Floats] = []
        for law, _ in laws:
            low, high = law.reach(tail)
            step = (min(high, 500.0) - max(low, -500.0)) / (16 if isinstance(law, Bounded) else 2048)
            estimate = pessimistic_estimate(law, step, tail)
            kept = estimate.mass > 0
            losses.append(estimate.losses(step)[kept])
            masses.append(estimate.mass[kept])
        self.counts = np.array([count for _, count in laws], dtype=np.float64)
        self.lengths = [len(part) for part in losses]
        self.starts = np.cumsum([0, *self.lengths[:-1]])
        self.losses, self.logs = np.concatenate(losses), np.log(np.concatenate(masses))
        self.least = float(self.counts @ np.array([part[0] for part in losses]))
        self.most = float(self.counts @ np.array([part[-1] for part in losses]))

    def moments(self, theta: float) -> tuple[float, float, float]:
        """Λ(θ), and the mean and deviation under the tilt."""
        exponents = self.logs + theta * self.losses
        peaks = np.maximum.reduceat(exponents, self.starts)
        weights = np.exp(exponents - np.repeat(peaks, self.lengths))
        totals = np.add.reduceat(weights, self.starts)
        means = np.add.reduceat(weights * self.losses, self.starts) / totals
        centred = self.losses - np.repeat(means, self.lengths)
        spreads = np.add.reduceat(weights * centred * centred, self.starts) / totals
        return (
            float(self.counts @ (np.log(totals) + peaks)),
            float(self.counts @ means),
            math.sqrt(float(self.counts @ spreads)),
        )

    def tilt_to(self, epsilon: float) -> float:
        """θ ≥ 0 with mean ε under the tilt."""
        return self._solve(lambda theta: self.moments(theta)[1] < epsilon)

    def tilt_for(self, delta: float) -> float:
        """θ ≥ 0 such that δ at the tilted mean is about this."""
        return self._solve(lambda theta: self.log_delta(theta) > math.log(delta))

    def log_delta(self, theta: float) -> float:
        """ln δ at the tilted mean, about: the saddle point's exponent and its square-root factor, or the largest that
        (1 − e^(−y))·e^(−θy) can be, which matters where the tilt leaves a single atom."""
        moment, mean, deviation = self.moments(theta)
        most = math.log1p(theta) + (theta * math.log1p(1 / theta) if theta else 0.0)
        return moment - theta * mean - max(most, math.log1p(2.5 * theta * (1 + theta) * deviation))

    def _solve(self, larger: Callable[[float], bool]) -> float:
        low, high = 0.0, _STEEPEST / float(np.abs(self.losses).max())
        if not larger(low):
            return low
        for _ in range(24):
            middle = math.sqrt(low * high) if low else high / _STEEPEST
            low, high = (middle, high) if larger(middle) else (low, middle)
        return low

    def plan(self, theta: float, epsilon: float = math.inf) -> ConvolutionPlan:
        """Below the window little lies under the tilt, above it little without; and little returns after a whole
        circle.

        The deviation is at least a part of that without a tilt, lest a tilt to the very end asks for too fine a
        lattice.
        """
        moment, mean, spread = self.moments(theta)
        deviation = max(spread, self.moments(0.0)[2] / 16)
        log_delta = self.log_delta(theta)
        gap = math.log1p(1 / theta) if theta else math.inf  # of one atom, it makes (1 − e^(−gap))·e^(−θ·gap) largest
        least = min(max(0.0, mean - deviation - gap), epsilon)

        def reach(tau: float) -> float:
            return (self.moments(tau)[0] - log_delta + _LITTLE) / tau

        def depth(tau: float) -> float:
            return (self.moments(theta - tau)[0] - moment + _LITTLE) / tau

        def circle(tau: float) -> float:
            return (self.moments(theta + tau)[0] - moment + _LITTLE) / tau

        above = _slope(theta, deviation, reach)
        below, around = _slope(0.0, deviation, depth), _slope(0.0, deviation, circle)
        high = min(max(reach(above), mean + deviation), self.most + deviation)
        if math.isfinite(epsilon):
            high = max(high, min(epsilon, self.most) + deviation)
        low = max(min(-depth(below), least), self.least - deviation)
        high = max(high, low + min(circle(around), self.most + deviation) - least)
        step = min(deviation / _FINE, deviation * math.sqrt(6 * _SPREAD / max(1.0, self._off_lattice())))
        step = self._aligned(max(step, (high - low) / _POINTS * 1.01))
        tail = math.exp(max(log_delta - _LITTLE, -600.0)) / float(self.counts.sum())
        return ConvolutionPlan(theta, step, low, high + step, least, (above, below, around), tail)

    def _off_lattice(self) -> float:
        """About how many releases' worth of loss will not lie on the lattice."""
        return sum(count * (min(1.0, law.epsilon) if isinstance(law, Bounded) else 1.0) for law, count in self.laws)

    def _aligned(self, step: float) -> float:
        """A step at most this long, if possible one of which the losses are whole multiples."""
        bounded = [law for law, _ in self.laws if isinstance(law, Bounded)]
        ends = {Fraction(repr(law.epsilon)) for law in bounded}
        ends |= {
            Fraction(repr(law.epsilon)) / law.steps for law in bounded if law.steps and law.epsilon / law.steps > step
        }
        if not ends or len(ends) > 64:
            return step
        below = math.lcm(*(end.denominator for end in ends))
        common = Fraction(math.gcd(*(int(end * below) for end in ends)), below)
        if common < step / 4:
            common = max(ends)
        if common < step / 4:
            return step
        return float(common) / math.ceil(float(common) / step)


def _slope(theta: float, deviation: float, bound: Callable[[float], float]) -> float:
    """The τ > 0, among some around θ and beyond, that makes a Chernoff bound's position least."""
    steps = (-1.0, -0.5, -0.2, 0.0, 0.2, 0.5, 1.0, 2.0, 4.0, 6.0, 8.0, 11.0)
    return min((theta + step / deviation for step in steps if theta * deviation + step > 0.1), key=bound)
