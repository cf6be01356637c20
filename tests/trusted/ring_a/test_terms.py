"""What one row gives: constants and columns as the engine has them, their types, and which are whole."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import duckdb
import pytest
from sqlglot import exp

from discreet.engines.duckdb.dialect import DUCKDB
from discreet.trusted.ring_a.expressions import Call, ColumnOf, Expression, Literal
from discreet.trusted.ring_a.table import Type
from discreet.trusted.ring_a.terms import (
    as_double,
    call_is_whole,
    call_tree,
    compiled,
    double_literal,
    held_whole,
    is_whole,
    literal,
    scaled,
)
from discreet.trusted.ring_b.functions import OPERATORS

COLUMNS = {"i": exp.column("c0"), "x": exp.column("c1"), "s": exp.column("c2")}
INTEGER, NUMBER, TEXT = ColumnOf("i", Type.INTEGER), ColumnOf("x", Type.NUMBER), ColumnOf("s", Type.TEXT)
SUM = Call("add", (NUMBER, NUMBER), Type.NUMBER)
WHOLE = Call("coalesce", (INTEGER, Literal(0, Type.INTEGER)), Type.INTEGER)


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("CREATE TABLE t AS SELECT 7::BIGINT AS c0, 2.5::DOUBLE AS c1, 'text' AS c2")
        yield connection


def given(engine: duckdb.DuckDBPyConnection, node: exp.Expression) -> tuple[Any, str]:
    """The value of a term in the engine, and the engine's type of it."""
    tree = exp.select(node, exp.Anonymous(this="TYPEOF", expressions=[node.copy()])).from_("t")
    ((value, kind),) = engine.execute(DUCKDB.text(tree)).fetchall()
    return value, kind


CONSTANTS: list[tuple[Any, Any, str]] = [
    (True, True, "BOOLEAN"),
    (False, False, "BOOLEAN"),
    (
        datetime.datetime(2020, 2, 29, 23, 59, 59, 999999),
        datetime.datetime(2020, 2, 29, 23, 59, 59, 999999),
        "TIMESTAMP",
    ),
    (datetime.date(1, 1, 1), datetime.date(1, 1, 1), "DATE"),
    ("it's", "it's", "VARCHAR"),
    (0, 0, "BIGINT"),
    (2**63 - 1, 2**63 - 1, "BIGINT"),
    (1 - 2**63, 1 - 2**63, "BIGINT"),
    (2**63, 2.0**63, "DOUBLE"),
    (-(2**63), -(2.0**63), "DOUBLE"),
    (2**64, 2.0**64, "DOUBLE"),
    (Fraction(1, 3), 1 / 3, "DOUBLE"),
    (Fraction(10) ** 400, math.inf, "DOUBLE"),
    (-(Fraction(10) ** 400), -math.inf, "DOUBLE"),
]


@pytest.mark.parametrize(("value", "expected", "kind"), CONSTANTS, ids=str)
def test_constants_have_their_types(engine: duckdb.DuckDBPyConnection, value: Any, expected: Any, kind: str) -> None:
    constant = Literal(value, Type.TEXT)
    for node in (literal(constant), compiled(constant, COLUMNS)):
        assert given(engine, node) == (expected, kind)


def test_no_value_is_null() -> None:
    assert literal(Literal(None, Type.INTEGER)) == exp.null()


def test_the_nearest_double_is_written_so_that_it_is_read_as_it(engine: duckdb.DuckDBPyConnection) -> None:
    for value in (Fraction(1, 10), Fraction(1, 3), Fraction(5, 10**324), Fraction(2) ** 1023, Fraction(-7, 9)):
        assert given(engine, double_literal(value)) == (float(value), "DOUBLE")


def test_columns_are_what_the_engine_calls_them_each_time_anew() -> None:
    assert compiled(INTEGER, COLUMNS) == COLUMNS["i"]
    assert compiled(INTEGER, COLUMNS) is not COLUMNS["i"]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (INTEGER, 7.0),
        (NUMBER, 2.5),
        (Literal(3, Type.INTEGER), 3.0),
        (Literal(Fraction(1, 4), Type.NUMBER), 0.25),
        (Literal(2**70, Type.INTEGER), 2.0**70),
        (SUM, 5.0),
        (WHOLE, 7.0),
    ],
    ids=str,
)
def test_numbers_as_doubles(engine: duckdb.DuckDBPyConnection, expression: Expression, value: float) -> None:
    assert given(engine, as_double(expression, COLUMNS)) == (value, "DOUBLE")


def test_no_number_is_cast_that_is_a_double() -> None:
    assert as_double(NUMBER, COLUMNS) == COLUMNS["x"]
    assert not isinstance(as_double(SUM, COLUMNS), exp.Cast)
    assert as_double(Literal(None, Type.NUMBER), COLUMNS) == exp.null()


@pytest.mark.parametrize(
    ("expression", "held", "whole"),
    [
        (INTEGER, True, True),
        (NUMBER, False, False),
        (TEXT, False, False),
        (Literal(1, Type.INTEGER), True, True),
        (Literal(2**63 - 1, Type.INTEGER), True, True),
        (Literal(1 - 2**63, Type.INTEGER), True, True),
        (Literal(2**63, Type.INTEGER), False, False),
        (Literal(-(2**63), Type.INTEGER), False, False),
        (Literal(2**64, Type.INTEGER), False, False),
        (Literal(1, Type.NUMBER), True, False),
        (Literal(Fraction(1, 2), Type.NUMBER), False, False),
        (Literal(True, Type.BOOLEAN), False, False),
        (Literal(False, Type.INTEGER), False, False),
        (Literal(None, Type.INTEGER), True, True),
        (Literal(None, Type.TEXT), True, False),
        (SUM, False, False),
        (WHOLE, True, True),
    ],
    ids=str,
)
def test_what_the_engine_holds_as_a_whole_number(expression: Expression, held: bool, whole: bool) -> None:
    assert held_whole(expression) is held
    assert is_whole(expression) is whole


@pytest.mark.parametrize(
    ("factor", "divisor", "value"), [(1, 1, 2.5), (3, 1, 7.5), (1, 4, 0.625), (3, 4, 1.875), (0, 1, 0.0), (2, 2, 2.5)]
)
def test_a_double_times_one_number_over_another(
    engine: duckdb.DuckDBPyConnection, factor: int, divisor: int, value: float
) -> None:
    node = scaled(exp.column("c1"), factor, divisor)
    assert given(engine, node) == (value, "DOUBLE")
    assert (node == exp.column("c1")) is (factor == divisor == 1)


def test_operators_that_nobody_has_made_known_are_refused() -> None:
    assert OPERATORS
    for refused in (lambda: call_tree("add", COLUMNS), lambda: call_is_whole("add")):
        with pytest.raises(TypeError, match="no operator is known for str"):
            refused()
