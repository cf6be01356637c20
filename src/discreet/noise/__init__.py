"""Integer noise from the operating system's randomness, drawn exactly: floating point decides nothing."""

from discreet.noise.gaussian import rounded_gaussian
from discreet.noise.laplace import discrete_laplace

__all__ = ["discrete_laplace", "rounded_gaussian"]
