"""The k largest counts: the laws of both ways between neighbours, draws held to them, and which way has less noise."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations, permutations, product

import numpy as np
import pytest

from discreet import accounting
from discreet.mechanisms import NoisyMax, PermuteAndFlip, TopK, Winners
from kinds import some
from order_tools import SMALLEST, at_most, decay, goodness, ratio

KIND = "exact"

ONE = Fraction(1)
REACH = 24  # noise beyond it is left out


def one_by_one(mechanism: Winners, counts: tuple[int, ...]) -> dict[tuple[int, ...], Fraction]:
    """All orders of candidates at each choice: the first head is chosen, by the definition."""
    rate = mechanism.choice.rate

    @cache
    def follow(left: tuple[int, ...], k: int) -> dict[tuple[int, ...], Fraction]:
        if not k:
            return {(): ONE}
        best = max(counts[place] for place in left)
        heads = {place: decay(rate * (best - counts[place])) for place in left}
        found: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
        orders = list(permutations(left))
        for order in orders:
            mass = Fraction(1, len(orders))
            for place in order:
                rest = follow(tuple(other for other in left if other != place), k - 1)
                for others, chance in rest.items():
                    found[place, *others] += mass * heads[place] * chance
                mass *= 1 - heads[place]
        return dict(found)

    return follow(tuple(range(len(counts))), mechanism.k)


def together(mechanism: Winners, counts: tuple[int, int, int]) -> dict[tuple[int, ...], float]:
    """Orders of three noisy counts, all noise up to REACH; ties in every order alike."""
    q = float(decay(1 / mechanism.noise.scale))
    steps = np.arange(-REACH, REACH + 1)
    mass = (1 - q) / (1 + q) * q ** np.abs(steps)
    noisy = [count + steps.reshape(shape) for count, shape in zip(counts, ((-1, 1, 1), (-1, 1), (-1,)), strict=True)]
    joint = mass.reshape(-1, 1, 1) * mass.reshape(-1, 1) * mass
    found: dict[tuple[int, ...], float] = defaultdict(float)
    for keys in permutations(range(3)):
        ranks = [6 * value + key for value, key in zip(noisy, keys, strict=True)]
        for order in permutations(range(3)):
            right = (ranks[order[0]] > ranks[order[1]]) & (ranks[order[1]] > ranks[order[2]])
            found[order[: mechanism.k]] += float(joint[np.broadcast_to(right, joint.shape)].sum()) / 6
    return dict(found)


def neighbours(each: int, total: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    for counts in product(range(3), repeat=3):
        for change in product(range(each + 1), repeat=3):
            if min(counts) == 0 and 0 < sum(change) <= total:
                yield counts, tuple(one + more for one, more in zip(counts, change, strict=True))


def worst(law, mechanism: Winners, each: int, total: int) -> float:
    find = cache(lambda counts: law(mechanism, counts))
    return float(max(ratio(find(one), find(two)) for one, two in neighbours(each, total)))


@pytest.mark.parametrize(("k", "each", "total"), [(1, 1, 1), (1, 1, 3), (2, 1, 3), (1, 2, 3), (2, 1, 2), (1, 3, 3)])
def test_one_by_one_costs_at_most_epsilon(k: int, each: int, total: int) -> None:
    mechanism = Winners(ONE, k, each, total)
    assert not mechanism.together
    assert worst(one_by_one, mechanism, each, total) <= float(at_most(1)) * (1 + 1e-12)


@pytest.mark.parametrize(("k", "each", "total"), [(2, 1, 1), (3, 1, 2), (2, 2, 2), (2, 2, 3)])
def test_together_costs_at_most_epsilon(k: int, each: int, total: int) -> None:
    """But for noise beyond REACH, which has less than e^(−24/3) in all; any number of winners."""
    mechanism = Winners(ONE, k, each, total)
    assert mechanism.together
    assert worst(together, mechanism, each, total) <= float(at_most(1)) * (1 + 1e-3)


def test_mutants_are_caught() -> None:
    """The bounds of one count or of all taken too small, or one choice's price for two."""
    one = float(at_most(1)) * 1.01
    assert worst(one_by_one, Winners(ONE, 1, 1, 3), 2, 3) > one
    assert worst(one_by_one, Winners(2 * ONE, 2, 1, 3), 1, 3) > one
    assert worst(together, Winners(2 * ONE, 2, 1, 1), 1, 1) > one
    assert worst(together, Winners(ONE, 2, 1, 1), 2, 4) > one


