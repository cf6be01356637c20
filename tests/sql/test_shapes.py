"""Shapes that tools write stand for plainer ones: which, and that they mean the same."""

from __future__ import annotations

import datetime
import re

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import QuestionError
from discreet.catalog import declare
from discreet.sql.dialects import LANGUAGES, read
from discreet.sql.grammar import parse, text_of
from discreet.sql.spelling import spelled
from kinds import examples
from reading_tools import COLUMNS

WHEN = {"type": "timestamp"}
UNTIL = {"type": "date", "min": datetime.date(1950, 1, 1), "max": datetime.date(2000, 12, 31)}
DECLARED = declare(
    {
        "budget": {"epsilon": 1},
        "tables": {
            "t": {
                "source": "t.csv",
                "columns": {**COLUMNS, "w": WHEN, "u": UNTIL},
                "person": "p",
                "rows_per_person": 2,
            },
            "s": {"source": "s.csv", "columns": {"q": {"type": "text"}}, "person": "q", "rows_per_person": 2},
            "k": {"source": "k.csv", "columns": {"a": {"type": "text"}}, "public": True},
        },
    }
)


def written(question: str, dialect: str = "") -> str:
    return text_of(spelled(read(question, dialect), DECLARED, datetime.date(2024, 5, 1)))


@pytest.mark.parametrize(
    ("question", "plainer"),
    [
        (
            "SELECT DATE_TRUNC('hour', w) + INTERVAL '15 minutes' * FLOOR(EXTRACT(MINUTE FROM w) / 15) FROM t",
            "SELECT TIME_BUCKET(INTERVAL '15 minutes', w) FROM t",
        ),
        (
            "SELECT DATE_TRUNC('minute', w) - (CAST(EXTRACT(MINUTE FROM w) AS INT) % 5) * INTERVAL '1 minute' FROM t",
            "SELECT TIME_BUCKET(INTERVAL '5 minutes', w) FROM t",
        ),
        (
            "SELECT DATE_BIN('6 hours', w, TIMESTAMP '2001-01-01') FROM t",
            "SELECT TIME_BUCKET(INTERVAL '6 hours', w) FROM t",
        ),
        (
            "SELECT WIDTH_BUCKET(v, [1, 5]) FROM t",
            "SELECT CASE WHEN v >= 5 THEN 2 WHEN v >= 1 THEN 1 WHEN v < 1 THEN 0 END FROM t",
        ),
        (
            "SELECT RATIO_TO_REPORT(n) OVER (PARTITION BY g) FROM r",
            "SELECT ((CAST(n AS DOUBLE)) / SUM(n) OVER (PARTITION BY g)) FROM r",
        ),
        ("SELECT x FROM GENERATE_SERIES(1, 3) AS x", "SELECT x FROM UNNEST(GENERATE_SERIES(1, 3)) AS x(x)"),
        (
            "SELECT g, v, COUNT(*) FROM t GROUP BY ALL ORDER BY ALL DESC",
            "SELECT g, v, COUNT(*) FROM t GROUP BY ALL ORDER BY 1 DESC, 2 DESC, 3 DESC",
        ),
        (
            "SELECT SUM(n) OVER w AS s FROM r WINDOW w AS (PARTITION BY g ORDER BY n)",
            "SELECT SUM(n) OVER (PARTITION BY g ORDER BY n) AS s FROM r",
        ),
        (
            "SELECT DISTINCT g, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY v) OVER (PARTITION BY g) AS m FROM t",
            "SELECT g, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY v) AS m FROM t GROUP BY g",
        ),
        (
            "SELECT COUNT(*) FROM (SELECT p FROM t INTERSECT SELECT q FROM s) AS x",
            "SELECT COUNT(*) FROM (SELECT DISTINCT p FROM t WHERE p IN (SELECT q FROM s)) AS x",
        ),
        (
            "SELECT COUNT(*) FROM (SELECT p FROM t WHERE v > 1 EXCEPT SELECT q FROM s) AS x",
            "SELECT COUNT(*) FROM (SELECT DISTINCT p FROM t WHERE v > 1 AND NOT p IN (SELECT q FROM s)) AS x",
        ),
        (
            "SELECT EXTRACT(YEAR FROM AGE(DATE '2024-03-01', u)) FROM t",
            "SELECT (2024 - EXTRACT(YEAR FROM u) - CASE WHEN EXTRACT(MONTH FROM u) * 100 + EXTRACT(DAY FROM u) > 301 "
            "THEN 1 ELSE 0 END) FROM t",
        ),
        ("SELECT COUNT() FROM t", "SELECT COUNT(*) FROM t"),
    ],
)
def test_what_stands_for_what(question: str, plainer: str) -> None:
    assert written(question) == text_of(spelled(parse(plainer), DECLARED))
    assert text_of(spelled(parse(written(question)), DECLARED)) == written(question)


