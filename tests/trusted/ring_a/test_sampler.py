"""What is drawn: so many values, in blocks, from the source that is given, or else from the operating system."""

from __future__ import annotations

import os
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.trusted.ring_a.sampler import BLOCK, LARGEST, positive, sample
from random_words import SeededWords

KIND = "exact"


class Counting:
    """Gives 0, 1, 2, … and remembers what it was asked for."""

    def __init__(self, *, wide: bool = False) -> None:
        self.wide, self.asked, self.sources = wide, [], []  # type: ignore[var-annotated]

    def draw(self, words: Any, size: int) -> np.ndarray:
        start = sum(self.asked)
        self.asked.append(size)
        self.sources.append(words)
        return np.arange(start, start + size).astype(object if self.wide else np.int64)


@pytest.mark.parametrize(
    ("cells", "asked"),
    [
        (0, []),
        (1, [1]),
        (BLOCK - 1, [BLOCK - 1]),
        (BLOCK, [BLOCK]),
        (BLOCK + 1, [BLOCK, 1]),
        (2 * BLOCK, [BLOCK, BLOCK]),
    ],
)
@pytest.mark.parametrize("wide", [False, True])
def test_every_cell_is_drawn_once_and_in_blocks(cells: int, asked: list[int], wide: bool) -> None:
    assert BLOCK == 2**16
    sampler, words = Counting(wide=wide), SeededWords(1)
    values = sample(sampler, cells, words)
    assert sampler.asked == asked
    assert all(source is words for source in sampler.sources)
    assert values.dtype == (object if wide else np.int64)
    assert values.tolist() == list(range(cells))


def test_no_negative_number_of_values_is_drawn() -> None:
    sampler = Counting()
    with pytest.raises(ValueError, match="negative"):
        sample(sampler, -1, SeededWords(1))
    assert not sampler.asked


def test_without_a_source_words_come_from_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "urandom", lambda size: b"\xff" * size)
    sampler = Counting()
    sample(sampler, 1)
    assert sampler.sources[0].big(9) == 511


@pytest.mark.parametrize(
    ("written", "width"),
    [
        (1, 1),
        ("2.5", Fraction(5, 2)),
        (0.1, Fraction(1, 10)),
        (Decimal("1e-30"), Fraction(1, 10**30)),
        (10**60, 10**60),
    ],
)
def test_a_width_is_what_is_written(written: Any, width: Any) -> None:
    assert positive(written, "sigma") == width
    assert isinstance(positive(written, "sigma"), Fraction)


@pytest.mark.parametrize("written", [0, -1, "0", "-1e-9", 10**60 + 1, "1e61", Fraction(10**60) + Fraction(1, 3)])
def test_a_width_is_above_nothing_and_has_an_end(written: Any) -> None:
    assert LARGEST == 10**60
    with pytest.raises(ValueError, match=r"^sigma must be above 0 and at most 10\^60$"):
        positive(written, "sigma")


@pytest.mark.parametrize("written", [True, None, "one", float("nan"), float("inf"), [1], b"1"])
def test_a_width_is_a_number(written: Any) -> None:
    with pytest.raises(ValueError, match=r"^scale must be a finite number$"):
        positive(written, "scale")
