"""Declared batches: the brackets hold the truth wherever it is known, and are narrow."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.trusted.ring_a.loss import (
    Approximate,
    Batch,
    DiscreteLaplace,
    EquivalentGaussian,
    GaussianLoss,
    Loss,
    Pure,
)
from discreet.trusted.ring_b.further_losses import BoundedRange, LaplaceLoss, SubsampledGaussian, ZeroConcentrated
from discreet.trusted.ring_c.batch import Composition, compose
from discreet.trusted.ring_c.convolve import PrivacyLosses, Sum, add
from discreet.trusted.ring_c.search_window import TiltedMoments, locate
from kinds import some
from tight_oracles import composed_curve, gaussian_curve, lattice_atoms, normal_tail, response, response_delta

KIND = "exact"

THOUSAND = 1000

# Upper ends of other programs' accountings, to the digits they print: (batch, δ, ε, how far apart the two may lie).
VECTORS = [
    ({LaplaceLoss("0.01"): THOUSAND}, "1e-5", 1.1957030, 1e-6),
    ({LaplaceLoss("0.01"): THOUSAND}, "1e-6", 1.3629246, 1e-6),
    ({LaplaceLoss("0.01"): THOUSAND}, "1e-9", 1.7800078, 3e-6),
    ({DiscreteLaplace(Fraction(1, 100), 1): THOUSAND}, "1e-6", 1.3654467, 1e-7),
    ({Pure(Fraction(1, 100)): THOUSAND}, "1e-6", 1.3654467, 1e-7),
    ({LaplaceLoss("0.1"): 100}, "1e-6", 4.6926674, 2e-6),
    ({LaplaceLoss("0.25"): 20}, "1e-6", 4.6709202, 2e-7),
    ({LaplaceLoss("0.05"): 50, GaussianLoss(Fraction(1, 30)): 50}, "1e-6", 1.8443283, 5e-7),
    ({SubsampledGaussian("1.1", "0.01", THOUSAND): 1}, "1e-5", 1.515370, 3e-5),
    ({SubsampledGaussian("1.1", "0.01", THOUSAND): 1}, "1e-6", 1.752985, 5e-5),
]
EXACT_GAUSSIAN = [("1e-5", 2.5943833805), ("1e-6", 2.9216005904), ("1e-9", 3.7454668192)]


@pytest.mark.parametrize(("losses", "delta", "expected", "apart"), VECTORS)
def test_known_batches(losses: dict[Loss, int], delta: str, expected: float, apart: float) -> None:
    low, high = compose(losses).epsilon_bounds(delta)
    assert low - 5e-8 <= expected <= high + apart
    assert high - apart <= expected
    assert high - low <= 6e-4 * high
    assert compose(losses).epsilon(delta) == high
    assert compose(losses).delta(high) == pytest.approx(float(delta), rel=1e-3)


@pytest.mark.parametrize(("delta", "expected"), EXACT_GAUSSIAN)
def test_gaussian_batches_are_exact(delta: str, expected: float) -> None:
    low, high = compose([GaussianLoss(Fraction(1, 50))] * THOUSAND).epsilon_bounds(delta)
    assert low <= high
    assert high - low <= 1e-11
    assert low == pytest.approx(expected, abs=1e-10)


def test_the_mixed_batch_at_a_fixed_epsilon() -> None:
    low, high = compose({LaplaceLoss("0.05"): 50, GaussianLoss(Fraction(1, 30)): 50}).delta_bounds(1)
    assert low <= 0.00199529 + 5e-9
    assert 0.00199529 - 5e-9 <= high <= low * 1.0001


def brackets(losses: list[Loss], exact: float, epsilon: float, width: float) -> None:
    """The exact δ at ε lies in both brackets, but for its own rounding, 10^−13; above 10^−35 they are narrow."""
    low, high = compose(losses).delta_bounds(epsilon)
    assert low <= exact * (1 + 1e-13)
    assert exact * (1 - 1e-13) <= high
    if 1e-35 < exact < 1:
        assert high - low <= width * exact
        least, most = compose(losses).epsilon_bounds(exact)
        assert least * (1 - 1e-12) <= epsilon <= most * (1 + 1e-12) + 1e-15


@pytest.mark.parametrize("seed", range(10))
def test_responses_against_enumeration(seed: int) -> None:
    values = random.Random(seed)
    kinds = [values.randint(1, 40) / 20 for _ in range(3)]
    epsilons = [values.choice(kinds) for _ in range(values.randint(1, 25))]
    target = sum(epsilons) * values.uniform(0.05, 0.95)
    exact = response_delta(epsilons, target)
    brackets([Pure(Fraction(str(e))) for e in epsilons], exact, target, 0.05)


def test_many_responses_far_in_the_tail() -> None:
    """Relative precision holds where δ is far below the rounding error of a plain transform."""
    for target in (1.0, 4.0, 8.0, 16.0):
        exact = response_delta([0.1] * 200, target)
        brackets([Pure(Fraction(1, 10))] * 200, exact, target, 1e-6)
    assert exact < 1e-15


@pytest.mark.parametrize(("epsilon", "steps", "count"), [("0.3", 3, 4), ("1", 2, 5), ("2", 10, 3), ("0.5", 64, 2)])
def test_discrete_laplace_against_enumeration(epsilon: str, steps: int, count: int) -> None:
    exact_epsilon = Fraction(epsilon)
    with mp.workdps(40):
        atoms = lattice_atoms(exact_epsilon, steps)
        sums = {0: mp.mpf(1)}  # losses in units of ε/steps
        units = [(steps - 2 * k, atoms[k][1]) for k in range(steps)] + [(-steps, atoms[-1][1])]
        for _ in range(count):
            after: dict[int, mp.mpf] = {}
            for place, mass in sums.items():
                for step, factor in units:
                    after[place + step] = after.get(place + step, mp.mpf(0)) + mass * factor
            sums = after
        unit = mp.mpf(exact_epsilon.numerator) / exact_epsilon.denominator / steps
        for part in (0.1, 0.5, 0.9):
            target = part * float(exact_epsilon) * count
            found = mp.fsum(mass * max(0, 1 - mp.e ** (target - place * unit)) for place, mass in sums.items())
            brackets([DiscreteLaplace(exact_epsilon, steps)] * count, float(found), target, 0.02)


@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "1", "4", "30"])
def test_one_laplace(epsilon: str) -> None:
    """δ(e) = 1 − e^((e − ε)/2)."""
    for part in (0.0, 0.3, 0.9, 0.999):
        target = part * float(epsilon)
        brackets([LaplaceLoss(epsilon)], -math.expm1((target - float(epsilon)) / 2), target, 0.02)


def test_gaussian_among_responses() -> None:
    with mp.workdps(40):
        for mu, epsilon in ((0.3, 0.5), (1.5, 1.0), (0.02, 0.7), (4.0, 0.1)):
            for target in (0.2, 1.0, 2.0):
                atoms = [(mp.mpf(loss), mp.mpf(mass)) for loss, mass in response(epsilon)]
                exact = float(composed_curve(atoms, mp.mpf(target), mp.mpf(mu)))
                brackets([Pure(Fraction(str(epsilon))), GaussianLoss(Fraction(str(mu)))], exact, target, 0.02)


@pytest.mark.parametrize(("sigma", "rate"), [("1", "0.1"), ("0.7", "0.5"), ("3", "0.01"), ("2", "1")])
def test_one_step_of_the_subsampled_gaussian(sigma: str, rate: str) -> None:
    """Both directions in closed form; the larger δ counts."""
    with mp.workdps(40):
        s, q = mp.mpf(sigma), mp.mpf(rate)
        for target in (0.05, 0.3, 1.0):
            growth = mp.e ** mp.mpf(target)
            place = s * s * mp.log((growth - 1 + q) / q) + mp.mpf(1) / 2
            mixed = (1 - q) * normal_tail(place / s) + q * normal_tail((place - 1) / s)
            removed = mixed - growth * normal_tail(place / s)
            inside = (1 / growth - 1 + q) / q
            added = mp.mpf(0)
            if inside > 0:
                place = s * s * mp.log(inside) + mp.mpf(1) / 2
                mixed = (1 - q) * normal_tail(-place / s) + q * normal_tail((1 - place) / s)
                added = normal_tail(-place / s) - growth * mixed
            brackets([SubsampledGaussian(sigma, rate, 1)], float(max(removed, added)), target, 0.02)


def test_a_run_has_two_directions_and_all_else_one() -> None:
    """Removing a person and adding one are bounded each for itself, whatever stands beside the run."""
    run = SubsampledGaussian(1, "0.1", 3)
    for more in ([], [LaplaceLoss("0.3")], [GaussianLoss("0.5"), Pure("0.2")]):
        removed, added = compose([run, *more]).directions
        assert [law for law in removed if law not in added]
        assert [law for law in added if law not in removed]
        assert len(removed) == len(added) == 1 + len(more)
    assert (
        len(compose([LaplaceLoss("0.3"), DiscreteLaplace(1, 3), BoundedRange(1), GaussianLoss("0.5")]).directions) == 1
    )


def test_the_greater_direction_counts() -> None:
    """Whichever comes first: δ and ε are those of the larger one."""

    class Turned(Composition):
        @property
        def directions(self) -> list[PrivacyLosses]:
            return super().directions[::-1]

    batch = compose([SubsampledGaussian(1, "0.1", 3)])
    turned = Turned(batch.losses)
    for epsilon in ("0.1", "0.5"):
        assert turned.delta(epsilon) == pytest.approx(batch.delta(epsilon), rel=1e-3)
    for delta in ("1e-3", "1e-6"):
        assert turned.epsilon(delta) == pytest.approx(batch.epsilon(delta), rel=1e-3)


@pytest.mark.parametrize(("sigma", "rate"), [("0.3", "0.9999"), ("0.5", "0.999999999999"), ("0.4", "1")])
def test_one_step_that_samples_nearly_everybody(sigma: str, rate: str) -> None:
    """Each direction in closed form, far below e^−36 as well, where e^ℓ − 1 + rate is lost to rounding."""
    with mp.workdps(60):
        s, q = mp.mpf(sigma), mp.mpf(rate)
        for target in (0.3, 8.0, 30.0, 60.0):
            growth = mp.e ** mp.mpf(target)
            for laws, removed in zip(
                compose([SubsampledGaussian(sigma, rate, 1)]).directions, (True, False), strict=False
            ):
                inside = ((growth if removed else 1 / growth) - 1 + q) / q
                if inside <= 0:
                    continue
                place = (s * s * mp.log(inside) + mp.mpf(1) / 2) * (1 if removed else -1)
                still, moved = normal_tail(place / s), normal_tail((place - (1 if removed else -1)) / s)
                mixed = (1 - q) * still + q * moved
                exact = float(mixed - growth * still if removed else still - growth * mixed)
                rough, theta = locate(laws, epsilon=target)
                plan = rough.plan(theta, target)
                assert add(laws, plan, upward=False).delta(target) <= exact * (1 + 1e-13)
                assert exact * (1 - 1e-13) <= add(laws, plan, upward=True).delta(target) <= exact * 1.001 + 1e-250


def inverted(gaussian: float, sigma: float, rate: float, steps: int, epsilon: float, removed: bool) -> float:
    """δ(ε) = ∫ M(s)·e^(−sε)/(s(s + 1)) ds/2πi along a vertical line, M(s) = E e^(sℓ): a run and a Gaussian release.

    The line goes through the place where the integrand is least on the real axis. Both integrals converge faster than
    any power of the step, as everything is smooth and falls like a normal density.
    """
    x = np.linspace(-45 * sigma - 50, 50 + 45 * sigma, 8000)
    losses = np.logaddexp(np.log1p(-rate), np.log(rate) + (2 * x - 1) / (2 * sigma**2))
    density = -(x**2) / (2 * sigma**2) - math.log(sigma * math.sqrt(2 * math.pi)) + (losses if removed else 0.0)
    losses = losses if removed else -losses

    def logarithm(s: np.ndarray) -> np.ndarray:
        exponents = [density + z * losses for z in s]
        peaks = np.array([exponent.real.max() for exponent in exponents])
        sums = np.array([np.exp(exponent - peak).sum() for exponent, peak in zip(exponents, peaks, strict=True)])
        return (
            steps * (np.log(sums * (x[1] - x[0])) + peaks)
            + gaussian**2 / 2 * (s + s * s)
            - s * epsilon
            - np.log(s * (s + 1))
        )

    places = np.geomspace(0.5, 40, 60)
    theta = places[np.argmin(logarithm(places))]
    step = min(theta / 8, 0.05)
    line = logarithm(theta + 1j * step * np.arange(int(9 / gaussian / step)))
    values = np.exp(line - line[0].real).real
    return float((values[0] / 2 + values[1:].sum()) * step / math.pi * np.exp(line[0].real))


@pytest.mark.parametrize(
    ("mu", "sigma", "rate", "steps", "delta"),
    some(
        [("0.56", "1", "0.15", 7, "1e-12"), ("0.8", "0.7", "0.3", 5, "1e-6"), ("1.5", "2", "0.02", 40, "1e-20")],
        pytest.mark.power,
    ),
)
def test_gaussian_with_a_run(mu: str, sigma: str, rate: str, steps: int, delta: str) -> None:
    """At the ε of removing a person adding one costs next to nothing, and the bounds of that are right as well."""
    batch = compose([GaussianLoss(mu), SubsampledGaussian(sigma, rate, steps)])
    low, high = batch.epsilon_bounds(delta)
    assert high - low <= 1e-4 * high
    for epsilon in (0.7 * low, low, high):
        for laws, removed in zip(batch.directions, (True, False), strict=True):
            exact = inverted(float(mu), float(sigma), float(rate), steps, epsilon, removed)
            rough, theta = locate(laws, epsilon=epsilon)
            plan = rough.plan(theta, epsilon)
            least, most = (add(laws, plan, upward).delta(epsilon) for upward in (False, True))
            assert least * (1 - 1e-9) <= exact <= most * (1 + 1e-9)
            assert most <= 1.05 * least
            if removed:
                assert batch.delta_bounds(epsilon) == pytest.approx((least, most), rel=1e-9)


@pytest.mark.parametrize("tail", some([1e-5, 1e-40, 1e-300], pytest.mark.power))
def test_a_bad_window_costs_width_and_not_truth(tail: float) -> None:
    """Tilts too small and too steep, laws cut too early, windows in the wrong place; e^700 ends no bound."""
    batch = compose([GaussianLoss("0.56"), SubsampledGaussian(1, "0.15", 7)])
    for epsilon in (1.0, 8.815659):
        for laws, removed in zip(batch.directions, (True, False), strict=False):
            exact = inverted(0.56, 1.0, 0.15, 7, epsilon, removed)
            rough = TiltedMoments(laws, tail)
            for part in (0.1, 1.0, 1.5):
                good = rough.plan(part * rough.tilt_to(epsilon), epsilon)
                for plan in (good.coarser(7), replace(good.coarser(5), tail=tail, low=epsilon - 0.1, high=epsilon + 1)):
                    assert add(laws, plan, upward=False).delta(epsilon) <= exact * (1 + 1e-9)
                    assert exact <= add(laws, plan, upward=True).delta(epsilon) * (1 + 1e-9)


def test_a_run_that_samples_everybody_is_gaussian() -> None:
    run, plain = compose([SubsampledGaussian(20, 1, 50)]), compose([GaussianLoss(Fraction(1, 20))] * 50)
    low, high = run.epsilon_bounds("1e-6")
    assert low <= plain.epsilon("1e-6") * (1 + 1e-12)
    assert plain.epsilon_bounds("1e-6")[0] <= high <= plain.epsilon("1e-6") * 1.0001


def test_what_costs_keys_adds_its_delta() -> None:
    """Two of (1, .001), one of 1: δ is 1 − (1 − .001)² at once, and that part of the rest."""
    losses: list[Loss] = [Approximate(Fraction(1), Fraction(1, 1000))] * 2 + [Pure(Fraction(1))]
    keys = 1 - 0.999**2
    for target in (0.5, 1.5, 2.5):
        exact = keys + (1 - keys) * response_delta([1.0] * 3, target)
        brackets(losses, exact, target, 0.01)
    assert compose(losses).delta(3) == pytest.approx(keys, rel=1e-9)
    assert compose(losses).epsilon_bounds("0.001") == (0.0, math.inf)
    assert compose(losses).epsilon(keys * 1.0001) <= 3.0001
    apart = compose([Approximate(Fraction(0), Fraction(1, 1000)), GaussianLoss(Fraction(1, 2))])
    exact = 0.001 + 0.999 * float(gaussian_curve(mp.mpf(1), mp.mpf("0.5")))
    assert apart.delta_bounds(1) == pytest.approx((exact, exact), rel=1e-9)


def test_what_stands_for_a_batch_counts_as_gaussian_and_certain() -> None:
    stood, apart = EquivalentGaussian("0.5", "1e-3"), (GaussianLoss("0.5"), Approximate(0, "1e-3"))
    for more in ([], [LaplaceLoss("0.3")]):
        assert compose([stood, *more]).delta_bounds(1) == compose([*apart, *more]).delta_bounds(1)
    assert compose([EquivalentGaussian(1, 1)]).delta(5) == 1


def range_delta(bound: float, epsilon: float) -> float:
    """The largest δ at ε of any pair of distributions whose log ratios lie within `bound` of each other."""
    most = 0.0
    for place in range(1, 2000):  # two outcomes, of losses t and t − bound
        top = bound * place / 2000
        rare = math.expm1(bound - top) / math.expm1(bound)
        most = max(most, rare * (math.exp(top) - math.exp(epsilon)))
    return most


@pytest.mark.parametrize("bound", [0.05, 1.0, 4.0])
def test_bounded_range_is_the_worst_pair_of_that_range_at_every_epsilon(bound: float) -> None:
    for part in (0.0, 0.2, 0.5, 0.9):
        low, high = compose([BoundedRange(bound)]).delta_bounds(bound * part)
        worst = range_delta(bound, bound * part)
        assert low <= worst * (1 + 1e-5)
        assert worst <= high <= worst * (1 + 1e-4) + 1e-9


def test_choices_of_bounded_range_are_dominated_in_any_order() -> None:
    """Two choices, the second pair chosen by the first's outcome: every such tree of two outcomes each, on a grid."""
    bound, steps = 1.5, 12
    composed = compose([BoundedRange(bound)] * 2)
    grid = [bound * place / steps for place in range(1, steps)]

    def masses(top: float) -> list[tuple[float, float]]:
        rare = math.expm1(bound - top) / math.expm1(bound)
        return [(rare * math.exp(top), rare), ((1 - rare) * math.exp(top - bound), 1 - rare)]

    for epsilon in (0.0, 0.7, 1.5, 2.5):
        highest = composed.delta(epsilon)
        for first in grid:
            best = 0.0  # the worst second pair for each outcome of the first
            for p, q in masses(first):
                best += max(
                    sum(max(0.0, p * a - math.exp(epsilon) * q * b) for a, b in masses(second)) for second in grid
                )
            assert best <= highest * (1 + 1e-12)


