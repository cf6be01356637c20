"""Quantiles by rank: laws of all neighbours enumerated, losses reached and not exceeded, and draws held to the laws."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from discreet import accounting
from discreet.mechanisms import Quantiles
from discreet.trusted.ring_a.bits import SystemWords
from discreet.trusted.ring_b.quantile import Aim, Branch, PlacedRows, _levels
from kinds import some
from order_tools import (
    SMALLEST,
    Ends,
    apart,
    at_most,
    goodness,
    in_order,
    neighbours,
    off,
    ratio,
    shared,
    spread,
)

KIND = "exact"

ONE, HALF = Fraction(1), Fraction(1, 2)
QUARTILES = (Fraction(1, 4), HALF, Fraction(3, 4))


def pairs(counts: tuple[int, ...]) -> list[tuple[int, int]]:
    return [(bucket, count) for bucket, count in enumerate(counts) if count]


def law(mechanism: Quantiles, counts: tuple[int, ...]) -> dict:
    """What `release` gives for fractions in order, before it puts them in order."""
    ends = Ends(mechanism.ends, mechanism.margin)
    if mechanism.shared:
        return shared(counts, mechanism.ordered, mechanism.rate, 1 << mechanism.grain, ends)
    return apart(counts, mechanism.ordered, mechanism.rate, ends)


def worst(mechanism: Quantiles, most: int, rows: int) -> Fraction | float:
    """The largest ratio between any multisets of up to `most` rows that differ by up to `rows` rows of one person."""
    found, size = {}, mechanism.buckets
    for first, second in neighbours(size, most, rows):
        for counts in (first, second):
            found.setdefault(counts, law(mechanism, counts))
    return max(ratio(found[first], found[second]) for first, second in neighbours(size, most, rows))


@pytest.mark.parametrize("share", some(["0", "1/2", "95/100", "1/4", "2/3", "1"], pytest.mark.power, quick=3))
@pytest.mark.parametrize(("rows", "epsilon"), [(1, "1"), (2, "1/10"), (2, "3"), (3, "1")])
def test_the_loss_of_one_fraction_is_at_most_epsilon(share: str, rows: int, epsilon: str) -> None:
    mechanism = Quantiles(Fraction(epsilon), (Fraction(share),), 4, rows)
    assert worst(mechanism, 4, rows) <= at_most(Fraction(epsilon))


def test_the_loss_of_one_fraction_is_reached() -> None:
    """A row more behind all: what lies before the target is worse by Δ, and the many buckets behind it better by Δ."""
    mechanism = Quantiles(ONE, (HALF,), 400)
    first, second = (0, 10, *[0] * 397, 9), (0, 10, *[0] * 397, 10)
    assert at_most(Fraction(95, 100)) < ratio(law(mechanism, first), law(mechanism, second)) <= at_most(1)


@pytest.mark.parametrize(("share", "many"), [(HALF, 10), (Fraction(9, 10), 18)])
def test_bounded_range(share: Fraction, many: int) -> None:
    """All logarithms of ratios lie within an interval of length ε, and of hardly less."""
    for rows in (1, 2):
        mechanism = Quantiles(ONE, (share,), 4, rows)
        assert max(spread(law(mechanism, one), law(mechanism, two)) for one, two in neighbours(4, 5, rows)) <= at_most(
            1
        )
    mechanism = Quantiles(ONE, (share,), 5)
    few = many * (1 - share) / share
    first, second = (0, many, 0, 0, int(few) - 1), (0, many, 0, 0, int(few))
    assert at_most(Fraction(99, 100)) < spread(law(mechanism, first), law(mechanism, second)) <= at_most(1)


@pytest.mark.parametrize(
    ("shares", "rows"), [((HALF, Fraction(9, 10)), 1), ((Fraction(1, 4), Fraction(3, 4)), 2), ((Fraction(0), ONE), 1)]
)
def test_two_fractions_apart(shares: tuple[Fraction, ...], rows: int) -> None:
    mechanism = Quantiles(ONE, shares, 3, rows)
    assert not mechanism.shared
    assert worst(mechanism, 5, rows) <= at_most(1)


@pytest.mark.parametrize(
    ("shares", "rows", "most"),
    [
        (QUARTILES, 1, 4),
        (QUARTILES, 2, 4),
        (QUARTILES, 3, 3),
        ((Fraction(1, 10), HALF, ONE), 2, 4),
        ((Fraction(1, 5), Fraction(2, 5), HALF, Fraction(4, 5), Fraction(9, 10)), 2, 3),
    ],
)
def test_shared_choices(shares: tuple[Fraction, ...], rows: int, most: int) -> None:
    """All multisets over two buckets of two places each: also for persons whose rows are in several branches."""
    mechanism = Quantiles(ONE, shares, 2, rows, grain=1)
    assert mechanism.shared
    assert worst(mechanism, most, rows) <= at_most(1)


def test_more_buckets_without_places() -> None:
    for rows in (1, 2):
        mechanism = Quantiles(Fraction(2), QUARTILES, 4, rows, grain=0)
        assert worst(mechanism, 4, rows) <= at_most(2)


class Near(Quantiles):
    """With a margin of one row, and two fifths of the rows at most: so that few rows reach every case."""

    margin = ONE


@pytest.mark.parametrize(
    ("shares", "size", "rows", "most"),
    [
        ((ONE,), 4, 1, 6),
        ((Fraction(0),), 4, 2, 5),
        ((Fraction(7, 10),), 4, 1, 6),
        ((Fraction(0), ONE), 3, 2, 5),
        ((Fraction(0), HALF, ONE), 2, 2, 4),
        ((Fraction(1, 5), Fraction(2, 5), HALF, Fraction(4, 5), ONE), 2, 1, 3),
    ],
)
def test_fractions_that_keep_off_the_ends(shares: tuple[Fraction, ...], size: int, rows: int, most: int) -> None:
    """Where the margin is aimed at, where the part of the rows is, and on the way from one to the other."""
    mechanism = Near(ONE, shares, size, rows, 1, Fraction(2, 5))
    assert mechanism.kept_off()
    assert worst(mechanism, most, rows) <= at_most(1)


@pytest.mark.parametrize("ends", [Fraction(2, 5), Fraction(1, 10)])
@pytest.mark.parametrize("share", [Fraction(0), Fraction(1, 20), Fraction(7, 10), Fraction(99, 100), ONE])
@pytest.mark.parametrize("margin", [Fraction(1, 2), Fraction(7, 3), Fraction(30)])
def test_a_row_moves_the_rank_aimed_at_by_one_at_most(ends: Fraction, share: Fraction, margin: Fraction) -> None:
    aim = Quantiles(ONE, (share,), 5, ends=ends)._aim(share)
    ranks = [aim.rank(rows, margin) for rows in range(400)]
    assert all(0 <= two - one <= aim.sensitivity for one, two in pairwise(ranks))
    assert all(0 <= rank <= rows for rows, rank in enumerate(ranks))


class Doubled(Quantiles):
    """Noise at half."""

    @property
    def rate(self) -> Fraction:
        return 2 * super().rate


class AnyRows(Quantiles):
    """Half a row of sensitivity, however many rows a person has, and whatever the fraction."""

    @property
    def rate(self) -> Fraction:
        return self.epsilon


class OneLevel(Quantiles):
    """As if one choice were made."""

    @property
    def rate(self) -> Fraction:
        return self.epsilon / (2 * self.rows * self._parts(self.shared)[0])


@pytest.mark.parametrize(
    ("mutant", "most"),
    [
        (Doubled(ONE, (HALF,), 5), 6),
        (AnyRows(ONE, (HALF,), 4, 2), 5),
        (AnyRows(ONE, (HALF,), 4, 3), 5),
        (OneLevel(ONE, (HALF, Fraction(9, 10)), 3), 6),
        (OneLevel(ONE, QUARTILES, 3, grain=0), 5),
        (Doubled(ONE, QUARTILES, 3, 2, grain=0), 5),
    ],
)
def test_mutants_are_caught(mutant: Quantiles, most: int) -> None:
    assert worst(mutant, most, mutant.rows) > at_most(mutant.epsilon)


def test_half_a_row_is_for_the_median_alone() -> None:
    mutant = AnyRows(ONE, (Fraction(95, 100),), 400)
    first, second = (0, 38, *[0] * 397, 1), (0, 38, *[0] * 397, 2)
    assert ratio(law(mutant, first), law(mutant, second)) > at_most(Fraction(3, 2))


def test_a_rank_that_keeps_off_the_end_moves_by_a_whole_row() -> None:
    """Also where τ is 3/4: a row more at the end makes all before the target worse by one, and its bucket better."""

    class AsIfFixed(Quantiles):
        margin = Fraction(2)

        @property
        def rate(self) -> Fraction:
            return self.epsilon / (2 * self.ordered[0])

    mutant = AsIfFixed(ONE, (Fraction(3, 4),), 400, ends=Fraction(2, 5))
    first, second = (3, *[0] * 397, 3, 1), (3, *[0] * 397, 3, 2)
    assert ratio(law(mutant, first), law(mutant, second)) > at_most(Fraction(6, 5))


def branches() -> list[tuple[Branch, list[int]]]:
    """Branches of random data, each with the counts of its candidates, from the places themselves."""
    source, found = random.Random(7), []
    for trial in range(150):
        buckets, grain = source.randint(1, 12), source.randint(0, 3)
        counts = tuple(source.choice((0, 0, 1, 2, 30)) for _ in range(buckets))
        held = PlacedRows(pairs(counts), buckets, grain, SystemWords())
        low = source.randrange(held.end)
        high = source.randrange(low, held.end)
        stop = source.choice((high, high + 1))
        fine = bool(trial % 2)
        rate = Fraction(source.choice(("1/50", "1/3", "2", "1")))
        share = Fraction(source.randint(0, 6), 6)
        aim = Aim(share, source.choice((None, Fraction(1, 10) if share < HALF else Fraction(9, 10))))
        branch = Quantiles(2 * rate, (share,), buckets)._branch(held, fine, low, high, stop, aim)
        places = [held.rank(place + 1) - held.rank(place) if place < stop else 0 for place in range(low, high + 1)]
        assert sum(places) == branch.top - branch.base
        step = 0 if fine else grain
        candidates = [0] * ((high >> step) - (low >> step) + 1)
        for place, count in enumerate(places, low):
            candidates[(place >> step) - (low >> step)] += count
        found.append((branch, candidates))
    return found


def test_blocks_hold_every_candidate_once_at_its_level() -> None:
    """So what is proposed with e^(−k) and kept with e^(k − rate·d) has the law of the definition, exactly."""
    for branch, counts in branches():
        known = [off(counts, at, branch.target - branch.base) for at in range(len(counts))]
        assert [branch.off(branch.low + at) for at in range(len(counts))] == known
        levels = {}
        for start, end, k in branch.blocks():
            for candidate in range(start, end):
                assert levels.setdefault(candidate, k) is k
        assert len(list(branch.blocks())) <= 2 * 134
        for at, distance in enumerate(known):
            exponent = branch.rate * distance
            assert levels.get(branch.low + at, 134) == int(min(exponent, 134))
        assert min(known) == 0


@pytest.mark.parametrize(
    ("mechanism", "counts"),
    some(
        [
            (Quantiles(ONE, (HALF,), 8), (0, 3, 0, 1, 5, 0, 2, 0)),
            (Quantiles(ONE, (Fraction(9, 10),), 8, 2), (0, 3, 0, 1, 5, 0, 2, 0)),
            (Quantiles(ONE, (Fraction(3, 4), Fraction(1, 4)), 4), (2, 0, 5, 1)),
            (Quantiles(Fraction(3), QUARTILES, 3, grain=2), (1, 3, 1)),
            (Quantiles(Fraction(2), QUARTILES, 5, grain=0), (4, 0, 9, 1, 2)),
            (Quantiles(ONE, QUARTILES, 5), (0, 0, 0, 0, 0)),
            (Quantiles(Fraction(5), (ONE,), 8), (0, 9, 0, 10, 13, 0, 2, 0)),
            (Quantiles(Fraction(9), (Fraction(0), HALF, ONE), 3, grain=1), (1, 3, 1)),
        ],
        pytest.mark.power,
        quick=2,
    ),
)
def test_draws_fit(mechanism: Quantiles, counts: tuple[int, ...]) -> None:
    """1,500 releases (p < 1e-6 fails), of fractions in their own order; with noise at half they do not fit."""
    if not any(counts):
        expected = shared(counts, mechanism.ordered, mechanism.rate, 8)  # places without rows: any number of them
        mechanism = Quantiles(mechanism.epsilon, mechanism.fractions, mechanism.buckets, grain=3)
    else:
        expected = in_order(law(mechanism, counts))
    drawn = [tuple(sorted(mechanism.release(pairs(counts)))) for _ in range(1_500)]
    assert goodness(drawn, expected) > SMALLEST
    if any(counts):
        wrong = Doubled(mechanism.epsilon, mechanism.fractions, mechanism.buckets, mechanism.rows, mechanism.grain)
        assert goodness([tuple(sorted(wrong.release(pairs(counts)))) for _ in range(1_500)], expected) < SMALLEST


def beyond(share: Fraction, epsilon: Fraction, rows: int) -> float:
    """The chance that a fraction of `rows` values, all in one of 2^16 buckets, is a bucket beyond them, at the end."""
    mechanism = Quantiles(epsilon, (share,), 1 << 16)
    at = 10 if share > HALF else (1 << 16) - 11
    branch = mechanism._branch(
        PlacedRows([(at, rows)], mechanism.buckets, 0, SystemWords()),
        False, 0, mechanism.buckets - 1, mechanism.buckets, mechanism._aim(share),
    )  # fmt: skip
    weight = math.exp(-mechanism.rate * branch.off(mechanism.buckets - 1 - at))
    return (mechanism.buckets - 11) * weight / ((mechanism.buckets - 11) * weight + 1)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), ONE, Fraction(10), Fraction(10**6)])
@pytest.mark.parametrize("share", [Fraction(0), Fraction(1, 100), Fraction(19, 20), ONE])
def test_the_ends_lie_among_the_rows(share: Fraction, epsilon: Fraction) -> None:
    """However many rows more than ten margins: all buckets beyond together are less likely than one in twenty."""
    margin = Quantiles(epsilon, (share,), 1 << 16).margin
    for times in (10, 11, 100, 10_000):
        assert beyond(share, epsilon, math.ceil(times * margin)) <= 0.05


def test_the_maximum_of_a_hundred_values() -> None:
    """79.25 on a lattice up to 100, at ε 10: it was 90 on average, nearly every second one beyond that."""
    mechanism = Quantiles(Fraction(10), (ONE,), 1 << 16)
    held = [(int((at + 1) * 0.7925 * 655.36), 1) for at in range(100)]
    found = [mechanism.release(held)[0] / 655.36 for _ in range(400)]
    assert np.mean(found) < 80
    assert np.mean(np.abs(np.array(found) - 79.25)) < 3.5
    assert mechanism.margin < 3


def test_shared_ends_are_the_last_of_their_branches() -> None:
    """So they are chosen among buckets, and their margin is that of a choice of a bucket."""
    for count in range(2, 40):
        mechanism = Quantiles(ONE, tuple(Fraction(i, count) for i in range(count + 1)), 100)
        leaves = {node.place for level in _levels(mechanism.tree) for node in level if node.aim.inside is not None}
        inner = {node.place for level in _levels(mechanism.tree) for node in level if node.inner}
        assert leaves == {0, count}
        assert not leaves & inner
        assert mechanism.kept_off() == (min(Fraction(1, 10), Fraction(1, count)),)


def test_answers_keep_the_order_of_the_question() -> None:
    mechanism = Quantiles(Fraction(1000), (Fraction(3, 4), HALF, Fraction(1, 4), HALF), 1000)
    assert mechanism.release([(10 * i, 100) for i in range(100)]) == pytest.approx([745, 495, 245, 495], abs=6)


def test_answers_are_in_order_whatever_the_noise() -> None:
    mechanism = Quantiles(Fraction(1, 1000), tuple(Fraction(i, 20) for i in range(1, 20)), 1000)
    for _ in range(20):
        answers = mechanism.release([(3, 5), (500, 1), (998, 30)])
        assert all(one <= two for one, two in pairwise(answers))


def errors(values: np.ndarray, answers: list[int], mechanism: Quantiles) -> list[float]:
    """How far each answer's ranks are from its target."""
    found = []
    for answer, share in zip(answers, mechanism.fractions, strict=True):
        target = float(share) * len(values)
        less, most = np.searchsorted(values, answer), np.searchsorted(values, answer, "right")
        found.append(max(float(less) - target, target - float(most), 0.0))
    return found


