"""Copies of ledger, accounts and declaration: made while others ask, and put back with no budget given back."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import threading
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet.accounting import Pure
from discreet.catalog import read
from discreet.errors import Error, LedgerError, QuestionError
from discreet.ledger import Ledger
from discreet.service import backup
from discreet.service.accounts import Account, Accounts
from discreet.service.backup import back_up, restore
from discreet.service.roles import Role
from discreet.trusted.ledger import note
from face_tools import CLINIC, Command, Data, spent

COUNT = "SELECT COUNT(*) AS n FROM visits"
LATER = "SELECT COUNT(*) AS n FROM visits WHERE age > 3"


def asked(clinic: Path, question: str) -> list[dict[str, Any]]:
    with discreet.open(clinic) as curator:
        return list(curator.ask(question, epsilon="0.25").rows)


@pytest.fixture(scope="module")
def seed(data: Data, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A clinic with an account, its copy after a question, and the same clinic one question later."""
    folder = tmp_path_factory.mktemp("seed")
    (folder / "now").mkdir()
    shutil.copy(data.csv, folder / "now" / "visits.csv")
    clinic = folder / "now" / "clinic.toml"
    clinic.write_text(CLINIC, "utf-8")
    rows = asked(clinic, COUNT)
    accounts, ledger = Accounts.of(read(clinic)), Ledger(clinic.with_suffix(".ledger"))
    accounts.add(Account("ana", Role.ANALYST), ledger.enter)
    token, _ = accounts.new_token("ana", None, ledger.enter)
    ledger.close()
    copy = back_up(clinic, folder / "copy")
    accounts.revoke("ana", None, Ledger(clinic.with_suffix(".ledger")).enter)
    asked(clinic, LATER)
    return {"folder": folder, "rows": rows, "token": token, "head": copy.head.hash.hex()}


@pytest.fixture
def clinic(seed: dict[str, Any], tmp_path: Path) -> Path:
    """The clinic, its copy and nothing else, for one test."""
    shutil.copytree(seed["folder"], tmp_path, dirs_exist_ok=True)
    return tmp_path / "now" / "clinic.toml"


def lost(clinic: Path, *, with_note: bool = True) -> Path:
    """The copy, after the disk was lost; or only the ledger, with its note left."""
    for file in clinic.parent.glob("clinic.*"):
        if with_note or file.suffix not in (".head", ".toml"):
            file.unlink()
    return clinic.parents[1] / "copy"


def total(clinic: Path) -> Fraction:
    return spent(clinic.with_suffix(".ledger"))


def refused(clinic: Path, copy: Path, code: str, **said: Any) -> Error:
    """It is refused, and where no ledger was there still is none that answers."""
    before = {file.name: file.read_bytes() for file in clinic.parent.iterdir()}
    with pytest.raises((LedgerError, QuestionError)) as caught:
        restore(clinic, copy, **{"expect_head": None, "loss": None, **said})
    assert caught.value.code == code
    assert {file.name: file.read_bytes() for file in clinic.parent.iterdir()} == before
    return caught.value


def test_a_copy_holds_ledger_accounts_and_declaration_alone(clinic: Path) -> None:
    copy = clinic.parents[1] / "copy"
    assert {file.name for file in copy.iterdir()} == {"clinic.toml", "clinic.ledger", "clinic.accounts", "backup.json"}
    for file in (copy, *copy.iterdir()):
        assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0
    facts = json.loads((copy / "backup.json").read_text("utf-8"))
    assert set(facts) == {"entries", "head", "files"}
    with pytest.raises(LedgerError) as caught, discreet.open(copy / "clinic.toml"):
        pass
    assert caught.value.code == "unnoted"  # a copy is no second budget


def test_what_ended_with_the_head_comes_back_as_it_was(clinic: Path, seed: dict[str, Any], cli: Command) -> None:
    copy = lost(clinic)
    said = cli("restore", clinic, copy, "--expect-head", seed["head"].upper())
    assert (said.code, said.err) == (0, ""), said.err
    assert f"head {seed['head']}" in said.out
    assert Accounts.of(read(clinic)).holder(seed["token"]) == Account("ana", Role.ANALYST)
    assert total(clinic) == Fraction(1, 4)
    assert asked(clinic, COUNT) == seed["rows"]
    assert total(clinic) == Fraction(1, 4)
    assert not list(clinic.parent.glob(".discreet-*"))
    assert refused(clinic, copy, "backup", expect_head=seed["head"]).where == "clinic.ledger"


