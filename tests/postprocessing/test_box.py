"""Intervals through outer queries: wherever in the box the truth lies, it lies in the interval."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator

import pytest

from discreet.engines.chosen import OUTER
from discreet.engines.process import EngineProcess
from discreet.errors import QuestionError
from discreet.postprocessing.box import HIGH, LOW, ONE_HIGH, ONE_LOW, Followed
from discreet.postprocessing.computing import OuterEngine, content
from discreet.postprocessing.outer import OuterQuery, ReleasedTable, outer_query
from discreet.release.content import FREE
from discreet.sql.grammar import parse

TABLES = {
    "t": ReleasedTable("t", (("k", "text"), ("d", "date"), ("n", "integer"), ("x", "number")), frozenset({"n", "x"})),
    "u": ReleasedTable("u", (("k", "text"), ("y", "number")), frozenset({"y"})),
    "g": ReleasedTable("g", (("k", "text"), ("m", "integer")), frozenset({"m"}), found=True),
    "p": ReleasedTable("p", (("k", "text"), ("w", "number"))),
}
KEYS = ["a", "b", "c", "d", "e"]

FOLLOWED = [
    "SELECT k, n, x FROM t",
    "SELECT k, n + x AS v, n - x AS w, n * x AS a, -x AS b, 2 * n + 1 AS c FROM t",
    "SELECT k, CAST(n * 0.5 AS INTEGER) AS v, SQRT(x) AS r FROM t",
    "SELECT a, b AS v FROM (SELECT k, n FROM t) AS c(a, b)",
    "SELECT k, n / 7 AS v, 100.0 * n / x AS w, x / (n + 3) AS z FROM t",
    "SELECT k, (n - x) * (x - n) AS v, n * n AS w FROM t",
    "SELECT k, CAST(n AS DOUBLE PRECISION) / 3 AS v, ROUND(x, 1) AS w, FLOOR(x) AS f, CEIL(n / 2) AS c FROM t",
    "SELECT k, ABS(x) AS v, POWER(x, 2) AS w, POWER(n, 3) AS z, GREATEST(n, x, 0) AS g, LEAST(n, x) AS l FROM t",
    "SELECT k, COALESCE(x, 0) AS v, n / NULLIF(x, 0) AS w FROM t",
    "SELECT k, CASE k WHEN 'a' THEN n ELSE x END AS v, CASE WHEN k = 'b' THEN -n END AS w FROM t",
    "SELECT SUM(n) AS s, AVG(x) AS m, MIN(n) AS l, MAX(x) AS h, SUM(n) / SUM(x) AS q, SUM(n * 2 - x) AS r FROM t",
    "SELECT SUM(n) FILTER (WHERE k > 'b') AS s FROM t",
    "SELECT k, SUM(n) OVER () AS s, n / SUM(n) OVER () AS q, SUM(x) OVER (ORDER BY d) AS run FROM t",
    "SELECT k, n - LAG(n) OVER (ORDER BY d) AS v, FIRST_VALUE(x) OVER (PARTITION BY k ORDER BY d) AS f FROM t",
    "SELECT k, x / (SELECT SUM(x) FROM t) AS v FROM t",
    "SELECT t.k, n - y AS v, n * w AS z FROM t JOIN u ON t.k = u.k JOIN p ON p.k = t.k",
    "SELECT k, v * 2 AS w FROM (SELECT k, n + 1 AS v FROM t) s",
    "SELECT SUM(n) AS s FROM (SELECT n, UNNEST([1, 2]) AS twice FROM t) s",
    "WITH s AS (SELECT k, n AS v FROM t), r AS (SELECT k, SUM(v) AS v FROM s GROUP BY k) SELECT k, v FROM r",
    "SELECT k, n AS v FROM t UNION ALL SELECT 'all', SUM(n) FROM t",
    "SELECT k, n AS v FROM t UNION ALL SELECT k || 'u', y FROM u UNION ALL SELECT 'z', 3 ORDER BY k",
    "SELECT k, n FROM t WHERE k = (SELECT MAX(k) FROM p)",
    "SELECT k, n FROM t WHERE n > 3 ORDER BY n DESC LIMIT 2",
    "SELECT t.k, t.n FROM t LEFT JOIN p USING (k) ORDER BY t.k LIMIT 3",
]

NOT_FOLLOWED = [
    "SELECT SUM(n) AS v FROM t WHERE n > 3",
    "SELECT k, RANK() OVER (ORDER BY n) AS v FROM t",
    "SELECT k, SUM(n) OVER (ORDER BY x) AS v FROM t",
    "SELECT SUM(x) AS v FROM t GROUP BY n",
    "SELECT CASE WHEN n > 3 THEN 1 ELSE 2 END AS v FROM t",
    "SELECT CASE WHEN n > 3 THEN 'many' ELSE 'few' END AS v FROM t",
    "SELECT n > 3 AS v FROM t",
    "SELECT MEDIAN(n) AS v FROM t",
    "SELECT DISTINCT n AS v FROM t",
    "SELECT n AS v FROM t UNION SELECT y FROM u",
    "SELECT COUNT(*) AS v FROM t WHERE x > 0",
    "SELECT SUM(n) AS v FROM (SELECT n FROM t ORDER BY x LIMIT 2) s",
    "SELECT SUM(t.n) AS v FROM t JOIN u ON t.n > u.y",
    "SELECT SUM(v) AS v FROM (SELECT DISTINCT n AS v FROM t) s",
    "SELECT LN(n) * SIN(x) AS v FROM t",
    "WITH s AS (SELECT k, n FROM t) SELECT b AS v FROM s AS c(a, b)",
    "SELECT v FROM t, UNNEST([n]) AS r(v)",
    "SELECT n > 3 AS big, COUNT(*) AS v FROM t GROUP BY ALL",
    "SELECT MOD(n, 2) AS half, COUNT(*) AS v FROM t GROUP BY ALL",
    "SELECT RANGE(CAST(n AS INTEGER)) AS up, COUNT(*) AS v FROM t GROUP BY ALL",
    "SELECT LIST(k) AS v FROM t WHERE n > 3",
    "SELECT COUNT(*) AS v FROM (SELECT UNNEST(RANGE(CAST(n AS INTEGER))) AS up FROM t) s",
    "SELECT SUM(SUM(n)) OVER () AS v FROM t GROUP BY k HAVING SUM(n) > 3",
    "SELECT COUNT(*) OVER () AS v FROM t QUALIFY ROW_NUMBER() OVER (ORDER BY n) < 3",
    "SELECT SUM(n) AS v FROM (SELECT * FROM (SELECT n FROM t ORDER BY n DESC) s LIMIT 2) r",
    "SELECT LAG(x, CAST(n AS INTEGER)) OVER (ORDER BY d) AS v FROM t",
    "SELECT SUM(NULLIF(n, 5)) AS v FROM t",
    "SELECT COALESCE(NULLIF(x, 0), 99) AS v FROM t",
    "SELECT GREATEST(NULLIF(n, 5), -50) AS v FROM t",
    "SELECT MIN(LN(x)) AS v FROM t",
    "SELECT (SELECT MAX(p.k) FROM p WHERE p.w > t.n AND EXISTS (SELECT 1 FROM u AS t)) AS v FROM t",
    "SELECT COUNT(*) AS v FROM g",
    "SELECT COALESCE(g.m, 0) AS v FROM p LEFT JOIN g ON p.k = g.k",
    "SELECT g.k AS v FROM p LEFT JOIN g ON p.k = g.k",
    "SELECT COALESCE(u.y, 99) AS v FROM t LEFT JOIN u ON u.k = t.k AND u.y > 3",
    "SELECT COALESCE(t.n, 99) AS v FROM t RIGHT JOIN u ON u.k = t.k AND u.y > 3",
    "SELECT CASE WHEN u.k IS NULL THEN 1 ELSE 0 END AS v FROM t FULL JOIN u ON u.k = t.k AND t.n > 3",
]


@pytest.fixture(scope="module")
def engine() -> Iterator[OuterEngine]:
    found = OuterEngine()
    yield found
    found.close()


NULL_IN_PLACES = [
    "SELECT SUM(n * 9223372036854775807) AS v, SUM(n + 9223372036854775800) AS w FROM t",
    "SELECT MIN(CAST(x * 1e9 AS INTEGER)) AS v, SUM(CAST(x * 1e18 AS BIGINT)) AS w FROM t",
    "SELECT SUM(CAST(n AS INTEGER) * 100000000) AS v FROM t",
    "SELECT SUM(w * 100000000) AS v FROM (SELECT CAST(n AS INTEGER) AS w FROM t) s",
    "WITH s AS (SELECT CAST(n AS INTEGER) AS w FROM t) SELECT SUM(w * 100000000) AS v FROM s",
    "SELECT k, SUM(n * 9223372036854775807) OVER () AS v FROM t",
    "SELECT SUM(v) AS v FROM (SELECT n * 9223372036854775807 AS v FROM t) s",
]
"""What is NULL where a whole number is too large: aggregates leave it out."""


def made(question: str) -> OuterQuery:
    return outer_query(parse(question), ["*"], TABLES, OUTER)


def some(
    chance: random.Random, *, inside: dict[str, dict[str, list[object]]] | None = None
) -> dict[str, dict[str, list[object]]]:
    """The tables' rows: noisy values with intervals around 0, or anywhere `inside` the intervals of others."""
    data: dict[str, dict[str, list[object]]] = {}
    for name, table in TABLES.items():
        columns: dict[str, list[object]] = {}
        for column, kind in table.columns:
            if kind == "text":
                columns[column] = list(KEYS)
            elif kind == "date":
                columns[column] = [f"2020-01-0{place + 1}" for place in range(len(KEYS))]
            elif column not in table.noisy:
                columns[column] = [1.5, -2.0, 0.0, 4.0, 7.25]
            elif inside is None:
                values = [chance.randint(-20, 60) for _ in KEYS]
                wide = [chance.randint(0, 12) for _ in KEYS]
                columns[column] = list(values)
                for low, high in ((LOW, HIGH), (ONE_LOW, ONE_HIGH)):
                    columns[column + low] = [value - by for value, by in zip(values, wide, strict=True)]
                    columns[column + high] = [value + by for value, by in zip(values, wide, strict=True)]
            else:
                ends = zip(inside[name][column + LOW], inside[name][column + HIGH], strict=True)
                columns[column] = [
                    chance.choice([low, high, chance.randint(low, high)])  # type: ignore[call-overload]
                    for low, high in ends
                ]
                for ending in (LOW, HIGH, ONE_LOW, ONE_HIGH):
                    columns[column + ending] = list(columns[column])
        data[name] = columns
    return data


