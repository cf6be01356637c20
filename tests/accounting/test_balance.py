"""What is said to be left fits, and hardly more does."""

from __future__ import annotations

from fractions import Fraction

import pytest

from discreet.accounting import Filter, Gaussian, Loss, Pure
from discreet.accounting.balance import Balance, ends, for_publishing, for_questions, published
from discreet.accounting.room import times_left

KIND = "exact"

BUDGETS = [
    (3, "1e-6", "1e-7"),
    (1, "1e-5", "5e-6"),
    ("0.2", "1e-9", "1e-10"),
    (40, "1e-4", "1e-5"),
    (900, "1e-6", "1e-7"),
]
COURSES: list[list[Loss]] = [
    [],
    [Pure("0.1")],
    [Pure("0.5"), Pure("0.02")],
    [Gaussian("0.01")],
    [Gaussian("0.02"), Pure("0.3")],
    [Pure("0.97")],
]


def scaled(loss: Loss, factor: Fraction) -> Loss:
    return (
        Pure(loss.pure * factor) if loss.pure is not None else Gaussian((loss.mu_squared or 0) ** 0.5 * float(factor))
    )


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("course", COURSES)
def test_what_is_left_fits(budget: tuple[str, str, str], course: list[Loss]) -> None:
    whole = state = Filter(*budget)
    for loss in course:
        state = state.charge(scaled(loss, whole.epsilon))
    question, table = for_questions(state), for_publishing(state, whole)
    assert question == 0 or state.admits(Pure(question))
    assert not state.admits(Pure(question * Fraction(102, 100) + whole.epsilon / 10**6))
    assert table == 0 or state.admits(published(whole, table))
    more = min(table * Fraction(112, 100) + whole.epsilon / 10**6, whole.epsilon)
    assert table * Fraction(112, 100) > whole.epsilon or not state.admits(published(whole, more))
    kept = state.after(published(whole, table)) if table else state
    assert times_left(state, published(whole, whole.epsilon / 1000)) >= times_left(
        kept, published(whole, whole.epsilon / 1000)
    )


def test_words() -> None:
    whole = Filter(3, "1e-6", "1e-7")
    assert Balance(whole).left == "left: either ε 3 in questions or ε 3 in published tables"
    assert Balance(Filter(3, 0)).left == "left: ε 3 in questions"
    spent = whole.charge(Pure(Fraction(29, 10)))
    assert Balance(spent).left == "left: ε 0.1 in questions"
    over = Filter(3, 0).charge(Pure(3))
    assert Balance(over).left == "nothing is left"
    assert ends(whole, whole.charge(Pure("0.5"))) == ""
    assert ends(whole, whole.charge(Pure("2"))) == "tables can be published with at most ε 0.69, not 3"
    assert ends(whole, spent) == "no table can be published"
    assert ends(Filter(3, 0), Filter(3, 0).charge(Pure(2))) == ""


@pytest.mark.parametrize("budget", [*BUDGETS, (1, "1e-9", "1e-10"), (1000, "1e-5", "1e-6"), ("0.001", "1e-9", "9e-10")])
@pytest.mark.parametrize("event", [True, False])
def test_the_whole_budget_can_be_spent_on_one_release(budget: tuple[str, str, str], event: bool) -> None:
    whole = Filter(*budget)
    assert for_publishing(whole, whole, event) == whole.epsilon
    after = whole.charge(published(whole, whole.epsilon, event))
    assert for_publishing(after, whole, event) < whole.epsilon / 50


@pytest.mark.parametrize("keys", ["1e-7", "3.33e-7", "9.97e-7", "1.23456789e-7"])
def test_the_whole_budget_can_be_spent_on_one_table_whatever_its_part_for_keys(keys: str) -> None:
    whole = Filter(3, "1e-6", keys)
    assert whole.admits(published(whole, Fraction(3)))
    assert for_publishing(whole, whole) == 3
