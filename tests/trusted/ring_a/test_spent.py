"""What a filter writes down as spent is never less than what was released."""

from __future__ import annotations

from fractions import Fraction

import pytest

from discreet.accounting import Approximate, Batch, BoundedRange, Family, Filter, Gaussian, Laplace, Loss, Pure, Spent
from discreet.trusted.ring_b.gdp_filter import charge

KIND = "exact"

PARTS: list[Loss] = [Pure(Fraction(1, 3)), Laplace("0.2"), Gaussian(Fraction(1, 7)), BoundedRange(Fraction(1, 3))]


@pytest.mark.parametrize("family", [Family(1), Family(2)])
def test_a_batch_takes_what_all_its_parts_take(family: Family) -> None:
    """Of the sums as one after another; of the residue the same up to the order of the parts."""
    start = Filter(30, "1e-6", "1e-7", Spent(family))
    for parts in ([PARTS[0], PARTS[1]], [PARTS[1], PARTS[1], PARTS[0]], PARTS, [PARTS[2], PARTS[2]]):
        together, apart = start.after(Batch(tuple(parts))), start  # type: ignore[arg-type]
        for part in parts:
            apart = apart.after(part)
        assert together.spent.finite - apart.spent.finite < Fraction(1, 10**20)
        assert together.spent.finite >= sum((part.pure or Fraction(0) for part in parts), Fraction(0))
        assert together.spent.gaussian is not None
        squares = [part.mu_squared or Fraction(0) for part in parts if part.pure is None]
        assert together.spent.gaussian >= sum(squares, Fraction(0))
        assert apart.spent.gaussian is not None
        assert together.spent.gaussian - apart.spent.gaussian < Fraction(1, 10**20)


@pytest.mark.parametrize("third", [Fraction(1, 3), Fraction(10**40 + 1, 3 * 10**40)])
def test_what_is_spent_is_rounded_up(third: Fraction) -> None:
    """However long the numbers are: sums of ε, of μ², of the residue's and of keys."""
    state = Filter(30, "1e-6", "1e-7")
    mu_squared = state.mu_squared
    for count in range(1, 4):
        state = state.after(Pure(third))
        assert count * third <= state.spent.finite < count * third + Fraction(1, 10**20)
    left: Fraction | None = mu_squared
    for _ in range(3):
        left = charge(Pure(third), left)
    assert left is not None
    assert state.spent.mu_squared is not None
    assert mu_squared - left <= state.spent.mu_squared
    for count in range(1, 4):
        state = state.after(Gaussian(third))
        assert state.spent.gaussian is not None
        assert count * third**2 <= state.spent.gaussian < count * third**2 + Fraction(1, 10**20)
    tiny = third / 10**9
    state = Filter(30, "1e-6", "1e-7").after(Approximate(Fraction(1), tiny))
    assert state.spent.keys >= tiny


def test_what_is_left_of_a_residue_is_rounded_down() -> None:
    """Whatever it was before."""
    for left in (Fraction(1, 3), Fraction(2, 7), Fraction(10**50 + 1, 3 * 10**50)):
        for mu in (Fraction(1, 10), Fraction(1, 3), Fraction(1, 97)):
            after = charge(Gaussian(mu), left)
            assert after is not None
            assert left - mu**2 - Fraction(1, 10**30) < after <= left - mu**2


def test_a_residue_that_took_more_than_all_is_dead() -> None:
    state = Filter(1, "1e-6", spent=Spent(Family(2), mu_squared=Fraction(9), finite=Fraction(2)))
    assert state.residue is None
    assert not state.alive
    assert not state.admits(Gaussian(Fraction(1, 10**6)))


def test_the_pairs_are_rounded_down() -> None:
    """A Gaussian part is at most the μ² that was proved."""
    from discreet.trusted.ring_a.curves import mu_beside_pure, mu_of_budget

    budget = Filter(1, "1e-6")
    for pure, square in budget.pairs[:-1]:
        assert square <= mu_beside_pure(budget.epsilon, pure, budget.delta / 35) ** 2
    assert budget.mu_squared <= mu_of_budget(budget.epsilon, budget.delta * Fraction(4, 5)) ** 2


@pytest.mark.parametrize("moved", [False, True])
def test_what_is_written_down_says_whether_an_owner_moved_the_account(moved: bool) -> None:
    spent = Filter(30, "1e-6", "1e-7", Spent(Family(2, moved))).after(Pure(Fraction(1))).spent
    written = spent.to_json()
    assert written.get("moved", False) is moved
    assert Spent.from_json(written) == spent