@pytest.mark.parametrize("question", [*FOLLOWED, *NULL_IN_PLACES], ids=lambda text: text[:90])
def test_the_truth_lies_in_the_interval_wherever_in_the_box_it_is(question: str, engine: OuterEngine) -> None:
    query = made(question)
    known = [followed for _, followed in query.columns]
    assert Followed.UNKNOWN not in known
    assert any(one.boxed for one in known)
    chance = random.Random(7)
    for _ in range(3):
        released = some(chance)
        answer = content(query, engine.compute(query, TABLES, released), [], FREE)
        keyed = [tuple(row[name] for name in answer.keys or ()) for row in answer.rows]
        for _ in range(6):
            truth = content(query, engine.compute(query, TABLES, some(chance, inside=released)), [], FREE)
            by_key = {tuple(row[name] for name in truth.keys or ()): row for row in truth.rows}
            for key, ends in zip(keyed, answer.simultaneous, strict=True):
                if query.picked and key not in by_key:
                    continue  # another row is picked there
                for name, (low, high) in ends.items():
                    value = by_key[key][name]
                    if value is not None:
                        assert low - 1e-6 - 1e-9 * abs(low) <= value <= high + 1e-6 + 1e-9 * abs(high), (name, key)


@pytest.mark.parametrize(
    "question",
    [
        "SELECT d + CAST(n AS INTEGER) AS v FROM t",
        "SELECT d + n * INTERVAL 1 DAY AS v FROM t",
        "SELECT v - CAST(n AS INTEGER) AS v FROM (SELECT MIN(d) AS v, SUM(n) AS n FROM t) s",
    ],
)
def test_dates_have_no_intervals(question: str, engine: OuterEngine) -> None:
    query = made(question)
    assert dict(query.columns)["v"] is Followed.UNKNOWN
    assert engine.compute(query, TABLES, some(random.Random(1))).rows


