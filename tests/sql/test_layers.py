"""Questions of several layers: what is measured, at which price, and that the whole says what plain SQL says."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import discreet
from discreet import BudgetError, Curator, QuestionError

NEVER = 1e20
"""A price at which there is no noise."""

COUNTS = "(SELECT city, COUNT(*) AS n FROM visits GROUP BY city)"

SAME = [
    f"SELECT * FROM {COUNTS} AS t",
    f'SELECT "t"."city" AS "city", "t"."n" AS "n" FROM {COUNTS} AS "t" ORDER BY "n" DESC LIMIT 2',
    f"SELECT city, n, RANK() OVER (ORDER BY n DESC) AS place FROM {COUNTS} t",
    f"SELECT city, n * 100.0 / SUM(n) OVER () AS share FROM {COUNTS} t ORDER BY share DESC",
    f"SELECT city, n / (SELECT SUM(n) FROM {COUNTS} u) AS share FROM {COUNTS} t",
    f"SELECT v.city, COUNT(*) AS n FROM visits v JOIN {COUNTS} t ON v.city = t.city GROUP BY v.city",
    f"SELECT MAX(n) AS most, MIN(n) AS least, AVG(n) AS mean, SUM(n) AS total, COUNT(*) AS cities FROM {COUNTS} t",
    "SELECT month, n, SUM(n) OVER (ORDER BY month) AS running, n - LAG(n) OVER (ORDER BY month) AS more "
    "FROM (SELECT EXTRACT(MONTH FROM day) AS month, COUNT(*) AS n FROM visits GROUP BY 1) t ORDER BY month",
    "SELECT city, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS place FROM visits GROUP BY city",
    "SELECT city, SUM(cost) / COUNT(*) AS mean, SUM(SUM(cost)) OVER () AS total FROM visits GROUP BY city",
    "SELECT UPPER(city) AS name, COUNT(*) AS n, CASE WHEN COUNT(*) > 150 THEN 'many' ELSE 'few' END AS size "
    "FROM visits GROUP BY city ORDER BY COUNT(*) DESC, 1",
    "SELECT CASE city WHEN 'Bern' THEN 'capital' ELSE 'other' END AS kind, COUNT(*) AS n FROM visits GROUP BY city",
    "SELECT CAST(SUM(cost) AS DOUBLE PRECISION) / CAST(COUNT(*) AS DOUBLE PRECISION) AS mean FROM visits",
    "SELECT SQRT(SUM(age)) AS r, POWER(COUNT(*), 2) AS p, ROUND(AVG(cost), 1) AS m, COUNT(*) > 10 AS b FROM visits",
    "SELECT city FROM visits GROUP BY city HAVING COUNT(*) > 150 ORDER BY AVG(age)",
    "SELECT city, COUNT(*) AS n FROM visits GROUP BY city ORDER BY n DESC LIMIT 1 OFFSET 1",
    "SELECT city, COUNT(*) AS n FROM visits GROUP BY city QUALIFY ROW_NUMBER() OVER (ORDER BY n DESC) <= 2",
    "SELECT age + 1 AS next, COUNT(*) AS n FROM visits WHERE age < 5 GROUP BY age",
    "SELECT DISTINCT city FROM visits WHERE city IS NOT NULL",
    "SELECT city FROM visits WHERE city IS NOT NULL GROUP BY city",
    "SELECT city, COUNT(*) AS n FROM visits GROUP BY city UNION ALL SELECT 'all', COUNT(*) FROM visits",
    "SELECT city FROM visits WHERE city IS NOT NULL GROUP BY city EXCEPT SELECT city FROM cities WHERE people > 100000",
    "SELECT c.canton, t.n FROM cities c JOIN " + COUNTS + " t ON c.city = t.city ORDER BY 1",
    "SELECT c.city, COALESCE(t.n, 0) AS n FROM cities c LEFT JOIN " + COUNTS + " t USING (city)",
    "WITH a AS (SELECT city, COUNT(*) AS n FROM visits GROUP BY city), b AS (SELECT city, SUM(cost) AS s FROM visits "
    "GROUP BY city), c AS (SELECT a.city, s / n AS mean FROM a JOIN b ON a.city = b.city) SELECT * FROM c",
    "WITH v AS (SELECT * FROM visits WHERE age >= 50), a AS (SELECT city, COUNT(*) AS n FROM v GROUP BY city), "
    "b AS (SELECT city, COUNT(*) AS n FROM visits GROUP BY city) "
    "SELECT a.city, a.n / b.n AS part FROM a JOIN b USING (city)",
    "SELECT DISTINCT age * 0.5 AS half FROM visits WHERE age < 4",
    "SELECT half + 1 AS more, n FROM (SELECT age * 0.5 AS half, COUNT(*) AS n FROM visits GROUP BY 1) t WHERE n > 2",
    "SELECT SUM(part * n) AS parts FROM (SELECT FLOOR(cost / 100.0) / 10 AS part, COUNT(*) AS n "
    "FROM visits GROUP BY 1) t",
    "SELECT city, CAST(AVG(cost) AS DECIMAL(9, 2)) AS m, SUM(cost)::DECIMAL(12, 1) AS s FROM visits GROUP BY city",
    "SELECT city, COUNT(*) AS n FROM visits GROUP BY city HAVING AVG(age)::DECIMAL(6, 2) > 1 ORDER BY 1",
    "SELECT DATE(day) AS d, COUNT(*) AS n FROM visits WHERE day < '2020-02-01' GROUP BY 1 HAVING COUNT(*) > 0",
    "SELECT city, COUNT(*) AS n FROM visits, (SELECT AVG(age) AS mean FROM visits) m WHERE age > mean GROUP BY city",
    "SELECT COUNT(*) AS n FROM (SELECT AVG(age) AS mean FROM visits) m CROSS JOIN visits v WHERE v.age > m.mean",
    "WITH m AS (SELECT AVG(age) AS mean, COUNT(*) AS n FROM visits) SELECT city, COUNT(*) * 1.0 / m.n AS part, "
    "AVG(ABS(age - m.mean)) AS off FROM visits CROSS JOIN m GROUP BY city, m.n",
    "SELECT v.city, COUNT(*) AS n FROM visits v JOIN (SELECT city, COUNT(*) AS n FROM visits GROUP BY 1 ORDER BY n "
    "DESC LIMIT 1) t ON (v.city = t.city) GROUP BY v.city",
    "SELECT BOOL_OR(n > 160) AS some, BOOL_AND(n > 160) AS each, MD5(MIN(city)) AS key FROM " + COUNTS + " t",
    "SELECT x, n FROM GENERATE_SERIES(1, 3) AS x LEFT JOIN (SELECT EXTRACT(MONTH FROM day) AS m, COUNT(*) AS n "
    "FROM visits GROUP BY 1) t ON t.m = x ORDER BY x",
    "SELECT (SELECT COUNT(*) FROM visits) AS rows_, (SELECT COUNT(*) FROM cities) AS places",
    "SELECT COUNT(*) AS n FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)",
    "SELECT COUNT(*) AS n FROM visits WHERE day >= (SELECT MAX(founded) FROM cities)",
    "SELECT city, COUNT(*) AS n FROM visits WHERE age > (SELECT AVG(age) FROM visits WHERE city = 'Chur') "
    "GROUP BY city",
    "SELECT COUNT(*) AS n FROM visits WHERE city IN "
    "(SELECT city FROM visits GROUP BY city ORDER BY COUNT(*) DESC LIMIT 1)",
    "SELECT COUNT(*) AS n FROM (SELECT person, COUNT(*) AS k FROM visits GROUP BY person) t "
    "WHERE k > (SELECT AVG(age) / 10 FROM visits)",
    "SELECT AVG(n) AS mean FROM (SELECT city, COUNT(*) AS n FROM visits GROUP BY city) t WHERE n > 150",
    "SELECT u.city, u.n FROM (SELECT t.city, t.n FROM (SELECT * FROM " + COUNTS + " s) t WHERE t.n > 1) u",
    "SELECT * FROM cities ORDER BY people DESC LIMIT 2",
    "SELECT canton, COUNT(*) AS n, STDDEV_SAMP(people) AS s FROM cities GROUP BY canton HAVING COUNT(*) >= 1",
    "SELECT 1 AS one, 'a' || 'b' AS text, DATE '2020-01-31' + INTERVAL 1 DAY AS next",
    "SELECT x, x * 2 AS y FROM (VALUES (1), (2)) AS t(x)",
]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Curator, duckdb.DuckDBPyConnection]]:
    folder = tmp_path_factory.mktemp("layers")
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE visits AS SELECT i % 60 AS person, ['Bern', 'Basel', 'Chur'][1 + (i * i) % 7 % 3] AS city,"
        " (i * 13) % 100 AS age, (i * 17) % 1000 AS cost, DATE '2020-01-01' + CAST((i * 31) % 366 AS INTEGER) AS day"
        " FROM range(480) AS t(i)"
    )
    connection.execute(
        "CREATE TABLE cities AS SELECT * FROM (VALUES ('Bern', 'BE', 140000, DATE '2020-02-01'), "
        "('Basel', 'BS', 170000, DATE '2020-03-01'), ('Chur', 'GR', 35000, NULL), ('Wil', 'SG', NULL, NULL)) "
        "AS t(city, canton, people, founded)"
    )
    for name in ("visits", "cities"):
        connection.execute(f"COPY {name} TO '{folder / name}.parquet'")
    with discreet.Curator(tables(folder), epsilon=1e30, delta=1e-3, keys_delta=1e-3) as curator:
        yield curator, connection


def tables(folder: Path) -> dict[str, Any]:
    return {
        "visits": {
            "source": str(folder / "visits.parquet"),
            "person": "person",
            "rows_per_person": 10,
            "columns": {
                "person": {"type": "integer"},
                "city": {"type": "text", "values": ["Bern", "Basel", "Chur"], "nulls": False},
                "age": {"type": "integer", "min": 0, "max": 100},
                "cost": {"type": "integer", "min": 0, "max": 1000},
                "day": {
                    "type": "date",
                    "min": datetime.date(2020, 1, 1),
                    "max": datetime.date(2020, 12, 31),
                    "nulls": False,
                },
            },
        },
        "cities": {
            "source": str(folder / "cities.parquet"),
            "public": True,
            "columns": {
                "city": {"type": "text"},
                "canton": {"type": "text"},
                "people": {"type": "integer"},
                "founded": {"type": "date"},
            },
        },
    }


def alike(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, float) or (isinstance(theirs, float) and mine is not None):
        return theirs is not None and math.isclose(mine, float(theirs), rel_tol=1e-6, abs_tol=1e-6)
    if isinstance(theirs, datetime.datetime) and not isinstance(mine, datetime.datetime):
        theirs = theirs.date()
    return bool(mine == theirs)


@pytest.mark.parametrize("question", SAME, ids=lambda text: text[:90])
def test_what_plain_sql_says(question: str, plain: tuple[Curator, duckdb.DuckDBPyConnection]) -> None:
    curator, connection = plain
    answer = curator.ask(question, epsilon=NEVER)
    found = connection.execute(question)
    names = [one[0] for one in found.description]
    assert answer.columns == names
    wanted = found.fetchall()
    rows = [tuple(row.values()) for row in answer.rows]
    key = repr
    ordered = "ORDER BY" in question.rpartition(")")[2]
    pairs = zip(*(rows, wanted) if ordered else (sorted(rows, key=key), sorted(wanted, key=key)), strict=True)
    for mine, theirs in pairs:
        assert all(alike(a, b) for a, b in zip(mine, theirs, strict=True)), (mine, theirs)


# what is measured, and what it costs


@pytest.fixture
def small(tmp_path: Path, plain: tuple[Curator, duckdb.DuckDBPyConnection]) -> Iterator[Curator]:
    _, connection = plain
    for name in ("visits", "cities"):
        connection.execute(f"COPY {name} TO '{tmp_path / name}.parquet'")
    with discreet.Curator(
        tables(tmp_path), epsilon=2, delta=1e-6, keys_delta=1e-6, ledger=tmp_path / "ledger.db"
    ) as curator:
        yield curator


def entries(curator: Curator) -> int:
    return sum(entry.kind == "reserve" for entry in curator.ledger.entries())


@pytest.mark.parametrize(
    "words",
    [
        "EXTRACT(DAYOFWEEK FROM day)",
        "DAYOFWEEK(day)",
        "EXTRACT(ISOWEEK FROM day)",
        "EXTRACT(DOW FROM day)",
        "EXTRACT(DOY FROM day)",
        "TO_CHAR(day, 'D')",
        "DATE_DIFF('week', DATE '2020-01-05', day)",
        "DATE_DIFF(day, DATE '2020-01-05', WEEK)",
        "DATE_TRUNC(day, MONTH)",
        "DATE_DIFF('quarter', DATE '2020-01-05', day)",
    ],
)
def test_parts_of_dates_mean_the_same_of_rows_and_of_answers(
    words: str, plain: tuple[Curator, duckdb.DuckDBPyConnection]
) -> None:
    curator, _ = plain
    of_rows = curator.ask(f"SELECT {words} AS k, COUNT(*) AS n FROM visits GROUP BY 1", epsilon=NEVER)
    days = "(SELECT day, COUNT(*) AS n FROM visits GROUP BY day) t"
    of_answers = curator.ask(f"SELECT {words} AS k, SUM(n) AS n FROM {days} GROUP BY 1", epsilon=NEVER)
    shown = [
        sorted((str(row["k"])[:10], row["n"]) for row in release.rows if row["n"]) for release in (of_rows, of_answers)
    ]
    assert shown[0] == shown[1]


def test_equal_measured_tables_are_measured_once_and_asked_again_cost_nothing(small: Curator) -> None:
    question = f"SELECT a.city, a.n + b.n AS twice FROM {COUNTS} a JOIN {COUNTS} b ON a.city = b.city"
    first = small.ask(question, epsilon=1)
    assert first.cost.epsilon == first.charged.epsilon == 1
    assert small.budget.used == pytest.approx(50)
    again = small.ask(question, epsilon=1)
    assert not again.charged
    assert again.rows == first.rows
    wrapped = small.ask(f"SELECT city, n FROM {COUNTS} t WHERE n > 0", epsilon=1)
    assert not wrapped.charged
    alone = small.ask("SELECT city, COUNT(*) AS n FROM visits GROUP BY city", epsilon=1)
    assert not alone.charged
    assert small.budget.used == pytest.approx(50)


def test_measured_tables_share_the_price_or_name_their_own(small: Curator) -> None:
    two = "SELECT a.x, b.y FROM (SELECT {a} SUM(age) AS x FROM visits) a "
    two += "CROSS JOIN (SELECT {b} SUM(cost) AS y FROM visits) b"
    price = small.explain(two.format(a="", b=""), epsilon=1).price
    assert price.epsilon == 1
    own = "WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 0.25)"
    assert small.explain(two.format(a=own, b=""), epsilon=1).price.epsilon == 1.25
    assert small.explain(two.format(a=own, b=own)).price.epsilon == 0.5
    with pytest.raises(QuestionError, match="name prices"):
        small.explain(two.format(a=own, b=own), epsilon=1)
    around = two.format(a="", b="").replace("SELECT a.x", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 0.5) a.x")
    assert small.explain(around).price.epsilon == 0.5
    assert small.budget.used == 0


def test_a_budget_that_is_too_small_for_all_pays_for_none(small: Curator) -> None:
    head = small.ledger.head
    question = "SELECT (SELECT SUM(age) FROM visits) AS a, (SELECT SUM(cost) FROM visits) AS b"
    with pytest.raises(BudgetError):
        small.ask(question, epsilon=3)
    assert small.ledger.head == head
    assert small.ask(question, epsilon=2).charged.epsilon == 2
    assert not small.ask(question, epsilon=2).charged  # with nothing left, what was asked is still there


def test_a_question_of_public_tables_is_free(small: Curator) -> None:
    head = small.ledger.head
    answer = small.ask("SELECT city FROM cities WHERE people > 100000 ORDER BY city")
    assert [row["city"] for row in answer] == ["Basel", "Bern"]
    assert "no row about a person is read: free" in repr(answer)
    assert small.ledger.head == head


def test_a_request_is_answered_once(small: Curator) -> None:
    question = "SELECT (SELECT SUM(age) FROM visits) AS a, (SELECT SUM(cost) FROM visits) AS b"
    first = small.ask(question, epsilon=1, request="one")
    assert small.ask(question, epsilon=1, request="one").rows == first.rows
    assert small.budget.used == pytest.approx(50)


def test_an_aggregate_of_having_or_order_by_is_measured_and_paid(small: Curator) -> None:
    words = " ".join(
        one["columns"]
        for one in small.explain("SELECT city FROM visits GROUP BY city HAVING SUM(cost) > 5", 1).mechanisms
    )
    assert "sum_cost" in words


REFUSED = [
    ("SELECT * FROM visits v JOIN " + COUNTS + " t USING (city)", "join"),
    ("SELECT city, (SELECT COUNT(*) FROM visits v WHERE v.city = c.city) FROM cities c", "correlated"),
    ("SELECT c.city FROM cities c, LATERAL (SELECT COUNT(*) AS n FROM visits v WHERE v.city = c.city) t", "join"),
    ("SELECT city FROM cities WHERE city IN (SELECT city FROM visits)", "subquery"),
    ("SELECT city FROM cities UNION ALL SELECT city FROM visits", "union"),
    (f"SELECT * FROM {COUNTS} t WHERE m > 1", "unknown-column"),
    (f"SELECT * FROM {COUNTS} t, read_text('/etc/passwd')", "source"),
    (f"SELECT getenv('HOME') FROM {COUNTS} t", "not-allowed"),
    (f"SELECT query('SELECT 1') FROM {COUNTS} t", "not-allowed"),
    (f"SELECT RANDOM() FROM {COUNTS} t", "not-allowed"),
    (f"SELECT current_setting('threads') FROM {COUNTS} t", "not-allowed"),
    (f"SELECT n FROM {COUNTS} t WHERE n > ?", "not-allowed"),
    (f"SELECT n AS a, city AS a FROM {COUNTS} t", "names"),
    (f"SELECT city FROM {COUNTS} t WHERE city > 5", "type"),
    (f"SELECT city FROM {COUNTS} t LIMIT -1", "limit"),
    (f"SELECT city, NTILE(0) OVER (ORDER BY n) FROM {COUNTS} t", "type"),
    (f"SELECT city, NTILE(n) OVER (ORDER BY n) FROM {COUNTS} t", "type"),
    (f"SELECT city, SUM(n) OVER (ORDER BY n ROWS BETWEEN n PRECEDING AND CURRENT ROW) FROM {COUNTS} t", "type"),
    (f"SELECT city, SUM(n) OVER (ORDER BY n ROWS BETWEEN -1 PRECEDING AND CURRENT ROW) FROM {COUNTS} t", "type"),
    (f"SELECT city LIKE 'a' ESCAPE 'ab' FROM {COUNTS} t", "type"),
    (f"SELECT city FROM {COUNTS} t ORDER BY 4", "position"),
    (f"SELECT n FROM {COUNTS} t JOIN {COUNTS} u ON t.city = u.city", "ambiguous"),
    ("SELECT COUNT(*) FROM visits WHERE age > (SELECT age FROM visits)", "subquery"),
    (f"SELECT COUNT(*) FROM visits WHERE age > (SELECT MAX(city) FROM {COUNTS} t)", "type"),
    ("SELECT COUNT(*) FROM visits WHERE day > (SELECT SUM(age) + 1 FROM visits)", "type"),
    (f"SELECT COUNT(*) FROM visits v ANTI JOIN {COUNTS} t ON v.city = t.city", "join"),
    ("SELECT COUNT(*) FROM visits v JOIN (SELECT COUNT(*) AS m FROM visits GROUP BY city) t ON v.age = t.m", "join"),
    (f"WITH a AS {COUNTS}, a AS {COUNTS} SELECT * FROM a", "names"),
    ("SELECT person, COUNT(*) AS n FROM visits GROUP BY person ORDER BY n + 1", "person-key"),
    ("SELECT * FROM (SELECT person, COUNT(*) AS n FROM visits GROUP BY person) t", "star"),
]


def test_a_name_without_a_table_is_told_what_is_missing(small: Curator) -> None:
    with pytest.raises(QuestionError, match=r"there is no column 'nonsense' → write FROM and a table first"):
        small.explain("SELECT nonsense", 1)


@pytest.mark.parametrize(("question", "code"), REFUSED, ids=lambda text: text[:80])
def test_what_is_refused_costs_nothing(question: str, code: str, small: Curator) -> None:
    head = small.ledger.head
    with pytest.raises(QuestionError) as error:
        small.ask(question, epsilon=1)
    assert error.value.code == code, error.value
    assert error.value.where
    assert error.value.fix
    assert small.ledger.head == head
