"""Accounts and tokens: in a file of their own, made and ended by commands."""

from __future__ import annotations

import json
import re
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from discreet.errors import LedgerError, QuestionError
from discreet.service.accounts import PREFIX, Account, Accounts, Role
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
