"""Report noisy max: its loss in closed form, its decision over all noise, what must not be released, and draws.

q = e^(−rate) is a fraction here, so that everything is exact: a loss of `rate` is a probability ratio of 1/q.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from itertools import permutations, product

import pytest

from discreet import accounting
from discreet.trusted.ring_b import noisy_max
from discreet.trusted.ring_b.noisy_max import NoisyMax, winner
from kinds import some
from random_words import SeededWords
from textbook_tools import (
    SMALLEST,
    averaged,
    changes,
    geometric,
    goodness,
    lead,
    lead_place,
    moved,
    permute_and_flip,
    played,
    power,
    ratio,
    surely,
    two_sided,
)

KIND = "exact"

ONE = Fraction(1)
THIRD = Fraction(1, 3)
GAPS = 7  # with counts below 4, larger gaps repeat the ratio of this one: each is q times the one before


def neighbours(size: int, reach: int = 4) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """All counts up to a common shift, and what they become when one person is added."""
    return [
        (counts, moved(counts, change))
        for counts in product(range(reach), repeat=size)
        if min(counts) == 0
        for change in changes(size, 0, 1)
    ]


def worst(of: Callable[[tuple[int, ...]], dict], size: int) -> Fraction | float:
    find = cache(of)
    return max(ratio(find(first), find(second)) for first, second in neighbours(size))


@pytest.mark.parametrize("q", [THIRD, Fraction(9, 10), Fraction(1, 50)])
@pytest.mark.parametrize("size", some([2, 3], pytest.mark.power))
def test_place_and_gap_lose_exactly_the_rate(size: int, q: Fraction) -> None:
    """For every order of ties, not only on average."""
    for keys in permutations(range(size)):
        assert worst(lambda counts, keys=keys: lead(counts, keys, q, GAPS), size) == 1 / q
        assert worst(lambda counts, keys=keys: lead_place(counts, keys, q), size) == 1 / q


def test_four_counts() -> None:
    pairs = neighbours(4, reach=3)
    find = cache(lambda counts: lead(counts, (2, 0, 3, 1), Fraction(1, 2), 5))
    assert max(ratio(find(first), find(second)) for first, second in pairs) == 2


def test_larger_gaps_repeat_the_ratio() -> None:
    for counts in product(range(4), repeat=3):
        found = lead(counts, (0, 2, 1), THIRD, 12)
        for place in range(3):
            for gap in range(5, 11):
                assert found[place, gap + 1] == found[place, gap] / 3


@pytest.mark.parametrize("counts", [(0, 0), (2, 0), (0, 1, 1), (2, 0, 1), (0, 0, 0)])
def test_the_closed_form_is_what_the_decision_does(counts: tuple[int, ...]) -> None:
    """All noise vectors up to 13 on each count: the closed form, but for the mass of what is left out."""
    noise = [geometric(THIRD, 13)] * len(counts)
    for keys in permutations(range(len(counts))):
        found = played(lambda drawn, keys=keys: winner(moved(counts, drawn), keys), noise)
        missing = 1 - sum(found.values())
        assert missing < Fraction(1, 10**6)
        expected = lead(counts, keys, THIRD, 12)
        assert all(0 <= mass - found.get(outcome, 0) <= missing for outcome, mass in expected.items())
        places = lead_place(counts, keys, THIRD)
        assert sum(places.values()) == 1
        for place, mass in places.items():
            assert 0 <= mass - sum(part for outcome, part in found.items() if outcome[0] == place) <= missing


@pytest.mark.parametrize("size", some([2, 3, 4], pytest.mark.power, quick=2))
def test_the_place_is_that_of_permute_and_flip(size: int) -> None:
    """With ties broken in random order, to the last digit."""
    for counts in product(range(4 if size < 4 else 3), repeat=size):
        found = averaged(lambda keys, counts=counts: lead_place(counts, keys, THIRD), size)
        assert found == permute_and_flip([THIRD ** (max(counts) - count) for count in counts])


def test_the_gap_is_how_far_the_winner_can_fall() -> None:
    for noisy in product(range(4), repeat=3):
        for keys in permutations(range(3)):
            place, gap = winner(noisy, keys)
            assert place == max(range(3), key=lambda j, noisy=noisy, keys=keys: (noisy[j], keys[j]))
            for fall in range(gap + 2):
                lower = [value - fall * (j == place) for j, value in enumerate(noisy)]
                assert (winner(lower, keys)[0] == place) == (fall <= gap)


def beyond(decide: Callable[[Sequence[int]], object], noise: dict, pairs: list) -> Fraction:
    """A probability ratio that a decision surely exceeds on some of the pairs."""
    return max(
        surely(*(played(lambda drawn, c=counts: decide(moved(c, drawn)), [noise] * len(counts)) for counts in pair))
        for pair in pairs
    )


def plain_difference(noisy: Sequence[int]) -> tuple[int, int]:
    """A mutant: the gap as the difference, so that a tie counts as 0 whoever comes first in it."""
    place, _ = winner(noisy, range(len(noisy)))
    return place, sorted(noisy)[-1] - sorted(noisy)[-2]


def with_count(noisy: Sequence[int]) -> tuple[int, int]:
    """A mutant: the winner's noisy count given away with its place."""
    place, _ = winner(noisy, range(len(noisy)))
    return place, noisy[place]


