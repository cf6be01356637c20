"""The plain filters: how much they admit, that they stop, and why the natural filter is none of them."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import pytest

from discreet.accounting.room import times_left
from discreet.reference.baseline_filters import ConcentratedFilter, GaussianFilter, SumFilter, rho_of_budget
from discreet.trusted.ring_a.loss import Approximate, Batch, EquivalentGaussian, GaussianLoss, Loss, Pure
from discreet.trusted.ring_b.further_losses import LaplaceLoss, SubsampledGaussian, ZeroConcentrated
from discreet.trusted.ring_b.gdp_filter import CertifiedFilter as Filter
from discreet.trusted.ring_c.batch import compose
from kinds import some

KIND = "exact"

KINDS = (SumFilter, ConcentratedFilter, GaussianFilter)


@pytest.mark.parametrize(
    ("epsilon", "each", "expected"),
    [
        (1, "0.01", (100, 488, 358)),
        (1, "0.1", (10, 5, 3)),
        (3, "0.1", (30, 38, 28)),
        (3, "0.05", (60, 150, 109)),
        (10, "0.1", (100, 318, 228)),
    ],
)
def test_how_many_laplace_releases(epsilon: int, each: str, expected: tuple[int, ...]) -> None:
    assert tuple(kind(epsilon, "1e-6").left(LaplaceLoss(each)) for kind in KINDS) == expected
    assert times_left(Filter(epsilon, "1e-6"), LaplaceLoss(each)) >= max(expected)


BUDGETS = [
    ("0.1", "1e-6", 0.00032104769),
    ("0.5", "1e-6", 0.00664152436),
    ("1", "1e-5", 0.0305565952),
    ("1", "1e-9", 0.0149730577),
    ("3", "1e-6", 0.185069841),
    ("10", "1e-6", 1.53927876),
]


@pytest.mark.parametrize(("epsilon", "delta", "expected"), some(BUDGETS, pytest.mark.power, quick=2))
def test_rho_of_a_budget(epsilon: str, delta: str, expected: float) -> None:
    """The published figures; and no ρ noticeably larger has an order that proves the budget."""
    rho = rho_of_budget(Fraction(epsilon), Fraction(delta))
    assert float(rho) == pytest.approx(expected, rel=1e-8)
    with mp.workdps(40):

        def least(shown: mp.mpf) -> mp.mpf:
            return min(
                mp.e ** ((a - 1) * (a * shown - mp.mpf(epsilon))) * (1 - 1 / a) ** a / (a - 1)
                for a in (1 + mp.mpf(10) ** (mp.mpf(k) / 400) for k in range(-800, 2400))
            )

        shown = mp.mpf(rho.numerator) / rho.denominator
        assert least(shown) <= mp.mpf(delta) * (1 + mp.mpf("1e-4"))
        assert least(shown * mp.mpf("1.001")) > mp.mpf(delta)
    assert rho_of_budget(Fraction(1), Fraction(0)) == 0
    assert rho_of_budget(Fraction(300), Fraction(1, 10)) > 200


@pytest.mark.parametrize("kind", KINDS)
def test_left_is_what_charge_admits(kind: type[SumFilter | ConcentratedFilter | GaussianFilter]) -> None:
    mixed = Batch((LaplaceLoss("0.1"), Pure(Fraction(1, 7))))
    for loss in (Pure(Fraction(1, 3)), mixed, GaussianLoss("0.1"), ZeroConcentrated("0.003")):
        state, expected = kind(1, "1e-6"), kind(1, "1e-6").left(loss)
        for _ in range(expected):
            assert state.admits(loss)
            state = state.charge(loss)
        assert state.left(loss) == 0
        assert not state.admits(loss)
        with pytest.raises(ValueError, match="does not admit"):
            state.charge(loss)
    assert kind(1, "1e-6").left(Pure(0)) == 10**9
    with pytest.raises(ValueError, match="needs epsilon"):
        kind(0, 1)


def test_what_each_filter_knows_nothing_of() -> None:
    known = {
        (kind, loss): kind(1, "1e-6").admits(loss)
        for kind in KINDS
        for loss in (GaussianLoss("0.01"), ZeroConcentrated("0.001"), Approximate("0.01", "1e-9"))
    }
    assert [known[key] for key in known] == [False, False, True, True, True, False, True, False, False]
    assert not any(kind(1, "1e-6").admits(EquivalentGaussian("0.01", "1e-9")) for kind in KINDS)
    assert not SumFilter(1, "1e-6").admits(Approximate("0.01", "1e-5"))
    assert SumFilter(1, "1e-6").left(Approximate("0.01", "3e-7")) == 3
    assert GaussianFilter(1, "1e-6").left(SubsampledGaussian(100, "0.1", 10)) == 56


EPSILON, DELTA = Fraction(1), Fraction(1, 100)
FIRST, YES, NO = Pure("0.2"), Pure("0.826493603072298"), Approximate(0, DELTA)


def response(epsilon: float) -> list[tuple[float, float]]:
    """P- and Q-mass of both answers."""
    yes = 1 / (1 + math.exp(-epsilon))
    return [(yes, 1 - yes), (1 - yes, yes)]


def test_the_natural_filter_breaks_its_promise() -> None:
    """It composes what was run so far and asks for δ(ε) ≤ δ. After "+" of a first response it admits one that just
    fits, after "−" an event of probability δ that just fits; what an analyst gets who does so has δ(1) = .0145."""

    def admits(so_far: list[Loss], loss: Loss) -> bool:
        return compose([*so_far, loss]).delta(EPSILON) <= float(DELTA) * (1 + 1e-9)

    assert admits([], FIRST)
    assert admits([FIRST], YES)
    assert admits([FIRST], NO)
    for last in (YES, NO):
        assert compose([FIRST, last]).delta(EPSILON) == pytest.approx(0.01, rel=1e-9)
    (yes, other), (no, no_other) = response(0.2)
    outcomes = [(yes * p, other * q) for p, q in response(float(YES.epsilon))]
    outcomes += [(no * 0.01, 0.0), (0.0, no_other * 0.01), (no * 0.99, no_other * 0.99)]
    real = sum(max(0.0, p - math.e * q) for p, q in outcomes)
    assert real == pytest.approx(0.0145017, abs=1e-7)


@pytest.mark.parametrize("keys", [0, "0.002", "0.005", "0.01"])
def test_the_filters_refuse_one_of_the_branches(keys: str | int) -> None:
    for filtered in (Filter(EPSILON, DELTA, keys), SumFilter(EPSILON, DELTA), GaussianFilter(EPSILON, DELTA)):
        if filtered.admits(FIRST):
            after = filtered.charge(FIRST)
            assert not (after.admits(YES) and after.admits(NO))
