"""What holds of a ledger wherever it is kept: one connection behind a lock, transactions and their notes.

`file` keeps it in a file of this machine; `ledger_server` on a PostgreSQL server for several. In both the order is the
same: what was written is durable, then its head is noted on this machine (`note`), and only then does `write` return.
"""

from __future__ import annotations

import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from discreet.errors import LedgerError
from discreet.trusted.ledger import note, processes
from discreet.trusted.ledger.chain import Connection
from discreet.trusted.ledger.note import Noted
from discreet.trusted.ledger.transaction import Transaction


@contextmanager
def translated(where: str, refusal: Callable[[Exception], LedgerError | None]) -> Iterator[None]:
    """Every failure of the storage becomes a LedgerError with a fixed text."""
    try:
        yield
    except LedgerError as error:
        error.where = error.where or where
        raise
    except Exception as error:
        refused = refusal(error)
        if refused is None:
            raise
        refused.where = where
        raise refused from None


class Storage(ABC):
    """One connection behind a lock, and the head that was last seen through it. A charge is acknowledged when it is
    durable and its head is noted beside `path` (`note`); a ledger in memory has no path. With `lost` what is noted is
    not asked for, until `accept`: the owner is about to say what it held.
    """

    _busy_milliseconds = 10_000

    def __init__(self, path: Path | None, where: str, *, lost: bool = False) -> None:
        self._path = path
        self.where = where
        self._lock = threading.RLock()
        self._closed = False
        self._seen: Noted | None = None
        self._noted_of = None if lost else self._path
        _told.add(self)
        with translated(self.where, self.refusal):
            while not self._held():
                pass  # another process has just made the ledger, and goes on with it

    def read(self) -> AbstractContextManager[Transaction]:
        """A transaction that sees one state of the ledger."""
        return self._transaction(writing=False)

    def write(self) -> AbstractContextManager[Transaction]:
        """A transaction alone with the ledger: all that it appends is durable at its end, or nothing."""
        return self._transaction(writing=True)

    @contextmanager
    def _transaction(self, *, writing: bool) -> Iterator[Transaction]:
        """Where its head is noted, the ledger must hold the noted entry: what others have charged since this object
        last looked is still there. Nobody else writes then, so what is noted was in the ledger before."""
        noted_of = self._noted_of if writing else None
        with self._lock, translated(self.where, self.refusal):
            connection = self._use()
            try:
                self._begin(connection, writing=writing)
                transaction = Transaction(connection)
                before = transaction.head
                # what was seen through this object must still be there; where the note is gone, its next line says so
                for noted in (self._seen, None if noted_of is None else note.read(noted_of)):
                    LedgerError.unless(noted is None or transaction.hash(noted.seq) == noted.hash, "rewritten")
                yield transaction
                if not writing and transaction.head is not before:
                    raise ValueError("an entry is appended where the ledger is only read")
                self._commit(connection, None if transaction.head is before else transaction.head)
            finally:
                if connection.in_transaction:
                    self._undo(connection)
            if noted_of is not None and transaction.head is not before:
                note.advance(noted_of, transaction.head, self._busy_milliseconds)
            self._seen = transaction.head

    def _held(self) -> bool:
        """Make the ledger where there is none; else hold it against its note, and note what it knows beyond that: a
        ledger that opens knows every acknowledged charge. False where another process made both meanwhile.

        A new ledger appears whole or not at all, so that an empty file is always a damaged one. Where one was noted
        beside it, it was lost.
        """
        path = self._noted_of
        noted = None if path is None else note.read(path)  # before the ledger: others may go on in between
        if path is not None and not self._exists():
            LedgerError.unless(noted is None, "missing", note=note.place(path).name)
            self._make()
        with self.read() as transaction:
            if path is not None and noted is None and transaction.head.seq > 1:
                LedgerError.unless(note.read(path), self._unnoted, note=note.place(path).name)
                return False
            LedgerError.unless(noted is None or transaction.follows(noted), "rewritten")
        if path is not None:
            if noted is None:
                note.make(path, transaction.head)
            note.advance(path, transaction.head, self._busy_milliseconds)
        return True

    _unnoted = "unnoted"

    def accept(self) -> None:
        """From now on the present head is the noted one, whatever was noted before: the owner's act."""
        self._noted_of = self._path
        if self._path is not None:
            with self.read() as transaction:
                note.make(self._path, transaction.head, anew=True)

    def close(self) -> None:
        """Lets go of the connection, for good: whoever uses the ledger afterwards gets LedgerError "closed"."""
        with self._lock:
            self._closed = True
            self._release()

    def lives(self, process: str | None) -> bool:
        """Whether a process that reserved here still runs. To be asked within a transaction."""
        return processes.lives(process)

    @staticmethod
    @abstractmethod
    def refusal(error: Exception) -> LedgerError | None:
        """What is said of a failure of the storage, and quotes nothing stored; None for other errors."""

    @abstractmethod
    def _exists(self) -> bool:
        """Whether there is a ledger at its place, damaged or not."""

    @abstractmethod
    def _make(self) -> None:
        """Make a ledger with its opening entry alone, durably: whole or not at all. Of several who do, one does."""

    @abstractmethod
    def _use(self) -> Connection:
        """The connection, opened where there is none, to the same ledger as before. Nobody else uses it."""

    @abstractmethod
    def _begin(self, connection: Connection, *, writing: bool) -> None:
        """Begin a transaction on a ledger of this version; one that is `writing` is alone with it."""

    def _commit(self, connection: Connection, head: Noted | None) -> None:  # noqa: ARG002
        """End a transaction whose last entry is `head`, where it wrote one: what it wrote is durable then."""
        connection.execute("COMMIT")

    def _undo(self, connection: Connection) -> None:
        """End a transaction of which nothing stays."""
        connection.execute("ROLLBACK")

    @abstractmethod
    def whole(self) -> None:
        """Raise LedgerError where the storage itself is damaged, as far as it can tell. Within a transaction."""

    @abstractmethod
    def _release(self) -> None:
        """Let go of the connection, where there is one."""

    def before_fork(self) -> None:
        """Told by the thread that forks: no other thread is within a transaction then."""
        self._lock.acquire()

    def after_fork(self, child: bool) -> None:
        """Told in the parent, and in the child, where that thread is the only one."""
        if child:
            self._lock = threading.RLock()
        else:
            self._lock.release()


_told: weakref.WeakSet[Storage] = weakref.WeakSet()  # of every fork
_forking = threading.local()  # whom this thread has told that it forks


def _before() -> None:
    _forking.told = sorted(_told, key=id)  # one order for all threads
    for told in _forking.told:
        told.before_fork()


def _after(child: bool) -> None:
    for told in _forking.told:
        told.after_fork(child)
    _forking.told = []


os.register_at_fork(before=_before, after_in_parent=lambda: _after(False), after_in_child=lambda: _after(True))
