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


def test_no_word_is_drawn_for_no_bit() -> None:
    assert SystemWords().integers(0, 3).tolist() == [0, 0, 0]
    assert SystemWords().big(0) == 0
    assert whole(SystemWords(), 63, 3).dtype == np.int64
