"""What tools write means what the databases mean by it: each question beside plain DuckDB's answer."""

from __future__ import annotations

import datetime
from fractions import Fraction
from typing import Any

import pytest

import discreet
from discreet import Curator, QuestionError
from discreet.catalog import declare
from discreet.sql import lower
from discreet.sql.asked import Asked
from discreet.sql.grammar import parse
from discreet.sql.spelling import spelled
from face_tools import EXACT, Data, visits
from reading_tools import COLUMNS

FIRST = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
CITIES = "city IN ('north', 'south', 'Zürich')"
NAMES = [
    'SELECT "public"."visits"."city", COUNT(*) AS n FROM "public"."visits" GROUP BY "public"."visits"."city"',
    "SELECT visits.city, COUNT(1) AS n FROM clinic.main.visits GROUP BY 1;",
    'SELECT "source"."city" AS "city", COUNT(*) AS "n" FROM "public"."visits" AS "source" GROUP BY 1 -- x',
    "SELECT city, COUNT(*) AS n FROM `p.public.visits` GROUP BY city",
    "SELECT city, COUNT_BIG(*) AS n FROM dbo.visits GROUP BY city /* all */",
    "SELECT TOP 1000 city, COUNT(*) AS n FROM visits GROUP BY city",
    "SELECT TOP (1000) city, COUNT(*) AS n FROM visits GROUP BY city",
    "SELECT city, COUNT(*) AS n FROM visits GROUP BY city FETCH FIRST 1000 ROWS ONLY",
    "SELECT city, COUNT(*) AS n FROM visits GROUP BY city FETCH NEXT 1000 ROWS ONLY",
    "SELECT city, COUNT(*) AS n FROM visits GROUP BY city LIMIT (1000)",
]


def rows(curator: Curator, question: str, **said: Any) -> list[dict[str, Any]]:
    return sorted(curator.ask(question, epsilon=EXACT, **said).rows, key=repr)


@pytest.mark.parametrize("question", NAMES)
def test_names_and_ends_as_tools_write_them(question: str, exact: Curator) -> None:
    assert rows(exact, question) == rows(exact, FIRST)


@pytest.mark.parametrize(
    ("question", "code", "fix"),
    [
        ("SELECT COUNT(*) FROM shop.visits", "unknown-schema", "write public.visits, or visits alone"),
        ("SELECT COUNT(*) FROM visits WHERE shop.visits.age > 1", "unknown-schema", "write public.visits"),
        ("WITH visits AS (SELECT person FROM single) SELECT COUNT(*) FROM public.visits", "names", "give the query"),
        (
            "SELECT COUNT(*) FROM public.visits AS v JOIN single AS visits USING (person) WHERE public.visits.age > 1",
            "names",
            "write visits.age",
        ),
        ("SELECT TOP 10 WITH TIES city, COUNT(*) FROM visits GROUP BY city", "limit", "write LIMIT 10"),
        ("SELECT COUNT(*) FROM visits WHERE moment AT TIME ZONE 'CET' > day", "not-allowed", "timestamps are in UTC"),
        ("SELECT COUNT(*) FROM visits WHERE day > NOW('CET')", "not-allowed", "leave out the zone"),
        ("SELECT COUNT(*) FROM visits WHERE day > day + age * INTERVAL '1 day'", "not-allowed", "multiply it with"),
        ("SELECT TIME_BUCKET(INTERVAL '7 minutes', moment), COUNT(*) FROM visits", "not-allowed", "take one unit"),
        ("SELECT TO_CHAR(day, 'Month') AS k, COUNT(*) FROM visits GROUP BY k", "not-allowed", "write it with"),
        ("SELECT DECODE(age, NULL, 1, 2) AS k, COUNT(*) FROM visits GROUP BY k", "not-allowed", "write CASE x"),
        ("SELECT TO_TIMESTAMP(age) AS k, COUNT(*) FROM visits GROUP BY k", "not-allowed", "compare the number"),
        ("SELECT COUNT(*) FROM visits WHERE CAST(age AS thing) = 1", "syntax", "cast to INTEGER"),
        ("SELECT COUNT(*) FROM visits WHERE smoker = 2", "type", "compare with TRUE or FALSE"),
    ],
)
def test_what_means_nothing_here_is_refused(question: str, code: str, fix: str, exact: Curator) -> None:
    with pytest.raises(QuestionError) as refused:
        exact.explain(question, epsilon=1)
    assert refused.value.code == code, refused.value
    assert refused.value.fix.startswith(fix), refused.value


