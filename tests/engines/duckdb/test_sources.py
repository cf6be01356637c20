"""Where rows come from: files and frames of every kind give the same answers, and say what is wrong with them."""

from __future__ import annotations

import datetime
import gzip
import random
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet
from discreet import Curator, DeclarationError
from discreet.catalog import declare
from discreet.trusted.ring_a.table import Type
from face_tools import BUDGET, COLUMNS, EXACT, Data, visits

QUESTION = """SELECT city, COUNT(*) AS n, COUNT(age) AS ages, SUM(cost) AS costs, AVG(age) AS age
FROM {} WHERE NOT (smoker AND day = '2024-01-01') GROUP BY city ORDER BY city"""


def single(source: Any, columns: dict[Any, Any]) -> discreet.Table:
    return discreet.Table(source, columns=columns, one_row_per_person=True)


def ask(source: Any, columns: dict[Any, Any], question: str) -> list[dict[str, Any]]:
    with Curator({"t": single(source, columns)}, epsilon=BUDGET) as curator:
        return curator.ask(question, epsilon=EXACT).rows


def faults(source: Any, columns: dict[Any, Any]) -> dict[str, tuple[str, str]]:
    with pytest.raises(DeclarationError) as refused:
        Curator({"t": single(source, columns)}, epsilon=1)
    return {fault.where: (fault.message, fault.fix) for fault in refused.value.faults}


def test_every_source_gives_the_same_answers(data: Data) -> None:
    arrow = duckdb.read_parquet(str(data.parquet)).to_arrow_table()
    packed = data.folder / "packed.csv.gz"
    packed.write_bytes(gzip.compress(data.csv.read_bytes()))
    sources = {
        "text": data.csv,
        "packed": packed,
        "parquet": str(data.parquet),
        "database": data.database,
        "arrow": arrow,
        "pandas": arrow.to_pandas(),
        "nullable": arrow.to_pandas(types_mapper=pd.ArrowDtype),
        "polars": pl.from_arrow(arrow),
    }
    expected = data.truth.sql(QUESTION.format("visits")).pl().filter(pl.col("city") != "east").to_dicts()
    expected.insert(1, {"city": "nowhere", "n": 0, "ages": 0, "costs": 0.0, "age": 10.0})
    with Curator({name: visits(source) for name, source in sources.items()}, epsilon=BUDGET) as curator:
        for name in sources:
            rows = curator.ask(QUESTION.format(name), epsilon=EXACT).rows
            assert sorted(rows, key=lambda row: row["city"]) == [
                pytest.approx(row) if row["n"] else row for row in sorted(expected, key=lambda row: row["city"])
            ], name


def test_sources_can_be_checked_while_tables_are_held(data: Data) -> None:
    """The engine that holds rows opens no file any more; another one looks."""
    sources = {"parquet": data.parquet, "database": data.database, "text": data.csv}
    with Curator({name: visits(source) for name, source in sources.items()}, epsilon=1) as curator:
        curator.check()
        data.parquet.rename(data.parquet.with_suffix(".away"))
        try:
            with pytest.raises(DeclarationError, match="there is no file"):
                curator.check()
        finally:
            data.parquet.with_suffix(".away").rename(data.parquet)


# types


def test_types_are_stated_by_the_source(data: Data) -> None:
    arrow = duckdb.read_parquet(str(data.parquet)).to_arrow_table()
    columns = dict.fromkeys(COLUMNS)
    tables = {
        "parquet": single(data.parquet, columns),
        "database": single(data.database, columns),
        "arrow": single(arrow, columns),
        "polars": single(pl.from_arrow(arrow), columns),
    }
    expected = ["text", "text", "boolean", "integer", "number", "date", "timestamp", "text"]
    with Curator(tables, epsilon=1) as curator:
        for table in curator.declaration.tables.values():
            assert [column.type for column in table.columns] == expected, table.name


