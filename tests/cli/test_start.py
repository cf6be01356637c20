"""`discreet init` on what owners really have: several files, other dialects of CSV, columns that identify."""

from __future__ import annotations

import gzip
import shlex
from pathlib import Path

import duckdb
import pytest

import discreet
from face_tools import BUDGET, Command

GERMAN = "Name;Geburt;Betrag;Ort\nMüller;2020-02-01;3,5;Köln\nKöhler;2020-02-03;1.017,25;Köln\nFür;;1.5;Ulm\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def curator_of(path: Path) -> discreet.Curator:
    path.write_text(path.read_text("utf-8").replace("\nepsilon = 1\n", f"\nepsilon = {BUDGET}\n"), "utf-8")
    return discreet.open(path)


@pytest.mark.parametrize(
    ("name", "encoding", "said"),
    [
        ("a.csv", "utf-8", 'csv = { delimiter = ";", decimal = "," }'),
        ("b.csv", "latin-1", 'csv = { delimiter = ";", decimal = ",", encoding = "latin-1" }'),
        ("c.csv.gz", "latin-1", 'csv = { delimiter = ";", decimal = ",", encoding = "latin-1" }'),
        ("d.csv", "utf-16", 'csv = { delimiter = ";", decimal = ",", encoding = "utf-16" }'),
    ],
)
def test_other_dialects_of_csv(name: str, encoding: str, said: str, cli: Command, folder: Path) -> None:
    content = GERMAN.encode(encoding)
    Path(name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert (
        cli("init", name, "--one-row-per-person", "--range", "betrag=0:2000.0", "--public", "ort", "-o", "x.toml").code
        == 0
    )
    text = Path("x.toml").read_text("utf-8")
    assert said in text
    assert 'Name = { type = "text" }    # identifies a person?' in text
    assert 'Geburt = { type = "text" }    # its first rows look like { type = "date"' in text
    assert 'Ort = { type = "text", values = ["Köln", "Ulm"], nulls = false }' in text
    Path("x.toml").write_text(text.replace("max = 2000.0", "max = 2000, step = 0.25"), "utf-8")
    with curator_of(folder / "x.toml") as curator:
        question = f"SELECT SUM(Betrag) AS s, COUNT(Betrag) AS k FROM {name[0]} WHERE Ort = 'Köln' OR Ort = 'Ulm'"
        (row,) = curator.ask(question, epsilon="1e20").rows
    assert row == {"s": 3.5 + 1017.25, "k": 2}  # 1.5 may be either, and is NULL


@pytest.mark.usefixtures("folder")
def test_a_dialect_in_python_and_its_faults() -> None:
    Path("a.csv").write_text("x|y\n1|2\n3|4\n", "utf-8")
    whole = {"one_row_per_person": True, "columns": {"x": (0, 9)}}
    tables = {"a": discreet.Table("a.csv", csv={"delimiter": "|"}, **whole)}
    with discreet.Curator(tables, epsilon=BUDGET) as curator:
        assert curator.ask("SELECT SUM(x) AS s FROM a", epsilon="1e20").rows == [{"s": 4}]
    wrong = {"delimiter": "ab", "decimal": ";", "encoding": "ebcdic", "quote": "'"}
    with pytest.raises(discreet.DeclarationError) as refused:
        discreet.Curator({"a": discreet.Table("a.csv", csv=wrong, **whole)}, epsilon=1)
    assert len(refused.value.faults) == 4
    with pytest.raises(discreet.DeclarationError, match="this is for CSV files"):
        discreet.Curator({"a": discreet.Table("a.parquet", csv={"delimiter": ";"}, **whole)}, epsilon=1)


@pytest.mark.usefixtures("folder")
def test_types_of_a_csv_file_are_comments(cli: Command) -> None:
    """What the first rows look like is never decided: two files declare the same but for comments."""
    Path("a.csv").write_text("x,y\n1,2020-01-01\n", "utf-8")
    Path("b.csv").write_text("x,y\none,then\n", "utf-8")
    for name in "ab":
        assert cli("init", f"{name}.csv", "--one-row-per-person").code == 0
    first, second = (Path(f"{name}.toml").read_text("utf-8").splitlines() for name in "ab")
    assert 'x = { type = "text" }    # its first rows look like { type = "integer", min = …, max = … }' in first
    plain = [line.partition("    # its")[0].replace("tables.a", "tables.b").replace("a.csv", "b.csv") for line in first]
    assert plain == second


def test_several_sources(cli: Command, folder: Path) -> None:
    Path("people.csv").write_text("Id,SSN,city\n1,123,x\n2,456,y\n", "utf-8")
    with duckdb.connect() as connection:
        connection.execute("COPY (SELECT 1 AS who, 2.5 AS cost) TO 'visits.parquet'")
    options = ["--one-row-per-person", "--person", "ID", "--person", "visits.WHO", "--rows-per-person", "visits=20"]
    assert (
        cli("init", "people.csv", "visits.parquet", *options, "--public", "people.city", "--type", "id=integer").code
        == 0
    )
    text = Path("people.toml").read_text("utf-8")
    assert 'SSN = { type = "text" }    # identifies a person?' in text
    with curator_of(folder / "people.toml") as curator:
        people, visits = curator.declaration.tables.values()
        assert (people.person, people.one_row_per_person) == ("Id", True)
        assert (visits.person, visits.rows_per_person, visits.one_row_per_person) == ("who", 20, False)
        question = "SELECT COUNT(*) AS n FROM people p JOIN visits v ON p.Id = v.who"
        assert curator.ask(question, epsilon="1e20").rows == [{"n": 1}]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["a.csv", "--person", "persn"], "--person persn: the source has no such column → write --person Person"),
        (["a.csv", "--person", "person"], "--rows-per-person: it is missing → add --rows-per-person N"),
        (["a.csv", "--person", "Person", "--rows-per-person", "many"], "--rows-per-person many: not a whole"),
        (
            ["a.csv", "--one-row-per-person", "--rows-per-person", "3"],
            "--one-row-per-person: one row per person cannot",
        ),
        (["a.csv", "--one-row-per-person", "--epsilon", "0"], "--epsilon: epsilon must lie between"),
        (
            ["a.csv", "b.csv", "--person", "a.Person", "--rows-per-person", "3"],
            "--person, of b: the privacy unit is missing",
        ),
        (["a.csv", "a.csv", "--one-row-per-person"], "another source makes a table a too"),
        (["h.duckdb", "--one-row-per-person"], "→ write h.duckdb::one or 'h.duckdb::two words'"),
    ],
)
def test_errors_name_the_option(arguments: list[str], says: str, cli: Command, folder: Path) -> None:
    for name in "ab":
        Path(f"{name}.csv").write_text("Person,x\n1,2\n", "utf-8")
    with duckdb.connect("h.duckdb") as connection:
        connection.execute('CREATE TABLE one (x INT); CREATE VIEW "two words" AS SELECT 1 AS x')
    said = cli("init", *arguments)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith(says) or says in said.err
    assert not list(folder.glob("*.toml"))
    assert "tables." not in said.err
    assert ".toml" not in said.err


