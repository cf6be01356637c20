"""Group keys with fractions: whole numbers in the engine, their own values in the answer, as plain SQL has them."""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow
import pytest

import discreet
from discreet.catalog import declare
from discreet.dialect.counted import Scale
from discreet.errors import QuestionError
from discreet.sql import lower
from discreet.trusted.ring_a.table import Type

EXACT = 10**12
COLUMNS: dict[str, Any] = {
    "id": {"type": "integer"},
    "age": {"type": "integer", "min": 0, "max": 99, "nulls": False},
    "x": {"type": "number", "min": 0, "max": 99.99, "step": 0.01},
    "y": {"type": "number", "min": -5, "max": 5, "nulls": False},
    "z": {"type": "number"},
    "price": {"type": "number", "min": 0, "max": 9.99, "step": 0.01},
    "day": {"type": "date"},
}


def rows(chance: random.Random) -> Iterator[dict[str, Any]]:
    """Two of each row, so that private groups are shown."""
    for place in range(1500):
        row = {
            "age": chance.randrange(100),
            "x": chance.randrange(10_000) / 100 if chance.random() > 0.1 else None,
            "y": chance.uniform(-5, 5),
            "z": chance.choice([chance.uniform(-1e6, 1e6), 1e300, -1e300, None, 0.05, 2.675]),
            "price": Decimal(chance.randrange(1000)) / 100,
            "day": datetime.date(2020, 1, 1) + datetime.timedelta(chance.randrange(400)),
        }
        yield row | {"id": 2 * place}
        yield row | {"id": 2 * place + 1}


TABLE = pyarrow.Table.from_pylist(list(rows(random.Random(5))))


@pytest.fixture(scope="module")
def curator() -> Iterator[discreet.Curator]:
    people = discreet.Table(TABLE, person="id", one_row_per_person=True, columns=COLUMNS)
    with discreet.Curator({"t": people}, epsilon=10**20, delta=1e-3, keys_delta=9e-4) as one:
        yield one


@pytest.fixture(scope="module")
def plain() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.register("t", TABLE)
        yield connection


def groups(one: discreet.Curator, text: str) -> dict[Any, int]:
    return {row["k"]: row["n"] for row in one.ask(text, epsilon=EXACT, delta=1e-7).rows}


PUBLIC = {
    "FLOOR(x / 20.0) * 20.0": 5,
    "FLOOR(age / 20.0) * 20.0": 5,
    "FLOOR(age / 20) * 20": 5,
    "FLOOR((x - 5) / 20) * 20 + 5": 6,
    "CEIL(x / 0.5) * 0.5": 201,
    "TRUNC(x / 25) * 25": 5,
    "CAST(FLOOR(x / 10) AS INT) * 10": 10,
    "x - x % 10": 10,
    "x - MOD(x, 0.5)": 200,
    "age - age % 10": 10,
    "y - y % 2": 7,
    "FLOOR(y / 2) * 2": 6,
    "ROUND(y, 1)": 101,
    "ROUND(x, -1)": 11,
    "ROUND(age, -1)": 11,
    "TRUNC(x, -1)": 11,
    "10 * FLOOR(y) + 2.5": 11,
    "100 - FLOOR(x / 20) * 20": 5,
    "-FLOOR(x / 20) / 4": 5,
    "price": 1000,
    "FLOOR(price)": 10,
    "age * 0.5": 100,
    "age / 8": 100,
    "CASE WHEN age < 30 THEN 0.5 WHEN age < 60 THEN 1.25 ELSE 3 END": 3,
    "CASE WHEN age < 30 THEN 0.5 WHEN age < 60 THEN 1.25 END": 2,
}
"""Keys of known bounds, and how many values they may have."""


@pytest.mark.parametrize("key", PUBLIC)
def test_keys_have_the_groups_of_plain_sql(
    curator: discreet.Curator, plain: duckdb.DuckDBPyConnection, key: str
) -> None:
    text = f"SELECT {key} AS k, COUNT(*) AS n FROM t GROUP BY 1"
    exact = dict(plain.sql(text.replace("x", "x::DECIMAL(9, 2)") if "x - " in key else text).fetchall())
    found = groups(curator, text)
    assert {k: n for k, n in found.items() if n} == {None if k is None else float(k): n for k, n in exact.items()}
    question = lower(text, declare({"budget": {"epsilon": 1}, "tables": {"t": TABLE_OF | {"columns": COLUMNS}}}))
    (one,) = question.plan.keys
    assert one.type is Type.INTEGER
    assert len(one.values or ()) == PUBLIC[key]


