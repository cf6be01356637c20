"""A connection to a PostgreSQL server that reads whole tables, all of one moment. It runs where the rows go: in the
engine's process, and in no other.

All tables of one load are read in one transaction, REPEATABLE READ and READ ONLY. That alone would not do: rows come
from the snapshot, but what a name means, which parts a table has, what stands behind a view and in which file rows lie
is taken from the newest catalog. So a table that is emptied, rewritten, renamed, given another part or replaced after
the snapshot is read as it never was. LOCK TABLE before the snapshot would do, but needs the right to read the whole
table, where the right to read the declared columns is to suffice. So each table is locked as any SELECT locks it
(ACCESS SHARE, up to the end of the transaction), by one that reads no row, and then what the catalog says of all that
is locked (tables, their parts, views and what stands behind them) is held against what a second connection, which has
no snapshot, is told: where the two differ, snapshot and locks are taken anew.
Some changes do not wait for these locks (a part that is added, a schema that is renamed), and what the functions of a
view read is locked only when they run. So the two are compared again after the last row of each table: where they
differ then, the table is not loaded.
What is compared is the xmin of each row. Two rows of different writers have different ones, and a row that the snapshot
does not see has a writer whom it does not see. So where both sides have the same xmins, as often, they have the same
rows, and these were the newest at every moment between the snapshot and the comparison.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote

import adbc_driver_postgresql.dbapi as adbc
import pyarrow

from discreet.engines.child import UnreadableSource
from discreet.engines.postgresql.columns import catalog
from discreet.engines.postgresql.connection import LOCK_SECONDS, OLDEST, literal, reason, surroundings

TRIALS = 10
"""So often a snapshot is taken before it is given up."""

_SAID_OF: Mapping[str, str] = {
    "pg_class": "oid",
    "pg_attribute": "attrelid",
    "pg_attrdef": "adrelid",
    "pg_inherits": "inhparent",
    "pg_rewrite": "ev_class",
    "pg_policy": "polrelid",
}
"""Where the catalog says what a relation is, and of which one a row says it."""

_FIRST = 16_384
"""Relations of smaller numbers are the server's own, which stay as they are."""

_FACTS = (
    "WITH locked AS (SELECT DISTINCT virtualtransaction AS holder, relation FROM pg_catalog.pg_locks"
    f" WHERE pid = {{0}} AND relation NOT IN ({{1}}) AND locktype = 'relation' AND granted AND relation >= {_FIRST}), "
    "facts AS (SELECT 'locked ' || holder AS of, relation AS number, '' AS version FROM locked UNION ALL "
    "SELECT 'pg_namespace', c.oid, CAST(n.xmin AS text) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n"
    " ON n.oid = c.relnamespace WHERE c.oid IN (SELECT relation FROM locked) UNION ALL "
    + " UNION ALL ".join(
        f"SELECT '{catalog}', {number}, CAST(xmin AS text) FROM pg_catalog.{catalog}"
        f" WHERE {number} IN (SELECT relation FROM locked)"
        for catalog, number in _SAID_OF.items()
    )
    + ") SELECT of, CAST(number AS int8) AS number, version, count(*) AS n FROM facts"
    " GROUP BY of, number, version ORDER BY of, number, version"
)
"""What is said of all that a process of the server has locked, but for some relations. Who holds the locks stands in
it, so that two servers never say the same."""

_OURS = (
    "WITH made AS (SELECT c.oid, c.reltoastrelid FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n"
    " ON n.oid = c.relnamespace WHERE n.nspname IN ({0})) SELECT CAST(oid AS int8) AS n FROM made UNION ALL "
    "SELECT CAST(reltoastrelid AS int8) FROM made WHERE reltoastrelid > 0 UNION ALL "
    "SELECT CAST(i.indexrelid AS int8) FROM pg_catalog.pg_index i JOIN made ON i.indrelid = made.reltoastrelid"
)
"""The numbers of what stands in some schemas, and of what the server keeps beside it."""


