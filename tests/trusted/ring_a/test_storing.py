"""Which rows the engine holds of a source: of whom, how many, and how long their texts are."""

from __future__ import annotations

import datetime
import hashlib
import math
import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import duckdb
import pandas as pd
import pytest
from sqlglot import exp

from discreet.catalog import declare
from discreet.catalog.formats import fingerprint
from discreet.catalog.model import EngineLimits
from discreet.engines.duckdb.dialect import DUCKDB
from discreet.engines.duckdb.driver import DuckDB
from discreet.trusted.ring_a import windows
from discreet.trusted.ring_a.expressions import ColumnOf
from discreet.trusted.ring_a.lattice import Lattice
from discreet.trusted.ring_a.names import NOBODY, table_name
from discreet.trusted.ring_a.nodes import Quantity
from discreet.trusted.ring_a.quantities import quantity, steps_of
from discreet.trusted.ring_a.storing import load_statement, positions
from discreet.trusted.ring_a.table import LARGEST, Column, Source, SourceKind, Table, Type
from discreet.trusted.ring_a.windows import PLACE, ROWS, WORD
from discreet.trusted.ring_b.relation_statements import rows_of
from discreet.trusted.ring_b.relations import Base, Joined, JoinKind, Renamed


@pytest.fixture(scope="module")
def engine() -> Iterator[DuckDB]:
    one = DuckDB(EngineLimits(memory_gib=2))
    yield one
    one.close()


def loaded(engine: DuckDB, columns: dict[str, Any], frame: pd.DataFrame, **unit: Any) -> Table:
    unit = unit or {"person": "p", "rows_per_person": 3}
    raw = {"budget": {"epsilon": 1}, "tables": {"t": {"source": "t.csv", "columns": columns, **unit}}}
    table = declare(raw).tables["t"]
    table = Table(**{**vars(table), "source": Source(SourceKind.FRAME, frame=frame)})
    engine.close()
    engine.load(table, b"salt")
    return table


def held(engine: DuckDB, table: Table, what: str = "c0") -> list[Any]:
    assert engine._process is not None
    rows: Sequence[Any] = engine._process.call("run", f"SELECT {what} FROM {table_name(table)}", seconds=60)["rows"]
    return sorted(row[0] for row in rows)


def test_the_integer_of_nobody_is_no_person(engine: DuckDB) -> None:
    """Joins use it for a row that meets none."""
    frame = pd.DataFrame({"p": pd.array([int(NOBODY), int(NOBODY) + 1, 0, None, 5], "Int64")})
    assert held(engine, loaded(engine, {"p": {"type": "integer"}}, frame)) == [int(NOBODY) + 1, 0, 5]


@pytest.mark.parametrize("unit", [{"person": "p", "rows_per_person": 3}, {"person": "p", "one_row_per_person": True}])
def test_rows_with_overlong_ids_are_left_out_and_ids_are_never_cut(engine: DuckDB, unit: dict[str, Any]) -> None:
    """Cut, two persons could become one. Other texts are cut."""
    ids = ["a" * 20, "a" * 20 + "b", "a" * 21, "é" * 20, None, "é" * 21, "c"]
    frame = pd.DataFrame({"p": ids, "t": [one and one * 2 for one in ids]}, dtype="string")
    columns = {"p": {"type": "text", "length": 20}, "t": {"type": "text", "length": 25}}
    table = loaded(engine, columns, frame, **unit)
    assert held(engine, table) == ["a" * 20, "c", "é" * 20]
    assert held(engine, table, "c1") == ["a" * 25, "cc", "é" * 25]


def test_of_a_person_with_one_row_one_is_held(engine: DuckDB) -> None:
    frame = pd.DataFrame({"p": [1, 2, 1, 3, 2, 1], "x": range(6)})
    columns = {"p": {"type": "integer"}, "x": {"type": "integer"}}
    table = loaded(engine, columns, frame, person="p", one_row_per_person=True)
    assert held(engine, table) == [1, 2, 3]
    assert all(
        x in rows for x, rows in zip(held(engine, table, "c0 * 10 + c1"), ([10, 12, 15], [21, 24], [33]), strict=True)
    )


