"""Conversions between (ε, δ), ε and μ: on the safe side of the truth, and close to it."""

from __future__ import annotations

import itertools
from fractions import Fraction

import mpmath
import pytest

from accounting_tools import best_mu, delta_of, pure_mu, real
from discreet.trusted.ring_a.curves import delta_bounds, mu_beside_pure, mu_of_budget, mu_of_pure
from discreet.trusted.ring_b.further_losses import mu_of_range
from kinds import some

KIND = "exact"

BUDGETS = {
    ("0.1", "1e-6"): ".02754465024",
    ("0.5", "1e-6"): ".124106149",
    ("1", "1e-5"): ".2680511232",
    ("1", "1e-6"): ".2367043807",
    ("1", "1e-9"): ".1819748073",
    ("3", "1e-6"): ".6477265307",
    ("10", "1e-6"): "1.848132206",
}
"""μ of budgets, to ten digits."""

SIGMAS = {
    ("1", "1e-5"): "3.730631634815942",
    ("1", "1e-9"): "5.4952661572383",
    ("0.1", "1e-5"): "30.7495661319775",
    ("5", "1e-6"): ".98004900030921",
    ("10", "1e-10"): ".683043967227481",
    ("8", "1e-5"): ".600229072198952",
    ("50", "1e-6"): ".1565928703917619",
    ("2", "1e-5"): "1.99381244564354",
}
"""The sigma of the analytic Gaussian mechanism at sensitivity 1, which is 1/μ."""


@pytest.mark.parametrize(("budget", "expected"), BUDGETS.items())
def test_known_budgets(budget: tuple[str, str], expected: str) -> None:
    assert abs(mu_of_budget(*map(Fraction, budget)) / Fraction(expected) - 1) < Fraction(1, 10**9)


@pytest.mark.parametrize(("budget", "expected"), SIGMAS.items())
def test_known_sigmas(budget: tuple[str, str], expected: str) -> None:
    assert abs(1 / mu_of_budget(*map(Fraction, budget)) / Fraction(expected) - 1) < Fraction(1, 10**9)


@pytest.mark.parametrize("epsilon", ["1e-9", "0.001", "0.1", "1", "4.5", "30", "200", "599"])
@pytest.mark.parametrize("delta", some(["0.4", "1e-6", "1e-2", "1e-12", "1e-30"], pytest.mark.power, quick=2))
def test_the_mu_of_a_budget_is_never_above_the_truth(epsilon: str, delta: str) -> None:
    found, truth = real(mu_of_budget(Fraction(epsilon), Fraction(delta))), best_mu(epsilon, delta)
    assert found <= truth
    if Fraction(epsilon) >= Fraction(1, 1000):  # below, floating point guesses a little too low
        assert found >= truth * (1 - mpmath.mpf(10) ** -9)
    else:
        assert found >= truth * (1 - mpmath.mpf(10) ** -2)


@pytest.mark.parametrize("epsilon", ["601", "1e4", "1e9"])
@pytest.mark.parametrize("delta", ["0.4", "1e-6", "1e-30"])
def test_the_mu_of_a_huge_budget_is_below_the_truth_and_close(epsilon: str, delta: str) -> None:
    with mpmath.workdps(60):
        mu = real(mu_of_budget(Fraction(epsilon), Fraction(delta)))
        assert delta_of(epsilon, mu) <= real(delta) < delta_of(epsilon, mu * (1 + mpmath.mpf("1e-4")))


@pytest.mark.parametrize("delta", ["0.3", "1e-5", "1e-9", "1e-30"])
def test_the_mu_of_a_budget_rises_through_all_sizes(delta: str) -> None:
    """Also where closed forms take over."""
    sizes = [Fraction(10) ** power * size for power in range(-3, 6) for size in (1, 2, 5)]
    sizes += [Fraction(size, 10) for size in (1499, 1501, 2999, 3001, 5999, 6000, 6001, 6010)]
    for part in (Fraction(0), Fraction(1, 8), Fraction(7, 8))[: 1 if delta == "0.3" else 3]:
        found = [mu_beside_pure(size, part * size, Fraction(delta)) for size in sorted(sizes)]
        assert all(small < large for small, large in itertools.pairwise(found))