def gap_and_count(noisy: Sequence[int]) -> tuple[int, int, int]:
    return (*winner(noisy, range(len(noisy))), max(noisy))


def right(noisy: Sequence[int]) -> tuple[int, int]:
    return winner(noisy, range(len(noisy)))


def test_mutants_are_caught() -> None:
    """Played exactly. Each promise of a loss of `rate` is surely broken, most of them by a factor near 1/q again."""
    pairs = [((0, 1, 4), (1, 1, 4)), ((0, 1, 4), (1, 2, 4)), ((0, 4, 1), (1, 4, 1)), ((1, 0, 0), (1, 1, 1))]
    noise = geometric(THIRD, 13)
    assert beyond(right, noise, pairs) <= 3
    assert beyond(right, geometric(THIRD**2, 9), pairs) > 3  # noise at half
    assert beyond(right, noise, [((0, 4), (2, 4))]) > 3  # sensitivity off by one
    assert beyond(right, noise, [((0, 4, 3), (1, 3, 2))]) > 3  # counts that are not monotone
    assert beyond(with_count, noise, pairs) > 100  # one-sided noise: no finite loss, up to what was left out


def test_a_tie_shown_as_a_gap_of_0_costs_more() -> None:
    """Three counts, ties to the last: nearly twice the rate, (1/q)² = 400 where 20 was promised."""
    noise, pairs = (
        geometric(Fraction(1, 20), 8),
        [((0, 0, 0), (1, 0, 0)), ((0, 0, 1), (1, 0, 1)), ((0, 0, 0), (0, 1, 1))],
    )
    pairs += [((0, 1, 0), (0, 1, 1)), ((1, 0, 0), (1, 0, 1)), ((1, 1, 0), (1, 1, 1)), ((0, 1, 1), (0, 1, 2))]
    assert beyond(plain_difference, noise, pairs) > 200
    assert beyond(right, noise, pairs) <= 20


@pytest.mark.parametrize("size", [2, 3])
def test_the_count_of_the_winner_costs_as_often_as_there_are_counts(size: int) -> None:
    """Discrete Laplace noise, all counts up by one: at −4 the ratio is q^−size (to a thousandth): loss 2 for two."""
    noise = two_sided(THIRD, 14 if size == 2 else 10)
    pair = (0,) * size, (1,) * size
    first, second = (played(lambda drawn, c=counts: with_count(moved(c, drawn)), [noise] * size) for counts in pair)
    assert float(first[0, -2] / second[0, -2]) == pytest.approx(3**size, rel=1e-3)
    assert surely(first, second) > Fraction(99, 100) * 3**size
    found = [played(lambda drawn, c=counts: gap_and_count(moved(c, drawn)), [noise] * size) for counts in pair]
    assert surely(*found) > 3


def test_the_loss_is_one_at_epsilon_one() -> None:
    """q = e^(−1) to 16 digits: place and gap lose 1, with the winner's count 2."""
    q = Fraction(math.exp(-1))
    assert math.log(worst(lambda counts: lead(counts, (0, 1, 2), q, GAPS), 3)) == pytest.approx(1, abs=1e-12)
    noise = two_sided(q, 30)
    first, second = (
        played(lambda drawn, c=counts: with_count(moved(c, drawn)), [noise] * 2) for counts in ((0, 0), (1, 1))
    )
    assert math.log(first[0, -5] / second[0, -5]) == pytest.approx(2, abs=1e-6)


