"""Rows compared with what was released before: whatever that is, what is paid is answered."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import date
from typing import Any

import pyarrow
import pytest

import discreet
from discreet import Curator, QuestionError
from kinds import some

NEVER = 1e20
ROWS: list[dict[str, Any]] = [
    {"person": i, "n": i % 10, "kind": "uvw"[i % 3], "word": ["red", "blue"][i % 2], "day": date(2020, 1 + i % 9, 1)}
    for i in range(300)
]
PLACES = [{"name": "red", "size": 5}, {"name": "blue", "size": None}, {"name": "v", "size": 7}]


def opened() -> Curator:
    columns = {
        "person": int,
        "n": {"type": "integer", "min": 0, "max": 9, "nulls": False},
        "kind": {"type": "text", "values": ["u", "v", "w"], "nulls": False},
        "word": str,
        "day": {"type": "date", "min": date(2020, 1, 1), "max": date(2020, 12, 31)},
    }
    tables = {
        "t": discreet.Table(pyarrow.Table.from_pylist(ROWS), person="person", one_row_per_person=True, columns=columns),
        "places": discreet.Table(pyarrow.Table.from_pylist(PLACES), public=True, columns={"name": str, "size": int}),
    }
    return discreet.Curator(tables, epsilon=1e30, delta=1e-2, keys_delta=9e-3)


@pytest.fixture(scope="module")
def curator() -> Iterator[Curator]:
    with opened() as one:
        yield one


def only(curator: Curator, question: str) -> Any:
    (row,) = curator.ask(question, epsilon=NEVER).rows
    return next(iter(row.values()))


NOTHING = "(SELECT MAX(k) FROM (SELECT kind, COUNT(*) AS k FROM t GROUP BY kind) s WHERE k > 1e6)"
WORD = "(SELECT word FROM t GROUP BY word ORDER BY COUNT(*) DESC, word LIMIT 1)"


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        (f"n > {NOTHING}", 0),
        (f"NOT (n > {NOTHING})", 0),
        (f"n + {NOTHING} > 1", 0),
        (f"n = 3 OR n > {NOTHING}", 30),
        (f"{NOTHING} IS NULL", 300),
        (f"kind = {WORD}", 0),
        (f"kind <> {WORD}", 300),
        (f"word = {WORD}", 150),
        ("n IN (SELECT n FROM t GROUP BY n HAVING COUNT(*) > 1000)", 0),
        ("n NOT IN (SELECT n FROM t GROUP BY n HAVING COUNT(*) > 1000)", 300),
        ("kind IN (SELECT word FROM t GROUP BY word)", 0),
        ("n < (SELECT 1e300 * AVG(n) FROM t)", 300),
        ("n > (SELECT -1e300 * AVG(n) FROM t)", 300),
        ("n < (SELECT EXP(1000 * AVG(n)) FROM t)", 300),
        ("n > (SELECT AVG(n) FROM t) AND day > (SELECT MIN(day) FROM t) AND kind <> (SELECT MODE(kind) FROM t)", None),
        ("n > (SELECT AVG(n) FROM t WHERE kind = 'u' GROUP BY kind)", 150),
        ("word = (SELECT name FROM places WHERE size = 5)", 150),
        ("word = (SELECT name FROM places WHERE size = 6)", 0),
        ("kind = (SELECT name FROM places WHERE size = 7)", 100),
        ("n > (SELECT size FROM places WHERE name = 'blue')", 0),
    ],
)
def test_it_is_compared_as_sql_compares(condition: str, count: int | None, curator: Curator) -> None:
    found = only(curator, f"SELECT COUNT(*) AS n FROM t WHERE {condition}")
    assert count is None or found == count


def test_of_several_rows_the_first_is_compared_with(curator: Curator) -> None:
    several = "(SELECT n FROM t GROUP BY n HAVING COUNT(*) > 20 ORDER BY n DESC)"
    answer = curator.ask(f"SELECT COUNT(*) AS n FROM t WHERE n = {several}", epsilon=NEVER)
    assert answer.rows == [{"n": 30}]
    assert "of 10 rows of a subquery, the first is compared with" in answer.bounds


def test_where_no_group_can_meet_a_value_there_is_no_row_and_no_charge(curator: Curator) -> None:
    answer = curator.ask(f"SELECT kind, SUM(n) AS s FROM t WHERE kind = {WORD} GROUP BY kind", epsilon=3)
    assert answer.rows == []
    assert float(answer.charged.epsilon) <= 1.5
    assert any("has no row, and is free: no group can meet WHERE" in line for line in answer.bounds)


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("n > (SELECT COUNT(*) FROM t GROUP BY kind)", "subquery"),
        ("word = (SELECT word FROM t GROUP BY word ORDER BY COUNT(*))", "subquery"),
        ("n > (SELECT k FROM (SELECT kind, COUNT(*) AS k FROM t GROUP BY kind) s)", "subquery"),
        ("word = (SELECT DISTINCT word FROM (SELECT word, COUNT(*) AS k FROM t GROUP BY word) s)", "subquery"),
        ("word = (SELECT DISTINCT word FROM t)", "subquery"),
        ("n > (SELECT COUNT(*) FROM t UNION ALL SELECT SUM(n) FROM t)", "subquery"),
        ("n > (SELECT kind, COUNT(*) FROM t GROUP BY kind LIMIT 1)", "subquery"),
        ("word = (SELECT name FROM places)", "subquery"),
        ("n > (SELECT APPROX_QUANTILES(n, 4) FROM t)", "type"),
        ("kind = (SELECT COUNT(*) FROM t)", "type"),
        ("day > (SELECT COUNT(*) FROM t)", "type"),
        ("(n > 3) = (SELECT COUNT(*) FROM t)", "type"),
    ],
)
def test_what_is_known_beforehand_is_refused_before_it_is_paid(condition: str, code: str, curator: Curator) -> None:
    head = curator.ledger.head
    with pytest.raises(QuestionError) as error:
        curator.ask(f"SELECT COUNT(*) FROM t WHERE {condition}", epsilon=1)
    assert error.value.code == code, error.value
    assert error.value.fix
    assert curator.ledger.head == head


@pytest.mark.parametrize(
    "subquery",
    [
        "(SELECT AVG(n) FROM t)",
        "(SELECT kind FROM t GROUP BY kind ORDER BY SUM(n) DESC LIMIT 1)",
        "(WITH a AS (SELECT SUM(n) AS s, COUNT(*) AS k FROM t) SELECT s / k FROM a)",
        "(SELECT a.k - b.k FROM (SELECT COUNT(*) AS k FROM t) a CROSS JOIN (SELECT SUM(n) AS k FROM t) b)",
        "(SELECT MAX(k) FROM (SELECT kind, COUNT(*) AS k FROM t GROUP BY kind) s)",
    ],
)
def test_one_row_is_known_to_be_one(subquery: str, curator: Curator) -> None:
    column = "kind" if subquery.startswith("(SELECT kind") else "n"
    curator.explain(f"SELECT COUNT(*) FROM t WHERE {column} >= {subquery}", epsilon=1)


RELEASED = [
    "(SELECT COUNT(*) - 150 FROM t)",
    "(SELECT COUNT(*) * 1e18 FROM t)",
    "(SELECT SUM(n) / 0 FROM t)",
    "(SELECT 1e300 * COUNT(*) * COUNT(*) FROM t)",
    "(SELECT SQRT(COUNT(*) - 1000) FROM t)",
    NOTHING,
    WORD,
    "(SELECT kind FROM t GROUP BY kind HAVING COUNT(*) > 1e6)",
    "(SELECT '''' || word || '%' FROM t GROUP BY word HAVING COUNT(*) > 1)",
    "(SELECT MAX(day) FROM t)",
    "(SELECT MAX(day) + INTERVAL 3000000 DAY FROM t)",
    "(SELECT MIN(day) - INTERVAL 1000000 DAY FROM t)",
    "(SELECT COUNT(*) > 5 FROM t)",
]
AROUND = [
    "SELECT COUNT(*) FROM t WHERE {column} > {value}",
    "SELECT kind, COUNT(*) FROM t WHERE {column} = {value} GROUP BY kind",
    "SELECT {column}, COUNT(*) FROM t WHERE {column} = {value} GROUP BY {column}",
    "SELECT {column}, COUNT(*) FROM t WHERE {column} >= {value} AND n < 5 GROUP BY {column}",
    "SELECT COUNT(*) FROM t WHERE {column} BETWEEN {value} AND {value}",
    "SELECT COUNT(*) FROM t WHERE COALESCE({value}, {column}) = {column}",
    "SELECT SUM(CASE WHEN {column} < {value} THEN n END) FROM t",
    "SELECT SUM(n - {value}) FROM t",
    "SELECT COUNT(*) FROM t WHERE n % {value} = 1",
    "SELECT DATE_TRUNC('month', day) AS k, COUNT(*) FROM t WHERE day >= {value} GROUP BY 1",
    "SELECT DATE_TRUNC('day', day) AS k, COUNT(*) FROM t WHERE day >= {value} AND day < DATE '2020-06-01' GROUP BY 1",
    "SELECT COUNT(*) FROM t WHERE kind LIKE {value}",
    "SELECT COUNT(*) FROM t WHERE ROUND(n, {value}) = 3",
    "SELECT COUNT(*) FROM t WHERE {column} IN {value}",
    "SELECT {column}, COUNT(*) FROM t WHERE {column} NOT IN {value} GROUP BY {column}",
    "SELECT AVG(k) FROM (SELECT person, COUNT(*) AS k FROM t WHERE {column} <= {value} GROUP BY person) s",
]


@pytest.mark.parametrize("around", some(AROUND, pytest.mark.power))
def test_what_is_charged_is_answered(around: str) -> None:
    """With noise, and with values of every type beside every column: a refusal costs nothing."""
    answered = 0
    with opened() as curator:
        for value, column in itertools.product(RELEASED, ("n", "kind", "day")):
            question, head = around.format(column=column, value=value), curator.ledger.head
            try:
                curator.ask(question, epsilon=0.5)
                answered += 1
            except QuestionError:
                assert curator.ledger.head == head, question
    assert answered