def test_an_older_copy_gives_no_budget_back(clinic: Path, seed: dict[str, Any], cli: Command) -> None:
    """Two questions were asked, the copy has one."""
    with discreet.open(clinic) as curator:
        head = curator.ledger.head
    assert total(clinic) == Fraction(1, 2)
    copy = lost(clinic)
    assert refused(clinic, copy, "rewritten", expect_head=head).fix
    assert cli("restore", clinic, copy).code == 2
    assert cli("restore", clinic, copy, "--expect-head", head, "--spend-unknown", "0").code == 2
    said = cli("restore", clinic, copy, "--spend-unknown", "0.25", "--json")
    assert said.json["ended"] == ["ana"]
    assert total(clinic) == Fraction(1, 2)
    assert Accounts.of(read(clinic)).holder(seed["token"]) is None  # it was revoked after the copy was taken
    assert Ledger(clinic.with_suffix(".ledger")).head == said.json["head"]


def test_the_note_that_is_left_is_believed_more_than_the_owner(clinic: Path, seed: dict[str, Any]) -> None:
    copy = lost(clinic, with_note=False)
    assert note.place(clinic.with_suffix(".ledger")).exists()
    assert "notes" in refused(clinic, copy, "rewritten", expect_head=seed["head"]).message
    assert "notes" in refused(clinic, copy, "rewritten", expect_head=None).message  # 0 is not what was asked since
    restore(clinic, copy, expect_head=None, loss=Pure(Fraction(1, 4)))
    assert total(clinic) == Fraction(1, 2)


def test_a_copy_replaces_no_ledger(clinic: Path, seed: dict[str, Any]) -> None:
    copy = clinic.parents[1] / "copy"
    refused(clinic, copy, "backup", expect_head=seed["head"])
    refused(clinic, copy, "backup")
    clinic.with_suffix(".ledger").write_bytes(b"damaged")
    refused(clinic, copy, "backup", expect_head=seed["head"])


@pytest.mark.parametrize("name", ["clinic.toml", "clinic.ledger", "clinic.accounts", "backup.json"])
@pytest.mark.parametrize("how", ["changed", "cut", "gone"])
def test_a_copy_that_was_changed_is_not_taken(clinic: Path, seed: dict[str, Any], name: str, how: str) -> None:
    copy = lost(clinic)
    file = copy / name
    content = file.read_bytes()
    if how == "gone":
        file.unlink()
    else:
        middle = len(content) // 2
        file.write_bytes(
            content[:middle] + (bytes([content[middle] ^ 1]) + content[middle + 1 :] if how == "changed" else b"")
        )
    with pytest.raises((LedgerError, QuestionError)):
        restore(clinic, copy, expect_head=seed["head"], loss=None)
    if clinic.with_suffix(".ledger").exists():  # the accounts are what is damaged: the ledger was put back before
        assert name == "clinic.accounts"
        assert total(clinic) == Fraction(1, 4)
    assert not clinic.with_suffix(".accounts").exists()


