"""What clients ask when they connect and browse is answered as PostgreSQL 15 answers it, and nothing else is run."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlglot

from discreet.errors import QuestionError
from discreet.wire.catalog import SQLSTATES, Catalog, CatalogRows, CatalogSession
from discreet.wire.catalog.probes import gives_no_row
from discreet.wire.statements import may_give_no_row, statements

RECORDED = json.loads(Path(__file__).with_name("recorded.json").read_text("utf-8"))
"""What clients sent to a PostgreSQL 15 with these tables, or what they ask in other words ("as … asks"), and what it
answered where ours is the same; elsewhere they differ on purpose: sizes, privileges, versions, other databases, indexes
of the catalogue itself, operators."""


def column(kind: str, nulls: bool = True, **known: Any) -> dict[str, Any]:
    return {"type": kind, "min": None, "max": None, "values": None, "nulls": nulls} | known


TABLES: dict[str, dict[str, Any]] = {
    "adult": {
        "rows": "each row is a person",
        "columns": {
            "age": column("integer", min=17, max=90),
            "education": column("text"),
            "sex": column("text", nulls=False, values=["Female", "Male"]),
            "hours": column("number"),
            "married": column("boolean"),
        },
    },
    "visits": {
        "rows": "the person is in column person; at most 5 rows and 5 groups per person count",
        "columns": {
            "person": column("integer"),
            "day": column("date"),
            "at": column("timestamp"),
            "Reason given": column("text"),
            "cost": column("number"),
        },
    },
    "wards": {"rows": "public: no persons", "columns": {"ward": column("text"), "beds": column("integer")}},
}
ANN = CatalogSession("ann", "postgres")


@pytest.fixture(scope="module")
def catalog() -> Iterator[Catalog]:
    """A statement may take as long as a busy machine needs, but where a test says otherwise."""
    with pytest.MonkeyPatch.context() as patient:
        patient.setattr("discreet.wire.catalog.SECONDS", 120.0)
        catalog = Catalog(TABLES)
        yield catalog
        catalog.close()


def asked(
    catalog: Catalog, statement: str, *parameters: str | None, session: CatalogSession = ANN
) -> CatalogRows | None:
    return asyncio.run(catalog.answer(statement, parameters, session))


def rows(catalog: Catalog, statement: str, *parameters: str | None) -> tuple[tuple[Any, ...], ...]:
    found = asked(catalog, statement, *parameters)
    assert found is not None
    return found.rows


def written(value: Any) -> str | None:
    """A value as PostgreSQL writes it."""
    if isinstance(value, list):
        parts = ["NULL" if one is None else str(written(one)) for one in value]
        return "{" + ",".join(f'"{one}"' if re.search(r'[ ,{}"]', one) else one for one in parts) + "}"
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    return {True: "t", False: "f"}[value] if isinstance(value, bool) else None if value is None else str(value)


def test_recorded_statements(catalog: Catalog) -> None:
    for one in RECORDED:
        found = asked(catalog, one["statement"], *one["parameters"])
        assert found is not None, one["statement"]
        if not one["same"]:
            continue
        assert [list(column) for column in found.columns] == one["columns"], one["statement"]
        lines = sorted(json.dumps([written(value) for value in row]) for row in found.rows)
        if "rows" in one:
            assert lines == sorted(map(json.dumps, one["rows"])), one["statement"]
        else:
            assert len(lines) == one["count"], one["statement"]
            assert hashlib.sha256("\n".join(lines).encode()).hexdigest() == one["digest"], one["statement"]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT count(*) FROM adult",
        "SELECT count(*) FROM public.adult",
        "SELECT education, count(*) FROM postgres.public.adult WHERE education <> 'pg_x' GROUP BY education",
        "SELECT count(*) FROM elsewhere",
        "SELECT discreet_unknown(1)",
        "INSERT INTO adult VALUES (1)",
        "SHOW discreet.budget",
        "this is no statement",
        "",
    ],
)
def test_questions_about_people_are_not_of_the_catalogue(catalog: Catalog, statement: str) -> None:
    assert asked(catalog, statement) is None


HOSTILE = [
    "SELECT * FROM read_csv('/etc/passwd'), pg_class",
    "SELECT count(*) FROM pg_class, '/etc/passwd'",
    'SELECT * FROM pg_class, "/etc/passwd.csv"',
    "SELECT * FROM pg_class, duckdb_settings()",
    "SELECT * FROM pg_class, duckdb_tables",
    "SELECT * FROM pg_class, sqlite_master",
    "SELECT pg_read_file('/etc/passwd')::text FROM pg_class",
    "SELECT pg_ls_dir('/') FROM pg_class",
    "SELECT getenv('HOME') FROM pg_class",
    "SELECT current_setting('home_directory') FROM pg_class",
    "SELECT getvariable('x') FROM pg_class",
    "SELECT read_text('/etc/passwd') FROM pg_class",
    "SELECT * FROM query('SELECT 1'), pg_class",
    "SELECT * FROM query_table('own.current'), pg_class",
    "SELECT * FROM own.current, pg_class",
    "SELECT * FROM memory.own.current, pg_class",
    "SELECT * FROM pg_class, memory.pg.pg_roles",
    "SELECT pg__number_of_called('x') FROM pg_class",
    "SELECT COLUMNS('a.*') FROM pg_class",
    "COPY pg_class TO '/tmp/x'",
    "COPY (SELECT * FROM pg_class) TO '/tmp/x'",
    "ATTACH '/tmp/pg_x'",
    "PRAGMA database_list -- pg_class",
    "INSTALL httpfs -- pg_class",
    "CREATE TABLE pg_x AS SELECT * FROM pg_class",
    "INSERT INTO pg_class VALUES (1)",
    "DELETE FROM pg_catalog.pg_class",
    "DROP TABLE pg_class",
    "SELECT * INTO x FROM pg_class",
    "SELECT 1 FROM pg_class; DROP TABLE pg_class",
    "SELECT count(*) FROM adult, pg_class",
    "SELECT (SELECT count(*) FROM adult) FROM pg_class",
    "SELECT * FROM pg_class WHERE EXISTS (SELECT 1 FROM public.adult)",
    "WITH x AS (SELECT * FROM adult) SELECT * FROM pg_class, x",
    "SELECT * FROM pg_class PIVOT (count(*) FOR relname IN ('a'))",
    "SELECT pg_sleep(10) FROM pg_class",
    "SELECT repeat('x', 1000000000) FROM pg_class",
    "SELECT 'nothing'::regclass FROM pg_class",
    "SELECT * FROM pg_nothing, pg_class",
    "SELECT ('x' || oid)::integer FROM pg_class",
    "SELECT relname FROM pg_class WHERE (" * 300 + "true" + ")" * 300,
    "SELECT " + "(" * 20_000 + "1" + ")" * 20_000 + " FROM pg_class",
    "SELECT '" + "x" * 200_000 + "' FROM pg_class",
]


@pytest.mark.parametrize("statement", HOSTILE, ids=[statement[:50] for statement in HOSTILE])
def test_nothing_else_is_run(catalog: Catalog, statement: str) -> None:
    with pytest.raises(QuestionError) as refused:
        asked(catalog, statement)
    assert refused.value.code in SQLSTATES
    assert refused.value.fix
    assert "duckdb" not in str(refused.value).lower().replace(statement.lower(), "") or "duckdb" in statement


@pytest.mark.parametrize(
    "statement",
    [
        "WITH RECURSIVE x AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM x) SELECT count(*) FROM x, pg_class",
        "SELECT count(*) FROM generate_series(1, 1000000000000) a, pg_class",
        "SELECT count(*) FROM pg_attribute a, pg_attribute b, pg_attribute c, pg_attribute d",
        "SELECT string_agg(a.attname || b.attname, '') FROM pg_attribute a, pg_attribute b, pg_attribute c",
        "SELECT array_agg(a.attname) FROM pg_attribute a, pg_attribute b, pg_attribute c GROUP BY b.attname, c.attname",
    ],
)
def test_what_never_ends_is_ended(catalog: Catalog, statement: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as hasty:
        hasty.setattr("discreet.wire.catalog.SECONDS", 0.5)
        with pytest.raises(QuestionError):
            asked(catalog, statement)
    assert rows(catalog, "SELECT relname FROM pg_class WHERE oid = 'adult'::regclass") == (("adult",),)


def test_what_lists_hold_counts_towards_the_size_of_an_answer(catalog: Catalog) -> None:
    long = "replace(" * 5 + "'aaaaaaaaaa'" + ", 'a', 'aaaaaaaaaa')" * 5
    parts = ", ".join([long] * 20)
    with pytest.raises(QuestionError, match="too large"):
        asked(catalog, f"SELECT ARRAY[{parts}] FROM pg_am LIMIT 1")
    with pytest.raises(QuestionError, match="too large"):
        asked(
            catalog,
            f"SELECT information_schema._pg_expandarray(ARRAY[{long} || {parts.replace(', rep', ' || rep')}]) "
            "FROM pg_am LIMIT 1",
        )


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM pg_am, duckdb_tables, (WITH duckdb_tables AS (SELECT 1 AS z) SELECT z FROM duckdb_tables) x",
        "WITH sqlite_master AS (SELECT * FROM sqlite_master) SELECT * FROM sqlite_master, pg_am",
        "WITH RECURSIVE sqlite_master AS (SELECT * FROM sqlite_master) SELECT * FROM sqlite_master, pg_am",
        "WITH RECURSIVE sqlite_master AS (SELECT name FROM sqlite_master UNION SELECT '') SELECT 1 FROM pg_am",
        "WITH a AS (SELECT * FROM sqlite_master), sqlite_master AS (SELECT 1) SELECT * FROM a, pg_am",
    ],
)
def test_a_name_that_is_common_elsewhere_opens_nothing_of_the_engine(catalog: Catalog, statement: str) -> None:
    with pytest.raises(QuestionError):
        asked(catalog, statement)


def test_an_answer_that_is_too_large_is_refused(catalog: Catalog) -> None:
    with pytest.raises(QuestionError) as refused:
        asked(catalog, "SELECT * FROM pg_attribute a, pg_attribute b LIMIT 1000000")
    assert refused.value.code in ("catalog_size", "catalog_time")


def test_each_session_is_told_of_itself(catalog: Catalog) -> None:
    statement = "SELECT rolname, current_user, current_database(), datname, pg_backend_pid() FROM pg_roles, pg_database"
    statement += " WHERE rolname <> 'discreet'"
    for name in ("ann", "ben", "ann"):
        session = CatalogSession(name, f"of {name}", process=len(name))
        found = asked(catalog, statement, session=session)
        assert found is not None
        assert found.rows == ((name, name, f"of {name}", f"of {name}", 3),)
    names = rows(catalog, "SELECT usename FROM pg_user ORDER BY 1")
    assert names == (("ann",), ("discreet",))


def test_names_with_quotes_and_signs() -> None:
    tables = {
        "it's": {"rows": "x'; DROP TABLE pg_class --", "columns": {'a"b': column("text"), "né ☃": column("integer")}},
        "Ünder": {"rows": "", "columns": {"$x": column("text", values=["{a,b}", "'"])}},
    }
    catalog = Catalog(tables)
    try:
        found = rows(catalog, "SELECT table_name, column_name FROM information_schema.columns "
                              "WHERE table_schema = 'public' ORDER BY 1, 2")  # fmt: skip
        assert found == (("it's", 'a"b'), ("it's", "né ☃"), ("Ünder", "$x"))
        assert rows(catalog, "SELECT obj_description('\"it''s\"'::regclass, 'pg_class'), '\"it''s\"'::regclass") == (
            ("x'; DROP TABLE pg_class --", '"it\'s"'),
        )
        assert rows(catalog, "SELECT relname FROM pg_class WHERE relname = $1", "it's") == (("it's",),)
    finally:
        catalog.close()


def test_the_schema_has_its_declared_name() -> None:
    catalog = Catalog(TABLES, "ward")
    try:
        known = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema NOT LIKE '%\\_%'"
        assert {schema for schema, _ in rows(catalog, known)} == {"ward"}
        named = "SELECT current_schema(), 'ward.adult'::regclass::oid::int, 'adult'::regclass::text FROM pg_am LIMIT 1"
        assert rows(catalog, named) == (("ward", 16385, "adult"),)
        assert rows(catalog, "SHOW search_path") == (("ward",),)
        asked = catalog.probed("SELECT age FROM ward.adult LIMIT 0", ANN)
        assert asyncio.run(asked) == [("age", 20)]
    finally:
        catalog.close()


NO_ROW = [
    "SELECT * FROM t LIMIT 0",
    "SELECT * FROM t OFFSET 5 LIMIT 0",
    "SELECT * FROM t LIMIT ('0'::int4)",
    "SELECT * FROM t FETCH FIRST 0 ROWS ONLY",
    "SELECT a FROM t WHERE (0 = 1)",
    "SELECT a FROM t WHERE a > 1 AND 1 <> 1",
    "SELECT a FROM t WHERE NOT true",
    "SELECT a FROM t WHERE NOT (1 = 1 OR a = 2)",
    "SELECT a FROM t WHERE 'a' = 'b'",
    "SELECT a, count(*) FROM t WHERE false GROUP BY a",
    "SELECT * FROM (SELECT count(*) AS n FROM t) x WHERE 1=0",
    "SELECT * FROM (SELECT a FROM t LIMIT 0) AS x LEFT JOIN t ON true",
    "SELECT a FROM t WHERE false UNION ALL SELECT a FROM t WHERE 1 > 2",
    "(SELECT a FROM t) LIMIT 0",
    "WITH x AS (SELECT a FROM t) SELECT * FROM x LIMIT 0",
    "SELECT count(*) FROM t HAVING 1=0",
    "(SELECT a FROM t WHERE false) INTERSECT SELECT a FROM t",
]
PERHAPS_ROWS = [
    "SELECT count(*) FROM t WHERE 1=0",
    "SELECT unheard_of(a) FROM t WHERE 1=0",
    "SELECT a FROM t LIMIT 1",
    "SELECT a FROM t WHERE 1=1",
    "SELECT a FROM t WHERE 1=0 OR a = 1",
    "SELECT a, count(*) FROM t WHERE false GROUP BY ROLLUP (a)",
    "SELECT a, count(*) FROM t WHERE false GROUP BY GROUPING SETS ((a), ())",
    "SELECT count(*) FROM t WHERE false GROUP BY ()",
    "SELECT a FROM t UNION SELECT a FROM t WHERE 1=0",
    "SELECT count(*) FROM (SELECT a FROM t LIMIT 0) x",
    "SELECT a FROM (SELECT a FROM t LIMIT 0) x RIGHT JOIN t ON true",
    "SELECT a FROM t WHERE NOT (a = 0)",
    "SELECT a FROM t ORDER BY (SELECT 1 LIMIT 0)",
    "SELECT a FROM t WHERE EXISTS (SELECT 1 LIMIT 0) LIMIT 10",
    "SELECT string_agg(a, ',') FROM t WHERE false",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a) FROM t WHERE false",
    "SELECT 1 FROM t WHERE false HAVING true",
    "SELECT 1 FROM (SELECT a FROM t LIMIT 0) x HAVING 1=1",
    "SELECT DISTINCT ON (count(*)) 1 FROM t WHERE false",
    "SELECT 1 FROM t WHERE false WINDOW w AS (ORDER BY count(*))",
    "SELECT * FROM ((SELECT a FROM t LIMIT 0) x RIGHT JOIN t ON true)",
    "SELECT * FROM ((SELECT a FROM t LIMIT 0) x FULL JOIN t ON true) JOIN t u ON true",
]


def test_which_statements_give_no_row() -> None:
    for text in NO_ROW:
        assert gives_no_row(sqlglot.parse_one(text, dialect="postgres")), text
        assert all(may_give_no_row(one) for one in statements(text)), text
    for text in PERHAPS_ROWS:
        assert not gives_no_row(sqlglot.parse_one(text, dialect="postgres")), text


def test_a_backslash_takes_its_meaning_from_a_sign_of_a_pattern(catalog: Catalog) -> None:
    named = "SELECT relname FROM pg_class WHERE relname"
    assert rows(catalog, f"{named} LIKE 'pg\\_cl_ss'") == (("pg_class",),)
    assert rows(catalog, f"{named} LIKE 'pg\\_cl\\_ss'") == rows(catalog, f"{named} LIKE $1", "pg_cl\\_ss") == ()
    assert rows(catalog, f"{named} NOT ILIKE $1 AND relname = 'adult'", "a\\_%") == (("adult",),)


def test_settings(catalog: Catalog) -> None:
    assert rows(catalog, "SHOW server_version") == (("15.0",),)
    assert rows(catalog, 'SHOW "TimeZone";') == (("UTC",),)
    assert rows(catalog, "SHOW TRANSACTION ISOLATION LEVEL") == (("read committed",),)
    assert rows(catalog, "SELECT current_setting('server_version_num')::int") == ((150000,),)
    assert rows(catalog, "SELECT current_setting('nothing.here', true)") == ((None,),)
    session = CatalogSession("ann", "postgres", settings={"application_name": "a tool"})
    found = asked(catalog, "SELECT set_config('search_path', 'pg_catalog', false), current_setting('application_name')",
                  session=session)  # fmt: skip
    assert found is not None
    assert found.rows == (("pg_catalog", "a tool"),)
    assert found.sets == {"search_path": "pg_catalog"}
    for statement in ("SHOW nothing", "SELECT current_setting('nothing')"):
        with pytest.raises(QuestionError) as refused:
            asked(catalog, statement)
        assert SQLSTATES[refused.value.code] == "42704"


def test_moments_are_written_in_simple_formats(catalog: Catalog) -> None:
    """Metabase asks for the server's time in these words."""
    found = asked(catalog, "select to_char(current_timestamp, 'YYYY-MM-DD HH24:MI:SS.MS TZ')")
    assert found is not None
    assert found.columns == (("to_char", 25),)
    assert re.fullmatch(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} UTC", found.rows[0][0])
    ((year, offset),) = rows(catalog, "SELECT to_char(now(), 'YYYY'), pg_catalog.to_char(now(), 'SS.US OF')")
    assert re.fullmatch(r"20\d\d", year)
    assert re.fullmatch(r"\d\d\.\d{6} \+00", offset)
    for other in ("to_char(123, '999')", "to_char(now(), 'Day')", "to_char(pg_backend_pid(), 'YYYY')"):
        with pytest.raises(QuestionError, match=r"to_char writes moments|\(\) cannot be asked"):
            asked(catalog, f"SELECT {other} FROM pg_class")


