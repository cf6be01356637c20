"""The table sampler over all bit strings, and the system's words."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from discreet.trusted.ring_a import inversion as table_module
from discreet.trusted.ring_a.bits import SystemWords, whole
from discreet.trusted.ring_a.exact import exp_bounds
from discreet.trusted.ring_a.inversion import BitSizes, Digits, InversionTable, exp_floor, thresholds
from random_words import Script, SeededWords, Tape, every_outcome

KIND = "exact"

SMALL_SIZES = BitSizes(3, 6, 9)


def counts(table: InversionTable) -> dict[int, int]:
    """How many of the 2^full bit strings give each outcome."""
    found = every_outcome(lambda tape: int(table.draw(tape, 1)[0]))
    return {int(outcome): int(mass * (1 << table.sizes.full)) for outcome, mass in found.items()}


def gaps(cuts: list[int], full: int) -> dict[int, int]:
    ends = [0, *cuts, 1 << full]
    masses = enumerate(high - low for low, high in pairwise(ends))
    return {outcome: mass for outcome, mass in masses if mass}


@pytest.fixture(params=["guide", "search"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Runs a test with the guide in use even for one cell, and again with the search alone."""
    monkeypatch.setattr(table_module, "SMALL", 0 if request.param == "guide" else 512)
    return request.param


@pytest.mark.parametrize(
    "cuts",
    [
        [],
        [0],
        [512],
        [0, 0, 512, 512],
        [256],
        [255, 256, 257],
        [1, 2, 3, 4, 5, 6, 7, 8, 9],
        [63, 64, 65, 127, 129, 320, 328, 511],
        [100, 100, 100, 101, 300, 301, 511, 511],
        list(range(0, 512, 5)),
    ],
)
@pytest.mark.usefixtures("path")
def test_each_outcome_has_exactly_its_share_of_all_bit_strings(cuts: list[int]) -> None:
    assert counts(InversionTable.build(cuts, SMALL_SIZES)) == gaps(cuts, 9)


@pytest.mark.parametrize(
    "sizes", [BitSizes(1, 1, 1), BitSizes(2, 2, 6), BitSizes(2, 6, 6), BitSizes(6, 6, 6), BitSizes(1, 2, 7)]
)
@pytest.mark.usefixtures("path")
def test_shares_are_exact_for_other_word_sizes(sizes: BitSizes) -> None:
    cuts = thresholds([3, 1, 4, 1, 5, 9, 2, 6], sizes.full)
    assert counts(InversionTable.build(cuts, sizes)) == gaps(cuts, sizes.full)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 512), max_size=20).map(sorted), st.sampled_from([0, 512]))
def test_shares_are_exact_for_any_thresholds(cuts: list[int], small: int) -> None:
    before, table_module.SMALL = table_module.SMALL, small
    try:
        assert counts(InversionTable.build(cuts, SMALL_SIZES)) == gaps(cuts, 9)
    finally:
        table_module.SMALL = before


def test_many_cells_are_drawn_as_one_by_one() -> None:
    """A long vector takes each bucket once; the split ones are resolved in order, from further words."""
    cuts = [63, 64, 65, 127, 129, 320, 328, 511]
    table = InversionTable.build(cuts, SMALL_SIZES)

    class Counting:
        def integers(self, bits: int, size: int) -> np.ndarray:
            return (np.arange(size) % (1 << bits)).astype(np.uint16)

        def big(self, bits: int) -> int:
            return (1 << bits) - 1

    drawn = table.draw(Counting(), 1024)
    split = [bucket for bucket in range(8) if any(bucket * 64 < cut < (bucket + 1) * 64 for cut in cuts)]
    place = 0
    for cell, outcome in enumerate(drawn):
        bucket, low = cell % 8, 0
        if bucket in split:
            low, place = place % 8, place + 1
        uniform = bucket * 64 + low * 8 + (7 if bucket in split else 0)
        assert outcome == sum(cut <= uniform for cut in cuts)


def test_the_remaining_bits_decide_ties() -> None:
    """All bits known to be equal to a threshold's top 64: the last 128 alone choose between two outcomes."""
    cut = (0xDEADBEEF << 160) | 12345

    class Tied:
        def __init__(self, rest: int) -> None:
            self.rest = rest

        def integers(self, bits: int, size: int) -> np.ndarray:
            top = cut >> 128
            word = {16: top >> 48, 48: top & ((1 << 48) - 1), 64: top}[bits]
            return np.full(size, word, np.uint16 if bits == 16 else np.uint64)

        def big(self, bits: int) -> int:
            assert bits == 128
            return self.rest

    table = InversionTable.build([cut])
    low = cut & ((1 << 128) - 1)
    for size in (3, 600):
        assert (table.draw(Tied(low), size) == 1).all()
        assert (table.draw(Tied(low - 1), size) == 0).all()
        assert len(table.draw(Tied(low), size)) == size


