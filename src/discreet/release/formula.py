"""Columns computed from noisy aggregates: 100 * SUM(a) / SUM(b)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from discreet.release.rows import value_of
from discreet.release.values import FAR
from discreet.trusted.ring_a.expressions import Call, ColumnOf, Expression, Literal

Interval = tuple[float, float]
Column = tuple[list[Any], list[Interval] | None]

_MONOTONE = {"add", "subtract", "multiply", "divide", "negate", "round"}
_MOST = 6


def computed(expression: Expression | None, columns: Mapping[str, Column], groups: int) -> Column:
    """Values, and intervals where the formula is + - * / of at most six aggregates that all have some.

    The aggregates' intervals hold together as often as asked for (the union bound). Over a box, a formula that is
    monotone in each variable is largest and smallest at corners; where a divisor may be 0 nothing is known.
    """
    assert expression is not None
    values = [
        _number(expression, {name: column[0][place] for name, column in columns.items()}) for place in range(groups)
    ]
    known = {name: intervals for name, (_, intervals) in columns.items() if intervals is not None}
    if len(known) < len(columns) or len(columns) > _MOST or not _once(expression):
        return values, None
    intervals = []
    for place in range(groups):
        corners = itertools.product(*(known[name][place] for name in columns))
        found = [_number(expression, dict(zip(columns, corner, strict=True))) for corner in corners]
        box = {name: known[name][place] for name in columns}
        sure = all(end is not None for end in found) and not _divides_by_zero(expression, box)
        ends = [float(end) for end in found if end is not None]
        intervals.append((min(ends), max(ends)) if sure else (-FAR, FAR))
    return values, intervals


def _number(expression: Expression, row: Mapping[str, Any]) -> float | None:
    value: float | None = value_of(expression, row)
    if value is None or not math.isfinite(value):
        return None
    return round(value) if _whole(expression, row) else value


def _whole(expression: Expression, row: Mapping[str, Any]) -> bool:
    """Whether the result is a whole number: of whole numbers, by + - * alone."""
    if isinstance(expression, ColumnOf):
        return isinstance(row[expression.name], int)
    if isinstance(expression, Literal):
        return isinstance(expression.value, int)
    usual = expression.operator in ("add", "subtract", "multiply", "negate")
    return usual and all(_whole(argument, row) for argument in expression.arguments)


def _once(expression: Expression) -> bool:
    """Whether the formula is arithmetic in which each aggregate stands once: then it is monotone in each."""
    names: list[str] = []

    def walk(one: Expression) -> bool:
        if isinstance(one, ColumnOf):
            names.append(one.name)
            return True
        if isinstance(one, Literal):
            return True
        return one.operator in _MONOTONE and all(walk(argument) for argument in one.arguments)

    return walk(expression) and len(names) == len(set(names))


def _divides_by_zero(expression: Expression, box: Mapping[str, Interval]) -> bool:
    """Whether some divisor may be 0 inside the box."""
    if not isinstance(expression, Call):
        return False
    if expression.operator == "divide" and _spans_zero(expression.arguments[1], box):
        return True
    return any(_divides_by_zero(argument, box) for argument in expression.arguments)


def _spans_zero(divisor: Expression, box: Mapping[str, Interval]) -> bool:
    ends = _corners(divisor, box)
    return any(end is None for end in ends) or min(e for e in ends if e is not None) <= 0 <= max(
        e for e in ends if e is not None
    )


def _corners(expression: Expression, box: Mapping[str, Interval]) -> Sequence[float | None]:
    return [_number(expression, dict(zip(box, corner, strict=True))) for corner in itertools.product(*box.values())]
