"""DuckDB as the engine: loading declared tables, running plans, and what happens when it fails."""

from __future__ import annotations

import datetime
import hashlib
import math
import re
import secrets
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from sqlglot import exp

from discreet.catalog.model import DATES, EngineLimits
from discreet.engines.coded import Marginal, Rows, arrays, build, counts, drop, true_cells
from discreet.engines.compile import held, statement
from discreet.engines.functions import double_literal, literal
from discreet.engines.names import NOBODY, ROW_NUMBER, column_name, table_name, told_apart
from discreet.engines.process import EngineProcess, Failed, Stopped
from discreet.engines.quantities import rounded
from discreet.engines.relations import rows_of, several_owners
from discreet.engines.scalars import from_steps
from discreet.engines.vectors import Vectors, Wanted, decoded, select
from discreet.engines.windows import MOST_HELD, Held, name_of, of_rows
from discreet.errors import DeclarationError, EngineError, Fault, QuestionError
from discreet.plan.coding import Coding
from discreet.trusted.ring_a.engine import Lost
from discreet.trusted.ring_a.expressions import Expression, Literal
from discreet.trusted.ring_a.forks import Lock
from discreet.trusted.ring_a.lattice import Lattice
from discreet.trusted.ring_a.nodes import Aggregate, Root, project_of
from discreet.trusted.ring_a.table import LARGEST, Column, Relation, Source, Table, Type, Value
from discreet.trusted.ring_b.order_statistics import Distinct
from discreet.trusted.ring_b.relations import Attributed, bases, shape

_ENGINE_TYPES = {
    Type.INTEGER: "BIGINT",
    Type.NUMBER: "DOUBLE",
    Type.TEXT: "TEXT",
    Type.BOOLEAN: "BOOLEAN",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP",
}
_CALENDAR: dict[Type, tuple[Value | None, Value | None]] = {
    Type.DATE: (datetime.date.min, datetime.date.max),
    Type.TIMESTAMP: (datetime.datetime.min, datetime.datetime(9999, 12, 31, 23, 59, 59)),
}
LISTING_SECONDS = 10
"""How long it may take to list groups of public tables, which is free."""
LOAD_SECONDS = 3_600
"""Loading is the owner's act and may take as long as it needs, within reason."""

SNIFFED_ROWS = 1_000
"""So many rows of a CSV file are looked at for how it is written."""

MOST_FACTS = 1_000
"""How many facts about public tables are kept."""

Row = tuple[tuple[Value | None, ...], tuple[int, ...]]
"""The keys of one group and its exact totals."""


