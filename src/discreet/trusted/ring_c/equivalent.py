"""The Gaussian loss that stands for a whole batch in a filter, but for an event of small probability."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from discreet.trusted.ring_a.exact import Number, ceiling, fraction
from discreet.trusted.ring_c.batch import Composition
from discreet.trusted.ring_c.convolve import PrivacyLosses, Sum, add
from discreet.trusted.ring_c.privacy_loss import Floats
from discreet.trusted.ring_c.search_window import locate

_PLACES = 600
_UP = 1 + 1e-9
_LARGEST = 64.0


def gaussian_equivalent(batch: Composition, delta: Number) -> Fraction:
    """A μ such that the batch tells no more than: everything with probability δ, else one μ-GDP release. Rounded up.

    The claim is H_x(batch) ≤ δ + (1 − δ)·H_x(G_μ) for all x > 0; by Blackwell's theorem the batch then is a
    post-processing of such a pair. x ≥ 1 in both directions is enough, since H_x(P, Q) = 1 − x + x·H_{1/x}(Q, P).
    Both sides are convex in x: between two places the left is below its chord and the right above its tangent in the
    middle, so two comparisons at the ends prove the whole interval. Once the left is at most δ, it stays so. The left
    is the upper bound of `compose`.
    """
    exact = fraction(delta)
    if not 0 < exact < 1:
        raise ValueError("delta must lie between 0 and 1")
    if batch.infinity_mass:
        raise ValueError("losses with a keys_delta must be counted separately")
    if batch.too_large:
        raise ValueError("the batch is too large to be covered by a mu-GDP event")
    if batch.only_gaussian is not None:
        return ceiling(Fraction(batch.only_gaussian) * Fraction(_UP), 12)
    level = float(exact) * (1 - 1e-9)
    needed = 0.0
    for laws in batch.directions:
        found = upper_sums(laws, level)
        if found[-1].infinity_mass >= level:
            raise ValueError("the batch needs a delta at least as large")
        places, heights = _curve(found, level)
        needed = max(needed, _least_mu(places, heights, level))
    return ceiling(Fraction(needed), 9)


def upper_sums(laws: PrivacyLosses, level: float) -> list[Sum]:
    """Upper bounds that are close at small ε, between, and where δ comes down to the level."""
    rough, steepest = locate(laws, delta=level)
    plans = [rough.plan(part * steepest) for part in (0.0, 0.25, 1.0)]
    return [add(laws, replace(plan, low=min(plan.low, -8 * plan.step)), upward=True) for plan in plans]


def _curve(found: list[Sum], level: float) -> tuple[Floats, Floats]:
    """ε from 0 on, and upper bounds on δ there, down to the level."""
    end = max(0.0, found[-1].near(level))
    while min(bound.delta(end) for bound in found) > level:
        end += 1e-9 + 1e-3 * end
    places = np.linspace(0.0, end, _PLACES)
    return places, np.minimum.reduce([bound.deltas(places) for bound in found])


def _least_mu(places: Floats, heights: Floats, level: float) -> float:
    """Bisection on μ; what is returned has passed every comparison, with room for rounding."""
    excess = (heights * _UP - level) / (1 - level)
    low, high = 0.0, 1.0
    while not _above(places, excess, high):
        low, high = high, high * 2
        if high > _LARGEST:
            raise ValueError("the batch is too large to be covered by a mu-GDP event")
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if _above(places, excess, middle) else (middle, high)
    return high


def _above(places: Floats, excess: Floats, mu: float) -> bool:
    middles = (places[:-1] + places[1:]) / 2
    root = math.sqrt(2)
    first = np.array([math.erfc(a) for a in ((middles / mu - mu / 2) / root).tolist()]) / 2
    second = np.array([math.erfc(a) for a in ((middles / mu + mu / 2) / root).tolist()]) / 2
    height = first - np.exp(middles) * second
    ends = (
        height - (np.exp(places[:-1]) - np.exp(middles)) * second,
        height - (np.exp(places[1:]) - np.exp(middles)) * second,
    )
    room = 1e-13 * (1 + np.exp(places[1:]) * second)
    return bool(np.all(excess[:-1] <= ends[0] - room) and np.all(excess[1:] <= ends[1] - room))
