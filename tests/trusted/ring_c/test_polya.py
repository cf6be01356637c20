"""Shares of discrete Laplace noise: identities in rationals, tables against closed forms, all bit strings, draws."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import accumulate, pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from discreet.trusted.ring_a.inversion import Digits, InversionTable
from discreet.trusted.ring_a.sampler import sample
from discreet.trusted.ring_c.polya import Polya, accepted, build, parts_mean, poisson, polya, sampler
from noise_tools import DIGITS, fit, laplace_cdf, real
from random_words import Branch, SeededWords, Tape

KIND = "exact"

Chances = dict[int, mpmath.mpf]


def rising(shares: int, most: int) -> list[Fraction]:
    """Γ(n + r)/(Γ(r)·n!) for n ≤ most, r = 1/shares."""
    r = Fraction(1, shares)
    return list(accumulate(range(1, most + 1), lambda c, n: c * (n - 1 + r) / n, initial=Fraction(1)))


def one_sided(scale: Fraction, shares: int, most: int) -> list[mpmath.mpf]:
    """P(N = n) for n ≤ most."""
    q = mpmath.exp(-1 / real(scale))
    lost = (1 - q) ** (mpmath.mpf(1) / shares)
    return [lost * real(c) * q**n for n, c in enumerate(rising(shares, most))]


def share_pmf(scale: float, shares: int, most: int) -> np.ndarray:
    """P(X = x) for |x| ≤ most, in floating point: N − N′ with both cut where nothing is left."""
    reach = 2 * most
    logs = np.log1p((1 / shares - 1) / np.arange(1, reach + 1)) - 1 / scale
    chances = np.exp(np.concatenate([[0.0], np.cumsum(logs)]) + np.log(-np.expm1(-1 / scale)) / shares)
    both = np.convolve(chances, chances[::-1])
    return both[reach - most : reach + most + 1]


@pytest.mark.parametrize("shares", [1, 2, 3, 5, 8])
def test_shares_add_up_to_a_geometric_value(shares: int) -> None:
    """In rationals: the coefficients of (1 − z)^(−1/k), k times convolved, are all 1, those of a geometric value.

    With the factor (1 − q)·q^n on either side that is the distribution, whatever q.
    """
    one = rising(shares, 40)
    total = [Fraction(1)] + [Fraction(0)] * 40
    for _ in range(shares):
        total = [sum((total[i] * one[n - i] for i in range(n + 1)), Fraction(0)) for n in range(41)]
    assert total == [1] * 41


@pytest.mark.parametrize("shares", [1, 2, 3, 7])
def test_a_poisson_number_of_logarithmic_parts_is_negative_binomial(shares: int) -> None:
    """In rationals: p = exp(r·Σ z^l/l) satisfies n·p_n = r·Σ_l p_(n − l), and so do the coefficients."""
    p = rising(shares, 60)
    assert all(n * p[n] == Fraction(1, shares) * sum(p[:n]) for n in range(1, 61))


def chances(table: InversionTable) -> list[mpmath.mpf]:
    """The outcomes' probabilities, exactly as the thresholds state them."""
    ends = [0, *table.cuts, 1 << table.sizes.full]
    return [mpmath.mpf(high - low) / (1 << table.sizes.full) for low, high in pairwise(ends)]


def sums(digits: Digits) -> Chances:
    found: Chances = {digits.low: mpmath.mpf(1)}
    for place, table in enumerate(digits.tables):
        following: Chances = defaultdict(mpmath.mpf)
        for value, mass in found.items():
            for outcome, chance in enumerate(chances(table)):
                following[value + (outcome << (digits.bits * place))] += mass * chance
        found = following
    return found


