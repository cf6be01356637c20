"""Local randomisers (channels), which randomise one person's answer before it leaves the device. All probabilities are
quotients of integers.

Units: one report of one person. Neighbours: any two answers of that person; that the person reports is public. Each
channel has odds (A, B), integers with A/B ≤ e^ε, and gives every report a weight between B and A times the same number
for every answer, so two answers' chances differ by a factor of at most A/B: pure ε, nothing rounded the wrong way.

Three of them (`Response`, `Projective`, `Hashed`) are pure in the sense of Wang, Blocki, Li & Jha 2017: each report
supports some values, that of the truth with chance p (`truth`), every other value's with chance q (`other`). From C_v
supporting reports of n, (C_v/n − q)/(p − q) is an unbiased estimate of the share of v.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.local.draws import MOST, below
from discreet.trusted.ring_a.bits import Words
from discreet.trusted.ring_a.exact import exp_bounds

UNIT = 1 << 20
"""B where ε is a decimal: A/B is then within 2^−20 of e^ε."""

LARGEST = 1 << 25
"""The largest number of points that a projective geometry may have with all their multiples: the server's memory."""

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
Odds = tuple[int, int]


def odds_of(epsilon: Fraction) -> Odds:
    """(A, B) with A/B ≤ e^ε: B = 2^20 and A = ⌊2^20·e^ε⌋ from a lower bound of e^ε."""
    low, _ = exp_bounds(epsilon, 128)
    return int(low * UNIT), UNIT


class Channel(Protocol):
    """The interface of all channels. `inputs` answers are numbered from 0, and so are `outputs` reports."""

    @property
    def name(self) -> str: ...
    @property
    def inputs(self) -> int: ...
    @property
    def outputs(self) -> int: ...
    def draw(self, answer: int, words: Words) -> int:
        """A report."""
        ...

    def weights(self, answer: int) -> list[int]:
        """How many of `sum(weights)` equally likely cases give each report; the sum is the same for all answers."""
        ...

    def to_dict(self) -> dict[str, Any]: ...


class Supporting(Channel, Protocol):
    """A pure channel: reports support values."""

    @property
    def truth(self) -> Fraction: ...
    @property
    def other(self) -> Fraction: ...
    @property
    def supported(self) -> int:
        """How many reports support one value."""
        ...

    def supports(self, counts: Counts) -> Counts:
        """How many reports support each value, from how often each report came."""
        ...

    def rows(self, answers: Sequence[int]) -> NDArray[np.bool_]:
        """Which reports support each of these answers: answers × outputs."""
        ...


@dataclass(frozen=True)
class Response:
    """k-ary randomised response: the truth with weight A, every other answer with weight B (Warner 1965; Kairouz,
    Oh & Viswanath 2014). With two answers and odds 3 to 1, the textbook's two coins (Dwork & Roth 2014, Claim 3.5)."""

    inputs: int
    odds: Odds

    name = "randomised response"

    @property
    def outputs(self) -> int:
        """As many reports as answers."""
        return self.inputs

    @property
    def whole(self) -> int:
        """How many equally likely cases there are: A + (k − 1)·B."""
        return self.odds[0] + (self.inputs - 1) * self.odds[1]

    supported = 1

    @property
    def truth(self) -> Fraction:
        """p = A/(A + (k − 1)·B)."""
        return Fraction(self.odds[0], self.whole)

    @property
    def other(self) -> Fraction:
        """q = B/(A + (k − 1)·B)."""
        return Fraction(self.odds[1], self.whole)

    def draw(self, answer: int, words: Words) -> int:
        """A report: by one uniform number below `whole` the truth, or one of the others."""
        likely, unlikely = self.odds
        place = below(words, self.whole) - likely
        if place < 0:
            return answer
        instead = place // unlikely
        return instead + (instead >= answer)

    def weights(self, answer: int) -> list[int]:
        return [self.odds[0] if report == answer else self.odds[1] for report in range(self.inputs)]

    def supports(self, counts: Counts) -> Counts:
        """The counts themselves: each report supports the answer of its number."""
        return counts

    def rows(self, answers: Sequence[int]) -> NDArray[np.bool_]:
        """Which reports support each of these answers, each its own alone: answers × outputs."""
        same: NDArray[np.bool_] = np.asarray(answers)[:, None] == np.arange(self.outputs)
        return same

    def to_dict(self) -> dict[str, Any]:
        return {"mechanism": self.name, "inputs": self.inputs}


