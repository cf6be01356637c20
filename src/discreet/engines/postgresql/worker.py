"""The child process that speaks to a PostgreSQL server: questions run there, and this process is told their totals.

Forked for each curator, with requests on standard input and answers on standard output, as DuckDB's is. No message of
the server crosses: it may quote a value. What is written there goes into schemas of this user's own (`place`).

A question is one statement in a transaction that only reads. Where the connection ends, or the server ends a statement
because of a limit, this process ends: that tells that there may be such rows, and the tables wait for their owner.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import resource
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import adbc_driver_postgresql.dbapi as adbc
import pyarrow
import pyarrow.compute

from discreet.engines.answers import answering, dense
from discreet.engines.arrow import bytes_of, rows_of
from discreet.engines.child import UnreadableSource, held
from discreet.engines.postgresql.connection import OLDEST, identifier, literal, reason
from discreet.engines.postgresql.place import SIDE, lock
from discreet.engines.postgresql.server import SnapshotConnection, connect, settings
from discreet.engines.protocol import LOAD_SECONDS

_GIB = 1 << 30
_LIBRARIES = 1 << 30
"""What libraries and threads reserve of the address space after this process has begun."""

_BROKEN = frozenset({"08", "53", "57", "58", "XX"})
"""Classes of the server's codes that say that it could not go on: out of memory or disk, a time limit, its own end."""

_CANCELLED = "57014"

_OWNERS = frozenset({"open", "load", "lock", "retain", "size"})
"""Requests of the owner's, who is told which failure it was."""

_ASKING = frozenset({"run", "listed", "build", "vectors", "counts"})
"""Requests that read what was loaded."""

_OURS = "discreet_"
"""How the names of all schemas begin that are made here."""

_MADE = re.compile(r"CREATE( OR REPLACE)? TABLE (\w+)(.*)", re.DOTALL)
_DROPPED = re.compile(r"(DROP|ALTER) TABLE (\w+)(.*)", re.DOTALL)

_MAKING = {"work_mem": "256MB", "parallel_tuple_cost": "0.01"}
"""What is set while tables are made: rows of persons are sorted once, which is faster in memory."""

TRIAL = "pg_temp"
"""The schema of a session's own tables: they end with it."""

_SAYING = "'log_statement', 'log_duration', 'log_min_duration_statement', 'log_min_duration_sample'"
"""Settings by which a server's log may hold statements that do not fail."""
_QUIET = ("none", "ddl", "off", "-1")

_WHOLE = (
    "SELECT CAST(n.nspname AS text) AS schema, CAST(n.xmin AS text) AS made, CAST(c.relname AS text) AS name,"
    " CAST(c.oid AS int8) AS number, CAST(c.xmin AS text) AS version"
    " FROM pg_catalog.pg_namespace n LEFT JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relkind <> 'i'"
    " WHERE n.nspname IN ({0}) ORDER BY schema, name, number"
)
"""What the catalog says of all that stands in some schemas. Where it says the same at two moments, nothing was dropped,
emptied, altered, renamed or put in its place between them: each of these writes a new version of a row."""

_OWN = "SELECT 1 AS n FROM pg_catalog.pg_namespace WHERE nspname = {0} AND nspowner = CAST(current_user AS regrole)"

_POWERS = ("pg_read_server_files", "pg_write_server_files", "pg_execute_server_program")
_MEMBER = "pg_has_role('{0}', 'member')"
_FACTS_OF_USER = (
    "SELECT EXISTS (SELECT FROM pg_catalog.pg_roles AS one WHERE one.rolsuper AND pg_has_role(one.oid, 'member'))"
    f" OR {' OR '.join(map(_MEMBER.format, _POWERS))}"
    " AS power, has_database_privilege(current_database(), 'CREATE') AS place, "
    "has_database_privilege(current_database(), 'TEMPORARY') AS trial, "
    "CAST(current_setting('server_version_num') AS int8) AS version, "
    "CAST(getdatabaseencoding() AS text) AS encoding FROM pg_catalog.pg_roles WHERE rolname = current_user"
)


def main() -> None:
    answering(PostgreSQLWorker, _failed)


def _failed(operation: str, error: Exception) -> Any:
    if isinstance(error, MemoryError | pyarrow.ArrowMemoryError):
        os._exit(1)
    if isinstance(error, adbc.Error):
        if _is_broken(error.sqlstate):
            os._exit(1)
        return {"refused": reason(error.sqlstate, "")} if operation in _OWNERS else {"failed": True}
    return {"refused": error.word} if isinstance(error, UnreadableSource) else {"failed": True}