CONDITIONS = [
    ("smoker = 1", "smoker"),
    ("smoker = 'f'", "NOT smoker"),
    ("smoker <> 0", "smoker"),
    ("smoker IN (1)", "smoker"),
    ("moment >= '2024-01-02T00:00:00.000Z'", "moment >= TIMESTAMP '2024-01-02'"),
    ("moment >= TIMESTAMPTZ '2024-01-02 02:00:00+02:00'", "moment >= TIMESTAMP '2024-01-02'"),
    ("moment AT TIME ZONE 'UTC' < {ts '2024-01-02 10:00:00'}", "moment < TIMESTAMP '2024-01-02 10:00:00'"),
    ("CAST(moment AS TIMESTAMP WITH TIME ZONE) < '2024-01-03'", "moment < TIMESTAMP '2024-01-03'"),
    ("day >= TIMESTAMP '2024-01-10 00:00:00'", "day >= DATE '2024-01-10'"),
    ("day >= TIMESTAMP '2024-01-10 12:00:00'", "day >= DATE '2024-01-11'"),
    ("moment > day", "moment > day"),
    ("day > {d '2024-01-01'} + INTERVAL '1 month 3 days'", "day > DATE '2024-01-01' + INTERVAL '1 month 3 days'"),
    ("day + INTERVAL '1 mon' > DATE '2024-03-01'", "day + INTERVAL '1 month' > DATE '2024-03-01'"),
    ("day - 7 * INTERVAL '1 day' > DATE '2024-01-10'", "day > DATE '2024-01-17'"),
    ("day + 3 > DATE '2024-01-10'", "day + 3 > DATE '2024-01-10'"),
    ("moment + INTERVAL '1 day 12:30:00' > TIMESTAMP '2024-01-04'", "moment > TIMESTAMP '2024-01-02 11:30:00'"),
    ("DATEADD(day, 3, day) > DATE '2024-01-10'", "day + 3 > DATE '2024-01-10'"),
    ("DATE_ADD('day', -3, day) > DATE '2024-01-10'", "day - 3 > DATE '2024-01-10'"),
    ("DATE_SUB(day, 3) > DATE '2024-01-10'", "day - 3 > DATE '2024-01-10'"),
    ("DATEDIFF(day, DATE '2024-01-10') > 3", "day - DATE '2024-01-10' > 3"),
    ("DATEDIFF(dd, DATE '2024-01-02', moment) > 0", "moment >= DATE '2024-01-03'"),
    ("DATEPART(mm, day) = 2", "MONTH(day) = 2"),
    ("DATE_PART('doy', day) > 20", "DAYOFYEAR(day) > 20"),
    ("EXTRACT('month' FROM day) = 2", "MONTH(day) = 2"),
    ("DATENAME(weekday, day) = 'Monday'", "DAYNAME(day) = 'Monday'"),
    ("day >= TO_DATE('2024-01-10', 'YYYY-MM-DD')", "day >= DATE '2024-01-10'"),
    ("moment >= TO_TIMESTAMP('2024-01-02 00:00:00.000', 'YYYY-MM-DD HH24:MI:SS.MS')", "moment >= DATE '2024-01-02'"),
    ("moment >= TO_TIMESTAMP(1704153600)", "moment >= TIMESTAMP '2024-01-02'"),
    ("day >= STR_TO_DATE('2024-01-10', '%Y-%m-%d')", "day >= DATE '2024-01-10'"),
    ("day >= PARSE_DATE('%Y-%m-%d', '2024-01-10')", "day >= DATE '2024-01-10'"),
    ("STR_TO_DATE(CONCAT(DATE_FORMAT(day, '%Y-%m'), '-01'), '%Y-%m-%d') = '2024-02-01'", "MONTH(day) = 2"),
    ("DATEFROMPARTS(YEAR(day), MONTH(day), 1) = '2024-02-01'", "MONTH(day) = 2"),
    ("MAKE_DATE(2024, 2, 1) <= day", "MONTH(day) = 2"),
    ("EOMONTH(day) = '2024-01-31'", "MONTH(day) = 1"),
    ("IIF(age > 3, 1, 0) = 1", "age > 3"),
    ("ISNULL(age, 7) = 7 OR ISNULL(cost)", "COALESCE(age, 7) = 7 OR cost IS NULL"),
    ("NVL(age, 7) = 7 AND age ISNULL", "age IS NULL"),
    ("CHARINDEX('1', note) = 6", "STRPOS(note, '1') = 6"),
    ("DECODE(note, 'note 1', 1, 'note 2', 2, 0) > 0", "note IN ('note 1', 'note 2')"),
    ("note = N'note 1'", "note = 'note 1'"),
    ("TRUNCATE(cost, 0) = 10", "TRUNC(cost) = 10"),
    ("age // 2 = 3 AND age % 2 = 1", "age = 7"),
    ("{fn MONTH(day)} = 2", "MONTH(day) = 2"),
    ("CAST(cost AS DECIMAL(10, 1)) = 10.3", "ROUND(cost, 1) = 10.3"),
    ("CAST(note AS VARCHAR(4)) = 'note' AND age::int4 = 3 AND cost::float8 > 1", "age = 3 AND cost > 1"),
    ("CAST(age AS DOUBLE PRECISION) / CAST(2 AS SMALLINT) = 1.5", "age = 3"),
]


