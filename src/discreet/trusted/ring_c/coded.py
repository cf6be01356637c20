"""Discretised rows in the engine, and their marginals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from discreet.trusted.ring_a.casts import TYPES
from discreet.trusted.ring_a.casts import kind as kind_named
from discreet.trusted.ring_a.dialect import function
from discreet.trusted.ring_a.expressions import Expression, Literal
from discreet.trusted.ring_a.names import column_name, table_name
from discreet.trusted.ring_a.nodes import Key, LimitRows, Project, Scan
from discreet.trusted.ring_a.statement import PERSON, kept_rows, rows_that_count
from discreet.trusted.ring_a.table import Table, Type, Value
from discreet.trusted.ring_a.terms import compiled, literal
from discreet.trusted.ring_a.windows import Salt, over_person
from discreet.trusted.ring_b.dialect import Dialect
from discreet.trusted.ring_c.coding import Binned, Coding, ListedCells, rows_of_person

Marginal = NDArray[np.int64]
"""How many rows are in each cell of a marginal. Nothing of it is ever shown."""

_FEW = 8  # values that are compared one by one; more of them are looked up


UNIT = 1 << 16
"""What the rows of one person weigh together at most, where persons weigh alike: each of n rows ⌊UNIT/n⌋."""

WEIGHT = "weight"


@dataclass(frozen=True)
class CodedRows:
    """A table's rows as cells, built in the engine under this name. They are of one coding and one choice of rows.

    With `evenly` each row has a weight too, so that persons weigh alike: of the n rows of a person that are there, each
    weighs ⌊UNIT/n⌋. So all rows of one person together weigh at most UNIT, whatever n is, and which rows these are, and
    their number, follows from the person's own rows alone.
    """

    name: str
    table: Table
    coding: Coding
    evenly: bool = False

    def __post_init__(self) -> None:
        if self.evenly and (self.table.relation is None or self.table.person is None):
            raise ValueError("rows are weighed by person where a relation tells the person")


def build(rows: CodedRows, salt: Salt, dialect: Dialect) -> str:
    """The statement that builds the table of cells: of each person as many rows as are declared, chosen by the salt and
    the person's own rows; without those that have no cell in some column.

    Of a relation of several tables these are the rows that a question over it would count, limited above all joins
    (`ring_a.statement`): which rows carry a person, and which of them are kept, follows from that person's own rows.

    A text and not a tree, as there may be thousands of cuts. Names in it are ours, values literals of the engine's.
    """
    names = [column_name(place) for place in range(len(rows.coding.columns))]
    small = dialect.text(kind_named("UINT"))
    read, source = _related(rows, salt, dialect) if rows.table.relation is not None else _declared(rows, salt, dialect)
    codes = ", ".join(
        f"CAST({_code(one, column, dialect)} AS {small}) AS {name}"
        for name, column, one in zip(names, read, rows.coding.columns, strict=True)
    )
    known = " AND ".join(f"{name} IS NOT NULL" for name in names)
    whose = f", {PERSON}" if rows.evenly else ""
    inner = f"SELECT {codes}{whose} FROM {source}"
    weight = f", {_weight(dialect)} AS {WEIGHT}" if rows.evenly else ""
    return f"CREATE TABLE {rows.name} AS SELECT {', '.join(names)}{weight} FROM ({inner}) AS coded WHERE {known}"


def _weight(dialect: Dialect) -> str:
    """What a row weighs: UNIT over the number of the person's rows that have cells, rounded down. WHERE comes before a
    window, so rows without cells are not among them."""
    number = over_person(exp.Count(this=exp.Star()), exp.column(PERSON))
    unit = exp.cast(exp.Literal.number(UNIT), "BIGINT")
    return dialect.text(exp.cast(function("whole_quotient", unit, exp.cast(number, "BIGINT")), "BIGINT"))


def _declared(rows: CodedRows, salt: Salt, dialect: Dialect) -> tuple[list[str], str]:
    """How the coded columns of a declared table are called, and its rows that count."""
    position = {column.name: index for index, column in enumerate(rows.table.columns)}
    kept = kept_rows(salt, rows.table)
    where = f" WHERE {dialect.text(kept)}" if kept is not None else ""
    read = [column_name(position[one.column.name]) for one in rows.coding.columns]
    return read, f"{table_name(rows.table)}{where}"


def _related(rows: CodedRows, salt: Salt, dialect: Dialect) -> tuple[list[str], str]:
    """The same of a relation of several tables."""
    table = rows.table
    keys = []
    for one in rows.coding.columns:
        column = table.column(one.column.name)
        assert column is not None
        assert column.type is not None
        keys.append(Key(column.name, column.type, None, null=True))
    project = Project(Scan(table.name, table.person, table.one_row_per_person, table.relation), tuple(keys), ())
    counted = project if table.one_row_per_person else LimitRows(project, rows_of_person(table))
    select = rows_that_count(counted, table, salt)
    return [f"k{place}" for place in range(len(keys))], f"({dialect.text(select, copy=False)}) AS related"


def drop(rows: CodedRows) -> str:
    """The statement that drops the coded rows."""
    return f"DROP TABLE {rows.name}"


def counts(rows: CodedRows, clique: Sequence[str], dialect: Dialect, *, evenly: bool = False) -> str:
    """The statement for the cells of a marginal that hold rows, and how many they hold, or what these weigh. All names
    in it are ours."""
    columns = [column_name(rows.coding.names.index(name)) for name in clique]
    grouped = f" GROUP BY {', '.join(columns)}" if columns else ""
    total = "COUNT(*)"
    if evenly:
        weight = exp.Coalesce(this=function("whole_sum", exp.column(WEIGHT)), expressions=[exp.Literal.number(0)])
        total = dialect.text(exp.cast(weight, "BIGINT"))
    return f"SELECT {', '.join([*columns, total])} FROM {rows.name}{grouped}"


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
        places = [_place(column, kind, coded.values, dialect)] if coded.values else []
        places += _begun(column, coded, dialect)
        elsewhere = str(len(coded.listed)) if coded.other else null
        cell = f"COALESCE({', '.join([*places, elsewhere])})" if places else elsewhere
    return f"CASE WHEN {column} IS NULL THEN {null} ELSE {cell} END"


def _place(column: str, kind: Type, values: Sequence[Value], dialect: Dialect) -> str:
    """The place of a row's value among these; NULL where it is none of them."""
    if kind is Type.TEXT and len(values) > _FEW:
        constants = (literal(Literal(value, kind)) for value in values)
        return dialect.text(function("place_among", exp.column(column), *constants))
    known = [_literal(value, kind, dialect) for value in values]
    return f"CASE {' '.join(f'WHEN {column} = {value} THEN {at}' for at, value in enumerate(known))} END"


