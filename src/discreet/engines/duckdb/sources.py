"""Sources of tables, as DuckDB reads them: files, its own database files, tables on servers and those that Python
holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from shutil import disk_usage
from typing import Any, assert_never

from sqlglot import exp

from discreet.catalog.formats import load_statements, words_of
from discreet.catalog.model import EngineLimits, Store
from discreet.engines.answers import told_apart
from discreet.engines.child import UnreadableSource
from discreet.engines.duckdb import iceberg, store
from discreet.engines.duckdb.dialect import DUCKDB
from discreet.engines.duckdb.frames import taken
from discreet.engines.duckdb.origin import Origin, listed, origin
from discreet.engines.files import (
    SNIFFED_ROWS,
    check_columns,
    check_gzip,
    csv_header,
    files,
    keys_of_folders,
    unreadable,
)
from discreet.engines.postgresql import columns
from discreet.engines.postgresql.connection import environment, refusal
from discreet.engines.process import EngineProcess, Failed
from discreet.engines.protocol import LOAD_SECONDS, Lost, Stopped
from discreet.engines.statements import AuxiliaryTable
from discreet.errors import DeclarationError, Fault
from discreet.trusted.ring_a.names import table_name
from discreet.trusted.ring_a.table import Column, Source, SourceKind, Table, Type

WORKER = "discreet.engines.duckdb.worker"
"""The child's program."""

_TWIN_GIB = 4
"""Tables without rows need little: a child for them gets no more memory than this."""

_LIBRARIES = {SourceKind.DELTA: ("deltalake", "pyarrow"), SourceKind.ICEBERG: ("fastavro",)}
"""Folders of which a log says what is in a version of the table, and what reads that log."""

_LEAVING = 60
"""So many seconds it may take to leave what was built beside tables for later starts: writing the rest of it."""

_FULL = 256 << 20
"""A disk with less room than this is full: what could not be written there failed for that."""


