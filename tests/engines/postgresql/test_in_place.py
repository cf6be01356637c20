"""Questions that run on the server that has the tables: the same answers as here, no right beyond the declared ones,
and nothing left half done."""

from __future__ import annotations

import datetime
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from discreet import Curator, DeclarationError, EngineError, QuestionError
from discreet.catalog import declare
from discreet.engines.driver import Driver
from discreet.engines.process import EngineProcess
from discreet.trusted.ring_a.expressions import Call, ColumnOf, Literal
from discreet.trusted.ring_a.table import Type
from discreet.trusted.ring_a.windows import Salt
from discreet.trusted.ring_c.coding import Binned, Coding, ListedCells
from discreet.trusted.ring_c.vectors import VectorColumn, Vectors
from postgres_tools import PASSWORD, Postgres, running

EXACT = "1e20"
"""A price at which noise is zero."""

VISITS = """
CREATE TABLE clinics (clinic text, beds integer);
INSERT INTO clinics VALUES ('north', 10), ('south', 25), ('Ünder', 5);
CREATE TABLE people (id bigint, born date, old boolean, income double precision, town text);
INSERT INTO people SELECT i, DATE '1950-01-01' + i * 37 % 20000, i % 3 = 0, i * 997 % 50000 + .25,
    (ARRAY['Ulm', 'Köln', 'Bonn'])[i % 3 + 1] FROM generate_series(1, 300) AS s(i);
CREATE TABLE visits (person bigint, clinic text, cost numeric(10, 2), days integer, at timestamp, secret text);
INSERT INTO visits SELECT i * i % 300 + 1, (ARRAY['north', 'south', 'Ünder', NULL])[i % 4 + 1],
    i * 37 % 1000 / 10.0, i % 11, TIMESTAMP '2020-01-01 10:00:00' + i * INTERVAL '7 hours', 'hidden' || i
    FROM generate_series(1, 3000) AS s(i);
INSERT INTO visits SELECT 7, 'north', 12.5, 3, TIMESTAMP '2020-01-01', 'hidden' FROM generate_series(1, 60);
"""

QUESTIONS = (
    "SELECT COUNT(*) FROM visits",
    "SELECT clinic, COUNT(*), SUM(cost), AVG(days) FROM visits GROUP BY clinic",
    "SELECT clinic, COUNT(*) FROM visits WHERE cost > 20 AND days IN (1, 2, 3) GROUP BY clinic",
    "SELECT COUNT(DISTINCT person) FROM visits WHERE clinic LIKE 'n%'",
    "SELECT clinic, COUNT(DISTINCT person) FROM visits GROUP BY clinic",
    "SELECT clinic, COUNT(DISTINCT person) FROM visits WHERE days > 2 GROUP BY clinic",
    "SELECT days, COUNT(DISTINCT person) FROM visits WHERE cost > 2 GROUP BY days",
    "SELECT MEDIAN(cost) FROM visits",
    "SELECT town, AVG(income), STDDEV(income) FROM people GROUP BY town",
    "SELECT old, COUNT(*) FROM people WHERE EXTRACT(YEAR FROM born) < 1980 GROUP BY old",
    "SELECT c.clinic, SUM(v.cost * v.days) FROM visits v JOIN clinics c ON v.clinic = c.clinic WHERE c.beds > 7 "
    "GROUP BY c.clinic",
    "SELECT COUNT(*) FROM (SELECT person, COUNT(*) AS n FROM visits GROUP BY person) AS t WHERE n > 5",
    "SELECT p.old, COUNT(*) FROM visits v JOIN people p ON v.person = p.id GROUP BY p.old",
)


def tables(server: Postgres, user: str = "curator") -> dict[str, Any]:
    return {
        "clinics": {"source": server.source("public.clinics", user), "public": True},
        "people": {
            "source": server.source("public.people", user),
            "person": "id",
            "rows_per_person": 1,
            "columns": {
                "id": {},
                "born": {"min": datetime.date(1940, 1, 1), "max": datetime.date(2010, 12, 31)},
                "old": {},
                "income": {"min": 0, "max": 50_000, "step": Fraction(1, 4)},
                "town": {"values": ["Bonn", "Köln", "Ulm"]},
            },
        },
        "visits": {
            "source": server.source("public.visits", user),
            "person": "person",
            "rows_per_person": 20,
            "groups_per_person": 2,
            "columns": {
                "person": {},
                "clinic": {"values": ["north", "south", "Ünder"]},
                "cost": {"min": 0, "max": 100, "step": Fraction(1, 100)},
                "days": {"min": 0, "max": 10},
                "at": {},
            },
        },
    }


