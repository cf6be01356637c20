"""Sources as Spark reads them: tables of its catalog, folders of Parquet files and of Delta tables, and what Python
holds."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from fractions import Fraction
from importlib.util import find_spec
from typing import Any, assert_never

from sqlglot import exp

from discreet.catalog.formats import load_statements, words_of
from discreet.catalog.model import EngineLimits
from discreet.catalog.spark import TOKEN
from discreet.engines.child import UnreadableSource
from discreet.engines.files import check_columns, files, keys_of_folders
from discreet.engines.process import EngineProcess, Failed
from discreet.engines.protocol import LOAD_SECONDS, Lost, Stopped
from discreet.engines.spark import place
from discreet.engines.spark.dialect import SPARK
from discreet.engines.statements import AuxiliaryTable
from discreet.errors import DeclarationError, Fault
from discreet.trusted.ring_a.names import column_name, table_name
from discreet.trusted.ring_a.table import Source, SourceKind, Table, Type

WORKER = "discreet.engines.spark.worker"
"""The child's program."""

SWEEP_SECONDS = 20
"""How long it may take to end what is left on the server of a child that has ended."""

_FRAME = exp.to_table("frame")

REASONS = {
    "library": ("what speaks to Spark is not installed", "pip install 'discreet[spark]'"),
    "unreachable": ("no server answers there", "see that Spark Connect runs, and that remote is its host and port"),
    "denied": ("the server does not let us in", f"see that {TOKEN} is set, and that the server is Spark 4 or later"),
    "failed": ("a session could not be begun there", "see that the client is as new as the server, and try again"),
    "old": ("the server is older than Spark 4", "take a newer one"),
    "place": (
        f"we may not make tables in the schema {place.SCHEMA}",
        f"run CREATE SCHEMA {place.SCHEMA}, and let this user make tables there",
    ),
}


