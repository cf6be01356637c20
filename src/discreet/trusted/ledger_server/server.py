"""A ledger on a PostgreSQL server, for several machines.

There is one head at a time: who writes has locked `origin` before the transaction sees anything, so it sees what the
one before committed. Nobody waits for a lock of ours longer than the server is told to keep it for a client that is
silent. What is committed is durable where the server says so (`synchronous_commit`), then noted on this machine, and
then acknowledged.

**A COMMIT without an answer.** The connection may end after COMMIT was sent, and then the server may have done it or
not. So another connection takes its turn to write: the lock is had when the first session is over, one way or the
other. Where the entry is there, by its hash, it was committed, and is acknowledged when a commit of our own behind it
is as durable as any. Where it is not, nothing was charged. Where no connection can be had in time, it is not
acknowledged, and the charge stands if the entry is there.

**Who lives.** Each process names its sessions on the server by itself, with a name that no other process has
(`processes.this_process`). One of another machine lives while a session of its name does: the server ends a session
whose process has ended at once, and one whose machine does not answer within half a minute. So a death is always seen,
and two things look like one: a machine cut off for so long, and all others when the server has just started. Then a
failure is counted for what they were measuring, and stays counted whatever comes afterwards: an answer that is
committed later is given, and nobody's failure is taken back for it. No clock is asked.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from discreet.errors import LedgerError
from discreet.trusted.ledger import chain, processes, schema
from discreet.trusted.ledger.chain import Connection
from discreet.trusted.ledger.note import Noted
from discreet.trusted.ledger.storage import Storage, translated
from discreet.trusted.ledger_server import tables

_SETTINGS = {
    "client_encoding": "UTF8",
    "client_min_messages": "warning",
    "synchronous_commit": "on",
    "statement_timeout": "0",
    "idle_session_timeout": "0",
    "idle_in_transaction_session_timeout": "60s",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "4",
    # no statement reads all entries, whatever the server believes of their number
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
    "quote_all_identifiers": "off",  # what the tables are held against
}
_STATES = {
    "08": "server ended",
    "22": "server text",
    "23": "corrupt",
    "25006": "server gone",
    "25": "server ended",
    "28": "server login",
    "3D": "server login",
    "40": "busy",
    "42501": "server rights",
    "42": "tables",
    "53": "server many",
    "53100": "full",
    "54": "server text",
    "55P03": "busy",
    "57": "server ended",
}
"""What is said of the server's codes, by the longest beginning that is here. Its own words may quote what is stored."""
_LOGIN = ("password", "authentication", "pg_hba", 'role "', 'database "')
_TOGETHER = ("23505", "42P06", "42P07", "42710", "42723")  # another process has just made the same
_LIVES = (
    "SELECT 1 FROM pg_stat_activity WHERE application_name = $1"
    " AND usesysid = (SELECT oid FROM pg_roles WHERE rolname = current_user)"
)


class _Session(psycopg.Connection[Any]):
    def __del__(self, *_: Any) -> None:
        """It ends with whoever has it, as a file does, and no warning is given."""

    @property
    def in_transaction(self) -> bool:
        return self.info.transaction_status not in (TransactionStatus.IDLE, TransactionStatus.UNKNOWN)