@pytest.mark.parametrize("mixing", [True, False])
def test_what_is_held_follows_from_the_rows_and_not_from_where_they_lie(
    engine: DuckDB, monkeypatch: pytest.MonkeyPatch, mixing: bool
) -> None:
    """Also where the numbers that mix rows are all alike, so that only what the rows hold can order them.

    Rows with NULLs, equal ones, two zeros, ends of each type: in several orders, the same positions and words."""
    if not mixing:
        monkeypatch.setattr(windows, "_number", lambda *_: 0)
    kinds = ("text", "number", "integer", "boolean", "text", "date", "timestamp")
    columns: dict[str, Any] = {name: {"type": kind} for name, kind in zip("pxnbtds", kinds, strict=True)}
    texts = [None, "x", "\U0001f600" * 50]
    days, moments = [None, "0001-01-01", "2020-02-29"], [None, "9999-12-31 23:59:59", "1969-12-31 23:59:59.999999"]
    rows = [
        (person, x, n, n is None or n > 0, text, day, moment)
        for person in ("a", "é", "")
        for x in (0.0, -0.0, None, 1e308, -1e-308, float("inf"))
        for n in (-(2**63), 2**63 - 1, None, 5)
        for text, day, moment in zip(texts, days, moments, strict=True)
    ] * 2
    everything = f"(c0, c1, 1 / c1, c2, c3, c4, c5, c6, {PLACE}, {ROWS}, {WORD})::TEXT"
    found = []
    for turn in range(3):
        frame = pd.DataFrame(random.Random(turn).sample(rows, len(rows)), columns=list(columns), dtype="object")
        found.append(held(engine, loaded(engine, columns, frame), everything))
    assert len(found[0]) == 300
    assert found[0] == found[1] == found[2]


def test_of_each_person_so_many_rows_are_held_numbered_without_a_gap(engine: DuckDB) -> None:
    """Of 250 rows 100, of 5 all: positions are 1 … n, n is what the engine holds of the person, one word each."""
    frame = pd.DataFrame({"p": [1] * 250 + [2] * 5, "x": range(255)})
    table = loaded(engine, {"p": {"type": "integer"}, "x": {"type": "integer"}}, frame)
    for person, rows in ((1, 100), (2, 5)):
        where = f"c0 = {person} THEN"
        assert [x for x in held(engine, table, f"CASE WHEN {where} {PLACE} ELSE 0 END") if x] == list(
            range(1, rows + 1)
        )
        assert {x for x in held(engine, table, f"CASE WHEN {where} {ROWS} ELSE 0 END") if x} == {rows}
        assert len({x for x in held(engine, table, f"CASE WHEN {where} {WORD} ELSE 0 END") if x}) == 1
    kept = [x for x in held(engine, table, "c1") if x < 250]
    assert len(set(kept)) == 100
    assert len([x for x in kept if x < 125]) in range(20, 81)  # spread over the source, and no stretch of it


@pytest.mark.parametrize(
    ("kind", "rows"),
    [("inner", [4, 1, 9]), ("left", [4, 1, 9]), ("right", [4, 1, 9]), ("full", [4, 1, 9])],
)
def test_rows_of_two_persons_never_meet_whatever_is_compared(engine: DuckDB, kind: str, rows: list[int]) -> None:
    """Without any condition, the engine still compares the persons: each person's rows meet that person's own."""
    frame = pd.DataFrame({"p": [1, 1, 2, 3, 3, 3], "x": range(6)})
    columns = {"p": {"type": "integer"}, "x": {"type": "integer"}}
    one = Base.of(loaded(engine, columns, frame))
    joined = rows_of(Joined(JoinKind(kind), one, Renamed(one, ("q", "y")), None), lambda _: None)
    assert engine._process is not None
    sql = f"SELECT person, count(*), bool_and(c0 = c2) FROM ({DUCKDB.text(joined.select)}) GROUP BY person"
    found = sorted(engine._process.call("run", sql, seconds=60)["rows"])
    assert [tuple(row) for row in found] == [
        (person, count, True) for person, count in zip((1, 2, 3), rows, strict=True)
    ]


