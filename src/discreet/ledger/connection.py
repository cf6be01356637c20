"""Opening and making a ledger's file, and the closed list of what can go wrong with it.

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
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw

from discreet.errors import LedgerError
from discreet.ledger import chain, note, schema
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
    note.RESTORE,
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
        if note.read(path) is not None:
            message = f"the ledger is gone: its last entry is noted in {note.place(path).name}"
            fix = f"put it back; else {note.RESTORE}; for other persons, begin anew: remove {note.place(path).name}"
            raise LedgerError("missing", message, fix=fix)
        _create(path, busy_milliseconds)
    only_name(path)
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        _prepare(connection, busy_milliseconds)
        schema.check(connection)
        if connection.readonly("main"):
            raise apsw.ReadOnlyError
    except BaseException:
        connection.close(True)
        raise
    return connection


def has_log(connection: apsw.Connection) -> bool:
    """Whether the ledger is still in WAL mode, in which earlier versions left it."""
    return bool(connection.pragma("journal_mode") == "wal")


def leave_log(path: Path, busy_milliseconds: int) -> None:
    """Take into the one file what an earlier version left in a write-ahead log, and go on without a log.

    For that nobody else may have the ledger open. Raises apsw.BusyError where somebody has.
    """
    end = time.monotonic() + busy_milliseconds / 1000
    while True:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            _prepare(connection, busy_milliseconds)
            if connection.pragma("journal_mode", "delete") == "delete":
                return
        except apsw.BusyError:
            pass
        finally:
            connection.close(True)
        if time.monotonic() > end:
            raise apsw.BusyError
        time.sleep(0.01 + secrets.randbelow(20) / 1000)  # of two who wait for each other one goes first


def only_name(path: Path) -> None:
    """Make sure that the file has one name.

    Under two names it would have two journals and two notes: after a crash, whoever comes by the other name does not
    see what has to be put back. Raises LedgerError "linked".
    """
    found = path.stat()
    if found.st_nlink == 1 or not stat.S_ISREG(found.st_mode):
        return
    for draft in path.parent.glob(f"{note.DRAFT}*"):  # left by a crash, or another process is just making the ledger
        with suppress(OSError):
            if draft.samefile(path):
                draft.unlink()
    if path.stat().st_nlink > 1:
        fix = "remove the other hard links, or make the ledger's name a file of its own: copy it, and rename the copy"
        raise LedgerError("linked", "the ledger file has several names", fix=fix)


def _prepare(connection: apsw.Connection, busy_milliseconds: int) -> None:
    connection.set_busy_timeout(busy_milliseconds)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    connection.pragma("cell_size_check", True)
    # a commit returns when it is on the disk, and the journal's end too: a journal that came back would undo it
    connection.pragma("synchronous", "EXTRA")


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
    draft = path.parent / f"{note.DRAFT}{secrets.token_hex(8)}"
    try:
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        connection = apsw.Connection(str(draft), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            _prepare(connection, busy_milliseconds)
            _fill(connection)
        finally:
            connection.close(True)
        step("create-before-link")
        os.link(draft, path)
        step("create-after-link")
        note.sync_folder(path)
    except FileExistsError:
        pass
    finally:
        for suffix in ("", "-journal"):
            with suppress(OSError):
                draft.with_name(draft.name + suffix).unlink()
