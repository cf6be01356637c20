"""A lattice is integers from low to high, in steps above nothing."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from discreet.trusted.ring_a.lattice import ROW_LIMIT, Lattice

ONE = Fraction(1)


@pytest.mark.parametrize("ends", [(0.0, 1), (0, 1.0), (Fraction(1, 2), 1), (0, Fraction(3, 2)), (False, 1), (0, True)])
def test_steps_are_counted_in_integers(ends: tuple[Any, Any]) -> None:
    with pytest.raises(ValueError, match="in integers"):
        Lattice(ONE, *ends)


@pytest.mark.parametrize("step", [Fraction(0), Fraction(-1, 2), -ONE, Fraction(-7)])
def test_a_step_is_above_nothing(step: Fraction) -> None:
    with pytest.raises(ValueError, match="steps above 0"):
        Lattice(step, 0, 1)


def test_a_lattice_may_have_one_point_and_all_that_a_double_holds() -> None:
    assert Lattice(ONE, 4, 4).width == 0
    assert Lattice(Fraction(1, 10**9), -ROW_LIMIT, ROW_LIMIT).width == 2 * ROW_LIMIT == 2**54


@pytest.mark.parametrize(
    ("low", "high", "fits"),
    [(-7, 7, True), (0, 7, True), (-7, 0, True), (-8, 7, False), (-9, 7, False), (-7, 8, False), (-7, 9, False)],
)
def test_a_lattice_fits_where_each_of_its_numbers_is_smaller(low: int, high: int, fits: bool) -> None:
    """By this a value is stored in fewer bits: a number that did not fit would make a row fail."""
    assert Lattice(Fraction(1), low, high).fits(8) is fits