def test_thresholds_are_below_their_places_by_less_than_one() -> None:
    weights = [3, 1, 4, 1, 5]
    cuts = thresholds(weights, 9)
    for place, cut in enumerate(cuts, 1):
        assert 0 <= Fraction(sum(weights[:place]) * 512, sum(weights)) - cut < 1


@pytest.mark.parametrize(
    ("cuts", "sizes"),
    [
        ([5, 4], SMALL_SIZES),
        ([-1], SMALL_SIZES),
        ([513], SMALL_SIZES),
        ([1], BitSizes(0, 6, 9)),
        ([1], BitSizes(7, 6, 9)),
        ([1], BitSizes(3, 10, 9)),
        ([1], BitSizes(17, 64, 192)),
        ([1], BitSizes(16, 65, 192)),
        ([1] * (1 << 15), BitSizes()),
        ([1] * ((1 << 15) + 1), BitSizes()),
        ([1], BitSizes(-1, 6, 9)),
    ],
)
def test_a_table_refuses_what_it_cannot_draw(cuts: list[int], sizes: BitSizes) -> None:
    with pytest.raises(ValueError, match=r"^(a table|the word)"):
        InversionTable.build(cuts, sizes)


def test_a_table_holds_as_many_outcomes_and_bits_as_it_can() -> None:
    assert len(InversionTable.build([1] * ((1 << 15) - 1)).cuts) == (1 << 15) - 1
    for sizes in (BitSizes(1, 1, 1), BitSizes(16, 16, 16), BitSizes(16, 64, 64), BitSizes(1, 64, 65)):
        assert InversionTable.build([1], sizes).sizes == sizes
    assert BitSizes() == (16, 64, 192)


class Asked:
    """Words that are all 0, and what was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []

    def integers(self, bits: int, size: int) -> np.ndarray:
        self.asked.append((bits, size))
        return np.zeros(size, np.uint16 if bits <= 16 else np.uint64)

    def big(self, bits: int) -> int:
        raise AssertionError(bits)


def test_few_cells_all_take_the_same_path() -> None:
    """Up to 512 cells are searched for; more look at their first bits, and the split ones further."""
    table = InversionTable.build([1 << 150, 1 << 191])
    for size in (0, 1, 511, 512):
        words = Asked()
        assert table.draw(words, size).tolist() == [0] * size
        assert words.asked == [(64, size)]
    words = Asked()
    assert table.draw(words, 513).tolist() == [0] * 513
    assert words.asked == [(16, 513), (48, 513)]


def test_a_threshold_at_the_end_is_never_reached() -> None:
    """Its top would not fit into a word of 64 bits."""
    for cuts in ([1 << 192], [1 << 191, 1 << 192, 1 << 192]):
        table = InversionTable.build(cuts)
        assert table.cuts == tuple(cuts)
        assert table.draw(Script((1 << 64) - 1), 1).tolist() == [len(cuts) // 2]


def test_a_table_without_thresholds_draws_no_further_bits() -> None:
    assert InversionTable.build([]).draw(Asked(), 3).tolist() == [0, 0, 0]


def test_the_first_threshold_decides_in_all_its_bits() -> None:
    """U agrees with the first of two in its top bits: it is below it or not by the rest."""
    table = InversionTable.build([(5 << 3) + 4, (6 << 3) + 4], BitSizes(3, 6, 9))
    for rest, outcome in ((3, 0), (4, 1)):
        assert table.draw(Script(5, rest), 1).tolist() == [outcome]
    assert table.draw(Script(4), 1).tolist() == [0]
    assert table.draw(Script(7), 1).tolist() == [2]


def test_sums_of_digits_are_wide_from_64_bits_on() -> None:
    table = InversionTable.build([1, 2], SMALL_SIZES)
    for low, wide in ((2**63 - 1, False), (2**63, True), (1 - 2**63, False), (-(2**63), True), (0, False)):
        assert Digits((), 0, low).wide is wide
    for bits, wide in ((61, False), (62, True)):
        assert Digits((InversionTable.build([], SMALL_SIZES), table), bits, 0).wide is wide
    three = InversionTable.build([1, 2, 3], SMALL_SIZES)
    for place, wide in ((1, False), (2, True)):
        assert Digits((table, *[three] * place), 31, 0).wide is (place == 2) is wide
    assert Digits((), 0, 2**63).draw(Asked(), 2).tolist() == [2**63] * 2


@settings(max_examples=25, deadline=None)
@given(st.fractions(0, 200), st.integers(1, 200))
def test_exponentials_are_rounded_down_and_hardly(rate: Fraction, bits: int) -> None:
    with mpmath.workdps(200):
        truth = mpmath.exp(-mpmath.mpf(rate.numerator) / rate.denominator) * 2**bits
        assert 0 <= truth - exp_floor(rate, bits) < 2
    assert exp_floor(Fraction(0), bits) in ((1 << bits) - 1, (1 << bits) - 2)


@pytest.mark.parametrize("bits", [1, 10, 100])
def test_exponentials_whose_bounds_are_as_wide_as_they_may_be(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lower bound may be as far below the truth as 2^−bits of it, for the bits that are asked for."""

    def lowest(x: Fraction, bits: int) -> tuple[Fraction, Fraction]:
        _, high = exp_bounds(x, bits + 20)
        return high * (1 - Fraction(1, 1 << bits)), high

    monkeypatch.setattr(table_module, "exp_bounds", lowest)
    for rate in (Fraction(0), Fraction(1, 10**6), Fraction(1, 3), Fraction(5), Fraction(80)):
        truth = exp_bounds(-rate, bits + 200)[0] * (1 << bits)
        assert 0 <= truth - exp_floor(rate, bits) < 2


