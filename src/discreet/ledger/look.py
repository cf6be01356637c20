"""One serialised look at the ledger: its authenticated head and states, and what the history says of a
question.

Whatever is found through an index is verified by its entry's hash before it counts. What an index fails to
find can only lead to another charge.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import apsw

from discreet.errors import LedgerError
from discreet.ledger import chain, schema
from discreet.ledger.chain import Key, Record
from discreet.ledger.note import RESTORE
from discreet.ledger.states import TOTAL, Account, TableState
from discreet.trusted.ring_a.loss import Loss, loss_from_json

_PAGE = 500  # entries read at a time


@dataclass(frozen=True)
class Answer:
    """A committed answer, its release's loss, and whether the account that asks has paid for it."""

    reserve: Record
    data: bytes
    loss: Loss
    debited: bool


class Look:
    """Made inside a transaction, and valid until it ends.

    Raises LedgerError where the last entry or the states do not fit each other.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        schema.version(connection)  # a newer program may have migrated the file since it was opened
        head = self._find("ORDER BY e.seq DESC LIMIT 1")
        if head is None:
            raise LedgerError("corrupt", "the ledger has no entries", fix=RESTORE)
        self.head = head
        self._states: dict[Key, str] = {}
        for kind, name, state in connection.execute("SELECT kind, name, state FROM states"):
            if not (isinstance(kind, str) and isinstance(name, str) and isinstance(state, str)):
                raise chain.broken(head.seq)
            self._states[kind, name] = state
        if chain.balances(self._states) != head.body["balances"]:
            raise LedgerError("corrupt", "the ledger's balances do not fit its last entry", fix=RESTORE)

    def append(self, fields: Mapping[str, object], changed: Mapping[Key, object], answer: bytes | None = None) -> None:
        """Write the next entry, which becomes the head."""
        self.head = chain.append(self._connection, self.head, self._states, fields, changed, answer)

    # states

    def state(self, kind: str, name: str) -> Any:
        """The state's JSON, or None."""
        text = self._states.get((kind, name))
        return None if text is None else json.loads(text)

    def account(self, name: str) -> Account | None:
        state = self.state("account", name)
        return None if state is None else Account.from_json(state)

    @property
    def accounts(self) -> tuple[str, ...]:
        """The names of all accounts, in order."""
        return tuple(sorted(name for kind, name in self._states if kind == "account"))

    @property
    def charged(self) -> bool:
        """Whether anything was ever charged."""
        total = self.account(TOTAL)
        return total is not None and not total.spent.nothing

    def registered(self, name: str) -> Account:
        """The account. Raises LedgerError "account" where it was never registered."""
        account = self.account(name)
        if account is None:
            fix = "register the declaration's budget and analysts first"
            raise LedgerError("account", "the ledger has no such account", fix=fix)
        return account

    def table(self, name: str) -> TableState:
        return TableState.from_json(self.state("table", name))

    def tables(self) -> dict[str, TableState]:
        return {name: self.table(name) for kind, name in self._states if kind == "table"}

    # history

    def hash(self, seq: int) -> bytes | None:
        """The hash column of an entry."""
        for (found,) in self._connection.execute("SELECT hash FROM entries WHERE seq = ?", (seq,)):
            return found if isinstance(found, bytes) else None
        return None

    def follows(self, seq: int, found: bytes) -> bool:
        """Whether the head is the entry of this number and hash, or follows from it, link by link."""
        if self.hash(seq) != found:
            return False
        while seq < self.head.seq:
            seq = self.page(seq, _PAGE)[-1][0].seq  # each entry is verified with the hash of the one before it
        return True

    def entry(self, seq: int) -> Record | None:
        return self._find("WHERE e.seq = ?", seq)

    def request(self, analyst: str, request: str) -> Record | None:
        """The entry that remembers an analyst's request."""
        found = self._find("WHERE e.analyst = ? AND e.request = ?", analyst, request)
        if found is not None and (found.body["analyst"], found.body["request"]) != (analyst, request):
            raise chain.broken(found.seq)
        return found

    def committed(self, reserve_id: int) -> bool:
        return self._find("WHERE e.kind = 'commit' AND e.reserve = ?", reserve_id) is not None

    def answer(self, key: str, account: str | None, reserve_id: int | None) -> Answer | None:
        """A committed answer: of `reserve_id`, or else one that `account` was debited for, or the first."""
        rows = self._connection.execute(
            "SELECT c.seq, c.reserve, d.seq, c.answer FROM entries AS c"
            " LEFT JOIN entries AS d ON d.account = :account AND d.key = :key AND d.reserve = c.reserve"
            " WHERE c.kind = 'commit' AND c.key = :key AND (:reserve IS NULL OR c.reserve = :reserve)"
            " ORDER BY d.seq IS NULL, c.seq LIMIT 1",
            {"key": key, "account": account, "reserve": reserve_id},
        ).fetchall()
        if not rows:
            return None
        commit_seq, of, debit_seq, data = rows[0]
        commit = self._entry(commit_seq, kind="commit", key=key, reserve=of)
        reserve = self._entry(of, kind="reserve", key=key, reserve=of)
        if debit_seq is not None:
            self._entry(debit_seq, account=account, key=key, reserve=of)
        if not isinstance(data, bytes) or hashlib.sha256(data).hexdigest() != commit.body["answer"]:
            raise chain.broken(commit.seq)
        return Answer(reserve, data, stored_loss(reserve.body["loss"]), debit_seq is not None)

    def answered(self, prefix: str, account: str | None, count: int) -> list[Record]:
        """The reserves with an answer whose keys begin so, the oldest first; with an `account`, those that it was
        debited for."""
        rows = self._connection.execute(
            "SELECT c.reserve, c.key FROM entries AS c"
            " WHERE c.kind = 'commit' AND c.key >= :prefix AND c.key < :behind AND (:account IS NULL OR EXISTS"
            " (SELECT 1 FROM entries AS d WHERE d.account = :account AND d.key = c.key AND d.reserve = c.reserve))"
            " ORDER BY c.seq LIMIT :count",
            {"prefix": prefix, "behind": prefix + chr(0x10FFFF), "account": account, "count": count},
        ).fetchall()
        return [self._entry(seq, kind="reserve", key=key, reserve=seq) for seq, key in rows]

    def ended(self, reserve_id: int) -> bool:
        """Whether a reserve has an answer, a failure or an end."""
        return any(reserve == reserve_id for _, kind, reserve in self.ends(reserve_id) if kind != "reserve")

    def ends(self, after: int) -> list[tuple[int, str, int]]:
        """The reserves behind an entry, and what ended some: number, kind, and the reserve that is meant."""
        rows = self._connection.execute(
            "SELECT seq, kind, reserve FROM entries"
            " WHERE seq > ? AND kind IN ('reserve', 'commit', 'failure', 'end') ORDER BY seq",
            (after,),
        )
        return [(seq, kind, reserve) for seq, kind, reserve in rows]

    def settled(self) -> int:
        """An entry up to which every reserve has come to its end, as the last reserve remembers it."""
        last = self._find("WHERE e.kind = 'reserve' ORDER BY e.seq DESC LIMIT 1")
        return 0 if last is None else int(last.body.get("settled", 0))

    def page(self, after: int, count: int) -> list[tuple[Record, bool]]:
        """The next entries in order, and whether each is a reserve that has an answer."""
        answered = "EXISTS (SELECT 1 FROM entries AS c WHERE c.kind = 'commit' AND c.reserve = e.seq)"
        rows = self._connection.execute(
            f"SELECT {chain.COLUMNS}, {answered} FROM {chain.SOURCE} WHERE e.seq > ? ORDER BY e.seq LIMIT ?",
            (after, count),
        )
        return [(chain.read(row[:-1]), bool(row[-1])) for row in rows]

    def answer_digest(self, seq: int) -> str | None:
        """The SHA-256 of the answer that a commit stored."""
        for (data,) in self._connection.execute("SELECT answer FROM entries WHERE seq = ?", (seq,)):
            return hashlib.sha256(data).hexdigest() if isinstance(data, bytes) else None
        return None

    def check_file(self) -> None:
        """Walk every page of the file, and hold each index against its table."""
        if self._connection.execute("PRAGMA integrity_check(1)").fetchall() != [("ok",)]:
            raise LedgerError("corrupt", "the ledger file is damaged", fix=RESTORE)

    def _entry(self, seq: object, **fields: object) -> Record:
        """An entry that an index led to: it must say what the index said."""
        found = self._find("WHERE e.seq = ?", seq if isinstance(seq, int) else None)
        if found is None or any(found.body.get(name) != value for name, value in fields.items()):
            raise chain.broken(seq)
        return found

    def _find(self, where: str, *values: int | str | None) -> Record | None:
        rows = self._connection.execute(f"SELECT {chain.COLUMNS} FROM {chain.SOURCE} {where}", values).fetchall()
        return chain.read(rows[0]) if rows else None


def stored_loss(event: dict[str, Any]) -> Loss:
    """The loss of an entry. Raises LedgerError "newer" for an event that this version does not know."""
    try:
        return loss_from_json(event)
    except ValueError:
        message = "the ledger holds a kind of loss that this version does not know"
        raise LedgerError("newer", message, fix="upgrade discreet") from None