@pytest.mark.parametrize(
    "question",
    [
        "SELECT DATE_TRUNC('hour', w) + INTERVAL '7 minutes' * FLOOR(EXTRACT(MINUTE FROM w) / 7) FROM t",  # not of 60
        "SELECT DATE_TRUNC('hour', w) + INTERVAL '15 minutes' * FLOOR(EXTRACT(MINUTE FROM d) / 15) FROM t",
        "SELECT DATE_TRUNC('day', w) + INTERVAL '15 minutes' * FLOOR(EXTRACT(MINUTE FROM w) / 15) FROM t",
        "SELECT WIDTH_BUCKET(v, [5, 1]) FROM t",
        "SELECT WIDTH_BUCKET(v, [1, x]) FROM t",
        "SELECT EXTRACT(YEAR FROM AGE(w)) FROM t",
        "SELECT EXTRACT(YEAR FROM AGE(d, w)) FROM t",
    ],
)
def test_what_would_mean_something_else_is_refused(question: str) -> None:
    with pytest.raises(QuestionError) as refusal:
        written(question)
    assert refusal.value.fix


@pytest.mark.parametrize(
    "question",
    [
        "SELECT DATE_BIN('6 hours', w, TIMESTAMP '2001-01-01 05:00:00') FROM t",
        "SELECT DATE_BIN('7 hours', w, TIMESTAMP '2001-01-01') FROM t",
        "SELECT COUNT(*) FROM (SELECT g FROM t INTERSECT SELECT q FROM s) AS x",  # no person: NULL would be lost
        "SELECT COUNT(*) FROM (SELECT p FROM t INTERSECT SELECT a FROM k) AS x",
        "SELECT COUNT(*) FROM (SELECT p FROM t EXCEPT ALL SELECT q FROM s) AS x",
        "WITH s AS (SELECT p AS q FROM t) SELECT COUNT(*) FROM (SELECT p FROM t EXCEPT SELECT q FROM s) AS x",
        "SELECT DISTINCT g, ROW_NUMBER() OVER (PARTITION BY g) AS m FROM r",
        "SELECT DISTINCT g, SUM(v) OVER (PARTITION BY g ORDER BY v) AS m FROM r",
        "SELECT DISTINCT g, p, SUM(v) OVER (PARTITION BY g) AS m FROM r",
    ],
)
def test_what_stays(question: str) -> None:
    assert written(question) == text_of(parse(question))


DAY = st.dates(datetime.date(1899, 1, 1), datetime.date(2030, 12, 31))


