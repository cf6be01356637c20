"""Conversions between (ε, δ), ε and μ: on the safe side of the truth, and close to it."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import mpmath
import pytest

from accounting_tools import best_mu, delta_of, pure_mu, real
from discreet.trusted.ring_a import curves
from discreet.trusted.ring_a.curves import delta_bounds, mu_beside_pure, mu_of_budget, mu_of_pure
from discreet.trusted.ring_a.exact import floor, sqrt_ceiling
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


@pytest.mark.parametrize("epsilon", ["599", "600"])
def test_up_to_600_a_budget_gives_all_of_its_mu(epsilon: str) -> None:
    mu = mu_of_budget(Fraction(epsilon), Fraction(1, 10**6))
    with mpmath.workdps(300):
        assert (
            delta_of(epsilon, real(mu)) <= mpmath.mpf("1e-6") < delta_of(epsilon, real(mu * (1 + Fraction(1, 10**9))))
        )


def test_up_to_600_a_pure_epsilon_costs_no_more_than_it_must() -> None:
    mu = mu_of_pure(Fraction(600))
    with mpmath.workdps(700):
        target = 1 / (1 + mpmath.exp(600))
        assert mpmath.ncdf(-real(mu) / 2) <= target < mpmath.ncdf(-real(mu * (1 - Fraction(1, 10**9))) / 2)


@pytest.mark.parametrize("epsilon", ["1.5", "250", "300"])
@pytest.mark.parametrize("pure", ["0.1", "0.4", "1"])
def test_beside_a_pure_part_all_is_given_up_to_300(epsilon: str, pure: str) -> None:
    """Of randomised response and μ together δ is the mean of two, in closed form."""
    delta = mpmath.mpf("1e-6")
    mu = real(mu_beside_pure(Fraction(epsilon), Fraction(pure), Fraction(1, 10**6)))
    with mpmath.workdps(300):
        heads = 1 / (1 + mpmath.exp(-real(pure)))

        def found(one: mpmath.mpf) -> mpmath.mpf:
            less, more = (Fraction(epsilon) + sign * Fraction(pure) for sign in (-1, 1))
            return heads * delta_of(less, one) + (1 - heads) * delta_of(more, one)

        assert found(mu) <= delta < found(mu * (1 + mpmath.mpf("1e-9")))


@pytest.mark.parametrize("epsilon", ["1", "601", "1e9"])
@pytest.mark.parametrize("delta", ["0", "-1e-9"])
def test_without_a_delta_there_is_no_mu(epsilon: str, delta: str) -> None:
    assert mu_of_budget(Fraction(epsilon), Fraction(delta)) == 0
    assert mu_beside_pure(Fraction(epsilon), Fraction(1, 2), Fraction(delta)) == 0


EXPONENTS = (12, 11, 10, 9, 8, 6, 4, 3, 2, 1)
"""A guess is moved by these negative powers of ten of itself, one after the other, until it is proved."""

SLIGHTLY = Fraction(1, 10**20)
"""As a part of a number: which of two sides it lies on is decided by no more."""


@pytest.mark.parametrize("epsilon", ["601", "1e4", "12345678.9"])
@pytest.mark.parametrize("delta", ["0.5", "0.3", "1e-6", "1e-30"])
def test_the_mu_of_a_huge_budget_keeps_below_its_root(epsilon: str, delta: str) -> None:
    """μ ≤ √(z² + 2ε) − z in rationals, and hardly less."""
    mu, z = (
        mu_of_budget(Fraction(epsilon), Fraction(delta)),
        curves._quantile_beyond(Fraction(epsilon), Fraction(delta)),
    )
    assert (mu + z) ** 2 <= z * z + 2 * Fraction(epsilon) < (mu + z) ** 2 * (1 + Fraction(1, 10**17))


@pytest.mark.parametrize("epsilon", ["601", "1e5"])
@pytest.mark.parametrize("delta", ["0.4", "1e-6"])
def test_a_quantile_is_taken_where_the_inequality_holds_and_nowhere_else(
    epsilon: str, delta: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Φ(−z)·(1 − (3z + √(z² + 8))/4 · b/(1 + b²)) ≤ δ, with bounds of Φ that are just enough, or just too large."""
    asked: list[Fraction] = []

    def enough(z: Fraction) -> Fraction:
        with mpmath.workdps(60):
            b = mpmath.sqrt(real(z * z + 2 * Fraction(epsilon)))
            hazard = (3 * real(z) + mpmath.sqrt(real(z * z + 8))) / 4
            return Fraction(mpmath.nstr(real(delta) / (1 - hazard * b / (1 + b * b)), 50))

    def bounds(part: Fraction) -> Any:
        def given(point: Fraction, _: int) -> tuple[Fraction, Fraction]:
            asked.append(-point)
            return Fraction(0), enough(-point) * part

        return given

    # the roots are rounded, so that the inequality is never said to hold where it does not
    monkeypatch.setattr(curves, "normal_cdf_bounds", bounds(1 - Fraction(1, 10**15)))
    assert curves._quantile_beyond(Fraction(epsilon), Fraction(delta)) == asked[-1]
    assert len(asked) == 1
    monkeypatch.setattr(curves, "normal_cdf_bounds", bounds(1 + Fraction(1, 10**30)))
    simple = curves._quantile_beyond(Fraction(epsilon), Fraction(delta))
    assert all(z < simple for z in asked)
    most = (asked[2] - asked[1]) / (Fraction(1, 10**11) - Fraction(1, 10**12))
    assert most == max(Fraction(1), asked[1] - most / 10**12)
    tried = [asked[1] - most / 10**12 + most / 10**exponent for exponent in EXPONENTS]
    assert asked[1:] == [z for z in tried if z < simple]
    with mpmath.workdps(60):
        least = mpmath.sqrt(2 * mpmath.log(1 / (2 * real(delta))))
        assert least <= real(simple) <= least * (1 + mpmath.mpf(2) ** -60)
    monkeypatch.setattr(curves, "log_bounds", lambda _: (Fraction(2), Fraction(8)))
    assert curves._quantile_beyond(Fraction(epsilon), Fraction(delta)) == 4


