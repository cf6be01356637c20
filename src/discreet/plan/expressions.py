"""The interval that what is computed from one row lies in, from the declared bounds alone."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from discreet.plan.ranges import RULES
from discreet.trusted.ring_a.expressions import Call, ColumnOf, Expression, Literal
from discreet.trusted.ring_a.table import Column

Interval = tuple[Fraction, Fraction] | None
"""Where a number's values lie, ends included; None where nothing is known."""


def interval(expression: Expression, columns: Mapping[str, Column]) -> Interval:
    """The interval that a numeric expression's non-NULL values lie in, from the declared bounds alone.

    Interval arithmetic (Moore 1966): each operator's result encloses all results of values from its arguments'
    intervals. The engine computes in doubles, so a value may leave the interval by rounding; the lattice clamps every
    row to it, so sensitivity does not rest on this.
    """
    if isinstance(expression, Literal):
        value = expression.value
        return (Fraction(value), Fraction(value)) if isinstance(value, int | Fraction) else None
    if isinstance(expression, ColumnOf):
        column = columns[expression.name]
        if column.values is not None and expression.type.numeric:
            return None  # other values than the declared keys may stand in the column
        low, high = column.minimum, column.maximum
        if isinstance(low, int | Fraction) and isinstance(high, int | Fraction):
            return Fraction(low), Fraction(high)
        return None
    return _call_interval(expression, columns)


def _call_interval(call: Call, columns: Mapping[str, Column]) -> Interval:
    if (rule := RULES.get(call.operator)) is not None:
        return rule(call, [interval(argument, columns) for argument in call.arguments], columns)
    if call.operator == "case":
        branches = [interval(result, columns) for result in case_results(call)]
        return _union(
            [branch for branch, result in zip(branches, case_results(call), strict=True) if not _is_null(result)]
        )
    sides = [interval(argument, columns) for argument in call.arguments if not _is_null(argument)]
    if call.operator == "coalesce":
        return _union(sides)
    if any(side is None for side in sides) or len(sides) < len(call.arguments):
        return None
    known = [side for side in sides if side is not None]
    if call.operator == "negate":
        (low, high) = known[0]
        return -high, -low
    if call.operator == "absolute":
        (low, high) = known[0]
        return (Fraction(0) if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))
    if len(known) != 2:
        return None
    (a, b), (c, d) = known
    if call.operator == "add":
        return a + c, b + d
    if call.operator == "subtract":
        return a - d, b - c
    if call.operator == "divide":
        if c <= 0 <= d:
            return None
        c, d = 1 / d, 1 / c
    if call.operator in ("multiply", "divide"):
        products = (a * c, a * d, b * c, b * d)
        return min(products), max(products)
    return None


def case_results(call: Call) -> tuple[Expression, ...]:
    """The results of a CASE, whose arguments are condition, result, condition, result, …, otherwise."""
    return (*call.arguments[1:-1:2], call.arguments[-1])


def _is_null(expression: Expression) -> bool:
    return isinstance(expression, Literal) and expression.value is None


def _union(sides: list[Interval]) -> Interval:
    known = [side for side in sides if side is not None]
    if not sides or len(known) < len(sides):
        return None
    return min(low for low, _ in known), max(high for _, high in known)
