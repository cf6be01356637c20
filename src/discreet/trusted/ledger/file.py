"""A ledger in a file: how it is made and opened, and what holds of it over forks.

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
from contextlib import suppress
from pathlib import Path

import apsw

from discreet.errors import LedgerError
from discreet.trusted.ledger import chain, note, schema
from discreet.trusted.ledger.chain import Connection
from discreet.trusted.ledger.storage import Storage


class LedgerFile(Storage):
    """The ledger in a file, made where there is none; None keeps it in memory."""

    def __init__(self, path: Path | None, *, lost: bool = False) -> None:
        self._connection: apsw.Connection | None = None
        self._pid = os.getpid()
        self._place: tuple[int, int] | None = None
        where = "the ledger in memory" if path is None else path.name
        super().__init__(None if path is None else path.resolve(), where, lost=lost)

    @staticmethod
    def refusal(error: Exception) -> LedgerError | None:
        ours = isinstance(error, apsw.Error | OSError | UnicodeError)
        return LedgerError.of_storage(error, where="") if ours else None

    def _exists(self) -> bool:
        return self._path is not None and self._path.exists()

    def _make(self) -> None:
        assert self._path is not None
        with note.appearing(self._path) as draft:
            self._new(str(draft)).close(True)

    def _begin(self, connection: Connection, *, writing: bool) -> None:
        connection.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
        assert isinstance(connection, apsw.Connection)
        schema.version(connection)  # a newer program may have migrated the file since it was opened

    def whole(self) -> None:
        """Every page of the file, and each index against its table."""
        assert self._connection is not None
        LedgerError.unless(self._connection.pragma("integrity_check") == "ok", "damaged")

    def _use(self) -> apsw.Connection:
        """The connection, opened where there is none: the file must exist, and be the same as before."""
        LedgerError.unless(not self._closed, "closed")
        if self._connection is None:
            self._pid, self._place = os.getpid(), self._find()
            self._connection = self._connect()
        LedgerError.unless(self._pid == os.getpid(), "forked")
        LedgerError.unless(self._place == self._find(), "moved")
        LedgerError.unless(not self._connection.in_transaction, "nested")
        return self._connection

    def _connect(self) -> apsw.Connection:
        if self._path is None:
            return self._new(":memory:")
        connection = self._prepared(str(self._path), apsw.SQLITE_OPEN_READWRITE)
        schema.check(connection)
        LedgerError.unless(not connection.readonly("main"), "unwritable")
        return connection

    def _new(self, name: str) -> apsw.Connection:
        """A ledger with its opening entry alone, in an empty file."""
        connection = self._prepared(name, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
        schema.make(connection)
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
        super().before_fork()
        if self._path is not None:
            self._release()
