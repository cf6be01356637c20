"""What is left of a budget at its edges, and what an older ledger's account comes back as."""

from __future__ import annotations

from fractions import Fraction

import pytest
from attrs import evolve

from discreet.accounting.room import gaussian_room, part_used, pure_room
from discreet.trusted.ring_a.filter import Family, PrivacyFilter, Spent
from discreet.trusted.ring_a.loss import Approximate, GaussianLoss, Pure

FIRST, PRESENT = Family(1), Family(2)
BUDGET = PrivacyFilter("1", "1e-6", "2e-7")


def spent(**what: object) -> PrivacyFilter:
    return evolve(BUDGET, spent=Spent(PRESENT, **what))  # type: ignore[arg-type]


def test_an_older_account_keeps_what_it_has_spent() -> None:
    state = {"mu_squared": "1/5", "keys": "1/1000", "pure": "3/10"}
    read = Spent.from_json(state)
    assert read == Spent(FIRST, Fraction(3, 10), Fraction(0), Fraction(1, 5), Fraction(1, 1000))
    assert read.to_json() == state
    dead = Spent.from_json({"mu_squared": None, "keys": "0", "pure": None})
    assert (dead.family, dead.gaussian, dead.mu_squared) == (FIRST, None, None)
    assert Spent.from_json({"mu_squared": "0", "keys": "0", "pure": "0"}) == Spent()


def test_filters_that_are_not_known_are_refused() -> None:
    for number in (0, 3, "2"):
        with pytest.raises(ValueError, match="unknown filters"):
            Spent.from_json({"family": number, "mu_squared": "0", "keys": "0", "finite": "0", "gaussian": "0"})


@pytest.mark.parametrize("delta", ["1", "2", "1000"])
def test_no_budget_has_a_delta_of_one(delta: str) -> None:
    with pytest.raises(ValueError, match="delta < 1"):
        PrivacyFilter("1", delta)


def test_who_moves_to_other_filters_promises_both() -> None:
    """The δ that the filters share is counted once more; that of keys is not."""
    assert BUDGET.promised_delta == BUDGET.delta
    moved = evolve(BUDGET, spent=Spent(Family(2, moved=True)))
    assert moved.promised_delta == Fraction("1.8e-6")
    assert (BUDGET.renewable, moved.renewable) == (None, None)
    assert evolve(BUDGET, spent=Spent(FIRST)).renewable == Family(2, moved=True)


def test_the_whole_residue_can_be_taken() -> None:
    whole = BUDGET.mu_squared
    at_the_end = spent(mu_squared=whole, gaussian=None)
    assert (at_the_end.residue, at_the_end.alive) == (0, True)
    beyond = spent(mu_squared=whole + Fraction(1, 10**60), gaussian=None)
    assert (beyond.residue, beyond.alive) == (None, False)


def test_a_dead_filter_has_no_room() -> None:
    nothing_alive = spent(finite=Fraction(2), gaussian=Fraction(99), mu_squared=None)
    keys_spent = spent(keys=BUDGET.keys_delta + Fraction(1, 10**60))
    for dead in (nothing_alive, keys_spent):
        assert (pure_room(dead), gaussian_room(dead), dead.alive) == (0, 0, False)
        assert not dead.admits(Pure(Fraction(0)))
    only_gaussian = spent(finite=Fraction(2))
    assert (pure_room(only_gaussian), gaussian_room(only_gaussian)) == (0, BUDGET.mu_squared)
    assert pure_room(spent(keys=BUDGET.keys_delta)) == 1


def test_a_mixed_pair_is_used_to_its_end() -> None:
    """Where the sums are just its own and the next one is dead: its part of ε, and what is taken of the rest."""
    finite, mine = BUDGET.pairs[2]
    _, following = BUDGET.pairs[3]
    gaussian = (mine + following) / 2
    used = part_used(spent(finite=finite, gaussian=gaussian, mu_squared=None))
    assert used == Fraction(3, 8) + Fraction(5, 8) * gaussian / mine
    assert part_used(spent(finite=finite, gaussian=mine, mu_squared=None)) == 1
    assert part_used(spent(finite=Fraction(1, 2), gaussian=Fraction(0), mu_squared=None)) == Fraction(1, 2)


def test_what_is_spent_is_rounded_up_and_its_sources_kept_apart() -> None:
    """Pure ε, μ² and the δ of keys each in its own sum."""
    third = Fraction(1, 3)
    after = BUDGET.after(Approximate(third, Fraction(1, 7 * 10**7)))
    assert 0 < after.spent.finite - third < Fraction(1, 10**39)
    assert 0 < after.spent.keys - Fraction(1, 7 * 10**7) < Fraction(1, 10**46)
    assert after.spent.gaussian == 0
    later = after.after(GaussianLoss(third))
    assert later.spent.finite == after.spent.finite
    assert later.spent.gaussian is not None
    assert 0 < later.spent.gaussian - third**2 < Fraction(1, 10**39)