TABLE_OF: dict[str, Any] = {"source": "no.csv", "person": "id", "one_row_per_person": True}


@pytest.mark.parametrize(
    "key", ["x", "ROUND(x, 1)", "ROUND(z, 1)", "TRUNC(z, 2)", "z - z % 100", "COALESCE(x, -1)", "x * 3"]
)
def test_private_keys_are_shown_as_they_are(
    curator: discreet.Curator, plain: duckdb.DuckDBPyConnection, key: str
) -> None:
    """What 64 bits cannot count is without a value; a multiple of a step is the double nearest to it."""
    text = f"SELECT {key} AS k, COUNT(*) AS n FROM t GROUP BY 1"
    exact = dict(plain.sql(text.replace("x *", "x::DECIMAL(9, 2) *")).fetchall())
    far = sum(exact.pop(k) for k in list(exact) if k is not None and abs(k) > 1e17)
    exact = {None if k is None else float(k): n for k, n in exact.items()}
    if far:
        exact[None] = exact.get(None, 0) + far
    assert groups(curator, text) == exact


def test_answers_are_of_the_keys_own_values(curator: discreet.Curator) -> None:
    """WHERE leaves the keys that it can be true for; HAVING, ORDER BY and LIMIT see what the answer shows."""
    key = "FLOOR(x / 20.0) * 20.0"
    assert list(groups(curator, f"SELECT {key} AS k, COUNT(*) AS n FROM t WHERE x >= 40 GROUP BY 1")) == [40, 60, 80]
    text = f"SELECT {key} AS k, COUNT(*) AS n FROM t WHERE x IS NOT NULL GROUP BY k HAVING {key} < 70 ORDER BY k DESC"
    assert list(groups(curator, text)) == [60, 40, 20, 0]
    assert list(groups(curator, f"{text} LIMIT 2")) == [60, 40]
    release = curator.ask(f"SELECT {key} AS k, age - age % 50 AS m, COUNT(*) AS n FROM t GROUP BY k, m", epsilon=EXACT)
    assert {(type(row["k"]), row["m"]) for row in release.rows if row["k"] is not None} == {(float, 0), (float, 50)}


def test_one_count_is_one_measurement(curator: discreet.Curator) -> None:
    """However it is scaled: the second question costs nothing."""
    first = curator.ask("SELECT FLOOR(y / 3) * 3 AS k, COUNT(*) AS n FROM t GROUP BY 1", epsilon=7)
    second = curator.ask("SELECT 0.5 * FLOOR(y / 3) + 1 AS k, COUNT(*) AS n FROM t GROUP BY 1", epsilon=7)
    assert first.charged
    assert not second.charged
    assert [(row["k"] / 6 + 1, row["n"]) for row in first.rows] == [tuple(row.values()) for row in second.rows]


@pytest.mark.parametrize(
    ("key", "code", "fix"),
    [
        ("y", "number-key", "group by FLOOR(y / 10) * 10 or ROUND(y, 1); or declare a step, as step = 0.01, for y"),
        ("SQRT(x)", "number-key", "group by FLOOR(SQRT(x) / 10) * 10 or ROUND(SQRT(x), 1)"),
        ("y * 2", "number-key", "group by FLOOR(y * 2 / 10) * 10 or ROUND(y * 2, 1)"),
        ("FLOOR(y * 1e30)", "number-key", "take larger steps, as FLOOR(y / 1e9) * 1e9"),
        ("ROUND(y * 1e18, 2)", "number-key", "or have the owner declare closer bounds"),
        ("id * 0.5", "person-key", "group by something that many persons share"),
        ("id + 0.0", "person-key", "group by something that many persons share"),
        ("FLOOR(x), FLOOR(x) * 2", "twice", "group by it once"),
        ("FLOOR(x / 20) * 20", "no-group", "0, 20, 40, 60, 80"),
    ],
)
def test_what_is_no_key(curator: discreet.Curator, key: str, code: str, fix: str) -> None:
    where = "WHERE x > 500" if code == "no-group" else ""
    with pytest.raises(QuestionError) as caught:
        curator.explain(f"SELECT COUNT(*) FROM t {where} GROUP BY {key}", epsilon=1)
    assert caught.value.code == code
    assert fix in caught.value.fix


def test_a_scale_shows_null_as_null() -> None:
    scale = Scale(Type.INTEGER, step=10, start=-5)  # type: ignore[arg-type]
    assert [scale.of(key) for key in (None, 0, 3)] == [None, -5, 25]
