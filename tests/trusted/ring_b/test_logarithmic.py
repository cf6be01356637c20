"""Bounds from noisy powers of two: the law of what is released, exactly; what typical data get; and what no data do."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest

from discreet import accounting
from discreet.mechanisms import Bounds, Edge, Laplace, LogarithmicRange
from kinds import some
from order_tools import SMALLEST, at_most, decay, goodness, ratio

KIND = "exact"

ONE = Fraction(1)


@cache
def reaches(scale: Fraction, count: int, least: int) -> Fraction:
    """P(count + X ≥ least) for discrete Laplace X: q^j/(1 + q) for j ≥ 1, and 1 less that of the other side."""
    q, j = decay(1 / scale), least - count
    return q**j / (1 + q) if j >= 1 else 1 - q ** (1 - j) / (1 + q)


def law(mechanism: LogarithmicRange, counts: Sequence[int]) -> dict[Bounds, Fraction]:
    """The bounds depend on whether each noisy count is below `step`, below `bar`, or above: all ways, one by one."""
    bar, step, scale = mechanism.bar, mechanism.step, mechanism.noise.scale
    assert step <= bar
    classes = []
    for count in counts:
        high, low = reaches(scale, count, bar), reaches(scale, count, step)
        classes.append({step - 1: 1 - low, **({step: low - high} if step < bar else {}), bar: high})
    found: dict[Bounds, Fraction] = defaultdict(Fraction)
    for noisy in product(*classes):
        mass = math.prod((chances[one] for chances, one in zip(classes, noisy, strict=True)), start=ONE)
        found[mechanism.around(noisy)] += mass
    return dict(found)


def neighbours(mechanism: LogarithmicRange, touched: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Counts around the bars, and a person more in up to so many buckets."""
    levels = (0, mechanism.step - 2, mechanism.bar - 1, mechanism.bar + 2)
    for counts in product(levels, repeat=2 * mechanism.last + 1):
        for change in product((0, 1), repeat=len(counts)):
            if 1 <= sum(change) <= touched:
                yield counts, tuple(one + more for one, more in zip(counts, change, strict=True))


def worst(mechanism: LogarithmicRange, touched: int) -> Fraction | float:
    find = cache(lambda counts: law(mechanism, counts))
    return max(ratio(find(one), find(two)) for one, two in neighbours(mechanism, touched))


@pytest.mark.parametrize(
    ("touched", "epsilon"), some([(1, ONE), (2, Fraction(1, 2)), (3, Fraction(3))], pytest.mark.power, quick=2)
)
def test_the_loss_is_at_most_epsilon_and_nearly_reached(touched: int, epsilon: Fraction) -> None:
    mechanism = LogarithmicRange(epsilon, touched, 0, 0)
    assert at_most(epsilon * Fraction(2, 3)) < worst(mechanism, touched) <= at_most(epsilon)


class Doubled(LogarithmicRange):
    """Noise at half."""

    @property
    def noise(self) -> Laplace:
        return Laplace(super().noise.scale / 2)


@pytest.mark.parametrize(
    ("mutant", "touched"), [(Doubled(ONE, 1, 0, 0), 1), (LogarithmicRange(ONE, 1, 0, 0), 2), (Doubled(ONE, 2, 0, 0), 2)]
)
def test_mutants_are_caught(mutant: LogarithmicRange, touched: int) -> None:
    assert worst(mutant, touched) > at_most(1)


def test_draws_fit() -> None:
    """4,000 releases (p < 1e-6 fails) in five buckets; with noise at half they do not fit."""
    mechanism, counts = LogarithmicRange(ONE, 1, 0, 1), {-2: 3, 0: 4, 1: 6, 2: 2}
    expected = law(mechanism, [counts.get(number, 0) for number in range(-2, 3)])
    assert goodness([mechanism.release(counts) for _ in range(4_000)], expected) > SMALLEST
    assert goodness([Doubled(ONE, 1, 0, 1).release(counts) for _ in range(4_000)], expected) < SMALLEST


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), ONE, Fraction(1000)])
@pytest.mark.parametrize("sensitivity", [1, 4])
def test_empty_buckets_stay_below_their_bars(epsilon: Fraction, sensitivity: int) -> None:
    mechanism = LogarithmicRange(epsilon, sensitivity)
    scale = epsilon / sensitivity
    for bar, chance in ((mechanism.bar, Fraction(1, 40 * 257)), (mechanism.step, Fraction(1, 80))):

        def tail(least: int) -> Fraction:
            return decay(scale * least) / (1 + decay(scale))

        assert tail(bar) <= chance * Fraction(1_000_001, 1_000_000)
        assert bar == 1 or tail(bar - 1) > chance


def test_bounds_rarely_go_beyond_the_data() -> None:
    """P(beyond) ≤ miss = 1/20: of 2,000 releases fewer than 160, which has a probability below 1e-8 at 1/20."""
    mechanism = LogarithmicRange(Fraction(1, 10), lowest=-8, highest=12)
    held = {mechanism.bucket(2**k): 10 + 200 * (k % 2) for k in range(4, 9)}
    low, high = Fraction(2**4), Fraction(2**9)
    found = [mechanism.release(held) for _ in range(2_000)]
    assert sum(bounds.low.value < low or bounds.high.value > high for bounds in found) < 160
    none = [mechanism.release({}) for _ in range(2_000)]
    assert sum(bounds.found for bounds in none) < 160
    assert Counter(none).most_common(1)[0][0] == Bounds(Edge(-1), Edge(1), False)


