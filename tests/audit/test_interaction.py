"""Interactions with filters, computed: right filters keep their promise to every analyst tried, wrong ones do not."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import pytest

import mutants
from discreet.accounting import Approximate, Batch, DiscreteLaplace, Filter, Gaussian, Loss, Pure
from discreet.audit.interaction import BUDGETS, Guard, best, courses, everything, gain, script, worst_case
from discreet.audit.targets import run
from discreet.catalog import Budget

CENT = Fraction(1, 100)
SECOND = Pure(Fraction(826493603072298, 10**15))


def broken(guard: Guard, budget: Budget) -> list[str]:
    known = courses("filter", guard, budget)
    return [one.name for one in known if one.play().broken]


def test_the_projects_filter_holds() -> None:
    assert [one.subject for one in run(everything(BUDGETS, 3), 1e-6) if one.broken] == []


def test_the_natural_filter_does_not() -> None:
    """RR(.2); on one answer RR(.8265), on the other a (0, .01)-mechanism: each course costs δ(1) = .01 for itself, and
    the interaction .0145017."""
    natural = mutants.Natural(Fraction(1), CENT)
    menu = (Pure(Fraction(1, 5)), SECOND, Approximate(Fraction(0), CENT))
    found = best(natural, menu, 2, 1.0)
    assert found >= 0.0145017 - 1e-7
    first = courses("filter", natural, Budget(Fraction(1), CENT, Fraction(0)))[0]
    assert first.play().broken
    one, two = worst_case(menu[0]), worst_case(SECOND)
    by_hand = one[0.2] * sum(mass * gain(0.2 + bit, 1.0) for bit, mass in two.items()) + (one[-0.2]) * 0.01
    assert by_hand == pytest.approx(0.0145017, abs=1e-7)


def test_a_residue_that_survives_its_death() -> None:
    """RR(.99) through the pure sum, then RR(.01) 558 times through the Gaussian one: δ(1) = 6.5e-2 for 1e-6."""
    undead = mutants.Undead(Fraction(1), Fraction(1, 10**6))
    found, admitted = script(undead, ((Pure(Fraction(99, 100)), 1), (Pure(CENT), 558)), 1.0)
    assert admitted == 559
    assert found == pytest.approx(6.5e-2, rel=0.01)
    known = courses("filter", undead, Budget(Fraction(1), Fraction(1, 10**6), Fraction(0)))
    assert [one.name for one in known[2:3] if one.play().broken] == ["filter: one large, many small"]


@pytest.mark.parametrize(("kind", "keys"), [(mutants.Forgetful, CENT), (mutants.Halved, Fraction(0))])
def test_filters_that_count_too_little(kind: Callable[[Filter], Guard], keys: Fraction) -> None:
    """One forgets the δ of private keys, one charges half of a Gaussian loss."""
    budget = Budget(Fraction(1), CENT, keys)
    right = Filter(budget.epsilon, budget.delta, budget.keys_delta)
    assert broken(right, budget) == []
    assert "filter: what fits last" in broken(kind(right), budget)


@pytest.mark.parametrize(
    "loss",
    [
        Pure(Fraction(1, 3)),
        DiscreteLaplace(Fraction(1, 2), 3),
        Gaussian(Fraction(1, 2)),
        Approximate(Fraction(1, 4), CENT),
        Batch((Pure(Fraction(1, 3)), Pure(Fraction(1, 4)))),
    ],
)
def test_what_a_loss_allows_is_a_pair_of_distributions(loss: Loss) -> None:
    """P₁ adds up to 1, P₀ to no more, and the ratio stays within ε."""
    outcomes = worst_case(loss)
    assert math.fsum(outcomes.values()) == pytest.approx(1)
    other = math.fsum(mass * math.exp(-bit) for bit, mass in outcomes.items())
    assert other == pytest.approx(1 - float(loss.keys_delta), abs=1e-9)
    if loss.pure is not None:
        assert max(bit for bit in outcomes if bit < math.inf) <= float(loss.pure) + 1e-12


def test_courses_are_counted_as_one_by_one() -> None:
    """Five rounds of a fixed order: all 32 courses by hand."""
    loss = Pure(Fraction(1, 4))
    found, admitted = script(Filter(10, 0), ((loss, 5),), 0.5)
    courses = product(worst_case(loss).items(), repeat=5)
    by_hand = sum(math.prod(m for _, m in course) * gain(sum(b for b, _ in course), 0.5) for course in courses)
    assert admitted == 5
    assert found == pytest.approx(by_hand)
    assert best(Filter(10, 0), (loss,), 5, 0.5) >= found - 1e-15