def test_no_mu_is_given_that_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the upper bound of δ is above the budget's, whatever the lower one, or where nothing bounds Φ."""
    one, small, three = Fraction(1), Fraction(1, 1000), Fraction(3)
    asked: list[Fraction] = []
    lowered = [1 - Fraction(1, 10**exponent) for exponent in EXPONENTS]
    raised = [1 + Fraction(1, 10**exponent) for exponent in EXPONENTS]
    monkeypatch.setattr(curves, "delta_bounds", lambda _, mu: (asked.append(mu), (Fraction(0), one))[1])
    assert mu_of_budget.__wrapped__(three, small) == 0
    assert [mu / asked[0] for mu in asked] == [one / lowered[0] for one in lowered]
    asked.clear()
    assert mu_beside_pure.__wrapped__(three, one / 2, small) == 0
    assert [mu / asked[0] for mu in asked[::2]] == [one / lowered[0] for one in lowered]
    asked.clear()
    monkeypatch.setattr(curves, "normal_cdf_bounds", lambda at, _: (asked.append(at), (Fraction(0), one))[1])
    assert mu_of_pure.__wrapped__(three) == 2 * sqrt_ceiling(Fraction(6))
    assert [mu / asked[0] for mu in asked] == [one / raised[0] for one in raised]
    monkeypatch.setattr(curves, "delta_bounds", lambda *_: (Fraction(0), small))
    assert mu_of_budget.__wrapped__(three, small) > 0


