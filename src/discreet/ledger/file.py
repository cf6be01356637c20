"""The open file of a ledger: transactions, threads and forks."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import apsw

from discreet.errors import LedgerError
from discreet.ledger.chain import Record
from discreet.ledger.connection import connect, translated
from discreet.ledger.look import Look
from discreet.ledger.steps import step


class File:
    """One connection behind a lock, and the head that was last seen through it.

    In the steps' names a write is called by the kind of its entry: "reserve-before-begin",
    "reserve-after-begin", "reserve-before-insert", "reserve-after-insert",
    "reserve-before-commit-transaction", "reserve-after-commit-transaction".
    """

    _busy_milliseconds = 10_000

    def __init__(self, path: Path | None) -> None:
        self._path = None if path is None else path.resolve()
        self.where = "the ledger in memory" if path is None else path.name
        self._lock = threading.RLock()
        self._connection: apsw.Connection | None = None
        self._place: tuple[int, int] | None = None
        self._pid = os.getpid()
        self._closed = False
        self._seen: Record | None = None
        _FILES.add(self)
        with self.read():
            pass

    def read(self) -> AbstractContextManager[Look]:
        """A transaction that sees one state of the ledger."""
        return self._look("read", "BEGIN")

    def write(self, kind: str) -> AbstractContextManager[Look]:
        """A transaction alone with the ledger: all that it appends is on the disk at its end, or nothing."""
        return self._look(kind, "BEGIN IMMEDIATE")

    @contextmanager
    def _look(self, name: str, begin: str) -> Iterator[Look]:
        with self._lock, translated(self.where):
            step(f"{name}-before-begin")
            connection = self._use()
            try:
                connection.execute(begin)
                step(f"{name}-after-begin")
                look = Look(connection)
                if self._seen is not None and look.hash(self._seen.seq) != self._seen.hash:
                    raise rewritten()  # what was seen through this object must still be there
                yield look
                step(f"{name}-before-commit-transaction")
                connection.execute("COMMIT")
                step(f"{name}-after-commit-transaction")
            except BaseException:
                self._roll_back(connection)
                raise
            self._seen = look.head

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._release()

    def _use(self) -> apsw.Connection:
        if self._closed:
            raise LedgerError("closed", "the ledger was closed", fix="open it again")
        if self._connection is None:
            first = self._seen is None  # later, a file that is gone must not be made anew
            self._connection = connect(self._path, self._busy_milliseconds, make=first)
            self._pid, self._place = os.getpid(), self._find()
        if self._pid != os.getpid():
            fix = "keep the ledger in a file, and let Python do the fork"
            raise LedgerError("forked", "the ledger belongs to the process that opened it", fix=fix)
        if self._place != self._find():
            fix = "put it back, and start again"
            raise LedgerError("moved", "the ledger file was moved, replaced or deleted while it was open", fix=fix)
        if self._connection.in_transaction:
            raise LedgerError("busy", "this thread is in the middle of another charge", fix="try again after it")
        return self._connection

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
    return LedgerError("rewritten", message, fix="find the newest copy, and answer nothing from this one")


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


os.register_at_fork(
    before=_before_fork,
    after_in_parent=lambda: _after_fork(False),
    after_in_child=lambda: _after_fork(True),
)
