"""Programs that people have, as they are: psql, psycopg, asyncpg, SQLAlchemy."""

from __future__ import annotations

import asyncio
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import asyncpg
import psycopg
import pytest

from discreet.release import Release
from face_tools import spent
from service_tools import Served
from wire_tools import psql

CITIES = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"


def dsn(service: Served, who: str = "ana", price: str = "0.01") -> str:
    place = f"host=127.0.0.1 port={service.psql} user={who} password={service.tokens[who]} dbname=clinic"
    return f"{place} options='-c discreet.epsilon={price}'"


def asked(service: Served, question: str, price: str = "0.01", who: str = "ana") -> Release:
    """The same over the curator: stored, and free."""
    release = service.curator.ask(question, price, analyst=who, dialect="postgres")
    assert not release.charged
    return release


def test_psql_asks_explains_and_shows(service: Served) -> None:
    said = psql(
        service,
        "ana",
        "SET discreet.epsilon = 0.01",
        CITIES,
        "SET discreet.intervals = on",
        "SELECT COUNT(*) AS n FROM visits",
        "EXPLAIN SELECT COUNT(*) AS n FROM visits",
        "SHOW discreet.epsilon",
        "SHOW discreet.budget",
    )
    assert "NOTICE:  ε 0.01 charged; left for ana" in said.stderr
    assert "rows without a person are left out" in said.stderr
    assert "ERROR" not in said.stderr
    for row in asked(service, CITIES).rows:
        assert f"{row['city']:<7} | {row['n']:>5}".split() in [line.split() for line in said.stdout.splitlines()]
    assert re.search(r" n +\| +n_low +\| +n_high", said.stdout)
    assert "nothing was spent" in said.stdout
    assert "largest price left for questions" in said.stdout


def test_a_question_without_a_price_spends_nothing(service: Served) -> None:
    before = spent(service.curator)
    said = psql(service, "ana", "SELECT COUNT(*) AS n FROM visits WHERE age < 41", "SELECT * FROM visits LIMIT 100")
    assert "ERROR:  the question has no price: ε" in said.stderr
    assert "HINT:  SET discreet.epsilon = 0.1" in said.stderr
    assert spent(service.curator) == before


def test_a_question_is_measured_afresh_where_the_session_says_so(service: Served) -> None:
    more = "SELECT city, COUNT(*) AS n, SUM(age) AS s FROM visits WHERE age > 20 GROUP BY city"
    count = "SELECT city, COUNT(*) AS n FROM visits WHERE age > 20 GROUP BY city"
    said = psql(
        service,
        "ana",
        "SET discreet.epsilon = 0.03",
        more,
        "SET discreet.epsilon = 0.01",
        count,
        "SET discreet.reuse = off",
        "SELECT * FROM visits LIMIT 0",
        count,
    )
    assert "ERROR" not in said.stderr
    assert re.findall("NOTICE:  (ε 0.0[13]|nothing) charged", said.stderr) == ["ε 0.03", "nothing", "ε 0.01"]


def test_errors_have_codes_and_say_what_to_write(service: Served) -> None:
    before = spent(service.curator)
    with psycopg.connect(dsn(service), autocommit=True) as connection:
        for text, code in {
            "SELECT COUNT(*) FROM nothing": "42P01",
            "SELECT COUNT(nothing) FROM visits": "42703",
            "SELECT COUNT(*) FROM visits WHERE": "42601",
            "SELECT 'a": "42601",
            "SELECT * FROM visits": "0A000",
            "DROP TABLE visits": "25006",
            "SET discreet.nothing = 1": "42704",
            "SET discreet.epsilon = lots": "22023",
            "SELECT COUNT(*) FROM pg_class, visits": "0A000",
            "EXPLAIN ANALYZE SELECT COUNT(*) FROM visits": "0A000",
            "COPY visits TO STDOUT": "0A000",
            "FETCH 1 FROM nothing": "34000",
        }.items():
            with pytest.raises(psycopg.Error) as caught:
                connection.execute(text)
            assert caught.value.sqlstate == code, text
        connection.execute("SET discreet.epsilon = 100")
        with pytest.raises(psycopg.Error) as caught:
            connection.execute("SELECT COUNT(*) FROM visits")
        assert caught.value.sqlstate == "53400"
        assert "a price of at most" in (caught.value.diag.message_hint or "")
    assert spent(service.curator) == before


