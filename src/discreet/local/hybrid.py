"""The hybrid mechanism for the mean of bounded numbers, on integers at both ends."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from discreet.local.channels import UNIT, Counts, Floats, Odds
from discreet.local.draws import MOST, below
from discreet.trusted.ring_a.bits import Words
from discreet.trusted.ring_a.exact import sqrt_ceiling

FINENESS = 128


@dataclass(frozen=True)
class Hybrid:
    """A number of steps k, 0 ≤ k ≤ N, becomes one of J + 2 reports, J = N·stride + width (after Wang, Xiao, Yang, Zhao,
    Hui, Shin, Shin & Yu 2019, whose mechanism is one on real numbers).

    A coin that does not look at k, `mix` of 2^20 cases, chooses between two channels:

    * A window (their piecewise mechanism): the `width` reports from k·stride on have weight A, all others below J have
      weight B. The mean of the report is linear in k, so (y·T − B·J(J − 1)/2 − (A − B)·width(width − 1)/2)/((A −
      B)·width·stride), T = width·A + (J − width)·B, is an unbiased estimate of k.
    * Two answers (Duchi, Jordan & Wainwright 2018): the report J + 1 with k·A + (N − k)·B of N(A + B) cases, else J;
      N((A + B)·[y = J + 1] − B)/(A − B) is an unbiased estimate of k.

    In either channel the weights of a report for two answers differ by a factor of at most A/B: pure ε. Which one was
    chosen is seen in the report, and the coin is the same for all answers.
    """

    steps: int
    odds: Odds
    stride: int
    width: int
    mix: int

    name = "hybrid mechanism"

    @property
    def inputs(self) -> int:
        """N + 1 answers."""
        return self.steps + 1

    @property
    def window(self) -> int:
        """J, how many reports the window has."""
        return self.steps * self.stride + self.width

    @property
    def outputs(self) -> int:
        """J + 2 reports."""
        return self.window + 2

    @cached_property
    def whole(self) -> int:
        """T."""
        return self.width * self.odds[0] + (self.window - self.width) * self.odds[1]

    @cached_property
    def pair(self) -> int:
        """N(A + B), how many equally likely cases the two answers have."""
        return self.steps * sum(self.odds)

    def draw(self, answer: int, words: Words) -> int:
        """A report: through the window in `mix` of 2^20 cases, else one of the two answers."""
        likely, unlikely = self.odds
        if below(words, UNIT) >= self.mix:
            high = answer * likely + (self.steps - answer) * unlikely
            return self.window + (below(words, self.pair) < high)
        start, place = answer * self.stride, below(words, self.whole)
        outside = place - self.width * likely
        if outside < 0:
            return start + place // likely
        instead = outside // unlikely
        return instead + (self.width if instead >= start else 0)

    def weights(self, answer: int) -> list[int]:
        """How many of 2^20·T·N(A + B) equally likely cases give each report: the window's, then J and J + 1."""
        (likely, unlikely), start = self.odds, answer * self.stride
        inside = range(start, start + self.width)
        window = [likely if report in inside else unlikely for report in range(self.window)]
        high = answer * likely + (self.steps - answer) * unlikely
        kept, rest = self.mix * self.pair, (UNIT - self.mix) * self.whole
        return [*(weight * kept for weight in window), (self.pair - high) * rest, high * rest]

    @cached_property
    def numbers(self) -> Floats:
        """The unbiased estimate of k that each report stands for."""
        (a, b), w, j = self.odds, self.width, self.window
        shift = Fraction(b * j * (j - 1), 2) + Fraction((a - b) * w * (w - 1), 2)
        gain = (a - b) * w * self.stride
        slope, start = Fraction(self.whole, gain), -shift / gain
        pair = [Fraction(-b * self.steps, a - b), Fraction(a * self.steps, a - b)]
        return np.concatenate([np.arange(j) * float(slope) + float(start), [float(value) for value in pair]])

    def mean(self, counts: Counts) -> float:
        """The unbiased estimate of the mean of k, from how often each report came."""
        return float(counts @ self.numbers / counts.sum())

    def variances(self, answer: int) -> tuple[Fraction, Fraction]:
        """The exact variance of one report's estimate of k, through the window and through the two answers."""
        (a, b), w, j, s = self.odds, self.width, self.window, self.stride
        start = answer * s
        squares = b * _squares(j) + (a - b) * (_squares(start + w) - _squares(start))
        total = b * (j * (j - 1) // 2) + (a - b) * (w * start + w * (w - 1) // 2)
        across = Fraction(squares, self.whole) - Fraction(total, self.whole) ** 2
        low, high = Fraction(-b * self.steps, a - b), Fraction(a * self.steps, a - b)
        likely = Fraction(answer * a + (self.steps - answer) * b, self.pair)
        return across * Fraction(self.whole, (a - b) * w * s) ** 2, likely * (1 - likely) * (high - low) ** 2

    def variance(self, answer: int) -> Fraction:
        """The same through the channel as it is: both being unbiased, the mixture's variance is theirs mixed."""
        across, pair = self.variances(answer)
        return (self.mix * across + (UNIT - self.mix) * pair) / UNIT

    @cached_property
    def worst(self) -> Fraction:
        """The largest variance over all answers: it is a quadratic, and symmetric about the middle of the range."""
        return max(self.variance(0), self.variance(self.steps // 2))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, without the odds."""
        return {
            "mechanism": self.name,
            "inputs": self.inputs,
            "stride": self.stride,
            "width": self.width,
            "mix": self.mix,
        }


def _squares(count: int) -> int:
    """0² + 1² + … + (count − 1)²."""
    return (count - 1) * count * (2 * count - 1) // 6


@lru_cache(maxsize=256)
def hybrid(steps: int, odds: Odds) -> Hybrid | None:
    """The one of least worst variance, of windows near the best one on real numbers, N·stride·√(B/A), and mixtures.

    For a given window, each end's and the middle's variance is linear in the mixture, so the best mixture is all of
    one channel or the one at which the two are equal. None if a client could not draw any of them. Where several are
    the least, the first: all clients must try them in this order.
    """
    stride = -(-FINENESS // steps)
    centre = int(sqrt_ceiling(Fraction(odds[1], odds[0])) * steps * stride)
    found: list[Hybrid] = []
    widths = {max(1, centre + offset) for offset in (-1, 0, 1)}
    for width in sorted(widths, key=lambda one: one % 8):  # any order does; documents were written with this one
        one = Hybrid(steps, odds, stride, width, UNIT)
        if max(one.whole, one.pair) > MOST:
            continue
        (end, end_pair), (middle, middle_pair) = one.variances(0), one.variances(steps // 2)
        slope = (end - end_pair) - (middle - middle_pair)
        equal = int((middle_pair - end_pair) / slope * UNIT) if slope else 0
        mixes = {0, UNIT, min(UNIT, max(0, equal))}
        found += [Hybrid(steps, odds, stride, width, mix) for mix in sorted(mixes)]
    return min(found, key=lambda one: one.worst, default=None)
