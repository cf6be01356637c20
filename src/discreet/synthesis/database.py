"""Synthetic tables in a database: in memory, where SQL is run on them, and in a file with types and keys. And what the
files of a release say of its errors. Synthetic rows are public: this runs in the owner's process."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from discreet.errors import QuestionError, refused
from discreet.release.values import plain
from discreet.synthesis.data import SyntheticData
from discreet.synthesis.digest import ROWS, digest, digest_of, quoted, reading
from discreet.synthesis.known import SyntheticTable
from discreet.trusted.ring_a.table import Column, Source, SourceKind, Table

_MOST = 100_000
_TYPES = {
    "integer": "BIGINT",
    "number": "DOUBLE",
    "text": "TEXT",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}


def run(tables: Mapping[str, SyntheticData], sql: str) -> tuple[list[str], list[list[Any]]]:
    """The columns and rows that a SELECT on these tables gives. Raises QuestionError where it fails."""
    import duckdb

    connection = duckdb.connect(":memory:", config={"python_enable_replacements": "false"})
    try:
        for name, one in tables.items():
            _fill(connection, name, one)
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        found = connection.execute(sql)
        return [one[0] for one in found.description or ()], [list(row) for row in found.fetchmany(_MOST)]
    except duckdb.Error as error:
        message = f"the database rejected it: {str(error).splitlines()[0][:200]}"
        raise refused("synthetic", message, "question", "correct the question") from None
    finally:
        connection.close()


def write(tables: Mapping[str, SyntheticData], path: Path) -> Path:
    """Writes the tables to a DuckDB file, in the place of one that `place` gave, each with its types, NOT NULL where no
    value is missing, and keys; a table's comment has the bounds of its errors. Those above come first.

    Raises QuestionError where it cannot be written.
    """
    import duckdb

    made = path.with_name(f".discreet-{secrets.token_hex(8)}.part")  # a name that nobody else's file has
    try:
        connection = duckdb.connect(str(made))
        try:
            for name, one in tables.items():
                _fill(connection, name, one, _constraints(one, tables))
                text = one.known.written(digest(connection, quoted(name))).replace("'", "''")
                connection.execute(f"COMMENT ON TABLE {quoted(name)} IS '{text}'")
        finally:
            connection.close()
        os.replace(made, path)
    except (OSError, duckdb.Error):
        made.unlink(missing_ok=True)
        message = f"{path} cannot be written"
        fix = "write it elsewhere; asking again is free"
        raise QuestionError("output", message, where="path", fix=fix) from None
    return path


def _constraints(one: SyntheticData, tables: Mapping[str, SyntheticData]) -> list[str]:
    """What the database is told to hold: made-up keys, and what refers to them."""
    keys, refers = one.holds.keys or () if one.known.together else (), one.known.refers
    found = [f"{'UNIQUE' if place else 'PRIMARY KEY'} ({quoted(key)})" for place, key in enumerate(keys)]
    above = tables.get(refers.get("table", ""))
    if above is not None and refers.get("key"):
        target = f"{quoted(refers['table'])} ({quoted(refers['key'])})"
        found.append(f"FOREIGN KEY ({quoted(refers['column'])}) REFERENCES {target}")
    return found


def _fill(connection: Any, name: str, one: SyntheticData, constraints: Sequence[str] = ()) -> None:
    values = {f"c{place}": one._read[column].values for place, column in enumerate(one.columns)}
    lines = []
    for column in one.columns:
        there = "(none)" not in one.domain.get(column, []) and None not in one._read[column].plain()
        lines.append(f"{quoted(column)} {_TYPES[one.holds.types[column]]}" + (" NOT NULL" if there else ""))
    connection.execute(f"CREATE TABLE {quoted(name)} ({', '.join([*lines, *constraints])})")
    connection.register(ROWS, values)
    casts = (f"CAST(c{place} AS {_TYPES[one.holds.types[column]]})" for place, column in enumerate(one.columns))
    connection.execute(f"INSERT INTO {quoted(name)} SELECT {', '.join(casts)} FROM {quoted(ROWS)}")
    connection.unregister(ROWS)


def bounds_of(table: Table, declared: Iterable[Table] = ()) -> SyntheticTable | None:
    """What a declared table's source says of the errors of its rows, where a release has made it: an Arrow table, a
    Parquet file or a DuckDB file; None of any other, and where the rows are no longer the release's. Columns that are
    declared otherwise than by the release, or are clamped or rounded, may have other cells.

    A DuckDB file is not opened here where a log lies beside it, or where one of the `declared` tables about people is
    in it too: rows about people are in the engine's process alone.
    """
    try:
        text = None if _with_people(table.source, declared) else _said(table.source)
        known = None if text is None else SyntheticTable.of(text)
        if known is None or not known.rows or known.rows != _rows(table.source):
            return None
    except (OSError, ValueError):  # nothing of a file that is public makes a question fail
        return None
    columns = {one.name.casefold(): one for one in table.columns}
    whole = {name: cells for name, cells in known.whole.items() if _as_made(columns.get(name.casefold()), cells)}
    return replace(known, whole=whole)


def _as_made(column: Column | None, cells: Mapping[str, Any]) -> bool:
    if column is None:
        return False
    listed = column.values is None or {plain(one) for one in column.values} >= set(cells["values"])
    same = column.type in (None, cells["type"]) and column.minimum is column.maximum is column.step is None
    return same and listed


def _rows(source: Source) -> str | None:
    """The digest of a source's rows."""
    if source.kind is SourceKind.FRAME:
        arrow: Any = sys.modules.get("pyarrow")
        return digest_of(source.frame) if arrow and isinstance(source.frame, arrow.Table) else None
    with reading() as connection:
        if source.kind is SourceKind.PARQUET:
            where = str(source.path).replace("'", "''")
            return digest(connection, f"read_parquet('{where}')")
        _attach(connection, Path(str(source.path)))
        return digest(connection, f"made.main.{quoted(str(source.relation))}")
    return None


