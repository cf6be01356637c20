"""Whether draws follow the distribution that a mechanism claims: the sharpest guard against noise that is too small.

Outcomes are put into classes that do not depend on the draws: single outcomes, and for numbers also "at most k" and
"within ±k" at quantiles of the claimed distribution. The number of draws in a class is binomial, and its tail is summed
exactly (`bound`); the smallest of the p-values, times how many there are, is the p-value of all (Bonferroni). So it is
right at chances of 1e-8 too, where a chi-square or normal approximation is not.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Sequence

from discreet.audit.bound import either_side
from discreet.audit.claims import Claim, Result
from discreet.audit.pmf import Distribution, Law

_LEVELS = (0.001, 0.01, 0.05, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 0.95, 0.99, 0.999)
_RARE = 1e-12  # what rounding may leave of a probability


def of_outcomes(drawn: Sequence[Hashable], expected: Distribution) -> tuple[float, str]:
    """The p-value of draws with finitely many outcomes, and the class that fits worst."""
    seen, size = Counter(drawn), len(drawn)
    classes = {outcome: mass for outcome, mass in expected.items() if mass * size >= 1}
    rest = max(_RARE, 1 - sum(classes.values()))
    worst, where = either_side(size - sum(seen[outcome] for outcome in classes), size, rest), "any other outcome"
    for outcome, mass in classes.items():
        value = either_side(seen[outcome], size, mass)
        if value < worst:
            worst, where = value, f"outcome {outcome}"
    return min(1.0, worst * (len(classes) + 1)), where


def of_numbers(drawn: Sequence[float], law: Law) -> tuple[float, str]:
    """The p-value of draws that should be integers with this law, symmetric around 0, and the class that fits worst."""
    if any(not isinstance(value, int) for value in drawn):
        return 0.0, "values that are no integers"
    size = len(drawn)
    ordered, sizes = sorted(drawn), sorted(abs(value) for value in drawn)
    classes: list[tuple[str, int, float]] = []
    for level in _LEVELS:
        most = _quantile(law, level)
        classes.append((f"at most {most}", _up_to(ordered, most), law(most)))
        within = _quantile(lambda k: law(k) - law(-k - 1) if k >= 0 else 0.0, level)
        classes.append((f"within ±{within}", _up_to(sizes, within), law(within) - law(-within - 1)))
    worst, where = 1.0, ""
    for name, hits, chance in classes:
        if _RARE < chance < 1 - _RARE and (value := either_side(hits, size, chance)) < worst:
            worst, where = value, f"{name}: {hits / size:.4g} of them, {chance:.4g} expected"
    return min(1.0, worst * len(classes)), where


def _up_to(ordered: Sequence[float], most: int) -> int:
    return bisect_right(ordered, most)


def _quantile(law: Callable[[int], float], level: float) -> int:
    """The least k with P(X ≤ k) ≥ level."""
    low, high = -1, 1
    while law(low) >= level:
        low *= 2
    while law(high) < level:
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if law(middle) >= level else (middle, high)
    return high


def judged(subject: str, claim: Claim, found: tuple[float, str], draws: int, miss: float) -> Result:
    """The claim about a distribution is broken where the p-value is below `miss`."""
    value, where = found
    return Result(subject, "fit", claim, None, value < miss, f"p = {value:.2g}, {where}" if where else "", draws)