def test_what_is_too_deep_to_be_written_is_refused() -> None:
    with pytest.raises(QuestionError, match="too deeply"):
        made("SELECT " + "IFNULL(" * 40 + "n" + ", 1)" * 40 + " AS v FROM t")


@pytest.mark.parametrize("question", NOT_FOLLOWED, ids=lambda text: text[:90])
def test_what_is_not_followed_is_said(question: str, engine: OuterEngine) -> None:
    query = made(question)
    assert dict(query.columns)["v"] is Followed.UNKNOWN
    answer = content(query, engine.compute(query, TABLES, some(random.Random(1))), [], FREE)
    assert "v: how far it lies from the truth is not known" in answer.bounds
    assert all("v" not in one for one in answer.intervals)


def test_an_interval_of_its_own_is_kept_where_no_noise_picks_rows(engine: OuterEngine) -> None:
    for question, alone in [
        ("SELECT k, n FROM t", True),
        ("SELECT k, n FROM t ORDER BY k LIMIT 3", True),
        ("SELECT k, n FROM t ORDER BY n LIMIT 3", False),
        ("SELECT k, n FROM t WHERE n > 0", False),
    ]:
        query = made(question)
        data = some(random.Random(3))
        data["t"]["n" + ONE_LOW] = [value - 1 for value in data["t"]["n"]]  # type: ignore[operator]
        data["t"]["n" + LOW] = [value - 50 for value in data["t"]["n"]]  # type: ignore[operator]
        data["t"]["n" + HIGH] = [value + 50 for value in data["t"]["n"]]  # type: ignore[operator]
        answer = content(query, engine.compute(query, TABLES, data), [], FREE)
        wide = [row["n"] - ends["n"][0] for row, ends in zip(answer.rows, answer.intervals, strict=True)]
        assert wide == [1 if alone else 50] * len(wide)


