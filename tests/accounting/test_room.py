"""What is left, in numbers for people, is what is admitted, whatever was counted before."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from discreet.accounting.room import _counted, times_at
from discreet.trusted.ring_a import gaussian_budget
from discreet.trusted.ring_a.loss import Batch, DiscreteLaplace, Loss, Pure
from discreet.trusted.ring_b.gdp_filter import CertifiedFilter, certified

KIND = "exact"

LOSSES = [
    DiscreteLaplace(Fraction(1, 2), 1),
    Pure(Fraction(1, 3)),
    Batch((DiscreteLaplace(Fraction(1, 2), 30), Pure(Fraction(1, 8)))),
]


def admitted(loss: Loss, left: Fraction | None) -> int:
    count = -1
    while left is not None:
        left = gaussian_budget.charge(certified, loss, left)
        count += 1
    return count


@pytest.mark.parametrize("loss", LOSSES, ids=["lattice", "pure", "batch"])
def test_what_was_counted_before_changes_no_count(loss: Loss) -> None:
    """States in any order, near each other and far apart: the later ones are answered by those beside them."""
    _counted.cache_clear()
    draw = random.Random(5)
    states = [Fraction(draw.randrange(1, 2**20), 2**18) for _ in range(40)]
    states += [state + Fraction(draw.randrange(2**9), 2**18) for state in states[:10]]
    for state in states:
        assert times_at(certified, loss, state) == admitted(loss, state)
    for state, count in _counted(certified, loss).items():
        assert count == admitted(loss, state)


def test_what_is_counted_up_to_a_most_is_not_taken_for_all() -> None:
    _counted.cache_clear()
    loss, left = LOSSES[0], Fraction(4)
    whole = admitted(loss, left)
    assert whole > 3
    assert times_at(certified, loss, left, most=3) == 3
    assert times_at(certified, loss, left) == whole
    assert times_at(certified, loss, left, most=3) == 3


def test_the_next_answer_at_a_price_is_counted_by_the_one_before() -> None:
    """An account keeps what was spent rounded up, so that what is left is a little less than was counted from."""
    calls = []

    def priced(loss: Loss, left: Fraction, /) -> gaussian_budget.Price | None:
        calls.append(left)
        return certified(loss, left)

    account, loss = CertifiedFilter(10, "1e-6"), DiscreteLaplace(Fraction(1, 10), 1)
    whole = times_at(priced, loss, account.residue)
    assert whole > 300
    for after in range(1, 4):
        account = account.charge(loss)
        calls.clear()
        assert times_at(priced, loss, account.residue) == whole - after
        assert len(calls) < 4
