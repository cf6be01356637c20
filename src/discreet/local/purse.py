"""A respondent's own budget store: the secret, the reports of each window, and their cost. One file."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import apsw

from discreet.errors import LedgerError

_SCHEMA = """
CREATE TABLE IF NOT EXISTS secret (only INTEGER PRIMARY KEY CHECK (only = 0), bytes BLOB NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS given (
    collection TEXT NOT NULL, window TEXT NOT NULL, turn INTEGER NOT NULL,
    part INTEGER NOT NULL, report INTEGER NOT NULL, cost TEXT NOT NULL,
    PRIMARY KEY (collection, window, turn)
) STRICT, WITHOUT ROWID;
"""
SECRET = 32  # bytes
_BUSY_MILLISECONDS = 10_000
_FIX = "look at the file and its folder; if it is damaged, a new one starts with a new secret and nothing spent"


class Purse:
    """The ledger of one device, in a file or, with None, in memory.

    Every change is one transaction that takes the write lock before it reads, and is on the disk when it returns: two
    processes cannot both spend what is left, and a process that is killed has spent it or not at all.
    """

    def __init__(self, path: str | Path | None) -> None:
        self._where = "the respondent's ledger" if path is None else str(path)
        with self._translated():
            if path is not None:
                os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            self._connection = apsw.Connection(":memory:" if path is None else str(path))
            self._connection.set_busy_timeout(_BUSY_MILLISECONDS)
            self._connection.pragma("synchronous", "EXTRA")
            with self._transaction():
                self._connection.execute(_SCHEMA)
                fill = "INSERT INTO secret VALUES (0, ?) ON CONFLICT DO NOTHING"
                self._connection.execute(fill, (secrets.token_bytes(SECRET),))

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (apsw.Error, OSError) as error:
            busy = isinstance(error, apsw.BusyError)
            what = "another process holds the ledger" if busy else "the ledger cannot be read and written"
            raise LedgerError("storage", what, where=self._where, fix="try again" if busy else _FIX) from None

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    @contextmanager
    def changing(self) -> Iterator[None]:
        """What happens inside is one transaction, and durable afterwards."""
        with self._translated(), self._transaction():
            yield

    @property
    def secret(self) -> bytes:
        """The device's secret, `SECRET` bytes. Raises LedgerError "storage" where it cannot be read, "corrupt" where it
        is none."""
        with self._translated():
            found = self._connection.execute("SELECT bytes FROM secret").fetchall()[0][0]
        if not isinstance(found, bytes) or len(found) != SECRET:
            raise self._damaged()
        return found

    def _damaged(self) -> LedgerError:
        return LedgerError("corrupt", "the ledger is damaged", where=self._where, fix=_FIX)

    def given(self, collection: str, window: str) -> list[tuple[int, int]]:
        """(part, report) of all reports of a window, as they were remembered."""
        with self._translated():
            ask = "SELECT part, report FROM given WHERE collection = ? AND window = ? ORDER BY turn"
            rows: list[tuple[int, int]] = list(self._connection.execute(ask, (collection, window)))
        return rows

    def spent(self) -> Fraction:
        """What all reports of this ledger cost, in epsilon."""
        with self._translated():
            costs = [str(cost) for (cost,) in self._connection.execute("SELECT cost FROM given")]
        try:
            return sum(map(Fraction, costs), Fraction(0))
        except ValueError:
            raise self._damaged() from None

    def give(self, collection: str, window: str, turn: int, part: int, report: int, cost: Fraction) -> None:
        """Write a report down, inside `changing`."""
        row = (collection, window, turn, part, report, str(cost))
        self._connection.execute("INSERT INTO given VALUES (?, ?, ?, ?, ?, ?)", row)

    def close(self) -> None:
        self._connection.close()