@pytest.mark.parametrize(
    ("cells", "forms"),
    [
        (["01.02.2020", "31.12.1999", ""], ["%d.%m.%Y"]),
        (["01.02.2020", "03.12.1999"], ["%d.%m.%Y", "%m.%d.%Y"]),
        (["12/31/2020", "1/1/2021"], ["%m/%d/%Y"]),
        (["2020/12/31"], ["%Y/%m/%d"]),
        (["31-12-2020"], ["%d-%m-%Y"]),
        (["01.02.2020 8:30"], ["%d.%m.%Y", "%m.%d.%Y"]),
        (["01.02.2020", "unknown"], []),
        (["32.13.2020"], []),
        (["2020-12-31"], []),
        (["1.2.3"], []),
    ],
)
def test_how_dates_look_is_told_and_stands_as_a_comment(
    cells: list[str], forms: list[str], cli: Command, folder: Path
) -> None:
    Path("a.csv").write_text("born,x\n" + "".join(f"{cell},1\n" for cell in cells), "utf-8")
    said = cli("init", "a.csv", "--one-row-per-person")
    text = (folder / "a.toml").read_text("utf-8")
    assert ("look like " + " or ".join(forms) in said.out) == bool(forms)
    assert (f'\n# csv = {{ dates = "{forms[0] if forms else ""}" }}' in text) == bool(forms)
    assert ("with csv.dates as above" in text) == bool(forms)
    assert discreet.open(folder / "a.toml").tables["a"]["columns"]["born"]["type"] == "text"  # nothing is taken


