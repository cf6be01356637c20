"""The ledger: budgets, charges and stored answers, durable in one place.

Every charge is one serialised transaction that is on the disk before `reserve` returns. Entries are only ever
added: there is no refund, no change and no deletion, and a reserve that a crash left without an answer stays
charged.

That a measurement failed is an answer that no price bounds, so it is counted. A failure suspends the analyst whose
measurement it was on the tables that he asked about, until the owner acts, and the last of a declared number in one
snapshot freezes them for everybody. Which failures there are:
* what `fail` records;
* a reserve without an answer whose process has ended, however it ended: who can make the process die must not learn for
  nothing that it did. It counts from the next question or opening on (`settle`). The death of one process is one event,
  whose part in it nobody can tell, so it counts once for each table, however many were answered there, and suspends
  everybody who had a question in it. A power cut suspends them, and freezes nothing unless others failed before.
A reserve that `end` has ended is none: nothing of its measurement failed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from fractions import Fraction

from discreet.errors import EngineError, LedgerError, QuestionError
from discreet.trusted.ledger import chain
from discreet.trusted.ledger.accounts import PART, PARTS, TOTAL, Caps, Overdrawn, debited, stored_loss
from discreet.trusted.ledger.periods import NEW_PERSONS
from discreet.trusted.ledger.processes import this_process
from discreet.trusted.ledger.replay import HistoryReplay
from discreet.trusted.ledger.storage import Storage
from discreet.trusted.ledger.transaction import StoredAnswer, Transaction
from discreet.trusted.ring_a.loss import Loss, loss_from_json
from discreet.trusted.ring_b.gdp_filter import CertifiedFilter as Filter

Fields = dict[str, object]
Lasting = Mapping[str, Fraction]
PIECE = "\x1f"  # between the name of a request and the number of a piece of its question: no analyst has one in a name
_PAGE = 500  # entries read at a time
_TRIAL = Filter(1, "1e-6", "1e-7")


@dataclass(frozen=True)
class Reserved:
    """A charge that is on the disk: the question may now be answered, once, through `commit`."""

    reserve_id: int
    charged: Mapping[str, Loss]


@dataclass(frozen=True)
class Stored:
    """An answer that was given before, or with its charge. `charged` is what this call took."""

    reserve_id: int
    answer: bytes
    charged: Mapping[str, Loss]


class BudgetLedger:
    """The ledger, wherever it is kept (`Storage`).

    It may be used from several threads, the file from several processes, and the server from several machines. Every
    method raises LedgerError where the ledger cannot be trusted or written: "corrupt", "foreign", "newer", "rewritten",
    "unwritable", "unnoted", "missing", "linked", "moved", "busy", "full", "storage", "server", "closed", "forked".
    Nothing is charged then, or the charge stands.
    """

    def __init__(self, kept: Storage) -> None:
        self._file = kept
        self._read: tuple[int, frozenset[int]] = (0, frozenset())  # up to which entry, and which reserves had no end

    def read(self) -> AbstractContextManager[Transaction]:
        """What the ledger says at one moment, as of `Storage.read`."""
        return self._file.read()

    def register_accounts(
        self,
        caps: Mapping[str, Caps],
        declaration: str,
        *,
        persons: Mapping[str, Sequence[str]],
        raising: bool,
        besides: Callable[[Transaction], Mapping[str, object]] = lambda _: {},
        renewal: Mapping[str, str] | None = None,
        parts: Sequence[str] = (),
    ) -> bool:
        """Make accounts and set their caps: TOTAL for the whole budget, the others by the analysts' names. Gives
        whether the whole budget's account was made, so that it begins here.

        One entry, and only where something differs from what is registered. An account that `caps` leaves out
        stays as it is. Under other caps what was spent is reckoned anew from every release so far: what a
        release takes of the Gaussian residue depends on the cap. Raises ValueError on caps that no filter can
        have.

        Of two declarations that name one ledger the smaller budget holds, whichever is opened last: a cap is lowered
        by whoever opens the ledger with a lower one, and raised with `raising` only, the owner's own word. Else
        LedgerError "raised"; "apart" where it would be larger than the largest so far in one part and smaller in
        another: all that is released is within the larger of each part, which neither cap promises. `persons` says of
        each table about people who counts as a person in it, in words, and in which of an earlier time the same persons
        were meant. What was charged was charged for these: LedgerError "unit" where that changes after anything was
        charged. `besides` gives what the entry says to parts beside the ledger, and may refuse. `renewal` says how long
        a period is, and for which `persons` the budget renews with it; once something was charged, only the owner's
        word changes it, LedgerError "renewal".
        For new persons it neither begins nor ends then, nor once somebody is listed, whoever says so. Each of `parts`
        gets an account of its own; all that there are have the caps of TOTAL, whoever declares them.
        """
        with self._file.write() as transaction:
            changes, named = [], []
            caps, stays = self._given(transaction, caps)
            if TOTAL in caps:
                caps = {**caps, **dict.fromkeys((*transaction.parts, *(PART + one for one in parts)), caps[TOTAL])}
            for name, wanted in sorted(caps.items()):
                known, later = transaction.caps(name), replace(wanted, epsilon=stays.get(name, wanted.epsilon))
                if known is not None and not wanted.within(known):
                    _check_raise(transaction, name, known, wanted, raising)
                if known is not None and later.epsilon > (before := transaction.lasting(name)).epsilon:
                    LedgerError.unless(raising, "raised", account=name, known=before, wanted=later)
                if known != wanted:
                    changes.append((name, known and known.to_json(), wanted.to_json()))
            said = {name: str(stays[name]) if name in stays else None for name in sorted(caps)}
            lasting = [(name, one) for name, one in said.items() if transaction.state("lasting", name) != one]
            charged, renews = transaction.charged_ever, transaction.state("renewal", "")
            new = any(one and one["persons"] == NEW_PERSONS for one in (renews, renewal))
            LedgerError.unless(
                renews == renewal or not new or not (charged or transaction.state("persons", "")), "renewal of persons"
            )
            LedgerError.unless(renews == renewal or raising or not charged, "renewal")
            for table, words in persons.items():
                before = transaction.state("unit", table)
                if charged and before not in (None, *words):
                    raise LedgerError.of("unit", table=table, known=before, total=transaction.account(TOTAL))
                if before != words[0]:
                    named.append((table, words[0]))
            others = dict(besides(transaction))
            others |= {"units": named} if named else {}
            others |= {"lasting": lasting} if lasting else {}
            others |= {} if renews == renewal else {"renewal": renewal}
            if changes or others or transaction.state("declaration", "") != chain.digest(declaration.encode()):
                transaction.append("register", {**others, "changes": changes, "declaration": declaration})
            return any(name == TOTAL and known is None for name, known, _ in changes)

    def _given(self, _: Transaction, caps: Mapping[str, Caps]) -> tuple[Mapping[str, Caps], Lasting]:
        """These caps with what the owner has given beside them, and of accounts of which that ends with the period the
        ε that stays: here nothing is given. That, too, is raised by the owner's word alone."""
        return caps, {}

    def check(self, tables: Sequence[str], account: str) -> None:
        """Raises EngineError where one of the tables is frozen, or the analyst suspended on it. Depends on the ledger
        alone, and on which of its processes still run."""
        self.settle()
        with self._file.read() as transaction:
            for name, state in ((name, transaction.table(name)) for name in tables):
                if state.frozen:
                    raise EngineError(frozen=name)
                if account in state.suspended:
                    raise EngineError(suspended=name)

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
        """Charge a release before it is made, or give the answer that is stored for it.

        `key` says what makes two questions the same; `request` names one asking of it, so that a retry is not
        another charge; it is the asker's own. `account` is the analyst who asks, or TOTAL for nobody in
        particular. The whole budget and his own account, where he has one, are charged together or not at
        all. A stored answer costs the whole budget nothing, and his own account once. `tables` are those about
        people that the measurement reads: where it fails he is suspended on them, and the failure number `limit` in
        a snapshot freezes them. Whether they are open to him is for `check` to say. After
        the charge the whole budget must still admit `keep`, which the owner has set apart. `period` is that for which
        the rows were loaded: LedgerError "period" where another one is running, and something would be charged; or the
        account of the part whose persons' rows alone were loaded. That alone is debited instead of the whole budget's,
        and those of all parts with it otherwise.
        `answer` is one that is known beforehand, as it depends on no row: it is stored with the charge, both or none.

        A question of several pieces has a request for each, `request` PIECE number: no other has it without a number.

        Raises BudgetError (nothing is written), QuestionError "request" where the request belongs to another
        question, LedgerError "pending" where it was charged and has no answer.
        """
        if loss_from_json(loss.to_json()) != loss:
            raise ValueError("a loss must be read back as it was written")
        _TRIAL.after(loss).spent.to_json()  # what is slow, or too long to write, is met before the file is locked
        with self._file.write() as transaction:
            known = transaction.request(account, request)
            name, piece, _ = (request or "").partition(PIECE)
            other = None if request is None else (name or None) if piece else f"{request}{PIECE}1"
            taken = transaction.request(account, other) is not None
            if taken or (known is not None and known.body["key"] != key):
                fix = "use a new request id"
                raise QuestionError("request", "this request id belongs to another question", where="request", fix=fix)
            own = transaction.own(account)
            stored = transaction.answer(key, own, None if known is None else known.body["reserve"])
            remembered = None if known else request  # by one entry
            asked: Fields = {"analyst": account, "question": question, "key": key, "request": remembered}
            begun = period or transaction.state("renewal", "") is None
            parts, part = transaction.parts, period in transaction.parts and transaction.state("renewal", "") is None
            present = part or bool(begun and transaction.period == period)
            if stored is not None:
                return _repeated(transaction, stored, own, asked, present=present)
            LedgerError.unless(known is None, "pending", where="request")
            LedgerError.unless(present, "period")
            if tables:
                asked |= {"tables": list(tables), "limit": limit, "process": this_process(), "settled": self._settled()}
            whole = [str(period)] if part else [TOTAL, *parts]
            asked |= _besides(transaction, own) | ({"parts": whole} if parts else {})
            before, seq = {one: transaction.account(one) for one in whole}, transaction.head.seq + 1
            transaction.append("reserve", asked | {"reserve": seq, "account": own, "loss": loss.to_json()})
            for one, left in before.items():
                if keep is not None and not transaction.account(one).admits(keep):
                    raise Overdrawn(one, left, left, keep)
            charged = dict.fromkeys(debited(transaction.head.body), loss)
            if answer is None:
                return Reserved(seq, charged)
            _commit(transaction, seq, key, answer)
            return Stored(seq, answer, charged)

    def commit(self, reserve_id: int, answer: bytes, *, alone: bool = False) -> None:
        """Store the answer of a reserve, once; with `alone`, only where its key has no later reserve, so that whoever
        reserved it last is the one who answers. Raises LedgerError "unknown", "committed" or "superseded"."""
        with self._file.write() as transaction:
            body = transaction.entry(reserve_id).body if 0 < reserve_id <= transaction.head.seq else {"kind": ""}
            LedgerError.unless(body["kind"] == "reserve", "unknown")
            LedgerError.unless(not transaction.committed(reserve_id), "committed")
            later = f"e.seq > {reserve_id:d} AND e.kind = 'reserve' AND e.key = $1"
            LedgerError.unless(not alone or transaction.find(later, key=body["key"]) is None, "superseded")
            _commit(transaction, reserve_id, body["key"], answer)

    def fail(self, reserve_id: int, tables: Sequence[str] | None = None) -> None:
        """Record that a measurement failed; of the tables that it was reserved for, those that it read."""
        with self._file.write() as transaction:
            _fail(transaction, [reserve_id], tables)

    def end(self, reserve_id: int) -> None:
        """Record that a reserve gets no answer, and that nothing of its measurement failed."""
        with self._file.write() as transaction:
            if not transaction.ended(reserve_id):
                transaction.append("end", {"reserve": reserve_id})

    def settle(self) -> None:
        """Records as failures the reserves that ended processes left without an answer."""
        with self._file.read() as transaction:
            after, open_ = self._read
            for seq, kind, reserve in transaction.ends(after or transaction.settled()):
                open_ = open_ | {seq} if kind == "reserve" else open_ - {reserve}
            self._read = transaction.head.seq, open_
            dead = [seq for seq in sorted(open_) if not self._file.lives(transaction.entry(seq).body.get("process"))]
        if dead:
            with self._file.write() as transaction:
                _fail(transaction, dead)

    def _settled(self) -> int:
        """Whatever was reserved up to this entry has come to its end."""
        return min(self._read[1], default=self._read[0] + 1) - 1

    def replay(self, expect_head: str | None = None) -> HistoryReplay:
        """Verifies the whole history: hashes, answers, caps, and every balance recomputed from the releases.

        `expect_head` is a head that was noted earlier. Raises LedgerError "rewritten" where the history has
        no entry of that hash: it was cut, restored from an older copy, or written anew.
        """
        replay, last, met = HistoryReplay(), 1, expect_head is None
        with self._file.read():
            self._file.whole()
        while replay.head.seq < last:
            with self._file.read() as transaction:  # page by page: nobody writes meanwhile
                last, before = transaction.head.seq, replay.head.seq
                for record in transaction.entries(before, _PAGE):
                    replay.follow(record, transaction.answer_digest(record.seq))
                    met = met or record.hash.hex() == expect_head
                if replay.head.seq == before:
                    raise chain.broken(before + 1)
                LedgerError.unless(met or replay.head.seq < last, "rewritten")
        return replay

    def close(self) -> None:
        """Let go of the file. Whatever is called afterwards raises LedgerError "closed"."""
        self._file.close()


