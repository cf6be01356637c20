"""Totals, windows and counts from what was released: right without noise, and with the deviation that is said."""

from __future__ import annotations

import math

import numpy as np
import pytest

from discreet.streams.estimates import StreamEstimates
from discreet.trusted.ring_c.factorisation import BITS, coefficients, measured_exactly, squared_sensitivity

KIND = "exact"
PERIODS = [1, 2, 7, None]


def matrix(column: tuple[int, ...], count: int) -> np.ndarray:
    return np.array([[column[t - s] if s <= t else 0 for s in range(count)] for t in range(count)], float)


@pytest.mark.parametrize("periods", PERIODS)
def test_without_noise_they_are_the_counts_themselves(periods: int | None) -> None:
    column = coefficients(40)
    counts = [[(7 * t * t) % 23, -t, 10**9 * t] for t in range(40)]
    released = [measured_exactly(column, counts[: t + 1]) for t in range(40)]
    values = StreamEstimates(column, 1.0).values(released, periods)
    for t in range(40):
        first = 0 if periods is None else max(0, t + 1 - periods)
        assert [round(float(one)) for one in values[t]] == [
            sum(group) for group in zip(*counts[first : t + 1], strict=True)
        ]


@pytest.mark.parametrize("periods", PERIODS)
def test_the_deviation_is_that_of_the_inverse_multiplied_out(periods: int | None) -> None:
    column, count = coefficients(30), 20
    wanted = np.array(
        [[float(s <= t and (periods is None or t - s < periods)) for s in range(count)] for t in range(count)]
    )
    weights = wanted @ np.linalg.inv(matrix(column, count))
    expected = 5.0 * np.sqrt((weights**2).sum(axis=1))
    assert np.allclose(StreamEstimates(column, 5.0).deviations(count, periods), expected, rtol=1e-9)


def test_no_later_release_changes_an_earlier_estimate() -> None:
    column = coefficients(12)
    released = [[5 << BITS, t << 40] for t in range(12)]
    whole, part = (StreamEstimates(column, 1.0).values(released[:count], None) for count in (12, 5))
    assert np.array_equal(whole[:5], part)


@pytest.mark.parametrize(("horizon", "total"), [(30, 2.15), (365, 2.94), (3_650, 3.68)])
def test_a_total_errs_as_the_literature_says(horizon: int, total: float) -> None:
    """In units of one release at the whole budget (Henzinger, Upadhyay & Upadhyay 2023)."""
    column = coefficients(horizon)
    ours = StreamEstimates(column, math.sqrt(squared_sensitivity(column, 1, 1)))
    assert math.isclose(ours.deviations(horizon, None)[-1], total, abs_tol=0.01)
