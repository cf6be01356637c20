"""Intervals of counts that passed the threshold: selection makes large noise more likely, which is corrected."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from discreet.mechanisms import Laplace, Threshold


def shown_intervals(mechanism: Threshold, noisy: Sequence[int], miss: float) -> list[tuple[int, int]]:
    """For each shown count an interval that misses the truth with probability `miss` among the answers that show the
    group.

    Given that it is shown, a count v comes from the noise cut off at the threshold. The interval holds every truth
    c ≥ 1 for which neither P(V ≥ v | V ≥ threshold) nor P(V ≤ v | V ≥ threshold) is below miss/2 (Neyman 1937). Both
    are monotone in c, so its ends are found by halving. Far above the threshold it is v ± the noise's own half width.
    """
    wide = mechanism.noise.half_width(1 - miss)
    near: dict[int, tuple[int, int]] = {}
    found = []
    for value in noisy:
        if value - mechanism.threshold > 3 * wide:
            found.append((value - wide, value + wide))
            continue
        if value not in near:
            near[value] = _interval(mechanism, value, miss, wide)
        found.append(near[value])
    return found


def _interval(mechanism: Threshold, value: int, miss: float, wide: int) -> tuple[int, int]:
    at_least = _log_tail(mechanism)

    def above(truth: int) -> float:
        return at_least(value - truth) - at_least(mechanism.threshold - truth)

    def below(truth: int) -> float:
        return -math.expm1(min(0.0, at_least(value + 1 - truth) - at_least(mechanism.threshold - truth)))

    low = _first(lambda truth: above(truth) >= math.log(miss / 2), 1, max(1, value))
    beyond = _first(lambda truth: below(truth) < miss / 2, low, max(low, value) + 2 * wide + 1)
    return low, max(low, beyond - 1)


def _first(good: Callable[[int], bool], low: int, high: int) -> int:
    """The least number in [low, high] that is good, if goodness stays once it is reached; else `high`."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if good(middle) else (middle + 1, high)
    return low


def _log_tail(mechanism: Threshold) -> Callable[[int], float]:
    """log P(noise ≥ k)."""
    noise = mechanism.noise
    if isinstance(noise, Laplace):
        rate = float(1 / noise.scale)
        both = math.log1p(math.exp(-rate)) if rate < 700 else 0.0
        return lambda k: -rate * k - both if k >= 1 else math.log1p(-math.exp(-rate * (1 - k) - both))
    sigma = float(noise.sigma)

    def gaussian(k: int) -> float:
        z = (k - 0.5) / sigma / math.sqrt(2)
        return math.log(math.erfc(z) / 2) if z < 20 else -z * z - math.log(2 * z * math.sqrt(math.pi))

    return gaussian
