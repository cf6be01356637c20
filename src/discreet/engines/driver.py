"""What all engines have alike: one child process has the declared tables, and runs statements on them.

An engine is a `Dialect`, a program for the child (`worker`), and `Loading`: how tables get there. The program
answers these requests, each with its arguments: `run` (a SELECT: `rows`), `listed` (the same, within so many seconds),
`build` (statements, all or none), `vectors` and `counts` (columns of SELECTs, as bytes), and for the `Twin` `empty` and
`prepare`. No message of a database crosses: it says `failed`, or it ends.
"""

from __future__ import annotations

import datetime
import math
import secrets
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

from sqlglot import exp

from discreet.catalog.formats import load_statements
from discreet.catalog.model import EngineLimits
from discreet.engines.process import EngineProcess, Failed
from discreet.engines.protocol import Lost, Row, Stopped
from discreet.engines.statements import AuxiliaryTable, SaltedStatement, Statements
from discreet.engines.twin import Twin
from discreet.errors import DeclarationError, EngineError, Fault, QuestionError
from discreet.locks import Lock
from discreet.trusted.parts.rows import assigning, keeping
from discreet.trusted.renewal.first_seen import statements
from discreet.trusted.ring_a.dialect import function
from discreet.trusted.ring_a.expressions import Expression
from discreet.trusted.ring_a.nodes import Root, project_of
from discreet.trusted.ring_a.statement import statement
from discreet.trusted.ring_a.storing import positions
from discreet.trusted.ring_a.table import Relation, Source, Table, Type, Value
from discreet.trusted.ring_a.windows import Salt
from discreet.trusted.ring_b.dialect import Dialect, Lacking
from discreet.trusted.ring_b.held_groups import MOST_HELD
from discreet.trusted.ring_b.order_statistics import Distinct
from discreet.trusted.ring_b.relation_statements import rows_of, several_owners
from discreet.trusted.ring_b.relations import Attributed, bases, shape
from discreet.trusted.ring_c.coded import CodedRows, Marginal, arrays, build, counts, drop, true_cells
from discreet.trusted.ring_c.coding import Coding
from discreet.trusted.ring_c.vectors import VectorColumn, Vectors, decoded, select

LISTING_SECONDS = 10
"""How long it may take to list groups of public tables, which is free."""

MOST_FACTS = 1_000
"""How many facts about public tables are kept."""


@dataclass
class _ChildTables:
    """What one child process has: its tables, what stands beside them, and facts about the public ones."""

    process: EngineProcess | None = None
    locked: bool = False
    loaded: set[str] = field(default_factory=set)
    held: dict[str, list[AuxiliaryTable]] = field(default_factory=dict)
    built: dict[str, Sequence[str]] = field(default_factory=dict)
    facts: dict[str, list[Any]] = field(default_factory=dict)


class Loading(Protocol):
    """How an engine's child gets its tables. All of it is the owner's act; it raises DeclarationError."""

    process: EngineProcess | None

    def start(self) -> None:
        """Starts the child process, where none runs, without waiting for it."""
        ...

    def types(self, source: Source, /) -> dict[str, tuple[Type | None, Fraction | None]]:
        """As of `Owned`."""
        ...

    def check(self, table: Table, /) -> None:
        """As of `Owned`."""
        ...

    def together(self, tables: Iterable[Table], /) -> None:
        """As of `Owned`."""
        ...

    def load(self, table: Table, key: str, salt: bytes, /) -> str:
        """Makes the table that questions read, with positions under the key, and gives its hash under the salt."""
        ...

    def open(self, table: Table, key: str, fingerprint: str, /) -> bool:
        """Whether the rows with this hash are kept where they outlast the child: then they are loaded."""
        ...

    def advance(self, table: Table, key: str, salt: bytes, fingerprint: str, /) -> tuple[str, int] | None:
        """The hash of the rows as the source is now and how many files were read, where the rows with this hash are
        kept and nothing but these files was added to their source: then they are loaded."""
        ...

    def retain(self, table: Table, registered: Callable[[], str | None], /) -> None:
        """As of `Owned`."""
        ...

    def size(self, table: Table, fingerprint: str | None, /) -> int | None:
        """As of `Owned`."""
        ...

    def build(self, table: Table, wanted: AuxiliaryTable, /) -> Sequence[str]:
        """The statements that build what stands beside a table that is loaded: its own, or others that give the same
        rows."""
        ...

    def built(self, table: Table, /) -> Sequence[str]:
        """The names of what was built beside a table before it was loaded, and is there with it."""
        ...

    def call(self, *request: Any) -> Any:
        """What the child says to the owner."""
        ...

    def begin(self, process: EngineProcess, seconds: float, /) -> None:
        """Makes a child ready for tables without rows: of a `Twin`. Raises Failed, Lost and Stopped."""
        ...

    def close(self) -> None:
        """Ends the child."""
        ...