@pytest.mark.parametrize("pure", ["0.5", "0.01"])
def test_beside_a_pure_part_delta_is_a_mean_of_upper_bounds(pure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With bounds of δ that are told: of the larger one the part p, of the smaller one the rest, p from the upper bound
    of e^ε. Equal to the budget is enough."""
    epsilon, delta = Fraction(1), Fraction(1, 1000)
    told = {epsilon - Fraction(pure): Fraction(1, 700), epsilon + Fraction(pure): Fraction(1, 9000)}
    mean = told[epsilon - Fraction(pure)] * 3 / 4 + told[epsilon + Fraction(pure)] / 4
    monkeypatch.setattr(curves, "exp_bounds", lambda *_: (Fraction(1), Fraction(3)))
    monkeypatch.setattr(curves, "delta_bounds", lambda at, _: (Fraction(0), told[at] * delta / mean))
    assert mu_beside_pure.__wrapped__(epsilon, Fraction(pure), delta) > 0
    assert mu_beside_pure.__wrapped__(epsilon, Fraction(pure), delta * (1 - SLIGHTLY)) == 0


def test_the_mu_of_a_pure_epsilon_is_proved_at_its_half(monkeypatch: pytest.MonkeyPatch) -> None:
    """Φ(−μ/2) ≤ 1/(1 + e^ε), by the upper bounds of both. Equal is enough."""
    asked: list[Fraction] = []

    def told(upper: Fraction) -> Any:
        return lambda point, _: (asked.append(point), (Fraction(0), upper))[1]

    monkeypatch.setattr(curves, "exp_bounds", lambda *_: (Fraction(1), Fraction(3)))
    monkeypatch.setattr(curves, "normal_cdf_bounds", told(Fraction(1, 4)))
    assert mu_of_pure.__wrapped__(Fraction(1)) == -2 * asked[-1]
    monkeypatch.setattr(curves, "normal_cdf_bounds", told(Fraction(1, 4) * (1 + SLIGHTLY)))
    assert mu_of_pure.__wrapped__(Fraction(1)) == 2 * sqrt_ceiling(Fraction(2))
    assert all(asked[0] / 2 > point > asked[0] * 2 for point in asked)


@pytest.mark.parametrize("pure", ["0.1", "7"])
def test_above_300_the_pure_part_is_taken_off_the_budget(pure: str) -> None:
    for epsilon in (Fraction(30001, 100), Fraction(599), Fraction(900)):
        rest = mu_of_budget(epsilon - Fraction(pure), Fraction(1, 10**6))
        assert mu_beside_pure(epsilon, Fraction(pure), Fraction(1, 10**6)) == rest


@pytest.mark.parametrize("epsilon", ["601", "1e4", "1e7"])
@pytest.mark.parametrize("delta", ["0.4", "1e-6", "1e-30"])
def test_a_quantile_is_the_least_that_is_proved(epsilon: str, delta: str) -> None:
    """Φ(−z)·(1 − (3z + √(z² + 8))/4 · b/(1 + b²)) comes up to δ."""

    def found(z: mpmath.mpf) -> mpmath.mpf:
        b = mpmath.sqrt(z * z + 2 * real(epsilon))
        return mpmath.ncdf(-z) * (1 - (3 * z + mpmath.sqrt(z * z + 8)) / 4 * b / (1 + b * b))

    with mpmath.workdps(60):
        z = real(curves._quantile_beyond(Fraction(epsilon), Fraction(delta)))
        assert found(z) <= real(delta) < found(z - mpmath.mpf("1e-9") * max(1, z))


@pytest.mark.parametrize("epsilon", ["1e-30", "1e-60", "1e-100"])
def test_a_tiny_epsilon_costs_its_slope(epsilon: str) -> None:
    mu = mu_of_pure(Fraction(epsilon))
    with mpmath.workdps(200):
        slope = real(mu) / real(epsilon) / mpmath.sqrt(mpmath.pi / 2)
        assert 1 <= slope <= 1 + mpmath.mpf("1e-9")


@pytest.mark.parametrize(
    ("epsilon", "mu"), [(0.5, 0.3), (30.0, 4.0), (600.0, 30.0), (601.0, 30.0), (2e3, 55.0), (1e4, 140.0)]
)
def test_guesses_of_delta_are_close(epsilon: float, mu: float) -> None:
    """Also where e^ε is no double."""
    with mpmath.workdps(60):
        near, far = (mpmath.erfc((epsilon / mpmath.mpf(mu) + side * mu / 2) / mpmath.sqrt(2)) for side in (-1, 1))
        truth = (near - mpmath.exp(epsilon) * far) / 2
    assert abs(curves.guessed_delta(epsilon, mu) / float(truth) - 1) < (1e-9 if epsilon <= 600 else 1e-3)


@pytest.mark.parametrize("epsilon", ["601", "2000.5"])
def test_the_mu_of_a_huge_budget_has_thirty_digits(epsilon: str) -> None:
    mu = mu_of_budget(Fraction(epsilon), Fraction(1, 10**6))
    assert floor(mu, 30) == mu > floor(mu, 29)


@pytest.mark.parametrize("epsilon", ["0", "0.001", "3", "100.5"])
def test_what_proves_is_computed_with_bits_to_spare(epsilon: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """160 beyond those of e^ε, of which 3/2 of ε are enough; 200, and those of a small ε too; 64 beyond those of δ."""
    asked: list[tuple[str, int]] = []

    def recorded(name: str) -> Any:
        right = getattr(curves, name)
        return lambda x, bits: (asked.append((name, bits)), right(x, bits))[1]

    for name in ("normal_cdf_bounds", "exp_bounds"):
        monkeypatch.setattr(curves, name, recorded(name))
    exact, more = Fraction(epsilon), int(Fraction(epsilon) * 3 / 2)
    delta_bounds(exact, Fraction(1))
    assert asked == [("normal_cdf_bounds", 160 + more)] * 2 + [("exp_bounds", 160)]
    asked.clear()
    mu_beside_pure.__wrapped__(Fraction(3), Fraction(1, 3), Fraction(1, 100))
    assert {bits for name, bits in asked if name == "exp_bounds"} == {160}
    if exact:
        asked.clear()
        mu_of_pure.__wrapped__(exact)
        size = max(0, exact.denominator.bit_length() - exact.numerator.bit_length())
        assert {bits for _, bits in asked} == {200 + more + size}
    for delta in (Fraction(1, 2), Fraction(2, 5), Fraction(3, 10**30)):
        asked.clear()
        curves._quantile_beyond(Fraction(700), delta)
        size = delta.denominator.bit_length() - delta.numerator.bit_length()
        assert {bits for name, bits in asked if name == "normal_cdf_bounds"} <= {64 + size}
        assert asked or delta == Fraction(1, 2)


@pytest.mark.parametrize("delta", [Fraction(3, 4), Fraction(1), Fraction(2)])
def test_a_delta_above_one_half_buys_no_more(delta: Fraction) -> None:
    assert mu_of_budget(Fraction(1), delta) == mu_of_budget(Fraction(1), Fraction(1, 2))
