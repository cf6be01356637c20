"""A source's rows as the engine stores them: typed, clamped, and numbered within their person.

What a question's bounds rest on is made here once, when the owner loads a table: one row a person where that is
promised, at most so many of the others, and each value of its declared type and between its declared bounds.
"""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from discreet.trusted.ring_a.casts import TYPES, cast, kind
from discreet.trusted.ring_a.dialect import function
from discreet.trusted.ring_a.expressions import ColumnOf, Literal
from discreet.trusted.ring_a.lattice import Lattice
from discreet.trusted.ring_a.names import NOBODY, column_name, table_name
from discreet.trusted.ring_a.nodes import Quantity
from discreet.trusted.ring_a.quantities import quantity, rounded, steps_of
from discreet.trusted.ring_a.table import LARGEST, Column, Table, Type, Value
from discreet.trusted.ring_a.terms import double_literal, literal, scaled
from discreet.trusted.ring_a.windows import PLACE, of_rows

_CALENDAR: dict[Type, tuple[Value | None, Value | None]] = {
    Type.DATE: (datetime.date.min, datetime.date.max),
    Type.TIMESTAMP: (datetime.datetime.min, datetime.datetime(9999, 12, 31, 23, 59, 59)),
}


def positions(table: Table, salt: bytes) -> str:
    """The secret key of the order in which a person's rows stand. It lasts over all snapshots, like the ledger."""
    return hashlib.sha256(b"positions" + salt + table.name.encode()).hexdigest()[:32]


Read = Callable[[Column], exp.Expression]
"""What is read of a column of the source, before it is made the column's type."""


def load_statement(table: Table, source: exp.Expression, key: str, read: Read) -> exp.Expression:
    """The statement that builds a table of a source, under the engine's own names, typed, clamped and cut.

    Of a person with more than `Table.stored` rows so many are kept, and all have what windows read (`windows.of_rows`):
    a position depends on the person's own rows only, which a place in the source would not. Where one row a person is
    promised and a column holds the person, one row of each person is kept, so the promise holds whatever the source
    contains. Rows whose text identifies and is too long are left out: see `ring_a.table.Column`.
    """
    held = [replace(column, identifies=True) if table.public else column for column in table.columns]
    selected = [exp.alias_(_typed(column, read), column_name(index)) for index, column in enumerate(held)]
    select = exp.select(*selected).from_(source, copy=False)
    for column in table.columns:
        if column.identifies and column.type is Type.TEXT and not table.public:
            length = function("length", _typed(column, read))
            fits = exp.LTE(this=length, expression=exp.Literal.number(column.longest))
            select = select.where(exp.Coalesce(this=fits, expressions=[exp.true()]), copy=False)
    if table.person is not None:
        person = exp.column(column_name(next(i for i, column in enumerate(held) if column.name == table.person)))
        rows = exp.select(exp.Star()).from_(select.subquery("typed", copy=False), copy=False)
        rows = rows.where(exp.Not(this=exp.Is(this=person, expression=exp.null())), copy=False)
        if any(column.name == table.person and column.type is Type.INTEGER for column in held):
            nobody = exp.cast(exp.Literal.string(NOBODY), "BIGINT")
            rows = rows.where(exp.NEQ(this=person.copy(), expression=nobody), copy=False)
        select = of_rows(rows, table, key)
    elif table.public:
        order = [exp.Ordered(this=exp.column(column_name(i)), nulls_first=True) for i in range(len(held))]
        place = exp.Window(this=exp.RowNumber(), order=exp.Order(expressions=order))
        below = select.subquery("typed", copy=False)
        select = exp.select(exp.Star(), exp.alias_(place, PLACE)).from_(below, copy=False)
    select = _beside_steps(select, table)
    return exp.Create(this=exp.to_table(table_name(table)), kind="TABLE", expression=select)


def _beside_steps(rows: exp.Select, table: Table) -> exp.Select:
    """The rows with whole numbers beside the columns that are counted in a declared step: what every question that adds
    them up by that step would make of them again."""
    columns = {column.name: exp.column(column_name(index)) for index, column in enumerate(table.columns)}
    counted = []
    for (name, _), (lattice, called) in steps_of(table).items():
        whole = quantity(Quantity(ColumnOf(name, Type.NUMBER), lattice), columns)
        counted.append(exp.alias_(cast(whole, "INT") if lattice.fits(2**31) else whole, called))
    return exp.select(exp.Star(), *counted).from_(rows.subquery("stored", copy=False), copy=False) if counted else rows


def _typed(column: Column, read: Read) -> exp.Expression:
    """A column as its declared type: what does not convert is NULL, NaN is NULL, what lies outside is clamped, and a
    number is rounded to its step, whatever is `read` of the source.

    Dates that an engine knows and Python does not (before year 1, after 9999, infinite) count as outside: as a group's
    key such a date of one person would make everybody's question fail.
    """
    assert column.type is not None
    node = function("column_as", read(column), kind(TYPES[column.type]))
    if column.type is Type.NUMBER:
        unknown: exp.Expression = exp.Or(
            this=function("is_nan", node), expression=exp.Is(this=node.copy(), expression=exp.null())
        )
    else:
        unknown = exp.Is(this=node, expression=exp.null())
    low, high = _CALENDAR.get(column.type, (None, None))
    low = column.minimum if column.minimum is not None else low
    high = column.maximum if column.maximum is not None else high
    if column.type is Type.TEXT and not column.identifies:
        return function("left", node, exp.Literal.number(column.longest))
    if low is None and high is None and column.type is not Type.NUMBER:
        return node
    inside: exp.Expression = node.copy()
    if high is not None:
        inside = exp.Least(this=inside, expressions=[_bound(column, high)], ignore_nulls=True)
    if low is not None:
        inside = exp.Greatest(this=inside, expressions=[_bound(column, low)], ignore_nulls=True)
    if column.step is not None and column.steps is not None:
        inside = _in_steps(inside, column.step, column.steps, open_=None in (low, high))
    if column.type is Type.NUMBER:  # -0.0 + 0.0 is 0.0: rows that are equal hold the same
        inside = function("number_sum", inside, double_literal(Fraction(0)))
    return exp.Case(ifs=[exp.If(this=unknown, true=exp.null())], default=inside)


def _in_steps(node: exp.Expression, step: Fraction, ends: tuple[int, int], *, open_: bool) -> exp.Expression:
    """The multiple of a step that a number is nearest to, within its bounds. Where bounds are `open_`, a number beyond
    what is counted in steps stays as it is."""
    nearest = scaled(rounded(node, Lattice(step, *ends)), step.numerator, step.denominator)
    if not open_:
        return nearest
    counted = exp.LTE(this=exp.Abs(this=node.copy()), expression=double_literal(LARGEST // step.numerator * step))
    return exp.Case(ifs=[exp.If(this=counted, true=nearest)], default=node.copy())


def _bound(column: Column, value: Value) -> exp.Expression:
    """A bound in the column's own type."""
    assert column.type is not None
    value = Fraction(value) if column.type is Type.NUMBER and isinstance(value, int) else value
    return exp.cast(literal(Literal(value, column.type)), TYPES[column.type])