def test_one_missing_value_changes_no_type() -> None:
    """In pandas it makes whole numbers doubles, and booleans objects."""
    whole, gaps = pd.DataFrame({"a": [1, 2, 3]}), pd.DataFrame({"a": [1, None, 3]})
    tables = {
        "whole": single(whole, {"a": (0, 9)}),
        "gaps": single(gaps, {"a": (0, 9)}),
        "declared": single(gaps, {"a": {"type": "integer", "min": 0, "max": 3}}),
        "nullable": single(gaps.astype("Int64"), {"a": (0, 3)}),
    }
    with Curator(tables, epsilon=BUDGET) as curator:
        types = {name: table.columns[0].type for name, table in curator.declaration.tables.items()}
        assert types == {"whole": "number", "gaps": "number", "declared": "integer", "nullable": "integer"}
        assert curator.ask("SELECT SUM(a) AS s, COUNT(a) AS n FROM gaps", epsilon=EXACT).rows == [{"s": 4, "n": 2}]
        for table in ("declared", "nullable"):
            rows = curator.ask(f"SELECT a, COUNT(*) AS n FROM {table} GROUP BY a", epsilon=EXACT).rows
            assert [row["n"] for row in rows] == [0, 1, 0, 1, 1]  # the last is that of NULL


def test_pandas_objects_state_no_type() -> None:
    dates = [datetime.date(2020, 1, 1), None, datetime.date(2021, 1, 1)]
    frame = pd.DataFrame({"b": [True, None, False], "d": dates, "s": ["x", None, "y"]}, dtype=object)
    found = faults(frame, {"b": None, "d": ["2020-01-01"], "s": None})
    assert set(found) == {"tables.t.columns.b", "tables.t.columns.d", "tables.t.columns.s"}
    assert found["tables.t.columns.b"][0] == "the source does not state its type"
    question = "SELECT COUNT(*) AS n, COUNT(s) AS s FROM t WHERE d >= '2020-01-01' AND NOT COALESCE(b, FALSE)"
    assert ask(frame, {"b": bool, "d": datetime.date, "s": str}, question) == [{"n": 1, "s": 1}]


def test_moments_with_a_zone_are_read_in_utc() -> None:
    """Whatever zone this machine is in: a snapshot must not depend on it."""
    frame = pd.DataFrame({"t": pd.to_datetime(["2020-01-01 00:30"]).tz_localize("Europe/Berlin")})
    for columns in ({"t": None}, {"t": datetime.datetime}):
        assert ask(frame, columns, "SELECT COUNT(*) AS n FROM t WHERE t = '2019-12-31 23:30:00'") == [{"n": 1}]


def test_odd_types() -> None:
    frame = pl.DataFrame(
        {
            "category": pl.Series(["x", "y"], dtype=pl.Categorical),
            "decimal": [Decimal("1.50"), Decimal("2.25")],
            "unsigned": pl.Series([2**64 - 1, 1], dtype=pl.UInt64),
            "list": [[1], [2]],
        }
    )
    assert faults(frame, {"list": None})["tables.t.columns.list"][0] == "the source does not state its type"
    columns = {"category": {"values": ["x", "y"], "nulls": False}, "decimal": (0, 9), "unsigned": (0, 9)}
    question = "SELECT category, SUM(decimal) AS d, SUM(unsigned) AS u FROM t GROUP BY category"
    assert ask(frame, columns, question) == [
        {"category": "x", "d": 1.5, "u": 9},
        {"category": "y", "d": 2.25, "u": 1},
    ]


# Python's forms

FORMS: list[tuple[Any, Any]] = [
    (int, {"type": "integer"}),
    (float, {"type": "number"}),
    (str, {"type": "text"}),
    (bool, {"type": "boolean"}),
    (datetime.date, {"type": "date"}),
    (datetime.datetime, {"type": "timestamp"}),
    (Decimal, {"type": "number"}),
    ("text", {"type": "text"}),
    ((17, 90), {"type": "integer", "min": 17, "max": 90}),
    ((0.5, 90), {"type": "number", "min": Decimal("0.5"), "max": 90}),
    ((np.int64(17), np.float64(90)), {"type": "number", "min": 17, "max": 90}),
    (["F", "M"], {"type": "text", "values": ["F", "M"]}),
    ([1, 2], {"type": "integer", "values": [1, 2]}),
    ({"type": "number", "min": 0.1}, {"type": "number", "min": Decimal("0.1")}),
]


