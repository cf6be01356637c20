"""A row's number in steps of a lattice, as the engine computes it, beside the same in Python."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import duckdb
import pytest
from sqlglot import exp

from discreet.engines.duckdb.dialect import DUCKDB
from discreet.trusted.ring_a.expressions import Call, ColumnOf, Expression, Literal
from discreet.trusted.ring_a.lattice import ROW_LIMIT, Lattice
from discreet.trusted.ring_a.nodes import Quantity
from discreet.trusted.ring_a.quantities import clamped, clamped_column, power_of, quantity, rounded, steps_of, unknown
from discreet.trusted.ring_a.table import Column, Source, SourceKind, Table, Type

WHOLE = [None, 0, 1, -1, 2, 3, -4, 5, 6, 7, 100, 2**53 - 1, 2**52 + 1, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)]
DOUBLES = [None, 0.0, -0.0, 0.25, 0.5, 0.75, -0.25, -0.5, -0.75, 1.5, 2.5, 3.4999999999999996, -1.5, 10.0, 0.1, 0.15]
DOUBLES += [1 / 3, 2 / 3, 7.0, 1e300, -1e300, 5e-324, math.inf, -math.inf, math.nextafter(0.5, 0), 2.0**53, -(2.0**53)]

COLUMNS = {"i": exp.column("c0"), "x": exp.column("c1")}
INTEGER, NUMBER = ColumnOf("i", Type.INTEGER), ColumnOf("x", Type.NUMBER)
LATTICES = [
    Lattice(Fraction(step), *ends)
    for step in ("1", "1/2", "1/4", "1/10", "1/3", "2", "3/10", "1e-9")
    for ends in ((-3, 5), (0, 0), (2, 4), (-4, -2), (-ROW_LIMIT, ROW_LIMIT))
]


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("CREATE TABLE t (c0 BIGINT, c1 DOUBLE)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [[one, None] for one in WHOLE])
        connection.executemany("INSERT INTO t VALUES (?, ?)", [[None, one] for one in DOUBLES])
        yield connection


def made(engine: duckdb.DuckDBPyConnection, *nodes: exp.Expression) -> list[tuple[Any, ...]]:
    """Both columns of each row beside these."""
    return engine.execute(DUCKDB.text(exp.select("c0", "c1", *nodes).from_("t"))).fetchall()


def nearest(value: float, lattice: Lattice) -> int:
    """Halves up, in doubles; then within the ends."""
    inverse = 1 / lattice.step
    scaled = value * float(inverse) if inverse.denominator == 1 else value / float(lattice.step)
    if math.isinf(scaled):
        return lattice.high if scaled > 0 else lattice.low
    return max(lattice.low, min(lattice.high, math.floor(scaled + 0.5)))


@pytest.mark.parametrize("lattice", LATTICES, ids=str)
def test_numbers_are_rounded_to_the_nearest_step_and_clamped(
    engine: duckdb.DuckDBPyConnection, lattice: Lattice
) -> None:
    """Columns of both types; whole numbers in steps of one are never a double, so each is clamped as it is."""
    of_whole, of_number = (quantity(Quantity(one, lattice), COLUMNS) for one in (INTEGER, NUMBER))
    for i, x, whole, number in made(engine, of_whole, of_number):
        if lattice.step == 1 and i is not None:
            assert whole == max(lattice.low, min(lattice.high, i))
        else:
            assert whole == (None if i is None else nearest(float(i), lattice))
        assert number == (None if x is None else nearest(x, lattice))
        assert all(type(one) is int for one in (whole, number) if one is not None)


@pytest.mark.parametrize("lattice", LATTICES, ids=str)
def test_a_column_counted_in_steps_is_clamped_and_its_numbers_are_not_read(
    engine: duckdb.DuckDBPyConnection, lattice: Lattice
) -> None:
    steps = {("x", lattice.step): exp.column("c0"), ("y", Fraction(7)): exp.column("c9")}
    node = quantity(Quantity(NUMBER, lattice), COLUMNS, steps)
    assert {one.name for one in node.find_all(exp.Column)} == {"c0"}
    for i, _, found in made(engine, node):
        assert found == (None if i is None else max(lattice.low, min(lattice.high, i)))


def test_steps_of_another_column_or_another_step_are_not_its_own() -> None:
    lattice = Lattice(Fraction(1, 2), 0, 9)
    for steps in ({("y", lattice.step): exp.column("c9")}, {("x", Fraction(1, 4)): exp.column("c9")}):
        assert quantity(Quantity(NUMBER, lattice), COLUMNS, steps) == quantity(Quantity(NUMBER, lattice), COLUMNS)
    computed = Quantity(Call("negate", (NUMBER,), Type.NUMBER), lattice)
    assert quantity(computed, COLUMNS, {("x", lattice.step): exp.column("c9")}) == quantity(computed, COLUMNS)


DIFFERENCE = Call("subtract", (NUMBER, NUMBER), Type.NUMBER)
"""0, or not a number where the column is infinite."""
IS_NULL = Call("is_null", (INTEGER,), Type.BOOLEAN)


@pytest.mark.parametrize("lattice", [None, Lattice(Fraction(1, 2), 1, 4), Lattice(Fraction(1), -2, 2)], ids=str)
def test_what_is_not_a_number_is_no_value(engine: duckdb.DuckDBPyConnection, lattice: Lattice | None) -> None:
    for _, x, found in made(engine, quantity(Quantity(DIFFERENCE, lattice), COLUMNS)):
        number = x is not None and math.isfinite(x)
        assert found == ((1 if lattice is None or lattice.low == 1 else 0) if number else None)


@pytest.mark.parametrize("expression", [INTEGER, NUMBER], ids=str)
def test_without_a_lattice_a_value_counts_as_one(engine: duckdb.DuckDBPyConnection, expression: Expression) -> None:
    for i, x, found in made(engine, quantity(Quantity(expression, None), COLUMNS)):
        assert found == (None if (i if expression is INTEGER else x) is None else 1)


def test_only_numbers_that_are_computed_in_doubles_are_asked_whether_they_are_none() -> None:
    """A column holds no NaN, and neither do whole numbers and what is no number."""
    whole = Call("coalesce", (INTEGER, Literal(0, Type.INTEGER)), Type.INTEGER)
    for one in (INTEGER, NUMBER, IS_NULL, whole):
        assert isinstance(unknown(Quantity(one, None), exp.column("c1")), exp.Is)
    assert isinstance(unknown(Quantity(DIFFERENCE, None), exp.column("c1")), exp.Or)


@pytest.mark.parametrize(("low", "high"), [(-3, 5), (0, 0), (2, 4), (-(2**53), 2**53)])
def test_between_two_ends(engine: duckdb.DuckDBPyConnection, low: int, high: int) -> None:
    """Each way of clamping, of columns and of values."""
    ends = exp.Literal.number(low), exp.Literal.number(high)
    for i, _, column, value in made(
        engine, clamped_column(exp.column("c0"), low, high), clamped(exp.column("c0"), *ends)
    ):
        assert column == (None if i is None else max(low, min(high, i)))
        assert i is None or value == column


def test_rounded_doubles_stay_doubles(engine: duckdb.DuckDBPyConnection) -> None:
    lattice = Lattice(Fraction(1, 4), -9, 9)
    for _, x, found in made(engine, rounded(exp.column("c1"), lattice)):
        assert isinstance(found, float)
        assert x is None or found == nearest(x, lattice)


def test_powers_that_nobody_has_made_known_are_refused() -> None:
    with pytest.raises(TypeError, match="no powers are known of str over 2 columns"):
        power_of("x", COLUMNS)


def test_which_columns_have_whole_numbers_of_steps_beside_them() -> None:
    step, number = Fraction(1, 2), Type.NUMBER
    columns = (
        Column("p", Type.TEXT),
        Column("both", number, 0, 3, step),
        Column("no step", number, 0, 3),
        Column("no end", number, 0, None, step),
        Column("no start", number, None, 3, step),
        Column("neither", number, step=step),
        Column("uncountable", number, 0, 3, Fraction(1, 2**50 + 1)),
        Column("below zero", number, Fraction(-5, 4), Fraction(7, 4), step),
    )
    table = Table("t", Source(SourceKind.CSV), columns, person="p")
    assert steps_of(table) == {
        ("both", step): (Lattice(step, 0, 6), "s1"),
        ("below zero", step): (Lattice(step, -2, 3), "s7"),
    }
