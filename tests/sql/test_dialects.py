"""A question in a database's SQL means what it means there: beside DuckDB and PostgreSQL themselves, and beside plain
DuckDB with what the others' manuals say."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import pytest

from discreet import Curator, QuestionError
from discreet.catalog import declare
from discreet.engines.chosen import DIALECT
from discreet.sql import limits, lower
from discreet.sql.dialects import LANGUAGES, _grammar, read
from discreet.sql.trees import read as read_tree
from discreet.sql.trees import written
from discreet.trusted.ring_a.statement import statement
from discreet.trusted.ring_a.windows import Salt
from face_tools import EXACT, Command, Data
from postgres_tools import Postgres, running
from reading_tools import HOSTILE, declaration

_VISITS = {
    "visits": {
        "source": "visits.csv",
        "person": "person",
        "rows_per_person": 9,
        "columns": {
            **{name: {"type": "text"} for name in ("person", "city", "note")},
            "smoker": {"type": "boolean"},
            "age": {"type": "integer", "min": 0, "max": 20},
            "cost": {"type": "number", "min": 0, "max": 150},
            "day": {"type": "date"},
            "moment": {"type": "timestamp"},
        },
    }
}
DECLARED = declare({"budget": {"epsilon": Fraction(1), "delta": Fraction(1, 10**6)}, "tables": _VISITS})
DECLARED = replace(DECLARED, tables={**DECLARED.tables, **declaration().tables})


@pytest.fixture(scope="module")
def server(data: Data) -> Iterator[Postgres]:
    """PostgreSQL with the visits, as they are declared."""
    types = "person text, city text, smoker boolean, age integer, cost numeric, day date, moment timestamp"
    with running(15) as postgres:
        postgres.run(f"CREATE TABLE visits ({types}, note text)")
        rows = data.truth.sql("SELECT * FROM visits").fetchall()
        for start in range(0, len(rows), 100):
            values = ", ".join("(" + ", ".join(map(_constant, row)) + ")" for row in rows[start : start + 100])
            postgres.run(f"INSERT INTO visits VALUES {values}")
        yield postgres


def _constant(value: object) -> str:
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, bool | int | float) else f"'{value}'"


def counted(curator: Curator, condition: str, dialect: str) -> int:
    question = f"SELECT COUNT(*) AS n FROM visits WHERE {condition}"
    found = curator.ask(question, epsilon=EXACT, dialect=dialect).rows[0]["n"]
    assert isinstance(found, int)
    return found


POSTGRES = [
    "age / 2 = 3",
    "age / 2 * 2 = 6",
    "age / 2.0 = 3.5",
    "age % 4 = 3 AND (0 - age) % 4 = -3",
    "age ^ 2 = 49",
    "age # 2 = 5",
    "cost::integer = 10 OR cost::numeric(10, 1) = 10.3",
    "CAST(note AS varchar(3)) = 'not' AND age::text = '7'",
    "note LIKE 'note\\_1' OR note LIKE 'note 1'",
    "note ~ '^n.*1$'",
    "note ~* 'NOTE [12]'",
    "note !~ '1'",
    "note ILIKE 'NOTE 1%'",
    "CONCAT(note, NULL, '!') = 'note 1!'",
    "GREATEST(age, NULL, 3) = 3",
    "LEAST(age, cost) = 5",
    "LEFT(note, -2) = 'note' AND RIGHT(note, 1) = '1'",
    "SUBSTRING(note FROM 6 FOR 1) = '2'",
    "SUBSTR(note, 1, 4) || '-' || SPLIT_PART(note, ' ', 2) = 'note-3'",
    "STRPOS(note, '1') = POSITION('1' IN note) AND STRPOS(note, '1') > 0",
    "LOG(100) * LENGTH(note) = 12",
    "LOG(2, 8) > 2.9 AND age = 3",
    "TRUNC(cost) = 10 AND CEIL(cost) = 11",
    "DIV(age, 2) = 3",
    "TO_CHAR(day, 'YYYY-MM-DD') = '2024-01-10'",
    "TO_CHAR(day, 'IYYY-IW') = '2024-02' OR TO_CHAR(day, 'FMDay Q D ID') = 'Monday 1 2 1'",
    "TO_CHAR(moment, 'YYYY-MM-DD HH24:MI:SS') = '2024-01-02 05:00:00'",
    "DATE_TRUNC('month', day) = '2024-02-01'",
    "DATE_TRUNC('week', moment) = '2024-01-01 00:00:00'",
    "EXTRACT(dow FROM day) = 0 OR EXTRACT(isodow FROM day) = 6",
    "EXTRACT(week FROM day) = 3 OR DATE_PART('doy', day) = 1",
    "EXTRACT(epoch FROM moment) = 1704153600",
    "day >= '2024-01-10'::date + INTERVAL '1 week 2 days'",
    "day - INTERVAL '7 days' >= DATE '2024-01-10'",
    "day + 3 > DATE '2024-01-10' AND day - DATE '2024-01-10' < 10",
    "moment >= TO_TIMESTAMP('2024-01-02 00:00:00', 'YYYY-MM-DD HH24:MI:SS')",
    "moment AT TIME ZONE 'UTC' >= TIMESTAMPTZ '2024-01-02 02:00:00+02'",
    "day < CURRENT_DATE AND moment < NOW()",
    "smoker IS TRUE AND smoker = 't'",
    "MAKE_DATE(2024, 1, 10) = day",
    "visits.age BETWEEN 3 AND 5",
]


@pytest.mark.parametrize("condition", POSTGRES)
def test_postgres_is_read_as_postgres_does(condition: str, exact: Curator, server: Postgres) -> None:
    ((expected,),) = server.rows(f"SELECT COUNT(*) FROM visits WHERE {condition}")
    assert counted(exact, condition, "postgres") == expected
    assert 0 < expected <= 600


DUCKDB = [
    "age // 2 = 3",
    "cost // 2 = 5.125",
    "age / 2 = 3.5",
    "age ** 2 = 49",
    "note ~ '.*1'",
    "regexp_matches(note, '1') AND regexp_extract(note, '[0-9]+') = '1'",
    "concat(note, NULL) = 'note 1'",
    "greatest(age, NULL, 3) = 3 AND least(age, 3) <= 3",
    "substr(note, -1) = '1'",
    "log(100) * len(note) = 12",
    "dayofweek(day) = 0 AND weekday(day) = 0",
    "date_diff('week', DATE '2024-01-07', day) = 1",
    "datediff('month', DATE '2024-01-31', day) = 1",
    "strftime(day, '%Y-%m') = '2024-02'",
    "day >= strptime('2024-02-01', '%Y-%m-%d')",
    "time_bucket(INTERVAL '6 hours', moment) = TIMESTAMP '2024-01-02 06:00:00'",
    "CAST(note AS VARCHAR(3)) = 'note 1'",
    "CAST(cost AS DECIMAL) = 10.25",
    "day + INTERVAL 3 DAYS > DATE '2024-01-10' AND day + 1 > DATE '2024-01-10'",
    "extract('dow' FROM day) = 1",
]


@pytest.mark.parametrize("condition", DUCKDB)
def test_duckdb_is_read_as_duckdb_does(condition: str, exact: Curator, data: Data) -> None:
    expected = data.truth.sql(f"SELECT COUNT(*) FROM visits WHERE {condition}").fetchall()[0][0]
    assert counted(exact, condition, "duckdb") == expected > 0


OTHERS = [
    ("bigquery", 'note = "note 1"', "note = 'note 1'"),
    ("bigquery", "age / 2 = 3.5", "age = 7"),
    ("bigquery", "TIMESTAMP_TRUNC(moment, DAY) = '2024-01-02'", "date_trunc('day', moment) = '2024-01-02'"),
    ("bigquery", "DATE_TRUNC(day, WEEK) = '2024-01-07'", "day BETWEEN '2024-01-07' AND '2024-01-13'"),
    ("bigquery", "DATE_TRUNC(day, ISOWEEK) = '2024-01-08'", "day BETWEEN '2024-01-08' AND '2024-01-14'"),
    ("bigquery", "DATE_TRUNC(day, WEEK(MONDAY)) = '2024-01-08'", "day BETWEEN '2024-01-08' AND '2024-01-14'"),
    ("bigquery", "EXTRACT(DAYOFWEEK FROM day) = 1", "dayofweek(day) = 0"),
    ("bigquery", "DATE_DIFF(day, DATE '2024-01-10', DAY) > 3", "day > '2024-01-13'"),
    ("bigquery", "DATE_ADD(day, INTERVAL 3 DAY) > '2024-01-10'", "day > '2024-01-07'"),
    ("bigquery", "day > DATE_SUB(DATE '2024-01-13', INTERVAL 1 WEEK)", "day > '2024-01-06'"),
    ("bigquery", "REGEXP_EXTRACT(note, r'^note ([12])$') IS NULL", "note NOT IN ('note 1', 'note 2')"),
    ("bigquery", "CONCAT(note, NULL) IS NULL AND GREATEST(age, NULL) IS NULL AND age = 3", "age = 3"),
    ("bigquery", "TRIM('\\t x ') = 'x' AND CAST(age AS STRING) = '3'", "age = 3"),
    ("bigquery", "FORMAT_TIMESTAMP('%Y-%m-%d %H', moment) = '2024-01-02 05'", "moment = '2024-01-02 05:00:00'"),
    ("bigquery", "note LIKE 'note\\\\_1' OR age = 3", "age = 3"),
    ("bigquery", "SAFE_CAST(note AS INT64) IS NULL AND age = 3", "age = 3"),
    ("snowflake", "age::NUMBER = 3 AND cost::NUMBER = 10", "age = 3 AND round(cost) = 10"),
    ("snowflake", "DATE_TRUNC(month, day) = '2024-02-01'", "month(day) = 2"),
    ("snowflake", "DATEADD(day, -3, day) > '2024-01-10'", "day > '2024-01-13'"),
    ("snowflake", "DATEDIFF(month, '2024-01-31'::DATE, day) = 1", "month(day) = 2"),
    ("snowflake", "TO_CHAR(day, 'yyyy-mm') = '2024-02' OR TO_CHAR(age) = '3'", "month(day) = 2 OR age = 3"),
    ("snowflake", "DAYNAME(day) = 'Mon' AND DAYOFWEEK(day) = 1 AND DAYOFWEEKISO(day) = 1", "dayofweek(day) = 1"),
    ("snowflake", "IFF(age > 3, 1, 0) = 1 AND ZEROIFNULL(cost) > 0", "age > 3 AND cost > 0"),
    ("snowflake", "RLIKE(note, 'note') OR note RLIKE 'note [12]'", "note IN ('note 1', 'note 2')"),
    ("snowflake", "CHARINDEX('1', note) = 6 AND POSITION('1', note) = 6", "note = 'note 1'"),
    ("snowflake", "DECODE(note, 'note 1', 1, 0) = 1", "note = 'note 1'"),
    ("snowflake", "REGEXP_SUBSTR(note, '[12]') IS NULL", "note NOT IN ('note 1', 'note 2')"),
    ("tsql", "age / 2 = 3", "age // 2 = 3"),
    ("tsql", "CAST(cost AS INT) = 10", "trunc(cost) = 10"),
    ("tsql", "CONVERT(INT, cost) = 10", "trunc(cost) = 10"),
    ("tsql", "[note] = N'note 1' AND ISNULL(age, 1) = 1", "note = 'note 1' AND coalesce(age, 1) = 1"),
    ("tsql", "LEN('a  ') = 1 AND LEN(note) = 6", "true"),
    ("tsql", "DATEADD(month, 1, day) > '2024-02-10'", "day + INTERVAL 1 MONTH > '2024-02-10'"),
    ("tsql", "DATEDIFF(dd, '20240110', '20240112') = 2 AND age = 3", "age = 3"),
    ("bigquery", "REGEXP_CONTAINS(note, r'[12]$')", "note IN ('note 1', 'note 2')"),
    ("tsql", "DATEDIFF(day, CAST('2024-01-10' AS DATE), day) > 3", "day > '2024-01-13'"),
    ("tsql", "DATEPART(iso_week, day) = 3 AND DATENAME(month, day) = 'January'", "week(day) = 3"),
    ("tsql", "FORMAT(day, 'yyyy-MM') = '2024-02'", "month(day) = 2"),
    ("tsql", "DATETRUNC(month, day) = '2024-02-01' OR EOMONTH(day) = '2024-02-29'", "month(day) = 2"),
    ("tsql", "DATEFROMPARTS(YEAR(day), MONTH(day), 1) = '2024-02-01'", "month(day) = 2"),
    ("tsql", "IIF(age > 3, 1, 0) = 1 AND CONCAT(note, NULL) = 'note 1'", "age > 3 AND note = 'note 1'"),
    ("tsql", "smoker = 1 AND LOG(8, 2) > 2.9", "smoker"),
    ("mysql", "age DIV 2 = 3 AND age / 2 = 3.5", "age = 7"),
    ("mysql", 'note = "note 1" || age = 3', "note = 'note 1' OR age = 3"),
    ("mysql", "smoker && age = 3 XOR age = 3", "(smoker AND age = 3) <> (age = 3)"),
    ("mysql", "DATE_FORMAT(day, '%Y-%m') = '2024-02'", "month(day) = 2"),
    ("mysql", "DATE_FORMAT(moment, '%H:%i:%s') = '05:00:00'", "hour(moment) = 5"),
    ("mysql", "DATE_ADD(day, INTERVAL 3 DAY) > '2024-01-10'", "day > '2024-01-07'"),
    ("mysql", "DATEDIFF(day, '2024-01-10') > 3", "day > '2024-01-13'"),
    ("mysql", "DAYOFWEEK(day) = 1 AND WEEKDAY(day) = 6 AND WEEK(day, 3) = 1", "day = '2024-01-07'"),
    ("mysql", "age <=> NULL", "age IS NULL"),
    ("mysql", "CAST(age AS CHAR) = '3' OR CAST(note AS CHAR(3)) = 'n'", "age = 3"),
    ("mysql", "LENGTH(city) > CHAR_LENGTH(city)", "city = 'Zürich'"),
    ("mysql", "STR_TO_DATE('2024-01-10', '%Y-%m-%d') = day", "day = '2024-01-10'"),
    ("redshift", "DATEADD(day, 3, day) > '2024-01-10' AND LEN(note) = 6", "day > '2024-01-07'"),
    ("redshift", "age / 2 = 3 AND NVL(cost, 1) > 0", "age // 2 = 3 AND coalesce(cost, 1) > 0"),
]


@pytest.mark.parametrize(("dialect", "written", "plain"), OTHERS)
def test_others_are_read_as_their_manuals_say(
    dialect: str, written: str, plain: str, exact: Curator, data: Data
) -> None:
    expected = data.truth.sql(f"SELECT COUNT(*) FROM visits WHERE {plain}").fetchall()[0][0]
    assert counted(exact, written, dialect) == expected > 0


WHOLE = [
    ("postgres", 'SELECT "city", COUNT(*) AS "count" FROM "public"."visits" "_" GROUP BY "city" ORDER BY 2 LIMIT 1001'),
    ("postgres", "SELECT city, COUNT(*) AS count FROM visits GROUP BY city LIMIT ('50'::int4) OFFSET ('0'::int8)"),
    ("bigquery", "SELECT city, COUNT(*) AS count FROM `shop-1.public.visits` GROUP BY city"),
    ("snowflake", 'SELECT "CITY" AS "city", COUNT(*) AS "count" FROM ANALYTICS.PUBLIC.VISITS GROUP BY 1'),
    ("tsql", "SELECT TOP (1001) [t0].[city], COUNT_BIG(*) AS [count] FROM [dbo].[visits] AS [t0] GROUP BY [t0].[city]"),
    ("mysql", "SELECT `visits`.`city` AS `city`, COUNT(*) AS `count` FROM `visits` GROUP BY `visits`.`city`"),
    ("duckdb", "SELECT city, count(*) AS count FROM main.visits GROUP BY city"),
    ("redshift", "SELECT city, COUNT(1) AS count FROM public.visits GROUP BY 1"),
]


@pytest.mark.parametrize(("dialect", "question"), WHOLE)
def test_whole_questions_as_tools_write_them(dialect: str, question: str, exact: Curator) -> None:
    plain = exact.ask("SELECT city, COUNT(*) AS count FROM visits GROUP BY city", epsilon=EXACT)
    found = exact.ask(question, epsilon=EXACT, dialect=dialect)
    assert sorted(found.rows, key=repr) == sorted(plain.rows, key=repr)
    assert not found.charged  # the same is measured, however it is written


@pytest.mark.parametrize(
    ("dialect", "question", "code", "fix"),
    [
        ("oracle", "SELECT COUNT(*) FROM visits", "dialect", "write one of postgres, bigquery"),
        ("bigquery", "SELECT AS STRUCT COUNT(*) FROM visits", "clause", "write plain columns"),
        ("bigquery", "SELECT COUNT(*) FROM visits WHERE EXTRACT(WEEK FROM day) = 1", "not-allowed", "of parts"),
        ("bigquery", "SELECT COUNT(*) FROM visits WHERE DATE_DIFF(day, day, WEEK) = 1", "not-allowed", "write one of"),
        ("bigquery", "SELECT COUNT(*) FROM visits WHERE TIMESTAMP_DIFF(moment, moment, DAY) = 1", "not-allowed", ""),
        ("postgres", "SELECT SUM(age) / COUNT(*) FROM visits", "division", "write 1.0 * SUM(age) / COUNT(*)"),
        ("postgres", "SELECT COUNT(*) FROM visits WHERE note ~ 'a\\b'", "not-allowed", "write an expression without"),
        ("postgres", "SELECT COUNT(*) FROM visits WHERE INITCAP(note) = 'A'", "not-allowed", "it is not read"),
        (
            "postgres",
            "SELECT COUNT(*) FROM visits WHERE SUBSTR(note, 0) = 'A'",
            "not-allowed",
            "write a whole constant",
        ),
        ("tsql", "SELECT COUNT(*) FROM visits WHERE DATEDIFF(week, day, day) = 1", "not-allowed", "weeks begin on"),
        ("tsql", "SELECT COUNT(*) FROM visits WHERE DATEPART(weekday, day) = 1", "not-allowed", "of parts"),
        ("tsql", "SELECT COUNT(*) FROM visits WHERE POWER(age, 2) = 4", "not-allowed", "write POWER(CAST(x AS FLOAT)"),
        ("tsql", "SELECT COUNT(*) FROM visits WHERE note LIKE '[a-c]%'", "not-allowed", "write a pattern"),
        ("mysql", "SELECT COUNT(*) FROM visits WHERE WEEK(day) = 1", "not-allowed", "write WEEK(x, 3)"),
        ("mysql", "SELECT COUNT(*) FROM visits WHERE note REGEXP 'a'", "not-allowed", "regular expressions"),
        ("mysql", "SELECT COUNT(*) FROM visits WHERE TRIM(BOTH 'ab' FROM note) = 'a'", "not-allowed", "write TRIM"),
        ("snowflake", "SELECT COUNT(*) FROM visits WHERE note:a = 1", "not-allowed", ""),
        ("duckdb", "SELECT COUNT(*) FROM visits WHERE regexp_extract(note, '(a)b') = 'a'", "not-allowed", "write an"),
        ("duckdb", "FROM visits", "star", ""),
        ("duckdb", "SUMMARIZE visits", "statement", ""),
        ("mysql", "SHOW TABLES", "statement", "`discreet tables FILE`"),
        ("tsql", "DECLARE @x INT", "statement", ""),
        ("postgres", "SELECT COUNT(*) FROM visits; SELECT 1", "statements", "ask one SELECT"),
    ],
)
def test_what_would_mean_something_else_is_refused(
    dialect: str, question: str, code: str, fix: str, exact: Curator
) -> None:
    with pytest.raises(QuestionError) as refused:
        exact.explain(question, epsilon=1, dialect=dialect)
    assert refused.value.code == code, refused.value
    assert refused.value.fix
    assert refused.value.fix.startswith(fix), refused.value


def test_deviations_in_mysql_are_of_the_population(exact: Curator) -> None:
    there = exact.ask("SELECT STD(age) AS a, STDDEV(age) AS b, VARIANCE(age) AS c FROM single", EXACT, dialect="mysql")
    here = exact.ask("SELECT STDDEV_POP(age) AS a, STDDEV_POP(age) AS b, VAR_POP(age) AS c FROM single", EXACT)
    assert there.rows == here.rows


@pytest.mark.usefixtures("clinic")
def test_in_a_shell(cli: Command) -> None:
    question = "SELECT TOP (5) [city], COUNT_BIG(*) AS n FROM [dbo].[visits] GROUP BY [city]"
    assert cli("ask", "clinic.toml", question, "--dialect", "tsql").code == 0
    assert cli("explain", "clinic.toml", question, "--dialect", "tsql").code == 0
    assert cli("explain", "clinic.toml", question).code == 2


# limits


@pytest.mark.parametrize("dialect", LANGUAGES)
def test_the_limits_hold_in_each_dialect(dialect: str) -> None:
    for name, text in HOSTILE.items():
        with pytest.raises(QuestionError) as refused:
            lower(text, DECLARED, dialect=dialect)
        assert refused.value.fix, name


@pytest.mark.parametrize("dialect", LANGUAGES)
def test_steps_are_counted_in_each_dialect(dialect: str) -> None:
    grammar = _grammar(LANGUAGES[dialect].grammar, LANGUAGES[dialect].convert)()
    text = "SELECT city, COUNT(*) AS n FROM visits WHERE age > 3 AND note LIKE 'a%' GROUP BY city ORDER BY 2"
    tokens = grammar.tokenize(text)
    parser = grammar.parser()
    parser.parse(tokens, text)
    least, more = limits.STEPS
    assert least + more * len(tokens) - parser.left < 1.5 * len(tokens) + 50


SEEDS = [
    *(f"SELECT {'COUNT(*)'} AS n FROM visits WHERE {condition}" for condition in (*POSTGRES, *DUCKDB)),
    *(f"SELECT COUNT(*) AS n FROM visits WHERE {written}" for _, written, _ in OTHERS),
    *(question for _, question in WHOLE),
    "SELECT g, COUNT(*) AS n, AVG(v) AS m FROM t WHERE n > 0.5 GROUP BY g ORDER BY n DESC LIMIT 3",
    "SELECT SUM(CASE WHEN v = 1 THEN n ELSE 2 END) FROM (SELECT p, v, SUM(n) AS n FROM t GROUP BY p, v) WHERE v IN (1)",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon=1) AVG(n), SUM(v, contribution_bounds_per_row=>(0, 1)) FROM t",
]
SIGNS = [*"(),.'\"`[]{}:@$#;\\%&|^~!?=é\0"]
SIGNS += ["$$", "--", "/*", "*/", "::", "->", "||", "<=>", "=>", "{{", "}}", "{%", "%}", "{#"]


PIECES = sorted({piece for text in SEEDS for piece in re.findall(r"\w+|'[^']*'|[^\w\s]", text)})


def mutated(source: random.Random) -> str:
    """A question with letters or words taken out, put in, exchanged, doubled or cut off."""
    text = source.choice(SEEDS)
    for _ in range(source.randrange(1, 4)):
        pieces = re.findall(r"\w+|'[^']*'|\s+|[^\w\s]", text)
        place = source.randrange(len(pieces) + 1)
        at = source.randrange(len(text) + 1)
        change = source.randrange(8)
        if change < 3:
            pieces[place : place + 1] = [source.choice(PIECES)]
            text = "".join(pieces)
        elif change == 3:
            text = "".join(pieces[:place] + pieces[place + source.randrange(1, 4) :])
        elif change == 4:
            text = text[:at] + source.choice([*SIGNS, chr(source.randrange(1, 0x250))]) + text[at:]
        elif change == 5:
            text = "".join(pieces[:place] + pieces[place : place + 8] * source.randrange(2, 5) + pieces[place:])
        elif change == 6:
            other = source.choice(SEEDS).partition(" WHERE ")[2]
            text = f"{text} {source.choice(('AND', 'OR'))} {other}" if other and " WHERE " in text else text
        else:
            text = text[:at] if source.random() < 0.3 else text[:at] + text[at + 1 :]
        text = text or "SELECT"
    return text


def outcome(text: str, dialect: str) -> str:
    """What comes of a question: words of a refusal, or nothing; what it is lowered to can be written for the engine."""
    try:
        tree = read(text, dialect)
        assert repr(read_tree(written(tree))) == repr(tree)
        checked = lower(text, DECLARED, dialect=dialect)
    except QuestionError as refused:
        return str(refused) if refused.fix else "sqlglot"
    for root in checked.plan.roots:
        DIALECT.text(statement(root, checked.table, Salt.of("salt")))
    return ""


@pytest.mark.parametrize("dialect", ["", *LANGUAGES])
def test_of_mutated_questions_nothing_comes_but_plans_and_refusals(dialect: str) -> None:
    source = random.Random(f"20261123 {dialect}")
    for _ in range(400):
        text = mutated(source)
        assert "sqlglot" not in outcome(text, dialect), text
