"""The hash chain: every entry is bound to all that came before it, and to the balances that it leaves behind.

hash_n = SHA-256(hash_{n−1} ‖ nonce_n ‖ body_n), where the body is canonical JSON. The nonce is 32 secret
random bytes: a published head hash cannot be searched for the low-entropy answers below it. Each body carries
the states that the entry set and, as `balances`, the hash of all states after it, so that the last entry
alone authenticates every balance.

Without a key, a chain shows accidents and careless edits. A deliberate rewrite, a cut tail or a restored
backup is shown by a head hash that was noted elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import apsw

from discreet.errors import LedgerError
from discreet.ledger.note import RESTORE

Key = tuple[str, str]  # the kind and the name of a state
States = Mapping[Key, str]  # their canonical JSON
Row = Sequence[object]

START = bytes(32)  # what the first entry is bound to
INDEXED = ("kind", "reserve", "analyst", "account", "key", "request")
COLUMNS = "e.seq, e.kind, e.reserve, e.analyst, e.account, e.key, e.request, e.nonce, e.body, e.hash, p.hash"
SOURCE = "entries AS e LEFT JOIN entries AS p ON p.seq = e.seq - 1"


@dataclass(frozen=True)
class Record:
    """An entry as it was read, its hash verified."""

    seq: int
    body: Mapping[str, Any]
    hash: bytes


def canonical(value: object) -> str:
    """The one JSON text of a value: sorted keys, no spaces, ASCII only."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def link(previous: bytes, nonce: bytes, body: str) -> bytes:
    """The hash of an entry. The first two parts have a fixed length: nothing can shift between the three."""
    return hashlib.sha256(previous + nonce + body.encode()).digest()


def balances(states: States) -> str:
    """One hash of all states."""
    whole = hashlib.sha256()
    for key in sorted(states):
        whole.update(_state_hash(key, states[key]))
    return whole.hexdigest()


@lru_cache(maxsize=8192)
def _state_hash(key: Key, state: str) -> bytes:
    return hashlib.sha256(canonical([*key, state]).encode()).digest()


def broken(seq: object) -> LedgerError:
    """The error for an entry that is not what was written."""
    place = f"entry {seq}" if isinstance(seq, int) else "an entry"
    return LedgerError("corrupt", f"{place} is not as it was written", fix=RESTORE)


def read(row: Row) -> Record:
    """The entry of a row of COLUMNS. Raises LedgerError where its hash or its columns do not fit."""
    seq, *columns, nonce, body, found, previous = row
    previous = START if seq == 1 and previous is None else previous
    if not (isinstance(seq, int) and isinstance(body, str)):
        raise broken(seq)
    if not (isinstance(nonce, bytes) and isinstance(found, bytes) and isinstance(previous, bytes)):
        raise broken(seq)
    if len(nonce) != 32 or len(previous) != 32 or link(previous, nonce, body) != found:
        raise broken(seq)
    fields = json.loads(body)
    if fields["seq"] != seq or [fields.get(name) for name in INDEXED] != columns:
        raise broken(seq)
    return Record(seq, fields, found)


def append(
    connection: apsw.Connection,
    head: Record | None,
    states: dict[Key, str],
    fields: Mapping[str, object],
    changed: Mapping[Key, object],
    answer: bytes | None = None,
) -> Record:
    """Write the next entry and the states that it sets, in the caller's transaction; updates `states`."""
    seq = 1 if head is None else head.seq + 1
    for key, state in changed.items():
        states[key] = canonical(state)
        connection.execute("INSERT OR REPLACE INTO states VALUES (?, ?, ?)", (*key, states[key]))
    body = {
        **fields,
        "seq": seq,
        "time": now(),
        "states": [[*key, state] for key, state in sorted(changed.items())],
        "balances": balances(states),
    }
    text, nonce = canonical(body), secrets.token_bytes(32)
    found = link(START if head is None else head.hash, nonce, text)
    row = (seq, *(body.get(name) for name in INDEXED), nonce, text, found, answer)
    connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    return Record(seq, body, found)


def now() -> str:
    """A label for people: nothing depends on it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