class DuckDB:
    """One child process with the declared tables in memory.

    `load` reads a source and returns a keyed hash of what it read; `run` gives a plan's exact totals. After a child was
    killed the engine holds nothing: the door freezes the table until the owner acts.
    """

    name = "duckdb"

    def __init__(self, limits: EngineLimits) -> None:
        self._limits = limits
        self._process: EngineProcess | None = None
        self._locked = False
        self._loaded: set[str] = set()
        self._held: dict[str, list[Held]] = {}
        self._facts: dict[str, list[Any]] = {}
        self._running = Lock()

    def start(self) -> None:
        """Starts the child process, without waiting for it."""
        if self._process is None or not self._process.usable:
            self._process, self._locked, self._loaded = EngineProcess(), False, set()
            self._limited, self._held, self._facts = False, {}, {}

    @property
    def rows(self) -> object:
        """The child that has the tables: it loads them once, so what it has is of one snapshot. Another has others."""
        return self._process

    @property
    def shut(self) -> bool:
        """Whether a child runs that can load nothing more."""
        return self._locked and self._process is not None and self._process.usable

    def has(self, table: str) -> bool:
        """Whether the table is loaded in a child that still lives."""
        return self._process is not None and self._process.usable and table in self._loaded

    def holds(self, table: Table) -> bool:
        """Whether all declared tables behind a table are loaded."""
        return all(self.has(base.name) for base in table.bases)

    def types(self, source: Source) -> dict[str, tuple[Type | None, Fraction | None]]:
        """The columns of a source that states types, from its schema alone: None for a type that is not ours; and the
        step of a DECIMAL. Of a table in Python that is not known: whoever made it of Python's decimals may have left
        the number of digits to the rows.
        """
        self._open(source)
        try:
            described = self._call("describe", _relation_sql(source), seconds=LOAD_SECONDS)
        except Failed:
            raise _unreadable(source) from None
        finally:
            self._call("forget", seconds=LOAD_SECONDS)
        stated = source.kind != "frame"
        return {
            name: (None, None) if kind is None else (_type_of(kind), _step_of(kind) if stated else None)
            for name, kind in described["columns"]
        }

    def distinct(self, source: Source, column: str, most: int) -> list[Any]:
        """The distinct values of a column that the owner declared public, sorted, NULL last; at most `most` + 2."""
        self._open(source)
        identifier = exp.column(column, quoted=True)
        query = exp.select(identifier).distinct().from_(_relation(source))
        query = query.order_by(exp.Ordered(this=identifier.copy(), nulls_first=False)).limit(most + 2)
        try:
            return [row[0] for row in self._call("values", query.sql("duckdb"), seconds=LOAD_SECONDS)["rows"]]
        except Failed:
            raise _unreadable(source) from None
        finally:
            self._call("forget", seconds=LOAD_SECONDS)

    def tables(self, source: Source) -> list[str]:
        """The tables and views of a DuckDB file, by name; of another schema than main as schema.name."""
        self._open(source)
        query = "SELECT schema_name, %s FROM duckdb_%s() WHERE database_name = 'source' AND NOT internal"
        named = f"{query % ('table_name', 'tables')} UNION {query % ('view_name', 'views')} ORDER BY ALL"
        try:
            rows = self._call("values", named, seconds=LOAD_SECONDS)["rows"]
        except Failed:
            raise _unreadable(source) from None
        finally:
            self._call("forget", seconds=LOAD_SECONDS)
        return [name if schema == "main" else f"{schema}.{name}" for schema, name in rows]

    def sniffed(self, source: Source) -> tuple[str, list[Type | None]] | None:
        """What stands between the columns of a CSV file, and what types its first rows seem to have, as far as they are
        read so; None where that cannot be told. For the owner, before there is a declaration."""
        self._open(source)
        wanted = {"encoding": source.encoding, "decimal_separator": source.decimal}
        options = [
            exp.PropertyEQ(this=exp.to_identifier(key), expression=exp.Literal.string(value))
            for key, value in wanted.items()
        ]
        rows = exp.PropertyEQ(this=exp.to_identifier("sample_size"), expression=exp.Literal.number(SNIFFED_ROWS))
        sniff = exp.Anonymous(this="sniff_csv", expressions=[_one_file(source), rows, *options])
        query = exp.select("Delimiter", "Columns", "DateFormat", "TimestampFormat").from_(sniff)
        try:
            (found,) = self._call("values", query.sql("duckdb"), seconds=LOAD_SECONDS)["rows"]
        except Failed:
            return None
        delimiter, columns, *formats = found
        iso = all(form is None or form.startswith("%Y-%m-%d") for form in formats)
        kinds = [_type_of(column["type"]) for column in columns]
        return delimiter, [kind if iso or kind not in _CALENDAR else Type.TEXT for kind in kinds]

    def check(self, table: Table) -> None:
        """Whether the source is there and has the declared columns. Reads no row. Raises DeclarationError."""
        self._open(table.source)
        try:
            _check_columns(table, self._names(table))
        finally:
            self._call("forget", seconds=LOAD_SECONDS)

    def load(self, table: Table, salt: bytes) -> str:
        """Reads the declared columns of a table into memory. Raises DeclarationError where that cannot be done."""
        self._open(table.source)
        if table.source.kind == "csv":
            _check_gzip(table.source)
        try:
            _check_columns(table, self._names(table))
            statements, fingerprint = load_statements(table, _positions(table, salt), windows=self._limits.windows)
            request = ([node.sql("duckdb") for node in statements], fingerprint.sql("duckdb"), salt)
            answer = self._call("load", *request, seconds=LOAD_SECONDS)
        except Failed:
            raise _unreadable(table.source) from None
        finally:
            self._call("forget", seconds=LOAD_SECONDS)
        if answer["fingerprint"] is None:
            message = f"{table.source.text} does not fit into the engine's memory"
            raise DeclarationError([Fault("source", message, "raise engine.memory_gib")], code="memory")
        self._loaded.add(table.name)
        self._held[table.name] = []
        return str(answer["fingerprint"])

    def leads_to_several(self, relation: Attributed) -> bool:
        """Whether some value that rows refer to leads to several persons. For the owner, when tables are loaded."""
        return bool(self._call("run", several_owners(relation).sql("duckdb"), seconds=LOAD_SECONDS)["rows"])

    def lock(self) -> None:
        """Shuts the child off from files, network and settings. Called once every table is loaded."""
        if not self._locked:
            self._call("lock", seconds=LOAD_SECONDS)
            self._locked = True

    def run(self, plan: Root, table: Table) -> list[Row]:
        """The exact totals of each group that holds a row. For the door only.

        Raises EngineError where the engine failed, Stopped where the child died or had to be killed, Lost where it had
        ended before.
        """
        if not self.holds(table) or self._process is None:
            raise self._gone()
        sql = statement(plan, table, secrets.token_hex(16), windows=self._limits.windows).sql("duckdb")
        try:
            with self._running:  # nobody drops what was built before it is read
                if isinstance(plan, Aggregate):
                    self._build(plan, table)
                rows = self._process.call("run", sql, seconds=self._limits.seconds)["rows"]
        except Failed:
            raise EngineError from None
        keys = project_of(plan).keys
        if isinstance(plan, Distinct):
            keys = keys[:-1]
        return [
            (
                tuple(None if value is None else _key(value, key.type) for value, key in zip(row, keys, strict=False)),
                tuple(int(x) for x in row[len(keys) :]),
            )
            for row in rows
            if not any(isinstance(key, float) and math.isinf(key) for key in row[: len(keys)])
        ]

    def _gone(self) -> Exception:
        """What became of the tables since the question was paid for: the child ended by itself, or under another's
        request, or on the owner's word."""
        return Stopped() if self._process is not None and self._process.ended_alone else Lost()

    def _build(self, plan: Aggregate, table: Table) -> None:
        """Builds what the plan reads beside the table, where a question needs it for the first time.

        What is kept follows from the questions that were asked, and the number of sets kept from a constant. The build
        has the limits of a question; where it fails the question fails, as it would where the plan itself failed."""
        name = name_of(table_name(table), plan) if self._limits.windows else None
        if name is None or self._process is None:
            return
        known = self._held[table.name]
        for one in known:
            if one.name == name:
                known.remove(one)
                known.append(one)
                return
        wanted = held(plan, table)
        gone = known[: max(0, len(known) + 1 - MOST_HELD)]
        statements = [node.sql("duckdb") for one in gone for node in one.drop]
        statements += [node.sql("duckdb") for node in wanted.build]
        self._process.call("build", statements, seconds=self._limits.seconds)
        self._held[table.name] = [*known[len(gone) :], wanted]

    def vectors(self, table: Table, wanted: Sequence[Wanted]) -> Vectors:
        """The rows of a table, person by person, in some of its columns. For the door only.

        Raises EngineError where the engine failed, Stopped where the child died or had to be killed, Lost where it had
        ended before.
        """
        if not self.has(table.name) or self._process is None:
            raise self._gone()
        sql = select(table, wanted).sql("duckdb")
        try:
            answer = self._process.call("vectors", sql, seconds=self._limits.seconds)
        except Failed:
            raise EngineError from None
        return decoded(wanted, answer)

    def code(self, coding: Coding, table: Table) -> Rows:
        """Builds the rows of a table as cells, for the door only, which lets go of them with `uncode`."""
        rows = Rows(f"coded_{secrets.token_hex(8)}", table, coding)
        self._coded([build(rows, secrets.token_hex(16), windows=self._limits.windows)], table)
        return rows

    def uncode(self, rows: Rows) -> None:
        """Lets go of rows as cells."""
        if self.has(rows.table.name):
            self._coded([drop(rows)], rows.table)

    def _coded(self, statements: list[str], table: Table) -> None:
        if not self.has(table.name) or self._process is None:
            raise self._gone()
        try:
            self._process.call("build", statements, seconds=self._limits.seconds)
        except Failed:
            raise EngineError from None

    def marginals(self, rows: Rows, cliques: Sequence[Sequence[str]]) -> list[Marginal]:
        """How many rows are in each cell, for each of these sets of columns; the axes are in the order of the names.
        For the door only."""
        shapes = [rows.coding.shape(clique) for clique in cliques]
        return self._counted([counts(rows, clique) for clique in cliques], shapes, rows.table)

    def cells(self, coding: Coding, predicate: Expression, table: Table) -> Marginal:
        """1 for each cell of the coding for which the predicate is true, 0 for the others. Reads no row."""
        (found,) = self._counted([true_cells(coding, predicate)], [coding.sizes], table)
        return found

    def _counted(self, selects: Sequence[str], shapes: Sequence[tuple[int, ...]], table: Table) -> list[Marginal]:
        """Raises EngineError where the engine failed, Stopped where the child died or had to be killed,
        Lost where it had ended before."""
        if not self.has(table.name) or self._process is None:
            raise self._gone()
        wanted = list(zip(selects, shapes, strict=True))
        try:
            answer = self._process.call("counts", wanted, seconds=self._limits.seconds)
        except Failed:
            raise EngineError from None
        return arrays(answer, shapes)

    def public_values(self, relation: Relation, most: int) -> list[tuple[Value, ...]]:
        """The different rows of a relation that is about nobody, sorted; at most `most` + 1. Rows with NULL or an
        infinite number are left out: no group is called so.

        Raises QuestionError where that is too much for the engine: it is given up there, so that the engine and its
        tables live on. ValueError where the relation is about people.
        """
        known = shape(relation)
        columns = [exp.column(f"c{place}") for place in range(len(known.columns))]
        select = exp.select(*columns).distinct()
        for column, one in zip(columns, known.columns, strict=True):
            select = select.where(exp.Not(this=exp.Is(this=column.copy(), expression=exp.null())))
            if one.type is Type.NUMBER:
                select = select.where(exp.Not(this=exp.Anonymous(this="isinf", expressions=[column.copy()])))
        rows = self._public(relation, select.order_by(*(column.copy() for column in columns)).limit(most + 1))
        kinds = [column.type or Type.TEXT for column in known.columns]
        return [tuple(_key(value, kind) for value, kind in zip(row, kinds, strict=True)) for row in rows]

    def most(self, relation: Relation, names: tuple[str, ...]) -> int:
        """The largest number of rows of a public relation that share their values in these columns; of no columns: all
        its rows. Errors as of `public_values`."""
        places = [place for place, column in enumerate(shape(relation).columns) if column.name in names]
        keys = [exp.column(f"c{place}") for place in places]
        count = exp.Count(this=exp.Star(), big_int=True)
        found = self._fact(relation, exp.select(count).group_by(*keys).order_by("1 DESC").limit(1))
        return int(found[0]) if found else 0

    def longest(self, relation: Relation) -> dict[str, int]:
        """The characters of the longest text in each column of a public relation. Errors as of `public_values`."""
        texts = [(f"c{place}", one.name) for place, one in enumerate(shape(relation).columns) if one.type is Type.TEXT]
        if not texts:
            return {}
        sizes = [exp.Max(this=exp.Anonymous(this="length", expressions=[exp.column(place)])) for place, _ in texts]
        found = self._fact(relation, exp.select(*sizes))
        return {name: size or 0 for (_, name), size in zip(texts, found, strict=True)}

    def _fact(self, relation: Relation, select: exp.Select) -> list[Any]:
        """The first row of a SELECT from a public relation; kept, as questions come again."""
        text = repr((relation, select))
        if text not in self._facts:
            if len(self._facts) >= MOST_FACTS:
                self._facts.clear()
            self._facts[text] = next(iter(self._public(relation, select)), [])
        return self._facts[text]

    def _public(self, relation: Relation, select: exp.Select) -> list[list[Any]]:
        """The rows of a SELECT from a relation that is about nobody."""
        if shape(relation).private or not all(table.public for table in bases(relation)):
            raise ValueError("only public tables can be read outside the door")
        sql = select.from_(rows_of(relation, lambda _: None).select.subquery("p")).sql("duckdb")
        try:
            if self._process is None:
                raise Stopped
            seconds = min(LISTING_SECONDS, self._limits.seconds / 2)
            rows: list[list[Any]] = self._process.call("listed", sql, seconds, seconds=2 * seconds)["rows"]
        except (Failed, Lost, Stopped):
            message = "the engine could not list the groups of the public tables; nothing was spent"
            fix = "join public tables by equal keys, and keep fewer of their rows"
            raise QuestionError("public-table", message, where="JOIN", fix=fix) from None
        return rows

    def sql(self, plan: Root, table: Table) -> str:
        """The SELECT that `run` would send, with a placeholder for the salt. For the owner's eyes."""
        select = statement(plan, table, "a fresh secret salt", windows=self._limits.windows)
        return select.sql("duckdb", pretty=True)

    def close(self) -> None:
        """Ends the child."""
        if self._process is not None:
            self._process.kill()
            self._process = None
        self._loaded, self._held, self._facts = set(), {}, {}

    def _open(self, source: Source) -> None:
        """Makes a source readable in the child."""
        self.start()
        if not self._limited:
            try:
                self._call("limit", self._limits.memory_gib, seconds=LOAD_SECONDS)
            except Failed:
                message = "this process may not give the engine so much memory"
                fault = Fault(
                    "engine.memory_gib", message, "declare less, or raise the process's own limit (ulimit -v)"
                )
                raise DeclarationError([fault], code="memory") from None
            self._limited = True
        try:
            if source.kind == "frame":
                self._call("frame", source.frame, seconds=LOAD_SECONDS)
            elif source.path is None or not source.path.is_file():
                fault = Fault("source", f"there is no file {source.path}", "check the path in the declaration")
                raise DeclarationError([fault], code="missing")
            elif source.kind == "duckdb":
                self._call("attach", str(source.path), seconds=LOAD_SECONDS)
        except Failed:
            raise _unreadable(source) from None

    def _names(self, table: Table) -> list[str]:
        if table.source.kind == "csv":
            assert table.source.path is not None
            return csv_header(table.source)
        try:
            described = self._call("describe", _relation_sql(table.source), seconds=LOAD_SECONDS)
        except Failed:
            raise _unreadable(table.source) from None
        return [name for name, _ in described["columns"]]

    def _call(self, *request: Any, seconds: float) -> Any:
        assert self._process is not None
        try:
            return self._process.call(*request, seconds=seconds)
        except (Lost, Stopped):
            fault = Fault("engine", "the engine's process stopped while it loaded a table", "raise engine.memory_gib")
            raise DeclarationError([fault], code="engine") from None


