"""A copy of the ledger's last head in a second place, against rollback: a file of two lines beside the ledger,
`clinic.ledger.head` beside `clinic.ledger`.

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
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from discreet.errors import LedgerError

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
    if not place(ledger).exists():
        return None
    known = _lines(place(ledger).read_bytes())
    LedgerError.unless(known, "note damaged", note=place(ledger).name)
    return max(known)


def make(ledger: Path, head: Noted, *, anew: bool = False) -> None:
    """A note where there is none; with `anew` in the place of the one that is there: what was lost is lost, and the
    owner has said what it cost."""
    with appearing(place(ledger), anew=anew) as draft, draft.open("wb") as file:
        file.write(_line(head).ljust(_LINE) + b" " * _LINE)
        file.flush()
        os.fsync(file.fileno())


def advance(ledger: Path, head: Noted, busy_milliseconds: int) -> None:
    """Notes a head, unless the note holds a later one. It is on the disk when this returns.

    Raises LedgerError "moved" where the note is gone, "busy" where another process holds it.
    """
    LedgerError.unless(place(ledger).exists(), "note moved", note=place(ledger).name)
    with place(ledger).open("r+b", buffering=0) as file:
        _lock(file.fileno(), busy_milliseconds)
        content = os.pread(file.fileno(), 2 * _LINE, 0)
        known = _lines(content)
        if known and max(known).seq >= head.seq:
            return
        first = _lines(content[:_LINE])
        later = bool(first) and first == [max(known)]  # the line that is not the last one, or is torn, is written
        os.pwrite(file.fileno(), _line(head), _LINE if later else 0)
        os.fdatasync(file.fileno())


@contextmanager
def appearing(path: Path, *, anew: bool = False) -> Iterator[Path]:
    """A file of the owner's alone that appears at `path` whole and durable, or not at all.

    It is made at the path that is given, and then linked: of several processes that do so at once, the first wins.
    With `anew` it takes the place of the one that is there. What is written must be on the disk before the end.
    """
    draft = path.parent / f"{DRAFT}{secrets.token_hex(8)}"
    try:
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        yield draft
        (os.replace if anew else os.link)(draft, path)
        folder = os.open(path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
    except FileExistsError:
        pass
    finally:
        for suffix in ("", "-journal"):
            with suppress(OSError):
                draft.with_name(draft.name + suffix).unlink()


def _lock(descriptor: int, busy_milliseconds: int) -> None:
    end = time.monotonic() + busy_milliseconds / 1000
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            LedgerError.unless(time.monotonic() <= end, "note busy")
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
