"""How many rows are made below each row: as many in all as are declared, of no person more than may count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.synthesis.rows_below import RowsBelow
from kinds import examples

KIND = "exact"


@settings(max_examples=examples(400, 60), deadline=None)
@given(st.data())
def test_numbers_add_up_and_nobody_has_too_many(data: Any) -> None:
    """Of any numbers: where no total is declared, as many as were drawn, as far as persons may have them."""
    generator = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    persons, most = data.draw(st.integers(1, 30)), data.draw(st.sampled_from([1, 2, 7, 40]))
    whose = np.repeat(np.arange(persons), generator.integers(1, data.draw(st.sampled_from([2, 4])), persons))
    drawn = generator.integers(0, data.draw(st.sampled_from([1, 2, most + 1])), len(whose))
    total = data.draw(st.none() | st.integers(1, persons * most))
    some = data.draw(st.integers(0, persons if total is None else min(persons, total)))
    found = RowsBelow(total, most, some).settled(drawn, whose, generator)
    held = np.bincount(whose, found, persons)
    assert found.min() >= 0
    assert held.max() <= most
    assert (held > 0).sum() >= some
    if total is not None:
        assert found.sum() == total
    elif (np.bincount(whose, drawn, persons) <= most).all() and not some:
        assert (found == drawn).all()


def test_numbers_are_changed_in_proportion() -> None:
    """A tenth more rows than were drawn: those with none stay so, and each other number grows by a tenth on average.
    Of 20,000 each, the means have a deviation below .004."""
    generator = np.random.default_rng(1)
    drawn = generator.permutation(np.repeat([0, 1, 5], 20_000))
    for total in (132_000, 108_000):
        found = RowsBelow(total, 20, 0).settled(drawn, np.arange(60_000), generator)
        assert found.sum() == total
        for number in (0, 1, 5):
            assert abs(found[drawn == number].mean() - number * total / 120_000) < 0.02
        assert set((found - drawn).tolist()) <= {-1, 0, 1}


@pytest.mark.parametrize("total", [9_999_999, 10_000_000])
def test_millions_of_rows_are_right_to_the_row(total: int) -> None:
    generator = np.random.default_rng(2)
    found = RowsBelow(total, 1_000, 0).settled(generator.integers(0, 900, 100_000), np.arange(100_000), generator)
    assert found.sum() == total
    assert found.max() <= 1_000


def test_no_more_rows_are_made_than_fit_into_the_memory() -> None:
    generator = np.random.default_rng(3)
    drawn = np.full(1_000, 40)
    assert RowsBelow(None, 50, 0, fit=25_000).settled(drawn, np.arange(1_000), generator).sum() == 25_000
    assert (RowsBelow(None, 50, 0, fit=40_000).settled(drawn, np.arange(1_000), generator) == drawn).all()
