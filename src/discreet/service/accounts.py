"""Who may ask over the network: accounts and their tokens, in a file beside the ledger (`clinic.accounts`).

The file is SQLite's, through apsw, and its owner's alone (mode 0600). A token is 256 random bits, shown once, and kept
as its SHA-256 and as a verifier of SCRAM (`scram`), for programs that log in by name and password. What the owner does
here is entered in the ledger's chain before it holds; the ledger never has a token, only its number.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import apsw

from discreet.catalog import Declaration
from discreet.errors import LedgerError, refused
from discreet.ledger.store import copied
from discreet.service.roles import Role
from discreet.service.scram import salt_of, verifier
from discreet.trusted.ledger.note import DRAFT, appearing

PREFIX = "discreet_"
"""How every token begins, so that programs which look for secrets find it."""

LONGEST_TOKEN = 200

_APPLICATION = 0x64736361  # "dsca" in the file's header
_VERSION = 2
_BUSY_MILLISECONDS = 5_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+|-]{0,253}")
_TABLES = (
    """CREATE TABLE accounts (
    name TEXT PRIMARY KEY,
    role TEXT NOT NULL,
    analyst TEXT,
    made INTEGER NOT NULL,
    ended INTEGER
) STRICT""",
    """CREATE TABLE tokens (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    account TEXT NOT NULL REFERENCES accounts (name),
    hash BLOB NOT NULL UNIQUE,
    made INTEGER NOT NULL,
    expires INTEGER,
    revoked INTEGER,
    verifier TEXT
) STRICT""",
    """CREATE TABLE requests (
    account TEXT NOT NULL,
    request TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (account, request)
) STRICT, WITHOUT ROWID""",
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {_VERSION}",
)
_SECOND = (
    "ALTER TABLE accounts ADD COLUMN ended INTEGER",
    "ALTER TABLE tokens ADD COLUMN verifier TEXT",
    f"PRAGMA user_version = {_VERSION}",
)
"""What makes a file of version 1 one of version 2. Tokens of before have no verifier: nobody knows them any more."""

_refused = partial(refused, "account")


@dataclass(frozen=True)
class Account:
    """An account. `analyst` is the declared one that an analyst's account is bound to; None where none is declared."""

    name: str
    role: Role
    analyst: str | None = None

    @property
    def asks_as(self) -> str | None:
        """Who asks, to the curator: never another than the token says. None: the owner."""
        return None if self.role is Role.OWNER else self.analyst or self.name

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        return {"account": self.name, "role": self.role.value, "analyst": self.analyst}


@dataclass(frozen=True)
class Token:
    """What is known of a token: its number, its account, until when it holds, whether it was revoked."""

    number: int
    account: str
    made: int
    expires: int | None
    revoked: int | None

    @property
    def holds(self) -> bool:
        """Whether it was not revoked, and has not expired by now."""
        return self.revoked is None and (self.expires is None or time.time() < self.expires)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values, without anything that would help to guess it."""
        moments = {name: _written(getattr(self, name)) for name in ("made", "expires", "revoked")}
        return {"token": self.number, "account": self.account, **moments, "holds": self.holds}


_Done = TypeVar("_Done")
Entered = Callable[..., None]
"""Enters an act of the owner's in the ledger: `discreet.ledger.Ledger.enter`."""


