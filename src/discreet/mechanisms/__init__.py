"""Noise fitted to a sensitivity, each mechanism with its argument and its loss."""

from discreet.mechanisms.additive import Gaussian, Laplace
from discreet.mechanisms.draws import ExponentialDraws, PublicDraws
from discreet.mechanisms.joint import Ball
from discreet.mechanisms.logarithmic import Bounds, Edge, LogarithmicRange
from discreet.mechanisms.noisy_max import NoisyMax
from discreet.mechanisms.partition import PartitionSelection
from discreet.mechanisms.quantile import Quantiles
from discreet.mechanisms.response import RandomisedResponse, randomised_response, two_coins
from discreet.mechanisms.selection import ExponentialMechanism, PermuteAndFlip, TopK
from discreet.mechanisms.shares import LaplaceShares, LargestShares
from discreet.mechanisms.sparse import AboveThreshold, Watch
from discreet.mechanisms.threshold import (
    GaussianThreshold,
    LaplaceThreshold,
    gaussian_threshold,
    laplace_threshold,
)
from discreet.mechanisms.winners import Winners

__all__ = [
    "AboveThreshold",
    "Ball",
    "Bounds",
    "Edge",
    "ExponentialDraws",
    "ExponentialMechanism",
    "Gaussian",
    "GaussianThreshold",
    "Laplace",
    "LaplaceShares",
    "LaplaceThreshold",
    "LargestShares",
    "LogarithmicRange",
    "NoisyMax",
    "PartitionSelection",
    "PermuteAndFlip",
    "PublicDraws",
    "Quantiles",
    "RandomisedResponse",
    "TopK",
    "Watch",
    "Winners",
    "gaussian_threshold",
    "laplace_threshold",
    "randomised_response",
    "two_coins",
]