class SnapshotConnection:
    """One connection, and one beside it that has no snapshot. Raises UnreadableSource where they cannot be made.

    What `writes` may write as well, in the transaction that reads."""

    def __init__(self, url: str, environment: Mapping[str, str], seconds: int, *, writes: bool = False) -> None:
        self._seconds = seconds
        self._writes = writes
        self._reading: Any = None
        self.locked: frozenset[str] = frozenset()
        self.made: list[str] = []
        self._broken_after: float | None = None
        self._changed = ""
        self._connection = connect(url, environment)
        try:
            self._beside = connect(url, environment)
        except UnreadableSource:
            self._connection.close()
            raise
        try:
            self.run("BEGIN READ ONLY")
            version = self.rows("SELECT current_setting('server_version_num') AS v, getdatabaseencoding() AS e")[0]
            self.run("COMMIT")
            if int(version["v"]) < OLDEST * 10_000:
                raise UnreadableSource("old")
            if version["e"] == "SQL_ASCII":
                raise UnreadableSource("encoding")
        except UnreadableSource:
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
            found = self.rows(means)
            if not found:
                raise UnreadableSource("missing")
            if found[0]["kind"] not in ("r", "p", "v", "m", "f"):
                raise UnreadableSource("kind")
            if not found[0]["usable"]:
                raise UnreadableSource("schema")
            rows = self.rows(columns.format(found[0]["number"]))
            return [[row["name"], row["kind"], row["modifier"], row["readable"]] for row in rows]
        finally:
            if alone:
                self._end()

    def hold(self, selects: Sequence[str]) -> None:
        """Begins to read tables with these statements, all as they are at one moment."""
        for _ in range(TRIALS):
            self._end()
            self._begin(f"ISOLATION LEVEL REPEATABLE READ {'READ WRITE' if self._writes else 'READ ONLY'}")
            try:
                parts = ", ".join(f"({select} LIMIT 0) AS t{place}" for place, select in enumerate(selects))
                self.rows(f"SELECT 1 AS n FROM {parts}")
                changed = self.has_changed()
            except UnreadableSource:
                self._end()
                raise
            if not changed:
                self.locked = frozenset(selects)
                return
        self._end()
        raise UnreadableSource("rewritten")

    def has_changed(self) -> bool:
        """Whether something that is locked is not any more what the snapshot knows; what is made here is left out."""
        (process,) = self.rows("SELECT pg_backend_pid() AS n")
        ours = self.rows(_OURS.format(", ".join(map(literal, self.made)))) if self.made else []
        facts = _FACTS.format(process["n"], ", ".join(str(one["n"]) for one in ours) or "0")
        known = self.rows(facts)
        self._begin("READ ONLY", self._beside)
        try:
            return known != self.rows(facts, self._beside)
        finally:
            self.run("ROLLBACK", self._beside)

    def read(self, select: str, names: Sequence[str]) -> pyarrow.RecordBatchReader:
        """The rows of a statement that is held, in batches under these names. Where they end with an error, `why` says
        why."""
        self._broken_after, self._changed, begin = None, "", time.monotonic()
        self.run("SAVEPOINT table_of_ours")  # if this one fails, the others of this moment can still be read
        self._reading = self._connection.cursor()
        try:
            self._reading.execute(select)
            batches = self._reading.fetch_record_batch()
        except adbc.Error as error:
            word = _word(error)
            self.done()
            raise UnreadableSource(word) from None
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
        try:
            if self.has_changed():
                raise UnreadableSource("changed")
        except UnreadableSource as error:
            self._changed = error.word
            raise

    def why(self) -> str:
        """The word for why the rows that were read last ended with an error; none where they did not. In the midst of
        rows the driver hands on no code, and the words of the server are in its own language."""
        if self._broken_after is None:
            return self._changed
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
                self.run("ROLLBACK TO SAVEPOINT table_of_ours")
            except UnreadableSource:
                self.locked = frozenset()

    def commit(self) -> None:
        """What was written stays."""
        self.run("COMMIT")
        self.locked, self.made = frozenset(), []

    def close(self) -> None:
        """Ends what is being read, and both connections. The server's errors are passed over."""
        if self._reading is not None:
            self._reading.close()
            self._reading = None
        for connection in (self._connection, self._beside):
            with suppress(adbc.Error):
                connection.close()

    def _begin(self, how: str, connection: Any = None) -> None:
        self.run(f"BEGIN {how}", connection)
        for name, value in settings(self._seconds).items():  # SET takes no snapshot, a SELECT would
            self.run(f"SET LOCAL {name} = '{value}'", connection)

    def _end(self) -> None:
        self.locked, self.made = frozenset(), []
        self.run("ROLLBACK")

    def run(self, statement: str, connection: Any = None) -> None:
        """Runs a statement that gives no rows. Raises UnreadableSource."""
        try:
            with (connection or self._connection).cursor() as cursor:
                cursor.execute(statement)
        except adbc.Error as error:
            raise UnreadableSource(_word(error)) from None

    def rows(self, select: str, connection: Any = None) -> list[dict[str, Any]]:
        """The rows of a SELECT, by the names of columns. Raises UnreadableSource."""
        try:
            with (connection or self._connection).cursor() as cursor:
                cursor.execute(select)
                rows: list[dict[str, Any]] = cursor.fetch_arrow_table().to_pylist()
                return rows
        except (adbc.Error, pyarrow.ArrowException, OSError) as error:
            raise UnreadableSource(_word(error)) from None


def settings(seconds: int) -> dict[str, str]:
    """What is set of the server, whatever its own settings are: how values are written, and how long it may take."""
    return {
        "search_path": "pg_catalog",
        "statement_timeout": f"{seconds}s",
        "idle_in_transaction_session_timeout": f"{seconds}s",
        "lock_timeout": f"{LOCK_SECONDS}s",
        "client_encoding": "UTF8",
        "datestyle": "ISO",
        "intervalstyle": "postgres",
        "timezone": "UTC",
        "extra_float_digits": "1",
        "standard_conforming_strings": "on",
        "jit": "off",  # an estimate decides on it: whether a question waits for a compiler would follow from rows
        "transform_null_equals": "off",
        "default_transaction_isolation": "read committed",
        "default_transaction_deferrable": "off",
    }


_ENDED_BY = "'idle_session_timeout', 'transaction_timeout'"
"""By which the server ends a session; the second one is known to it from version 17 on."""


def connect(url: str, environment: Mapping[str, str]) -> Any:
    """A connection. Raises UnreadableSource.

    From its first statement on names are the server's own: the driver asks what types there are as soon as it is
    connected, and whoever may make operators in a schema of the role's search path would have them run as this role."""
    options = f"{environment.get('PGOPTIONS', '')} -c search_path=pg_catalog -c statement_timeout=0".strip()
    try:
        with surroundings(environment):
            connection = adbc.connect(f"{url}{'&' if '?' in url else '?'}options={quote(options)}", autocommit=True)
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ({_ENDED_BY})")
            cursor.fetchall()
    except adbc.Error as error:
        raise UnreadableSource(_word(error)) from None
    return connection


def _word(error: BaseException) -> str:
    """The word for a failure, whose message ends here."""
    return reason(getattr(error, "sqlstate", None), str(error))


def _plain(kind: pyarrow.DataType) -> pyarrow.DataType:
    """A type without what the driver knows of it beside."""
    return kind.storage_type if isinstance(kind, pyarrow.BaseExtensionType) else kind
