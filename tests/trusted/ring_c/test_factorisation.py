"""The square root of the matrix of running totals in whole numbers, and by how much one person moves it."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest

from discreet.trusted.ring_c.factorisation import BITS, coefficients, measured_exactly, squared_sensitivity

KIND = "exact"


def test_the_coefficients_are_those_of_the_square_root_rounded_to_the_nearest_step() -> None:
    exact = Fraction(1)
    for k, rounded in enumerate(coefficients(400)):
        exact *= Fraction(2 * k - 1, 2 * k) if k else 1
        assert abs(rounded - exact * 2**BITS) <= Fraction(1, 2)


def test_squared_they_are_the_matrix_of_ones() -> None:
    column = coefficients(200)
    for t in range(200):
        one = Fraction(sum(column[s] * column[t - s] for s in range(t + 1)), 4**BITS)
        assert abs(one - 1) < Fraction(t + 1, 2**BITS)


def test_they_fall_over_the_longest_horizon() -> None:
    column = coefficients(10_000)
    assert column[0] == 2**BITS
    assert all(after <= before for before, after in itertools.pairwise(column))
    assert column[-1] > 0


def moved(column: tuple[int, ...], person: list[tuple[int, ...]]) -> int:
    """‖C·Δ‖² by multiplying it out."""
    rows = range(len(column))
    product = [
        [sum(column[t - s] * person[s][group] for s in range(t + 1)) for group in range(len(person[0]))] for t in rows
    ]
    return sum(one * one for row in product for one in row)


@pytest.mark.parametrize("column", [coefficients(4), (8, 4, 3, 2), (5, 5, 5, 5), (7, 0, 0, 0)], ids=repr)
@pytest.mark.parametrize(("rows", "periods"), [(1, 1), (1, 2), (2, 1), (2, 2), (1, 4), (2, 3)])
def test_no_person_moves_it_by_more_and_one_by_as_much(column: tuple[int, ...], rows: int, periods: int) -> None:
    """Every person over two groups, with counts of both signs."""
    each = [one for one in itertools.product(range(-rows, rows + 1), repeat=2) if sum(map(abs, one)) <= rows]
    most = 0
    for used in itertools.combinations(range(4), min(periods, 4)):
        for parts in itertools.product(each, repeat=len(used)):
            person = [(0, 0)] * 4
            for place, part in zip(used, parts, strict=True):
                person[place] = part
            most = max(most, moved(column, person))
    assert most == squared_sensitivity(column, rows, periods)


@pytest.mark.parametrize("horizon", [1, 2, 5, 9])
def test_the_first_periods_move_it_most(horizon: int) -> None:
    column = coefficients(horizon)
    for periods in range(1, horizon + 1):
        sums = [
            moved(column, [(int(t in used),) for t in range(horizon)])
            for used in itertools.combinations(range(horizon), periods)
        ]
        assert max(sums) == squared_sensitivity(column, 1, periods) == sums[0]


def test_errors_are_those_of_the_literature() -> None:
    """Σ a_k² of the horizon is both the squared sensitivity of one row and the variance of the last total."""
    for horizon, most in ((30, 2.15), (365, 2.94), (3_650, 3.68)):
        found = squared_sensitivity(coefficients(horizon), 1, 1) / 4**BITS
        assert math.isclose(found, most, abs_tol=0.01)


@pytest.mark.parametrize("column", [(1, 2), (2, -1), (3, 2, 2, 3)])
def test_coefficients_that_rise_or_are_below_0_have_no_bound(column: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="fall"):
        squared_sensitivity(column, 1, 1)


def test_what_is_measured_is_the_last_row() -> None:
    assert measured_exactly((8, 4, 3), [[1, 0], [0, 5], [2, -1]]) == [2 * 8 + 3, -8 + 20]
    assert measured_exactly((8, 4, 3), [[1, 0]]) == [8, 0]