class SparkSources:
    """A child process, and its session on the server. All of it is the owner's act."""

    def __init__(self, limits: EngineLimits) -> None:
        self._limits, self._remote = limits, str(limits.remote)
        self._session = ""
        self._ended: list[str] = []
        self._keys: dict[str, str] = {}
        self.process: EngineProcess | None = None

    def start(self) -> None:
        """Starts the child process, without waiting for it."""
        if self.process is None or not self.process.usable:
            if find_spec("pyspark") is None or find_spec("grpc") is None:
                raise _refusal("library")
            self._leave()
            self.process = EngineProcess(WORKER)

    def close(self) -> None:
        """Ends the child. Snapshots stay on the server."""
        if self.process is not None:
            self.process.close()
            self.process = None
            self._leave()
            self._sweep()

    def _leave(self) -> None:
        if self._session:
            self._ended.append(self._session)
            self._session = ""

    def _sweep(self) -> None:
        """Ends what children that have ended left on the server."""
        if not self._ended:
            return
        process = EngineProcess(WORKER)
        with suppress(Failed, Lost, Stopped, UnreadableSource):
            process.call("sweep", self._remote, os.environ.get(TOKEN), self._ended, seconds=SWEEP_SECONDS)
            self._ended = []
        process.kill()

    def begin(self, process: EngineProcess, seconds: float) -> None:
        """Makes a child ready for tables without rows."""
        try:
            self._connect(process, str(uuid.uuid4()), True, seconds)
        except UnreadableSource:
            raise Lost from None

    def _connect(self, process: EngineProcess, session: str, trial: bool, seconds: float) -> None:
        limit = self._limits.seconds
        process.call("connect", self._remote, os.environ.get(TOKEN), session, limit, trial, seconds=seconds)

    def _connected(self) -> None:
        self.start()
        if not self._session and self.process is not None:
            self._sweep()
            session = str(uuid.uuid4())
            try:
                self._connect(self.process, session, False, LOAD_SECONDS)
            except UnreadableSource as error:
                raise _refusal(error.word) from None
            except (Failed, Lost, Stopped):
                raise _refusal("failed") from None
            self._session = session

    def types(self, source: Source) -> dict[str, tuple[Type | None, Fraction | None]]:
        """The columns of a source, from its schema alone."""
        stated = source.kind is not SourceKind.FRAME
        return {name: (_type_of(kind), _step_of(kind) if stated else None) for name, kind in self._columns(source)}

    def check(self, table: Table) -> None:
        """Whether the source is there and has the declared columns, of types that can be theirs. Reads no row."""
        self._checked(table)

    def _checked(self, table: Table) -> None:
        found = self._columns(table.source)
        check_columns(table, [name for name, _ in found])
        kinds = {name.casefold(): _type_of(kind) for name, kind in found}
        faults = []
        for column in table.columns:
            there = kinds[column.name.casefold()]
            if column.type is not None and (there is None or column.type not in _READ_AS[there]):
                message = f"it is no {column.type} in the source: values of other types are read otherwise there"
                fix = 'declare the type that it has, or name a view that casts it, or write kind = "duckdb"'
                faults.append(Fault(f"tables.{table.name}.columns.{column.name}", message, fix))
        if faults:
            raise DeclarationError(faults, code="columns")

    def together(self, tables: Iterable[Table]) -> None:
        """Each table is read as it is when it is read: Spark has no moment of several."""

    def load(self, table: Table, key: str, salt: bytes) -> str:
        """Makes the table that questions read, on the server."""
        self._checked(table)
        (made, facts), stem = load_statements(table, _FRAME.copy(), key), place.stem(key)
        self._keys[table.name] = key
        (statement,) = (SPARK.text(one) for one in made)
        person = next((column_name(i) for i, one in enumerate(table.columns) if one.name == table.person), None)
        wanted = table_name(table), person, statement, SPARK.text(facts), stem, self._digest(table, key), salt
        try:
            return str(self.call("load", *wanted)["fingerprint"])
        except Failed:
            raise _unreadable(table.source) from None

    def open(self, table: Table, key: str, fingerprint: str) -> bool:
        """Whether the table with this hash is on the server."""
        self._connected()
        self._keys[table.name] = key
        try:
            wanted = table_name(table), place.stem(key), self._digest(table, key), fingerprint
            return bool(self.call("open", *wanted)["found"])
        except Failed:
            return False

    def advance(self, _table: Table, _key: str, _salt: bytes, _fingerprint: str) -> None:
        """What became of a source is not known: it is read."""

    def retain(self, table: Table, registered: Callable[[], str | None]) -> None:
        """Drops a table's other snapshots, unless somebody reads them."""
        known = registered()
        if known is not None:
            with suppress(Failed):
                key = self._keys[table.name]
                self.call("retain", place.stem(key), known, self._digest(table, key))

    def forget(self, source: Source) -> None:
        """Drops the snapshots of a source, unless somebody reads them."""
        kind, what, _ = _read(source)
        with suppress(Failed):
            self.call("forget", place.source(kind, what))

    def size(self, _table: Table, _fingerprint: str | None) -> None:
        """Not known: Spark does not say what its tables take."""

    def build(self, _table: Table, wanted: AuxiliaryTable) -> Sequence[str]:
        """What stands beside a table is built as it is."""
        return wanted.build

    def built(self, _table: Table) -> Sequence[str]:
        """Nothing: each process builds its own."""
        return ()

    def _digest(self, table: Table, key: str) -> str:
        made, _ = load_statements(table, exp.to_table("source"), key)
        return place.digest([SPARK.text(one) for one in made])

    def call(self, *request: Any) -> Any:
        """What the child says to the owner. Raises Failed where the server failed."""
        self._connected()
        assert self.process is not None
        try:
            return self.process.call(*request, seconds=LOAD_SECONDS)
        except (Lost, Stopped):
            message = "the connection to the server ended while a table was loaded"
            raise DeclarationError([Fault("engine", message, "try again when it is there")], code="engine") from None

    def _columns(self, source: Source) -> Sequence[tuple[str, str]]:
        """The columns of a source, which is open then."""
        try:
            return [(name, kind) for name, kind in self.call("source", *_read(source))["columns"]]
        except UnreadableSource:
            message = f"{words_of(source)} is not there, or we may not read it"
            fix = "see that the server has it under this name"
            raise DeclarationError([Fault("source", message, fix)], code="missing") from None
        except Failed:
            raise _unreadable(source) from None


