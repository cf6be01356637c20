"""What the engine's child refuses once it is locked, and what happens when a question takes too much."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pandas  # noqa: F401
import pytest

from discreet.catalog.model import EngineLimits
from discreet.engines.duckdb.driver import DuckDB
from discreet.engines.duckdb.sources import WORKER
from discreet.engines.process import EngineProcess, Failed
from discreet.engines.protocol import Lost, Stopped
from discreet.errors import EngineError
from discreet.trusted.ring_a.table import Source, SourceKind, Table
from engine_tools import declaration, frame, planned
from waiting import gone, until

ROWS = [{"p": "a", "v": 1, "w": 0.5}, {"p": "b", "v": 2}]


@pytest.fixture(scope="module")
def child() -> Iterator[EngineProcess]:
    """A child with a table, locked as the curator locks it."""
    process = EngineProcess(WORKER)
    process.call("limit", 2, seconds=300)
    process.call("frame", frame(declaration({"one_row_per_person": True}).tables["t"], ROWS), {}, seconds=300)
    process.call("load", ["CREATE TABLE t AS SELECT * FROM frame"], "SELECT count(*) FROM t", b"", seconds=300)
    process.call("forget", seconds=300)
    process.call("lock", seconds=300)
    yield process
    process.kill()


FILE = Path(__file__).as_posix()


@pytest.mark.parametrize(
    "sql",
    [
        f"COPY t TO '{FILE}.csv'",
        f"COPY t FROM '{FILE}'",
        f"ATTACH '{FILE}.duckdb'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "RESET memory_limit",
        "PRAGMA memory_limit = '1TB'",
        f"SELECT * FROM read_csv('{FILE}')",
        f"SELECT * FROM '{FILE}.csv'",
        f"SELECT * FROM read_text('{FILE}')",
        f"SELECT * FROM read_parquet('{FILE}')",
        f"SELECT * FROM glob('{FILE}')",
        "SELECT * FROM read_csv('https://example.com/x.csv')",
        "SELECT * FROM frame",
        "SELECT 1; SELECT 2",
        "SELECT 1; DROP TABLE t",
        "CREATE TABLE u AS SELECT 1",
        "INSERT INTO t SELECT * FROM t",
        "DELETE FROM t",
        "DROP TABLE t",
        "EXPORT DATABASE 'x'",
        "EXPLAIN SELECT 1",
        "CALL pragma_version()",
        "",
        "nonsense",
    ],
)
def test_a_locked_child_answers_one_select_over_its_tables_and_nothing_else(child: EngineProcess, sql: str) -> None:
    with pytest.raises(Failed) as failed:
        child.call("run", sql, seconds=300)
    assert failed.value.args == ()
    assert child.call("run", "SELECT count(*) FROM t", seconds=300)["rows"] == [[2]]
    assert not Path(f"{FILE}.csv").exists()


def test_settings_that_keep_rows_inside(child: EngineProcess) -> None:
    names = ("temp_directory", "enable_external_access", "lock_configuration", "autoload_known_extensions")
    settings = "SELECT " + ", ".join(f"current_setting('{name}')" for name in names)
    assert child.call("run", settings, seconds=300)["rows"] == [["", False, True, False]]


def test_no_variable_of_the_environment_reaches_the_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_PARENT", "value")
    process = EngineProcess(WORKER)
    try:
        environment = Path(f"/proc/{process.pid}/environ").read_bytes()
        process.call("limit", 1, seconds=300)
    finally:
        process.kill()
    assert b"SECRET_OF_THE_PARENT" not in environment


def test_too_much_memory_is_an_error_and_no_more(child: EngineProcess) -> None:
    """The engine, or the address space, refuses. The child may die of it; no message comes out, nothing else breaks."""
    process = EngineProcess(WORKER)
    try:
        process.call("limit", 1, seconds=300)
        with pytest.raises((Failed, Stopped)) as failed:
            process.call("run", "SELECT sum(length(repeat('a', 4000000000)))", seconds=300)
        assert failed.value.args == ()
    finally:
        process.kill()
    assert child.usable


def test_too_long_is_killed() -> None:
    """By itself this would take minutes."""
    process = EngineProcess(WORKER)
    process.call("limit", 1, seconds=300)
    with pytest.raises(Stopped):
        process.call("run", "SELECT count(*) FROM range(100000000000) WHERE hash(range) = 7", seconds=0.5)
    assert not process.usable
    with pytest.raises(Lost):
        process.call("run", "SELECT 1", seconds=1)


def test_what_its_owner_closed_is_lost_and_has_not_failed() -> None:
    process = EngineProcess(WORKER)
    process.call("limit", 1, seconds=300)
    closing = threading.Timer(0.3, process.close)
    closing.start()
    with pytest.raises(Lost):
        process.call("run", "SELECT count(*) FROM range(100000000000) WHERE hash(range) = 7", seconds=300)
    closing.join()


def loaded(seconds: int = 300) -> tuple[DuckDB, Table]:
    known = declaration({"one_row_per_person": True})
    table = Table(
        "t", Source(SourceKind.FRAME, frame=frame(known.tables["t"], ROWS)), known.tables["t"].columns, None, True, 1, 1
    )
    engine = DuckDB(EngineLimits(memory_gib=2, seconds=seconds))
    engine.load(table, b"")
    engine.lock()
    return engine, table


def test_a_dead_child_is_stopped_and_holds_nothing() -> None:
    engine, table = loaded()
    plan = planned("SELECT COUNT(*) FROM t", declaration({"one_row_per_person": True}))
    assert engine.run(plan.root, table) == [((), (2,))]
    assert engine._process is not None
    os.kill(engine._process.pid, signal.SIGKILL)
    with pytest.raises(Stopped):
        engine.run(plan.root, table)
    assert not engine.has("t")
    engine.close()


def test_an_engine_error_tells_nothing() -> None:
    """A plan over a column that the engine's table has not: the error has the one fixed text and no cause."""
    engine, table = loaded()
    wider = declaration({"one_row_per_person": True}, {**{f"x{n}": {"type": "text"} for n in range(20)}})
    plan = planned("SELECT COUNT(x19) FROM t", wider)
    broken = Table("t", table.source, wider.tables["t"].columns, None, True, 1, 1)
    with pytest.raises(EngineError) as failed:
        engine.run(plan.root, broken)
    assert failed.value.args == (EngineError.TEXT,)
    assert failed.value.__cause__ is None
    engine.close()


