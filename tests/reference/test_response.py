"""Randomised response: its channel, over all words, its estimate and variance, and draws."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from discreet import accounting
from discreet.reference.response import RandomisedResponse, randomised_response, two_coins
from random_words import Script, SeededWords, every_outcome
from textbook_tools import SMALLEST, exp_above, goodness, hockey_stick, power, ratio

KIND = "exact"

ONE = Fraction(1)
SMALL = RandomisedResponse(7, 3, 4, 4, ONE)  # 7 + 3·3 = 16 cases; ln(7/3) < 1


def rows(response: RandomisedResponse) -> list[dict]:
    return [dict(enumerate(row)) for row in response.channel()]


def test_the_two_coins_of_the_textbook() -> None:
    """Truth in 3 of 4 cases, ratio exactly 3, over all four tosses; P(yes) = 1/4 + p/2; p̂ = 2·share − 1/2."""
    coins = two_coins()
    no, yes = rows(coins)
    assert (no, yes) == ({0: Fraction(3, 4), 1: Fraction(1, 4)}, {0: Fraction(1, 4), 1: Fraction(3, 4)})
    assert ratio(no, yes) == 3
    assert 0 < exp_above(coins.loss().epsilon) - 3 < Fraction(1, 10**28)
    assert hockey_stick(no, yes, Fraction(3)) == 0
    assert every_outcome(lambda tape: coins.release([1], tape)[0]) == yes
    for said in range(11):
        assert coins.estimate([10 - said, said])[1] == 10 * (2 * Fraction(said, 10) - Fraction(1, 2))


@pytest.mark.parametrize("response", [SMALL, two_coins(), RandomisedResponse(6, 1, 3, 3, 2 * ONE)])
def test_all_words_give_the_channel(response: RandomisedResponse) -> None:
    for answer, row in enumerate(rows(response)):
        assert every_outcome(lambda tape, answer=answer: response.release([answer], tape)[0]) == row
    pairs = every_outcome(lambda tape: tuple(response.release([0, 1], tape)))
    first, second = rows(response)[:2]
    assert pairs == {(a, b): first[a] * second[b] for a in first for b in second}


@pytest.mark.parametrize("epsilon", [Fraction(1, 1000), Fraction(1, 2), ONE, Fraction(3), Fraction(20), Fraction(60)])
@pytest.mark.parametrize("choices", [2, 3, 100])
def test_the_loss_is_at_most_epsilon_and_close_to_it(epsilon: Fraction, choices: int) -> None:
    response = randomised_response(epsilon, choices)
    assert Fraction(response.truth, response.other) <= exp_above(epsilon) / (1 + Fraction(1, 1 << 100))
    assert response.truth + (choices - 1) * response.other == 1 << 64
    if epsilon <= 20:
        assert math.log(response.truth / response.other) == pytest.approx(float(epsilon), abs=1e-7)
        assert response.truth / 2**64 == pytest.approx(math.exp(epsilon) / (math.exp(epsilon) + choices - 1), rel=1e-7)
    if choices <= 3:
        found = rows(response)
        assert all(ratio(a, b) <= exp_above(epsilon) for a, b in product(found, repeat=2))
    assert response.loss() == accounting.Pure(epsilon)


def test_the_word_decides_at_its_edges() -> None:
    response = randomised_response(ONE, 3)
    truth, other, last = response.truth, response.other, (1 << 64) - 1
    for answer, others in ((0, (1, 2)), (1, (0, 2)), (2, (0, 1))):
        words = (0, truth - 1, truth, truth + other - 1, truth + other, last)
        assert response.release([answer] * 6, Script(*words)) == [
            answer,
            answer,
            others[0],
            others[0],
            others[1],
            others[1],
        ]


def off_by_one(response: RandomisedResponse) -> list[dict]:
    """A mutant: ≤ instead of < takes one case more for the truth, and one less for the last other answer."""
    whole = 1 << response.bits
    found = []
    for answer, row in enumerate(rows(response)):
        last = max(place for place in row if place != answer)
        found.append(row | {answer: row[answer] + Fraction(1, whole), last: row[last] - Fraction(1, whole)})
    return found


def test_mutants_are_caught() -> None:
    """In the smallest words, where every case counts: 7 of 16 for ln(7/3)."""
    promise = Fraction(7, 3)
    right = rows(SMALL)
    assert max(ratio(a, b) for a, b in product(right, repeat=2)) == promise
    wrong = off_by_one(SMALL)
    assert max(ratio(a, b) for a, b in product(wrong, repeat=2)) > promise
    assert max(hockey_stick(a, b, promise) for a, b in product(wrong, repeat=2)) > 0
    double = rows(randomised_response(2 * ONE))
    assert ratio(*double) > exp_above(ONE)
    # rounded to nearest instead of up: more than e^ε in half of the cases
    over = 0
    for tenth in range(1, 40):
        exact = randomised_response(Fraction(tenth, 10))
        over += Fraction(exact.truth + 1, exact.other - 1) > exp_above(Fraction(tenth, 10))
    assert over == 39


@pytest.mark.parametrize("response", [SMALL, two_coins()])
def test_the_estimate_is_unbiased_with_the_stated_variance(response: RandomisedResponse) -> None:
    """Over all reports of three persons, weighted by the channel."""
    channel = response.channel()
    for answers in ((0, 0, 0), (0, 1, 1), (1, 0, response.choices - 1)):
        mean, square = [Fraction(0)] * response.choices, [Fraction(0)] * response.choices
        for reports in product(range(response.choices), repeat=3):
            mass = math.prod(channel[a][r] for a, r in zip(answers, reports, strict=True))
            for choice, value in enumerate(response.estimate([reports.count(c) for c in range(response.choices)])):
                mean[choice] += mass * value
                square[choice] += mass * value * value
        for choice in range(response.choices):
            holding = answers.count(choice)
            assert mean[choice] == holding
            assert square[choice] - mean[choice] ** 2 == response.variance(3, holding)


@pytest.mark.parametrize("choices", [2, 5])
def test_draws_fit(choices: int) -> None:
    """50,000 reports of one answer (p < 1e-6 fails); ε of 1.1 for 1 is found with probability above .99, and is."""
    response, mutant = randomised_response(ONE, choices), randomised_response(Fraction(11, 10), choices)
    expected = rows(response)[1]
    assert goodness(response.release([1] * 50_000), expected) > SMALLEST
    assert power(expected, rows(mutant)[1], 50_000) > 0.99
    assert goodness(mutant.release([1] * 50_000, SeededWords(4)), expected) < SMALLEST


def test_a_survey() -> None:
    """100,000 persons, 30 % yes: the estimate lies within seven standard deviations (probability above 1 − 10^−11)."""
    for response in (two_coins(), randomised_response(ONE)):
        reports = response.release([1] * 30_000 + [0] * 70_000)
        seen = np.bincount(reports, minlength=2).tolist()
        error = float(response.estimate(seen)[1] - 30_000)
        assert abs(error) < 7 * math.sqrt(response.variance(100_000, 30_000))


def test_bad_arguments() -> None:
    assert "0.75" in two_coins().describe()
    assert two_coins().release([]) == []
    for answers in ([2], [-1], [True]):
        with pytest.raises(ValueError, match="numbered"):
            two_coins().release(answers)
    with pytest.raises(ValueError, match="one total"):
        two_coins().estimate([1, 2, 3])
    for fields in ((3, 1, 2, 3), (4, 0, 2, 2), (2, 2, 2, 2), (1, 3, 2, 2), (4, 0, 1, 2), (3, 1, 2, 65)):
        with pytest.raises(ValueError, match=r"cases|choices|likelier"):
            RandomisedResponse(*fields, ONE)
    for epsilon, choices in ((Fraction(0), 2), (ONE, 1)):
        with pytest.raises(ValueError, match="above 0"):
            randomised_response(epsilon, choices)
    with pytest.raises(ValueError, match="likelier"):
        randomised_response(Fraction(1, 10**30), 3)