class DuckDBSources:
    """A child process in which sources are opened, one after another. All of it is the owner's act."""

    def __init__(self, limits: EngineLimits) -> None:
        self._limits = limits
        self._limited = False
        self._together: dict[str, list[str]] = {}
        self._files: dict[str, Any] = {}
        self._built = False
        self.process: EngineProcess | None = None

    def start(self) -> None:
        """Starts the child process, without waiting for it."""
        if self.process is None or not self.process.usable:
            self.process, self._limited, self._files, self._built = EngineProcess(WORKER), False, {}, False

    def close(self) -> None:
        """Ends the child."""
        if self.process is not None:
            if self._built and self.process.usable:
                self.process.last("leave", seconds=_LEAVING)
            self.process.close()
            if self._limits.folder is not None:
                store.clear(self._limits.folder, self.process.pid)
            self.process = None

    def begin(self, process: EngineProcess, seconds: float) -> None:
        """Makes a child ready for tables without rows."""
        process.call("limit", min(self._limits.memory_gib, _TWIN_GIB), seconds=seconds)

    def load(self, table: Table, key: str, salt: bytes) -> str:
        """Reads the declared columns of a table into memory, or into a file. Raises DeclarationError where that cannot
        be done."""
        if store.kept(table, self._limits):
            return self._kept(table, key, salt)
        with self.opened(table.source, table.columns):
            if table.source.kind is SourceKind.CSV:
                check_gzip(table.source)
            self.prepare(table)
            made, facts = load_statements(table, relation(table.source), key)
            statements = [DUCKDB.text(one, copy=False) for one in made]
            answer = self.call("load", statements, DUCKDB.text(facts, copy=False), salt)
        if answer["fingerprint"] is None:
            message = f"{words_of(table.source)} does not fit into the engine's memory"
            raise DeclarationError([Fault("source", message, "raise engine.memory_gib")], code="memory")
        return str(answer["fingerprint"])

    def open(self, table: Table, key: str, fingerprint: str) -> bool:
        """Whether the rows with this hash are kept in a file: then they are loaded. The source is not read."""
        folder = self._limits.folder
        if folder is None or self._limits.store is Store.MEMORY:
            return False
        path = store.place(folder, table, fingerprint)
        if not store.there(folder, path):
            return False
        self._limit()
        try:
            return self._opened(path, table, key, fingerprint)
        except Failed:
            raise store.unwritten(folder) from None

    def _opened(self, path: Path, table: Table, key: str, fingerprint: str) -> bool:
        """Whether a table's file could be opened."""
        try:
            wanted = store.digest(table, key), fingerprint, table_name(table), store.built(path)
        except OSError:
            return False
        answer = self.call("open", str(path), *wanted)["opened"]
        if answer is not None:
            self._files[table.name] = answer
        return answer is not None

    def build(self, table: Table, wanted: AuxiliaryTable) -> Sequence[str]:
        """The statements that build what stands beside a table: of one that is kept, in buckets of persons too, as what
        is needed beside it is as large as the table."""
        file = self._files.get(table.name)
        if file is None:
            return wanted.build
        number, side = store.buckets(file["weight"], self._limits), file["side"]
        self._built = True
        return [DUCKDB.text(one) for made in wanted.held.build for one in store.beside(made, table, side, number)]

    def built(self, table: Table) -> Sequence[str]:
        """What was built beside a table at an earlier start."""
        return self._files[table.name]["built"] if table.name in self._files else ()

    def retain(self, table: Table, registered: Callable[[], str | None]) -> None:
        """Lets go of files with other rows of a table; whoever reads them goes on doing so."""
        if self._limits.folder is not None:
            store.tidy(self._limits.folder, table, registered)

    def size(self, table: Table, fingerprint: str | None) -> int | None:
        """The bytes of the file that a table is kept in, 0 where it is still to be made; None in memory."""
        folder = self._limits.folder
        if folder is None or self._limits.store is Store.MEMORY:
            return None
        if fingerprint is not None and (path := store.place(folder, table, fingerprint)).is_file():
            return path.stat().st_size
        return 0 if store.kept(table, self._limits) else None

    def _kept(self, table: Table, key: str, salt: bytes) -> str:
        """Reads the declared columns of a table into a file."""
        with self.opened(table.source):
            if table.source.kind is SourceKind.CSV:
                check_gzip(table.source)
            found = listed(table.source)
            known = self._origin(table, found)
            self.prepare(table)
            made, facts = load_statements(table, relation(table.source, found), key)
            with self._making(table, key) as keep:
                weight = 0
                if typed := store.typed(made, table):
                    weight = self.call("typed", [DUCKDB.text(typed[0])], DUCKDB.text(typed[1]))["weight"]
                    made = store.in_buckets(made, table, store.buckets(weight, self._limits, least=store.LEAST))
                fingerprint = self.call("load", list(map(DUCKDB.text, made)), DUCKDB.text(facts), salt)["fingerprint"]
                if fingerprint is None:
                    message = f"a part of {words_of(table.source)} does not fit into the engine's memory"
                    raise DeclarationError([Fault("source", message, "raise engine.memory_gib")], code="memory")
                keep(fingerprint, weight, known)
        return str(fingerprint)

    def advance(self, table: Table, key: str, salt: bytes, fingerprint: str) -> tuple[str, int] | None:
        """The hash of a table's rows as its source is now, and how many files were read for it, where the rows with
        this hash are kept and nothing but these files was added since. None where all of it has to be read."""
        folder = self._limits.folder
        if folder is None or not store.kept(table, self._limits):
            return None
        path = store.place(folder, table, fingerprint)
        if not store.there(folder, path):
            return None
        with self.opened(table.source):
            found = listed(table.source)
            now = self._origin(table, found)
            asked = str(path), store.digest(table, key), fingerprint
            added = now.since(self.call("origin", *asked)["origin"]) if now is not None else None
            if added is None or now is None:
                return None
            self.check_columns(table)
            if added:
                grown = self._grown(table, key, salt, added, now)
                return None if grown is None else (grown, len(added))
        return (fingerprint, 0) if store.renewed(path) and self._opened(path, table, key, fingerprint) else None

    def _grown(self, table: Table, key: str, salt: bytes, added: Sequence[Path], now: Origin) -> str | None:
        """Makes a table's file of what was before and of added files, and gives the hash of its rows. None where it
        is better made of all files."""
        grown = relation(table.source, added)
        alike = self._origin(table, added)
        made, facts = load_statements(table, grown, key)
        typed = store.typed(made, table)
        if typed is None or alike is None or alike.how != now.how:
            return None
        if table.source.kind is SourceKind.CSV:
            check_gzip(table.source)
        first, weight = typed[0], DUCKDB.text(typed[1])
        with self._making(table, key) as keep:
            number = store.buckets(self.call("typed", [DUCKDB.text(first)], weight)["weight"], self._limits)
            others = list(map(DUCKDB.text, store.touched(table, number)))
            number = self.call("typed", others, weight)["weight"]
            number = store.buckets(number, self._limits, least=store.LEAST)
            statements = [*store.in_buckets(made, table, number), *store.untouched(table, number)]
            fingerprint = self.call("load", list(map(DUCKDB.text, statements)), DUCKDB.text(facts), salt)["fingerprint"]
            if fingerprint is not None:
                weight = DUCKDB.text(store.weight(table, exp.to_table(table_name(table))))
                keep(fingerprint, self.call("typed", [], weight)["weight"], now)
        return None if fingerprint is None else str(fingerprint)

    def _origin(self, table: Table, found: Sequence[Path]) -> Origin | None:
        """What the source that is open is now, of these files."""
        if table.source.kind not in (SourceKind.CSV, SourceKind.PARQUET):
            return origin(table.source, found, [])
        read = relation(table.source, found)
        columns = self._declared(table, read) if table.source.kind is SourceKind.PARQUET else []
        read.expressions[0].replace(exp.Placeholder())
        return origin(table.source, found, [DUCKDB.text(read), columns])

    def _declared(self, table: Table, read: exp.Expression) -> list[list[str]]:
        """The engine's types of the declared columns, where these files are read."""
        wanted = {column.name.casefold() for column in table.columns}
        found = self.call("describe", DUCKDB.text(exp.select("*").from_(read)))["columns"]
        return sorted([name.casefold(), kind] for name, kind in found if name.casefold() in wanted)

    @contextmanager
    def _making(self, table: Table, key: str) -> Iterator[Callable[[str, int, Origin | None], None]]:
        """A file of a table is begun, and given its name by what this gives. Raises DeclarationError where the disk is
        the reason that it cannot be made."""
        folder = self._limits.folder
        assert folder is not None
        self._alone(folder)
        try:
            self.call("begin")
        except Failed:
            raise store.unwritten(folder) from None

        def keep(fingerprint: str, weight: int, known: Origin | None) -> None:
            path, text = store.place(folder, table, fingerprint), known.text if known is not None else ""
            try:
                self.call("keep", str(path), store.digest(table, key), fingerprint, weight, text)
                found = self._opened(path, table, key, fingerprint)
            except Failed:
                found = False
            if not found:
                raise store.unwritten(folder)

        try:
            yield keep
        except Failed:
            if disk_usage(folder).free < _FULL:
                raise store.unwritten(folder) from None
            raise

    def _alone(self, folder: Path) -> None:
        """From here on this child alone makes files in a folder, until it is shut or ends."""
        store.there(folder)
        self._limit()
        try:
            self.call("alone", str(folder))
        except Failed:
            raise store.unwritten(folder) from None

    @contextmanager
    def opened(self, source: Source, columns: Iterable[Column] = ()) -> Iterator[None]:
        """The child can read the source, of which these are the declared columns. Raises DeclarationError where it
        cannot, or what is read of it fails."""
        self._open(source, {one.name.casefold(): one.type.value for one in columns if one.type is not None})
        try:
            yield
        except Failed:
            raise unreadable(source) from None
        except UnreadableSource as error:
            raise _refusal(source, error.word) from None
        finally:
            assert self.process is not None
            with suppress(Lost, Stopped):  # where the child has ended, what ended it is said
                self.process.call("forget", seconds=LOAD_SECONDS)

    def _limit(self) -> None:
        self.start()
        if not self._limited:
            try:
                self.call("limit", self._limits.memory_gib)
            except Failed:
                message = "this process may not give the engine so much memory"
                fault = Fault(
                    "engine.memory_gib", message, "declare less, or raise the process's own limit (ulimit -v)"
                )
                raise DeclarationError([fault], code="memory") from None
            self._limited = True

    def _open(self, source: Source, types: Mapping[str, str]) -> None:
        self._limit()
        try:
            match source.kind:
                case SourceKind.FRAME:
                    self.call("frame", *_taken(source, types))
                case SourceKind.POSTGRESQL:
                    self.call("server", source.server, environment(), LOAD_SECONDS)
                case SourceKind.DELTA | SourceKind.ICEBERG:
                    if not all(map(find_spec, _LIBRARIES[source.kind])):
                        message = f"what reads {source.kind.title()} tables is not installed"
                        fault = Fault("source", message, f"pip install 'discreet[{source.kind}]'")
                        raise DeclarationError([fault], code="library")
                    self.call(source.kind.value, str(source.path), source.version)
                case SourceKind.DATABASE:
                    if files(source):
                        self.call("attach", str(source.path))
                case SourceKind.CSV | SourceKind.PARQUET | SourceKind.SPARK | SourceKind.RELATION:
                    files(source)  # they must be there
                case _:
                    assert_never(source.kind)
        except Failed:
            raise unreadable(source) from None
        except UnreadableSource as error:
            raise _refusal(source, error.word) from None

    def call(self, *request: Any) -> Any:
        """What the child says to the owner. Raises Failed where the engine failed, UnreadableSource where a source's
        server did, DeclarationError where the child ended."""
        assert self.process is not None
        try:
            return self.process.call(*request, seconds=LOAD_SECONDS)
        except (Lost, Stopped):
            fault = Fault("engine", "the engine's process stopped while it loaded a table", "raise engine.memory_gib")
            raise DeclarationError([fault], code="engine") from None

    def types(self, source: Source) -> dict[str, tuple[Type | None, Fraction | None]]:
        """The columns of a source that states types, from its schema alone: None for a type that is not ours; and the
        step of a DECIMAL. Of a table in Python that is not known: whoever made it of Python's decimals may have left
        the number of digits to the rows.
        """
        with self.opened(source):
            if source.kind is SourceKind.POSTGRESQL:
                return columns.stated(self._columns(source))
            described = self.call("describe", _everything(source))
        stated = source.kind is not SourceKind.FRAME
        return {
            name: (None, None) if kind is None else (_type_of(kind), _step_of(kind) if stated else None)
            for name, kind in described["columns"]
        }

    def check(self, table: Table) -> None:
        """Whether the source is there and has the declared columns. Reads no row."""
        with self.opened(table.source):
            self.check_columns(table)

    def check_columns(self, table: Table) -> None:
        """Whether the source that is open has the declared columns."""
        if table.source.kind is SourceKind.POSTGRESQL:
            columns.check(table, self._columns(table.source))
            return
        if table.source.kind is SourceKind.CSV:
            names: Sequence[str] = csv_header(table.source)
        else:
            names = [name for name, _ in self.call("describe", _everything(table.source))["columns"]]
        check_columns(table, names)

    def together(self, tables: Iterable[Table]) -> None:
        """What is read of one server from here on is of one moment, for all of these tables that can be read. Where
        another process makes files of tables, it waits until that one has registered them."""
        tables = list(tables)
        folder = self._limits.folder
        if folder is not None and any(store.kept(table, self._limits) for table in tables):
            self._alone(folder)
        self._together = {}
        for table in tables:
            if table.source.kind is not SourceKind.POSTGRESQL:
                continue
            try:
                with self.opened(table.source):
                    found = self._columns(table.source)
                    columns.check(table, found)
            except DeclarationError:
                continue  # whoever loads it says what is wrong
            read = columns.select_table(table, found)
            self._together.setdefault(str(table.source.server), []).append(read)

    def prepare(self, table: Table) -> None:
        """Makes ready what `relation` reads of the source that is open. Raises DeclarationError."""
        if table.source.kind is not SourceKind.POSTGRESQL:
            self.check_columns(table)
            if table.source.kind in _LIBRARIES:
                self.call("state")
            return
        found = self._columns(table.source)
        columns.check(table, found)
        declared = [column.name for column in table.columns]
        self._rows(table.source, columns.select_table(table, found), declared)

    def _rows(self, source: Source, select: str, names: Sequence[str]) -> None:
        """Begins to read rows of a server's table that is open, under these names."""
        url = str(source.server)
        self.call("rows", url, self._together.get(url, []), select, names)

    def _columns(self, source: Source) -> list[columns.ServerColumn]:
        """The columns of a server's table that is open."""
        answer = self.call("columns", source.server, source.relation)
        return [columns.ServerColumn(*one) for one in answer["columns"]]

    def distinct(self, source: Source, column: str, most: int) -> list[Any]:
        """The distinct values of a column that the owner declared public, sorted, NULL last; at most `most` + 2."""
        identifier = exp.column(column, quoted=True)
        query = exp.select(identifier).distinct().from_(relation(source))
        query = query.order_by(exp.Ordered(this=identifier.copy(), nulls_first=False)).limit(most + 2)
        with self.opened(source):
            if source.kind is SourceKind.POSTGRESQL:
                self._rows(source, columns.select(source, [column], self._columns(source)), [column])
            elif source.kind in _LIBRARIES:
                self.call("state")
            return [row[0] for row in self.call("values", DUCKDB.text(query))["rows"]]

    def tables(self, source: Source) -> list[str]:
        """The tables and views of a database file, by name; of another schema than main as schema.name."""
        query = "SELECT schema_name, %s FROM duckdb_%s() WHERE database_name = 'source' AND NOT internal"
        named = f"{query % ('table_name', 'tables')} UNION {query % ('view_name', 'views')} ORDER BY ALL"
        with self.opened(source):
            rows = self.call("values", named)["rows"]
        return [name if schema == "main" else f"{schema}.{name}" for schema, name in rows]

    def sniffed(self, source: Source) -> tuple[str, list[Type | None]] | None:
        """What stands between the columns of a CSV file, and what types its first rows seem to have, as far as they are
        read so; None where that cannot be told. For the owner, before there is a declaration."""
        wanted = {"encoding": source.encoding, "decimal_separator": source.decimal}
        options = [
            exp.PropertyEQ(this=exp.to_identifier(key), expression=exp.Literal.string(value))
            for key, value in wanted.items()
        ]
        rows = exp.PropertyEQ(this=exp.to_identifier("sample_size"), expression=exp.Literal.number(SNIFFED_ROWS))
        sniff = exp.Anonymous(this="sniff_csv", expressions=[_one_file(files(source)[0]), rows, *options])
        query = exp.select("Delimiter", "Columns", "DateFormat", "TimestampFormat").from_(sniff)
        with self.opened(source):
            try:
                (found,) = self.call("values", DUCKDB.text(query))["rows"]
            except Failed:
                return None
        delimiter, listed, *formats = found
        iso = all(form is None or form.startswith("%Y-%m-%d") for form in formats)
        kinds = [_type_of(column["type"]) for column in listed]
        return delimiter, [kind if iso or kind not in (Type.DATE, Type.TIMESTAMP) else Type.TEXT for kind in kinds]


