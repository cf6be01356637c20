"""Snapshots of Iceberg tables, against what pyiceberg reads of them."""

from __future__ import annotations

import datetime
import gzip
import json
import shutil
import tempfile
import uuid
import warnings
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable, Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

import discreet
from discreet import Curator, DeclarationError
from discreet.catalog import declare
from discreet.engines.duckdb.iceberg import IcebergTable, paths
from iceberg_tools import avro, catalog, data_files, plain, registered, version, without, write_avro

EXACT = "1e20"
SUM = "SELECT COUNT(*) AS n, SUM(a) AS s FROM t"
COLUMNS = {"a": (0, 100)}
ROWS = pa.schema([("a", pa.int32()), ("g", pa.string())])


def declared(folder: Path, number: Any, columns: Any = COLUMNS, **more: Any) -> discreet.Table:
    return discreet.Table(f"{folder}/", columns=columns, one_row_per_person=True, iceberg={"version": number}, **more)


def ask(folder: Path, number: int, question: str = SUM, columns: Any = COLUMNS, **more: Any) -> list[dict[str, Any]]:
    with Curator({"t": declared(folder, number, columns)}, epsilon="1e25", **more) as curator:
        return curator.ask(question, epsilon=EXACT).rows


def refused(folder: Path, number: Any, columns: Any = COLUMNS) -> str:
    with (
        pytest.raises(DeclarationError) as error,
        Curator({"t": declared(folder, number, columns)}, epsilon=1) as curator,
    ):
        curator.ask("SELECT COUNT(*) AS n FROM t", epsilon=1)
    return str(error.value)


def rows(*values: int, g: str = "x") -> pa.Table:
    return pa.table({"a": pa.array(values, pa.int32()), "g": [g] * len(values)}, schema=ROWS)


def read(folder: Path, number: int) -> tuple[list[str], Counter[Any]]:
    """The columns and rows of a snapshot, as the engine reads them."""
    engine = duckdb.connect()

    def ids(files: list[str]) -> dict[str, set[int]]:
        found = engine.execute(f"SELECT file_name, field_id FROM parquet_schema({paths(files)})").fetchall()
        return {file: {number for name, number in found if name == file and number} for file in files}

    table = IcebergTable(str(folder), number)
    assert [column[0] for column in engine.execute(table.empty()).description or ()] == table.names
    assert engine.fetchall() == []
    found = engine.execute(table.rows(ids))
    names = [column[0] for column in found.description or ()]
    return names, Counter(found.fetchall())


def as_others_read(table: Table, number: int) -> tuple[list[str], Counter[Any]]:
    found = table.scan(snapshot_id=number).to_arrow()
    return found.column_names, Counter(tuple(row.values()) for row in found.to_pylist())


def test_a_snapshot_is_what_it_was(tmp_path: Path) -> None:
    made = catalog(tmp_path)
    table = made.create_table("n.t", ROWS)
    folder = plain(table.location())
    table.append(rows(1, 2, 3))
    first = version(table)
    table.append(rows(40))
    second = version(table)
    table.delete("a = 1")
    third = version(table)
    assert [ask(folder, one) for one in (first, second, third)] == [
        [{"n": 3, "s": 6}],
        [{"n": 4, "s": 46}],
        [{"n": 3, "s": 45}],
    ]
    tables = {name: declared(folder, second) for name in ("one", "two")}
    with Curator(tables, epsilon="1e25") as curator:
        assert curator.declaration.tables["one"].columns[0].type == "integer"
        table.append(rows(50))
        assert curator.ask("SELECT SUM(a) AS s FROM one", epsilon=EXACT).rows == [{"s": 46}]
        curator.refresh("one")
        assert curator.ask("SELECT SUM(a) AS s FROM one", epsilon=EXACT).rows == [{"s": 46}]
    table = without(made, table, {name: [0] for name in data_files(table)})
    assert ask(folder, version(table)) == [{"n": 1, "s": 3}]
    assert ask(folder, third) == [{"n": 3, "s": 45}]