def parts(built: Polya) -> Chances:
    """The distribution of an accepted part, composed of what the tables state and the chance to be accepted."""
    below, found = sums(built.below), defaultdict(mpmath.mpf)
    for block, weight in enumerate(chances(built.blocks)):
        for value, mass in below.items():
            u = value & ((1 << block) - 1)
            found[(1 << block) + u] += weight * mass / (1 + mpmath.mpf(u) / (1 << block))
    whole = sum(found.values())
    assert whole >= mpmath.mpf(1) / 2
    return {value: mass / whole for value, mass in found.items()}


@pytest.mark.parametrize(("scale", "shares"), [(Fraction(1, 50), 2), (Fraction(1, 2), 1), (Fraction(3), 2)], ids=str)
def test_tables_hold_the_distribution(scale: Fraction, shares: int) -> None:
    """Parts are logarithmic, their number Poisson, and what they add up to negative binomial: all within 2^−160."""
    near = mpmath.mpf(2) ** -160
    built = build(scale, shares)
    with mpmath.workdps(DIGITS):
        q = mpmath.exp(-1 / real(scale))
        logarithm = -mpmath.log(1 - q)
        found = parts(built)
        assert sum(abs(found[n] - q**n / (n * logarithm)) for n in found) < near
        mean = 2 * logarithm / shares
        number = chances(built.counts.tables[0])
        assert sum(abs(c - mpmath.exp(-mean) * mean**n / mpmath.factorial(n)) for n, c in enumerate(number)) < near
        half, total = mean / 2, [mpmath.exp(-mean / 2)]  # one side gets a Poisson number of half the mean
        for n in range(1, 80):
            total.append(half / n * sum(i * found.get(i, 0) * total[n - i] for i in range(1, n + 1)))
        assert sum(abs(a - b) for a, b in zip(total, one_sided(scale, shares, 79), strict=True)) < near


@settings(max_examples=25, deadline=None)
@given(st.fractions(Fraction(1, 199), 10**60), st.integers(1, 2**16))
def test_the_mean_number_of_parts(scale: Fraction, shares: int) -> None:
    """λ within 2^−250 of itself and one unit of 2^−300; its weights end where nothing is left, with few of them."""
    with mpmath.workdps(400):
        truth = -2 * mpmath.log(-mpmath.expm1(-1 / real(scale))) / shares
        mean = mpmath.mpf(parts_mean(scale, shares, 300)) / 2**300
        assert abs(mean - truth) <= truth * mpmath.mpf(2) ** -250 + mpmath.mpf(2) ** -300
    weights = poisson(parts_mean(scale, shares, 256), 256)
    assert len(weights) < 2**10
    assert weights[-1] << 190 < sum(weights)


@pytest.mark.parametrize("bits", [1, 2, 3])
def test_a_part_is_accepted_with_the_stated_chance(bits: int) -> None:
    """All bit strings of up to 9 tosses, for every u < 2^j: accepted with 1/(1 + u/2^j), but for what is still open."""
    for u in range(1 << bits):
        mass, still = {True: Fraction(0), False: Fraction(0)}, Fraction(0)
        waiting: list[tuple[tuple[int, ...], int]] = [((), 0)]
        while waiting:
            tape, length = waiting.pop()
            if len(tape) > 8 or length > 14:
                still += Fraction(1, 1 << length)
                continue
            try:
                place, mask = np.array([u]), np.array([(1 << bits) - 1])
                mass[bool(accepted(Tape(*tape), place, mask, bits)[0])] += Fraction(1, 1 << length)
            except Branch as branch:
                (more,) = branch.args
                waiting += [((*tape, value), length + more) for value in range(1 << more)]
        truth = 1 / (1 + Fraction(u, 1 << bits))
        assert sum(mass.values()) + still == 1
        assert still < Fraction(1, 8)
        assert mass[True] <= truth <= mass[True] + still
        assert mass[False] <= 1 - truth <= mass[False] + still