def _refusal(source: Source, word: str) -> DeclarationError:
    """What the owner reads of a source that is refused."""
    return (iceberg.refusal if source.kind is SourceKind.ICEBERG else refusal)(source, word)


def _taken(source: Source, types: Mapping[str, str]) -> tuple[Any, dict[str, str | None]]:
    """A table in Python as the engine's process takes it. Raises DeclarationError where nothing can be made of it."""
    try:
        return taken(_movable(source.frame), types)
    except Exception:  # whatever a table's own class does
        raise unreadable(source) from None


def _movable(frame: Any) -> Any:
    """A table that can go to another process: one of pandas, polars or pyarrow as it is, and of a class that is made of
    pandas' as that one; what else hands out Arrow's streams, and can do so again, as an Arrow table."""
    for base in type(frame).__mro__[1:]:
        if base.__name__ == "DataFrame" and base.__module__.partition(".")[0] == "pandas":
            return base(frame)
    known = type(frame).__module__.partition(".")[0] in ("pandas", "polars", "pyarrow")
    if known or not hasattr(frame, "__arrow_c_stream__"):
        return frame
    import pyarrow

    return pyarrow.table(frame)


def _one_file(path: Path) -> exp.Expression:
    """The path of one file, whatever its name."""
    return exp.Literal.string(re.sub(r"([*?[])", r"[\1]", str(path)))


