"""The child process that speaks to a Spark server: questions run there, and this process is told their totals.

Forked for each curator, with requests on standard input and answers on standard output, as DuckDB's is; Spark prints
failing values beside its messages, and what this process prints goes nowhere. No message crosses.

What a statement calls a table is a view of this session's own, of a table in the schema `discreet`: `place` says how
these are named. So a table is replaced by a new one in one step, and a column is dropped by another view, which no
engine of tables need be able to do.

Where a statement on rows fails, or takes too long, this process ends: that tells that there may be such rows, and the
tables wait for their owner. Spark tries a task that fails again, elsewhere: it gives the same, as each statement
follows from the stored tables and the salt alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import socket
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

import pyarrow
import pyarrow.compute

from discreet.engines.answers import answering, dense
from discreet.engines.arrow import bytes_of, rows_of
from discreet.engines.child import UnreadableSource
from discreet.engines.spark import leases, place

os.environ.setdefault("SPARK_HOME", os.devnull)  # the client alone looks for all of Spark, and ends without it

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

OLDEST = 4
"""The first version of Spark that has all that statements need."""

CONNECT_SECONDS = 10

SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",  # the key of a folder is a text
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.files.ignoreMissingFiles": "false",  # fewer rows are no answer
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.orderByOrdinal": "true",
}
"""What decides about values, whatever the server's own settings are."""

EMPTY = {
    "spark.sql.shuffle.partitions": "1",
    # a question is planned as it is on tables that hold rows
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.PropagateEmptyRelation,"
    "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation",
    "spark.sql.adaptive.optimizer.excludedRules": "org.apache.spark.sql.execution.adaptive.AQEPropagateEmptyRelation",
}

ROWS_OF_BUCKET, MOST_BUCKETS = 1_000_000, 1_024

_KINDS = {
    "bigint": "BIGINT",
    "int": "INTEGER",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp_ntz": "TIMESTAMP",
}
"""Types of answers, as `twin` names them; a decimal without digits behind its point is a HUGEINT."""

_MADE = re.compile(r"CREATE (OR REPLACE )?TABLE (\w+) (AS (SELECT .*)|\((.*)\))", re.DOTALL)
_DROPPED = re.compile(r"DROP TABLE (\w+)")
_ALTERED = re.compile(r"ALTER TABLE (\w+) DROP COLUMN (\w+)")


def main() -> None:
    answering(SparkWorker, _failed)


def _failed(_: str, error: Exception) -> Any:
    if isinstance(error, MemoryError):
        os._exit(1)
    return {"refused": error.word} if isinstance(error, UnreadableSource) else {"failed": True}


@dataclass(frozen=True)
class ServerTable:
    """A table of ours on the server, those of its columns that are there for statements, and which files it had when it
    was made; of a trial, no table, and what it would hold."""

    relation: str | None
    columns: tuple[str, ...]
    lasting: bool = False
    buckets: tuple[str, int] | None = None
    files: str = ""
    schema: Any = None


class NotOurs(Exception):
    """A statement that is none of ours: nothing of it was run."""


