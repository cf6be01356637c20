"""Private selection of a candidate with a high score; the scores are not released.

Scores are exact integers or fractions. Neighbours: two tables that differ by adding or removing one person; every score
moves by at most `sensitivity`. Scores are `monotone` if one person moves them all the same way (counts of persons do):
then half the noise is enough.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral

import numpy as np

from discreet.trusted.ring_a.bits import SystemWords, Words
from discreet.trusted.ring_a.exact import figure
from discreet.trusted.ring_a.loss import Batch, Pure
from discreet.trusted.ring_b.choice import coins, decays, weighted

Score = int | Fraction


@dataclass(frozen=True)
class Selection:
    """The base of selection mechanisms: the epsilon of one choice, and the sensitivity and monotonicity of the
    scores."""

    epsilon: Fraction
    sensitivity: Score = 1
    monotone: bool = False

    name = "selection"

    def __post_init__(self) -> None:
        if not isinstance(self.epsilon, Fraction) or self.epsilon <= 0:
            raise ValueError("epsilon must be a Fraction above 0")
        if exact([self.sensitivity])[0] <= 0:
            raise ValueError("sensitivity must be above 0")

    @property
    def rate(self) -> Fraction:
        """The weight of one unit of score in the exponent: ε/(2Δ), or ε/Δ for monotone scores."""
        return self.epsilon / (self.sensitivity if self.monotone else 2 * self.sensitivity)

    def loss(self) -> Pure | Batch:
        """Of one choice: pure ε."""
        return Pure(self.epsilon)

    def half_width(self, confidence: float, candidates: int) -> float:
        """With `confidence`, the chosen candidate's score is the best one's or so much below (Corollary 3.12)."""
        return math.log(candidates / (1 - confidence)) / float(self.rate)

    def describe(self) -> str:
        """The mechanism in words, with its rate."""
        return f"{self.name}, {figure(self.rate)} a unit of score"


@dataclass(frozen=True)
class ExponentialMechanism(Selection):
    """Candidate i with probability proportional to e^(rate·score_i) (Dwork & Roth 2014, Definition 3.4).

    Units: those of the scores. Privacy (Theorem 3.10): between neighbours, e^(rate·score) changes by a factor of at
    most e^(rate·Δ), and so does the sum over all candidates: rate = ε/(2Δ) gives pure ε. If the scores are monotone,
    the two factors lie on the same side of 1 and divide each other, so rate = ε/Δ does. More than pure ε holds: the
    logarithms of the probability ratios of all candidates lie in an interval of length ε (bounded range; Durfee &
    Rogers 2019), so the release is (ε²/8)-zCDP (Cesar & Rogers 2021) where ε-DP alone gives ε²/2.

    Sampling: weights 2^192·e^(−rate·(best − score)) are below the truth by less than 2 each (`decays`) and the best
    one's is exact. So for n candidates the total variation error is below 2n·2^−192 plus that of `weighted`: below
    2^−150 for up to 2^40 candidates.
    """

    name = "exponential mechanism"

    def release(self, scores: Sequence[Score], words: Words | None = None) -> int:
        """The place of the chosen candidate."""
        known, best = ranked(scores)
        return weighted(words or SystemWords(), decays(self.rate, [best - score for score in known]))


@dataclass(frozen=True)
class PermuteAndFlip(Selection):
    """In random order, toss for each candidate a coin with chance e^(−rate·(best − score)); the first head is chosen.

    Units: those of the scores. Here all coins are tossed, and one of the heads is chosen uniformly: the first head of a
    uniform order independent of the coins is a uniform one of the heads. The best candidate's coin always shows heads.

    Privacy (McKenna & Sheldon 2020, Theorem 1). Let E_i be independent with P(E_i ≥ t) = e^(−rate·t), t ≥ 0. Coin i is
    the event score_i + E_i ≥ best; given heads, score_i + E_i − best is distributed as E_i again. So the largest
    score_i + E_i is a uniform one of the heads: this is report noisy max with exponential noise (Ding, Kifer, Steinke
    et al. 2021). Fix the others' noise: i wins if E_i ≥ R, and a neighbour moves R by at most 2Δ, or Δ if the scores
    are monotone, whereby P(E_i ≥ R) changes by a factor of at most e^(rate·2Δ), or e^(rate·Δ): pure ε. It is never
    worse than the exponential mechanism of the same ε, but has no bounded range.

    Sampling: each chance is below the truth by less than 2·2^−192 and the coins are exact: for n candidates the total
    variation error is below 2n·2^−192 plus that of `weighted`, below 2^−150 for up to 2^40 candidates.
    """

    name = "permute-and-flip"

    def release(self, scores: Sequence[Score], words: Words | None = None) -> int:
        """The place of the chosen candidate."""
        source = words or SystemWords()
        known, best = ranked(scores)
        heads = np.flatnonzero(coins(source, decays(self.rate, [best - score for score in known])))
        return int(heads[weighted(source, [1] * len(heads))])


@dataclass(frozen=True)
class TopK(Selection):
    """The k best candidates, best first, each with its place only: one-shot top-k with Gumbel noise.

    Units: those of the scores; `epsilon` is the price of *one* of the `k` choices. Neighbours: one person added or
    removed, who moves every score by at most `sensitivity`, all of them the same way where they are `monotone`.

    Adding independent Gumbel noise of scale 1/rate to every score and taking the k largest is the same as k exponential
    mechanisms in turn, each over those not yet chosen (Durfee & Rogers 2019); that is how it is drawn.

    Privacy: k exponential mechanisms chosen one after the other, each ε-DP whatever the earlier outcomes: pure k·ε
    (sequential composition, Theorem 3.14). The loss is stated as a batch of k pure losses, which the Gaussian filter
    may charge at less. Each choice has bounded range ε, so together they are (k·ε²/8)-zCDP, a quarter of what k pure
    losses cost there.

    Sampling: k times the error of the exponential mechanism.
    """

    k: int = 1

    name = "one-shot top-k"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k < 1:
            raise ValueError("k must be at least 1")

    def loss(self) -> Batch:
        """Of all k choices: a batch of k pure ε."""
        return Batch((Pure(self.epsilon),) * self.k)

    def half_width(self, confidence: float, candidates: int) -> float:
        """With `confidence`, each choice's score is that of the best one left or at most so much below."""
        return super().half_width(confidence, candidates * self.k)

    def release(self, scores: Sequence[Score], words: Words | None = None) -> list[int]:
        """The places of the k chosen candidates, in the order in which they were chosen."""
        source, left = words or SystemWords(), list(range(len(scores)))
        known = exact(scores)
        if len(known) < self.k:
            raise ValueError("fewer candidates than k")
        chosen = []
        for _ in range(self.k):
            best = max(known[place] for place in left)
            weights = decays(self.rate, [best - known[place] for place in left])
            chosen.append(left.pop(weighted(source, weights)))
        return chosen


def ranked(scores: Sequence[Score]) -> tuple[list[Score], Score]:
    """The scores and the best of them."""
    known = exact(scores)
    if not known:
        raise ValueError("no candidates")
    return known, max(known)


def exact(scores: Sequence[Score]) -> list[Score]:
    """The scores as integers and fractions. Raises ValueError on anything else, floats above all."""
    return [score if type(score) is int else _exact(score) for score in scores]


def _exact(score: Score) -> Score:
    if isinstance(score, Fraction):
        return score
    if isinstance(score, bool) or not isinstance(score, Integral):
        raise ValueError("scores must be integers or fractions")
    return int(score)
