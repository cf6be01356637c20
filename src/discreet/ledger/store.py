"""The ledger: what may still be spent, who was charged for what, and the answers, in one durable file.

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

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from discreet.errors import EngineError, LedgerError, QuestionError
from discreet.ledger import chain
from discreet.ledger.chain import Key
from discreet.ledger.connection import translated
from discreet.ledger.file import File, rewritten
from discreet.ledger.history import Entry, Replay, Verification, debited, entry
from discreet.ledger.look import Answer, Look, stored_loss
from discreet.ledger.process import lives, this_process
from discreet.ledger.refusal import apart, other_unit, raised, refusal
from discreet.ledger.states import TOTAL, Account, Caps, Snapshot, TableState, Unit, renewed, respent
from discreet.ledger.steps import step
from discreet.trusted.ring_a.loss import Loss, loss_from_json
from discreet.trusted.ring_b.gdp_filter import CertifiedFilter as Filter

__all__ = ["Ledger", "Reserved", "Stored", "step"]

LONGEST = 50_000
"""Letters of a question, an analyst's name or a request that the ledger keeps: it keeps them for ever."""
_PAGE = 500  # entries read at a time
_TRIAL = Filter(1, "1e-6", "1e-7")


@dataclass(frozen=True)
class Reserved:
    """A charge that is on the disk: the question may now be answered, once, through `commit`."""

    reserve_id: int
    charged: Mapping[str, Loss]


@dataclass(frozen=True)
class Stored:
    """An answer that was given before. `charged` is what this call took: from an own account, or nothing."""

    reserve_id: int
    answer: bytes
    charged: Mapping[str, Loss]


