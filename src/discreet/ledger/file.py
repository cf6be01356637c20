"""The open file of a ledger: transactions and their notes, threads and forks."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import apsw

from discreet.errors import LedgerError
from discreet.ledger import note
from discreet.ledger.chain import Record
from discreet.ledger.connection import connect, has_log, leave_log, only_name, translated
from discreet.ledger.look import Look
from discreet.ledger.note import RESTORE, SPENT_SINCE, Noted
from discreet.ledger.steps import step


class File:
    """One connection behind a lock, and the head that was last seen through it. A charge is acknowledged when it is in
    the file and its head is noted beside it (`note`). With `lost` what is noted is not asked for, until `accept`.

    In the steps' names a write is called by the kind of its entry: "reserve-before-begin",
    "reserve-after-begin", "reserve-before-insert", "reserve-after-insert",
    "reserve-before-commit-transaction", "reserve-after-commit-transaction", "reserve-after-note".
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
        self._seen: Record | None = None
        self._lost = lost
        _FILES.add(self)
        with self.read():
            pass

    def read(self) -> AbstractContextManager[Look]:
        """A transaction that sees one state of the ledger."""
        return self._look("read", "BEGIN", noted=False)

    def write(self, kind: str) -> AbstractContextManager[Look]:
        """A transaction alone with the ledger: all that it appends is on the disk at its end, or nothing."""
        return self._look(kind, "BEGIN IMMEDIATE", noted=not self._lost)

    @contextmanager
    def _look(self, name: str, begin: str, *, noted: bool) -> Iterator[Look]:
        """With `noted` the ledger must hold the noted entry: what others have charged since this object last looked is
        still there. Nobody else writes then, so what is noted was in the ledger before."""
        with self._lock, translated(self.where):
            step(f"{name}-before-begin")
            connection = self._use()
            try:
                connection.execute(begin)
                step(f"{name}-after-begin")
                look = Look(connection)
                if self._seen is not None and look.hash(self._seen.seq) != self._seen.hash:
                    raise rewritten()  # what was seen through this object must still be there
                if noted and self._path is not None and not _holds(look, note.read(self._path)):
                    raise rewritten()
                before = look.head
                yield look
                step(f"{name}-before-commit-transaction")
                connection.execute("COMMIT")
                step(f"{name}-after-commit-transaction")
                if self._path is not None and look.head is not before and not self._lost:
                    note.advance(self._path, _noted(look), self._busy_milliseconds)
                    step(f"{name}-after-note")
            except BaseException:
                self._roll_back(connection)
                raise
            self._seen = look.head

    def accept(self) -> None:
        """From now on the present head is the noted one, whatever was noted before: the owner's act."""
        if self._path is not None:
            with self.read() as look:
                note.make(self._path, _noted(look), anew=True)
        self._lost = False

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._release()

    def _use(self) -> apsw.Connection:
        if self._closed:
            raise LedgerError("closed", "the ledger was closed", fix="open it again")
        if self._connection is None:
            self._connection = self._open()
            self._pid, self._place = os.getpid(), self._find()
        if self._pid != os.getpid():
            fix = "keep the ledger in a file, and let Python do the fork"
            raise LedgerError("forked", "the ledger belongs to the process that opened it", fix=fix)
        if self._place != self._find():
            fix = "put it back, and start again"
            raise LedgerError("moved", "the ledger file was moved, replaced or deleted while it was open", fix=fix)
        if self._path is not None:
            only_name(self._path)
        if self._connection.in_transaction:
            raise LedgerError("busy", "this thread is in the middle of another charge", fix="try again after it")
        return self._connection

    def _open(self) -> apsw.Connection:
        """A connection to the ledger that knows what is noted. What it knows beyond that is noted, too."""
        first = self._seen is None and not self._lost  # later, a file that is gone must not be made anew
        if self._path is None:
            return connect(None, self._busy_milliseconds, make=first)
        while True:
            noted = None if self._lost else note.read(self._path)  # before the ledger: others may go on in between
            connection = connect(self._path, self._busy_milliseconds, make=first)
            try:
                old, head = has_log(connection), self._held(connection, noted)
                if not self._lost:
                    if noted is None:
                        note.make(self._path, head)
                    if noted is None or noted.seq < head.seq:
                        note.advance(self._path, head, self._busy_milliseconds)
            except BaseException as error:
                connection.close(True)
                if isinstance(error, LedgerError) and self._was_noted(noted):
                    continue  # another process has made the ledger, and goes on with it
                raise
            if not old:
                return connection
            connection.close(True)
            leave_log(self._path, self._busy_milliseconds)

    def _was_noted(self, noted: Noted | None) -> bool:
        """Whether there was no note, and now there is one."""
        return self._path is not None and noted is None and not self._lost and note.read(self._path) is not None

    def _held(self, connection: apsw.Connection, noted: Noted | None) -> Noted:
        """The ledger's head, held against the noted one."""
        connection.execute("BEGIN")
        look = Look(connection)
        if noted is not None and not look.follows(noted.seq, noted.hash):
            raise rewritten()
        if noted is None and look.head.seq > 1 and not has_log(connection) and not self._lost:
            assert self._path is not None
            name = note.place(self._path).name
            message = (
                f"{name} is missing, where the ledger's last entry was noted: nothing shows that this copy is whole"
            )
            raise LedgerError("unnoted", message, fix=f"put it back beside the ledger; else {SPENT_SINCE}")
        connection.execute("COMMIT")
        return _noted(look)

    def _find(self) -> tuple[int, int] | None:
        """Which file is at the path now. (Opening it to look would drop SQLite's locks on it.)"""
        if self._path is None:
            return None
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    def _roll_back(self, connection: apsw.Connection) -> None:
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except apsw.Error:
            self._release()

    def _release(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(apsw.Error):
                connection.close(True)

    def before_fork(self) -> None:
        self._lock.acquire()
        if self._path is not None:
            self._release()

    def after_fork(self, child: bool) -> None:
        if child:
            self._lock = threading.RLock()
        else:
            self._lock.release()


def rewritten() -> LedgerError:
    """The error for a history that lacks what was in it."""
    message = "noted history is missing: the ledger was cut, restored from an older copy or rewritten"
    return LedgerError("rewritten", message, fix=f"find the newest copy; else {RESTORE}")


def _holds(look: Look, noted: Noted | None) -> bool:
    """Whether the noted entry is there. Where the note itself is gone, whoever notes the next entry says so."""
    return noted is None or look.hash(noted.seq) == noted.hash


def _noted(look: Look) -> Noted:
    return Noted(look.head.seq, look.head.hash)


def _end() -> None:
    """At the end of the program each ledger is one file: a charge that a thread has begun is finished first."""
    for file in list(_FILES):
        file.close()


_FILES: weakref.WeakSet[File] = weakref.WeakSet()
_forking = threading.local()  # the files that this thread holds while it forks


def _before_fork() -> None:
    """Let go of every file before a fork; parent and child each open it again at their next use.

    SQLite keeps a process's locks in its memory. A child that inherits an open connection believes that it
    holds them, even through a connection of its own, and what it commits is lost when the parent closes.
    """
    _forking.files = sorted(_FILES, key=id)  # one order for all threads
    for file in _forking.files:
        file.before_fork()


def _after_fork(child: bool) -> None:
    for file in _forking.files:
        file.after_fork(child)
    _forking.files = []


atexit.register(_end)
os.register_at_fork(
    before=_before_fork,
    after_in_parent=lambda: _after_fork(False),
    after_in_child=lambda: _after_fork(True),
)