def _check_gzip(source: Source) -> None:
    """Raises DeclarationError unless a packed file is whole: the engine does not look at its checksum."""
    import gzip
    import zlib

    assert source.path is not None
    if source.path.suffix != ".gz":
        return
    try:
        with gzip.open(source.path, "rb") as file:
            while file.read(1 << 20):
                pass
    except (OSError, EOFError, zlib.error):
        raise _unreadable(source) from None


def csv_header(source: Source) -> list[str]:
    """The names in a CSV file's first line. No other line is read."""
    return next(iter(csv_head(source, 1)), [])


def csv_head(source: Source, lines: int) -> list[list[str]]:
    """The first lines of a CSV file, of which those after the header are for its owner."""
    import csv
    import gzip
    import itertools
    import zlib

    assert source.path is not None
    opener = gzip.open if source.path.suffix == ".gz" else open
    try:
        encoding = "utf-8-sig" if source.encoding == "utf-8" else source.encoding
        with opener(source.path, "rt", encoding=encoding, newline="") as file:
            return list(itertools.islice(csv.reader(file, delimiter=source.delimiter), lines))
    except (OSError, EOFError, zlib.error, UnicodeError, csv.Error):
        raise _unreadable(source) from None


def _check_columns(table: Table, names: Sequence[str]) -> None:
    faults = []
    for column in table.columns:
        where = f"tables.{table.name}.columns.{column.name}"
        found = [name for name in names if name.casefold() == column.name.casefold()]
        if not found:
            fix = "leave it out, or name one of: " + ", ".join(names[:20])
            faults.append(Fault(where, "the source has no such column", fix))
        elif len(found) > 1:
            faults.append(Fault(where, "the source has this name more than once", "rename one of the source's columns"))
    if faults:
        raise DeclarationError(faults, code="columns")


