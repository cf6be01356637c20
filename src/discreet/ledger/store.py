"""The ledger: what may still be spent, who was charged for what, and the answers, in one durable file.

Every charge is one serialised transaction that is on the disk before `reserve` returns. Entries are only ever
added: there is no refund, no change and no deletion, and a reserve that a crash left without an answer stays
charged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from discreet.accounting import Filter, Loss, loss_from_json
from discreet.errors import LedgerError, QuestionError
from discreet.ledger import chain
from discreet.ledger.chain import Key
from discreet.ledger.connection import translated
from discreet.ledger.file import File, rewritten
from discreet.ledger.history import Entry, Replay, Verification, debited, entry
from discreet.ledger.look import Answer, Look, stored_loss
from discreet.ledger.refusal import refusal
from discreet.ledger.states import TOTAL, Account, Caps, Snapshot, TableState, respent
from discreet.ledger.steps import step

__all__ = ["Ledger", "Reserved", "Stored", "step"]

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
    "moved", "busy", "full", "storage", "closed", "forked". Nothing is charged then, or the charge stands.
    """

    def __init__(self, path: Path | None) -> None:
        self._file = File(path)

    # what the owner does

    def register(self, caps: Mapping[str, Caps], declaration: str) -> None:
        """Make accounts and set their caps: TOTAL for the whole budget, the others by the analysts' names.

        One entry, and only where something differs from what is registered. An account that `caps` leaves out
        stays as it is. Under other caps what was spent is reckoned anew from every release so far: what a
        release takes of the Gaussian residue depends on the cap. Raises ValueError on caps that no filter can
        have.
        """
        for wanted in caps.values():
            wanted.filter()
        digest = hashlib.sha256(declaration.encode()).hexdigest()
        with self._file.write("register") as look:
            changes: list[tuple[str, dict[str, str] | None, dict[str, str]]] = []
            changed: dict[Key, object] = {}
            for name, wanted in sorted(caps.items()):
                account = look.account(name)
                if account is None or account.caps != wanted:
                    before = None if account is None else account.caps.to_json()
                    changes.append((name, before, wanted.to_json()))
                    losses = () if account is None else _losses(look, name)
                    changed["account", name] = respent(wanted, losses).to_json()
            if changes or look.state("declaration", "") != digest:
                changed["declaration", ""] = digest
                fields: dict[str, object] = {"changes": changes, "declaration": declaration}
                self._append(look, "register", fields, changed)

    def register_snapshot(self, table: str, fingerprint: str, *, first: bool = False) -> Snapshot:
        """Record a table's next snapshot (numbered from 1), and thaw it. Gives what then is the table's snapshot.

        With `first` only a table without any gets one: of two processes that open a new ledger at the same instant, the
        second gets the first one's."""
        if first and (known := self.snapshot(table)) is not None:
            return known
        with self._file.write("snapshot") as look:
            before = look.table(table).snapshot
            if first and before.number:
                return before
            snapshot = Snapshot(before.number + 1, fingerprint)
            state = TableState(snapshot, frozen=False).to_json()
            fields = {"table": table, "number": snapshot.number, "fingerprint": fingerprint}
            self._append(look, "snapshot", fields, {("table", table): state})
            return snapshot

    def freeze(self, table: str) -> None:
        """Mark a table that must not be asked about until its next snapshot is registered."""
        with self._file.write("freeze") as look:
            before = look.table(table)
            if not before.frozen:
                state = replace(before, frozen=True).to_json()
                self._append(look, "freeze", {"table": table}, {("table", table): state})

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

    def frozen(self, table: str) -> bool:
        """Whether the table waits for its next snapshot."""
        with self._file.read() as look:
            return look.table(table).frozen

    # questions

    def reserve(
        self, loss: Loss, *, question: str, key: str, account: str = TOTAL, request: str | None = None
    ) -> Reserved | Stored:
        """Charge a release before it is made, or give the answer that is stored for it.

        `key` says what makes two questions the same; `request` names one asking of it, so that a retry is not
        another charge; it is the asker's own. `account` is the analyst who asks, or TOTAL for nobody in
        particular. The whole budget and his own account, where he has one, are charged together or not at
        all. A stored answer costs the whole budget nothing, and his own account once.

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
            return self._charge(look, loss, own, asked)

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

    def _charge(self, look: Look, loss: Loss, own: str | None, asked: dict[str, object]) -> Reserved:
        accounts = (TOTAL,) if own is None else (TOTAL, own)
        changed = {("account", name): _debit(look, name, loss) for name in accounts}
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


def _losses(look: Look, name: str) -> Iterator[Loss]:
    """Every loss that an account was debited with, in order."""
    seq = 0
    while page := look.page(seq, _PAGE):
        for record, _ in page:
            if name in debited(record.body):
                yield stored_loss(record.body["loss"])
            seq = record.seq


def _debit(look: Look, name: str, loss: Loss) -> object:
    """The account after the loss. Raises BudgetError where it does not admit it."""
    account = look.registered(name)
    filter_ = account.filter()
    if not filter_.admits(loss):
        raise refusal(name, filter_, loss)
    return Account(account.caps, filter_.charge(loss).spent).to_json()


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
