"""Noise fitted to a sensitivity, each mechanism with its argument and its loss."""

from discreet.mechanisms.additive import Gaussian, Laplace
from discreet.mechanisms.threshold import LaplaceThreshold, laplace_threshold

__all__ = ["Gaussian", "Laplace", "LaplaceThreshold", "laplace_threshold"]
