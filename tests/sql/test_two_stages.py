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


@pytest.mark.parametrize(("least", "sizes"), [(20, 10), (1_000, 0)])
def test_where_noise_lets_a_subquery_give_several_rows_the_first_is_taken(
    least: int, sizes: int, curator: Curator
) -> None:
    counted = "(SELECT n, COUNT(*) AS k FROM t GROUP BY n)"
    one = f"(SELECT c.n FROM {counted} c WHERE c.k > {least} ORDER BY c.n DESC)"
    answer = curator.ask(f"SELECT s.kind, s.k + {one} AS v FROM (SELECT kind, COUNT(*) AS k FROM t GROUP BY kind) s",
                         epsilon=NEVER)  # fmt: skip
    assert answer.rows == [{"kind": kind, "v": 109 if sizes else None} for kind in "uvw"]
    assert ("of several rows of a subquery, the first is taken" in answer.bounds) == (sizes > 1)
    assert "v: how far it lies from the truth is not known" in answer.bounds


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


@pytest.mark.parametrize(
    "question",
    [
        "SELECT kind, COUNT(*) - (SELECT COUNT(*) FROM t GROUP BY kind) AS v FROM t GROUP BY kind",
        "SELECT COUNT(*) AS v FROM t HAVING COUNT(*) > (SELECT k FROM (SELECT n, COUNT(*) AS k FROM t GROUP BY n) s)",
    ],
)
def test_beside_an_answer_several_rows_are_refused_before_they_are_paid(question: str, curator: Curator) -> None:
    head = curator.ledger.head
    with pytest.raises(QuestionError, match="more than one row"):
        curator.ask(question, epsilon=2)
    assert curator.ledger.head == head


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


@pytest.mark.parametrize(
    "value",
    [
        "(SELECT REPEAT('ab', 40000 + CAST(ABS(COUNT(*)) AS INTEGER)) FROM t)",
        "(SELECT MAX(k) * MAX(k) * MAX(k) * MAX(k) * MAX(k) * MAX(k) * MAX(k) * MAX(k) * MAX(k) || 'a'"
        " FROM (SELECT kind, 100 * COUNT(*) AS k FROM t GROUP BY kind) s)",
    ],
)
def test_no_size_of_a_value_makes_a_second_stage_fail(value: str) -> None:
    with opened() as curator:
        answer = curator.ask(f"SELECT COUNT(*) AS n FROM t WHERE word = {value}", epsilon=1)
        assert answer.charged.epsilon <= 1


def test_what_is_too_long_to_be_kept_is_refused_before_another_table_is_charged() -> None:
    words = ", ".join(f"'{number:0100}'" for number in range(550))
    long = f"SELECT COUNT(*) AS k FROM t WHERE word IN ({words})"
    with opened() as curator:
        head = curator.ledger.head
        with pytest.raises(QuestionError, match="characters"):
            curator.ask(f"SELECT a.k FROM (SELECT COUNT(*) AS k FROM t) a CROSS JOIN ({long}) b", epsilon=1)
        with pytest.raises(QuestionError, match="characters"):
            curator.ask(" UNION ALL ".join(f"SELECT SUM(n + {n}) FROM t" for n in range(11)), 1, request="r" * 49_998)
        assert curator.ledger.head == head


@pytest.mark.parametrize("around", some(AROUND, pytest.mark.power))
def test_what_is_charged_is_answered(around: str) -> None:
    """With noise, and with values of every type beside every column: a refusal costs nothing."""
    answered, said = 0, ""
    with opened() as curator:
        for value, column in itertools.product(RELEASED, ("n", "kind", "day")):
            question, head = around.format(column=column, value=value), curator.ledger.head
            try:
                curator.ask(question, epsilon=0.5)
                answered += 1
            except QuestionError as error:
                assert curator.ledger.head == head, question
                said = str(error)
    assert answered, said


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("GREATEST(NULLIF(k, 300), 3)", None),
        ("LEAST(k, 7, 8.5)", 7),
        ("GREATEST(k, k + 1)", 301),
        ("CONCAT(k, 'x')", "300x"),
        ("CONCAT(NULLIF('a', CASE WHEN k > 1 THEN 'a' ELSE 'b' END), 'x')", None),
    ],
)
def test_functions_of_null_are_null_in_answers_as_in_rows(value: str, wanted: Any, curator: Curator) -> None:
    assert only(curator, f"SELECT {value} AS v FROM (SELECT COUNT(*) AS k FROM t) s") == wanted


def test_a_name_of_a_request_is_never_that_of_a_part_of_another() -> None:
    tables = ("(SELECT COUNT(*) AS a FROM t) x", "(SELECT SUM(n) AS b FROM t) y")
    with opened() as curator:
        for part in (1, 2):
            curator.ask("SELECT AVG(n) FROM t", epsilon=part, request=f"both/{part}")
        both = curator.ask(f"SELECT x.a, y.b FROM {tables[0]}, {tables[1]}", epsilon=3, request="both")
        again = curator.ask(f"SELECT x.a, y.b FROM {tables[0]}, {tables[1]}", epsilon=3, request="both")
    assert again.rows == both.rows
    assert again.charged.epsilon == 0