def capped(outcome: tuple[int, int]) -> tuple[int, int]:
    return outcome[0], min(outcome[1], 5)


def law(counts: Sequence[int], rate: float) -> dict:
    """Places and gaps, 5 and more as one."""
    found: dict = {}
    exact = averaged(lambda keys: lead(counts, keys, Fraction(math.exp(-rate)), 30), len(counts))
    for outcome, mass in exact.items():
        found[capped(outcome)] = found.get(capped(outcome), Fraction(0)) + mass
    return found


@pytest.mark.parametrize(
    ("mechanism", "rate"),
    some([(NoisyMax(ONE), 1), (NoisyMax(2 * ONE, monotone=False), 1), (NoisyMax(ONE, 2), 0.5)], pytest.mark.power),
)
def test_draws_fit(mechanism: NoisyMax, rate: float) -> None:
    """10,000 releases with their gaps (p < 1e-6 fails); noise at .8 is found with probability above .99, and is."""
    counts = (2, 0, 3)
    expected = law(counts, rate)
    assert goodness([capped(mechanism.release_with_gap(counts)) for _ in range(10_000)], expected) > SMALLEST
    mutant = NoisyMax(mechanism.epsilon * 5 / 4, mechanism.sensitivity, mechanism.monotone)
    assert power(expected, law(counts, rate * 1.25), 10_000) > 0.99
    words = SeededWords(2)
    assert goodness([capped(mutant.release_with_gap(counts, words)) for _ in range(10_000)], expected) < SMALLEST


def test_places_fit() -> None:
    """10,000 releases without the gap, equal counts among them: ties favour nobody."""
    counts = (3, 1, 3, 0)
    expected = permute_and_flip([Fraction(math.exp(count - 3)) for count in counts])
    mechanism = NoisyMax(ONE)
    assert goodness([mechanism.release(counts) for _ in range(10_000)], expected) > SMALLEST


def test_the_release_decides_by_noisy_counts_and_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    class Scripted:
        def __init__(self, *values: int) -> None:
            self.values = values

        def tolist(self) -> list[int]:
            return list(self.values)

    scales: list[Fraction] = []
    monkeypatch.setattr(noisy_max, "order", lambda _words, _size: Scripted(7, 9, 8))
    monkeypatch.setattr(
        noisy_max, "geometric", lambda scale, _size, _words: (scales.append(scale), Scripted(2, 1, 1))[1]
    )
    assert NoisyMax(ONE / 2, 3).release_with_gap([4, 5, 5]) == (1, 0)  # 6, 6, 6: the highest key
    assert NoisyMax(ONE / 2, 3, monotone=False).release_with_gap([5, 5, 5]) == (
        0,
        0,
    )  # 7, 6, 6, and 6 is enough to lose
    assert NoisyMax(ONE).release_with_gap([0, 9, 4]) == (1, 5)
    assert scales == [6, 12, 1]


def test_a_hundred_thousand_counts() -> None:
    """Nobody wins from further below than half_width, with all but 10^−9; the winner leads by less than that."""
    mechanism = NoisyMax(ONE)
    place, gap = mechanism.release_with_gap(list(range(100_000)))
    assert 99_999 - place <= mechanism.half_width(1 - 1e-9, 100_000)
    assert 0 <= gap <= mechanism.half_width(1 - 1e-9, 100_000)


def test_large_counts_and_large_noise_are_whole() -> None:
    place, gap = NoisyMax(Fraction(1, 10**25)).release_with_gap([10**40, 0])
    assert place == 0
    assert isinstance(gap, int)
    assert NoisyMax(ONE).release([5]) == 0


def test_bad_arguments() -> None:
    assert NoisyMax(ONE).loss() == accounting.Pure(ONE)
    with pytest.raises(ValueError, match="no candidates"):
        NoisyMax(ONE).release([])
    with pytest.raises(ValueError, match="two candidates"):
        NoisyMax(ONE).release_with_gap([1])
    with pytest.raises(ValueError, match="must be integers"):
        NoisyMax(ONE).release([Fraction(1, 2), 1])
    with pytest.raises(ValueError, match="integers or fractions"):
        NoisyMax(ONE).release([1.0, 2.0])
    with pytest.raises(ValueError, match="whole number of persons"):
        NoisyMax(ONE, Fraction(1, 2))