def test_parameters_have_the_types_of_what_they_stand_beside(catalog: Catalog) -> None:
    statement = (
        "SELECT oid, relname FROM pg_class WHERE relname = $1 AND oid = ANY($2::oid[]) AND relkind IN ($3) LIMIT $4"
    )
    described = asyncio.run(catalog.answer(statement, None, ANN))
    assert described is not None
    assert described.parameters == (19, 1028, 18, 20)
    assert described.columns == (("oid", 26), ("relname", 19))
    assert rows(catalog, statement, "adult", "{1,16385}", "r", "5") == ((16385, "adult"),)
    assert rows(catalog, statement, "adult", "{}", "r", "5") == ()
    with pytest.raises(QuestionError):
        rows(catalog, statement, "adult")


def test_sessions_ask_at_the_same_time(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    async def all_at_once() -> list[CatalogRows | BaseException | None]:
        slow = "SELECT count(*) FROM pg_attribute a, pg_attribute b, pg_attribute c, pg_attribute d"
        asks = [catalog.answer(slow, (), CatalogSession("eve"))]
        asks += [
            catalog.answer("SELECT current_user::text", (), CatalogSession(f"user {place}")) for place in range(10)
        ]
        return await asyncio.gather(*asks, return_exceptions=True)

    monkeypatch.setattr("discreet.wire.catalog.SECONDS", 2.0)
    first, *others = asyncio.run(all_at_once())
    assert isinstance(first, QuestionError)
    assert [one.rows for one in others if isinstance(one, CatalogRows)] == [
        ((f"user {place}",),) for place in range(10)
    ]