_READABLE = {
    "csv": 'check that it is text in UTF-8 with commas, or write csv = { delimiter = ";", encoding = "latin-1" }',
    "parquet": "check that it is a Parquet file",
    "duckdb": "check that it is a DuckDB file, not open elsewhere, and the name of the table in it",
    "frame": "give a pandas or polars DataFrame, or an Arrow table",
}


def _unreadable(source: Source) -> DeclarationError:
    message = f"{source.text} cannot be read as {'a table' if source.kind == 'frame' else source.kind}"
    return DeclarationError([Fault("source", message, _READABLE[source.kind])], code="unreadable")


def _one_file(source: Source) -> exp.Expression:
    """The path of one file, whatever its name."""
    return exp.Literal.string(re.sub(r"([*?[])", r"[\1]", str(source.path)))


def _relation(source: Source) -> exp.Expression:
    if source.kind == "frame":
        return exp.to_table("frame")
    if source.kind == "duckdb":
        parts = str(source.relation).split(".")
        schema = parts[0] if len(parts) > 1 else "main"
        return exp.table_(parts[-1], db=schema, catalog="source", quoted=True)
    path = _one_file(source)
    if source.kind == "parquet":
        return exp.Anonymous(this="read_parquet", expressions=[path])
    # every option is stated, so that no value decides how the file is read
    columns = exp.Struct(
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
        "columns": columns,
    }
    named = [exp.PropertyEQ(this=exp.to_identifier(name), expression=value) for name, value in options.items()]
    return exp.Anonymous(this="read_csv", expressions=[path, *named])


