"""Splits a price over a plan's parts: one mechanism for each, fitted to its sensitivity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import assert_never

from discreet.errors import QuestionError
from discreet.mechanisms.accuracy import expected_error
from discreet.mechanisms.lowest_threshold import gaussian_threshold, laplace_threshold
from discreet.plan.measurement import Measurement, Mechanism, Plan, Price
from discreet.plan.outputs import OutputKind
from discreet.plan.planner import Request
from discreet.plan.planner import plan as planned
from discreet.trusted.ring_a.additive import Gaussian, Laplace
from discreet.trusted.ring_a.curves import mu_of_budget
from discreet.trusted.ring_a.exact import sqrt_ceiling
from discreet.trusted.ring_a.loss import Approximate, Pure
from discreet.trusted.ring_a.measurement import Measured
from discreet.trusted.ring_a.nodes import Part, PartKind
from discreet.trusted.ring_a.sensitivity import Sensitivity, sensitivity
from discreet.trusted.ring_a.threshold import Threshold
from discreet.trusted.ring_b.joint import Ball
from discreet.trusted.ring_b.logarithmic import LogarithmicRange
from discreet.trusted.ring_b.order_statistics import (
    Distinct,
    Special,
    SpecialKind,
    SpecialMechanism,
    rows_reached,
    values_reached,
)
from discreet.trusted.ring_b.quantile import Quantiles
from discreet.trusted.ring_b.winners import Winners

SMALLEST = Fraction(1, 10**12)
"""The least epsilon of one aggregate. Noise for less may be larger than what can be drawn: that would be found out when
the price is paid. A thousandth of the least that a whole question may cost, so no share of that is less."""


def measurement(plan: Plan, price: Price) -> Measurement:
    """Fits mechanisms to the plan so that the whole release costs the price.

    Privacy: each part's mechanism has the loss that its docstring proves at the sensitivity that the fold proves; the
    parts are released together, so their losses add (pure ε: Dwork & Roth 2014, Theorem 3.16; Gaussian: the parts'
    vectors divided by their sigmas are one Gaussian vector of squared sensitivity Σ Δ²/σ²).

    The split. A part whose share of the price is p has errors proportional to 1/p (Laplace, the joint noise, and how
    far the threshold of private keys lies above 0) or 1/√p of μ² (Gaussian). What is minimised is Σ log(error) over the
    columns of the answer, that is the mean relative error whatever their units, with the threshold as one column more:
    minimise −Σ nᵢ·log pᵢ for a part that nᵢ columns are made of, Σ pᵢ = 1. By Lagrange pᵢ ∝ nᵢ, for either noise. It
    depends on the plan alone.

    With delta > 0, Gaussian noise with the largest μ that implies (epsilon, delta) is taken if its expected error,
    relative to that of the Laplace noise, is smaller on average over the columns. With private keys it gets half of
    delta, the threshold the other half.

    Specials count as one column each. An aggregate whose epsilon the question names gets that, and the others share the
    rest. Where bounds have to be found, a fifth of epsilon finds them. What follows is planned anew with them, in parts
    that may be others than here (`_replanned`), so it is charged as one release of all that is left: as pure ε, or
    with private keys as (ε, δ), which holds whatever its parts.
    """
    ranges = _ranges(plan, price.epsilon / 5) if plan.ranges else ()
    rest = price.epsilon * Fraction(4, 5) if ranges else price.epsilon
    bounds = [sensitivity(plan.root, part) for part in plan.parts]
    uses = [_uses(plan, index) for index in range(len(plan.parts))]
    amounts = _amounts([*plan.parts, *plan.specials], [*uses, *(1 for _ in plan.specials)], rest)
    specials = tuple(map(_special, plan.specials, amounts[len(uses) :]))
    spent = sum(amounts[: len(uses)], Fraction(0))
    shares = [amount / spent for amount in amounts[: len(uses)]]
    main = replace(price, epsilon=spent, delta=Fraction(0) if ranges and not plan.private else price.delta)
    chosen = _laplace(plan, bounds, shares, main)
    fixed = any(part.epsilon is not None for part in plan.parts)
    if main.delta > 0 and (main.gaussian or not plan.private) and not fixed and not ranges and plan.parts:
        gaussian = _gaussian(plan, bounds, shares, main)
        if gaussian and _ratio(gaussian, chosen, uses) < 1:
            chosen = gaussian
    mechanisms = tuple(measured.mechanism for measured in chosen)
    if not ranges:
        return Measurement(plan, mechanisms, specials, price=price)
    after = Approximate(rest, price.delta) if plan.private else Pure(rest)
    return Measurement(plan, mechanisms, specials, ranges, after, price, replan=partial(_replanned, plan, price))


def _replanned(old: Plan, price: Price, found: Sequence[tuple[Fraction, Fraction]]) -> Measurement:
    """The question planned anew with the bounds that were found, at what is left of its price.

    Its parts may be others than the first plan's: known bounds make two columns of one, or one of two, so nothing
    smaller than all that is left was reserved.
    """
    assert isinstance(old.request, Request)
    bounds = tuple((one.expression, pair) for one, pair in zip(old.ranges, found, strict=True))
    made = planned(replace(old.request, found=bounds))
    made = replace(made, having=old.having, order=old.order, limit=old.limit, written=old.written)
    rest = price.epsilon * Fraction(4, 5)
    return measurement(made, Price(rest, price.delta if made.private else Fraction(0)))


def _amounts(pieces: Sequence[Part | Special], uses: Sequence[int], whole: Fraction) -> list[Fraction]:
    """The epsilon of each piece: as the question names it, or its share of what is left."""
    named = sum((piece.epsilon for piece in pieces if piece.epsilon is not None), Fraction(0))
    shared = sum(count for piece, count in zip(pieces, uses, strict=True) if piece.epsilon is None)
    if named > whole or (named == whole and shared):
        message = "Epsilon overconsumption: the sum of all epsilon arguments cannot exceed the epsilon option"
        fix = "name smaller ones, and leave something for the other aggregates and for private keys"
        raise QuestionError("price", message, where="epsilon", fix=fix)
    left = whole - named
    amounts = [
        piece.epsilon if piece.epsilon is not None else left * count / shared
        for piece, count in zip(pieces, uses, strict=True)
    ]
    if min(amounts, default=SMALLEST) < SMALLEST:
        message = f"an aggregate would get less than epsilon {float(SMALLEST):g}"
        raise QuestionError("price", message, where="epsilon", fix="leave out its epsilon, or name more for it")
    return amounts


def _ranges(plan: Plan, epsilon: Fraction) -> tuple[LogarithmicRange, ...]:
    """For each expression without bounds, what finds them: a person has so many rows in its counts as count at all."""
    share = epsilon / len(plan.ranges)
    return tuple(LogarithmicRange(share, rows_reached(one.root)) for one in plan.ranges)


def _special(one: Special, epsilon: Fraction) -> SpecialMechanism:
    match one.kind:
        case SpecialKind.DISTINCT:
            assert isinstance(one.root, Distinct)
            return Laplace(values_reached(one.root) / epsilon)
        case SpecialKind.WINNERS:
            rows = rows_reached(one.root)
            return Winners(epsilon, min(one.k, len(one.values)), rows, rows)
        case SpecialKind.QUANTILES:
            assert one.lattice is not None
            return Quantiles(epsilon, one.fractions, one.lattice.width + 1, rows_reached(one.root))
        case _:
            assert_never(one.kind)


def _uses(plan: Plan, index: int) -> int:
    """How many different numbers are made of a part, whatever they are called."""
    own = [
        output
        for output in plan.outputs
        if output.kind not in (OutputKind.KEY, OutputKind.SPECIAL) and output.index == index
    ]
    made = len({(output.kind, output.weights) for output in own})
    return max(1, made) + (1 if made and plan.parts[index].kind is PartKind.KEYS else 0)


def _laplace(plan: Plan, bounds: list[Sensitivity], shares: list[Fraction], price: Price) -> tuple[Measured, ...]:
    measured = []
    for part, bound, share in zip(plan.parts, bounds, shares, strict=True):
        epsilon = price.epsilon * share
        mechanism: Mechanism
        if part.kind is PartKind.KEYS:
            mechanism = laplace_threshold(epsilon, price.delta, bound.l1)
            mechanism = replace(mechanism, threshold=mechanism.threshold + plan.least - 1)
        elif part.kind is PartKind.JOINT:
            mechanism = Ball(bound.l1 / epsilon, part.blocks)
        else:
            mechanism = Laplace(bound.l1 / epsilon)
        measured.append(Measured(part, bound, mechanism))
    return tuple(measured)


def _gaussian(plan: Plan, bounds: list[Sensitivity], shares: list[Fraction], price: Price) -> tuple[Measured, ...]:
    delta = price.delta / 2 if plan.private else price.delta
    mu = mu_of_budget(price.epsilon, delta)
    if mu == 0:
        return ()
    measured = []
    for part, bound, share in zip(plan.parts, bounds, shares, strict=True):
        mechanism: Mechanism
        if part.kind is PartKind.KEYS:
            mechanism = gaussian_threshold(mu**2 * share, delta, bound.l1)
            mechanism = replace(mechanism, threshold=mechanism.threshold + plan.least - 1)
        else:
            mechanism = Gaussian(sqrt_ceiling(bound.l2_squared / (share * mu**2)))
        measured.append(Measured(part, bound, mechanism))
    return tuple(measured)


def _ratio(gaussian: tuple[Measured, ...], laplace: tuple[Measured, ...], uses: list[int]) -> float:
    """The mean of the errors' quotients; of thresholds too, which stand for what is left out."""
    total = 0.0
    for one, other, count in zip(gaussian, laplace, uses, strict=True):
        if isinstance(one.mechanism, Threshold) and isinstance(other.mechanism, Threshold):
            below = expected_error(other.mechanism.noise)
            noise = expected_error(one.mechanism.noise) / below if below else math.inf
            total += (count - 1) * noise + one.mechanism.threshold / other.mechanism.threshold
        else:
            assert isinstance(one.mechanism, Laplace | Gaussian | Ball)
            assert isinstance(other.mechanism, Laplace | Gaussian | Ball)
            below = expected_error(other.mechanism)
            total += count * (expected_error(one.mechanism) / below if below else math.inf)
    return total / sum(uses)
