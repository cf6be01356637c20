"""Losses as the ledger stores them: the same values come back, and the words never change."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import (
    Approximate,
    Batch,
    BoundedRange,
    DiscreteLaplace,
    EquivalentGaussian,
    Gaussian,
    Laplace,
    Loss,
    Pure,
    SubsampledGaussian,
    ZeroConcentrated,
    loss_from_json,
)
from discreet.trusted.ring_a.curves import mu_of_pure
from kinds import examples

KIND = "exact"

TENTH = Fraction(1, 10)
GOLDEN: list[tuple[Loss, str]] = [
    (Pure(TENTH), '{"event": "pure", "epsilon": "1/10"}'),
    (DiscreteLaplace(Fraction(2), 14), '{"event": "discrete_laplace", "epsilon": "2", "sensitivity": 14}'),
    (Gaussian(Fraction(3, 7)), '{"event": "gaussian", "mu": "3/7"}'),
    (Approximate(TENTH, Fraction(1, 10**9)), '{"event": "approximate", "epsilon": "1/10", "delta": "1/1000000000"}'),
    (
        Batch((Pure(TENTH), Gaussian(Fraction(2)))),
        '{"event": "batch", "parts": [{"event": "pure", "epsilon": "1/10"}, {"event": "gaussian", "mu": "2"}]}',
    ),
    (Batch(()), '{"event": "batch", "parts": []}'),
    (Laplace(TENTH), '{"event": "laplace", "epsilon": "1/10"}'),
    (BoundedRange(TENTH), '{"event": "bounded_range", "epsilon": "1/10"}'),
    (EquivalentGaussian(TENTH, TENTH), '{"event": "equivalent_gaussian", "mu": "1/10", "delta": "1/10"}'),
    (
        SubsampledGaussian(1, TENTH, 100),
        '{"event": "subsampled_gaussian", "sigma": "1", "rate": "1/10", "steps": 100}',
    ),
    (ZeroConcentrated(TENTH), '{"event": "zero_concentrated", "rho": "1/10"}'),
]
"""What ledgers hold already. A line here may be added, never changed."""


@pytest.mark.parametrize(("loss", "written"), GOLDEN)
def test_stored_events_keep_their_words_and_their_meaning(loss: Loss, written: str) -> None:
    assert json.dumps(loss.to_json()) == written
    assert loss_from_json(json.loads(written)) == loss


AMOUNTS = st.fractions(min_value=0, max_value=100)
SINGLE = st.one_of(
    st.builds(Pure, AMOUNTS),
    st.builds(DiscreteLaplace, AMOUNTS, st.integers(1, 2**80)),
    st.builds(Gaussian, AMOUNTS),
    st.builds(Approximate, AMOUNTS, st.fractions(min_value=0, max_value=1)),
    st.builds(Laplace, AMOUNTS),
    st.builds(BoundedRange, AMOUNTS),
    st.builds(EquivalentGaussian, AMOUNTS, st.fractions(min_value=0, max_value=1)),
    st.builds(SubsampledGaussian, AMOUNTS.map(lambda x: x + 1), st.just(TENTH), st.integers(1, 9)),
    st.builds(ZeroConcentrated, AMOUNTS),
)
LOSSES = st.one_of(SINGLE, st.lists(SINGLE, max_size=4).map(lambda parts: Batch(tuple(parts))))


@settings(max_examples=examples(200), deadline=None, derandomize=True)
@given(loss=LOSSES)
def test_a_loss_comes_back_as_it_was_written(loss: Loss) -> None:
    assert loss_from_json(json.loads(json.dumps(loss.to_json()))) == loss


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ({}, "unknown event"),
        ({"event": "unheard of", "epsilon": "1"}, "unknown event"),
        ({"event": "batch", "parts": [{"event": "batch", "parts": []}]}, "cannot contain a batch"),
        ({"event": "pure", "epsilon": "no number"}, "no number"),
    ],
)
def test_an_event_of_a_newer_program_is_refused(event: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        loss_from_json(event)


def test_what_each_event_takes_from_each_account() -> None:
    mu = mu_of_pure(TENTH)
    delta = Fraction(1, 10**9)
    expected: list[tuple[Loss, Fraction | None, Fraction, Fraction]] = [
        (Pure(TENTH), TENTH, mu**2, Fraction(0)),
        (DiscreteLaplace(TENTH, 5), TENTH, mu**2, Fraction(0)),
        (Gaussian(Fraction(1, 2)), None, Fraction(1, 4), Fraction(0)),
        (Approximate(TENTH, delta), TENTH, mu**2, delta),
        (Batch((Pure(TENTH), Approximate(TENTH, delta))), 2 * TENTH, 2 * mu**2, delta),
        (Batch((Pure(TENTH), Gaussian(Fraction(1, 2)))), None, mu**2 + Fraction(1, 4), Fraction(0)),
    ]
    for loss, pure, mu_squared, keys_delta in expected:
        assert (loss.pure, loss.mu_squared, loss.keys_delta) == (pure, mu_squared, keys_delta)