@pytest.mark.parametrize(("written", "plain"), CONDITIONS)
def test_conditions_as_tools_write_them(written: str, plain: str, exact: Curator, data: Data) -> None:
    found = exact.ask(f"SELECT COUNT(*) AS n FROM visits WHERE {written}", epsilon=EXACT).rows[0]["n"]
    expected = data.truth.sql(f"SELECT COUNT(*) FROM visits WHERE {plain}").fetchall()[0]
    assert found == expected[0]
    assert 0 < found < 600


KEYS = [
    ("TO_CHAR(day, 'YYYY-MM')", "strftime(day, '%Y-%m')"),
    ("TO_CHAR(day, 'YYYY-\"Q\"Q')", "strftime(day, '%Y-Q') || quarter(day)"),
    ("TO_CHAR(day, 'IYYY-IW')", "strftime(day, '%G-%V')"),
    ("FORMAT_DATE('%G-%V', day)", "strftime(day, '%G-%V')"),
    ("STRFTIME('%F %T', moment)", "strftime(moment, '%Y-%m-%d %H:%M:%S')"),
    ("DATE_FORMAT(moment, '%Y-%m-%d %H:00:00')", "strftime(moment, '%Y-%m-%d %H:00:00')"),
    ("DATE_FORMAT(day, 'yyyy-MM-dd')", "strftime(day, '%Y-%m-%d')"),
    ("TO_CHAR(age)", "CAST(age AS VARCHAR)"),
    ("DATETRUNC(month, day)", "CAST(date_trunc('month', day) AS DATE)"),
    ("DATE_TRUNC('day', moment, 'UTC')", "date_trunc('day', moment)"),
    ("DATE_TRUNC(day, WEEK(MONDAY))", "CAST(date_trunc('week', day) AS DATE)"),
    ("DATE_TRUNC(day, WEEK(SUNDAY))", "CAST(date_trunc('week', day + 1) AS DATE) - 1"),
    *(
        (f"TIME_BUCKET(INTERVAL '{width}', moment)", f"time_bucket(INTERVAL '{width}', moment)")
        for width in ("1 hour", "15 minutes", "6 hours", "1 day", "7 days", "1 week", "3 months", "6 months", "1 year")
    ),
    ("TIME_BUCKET('30 minutes', moment)", "time_bucket(INTERVAL '30 minutes', moment)"),
]


@pytest.mark.parametrize(("written", "plain"), KEYS)
def test_keys_as_tools_write_them(written: str, plain: str, exact: Curator, data: Data) -> None:
    found = exact.ask(f"SELECT {written} AS k, COUNT(*) AS n FROM visits GROUP BY 1", epsilon=EXACT).rows
    expected = data.truth.sql(f"SELECT {plain} AS k, COUNT(*) AS n FROM visits GROUP BY 1").fetchall()
    assert sorted((str(row["k"]).replace("T", " "), row["n"]) for row in found) == sorted(
        (str(key), number) for key, number in expected
    )


def test_statistics_by_other_names(exact: Curator) -> None:
    others = "SELECT VAR(age), STDEV(age), STD(cost), VARP(age), STDEVP(cost) FROM single"
    own = "SELECT VAR_SAMP(age), STDDEV_SAMP(age), STDDEV_SAMP(cost), VAR_POP(age), STDDEV_POP(cost) FROM single"
    assert rows(exact, others) == rows(exact, own)
    quantile = "SELECT APPROX_QUANTILES(age, 4)[OFFSET(1)] AS q FROM single"
    assert rows(exact, quantile) == rows(exact, "SELECT PERCENTILE_CONT(age, 0.25) AS q FROM single")