@pytest.mark.usefixtures("path")
def test_digits_add_up_as_independent_outcomes() -> None:
    sizes = BitSizes(2, 3, 4)
    first, second = InversionTable.build([3, 4, 9], sizes), InversionTable.build([8, 15], sizes)
    digits = Digits((first, second), 2, -5)
    found = every_outcome(lambda tape: int(digits.draw(tape, 1)[0]))
    expected = {
        low + 4 * high - 5: Fraction(share * other, 256)
        for low, share in gaps([3, 4, 9], 4).items()
        for high, other in gaps([8, 15], 4).items()
    }
    assert found == expected


@pytest.mark.parametrize("bits", [1, 5, 16, 17, 48, 64])
def test_system_words_are_uniform(bits: int) -> None:
    """200,000 words, chi-square over their top five and bottom five bits (p < 1e-6 fails).

    A class that is off by 6 % of its probability is found with probability above .99.
    """
    words = SystemWords().integers(bits, 200_000)
    assert words.dtype == (np.uint16 if bits <= 16 else np.uint64)
    few = min(bits, 5)
    for part in (words >> words.dtype.type(bits - few), words & words.dtype.type((1 << few) - 1)):
        seen = np.bincount(part.astype(np.int64), minlength=1 << few)
        assert len(seen) == 1 << few
        assert stats.chisquare(seen).pvalue > 1e-6


def test_system_words_of_no_bits_and_of_too_many() -> None:
    assert SystemWords().integers(0, 3).tolist() == [0, 0, 0]
    assert SystemWords().big(0) == 0
    for bits in (-1, 65):
        with pytest.raises(ValueError, match="64 bits"):
            SystemWords().integers(bits, 1)


@pytest.mark.parametrize("bits", [1, 8, 13, 128, 1000])
def test_big_words_fill_their_range(bits: int) -> None:
    drawn = [SystemWords().big(bits) for _ in range(200)]
    assert all(0 <= value < 1 << bits for value in drawn)
    assert any(value >> (bits - 1) for value in drawn)
    assert not all(value >> (bits - 1) for value in drawn)
    assert any(value & 1 for value in drawn)


@pytest.mark.parametrize("bits", [0, 5, 63, 64, 100, 200])
def test_whole_words_have_any_length(bits: int) -> None:
    drawn = whole(SeededWords(1), bits, 2000)
    assert drawn.dtype == (np.int64 if bits <= 63 else object)
    assert all(0 <= int(value) < 1 << bits for value in drawn)
    share = [np.mean([(int(value) >> bit) & 1 for value in drawn]) for bit in range(bits)]
    assert all(0.35 < part < 0.65 for part in share)


def test_whole_words_enumerate_all_values() -> None:
    found = every_outcome(lambda tape: int(whole(tape, 6, 1)[0]))
    assert found == {value: Fraction(1, 64) for value in range(64)}


FORK = """
import os
from discreet.noise import discrete_laplace, rounded_gaussian
draw = lambda: (discrete_laplace(1000, 20).tolist(), rounded_gaussian(1000, 20).tolist())
draw()
for _ in range(2):
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, repr(draw()).encode())
        os._exit(0)
    os.wait()
    print(os.read(read, 100_000).decode())
print(draw())
"""


def test_forked_children_draw_different_noise() -> None:
    """Equal vectors of 40 values would have a probability below 2^−400."""
    home = {**os.environ, "PYTHONPATH": str(Path(table_module.__file__).parents[2])}
    command = [sys.executable, "-c", FORK]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300, env=home)
    lines = run.stdout.split("\n")[:3]
    assert all(line.startswith("([") for line in lines)
    assert len(set(lines)) == 3


def test_a_tape_is_read_to_its_end() -> None:
    """The enumeration itself: two bits, and a third only after 3, give four plus one outcomes."""
    found = every_outcome(lambda tape: (first, tape.big(1)) if (first := tape.big(2)) == 3 else first)
    assert found == {
        0: Fraction(1, 4),
        1: Fraction(1, 4),
        2: Fraction(1, 4),
        (3, 0): Fraction(1, 8),
        (3, 1): Fraction(1, 8),
    }
    assert Tape(5).big(3) == 5


def test_one_table_is_not_another_whatever_is_in_it() -> None:
    for one in (InversionTable.build([1], SMALL_SIZES), Digits((), 0, 0)):
        assert (one == replace(one)) is False
