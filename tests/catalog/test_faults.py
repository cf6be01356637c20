"""Every fault of a declaration: where it stands, what is wrong, what to write instead."""

from __future__ import annotations

import tomllib
from decimal import Decimal

import pandas
import pytest

from discreet import Curator, DeclarationError, Table
from discreet.catalog import declare

TABLE = '[tables.t]\nsource = "t.csv"\none_row_per_person = true\n[tables.t.columns]\n'
BUDGET = "[budget]\nepsilon = 1\n"

FAULTS: list[tuple[str, str, str, str]] = [
    (TABLE + "a = { type = 'text' }", "budget", "it is missing", "write [budget]"),
    (BUDGET, "tables", "it is missing", "write [tables]"),
    ("[budget]\n" + TABLE, "budget.epsilon", "it is missing", "write epsilon = 1.0"),
    ("[budget]\nepsilon = 0", "budget.epsilon", "epsilon must lie between", "write a decimal"),
    ("[budget]\nepsilon = -1", "budget.epsilon", "epsilon must lie between", "write a decimal"),
    ("[budget]\nepsilon = nan", "budget.epsilon", "it must be a finite number", "write a decimal"),
    ("[budget]\nepsilon = inf", "budget.epsilon", "it must be a finite number", "write a decimal"),
    ("[budget]\nepsilon = 1e400", "budget.epsilon", "epsilon must lie between", "write a decimal"),
    ("[budget]\nepsilon = 1e-320", "budget.epsilon", "epsilon must lie between", "write a decimal"),
    ("[budget]\nepsilon = 1e999999999", "budget.epsilon", "it must be a finite number", "write a decimal"),
    ("[budget]\nepsilon = '1'", "budget.epsilon", "it must be a finite number", "write a decimal"),
    ("[budget]\nepsilon = true", "budget.epsilon", "it must be a finite number", "write a decimal"),
    (BUDGET + "delta = 1", "budget.delta", "delta must be at least 0 and below 1", "write a decimal"),
    (BUDGET + "delta = -1e-9", "budget.delta", "delta must be at least 0 and below 1", "write a decimal"),
    (BUDGET + "delta = 1e-6\nkeys_delta = 1e-5", "budget.keys_delta", "it is a part of delta", "write at most delta"),
    (BUDGET + "delt = 1e-6", "budget.delt", "this key is not known", "write delta"),
    (BUDGET + "[tabels.t]\n", "tabels", "this key is not known", "write tables"),
    (BUDGET + "[question]\nepsilon = 0", "question.epsilon", "epsilon must lie between", "write a decimal"),
    (BUDGET + "[analysts.ana]\nepsilon = 2", "analysts.ana.epsilon", "it is larger than the whole", "write at most"),
    (
        BUDGET + "[analysts.ana]\nepsilon = 1\nday = 2",
        "analysts.ana.day",
        "it is larger than epsilon",
        "write at most analysts.ana.epsilon",
    ),
    (
        BUDGET + "[analysts.ana]\nepsilon = 1\nday = 0.5\nmonth = 0.4",
        "analysts.ana.day",
        "it is larger than month",
        "write at most analysts.ana.month",
    ),
    (BUDGET + "[analysts.'']\nepsilon = 1", "analysts", "an analyst needs a name", "write [analysts.ana]"),
    (BUDGET + "[analysts]\nana = 1", "analysts.ana", "it must be a table", "write [analysts.ana]"),
    (BUDGET + "[engine]\nseconds = 0", "engine.seconds", "it must be a whole number from 1 to", "write for example 20"),
    (BUDGET + "[engine]\nmemory = 1", "engine.memory", "this key is not known", "write memory_gib"),
    ("ledger = 3\n" + BUDGET, "ledger", "it must be the path of a file", "write ledger ="),
    (BUDGET + "[tables.t]\n", "tables.t.source", "it is missing", "write source ="),
    (
        BUDGET + "[tables.t]\nsource = 't.xlsx'",
        "tables.t.source",
        "it is neither .csv, .parquet",
        "save t.xlsx as .csv",
    ),
    (BUDGET + "[tables.t]\nsource = 5", "tables.t.source", "it is neither .csv, .parquet", "write for example"),
    (BUDGET + "[tables.t]\nsource = 't.duckdb::'", "tables.t.source", "a DuckDB source is a file and", "write source"),
    (BUDGET + "[tables.t]\nsource = 't.csv'", "tables.t", "the privacy unit is missing", "write one_row_per"),
    (BUDGET + "[tables.t]\nsource = 't.csv'", "tables.t.columns", "it is missing", "write [tables.t.columns]"),
    (
        BUDGET + "[tables.t]\npublic = true\nrows_per_person = 1",
        "tables.t",
        "a public table has no persons",
        "leave out",
    ),
    *[
        (
            BUDGET + f"[tables.t]\nsource = 't.csv'\npublic = true\n{word} = {said}",
            f"tables.t.{word}",
            f"{word} is for tables about people",
            "leave it out",
        )
        for word, said in (("impossible", "['a < 3']"), ("totals", "[]"), ("orders", "['a <= b']"), ("sums", "{}"))
    ],
    (BUDGET + "[tables.t]\nperson = 'a'", "tables.t.person", "the column a is not declared", "write a = {"),
    (
        BUDGET + "[tables.t]\nsource = 't.csv'\nperson = 'a'\n[tables.t.columns]\na = { type = 'text' }",
        "tables.t.rows_per_person",
        "it is missing",
        "write rows_per_person",
    ),
    (
        BUDGET + "[tables.t]\nsource = 't.csv'\nperson = 'a'\nrows_per_person = 0\n[tables.t.columns]\na.type = 'text'",
        "tables.t.rows_per_person",
        "it must be a whole number from 1",
        "write for example 20",
    ),
    (
        BUDGET
        + "[tables.t]\nsource = 't.csv'\nperson = 'a -> b.c'\nrows_per_person = 1\n[tables.t.columns]\na.type='text'",
        "tables.t.person",
        "there is no declared column b.c",
        'write "COLUMN -> table.column"',
    ),
    (
        BUDGET + "[tables.t]\nsource = 't.csv'\nperson = 'a'\nrows_per_person = 1\n[tables.t.columns]\na.type='number'",
        "tables.t.columns.a",
        "a number with fractions cannot identify a person",
        'write type = "integer"',
    ),
    (
        BUDGET
        + "[tables.t]\nperson = 'a'\nrows_per_person = 1\n[tables.t.columns]\na = { type='integer', min=1, max=2}",
        "tables.t.columns.a",
        "clamping would make several persons one",
        "leave out min and max of a",
    ),
    (BUDGET + TABLE + "a = { type = 'txt' }", "tables.t.columns.a.type", "this type is not known", "write text"),
    (BUDGET + TABLE + "a = { type = ['text'] }", "tables.t.columns.a.type", "this type is not known", "write"),
    (BUDGET + TABLE + "a = { }", "tables.t.columns.a.type", "a CSV file does not state types", "write type ="),
    (BUDGET + TABLE + "a = 3", "tables.t.columns.a", "it does not describe a column", 'write { type = "text" }'),
    (
        BUDGET + TABLE + "a = { type = 'text', max = 3 }",
        "tables.t.columns.a",
        "a text column takes no min",
        "leave them",
    ),
    (BUDGET + TABLE + "a = { type = 'number', mn = 3 }", "tables.t.columns.a.mn", "this key is not known", "write min"),
    (
        BUDGET + TABLE + "a = { type = 'number', min = 3, max = 2.5 }",
        "tables.t.columns.a.min",
        "min is larger than max",
        "write min at most max",
    ),
    (
        BUDGET + TABLE + "a = { type = 'number', min = nan, max = 2 }",
        "tables.t.columns.a.min",
        "it must be a finite number",
        "write a decimal",
    ),
    (
        BUDGET + TABLE + "a = { type = 'integer', min = 0.5, max = 2 }",
        "tables.t.columns.a.min",
        "not a valid integer",
        "write a value of type integer",
    ),
    (
        BUDGET + TABLE + "a = { type = 'integer', max = 9223372036854775808 }",
        "tables.t.columns.a.max",
        "an integer must lie between -(2^63-1) and 2^63-1",
        "write at most 9223372036854775807",
    ),
    (
        BUDGET + TABLE + "a = { type = 'integer', min = -9223372036854775808 }",
        "tables.t.columns.a.min",
        "an integer must lie between -(2^63-1) and 2^63-1",
        "write at least -9223372036854775807",
    ),
    (
        BUDGET + TABLE + "a = { type = 'number', min = -1e308 }",
        "tables.t.columns.a.min",
        "a number must lie between -10^300 and 10^300",
        "write at least -1e300",
    ),
    (
        BUDGET + TABLE + "a = { type = 'number', values = [1, 1e301] }",
        "tables.t.columns.a.values",
        "a number must lie between -10^300 and 10^300",
        "write at most 1e300",
    ),
    (
        BUDGET + TABLE + "a = { type = 'date', min = '2020-01-01' }",
        "tables.t.columns.a.min",
        "not a valid date",
        "write it without quotes, 2020-01-31",
    ),
    (
        BUDGET + TABLE + "a = { type = 'timestamp', min = 2020-01-01T00:00:00Z }",
        "tables.t.columns.a.min",
        "not a valid timestamp",
        "write a value of type timestamp",
    ),
    (
        BUDGET + TABLE + "a = { type = 'integer', step = 2 }",
        "tables.t.columns.a.step",
        "step is for numbers, and above 0",
        "write step = 0.01",
    ),
    (
        BUDGET + TABLE + "a = { type = 'number', step = 0 }",
        "tables.t.columns.a.step",
        "step is for numbers, and above 0",
        "write step = 0.01",
    ),
    (
        BUDGET + TABLE + "a = { type = 'text', values = [] }",
        "tables.t.columns.a.values",
        "it must be a list with at least one value",
        "write values =",
    ),
    (
        BUDGET + TABLE + "a = { type = 'text', values = ['x', 'x'] }",
        "tables.t.columns.a.values",
        "a value is repeated",
        "write each value once",
    ),
    (
        BUDGET + TABLE + "a = { type = 'text', values = ['x', 1] }",
        "tables.t.columns.a.values",
        "not a valid text",
        'write it in quotes: "1"',
    ),
    (
        BUDGET + TABLE + "a = { type = 'integer', values = [1], max = 2 }",
        "tables.t.columns.a",
        "values and min/max cannot be combined",
        "keep one of them",
    ),
    (
        BUDGET + TABLE + "a = { type = 'text' }\nA = { type = 'text' }",
        "tables.t.columns.A",
        "another column has the same name in other case",
        "declare one of them",
    ),
    (
        BUDGET + TABLE + "a = { type = 'text' }\n" + TABLE.replace("tables.t", "tables.T") + "a = { type = 'text' }",
        "tables.T",
        "another table has the same name in other case",
        "rename one of them",
    ),
    (
        BUDGET + TABLE + '"" = { type = "text" }',
        "tables.t.columns",
        "a column's name is not a string, is empty",
        "name the column",
    ),
    (
        BUDGET + TABLE.replace("one_row", "rows_per_person = 3\none_row") + "a = { type = 'text' }",
        "tables.t",
        "one row per person cannot be combined with other contribution bounds",
        "leave out rows_per_person",
    ),
    (
        BUDGET + TABLE.replace("= true", "= 1") + "a = { type = 'text' }",
        "tables.t.one_row_per_person",
        "it must be true or false",
        "write true or false",
    ),
]


