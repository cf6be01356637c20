"""The former name of `discreet.reference.calibrate`, kept for who imports it."""

from discreet.reference.calibrate import gaussian_sigma, laplace_epsilon, subsampled_sigma

__all__ = ["gaussian_sigma", "laplace_epsilon", "subsampled_sigma"]