def test_the_child_ends_with_its_parent() -> None:
    """A process that starts a child and dies at once leaves none behind."""
    pid = os.fork()
    if pid == 0:
        process = EngineProcess(WORKER)
        Path(f"/tmp/discreet-child-{os.getpid()}").write_text(str(process.pid))
        os._exit(0)
    os.waitpid(pid, 0)
    note = Path(f"/tmp/discreet-child-{pid}")
    child = int(note.read_text())
    note.unlink()
    until(lambda: gone(child))


def test_children_are_forked_from_a_process_of_one_thread_that_another_replaces() -> None:
    """A fork copies one thread only: what others held would be held for ever."""
    one = EngineProcess(WORKER)
    assert one.call("limit", 1, seconds=300) == {}
    server = int(_status(one.pid, "PPid"))
    assert _status(server, "Threads") == "1"
    os.kill(server, signal.SIGKILL)
    until(lambda: gone(server))
    assert one.call("run", "SELECT 1", seconds=300)["rows"] == [[1]]
    other = EngineProcess(WORKER)
    assert other.call("limit", 1, seconds=300) == {}
    assert int(_status(other.pid, "PPid")) != server
    assert _status(int(_status(other.pid, "PPid")), "Threads") == "1"  # pandas is loaded there, too
    for process in (one, other):
        process.kill()
        assert not process.usable


def test_a_child_begins_with_an_engine_of_its_own() -> None:
    """It is made before the fork: what one child builds or locks, no other has, and its threads are the usual ones."""
    one, other = EngineProcess(WORKER), EngineProcess(WORKER)
    settings = "SELECT name, value FROM duckdb_settings() WHERE name IN ('threads', 'async_threads') ORDER BY name"
    with duckdb.connect() as usual:
        expected = [list(row) for row in usual.execute(settings).fetchall()]
    tables = "SELECT table_name FROM duckdb_tables()"
    for process in (one, other):
        assert process.call("limit", 1, seconds=300) == {}
        assert process.call("run", settings, seconds=300)["rows"] == expected
    assert one.call("empty", ["CREATE TABLE mine AS SELECT 1 AS x"], seconds=300) == {}
    assert one.call("run", tables, seconds=300)["rows"] == [["mine"]]
    assert one.call("lock", seconds=300) == {}
    third = EngineProcess(WORKER)
    for process in (other, third):
        assert process.call("run", tables, seconds=300)["rows"] == []
    assert third.call("limit", 1, seconds=300) == {}  # what one locks is not locked in another
    for process in (one, other, third):
        process.kill()


def _status(pid: int, name: str) -> str:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(line.partition(":")[2].strip() for line in lines if line.startswith(name + ":"))