def declared(server: Postgres, ledger: Path | None, kind: str = "postgresql", **more: Any) -> Mapping[str, Any]:
    return {
        "budget": {"epsilon": 10**30, "delta": Fraction(1, 10**6)},
        "engine": {"kind": kind, "seconds": 60},
        "tables": tables(server),
        **({} if ledger is None else {"ledger": str(ledger)}),
        **more,
    }


def alone(server: Postgres, ledger: Path) -> Mapping[str, Any]:
    """A declaration of the visits and nothing beside them, which is opened sooner."""
    return declared(server, ledger, tables={"visits": tables(server)["visits"]})


@pytest.fixture(scope="module", params=[18, pytest.param(15, marks=pytest.mark.outside)])
def postgres(request: pytest.FixtureRequest) -> Iterator[Postgres]:
    with running(request.param) as server:
        server.run(*filter(str.strip, VISITS.split(";\n")))
        server.run(f"CREATE ROLE curator LOGIN PASSWORD '{PASSWORD}'")
        server.run(
            "GRANT CREATE, TEMPORARY ON DATABASE postgres TO curator",
            "GRANT SELECT ON clinics TO curator",
            "GRANT SELECT (id, born, old, income, town) ON people TO curator",
            "GRANT SELECT (person, clinic, cost, days, at) ON visits TO curator",
        )
        yield server


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)


def schemas(server: Postgres) -> list[str]:
    return [name for (name,) in server.rows(r"SELECT nspname::text FROM pg_namespace WHERE nspname LIKE 'discreet\_%'")]


@pytest.fixture(autouse=True)
def _clean(postgres: Postgres) -> Iterator[None]:
    yield
    for name in schemas(postgres):
        postgres.run(f"DROP SCHEMA {name} CASCADE")


def opened(declaration: Mapping[str, Any]) -> Curator:
    return Curator.of(declare(declaration))