def _relation_sql(source: Source) -> str:
    return exp.select("*").from_(_relation(source)).sql("duckdb")


def creation(table: Table) -> exp.Expression:
    """A source of a table's columns in its declared types, without rows, called as one that Python holds is."""
    columns = [
        exp.ColumnDef(
            this=exp.to_identifier(column.name, quoted=True), kind=exp.DataType.build(_ENGINE_TYPES[column.type])
        )
        for column in table.columns
        if column.type is not None
    ]
    return exp.Create(this=exp.Schema(this=exp.to_table("frame"), expressions=columns), kind="TABLE", replace=True)


def _positions(table: Table, salt: bytes) -> str:
    """The secret key of the order in which a person's rows stand. It lasts as long as the ledger: if other rows were
    left out at each start, the source would seem to have changed."""
    return hashlib.sha256(b"positions" + salt + table.name.encode()).hexdigest()[:32]


def load_statements(table: Table, key: str, *, windows: bool) -> tuple[list[exp.Expression], exp.Expression]:
    """Builds the table under the engine's own names, typed, clamped and cut, and the query that fingerprints it.

    Where a person may have several rows they are numbered within the person, in the source's order: that number depends
    on the person's own rows only, which a position in the table would not. Of a person with more than `Table.stored`
    rows so many are kept, the first in an order under the `key`; with `windows`, rows also get what windows over them
    read, counted over those that are kept. Where one row a person is promised and a column holds the person, one row of
    each person is kept, so the promise holds whatever the source contains. Rows whose text identifies and is too long
    are left out: see `catalog.model.Column`.
    """
    name = table_name(table)
    held = [replace(column, identifies=True) if table.public else column for column in table.columns]
    selected = [exp.alias_(_typed(column, table.source), column_name(index)) for index, column in enumerate(held)]
    select = exp.select(*selected).from_(_relation(table.source))
    for column in table.columns:
        if column.identifies and column.type is Type.TEXT and not table.public:
            length = exp.Anonymous(this="length", expressions=[_typed(column, table.source)])
            fits = exp.LTE(this=length, expression=exp.Literal.number(column.longest))
            select = select.where(exp.Coalesce(this=fits, expressions=[exp.true()]))
    statements: list[exp.Expression] = []
    target = name
    if table.person is not None:
        target = "stage"
    statements.append(exp.Create(this=exp.to_table(target), kind="TABLE", expression=select))
    if table.person is not None:
        index = next(i for i, column in enumerate(table.columns) if column.name == table.person)
        person = exp.column(column_name(index))
        order = exp.Order(expressions=[exp.Ordered(this=exp.column("rowid"))])
        rank = exp.Window(this=exp.RowNumber(), partition_by=[person], order=order)
        names = [exp.column(column_name(i)) for i in range(len(table.columns))]
        numbered = exp.select(*names, exp.alias_(rank, ROW_NUMBER)).from_("stage")
        numbered = numbered.where(exp.Not(this=exp.Is(this=person.copy(), expression=exp.null())))
        if table.columns[index].type is Type.INTEGER:
            nobody = exp.cast(exp.Literal.string(NOBODY), "BIGINT")
            numbered = numbered.where(exp.NEQ(this=person.copy(), expression=nobody))
        if table.one_row_per_person:
            first = exp.EQ(this=exp.column(ROW_NUMBER), expression=exp.Literal.number(1))
            numbered = exp.select(*(node.copy() for node in names)).from_(numbered.subquery("numbered")).where(first)
        else:
            numbered = of_rows(numbered, person, key, table.stored, windows=windows)
        statements.append(exp.Create(this=exp.to_table(name), kind="TABLE", expression=numbered))
        statements.append(exp.Drop(tables=[exp.to_table("stage")], kind="TABLE"))
    content = exp.Anonymous(this="hash", expressions=[exp.column(column_name(i)) for i in range(len(table.columns))])
    facts = [
        exp.Count(this=exp.Star()),
        exp.Sum(this=content),
        exp.Anonymous(this="bit_xor", expressions=[content.copy()]),
    ]
    return statements, exp.select(*facts).from_(exp.to_table(name))