@pytest.mark.parametrize(("form", "meant"), FORMS)
def test_a_short_form_is_the_long_one(form: Any, meant: Any) -> None:
    def read(column: Any) -> Any:
        tables = {"t": single("t.csv", {"a": column}).declaration}
        return declare({"budget": {"epsilon": 1}, "tables": tables}).tables["t"].columns

    assert read(form) == read(meant)


def test_a_frame_states_the_type_of_a_short_form() -> None:
    frame = pl.DataFrame({"a": [1], "b": [1.5], "c": ["x"], "d": [datetime.date(2020, 1, 1)]})
    columns = {"a": (0, 9), "b": (0, 9), "c": ["x"], "d": [datetime.date(2020, 1, 1)]}
    with Curator({"t": single(frame, columns)}, epsilon=1) as curator:
        types = [column.type for column in curator.declaration.tables["t"].columns]
        assert types == ["integer", "number", "text", "date"]


@pytest.mark.parametrize(
    ("column", "kind", "how"),
    [
        ((0.5, 3), "integer", "for example 17"),
        (["x"], "integer", "for example 17"),
        ([1], "text", "texts, in quotes"),
        ([datetime.datetime(2020, 1, 1)], "date", "for example datetime.date(2020, 1, 31)"),
        ([datetime.date(2020, 1, 1)], "timestamp", "for example datetime.datetime(2020, 1, 31, 12)"),
        ([True], "number", "for example 0.5"),
    ],
)
def test_bounds_and_keys_of_another_type_than_the_source_states(column: Any, kind: str, how: str) -> None:
    arrow = pa.table(
        {
            "integer": [1],
            "text": ["x"],
            "number": [1.5],
            "date": [datetime.date(2020, 1, 1)],
            "timestamp": [datetime.datetime(2020, 1, 1)],
        }
    )
    message = f"its bounds or values are not of type {kind}"
    assert faults(arrow, {kind: column}) == {f"tables.t.columns.{kind}": (message, f"write them as {how}")}


def test_texts_have_keys_and_no_bounds() -> None:
    found = faults(pa.table({"a": ["x"]}), {"a": ("x", "y")})
    assert found == {
        "tables.t.columns.a": ("a text column takes no min and max", "leave them out, or list its keys: [...]")
    }
    found = faults(pa.table({"a": [1]}), {"a": {"min": 0, "max": 9, "step": Fraction(1, 2)}})
    assert found == {"tables.t.columns.a.step": ("step is for numbers, and above 0", "leave it out")}


def test_a_person_is_not_told_by_a_double() -> None:
    """Two ids that one double stands for would make two persons one."""
    frame = pd.DataFrame({"id": [2**60, 2**60 + 1]})
    table = {"columns": {"id": None}, "person": "id", "rows_per_person": 1}
    with pytest.raises(DeclarationError, match="a number with fractions cannot identify a person"):
        Curator({"t": discreet.Table(frame, **table)}, epsilon=1)
    with Curator({"t": discreet.Table(frame, **table | {"columns": {"id": int}})}, epsilon=BUDGET) as curator:
        assert curator.ask("SELECT COUNT(DISTINCT id) AS n FROM t", epsilon=EXACT).rows == [{"n": 2}]


# names


@pytest.mark.parametrize("kind", ["csv", "pandas", "arrow"])
def test_a_name_that_stands_there_twice(kind: str, tmp_path: Path) -> None:
    """Nobody can say which of the two is meant; the others may be asked about."""
    (tmp_path / "t.csv").write_text(",a,b,B,b_1,column_0\n0,1,2,3,4,5\n1,1,2,3,4,5\n", "utf-8")
    names = ["", "a", "b", "B", "b_1", "column_0"]
    arrow = pa.table([pa.array([number, number]) for number in range(6)], names=names)
    source = {"csv": tmp_path / "t.csv", "arrow": arrow, "pandas": arrow.to_pandas()}[kind]
    found = faults(source, {"a": int, "b": int})
    assert found == {
        "tables.t.columns.b": (
            "the source has this name more than once",
            "rename one of the source's columns",
        )
    }
    question = "SELECT COUNT(*) AS n, SUM(a) AS a, SUM(b_1) AS b, SUM(column_0) AS c FROM t"
    nine = {"type": "integer", "min": 0, "max": 9}
    rows = ask(source, {"a": nine, "b_1": nine, "column_0": nine}, question)
    assert rows == [{"n": 2, "a": 2, "b": 8, "c": 10}]


