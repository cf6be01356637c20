"""The schedule's loss keeps the budget, is nearly all of it, and holds every step that is made."""

from __future__ import annotations

from fractions import Fraction

import pytest

from discreet.accounting import Approximate, Batch, BoundedRange, Gaussian, compose
from discreet.errors import QuestionError
from discreet.markov import Domain
from discreet.synthesis.schedule import METHODS, Schedule, all_marginals

DOMAIN = Domain.of({"a": 3, "b": 4, "c": 2, "d": 5})
DELTA = Fraction(1, 10**9)


@pytest.mark.parametrize("epsilon", ["0.01", "1", "20"])
@pytest.mark.parametrize("method", METHODS)
def test_the_batch_keeps_the_budget_and_uses_it(method, epsilon) -> None:
    schedule = Schedule.of(method, DOMAIN, epsilon, DELTA, rows_per_person=3)
    spent = compose(schedule.loss.parts).epsilon(DELTA)
    assert 0.99 * float(epsilon) <= spent <= float(epsilon)


@pytest.mark.parametrize("method", METHODS)
def test_noise_grows_with_a_persons_rows(method) -> None:
    one, five = (Schedule.of(method, DOMAIN, 1, DELTA, rows_per_person=rows) for rows in (1, 5))
    assert five.single_sigma == pytest.approx(5 * one.single_sigma, rel=1e-3)
    assert compose(one.loss.parts).epsilon(DELTA) == pytest.approx(compose(five.loss.parts).epsilon(DELTA), rel=1e-3)


def test_what_is_spent_beforehand_counts() -> None:
    before = [Gaussian("0.05"), Batch((BoundedRange("0.1"), Approximate("0.05", "1e-10")))]
    schedule = Schedule.of("adaptive", DOMAIN, 1, DELTA, extra_events=before, singles=())
    parts = schedule.loss.parts
    assert parts[:3] == (Gaussian("0.05"), BoundedRange("0.1"), Approximate("0.05", "1e-10"))
    assert 0.99 <= compose(parts).epsilon(DELTA) <= 1
    assert not schedule.singles
    with pytest.raises(QuestionError, match="leaves nothing"):
        Schedule.of("adaptive", DOMAIN, 1, DELTA, extra_events=[Gaussian(1)])
    with pytest.raises(QuestionError, match="leaves nothing"):
        Schedule.of("adaptive", DOMAIN, 1, DELTA, extra_events=[Approximate(0, "1e-8")])


def test_workloads() -> None:
    assert len(all_marginals(DOMAIN)) == 4
    assert all_marginals(Domain.of({"a": 3})) == (("a",),)
    wide = Domain(tuple(f"c{place}" for place in range(30)), (2,) * 30)
    assert len(all_marginals(wide)) == 435
    # a triple of 200,000 cells gives way to the pairs that no other triple holds
    assert all_marginals(Domain.of({"a": 2000, "b": 10, "c": 10})) == (("a", "b"), ("a", "c"), ("b", "c"))
    assert all_marginals(Domain.of({"a": 10**6, "b": 2})) == (("b",),)
    assert all_marginals(Domain.of({"a": 10**6})) == (("a",),)
    schedule = Schedule.of("workload", DOMAIN, 1, DELTA, workload=[("b", "a"), ("d",)])
    assert schedule.workload == (("a", "b"), ("d",))
    # 12 cells against 5: the larger gets the larger share, by the cube root
    assert float(schedule.rounds[1].sigma / schedule.rounds[0].sigma) == pytest.approx((12 / 5) ** (1 / 3), rel=1e-4)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"method": "magic"}, "no such method"),
        ({"epsilon": 0}, "epsilon above 0"),
        ({"epsilon": "many"}, "no number"),
        ({"epsilon": float("nan")}, "no number"),
        ({"delta": 0}, "delta between"),
        ({"delta": 1}, "delta between"),
        ({"rows_per_person": 0}, "at least one row"),
        ({"workload": [("a", "z")]}, "no such column"),
        ({"singles": ["a", "a"]}, "stands twice"),
    ],
)
def test_what_is_no_schedule(changes, text) -> None:
    arguments = {"method": "adaptive", "domain": DOMAIN, "epsilon": 1, "delta": DELTA} | changes
    with pytest.raises(QuestionError, match=text):
        Schedule.of(**arguments)
