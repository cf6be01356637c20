"""Other ways to state what a loss is: Rényi divergence, zero-concentrated loss, the errors of an attacker's test.

Each is given as far as it exists and refused with a ValueError elsewhere. All are on the safe side: divergences are
upper bounds, the attacker's errors lower ones.

Theorem. For randomised response, for Laplace noise and for discrete Laplace noise the Rényi divergence of every order
α > 1 is at most α·ρ with ρ the Kullback–Leibler divergence, which is its limit α → 1; so no smaller ρ would do.

Proof. Let w be the measure √(dP dQ) over the loss ℓ, which is symmetric, and c = α − ½. Then (α − 1)·D_α = ln F(c²) −
ln F(¼) with F(c²) = ∫ e^(cℓ) w(dℓ), as F(¼) = 1. F is an entire function of order ½, so F(s) = F(0)·Π(1 − s/sₖ) over
its zeros. If all zeros are negative, ln F is concave for s ≥ 0 and stays below its tangent at s = ¼; there ds/dα = 1,
so the slope is the Kullback–Leibler divergence ρ: (α − 1)·D_α ≤ (c² − ¼)·ρ = α(α − 1)·ρ. The zeros are negative:

* randomised response: F is a multiple of cosh(cε), zero at c = iy with cos(εy) = 0;
* Laplace noise: of c·cosh(cε) + ½·sinh(cε) over c. Its zeros c = iy are the frequencies of −u″ = y²·u on [0, ε] with
  u(0) = 0 and u′(ε) = −½·u(ε), a self-adjoint problem with positive eigenvalues y²;
* discrete Laplace noise of n steps: at c = iy, y = jπ/ε, the ends give 2(−1)^j/(1 − q) and the losses between them,
  sin((n − 1)εy/n)/sin(εy/n) or its limit, −(−1)^j, or n − 1 times the sign of the ends where n divides j. The sum
  changes its sign n times in a period of e^(2iεy/n), in which it is a polynomial of degree n: no zero lies elsewhere. ∎
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from statistics import NormalDist

import numpy as np

from discreet.trusted.ring_a.exact import Number, ceiling, exp_bounds, fraction, normal_cdf_bounds
from discreet.trusted.ring_a.loss import Approximate, Batch, DiscreteLaplace, GaussianLoss, Loss, Pure
from discreet.trusted.ring_b.further_losses import BoundedRange, LaplaceLoss, SubsampledGaussian, ZeroConcentrated
from discreet.trusted.ring_c.batch import Composition
from discreet.trusted.ring_c.equivalent import upper_sums

_ROUNDING = 1e-14
_PLACES = 600
_LARGE = 1000
_FINE, _COARSE = Fraction(1, 10**6), 600


def renyi(losses: Iterable[Loss] | Mapping[Loss, int], order: float) -> float:
    """An upper bound on the Rényi divergence of this order > 1 of all these releases, in the worse direction.

    Divergences of one order add, also where each release is chosen from the answers so far (Mironov 2017). The sum is
    at most 10^−14·(1 + order·loss)/(order − 1) above the value itself, but for bounded range, where it is a bound.
    """
    if not 1 < order < math.inf:
        raise ValueError("the order must be above 1 and finite")
    counted = losses.items() if isinstance(losses, Mapping) else [(loss, 1) for loss in losses]
    return math.fsum(count * _renyi(loss, order) for loss, count in counted)


def _renyi(loss: Loss, order: float) -> float:
    if isinstance(loss, Batch):
        return math.fsum(_renyi(part, order) for part in loss.parts)
    if isinstance(loss, SubsampledGaussian):
        low, high = math.floor(order), math.ceil(order)
        ends = [_sampled_moment(loss, n) for n in (low, high)]
        exponent = ends[0] + (order - low) * (ends[1] - ends[0])
        return loss.steps * (exponent + _ROUNDING * (1 + abs(exponent))) / (order - 1)
    most = order * float(zero_concentrated(loss)) * (1 + _ROUNDING)
    if isinstance(loss, (Pure, Approximate)):
        exponent = _log_moment(loss, order - 1)
        return min(most, (exponent + _ROUNDING * (1 + order * float(loss.epsilon))) / (order - 1))
    return most


def _log_moment(loss: Pure | Approximate, t: float) -> float:
    """ln E e^(tℓ) under P. Discrete Laplace: the inner losses, q^k at ε·(1 − 2k/n), are a geometric series."""
    epsilon = float(loss.epsilon)
    if isinstance(loss, LaplaceLoss):  # Mironov 2017, Proposition 6
        weights = [(1 + t) / (1 + 2 * t), t / (1 + 2 * t)]
        return t * epsilon + math.log(weights[0] + weights[1] * math.exp(-(1 + 2 * t) * epsilon))
    steps = loss.sensitivity if isinstance(loss, DiscreteLaplace) else 1
    if steps == 0 or epsilon == 0:
        return 0.0
    h = epsilon / steps
    fall = (1 + 2 * t) * h
    inner = math.tanh(h / 2) * math.exp(-fall) * math.expm1(-(steps - 1) * fall) / math.expm1(-fall)
    ends = (1 + math.exp(-(1 + 2 * t) * epsilon)) / (1 + math.exp(-h))
    return t * epsilon + math.log(ends + inner)


def _sampled_moment(loss: SubsampledGaussian, order: int) -> float:
    """ln E_Q (P/Q)^order of one step, P the mixture and Q = N(0, σ²): Σ C(n, k)(1 − r)^(n−k) r^k e^(k(k−1)/2σ²).

    That is the worse direction (Mironov, Talwar & Zhang 2019, Theorem 5; the sum is their section 3.3). It is convex in
    the order, as the logarithm of a moment is, so between two whole orders the chord is an upper bound.
    """
    if order == 1:
        return 0.0
    rate, square = float(loss.rate), 2 * float(loss.sigma) ** 2
    if rate == 1:
        return order * (order - 1) / square
    k = np.arange(order + 1, dtype=np.float64)
    factorials = np.array([math.lgamma(n + 1) for n in range(order + 1)])
    binomials = factorials[-1] - factorials - factorials[::-1]
    terms = binomials + (order - k) * math.log1p(-rate) + k * math.log(rate) + k * (k - 1) / square
    peak = float(terms.max())
    return peak + math.log(math.fsum(np.exp(terms - peak).tolist()))


def zero_concentrated(loss: Loss) -> Fraction:
    """A ρ such that the release is ρ-zCDP, rounded up in the twentieth digit (Bun & Steinke 2016).

    Laplace noise ε + e^(−ε) − 1 (Harrison & Manurangsi 2026), discrete Laplace noise of n steps
    ε − (2ε/n)·(1 − e^(−ε))/(e^(ε/n) − e^(−ε/n)), a pure loss as randomised response ε·tanh(ε/2), by the theorem above;
    bounded range ε²/8 (Cesar & Rogers 2021); Gaussian noise μ²/2, also for a run, whose sampling is not counted.
    """
    if isinstance(loss, Batch):
        return sum((zero_concentrated(part) for part in loss.parts), Fraction(0))
    if isinstance(loss, ZeroConcentrated):
        return loss.rho
    if loss.keys_delta:
        raise ValueError("events with delta > 0 have infinite Rényi divergence")
    if isinstance(loss, (GaussianLoss, SubsampledGaussian)):
        return ceiling(_some(loss.mu_squared) / 2, 20)
    epsilon = _some(loss.pure)
    if isinstance(loss, BoundedRange):
        return ceiling(min(epsilon * epsilon / 8, _response_rho(epsilon)), 20)
    if isinstance(loss, LaplaceLoss):
        return ceiling(epsilon + _falling(epsilon, _bits(epsilon))[1] - 1, 20) if epsilon else epsilon
    if isinstance(loss, DiscreteLaplace) and loss.sensitivity != 1:
        return ceiling(_discrete_rho(epsilon, loss.sensitivity), 20) if loss.sensitivity else Fraction(0)
    return ceiling(_response_rho(epsilon), 20)


def _response_rho(epsilon: Fraction) -> Fraction:
    other = _falling(epsilon, _bits(epsilon))[0]
    return epsilon * (1 - 2 * other / (1 + other))


def _discrete_rho(epsilon: Fraction, steps: int) -> Fraction:
    h = epsilon / steps
    bits = _bits(h)
    if h > _LARGE:
        return epsilon
    return epsilon - 2 * h * (1 - _falling(epsilon, bits)[1]) / (exp_bounds(h, bits)[1] - exp_bounds(-h, bits)[0])


def _falling(epsilon: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Around e^(−ε)."""
    return exp_bounds(-epsilon, bits) if epsilon <= _LARGE else (Fraction(0), Fraction(1, 1 << 1400))