@pytest.mark.parametrize(
    ("dates", "true", "others"),
    [
        ("%d.%m.%Y", "29.02.2020", ["30.02.2020", "2020-02-29", "29.02.20", "infinity", "epoch", "29/02/2020", "x"]),
        ("%m/%d/%Y", " 2/29/2020 ", ["29/02/2020", "2/29/02020", "2/29/-2020", "29.02.2020", "2/29/2020x"]),
        ("%Y/%m/%d", "2020/2/29", ["2020/2/30", "2020-2-29", "0000/00/00"]),
    ],
)
@pytest.mark.usefixtures("folder")
def test_dates_as_they_are_written(dates: str, true: str, others: list[str]) -> None:
    rows = [f"{day}" for day in (true, *others)] + [f"{true.strip()} 12:30:01", f"{true.strip()} 12:30:01.5", ""]
    Path("a.csv").write_text("day,moment\n" + "".join(f'"{row}","{row}"\n' for row in rows), "utf-8")
    columns = {"day": {"type": "date"}, "moment": {"type": "timestamp"}}
    table = discreet.Table("a.csv", csv={"dates": dates}, one_row_per_person=True, columns=columns)
    with discreet.Curator({"a": table}, epsilon=BUDGET) as curator:
        counted = (
            "SELECT COUNT(day) AS days, COUNTIF(day = DATE '2020-02-29') AS same, COUNT(moment) AS moments, "
            "COUNTIF(moment = TIMESTAMP '2020-02-29 12:30:01') AS seconds FROM a"
        )
        (row,) = curator.ask(counted, epsilon="1e20").rows
    assert row == {"days": 3, "same": 3, "moments": 3, "seconds": 1}


@pytest.mark.parametrize("dates", ["%d.%m.%y", "%d%m%Y", "%d.%m/%Y", "%d.%d.%Y", "d.m.Y", 5, ""])
def test_other_forms_of_dates_are_refused(dates: object) -> None:
    table = discreet.Table("a.csv", csv={"dates": dates}, one_row_per_person=True, columns={"x": str})  # type: ignore
    with pytest.raises(discreet.DeclarationError, match="%d, %m and %Y"):
        discreet.Curator({"a": table}, epsilon=1)


def test_an_empty_file_is_said_to_be_empty(cli: Command, folder: Path) -> None:
    (folder / "a.csv").write_text("", "utf-8")
    said = cli("init", "a.csv", "--one-row-per-person")
    assert (said.code, said.err) == (2, "a.csv: this file is empty → name one whose first line names the columns\n")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("39,State-gov,77516", "39, 77516"),
        ("a,2020-01-01", "2020-01-01"),
        ("1.5,b", "1.5"),
        ("3,4,5,6", "3, 4, 5, …"),
        ("a,b1,2c", ""),
        ("x_1,year 2020", ""),
    ],
)
def test_a_first_line_of_values_is_told(line: str, told: str, cli: Command, folder: Path) -> None:
    (folder / "a.csv").write_text(f"{line}\n" * 4, "utf-8")
    said = cli("init", "a.csv", "--one-row-per-person")
    assert (said.code, "add a line of column names before it" in said.out) == (0, bool(told))
    assert f"looks like values: {told}" in said.out if told else True


def test_what_to_declare_next_is_a_line_that_works(cli: Command, folder: Path) -> None:
    """Types are never taken from rows: the command says how the owner takes them, and says it no more once that is
    done."""
    (folder / "a.csv").write_text("id,day,cost,o'clock,word\n1,2020-01-02,3.5,7,x\n", "utf-8")
    (folder / "b.csv").write_text("id,day\n1,31.01.2020\n", "utf-8")
    base = ["init", "a.csv", "b.csv", "--one-row-per-person"]
    first = cli(*base, "-o", "one.toml", "--json").json["told"]
    assert [line.partition(":")[0] for line in first] == ["b.csv", "a.csv", "b.csv"]
    assert "uncomment the line with `dates`" in first[0]
    assert "the first rows look otherwise: id, day, cost, o'clock →" in first[1]
    assert "--type b.id=integer;" in first[2]  # its dates need their form first
    typed = [line.partition("say so with ")[2].partition(";")[0] for line in first[1:]]
    options = shlex.split(" ".join(typed))
    assert "a.o'clock=integer" in options
    said = cli(*base, *options, "-o", "two.toml", "--json")
    assert (said.code, said.json["told"]) == (0, first[:1])
    text = (folder / "two.toml").read_text("utf-8")
    assert 'cost = { type = "number" }' in text
    assert 'day = { type = "date" }' in text
    assert "epsilon = 1\n" in text  # as the form begins with