def _typed(column: Column, source: Source) -> exp.Expression:
    """A column as its declared type: what does not convert is NULL, NaN is NULL, what lies outside is clamped, and a
    number is rounded to its step. Where the source has a decimal comma, 3,5 is a number, and so is 1.234,5; 1.5, which
    may be either, is NULL. Where it says how dates are written, no others are dates.

    Dates the engine knows and Python does not (before year 1, after 9999, infinite) count as outside: as a group's key
    such a date of one person would make everybody's question fail.
    """
    assert column.type is not None
    node: exp.Expression = exp.column(column.name, quoted=True)
    if source.decimal == "," and column.type.numeric:
        node = _with_point(node)
    if source.dates != Source("csv").dates and column.type in _CALENDAR:
        node = _as_iso(node, source.dates)
    node = exp.TryCast(this=node, to=exp.DataType.build(_ENGINE_TYPES[column.type]), safe=True)
    if column.type is Type.NUMBER:
        unknown: exp.Expression = exp.Or(
            this=exp.IsNan(this=node), expression=exp.Is(this=node.copy(), expression=exp.null())
        )
    else:
        unknown = exp.Is(this=node, expression=exp.null())
    low, high = _CALENDAR.get(column.type, (None, None))
    low = column.minimum if column.minimum is not None else low
    high = column.maximum if column.maximum is not None else high
    if column.type is Type.TEXT and not column.identifies:
        return exp.Anonymous(this="left", expressions=[node, exp.Literal.number(column.longest)])
    if low is None and high is None and column.type is not Type.NUMBER:
        return node
    inside: exp.Expression = node.copy()
    if high is not None:
        inside = exp.Least(this=inside, expressions=[_bound(column, high)], ignore_nulls=True)
    if low is not None:
        inside = exp.Greatest(this=inside, expressions=[_bound(column, low)], ignore_nulls=True)
    if column.step is not None and column.steps is not None:
        inside = _in_steps(inside, column.step, column.steps, open_=None in (low, high))
    return exp.Case(ifs=[exp.If(this=unknown, true=exp.null())], default=inside)


