"""How large noise is. No promise rests on it: it says what to expect of an answer, and which plan is the better one."""

from __future__ import annotations

import math

from discreet.trusted.ring_a.additive import Gaussian, Laplace
from discreet.trusted.ring_b.joint import Ball


def expected_error(noise: Laplace | Gaussian | Ball) -> float:
    """The mean absolute error of one coordinate, in steps.

    Of Laplace noise 2q/(1 − q²), q = exp(−1/scale); of a ball's that of the first coordinate (a block of its own):
    approximately (coordinates + 1)/2 scales.
    """
    if isinstance(noise, Gaussian):
        return float(noise.sigma) * math.sqrt(2 / math.pi)
    if isinstance(noise, Ball):
        return float(noise.scale) * (noise.coordinates + 1) / 2
    rate = float(1 / noise.scale)
    return 0.0 if rate > 700 else 1 / math.sinh(rate)


def variance(noise: Laplace | Gaussian) -> float:
    """Of one coordinate, in steps².

    Of Laplace noise 2q/(1 − q)², q = exp(−1/scale). Of rounded Gaussian noise the sum of 2·(2k − 1)·P(noise ≥ k) over
    k ≥ 1: sigma² + 1/12 but for less than 10^−7 from sigma = 1 on, as the error of the rectangle rule is of order
    exp(−2π²·sigma²).
    """
    if isinstance(noise, Laplace):
        rate = float(1 / noise.scale)
        return 0.0 if rate > 700 else 1 / (2 * math.sinh(rate / 2) ** 2)
    sigma = float(noise.sigma)
    if sigma >= 1:
        return sigma**2 + 1 / 12
    tails = (math.erfc((k - 0.5) / (sigma * math.sqrt(2))) / 2 for k in range(1, 12)) if sigma else ()
    return sum(2 * (2 * k - 1) * tail for k, tail in enumerate(tails, 1))