@pytest.mark.parametrize(
    "question",
    [
        "SELECT * FROM (SELECT a.n, b.n, a.k FROM t a JOIN t b ON a.k = b.k) s",
        "WITH c AS (SELECT * FROM t), e AS (SELECT *, * FROM c) SELECT * FROM e",
    ],
)
def test_columns_of_one_name_stay_apart_or_are_refused(question: str) -> None:
    with contextlib.suppress(QuestionError):
        query = made(question)
        assert len(query.columns) >= 3
        assert any(followed.boxed for _, followed in query.columns)


@pytest.mark.parametrize(
    "question",
    [
        "SELECT SUM(n) OVER w AS v FROM t WINDOW w AS (ORDER BY x)",
        "SELECT DISTINCT ON (n) k FROM t",
        'SELECT n FROM (SELECT n, 5 AS "n\x1flow" FROM t) s',
        "SELECT t.n FROM (t JOIN u ON t.k = u.k)",
        "SELECT (SELECT (SELECT (SELECT (SELECT MAX(n) FROM t) FROM t) FROM t) FROM t) FROM t",
    ],
)
def test_what_intervals_could_not_go_through_is_refused(question: str) -> None:
    with pytest.raises(QuestionError):
        made(question)


def test_a_long_product_is_not_followed_and_takes_no_time() -> None:
    query = made("SELECT " + " * ".join(["n"] * 40) + " AS v FROM t")
    assert query.columns == (("v", Followed.UNKNOWN),)


def test_the_child_reads_nothing_but_what_it_is_sent() -> None:
    process = EngineProcess("discreet.engines.duckdb.outer_worker")
    try:
        for text in [
            "SELECT * FROM read_text('/etc/hostname')",
            "COPY (SELECT 1) TO 'outer_test.csv'",
            "ATTACH 'outer_test.db'",
            "INSTALL httpfs",
            "LOAD httpfs",
            "SET enable_external_access = true",
            "SELECT * FROM glob('/*')",
        ]:
            assert process.call("compute", [], text, seconds=300.0).get("wrong"), text
        assert process.call("compute", [], "SELECT 1", seconds=300.0)["rows"] == [[1]]
    finally:
        process.close()