@pytest.mark.parametrize("binary", [False, True])
def test_psycopg_with_parameters(service: Served, binary: bool) -> None:
    text = "SELECT city, COUNT(*) AS n, AVG(cost) AS m FROM visits WHERE age > {} AND city IN ({}, {}) GROUP BY city"
    with psycopg.connect(dsn(service)) as connection, connection.cursor(binary=binary) as cursor:
        rows = cursor.execute(text.format("%s", "%s", "%s"), (3, "north", "south")).fetchall()
        described = [column.type_code for column in cursor.description or ()]
    assert described == [25, 20, 701]
    release = asked(service, text.format("3", "'north'", "'south'"))
    assert rows == [(row["city"], row["n"], row["m"]) for row in release.rows]


def test_what_is_prepared_is_charged_once(service: Served) -> None:
    before = spent(service.curator)
    with psycopg.connect(dsn(service)) as connection:
        for _ in range(8):
            cursor = connection.execute("SELECT COUNT(*) AS n FROM visits WHERE cost < %s", (Decimal("99.5"),))
            found = cursor.fetchall()
            assert cursor.description is not None
            assert cursor.description[0].type_code == 20
    assert spent(service.curator) - before == Fraction(1, 100)
    assert found == [(asked(service, "SELECT COUNT(*) AS n FROM visits WHERE cost < 99.5").rows[0]["n"],)]


def test_cursors_pipelines_and_copies(service: Served) -> None:
    rows = asked_rows(service)
    with psycopg.connect(dsn(service)) as connection:
        with connection.cursor("some") as cursor:
            cursor.execute(CITIES)
            assert cursor.fetchmany(1) + cursor.fetchall() == rows
        with connection.cursor("others", binary=True) as cursor:
            assert cursor.execute(CITIES).fetchall() == rows
        with connection.pipeline():
            cursors = [connection.execute(CITIES) for _ in range(3)]
            assert [cursor.fetchall() for cursor in cursors] == [rows] * 3
        with connection.cursor().copy(f"COPY ({CITIES}) TO STDOUT") as copy:
            copy.set_types(["text", "int8"])
            assert list(copy.rows()) == rows
        with connection.cursor().copy(f"COPY ({CITIES}) TO STDOUT (FORMAT binary)") as copy:
            copy.set_types(["text", "int8"])
            assert list(copy.rows()) == rows
        with connection.cursor().copy(f"COPY ({CITIES}) TO STDOUT (FORMAT csv, HEADER)") as copy:
            lines = b"".join(bytes(piece) for piece in copy).decode().splitlines()
        assert lines == ["city,n", *(f"{city},{n}" for city, n in rows)]


def asked_rows(service: Served) -> list[tuple[Any, ...]]:
    release = service.curator.ask(CITIES, "0.01", analyst="ana", dialect="postgres")
    return [(row["city"], row["n"]) for row in release.rows]


def test_transactions_and_settings(service: Served) -> None:
    with psycopg.connect(dsn(service)) as connection:
        show = "SHOW discreet.epsilon"
        connection.execute("SET discreet.epsilon = 0.5")
        connection.rollback()
        assert connection.execute(show).fetchone() == ("0.01",)
        connection.execute("SET discreet.epsilon = 0.5")
        connection.commit()
        connection.execute("SET LOCAL discreet.epsilon = 0.7")
        assert connection.execute(show).fetchone() == ("0.7",)
        connection.commit()
        assert connection.execute(show).fetchone() == ("0.5",)
        with pytest.raises(psycopg.errors.SyntaxError):
            connection.execute("SELECT COUNT(*) FROM visits WHERE")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            connection.execute("SELECT 1")
        connection.rollback()
        with connection.transaction(), connection.transaction():
            assert connection.execute("SELECT 1").fetchone() == (1,)
        connection.execute("RESET ALL")
        assert connection.execute(show).fetchone() == ("0.01",)
        connection.execute("SET discreet.within = 'n = 500'")
        connection.execute("SET discreet.epsilon = DEFAULT")


def test_asyncpg(service: Served) -> None:
    async def ask() -> Any:
        connection = await asyncpg.connect(
            host="127.0.0.1",
            port=service.psql,
            user="ana",
            password=service.tokens["ana"],
            database="clinic",
            ssl=False,
            server_settings={"discreet.epsilon": "0.01"},
        )
        try:
            text = "SELECT city, COUNT(*) AS n FROM visits WHERE age > $1 AND city IN ($2, $3) GROUP BY city"
            first = await connection.fetch(text, 3, "north", "south")
            async with connection.transaction():
                cursor = await connection.cursor(text, 3, "north", "south")
                second = await cursor.fetch(1) + await cursor.fetch(10)
            await connection.reset()
            return [tuple(row) for row in first], [tuple(row) for row in second]
        finally:
            await connection.close()

    first, second = asyncio.run(ask())
    release = asked(
        service, "SELECT city, COUNT(*) AS n FROM visits WHERE age > 3 AND city IN ('north', 'south') GROUP BY city"
    )
    assert first == second == [(row["city"], row["n"]) for row in release.rows]
