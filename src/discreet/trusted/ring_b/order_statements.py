"""The statements for quantiles, most frequent values, numbers of distinct values, and private bounds."""

from __future__ import annotations

from fractions import Fraction

from sqlglot import exp

from discreet.trusted.ring_a.casts import cast
from discreet.trusted.ring_a.dialect import function
from discreet.trusted.ring_a.nodes import Quantity, project_of
from discreet.trusted.ring_a.quantities import clamped, power_of, unknown
from discreet.trusted.ring_a.statement import not_null, other_statement, rows_that_count, statement
from discreet.trusted.ring_a.table import Table
from discreet.trusted.ring_a.terms import Columns, as_double, double_literal
from discreet.trusted.ring_a.windows import Salt
from discreet.trusted.ring_b.logarithmic import LogarithmicRange
from discreet.trusted.ring_b.order_statistics import Distinct, GroupHistograms


@other_statement.register
def histogram(plan: GroupHistograms, table: Table, salt: Salt) -> exp.Select:
    """Keys, a value of the quantity, and how many rows have it."""
    keys = [exp.column(f"k{index}") for index in range(len(project_of(plan).keys))]
    value = exp.column("q0")
    rows = rows_that_count(plan.child, table, salt).subquery("bounded", copy=False)
    select = exp.select(*keys, value, exp.Count(this=exp.Star(), big_int=True), copy=False).from_(rows, copy=False)
    return select.where(not_null(value), copy=False).group_by(*(key.copy() for key in keys), value.copy(), copy=False)


@other_statement.register
def distinct(plan: Distinct, table: Table, salt: Salt) -> exp.Select:
    """Keys, and how many values of the last one stand with them. A value stands there once: it is a key itself."""
    count = len(project_of(plan).keys) - 1
    keys = [exp.column(f"k{index}") for index in range(count)]
    pairs = statement(plan.child, table, salt).subquery("pair", copy=False)
    select = exp.select(*keys, exp.Count(this=exp.Star(), big_int=True), copy=False).from_(pairs, copy=False)
    return select.group_by(*(key.copy() for key in keys), copy=False) if keys else select


@power_of.register
def power(one: Quantity, columns: Columns) -> exp.Expression:
    """The number of the bucket of `LogarithmicRange` that a value lies in: 0 next to zero, ±1 and up from there.

    The logarithm is rounded, so a value next to a power of two may be counted beside it: the row's own business."""
    range_ = LogarithmicRange(Fraction(1))
    node = as_double(one.expression, columns)
    size = exp.Abs(this=node.copy())
    least = double_literal(Fraction(2) ** range_.lowest)  # no branch of a CASE is a guard: the logarithm of 0 fails
    above = exp.Greatest(this=size.copy(), expressions=[least], ignore_nulls=True)
    power = exp.Floor(this=function("log2", above))
    number = clamped(
        function("number_difference", power, double_literal(Fraction(range_.lowest - 1))),
        double_literal(Fraction(1)),
        double_literal(Fraction(range_.last)),
    )
    small = exp.LT(this=size, expression=least.copy())
    signed = exp.Mul(this=cast(number, "BIGINT"), expression=cast(exp.Sign(this=node.copy()), "BIGINT"))
    branches = [exp.If(this=unknown(one, node), true=exp.null()), exp.If(this=small, true=exp.Literal.number(0))]
    return exp.Case(ifs=branches, default=signed)
