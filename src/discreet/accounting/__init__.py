"""The loss of one release, how losses add for an adaptive analyst, when to stop, and what a declared batch costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from discreet.accounting.declared import Declared
from discreet.accounting.filter import Family, Spent
from discreet.accounting.further_losses import BoundedRange, Laplace, SubsampledGaussian, ZeroConcentrated
from discreet.accounting.gdp_filter import CertifiedFilter as Filter
from discreet.accounting.loss import (
    Approximate,
    Batch,
    DiscreteLaplace,
    EquivalentGaussian,
    Gaussian,
    Loss,
    Pure,
    loss_from_json,
)

if TYPE_CHECKING:
    from discreet.accounting.batch import Composition

__all__ = [
    "Approximate",
    "Batch",
    "BoundedRange",
    "Declared",
    "DiscreteLaplace",
    "EquivalentGaussian",
    "Family",
    "Filter",
    "Gaussian",
    "Laplace",
    "Loss",
    "Pure",
    "Spent",
    "SubsampledGaussian",
    "ZeroConcentrated",
    "compose",
    "loss_from_json",
]


def compose(losses: Iterable[Loss] | Mapping[Loss, int]) -> Composition:
    """What releases declared together cost: `compose([...]).epsilon(delta)`. See `discreet.accounting.batch`."""
    from discreet.accounting import batch  # numerical: loaded when it is asked for

    return batch.compose(losses)
