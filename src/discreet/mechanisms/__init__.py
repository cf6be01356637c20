"""Noise fitted to a sensitivity, each mechanism with its argument and its loss."""

from discreet.mechanisms.additive import Gaussian, Laplace
from discreet.mechanisms.joint import Ball
from discreet.mechanisms.noisy_max import NoisyMax
from discreet.mechanisms.partition import PartitionSelection
from discreet.mechanisms.response import RandomisedResponse, randomised_response, two_coins
from discreet.mechanisms.selection import ExponentialMechanism, PermuteAndFlip, TopK
from discreet.mechanisms.sparse import AboveThreshold, Watch
from discreet.mechanisms.threshold import (
    GaussianThreshold,
    LaplaceThreshold,
    gaussian_threshold,
    laplace_threshold,
)

__all__ = [
    "AboveThreshold",
    "Ball",
    "ExponentialMechanism",
    "Gaussian",
    "GaussianThreshold",
    "Laplace",
    "LaplaceThreshold",
    "NoisyMax",
    "PartitionSelection",
    "PermuteAndFlip",
    "RandomisedResponse",
    "TopK",
    "Watch",
    "gaussian_threshold",
    "laplace_threshold",
    "randomised_response",
    "two_coins",
]
