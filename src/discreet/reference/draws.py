"""Many draws with replacement: from the exponential mechanism over private scores, and from public weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet.trusted.ring_a.bits import SystemWords, Words
from discreet.trusted.ring_a.loss import Batch
from discreet.trusted.ring_b.choice import decays, places
from discreet.trusted.ring_b.further_losses import BoundedRange
from discreet.trusted.ring_b.selection import Score, Selection, ranked


@dataclass(frozen=True)
class PublicDraws:
    """Independent places, each i with probability weights[i]/Σ weights, for weights that follow from no person.

    It reads nothing private, so it costs nothing; what is drawn may stay secret all the same.
    """

    draws: int

    def __post_init__(self) -> None:
        if self.draws < 0:
            raise ValueError("draws must not be negative")

    def release(self, weights: Sequence[int], words: Words | None = None) -> list[int]:
        """The places drawn. Raises ValueError unless all weights are whole numbers from 0 on, and one is above 0."""
        if not weights or any(type(weight) is not int or weight < 0 for weight in weights):
            raise ValueError("weights must be integers from 0 on")
        return places(words or SystemWords(), weights, self.draws)


@dataclass(frozen=True)
class ExponentialDraws(Selection):
    """Independent places, each i with probability proportional to e^(rate·score_i): exponential mechanisms beside each
    other on the same scores, each of `epsilon` (Dwork & Roth 2014, Definition 3.4).

    Units: those of the scores. Privacy: between neighbours the logarithms of all candidates' probability ratios in one
    draw lie in an interval of length ε (bounded range; see `ExponentialMechanism`), so each draw is ε-DP and
    (ε²/8)-zCDP (Cesar & Rogers 2021), and `draws` independent ones together draws·ε-DP and (draws·ε²/8)-zCDP.

    Sampling: the weights of `decays` are computed once; each draw errs as one exponential mechanism does, by less than
    2^−150 in total variation for up to 2^40 candidates.
    """

    draws: int = 1

    name = "exponential draws"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.draws < 0:
            raise ValueError("draws must not be negative")

    def loss(self) -> Batch:
        """Of all draws: a batch of bounded ranges of ε each."""
        return Batch((BoundedRange(self.epsilon),) * self.draws)

    @property
    def rho(self) -> Fraction:
        """The ρ of zero-concentrated differential privacy of all draws together."""
        return self.draws * self.epsilon**2 / 8

    def release(self, scores: Sequence[Score], words: Words | None = None) -> list[int]:
        """The places drawn."""
        known, best = ranked(scores)
        return places(words or SystemWords(), decays(self.rate, [best - score for score in known]), self.draws)
