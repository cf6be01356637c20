"""A ledger or a data file that is not as it was, as `discreet ask` meets it: nothing is answered, nothing is lost."""

from __future__ import annotations

import ctypes
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import apsw
import pytest

from discreet import Curator, DeclarationError, LedgerError
from discreet import open as open_declaration
from discreet.trusted.ledger.file import LedgerFile
from face_tools import BUDGET, EXACT, Command, Data, Said, end_engine, spent, visits

FIRST = "SELECT COUNT(*) AS n FROM visits"
SECOND = "SELECT COUNT(*) AS n FROM visits WHERE age > 3"
PRICE = Fraction(1, 10)


@pytest.fixture
def ledger(cli: Command, clinic: Path) -> Path:
    """A ledger of one question."""
    assert cli("ask", clinic, FIRST).code == 0
    path = clinic.with_suffix(".ledger")
    assert {file.name for file in clinic.parent.glob("clinic.ledger*")} == {"clinic.ledger", "clinic.ledger.head"}
    return path


def refused(said: Said, code: str) -> dict[str, Any]:
    """A refusal by the ledger, as JSON: nothing else was said."""
    assert (said.code, said.err) == (4, "")
    error: dict[str, Any] = said.json
    assert set(error) == {"error", "code", "message", "where", "fix"}
    assert (error["error"], error["code"]) == ("LedgerError", code)
    assert error["where"] == "clinic.ledger"
    assert error["message"]
    assert error["fix"]
    return error


@contextmanager
def permissions() -> Iterator[None]:
    """As if this process were an ordinary one: the rights of files bind it, even if it is root's."""

    class Header(ctypes.Structure):
        _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))

    system, header, sets = ctypes.CDLL(None), Header(0x20080522, 0), (ctypes.c_uint32 * 6)()
    system.capget(ctypes.byref(header), sets)
    before = sets[0]
    try:
        sets[0] &= ~0b110  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        system.capset(ctypes.byref(header), sets)
        yield
    finally:
        sets[0] = before
        system.capset(ctypes.byref(header), sets)


def test_read_only(cli: Command, clinic: Path, ledger: Path) -> None:
    ledger.chmod(0o400)
    with permissions():
        refused(cli("ask", clinic, SECOND, "--json"), "unwritable")
        said = cli("ask", clinic, FIRST)  # nor is what was answered before: the ledger could not be trusted to be whole
        assert (said.code, said.out) == (4, "")
    ledger.chmod(0o600)
    assert spent(ledger) == PRICE
    assert cli("ask", clinic, SECOND).code == 0
    assert spent(ledger) == 2 * PRICE


def test_no_place_for_a_new_one(cli: Command, clinic: Path) -> None:
    clinic.parent.chmod(0o500)
    with permissions():
        refused(cli("ask", clinic, FIRST, "--json"), "unwritable")
    clinic.parent.chmod(0o700)


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def emptied(content: bytes) -> bytes:  # noqa: ARG001
    return b""


def flipped(content: bytes) -> bytes:
    place = content.index(b'"kind":"commit"') + 8
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


def nonsense(content: bytes) -> bytes:
    return b"x" * len(content)


@pytest.mark.parametrize("damage", [cut, emptied, flipped, nonsense])
def test_damaged(damage: Callable[[bytes], bytes], cli: Command, clinic: Path, ledger: Path) -> None:
    good = ledger.read_bytes()
    ledger.write_bytes(damage(good))
    for command in (("ask", clinic, FIRST), ("ledger", clinic, "--verify")):
        assert "backup" in refused(cli(*command, "--json"), "corrupt")["fix"]
    said = cli("ask", clinic, SECOND)
    assert (said.code, said.out) == (4, "")
    assert said.err.startswith("clinic.ledger: ")
    ledger.write_bytes(good)
    assert spent(ledger) == PRICE


def test_an_old_entry_is_damaged(cli: Command, clinic: Path, ledger: Path) -> None:
    """Whoever asks reads the charges so far, and finds it; so does whoever verifies."""
    good = ledger.read_bytes()
    ledger.write_bytes(good.replace(FIRST.encode(), FIRST.upper().encode()))
    refused(cli("ask", clinic, SECOND, "--json"), "corrupt")
    refused(cli("ledger", clinic, "--verify", "--json"), "corrupt")
    said = cli("ask", clinic, FIRST)  # the stored answer hangs on the damaged entry
    assert (said.code, said.out) == (4, "")


def alter(ledger: Path, pragma: str) -> None:
    connection = apsw.Connection(str(ledger))
    connection.execute(pragma)
    connection.close()


def test_written_by_a_newer_version(cli: Command, clinic: Path, ledger: Path) -> None:
    alter(ledger, "PRAGMA user_version = 99")
    assert refused(cli("ask", clinic, SECOND, "--json"), "newer")["fix"] == "upgrade discreet"


def test_another_programs_database(cli: Command, clinic: Path, ledger: Path) -> None:
    alter(ledger, "PRAGMA application_id = 5")
    assert refused(cli("ask", clinic, SECOND, "--json"), "foreign")["fix"] == "name another file for the ledger"


