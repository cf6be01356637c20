"""What the owner declares, in TOML and in Python: what is read, and every fault at once."""

from __future__ import annotations

import datetime
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from discreet import DeclarationError
from discreet import open as open_declaration
from discreet.catalog import declare, read
from discreet.trusted.ring_a.table import KEYS_SHOWN

CLINIC = """
[budget]                     # for the people in these tables, over everybody who asks, for ever
epsilon = 3.0
delta = 1e-6
keys_delta = 1e-7            # the part of delta kept for finding private group keys (default: a tenth)

[question]                   # the price of a question that names none
epsilon = 0.1

[tables.patients]
source = "patients.csv"      # or x.parquet, "x.duckdb::table"; in Python also a DataFrame or an Arrow table
one_row_per_person = true
[tables.patients.columns]
Id = { type = "text" }
GENDER = { type = "text", values = ["F", "M"] }
BIRTHDATE = { type = "date", min = 1900-01-01, max = 2026-12-31 } # outside: clamped
EXPENSES = { type = "number", min = 0, max = 2_000_000, step = 0.01 }

[tables.conditions]
source = "conditions.csv"
person = "PATIENT -> patients.Id"    # whose row it is
rows_per_person = 200                # further rows of a person are left out, at random
groups_per_person = 10               # how many groups of an answer a person may touch
[tables.conditions.columns]
PATIENT = { type = "text" }
DESCRIPTION = { type = "text" }      # private keys: only those that enough people share are shown

[tables.calendar]                    # about nobody: free to join, free to read
source = "calendar.csv"
public = true

[analysts.ana]                       # optional: a smaller budget inside the whole one
epsilon = 1.0
"""

PEOPLE = "Id,GENDER,BIRTHDATE,EXPENSES\na,F,1980-01-02,10.25\nb,M,1850-01-01,3000000\nc,F,,\n"
ILLNESSES = "PATIENT,DESCRIPTION\na,cough\na,flu\nb,cough\nc,cough\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "clinic.toml").write_text(CLINIC, "utf-8")
    (tmp_path / "patients.csv").write_text(PEOPLE, "utf-8")
    (tmp_path / "conditions.csv").write_text(ILLNESSES, "utf-8")
    return tmp_path


def written(text: str) -> dict[str, Any]:
    return tomllib.loads(text, parse_float=Decimal)


TABLE = '[tables.t]\nsource = "t.csv"\none_row_per_person = true\n[tables.t.columns]\n'
BUDGET = "[budget]\nepsilon = 1\n"


# what is read


def test_the_whole_declaration(folder: Path) -> None:
    found = read(folder / "clinic.toml")
    assert (found.budget.epsilon, found.budget.delta, found.budget.keys_delta) == (
        3,
        Fraction(1, 10**6),
        Fraction(1, 10**7),
    )
    assert found.question_epsilon == Fraction(1, 10)
    assert found.analysts["ana"].epsilon == 1
    assert found.analysts["ana"].delta == found.budget.delta
    assert found.ledger == folder / "clinic.ledger"
    patients, conditions, calendar = found.tables.values()
    birth, expenses = patients.columns[2:]
    assert (birth.minimum, birth.maximum) == (datetime.date(1900, 1, 1), datetime.date(2026, 12, 31))
    assert (expenses.minimum, expenses.maximum, expenses.step) == (0, 2_000_000, Fraction(1, 100))
    assert patients.columns[1].keys() == ("F", "M")
    assert (conditions.person, conditions.rows_per_person, conditions.groups_per_person) == ("PATIENT", 200, 10)
    assert calendar.public


def test_its_tables_answer(folder: Path) -> None:
    with open_declaration(folder / "clinic.toml", owner=True) as curator:
        assert curator.ask("SELECT GENDER, COUNT(*) AS n FROM patients GROUP BY GENDER").columns == ["GENDER", "n"]
        question = "SELECT COUNT(DISTINCT PATIENT) AS n FROM conditions WHERE DESCRIPTION = 'cough'"
        assert curator.ask(question, analyst="ana").charged["epsilon"] == 0.1
        assert (folder / "clinic.ledger").stat().st_mode & 0o777 == 0o600


def test_decimals_are_as_written(folder: Path) -> None:
    """Ten times 0.1 is 1: nothing is left of a budget of 1, and there is no eleventh."""
    text = BUDGET.replace("1", "1.0") + "[question]\nepsilon = 0.1\n" + TABLE + 'a = { type = "integer" }\n'
    (folder / "ten.toml").write_text(text, "utf-8")
    (folder / "t.csv").write_text("a\n1\n", "utf-8")
    with open_declaration(folder / "ten.toml") as curator:
        for number in range(10):
            assert curator.left("SELECT COUNT(*) FROM t") == 10 - number
            curator.ask(f"SELECT COUNT(*) FROM t WHERE a > {number}")
        assert curator.budget.used == 100
        assert curator.left("SELECT COUNT(*) FROM t", epsilon="0.0001") == 0


