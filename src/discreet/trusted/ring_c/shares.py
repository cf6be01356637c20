"""Multi-party sums without mutual trust: additive secret shares that include the noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.trusted.ring_a.bits import SystemWords, Words, whole
from discreet.trusted.ring_a.exact import figure
from discreet.trusted.ring_a.loss import DiscreteLaplace, Pure
from discreet.trusted.ring_c import polya

PERSONS = 1 << 40
"""A cell counts as if it held at most so many persons: then sums cannot overflow, whatever a table holds."""

Residues = NDArray[Any]
"""Integers modulo a power of two: uint64 for 2^64, Python integers else."""


@dataclass(frozen=True)
class Ring:
    """The integers modulo 2^bits, `bits` a multiple of 64. Vectors are packed with the lowest byte first."""

    bits: int

    @property
    def width(self) -> int:
        """Bytes of one residue."""
        return self.bits // 8

    def uniform(self, words: Words, size: int) -> Residues:
        """`size` independent uniform residues: uint64 for 64 bits, Python integers beyond."""
        if self.bits == 64:
            return words.integers(64, size).astype(np.uint64, copy=False)
        return whole(words, self.bits, size).astype(object, copy=False)

    def residues(self, values: Sequence[int]) -> Residues:
        """Integers of any sign and size, modulo 2^bits."""
        mask = (1 << self.bits) - 1
        return np.array([value & mask for value in values], np.uint64 if self.bits == 64 else object)

    def total(self, vectors: Sequence[Residues]) -> Residues:
        """The sum of some vectors."""
        total = vectors[0]
        for vector in vectors[1:]:
            total = self._reduced(total + vector)
        return total

    def minus(self, one: Residues, other: Residues) -> Residues:
        """The first vector less the second, modulo 2^bits."""
        return self._reduced(one - other)

    def signed(self, vector: Residues) -> list[int]:
        """The integers of least size with these residues, in [−2^(bits − 1), 2^(bits − 1))."""
        half, whole_ = 1 << (self.bits - 1), 1 << self.bits
        return [value - whole_ if value >= half else value for value in vector.tolist()]

    def pack(self, vector: Residues) -> bytes:
        """The vector's bytes, `width` for each residue."""
        if self.bits == 64:
            return bytes(vector.astype("<u8").tobytes())
        return b"".join(value.to_bytes(self.width, "little") for value in vector.tolist())

    def unpack(self, data: bytes) -> Residues:
        """The vector that `pack` wrote."""
        if self.bits == 64:
            return np.frombuffer(data, "<u8").astype(np.uint64)
        places = range(0, len(data), self.width)
        return np.array([int.from_bytes(data[at : at + self.width], "little") for at in places], object)

    def _reduced(self, vector: Residues) -> Residues:
        reduced: Residues = vector if self.bits == 64 else vector & ((1 << self.bits) - 1)
        return reduced


