"""The schedule's loss keeps the budget, is nearly all of it, and holds every step that is made."""

from __future__ import annotations

from fractions import Fraction

import pytest

from discreet.accounting import Approximate, BoundedRange, Declared, Gaussian, compose
from discreet.errors import QuestionError
from discreet.markov import Domain
from discreet.synthesis.schedule import METHODS, Schedule, all_marginals
from discreet.trusted.ring_a.curves import delta_bounds, mu_of_budget
from discreet.trusted.ring_a.exact import sqrt_ceiling
from kinds import some
from memory_measurer import planned

DOMAIN = Domain.of({"a": 3, "b": 4, "c": 2, "d": 5})
DELTA = Fraction(1, 10**9)


@pytest.mark.parametrize("epsilon", some(["1", "0.01", "20"], pytest.mark.power))
@pytest.mark.parametrize("method", METHODS)
def test_the_batch_keeps_the_budget_and_uses_it(method, epsilon) -> None:
    schedule = planned(method, DOMAIN, epsilon, DELTA, rows_per_person=3)
    charged = Declared(schedule.parts, DELTA / 10).loss.mu_squared
    mu = mu_of_budget(Fraction(epsilon), DELTA * Fraction(9, 10))
    assert Fraction(99, 100) * mu**2 <= charged <= mu**2
    spent = compose(schedule.parts).epsilon(DELTA)
    assert 0.95 * float(epsilon) <= spent <= float(epsilon)


@pytest.mark.parametrize("method", some(METHODS, pytest.mark.power))
def test_more_epsilon_is_less_noise_at_every_size(method) -> None:
    """What is charged is the price, nearly, and no more, however large that is."""
    delta = "1e-9"
    domain = Domain.of({f"c{place}": 8 for place in range(8)})
    workload = [("c0", "c1"), ("c2", "c3", "c4")] if method == "workload" else None
    sizes = ["0.001", "0.1", "10", "100", "140", "150", "200", "1000"]
    before = None
    for epsilon in map(Fraction, sizes):
        mu, event = mu_of_budget(epsilon, Fraction(delta) * Fraction(9, 10)), Fraction(delta) / 10
        schedule = Schedule.of(method, domain, mu, event, workload=workload)
        charged = Declared(schedule.parts, event).loss
        assert Fraction(99, 100) * mu**2 <= charged.mu_squared <= mu**2
        assert delta_bounds(epsilon, sqrt_ceiling(charged.mu_squared))[1] + charged.keys_delta <= Fraction(delta)
        noise = [schedule.single_sigma, *(one.sigma for one in schedule.rounds), schedule.distance_sigma]
        assert before is None or all(less < more for less, more in zip(noise, before, strict=True))
        before = noise


@pytest.mark.parametrize("method", METHODS)
def test_noise_grows_with_a_persons_rows(method) -> None:
    one, five = (planned(method, DOMAIN, 1, DELTA, rows_per_person=rows) for rows in (1, 5))
    assert five.single_sigma == pytest.approx(5 * one.single_sigma, rel=1e-2)
    assert compose(one.parts).epsilon(DELTA) == pytest.approx(compose(five.parts).epsilon(DELTA), rel=1e-2)


def test_what_is_spent_beforehand_counts() -> None:
    before = [Gaussian("0.05"), BoundedRange("0.1"), Approximate("0.05", "1e-10")]
    schedule = planned("adaptive", DOMAIN, 1, DELTA, extra_events=before, singles=())
    assert schedule.parts[:3] == tuple(before)
    assert not schedule.singles
    assert (
        Declared(schedule.parts, DELTA / 10).loss.mu_squared <= mu_of_budget(Fraction(1), DELTA * Fraction(9, 10)) ** 2
    )
    with pytest.raises(QuestionError, match="nothing is left"):
        planned("adaptive", DOMAIN, 1, DELTA, extra_events=[Gaussian(1)])


def test_workloads() -> None:
    assert len(all_marginals(DOMAIN)) == 4
    assert all_marginals(Domain.of({"a": 3})) == (("a",),)
    wide = Domain(tuple(f"c{place}" for place in range(30)), (2,) * 30)
    assert len(all_marginals(wide)) == 435
    # a triple of 200,000 cells gives way to the pairs that no other triple holds
    assert all_marginals(Domain.of({"a": 2000, "b": 10, "c": 10})) == (("a", "b"), ("a", "c"), ("b", "c"))
    assert all_marginals(Domain.of({"a": 10**6, "b": 2})) == (("b",),)
    assert all_marginals(Domain.of({"a": 10**6})) == (("a",),)
    schedule = planned("workload", DOMAIN, 1, DELTA, workload=[("b", "a"), ("d",)])
    assert schedule.workload == (("a", "b"), ("d",))
    # 12 cells against 5: the larger gets the larger share, by the cube root
    assert float(schedule.rounds[1].sigma / schedule.rounds[0].sigma) == pytest.approx((12 / 5) ** (1 / 3), rel=1e-4)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"method": "magic"}, "unknown method"),
        ({"mu": Fraction(0)}, "nothing is left"),
        ({"rows_per_person": 0}, "at least one row"),
        ({"workload": [("a", "z")]}, "no such column"),
        ({"singles": ["a", "a"]}, "named twice"),
    ],
)
def test_what_is_no_schedule(changes, text) -> None:
    arguments = {"method": "adaptive", "domain": DOMAIN, "mu": Fraction(1, 5), "event_delta": DELTA} | changes
    with pytest.raises(QuestionError, match=text):
        Schedule.of(**arguments)
