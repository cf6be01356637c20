"""Accounts and tokens: in a file of their own, made and ended by commands."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from discreet.errors import LedgerError, QuestionError
from discreet.ledger import Ledger
from discreet.service.accounts import PREFIX, Account, Accounts
from discreet.service.roles import Role
from discreet.service.scram import salt_of, verifier
from face_tools import Command

ANALYSTS = "\n[analysts.ana]\nepsilon = 0.5\n"


def entered(*_: object, **__: object) -> None:
    """No ledger."""


def test_accounts_are_made_by_commands_and_entered_in_the_ledger(clinic: Path, cli: Command) -> None:
    clinic.write_text(clinic.read_text("utf-8") + ANALYSTS, "utf-8")
    made = cli("account", "add", clinic, "ana@north", "--analyst", "ana", "--json")
    assert made.json == {"account": "ana@north", "role": "analyst", "analyst": "ana"}
    assert cli("account", "add", clinic, "eve", "--role", "auditor").code == 0
    token = cli("token", "new", clinic, "ana@north", "--days", "90", "--json").json
    assert re.fullmatch(PREFIX + r"[\w-]{43}", token["secret"])
    said = cli("token", "new", clinic, "eve")
    assert said.out.startswith(PREFIX)
    assert PREFIX not in said.err
    accounts = Accounts(clinic.with_name("clinic.accounts"))
    assert accounts.holder(said.out.strip()) == Account("eve", Role.AUDITOR)
    assert accounts.holder(token["secret"]) == Account("ana@north", Role.ANALYST, "ana")
    known = cli("account", "list", clinic, "--json")
    assert [one["account"] for one in known.json["accounts"]] == ["ana@north", "eve"]
    assert PREFIX not in known.out + cli("account", "list", clinic).out
    assert cli("token", "revoke", clinic, "eve", "--json").json == {"account": "eve", "revoked": [2]}
    assert cli("token", "revoke", clinic, "eve").out == "eve: nothing revoked\n"
    assert accounts.holder(said.out.strip()) is None
    entries = json.loads(cli("ledger", clinic, "--json", "--verify").out)["entries"]
    assert [one["note"].split(", until")[0] for one in entries if one["kind"] == "service"] == [
        "account ana@north made: analyst of ana",
        "account eve made: auditor",
        "token 1 made for ana@north",
        "token 2 made for eve",
        "revoked of eve: token 2",
    ]
    assert accounts._path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "command",
    [
        ("account", "add", "clinic.toml", "ana"),  # of which budget?
        ("account", "add", "clinic.toml", "ana", "--analyst", "bob"),
        ("account", "add", "clinic.toml", "eve", "--role", "auditor", "--analyst", "ana"),
        ("account", "add", "clinic.toml", "no name", "--analyst", "ana"),
        ("account", "add", "clinic.toml", "known", "--role", "auditor"),
        ("token", "new", "clinic.toml", "nobody"),
        ("token", "revoke", "clinic.toml", "nobody"),
        ("token", "revoke", "clinic.toml", "known", "7"),
    ],
)
def test_what_is_no_account_is_refused(clinic: Path, cli: Command, command: tuple[str, ...]) -> None:
    clinic.write_text(clinic.read_text("utf-8") + ANALYSTS, "utf-8")
    assert cli("account", "add", clinic, "known", "--role", "auditor").code == 0
    said = cli(*command, "--json")
    assert (said.code, said.json["code"]) == (2, "account")


def test_an_account_without_declared_analysts_has_the_whole_budget(clinic: Path, cli: Command) -> None:
    assert cli("account", "add", clinic, "ana", "--analyst", "ana").code == 2
    assert cli("account", "add", clinic, "ana").code == 0
    ((account, tokens),) = Accounts(clinic.with_name("clinic.accounts")).known()
    assert (account.asks_as, tokens) == ("ana", [])


def test_a_file_that_others_may_read_or_that_is_none_is_refused(tmp_path: Path) -> None:
    accounts = Accounts(tmp_path / "clinic.accounts")
    assert (accounts.known(), accounts.holder("x")) == ([], None)
    with pytest.raises(QuestionError):
        accounts.new_token("ana", None, entered)
    accounts.add(Account("ana", Role.ANALYST), entered)
    token, _ = accounts.new_token("ana", None, entered)
    accounts._path.chmod(0o640)
    with pytest.raises(LedgerError, match="owner's alone"):
        accounts.holder(token)
    accounts._path.chmod(0o600)
    assert accounts.holder(token) is not None
    content = accounts._path.read_bytes()
    for wrong in (b"", b"nothing", content[:100] + b"x" * 5_000, b"\0" * 16 + content[16:]):
        accounts._path.write_bytes(wrong)
        with pytest.raises(LedgerError) as caught:
            accounts.holder(token)
        assert caught.value.code == "accounts"
    accounts._path.write_bytes(content)
    with closing(apsw.Connection(str(accounts._path))) as file:
        file.execute("UPDATE accounts SET role = 'emperor'")
    for look in (accounts.known, lambda: accounts.holder(token)):
        with pytest.raises(LedgerError, match="damaged"):
            look()


def test_what_cannot_be_entered_in_the_ledger_is_not_done(tmp_path: Path) -> None:
    def fails(*_: object, **__: object) -> None:
        raise LedgerError.of("busy")

    accounts = Accounts(tmp_path / "clinic.accounts")
    accounts.add(Account("ana", Role.ANALYST), entered)
    token, _ = accounts.new_token("ana", None, entered)
    for act in (
        lambda: accounts.add(Account("bob", Role.ANALYST), fails),
        lambda: accounts.new_token("ana", None, fails),
        lambda: accounts.revoke("ana", None, fails),
    ):
        with pytest.raises(LedgerError):
            act()
    ((account, tokens),) = accounts.known()
    assert (account.name, len(tokens)) == ("ana", 1)
    assert accounts.holder(token) == account


def test_a_file_with_a_second_name_or_in_the_place_of_another_is_refused(tmp_path: Path) -> None:
    accounts = Accounts(tmp_path / "clinic.accounts")
    accounts.add(Account("ana", Role.ANALYST), entered)
    token, _ = accounts.new_token("ana", None, entered)
    older = accounts._path.read_bytes()
    accounts.revoke("ana", None, entered)
    second = tmp_path / "second"
    second.hardlink_to(accounts._path)
    with pytest.raises(LedgerError, match="second name"):
        accounts.holder(token)
    second.unlink()
    assert accounts.holder(token) is None
    draft = tmp_path / ".discreet-0123"  # as a crash leaves it, while the file is made
    draft.hardlink_to(accounts._path)
    assert accounts.holder(token) is None
    assert not draft.exists()
    copy = tmp_path / "copy"
    copy.touch(0o600)
    copy.write_bytes(older)
    copy.replace(accounts._path)
    with pytest.raises(LedgerError, match="another one"):  # in which the token would hold again
        accounts.holder(token)


def test_an_account_that_ended_is_nobody_until_it_is_made_anew(clinic: Path, cli: Command) -> None:
    assert cli("account", "add", clinic, "eve", "--role", "auditor").code == 0
    secret = cli("token", "new", clinic, "eve", "--json").json["secret"]
    assert cli("account", "end", clinic, "eve", "--json").json == {"account": "eve", "ended": True, "revoked": [1]}
    accounts = Accounts(clinic.with_name("clinic.accounts"))
    assert accounts.known() == []
    for command in (("account", "end"), ("token", "new"), ("token", "revoke")):
        assert cli(*command, clinic, "eve").code == 2
    assert cli("account", "add", clinic, "eve").code == 0
    assert accounts.named("eve") == Account("eve", Role.ANALYST)
    assert accounts.holder(secret) is None
    assert cli("account", "end", clinic, "eve").out == "eve: ended\n"
    assert accounts.named("eve") is None
    entries = json.loads(cli("ledger", clinic, "--json").out)["entries"]
    assert [one["note"] for one in entries if "ended" in one["note"]] == [
        "account eve ended, with token 1",
        "account eve ended, with token none",
    ]


FIRST = """
CREATE TABLE accounts (name TEXT PRIMARY KEY, role TEXT NOT NULL, analyst TEXT, made INTEGER NOT NULL) STRICT;
CREATE TABLE tokens (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    account TEXT NOT NULL REFERENCES accounts (name),
    hash BLOB NOT NULL UNIQUE,
    made INTEGER NOT NULL,
    expires INTEGER,
    revoked INTEGER
) STRICT;
CREATE TABLE requests (account TEXT NOT NULL, request TEXT NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (account, request)) STRICT, WITHOUT ROWID;
PRAGMA application_id = 1685283681;
PRAGMA user_version = 1;
INSERT INTO accounts VALUES ('ana', 'analyst', NULL, 1), ('owner', 'owner', NULL, 1);
INSERT INTO requests VALUES ('ana', 'first', x'00');
"""


def test_a_file_of_the_first_version_becomes_one_of_this(tmp_path: Path) -> None:
    path, secret = tmp_path / "clinic.accounts", f"{PREFIX}{'x' * 43}"
    path.touch(0o600)
    with closing(sqlite3.connect(path)) as file:
        file.executescript(FIRST)
        digest = hashlib.sha256(secret.encode()).digest()
        file.execute("INSERT INTO tokens (account, hash, made) VALUES ('ana', ?, 1)", (digest,))
        file.commit()
    with ThreadPoolExecutor(4) as several:
        found = list(several.map(lambda _: Accounts(path).holder(secret), range(8)))
    assert found == [Account("ana", Role.ANALYST)] * 8
    accounts = Accounts(path)
    assert accounts.body_of("ana", "first") == b"\0"
    assert accounts.verifiers("ana") == []
    accounts.new_token("ana", None, entered)
    assert len(accounts.verifiers("ana")) == 1
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA user_version = 3")
    with pytest.raises(LedgerError, match="newer"):
        accounts.holder(secret)


def test_verifiers_are_those_of_tokens_that_hold_with_one_salt(tmp_path: Path) -> None:
    accounts = Accounts(tmp_path / "clinic.accounts")
    for name in ("ana", "bob"):
        accounts.add(Account(name, Role.ANALYST), entered)
    tokens = [accounts.new_token(name, None, entered)[0] for name in ("ana", "ana", "bob")]
    own, others = accounts.verifiers("ana"), accounts.verifiers("bob")
    assert len(set(own)) == 2
    assert len({salt_of(one) for one in own}) == 1
    assert salt_of(own[0]) != salt_of(others[0])
    assert own == [verifier(token, salt_of(own[0])) for token in tokens[:2]]
    accounts.revoke("ana", 1, entered)
    assert accounts.verifiers("ana") == own[1:]
    assert accounts.verifiers("nobody") == []


def test_an_older_copy_lets_nobody_in_again(clinic: Path, cli: Command) -> None:
    """Neither while a service runs, which has seen newer ones, nor at its next start, where the ledger knows better."""
    assert cli("account", "add", clinic, "ana").code == 0
    token = cli("token", "new", clinic, "ana").out.strip()
    path, ledger = clinic.with_name("clinic.accounts"), Ledger(clinic.with_name("clinic.ledger"))
    with closing(ledger):
        running, older = Accounts(path), path.read_bytes()
        running.hold_against(ledger.acts())
        assert running.holder(token) is not None
        assert cli("token", "revoke", clinic, "ana").code == 0
        assert running.holder(token) is None
        path.write_bytes(older)
        for look in (lambda: running.holder(token), lambda: running.named("ana"), lambda: running.verifiers("ana")):
            with pytest.raises(LedgerError, match="older"):
                look()
        starting = Accounts(path)
        with pytest.raises(LedgerError, match="token 1 of ana was revoked"):
            starting.hold_against(ledger.acts())
        assert cli("token", "revoke", clinic, "ana", "1").code == 0  # as it says
        starting.hold_against(ledger.acts())
        assert cli("account", "end", clinic, "ana").code == 0
        assert cli("account", "add", clinic, "ana", "--role", "auditor").code == 0
        Accounts(path).hold_against(ledger.acts())
        path.write_bytes(older)
        with pytest.raises(LedgerError, match="knows the account ana otherwise"):
            Accounts(path).hold_against(ledger.acts())
        assert cli("account", "end", clinic, "ana").code == 0
        again = cli("token", "new", clinic, "ana")
        assert again.code != 0
        assert cli("account", "add", clinic, "ana").code == 0
        assert cli("token", "new", clinic, "ana").code == 0  # of a number that was there before
        Accounts(path).hold_against(ledger.acts())
