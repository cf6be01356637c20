"""The claimed privacy loss of a release, and the result of an attack on the claim."""

from __future__ import annotations

import math
from dataclasses import dataclass

from discreet.accounting import Loss
from discreet.audit.bound import epsilon_bound, mu_bound

FALSE_ALARM = 1e-6
"""The chance that an audit of a right program finds anything, over all tests of one run together."""

REPORTED = 1e-3
"""The chance that a reported lower bound of one subject is too high. A finding needs far more than that."""

SLACK = 1e-9
"""What is computed in doubles is right to less than this, and counts as broken only above it."""


TINY = 1e-12
"""The same for a δ."""


@dataclass(frozen=True)
class Claim:
    """A promise: (epsilon, delta), or mu-GDP but for an event of probability delta.

    With `of_delta`, what is looked for is the δ at this epsilon, not the ε at this delta.
    """

    epsilon: float = 0.0
    delta: float = 0.0
    mu: float | None = None
    of_delta: bool = False

    @classmethod
    def of(cls, loss: Loss) -> Claim:
        """What the ledger charges for a release."""
        delta = float(loss.keys_delta)
        if loss.pure is not None:
            return cls(float(loss.pure), delta)
        if loss.mu_squared is None:
            raise ValueError("an audit needs a loss that is pure or Gaussian")
        return cls(0.0, delta, math.sqrt(float(loss.mu_squared)))

    @property
    def amount(self) -> float:
        """What is promised, in `unit`."""
        if self.of_delta:
            return self.delta
        return self.epsilon if self.mu is None else self.mu

    @property
    def unit(self) -> str:
        """ε, μ or δ."""
        if self.of_delta:
            return "δ"
        return "ε" if self.mu is None else "μ"

    def exceeded(self, found: float) -> bool:
        """Whether what was computed exactly is more than what was promised."""
        return found > self.amount * (1 + SLACK) + (TINY if self.of_delta else SLACK)

    def bound(self, likely: int, rare: int, draws: int, miss: float) -> float:
        """A lower confidence bound on ε or μ from these counts of one event on two neighbours, wrong with probability
        at most `miss`."""
        prove = epsilon_bound if self.mu is None else mu_bound
        return prove(likely, rare, draws, self.delta, miss)


@dataclass(frozen=True)
class Result:
    """What one attack on one subject found.

    `how` is sampled, guessed, exact, fit, change, asked or interaction. `found` is in the claim's unit: for samples and
    guesses a lower bound, else the loss itself; None for a fit, which speaks of a distribution and not of a loss.
    `broken` says that the claim does not hold. `event` says in words what tells the neighbours apart. `draws` counts
    draws on both.
    """

    subject: str
    how: str
    claim: Claim
    found: float | None
    broken: bool
    event: str = ""
    draws: int = 0

    def to_dict(self) -> dict[str, object]:
        """Plain values for JSON; what was found is a text where it is infinite."""
        claim = self.claim
        claimed: dict[str, object] = {"delta": claim.delta}
        claimed |= {"epsilon": claim.epsilon} if claim.mu is None else {"mu": claim.mu}
        found = self.found if self.found is None or math.isfinite(self.found) else str(self.found)
        return {
            "subject": self.subject,
            "how": self.how,
            "claimed": claimed,
            "unit": claim.unit,
            "found": found,
            "broken": self.broken,
            "event": self.event,
            "draws": self.draws,
        }
