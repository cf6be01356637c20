"""What follows from how a table is declared; and what of it is written into the keys of stored answers, which never
change."""

from __future__ import annotations

import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from discreet.procedures.run import declared
from discreet.trusted.ring_a.table import (
    LARGEST,
    Column,
    Relation,
    Source,
    SourceKind,
    Table,
    Type,
    as_table,
    own_columns,
)
from discreet.trusted.ring_b.relations import own_name

KIND = "exact"

WORDS = ("csv", "parquet", "delta", "iceberg", "duckdb", "postgresql", "spark", "frame", "relation")


def test_the_kinds_of_sources_are_these_words() -> None:
    assert tuple(map(str, SourceKind)) == WORDS


@pytest.mark.parametrize("word", WORDS)
def test_keys_say_the_kind_of_a_source_as_a_text(word: str) -> None:
    """As ledgers of every version hold them."""
    table = Table("t", Source(SourceKind(word), Path("elsewhere.csv")), (Column("v", Type.TEXT),), person="p")
    (text,) = declared(table)
    assert f"source=Source(kind='{word}', path=None, relation=None, server=None, further=(), version=None)" in text


def test_numbers_are_integers_and_numbers() -> None:
    assert {one for one in Type if one.numeric} == {Type.INTEGER, Type.NUMBER}


def test_names_that_a_plan_makes_are_none_that_can_be_declared() -> None:
    assert own_name("word") == "\x1fword 0"
    assert own_name("word", 3) == "\x1fword 3"


def text(**more: Any) -> Column:
    return Column("c", Type.TEXT, **more)


@pytest.mark.parametrize(
    ("column", "longest"),
    [
        (text(), 200),
        (text(identifies=True), 1_000),
        (text(length=5), 5),
        (text(length=5, identifies=True), 5),
        (text(values=("a", "b" * 201)), 201),
        (text(values=("a",)), 200),
        (text(values=("a" * 201, "b")), 201),
        (text(values=("a" * 1_001,), identifies=True), 1_001),
        (Column("c", Type.INTEGER, values=(10**300,)), 200),
    ],
)
def test_the_longest_text_of_a_column(column: Column, longest: int) -> None:
    assert column.longest == longest


def number(step: Fraction | int | None, low: Any = None, high: Any = None) -> Column:
    return Column("c", Type.NUMBER, low, high, None if step is None else Fraction(step))


HALF = Fraction(1, 2)