def _is_broken(state: str | None) -> bool:
    """Whether the server could not go on, or the connection is none any more."""
    return state is None or state[:2] in _BROKEN or state[:3] == "25P"


class PostgreSQLWorker:
    """A connection on which questions are asked, and one on which tables are loaded."""

    def __init__(self) -> None:
        self.asking: Any = None
        self.loading: SnapshotConnection | None = None
        self.side = ""
        self.schemas: list[str] = []
        self.whole: dict[str, list[Any]] = {}
        self.locked = False

    def answer(self, operation: str, *arguments: Any) -> Any:
        """The answer to one request. The process ends instead where what a question read is not what was loaded any
        more."""
        found = getattr(self, f"do_{operation}")(*arguments)
        if operation in _ASKING and not self._is_whole():
            os._exit(1)  # what was read may be another table
        return found

    def _is_whole(self) -> bool:
        """Whether what questions read is what was made or opened. Rows alone may have been changed, by whom the server
        lets write into a schema of ours."""
        return not self.locked or self._said(self._rows, self.whole) == self.whole

    def _said(self, rows: Callable[[str], list[dict[str, Any]]], schemas: Iterable[str]) -> dict[str, list[Any]]:
        """What the catalog says of schemas."""
        found: dict[str, list[Any]] = {schema: [] for schema in schemas}
        for row in rows(_WHOLE.format(", ".join(map(literal, found)))) if found else ():
            found[row["schema"]].append([row["made"], row["name"], row["number"], row["version"]])
        return found

    def do_whole(self) -> Any:
        """Ends this process where what questions read is not there any more."""
        if not self._is_whole():
            os._exit(1)
        return {}

    def do_limit(self, memory_gib: int) -> Any:
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (held() + _LIBRARIES + memory_gib * _GIB, most))
        return {}

    def do_connect(self, url: str, environment: Mapping[str, str], seconds: int, trial: bool) -> Any:
        """Connects for questions, of which none takes longer than so many seconds, and says by which settings the
        server's log holds what they ask."""
        self.url, self.environment, self.seconds = url, environment, seconds
        self.asking = connect(url, environment)
        wanted = settings(seconds) | {
            "idle_in_transaction_session_timeout": "0",
            "idle_session_timeout": "0",
            "default_transaction_read_only": "on",
            "client_connection_check_interval": "1s",  # a question ends with who asked it
        }
        try:
            for name, value in wanted.items():
                self._run(f"SET {name} = '{value}'")
            (known,) = self._rows(_FACTS_OF_USER)
            logged = self._rows(f"SELECT name, setting FROM pg_catalog.pg_settings WHERE name IN ({_SAYING})")
        except adbc.Error as error:
            raise UnreadableSource(reason(getattr(error, "sqlstate", None), str(error))) from None
        if known["version"] < OLDEST * 10_000:
            raise UnreadableSource("old")
        if known["encoding"] != "UTF8":
            raise UnreadableSource("encoding")
        if known["power"]:
            raise UnreadableSource("power")
        if not known["trial" if trial else "place"]:
            raise UnreadableSource("place")
        self.side = TRIAL if trial else ""
        self._search()
        return {"logs": sorted(f"{one['name']} = {one['setting']}" for one in logged if one["setting"] not in _QUIET)}

    def do_columns(self, relation: str) -> Any:
        """The columns of a table, from the server's catalog."""
        return {"columns": self._server().columns(relation)}

    def _server(self) -> SnapshotConnection:
        if self.locked:
            raise ValueError
        if self.loading is None:
            self.loading = SnapshotConnection(self.url, self.environment, LOAD_SECONDS, writes=True)
        return self.loading

    def do_hold(self, selects: list[str]) -> Any:
        """Begins to read tables, all as they are at one moment."""
        self._server().hold(selects)
        return {}

    def do_load(self, stem: str, select: str, statements: list[str], facts: str, digest: str, salt: bytes) -> Any:
        """Makes a table's snapshot, and gives the hash of its rows. It stays with `lock`."""
        server = self._server()
        if select not in server.locked:  # it is of another moment than what was loaded so far, which stays
            if server.made:
                server.commit()
            server.hold([select])
        server.run("SAVEPOINT table_of_ours")
        making = f"{stem}{secrets.token_hex(8)}"
        server.made.append(making)
        before, name = list(self.schemas), ""
        try:
            fingerprint = self._make(server, making, statements, facts, salt)
            if server.has_changed():
                raise UnreadableSource("changed")
            name = stem + fingerprint[:16]
            self._reserve(name)  # from here on nobody drops it
            there = self._is_there(server, name, digest, fingerprint)
            if there:  # these rows were loaded before
                server.run("ROLLBACK TO SAVEPOINT table_of_ours")
            else:
                marked = f"SELECT {literal(digest)} AS digest, {literal(fingerprint)} AS fingerprint"
                (table,) = self._tables(server.rows, making)
                filled = f"EXISTS (SELECT FROM {making}.{identifier(table)}) AS filled"
                server.run(f"CREATE TABLE {making}.snapshot AS {marked}, {filled}")
                server.run(f"ALTER SCHEMA {making} RENAME TO {name}")
            server.made[-1] = name
            self.whole |= self._said(server.rows, [name])
        except (UnreadableSource, ValueError):
            with suppress(UnreadableSource):
                server.run("ROLLBACK TO SAVEPOINT table_of_ours")
            server.made.remove(making)
            if name in self.schemas and name not in before:
                self._release(name)
            raise
        return {"fingerprint": fingerprint}

    def _is_there(self, server: SnapshotConnection, name: str, digest: str, fingerprint: str) -> bool:
        """Whether a snapshot is there. What else has its name is dropped, unless somebody reads it."""
        if not server.rows(f"SELECT 1 AS n FROM pg_catalog.pg_namespace WHERE nspname = {literal(name)}"):
            return False
        if name in server.made or self._marked(server.rows, name) == (digest, fingerprint):
            return True
        if not server.rows(_OWN.format(literal(name))):
            raise UnreadableSource("taken")
        if not self._rows(f"SELECT pg_try_advisory_lock({lock(name)}) AS n")[0]["n"]:
            raise UnreadableSource("read")
        try:
            server.run(f"DROP SCHEMA {name} CASCADE")
        finally:
            self._rows(f"SELECT pg_advisory_unlock({lock(name)})")
        return False

    def _make(self, server: SnapshotConnection, schema: str, statements: list[str], facts: str, salt: bytes) -> str:
        for name, value in _MAKING.items():
            server.run(f"SET LOCAL {name} = '{value}'")
        server.run(f"CREATE SCHEMA {schema}")
        for statement in statements:
            for text in _built(statement, schema):
                server.run(text)
        server.run(f"SET LOCAL search_path = pg_catalog, {schema}")
        (found,) = server.rows(facts)
        text = json.dumps([str(fact) for fact in found.values()])
        return hashlib.sha256(salt + text.encode()).hexdigest()

    def _marked(self, rows: Callable[[str], list[dict[str, Any]]], name: str) -> tuple[str, str] | None:
        """What a schema of ours says that it is; None where it is somebody else's, or nobody's, or was emptied."""
        if not rows(_OWN.format(literal(name))):
            return None
        tables = set(self._tables(rows, name))
        if len(tables) != 2 or "snapshot" not in tables:
            return None
        (table,) = tables - {"snapshot"}
        there = f"EXISTS (SELECT FROM {name}.{identifier(table)})"
        found = rows(f"SELECT digest, fingerprint FROM {name}.snapshot WHERE filled = {there}")
        return (found[0]["digest"], found[0]["fingerprint"]) if len(found) == 1 else None

    def _tables(self, rows: Callable[[str], list[dict[str, Any]]], schema: str) -> list[str]:
        """This user's tables in a schema."""
        ours = f"relnamespace = CAST({literal(schema)} AS regnamespace) AND relowner = CAST(current_user AS regrole)"
        found = rows(f"SELECT CAST(relname AS text) AS n FROM pg_catalog.pg_class WHERE {ours} AND relkind = 'r'")
        return [row["n"] for row in found]

    def do_open(self, name: str, digest: str, fingerprint: str) -> Any:
        """Whether a snapshot is there; then it can be read, and nobody drops it."""
        if name in self.schemas:
            return {"found": True}
        self._reserve(name)
        try:
            said = self._said(self._rows, [name])
            found = self._marked(self._rows, name) == (digest, fingerprint)
        except adbc.Error as error:
            if _is_broken(error.sqlstate):
                raise
            found = False
        if found:
            self.whole |= said
        else:
            self._release(name)
        return {"found": found}

    def _reserve(self, name: str) -> None:
        """Nobody drops this schema while this process lives."""
        if name not in self.schemas:
            self._rows(f"SELECT pg_advisory_lock_shared({lock(name)})")
            self.schemas.append(name)

    def _release(self, name: str) -> None:
        self.schemas.remove(name)
        self._rows(f"SELECT pg_advisory_unlock_shared({lock(name)})")

    def do_retain(self, stem: str, name: str) -> Any:
        """Drops the other snapshots of a table that no process reads, and what processes left that have ended."""
        for beginning in (stem, SIDE):
            self._drop(beginning, but=(name, self.side))
        return {}

    def do_size(self, name: str) -> Any:
        """The bytes of a snapshot."""
        within = f"SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = {literal(name)}"
        sizes = f"SELECT pg_total_relation_size(oid) AS n FROM pg_catalog.pg_class WHERE relnamespace IN ({within})"
        (found,) = self._rows(f"SELECT CAST(COALESCE(sum(n), 0) AS int8) AS n FROM ({sizes} AND relkind = 'r') AS s")
        return {"bytes": found["n"]}

    def _ours(self, beginning: str) -> list[str]:
        """This user's schemas with such names."""
        ours = f"left(nspname, {len(beginning)}) = {literal(beginning)} AND nspowner = CAST(current_user AS regrole)"
        rows = self._rows(f"SELECT CAST(nspname AS text) AS n FROM pg_catalog.pg_namespace WHERE {ours}")
        return [row["n"] for row in rows]

    def _drop(self, beginning: str, but: Sequence[str]) -> None:
        """Drops this user's schemas with such names that no process has open."""
        for name in self._ours(beginning):
            if name in but or not self._rows(f"SELECT pg_try_advisory_lock({lock(name)}) AS n")[0]["n"]:
                continue
            with suppress(adbc.Error):
                self._write([f"DROP SCHEMA {identifier(name)} CASCADE"])
            self._rows(f"SELECT pg_advisory_unlock({lock(name)})")

    def do_lock(self) -> Any:
        """What was loaded stays, and nothing more is."""
        if self.loading is not None:
            self.loading.commit()
            self.loading.close()
            self.loading = None
        self._search()
        self.locked = True
        if not self._is_whole():
            raise UnreadableSource("changed")
        return {}

    def _search(self) -> None:
        """Tables are found in the process's own schema first: what is built there of a table stands before it."""
        self._run(f"SET search_path = {self._path()}")

    def _path(self) -> str:
        return ", ".join(["pg_catalog", *filter(None, [self.side]), *self.schemas])

    def do_run(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """The rows of a SELECT."""
        if self.loading is not None and self.loading.locked:  # a part of what was loaded is seen there alone
            self.loading.run(f"SET LOCAL search_path = {self._path()}")
            return {"rows": [list(row.values()) for row in self.loading.rows(sql)]}
        return {"rows": rows_of(self._table(sql, values))}

    def do_listed(self, sql: str, seconds: float) -> Any:
        """Rows of public tables, or failed where that takes longer."""
        self._run(f"SET statement_timeout = {max(1, round(1000 * seconds))}")
        try:
            return self.do_run(sql)
        except adbc.Error as error:
            if error.sqlstate == _CANCELLED:
                raise ValueError from None
            raise
        finally:
            self._run(f"SET statement_timeout = '{self.seconds}s'")

    def do_build(self, statements: list[str]) -> Any:
        """Builds what questions read beside a table. All of it, or nothing."""
        if not self.side:
            name = f"{SIDE}{secrets.token_hex(8)}"
            self._drop(SIDE, but=())
            self._rows(f"SELECT pg_advisory_lock({lock(name)})")
            self._write([f"CREATE SCHEMA {name}"])
            self.side = name
            self._search()
        self._write([text for statement in statements for text in _built(statement, self.side)])
        return {}

    def do_example(self, path: str, name: str) -> Any:
        """Makes a table of a CSV file, for a demonstration."""
        import pyarrow.csv

        self.before = self._ours(_OURS)
        self.do_build([])
        self._run("BEGIN READ WRITE")
        with self.asking.cursor() as cursor:
            cursor.adbc_ingest(name, pyarrow.csv.read_csv(path), mode="create", db_schema_name=self.side)
        self._run("COMMIT")
        return {"schema": self.side}

    def do_over(self) -> Any:
        """Drops it, and what was made of it: all of this user's that was not there before, and that nobody reads."""
        self._drop(_OURS, but=[*self.before, self.side])
        self._write([f"DROP SCHEMA {self.side} CASCADE"])
        return {}

    def do_empty(self, statements: list[str]) -> Any:
        """Builds a table that has no rows."""
        return self.do_build(statements)

    def do_prepare(self, trials: list[tuple[list[str], str]]) -> Any:
        """The types of what each SELECT gives, after what is built for it, of which nothing is kept."""
        types = []
        for built, sql in trials:
            self._run("BEGIN READ WRITE")
            try:
                for statement in built:
                    for text in _built(statement, self.side):
                        self._run(text)
                types.append([_type(field.type) for field in self._table(sql).schema])
            finally:
                self._run("ROLLBACK")
        return {"types": types}

    def do_vectors(self, sql: str) -> Any:
        """Each column of a SELECT as bytes: the first without NULLs; of the others what is not NULL, then values."""
        first, *columns = self._table(sql).columns
        buffers = bytes_of(first)
        for column in columns:
            buffers += [column.is_valid().to_numpy().tobytes(), *bytes_of(column)]
        return {"buffers": buffers}

    def do_counts(self, wanted: list[tuple[str, tuple[int, ...]]]) -> Any:
        """For each SELECT of places and their count: the counts of all places, as bytes."""
        buffers = []
        for sql, shape in wanted:
            *places, count = (column.to_numpy() for column in self._table(sql).columns)
            buffers.append(dense(places, count, shape))
        return {"buffers": buffers}

    def _write(self, statements: Sequence[str]) -> None:
        self._run("BEGIN READ WRITE")
        try:
            for statement in statements:
                self._run(statement)
            if self.side not in ("", TRIAL):
                self.whole |= self._said(self._rows, [self.side])
            self._run("COMMIT")
        except Exception:
            self._run("ROLLBACK")
            raise

    def _run(self, statement: str) -> None:
        with self.asking.cursor() as cursor:
            cursor.execute(statement)

    def _rows(self, select: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self._table(select).to_pylist()
        return rows

    def _table(self, select: str, values: Sequence[Any] = ()) -> pyarrow.Table:
        """What a SELECT gives. An error in the midst of rows has no code: it is the server's own end, or a limit."""
        with self.asking.cursor() as cursor:
            cursor.execute(select, tuple(values) or None)
            try:
                return cursor.fetch_arrow_table()
            except (pyarrow.ArrowException, OSError):
                os._exit(1)


def _built(statement: str, schema: str) -> list[str]:
    """A statement that makes, changes or drops a table, as the server has it, for a table in this schema: none of
    another one is ever changed. What is made keeps its name where another had it."""
    if found := _MADE.fullmatch(statement):
        replaced, name, rest = found.groups()
        made = f"{schema}.{name}"
        if not replaced:
            return [f"CREATE TABLE {made}{rest}", *_ready(made, schema)]
        new = f"{schema}.new_{name}"
        renamed = f"ALTER TABLE {new} RENAME TO {name}"
        return [f"CREATE TABLE {new}{rest}", f"DROP TABLE IF EXISTS {made}", renamed, *_ready(made, schema)]
    if found := _DROPPED.fullmatch(statement):
        verb, name, rest = found.groups()
        return [f"{verb} TABLE {schema}.{name}{rest}"]
    raise ValueError


def _ready(made: str, schema: str) -> list[str]:
    """Nobody but us writes these tables: what the planner knows of them, from a sample of their rows, stays as it is.
    Without that it takes plans that are several times slower."""
    return [] if schema == TRIAL else [f"ALTER TABLE {made} SET (autovacuum_enabled = false)", f"ANALYZE {made}"]


_TYPES = (
    (pyarrow.types.is_int64, "BIGINT"),
    (pyarrow.types.is_float64, "DOUBLE"),
    (pyarrow.types.is_string, "VARCHAR"),
    (pyarrow.types.is_boolean, "BOOLEAN"),
    (pyarrow.types.is_date32, "DATE"),
    (pyarrow.types.is_timestamp, "TIMESTAMP"),
)


def _type(kind: pyarrow.DataType) -> str:
    """What an engine's program calls a type: the server's numeric holds whole numbers here, of any size."""
    if isinstance(kind, pyarrow.BaseExtensionType):
        return "HUGEINT" if getattr(kind, "type_name", "") == "numeric" else str(kind)
    return next((name for is_one, name in _TYPES if is_one(kind)), str(kind))
