"""What a round is of at a small price: columns again where noise hides them, several together where they tell more."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from discreet.markov import Domain, MarginalMeasurement, fit
from discreet.synthesis.adaptive import synthesise
from discreet.synthesis.gains import heard, partners, single_gains
from memory_measurer import Memory, planned

DELTA = Fraction(1, 10**9)
DOMAIN = Domain(tuple("abcdef"), (12, 10, 8, 8, 6, 4))


def independent(rows: int):
    generator = np.random.default_rng(5)
    return np.stack([generator.zipf(1.6, rows) % size for size in DOMAIN.sizes], axis=1)


def test_what_is_no_more_than_noise_is_not_heard() -> None:
    """With noise alone, some 3 of 100 are heard: of 200 no more than 40 but for 1e-6."""
    generator = np.random.default_rng(1)
    expected = np.full((20, 10), 50)
    told = [
        heard(expected + np.rint(generator.normal(0, 30, (20, 10))).astype(np.int64), expected, 30.0, 1e4)
        for _ in range(200)
    ]
    assert sum(one.clear for one in told) < 40
    moved = expected.copy()
    moved[0] += 200
    moved[1] -= 200
    clear = heard(moved, expected, 30.0, 10_000.0)
    assert clear.clear
    assert clear.gain >= 2 * np.abs(moved - expected).sum() / 10_000
    assert heard(expected, expected, 30.0, 10_000.0).gain == 0


def test_what_noise_of_single_columns_explains_is_no_news() -> None:
    """The model takes two independent columns for what their noisy counts are: without noise of the pair itself, all
    that it is off by comes from these."""
    one, other = np.array([500, 300, 200]), np.array([600, 400])
    expected = np.multiply.outer(one, other) // 1000
    told = np.multiply.outer(one + np.array([40, -20, -20]), other) // 1000
    assert heard(told, expected, 1.0, 1000.0).clear
    assert not heard(told, expected, 1.0, 1000.0, [30.0, 30.0]).clear
    assert heard(told, expected, 1.0, 1000.0, [1.0, 1.0]).clear


def test_the_gain_of_a_column_again_is_what_it_is_off_by_less() -> None:
    """No more is gained than there are rows, and less each time."""
    domain = Domain.of({"a": 4, "b": 2})
    known = [MarginalMeasurement((n,), np.full(domain.size(n), 400 // domain.size(n)), Fraction(9)) for n in "ab"]
    model = fit(domain, known)
    often = partners([("a", "b")], ("a", "b"))
    assert often == {"a": 1, "b": 1}
    gains = [single_gains(model, {"a": p, "b": p}, 1 / 81, often) for p in (1 / 81, 2 / 81, 3 / 81)]
    assert gains[0]["a"] == pytest.approx(4 * 9 * (2 / np.pi) ** 0.5 * (1 - 2**-0.5) / 400, rel=1e-2)
    assert [one["a"] for one in gains] == sorted((one["a"] for one in gains), reverse=True)
    assert all(one["a"] > one["b"] for one in gains)
    hidden = single_gains(model, {"a": 1e-12, "b": 1e-12}, 1e-12, often)
    assert hidden == pytest.approx({"a": 0, "b": 0})


def test_partners_are_those_of_the_workload() -> None:
    assert partners([("a", "b", "c"), ("c", "d"), ("e",)], tuple("abcef")) == {"a": 2, "b": 2, "c": 3, "e": 1, "f": 0}


def test_where_noise_hides_the_table_columns_are_measured_again() -> None:
    """Nothing is left of the rounds, and no more was spent than is declared."""
    schedule = planned("adaptive", DOMAIN, "0.1", DELTA)
    result = synthesise(schedule, DOMAIN, Memory(independent(3000), DOMAIN))
    assert result.complete
    assert len(result.measurements) == len(schedule.singles) + len(schedule.rounds)
    again = [one for one in result.measurements if len(one.clique) == 1]
    assert len(again) > len(schedule.singles)
    declared = [schedule.single_sigma] * len(schedule.singles) + [one.sigma for one in schedule.rounds]
    assert [one.sigma for one in result.measurements] == declared
