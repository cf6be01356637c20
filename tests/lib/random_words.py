"""What stands in for the source of random words: a seeded one, words that are given, and every word there is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable
from fractions import Fraction

import numpy as np


class SeededWords:
    """The same words every time."""

    def __init__(self, seed: int) -> None:
        self.source = np.random.Generator(np.random.PCG64(seed))

    def integers(self, bits: int, size: int) -> np.ndarray:
        kind = np.uint16 if bits <= 16 else np.uint64
        return self.source.integers(0, 1 << bits, size, dtype=kind) if bits else np.zeros(size, kind)

    def big(self, bits: int) -> int:
        return int.from_bytes(self.source.bytes((bits + 7) // 8), "little") >> (-bits % 8)


class Script:
    """Plays the given integers, one for each word that is drawn."""

    def __init__(self, *words: int) -> None:
        self.words = list(words)

    def big(self, bits: int) -> int:
        word = self.words.pop(0)
        assert 0 <= word < 1 << bits
        return word

    def integers(self, bits: int, size: int) -> np.ndarray:
        return np.array([self.big(bits) for _ in range(size)], np.uint16 if bits <= 16 else np.uint64)


class Branch(Exception):
    """The tape ended where so many more bits were wanted."""


class Tape(Script):
    """Plays one tape, and says where it ends."""

    def big(self, bits: int) -> int:
        if bits and not self.words:
            raise Branch(bits)
        return super().big(bits) if bits else 0


def every_outcome(run: Callable[[Tape], Hashable]) -> dict[Hashable, Fraction]:
    """The exact distribution of `run` over all bit strings it can ask for."""
    found: dict[Hashable, Fraction] = defaultdict(Fraction)
    open_tapes: list[tuple[tuple[int, ...], int]] = [((), 0)]
    while open_tapes:
        tape, length = open_tapes.pop()
        try:
            outcome = run(Tape(*tape))
        except Branch as branch:
            (bits,) = branch.args
            open_tapes += [((*tape, value), length + bits) for value in range(1 << bits)]
        else:
            found[outcome] += Fraction(1, 1 << length)
    assert sum(found.values()) == 1
    return dict(found)
