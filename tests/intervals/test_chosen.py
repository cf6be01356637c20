"""The shares of all answers that stored noise can give add up to at most 1: enumerated."""

from __future__ import annotations

import itertools
import math

import pytest

from discreet.intervals import chosen

KIND = "exact"


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 12])
def test_the_shares_of_all_sets_of_values_add_up_to_one_at_most(count: int) -> None:
    places = range(count)
    sets = itertools.chain.from_iterable(itertools.combinations(places, size) for size in range(1, count + 1))
    assert 0 < sum(chosen.values(one, count) for one in sets) <= 1 + 1e-12


def test_the_shares_of_all_releases_add_up_to_a_half() -> None:
    added = sum(map(chosen.release, range(1, 100_000)))
    assert 0.4999 < added < 0.5


def test_many_values_have_a_share_or_none() -> None:
    assert 0 < chosen.values((0, 2), 2_000) < 1e-9
    assert chosen.values(range(0, 2_000, 2), 2_000) == 0.0  # no interval: not answered from what is stored


def test_of_v_vectors_four_numbers_each() -> None:
    assert math.isclose(chosen.numbers(3) * 12, 1)
