"""Tables on a PostgreSQL server: read as they are at one moment, with no right but that to read what is declared."""

from __future__ import annotations

import csv
import datetime
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet import Curator, DeclarationError
from discreet.catalog import Source, declare
from discreet.catalog.formats import words_of
from discreet.catalog.model import EngineLimits
from discreet.engines.child import UnreadableSource
from discreet.engines.duckdb.driver import DuckDB
from discreet.engines.postgresql.columns import CONVERT, FORMS
from discreet.engines.postgresql.connection import REASONS, environment, reason, surroundings
from discreet.engines.postgresql.server import SnapshotConnection
from discreet.trusted.ring_a.table import SourceKind, Table
from postgres_tools import PASSWORD, Postgres, running
from waiting import until

EXACT = "1e20"
"""A price at which noise is zero."""

WEIRD = """
CREATE TYPE colour AS ENUM ('red', 'light blue');
CREATE DOMAIN money_like AS numeric(12, 2);
CREATE DOMAIN cents AS money_like CHECK (VALUE IS NULL OR VALUE > -1000);
CREATE TABLE weird (
    i2 smallint, i4 integer, i8 bigint, f4 real, f8 double precision, n numeric, n2 numeric(10, 2), m money, c cents,
    t text, v varchar(20), ch char(5), u uuid, e colour, b boolean, d date, ts timestamp, tz timestamptz,
    j json, iv interval, a integer[], by bytea, "Odd ""name" integer
);
INSERT INTO weird VALUES (
    1, 2, 3, 1.5, 2.5, 3.5, 4.25, 5.75, 6.5, 'x', 'y', 'z', '00000000-0000-0000-0000-000000000001', 'light blue', true,
    '2020-02-29', '2020-02-29 12:30:00', '2020-02-29 12:30:00+02', '{"k": 1}', '1 day', '{1,2}', '\\x00', 7
);
INSERT INTO weird (f4, f8, n, d, ts, tz) VALUES
    ('NaN', 'NaN', 'NaN', 'infinity', 'infinity', 'infinity'),
    ('Infinity', 'Infinity', 'Infinity', '-infinity', '-infinity', '-infinity'),
    ('-Infinity', '-Infinity', '-Infinity', '4713-01-01 BC', '4713-01-01 BC', '4713-01-01 00:00:00+00 BC'),
    (1e-40, 1e-320, 1e-2000, '5874897-12-31', '294276-12-31 23:59:59.999999', '294276-12-31 23:59:59.999999+00');
INSERT INTO weird (n) VALUES (('1' || repeat('0', 5000))::numeric), (('-1' || repeat('0', 5000))::numeric);
INSERT INTO weird (t) VALUES (''), (E'\\x01\\t\\n'), (repeat('é', 100000)), (NULL);
"""

COLUMNS: dict[str, Any] = {
    **dict.fromkeys(("i2", "i4", "i8", "f4", "f8", "n", "n2", "m", "c"), (-10, 10)),
    **dict.fromkeys(("t", "v", "ch", "u", "e", "b"), None),
    "j": str,
    "iv": str,
    "d": {"min": datetime.date(2000, 1, 1), "max": datetime.date(2029, 12, 31)},
    "ts": {"min": datetime.datetime(2000, 1, 1), "max": datetime.datetime(2029, 12, 31)},
    "tz": {"min": datetime.datetime(2000, 1, 1), "max": datetime.datetime(2029, 12, 31)},
    'ODD "NAME': (0, 9),
}


def single(source: Any, columns: Any) -> discreet.Table:
    return discreet.Table(source, columns=columns, one_row_per_person=True)


def table(server: Postgres, name: str, columns: dict[str, Any], user: str = "reader") -> Table:
    """A table as the driver has it."""
    given = {"source": server.source(name, user), "one_row_per_person": True, "columns": columns}
    return declare({"budget": {"epsilon": 1}, "tables": {"t": given}}).tables["t"]


def faults(source: str, columns: dict[str, Any]) -> dict[str, str]:
    """What is wrong, as the owner is told when tables are loaded."""
    with pytest.raises(DeclarationError) as refused, Curator({"t": single(source, columns)}, epsilon=1) as curator:
        curator.ask("SELECT COUNT(*) AS n FROM t", epsilon=1)
    assert PASSWORD not in str(refused.value) + repr(refused.value.to_dict())
    return {fault.where: fault.message for fault in refused.value.faults}


@pytest.fixture(scope="session")
def weird(postgres: Postgres) -> Postgres:
    postgres.run(*(one for one in WEIRD.split(";\n") if one.strip()), "GRANT SELECT ON weird TO reader")
    return postgres


