"""How times are read: a signal is seen, none is none, and the bound is right. No clock is looked at."""

from __future__ import annotations

from random import Random

import pytest

from discreet.audit.clock import Times, told_apart


def times(seed: int, count: int, slower: float) -> Times:
    """Of two questions; the first takes longer by `slower` of the clock's own deviation."""
    random = Random(seed)
    return [(name, random.gauss(place + slower * (name == "one"), 1)) for _ in range(count) for name, place in BOTH]


BOTH = (("one", 50.0), ("two", 90.0))


def test_a_clock_that_tells_nothing_is_bounded_below_53_percent() -> None:
    """2,000 guesses without a signal are right in half of the cases: the bound lies at .518 + 1.65 deviations of .011,
    above .53 in 14 of 100 runs; with 8,000 in none of a million."""
    guesses = told_apart(times(1, 4_000, 0), times(2, 4_000, 0))
    assert guesses.of == 8_000
    assert guesses.at_most() < 0.53


@pytest.mark.parametrize("slower", [0.5, -0.5])
def test_half_a_deviation_is_seen_in_one_question_of_two(slower: float) -> None:
    """A guess by one threshold is right with .599 for the one question, and .5 for the other."""
    guesses = told_apart(times(1, 4_000, 0), times(2, 4_000, slower))
    assert 0.53 < guesses.success < 0.57


def test_the_threshold_is_not_fitted_on_what_it_guesses() -> None:
    """With one time each and no signal, a threshold that saw its own guesses would be right three times in four."""
    success = [told_apart(times(seed, 2, 0), times(seed + 10**6, 2, 0)).success for seed in range(2_000)]
    assert abs(sum(success) / len(success) - 0.5) < 0.04