@pytest.mark.parametrize("where", ["make", "verify", "spend_unknown", "known"])
def test_an_end_in_the_middle_leaves_nothing_that_answers_beyond_the_budget(clinic: Path, where: str) -> None:
    """The process is gone while it puts back: what is there afterwards is refused, or holds every charge."""
    copy = lost(clinic)
    program = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from fractions import Fraction\n"
        "from discreet.accounting import Pure\n"
        "from discreet.ledger import Ledger\n"
        "from discreet.service import backup\n"
        "from discreet.service.accounts import Accounts\n"
        "from discreet.trusted.ledger import note\n"
        f"setattr({{'make': note, 'verify': Ledger, 'spend_unknown': Ledger, 'known': Accounts}}[{where!r}], {where!r},"
        " lambda *_, **__: os._exit(9))\n"
        "backup.restore(Path(sys.argv[1]), Path(sys.argv[2]), expect_head=None, loss=Pure(Fraction(1, 4)))\n"
    )
    ended = subprocess.run([sys.executable, "-c", program, clinic, copy], capture_output=True, text=True)
    assert ended.returncode == 9, ended.stderr
    shutil.copy(copy / "clinic.toml", clinic)
    if clinic.with_suffix(".ledger").exists():
        if not note.place(clinic.with_suffix(".ledger")).exists():
            with pytest.raises(LedgerError, match="is missing"):
                total(clinic)
            return
        assert total(clinic) == Fraction(1, 2)
    else:
        restore(clinic, copy, expect_head=None, loss=Pure(Fraction(1, 4)))
        assert total(clinic) == Fraction(1, 2)


def test_a_copy_is_of_one_moment_while_others_charge(clinic: Path) -> None:
    path = clinic.with_suffix(".ledger")
    accounts = Accounts.of(read(clinic))
    stop, made = threading.Event(), 0

    def act() -> None:
        nonlocal made
        ledger = Ledger(path)
        while not stop.is_set():
            accounts.new_token("ana", None, ledger.enter)
            made += 1
            time.sleep(0.02)  # SQLite's locks are not fair: whoever never pauses holds the file
        ledger.close()

    thread = threading.Thread(target=act)
    thread.start()
    try:
        for number in range(3):
            folder = clinic.parents[1] / f"copy{number}"
            back_up(clinic, folder)
            entered = [one for one in Ledger(folder / "clinic.ledger", lost=True).entries() if one.kind == "service"]
            tokens = [token for _, held in Accounts(folder / "clinic.accounts").known() for token in held]
            assert len(entered) == len(tokens) + 2  # the account, a revocation, and each token
    finally:
        stop.set()
        thread.join()
    assert made


def test_there_is_nothing_to_copy_or_no_place_for_it(clinic: Path, cli: Command, tmp_path: Path) -> None:
    assert cli("backup", clinic, clinic.parents[1] / "copy").code == 2
    assert cli("backup", clinic, tmp_path / "no" / "such").code == 2
    assert cli("restore", clinic, tmp_path / "none", "--expect-head", "0").code == 2
    said = cli("backup", clinic, tmp_path / "another", "--json")
    assert said.json["files"].keys() == {"declaration", "ledger", "accounts"}
    for file in clinic.parent.glob("clinic.ledger*"):
        file.unlink()
    assert cli("backup", clinic, tmp_path / "more").code == 2
    assert not clinic.with_suffix(".ledger").exists()
    assert not list(tmp_path.glob("*.part"))


def test_what_an_ended_backup_left_is_no_copy(clinic: Path, cli: Command, tmp_path: Path) -> None:
    program = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from discreet.ledger import Ledger\n"
        "from discreet.service import backup\n"
        "Ledger.verify = lambda *_: os._exit(9)\n"
        "backup.back_up(Path(sys.argv[1]), Path(sys.argv[2]))\n"
    )
    folder = tmp_path / "another"
    ended = subprocess.run([sys.executable, "-c", program, clinic, folder], capture_output=True, text=True)
    assert ended.returncode == 9, ended.stderr
    assert not folder.exists()
    assert "another.part" in cli("backup", clinic, folder).err
    with pytest.raises(QuestionError, match="no copy"):
        restore(clinic, tmp_path / "another.part", expect_head="0", loss=None)
    shutil.rmtree(tmp_path / "another.part")
    assert cli("backup", clinic, folder).code == 0


def test_a_list_names_no_file_elsewhere(clinic: Path, seed: dict[str, Any]) -> None:
    copy = lost(clinic)
    facts = json.loads((copy / backup.LIST).read_text("utf-8"))
    facts["files"]["ledger"]["name"] = os.path.join("..", "copy", "clinic.ledger")
    (copy / backup.LIST).write_text(json.dumps(facts), "utf-8")
    refused(clinic, copy, "backup", expect_head=seed["head"])