def test_a_table_on_a_server_is_read_with_the_right_to_its_columns_alone(postgres: Postgres, password: str) -> None:
    postgres.run(
        "CREATE SCHEMA ward",
        "GRANT USAGE ON SCHEMA ward TO reader",
        "CREATE TABLE ward.visits (person text, age integer, cost numeric(10, 2), secret text)",
        "INSERT INTO ward.visits"
        " SELECT 'p' || i % 100, i % 50, i * 0.25, 'unspoken ' || i FROM generate_series(1, 1000) i",
        "GRANT SELECT (person, age, cost) ON ward.visits TO reader",
    )
    source = postgres.source("ward.visits")
    columns = {"PERSON": str, "age": (0, 40), "cost": (0, 100)}
    visits = discreet.Table(source, columns=columns, person="PERSON", rows_per_person=20)
    with Curator({"visits": visits}, epsilon="1e25") as curator:
        assert curator.declaration.tables["visits"].columns[2].step == Fraction(1, 100)
        assert password not in repr(curator.declaration) + repr(curator.declaration.tables["visits"].source)
        question = "SELECT COUNT(*) AS n, SUM(age) AS ages, SUM(cost) AS costs FROM visits"
        costs = sum(min(i / 4, 100) for i in range(1, 1001))
        ages = sum(min(i % 50, 40) for i in range(1, 1001))
        assert curator.ask(question, epsilon=EXACT).rows == [{"n": 1000, "ages": ages, "costs": costs}]
        postgres.run("UPDATE ward.visits SET age = 0")
        assert curator.ask(question, epsilon=EXACT).rows[0]["ages"] == ages  # the snapshot's
        curator.refresh("visits")
        assert curator.ask(question, epsilon=EXACT).rows[0]["ages"] == 0
    assert "no such column" in faults(source, {"nothing": int})["tables.t.columns.nothing"]
    denied = faults(source, {"age": None, "secret": None})
    assert denied == {"tables.t.columns.secret": "the server does not let this user read the column"}
    os.environ["PGPASSWORD"] = "wrong"
    assert REASONS["login"][0] in faults(source, {"age": None})["tables.t.source"]


@pytest.mark.outside
def test_odd_values_become_what_they_become_in_text_files(weird: Postgres) -> None:
    with Curator({"t": single(weird.source("weird"), COLUMNS)}, epsilon="1e27") as curator:
        types = {one.name: one.type for one in curator.declaration.tables["t"].columns}
        assert types["n"] == types["m"] == types["c"] == "number"
        assert types["e"] == types["u"] == types["ch"] == "text"
        assert types["tz"] == "timestamp"
        steps = {one.name: one.step for one in curator.declaration.tables["t"].columns if one.step}
        assert {name: str(step) for name, step in steps.items()} == {"n2": "1/100", "c": "1/100"}

        def ask(select: str) -> dict[str, Any]:
            return curator.ask(f"SELECT {select} FROM t", epsilon=EXACT).rows[0]

        assert ask("COUNT(*) AS n") == {"n": 11}
        for name in ("f4", "f8"):  # 1.5 or 2.5, two infinite, one next to nothing
            assert ask(f"COUNT({name}) AS n, SUM({name}) AS s") == {"n": 4, "s": pytest.approx(1.5 + (name == "f8"))}
        assert ask("COUNT(n) AS n, SUM(n) AS s") == {"n": 6, "s": pytest.approx(3.5)}
        assert ask("SUM(n2) AS s, SUM(c) AS c, SUM(m) AS m") == {"s": 4.25, "c": 6.5, "m": pytest.approx(5.75)}
        for name, last in (("d", "2029-12-31"), ("ts", "2029-12-31"), ("tz", "2029-12-31")):
            assert ask(f"COUNT({name}) AS n") == {"n": 5}
            assert ask(f"COUNT(*) FILTER (WHERE {name} = '{last}') AS n") == {"n": 2}
            assert ask(f"COUNT(*) FILTER (WHERE {name} = '2000-01-01') AS n") == {"n": 2}
        assert ask("COUNT(*) FILTER (WHERE tz = '2020-02-29 10:30:00') AS n") == {"n": 1}
        assert ask("COUNT(*) FILTER (WHERE ch = 'z' AND e = 'light blue' AND b) AS n") == {"n": 1}
        assert ask("COUNT(*) FILTER (WHERE LENGTH(t) = 200) AS n, COUNT(t) AS m") == {"n": 1, "m": 4}
        assert ask("COUNT(*) FILTER (WHERE j = '{\"k\": 1}' AND iv = '1 day') AS n") == {"n": 1}
        assert ask('SUM("odd ""name") AS s') == {"s": 7}


