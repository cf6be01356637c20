"""Exponential mechanism, permute-and-flip, top-k: exact distributions of the weights they draw from, and draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from itertools import accumulate, pairwise, permutations, product

import numpy as np
import pytest

from discreet import accounting
from discreet.trusted.ring_b.choice import CERTAIN, decays
from discreet.trusted.ring_b.selection import ExponentialMechanism, PermuteAndFlip, Score, Selection, TopK
from kinds import some
from random_words import Script, SeededWords
from textbook_tools import (
    SMALLEST,
    changes,
    exp_above,
    exp_below,
    flipping_in_order,
    goodness,
    hockey_stick,
    moved,
    normalised,
    permute_and_flip,
    power,
    ratio,
)

KIND = "exact"

ONE = Fraction(1)
Exact = Callable[[Selection, Sequence[Score]], dict]


def weights(mechanism: Selection, scores: Sequence[Score]) -> list[Fraction]:
    """What is drawn from: multiples of 2^−192, exactly."""
    return [Fraction(weight, CERTAIN) for weight in decays(mechanism.rate, [max(scores) - score for score in scores])]


def exponential(mechanism: Selection, scores: Sequence[Score]) -> dict:
    return normalised(weights(mechanism, scores))


def flipping(mechanism: Selection, scores: Sequence[Score]) -> dict:
    return permute_and_flip(weights(mechanism, scores))


def top(mechanism: TopK, scores: Sequence[Score]) -> dict:
    """Ordered lists of k, by peeling."""

    @cache
    def follow(left: tuple[int, ...], k: int) -> dict[tuple[int, ...], Fraction]:
        if k == 0:
            return {(): ONE}
        shares = exponential(mechanism, [scores[place] for place in left])
        found = {}
        for at, mass in shares.items():
            for rest, other in follow((*left[:at], *left[at + 1 :]), k - 1).items():
                found[left[at], *rest] = mass * other
        return found

    return follow(tuple(range(len(scores))), mechanism.k)


def worst(exact: Exact, mechanism: Selection, steps: Sequence[int], reach: int = 4, size: int = 3) -> Fraction | float:
    """The largest ratio between neighbours, over all scores below `reach` and all moves by one of the steps."""
    find = cache(lambda scores: exact(mechanism, scores))
    return max(
        ratio(find(scores), find(moved(scores, change)))
        for scores in product(range(reach), repeat=size)
        if min(scores) == 0
        for change in changes(size, *steps)
    )


@pytest.mark.parametrize(
    ("scores", "monotone", "expected"),
    [
        ([0, 1, 2], False, [0.18632372, 0.30719589, 0.50648039]),
        ([10, 9, 9, 8, 0], False, [0.38644674, 0.2343918, 0.2343918, 0.14216581, 0.00260386]),
        ([0, 0, 0, 5], False, [None, None, None, 0.802404]),
    ],
)
def test_vectors_of_the_exponential_mechanism(scores: list[int], monotone: bool, expected: list[float | None]) -> None:
    found = exponential(ExponentialMechanism(ONE, monotone=monotone), scores)
    for place, value in enumerate(expected):
        assert value is None or float(found[place]) == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([0, 1, 2], [0.14675136, 0.26607697, 0.58717167]),
        ([10, 9, 9, 8, 0], [0.44606848, 0.2156468, 0.2156468, 0.12063279, 0.00200513]),
        ([0, 0, 0, 5], [None, None, None, 0.88347218]),
    ],
)
def test_vectors_of_permute_and_flip(scores: list[int], expected: list[float | None]) -> None:
    found = flipping(PermuteAndFlip(ONE), scores)
    for place, value in enumerate(expected):
        assert value is None or float(found[place]) == pytest.approx(value, abs=5e-9)
    if scores == [0, 0, 0, 5]:
        assert float(5 * (1 - found[3])) == pytest.approx(0.58264, abs=1e-5)  # the expected error


def test_one_of_the_heads_is_the_first_head_of_a_random_order() -> None:
    for chances in product([Fraction(1, 5), Fraction(2, 3), ONE], repeat=3):
        if ONE in chances:
            assert permute_and_flip(chances) == flipping_in_order(chances)
            assert sum(permute_and_flip(chances).values()) == 1


@pytest.mark.parametrize("epsilon", some([ONE, Fraction(5, 2), Fraction(1, 10)], pytest.mark.power))
@pytest.mark.parametrize("sensitivity", [1, 2])
@pytest.mark.parametrize("exact", [exponential, flipping])
def test_the_loss_is_at_most_epsilon(exact: Exact, epsilon: Fraction, sensitivity: int) -> None:
    """Exactly, for the very weights that are drawn from; scores may move both ways, or one way if they are monotone."""
    both = range(-sensitivity, sensitivity + 1)
    assert worst(exact, Selection(epsilon, sensitivity), both) <= exp_above(epsilon)
    for way in (range(sensitivity + 1), range(-sensitivity, 1)):
        assert worst(exact, Selection(epsilon, sensitivity, monotone=True), way) <= exp_above(epsilon)


def test_permute_and_flip_uses_the_whole_price() -> None:
    assert worst(flipping, Selection(ONE), (-1, 0, 1)) > exp_below(ONE) * (1 - Fraction(1, 2**100))
    assert worst(flipping, Selection(ONE, monotone=True), (0, 1)) > exp_below(ONE) * (1 - Fraction(1, 2**100))


@pytest.mark.parametrize("exact", [exponential, flipping])
@pytest.mark.parametrize(
    ("mutant", "steps"),
    [
        (Selection(2 * ONE), (-1, 0, 1)),  # noise at half
        (Selection(Fraction(5, 4)), (-1, 0, 1)),  # noise at 0.8
        (Selection(ONE, monotone=True), (-1, 0, 1)),  # scores that move both ways taken for monotone
        (Selection(ONE, 1), (-2, 0, 2)),  # sensitivity off by one
    ],
)
def test_mutants_are_caught(exact: Exact, mutant: Selection, steps: tuple[int, ...]) -> None:
    """Twelve candidates of which one moves up and the others down show the loss of the exponential mechanism."""
    low, high = min(steps), max(steps)
    first = (0, *[8] * 11)
    second = moved(first, (high, *[low] * 11))
    pair = exact(mutant, first), exact(mutant, second)
    assert ratio(*pair) > exp_above(ONE)
    assert hockey_stick(*pair, exp_above(ONE)) > 0
    right = Selection(ONE, high)
    assert hockey_stick(exact(right, first), exact(right, second), exp_above(ONE)) == 0


def test_the_exponential_mechanism_has_bounded_range_and_permute_and_flip_has_not() -> None:
    """All logarithms of ratios within an interval of length ε: the largest over the smallest ratio is at most e^ε."""

    def spread(exact: Exact) -> Fraction:
        found = Fraction(1)
        for scores in product(range(4), repeat=3):
            for change in changes(3, -1, 0, 1):
                first, second = exact(Selection(ONE), scores), exact(Selection(ONE), moved(scores, change))
                ratios = [first[place] / second[place] for place in first]
                found = max(found, max(ratios) / min(ratios))
        return found

    assert exp_below(ONE) * (1 - Fraction(1, 2**100)) < spread(exponential) <= exp_above(ONE)
    assert spread(flipping) > exp_above(Fraction(11, 10))


def test_permute_and_flip_is_never_worse() -> None:
    for scores in product(range(5), repeat=3):
        better, worse = flipping(Selection(ONE), scores), exponential(Selection(ONE), scores)
        assert sum(better[i] * score for i, score in enumerate(scores)) >= sum(
            worse[i] * score for i, score in enumerate(scores)
        ) * (1 - Fraction(1, 2**100))


def test_fractions_are_scores_too() -> None:
    thirds = [Fraction(1, 3), Fraction(-2, 3), Fraction(5, 6)]
    assert weights(Selection(ONE), thirds) == weights(Selection(ONE / 6), [2, -4, 5])
    assert ExponentialMechanism(ONE, Fraction(1, 3)).rate == Fraction(3, 2)


def test_top_k_peels() -> None:
    """k · ε between neighbours, exactly, and the order statistics of Gumbel noise: w_a/Σ · w_b/(Σ − w_a) …"""
    mechanism = TopK(ONE, k=2)
    found = top(mechanism, (0, 1, 3))
    share = [math.exp(score / 2) for score in (0, 1, 3)]
    for a, b in permutations(range(3), 2):
        assert float(found[a, b]) == pytest.approx(share[a] / sum(share) * share[b] / (sum(share) - share[a]))
    assert sum(found.values()) == 1
    assert worst(top, mechanism, (-1, 0, 1), reach=3) <= exp_above(2)
    assert worst(top, TopK(ONE, monotone=True, k=2), (0, 1), reach=3) <= exp_above(2)
    far = (0, 0, 9, 9, 9, 9), (1, 1, 8, 8, 8, 8)
    assert ratio(top(mechanism, far[0]), top(mechanism, far[1])) > exp_above(Fraction(3, 2))


def test_top_k_with_far_away_leaders() -> None:
    """After the first choice, weights are taken afresh: candidates 10^6 behind still share the second place."""
    drawn = [TopK(ONE, k=2).release([10**6, 0, 1]) for _ in range(200)]
    assert {first for first, _ in drawn} == {0}
    assert {second for _, second in drawn} == {1, 2}  # missed with probability below .63^200


def test_a_release_takes_the_place_its_word_names() -> None:
    """The exponential mechanism at both ends of every place: ⌊U·Σ/2^384⌋ against the sums of the weights."""
    mechanism, scores = ExponentialMechanism(ONE), [10, 9, 9, 8, 0]
    known = decays(mechanism.rate, [10 - score for score in scores])
    ends = [0, *accumulate(known)]
    for place, (low, high) in enumerate(pairwise(ends)):
        first = -(-(low << 384) // ends[-1])
        last = -(-(high << 384) // ends[-1]) - 1
        assert mechanism.release(scores, Script(first)) == place
        assert mechanism.release(scores, Script(last)) == place


def test_permute_and_flip_takes_one_of_the_heads() -> None:
    mechanism, scores = PermuteAndFlip(ONE), [1, 2, 2]
    chance = decays(mechanism.rate, [1])[0] >> 128
    half = 1 << 383
    assert mechanism.release(scores, Script(chance + 1, 5, 9, half - 1)) == 1
    assert mechanism.release(scores, Script(chance + 1, 5, 9, half)) == 2
    assert mechanism.release(scores, Script(chance - 1, 5, 9, 0)) == 0
    assert mechanism.release(scores, Script(chance - 1, 5, 9, half)) == 1


@pytest.mark.parametrize(
    ("mechanism", "exact"),
    some(
        [
            (ExponentialMechanism(ONE), exponential),
            (PermuteAndFlip(ONE), flipping),
            (PermuteAndFlip(ONE, monotone=True), flipping),
            (TopK(ONE, k=2), top),
        ],
        pytest.mark.power,
        quick=2,
    ),
)
def test_draws_fit(mechanism: ExponentialMechanism | PermuteAndFlip | TopK, exact: Exact) -> None:
    """20,000 releases (p < 1e-6 fails); noise at .8 is found with probability above .99, and is with fixed words."""
    scores = (3, 1, 0, 2)
    expected = exact(mechanism, scores)

    def drawn(source: Selection, words: SeededWords | None = None) -> list:
        found = [source.release(scores, words) for _ in range(20_000)]
        return [tuple(one) if isinstance(one, list) else one for one in found]

    assert goodness(drawn(mechanism), expected) > SMALLEST
    extra = {"k": mechanism.k} if isinstance(mechanism, TopK) else {}
    mutant = type(mechanism)(Fraction(5, 4), monotone=mechanism.monotone, **extra)
    assert power(expected, exact(mutant, scores), 20_000) > 0.99
    assert goodness(drawn(mutant, SeededWords(1)), expected) < SMALLEST


@pytest.mark.parametrize("mechanism", [ExponentialMechanism(ONE), PermuteAndFlip(ONE), TopK(ONE, k=2)])
def test_a_hundred_thousand_candidates(mechanism: ExponentialMechanism | PermuteAndFlip | TopK) -> None:
    """Scores 0 to 99,999 at ε = 1: with all but 10^−9, the winners lie within half_width of the best."""
    chosen = mechanism.release(list(range(100_000)))
    for place in chosen if isinstance(chosen, list) else [chosen]:
        assert 99_999 - place <= mechanism.half_width(1 - 1e-9, 100_000) + 1


def test_half_width_holds() -> None:
    """The exact probability of a choice further from the best than half_width, for many equal candidates behind."""
    for exact, kind in ((exponential, ExponentialMechanism), (flipping, PermuteAndFlip)):
        for distance in (5, 10, 20):
            scores = [distance, *[0] * 9]
            miss = float(1 - exact(kind(ONE), scores)[0])
            assert kind(ONE).half_width(1 - miss, 10) >= distance


def test_losses() -> None:
    assert ExponentialMechanism(ONE).loss() == accounting.Pure(ONE)
    assert PermuteAndFlip(ONE / 3).loss() == accounting.Pure(ONE / 3)
    assert TopK(ONE / 3, k=4).loss().pure == Fraction(4, 3)
    assert TopK(ONE / 3, k=4).loss().mu_squared < accounting.Pure(Fraction(4, 3)).mu_squared
    assert "one-shot top-k" in TopK(ONE).describe()


@pytest.mark.parametrize("scores", [[], [1.0], [True], [1, "2"], [float("nan")]])
def test_what_is_no_score(scores: list) -> None:
    for mechanism in (ExponentialMechanism(ONE), PermuteAndFlip(ONE), TopK(ONE)):
        with pytest.raises(ValueError, match=r"candidates|integers or fractions"):
            mechanism.release(scores)


def test_numpy_integers_are_integers() -> None:
    assert ExponentialMechanism(Fraction(10**6)).release(np.array([1, 5, 2])) == 1


@pytest.mark.parametrize("bad", [{"epsilon": 1.0}, {"epsilon": Fraction(0)}, {"sensitivity": 0}, {"sensitivity": 0.5}])
def test_bad_parameters(bad: dict) -> None:
    for kind in (ExponentialMechanism, PermuteAndFlip, TopK):
        with pytest.raises(ValueError, match=r"epsilon|sensitivity|scores"):
            kind(**{"epsilon": ONE, **bad})
    with pytest.raises(ValueError, match="at least 1"):
        TopK(ONE, k=0)
    with pytest.raises(ValueError, match="fewer"):
        TopK(ONE, k=3).release([1, 2])
