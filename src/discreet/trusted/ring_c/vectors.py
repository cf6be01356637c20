"""Rows as vectors of declared columns, for procedures that need rows and not totals. For the gate only.

Numbers cross as doubles, whole numbers, dates and codes as 64-bit integers, texts as UTF-8 in one piece with lengths.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from discreet.trusted.ring_a.dialect import function
from discreet.trusted.ring_a.expressions import Literal
from discreet.trusted.ring_a.names import column_name, table_name
from discreet.trusted.ring_a.table import Column, Table, Type, Value
from discreet.trusted.ring_a.terms import literal
from discreet.trusted.ring_a.windows import PLACE

PERSON = "person"
_EPOCH = datetime.date(1970, 1, 1)


@dataclass(frozen=True)
class VectorColumn:
    """A column that a procedure needs. With `values`, a row's value is its place among them, and NULL where it is none
    of them."""

    column: Column
    values: tuple[Value, ...] | None = None


@dataclass(frozen=True)
class Vectors:
    """The rows of a table, person by person: for each row the person's number, from 0 on; each column's values, and
    whether they are not NULL. What stands where a value is NULL means nothing. Nothing of it is ever shown."""

    person: NDArray[np.int64] = field(repr=False)
    values: Mapping[str, NDArray[Any]] = field(repr=False)
    known: Mapping[str, NDArray[np.bool_]] = field(repr=False)

    @property
    def persons(self) -> int:
        """How many persons have rows here: a number as private as the rows."""
        return int(self.person[-1]) + 1 if len(self.person) else 0


def select(table: Table, wanted: Sequence[VectorColumn]) -> exp.Select:
    """The SELECT of the rows: the person's number, then each column.

    Rows stand person by person, and within a person in the order of their positions, so what is left of the order when
    a person is taken out is the order without that person.
    """
    position = {column.name: index for index, column in enumerate(table.columns)}
    columns = [exp.alias_(_stored(one, position), f"v{place}") for place, one in enumerate(wanted)]
    if table.person is None:
        order = [function("row_in_source")]
        number: exp.Expression = exp.Window(this=exp.RowNumber(), order=_ordered(order))
    else:
        order = [exp.column(column_name(position[table.person]))]
        number = exp.Window(this=function("dense_rank"), order=_ordered(order))
        if not table.one_row_per_person:
            order.append(exp.column(PLACE))
    number = exp.Sub(this=number, expression=exp.Literal.number(1))
    chosen = exp.select(exp.alias_(number, PERSON), *columns).from_(exp.to_table(table_name(table)))
    return chosen.order_by(*(node.copy() for node in order))


def _ordered(columns: Sequence[exp.Expression]) -> exp.Order:
    return exp.Order(expressions=[exp.Ordered(this=column.copy()) for column in columns])


def _stored(wanted: VectorColumn, position: Mapping[str, int]) -> exp.Expression:
    """A column as what crosses the pipe."""
    column: exp.Expression = exp.column(column_name(position[wanted.column.name]))
    kind = wanted.column.type
    assert kind is not None
    if wanted.values is not None:
        places = [
            exp.If(
                this=exp.EQ(this=column.copy(), expression=literal(Literal(value, kind))), true=exp.Literal.number(at)
            )
            for at, value in enumerate(wanted.values)
        ]
        return exp.cast(exp.Case(ifs=places), "BIGINT")
    if kind is Type.DATE:
        origin = literal(Literal(_EPOCH, Type.DATE))
        return function("date_diff", exp.Literal.string("day"), origin, column)
    if kind is Type.TIMESTAMP:
        return function("microseconds", column)
    return exp.cast(exp.cast(column, "INT"), "BIGINT") if kind is Type.BOOLEAN else column


def decoded(wanted: Sequence[VectorColumn], answer: Mapping[str, Any]) -> Vectors:
    """The engine's answer as vectors: dates as days since 1970, timestamps as microseconds since then, booleans as 0
    and 1, texts as Python strings, declared values as their places."""
    buffers = iter(answer["buffers"])
    person = np.frombuffer(next(buffers), np.int64)
    values: dict[str, NDArray[Any]] = {}
    known: dict[str, NDArray[np.bool_]] = {}
    for one in wanted:
        name = one.column.name
        known[name] = np.frombuffer(next(buffers), np.bool_)
        body = next(buffers)
        if one.values is None and one.column.type is Type.TEXT:
            values[name] = _texts(body, np.frombuffer(next(buffers), np.int64))
        else:
            number = one.values is None and one.column.type is Type.NUMBER
            values[name] = np.frombuffer(body, np.float64 if number else np.int64)
    return Vectors(person, values, known)


def _texts(body: bytes, lengths: NDArray[np.int64]) -> NDArray[Any]:
    ends = np.cumsum(lengths).tolist()
    texts = np.empty(len(lengths), object)
    start = 0
    for place, end in enumerate(ends):
        texts[place] = body[start:end].decode()
        start = end
    return texts
