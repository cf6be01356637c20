"""The tables of a ledger file, and its version.

`entries` is the history: it only grows. `states` holds what the history amounts to (accounts, snapshots, the
declaration); it is a cache, and the last entry authenticates it.
"""

from __future__ import annotations

import apsw

from discreet.errors import LedgerError

APPLICATION = 0x64736372  # "dscr" in the file's header: other programs' databases are refused
VERSION = 6
"""All versions have the same tables, and each reads what the ones before it wrote. The number keeps a program from what
it would misread: since 2, an account's μ² may be null, dead; since 3, an account's state names its family of filters,
and one without, once charged, goes on with the first family; since 4, an account may have caps by day and month, and a
budget may renew with periods; since 5, a cap may hold in one period alone; since 6, a charge may be for one part, and
then does not debit the whole."""

TABLES = (
    # the columns from `kind` to `request` repeat fields of the body so that they can be indexed; readers
    # compare them
    """CREATE TABLE entries (
    seq INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    reserve INTEGER,
    analyst TEXT,
    account TEXT,
    key TEXT,
    request TEXT,
    nonce BLOB NOT NULL,
    body TEXT NOT NULL,
    hash BLOB NOT NULL,
    answer BLOB
) STRICT""",
    """CREATE TABLE states (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID""",
    "CREATE UNIQUE INDEX one_commit ON entries (reserve) WHERE kind = 'commit'",
    "CREATE INDEX answers ON entries (key, seq) WHERE kind = 'commit'",
    "CREATE UNIQUE INDEX one_debit ON entries (account, key, reserve) WHERE account IS NOT NULL",
    "CREATE UNIQUE INDEX one_request ON entries (analyst, request) WHERE request IS NOT NULL",
    "CREATE TRIGGER no_update BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'entries stay'); END",
    "CREATE TRIGGER no_delete BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'entries stay'); END",
)


def make(connection: apsw.Connection) -> None:
    """The tables of a ledger in an empty file."""
    with connection:
        for statement in (*TABLES, f"PRAGMA application_id = {APPLICATION}", f"PRAGMA user_version = {VERSION}"):
            connection.execute(statement)


def check(connection: apsw.Connection) -> None:
    """Make sure that this is a ledger, of the present version from then on.

    Raises LedgerError: "corrupt" for an empty or altered file, "foreign" for another program's database,
    "newer".
    """
    LedgerError.unless(connection.pragma("page_count"), "empty")
    LedgerError.unless(connection.pragma("application_id") == APPLICATION, "foreign")
    older = version(connection) < VERSION
    ours = "sql IS NOT NULL AND name NOT LIKE 'sqlite~_%' ESCAPE '~'"
    rows = connection.execute(f"SELECT sql FROM sqlite_schema WHERE {ours}")
    LedgerError.unless(sorted(str(sql) for (sql,) in rows) == sorted(TABLES), "tables")
    if older:
        connection.transaction_mode = "IMMEDIATE"
        with connection:
            version(connection)  # a newer program may have opened it since
            connection.pragma("user_version", VERSION)


def version(connection: apsw.Connection) -> int:
    """The file's version. Raises LedgerError: "newer" where a newer program wrote it, "corrupt" where there is none."""
    found: int = connection.pragma("user_version")
    LedgerError.unless(found <= VERSION, "newer")
    LedgerError.unless(found > 0, "version")
    return found
