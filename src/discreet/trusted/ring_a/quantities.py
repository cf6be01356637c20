"""One row's value as an integer on the lattice, in the engine."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import singledispatch
from types import MappingProxyType

from sqlglot import exp

from discreet.trusted.ring_a.casts import cast
from discreet.trusted.ring_a.dialect import function
from discreet.trusted.ring_a.expressions import Call, ColumnOf
from discreet.trusted.ring_a.lattice import Lattice
from discreet.trusted.ring_a.names import steps_name
from discreet.trusted.ring_a.nodes import Quantity
from discreet.trusted.ring_a.table import Table
from discreet.trusted.ring_a.terms import Columns, as_double, compiled, double_literal, is_whole

Steps = Mapping[tuple[str, Fraction], exp.Expression]
"""The whole numbers of steps that stand beside columns: of a column and a step."""


def steps_of(table: Table) -> dict[tuple[str, Fraction], tuple[Lattice, str]]:
    """The columns of a table that are counted in a declared step within declared bounds: the lattice of each, and the
    name of its whole numbers in the engine."""
    return {
        (column.name, column.step): (Lattice(column.step, *column.steps), steps_name(index))
        for index, column in enumerate(table.columns)
        if column.step is not None and column.steps is not None and None not in (column.minimum, column.maximum)
    }


def quantity(
    one: Quantity, columns: Mapping[str, exp.Expression], steps: Steps = MappingProxyType({})
) -> exp.Expression:
    """An integer of the row, or NULL. Clamped to the lattice whatever the row holds, infinities included.

    A column's `steps` are what its value gives on the lattice of its declared step and bounds; clamped to narrower ones
    they are what the value gives there, as rounding keeps the order."""
    expression, lattice = one.expression, one.lattice
    if one.powers:
        return power_of(one, columns)
    if lattice is None:
        node = compiled(expression, columns)
        return exp.Case(ifs=[exp.If(this=unknown(one, node), true=exp.null())], default=exp.Literal.number(1))
    if isinstance(expression, ColumnOf) and (expression.name, lattice.step) in steps:
        return clamped_column(steps[expression.name, lattice.step], lattice.low, lattice.high)
    if is_whole(expression) and lattice.step == 1:
        node = compiled(expression, columns)
        inside = clamped(node, exp.Literal.number(lattice.low), exp.Literal.number(lattice.high))
    else:
        node = as_double(expression, columns)
        inside = rounded(node, lattice)
    return exp.Case(ifs=[exp.If(this=unknown(one, node), true=exp.null())], default=cast(inside, "BIGINT"))


@singledispatch
def power_of(one: object, columns: Columns) -> exp.Expression:
    """The number of a value's power of two, where that is wanted: ring B's."""
    raise TypeError(f"no powers are known of {type(one).__name__} over {len(columns)} columns")


def unknown(quantity: Quantity, node: exp.Expression) -> exp.Expression:
    """Whether a row's value is NULL or not a number. Columns hold no NaN; arithmetic in doubles may make one."""
    null = exp.Is(this=node.copy(), expression=exp.null())
    expression = quantity.expression
    if isinstance(expression, Call) and expression.type.numeric and not is_whole(expression):
        return exp.Or(this=null, expression=function("is_nan", node.copy()))
    return null


def rounded(node: exp.Expression, lattice: Lattice) -> exp.Expression:
    """The nearest lattice step, halves up, computed in doubles and clamped there, so that the cast cannot overflow."""
    inverse = 1 / lattice.step
    if inverse.denominator == 1:
        scaled = function("rounded_product", node.copy(), double_literal(inverse))
    else:
        scaled = function("rounded_quotient", node.copy(), double_literal(lattice.step))
    nearest = exp.Floor(this=function("number_sum", scaled, double_literal(Fraction(1, 2))))
    return clamped(nearest, double_literal(Fraction(lattice.low)), double_literal(Fraction(lattice.high)))


def clamped_column(column: exp.Expression, low: int, high: int) -> exp.Expression:
    """A column of whole numbers between low and high. NULL stays NULL: it is neither above nor below. Engines compute
    this in less time than LEAST and GREATEST, but read the column three times: an expression would be computed so."""
    beyond = ((exp.GT, high), (exp.LT, low))
    ends = [(kind(this=column.copy(), expression=exp.Literal.number(end)), end) for kind, end in beyond]
    cases = [exp.If(this=condition, true=exp.Literal.number(end)) for condition, end in ends]
    return cast(exp.Case(ifs=cases, default=column.copy()), "BIGINT")


def clamped(node: exp.Expression, low: exp.Expression, high: exp.Expression) -> exp.Expression:
    """Between low and high. NULL must not reach this: LEAST and GREATEST skip it."""
    least = exp.Least(this=node.copy(), expressions=[high], ignore_nulls=True)
    return exp.Greatest(this=least, expressions=[low], ignore_nulls=True)