def _read(source: Source) -> tuple[str, Any, dict[str, Any]]:
    """What the child is told to open. Raises DeclarationError where Spark is not made to read it."""
    kind = source.kind.value
    match source.kind:
        case SourceKind.FRAME:
            return kind, _movable(source.frame), {}
        case SourceKind.SPARK:
            return kind, source.relation, {}
        case SourceKind.DELTA:
            return kind, _place(str(source.path)), {"version": source.version}
        case SourceKind.PARQUET:
            found = files(source)
            folder = bool(keys_of_folders(source, found))
            root = _place(str(source.path)) if folder and source.path is not None and source.path.is_dir() else None
            return kind, [_place(str(path)) for path in found], {"root": root}
        case SourceKind.CSV | SourceKind.ICEBERG | SourceKind.DATABASE | SourceKind.POSTGRESQL | SourceKind.RELATION:
            message = f"{words_of(source)} is not read by Spark here"
            fix = "name a table of its catalog (spark::schema.table) or Parquet files, "
            fix += 'or write kind = "duckdb" under [engine]'
            raise DeclarationError([Fault("source", message, fix)], code="kind")
        case _:
            assert_never(source.kind)


def _place(path: str) -> str:
    return f"file://{path}"


def _movable(frame: Any) -> Any:
    """A table that can go to another process."""
    known = type(frame).__module__.partition(".")[0] in ("pandas", "polars", "pyarrow")
    if known or not hasattr(frame, "__arrow_c_stream__"):
        return frame
    import pyarrow

    return pyarrow.table(frame)


def _unreadable(source: Source) -> DeclarationError:
    fix = "run SELECT over the declared columns on the server, and see what it says"
    return DeclarationError([Fault("source", f"{words_of(source)} cannot be read", fix)], code="unreadable")


def _refusal(word: str) -> DeclarationError:
    message, fix = REASONS.get(word, REASONS["denied"])
    code = "library" if word == "library" else "server"
    return DeclarationError([Fault("engine.remote", message, fix)], code=code)


_READ_AS = {
    Type.INTEGER: {Type.INTEGER, Type.NUMBER, Type.TEXT},
    Type.NUMBER: {Type.NUMBER},
    Type.TEXT: {Type.TEXT},
    Type.BOOLEAN: {Type.BOOLEAN, Type.TEXT},
    Type.DATE: {Type.DATE, Type.TIMESTAMP, Type.TEXT},
    Type.TIMESTAMP: {Type.TIMESTAMP, Type.DATE},
}
"""What a column of a type can be declared as: no value of it is read otherwise than DuckDB reads it."""


def _type_of(kind: str) -> Type | None:
    """Our type for one of Spark's; None where there is none."""
    if kind in ("tinyint", "smallint", "int", "bigint"):
        return Type.INTEGER
    if kind in ("float", "double") or kind.startswith("decimal"):
        return Type.NUMBER
    if kind.startswith(("string", "varchar", "char")):
        return Type.TEXT
    if kind in ("boolean", "date"):
        return Type(kind)
    return Type.TIMESTAMP if kind in ("timestamp", "timestamp_ntz") else None


def _step_of(kind: str) -> Fraction | None:
    """The last digit of a decimal(p, s); None of other types."""
    found = re.fullmatch(r"decimal\(\d+,(\d+)\)", kind)
    return Fraction(1, 10 ** int(found[1])) if found else None
