"""The measurement that follows once bounds were found that nobody had declared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from discreet.plan.bounds import plan
from discreet.plan.measurement import Measurement, Price, measurement


def settled(priced: Measurement, found: Sequence[tuple[Fraction, Fraction]]) -> Measurement:
    """The question planned anew with the bounds that were found, at what is left of its price.

    It costs what was reserved for it: all its parts together at most the rest of epsilon, and the same δ for private
    keys, as one loss. Its parts may be others than the first plan's: known bounds make two columns of one, or one of
    two, so nothing smaller than the whole was reserved. That the second release is chosen by the first is adaptive
    composition, which both filters cover.
    """
    if not priced.ranges:
        return priced
    old = priced.plan
    bounds = tuple((one.expression, pair) for one, pair in zip(old.ranges, found, strict=True))
    made = plan(replace(old.request, found=bounds))
    made = replace(made, having=old.having, order=old.order, limit=old.limit, written=old.written)
    rest = priced.price.epsilon * Fraction(4, 5)
    return measurement(made, Price(rest, priced.price.delta if made.private else Fraction(0)))
