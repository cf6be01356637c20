"""Membership inference: how often an attacker's best guess is right at a given price.

The attacker knows everything but one bit, whether one person is in the data, holds both to be equally likely, and sees
the release. A test with false-alarm rate a and miss rate b is right with probability 1 − (a + b)/2: the best guess is
right with (1 + TV)/2, TV the total variation between the two outcomes' distributions (Wasserman & Zhou 2010; Dong, Roth
& Su 2019). What is ε-DP and μ-GDP is at best as bad as randomised response and as two normal distributions:
e^ε/(1 + e^ε) and Φ(μ/2); a δ of failures adds at most δ/2.
"""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist

from discreet.trusted.ring_a.exact import sqrt_ceiling
from discreet.trusted.ring_a.filter import Spent
from discreet.trusted.ring_a.loss import GaussianLoss, Loss, Pure

ALMOST_SURE = 0.999
"""Above this probability almost nothing about a person is hidden: that of ε 7 and more."""

_UP = 1 + 1e-12  # the rounding of what is a statement for people


def best_guess(loss: Loss) -> float:
    """The largest probability of guessing right whether one person is in the data, after this release: 1/2 to 1."""
    chances = [1.0]
    if loss.pure is not None:
        chances.append(_of_pure(loss.pure))
    if loss.mu_squared is not None:
        chances.append(NormalDist().cdf(math.sqrt(float(min(loss.mu_squared, Fraction(10**4)))) / 2))
    return min(1.0, (min(chances) + float(loss.keys_delta) / 2) * _UP)


def best_guess_of_budget(epsilon: Fraction, delta: Fraction) -> float:
    """The same after all that an (ε, δ) budget allows: TV is at most (e^ε − 1 + 2δ)/(e^ε + 1) (Kairouz, Oh & Viswanath
    2015)."""
    return min(1.0, (_of_pure(epsilon) + float(delta) * (1 - _of_pure(epsilon))) * _UP)


def best_guess_of_spent(spent: Spent) -> float:
    """The same after all that was charged to an account, as if it had been asked at once."""
    losses: list[Loss] = [] if spent.pure is None else [Pure(spent.pure)]
    if spent.mu_squared is not None:
        losses.append(GaussianLoss(sqrt_ceiling(spent.mu_squared)))
    return min(1.0, min((best_guess(loss) for loss in losses), default=1.0) + float(spent.keys) / 2)


def chance(odds: float) -> str:
    """A probability in percent, rounded up."""
    return f"{min(100.0, math.ceil(odds * 1000 - 1e-9) / 10):g} %"


def _of_pure(epsilon: Fraction) -> float:
    return 1 / (1 + math.exp(-float(min(epsilon, Fraction(700)))))