def relation(source: Source, found: Sequence[Path] = ()) -> exp.Expression:
    """A source as statements name it: these of its files, or all."""
    if source.kind in (SourceKind.FRAME, SourceKind.DELTA, SourceKind.ICEBERG, SourceKind.POSTGRESQL):
        return exp.to_table("frame")
    if source.kind is SourceKind.DATABASE:
        parts = str(source.relation).split(".")
        schema = parts[0] if len(parts) > 1 else "main"
        return exp.table_(parts[-1], db=schema, catalog="source", quoted=True)
    found = found or files(source)
    path: exp.Expression = _one_file(found[0])
    if len(found) > 1:
        path = exp.Array(expressions=[_one_file(one) for one in found])
    if source.kind is SourceKind.PARQUET:
        if found == [source.path]:
            return exp.Anonymous(this="read_parquet", expressions=[path])
        # a column that only some of the files have is NULL in the others; a folder's key is a text
        said = {
            "union_by_name": exp.true(),
            "hive_partitioning": exp.true() if keys_of_folders(source, found) else exp.false(),
            "hive_types_autocast": exp.false(),
        }
        return exp.Anonymous(this="read_parquet", expressions=[path, *_named(said)])
    # every option is stated, so that no value decides how the file is read
    texts = exp.Struct(
        expressions=[
            exp.PropertyEQ(this=exp.to_identifier(name, quoted=True), expression=exp.Literal.string("VARCHAR"))
            for name in told_apart(csv_header(source))
        ]
    )
    options: dict[str, exp.Expression] = {
        "auto_detect": exp.false(),
        "header": exp.true(),
        "delim": exp.Literal.string(source.delimiter),
        "encoding": exp.Literal.string(source.encoding),
        "quote": exp.Literal.string('"'),
        "escape": exp.Literal.string('"'),
        "nullstr": exp.Literal.string(""),
        # short and long rows, quotes in odd places and mixed line ends are read; what is not UTF-8 is refused
        "null_padding": exp.true(),
        "strict_mode": exp.false(),
        "parallel": exp.false(),
        "columns": texts,
    }
    return exp.Anonymous(this="read_csv", expressions=[path, *_named(options)])