STEPS = ("0.1", "0.001", "1", "7/3", "1/3", "2.5", "0.0000001")


@pytest.mark.parametrize("written", STEPS)
def test_whole_numbers_beside_a_column_are_what_its_values_give(engine: DuckDB, written: str) -> None:
    """On the lattice of the column, and on every narrower one of its step: numbers at halves of steps, beyond the
    bounds, at ±0, infinite and none."""
    step = Fraction(written)
    low, high = -900 * step, 1000 * step
    chance = random.Random(written)
    halves = [float(step * Fraction(chance.randint(-2100, 2100), 2)) for _ in range(2000)]
    odd = [0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, 1.7e308, float(low), float(high), None]
    values = [*halves, *(math.nextafter(one, math.inf) for one in halves), *odd]
    frame = pd.DataFrame({"p": [str(place) for place in range(len(values))], "x": pd.array(values, "Float64")})
    number = {"type": "number", "min": low, "max": high, "step": step}
    table = loaded(engine, {"p": {"type": "text"}, "x": number}, frame, person="p", one_row_per_person=True)
    lattices = [
        Lattice(step, *ends) for ends in ((-900, 1000), (0, 10), (-5, 400), (-900, -899), (3, 3), (-2000, 2000))
    ]
    of_value = [
        DUCKDB.text(quantity(Quantity(ColumnOf("x", Type.NUMBER), one), {"x": exp.column("c1")})) for one in lattices
    ]
    beside = {("x", step): exp.column("s1")}
    of_steps = [
        DUCKDB.text(quantity(Quantity(ColumnOf("x", Type.NUMBER), one), {"x": exp.column("c1")}, beside))
        for one in lattices
    ]
    assert all("s1" in one and "c1" not in one for one in of_steps)
    differ = " OR ".join(f"({a}) IS DISTINCT FROM ({b})" for a, b in zip(of_value, of_steps, strict=True))
    assert held(engine, table, f"COUNT(*) FILTER (WHERE {differ})") == [0]
    assert held(engine, table, "COUNT(*) FILTER (WHERE s1 IS NULL)") == [2]
    assert held(engine, table, "MIN(s1)") == [-900]
    assert held(engine, table, "MAX(s1)") == [1000]


def test_whole_numbers_stand_beside_columns_with_step_and_bounds_alone(engine: DuckDB) -> None:
    number = {"type": "number", "min": 0, "max": 1}
    columns = {
        "p": {"type": "text"},
        "a": number,
        "b": {**number, "step": Fraction(1, 8)},
        "c": {"type": "number", "step": Fraction(1, 8)},
        "d": {"type": "number", "min": 0, "max": 2**40, "step": Fraction(1, 8)},
    }
    frame = pd.DataFrame({"p": ["x"], "a": [0.5], "b": [0.5], "c": [0.5], "d": [2.0**39]})
    table = loaded(engine, columns, frame)
    assert steps_of(table).keys() == {("b", Fraction(1, 8)), ("d", Fraction(1, 8))}
    assert held(engine, table, "[s2, s4]") == [[4, 2**42]]


def test_which_lattices_fit_into_so_many_bits() -> None:
    for low, high, fits in ((0, 2**31 - 1, True), (0, 2**31, False), (1 - 2**31, 0, True), (-(2**31), 0, False)):
        assert Lattice(Fraction(1), low, high).fits(2**31) is fits


