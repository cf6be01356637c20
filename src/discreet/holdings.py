"""The tables that a curator holds: their types, their rows in the engine, and the snapshots they are held against."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Self

from discreet.catalog import Declaration, Table
from discreet.catalog.model import EngineKind, Renews, writable
from discreet.catalog.sources import Stated, checked_types, of_table, together, told_alike, without_multiple
from discreet.engines import chosen
from discreet.engines.protocol import Owned
from discreet.errors import DeclarationError, EngineError, Fault, LedgerError, QuestionError
from discreet.ledger import Assigning, Ledger, Snapshot, Turn
from discreet.locks import Lock
from discreet.plan.planner import MAXIMUM_CELLS
from discreet.trusted.renewal.first_seen import secret
from discreet.trusted.ring_a.table import Column, Relation, SourceKind, Type, Value
from discreet.trusted.ring_b.belonging import declared
from discreet.trusted.ring_b.relations import Attributed, view


def typed(declaration: Declaration, engine: Owned) -> Declaration:
    """The declaration with the types that its sources state. Reads schemas, no rows."""
    tables = {}
    faults: list[Fault] = []
    errors: list[DeclarationError] = []
    for name, table in declaration.tables.items():
        tables[name] = table
        everything = table.public and not table.columns
        known = not everything and all(column.type is not None for column in table.columns)
        if known and not (
            table.source.kind not in (SourceKind.CSV, SourceKind.FRAME, SourceKind.SPARK)
            and any(map(_without_step, table.columns))
        ):
            continue
        try:
            found = engine.types(table.source)
        except DeclarationError as error:
            # a public table is missed only by who asks for it, and of others that are known loading tells
            if not table.public and not known:
                errors.append(of_table(table, error))
            continue
        columns = []
        if everything:  # of a public table that names no columns, all that have a type of ours
            listed = ((one, kind, step) for one, (kind, step) in found.items() if kind is not None and writable(one))
            columns = [Column(one, kind, step=step) for one, kind, step in listed]
        stated = {one.casefold(): kinds for one, kinds in found.items()}
        for column in table.columns:
            where = f"tables.{name}.columns.{column.name}"
            kind, step = stated.get(column.name.casefold(), (None, None))
            kind = column.type or kind
            if kind is None:
                if column.name.casefold() in stated:
                    fix = f"write its type: {', '.join(Type)}"
                    faults.append(Fault(where, "the source does not state its type", fix))
                else:
                    fix = "leave it out, or name one of: " + ", ".join(list(stated)[:20])
                    faults.append(Fault(where, "the source has no such column", fix))
            column = replace(column, type=kind)
            counted = replace(column, step=step) if _without_step(column) else column
            columns.append(column if without_multiple(counted) and column.step is None else counted)
        tables[name] = replace(table, columns=tuple(columns))
    if faults:
        errors.append(DeclarationError(faults))
    if errors:
        whole = [table for table in tables.values() if all(column.type for column in table.columns)]
        raise together([*errors, *unfit(whole, engine)], str(declaration.file or ""))
    checked = checked_types(replace(declaration, tables=tables))
    told_alike(checked, {name: _texts(table, engine) for name, table in _compared(checked).items()})
    return checked


def _compared(declaration: Declaration) -> dict[str, Table]:
    """The tables whose persons, or keys, are compared with those of another."""
    tables = {name: table for name, table in declaration.tables.items() if table.person is not None}
    return tables if len(tables) > 1 else {}


def _texts(table: Table, engine: Owned) -> Stated:
    """What the source states of columns that are declared as texts. Nothing of a CSV file, which holds texts alone, of
    a table in Python, whose types may depend on rows, or where the source cannot be read: loading tells."""
    names = [column.name for column in table.columns if column.type is Type.TEXT]
    if not names or table.source.kind in (SourceKind.CSV, SourceKind.FRAME):
        return {}
    try:
        stated = {one.casefold(): kind for one, kind in engine.types(table.source).items()}
    except DeclarationError:
        return {}
    found = {name: stated[name.casefold()] for name in names if name.casefold() in stated}
    if table.source.kind is SourceKind.POSTGRESQL:  # a numeric is written as it was stored, with any number of digits
        found = {name: one for name, one in found.items() if one != (Type.NUMBER, None)}
    return found


def _without_step(column: Column) -> bool:
    return column.type is Type.NUMBER and column.step is None


def unfit(tables: Iterable[Table], engine: Owned) -> list[DeclarationError]:
    """What is wrong with the sources of tables. Reads no row."""
    errors = []
    for table in tables:
        try:
            engine.check(table)
        except DeclarationError as error:
            errors.append(of_table(table, error))
    return errors


_PUBLIC_SECONDS = 20
"""The time limit of what is asked of public tables before a question is priced."""


@dataclass(frozen=True)
class HeldTable:
    """What the engine holds behind a table: the numbers of the snapshots (`Holdings.behind`), and the process that has
    these rows, and never others."""

    numbers: str
    rows: object


@dataclass(frozen=True)
class KeptTable:
    """Where a declared table is, for its owner's eyes: whether it `changed` depends on rows."""

    snapshot: int
    """The number of its last snapshot; 0 before it is first loaded."""
    bytes: int | None
    """The size of what it is kept in, 0 where that is still to be made; None in memory."""
    changed: bool = False
    """Whether its rows, or what is declared of them, are not those of the snapshot before."""
    anew: bool = False
    """Whether it got a new number."""
    read: bool = False
    """Whether its source was read; else it was opened from its file."""
    added: int | None = None
    """Of how many files, that were added to a source that is as it was otherwise; 0 where none were and nothing was
    read. None where the source was read whole, or not looked at."""
    loaded: bool = True
    """Not so of a public table whose source cannot be read."""
    server: bool = False
    """Whether it is kept on a server, not in a file."""

    @property
    def place(self) -> str:
        """What it is kept in, in words; nothing where it is in memory."""
        if self.bytes is None:
            return "a table on the server" if self.server else ""
        size = f" of {self.bytes / 1e6:,.1f} MB" if self.bytes else ""
        what = f"a schema{size} on the server" if self.server else f"a file{size}"
        return what if self.bytes else f"{what} that is still to be made"

    def __str__(self) -> str:
        if not self.loaded:
            return "not loaded: its source cannot be read"
        how = "changed" if self.changed else "as it was" if self.anew else "kept"
        now = f"snapshot {self.snapshot}" + (f", {how}" if self.snapshot > 1 or not self.anew else "")
        if not self.read and self.added is None:
            return f"{now}; opened from {self.place}"
        if not self.read:
            return f"{now}; its source was not touched since it was read into {self.place}"
        if self.added is not None:
            files = "1 file" if self.added == 1 else f"{self.added} files"
            return (
                f"{now}; {files} that its source has more {'was' if self.added == 1 else 'were'} read into {self.place}"
            )
        return f"{now}; its source was read" + (f" into {self.place}" if self.place else "")