def _bits(epsilon: Fraction) -> int:
    """Enough for what is of the order ε³ to keep its digits."""
    return 96 + 4 * max(0, epsilon.denominator.bit_length() - epsilon.numerator.bit_length())


def _some(amount: Fraction | None) -> Fraction:
    if amount is None:
        raise ValueError("this loss has no such bound")
    return amount


def gaussian(loss: Loss) -> Fraction:
    """A μ² such that the release is μ-GDP, rounded up.

    For Laplace noise Φ(−μ/2) = e^(−ε/2)/2, by which both total variations are 1 − e^(−ε/2): the theorem of `gdp_filter`
    with s → 0. Every other loss says it itself.
    """
    if isinstance(loss, Batch):
        return sum((gaussian(part) for part in loss.parts), Fraction(0))
    if loss.keys_delta:
        raise ValueError("events with delta > 0 are not mu-GDP for any mu")
    if isinstance(loss, LaplaceLoss) and _FINE <= loss.epsilon <= _COARSE:
        bits = 200 + int(loss.epsilon)
        target = exp_bounds(-loss.epsilon / 2, bits)[0] / 2
        guess = -2 * NormalDist().inv_cdf(math.exp(-float(loss.epsilon) / 2) / 2)
        for exponent in (12, 10, 8, 6, 4):
            mu = Fraction(guess) * (1 + Fraction(1, 10**exponent))
            if normal_cdf_bounds(-mu / 2, bits)[1] <= target:
                return ceiling(mu * mu, 20)
    return _some(loss.mu_squared)


