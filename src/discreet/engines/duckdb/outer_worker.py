"""A child with a DuckDB of its own for queries on what was released and on public tables.

It never meets a row about a person: each request brings all that it reads, in tables that live no longer than the
request. It reads no file, no network and no setting, and has limits of memory; its owner ends it where it takes too
long. What fails is not said in DuckDB's words.
"""

from __future__ import annotations

import datetime
import os
import re
import resource
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import duckdb

from discreet.engines.answers import answering
from discreet.engines.child import held

MEMORY = 1 << 30
"""Bytes of address space beside what the program takes."""


def main() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    limit = held() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    answering(OuterWorker, _failed)


def _failed(_operation: str, error: Exception) -> dict[str, Any]:
    if isinstance(error, MemoryError):
        os._exit(1)
    kind = type(error).__name__
    name = ""
    if isinstance(error, duckdb.BinderException) and (found := re.search(r"types '(\w+)\(", str(error))):
        name = found[1]
    return {"wrong": kind, "function": name}


def prepare() -> None:
    """Loads what each child needs, once for all."""
    duckdb.connect().execute("SELECT 1").fetchall()


Table = tuple[str, Sequence[tuple[str, str]], Sequence[Sequence[Any]]]
"""A name, names and types of columns, and the columns' values."""


class OuterWorker:
    """One request after another, each on a connection of its own to a database that stays empty: what a request brings
    lies in temporary tables, which no other connection sees and which end with this one. Nothing but a SELECT is run.
    Where a request fails, the database ends too. (To open one takes several times as long as a query.)"""

    def __init__(self) -> None:
        self._database = _opened()

    def answer(self, operation: str, *arguments: Any) -> Any:
        assert operation == "compute"
        return self.compute(*arguments)

    def compute(self, tables: Sequence[Table], query: str, first: bool = False) -> dict[str, Any]:
        """The columns' types and values of a query on these tables. With `first`, where a subquery gives several rows
        for one value, the first of them is taken, and "several" said."""
        try:
            with self._database.cursor() as connection:
                return _computed(connection, tables, query)
        except Exception as error:
            self._database.close()
            self._database = _opened()
            if not (first and _SEVERAL in str(error)):
                raise
        with _opened(several=True) as database:
            return _computed(database, tables, query) | {"several": True}


def _opened(*, several: bool = False) -> duckdb.DuckDBPyConnection:
    """A database; with `several`, one that takes the first row where a subquery gives more than one."""
    database = duckdb.connect(":memory:", config=_CONFIG)
    database.execute(f"SET scalar_subquery_error_on_multiple_rows = {not several}")
    database.execute("SET lock_configuration = true")
    return database


_SEVERAL = "More than one row returned by a subquery"
"""What DuckDB says of such a subquery."""


def _computed(connection: duckdb.DuckDBPyConnection, tables: Sequence[Table], query: str) -> dict[str, Any]:
    for name, given, values in tables:
        columns = [(column, _stored(kind)) for column, kind in given]
        declared = ", ".join(f"{_quoted(column)} {kind}" for column, kind in columns)
        connection.execute(f"CREATE TEMP TABLE {_quoted(name)} ({declared})")
        if values and values[0]:
            made = ", ".join(
                f"UNNEST(CAST(${place + 1} AS {_sent(kind)}[]))::{kind}" for place, (_, kind) in enumerate(columns)
            )
            connection.execute(f"INSERT INTO {_quoted(name)} SELECT {made}", [list(one) for one in values])
    statements = connection.extract_statements(query)
    if [one.type for one in statements] != [duckdb.StatementType.SELECT]:
        return {"wrong": "statement", "function": ""}
    found = connection.execute(statements[0])
    kinds = [str(one[1]) for one in found.description]
    rows = found.fetchmany(_MOST + 1)
    if len(rows) > _MOST:
        return {"wrong": "rows", "function": ""}
    return {"kinds": [_kind(one) for one in kinds], "rows": [[_value(one) for one in row] for row in rows]}


_MOST = 100_000
"""The rows of an answer."""

_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,
    "memory_limit": "512MB",
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "temp_directory": "",
}


_TYPES = {
    "integer": "BIGINT",
    "number": "DOUBLE",
    "text": "VARCHAR",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}


def _stored(kind: str) -> str:
    """DuckDB's name of a type."""
    return _stored(kind.removeprefix("list of ")) + "[]" if kind.startswith("list of ") else _TYPES[kind]


def _sent(kind: str) -> str:
    """As what values of a type are sent."""
    return re.sub("DATE|TIMESTAMP", "VARCHAR", kind)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _kind(kind: str) -> str:
    if kind.endswith("[]"):
        return "list of " + _kind(kind[:-2])
    if re.fullmatch(r"U?(TINY|SMALL|HUGE|BIG)?INT(EGER)?", kind):
        return "integer"
    if kind.startswith(("DOUBLE", "FLOAT", "DECIMAL")):
        return "number"
    if kind.startswith("TIMESTAMP"):
        return "timestamp"
    return {"BOOLEAN": "boolean", "DATE": "date"}.get(kind, "text")


def _value(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str | float):
        return value
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, list):
        return [_value(one) for one in value]
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None).isoformat()
    return value.isoformat() if isinstance(value, datetime.date) else str(value)
