"""Tables of several files: patterns, folders, lists, and versions of Delta tables."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path
from typing import Any

import arro3.core
import deltalake
import duckdb
import pyarrow as pa
import pytest

import discreet
from discreet import Curator, DeclarationError
from discreet.catalog import declare
from discreet.catalog.formats import words_of
from discreet.trusted.ring_a.table import Source

EXACT = "1e20"


def single(source: Any, columns: Any, **more: Any) -> discreet.Table:
    return discreet.Table(source, columns=columns, one_row_per_person=True, **more)


def ask(source: Any, columns: dict[str, Any], question: str, **more: Any) -> list[dict[str, Any]]:
    with Curator({"t": single(source, columns, **more)}, epsilon="1e25") as curator:
        return curator.ask(question, epsilon=EXACT).rows


def refused(source: Any, columns: dict[str, Any], **more: Any) -> str:
    with (
        pytest.raises(DeclarationError) as error,
        Curator({"t": single(source, columns, **more)}, epsilon=1) as curator,
    ):
        curator.ask("SELECT COUNT(*) AS n FROM t", epsilon=1)
    return str(error.value)


def source_of(text: Any) -> Source:
    given = {"source": text, "one_row_per_person": True, "columns": {"a": {"type": "integer"}}}
    return declare({"budget": {"epsilon": 1}, "tables": {"t": given}}).tables["t"].source


SUM = "SELECT COUNT(*) AS n, SUM(a) AS s FROM t"
COLUMNS = {"a": {"type": "integer", "min": 0, "max": 100}}


def write(path: Path, select: str, options: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    duckdb.sql(f"COPY ({select}) TO '{path}' ({options})" if options else f"COPY ({select}) TO '{path}'")


def test_patterns_lists_and_folders(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        write(tmp_path / "in" / f"{number}.parquet", f"SELECT {number} AS a")
        (tmp_path / f"{number}.csv").write_text(f"a,b\n{number},x\n", "utf-8")
    (tmp_path / "9.csv.gz").write_bytes(gzip.compress(b"a,b\n9,x\n"))
    (tmp_path / "in" / "_unfinished.parquet").write_bytes(b"")
    (tmp_path / "in" / ".hidden").mkdir()
    (tmp_path / "in" / ".hidden" / "x.parquet").write_bytes(b"")
    three, four = [{"n": 3, "s": 6}], [{"n": 4, "s": 15}]
    assert ask(str(tmp_path / "in" / "?.parquet"), {"a": (0, 100)}, SUM) == three
    assert ask(f"{tmp_path}/in/", {"a": (0, 100)}, SUM) == three
    assert ask([tmp_path / "in" / "1.parquet", str(tmp_path / "in" / "3.parquet")], {"a": (0, 100)}, SUM) == [
        {"n": 2, "s": 4}
    ]
    assert ask(str(tmp_path / "*.csv"), COLUMNS, SUM) == three
    assert ask([str(tmp_path / "*.csv"), str(tmp_path / "9.csv.gz")], COLUMNS, SUM) == four
    assert ask([str(tmp_path / "*.csv"), str(tmp_path / "1.csv")], COLUMNS, SUM) == three  # each file once
    assert "there is no file" in refused(str(tmp_path / "*.parquet"), {"a": (0, 100)})
    assert "there is no file" in refused(f"{tmp_path}/nowhere/", {"a": (0, 100)})


def test_where_rows_lie_decides_nothing(tmp_path: Path) -> None:
    """Another cut into files is the same source."""
    for number in range(4):
        write(tmp_path / f"{number}.parquet", f"SELECT {number} AS a UNION ALL SELECT {number + 10}")
    ledger = tmp_path / "d.ledger"
    for again in (False, True):
        if again:
            for number in range(4):
                (tmp_path / f"{number}.parquet").unlink()
            write(
                tmp_path / "z.parquet",
                "SELECT i AS a FROM range(3, -1, -1) r(i) UNION ALL SELECT i FROM range(10, 14) r(i)",
            )
        with Curator({"t": single(f"{tmp_path}/", {"a": (0, 100)})}, epsilon="1e25", ledger=ledger) as curator:
            assert curator.ask(SUM, epsilon=EXACT).rows == [{"n": 8, "s": 52}]
    write(tmp_path / "z.parquet", "SELECT 1 AS a")
    with (
        pytest.raises(DeclarationError, match="differs from snapshot 1"),
        Curator({"t": single(f"{tmp_path}/", {"a": (0, 100)})}, epsilon="1e25", ledger=ledger) as curator,
    ):
        curator.ask(SUM, epsilon=EXACT)


def test_keys_in_the_names_of_folders_are_columns(tmp_path: Path) -> None:
    root = tmp_path / "odd=above" / "visits"
    root.mkdir(parents=True)
    city = "CASE WHEN i = 3 THEN NULL ELSE 'a b/' || i % 3 END"
    rows = f"SELECT i AS a, 2020 + i % 2 AS year, {city} AS city FROM range(6) r(i)"
    duckdb.sql(f"COPY ({rows}) TO '{root}' (FORMAT parquet, PARTITION_BY (year, city))")
    columns = {
        "a": (0, 100),
        "year": {"type": "integer", "min": 2020, "max": 2021},
        "city": {"values": ["a b/0", "a b/1"]},
    }
    for source in (f"{root}/", f"{root}/**/*.parquet"):
        question = "SELECT year, SUM(a) AS s FROM t WHERE year > 0 GROUP BY year"
        assert ask(source, columns, question) == [{"year": 2020, "s": 6}, {"year": 2021, "s": 9}]
        found = ask(source, columns, "SELECT city, COUNT(*) AS n FROM t GROUP BY city")
        assert {row["city"]: row["n"] for row in found} == {"a b/0": 1, "a b/1": 2, None: 1}
    with Curator({"t": single(f"{root}/", {"year": None, "a": None})}, epsilon=1) as curator:
        assert [one.type for one in curator.declaration.tables["t"].columns] == ["text", "integer"]
    write(root / "year=2020" / "x.parquet", "SELECT 1 AS a")
    assert "differ in their keys" in refused(f"{root}/", columns)


def test_files_that_differ(tmp_path: Path) -> None:
    write(tmp_path / "p" / "1.parquet", "SELECT 1 AS a, 2 AS b")
    write(tmp_path / "p" / "2.parquet", "SELECT 3.5::DOUBLE AS b, 5 AS a")  # another order, another type
    write(tmp_path / "p" / "3.parquet", "SELECT 7 AS a")
    columns = {"a": (0, 100), "b": (0, 100)}
    question = "SELECT SUM(a) AS a, SUM(b) AS b, COUNT(b) AS n FROM t"
    assert ask(f"{tmp_path}/p/", columns, question) == [{"a": 13, "b": pytest.approx(5.5), "n": 2}]
    (tmp_path / "1.csv").write_text("a,b\n1,2\n", "utf-8")
    (tmp_path / "2.csv").write_text("b,a\n1,2\n", "utf-8")
    said = refused(str(tmp_path / "*.csv"), COLUMNS)
    assert "begin with the same line of names" in said
    assert "not all .csv" in refused([str(tmp_path / "1.csv"), str(tmp_path / "p" / "1.parquet")], COLUMNS)
    assert "neither .csv" in refused([], COLUMNS)
    assert "neither .csv" in refused([1, 2], COLUMNS)
    (tmp_path / "p" / "4.parquet").write_bytes(b"nothing")
    assert "cannot be read as parquet" in refused(f"{tmp_path}/p/", columns)


def test_names_with_signs_are_names_where_there_is_such_a_file(tmp_path: Path) -> None:
    (tmp_path / "what?[1]*.csv").write_text("a\n1\n", "utf-8")
    (tmp_path / "whatx[1]y.csv").write_text("a\n2\n", "utf-8")
    assert ask(str(tmp_path / "what?[1]*.csv"), COLUMNS, SUM) == [{"n": 1, "s": 1}]
    assert ask(str(tmp_path / "wh*[1]*.csv"), COLUMNS, SUM) == [{"n": 2, "s": 3}]


def test_a_version_of_a_delta_table(tmp_path: Path) -> None:
    folder = tmp_path / "visits"
    deltalake.write_deltalake(str(folder), pa.table({"a": [1, 2, 3], "g": ["x", "y", "x"]}), partition_by=["g"])
    deltalake.write_deltalake(str(folder), pa.table({"a": [40], "g": ["z"]}), mode="append")
    deltalake.DeltaTable(str(folder)).delete("a = 1")
    columns = {"a": (0, 100), "g": {"values": ["x", "y", "z"]}}
    sums = [ask(f"{folder}/", columns, SUM, delta={"version": number}) for number in range(3)]
    assert sums == [[{"n": 3, "s": 6}], [{"n": 4, "s": 46}], [{"n": 3, "s": 45}]]
    grouped = ask(f"{folder}/", columns, "SELECT g, COUNT(*) AS n FROM t GROUP BY g", delta={"version": 2})
    assert {row["g"]: row["n"] for row in grouped} == {"x": 1, "y": 1, "z": 1, None: 0}
    tables = {name: single(f"{folder}/", columns, delta={"version": 1}) for name in ("one", "two")}
    with Curator(tables, epsilon="1e25") as curator:  # a version stays what it is
        deltalake.write_deltalake(str(folder), pa.table({"a": [50], "g": ["z"]}), mode="append")
        assert curator.ask("SELECT SUM(a) AS s FROM one", epsilon=EXACT).rows == [{"s": 46}]
        curator.refresh("one")
        assert curator.ask("SELECT SUM(a) AS s FROM one", epsilon=EXACT).rows == [{"s": 46}]
    assert "is a Delta table" in refused(f"{folder}/", columns)
    assert "cannot be read as delta" in refused(f"{folder}/", columns, delta={"version": 99})
    assert "the source has no such column" in refused(f"{folder}/", {"b": int}, delta={"version": 1})
    assert "the number of a version" in refused(f"{folder}/", columns, delta={"version": "last"})
    assert "one Delta table" in refused(str(tmp_path / "x.csv"), COLUMNS, delta={"version": 1})
    assert "cannot be read as delta" in refused(f"{tmp_path}/", columns, delta={"version": 1})


def test_an_iceberg_table_is_no_folder_of_files(tmp_path: Path) -> None:
    write(tmp_path / "t" / "data" / "x.parquet", "SELECT 1 AS a")
    (tmp_path / "t" / "metadata").mkdir()
    (tmp_path / "t" / "metadata" / "v1.metadata.json").write_text("{}", "utf-8")
    assert "is an Iceberg table" in refused(f"{tmp_path}/t/", COLUMNS)


def test_what_a_declaration_says(tmp_path: Path) -> None:
    assert source_of("visits/").kind == "parquet"
    assert words_of(source_of(["a.csv", "b.csv.gz"])).endswith("a.csv and 1 more")
    (tmp_path / "folder").mkdir()
    with pytest.raises(DeclarationError) as error:
        source_of(str(tmp_path / "folder"))
    assert error.value.faults[0].fix == f'write source = "{tmp_path}/folder/" for all Parquet files in this folder'


def test_what_hands_out_arrow_streams_is_a_table() -> None:
    relation = duckdb.sql("SELECT 5 AS a UNION ALL SELECT 6")
    assert ask(relation, {"a": (0, 100)}, SUM) == [{"n": 2, "s": 11}]
    assert ask(arro3.core.Table(pa.table({"a": [1, 2]})), {"a": (0, 100)}, SUM) == [{"n": 2, "s": 3}]
    once = pa.table({"a": [1]}).to_reader()
    assert "cannot be read as a table" in refused(once, {"a": (0, 100)})


@pytest.mark.outside
def test_a_first_declaration_of_a_folder(tmp_path: Path) -> None:
    write(tmp_path / "visits" / "year=2024" / "x.parquet", "SELECT 1 AS a")
    for source, name in (("visits/", "visits"), ("visits/*/*.parquet", "visits")):
        command = [sys.executable, "-m", "discreet", "init", source, "--one-row-per-person"]
        said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert said.returncode == 0, said.stderr
        text = (tmp_path / f"{name}.toml").read_text("utf-8")
        assert f"[tables.{name}]" in text
        assert f'source = "{source}"' in text
        assert 'year = { type = "text" }' in text
        with discreet.open(tmp_path / f"{name}.toml") as curator:
            assert "year" in repr(curator.tables)
        (tmp_path / f"{name}.toml").unlink()