class LedgerServer(Storage):
    """The ledger in a schema of a server, made where there is none."""

    def __init__(self, server: str, place: str, beside: Path, name: str, *, lost: bool = False) -> None:
        self._server, self._schema = server, place
        self._connection: _Session | None = None
        self._lost = lost
        self._checked = False
        self._warned: list[object] = []
        super().__init__(beside.resolve(), name, lost=lost)

    _unnoted = "server unnoted"

    @staticmethod
    def refusal(error: Exception) -> LedgerError | None:
        if isinstance(error, psycopg.Error):
            state = error.sqlstate or ""
            reasons = (_STATES[state[:length]] for length in (5, 2) if state[:length] in _STATES)
            return LedgerError.of(next(reasons, "storage" if state else _unsaid(error)))
        return LedgerError.of_storage(error, where="") if isinstance(error, OSError | UnicodeError) else None

    def accept(self) -> None:
        """Where the ledger is now is where it was made."""
        with self._lock, self.write() as transaction:
            there = tables.origin(transaction.connection, self._schema)
            transaction.connection.execute("UPDATE origin SET server = $1", (there,))
        self._lost = False
        super().accept()

    def lives(self, process: str | None) -> bool:
        """One of this machine is looked for here, another's by its sessions on the server."""
        if process is None or process.split()[0] == processes.this_process().split()[0]:
            return processes.lives(process)
        assert self._connection is not None
        return self._connection.execute(_LIVES, (_named(process),)).fetchone() is not None

    def cautions(self) -> list[str]:
        """Settings of the server that are off, so that a power cut may take back what is said to be durable."""
        with self._lock, translated(self.where, self.refusal):
            rows = self._use().execute(
                "SELECT name FROM pg_settings WHERE name = ANY($1) AND setting = 'off'", (_RISKS,)
            )
            return [name for (name,) in rows]

    def whole(self) -> None:
        """The server looks after its pages, as far as it was told to."""

    def _exists(self) -> bool:
        return tables.there(self._open(), self._schema)

    def _make(self) -> None:
        connection, name = self._open(), self._schema
        try:
            with connection.transaction():
                if connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = $1", (name,)).fetchone() is None:
                    connection.execute(f"CREATE SCHEMA {tables.quoted(name)}")
                tables.enter(connection, name)
                for statement in tables.TABLES:
                    connection.execute(statement)
                there = tables.origin(connection, name)
                connection.execute("INSERT INTO origin VALUES ($1, $2)", (schema.VERSION, there))
                chain.append(connection, chain.START, {}, {"kind": "open", "salt": secrets.token_hex(32)}, {})
        except psycopg.Error as error:
            if error.sqlstate not in _TOGETHER:
                raise

    def _use(self) -> _Session:
        LedgerError.unless(not self._closed, "closed")
        connection = self._open()
        LedgerError.unless(not connection.in_transaction, "nested")
        if not self._checked:
            tables.check(connection, self._schema, lost=self._lost)
            self._checked = True
        return connection

    def _begin(self, connection: Connection, *, writing: bool) -> None:
        """The lock is taken before the transaction sees anything."""
        turn = "SET LOCAL synchronous_commit = on; LOCK TABLE origin IN SHARE ROW EXCLUSIVE MODE; " if writing else ""
        begin = f"BEGIN ISOLATION LEVEL REPEATABLE READ {'READ WRITE' if writing else 'READ ONLY'}; {turn}"
        rows = connection.execute(f"{begin}SELECT version, current_setting('synchronous_commit') FROM origin")
        while rows.nextset():
            pass
        found = rows.fetchone()
        LedgerError.unless(found, "tables")
        version, durable = found
        LedgerError.unless(version <= schema.VERSION, "newer")
        LedgerError.unless(durable == "on", "server ended")

    def _commit(self, connection: Connection, head: Noted | None) -> None:
        self._warned.clear()
        try:
            done = connection.execute("COMMIT").statusmessage == "COMMIT"
        except psycopg.Error:
            if head is None or connection.in_transaction:
                raise
            done = self._committed(head)
        LedgerError.unless(done, "server ended")
        LedgerError.unless(not self._warned, "server replica")  # the server gave up waiting for one

    def _committed(self, head: Noted) -> bool:
        """Whether an entry is there whose COMMIT had no answer: when its session is over, and as durable as any."""
        end = time.monotonic() + self._busy_milliseconds / 1000
        while True:
            try:
                connection = self._use()
                self._begin(connection, writing=True)
                found = connection.execute("SELECT hash FROM entries WHERE seq = $1", (head.seq,)).fetchone()
                # only a commit that wrote something waits for the disk and for replicas
                connection.execute("UPDATE origin SET version = version")
                self._warned.clear()
                connection.execute("COMMIT")
                return found is not None and bool(found[0] == head.hash)
            except psycopg.Error:
                self._release()
                LedgerError.unless(time.monotonic() < end, "server ended")
                time.sleep(0.1)

    def _undo(self, connection: Connection) -> None:
        """A session that was interrupted in the middle of a statement can be told nothing more: it ends, and with it
        the transaction, wherever it was."""
        try:
            super()._undo(connection)
        except psycopg.Error:
            self._release()

    def _open(self) -> _Session:
        """A connection that has not ended, as far as this side has heard. What was seen through an earlier one must
        still be there (`Storage`)."""
        if self._connection is not None:
            with suppress(psycopg.Error):
                for _ in range(2):  # the server's last words, and its end
                    self._connection.pgconn.consume_input()
            if self._connection.closed:
                self._release()
        if self._connection is None:
            self._connection = self._connected()
        return self._connection

    def _connected(self) -> _Session:
        known = conninfo_to_dict(self._server)
        connection = _Session.connect(
            self._server,
            autocommit=True,
            cursor_factory=psycopg.RawCursor,
            application_name=_named(processes.this_process()),
            target_session_attrs="read-write",
            options="-c search_path=pg_catalog",
            connect_timeout=known.get("connect_timeout") or 10,
            keepalives_idle=10,
            keepalives_interval=5,
            keepalives_count=4,
            tcp_user_timeout=30_000,
        )
        try:
            connection.add_notice_handler(self._warned.append)
            settings = _SETTINGS | {"lock_timeout": str(self._busy_milliseconds)}
            words = [f"SET {name} = '{value}'" for name, value in settings.items()]
            connection.execute("; ".join(words))
            tables.check_server(connection, connection.info.backend_pid)
        except BaseException:
            connection.close()
            raise
        return connection

    def _release(self) -> None:
        connection, self._connection, self._checked = self._connection, None, False
        if connection is not None:
            connection.close()

    def after_fork(self, child: bool) -> None:
        """The session goes on in the parent: it says that the parent lives. The child must neither use it nor end it,
        nor keep it alive."""
        super().after_fork(child)
        if not child:
            return
        inherited, self._connection, self._checked = self._connection, None, False
        if inherited is not None and not inherited.closed:
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, inherited.fileno(), inheritable=False)
            os.close(nothing)


_RISKS = ["fsync", "full_page_writes"]


def _named(process: str) -> str:
    """The name of a process's sessions on the server."""
    return f"discreet {hashlib.sha256(process.encode()).hexdigest()[:32]}"


def _unsaid(error: psycopg.Error) -> str:
    """What is said of a failure without a code: at login, or of the connection itself."""
    if not isinstance(error, psycopg.OperationalError):
        return "server text"
    return "server login" if any(word in str(error) for word in _LOGIN) else "server gone"