class Driver:
    """One child process with the declared tables: `discreet.engines.protocol.Owned`.

    After a child was killed the engine holds nothing: the door freezes the table until the owner acts.
    """

    def __init__(self, name: str, dialect: Dialect, loading: Loading, worker: str, limits: EngineLimits) -> None:
        self.name = name
        self._dialect, self._sources, self._worker, self._limits = dialect, loading, worker, limits
        self._statements = Statements(dialect)
        self._child = _ChildTables()
        self.starts = 0
        self._running = Lock()
        self.period: str | None = ""

    @property
    def _process(self) -> EngineProcess | None:
        return self._child.process

    def start(self) -> None:
        """Starts the child process, without waiting for it."""
        self._sources.start()
        if self._child.process is not self._sources.process:
            self._child = _ChildTables(self._sources.process)
            self.starts += 1

    @property
    def rows(self) -> object:
        """The child that has the tables: it loads them once, so what it has is of one snapshot. Another has others."""
        return self._process

    @property
    def shut(self) -> bool:
        """Whether a child runs that can load nothing more."""
        return self._child.locked and self._process is not None and self._process.usable

    def has(self, table: str) -> bool:
        """Whether the table is loaded in a child that still lives."""
        return self._has(table)

    def _has(self, table: str) -> bool:
        return self._process is not None and self._process.usable and table in self._child.loaded

    def _has_all(self, table: Table) -> bool:
        return all(self._has(base.name) for base in table.bases)

    def types(self, source: Source) -> dict[str, tuple[Type | None, Fraction | None]]:
        """The columns of a source that states types."""
        self.start()
        return self._sources.types(source)

    def check(self, table: Table) -> None:
        """Whether the source is there and has the declared columns. Reads no row. Raises DeclarationError."""
        self.start()
        self._sources.check(table)

    def together(self, tables: Iterable[Table]) -> None:
        """Begins to load these tables: what they read of one server is of one moment."""
        self.start()
        self._sources.together(tables)

    def load(self, table: Table, salt: bytes) -> str:
        """Makes the table that questions read. Raises DeclarationError where that cannot be done."""
        self.start()
        fingerprint = self._sources.load(table, positions(table, salt), salt)
        self._loaded(table)
        return fingerprint

    def _loaded(self, table: Table) -> None:
        self._child.loaded.add(table.name)
        self._child.held[table.name] = []
        self._child.built[table.name] = self._sources.built(table)

    def open(self, table: Table, salt: bytes, fingerprint: str) -> bool:
        """Whether the rows with this hash are kept: then they are loaded, and no source is read."""
        self.start()
        found = self._sources.open(table, positions(table, salt), fingerprint)
        if found:
            self._loaded(table)
        return found

    def advance(self, table: Table, salt: bytes, fingerprint: str) -> tuple[str, int] | None:
        """Loads a table as its source is now, of the rows with this hash and the files that were added since."""
        self.start()
        found = self._sources.advance(table, positions(table, salt), salt, fingerprint)
        if found is not None:
            self._loaded(table)
        return found

    def retain(self, table: Table, registered: Callable[[], str | None]) -> None:
        """Lets go of what is kept of a table's other rows."""
        self._sources.retain(table, registered)

    def size(self, table: Table, fingerprint: str | None) -> int | None:
        """The bytes that a table is kept in, 0 where that is still to be made; None in memory."""
        return self._sources.size(table, fingerprint)

    def first_seen(
        self,
        tables: Sequence[Table],
        anew: Collection[str],
        key: bytes,
        salt: bytes,
        before: Sequence[bytes],
        now: Sequence[bytes],
    ) -> tuple[dict[str, str], bytes]:
        """Leaves in these tables the rows of the present period's persons."""
        made = statements(tables, anew, key)
        facts = [self._dialect.text(load_statements(table, exp.to_table("none"), "")[1]) for table in tables]
        try:
            answer = self._sources.call("first_seen", list(before), list(now), made, facts, salt)
        except Failed:
            raise _too_many() from None
        (persons,) = answer["buffers"]
        return dict(zip((table.name for table in tables), answer["fingerprints"], strict=True)), bytes(persons)

    def assigning(
        self, table: Table, column: str, values: Sequence[str], key: bytes, lists: Sequence[tuple[Sequence[str], bytes]]
    ) -> bytes:
        """The persons who are in a part by a table's rows and on no list yet."""
        known = [persons for _, persons in lists]
        try:
            answer = self._sources.call("assigning", known, assigning(table, column, values, key))
        except Failed:
            raise _too_many() from None
        (found,) = answer["buffers"]
        return bytes(found)

    def keep_part(
        self,
        tables: Sequence[Table],
        of: tuple[Table, str, str],
        key: bytes,
        account: str,
        lists: Sequence[tuple[Sequence[str], bytes]],
    ) -> None:
        """Leaves in these tables the rows of one part's persons."""
        known = [persons for _, persons in lists]
        places = [list(names).index(account) if account in names else -1 for names, _ in lists]
        try:
            self._sources.call("part", known, places, keeping(tables, *of, key))
        except Failed:
            raise _too_many() from None

    def leads_to_several(self, relation: Attributed) -> bool:
        """Whether some value that rows refer to leads to several persons. For the owner, when tables are loaded."""
        return bool(self._sources.call("run", self._dialect.text(several_owners(relation)))["rows"])

    def lock(self) -> None:
        """Shuts the child off from files, network and settings. Called once every table is loaded."""
        if not self._child.locked:
            self._sources.call("lock")
            self._child.locked = True

    def run(self, plan: Root, table: Table) -> list[Row]:
        """The exact totals of each group that holds a row. For the door only.

        Raises EngineError where the engine failed, Stopped where the child died or had to be killed, Lost where it had
        ended before.
        """
        if self._process is None or not self._has_all(table):
            raise self._gone()
        made = self._statements.of(plan, table)
        asked = self._asked(made, Salt.of(secrets.token_hex(16)))
        try:
            with self._running:  # nobody drops what was built before it is read
                if made.beside is not None:
                    self._build(made.beside, table)
                rows = self._process.call(*asked, seconds=self._limits.seconds)["rows"]
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

    def _asked(self, made: SaltedStatement, salt: Salt) -> tuple[Any, ...]:
        """What the child is asked for a statement's rows."""
        return "run", made.salted(salt)

    def _gone(self) -> Exception:
        """What became of the tables since the question was paid for: the child ended by itself, or under another's
        request, or on the owner's word."""
        return Stopped() if self._process is not None and self._process.ended_alone else Lost()

    def _build(self, wanted: AuxiliaryTable, table: Table) -> None:
        """Builds what a plan reads beside the table, where a question needs it for the first time.

        What is kept follows from the questions that were asked, and the number of sets kept from a constant. The build
        has the limits of a question; where it fails the question fails, as it would where the plan itself failed."""
        assert self._process is not None
        if wanted.name in self._child.built[table.name]:
            return
        known = self._child.held[table.name]
        for one in known:
            if one.name == wanted.name:
                known.remove(one)
                known.append(one)
                return
        gone = known[: max(0, len(known) + 1 - MOST_HELD)]
        statements = [*(text for one in gone for text in one.drop), *self._sources.build(table, wanted)]
        self._process.call("build", statements, seconds=self._limits.seconds)
        self._child.held[table.name] = [*known[len(gone) :], wanted]

    def vectors(self, table: Table, wanted: Sequence[VectorColumn]) -> Vectors:
        """The rows of a table, person by person, in some of its columns. For the door only.

        Raises EngineError where the engine failed, Stopped where the child died or had to be killed, Lost where it had
        ended before.
        """
        if not self._has(table.name) or self._process is None:
            raise self._gone()
        sql = self._dialect.text(select(table, wanted))
        try:
            answer = self._process.call("vectors", sql, seconds=self._limits.seconds)
        except Failed:
            raise EngineError from None
        return decoded(wanted, answer)

    def hold_rows(self, table: Table) -> None:
        """Raises QuestionError where the rows of a table cannot be had as vectors."""
        try:
            self._dialect.text(select(table, ()))
        except Lacking:
            message = f"the rows of {table.name} have no order on this engine, so nothing is trained on them"
            fix = 'declare person, a column that tells whose each row is, or kind = "duckdb" under [engine]'
            raise QuestionError("engine", message, where="table", fix=fix) from None

    def code(self, coding: Coding, table: Table, *, evenly: bool = False) -> CodedRows:
        """Builds the rows of a table as cells, for the door only, which lets go of them with `uncode`."""
        rows = CodedRows(f"coded_{secrets.token_hex(8)}", table, coding, evenly)
        self._coded([build(rows, Salt.of(secrets.token_hex(16)), self._dialect)], table)
        return rows

    def uncode(self, rows: CodedRows) -> None:
        """Lets go of rows as cells."""
        if self._has_all(rows.table):
            self._coded([drop(rows)], rows.table)

    def _coded(self, statements: list[str], table: Table) -> None:
        if not self._has_all(table) or self._process is None:
            raise self._gone()
        try:
            self._process.call("build", statements, seconds=self._limits.seconds)
        except Failed:
            raise EngineError from None

    def marginals(self, rows: CodedRows, cliques: Sequence[Sequence[str]], *, evenly: bool = False) -> list[Marginal]:
        """How many rows are in each cell, or what they weigh, for each of these sets of columns; the axes are in the
        order of the names. For the door only."""
        shapes = [rows.coding.shape(clique) for clique in cliques]
        selects = [counts(rows, clique, self._dialect, evenly=evenly) for clique in cliques]
        return self._counted(selects, shapes, rows.table)

    def cells(self, coding: Coding, predicate: Expression, table: Table) -> Marginal:
        """1 for each cell of the coding for which the predicate is true, 0 for the others. Reads no row."""
        (found,) = self._counted([true_cells(coding, predicate, self._dialect)], [coding.sizes], table)
        return found

    def _counted(self, selects: Sequence[str], shapes: Sequence[tuple[int, ...]], table: Table) -> list[Marginal]:
        """Raises EngineError where the engine failed, Stopped where the child died or had to be killed,
        Lost where it had ended before."""
        if not self._has_all(table) or self._process is None:
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
                select = select.where(exp.Not(this=function("is_infinite", column.copy())))
        rows = self._public(relation, select.order_by(*(column.copy() for column in columns)).limit(most + 1))
        kinds = [column.type or Type.TEXT for column in known.columns]
        return [tuple(_key(value, kind) for value, kind in zip(row, kinds, strict=True)) for row in rows]

    def public_rows(self, relation: Relation, most: int) -> list[tuple[Value | None, ...]]:
        """All rows of a relation that is about nobody, sorted; at most `most` + 1. Errors as of `public_values`."""
        known = shape(relation)
        columns = [exp.column(f"c{place}") for place in range(len(known.columns))]
        select = exp.select(*columns).order_by(*(column.copy() for column in columns)).limit(most + 1)
        kinds = [column.type or Type.TEXT for column in known.columns]
        return [
            tuple(None if value is None else _key(value, kind) for value, kind in zip(row, kinds, strict=True))
            for row in self._public(relation, select)
        ]

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
        sizes = [exp.Max(this=function("length", exp.column(place))) for place, _ in texts]
        found = self._fact(relation, exp.select(*sizes))
        return {name: size or 0 for (_, name), size in zip(texts, found, strict=True)}

    def _fact(self, relation: Relation, select: exp.Select) -> list[Any]:
        """The first row of a SELECT from a public relation; kept, as questions come again."""
        text, facts = repr((relation, select)), self._child.facts
        if text not in facts:
            if len(facts) >= MOST_FACTS:
                facts.clear()
            facts[text] = next(iter(self._public(relation, select)), [])
        return facts[text]

    def _public(self, relation: Relation, select: exp.Select) -> list[list[Any]]:
        """The rows of a SELECT from a relation that is about nobody."""
        if shape(relation).private or not all(table.public for table in bases(relation)):
            raise ValueError("only public tables can be read outside the gate")
        sql = self._dialect.text(select.from_(rows_of(relation, lambda _: None).select.subquery("p")))
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
        select = statement(plan, table, Salt("a_fresh_factor", "a_fresh_shift", "a fresh salt"))
        return self._dialect.text(select, pretty=True)

    def trial(self, tables: Iterable[Table]) -> Twin:
        """Where statements on these tables are tried. What is made for the trial is what `run` runs."""
        return Twin(tables, self._worker, self._sources.begin, self._dialect, self._statements)

    def close(self) -> None:
        """Ends the child."""
        self._sources.close()
        self._child = _ChildTables()


def _too_many() -> DeclarationError:
    """What is said where persons that are known already do not fit beside those of the tables."""
    fault = Fault("engine", "persons and those who are known already do not fit", "raise engine.memory_gib")
    return DeclarationError([fault], code="memory")


STAND_SECONDS = 30
"""A server that does not say within this time that it has what was loaded is gone."""


class ServerDriver(Driver):
    """A server that has the tables, and a child that speaks to it. Once it was asked, it is not asked again for
    `stands` seconds."""

    stands: float

    def has(self, table: str) -> bool:
        """Whether the table is loaded, the connection still stands and the copy is as it was made. It is asked before a
        question has its price, so that a server that was started anew costs nobody anything."""
        return self._has(table) and self._process is not None and self._process.stands(self.stands, STAND_SECONDS)


def _key(value: Any, kind: Type) -> Any:
    """A group's key as the declaration would write it, None for NULL.

    Every value that a column of the type can hold, loaded or computed, gives a key, and two that the engine tells apart
    give two: whole numbers have 64 bits, texts are Unicode without lone surrogates, dates lie between the years 1 and
    9999 (`_typed`, and `ring_b.scalars` for what is computed), a number is a double, of which 0 and -0 are
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