def _check_raise(transaction: Transaction, name: str, known: Caps, wanted: Caps, raising: bool) -> None:
    """Raises LedgerError where an account's caps must not be raised, or not so."""
    LedgerError.unless(raising, "raised", account=name, known=known, wanted=wanted)
    changes = (change for entry in transaction.entries() for change in entry.body.get("changes", ()))
    for most in (Caps.from_json(after) for account, _, after in changes if account == name):
        known = most if known.within(most) else known  # the largest so far
    holds = known.within(wanted) or wanted.within(known)
    LedgerError.unless(holds, "apart", account=name, most=known, wanted=wanted)


def _besides(transaction: Transaction, account: str | None) -> Fields:
    """What parts beside the ledger have an entry say that charges an account."""
    return {name: value for part in PARTS for name, value in part.said(transaction, account).items()}


def _repeated(
    transaction: Transaction, answer: StoredAnswer, own: str | None, asked: Fields, *, present: bool
) -> Stored:
    """Give a stored answer. An own account that has not paid for it yet is debited its release's loss, where the rows
    are of the `present` period."""
    data, reserve, debited_before = answer
    charged = {} if own is None or debited_before else {own: stored_loss(reserve.body)}
    if charged:
        LedgerError.unless(present, "period")
        asked |= {"account": own, "loss": reserve.body["loss"]} | _besides(transaction, own)
    if charged or asked["request"] is not None:
        transaction.append("repeat", asked | {"reserve": reserve.seq})
    return Stored(reserve.seq, data, charged)


def _commit(transaction: Transaction, reserve_id: int, key: str, answer: bytes) -> None:
    fields = {"reserve": reserve_id, "key": key, "answer": chain.digest(answer)}
    transaction.append("commit", fields, answer)


def _fail(transaction: Transaction, reserves: Sequence[int], tables: Sequence[str] | None = None) -> None:
    """Of the reserves of one process the failure counts once for each table."""
    counted: set[tuple[str, str]] = set()
    for seq in reserves:
        body = transaction.entry(seq).body
        if transaction.ended(seq):
            continue  # another process has settled it
        read = [name for name in body.get("tables", ()) if tables is None or name in tables]
        fresh = [name for name in read if (body["process"], name) not in counted]
        counted |= {(body["process"], name) for name in fresh}
        fields = {"reserve": seq, "analyst": body["analyst"], "tables": read, "counted": fresh}
        transaction.append("failure", fields | {"limit": body.get("limit")})
