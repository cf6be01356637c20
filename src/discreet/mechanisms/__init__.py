"""Noise fitted to a sensitivity, each mechanism with its argument and its loss."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from discreet.mechanisms.accuracy import expected_error, variance
from discreet.mechanisms.lowest_threshold import gaussian_threshold, laplace_threshold
from discreet.trusted.ring_a.additive import Gaussian, Laplace
from discreet.trusted.ring_a.threshold import Threshold
from discreet.trusted.ring_b.joint import Ball
from discreet.trusted.ring_b.logarithmic import Bounds, Edge, LogarithmicRange
from discreet.trusted.ring_b.noisy_max import NoisyMax
from discreet.trusted.ring_b.quantile import Quantiles
from discreet.trusted.ring_b.selection import ExponentialMechanism, PermuteAndFlip, TopK
from discreet.trusted.ring_b.sparse import AboveThreshold, Watch
from discreet.trusted.ring_b.winners import Winners
from discreet.trusted.ring_c.shares import LaplaceShares, LargestShares

__all__ = [
    "AboveThreshold",
    "Ball",
    "Bounds",
    "Edge",
    "ExponentialMechanism",
    "Gaussian",
    "Laplace",
    "LaplaceShares",
    "LargestShares",
    "LogarithmicRange",
    "NoisyMax",
    "PermuteAndFlip",
    "Quantiles",
    "Threshold",
    "TopK",
    "Watch",
    "Winners",
    "expected_error",
    "gaussian_threshold",
    "laplace_threshold",
    "variance",
]

_MOVED = {
    "PartitionSelection": "discreet.reference.partition",
    "RandomisedResponse": "discreet.reference.response",
    "randomised_response": "discreet.reference.response",
    "two_coins": "discreet.reference.response",
}
"""Names that pages once imported from here."""


def __getattr__(name: str) -> Any:
    if name not in _MOVED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MOVED[name]), name)
