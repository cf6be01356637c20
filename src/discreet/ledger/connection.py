"""Opening and making a ledger's file, and the closed list of what can go wrong with it.

The file is SQLite's, through apsw, which brings its own current copy of the library: older ones can damage a
WAL file that two processes write.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw

from discreet.errors import LedgerError
from discreet.ledger import chain, schema
from discreet.ledger.steps import step

_BUSY = ("busy", "another process holds the ledger", "try again, or end that process")
_FULL = ("full", "the disk is full: the ledger cannot grow", "free some space")
_UNWRITABLE = (
    "unwritable",
    "the ledger file cannot be read and written",
    "look at its disk, and at the rights of the file and of its folder",
)
_CORRUPT = (
    "corrupt",
    "the ledger file is damaged, or no ledger",
    "restore the ledger from its latest backup",
)
_OTHER = ("storage", "the ledger's storage failed", "try again")
_PROBLEMS: dict[type[Exception], tuple[str, str, str]] = {
    apsw.BusyError: _BUSY,
    apsw.LockedError: _BUSY,
    apsw.ProtocolError: _BUSY,
    apsw.FullError: _FULL,
    apsw.AuthError: _UNWRITABLE,
    apsw.CantOpenError: _UNWRITABLE,
    apsw.IOError: _UNWRITABLE,
    apsw.PermissionsError: _UNWRITABLE,
    apsw.ReadOnlyError: _UNWRITABLE,
    apsw.ConstraintError: _CORRUPT,
    apsw.CorruptError: _CORRUPT,
    apsw.FormatError: _CORRUPT,
    apsw.MismatchError: _CORRUPT,
    apsw.NotADBError: _CORRUPT,
    apsw.RangeError: _CORRUPT,
    apsw.SQLError: _CORRUPT,
    apsw.SchemaChangeError: _CORRUPT,
}


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Every failure of the storage becomes a LedgerError with a fixed text that quotes nothing stored."""
    try:
        yield
    except LedgerError as error:
        error.where = error.where or where
        raise
    except (apsw.Error, OSError, UnicodeError) as error:
        if isinstance(error, apsw.Error):
            code, message, fix = _PROBLEMS.get(type(error), _OTHER)
        else:  # a file that cannot be made; stored text that is none
            code, message, fix = _UNWRITABLE if isinstance(error, OSError) else _CORRUPT
        raise LedgerError(code, message, where=where, fix=fix) from None


def connect(path: Path | None, busy_milliseconds: int, *, make: bool) -> apsw.Connection:
    """Open the ledger at `path`, with `make` making it where there is none; None is one in memory."""
    if path is None:
        connection = apsw.Connection(":memory:")
        _prepare(connection, busy_milliseconds)
        _fill(connection)
        return connection
    if make and not path.exists():
        _create(path, busy_milliseconds)
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        _prepare(connection, busy_milliseconds)
        schema.check(connection)
        if connection.readonly("main"):
            raise apsw.ReadOnlyError
        if connection.pragma("journal_mode", "wal") != "wal":
            raise apsw.CantOpenError
    except BaseException:
        connection.close(True)
        raise
    return connection


def _prepare(connection: apsw.Connection, busy_milliseconds: int) -> None:
    connection.set_busy_timeout(busy_milliseconds)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    connection.pragma("cell_size_check", True)
    connection.pragma("synchronous", "FULL")  # a commit returns when it is on the disk


def _fill(connection: apsw.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    schema.create(connection)
    chain.append(connection, None, {}, {"kind": "open", "salt": secrets.token_hex(32)}, {})
    connection.execute("COMMIT")


def _create(path: Path, busy_milliseconds: int) -> None:
    """A new ledger appears at `path` whole or not at all, so that an empty file there is always a damaged
    one.

    It is made under another name and then linked: of several processes that do so at once, the first wins.
    """
    draft = path.parent / f".discreet-{secrets.token_hex(8)}"
    try:
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        connection = apsw.Connection(str(draft), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            _prepare(connection, busy_milliseconds)
            connection.pragma("journal_mode", "wal")
            _fill(connection)
        finally:
            connection.close(True)
        step("create-before-link")
        os.link(draft, path)
        step("create-after-link")
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except FileExistsError:
        pass
    finally:
        for suffix in ("", "-wal", "-shm"):
            with suppress(OSError):
                draft.with_name(draft.name + suffix).unlink()
