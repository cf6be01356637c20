"""What one row gives, in the engine's language: columns, constants, and what ring B computes of them.

Nothing here can fail on any row: columns hold values of their type alone, and constants are spelled out.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from fractions import Fraction
from functools import singledispatch

from sqlglot import exp

from discreet.trusted.ring_a.casts import cast
from discreet.trusted.ring_a.dialect import function
from discreet.trusted.ring_a.expressions import ColumnOf, Expression, Literal
from discreet.trusted.ring_a.table import Type

Columns = Mapping[str, exp.Expression]
"""How each declared column is written in the engine's table."""


@singledispatch
def call_tree(call: object, columns: Columns) -> exp.Expression:
    """An operator, applied, as a tree. Ring B registers all of them, each in a form that no row makes fail."""
    raise TypeError(f"no operator is known for {type(call).__name__} over {len(columns)} columns")


@singledispatch
def call_is_whole(call: object) -> bool:
    """Whether the engine computes this operator as a 64-bit integer: ring B's."""
    raise TypeError(f"no operator is known for {type(call).__name__}")


def compiled(expression: Expression, columns: Columns) -> exp.Expression:
    """The expression in the engine's language."""
    if isinstance(expression, ColumnOf):
        return columns[expression.name].copy()
    if isinstance(expression, Literal):
        return literal(expression)
    return call_tree(expression, columns)


def literal(constant: Literal) -> exp.Expression:
    """A constant, with its type spelled out so that the engine has nothing to guess."""
    value = constant.value
    if value is None:
        return exp.null()
    if isinstance(value, bool):
        return exp.true() if value else exp.false()
    if isinstance(value, datetime.datetime):
        return cast(exp.Literal.string(value.isoformat(" ")), "TIMESTAMP")
    if isinstance(value, datetime.date):
        return cast(exp.Literal.string(value.isoformat()), "DATE")
    if isinstance(value, str):
        return exp.Literal.string(value)
    if isinstance(value, int) and abs(value) < 2**63:
        return cast(exp.Literal.string(str(value)), "BIGINT")
    return double_literal(Fraction(value))


def double_literal(value: Fraction) -> exp.Expression:
    """The double nearest to the value."""
    return cast(exp.Literal.string(repr(_nearest(value))), "DOUBLE")


def _nearest(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def as_double(expression: Expression, columns: Columns) -> exp.Expression:
    """A numeric expression as a double."""
    if isinstance(expression, Literal) and isinstance(expression.value, int | Fraction):
        return double_literal(Fraction(expression.value))
    node = compiled(expression, columns)
    if isinstance(expression, Literal | ColumnOf):
        return cast(node, "DOUBLE") if expression.type is Type.INTEGER else node
    return cast(node, "DOUBLE") if call_is_whole(expression) else node


def held_whole(expression: Expression) -> bool:
    """Whether the engine holds this expression as a 64-bit integer: a column, a constant, or an operator that ring B
    says it of."""
    if isinstance(expression, Literal):
        known = expression.value
        return known is None or (isinstance(known, int) and not isinstance(known, bool) and abs(known) < 2**63)
    return expression.type is Type.INTEGER if isinstance(expression, ColumnOf) else call_is_whole(expression)


def is_whole(expression: Expression) -> bool:
    """Whether the compiled expression is a 64-bit integer, so that no rounding is needed."""
    return held_whole(expression) and expression.type is Type.INTEGER


def scaled(node: exp.Expression, factor: int, divisor: int) -> exp.Expression:
    """A double times one number over another, both of which doubles hold."""
    if factor != 1:
        node = function("number_product", node, double_literal(Fraction(factor)))
    return node if divisor == 1 else function("number_quotient", node, double_literal(Fraction(divisor)))