@pytest.mark.parametrize("count", some([1, 9, 3, 99], pytest.mark.power, quick=2))
def test_ranks_are_within_the_half_width(count: int) -> None:
    """Also where three rows in five have the same value, which must not shift the others' ranks."""
    source = np.random.default_rng(5)
    tied = np.sort(np.r_[np.full(12_000, 500), source.integers(0, 100_000, 8_000)])
    spread_out = np.sort(source.normal(50_000, 10_000, 20_000).astype(int).clip(0, 99_999))
    mechanism = Quantiles(ONE, tuple(Fraction(i, count + 1) for i in range(1, count + 1)), 100_000)
    for values in (tied, spread_out):
        held = [(int(at), int(n)) for at, n in zip(*np.unique(values, return_counts=True), strict=True)]
        found = np.array([errors(values, mechanism.release(held), mechanism) for _ in range(3)])
        assert found.max() <= mechanism.half_width(1 - 1e-9)
        assert found.mean() < 25  # of 20,000


@pytest.mark.parametrize("epsilon", [Fraction(100), ONE, Fraction(1, 1000)])
def test_few_of_ten_thousand_values_are_looked_at(epsilon: Fraction) -> None:
    """So the time a choice takes does not grow with them: two buckets for each level of the exponent at most."""
    mechanism = Quantiles(epsilon, (HALF,), 1_000_000)
    held = PlacedRows([(90 * i, 1 + i % 7) for i in range(10_000)], mechanism.buckets, mechanism.grain, SystemWords())
    branch = mechanism._branch(held, True, 0, held.end - 1, held.end, Aim(HALF))
    assert len(list(branch.blocks())) <= 2 * 134
    assert len(held._inside) <= 2 * 134