def values(curator: Curator, question: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in curator.ask(question, epsilon=EXACT).rows]


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every table is loaded with one key, and every question chooses rows by one salt."""
    monkeypatch.setattr("discreet.engines.driver.positions", lambda table, _: f"the key of {table.name}")
    monkeypatch.setattr("discreet.engines.driver.Salt", SimpleNamespace(of=lambda _: Salt.of("a salt")))


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the engines gave to the door, in their order. A function runs in one process, which takes long to start."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    found: list[Any] = []

    def noted(name: str) -> None:
        true = getattr(Driver, name)

        def call(self: Driver, *arguments: Any) -> Any:
            answer = true(self, *arguments)
            found.append(_plain(answer))
            return answer

        monkeypatch.setattr(Driver, name, call)

    for name in ("run", "vectors", "marginals", "cells"):
        noted(name)
    return found


def _plain(answer: Any) -> Any:
    if isinstance(answer, Vectors):
        known = {name: known.tolist() for name, known in answer.known.items()}
        held = {
            name: [value if there else None for value, there in zip(values.tolist(), known[name], strict=True)]
            for name, values in answer.values.items()
        }
        return answer.person.tolist(), known, held
    if not isinstance(answer, list):
        return answer.tolist()
    cells = answer and not isinstance(answer[0], tuple)
    return [one.tolist() for one in answer] if cells else sorted(answer, key=repr)


@pytest.mark.usefixtures("known")
def test_questions_of_every_kind(postgres: Postgres, tmp_path: Path, seen: list[Any]) -> None:
    """The door is given the same, to the bit: of questions, and of all that reads rows."""
    found = {}
    for kind in ("postgresql", "duckdb"):
        seen.clear()
        with opened(declared(postgres, tmp_path / f"{kind}.ledger", kind)) as curator:
            for question in QUESTIONS:
                values(curator, question)
            _counted(curator)
            curator.sample_and_aggregate(_mean, "people", low=0, high=50_000, epsilon=1)
            curator.fit("people", target="old", features=["income", "born", "town"], epsilon=1, steps=5)
        found[kind] = list(seen)
    assert len(found["duckdb"]) > len(QUESTIONS)
    assert found["postgresql"] == found["duckdb"]


def _counted(curator: Curator) -> None:
    """Counts rows in cells, as `publish` does with cells that follow from noise."""
    engine: Any = curator._engine
    table = curator._declaration.tables["visits"]
    town = [f"{place}" for place in range(9)]
    coded = (
        ListedCells(table.column("clinic"), ("north", "Ünder", "none"), other=True),
        ListedCells(table.column("days"), (1, 2, 7)),
        Binned(table.column("cost"), tuple(Fraction(cut, 3) for cut in range(0, 270, 7))),
        Binned(table.column("at"), (datetime.datetime(2020, 3, 1), datetime.datetime(2021, 1, 1, 10, 30))),
    )
    rows = engine.code(Coding(coded), table)
    engine.marginals(rows, [["clinic"], ["days", "cost"], ["at", "clinic", "days"], []])
    engine.uncode(rows)
    listed = Coding((ListedCells(table.column("at"), ()), ListedCells(table.column("days"), (1, 2, 3))))
    at, days = (ColumnOf(name, kind) for name, kind in (("at", Type.TIMESTAMP), ("days", Type.INTEGER)))
    early = Call("less", (at, Literal(datetime.datetime(2020, 1, 1), Type.TIMESTAMP)), Type.BOOLEAN)
    engine.cells(listed, early, table)
    engine.cells(listed, Call("less", (days, Literal(3, Type.INTEGER)), Type.BOOLEAN), table)
    names = ("north", "Ünder", "a'b", 'c"d', "e\\f", *town)
    for values, prefixes in ((names, ()), (names, ("n", "so", "'")), ((), ("n", "no", "Ü", "\\"))):
        rows = engine.code(Coding((ListedCells(table.column("clinic"), values, other=True, prefixes=prefixes),)), table)
        engine.marginals(rows, [["clinic"]])
        engine.uncode(rows)


def _mean(rows: Any) -> float:
    return float(rows["income"].mean())


WEIRD = """
CREATE TYPE colour AS ENUM ('red', 'light blue');
CREATE DOMAIN cents AS numeric(12, 2);
CREATE TABLE weird (p serial, i2 smallint, i4 integer, i8 bigint, f4 real, f8 double precision, n numeric,
    m money, c cents, t text, v varchar(20), ch char(5), e colour, b boolean, d date, ts timestamp, tz timestamptz);
INSERT INTO weird (i2, i4, i8, f4, f8, n, m, c, t, v, ch, e, b, d, ts, tz) VALUES (1, 2, 3, 1.5, 2.5, 3.5, 5.75, 6.5,
    'x', 'y', 'z', 'light blue', true, '2020-02-29', '2020-02-29 12:30:00', '2020-02-29 12:30:00+02');
INSERT INTO weird (f4, f8, n, d, ts, tz) VALUES
    ('NaN', 'NaN', 'NaN', 'infinity', 'infinity', 'infinity'),
    ('Infinity', 'Infinity', 'Infinity', '-infinity', '-infinity', '-infinity'),
    ('-Infinity', '-Infinity', '-Infinity', '4713-01-01 BC', '4713-01-01 BC', '4713-01-01 00:00:00+00 BC'),
    (1e-40, 5e-324, 1e-2000, '5874897-12-31', '294276-12-31 23:59:59.999999', '294276-12-31 23:59:59.999999+00');
INSERT INTO weird (n) VALUES (1.7976931348623158e308), (-1.79769313486231580793e308), (1.7976931348623159e308),
    (-1.797693134862315808e308), (2.4703282292062328e-324), (-2.4703282292062327e-324);
