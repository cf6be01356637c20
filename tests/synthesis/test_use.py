"""What published tables are used for: SQL with what is known of its errors, files with types, keys and bounds, and
sources of public tables."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import discreet
from discreet.catalog import declare
from discreet.cli import main
from discreet.errors import LedgerError, QuestionError
from discreet.synthesis.database import bounds_of
from discreet.synthesis.destinations import place as place_of
from discreet.synthesis.synthetic import Synthetic
from discreet.synthesis.synthetic_tables import SyntheticTables
from discreet.trusted.ring_a.table import Source, SourceKind, Table
from related_tables import NAMES, curator, shop

JOIN = "FROM orders AS o JOIN customers AS c ON o.customer = c.id"
ACROSS = f"SELECT c.sex, channel, COUNT(*) AS n, COUNT(DISTINCT c.id) AS k {JOIN} GROUP BY c.sex, channel ORDER BY 1, 2"


@pytest.fixture(scope="module")
def several() -> SyntheticTables:
    with curator(shop(200)) as holder:
        return holder.publish(NAMES, epsilon=8)


@pytest.fixture(scope="module")
def single() -> Synthetic:
    with curator(shop(200)) as holder:
        return holder.publish("customers", epsilon=8, rows=50)


@pytest.fixture(scope="module")
def cells() -> Synthetic:
    """Texts that are the same as numbers and as booleans, and numbers that are the same as multiples of ten."""
    rows = pd.DataFrame({"code": ["1", "01", "2"] * 100, "num": [0, 1, 12] * 100, "sex": ["F", "M"] * 150})
    listed = {name: {"type": "text", "values": sorted(set(rows[name]))} for name in ("code", "sex")}
    columns = {**listed, "num": {"type": "integer", "values": [0, 1, 12]}}
    table = discreet.Table(rows[["code", "num", "sex"]], one_row_per_person=True, columns=columns)
    with discreet.Curator({"made": table}, epsilon=40, delta=1e-6) as holder:
        return holder.publish("made", epsilon=40, method="independent")


def public(table: discreet.Table) -> Any:
    return declare({"budget": {"epsilon": 1}, "tables": {"made": table.declaration}}).table("made")


def bound(release: SyntheticTables, table: str, *columns: str) -> Any:
    return next(one for one in release.tables[table].marginals if set(one["columns"]) == set(columns))


def test_sql_over_several_tables_has_the_bounds_of_their_release(several: SyntheticTables) -> None:
    answer = several.ask(ACROSS)
    cell = bound(several, "orders", "customers.sex", "channel")["cell"]
    for row, ends in zip(answer.rows, answer.intervals, strict=True):
        assert ends.keys() == {"n"}
        assert ends["n"][0] <= max(0, row["n"] - cell)
        assert row["n"] + cell <= ends["n"][1] <= row["n"] + cell + 2
    assert "±" in str(answer)
    alone = several.ask("SELECT COUNT(*) AS n FROM items WHERE kind IN ('toy', 'food')")
    assert alone.intervals[0]["n"][1] - alone.rows[0]["n"] >= bound(several, "items", "kind")["rows"]
    ages = several.ask("SELECT age, COUNT(*) AS n FROM customers GROUP BY age")  # from 0 to 9, a cell each
    assert [one.keys() == {"n"} for one in ages.intervals] == [row["age"] is not None for row in ages.rows]
    assert several.ask("SELECT COUNT(*) AS n FROM customers WHERE age > 3").intervals == [{}]
    with pytest.raises(QuestionError, match="reads another table"):
        several.ask("SELECT * FROM towns")


def test_a_database_file_has_types_keys_and_no_null_where_there_is_none(
    several: SyntheticTables, single: Synthetic, tmp_path: Path
) -> None:
    path = tmp_path / "made.duckdb"
    assert set(several.save(path).values()) == {path}
    with duckdb.connect(str(path)) as connection:
        for name, one in several.tables.items():
            assert connection.table(name).fetchall() == [tuple(row.values()) for row in one.rows]
        said = "SELECT table_name, constraint_type, constraint_column_names FROM duckdb_constraints()"
        found = {(table, kind, *names) for table, kind, names in connection.execute(said).fetchall()}
        assert found >= {
            ("customers", "PRIMARY KEY", "id"),
            ("orders", "PRIMARY KEY", "number"),
            ("orders", "FOREIGN KEY", "customer"),
            ("orders", "NOT NULL", "customer"),
            ("items", "FOREIGN KEY", "order"),
        }
        assert ("customers", "NOT NULL", "sex") not in found  # it may be missing, by its declaration
        types = dict(connection.execute("SELECT column_name, data_type FROM duckdb_columns()").fetchall())
        assert (types["id"], types["age"], types["number"]) == ("VARCHAR", "BIGINT", "BIGINT")
        with pytest.raises(duckdb.ConstraintException):
            connection.execute("INSERT INTO orders VALUES (9999, 'nobody', 'web')")
    single.save(tmp_path / "one.DuckDB")
    with duckdb.connect(str(tmp_path / "one.DuckDB")) as connection:
        assert connection.execute("SELECT COUNT(*) FROM customers").fetchall() == [(50,)]
        kinds = connection.execute("SELECT constraint_type FROM duckdb_constraints()").fetchall()
        assert ("PRIMARY KEY",) not in kinds
    with pytest.raises(QuestionError, match="no folder"):
        several.save(tmp_path / "nothing" / "made.duckdb")
    (tmp_path / "taken.duckdb").mkdir()
    with pytest.raises(QuestionError, match="cannot be written"):
        single.save(tmp_path / "taken.duckdb")
    assert not list(tmp_path.glob("*.part"))


def test_arrow_tables_have_the_declared_types_whatever_the_rows_are(several: SyntheticTables) -> None:
    assert several.tables["orders"].to_arrow().schema.types == [pa.int64(), pa.string(), pa.string()]
    assert several.tables["customers"].to_arrow().schema.types == [pa.string(), pa.string(), pa.int64()]


def test_what_was_saved_as_json_is_read_again(several: SyntheticTables, single: Synthetic, tmp_path: Path) -> None:
    several.save(tmp_path / "made.json")
    single.save(tmp_path / "one.json")
    again, alone = discreet.published(tmp_path / "made.json"), discreet.published(tmp_path / "one.json")
    assert isinstance(again, SyntheticTables)
    assert isinstance(alone, Synthetic)
    assert {name: one.rows for name, one in again.tables.items()} == {n: o.rows for n, o in several.tables.items()}
    assert again.ask(ACROSS) == several.ask(ACROSS)
    question = "SELECT sex, COUNT(*) AS n FROM customers GROUP BY sex ORDER BY sex"
    assert alone.ask(question) == single.ask(question)
    assert "scaled" in alone.ask(question).words
    assert alone.rows == single.rows


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"tables": 5}', '{"tables": {"a": {}}}', '{"rows": [], "columns": []}']
)
def test_a_file_without_a_published_table_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "made.json").write_text(text, "utf-8")
    with pytest.raises(QuestionError, match="holds no published table"):
        discreet.published(tmp_path / "made.json")
    with pytest.raises(QuestionError, match="cannot be read"):
        discreet.published(tmp_path / "nothing.json")


def sources(release: SyntheticTables, folder: Path) -> Iterator[dict[str, discreet.Table]]:
    yield {name: discreet.Table(one, public=True) for name, one in release.tables.items()}
    release.save(folder / "made.parquet")
    release.save(folder / "made.duckdb")
    for source in ("{}/made_{}.parquet", "{}/made.duckdb::{}"):
        yield {
            name: discreet.Table(source.format(folder, name), public=True, columns=dict.fromkeys(one.columns))
            for name, one in release.tables.items()
        }


def test_questions_of_published_tables_are_free_and_say_what_is_known(several: SyntheticTables, tmp_path: Path) -> None:
    expected = several.ask(ACROSS)
    real = discreet.Table(shop(50)["customers"], one_row_per_person=True, columns={"sex": ["F", "M"]})
    mixed = "WITH a AS (SELECT COUNT(*) AS n FROM real), b AS (SELECT COUNT(*) AS n FROM customers) "
    mixed += "SELECT a.n, b.n AS m FROM a, b"
    for tables in sources(several, tmp_path):
        with discreet.Curator({**tables, "real": real}, epsilon=1) as holder:
            answer = holder.ask(ACROSS)
            assert answer.rows == expected.rows
            assert answer.intervals == answer.simultaneous() == expected.intervals
            assert "±" in repr(answer)
            assert "of k nothing is known" in answer.bounds[-1]
            without = holder.ask("SELECT AVG(age) AS age FROM customers")
            assert without.intervals == [{}]
            assert "nothing is known of the errors" in without.bounds[-1]
            assert holder.budget.used == 0
            paid = holder.ask(mixed, epsilon=1)
            assert "nothing is known of the errors" in paid.bounds[-1]
            assert paid.intervals[0].keys() == {"n"}


def test_a_table_of_fewer_rows_than_the_real_one_has_no_bound_of_counts(single: Synthetic) -> None:
    with discreet.Curator({"made": discreet.Table(single, public=True)}, epsilon=1) as holder:
        answer = holder.ask("SELECT COUNT(*) AS n FROM made")
    assert answer.rows == [{"n": 50}]
    assert answer.intervals == [{}]
    assert "fewer of them than of the real ones" in answer.bounds[-1]


@pytest.mark.parametrize(
    ("column", "said", "kept"),
    [
        ("code", {"type": "text"}, True),
        ("code", {"type": "text", "values": ["01", "1", "2"]}, True),
        ("CODE", {"type": "text"}, True),
        ("code", {"type": "integer"}, False),  # 01 and 1 are one
        ("code", {"type": "boolean"}, False),
        ("code", {"type": "text", "values": ["1"]}, False),  # the others are NULL
        ("num", {"type": "integer"}, True),
        ("num", {"type": "number"}, False),
        ("num", {"type": "number", "step": 10}, False),
        ("num", {"type": "integer", "min": 0, "max": 3}, False),
    ],
)
def test_columns_that_are_declared_otherwise_have_no_bounds(
    cells: Synthetic, column: str, said: dict[str, Any], kept: bool
) -> None:
    table = discreet.Table(cells.to_arrow(), public=True, columns={column: said})
    known = bounds_of(public(table))
    assert known is not None
    assert list(known.whole) == ([column.lower()] if kept else [])
    with discreet.Curator({"made": table}, epsilon=1) as holder:
        answer = holder.ask(f"SELECT {column} AS c, COUNT(*) AS n FROM made GROUP BY 1")
        ends = [one for row, one in zip(answer.rows, answer.intervals, strict=True) if row["c"] is not None]
        assert all(bool(one) is kept for one in ends)  # of a NULL that noise has made nothing is known


def test_rows_that_are_not_as_they_were_published_have_no_bounds(cells: Synthetic, tmp_path: Path) -> None:
    arrow, said = cells.to_arrow(), {"code": {"type": "text"}}
    assert bounds_of(public(discreet.Table(arrow.take(list(reversed(range(len(cells))))), public=True, columns=said)))
    others = [arrow.slice(1), pa.concat_tables([arrow] * 2), arrow.rename_columns(["sex", "code", "num"])]
    unlike = next(one for one in range(1, len(cells)) if not arrow.slice(one, 1).equals(arrow.slice(0, 1)))
    others += [pa.concat_tables([arrow.slice(1), arrow.slice(unlike, 1)]), arrow.select(["code"])]
    for place, changed in enumerate(others):
        other = changed.replace_schema_metadata(arrow.schema.metadata)
        pq.write_table(other, tmp_path / f"{place}.parquet")
        for source in (other, str(tmp_path / f"{place}.parquet")):
            assert bounds_of(public(discreet.Table(source, public=True, columns=said))) is None
    cells.save(tmp_path / "made.duckdb")
    file = public(discreet.Table(f"{tmp_path}/made.duckdb::made", public=True, columns=said))
    assert bounds_of(file) is not None
    with duckdb.connect(str(tmp_path / "made.duckdb")) as connection:
        connection.execute("DELETE FROM made WHERE code = '2'")
    assert bounds_of(file) is None


@pytest.mark.parametrize("text", ["[" * 200_000, '{"synthetic": {"whole": 5}}', None])
def test_no_bounds_that_are_wrong_make_a_paid_question_fail(cells: Synthetic, text: str | None) -> None:
    arrow = cells.to_arrow()
    if text is None:
        said = json.loads(arrow.schema.metadata[b"discreet"])
        said["synthetic"]["whole"] = 5
        text = json.dumps(said)
    made = discreet.Table(arrow.replace_schema_metadata({"discreet": text}), public=True, columns={"sex": str})
    real = discreet.Table(shop(50)["customers"], one_row_per_person=True, columns={"sex": ["F", "M"]})
    question = "WITH a AS (SELECT COUNT(*) AS n FROM real), b AS (SELECT COUNT(*) AS n FROM made) "
    with discreet.Curator({"made": made, "real": real}, epsilon=1) as holder:
        answer = holder.ask(question + "SELECT a.n, b.n AS m FROM a, b", epsilon=1)
        assert answer.rows[0]["m"] == len(cells)
        assert holder.budget.used > 0


def test_counts_stand_in_the_places_of_their_items(cells: Synthetic) -> None:
    with pytest.raises(QuestionError, match="have one name"):
        cells.ask("SELECT COUNT(*) AS n, AVG(num) AS n FROM made")
    with pytest.raises(QuestionError, match="have one name"):
        cells.ask("SELECT COUNT(*) AS n, 'n' AS n FROM made")
    assert cells.ask("SELECT UNNEST({'a': 1, 'b': 2}), COUNT(*) AS n FROM made").intervals == [{}]
    assert cells.ask("SELECT COUNT(*) AS n FROM made GROUP BY 1.0").intervals == [{}]


def test_values_that_were_not_declared_count_as_null_and_that_is_said() -> None:
    rows = pd.DataFrame({"sex": ["F"] * 300 + ["M"] * 300 + ["x"] * 400})
    table = discreet.Table(rows, one_row_per_person=True, columns={"sex": ["F", "M"]})
    with discreet.Curator({"t": table}, epsilon=20, delta=1e-6) as holder:
        release = holder.publish("t", epsilon=20)
    for where in ("sex = 'x'", "sex <> 'F'", "sex IS NULL", "LENGTH(sex) = 1"):
        assert release.ask(f"SELECT COUNT(*) AS n FROM t WHERE {where}").intervals == [{}], where
    answer = release.ask("SELECT sex, COUNT(*) AS n FROM t GROUP BY sex")
    said = {row["sex"]: bool(ends) for row, ends in zip(answer.rows, answer.intervals, strict=True)}
    assert said == {"F": True, "M": True, None: False}
    assert "not declared count as NULL" in answer.words
    assert "scaled" not in answer.words


@pytest.mark.parametrize(
    "change",
    [
        {"declaration": "x = ["},
        {"declaration": "[tables]"},
        {"declaration": "[tables.a]"},
        {"marginals": 5},
        {"marginals": [{"columns": ["sex"], "rows": None, "cell": None}]},
        {"total": "x"},
        {"total": None},
        {"total": -5.0},
        {"types": {}},
        {"rows": [{}]},
        {"rows_drawn": None},
        {"domain": 5},
    ],
)
def test_a_file_with_a_part_that_is_wrong_is_refused(cells: Synthetic, tmp_path: Path, change: dict[str, Any]) -> None:
    path = cells.save(tmp_path / "made.json")
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | change), "utf-8")
    with pytest.raises(QuestionError, match="holds no published table"):
        discreet.published(path)


def test_files_that_cannot_be_read_say_why(cells: Synthetic, tmp_path: Path) -> None:
    path = cells.save(tmp_path / "made.json")
    plain = json.loads(path.read_text("utf-8"))
    path.write_text("[" * 200_000, "utf-8")
    with pytest.raises(QuestionError, match="holds no published table"):
        discreet.published(path)
    path.write_text(json.dumps({**plain, "release": 999}), "utf-8")
    with pytest.raises(LedgerError, match="newer version"):
        discreet.published(path)
    plain["rows"][0]["code"] = "\ud800"
    path.write_text(json.dumps(plain), "utf-8")
    with pytest.raises(QuestionError, match="holds no published table"):
        discreet.published(path)


def test_a_file_that_cannot_be_read_back_says_which_can(cells: Synthetic, tmp_path: Path) -> None:
    for name in ("made.csv", "made.parquet", "made.duckdb"):
        path = cells.save(tmp_path / name)
        with pytest.raises(QuestionError, match=r"holds no published table → .*the \.json alone can be"):
            discreet.published(path)
    (tmp_path / "made.json").write_text("{}", "utf-8")
    with pytest.raises(QuestionError) as refused:
        discreet.published(tmp_path / "made.json")
    assert "alone" not in refused.value.fix


def test_a_saved_release_is_no_declaration_and_says_how_it_is_asked(cells: Synthetic, tmp_path: Path) -> None:
    path = cells.save(tmp_path / "made.json")
    told = CliRunner().invoke(main, ["ask", str(path), "SELECT COUNT(*) FROM t"])
    assert told.exit_code
    assert f'asked in Python: discreet.published("{path}").ask("SELECT …")' in str(told.exception)
    (tmp_path / "made.yaml").write_text("{", "utf-8")
    told = CliRunner().invoke(main, ["ask", str(tmp_path / "made.yaml"), "SELECT COUNT(*) FROM t"])
    assert "published" not in str(told.exception)


def test_the_endings_of_a_published_table_are_all_listed(cells: Synthetic, tmp_path: Path) -> None:
    for save in (cells.save, place_of):
        with pytest.raises(QuestionError, match=r"end it in \.csv, \.duckdb, \.html, \.json, \.parquet or \.xlsx"):
            save(tmp_path / "made.foo")


def test_a_table_may_have_any_name(cells: Synthetic, tmp_path: Path) -> None:
    path = cells.save(tmp_path / "made.json")
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {"name": "synthetic_rows"}), "utf-8")
    named = discreet.published(path)
    assert isinstance(named, Synthetic)
    assert named.ask("SELECT COUNT(*) AS n FROM synthetic_rows").rows == [{"n": len(cells)}]
    with duckdb.connect(str(named.save(tmp_path / "made.duckdb"))) as connection:
        assert connection.execute("SELECT COUNT(*) FROM synthetic_rows").fetchall() == [(len(cells),)]


def test_what_is_no_published_table_says_what_to_write(several: SyntheticTables, single: Synthetic) -> None:
    with pytest.raises(QuestionError, match="public=True"):
        discreet.Table(single)
    with pytest.raises(QuestionError, match="one table → write"):
        discreet.Table(several, public=True)
    with pytest.raises(QuestionError, match="an answer is no published table"):
        discreet.Table(single.ask("SELECT COUNT(*) AS n FROM customers"), public=True)


def test_a_table_of_nothing_but_a_key_says_why_it_cannot_be_published() -> None:
    tables = shop(20)
    customers = discreet.Table(tables["customers"], person="id", one_row_per_person=True, columns={"id": str})
    orders = discreet.Table(
        *(tables["orders"],), person="customer", rows_per_person=9, columns={"customer": str, "number": int}
    )
    items = discreet.Table(
        *(tables["items"],), person="order -> orders.number", rows_per_person=9, columns={"order": int}
    )
    declared = {"customers": customers, "orders": orders, "items": items}
    with (
        discreet.Curator(declared, epsilon=1, delta=1e-6) as holder,
        pytest.raises(QuestionError, match="number: it is a key that rows of items refer to"),
    ):
        holder.publish("orders", epsilon=1)


def test_a_database_is_replaced_where_it_holds_published_tables_alone(single: Synthetic, tmp_path: Path) -> None:
    path = tmp_path / "made.duckdb"
    for _ in range(2):
        assert single.save(path) == path
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE own AS SELECT 'kept' AS x")
    with pytest.raises(QuestionError, match="not all in it is a published table"):
        single.save(path)
    other = tmp_path / "other.duckdb"
    other.write_text("what was there", "utf-8")
    with pytest.raises(QuestionError, match="not all in it is a published table"):
        single.save(other)
    assert other.read_text("utf-8") == "what was there"
    with duckdb.connect(str(path)) as connection:
        assert connection.table("own").fetchall() == [("kept",)]
        connection.execute("DROP TABLE own; CREATE VIEW mine AS SELECT 1 AS x")
    with pytest.raises(QuestionError, match="not all in it is a published table"):
        single.save(path)
    assert {one.name for one in tmp_path.iterdir()} == {"made.duckdb", "other.duckdb"}


KILLED = """
import os, sys, duckdb
connection = duckdb.connect(sys.argv[1])
connection.execute("SET checkpoint_threshold = '1GB'")
connection.execute("CREATE TABLE secret AS SELECT 'private row' AS x")
os._exit(0)
"""


def test_a_log_of_whoever_was_ended_is_neither_opened_nor_written_over(single: Synthetic, tmp_path: Path) -> None:
    path = single.save(tmp_path / "made.duckdb")
    table = public_table(f"{path}::customers")
    assert bounds_of(table) is not None
    subprocess.run([sys.executable, "-c", KILLED, str(path)], check=True)
    before = {one.name: one.read_bytes() for one in tmp_path.iterdir()}
    assert before.keys() == {"made.duckdb", "made.duckdb.wal"}
    with pytest.raises(QuestionError, match=r"made\.duckdb\.wal lies beside it"):
        single.save(path)
    assert bounds_of(table) is None
    path.unlink()
    with pytest.raises(QuestionError, match=r"made\.duckdb\.wal lies beside it"):
        single.save(path)  # a new file would not open beside it
    path.write_bytes(before["made.duckdb"])
    assert {one.name: one.read_bytes() for one in tmp_path.iterdir()} == before


def test_a_file_that_holds_people_is_not_opened_for_its_bounds(single: Synthetic, tmp_path: Path) -> None:
    path = single.save(tmp_path / "made.duckdb")
    (tmp_path / "other.duckdb").hardlink_to(path)
    public = public_table(f"{path}::customers")
    assert bounds_of(public, [public]) is not None
    for name in ("made", "other"):
        source = Source(SourceKind.DATABASE, tmp_path / f"{name}.duckdb", "people")
        assert bounds_of(public, [public, replace(public, name="people", public=False, source=source)]) is None


def public_table(source: str) -> Table:
    columns = {"sex": {"type": "text", "values": ["F", "M"]}}
    raw = {"budget": {"epsilon": 1}, "tables": {"made": {"source": source, "public": True, "columns": columns}}}
    return declare(raw).tables["made"]


@pytest.mark.parametrize("nulls", [False, True])
def test_of_whole_numbers_with_a_cell_each_it_is_known_how_far_counts_are_off(nulls: bool) -> None:
    """Their bins are as many as there are numbers: nothing falls inside one."""
    few = {"type": "integer", "min": 0, "max": 3, "nulls": nulls}
    many = {"type": "integer", "min": 0, "max": 500}
    frame = pd.DataFrame({"few": [0, 1, 2, 3] * 150, "many": range(600)})
    table = discreet.Table(frame, one_row_per_person=True, columns={"few": few, "many": many})
    with discreet.Curator({"t": table}, epsilon=20, delta=1e-6) as holder:
        release = holder.publish("t", epsilon=10)
    assert release.known.whole["few"] == {"type": "integer", "values": [0, 1, 2, 3], "nulls": nulls}
    assert "many" not in release.known.whole
    answer = release.ask("SELECT few, COUNT(*) AS n FROM t WHERE few IN (1, 2) GROUP BY few ORDER BY few")
    assert [low <= 150 <= high for one in answer.intervals for low, high in [one["n"]]] == [True, True]
