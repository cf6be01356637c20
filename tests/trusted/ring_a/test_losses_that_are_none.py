"""No loss is below nothing, no delta above certainty: another release could spend the difference."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from typing import ClassVar

import pytest
from attrs import frozen

from discreet.trusted.ring_a import loss as losses
from discreet.trusted.ring_a.loss import (
    Approximate,
    DiscreteLaplace,
    EquivalentGaussian,
    GaussianLoss,
    Pure,
    Single,
    loss_from_json,
    stored,
)

HALF, NOTHING = Fraction(1, 2), Fraction(0)
AMOUNTS: list[Callable[[Fraction], Single]] = [
    Pure,
    GaussianLoss,
    lambda amount: DiscreteLaplace(amount, 1),
    lambda amount: Approximate(amount, NOTHING),
    lambda amount: EquivalentGaussian(amount, NOTHING),
]
DELTAS: list[Callable[[Fraction], Single]] = [
    lambda delta: Approximate(HALF, delta),
    lambda delta: EquivalentGaussian(HALF, delta),
]


@pytest.mark.parametrize("made", AMOUNTS)
def test_a_loss_is_never_negative(made: Callable[[Fraction], Single]) -> None:
    assert made(NOTHING).mu_squared == 0
    for amount in (Fraction(-1, 10**30), -HALF, Fraction(-1), Fraction(-7)):
        with pytest.raises(ValueError, match="must not be negative"):
            made(amount)


@pytest.mark.parametrize("made", DELTAS)
def test_a_delta_is_a_probability(made: Callable[[Fraction], Single]) -> None:
    assert made(NOTHING).keys_delta == 0
    assert made(Fraction(1)).keys_delta == 1
    for delta in (Fraction(-1, 10**30), 1 + Fraction(1, 10**30), Fraction(3, 2), Fraction(2), Fraction(-1)):
        with pytest.raises(ValueError, match=r"delta must be a probability|must not be negative"):
            made(delta)


def test_a_sensitivity_is_not_negative() -> None:
    assert DiscreteLaplace(HALF, 0).sensitivity == 0
    for steps in (-1, -2):
        with pytest.raises(ValueError, match="a sensitivity must not be negative"):
            DiscreteLaplace(HALF, steps)


@pytest.mark.parametrize("written", ['{"event": "pure", "epsilon": "-1/2"}', '{"event": "gaussian", "mu": "-1"}'])
def test_a_ledger_holds_no_negative_loss(written: str) -> None:
    with pytest.raises(ValueError, match="must not be negative"):
        loss_from_json(json.loads(written))


def test_a_word_means_one_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a ledger holds under it would otherwise be read as something else."""
    monkeypatch.setattr(losses, "_KINDS", {})

    @frozen
    class One(Single):
        event: ClassVar[str] = "word"

    @frozen
    class Other(Single):
        event: ClassVar[str] = "word"

    assert stored(One) is One
    assert stored(One) is One
    assert loss_from_json({"event": "word"}) == One()
    with pytest.raises(ValueError, match="the same stored name"):
        stored(Other)
    assert loss_from_json({"event": "word"}) == One()