def test_many_rows_of_one_value() -> None:
    """Three million, which get their places a million at a time: as many as there are, in all places alike."""
    held = PlacedRows([(1, 5), (2, 3_000_000), (3, 1)], 4, 4, SystemWords())
    places, most = held.inside(1)
    assert places.tolist() == list(range(32, 48))
    assert most[-1] == 3_000_005
    each = np.diff(most, prepend=5)
    assert abs(each - 187_500).max() < 7 * 420  # standard deviations
    assert held.rank(33) == most[0]
    assert Quantiles(ONE, QUARTILES, 4).release([(1, 5), (2, 3_000_000), (3, 1)]) == [2, 2, 2]


def test_without_places_ties_shift_the_other_fractions() -> None:
    """Three rows in five at one value: the quartiles of what is left before and behind it are not those of all."""
    held = [(500, 12_000), *((at, 1) for at in range(1_000, 9_000))]
    values = np.repeat([at for at, _ in held], [count for _, count in held])
    right, wrong = (Quantiles(Fraction(10), QUARTILES, 10_000, grain=grain) for grain in (13, 0))
    assert max(errors(values, right.release(held), right)) < 200
    assert max(errors(values, wrong.release(held), wrong)) > 3_000


def test_losses() -> None:
    assert Quantiles(ONE, (HALF,), 10).loss() == accounting.BoundedRange(1)
    assert Quantiles(ONE, (HALF,), 10).rate == 1
    assert Quantiles(ONE, (HALF,), 10, 5).rate == Fraction(1, 5)
    assert Quantiles(ONE, (Fraction(1, 5),), 10, 5).rate == Fraction(1, 8)
    assert Quantiles(ONE, (HALF, Fraction(3, 4)), 10).loss() == accounting.Batch(
        (accounting.BoundedRange(Fraction(2, 5)), accounting.BoundedRange(Fraction(3, 5)))
    )
    assert Quantiles(ONE, QUARTILES, 10).loss() == accounting.Batch((accounting.BoundedRange("0.5"),) * 2)
    for count in range(1, 40):
        found = Quantiles(Fraction(1, 3), tuple(Fraction(i, count + 1) for i in range(1, count + 1)), 10, 2)
        assert found.loss().pure == Fraction(1, 3)
    assert "levels" in Quantiles(ONE, QUARTILES, 10).describe()


@pytest.mark.parametrize(
    "bad",
    [
        {"epsilon": 1.0},
        {"epsilon": Fraction(0)},
        {"fractions": ()},
        {"fractions": (0.5,)},
        {"fractions": (Fraction(3, 2),)},
        {"buckets": 0},
        {"buckets": 1 << 60},
        {"rows": 0},
        {"rows": 1.5},
        {"grain": 17},
        {"ends": 0.1},
        {"ends": HALF},
    ],
)
def test_bad_parameters(bad: dict) -> None:
    with pytest.raises(ValueError, match=r"epsilon|fraction|buckets|rows|ends"):
        Quantiles(**{"epsilon": ONE, "fractions": (HALF,), "buckets": 5, **bad})


NO_LISTS = [[(1, 1), (0, 1)], [(5, 1)], [(-1, 1)], [(1, 1), (1, 1)], [(1, -1)], [(1, 1.5)], [(1,)]]


@pytest.mark.parametrize("counts", NO_LISTS)
def test_what_is_no_list_of_counts(counts: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match=r"in order|negative|integers"):
        Quantiles(ONE, (HALF,), 5).release(counts)
