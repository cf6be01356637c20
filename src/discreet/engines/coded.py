"""Rows as cells, in the engine: a table of small numbers, and how many rows share them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from discreet.catalog.model import Table, Type, Value
from discreet.engines.compile import kept_rows
from discreet.engines.functions import literal
from discreet.engines.names import column_name, table_name
from discreet.plan.coding import Binned, Coding, Listed
from discreet.plan.expressions import Literal

Marginal = NDArray[np.int64]
"""How many rows are in each cell of a marginal. Nothing of it is ever shown."""

_FEW = 8  # values that are compared one by one; more of them are looked up


@dataclass(frozen=True)
class Rows:
    """A table's rows as cells, built in the engine under this name. They are of one coding and one choice of rows."""

    name: str
    table: Table
    coding: Coding


def build(rows: Rows, salt: str, *, windows: bool) -> exp.Expression:
    """The statement that builds the table of cells: of each person as many rows as are declared, chosen by the salt and
    the person's own rows; without those that have no cell in some column."""
    position = {column.name: index for index, column in enumerate(rows.table.columns)}
    codes = [
        exp.alias_(exp.cast(_code(one, position), exp.DType.UINT), column_name(place))
        for place, one in enumerate(rows.coding.columns)
    ]
    inner = exp.select(*codes).from_(exp.to_table(table_name(rows.table)))
    kept = kept_rows(salt, windows, rows.table)
    inner = inner.where(kept) if kept is not None else inner
    every = exp.select(exp.Star()).from_(inner.subquery("coded"))
    for place in range(len(codes)):
        every = every.where(exp.Not(this=exp.Is(this=exp.column(column_name(place)), expression=exp.null())))
    return exp.Create(this=exp.to_table(rows.name), kind="TABLE", expression=every)


def drop(rows: Rows) -> exp.Expression:
    return exp.Drop(tables=[exp.to_table(rows.name)], kind="TABLE")


def counts(rows: Rows, clique: Sequence[str]) -> exp.Select:
    """The cells of a marginal that hold rows, and how many they hold."""
    columns = [exp.column(column_name(rows.coding.names.index(name))) for name in clique]
    select = exp.select(*columns, exp.Count(this=exp.Star(), big_int=True)).from_(exp.to_table(rows.name))
    return select.group_by(*(column.copy() for column in columns)) if columns else select


def arrays(answer: Mapping[str, Any], shapes: Sequence[tuple[int, ...]]) -> list[Marginal]:
    """The engine's answer as arrays."""
    return [
        np.frombuffer(buffer, np.int64).reshape(shape) for buffer, shape in zip(answer["buffers"], shapes, strict=True)
    ]


def _code(coded: Listed | Binned, position: Mapping[str, int]) -> exp.Expression:
    """The cell of a row; NULL where it has none."""
    column = exp.column(column_name(position[coded.column.name]))
    kind = coded.column.type
    assert kind is not None
    null: exp.Expression = exp.Literal.number(coded.size - 1) if coded.null else exp.null()
    unknown = exp.If(this=exp.Is(this=column.copy(), expression=exp.null()), true=null)
    if isinstance(coded, Binned):
        return exp.Case(ifs=[unknown], default=_bin(column, kind, coded.cuts, 0))
    elsewhere: exp.Expression = exp.Literal.number(len(coded.values)) if coded.other else null.copy()
    if not coded.values:
        return exp.Case(ifs=[unknown], default=elsewhere)
    place = _place(column, kind, coded.values)
    found = exp.Coalesce(this=place, expressions=[elsewhere])
    return exp.Case(ifs=[unknown], default=found)


def _place(column: exp.Expression, kind: Type, values: Sequence[Value]) -> exp.Expression:
    """The place of a row's value among these; NULL where it is none of them."""
    if kind is Type.TEXT and len(values) > _FEW:  # a hash table of the texts, which the engine builds once
        known = exp.DataType(this=exp.DType.ENUM, expressions=[exp.Literal.string(str(value)) for value in values])
        return exp.Anonymous(this="enum_code", expressions=[exp.TryCast(this=column.copy(), to=known, safe=True)])
    ifs = [
        exp.If(this=exp.EQ(this=column.copy(), expression=literal(Literal(value, kind))), true=exp.Literal.number(at))
        for at, value in enumerate(values)
    ]
    return exp.Case(ifs=ifs)


def _bin(column: exp.Expression, kind: Type, cuts: Sequence[Value], first: int) -> exp.Expression:
    """How many of the cuts are at or below the value, plus `first`: halving, so in as many steps as cuts have bits."""
    if not cuts:
        return exp.Literal.number(first)
    middle = len(cuts) // 2
    below = exp.LT(this=column.copy(), expression=literal(Literal(cuts[middle], kind)))
    lower = _bin(column, kind, cuts[:middle], first)
    return exp.Case(
        ifs=[exp.If(this=below, true=lower)], default=_bin(column, kind, cuts[middle + 1 :], first + middle + 1)
    )
