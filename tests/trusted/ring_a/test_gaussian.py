"""Rounded Gaussian noise: certified bounds, exact tables, all bit strings of the rejection, and draws."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise, product
from math import ceil, floor
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from discreet.noise import rounded_gaussian
from discreet.trusted.ring_a import gaussian
from discreet.trusted.ring_a import inversion as table_module
from discreet.trusted.ring_a import rounded_gaussian_wide as cells_module
from discreet.trusted.ring_a.exact import normal_cdf_bounds
from discreet.trusted.ring_a.gaussian import build_table
from discreet.trusted.ring_a.inversion import BitSizes, Digits
from discreet.trusted.ring_a.rounded_gaussian_wide import Cells, Levels, bells, height_bounds
from discreet.trusted.ring_a.sampler import sample
from kinds import examples, some
from noise_tools import DIGITS, fit, gaussian_cdf, gaussian_pmf, real
from random_words import SeededWords, Tape, every_outcome

KIND = "exact"

FULL = 192


def height(k: int, sigma: Fraction) -> mpmath.mpf:
    """f(k), the integral of e^(−y²/(2·sigma²)) around k, with 80 digits and more."""
    with mpmath.workdps(DIGITS):
        return gaussian_pmf(k, sigma) * real(sigma) * mpmath.sqrt(2 * mpmath.pi)


def table_masses(digits: Digits) -> dict[int, int]:
    (table,) = digits.tables
    ends = [0, *table.cuts, 1 << table.sizes.full]
    return {digits.low + place: high - low for place, (low, high) in enumerate(pairwise(ends))}


@pytest.mark.parametrize("sigma", [Fraction(1, 5), Fraction(1), Fraction(37306, 10000), Fraction(10), Fraction(32)])
def test_the_table_holds_the_distribution(sigma: Fraction) -> None:
    """Every threshold lies within 2 units of 2^−192 of Φ, computed with 80 digits, and they are symmetric."""
    digits = build_table(sigma)
    (table,) = digits.tables
    assert digits.low == -len(table.cuts) // 2
    assert -digits.low >= 16.5 * sigma
    with mpmath.workdps(DIGITS):
        for place, cut in enumerate(table.cuts):
            point = (digits.low + place + Fraction(1, 2)) / sigma
            assert abs(cut - mpmath.ncdf(real(point)) * 2**FULL) < 2
    assert [(1 << FULL) - cut for cut in reversed(table.cuts)] == list(table.cuts)


@pytest.mark.parametrize("sigma", [Fraction(3, 10), Fraction(1), Fraction(37306, 10000), Fraction(20)])
def test_the_privacy_is_that_of_the_gaussian_mechanism(sigma: Fraction) -> None:
    """Shifted by 1, the hockey-stick divergence at every ε is at most the analytic Gaussian one, either way.

    At ε = 0 it is also above that of the mechanism with 5 % more noise, so the comparison means something.
    """
    shares = table_masses(build_table(sigma))
    with mpmath.workdps(DIGITS):
        pmf = {value: mpmath.mpf(mass) / 2**FULL for value, mass in shares.items()}
        for epsilon in (0, 0.01, 0.1, 0.5, 1, 2, 4, 8):
            e = mpmath.exp(epsilon)
            s = real(sigma)
            bound = mpmath.ncdf(1 / (2 * s) - epsilon * s) - e * mpmath.ncdf(-1 / (2 * s) - epsilon * s)
            for step in (-1, 1):
                loss = sum(max(0, mass - e * pmf.get(value + step, 0)) for value, mass in pmf.items())
                assert loss <= bound + (1 + e) * mpmath.mpf(2) ** -180
                if epsilon == 0 and sigma >= 1:
                    more = s * mpmath.mpf("1.05")
                    assert loss > mpmath.ncdf(1 / (2 * more)) - mpmath.ncdf(-1 / (2 * more))


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(2, 10**40), st.integers(1, 1000), st.fractions(0, 17), st.integers(8, 260))
def test_heights_lie_between_their_bounds(over: int, under: int, place: Fraction, bits: int) -> None:
    variance = Fraction(over, under)
    assume(variance >= 2)
    k = min(floor(variance), floor(place * floor(real(variance) ** 0.5)))
    low, high = height_bounds(-k, variance, bits)
    assert high - low <= low / (1 << bits)
    with mpmath.workdps(200):
        root = mpmath.sqrt(2 * real(variance))
        near, far = (k - mpmath.mpf(1) / 2) / root, (k + mpmath.mpf(1) / 2) / root
        true = (mpmath.erfc(near) - mpmath.erfc(far)) * root * mpmath.sqrt(mpmath.pi) / 2
        assert real(low) <= true <= real(high)


@pytest.mark.parametrize("k", [0, 1, 90, 340])
def test_heights_agree_with_the_normal_distribution(k: int) -> None:
    """The ratio of two heights against certified values of Φ."""
    sigma = Fraction(45)

    def mass(place: int) -> tuple[Fraction, Fraction]:
        low = normal_cdf_bounds((place - Fraction(1, 2)) / sigma, 200)
        high = normal_cdf_bounds((place + Fraction(1, 2)) / sigma, 200)
        return high[0] - low[1], high[1] - low[0]

    low, high = height_bounds(k, sigma**2, 150)
    base = height_bounds(0, sigma**2, 150)
    assert low / base[1] <= mass(k)[1] / mass(0)[0]
    assert high / base[0] >= mass(k)[0] / mass(0)[1]
    assert mass(k)[1] / mass(0)[0] - mass(k)[0] / mass(0)[1] < Fraction(1, 1 << 150)


@settings(max_examples=20, deadline=None)
@given(st.fractions(17, 10**6), st.integers(1, 40), st.booleans())
def test_bells_err_as_stated(sigma: Fraction, width: int, far: bool) -> None:
    start = width - Fraction(1, 2) if far else Fraction(1, 2)
    with mpmath.workdps(120):
        for place, value in enumerate(bells(start, width, 80, sigma, 200)):
            true = mpmath.exp(-(real((start + place * width) / sigma) ** 2) / 2) * mpmath.mpf(2) ** 200
            assert 0 <= true - value <= 2 * (place + 1) ** 2


BUILT = [Fraction(33), Fraction(100), Fraction(257), Fraction(54321, 10), Fraction(10**7), Fraction(10**30)]


@pytest.mark.parametrize("sigma", BUILT, ids=str)
def test_the_staircase_and_the_chord_are_on_the_right_side(sigma: Fraction) -> None:
    """In 150 cells, at both ends and two places between: c·unit ≥ f, quick ≤ a, and |chord − a| ≤ slack."""
    cells = Cells.build(sigma)
    assert sum(cells.envelope) == 1 << FULL
    assert min(cells.envelope) >= 1
    assert -cells.first << cells.shift >= 16.5 * sigma
    head, width = min(cells.shift, cells_module.OFFSET), 1 << cells.shift
    random = np.random.default_rng(5)
    middle = np.arange(-8, 8) - cells.first
    chosen = {
        0,
        len(cells.envelope) - 1,
        *middle.tolist(),
        *random.integers(0, len(cells.envelope), 134).tolist(),
    }
    for cell, (place, share) in product(chosen, enumerate((0, 1 / 3, 2 / 3, 1))):
        r = width - 1 if place == 3 else int(share * width)
        offset = r >> (cells.shift - head)
        line = int(cells.chord[cell]) + ((int(cells.slope[cell]) * (2 * offset + 1)) >> (head + 1))
        with mpmath.workdps(DIGITS):
            a = height(((cell + cells.first) << cells.shift) + r, sigma)
            a /= cells.envelope[cell] * real(cells.unit)
            assert a <= 1
            assert int(cells.quick[cell]) <= a * 2**16
            assert abs(a * 2**32 - line) <= int(cells.slack[cell])


def reduced(sigma: int, width: int, levels: Levels) -> Cells:
    built = Cells.build(Fraction(sigma), BitSizes(3, 5, 8), levels, fineness=sigma // width, reach=Fraction(2))
    assert 1 << built.shift == width
    return built


@pytest.mark.parametrize(("small", "offset"), some([(512, 0), (512, 1), (0, 16)], pytest.mark.power))
@pytest.mark.parametrize(
    ("sigma", "width", "levels"),
    some(
        [(6, 1, Levels(2, 4, 6)), (8, 2, Levels(3, 3, 3)), (8, 2, Levels(1, 5, 7)), (12, 4, Levels(2, 5, 6))],
        pytest.mark.power,
        quick=2,
    ),
)
def test_all_bit_strings_of_the_rejection(
    sigma: int, width: int, levels: Levels, offset: int, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every k comes out of an attempt with exactly the probability c_j/2^8 · 1/W · ⌊2^full·a⌋/2^full.

    All strings of the proposal (8 bits), the place in the cell and the uniform (up to 7 bits) are played; so
    the quick decision, the chord and the last step agree with one another everywhere.
    """
    monkeypatch.setattr(table_module, "SMALL", small)
    monkeypatch.setattr(cells_module, "OFFSET", offset)
    cells = reduced(sigma, width, levels)
    last: list[int] = []
    below = Cells.below
    monkeypatch.setattr(Cells, "below", lambda self, *args: last.append(1) or below(self, *args))

    def attempt(tape: Tape) -> int | None:
        accepted = cells.attempt(tape, 1)
        return int(accepted[0]) if len(accepted) else None

    found = every_outcome(attempt)
    found.pop(None)
    expected: dict[int, Fraction] = defaultdict(Fraction)
    for cell, share in enumerate(cells.envelope):
        for r in range(width):
            k = (cell + cells.first) * width + r
            chance = height(k, Fraction(sigma)) / (share * real(cells.unit))
            whole = int(mpmath.floor(chance * (1 << levels.full)))
            expected[k] += Fraction(share * whole, width << (8 + levels.full))
    assert found == {k: mass for k, mass in expected.items() if mass}
    assert last


