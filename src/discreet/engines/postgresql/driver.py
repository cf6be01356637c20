"""PostgreSQL as the engine: tables are copied into schemas of our own on their server, and questions run there."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

from sqlglot import exp

from discreet.catalog.formats import load_statements, words_of
from discreet.catalog.model import EngineLimits
from discreet.engines.child import UnreadableSource
from discreet.engines.driver import ServerDriver
from discreet.engines.postgresql import columns, place
from discreet.engines.postgresql.connection import REASONS, environment, refusal
from discreet.engines.postgresql.dialect import POSTGRESQL as DIALECT
from discreet.engines.process import EngineProcess, Failed
from discreet.engines.protocol import LOAD_SECONDS, Lost, Stopped
from discreet.engines.statements import AuxiliaryTable, SaltedStatement
from discreet.engines.twin import Twin
from discreet.errors import DeclarationError, Fault
from discreet.trusted.ring_a.table import Source, SourceKind, Table, Type
from discreet.trusted.ring_a.windows import Salt

WORKER = "discreet.engines.postgresql.worker"
"""The child's program."""

_BACKUP = 5
"""The server ends a question so many seconds after this process has given it up."""

_log = logging.getLogger("discreet")


class PostgreSQL(ServerDriver):
    """A PostgreSQL server, and a child process of our own that speaks to it."""

    stands = 0.2  # a question asks about each of its tables

    def __init__(self, limits: EngineLimits) -> None:
        self._server = ServerTables(limits)
        super().__init__("postgresql", DIALECT, self._server, WORKER, limits)

    def trial(self, tables: Iterable[Table]) -> Twin:
        """Where statements on these tables are tried."""
        tables = list(tables)
        for table in tables:
            self._server.know(table.source)
        return super().trial(tables)

    def _asked(self, made: SaltedStatement, salt: Salt) -> tuple[Any, ...]:
        """The salt goes beside the statement: no log of the server holds it as a part of that."""
        return "run", *made.bound(salt)


@contextmanager
def example(server: str, file: Path) -> Iterator[str]:
    """A table on a server with what a CSV file holds, as a source; it is gone afterwards. For a demonstration. Raises
    DeclarationError."""
    tables = ServerTables(EngineLimits())
    try:
        yield tables.example(server, file)
        tables.call("over")
    finally:
        tables.close()


