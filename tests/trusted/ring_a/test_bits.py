"""Where randomness comes from: the operating system, for every word."""

from __future__ import annotations

import os

import numpy as np
import pytest

from discreet.trusted.ring_a.bits import SystemWords, whole

KIND = "exact"


@pytest.mark.parametrize("bits", [1, 8, 15, 16, 17, 63, 64, 65, 128, 1_000])
def test_every_word_is_what_the_operating_system_gave(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The highest bits of fresh bytes, and of nothing else: what it gives is seen, and asked for anew each time."""
    given: list[bytes] = []
    urandom = os.urandom

    def seen(size: int) -> bytes:
        given.append(urandom(size))
        return given[-1]

    monkeypatch.setattr(os, "urandom", seen)
    source = SystemWords()
    for _ in range(2):
        drawn = source.big(bits)
        fresh = given.pop()
        assert not given
        assert drawn == int.from_bytes(fresh, "little") >> (8 * len(fresh) - bits)
    if bits <= 64:
        words = source.integers(bits, 50)
        (fresh,) = given
        width = words.dtype.itemsize
        places = range(0, len(fresh), width)
        expected = [int.from_bytes(fresh[at : at + width], "little") >> (8 * width - bits) for at in places]
        assert words.tolist() == expected


@pytest.mark.parametrize("bits", [1, 16, 64, 65, 200])
def test_every_bit_of_a_word_is_drawn(bits: int) -> None:
    """Each bit is 1 in half of 2,000 words, within seven deviations."""
    source = SystemWords()
    drawn = [[source.big(bits) for _ in range(2_000)], [int(value) for value in whole(source, bits, 2_000)]]
    for words in drawn:
        assert all(abs(sum(word >> place & 1 for word in words) - 1_000) < 157 for place in range(bits))
        assert max(words) < 1 << bits


def test_no_word_is_drawn_for_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert whole(SystemWords(), 63, 3).dtype == np.int64
    monkeypatch.setattr(os, "urandom", lambda size: b"" if size == 0 else pytest.fail("a word is drawn"))
    assert SystemWords().integers(0, 3).tolist() == [0, 0, 0]
    assert SystemWords().big(0) == 0


class Given:
    """Words that are asked for one after another, each with its own bits and number of them."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []

    def integers(self, bits: int, size: int) -> np.ndarray:
        self.asked.append((bits, size))
        return np.array([(1 << bits) - 1 - place for place in range(size)], np.uint64)

    def big(self, bits: int) -> int:
        raise AssertionError(bits)


@pytest.mark.parametrize(
    ("bits", "asked"),
    [(5, [5]), (63, [63]), (64, [1, 63]), (126, [63, 63]), (127, [1, 63, 63]), (189, [63, 63, 63])],
)
def test_long_words_are_made_of_words_of_63_bits(bits: int, asked: list[int]) -> None:
    """Each bit of each is a bit of the word, the first ones the highest."""
    words = Given()
    expected = [0, 0]
    for part in asked:
        expected = [(one << part) | ((1 << part) - 1 - place) for place, one in enumerate(expected)]
    assert whole(words, bits, 2).tolist() == expected
    assert words.asked == [(part, 2) for part in asked]


def test_words_have_0_to_64_bits() -> None:
    source = SystemWords()
    for bits in (-1, 65):
        with pytest.raises(ValueError, match="0 to 64 bits"):
            source.integers(bits, 1)
    for bits in range(65):
        words = source.integers(bits, 3)
        assert words.dtype == (np.uint16 if bits <= 16 else np.uint64)
        assert all(0 <= int(word) < 1 << bits for word in words)


@pytest.mark.parametrize("bits", [1, 7, 8, 9, 15, 16, 17, 24])
def test_no_more_bytes_are_asked_for_than_a_word_has(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(os, "urandom", lambda size: asked.append(size) or b"\xff" * size)
    assert SystemWords().big(bits) == (1 << bits) - 1
    assert asked == [-(-bits // 8)]
