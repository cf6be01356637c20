"""Sources to which files are added: the file of a table is then what reading all of them would have made."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow
import pyarrow.csv
import pyarrow.parquet as parquet
import pytest
from deltalake import write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet.catalog import read
from discreet.catalog.model import EngineLimits, Store
from discreet.curator import Curator
from discreet.engines.duckdb import store
from discreet.engines.duckdb.driver import DuckDB
from discreet.engines.duckdb.sources import DuckDBSources
from discreet.trusted.ring_a.names import table_name
from discreet.trusted.ring_a.table import Source, SourceKind, Table
from engine_tools import declaration, frame, planned
from kinds import examples, some

KIND = "engine"
UNITS: list[dict[str, Any]] = [
    {"person": "p", "rows_per_person": 3, "groups_per_person": 2},
    {"person": "p", "one_row_per_person": True},
]
QUESTIONS = (
    "SELECT g, COUNT(DISTINCT p), SUM(w, contribution_bounds_per_group => (0, 5)) FROM t GROUP BY g",
    "SELECT g, MEDIAN(w), COUNT(DISTINCT h) FROM t GROUP BY g",
)

ROWS = st.builds(
    lambda times, k, **row: [{**row, "k": (k + n) % 5, "v": n % 7} for n in range(times)],
    times=st.sampled_from((1, 1, 1, 2, 60)),  # a person has more rows than are kept, or nearly so, at times
    p=st.sampled_from((None, "", "a", "b", "ü", "c" * 200)),
    g=st.sampled_from("xyz"),
    h=st.sampled_from((None, "ü1", "ü2")),
    k=st.integers(0, 4),
    w=st.sampled_from((None, -0.0, 0.0, 1 / 3, float("nan"), 1e300)),
).map(list)
FILES = st.lists(
    st.lists(ROWS, max_size=8).map(lambda lists: [row for one in lists for row in one]), min_size=1, max_size=3
)


def engine_of(folder: Path | None) -> DuckDB:
    kind = Store.FILE if folder else Store.MEMORY
    return DuckDB(EngineLimits(memory_gib=1, store=kind, folder=folder))


def write(folder: Path, kind: str, table: Table, files: Sequence[Sequence[dict[str, Any]]], first: int = 0) -> None:
    for number, rows in enumerate(files, first):
        path = folder / f"{number * 7 % 10}.{kind}"  # those that are added do not stand behind the others
        if kind == "parquet":
            parquet.write_table(frame(table, rows), path)
        else:
            pyarrow.csv.write_csv(frame(table, rows), path)


@pytest.mark.parametrize(
    ("unit", "kind"), some([(unit, kind) for unit in UNITS for kind in ("parquet", "csv")], pytest.mark.storm)
)
@settings(max_examples=examples(4))
@given(first=FILES, then=FILES, buckets=st.sampled_from((1, 5)))
def test_what_grows_is_what_reading_all_of_it_gives(
    unit: dict[str, Any], kind: str, buckets: int, first: Any, then: Any
) -> None:
    known = declaration(unit)
    plans = [root for text in QUESTIONS for root in planned(text, known).roots] if "rows_per_person" in unit else []
    with tempfile.TemporaryDirectory() as place, patch.object(store, "buckets", lambda *_, **__: buckets):
        files, kept = Path(place) / "in", Path(place) / "snapshots"
        files.mkdir()
        table = replace(known.tables["t"], source=Source(SourceKind(kind), files / f"*.{kind}"))
        write(files, kind, table, first)
        with patch("discreet.engines.driver.positions", lambda *_: "a key"):
            grown, whole = engine_of(kept), engine_of(None)
            before = grown.load(table, b"")
            grown.close()
            write(files, kind, table, then, len(first))
            assert whole.load(table, b"") == grown.advance(table, b"", before)[0]  # type: ignore[index]
        found = []
        for engine in (grown, whole):
            assert engine._process is not None
            rows = engine._process.call("run", f"SELECT * FROM {table_name(table)} ORDER BY ALL", seconds=60)["rows"]
            with patch("secrets.token_hex", lambda _size: "5a17"):
                totals = [sorted(engine.run(root, table), key=repr) for root in plans]
            found.append((rows, totals))
            engine.close()
    assert found[0] == found[1]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    write_visits(tmp_path, "1", [1, 2, 3] * 50)
    write_visits(tmp_path, "2", [3, 4])
    (tmp_path / "clinic.toml").write_text(DECLARED, "utf-8")
    with discreet.open(tmp_path / "clinic.toml"):
        pass
    return tmp_path


DECLARED = """
[budget]
epsilon = 1000000000
delta = 1e-6
[engine]
store = "file"
[tables.visits]
source = "in/"
person = "id"
rows_per_person = 3
groups_per_person = 2
columns = { id = { type = "integer" }, x = { type = "text" } }
"""


def write_visits(folder: Path, name: str, ids: list[int]) -> None:
    columns = {"id": pyarrow.array(ids, pyarrow.int64()), "x": pyarrow.array([n % 5 for n in ids], pyarrow.int64())}
    parquet.write_table(pyarrow.table(columns), folder / "in" / f"{name}.parquet")


def refreshed(folder: Path) -> tuple[bool, bool, int | None]:
    """Whether the table changed, whether its source was read, and of how many added files. Then it is right."""
    with discreet.open(folder / "clinic.toml") as curator:
        state = curator.refresh().tables["visits"]
        count = curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon=10**6).rows[0]["n"]
    ids = [one for path in (folder / "in").glob("*.parquet") for one in parquet.read_table(path)["id"].to_pylist()]
    assert abs(count - sum(min(3, ids.count(one)) for one in {*ids})) < 1
    return state.changed, state.read, state.added


def test_files_that_were_added_are_read_and_no_others(folder: Path) -> None:
    assert refreshed(folder) == (False, False, 0)
    write_visits(folder, "0", [4, 5, 6])
    write_visits(folder, "3", [6])
    with patch.object(DuckDBSources, "load", side_effect=AssertionError):
        assert refreshed(folder) == (True, True, 2)
        assert refreshed(folder) == (False, False, 0)
        write_visits(folder, "4", [])
        assert refreshed(folder) == (False, True, 1)
    with discreet.open(folder / "clinic.toml") as curator:
        assert curator.ledger.snapshot("visits").number == 5  # type: ignore[union-attr]


def test_where_more_than_added_files_differs_all_are_read(folder: Path) -> None:
    write_visits(folder, "3", [7])
    write_visits(folder, "2", [3, 4, 8])
    assert refreshed(folder) == (True, True, None)
    (folder / "in" / "1.parquet").unlink()
    write_visits(folder, "4", [9])
    assert refreshed(folder) == (True, True, None)


@pytest.mark.parametrize("values", [[0.5, 1.0], ["0", "1"], None])
def test_a_column_of_another_type_in_an_added_file_has_all_of_them_read(folder: Path, values: Any) -> None:
    """Whole numbers beside a fraction are read as fractions: 1 is then the text 1.0, in the older files too."""
    columns = {"id": [8, 9], **({} if values is None else {"x": values})}
    parquet.write_table(pyarrow.table(columns), folder / "in" / "3.parquet")
    assert refreshed(folder) == (True, True, None)


def test_an_added_file_that_cannot_be_read_leaves_the_snapshot(folder: Path) -> None:
    write_visits(folder, "3", [7] * 1000)
    bytes_ = (folder / "in" / "3.parquet").read_bytes()
    (folder / "in" / "3.parquet").write_bytes(bytes_[:4] + bytes(200) + bytes_[204:])
    with discreet.open(folder / "clinic.toml") as curator:
        with pytest.raises(discreet.DeclarationError, match="cannot be read"):
            curator.refresh()
        assert curator.ledger.snapshot("visits").number == 1  # type: ignore[union-attr]
        curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon=1)
    assert not [*(folder / "clinic.snapshots").glob("building-*")]


def test_a_version_of_a_delta_table_is_read_once(folder: Path) -> None:
    write_deltalake(folder / "delta", pyarrow.table({"id": [1, 2], "x": ["a", "b"]}))
    write_deltalake(folder / "delta", pyarrow.table({"id": [3], "x": ["a"]}), mode="append")
    declared = DECLARED.replace('source = "in/"', 'source = "delta/"\ndelta = { version = 0 }')
    (folder / "clinic.toml").write_text(declared, "utf-8")

    def told() -> tuple[bool, bool, int | None]:
        with Curator.of(read(folder / "clinic.toml"), load=False) as curator:
            state = curator.refresh().tables["visits"]
        return state.changed, state.read, state.added

    assert told() == (True, True, None)
    assert told() == (False, False, 0)
    write_deltalake(folder / "delta", pyarrow.table({"id": [4], "x": ["a"]}), mode="append")
    assert told() == (False, False, 0)
    (folder / "clinic.toml").write_text(declared.replace("version = 0", "version = 1"), "utf-8")
    assert told() == (True, True, None)
    shutil.rmtree(folder / "delta")
    write_deltalake(folder / "delta", pyarrow.table({"id": [1, 2], "x": ["a", "b"]}))
    write_deltalake(folder / "delta", pyarrow.table({"id": [4], "x": ["a"]}), mode="append")
    assert told() == (True, True, None)