class Accounts:
    """The accounts in the file `path`, which is made with the first. Each call opens the file, and closes it.

    Raises LedgerError "accounts" where the file cannot be trusted, read or written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._place: tuple[int, int] | None = None
        self._seen = (0, 0, 0.0)

    @staticmethod
    def of(declaration: Declaration) -> Accounts:
        """Those of a declaration's ledger. Raises QuestionError where it has no file."""
        if declaration.beside is None:
            raise _refused("a service needs a ledger in a file", "ledger", "name one: ledger = 'clinic.ledger'")
        return Accounts(declaration.beside.with_suffix(".accounts"))

    @property
    def path(self) -> Path:
        """The file's path."""
        return self._path

    @property
    def name(self) -> str:
        """The file's name."""
        return self._path.name

    def copy(self, place: Path, meanwhile: Callable[[], _Done]) -> _Done:
        """Writes the accounts as they are to an empty file, and does something else in between that no act of the
        owner's comes in, such as copying the ledger that has them."""
        with self._open(write=True), self._open() as file:
            done = meanwhile()
            copied(file, place)
        return done

    # the owner's acts

    def add(self, account: Account, entered: Entered) -> None:
        """Makes an account, anew where one of this name was ended. Raises QuestionError where there is one of that
        name, or the name cannot be one."""
        if not _NAME.fullmatch(account.name):
            fix = "write up to 254 letters of A-Z, a-z, 0-9, . _ @ + | and -, a letter or number first"
            raise _refused("this cannot be the name of an account", "account", fix)
        self._make()
        with self._open(write=True) as file:
            if _account(file, account.name) is not None:
                fix = "take another name; or make a new token of it: `discreet token new`, or POST /accounts/NAME/token"
                raise _refused("there is an account of this name", account.name, fix)
            values = (account.name, account.role.value, account.analyst, int(time.time()))
            file.execute(
                "INSERT INTO accounts (name, role, analyst, made) VALUES (?, ?, ?, ?) ON CONFLICT (name) DO UPDATE"
                " SET role = excluded.role, analyst = excluded.analyst, made = excluded.made, ended = NULL",
                values,
            )
            entered("account", name=account.name, role=account.role.value, bound=account.analyst)

    def new_token(self, name: str, days: int | None, entered: Entered) -> tuple[str, Token]:
        """Makes a token of an account, and gives it this once. Raises QuestionError where there is no such account."""
        token, now = PREFIX + secrets.token_urlsafe(32), int(time.time())
        expires = None if days is None else now + 86_400 * days
        with self._open(write=True) as file:
            _known(file, name)
            row = file.execute(
                "INSERT INTO tokens (account, hash, made, expires, verifier) VALUES (?, ?, ?, ?, ?) RETURNING number",
                (name, digest_of(token), now, expires, verifier(token, salt_of(_verifier(file, name)))),
            ).fetchone()
            assert row is not None
            entered("token", name=name, token=row[0], expires=_written(expires))
        return token, Token(row[0], name, now, expires, None)

    def revoke(self, name: str, number: int | None, entered: Entered) -> list[Token]:
        """Ends a token of an account, or all of them, from now on. Gives those that held until now.

        Raises QuestionError where there is no such account, or no such token of it."""
        with self._open(write=True) as file:
            _known(file, name)
            found = [one for one in _tokens(file) if one.account == name and number in (None, one.number)]
            if number is not None and not found:
                fix = "`discreet account list`, or GET /analysts, has their numbers"
                raise _refused("the account has no token of this number", name, fix)
            ended = _ended(file, found)
            if ended:
                entered("revoke", name=name, tokens=[one.number for one in ended])
        return ended

    def end(self, name: str, entered: Entered) -> list[Token]:
        """Ends an account with all its tokens, from now on; who asks under its name by another's word is nobody then.
        Gives the tokens that held until now. Raises QuestionError where there is no such account."""
        with self._open(write=True) as file:
            _known(file, name)
            ended = _ended(file, [one for one in _tokens(file) if one.account == name])
            file.execute("UPDATE accounts SET ended = ? WHERE name = ?", (int(time.time()), name))
            for table in ("requests", "jobs"):  # whoever is given this name next is somebody else
                if file.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone():
                    file.execute(f"DELETE FROM {table} WHERE account = ?", (name,))
            entered("end", name=name, tokens=[one.number for one in ended])
        return ended

    # what holds

    def known(self) -> list[tuple[Account, list[Token]]]:
        """Every account with its tokens."""
        if not self._there():
            return []
        with self._open() as file:
            tokens = _tokens(file)
            rows: list[Any] = file.execute(
                "SELECT name, role, analyst FROM accounts WHERE ended IS NULL ORDER BY made, name"
            ).fetchall()
            accounts = [Account(name, Role(role), analyst) for name, role, analyst in rows]
        return [(account, [one for one in tokens if one.account == account.name]) for account in accounts]

    def holder(self, token: str) -> Account | None:
        """Whose token it is; None where it is none, has expired or was revoked."""
        return None if len(token) > LONGEST_TOKEN else self.holder_by(digest_of(token))

    def holder_by(self, wanted: bytes) -> Account | None:
        """Whose token it is that has this digest; None where it is none, has expired or was revoked."""
        if not self._there():
            return None
        with self._newest() as file:
            row = file.execute(
                "SELECT number, account, made, expires, revoked, hash FROM tokens WHERE hash = ?", (wanted,)
            ).fetchone()
            if row is None or not hmac.compare_digest(row[5], wanted) or not Token(*row[:5]).holds:
                return None
            return _account(file, row[1])

    def named(self, name: str) -> Account | None:
        """The account of this name, for whoever has proved to be called so; None where there is none."""
        if not self._there():
            return None
        with self._newest() as file:
            return _account(file, name)

    def made(self, name: str) -> str | None:
        """When the account of this name was made, as the ledger writes moments; None where there is none."""
        with self._newest() as file:
            row = file.execute("SELECT made FROM accounts WHERE name = ? AND ended IS NULL", (name,)).fetchone()
            return None if row is None else _written(row[0])

    def verifiers(self, name: str) -> list[str]:
        """Those of the tokens of an account that hold, which have one salt: a login names the account, and is told the
        salt before its token is known."""
        with self._newest() as file:
            rows: list[Any] = file.execute(
                "SELECT number, account, made, expires, revoked, verifier FROM tokens"
                " WHERE account = ? AND verifier IS NOT NULL ORDER BY number",
                (name,),
            ).fetchall()
            return [row[5] for row in rows if Token(*row[:5]).holds]

    def salted(self, name: str) -> tuple[str | None, list[str]]:
        """Any verifier that was ever made for an account of this name, for its salt; and those that hold."""
        if not self._there():
            return None, []
        with self._newest() as file:
            salt = _verifier(file, name)
            found = _account(file, name)
        held = self.verifiers(name)  # the same work for each name
        return salt, [] if found is None else held

    def secret(self) -> bytes:
        """A key that stays the same, and that nobody has who may not read this file: it follows from the verifier of
        the first token."""
        with self._open() as file:
            row = file.execute(
                "SELECT verifier FROM tokens WHERE verifier IS NOT NULL ORDER BY number LIMIT 1"
            ).fetchone()
        return hashlib.sha256(b"a key of discreet: " + str(row).encode()).digest()

    def hold_against(self, acts: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """Holds the accounts against the owner's acts in the ledger, in their order.

        Raises LedgerError where an account or a token holds that was ended: the file is an older copy.
        """
        roles: dict[str, tuple[str, str | None] | None] = {}
        ended: set[int] = set()
        for act, facts in acts:
            match act:
                case "account":
                    roles[facts["name"]] = facts["role"], facts["bound"]
                case "token":
                    ended.discard(facts["token"])  # an older copy gave a number again
                case "revoke" | "end":
                    ended.update(facts["tokens"])
                    roles |= {facts["name"]: None} if act == "end" else {}
        for account, tokens in self.known():
            if roles.get(account.name, (role := (account.role.value, account.analyst))) != role:
                fix = f"put the newest copy back; or `discreet account end` {account.name}, and make it anew"
                raise self._failed(f"the ledger knows the account {account.name} otherwise", fix)
            if old := [one.number for one in tokens if one.holds and one.number in ended]:
                fix = f"put the newest copy back; or `discreet token revoke` {account.name} {old[0]}, once more"
                raise self._failed(f"token {old[0]} of {account.name} was revoked before", fix)

    # requests that were named

    def body_of(self, name: str, request: str) -> bytes | None:
        """The digest of what an account asked under this name before."""
        with self._open() as file:
            row = file.execute("SELECT body FROM requests WHERE account = ? AND request = ?", (name, request))
            found = row.fetchone()
            return None if found is None else bytes(found[0])

    def keep_body(self, name: str, request: str, body: bytes) -> None:
        """Keeps it, for as long as the accounts are kept."""
        with self._open(write=True) as file:
            file.execute("INSERT OR IGNORE INTO requests VALUES (?, ?, ?)", (name, request, body))

    # the file

    def transaction(self, *, write: bool = False) -> AbstractContextManager[apsw.Connection]:
        """A transaction of the file, for what is kept beside the accounts. Raises LedgerError."""
        return self._open(write=write)

    def _make(self) -> None:
        if self._there():
            return
        try:
            with appearing(self._path) as draft:
                file = apsw.Connection(str(draft), flags=apsw.SQLITE_OPEN_READWRITE)
                try:
                    file.pragma("synchronous", "EXTRA")
                    with file:
                        for statement in _TABLES:
                            file.execute(statement)
                finally:
                    file.close(True)
        except (apsw.Error, OSError):
            raise self._failed("the file of accounts cannot be made", "check the disk and the folder") from None

    @contextmanager
    def _open(self, *, write: bool = False) -> Iterator[apsw.Connection]:
        """A transaction of its own: all that is written is on the disk at its end, or nothing."""
        try:
            if not self._there():
                raise _refused("there is no account yet", self.name, "`discreet account add`, or `discreet serve`")
            self._alone()
            file = apsw.Connection(str(self._path), flags=apsw.SQLITE_OPEN_READWRITE)
            try:
                file.set_busy_timeout(_BUSY_MILLISECONDS)
                file.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
                file.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
                file.pragma("cell_size_check", True)
                file.pragma("synchronous", "EXTRA")
                if file.pragma("application_id") != _APPLICATION:
                    raise self._failed("the file of accounts is of another program", "put the right one back")
                if file.pragma("user_version") == 1:
                    _renewed(file)
                if file.pragma("user_version") != _VERSION:
                    raise self._failed("a newer version of discreet wrote the file of accounts", "install that version")
                file.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                self._alone()  # what was opened is what stands there
                yield file
                file.execute("COMMIT")
            finally:
                file.close(True)  # what was not committed is undone
        except apsw.BusyError:
            raise self._failed("another process holds the file of accounts", "try again") from None
        except (apsw.Error, OSError, ValueError, TypeError):  # with what no row of ours has
            raise self._failed("the file of accounts is damaged, or cannot be read", "put a copy back") from None

    @contextmanager
    def _newest(self) -> Iterator[apsw.Connection]:
        """As `_open`. What was written over by an older copy while it was in use is refused: what is counted here never
        becomes less."""
        before = self._seen
        with self._open() as file:
            counted: Any = file.execute(
                "SELECT (SELECT count(*) FROM tokens), (SELECT count(revoked) FROM tokens),"
                " (SELECT total(coalesce(ended, made)) FROM accounts)"
            ).fetchone()
            if any(now < then for now, then in zip(counted, before, strict=True)):
                raise self._failed("the file of accounts is older than before", "put the newest copy back")
            self._seen = counted
            yield file

    def _there(self) -> bool:
        try:
            return self._path.exists()
        except OSError:
            raise self._failed("the file of accounts cannot be read", "look at the rights of its folder") from None

    def _alone(self) -> None:
        """Nobody else may read who asks, or write a token of his own. The file has one name, as a ledger has, and stays
        the same while a service runs: in an older copy, tokens hold that were revoked."""
        found = self._path.stat()
        if not stat.S_ISREG(found.st_mode) or found.st_mode & 0o077 or found.st_uid != os.geteuid():
            fix = f"`chmod 600 {self.name}`, as its owner"
            raise self._failed("the file of accounts must be its owner's alone", fix)
        if found.st_nlink > 1:
            for draft in self._path.parent.glob(f"{DRAFT}*"):  # left by a crash, or somebody is just making it
                with suppress(OSError):
                    if draft.samefile(self._path):
                        draft.unlink()
            if self._path.stat().st_nlink > 1:
                raise self._failed("the file of accounts has a second name", "remove that: it would be a second file")
        self._place = self._place or (found.st_dev, found.st_ino)
        if self._place != (found.st_dev, found.st_ino):
            fix = (
                "put the first back; or start the service again, once you know that no revoked token holds in this one"
            )
            raise self._failed("the file of accounts is another one than before", fix)

    def _failed(self, message: str, fix: str) -> LedgerError:
        return LedgerError("accounts", message, where=self.name, fix=fix)


def bound(declaration: Declaration, role: Role, analyst: str | None) -> str | None:
    """The declared analyst that a new account is bound to. Raises QuestionError where that is not as declared."""
    declared, where = declaration.analysts, "--analyst"
    if role is not Role.ANALYST or not declared:
        if analyst is not None:
            message = "no analysts are declared" if role is Role.ANALYST else "only an analyst's account has a budget"
            raise _refused(message, where, "leave it out")
        return None
    if analyst not in declared:
        raise _refused("name the declared analyst whose budget pays", where, f"name one of {', '.join(declared)}")
    return analyst


def _renewed(file: apsw.Connection) -> None:
    """Makes it a file of this version, unless another process has just done so."""
    file.execute("BEGIN IMMEDIATE")
    if file.pragma("user_version") == 1:
        for statement in _SECOND:
            file.execute(statement)
    file.execute("COMMIT")


def _account(file: apsw.Connection, name: str) -> Account | None:
    row = file.execute("SELECT name, role, analyst FROM accounts WHERE name = ? AND ended IS NULL", (name,)).fetchone()
    return None if row is None else Account(row[0], Role(row[1]), row[2])


def _known(file: apsw.Connection, name: str) -> None:
    if _account(file, name) is None:
        raise _refused("there is no such account", "account", "`discreet account list` has them")


def _verifier(file: apsw.Connection, name: str) -> str | None:
    """Any that was made for an account."""
    row = file.execute("SELECT verifier FROM tokens WHERE account = ? AND verifier IS NOT NULL", (name,)).fetchone()
    return None if row is None else str(row[0])


def _ended(file: apsw.Connection, tokens: list[Token]) -> list[Token]:
    """Ends tokens now. Gives those that were not revoked before."""
    ended = [one for one in tokens if one.revoked is None]
    for one in ended:
        file.execute("UPDATE tokens SET revoked = ? WHERE number = ?", (int(time.time()), one.number))
    return ended


def _tokens(file: apsw.Connection) -> list[Token]:
    rows = file.execute("SELECT number, account, made, expires, revoked FROM tokens ORDER BY number")
    return [Token(*row) for row in rows]


def digest_of(token: str) -> bytes:
    """A token as it is kept."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _written(moment: int | None) -> str | None:
    return None if moment is None else datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