@dataclass(frozen=True)
class Projective:
    """Projective geometry response (Feldman, Nelson, Nguyen & Talwar 2022) over the field of `prime` elements.

    Values and reports are points of the projective space of `dimension` coordinates t: K = (q^t − 1)/(q − 1) of them,
    as vectors of which the last coordinate other than 0 is 1 (reports), or the first one (values). A report supports
    the values to which it is orthogonal. Each value is supported by c = (q^(t−1) − 1)/(q − 1) reports, two values
    together by i = (q^(t−2) − 1)/(q − 1). A report has weight A if it supports the true value and B otherwise: so p =
    cA/Z and q = (iA + (c − i)B)/Z with Z = cA + (K − c)B.

    Sampling: one uniform integer below Z names the report. Let j be the first coordinate of the value x that is not
    0, it is 1: the points orthogonal to x are the points z of one dimension less, with y_j = −Σ_{i>j} x_i·y_i put in;
    the last coordinate of y that is not 0 is then that of z, hence 1. The others are the q^(t−1) vectors with ⟨x, y⟩ =
    1, which are multiplied by what makes their last coordinate 1.
    """

    inputs: int
    odds: Odds
    prime: int
    dimension: int

    name = "projective geometry response"

    @cached_property
    def outputs(self) -> int:
        """K, the number of points."""
        return points(self.prime, self.dimension)

    @cached_property
    def supported(self) -> int:
        """c, how many reports support one value."""
        return points(self.prime, self.dimension - 1)

    @cached_property
    def shared(self) -> int:
        """How many reports support both of two values."""
        return points(self.prime, self.dimension - 2)

    @cached_property
    def whole(self) -> int:
        """Z = cA + (K − c)B."""
        return self.supported * self.odds[0] + (self.outputs - self.supported) * self.odds[1]

    @cached_property
    def truth(self) -> Fraction:
        """p = cA/Z."""
        return Fraction(self.supported * self.odds[0], self.whole)

    @cached_property
    def other(self) -> Fraction:
        """q = (iA + (c − i)B)/Z."""
        kept = self.shared * self.odds[0] + (self.supported - self.shared) * self.odds[1]
        return Fraction(kept, self.whole)

    def draw(self, answer: int, words: Words) -> int:
        """A report: by one uniform number below Z a point orthogonal to the value, or one of the others."""
        q, (likely, unlikely) = self.prime, self.odds
        x = vector(q, self.dimension, answer)[::-1]
        first = x.index(1)
        place = below(words, self.whole)
        outside = place - self.supported * likely
        if outside < 0:
            y = vector(q, self.dimension - 1, place // likely)
        else:
            y, rest = [], outside // unlikely
            for _ in range(self.dimension - 1):
                rest, digit = divmod(rest, q)
                y.append(digit)
        y.insert(first, 0)
        y[first] = ((outside >= 0) - sum(a * b for a, b in zip(x, y, strict=True))) % q
        return number(q, y)

    def weights(self, answer: int) -> list[int]:
        return [self.odds[0] if holds else self.odds[1] for holds in self.rows([answer])[0].tolist()]

    def rows(self, answers: Sequence[int]) -> NDArray[np.bool_]:
        """Which reports support each of these answers, being orthogonal to it: answers × outputs."""
        values = np.array([vector(self.prime, self.dimension, answer)[::-1] for answer in answers])
        reports = digits(self.prime, self.dimension)
        orthogonal: NDArray[np.bool_] = values @ reports.T % self.prime == 0
        return orthogonal

    def supports(self, counts: Counts) -> Counts:
        """By one Fourier transform over the field: with c spread over all multiples of each report, and F its
        transform, Σ_y c(y)·#{λ : λ⟨x, y⟩ = 0} = F(x) + n = q·S_x + (n − S_x)·1 … and 1 + Σ_λ ω^(λ⟨x, y⟩) is q where x
        and y are orthogonal and 0 elsewhere, so S_x = (F(x) + n)/q. It is an integer: rounding takes the error of the
        transform away, which is far below 1/2."""
        q, t = self.prime, self.dimension
        cube = np.zeros(q**t)
        for codes in multiples(q, t):
            cube[codes] = counts
        transform = np.fft.fftn(cube.reshape((q,) * t)).real.ravel()
        places = digits(q, t)[: self.inputs, ::-1] @ (q ** np.arange(t))
        found: Counts = np.rint((transform[places] + counts.sum()) / q).astype(np.int64)
        return found

    def to_dict(self) -> dict[str, Any]:
        return {"mechanism": self.name, "inputs": self.inputs, "prime": self.prime, "dimension": self.dimension}


def points(prime: int, dimension: int) -> int:
    """How many points a projective space of so many coordinates has."""
    return int((prime**dimension - 1) // (prime - 1))


def vector(prime: int, dimension: int, place: int) -> list[int]:
    """The point of this number: its last coordinate other than 0 is 1. Those with few free coordinates come first."""
    free, block = 0, 1
    while place >= block:
        place -= block
        block *= prime
        free += 1
    found = []
    for _ in range(free):
        place, digit = divmod(place, prime)
        found.append(digit)
    return [*found, 1, *[0] * (dimension - free - 1)]


def number(prime: int, coordinates: Sequence[int]) -> int:
    """The number of the point that a vector other than 0 lies on."""
    last = len(coordinates) - 1
    while not coordinates[last]:
        last -= 1
    scale, place, power = pow(coordinates[last], -1, prime), 0, 1
    for coordinate in coordinates[:last]:
        place += (coordinate * scale % prime + 1) * power  # 1 + q + … + q^(last−1) points have fewer free coordinates
        power *= prime
    return place


@lru_cache(maxsize=8)
def digits(prime: int, dimension: int) -> NDArray[np.int64]:
    """All points, in the order of their numbers: points × coordinates."""
    blocks = []
    for free in range(dimension):
        places = np.arange(prime**free)
        block = np.zeros((len(places), dimension), np.int64)
        for index in range(free):
            block[:, index] = places // prime**index % prime
        block[:, free] = 1
        blocks.append(block)
    return np.concatenate(blocks)


@lru_cache(maxsize=2)
def multiples(prime: int, dimension: int) -> NDArray[np.int32]:
    """Where λ·y lies among all q^t vectors, Σ y_i·q^i: (q − 1) × points."""
    known, powers = digits(prime, dimension), prime ** np.arange(dimension)
    return np.array([(known * factor % prime) @ powers for factor in range(1, prime)], np.int32)


@dataclass(frozen=True)
class Hashed:
    """Local hashing for open texts: a public random function takes a text to one of `buckets`, and the bucket is
    reported by k-ary randomised response (optimised local hashing; Wang, Blocki, Li & Jha 2017, section 4.4).

    A report is seed·buckets + bucket, with a uniform seed of 32 bits that is free of the answer: given any seed, two
    answers' chances differ by at most A/B whatever the function does. That another text falls into the reported
    bucket with chance 1/buckets rests on the function's mixing; so does accuracy, and not privacy.
    """

    buckets: int
    odds: Odds

    name = "local hashing"
    seeds = 1 << 32

    @property
    def inputs(self) -> int:
        """The buckets, as answers of `inner`."""
        return self.buckets

    @property
    def outputs(self) -> int:
        """How many reports there are: a bucket with each seed."""
        return self.seeds * self.buckets

    @property
    def inner(self) -> Response:
        """The response by which a bucket is reported."""
        return Response(self.buckets, self.odds)

    @property
    def truth(self) -> Fraction:
        """p, that of `inner`."""
        return self.inner.truth

    @property
    def other(self) -> Fraction:
        """q = 1/buckets: with this chance another text falls into the reported bucket."""
        return Fraction(1, self.buckets)

    def draw(self, answer: int, words: Words) -> int:
        """A report for the text with this fingerprint of 64 bits."""
        seed = below(words, self.seeds)
        bucket = int(mixed(np.array([seed], np.uint32), answer)[0]) % self.buckets
        return seed * self.buckets + self.inner.draw(bucket, words)

    def weights(self, answer: int) -> list[int]:
        """Given any seed that takes the text to the bucket `answer`: the weights of the reported buckets."""
        return self.inner.weights(answer)

    def to_dict(self) -> dict[str, Any]:
        return {"mechanism": self.name, "buckets": self.buckets}


def mixed(seeds: NDArray[np.uint32], fingerprint: int) -> NDArray[np.uint32]:
    """The public function: 32 well-mixed bits of each seed and one fingerprint."""
    first, second = np.uint32(fingerprint >> 32), np.uint32(fingerprint & 0xFFFFFFFF)
    return _mix(_mix(seeds ^ first) ^ second)


def _mix(words: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The finaliser of MurmurHash3 (Appleby 2011): a bijection in which every bit moves every other."""
    words = (words ^ (words >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    words = (words ^ (words >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return words ^ (words >> np.uint32(16))


def passed(channel: Supporting | Hashed, again: Response | None) -> tuple[Fraction, Fraction]:
    """The chances that a report, randomised once more, supports a value: if it did before, and if it did not. A report
    among the c that support the value stays among them with chance a + (c − 1)·b, another one gets there with chance
    c·b, for the chances a and b of `again`."""
    if again is None or isinstance(channel, Hashed):
        return Fraction(1), Fraction(0)
    return again.truth + (channel.supported - 1) * again.other, channel.supported * again.other


def composed(channel: Supporting | Hashed, again: Response | None) -> tuple[Fraction, Fraction]:
    """(p, q) of the channel, or of the channel and then `again` on its reports (as in RAPPOR; Erlingsson, Pihur &
    Korolova 2014)."""
    kept, gained = passed(channel, again)
    p, q = channel.truth, channel.other
    return p * kept + (1 - p) * gained, q * kept + (1 - q) * gained


def spread(truth: Fraction, other: Fraction) -> Fraction:
    """n times the variance of the estimate for a value of true frequency 0: q(1 − q)/(p − q)²."""
    return other * (1 - other) / (truth - other) ** 2


def fits(whole: int) -> bool:
    """Whether a client that counts in doubles can draw it."""
    return whole <= MOST
