"""When to stop: a filter valid for an analyst who chooses each question and its price from all answers so far.

The promise of a budget (ε, δ) of which `keys_delta` is set apart: whatever is asked, in whatever order, everything
released together is (ε, δ)-DP for adding or removing one person.

Why it holds. Two filters run beside each other, and each is debited for every admitted release:

* the pure sum: Σ εᵢ ≤ ε, promise (ε, 0) (Rogers, Roth, Ullman & Vadhan 2016);
* the Gaussian sum: Σ μᵢ² ≤ μ², where μ-GDP implies (ε, δ − keys_delta) (Smith & Thakurta 2022).

A release is admitted while at least one of them still admits it. A filter that does not admit what was nevertheless
released is dead from then on; as sums only grow, "over its cap" and "dead" are the same state. At the moment the
interaction ends, let J be a filter that is alive: it admitted every release so far, so the whole run is covered by J's
promise. Splitting the outcomes by whether the pure sum is still alive gives two events with hockey-stick divergence at
most 0 and at most δ − keys_delta, which add up to δ − keys_delta: no δ is paid for having both.

A release that finds private keys is ε-DP but for an event of probability δᵢ; those events' probabilities add up in
`keys` to at most keys_delta, whichever filter is alive. In all: (ε, (δ − keys_delta) + keys_delta).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from discreet.accounting.curves import mu_of_budget
from discreet.accounting.loss import Loss
from discreet.exact import Number, ceiling, floor, fraction


@dataclass(frozen=True)
class Spent:
    """What one account has spent, rounded up. `pure` is None once a release without a finite ε was admitted."""

    pure: Fraction | None = Fraction(0)
    mu_squared: Fraction = Fraction(0)
    keys: Fraction = Fraction(0)

    def plus(self, loss: Loss) -> Spent:
        """The state after one more release: every counter is debited, also those over their cap."""
        pure = None if self.pure is None or loss.pure is None else ceiling(self.pure + loss.pure)
        return Spent(pure, ceiling(self.mu_squared + loss.mu_squared), ceiling(self.keys + loss.keys_delta))

    def to_json(self) -> dict[str, Any]:
        return {
            "pure": None if self.pure is None else str(self.pure),
            "mu_squared": str(self.mu_squared),
            "keys": str(self.keys),
        }

    @staticmethod
    def from_json(state: dict[str, Any]) -> Spent:
        pure = None if state["pure"] is None else Fraction(state["pure"])
        return Spent(pure, Fraction(state["mu_squared"]), Fraction(state["keys"]))


@dataclass(frozen=True)
class Filter:
    """A budget and what was spent of it. Immutable: `charge` gives the next state.

    `epsilon`, `delta` and `keys_delta` are taken as written. Raises ValueError unless epsilon > 0 and
    0 ≤ keys_delta ≤ delta < 1.
    """

    epsilon: Fraction
    delta: Fraction
    keys_delta: Fraction = Fraction(0)
    spent: Spent = Spent()

    def __init__(self, epsilon: Number, delta: Number, keys_delta: Number = 0, spent: Spent | None = None) -> None:
        object.__setattr__(self, "epsilon", fraction(epsilon))
        object.__setattr__(self, "delta", fraction(delta))
        object.__setattr__(self, "keys_delta", fraction(keys_delta))
        object.__setattr__(self, "spent", spent or Spent())
        if self.epsilon <= 0 or not 0 <= self.keys_delta <= self.delta < 1:
            raise ValueError("a filter needs epsilon > 0 and 0 <= keys_delta <= delta < 1")

    @property
    def mu_squared(self) -> Fraction:
        """The cap of the Gaussian sum, rounded down."""
        return floor(mu_of_budget(self.epsilon, self.delta - self.keys_delta) ** 2)

    def admits(self, loss: Loss) -> bool:
        """Whether one more release of this loss keeps the promise. Depends on losses alone, never on data."""
        return self._alive(self.spent.plus(loss))

    def _alive(self, state: Spent) -> bool:
        pure = state.pure is not None and state.pure <= self.epsilon
        return (pure or state.mu_squared <= self.mu_squared) and state.keys <= self.keys_delta

    def charge(self, loss: Loss) -> Filter:
        """The filter after the release. Raises ValueError where it is not admitted."""
        after = self.spent.plus(loss)
        if not self._alive(after):
            raise ValueError("the budget does not admit this release")
        return replace(self, spent=after)

    def left(self, like: Loss) -> int:
        """How many more releases of this loss would be admitted, one after another."""
        counts = []
        if self.spent.pure is not None and like.pure is not None and self.spent.pure <= self.epsilon:
            counts.append(_times(self.epsilon - self.spent.pure, like.pure))
        if self.spent.mu_squared <= self.mu_squared:
            counts.append(_times(self.mu_squared - self.spent.mu_squared, like.mu_squared))
        return min(max(counts, default=0), _times(self.keys_delta - self.spent.keys, like.keys_delta))

    def used(self) -> Fraction:
        """The part of the budget that is used, 0 to 1: that of the filter which has the most room."""
        parts = [Fraction(1)]
        if self.spent.pure is not None:
            parts.append(self.spent.pure / self.epsilon)
        if self.mu_squared:
            parts.append(self.spent.mu_squared / self.mu_squared)
        return min(parts)


_MANY = 10**9


def _times(room: Fraction, cost: Fraction) -> int:
    return _MANY if cost == 0 else max(0, min(_MANY, room // cost))