def test_a_table_kept_in_a_file(tmp_path: Path) -> None:
    made = catalog(tmp_path / "w")
    table = made.create_table("n.t", ROWS)
    table.append(rows(1, 2, 3))
    table = without(made, table, {data_files(table)[0]: [1]})
    (tmp_path / "d.toml").write_text(
        '[budget]\nepsilon = 1e25\n[engine]\nstore = "file"\n[tables.t]\none_row_per_person = true\n'
        f'source = "{plain(table.location())}/"\niceberg = {{ version = {version(table)} }}\n'
        'columns = { a = { type = "integer", min = 0, max = 100 } }\n',
        "utf-8",
    )
    for _ in range(2):
        with discreet.open(tmp_path / "d.toml") as curator:
            assert curator.ask(SUM, epsilon=EXACT).rows == [{"n": 2, "s": 4}]
            assert set(curator.kept) == {"t"}
        shutil.rmtree(plain(table.location()), ignore_errors=True)  # read once


VALUES = {
    "flag": (pa.bool_(), True),
    "day": (pa.date32(), datetime.date(2020, 1, 31)),
    "at": (pa.timestamp("us"), datetime.datetime(2020, 1, 31, 5)),
    "moment": (pa.timestamp("us", "UTC"), datetime.datetime(2020, 1, 31, 5, tzinfo=datetime.UTC)),
    "price": (pa.decimal128(9, 2), Decimal("1.50")),
    "half": (pa.float32(), 0.5),
    "whole": (pa.int64(), 2**40),
    "who": (pa.uuid(), uuid.UUID(int=5).bytes),
    "what": (pa.string(), "né"),
    "many": (pa.list_(pa.int32()), [1, 2]),
    "raw": (pa.binary(), b"\xff"),
}


def test_types_are_the_table_s_own(tmp_path: Path) -> None:
    schema = pa.schema([(name, kind) for name, (kind, _) in VALUES.items()])
    made = catalog(tmp_path)
    table = made.create_table("n.t", schema)
    empty = {name: pa.array([value, None], kind) for name, (kind, value) in VALUES.items()}
    table.append(pa.table(empty, schema=schema))
    names = [name for name in VALUES if name not in ("many", "raw")]
    one = declared(plain(table.location()), version(table), dict.fromkeys(names))
    with Curator({"t": one}, epsilon="1e25") as curator:
        columns = {column.name: column for column in curator.declaration.tables["t"].columns}
        assert [str(columns[name].type) for name in names] == [
            "boolean",
            "date",
            "timestamp",
            "timestamp",
            "number",
            "number",
            "integer",
            "text",
            "text",
        ]
        assert columns["price"].step == 1 / Decimal(100)
        for condition in (
            "flag",
            "day = DATE '2020-01-31'",
            "at = TIMESTAMP '2020-01-31 05:00:00'",
            "moment = TIMESTAMP '2020-01-31 05:00:00'",
            "price = 1.5",
            "half = 0.5",
            "whole = 1099511627776",
            "who = '00000000-0000-0000-0000-000000000005'",
            "what = 'né'",
        ):
            assert curator.ask(f"SELECT COUNT(*) AS n FROM t WHERE {condition}", epsilon=EXACT).rows == [{"n": 1}]
    assert "the source has no such column" in refused(plain(table.location()), version(table), {"many": str})