def test_a_full_disk(cli: Command, clinic: Path, ledger: Path) -> None:
    """Files may not grow beyond what the question needs: its text alone is longer."""
    long = f"{SECOND} /* {'x' * 40_000} */"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        said = cli("ask", clinic, long, "--json")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert said.json["code"] in ("full", "unwritable")
    refused(said, said.json["code"])
    assert spent(ledger) == PRICE
    assert cli("ask", clinic, long).code == 0


HOLD = """
import apsw, sys
connection = apsw.Connection(sys.argv[1])
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""


def test_held_by_another_process(cli: Command, clinic: Path, ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LedgerFile, "_busy_milliseconds", 50)
    command = [sys.executable, "-c", HOLD, str(ledger)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == "held\n"
        assert refused(cli("ask", clinic, SECOND, "--json"), "busy")["fix"].startswith("try again")
        holder.stdin.close()
        holder.wait()
    assert spent(ledger) == PRICE
    assert cli("ask", clinic, SECOND).code == 0


def test_deleted_or_replaced_while_it_is_open(clinic: Path, ledger: Path) -> None:
    good = ledger.read_bytes()
    with open_declaration(clinic) as curator:
        ledger.rename(ledger.with_suffix(".old"))
        with pytest.raises(LedgerError) as refusal:
            curator.ask(SECOND)
        assert refusal.value.code == "moved"
        ledger.write_bytes(good)  # a copy is a second budget
        with pytest.raises(LedgerError) as refusal:
            curator.ask(SECOND)
        assert refusal.value.code == "moved"


def test_an_older_copy_is_shown_by_its_note_or_by_a_head_noted_elsewhere(
    cli: Command, clinic: Path, ledger: Path
) -> None:
    note = ledger.with_name(f"{ledger.name}.head")
    good, noted = ledger.read_bytes(), note.read_bytes()
    assert cli("ask", clinic, SECOND).code == 0
    head = cli("ledger", clinic, "--json").json["head"]
    assert cli("ledger", clinic, "--expect-head", head).code == 0
    ledger.write_bytes(good)
    assert "--spend-unknown" in refused(cli("ledger", clinic, "--json"), "rewritten")["fix"]
    note.write_bytes(noted)
    assert cli("ledger", clinic, "--verify").code == 0
    refused(cli("ledger", clinic, "--expect-head", head, "--json"), "rewritten")


def test_what_was_lost_is_charged_by_the_owner(cli: Command, clinic: Path, ledger: Path) -> None:
    ledger.with_name(f"{ledger.name}.head").unlink()
    refused(cli("ask", clinic, SECOND, "--json"), "unnoted")
    for wrong in ("much", "-1", "0.1,2", "1,2,3", "nan", "9" * 9999):
        assert cli("ledger", clinic, "--spend-unknown", wrong).code == 2
    said = cli("ledger", clinic, "--spend-unknown", "0.3", "--verify")
    assert said.code == 0
    assert "40 % of ε 1" in said.out
    assert "ε 0.3" in said.out
    assert "questions whose entries are lost" in said.out
    assert cli("ask", clinic, SECOND).code == 0
    assert spent(ledger) == 5 * PRICE


def test_a_budget_is_raised_by_the_owners_word(cli: Command, clinic: Path, ledger: Path) -> None:
    """A second declaration for the same ledger with a larger budget is refused, and so is an edit; lower is lower."""
    other = clinic.with_name("other.toml")
    text = clinic.read_text("utf-8").replace("epsilon = 1.0", "epsilon = 1.5")
    other.write_text(f'ledger = "{ledger.name}"\n{text}', "utf-8")
    assert "--raise-budget" in refused(cli("ask", other, SECOND, "--json"), "raised")["fix"]
    assert cli("ledger", clinic, "--json").json["budget"]["epsilon"] == "1"
    asked = cli("ledger", other, "--raise-budget")
    assert asked.code == 1
    assert "the budget: ε 1 δ 1e-6 → ε 1.5 δ 1e-6; an attacker who knows everyone else is right at most" in asked.err
    assert "73.2 % → 81.8 % of the time after all of it" in asked.err
    assert cli("ledger", clinic, "--json").json["budget"]["epsilon"] == "1"
    assert cli("ledger", other, "--raise-budget", "--yes", "--json").json["budget"]["epsilon"] == "1.5"
    assert "→" not in cli("ledger", other, "--raise-budget").err  # nothing is larger any more
    assert cli("ask", other, SECOND).code == 0
    assert cli("ledger", clinic, "--json").json["budget"]["epsilon"] == "1"
    refused(cli("ask", other, SECOND, "--json"), "raised")


def test_who_is_a_person_is_the_same_for_all_answers(cli: Command, clinic: Path, ledger: Path) -> None:
    text = clinic.read_text("utf-8")
    clinic.write_text(text.replace('person = "person"', 'person = "city"'), "utf-8")
    assert "K times what was spent" in refused(cli("ask", clinic, SECOND, "--json"), "unit")["fix"]
    clinic.write_text(text.replace("rows_per_person = 20", "rows_per_person = 10"), "utf-8")
    assert cli("refresh", clinic).code == 0  # the same person: what older answers took of one is paid for
    assert spent(ledger) == PRICE


# data


def test_a_missing_file(cli: Command, clinic: Path, ledger: Path) -> None:
    source = clinic.with_name("visits.csv")
    source.rename(source.with_suffix(".old"))
    for command in ("ask", "check", "refresh"):
        said = cli(command, clinic, *([SECOND] if command == "ask" else []), "--json")
        assert (said.code, said.json["error"], said.json["code"]) == (2, "DeclarationError", "missing")
        (fault,) = said.json["faults"]
        assert fault == {
            "where": "tables.visits.source",
            "message": f"there is no file {source}",
            "fix": "check the path in the declaration",
        }
    assert spent(ledger) == PRICE
    source.with_suffix(".old").rename(source)
    assert cli("ask", clinic, SECOND).code == 0


def test_a_changed_file(cli: Command, clinic: Path, ledger: Path) -> None:
    """Refused until the owner takes it; then the budget goes on, and an old question is a new one."""
    source = clinic.with_name("visits.csv")
    source.write_text(source.read_text("utf-8") + "p1,north,true,3,1.5,2024-01-01,2024-01-01 00:00:00,new\n", "utf-8")
    for question in (FIRST, SECOND):
        said = cli("ask", clinic, question)
        assert (said.code, said.out) == (2, "")
        assert "tables.visits: the source, or what is declared of it, differs from snapshot 1" in said.err
        assert "run `discreet refresh clinic.toml visits`" in said.err
    assert spent(ledger) == PRICE
    assert cli("explain", clinic, SECOND).code == 0  # reads no row
    said = cli("refresh", clinic, "--json").json
    assert (said["snapshots"], said["changed"]) == ({"visits": 2}, ["visits"])
    assert spent(ledger) == PRICE
    assert cli("ask", clinic, FIRST, "--json").json["used"] == pytest.approx(20)
    assert spent(ledger) == 2 * PRICE


def test_a_snapshot_that_another_process_took(data: Data, tmp_path: Path) -> None:
    """Whoever had loaded the old rows answers from the new ones, or not at all: never old rows as new ones."""
    source = tmp_path / "visits.csv"
    text = data.csv.read_text("utf-8")
    source.write_text(text, "utf-8")
    table, ledger = visits(source), tmp_path / "a.ledger"
    with (
        Curator({"visits": table}, epsilon=BUDGET, ledger=ledger) as early,
        Curator({"visits": table}, epsilon=BUDGET, ledger=ledger) as late,
    ):
        assert early.ask(FIRST, epsilon=EXACT).rows == [{"n": 600}]
        source.write_text(text + "p1,north,true,3,1.5,2024-01-01,2024-01-01 00:00:00,new\n", "utf-8")
        late.refresh()
        assert early.ask(FIRST, epsilon=EXACT).rows == [{"n": 601}]
        again = late.ask(FIRST, epsilon=EXACT)
        assert again.rows == [{"n": 601}]
        assert not again.charged
        source.write_text(text, "utf-8")
        early.refresh()
        source.unlink()
        with pytest.raises(DeclarationError, match="there is no file"):
            late.ask(FIRST, epsilon=EXACT)
        assert early.ask(SECOND, epsilon=EXACT).charged


def test_the_order_of_rows_is_no_change(cli: Command, clinic: Path, ledger: Path) -> None:
    source = clinic.with_name("visits.csv")
    header, *rows = source.read_text("utf-8").splitlines(keepends=True)
    source.write_text("".join([header, *reversed(rows)]), "utf-8")
    assert cli("ask", clinic, SECOND).code == 0
    assert spent(ledger) == 2 * PRICE


def test_a_changed_declaration_is_a_changed_table(cli: Command, clinic: Path, ledger: Path) -> None:
    """Other bounds make other rows: the owner has to take them too. A smaller budget is no change of the table."""
    text = clinic.read_text("utf-8")
    clinic.write_text(text.replace("max = 20", "max = 10"), "utf-8")
    assert cli("ask", clinic, SECOND).code == 2
    clinic.write_text(text.replace("epsilon = 1.0", "epsilon = 0.5"), "utf-8")
    used = cli("ask", clinic, SECOND, "--json").json["used"]
    assert 35 < used <= 40  # two fifths by the sum of prices, a little less by the Gaussian residue
    assert spent(ledger) == 2 * PRICE


def test_a_file_that_shrinks_while_it_is_open(clinic: Path) -> None:
    """A table is loaded once: what happens to its file later changes no answer."""
    with open_declaration(clinic) as curator:
        clinic.with_name("visits.csv").write_text("", "utf-8")
        assert curator.ask(SECOND).columns == ["n"]
        end_engine(curator)
        with pytest.raises(DeclarationError, match="the source has no such column"):
            curator.ask(FIRST)
        assert spent(curator) == PRICE