def faults(text: str) -> dict[str, tuple[str, str]]:
    """Every fault of a declaration: where, to what is wrong and what to write."""
    with pytest.raises(DeclarationError) as refused:
        declare(tomllib.loads(text, parse_float=Decimal))
    assert refused.value.exit_code == 2
    found = {fault.where: (fault.message, fault.fix) for fault in refused.value.faults}
    assert all(message and fix for message, fix in found.values())
    for where, (message, fix) in found.items():
        assert f"{where}: {message} → {fix}" in str(refused.value)
    return found


@pytest.mark.parametrize(("text", "where", "message", "fix"), FAULTS)
def test_a_fault_names_key_and_fix(text: str, where: str, message: str, fix: str) -> None:
    found = faults(text)
    assert found[where][0].startswith(message)
    assert found[where][1].startswith(fix)


def test_keys_that_are_referred_to_are_not_clamped() -> None:
    """Two keys beyond a bound would be one, and lead to two persons."""
    tables = """
[tables.t]
source = 't.csv'
person = 'o -> u.o'
rows_per_person = 1
[tables.t.columns]
o.type = 'integer'
[tables.u]
source = 'u.csv'
person = 'p'
rows_per_person = 1
[tables.u.columns]
p.type = 'text'
o = { type = 'integer', min = 0, max = 9 }
"""
    assert faults(BUDGET + tables) == {
        "tables.u.columns.o": ("clamping would make several keys one", "leave out min and max of o")
    }


