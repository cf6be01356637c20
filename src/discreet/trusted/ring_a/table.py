"""Declared tables and columns, from which every sensitivity follows. Nothing here comes from rows."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from functools import singledispatch
from pathlib import Path
from typing import Any

Value = int | Fraction | str | bool | datetime.date | datetime.datetime

KEYS_SHOWN = 1_000
"""An integer column with bounds has public keys if they are no more than this."""

LENGTH = 200
"""The characters of a text where nothing is declared."""

ID_LENGTH = 1_000
"""Those of a text that identifies."""

LARGEST = 2**50
"""Numbers are counted exactly in steps up to this many (`dialect.steps`)."""


class Type(StrEnum):
    """The types a column can have. They are declared, or stated by the source's own schema; values never decide."""

    INTEGER = "integer"
    NUMBER = "number"
    TEXT = "text"
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMP = "timestamp"

    @property
    def numeric(self) -> bool:
        """Whether values are numbers, whole or not; dates, timestamps and booleans are none."""
        return self in (Type.INTEGER, Type.NUMBER)


@dataclass(frozen=True)
class Column:
    """One declared column. Values outside `minimum` and `maximum` are clamped when the table is loaded.

    `values` are public keys: a question that groups by the column shows all of them and no others.
    `type` is None until the source's own schema has stated it. `step` is the unit a number is counted in: values are
    rounded to it when the table is loaded (`steps`). With `nulls` false the owner says that every row has a value:
    questions need not measure how many have none.
    Texts about people are cut to `length` characters when the table is loaded; where a column `identifies` a person, or
    the row that another table refers to, they are never cut, which could make two persons one: rows with a longer one
    are left out.
    """

    name: str
    type: Type | None
    minimum: Value | None = None
    maximum: Value | None = None
    step: Fraction | None = None
    values: tuple[Value, ...] | None = None
    nulls: bool = True
    length: int | None = None
    identifies: bool = False

    @property
    def longest(self) -> int:
        """The most characters of a text in this column, of a table about people."""
        listed = (len(value) for value in self.values or () if isinstance(value, str))
        return self.length or max([ID_LENGTH if self.identifies else LENGTH, *listed])

    @property
    def steps(self) -> tuple[int, int] | None:
        """The fewest and the most steps that a number of this column has, so far as they are counted exactly: where no
        bound is declared, there may be more. None where values are no multiples of a step: none is declared, or one so
        fine or odd that doubles could not count in it up to the declared bounds."""
        if self.step is None or max(self.step.numerator, self.step.denominator) > LARGEST:
            return None
        most = LARGEST // self.step.numerator
        low, high = self.minimum, self.maximum
        fewest = math.ceil(low / self.step) if isinstance(low, int | Fraction) else -most
        largest = math.floor(high / self.step) if isinstance(high, int | Fraction) else most
        return (fewest, largest) if -most <= fewest <= largest <= most else None

    def keys(self) -> tuple[Value, ...] | None:
        """The public keys of this column; None where they are private."""
        if self.values is not None:
            return self.values
        if self.type is Type.BOOLEAN:
            return (False, True)
        if self.type is Type.INTEGER and isinstance(self.minimum, int) and isinstance(self.maximum, int):
            count = self.maximum - self.minimum + 1
            return tuple(range(self.minimum, self.maximum + 1)) if count <= KEYS_SHOWN else None
        return None


class SourceKind(StrEnum):
    """What rows come from."""

    CSV = "csv"
    PARQUET = "parquet"
    DELTA = "delta"
    """A folder of Parquet files with a log of which are in which version of it."""
    ICEBERG = "iceberg"
    """A folder of files with lists of which are in which snapshot of an Iceberg table."""
    DATABASE = "duckdb"
    """A table of a database file: the format of that file, whatever engine reads it."""
    POSTGRESQL = "postgresql"
    """A table on a PostgreSQL server, whatever engine holds its rows."""
    SPARK = "spark"
    """A table of a Spark server's catalog."""
    FRAME = "frame"
    """A table in Python."""
    RELATION = "relation"
    """What a question has put together of declared tables."""

    __repr__ = str.__repr__
    """As the text that it once was: keys of stored answers are made of the repr of declared tables."""