def test_a_missing_column_is_named_with_those_there_are(data: Data) -> None:
    for source in (data.csv, data.parquet, data.database, pa.table({"person": ["x"], "city": ["y"]})):
        for column in (str, None):
            if column is None and source == data.csv:
                continue
            message, fix = faults(source, {"town": column})["tables.t.columns.town"]
            assert message == "the source has no such column"
            assert fix.startswith("leave it out, or name one of: person, city")


def test_what_is_wrong_with_several_sources_comes_at_once(tmp_path: Path) -> None:
    (tmp_path / "here.csv").write_text("a\n1\n", "utf-8")
    (tmp_path / "no.parquet").write_text("no", "utf-8")
    text = "[budget]\nepsilon = 1\n"
    for name, source in {"x": "gone.csv", "y": "no.parquet", "z": "gone.parquet", "here": "here.csv"}.items():
        kind = "type = 'text'" if source.endswith("csv") else ""
        text += f"[tables.{name}]\nsource = '{source}'\none_row_per_person = true\ncolumns.b = {{ {kind} }}\n"
    (tmp_path / "clinic.toml").write_text(text, "utf-8")
    with pytest.raises(DeclarationError) as refused:
        discreet.open(tmp_path / "clinic.toml")
    assert refused.value.file == str(tmp_path / "clinic.toml")
    assert {fault.where: fault.message for fault in refused.value.faults} == {
        "tables.x.source": f"there is no file {tmp_path / 'gone.csv'}",
        "tables.y.source": f"{tmp_path / 'no.parquet'} cannot be read as parquet",
        "tables.z.source": f"there is no file {tmp_path / 'gone.parquet'}",
        "tables.here.columns.b": "the source has no such column",
    }


@pytest.mark.parametrize(
    "source",
    [lambda: 3, {"a": [1]}, [{"a": 1}], 5, pd.Series([1], name="a"), pa.table({"a": [1]}).to_reader(), object()],
    ids=lambda source: type(source).__name__,
)
def test_what_is_no_table(source: Any) -> None:
    assert list(faults(source, {"a": int})) == ["tables.t.source"]


@pytest.mark.parametrize(
    ("name", "content"),
    [("t.parquet", b"no"), ("t.csv.gz", b"no"), ("t.csv", "a\né\n".encode("latin-1")), ("t.duckdb::t", b"no")],
)
def test_a_file_that_is_not_what_its_name_says(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name.partition("::")[0]).write_bytes(content)
    message, fix = faults(str(tmp_path / name), {"a": str})["tables.t.source"]
    assert "cannot be read as" in message
    assert fix.startswith("check that it is")
    (tmp_path / name.partition("::")[0]).unlink()
    assert faults(str(tmp_path / name), {"a": str})["tables.t.source"][0].startswith("there is no file")


