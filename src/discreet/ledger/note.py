"""The last head in a second place: a file of two lines beside the ledger, `clinic.ledger.head` beside
`clinic.ledger`.

The ledger is one file: SQLite's rollback journal is there during a commit only, and what it holds then was not promised
to anybody. So a file that was copied, cut, set back or damaged is the only danger, and what an accident does to one
file it seldom does to two at once.

What is written when: a commit is on the disk first, then its head is noted here, on the disk too, and only then is the
charge acknowledged. Of the processes that note at once, each takes the lock of this file, and a head is never replaced
by an earlier one. So, whoever dies at whatever instruction:

* every acknowledged charge is in the noted head or before it, and
* every noted head was in the ledger before it was noted: the ledger may be ahead, by what nobody was told of.

What is checked at opening: the note is read first, the ledger afterwards (others may go on in between, so never the
other way round). The ledger is taken only where its last entry is the noted one, or follows from it link by link. The
last entry authenticates all balances (`chain`), and no entry that follows gives back a charge. So a ledger that opens
knows every acknowledged charge: of a lost tail, an older copy, a lost or foreign journal, a flipped byte, each is
refused or changes no balance. The two lines are written in turn: a write that a crash tears leaves the line before it.

A note that is lost is refused as well, but for two kinds of ledger: one with its opening entry alone, which charges
nothing and is as good as a new one, and one that an earlier version left in WAL mode, which had no note. Both get their
note before anything else is written. What this cannot see is an older ledger together with its own older note: that
takes a head that was noted elsewhere (`discreet ledger --expect-head`).
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from discreet.errors import LedgerError
from discreet.ledger.steps import step

SPENT_SINCE = (
    "lower the budget by what was spent since: `discreet ledger DECLARATION --spend-unknown AMOUNT` (0, if nothing was)"
)
RESTORE = f"restore the ledger from its latest backup, and {SPENT_SINCE}"

DRAFT = ".discreet-"  # what is being made has another name until it is whole
_LINE = 4096  # a line each in a block of the disk: what tears one leaves the other
_BODY = 20 + 1 + 64  # the entry's number and its hash
_SUM = 16


@dataclass(frozen=True, order=True)
class Noted:
    """The number of an entry, and its hash."""

    seq: int
    hash: bytes


def place(ledger: Path) -> Path:
    """Where the head of a ledger is noted."""
    return ledger.with_name(f"{ledger.name}.head")


def read(ledger: Path) -> Noted | None:
    """The noted head; None where there is no note. Raises LedgerError "corrupt" where neither line is whole."""
    try:
        content = place(ledger).read_bytes()
    except FileNotFoundError:
        return None
    known = _lines(content)
    if not known:
        message = f"the note of the ledger's last entry, {place(ledger).name}, is damaged"
        raise LedgerError("corrupt", message, fix=f"put a whole one back; else {SPENT_SINCE}")
    return max(known)


def make(ledger: Path, head: Noted, *, anew: bool = False) -> None:
    """A note where there is none, whole or not at all; of several processes that do so at once the first wins.

    With `anew` it takes the place of the one that is there: what was lost is lost, and the owner has said what it cost.
    """
    draft = ledger.parent / f"{DRAFT}{secrets.token_hex(8)}"
    try:
        descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        try:
            os.write(descriptor, _line(head).ljust(_LINE) + b" " * _LINE)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        step("note-before-link")
        if anew:
            os.replace(draft, place(ledger))
        else:
            os.link(draft, place(ledger))
        step("note-after-link")
        sync_folder(ledger)
    except FileExistsError:
        pass
    finally:
        with suppress(OSError):
            draft.unlink()


def advance(ledger: Path, head: Noted, busy_milliseconds: int) -> None:
    """Note a head, unless a later one stands there. It is on the disk when this returns.

    Raises LedgerError "moved" where the note is gone, "busy" where another process holds it.
    """
    try:
        descriptor = os.open(place(ledger), os.O_RDWR)
    except FileNotFoundError:
        message = f"the note of the ledger's last entry, {place(ledger).name}, was moved or deleted while it was open"
        raise LedgerError("moved", message, fix="put it back, and start again") from None
    try:
        _lock(descriptor, busy_milliseconds)
        content = os.pread(descriptor, 2 * _LINE, 0)
        known = _lines(content)
        if known and max(known).seq >= head.seq:
            return
        first = _lines(content[:_LINE])
        later = bool(first) and first == [max(known)]  # the line that is not the last one, or is torn, is written
        os.pwrite(descriptor, _line(head), _LINE if later else 0)
        os.fdatasync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(ledger: Path) -> None:
    """What was made in the ledger's folder is on the disk."""
    folder = os.open(ledger.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _lock(descriptor: int, busy_milliseconds: int) -> None:
    end = time.monotonic() + busy_milliseconds / 1000
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                fix = "try again, or end that process"
                raise LedgerError("busy", "another process holds the note of the ledger's head", fix=fix) from None
            time.sleep(0.001)


def _line(head: Noted) -> bytes:
    body = f"{head.seq:020d} {head.hash.hex()}"
    return f"{body} {_sum(body)}\n".encode()


def _lines(content: bytes) -> list[Noted]:
    """The lines that are whole."""
    found = []
    for start in (0, _LINE):
        line = content[start : start + _BODY + 1 + _SUM]
        body, _, check = line.decode("ascii", "replace").rpartition(" ")
        if len(body) == _BODY and check == _sum(body):
            with suppress(ValueError):  # a line that no ledger wrote
                found.append(Noted(int(body[:20]), bytes.fromhex(body[21:])))
    return found


def _sum(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()[:_SUM]
