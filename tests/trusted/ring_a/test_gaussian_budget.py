"""The filter without certificates: what it charges, and that the certified one is never behind it."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

from discreet.accounting import room
from discreet.accounting.room import pure_room, times_left
from discreet.trusted.ring_a import gaussian_budget
from discreet.trusted.ring_a.filter import PrivacyFilter
from discreet.trusted.ring_a.gaussian_budget import squares
from discreet.trusted.ring_a.loss import (
    Approximate,
    Batch,
    DiscreteLaplace,
    EquivalentGaussian,
    GaussianLoss,
    Loss,
    Pure,
    loss_from_json,
)
from discreet.trusted.ring_b import gdp_filter
from discreet.trusted.ring_b.further_losses import BoundedRange, LaplaceLoss, SubsampledGaussian, ZeroConcentrated
from discreet.trusted.ring_b.gdp_filter import CertifiedFilter
from kinds import DATA

KIND = "exact"

TENTH = Fraction(1, 10)
KINDS: list[Loss] = [
    Pure(TENTH),
    Pure(0),
    Pure(Fraction(1, 10**10)),
    DiscreteLaplace(TENTH, 1),
    DiscreteLaplace(TENTH, 40),
    LaplaceLoss(TENTH),
    BoundedRange(TENTH),
    GaussianLoss(TENTH),
    EquivalentGaussian(TENTH, Fraction(1, 10**9)),
    Approximate(TENTH, Fraction(1, 10**9)),
    SubsampledGaussian(20, TENTH, 7),
    Batch((Pure(TENTH), GaussianLoss(TENTH), DiscreteLaplace(TENTH, 3))),
]
RECORDED: list[dict[str, Any]] = json.loads((DATA / "recorded_states.json").read_text("utf-8"))


@pytest.mark.parametrize("loss", KINDS, ids=str)
@pytest.mark.parametrize("left", [Fraction(4), Fraction(1, 3), Fraction(1, 50)], ids=str)
def test_a_release_costs_its_own_mu_squared_and_no_less_than_the_certified_price(loss: Loss, left: Fraction) -> None:
    plain, certified = gaussian_budget.charge(squares, loss, left), gdp_filter.charge(loss, left)
    assert loss.mu_squared is not None
    if plain is None:
        assert loss.mu_squared > left - Fraction(3, 1 << 128)
        return
    assert left - Fraction(6, 1 << 128) <= plain + loss.mu_squared <= left  # of three parts each is rounded twice
    assert certified is not None
    assert certified >= plain
    many = room.times_at(squares, loss, left, 100)
    for _ in range(many):
        plain = gaussian_budget.charge(squares, loss, plain)
    assert many <= room.times(loss, left, 100)


def test_nothing_is_paid_by_a_release_of_which_no_mu_is_known() -> None:
    assert gaussian_budget.charge(squares, ZeroConcentrated(1), Fraction(100)) is None
    assert gaussian_budget.charge(squares, Pure(0), None) is None
    assert room.times_at(squares, ZeroConcentrated(1), Fraction(100)) == 0


@pytest.mark.parametrize("sequence", RECORDED, ids=range(len(RECORDED)))
def test_what_plain_prices_admit_certified_ones_admit(sequence: dict[str, Any]) -> None:
    plain, certified = PrivacyFilter(*sequence["budget"]), CertifiedFilter(*sequence["budget"])
    for step in sequence["steps"]:
        loss = loss_from_json(step["loss"])
        assert certified.admits(loss) or not plain.admits(loss)
        assert times_left(plain, loss) <= times_left(certified, loss)
        if plain.admits(loss):
            plain, certified = plain.charge(loss), certified.charge(loss)
        assert type(plain) is PrivacyFilter
        assert type(certified) is CertifiedFilter
        assert pure_room(plain) == pure_room(certified)


def test_gaussian_noise_costs_both_the_same() -> None:
    plain, certified = PrivacyFilter(1, "1e-6"), CertifiedFilter(1, "1e-6")
    for _ in range(20):
        plain, certified = plain.charge(GaussianLoss("0.03")), certified.charge(GaussianLoss("0.03"))
        assert plain.spent == certified.spent
    assert times_left(plain, GaussianLoss("0.01")) == times_left(certified, GaussianLoss("0.01"))
