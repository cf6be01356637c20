"""The sparse vector technique: many questions "is the answer at least the threshold?", of which few say yes."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NoReturn

from discreet.trusted.ring_a import laplace
from discreet.trusted.ring_a.additive import Laplace
from discreet.trusted.ring_a.bits import SystemWords, Words
from discreet.trusted.ring_a.exact import figure
from discreet.trusted.ring_a.loss import Pure
from discreet.trusted.ring_a.sampler import positive, sample
from discreet.trusted.ring_b import geometric


@dataclass(frozen=True)
class AboveThreshold:
    """Says of each integer answer whether it seems to be at least `threshold`; stops after `limit` times yes.

    Units: lattice steps (persons, for counts); threshold and answers are integers. Neighbours: one person added or
    removed, who moves each answer by at most `sensitivity` = Δ, a whole number. `monotone`: one person moves all
    answers of the run the same way, as with counts of persons. However many answers are below, only `epsilon` is paid.

    The threshold gets noise Z of scale Δ/ε₁ once, each answer q fresh noise V of scale w·limit·Δ/ε₂ with w = 2, or w =
    1 if monotone, and yes is q + V ≥ threshold + Z. The noise is discrete Laplace; with `one_sided`, it is geometric,
    of half the variance (Liu et al. 2024), and its mean is taken off the threshold.

    Privacy (Dwork & Roth 2014, Theorems 3.23 and 3.25; constants as in Lyu, Su & Li 2017, with one threshold noise for
    the whole run), here for noise on the integers. Both kinds of noise of scale s satisfy, for every integer r,
    (i) P(X = r + Δ) ≥ e^(−Δ/s)·P(X = r), and (ii) P(X ≥ r + 1) ≥ e^(−1/s)·P(X ≥ r). Let the analyst choose questions
    from earlier answers, fix a sequence of yes and no, and thereby the questions, with answers q and q′ on neighbours.
    Given Z = z, the replies are independent. Compare Z = z on the one table with Z = z + Δ on the other. The map is one
    to one on the integers, and by (i) costs a factor of at most e^(ε₁). No: q′ + V < threshold + z + Δ is at least as
    likely as q + V < threshold + z, as q′ ≤ q + Δ. Yes: V must be larger by Δ + q − q′ ≤ 2Δ, or by at most Δ if q′ ≥ q;
    by (ii) a factor of at most e^(ε₂/limit), at most `limit` times. If the answers are monotone and q′ ≤ q, compare z
    with z instead: no becomes more likely, yes needs V larger by at most Δ. In all e^(ε₁ + ε₂) = e^ε: pure ε.
    The probability of a reply is that of V ≥ r or V < r = threshold + z − q, and the two add up to 1: "at least" and
    "below" leave no place for ties, so ≥ here is > at the integer threshold one lower.

    The split ε₁ : ε₂ = 1 : (w·limit)^(2/3) makes the variance of V − Z least (Lyu, Su & Li 2017).

    Other questions while it is open: reserve the whole loss when it opens. Pure differential privacy of interactive
    mechanisms composes concurrently as that of single releases does (Vadhan & Wang 2021; Lyu 2022; Vadhan & Zhang
    2023): any ε-DP interactive mechanism can be simulated by interactive post-processing of one randomised response
    with ε. So it may be counted as that one release, made at the moment it opened, in any filter for adaptive releases
    (Haney, Shoemate, Tian, Vadhan et al. 2023). Nothing is paid back if it is left before its limit.

    Sampling: every noise value is within 2^−128 in total variation; 2^27 questions are within 2^−100.
    """

    threshold: int
    epsilon: Fraction
    sensitivity: int = 1
    limit: int = 1
    monotone: bool = False
    one_sided: bool = False

    name = "above threshold"

    def __post_init__(self) -> None:
        if not isinstance(self.epsilon, Fraction) or self.epsilon <= 0:
            raise ValueError("epsilon must be a Fraction above 0")
        if not all(type(number) is int for number in (self.threshold, self.sensitivity, self.limit)):
            raise ValueError("threshold, sensitivity and limit must be integers")
        if self.sensitivity < 1 or self.limit < 1:
            raise ValueError("sensitivity and limit must be at least 1")

    @property
    def scales(self) -> tuple[Fraction, Fraction]:
        """The scale of the threshold's noise, and that of an answer's."""
        moves = self.limit if self.monotone else 2 * self.limit
        root = _cube_root(moves * moves * 10**9)  # 1000·moves^(2/3); any split is safe
        first = self.epsilon * Fraction(1000, 1000 + root)
        return self.sensitivity / first, moves * self.sensitivity / (self.epsilon - first)

    def loss(self) -> Pure:
        """The loss of a whole run, to be reserved when it opens."""
        return Pure(self.epsilon)

    def noisy_threshold(self, words: Words | None = None) -> int:
        """The threshold with the noise of one run, which all its replies share; as secret as the answers."""
        return self.threshold - self._centre + int(sample(self._threshold_noise, 1, words or SystemWords())[0])

    def reply(self, answer: int, noisy_threshold: int, words: Words | None = None) -> bool:
        """One reply of the run with this noisy threshold, with fresh noise on the exact answer. Whoever calls it counts
        how often that was yes."""
        return answer + int(sample(self._answer_noise, 1, words or SystemWords())[0]) >= noisy_threshold

    @cached_property
    def _threshold_noise(self) -> Any:
        return self._sampler(self.scales[0])

    @cached_property
    def _answer_noise(self) -> Any:
        return self._sampler(self.scales[1])

    @property
    def _centre(self) -> int:
        """The mean of what one-sided noise adds to the threshold."""
        first, second = self.scales
        return round(first - second) if self.one_sided else 0

    def _sampler(self, scale: Fraction) -> Any:
        return (geometric.sampler if self.one_sided else laplace.sampler)(positive(scale, "scale"))

    def open(self, words: Words | None = None) -> Watch:
        """A run: the threshold's noise is drawn now."""
        return Watch(self, words or SystemWords())

    def release(self, answers: Iterable[int], words: Words | None = None) -> list[bool]:
        """The replies to answers known beforehand, up to the last that the limit allows."""
        watch, replies = self.open(words), []
        for answer in answers:
            if watch.halted:
                break
            replies.append(watch.ask(answer))
        return replies

    def half_width(self, confidence: float, questions: int) -> float:
        """With `confidence`, each yes stands for an answer ≥ threshold − h, each no for one ≤ threshold + h.

        A union bound over the threshold's noise and each answer's (as in Theorem 3.24), half of the failures each. For
        one-sided noise, Z ≤ a and V ≤ b but for these, so Z − V lies between −b and a.
        """
        first, second = self.scales
        if not self.one_sided:
            sure = (1 + confidence) / 2
            return Laplace(first).half_width(sure) + Laplace(second).half_width(sure, questions)
        miss, centre = (1 - confidence) / 2, round(first - second)
        return max(float(first) * math.log(1 / miss) - centre, float(second) * math.log(questions / miss) + centre)

    def describe(self) -> str:
        """The scales of both noises in words, in lattice steps."""
        first, second = self.scales
        return f"{self.name}, noise of scale {figure(first)} on the threshold, {figure(second)} on each answer"


