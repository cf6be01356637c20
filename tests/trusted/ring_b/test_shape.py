"""What a certificate proves, against brute force in high precision."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import combinations_with_replacement

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.trusted.ring_b.interval import Interval, around, exponential, point, tail
from discreet.trusted.ring_b.shape import SymmetricLoss, _lattice, _spread
from kinds import examples, some
from tight_oracles import (
    composed_curve,
    gaussian_curve,
    geometric_curve,
    laplace_atoms,
    lattice_atoms,
    numbers,
)

KIND = "exact"

EPSILONS = [Fraction(1, 100), Fraction(1, 10), Fraction(7, 10), Fraction(2), Fraction(5)]


def roots(epsilon: Fraction) -> list[Fraction]:
    return [root for part in ("1.3", "1.7", "3", "8", "30") if (root := epsilon * Fraction(part)) <= 10]


def left_of(root: Fraction, cost: Fraction) -> mp.mpf:
    square = root * root - cost
    return mp.sqrt(mp.mpf(square.numerator) / square.denominator)


def as_real(value: Fraction) -> mp.mpf:
    return mp.mpf(value.numerator) / value.denominator


@pytest.mark.parametrize("epsilon", some(EPSILONS, pytest.mark.power))
@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5, 9])
def test_the_inequality_holds_for_every_threshold(epsilon: Fraction, steps: int) -> None:
    """H(f ⊗ G_s) ≤ H(G_r) at many e, negative ones too, to a relative error of 10^−25."""
    values = random.Random(steps)
    with mp.workdps(45):
        atoms = lattice_atoms(epsilon, steps)
        assert abs(mp.fsum(mass for _, mass in atoms) - 1) < mp.mpf(10) ** -40
        for root in roots(epsilon):
            cost = SymmetricLoss(epsilon, steps).charge(root)
            if cost is None:
                continue
            r, s = as_real(root), left_of(root, cost)
            end = float(epsilon + 6 * root + root * root / 2)
            for e in [0.0, *numbers(values, -end, end, 24)]:
                ours, limit = composed_curve(atoms, mp.mpf(e), s), gaussian_curve(mp.mpf(e), r)
                assert ours <= limit * (1 + mp.mpf(10) ** -25), (root, e)


@pytest.mark.parametrize("epsilon", EPSILONS[:4])
def test_the_inequality_holds_for_continuous_laplace(epsilon: Fraction) -> None:
    values = random.Random(1)
    with mp.workdps(30):
        for root in roots(epsilon)[:4]:
            cost = SymmetricLoss(epsilon, None).charge(root)
            if cost is None:
                continue
            r, s = as_real(root), left_of(root, cost)
            cells = 2 + int(2 * epsilon / Fraction(float(s)))
            atoms = laplace_atoms(epsilon, cells)
            for e in [0.0, *numbers(values, 0.0, float(epsilon + 6 * root), 20)]:
                ours, limit = composed_curve(atoms, mp.mpf(e), s), gaussian_curve(mp.mpf(e), r)
                assert ours <= limit * (1 + mp.mpf(10) ** -6) + mp.mpf(10) ** -14, (root, e)


@pytest.mark.parametrize("steps", [1, 2, 3, 4])
@pytest.mark.parametrize("epsilon", EPSILONS[:3])
def test_no_smaller_charge_would_do(epsilon: Fraction, steps: int) -> None:
    """At a charge one part in 10^6 smaller, the inequality fails at e = 0: the certificate is as good as the rule."""
    with mp.workdps(40):
        atoms = lattice_atoms(epsilon, steps)
        for root in roots(epsilon)[1:]:
            cost = SymmetricLoss(epsilon, steps).charge(root)
            assert cost is not None
            s = left_of(root, cost * (1 - Fraction(1, 10**6)))
            assert composed_curve(atoms, mp.mpf(0), s) > gaussian_curve(mp.mpf(0), as_real(root))


@pytest.mark.parametrize("steps", [5, 9, 73])
def test_the_bound_on_long_lattices_is_close(steps: int) -> None:
    with mp.workdps(40):
        for epsilon in (Fraction(1, 10), Fraction(1)):
            atoms = lattice_atoms(epsilon, steps)
            for root in roots(epsilon)[1:]:
                cost = SymmetricLoss(epsilon, steps).charge(root)
                assert cost is not None
                s = left_of(root, cost * (1 - Fraction(1, 100)))
                assert composed_curve(atoms, mp.mpf(0), s) > gaussian_curve(mp.mpf(0), as_real(root))


def test_a_lattice_whose_ends_are_light_is_replaced() -> None:
    """Near its death a lattice of several steps fails condition (b), and still gets a charge that holds everywhere."""
    epsilon, steps = Fraction(3), 7
    root = Fraction(32, 10)
    cost = SymmetricLoss(epsilon, steps).charge(root)
    assert cost is not None
    with mp.workdps(40):
        atoms, s = lattice_atoms(epsilon, steps), left_of(root, cost)
        assert not heavy_ends(atoms, s)
        for e in numbers(random.Random(2), -12, 12, 80):
            assert composed_curve(atoms, mp.mpf(e), s) <= gaussian_curve(mp.mpf(e), as_real(root))


def test_the_ends_are_weighed_as_condition_b_says() -> None:
    """Whether they are heavy is what high precision says; of many steps it may be said too seldom, never too often."""
    found = []
    with mp.workdps(40):
        for epsilon in (Fraction(1, 10), Fraction(1), Fraction(3)):
            for steps in (2, 3, 4, 7, 20, 40):
                atoms = lattice_atoms(epsilon, steps)
                for part in ("1/5", "2/5", "3/5", "1", "2", "9"):
                    left = epsilon * Fraction(part)
                    said, true = SymmetricLoss(epsilon, steps)._heavy_ends(left, 128), heavy_ends(atoms, as_real(left))
                    assert said is true or (true and steps > 32), (epsilon, steps, part)
                    found.append(said)
    assert 10 < sum(found) < len(found) - 10


@pytest.mark.parametrize(
    ("epsilon", "steps", "root"), [("3", 7, "3.2"), ("2", 2, "2.2"), ("5", 3, "5.5"), ("2", 20, "2.4")]
)
def test_a_lattice_is_charged_as_such_only_where_condition_b_is_proved(epsilon: str, steps: int, root: str) -> None:
    """There the lattice's own total variation alone would prove a lower charge. The theorem says nothing of it, so the
    charge is that of the shape which dominates it."""
    shape, r = SymmetricLoss(Fraction(epsilon), steps), Fraction(root)
    cost, of_lattice = shape.charge(r), Fraction(shape._guess(_lattice, float(r)))
    assert cost is not None
    assert of_lattice < cost * (1 - Fraction(1, 100))
    with mp.workdps(40):
        assert not heavy_ends(lattice_atoms(shape.epsilon, steps), left_of(r, of_lattice))
    assert cost == shape._charge(_spread, r)


def heavy_ends(atoms: list[tuple[mp.mpf, mp.mpf]], s: mp.mpf) -> bool:
    weights = [mass * mp.e ** (-loss / 2) * mp.e ** (-(loss**2) / (2 * s * s)) for loss, mass in atoms]
    return weights[0] >= mp.fsum(weights[1:-1]) / 2


def test_charges_order_as_the_noises_do() -> None:
    """Fewer lattice steps cost more; randomised response most; continuous noise least; huge lattices cost the same."""
    for epsilon in EPSILONS[:4]:
        root = 4 * epsilon
        costs = [SymmetricLoss(epsilon, steps).charge(root) for steps in (1, 2, 3, 4, 8, 73, 2**20)]
        continuous = SymmetricLoss(epsilon, None).charge(root)
        assert continuous is not None
        assert all(cost is not None for cost in costs)
        assert costs == sorted(costs, reverse=True)
        assert continuous * (1 - Fraction(1, 10**8)) < costs[-1] < continuous * (1 + Fraction(1, 10**5))


@pytest.mark.parametrize(
    ("epsilon", "multiple", "expected"),
    [
        ("0.01", 2, 1.0491), ("0.01", 3, 1.0169), ("0.01", 5, 1.0035), ("0.01", 10, 0.9983), ("0.01", 20, 0.9971),
        ("0.1", 2, 1.0162), ("0.1", 3, 0.9866), ("0.1", 5, 0.9742), ("0.1", 10, 0.9694), ("0.1", 50, 0.9679),
    ],
)  # fmt: skip
def test_costs_of_laplace(epsilon: str, multiple: int, expected: float) -> None:
    exact = Fraction(epsilon)
    cost = SymmetricLoss(exact, None).charge(multiple * exact)
    assert cost is not None
    assert float(cost / exact**2) == pytest.approx(expected, abs=6e-5)


def test_what_cannot_be_charged() -> None:
    assert SymmetricLoss(Fraction(1), 1).charge(Fraction(1)) is None
    assert SymmetricLoss(Fraction(1), None).charge(Fraction(1, 2)) is None
    for bad in ((Fraction(0), 1), (Fraction(-1), None), (Fraction(1), 0)):
        with pytest.raises(ValueError, match="symmetric loss"):
            SymmetricLoss(*bad)


@pytest.mark.parametrize(
    "q", some([Fraction(1, 2), Fraction(9, 10), Fraction(99, 100), Fraction(1, 20)], pytest.mark.power)
)
def test_one_long_shift_dominates_every_vector(q: Fraction) -> None:
    """Exact rationals, every way to part up to seven steps among up to four coordinates, at and between all kinks of H.

    H_x is piecewise linear in x with kinks at whole powers of q, so places at and beside them decide all x.
    """
    for total in range(1, 8):
        exponents = range(-total, total + 1)
        places = sorted({q**k * factor for k in exponents for factor in (Fraction(1), Fraction(999, 1000))})
        single = [geometric_curve((total,), q, x) for x in places]
        for size in (1, 2, 3, 4):
            for shifts in combinations_with_replacement(range(total + 1), size):
                if 0 < sum(shifts) <= total:
                    curve = [geometric_curve(shifts, q, x) for x in places]
                    assert all(ours <= theirs for ours, theirs in zip(curve, single, strict=True)), shifts
        longer = [geometric_curve((total + 1,), q, x) for x in places]
        assert any(theirs > ours for ours, theirs in zip(single, longer, strict=True))


intervals = st.tuples(st.integers(-(2**40), 2**40), st.integers(0, 2**30)).map(
    lambda pair: (Fraction(pair[0], 2**20), Fraction(pair[0] + pair[1], 2**20))
)
shares = st.fractions(0, 1, max_denominator=97)


@settings(max_examples=examples(300), deadline=None)
@given(intervals, intervals, shares, shares)
def test_intervals_enclose(
    a: tuple[Fraction, Fraction], b: tuple[Fraction, Fraction], here: Fraction, there: Fraction
) -> None:
    """Whatever point of either interval is taken, the result's interval holds the result."""
    bits = 30
    first, second = around(*a, bits), around(*b, bits)
    x, y = a[0] + (a[1] - a[0]) * here, b[0] + (b[1] - b[0]) * there
    assert holds(first + second, x + y)
    assert holds(first - second, x - y)
    assert holds(first * second, x * y)
    if second.low > 0:
        assert holds(first / second, x / y)
    else:
        with pytest.raises(ZeroDivisionError):
            first / second


def holds(interval: Interval, value: Fraction) -> bool:
    return Fraction(interval.low, 1 << interval.bits) <= value <= Fraction(interval.high, 1 << interval.bits)


def test_functions_of_intervals() -> None:
    with mp.workdps(60):
        for x in map(Fraction, ("-7.5", "-1/3", "0", "0.01", "2.5", "9")):
            for bits in (64, 128):
                for interval, exact in (
                    (exponential(x, bits), mp.exp),
                    (tail(x, bits), lambda z: mp.erfc(z / mp.sqrt(2))),
                ):
                    truth = exact(as_real(x))
                    assert mp.mpf(interval.low) / 2**bits <= truth <= mp.mpf(interval.high) / 2**bits
                    assert interval.high - interval.low <= 4 + 2 ** max(0, int(mp.log(abs(truth) + 1, 2)) + 4)
        assert point(3, 10) == Interval(3072, 3072, 10)