def test_a_step_has_multiples_within_the_bounds() -> None:
    """Also where bounds are known: a question counted in such a step, and a table did not."""
    frame = pandas.DataFrame({"x": [5.0]})
    column = {"type": "number", "min": 1, "max": 9, "step": 10}
    with pytest.raises(DeclarationError, match="no multiple of it lies between min and max"):
        Curator({"t": Table(frame, columns={"x": column}, one_row_per_person=True)}, epsilon=1)


def test_a_path_of_keys_ends_at_a_person() -> None:
    lower = (
        "[tables.u]\nsource = 'u.csv'\nperson = 'a'\nrows_per_person = 1\n[tables.u.columns]\na = { type = 'text' }\n"
    )
    upper = lower.replace("tables.u", "tables.t").replace("'a'\nrows", "'a -> u.a'\nrows")
    assert faults(BUDGET + lower + upper.replace("type = 'text'", "type = 'integer'"))["tables.t.person"] == (
        "a is integer, u.a is text",
        "declare a and u.a with one type",
    )
    circle = lower.replace("'a'\nrows", "'a -> t.a'\nrows")
    assert faults(BUDGET + circle + upper)["tables.t.person"][0] == "the foreign keys form a cycle"
    assert (
        faults(BUDGET + lower + upper.replace("u.a", "u.b"))["tables.t.person"][0] == "there is no declared column u.b"
    )