@pytest.mark.parametrize(
    ("mechanism", "law"),
    some(
        [
            (Winners(ONE, 2, 1, 3), one_by_one),
            (Winners(ONE, 2, 1, 1), together),
            (Winners(ONE, 1, 1, 2), one_by_one),
            (Winners(ONE, 1, 1, 1, counted=True), together),
        ],
        pytest.mark.power,
        quick=2,
    ),
)
def test_draws_fit(mechanism: Winners, law) -> None:
    """4,000 releases (p < 1e-6 fails); with noise at half they do not fit."""
    counts = (3, 1, 2)
    expected = law(mechanism, counts)
    assert goodness([tuple(mechanism.release(counts)) for _ in range(4_000)], expected) > SMALLEST
    wrong = Winners(2 * mechanism.epsilon, mechanism.k, mechanism.each, mechanism.total, mechanism.counted)
    assert goodness([tuple(wrong.release(counts)) for _ in range(4_000)], expected) < SMALLEST


def test_the_way_with_less_noise_is_taken() -> None:
    for k, each, total in product((1, 2, 5), (1, 3), (1, 3, 10)):
        if each <= total:
            mechanism = Winners(ONE, k, each, total)
            scale = mechanism.noise.scale if mechanism.together else 1 / mechanism.choice.rate
            assert scale == min(total, k * each)


def test_losses() -> None:
    assert Winners(Fraction(1, 3), 5, 2, 2).loss() == accounting.DiscreteLaplace(Fraction(1, 3), 2)
    assert Winners(ONE, 2, 1, 9).loss() == accounting.Batch((accounting.Pure("0.5"),) * 2)
    assert Winners(ONE, 1, 1, 9).loss().pure == 1
    assert "2 times" in Winners(ONE, 2, 1, 9).describe()


def test_counts_go_with_the_histogram_only() -> None:
    found = Winners(Fraction(50), 2, 1, 1).release_with_counts([5, 900, 30])
    assert [place for place, _ in found] == [1, 2]
    assert found[0][1] == pytest.approx(900, abs=3)
    with pytest.raises(ValueError, match="counted"):
        Winners(ONE, 1, 1, 9).release_with_counts([1, 2])


def test_a_hundred_thousand_candidates() -> None:
    counts = list(range(100_000))
    for mechanism in (Winners(ONE, 3, 1, 1), Winners(ONE, 2, 1, 5)):
        for place in mechanism.release(counts):
            assert 99_999 - place <= mechanism.half_width(1 - 1e-9, 100_000) + mechanism.k


@pytest.mark.parametrize("bad", [{"epsilon": 1.0}, {"k": 0}, {"each": 2}, {"total": 1.5}, {"epsilon": Fraction(0)}])
def test_bad_parameters(bad: dict) -> None:
    with pytest.raises(ValueError, match=r"epsilon|each"):
        Winners(**{"epsilon": ONE, **bad})
    for counts in ([1], [1.0, 2.0], [True, 1]):
        with pytest.raises(ValueError, match=r"fewer|integers"):
            Winners(ONE, 2, 1, 1).release(counts)


def test_existing_choices_hold_for_persons_with_many_rows() -> None:
    """The choices of one winner and of k, given a person's rows as sensitivity: one-way moves by up to R, exactly."""
    for rows in (1, 2, 3):
        assert PermuteAndFlip(ONE, rows, monotone=True).rate == NoisyMax(ONE, rows).rate == Fraction(1, rows)
        top = TopK(ONE / 2, rows, monotone=True, k=2)
        assert top.loss().pure == 1
        found = {}
        for counts in {one for pair in neighbours(rows, 3 * rows) for one in pair}:
            weights = [decay(-top.rate * count) for count in counts]
            found[counts] = {
                (a, b): weights[a] / sum(weights) * weights[b] / (sum(weights) - weights[a])
                for a, b in [*combinations(range(3), 2), *((b, a) for a, b in combinations(range(3), 2))]
            }
        assert max(ratio(found[one], found[two]) for one, two in neighbours(rows, 3 * rows)) <= at_most(1)