def test_fractions_of_a_column_that_is_an_integer_by_its_range_are_told(cli: Command, folder: Path) -> None:
    """The range decides the type, and the first rows do not; what they look like is told, and how it is said."""
    (folder / "a.csv").write_text("cost,age,day\n181.03,54.0,1\n,,2\n12,7,3\n", "utf-8")
    (folder / "b.csv").write_text("cost,age,day\n181,54,1\n,,2\n12,7,3\n", "utf-8")
    options = ["--one-row-per-person", "--range", "cost=0:5000", "--range", "age=0:120", "--range", "day=0:9"]
    said = cli("init", "a.csv", *options, "--json")
    told = "declared as integers, though the first rows look otherwise: cost → if they are right, say so with"
    assert (said.code, said.json["told"]) == (0, [f"a.csv: {told} --type cost=number"])
    assert cli("init", "b.csv", *options, "--json").json["told"] == []
    one, two = ((folder / f"{name}.toml").read_text("utf-8") for name in "ab")
    bounded = 'cost = { type = "integer", min = 0, max = 5000 }'
    assert f'{bounded}    # its first rows look like {{ type = "number", min = …, max = … }}' in one.splitlines()
    assert bounded in two.splitlines()
    declared = [discreet.open(folder / f"{name}.toml").tables[name]["columns"] for name in "ab"]
    assert declared[0] == declared[1]
    for kind in ("number", "integer"):  # once the owner says the type, nothing more is told
        said = cli("init", "a.csv", *options, "--type", f"cost={kind}", "-o", f"{kind}.toml", "--json")
        assert (said.code, said.json["told"]) == (0, [])
        assert f'cost = {{ type = "{kind}", min = 0, max = 5000 }}\n' in (folder / f"{kind}.toml").read_text("utf-8")


def test_what_is_declared_as_texts_and_what_as_integers_is_told_apart(cli: Command, folder: Path) -> None:
    (folder / "a.csv").write_text("cost;weight;n\n181,03;70,5;1\n", "utf-8")
    (folder / "b.csv").write_text("x\nword\n", "utf-8")
    options = ["--one-row-per-person", "--range", "cost=0:5000", "--range", "n=0:9"]
    texts, integers = cli("init", "a.csv", "b.csv", *options, "--json").json["told"]
    assert "declared as texts, though the first rows look otherwise: weight → " in texts
    assert "say so with --type a.weight=number; or with --range" in texts
    assert "declared as integers, though the first rows look otherwise: cost → " in integers
    assert integers.endswith("say so with --type a.cost=number")


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("621.0", "integer"),
        ("621.", "integer"),
        ("-7.00", "integer"),
        ("621.5", None),  # as integers, 621.5 and 622 would be one person
        ("12345678901234567890", None),  # as integers, they would be NULL
    ],
)
def test_a_key_that_looks_like_a_number_is_no_number_with_fractions(
    key: str, kind: str | None, cli: Command, folder: Path
) -> None:
    """Columns of persons, and those that a table refers to: what the command says works."""
    (folder / "people.csv").write_text(f"ID,height\n{key},1.5\n1.0,2\n,1\n", "utf-8")
    (folder / "visits.csv").write_text(f"Visit,patient\n{key},{key}\n1.0,\n", "utf-8")
    (folder / "notes.csv").write_text(f"visit\n{key}\n1.0\n", "utf-8")
    base = ["init", "people.csv", "visits.csv", "notes.csv", "--one-row-per-person", "--person", "people.id"]
    base += ["--person", "visits.patient -> PEOPLE.Id", "--rows-per-person", "visits=3"]
    base += ["--person", "notes.visit -> visits.visit", "--rows-per-person", "notes=3"]
    told = cli(*base, "-o", "one.toml", "--json").json["told"]
    found = [line.partition("say so with ")[2].partition(";")[0] for line in told]
    keys = [f"--type people.ID={kind} ", f"--type visits.Visit={kind} --type visits.patient={kind}"]
    keys += [f"--type notes.visit={kind}"]
    height = "--type people.height=number"
    assert found == ([f"{keys[0]}{height}", *keys[1:]] if kind else [height])
    assert (folder / "one.toml").read_text("utf-8").count('look like { type = "number"') == 1
    assert cli(*base, *shlex.split(" ".join(found)), "-o", "two.toml").code == 0
    with curator_of(folder / "two.toml") as curator:
        assert curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon="1e20").rows == [{"n": 1}]


@pytest.mark.parametrize("row", ["patient,x\n621.0,3\n,4\n7.0,5\n", "patient;x\n621,0;3,5\n;4,5\n7,0;5,5\n"])
def test_a_person_that_looks_like_a_number_is_an_integer(row: str, cli: Command, folder: Path) -> None:
    """As pandas writes whole numbers beside a missing one; with a decimal comma likewise."""
    (folder / "a.csv").write_text(row, "utf-8")
    base = ["init", "a.csv", "--person", "patient", "--rows-per-person", "2", "--range", "x=0:9.0"]
    (told,) = cli(*base, "-o", "one.toml", "--json").json["told"]
    assert "say so with --type patient=integer;" in told
    assert cli(*base, "--type", "patient=integer", "-o", "two.toml", "--json").json["told"] == []
    with curator_of(folder / "two.toml") as curator:
        question = "SELECT COUNT(*) AS n FROM a WHERE patient = 621"
        assert curator.ask(question, epsilon="1e20").rows == [{"n": 1}]
