"""One serialised transaction on the ledger: its authenticated head and states, and look-ups in the history.

Whatever is found through an index is verified by its entry's hash before it counts. What an index fails to find can
only lead to another charge; of a release that was charged before, as a stream's period, to none: what its secret state
holds of the release is held against the ledger besides (`ring_c.continual`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from discreet.errors import LedgerError
from discreet.trusted.ledger import chain
from discreet.trusted.ledger.accounts import PART, TOTAL, Charge, States, follow, lacking
from discreet.trusted.ledger.chain import Record
from discreet.trusted.ledger.note import Noted

StoredAnswer = tuple[bytes, Record, bool]
"""What was committed, its reserve, and whether the account that asks was debited for it."""


class Transaction(States):
    """Made after BEGIN, and valid until the end of what was begun.

    Raises LedgerError where the last entry or the states do not fit each other, or this program lacks the part that
    keeps some of them.
    """

    def __init__(self, connection: chain.Connection) -> None:
        super().__init__()
        self.connection = connection
        self._charges: dict[str, list[Charge]] | None = None
        head = self.find("TRUE ORDER BY e.seq DESC")
        if head is None:
            raise LedgerError.of("no entries")
        self.head = head
        for kind, name, state in connection.execute("SELECT kind, name, state FROM states"):
            if not (isinstance(kind, str) and isinstance(name, str) and isinstance(state, str)):
                raise chain.broken(head.seq)
            self.texts[kind, name] = state
        LedgerError.unless(chain.balances(self.texts) == head.body["balances"], "balances")
        LedgerError.unless(not lacking(kind for kind, _ in self.texts), "parts")

    def append(self, kind: str, fields: Mapping[str, object], answer: bytes | None = None) -> None:
        """Write the next entry, which becomes the head, with the states that follow from it. Raises as `States.after`
        does, and then nothing is written."""
        body = {"kind": kind, **fields}
        self.head = chain.append(self.connection, self.head, self.texts, body, self.after(body), answer)
        self._charges = None

    def own(self, analyst: str) -> str | None:
        """The analyst's own account, where he has one beside the whole budget's."""
        mine = analyst != TOTAL and not analyst.startswith(PART)
        return analyst if mine and ("account", analyst) in self.texts else None

    def charges(self, name: str) -> list[Charge]:
        if self._charges is None:
            self._charges = {}
            for record in self.entries():
                follow(self._charges, record.body)
        return self._charges.get(name, [])

    def find(self, where: str, **said: object) -> Record | None:
        """The first entry that a condition on these values finds, verified: it must say what was asked for."""
        row = self.connection.execute(f"{chain.SELECT} WHERE {where} LIMIT 1", tuple(said.values())).fetchone()
        found = None if row is None else chain.read(row)
        if found is not None and any(found.body.get(name) != value for name, value in said.items()):
            raise chain.broken(found.seq)
        return found

    def entry(self, seq: object, **said: object) -> Record:
        """An entry that is there, and says so."""
        found = self.find("e.seq = $1", seq=seq)
        if found is None or any(found.body.get(name) != value for name, value in said.items()):
            raise chain.broken(seq)
        return found

    def entries(self, after: int = 0, count: int = 1 << 62) -> Iterator[Record]:
        """The entries behind one, in order, each verified with the hash of the one before it; at most `count`."""
        rows = self.connection.execute(f"{chain.SELECT} WHERE e.seq > $1 ORDER BY e.seq LIMIT $2", (after, count))
        return map(chain.read, rows)

    def hash(self, seq: int) -> bytes | None:
        """The hash column of an entry."""
        if seq == self.head.seq:
            return self.head.hash
        found = self.connection.execute("SELECT hash FROM entries WHERE seq = $1", (seq,)).fetchone()
        return found[0] if found is not None and isinstance(found[0], bytes) else None

    def follows(self, noted: Noted) -> bool:
        """Whether the head is the noted entry, or follows from it, link by link."""
        return self.hash(noted.seq) == noted.hash and all(self.entries(noted.seq))

    def request(self, analyst: str, request: str | None) -> Record | None:
        """The entry that remembers an analyst's request; there is none of no name."""
        if request is None:
            return None
        return self.find("e.analyst = $1 AND e.request = $2", analyst=analyst, request=request)

    def committed(self, reserve_id: int) -> bool:
        """Whether a reserve's answer was committed: the entry that says so is verified (`find`)."""
        return self.find("e.kind = 'commit' AND e.reserve = $1", reserve=reserve_id) is not None

    def answer(self, key: str, account: str | None, reserve_id: int | None = None) -> StoredAnswer | None:
        """A committed answer: of `reserve_id`, or else one that `account` was debited for, or the first."""
        row = self.connection.execute(
            "SELECT c.seq, c.reserve, d.seq, c.answer FROM entries AS c"
            " LEFT JOIN entries AS d ON d.account = $1 AND d.key = $2 AND d.reserve = c.reserve"
            " WHERE c.kind = 'commit' AND c.key = $2 AND (c.reserve = $3 OR $3 IS NULL)"
            " ORDER BY d.seq IS NULL, c.seq LIMIT 1",
            (account, key, reserve_id),
        ).fetchone()
        if row is None:
            return None
        commit_seq, of, debit_seq, data = row
        commit = self.entry(commit_seq, kind="commit", key=key, reserve=of)
        reserve = self.entry(of, kind="reserve", key=key, reserve=of)
        if debit_seq is not None:
            self.entry(debit_seq, account=account, key=key, reserve=of)
        if not isinstance(data, bytes) or chain.digest(data) != commit.body["answer"]:
            raise chain.broken(commit.seq)
        return data, reserve, debit_seq is not None

    def answer_digest(self, seq: int) -> str | None:
        """The SHA-256 of the answer that is stored with an entry."""
        found = self.connection.execute("SELECT answer FROM entries WHERE seq = $1", (seq,)).fetchone()
        return chain.digest(found[0]) if found is not None and isinstance(found[0], bytes) else None

    def ends(self, after: int) -> Iterator[tuple[int, str, int]]:
        """The reserves behind an entry, and what ended some: number, kind, and the reserve that is meant."""
        kinds = "('reserve', 'commit', 'failure', 'end')"
        rows = f"SELECT seq, kind, reserve FROM entries WHERE seq > $1 AND kind IN {kinds} ORDER BY seq"
        return iter(self.connection.execute(rows, (after,)))

    def ended(self, reserve_id: int) -> bool:
        """Whether a reserve has an answer, a failure or an end."""
        return any(reserve == reserve_id for _, kind, reserve in self.ends(reserve_id) if kind != "reserve")

    def settled(self) -> int:
        """An entry up to which every reserve has come to its end, as the last reserve remembers it."""
        last = self.find("e.kind = 'reserve' ORDER BY e.seq DESC")
        return 0 if last is None else int(last.body.get("settled", 0))
