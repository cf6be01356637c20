"""Shares with noise inside: what colluders see, enumerated; and arithmetic modulo powers of two."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from discreet import accounting
from discreet.audit.textbook import DrawCounts, together
from discreet.mechanisms import Laplace, LaplaceShares
from discreet.together.protocol import added_up
from discreet.trusted.ring_a.bits import SystemWords, Words
from discreet.trusted.ring_c.polya import sampler
from discreet.trusted.ring_c.shares import PERSONS, Residues, Ring, split
from kinds import examples
from together_tools import EPSILON, share_pmf

SLACK = 1e-9
"""On ratios: for floating point, and for what is left out, where the least probability is above e^−30."""

View = tuple[object, ...]


class Fixed:
    """Plays given words, so that every draw of masks can be enumerated."""

    def __init__(self, drawn: list[int]) -> None:
        self.drawn = drawn

    def integers(self, bits: int, size: int) -> np.ndarray:
        taken, self.drawn = self.drawn[:size], self.drawn[size:]
        assert len(taken) == size
        assert all(0 <= one < 1 << bits for one in taken)
        return np.array(taken, np.uint64)

    def big(self, bits: int) -> int:
        return int(self.integers(bits, 1)[0])


def folded(pmf: dict[int, float], modulus: int) -> list[float]:
    found = [0.0] * modulus
    for x, chance in pmf.items():
        found[x % modulus] += chance
    return found


def splits(ring: Ring, names: str, value: int) -> Iterator[dict[str, np.ndarray]]:
    """Every way to split one residue, all equally likely."""
    for masks in itertools.product(range(1 << ring.bits), repeat=len(names) - 1):
        yield dict(zip(names, split(ring, [value], len(names), Fixed(list(masks))), strict=True))


def view(ring: Ring, exact: dict[str, int], noise: dict[int, float], colluders: str, gone: str) -> dict[View, float]:
    """The distribution of all that the colluders get: the honest parties' shares for them, and their sums.

    `exact` are the honest parties' cells; `gone` drop out after all shares were sent. What the colluders send is fixed:
    with it they could compute, but it tells them nothing. Their own noise is part of what they send.
    """
    names = "".join(exact) + colluders + gone
    residues = folded(noise, 1 << ring.bits)
    roster = set(names) - set(gone)
    sent = {name: np.array([(7 * place + 3) % (1 << ring.bits)], object) for place, name in enumerate(names)}
    inputs = {name: [(value + k, residues[k]) for k in range(1 << ring.bits)] for name, value in exact.items()}
    found: dict[View, float] = defaultdict(float)
    ways = (1 << ring.bits) ** ((len(names) - 1) * len(exact))
    for cells in itertools.product(*inputs.values()):
        chance = math.prod(chance for _, chance in cells) / ways
        everything = [list(splits(ring, names, value)) for value, _ in cells]
        for made in itertools.product(*everything):
            own = dict(zip(exact, made, strict=True))
            got = tuple(int(own[h][c][0]) for h in exact for c in colluders)
            sums = []
            for h in exact:
                held = {i: own[i][h] for i in exact if i != h} | {c: sent[c] for c in colluders + gone}
                sums.append(int(added_up(ring, h, roster, own[h], held)[0]))
            found[(got, tuple(sums))] += chance
    return dict(found)


def worst(one: dict[View, float], other: dict[View, float]) -> float:
    """The largest ratio of probabilities either way."""
    assert one.keys() == other.keys()
    return max(max(one[key] / other[key], other[key] / one[key]) for key in one)


CASES = [
    # honest cells, colluders, gone after they had sent shares, k, bits
    ({"a": 1, "b": 0}, "c", "", 2, 2),
    ({"a": 1, "b": 0}, "", "d", 2, 2),
    ({"a": 1, "b": 1}, "c", "d", 2, 1),
    ({"a": 2}, "c", "", 1, 3),
    ({"a": 2}, "bc", "", 1, 3),
]


@pytest.mark.parametrize(("exact", "colluders", "gone", "honest", "bits"), CASES)
def test_colluders_cannot_tell_neighbours_apart(
    exact: dict[str, int], colluders: str, gone: str, honest: int, bits: int
) -> None:
    """All splits and all noise of the honest parties, modulo a small power of two: every joint view of the colluders is
    at most e^ε times as likely with one person more. Views with the same total of honest sums are equally likely."""
    ring, noise = Ring(bits), share_pmf(honest)
    before = view(ring, exact, noise, colluders, gone)
    after = view(ring, exact | {"a": exact["a"] + 1}, noise, colluders, gone)
    assert abs(sum(before.values()) - 1) < 1e-12
    assert worst(before, after) <= math.exp(EPSILON) * (1 + SLACK)
    by_total: dict[View, set[float]] = defaultdict(set)
    for (got, sums), chance in before.items():
        by_total[got, sum(sums) % (1 << bits)].add(round(chance, 14))
    assert all(len(likely) == 1 for likely in by_total.values())


def test_halved_noise_is_caught() -> None:
    """The same enumeration with half of each noise share finds a loss above ε; and with noise of twice the price."""
    ring, exact = Ring(3), {"a": 2}
    for wrong in (share_pmf(2), share_pmf(1, 2 * EPSILON)):
        before = view(ring, exact, wrong, "c", "")
        after = view(ring, {"a": 3}, wrong, "c", "")
        assert worst(before, after) > math.exp(EPSILON) * 1.1


@pytest.mark.parametrize(("honest", "present"), [(1, 1), (2, 2), (3, 3), (1, 3), (2, 3), (3, 5)])
def test_the_honest_total_loses_at_most_epsilon(honest: int, present: int) -> None:
    """Not modulo anything: the noise of k shares is discrete Laplace, whose ratio is e^ε everywhere; more do no harm,
    and one share less does."""

    def total(count: int) -> np.ndarray:
        one = np.array(list(share_pmf(honest).values()))
        found = one
        for _ in range(count - 1):
            found = np.convolve(found, one)
        middle = len(found) // 2
        return found[middle - 25 : middle + 26]

    found = total(present)
    ratios = found[1:] / found[:-1]
    assert max(ratios.max(), 1 / ratios.min()) <= math.e * (1 + SLACK)
    if present == honest:
        assert np.allclose(np.maximum(ratios, 1 / ratios), math.e)
        if honest > 1:
            fewer = total(present - 1)
            assert (fewer[1:] / fewer[:-1]).max() > math.e * 1.2


def test_any_shares_but_all_are_uniform() -> None:
    """Over all masks: each set of two of three shares takes every value equally often, whatever was split."""
    ring = Ring(2)
    for value in range(4):
        ways = list(splits(ring, "abc", value))
        for missing in "abc":
            seen = [tuple(int(way[name][0]) for name in "abc" if name != missing) for way in ways]
            assert sorted(seen) == sorted(itertools.product(range(4), repeat=2))


@pytest.mark.parametrize("bits", [64, 128, 192])
def test_every_bit_of_a_share_is_drawn(bits: int) -> None:
    """All shares but the last, and each alone: of 2,000 residues each bit is 1 in half, within seven deviations."""
    ring = Ring(bits)
    for vector in (ring.uniform(SystemWords(), 2_000), *split(ring, [5] * 2_000, 3, SystemWords())):
        values = [int(value) for value in vector.tolist()]
        assert len(set(values)) == len(values)
        assert all(abs(sum(value >> place & 1 for value in values) - 1_000) < 157 for place in range(bits))
        assert max(values) < 1 << bits


@settings(max_examples=examples(60), deadline=None)
@given(
    st.sampled_from([64, 128, 192]), st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=6), st.integers(2, 5)
)
def test_shares_add_up(bits: int, values: list[int], parties: int) -> None:
    ring = Ring(bits)
    shares = split(ring, values, parties, SystemWords())
    assert ring.signed(ring.total(shares)) == values
    for share in shares:
        packed = ring.pack(share)
        assert len(packed) == ring.width * len(values)
        assert (ring.unpack(packed) == share).all()


def test_the_audit_finds_halved_shares() -> None:
    """And nothing in the shares as they are. A right audit is blamed by chance in less than one of 10^7 runs."""

    class Halved(LaplaceShares):
        def release(self, exact: Sequence[int], words: Words | None = None) -> list[Residues]:
            return LaplaceShares(self.epsilon, 1, 2 * self.parties, 2 * self.colluding).release(exact, words)

    for kind, broken in ((LaplaceShares, False), (Halved, True)):
        targets = together(kind(Fraction(1), 1, 3, 1), DrawCounts(pair=200, fit=12_000))
        results = [target.attack(1e-7) for target in targets]
        assert any(result.broken for result in results) is broken


@pytest.mark.parametrize("bits", [64, 128])
def test_the_ends_of_the_ring(bits: int) -> None:
    ring, half = Ring(bits), 1 << (bits - 1)
    assert ring.signed(ring.residues([half - 1, -half, half, -1])) == [half - 1, -half, -half, -1]
    assert ring.signed(ring.total([ring.residues([half - 1]), ring.residues([1])])) == [-half]


@settings(max_examples=10, deadline=None)
@given(
    st.fractions(Fraction(1, 10**9), 100), st.integers(1, 2**60), st.integers(2, 64), st.integers(0, 30), st.booleans()
)
def test_nothing_overflows(epsilon: Fraction, sensitivity: int, parties: int, colluding: int, absent: bool) -> None:
    """The largest cells with the largest noise from every party keep their sign."""
    if parties - colluding - absent < 1:
        return
    mechanism = LaplaceShares(epsilon, sensitivity, parties, colluding, int(absent))
    most = parties * (mechanism.largest + sampler(mechanism.scale, mechanism.honest).reach)
    ring = mechanism.ring
    assert ring.signed(ring.residues([most, -most])) == [most, -most]
    assert ring.bits == 64 or most >= 1 << (ring.bits - 66)


def test_exact_cells_are_clamped() -> None:
    mechanism = LaplaceShares(Fraction(10**9), 1, 2, 1)
    shares = mechanism.release([10**40, -(10**40), 5])
    assert mechanism.ring.signed(mechanism.ring.total(shares)) == [PERSONS, -PERSONS, 5]


@pytest.mark.parametrize(("parties", "colluding", "absent", "present"), [(3, 1, 0, 3), (3, 2, 0, 3), (5, 1, 1, 4)])
def test_variance_and_intervals(parties: int, colluding: int, absent: int, present: int) -> None:
    """40,000 cells opened by `present` parties: the variance is present/(m − t − d) times one curator's, within seven
    standard errors; and 95 % lie within the half width, by the same measure."""
    mechanism = LaplaceShares(Fraction(1, 3), 1, parties, colluding, absent)
    cells = 40_000
    shares = [share for _ in range(present) for share in mechanism.release([7] * cells)]
    noise = np.array(mechanism.ring.signed(mechanism.ring.total(shares))) - 7 * present
    q = math.exp(-1 / 3)
    theory = present / (parties - colluding - absent) * 2 * q / (1 - q) ** 2
    assert abs(mechanism.variance(present) / theory - 1) < 1e-9
    spread = np.std(noise.astype(float) ** 2) / math.sqrt(cells)
    assert abs(noise.var() - theory) < 7 * spread
    half = mechanism.half_width(0.95, present)
    assert stats.binomtest(int((abs(noise) <= half).sum()), cells, 0.95, alternative="less").pvalue > 1e-6


@pytest.mark.parametrize("scale", ["1/20", "1", "7", "300"])
def test_all_shares_have_the_half_width_of_the_whole_noise(scale: str) -> None:
    known = Fraction(scale)
    mechanism = LaplaceShares(1 / known, 1, 4, 2)
    for confidence, cells in ((0.5, 1), (0.95, 1), (0.95, 1000)):
        assert mechanism.half_width(confidence, 2, cells) == Laplace(known).half_width(confidence, cells)


def test_the_loss_is_that_of_the_whole_noise() -> None:
    mechanism = LaplaceShares(Fraction(1, 2), 3, 3, 1)
    assert mechanism.loss() == accounting.DiscreteLaplace(Fraction(1, 2), 3)
    assert mechanism.scale == 6


@pytest.mark.parametrize(
    "wrong",
    [("epsilon", 0), ("epsilon", 0.5), ("sensitivity", 0), ("parties", 1), ("colluding", -1), ("colluding", 3)],
)
def test_wrong_numbers_are_refused(wrong: tuple[str, object]) -> None:
    values: dict[str, object] = {"epsilon": Fraction(1), "sensitivity": 1, "parties": 3, "colluding": 1, "absent": 0}
    with pytest.raises(ValueError, match="must be"):
        LaplaceShares(**(values | dict([wrong])))
