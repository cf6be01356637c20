"""Properties of expressions that do not depend on ranges of values."""

from __future__ import annotations

from fractions import Fraction

from discreet.trusted.ring_a.expressions import Call, Expression

Interval = tuple[Fraction, Fraction] | None
"""Where a number's values lie, ends included; None where nothing is known."""


def case_results(call: Call) -> tuple[Expression, ...]:
    """The results of a CASE, whose arguments are condition, result, condition, result, …, otherwise."""
    return (*call.arguments[1:-1:2], call.arguments[-1])
