"""The open file of a ledger: how it is made and opened, transactions and their notes, threads and forks.

The file is SQLite's, through apsw, which brings its own current copy of the library. It is written with a rollback
journal, not with a write-ahead log: between two transactions all that was charged is in the one file, so that to copy,
to move or to lose the files beside it takes nothing back. The journal exists while a commit writes. If a crash leaves
it, the next to open the ledger puts back what it holds; if it is lost or damaged then, the file is what it was, or is
refused (`note`): what stood in it was no acknowledged charge.
"""

from __future__ import annotations

import os
import secrets
import stat
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import apsw

from discreet.errors import LedgerError
from discreet.trusted.ledger import chain, note, schema
from discreet.trusted.ledger.note import Noted
from discreet.trusted.ledger.transaction import Transaction
from discreet.trusted.ring_a import forks


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Every failure of the storage becomes a LedgerError with a fixed text that quotes nothing stored."""
    try:
        yield
    except LedgerError as error:
        error.where = error.where or where
        raise
    except (apsw.Error, OSError, UnicodeError) as error:
        raise LedgerError.of_storage(error, where=where) from None


class LedgerFile:
    """One connection behind a lock, and the head that was last seen through it. A charge is acknowledged when it is in
    the file and its head is noted beside it (`note`). With `lost` what is noted is not asked for, until `accept`.
    """

    _busy_milliseconds = 10_000

    def __init__(self, path: Path | None, *, lost: bool = False) -> None:
        self._path = None if path is None else path.resolve()
        self.where = "the ledger in memory" if path is None else path.name
        self._lock = threading.RLock()
        self._connection: apsw.Connection | None = None
        self._place: tuple[int, int] | None = None
        self._pid = os.getpid()
        self._closed = False
        self._seen: Noted | None = None
        self._noted_of = None if lost else self._path
        forks.around(self)
        with translated(self.where):
            while not self._held():
                pass  # another process has just made the ledger, and goes on with it

    def read(self) -> AbstractContextManager[Transaction]:
        """A transaction that sees one state of the ledger."""
        return self._transaction("BEGIN", None)

    def write(self) -> AbstractContextManager[Transaction]:
        """A transaction alone with the ledger: all that it appends is on the disk at its end, or nothing."""
        return self._transaction("BEGIN IMMEDIATE", self._noted_of)

    @contextmanager
    def _transaction(self, begin: str, noted_of: Path | None) -> Iterator[Transaction]:
        """Where its head is noted, the ledger must hold the noted entry: what others have charged since this object
        last looked is still there. Nobody else writes then, so what is noted was in the ledger before."""
        with self._lock, translated(self.where):
            connection = self._use()
            try:
                connection.execute(begin)
                transaction = Transaction(connection)
                before = transaction.head
                # what was seen through this object must still be there; where the note is gone, its next line says so
                for noted in (self._seen, None if noted_of is None else note.read(noted_of)):
                    LedgerError.unless(noted is None or transaction.hash(noted.seq) == noted.hash, "rewritten")
                yield transaction
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
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
        if path is not None and not path.exists():
            LedgerError.unless(noted is None, "missing", note=note.place(path).name)
            with note.appearing(path) as draft:
                self._new(str(draft)).close(True)
        with self.read() as transaction:
            if path is not None and noted is None and transaction.head.seq > 1:
                LedgerError.unless(note.read(path), "unnoted", note=note.place(path).name)
                return False
            LedgerError.unless(noted is None or transaction.follows(noted), "rewritten")
        if path is not None:
            if noted is None:
                note.make(path, transaction.head)
            note.advance(path, transaction.head, self._busy_milliseconds)
        return True

    def accept(self) -> None:
        """From now on the present head is the noted one, whatever was noted before: the owner's act."""
        self._noted_of = self._path
        if self._path is not None:
            with self.read() as transaction:
                note.make(self._path, transaction.head, anew=True)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._release()

    def _use(self) -> apsw.Connection:
        """The connection, opened where there is none: the file must exist, and be the same as before."""
        LedgerError.unless(not self._closed, "closed")
        if self._connection is None:
            self._connection = self._connect()
            self._pid, self._place = os.getpid(), self._find()
        LedgerError.unless(self._pid == os.getpid(), "forked")
        LedgerError.unless(self._place == self._find(), "moved")
        LedgerError.unless(not self._connection.in_transaction, "nested")
        return self._connection

    def _connect(self) -> apsw.Connection:
        if self._path is None:
            return self._new(":memory:")
        self._find()
        connection = self._prepared(str(self._path), apsw.SQLITE_OPEN_READWRITE)
        schema.check(connection)
        LedgerError.unless(not connection.readonly("main"), "unwritable")
        return connection

    def _new(self, name: str) -> apsw.Connection:
        """A ledger with its opening entry alone, in an empty file."""
        connection = self._prepared(name, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
        schema.migrate(connection)
        with connection:
            chain.append(connection, chain.START, {}, {"kind": "open", "salt": secrets.token_hex(32)}, {})
        return connection

    def _prepared(self, name: str, flags: int) -> apsw.Connection:
        connection = apsw.Connection(name, flags=flags)
        connection.set_busy_timeout(self._busy_milliseconds)
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        connection.pragma("cell_size_check", True)
        # a commit returns when it is on the disk, and the journal's end too: a journal that came back would undo it
        connection.pragma("synchronous", "EXTRA")
        return connection

    def _find(self) -> tuple[int, int] | None:
        """Which file is at the path now. (Opening it to look would drop SQLite's locks on it.)

        It must have one name. Under two it would have two journals and two notes: after a crash, whoever comes by the
        other name does not see what has to be put back. Raises LedgerError "linked".
        """
        if self._path is None or not self._path.exists():
            return None
        found = self._path.stat()
        if found.st_nlink > 1 and stat.S_ISREG(found.st_mode):
            for draft in self._path.parent.glob(f"{note.DRAFT}*"):  # left by a crash, or somebody is just making it
                with suppress(OSError):
                    if draft.samefile(self._path):
                        draft.unlink()
            LedgerError.unless(self._path.stat().st_nlink == 1, "linked")
        return found.st_dev, found.st_ino

    def _release(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(apsw.Error):
                connection.close(True)

    def before_fork(self) -> None:
        """Let go of the file; parent and child each open it again at their next use.

        SQLite keeps a process's locks in its memory. A child that inherits an open connection believes that it
        holds them, even through a connection of its own, and what it commits is lost when the parent closes.
        """
        self._lock.acquire()
        if self._path is not None:
            self._release()

    def after_fork(self, child: bool) -> None:
        if child:
            self._lock = threading.RLock()
        else:
            self._lock.release()
