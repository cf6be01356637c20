"""Seventy-two mistakes of a first hour: what is said names what to write instead, and that works.

Each row is a mistake, words that must be in what is said, and what somebody writes who has read them.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import discreet
from discreet import Curator, Error, QuestionError, Table
from discreet.catalog import Declaration, declare, read
from face_tools import Command

OWNER = """
[budget]
epsilon = 3.0
delta = 1e-6

[question]
epsilon = 0.1

[tables.people]
source = "people.csv"
one_row_per_person = true
[tables.people.columns]
id = { type = "text" }
age = { type = "integer", min = 0, max = 99 }
sex = { type = "text", values = ["f", "m"] }
income = { type = "number", min = 0, max = 200_000, step = 0.01 }
born = { type = "date", min = 1900-01-01, max = 2026-12-31 }

[tables.visits]
source = "visits.csv"
person = "patient -> people.id"
rows_per_person = 20
[tables.visits.columns]
patient = { type = "text" }
day = { type = "date", min = 2000-01-01, max = 2026-12-31 }
ward = { type = "text" }
"""

OWNERS = [
    ('type = "date", min = 1900', 'type = "datetime", min = 1900', "write timestamp", 'type = "timestamp", min = 1900'),
    ('"number"', '"float"', "write number", '"number"'),
    ('"number"', '"decimal(10,2)"', "write number", '"number"'),
    ('"integer"', '"int"', "write integer", '"integer"'),
    ("min = 1900-01-01", 'min = "1900-01-01"', "without quotes, 2020-01-31", "min = 1900-01-01"),
    ("min = 1900-01-01", "min = 01.01.1900", "write a date as 2020-01-31", "min = 1900-01-01"),
    ("min = 1900-01-01", "min = 1900", "for example 2020-01-31", "min = 1900-01-01"),
    ("max = 200_000", "max = 200,000", "a point and no commas: 0.5, 2_000_000", "max = 200_000"),
    ("max = 200_000", 'max = "200000"', "without quotes, 0.5", "max = 200000"),
    ("epsilon = 3.0", "epsilon = 3,0", "a point and no commas: 0.5", "epsilon = 3.0"),
    ("epsilon = 3.0", 'epsilon = "3"', "such as 0.5, without quotes", "epsilon = 3"),
    ("epsilon = 0.1", "epsilon = 10", "write at most budget.epsilon", "epsilon = 3"),
    ("delta = 1e-6", "detla = 1e-6", "write delta", "delta = 1e-6"),
    ("one_row_per_person = true", "one_row_per_person = True", "write true, in small letters", None),
    ("one_row_per_person = true", "", "write one_row_per_person = true", "one_row_per_person = true"),
    ('values = ["f", "m"]', 'values = "f, m"', 'write values = ["a", "b"]', 'values = ["f", "m"]'),
    ('values = ["f", "m"]', 'value = ["f", "m"]', "write values", 'values = ["f", "m"]'),
    ('sex = { type = "text"', "sex = { type = text", 'in double quotes: "text"', 'sex = { type = "text"'),
    ("[tables.visits]", "[visits]", "write [tables.visits] for a table", "[tables.visits]"),
    ("patient -> people.id", "people.id", '"COLUMN -> table.column" for a key', "patient -> people.id"),
    ("patient -> people.id", "patient -> peopel.id", '"patient -> people.id"', "patient -> people.id"),
    ("rows_per_person = 20", 'rows_per_person = "20"', "for example 20, without quotes", "rows_per_person = 20"),
    ('source = "people.csv"', 'source = "people.xlsx"', "save people.xlsx as .csv", 'source = "people.csv"'),
    ("delta = 1e-6", 'delta = 1e-6\nledger = "a.ledger"', "at the top of the file", "delta = 1e-6"),
]
"""A line, how it was written, words of the fault, what to write after reading it (None: the line itself)."""

ANALYSTS = [
    ("SELECT TOP 10 PERCENT sex, COUNT(*) AS n FROM people GROUP BY sex", "write LIMIT 10", "{g} LIMIT 10"),
    ("SELECT COUNT(*) FROM shop.people", "write public.people, or people alone", "SELECT COUNT(*) FROM public.people"),
    (
        "SELECT DATEPART(weekday, born) AS y, COUNT(*) FROM people GROUP BY y",
        "of parts there are YEAR, ISOYEAR, QUARTER, MONTH, WEEK, ISOWEEK, DAY, DOY, DAYOFYEAR, DOW",
        "SELECT DATEPART(dow, born) AS y, COUNT(*) FROM people GROUP BY y",
    ),
    (
        "SELECT TO_CHAR(day, 'Month') AS m, COUNT(*) FROM visits GROUP BY m",
        "FMMonth",
        "SELECT TO_CHAR(day, 'FMMonth') AS m, COUNT(*) FROM visits GROUP BY m",
    ),
    ("{c} WHERE age == 30 && sex = 'f'", "write AND for &&", "{c} WHERE age = 30 AND sex = 'f'"),
    ("{c} WHERE sex = 'f' || age > 30", "OR joins conditions", "{c} WHERE sex = 'f' OR age > 30"),
    ("{c} WHERE born > '01.02.2020'", "year, month and day as DATE '2020-01-31'", "{c} WHERE born > DATE '2020-02-01'"),
    ("{c} WHERE age = NULL", "write age IS NULL", "{c} WHERE age IS NULL"),
    ("{c} WHERE age > '30'", "write 30 without quotes", "{c} WHERE age > 30"),
    ('{c} WHERE sex = "f"', "in single quotes: 'f'", "{c} WHERE sex = 'f'"),
    ("{c} WHERE sex = ‘f’", "in single quotes: 'f'", "{c} WHERE sex = 'f'"),
    ("{c} WHERE sex = 'F'", "write 'f'", "{c} WHERE sex = 'f'"),
    ("{c} WHERE 20 < age < 30", "write 20 < age AND age < 30", "{c} WHERE 20 < age AND age < 30"),
    ("{c} WHERE age IN 30, 31", "write IN (30, 31)", "{c} WHERE age IN (30, 31)"),
    ("SELECT COUNT(*) FORM people", "write FROM for FORM", "{c}"),
    ("SELECT * FROM people", "SELECT column, COUNT(*) … GROUP BY column", "{g}"),
    ("{g} LIMIT 10 PERCENT", "write LIMIT 10", "{g} LIMIT 10"),
    (
        "SELECT nb FROM (SELECT sex, COUNT(*) AS number FROM people GROUP BY sex) AS t",
        "write one of sex, number",
        "SELECT number FROM (SELECT sex, COUNT(*) AS number FROM people GROUP BY sex) AS t",
    ),
    (
        "SELECT COUNT(*) FROM people JOIN (SELECT AVG(age) AS a FROM people) AS t ON people.age > t.a",
        "x > (SELECT AVG(x) FROM …)",
        "SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(age) FROM people)",
    ),
    ("SELECT MEAN(age) FROM people", "write AVG(x)", "SELECT AVG(age) FROM people"),
    ("SELECT sex, COUNT(*) AS n FROM people WHERE n > 5 GROUP BY sex", "write HAVING n", "{g} HAVING n > 5"),
    (
        "{g} HAVING age > 30",
        "conditions on it into WHERE",
        "SELECT sex, COUNT(*) FROM people WHERE age > 30 GROUP BY sex",
    ),
    (
        "SELECT COUNT(*) FROM people p, visits v WHERE v.patient <> ''",
        "add p.id = v.patient to WHERE",
        "SELECT COUNT(*) FROM people p, visits v WHERE v.patient <> '' AND p.id = v.patient",
    ),
    (
        "SELECT SUM(CONVERT(INT, income)) FROM people",
        "write CAST(x AS INTEGER)",
        "SELECT SUM(CAST(income AS INTEGER)) FROM people",
    ),
]
"""A question, words of the refusal, the question after reading it."""

ALL = {"c": "SELECT COUNT(*) FROM people", "g": "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"}
FRAME = pd.DataFrame({"age": [30, 40], "sex": ["f", "m"], "born": pd.to_datetime(["1990-01-01"] * 2)})
COLUMNS: dict[str, Any] = {"age": (0, 99), "sex": ["f", "m"]}
COUNT = "SELECT COUNT(*) AS n FROM people"


def made(columns: Any = COLUMNS, source: Any = FRAME, **said: Any) -> Curator:
    return Curator({"people": Table(source, columns=columns, one_row_per_person=True)}, **({"epsilon": 3} | said))


def declared(columns: Any = COLUMNS, source: Any = FRAME, **said: Any) -> Declaration:
    """What a curator reads before it starts its engine."""
    table = Table(source, columns=columns, one_row_per_person=True)
    budget = {"epsilon": 3} | {name: value for name, value in said.items() if name != "analysts"}
    analysts = said.get("analysts", {})
    owns = {name: {"epsilon": own} for name, own in analysts.items()} if isinstance(analysts, dict) else analysts
    return declare({"budget": budget, "tables": {"people": table.declaration}, "analysts": owns}, python=True)


Call = Callable[[Curator], object]

ENGINEERS: list[tuple[Call, str, Call]] = [
    (
        lambda _: declared(COLUMNS | {"age": (0, 99, 1)}),
        "write (17, 90), str",
        lambda _: declared(COLUMNS | {"age": (0, 99)}),
    ),
    (
        lambda _: declared(COLUMNS | {"sex": {"f", "m"}}),
        '["a", "b"]',
        lambda _: declared(COLUMNS | {"sex": ["f", "m"]}),
    ),
    (lambda _: declared(COLUMNS | {"sex": "string"}), "write text", lambda _: declared(COLUMNS | {"sex": "text"})),
    (
        lambda _: declared(["age"]),
        'columns={"age": (17, 90), "sex": str}',
        lambda _: declared({"age": (17, 90), "sex": str}),
    ),
    (lambda _: made({"agee": (0, 99)}), "name one of: age", lambda _: made({"age": (0, 99)})),
    (
        lambda _: made({"born": ("1990-01-01", "2020-01-01")}),
        "write them as for example datetime.datetime(2020, 1, 31, 12)",
        lambda _: made({"born": (datetime.datetime(1990, 1, 1), datetime.datetime(2020, 1, 1))}),
    ),
    (lambda _: declared(source={"age": [30]}), "give a pandas or polars DataFrame", lambda _: declared()),
    (
        lambda _: declare({"budget": {"epsilon": 3}, "tables": {"people": FRAME}}, python=True),
        "write discreet.Table(source, columns={…}, one_row",
        lambda _: declared(),
    ),
    (lambda _: declared(epsilon="a lot"), "a decimal such as 0.5", lambda _: declared(epsilon=0.5)),
    (lambda _: declared(delta=5), "a decimal such as 1e-6", lambda _: declared(delta=1e-6)),
    (lambda _: declared(analysts=["ana"]), 'analysts={"ana": 0.5}', lambda _: declared(analysts={"ana": 0.5})),
    (
        lambda _: discreet.open("people.csv"),
        "name the declaration, a .toml file",
        lambda _: read("owner.toml"),
    ),
    (lambda c: c.ask(FRAME, epsilon=0.1), 'write "SELECT … FROM table"', lambda c: c.explain(COUNT, epsilon=0.1)),  # type: ignore[arg-type]
    (lambda c: c.explain(COUNT, epsilon="0,5"), "write epsilon = 0.1", lambda c: c.explain(COUNT, epsilon="0.5")),
    (lambda c: c.explain(COUNT), "name epsilon", lambda c: c.explain(COUNT, 0.5)),
    (lambda c: c.ask(COUNT, epsilon=50), "a price of at most ε 3", lambda c: c.explain(COUNT, epsilon=3)),
    (lambda c: c.explain(COUNT, within=100), 'write within={"n": 100}', lambda c: c.explain(COUNT, within={"n": 100})),  # type: ignore[arg-type]
    (lambda c: c.explain(COUNT, within={"m": 100}), "write n", lambda c: c.explain(COUNT, within={"n": 100})),
    (
        lambda c: c.explain(COUNT, within={"n": 100}, confidence=95),
        "write confidence = 0.95",
        lambda c: c.explain(COUNT, within={"n": 100}, confidence=0.95),
    ),
    (
        lambda c: c.ask(COUNT, 0.01)["n"],  # type: ignore[index]
        'write release.rows[0]["n"]',
        lambda c: c.ask(COUNT, 0.01).rows[0]["n"],
    ),
    (lambda c: c.ask(COUNT, 0.01).save("a.xls"), "end it in .csv", lambda c: c.ask(COUNT, 0.01).save("a.csv")),
    (
        lambda c: c.explain(COUNT + " WHERE age > ?", 0.1),
        "write the value itself",
        lambda c: c.explain(COUNT + " WHERE age > 30", 0.1),
    ),
    (
        lambda c: c.explain("SELECT COUNT(*) FROM peopel", 0.1),
        "write people",
        lambda c: c.explain("SELECT COUNT(*) FROM people", 0.1),
    ),
    (
        lambda c: c.publish("people", epsilon=0.1, columns="age"),
        'write columns=["age"]',
        lambda c: c.publish("people", epsilon=0.1, columns=["age"]),
    ),
]
"""A call, words of the error, the call after reading it."""

COMMANDS = [
    (
        ["ask", "SELECT COUNT(*) FROM people", "owner.toml"],
        'write clinic.toml "SELECT',
        ["explain", "owner.toml", COUNT],
    ),
    (["ask", "owner.toml", "n.sql"], "write --file n.sql", ["explain", "owner.toml", "--file", "n.sql"]),
    (
        ["explain", "owner.toml", COUNT, "--within", "100"],
        "write --within n=100",
        ["explain", "owner.toml", COUNT, "--within", "n=100"],
    ),
    (
        ["explain", "owner.toml", COUNT, "--within", "n=100", "--confidence", "99%"],
        "write confidence = 0.95",
        ["explain", "owner.toml", COUNT, "--within", "n=100", "--confidence", "0.95"],
    ),
    (
        ["init", "people.csv", "--one-row-per-person", "--range", "born=1900:2026", "-o", "new.toml"],
        "write --range born=1900-01-01:2026-12-31",
        ["init", "people.csv", "--one-row-per-person", "--range", "born=1900-01-01:2026-12-31", "-o", "new.toml"],
    ),
]
"""A command, words of what it says, the command after reading them."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    people = "id,age,sex,income,born\n" + "".join(
        f"p{i},{20 + i},{'fm'[i % 2]},{i * 100}.5,1990-01-0{i}\n" for i in range(1, 9)
    )
    (tmp_path / "people.csv").write_text(people, "utf-8")
    (tmp_path / "visits.csv").write_text("patient,day,ward\n" + "p1,2020-01-01,a\np2,2020-01-02,b\n", "utf-8")
    (tmp_path / "owner.toml").write_text(OWNER, "utf-8")
    (tmp_path / "n.sql").write_text(COUNT, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def frames() -> Iterator[Curator]:
    with made(delta="1e-6") as curator:
        yield curator


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Curator]:
    """The declaration of OWNER. Nothing is loaded: explaining reads no row."""
    path = tmp_path_factory.mktemp("tables") / "owner.toml"
    path.write_text(OWNER, "utf-8")
    with Curator.of(read(path), load=False) as curator:
        yield curator


