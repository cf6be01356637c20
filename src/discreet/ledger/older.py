"""Ledgers of earlier versions, which were kept in SQLite's WAL mode and had no note beside them."""

from __future__ import annotations

import secrets
import time
from contextlib import suppress
from pathlib import Path

import apsw

from discreet.trusted.ledger import note, schema
from discreet.trusted.ledger.file import LedgerFile
from discreet.trusted.ledger.storage import translated
from discreet.trusted.ledger.transaction import Transaction


def leave_log(path: Path) -> None:
    """Take into the one file what an earlier version left in a write-ahead log, and go on without a log, with a note.

    The note comes first: a ledger without either would be refused. For the rest nobody else may have the ledger open.
    Raises LedgerError "busy" where somebody has.
    """
    path = path.resolve()
    milliseconds = LedgerFile._busy_milliseconds
    end = time.monotonic() + milliseconds / 1000
    with translated(path.name, LedgerFile.refusal):
        while path.is_file() and _left(path, milliseconds):
            if time.monotonic() > end:
                raise apsw.BusyError
            time.sleep(0.01 + secrets.randbelow(20) / 1000)  # of two who wait for each other one goes first


def _left(path: Path, milliseconds: int) -> bool:
    """Whether there still is a log."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.set_busy_timeout(milliseconds)
        if not _has_log(connection):
            return False
        if note.read(path) is None:
            schema.check(connection)
            connection.execute("BEGIN")
            head = Transaction(connection).head
            connection.execute("COMMIT")
            note.make(path, head)
        with suppress(apsw.BusyError):
            return bool(connection.pragma("journal_mode", "delete") != "delete")
        return True
    finally:
        connection.close(True)


def _has_log(connection: apsw.Connection) -> bool:
    with suppress(apsw.Error):  # what is no ledger is refused when it is opened
        return bool(connection.pragma("journal_mode") == "wal")
    return False
