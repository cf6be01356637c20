"""What one who has logged in says, and hears: statements one by one, or prepared, with parameters and portals.

Nothing is charged but by a statement that is executed, once, at the price that the session has set or the owner has
declared: preparing, describing and explaining are free. A client that asks for a portal's columns and executes it at
once gets them from the answer; else they come of the plan.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from discreet.errors import Error
from discreet.explanation import BudgetState
from discreet.release import Release
from discreet.service.requests import RefusedRequest
from discreet.texts import visible
from discreet.wire import messages
from discreet.wire.copying import check, copy_rows
from discreet.wire.line import Line
from discreet.wire.messages import Body, said
from discreet.wire.refusals import Trouble, not_here, trouble
from discreet.wire.results import ResultColumn, StatementResult, described, of_no_type, of_plan, of_release, rows_of
from discreet.wire.settings import OURS, Settings
from discreet.wire.statements import Statement, Word, WordKind, beside, may_give_no_row, name_of, statements, unquoted
from discreet.wire.values import INT8, NUMERIC, OF_NAMES, TEXT, TEXTS, VOID, literal, oid_of, plain

MOST_PREPARED = 512
"""Prepared statements of a session; their texts together have at most MOST_TEXT characters and parameters."""

MOST_TEXT = 1 << 20
MOST_PORTALS = 32
MOST_CELLS = 2_000_000
"""Cells that the portals of a session hold."""

_log = logging.getLogger("discreet")
_MOST_SAVEPOINTS = 1_000
_TRANSACTIONS = {"BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT"}
_QUESTIONS = {"SELECT", "WITH", "TABLE", "VALUES", "(", "FROM"}
_NO_QUESTION = {"0A000", "42803", "53400", "P0001"}
"""Codes of what is refused as a question, though there are such columns: its form, and its price."""
_WRITING = {
    "INSERT",
    "UPDATE",
    "DELETE",
    "MERGE",
    "CREATE",
    "ALTER",
    "DROP",
    "TRUNCATE",
    "GRANT",
    "REVOKE",
    "CALL",
    "DO",
}


@dataclass(frozen=True)
class SessionFacts:
    """What a catalogue may know of a session."""

    user: str
    database: str
    settings: Mapping[str, str]
    process: int


class AskingAccount(Protocol):
    """What a session asks, as one account. `begun`: whether what was asked last may be charged by now."""

    begun: bool

    async def asked(self, said: Mapping[str, Any]) -> tuple[Release, Sequence[str]]: ...

    async def explained(self, said: Mapping[str, Any]) -> Any: ...

    async def columns_of(self, said: Mapping[str, Any]) -> Mapping[str, str]: ...

    async def balance(self) -> Mapping[str, Any]: ...

    def tables(self) -> Mapping[str, Mapping[str, Any]]: ...

    def problem_of(self, error: Exception) -> Mapping[str, Any]: ...

    async def catalog(
        self, text: str, parameters: Sequence[str | None], facts: SessionFacts
    ) -> StatementResult | None: ...

    async def catalog_described(
        self, text: str, facts: SessionFacts
    ) -> tuple[Sequence[int], Sequence[ResultColumn]] | None: ...

    async def probed(self, text: str, facts: SessionFacts) -> Sequence[tuple[str, int | None]] | None: ...


@dataclass
class Prepared:
    """A prepared statement, with the types of its parameters. Its words are found anew where they are needed: they take
    a hundred times the place of the text."""

    text: str
    types: tuple[int, ...]
    columns: Sequence[ResultColumn] | None = None
    intervals: bool = False
    """Whether the columns were described with those of intervals."""

    @property
    def statement(self) -> Statement:
        return _only(self.text)


@dataclass
class Portal:
    """A statement with its parameters; its result, once it was executed, and how many rows were given."""

    text: str
    types: tuple[int, ...] = ()
    values: tuple[bytes | None, ...] = ()
    formats: Sequence[int] = ()
    results: Sequence[int] = ()
    result: StatementResult | None = None
    given: int = 0
    cursor: bool = False
    hold: bool = False
    told: bool = False
    expected: Sequence[ResultColumn] | None = None
    """The columns that were described before it was executed."""

    @property
    def statement(self) -> Statement:
        return _only(self.text)


class WireSession:
    """One session, from its first statement to its end."""

    def __init__(self, line: Line, asking: AskingAccount, facts: SessionFacts, settings: Settings) -> None:
        self._line = line
        self._asking = asking
        self._facts = facts
        self.settings = settings
        self._status = "I"
        self._before: dict[str, str] | None = None
        self._local: dict[str, str] | None = None
        self._savepoints: list[tuple[str, dict[str, str]]] = []
        """What was set at each savepoint of the transaction, the latest last."""
        self._prepared: dict[str, Prepared] = {}
        self._portals: dict[str, Portal] = {}
        self._skipping = False
        self._pending: str | None = None
        self._running: asyncio.Task[Any] | None = None
        self._cancelled = asyncio.Event()
        self._listening: asyncio.Task[Any] | None = None
        self._ending = False
        self.idle: Callable[[bool], None] = lambda _: None
        """Is told when the session waits for its client, and when the client waits for it."""

    def cancel(self) -> None:
        """Whoever waits for an answer waits no longer. What is charged stays charged, and its answer stored."""
        if self._running is not None:
            self._cancelled.set()

    def end(self) -> None:
        """The session ends: at once where it waits for its client, else once it has answered."""
        self._ending = True
        if self._listening is not None:
            self._listening.cancel()

    async def run(self) -> None:
        """Until the client ends it. Raises Trouble on what no client of this protocol says, and Gone."""
        self._line.write(messages.ready("I"))
        await self._line.flush()
        while True:
            if self._ending:
                raise asyncio.CancelledError
            self.idle(True)
            self._listening = asyncio.current_task()
            kind, body = await self._line.message()
            self._listening = None
            self.idle(False)
            if kind == b"X":
                return
            await self._said(kind, body)
            if kind in (b"Q", b"S", b"H"):
                await self._line.flush()
            else:
                await self._line.send(b"")  # a client that never asks for it gets what has gathered
            await asyncio.sleep(0)  # others' messages come between

    async def _said(self, kind: bytes, body: Body) -> None:
        if self._skipping and kind != b"S":
            return
        try:
            if self._pending is not None and not (kind == b"E" and messages.execute(body)[0] == self._pending):
                await self._describe_pending()
            body.again()
            await self._heard(kind, body)
        except Trouble as error:
            if error.fatal:
                raise
            self._failed(error)
            if kind == b"Q":
                self._line.write(messages.ready(self._status))
            elif kind != b"S":
                self._skipping, self._pending = True, None

    def _failed(self, error: Trouble) -> None:
        self._line.write(said(b"E", "ERROR", error))
        if self._status == "T":
            self._status = "E"

    async def _heard(self, kind: bytes, body: Body) -> None:
        match kind:
            case b"Q":
                text = body.text()
                body.end()
                await self._query(text)
            case b"P":
                await self._parse(messages.parse(body))
            case b"B":
                await self._bind(messages.bind(body))
            case b"D":
                await self._describe(*messages.named(body))
            case b"E":
                await self._execute(*messages.execute(body))
            case b"C":
                what, name = messages.named(body)
                if what == "S":
                    self._prepared.pop(name, None)
                else:
                    self._portals.pop(name, None)
                self._line.write(messages.CLOSED)
            case b"S":
                body.end()
                self._skipping = False
                if self._status == "I":
                    self._end_portals()
                self._line.write(messages.ready(self._status))
            case b"H":
                body.end()
            case b"d" | b"c" | b"f":
                return  # what comes late of a COPY that we did not begin
            case _:
                raise Trouble("08P01", "this message is not known here", fatal=True)

    # simple

    async def _query(self, text: str) -> None:
        found = statements(text)
        if not found:
            self._line.write(messages.EMPTY)
        alone = self.settings.kept()
        try:
            for one in found:
                result = await self._perform(one, Portal(one.text))
                form: tuple[int, ...] = ()
                if one.begins("FETCH"):
                    form = self._fetched_formats(one)
                await self._written(result, form, describe=True)
                if one.words and one.words[0].upper in _TRANSACTIONS:
                    alone = self.settings.kept()
        except Trouble:
            if self._status == "I":  # the statements of one message are done together, or none is
                for name, value in self.settings.restore(alone):
                    self._line.write(messages.parameter(name, value))
            raise
        self._line.write(messages.ready(self._status))
        if self._status == "I":
            self._end_portals()

    async def _written(self, result: StatementResult, formats: Sequence[int], *, describe: bool) -> None:
        if result.columns is not None and result.copied is None:
            if describe:
                self._line.write(described(result.columns, formats))
            for place, row in enumerate(rows_of(result.columns, result.rows, formats)):
                await self._line.send(row)
                if place % 500 == 499:
                    await asyncio.sleep(0)
        await self._ended(result)

    async def _ended(self, result: StatementResult) -> None:
        """Sends what COPY sends, what the client is told, and that it is done."""
        if result.copied is not None:
            assert result.columns is not None
            self._line.write(messages.copy_out(len(result.columns), result.copy_format))
            for place, piece in enumerate(result.copied):
                await self._line.send(messages.message(b"d", piece))
                if place % 500 == 499:
                    await asyncio.sleep(0)
            self._line.write(messages.COPIED)
        self._notices(result.notices)
        for name, value in result.parameters:
            self._line.write(messages.parameter(name, value))
        self._line.write(messages.EMPTY if result.empty else messages.complete(result.tag))

    def _notices(self, notices: Sequence[str]) -> None:
        if not self.settings.quiet:
            for one in dict.fromkeys(notices):
                self._line.write(said(b"N", "NOTICE", Trouble("00000", visible(one))))

    # extended

    async def _parse(self, asked: messages.Parse) -> None:
        found = statements(asked.text)
        if len(found) > 1:
            raise Trouble("42601", "one statement is prepared at a time", hint="prepare them one after another")
        await self._keep_prepared(asked.name, found[0] if found else Statement("", ()), asked.types)
        self._line.write(messages.PARSED)

    async def _keep_prepared(self, name: str, one: Statement, named: Sequence[int]) -> None:
        """Prepares a statement under a name, with the types of its parameters as far as they are named. Raises
        Trouble."""
        if name in self._prepared:
            if name:
                raise Trouble("42P05", "there is a prepared statement of this name", hint="close it first")
            del self._prepared[""]
        held = sum(len(prepared.text) + len(prepared.types) for prepared in self._prepared.values())
        wanted = len(one.text) + max(one.parameters, len(named))
        if len(self._prepared) >= MOST_PREPARED or held + wanted > MOST_TEXT:
            raise Trouble("53400", "too many statements are prepared", hint="DEALLOCATE some of them")
        types = self._types(one, named)
        columns: Sequence[ResultColumn] | None = None
        if one.words and one.words[0].upper in _QUESTIONS and self._may_be_catalogue(one) and self._simple(one) is None:
            described = await self._asking.catalog_described(one.text, self._now())
            if described is not None:
                beside_them, columns = described
                known = [0 if given == 705 else given for given in named]
                known += [0] * (len(beside_them) - len(known))
                near = [*beside_them, *[TEXT] * (len(known) - len(beside_them))]
                types = tuple(given or other for given, other in zip(known, near, strict=True))
        self._prepared[name] = Prepared(one.text, types, columns)

    def _stand_ins(self, prepared: Prepared) -> tuple[bytes | None, ...]:
        """Values for parameters that are not known yet, such as a question might have."""
        near = beside(prepared.statement)
        found = []
        for place, oid in enumerate(prepared.types):
            kind, name = near.get(place + 1, ("", ""))
            columns = [table["columns"] for table in self._asking.tables().values()]
            facts = [one[name] for one in columns if name in one] if kind == "column" else []
            value = next(
                (one for fact in facts for one in (*(fact["values"] or ()), fact["min"]) if one is not None), ""
            )
            found.append(str(value).encode() if value != "" else _stand_in(oid))
        return tuple(found)

    def _types(self, statement: Statement, named: Sequence[int]) -> tuple[int, ...]:
        """The types of parameters: as the client names them, or as what they stand beside has them."""
        known: dict[str, set[str]] = {}
        for table in self._asking.tables().values():
            for name, facts in table["columns"].items():
                known.setdefault(name.lower(), set()).add(str(facts["type"]))
        near = beside(statement)
        types = []
        for number in range(1, max(statement.parameters, len(named)) + 1):
            given = named[number - 1] if number <= len(named) else 0
            if given in (0, 705):
                kind, name = near.get(number, ("", ""))
                columns = known.get(name, set())
                if kind == "type":
                    given = OF_NAMES.get(name, TEXT)
                elif kind == "rows":
                    given = INT8
                elif kind == "column" and len(columns) == 1:
                    (declared,) = columns
                    given = NUMERIC if declared == "number" else oid_of(declared)
                else:
                    given = TEXT
            types.append(given)
        return tuple(types)

    async def _bind(self, asked: messages.Bind) -> None:
        prepared = self._prepared.get(asked.statement)
        if prepared is None:
            raise Trouble("26000", "there is no prepared statement of this name", hint="prepare it again")
        if len(asked.values) != len(prepared.types):
            raise Trouble("08P01", f"the statement has {len(prepared.types)} parameters, and {len(asked.values)} came")
        if asked.portal and asked.portal in self._portals:
            raise Trouble("42P03", "there is a portal of this name", hint="close it first")
        self._portals.pop(asked.portal, None)
        if len(self._portals) >= MOST_PORTALS:
            raise Trouble("53400", "too many portals are open", hint="close some of them")
        formats = [messages.format_of(asked.formats, place) for place in range(len(asked.values))]
        made = Portal(prepared.text, prepared.types, tuple(asked.values), formats, asked.results)
        made.expected = await self._still(prepared)
        self._portals[asked.portal] = made
        self._line.write(messages.BOUND)

    async def _still(self, prepared: Prepared) -> Sequence[ResultColumn] | None:
        """The columns as they were described, if they were. Raises Trouble where the settings give others by now: the
        client would read them as those, and what is refused later may be charged."""
        if prepared.columns is not None and prepared.intervals != self.settings.intervals:
            now = await self._columns(Portal(prepared.text, prepared.types, self._stand_ins(prepared)))
            if [one.name for one in now or ()] != [one.name for one in prepared.columns]:
                raise Trouble("0A000", "cached plan must not change result type", hint="prepare it again")
        return prepared.columns

    async def _describe(self, what: str, name: str) -> None:
        if what == "P":
            portal = self._portal(name)
            if portal.result is not None:
                self._line.write(self._description(portal, portal.result))
            else:
                self._pending = name
            return
        prepared = self._prepared.get(name)
        if prepared is None:
            raise Trouble("26000", "there is no prepared statement of this name", hint="prepare it again")
        columns = prepared.columns
        if columns is None:
            columns = await self._columns(Portal(prepared.text, prepared.types, self._stand_ins(prepared)))
            prepared.columns, prepared.intervals = columns, self.settings.intervals
        self._line.write(messages.parameter_description(prepared.types))
        self._line.write(described(columns))

    async def _describe_pending(self) -> None:
        name, self._pending = self._pending, None
        assert name is not None
        portal = self._portal(name)
        portal.expected = await self._columns(portal)
        self._line.write(described(portal.expected, portal.results))

    def _description(self, portal: Portal, result: StatementResult) -> bytes:
        return described(None if result.copied is not None else result.columns, portal.results)

    async def _columns(self, portal: Portal) -> Sequence[ResultColumn] | None:
        """The columns that a statement will give. Nothing is charged."""
        statement = portal.statement
        first = statement.words[0].upper if statement.words else ""
        if first in _QUESTIONS:
            self._open_only()
            known = await self._catalogue(statement, portal)
            if known is not None:
                return known.columns
            said = self._said_of(statement, portal)
            columns = await self._probed(statement, said)
            return columns or await self._planned(said)
        if first == "SHOW":
            return (await self._show(statement)).columns
        if first == "EXPLAIN":
            return [ResultColumn("QUERY PLAN")]
        if first == "EXECUTE":
            return await self._columns(self._executed(statement))
        if first == "FETCH":
            return self._cursor(statement)[0].result.columns  # type: ignore[union-attr]
        return None

    async def _execute(self, name: str, most: int) -> None:
        describe, self._pending = self._pending == name, None
        portal = self._portal(name)
        first = portal.result is None
        if portal.result is None:
            statement = portal.statement
            portal.result = _as_described(await self._perform(statement, portal), portal.expected)
            if statement.begins("FETCH"):
                portal.results = self._fetched_formats(statement) or portal.results
        result = portal.result
        if describe:
            self._line.write(self._description(portal, result))
        if result.columns is None or result.copied is not None:
            if first:
                await self._ended(result)
            else:
                self._line.write(messages.complete(result.tag))
            return
        rest = result.rows[portal.given : portal.given + most if most else None]
        for place, row in enumerate(rows_of(result.columns, rest, portal.results)):
            await self._line.send(row)
            if place % 500 == 499:
                await asyncio.sleep(0)
        portal.given += len(rest)
        if portal.given < len(result.rows):
            self._hold_cells()
            if not portal.told:
                self._notices(result.notices)
                portal.told = True
            self._line.write(messages.SUSPENDED)
            return
        notices = () if portal.told else result.notices
        tag = f"SELECT {len(rest)}" if result.tag.startswith("SELECT") else result.tag
        portal.told = True
        await self._ended(replace(result, notices=notices, tag=tag))

    def _portal(self, name: str) -> Portal:
        if name not in self._portals:
            raise Trouble("34000", "there is no portal of this name", hint="bind it again")
        return self._portals[name]

    def _end_portals(self, *, all_: bool = False) -> None:
        """Portals end with what they were opened in; cursors that were declared WITH HOLD do not."""
        self._portals = {name: one for name, one in self._portals.items() if one.hold and not all_}
        self._pending = None

    def _hold_cells(self) -> None:
        """Raises Trouble where the portals hold more than a session may."""
        held = (one.result for one in self._portals.values() if one.result is not None and one.result.columns)
        if sum(len(one.rows) * len(one.columns or ()) for one in held) > MOST_CELLS:
            self._end_portals(all_=True)
            raise Trouble("53200", "the portals of this session hold too much", hint="fetch all rows at once")

    # what is done

    async def _perform(self, one: Statement, portal: Portal) -> StatementResult:
        """One statement, with its parameters. Raises Trouble."""
        first = one.words[0].upper if one.words else ""
        if not first:
            return StatementResult("", empty=not one.words)
        ending = first in ("COMMIT", "END", "ROLLBACK", "ABORT")
        if not ending:
            self._open_only()
        if first in _QUESTIONS:
            return await self._question(one, portal)
        if one.parameters and first not in ("EXPLAIN", "DECLARE", "COPY"):
            raise Trouble("42601", "a parameter cannot stand here")
        match first:
            case "EXPLAIN":
                return await self._explain(one, portal)
            case "SHOW":
                return await self._show(one)
            case "SET":
                return self._set(one)
            case "RESET":
                return self._reset(one)
            case _ if first in _TRANSACTIONS:
                return self._transaction(one, first)
            case "SAVEPOINT" | "RELEASE":
                return self._savepoint(one, first)
            case "DISCARD":
                if [word.upper for word in one.words[1:]] != ["ALL"]:
                    return StatementResult(
                        " ".join(word.upper for word in one.words[:2])
                    )  # nothing of the kind is kept
                self._prepared.clear()
                self._end_portals(all_=True)
                return StatementResult("DISCARD ALL", parameters=self.settings.reset())
            case "PREPARE":
                return await self._prepare(one)
            case "EXECUTE":
                made = self._executed(one)
                return await self._perform(made.statement, made)
            case "DEALLOCATE":
                return self._deallocate(one)
            case "DECLARE":
                return await self._declare(one, portal)
            case "FETCH" | "MOVE":
                return self._fetch(one, first)
            case "CLOSE":
                return self._close(one)
            case "COPY":
                return await self._copy(one, portal)
            case "LISTEN" | "UNLISTEN":
                return StatementResult(first)
        if first in _WRITING:
            raise Trouble("25006", "nothing can be written here", hint="ask a question: SELECT …")
        raise not_here("this statement")

    def _open_only(self) -> None:
        if self._status == "E":
            words = "the transaction has failed: what comes until its end is ignored"
            raise Trouble("25P02", words, hint="ROLLBACK")

    def _said_of(self, one: Statement, portal: Portal) -> dict[str, Any]:
        text = one.text
        if one.parameters:
            given = zip(
                portal.types, portal.values, portal.formats or [messages.TEXT] * len(portal.values), strict=True
            )
            literals = [literal(*parameter) for parameter in given]
            if len(literals) < one.parameters:
                raise Trouble("42P02", "a parameter has no value", hint="prepare the statement, and bind it")
            text = one.filled(literals)
        how = {} if self.settings.reuse else {"reuse": False}
        said = {"question": text, "dialect": "postgres", "default_price": False}
        return {**said, **self.settings.price(), **self.settings.part, **how}

    async def _question(self, one: Statement, portal: Portal) -> StatementResult:
        known = await self._catalogue(one, portal, execute=True)
        if known is not None:
            return known
        said = self._said_of(one, portal)
        if (probed := await self._probed(one, said)) is not None:
            return StatementResult("SELECT 0", probed)
        release, warnings = await self._waited(self._asking.asked(said))
        columns, rows = of_release(release, intervals=self.settings.intervals)
        if portal.expected is None and of_no_type(release):
            with contextlib.suppress(Trouble):  # what was answered is given all the same
                planned = await self._planned(said)
                same = [one.name for one in planned] == [one.name for one in columns]
                columns = list(planned) if same else columns
        paid = f"{release.charged} charged" if release.charged else f"nothing charged (price {release.cost})"
        notices = [f"{paid}; {release.left}", *release.notes, *release.bounds, *warnings]
        return StatementResult(f"SELECT {len(rows)}", columns, rows, notices)

    async def _planned(self, said: Mapping[str, Any]) -> Sequence[ResultColumn]:
        """The columns of a question, as its plan has them. Nothing is charged."""
        found = await self._waited(
            self._asking.columns_of({name: value for name, value in said.items() if name != "reuse"})
        )
        return of_plan(found, intervals=self.settings.intervals)

    async def _probed(self, one: Statement, said: Mapping[str, Any]) -> Sequence[ResultColumn] | None:
        """The columns of a statement that gives no row whatever the tables hold: programs look which columns there are.
        Nothing is charged, nothing is measured. What no question may ask has them too, such as `SELECT * … LIMIT 0`,
        where its columns are those of the tables. Gives None where it may give a row."""
        columns = await self._asking.probed(said["question"], self._now()) if may_give_no_row(one) else None
        if columns is None:
            return None
        try:
            return await self._planned(said if self.settings.price() else {**said, "epsilon": "1"})  # of any price
        except Trouble as error:
            if error.code not in _NO_QUESTION or not columns or any(kind is None for _, kind in columns):
                raise
        return [ResultColumn(name, kind) for name, kind in columns if kind is not None]

    async def _catalogue(self, one: Statement, portal: Portal, *, execute: bool = False) -> StatementResult | None:
        """What is answered without any row of anybody's: of the catalogue, and of the session. Where it is executed,
        what it sets is set."""
        if not self._may_be_catalogue(one):
            return None
        if (simple := self._simple(one)) is not None:
            return simple
        given = zip(portal.types, portal.values, portal.formats or [messages.TEXT] * len(portal.values), strict=True)
        found = await self._asking.catalog(one.text, [plain(*parameter) for parameter in given], self._now())
        if found is None or not (execute and found.parameters):
            return found
        told = [one for name, value in found.parameters for one in self.settings.set(name, value)]
        return replace(found, parameters=told)

    def _may_be_catalogue(self, one: Statement) -> bool:
        words = {name_of(word) for word in one.words if word.kind in (WordKind.WORD, WordKind.QUOTED)}
        ours = words & {name.lower() for name in self._asking.tables()}
        return not ours or any(word.startswith("pg_") or word == "information_schema" for word in words)

    def _now(self) -> SessionFacts:
        return replace(self._facts, settings=self.settings.kept())

    def _simple(self, one: Statement) -> StatementResult | None:
        """What drivers ask at once, and pools as often as they like."""
        said = " ".join(word.text for word in one.words).lower().replace("pg_catalog . ", "")
        known: dict[str, tuple[ResultColumn, Any]] = {
            "select 1": (ResultColumn("?column?", 23), 1),
            "select version ( )": (ResultColumn("version"), f"PostgreSQL {self.settings.get('server_version')}"),
            "select current_database ( )": (ResultColumn("current_database", 19), self._facts.database),
            "select pg_backend_pid ( )": (ResultColumn("pg_backend_pid", 23), self._facts.process),
            "select pg_advisory_unlock_all ( )": (ResultColumn("pg_advisory_unlock_all", VOID), ""),
        }
        if said not in known:
            return None
        column, value = known[said]
        return StatementResult("SELECT 1", [column], [[value]])

    async def _explain(self, one: Statement, portal: Portal) -> StatementResult:
        place, as_json = 1, False
        if one.words[1:2] and one.words[1].upper == "(" and "SELECT" not in [word.upper for word in one.words[2:4]]:
            inside, place = _list(one, 1)
            options = [[word.upper for word in option] for option in inside]
            if any("ANALYZE" in option and option[-1] not in ("OFF", "FALSE", "0") for option in options):
                raise Trouble("0A000", "EXPLAIN ANALYZE would ask the question", hint="write EXPLAIN, or ask it")
            as_json = ["FORMAT", "JSON"] in options
        while place < len(one.words) and one.words[place].upper in ("VERBOSE", "ANALYZE"):
            if one.words[place].upper == "ANALYZE":
                raise Trouble("0A000", "EXPLAIN ANALYZE would ask the question", hint="write EXPLAIN, or ask it")
            place += 1
        asked = self._said_of(one.part(place), portal)
        explained = await self._waited(self._asking.explained(asked))
        if as_json:
            written = json.dumps([explained.to_dict()], ensure_ascii=False, allow_nan=False)
            return StatementResult("EXPLAIN", [ResultColumn("QUERY PLAN", 114)], [[written]])
        return StatementResult(
            "EXPLAIN", [ResultColumn("QUERY PLAN")], [[line] for line in repr(explained).split("\n")]
        )

    async def _waited(self, work: Awaitable[Any]) -> Any:
        """What comes of work that is ours. Whoever cancels waits no longer. What has not begun ends with that; else the
        work goes on, and what it charges is charged, and its answer stored. Raises Trouble."""
        self._cancelled.clear()
        self._running = asyncio.ensure_future(work)
        assert self._running is not None
        running = self._running
        cancelled = asyncio.ensure_future(self._cancelled.wait())
        try:
            await asyncio.wait({running, cancelled}, return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                running.add_done_callback(_forgotten)
                if not self._asking.begun:
                    running.cancel()
                hint = "what had begun is charged: ask again, and its answer costs nothing more"
                raise Trouble("57014", "the statement was cancelled, as its user asked", hint=hint)
            return running.result()
        except (Error, RefusedRequest) as error:
            raise trouble(self._asking.problem_of(error)) from None
        except (Trouble, asyncio.CancelledError):
            raise
        except Exception as error:
            raise trouble(self._asking.problem_of(error)) from None
        finally:
            cancelled.cancel()
            self._running = None

    # settings

    async def _show(self, one: Statement) -> StatementResult:
        name = "".join(word.text for word in one.words[1:])
        low = " ".join(word.text for word in one.words[1:]).lower().replace(" . ", ".")
        if low == "discreet.budget":
            return _budget(await self._waited(self._asking.balance()))
        if low == "transaction isolation level":
            return StatementResult("SHOW", [ResultColumn("transaction_isolation")], [["serializable"]])
        value = self.settings.get(name)
        if value is not None:
            return StatementResult("SHOW", [ResultColumn(name)], [[value]])
        known = await self._asking.catalog(one.text, (), self._now())
        if known is None:
            raise Trouble("42704", "this setting is not known here", hint=f"SHOW discreet.budget, {', '.join(OURS)}")
        return replace(known, tag="SHOW")

    def _set(self, one: Statement) -> StatementResult:
        words = one.words[1:]
        local = bool(words) and words[0].upper == "LOCAL"
        if words and words[0].upper in ("LOCAL", "SESSION"):
            words = words[1:]
        said = [word.upper for word in words]
        if said[:1] in (["TRANSACTION"], ["CHARACTERISTICS"]):
            return StatementResult("SET")  # nothing is written, and an answer never changes
        if said[:2] == ["TIME", "ZONE"]:
            words = (Word(WordKind.WORD, "TimeZone", 0, 0), Word(WordKind.SIGN, "=", 0, 0), *words[2:])
        elif said[:1] == ["NAMES"]:
            words = (Word(WordKind.WORD, "client_encoding", 0, 0), Word(WordKind.SIGN, "=", 0, 0), *words[1:])
        if said[:1] in (["ROLE"], ["AUTHORIZATION"]):
            raise Trouble("42501", "nobody becomes somebody else here")
        at = next((place for place, word in enumerate(words) if word.upper in ("=", "TO")), None)
        if not at or at + 1 >= len(words):
            raise Trouble("42601", "this sets nothing", hint="write SET discreet.epsilon = 0.1")
        name = "".join(word.text for word in words[:at])
        values = [word for word in words[at + 1 :] if word.upper != ","]
        if len(values) == 1 and values[0].upper == "DEFAULT":
            value = None
        elif name.lower() == "discreet.part" and not _one(words[at + 1 :]):
            raise Trouble("22023", "discreet.part is one name", hint="write SET discreet.part = 'north'")
        elif name.lower().startswith("discreet."):
            value = "".join(unquoted(word) for word in values)
        else:
            value = ", ".join(unquoted(word) for word in values)
        before = self.settings.kept()
        told = self.settings.set(name, value)
        if local and self._status == "T" and self._local is None:
            self._local = before
        elif local and self._status != "T":
            told = self.settings.restore(before)
            if name.lower().startswith("discreet."):  # what is asked next would be asked without it
                raise Trouble("25P01", "SET LOCAL sets nothing outside a transaction", hint=f"SET {name.lower()} = …")
        return StatementResult("SET", parameters=told)

    def _reset(self, one: Statement) -> StatementResult:
        name = "".join(word.text for word in one.words[1:])
        if name.upper() == "ALL":
            return StatementResult("RESET", parameters=self.settings.reset())
        return StatementResult("RESET", parameters=self.settings.set(name, None))

    def _transaction(self, one: Statement, first: str) -> StatementResult:
        if first in ("BEGIN", "START"):
            if self._status == "I":
                self._before, self._local = self.settings.kept(), None
            self._status = "T"
            return StatementResult("BEGIN" if first == "BEGIN" else "START TRANSACTION")
        if first == "ROLLBACK" and "TO" in [word.upper for word in one.words]:
            if self._status == "I":
                raise Trouble("25P01", "there is no transaction")
            place = self._named_savepoint(one)
            self._status, self._savepoints = "T", self._savepoints[: place + 1]
            return StatementResult("ROLLBACK", parameters=self.settings.restore(self._savepoints[place][1]))
        told: list[tuple[str, str]] = []
        undone = first in ("ROLLBACK", "ABORT") or self._status == "E"
        before = self._before if undone else self._local
        if self._status != "I" and before is not None:
            told = self.settings.restore(before)
        self._status, self._before, self._local, self._savepoints = "I", None, None, []
        self._end_portals()
        return StatementResult("ROLLBACK" if undone else "COMMIT", parameters=told)

    def _savepoint(self, one: Statement, first: str) -> StatementResult:
        if self._status == "I":
            raise Trouble("25P01", "there is no transaction")
        if first == "RELEASE":
            del self._savepoints[self._named_savepoint(one) :]
            return StatementResult(first)
        if len(self._savepoints) >= _MOST_SAVEPOINTS:
            raise Trouble("54000", f"there are {_MOST_SAVEPOINTS} savepoints", hint="release some")
        self._savepoints.append((name_of(one.words[-1]), self.settings.kept()))
        return StatementResult(first)

    def _named_savepoint(self, one: Statement) -> int:
        """The place of the latest savepoint of this name. Raises Trouble where there is none."""
        name = name_of(one.words[-1])
        found = [place for place, (known, _) in enumerate(self._savepoints) if known == name]
        if not found:
            raise Trouble("3B001", "there is no savepoint of this name")
        return found[-1]

    # prepared in SQL

    async def _prepare(self, one: Statement) -> StatementResult:
        """PREPARE name (types) AS question."""
        fix = "write PREPARE name AS SELECT …"
        at, types = 2, []
        if one.words[2:3] and one.words[2].upper == "(":
            inside, at = _list(one, 2)
            types = [OF_NAMES.get(words[0].text.lower(), 0) if words else 0 for words in inside]
            if not all(types):
                raise Trouble("42704", "the type of a parameter is not known here", hint=fix)
        inner = one.part(at + 1)
        if len(one.words) < 2 or [word.upper for word in one.words[at : at + 1]] != ["AS"] or not inner.words:
            raise Trouble("42601", "this prepares nothing", hint=fix)
        if inner.words[0].upper not in _QUESTIONS:
            raise Trouble("0A000", "only a question is prepared so", hint=fix)
        await self._keep_prepared(name_of(one.words[1]), inner, types)
        return StatementResult("PREPARE")

    def _executed(self, one: Statement) -> Portal:
        """What EXECUTE name (values) asks."""
        prepared = self._prepared.get(name_of(one.words[1])) if len(one.words) > 1 else None
        if prepared is None:
            raise Trouble("26000", "there is no prepared statement of this name", hint="PREPARE it")
        if (prepared.statement.words or one.words)[0].upper not in _QUESTIONS:
            raise Trouble("0A000", "only a question is executed so", hint="PREPARE name AS SELECT …")
        inside, behind = _list(one, 2) if len(one.words) > 2 else ([], 2)
        values = tuple(_constant(words) for words in inside if words or len(inside) > 1)
        if behind != len(one.words) or len(values) != len(prepared.types):
            words = f"the statement has {len(prepared.types)} parameters, and {len(values)} came"
            raise Trouble("42601", words, hint="write EXECUTE name (1, 'a')")
        return Portal(prepared.text, prepared.types, values)

    # cursors

    def _deallocate(self, one: Statement) -> StatementResult:
        names = [word for word in one.words[1:] if word.upper != "PREPARE"]
        if len(names) == 1 and names[0].upper == "ALL":
            self._prepared.clear()
            return StatementResult("DEALLOCATE ALL")
        if len(names) != 1 or self._prepared.pop(name_of(names[0]), None) is None:
            raise Trouble("26000", "there is no prepared statement of this name")
        return StatementResult("DEALLOCATE")

    async def _declare(self, one: Statement, portal: Portal) -> StatementResult:
        said = [word.upper for word in one.words]
        if "FOR" not in said or "CURSOR" not in said[:8] or said.index("FOR") < 3:
            raise Trouble("42601", "this is no cursor", hint="write DECLARE name CURSOR FOR SELECT …")
        at = said.index("FOR")
        name, options = name_of(one.words[1]), said[2:at]
        hold = "HOLD" in options and "WITHOUT" not in options
        if self._status == "I" and not hold:
            raise Trouble("25P01", "a cursor lives in a transaction", hint="BEGIN, or declare it WITH HOLD")
        if name in self._portals:
            raise Trouble("42P03", "there is a cursor of this name", hint="CLOSE it first")
        if len(self._portals) >= MOST_PORTALS:
            raise Trouble("53400", "too many portals are open", hint="close some of them")
        result = await self._question(one.part(at + 1), portal)
        self._portals[name] = Portal(
            "", results=[messages.BINARY] if "BINARY" in options else (), result=result, cursor=True, hold=hold
        )
        self._hold_cells()
        return StatementResult("DECLARE CURSOR", notices=result.notices)

    def _cursor(self, one: Statement) -> tuple[Portal, list[str]]:
        portal = self._portals.get(name_of(one.words[-1]))
        if portal is None or portal.result is None or not portal.cursor:
            raise Trouble("34000", "there is no cursor of this name", hint="DECLARE it")
        return portal, [word.upper or word.text for word in one.words[1:-1] if word.upper not in ("FROM", "IN")]

    def _fetched_formats(self, one: Statement) -> tuple[int, ...]:
        return tuple(self._cursor(one)[0].results)

    def _fetch(self, one: Statement, first: str) -> StatementResult:
        portal, how = self._cursor(one)
        assert portal.result is not None
        rows = portal.result.rows
        alone = how[:1] == ["RELATIVE"]  # the last of so many, and no other
        how = [word for word in how if word not in ("FORWARD", "RELATIVE")] or ["1"]
        many = len(rows) + 1 if how == ["ALL"] else 1 if how == ["NEXT"] else _whole(how)
        behind = min(len(rows) + 1, portal.given + many)  # one more than there are: behind the last
        found = rows[max(0, behind - 1) : behind] if alone or not many else rows[portal.given : behind]
        portal.given = behind
        if first == "MOVE":
            return StatementResult(f"MOVE {len(found)}")
        return StatementResult(f"FETCH {len(found)}", portal.result.columns, found)

    def _close(self, one: Statement) -> StatementResult:
        if len(one.words) == 2 and one.words[1].upper == "ALL":
            self._end_portals(all_=True)
            return StatementResult("CLOSE CURSOR ALL")
        if len(one.words) != 2 or self._portals.pop(name_of(one.words[1]), None) is None:
            raise Trouble("34000", "there is no cursor of this name")
        return StatementResult("CLOSE CURSOR")

    async def _copy(self, one: Statement, portal: Portal) -> StatementResult:
        fix = "write COPY (SELECT …) TO STDOUT (FORMAT csv)"
        if len(one.words) < 5 or one.words[1].upper != "(":
            raise Trouble("0A000", "only what a question answers can be copied", hint=fix)
        _, behind = _list(one, 1)
        if [word.upper for word in one.words[behind : behind + 2]] != ["TO", "STDOUT"]:
            raise Trouble("0A000", "it can be copied to STDOUT alone", hint=fix)
        options: dict[str, str] = {}
        rest = one.words[behind + 2 :]
        rest = rest[1:] if rest and rest[0].upper == "WITH" else rest
        if rest and rest[0].upper == "(":
            for option in _list(Statement(one.text, tuple(rest)), 0)[0]:
                options[option[0].upper if option else ""] = unquoted(option[1]) if len(option) > 1 else "on"
        elif rest:
            options = {"FORMAT": rest[0].text}
        check(options)
        return copy_rows(await self._question(one.part(2, behind - 1), portal), options)


def _only(text: str) -> Statement:
    """The statement of a text that has one, or none."""
    return next(iter(statements(text)), Statement("", ()))


def _as_described(result: StatementResult, expected: Sequence[ResultColumn] | None) -> StatementResult:
    """A result with the types that were described before. Raises Trouble where its columns are others."""
    if expected is None or result.columns is None or result.copied is not None:
        return result
    if [one.name for one in expected] != [one.name for one in result.columns]:
        hint = "prepare it again: what is stored costs nothing"
        raise Trouble("0A000", "the answer's columns are other ones than were described", hint=hint)
    return replace(result, columns=expected)


def _list(one: Statement, at: int) -> tuple[list[list[Word]], int]:
    """What stands between the parenthesis at a place and the one that closes it, apart at commas; the place behind."""
    parts: list[list[Word]] = [[]]
    depth = 0
    for place in range(at, len(one.words)):
        word = one.words[place]
        depth += {"(": 1, ")": -1}.get(word.upper, 0)
        if not depth:
            return parts, place + 1
        if depth == 1 and word.upper == ",":
            parts.append([])
        elif place > at:
            parts[-1].append(word)
    raise Trouble("42601", "this is not SQL: a parenthesis is not closed")


def _one(words: Sequence[Word]) -> bool:
    """Whether words are one value."""
    return len(words) == 1 or (len(words) == 2 and words[0].upper == "-" and words[1].kind is WordKind.NUMBER)


def _constant(words: Sequence[Word]) -> bytes | None:
    """One value of EXECUTE. Raises Trouble where it is no constant."""
    cast = next((place for place, word in enumerate(words) if word.upper == "::"), len(words))
    match words[:cast]:
        case [one] if one.upper == "NULL":
            return None
        case [one] if one.kind in (WordKind.STRING, WordKind.NUMBER) or one.upper in ("TRUE", "FALSE"):
            return unquoted(one).encode("utf-8", "replace")
        case [sign, one] if sign.upper in ("-", "+") and one.kind is WordKind.NUMBER:
            return f"{sign.text}{one.text}".encode()
    raise Trouble("0A000", "the values of EXECUTE are constants here", hint="write EXECUTE name (1, 'a')")


def _whole(how: Sequence[str]) -> int:
    if len(how) != 1 or not how[0].isascii() or not how[0].isdigit() or len(how[0]) > 18:
        raise Trouble("0A000", "a cursor goes forward alone", hint="write FETCH FORWARD 100 FROM name")
    return int(how[0])


def _stand_in(oid: int) -> bytes | None:
    """A value of a type, for a question that is described before its parameters are known."""
    if oid in (1082, 1114, 1184):
        return b"2000-01-01"
    return b"" if oid in TEXTS else b"1"


def _budget(balance: Mapping[str, Any]) -> StatementResult:
    """What is left, a fact in each row."""
    rows = [["left", balance["room"]], ["used", f"{balance['used']:.4g} %"]]
    rows += [[f"whole {name}", str(value)] for name, value in balance["total"].items()]
    rows += [[f"largest price left for {name}", str(value)] for name, value in balance["prices"].items()]
    for length, facts in balance["windows"].items():
        rows += [[f"{length}: {name}", str(value)] for name, value in facts.items()]
    rows += [[f"part {name}", BudgetState.from_dict(one).of_part] for name, one in balance.get("parts", {}).items()]
    return StatementResult("SHOW", [ResultColumn("budget"), ResultColumn("is")], rows)


def _forgotten(task: asyncio.Future[Any]) -> None:
    """Nobody waits for it any more."""
    with contextlib.suppress(asyncio.CancelledError, Exception):
        task.result()