@pytest.mark.parametrize(
    ("column", "steps"),
    [
        (number(None, 0, 1), None),
        (number(1), (-LARGEST, LARGEST)),
        (number(2), (-LARGEST // 2, LARGEST // 2)),
        (number(HALF), (-LARGEST, LARGEST)),
        (number(HALF, 0, 3), (0, 6)),
        (number(HALF, Fraction(1, 3), Fraction(4, 3)), (1, 2)),
        (number(HALF, Fraction(-4, 3), Fraction(-1, 3)), (-2, -1)),
        (number(HALF, -1), (-2, LARGEST)),
        (number(HALF, None, 1), (-LARGEST, 2)),
        (number(HALF, HALF, HALF), (1, 1)),
        (number(1, Fraction(1, 4), Fraction(3, 4)), None),
        (number(1, -LARGEST, LARGEST), (-LARGEST, LARGEST)),
        (number(1, -LARGEST - 1, 0), None),
        (number(1, 0, LARGEST + 1), None),
        (number(Fraction(1, LARGEST), 0, 1), (0, LARGEST)),
        (number(Fraction(1, LARGEST + 1), 0, Fraction(1, 2)), None),
        (number(LARGEST, 0, LARGEST), (0, 1)),
        (number(LARGEST + 1, 0, LARGEST), None),
        (number(Fraction(LARGEST + 1, 3), 0, LARGEST), None),
    ],
    ids=str,
)
def test_so_many_steps_are_counted(column: Column, steps: tuple[int, int] | None) -> None:
    assert LARGEST == 2**50
    assert column.steps == steps


@pytest.mark.parametrize(
    ("column", "keys"),
    [
        (text(), None),
        (text(values=("a", "b")), ("a", "b")),
        (text(values=()), ()),
        (Column("c", Type.BOOLEAN), (False, True)),
        (Column("c", Type.BOOLEAN, values=(True,)), (True,)),
        (Column("c", Type.INTEGER, 1, 3), (1, 2, 3)),
        (Column("c", Type.INTEGER, -1, -1), (-1,)),
        (Column("c", Type.INTEGER, 1, 1_000), tuple(range(1, 1_001))),
        (Column("c", Type.INTEGER, 0, 1_000), None),
        (Column("c", Type.INTEGER, 1), None),
        (Column("c", Type.INTEGER, None, 1), None),
        (Column("c", Type.NUMBER, 1, 3), None),
        (Column("c", Type.DATE, datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)), None),
        (Column("c", None, 1, 3), None),
    ],
)
def test_public_keys_of_a_column(column: Column, keys: tuple[object, ...] | None) -> None:
    assert column.keys() == keys


def of(**more: Any) -> Table:
    return Table("t", Source(SourceKind.CSV), (Column("Who", Type.TEXT), Column("x", Type.NUMBER)), **more)


@pytest.mark.parametrize(
    ("table", "unit"),
    [
        (of(), "each row"),
        (of(person="Who"), "who"),
        (of(person="Who", path=("Visits", "ID")), "who -> visits.id"),
    ],
)
def test_who_counts_as_a_person_in_words(table: Table, unit: str) -> None:
    assert table.unit == unit


@pytest.mark.parametrize(
    ("table", "stored"),
    [
        (of(one_row_per_person=True), 1),
        (of(one_row_per_person=True, rows_per_person=70), 1),
        (of(person="Who"), 100),
        (of(person="Who", rows_per_person=50), 100),
        (of(person="Who", rows_per_person=51), 102),
        (of(person="Who", rows_per_person=1), 100),
    ],
)
def test_how_many_rows_of_a_person_the_engine_holds(table: Table, stored: int) -> None:
    assert table.stored == stored


def test_columns_are_found_whatever_their_case() -> None:
    assert of().column("WHO") == of().column("who") == of().columns[0]
    assert of().column("x") == of().columns[1]
    assert of().column("y") is None


def test_the_tables_behind_a_table() -> None:
    assert of().bases == (of(),)
    assert of(parts=(of(person="Who"),)).bases == (of(person="Who"),)


def test_relations_that_nobody_has_made_known_are_refused() -> None:
    for refused in (as_table, own_columns):
        with pytest.raises(TypeError, match="unknown relation: str"):
            refused("t")
    with pytest.raises(NotImplementedError):
        Relation().children  # noqa: B018 - a property that raises


def test_what_a_column_and_a_table_are_where_nothing_more_is_said() -> None:
    """Every row may lack a value, and no declaration is public or shared unless it says so."""
    assert Column("c", Type.TEXT) == Column("c", Type.TEXT, None, None, None, None, True, None, False)
    assert of() == Table(
        "t", Source(SourceKind.CSV), of().columns, None, False, None, None, False, None, False, (), None
    )


def test_frames_and_relations_are_not_compared_and_not_shown() -> None:
    """A frame has no equality of its own; how tables are put together stands in their parts."""
    assert Source(SourceKind.FRAME, frame=1) == Source(SourceKind.FRAME, frame=2)
    assert "frame=" not in repr(Source(SourceKind.FRAME, frame=1))
    shown = repr(Source(SourceKind.CSV, delimiter=";", decimal=",", dates="%d", encoding="latin-1"))
    assert not any(name in shown for name in ("delimiter", "decimal", "dates", "encoding"))
    assert Source(SourceKind.CSV, delimiter=";") != Source(SourceKind.CSV)
    assert "Relation object" not in repr(of(relation=Relation()))
    assert of(relation=Relation()) != of()
