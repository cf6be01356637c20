"""Optimal partition selection: the inequalities in rationals, published values, several groups a person, and draws."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import accounting
from discreet.reference.partition import PartitionSelection, chances, delta_share
from discreet.trusted.ring_a.exact import exp_bounds, log_bounds
from discreet.trusted.ring_b.choice import CERTAIN
from kinds import examples
from random_words import Script, SeededWords
from textbook_tools import SMALLEST, exp_above, goodness, hockey_stick, power

KIND = "exact"

ONE = Fraction(1)


def shown(chance: Fraction) -> dict:
    return {True: chance, False: 1 - chance}


@pytest.mark.parametrize(
    ("epsilon", "delta", "values", "certain"),
    [
        (ONE, "1e-5", {1: 1e-5, 5: 8.579102488e-4, 10: 0.1281830805, 12: 0.7603109969}, 23),
        (log_bounds(Fraction(3))[0], "1e-5", {5: 0.00121, 10: 0.29524, 12: 0.9216977778}, 21),
        (Fraction(1, 2), "1e-6", {1: 1e-6}, 51),
    ],
)
def test_vectors(epsilon: Fraction, delta: str, values: dict[int, float], certain: int) -> None:
    selection = PartitionSelection(epsilon, Fraction(delta))
    for persons, value in values.items():
        assert float(selection.chance(persons)) == pytest.approx(value, rel=1e-8)
    assert selection.chance(certain) == 1 > selection.chance(certain - 1)
    assert len(selection.table) == certain + 1
    assert selection.chance(10**9) == 1
    assert selection.chance(0) == 0
    if delta == "1e-6":
        assert selection.chance(25) < Fraction(1, 2) <= selection.chance(26)


def test_closed_form() -> None:
    """π(n) = δ·(e^(nε) − 1)/(e^ε − 1) up to n₁, and 1 − e^(−mε)·… beyond."""
    for epsilon, delta in ((1.0, 1e-5), (0.3, 1e-8), (2.0, 1e-3)):
        selection = PartitionSelection(Fraction(str(epsilon)), Fraction(str(delta)))
        e = math.exp(epsilon)
        n1 = 1 + math.floor(math.log((e + 2 * delta - 1) / ((e + 1) * delta)) / epsilon)
        middle = (math.exp(n1 * epsilon) - 1) / (e - 1) * delta
        for n in range(len(selection.table) - 1):
            if n <= n1:
                value = (math.exp(n * epsilon) - 1) / (e - 1) * delta
            else:
                fade = math.exp(-(n - n1) * epsilon)
                value = (1 - fade) * (1 + delta / (e - 1)) + fade * middle
            assert float(selection.chance(n)) == pytest.approx(value, rel=1e-10, abs=1e-300)


@settings(max_examples=examples(30), deadline=None)
@given(st.fractions(Fraction(1, 20), 120), st.integers(1, 60).map(lambda power: Fraction(2, 3**power)))
def test_the_inequalities_hold_exactly(epsilon: Fraction, delta: Fraction) -> None:
    """All four, with a rational below e^ε that is closer to it than the one used; and next to nothing is given away."""
    below = exp_bounds(epsilon, 400)[0]
    table = [Fraction(value, CERTAIN) for value in PartitionSelection(epsilon, delta).table]
    for here, following in pairwise(table):
        assert here <= following <= below * here + delta
        assert 1 - here <= below * (1 - following) + delta
        assert hockey_stick(shown(here), shown(following), below) <= delta
        best = min(below * here + delta, 1 - (1 - here - delta) / below, ONE)
        assert best - following < Fraction(1, 1 << 100)


@pytest.mark.parametrize("cells", [1, 2, 3])
def test_several_groups_a_person(cells: int) -> None:
    """All groups that one person adds to, jointly: the hockey stick at ε is at most δ, and nearly all of it for three.

    The person may be alone in some of the groups and one of many in the others.
    """
    selection = PartitionSelection(ONE, Fraction(1, 1000), cells)
    limit, worst = exp_above(ONE), Fraction(0)
    for sizes in product((0, 1, 3, 8, 20), repeat=cells):
        first, second = (
            {
                said: math.prod(
                    (shown(selection.chance(size + extra))[one] for size, one in zip(sizes, said, strict=True)),
                    start=ONE,
                )
                for said in product((True, False), repeat=cells)
            }
            for extra in (0, 1)
        )
        worst = max(worst, hockey_stick(first, second, limit))
    assert Fraction(999, 1_000_000) < worst <= Fraction(1, 1000)


@pytest.mark.parametrize("cells", [1, 2, 7, 100, 10**6])
@pytest.mark.parametrize("delta", ["1e-5", "0.3", "1e-12", "0.999", "1e-30"])
def test_shares_of_delta(cells: int, delta: str) -> None:
    """(1 − d)^cells ≥ 1 − δ exactly; and d is the largest such multiple of 2^−192, or close to it."""
    share = Fraction(delta_share(Fraction(delta), cells), CERTAIN)
    if cells <= 100:
        assert (1 - share) ** cells >= 1 - Fraction(delta)
        assert (1 - share - Fraction(1, 1 << 180)) ** cells < 1 - Fraction(delta)
    assert share >= Fraction(delta) / cells - Fraction(1, CERTAIN)
    expected = -math.expm1(math.log1p(-float(delta)) / cells)
    assert float(share) == pytest.approx(expected, rel=1e-9)


def test_mutants_are_caught() -> None:
    """A person too many, half the noise, δ not shared, a group that nobody touches: each beyond δ = 1/1000."""
    delta, limit = Fraction(1, 1000), exp_above(ONE)
    right = PartitionSelection(ONE, delta)

    def worst(chance: list[Fraction], steps: int = 1) -> Fraction:
        return max(
            hockey_stick(shown(here), shown(there), limit) for here, there in zip(chance, chance[steps:], strict=False)
        )

    chance = [right.chance(persons) for persons in range(20)]
    assert worst(chance) <= delta
    assert worst([Fraction(0), *chance[2:]]) > delta  # > instead of ≥: a person more is counted
    assert worst([Fraction(0), ONE]) > delta  # every group that exists
    assert worst([PartitionSelection(2 * ONE, delta).chance(persons) for persons in range(20)]) > delta
    assert worst(chance, steps=2) > delta  # sensitivity off by one
    unshared = [PartitionSelection(ONE / 2, delta).chance(persons) for persons in range(2)]
    together = [
        {(a, b): shown(chance)[a] * shown(chance)[b] for a, b in product((True, False), repeat=2)}
        for chance in unshared
    ]
    assert hockey_stick(*together, limit) > delta
    up = [Fraction(math.ceil(value * 2**20), 2**20) for value in chance]  # rounded up instead of down
    assert worst(up) > delta


def test_a_coin_is_tossed_for_every_group() -> None:
    selection = PartitionSelection(ONE, Fraction(1, 10))
    first, second = (selection.table[persons] >> 128 for persons in (1, 2))
    assert first < second
    script = Script(first - 1, second - 1, first + 1, second + 1, (1 << 64) - 1, (1 << 128) - 1)
    assert selection.release([1, 2, 1, 2, 10**6], script) == [True, True, False, False, True]


def test_draws_fit() -> None:
    """40,000 groups of 11 persons (p < 1e-6 fails); ε = .9 for 1 is found with probability above .99, and is."""
    selection, mutant = PartitionSelection(ONE, Fraction("1e-5")), PartitionSelection(Fraction(9, 10), Fraction("1e-5"))
    expected = shown(selection.chance(11))
    assert goodness(selection.release([11] * 40_000), expected) > SMALLEST
    assert power(expected, shown(mutant.chance(11)), 40_000) > 0.99
    assert goodness(mutant.release([11] * 40_000, SeededWords(6)), expected) < SMALLEST


def test_small_and_large_prices() -> None:
    assert len(chances(Fraction(1, 500), CERTAIN >> 20)) > 5000
    assert PartitionSelection(Fraction(10**6), Fraction(1, 10)).chance(2) > 1 - Fraction(1, 1 << 140)
    with pytest.raises(ValueError, match="epsilon is too small"):
        chances.__wrapped__(Fraction(1, 10**9), CERTAIN >> 100)
    with pytest.raises(ValueError, match="delta is too small"):
        _ = PartitionSelection(ONE, Fraction(1, 10**60)).table


def test_parameters_and_loss() -> None:
    selection = PartitionSelection(ONE, Fraction(1, 1000), 3)
    assert selection.loss() == accounting.Approximate(ONE, Fraction(1, 1000))
    assert "half the time" in selection.describe()
    with pytest.raises(ValueError, match="at least one person"):
        selection.release([1, 0])
    for bad in ((1.0, ONE / 2, 1), (ONE, ONE, 1), (ONE, Fraction(0), 1), (ONE, 1e-5, 1), (ONE, ONE / 2, 0)):
        with pytest.raises(ValueError, match=r"epsilon|delta|cells"):
            PartitionSelection(*bad)