def _with_people(source: Source, declared: Iterable[Table]) -> bool:
    """Whether a DuckDB file may hold rows about people, by what is declared and by the files that are there."""
    if source.kind is not SourceKind.DATABASE or source.path is None:
        return False
    others = [one.source.path for one in declared if not one.public and one.source.path is not None]
    return logged(source.path) or any(_one_file(one, source.path) for one in others)


def _one_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one of them is not there, or is the pattern of several
        return False


def _said(source: Source) -> str | bytes | None:
    if source.kind is SourceKind.FRAME:
        metadata = getattr(getattr(source.frame, "schema", None), "metadata", None)
        return metadata.get(b"discreet") if isinstance(metadata, dict) else None
    if source.path is None or source.further or not source.path.is_file():
        return None
    with reading() as connection:
        if source.kind is SourceKind.PARQUET:
            said = "SELECT value FROM parquet_kv_metadata(?) WHERE key::TEXT = 'discreet'"
            found = connection.execute(said, [str(source.path)]).fetchone()
        else:
            _attach(connection, source.path)
            said = "SELECT comment FROM duckdb_tables() WHERE database_name = 'made' AND table_name = ?"
            found = connection.execute(said, [source.relation]).fetchone()
        return None if found is None else found[0]
    return None


def published_alone(path: Path) -> bool:
    """Whether a file is a DuckDB file that holds published tables, and nothing else. Its catalogue is read, and no
    row; not where a log lies beside it, which would be taken in."""
    if not path.is_file() or logged(path):
        return False
    listed = " UNION ALL ".join(
        f"SELECT comment FROM duckdb_{kind}() WHERE database_name = 'made' AND NOT internal"
        for kind in ("tables", "views")
    )
    with reading() as connection:
        _attach(connection, path)
        comments = [comment for (comment,) in connection.execute(listed).fetchall()]
        return bool(comments) and all(one is not None and SyntheticTable.of(one) is not None for one in comments)
    return False


def logged(path: Path) -> bool:
    """Whether a log of what was written lies beside a DuckDB file, which whoever opens the file takes into it."""
    return any(os.path.lexists(f"{one}.wal") for one in (path, os.path.realpath(path)))


def _attach(connection: Any, path: Path) -> None:
    where = str(path).replace("'", "''")
    connection.execute(f"ATTACH '{where}' AS made (READ_ONLY)")