class Refreshed(tuple[str, ...]):
    """The names of the tables that changed; `tables` says of each table what was done, and so does its text."""

    tables: Mapping[str, KeptTable]

    def __new__(cls, tables: Mapping[str, KeptTable]) -> Self:
        found = super().__new__(cls, (name for name, state in tables.items() if state.changed))
        found.tables = dict(tables)
        return found

    def __repr__(self) -> str:
        return "\n".join(f"{name}: {state}" for name, state in self.tables.items())


@dataclass(frozen=True)
class PersonsInParts:
    """By which `values` of which column of a table persons are in parts; `who` says in words who counts as one."""

    table: Table
    column: str
    values: Sequence[str]
    who: str


class Holdings:
    """The declared tables, loaded into an engine when they are first needed, each with the number of its snapshot."""

    def __init__(
        self,
        declaration: Declaration,
        engine: Owned,
        ledger: Ledger,
        renewal: Mapping[str, str] | None = None,
        *,
        assigns: PersonsInParts | None = None,
    ) -> None:
        """With `assigns`, persons are assigned to parts by whatever snapshot is new."""
        self._declaration = declaration
        self._engine = engine
        self._ledger = ledger
        self._renewal = renewal
        self._assigns = assigns
        self._part: tuple[str, str] | None = None
        self._together = [self]  # the whole, and all its parts
        seconds = min(declaration.limits.seconds, _PUBLIC_SECONDS)
        self._public = chosen.engine(replace(declaration.limits, seconds=seconds))
        self._loading = Lock()  # what a child finds half loaded is an engine of its parent: it loads anew
        self._snapshots: dict[str, Snapshot] = {}
        self._missing: dict[str, DeclarationError] = {}
        self._read: dict[str, int | None] = {}

    def of_part(self, part: str, engine: Owned) -> Holdings:
        """The same tables with the rows of a part's persons alone. Whenever these are loaded, so are those: an analyst
        who asks about a part causes no source to be read that whoever asks about all would not."""
        one = Holdings(self._declaration, engine, self._ledger, self._renewal, assigns=self._assigns)
        one._part, one._loading, one._together = (part, self._ledger.parts[part]), self._loading, self._together
        self._together.append(one)
        return one

    def held(self, table: Table) -> HeldTable:
        """The snapshots that the engine holds of the declared tables behind a table, loaded where they are not.

        Raises DeclarationError where a source cannot be read, or is not what it was."""
        with self._loading:
            self._load_together()
            self._present(table)
            numbers = " ".join(str(self._snapshots[name].number) for name in self.behind(table))
            return HeldTable(numbers, self._engine.rows)

    def numbers(self, table: Table) -> str | None:
        """The snapshots of a table as they stand in the ledger, without loading it; None where it has none yet."""
        found = [self._ledger.snapshot(name) for name in self.behind(table)]
        return None if None in found else " ".join(str(one.number) for one in found if one is not None)

    def behind(self, table: Table) -> list[str]:
        """The names of the declared tables whose snapshots say which rows are behind a table; of a part's rows also of
        the one that says who is in it, as other persons may be by each."""
        parts, names = self._declaration.budget.parts, [base.name for base in table.bases]
        return names if self._part is None or parts is None else [*names, parts.table]

    def _present(self, table: Table) -> None:
        """Raises DeclarationError where a public table behind this one could not be loaded."""
        for base in table.bases:
            if base.name in self._missing:
                raise self._missing[base.name]

    def public_values(self, relation: Relation) -> list[tuple[Value, ...]]:
        """The rows of a public relation, for groups that come from a public table."""
        return self._about_nobody(relation).public_values(relation, MAXIMUM_CELLS)

    def public_rows(self, table: Table) -> list[tuple[Any, ...]]:
        """All rows of a public table, as an answer holds values. Raises QuestionError where there are too many."""
        relation = declared(table, self._declaration.tables)
        rows = self._about_nobody(relation).public_rows(relation, MAXIMUM_CELLS)
        if len(rows) > MAXIMUM_CELLS:
            message = f"{table.name} has more than {MAXIMUM_CELLS:,} rows: it cannot be read beside answers"
            raise QuestionError("too-long", message, where="FROM", fix=f"join {table.name} where rows are aggregated")
        return rows

    def most(self, relation: Relation, names: tuple[str, ...]) -> int:
        """The largest number of rows of a public relation that share their values in these columns."""
        return self._about_nobody(relation).most(relation, names)

    def longest(self, relation: Relation) -> Mapping[str, int]:
        """The characters of the longest text in each column of a public relation."""
        return self._about_nobody(relation).longest(relation)

    def _about_nobody(self, relation: Relation) -> Owned:
        """An engine of its own with the public tables alone: what is asked of it before a price is known waits for no
        question about people, and whatever it does, their tables stay as they are."""
        self.load()
        self._present(view(relation))
        self.load_public()
        return self._public

    def load_public(self) -> None:
        """Loads the public tables into their own engine, where it does not hold them. Raises DeclarationError where a
        source cannot be read, or is not what it was: keys from there and rows about people are of one snapshot."""
        with self._loading:
            try:
                self._load_public()
            except DeclarationError:
                tables = self._declaration.tables.values()
                if all(self._current(table) for table in tables if table.name not in self._missing):
                    raise
                self.load()  # another process has taken new snapshots since
                self._load_public()

    def _load_public(self) -> None:
        tables = [one for one in self._declaration.tables.values() if one.public and one.name not in self._missing]
        if not all(self._public.has(table.name) for table in tables):
            self._public.close()
            salt = self._ledger.salt()
            rest = [one for one in tables if not self._public.open(one, salt, self._snapshots[one.name].fingerprint)]
            try:
                self._public.together(rest)
                read = dict[str, str]()
                for table in rest:
                    try:
                        read[table.name] = self._public.load(table, salt)
                    except DeclarationError as error:
                        raise of_table(table, error) from None
                _hold(self._snapshots, read, str(self._declaration.file or ""))
                self._public.lock()
            except DeclarationError:
                self._public.close()
                raise

    def close(self) -> None:
        """Ends the engine of the public tables."""
        self._public.close()

    def states(self) -> dict[str, KeptTable]:
        """Where the declared tables are: their last snapshots and their files. Reads no row."""
        found, server = {}, self._declaration.limits.kind is not EngineKind.HERE
        for name, table in self._declaration.tables.items():
            known = self._ledger.snapshot(name)
            size = self._engine.size(table, None if known is None else known.fingerprint)
            found[name] = KeptTable(0 if known is None else known.number, size, server=server)
        return found

    def refresh(self, anew: Collection[str]) -> Refreshed:
        """Loads these tables from their sources for their next snapshots, and says what was done."""
        before = self._ledger.tables()
        with self._loading:
            self._load_together(anew)
            read, missing = {**self._read}, {*self._missing}
        found = {}
        for name, state in self.states().items():
            known, now = before.get(name), self._ledger.snapshot(name)
            old = known if known is not None and known.number else None
            found[name] = replace(
                state,
                changed=old is not None and now is not None and old.fingerprint != now.fingerprint,
                anew=old is None or old.number != state.snapshot,
                read=name in read and read[name] != 0,
                added=read.get(name),
                loaded=name not in missing,
            )
        return Refreshed(found)

    def load(self, anew: Collection[str] = ()) -> None:
        """Loads every table that is not loaded, and holds it against its snapshot; those `anew` get a new one, all
        together or none. Parts are loaded after that: where one of them cannot be, the new snapshots are taken all the
        same, and nothing is answered until the next.

        Raises DeclarationError where a source cannot be read, or is not what it was."""
        with self._loading:
            self._load_together(anew)

    def _load_together(self, anew: Collection[str] = ()) -> None:
        """Loads the whole, and then every part of it, all or none: where a source is not what it was, no question is
        answered, whatever it is about. A part takes no snapshot of its own.

        Every question comes through here (`held`), so none is answered before all are of the same snapshots: where a
        refresh ended between two parts, whatever ended it, the next question goes on with those that are missing."""
        whole, *parts = self._together
        whole._load(anew)
        try:
            for part in parts:
                if not part._as(whole):
                    part._load()
        except (DeclarationError, EngineError):
            for one in self._together:
                one._engine.close()
            raise

    def _as(self, whole: Holdings) -> bool:
        """Whether a part's rows are loaded of the snapshots of the whole."""
        return (
            self._part is not None
            and self._engine.period == self._part[1]
            and all(
                name in self._missing or (self._engine.has(name) and self._snapshots.get(name) == known)
                for name, known in whole._snapshots.items()
            )
        )

    def _load(self, anew: Collection[str] = ()) -> None:
        tables = list(self._declaration.tables.values())
        asked = named = anew
        due = {*self._due()}
        anew = {*named, *due}
        turn = self._turn(begin=bool(named) or (bool(due) and not self._waiting()))
        if turn.begins is not None:
            named = anew = {table.name for table in tables}
        if (
            not anew
            and self._engine.period == turn.name
            and all(table.name in self._missing or self._current(table) for table in tables)
        ):
            return
        self._public.close()  # what it holds may be of an older snapshot
        if self._engine.shut or self._engine.period != turn.name:
            self._engine.close()
        self._engine.period = None  # until all is loaded, held against its snapshot, and the child shut off
        file = str(self._declaration.file or "")
        self._missing = {}
        salt, loaded = self._ledger.salt(), dict[str, str]()
        self._open((table for table in tables if table.name not in anew), loaded, salt, file)
        rest = [table for table in tables if table.name not in loaded]
        try:
            self._engine.together(rest)
        except DeclarationError as error:
            self._engine.close()
            raise together([error], file) from None
        if rest:  # another process may have made them while this one waited for it
            anew = {*named, *(due & {*self._due()})}
            self._open((table for table in rest if table.name not in anew), loaded, salt, file)
        opened, read = {*loaded}, dict[str, int | None]()
        for table in rest:
            if table.name in opened:
                continue
            try:
                self._check_ids(table)
                # by the clock all is read: whoever asks waits for it, and would see whether a source was touched
                known = self._registered(table.name) if table.name in named else None
                taken = self._engine.advance(table, salt, known) if known is not None else None
                loaded[table.name], read[table.name] = taken or (self._engine.load(table, salt), None)
            except DeclarationError as error:
                if table.public:
                    self._missing[table.name] = together([of_table(table, error)], file)
                    continue
                self._engine.close()  # with what was loaded so far: the next try starts anew
                raise together([of_table(table, error)], file) from None
        try:
            self._one_person_a_row(tables, file)
            turn = self._first_seen(tables, loaded, anew, turn, salt)
            self._register(loaded, anew, file, turn, self._assigning(anew, salt))
            self._keep_part(tables, salt)
            self._engine.lock()
            self._engine.period = turn.name
        except (DeclarationError, LedgerError) as error:
            self._engine.close()
            if error.code == "period":  # another process has begun it meanwhile
                self._load(asked)
                return
            raise
        self._read = read
        for table in tables:
            if table.name in loaded:
                self._engine.retain(table, partial(self._registered, table.name))

    def _open(self, tables: Iterable[Table], loaded: dict[str, str], salt: bytes, file: str) -> None:
        """Opens those tables whose last snapshot is kept."""
        for table in tables:
            try:
                known = self._registered(table.name)
                if known is not None and self._engine.open(table, salt, known):
                    loaded[table.name] = known
            except DeclarationError as error:
                self._engine.close()
                raise together([of_table(table, error)], file) from None

    def _registered(self, name: str) -> str | None:
        """The hash of a table's last snapshot."""
        known = self._ledger.snapshot(name)
        return None if known is None else known.fingerprint

    def _turn(self, *, begin: bool) -> Turn:
        """The period for which rows are loaded: a new one where the owner, or the declared clock, takes new snapshots,
        or none has begun yet."""
        if self._part is not None:
            return Turn(self._part[1])
        turn = self._ledger.turn()
        LedgerError.unless(turn.renewal == self._renewal, "renewal")  # another process may have changed it
        return replace(turn, begins=None) if turn.before and not begin else turn

    def _first_seen(
        self, tables: Sequence[Table], loaded: dict[str, str], anew: Collection[str], turn: Turn, salt: bytes
    ) -> Turn:
        """Where the budget renews for new persons: leaves the rows of the present period's in the tables, with their
        hashes in `loaded`, and says who is new."""
        renewal = turn.renewal
        if renewal is None or renewal["persons"] != Renews.NEW_PERSONS:
            return turn
        seen = self._ledger.seen()
        about = [table for table in tables if not table.public]
        before = [ids for name, ids in seen if name != turn.name]
        now = [ids for name, ids in seen if name == turn.name]
        found, persons = self._engine.first_seen(about, anew, secret(salt, renewal["who"]), salt, before, now)
        loaded |= found
        taken = any(table.name in anew for table in about)
        return replace(turn, lists=len(seen), persons=persons if taken else None)

    def _check_ids(self, table: Table) -> None:
        """Raises DeclarationError where persons are assigned to parts by texts that a source has otherwise: 1 of
        one snapshot may be 1.0 in the next, a person whom no list knows."""
        person = table.column(table.person or "")
        if self._assigns is None or table.public or person is None or person.type is not Type.TEXT:
            return
        stated = {name.casefold(): kind for name, (kind, _) in self._engine.types(table.source).items()}
        if stated.get(person.name.casefold(), Type.TEXT) not in (None, Type.TEXT):
            message = (
                "persons are assigned to parts by it, and the source has no texts there: it may write them otherwise"
            )
            where = f"tables.{table.name}.columns.{person.name}"
            raise DeclarationError([Fault(where, message, 'write type = "integer", or have texts in the source')])

    def _assigning(self, anew: Collection[str], salt: bytes) -> Assigning | None:
        """Who is in a part for the first time, where persons are assigned and the table that says it is taken anew, or
        nobody was assigned yet."""
        assigns = self._assigns
        if assigns is None:
            return None
        lists = self._ledger.assigned(assigns.who)
        if lists and assigns.table.name not in anew:
            return None
        accounts = [self._ledger.parts[value] for value in assigns.values]
        persons = self._engine.assigning(
            assigns.table, assigns.column, assigns.values, secret(salt, assigns.who), lists
        )
        return Assigning(assigns.who, accounts, persons, len(lists))

    def _keep_part(self, tables: Sequence[Table], salt: bytes) -> None:
        """Of a part, leaves the rows of its persons in the tables."""
        if self._assigns is None or self._part is None:
            return
        (value, account), assigns = self._part, self._assigns
        about = [table for table in tables if not table.public]
        of, lists = (assigns.table, assigns.column, value), self._ledger.assigned(assigns.who)
        self._engine.keep_part(about, of, secret(salt, assigns.who), account, lists)

    def _waiting(self) -> bool:
        """Whether a table waits for the owner's own refresh: then so does the next period."""
        return any(state.failures or state.frozen or state.suspended for state in self._ledger.tables().values())

    def _register(
        self, loaded: Mapping[str, str], anew: Collection[str], file: str, turn: Turn, assigning: Assigning | None
    ) -> None:
        """Holds fingerprints against the snapshots; then those `anew` get their next one."""
        known = self._ledger.register_snapshots({name: one for name, one in loaded.items() if name not in anew})
        try:
            _hold(known, loaded, file)
        except DeclarationError:
            # other persons are in the rows since another process listed them: they are loaded anew
            LedgerError.unless(turn.renewal is None or len(self._ledger.seen()) <= turn.lists, "period")
            raise
        fresh = {name: loaded[name] for name in anew if name in loaded}
        turning = turn if self._part is None else None
        known |= self._ledger.register_snapshots(fresh, anew=True, turning=turning, assigning=assigning)
        self._snapshots = known

    def _one_person_a_row(self, tables: Sequence[Table], file: str) -> None:
        """Holds foreign keys to persons against the rows: none leads to two, unless that is declared."""
        faults = []
        for table in tables:
            rows = declared(table, self._declaration.tables)
            if isinstance(rows, Attributed) and not table.shared and self._engine.leads_to_several(rows):
                message = f"a value of {'.'.join(table.path or ())} leads to several persons"
                fix = "write shared = true, if only each person's part in a row must be hidden, not the row itself"
                faults.append(Fault(f"tables.{table.name}.person", message, fix))
        if faults:
            raise DeclarationError(faults, code="shared", file=file)

    def _current(self, table: Table) -> bool:
        """Whether the engine holds the table's last snapshot: another process may have registered a new one."""
        known = self._ledger.snapshot(table.name)
        return known is not None and self._engine.has(table.name) and self._snapshots.get(table.name) == known

    def _due(self) -> list[str]:
        """The tables whose last snapshot is as old as declared, but for those in which a measurement failed, which is
        counted until the owner's own refresh, and public ones that could not be loaded.

        It follows from the clock and the ledger alone. Where the clock is set back, it waits until the snapshot's own
        time has come again."""
        every = self._declaration.limits.every
        if every is None or self._part is not None:
            return []
        states, now = self._ledger.tables(), datetime.now(UTC)
        return [
            name
            for name, state in states.items()
            if name in self._declaration.tables and name not in self._missing
            if state.number and not (state.failures or state.frozen or state.suspended)
            if not state.since or now >= datetime.fromisoformat(state.since) + timedelta(seconds=every)
        ]


def _hold(known: Mapping[str, Snapshot], loaded: Mapping[str, str], file: str) -> None:
    """Raises DeclarationError where the rows of a table that was loaded are not those of its snapshot."""
    faults = []
    for name, fingerprint in loaded.items():
        if name in known and known[name].fingerprint != fingerprint:
            way = f'write curator.refresh("{name}")'
            if file:
                way = f"run `discreet refresh {Path(file).name} {name}`, or {way} in Python"
            message = f"the source, or what is declared of it, differs from snapshot {known[name].number}"
            fix = f"{way}: it is the new snapshot, and the budget goes on"
            faults.append(Fault(f"tables.{name}", message, fix))
    if faults:
        raise DeclarationError(faults, code="changed", file=file)
