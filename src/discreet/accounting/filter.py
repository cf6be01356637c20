"""When to stop: a filter valid for an analyst who chooses each question and its price from all answers so far.

The promise of a budget (ε, δ) of which `keys_delta` is set apart: whatever is asked, in whatever order, everything
released together is (ε, δ)-DP for adding or removing one person.

Why it holds. Two filters run beside each other, and each is debited for every admitted release:

* the pure sum: Σ εᵢ ≤ ε, promise (ε, 0) (Rogers, Roth, Ullman & Vadhan 2016);
* the Gaussian residue: what is left of the μ² whose μ-GDP implies (ε, δ − keys_delta), see `residue`. Gaussian releases
  take μᵢ² of it (Smith & Thakurta 2022), Laplace noise and others what has been proved to be enough.

A release is admitted while at least one of them still admits it. A filter that does not admit what was nevertheless
released is dead from then on, and stays dead: the pure sum lies above ε, the residue is None. At the moment the
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

from discreet.accounting import residue
from discreet.accounting.curves import mu_of_budget
from discreet.accounting.loss import Loss
from discreet.exact import Number, ceiling, floor, fraction


@dataclass(frozen=True)
class Spent:
    """What one account has spent, rounded up.

    `pure` is None once a release without a finite ε was admitted. `mu_squared` is the part of the budget's own μ² that
    is taken; None once a release was admitted that the Gaussian residue did not.
    """

    pure: Fraction | None = Fraction(0)
    mu_squared: Fraction | None = Fraction(0)
    keys: Fraction = Fraction(0)

    def to_json(self) -> dict[str, Any]:
        return {"pure": _written(self.pure), "mu_squared": _written(self.mu_squared), "keys": str(self.keys)}

    @staticmethod
    def from_json(state: dict[str, Any]) -> Spent:
        return Spent(_read(state["pure"]), _read(state["mu_squared"]), Fraction(state["keys"]))


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
        object.__setattr__(self, "spent", Spent() if spent is None else spent)
        if self.epsilon <= 0 or not 0 <= self.keys_delta <= self.delta < 1:
            raise ValueError("a filter needs epsilon > 0 and 0 <= keys_delta <= delta < 1")

    @property
    def mu_squared(self) -> Fraction:
        """The whole μ² of the budget, rounded down."""
        return floor(mu_of_budget(self.epsilon, self.delta - self.keys_delta) ** 2)

    @property
    def residue(self) -> Fraction | None:
        """What is left of the whole μ²; None once that filter is dead."""
        taken = self.spent.mu_squared
        return None if taken is None or taken > self.mu_squared else self.mu_squared - taken

    @property
    def alive(self) -> bool:
        """Whether what was spent keeps the promise."""
        pure = self.spent.pure is not None and self.spent.pure <= self.epsilon
        return (pure or self.residue is not None) and self.spent.keys <= self.keys_delta

    def after(self, loss: Loss) -> Filter:
        """The state after one more release, admitted or not: every counter is debited, also those over their cap."""
        spent, left = self.spent, residue.charge(loss, self.residue)
        pure = None if spent.pure is None or loss.pure is None else ceiling(spent.pure + loss.pure)
        taken = None if left is None else ceiling(self.mu_squared - left)
        return replace(self, spent=Spent(pure, taken, ceiling(spent.keys + loss.keys_delta)))

    def admits(self, loss: Loss) -> bool:
        """Whether one more release of this loss keeps the promise. Depends on losses alone, never on data."""
        return self.after(loss).alive

    def charge(self, loss: Loss) -> Filter:
        """The filter after the release. Raises ValueError where it is not admitted."""
        after = self.after(loss)
        if not after.alive:
            raise ValueError("the budget does not admit this release")
        return after

    def left(self, like: Loss) -> int:
        """How many more releases of this loss would be admitted, one after another."""
        counts = [residue.times(like, self.residue, _MANY)]
        if self.spent.pure is not None and like.pure is not None and self.spent.pure <= self.epsilon:
            counts.append(_times(self.epsilon - self.spent.pure, like.pure))
        return min(max(counts), _times(self.keys_delta - self.spent.keys, like.keys_delta))

    def used(self) -> Fraction:
        """The part of the budget that is used, 0 to 1: that of the filter which has the most room."""
        parts = [Fraction(1)]
        if self.spent.pure is not None:
            parts.append(self.spent.pure / self.epsilon)
        if self.mu_squared and self.spent.mu_squared is not None:
            parts.append(self.spent.mu_squared / self.mu_squared)
        return min(parts)


_MANY = 10**9


def _times(room: Fraction, cost: Fraction) -> int:
    return _MANY if cost == 0 else max(0, min(_MANY, room // cost))


def _written(amount: Fraction | None) -> str | None:
    return None if amount is None else str(amount)


def _read(text: str | None) -> Fraction | None:
    return None if text is None else Fraction(text)