def test_columns_that_came_went_and_were_renamed(tmp_path: Path) -> None:
    made = catalog(tmp_path)
    table = made.create_table("n.t", ROWS)
    table.append(rows(1))
    numbers = [version(table)]
    with table.update_schema() as change:
        change.rename_column("a", "b")
    with table.update_schema() as change:
        change.add_column("a", StringType())
        change.delete_column("g")
        change.add_column("file_row_number", LongType())
        change.add_column("we\"ird' name", LongType())
    assert read(plain(table.location()), numbers[0])[0] == ["a", "g"]
    table.append(
        pa.table(
            {
                "b": pa.array([2], pa.int32()),
                "a": ["now a text"],
                "file_row_number": [7],
                "we\"ird' name": [8],
            }
        )
    )
    numbers.append(version(table))
    with table.update_schema() as change:
        change.update_column("b", LongType())
        change.add_column("g", LongType())
    table.append(
        pa.table({"b": [2**40], "a": [None], "file_row_number": [9], "we\"ird' name": [9], "g": [10]}).cast(
            table.schema().as_arrow()
        )
    )
    numbers.append(version(table))
    table = without(made, table, {data_files(table)[0]: [0]})
    for number in (*numbers, version(table)):
        assert read(plain(table.location()), number) == as_others_read(table, number)
    assert ask(plain(table.location()), numbers[1], "SELECT SUM(b) AS s FROM t", {"b": (0, 100)}) == [{"s": 3}]
    assert "no such column" in refused(plain(table.location()), numbers[0], {"b": (0, 100)})


def test_columns_that_differ_in_case_alone(tmp_path: Path) -> None:
    table = catalog(tmp_path).create_table("n.t", pa.schema([("a", pa.int32()), ("A", pa.int32()), ("b", pa.int32())]))
    table.append(pa.table({"a": [1], "A": [2], "b": [3]}, schema=table.schema().as_arrow()))
    folder = plain(table.location())
    assert ask(folder, version(table), "SELECT SUM(b) AS s FROM t", {"b": (0, 100)}) == [{"s": 3}]
    assert "more than once" in refused(folder, version(table))


@pytest.mark.parametrize("later", [False, True])
def test_tables_in_parts(tmp_path: Path, later: bool) -> None:
    schema = Schema(NestedField(1, "a", LongType()), NestedField(2, "g", StringType()))
    spec = PartitionSpec(*([] if later else [PartitionField(2, 1000, IdentityTransform(), "g")]))
    made = catalog(tmp_path / "w [1] é")
    table = made.create_table("n.t", schema, partition_spec=spec)
    numbers = []
    for g in ("a b/[*]?%20'=é", "x", None):
        table.append(pa.table({"a": [1, 2, 3], "g": pa.array([g] * 3, pa.string())}))
        numbers.append(version(table))
        if later and g == "x":
            with table.update_spec() as change:
                change.add_identity("g")
    table.delete("a = 2 and g = 'x'")
    numbers.append(version(table))
    table = without(made, table, {name: [0, 1] for name in data_files(table)[1:]})
    for number in (*numbers, version(table)):
        assert read(plain(table.location()), number) == as_others_read(table, number)
    question, columns = "SELECT SUM(a) AS s FROM t WHERE g LIKE 'a b%'", {"a": (0, 9), "g": str}
    assert ask(plain(table.location()), numbers[-1], question, columns) == [{"s": 6}]


def test_tables_of_the_first_version(tmp_path: Path) -> None:
    made = catalog(tmp_path)
    table = made.create_table("n.t", ROWS, properties={"format-version": "1"})
    for more in (rows(1, 2), rows(3)):
        table.append(more)
    table.delete("a = 1")
    assert table.format_version == 1
    for snapshot in table.snapshots():
        found = read(plain(table.location()), snapshot.snapshot_id)
        assert found == as_others_read(table, snapshot.snapshot_id)
    with table.transaction() as change:
        change.upgrade_table_version(2)
    table.append(rows(4))
    table = without(made, table, {name: [0] for name in data_files(table)})
    assert ask(plain(table.location()), version(table)) == [{"n": 0, "s": 0}]


def test_no_rows(tmp_path: Path) -> None:
    table = catalog(tmp_path).create_table("n.t", ROWS)
    folder = plain(table.location())
    assert "no snapshot with this id" in refused(folder, 12)
    table.append(rows())
    assert ask(folder, version(table)) == [{"n": 0, "s": 0}]
    table.append(rows(1))
    table.delete("a = 1")
    assert ask(folder, version(table)) == [{"n": 0, "s": 0}]