def _in_steps(node: exp.Expression, step: Fraction, ends: tuple[int, int], *, open_: bool) -> exp.Expression:
    """The multiple of a step that a number is nearest to, within its bounds. Where bounds are `open_`, a number beyond
    what is counted in steps stays as it is."""
    nearest = from_steps(rounded(node, Lattice(step, *ends)), step.numerator, step.denominator)
    if not open_:
        return nearest
    counted = exp.LTE(this=exp.Abs(this=node.copy()), expression=double_literal(LARGEST // step.numerator * step))
    return exp.Case(ifs=[exp.If(this=counted, true=nearest)], default=node.copy())


def _as_iso(node: exp.Expression, dates: str) -> exp.Expression:
    """A date, or a date and a time of day, with the year first, as the engine reads it; NULL if written otherwise."""
    parts = DATES.fullmatch(dates)
    assert parts is not None
    order = [parts[1], parts[3], parts[4]]
    digits = {"d": "([0-9]{1,2})", "m": "([0-9]{1,2})", "Y": "([0-9]{4})"}
    pattern = rf"\s*{f'[{parts[2]}]'.join(digits[part] for part in order)}([ T][0-9:.]+)?\s*"
    iso = "-".join(f"\\{order.index(part) + 1}" for part in "Ymd") + r"\4"
    match = exp.Anonymous(this="regexp_full_match", expressions=[node.copy(), exp.Literal.string(pattern)])
    words = [exp.Literal.string(f"^{pattern}$"), exp.Literal.string(iso)]
    return exp.Case(ifs=[exp.If(this=match, true=exp.Anonymous(this="regexp_replace", expressions=[node, *words]))])


def _with_point(node: exp.Expression) -> exp.Expression:
    """A number that is written with a comma, as the engine reads it."""

    def replaced(inner: exp.Expression, old: str, new: str) -> exp.Expression:
        return exp.Anonymous(this="replace", expressions=[inner, exp.Literal.string(old), exp.Literal.string(new)])

    grouped = exp.Literal.string(r"\s*[-+]?[0-9]{1,3}([.][0-9]{3})+(,[0-9]*)?\s*")
    dotted = exp.Anonymous(this="contains", expressions=[node.copy(), exp.Literal.string(".")])
    whole = exp.Anonymous(this="regexp_full_match", expressions=[node.copy(), grouped])
    cases = [
        exp.If(this=exp.Not(this=dotted), true=replaced(node.copy(), ",", ".")),
        exp.If(this=whole, true=replaced(replaced(node.copy(), ".", ""), ",", ".")),
    ]
    return exp.Case(ifs=cases)


def _bound(column: Column, value: Value) -> exp.Expression:
    """A bound in the column's own type."""
    assert column.type is not None
    value = Fraction(value) if column.type is Type.NUMBER and isinstance(value, int) else value
    return exp.cast(literal(Literal(value, column.type)), _ENGINE_TYPES[column.type])


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
    """The last digit of an engine's DECIMAL(p, s); None of other types."""
    found = re.fullmatch(r"DECIMAL\(\d+,\s*(\d+)\)", kind.upper())
    return Fraction(1, 10 ** int(found[1])) if found else None


def _key(value: Any, kind: Type) -> Any:
    """A group's key as the declaration would write it, None for NULL.

    Every value that a column of the type can hold, loaded or computed, gives a key, and two that the engine tells apart
    give two: whole numbers have 64 bits, texts are Unicode without lone surrogates, dates lie between the years 1 and
    9999 (`_typed`, and `discreet.engines.scalars` for what is computed), a number is a double, of which 0 and -0 are
    one. Infinities give none: `run` leaves their groups out, as NULL is left out, which moves nothing else.
    """
    if value is None:
        return None
    if kind is Type.DATE:
        return datetime.date.fromisoformat(value)
    if kind is Type.TIMESTAMP:
        return datetime.datetime.fromisoformat(value)
    if kind is Type.NUMBER:
        return Fraction(value)
    key: Value = value
    return key