def _named(options: Mapping[str, exp.Expression]) -> list[exp.Expression]:
    """Arguments by their names."""
    return [exp.PropertyEQ(this=exp.to_identifier(name), expression=value) for name, value in options.items()]


def _everything(source: Source) -> str:
    return DUCKDB.text(exp.select("*").from_(relation(source)))


def _type_of(kind: str) -> Type | None:
    """Our type for an engine type; None where there is none (lists, structures, times of day)."""
    plain = kind.upper()
    if plain in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"):
        return Type.INTEGER
    if plain in ("FLOAT", "DOUBLE", "UBIGINT", "HUGEINT") or plain.startswith("DECIMAL"):
        return Type.NUMBER
    if plain in ("VARCHAR", "UUID") or plain.startswith("ENUM"):
        return Type.TEXT
    if plain == "BOOLEAN":
        return Type.BOOLEAN
    if plain == "DATE":
        return Type.DATE
    return Type.TIMESTAMP if plain.startswith("TIMESTAMP") else None


def _step_of(kind: str) -> Fraction | None:
    """The last digit of an engine's DECIMAL(p, s), and 1 of whole numbers that may be too large for ours; None of
    other types."""
    if kind.upper() in ("UBIGINT", "HUGEINT"):
        return Fraction(1)
    found = re.fullmatch(r"DECIMAL\(\d+,\s*(\d+)\)", kind.upper())
    return Fraction(1, 10 ** int(found[1])) if found else None