class Store:
    """The engine of a test alone, in this process: what a table's load makes of a source's rows."""

    def __init__(self) -> None:
        self.connection = duckdb.connect(config={"threads": 1})

    def loaded(
        self, table: Table, kinds: Sequence[str], rows: Sequence[Sequence[Any]], what: str = "*"
    ) -> list[tuple[Any, ...]]:
        """What of the loaded table, in the order in which it lies there."""
        names = [f"{column.name} {kind}" for column, kind in zip(table.columns, kinds, strict=True)]
        self.connection.execute(f"CREATE OR REPLACE TABLE source ({', '.join(names)})")
        self.connection.executemany(f"INSERT INTO source VALUES ({', '.join('?' for _ in kinds)})", rows)
        self.connection.execute(f"DROP TABLE IF EXISTS {table_name(table)}")
        statement = load_statement(table, exp.to_table("source"), "a key", lambda one: exp.column(one.name))
        self.connection.execute(DUCKDB.text(statement))
        return self.connection.execute(f"SELECT {what} FROM {table_name(table)}").fetchall()

    def column(self, column: Column, kind: str, values: Sequence[Any]) -> list[Any]:
        """What a column holds of these values, in a table of which each row is a person."""
        table = Table("t", Source(SourceKind.CSV), (column,), one_row_per_person=True)
        found = self.loaded(table, [kind], [[value] for value in values], "c0")
        assert len(found) == len(values)
        return [value for (value,) in found]


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    one = Store()
    yield one
    one.connection.close()


def test_the_key_of_positions_follows_from_the_ledgers_salt_and_the_tables_name() -> None:
    table = Table("Visits", Source(SourceKind.CSV), (), one_row_per_person=True)
    digest = hashlib.sha256(b"positions" + b"salt" + b"Visits").hexdigest()
    assert positions(table, b"salt") == digest[:32]
    assert len(positions(table, b"salt")) == 32


MOMENT = datetime.datetime(2020, 2, 29, 12, 30)
FIRST, LAST = datetime.date(1, 1, 1), datetime.date(9999, 12, 31)
MIDDLE = datetime.date(2020, 2, 29)


@pytest.mark.parametrize(
    ("column", "kind", "held"),
    [
        (Column("c", Type.INTEGER), "TEXT", {"7": 7, "x": None, None: None, "9" * 30: None, "-3": -3}),
        (Column("c", Type.INTEGER, -2, 5), "BIGINT", {-9: -2, -2: -2, 0: 0, 5: 5, 6: 5, None: None}),
        (Column("c", Type.INTEGER, -2), "BIGINT", {-9: -2, 2**63 - 1: 2**63 - 1, None: None}),
        (Column("c", Type.INTEGER, None, 5), "BIGINT", {-(2**63): -(2**63), 6: 5, None: None}),
        (
            Column("c", Type.INTEGER, -(2**53) - 1, 2**53 + 1),
            "BIGINT",
            {-(2**63): -(2**53) - 1, 2**53: 2**53, 2**63 - 1: 2**53 + 1},
        ),
        (Column("c", Type.BOOLEAN), "TEXT", {"true": True, "false": False, "maybe": None, None: None}),
        (Column("c", Type.NUMBER), "DOUBLE", {1.5: 1.5, math.inf: math.inf, -math.inf: -math.inf, None: None}),
        (Column("c", Type.NUMBER, -2, 5), "DOUBLE", {-math.inf: -2.0, -1.5: -1.5, 5.5: 5.0, math.inf: 5.0, None: None}),
        (Column("c", Type.NUMBER, -2, 5, Fraction(1, 2**50 + 1)), "DOUBLE", {-3.0: -2.0, 0.3: 0.3, None: None}),
        (Column("c", Type.NUMBER, -2), "DOUBLE", {-3.0: -2.0, math.inf: math.inf, None: None}),
        (Column("c", Type.NUMBER, None, Fraction(1, 3)), "DOUBLE", {-math.inf: -math.inf, 3.0: 1 / 3, None: None}),
        (Column("c", Type.TEXT, length=3), "TEXT", {"abcd": "abc", "äöüß": "äöü", "ab": "ab", "": "", None: None}),
        (Column("c", Type.TEXT), "TEXT", {"a" * 200: "a" * 200, "b" * 201: "b" * 200}),
        (
            Column("c", Type.DATE),
            "TEXT",
            {"2020-02-29": MIDDLE, "infinity": LAST, "-infinity": FIRST, "12000-01-01": LAST, "x": None, None: None},
        ),
        (Column("c", Type.DATE, MIDDLE), "DATE", {FIRST: MIDDLE, MIDDLE: MIDDLE, LAST: LAST, None: None}),
        (Column("c", Type.DATE, None, MIDDLE), "DATE", {FIRST: FIRST, MIDDLE: MIDDLE, LAST: MIDDLE, None: None}),
        (
            Column("c", Type.TIMESTAMP),
            "TEXT",
            {
                "2020-02-29 12:30:00": MOMENT,
                "infinity": datetime.datetime(9999, 12, 31, 23, 59, 59),
                "9999-12-31 23:59:58.5": datetime.datetime(9999, 12, 31, 23, 59, 58, 500000),
                "9999-12-31 23:59:59.5": datetime.datetime(9999, 12, 31, 23, 59, 59),
                "-infinity": datetime.datetime(1, 1, 1),
                None: None,
            },
        ),
        (
            Column("c", Type.TIMESTAMP, MOMENT, MOMENT),
            "TIMESTAMP",
            {MOMENT: MOMENT, datetime.datetime(1, 1, 1): MOMENT},
        ),
    ],
    ids=str,
)
def test_values_are_of_the_declared_type_and_between_the_bounds(
    store: Store, column: Column, kind: str, held: dict[Any, Any]
) -> None:
    """What does not convert is NULL; dates that Python does not know are its first or last."""
    assert store.column(column, kind, list(held)) == list(held.values())