def trade_off(batch: Composition, false_alarm: Number) -> float:
    """A lower bound on the miss rate of everybody who tells a person's presence from absence with this false-alarm
    rate, in either direction.

    What is (ε, δ)-DP has f(α) ≥ max(1 − δ − e^ε·α, e^(−ε)·(1 − δ − α), 0) (Wasserman & Zhou 2010; Dong, Roth & Su 2019,
    section 2.3); the batch is for all ε with the δ that `compose` proves, and any set of them gives a lower bound.
    For Gaussian noise alone it is Φ(Φ⁻¹(1 − α) − μ), certified.
    """
    alarm = fraction(false_alarm)
    if not 0 <= alarm <= 1:
        raise ValueError("the rate must lie between 0 and 1")
    if alarm == 1:
        return 0.0
    if batch.only_gaussian is not None and not batch.infinity_mass:
        return _gaussian_miss(Fraction(batch.only_gaussian) * (1 + Fraction(1, 1 << 50)), alarm)
    alpha = float(alarm)
    level = max(1e-12, min(alpha, 1 - alpha) / 100)
    places, heights = _upper_curve(batch, level)
    epsilon, delta = np.array(places), np.array(heights)
    with np.errstate(over="ignore", invalid="ignore"):
        first = 1 - delta - (np.exp(epsilon) * alpha if alpha else 0.0)
        found = float(np.max(np.maximum(first, np.exp(-epsilon) * (1 - delta - alpha))))
    return max(0.0, found * (1 - 1e-12) - 1e-15)


def _upper_curve(batch: Composition, level: float) -> tuple[list[float], list[float]]:
    """Some ε and upper bounds on δ there, in both directions: of the whole curve, and where the sum of all ε is
    enough."""
    places, heights = [0.0], [min(1.0, batch.infinity_mass * (1 + 1e-12)) if batch.only_gaussian == 0 else 1.0]
    if batch.pure is not None:
        places.append(float(batch.pure) * (1 + 1e-12))
        heights.append(min(1.0, batch.infinity_mass * (1 + 1e-12)))
    if batch.too_large or batch.only_gaussian == 0:
        return places, heights
    found = [upper_sums(laws, level) for laws in batch.directions]
    end = max(0.0, *(bounds[-1].near(level) for bounds in found)) * 1.01
    for epsilon in np.linspace(0.0, end, _PLACES).tolist():
        delta = max(min(bound.delta(epsilon) for bound in bounds) for bounds in found)
        places.append(epsilon)
        heights.append(min(1.0, delta + batch.infinity_mass * (1 - delta) * (1 + 1e-12)))
    return places, heights


def _gaussian_miss(mu: Fraction, alarm: Fraction) -> float:
    """Φ(z − μ) with a z that is proved to have Φ(−z) ≥ α, rounded down."""
    if alarm == 0:
        return 1.0
    bits = 160 + alarm.denominator.bit_length()
    guess = -NormalDist().inv_cdf(min(max(float(alarm), 1e-300), 1 - 1e-16))
    for margin in (1e-14, 1e-12, 1e-9, 1e-3, 1.0):
        z = Fraction(guess - margin * (1 + abs(guess)))
        if normal_cdf_bounds(-z, bits)[0] >= alarm:
            return max(0.0, math.nextafter(float(normal_cdf_bounds(z - mu, bits)[0]), 0.0))
    return 0.0
