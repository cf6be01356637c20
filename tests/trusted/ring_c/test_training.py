"""The integer sums of gradient descent: what one person can change, and that nobody else's part moves."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from discreet import Curator
from discreet.noise import rounded_gaussian
from discreet.trusted.ring_a import additive
from discreet.trusted.ring_a.bits import SystemWords
from discreet.trusted.ring_c.features import UNIT
from discreet.trusted.ring_c.sampling import PoissonSample, RandomBlocks
from discreet.trusted.ring_c.training import (
    STEPS_OF_CLIP,
    Training,
    TrainingRows,
    _rows,
    certified,
    clipped,
    linear,
    logistic,
    rounded,
)
from discreet.trusted.ring_c.vectors import Vectors
from kinds import examples, some
from learning_tools import curator, planned, surely_above

S = STEPS_OF_CLIP
CROWD = [
    {
        "p": f"n{i % 17}",
        "v": [0.5, -2.0, 6.0, None, math.nan, 3.25, math.inf][i % 7],
        "k": [0, 10, None, 3, -(2**63), 2**63 - 1][i % 6],
        "g": ["x", "y", "Zürich's", None, "else"][i % 5],
        "b": [True, False, None][i % 3],
        "d": [datetime.date(2020, 3, 1 + i % 9), None, datetime.date(1, 1, 1)][i % 3],
        "y": ["no", "yes", "yes", None, "maybe"][i % 5],
    }
    for i in range(50)
]
TARGETS: Mapping[str, Sequence[dict[str, Any]]] = {
    "one row": [{"p": "n5x", "v": 6.0, "k": 10, "g": "y", "b": True, "y": "yes", "d": datetime.date(2020, 12, 31)}],
    "many rows": [{"p": "n5x", "v": 6.0, "k": 10, "g": "y", "b": True, "y": "yes"}] * 5_000,
    "first of all, NULL": [{"p": "", "y": "no"}],
    "last of all, infinite": [{"p": "\U0010ffff", "v": -math.inf, "k": -(2**63), "y": "no"}] * 3,
    "no target": [{"p": "n5x", "v": 6.0, "k": 10}] * 2,
}


def rows_of(one: Curator, **call: Any) -> TrainingRows:
    """The rows as training sees them, from the real engine."""
    training = planned(one, **call).measurement(lambda _: None)
    return _rows(one._engine.vectors(training.table, training._wanted()), training)


def weights_for(rows: TrainingRows, seed: int) -> list[Any]:
    random = numpy.random.default_rng(seed)
    width = rows.features.shape[1]
    return [rounded(random.normal(0, scale, width)) for scale in (0.0, 0.01, 1.0, 1e9)]


def norm(vector: Any) -> int:
    return sum(int(value) ** 2 for value in vector)


@pytest.mark.parametrize("target", TARGETS, ids=list(TARGETS))
@pytest.mark.parametrize(
    "call",
    some([{}, {"model": "linear", "target": "k"}, {"clip": "0.01"}, {"clip": 1000}], pytest.mark.power, quick=2),
    ids=repr,
)
def test_one_person_changes_the_sum_by_at_most_the_bound(target: str, call: dict[str, Any]) -> None:
    """Through the real engine, person in and out, same sample for the others, four sizes of weights: the sums differ by
    a vector of at most STEPS_OF_CLIP, and everybody else adds the same integers wherever they stand."""
    clip = Fraction(str(call.get("clip", 1)))
    mine = list(TARGETS[target])
    with curator([*CROWD[:20], *mine, *CROWD[20:]]) as with_him, curator(CROWD) as without:
        more, less = rows_of(with_him, **call), rows_of(without, **call)
    assert more.persons == less.persons + 1
    place = (
        0 if mine[0]["p"] == "" else more.persons - 1 if mine[0]["p"] > "z" else _place(more, min(len(mine), 100))
    )  # more are not held
    random = numpy.random.default_rng(7)
    for weights in weights_for(more, 3):
        parts = more.parts(numpy.arange(len(more.person)), weights, clip)
        others = less.parts(numpy.arange(len(less.person)), weights, clip)
        assert numpy.array_equal(numpy.delete(parts, place, axis=0), others)
        assert all(norm(part) <= S * S for part in parts)
        sample = random.random(less.persons) < 0.5
        whole = numpy.insert(sample, place, True)
        change = numpy.array(more.sum(whole, weights, clip)) - numpy.array(less.sum(sample, weights, clip))
        assert norm(change) <= S * S
        if "model" not in call:
            assert norm(change) == 0 if target == "no target" else norm(change) > 0
        if target == "many rows" and clip == 1:
            assert norm(change) > 0.999 * S * S


def _place(rows: TrainingRows, mine: int) -> int:
    """The number of the person n5x, between n5 and n6."""
    names = sorted({row["p"] for row in CROWD} | {"n5x"})
    place = names.index("n5x")
    assert (rows.person == place).sum() == mine
    return place


def test_each_row_may_be_a_person() -> None:
    with curator(CROWD, persons=False) as one, curator(CROWD[1:], persons=False) as other:
        more, less = rows_of(one), rows_of(other)
    assert (more.persons, less.persons) == (50, 49)
    for weights in weights_for(more, 5):
        parts = [rows.parts(numpy.arange(rows.persons), weights, Fraction(1)) for rows in (more, less)]
        assert numpy.array_equal(parts[0][1:], parts[1])


WILD = st.integers(-(2**62), 2**62)


@settings(max_examples=examples(150), derandomize=True)
@given(arrays.arrays(numpy.int64, (3, 7), elements=st.one_of(WILD, st.integers(-3, 3), st.integers(-(2**27), 2**27))))
def test_clipped_gradients_are_within_the_bound_and_point_the_same_way(gradients: Any) -> None:
    parts = clipped(gradients, Fraction(1))
    for part, gradient in zip(parts, gradients, strict=True):
        assert norm(part) <= S * S
        length = math.sqrt(norm(gradient)) / (UNIT << 12)
        ideal = [int(value) / (UNIT << 12) * S * (min(1.0, 1 / length) if length else 1.0) for value in gradient]
        assert numpy.allclose(part, ideal, atol=2)


@settings(max_examples=examples(150), derandomize=True)
@given(arrays.arrays(numpy.float64, (2, 5)))
def test_the_certificate_holds_whatever_floats_come(parts: Any) -> None:
    """Not-a-number, infinities, anything: whole numbers within the bound come out, or nothing."""
    for part in certified(numpy.trunc(parts)):
        assert norm(part) <= S * S


def test_the_certificate_keeps_what_fits() -> None:
    keep = numpy.array([[S, 0.0], [0.0, -S], [3.0, -4.0]])
    assert numpy.array_equal(certified(keep), keep)
    assert not certified(numpy.array([[S, 1.0], [S + 1.0, 0.0], [math.nan, 0.0]])).any()


def test_residuals_are_those_of_the_models() -> None:
    product = numpy.array([-40.0, -1.0, 0.0, 2.5, 40.0]) * (UNIT << 20)
    expected = [1 / (1 + math.exp(-z)) - 1 for z in (-40.0, -1.0, 0.0, 2.5, 40.0)]
    ones = numpy.ones(5, numpy.int64)
    assert logistic(product, ones) / 4096 == pytest.approx(expected, abs=1e-3)
    assert linear(product, ones * 1024) / 4096 == pytest.approx([-2.25, -1.25, -0.25, 1.75, 1.75], abs=1e-3)


class Known:
    """Rows that the real engine gave once: sampling and noise alone are drawn afresh."""

    def __init__(self, one: Curator, training: Training) -> None:
        self.found = one._engine.vectors(training.table, training._wanted())

    def vectors(self, *_: object) -> Vectors:
        return self.found


@pytest.mark.power
def test_the_attack_finds_no_more_than_the_price_and_half_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """One step over everybody, whose last weight times the persons is the noisy sum of the intercepts' gradients."""
    first, second = [], []
    for halved in (False, True):
        if halved:
            monkeypatch.setattr(additive, "rounded_gaussian", lambda sigma, size: rounded_gaussian(sigma / 2, size))
        with_him, without, mu = projected()
        at = [float(numpy.quantile(without[::2], share)) for share in (0.3, 0.5, 0.7)]
        first.append(any(surely_above(with_him[1::2], without[1::2], mu, place) for place in at))
        second.append(any(surely_above(with_him[1::2], without[1::2], mu / 2, place) for place in at))
    assert first == [False, True]
    assert second == [True, True]


