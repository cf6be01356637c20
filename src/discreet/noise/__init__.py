"""Integer noise from the operating system's randomness, drawn exactly: floating point decides nothing."""

from discreet.trusted.ring_a.gaussian import rounded_gaussian
from discreet.trusted.ring_a.laplace import discrete_laplace

__all__ = ["discrete_laplace", "rounded_gaussian"]
