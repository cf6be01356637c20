"""Programs that people have look at the tables, over the protocol: nothing is spent, and the declaration is what they
see."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import asyncpg
import psycopg
import pytest
import sqlalchemy
from psycopg.types import TypeInfo

from face_tools import spent
from service_tools import Served
from wire_tools import psql


@pytest.fixture(autouse=True)
def nothing_is_spent(service: Served) -> Iterator[None]:
    before = spent(service.curator)
    yield
    assert spent(service.curator) == before


def test_psql_shows_tables(service: Served) -> None:
    commands = [
        "\\d",
        "\\dt",
        "\\d visits",
        "\\d+ visits",
        "\\l",
        "\\dn",
        "\\df",
        "\\du",
        "\\dv",
        "\\di",
        "\\dp",
        "\\dT",
    ]
    said = psql(service, "ana", *commands, "\\det", "SELECT relname FROM pg_class WHERE relname = 'visits'")
    assert "ERROR" not in said.stderr
    assert " public | visits | table | discreet" in said.stdout
    assert "city" in said.stdout
    others = set(service.tokens) - {"ana"}
    assert not others & set(said.stdout.split())


def test_sqlalchemy_inspects(service: Served) -> None:
    engine = sqlalchemy.create_engine(
        f"postgresql+psycopg://ana:{service.tokens['ana']}@127.0.0.1:{service.psql}/clinic"
    )
    inspector = sqlalchemy.inspect(engine)
    declared = service.curator.tables
    assert set(inspector.get_table_names()) == set(declared)
    assert "public" in inspector.get_schema_names()
    assert inspector.has_table("visits")
    assert not inspector.has_table("nothing")
    assert [one["name"] for one in inspector.get_columns("visits")] == list(declared["visits"]["columns"])
    assert inspector.get_pk_constraint("visits")["constrained_columns"] == []
    assert inspector.get_indexes("visits") == inspector.get_foreign_keys("visits") == []
    assert inspector.get_unique_constraints("visits") == inspector.get_check_constraints("visits") == []
    assert inspector.get_table_comment("visits")["text"] == declared["visits"]["rows"]
    assert inspector.get_view_names() == []
    reflected = sqlalchemy.MetaData()
    reflected.reflect(engine)
    assert set(reflected.tables) == set(declared)
    engine.dispose()


def test_psycopg_and_asyncpg_find_types(service: Served) -> None:
    place = f"host=127.0.0.1 port={service.psql} user=ana password={service.tokens['ana']} dbname=clinic"
    with psycopg.connect(place, autocommit=True) as connection:
        found = TypeInfo.fetch(connection, "numeric")
        assert found is not None
        assert found.oid == 1700
        text = "SELECT relname FROM pg_class WHERE oid = ANY(%s) AND relname = %s"
        assert connection.execute(text, ([1259], "pg_class"), binary=True).fetchall() == [("pg_class",)]

    async def ask() -> list[Any]:
        connection = await asyncpg.connect(
            host="127.0.0.1", port=service.psql, user="ana", password=service.tokens["ana"], database="clinic"
        )
        try:
            text = "SELECT oid, relname, relkind FROM pg_class WHERE relname = $1 AND relnatts > $2"
            found = [tuple(row) for row in await connection.fetch(text, "visits", 0)]
            await connection.fetch(
                "SELECT NULL::int4range AS a, NULL::information_schema.cardinal_number AS b WHERE false"
            )
            return found
        finally:
            await connection.close()

    (row,) = asyncio.run(ask())
    assert row[1] == "visits"


def test_errors_have_codes(service: Served) -> None:
    place = f"host=127.0.0.1 port={service.psql} user=ana password={service.tokens['ana']} dbname=clinic"
    with psycopg.connect(place, autocommit=True) as connection:
        for text, code in {
            "SELECT count(*) FROM visits, pg_class": "0A000",
            "SELECT pg_read_file('/etc/passwd') FROM pg_class": "42883",
            "SELECT * FROM pg_nothing, pg_class": "42P01",
            "SELECT count(*) FROM pg_attribute a, pg_attribute b, pg_attribute c, pg_attribute d": "57014",
        }.items():
            with pytest.raises(psycopg.Error) as refused:
                connection.execute(text.encode())
            assert refused.value.sqlstate == code, text