def projected(count: int = 3_000) -> tuple[list[float], list[float], float]:
    """Noisy sums of one step, projected on the person's own direction, with and without the person; and μ."""
    mine = list(TARGETS["many rows"][:20])
    with curator([*CROWD, *mine], epsilon=100) as one, curator(CROWD, epsilon=100) as other:
        call: dict[str, Any] = {"steps": 1, "sample_rate": 1, "epsilon": 4, "delta": "0.001"}
        training = planned(one, **call).measurement(lambda _: None)
        engines: list[Any] = [Known(each, training) for each in (one, other)]
    rows = [_rows(engine.vectors(), training) for engine in engines]
    nothing = numpy.zeros(len(training.features.names) + 1)
    sums = [numpy.array(each.sum(numpy.full(each.persons, True), nothing, Fraction(1)), float) for each in rows]
    direction = (sums[0] - sums[1]) / S
    samples: list[list[float]] = []
    for engine in engines:
        drawn = [training.draw(engine) for _ in range(count)]
        # one step from 0 with momentum: minus the rate, times the clip over the expected batch, times the noisy sum
        samples.append([-float(numpy.dot(run.weights, direction)) * max(1, run.persons) for run in drawn])
    mu = math.sqrt(float(training.loss.parts[0].mu_squared or 0))  # type: ignore[union-attr]
    return samples[0], samples[1], mu


