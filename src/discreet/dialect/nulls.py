"""Which expressions can be NULL, from declarations alone.

A column has no NULL where the owner declared so (`nulls = false`), where it holds the person, or where a condition that
every row meets is not true of NULL. It decides which keys get a group for NULL and what is measured of rows without
a value; no bound rests on it. A NULL that stands where none can be declared has no group: its row is left out there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from discreet.dialect.cases import case_results
from discreet.dialect.ranges import interval
from discreet.trusted.ring_a.expressions import Call, ColumnOf, Expression, Literal
from discreet.trusted.ring_a.table import Column, Type

EXACT = 2**53
"""Whole numbers within this are doubles; beyond, arithmetic may leave 64 bits and become NULL."""

_NEVER = {"same", "is_null", "is_true", "is_false", "zero_if_null"}
_ARITHMETIC = {
    *("add", "subtract", "multiply", "negate", "absolute", "floor", "ceiling", "round", "truncate", "sign"),
    *("in_steps", "from_steps"),
}
_DIVISIONS = {"divide", "modulo", "quotient"}
_NO_NUMBER = {"add", "subtract", "multiply", "modulo", "divide", "quotient"}
"""Operators that may make NaN, which counts as no value, where an argument is infinite."""
FINITE = 10**300
"""A double within this is finite."""
_TOTAL = {
    *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "and", "or", "not", "in"),
    *("greatest", "least", "to_text", "width_bucket", "is_nan", "is_infinite", "is_finite"),
    *("upper", "lower", "initcap", "length", "byte_length", "trim", "trim_left", "trim_right", "concatenate"),
    *("replace", "translate", "reverse", "strip_accents", "starts_with", "ends_with", "contains", "position"),
    *("like", "like_escape", "ilike", "matches", "matches_all"),
    *("year", "iso_year", "quarter", "month", "week", "day", "day_of_year", "day_of_week", "day_of_week_0"),
    *("day_of_week_iso", "hour", "minute", "second", "unix_seconds", "unix_date", "day_name", "month_name"),
    *("last_day", "date_trunc", "date_diff"),
}
"""Operators that give NULL only where an argument is NULL."""
_LENIENT = {*_NEVER, "and", "or", "case", "coalesce", "nullif", "concatenate_with"}
"""Operators that may give a value where an argument is NULL. All others give NULL there."""


def may_be_null(expression: Expression, columns: Mapping[str, Column]) -> bool:
    """Whether a row may be without a value, as far as declarations say."""
    if isinstance(expression, Literal):
        return expression.value is None
    if isinstance(expression, ColumnOf):
        return columns[expression.name].nulls
    operator, arguments = expression.operator, expression.arguments
    if operator in _NEVER:
        return False
    if operator == "coalesce":
        no_number = any(_may_be_no_number(one, columns) for one in arguments)
        return no_number or all(may_be_null(one, columns) for one in arguments)
    if operator == "case":
        return any(may_be_null(one, columns) for one in case_results(expression))
    if any(may_be_null(one, columns) for one in arguments):
        return True
    if operator in _DIVISIONS and not (isinstance(arguments[1], Literal) and arguments[1].value):
        return True
    if _may_be_no_number(expression, columns):
        return True
    if operator in _ARITHMETIC | _DIVISIONS:
        return expression.type is Type.INTEGER and not _exact(expression, columns)
    return operator not in _TOTAL


def _exact(expression: Expression, columns: Mapping[str, Column]) -> bool:
    known = interval(expression, columns)
    return known is not None and max(-known[0], known[1]) <= EXACT


def _may_be_no_number(expression: Expression, columns: Mapping[str, Column]) -> bool:
    """Whether arithmetic on what may be infinite stands in it: NaN is not NULL, and counts as no value all the same."""
    if not isinstance(expression, Call):
        return False
    arguments = expression.arguments
    if expression.operator in _NO_NUMBER and not all(_finite(one, columns) for one in arguments):
        return True
    return any(_may_be_no_number(one, columns) for one in arguments)


def _finite(expression: Expression, columns: Mapping[str, Column]) -> bool:
    known = interval(expression, columns)
    return known is not None and max(-known[0], known[1]) <= FINITE


def without_nulls(columns: tuple[Column, ...], predicate: Expression | None) -> tuple[Column, ...]:
    """The columns in the rows for which the predicate is true."""
    if predicate is None:
        return columns
    found = {one.name for one in known_where(predicate) if isinstance(one, ColumnOf)}
    return tuple(replace(column, nulls=False) if column.name in found else column for column in columns)


def known_where(predicate: Expression) -> frozenset[Expression]:
    """Expressions that are not NULL wherever the predicate is true."""
    if isinstance(predicate, Call) and predicate.operator == "and":
        return frozenset().union(*(known_where(one) for one in predicate.arguments))
    if isinstance(predicate, Call) and predicate.operator == "or":
        return frozenset.intersection(*(known_where(one) for one in predicate.arguments))
    if isinstance(predicate, Call) and predicate.operator == "not" and isinstance(predicate.arguments[0], Call):
        inner = predicate.arguments[0]
        if inner.operator == "is_null":
            return _known_with(inner.arguments[0])
    return _known_with(predicate)


def _known_with(expression: Expression) -> frozenset[Expression]:
    """What is not NULL where the expression is not: its arguments too, if the operator makes NULL of NULL."""
    found: frozenset[Expression] = frozenset([expression])
    if isinstance(expression, Call) and expression.operator not in _LENIENT:
        found = found.union(*(_known_with(one) for one in expression.arguments))
    return found
