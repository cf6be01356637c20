"""Which rows stand in an answer, in which order; expressions on them, with SQL's NULL."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from discreet.plan.measurement import Plan
from discreet.trusted.ring_a.expressions import Call, ColumnOf, Expression, Literal
from discreet.trusted.ring_a.table import Value

Row = Mapping[str, Any]


def arranged(plan: Plan, groups: Sequence[Sequence[Value | None]], rows: Sequence[Row]) -> list[int]:
    """Which rows stand in the answer, in which order: HAVING, ORDER BY and LIMIT on the noisy values; without ORDER BY
    as the values of the first column of GROUP BY come, then of the second, and so on."""
    picked = [index for index in range(len(rows)) if plan.having is None or value_of(plan.having, rows[index]) is True]
    for place in reversed(plan.written):
        first = {value: number for number, value in reversed(list(enumerate(group[place] for group in groups)))}
        picked.sort(key=lambda index: first[groups[index][place]])
    for place, descending in reversed(plan.order):
        name = plan.outputs[place].name
        picked.sort(key=lambda index: (rows[index][name] is not None, rows[index][name]), reverse=descending)
    return picked if plan.limit is None else picked[: plan.limit]


_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "equal": lambda a, b: a == b,
    "not_equal": lambda a, b: a != b,
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
    "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
    # in floating point, where what is too large is infinite and no error
    "add": lambda a, b: float(a) + float(b),
    "subtract": lambda a, b: float(a) - float(b),
    "multiply": lambda a, b: float(a) * float(b),
    "divide": lambda a, b: float(a) / float(b) if b else None,
    "round": lambda a, places: round(float(a), max(-300, min(300, int(places)))),
}


def value_of(expression: Expression, row: Row) -> Any:
    """An expression on one row of the answer, with SQL's NULL."""
    if isinstance(expression, Literal):
        value = expression.value
        if isinstance(value, Fraction):
            return float(value)
        return value.isoformat() if isinstance(value, datetime.date) else value
    if isinstance(expression, ColumnOf):
        return row[expression.name]
    return _called(expression, row)


def _called(call: Call, row: Row) -> Any:
    if call.operator == "case":
        for condition, result in zip(call.arguments[0:-1:2], call.arguments[1:-1:2], strict=True):
            if value_of(condition, row) is True:
                return value_of(result, row)
        return value_of(call.arguments[-1], row)
    values = [value_of(argument, row) for argument in call.arguments]
    if call.operator == "is_null":
        return values[0] is None
    if call.operator == "coalesce":
        return next((value for value in values if value is not None), None)
    if call.operator in ("and", "or"):
        decisive = call.operator == "or"
        if decisive in values:
            return decisive
        return None if None in values else not decisive
    if any(value is None for value in values):
        return None
    if call.operator == "not":
        return not values[0]
    if call.operator == "negate":
        return -values[0]
    if call.operator == "absolute":
        return abs(values[0])
    if call.operator == "round" and len(values) == 1:
        return float(round(values[0]))
    if call.operator == "in":
        return values[0] in values[1:]
    if call.operator == "like":
        return _like(values[0], values[1])
    return _OPERATIONS[call.operator](*values)


def _like(value: str, pattern: str) -> bool:
    pieces = ["".join("." if letter == "_" else re.escape(letter) for letter in piece) for piece in pattern.split("%")]
    if len(pieces) > 1:  # each piece at its first place, for good: a pattern of many % is not tried over and over
        pieces = [pieces[0], *(f"(?>.*?{piece})" for piece in pieces[1:-1]), f".*{pieces[-1]}"]
    return re.fullmatch("".join(pieces), value, re.DOTALL) is not None