INSERT INTO weird (n) VALUES (('1' || repeat('0', 5000))::numeric), (('-1' || repeat('0', 5000))::numeric);
INSERT INTO weird (n) VALUES (2.5), (-0.5);
INSERT INTO weird (i8) VALUES (9223372036854775807), (-9223372036854775808);
INSERT INTO weird (t) VALUES (''), (E'\\x01\\t\\n'), (repeat('é', 100000)), (NULL), ('Ünder'), ('e');
"""

AS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("i2", "i4", "i8"), ("integer", "number", "boolean", "text")),
    **dict.fromkeys(("f4", "f8"), ("number", "integer")),
    **dict.fromkeys(("n", "c"), ("number", "integer", "text")),
    "m": ("number",),
    **dict.fromkeys(("t", "v", "ch", "e"), ("text",)),
    "b": ("boolean", "integer", "text"),
    "d": ("date", "timestamp"),
    "ts": ("timestamp", "date"),
    "tz": ("timestamp", "date"),
}
"""What each column may be declared as."""


def test_values_of_every_type_are_what_they_are_here(postgres: Postgres, tmp_path: Path) -> None:
    """The rows that a procedure would get, in a table for each of the types that a column may be declared as."""
    postgres.run(*filter(str.strip, WEIRD.split(";\n")), "GRANT SELECT ON weird TO curator")
    weird = {"source": postgres.source("public.weird", "curator"), "person": "p", "rows_per_person": 1}
    tables: dict[str, Any] = {}
    for which in range(4):
        columns: dict[str, Any] = {name: {"type": kinds[which]} for name, kinds in AS.items() if len(kinds) > which}
        for name, column in columns.items():
            if column["type"] == "number" and name in ("n", "c", "m"):  # a server's digits are no step here
                column |= {"min": -(10**9), "max": 10**9, "step": Fraction(1, 1000)}
        tables[f"weird_{which}"] = {**weird, "columns": {"p": {}, **columns}}
    found = []
    for kind in ("postgresql", "duckdb"):
        with opened({**declared(postgres, tmp_path / f"{kind}.ledger", kind), "tables": tables}) as curator:
            known, engine = curator._declaration.tables, curator._engine
            wanted = {name: [VectorColumn(column) for column in known[name].columns] for name in tables}
            found.append({name: _plain(engine.vectors(known[name], wanted[name])) for name in tables})
    for name in tables:
        assert len(found[0][name][0]) > 20
        assert found[0][name] == found[1][name]


def test_a_table_is_published(postgres: Postgres, tmp_path: Path) -> None:
    with opened(declared(postgres, tmp_path / "a.ledger")) as curator:
        made = curator.publish("people", epsilon=50, columns=["old", "town"])
        assert len(made.rows) == pytest.approx(300, abs=20)
    assert not any(
        postgres.rows(f"SELECT 1 AS n FROM pg_tables WHERE schemaname = '{name}' AND tablename LIKE 'coded%'")
        for name in schemas(postgres)
    )


COUNT = "SELECT COUNT(*) FROM visits WHERE days > 3"


def test_a_snapshot_is_made_once_and_opened_later(postgres: Postgres, tmp_path: Path) -> None:
    with opened(declared(postgres, tmp_path / "a.ledger")) as curator:
        first = values(curator, COUNT)
    kept = schemas(postgres)
    postgres.run("REVOKE SELECT (person, clinic, cost, days, at) ON visits FROM curator")
    try:
        with Curator.of(declare(declared(postgres, tmp_path / "a.ledger")), load=True) as curator:
            assert values(curator, COUNT) == first  # a stored answer
            assert values(curator, COUNT.replace("3", "4")) != first
    finally:
        postgres.run("GRANT SELECT (person, clinic, cost, days, at) ON visits TO curator")
    assert schemas(postgres) == kept
    assert len(kept) == 3


def test_refresh_makes_another_and_drops_the_one_before(postgres: Postgres, tmp_path: Path) -> None:
    with opened(declared(postgres, tmp_path / "a.ledger")) as curator:
        values(curator, COUNT)
        before = schemas(postgres)
        postgres.run("CREATE TABLE kept AS SELECT * FROM visits", "DELETE FROM visits WHERE days = 5")
        try:
            assert values(curator, COUNT.replace("3", "5"))  # the snapshot is what it was
            curator.refresh("visits")
            after = schemas(postgres)
            changed = values(curator, COUNT)
        finally:
            postgres.run("INSERT INTO visits SELECT * FROM kept WHERE days = 5", "DROP TABLE kept")
    assert len(before) == len(after) == 3
    assert len({*before} & {*after}) == 2
    assert changed


def test_the_same_rows_declared_otherwise_are_made_anew(postgres: Postgres, tmp_path: Path) -> None:
    raw = declared(postgres, tmp_path / "a.ledger")
    with opened(raw) as curator:
        values(curator, COUNT)
        before = schemas(postgres)
        assert not curator.refresh("visits")
        assert schemas(postgres) == before
    raw["tables"]["visits"]["columns"]["cost"]["max"] = 200  # which clamps no row
    with opened(raw) as curator:
        assert values(curator, COUNT)
        assert schemas(postgres) == before


def test_what_a_process_built_beside_tables_goes_when_it_has_ended(postgres: Postgres, tmp_path: Path) -> None:
    grouped = "SELECT clinic, COUNT(DISTINCT person) FROM visits WHERE days > 2 GROUP BY clinic"
    with opened(declared(postgres, tmp_path / "a.ledger")) as curator:
        values(curator, grouped)
        assert len(schemas(postgres)) == 4
        with opened(declared(postgres, tmp_path / "b.ledger")) as other:
            values(other, grouped)
            assert sum("beside" in name for name in schemas(postgres)) == 2
            values(curator, grouped.replace("2", "3"))
    with opened(declared(postgres, tmp_path / "c.ledger")):
        assert not any("beside" in name for name in schemas(postgres))


@pytest.mark.parametrize(
    ("statement", "undone", "said"),
    [
        ("ALTER ROLE curator SUPERUSER", "ALTER ROLE curator NOSUPERUSER", "superuser"),
        ("GRANT owner TO curator", "REVOKE owner FROM curator", "superuser"),
        ("GRANT pg_read_server_files TO curator", "REVOKE pg_read_server_files FROM curator", "superuser"),
        (
            "REVOKE CREATE ON DATABASE postgres FROM curator",
            "GRANT CREATE ON DATABASE postgres TO curator",
            "may not make a schema",
        ),
        (
            "REVOKE SELECT (days) ON visits FROM curator",
            "GRANT SELECT (days) ON visits TO curator",
            "does not let this user read the column",
        ),
        ("ALTER TABLE visits RENAME TO gone", "ALTER TABLE gone RENAME TO visits", "no such table"),
        (
            "ALTER TABLE visits ALTER days TYPE text",
            "ALTER TABLE visits ALTER days TYPE integer USING days::integer",
            "does not become",
        ),
    ],
)
def test_what_is_refused(postgres: Postgres, tmp_path: Path, statement: str, undone: str, said: str) -> None:
    raw = declared(postgres, tmp_path / "a.ledger")
    raw["tables"]["visits"]["columns"]["days"]["type"] = "integer"
    postgres.run(statement)
    try:
        with pytest.raises(DeclarationError, match=said):
            opened(raw)
    finally:
        postgres.run(undone)
    assert not schemas(postgres)


def test_tables_of_elsewhere_are_refused(postgres: Postgres, tmp_path: Path) -> None:
    (tmp_path / "clinics.csv").write_text("clinic,beds\nnorth,1\n", "utf-8")
    raw = declared(postgres, tmp_path / "a.ledger")
    raw["tables"]["clinics"]["source"] = str(tmp_path / "clinics.csv")
    with opened(raw) as curator, pytest.raises(DeclarationError, match="not on the server where questions run"):
        curator.check()
    raw["tables"]["clinics"]["source"] = f"{postgres.url('curator', 'template1')}::public.clinics"
    with pytest.raises(DeclarationError, match="on several servers"):
        opened(raw)
    with pytest.raises(DeclarationError, match="on the server"):
        declare(dict(raw, engine={"kind": "postgresql", "store": "file"}))
    with pytest.raises(DeclarationError, match='"duckdb" or "postgresql"'):
        declare(dict(raw, engine={"kind": "oracle"}))


def test_an_operator_that_does_not_run_there_is_refused_by_its_name(postgres: Postgres, tmp_path: Path) -> None:
    with opened(declared(postgres, tmp_path / "a.ledger")) as curator:
        with pytest.raises(QuestionError, match="does not run on this engine"):
            curator.ask("SELECT COUNT(*) FROM visits WHERE REGEXP_LIKE(clinic, 'n.*h')", epsilon=1)
        assert curator.budget.used == 0


def test_nothing_is_charged_where_the_server_is_gone(postgres: Postgres, tmp_path: Path) -> None:
    raw = declared(postgres, tmp_path / "a.ledger", budget={"epsilon": 100})
    with opened(raw) as curator:
        curator.ask(COUNT, epsilon=1)
        spent = curator.budget.used
        postgres.stop()
        try:
            with pytest.raises((EngineError, DeclarationError)):
                curator.ask("SELECT SUM(days) FROM visits", epsilon=1)
            gone = curator.budget.used
            with pytest.raises((EngineError, DeclarationError)):
                curator.ask("SELECT SUM(days) FROM visits WHERE days > 1", epsilon=1)
            assert curator.budget.used == gone
        finally:
            postgres.start()
    assert gone <= spent + 0.0101
    with opened(raw) as curator:
        assert curator.ask(COUNT.replace("3", "6"), epsilon=1)


def test_no_row_stands_in_the_server_s_log_and_no_salt_in_a_statement(postgres: Postgres, tmp_path: Path) -> None:
    known = len(postgres.log())
    with opened(declared(postgres, tmp_path / "a.ledger")) as curator:
        for question in QUESTIONS[:4]:
            values(curator, question)
    log = postgres.log()[known:]
    assert "hidden" not in log
    assert PASSWORD not in log
    asked = [line for line in log.splitlines() if "execute <unnamed>: SELECT" in line and "rows_of_person" in line]
    assert asked
    assert all("($1 * " in line for line in asked)


def test_two_curators_begin_at_once(postgres: Postgres, tmp_path: Path) -> None:
    raw, found = declared(postgres, tmp_path / "a.ledger"), list[Any]()

    def begin() -> None:
        try:
            with opened(raw) as curator:
                found.append(values(curator, COUNT))
        except DeclarationError as error:
            found.append(error)

    threads = [threading.Thread(target=begin) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    answers = [one for one in found if isinstance(one, list)]
    assert answers
    assert all(answer == answers[0] for answer in answers)
    assert all("another process makes the same tables" in str(one) for one in found if one not in answers)
    with opened(raw) as curator:
        assert values(curator, COUNT) == answers[0]
    assert len(schemas(postgres)) == 3


@pytest.mark.usefixtures("known")
def test_a_person_who_leaves_moves_nobody_s_rows(postgres: Postgres, tmp_path: Path) -> None:
    """What is known of each other person's rows on the server is the same with and without somebody."""
    stored = []
    for number in range(2):
        with opened(declared(postgres, tmp_path / f"{number}.ledger")) as curator:
            values(curator, COUNT)
            (name,) = [
                one
                for one in schemas(postgres)
                if postgres.rows(f"SELECT to_regclass('{one}.t_766973697473')::text")[0][0]
            ]
            rows = postgres.rows(f"SELECT * FROM {name}.t_766973697473 WHERE c0 <> 7 ORDER BY c0, place_of_row")
            assert len(rows) > 2500
            stored.append(rows)
            for schema in schemas(postgres):
                postgres.run(f"DROP SCHEMA {schema} CASCADE")
        if not number:
            postgres.run(
                "CREATE TABLE kept AS SELECT * FROM visits WHERE person = 7", "DELETE FROM visits WHERE person = 7"
            )
    postgres.run("INSERT INTO visits SELECT * FROM kept", "DROP TABLE kept", "VACUUM visits")
    assert stored[0] == stored[1]