def test_there_are_seventy_two() -> None:
    assert [len(OWNERS), len(ANALYSTS), len(ENGINEERS)] == [24, 24, 24]


@pytest.mark.parametrize(("line", "wrong", "words", "mended"), OWNERS, ids=[wrong[:40] for _, wrong, _, _ in OWNERS])
def test_an_owner(line: str, wrong: str, words: str, mended: str | None, folder: Path) -> None:
    file = folder / "owner.toml"
    assert line in OWNER
    file.write_text(OWNER.replace(line, wrong, 1), "utf-8")
    with pytest.raises(Error) as refused:
        read(file)
    assert words in str(refused.value)
    file.write_text(OWNER.replace(line, line if mended is None else mended, 1), "utf-8")
    read(file)


@pytest.mark.parametrize(("wrong", "words", "mended"), ANALYSTS, ids=[wrong[:40] for wrong, _, _ in ANALYSTS])
def test_an_analyst(wrong: str, words: str, mended: str, tables: Curator) -> None:
    with pytest.raises(QuestionError) as refused:
        tables.explain(wrong.format(**ALL), epsilon=0.1)
    assert words in refused.value.fix
    tables.explain(mended.format(**ALL), epsilon=0.1)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("wrong", "words", "mended"), ENGINEERS, ids=[words for _, words, _ in ENGINEERS])
def test_an_engineer(wrong: Call, words: str, mended: Call, frames: Curator) -> None:
    with pytest.raises(Error) as refused:
        wrong(frames)
    assert words in str(refused.value)
    done = mended(frames)
    if isinstance(done, Curator):
        done.close()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("wrong", "words", "mended"), COMMANDS, ids=[words for _, words, _ in COMMANDS])
def test_at_the_command_line(wrong: list[str], words: str, mended: list[str], cli: Command) -> None:
    said = cli(*wrong)
    assert said.code == 2
    assert words in said.err
    assert cli(*mended).code == 0