@pytest.mark.outside
def test_without_bounds_odd_values_end_where_the_calendar_does(weird: Postgres) -> None:
    """As keys of groups infinite dates of one person would make everybody's question fail."""
    columns = {"d": None, "ts": None}
    with Curator({"t": single(weird.source("weird"), columns)}, epsilon="1e27", delta="1e-3") as curator:
        for name in columns:
            curator.ask(f"SELECT {name}, COUNT(*) AS n FROM t GROUP BY {name}", epsilon=EXACT)


@pytest.mark.outside
def test_the_same_rows_are_the_same_table_wherever_they_come_from(weird: Postgres, tmp_path: Path) -> None:
    """What a text file with the server's own words for each value becomes, to the last bit: the fingerprints agree."""
    names = ["i2", "i4", "i8", "f4", "f8", "n", "n2", "c", "t", "v", "ch", "u", "e", "b", "d", "ts", "tz", "j", "iv"]
    of_calendar = " AND ".join(
        f"({name} IS NULL OR abs(extract(year FROM {name})) < 9999)" for name in ("d", "ts", "tz")
    )
    infinite = "d IN ('infinity', '-infinity')"
    weird.run(
        f"CREATE OR REPLACE VIEW tame AS SELECT * FROM weird WHERE ({of_calendar} OR {infinite})"
        " AND t IS DISTINCT FROM '' AND (d IS NULL OR d > '0001-01-01' OR d = '-infinity')",
        "GRANT SELECT ON tame TO reader",
    )
    with weird.session() as owner:
        owner.execute("SET timezone = 'UTC'")
        owner.execute(f"SELECT {', '.join(f'CAST({name} AS text)' for name in names)} FROM tame")
        rows = owner.fetchall()
    assert len(rows) == 8
    with (tmp_path / "tame.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([names, *(["" if value is None else value for value in row] for row in rows)])
    kinds = {
        **dict.fromkeys(("i2", "i4", "i8"), "integer"),
        **dict.fromkeys(("f4", "f8", "n", "n2", "c"), "number"),
        "b": "boolean",
        "d": "date",
        "ts": "timestamp",
        "tz": "timestamp",
    }
    columns = {name: {"type": kinds.get(name, "text")} for name in names}
    one = table(weird, "tame", columns)
    engine = DuckDB(EngineLimits(memory_gib=1))
    try:
        found = engine.load(one, b"salt")
        text = replace(one, name="text", source=Source(SourceKind.CSV, tmp_path / "tame.csv"))
        assert engine.load(text, b"salt") == found
    finally:
        engine.close()


@pytest.mark.outside
def test_types_that_no_column_can_have(weird: Postgres) -> None:
    source = weird.source("weird")
    found = faults(source, {"a": str, "by": str, "iv": float, "d": int, "i4": datetime.date, "n": bool})
    assert found == {
        "tables.t.columns.a": "a column of the server's type _int4 cannot be read",
        "tables.t.columns.by": "a column of the server's type bytea cannot be read",
        "tables.t.columns.iv": "the server's type interval cannot be number",
        "tables.t.columns.d": "the server's type date cannot be integer",
        "tables.t.columns.i4": "the server's type int4 cannot be date",
        "tables.t.columns.n": "the server's type numeric cannot be boolean",
    }
    assert faults(source, {"j": None}) == {"tables.t.columns.j": "the source does not state its type"}


@pytest.mark.outside
@pytest.mark.parametrize("kind", sorted(FORMS))
def test_every_type_can_be_declared_as_what_it_may_be(postgres: Postgres, kind: str) -> None:
    """No conversion that is allowed fails, whatever the value: here NULL, and one that is usual."""
    usual = {
        **dict.fromkeys(("int2", "int4", "int8", "oid", "float4", "float8", "numeric", "money"), "'1'"),
        "bool": "'true'",
        **dict.fromkeys(("date", "timestamp", "timestamptz"), "'2020-01-01'"),
        "uuid": "'00000000-0000-0000-0000-000000000001'",
        "json": "'{}'",
        "jsonb": "'{}'",
        "xml": "'<a/>'",
        "inet": "'::1'",
        "cidr": "'::1'",
        "macaddr": "'08:00:2b:01:02:03'",
        "macaddr8": "'08:00:2b:01:02:03:04:05'",
        "time": "'12:00'",
        "timetz": "'12:00+00'",
        "interval": "'1 day'",
        "bit": "'1'",
        "varbit": "'1'",
    }
    if kind in ("enum", "citext", "xml"):
        pytest.skip("made by CREATE TYPE and CREATE EXTENSION; not every server has it")
    written = '"char"' if kind == "char" else kind
    postgres.run(
        "DROP TABLE IF EXISTS one",
        f"CREATE TABLE one (x {written})",
        f"INSERT INTO one VALUES ({usual.get(kind, repr('x'))}), (NULL)",
        "GRANT SELECT ON one TO reader",
    )
    engine = DuckDB(EngineLimits(memory_gib=1))
    try:
        for declared in sorted(CONVERT[FORMS[kind][0]]):
            one = table(postgres, "one", {"x": {"type": str(declared)}})
            engine.load(replace(one, name=str(declared)), b"salt")
    finally:
        engine.close()


@pytest.mark.outside
def test_where_the_server_cannot_be_read(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    postgres.run(
        "CREATE TABLE IF NOT EXISTS closed (a integer)",
        "CREATE SEQUENCE IF NOT EXISTS numbers",
        "CREATE SCHEMA IF NOT EXISTS hidden",
        "CREATE TABLE IF NOT EXISTS hidden.t (a integer)",
        "GRANT SELECT ON hidden.t TO reader",
    )

    def said(source: str) -> str:
        (message,) = faults(source, {"a": int}).values()
        return message

    here = postgres.source("closed")
    assert said(here) == "the server does not let this user read the column"
    assert said(postgres.source("nothing")).endswith(REASONS["missing"][0])
    assert said(postgres.source("numbers")).endswith(REASONS["kind"][0])
    assert said(postgres.source("hidden.t")).endswith(REASONS["schema"][0])
    assert said(here.replace("/postgres?", "/nothing?")).endswith(REASONS["database"][0])
    assert said(here.replace("reader@", "nobody@")).endswith(REASONS["login"][0])
    assert said(here.replace(str(postgres.folder), "/tmp/nowhere")).endswith(REASONS["gone"][0])
    assert said("postgresql://127.0.0.1:1/postgres::t").endswith(REASONS["gone"][0])
    assert said("postgresql:///?service=nothing::t").endswith(REASONS["service"][0])
    monkeypatch.delenv("PGPASSWORD")
    monkeypatch.setenv("HOME", "/nonexistent")
    assert said(here).endswith(REASONS["login"][0])


@pytest.mark.outside
def test_the_password_may_stand_where_the_library_looks(
    postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres.run("CREATE TABLE IF NOT EXISTS open_one (a integer)", "GRANT SELECT ON open_one TO reader")
    monkeypatch.delenv("PGPASSWORD", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    passwords = tmp_path / ".pgpass"
    passwords.write_text(f"*:*:*:reader:{PASSWORD}\n", "utf-8")
    passwords.chmod(0o600)
    source = postgres.source("open_one")
    with Curator({"t": single(source, {"a": int})}, epsilon=1) as curator:
        curator.ask("SELECT COUNT(*) AS n FROM t", epsilon=1)
    passwords.unlink()
    services = tmp_path / "services"
    services.write_text(
        f"[clinic]\nhost={postgres.folder}\nport=54329\nuser=reader\ndbname=postgres\npassword={PASSWORD}\n", "utf-8"
    )
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    with Curator({"t": single("postgresql:///?service=clinic::open_one", {"a": int})}, epsilon=1) as curator:
        curator.ask("SELECT COUNT(*) AS n FROM t", epsilon=1)


@contextmanager
def connected(server: Postgres, seconds: int = 60) -> Iterator[SnapshotConnection]:
    one = SnapshotConnection(server.url(), environment(), seconds)
    try:
        yield one
    finally:
        one.close()


def numbers(server: SnapshotConnection, select: str) -> list[int]:
    found = [int(value) for batch in server.read(select, ["a"]) for value in batch.column(0).to_pylist()]
    server.done()
    return sorted(found)


@pytest.fixture
def shifting(postgres: Postgres) -> Postgres:
    """Two tables, a view and a table in parts, with one row each."""
    postgres.run("DROP SCHEMA IF EXISTS s CASCADE", "CREATE SCHEMA s", "GRANT USAGE ON SCHEMA s TO reader")
    postgres.run(
        "CREATE TABLE s.one (a integer)", "CREATE TABLE s.two (a integer)", "CREATE VIEW s.seen AS TABLE s.one"
    )
    postgres.run("CREATE TABLE s.parts (a integer) PARTITION BY RANGE (a)")
    postgres.run("CREATE TABLE s.part PARTITION OF s.parts FOR VALUES FROM (0) TO (100)")
    postgres.run("CREATE MATERIALIZED VIEW s.kept AS SELECT 1 AS a")
    for name in ("one", "two", "parts"):
        postgres.run(f"INSERT INTO s.{name} VALUES (1)")
    postgres.run("GRANT SELECT ON ALL TABLES IN SCHEMA s TO reader")
    return postgres


@pytest.mark.outside
def test_all_tables_are_read_as_they_are_at_one_moment(shifting: Postgres) -> None:
    one, two = ("SELECT a AS c0 FROM s.one", "SELECT a AS c0 FROM s.two")
    with connected(shifting) as server:
        server.hold([one, two])
        shifting.run("INSERT INTO s.one VALUES (2)", "INSERT INTO s.two VALUES (2)", "DELETE FROM s.two WHERE a = 1")
        assert numbers(server, one) == numbers(server, two) == [1]
        with shifting.session() as other:  # nobody empties what is being read
            other.execute("SET lock_timeout = '200ms'")
            with pytest.raises(Exception, match="lock timeout"):
                other.execute("TRUNCATE s.two")
        assert numbers(server, two) == [1]
    with connected(shifting) as server:
        server.hold([one, two])
        assert (numbers(server, one), numbers(server, two)) == ([1, 2], [2])


@pytest.mark.outside
@pytest.mark.parametrize(
    ("name", "emptied", "written"),
    [
        ("s.one", "TRUNCATE s.one", "INSERT INTO s.one VALUES (5)"),
        ("s.seen", "TRUNCATE s.one", "INSERT INTO s.one VALUES (5)"),
        ("s.parts", "TRUNCATE s.part", "INSERT INTO s.parts VALUES (5)"),
        ("s.one", "ALTER TABLE s.one ALTER a TYPE bigint", "UPDATE s.one SET a = 5"),
        ("s.one", "DROP TABLE s.one CASCADE", "CREATE TABLE s.one AS SELECT 5 AS a"),
    ],
    ids=["table", "behind a view", "part", "rewritten", "replaced"],
)
def test_what_is_emptied_between_the_snapshot_and_the_lock_is_read_anew(
    shifting: Postgres, name: str, emptied: str, written: str
) -> None:
    """TRUNCATE takes effect for older snapshots too: they see an empty table, which never was."""
    select = f"SELECT CAST(a AS int8) AS c0 FROM {name}"
    seen: list[list[int]] = []
    with shifting.session() as other:
        other.execute("BEGIN")
        if emptied.startswith("ALTER"):
            other.execute("DROP VIEW s.seen")
        other.execute(emptied)
        other.execute(written)
        if emptied.startswith("DROP"):
            other.execute("GRANT SELECT ON s.one TO reader")

        def read() -> None:
            with connected(shifting) as server:
                server.hold([select])  # waits for the lock, with a snapshot already
                seen.append(numbers(server, select))

        thread = threading.Thread(target=read)
        thread.start()
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'reader' AND wait_event_type = 'Lock'"
        until = time.monotonic() + 300
        while shifting.rows(waiting) != [(1,)] and time.monotonic() < until:
            time.sleep(0.02)
        other.execute("COMMIT")
        thread.join(300)
    assert seen == [[5]]


@pytest.mark.outside
def test_a_loaded_table_is_of_one_moment_while_others_write(shifting: Postgres) -> None:
    """Two tables between which a row moves to and fro: together they always have it once."""
    shifting.run("TRUNCATE s.one, s.two", "INSERT INTO s.one VALUES (1)")
    stop = threading.Event()

    def move() -> None:
        with shifting.session() as other:
            while not stop.is_set():
                for away, back in (("one", "two"), ("two", "one")):
                    other.execute(f"WITH gone AS (DELETE FROM s.{away} RETURNING a) INSERT INTO s.{back} TABLE gone")
                    other.execute("BEGIN")
                    other.execute(f"TRUNCATE s.{away}")
                    other.execute("COMMIT")
                    other.execute("SELECT pg_sleep(.02)")  # emptied without a pause, no moment could be held

    thread = threading.Thread(target=move)
    thread.start()
    try:
        tables = {name: single(shifting.source(f"s.{name}"), {"a": (0, 9)}) for name in ("one", "two")}
        for _ in range(10):
            with Curator(tables, epsilon="1e25") as curator:
                counts = [curator.ask(f"SELECT COUNT(*) AS n FROM {name}", epsilon=EXACT).rows for name in tables]
            assert sum(rows[0]["n"] for rows in counts) == 1
    finally:
        stop.set()
        thread.join()


@pytest.mark.outside
def test_views_and_parts_are_tables_too(shifting: Postgres) -> None:
    for name in ("seen", "parts", "kept"):
        with Curator({"t": single(shifting.source(f"s.{name}"), {"a": (0, 9)})}, epsilon="1e25") as curator:
            assert curator.ask("SELECT SUM(a) AS s FROM t", epsilon=EXACT).rows == [{"s": 1}]


@pytest.mark.outside
def test_a_read_that_ends_half_way_is_no_table(postgres: Postgres) -> None:
    postgres.run(
        "CREATE TABLE IF NOT EXISTS ten AS SELECT 1 AS a FROM generate_series(1, 10)",
        "CREATE OR REPLACE VIEW slow AS SELECT a, pg_sleep(1) IS NULL AS b FROM ten",
        "CREATE OR REPLACE VIEW broken AS SELECT i AS a, 1 / (i - 900000) AS b FROM generate_series(1, 1000000) i",
        "GRANT SELECT ON slow, broken TO reader",
    )
    engine = DuckDB(EngineLimits(memory_gib=1))
    try:
        with pytest.raises(DeclarationError, match=REASONS["failed"][0]):
            engine.load(table(postgres, "broken", {"a": {"type": "integer"}, "b": {"type": "integer"}}), b"salt")
        assert not engine.has("t")

        reads = "FROM pg_stat_activity WHERE usename = 'reader' AND wait_event = 'PgSleep'"  # it is in the middle
        ending = f"SELECT pg_terminate_backend(pid) {reads}"
        ends = threading.Thread(target=lambda: until(lambda: postgres.rows(ending), every=0.1))
        ends.start()
        with pytest.raises(DeclarationError, match=REASONS["ended"][0]):
            engine.load(table(postgres, "slow", {"a": {"type": "integer"}, "b": {"type": "boolean"}}), b"salt")
        ends.join()
        assert not engine.has("t")
        engine.load(table(postgres, "ten", {"a": {"type": "integer"}}, "owner"), b"salt")  # and the engine goes on
        assert engine.has("t")
    finally:
        engine.close()


@pytest.mark.outside
def test_a_gib_is_enough_for_a_small_table_every_time(postgres: Postgres) -> None:
    """What libraries and threads reserve of the address space is no memory of the tables."""
    postgres.run("CREATE TABLE IF NOT EXISTS open_one (a integer)", "GRANT SELECT ON open_one TO reader")
    for _ in range(20):
        engine = DuckDB(EngineLimits(memory_gib=1))
        try:
            engine.load(table(postgres, "open_one", {"a": {"type": "integer"}}), b"salt")
            engine.lock()
            assert engine._process is not None
            limit, most = resource.prlimit(engine._process.pid, resource.RLIMIT_AS)
            assert limit == most != resource.RLIM_INFINITY
        finally:
            engine.close()


@pytest.mark.outside
def test_one_long_text_does_not_decide_whether_a_table_can_be_loaded(postgres: Postgres) -> None:
    postgres.run(
        "DROP TABLE IF EXISTS long, short",
        "CREATE TABLE long (id text, said text, number text)",
        "CREATE TABLE short (id text, said text, number text)",
        "INSERT INTO long VALUES ('one', repeat('é', 300), '7'), ('two', repeat('x', 250000000), '7'),"
        " ('three', '', repeat('1', 250000000)), (repeat('y', 250000000), '', '7')",
        "INSERT INTO short VALUES ('one', repeat('é', 200), '7'), ('two', repeat('x', 200), '7'), ('three', '', NULL)",
        "GRANT SELECT ON long, short TO reader",
    )
    columns = {"id": {"type": "text"}, "said": {"type": "text"}, "number": {"type": "integer"}}
    given = {"person": "id", "rows_per_person": 1, "columns": columns}
    engine, found = DuckDB(EngineLimits(memory_gib=1)), []
    try:
        for name in ("long", "short"):
            tables = {"t": {"source": postgres.source(name), **given}}
            found.append(engine.load(declare({"budget": {"epsilon": 1}, "tables": tables}).tables["t"], b"salt"))
            engine.close()
    finally:
        engine.close()
    assert found[0] == found[1]
    postgres.run("DROP TABLE long, short")


@pytest.mark.outside
def test_a_table_that_takes_too_long_or_is_locked(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    postgres.run(
        "CREATE TABLE IF NOT EXISTS ten AS SELECT 1 AS a FROM generate_series(1, 10)",
        "CREATE OR REPLACE VIEW slow AS SELECT a, pg_sleep(1) IS NULL AS b FROM ten",
        "GRANT SELECT ON slow, ten TO reader",
    )
    with connected(postgres, seconds=2) as server:
        select = "SELECT a, b FROM public.slow"
        server.hold([select])
        with pytest.raises(OSError, match="libpq"):
            list(server.read(select, ["a", "b"]))
        assert server.why() == "slow"
    monkeypatch.setattr("discreet.engines.postgresql.server.LOCK_SECONDS", 1)
    with postgres.session() as other, connected(postgres) as server:
        other.execute("BEGIN")
        other.execute("LOCK TABLE ten")
        with pytest.raises(UnreadableSource, match="locked"):
            server.hold(["SELECT a FROM public.ten"])
        other.execute("ROLLBACK")
        server.hold(["SELECT a FROM public.ten"])


@pytest.mark.outside
def test_nothing_of_the_password_stays(postgres: Postgres, password: str, tmp_path: Path) -> None:
    """Not in the ledger, in the declaration, in errors (`faults`), nor in the environment of a process of ours."""
    postgres.run("CREATE TABLE IF NOT EXISTS open_one (a integer)", "GRANT SELECT ON open_one TO reader")
    file = tmp_path / "d.toml"
    file.write_text(
        "[budget]\nepsilon = 3\n[tables.t]\none_row_per_person = true\n"
        f'source = "{postgres.source("open_one")}"\n[tables.t.columns]\na = {{ type = "integer" }}\n',
        "utf-8",
    )
    with discreet.open(file) as curator:
        curator.ask("SELECT COUNT(*) AS n FROM t", epsilon=1)
        child = curator._engine._process.pid
        assert password.encode() not in Path(f"/proc/{child}/environ").read_bytes()
        assert not any("reader" in str(row) for row in postgres.rows("SELECT usename FROM pg_stat_activity"))
        with pytest.raises(DeclarationError):  # what holds rows connects to nothing any more
            curator._engine.check(curator.declaration.tables["t"])
        curator.check()
    for kept in tmp_path.iterdir():
        assert password.encode() not in kept.read_bytes(), kept
    assert password not in postgres.log().replace(f"PASSWORD '{password}'", "")


def test_the_environment_is_lent_for_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOST", "mine")
    monkeypatch.setenv("HOME", "/mine")
    with surroundings({"PGPASSWORD": "x", "HOME": "/other"}):
        assert (os.environ.get("PGHOST"), os.environ["PGPASSWORD"], os.environ["HOME"]) == (None, "x", "/other")
    assert environment() == {"PGHOST": "mine", "HOME": "/mine"} | {
        name: value for name, value in environment().items() if name not in ("PGHOST", "HOME")
    }
    assert "PGPASSWORD" not in os.environ or os.environ["PGPASSWORD"] != "x"


@pytest.mark.outside
def test_servers_of_other_versions() -> None:
    for version in (15, 16, 17):
        try:
            with running(version) as server:
                server.run("CREATE TABLE t (a integer, n numeric(5, -2))", "GRANT SELECT ON t TO reader")
                server.run("INSERT INTO t VALUES (3, 1234), (4, 'NaN')")
                with Curator({"t": single(server.source("t"), {"a": (0, 9), "n": None})}, epsilon="1e25") as curator:
                    assert curator.declaration.tables["t"].columns[1].step == 100
                    assert curator.ask("SELECT SUM(a) AS s FROM t", epsilon=EXACT).rows == [{"s": 7}]
        except pytest.skip.Exception:
            continue


def test_a_failure_becomes_one_word_of_a_list() -> None:
    assert reason("42501", "row (1, secret)") == "denied"
    assert reason("57P01", "") == reason("08006", "") == "ended"
    assert reason("57014", "") == "slow"
    assert reason("22012", "division by zero: 17") == "failed"
    assert reason(None, "IO: [libpq] Failed to connect: FATAL:  Passwort-Authentifizierung für »x«") == "login"
    assert reason(None, "IO: [libpq] Failed to connect: could not translate host name") == "gone"
    assert {*REASONS} >= {reason(state, "") for state in ("28P01", "3D000", "3F000", "42P01", "55P03", "25P03")}


def test_no_password_stands_in_a_declaration() -> None:
    def said(source: str) -> str:
        given = {"source": source, "one_row_per_person": True, "columns": {"a": {"type": "integer"}}}
        with pytest.raises(DeclarationError) as refused:
            declare({"budget": {"epsilon": 1}, "tables": {"t": given}})
        assert "s3cret" not in str(refused.value)
        assert "s3cret" not in repr(refused.value)
        return refused.value.faults[0].message

    for url in (
        "postgresql://user:s3cret@host/db::t",
        "postgres://user:s3cret@host/db",
        "POSTGRESQL://user:s3@cret@host/db::t",
        "postgresql://user@host/db?password=s3cret::t",
        "postgresql://host/db?sslpassword=s3cret::t",
    ):
        assert said(url) == "a password stands in it"
    for url in (
        "postgresql://user%3As3cret@host/db::t",
        "postgresql://user%3as3cret@host/db",
        "postgresql://user%253As3cret@host/db::t",
        "postgresql://user%3As3cret/db::t",
        "postgresql://host,user%3As3cret:5432/db::t",
        "postgresql://a%20password%3Ds3cret@host/db::t",
        "postgresql://host/db%20password=s3cret::t",
        "postgresql://host/db%20PassWord%3Ds3cret::t",
        "postgresql://host/postgres%3A%2F%2Fuser%3As3cret%40host%2Fdb::t",
        "postgresql://host/?user=a%20password%3Ds3cret::t",
        "postgresql://host/?user=a:s3cret::t",
        "postgresql://host/?dbname=db+password%3Ds3cret::t",
        "postgresql://host/?dbname=postgres://user:s3cret%40host/db::t",
        "postgresql:///db?host=user:s3cret::t",
        "postgresql:///db?service=clinic%20password%3Ds3cret::t",
    ):
        assert said(url) == "a password may stand in it"
    for url in (
        "postgresql://user:s3cret/x@host/db::t",
        "postgresql://user:12/s3cret@host::t",
        "postgresql://user:12?s3cret@host/db::t",
        "postgresql://user:12#s3cret@host/db::t",
        "postgresql://user s3cret/db::t",
        "postgresql://[::1]/db",
        "postgresql://host/db",
        "postgresql://host/db::",
        "postgresql://host/db::a.b.c",
        "postgresql://host/db?options=-c%20x::t",
        "mysql://u:s3cret@host.com/db::t",
        "mysql://u:s3cret@host.com",
    ):
        assert said(url) != "a password stands in it" or "s3cret@" in url


def test_what_a_server_is_called() -> None:
    def source(text: str) -> Source:
        given = {"source": text, "one_row_per_person": True, "columns": {"a": {"type": "integer"}}}
        return declare({"budget": {"epsilon": 1}, "tables": {"t": given}}).tables["t"].source

    known = source("postgres://me@[::1]:5432/db?sslmode=require::ward.visits")
    assert known.server == "postgresql://me@[::1]:5432/db?sslmode=require"
    assert known.relation == "ward.visits"
    assert source("postgresql:///?service=clinic::visits").relation == "public.visits"
    for url in (
        "postgresql://me@%2Fvar%2Frun:5432/db",
        "postgresql://[fe80::1]:1,host:2/db",
        "postgresql:///db?host=::1,10.0.0.1",
        "postgresql:///db?host=fe80::1%25eth0&passfile=/home/me/password",
    ):
        assert source(f"{url}::t").server == url
    assert words_of(source("postgresql://a:1,b:2/db::t")) == "postgresql://a:1,b:2/db::public.t"


def init(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "discreet", "init", *words], capture_output=True, text=True)


@pytest.mark.outside
def test_a_first_declaration_of_a_table_on_a_server(postgres: Postgres, tmp_path: Path) -> None:
    postgres.run(
        "CREATE TABLE IF NOT EXISTS people (id integer, sex text, born date, cost numeric(8, 2))",
        "INSERT INTO people VALUES (1, 'F', '1990-01-01', 3), (2, 'M', '1980-01-01', 4)",
        "GRANT SELECT ON people TO reader",
    )
    file = tmp_path / "people.toml"
    chosen = ["--one-row-per-person", "--public", "sex", "--range", "cost=0:10", "--output", str(file)]
    made = init(postgres.source("people"), *chosen)
    assert made.returncode == 0, made.stderr
    text = file.read_text("utf-8")
    assert 'sex = { type = "text", values = ["F", "M"], nulls = false }' in text
    with discreet.open(file) as curator:
        assert "cost" in repr(curator.tables)
    wrong = init(f"postgresql://reader:{PASSWORD}@host/db::t", "--one-row-per-person")
    assert wrong.returncode == 2
    assert "a password stands in it" in wrong.stderr
    assert PASSWORD not in wrong.stdout + wrong.stderr