def _begun(column: str, coded: ListedCells, dialect: Dialect) -> list[str]:
    """The cells of the prefixes that a row's value begins with, the longest first: as many look-ups as there are
    lengths; NULL where it is none of them. Of prefixes that are each of some with each of some letters, in this order,
    the former and the letter are looked up: a list of thousands would take its time for each row."""
    first, found = len(coded.values), []
    value = exp.column(column)
    for length in sorted({len(one) for one in coded.prefixes}, reverse=True):
        heads, letters = (dict.fromkeys(one[part] for one in coded.prefixes) for part in (slice(-1), slice(-1, None)))
        start = function("left", value, exp.Literal.number(length))
        if length > 1 and coded.prefixes == tuple(head + letter for head in heads for letter in letters):
            start = function("left", value, exp.Literal.number(length - 1))
            letter = function("substring", value, exp.Literal.number(length), exp.Literal.number(1))
            place = f"{_among(start, heads, dialect)} * {len(letters)} + {_among(letter, letters, dialect)}"
        else:
            place = _among(start, coded.prefixes, dialect)
        found.append(f"{place} + {first}")
    return found


def _among(text: exp.Expression, constants: Iterable[str], dialect: Dialect) -> str:
    place = function("place_among", text, *(literal(Literal(one, Type.TEXT)) for one in constants))
    return dialect.text(exp.cast(place, "BIGINT"))


def _bin(column: str, cuts: Sequence[str], first: int) -> str:
    """How many of the cuts are at or below the value, plus `first`: halving, so in as many steps as cuts have bits."""
    if not cuts:
        return str(first)
    middle = len(cuts) // 2
    lower, upper = _bin(column, cuts[:middle], first), _bin(column, cuts[middle + 1 :], first + middle + 1)
    return f"CASE WHEN {column} < {cuts[middle]} THEN {lower} ELSE {upper} END"


def _literal(value: Value, kind: Type, dialect: Dialect) -> str:
    return dialect.text(literal(Literal(value, kind)))
