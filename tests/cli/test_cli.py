"""The command line: what is promised works as it is written, and says the same to people and to machines."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

import discreet
from face_tools import Command, spent
from kinds import some

DISCREET = Path(sys.executable).with_name("discreet")
QUESTION = "SELECT sex, COUNT(*) AS n, AVG(age) AS age FROM adult GROUP BY sex"


@pytest.fixture
def census(adult: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copy(adult, tmp_path)
    return tmp_path


INIT = ["init", "adult.csv", "--one-row-per-person", "--public", "sex", "--range", "age=17:90", "--epsilon", "3"]


def test_the_next_line_works_unedited(cli: Command, census: Path) -> None:
    said = cli(*INIT)
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith("adult.toml is written")
    text = (census / "adult.toml").read_text("utf-8")
    assert 'sex = { type = "text", values = ["Female", "Male"], nulls = false }' in text
    assert 'age = { type = "integer", min = 17, max = 90 }' in text
    assert 'income = { type = "text" }' in text
    assert cli("check", "adult.toml").out.startswith("adult.toml: no faults; tables: adult\n")
    said = cli("ask", "adult.toml", QUESTION, "--epsilon", "0.5")
    assert (said.code, said.err) == (0, "")
    head, female, male, footer, *_ = said.out.splitlines()
    assert head.split() == ["sex", "n", "age"]
    assert re.fullmatch(r"Female +10,7\d\d ±\d+ +36\.\d+ ±0\.\d+", female)
    assert re.fullmatch(r"Male +21,[78]\d\d ±\d+ +39\.\d+ ±0\.\d+", male)
    assert footer.startswith("price ε 0.5 · 17 % of the budget used · about 5 more like this · ")
    again = cli("ask", "adult.toml", QUESTION, "--epsilon", "0.5")
    assert again.out.splitlines()[:3] == [head, female, male]
    assert "free" in again.out
    assert (census / "adult.ledger").stat().st_mode & 0o777 == 0o600


def test_init_says_nothing_of_values_that_nobody_called_public(cli: Command, census: Path) -> None:
    """Two files of the same header make the same declaration."""
    said = cli(*INIT[:3], "-o", "one.toml", "--json").json
    assert said["declaration"] == "one.toml"
    (told,) = said["told"]
    assert "--type age=integer --type fnlwgt=integer" in told
    assert not re.search(r"\d", told.replace("capital_gain", ""))  # no value, and no number of rows
    header, *rows = (census / "adult.csv").read_text("utf-8").splitlines(keepends=True)
    (census / "adult.csv").write_text("".join([header, *rows[:7]]), "utf-8")
    assert cli(*INIT[:3], "-o", "two.toml", "--json").json["told"] == [told]
    assert (census / "one.toml").read_text("utf-8") == (census / "two.toml").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["adult.csv"], "person: the privacy unit is missing → add --one-row-per-person, or --person"),
        (["adult.csv", "--person", "age"], "--rows-per-person: it is missing"),
        (["gone.csv", "--one-row-per-person"], "there is no such file"),
        (["adult.xlsx", "--one-row-per-person"], "it is neither .csv, .parquet nor file.duckdb::table"),
        (["", "--one-row-per-person"], "it is neither .csv, .parquet nor file.duckdb::table"),
        ([".", "--one-row-per-person"], "it is neither .csv, .parquet nor file.duckdb::table"),
        (["adult.csv", "--one-row-per-person", "--public", "gender"], "gender: the source has no such column"),
        (["adult.csv", "--one-row-per-person", "--public", "fnlwgt"], "it has more than 1,000 values"),
        (["adult.csv", "--one-row-per-person", "--range", "age=90:17"], "min is larger than max"),
        (["adult.csv", "--one-row-per-person", "--range", "age=a:b"], "not a valid number"),
        (["adult.csv", "--one-row-per-person", "--range", "age"], "not a valid number"),
        (["adult.csv", "--one-row-per-person", "--type", "age=int"], "this type is not known"),
        (["adult.csv", "--one-row-per-person", "--epsilon=-3"], "epsilon must lie between"),
        (["adult.csv", "--one-row-per-person", "--epsilon", "many"], "--epsilon: not a valid number"),
        (["adult.csv", "--one-row-per-person", "-o", "gone/adult.toml"], "there is no such folder"),
        (["adult.csv", "--one-row-per-person", "-o", "adult.csv"], "this file exists"),
    ],
)
def test_init_refuses(arguments: list[str], text: str, cli: Command, census: Path) -> None:
    said = cli("init", *arguments)
    assert (said.code, said.out) == (2, ""), said.err
    assert text in said.err
    assert "→ " in said.err
    assert not (census / "adult.toml").exists()


def test_init_of_other_sources(cli: Command, census: Path) -> None:
    with duckdb.connect("people.duckdb") as connection:
        connection.execute(
            'CREATE TABLE "the people" AS'
            " SELECT 'a' AS id, 3 AS \"n n\", DATE '2020-01-01' AS d, true AS b, 0.50 AS m"
        )
        connection.execute("COPY (SELECT *, 2.5 AS x FROM \"the people\") TO '9 lives.parquet'")
    whose = [
        "--person",
        "id",
        "--rows-per-person",
        "3",
        "--groups-per-person",
        "2",
        "--public",
        "b",
        "--public",
        "d",
        "--public",
        "m",
    ]
    assert cli("init", "people.duckdb::the people", *whose, "--range", "n n=0:9").code == 0
    question = 'SELECT b, d, m, SUM("n n") AS s FROM the_people GROUP BY b, d, m'
    said = cli("ask", "people.toml", question, "--epsilon", 1, "--json")
    assert [row | {"s": 0} for row in said.json["rows"]] == [{"b": True, "d": "2020-01-01", "m": 0.5, "s": 0}]
    assert cli("init", "9 lives.parquet", *whose, "--range", "x=.5:2.5").code == 0
    assert cli("ask", "9 lives.toml", "SELECT AVG(x) AS a FROM t_9_lives", "--epsilon", 1).code == 0
    assert (census / "9 lives.ledger").exists()


# machines


def test_the_same_for_a_machine(cli: Command, clinic: Path) -> None:
    question = "SELECT city, COUNT(*) AS n, AVG(age) AS a FROM visits GROUP BY city"
    explained = cli("explain", clinic, question, "--json").json
    assert {"price", "percent", "more", "expected_error", "mechanisms", "bounds"} <= set(explained)
    assert set(explained["expected_error"]) == {"n", "a"}
    asked = cli("ask", clinic, question, "--json").json
    assert {"columns", "rows", "intervals", "cost", "charged", "used"} <= set(asked)
    assert asked["columns"] == ["city", "n", "a"]
    assert [set(row) for row in asked["rows"]] == [{"city", "n", "a"}] * 4
    for row, interval in zip(asked["rows"], asked["intervals"], strict=True):
        assert set(interval) == {"n", "a"}
        assert interval["n"][0] <= row["n"] <= interval["n"][1]
    assert asked["cost"]["epsilon"] == asked["charged"]["epsilon"] == 0.1
    assert asked["used"] == pytest.approx(10)
    again = cli("ask", clinic, question, "--json").json
    assert {key: again[key] for key in again if key not in ("charged", "used")} == {
        key: asked[key] for key in asked if key not in ("charged", "used")
    }
    assert not any(again["charged"].values())
    found = cli("check", clinic, "--json").json
    assert found.pop("odds_of_budget") == pytest.approx(0.731, abs=1e-3)
    assert found == {"faults": [], "tables": ["visits"], "shared": [], "file_bytes": {"visits": None}}
    found = cli("ledger", clinic, "--verify", "--json").json
    assert {"budget", "used", "analysts", "head", "entries", "verified"} <= set(found)
    assert found["verified"] == {"entries": 5, "unanswered": 0}
    assert [entry["question"] for entry in found["entries"] if entry["kind"] == "reserve"] == [question]
    said = cli("refresh", clinic, "--json").json
    assert (said["snapshots"], said["changed"]) == ({"visits": 2}, [])


def test_refusals_for_a_machine(cli: Command, clinic: Path) -> None:
    said = cli("ask", clinic, "SELECT COUNT(*) FROM visits", "--epsilon", 2, "--json")
    assert (said.code, said.err) == (3, "")
    assert said.json == {
        "error": "BudgetError",
        "code": "budget",
        "message": "the budget does not allow this question: asked ε 2, left ε 1",
        "where": "",
        "fix": "a price of at most ε 1",
        "asked": "ε 2",
        "left": "ε 1",
        "fits": "a price of at most ε 1",
    }
    clinic.write_text("[budget]\nepsilon = 0\n[tabels]\n", "utf-8")
    said = cli("check", clinic, "--json")
    assert (said.code, said.json["error"]) == (2, "DeclarationError")
    assert [fault["where"] for fault in said.json["faults"]] == ["tabels", "budget.epsilon", "tables"]
    assert said.json["file"] == str(clinic)


# before paying


def test_explain_spends_nothing_and_reads_no_row(cli: Command, clinic: Path) -> None:
    """It works without the data; and it does not tell whether the question was asked."""
    question = "SELECT city, COUNT(*) AS n, AVG(age) AS a FROM visits GROUP BY city"
    before = cli("explain", clinic, question)
    assert before.code == 0
    assert before.out.startswith(
        "price ε 0.1 · 10 % of the budget · 10 like this fit\nafter it left: either ε 0.9 in questions or ε "
    )
    assert "of at least 1,000" in before.out
    assert before.out.endswith("nothing was spent\n")
    assert cli("ask", clinic, question, "--epsilon", "0.2").code == 0
    asked = cli("explain", clinic, question, "--epsilon", "0.2")
    other = cli("explain", clinic, question.replace("visits", "visits WHERE TRUE"), "--epsilon", "0.2")
    assert asked.out == other.out
    clinic.with_name("visits.csv").unlink()
    assert cli("explain", clinic, question, "--epsilon", "0.2").out == asked.out
    assert spent(clinic.with_suffix(".ledger")) == Fraction(1, 5)
    sql = cli("explain", clinic, question, "--sql").out
    assert "SELECT" in sql.upper()
    assert str(clinic.parent) not in sql


def test_within(cli: Command, clinic: Path) -> None:
    question = "SELECT COUNT(*) AS n, SUM(age) AS s FROM visits"
    explained = cli("explain", clinic, question, "--within", "n=600", "--json").json
    assert 580 <= explained["expected_error"]["n"] <= 600
    both = cli("explain", clinic, question, "--within", "n=600", "--within", "s=20000", "--json").json
    assert both["expected_error"]["n"] <= 600
    assert both["expected_error"]["s"] <= 20_000
    said = cli("ask", clinic, question, "--within", "n=600", "--json").json
    assert said["cost"] == explained["price"]
    low, high = said["intervals"][0]["n"]
    assert 1100 < high - low <= 1201
    for wrong in ("n", "n=", "n=x", "m=5", "n=0"):
        said = cli("ask", clinic, question, "--within", wrong)
        assert (said.code, said.out) == (2, ""), wrong
        assert "→ " in said.err


# the ledger


def test_the_ledger_tells_who_asked_what(cli: Command, clinic: Path) -> None:
    clinic.write_text(
        clinic.read_text("utf-8") + "[analysts.ana]\nepsilon = 0.5\n[analysts.bob]\nepsilon = 0.2\n", "utf-8"
    )
    question = "SELECT COUNT(*) AS n FROM visits WHERE city = 'Zürich'"
    assert cli("ask", clinic, question, "--analyst", "ana", "--request", "r1").code == 0
    assert cli("ask", clinic, question, "--analyst", "bob").code == 0
    assert cli("ask", clinic, question, "--analyst", "ana", "--request", "r1").code == 0
    said = cli("ledger", clinic, "--verify")
    lines = said.out.splitlines()
    assert lines[0].startswith("10 % of ε 1, δ ")
    assert "about 9 more like the last" in lines[0]
    assert lines[1].startswith("analyst ana: 20 % of ε 0.5 used · left for ana: either ε 0.4 in questions or ")
    assert lines[2].startswith("analyst bob: 50 % of ε 0.2 used · left for bob: either ε 0.1 in questions or ")
    assert [line.split()[2] for line in lines[4:6]] == ["ana", "bob"]
    assert lines[4].endswith(question)
    assert re.fullmatch(r"head [0-9a-f]{64}", lines[-2])
    assert lines[-1].endswith("0 charged without an answer")
    said = cli("ask", clinic, "SELECT COUNT(*) FROM visits", "--analyst", "bob", "--epsilon", "0.15")
    assert said.code == 3
    assert "analyst bob's budget does not allow this question: asked ε 0.15, left ε 0.1" in said.err
    said = cli("ask", clinic, "SELECT COUNT(*) FROM visits", "--analyst", "ana", "--request", "r1")
    assert said.code == 2
    assert "this request id belongs to another question" in said.err


def test_a_request_id_of_the_rows_before_a_refresh_says_so(cli: Command, clinic: Path) -> None:
    asked = ["ask", clinic, "SELECT COUNT(*) AS n FROM visits", "--request", "r1"]
    assert cli(*asked).code == 0
    assert cli("refresh", clinic).code == 0
    before = spent(clinic.with_suffix(".ledger"))
    for more in ([], ["--epsilon", "0.2"]):
        said = cli(*asked, *more)
        assert said.code == 2
        assert "this question was asked under this request id before: of other rows, as before a refresh" in said.err
        assert "another question" not in said.err
    assert spent(clinic.with_suffix(".ledger")) == before


# pictures


@pytest.mark.parametrize("name", ["x.png", "x.svg", "x.html"])
def test_a_picture(name: str, cli: Command, clinic: Path) -> None:
    question = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
    assert cli("ask", clinic, question, "--plot", name).code == 0
    content = (clinic.parent / name).read_bytes()
    assert {"x.png": b"\x89PNG", "x.svg": b"<svg", "x.html": b"<!doctype html>"}[name] in content


@pytest.mark.parametrize("name", ["x.bmp", "x", "gone/x.png"])
def test_a_picture_that_cannot_be_is_refused_before_it_is_paid(name: str, cli: Command, clinic: Path) -> None:
    said = cli("ask", clinic, "SELECT COUNT(*) FROM visits", "--plot", name)
    assert (said.code, said.out) == (2, "")
    assert not clinic.with_suffix(".ledger").exists()


@pytest.mark.power
def test_demo(tmp_path: Path) -> None:
    """In a fresh directory, from the package alone."""
    said = subprocess.run([DISCREET, "demo"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert re.fullmatch("adult.ledger is a new ledger: .*\n", said.stderr)
    for word in ("Female", "±", "free", "does not allow", "a price of at most", "head ", "verified", "picture"):
        assert word in said.stdout
    left = ["adult.csv", "conditions.csv", "demo.toml", "discreet-demo.png", "names.csv", "patients.csv"]
    assert sorted(path.name for path in tmp_path.iterdir()) == left
    assert (tmp_path / "discreet-demo.png").read_bytes().startswith(b"\x89PNG")
    _, _, command = said.stdout.strip().splitlines()[-1].partition("$ ")
    assert " ask demo.toml " in command
    done = subprocess.run(shlex.split(command), cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "price ε 0.5" in done.stdout


def test_the_package_runs_as_a_module_and_says_where_its_pages_are(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "discreet", "--help"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    (first,) = [Path(line.strip()) for line in said.stdout.splitlines() if line.endswith("README.md")]
    assert "docs/questions.md" in first.read_text("utf-8")
    assert "Exit codes: 0 done" in said.stdout


# exit codes of the program itself


def test_what_an_analyst_wrote_steers_no_terminal(cli: Command, clinic: Path) -> None:
    """Escapes, line breaks, overrides of the writing direction: spelled out wherever somebody else reads them."""
    steering = "\x1b[2K\x9b1A\u202e\u2066"
    question = f"SELECT COUNT(*) AS `n\u202e\u2066` FROM visits -- {steering}"
    with discreet.open(clinic) as curator:
        said = repr(curator.ask(question, analyst=f"eve{steering}\nhead 0"))
    for text in (said, cli("ledger", clinic).out, cli("ask", clinic, "SELECT COUNT(*) FROM `v\u202e\u2066`").err):
        assert all(letter.isprintable() for letter in text.replace("\n", ""))
        assert r"\u202e\u2066" in text
    assert r"eve\x1b[2K\x9b1A\u202e\u2066\nhead 0" in cli("ledger", clinic).out


def code(*arguments: str, **environment: str) -> int:
    """The exit code of the command, in a process of its own."""
    command = [DISCREET, *arguments]
    return subprocess.run(command, capture_output=True, env=os.environ | environment, check=False).returncode


def test_exit_codes_before_an_engine(clinic: Path, cli: Command) -> None:
    assert code("nonsense") == cli("nonsense").code == 2
    assert cli("ask", "gone.toml", "SELECT COUNT(*) FROM visits").code == 2
    assert cli("ask", clinic.name).code == 2
    assert cli("--version").code == cli("--help").code == cli("ask", "--help").code == 0


@pytest.mark.power
def test_exit_codes(clinic: Path) -> None:
    assert code("ask", "clinic.toml", "SELECT COUNT(*) FROM visits") == 0
    assert code("ask", "clinic.toml", "SELECT nothing") == 2
    assert code("ask", "clinic.toml", "SELECT COUNT(*) FROM visits", "--epsilon", "7") == 3
    clinic.with_suffix(".ledger").write_bytes(b"")
    assert code("ask", "clinic.toml", "SELECT COUNT(*) FROM visits") == 4
    clinic.with_suffix(".ledger").unlink()
    assert code("ask", "clinic.toml", "SELECT COUNT(*) FROM visits") == 4  # no second budget in silence
    clinic.with_suffix(".ledger.head").unlink()
    # an answer is paid for: a terminal that lacks its letters shows it all the same
    assert code("ask", "clinic.toml", "SELECT COUNT(*) FROM visits", PYTHONIOENCODING="ascii") == 0


# names

NAMES = [
    'quote"d',
    "😀",
    "a\\b",
    "a b",
    "it's",
    "select",
    "größe",
    "a.b",
    "a`b",
    "1",
    "a;b",
    "--",
    "NULL",
    "count",
    "-",
    "a=b",
]


@pytest.mark.parametrize("name", some(NAMES, pytest.mark.power, quick=2))
def test_odd_names_everywhere(name: str, cli: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name of a column and of a table, in TOML, in SQL, in the answer, in pictures."""
    monkeypatch.chdir(tmp_path)
    with (tmp_path / "odd.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([[name, "id", "key"], *([number % 3, f"p{number}", "x"] for number in range(50))])
    assert (
        cli(
            "init", "odd.csv", "--person", "id", "--rows-per-person", 1, "--range", f"{name}=0:2", "--public", "key"
        ).code
        == 0
    )
    declaration = tmp_path / "odd.toml"
    text = declaration.read_text("utf-8").replace("[tables.odd", f"[tables.{json.dumps(name, ensure_ascii=False)}")
    declaration.write_text(text, "utf-8")
    quoted = '"' + name.replace('"', '""') + '"'
    question = (
        f'SELECT {quoted}, COUNT(*) AS n, SUM({quoted}) AS {quoted[:-1]} sum", AVG({quoted}.{quoted}) AS a '
        f"FROM {quoted} WHERE {quoted} IS NOT NULL GROUP BY {quoted} HAVING n > -1e9 ORDER BY {quoted} DESC LIMIT 3"
    )
    assert cli("explain", "odd.toml", question, "--epsilon", 1, "--sql").code == 0
    said = cli("ask", "odd.toml", question, "--epsilon", 1, "--plot", "odd.png", "--json")
    assert said.code == 0, said.out + said.err
    assert said.json["columns"] == [name, "n", f"{name} sum", "a"]
    assert [row[name] for row in said.json["rows"]] == [2, 1, 0]
    shown = cli("ask", "odd.toml", question, "--epsilon", 1).out
    assert shown.startswith(name)
    assert cli("ledger", "odd.toml").code == 0
    assert cli("refresh", "odd.toml", "--json").json["snapshots"] == {name: 2}


def test_a_key_cannot_steer_the_terminal(cli: Command, clinic: Path) -> None:
    source = clinic.with_name("visits.csv")
    source.write_text(source.read_text("utf-8").replace("Zürich", "Zü\x1b[31mrich"), "utf-8")
    clinic.write_text(clinic.read_text("utf-8").replace("Zürich", "Zü\\u001b[31mri\\nch"), "utf-8")
    said = cli("ask", clinic, "SELECT city, COUNT(*) AS n FROM visits GROUP BY city")
    assert "\x1b" not in said.out
    assert "Zü\\x1b[31mri\\nch" in said.out


def test_a_polite_end_closes_what_is_open(clinic: Path) -> None:
    program = """
import os, signal, sys
from discreet.cli import main, opened, run
@main.command()
def stay():
    with opened("clinic.toml", load=True) as curator:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            print(curator.ledger.head)
run()
"""
    done = subprocess.run([sys.executable, "-c", program, "stay"], capture_output=True, text=True, check=False)
    assert (done.returncode, len(done.stdout)) == (143, 65)
    assert re.fullmatch("clinic.ledger is a new ledger: .*\n", done.stderr)
    assert {file.name for file in clinic.parent.glob("clinic.ledger*")} == {"clinic.ledger", "clinic.ledger.head"}
