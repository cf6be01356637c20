"""The loss of one release, how losses add for an adaptive analyst, when to stop, and what a declared batch costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from discreet.accounting.room import part_used, times_left
from discreet.trusted.ring_a.filter import Family, Spent
from discreet.trusted.ring_a.loss import (
    Approximate,
    Batch,
    DiscreteLaplace,
    EquivalentGaussian,
    Loss,
    Pure,
    loss_from_json,
)
from discreet.trusted.ring_a.loss import (
    GaussianLoss as Gaussian,
)
from discreet.trusted.ring_b.further_losses import BoundedRange, SubsampledGaussian, ZeroConcentrated
from discreet.trusted.ring_b.further_losses import LaplaceLoss as Laplace
from discreet.trusted.ring_b.gdp_filter import CertifiedFilter as Filter

if TYPE_CHECKING:
    from discreet.trusted.ring_c.batch import Composition
    from discreet.trusted.ring_c.declared import Declared

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
    "part_used",
    "times_left",
]


def __getattr__(name: str) -> Any:
    """Loads the class of declared batches when it is first used: few sessions declare one, and it is numerical."""
    if name == "Declared":
        from discreet.trusted.ring_c.declared import Declared

        return Declared
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def compose(losses: Iterable[Loss] | Mapping[Loss, int]) -> Composition:
    """What releases declared together cost: `compose([...]).epsilon(delta)`. See `ring_c.batch`."""
    from discreet.trusted.ring_c import batch  # numerical: loaded when it is asked for

    return batch.compose(losses)