def test_not_a_number_is_no_value_and_there_is_one_zero(store: Store) -> None:
    for column in (Column("c", Type.NUMBER), Column("c", Type.NUMBER, -1, 1, Fraction(1, 4))):
        found = store.column(column, "DOUBLE", [math.nan, -0.0, 0.0, -0.1 if column.step else -0.0])
        assert found == [None, 0.0, 0.0, 0.0]
        assert all(math.copysign(1, one) == 1 for one in found[1:])


@pytest.mark.parametrize(
    "step", [Fraction(1, 4), Fraction(1, 10), Fraction(3, 10), Fraction(7), Fraction(2, 3)], ids=str
)
@pytest.mark.parametrize("bounds", [(-10, 12), (None, 12), (-10, None), (None, None)], ids=str)
def test_numbers_with_a_step_are_its_nearest_multiples(
    store: Store, step: Fraction, bounds: tuple[int | None, int | None]
) -> None:
    """Within the bounds; where one is open, what is beyond the numbers that are counted stays as it is."""
    low, high = (None if one is None else one * step for one in bounds)
    column = Column("c", Type.NUMBER, low, high, step)
    most = LARGEST // step.numerator * step
    values = [float(step * Fraction(place, 8)) for place in range(-140, 141, 3)]
    values += [sign * one for sign in (1, -1) for one in (float(most), 2 * float(most), 1e300, math.inf)]
    for value, found in zip(values, store.column(column, "DOUBLE", values), strict=True):
        inside = max(-math.inf if low is None else float(low), min(math.inf if high is None else float(high), value))
        if abs(inside) > float(most):
            assert found == inside
        else:
            inverse = 1 / step
            scaled = inside * float(inverse) if inverse.denominator == 1 else inside / float(step)
            multiple = math.floor(scaled + 0.5)
            assert found == float(multiple * step.numerator) / step.denominator
            assert abs(multiple * step - Fraction(inside)) <= step * Fraction(9, 16)


@pytest.mark.parametrize(
    ("ends", "kind"),
    [((0, 2**31 - 1), "INTEGER"), ((0, 2**31), "BIGINT"), ((1 - 2**31, 0), "INTEGER"), ((-(2**31), 0), "BIGINT")],
)
def test_steps_beside_a_column_take_as_little_room_as_they_can(store: Store, ends: tuple[int, int], kind: str) -> None:
    step = Fraction(1, 2)
    column = Column("c", Type.NUMBER, *(end * step for end in ends), step)
    table = Table("t", Source(SourceKind.CSV), (column,), one_row_per_person=True)
    values = [[float(end * step)] for end in ends]
    assert store.loaded(table, ["DOUBLE"], values, "s0, TYPEOF(s0)") == [(end, kind) for end in ends]


