"""Top-k of many public counts, by the cheaper of two ways: one noisy histogram, or k exponential mechanisms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import nlargest

from discreet.trusted.ring_a.additive import Laplace
from discreet.trusted.ring_a.bits import SystemWords, Words
from discreet.trusted.ring_a.loss import Batch, DiscreteLaplace, Pure
from discreet.trusted.ring_b.choice import order
from discreet.trusted.ring_b.selection import PermuteAndFlip


@dataclass(frozen=True)
class Winners:
    """The k candidates with the largest counts, best first; the candidates are public, none comes from the data.

    Units: those of the counts, integers. Neighbours: one person added or removed, who moves all counts the same way,
    each by at most `each`, and by at most `total` in all. Counts of distinct persons have each = 1 and total = K, the
    number of candidates a person may have; counts of rows each = total = R, or each = r and total = K·r.

    Two ways, and the one with less noise is taken; which depends on these public numbers only (`together`).
    Together, where total < k·each, or counts are `counted`: discrete Laplace noise of scale total/ε on every count is
    pure ε (Dwork & Roth 2014, Theorem 3.6; see `Laplace`), and the k largest and their noisy counts follow from these
    noisy counts and a random order of ties. So for rows, total = each, any number of winners costs no more than one.
    One by one: permute-and-flip with ε/k among those not yet chosen. The counts that are left are monotone with
    sensitivity `each` whatever was chosen before, so each choice is pure ε/k (McKenna & Sheldon 2020, Theorem 1, with
    monotone scores; see `PermuteAndFlip`) and k of them pure ε (Theorem 3.14). The winners' counts are *not* covered.
    """

    epsilon: Fraction
    k: int = 1
    each: int = 1
    total: int = 1
    counted: bool = False

    name = "largest counts"

    def __post_init__(self) -> None:
        if not isinstance(self.epsilon, Fraction) or self.epsilon <= 0:
            raise ValueError("epsilon must be a Fraction above 0")
        if not all(type(number) is int and number >= 1 for number in (self.k, self.each, self.total)):
            raise ValueError("k, each and total must be integers, and at least 1")
        if self.each > self.total:
            raise ValueError("each is at most total")

    @property
    def together(self) -> bool:
        """Whether all counts get noise once."""
        return self.counted or self.total < self.k * self.each

    @property
    def noise(self) -> Laplace:
        """The noise on all counts."""
        return Laplace(self.total / self.epsilon)

    @property
    def choice(self) -> PermuteAndFlip:
        """The mechanism for each single choice."""
        return PermuteAndFlip(self.epsilon / self.k, self.each, monotone=True)

    def loss(self) -> DiscreteLaplace | Batch:
        """Of all winners: pure ε, as that of the noisy counts or as k choices of ε/k each."""
        if self.together:
            return self.noise.loss(self.total)
        return Batch((Pure(self.epsilon / self.k),) * self.k)

    def release(self, counts: Sequence[int], words: Words | None = None) -> list[int]:
        """The places of the winners, best first."""
        if self.together:
            return [place for place, _ in self._largest(counts, words)]
        self._check(counts)
        source, left, chosen = words or SystemWords(), list(range(len(counts))), []
        for _ in range(self.k):
            chosen.append(left.pop(self.choice.release([counts[place] for place in left], source)))
        return chosen

    def release_with_counts(self, counts: Sequence[int]) -> list[tuple[int, int]]:
        """The places of the winners with their noisy counts, which are largest and so on average too large.

        Raises ValueError where the counts would not be covered: write counted=True.
        """
        if not self.together:
            raise ValueError("the winners' counts are not covered: write counted=True")
        return self._largest(counts, None)

    def _largest(self, counts: Sequence[int], words: Words | None) -> list[tuple[int, int]]:
        self._check(counts)
        noisy, keys = self.noise.release(counts), order(words or SystemWords(), len(counts)).tolist()
        places = nlargest(self.k, range(len(noisy)), key=lambda place: (noisy[place], keys[place]))
        return [(place, noisy[place]) for place in places]

    def _check(self, counts: Sequence[int]) -> None:
        if len(counts) < self.k:
            raise ValueError("fewer candidates than k")
        if any(type(count) is not int for count in counts):
            raise ValueError("counts must be integers")

    def half_width(self, confidence: float, candidates: int) -> float:
        """With `confidence`, each winner's count is that of the best one left or at most so much below.

        Together: no noise is beyond h, so two counts in the wrong order differ by at most 2h (Theorem 3.8).
        """
        if self.together:
            return 2 * self.noise.half_width(confidence, candidates)
        return self.choice.half_width(confidence, candidates * self.k)

    def describe(self) -> str:
        """How the winners are found, in words: by one noise on all counts, or k times by a choice."""
        how = self.noise.describe() if self.together else f"{self.k} times {self.choice.describe()}"
        return f"{self.name}: {self.k}, by {how}"
