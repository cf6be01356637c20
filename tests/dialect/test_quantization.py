"""Intervals and lattices: what is known of a row's number before any row is read."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.dialect.quantization import FINENESS, buckets, clamping, lattice
from discreet.dialect.ranges import interval
from discreet.errors import QuestionError
from discreet.trusted.ring_a.expressions import Call, ColumnOf, Expression, Literal
from discreet.trusted.ring_a.lattice import ROW_LIMIT, Lattice
from discreet.trusted.ring_a.table import Type
from kinds import examples
from plan_tools import COLUMNS, declaration, people, planned

KIND = "exact"

TABLE = declaration({"one_row_per_person": True}).tables["t"]
KNOWN = {column.name: column for column in TABLE.columns}
BOUNDED = [ColumnOf(name, Type(COLUMNS[name]["type"])) for name in ("k", "v", "w", "s")]
CONSTANTS = st.fractions(min_value=-20, max_value=20, max_denominator=8).map(lambda value: Literal(value, Type.NUMBER))


def _calls(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    one = st.builds(lambda name, side: Call(name, (side,), Type.NUMBER), st.sampled_from(["negate", "absolute"]), inner)
    operators = st.sampled_from(["add", "subtract", "multiply", "divide", "coalesce"])
    two = st.builds(lambda name, a, b: Call(name, (a, b), Type.NUMBER), operators, inner, inner)
    null = st.just(Literal(None, Type.TEXT))
    condition = Call("is_null", (ColumnOf("b", Type.BOOLEAN),), Type.BOOLEAN)
    case = st.builds(lambda a, b: Call("case", (condition, a, b), Type.NUMBER), inner, st.one_of(inner, null))
    return st.one_of(one, two, case)


EXPRESSIONS = st.recursive(st.one_of(st.sampled_from(BOUNDED), CONSTANTS), _calls, max_leaves=8)
QUARTERS = {"k": (0, 12), "v": (-20, 28), "w": (-10, 40), "s": (0, 12)}
ROWS = st.fixed_dictionaries(
    {
        name: st.one_of(st.none(), st.integers(*ends).map(lambda quarter: Fraction(quarter, 4)))
        for name, ends in QUARTERS.items()
    }
    | {"b": st.sampled_from([None, True])}
)


def value(expression: Expression, row: Mapping[str, Any]) -> Fraction | None:
    """The exact value of an expression on a row."""
    if isinstance(expression, ColumnOf):
        return row[expression.name]  # type: ignore[no-any-return]
    if isinstance(expression, Literal):
        return None if expression.value is None else Fraction(expression.value)  # type: ignore[arg-type]
    if expression.operator == "case":
        return value(expression.arguments[1 if row["b"] is None else 2], row)
    values = [value(argument, row) for argument in expression.arguments]
    if expression.operator == "coalesce":
        return next((one for one in values if one is not None), None)
    if any(one is None for one in values):
        return None
    first, last = values[0], values[-1]
    assert first is not None
    assert last is not None
    if expression.operator == "divide":
        return first / last if last else None
    return {
        "negate": -first,
        "absolute": abs(first),
        "add": first + last,
        "subtract": first - last,
        "multiply": first * last,
    }[expression.operator]


@settings(max_examples=examples(1000), deadline=None, derandomize=True)
@given(expression=EXPRESSIONS, row=ROWS)
def test_every_value_lies_in_its_interval(expression: Expression, row: Mapping[str, Any]) -> None:
    known, found = interval(expression, KNOWN), value(expression, row)
    if known is not None and found is not None:
        assert known[0] <= found <= known[1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("v", (-5, 7)),
        ("-v", (-7, 5)),
        ("ABS(v)", (0, 7)),
        ("ABS(w - 20)", (10, Fraction(45, 2))),
        ("v * w", (-50, 70)),
        ("v / (k + 1)", (-5, 7)),
        ("1 / (k - 4)", (-1, Fraction(-1, 4))),
        ("COALESCE(v, 100)", (-5, 100)),
        ("CASE WHEN b THEN w END", (Fraction(-5, 2), 10)),
        ("IF(b, v, 0.5)", (-5, 7)),
        ("5", (5, 5)),
    ],
)
def test_intervals_by_hand(text: str, expected: tuple[Any, Any]) -> None:
    plan = planned(f"SELECT AVG({text}) FROM t")
    (quantity,) = plan.root.child.quantities  # type: ignore[union-attr]
    assert interval(quantity.expression, KNOWN) == expected


@pytest.mark.parametrize("text", ["u", "f", "v / k", "COALESCE(v, u)", "IF(b, f, 1)", "v * u", "1 / w"])
def test_what_has_no_interval_has_bounds_found_first(text: str) -> None:
    (needed,) = planned(f"SELECT SUM({text}) FROM t").ranges
    assert interval(needed.expression, KNOWN) is None


@pytest.mark.parametrize("text", ["1e299 * 1e299", "w * 1e260", "w * 1e-200 * 1e-200"])
def test_sums_that_no_floating_point_number_can_hold_are_refused(text: str) -> None:
    with pytest.raises(QuestionError, match="out of range"):
        planned(f"SELECT SUM({text}) FROM t")


WIDE = st.fractions(min_value=-(10**30), max_value=10**30)
STEPS = st.one_of(
    st.none(), st.fractions(min_value=Fraction(1, 10**30), max_value=10**30).filter(lambda step: step > 0)
)


@settings(max_examples=examples(500), deadline=None, derandomize=True)
@given(ends=st.tuples(WIDE, WIDE).map(sorted), step=STEPS)
def test_a_lattice_encloses_its_bounds_and_is_fine_enough(ends: list[Fraction], step: Fraction | None) -> None:
    """The ends lie within a step of the bounds, a double holds every point, a declared step is kept if it can be."""
    low, high = ends
    grid = lattice((low, high), step)
    assert grid.low * grid.step <= low < (grid.low + 1) * grid.step
    assert grid.high * grid.step >= high
    assert (grid.high - 1) * grid.step < high or grid.high == grid.low + 1
    assert grid.width >= 1
    assert max(abs(grid.low), abs(grid.high)) <= 2**50 + 1
    largest = max(abs(low), abs(high))
    if step is not None and largest / step <= 2**50:
        assert grid.step == step
    elif largest:
        assert 2**FINENESS <= largest / grid.step < 2 ** (FINENESS + 1)


def test_rows_without_bounds_stay_within_what_a_double_holds() -> None:
    grid = lattice(None, Fraction(1))
    assert (grid.low, grid.high) == (-ROW_LIMIT, ROW_LIMIT)
    assert ROW_LIMIT == 2**53


@pytest.mark.parametrize(
    ("text", "step"),
    [
        *[("s", Fraction(1, 2)), ("v", 1), ("k * v", 1), ("w", Fraction(1, 2**27))],
        *[("v / 2", Fraction(1, 2)), ("s * 0.1 + v", Fraction(1, 20)), ("s * s", Fraction(1, 4))],
        *[("s / v", Fraction(1, 2**30)), ("SQRT(v)", Fraction(1, 2**29))],
    ],
)
def test_the_unit_of_an_expression(text: str, step: Fraction) -> None:
    part = planned(f"SELECT SUM({text}) FROM t", people(2)).parts[0]
    assert part.lattice is not None
    assert part.lattice.step == step


EXTREME = st.one_of(
    WIDE, st.fractions(min_value=-(10**239), max_value=10**239), st.sampled_from([Fraction(1, 10**239)])
)


@settings(max_examples=examples(500), deadline=None, derandomize=True)
@given(middle=EXTREME, width=st.fractions(min_value=0, max_value=10**9), step=STEPS, most=st.sampled_from([256, 2**16]))
def test_buckets_are_numbers_that_a_double_holds(
    middle: Fraction, width: Fraction, step: Fraction | None, most: int
) -> None:
    """Whatever the bounds: narrow and far from zero too. They enclose the bounds, and are no more than asked for."""
    low, high = middle, middle + width / 10**9
    grid = buckets((low, high), step, most)
    assert max(abs(grid.low), abs(grid.high)) <= ROW_LIMIT
    assert grid.low * grid.step <= low
    assert grid.high * grid.step >= high
    assert 1 <= grid.width <= most + 2


@pytest.mark.parametrize("ends", [(0, 2**53 + 1), (-(2**53) - 1, 0), (2**63, 2**63 + 1), (1, 0)])
def test_no_lattice_leaves_what_a_double_holds(ends: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="a double holds"):
        Lattice(Fraction(1), *ends)


@settings(max_examples=examples(300), deadline=None, derandomize=True)
@given(ends=st.tuples(WIDE, WIDE).map(sorted).filter(any), step=STEPS)
def test_a_clamp_is_to_the_bounds_that_were_asked_for(ends: list[Fraction], step: Fraction | None) -> None:
    """To exactly these, or where the step would be too fine, to some that are off by a billionth of the larger."""
    low, high = ends
    grid = clamping((low, high), step)
    largest = max(abs(low), abs(high))
    assert all(
        abs(mine * grid.step - asked) * 2**FINENESS <= largest for mine, asked in ((grid.low, low), (grid.high, high))
    )
    if step is not None and largest / grid.step > 2 ** (FINENESS + 1):
        assert (grid.low * grid.step, grid.high * grid.step) == (low, high)
        assert step % grid.step == 0