@pytest.mark.parametrize("damage", ["checksum", "cut", "middle"])
def test_a_packed_file_that_is_damaged_is_refused(damage: str, tmp_path: Path) -> None:
    rows = "".join(f"{random.Random(1).random()} {row}\n" for row in range(5000))
    packed = bytearray(gzip.compress(f"a\n{rows}".encode()))
    place = {"checksum": -7, "cut": -1, "middle": len(packed) // 2}[damage]
    packed[place] ^= 0xFF
    (tmp_path / "t.csv.gz").write_bytes(packed[: len(packed) // 2] if damage == "cut" else packed)
    assert "cannot be read as" in faults(str(tmp_path / "t.csv.gz"), {"a": str})["tables.t.source"][0]


def test_a_name_of_a_file_is_no_pattern(tmp_path: Path) -> None:
    for name in (
        "a*.csv",
        "ab.csv",
        "q[1].csv",
        "q1.csv",
        "w?.csv",
        "wx.csv",
        "it's.csv",
        "{a,b}.csv",
        "a b.csv",
        "ü😀.csv",
    ):
        (tmp_path / name).write_text(f"x\n{len(name)}\n", "utf-8")
    nine = {"x": {"type": "integer", "min": 0, "max": 99}}
    names = ["a*.csv", "q[1].csv", "w?.csv", "it's.csv", "{a,b}.csv", "a b.csv", "ü😀.csv"]
    tables = {f"t{number}": single(tmp_path / name, nine) for number, name in enumerate(names)}
    with Curator(tables, epsilon=BUDGET) as curator:
        for number, name in enumerate(names):
            rows = curator.ask(f"SELECT COUNT(*) AS n, SUM(x) AS x FROM t{number}", epsilon=EXACT).rows
            assert rows == [{"n": 1, "x": len(name)}], name


# texts


def text(tmp_path: Path, content: str, columns: dict[Any, Any], question: str) -> list[dict[str, Any]]:
    (tmp_path / "t.csv").write_text(content, "utf-8", newline="")
    return ask(tmp_path / "t.csv", columns, question)


@pytest.mark.parametrize(
    "content",
    [
        "a,b\n1,x\n2,y\n,z\n",
        "\ufeffa,b\r\n1,x\r\n2,y\r\n,z",
        "a,b\r\n1,x\n2,y\n,z\n",
        'a,b\n1,"x\nand ""more"""\n2,"y,y"\n"",z\n',
        "a,b\n1\n2,y,y\n,z\n",
        'b,a,B\nx,"1",\ny,2,"\n"\nz,many,\n',
    ],
)
def test_texts_as_people_write_them(content: str, tmp_path: Path) -> None:
    """Quoted line ends, short and long rows, every line end: no row is lost, and none fails the table."""
    question = "SELECT COUNT(*) AS n, COUNT(a) AS a, SUM(a) AS s FROM t"
    assert text(tmp_path, content, {"a": (0, 9)}, question) == [{"n": 3, "a": 2, "s": 3}]


def test_what_is_not_of_the_declared_type_is_unknown_and_its_row_counts(tmp_path: Path) -> None:
    columns = {"i": int, "n": float, "b": bool, "d": datetime.date, "m": datetime.datetime}
    question = "SELECT COUNT(*) AS r, COUNT(i) AS i, COUNT(n) AS n, COUNT(b) AS b, COUNT(d) AS d, COUNT(m) AS m FROM t"
    good = ["1", "1.5", "true", "2020-02-29", "2020-02-29 10:00:00"]
    bad = ["9223372036854775808", "nan", "maybe", "2021-02-29", "10 o'clock"]
    content = "\n".join(",".join(line) for line in (columns, good, bad))
    assert text(tmp_path, content, columns, question) == [{"r": 2, "i": 1, "n": 1, "b": 1, "d": 1, "m": 1}]
    frame = pa.table(dict(zip(columns, ([one, other] for one, other in zip(good, bad, strict=True)), strict=True)))
    assert ask(frame, columns, question) == [{"r": 2, "i": 1, "n": 1, "b": 1, "d": 1, "m": 1}]


def test_an_empty_table(tmp_path: Path) -> None:
    question = "SELECT b, COUNT(*) AS n, SUM(a) AS s FROM t GROUP BY b"
    columns = {"a": (0, 9), "b": {"type": "text", "values": ["x"], "nulls": False}}
    for content in ("a,b\n", "a,b"):
        assert text(tmp_path, content, columns, question) == [{"b": "x", "n": 0, "s": 0}]
    (tmp_path / "t.csv").write_text("", "utf-8")
    assert set(faults(tmp_path / "t.csv", columns)) == {"tables.t.columns.a", "tables.t.columns.b"}


def test_types_are_a_closed_list() -> None:
    assert [str(kind) for kind in Type] == ["integer", "number", "text", "boolean", "date", "timestamp"]
