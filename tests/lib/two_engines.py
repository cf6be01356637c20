"""DuckDB and PostgreSQL side by side: the same rows in both, the same trees asked of both, answers compared by bits."""

from __future__ import annotations

import atexit
import math
import struct
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from typing import Any

import adbc_driver_postgresql.dbapi as adbc
import duckdb
import pyarrow
from sqlglot import exp

from discreet.catalog.formats import load_statements
from discreet.engines.duckdb.dialect import DUCKDB
from discreet.engines.postgresql.dialect import POSTGRESQL
from discreet.engines.statements import SaltedStatement, Statements
from discreet.trusted.ring_a.nodes import Root
from discreet.trusted.ring_a.table import Source, SourceKind, Table, Type
from discreet.trusted.ring_a.windows import Salt
from postgres_tools import running

SERVER: Mapping[Type, str] = {
    Type.INTEGER: "BIGINT",
    Type.NUMBER: "DOUBLE PRECISION",
    Type.TEXT: 'TEXT COLLATE "C"',
    Type.BOOLEAN: "BOOLEAN",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP",
}
"""The columns of a server that hold our types."""


class Both:
    """One connection to each."""

    def __init__(self, url: str) -> None:
        self.duck = duckdb.connect()
        self._connection = adbc.connect(url, autocommit=True)
        self.server = self._connection.cursor()
        self.server.execute("SET datestyle = 'ISO'")

    def close(self) -> None:
        self.server.close()
        self._connection.close()
        self.duck.close()

    def make(self, name: str, rows: pyarrow.Table, types: Mapping[str, Type]) -> None:
        """A table of these rows in both. NaN is NULL, as in tables that are loaded."""
        arrays = {}
        for column, kind in types.items():
            values = rows.column(column).combine_chunks()
            if kind is Type.NUMBER:
                values = pyarrow.array(
                    [None if value is None or math.isnan(value) else value for value in values.to_pylist()]
                )
                values = values.cast(pyarrow.float64())
            arrays[column] = values
        held = pyarrow.table(arrays)
        self.duck.register("held", held)
        self.duck.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM held")
        self.duck.unregister("held")
        columns = ", ".join(f'"{column}" {SERVER[kind]}' for column, kind in types.items())
        self.server.execute(f"DROP TABLE IF EXISTS {name}")
        self.server.execute(f"CREATE TABLE {name} ({columns})")
        if held.num_rows:
            self.server.adbc_ingest(name, held, mode="append")

    def asked(self, tree: exp.Expr) -> tuple[list[Any], list[Any]]:
        """The rows that both give for a SELECT."""
        return self.of_duck(DUCKDB.text(tree)), self.of_server(POSTGRESQL.text(tree))

    def of_duck(self, text: str) -> list[Any]:
        return [tuple(map(exactly, row)) for row in self.duck.execute(text).fetchall()]

    def of_server(self, text: str) -> list[Any]:
        self.server.execute(text)
        table = self.server.fetch_arrow_table()
        columns = [self._numbers(column) for column in table.columns]
        return [tuple(map(exactly, row)) for row in zip(*columns, strict=True)]

    def _numbers(self, column: pyarrow.ChunkedArray) -> list[Any]:
        """The values of a column; of a NUMERIC, which comes as a text of its own type, whole numbers."""
        if isinstance(column.type, pyarrow.BaseExtensionType):
            return [None if value is None else int(value) for value in column.combine_chunks().storage.to_pylist()]
        return column.to_pylist()

    def load(self, table: Table, source: str, key: str = "a key") -> tuple[Table, list[Any], list[Any]]:
        """A table of ours in both, loaded from a table of both; and its rows there, in one order."""
        known = replace(table, source=Source(SourceKind.FRAME))
        statements, facts = load_statements(known, exp.to_table(source), key)
        found: tuple[list[Any], list[Any]] = [], []
        for statement in statements:
            name = statement.this.sql()
            for run in (self.duck.execute, self.server.execute):
                run(f"DROP TABLE IF EXISTS {name}")
            self.duck.execute(DUCKDB.text(statement))
            self.server.execute(POSTGRESQL.text(statement))
            found = self.asked(exp.select("*").from_(name))
        self.server.execute(POSTGRESQL.text(facts))
        assert self.server.fetchone() is not None
        return known, *(sorted(rows, key=repr) for rows in found)

    def vectors(self, root: Root, table: Table, salt: str) -> tuple[list[Any], list[Any]]:
        """What both give for a plan, in one order; whatever stands beside the table is built first."""
        ours, theirs = (Statements(dialect).of(root, table) for dialect in (DUCKDB, POSTGRESQL))
        for text in ours.beside.build if ours.beside is not None else ():
            self.duck.execute(_replacing(text))
        for text in theirs.beside.build if theirs.beside is not None else ():
            self._build(text)
        rows = self.of_duck(ours.salted(Salt.of(salt))), self.of_server(theirs.salted(Salt.of(salt)))
        for one, run in ((ours, self.duck.execute), (theirs, self.server.execute)):
            _drop(one, run)
        return sorted(rows[0], key=repr), sorted(rows[1], key=repr)

    def _build(self, text: str) -> None:
        """PostgreSQL knows no CREATE OR REPLACE TABLE."""
        if not text.startswith("CREATE OR REPLACE TABLE "):
            self.server.execute(f"DROP TABLE IF EXISTS {text.split()[2]}")
            self.server.execute(text)
            return
        name = text.split()[4]
        self.server.execute(text.replace(f"CREATE OR REPLACE TABLE {name} ", "CREATE TABLE another ", 1))
        self.server.execute(f"DROP TABLE {name}")
        self.server.execute(f"ALTER TABLE another RENAME TO {name}")


def _replacing(text: str) -> str:
    return text if text.startswith("CREATE OR REPLACE") else text.replace("CREATE TABLE", "CREATE OR REPLACE TABLE", 1)


def _drop(statement: SaltedStatement, run: Any) -> None:
    for text in statement.beside.drop if statement.beside is not None else ():
        run(text)


def exactly(value: Any) -> Any:
    """A value by its bits: 0 and -0 are two, all that are no numbers one; whole numbers by their value."""
    if isinstance(value, float):
        return "no number" if math.isnan(value) else struct.pack(">d", value).hex()
    return value


@cache
def both(version: int = 18) -> Both:
    """The two engines, for all tests of a run. Skips the test where PostgreSQL of that version is not here."""
    stack = ExitStack()
    server = stack.enter_context(running(version))
    engines = Both(server.url("owner"))
    stack.callback(engines.close)
    atexit.register(stack.close)
    return engines
