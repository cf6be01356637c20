"""What the pages say of draws, with fixed sample sizes: a right program fails one of these once in a million runs."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from snippets import page

from discreet.cli.demo import unpacked
from discreet.mechanisms import AboveThreshold, NoisyMax
from discreet.noise import discrete_laplace
from discreet.reference.response import two_coins
from kinds import some
from theory_tools import SMALLEST

KIND = "exact"


def test_all_counts_of_names_stay_within_twelve() -> None:
    """1,000 releases of ten thousand counts: 96.7 % within ±12, as computed, and so at least 95 %.

    Power: noise a tenth wider keeps within ±12 in 90.0 % only, which is found with more than 99.99 %.
    """
    code = page("names", "inside")
    assert code.width == 12 == math.floor(code.bound)
    truth = np.array(code.exact)
    within = sum(np.abs(np.array(code.mechanism.release(code.exact)) - truth).max() <= 12 for _ in range(1_000))
    assert stats.binomtest(int(within), 1_000, code.inside(12)).pvalue > SMALLEST
    wider = code.inside(12, q=math.exp(-1 / 1.1))
    assert code.inside(12) > 0.95 > wider


def test_the_histogram_of_the_largest_error_is_the_exact_one() -> None:
    """2,000 largest errors of ten thousand: a chi-square test. Power: noise a twentieth wider is always found."""
    code = page("names", "inside")
    largest = np.abs(discrete_laplace(1, (2_000, 10_000))).max(axis=1)
    edges = [8, 9, 10, 11, 12, 13]
    cumulated = [0.0, *(code.inside(edge) for edge in edges), 1.0]
    observed = np.histogram(largest, [-0.5, *(edge + 0.5 for edge in edges), 1e9])[0]
    assert stats.chisquare(observed, 2_000 * np.diff(cumulated)).pvalue > SMALLEST


def test_the_most_common_condition_wins_as_often_as_computed() -> None:
    """4,000 winners at ε = 0.1 among 187 conditions: 88 % are the first. Power: ε = 0.08 gives 82 %, always found."""
    code = page("conditions", "winning")
    seen = Counter(NoisyMax(Fraction(1, 10)).release(code.counts) for _ in range(4_000))
    chance = code.winning(code.counts, 0.1)
    likely = [place for place in range(len(chance)) if chance[place] > 0.01]
    observed = [*(seen[place] for place in likely), 4_000 - sum(seen[place] for place in likely)]
    means = [*(4_000 * chance[place] for place in likely), 4_000 * (1 - chance[likely].sum())]
    assert stats.chisquare(observed, means).pvalue > SMALLEST


def test_report_noisy_max_at_epsilon_one_finds_the_most_common_condition() -> None:
    """What the page's sample shows happens all but always, so the snippet fails once in ten million runs."""
    code = page("conditions", "winning")
    assert 1 - code.winning(code.counts, 1.0).max() < 1e-7


def test_two_coins_say_yes_in_a_quarter_and_half_the_share() -> None:
    """200,000 reports of which 30 % hold yes: 1/4 + p/2 = 40 %. Power: 39 % is found with more than 99.9 %."""
    reports = two_coins().release([1] * 60_000 + [0] * 140_000)
    assert stats.binomtest(sum(reports), 200_000, 0.4).pvalue > SMALLEST


@pytest.mark.parametrize("monotone", some([False, True], pytest.mark.power))
def test_above_threshold_is_as_accurate_as_computed(monotone: bool) -> None:
    """300 of the hardest runs: as many right as computed, and at least 95 %, at about half of Theorem 3.24's α."""
    code = page("threshold", "mechanism")
    mechanism = AboveThreshold(threshold=0, epsilon=Fraction(1), monotone=monotone)
    width = math.ceil(mechanism.half_width(0.95, 100))
    assert width < 0.6 * 8 * (math.log(100) + math.log(2 / 0.05))
    answers = [-width] * 99 + [width]
    right = sum(mechanism.release(answers) == [False] * 99 + [True] for _ in range(300))
    exact = float(code.replies(mechanism, answers)[99])
    assert exact >= 0.95
    assert stats.binomtest(right, 300, exact).pvalue > SMALLEST


def test_low_bits_betray_floating_point_and_not_the_lattice() -> None:
    """An attacker with 40,000 releases, confident to one in a million, proves more than ε = 5 against naive noise."""
    code = page("floating-point", "low_bits")
    hits, misses = (code.betrayed(code.naive(exact, 1, 40_000)) for exact in (0, 1))
    assert code.epsilon_at_least(hits, misses, 40_000, level=SMALLEST) > 5
    hits, misses = (code.low_bits(exact, 40_000)[0] for exact in (0, 1))
    assert code.epsilon_at_least(hits, misses, 40_000, level=SMALLEST) < 1


def test_chernoffs_bound_is_beyond_the_exact_one() -> None:
    """The page's bounds on a probability are no narrower than Clopper and Pearson's, and the attack needs no luck."""
    bound = page("floating-point", "epsilon_at_least").bound
    for count in (0, 1, 30, 1_848, 20_000):
        exact = stats.beta.ppf(0.0005, count, 20_001 - count) if count else 0.0
        assert bound(count, 20_000, 0.0005, upper=False) <= exact + 1e-12
        exact = stats.beta.ppf(0.9995, count + 1, 20_000 - count) if count < 20_000 else 1.0
        assert bound(count, 20_000, 0.0005, upper=True) >= exact - 1e-12


def test_an_attacker_is_right_as_often_as_the_odds_allow() -> None:
    """400,000 guesses from one noisy count at ε = 1. Power: one percent more is always found."""
    out, in_ = 100 + discrete_laplace(1, 200_000), 101 + discrete_laplace(1, 200_000)
    right = int((out <= 100).sum() + (in_ >= 101).sum())
    assert stats.binomtest(right, 400_000, page("odds", "belief").belief(1)).pvalue > SMALLEST


def test_a_wild_function_stays_within_its_range(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block's result is clamped, so that one person moves the sum by at most the range, whatever the function is.

    At ε = 100 the noise is below one range but for a probability of e^−100.
    """
    unpacked(tmp_path)  # as `discreet demo` leaves it
    monkeypatch.chdir(tmp_path)
    code = page("sampling", "sample_and_aggregate")
    for blocks in (1, 7):
        for size in (0, 50, 51):
            found = code.sample_and_aggregate([1] * size, wild, blocks, 17, 90, Fraction(100))
            assert 17 - 73 / blocks <= found <= 90 + 73 / blocks


def wild(part: list[int]) -> int:
    return 10**9 if len(part) % 2 else -(10**9)