def test_the_demonstration(postgres: Postgres, tmp_path: Path) -> None:
    words = ["demo", "--engine", "postgresql", "--server", postgres.url("curator"), "--output", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "discreet", *words], capture_output=True, text=True, check=True, env=os.environ
    )
    assert 'adds kind = "postgresql"' in done.stdout
    assert "verified: 9 entries" in done.stdout
    assert (tmp_path / "demo.toml").exists()
    assert not schemas(postgres)
    words.remove("--server")
    words.remove(postgres.url("curator"))
    assert subprocess.run([sys.executable, "-m", "discreet", *words], capture_output=True, check=False).returncode == 2


def test_no_other_user_s_operator_runs_as_ours(postgres: Postgres, tmp_path: Path) -> None:
    """Whoever may make operators in a schema of the role's search path sees what is asked there as soon as somebody is
    connected, and would run with our rights."""
    kinds = [(operator, kind) for operator in ("=", "<>") for kind in ("integer", "bigint", "text", '"char"', "name")]
    postgres.run(
        "CREATE ROLE mallory",
        "GRANT CREATE ON SCHEMA public TO mallory",
        "CREATE TABLE taken (who text)",
        "GRANT INSERT ON taken TO public",
        "SET ROLE mallory",
    )
    try:
        for place, (operator, kind) in enumerate(kinds):
            body = "BEGIN INSERT INTO public.taken VALUES (current_user); RETURN true; END"
            postgres.run(
                f"CREATE FUNCTION mine{place}(regproc, {kind}) RETURNS boolean LANGUAGE plpgsql AS $${body}$$",
                f"CREATE OPERATOR {operator} (FUNCTION = mine{place}, LEFTARG = regproc, RIGHTARG = {kind})",
            )
        postgres.run("RESET ROLE")
        with opened(declared(postgres, tmp_path / "a.ledger")) as curator:
            assert values(curator, COUNT)
        assert postgres.rows("SELECT DISTINCT who FROM taken") == []
    finally:
        postgres.run("RESET ROLE", "DROP TABLE taken", "DROP OWNED BY mallory CASCADE", "DROP ROLE mallory")


