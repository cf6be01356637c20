"""Exact privacy loss between two known distributions, without sampling."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence

from discreet.audit.claims import Claim, Result
from discreet.audit.pmf import Distribution

_STEPS = 100


def loss(first: Distribution, second: Distribution) -> tuple[float, Hashable]:
    """The largest logarithm of a probability ratio, either way, and the outcome where it lies."""
    worst, where = 0.0, None
    for outcome in {**first, **second}:
        one, other = first.get(outcome, 0.0), second.get(outcome, 0.0)
        if one == other:
            continue
        ratio = math.inf if not one or not other else abs(math.log(one / other))
        if ratio > worst:
            worst, where = ratio, outcome
    return worst, where


def hockey_stick(first: Distribution, second: Distribution, epsilon: float) -> float:
    """The least δ with which the two are (ε, δ)-close, in both directions."""
    factor = math.exp(epsilon)
    outcomes = {**first, **second}
    return max(
        math.fsum(max(0.0, one.get(x, 0.0) - factor * other.get(x, 0.0)) for x in outcomes)
        for one, other in ((first, second), (second, first))
    )


def gaussian_delta(mu: float, epsilon: float) -> float:
    """δ(ε) of two normal distributions a distance μ apart (Balle & Wang 2018, Theorem 8)."""
    if mu == 0:
        return 0.0
    root = math.sqrt(2)
    first = math.erfc((epsilon / mu - mu / 2) / root) / 2
    second = math.erfc((epsilon / mu + mu / 2) / root) / 2
    return first - math.exp(epsilon) * second


def needed(first: Distribution, second: Distribution, claim: Claim) -> tuple[float, str]:
    """The least ε (with the claim's δ), or μ, that covers the two distributions, and where they differ most."""
    if claim.mu is not None:
        return _mu(first, second), ""
    if claim.delta == 0:
        worst, where = loss(first, second)
        return worst, f"outcome {where}"
    if hockey_stick(first, second, 0) <= claim.delta:
        return 0.0, ""
    if hockey_stick(first, second, 700) > claim.delta:
        return math.inf, "outcomes that only one of the two has"
    return _least(lambda epsilon: hockey_stick(first, second, epsilon) <= claim.delta, 700), ""


def _mu(first: Distribution, second: Distribution) -> float:
    """The least μ that covers the distances at some ε: a lower bound of the true one, and close to it."""
    curve = [(epsilon, hockey_stick(first, second, epsilon)) for epsilon in (0, 0.25, 0.5, 1, 1.5, 2, 3, 4)]
    return _least(lambda mu: all(gaussian_delta(mu, epsilon) >= delta - 1e-14 for epsilon, delta in curve), 60)


def _least(holds: Callable[[float], bool], most: float) -> float:
    low, high = 0.0, float(most)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def held(subject: str, claim: Claim, pairs: Sequence[tuple[Distribution, Distribution, str]]) -> Result:
    """The claim against the worst of some pairs of neighbours."""
    worst, event = -math.inf, ""
    for first, second, where in pairs:
        found, outcome = needed(first, second, claim)
        if found > worst:
            worst, event = found, f"{where} {outcome}".strip()
    return Result(subject, "exact", claim, worst, claim.exceeded(worst), event)