class ServerTables:
    """Tables of one server and database, each copied there before questions read it. All of it is the owner's act."""

    def __init__(self, limits: EngineLimits) -> None:
        self._limits = limits
        self._url: str | None = None
        self._connected = False
        self._warned = False
        self._stems: dict[str, str] = {}
        self._digests: dict[str, tuple[Table, str, str]] = {}
        self.process: EngineProcess | None = None

    def know(self, source: Source) -> None:
        """Notes which server it is."""
        if source.kind is SourceKind.POSTGRESQL and self._url is None:
            self._url = source.server

    def start(self) -> None:
        """Starts the child process, without waiting for it."""
        if self.process is None or not self.process.usable:
            self.process, self._connected = EngineProcess(WORKER), False

    def close(self) -> None:
        """Ends the child. What is kept on the server stays there."""
        if self.process is not None:
            self.process.close()
            self.process = None

    def begin(self, process: EngineProcess, seconds: float) -> None:
        """Makes a child ready for tables without rows."""
        process.call("limit", self._limits.memory_gib, seconds=seconds)
        try:
            process.call("connect", self._url, environment(), int(seconds), True, seconds=seconds)
        except UnreadableSource as error:
            raise _refused(error.word) from None

    def types(self, source: Source) -> dict[str, tuple[Type | None, Fraction | None]]:
        """The columns of a table, from the server's catalog."""
        return columns.stated(self._columns(source))

    def check(self, table: Table) -> None:
        """Whether the table is there and has the declared columns, of types that can be theirs. Reads no row."""
        found = self._columns(table.source)
        columns.check(table, found)
        if all(column.type is not None for column in table.columns):
            place.select(table, found)

    def together(self, tables: Iterable[Table]) -> None:
        """Begins to read these tables, all as they are at one moment."""
        selects, sources = [], []
        for table in tables:
            try:
                selects.append(_read(self._select(table)))
                sources.append(table.source)
            except DeclarationError:
                continue  # whoever loads it says what is wrong
        if selects:
            with suppress(DeclarationError):
                self._call(sources[0], "hold", selects)

    def load(self, table: Table, key: str, salt: bytes) -> str:
        """Makes a table's snapshot on the server."""
        select = self._select(table)
        made, facts = load_statements(table, select, key)
        stem = self._stems[table.name] = place.stem(key)
        statements = [DIALECT.text(one) for one in made]
        wanted = stem, _read(select), statements, DIALECT.text(facts), self._digest(table, key), salt
        return str(self._call(table.source, "load", *wanted)["fingerprint"])

    def open(self, table: Table, key: str, fingerprint: str) -> bool:
        """Whether the snapshot with this hash is on the server."""
        self._stems[table.name] = place.stem(key)
        wanted = place.schema(key, fingerprint), self._digest(table, key), fingerprint
        return bool(self._call(table.source, "open", *wanted)["found"])

    def advance(self, _table: Table, _key: str, _salt: bytes, _fingerprint: str) -> None:
        """What became of a table of a server is not known: it is read."""

    def retain(self, table: Table, registered: Callable[[], str | None]) -> None:
        """Drops a table's other snapshots, unless somebody reads them."""
        stem, known = self._stems[table.name], registered()
        if known is not None:
            self._call(table.source, "retain", stem, stem + known[:16])

    def size(self, table: Table, fingerprint: str | None) -> int | None:
        """The bytes of a snapshot on the server."""
        if fingerprint is None or table.name not in self._stems:
            return 0
        try:
            return int(self._call(table.source, "size", self._stems[table.name] + fingerprint[:16])["bytes"])
        except DeclarationError:
            return 0

    def build(self, _table: Table, wanted: AuxiliaryTable) -> Sequence[str]:
        """What stands beside a table is built as it is."""
        return wanted.build

    def built(self, _table: Table) -> Sequence[str]:
        """Nothing: each process builds its own."""
        return ()

    def call(self, *request: Any) -> Any:
        """What the child says to the owner."""
        try:
            return self._said(*request)
        except (Failed, UnreadableSource) as error:
            raise _refused(error.word if isinstance(error, UnreadableSource) else "failed") from None

    def _said(self, *request: Any) -> Any:
        assert self.process is not None
        try:
            return self.process.call(*request, seconds=LOAD_SECONDS)
        except (Lost, Stopped):
            message = "the connection to the server ended while a table was loaded"
            raise DeclarationError([Fault("engine", message, "try again when it is there")], code="engine") from None

    def example(self, server: str, file: Path) -> str:
        """A table with what a CSV file holds, which is there as long as this child is."""
        self._url = server
        source = Source(SourceKind.POSTGRESQL, server=server, relation=f"public.{file.stem}")
        schema = self._call(source, "example", str(file), file.stem)["schema"]
        return f"{server}::{schema}.{file.stem}"

    def _digest(self, table: Table, key: str) -> str:
        """What a snapshot's content follows from, beside the source's rows."""
        known = self._digests.get(table.name)
        if known is None or known[0] is not table or known[1] != key:
            made, _ = load_statements(table, exp.to_table("source"), key)
            known = self._digests[table.name] = table, key, place.digest([DIALECT.text(one) for one in made])
        return known[2]

    def _select(self, table: Table) -> exp.Expression:
        found = self._columns(table.source)
        columns.check(table, found)
        return place.select(table, found)

    def _columns(self, source: Source) -> list[columns.ServerColumn]:
        answer = self._call(source, "columns", source.relation)
        return [columns.ServerColumn(*one) for one in answer["columns"]]

    def _call(self, source: Source, *request: Any) -> Any:
        """What the child says of a source. Raises DeclarationError."""
        if source.kind is not SourceKind.POSTGRESQL:
            message = f"{words_of(source)} is not on the server where questions run"
            fix = 'name a table there (postgresql://…::schema.table), or write kind = "duckdb" under [engine]'
            raise DeclarationError([Fault("source", message, fix)], code="server")
        self.know(source)
        try:
            if source.server != self._url:
                raise UnreadableSource("one")
            self._connect()
            return self._said(*request)
        except Failed:
            raise refusal(source, "failed") from None
        except UnreadableSource as error:
            raise refusal(source, error.word) from None

    def _connect(self) -> None:
        if self._connected:
            return
        self.start()
        self._said("limit", self._limits.memory_gib)
        said = self._said("connect", self._url, environment(), self._limits.seconds + _BACKUP, False)
        self._connected = True
        if said["logs"] and not self._warned:
            self._warned = True
            _log.warning(
                "the server writes questions into its log, with what they choose rows by: %s; %s",
                ", ".join(said["logs"]),
                "docs/engines.md says what to set",
            )


def _refused(word: str) -> DeclarationError:
    """What is said where no single table is meant."""
    message, fix = REASONS[word]
    return DeclarationError([Fault("engine", message, fix)], code="server")


def _read(source: exp.Expression) -> str:
    """The statement by which a table is held as it is at one moment."""
    return DIALECT.text(exp.select("*").from_(source.copy()))