VISITS_THERE = "t_766973697473"

OTHERWISE: Mapping[str, tuple[str, ...]] = {
    "emptied": (f"TRUNCATE {{0}}.{VISITS_THERE}",),
    "gone": ("DROP SCHEMA {0} CASCADE",),
    "half": (f"DROP TABLE {{0}}.{VISITS_THERE}",),
    "another's": (
        f"ALTER TABLE {{0}}.{VISITS_THERE} OWNER TO owner",
        f"GRANT SELECT ON {{0}}.{VISITS_THERE} TO curator",
    ),
    "replaced": (
        f"CREATE TABLE kept AS SELECT * FROM {{0}}.{VISITS_THERE} WHERE c0 = 7",
        "DROP SCHEMA {0} CASCADE",
        "CREATE SCHEMA {0}",
        f"ALTER TABLE kept RENAME TO {VISITS_THERE}",
        f"ALTER TABLE {VISITS_THERE} SET SCHEMA {{0}}",
        "GRANT USAGE ON SCHEMA {0} TO curator",
        f"GRANT SELECT ON {{0}}.{VISITS_THERE} TO curator",
    ),
}


@pytest.mark.parametrize("way", OTHERWISE)
@pytest.mark.parametrize("soon", [True, False])
def test_no_other_table_is_ever_read(postgres: Postgres, tmp_path: Path, way: str, soon: bool) -> None:
    """Whatever somebody does to a copy that is open: at once a question fails, later it is made anew before a price."""
    with opened(alone(postgres, tmp_path / "a.ledger")) as curator:
        all_of_them = values(curator, "SELECT COUNT(*) FROM visits")
        used = curator.budget.used
        for statement in OTHERWISE[way]:
            postgres.run(statement.format(_of_visits(postgres)))
        if not soon:
            time.sleep(0.3)
        try:
            again = values(curator, "SELECT COUNT(*) FROM visits WHERE days IS NOT NULL")
        except EngineError:
            assert soon
        except DeclarationError as error:
            told = str(error)
            assert way == "replaced"
            assert curator.budget.used == used
            assert "a schema of another user has the name" in told
        else:
            assert again == all_of_them