def test_the_date_of_a_question_is_declared(data: Data) -> None:
    with Curator(
        {"visits": visits(data.csv)}, epsilon="1e25", schema="ward", date=datetime.date(2024, 1, 20)
    ) as curator:
        release = curator.ask("SELECT COUNT(*) AS n FROM ward.visits WHERE day > CURRENT_DATE - 7", epsilon=EXACT)
        expected = data.truth.sql("SELECT COUNT(*) FROM visits WHERE day > DATE '2024-01-13'").fetchall()[0]
        assert (release.rows[0]["n"],) == expected
        assert "NOW() and CURRENT_DATE are 2024-01-20, 00:00: as declared" in str(release)
        question = "SELECT COUNT(*) AS n FROM visits WHERE moment >= NOW() - INTERVAL '14 days'"
        assert (
            "NOW() and CURRENT_DATE are 2024-01-20, 00:00: as declared" in curator.explain(question, epsilon=1).bounds
        )
        (kept,) = [entry.question for entry in curator.ledger.entries() if entry.kind == "reserve"]
        assert kept.startswith("/* asked on 2024-01-20 */ ")
        with pytest.raises(QuestionError, match="there is no schema 'public': the tables are in ward"):
            curator.ask("SELECT COUNT(*) FROM public.visits", epsilon=1)


def test_else_it_is_today_and_the_answer_says_so(exact: Curator) -> None:
    before = datetime.datetime.now(datetime.UTC).date()
    release = exact.ask("SELECT COUNT(*) AS n FROM visits WHERE day < NOW()", epsilon=EXACT)
    after = datetime.datetime.now(datetime.UTC).date()
    assert release.rows[0]["n"] == 600
    assert any(
        f"NOW() and CURRENT_DATE are {day}, 00:00: the day of the question in UTC" in str(release)
        for day in (before, after)
    )
    assert "CURRENT_DATE" not in str(exact.ask("SELECT COUNT(*) FROM visits WHERE note = 'NOW()'", epsilon=EXACT))


def test_a_question_is_read_again_from_the_ledger_as_it_was_asked() -> None:
    asked = Asked("SELECT NOW()", "postgres", datetime.date(2024, 5, 6))
    assert Asked.read(asked.kept) == asked
    assert Asked.read(Asked("SELECT 1").kept) == Asked("SELECT 1")
    named = Asked("SELECT 1", "mysql")
    assert Asked.read(named.kept) == named


def test_spelling_twice_changes_nothing() -> None:
    declared = declare(
        {
            "budget": {"epsilon": Fraction(1)},
            "tables": {"visits": {"source": "t.csv", "columns": COLUMNS, "one_row_per_person": True}},
        }
    )
    questions = [f"SELECT {key}, COUNT(*) FROM visits GROUP BY 1" for key, _ in KEYS]
    questions += [f"SELECT COUNT(*) FROM visits WHERE {condition}" for condition, _ in CONDITIONS]
    for question in (*questions, *NAMES):
        once = repr(spelled(parse(question), declared))
        assert repr(spelled(spelled(parse(question), declared), declared)) == once


def test_faults_of_the_schema_and_the_date() -> None:
    table = discreet.Table("t.csv", columns={"x": int}, one_row_per_person=True)
    for said, where in (
        ({"schema": 3}, "schema.name"),
        ({"date": datetime.datetime(2024, 1, 1)}, "question.date"),
        ({"date": "2024-01-01"}, "question.date"),
    ):
        with pytest.raises(discreet.DeclarationError) as refused:
            Curator({"t": table}, epsilon=1, **said)  # type: ignore[arg-type]
        assert where in str(refused.value)


def test_a_list_of_buckets_stays_small() -> None:
    declared = declare(
        {
            "budget": {"epsilon": Fraction(1), "delta": Fraction(1, 10**6)},
            "tables": {"t": {"source": "t.csv", "columns": COLUMNS, "one_row_per_person": True}},
        }
    )
    assert lower("SELECT TIME_BUCKET(INTERVAL '1 minute', d) AS k, COUNT(*) FROM t GROUP BY k", declared).plan
    nested = "d"
    for _ in range(6):
        nested = f"TIME_BUCKET(INTERVAL '5 minutes', {nested})"
    with pytest.raises(QuestionError):
        lower(f"SELECT {nested} AS k, COUNT(*) FROM t GROUP BY k", declared)