@pytest.mark.parametrize("epsilon", ["1e-4", "0.1", "1", "7", "40"])
def test_the_mu_of_a_bounded_range_holds_wherever_the_range_lies(epsilon: str) -> None:
    """The two outcomes with the log ratios t and t − ε are told apart no better, and just as well at t = ε/2."""
    with mpmath.workdps(60):
        mu, largest = real(mu_of_range(Fraction(epsilon))), mpmath.mpf(0)
        for part in range(1, 20):
            t, width = real(epsilon) * part / 20, real(epsilon)
            q = (1 - mpmath.exp(t - width)) / (mpmath.exp(t) - mpmath.exp(t - width))
            miss = 1 - q * mpmath.exp(t)  # 1 − p
            x = mpmath.findroot(lambda x, miss=miss: mpmath.log(mpmath.ncdf(-x)) - mpmath.log(miss), _start(miss))
            y = mpmath.findroot(lambda y, q=q: mpmath.log(mpmath.ncdf(-y)) - mpmath.log(q), _start(q))
            assert x + y <= mu
            largest = max(largest, x + y)
        assert largest >= mu * (1 - mpmath.mpf("1e-8"))


def _start(miss: mpmath.mpf) -> mpmath.mpf:
    """Near the x with Φ(−x) = miss."""
    return -_start(1 - miss) if miss > 0.5 else mpmath.sqrt(-2 * mpmath.log(2 * miss)) * mpmath.mpf("0.9")


def test_no_delta_no_mu_and_more_of_either_is_more() -> None:
    assert mu_of_budget(Fraction(1), Fraction(0)) == 0
    assert mu_of_budget(Fraction(1), Fraction(9, 10)) == mu_of_budget(Fraction(1), Fraction(1, 2))
    rising = [mu_of_budget(Fraction(epsilon, 10), Fraction(1, 10**6)) for epsilon in range(1, 80)]
    assert rising == sorted(rising)
    rising = [mu_of_budget(Fraction(1), Fraction(1, 10**exponent)) for exponent in range(20, 0, -1)]
    assert rising == sorted(rising)


@pytest.mark.parametrize(
    "epsilon",
    some(
        ["1e-12", "1e-9", "1e-6", "9.99e-7", "0.001", "0.01", "0.1", "1", "3", "20", "150", "600"],
        pytest.mark.power,
        quick=10,
    ),
)
def test_the_mu_of_a_pure_epsilon_is_never_below_the_truth(epsilon: str) -> None:
    with mpmath.workdps(400):
        found, truth = real(mu_of_pure(Fraction(epsilon))), pure_mu(epsilon)
        assert found >= truth
        assert found <= truth * (1 + mpmath.mpf(10) ** -9)


@pytest.mark.parametrize("epsilon", ["601", "1e5", "1e30"])
def test_the_mu_of_a_huge_epsilon_is_enough(epsilon: str) -> None:
    """Φ(−μ/2) ≤ 1/(1 + e^ε), from Φ(−t) ≤ e^(−t²/2)/2."""
    mu = mu_of_pure(Fraction(epsilon))
    assert (mu / 2) ** 2 / 2 >= Fraction(epsilon)
    assert mu**2 <= 8 * Fraction(epsilon) * (1 + Fraction(1, 2**60))


def test_a_pure_epsilon_costs_a_little_more_than_its_slope() -> None:
    """μ/ε tends to √(π/2) from above as ε falls: charging less would let randomised response through too often."""
    assert mu_of_pure(Fraction(0)) == 0
    for text in ("1e-9", "1e-4", "0.5"):
        assert real(mu_of_pure(Fraction(text)) / Fraction(text)) ** 2 >= mpmath.pi / 2 * (1 - real(text) ** 2)


@pytest.mark.parametrize("epsilon", ["0", "0.5", "3", "40", "300"])
@pytest.mark.parametrize("mu", ["0.05", "0.7", "2", "11"])
def test_delta_is_enclosed(epsilon: str, mu: str) -> None:
    low, high = delta_bounds(Fraction(epsilon), Fraction(mu))
    with mpmath.workdps(250):
        assert real(low) <= delta_of(epsilon, real(mu)) <= real(high)
    assert high - low < Fraction(1, 10**45)
