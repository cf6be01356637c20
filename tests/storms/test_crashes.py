"""Two analysts ask at once, and one dies: kill −9 at the named steps of the door, and at each kind of the ledger's."""

from __future__ import annotations

import shutil
import subprocess
from fractions import Fraction
from pathlib import Path

import pytest

import asker
import deaths
from discreet import open as open_declaration
from face_tools import CLINIC, Data, spent
from kinds import some

PRICE = Fraction(1, 10)
OWN = 6
"""Questions of each analyst: more than the budget has room for."""

STEPS = [
    "before-measure",
    "after-measure",
    "create-after-link",
    "note-after-link",
    "register-after-insert",
    "snapshot-before-commit-transaction",
    "reserve-after-commit-transaction",
    "repeat-after-insert",
    "commit-after-insert",
    "commit-after-commit-transaction",
    "read-after-begin",
]
"""The door's own steps, and one or two of each kind of the ledger's: tests/storms/test_ledger_storms.py has all."""


def declare(folder: Path, data: Data) -> Path:
    shutil.copy(data.csv, folder)
    analysts = "".join(f"[analysts.{name}]\nepsilon = 0.9\n" for name in ("dying", "living"))
    path = folder / "clinic.toml"
    path.write_text(CLINIC + analysts, "utf-8")
    return path


@pytest.fixture(scope="module")
def begun(data: Data, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A declaration with a ledger in which one question was answered."""
    path = declare(tmp_path_factory.mktemp("begun"), data)
    with open_declaration(path, owner=True) as curator:
        curator.ask(asker.ASKED)
    return path.parent


def start(path: Path, analyst: str, die_at: str = "") -> subprocess.Popen[str]:
    command = deaths.command(die_at, asker.__file__, path, analyst, OWN)
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("step", some(STEPS, pytest.mark.storm))
def test_a_death_beside_another_analyst(step: str, data: Data, begun: Path, tmp_path: Path) -> None:
    fresh = step.startswith(("create", "note", "register", "snapshot"))
    if fresh:
        path = declare(tmp_path, data)
    else:
        shutil.copytree(begun, tmp_path, dirs_exist_ok=True)
        path = tmp_path / "clinic.toml"
    processes = {"dying": start(path, "dying", step), "living": start(path, "living")}
    said = {name: process.communicate()[0].splitlines() for name, process in processes.items()}
    assert processes["living"].returncode == 0
    # a step may be one that the other has done already: then nobody dies
    assert processes["dying"].returncode == -9 or (fresh and processes["dying"].returncode == 0)
    ledger = path.with_suffix(".ledger")
    with open_declaration(path) as curator:
        verified = curator.ledger.verify()
        entries = {entry.seq: entry for entry in curator.ledger.entries()}
        reserves = [entry for entry in entries.values() if entry.kind == "reserve"]
        snapshots = sum(entry.kind == "snapshot" for entry in entries.values())
        assert snapshots <= (2 if fresh else 1)
        assert spent(curator) == len(reserves) * PRICE <= 1
        assert verified.unanswered == sum(entry.status == "no answer" for entry in reserves) <= 1
        suspended = [name for state in curator.ledger.tables().values() for name in state.suspended]
        assert suspended == ["dying"] * (verified.unanswered if snapshots < 2 else len(suspended))
        curator.lift("dying")
        for name in said:
            own = [entry for entry in entries.values() if name in entry.charged]
            assert spent(curator, name) == len(own) * PRICE <= Fraction(9, 10)
        for name, lines in said.items():
            for line in lines:
                count, question = line.split(" ", 1)
                entry = next(entry for entry in entries.values() if entry.question == question and entry.loss)
                assert entries[entry.reserve_id or 0].status == "committed"
                if snapshots > 1:  # both opened it first, and each took a snapshot: old answers are of the other
                    continue
                again = curator.ask(question, analyst=name)  # what was said is what is stored, and paid for
                assert (again.rows, bool(again.charged)) == ([{"n": int(count)}], False)
    assert ledger.stat().st_mode & 0o777 == 0o600
    assert step.startswith(("create", "note")) or not list(tmp_path.glob(".discreet*"))