@pytest.mark.parametrize(
    ("name", "low", "high", "inside"),
    [("income", 0, 2**18, 0.9), ("age", 0, 128, 0.93), ("both", -(2**12), 2**12, 0.93), ("zero", 0, 1, 0.93)],
)
def test_typical_data(name: str, low: int, high: int, inside: float) -> None:
    """A thousand persons at ε = 0.1: nine in ten within bounds no wider than the powers of two around all."""
    source = np.random.default_rng(3)
    values = {
        "income": source.lognormal(10.5, 0.6, 1000),
        "age": source.integers(18, 90, 1000),
        "both": source.normal(0, 700, 1000),
        "zero": np.r_[np.zeros(960), source.integers(1, 3, 40)],
    }[name]
    mechanism = LogarithmicRange(Fraction(1, 10))
    counts = Counter(mechanism.bucket(value) for value in values.tolist())
    wide, kept = 0, []
    for _ in range(50):
        bounds = mechanism.release(counts)
        assert bounds.found  # missed with probability below e^(−14)
        below, above = bounds.low.value, bounds.high.value
        kept.append(np.mean((values >= float(below)) & (values <= float(above))))
        wide += below < low or above > high
    assert np.mean(kept) > inside
    assert wide < 20  # next to impossible at 1/20


def test_buckets_are_exact() -> None:
    mechanism = LogarithmicRange(ONE)
    source = random.Random(1)
    for _ in range(500):
        value = source.choice((-1, 1)) * source.random() * 2.0 ** source.randint(-70, 70)
        number = mechanism.bucket(value)
        exponent = abs(number) + mechanism.lowest - 1
        assert math.copysign(1, value) * number >= 0
        if number == 0:
            assert abs(value) < 2.0**-64
        else:
            assert 2.0**exponent <= abs(value)
            assert abs(value) < 2.0 ** (exponent + 1) or exponent == mechanism.highest
    for power in range(-64, 64):
        near = Fraction(1, 2**100)
        assert mechanism.bucket(Fraction(2) ** power) == power + 65
        assert mechanism.bucket(-(Fraction(2) ** power)) == -power - 65
        assert mechanism.bucket(Fraction(2) ** power - near) == power + 64
    assert mechanism.bucket(0) == mechanism.bucket(-0.0) == mechanism.bucket(5e-324) == 0
    assert mechanism.bucket(math.inf) == -mechanism.bucket(-1e308) == 128
    assert mechanism.bucket(2**63) == 128
    with pytest.raises(ValueError, match="NaN"):
        mechanism.bucket(math.nan)


@pytest.mark.parametrize(
    ("full", "low", "high"),
    [
        ({1}, Fraction(1, 4), Fraction(1, 2)),
        ({0}, Fraction(0), Fraction(1, 4)),
        ({-1}, Fraction(-1, 2), Fraction(-1, 4)),
        ({-1, 3}, Fraction(-1, 2), Fraction(2)),
        ({0, 2}, Fraction(0), Fraction(1)),
        ({-2, 0}, Fraction(-1), Fraction(0)),
        (set(), Fraction(-1), Fraction(1)),
    ],
)
def test_edges(full: set[int], low: Fraction, high: Fraction) -> None:
    mechanism = LogarithmicRange(ONE, lowest=-2, highest=0)
    bounds = mechanism.around([mechanism.bar if number in full else 0 for number in range(-3, 4)])
    assert (bounds.low.value, bounds.high.value, bounds.found) == (low, high, bool(full))


def test_a_neighbour_needs_less() -> None:
    mechanism = LogarithmicRange(ONE, lowest=-2, highest=0)
    step, bar = mechanism.step, mechanism.bar
    assert mechanism.around([0, 0, 0, step, bar, step, step - 1]) == Bounds(Edge(0), Edge(1, 0), True)
    assert mechanism.around([step, 0, 0, 0, bar, 0, step]) == Bounds(Edge(1, -2), Edge(1, -1), True)


def test_losses() -> None:
    assert LogarithmicRange(Fraction(1, 10), 3).loss() == accounting.DiscreteLaplace("0.1", 3)
    assert "257" in LogarithmicRange(ONE).describe()


@pytest.mark.parametrize(
    "bad", [{"epsilon": 1.0}, {"sensitivity": 0}, {"lowest": 5, "highest": 4}, {"highest": 9999}, {"miss": ONE}]
)
def test_bad_parameters(bad: dict) -> None:
    with pytest.raises(ValueError, match=r"epsilon|sensitivity|exponents|miss"):
        LogarithmicRange(**{"epsilon": ONE, **bad})
    with pytest.raises(ValueError, match="bucket"):
        LogarithmicRange(ONE).release({129: 1})
    with pytest.raises(ValueError, match="integers"):
        LogarithmicRange(ONE).release({1: 1.5})