def test_bounded_range_costs_less_than_a_pure_loss_and_a_rho_is_not_composed() -> None:
    assert compose([BoundedRange("0.1")] * 100).epsilon("1e-6") < 0.7 * compose([Pure("0.1")] * 100).epsilon("1e-6")
    assert compose([BoundedRange(0)]).delta(0) == 0
    assert compose([DiscreteLaplace(1, 0)]).delta_bounds(0) == (0, 0)
    with pytest.raises(ValueError, match="a zCDP event cannot be composed"):
        compose([Pure(1), Batch((ZeroConcentrated("0.1"),))])


def test_small_losses_beside_a_large_one_need_no_fine_lattice() -> None:
    low, high = compose([GaussianLoss(1), Pure("1e-7")]).epsilon_bounds("1e-6")
    alone = compose([GaussianLoss(1)]).epsilon("1e-6")
    assert low <= alone * (1 + 1e-12)
    assert alone <= high <= alone * 1.001


@pytest.mark.parametrize("kind", [Pure, LaplaceLoss])
def test_single_losses_at_a_large_delta(kind: type[Pure]) -> None:
    for epsilon in ("0.03", "1", "5"):
        for delta in ("0.001", "0.01", "0.1"):
            low, high = compose([kind(epsilon)]).epsilon_bounds(delta)
            assert high - low <= 1e-5 * high


