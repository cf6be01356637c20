"""Weights, coins, places, orders and geometric noise: against closed forms, over all bit strings, and drawn."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from itertools import accumulate, pairwise, permutations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.trusted.ring_a.bits import SystemWords
from discreet.trusted.ring_a.inversion import BitSizes, Digits
from discreet.trusted.ring_a.sampler import sample
from discreet.trusted.ring_b import choice
from discreet.trusted.ring_b.choice import CERTAIN, coins, decays, order, weighted
from discreet.trusted.ring_b.geometric import build, geometric
from kinds import examples
from random_words import Script, SeededWords, every_outcome
from textbook_tools import SMALLEST, goodness, power
from textbook_tools import geometric as closed

KIND = "exact"


def real(value: Fraction) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator


@settings(max_examples=examples(200), deadline=None)
@given(st.fractions(Fraction(1, 10**12), 50), st.fractions(0, 10**6))
def test_weights_are_below_the_truth_by_less_than_two(rate: Fraction, distance: Fraction) -> None:
    (weight,) = decays(rate, [distance])
    with mpmath.workdps(120):
        truth = mpmath.exp(-real(rate * distance)) * mpmath.mpf(2) ** 192
        assert 0 <= truth - weight < 2


@pytest.mark.parametrize("bit", [-230, -224, -200, -148, -100, -76, -40, -4, 0, 3, 6])
def test_weights_at_every_digit(bit: int) -> None:
    """Exponents with a single bit, and with all bits below it: each table, the series and its edges."""
    for exponent in (Fraction(2) ** bit, Fraction(2) ** bit - Fraction(1, 1 << 240)):
        (weight,) = decays(Fraction(1), [exponent])
        with mpmath.workdps(150):
            assert 0 <= mpmath.exp(-real(exponent)) * mpmath.mpf(2) ** 192 - weight < 2


def test_the_best_is_certain_and_the_hopeless_have_no_weight() -> None:
    assert decays(Fraction(3, 7), [0, Fraction(0)]) == [CERTAIN, CERTAIN]
    assert decays(Fraction(1), [134, 256, 10**80]) == [0, 0, 0]
    assert decays(Fraction(1), [133])[0] == 1
    assert decays(Fraction(1, 10**60), [1])[0] in (CERTAIN - 1, CERTAIN - 2, int(CERTAIN * (1 - Fraction(1, 10**60))))


def test_nothing_private_is_remembered() -> None:
    assert [name for name in vars(choice) if hasattr(getattr(choice, name), "cache_info")] == ["_tables"]


@pytest.mark.parametrize("sizes", [BitSizes(1, 1, 4), BitSizes(1, 2, 4), BitSizes(1, 4, 4)])
@pytest.mark.parametrize("chances", [(0,), (16,), (15,), (8,), (5, 11), (16, 0), (3, 4)])
def test_coins_show_heads_in_exactly_their_share_of_all_bit_strings(chances: tuple[int, ...], sizes: BitSizes) -> None:
    found = every_outcome(lambda tape: tuple(coins(tape, chances, sizes).tolist()))
    for heads, mass in found.items():
        shares = [chance if head else 16 - chance for chance, head in zip(chances, heads, strict=True)]
        assert mass == Fraction(int(np.prod(shares)), 16 ** len(chances))


def test_the_remaining_bits_decide_where_the_first_agree() -> None:
    chance = (0xDEADBEEF << 128) | 12345
    top, low = chance >> 128, chance & ((1 << 128) - 1)
    assert not coins(Script(top, low), [chance])[0]
    assert coins(Script(top, low - 1), [chance])[0]
    assert coins(Script(top - 1), [chance])[0]
    assert not coins(Script(top + 1), [chance])[0]
    last = (1 << 64) - 1
    assert coins(Script(last, (1 << 128) - 1), [CERTAIN])[0]
    assert not coins(Script(0, 0), [0])[0]
    assert not coins(Script(last, (1 << 128) - 1), [CERTAIN - 1])[0]


@pytest.mark.parametrize("chance", [-1, CERTAIN + 1])
def test_a_chance_lies_between_0_and_1(chance: int) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        coins(SystemWords(), [chance])


@pytest.mark.parametrize("weights", [(1,), (3, 1, 4, 1, 5), (0, 7, 0), (64, 64), (0, 0, 1), (100, 27)])
def test_places_get_their_weight_up_to_rounding(weights: tuple[int, ...]) -> None:
    """Over all 2^7 bit strings: within Σ/2^bits of the exact distribution in total variation."""
    found = every_outcome(lambda tape: weighted(tape, weights, 7))
    total = sum(weights)
    for place, (low, high) in enumerate(pairwise([0, *accumulate(weights)])):
        between = sum(low <= u * total >> 7 < high for u in range(128))
        assert found.get(place, 0) == Fraction(between, 128)
    distance = sum(abs(found.get(place, 0) - Fraction(weight, total)) for place, weight in enumerate(weights)) / 2
    assert distance < Fraction(total, 128)
    if total in (1, 64, 128):
        assert distance == 0


def test_a_place_needs_a_weight() -> None:
    with pytest.raises(ValueError, match="above 0"):
        weighted(SystemWords(), [0, 0])


def test_orders_are_uniform_and_drawn_again_on_a_tie() -> None:
    """12,000 orders of three (p < 1e-6 fails): an order that is off by a quarter is found with probability .99."""
    words = SystemWords()
    drawn = [tuple(np.argsort(order(words, 3)).tolist()) for _ in range(12_000)]
    uniform = {keys: Fraction(1, 6) for keys in permutations(range(3))}
    assert goodness(drawn, uniform) > SMALLEST
    wrong = uniform | {(0, 1, 2): Fraction(5, 24), (2, 1, 0): Fraction(3, 24)}
    assert power(uniform, wrong, 12_000) > 0.99
    assert order(Script(4, 4, 9, 2), 2).tolist() == [9, 2]


def masses(digits: Digits) -> dict[int, Fraction]:
    """The distribution of the sum of the digits, by exact convolution."""
    found = {digits.low: Fraction(1)}
    for place, table in enumerate(digits.tables):
        whole = 1 << table.sizes.full
        following: dict[int, Fraction] = defaultdict(Fraction)
        for outcome, (low, high) in enumerate(pairwise([0, *table.cuts, whole])):
            for value, mass in found.items():
                following[value + (outcome << digits.bits * place)] += mass * Fraction(high - low, whole)
        found = dict(following)
    return found


@pytest.mark.parametrize("scale", [Fraction(1, 7), Fraction(1), Fraction(10)])
def test_one_table_holds_the_geometric_distribution(scale: Fraction) -> None:
    (table,) = build(scale).tables
    with mpmath.workdps(80):
        q = mpmath.exp(-1 / real(scale))
        for place, cut in enumerate(table.cuts):
            assert abs(cut - (1 - q ** (place + 1)) * mpmath.mpf(2) ** 192) < 2


@pytest.mark.parametrize(("scale", "digit"), [(Fraction(3), 2), (Fraction(10), 3), (Fraction(7, 3), 1)])
def test_digits_add_up_to_a_geometric_value(scale: Fraction, digit: int) -> None:
    """Three or more digits put together, with what they leave out: within 2^−175 of (1 − q)·q^g."""
    digits = build(scale, digit=digit, widest=16)
    assert len(digits.tables) >= 3
    found = masses(digits)
    with mpmath.workdps(80):
        q = mpmath.exp(-1 / real(scale))
        distance = sum(abs(real(mass) - (1 - q) * q**value) for value, mass in found.items()) + q ** (max(found) + 1)
        assert distance / 2 < mpmath.mpf(2) ** -175
    assert sorted(found) == list(range(len(found)))


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(3, 2)])
def test_geometric_draws_over_all_bit_strings(scale: Fraction) -> None:
    digits = build(scale, sizes=BitSizes(2, 3, 5), digit=1, tail=4, widest=2)
    found = every_outcome(lambda tape: int(digits.draw(tape, 1)[0]))
    assert found == {value: mass for value, mass in masses(digits).items() if mass}


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(2), Fraction(1000), Fraction(10**6)], ids=str)
def test_geometric_draws_fit(scale: Fraction) -> None:
    """200,000 draws in 40 classes (p < 1e-6 fails); a scale wrong by 5 % is caught: see the next lines."""

    def classes(values: np.ndarray) -> list[int]:
        return np.minimum(values // width, 40).tolist()

    width = max(1, int(scale / 10))
    q = Fraction(np.exp(-float(width / scale)))
    expected = closed(q, 39) | {40: q**40}
    assert goodness(classes(geometric(scale, 200_000)), expected) > SMALLEST
    assert goodness(classes(sample(build(scale * Fraction(95, 100)), 200_000, SeededWords(5))), expected) < SMALLEST


def test_geometric_edges() -> None:
    assert not geometric("0.004", 1000).any()
    huge = geometric("1e20", 2000)
    assert huge.dtype == object
    assert 0.8 < float(huge.mean()) / 1e20 < 1.2  # nine standard deviations
    assert min(Counter(geometric(3, 10_000).tolist())) == 0
