"""The ledger with the owner's acts, its history for people, and refusals that say what would be admitted.

Whatever is written here goes through `Transaction.append`, which derives what follows from an entry: an act says what
the owner did, and no balance.
"""

from __future__ import annotations

import atexit
import logging
import secrets
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import apsw

from discreet.accounting.room import part_used
from discreet.errors import EngineError, LedgerError, QuestionError
from discreet.ledger.history import Entry, Verification, Written, answered_keys, entry, part_of, written_after
from discreet.ledger.older import leave_log
from discreet.ledger.refusal import asked_before, explained, refusal
from discreet.ledger.requests import RequestsLedger, tell_lasting
from discreet.ledger.words import check_text
from discreet.trusted.allowances import by_calendar
from discreet.trusted.ledger import chain
from discreet.trusted.ledger.accounts import (
    PART,
    TOTAL,
    Caps,
    Overdrawn,
    States,
    TableState,
    debited,
    promise,
    renewed,
)
from discreet.trusted.ledger.file import LedgerFile
from discreet.trusted.ledger.ledger import Reserved, Stored
from discreet.trusted.ledger.note import Noted
from discreet.trusted.ledger.periods import NEW_PERSONS, Period
from discreet.trusted.ledger.transaction import Transaction
from discreet.trusted.ledger_server.place import Place
from discreet.trusted.parts import assigned
from discreet.trusted.renewal import listed
from discreet.trusted.ring_a.loss import Loss
from discreet.trusted.ring_b.gdp_filter import CertifiedFilter as Filter

_PAGE = 500  # entries read at a time
_log = logging.getLogger("discreet")

Stop = tuple[str, str]
"""Whom the owner has frozen, TOTAL where it is everybody, and the table that this is about, EVERY_TABLE for all."""
EVERY_TABLE = ""


@dataclass(frozen=True)
class Unit:
    """Who counts as a person in a table, in words, and of how many rows of one its declaration speaks. `kind` is the
    type that the person's column is read as: of other types, other persons come of the same column."""

    column: str
    rows: int
    kind: str = ""

    @property
    def person(self) -> str:
        return f"{self.column} ({self.kind})" if self.kind else self.column


@dataclass(frozen=True)
class Snapshot:
    """How often a table was registered, and the fingerprint of the last time."""

    number: int
    fingerprint: str


@dataclass(frozen=True)
class Turn:
    """The name of the period that runs, and the one that `begins` with the next snapshots; None where it goes on."""

    before: str
    begins: Period | None = None
    lists: int = 0
    """How many lists of persons there are, of which none is missing in what was read."""
    renewal: Mapping[str, str] | None = None
    """How the budget renews."""
    persons: bytes | None = None
    """The keyed ids of persons who were first seen for the next snapshots; None where nobody is listed."""

    @property
    def name(self) -> str:
        """The name of the period for which rows are loaded then."""
        return self.before if self.begins is None else self.begins.name


@dataclass(frozen=True)
class Assigning:
    """The `persons` who are in a part by the next snapshot and were in none before, keyed ids with the places of their
    parts' `accounts`. `lists` is how many lists there are, of which none is missing in what was read; `who` says in
    words who counts as a person."""

    who: str
    accounts: Sequence[str]
    persons: bytes
    lists: int


def until(period: Period) -> str:
    """The first day of the next period of this length."""
    longest = {"day": 1, "week": 7, "month": 31, "year": 366}[period.length]
    return Period.of(period.length, (date.fromisoformat(period.start) + timedelta(days=longest)).isoformat()).start


@dataclass(frozen=True)
class Allowance:
    """What an account may spend in the present day or month, and the day on which the next one begins, in UTC."""

    account: Filter
    until: str


def _snapshot(states: States, table: str) -> Snapshot:
    """A table's snapshot, number 0 before the first."""
    known = states.table(table)
    return Snapshot(known.number, known.fingerprint)


def _names(states: States, kind: str) -> list[str]:
    """The names of all states of a kind, in order."""
    return sorted(name for its, name in states.texts if its == kind)