def test_without_delta_only_the_sum_holds() -> None:
    assert compose([Pure(Fraction(1, 3)), LaplaceLoss("0.5")]).epsilon(0) == pytest.approx(5 / 6, rel=1e-9)
    assert compose([GaussianLoss(Fraction(1, 3))]).epsilon(0) == math.inf
    assert compose([SubsampledGaussian(1, "0.1", 3)]).epsilon(0) == math.inf
    assert compose([Pure(Fraction(1, 3))]).delta("0.3334") == 0
    assert compose([]).epsilon_bounds("1e-6") == (0, 0)
    assert compose([Pure(Fraction(0))]).delta_bounds(0) == (0, 0)


def test_extreme_losses() -> None:
    huge = compose([Pure(Fraction(1000)), GaussianLoss(Fraction(1))])
    assert huge.epsilon_bounds("1e-6") == (0.0, math.inf)
    for steep in (
        compose([SubsampledGaussian("0.01", "0.1", 1)]),
        compose([Pure(Fraction(1)), GaussianLoss(Fraction(40))]),
    ):
        assert steep.epsilon_bounds("1e-6") == (0.0, math.inf)
        assert steep.delta_bounds(3) == (0.0, 1.0)
    assert compose([Pure(Fraction(1000))]).epsilon("1e-6") == pytest.approx(1000)
    assert compose([Pure(Fraction(1000))]).delta(1001) == 0
    low, high = compose([GaussianLoss(Fraction(50))]).epsilon_bounds("1e-6")
    assert low <= 1487 <= high <= 1550
    low, high = compose({LaplaceLoss("1e-6"): 10**6}).epsilon_bounds("1e-6")
    assert 0.00271 < low <= high < 0.00272
    assert compose([Pure(Fraction(40))]).delta_bounds(20) == pytest.approx((1, 1), abs=1e-8)