def test_accepted_values_have_the_stated_proportions() -> None:
    """What the exact integers c_j and a bring about, in numbers: shares of f(k) up to the uniform's 2^−40."""
    sigma = Fraction(50)
    cells = Cells.build(sigma, fineness=12)
    width = 1 << cells.shift
    assert width == 4
    with mpmath.workdps(DIGITS):
        ratios = set()
        for k in (0, 1, 3, -1, -4, 17, -100, 333):
            cell, _ = divmod(k, width)
            share = cells.envelope[cell - cells.first]
            low, _ = height_bounds(k, sigma**2, 200)
            chance = low / (share * cells.unit)
            ratio = real(share * chance) / gaussian_pmf(k, sigma)
            ratios.add(mpmath.nstr(ratio, 50))
        assert len(ratios) == 1


SIGMAS = ["0.3", "1", "3.7306", "10", "32", "32.01", "50", "100", "300", "1000", "1e6", "1e12", "1e18"]


@pytest.mark.parametrize("sigma", SIGMAS)
def test_draws_fit(sigma: str) -> None:
    """Chi-square on 10^6 draws, on 10^5 where they are Python integers (p < 1e-6 fails).

    At 10^6 draws, a sigma that is wrong by 2 % is found with probability above .99 (see the next test).
    """
    values = rounded_gaussian(sigma, 10**6 if float(sigma) < 1e15 else 10**5)
    assert fit(values, gaussian_cdf(float(sigma)), float(sigma)) > 1e-6