@pytest.mark.parametrize("text", [f"a = {'[' * 5000}", f"a = {'1' * 5000}", f"a = {'{b = ' * 5000}"])
def test_what_python_cannot_read_is_a_fault_of_the_file(text: str, tmp_path: Path) -> None:
    (tmp_path / "deep.toml").write_text(text, "utf-8")
    with pytest.raises(DeclarationError) as refused:
        open_declaration(tmp_path / "deep.toml")
    assert refused.value.code == "toml"


def test_the_ledger_lies_where_the_owner_says(folder: Path) -> None:
    text = 'ledger = "deep/other.db"\n' + CLINIC
    (folder / "deep").mkdir()
    (folder / "clinic.toml").write_text(text, "utf-8")
    open_declaration(folder / "clinic.toml").close()
    assert (folder / "deep" / "other.db").exists()
    assert not (folder / "clinic.ledger").exists()


def test_one_declaration_is_the_same_from_everywhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the working directory nor the place of the folder makes an old question a new one."""
    question = "SELECT COUNT(*) AS n FROM patients"
    with open_declaration(folder / "clinic.toml", owner=True) as curator:
        first = curator.ask(question)
    monkeypatch.chdir(folder)
    with open_declaration("clinic.toml", owner=True) as curator:
        again = curator.ask(question)
        assert again.content == first.content
        assert not again.charged
        entries = len(list(curator.ledger.entries()))
        monkeypatch.chdir("/")
        curator.refresh()
        assert curator.ask(question, epsilon="0.2").rows
    moved = folder.with_name("moved")
    folder.rename(moved)
    with open_declaration(moved / "clinic.toml") as curator:
        assert len(list(curator.ledger.entries())) > entries
        assert curator.budget.used == pytest.approx(10)


def test_defaults() -> None:
    found = declare(written(BUDGET + "delta = 1e-5\n" + TABLE + 'a = { type = "boolean" }\n'))
    assert found.budget.keys_delta == Fraction(1, 10**6)
    assert found.question_epsilon is None
    assert found.tables["t"].columns[0].keys() == (False, True)
    assert declare(written(BUDGET + TABLE + 'a = { type = "text" }\n')).budget.delta == 0


def test_public_keys_of_an_integer_range() -> None:
    text = BUDGET + TABLE + f'a = {{ type = "integer", min = 1, max = {KEYS_SHOWN} }}\n'
    (column,) = declare(written(text)).tables["t"].columns
    assert column.keys() == tuple(range(1, KEYS_SHOWN + 1))
    (column,) = declare(written(text.replace("min = 1", "min = 0"))).tables["t"].columns
    assert column.keys() is None


# faults


def test_all_faults_at_once(tmp_path: Path) -> None:
    path = tmp_path / "clinic.toml"
    path.write_text(
        "ledgr = 'x'\n[budget]\nepsilon = 0\ndelta = 2\n[tables.t]\nsource = 't.csv'\n[tables.t.columns]\n"
        "a = { type = 'number', min = 2, max = 1 }\nb = { typ = 'text' }\n",
        "utf-8",
    )
    with pytest.raises(DeclarationError) as refused:
        read(path)
    assert {fault.where for fault in refused.value.faults} == {
        "ledgr",
        "budget.epsilon",
        "budget.delta",
        "tables.t",
        "tables.t.columns.a.min",
        "tables.t.columns.b.typ",
        "tables.t.columns.b.type",
    }
    assert all(line.startswith(f"{path}: ") for line in str(refused.value).splitlines())


@pytest.mark.parametrize(
    ("content", "code"),
    [(None, "missing"), (b"\xff\xfe", "unreadable"), (b"[budget", "toml"), (b"a = 1\na = 2", "toml")],
)
def test_a_file_that_is_no_declaration(content: bytes | None, code: str, tmp_path: Path) -> None:
    path = tmp_path / "clinic.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DeclarationError) as refused:
        read(path)
    assert refused.value.code == code
    assert str(refused.value).startswith(f"{path}: file: ")
    with pytest.raises(DeclarationError):
        read(tmp_path)


def paths(value: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*place, key)
            yield from paths(inner, (*place, key))


ODD = [
    -1,
    0,
    "",
    "x",
    True,
    [],
    [1],
    [[]],
    {},
    {"x": 1},
    Decimal("nan"),
    datetime.date(1, 1, 1),
    datetime.time(1),
    2**70,
]


@pytest.mark.parametrize("place", list(paths(written(CLINIC))), ids=".".join)
def test_no_value_of_any_key_is_more_than_a_fault(place: tuple[str, ...]) -> None:
    for odd in ODD:
        whole = written(CLINIC)
        inner = whole
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = odd
        with suppress(DeclarationError):
            declare(whole)
