"""The former name of `discreet.reference.calibrate`, kept for those who import it."""

from discreet.reference.calibrate import gaussian_sigma, laplace_epsilon, subsampled_sigma

__all__ = ["gaussian_sigma", "laplace_epsilon", "subsampled_sigma"]
