"""Private keys shown with their noisy counts: the threshold's probability, the loss, and honest intervals."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from scipy import stats

from discreet.accounting import Approximate, EquivalentGaussian
from discreet.intervals.thresholds import shown_intervals
from discreet.mechanisms import Gaussian, Laplace, Threshold, gaussian_threshold, laplace_threshold
from discreet.plan.measurement import Price
from discreet.plan.split import measurement
from discreet.trusted.ring_a.curves import delta_bounds, mu_of_budget
from discreet.trusted.ring_b.questions import noisy_answer
from engine_tools import Bench, declaration, planned


@pytest.mark.parametrize("cells", [1, 3, 10, 200])
@pytest.mark.parametrize("delta", ["1e-2", "1e-6", "1e-12", "1e-100"])
@pytest.mark.parametrize("mu", ["0.01", "0.2", "5"])
def test_a_lone_person_is_shown_with_at_most_the_delta(cells: int, delta: str, mu: str) -> None:
    """Against scipy's tail of the normal distribution: below the share of delta, and not one step lower."""
    made = gaussian_threshold(Fraction(mu) ** 2, Fraction(delta), cells)
    sigma, share = float(made.noise.sigma), float(delta) / cells
    assert stats.norm.sf((made.threshold - 1.5) / sigma) <= share * (1 + 1e-9)
    assert made.threshold == 2 or stats.norm.sf((made.threshold - 2.5) / sigma) > share * (1 - 1e-9)
    assert made.loss() == EquivalentGaussian(made.loss().mu, Fraction(delta))
    assert made.loss().mu ** 2 >= cells / made.noise.sigma**2
    assert float(made.loss().mu) == pytest.approx(float(mu), rel=1e-9)


@pytest.mark.parametrize(
    "made", [laplace_threshold(Fraction(2), Fraction(1, 5), 2), gaussian_threshold(Fraction(4), Fraction(1, 5), 2)]
)
def test_neighbours_by_enumeration(made: Threshold) -> None:
    """A person in one group of others and in one alone: over all outcomes (what is shown, with which number), the
    hockey-stick divergence at the stated loss is at most the stated delta, in both directions."""

    def shown(count: int) -> dict[int | None, float]:
        if isinstance(made.noise, Laplace):
            q = math.exp(-1 / float(made.noise.scale))
            mass = {count + k: (1 - q) / (1 + q) * q ** abs(k) for k in range(-200, 201)}
        else:
            s = float(made.noise.sigma)
            mass = {
                count + k: float(stats.norm.cdf((k + 0.5) / s) - stats.norm.cdf((k - 0.5) / s)) for k in range(-60, 61)
            }
        kept: dict[int | None, float] = {value: p for value, p in mass.items() if value >= made.threshold}
        return {**kept, None: sum(p for value, p in mass.items() if value < made.threshold)}

    alone = shown(1)
    with_person = {(a, b): p * r for a, p in shown(4).items() for b, r in alone.items()}
    without = {(a, None): p for a, p in shown(3).items()}
    loss = made.loss()
    for epsilon in [0.5, 1.0, 2.0, 4.0]:
        if isinstance(loss, Approximate):
            epsilon = float(loss.epsilon)
            allowed = float(loss.delta)
        else:
            below = float(delta_bounds(Fraction(epsilon), loss.mu)[1])
            allowed = float(loss.delta) + (1 - float(loss.delta)) * below
        for one, two in ((with_person, without), (without, with_person)):
            divergence = sum(max(0.0, p - math.exp(epsilon) * two.get(outcome, 0.0)) for outcome, p in one.items())
            assert divergence <= allowed + 1e-9
    assert 1 - alone[None] <= float(made.delta) / made.cells
    assert 1 - alone[None] > 0.01 * float(made.delta) / made.cells


def test_the_price_is_what_a_gaussian_threshold_costs() -> None:
    """Half of delta for the noise, half for the keys: together at most (epsilon, delta), with one noise for both."""
    known = declaration({"person": "p", "rows_per_person": 50, "groups_per_person": 10})
    plan = planned("SELECT h, COUNT(DISTINCT p) AS n FROM t GROUP BY h", known)
    assert [part.kind for part in plan.parts] == ["keys"]
    price = Price(Fraction(1), Fraction(1, 10**6), gaussian=True)
    priced = measurement(plan, price)
    assert isinstance(priced.parts[0].mechanism, Threshold)
    assert isinstance(priced.parts[0].mechanism.noise, Gaussian)
    assert priced.loss.keys_delta == price.delta / 2
    assert priced.loss.mu_squared is not None
    assert priced.loss.mu_squared <= mu_of_budget(price.epsilon, price.delta / 2) ** 2
    pure = measurement(plan, Price(Fraction(1), Fraction(1, 10**6)))
    assert isinstance(pure.parts[0].mechanism, Threshold)
    assert isinstance(pure.parts[0].mechanism.noise, Laplace)
    assert (pure.loss.pure, pure.loss.keys_delta) == (1, Fraction(1, 10**6))
    assert priced.parts[0].mechanism.threshold < pure.parts[0].mechanism.threshold


def test_what_is_shown_is_its_noisy_count(bench: Bench) -> None:
    """Through the door: groups at the threshold or above, each with a count that is at least the threshold."""
    known = declaration({"one_row_per_person": True})
    plan = planned("SELECT h, COUNT(*) AS n FROM t GROUP BY h", known)
    table = bench.load(known.tables["t"], [{"h": "a"}] * 40 + [{"h": "b"}] * 2 + [{"h": "c"}])
    priced = measurement(plan, Price(Fraction(10**12), Fraction(1, 10**6)))
    noisy = noisy_answer(bench.engine, priced, table)
    assert noisy.keys == (("a",), ("b",))
    assert noisy.parts == (((40, 2),),)


@pytest.mark.parametrize(
    "made",
    [
        laplace_threshold(Fraction(1), Fraction(1, 10**6), 3),
        gaussian_threshold(Fraction(1, 20), Fraction(1, 10**6), 10),
    ],
)
@pytest.mark.parametrize("near", [-15, -5, 0, 7, 60, 1000])
def test_intervals_hold_for_groups_that_are_shown(made: Threshold, near: int) -> None:
    """By enumeration of the noise, among shown answers: the truth is missed with 5 %, or less for the steps' sake,
    however near the threshold it lies."""
    truth, missed, total = max(1, made.threshold + near), 0.0, 0.0
    for value in range(made.threshold, truth + 400):
        if isinstance(made.noise, Laplace):
            chance = math.exp(-abs(value - truth) / float(made.noise.scale))
        else:
            chance = math.exp(-(((value - truth) / float(made.noise.sigma)) ** 2) / 2)
        total += chance
        if chance > 1e-14:
            ((low, high),) = shown_intervals(made, [value], 0.05)
            missed += chance * (not low <= truth <= high)
    assert 0.01 <= missed / total <= 0.0505