LEAVING = [
    "CREATE TABLE left_behind AS SELECT 1 AS a",
    "CREATE TEMP TABLE left_behind AS SELECT 1 AS a",
    "CREATE OR REPLACE MACRO left_behind() AS 1",
    "CREATE SEQUENCE left_behind",
    "CREATE SCHEMA left_behind",
    "ATTACH ':memory:' AS left_behind",
    "SET VARIABLE left_behind = 1",
    "SET search_path = 'temp'",
    "PREPARE left_behind AS SELECT 1",
    "BEGIN TRANSACTION",
    "INSERT INTO t VALUES ('b', 2)",
    "SELECT 1; CREATE TABLE left_behind AS SELECT 1 AS a",
    "CREATE TABLE left_behind AS SELECT 1 AS a; SELECT 1",
    "",
]


STANDS = [
    *(f"SELECT * FROM duckdb_{kind}()" for kind in ("tables", "sequences", "variables", "prepared_statements")),
    *(f"SELECT * FROM duckdb_{kind}() WHERE NOT internal" for kind in ("views", "schemas", "functions")),
    "SELECT * FROM duckdb_databases() WHERE NOT internal AND database_name <> 'memory'",
]


def test_a_request_leaves_nothing_to_the_next() -> None:
    process = EngineProcess("discreet.engines.duckdb.outer_worker")
    table = ("t", [("k", "text"), ("n", "integer")], [["a"], [1]])

    def answer(text: str, *tables: object) -> object:
        found = process.call("compute", list(tables), text, seconds=300.0)
        return found.get("wrong") or found["rows"]

    try:
        for text in LEAVING:
            assert isinstance(answer(text, table), str), text
            assert answer("SELECT k, n FROM t", table) == [["a", 1]], text
            assert answer("SELECT k FROM t") == "CatalogException", text
            assert [answer(one) for one in STANDS] == [[]] * len(STANDS), text
    finally:
        process.close()


def test_what_takes_too_long_is_refused_and_the_next_is_answered(
    engine: OuterEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("discreet.postprocessing.computing.SECONDS", 1.0)
    joins = " CROSS JOIN ".join(f"t AS t{number}" for number in range(18))
    with pytest.raises(QuestionError, match="too long"):
        engine.compute(made(f"SELECT SUM(t1.n * t2.n * t3.n * t4.x) AS v FROM {joins}"), TABLES, some(random.Random(1)))
    monkeypatch.undo()
    assert engine.compute(made("SELECT k FROM t"), TABLES, some(random.Random(1))).rows


@pytest.mark.parametrize(
    "question",
    [
        "SELECT n % 0 AS v, DIV(n, 0) AS w, n / 0 AS x FROM t",
        "SELECT CAST(k AS INTEGER) AS v FROM t",
        "SELECT SQRT(-1 - n * n) AS v, LN(-1) AS w, ACOS(5) AS x FROM t",
        "SELECT n * 9223372036854775807 AS v FROM t",
        "SELECT CASE WHEN k > 'a' THEN CAST(k AS DATE) END AS v FROM t",
        "SELECT INITCAP(k) AS v, SUBSTRING(k, -5, 2) AS w FROM t",
        "SELECT CHR(CAST(-n AS INTEGER)) AS v, -(x - 9223372036854775807) AS w FROM t",
        "SELECT k, MAX(n) * 9223372036854775807 AS v FROM t GROUP BY k HAVING MAX(n) * 9223372036854775807 <> 1.5"
        " OR SUM(n * n) + 1 > 0 ORDER BY ABS(MIN(CAST(-9223372036854775808 AS BIGINT)))",
        "SELECT SUM(n) OVER () * 9223372036854775807 * 9223372036854775807 * 9223372036854775807 AS v FROM t",
        "SELECT (SELECT MAX(n) FROM t) + 9223372036854775807 - t.n AS v, LN((SELECT -SUM(n * n) FROM t)) AS w FROM t",
        "SELECT w.k, INITCAP(MAX(w.k)) AS v, -(MIN(n) - 9223372036854775807) AS z FROM t AS w GROUP BY 1",
    ],
)
def test_no_value_makes_a_query_fail(question: str, engine: OuterEngine) -> None:
    """It was paid for what it reads."""
    answer = content(made(question), engine.compute(made(question), TABLES, some(random.Random(2))), [], FREE)
    assert len(answer.rows) == len(KEYS)
