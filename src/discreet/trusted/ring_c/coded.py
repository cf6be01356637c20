"""Discretised rows in the engine, and their marginals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from discreet.trusted.ring_a.casts import TYPES
from discreet.trusted.ring_a.casts import kind as kind_named
from discreet.trusted.ring_a.dialect import Dialect, function
from discreet.trusted.ring_a.expressions import Expression, Literal
from discreet.trusted.ring_a.names import column_name, table_name
from discreet.trusted.ring_a.statement import kept_rows
from discreet.trusted.ring_a.table import Table, Type, Value
from discreet.trusted.ring_a.terms import compiled, literal
from discreet.trusted.ring_a.windows import Salt
from discreet.trusted.ring_c.coding import Binned, Coding, ListedCells

Marginal = NDArray[np.int64]
"""How many rows are in each cell of a marginal. Nothing of it is ever shown."""

_FEW = 8  # values that are compared one by one; more of them are looked up


@dataclass(frozen=True)
class CodedRows:
    """A table's rows as cells, built in the engine under this name. They are of one coding and one choice of rows."""

    name: str
    table: Table
    coding: Coding


def build(rows: CodedRows, salt: Salt, dialect: Dialect) -> str:
    """The statement that builds the table of cells: of each person as many rows as are declared, chosen by the salt and
    the person's own rows; without those that have no cell in some column.

    A text and not a tree, as there may be thousands of cuts. Names in it are ours, values literals of the engine's.
    """
    position = {column.name: index for index, column in enumerate(rows.table.columns)}
    names = [column_name(place) for place in range(len(rows.coding.columns))]
    small = dialect.text(kind_named("UINT"))
    codes = ", ".join(
        f"CAST({_code(one, column_name(position[one.column.name]), dialect)} AS {small}) AS {name}"
        for name, one in zip(names, rows.coding.columns, strict=True)
    )
    kept = kept_rows(salt, rows.table)
    where = f" WHERE {dialect.text(kept)}" if kept is not None else ""
    known = " AND ".join(f"{name} IS NOT NULL" for name in names)
    inner = f"SELECT {codes} FROM {table_name(rows.table)}{where}"
    return f"CREATE TABLE {rows.name} AS SELECT * FROM ({inner}) AS coded WHERE {known}"


def drop(rows: CodedRows) -> str:
    return f"DROP TABLE {rows.name}"


def counts(rows: CodedRows, clique: Sequence[str]) -> str:
    """The statement for the cells of a marginal that hold rows, and how many they hold. All names in it are ours."""
    columns = [column_name(rows.coding.names.index(name)) for name in clique]
    grouped = f" GROUP BY {', '.join(columns)}" if columns else ""
    return f"SELECT {', '.join([*columns, 'COUNT(*)'])} FROM {rows.name}{grouped}"


def true_cells(coding: Coding, predicate: Expression, dialect: Dialect) -> str:
    """The statement for the cells whose values make the predicate true, one by one; it reads no table. All columns are
    `ListedCells`, and what is in no list is NULL."""
    names, tables = {}, []
    for place, one in enumerate(coding.columns):
        assert isinstance(one, ListedCells)
        assert one.column.type is not None
        kind, name = one.column.type, column_name(place)
        values = [_literal(value, kind, dialect) for value in one.values] + ["NULL"] * one.null
        held = dialect.text(kind_named(TYPES[kind]))  # of a column without values an engine knows no type
        typed = [f"CAST({value} AS {held})" if kind is Type.NUMBER or not one.values else value for value in values]
        rows = ", ".join(f"({at}, {value})" for at, value in enumerate(typed))
        tables.append(f"(VALUES {rows}) AS v{place}(p{place}, {name})")
        names[one.column.name] = exp.column(name)
    places = ", ".join(f"p{place}" for place in range(len(tables)))
    true = dialect.text(compiled(predicate, names))
    return f"SELECT {places}, 1 AS n FROM {' CROSS JOIN '.join(tables)} WHERE {true}"


def arrays(answer: Mapping[str, Any], shapes: Sequence[tuple[int, ...]]) -> list[Marginal]:
    """The engine's answer as arrays."""
    return [
        np.frombuffer(buffer, np.int64).reshape(shape) for buffer, shape in zip(answer["buffers"], shapes, strict=True)
    ]


def _code(coded: ListedCells | Binned, column: str, dialect: Dialect) -> str:
    """The cell of a row; NULL where it has none."""
    kind = coded.column.type
    assert kind is not None
    null = str(coded.size - 1) if coded.null else "NULL"
    if isinstance(coded, Binned):
        cell = _bin(column, [_literal(cut, kind, dialect) for cut in coded.cuts], 0)
    else:
        elsewhere = str(len(coded.values)) if coded.other else null
        cell = f"COALESCE({_place(column, kind, coded.values, dialect)}, {elsewhere})" if coded.values else elsewhere
    return f"CASE WHEN {column} IS NULL THEN {null} ELSE {cell} END"


def _place(column: str, kind: Type, values: Sequence[Value], dialect: Dialect) -> str:
    """The place of a row's value among these; NULL where it is none of them."""
    if kind is Type.TEXT and len(values) > _FEW:
        constants = (literal(Literal(value, kind)) for value in values)
        return dialect.text(function("place_among", exp.column(column), *constants))
    known = [_literal(value, kind, dialect) for value in values]
    return f"CASE {' '.join(f'WHEN {column} = {value} THEN {at}' for at, value in enumerate(known))} END"


def _bin(column: str, cuts: Sequence[str], first: int) -> str:
    """How many of the cuts are at or below the value, plus `first`: halving, so in as many steps as cuts have bits."""
    if not cuts:
        return str(first)
    middle = len(cuts) // 2
    lower, upper = _bin(column, cuts[:middle], first), _bin(column, cuts[middle + 1 :], first + middle + 1)
    return f"CASE WHEN {column} < {cuts[middle]} THEN {lower} ELSE {upper} END"


def _literal(value: Value, kind: Type, dialect: Dialect) -> str:
    return dialect.text(literal(Literal(value, kind)))