@dataclass(frozen=True)
class Source:
    """Where rows come from: files, a table of a DuckDB file or of a server, or an object that Python holds.

    Of files, `path` is one, a folder or a pattern, and `further` are others beside it; of a Delta table it is the
    folder, and the `version` says which of its states. In a CSV file `delimiter` stands between columns, `decimal` in
    3.5, `dates` says how a date is written ("%d.%m.%Y"), and its text is in an `encoding`. `server` is the URL of a
    server, in which no password stands.
    """

    kind: SourceKind
    path: Path | None = None
    relation: str | None = None
    frame: Any = field(default=None, repr=False, compare=False)
    delimiter: str = field(default=",", repr=False)
    decimal: str = field(default=".", repr=False)
    dates: str = field(default="%Y-%m-%d", repr=False)
    encoding: str = field(default="utf-8", repr=False)
    server: str | None = None
    further: tuple[Path, ...] = ()
    version: int | None = None


class Relation:
    """What several tables are put together as: ring B says how, and whose rows these are. `children` are the relations
    that it is made of."""

    @property
    def children(self) -> tuple[Relation, ...]:
        """The relations that this one is made of; none for a declared table."""
        raise NotImplementedError


@dataclass(frozen=True)
class Table:
    """A table and whose rows it holds.

    A person is a value of the column `person`; without one, with `one_row_per_person`, each row is a person. With a
    `path` (table, column), `person` is a foreign key instead: the row belongs to whom the row there belongs to.
    `parts` are the declared tables behind what a question has put together, `relation` says how.
    `rows_per_person` and `groups_per_person` bound what one person can touch; the engine enforces them. Groups that
    are not declared are as many as rows, at most `USUAL_GROUPS`.
    With `shared`, a row may lead to several persons: it counts once for each, and what is hidden of a person is the
    part in it, not that there is such a row. Without, none leads to two: rows are held to that when they are loaded.
    """

    name: str
    source: Source
    columns: tuple[Column, ...]
    person: str | None = None
    one_row_per_person: bool = False
    rows_per_person: int | None = None
    groups_per_person: int | None = None
    public: bool = False
    path: tuple[str, str] | None = None
    shared: bool = False
    parts: tuple[Table, ...] = ()
    relation: Relation | None = field(default=None, repr=False)

    @property
    def unit(self) -> str:
        """Who counts as a person here, in words that stay the same while that does."""
        if self.person is None:
            return "each row"
        to = f" -> {self.path[0]}.{self.path[1]}" if self.path else ""
        return f"{self.person}{to}".casefold()

    @property
    def bases(self) -> tuple[Table, ...]:
        """The declared tables whose rows are in this one."""
        return self.parts or (self,)

    @property
    def stored(self) -> int:
        """How many rows of a person, or of a value of the foreign key, the engine holds at most: others are left out
        when the table is loaded, at random. They are more than count in one question: questions choose among them."""
        return 1 if self.one_row_per_person else max(100, 2 * (self.rows_per_person or 1))

    def column(self, name: str) -> Column | None:
        """The column of that name, whatever its case; None where there is none."""
        folded = name.casefold()
        return next((column for column in self.columns if column.name.casefold() == folded), None)


@singledispatch
def as_table(relation: Relation) -> Table:
    """A relation as a table that a question can be asked of. What ring B makes known of its relations, here and below,
    is registered there; without ring B nothing but declared tables can be read."""
    raise TypeError(f"unknown relation: {type(relation).__name__}")


@singledispatch
def own_columns(relation: Relation) -> Mapping[str, frozenset[object]]:
    """The columns of which a person has one value for each setting of some switches, with these switches."""
    raise TypeError(f"unknown relation: {type(relation).__name__}")