@dataclass(frozen=True)
class LaplaceShares:
    """One of `parties` holders' part in a sum with discrete Laplace noise: its exact vector plus a share of the noise,
    split into random shares, one for each party.

    Units: lattice steps. Neighbours: one person added or removed at one party, so that this party's exact vectors x, y
    have ‖x − y‖₁ ≤ sensitivity, and the others' are the same. A person in the tables of several parties loses ε at
    each; each charges its own ledger.

    Noise. Each party adds to each cell an independent difference of two negative binomial values with r = 1/k, k =
    parties − colluding − absent (`ring_c.polya`), at scale sensitivity/epsilon. A total is opened only if at most
    `absent` parties are missing from it, so in it are the noise shares of at least k parties that do not collude. The
    sum of k of them is exactly discrete Laplace; those beyond k are independent of it, and of the data.

    What `colluding` parties know, and one of them is a party that looks by itself at the total and knows its own noise.
    Say some of them pool everything: their tables, noise, shares, and every message they got. A share that leaves an
    honest party is uniform and independent of all else, as what it keeps for itself is the difference. So before sums
    are shown, everything they got is uniform: nothing. The sums of the honest parties contain the shares that these
    sent to each other, which nobody else saw, so the sums are uniform but for their total T = Σ (exact + noise) of the
    honest parties in the roster, plus what the colluders sent and know. So their view is a function of T and of uniform
    values, and T is Σ exact plus discrete Laplace noise plus what is independent of it: pure ε (Dwork & Roth 2014,
    Theorem 3.6). This holds whatever the colluders send, and although they know the final total: it is T plus what
    they know. Where more collude than declared, the noise that they do not know is less than the whole, and the loss
    larger than what was charged; but up to parties − 1 of them see no vector without noise.

    Fewer honest shares than k: a roster that could have fewer opens nothing (`discreet.together`). Several totals: each
    honest party gives out its sum for one roster, once, so its vector is in one total.

    Size. An exact cell is clamped to ±2^40·sensitivity, which moves no two neighbours further apart; a noise value has
    a largest size (`Polya.reach`). `ring` holds the sum of all parties' with its sign: nothing overflows.

    Sampling: cells·2^−160 from the stated distribution in total variation; shares are exactly uniform.
    """

    epsilon: Fraction
    sensitivity: int
    parties: int
    colluding: int
    absent: int = 0

    name = "discrete Laplace in shares"

    def __post_init__(self) -> None:
        if not isinstance(self.epsilon, Fraction) or self.epsilon <= 0:
            raise ValueError("epsilon must be a Fraction above 0")
        if self.sensitivity < 1 or self.parties < 2 or self.colluding < 0 or self.absent < 0:
            raise ValueError("sensitivity, parties, colluding and absent must be whole numbers, none below 0")
        if self.honest < 1:
            raise ValueError("at least one present party must be honest")

    @property
    def honest(self) -> int:
        """k: so many shares make the whole noise."""
        return self.parties - self.colluding - self.absent

    @property
    def scale(self) -> Fraction:
        """Of the whole noise, that of k shares, in lattice steps."""
        return self.sensitivity / self.epsilon

    @property
    def largest(self) -> int:
        """What a party's exact cell is clamped to."""
        return PERSONS * self.sensitivity

    @property
    def bits(self) -> int:
        """In so many the sum of all parties' cells and noise fits, with its sign."""
        return (self.parties * (self.largest + polya.sampler(self.scale, self.honest).reach)).bit_length() + 1

    @property
    def ring(self) -> Ring:
        """Where shares are added up: `bits` rounded up to a multiple of 64."""
        return Ring(64 * -(-self.bits // 64))

    def loss(self) -> Pure:
        """Of the opened total for those who collude: pure ε."""
        return DiscreteLaplace(self.epsilon, self.sensitivity)

    def release(self, exact: Sequence[int], words: Words | None = None) -> list[Residues]:
        """The exact vector plus a fresh noise share, as so many vectors as there are parties: any of them together, but
        not all, are uniform."""
        source, ring = words or SystemWords(), self.ring
        noise = polya.polya(self.scale, self.honest, len(exact), source).tolist()
        clamped = (max(-self.largest, min(self.largest, value)) for value in exact)
        return split(ring, [value + extra for value, extra in zip(clamped, noise, strict=True)], self.parties, source)

    def variance(self, present: int) -> float:
        """Of an opened cell, in squared steps, with so many parties in it: present/k times 2q/(1 − q)²."""
        rate = float(1 / self.scale)
        return 0.0 if rate > 700 else present / self.honest / (2 * math.sinh(rate / 2) ** 2)

    def half_width(self, confidence: float, present: int, cells: int = 1) -> int:
        """The least h such that all `cells` cells stay within ±h with `confidence`, by a union bound. Where noise is
        wide, that is to about a thousandth."""
        return _half_width(float(self.scale), present / self.honest, (1 - confidence) / cells)

    def describe(self) -> str:
        """The scale in lattice steps, and how much of the noise each party adds, in words."""
        return f"{self.name}, scale {figure(self.scale)}, 1/{self.honest} of the noise from each party"


@dataclass(frozen=True)
class LargestShares(LaplaceShares):
    """Which of some counts is the largest when all parties' are added up: report noisy max with the noise in shares.

    Units: counts. Neighbours: one person added or removed at one party, who raises each count by between 0 and
    `sensitivity`, or lowers each so. What is opened is the place of the largest noisy total, the first of equal ones,
    and no total; it is found on shares that nobody can open (`discreet.together.largest`), so colluders know their own
    vectors, noise and the place.

    Privacy (Dwork & Roth 2014, Claim 3.9, on the integers). Fix all noise but that of k honest parties in the winner's
    total, which is a discrete Laplace X of scale sensitivity/epsilon. Place i is opened if X ≥ R − c, where c is the
    rest of its total and R the least total with which it wins. Add a person: R and c both rise by between 0 and
    `sensitivity`, so the bound on X moves by at most `sensitivity` either way. As P(X ≥ t + 1) ≥ e^(−1/scale)·P(X ≥ t)
    for every t, the probability changes by a factor of at most e^ε: pure ε, however many counts.
    """

    name = "report noisy max in shares"

    def loss(self) -> Pure:
        """Of the place that is opened: pure ε, however many counts there are."""
        return Pure(self.epsilon)


def split(ring: Ring, values: Sequence[int], parties: int, words: Words) -> list[Residues]:
    """Vectors that add up to `values`. All but one are drawn uniformly, and the last is the difference."""
    shares = [ring.uniform(words, len(values)) for _ in range(parties - 1)]
    return [*shares, ring.minus(ring.residues(values), ring.total(shares))]


@lru_cache(maxsize=64)
def _half_width(scale: float, shape: float, miss: float) -> int:
    """The least h with P(|X| > h) ≤ miss, for X = N − N′ with negative binomial N, N′ of r = shape.

    Its distribution, from the characteristic function ((1 − q)²/(1 − 2q·cos θ + q²))^shape, by a Fourier sum. Wide
    noise is looked at in units of a 512th of its scale, and the result rounded up.
    """
    unit = max(1.0, scale / 512)
    rate = unit / scale
    if rate > 700:
        return 0
    reach = (math.log(2 / miss) + 40 + 4 * shape) / rate
    size = 1 << max(8, math.ceil(math.log2(2 * reach)))
    angles = 2 * math.pi * np.arange(size // 2 + 1) / size
    lost, q = -math.expm1(-rate), math.exp(-rate)
    chances = np.fft.irfft((lost**2 / (lost**2 + 2 * q * (1 - np.cos(angles)))) ** shape, size)
    inside = chances[0] + 2 * np.cumsum(np.concatenate([[0.0], chances[1 : size // 2]]))
    return math.ceil(int(np.searchsorted(inside, 1 - miss)) * unit)
