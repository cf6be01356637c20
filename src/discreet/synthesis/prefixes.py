"""Finds prefixes of short texts, as postal codes and codes of diagnoses, by looks at noisy counts.

A look counts the rows whose value begins with a prefix that was told before and one more letter of ASCII. Which
letters there are is public, so a count needs no threshold: it is told from noise as that of a number's cell is, and a
look costs what one at a number does. Values that are found by themselves have cells of their own, so a prefix counts
what is left. What is looked at next follows from noisy counts alone, and is bounded whatever the rows hold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist

from discreet.trusted.ring_a.table import Column, Type, Value
from discreet.trusted.ring_c.coding import ListedCells

SHORT = 12
"""Texts that are declared to be no longer may be codes, whose first letters group them."""
DEEPEST = 3
"""Prefixes have so many letters at most."""
FALSE = 0.1
"""Of prefixes that no row has, a look tells so many on average at most."""
MOST_EXTENDED = 64
"""So many prefixes are looked at with one more letter."""
MOST_PREFIXES = 128
"""So many have cells in the end."""
_REST = 2
"""A prefix keeps a cell beside those of longer ones if what is left of its count is so many times the noise."""
_LETTERS = tuple(chr(one) for one in range(32, 127))


def looks_of(column: Column) -> int:
    """How often a column whose values are found is looked at for prefixes, which its declaration says: for each letter
    once, and never for the last."""
    if column.type is not Type.TEXT or column.length is None or column.length > SHORT:
        return 0
    return min(DEEPEST, column.length - 1)


@dataclass(frozen=True)
class FoundPrefixes:
    """The prefixes that were told from noise in looks at a column, and their noisy counts, each with noise of deviation
    `sigma`. `values` have cells of their own and are not in these counts. Where a look had no prefix to go on from, it
    counted the column's cells as they stay, and the `whole` column is known by it."""

    column: Column
    values: tuple[Value, ...]
    sigma: float
    counts: Mapping[str, int] = field(default_factory=dict)
    whole: tuple[tuple[int, ...], ...] = ()

    def looked_at(self, turn: int) -> ListedCells:
        """The cells of the look of this turn, from 0: each prefix of so many letters that was told, the most frequent
        first, with one more letter."""
        longer = self._longer(turn)
        return self._listed(longer) if longer else self.cells

    def after(self, turn: int, counts: Sequence[int]) -> FoundPrefixes:
        """With what the look of this turn told."""
        longer = self._longer(turn)
        if not longer:
            return replace(self, whole=(*self.whole, tuple(counts)))
        clear = NormalDist(0, self.sigma).inv_cdf(1 - FALSE / len(longer))
        first = len(self.values)
        seen = zip(longer, counts[first : first + len(longer)], strict=True)
        return replace(self, counts={**self.counts, **{prefix: count for prefix, count in seen if count > clear}})

    @property
    def cells(self) -> ListedCells:
        """The column's cells: its values; the prefixes that were told, where more than longer ones is left of them; and
        what has neither."""
        return self._listed(sorted(one for one in self._frequent(list(self.counts), MOST_PREFIXES) if self._left(one)))

    def _listed(self, prefixes: Sequence[str]) -> ListedCells:
        return ListedCells(self.column, self.values, other=True, null=self.column.nulls, prefixes=tuple(prefixes))

    def _longer(self, turn: int) -> list[str]:
        told = [""] if not turn else self._frequent([one for one in self.counts if len(one) == turn], MOST_EXTENDED)
        return [one + letter for one in told for letter in _LETTERS]

    def _frequent(self, prefixes: Sequence[str], most: int) -> list[str]:
        return sorted(prefixes, key=lambda one: (-self.counts[one], one))[:most]

    def _left(self, prefix: str) -> bool:
        longer = [one for one in self.counts if len(one) == len(prefix) + 1 and one.startswith(prefix)]
        left = self.counts[prefix] - sum(self.counts[one] for one in longer)
        return not longer or left > _REST * self.sigma * math.sqrt(1 + len(longer))