class Ledger:
    """The ledger in the file `path`, made where there is none; None keeps it in memory.

    It may be used from several threads, and the file from several processes. Every method raises LedgerError
    where the ledger cannot be trusted or written: "corrupt", "foreign", "newer", "rewritten", "unwritable",
    "unnoted", "missing", "linked", "moved", "busy", "full", "storage", "closed", "forked". Nothing is charged then, or
    the charge stands.
    """

    def __init__(self, path: Path | None) -> None:
        self._file = File(path)
        self._read: tuple[int, frozenset[int]] = (0, frozenset())  # up to which entry, and which reserves had no end

    # what the owner does

    @classmethod
    def spend_unknown(cls, path: Path, loss: Loss | None) -> Ledger:
        """The ledger in a file that lacks its last entries, or may lack them, charged for what these may have held.

        Privacy: the caller says what the questions that are not in the file cost together, as an upper bound; `loss`
        is debited from the whole budget and from each analyst's, since any of them may have asked, and whether or not
        it is admitted, since it has happened. Releases before and after compose with it as with any release. None says
        that nothing was asked. What was noted of the lost entries counts no more.
        """
        ledger = cls.__new__(cls)
        ledger._file = File(path, lost=True)
        ledger.verify()
        with ledger._file.write("unknown") as look:
            charged = look.accounts if loss is not None else ()
            fields = {"accounts": charged, "loss": None if loss is None else loss.to_json()}
            after = {name: look.registered(name) for name in charged}
            changed: dict[Key, object] = {
                ("account", name): Account(account.caps, account.filter().after(loss).spent).to_json()
                for name, account in after.items()
                if loss is not None
            }
            ledger._append(look, "unknown", fields, changed)
        ledger._file.accept()
        return ledger

    def register(
        self,
        caps: Mapping[str, Caps],
        declaration: str,
        *,
        units: Mapping[str, Unit] | None = None,
        raising: bool = False,
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
        another: all that is released is within the larger of each part, which neither cap promises. `units` says of
        each table about people who counts as a person in it. What was charged was charged for these: LedgerError "unit"
        where that changes after anything was charged.
        """
        for wanted in caps.values():
            wanted.filter()
        digest = hashlib.sha256(declaration.encode()).hexdigest()
        with self._file.write("register") as look:
            changes: list[tuple[str, dict[str, str] | None, dict[str, str]]] = []
            changed: dict[Key, object] = {}
            named = [(name, unit) for name, unit in (units or {}).items() if look.state("unit", name) != unit.person]
            for table, unit in named:
                known = look.state("unit", table)
                if known is not None and look.charged and not unit.was(known):
                    raise other_unit(table, known, unit, look.registered(TOTAL))
                changed["unit", table] = unit.person
            for name, wanted in sorted(caps.items()):
                account = look.account(name)
                if account is not None and not wanted.within(account.caps):
                    if not raising:
                        raise raised(name, account.caps, wanted)
                    most = _largest(look, name, account.caps)
                    if not (most.within(wanted) or wanted.within(most)):
                        raise apart(name, most, wanted)
                if account is None or account.caps != wanted:
                    before = None if account is None else account.caps.to_json()
                    changes.append((name, before, wanted.to_json()))
                    losses, family = ((), None) if account is None else (_losses(look, name), account.spent.family)
                    changed["account", name] = respent(wanted, losses, family).to_json()
            if changed or look.state("declaration", "") != digest:
                changed["declaration", ""] = digest
                fields: dict[str, object] = {"changes": changes, "declaration": declaration}
                if named:
                    fields["units"] = [[table, unit.person] for table, unit in named]
                self._append(look, "register", fields, changed)
            return any(name == TOTAL and before is None for name, before, _ in changes)

    def register_snapshots(self, fingerprints: Mapping[str, str], *, anew: bool = False) -> dict[str, Snapshot]:
        """Record the next snapshot (numbered from 1) of each of these tables that has none, or of all that are `anew`,
        and thaw it: all in one transaction. Gives what then are their snapshots; all other tables stay as they are.

        Of two processes that open a new ledger at the same instant, the second gets the first one's snapshots. Whether
        a table gets a new number is for the owner to say, never for its fingerprint to decide: from "the same rows, and
        the old answer" against "a new draw" one person's change could be read for nothing."""
        if not anew:
            with self._file.read() as look:
                known = {table: look.table(table).snapshot for table in fingerprints}
            if all(snapshot.number for snapshot in known.values()):
                return known
        with self._file.write("snapshot") as look:
            for table, fingerprint in fingerprints.items():
                number = look.table(table).snapshot.number
                if anew or not number:
                    state = TableState(Snapshot(number + 1, fingerprint), frozen=False).to_json()
                    fields = {"table": table, "number": number + 1, "fingerprint": fingerprint}
                    self._append(look, "snapshot", fields, {("table", table): state})
            return {table: look.table(table).snapshot for table in fingerprints}

    def lift(self, analyst: str) -> tuple[str, ...]:
        """Let an analyst who was suspended ask again, TOTAL for those who name none. Gives the tables. What failed
        stays counted, and what is frozen stays frozen until its next snapshot."""
        self.settle()
        with self._file.write("lift") as look:
            tables = tuple(name for name, state in sorted(look.tables().items()) if analyst in state.suspended)
            if tables:
                changed: dict[Key, object] = {
                    ("table", name): look.table(name).lifted(analyst).to_json() for name in tables
                }
                self._append(look, "lift", {"analyst": analyst, "tables": list(tables)}, changed)
            return tables

    def renew(self) -> Mapping[str, str]:
        """Give accounts that began with the filters of an earlier version the present ones: what each then promises.

        The owner's act, and not free: what is asked from then on is admitted by other filters, so for such an account
        the δ that they share is promised once more, (ε, 2δ − keys_delta). Everything released so far is charged anew.
        Accounts of which nothing would be left stay as they are. Empty where there is nothing to renew.
        """
        with self._file.write("renew") as look:
            found = ((name, renewed(look.registered(name), _losses(look, name))) for name in look.accounts)
            after = {name: account for name, account in found if account is not None}
            promises = {name: account.promise for name, account in after.items()}
            if after:
                states = {("account", name): account.to_json() for name, account in after.items()}
                self._append(look, "renew", {"promises": sorted(promises.items())}, states)
            return promises

    # what holds now

    @property
    def head(self) -> str:
        """The hash of the last entry. Noted elsewhere, it shows later whether the history was kept."""
        with self._file.read() as look:
            return look.head.hash.hex()

    def filter(self, account: str) -> Filter:
        """An account's caps and what was spent of them. Raises LedgerError "account" where there is none."""
        with self._file.read() as look:
            return look.registered(account).filter()

    def salt(self) -> bytes:
        """32 secret bytes, drawn when the ledger was made."""
        with self._file.read() as look:
            first = look.entry(1)
            if first is None or first.body["kind"] != "open":
                raise chain.broken(1)
            return bytes.fromhex(first.body["salt"])

    def snapshot(self, table: str) -> Snapshot | None:
        """The last registered snapshot of a table."""
        with self._file.read() as look:
            snapshot = look.table(table).snapshot
            return snapshot if snapshot.number else None

    def tables(self) -> dict[str, TableState]:
        """Every table that was registered: its snapshot, what failed in it, who is suspended on it."""
        with self._file.read() as look:
            return look.tables()

    def check(self, tables: Sequence[str], account: str) -> None:
        """Raises EngineError where one of the tables is frozen, or the analyst suspended on it. Depends on the ledger
        alone, and on which of its processes still run."""
        while True:
            with self._file.read() as look:
                if not (dead := self._dead(look)):
                    return _open(look, tables, account)
            self._count(dead)

    # questions

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
    ) -> Reserved | Stored:
        """Charge a release before it is made, or give the answer that is stored for it.

        `key` says what makes two questions the same; `request` names one asking of it, so that a retry is not
        another charge; it is the asker's own. `account` is the analyst who asks, or TOTAL for nobody in
        particular. The whole budget and his own account, where he has one, are charged together or not at
        all. A stored answer costs the whole budget nothing, and his own account once. `tables` are those about
        people that the measurement reads: where it fails he is suspended on them, and the failure number `limit` in
        a snapshot freezes them. Whether they are open to him is for `check` to say. After
        the charge the whole budget must still admit `keep`, which the owner has set apart.

        Raises BudgetError (nothing is written), QuestionError "request" where the request belongs to another
        question, LedgerError "pending" where it was charged and has no answer.
        """
        loss = _checked(loss)
        _check_text(question, key, account, *(() if request is None else (request,)))
        with self._file.write("reserve") as look:
            known = None if request is None else look.request(account, request)
            if known is not None and known.body["key"] != key:
                fix = "use a new request id"
                message = "this request id belongs to another question"
                raise QuestionError("request", message, where="request", fix=fix)
            own = account if account != TOTAL and look.account(account) is not None else None
            answer = look.answer(key, own, None if known is None else known.body["reserve"])
            asked: dict[str, object] = {"analyst": account, "question": question, "key": key}
            asked |= {"request": request if known is None else None}
            if answer is not None:
                return self._repeat(look, answer, own, asked)
            if known is not None:
                message = "this request was charged and has no answer: it runs elsewhere, or a crash lost it"
                raise LedgerError("pending", message, where="request", fix="ask again with a new request id")
            if tables:
                asked |= {"tables": list(tables), "limit": limit, "process": this_process(), "settled": self._settled()}
            return self._charge(look, loss, own, asked, keep)

    def answered(self, prefix: str, account: str, request: str | None, count: int) -> list[tuple[str, str]]:
        """Keys that begin with `prefix`, and questions, that have an answer which costs `account` nothing more, the
        oldest first. Where `request` was used before: only what it belongs to. Raises QuestionError on no text."""
        _check_text(prefix, account, *(() if request is None else (request,)))
        with self._file.read() as look:
            known = None if request is None else look.request(account, request)
            own = account if account != TOTAL and look.account(account) is not None else None
            found = look.answered(prefix if known is None else str(known.body["key"]), own, count)
            return list(dict.fromkeys((str(one.body["key"]), str(one.body["question"])) for one in found))

    def answer(self, key: str, account: str) -> bytes | None:
        """The answer of this key, as `reserve` would give it to `account`."""
        with self._file.read() as look:
            own = account if account != TOTAL and look.account(account) is not None else None
            found = look.answer(key, own, None)
            return None if found is None else found.data

    def commit(self, reserve_id: int, answer: bytes) -> None:
        """Store the answer of a reserve, once. Raises LedgerError "unknown" or "committed"."""
        with self._file.write("commit") as look:
            reserve = look.entry(reserve_id)
            if reserve is None or reserve.body["kind"] != "reserve":
                raise LedgerError("unknown", "there is no such reserve", fix="commit what `reserve` gave")
            if look.committed(reserve_id):
                raise LedgerError("committed", "this reserve has its answer", fix="reserve again")
            digest = hashlib.sha256(answer).hexdigest()
            fields: dict[str, object] = {"reserve": reserve_id, "key": reserve.body["key"], "answer": digest}
            self._append(look, "commit", fields, {}, answer)

    def fail(self, reserve_id: int, tables: Sequence[str] | None = None) -> None:
        """Record that a measurement failed; of the tables that it was reserved for, those that it read."""
        with self._file.write("failure") as look:
            self._fail(look, reserve_id, tables, set())

    def end(self, reserve_id: int) -> None:
        """Record that a reserve gets no answer, and that nothing of its measurement failed."""
        with self._file.write("end") as look:
            if not look.ended(reserve_id):
                self._append(look, "end", {"reserve": reserve_id}, {})

    def settle(self) -> None:
        """Count as failures what processes that have ended left without an answer."""
        with self._file.read() as look:
            dead = self._dead(look)
        if dead:
            self._count(dead)

    def _dead(self, look: Look) -> list[int]:
        """The reserves without an end whose process has ended."""
        after, open_ = self._read
        still = set(open_)
        for seq, kind, reserve in look.ends(after or look.settled()):
            if kind == "reserve":
                still.add(seq)
            else:
                still.discard(reserve)
        self._read = look.head.seq, frozenset(still)
        return [seq for seq in sorted(still) if _left(look, seq)]

    def _count(self, dead: Sequence[int]) -> None:
        with self._file.write("failure") as look:
            counted: set[tuple[str, str]] = set()
            for seq in dead:
                self._fail(look, seq, None, counted)

    def _settled(self) -> int:
        """Whatever was reserved up to this entry has come to its end."""
        seen, open_ = self._read
        return min(open_, default=seen + 1) - 1

    def _fail(self, look: Look, reserve_id: int, tables: Sequence[str] | None, counted: set[tuple[str, str]]) -> None:
        """`counted` are the processes whose end was counted for a table."""
        reserve = look.entry(reserve_id)
        if reserve is None or look.ended(reserve_id):
            return  # another process has settled it
        body = reserve.body
        read = [name for name in body.get("tables", ()) if tables is None or name in tables]
        fresh = [name for name in read if (body["process"], name) not in counted]
        counted |= {(body["process"], name) for name in fresh}
        fields = {"reserve": reserve_id, "analyst": body["analyst"], "tables": read, "counted": fresh}
        changed: dict[Key, object] = {}
        for name in read:
            state = look.table(name).failed(body["analyst"], counted=name in fresh, limit=body["limit"])
            changed["table", name] = state.to_json()
        self._append(look, "failure", fields | {"limit": body.get("limit")}, changed)

    def _charge(self, look: Look, loss: Loss, own: str | None, asked: dict[str, object], keep: Loss | None) -> Reserved:
        accounts = (TOTAL,) if own is None else (TOTAL, own)
        changed = {("account", name): _debit(look, name, loss, keep if name == TOTAL else None) for name in accounts}
        fields = asked | {"reserve": look.head.seq + 1, "account": own, "loss": loss.to_json()}
        self._append(look, "reserve", fields, changed)
        return Reserved(look.head.seq, dict.fromkeys(accounts, loss))

    def _repeat(self, look: Look, answer: Answer, own: str | None, asked: dict[str, object]) -> Stored:
        """Give a stored answer. An own account that has not paid for it yet is debited its release's loss."""
        fields = asked | {"reserve": answer.reserve.seq}
        if own is not None and not answer.debited:
            changed: dict[Key, object] = {("account", own): _debit(look, own, answer.loss)}
            self._append(look, "repeat", fields | {"account": own, "loss": answer.loss.to_json()}, changed)
            return Stored(answer.reserve.seq, answer.data, {own: answer.loss})
        if asked["request"] is not None:
            self._append(look, "repeat", fields, {})
        return Stored(answer.reserve.seq, answer.data, {})

    # history

    def entries(self) -> Iterator[Entry]:
        """Every entry in order, each verified as it is read."""
        seq = 0
        while True:
            with self._file.read() as look:
                page = look.page(seq, _PAGE)
            if not page:
                return
            for record, answered in page:
                yield entry(record, answered)
                seq = record.seq

    def verify(self, expect_head: str | None = None) -> Verification:
        """Walk the whole history: hashes, answers, caps, and every balance recomputed from what was released.

        `expect_head` is a head that was noted earlier. Raises LedgerError "rewritten" where the history has
        no entry of that hash: it was cut, restored from an older copy, or written anew.
        """
        expected = None if expect_head is None else expect_head.strip().lower()
        met = expected is None
        replay = Replay()
        with translated(self._file.where):
            with self._file.read() as look:
                look.check_file()
            while True:
                with self._file.read() as look:
                    page = look.page(replay.seq, _PAGE)
                    digests = [look.answer_digest(record.seq) for record, _ in page]
                    last = look.head.seq
                for (record, _), digest in zip(page, digests, strict=True):
                    replay.follow(record, digest)
                    met = met or record.hash.hex() == expected
                if replay.seq >= last:
                    break
                if not page:
                    raise chain.broken(replay.seq + 1)
            if not met:
                raise rewritten()
        return replay.verification()

    def close(self) -> None:
        """Let go of the file. Whatever is called afterwards raises LedgerError "closed"."""
        self._file.close()

    def _append(
        self,
        look: Look,
        kind: str,
        fields: Mapping[str, object],
        changed: Mapping[Key, object],
        answer: bytes | None = None,
    ) -> None:
        step(f"{kind}-before-insert")
        look.append({"kind": kind, **fields}, changed, answer)
        step(f"{kind}-after-insert")


