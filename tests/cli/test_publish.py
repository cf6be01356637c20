"""`discreet publish` with several tables: what is written, printed and refused."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import duckdb
import pandas as pd
import pytest
from click.testing import CliRunner

from discreet.catalog import read
from discreet.cli import main
from discreet.cli.outputs import spare
from discreet.errors import QuestionError
from related_tables import CUSTOMERS, ORDERS, shop

DECLARED = """
[budget]
epsilon = 20.0
delta = 1e-6
"""
DECLARED += CUSTOMERS + ORDERS.replace('"customer"', '"customer -> customers.id"')


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, frame in shop(200).items():
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    (tmp_path / "shop.toml").write_text(DECLARED, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_each_table_goes_to_a_file_of_its_own(folder: Path) -> None:
    asked = ["publish", "shop.toml", "customers", "orders", "--epsilon", "4"]
    found = CliRunner().invoke(main, [*asked, "-o", "made.csv"])
    assert found.exit_code == 0, found.output
    customers, orders = (pd.read_csv(folder / f"made_{name}.csv") for name in ("customers", "orders"))
    assert set(orders.customer) <= set(customers.id)
    assert f"{len(orders):,} rows of orders are in made_orders.csv" in found.output
    again = CliRunner().invoke(main, [*asked, "--json"])
    whole = json.loads(again.stdout)
    assert whole["charged"]["epsilon"] == 0
    assert len(whole["tables"]["orders"]["rows"]) == len(orders)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["customers"], "named twice"),
        (["nothing"], "is not declared"),
        (["orders", "--rows", "5"], "of a single table"),
        (["orders", "--column", "sex"], "of a single table"),
        (["orders", "--plot", "page.html"], "--plot"),
        (["orders", "-o", "made.doc"], "cannot be written"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_cannot_be_is_refused(more: list[str], words: str) -> None:
    found = CliRunner().invoke(main, ["publish", "shop.toml", "customers", *more, "--epsilon", "1"])
    assert found.exit_code != 0
    assert words in found.output + str(found.exception)


SOURCES = """
[budget]
epsilon = 5.0
delta = 1e-6
[tables.patients]
source = "clinic.duckdb::patients"
one_row_per_person = true
columns = { sex = { type = "text", values = ["F", "M"] } }
[tables.visits]
source = "visits/"
one_row_per_person = true
columns = { sex = { type = "text", values = ["F", "M"] } }
[tables.years]
source = "years/*/x*.csv"
one_row_per_person = true
columns = { sex = { type = "text", values = ["F", "M"] } }
[tables.towns]
source = "towns.parquet"
public = true
columns = { sex = { type = "text", values = ["F", "M"] } }
"""


@pytest.fixture
def clinic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows = "SELECT CASE WHEN range % 2 = 0 THEN 'F' ELSE 'M' END AS sex FROM range(400)"
    for name in ("visits", "years/2020"):
        (tmp_path / name).mkdir(parents=True)
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as connection:
        connection.execute(f"CREATE TABLE patients AS {rows}")
        for file in ("visits/a.parquet", "years/2020/x1.csv", "towns.parquet"):
            connection.execute(f"COPY ({rows}) TO '{tmp_path / file}'")
    (tmp_path / "clinic.toml").write_text(SOURCES, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {str(one.relative_to(folder)): one.read_bytes() for one in sorted(folder.rglob("*")) if one.is_file()}


@pytest.mark.parametrize("link", [None, os.link, os.symlink], ids=["itself", "hard", "soft"])
@pytest.mark.parametrize(
    ("target", "output"),
    [
        ("clinic.duckdb", "out.duckdb"),
        ("visits/a.parquet", "out.parquet"),
        ("years/2020/x1.csv", "out.csv"),
        ("towns.parquet", "out.parquet"),
        ("clinic.toml", "out.json"),
        ("clinic.ledger", "out.csv"),
        ("clinic.ledger.head", "out.csv"),
        ("clinic.accounts", "out.csv"),
        ("clinic.ledger+daily.stream", "out.csv"),
    ],
)
def test_what_a_declaration_needs_is_not_written_over(
    target: str, output: str, link: Callable[[Path, str], None] | None, clinic: Path
) -> None:
    """Neither by its name nor by another: nothing is charged, and every file is as it was."""
    if not (clinic / target).exists():
        (clinic / target).write_text("kept", "utf-8")
    if link is not None:
        link(clinic / target, output)
        assert (clinic / output).samefile(clinic / target)
    else:
        output = f"visits/../{target}"
    before = contents(clinic)
    with pytest.raises(QuestionError, match=r"is (the|a file)"):
        spare(read("clinic.toml"), "new.csv", output)
    ending = Path(output).suffix
    if ending in (".csv", ".parquet", ".json", ".duckdb"):
        found = CliRunner().invoke(main, ["publish", "clinic.toml", "patients", "--epsilon", "1", "-o", output])
        assert isinstance(found.exception, QuestionError)
    assert contents(clinic) == before


@pytest.mark.parametrize(
    ("output", "refuses"),
    [
        ("visits/new.parquet", True),
        ("visits/more/new.parquet", True),
        ("visits/new.csv", False),
        ("years/2021/x.csv", True),
        ("years/2021/y.csv", False),
        ("clinic.snapshots/a.csv", True),
        ("clinic.ledger", True),  # which is not there yet
        ("clinic.ledger.head", True),
        ("clinic.accounts", True),
        ("clinic.duckdb.wal", True),
        ("clinic.csv", False),
        ("new.duckdb", False),
    ],
)
@pytest.mark.usefixtures("clinic")
def test_a_new_file_does_not_become_a_part_of_a_source(output: str, refuses: bool) -> None:
    found = read("clinic.toml")
    if refuses:
        with pytest.raises(QuestionError, match="write to another file"):
            spare(found, output)
    else:
        spare(found, output)


@pytest.mark.parametrize("output", ["years/link/x.csv", "elsewhere/x.csv"])
def test_a_new_file_behind_a_link_that_a_pattern_meets_is_refused(output: str, clinic: Path) -> None:
    (clinic / "elsewhere").mkdir()
    (clinic / "years/link").symlink_to("../elsewhere")
    with pytest.raises(QuestionError, match="write to another file"):
        spare(read("clinic.toml"), output)
    spare(read("clinic.toml"), "elsewhere/y.csv")


AGREED = ("--party", "a=h:1=f.pem", "--epsilon", "1", "--colluding", "1")


@pytest.mark.parametrize(
    "command",
    [
        ["ask", "clinic.toml", "SELECT COUNT(*) AS n FROM patients", "--epsilon", "1", "-o", "years/2020/x1.csv"],
        ["ask", "clinic.toml", "SELECT COUNT(*) AS n FROM patients", "--epsilon", "1", "--plot", "page.html"],
        ["publish", "clinic.toml", "patients", "--epsilon", "1", "-o", "clinic.duckdb"],
        ["publish", "clinic.toml", "patients", "--epsilon", "1", "--plot", "page.html"],
        ["publish", "clinic.toml", "patients", "visits", "--epsilon", "1", "-o", "page.csv"],
        ["stream", "clinic.toml", "daily", "-o", "visits/a.parquet"],
        ["audit", "clinic.toml", "--plot", "page.html"],
        ["backup", "clinic.toml", "clinic.snapshots/copy"],
        ["together", "agree", "clinic.toml", "SELECT COUNT(*) AS n FROM patients", *AGREED, "-o", "clinic.ledger"],
    ],
    ids=" ".join,
)
def test_every_command_that_writes_refuses_it(command: list[str], clinic: Path) -> None:
    (clinic / "page.html").symlink_to("clinic.duckdb")
    (clinic / "page_visits.csv").symlink_to("years/2020/x1.csv")
    before = contents(clinic)
    found = CliRunner().invoke(main, command)
    assert isinstance(found.exception, QuestionError)
    assert found.exception.code == "output", found.exception
    assert contents(clinic) == before