@pytest.mark.parametrize("sigma", some([1, 20, 1000], pytest.mark.power))
def test_a_smaller_sigma_is_caught(sigma: int) -> None:
    """Noise of 0.9 of sigma must fail the test above; with fixed words, so that it always does."""
    for wrong in (Fraction(9, 10), Fraction(98, 100)):
        values = sample(gaussian.sampler(sigma * wrong), 10**6, SeededWords(4))
        assert fit(values, gaussian_cdf(sigma), sigma) < 1e-6
    values = sample(gaussian.sampler(Fraction(sigma)), 10**6, SeededWords(4))
    assert fit(values, gaussian_cdf(sigma), sigma) > 1e-3


@pytest.mark.parametrize("sigma", some([Fraction(40), Fraction(1500)], pytest.mark.power))
def test_the_last_step_alone_gives_the_same_distribution(sigma: Fraction) -> None:
    """With no quick decision and a chord of endless slack, each of 20,000 values is decided by `below`.

    Chi-square; a sigma that is wrong by 10 % is found with probability above .99.
    """
    cells = Cells.build(sigma)
    slow = replace(cells, quick=cells.quick * 0, slack=cells.slack + (1 << 40))
    values = sample(slow, 20_000, SeededWords(6))
    assert fit(values, gaussian_cdf(float(sigma)), float(sigma)) > 1e-4


@pytest.mark.parametrize("sigma", some([Fraction(40), Fraction(1500), Fraction(10**25)], pytest.mark.power))
def test_all_steps_agree_on_the_same_words(sigma: Fraction) -> None:
    """Uniforms around the acceptance probability: the last step confirms what earlier steps have decided."""
    cells = Cells.build(sigma)
    random = np.random.default_rng(8)
    size = 4000
    cell = cells.table.draw(SeededWords(7), size)
    head = min(cells.shift, cells_module.OFFSET)
    r = [int(random.integers(0, 1 << 62)) % (1 << cells.shift) for _ in range(size)]
    value = [((int(c) + cells.first) << cells.shift) + place for c, place in zip(cell, r, strict=True)]
    accepted = 0
    for c, place, k in zip(cell.tolist(), r, value, strict=True):
        low, _ = height_bounds(k, cells.variance, 60)
        chance = int(low / (cells.envelope[c] * cells.unit) * (1 << 32))
        drawn = min((1 << 32) - 1, max(0, chance + int(random.integers(-(10**6), 10**6))))
        exact = cells.below(drawn << 160, c, k), cells.below(((drawn + 1) << 160) - 1, c, k)
        if drawn >> 16 < cells.quick[c]:
            assert exact == (True, True)
        line = int(cells.chord[c]) + (int(cells.slope[c]) * (2 * (place >> (cells.shift - head)) + 1) >> (head + 1))
        if drawn < line - cells.slack[c]:
            assert exact == (True, True)
        if drawn >= line + cells.slack[c]:
            assert exact == (False, False)
        accepted += exact[0]
    assert 1000 < accepted < 3500