def _open(look: Look, tables: Sequence[str], account: str) -> None:
    """Raises EngineError where one of the tables is not open to the analyst."""
    for name in tables:
        state = look.table(name)
        if state.frozen:
            raise EngineError(frozen=name)
        if account in state.suspended:
            raise EngineError(suspended=name)


def _left(look: Look, seq: int) -> bool:
    """Whether a reserve's process has ended. Older versions' reserves do not say."""
    reserve = look.entry(seq)
    if reserve is None:
        raise chain.broken(seq)
    process = reserve.body.get("process")
    return process is not None and not lives(process)


def _losses(look: Look, name: str) -> Iterator[Loss]:
    """Every loss that an account was debited with, in order."""
    seq = 0
    while page := look.page(seq, _PAGE):
        for record, _ in page:
            if name in debited(record.body):
                yield stored_loss(record.body["loss"])
            seq = record.seq


def _largest(look: Look, name: str, caps: Caps) -> Caps:
    """The largest caps that an account ever had."""
    seq = 0
    while page := look.page(seq, _PAGE):
        for record, _ in page:
            changes = record.body["changes"] if record.body["kind"] == "register" else ()
            for account, _, after in changes:
                known = Caps.from_json(after)
                caps = known if account == name and caps.within(known) else caps
            seq = record.seq
    return caps