def test_a_batch_counts_its_parts() -> None:
    parts = (Pure(Fraction(1, 5)), GaussianLoss(Fraction(1, 7)))
    nested, flat = compose([Batch(parts)] * 3), compose({parts[0]: 3, parts[1]: 3})
    assert nested == flat
    with pytest.raises(ValueError, match="must not be negative"):
        compose({parts[0]: -1})
    for bad in (-1, 2):
        with pytest.raises(ValueError, match="probability"):
            flat.epsilon(bad)
    with pytest.raises(ValueError, match="negative"):
        flat.delta(-1)


def test_many_different_losses() -> None:
    """Hundreds of losses that share no lattice, convolved directly before they are transformed."""
    epsilons = [Fraction(10 + k, 9973) for k in range(300)]
    low, high = compose([LaplaceLoss(e) for e in epsilons]).epsilon_bounds("1e-6")
    coarse = compose([LaplaceLoss(Fraction(math.ceil(e * 200), 200)) for e in epsilons]).epsilon("1e-6")
    finer = compose([LaplaceLoss(Fraction(math.floor(e * 200), 200)) for e in epsilons]).epsilon("1e-6")
    assert finer < low <= high < coarse
    assert high - low <= 0.02 * high


mixed = st.lists(
    st.one_of(
        st.integers(1, 200).map(lambda n: LaplaceLoss(Fraction(n, 100))),
        st.integers(1, 200).map(lambda n: Pure(Fraction(n, 100))),
        st.tuples(st.integers(1, 200), st.integers(1, 9)).map(lambda p: DiscreteLaplace(Fraction(p[0], 100), p[1])),
        st.integers(1, 200).map(lambda n: GaussianLoss(Fraction(n, 100))),
        st.tuples(st.integers(5, 40), st.integers(1, 100), st.integers(1, 30)).map(
            lambda p: SubsampledGaussian(Fraction(p[0], 10), Fraction(p[1], 100), p[2])
        ),
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=25, deadline=None)
@given(mixed, st.sampled_from(["1e-3", "1e-6", "1e-12"]))
def test_brackets_of_random_batches(losses: list[Loss], delta: str) -> None:
    """Lower ends lie below upper ends, more releases cost no less, and ε and δ are inverse within the brackets."""
    batch = compose(losses)
    low, high = batch.epsilon_bounds(delta)
    assert 0 <= low <= high
    assert (
        high <= float(sum((loss.pure for loss in losses), Fraction(0)) if batch.pure is not None else math.inf) * 1.001
    )
    fewer = compose(losses[:-1]).epsilon_bounds(delta)
    assert fewer[0] <= high * (1 + 1e-9)
    if math.isfinite(high):
        assert batch.delta_bounds(high)[0] <= float(delta) * (1 + 1e-9)
        assert batch.delta(low) >= float(delta) * (1 - 1e-9) or low == 0


@pytest.mark.parametrize("step", [1e-9, 1e-3, 0.5])
def test_a_curve_in_one_pass_is_above_the_sum_at_every_place(step: float) -> None:
    """Beside the sum itself with forty digits, where places lie between losses, on them, below and above all."""
    source = np.random.default_rng(20261124)
    losses = -50 * step + step * np.arange(300.0)
    bound = Sum(losses, source.exponential(1e-3, 300) * np.exp(-losses), 1e-7)
    between = losses[0] + step * np.append(source.uniform(-3, 310, 60), -1)
    places = np.sort(np.concatenate([losses[[0, 7, 7, 299]], between]))
    found = bound.deltas(places)
    with mp.workdps(40):
        for place, one in zip(places.tolist(), found.tolist(), strict=True):
            exact = mp.mpf(1e-7)
            for loss, mass in zip(losses.tolist(), bound.mass.tolist(), strict=True):
                exact += mass * max(mp.mpf(0), -mp.expm1(mp.mpf(place) - mp.mpf(loss)))
            exact = mp.mpf(1) if place < losses[0] else min(mp.mpf(1), exact)
            assert exact * (1 - 1e-15) <= one <= exact * (1 + 1e-11)
            assert one == pytest.approx(bound.delta(place), rel=1e-11)
    assert found[0] == 1
    with pytest.raises(ValueError, match="lower bound"):
        replace(bound, stray=0.0).deltas(places)


def test_a_curve_of_a_batch_is_that_of_its_places() -> None:
    (laws, *_) = compose([LaplaceLoss("0.3")] * 5 + [GaussianLoss("0.4")]).directions
    rough, theta = locate(laws, delta=1e-6)
    bound = add(laws, replace(rough.plan(theta), low=-0.1), upward=True)
    places = np.linspace(0.0, 4.0, 1000)
    assert bound.deltas(places) == pytest.approx([bound.delta(place) for place in places.tolist()], rel=1e-11)