class Watch:
    """An open run of `AboveThreshold`: ask until it halts.

    It belongs to the process that opened it and cannot be copied or stored: a copy would say yes `limit` times again
    with the same threshold noise. Its noise shows in no representation.
    """

    __slots__ = ("_bar", "_lock", "_process", "_words", "_yes", "mechanism")

    def __init__(self, mechanism: AboveThreshold, words: Words) -> None:
        self.mechanism, self._words = mechanism, words
        self._bar = mechanism.noisy_threshold(words)
        self._yes = 0
        self._process, self._lock = os.getpid(), threading.Lock()

    @property
    def halted(self) -> bool:
        """Whether the last yes has been said."""
        return self._yes >= self.mechanism.limit

    def ask(self, answer: int) -> bool:
        """Whether the exact answer seems to be at least the threshold. Raises ValueError once halted."""
        if isinstance(answer, bool) or not isinstance(answer, int):
            raise ValueError("answers must be integers")
        if os.getpid() != self._process:
            raise ValueError("the run belongs to another process")
        with self._lock:
            if self.halted:
                raise ValueError("the run has halted")
            reply = self.mechanism.reply(answer, self._bar, self._words)
            self._yes += reply
            return reply

    def __repr__(self) -> str:
        return f"<{self.mechanism.name}, {'halted' if self.halted else 'open'}>"

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        raise TypeError("a run cannot be copied or stored")


def _cube_root(number: int) -> int:
    """⌊∛number⌋ by bisection."""
    low, high = 0, 1 << (number.bit_length() // 3 + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**3 <= number else (low, middle)
    return low