def fitted(values: np.ndarray, pmf: np.ndarray) -> float:
    """The p-value of a chi-square test on classes with at least 20 expected values; the rest is one class."""
    most = len(pmf) // 2
    expected = pmf * len(values)
    seen = np.bincount(np.clip(values, -most - 1, most + 1).astype(np.int64) + most + 1, minlength=len(pmf) + 2)[1:-1]
    usual = expected >= 20
    observed = [*seen[usual], len(values) - seen[usual].sum()]
    wanted = [*expected[usual], max(1e-9, len(values) - expected[usual].sum())]
    if wanted[-1] < 20:
        observed[-2:], wanted[-2:] = [sum(observed[-2:])], [sum(wanted[-2:])]
    return float(stats.chisquare(observed, np.array(wanted) * len(values) / sum(wanted)).pvalue)


CASES = [("1/3", 2), ("1", 1), ("1", 2), ("1", 5), ("20", 2), ("20", 3), ("60", 4)]


@pytest.mark.parametrize(("scale", "shares"), CASES)
def test_share_draws_fit(scale: str, shares: int) -> None:
    """300,000 draws, chi-square on single values (p < 1e-6 fails)."""
    known = Fraction(scale)
    values = polya(known, shares, 300_000)
    assert fitted(values, share_pmf(float(known), shares, 60 * max(1, int(known)))) > 1e-6


@pytest.mark.parametrize(("scale", "shares"), [(1, 2), (20, 2), (60, 4)])
def test_smaller_shares_are_caught(scale: int, shares: int) -> None:
    """Halved shares, and shares of 0.95 of the scale, fail the test above; with fixed words, so that they always do."""
    pmf = share_pmf(scale, shares, 60 * scale)
    wrong = [build(Fraction(scale), 2 * shares), build(Fraction(scale) * Fraction(95, 100), shares)]
    for built in wrong:
        assert fitted(sample(built, 300_000, SeededWords(5)), pmf) < 1e-6
    assert fitted(sample(build(Fraction(scale), shares), 300_000, SeededWords(5)), pmf) > 1e-3


@pytest.mark.parametrize(("scale", "shares"), [(1, 3), (1000, 2), (10**9, 2), (10**18, 2)])
def test_sums_of_shares_are_discrete_laplace(scale: int, shares: int) -> None:
    """60,000 sums of k shares, 3,000 of Python integers, against the closed form (p < 1e-6 fails)."""
    size = 60_000 if scale < 10**15 else 3_000
    values = polya(scale, shares, shares * size).reshape(shares, size).sum(axis=0)
    assert fit(values, laplace_cdf(float(scale)), float(scale)) > 1e-6


@pytest.mark.parametrize(("scale", "shares"), [("1e16", 1), ("1e18", 3), ("1e40", 2), (10**60, 2**16)])
def test_huge_scales_give_python_integers(scale: str | int, shares: int) -> None:
    values = polya(scale, shares, 40)
    assert values.dtype == object
    assert all(type(value) is int and abs(value) <= sampler(Fraction(scale), shares).reach for value in values)


@settings(max_examples=25, deadline=None)
@given(st.fractions(Fraction(1, 10**25), 10**15), st.integers(1, 100), st.integers(0, 30))
def test_any_share_can_be_drawn(scale: Fraction, shares: int, size: int) -> None:
    values = polya(scale, shares, size)
    assert values.shape == (size,)
    assert all(abs(int(value)) <= sampler(scale, shares).reach for value in values)


def test_long_draws_are_cut_into_pieces() -> None:
    """More parts than are drawn at a time, and cells without any between them."""
    values = polya(10**6, 1, 30_000)
    assert abs(float(np.mean(np.abs(values))) / 10**6 - 1) < 0.1  # seventeen standard deviations
    assert not polya(Fraction(1, 300), 2, 1000).any()


@pytest.mark.parametrize("shares", [0, -1, True, 1.5, "2", 2**16 + 1])
def test_wrong_numbers_of_shares_are_refused(shares: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        polya(1, shares, 1)