class Ledger(RequestsLedger):
    """The ledger in a file, or at a place on a server, made where there is none; None keeps it in memory. See
    `BudgetLedger`."""

    def __init__(self, at: Path | Place | None, *, lost: bool = False) -> None:
        if isinstance(at, Place):
            kept = at.storage(lost=lost)
            super().__init__(kept)
            if off := " and ".join(kept.cautions()):
                _log.warning("%s: %s is off, so a power cut may take back what was charged", kept.where, off)
        else:
            if at is not None:
                leave_log(at)
            super().__init__(LedgerFile(at, lost=lost))
        self._stops_read: tuple[int, frozenset[Stop]] = 0, frozenset()
        _OPEN.add(self)

    # what the owner does

    @classmethod
    def spend_unknown(cls, at: Path | Place, loss: Loss | None) -> Ledger:
        """The ledger in a place that lacks its last entries, or may lack them, charged for what these may have held.

        Privacy: the caller says what the questions that are not in the file cost together, as an upper bound; `loss`
        is debited from the whole budget and from each analyst's, since any of them may have asked, and whether or not
        it is admitted, since it has happened. Releases before and after compose with it as with any release. None says
        that nothing was asked. What was noted of the lost entries counts no more.
        """
        ledger = cls(at, lost=True)
        new = (ledger.renewal or {}).get("persons") == NEW_PERSONS
        LedgerError.unless(not new or loss is None, "lost persons")
        ledger.verify()
        with ledger._file.write() as transaction:
            charged = _names(transaction, "account") if loss is not None else []
            event = None if loss is None else loss.to_json()
            transaction.append("unknown", {"accounts": charged, "loss": event})
        ledger._file.accept()
        return ledger

    def register(
        self,
        caps: Mapping[str, Caps],
        declaration: str,
        *,
        units: Mapping[str, Unit] | None = None,
        raising: bool = False,
        persons: Mapping[str, Sequence[str]] = {},
        allowances: Mapping[str, Mapping[str, Caps]] = {},
        renewal: Mapping[str, str] | None = None,
        parts: Sequence[str] = (),
    ) -> bool:
        """Make accounts and set their caps: `RequestsLedger.register`. `units` says of each table about people who
        counts as a person in it; words of an earlier time did not say the type."""
        for wanted in (*caps.values(), *(one for lengths in allowances.values() for one in lengths.values())):
            wanted.filter()  # caps that no filter can have are met before anything is compared
        units = units or {}
        named = {table: (unit.person, unit.column) for table, unit in units.items()}
        try:
            persons = {**named, **persons}
            return super().register(
                caps,
                declaration,
                persons=persons,
                raising=raising,
                allowances=allowances,
                renewal=renewal,
                parts=parts,
            )
        except LedgerError as error:
            raise explained(error, {table: (unit.person, unit.rows) for table, unit in units.items()}) from None

    def register_snapshots(
        self,
        fingerprints: Mapping[str, str],
        *,
        anew: bool = False,
        turning: Turn | None = None,
        assigning: Assigning | None = None,
    ) -> dict[str, Snapshot]:
        """Record the next snapshot (numbered from 1) of each of these tables that has none, or of all that are `anew`,
        and thaw it: all in one transaction. Gives what then are their snapshots; all other tables stay as they are.

        Of two processes that open a new ledger at the same instant, the second gets the first one's snapshots. Whether
        a table gets a new number is for the owner to say, never for its fingerprint to decide: from "the same rows, and
        the old answer" against "a new draw" one person's change could be read for nothing. `turning` begins a period in
        the same transaction: LedgerError "period" where another process has begun one since it was asked for.
        `assigning` assigns persons to parts in it: LedgerError "period" where another process has done so since."""
        if not anew:
            with self._file.read() as transaction:
                known = {table: _snapshot(transaction, table) for table in fingerprints}
            if all(snapshot.number for snapshot in known.values()):
                return known
        with self._file.write() as transaction:
            if turning is not None:
                LedgerError.unless(transaction.period == turning.before, "period")
                LedgerError.unless(turning.persons is None or listed.lists(transaction) == turning.lists, "period")
                if turning.begins is not None:
                    if turning.before:
                        tell_lasting(transaction)
                    transaction.append("period", vars(turning.begins))
                if turning.persons is not None:
                    # some bytes of chance before them: nobody sees by its hash that a list is empty
                    persons = secrets.token_bytes(listed.ID - 1) + turning.persons
                    said = {"period": transaction.period, "answer": chain.digest(persons)}
                    transaction.append("persons", said, persons)
            if assigning is not None:
                LedgerError.unless(assigned.lists(transaction) == assigning.lists, "period")
                persons = secrets.token_bytes(assigned.PERSON - 1) + assigning.persons
                who, accounts = assigning.who, [*assigning.accounts]
                transaction.append(
                    "assigned", {"who": who, "accounts": accounts, "answer": chain.digest(persons)}, persons
                )
            for table, fingerprint in fingerprints.items():
                number = transaction.table(table).number
                if anew or not number:
                    fields = {"table": table, "number": number + 1, "fingerprint": fingerprint, "since": chain.now()}
                    transaction.append("snapshot", fields)
            return {table: _snapshot(transaction, table) for table in fingerprints}

    def lift(self, analyst: str, of: Sequence[str] = (), **said: object) -> tuple[str, ...]:
        """Let an analyst who was suspended ask again, TOTAL for those who name none, about these tables or about all.
        Gives the tables. What failed stays counted, and what is frozen stays frozen until its next snapshot. `said` is
        who lifts, and why."""
        self.settle()
        with self._file.write() as transaction:
            names = [name for name in _names(transaction, "table") if not of or name in of]
            tables = [name for name in names if analyst in transaction.table(name).suspended]
            if tables:
                transaction.append("lift", {"analyst": analyst, "tables": tables, **said})
            return tuple(tables)

    def stop(self, analyst: str, tables: Sequence[str] = (), **said: object) -> tuple[str, ...]:
        """Let nobody measure anything as this analyst, TOTAL for everybody, until `go`; with `tables`, nothing that
        reads one of them. Gives those for which that is new, EVERY_TABLE for all. An owner's word, on which no promise
        of privacy rests."""
        return self._stopping("freeze", analyst, tables, said)

    def go(self, analyst: str, tables: Sequence[str] = (), **said: object) -> tuple[str, ...]:
        """Take that back. What was said of single tables is taken back by their names alone."""
        return self._stopping("thaw", analyst, tables, said)

    def _stopping(self, act: str, analyst: str, tables: Sequence[str], said: Mapping[str, object]) -> tuple[str, ...]:
        check_text(analyst, *tables)
        with self._file.write() as transaction:
            stops = self._stops(transaction)
            wanted = tables or [EVERY_TABLE]
            changed = tuple(one for one in wanted if ((analyst, one) in stops) != (act == "freeze"))
            if changed:
                named = {"tables": list(changed)} if tables else {}
                transaction.append("service", {"act": act, "facts": {"analyst": analyst, **named, **said}})
            return changed

    @property
    def stopped(self) -> frozenset[Stop]:
        """Whom the owner has frozen, and about which tables."""
        with self._file.read() as transaction:
            return self._stops(transaction)

    def _stops(self, transaction: Transaction) -> frozenset[Stop]:
        """The same, by the acts behind the entry up to which they were read before."""
        after, stops = self._stops_read
        rows = transaction.connection.execute(
            f"{chain.SELECT} WHERE e.kind = 'service' AND e.seq > $1 ORDER BY e.seq", (after,)
        ).fetchall()
        for body in (chain.read(row).body for row in rows):
            if body["kind"] == "service" and body["act"] in ("freeze", "thaw"):
                facts = body["facts"]
                named = {(facts["analyst"], table) for table in facts.get("tables", [EVERY_TABLE])}
                stops = stops | named if body["act"] == "freeze" else stops - named
        self._stops_read = transaction.head.seq, stops
        return stops

    def check(self, tables: Sequence[str], account: str) -> None:
        """As of `BudgetLedger`. Raises EngineError, too, where the owner has frozen whoever asks, or everybody, for all
        tables or for one of these."""
        super().check(tables, account)
        self.hold_open(tables, account)

    def hold_open(self, tables: Sequence[str], account: str) -> None:
        """Raises EngineError where the owner has frozen whoever asks, or everybody, for all tables or for one of these:
        nothing is measured then, and nothing that was released is given again."""
        stopped = self.stopped
        for table in (EVERY_TABLE, *tables):
            for name in (TOTAL, account):
                if (name, table) in stopped:
                    raise EngineError(stopped=name, table=table)

    def enter(self, act: str, **facts: object) -> None:
        """Enter what the owner did to the service's accounts, which changes no balance: "account" (made), "end"
        (of one), "token" (made), "revoke"; or what the service does, "serve". Never a token itself."""
        with self._file.write() as transaction:
            transaction.append("service", {"act": act, "facts": facts})

    def acts(self) -> list[tuple[str, dict[str, Any]]]:
        """What the owner did to the service's accounts, in order, as `enter` took it; each entry verified."""
        with self._file.read() as transaction:
            rows = transaction.connection.execute(f"{chain.SELECT} WHERE e.kind = 'service' ORDER BY e.seq").fetchall()
            bodies = [chain.read(row).body for row in rows]
        return [(body["act"], body["facts"]) for body in bodies if body["kind"] == "service"]

    def renew(self) -> Mapping[str, str]:
        """Give accounts that began with the filters of an earlier version the present ones: what each then promises.

        The owner's act, and not free: what is asked from then on is admitted by other filters, so for such an account
        the δ that they share is promised once more, (ε, 2δ − keys_delta). Everything released so far is charged anew.
        Accounts of which nothing would be left stay as they are. Empty where there is nothing to renew.
        """
        with self._file.write() as transaction:
            names = _names(transaction, "account")
            found = {name: renewed(transaction.account(name), transaction.losses(name)) for name in names}
            promises = {name: promise(account) for name, account in found.items() if account is not None}
            if promises:
                transaction.append("renew", {"promises": sorted(promises.items())})
            return promises

    # what holds now

    @property
    def head(self) -> str:
        """The hash of the last entry. Noted elsewhere, it shows later whether the history was kept."""
        return self.last.hash.hex()

    @property
    def last(self) -> Noted:
        """The number of the last entry, and its hash."""
        with self._file.read() as transaction:
            return Noted(transaction.head.seq, transaction.head.hash)

    def hold_writable(self) -> None:
        """Raises LedgerError where nobody could be charged: the ledger is not what it was, or another has it."""
        with self._file.write():
            pass

    def copy(self, place: Path) -> Noted:
        """Writes the ledger as it is to an empty file, in one transaction; others may read meanwhile, and write after
        it. Gives its last entry. The copy has no note beside it: it answers nothing."""
        with self._file.read() as transaction:
            head = Noted(transaction.head.seq, transaction.head.hash)
            connection = transaction.connection
            if not isinstance(connection, apsw.Connection):
                raise LedgerError.of("server file")
            copied(connection, place)
        return head

    def filter(self, account: str) -> Filter:
        """An account's caps and what was spent of them. Raises LedgerError "account" where there is none."""
        with self._file.read() as transaction:
            return transaction.account(account)

    @property
    def running(self) -> Period | None:
        """The period that runs; None where the budget never renewed."""
        with self._file.read() as transaction:
            state = transaction.state("period", "")
            return None if state is None else Period(state["length"], state["start"])

    @property
    def renewal(self) -> dict[str, str] | None:
        """How long a period is, and for which persons the budget renews with it; None where it does not."""
        with self._file.read() as transaction:
            found: dict[str, str] | None = transaction.state("renewal", "")
            return found

    def turn(self) -> Turn:
        """The period that runs, and the one that the owner may begin now: by the declared length and the clock, after
        the one that runs."""
        with self._file.read() as transaction:
            state, renewal = transaction.state("period", ""), transaction.state("renewal", "")
            if renewal is None:
                return Turn(transaction.period)
            begins = Period.of(renewal["length"], chain.now()[:10])
            later = state is None or begins.start > state["start"]
            return Turn(transaction.period, begins if later else None, renewal=renewal)

    def seen(self) -> list[tuple[str, bytes]]:
        """The keyed ids of all persons who were seen, by the names of the periods that they are in."""
        with self._file.read() as transaction:
            return listed.seen(transaction)

    @property
    def parts(self) -> dict[str, str]:
        """The accounts of parts, by the parts' names."""
        with self._file.read() as transaction:
            return {name.removeprefix(PART): name for name in transaction.parts}

    def assigned(self, who: str) -> list[tuple[list[str], bytes]]:
        """All persons who are in a part, list by list (`trusted.parts.assigned`). Raises LedgerError "parts of others"
        where these are not the same persons."""
        with self._file.read() as transaction:
            LedgerError.unless(assigned.who(transaction) in (None, who), "parts of others")
            return assigned.persons(transaction)

    def whole(self, part: str | None = None) -> Filter:
        """What whoever asks about one part is held against beside his own account, or about all: of several parts the
        one with the least left. Raises LedgerError "account" where there is none."""
        return self.filter(self.fullest if part is None else part)

    @property
    def fullest(self) -> str:
        """The account with the least left of those that a question about all is charged to beside an analyst's own."""
        with self._file.read() as transaction:
            names = [TOTAL, *transaction.parts]
            return max(names, key=lambda name: part_used(transaction.account(name))) if len(names) > 1 else TOTAL

    def allowances(self, account: str) -> dict[str, Allowance]:
        """What an account may spend in the present windows, by their lengths ("day", "month")."""
        with self._file.read() as transaction:
            day = by_calendar.day(transaction, account)
            return {
                length: Allowance(
                    Caps.of(known).filter() if by_calendar.renewing(length, last, day) else known,
                    until(Period.of(length, day)),
                )
                for length, (known, last) in by_calendar.allowed(transaction, account).items()
            }

    def salt(self) -> bytes:
        """32 secret bytes, drawn when the ledger was made."""
        with self._file.read() as transaction:
            return bytes.fromhex(transaction.entry(1, kind="open").body["salt"])

    def snapshot(self, table: str) -> Snapshot | None:
        """The last registered snapshot of a table."""
        with self._file.read() as transaction:
            snapshot = _snapshot(transaction, table)
            return snapshot if snapshot.number else None

    def tables(self) -> dict[str, TableState]:
        """Every table that was registered: its snapshot, what failed in it, who is suspended on it."""
        with self._file.read() as transaction:
            return {name: transaction.table(name) for name in _names(transaction, "table")}

    # questions

    def hold_room(self, loss: Loss, account: str, keep: Loss | None, part: str | None = None) -> None:
        """Raises BudgetError where the whole budget, or the `part` whose account is named, or an account does not admit
        a loss, or not with what is kept of the whole. Nothing is reserved: another process may be faster."""
        total = self.whole(part)
        whole = [TOTAL, *self.parts.values()] if part is None else [part]
        for name in dict.fromkeys((*whole, *([] if account == TOTAL else [account]))):
            kept = keep if name in whole else None
            own = self.filter(name)
            if not (own if kept is None else own.after(kept)).admits(loss):
                raise refusal(name, own, loss, total, kept)
        for length, allowed in self.allowances(account).items():
            if not allowed.account.admits(loss):
                raise refusal(account, allowed.account, loss, total, window=length, until=allowed.until)

    def reserve(
        self,
        loss: Loss,
        *,
        question: str,
        key: str,
        account: str = TOTAL,
        request: str | None = None,
        tables: Sequence[str] = (),
        limit: int = 1,
        keep: Loss | None = None,
        period: str | None = "",
        answer: bytes | None = None,
    ) -> Reserved | Stored:
        """Charge a release before it is made, or give the answer that is stored for it: `BudgetLedger.reserve`. Raises
        QuestionError, too, where something is no text or too long to keep."""
        check_text(question, key, account, *(() if request is None else (request,)))
        try:
            return super().reserve(
                loss,
                question=question,
                key=key,
                account=account,
                request=request,
                tables=tables,
                limit=limit,
                keep=keep,
                period=period,
                answer=answer,
            )
        except QuestionError as error:
            known = self.requested(account, request) if error.code == "request" else None
            if known is None or known[1] != question:
                raise
            raise asked_before() from None
        except Overdrawn as error:
            window = self.allowances(account).get(error.window)  # the owner may have taken the cap away by now
            until = "" if window is None else window.until
            raise refusal(
                error.name, error.account, loss, error.whole, error.keep, window=error.window, until=until
            ) from None

    def answer(self, key: str, account: str, reserve_id: int | None = None) -> bytes | None:
        """The answer of this key, as `reserve` would give it to `account`; or that of one reserve of it."""
        with self._file.read() as transaction:
            found = transaction.answer(key, transaction.own(account), reserve_id)
            return None if found is None else found[0]

    def answered(
        self, prefix: str, account: str, request: str | None, count: int, *, theirs: bool = False
    ) -> list[tuple[str, str]]:
        """Keys that begin with `prefix`, and questions, that have an answer which costs `account` nothing more, the
        oldest first. Where `request` was used before: only what it belongs to. With `theirs`, of an analyst without an
        account of his own only what was measured for him. Raises QuestionError on no text."""
        check_text(prefix, account, *(() if request is None else (request,)))
        with self._file.read() as transaction:
            known = transaction.request(account, request)
            prefix = prefix if known is None else str(known.body["key"])
            own = transaction.own(account)
            asker = account if theirs and own is None and account != TOTAL else None
            return answered_keys(transaction, prefix, own, count, asker)

    def written_after(self, after: int) -> tuple[int, list[Written]]:
        """The last entry, and those behind `after` that an index of stored answers is made of."""
        with self._file.read() as transaction:
            return transaction.head.seq, written_after(transaction, after)

    def requested(self, account: str, request: str | None) -> tuple[str, str] | None:
        """The key and the question of what a request of an analyst belongs to; None where it is new."""
        check_text(account, *(() if request is None else (request,)))
        with self._file.read() as transaction:
            known = transaction.request(account, request)
            return None if known is None else (str(known.body["key"]), str(known.body["question"]))

    def name_again(self, account: str, request: str, name: str, question: str) -> None:
        """Keeps that what a request of an analyst belongs to has this name too, for this question, which is computed
        from it. A name that is known stays what it is. Nothing is charged: it is a repeat of what was paid."""
        check_text(account, request, name, question)
        with self._file.write() as transaction:
            known = transaction.request(account, request)
            if known is None or transaction.request(account, name) is not None:
                return
            again = {"analyst": account, "question": question, "key": known.body["key"], "request": name}
            transaction.append("repeat", again | {"reserve": known.body["reserve"], "computed": True})

    def has_account(self, analyst: str) -> bool:
        """Whether the analyst has an account beside the whole budget's."""
        with self._file.read() as transaction:
            return transaction.own(analyst) is not None

    def question(self, reserve_id: int, key: str) -> str:
        """The question of a reserve of this key, verified."""
        with self._file.read() as transaction:
            return str(transaction.entry(reserve_id, kind="reserve", key=key, reserve=reserve_id).body["question"])

    # history

    def verify(self, expect_head: str | None = None) -> Verification:
        """What a `replay` finds, for people. `expect_head` is a head as it was noted."""
        replay = self.replay(None if expect_head is None else expect_head.strip().lower())
        unanswered = sum(not answered for answered in replay.answered.values())
        accounts = {name: replay.account(name) for name in _names(replay, "account")}
        return Verification(replay.head.seq, replay.head.hash.hex(), unanswered, accounts)

    def open_reserves(self) -> list[Entry]:
        """The reserves of measurements that run now, here or in another process."""
        self.settle()
        with self._file.read() as transaction:
            open_ = [seq for seq in sorted(self._read[1]) if not transaction.ended(seq)]
            return [entry(transaction.entry(seq), committed=False) for seq in open_]

    def since(self, moment: str) -> Iterator[Entry]:
        """Every entry from a moment on, as the clock was then: `entries` behind the last one before it."""
        with self._file.read() as transaction:
            low, high = 0, transaction.head.seq
            while low < high:  # entries are in order of time, or nearly: a clock may have been set back
                middle = (low + high + 1) // 2
                early = transaction.entry(middle).body["time"] < moment
                low, high = (middle, high) if early else (low, middle - 1)
        return self.entries(low)

    def part_of(self, one: Entry) -> str | None:
        """The part that a question was about, whose budget alone paid; None where it was about all."""
        if one.kind == "reserve":
            return part_of(one.charged)
        if one.reserve_id is None:
            return None
        with self._file.read() as transaction:
            return next((part_of(debited(it.body)) for it in transaction.entries(one.reserve_id - 1, 1)), None)

    def entries(self, after: int = 0) -> Iterator[Entry]:
        """Every entry behind this one, in order, each verified as it is read."""
        seq = after
        while True:
            with self._file.read() as transaction:
                page = [
                    entry(record, record.body["kind"] == "reserve" and transaction.committed(record.seq))
                    for record in transaction.entries(seq, _PAGE)
                ]
            if not page:
                return
            yield from page
            seq = page[-1].seq


def copied(connection: apsw.Connection, place: Path) -> None:
    """Writes an open database to an empty file, which is on the disk when this returns."""
    there = apsw.Connection(str(place), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        there.pragma("synchronous", "EXTRA")
        with there.backup("main", connection, "main") as backup:
            backup.step(-1)
    finally:
        there.close(True)


_OPEN: weakref.WeakSet[Ledger] = weakref.WeakSet()


def _end() -> None:
    """At the end of the program each ledger is one file: a charge that a thread has begun is finished first."""
    for ledger in list(_OPEN):
        ledger.close()


atexit.register(_end)