class SparkWorker:
    """A session on the server."""

    def __init__(self) -> None:
        self.session: Any = None
        self.tables: dict[str, ServerTable] = {}
        self.count = 0
        self.loading: tuple[str, int] | None = None
        self.source = ""
        self.locked = False

    def answer(self, operation: str, *arguments: Any) -> Any:
        return getattr(self, f"do_{operation}")(*arguments)

    def do_connect(self, remote: str, token: str | None, session: str, seconds: int, trial: bool) -> Any:
        """Begins a session in which a question takes at most so many seconds; of a trial, without tables."""
        self.mark, self.seconds, self.trial = session.replace("-", ""), seconds, trial
        self.session = _connected(remote, token, session)
        try:
            if int(self.session.version.split(".")[0]) < OLDEST:
                raise UnreadableSource("old")
            for name, value in (SETTINGS | EMPTY if trial else SETTINGS).items():
                self.session.conf.set(name, value)
            if not trial:
                self._run(f"CREATE SCHEMA IF NOT EXISTS {place.SCHEMA}")
                self.lease = leases.Lease(self.session, self.mark, seconds)
                leases.sweep(self.session)
        except PySparkException:
            raise UnreadableSource("denied" if trial else "place") from None
        return {}

    def do_sweep(self, remote: str, token: str | None, ended: Sequence[str]) -> Any:
        """Ends what sessions of children that have ended still do, and drops what they had built."""
        for one in ended:
            session = _connected(remote, token, one)
            with suppress(PySparkException):
                session.interruptAll()
            with suppress(PySparkException):
                leases.drop(session, one.replace("-", ""))
            with suppress(PySparkException):
                session.stop()
        return {}

    def do_source(self, kind: str, what: Any, more: Mapping[str, Any]) -> Any:
        """Opens a source, and says which columns it has, by name and type."""
        if self.locked:
            raise ValueError
        try:
            self._opened(kind, what, more).createOrReplaceTempView("frame")
        except AnalysisException:
            raise UnreadableSource("missing") from None
        self.source = place.source(kind, what)
        return {
            "columns": [[field.name, field.dataType.simpleString()] for field in self.session.table("frame").schema]
        }

    def _opened(self, kind: str, what: Any, more: Mapping[str, Any]) -> Any:
        if kind == "frame":
            table = _arrow(what)
            schema = from_arrow_schema(table.schema, prefer_timestamp_ntz=True)  # an empty table has one as well
            if not table.num_rows:
                return self.session.createDataFrame([], schema)
            return self.session.createDataFrame(table, schema)
        if kind == "delta":
            return self.session.read.format("delta").option("versionAsOf", more["version"]).load(what)
        if kind == "parquet":
            reader = self.session.read.option("mergeSchema", str(len(what) > 1).lower())
            if more["root"] is not None:
                reader = reader.option("basePath", more["root"])
            return reader.parquet(*what)
        return self.session.table(what)

    def do_load(
        self, name: str, person: str | None, statement: str, facts: str, stem: str, digest: str, salt: bytes
    ) -> Any:
        """Builds a table, bucketed by the person where it is large, and gives a keyed hash of its content that does not
        depend on the order of its rows."""
        if self.locked:
            raise ValueError
        before = dict(self.tables)
        try:
            if person is not None:
                ((rows,),) = rows_of(self._select("SELECT COUNT(*) FROM frame"))
                self.loading = (person, min(rows // ROWS_OF_BUCKET + 1, MOST_BUCKETS))
            self._change(statement)
            (values,) = rows_of(self._select(facts))
            text = json.dumps([str(one) for one in values])
            fingerprint = hashlib.sha256(salt + text.encode()).hexdigest()
            held = self.tables[name]
            lasting = place.lasting(stem, fingerprint, digest)
            self.lease.hold(lasting)
            there = self._there(lasting, digest, fingerprint)
            if there is None:
                if leases.properties(self.session, lasting) is not None:
                    self._run(f"DROP TABLE IF EXISTS {lasting}")  # it was emptied, or is not ours
                marks = {"digest": digest, "fingerprint": fingerprint, "files": held.files, "source": self.source}
                marks["buckets"] = " ".join(map(str, held.buckets or ()))
                said = ", ".join(f"'discreet.{key}' = '{value}'" for key, value in marks.items())
                self._run(f"ALTER TABLE {held.relation} SET TBLPROPERTIES ({said})")
                try:
                    self._run(f"ALTER TABLE {held.relation} RENAME TO {lasting}")
                    there = replace(held, relation=lasting, lasting=True)
                except AnalysisException:  # another process has made it meanwhile
                    there = self._there(lasting, digest, fingerprint)
                    if there is None:
                        raise
            self._view(name, there)
            if self._files(lasting) != there.files:
                raise PySparkException("the table was changed while it was made")
            self._drop(held)  # where these rows were loaded before; else it has its new name
        except Exception:
            self._back(before)
            raise
        finally:
            self.loading = None
        return {"fingerprint": fingerprint}

    def _there(self, lasting: str, digest: str, fingerprint: str) -> ServerTable | None:
        """The table of these rows, where it is on the server and is whole."""
        marks = leases.properties(self.session, lasting) or {}
        if (marks.get("digest"), marks.get("fingerprint")) != (digest, fingerprint):
            return None
        if marks.get("files") != self._files(lasting):
            return None
        column, _, count = marks["buckets"].partition(" ")
        buckets = (column, int(count)) if count else None
        return ServerTable(lasting, tuple(self.session.table(lasting).columns), True, buckets, marks["files"])

    def _files(self, relation: str) -> str:
        """Which files a table has now. Each write gives files names of their own, and a table keeps them when it gets
        another name: so a table that was emptied, written or replaced has others."""
        self._run(f"REFRESH TABLE {relation}")
        names = sorted(one.rpartition("/")[2] for one in self.session.table(relation).inputFiles())
        return hashlib.sha256("\n".join(names).encode()).hexdigest()

    def do_whole(self) -> Any:
        """Ends this process where the session is gone, or what questions read is not what was made or opened."""
        with self._alone():
            self._select("SELECT 1 AS one")
        return {}

    def do_open(self, name: str, stem: str, digest: str, fingerprint: str) -> Any:
        """Whether a table with these rows is on the server: then it is read."""
        lasting = place.lasting(stem, fingerprint, digest)
        self.lease.hold(lasting)
        there = self._there(lasting, digest, fingerprint)
        if there is None:
            self.lease.leave(lasting)
        else:
            self._view(name, there)
        return {"found": there is not None}

    def do_retain(self, stem: str, fingerprint: str, digest: str) -> Any:
        """Drops a table's other rows, unless a session reads them."""
        found = self._select(f"SHOW TABLES IN {place.SCHEMA} LIKE '{place.all_of(stem)}'").to_pylist()
        others = {f"{place.SCHEMA}.{row['tableName']}" for row in found} - {place.lasting(stem, fingerprint, digest)}
        if others:
            for other in others - leases.read(self.session):
                self._run(f"DROP TABLE IF EXISTS {other} PURGE")
        return {}

    def do_forget(self, source: str) -> Any:
        """Drops the snapshots of a source that no session reads."""
        found = self._select(f"SHOW TABLES IN {place.SCHEMA} LIKE '{place.all_of('*')}'").to_pylist()
        for other in {f"{place.SCHEMA}.{row['tableName']}" for row in found} - leases.read(self.session):
            if (leases.properties(self.session, other) or {}).get("source") == source:
                self._run(f"DROP TABLE IF EXISTS {other} PURGE")
        return {}

    def do_lock(self) -> Any:
        """From here on no source is opened."""
        if not self.trial:
            self._run("DROP VIEW IF EXISTS frame")
        self.locked = True
        return {}

    def do_run(self, sql: str) -> Any:
        with self._alone():
            return {"rows": rows_of(self._select(sql))}

    def do_listed(self, sql: str, seconds: float) -> Any:
        """Rows of public tables, or failed where that takes longer: the tables that are here stay. What is ended then
        is this request, and not the next one. The server is told again until it has ended: it passes over what it has
        not begun yet."""
        tag, over = f"listed{secrets.token_hex(8)}", threading.Event()

        def end() -> None:
            wait = seconds
            while not over.wait(wait):
                wait = seconds / 10
                with suppress(PySparkException):
                    self.session.interruptTag(tag)

        self.session.addTag(tag)
        threading.Thread(target=end, daemon=True).start()
        try:
            return {"rows": rows_of(self._select(sql))}
        finally:
            over.set()
            self.session.removeTag(tag)

    def do_build(self, statements: list[str]) -> Any:
        """Builds what questions read beside a table, from the tables that are here. All of it, or nothing."""
        with self._alone():
            before = dict(self.tables)
            try:
                for statement in statements:
                    self._change(statement)
            except NotOurs:
                self._back(before)
                raise
            kept = {held.relation for held in self.tables.values()}
            for held in before.values():
                if held.relation not in kept:
                    self._drop(held)
        return {}

    def do_empty(self, statements: list[str]) -> Any:
        """Makes a table that has no rows."""
        for statement in statements:
            self._change(statement)
        return {}

    def do_prepare(self, trials: list[tuple[list[str], str]]) -> Any:
        """The types of what each SELECT gives, after what is built for it, of which nothing is kept."""
        types = []
        for built, sql in trials:
            before = dict(self.tables)
            try:
                for statement in built:
                    self._change(statement)
                frame = self._frame(sql)
                types.append([_kind(field.dataType.simpleString()) for field in frame.schema])
                frame.toArrow()
            except Exception:
                with self._alone():  # where the session is gone, this process goes too, and another has a new one
                    self._select("SELECT 1 AS one")
                raise
            finally:
                if built:
                    self._back(before)
        return {"types": types}

    def do_vectors(self, sql: str) -> Any:
        """Each column of a SELECT as bytes: the first without NULLs; of the others what is not NULL, then values."""
        with self._alone():
            first, *columns = self._select(sql).columns
            buffers = [bytes_of(first)[0]]
            for column in columns:
                known = pyarrow.compute.is_valid(column)
                buffers += [known.to_numpy().tobytes(), *bytes_of(column)]
        return {"buffers": buffers}

    def do_counts(self, wanted: list[tuple[str, tuple[int, ...]]]) -> Any:
        """For each SELECT of places and their count: the counts of all places, as bytes."""
        buffers = []
        with self._alone():
            for sql, shape in wanted:
                *places, count = (column.to_numpy() for column in self._select(sql).columns)
                buffers.append(dense(places, count, shape))
        return {"buffers": buffers}

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Rows are read within the time that there is, and without a failure, or this process ends."""
        over = threading.Lock()  # either the answer has it, or the end

        def late() -> None:
            if over.acquire(blocking=False):
                self._give_up()

        end = threading.Timer(0.95 * self.seconds, late)
        end.start()
        try:
            if not self.trial:
                self.lease.renew()
            yield
            if any(held.relation and self._files(held.relation) != held.files for held in self.tables.values()):
                os._exit(1)
        except NotOurs:
            raise
        except Exception:
            os._exit(1)
        finally:
            end.cancel()
            if not over.acquire(blocking=False):
                os._exit(1)

    def _give_up(self) -> None:
        threading.Timer(0.02 * self.seconds, os._exit, [1]).start()
        with suppress(Exception):
            self.session.interruptAll()
        os._exit(1)

    def _frame(self, sql: str) -> Any:
        if not sql.startswith(("SELECT ", "SHOW ")):
            raise NotOurs
        return self.session.sql(sql)

    def _select(self, sql: str) -> pyarrow.Table:
        return self._frame(sql).toArrow()

    def _run(self, sql: str) -> None:
        self.session.sql(sql).collect()

    def _change(self, statement: str) -> None:
        """One of our own statements, which makes or drops a table, or drops a column."""
        if found := _MADE.fullmatch(statement):
            self._make(found[2], found[4], found[5], replace=found[1] is not None)
        elif found := _DROPPED.fullmatch(statement):
            held = self.tables.pop(found[1])
            self._run(f"DROP VIEW {found[1]}")
            if held.relation not in {other.relation for other in self.tables.values()}:
                self._drop(held)
        elif found := _ALTERED.fullmatch(statement):
            held = self.tables[found[1]]
            columns = tuple(column for column in held.columns if column != found[2])
            self._view(found[1], replace(held, columns=columns))
        else:
            raise NotOurs

    def _make(self, name: str, select: str | None, columns: str | None, *, replace: bool) -> None:
        if name in self.tables and not replace:
            raise NotOurs
        if self.trial:
            frame = self._frame(select) if select is not None else self.session.createDataFrame([], columns)
            self._view(name, ServerTable(None, tuple(frame.columns), schema=frame.schema))
            return
        assert select is not None
        self.count += 1
        relation = place.beside(self.mark, self.count)
        buckets = self.tables[name].buckets if name in self.tables else self.loading
        clustered = ""
        if buckets is not None and buckets[1] > 1:
            column, count = buckets
            clustered = f" CLUSTERED BY ({column}) INTO {count} BUCKETS"
            select = f"SELECT /*+ REPARTITION({count}, {column}) */ * FROM ({select}) AS made"
        self._run(f"CREATE TABLE {relation} USING PARQUET{clustered} AS {select}")
        made = ServerTable(
            relation, tuple(self.session.table(relation).columns), buckets=buckets, files=self._files(relation)
        )
        self._view(name, made)

    def _view(self, name: str, held: ServerTable) -> None:
        if held.relation is not None:
            self._run(
                f"CREATE OR REPLACE TEMPORARY VIEW {name} AS SELECT {', '.join(held.columns)} FROM {held.relation}"
            )
        else:
            kept = StructType([held.schema[column] for column in held.columns])  # a name may have a dot or a quote
            self.session.createDataFrame([], kept).createOrReplaceTempView(name)
        self.tables[name] = held

    def _drop(self, held: ServerTable) -> None:
        """Drops a table that no view is of, unless it is a snapshot's own."""
        if held.relation is not None and not held.lasting:
            self._run(f"DROP TABLE IF EXISTS {held.relation} PURGE")

    def _back(self, before: Mapping[str, ServerTable]) -> None:
        """The tables as they were, without what was made since."""
        made = [held for name, held in self.tables.items() if before.get(name) != held]
        for name in self.tables.keys() - before.keys():
            self.session.catalog.dropTempView(name)
        kept = {held.relation for held in before.values()}
        changed = {name: held for name, held in before.items() if self.tables.get(name) != held}
        self.tables = dict(before)
        for name, held in changed.items():
            self._view(name, held)
        for held in made:
            if held.relation not in kept:
                with suppress(PySparkException):
                    self._drop(held)


def address(remote: str, token: str | None, session: str) -> str:
    """What the client is told: a token may have any characters, and none of them is taken for a setting."""
    return f"{remote};session_id={session}" + (f";token={quote(token, safe='')}" if token else "")


def _connected(remote: str, token: str | None, session: str) -> Any:
    """A session with this number. Raises UnreadableSource where there is none to be had."""
    host, _, port = remote.removeprefix("sc://").partition("/")[0].rpartition(":")
    try:  # the client itself goes on trying for minutes
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
    except (OSError, ValueError):
        raise UnreadableSource("unreachable") from None
    warnings.filterwarnings("ignore")
    try:
        return SparkSession.builder.remote(address(remote, token, session)).create()
    except PySparkException:
        raise UnreadableSource("denied") from None


def _arrow(frame: Any) -> pyarrow.Table:
    """A table that Python held."""
    if type(frame).__module__.partition(".")[0] == "pandas":
        return pyarrow.Table.from_pandas(frame, preserve_index=False)
    return pyarrow.table(frame)


def _kind(kind: str) -> str:
    whole = re.fullmatch(r"decimal\(\d+,0\)", kind)
    return "HUGEINT" if whole else _KINDS.get(kind, kind)