def _of_visits(server: Postgres) -> str:
    found = server.rows(
        f"SELECT nspname::text FROM pg_namespace WHERE to_regclass(nspname || '.{VISITS_THERE}') IS NOT NULL"
        r" AND nspname LIKE 'discreet\_%'"
    )
    return next((name for (name,) in found), "") or _last(server)


def _last(server: Postgres) -> str:
    """The schema that a statement before has dropped, or made without its table."""
    return re.findall(r"(?:CREATE|DROP) SCHEMA (discreet_\w+)", server.log())[-1]


@pytest.mark.parametrize("way", ["emptied", "half", "another's"])
def test_a_copy_that_is_not_whole_is_made_again(postgres: Postgres, tmp_path: Path, way: str) -> None:
    raw = alone(postgres, tmp_path / "a.ledger")
    with opened(raw) as curator:
        all_of_them = values(curator, "SELECT COUNT(*) FROM visits")
    for statement in OTHERWISE[way]:
        postgres.run(statement.format(_of_visits(postgres)))
    with opened(raw) as curator:
        assert values(curator, "SELECT COUNT(*) FROM visits WHERE days IS NOT NULL") == all_of_them


def test_a_server_that_was_started_anew_costs_nothing(postgres: Postgres, tmp_path: Path) -> None:
    with opened(declared(postgres, tmp_path / "a.ledger", budget={"epsilon": 100})) as curator:
        curator.ask(COUNT, epsilon=1)
        spent = curator.budget.used
        postgres.stop()
        time.sleep(0.3)
        try:
            for _ in range(2):
                with pytest.raises((EngineError, DeclarationError)) as error:
                    curator.ask("SELECT SUM(days) FROM visits", epsilon=1)
            assert "the server does not answer" in str(error.value)
        finally:
            postgres.start()
        assert curator.budget.used == spent
        assert curator.ask("SELECT SUM(days) FROM visits", epsilon=1)


