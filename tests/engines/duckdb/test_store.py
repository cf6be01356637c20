"""Tables kept in files: the same rows as in memory, whole or not there, and read again only when the owner says so."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow
import pyarrow.parquet as parquet
import pytest

import discreet
from discreet.catalog import read
from discreet.catalog.model import EngineLimits, Store
from discreet.curator import Curator
from discreet.engines.duckdb import store
from discreet.engines.duckdb.driver import DuckDB
from discreet.engines.duckdb.names import MOST_FILES
from discreet.engines.duckdb.sources import DuckDBSources
from discreet.engines.process import EngineProcess
from discreet.errors import DeclarationError, EngineError
from discreet.trusted.ring_a.names import table_name
from discreet.trusted.ring_a.table import Source, SourceKind, Table
from discreet.trusted.ring_a.windows import Salt
from engine_tools import declaration, frame, planned
from face_tools import Command
from kinds import some

KIND = "engine"
QUESTIONS = (
    "SELECT g, COUNT(*), SUM(v) FROM t WHERE k > 0 GROUP BY g",
    "SELECT g, COUNT(DISTINCT p), SUM(w, contribution_bounds_per_group => (0, 5)) FROM t GROUP BY g",
    "SELECT k, SUM(v, contribution_bounds_per_group => (0, 5)) FROM t WHERE w > 0 GROUP BY k",
    "SELECT g, MEDIAN(w), COUNT(DISTINCT h) FROM t GROUP BY g",
    *(  # more than are kept beside a table, so some are dropped and built again
        f"SELECT {keys}, SUM(v, contribution_bounds_per_group => (0, 5)) FROM t {where} GROUP BY {keys}"
        for keys in ("g", "k", "g, k", "h", "g, h")
        for where in ("", "WHERE v > 1")
    ),
)
ROWS = [
    {"p": f"p{n % 97}", "g": "xyz"[n % 3], "h": f"ü{n % 11}", "k": n % 4, "v": n % 7, "w": n % 9 / 3}
    for n in range(900)
] + [{"p": None, "g": "x"}, {"p": "alone", "w": -0.0}, *({"p": "most", "k": 1, "v": n % 7} for n in range(50))]
DECLARED = """
[budget]
epsilon = 100
delta = 1e-6
[engine]
store = "file"
{engine}
[tables.visits]
source = "visits.parquet"
person = "id"
rows_per_person = 3
groups_per_person = 2
[tables.visits.columns]
id = {{ type = "integer" }}
city = {{ type = "text", values = ["a", "b"] }}
x = {{ type = "number", min = 0, max = {most} }}
[tables.people]
source = "people.csv"
one_row_per_person = true
[tables.people.columns]
age = {{ type = "integer", min = 0, max = 120 }}
"""
COUNT = "SELECT city, COUNT(*) AS n, SUM(x) AS s FROM visits GROUP BY city"


def loaded(table: Table, folder: Path | None) -> DuckDB:
    engine = DuckDB(EngineLimits(memory_gib=1, store=Store.FILE if folder else Store.MEMORY, folder=folder))
    with patch("discreet.engines.driver.positions", lambda *_: "a key"):
        engine.load(table, b"")
    return engine


UNITS: list[dict[str, Any]] = [
    {"person": "p", "rows_per_person": 3, "groups_per_person": 2},
    {"person": "p", "one_row_per_person": True},
    {"one_row_per_person": True},
    {"public": True},
]


CASES = [(unit, buckets) for buckets in (4, 1, 16) for unit in UNITS]


@pytest.mark.parametrize(("unit", "buckets"), some(CASES, pytest.mark.power, len(UNITS)))
def test_a_file_holds_the_rows_that_memory_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unit: dict[str, Any], buckets: int
) -> None:
    monkeypatch.setattr(store, "buckets", lambda *_, **__: buckets)
    known = declaration(unit)
    table = replace(known.tables["t"], source=Source(SourceKind.FRAME, frame=frame(known.tables["t"], ROWS)))
    everything = f"SELECT * FROM {table_name(table)} ORDER BY ALL"
    plans = [root for text in QUESTIONS for root in planned(text, known).roots] if "rows_per_person" in unit else []
    found = []
    for folder in (None, tmp_path / "t.snapshots"):
        engine = loaded(table, folder)
        assert engine._process is not None
        rows = engine._process.call("run", everything, seconds=60)["rows"]
        with patch("secrets.token_hex", lambda _size: "5a17"):
            totals = [sorted(engine.run(root, table), key=repr) for root in [*plans, *plans]]
        found.append((rows, totals))
        engine.close()
    assert len(found[0][0]) > 90
    assert found[0] == found[1]


def answers(release: Any) -> list[dict[str, Any]]:
    return [dict(row) for row in release.rows]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, 200)
    (tmp_path / "people.csv").write_text("age\n" + "\n".join(str(n % 90) for n in range(300)), "utf-8")
    (tmp_path / "clinic.toml").write_text(DECLARED.format(engine="", most=10), "utf-8")
    return tmp_path


def write(folder: Path, rows: int) -> None:
    ids = [n % 70 for n in range(rows)]
    cities = ["ab"[n % 2] for n in range(rows)]
    numbers = [float(n % 10) for n in range(rows)]
    parquet.write_table(pyarrow.table({"id": ids, "city": cities, "x": numbers}), folder / "visits.parquet")


def kept(folder: Path, kind: str = "[0-9a-f]*-*.duckdb") -> list[str]:
    return sorted(path.name for path in (folder / "clinic.snapshots").glob(kind))


def test_the_source_is_read_once(folder: Path) -> None:
    with discreet.open(folder / "clinic.toml") as curator:
        first = curator.ask(COUNT, epsilon=1)
    files = kept(folder)
    assert len(files) == 2
    for path in (folder / "clinic.snapshots").iterdir():
        assert path.stat().st_mode & 0o077 == 0
    assert not kept(folder, "side-*")
    write(folder, 5_000)  # what stands in the source now is of the next snapshot
    (folder / "people.csv").unlink()
    with discreet.open(folder / "clinic.toml") as curator:
        assert answers(curator.ask(COUNT, epsilon=1)) == answers(first)
        other = curator.ask(COUNT, epsilon=9)
        assert abs(other.rows[0]["n"] - 100) < 60
        assert kept(folder) == files


def test_a_refresh_reads_what_it_names_and_nothing_else(folder: Path) -> None:
    with discreet.open(folder / "clinic.toml") as curator:
        people = curator.ask("SELECT COUNT(*) AS n FROM people", epsilon=1)
        curator.ask(COUNT, epsilon=1)
        files = kept(folder)
        write(folder, 2_000)
        (folder / "people.csv").unlink()
        done = curator.refresh("visits")
        assert done == ("visits",)
        sizes = {path.stat().st_size for path in (folder / "clinic.snapshots").glob("[0-9a-f]*-*.duckdb")}
        assert {state.bytes for state in curator.kept.values()} == sizes
        visits, people_ = (f"{done.tables[name].bytes / 1e6:.1f} MB" for name in ("visits", "people"))  # type: ignore[operator]
        assert repr(done).splitlines() == [
            f"visits: snapshot 2, changed; its source was read into a file of {visits}",
            f"people: snapshot 1, kept; opened from a file of {people_}",
        ]
        assert answers(curator.ask("SELECT COUNT(*) AS n FROM people", epsilon=1)) == answers(people)
        assert [curator.ledger.snapshot(name).number for name in ("visits", "people")] == [2, 1]  # type: ignore[union-attr]
        assert len(kept(folder)) == 2
        assert len({*files} & {*kept(folder)}) == 1
        assert curator.ask(COUNT, epsilon=5).rows[0]["n"] > 90


def test_the_same_rows_under_a_new_number_stay_where_they_are(folder: Path) -> None:
    with discreet.open(folder / "clinic.toml") as curator:
        files = kept(folder)
        assert curator.refresh("visits") == ()
        assert curator.ledger.snapshot("visits").number == 2  # type: ignore[union-attr]
        assert kept(folder) == files


def told(folder: Path, *tables: str) -> dict[str, tuple[bool, bool, int | None]]:
    """What a refresh says of tables: whether each changed, whether its source was read, and of how many added files."""
    with Curator.of(read(folder / "clinic.toml"), load=False) as curator:
        done = curator.refresh(*tables)
        curator.ask(COUNT, epsilon=Fraction(1, 1000))
    return {name: (state.changed, state.read, state.added) for name, state in done.tables.items()}


def test_a_source_that_nobody_touched_is_not_read_again(folder: Path, cli: Command) -> None:
    assert told(folder) == {"visits": (False, True, None), "people": (False, True, None)}
    files = {name: (folder / "clinic.snapshots" / name).stat().st_ino for name in kept(folder)}
    with patch.object(DuckDBSources, "load", side_effect=AssertionError):
        assert told(folder, "visits") == {"visits": (False, False, 0), "people": (False, False, None)}
        said = cli("refresh", str(folder / "clinic.toml")).out
        assert cli("refresh", str(folder / "clinic.toml"), "--json").json["tables"]["people"]["added"] == 0
    assert said.splitlines() == [
        "visits: snapshot 3, as it was; its source was not touched since it was read into a file of 0.8 MB",
        "people: snapshot 2, as it was; its source was not touched since it was read into a file of 0.8 MB",
    ]
    with discreet.open(folder / "clinic.toml") as curator:
        assert [state.number for state in curator.ledger.tables().values()] == [3, 4]
    assert {name: (folder / "clinic.snapshots" / name).stat().st_ino for name in kept(folder)} == files


def test_whoever_asks_costs_anew_whether_a_source_was_touched_or_not(folder: Path) -> None:
    with discreet.open(folder / "clinic.toml") as curator:
        first = curator.ask(COUNT, epsilon=1)
        assert not curator.ask(COUNT, epsilon=1).charged
        curator.refresh()
        second = curator.ask(COUNT, epsilon=1)
        assert second.charged
        assert answers(second) != answers(first)


CHANGES: dict[str, Callable[[Path], Any]] = {
    "written again": lambda folder: write(folder, 200),
    "the time of its writing set back": lambda folder: os.utime(folder / "visits.parquet", ns=(0, 0)),
    "replaced": lambda folder: (
        (folder / "new").write_bytes((folder / "visits.parquet").read_bytes()),
        (folder / "new").rename(folder / "visits.parquet"),
    ),
    "read otherwise": lambda folder: (folder / "clinic.toml").write_text(
        (folder / "clinic.toml").read_text("utf-8").replace('"visits.parquet"', '["visits.parquet", "people.parquet"]'),
        "utf-8",
    ),
    "declared otherwise": lambda folder: (folder / "clinic.toml").write_text(
        DECLARED.format(engine="", most=5), "utf-8"
    ),
    "its file removed": lambda folder: [path.unlink() for path in (folder / "clinic.snapshots").glob("*.duckdb")],
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_may_have_changed_is_read_whole(folder: Path, change: Callable[[Path], Any]) -> None:
    write(folder, 50)
    (folder / "visits.parquet").rename(folder / "people.parquet")
    write(folder, 200)
    told(folder)
    change(folder)
    assert told(folder, "visits")["visits"][1:] == (True, None)
    assert told(folder, "visits")["visits"] == (False, False, 0)


def test_a_change_that_keeps_size_and_time_of_writing_is_noticed(folder: Path) -> None:
    os.utime(folder / "people.csv", ns=(0, 0))
    told(folder)
    text = (folder / "people.csv").read_text("utf-8")
    (folder / "people.csv").write_text(text.replace("17", "71"), "utf-8")
    os.utime(folder / "people.csv", ns=(0, 0))
    assert told(folder, "people")["people"] == (True, True, None)


def test_by_the_clock_all_is_read(folder: Path) -> None:
    (folder / "clinic.toml").write_text(DECLARED.format(engine='every = "1 day"', most=10), "utf-8")
    with discreet.open(folder / "clinic.toml") as curator, patch.object(DuckDBSources, "advance", None):
        with at(hours=25):
            curator.ask(COUNT, epsilon=1)
        assert [state.number for state in curator.ledger.tables().values()] == [2, 2]


def test_a_file_that_is_damaged_is_made_anew_if_the_source_is_as_it_was(folder: Path) -> None:
    with discreet.open(folder / "clinic.toml") as curator:
        first = curator.ask(COUNT, epsilon=1)
    for path in (folder / "clinic.snapshots").glob("*.duckdb"):
        path.write_bytes(path.read_bytes()[:20_000])
    with discreet.open(folder / "clinic.toml") as curator:
        assert answers(curator.ask(COUNT, epsilon=1)) == answers(first)
    for path in (folder / "clinic.snapshots").glob("*.duckdb"):
        path.unlink()
    write(folder, 201)
    with discreet.open(folder / "clinic.toml") as curator, pytest.raises(DeclarationError, match="snapshot 1"):
        curator.ask(COUNT, epsilon=2)


def test_a_file_of_another_declaration_is_not_taken(folder: Path) -> None:
    with discreet.open(folder / "clinic.toml"):
        files = kept(folder)
    (folder / "clinic.toml").write_text(DECLARED.format(engine="", most=5), "utf-8")
    with discreet.open(folder / "clinic.toml") as curator:
        with pytest.raises(DeclarationError, match="what is declared of it"):
            curator.ask(COUNT, epsilon=2)
        curator.refresh()
        curator.ask(COUNT, epsilon=2)
        assert len({*files} & {*kept(folder)}) == 1


@pytest.mark.parametrize("part", [0.5, 0.9, 0.999])
def test_a_file_that_was_cut_is_noticed_when_it_is_opened(folder: Path, part: float) -> None:
    write(folder, 50_000)
    with discreet.open(folder / "clinic.toml"):
        pass
    whole = {path: path.stat().st_size for path in (folder / "clinic.snapshots").glob("*.duckdb")}
    for path, size in whole.items():
        os.truncate(path, int(size * part))
    with discreet.open(folder / "clinic.toml") as curator:
        curator.ask(COUNT, epsilon=1)
    assert {path: path.stat().st_size for path in (folder / "clinic.snapshots").glob("*.duckdb")} == whole


def test_what_others_may_read_is_refused(folder: Path) -> None:
    snapshots = folder / "clinic.snapshots"
    snapshots.mkdir(mode=0o755)
    with pytest.raises(DeclarationError, match="others may read"):
        discreet.open(folder / "clinic.toml")
    assert not kept(folder, "*")
    snapshots.chmod(0o700)
    with discreet.open(folder / "clinic.toml"):
        pass
    for changed in (snapshots / kept(folder)[0], snapshots):
        mode = changed.stat().st_mode
        changed.chmod(mode | 0o040)
        with pytest.raises(DeclarationError, match="others may read"):
            discreet.open(folder / "clinic.toml")
        changed.chmod(mode)
    with discreet.open(folder / "clinic.toml") as curator:
        curator.ask(COUNT, epsilon=1)


def test_the_folder_may_be_a_link_to_another_disk(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    there = tmp_path_factory.mktemp("disk")
    there.chmod(0o700)
    (folder / "clinic.snapshots").symlink_to(there)
    with discreet.open(folder / "clinic.toml") as curator:
        curator.ask(COUNT, epsilon=1)
        assert len([*there.glob("[0-9a-f]*-*.duckdb")]) == 2
    there.chmod(0o750)
    with pytest.raises(DeclarationError, match="others may read"):
        discreet.open(folder / "clinic.toml")


def test_where_nothing_can_be_written_beside_a_file_it_is_told(folder: Path) -> None:
    with discreet.open(folder / "clinic.toml"):
        pass
    (folder / "clinic.snapshots" / "side.lock").unlink()
    (folder / "clinic.snapshots" / "side.lock").mkdir()
    with pytest.raises(DeclarationError, match="cannot be kept in"):
        discreet.open(folder / "clinic.toml")


def test_a_public_table_that_cannot_be_kept_leaves_the_others_as_they_are(folder: Path) -> None:
    declared = folder / "clinic.toml"
    public = (
        '[tables.towns]\nsource = "towns.csv"\npublic = true\n[tables.towns.columns]\nzone = { type = "integer" }\n'
    )
    declared.write_text(declared.read_text("utf-8") + public, "utf-8")
    good = b"zone\n" + b"1\n2\n" * 100_000
    (folder / "towns.csv").write_bytes(good)
    with discreet.open(declared) as curator:
        curator.ask(COUNT, epsilon=1)
    (path,) = store.others(folder / "clinic.snapshots", curator.declaration.tables["towns"], "")
    path.unlink()
    (folder / "towns.csv").write_bytes(good + b"\xff\xfe\n")  # it fails after its file was begun
    with discreet.open(declared) as curator:
        curator.ask(COUNT, epsilon=2)
        assert not kept(folder, "building-*")
        with pytest.raises(DeclarationError, match="towns"):
            curator.ask("SELECT COUNT(*) AS n FROM visits JOIN towns ON visits.id = towns.zone", epsilon=1)


def test_what_another_process_makes_and_has_not_registered_is_left_there(folder: Path) -> None:
    snapshots = folder / "clinic.snapshots"
    with discreet.open(folder / "clinic.toml") as curator:
        visits = curator.declaration.tables["visits"]
    theirs, unfinished = store.place(snapshots, visits, "f" * 64), snapshots / "building-1-a.duckdb"
    for path in (theirs, unfinished):
        path.write_bytes(b"")
        path.chmod(0o600)
    with open(snapshots / store.LOCK, "r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with discreet.open(folder / "clinic.toml") as curator:  # opening waits for nobody
            curator.ask(COUNT, epsilon=1)
        assert theirs.exists()
        assert unfinished.exists()
    with discreet.open(folder / "clinic.toml"):
        assert not theirs.exists()
        assert not unfinished.exists()
        assert len(kept(folder)) == 2


def together(*works: Callable[[], None]) -> None:
    """Does these at once; whatever one raises is raised."""
    with ThreadPoolExecutor() as pool:
        for done in [pool.submit(work) for work in works]:
            done.result()


def test_of_two_that_begin_at_once_one_makes_the_files(folder: Path) -> None:
    made: list[str] = []
    load = DuckDBSources.load

    def counted(self: DuckDBSources, table: Table, *rest: Any) -> str:
        made.append(table.name)
        return load(self, table, *rest)

    def opened() -> None:
        with discreet.open(folder / "clinic.toml") as curator:
            curator.ask(COUNT, epsilon=1)

    write(folder, 100_000)
    with patch.object(DuckDBSources, "load", counted):
        together(opened, opened)
    assert sorted(made) == ["people", "visits"]
    with discreet.open(folder / "clinic.toml") as curator:
        assert [state.number for state in curator.ledger.tables().values()] == [1, 1]


def test_questions_go_on_while_another_process_takes_the_next_snapshot(folder: Path) -> None:
    write(folder, 100_000)
    with discreet.open(folder / "clinic.toml") as one, discreet.open(folder / "clinic.toml") as other:
        write(folder, 200_000)

        def asked() -> None:
            for number in range(20):
                assert one.ask(COUNT, epsilon=1 + Fraction(number, 100)).rows[0]["n"] is not None

        together(asked, lambda: other.refresh("visits") and None)
        assert one.ledger.snapshot("visits").number == 2  # type: ignore[union-attr]
        assert all(not state.failures for state in one.ledger.tables().values())
        assert one.ask(COUNT, epsilon=2).charged or other.ask(COUNT, epsilon=2).charged
        assert len(kept(folder)) == 2


def test_two_curators_read_one_file_and_build_beside_it_apart(folder: Path) -> None:
    grouped = "SELECT city, SUM(x, contribution_bounds_per_group => (0, 9)) AS s FROM visits WHERE x > 1 GROUP BY city"
    with discreet.open(folder / "clinic.toml") as one, discreet.open(folder / "clinic.toml") as other:
        one.ask(grouped, epsilon=1)
        other.ask(grouped, epsilon=2)
        assert len(kept(folder, "side-*.duckdb")) == 6  # of each one for each table, and one for other things
        assert len(kept(folder)) == 2
    assert not kept(folder, "side-*")
    assert len(kept(folder, "left-*")) == 2
    with discreet.open(folder / "clinic.toml") as curator, building() as built:
        curator.ask(grouped, epsilon=3)
        assert not built
        assert len(kept(folder, "left-*")) == 1  # the other had nothing more


def salted() -> AbstractContextManager[Any]:
    """The salt of each question is the same; names of files differ all the same."""
    of = Salt.of
    return patch.object(Salt, "of", lambda _: of("5a17"))


@contextmanager
def building() -> Iterator[list[Any]]:
    """What is built meanwhile beside tables."""
    built: list[Any] = []
    call = EngineProcess.call

    def counted(self: EngineProcess, *request: Any, seconds: float) -> Any:
        built.extend([request] if request[0] == "build" else [])
        return call(self, *request, seconds=seconds)

    with patch.object(EngineProcess, "call", counted):
        yield built


@pytest.mark.parametrize("buckets", [1, 16])
def test_what_was_built_beside_a_table_is_there_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, buckets: int
) -> None:
    monkeypatch.setattr(store, "buckets", lambda *_, **__: buckets)
    known = declaration(UNITS[0])
    table = replace(known.tables["t"], source=Source(SourceKind.FRAME, frame=frame(known.tables["t"], ROWS)))
    plans = [[root for text in QUESTIONS[part] for root in planned(text, known).roots] for part in (slice(3), slice(5))]
    engine = loaded(table, None)
    with salted():
        exact = [sorted(engine.run(root, table), key=repr) for root in plans[1]]
    engine.close()
    folder, made = tmp_path / "t.snapshots", []
    with patch("discreet.engines.driver.positions", lambda *_: "a key"):
        for start in range(4):
            engine = DuckDB(EngineLimits(memory_gib=1, store=Store.FILE, folder=folder))
            if start == 0:
                fingerprint = engine.load(table, b"")
            else:
                assert engine.open(table, b"", fingerprint)
            engine.lock()
            with building() as built, salted():
                asked = plans[start > 1]
                found = [sorted(engine.run(root, table), key=repr) for root in asked]
            assert found == exact[: len(asked)]
            made.append(len(built))
            engine.close()
    assert made[0] > 0
    assert made[1] == 0
    assert made[2] > 0
    assert made[3] == 0


GROUPED = "SELECT city, SUM(x, contribution_bounds_per_group => (0, 9)) AS s FROM visits WHERE x > 1 GROUP BY city"


@pytest.mark.parametrize("touched", [False, True])
def test_what_was_built_goes_with_its_number_whether_rows_changed_or_not(folder: Path, touched: bool) -> None:
    with discreet.open(folder / "clinic.toml") as curator:
        curator.ask(GROUPED, epsilon=1)
    (path,) = (folder / "clinic.snapshots").glob("left-*")
    assert path.stat().st_mode & 0o077 == 0
    if touched:
        write(folder, 300)
    with discreet.open(folder / "clinic.toml") as curator, building() as built:
        curator.ask(GROUPED, epsilon=2)
        assert not built
        curator.refresh("visits")
        assert not path.exists()
        curator.ask(GROUPED, epsilon=1)
        assert len(built) == 1
    assert len(kept(folder, "left-*")) == 1


@pytest.mark.parametrize("part", [0, 0.5, 0.99])
def test_what_was_built_and_cut_is_built_again(folder: Path, part: float) -> None:
    write(folder, 50_000)
    with discreet.open(folder / "clinic.toml") as curator:
        curator.ask(GROUPED, epsilon=1)
    (path,) = (folder / "clinic.snapshots").glob("left-*")
    os.truncate(path, int(path.stat().st_size * part))
    with discreet.open(folder / "clinic.toml") as curator, building() as built:
        curator.ask(GROUPED, epsilon=2)
        assert len(built) == 1


BUILDING = """
import os, signal, sys, threading, discreet
with discreet.open(sys.argv[1]) as curator:
    threading.Timer(float(sys.argv[3]), lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
    curator.ask(sys.argv[2], epsilon=1)
    curator._engine.close()
    threading.Event().wait()
"""


@pytest.mark.storm
def test_killed_while_it_builds_or_leaves_what_it_built(folder: Path) -> None:
    write(folder, 300_000)
    told(folder)
    for seconds in (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5, 2.5):
        declared = str(folder / "clinic.toml")
        subprocess.run([sys.executable, "-c", BUILDING, declared, GROUPED, str(seconds)], check=False)
        time.sleep(0.3)  # the engine's process ends with its parent
        with discreet.open(declared) as curator:
            curator.lift()  # who is killed while a question runs has failed: the analyst is suspended
            if curator.ledger.tables()["visits"].frozen:  # and after several such failures nobody is answered
                curator.refresh("visits")
        told(folder, "people")  # the next start goes on with what is there, and removes what nobody finished
        assert len(kept(folder)) == 2
        assert not kept(folder, "side-*")
    with discreet.open(folder / "clinic.toml") as curator:
        curator.ask(GROUPED, epsilon=3)
        curator.lift()


def test_few_files_are_kept_of_what_was_built(folder: Path) -> None:
    for number in range(6):
        question = f"SELECT city, SUM(x + {number}, contribution_bounds_per_group => (0, 9)) FROM visits GROUP BY city"
        with discreet.open(folder / "clinic.toml") as curator:
            assert len(kept(folder, "left-*")) == min(number, MOST_FILES)
            curator.ask(question, epsilon=1)


DYING = """
import sys, discreet
discreet.open(sys.argv[1])
"""


@pytest.mark.storm
def test_killed_at_any_moment_leaves_a_whole_file_or_none(folder: Path) -> None:
    write(folder, 300_000)
    whole = 0
    for wait in (0.3, 0.5, 0.7, 0.9, 1.2, 1.6, 2.2, 4, 8, 16):
        if wait > 2.2 and whole:
            break  # only a busy machine needs longer for one file
        with subprocess.Popen([sys.executable, "-c", DYING, str(folder / "clinic.toml")]) as process:
            time.sleep(wait)
            process.send_signal(signal.SIGKILL)
        time.sleep(0.3)  # the engine's process ends with its parent
        whole += len(kept(folder))
    with discreet.open(folder / "clinic.toml") as curator:
        curator.ask(COUNT, epsilon=1)
        assert len(kept(folder)) == 2
        assert len(kept(folder, "side-*.duckdb")) == 3
        assert not kept(folder, "building-*")
    assert whole > 0


def at(**later: int) -> AbstractContextManager[Any]:
    """The clock of what is due, and of what is registered, is so much later."""

    class Clock(datetime):
        @classmethod
        def now(cls, zone: Any = None) -> Any:
            return datetime.now(zone) + timedelta(**later)

    stack = ExitStack()
    stack.enter_context(patch("discreet.holdings.datetime", Clock))
    stack.enter_context(
        patch("discreet.trusted.ledger.chain.now", lambda: Clock.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
    )
    return stack


def test_a_declared_clock_reads_sources_anew(folder: Path) -> None:
    (folder / "clinic.toml").write_text(DECLARED.format(engine='every = "1 day"', most=10), "utf-8")
    with discreet.open(folder / "clinic.toml") as curator:
        first = curator.ask(COUNT, epsilon=1)
        write(folder, 4_000)
        with at(hours=23):
            assert answers(curator.ask(COUNT, epsilon=1)) == answers(first)
        with at(days=-400):  # a clock that is set back changes nothing
            assert answers(curator.ask(COUNT, epsilon=1)) == answers(first)
        with at(hours=25):
            second = curator.ask(COUNT, epsilon=1)
            assert answers(second) != answers(first)
            assert curator.ledger.snapshot("visits").number == 2  # type: ignore[union-attr]
        write(folder, 5_000)
        for hours in (0, 26, 48):  # it was set back: the next time is a day after the last snapshot's own
            with at(hours=hours):
                assert answers(curator.ask(COUNT, epsilon=1)) == answers(second)
        with at(hours=50):
            assert answers(curator.ask(COUNT, epsilon=1)) != answers(second)
            assert curator.ledger.snapshot("visits").number == 3  # type: ignore[union-attr]


def test_of_two_that_are_due_at_once_one_reads_the_sources(folder: Path) -> None:
    (folder / "clinic.toml").write_text(DECLARED.format(engine='every = "1 day"', most=10), "utf-8")
    with discreet.open(folder / "clinic.toml") as one, discreet.open(folder / "clinic.toml") as other:
        write(folder, 100_000)
        with at(hours=25):
            together(lambda: one.ask(COUNT, epsilon=1) and None, lambda: other.ask(COUNT, epsilon=1) and None)
        assert [state.number for state in one.ledger.tables().values()] == [2, 2]


def test_the_clock_forgets_no_failure(folder: Path) -> None:
    (folder / "clinic.toml").write_text(DECLARED.format(engine='every = "1 day"', most=10), "utf-8")
    with discreet.open(folder / "clinic.toml") as curator:
        with patch.object(DuckDB, "run", side_effect=EngineError), pytest.raises(EngineError):
            curator.ask(COUNT, epsilon=1)
        curator.lift()
        write(folder, 4_000)
        with at(days=3):
            curator.ask("SELECT COUNT(*) AS n FROM people", epsilon=1)
            assert {name: state.number for name, state in curator.ledger.tables().items()} == {"people": 2, "visits": 1}
            assert curator.refresh("visits") == ("visits",)
            assert curator.ledger.tables()["visits"].failures == 0


def test_a_public_table_whose_source_is_gone_when_it_is_due_is_missed_once(folder: Path) -> None:
    text = DECLARED.format(engine='every = "1 day"', most=10) + '[tables.towns]\nsource = "towns.csv"\npublic = true\n'
    (folder / "clinic.toml").write_text(text + '[tables.towns.columns]\nzone = { type = "integer" }\n', "utf-8")
    (folder / "towns.csv").write_text("zone\n1\n2\n", "utf-8")
    with discreet.open(folder / "clinic.toml") as curator:
        curator.ask(COUNT, epsilon=1)
        (folder / "towns.csv").unlink()
        with at(hours=25):
            curator.ask(COUNT, epsilon=1)
            process = curator._engine.rows  # type: ignore[attr-defined]
            curator.ask(COUNT, epsilon=2)
            assert curator._engine.rows is process  # type: ignore[attr-defined]
        assert {name: state.number for name, state in curator.ledger.tables().items()} == {
            "people": 2,
            "visits": 2,
            "towns": 1,
        }


@pytest.mark.parametrize(
    ("wrong", "told"), [('store = "disk"', "where tables are kept"), ('every = "daily"', "a time after")]
)
def test_what_is_declared_wrong_is_told(folder: Path, wrong: str, told: str) -> None:
    text = DECLARED.format(engine=wrong, most=10)
    (folder / "clinic.toml").write_text(text if "every" in wrong else text.replace('store = "file"\n', ""), "utf-8")
    with pytest.raises(DeclarationError, match=told):
        discreet.open(folder / "clinic.toml")


def test_large_sources_are_kept_in_files_and_small_ones_in_memory(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "clinic.toml").write_text(DECLARED.format(engine="", most=10).replace('store = "file"\n', ""), "utf-8")
    monkeypatch.setattr(store, "LARGE", os.path.getsize(folder / "people.csv") + 1)
    with discreet.open(folder / "clinic.toml") as curator:
        assert len(kept(folder)) == 1
        curator.ask(COUNT, epsilon=1)
        curator.ask("SELECT COUNT(*) FROM people", epsilon=1)
    (folder / "visits.parquet").rename(folder / "elsewhere.parquet")
    with discreet.open(folder / "clinic.toml") as curator:  # what was kept stays so, whatever became of its source
        curator.ask(COUNT, epsilon=3)
    (folder / "elsewhere.parquet").rename(folder / "visits.parquet")
    (folder / "clinic.toml").write_text(DECLARED.format(engine="", most=10).replace('"file"', '"memory"'), "utf-8")
    with discreet.open(folder / "clinic.toml") as curator:
        curator.ask(COUNT, epsilon=2)


def test_an_owner_is_told_where_tables_are_kept(folder: Path, cli: Command) -> None:
    declared = str(folder / "clinic.toml")
    said = cli("check", declared).out
    assert "visits: kept in a file that is still to be made\n" in said
    with discreet.open(declared):
        pass
    assert "visits: kept in a file of 0.8 MB\n" in cli("check", declared).out
    assert {*cli("check", declared, "--json").json["file_bytes"]} == {"visits", "people"}
    (folder / "clinic.toml").write_text(DECLARED.format(engine="", most=10).replace('"file"', '"memory"'), "utf-8")
    assert "kept in" not in cli("check", declared).out
    assert cli("check", declared, "--json").json["file_bytes"] == {"visits": None, "people": None}


def test_a_disk_without_room_is_told(folder: Path) -> None:
    (folder / "clinic.snapshots").write_text("a file where the folder should be", "utf-8")
    with pytest.raises(DeclarationError, match="cannot be kept in"):
        discreet.open(folder / "clinic.toml")