def _debit(look: Look, name: str, loss: Loss, keep: Loss | None = None) -> object:
    """The account after the loss. Raises BudgetError where it does not admit it, and then `keep`."""
    account = look.registered(name)
    filter_ = account.filter()
    after = filter_.after(loss)
    if not after.alive:
        raise refusal(name, filter_, loss, look.registered(TOTAL).filter())
    if keep is not None and not after.admits(keep):
        raise refusal(name, filter_, loss, filter_, keep)
    return Account(account.caps, after.spent).to_json()


def _checked(loss: Loss) -> Loss:
    """The loss, if the ledger can write it and read it back. Raises ValueError on one that is not sound."""
    if loss_from_json(loss.to_json()) != loss:
        raise ValueError("a loss must be read back as it was written")
    _TRIAL.after(loss).spent.to_json()  # what is slow, or too long to write, is met before the file is locked
    return loss


def _check_text(*texts: str) -> None:
    try:
        "".join(texts).encode()
    except (TypeError, UnicodeEncodeError):
        fix = "write it in Unicode, without lone surrogates"
        message = "the question, the analyst or the request is no text"
        raise QuestionError("text", message, fix=fix) from None
    if any(len(text) > LONGEST for text in texts):
        message = f"the question, the analyst or the request has more than {LONGEST:,} letters"
        raise QuestionError("long", message, fix="ask something shorter")
