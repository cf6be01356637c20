"""A PostgreSQL server from this side of the connection: who we are there, how names are written, and what is said where
something fails. Nothing here opens a connection.

A server's own message never gets out: it may quote a value of a row. Of each failure one word is kept, a key of
`REASONS`, and what the owner reads follows from that word and the declaration alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from discreet.catalog.formats import words_of
from discreet.errors import DeclarationError, Fault
from discreet.trusted.ring_a.table import Source

OLDEST = 15
"""Servers of this version and later ones are read."""

CONNECT_SECONDS = 20
"""A server that does not answer within this time is not there, unless the URL or the environment says another."""

LOCK_SECONDS = 60
"""So long a table may be locked by others before it is given up."""

REASONS: Mapping[str, tuple[str, str]] = {
    "library": (
        "what reads PostgreSQL is not installed",
        "pip install 'discreet[postgresql]'",
    ),
    "gone": (
        "the server does not answer",
        "check host and port, and that it runs and can be reached from here",
    ),
    "login": (
        "the server does not let this user in",
        "put the password into PGPASSWORD, ~/.pgpass or a service, and check the user's name and rights",
    ),
    "database": ("the server has no such database", "check the name of the database"),
    "service": ("the service of its URL is not defined here", "define it in ~/.pg_service.conf, or name the host"),
    "old": (f"the server is older than PostgreSQL {OLDEST}", f"use PostgreSQL {OLDEST} or later"),
    "encoding": (
        "the database does not say how its texts are encoded (SQL_ASCII)",
        "read it from a database in UTF8",
    ),
    "missing": ("the server has no such table", "write schema.table, each name as the server has it"),
    "kind": ("this name is neither a table nor a view", "name a table, or a view of what is wanted"),
    "schema": ("the user may not use the table's schema", "run GRANT USAGE ON SCHEMA … TO the user"),
    "denied": ("the user may not read the declared columns", "run GRANT SELECT (columns) ON the table TO the user"),
    "locked": ("others hold the table locked", "try again when they are done"),
    "slow": ("the server took too long", "try again, or make the table smaller"),
    "rewritten": (
        "the table is emptied, rewritten or replaced again and again while it is read",
        "try again when that is done",
    ),
    "changed": (
        "what the table is, or what stands behind it, changed while it was read",
        "try again when that is done",
    ),
    "ended": ("the connection ended while the table was read", "try again"),
    "power": (
        "the user is a superuser of the server, or may read files there",
        "connect as a user of its own: docs/engines.md says which rights it needs",
    ),
    "place": (
        "the user may not make a schema for what questions read",
        "run GRANT CREATE ON DATABASE … TO the user, and GRANT TEMPORARY ON DATABASE … TO the user",
    ),
    "twice": ("another process makes the same tables", "try again when it is done"),
    "taken": ("a schema of another user has the name of its copy", "ask who administers the database to drop it"),
    "read": (
        "another process reads a copy of the same rows that was made otherwise",
        "close that one, or open the same declaration",
    ),
    "full": ("the server's disk is full", "make room there"),
    "limit": (
        "the server has not the memory or the space for temporary files that it takes",
        "raise work_mem or temp_file_limit for the user, or make the table smaller",
    ),
    "many": ("the server has no connection left for this user", "try again, or raise max_connections there"),
    "one": ("tables are on several servers or in several databases", "name tables of one database, or use DuckDB"),
    "failed": ("the server could not read it", "run SELECT over the declared columns there, and see what it says"),
}
"""What may go wrong with a server: what is said of it, and what to do."""

_STATES = {
    "28": "login",
    "3D": "database",
    "08": "ended",
    "42P01": "missing",
    "3F000": "missing",
    "42501": "denied",
    "55P03": "locked",
    "42P06": "twice",
    "53100": "full",
    "53300": "many",
    "53": "limit",
    "57014": "slow",
    "57": "ended",
    "25P03": "ended",
    "40": "rewritten",  # a copy of another server had to follow it
}
"""The words for the server's codes, by the longest beginning that is here."""

_SAID = (
    ("database system is", "gone"),
    ("too many", "many"),
    ("connection slots", "many"),
    ("password", "login"),
    ("authentication", "login"),
    ("pg_hba", "login"),
    ("role ", "login"),
    ("definition of service", "service"),
    ("service file", "service"),
    ("database ", "database"),
)
"""The words for what a connection that fails says, where it has no code. What is not here is `gone`."""


_ENDED = ("no connection to the server", "server closed the connection", "terminating connection")
"""What the client's library says on a connection that is none any more."""


def reason(state: str | None, message: str) -> str:
    """The word for a failure, of the server's code or, where a connection has none, of its message, which ends here."""
    if state:
        return next((_STATES[state[:length]] for length in (5, 2) if state[:length] in _STATES), "failed")
    if "[libpq] Failed to connect" not in message:
        return "ended" if any(words in message for words in _ENDED) else "failed"
    if "FATAL" not in message and "fe_sendauth" not in message and "service" not in message:
        return "gone"
    return next((word for words, word in _SAID if words in message), "login")


def refusal(source: Source, word: str) -> DeclarationError:
    """What the owner reads where a table on a server cannot be read."""
    message, fix = REASONS.get(word, REASONS["failed"])
    code = {"missing": "missing", "library": "library"}.get(word, "server")
    return DeclarationError([Fault("source", f"{words_of(source)}: {message}", fix)], code=code)


_READ = ("HOME", "SSL_CERT_FILE", "SSL_CERT_DIR", "KRB5CCNAME", "KRB5_CONFIG")


def environment() -> dict[str, str]:
    """What the client's library reads of this process's surroundings: where passwords, services and certificates stand.
    Whoever connects in another process gives it there, for as long as a connection is made, and nowhere else."""
    return {name: value for name, value in os.environ.items() if name in _READ or name.startswith("PG")}


@contextmanager
def surroundings(known: Mapping[str, str]) -> Iterator[None]:
    """This process's environment is that of another one, as `environment` gave it; then what it was."""
    before = environment()
    _exchange(before, {"PGCONNECT_TIMEOUT": str(CONNECT_SECONDS), "PGAPPNAME": "discreet"} | dict(known))
    try:
        yield
    finally:
        _exchange(environment(), before)


def _exchange(old: Mapping[str, str], new: Mapping[str, str]) -> None:
    for name in old:
        del os.environ[name]
    os.environ.update(new)


def identifier(name: str) -> str:
    """A name, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text, where standard_conforming_strings is on."""
    return "'" + text.replace("'", "''") + "'"


def names(relation: str) -> tuple[str, str]:
    """The schema and the table of schema.table."""
    schema, _, table = relation.partition(".")
    return schema, table


def qualified(relation: str) -> str:
    """schema.table as SQL has it."""
    return ".".join(map(identifier, names(relation)))