STEP = st.one_of(
    st.tuples(st.just("append"), st.lists(st.integers(0, 9), max_size=4)),
    st.tuples(st.just("delete"), st.integers(0, 9)),
    st.tuples(st.just("positions"), st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5)), max_size=4)),
    st.tuples(st.just("rename"), st.none()),
    st.tuples(st.just("add"), st.none()),
    st.tuples(st.just("drop"), st.none()),
)


@given(st.lists(STEP, min_size=1, max_size=8))
@settings(deadline=None, max_examples=25)
def test_every_snapshot_of_a_table_that_lived(steps: list[tuple[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        made = catalog(Path(name))
        table = made.create_table("n.t", pa.schema([("a", pa.int64()), ("b0", pa.int64())]))
        last = 0
        for kind, what in steps:
            others = [column.name for column in table.schema().fields if column.name != "a"]
            if kind == "append":
                columns = {"a": what} | {column: [10 * last] * len(what) for column in others}
                table.append(pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()}))
            elif kind == "delete" and table.current_snapshot() is not None:
                with warnings.catch_warnings(action="ignore"):  # that there is no such row
                    table.delete(f"a = {what}")
            elif kind == "positions" and table.current_snapshot() is not None and (files := data_files(table)):
                gone = {files[file % len(files)]: [at] for file, at in what}
                if gone:  # pyiceberg reads no empty file of deletes
                    table = without(made, table, gone)
            elif kind in ("rename", "add", "drop"):
                last += 1
                with table.update_schema(allow_incompatible_changes=True) as change:
                    if kind == "add" or not others:
                        change.add_column(f"b{last}", LongType())
                    elif kind == "rename":
                        change.rename_column(others[0], f"b{last}")
                    else:
                        change.delete_column(others[0])
        for snapshot in table.snapshots():
            found = read(plain(table.location()), snapshot.snapshot_id)
            assert found == as_others_read(table, snapshot.snapshot_id)


def test_values_that_were_deleted_are_refused_where_they_matter(tmp_path: Path) -> None:
    made = catalog(tmp_path)
    table = made.create_table("n.t", ROWS)
    table.append(rows(1, 2))
    before = version(table)
    table = without(made, table, {"x": [0]}, content=2)
    assert "deleted by their values" in refused(plain(table.location()), version(table))
    assert ask(plain(table.location()), before) == [{"n": 2, "s": 3}]
    table.overwrite(rows(5, 6))
    assert ask(plain(table.location()), version(table)) == [{"n": 2, "s": 11}]  # all rows came after it


def test_positions_of_a_file_that_came_again(tmp_path: Path) -> None:
    """What was deleted of a file does not hold for a later file of its name."""
    made = catalog(tmp_path)
    table = made.create_table("n.t", ROWS)
    table.append(rows(1, 2))
    file = data_files(table)[0]
    table = without(made, table, {file: [0]})
    numbered = version(table)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    listed, schema, facts = avro(plain(snapshot.manifest_list))
    entries, of_entries, entry_facts = avro(plain(listed[0]["manifest_path"]))
    write_avro(
        plain(listed[0]["manifest_path"]), [one | {"sequence_number": 7} for one in entries], of_entries, entry_facts
    )
    listed[0]["manifest_length"] = plain(listed[0]["manifest_path"]).stat().st_size
    write_avro(plain(snapshot.manifest_list), listed, schema, facts)
    assert ask(plain(table.location()), numbered) == [{"n": 2, "s": 3}]


def test_the_folder_alone_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = catalog(tmp_path / "w")
    table = made.create_table("n.t", ROWS, properties={"py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO"})
    table.append(rows(1, 2, 3))
    table = without(made, table, {data_files(table)[0]: [2]})
    (tmp_path / ".pyiceberg.yaml").write_text("] broken", "utf-8")
    for name in ("HOME", "PYICEBERG_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    shutil.copytree(plain(table.location()), tmp_path / "copy")
    shutil.rmtree(tmp_path / "w")
    assert ask(tmp_path / "copy", version(table)) == [{"n": 2, "s": 3}]


def test_names_in_a_store_far_away_are_looked_up_in_the_folder(tmp_path: Path) -> None:
    made = catalog(tmp_path)
    table = made.create_table("n.t", ROWS)
    table.append(rows(1, 2, 3))
    folder, far = plain(table.location()), "s3://bucket/t"
    for path in folder.glob("metadata/*"):
        if path.suffix == ".avro":
            records, schema, facts = avro(path)
            told = json.loads(
                json.dumps(records, default=lambda one: one.decode("latin-1")).replace(table.location(), far)
            )
            for record in told:
                record.get("data_file", {}).update(lower_bounds=None, upper_bounds=None)
                if "manifest_path" in record:
                    record["manifest_length"] = (
                        (folder / record["manifest_path"].removeprefix(f"{far}/")).stat().st_size
                    )
            write_avro(path, told, schema, facts)
        else:
            path.write_text(path.read_text("utf-8").replace(table.location(), far), "utf-8")
    for path in folder.glob("metadata/snap-*.avro"):  # of the length that manifests have now
        records, schema, facts = avro(path)
        for record in records:
            record["manifest_length"] = (folder / record["manifest_path"].removeprefix(f"{far}/")).stat().st_size
        write_avro(path, records, schema, facts)
    assert ask(folder, version(table)) == [{"n": 3, "s": 6}]


def test_what_is_not_there_or_not_whole(tmp_path: Path) -> None:
    made = catalog(tmp_path)
    table = made.create_table("n.t", ROWS)
    table.append(rows(1, 2, 3))
    folder, number = plain(table.location()), version(table)
    assert "is an Iceberg table" in refused_as_files(folder)
    assert "no snapshot with this id" in refused(folder, 12)
    assert "no snapshot with this id" in refused(folder, 0)
    assert "no Iceberg table" in refused(tmp_path, number)
    assert "no Iceberg table" in refused(tmp_path / "nowhere", number)
    assert "the source has no such column" in refused(folder, number, {"b": int})
    for path in (*folder.glob("metadata/*.avro"), *folder.glob("data/*.parquet")):
        whole = path.read_bytes()
        header = whole[: whole.index(whole[-16:]) + 16]  # of an Avro file: up to its first entry
        for part in (whole[:-1], whole[: len(whole) // 2], header, b"", None):
            if part == whole:
                continue
            path.unlink() if part is None else path.write_bytes(part)
            assert "cannot be read as iceberg" in refused(folder, number)
        path.write_bytes(whole)
    newest = max(folder.glob("metadata/*.json"))
    shutil.copy(newest, newest.with_name("00099-written-now.metadata.json"))
    newest.with_name("00099-written-now.metadata.json").write_bytes(newest.read_bytes()[:100])
    assert ask(folder, number) == [{"n": 3, "s": 6}]
    newest.rename(newest.with_name("v2.gz.metadata.json"))
    newest.with_name("v2.gz.metadata.json").write_bytes(
        gzip.compress(newest.with_name("v2.gz.metadata.json").read_bytes())
    )
    assert ask(folder, number) == [{"n": 3, "s": 6}]


def refused_as_files(folder: Path) -> str:
    with pytest.raises(DeclarationError) as error:
        Curator({"t": discreet.Table(f"{folder}/", columns=COLUMNS, one_row_per_person=True)}, epsilon=1)
    return str(error.value)


def test_what_is_not_read_is_refused(tmp_path: Path) -> None:
    made = catalog(tmp_path)
    table = made.create_table("n.t", ROWS)
    table.append(rows(1, 2, 3))
    folder, number = plain(table.location()), version(table)
    metadata = json.loads(plain(table.metadata_location).read_text("utf-8"))
    registered(made, table, metadata | {"location": f"file://{tmp_path}/other"})
    assert ask(folder, number) == [{"n": 3, "s": 6}]  # the files lie in the folder all the same
    shutil.copytree(folder, tmp_path / "moved")
    assert "outside the folder" in refused(tmp_path / "moved", number)
    for change, said in (
        ({"format-version": 3}, "version of the format"),
        ({"snapshots": [bare(metadata) | {"manifest-list": f"{table.location()}/../x.avro"}]}, "outside the folder"),
        ({"schemas": [*metadata["schemas"]] * 2, "snapshots": [bare(metadata)]}, "which columns"),
    ):
        newest(folder).write_text(json.dumps(metadata | change), "utf-8")
        assert said in refused(folder, number)
    newest(folder).write_text(json.dumps(metadata | {"snapshots": [bare(metadata)]}), "utf-8")
    assert ask(folder, number) == [{"n": 3, "s": 6}]
    newest(folder).write_text(json.dumps(metadata), "utf-8")
    orc = without(made, made.load_table("n.t"), {"x": [0]}, file_format="ORC")
    assert "not all of its files are Parquet" in refused(folder, version(orc))


def bare(metadata: dict[str, Any]) -> dict[str, Any]:
    """A snapshot as it was made before snapshots named their columns."""
    (snapshot,) = metadata["snapshots"]
    return {key: value for key, value in snapshot.items() if key != "schema-id"}


def newest(folder: Path) -> Path:
    return max(folder.glob("metadata/*.json"))


def test_files_of_another_origin_are_refused(tmp_path: Path) -> None:
    made = catalog(tmp_path)
    table = made.create_table("n.t", ROWS)
    inside = plain(table.location()) / "data" / "old.parquet"
    inside.parent.mkdir(parents=True)
    duckdb.sql(f"COPY (SELECT 1::INTEGER AS a, 'x' AS g) TO '{inside}'")
    table.add_files([f"file://{inside}"])
    assert "no ids of columns" in refused(plain(table.location()), version(table))


def test_a_column_that_only_the_folder_names_is_refused(tmp_path: Path) -> None:
    schema = Schema(NestedField(1, "a", LongType()), NestedField(2, "g", StringType()))
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "g"))
    made = catalog(tmp_path)
    table = made.create_table("n.t", schema, partition_spec=spec)
    table.append(pa.table({"a": [1, 2], "g": ["x", "x"]}))
    (name,) = data_files(table)
    duckdb.sql(f"COPY (SELECT 1::BIGINT AS a) TO '{plain(name)}' (FIELD_IDS {{a: 1}})")
    assert "no ids of columns, or lack one" in refused(plain(table.location()), version(table))


def test_what_a_declaration_says() -> None:
    def source_of(source: str, **more: Any) -> Any:
        given = {"source": source, "one_row_per_person": True, "columns": {"a": {"type": "integer"}}} | more
        return declare({"budget": {"epsilon": 1}, "tables": {"t": given}}).tables["t"].source

    source = source_of("visits/", iceberg={"version": 2**63 - 1})
    assert (source.kind, source.version) == ("iceberg", 2**63 - 1)
    for more, said in (
        ({"iceberg": {"version": "main"}}, "the id of a snapshot"),
        ({"iceberg": {"version": 2**63}}, "the id of a snapshot"),
        ({"iceberg": {"version": True}}, "the id of a snapshot"),
        ({"iceberg": {"number": 1, "version": 1}}, "this key is not known"),
        ({"iceberg": {"version": 1}, "delta": {"version": 1}}, "the folder of one Iceberg table"),
    ):
        with pytest.raises(DeclarationError, match=said):
            source_of("visits/", **more)
    with pytest.raises(DeclarationError, match="the folder of one Iceberg table"):
        source_of("visits.csv", iceberg={"version": 1})


def test_pyiceberg_reads_what_the_tests_made(tmp_path: Path) -> None:
    made = catalog(tmp_path)
    table = made.create_table("n.t", ROWS)
    table.append(rows(1, 2, 3))
    table = without(made, table, {data_files(table)[0]: [0, 2]})
    assert StaticTable.from_metadata(table.metadata_location).scan().to_arrow()["a"].to_pylist() == [2]
