"""The hash chain: every entry authenticates all earlier entries and the balances after it.

hash_n = SHA-256(hash_{n−1} ‖ nonce_n ‖ body_n), where the body is canonical JSON. The nonce is 32 secret random bytes:
a published head hash cannot be searched for the low-entropy answers below it. Each body carries the states that the
entry set and, as `balances`, the hash of all states after it, so that the last entry alone authenticates every balance.

Without a key, a chain shows accidents and careless edits. A deliberate rewrite, a cut tail or a restored backup is
shown by a head hash that was noted elsewhere: `note`, and what the owner keeps.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Protocol

from discreet.errors import LedgerError
from discreet.trusted.ledger.note import Noted

Key = tuple[str, str]  # the kind and the name of a state
START = Noted(0, bytes(32))  # what the first entry is bound to
INDEXED = ("kind", "reserve", "analyst", "account", "key", "request")
SELECT = (
    "SELECT e.seq, e.kind, e.reserve, e.analyst, e.account, e.key, e.request, e.nonce, e.body, e.hash, p.hash"
    " FROM entries AS e LEFT JOIN entries AS p ON p.seq = e.seq - 1"
)


class Connection(Protocol):
    """A connection to the storage. A statement gives rows; its values are $1, $2, …, first met in this order: so every
    storage reads the same statements."""

    def execute(self, statement: str, values: Sequence[Any] = ..., /) -> Any: ...

    @property
    def in_transaction(self) -> bool: ...


_SET = "INSERT INTO states VALUES ($1, $2, $3) ON CONFLICT (kind, name) DO UPDATE SET state = excluded.state"


@dataclass(frozen=True)
class Record(Noted):
    """An entry as it was read, its hash verified."""

    body: Mapping[str, Any]


def canonical(value: object) -> str:
    """The one JSON text of a value: sorted keys, no spaces, ASCII only."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def link(previous: bytes, nonce: bytes, body: str) -> bytes:
    """The hash of an entry. The first two parts have a fixed length: nothing can shift between the three."""
    return hashlib.sha256(previous + nonce + body.encode()).digest()


def digest(content: bytes) -> str:
    """Its SHA-256."""
    return hashlib.sha256(content).hexdigest()


def balances(states: Mapping[Key, str]) -> str:
    """One hash of all states, each as canonical JSON."""
    return digest(b"".join(_state_hash(key, states[key]) for key in sorted(states)))


@lru_cache(maxsize=8192)
def _state_hash(key: Key, state: str) -> bytes:
    return hashlib.sha256(canonical([*key, state]).encode()).digest()


def broken(seq: object) -> LedgerError:
    """The error for an entry that differs from what was written."""
    return LedgerError.of("entry", entry=f"entry {seq}" if isinstance(seq, int) else "an entry")


def read(row: Sequence[object]) -> Record:
    """The entry of a row of SELECT. Raises LedgerError where its hash or its columns do not fit."""
    match row:
        case [int(seq), *columns, bytes(nonce), str(body), bytes(found), before]:
            previous = START.hash if seq == 1 and before is None else before
            if (
                isinstance(previous, bytes)
                and len(nonce) == len(previous) == 32
                and link(previous, nonce, body) == found
            ):
                fields = json.loads(body)
                if fields["seq"] == seq and [fields.get(name) for name in INDEXED] == columns:
                    return Record(seq, found, fields)
    raise broken(row[0])


def append(
    connection: Connection,
    head: Noted,
    states: dict[Key, str],
    fields: Mapping[str, object],
    changed: Mapping[Key, object],
    answer: bytes | None = None,
) -> Record:
    """Write the next entry and the states that it sets, in the caller's transaction; updates `states`."""
    seq = head.seq + 1
    for key, state in changed.items():
        states[key] = canonical(state)
        connection.execute(_SET, (*key, states[key]))
    written = [[*key, state] for key, state in sorted(changed.items())]
    body = {**fields, "seq": seq, "time": now(), "states": written, "balances": balances(states)}
    text, nonce = canonical(body), secrets.token_bytes(32)
    found = link(head.hash, nonce, text)
    row = (seq, *(body.get(name) for name in INDEXED), nonce, text, found, answer)
    connection.execute("INSERT INTO entries VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)", row)
    return Record(seq, found, body)


def now() -> str:
    """A label for people, and of a snapshot its age. Of balances, only those that renew with the calendar depend on it,
    and what an entry says of its day or period is no earlier than what was said before."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
