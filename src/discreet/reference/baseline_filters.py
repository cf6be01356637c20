"""Privacy filters from the literature, one sum each: to compare with, and for owners who want one of them.

Each keeps a promise (ε, δ) to an adaptive analyst, who chooses every release, its price and the end from all answers
so far. Each has the interface of `PrivacyFilter`: `admits`, `charge`, `left`. Amounts are exact, losses rounded up,
budgets rounded down. A filter does not admit a loss of a kind that it does not know. In every case of the tests
`PrivacyFilter` admits at least as much.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from functools import lru_cache
from typing import Self

from attrs import evolve, field, frozen

from discreet.reference.conversions import gaussian, zero_concentrated
from discreet.trusted.ring_a.curves import mu_of_budget
from discreet.trusted.ring_a.exact import floor, fraction, log_bounds
from discreet.trusted.ring_a.loss import Loss

_MANY = 10**9
_REFUSED = "the budget does not admit this release"


@frozen
class SumFilter:
    """Σ εᵢ ≤ ε and Σ δᵢ ≤ δ (Rogers, Roth, Ullman & Vadhan 2016). Gaussian noise has no finite ε: never admitted."""

    epsilon: Fraction = field(converter=fraction)
    delta: Fraction = field(default=Fraction(0), converter=fraction)
    spent_epsilon: Fraction = field(default=Fraction(0), converter=fraction)
    spent_delta: Fraction = field(default=Fraction(0), converter=fraction)

    def __attrs_post_init__(self) -> None:
        _checked(self.epsilon, self.delta)

    def admits(self, loss: Loss) -> bool:
        """Whether one more release of this loss keeps the promise."""
        return self.left(loss) > 0

    def charge(self, loss: Loss) -> SumFilter:
        """The filter after the release. Raises ValueError where it is not admitted."""
        if loss.pure is None or not self.admits(loss):
            raise ValueError(_REFUSED)
        after = self.spent_epsilon + loss.pure
        return evolve(self, spent_epsilon=after, spent_delta=self.spent_delta + loss.keys_delta)

    def left(self, like: Loss) -> int:
        """How many more releases of this loss would be admitted, one after another."""
        if like.pure is None:
            return 0
        room = _times(self.epsilon - self.spent_epsilon, like.pure)
        return min(room, _times(self.delta - self.spent_delta, like.keys_delta))


@frozen
class _OneSum:
    """One number for each loss, and a whole that their sum stays below."""

    epsilon: Fraction = field(converter=fraction)
    delta: Fraction = field(converter=fraction)
    spent: Fraction = field(default=Fraction(0), converter=fraction)

    def __attrs_post_init__(self) -> None:
        _checked(self.epsilon, self.delta)

    @property
    @abstractmethod
    def _whole(self) -> Fraction: ...

    @staticmethod
    @abstractmethod
    def _cost(loss: Loss) -> Fraction:
        """Raises ValueError where the loss has none."""

    def admits(self, loss: Loss) -> bool:
        """Whether one more release of this loss keeps the promise."""
        return self.left(loss) > 0

    def charge(self, loss: Loss) -> Self:
        """The filter after the release. Raises ValueError where it is not admitted."""
        if not self.admits(loss):
            raise ValueError(_REFUSED)
        return evolve(self, spent=self.spent + self._cost(loss))

    def left(self, like: Loss) -> int:
        """How many more releases of this loss would be admitted, one after another."""
        try:
            cost = self._cost(like)
        except ValueError:
            return 0
        return _times(self._whole - self.spent, cost)


class GaussianFilter(_OneSum):
    """Σ μᵢ² ≤ μ², where μ-GDP implies (ε, δ) (Smith & Thakurta 2022), with Laplace noise's own μ (see `conversions`).
    What costs a δ of its own is not admitted."""

    _cost = staticmethod(gaussian)

    @property
    def mu_squared(self) -> Fraction:
        """The whole μ², rounded down."""
        return floor(mu_of_budget(self.epsilon, self.delta) ** 2)

    @property
    def _whole(self) -> Fraction:
        return self.mu_squared


class ConcentratedFilter(_OneSum):
    """Σ ρᵢ ≤ ρ, where ρ-zCDP implies (ε, δ) (Whitehouse, Ramdas, Rogers & Wu 2023, Theorem 1: valid under full
    adaptivity). What costs a δ of its own has no ρ and is not admitted."""

    _cost = staticmethod(zero_concentrated)

    @property
    def rho(self) -> Fraction:
        """The whole ρ, rounded down."""
        return rho_of_budget(self.epsilon, self.delta)

    @property
    def _whole(self) -> Fraction:
        return self.rho


@lru_cache(maxsize=1024)
def rho_of_budget(epsilon: Fraction, delta: Fraction) -> Fraction:
    """A ρ, rounded down, such that every ρ-zCDP release is (ε, δ)-DP; 0 where none was found.

    For every α > 1, δ ≤ e^((α−1)(αρ−ε))·(1 − 1/α)^α/(α − 1) (Canonne, Kamath & Steinke 2020, Proposition 12), which is
    solved for ρ. Floating point only guesses a good α; its logarithms are certified.
    """
    if delta <= 0:
        return Fraction(0)
    step = (math.sqrt(5) - 1) / 2
    low, high = -20.0, 60.0  # ln(α − 1); golden section
    for _ in range(80):
        first, second = high - step * (high - low), low + step * (high - low)
        better = _rho_guess(first, float(epsilon), delta) > _rho_guess(second, float(epsilon), delta)
        low, high = (low, second) if better else (first, high)
    above = Fraction(math.exp((low + high) / 2))  # α − 1
    order = 1 + above
    exponent = log_bounds(delta)[0] + log_bounds(above)[0] - order * log_bounds(above / order)[1]
    return floor(max(Fraction(0), (epsilon + exponent / above) / order))


def _rho_guess(place: float, epsilon: float, delta: Fraction) -> float:
    above = math.exp(place)
    logarithm = math.log(delta.numerator) - math.log(delta.denominator)
    return (epsilon + (logarithm + place + (1 + above) * math.log1p(1 / above)) / above) / (1 + above)


def _checked(epsilon: Fraction, delta: Fraction) -> None:
    if epsilon <= 0 or not 0 <= delta < 1:
        raise ValueError("a filter needs epsilon > 0 and 0 <= delta < 1")


def _times(room: Fraction, cost: Fraction) -> int:
    return _MANY if cost == 0 and room >= 0 else max(0, min(_MANY, room // cost)) if cost else 0
