"""The loss of one release, how losses add for an adaptive analyst, when to stop, and what a declared batch costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from discreet.trusted.ring_a.filter import Family, Spent
from discreet.trusted.ring_a.loss import (
    Approximate,
    Batch,
    DiscreteLaplace,
    EquivalentGaussian,
    Gaussian,
    Loss,
    Pure,
    loss_from_json,
)
from discreet.trusted.ring_b.further_losses import BoundedRange, Laplace, SubsampledGaussian, ZeroConcentrated
from discreet.trusted.ring_b.gdp_filter import CertifiedFilter as Filter
from discreet.trusted.ring_c.declared import Declared

if TYPE_CHECKING:
    from discreet.trusted.ring_c.batch import Composition

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
    """What releases declared together cost: `compose([...]).epsilon(delta)`. See `ring_c.batch`."""
    from discreet.trusted.ring_c import batch  # numerical: loaded when it is asked for

    return batch.compose(losses)
