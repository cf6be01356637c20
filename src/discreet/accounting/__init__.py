"""The loss of one release, how losses add for an adaptive analyst, and when to stop."""

from discreet.accounting.filter import Filter, Spent
from discreet.accounting.loss import Approximate, Batch, DiscreteLaplace, Gaussian, Loss, Pure, loss_from_json

__all__ = [
    "Approximate",
    "Batch",
    "DiscreteLaplace",
    "Filter",
    "Gaussian",
    "Loss",
    "Pure",
    "Spent",
    "loss_from_json",
]
