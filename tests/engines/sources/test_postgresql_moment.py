"""Names that change what they mean between the snapshot and the lock: still all tables of one moment."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence

import pytest

from discreet.engines.child import UnreadableSource
from discreet.engines.postgresql.connection import environment
from discreet.engines.postgresql.server import SnapshotConnection
from postgres_tools import Postgres

ONE, TWO = "SELECT CAST(a AS int8) AS c0 FROM m.one", "SELECT CAST(a AS int8) AS c0 FROM m.two"
MADE = (
    "DROP SCHEMA IF EXISTS m CASCADE",
    "CREATE SCHEMA m",
    "CREATE TABLE m.two AS SELECT 1 AS a",
    "GRANT USAGE ON SCHEMA m TO reader",
)
CASES = {
    "swapped": (
        ("CREATE TABLE m.one AS SELECT 1 AS a", "CREATE TABLE m.next AS SELECT 9 AS a"),
        ("ALTER TABLE m.one RENAME TO past", "ALTER TABLE m.next RENAME TO one", "UPDATE m.two SET a = 9"),
        ([9], [9]),
    ),
    "attached": (
        (
            "CREATE TABLE m.one (a integer) PARTITION BY LIST (a)",
            "CREATE TABLE m.first PARTITION OF m.one FOR VALUES IN (1)",
            "INSERT INTO m.one VALUES (1)",
            "CREATE TABLE m.next AS SELECT 9 AS a",
        ),
        (
            "ALTER TABLE m.one ATTACH PARTITION m.next FOR VALUES IN (9)",
            "DELETE FROM m.first",
            "UPDATE m.two SET a = 9",
        ),
        ([9], [9]),
    ),
    "another view": (
        (
            "CREATE TABLE m.past AS SELECT 1 AS a",
            "CREATE TABLE m.next AS SELECT 9 AS a",
            "CREATE VIEW m.one AS SELECT a FROM m.past",
        ),
        ("CREATE OR REPLACE VIEW m.one AS SELECT a FROM m.next", "UPDATE m.two SET a = 9"),
        ([9], [9]),
    ),
}


@pytest.mark.outside
@pytest.mark.parametrize("case", sorted(CASES))
def test_a_name_that_changes_its_meaning_is_read_of_the_same_moment(postgres: Postgres, case: str) -> None:
    made, changed, after = CASES[case]
    postgres.run(*MADE, *made, "GRANT SELECT ON ALL TABLES IN SCHEMA m TO reader")
    seen: list[Sequence[list[int]]] = []
    with postgres.session() as other:
        other.execute("BEGIN")
        for statement in changed:
            other.execute(statement)
        if case == "attached":  # takes no lock that readers wait for: this one keeps the reader at its snapshot
            other.execute("LOCK TABLE m.one IN ACCESS EXCLUSIVE MODE")

        def read() -> None:
            server = SnapshotConnection(postgres.url(), environment(), 60)
            try:
                server.hold([TWO, ONE])
                seen.append([server.read(select, ["x"]).read_all().to_pydict()["x"] for select in one_by_one(server)])
            finally:
                server.close()

        thread = threading.Thread(target=read)
        thread.start()
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'reader' AND wait_event_type = 'Lock'"
        until = time.monotonic() + 300
        while postgres.rows(waiting) != [(1,)] and time.monotonic() < until:
            time.sleep(0.02)
        other.execute("COMMIT")
        thread.join(300)
    assert tuple(seen[0]) in (after, ([1], [1]))


def one_by_one(server: SnapshotConnection) -> Iterator[str]:
    yield ONE
    server.done()
    yield TWO
    server.done()


@pytest.mark.outside
@pytest.mark.parametrize(
    "changed",
    [
        ("ALTER TABLE m.one ATTACH PARTITION m.next FOR VALUES IN (9)", "DELETE FROM m.first"),
        ("ALTER SCHEMA m RENAME TO past", "ALTER SCHEMA past RENAME TO m"),
    ],
)
def test_what_changes_after_the_lock_is_found_out_after_the_last_row(
    postgres: Postgres, changed: Sequence[str]
) -> None:
    """These changes wait for no reader."""
    postgres.run(*MADE, *CASES["attached"][0], "GRANT SELECT ON ALL TABLES IN SCHEMA m TO reader")
    server = SnapshotConnection(postgres.url(), environment(), 60)
    try:
        server.hold([TWO, ONE])
        assert server.read(TWO, ["x"]).read_all().to_pydict() == {"x": [1]}
        server.done()
        postgres.run(*changed)
        with pytest.raises(UnreadableSource, match="changed"):
            server.read(ONE, ["x"]).read_all()
        assert server.why() == "changed"
        server.done()
    finally:
        server.close()


@pytest.mark.outside
def test_what_a_function_of_a_view_reads_is_of_the_moment_too(postgres: Postgres) -> None:
    """It is locked only when it runs: emptied after the snapshot, it would be empty in it."""
    postgres.run(
        *MADE,
        "CREATE TABLE m.kept AS SELECT 1 AS a",
        "CREATE FUNCTION m.all_kept() RETURNS SETOF integer LANGUAGE plpgsql AS"
        " 'BEGIN RETURN QUERY SELECT a FROM m.kept; END'",
        "CREATE VIEW m.one AS SELECT a FROM m.all_kept() AS rows(a)",
        "GRANT SELECT ON ALL TABLES IN SCHEMA m TO reader",
    )
    for changed, found in (("ANALYZE m.kept", [1]), ("TRUNCATE m.kept", None)):
        server = SnapshotConnection(postgres.url(), environment(), 60)
        try:
            server.hold([ONE])
            postgres.run(changed)
            if found is None:
                with pytest.raises(UnreadableSource, match="changed"):
                    server.read(ONE, ["x"]).read_all()
            else:
                assert server.read(ONE, ["x"]).read_all().to_pydict() == {"x": found}
        finally:
            server.close()