def test_few_draws_need_the_last_step(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    below = Cells.below
    monkeypatch.setattr(Cells, "below", lambda self, *args: calls.append(1) or below(self, *args))
    sample(Cells.build(Fraction(33)), 200_000, SeededWords(9))
    assert 20 < len(calls) < 200


@pytest.mark.parametrize("sigma", ["1e-25", Decimal("0.02"), Fraction(1, 41)])
def test_a_tiny_sigma_is_no_noise(sigma: Decimal | Fraction | str) -> None:
    values = rounded_gaussian(sigma, 1000)
    assert values.dtype == np.int64
    assert not values.any()


@pytest.mark.parametrize("sigma", ["1e18", "1e20", "1e30", 10**60])
def test_a_huge_sigma_gives_python_integers(sigma: str | int) -> None:
    """2,000 draws: the standard deviation lies within 15 % of sigma, nine of its own; low digits vary."""
    values = rounded_gaussian(sigma, 2000)
    assert values.dtype == object
    assert all(type(value) is int for value in values)
    assert abs(float(np.sqrt((values.astype(float) ** 2).mean())) / float(sigma) - 1) < 0.15
    assert len({value % 1000 for value in values}) > 700


@settings(max_examples=15, deadline=None)
@given(st.one_of(st.fractions(Fraction(1, 10**25), 20), st.fractions(33, 10**30)), st.integers(0, 20))
def test_any_sigma_can_be_drawn(sigma: Fraction, size: int) -> None:
    values = rounded_gaussian(sigma, size)
    assert values.shape == (size,)
    assert all(abs(int(value)) <= 17 * sigma + 1 for value in values)


def test_both_ways_agree_at_the_border() -> None:
    """The table and the staircase for the same sigma: their exact shares are the same up to 2^−180."""
    sigma = Fraction(20)
    shares = table_masses(build_table(sigma))
    cells = Cells.build(sigma)
    total = sum(height_bounds(k, sigma**2, 200)[0] for k in range(-340, 341))
    for k in (0, 1, -1, 40, -150):
        low, _ = height_bounds(k, sigma**2, 200)
        assert abs(low / total - Fraction(shares[k], 1 << FULL)) < Fraction(1, 1 << 180)
        assert low <= cells.envelope[(k >> cells.shift) - cells.first] * cells.unit


@pytest.mark.parametrize("lowered", [False, True])
@pytest.mark.parametrize("sigma", [Fraction(65, 2), Fraction(100), Fraction(54321, 10), Fraction(10**30)], ids=str)
def test_every_step_of_the_staircase_is_above_the_bell_and_hardly(
    sigma: Fraction, lowered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """c·unit is at least the largest g of its cell, for zero's 1, and more by no more than what g may be wrong by; and
    the quick bound is the first bits of the smallest g over c·unit. Also where bells are as low as they may be."""
    if lowered:
        right = cells_module.bells

        def lowest(*of: Any) -> list[int]:
            return [max(0, bell - 2 * (place + 1) ** 2) for place, bell in enumerate(right(*of))]

        monkeypatch.setattr(cells_module, "bells", lowest)
    cells = Cells.build(sigma)
    width, error = 1 << cells.shift, 2 * (2 - cells.first) ** 2
    assert width <= max(1, sigma / 128) < 2 * max(width, 1)
    assert len(cells.envelope) == -2 * cells.first
    assert sum(cells.envelope) == 1 << FULL
    with mpmath.workdps(130):
        for place, height in enumerate(cells.envelope):
            cell = cells.first + place
            ends = sorted(abs(Fraction(2 * (cell + side) * width - 1, 2)) for side in (0, 1))
            near, far = (mpmath.exp(-(real(end / sigma) ** 2) / 2) for end in ends)
            top, peak = height * real(cells.unit), mpmath.mpf(1) if cell == 0 else near
            assert peak <= top
            if cell:
                assert top <= peak + 2 * error * mpmath.mpf(2) ** -(FULL + 64) + real(cells.unit)
            assert 0 <= far / top * 2**16 - int(cells.quick[place]) < 1.001


@settings(max_examples=25, deadline=None)
@given(st.integers(-40, 40), st.integers(0, 5), st.fractions(2, 10**4), st.integers(0, 10**30))
def test_the_bend_of_a_cell_is_rounded_up(cell: int, shift: int, variance: Fraction, peak: int) -> None:
    """M·W²/8 with M = max |y²/sigma² − 1|/sigma² times the peak, over both ends and zero."""
    width = 1 << shift
    ends = [Fraction(2 * (cell + side) * width - 1, 2) for side in (0, 1)]
    most = max(abs(y * y / variance - 1) for y in (*ends, *([Fraction(0)] if ends[0] <= 0 <= ends[1] else [])))
    assert cells_module._bend(cell, width, variance, peak) == -(-(most * width**2 * peak / (8 * variance)) // 1)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**4), st.integers(0, 12), st.integers(1, 10**6))
def test_the_chord_is_as_close_as_its_slack_says(low: int, high: int, distance: int, bits: int, scale: int) -> None:
    """At each place of a cell, of all its bits or of the first ones: what is `distance` from the chord in the pair's
    unit is within the slack of the line in integers, and the slack has little to spare."""
    for shift, offset in ((0, 2), (1, 2), (2, 2), (3, 2), (5, 2), (4, 0)):
        before, cells_module.OFFSET = cells_module.OFFSET, offset
        try:
            start, slope, slack = cells_module._chord((low, high), distance, bits, scale, shift)
        finally:
            cells_module.OFFSET = before
        head = min(shift, offset)
        for r in range(1 << shift):
            line = start + ((slope * (2 * (r >> (shift - head)) + 1)) >> (head + 1))
            chord = low + (high - low) * Fraction(2 * r + 1, 2 << shift)
            for true in (chord - distance, chord + distance):
                assert abs(true * (1 << bits) / scale - line) <= slack
        spare = Fraction(abs(high - low) << bits, scale << (head + 1)) + 2 if shift > head else 0
        assert slack <= Fraction(distance << bits, scale) + 3 + spare


@pytest.mark.parametrize(
    "variance", [Fraction(2), Fraction(5, 2), Fraction(7), Fraction(100), Fraction(10**5)], ids=str
)
def test_heights_of_few_bits_and_of_the_farthest_integers(variance: Fraction) -> None:
    """Up to |k| = variance, where the series needs most terms."""
    last = floor(variance)
    with mpmath.workdps(150):
        root = mpmath.sqrt(2 * real(variance))
        for k in {0, 1, 2, -1, last // 2, last - 1, last, -last}:
            near, far = (abs(k) - mpmath.mpf(1) / 2) / root, (abs(k) + mpmath.mpf(1) / 2) / root
            true = (mpmath.erfc(near) - mpmath.erfc(far)) * root * mpmath.sqrt(mpmath.pi) / 2
            if k * k > 400 * variance:
                continue
            for bits in (1, 2, 3, 7, 16, 40, 100, 196):
                low, high = height_bounds(k, variance, bits)
                assert real(low) <= true <= real(high)
                assert high - low <= low / (1 << bits)


@pytest.mark.parametrize("sigma", [Fraction(33), Fraction(1000)], ids=str)
def test_the_last_step_accepts_so_many_of_all_uniforms(sigma: Fraction) -> None:
    """⌊2^192·a⌋ of them, the smallest ones."""
    cells = Cells.build(sigma)
    for k in (0, 1, -1, 40, -77, int(5 * sigma)):
        cell = (k >> cells.shift) - cells.first
        with mpmath.workdps(130):
            root = real(sigma) * mpmath.sqrt(2)
            near, far = (abs(k) - mpmath.mpf(1) / 2) / root, (abs(k) + mpmath.mpf(1) / 2) / root
            true = (mpmath.erfc(near) - mpmath.erfc(far)) * root * mpmath.sqrt(mpmath.pi) / 2
            accepted = int(mpmath.floor(true / (cells.envelope[cell] * real(cells.unit)) * mpmath.mpf(2) ** FULL))
        assert cells.below(accepted - 2, cell, k)
        assert cells.below(accepted - 1, cell, k)
        assert not cells.below(accepted, cell, k)


def test_values_are_wide_from_64_bits_on() -> None:
    cells = Cells.build(Fraction(33))
    for first, shift, wide in (
        (-1, 63, True),
        (-1, 62, False),
        (-3, 62, True),
        (1 - 2**53, 10, False),
        (-(2**53), 10, True),
    ):
        assert replace(cells, first=first, shift=shift).wide is wide
    assert not Cells.build(Fraction(10**17)).wide
    assert Cells.build(Fraction(10**18)).wide


class Recorded(SeededWords):
    """Words, and of how many bits how many were asked for."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.asked: list[tuple[int, int]] = []

    def integers(self, bits: int, size: int) -> np.ndarray:
        self.asked.append((bits, size))
        return super().integers(bits, size)


def test_proposals_are_a_few_more_than_what_is_missing() -> None:
    """Of so many cells, places and uniforms; what was accepted beyond what is missing is left."""
    cells = Cells.build(Fraction(10**7))
    words = Recorded(3)
    values = cells.draw(words, 1000)
    assert words.asked[0] == (16, 1000 + 1000 // 64 + 8)
    assert len(values) == 1000
    again = Recorded(3)
    first = cells.attempt(again, 1023)
    assert values[: len(first)].tolist() == first[:1000].tolist()
    for size in (0, 1, 5):
        assert cells.draw(SeededWords(size), size).shape == (size,)


@pytest.mark.parametrize("sigma", [Fraction(33), Fraction(10**4), Fraction(10**9), Fraction(10**30)], ids=str)
def test_a_proposal_takes_a_cell_and_a_place_of_all_its_bits(sigma: Fraction) -> None:
    """With a uniform of 0 each is accepted: the value is the cell's first integer and the bits of the place."""
    cells = Cells.build(sigma)
    head = min(cells.shift, cells_module.OFFSET)

    class Zero(Recorded):
        def integers(self, bits: int, size: int) -> np.ndarray:
            drawn = super().integers(bits, size)
            return drawn * 0 if len(self.asked) == self.uniform else drawn

    words, same = Zero(5), SeededWords(5)
    words.uniform = 3  # type: ignore[attr-defined]
    values = cells.attempt(words, 40)
    cell, offset = cells.table.draw(same, 40), same.integers(head, 40)
    same.integers(16, 40)
    rest = cells_module.whole(same, cells.shift - head, 40) if cells.shift > head else [0] * 40
    expected = [
        ((int(c) + cells.first) << cells.shift) + (int(o) << (cells.shift - head)) + int(r)
        for c, o, r in zip(cell, offset, rest, strict=True)
    ]
    assert values.tolist() == expected
    assert words.asked[1:3] == [(head, 40), (16, 40)]


@pytest.mark.parametrize("sigma", [Fraction(1, 41), Fraction(1, 40), Fraction(1, 39)], ids=str)
def test_noise_is_none_below_a_fortieth(sigma: Fraction) -> None:
    assert (build_table(sigma).tables == ()) is (sigma < Fraction(1, 40))
    assert build_table(sigma).low == (0 if sigma < Fraction(1, 40) else -1)


def test_up_to_32_noise_is_looked_up() -> None:
    assert gaussian.LARGEST_TABLE == 32
    assert isinstance(gaussian.sampler(Fraction(32)), Digits)
    assert isinstance(gaussian.sampler(Fraction(32) + Fraction(1, 10**9)), Cells)
    assert gaussian.sampler(Fraction(77)) is gaussian.sampler(Fraction(154, 2))


@pytest.mark.parametrize("reach", [Fraction(2), Fraction(5, 2), Fraction(33, 2)], ids=str)
def test_a_table_reaches_so_far(reach: Fraction) -> None:
    for sigma in (Fraction(1), Fraction(4, 3), Fraction(7, 2)):
        digits = build_table(sigma, BitSizes(3, 6, 40), reach)
        assert digits.low == -ceil(reach * sigma)
        assert len(digits.tables[0].cuts) == -2 * digits.low
        assert digits.bits == 0


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.fractions(2, 10**7), st.integers(1, 400))
def test_a_series_has_as_few_terms_as_its_estimate_allows(k: int, variance: Fraction, work: int) -> None:
    """2·4^⌈8a + 64b⌉·256^−terms < 2^−work, with a = k/variance and b = 1/(2·variance)."""
    k = min(k, floor(variance))
    growth = ceil(8 * k / variance + 64 / (2 * variance))
    terms = cells_module.terms_of(k, variance, work)
    assert 256**terms > 2 * 4**growth * 2**work >= 256 ** (terms - 1)


@pytest.mark.parametrize("bits", [1, 8, 60, 196])
@pytest.mark.parametrize(("k", "variance"), [(0, 2), (2, 2), (5, 9), (33, 1089), (400, 10**4)])
def test_a_height_is_off_by_its_roundings_and_no_more(
    k: int, variance: int, bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside e^(−k²·b), told here as 1 and to four bits more than are asked for: four units more than there are terms,
    units of 16 bits more."""
    asked: list[int] = []

    class Told:
        @staticmethod
        def __wrapped__(_: Fraction, bits: int) -> tuple[Fraction, Fraction]:
            asked.append(bits)
            return Fraction(1), Fraction(1)

    monkeypatch.setattr(cells_module, "exp_bounds", Told)
    low, high = height_bounds(k, Fraction(variance), bits)
    terms = cells_module.terms_of(k, Fraction(variance), bits + 16)
    assert asked == [bits + 4]
    assert high - low == Fraction(2 * (terms + 4), 1 << (bits + 16))
    with mpmath.workdps(120):
        root = mpmath.sqrt(2 * mpmath.mpf(variance))
        near, far = (k - mpmath.mpf(1) / 2) / root, (k + mpmath.mpf(1) / 2) / root
        true = (mpmath.erfc(near) - mpmath.erfc(far)) * root * mpmath.sqrt(mpmath.pi) / 2
        true *= mpmath.exp(mpmath.mpf(k) ** 2 / (2 * variance))
        assert abs(real((low + high) / 2) - true) <= (terms + 3) * mpmath.mpf(2) ** -(bits + 16)


@pytest.mark.parametrize("lowered", [False, True])
@pytest.mark.parametrize("sigma", [Fraction(65, 2), Fraction(100), Fraction(1000)], ids=str)
def test_what_bells_may_be_wrong_by_is_added_to_staircase_and_slack(
    sigma: Fraction, lowered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With no bits beyond those of the staircase, so that errors are larger than what rounding it up adds."""
    right = cells_module.bells

    def lowest(*of: Any) -> list[int]:
        return [max(0, bell - 2 * (place + 1) ** 2) for place, bell in enumerate(right(*of))]

    monkeypatch.setattr(cells_module, "GUARD", 0)
    if lowered:
        monkeypatch.setattr(cells_module, "bells", lowest)
    full, levels = 64, Levels(16, 32, 64)
    cells = Cells.build(sigma, BitSizes(8, 16, full), levels, reach=Fraction(4))
    width, count = 1 << cells.shift, -cells.first
    assert (count - 1) * width >= 4 * sigma > (count - 2) * width
    head = min(cells.shift, cells_module.OFFSET)
    with mpmath.workdps(60):
        unit, error = real(cells.unit), 2 * (count + 1) ** 2 * mpmath.mpf(2) ** -full
        for place, height in enumerate(cells.envelope):
            cell = cells.first + place
            ends = sorted(abs(Fraction(2 * (cell + side) * width - 1, 2)) for side in (0, 1))
            near = mpmath.exp(-(real(ends[0] / sigma) ** 2) / 2)
            top, peak = height * unit, mpmath.mpf(1) if cell == 0 else near
            assert peak <= top <= peak + (error + unit if cell else (2 * count + 2) * unit)
            for r in {0, width - 1}:
                k = abs(cell * width + r)
                root = real(sigma) * mpmath.sqrt(2)
                heights = mpmath.erfc((k - mpmath.mpf(1) / 2) / root) - mpmath.erfc((k + mpmath.mpf(1) / 2) / root)
                a = heights * root * mpmath.sqrt(mpmath.pi) / 2 / top
                offset = r >> (cells.shift - head)
                line = int(cells.chord[place]) + ((int(cells.slope[place]) * (2 * offset + 1)) >> (head + 1))
                assert abs(a * 2**32 - line) <= int(cells.slack[place])


class Decided:
    """The rest of a uniform's bits for the chord, and all that follow 0 or 1; and whether these were wanted."""

    def __init__(self, more: int, last: int) -> None:
        self.more, self.last, self.wanted = more, last, False

    def integers(self, bits: int, size: int) -> np.ndarray:
        assert (bits, size) == (16, 1)
        return np.array([self.more], np.uint16)

    def big(self, bits: int) -> int:
        assert bits == 160
        self.wanted = True
        return ((1 << bits) - 1) * self.last


def _decide(cells: Cells, cell: int, r: int, drawn: int, last: int) -> tuple[bool, bool]:
    """Whether a proposal is accepted by 32 bits and others that are all 0 or 1, and whether these were wanted."""
    words = Decided(drawn & 0xFFFF, last)
    head = min(cells.shift, cells_module.OFFSET)
    arrays = (np.array([one], np.int64) for one in (cell, r >> (cells.shift - head), drawn >> 16))
    value = np.array([((cell + cells.first) << cells.shift) + r], object)
    (accepted,) = cells._closer(words, *arrays, value)
    return bool(accepted), words.wanted


@pytest.mark.parametrize("sigma", [Fraction(33), Fraction(1000), Fraction(10**8)], ids=str)
def test_chord_and_last_step_decide_as_all_bits_would(sigma: Fraction) -> None:
    """At the acceptance probability, and below and above it by what is beyond the chord's slack."""
    cells = Cells.build(sigma)
    width = 1 << cells.shift
    for cell in (-cells.first, -cells.first - 1, -cells.first + 100, 50 - 2 * cells.first * 3 // 5, 7):
        for r in {0, width // 3, width - 1}:
            with mpmath.workdps(DIGITS):
                k = ((cell + cells.first) << cells.shift) + r
                a = height(k, sigma) / (cells.envelope[cell] * real(cells.unit))
                place, slack = int(mpmath.floor(a * 2**32)), int(cells.slack[cell])
            for away in (-4 * slack, -2 * slack, -1, 0, 1, 2 * slack, 4 * slack):
                if 0 <= place + away < 1 << 32:
                    for last in (0, 1):
                        accepted, wanted = _decide(cells, cell, r, place + away, last)
                        assert accepted is (away < 0 or (away == 0 and last == 0))
                        assert wanted is (abs(away) < slack)


def test_at_the_end_of_the_slack_all_bits_decide() -> None:
    """A slack that has nothing to spare: where the first 32 bits are those of the probability, they are not enough."""
    sigma = Fraction(33)
    cells = Cells.build(sigma)
    cell, slack = 3 - cells.first, 1000
    with mpmath.workdps(DIGITS):
        place = int(mpmath.floor(height(3, sigma) / (cells.envelope[cell] * real(cells.unit)) * 2**32))
    exact = replace(cells, chord=cells.chord * 0 + place + slack, slope=cells.slope * 0, slack=cells.slack * 0 + slack)
    assert _decide(exact, cell, 0, place - 1, 1) == (True, False)
    assert _decide(exact, cell, 0, place, 0) == (True, True)
    assert _decide(exact, cell, 0, place, 1) == (False, True)
    assert _decide(exact, cell, 0, place + 2 * slack, 0) == (False, False)


def test_proposals_are_made_until_no_value_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time a few more than are missing; those accepted stand in the order in which they were drawn."""
    asked: list[int] = []

    def few(_: Cells, __: Any, size: int) -> np.ndarray:
        start = sum(asked) // 3
        asked.append(size)
        return np.arange(start, start + size // 3)

    monkeypatch.setattr(Cells, "attempt", few)
    cells = Cells.build(Fraction(33))
    values = cells.draw(SeededWords(1), 6400)
    missing, expected = 6400, []
    while missing > 0:
        expected.append(missing + missing // 64 + 8)
        missing -= expected[-1] // 3
    assert asked == expected
    assert values[0] == 0
    assert (np.diff(values) > 0).all()


def test_how_far_the_staircase_reaches_and_how_fine_it_is() -> None:
    """Beyond 16.5 sigma lies less than 2^−196; cells are as wide as sigma/128 allows; 16 bits of a place move chords.
    One staircase is not another, whatever is in it."""
    assert Fraction(33, 2) == cells_module.REACH
    with mpmath.workdps(80):
        assert mpmath.erfc(real(cells_module.REACH) / mpmath.sqrt(2)) < mpmath.mpf(2) ** -196
    assert cells_module.OFFSET == 16
    assert Levels() == (16, 32, 192)
    finest, coarser = Cells.build(Fraction(255), reach=Fraction(1)), Cells.build(Fraction(256), reach=Fraction(1))
    assert (finest.shift, coarser.shift) == (0, 1)
    assert (finest == replace(finest)) is False


def test_a_step_is_what_the_farther_end_may_be_wrong_by_where_bells_are_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """2·(count + 1)² units of the last bit, for every cell but that of zero."""
    monkeypatch.setattr(cells_module, "GUARD", 0)
    monkeypatch.setattr(cells_module, "bells", lambda _start, _width, count, *_: [0] * count)
    cells = Cells.build(Fraction(100), BitSizes(8, 16, 64), Levels(16, 32, 64), reach=Fraction(4))
    error, unit = 2 * (1 - cells.first) ** 2, cells.unit * 2**64
    assert unit < 2
    for place, height in enumerate(cells.envelope):
        if place != -cells.first:
            assert error <= height * unit < error + unit