def test_each_step_draws_its_own_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run costs what it does because who takes part is drawn anew in each step. Of 17 persons and 40 steps at a half,
    fewer than 36 different samples, or a person who takes part in none or in all, come once in 10^9 runs."""
    samples: list[tuple[bool, ...]] = []
    add_up = TrainingRows.sum

    def noted(rows: TrainingRows, sampled: Any, weights: Any, clip: Fraction) -> list[int]:
        samples.append(tuple(sampled.tolist()))
        return add_up(rows, sampled, weights, clip)

    monkeypatch.setattr(TrainingRows, "sum", noted)
    with curator(CROWD) as one:
        training = planned(one, steps=40, epsilon=4).measurement(lambda _: None)
        training.draw(one._engine)
    assert len(samples) == 40
    assert len(set(samples)) >= 36
    assert all(0 < sum(person) < 40 for person in zip(*samples, strict=True))


class Bits:
    """Words that a test chooses."""

    def __init__(self, *values: int) -> None:
        self.values = values

    def integers(self, bits: int, size: int) -> Any:
        assert all(value < 1 << bits for value in self.values)
        return numpy.array(self.values[:size], numpy.uint64)

    def big(self, bits: int) -> int:
        raise NotImplementedError(bits)


def test_a_sample_is_drawn_by_comparing_integers() -> None:
    third = (1 << 63) // 3
    words = Bits(0, third - 1, third, (1 << 63) - 1)
    assert PoissonSample(Fraction(1, 3)).release(4, words).tolist() == [True, True, False, False]
    assert PoissonSample(Fraction(1)).release(4, words).all()
    assert not PoissonSample(Fraction(1, 1 << 70)).release(4, words).any()
    assert PoissonSample(Fraction(1, 2)).release(0).tolist() == []
    for rate in (Fraction(0), Fraction(3, 2), 0.5):
        with pytest.raises(ValueError, match="rate"):
            PoissonSample(rate)  # type: ignore[arg-type]


def test_blocks_are_drawn_evenly() -> None:
    last = (1 << 48) - 1
    assert RandomBlocks(5).release(3, Bits(0, last // 2, last)).tolist() == [0, 2, 4]
    counts = numpy.bincount(RandomBlocks(7).release(70_000, SystemWords()), minlength=7)
    assert abs(counts - 10_000).max() < 700  # seven deviations
    for blocks in (0, 1 << 15):
        with pytest.raises(ValueError, match="block"):
            RandomBlocks(blocks)