def test_loading_that_ends_at_its_last_step_is_told_in_words(
    postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    true, ended = EngineProcess.call, [(0,)]
    loading = "SELECT pid FROM pg_stat_activity WHERE usename = 'curator' AND state = 'idle in transaction'"

    def call(self: EngineProcess, *request: Any, seconds: float) -> Any:
        if request[0] == "lock" and not ended:
            locks = "SELECT DISTINCT objid, classid FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock'"
            assert len(postgres.rows(locks)) == 3  # before others see what was made
            ended.extend(postgres.rows(loading))
            for (number,) in ended:
                postgres.run(f"SELECT pg_terminate_backend({number}, 300000)")  # waits until it has ended
        return true(self, *request, seconds=seconds)

    monkeypatch.setattr(EngineProcess, "call", call)
    curator = Curator.of(declare(declared(postgres, tmp_path / "a.ledger")))
    with curator:
        ended.clear()
        with pytest.raises(DeclarationError, match="the connection ended"):
            curator.refresh()
        assert ended
        assert curator.budget.used == 0
        assert values(curator, COUNT)


def test_rows_that_another_reads_are_not_made_otherwise(postgres: Postgres, tmp_path: Path) -> None:
    raw = declared(postgres, tmp_path / "a.ledger")
    other = declared(postgres, tmp_path / "a.ledger")
    other["tables"]["visits"]["columns"]["cost"]["max"] = 200  # which clamps no row
    with opened(raw) as curator:
        first = values(curator, COUNT)
        with pytest.raises(DeclarationError, match="another process reads a copy of the same rows"):
            opened(other)
        assert values(curator, COUNT) == first
        assert values(curator, COUNT.replace("3", "4"))
    with opened(other) as curator:
        assert values(curator, COUNT.replace("3", "5"))


@pytest.mark.parametrize(
    "setting", ["transaction_timeout = '40ms'", "statement_timeout = 1", "idle_session_timeout = 300"]
)
def test_what_is_set_for_the_role_ends_nothing(postgres: Postgres, tmp_path: Path, setting: str) -> None:
    if setting.startswith("transaction") and not postgres.rows(
        "SELECT 1 AS n FROM pg_settings WHERE name = 'transaction_timeout'"
    ):
        pytest.skip("this version has no such setting")
    postgres.run(f"ALTER ROLE curator SET {setting}")
    try:
        with opened(declared(postgres, tmp_path / "a.ledger")) as curator:
            assert values(curator, COUNT)
            time.sleep(0.4)
            curator.refresh("visits")
            assert values(curator, COUNT)
    finally:
        postgres.run("ALTER ROLE curator RESET ALL")