PAIR = (Column("p", Type.TEXT, length=2, identifies=True), Column("x", Type.TEXT, length=2))


def test_rows_of_nobody_and_with_overlong_ids_are_left_out(store: Store) -> None:
    rows = [["a", "xyz"], [None, "x"], ["abc", "x"], ["ab", None], ["", "x"]]
    of_persons = Table("t", Source(SourceKind.CSV), PAIR, person="p", rows_per_person=1)
    assert sorted(store.loaded(of_persons, ["TEXT", "TEXT"], rows, "c0, c1"), key=repr) == [
        ("", "x"),
        ("a", "xy"),
        ("ab", None),
    ]
    each = Table("t", Source(SourceKind.CSV), PAIR, one_row_per_person=True)
    assert store.loaded(each, ["TEXT", "TEXT"], rows) == [("a", "xy"), (None, "x"), ("ab", None), ("", "x")]


def test_the_integer_that_tells_no_person_is_nobody_only_where_it_tells_persons(store: Store) -> None:
    columns = (Column("p", Type.INTEGER), Column("x", Type.INTEGER))
    rows = [[int(NOBODY), 1], [int(NOBODY) + 1, int(NOBODY)], [0, 2]]
    table = Table("t", Source(SourceKind.CSV), columns, person="p")
    expected = [(int(NOBODY) + 1, int(NOBODY)), (0, 2)]
    assert sorted(store.loaded(table, ["BIGINT", "BIGINT"], rows, "c0, c1")) == expected
    other = Table("t", Source(SourceKind.CSV), columns, one_row_per_person=True)
    assert len(store.loaded(other, ["BIGINT", "BIGINT"], rows)) == 3
    texts = (Column("p", Type.TEXT), Column("x", Type.INTEGER))
    of_text = Table("t", Source(SourceKind.CSV), texts, person="p")
    assert len(store.loaded(of_text, ["TEXT", "BIGINT"], [[NOBODY, int(NOBODY)]])) == 1


def test_public_rows_are_whole_and_numbered_in_the_order_of_what_they_hold(store: Store) -> None:
    """No text of them is cut, none is left out, whoever's it is; NULL comes first."""
    table = Table("t", Source(SourceKind.CSV), PAIR, public=True)
    rows = [["b", "x"], ["abcd", "yyy"], [None, "z"], ["b", None], ["abcd", "xxx"], ["b", "x"]]
    found = store.loaded(table, ["TEXT", "TEXT"], rows, f"c0, c1, {PLACE}")
    ordered = [(None, "z"), ("abcd", "xxx"), ("abcd", "yyy"), ("b", None), ("b", "x"), ("b", "x")]
    assert sorted(found, key=lambda row: row[2]) == [(*row, place) for place, row in enumerate(ordered, 1)]


def test_the_fingerprint_is_of_all_that_the_rows_hold(store: Store) -> None:
    """The number of rows, and two sums over all columns, in whatever order; nothing that is made beside."""
    table = Table("t", Source(SourceKind.CSV), PAIR, person="p")

    def facts(rows: Sequence[Sequence[Any]]) -> tuple[Any, ...]:
        store.loaded(table, ["TEXT", "TEXT"], rows)
        ((*found,),) = store.connection.execute(DUCKDB.text(fingerprint(table))).fetchall()
        assert (
            tuple(found[1:])
            == store.connection.execute(
                f"SELECT SUM(HASH(c0, c1)), BIT_XOR(HASH(c0, c1)) FROM {table_name(table)}"
            ).fetchone()
        )
        return tuple(found)

    rows = [["a", "x"], ["b", "x"], ["b", "y"]]
    assert facts(rows)[0] == 3
    assert facts(rows) == facts(rows[::-1])
    for other in ([["a", "x"], ["b", "x"]], [["a", "x"], ["b", "x"], ["b", "z"]], [["c", "x"], ["b", "x"], ["b", "y"]]):
        assert facts(other)[1:] != facts(rows)[1:]
