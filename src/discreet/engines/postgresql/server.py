"""A connection to a PostgreSQL server that reads whole tables, all of one moment. It runs where the rows go: in the
engine's process, and in no other.

All tables of one load are read in one transaction, REPEATABLE READ and READ ONLY. That alone would not do: TRUNCATE
and rewriting ALTERs take effect for older snapshots too, which then see an empty table. LOCK TABLE before the snapshot
would do, but needs the right to read the whole table, where the right to read the declared columns is to suffice. So
each table is locked as any SELECT locks it (ACCESS SHARE, up to the end of the transaction), by one that reads no row,
and then each lock's table is held against the snapshot: where the snapshot knows another file for it than it has now,
or knows no such table, it was emptied, rewritten or made between the snapshot and the lock, and both are taken anew.
Once locked, none of that can happen. This holds for the parts of a partitioned table and for what stands behind a view
as well, as these are locked with it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import adbc_driver_postgresql.dbapi as adbc
import pyarrow

from discreet.engines.postgresql.columns import catalog
from discreet.engines.postgresql.connection import LOCK_SECONDS, OLDEST, Refused, reason, surroundings

TRIALS = 10
"""So often a snapshot is taken before it is given up."""

_MOVED = """
SELECT count(*) AS n FROM pg_catalog.pg_locks l LEFT JOIN pg_catalog.pg_class c ON c.oid = l.relation
WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation'
AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
AND (c.oid IS NULL OR c.relfilenode <> 0 AND c.relfilenode IS DISTINCT FROM pg_relation_filenode(c.oid))
"""


class Server:
    """One connection. Raises Refused where it cannot be made."""

    def __init__(self, url: str, environment: Mapping[str, str], seconds: int) -> None:
        self._seconds = seconds
        self._reading: Any = None
        self.locked: frozenset[str] = frozenset()
        self._broken_after: float | None = None
        try:
            with surroundings(environment):
                self._connection = adbc.connect(url, autocommit=True)
        except adbc.Error as error:
            raise Refused(_word(error)) from None
        try:
            self._run("BEGIN READ ONLY")
            version = self._rows("SELECT current_setting('server_version_num') AS v, getdatabaseencoding() AS e")[0]
            self._run("COMMIT")
            if int(version["v"]) < OLDEST * 10_000:
                raise Refused("old")
            if version["e"] == "SQL_ASCII":
                raise Refused("encoding")
        except Refused:
            self.close()
            raise

    def columns(self, relation: str) -> list[list[Any]]:
        """Name, type, modifier and readability of each column of a table, from the server's catalog."""
        means, columns = catalog(relation)
        alone = not self.locked
        if alone:
            self._end()
            self._begin("READ ONLY")
        try:
            found = self._rows(means)
            if not found:
                raise Refused("missing")
            if found[0]["kind"] not in ("r", "p", "v", "m", "f"):
                raise Refused("kind")
            if not found[0]["usable"]:
                raise Refused("schema")
            rows = self._rows(columns.format(found[0]["number"]))
            return [[row["name"], row["kind"], row["modifier"], row["readable"]] for row in rows]
        finally:
            if alone:
                self._end()

    def hold(self, selects: Sequence[str]) -> None:
        """Begins to read tables with these statements, all as they are at one moment."""
        for _ in range(TRIALS):
            self._end()
            self._begin("ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try:
                for select in selects:
                    self._rows(f"{select} LIMIT 0")
                moved = self._rows(_MOVED)[0]["n"]
            except Refused:
                self._end()
                raise
            if not moved:
                self.locked = frozenset(selects)
                return
        self._end()
        raise Refused("rewritten")

    def read(self, select: str, names: Sequence[str]) -> pyarrow.RecordBatchReader:
        """The rows of a statement that is held, in batches under these names. Where they end with an error, `why` says
        why."""
        self._broken_after, begin = None, time.monotonic()
        self._run("SAVEPOINT table_of_ours")  # if this one fails, the others of this moment can still be read
        self._reading = self._connection.cursor()
        try:
            self._reading.execute(select)
            batches = self._reading.fetch_record_batch()
        except adbc.Error as error:
            word = _word(error)
            self.done()
            raise Refused(word) from None
        kinds = [_plain(field.type) for field in batches.schema]
        schema = pyarrow.schema(list(zip(names, kinds, strict=True)))
        return pyarrow.RecordBatchReader.from_batches(schema, self._batches(batches, schema, begin))

    def _batches(
        self, batches: pyarrow.RecordBatchReader, schema: pyarrow.Schema, begin: float
    ) -> Iterator[pyarrow.RecordBatch]:
        try:
            for batch in batches:
                yield pyarrow.RecordBatch.from_arrays(batch.columns, schema=schema)
        except (adbc.Error, pyarrow.ArrowException, OSError):
            self._broken_after = time.monotonic() - begin
            raise

    def why(self) -> str:
        """The word for why the rows that were read last ended with an error; none where they did not. In the midst of
        rows the driver hands on no code, and the words of the server are in its own language."""
        if self._broken_after is None:
            return ""
        self.done()
        if not self.locked:
            return "ended"
        return "slow" if self._broken_after >= self._seconds else "failed"

    def done(self) -> None:
        """Ends the reading of a table; the moment is kept, where the connection still is."""
        if self._reading is not None:
            self._reading.close()
            self._reading = None
            try:
                self._run("ROLLBACK TO SAVEPOINT table_of_ours")
            except Refused:
                self.locked = frozenset()

    def close(self) -> None:
        if self._reading is not None:
            self._reading.close()
            self._reading = None
        with suppress(adbc.Error):
            self._connection.close()

    def _begin(self, how: str) -> None:
        self._run(f"BEGIN {how}")
        settings = {
            "search_path": "pg_catalog",
            "statement_timeout": f"{self._seconds}s",
            "idle_in_transaction_session_timeout": f"{self._seconds}s",
            "lock_timeout": f"{LOCK_SECONDS}s",
            "client_encoding": "UTF8",
            "datestyle": "ISO",
            "intervalstyle": "postgres",
            "timezone": "UTC",
            "extra_float_digits": "1",
            "standard_conforming_strings": "on",
        }
        self._rows("SELECT " + ", ".join(f"set_config('{name}', '{value}', true)" for name, value in settings.items()))

    def _end(self) -> None:
        self.locked = frozenset()
        self._run("ROLLBACK")

    def _run(self, statement: str) -> None:
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(statement)
        except adbc.Error as error:
            raise Refused(_word(error)) from None

    def _rows(self, select: str) -> list[dict[str, Any]]:
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(select)
                rows: list[dict[str, Any]] = cursor.fetch_arrow_table().to_pylist()
                return rows
        except (adbc.Error, pyarrow.ArrowException, OSError) as error:
            raise Refused(_word(error)) from None


def _word(error: BaseException) -> str:
    return reason(getattr(error, "sqlstate", None), str(error))


def _plain(kind: pyarrow.DataType) -> pyarrow.DataType:
    """A type without what the driver knows of it beside."""
    return kind.storage_type if isinstance(kind, pyarrow.BaseExtensionType) else kind