@settings(max_examples=examples(200), deadline=None)
@given(end=DAY, start=DAY)
def test_complete_years_are_those_of_the_calendar(end: datetime.date, start: datetime.date) -> None:
    made = written(f"SELECT EXTRACT(YEAR FROM AGE(DATE '{end}', DATE '{start}'))")
    of_columns = written("SELECT EXTRACT(YEAR FROM AGE(d, u)) FROM t").replace(
        "FROM t", "FROM (VALUES (?, ?)) AS t(d, u)"
    )
    with duckdb.connect() as plain:
        (wanted,) = plain.execute("SELECT datesub('year', ?::DATE, ?::DATE)", [start, end]).fetchone()
        assert plain.execute(made).fetchone() == (wanted,)
        assert plain.execute(of_columns.replace("?", "?::DATE"), [end, start]).fetchone() == (wanted,)


@pytest.mark.parametrize("dialect", LANGUAGES)
@pytest.mark.parametrize(
    "words",
    [
        "LAG(v) OVER (ORDER BY v)",
        "ROW_NUMBER() OVER (ORDER BY v)",
        "DENSE_RANK() OVER (PARTITION BY g ORDER BY v)",
        "NTILE(4) OVER (ORDER BY v)",
        "FIRST_VALUE(v) OVER (ORDER BY v)",
    ],
)
def test_windows_are_read_in_every_dialect(dialect: str, words: str) -> None:
    assert (
        written(f"SELECT {words} FROM r", dialect).split(" OVER ")[0]
        == text_of(parse(f"SELECT {words} FROM r")).split(" OVER ")[0]
    )


@pytest.mark.parametrize("dialect", ["", *LANGUAGES])
def test_null_is_told_in_every_dialect(dialect: str) -> None:
    assert (
        written("SELECT COUNT(*) FROM t WHERE g IS NOT NULL", dialect) == "SELECT COUNT(*) FROM t WHERE NOT g IS NULL"
    )


@pytest.mark.parametrize(
    ("dialect", "question", "plainer"),
    [
        ("tsql", "SELECT SUM(v) FROM t WITH (NOLOCK)", "SELECT SUM(v) FROM t"),
        ("tsql", "SELECT g + ' / ' + p FROM t", "SELECT g || ' / ' || p FROM t"),
        (
            "mysql",
            "SELECT YEARWEEK(d, 1) FROM t",
            "SELECT (EXTRACT(ISOYEAR FROM d) * 100 + EXTRACT(WEEK FROM d)) FROM t",
        ),
        (
            "snowflake",
            "SELECT DIV0(v, n) FROM r",
            "SELECT CASE WHEN (n) = 0 THEN 0 ELSE (v) / (n) END FROM r",
        ),
        ("snowflake", "SELECT TIME_SLICE(w, 6, 'HOUR') FROM t", "SELECT TIME_BUCKET(INTERVAL '6 hours', w) FROM t"),
        (
            "postgres",
            "SELECT CAST(GENERATE_SERIES(1, 2) AS INT) AS m",
            "SELECT CAST(UNNEST(GENERATE_SERIES(1, 2)) AS INT) AS m",
        ),
        (
            "bigquery",
            "SELECT d FROM UNNEST(GENERATE_DATE_ARRAY('2024-01-01', '2024-03-01', INTERVAL 1 MONTH)) AS d",
            "SELECT d FROM UNNEST(GENERATE_SERIES(CAST('2024-01-01' AS DATE), CAST('2024-03-01' AS DATE), "
            "INTERVAL '1' MONTH)) AS d",
        ),
        (
            "bigquery",
            "SELECT * FROM (SELECT g, b, v FROM t) PIVOT (SUM(v) FOR b IN (1 AS one, 2 AS two))",
            'SELECT * FROM (SELECT "g", SUM(v) FILTER(WHERE b = 1) AS "one", SUM(v) FILTER(WHERE b = 2) AS "two" '
            'FROM (SELECT g, b, v FROM t) AS pivoted GROUP BY "g") AS pivoted',
        ),
    ],
)
def test_what_stands_for_what_in_another_dialect(dialect: str, question: str, plainer: str) -> None:
    expected = text_of(spelled(parse(plainer), DECLARED))
    assert re.sub(r" AS _t0\((\w+)\)", r" AS \1", written(question, dialect)) == expected
