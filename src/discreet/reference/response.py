"""Randomised response: each person's answer is randomised before anybody sees it, and totals are estimated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.trusted.ring_a.bits import SystemWords, Words
from discreet.trusted.ring_a.exact import ceiling, exp_bounds, log_bounds
from discreet.trusted.ring_a.loss import Pure

BITS = 64


@dataclass(frozen=True)
class RandomisedResponse:
    """One of `choices` answers, numbered from 0: the truth in `truth` of 2^bits cases, any other one in `other` each.

    Units: one report of one person (the local model: who collects the reports never holds the truth). Neighbours: two
    answers of that person, whatever they are; the number of persons is public.
    Privacy (Dwork & Roth 2014, Claim 3.5): a report has probability truth/2^bits or other/2^bits, so the ratio between
    two answers is at most truth/other ≤ e^epsilon: pure ε, with nothing rounded in the wrong direction.
    Sampling: one uniform number of `bits` bits a report, so the distribution is exactly the stated one.
    """

    truth: int
    other: int
    choices: int
    bits: int
    epsilon: Fraction

    name = "randomised response"

    def __post_init__(self) -> None:
        if self.choices < 2 or not 0 < self.bits <= BITS:
            raise ValueError("two choices at least, and 1 to 64 bits")
        if self.truth + (self.choices - 1) * self.other != 1 << self.bits:
            raise ValueError("the cases must add up to 2^bits")
        if not 0 < self.other < self.truth:
            raise ValueError("the truth must be likelier than any other answer")

    def loss(self) -> Pure:
        """The loss of one report."""
        return Pure(self.epsilon)

    def release(self, answers: Sequence[int], words: Words | None = None) -> list[int]:
        """A report for each answer, each with its own randomness."""
        if any(isinstance(answer, bool) or not 0 <= answer < self.choices for answer in answers):
            raise ValueError("answers are numbered from 0 to choices − 1")
        exact = np.array(answers, np.uint64)
        drawn = (words or SystemWords()).integers(self.bits, len(answers)).astype(np.uint64)
        # below `truth` the subtraction wraps around; those places take the truth
        instead = (drawn - np.uint64(self.truth)) // np.uint64(self.other)
        instead += (instead >= exact).astype(np.uint64)
        reports: list[int] = np.where(drawn < np.uint64(self.truth), exact, instead).tolist()
        return reports

    def channel(self) -> list[list[Fraction]]:
        """channel[a][r]: the probability of report r given answer a."""
        whole = 1 << self.bits
        truth, other = Fraction(self.truth, whole), Fraction(self.other, whole)
        return [
            [truth if place == answer else other for place in range(self.choices)] for answer in range(self.choices)
        ]

    def estimate(self, reports: Sequence[int]) -> list[Fraction]:
        """Unbiased estimates of how many persons hold each answer, from how many reports named it.

        E[reports of v] = n·other + x_v·(truth − other) in units of 2^−bits, for x_v of n persons.
        """
        if len(reports) != self.choices:
            raise ValueError("one total for each choice")
        persons, gain = sum(reports), self.truth - self.other
        return [Fraction((total << self.bits) - persons * self.other, gain) for total in reports]

    def variance(self, persons: int, holding: int) -> Fraction:
        """The exact variance of the estimate for an answer that `holding` of the persons hold.

        Its reports are a sum of independent coins, `holding` of chance truth and the others of chance other.
        """
        whole, gain = 1 << self.bits, self.truth - self.other
        spread = holding * self.truth * (whole - self.truth) + (persons - holding) * self.other * (whole - self.other)
        return Fraction(spread, gain * gain)

    def describe(self) -> str:
        """The mechanism in words, with the probability of the truth."""
        return f"{self.name}, the truth with probability {self.truth / (1 << self.bits):.6g}"


def randomised_response(epsilon: Fraction, choices: int = 2) -> RandomisedResponse:
    """The likeliest truth that is ε-DP, e^ε/(e^ε + choices − 1) (Kairouz, Oh & Viswanath 2016), rounded down.

    With E ≤ e^ε rational, other = ⌈2^64/(E + choices − 1)⌉. As the cases add up to 2^64, truth = 2^64 − (choices −
    1)·other ≤ E·other. Raises ValueError where ε is so small that 64 bits cannot tell truth from other.
    """
    if epsilon <= 0 or choices < 2:
        raise ValueError("epsilon must be above 0, and choices at least 2")
    low, _ = exp_bounds(min(Fraction(epsilon), Fraction(100)), 128)
    other = -(-(1 << BITS) // (low + choices - 1))
    return RandomisedResponse((1 << BITS) - (choices - 1) * other, other, choices, BITS, Fraction(epsilon))


def two_coins() -> RandomisedResponse:
    """The textbook's: heads, tell the truth; tails, a second coin says yes or no. Truth in 3 of 4 cases: exactly ln 3.

    With answers 0 = no and 1 = yes, P(yes) = 1/4 + p/2, and the estimate is 2·(share of yes) − 1/2 of the persons.
    `epsilon` is ln 3 rounded up.
    """
    return RandomisedResponse(3, 1, 2, 2, ceiling(log_bounds(Fraction(3))[1], 30))
